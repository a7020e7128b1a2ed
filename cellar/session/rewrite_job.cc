// Jobs that write a table anew: another layout, key or column type (docs/decisions/0014-jobs.md).
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"
#include "cellar/session/jobs.h"
#include "cellar/session/row_converter.h"
#include "cellar/sql/parser/parser.h"
#include "cellar/table/rewrite.h"

namespace cellar::session {
namespace {

// What expressions may depend on.
constexpr const char* kSettings[] = {"timezone",     "datestyle",          "intervalstyle",
                                     "bytea_output", "extra_float_digits", "search_path",
                                     "lc_monetary"};

// What becomes of the table: the copy, with what may have been changed meanwhile.
catalog::TableDescriptor Replaced(const catalog::TableDescriptor& current,
                                  const catalog::TableDescriptor& copy) {
  catalog::TableDescriptor next = current;
  next.layout = copy.layout;
  next.columns = copy.columns;
  for (catalog::ColumnDescriptor& column : next.columns) {
    const int at = current.OrdinalOf(column.id);
    if (at < 0 || column.dropped) continue;
    const catalog::ColumnDescriptor& now = current.columns[static_cast<size_t>(at)];
    column.default_sql = now.default_sql;
    column.sequence = now.sequence;
    column.acl = now.acl;
    column.comment = now.comment;
  }
  next.indexes = copy.indexes;
  for (catalog::IndexDescriptor& index : next.indexes) {
    for (const catalog::IndexDescriptor& now : current.indexes) {
      if (now.oid != index.oid) continue;
      index.comment = now.comment;
      index.constraint_comment = now.constraint_comment;
    }
  }
  next.row_formats = copy.row_formats;
  next.groups = copy.groups;
  next.next_column_id = std::max(current.next_column_id, copy.next_column_id);
  next.next_row_format_id = std::max(current.next_row_format_id, copy.next_row_format_id);
  next.next_group_id = std::max(current.next_group_id, copy.next_group_id);
  next.job = 0;
  return next;
}

// Has the table a key that the foreign key can refer to?
bool HasKeyFor(const catalog::TableDescriptor& table, const catalog::ForeignKey& key) {
  const auto leads = [&key](const catalog::IndexDescriptor& index) {
    return index.unique && index.predicate.empty() &&
           index.key.size() == key.referenced_columns.size() &&
           std::all_of(index.key.begin(), index.key.end(), [&key](const auto& part) {
             return std::find(key.referenced_columns.begin(), key.referenced_columns.end(),
                              part.column) != key.referenced_columns.end();
           });
  };
  return std::any_of(table.indexes.begin(), table.indexes.end(), leads);
}

// Foreign keys that need a key which *next has no more: they go, or are an error.
Status FollowKeys(bool cascade, catalog::TableDescriptor* next, catalog::CatalogEditor* editor) {
  const auto lost = [next](const catalog::ForeignKey& key) {
    return key.referenced_table == next->id && !HasKeyFor(*next, key);
  };
  for (const catalog::TablePtr& other : editor->snapshot()->ListReferencing(next->id)) {
    catalog::TableDescriptor changed = *other;
    std::vector<catalog::ForeignKey>& keys =
        other->id == next->id ? next->foreign_keys : changed.foreign_keys;
    const auto first = std::find_if(keys.begin(), keys.end(), lost);
    if (first == keys.end()) continue;
    if (!cascade) {
      return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                      "constraint {} on table {} depends on a key of table {}", first->name,
                      other->name, next->name);
    }
    std::erase_if(keys, lost);
    if (other->id != next->id) CELLAR_TRY(editor->UpdateTable(std::move(changed)).status());
  }
  return Status();
}

}  // namespace

// ---- The statement

Status Ddl::RefuseDuringBuild(const catalog::TableDescriptor& table) {
  for (const catalog::IndexDescriptor& index : table.indexes) {
    if (index.job == 0) continue;
    return SqlError(Code::kInvalid, sqlstate::kObjectInUse,
                    "index \"{}\" of table \"{}\" is being built by job {}", index.name, table.name,
                    index.job)
        .WithHint("Wait for its end (SHOW JOBS), or cancel it (CANCEL JOB).");
  }
  return Status();
}

Status Ddl::RewriteByJob(catalog::TableDescriptor next, const catalog::TablePtr& table,
                         catalog::ColumnId column, const std::string& expression, bool cascade) {
  CELLAR_TRY_ASSIGN(Job job, NewJob(*table));
  job.kind = JobKind::kRewrite;
  job.cascade = cascade;
  job.column = column;
  job.expression = expression;
  job.object = fmt::format("table \"{}\"", table->name);
  for (const char* name : kSettings) {
    if (const std::optional<std::string> value = s_.settings.Get(name)) job.settings[name] = *value;
  }
  // The catalog completes the copy's descriptor; then the table's own comes back, which from now on
  // has the job, and leaves the ids alone that the copy uses.
  CELLAR_TRY_ASSIGN(const catalog::TablePtr copy, Editor().UpdateTable(std::move(next)));
  job.copy = catalog::EncodeTable(*copy);
  catalog::TableDescriptor marked = *table;
  marked.version = copy->version;
  marked.job = job.id;
  marked.next_column_id = copy->next_column_id;
  marked.next_index_id = copy->next_index_id + table::kIndexIdsOfRewrite;
  marked.next_row_format_id = copy->next_row_format_id;
  marked.next_group_id = copy->next_group_id;
  CELLAR_TRY(Editor().UpdateTable(std::move(marked)).status());
  return StartJobs({&job, 1});
}

