// Statements that a job carries out, and CANCEL JOB.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"
#include "cellar/session/jobs.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/table/backfill.h"
#include "cellar/table/usage.h"

namespace cellar::session {
namespace {

// Smaller tables are changed by the statement's own transaction, one commit and no waiting, unless
// that has met writers once.
constexpr int64_t kRowsForJob = 2000;

}  // namespace

Result<bool> Ddl::WantsJob(const catalog::TableDescriptor& table) {
  if (s_.in_block || !s_.statement->commits_by_itself || !only_command_ || table.temporary)
    return false;
  if (s_.transaction->kv->stats().ops != 0) return false;  // it has done something before
  if (s_.statement->conflicts > 0) return true;
  CELLAR_TRY_ASSIGN(const std::optional<table::TableUsage> usage,
                    table::UsageOf(table, s_.transaction->kv.get()));
  if (usage.has_value()) return usage->rows >= kRowsForJob;
  CELLAR_TRY_ASSIGN(const uint64_t rows, s_.transaction->access->EstimateRows(table));
  return rows >= static_cast<uint64_t>(kRowsForJob);
}

Result<Job> Ddl::NewJob(const catalog::TableDescriptor& table) {
  const JobService* service = JobService::Of(s_.db);
  if (service == nullptr || !service->running()) {
    return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                    "this change needs a job, and the store was opened without running jobs");
  }
  Job job;
  CELLAR_TRY_ASSIGN(job.id, Editor().AllocateId());
  job.table = table.id;
  job.database = s_.database_name;
  job.created_by = s_.session_user;
  job.created_micros = NowMicros();
  CELLAR_TRY_ASSIGN(job.rows_estimated, s_.transaction->access->EstimateRows(table));
  return job;
}

Status Ddl::StartJobs(std::span<const Job> jobs) {
  for (const Job& job : jobs) {
    CELLAR_TRY(PutJob(job, s_.transaction->kv.get()));
  }
  JobService* service = JobService::Of(s_.db);
  if (Status committed = s_.Commit(sink_); !committed.ok()) {
    if (committed.code() == Code::kCommitUnknown) service->NoteUnknown();
    return committed;
  }
  service->Wake();
  Status first;
  for (const Job& job : jobs) {
    Status status = service->Wait(job.id, &s_.cancel);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

bool MaySee(Session::Impl& session, const Job& job) {
  if (session.IsSuperuser() || job.created_by == session.session_user) return true;
  const catalog::TablePtr table = session.CurrentCatalog()->GetTable(job.table);
  return table != nullptr && session.Owns(*table);
}

namespace {

// The job that the statement names, if the session may say what becomes of it. `action`: a verb.
Result<uint64_t> NamedJob(Session::Impl* session, const ast::OwnStmt& statement,
                          std::string_view action) {
  if (session->db->options.read_only) {
    return SqlError(Code::kInvalid, sqlstate::kReadOnlySqlTransaction,
                    "cannot {} jobs of a store that is open for reading only", action);
  }
  const auto id = static_cast<uint64_t>(std::max<int64_t>(statement.number, 0));
  CELLAR_TRY_ASSIGN(const std::optional<Job> job, ReadJob(session->db->engine.get(), id));
  if (job.has_value() && !MaySee(*session, *job)) {
    return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege,
                    "permission denied to {} job {}", action, id);
  }
  return id;
}

}  // namespace

Status RunCancelJob(Session::Impl* session, const ast::OwnStmt& statement) {
  CELLAR_TRY(session->CheckWritable("CANCEL JOB"));
  CELLAR_TRY_ASSIGN(const uint64_t id, NamedJob(session, statement, "cancel"));
  return JobService::Of(session->db)->Cancel(id);
}

Status RunResumeJob(Session::Impl* session, const ast::OwnStmt& statement) {
  CELLAR_TRY(session->CheckWritable("RESUME JOB"));
  CELLAR_TRY_ASSIGN(const uint64_t id, NamedJob(session, statement, "resume"));
  return JobService::Of(session->db)->Resume(id);
}

Status Ddl::AddIndex(catalog::TableDescriptor next, bool concurrently, catalog::TablePtr* table) {
  if (concurrently && (s_.in_block || !s_.statement->commits_by_itself)) {
    return SqlError(Code::kInvalid, sqlstate::kActiveSqlTransaction,
                    "CREATE INDEX CONCURRENTLY cannot run inside a transaction block");
  }
  const catalog::TablePtr before = Catalog()->GetTable(next.id);
  bool by_job = concurrently && before != nullptr && !before->temporary;
  if (!by_job && before != nullptr) {
    CELLAR_TRY_ASSIGN(by_job, WantsJob(*before));
  }
  if (!by_job) {
    CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(next)));
    return s_.transaction->access->BuildIndex(*table, (*table)->indexes.back().id);
  }
  CELLAR_TRY_ASSIGN(Job job, NewJob(*before));
  job.object = fmt::format("index \"{}\" of table \"{}\"", next.indexes.back().name, next.name);
  CELLAR_TRY(AddIndexToBuild(std::move(next), &job, table));
  return StartJobs({&job, 1});
}

