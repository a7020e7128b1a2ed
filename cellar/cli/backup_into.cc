// `cellar backup restore --database | --table`: one database or table of a backup into a store that
// lives, row by row; and BACKUP by way of a server.
#include "cellar/cli/backup_into.h"

#include <functional>

#include "cellar/cli/places.h"
#include "cellar/cli/shell.h"
#include "cellar/dump/dump.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::cli {
namespace {

using dump::DumpContents;
using dump::DumpDatabase;

using sql::QuoteIdentifier;
using Open = std::function<Result<std::unique_ptr<Place>>(const std::string& database)>;

constexpr size_t kCacheOfBackup = 32 << 20;
constexpr const char* kFirstDatabase = "cellar";

// "a.b.c" as SQL reads it.
Result<std::vector<std::string>> SplitName(const std::string& name) {
  std::vector<std::string> parts(1);
  bool quoted = false;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '"') {
      if (quoted && i + 1 < name.size() && name[i + 1] == '"') {
        parts.back() += c;
        ++i;
        continue;
      }
      quoted = !quoted;
    } else if (c == '.' && !quoted) {
      parts.emplace_back();
    } else {
      parts.back() += !quoted && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  for (const std::string& part : parts) {
    if (part.empty() || quoted || parts.size() < 2 || parts.size() > 3) {
      return SqlError(Code::kInvalid, "42602", "\"{}\" is not the name of a table", name)
          .WithHint("Write database.table or database.schema.table.");
    }
  }
  if (parts.size() == 2) parts.insert(parts.begin() + 1, "public");
  return parts;
}

Result<std::unique_ptr<session::Session>> SessionIn(session::Database* store,
                                                    const std::string& database) {
  session::SessionOptions options;
  options.database = database;
  return session::Session::Open(store, options);
}

// All or nothing.
Status CopyInto(session::Database* backup, const std::string& database,
                const DumpContents& contents, Place* place,
                const std::vector<std::string>& before) {
  CELLAR_TRY_ASSIGN(const std::unique_ptr<session::Session> from, SessionIn(backup, database));
  CELLAR_TRY(place->Statement("BEGIN"));
  for (const std::string& statement : before) CELLAR_TRY(place->Statement(statement));
  CELLAR_TRY(DumpDatabase(from.get(), contents, place));
  return place->Statement("COMMIT");
}

Result<bool> Has(Place* place, const std::string& condition) {
  CELLAR_TRY_ASSIGN(const std::vector<TextRow> rows, place->Query("SELECT " + condition));
  return !rows.empty() && rows[0][0] == "t";
}

Status IntoDatabase(session::Database* backup, const BackupCommand& command, const Open& open) {
  const std::string name = command.as.empty() ? command.database : command.as;
  // Before anything is made: is it in the backup?
  CELLAR_TRY(SessionIn(backup, command.database).status());
  CELLAR_TRY_ASSIGN(const std::unique_ptr<Place> first, open(kFirstDatabase));
  CELLAR_TRY_ASSIGN(
      const bool exists,
      Has(first.get(), fmt::format("EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = {})",
                                   SqlLiteral(name))));
  if (!exists) CELLAR_TRY(first->Statement("CREATE DATABASE " + QuoteIdentifier(name)));
  const auto fill = [&]() -> Status {
    CELLAR_TRY_ASSIGN(const std::unique_ptr<Place> place, open(name));
    if (exists) {
      CELLAR_TRY_ASSIGN(
          const bool used,
          Has(place.get(),
              "EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
              " ON n.oid = c.relnamespace WHERE n.nspname !~ '^pg_'"
              " AND n.nspname <> 'information_schema')"));
      if (used) {
        return SqlError(Code::kExists, "42P04", "database \"{}\" exists and is not empty", name)
            .WithHint("Restore it under another name with --as, or drop this one before.");
      }
    }
    return CopyInto(backup, command.database, DumpContents(), place.get(), {});
  };
  Status status = fill();
  if (!status.ok() && !exists) {
    static_cast<void>(first->Statement("DROP DATABASE " + QuoteIdentifier(name)).ok());
    static_cast<void>(first->Statement("PURGE DATABASE " + QuoteIdentifier(name)).ok());
  }
  return status;
}

// Types of the table's columns that the place does not have.
Status FindTypes(session::Session* from, const std::string& table, Place* place,
                 std::vector<std::string>* before) {
  CELLAR_TRY_ASSIGN(
      const std::vector<TextRow> types,
      QueryTexts(from,
                 fmt::format("SELECT DISTINCT t.oid::bigint, n.nspname, t.typname"
                             " FROM pg_catalog.pg_attribute a"
                             " JOIN pg_catalog.pg_type u ON u.oid = a.atttypid"
                             " JOIN pg_catalog.pg_type t"
                             " ON t.oid = CASE WHEN u.typelem <> 0 THEN u.typelem ELSE u.oid END"
                             " JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace"
                             " WHERE a.attrelid = {}::regclass AND NOT a.attisdropped"
                             " AND t.typtype = 'e' ORDER BY 1",
                             SqlLiteral(table))));
  for (const TextRow& type : types) {
    const std::string name = sql::QuoteQualified(type[1].value_or(""), type[2].value_or(""));
    CELLAR_TRY_ASSIGN(
        const bool exists,
        Has(place, fmt::format("pg_catalog.to_regtype({}) IS NOT NULL", SqlLiteral(name))));
    if (exists) continue;
    CELLAR_TRY_ASSIGN(const std::vector<TextRow> labels,
                      QueryTexts(from, fmt::format("SELECT enumlabel FROM pg_catalog.pg_enum"
                                                   " WHERE enumtypid = {} ORDER BY enumsortorder",
                                                   type[0].value_or("0"))));
    std::string list;
    for (const TextRow& label : labels) {
      list += (list.empty() ? "" : ", ") + SqlLiteral(label[0].value_or(""));
    }
    before->push_back(fmt::format("CREATE TYPE {} AS ENUM ({})", name, list));
  }
  return Status();
}

Status IntoTable(session::Database* backup, const BackupCommand& command, const Open& open) {
  CELLAR_TRY_ASSIGN(const std::vector<std::string> parts, SplitName(command.table));
  CELLAR_TRY_ASSIGN(const std::unique_ptr<Place> place,
                    open(command.as.empty() ? parts[0] : command.as));
  DumpContents contents;
  contents.table = sql::QuoteQualified(parts[1], parts[2]);
  std::vector<std::string> before = {"CREATE SCHEMA IF NOT EXISTS " + QuoteIdentifier(parts[1])};
  if (parts[1] == "public") before.clear();
  CELLAR_TRY_ASSIGN(const std::unique_ptr<session::Session> from, SessionIn(backup, parts[0]));
  CELLAR_TRY(FindTypes(from.get(), contents.table, place.get(), &before));
  Status status = CopyInto(backup, parts[0], contents, place.get(), before);
  if (status.sqlstate() == "42P07") {
    return std::move(status).WithHint(
        "Rename the table that has the name, or drop it, which leaves it in the recycle bin; or "
        "restore into another database with --as.");
  }
  return status;
}

}  // namespace

