#include "cellar/sql/exec/row_checks.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/exec/foreign_keys.h"

namespace cellar::sql::exec {

RowChecks::RowChecks(catalog::TablePtr table, const std::vector<CheckExpr>& checks)
    : table_(std::move(table)), checks_(checks) {
  size_t position = 0;
  for (const catalog::ColumnDescriptor& column : table_->columns) {
    if (column.dropped) continue;
    if (column.not_null && !column.hidden) not_null_.push_back(position);
    ++position;
  }
}

Result<size_t> RowChecks::FirstBroken(const RowBatch& rows, ExecState* state, Status* broken) {
  size_t good = rows.size();
  for (size_t position : not_null_) {
    const ColumnVector& column = rows.column(position);
    if (!column.has_nulls()) continue;
    good =
        static_cast<size_t>(std::find(column.nulls(), column.nulls() + good, 1) - column.nulls());
  }
  *broken = Status();
  if (checks_.empty() || good == 0) return good;
  if (evaluators_.empty()) {
    for (const CheckExpr& check : checks_) evaluators_.emplace_back(check.condition.get());
  }
  arena_.Reset();
  state->context->set_arena(&arena_);
  const CheckExpr* violated = nullptr;
  for (size_t i = 0; i < checks_.size(); ++i) {
    // A row that breaks an earlier check is not asked this one.
    CELLAR_TRY_ASSIGN(const ColumnVector* holds,
                      evaluators_[i].Eval(rows, Selection{nullptr, good}, *state->context));
    for (size_t row = 0; row < good; ++row) {
      if (holds->IsNull(row) || holds->ints()[row] != 0) continue;
      good = row;
      violated = &checks_[i];
    }
  }
  if (violated == nullptr) return good;
  *broken = SqlError(Code::kConstraint, sqlstate::kCheckViolation,
                     "new row for relation \"{}\" violates check constraint \"{}\"", table_->name,
                     violated->name)
                .WithDetail(fmt::format("Failing row contains {}.",
                                        DescribeRow(*table_, rows, good, state->context->format)))
                .WithTable("", table_->name)
                .WithConstraint(violated->name);
  return good;
}

RowBatch FirstRows(const RowBatch& rows, size_t count) {
  RowBatch some;
  some.columns().resize(rows.num_columns());
  for (size_t c = 0; c < rows.num_columns(); ++c)
    CopyColumn(rows.column(c), count, &some.column(c));
  some.SetSize(count);
  return some;
}

}  // namespace cellar::sql::exec
