#include "cellar/cli/places.h"

#include <libpq-fe.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>

#include "cellar/base/small_file.h"

namespace cellar::cli {
namespace {

// A table's name as a file's: what a path could misread is %XX.
std::string FileName(const std::string& table) {
  std::string out;
  for (size_t i = 0; i < table.size(); ++i) {
    const char c = table[i];
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || (c == '.' && i > 0) ||
                       static_cast<unsigned char>(c) >= 0x80;
    if (c == '"') continue;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out + ".csv";
}

class ServerPlace : public Place {
 public:
  explicit ServerPlace(PGconn* connection) : connection_(connection) {}
  ~ServerPlace() override { ::PQfinish(connection_); }

  Result<std::vector<TextRow>> Query(const std::string& sql) override {
    const Answer answer(::PQexec(connection_, sql.c_str()));
    CELLAR_TRY(Check(answer));
    std::vector<TextRow> rows;
    for (int row = 0; row < ::PQntuples(answer.get()); ++row) {
      TextRow& texts = rows.emplace_back();
      for (int column = 0; column < ::PQnfields(answer.get()); ++column) {
        if (::PQgetisnull(answer.get(), row, column) != 0) {
          texts.emplace_back();
        } else {
          texts.emplace_back(::PQgetvalue(answer.get(), row, column));
        }
      }
    }
    return rows;
  }
  Status BeginCopy(const std::string&, const std::string& sql) override {
    return Check(Answer(::PQexec(connection_, sql.c_str())));
  }
  Status CopyData(std::string_view data) override {
    if (::PQputCopyData(connection_, data.data(), static_cast<int>(data.size())) == 1)
      return Status();
    return Lost();
  }
  Status EndCopy() override {
    if (::PQputCopyEnd(connection_, nullptr) != 1) return Lost();
    Status status = Check(Answer(::PQgetResult(connection_)));
    while (const Answer rest{::PQgetResult(connection_)}) {
    }
    return status;
  }

 private:
  struct Clear {
    void operator()(PGresult* result) const { ::PQclear(result); }
  };
  using Answer = std::unique_ptr<PGresult, Clear>;

  Status Lost() const {
    return SqlError(Code::kUnavailable, "08006", "{}", ::PQerrorMessage(connection_));
  }
  Status Check(const Answer& answer) const {
    switch (::PQresultStatus(answer.get())) {
      case PGRES_COMMAND_OK:
      case PGRES_TUPLES_OK:
      case PGRES_COPY_IN:
      case PGRES_EMPTY_QUERY: return Status();
      default: break;
    }
    const auto field = [&](int code) {
      const char* text = ::PQresultErrorField(answer.get(), code);
      return std::string(text == nullptr ? "" : text);
    };
    if (answer == nullptr || field(PG_DIAG_SQLSTATE).empty()) return Lost();
    return SqlError(Code::kInvalid, field(PG_DIAG_SQLSTATE), "{}", field(PG_DIAG_MESSAGE_PRIMARY))
        .WithDetail(field(PG_DIAG_MESSAGE_DETAIL))
        .WithHint(field(PG_DIAG_MESSAGE_HINT));
  }

  PGconn* const connection_;
};

}  // namespace

Result<std::unique_ptr<TextFile>> TextFile::Open(const std::string& path) {
  // tidy: allow(new) the constructor is private
  std::unique_ptr<TextFile> file(new TextFile);
  file->path_ = path;
  if (path.empty()) {
    file->file_ = stdout;
    return file;
  }
  const std::string partial = path + ".partial";
  const mode_t mask = ::umask(077);
  file->file_ = std::fopen(partial.c_str(), "wbe");
  const int error = errno;
  ::umask(mask);
  if (file->file_ == nullptr) return IoError(fmt::format("could not write \"{}\"", path), error);
  return file;
}

TextFile::~TextFile() {
  if (file_ == nullptr || file_ == stdout) return;
  std::fclose(file_);
  ::unlink((path_ + ".partial").c_str());
}

Status TextFile::Write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) == text.size()) return Status();
  return IoError(path_.empty() ? "could not write" : fmt::format("could not write \"{}\"", path_),
                 errno);
}

Status TextFile::Finish() {
  const std::string what = path_.empty() ? "could not write" : "could not write \"" + path_ + "\"";
  if (std::fflush(file_) != 0) return IoError(what, errno);
  if (file_ == stdout) return Status();
  if (::fsync(::fileno(file_)) != 0) return IoError(what, errno);
  if (::rename((path_ + ".partial").c_str(), path_.c_str()) != 0) return IoError(what, errno);
  std::fclose(file_);
  file_ = nullptr;
  return Status();
}

Result<std::unique_ptr<CsvFiles>> CsvFiles::Open(const std::string& directory, bool statements) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return IoError(fmt::format("could not make directory \"{}\"", directory), errno);
  }
  auto files = std::make_unique<CsvFiles>();
  files->directory_ = directory;
  if (statements) {
    CELLAR_TRY_ASSIGN(files->statements_, TextFile::Open(directory + "/schema.sql"));
  }
  return files;
}

Status CsvFiles::Statement(const std::string& sql) {
  return statements_ == nullptr ? Status() : statements_->Statement(sql);
}

Status CsvFiles::BeginCopy(const std::string& table, const std::string&) {
  CELLAR_TRY_ASSIGN(table_, TextFile::Open(directory_ + "/" + FileName(table)));
  return Status();
}

Result<std::unique_ptr<Place>> ConnectPlace(const std::string& url, const std::string& database) {
  // What comes later counts more; a name of a database that is a URL is read as one.
  std::vector<const char*> names = {"dbname"}, values = {url.c_str()};
  if (!database.empty()) {
    names.push_back("dbname");
    values.push_back(database.c_str());
  }
  names.insert(names.end(), {"fallback_application_name", nullptr});
  values.insert(values.end(), {"cellar", nullptr});
  PGconn* connection = ::PQconnectdbParams(names.data(), values.data(), /*expand_dbname=*/1);
  auto place = std::make_unique<ServerPlace>(connection);
  if (::PQstatus(connection) != CONNECTION_OK) {
    std::string text = ::PQerrorMessage(connection);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return SqlError(Code::kUnavailable, "08001", "{}", text);
  }
  ::PQsetNoticeProcessor(
      connection, [](void*, const char*) {}, nullptr);
  return std::unique_ptr<Place>(std::move(place));
}

}  // namespace cellar::cli
