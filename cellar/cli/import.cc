// `cellar import`: a CSV file into a table, through COPY, with progress.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "cellar/cli/commands.h"
#include "cellar/cli/csv_scan.h"
#include "cellar/cli/error_text.h"
#include "cellar/session/session.h"

namespace cellar::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kChunkBytes = 256 << 10;
// How much of the file the types of a new table are guessed from.
constexpr size_t kSampleBytes = 64 << 20;
constexpr std::chrono::milliseconds kFirstProgress{500}, kProgressInterval{100};

std::string Quoted(std::string_view name) {
  std::string out = "\"";
  for (char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string Literal(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') out += '\'';
    out += c;
  }
  return out + "'";
}

// "schema.name" with both parts quoted.
std::string QuotedPath(std::string_view path) {
  const size_t dot = path.find('.');
  if (dot == std::string_view::npos) return Quoted(path);
  return Quoted(path.substr(0, dot)) + "." + Quoted(path.substr(dot + 1));
}

std::string WithCommas(uint64_t number) {
  std::string digits = std::to_string(number), out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

// The file, read once from front to back, with its beginning looked at before.
class Source {
 public:
  ~Source() {
    if (fd_ > 0) ::close(fd_);
  }
  Status Open(const std::string& path) {
    if (path == "-") return Status();  // fd 0
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) {
      return SqlError(Code::kNotFound, "58P01", "could not open file \"{}\" for reading: {}", path,
                      std::strerror(errno));
    }
    struct stat info {};
    if (::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode)) {
      size_ = static_cast<uint64_t>(info.st_size);
    }
    return Status();
  }
  // The first `bytes` bytes, or all there are. Valid until Read.
  Result<std::string_view> Peek(size_t bytes) {
    while (head_.size() < bytes && !at_end_) {
      std::string chunk;
      CELLAR_TRY(ReadFile(&chunk));
      head_ += chunk;
    }
    return std::string_view(head_).substr(0, bytes);
  }
  bool at_end() const { return at_end_; }
  Result<bool> Read(std::string* chunk) {
    if (!head_.empty()) {
      chunk->swap(head_);
      head_ = std::string();
    } else {
      CELLAR_TRY(ReadFile(chunk));
    }
    read_ += chunk->size();
    return !chunk->empty();
  }
  uint64_t size() const { return size_; }  // 0: unknown
  uint64_t bytes_read() const { return read_; }

 private:
  Status ReadFile(std::string* chunk) {
    chunk->resize(kChunkBytes);
    while (true) {
      const ssize_t got = ::read(fd_, chunk->data(), chunk->size());
      if (got < 0 && errno == EINTR) continue;
      chunk->resize(got > 0 ? static_cast<size_t>(got) : 0);
      if (got < 0) {
        return SqlError(Code::kUnavailable, "58030", "could not read: {}", std::strerror(errno));
      }
      at_end_ = got == 0;
      return Status();
    }
  }

  int fd_ = 0;
  std::string head_;
  bool at_end_ = false;
  uint64_t size_ = 0, read_ = 0;
};

// One line on a terminal, rewritten ten times a second.
class Progress {
 public:
  Progress(const Source& source, bool quiet)
      : source_(source), shown_(!quiet && ::isatty(STDERR_FILENO) == 1), start_(Clock::now()) {}
  void Update(uint64_t rows) {
    const Clock::time_point now = Clock::now();
    if (!shown_ || now - start_ < kFirstProgress || now - last_ < kProgressInterval) return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    std::string line = fmt::format("{} rows, {} rows/s", WithCommas(rows),
                                   WithCommas(static_cast<uint64_t>(rows / seconds)));
    if (source_.size() > 0) {
      const double part = std::min(
          1.0, static_cast<double>(source_.bytes_read()) / static_cast<double>(source_.size()));
      constexpr int kBar = 24;
      const int full = static_cast<int>(part * kBar);
      const auto left = static_cast<uint64_t>(part > 0 ? seconds / part - seconds : 0);
      line = fmt::format("[{}{}] {:3.0f} %  {}  {}:{:02} left", std::string(full, '#'),
                         std::string(kBar - full, ' '), part * 100, line, left / 60, left % 60);
    }
    winsize window{};
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1) {
      line = line.substr(0, window.ws_col - 1u);
    }
    fmt::print(stderr, "\r{}\x1b[K", line);
    std::fflush(stderr);
    drawn_ = true;
  }
  void Clear() {
    if (drawn_) fmt::print(stderr, "\r\x1b[K");
    drawn_ = false;
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  const Source& source_;
  bool shown_, drawn_ = false;
  Clock::time_point start_, last_;
};

