// ALTER TABLE ... ADD COLUMN. A column whose rows all get one value, which is kept with its
// description, costs O(1): what its constraints say of that value is looked at once. Everything
// else writes the rows anew, by a job or in the same transaction.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"
#include "cellar/session/row_converter.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::session {
namespace {

std::vector<Type> LivingTypes(const catalog::TableDescriptor& table) {
  std::vector<Type> types;
  for (const catalog::ColumnDescriptor& column : table.columns) {
    if (!column.dropped) types.push_back(column.type);
  }
  return types;
}

// A row of NULLs but for the last living column.
void MakeRow(const catalog::TableDescriptor& table, Datum last, RowBatch* row) {
  const std::vector<Type> types = LivingTypes(table);
  std::vector<Datum> values(types.size());
  values.back() = last;
  row->Reset(types);
  row->AppendRow(values);
}

}  // namespace

Result<Value> Ddl::EvaluateDefault(const std::string& sql, Type type, bool* is_volatile) {
  *is_volatile = false;
  if (sql.empty()) return Value(type, Datum());
  CELLAR_TRY_ASSIGN(ast::ExprPtr parsed, sql::ParseExpression(sql));
  FoldingPlanner planner(s_);
  sql::PlannerContext& context = planner.context;
  sql::EvalContext& eval = planner.eval;
  CELLAR_TRY_ASSIGN(sql::ExprPtr bound, sql::BindTableExpression(*parsed, nullptr, type, context));
  *is_volatile = IsVolatile(*bound);
  if (*is_volatile) return Value(type, Datum());
  CELLAR_TRY_ASSIGN(Datum value, sql::EvalScalar(*bound, eval));
  return Value(type, value);
}

bool Ddl::IsVolatile(const sql::Expr& expr) {
  bool found = false;
  sql::VisitExpr(expr, [&found](const sql::Expr& part) {
    found |= part.kind == sql::ExprKind::kCall &&
             part.function->volatility == sql::Volatility::kVolatile;
  });
  return found;
}

Result<std::optional<bool>> Ddl::HoldsOfAll(const ast::Expr& check,
                                            const catalog::TableDescriptor& table) {
  catalog::TableDescriptor only = table;
  for (catalog::ColumnDescriptor& other : only.columns) other.dropped = true;
  catalog::ColumnDescriptor& column = only.columns.back();
  column.dropped = false;
  only.name.clear();  // the row as a whole is not the column
  FoldingPlanner planner(s_);
  sql::PlannerContext& context = planner.context;
  sql::EvalContext& eval = planner.eval;
  Result<sql::ExprPtr> bound =
      sql::BindTableExpression(check, &only, MakeType(TypeId::kBool), context);
  if (!bound.ok() || IsVolatile(**bound)) return std::optional<bool>();
  RowBatch row;
  MakeRow(only, column.initial_value->datum(), &row);
  sql::Evaluator evaluator(bound->get());
  CELLAR_TRY_ASSIGN(const ColumnVector* holds,
                    evaluator.Eval(row, sql::Selection{nullptr, row.size()}, eval));
  return std::optional<bool>(holds->IsNull(0) || holds->ints()[0] != 0);
}

Result<uint64_t> Ddl::CountRows(const catalog::TablePtr& table, uint64_t most) {
  table::ScanSpec spec;
  spec.table = table;
  spec.index = table->primary().id;
  spec.spans = {table::Span{}};
  spec.limit_hint = most;
  for (const catalog::IndexColumn& part : table->primary().key) spec.columns.push_back(part.column);
  CELLAR_TRY_ASSIGN(const std::unique_ptr<table::Reader> reader,
                    s_.transaction->access->Scan(std::move(spec)));
  CELLAR_TRY(HoldStill(*table));
  RowBatch batch;
  uint64_t count = 0;
  while (count < most) {
    CELLAR_TRY_ASSIGN(const bool more, reader->Next(&batch));
    if (!more) break;
    count += batch.size();
  }
  return std::min(count, most);
}

Status Ddl::AnnounceReference(const catalog::ForeignKey& key, catalog::TableId referencing) {
  if (key.referenced_table.value == 0 || key.referenced_table == referencing) return Status();
  const catalog::TablePtr other = Catalog()->GetTable(key.referenced_table);
  if (other == nullptr || other->commit_version == catalog::kUncommitted) return Status();
  return Editor().UpdateTable(*other).status();
}

