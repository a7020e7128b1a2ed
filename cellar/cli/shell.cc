// The shell's loop: lines to statements, statements to results.
#include "cellar/cli/shell.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "cellar/cli/completion.h"
#include "cellar/cli/error_text.h"

namespace cellar::cli {
namespace {

constexpr int kMaxFileDepth = 16;
constexpr size_t kCopyChunkBytes = 64 << 10;
constexpr size_t kMaxPageBytes = 16 << 20;

// For the signal handler: the session whose statement Ctrl-C cancels.
std::atomic<session::Session*> running_session{
    nullptr};  // NOLINT: handlers have nothing but globals

void CancelRunning() {
  session::Session* session = running_session.load();
  if (session != nullptr) session->Cancel(false);
}

class TerminalSource : public LineSource {
 public:
  explicit TerminalSource(LineEditor* editor) : editor_(editor) {}
  Outcome Read(const std::string& prompt, std::string* line) override {
    ++line_number;
    switch (editor_->Read(prompt, line)) {
      case LineEditor::Outcome::kLine: return Outcome::kLine;
      case LineEditor::Outcome::kInterrupted: return Outcome::kInterrupted;
      case LineEditor::Outcome::kEnd: break;
    }
    return Outcome::kEnd;
  }
  bool interactive() const override { return true; }

 private:
  LineEditor* editor_;
};

class FileSource : public LineSource {
 public:
  FileSource(FILE* file, std::string name) : file_(file), name_(std::move(name)) {}
  ~FileSource() override {
    std::free(buffer_);
    if (file_ != stdin) std::fclose(file_);
  }
  Outcome Read(const std::string&, std::string* line) override {
    const ssize_t got = ::getline(&buffer_, &capacity_, file_);
    if (got < 0) return Outcome::kEnd;
    ++line_number;
    line->assign(buffer_, static_cast<size_t>(got));
    if (line_number == 1 && line->substr(0, 3) == "\xEF\xBB\xBF") line->erase(0, 3);
    if (!line->empty() && line->back() == '\n') line->pop_back();
    return Outcome::kLine;
  }
  std::string name() const override { return name_; }

 private:
  FILE* file_;
  std::string name_;
  char* buffer_ = nullptr;
  size_t capacity_ = 0;
};

class TextSource : public LineSource {
 public:
  explicit TextSource(std::string text) : text_(std::move(text)) {}
  Outcome Read(const std::string&, std::string* line) override {
    if (at_ >= text_.size()) return Outcome::kEnd;
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    *line = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++line_number;
    return Outcome::kLine;
  }