// Feeds COPY from the file; keeps rows and tags of other statements.
class ImportSink : public session::ResultSink {
 public:
  ImportSink(Source* source, Progress* progress) : source_(source), progress_(progress) {}
  const std::string& tag() const { return tag_; }
  std::vector<std::string> TakeTexts() { return std::move(texts_); }

  Status OnColumns(std::span<const session::ResultColumn>) override { return Status(); }
  Status OnRows(const RowBatch& batch) override {
    for (size_t row = 0; row < batch.size(); ++row) {
      texts_.emplace_back(batch.column(0).Get(row).bytes());
    }
    return Status();
  }
  Status OnComplete(std::string_view tag) override {
    tag_ = tag;
    return Status();
  }
  Status OnEmptyQuery() override { return Status(); }
  Status OnNotice(const session::Notice& notice) override {
    progress_->Clear();
    fmt::print(stderr, "{}", NoticeText(notice));
    return Status();
  }
  Status OnParameter(std::string_view, std::string_view) override { return Status(); }
  Status OnNotification(int32_t, std::string_view, std::string_view) override { return Status(); }
  Status OnCopyIn(int, bool) override { return Status(); }
  Result<bool> ReadCopyData(std::string* chunk) override {
    progress_->Update(lines_);
    CELLAR_TRY_ASSIGN(bool more, source_->Read(chunk));
    lines_ += static_cast<uint64_t>(std::count(chunk->begin(), chunk->end(), '\n'));
    return more;
  }
  Status OnCopyOut(int, bool) override { return Status(); }
  Status OnCopyData(std::string_view) override { return Status(); }
  Status OnCopyOutEnd() override { return Status(); }

 private:
  Source* source_;
  Progress* progress_;
  std::string tag_;
  std::vector<std::string> texts_;
  uint64_t lines_ = 0;
};

char DelimiterOf(const ImportOptions& options) {
  if (options.delimiter != 0) return options.delimiter;
  return options.file.size() > 4 && options.file.substr(options.file.size() - 4) == ".tsv" ? '\t'
                                                                                           : ',';
}

// Names and types for a table that the file fits into.
Result<std::string> MakeCreateStatement(const ImportOptions& options, std::string_view sample,
                                        bool complete, bool header,
                                        std::vector<std::string>* names) {
  const char delimiter = DelimiterOf(options);
  std::vector<TypeGuess> guesses;
  bool first = true;
  while (std::optional<std::vector<CsvValue>> record =
             TakeCsvRecord(delimiter, complete, &sample)) {
    if (first) {
      guesses.resize(record->size());
      for (size_t i = 0; i < record->size(); ++i) {
        std::string name =
            header ? ColumnNameFrom((*record)[i].text, i + 1) : fmt::format("column_{}", i + 1);
        while (std::find(names->begin(), names->end(), name) != names->end()) name += "_";
        names->push_back(std::move(name));
      }
      first = false;
      if (header) continue;
    }
    for (size_t i = 0; i < record->size() && i < guesses.size(); ++i) {
      const CsvValue& value = (*record)[i];
      if (value.quoted || value.text != options.null_text) guesses[i].Add(value.text);
    }
  }
  if (guesses.empty())
    return InvalidError("\"{}\" holds no rows to guess columns from", options.file);
  std::string sql = "CREATE TABLE " + QuotedPath(options.table) + " (";
  for (size_t i = 0; i < guesses.size(); ++i) {
    sql += fmt::format("{}\n  {} {}", i > 0 ? "," : "", Quoted((*names)[i]),
                       FormatType(guesses[i].type()));
  }
  return sql + "\n)";
}

