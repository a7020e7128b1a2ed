// The steps of a join order as plan nodes.
#include <algorithm>

#include "cellar/sql/plan/physical.h"

namespace cellar::sql::planning {

Result<Phys> Physical::Construct(JoinTree* tree, const JoinOrder& order, const Request& request) {
  Phys current;
  std::vector<bool> joined(tree->leaves.size(), false);
  for (size_t step = 0; step < order.steps.size(); ++step) {
    CELLAR_TRY(s_.CheckCancel());
    const Step& plan = order.steps[step];
    Leaf& leaf = tree->leaves[plan.leaf];
    joined[plan.leaf] = true;
    // Conditions that have all their columns now.
    std::vector<ExprPtr> ready;
    std::vector<Conjunct> kept;
    for (Conjunct& conjunct : tree->pool) {
      bool here = true;
      for (size_t k = 0; k < tree->leaves.size() && here; ++k) {
        if (!joined[k] && conjunct.ids.Intersects(tree->leaves[k].produced)) here = false;
      }
      if (here) {
        ready.push_back(std::move(conjunct.expr));
      } else {
        kept.push_back(std::move(conjunct));
      }
    }
    tree->pool = std::move(kept);
    if (step == 0) {
      Request first;
      first.needed = request.needed;
      first.order = request.order;
      first.limit = request.limit;
      if (leaf.built.has_value()) {
        current = std::move(*leaf.built);
      } else {
        CELLAR_TRY_ASSIGN(current, Build(std::move(leaf.tree), std::move(leaf.conditions), first));
      }
      CELLAR_TRY_ASSIGN(current, AddFilter(std::move(current), std::move(ready)));
      continue;
    }
    CELLAR_TRY_ASSIGN(current,
                      JoinStep(std::move(current), leaf, plan.method, std::move(ready), request));
    current.node->rows = plan.rows;
    current.node->cost = plan.cost;
  }
  return current;
}

Result<Phys> Physical::JoinStep(Phys left, Leaf& leaf, Method method,
                                std::vector<ExprPtr> conditions, const Request& request) {
  bool inner = leaf.join == JoinKind::kInner;
  bool left_only = leaf.join == JoinKind::kSemi || leaf.join == JoinKind::kAnti;
  // For other joins WHERE comes after the join.
  std::vector<ExprPtr> after;
  std::vector<ExprPtr> on;
  if (inner) {
    on = std::move(conditions);
  } else {
    on = std::move(leaf.on);
    after = std::move(conditions);
  }
  IdSet left_ids;
  for (int id : left.cols) left_ids.Add(id);
  Phys out;
  out.at_most_one = false;

  if (method == Method::kLookup) {
    auto& get = leaf.tree->As<LogicalGet>();
    std::vector<const Expr*> candidates;
    for (const ExprPtr& condition : on) candidates.push_back(condition.get());
    for (const ExprPtr& condition : leaf.conditions) candidates.push_back(condition.get());
    IdSet used = request.needed;
    for (const Expr* condition : candidates) AddIds(s_, *condition, &used);
    used = Expand(used);
    std::optional<LookupPath> path = ChooseLookup(get, left_ids, candidates, used);
    if (!path.has_value()) return InternalError("planner lost a lookup join");
    auto node = std::make_unique<LookupJoinNode>();
    node->join = leaf.join;
    node->table = get.table;
    node->alias = get.alias;
    node->index = path->index->id;
    node->keys = std::move(path->keys);
    CELLAR_TRY(FinalizeAll(&node->keys, left.cols));
    std::vector<ExprPtr> rest;
    size_t n_on = on.size();
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (std::find(path->used.begin(), path->used.end(), i) != path->used.end()) continue;
      rest.push_back(std::move(i < n_on ? on[i] : leaf.conditions[i - n_on]));
    }
    IdSet wanted = request.needed;
    for (const ExprPtr& condition : rest) AddIds(s_, *condition, &wanted);
    for (const ExprPtr& condition : after) AddIds(s_, *condition, &wanted);
    wanted = Expand(wanted);
    std::vector<int> cols = left.cols;
    for (size_t i = 0; i < get.ids.size(); ++i) {
      if (!wanted.Has(get.ids[i])) continue;
      node->columns.push_back(get.columns[i]);
      cols.push_back(get.ids[i]);
    }
    OrderByCost(&rest);
    CELLAR_TRY(FinalizeAll(&rest, cols));
    node->condition = JoinConjuncts(std::move(rest));
    out.cols = left_only ? left.cols : cols;
    out.order = left.order;
    node->children.push_back(std::move(left.node));
    out.node = std::move(node);
    SetOutput(&out);
    return AddFilter(std::move(out), std::move(after));
  }

