#include "cellar/session/row_converter.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"

namespace cellar::session {

Status ContainsNulls(const std::string& column, const catalog::TableDescriptor& table) {
  return SqlError(Code::kConstraint, sqlstate::kNotNullViolation,
                  "column \"{}\" of relation \"{}\" contains null values", column, table.name)
      .WithTable("", table.name)
      .WithColumn(column);
}

Status BreaksCheck(const std::string& check, const catalog::TableDescriptor& table) {
  return SqlError(Code::kConstraint, sqlstate::kCheckViolation,
                  "check constraint \"{}\" of relation \"{}\" is violated by some row", check,
                  table.name)
      .WithTable("", table.name)
      .WithConstraint(check);
}

Result<std::unique_ptr<RowConverter>> RowConverter::Make(Session::Impl* session,
                                                         const catalog::TablePtr& from,
                                                         const catalog::TablePtr& to,
                                                         catalog::ColumnId column,
                                                         const std::string& expression) {
  auto made = std::make_unique<RowConverter>();
  made->to_ = to;
  std::vector<catalog::ColumnId> before;
  for (const catalog::ColumnDescriptor& old : from->columns) {
    if (!old.dropped) before.push_back(old.id);
  }
  for (const catalog::ColumnDescriptor& now : to->columns) {
    if (now.dropped) continue;
    const auto at = std::find(before.begin(), before.end(), now.id);
    const size_t place = made->sources_.size();
    made->sources_.push_back(at == before.end() ? -1 : static_cast<int>(at - before.begin()));
    made->names_.push_back(now.name);
    const bool known = at == before.end() && now.initial_value.has_value();
    made->values_.push_back(known ? now.initial_value->datum() : Datum());
    if (now.id == column) {
      made->computed_ = static_cast<int>(place);
      made->type_ = now.type;
    }
    const catalog::ColumnDescriptor* old = from->FindColumn(now.id);
    if (now.not_null && !now.hidden && (now.id == column || old == nullptr || !old->not_null)) {
      made->without_nulls_.push_back(place);
    }
  }
  if (column.value == 0) return made;
  if (made->computed_ < 0) return InternalError("column {} is not in the table", column.value);
  CELLAR_TRY(made->Bind(session, from, column, expression));
  return made;
}

Status RowConverter::Bind(Session::Impl* session, const catalog::TablePtr& from,
                          catalog::ColumnId column, const std::string& expression) {
  const int source = sources_[static_cast<size_t>(computed_)];
  if (source < 0 && expression.empty() && to_->FindColumn(column)->initial_value.has_value()) {
    session->SetUpContext(&eval_);
    eval_.set_arena(&arena_);
    return BindChecks(session, column);
  }
  sql::PlannerContext context = session->MakePlannerContext({});
  session->SetUpContext(&eval_);
  eval_.set_arena(&arena_);
  context.fold = &eval_;
  if (expression.empty() && source >= 0) {
    CELLAR_TRY_ASSIGN(bound_, sql::CastTo(sql::MakeColumn(source, from->FindColumn(column)->type),
                                          type_, sql::CastContext::kAssignment, &eval_));
  } else {
    const catalog::ColumnDescriptor& now = *to_->FindColumn(column);
    const bool is_default = expression.empty() && now.generated_sql.empty();
    const std::string& text = !expression.empty() ? expression
                              : is_default        ? now.default_sql
                                                  : now.generated_sql;
    CELLAR_TRY_ASSIGN(const ast::ExprPtr parsed, sql::ParseExpression(text));
    CELLAR_TRY_ASSIGN(bound_, sql::BindTableExpression(*parsed, is_default ? nullptr : from.get(),
                                                       type_, context));
  }
  evaluator_.emplace(bound_.get());
  return BindChecks(session, column);
}

Status RowConverter::BindChecks(Session::Impl* session, catalog::ColumnId column) {
  sql::PlannerContext context = session->MakePlannerContext({});
  context.fold = &eval_;
  catalog::TableDescriptor without = *to_;
  for (catalog::ColumnDescriptor& other : without.columns) other.dropped |= other.id == column;
  const Type boolean = MakeType(TypeId::kBool);
  for (const catalog::CheckConstraint& constraint : to_->checks) {
    if (!constraint.validated) continue;
    CELLAR_TRY_ASSIGN(const ast::ExprPtr parsed, sql::ParseExpression(constraint.expression));
    if (sql::BindTableExpression(*parsed, &without, boolean, context).ok()) continue;
    auto check = std::make_unique<Check>();
    check->name = constraint.name;
    CELLAR_TRY_ASSIGN(check->bound, sql::BindTableExpression(*parsed, to_.get(), boolean, context));
    check->evaluator.emplace(check->bound.get());
    checks_.push_back(std::move(check));
  }
  return Status();
}

Status RowConverter::VerifyChecks(const RowBatch& rows) {
  for (const std::unique_ptr<Check>& check : checks_) {
    CELLAR_TRY_ASSIGN(const ColumnVector* holds,
                      check->evaluator->Eval(rows, sql::Selection{nullptr, rows.size()}, eval_));
    for (size_t row = 0; row < rows.size(); ++row) {
      if (holds->IsNull(row) || holds->ints()[row] != 0) continue;
      return BreaksCheck(check->name, *to_);
    }
  }
  return Status();
}

Status RowConverter::Convert(const RowBatch& from, RowBatch* to) {
  to->Resize(from.size());
  Arena values;
  const ColumnVector* computed = nullptr;
  if (evaluator_.has_value()) {
    eval_.set_arena(&values);
    CELLAR_TRY_ASSIGN(computed,
                      evaluator_->Eval(from, sql::Selection{nullptr, from.size()}, eval_));
  }
  for (size_t c = 0; c < sources_.size(); ++c) {
    ColumnVector& column = to->column(c);
    if (static_cast<int>(c) == computed_ && computed != nullptr) {
      for (size_t row = 0; row < from.size(); ++row) {
        column.Set(row, CopyDatum(computed->Get(row), type_, to->arena()));
      }
      continue;
    }
    for (size_t row = 0; row < from.size(); ++row) {
      column.Set(row, sources_[c] < 0 ? values_[c]
                                      : from.column(static_cast<size_t>(sources_[c])).Get(row));
    }
  }
  for (size_t c : without_nulls_) {
    for (size_t row = 0; row < from.size(); ++row) {
      if (to->column(c).IsNull(row)) return ContainsNulls(names_[c], *to_);
    }
  }
  return VerifyChecks(*to);
}

}  // namespace cellar::session