// The columns that the header names, when every field names one of the table's.
std::vector<std::string> MatchHeader(const std::vector<CsvValue>& header,
                                     const std::vector<std::string>& columns) {
  std::vector<std::string> matched;
  for (size_t i = 0; i < header.size(); ++i) {
    std::string_view field = header[i].text;
    if (i == 0 && field.substr(0, 3) == "\xEF\xBB\xBF") field.remove_prefix(3);
    auto exact = std::find(columns.begin(), columns.end(), field);
    if (exact == columns.end()) {
      exact = std::find(columns.begin(), columns.end(), ColumnNameFrom(field, i + 1));
    }
    if (exact == columns.end() ||
        std::find(matched.begin(), matched.end(), *exact) != matched.end())
      return {};
    matched.push_back(*exact);
  }
  return matched;
}

Status Import(const ImportOptions& options, std::string* report) {
  Source source;
  CELLAR_TRY(source.Open(options.file));
  store::StoreOptions store = options.store;
  store.create_if_missing = options.create;
  CELLAR_TRY_ASSIGN(std::unique_ptr<session::Database> database, store::OpenDatabase(store));
  session::SessionOptions session_options;
  session_options.database = options.database;
  CELLAR_TRY_ASSIGN(std::unique_ptr<session::Session> session,
                    session::Session::Open(database.get(), session_options));
  Progress progress(source, options.quiet);
  ImportSink sink(&source, &progress);

  using Header = ImportOptions::Header;
  const char delimiter = DelimiterOf(options);
  bool header = options.header == Header::kYes;
  std::vector<std::string> names;
  if (options.create) {
    CELLAR_TRY(session->ExecuteSimple("BEGIN", &sink));
    header = options.header != Header::kNo;
    CELLAR_TRY_ASSIGN(std::string_view sample, source.Peek(kSampleBytes));
    CELLAR_TRY_ASSIGN(std::string create,
                      MakeCreateStatement(options, sample, source.at_end(), header, &names));
    CELLAR_TRY(session->ExecuteSimple(create, &sink));
  } else {
    CELLAR_TRY(session->ExecuteSimple(
        fmt::format(
            "SELECT attname::text FROM pg_catalog.pg_attribute WHERE attrelid = {}::regclass"
            " AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            Literal(QuotedPath(options.table))),
        &sink));
    const std::vector<std::string> columns = sink.TakeTexts();
    if (options.header != Header::kNo) {
      CELLAR_TRY_ASSIGN(std::string_view sample, source.Peek(kChunkBytes));
      std::optional<std::vector<CsvValue>> first =
          TakeCsvRecord(delimiter, source.at_end(), &sample);
      if (first) names = MatchHeader(*first, columns);
      header = header || !names.empty();
    }
  }
  std::string copy = "COPY " + QuotedPath(options.table);
  for (size_t i = 0; i < names.size(); ++i) copy += (i == 0 ? " (" : ", ") + Quoted(names[i]);
  if (!names.empty()) copy += ")";
  copy += fmt::format(" FROM STDIN WITH (FORMAT csv, HEADER {}, DELIMITER {}, NULL {})",
                      header ? "true" : "false", Literal(std::string(1, delimiter)),
                      Literal(options.null_text));
  Status status = session->ExecuteSimple(copy, &sink);
  const std::string tag = sink.tag();
  if (status.ok() && options.create) status = session->ExecuteSimple("COMMIT", &sink);
  progress.Clear();
  CELLAR_TRY(std::move(status));
  const uint64_t rows =
      tag.substr(0, 5) == "COPY " ? std::strtoull(tag.c_str() + 5, nullptr, 10) : 0;
  const double seconds = progress.seconds();
  *report = fmt::format("{} rows into {} in {:.2f} s, {} rows/s\n", WithCommas(rows), options.table,
                        seconds, WithCommas(static_cast<uint64_t>(rows / std::max(seconds, 1e-6))));
  session.reset();
  database->BeginShutdown();  // nothing is being sealed when the store closes
  return database->engine()->Close();
}

}  // namespace

int RunImport(const ImportOptions& options) {
  std::string report;
  const Status status = Import(options, &report);
  if (!status.ok()) {
    fmt::print(stderr, "{}", ErrorText(status, ""));
    return 1;
  }
  if (!options.quiet) fmt::print("{}", report);
  return 0;
}

}  // namespace cellar::cli
