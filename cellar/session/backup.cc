// BACKUP STORE and BACKUP DATABASE.
#include "cellar/kv/backup.h"

#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/kv/engine.h"
#include "cellar/session/ddl.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {
namespace {

constexpr uint32_t kMostKept = 1'000'000;

Status ReadOptions(const ast::OwnStmt& statement, kv::BackupOptions* options) {
  for (const ast::Option& option : statement.options) {
    if (option.name != "keep") {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "unrecognized option of BACKUP: \"{}\"", option.name)
          .WithLocation(option.location);
    }
    const std::string text = option.ToText();
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, options->keep);
    if (read.ec != std::errc() || read.ptr != end || options->keep == 0 ||
        options->keep > kMostKept) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "\"keep\" must be a number from 1 to {}", kMostKept)
          .WithLocation(option.location);
    }
  }
  return Status();
}

}  // namespace

void SetDatabaseBackup(Database* database, DatabaseBackup make) {
  database->impl()->database_backup = std::move(make);
}

Status Session::Impl::RunBackup(const ast::OwnStmt& statement, Portal* portal) {
  if (!IsSuperuser()) {
    return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege,
                    "must be superuser to make backups");
  }
  const bool whole = statement.object.parts.empty();
  if (in_block) {
    return SqlError(Code::kInvalid, sqlstate::kActiveSqlTransaction,
                    "BACKUP {} cannot run inside a transaction block",
                    whole ? "STORE" : "DATABASE");
  }
  kv::BackupOptions options;
  CELLAR_TRY(ReadOptions(statement, &options));
  CELLAR_TRY_ASSIGN(options.directory, db->files.Directory(statement.path));
  options.cancel = &cancel;
  kv::BackupInfo info;
  if (whole) {
    CELLAR_TRY_ASSIGN(info, db->engine->Backup(options));
  } else if (!db->database_backup) {
    return UnsupportedError("this store does not make backups of one database");
  } else {
    CELLAR_TRY_ASSIGN(info, db->database_backup(Roles().NameOf(user_oid),
                                                JoinNames(statement.object.parts, "."), options));
  }
  portal->columns = ColumnsOf(statement);
  std::vector<Type> types;
  for (const ResultColumn& column : portal->columns) types.push_back(column.type);
  portal->rows.Reset(types);
  portal->materialized = true;
  const std::vector<Datum> row = {Datum::Int(info.number), Datum::Int(info.files),
                                  Datum::Int(static_cast<int64_t>(info.bytes)),
                                  Datum::Int(static_cast<int64_t>(info.added_bytes))};
  portal->rows.AppendRow(row);
  portal->tag = "BACKUP";
  return Status();
}

}  // namespace cellar::session