 private:
  std::string text_;
  size_t at_ = 0;
};

int TerminalColumns() {
  winsize window{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 ? window.ws_col : 0;
}
int TerminalRows() {
  winsize window{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 ? window.ws_row : 0;
}

std::string HistoryFile() {
  if (const char* file = std::getenv("CELLAR_HISTORY")) return file;
  const char* home = std::getenv("HOME");
  return home == nullptr || *home == '\0' ? "" : std::string(home) + "/.cellar_history";
}

bool IsBlank(const std::string& text) {
  return text.find_first_not_of(" \t\n") == std::string::npos;
}

}  // namespace

Shell::Shell(const SqlOptions& options) : options_(options) {
  style_.mode = options.mode;
  style_.expanded = options.expanded;
  style_.tuples_only = options.tuples_only;
  stop_on_error_ = options.stop_on_error;
  quiet_ = options.quiet;
}

Shell::~Shell() {
  if (out_is_pipe_) {
    ::pclose(out_);
  } else if (out_ != stdout) {
    std::fclose(out_);
  }
  session_.reset();
  if (database_ == nullptr) return;
  database_->BeginShutdown();  // nothing is being sealed when the store closes
  (void)database_->engine()->Close().ok();
}

Status Shell::Open() {
  CELLAR_TRY_ASSIGN(database_, store::OpenDatabase(options_.store));
  CELLAR_TRY(Connect(options_.database));
  if (!options_.output_file.empty() && SetOutput(options_.output_file) == Flow::kStop) {
    return MakeError(Code::kInvalid, "{}: {}", options_.output_file, std::strerror(errno));
  }
  return Status();
}

Status Shell::Connect(const std::string& database) {
  session::SessionOptions options;
  options.user = options_.user;
  options.database = database;
  options.settings = {{"application_name", "cellar"}};
  CELLAR_TRY_ASSIGN(std::unique_ptr<session::Session> session,
                    session::Session::Open(database_.get(), options));
  session_ = std::move(session);
  options_.database = database;
  return Status();
}

int Shell::Run() {
  SetInterruptAction(&CancelRunning);
  if (options_.inputs.empty()) {
    terminal_ = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
    if (terminal_) return RunInteractive();
    return RunFile("-") == Flow::kStop ? 3 : 0;
  }
  for (const SqlOptions::Input& input : options_.inputs) {
    const Flow flow = input.is_file ? RunFile(input.text) : RunText(input.text);
    if (flow == Flow::kQuit) break;
    if (flow == Flow::kStop) return input.is_file && stop_on_error_ ? 3 : 1;
  }
  return 0;
}

int Shell::RunInteractive() {
  std::unique_ptr<LineEditor> editor =
      LineEditor::Open(HistoryFile(), [this](std::string_view before) { return Complete(before); });
  fmt::print("Cellar, database \"{}\". \\? lists the commands, \\q ends.\n", options_.database);
  TerminalSource source(editor.get());
  sql::StatementSplitter splitter(true);
  source_ = &source;
  splitter_ = &splitter;
  std::string entry;  // for the history
  while (true) {
    char mark = session_->transaction_status() == 'T' ? '*' : ' ';
    if (session_->transaction_status() == 'E') mark = '!';
    const auto state = static_cast<char>(splitter.state());
    const std::string prompt =
        fmt::format("{}{}{}{}", options_.database, splitter.has_statement() ? state : '=',
                    mark == ' ' ? "" : std::string(1, mark), "> ");
    std::string line;
    const LineSource::Outcome outcome = source.Read(prompt, &line);
    if (outcome == LineSource::Outcome::kEnd) {
      fmt::print("\\q\n");
      break;
    }
    if (outcome == LineSource::Outcome::kInterrupted) {
      splitter.Clear();
      entry.clear();
      continue;
    }
    entry += (entry.empty() ? "" : "\n") + line;
    Flow flow = Flow::kGoOn;
    for (const std::string& statement : splitter.Feed(line + "\n")) Execute(statement);
    if (!splitter.backslash().empty()) flow = Command(splitter.backslash(), &splitter);
    ShowPage();
    if (!splitter.has_statement()) {
      splitter.Clear();
      editor->Remember(entry);
      entry.clear();
    }
    if (flow == Flow::kQuit) break;
  }
  source_ = nullptr;
  splitter_ = nullptr;
  return 0;
}

Shell::Flow Shell::RunFile(const std::string& path) {
  if (file_depth_ >= kMaxFileDepth) {
    Error(fmt::format("{}: files include each other too deeply\n", path));
    return Flow::kStop;
  }
  FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "r");
  if (file == nullptr) {
    Error(fmt::format("{}: {}\n", path, std::strerror(errno)));
    return Flow::kStop;
  }
  FileSource source(file, path == "-" ? "<stdin>" : path);
  ++file_depth_;
  const Flow flow = RunSource(&source);
  --file_depth_;
  return flow;
}

Shell::Flow Shell::RunSource(LineSource* source) {
  LineSource* outer_source = std::exchange(source_, source);
  sql::StatementSplitter splitter(true);
  sql::StatementSplitter* outer_splitter = std::exchange(splitter_, &splitter);
  Flow flow = Flow::kGoOn;
  std::string line;
  while (flow == Flow::kGoOn && source->Read("", &line) == LineSource::Outcome::kLine) {
    for (const std::string& statement : splitter.Feed(line + "\n")) {
      if (flow == Flow::kGoOn) flow = Execute(statement);
    }
    if (flow == Flow::kGoOn && !splitter.backslash().empty()) {
      flow = Command(splitter.backslash(), &splitter);
    }
  }
  if (flow == Flow::kGoOn && splitter.has_statement()) flow = Execute(splitter.TakeRest());
  source_ = outer_source;
  splitter_ = outer_splitter;
  return flow;
}

Shell::Flow Shell::RunText(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string::npos) return Flow::kGoOn;
  if (text[first] == '\\') {
    TextSource source(text);
    const Flow flow = RunSource(&source);
    return failed_ ? Flow::kStop : flow;
  }
  // One message, as psql sends it: one transaction, which stops at the first error.
  Execute(text);
  return failed_ ? Flow::kStop : Flow::kGoOn;
}

ShellSink::Hooks Shell::MakeHooks(const PrintStyle* style) {
  ShellSink::Hooks hooks;
  hooks.session = session_.get();
  hooks.style = style;
  hooks.quiet = quiet_;
  hooks.terminal_columns = terminal_ ? TerminalColumns() : 0;
  hooks.write = [this](std::string_view text) { Write(text); };
  hooks.say = [](std::string_view text) {
    std::fflush(stdout);
    std::fwrite(text.data(), 1, text.size(), stderr);
  };
  hooks.copy_in = [this](std::string* chunk) { return ReadCopyLines(chunk); };
  return hooks;
}

Shell::Flow Shell::Execute(const std::string& sql, bool expanded_once) {
  if (IsBlank(sql)) return Flow::kGoOn;
  last_statement_ = sql;
  copy_ended_ = false;
  PrintStyle style = style_;
  style.expanded = style.expanded || expanded_once;
  ShellSink sink(MakeHooks(&style));
  const auto start = std::chrono::steady_clock::now();
  running_session.store(session_.get());
  const Status status = session_->ExecuteSimple(sql, &sink);
  running_session.store(nullptr);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  sink.Finish();
  failed_ = !status.ok();
  if (failed_) {
    std::string where;
    if (source_ != nullptr && !source_->name().empty()) {
      where = fmt::format("{}:{}: ", source_->name(), source_->line_number);
    }
    Error(where + ErrorText(status, sql));
  }
  if (timing_) Write(fmt::format("Time: {:.3f} ms\n", took.count()));
  if (out_ == stdout && !terminal_) std::fflush(stdout);
  return failed_ && stop_on_error_ ? Flow::kStop : Flow::kGoOn;
}

Result<bool> Shell::ReadCopyLines(std::string* chunk) {
  chunk->clear();
  if (std::exchange(copy_ended_, false)) return false;
  LineSource* source = source_;
  if (source == nullptr) {  // -c "COPY .. FROM STDIN"
    *chunk = std::string(kCopyChunkBytes, '\0');
    chunk->resize(std::fread(chunk->data(), 1, chunk->size(), stdin));
    return !chunk->empty();
  }
  std::string line;
  while (chunk->size() < kCopyChunkBytes) {
    switch (source->Read(">> ", &line)) {
      case LineSource::Outcome::kEnd: return !chunk->empty();
      case LineSource::Outcome::kInterrupted:
        return SqlError(Code::kCancelled, "57014", "COPY from stdin failed: canceled by user");
      case LineSource::Outcome::kLine: break;
    }
    if (line == "\\." || line == "\\.\r") {
      // The end, which the next call reports when there are lines still to hand on.
      if (chunk->empty()) return false;
      copy_ended_ = true;
      return true;
    }
    *chunk += line;
    *chunk += '\n';
    if (source->interactive()) break;
  }
  return true;
}

void Shell::Write(std::string_view text) {
  if (terminal_ && out_ == stdout) {
    page_.append(text);
    if (page_.size() > kMaxPageBytes) ShowPage();
    return;
  }
  std::fwrite(text.data(), 1, text.size(), out_);
}

// Through $PAGER when it is taller than the screen.
void Shell::ShowPage() {
  if (page_.empty()) return;
  int lines = 0;
  for (char c : page_) lines += c == '\n' ? 1 : 0;
  const char* pager = std::getenv("PSQL_PAGER");
  if (pager == nullptr) pager = std::getenv("PAGER");
  FILE* pipe = nullptr;
  if (pager != nullptr && *pager != '\0' && lines >= TerminalRows() && TerminalRows() > 0) {
    std::fflush(stdout);
    pipe = ::popen(pager, "w");
  }
  FILE* to = pipe != nullptr ? pipe : stdout;
  std::fwrite(page_.data(), 1, page_.size(), to);
  if (pipe != nullptr) ::pclose(pipe);
  std::fflush(stdout);
  page_.clear();
}

void Shell::Error(std::string_view text) {
  ShowPage();
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

Completion Shell::Complete(std::string_view before_cursor) {
  const auto ask = [this](const std::string& sql) {
    std::vector<std::string> names;
    if (session_->transaction_status() == 'E') return names;
    Result<std::vector<TextRow>> rows = QueryTexts(session_.get(), sql);
    if (!rows.ok()) return names;
    for (TextRow& row : *rows) {
      if (row[0]) names.push_back(std::move(*row[0]));
    }
    return names;
  };
  NameSource names;
  names.relations = [&] {
    return ask(
        "SELECT relname FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE relkind IN ('r', 'v', 'S', 'm') AND nspname NOT IN"
        " ('pg_catalog', 'information_schema') ORDER BY 1");
  };
  names.columns = [&](std::string_view text) {
    // Of the relations that the statement names, as far as a look at its words can tell.
    std::vector<std::string> known = names.relations();
    std::string list;
    for (const std::string& name : known) {
      if (text.find(name) == std::string_view::npos) continue;
      list += (list.empty() ? "" : ", ") + SqlLiteral(name);
    }
    return ask(
        "SELECT DISTINCT attname FROM pg_catalog.pg_attribute a"
        " JOIN pg_catalog.pg_class c ON c.oid = a.attrelid"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'v') AND nspname NOT IN"
        " ('pg_catalog', 'information_schema')" +
        (list.empty() ? "" : " AND relname IN (" + list + ")") + " ORDER BY 1");
  };
  return CompleteLine(splitter_ != nullptr ? splitter_->pending() : "", before_cursor, names);
}

int RunSql(const SqlOptions& options) {
  Shell shell(options);
  const Status status = shell.Open();
  if (!status.ok()) {
    fmt::print(stderr, "{}", PlainErrorText(status));
    return 1;
  }
  return shell.Run();
}

}  // namespace cellar::cli