Status Ddl::AddColumn(const ast::AlterTableCommand& command, catalog::TablePtr* table) {
  const ast::ColumnDef& definition = *command.column;
  if ((*table)->FindColumn(definition.name) != nullptr) {
    if (command.if_exists) {
      return Notice(Severity::kNotice, sqlstate::kDuplicateColumn,
                    fmt::format("column \"{}\" of relation \"{}\" already exists, skipping",
                                definition.name, (*table)->name));
    }
    return SqlError(Code::kExists, sqlstate::kDuplicateColumn,
                    "column \"{}\" of relation \"{}\" already exists", definition.name,
                    (*table)->name);
  }
  // Asked before anything is written, as a sequence is.
  CELLAR_TRY_ASSIGN(const bool may_job, WantsJob(**table));
  catalog::TableDescriptor next = **table;
  Target target{next.parent, next.name, next.temporary};
  int serial = 0;
  CELLAR_TRY_ASSIGN(catalog::ColumnDescriptor column,
                    MakeColumn(definition, target, next.name, &serial));
  column.id = catalog::ColumnId{next.next_column_id++};
  const catalog::ColumnId id = column.id;
  next.columns.push_back(std::move(column));
  for (ast::GroupChange to : command.groups) {
    to.columns = {definition.name};
    CELLAR_TRY(ChangeGroups({to}, &next));
  }

  // Column properties first; keys and references need the column to exist in the stored table.
  std::vector<const ast::Constraint*> later;
  for (const ast::Constraint& constraint : definition.constraints) {
    catalog::ColumnDescriptor& added = next.columns.back();
    switch (constraint.kind) {
      case ast::ConstraintKind::kNotNull: added.not_null = true; break;
      case ast::ConstraintKind::kDefault: CELLAR_TRY(SetDefault(*constraint.expr, &added)); break;
      case ast::ConstraintKind::kGenerated:
        CELLAR_TRY(CheckGenerated(*constraint.expr, next, added));
        added.generated_sql = sql::DeparseExpr(*constraint.expr);
        CELLAR_TRY(NameRelations(next, Type(), &added.generated_sql));
        break;
      case ast::ConstraintKind::kNull:
      case ast::ConstraintKind::kIdentity: break;
      default: later.push_back(&constraint);
    }
  }
  catalog::ColumnDescriptor& added = next.columns.back();
  bool is_volatile = false;
  CELLAR_TRY_ASSIGN(Value initial, EvaluateDefault(added.default_sql, added.type, &is_volatile));
  const bool rewrite = is_volatile || !added.generated_sql.empty();
  if (!rewrite) {
    added.initial_value = initial;
    CELLAR_TRY(VerifyInitialValue(*table, next, later));
  }
  if (rewrite) CELLAR_TRY(RefuseDuringBuild(**table));
  if (may_job) {
    CELLAR_TRY_ASSIGN(const bool by_job, NeedsJob(next, later));
    if (by_job) return AddColumnByJob(std::move(next), later, id, *table);
  }
  if (rewrite) PrepareCopy(&next);
  CELLAR_TRY_ASSIGN(catalog::TablePtr made, Editor().UpdateTable(std::move(next)));
  if (rewrite) CELLAR_TRY(RewriteRows(*table, made, id, ""));
  *table = made;
  if (made->FindColumn(id)->sequence.value != 0) {
    CELLAR_TRY(OwnSequence(made->FindColumn(id)->sequence, made->id, id));
  }
  for (const ast::Constraint* constraint : later) {
    CELLAR_TRY(AddToNewColumn(*constraint, definition.name, table));
  }
  return Status();
}

// What can be said of a value that every row gets, without a look at more than two of them.
Status Ddl::VerifyInitialValue(const catalog::TablePtr& table, const catalog::TableDescriptor& next,
                               std::span<const ast::Constraint* const> constraints) {
  const catalog::ColumnDescriptor& column = next.columns.back();
  const Datum value = column.initial_value->datum();
  bool not_null = column.not_null;
  const ast::Constraint* unique = nullptr;
  for (const ast::Constraint* constraint : constraints) {
    if (constraint->kind == ast::ConstraintKind::kPrimaryKey) {
      not_null = true;
      unique = constraint;
    }
    if (constraint->kind == ast::ConstraintKind::kUnique &&
        (!value.is_null() || constraint->nulls_not_distinct)) {
      unique = constraint;
    }
  }
  not_null &= value.is_null();
  if (unique == nullptr && !not_null) return Status();
  catalog::TableDescriptor with = next;
  if (unique != nullptr) CELLAR_TRY(AddKey(*unique, {column.name}, &with));
  CELLAR_TRY_ASSIGN(const uint64_t rows, CountRows(table, not_null ? 1 : 2));
  if (not_null) return rows == 0 ? Status() : ContainsNulls(column.name, next);
  if (rows < 2) return Status();
  const bool primary = unique->kind == ast::ConstraintKind::kPrimaryKey;
  const std::string& name = (primary ? with.indexes.front() : with.indexes.back()).name;
  std::string text = "null";
  if (!value.is_null()) {
    text.clear();
    AppendDatumText(value, column.type, s_.settings.format(), &text);
  }
  return SqlError(Code::kConstraint, sqlstate::kUniqueViolation,
                  "could not create unique index \"{}\"", name)
      .WithDetail(fmt::format("Key ({})=({}) is duplicated.", column.name, text))
      .WithTable("", next.name)
      .WithConstraint(name);
}