Status RestoreInto(const BackupCommand& command) {
  store::StoreOptions source = command.store;
  source.directory = command.directory;
  source.backup = command.number;
  source.create_if_missing = false;
  source.run_jobs = false;
  source.cache_bytes = kCacheOfBackup;
  CELLAR_TRY_ASSIGN(const std::unique_ptr<session::Database> backup, store::OpenDatabase(source));
  std::unique_ptr<session::Database> store;
  Open open = [&](const std::string& database) { return ConnectPlace(command.url, database); };
  if (command.url.empty()) {
    store::StoreOptions target = command.store;
    target.create_if_missing = false;
    CELLAR_TRY_ASSIGN(store, store::OpenDatabase(target));
    open = [&](const std::string& database) { return dump::OpenPlace(store.get(), database); };
  }
  CELLAR_TRY(command.table.empty() ? IntoDatabase(backup.get(), command, open)
                                   : IntoTable(backup.get(), command, open));
  if (store != nullptr) {
    store->BeginShutdown();
    CELLAR_TRY(store->engine()->Close());
  }
  backup->BeginShutdown();
  return backup->engine()->Close();
}

Result<kv::BackupInfo> BackupByServer(const BackupCommand& command) {
  CELLAR_TRY_ASSIGN(const std::unique_ptr<Place> place, ConnectPlace(command.url, ""));
  // Not SqlLiteral: the grammar of our own statements knows no backslashes.
  std::string path;
  for (const char c : command.directory) path += c == '\'' ? "''" : std::string(1, c);
  std::string sql = command.database.empty()
                        ? "BACKUP STORE"
                        : "BACKUP DATABASE " + QuoteIdentifier(command.database);
  sql += fmt::format(" TO '{}'", path);
  if (command.keep != 0) sql += fmt::format(" WITH (keep = {})", command.keep);
  CELLAR_TRY_ASSIGN(const std::vector<TextRow> rows, place->Query(sql));
  if (rows.size() != 1 || rows[0].size() < 4) return InternalError("the server told nothing");
  const auto number = [&](size_t at) {
    return std::strtoull(rows[0][at].value_or("0").c_str(), nullptr, 10);
  };
  kv::BackupInfo info;
  info.number = static_cast<uint32_t>(number(0));
  info.files = static_cast<uint32_t>(number(1));
  info.bytes = number(2);
  info.added_bytes = number(3);
  return info;
}

}  // namespace cellar::cli
