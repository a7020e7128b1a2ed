// `cellar dump`: a store as SQL, or as files of CSV, without a server.
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "cellar/cli/commands.h"
#include "cellar/cli/error_text.h"
#include "cellar/cli/places.h"
#include "cellar/cli/shell.h"
#include "cellar/dump/dump.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::cli {
namespace {

using dump::DumpContents;
using dump::DumpDatabase;

constexpr const char* kFirstDatabase = "cellar";

Result<std::unique_ptr<session::Session>> Connect(session::Database* store,
                                                  const std::string& database) {
  session::SessionOptions options;
  options.database = database;
  options.settings = {{"application_name", "cellar dump"}};
  return session::Session::Open(store, options);
}

DumpContents ContentsOf(const DumpCommand& command) {
  DumpContents contents;
  contents.table = command.table;
  contents.schema = !command.data_only;
  contents.data = !command.schema_only;
  contents.owners = !command.no_owner;
  contents.privileges = !command.no_privileges;
  contents.csv = command.csv;
  return contents;
}

Result<std::vector<std::string>> Databases(session::Session* session) {
  CELLAR_TRY_ASSIGN(const std::vector<TextRow> rows,
                    QueryTexts(session,
                               "SELECT datname FROM pg_catalog.pg_database"
                               " WHERE datallowconn AND NOT datistemplate ORDER BY oid"));
  std::vector<std::string> names;
  for (const TextRow& row : rows) names.push_back(row[0].value_or(""));
  return names;
}

// Of all databases: what makes this one and goes into it.
Status Enter(const std::string& database, bool make, TextFile* file) {
  const std::string name = sql::QuoteIdentifier(database);
  CELLAR_TRY(file->Write(fmt::format("\n-- Database {}\n", name)));
  // A new store has these two.
  if (make && database != kFirstDatabase && database != "postgres") {
    CELLAR_TRY(file->Statement("CREATE DATABASE " + name));
  }
  return file->Write(fmt::format("\\connect {}\n", name));
}

Status DumpSql(session::Database* store, const DumpCommand& command) {
  CELLAR_TRY_ASSIGN(const std::unique_ptr<TextFile> file, TextFile::Open(command.to));
  CELLAR_TRY(file->Write("-- A dump by Cellar. Load it with psql -f or cellar sql -f.\n"));
  const bool all = command.database.empty() && command.table.empty();
  std::vector<std::string> databases = {command.database.empty() ? kFirstDatabase
                                                                 : command.database};
  DumpContents contents = ContentsOf(command);
  contents.database = all;
  if (all) {
    CELLAR_TRY_ASSIGN(const std::unique_ptr<session::Session> session,
                      Connect(store, kFirstDatabase));
    CELLAR_TRY_ASSIGN(databases, Databases(session.get()));
    if (!command.data_only) CELLAR_TRY(dump::DumpRoles(session.get(), file.get()));
  }
  for (const std::string& database : databases) {
    if (all) CELLAR_TRY(Enter(database, !command.data_only, file.get()));
    CELLAR_TRY_ASSIGN(const std::unique_ptr<session::Session> session, Connect(store, database));
    CELLAR_TRY(DumpDatabase(session.get(), contents, file.get()));
  }
  // Last, so that what loads the dump connects without them.
  if (all && !command.data_only) {
    CELLAR_TRY_ASSIGN(const std::unique_ptr<session::Session> session,
                      Connect(store, kFirstDatabase));
    CELLAR_TRY(file->Write("\n-- Settings\n"));
    CELLAR_TRY(dump::DumpSettings(session.get(), "", file.get()));
  }
  return file->Finish();
}

Status DumpCsv(session::Database* store, const DumpCommand& command) {
  if (command.to.empty()) return InvalidError("CSV goes to a directory: name one with --to");
  if (::mkdir(command.to.c_str(), 0700) != 0) {
    return InvalidError("could not make directory \"{}\": {}", command.to, std::strerror(errno))
        .WithHint("Name a directory that does not exist yet.");
  }
  std::vector<std::string> databases = {command.database.empty() ? kFirstDatabase
                                                                 : command.database};
  if (command.database.empty() && command.table.empty()) {
    CELLAR_TRY_ASSIGN(const std::unique_ptr<session::Session> session,
                      Connect(store, kFirstDatabase));
    CELLAR_TRY_ASSIGN(databases, Databases(session.get()));
  }
  for (const std::string& database : databases) {
    CELLAR_TRY_ASSIGN(const std::unique_ptr<session::Session> session, Connect(store, database));
    if (database.find('/') != std::string::npos || database[0] == '.') {
      return UnsupportedError("the name of database \"{}\" is none of a directory", database);
    }
    CELLAR_TRY_ASSIGN(const std::unique_ptr<CsvFiles> files,
                      CsvFiles::Open(command.to + "/" + database, !command.data_only));
    CELLAR_TRY(DumpDatabase(session.get(), ContentsOf(command), files.get()));
    CELLAR_TRY(files->Finish());
  }
  return Status();
}

Status Dump(const DumpCommand& command) {
  store::StoreOptions options = command.store;
  options.create_if_missing = false;
  options.read_only = true;
  options.run_jobs = false;
  CELLAR_TRY_ASSIGN(const std::unique_ptr<session::Database> store, store::OpenDatabase(options));
  CELLAR_TRY(command.csv ? DumpCsv(store.get(), command) : DumpSql(store.get(), command));
  store->BeginShutdown();
  return store->engine()->Close();
}

}  // namespace

int RunDump(const DumpCommand& command) {
  std::signal(SIGPIPE, SIG_DFL);  // `cellar dump | head` ends quietly
  const Status status = Dump(command);
  if (status.ok()) return 0;
  std::fflush(stdout);
  fmt::print(stderr, "{}", PlainErrorText(status));
  return 1;
}

}  // namespace cellar::cli