Status Ddl::NameSequences(const catalog::TableDescriptor& before, catalog::TableDescriptor* copy) {
  for (catalog::ColumnDescriptor& column : copy->columns) {
    if (column.dropped || column.sequence.value == 0 || before.FindColumn(column.id) != nullptr) {
      continue;
    }
    const catalog::TablePtr sequence = Catalog()->GetTable(column.sequence);
    if (sequence == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedTable,
                      "the sequence of column \"{}\" was dropped meanwhile", column.name);
    }
    column.default_sql = SequenceDefault(*sequence);
  }
  return Status();
}

// Sequences of new columns are owned by them, and go where the table is and to whom it belongs.
Status Ddl::TakeSequences(const catalog::TableDescriptor& before, catalog::TableDescriptor* next,
                          catalog::CatalogEditor* editor) {
  for (catalog::ColumnDescriptor& column : next->columns) {
    if (column.dropped || column.sequence.value == 0 || before.FindColumn(column.id) != nullptr) {
      continue;
    }
    const catalog::TablePtr sequence = editor->snapshot()->GetTable(column.sequence);
    if (sequence == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedTable,
                      "the sequence of column \"{}\" was dropped meanwhile", column.name);
    }
    catalog::TableDescriptor taken = *sequence;
    taken.sequence.owner_table = next->id;
    taken.sequence.owner_column = column.id;
    taken.owner = next->owner;
    if (taken.parent != next->parent) {
      taken.parent = next->parent;
      taken.name = FreeName(next->parent, taken.name);
    }
    CELLAR_TRY_ASSIGN(const catalog::TablePtr stored, editor->UpdateTable(std::move(taken)));
    column.default_sql = SequenceDefault(*stored);
  }
  return Status();
}

// Foreign keys of new columns, which have NULL in all rows.
Status Ddl::TakeReferences(const catalog::TableDescriptor& before,
                           const catalog::TableDescriptor& copy, catalog::TableDescriptor* next,
                           catalog::CatalogEditor* editor) {
  for (const catalog::ForeignKey& key : copy.foreign_keys) {
    if (before.FindColumn(key.columns.front()) != nullptr) continue;
    for (const catalog::ForeignKey& other : next->foreign_keys) {
      if (other.name != key.name) continue;
      return SqlError(Code::kExists, sqlstate::kDuplicateObject,
                      "constraint \"{}\" for relation \"{}\" already exists", key.name, next->name);
    }
    const bool own = key.referenced_table == next->id;
    const catalog::TablePtr other = editor->snapshot()->GetTable(key.referenced_table);
    if (!own && (other == nullptr || !HasKeyFor(*other, key))) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                      "what constraint \"{}\" references was dropped meanwhile", key.name);
    }
    next->foreign_keys.push_back(key);
    // Who does not know of it must not delete rows of the other table.
    if (!own) CELLAR_TRY(editor->UpdateTable(*other).status());
  }
  return Status();
}

Status Ddl::FollowColumns(const catalog::TableDescriptor& before,
                          const catalog::TableDescriptor& copy, catalog::TableDescriptor* next,
                          catalog::CatalogEditor* editor) {
  bool fewer = false, more = false;
  for (const catalog::ColumnDescriptor& column : next->columns) {
    more |= !column.dropped && !column.hidden && before.FindColumn(column.id) == nullptr;
  }
  for (const catalog::ColumnDescriptor& column : before.columns) {
    const int at = next->OrdinalOf(column.id);
    if (column.dropped || column.hidden || at < 0) continue;
    if (!next->columns[static_cast<size_t>(at)].dropped) continue;
    fewer = true;
    std::erase_if(next->foreign_keys, [&column](const catalog::ForeignKey& key) {
      return std::find(key.columns.begin(), key.columns.end(), column.id) != key.columns.end();
    });
    const catalog::TablePtr sequence = editor->snapshot()->GetTable(column.sequence);
    if (sequence == nullptr) continue;
    CELLAR_TRY_ASSIGN(drop_group_, editor->AllocateId());
    CELLAR_TRY_ASSIGN(const catalog::DropMark mark,
                      MarkOf(sequence->zone.retention_micros, sequence->parent));
    CELLAR_TRY(editor->DropTable(sequence->id, mark));
  }
  const auto fits = [this](const catalog::CheckConstraint& check,
                           const catalog::TableDescriptor& table) -> Result<bool> {
    CELLAR_TRY_ASSIGN(const ast::ExprPtr expr, sql::ParseExpression(check.expression));
    return CheckExpression(*expr, &table, MakeType(TypeId::kBool)).ok();
  };
  if (fewer) {
    std::vector<catalog::CheckConstraint> kept;
    for (catalog::CheckConstraint& check : next->checks) {
      CELLAR_TRY_ASSIGN(const bool keep, fits(check, *next));
      if (keep) kept.push_back(std::move(check));
    }
    next->checks = std::move(kept);
  }
  if (!more) return Status();
  CELLAR_TRY(TakeSequences(before, next, editor));
  CELLAR_TRY(TakeReferences(before, copy, next, editor));
  for (const catalog::CheckConstraint& check : copy.checks) {
    // Others may have been dropped meanwhile.
    CELLAR_TRY_ASSIGN(const bool old, fits(check, before));
    if (old) continue;
    for (const catalog::CheckConstraint& other : next->checks) {
      if (other.name != check.name) continue;
      return SqlError(Code::kExists, sqlstate::kDuplicateObject,
                      "constraint \"{}\" for relation \"{}\" already exists", check.name,
                      next->name);
    }
    next->checks.push_back(check);
  }
  return Status();
}

