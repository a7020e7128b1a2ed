// The last step of an expression: column ids become positions, slots or planned subqueries.
#include <algorithm>

#include "cellar/sql/plan/physical.h"

namespace cellar::sql::planning {

std::optional<int> Physical::SlotOf(int id) const {
  for (size_t i = slots_.size(); i-- > 0;) {
    if (slots_[i].first == id) return slots_[i].second;
  }
  return std::nullopt;
}

Status Physical::Finalize(ExprPtr* expr, const std::vector<int>& cols) {
  Expr& e = **expr;
  if (e.kind == ExprKind::kColumn) {
    for (size_t i = 0; i < cols.size(); ++i) {
      if (cols[i] == e.index) {
        e.index = static_cast<int>(i);
        return Status();
      }
    }
    if (std::optional<int> slot = SlotOf(e.index)) {
      e.kind = ExprKind::kExecParameter;
      e.index = *slot;
      return Status();
    }
    if (auto found = virtual_.find(e.index); found != virtual_.end()) {
      *expr = CloneExpr(*found->second);
      return Finalize(expr, cols);
    }
    const ColumnInfo& info = s_.column(e.index);
    return InternalError("planner lost column {} (\"{}.{}\")", e.index, info.qualifier, info.name);
  }
  for (ExprPtr& arg : e.args) CELLAR_TRY(Finalize(&arg, cols));
  if (e.kind == ExprKind::kSubplan) {
    int index = e.index;
    CELLAR_TRY(PlanSubquery(index));
    const Subquery& subquery = s_.subqueries[static_cast<size_t>(index)];
    e.index = subquery.plan;
    e.slots = subquery.slots;
    e.slot_values.clear();
    for (int id : subquery.outer_ids) {
      ExprPtr value = s_.ColumnExpr(id);
      CELLAR_TRY(Finalize(&value, cols));
      e.slot_values.push_back(std::move(value));
    }
  }
  return Status();
}

Status Physical::FinalizeAll(std::vector<ExprPtr>* exprs, const std::vector<int>& cols) {
  for (ExprPtr& expr : *exprs) CELLAR_TRY(Finalize(&expr, cols));
  return Status();
}

Status Physical::FinalizeKeys(std::vector<SortKey>* keys, const std::vector<int>& cols) {
  for (SortKey& key : *keys) CELLAR_TRY(Finalize(&key.expr, cols));
  return Status();
}

Status Physical::FinalizeCall(AggregateCall* call, const std::vector<int>& cols) {
  CELLAR_TRY(FinalizeAll(&call->args, cols));
  if (call->filter != nullptr) CELLAR_TRY(Finalize(&call->filter, cols));
  return FinalizeKeys(&call->order_by, cols);
}

Status Physical::PlanSubquery(int index) {
  Subquery* subquery = &s_.subqueries[static_cast<size_t>(index)];
  if (subquery->plan >= 0) return Status();
  if (subquery->root == nullptr) return InternalError("planner lost a subquery");
  IdSet free = FreeIds(s_, *subquery->root);
  std::vector<int> outer_ids, slots;
  size_t mark = slots_.size();
  free.ForEach([&](int id) {
    outer_ids.push_back(id);
    slots.push_back(plan_->num_slots++);
    slots_.emplace_back(id, slots.back());
  });
  LogicalPtr root = std::move(subquery->root);
  std::vector<int> ids = subquery->ids;
  Request request;
  for (int id : ids) request.needed.Add(id);
  // EXISTS wants one row and none of its values.
  if (ids.empty()) {
    request.limit = 1;
    while (root->kind == LogicalKind::kProject || root->kind == LogicalKind::kSort ||
           (root->kind == LogicalKind::kDistinct && !root->As<LogicalDistinct>().distinct_on)) {
      LogicalPtr below = std::move(root->children[0]);
      root = std::move(below);
    }
  }
  Result<Phys> built = ids.empty() ? Build(std::move(root), {}, request)
                                   : BuildExact(std::move(root), {}, ids, request);
  slots_.resize(mark);
  if (!built.ok()) return std::move(built).status();
  subquery = &s_.subqueries[static_cast<size_t>(index)];
  subquery->plan = static_cast<int>(plan_->subplans.size());
  subquery->outer_ids = std::move(outer_ids);
  subquery->slots = std::move(slots);
  plan_->subplans.push_back(std::move(built->node));
  return Status();
}

}  // namespace cellar::sql::planning