Status Ddl::AddIndexToBuild(catalog::TableDescriptor next, Job* job, catalog::TablePtr* table) {
  next.indexes.back().state = catalog::IndexState::kWriteOnly;
  next.indexes.back().job = job->id;
  CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(next)));
  job->index = (*table)->indexes.back().id;
  job->storage = (*table)->storage_id();
  // The id behind it is its log's.
  catalog::TableDescriptor with_log = **table;
  with_log.next_index_id = job->index.value + table::kIndexIdsOfBuild;
  CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(with_log)));
  return Status();
}

// ---- REINDEX

Result<Job> Ddl::AddReplacement(const catalog::TablePtr& table,
                                const catalog::IndexDescriptor& index) {
  CELLAR_TRY_ASSIGN(Job job, NewJob(*table));
  job.object = fmt::format("index \"{}\" of table \"{}\"", index.name, table->name);
  job.replaces = index.id;
  catalog::TableDescriptor next = *Catalog()->GetTable(table->id);
  catalog::IndexDescriptor made = index;
  made.id = {};
  made.oid = 0;
  made.constraint = false;
  made.comment.clear();
  made.constraint_comment.clear();
  made.name = ChooseName(next, index.name, "new", next.parent);
  next.indexes.push_back(std::move(made));
  catalog::TablePtr stored;
  CELLAR_TRY(AddIndexToBuild(std::move(next), &job, &stored));
  return job;
}

Status Ddl::ReindexTables(std::span<const catalog::TablePtr> tables,
                          std::optional<catalog::IndexId> only, bool concurrently) {
  std::vector<bool> by_job;
  for (const catalog::TablePtr& table : tables) {
    if (table->kind != catalog::RelationKind::kTable) {
      by_job.push_back(false);
    } else if (concurrently && s_.statement->commits_by_itself && !table->temporary) {
      by_job.push_back(true);
    } else {
      CELLAR_TRY_ASSIGN(const bool wants, WantsJob(*table));
      by_job.push_back(wants);
    }
  }
  std::vector<Job> jobs;
  for (size_t i = 0; i < tables.size(); ++i) {
    const catalog::TablePtr& table = tables[i];
    if (table->kind != catalog::RelationKind::kTable) continue;
    for (const catalog::IndexDescriptor& index : table->indexes) {
      // The primary index is the rows themselves.
      if (index.primary || (only.has_value() && index.id != *only)) continue;
      if (index.state != catalog::IndexState::kPublic) continue;
      CELLAR_TRY(s_.cancel.Check());
      if (by_job[i]) {
        CELLAR_TRY_ASSIGN(Job job, AddReplacement(table, index));
        jobs.push_back(std::move(job));
        continue;
      }
      // Or entries would be left of an index that is dropped meanwhile.
      CELLAR_TRY(catalog::RequireCurrent(*table, s_.transaction->kv.get()));
      CELLAR_TRY(s_.transaction->access->ClearIndex(*table, index.id));
      CELLAR_TRY(s_.transaction->access->BuildIndex(table, index.id));
    }
  }
  return jobs.empty() ? Status() : StartJobs(jobs);
}

