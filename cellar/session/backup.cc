// BACKUP STORE.
#include "cellar/kv/backup.h"

#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/kv/engine.h"
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

Status Session::Impl::RunBackup(const ast::OwnStmt& statement, Portal* portal) {
  if (!IsSuperuser()) {
    return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege,
                    "must be superuser to make backups");
  }
  if (!statement.object.parts.empty()) {
    return UnsupportedError("a backup holds the whole store")
        .WithHint(
            "BACKUP STORE, and `cellar backup restore --database`, which takes one out of "
            "it; or `cellar dump --database`.");
  }
  if (in_block) {
    return SqlError(Code::kInvalid, sqlstate::kActiveSqlTransaction,
                    "BACKUP STORE cannot run inside a transaction block");
  }
  kv::BackupOptions options;
  CELLAR_TRY(ReadOptions(statement, &options));
  CELLAR_TRY_ASSIGN(options.directory, db->files.Directory(statement.path));
  options.cancel = &cancel;
  CELLAR_TRY_ASSIGN(const kv::BackupInfo info, db->engine->Backup(options));
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