  Request right_request;
  right_request.needed = request.needed;
  for (const ExprPtr& condition : on) AddIds(s_, *condition, &right_request.needed);
  for (const ExprPtr& condition : after) AddIds(s_, *condition, &right_request.needed);
  right_request.needed = Expand(right_request.needed);

  if (method == Method::kLateral) {
    auto node = std::make_unique<NestedLoopNode>();
    node->join = leaf.join;
    size_t mark = slots_.size();
    IdSet brings = leaf.depends;
    if (inner) {
      // Inner conditions are asked inside, with the left columns as slots.
      for (const ExprPtr& condition : on) brings.AddAll(Expand(IdsOf(s_, *condition)));
      for (ExprPtr& condition : on) leaf.conditions.push_back(std::move(condition));
      on.clear();
    }
    Status status;
    std::vector<ExprPtr> values;
    brings.ForEach([&](int id) {
      if (!left_ids.Has(id)) return;
      node->slots.push_back(plan_->num_slots++);
      slots_.emplace_back(id, node->slots.back());
      values.push_back(s_.ColumnExpr(id));
    });
    Result<Phys> built = Build(std::move(leaf.tree), std::move(leaf.conditions), right_request);
    slots_.resize(mark);
    if (!built.ok()) return built;
    CELLAR_TRY(FinalizeAll(&values, left.cols));
    node->slot_values = std::move(values);
    std::vector<int> cols = left.cols;
    cols.insert(cols.end(), built->cols.begin(), built->cols.end());
    CELLAR_TRY(FinalizeAll(&on, cols));
    node->condition = JoinConjuncts(std::move(on));
    out.cols = left_only ? left.cols : cols;
    out.order = left.order;
    node->children.push_back(std::move(left.node));
    node->children.push_back(std::move(built->node));
    out.node = std::move(node);
    SetOutput(&out);
    return AddFilter(std::move(out), std::move(after));
  }