Status Ddl::VerifyConstraint(const catalog::TablePtr& table, const std::string& name,
                             catalog::ColumnId column) {
  if (column.value != 0) {
    return table->FindColumn(column) == nullptr ? Status() : VerifyNotNull(table, column);
  }
  for (const catalog::CheckConstraint& check : table->checks) {
    if (check.name == name) return VerifyCheck(table, check);
  }
  for (const catalog::ForeignKey& key : table->foreign_keys) {
    if (key.name == name) return VerifyForeignKey(table, key);
  }
  return Status();  // its job notices
}

Status Ddl::ValidateByJob(catalog::TableDescriptor next, const std::string& constraint,
                          uint32_t oid, catalog::ColumnId column, bool remove_on_failure) {
  CELLAR_TRY_ASSIGN(Job job, NewJob(next));
  job.kind = JobKind::kValidate;
  job.constraint = constraint;
  job.constraint_oid = oid;
  job.column = column;
  job.remove_on_failure = remove_on_failure;
  job.object = fmt::format("constraint \"{}\" of table \"{}\"", constraint, next.name);
  for (const catalog::ForeignKey& key : next.foreign_keys) {
    if (key.oid == oid) CELLAR_TRY(AnnounceReference(key, next.id));
  }
  CELLAR_TRY(Editor().UpdateTable(std::move(next)).status());
  return StartJobs({&job, 1});
}

Status Ddl::SetNotNull(const std::string& column_name, catalog::TablePtr* table) {
  catalog::TableDescriptor next = **table;
  const int at = next.OrdinalOf((*table)->FindColumn(column_name)->id);
  catalog::ColumnDescriptor& column = next.columns[static_cast<size_t>(at)];
  CELLAR_TRY_ASSIGN(const bool by_job, WantsJob(**table));
  if (!by_job) {
    CELLAR_TRY(VerifyNotNull(*table, column.id));
    column.not_null = true;
    CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(next)));
    return Status();
  }
  // Until all rows have been looked at, a CHECK keeps NULLs out.
  catalog::CheckConstraint check;
  check.name = ChooseName(next, column.name, "not_null", next.parent);
  check.expression = sql::QuoteIdentifier(column.name) + " IS NOT NULL";
  check.validated = false;
  CELLAR_TRY_ASSIGN(const uint64_t id, Editor().AllocateId());
  check.oid = static_cast<uint32_t>(id) + catalog::TableDescriptor::kFirstOid;
  next.checks.push_back(check);
  const catalog::ColumnId column_id = column.id;
  return ValidateByJob(std::move(next), check.name, check.oid, column_id, true);
}

Status Ddl::ValidateConstraint(const ast::AlterTableCommand& command, catalog::TablePtr* table) {
  catalog::TableDescriptor next = **table;
  const auto is_it = [&command](const auto& candidate) { return candidate.name == command.name; };
  const auto check = std::find_if(next.checks.begin(), next.checks.end(), is_it);
  const auto key = std::find_if(next.foreign_keys.begin(), next.foreign_keys.end(), is_it);
  if (check == next.checks.end() && key == next.foreign_keys.end()) {
    const catalog::IndexDescriptor* index = next.FindIndex(command.name);
    if (index != nullptr && index->constraint) {
      return SqlError(
          Code::kInvalid, sqlstate::kWrongObjectType,
          "constraint \"{}\" of relation \"{}\" is not a foreign key or check constraint",
          command.name, next.name);
    }
    return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                    "constraint \"{}\" of relation \"{}\" does not exist", command.name, next.name);
  }
  bool* validated = check != next.checks.end() ? &check->validated : &key->validated;
  if (*validated) return Status();
  const uint32_t oid = check != next.checks.end() ? check->oid : key->oid;
  CELLAR_TRY_ASSIGN(const bool by_job, WantsJob(**table));
  if (by_job) return ValidateByJob(std::move(next), command.name, oid, {}, false);
  CELLAR_TRY(VerifyConstraint(*table, command.name, {}));
  *validated = true;
  CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(next)));
  return Status();
}

}  // namespace cellar::session