// ---- The job

Status JobService::RewriteStep(Session::Impl* session, const catalog::TablePtr& table,
                               const catalog::TablePtr& copy, uint64_t max_rows, bool finish,
                               Job* job, uint64_t* changes) {
  Database::Impl& db = *database_->impl();
  CELLAR_TRY_ASSIGN(const std::unique_ptr<RowConverter> converter,
                    RowConverter::Make(session, table, copy, job->column, job->expression));
  kv::TransactionOptions options;
  options.isolation = kv::Isolation::kSnapshot;
  options.unmarked_writes = !finish;  // nobody reads what they change
  const std::unique_ptr<kv::Transaction> transaction = db.engine->Begin(options);
  CELLAR_TRY(catalog::RequireCurrent(*table, transaction.get()));
  const table::BackfillContext in{transaction.get(), &cancel_, db.tables.get()};
  table::RewriteProgress progress;
  progress.position = job->position;
  progress.done = job->filled;
  progress.rows = job->copy_rows;
  progress.bytes = job->copy_bytes;
  CELLAR_TRY(table::RewriteSome(
      in, table, copy,
      [&converter](const RowBatch& from, RowBatch* to) { return converter->Convert(from, to); },
      max_rows, &progress));
  Job next = *job;
  next.position = progress.position;
  next.filled = progress.done;
  next.copy_rows = progress.rows;
  next.copy_bytes = progress.bytes;
  next.rows_done = static_cast<uint64_t>(progress.rows);
  next.attempts = 1;
  *changes = progress.changes;
  catalog::CatalogEditor editor(db.catalog.get(), transaction.get());
  if (finish) {
    CELLAR_TRY(table::FinishRewrite(in, table, copy, progress));
    catalog::TableDescriptor replaced = Replaced(*table, *copy);
    CELLAR_TRY(Ddl(session, nullptr).FollowColumns(*table, *copy, &replaced, &editor));
    CELLAR_TRY(FollowKeys(job->cascade, &replaced, &editor));
    CELLAR_TRY(editor.UpdateTable(replaced).status());
    next.copy.clear();
    End(&next, JobState::kDone);
  }
  CELLAR_TRY(PutJob(next, transaction.get()));
  CELLAR_TRY(db.catalog->Commit(editor).status());
  *job = std::move(next);
  return Status();
}

Status JobService::RewriteIn(Session::Impl* session, Job* job) {
  Database::Impl& db = *database_->impl();
  CELLAR_TRY_ASSIGN(const catalog::TableDescriptor made, catalog::DecodeTable(job->copy));
  CELLAR_TRY(session->EnsureTransaction(false));
  return TakeSteps(
      job, {"copied some", 0, [&](StepSize size, uint64_t* changes) -> Status {
              const catalog::TablePtr table = db.catalog->Current()->GetTable(job->table);
              if (table == nullptr) return JobTableInBin();
              if (table->job != job->id) return JobTargetGone(*job);
              catalog::TableDescriptor now = made;
              CELLAR_TRY(Ddl(session, nullptr).NameSequences(*table, &now));
              const auto copy = std::make_shared<const catalog::TableDescriptor>(std::move(now));
              return RewriteStep(session, table, copy, size.max_rows, size.finish, job, changes);
            }});
}

Status JobService::Rewrite(Job* job) {
  CELLAR_TRY_ASSIGN(const std::unique_ptr<JobSession> opened, OpenSession(*job, job->settings));
  Session::Impl* session = opened->session->impl();
  Status status = RewriteIn(session, job);
  session->Rollback();
  CloseSession();
  return status;
}

}  // namespace cellar::session