  Phys right;
  if (leaf.built.has_value()) {
    right = std::move(*leaf.built);
  } else {
    CELLAR_TRY_ASSIGN(right,
                      Build(std::move(leaf.tree), std::move(leaf.conditions), right_request));
  }
  IdSet right_ids;
  for (int id : right.cols) right_ids.Add(id);
  if (method == Method::kHash) {
    auto node = std::make_unique<HashJoinNode>();
    node->join = leaf.join;
    node->null_aware = leaf.null_aware;
    std::vector<ExprPtr> rest;
    for (ExprPtr& condition : on) {
      bool taken = false;
      // What is volatile is asked for each pair.
      if (IsEquality(*condition) && !IsVolatile(s_, *condition)) {
        IdSet a = Expand(IdsOf(s_, *condition->args[0])),
              b = Expand(IdsOf(s_, *condition->args[1]));
        auto only = [](const IdSet& ids, const IdSet& own, const IdSet& other) {
          return ids.Intersects(own) && !ids.Intersects(other);
        };
        bool straight = only(a, left_ids, right_ids) && only(b, right_ids, left_ids);
        bool crossed = only(a, right_ids, left_ids) && only(b, left_ids, right_ids);
        if (straight || crossed) {
          ExprPtr left_key = std::move(condition->args[straight ? 0 : 1]);
          ExprPtr right_key = std::move(condition->args[straight ? 1 : 0]);
          Type lt = left_key->type, rt = right_key->type;
          taken = true;
          if (!SameHashForm(lt, rt)) {
            Type types[2] = {lt, rt};
            Result<Type> common = CommonType(types, "JOIN");
            taken = false;
            if (common.ok()) {
              Result<ExprPtr> l =
                  CastTo(CloneExpr(*left_key), *common, CastContext::kImplicit, s_.context.fold);
              Result<ExprPtr> r =
                  CastTo(CloneExpr(*right_key), *common, CastContext::kImplicit, s_.context.fold);
              if (l.ok() && r.ok()) {
                left_key = std::move(*l);
                right_key = std::move(*r);
                taken = true;
              }
            }
          }
          if (taken) {
            CELLAR_TRY(Finalize(&left_key, left.cols));
            CELLAR_TRY(Finalize(&right_key, right.cols));
            node->left_keys.push_back(std::move(left_key));
            node->right_keys.push_back(std::move(right_key));
          } else {
            condition->args[straight ? 0 : 1] = std::move(left_key);
            condition->args[straight ? 1 : 0] = std::move(right_key);
          }
        }
      }
      if (!taken) rest.push_back(std::move(condition));
    }
    if (node->left_keys.empty()) {
      on = std::move(rest);
      method = Method::kLoop;
    } else {
      // The smaller side is built.
      bool swap = inner && left.rows() < right.rows();
      std::vector<int> cols = swap ? right.cols : left.cols;
      const std::vector<int>& second = swap ? left.cols : right.cols;
      cols.insert(cols.end(), second.begin(), second.end());
      OrderByCost(&rest);
      CELLAR_TRY(FinalizeAll(&rest, cols));
      node->condition = JoinConjuncts(std::move(rest));
      out.cols = left_only ? left.cols : cols;
      if (swap) std::swap(node->left_keys, node->right_keys);
      node->children.push_back(std::move(swap ? right.node : left.node));
      node->children.push_back(std::move(swap ? left.node : right.node));
      out.node = std::move(node);
      SetOutput(&out);
      return AddFilter(std::move(out), std::move(after));
    }
  }
  auto node = std::make_unique<NestedLoopNode>();
  node->join = leaf.join;
  std::vector<int> cols = left.cols;
  cols.insert(cols.end(), right.cols.begin(), right.cols.end());
  OrderByCost(&on);
  CELLAR_TRY(FinalizeAll(&on, cols));
  node->condition = JoinConjuncts(std::move(on));
  if (leaf.null_aware && node->condition != nullptr) {
    // x NOT IN (..): a row for which the comparison is NULL is in the way as well.
    std::vector<ExprPtr> args;
    args.push_back(std::move(node->condition));
    node->condition = MakeLogic(ExprKind::kIsNotFalse, std::move(args));
  }
  out.cols = left_only ? left.cols : cols;
  out.order = left.order;
  node->children.push_back(std::move(left.node));
  node->children.push_back(std::move(right.node));
  out.node = std::move(node);
  SetOutput(&out);
  return AddFilter(std::move(out), std::move(after));
}

Result<Phys> Physical::BuildFullJoin(LogicalJoin& join, const Request& request) {
  Request inner;
  inner.needed = request.needed;
  for (const ExprPtr& condition : join.conditions) AddIds(s_, *condition, &inner.needed);
  inner.needed = Expand(inner.needed);
  CELLAR_TRY_ASSIGN(Phys left, Build(std::move(join.children[0]), {}, inner));
  CELLAR_TRY_ASSIGN(Phys right, Build(std::move(join.children[1]), {}, inner));
  double left_rows = left.rows(), right_rows = right.rows();
  double cost =
      left.cost() + right.cost() + right_rows * kHashBuildCost + left_rows * kHashProbeCost;
  Leaf leaf;
  leaf.join = JoinKind::kFull;
  leaf.on = std::move(join.conditions);
  if (leaf.on.empty()) {
    // No condition: every pair; a constant key keeps it a hash join.
    Type type = MakeType(TypeId::kInt4);
    auto node = std::make_unique<HashJoinNode>();
    node->join = JoinKind::kFull;
    node->left_keys.push_back(MakeConstant(Value(type, Datum::Int(1))));
    node->right_keys.push_back(MakeConstant(Value(type, Datum::Int(1))));
    Phys out;
    out.cols = left.cols;
    out.cols.insert(out.cols.end(), right.cols.begin(), right.cols.end());
    node->children.push_back(std::move(left.node));
    node->children.push_back(std::move(right.node));
    node->rows = left_rows * right_rows;
    node->cost = cost;
    out.node = std::move(node);
    SetOutput(&out);
    return out;
  }
  leaf.built = std::move(right);
  CELLAR_TRY_ASSIGN(Phys out, JoinStep(std::move(left), leaf, Method::kHash, {}, inner));
  if (out.node->kind != PlanKind::kHashJoin) {
    return UnsupportedError(
        "FULL JOIN is only supported with merge-joinable or hash-joinable join conditions");
  }
  out.node->rows = std::max(left_rows, right_rows);
  out.node->cost = cost;
  return out;
}

}  // namespace cellar::sql::planning