// Is there something to do for each row, and can a job do it? A reference is looked up in the
// statement's own transaction, which the referenced table's writers meet.
Result<bool> Ddl::NeedsJob(const catalog::TableDescriptor& next,
                           std::span<const ast::Constraint* const> constraints) {
  const catalog::ColumnDescriptor& column = next.columns.back();
  const bool rewrite = !column.initial_value.has_value();
  const bool null = !rewrite && column.initial_value->is_null();
  bool needed = rewrite;
  for (const ast::Constraint* constraint : constraints) {
    switch (constraint->kind) {
      case ast::ConstraintKind::kPrimaryKey: break;
      case ast::ConstraintKind::kUnique: needed |= null && !constraint->nulls_not_distinct; break;
      case ast::ConstraintKind::kCheck: {
        if (needed) break;
        CELLAR_TRY_ASSIGN(const std::optional<bool> holds, HoldsOfAll(*constraint->expr, next));
        needed = !holds.has_value();
        break;
      }
      case ast::ConstraintKind::kForeignKey:
        if (!null) return false;
        break;
      default: return false;
    }
  }
  return needed;
}

Status Ddl::AddToNewColumn(const ast::Constraint& constraint, const std::string& name,
                           catalog::TablePtr* table) {
  catalog::TableDescriptor with = **table;
  const std::optional<Value> initial = with.columns.back().initial_value;
  switch (constraint.kind) {
    case ast::ConstraintKind::kForeignKey: {
      CELLAR_TRY_ASSIGN(catalog::ForeignKey key, MakeForeignKey(constraint, {name}, with));
      CELLAR_TRY(VerifyNewReference(*table, key));
      CELLAR_TRY(AnnounceReference(key, with.id));
      with.foreign_keys.push_back(std::move(key));
      CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(with)));
      return Status();
    }
    case ast::ConstraintKind::kCheck: {
      std::optional<bool> holds;
      if (initial.has_value()) {
        CELLAR_TRY_ASSIGN(holds, HoldsOfAll(*constraint.expr, with));
      }
      std::vector<PendingForeignKey> none;
      CELLAR_TRY(AddTableConstraint(constraint, &with, &none));
      CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(with)));
      const catalog::CheckConstraint& check = (*table)->checks.back();
      if (!holds.has_value()) return VerifyCheck(*table, check);
      if (*holds) return Status();
      CELLAR_TRY_ASSIGN(const uint64_t rows, CountRows(*table, 1));
      return rows == 0 ? Status() : BreaksCheck(check.name, **table);
    }
    case ast::ConstraintKind::kUnique: {
      CELLAR_TRY(AddKey(constraint, {name}, &with));
      CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(with)));
      return s_.transaction->access->BuildIndex(*table, (*table)->indexes.back().id);
    }
    case ast::ConstraintKind::kPrimaryKey:
      if (!initial.has_value()) CELLAR_TRY(VerifyNotNull(*table, with.columns.back().id));
      CELLAR_TRY(AddKey(constraint, {name}, &with));
      return ReplacePrimary(std::move(with), table, false);
    default: return UnsupportedError("this column constraint is not supported");
  }
}

Status Ddl::VerifyNewReference(const catalog::TablePtr& table, const catalog::ForeignKey& key) {
  const std::optional<Value>& initial = table->columns.back().initial_value;
  if (!initial.has_value()) return VerifyForeignKey(table, key);
  if (initial->is_null()) return Status();
  RowBatch row;
  MakeRow(*table, initial->datum(), &row);
  Status status = VerifyForeignKey(table, key, &row);
  if (status.code() != Code::kConstraint) return status;
  CELLAR_TRY_ASSIGN(const uint64_t rows, CountRows(table, 1));
  return rows == 0 ? Status() : status;
}

Status Ddl::AddColumnByJob(catalog::TableDescriptor next,
                           std::span<const ast::Constraint* const> constraints,
                           catalog::ColumnId column, const catalog::TablePtr& table) {
  CELLAR_TRY(RefuseDuringBuild(*table));
  const std::string name = next.columns.back().name;
  for (const ast::Constraint* constraint : constraints) {
    if (constraint->kind == ast::ConstraintKind::kCheck) {
      std::vector<PendingForeignKey> none;
      CELLAR_TRY(AddTableConstraint(*constraint, &next, &none));
    } else if (constraint->kind == ast::ConstraintKind::kForeignKey) {
      CELLAR_TRY_ASSIGN(catalog::ForeignKey key, MakeForeignKey(*constraint, {name}, next));
      next.foreign_keys.push_back(std::move(key));
    } else {
      CELLAR_TRY(AddKey(*constraint, {name}, &next));
    }
  }
  DropHiddenPrimary(&next);
  CELLAR_TRY(RequireRowsForShards(next));
  PrepareCopy(&next);
  return RewriteByJob(std::move(next), table, column, "");
}

}  // namespace cellar::session
