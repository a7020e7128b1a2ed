// Joins: the tree of FROM and WHERE becomes a list of leaves and conditions, a greedy search puts
// them in order and chooses how each one joins, and the steps are built.
//
// Left, semi and anti joins are leaves too: they may join as soon as what their ON needs is there,
// and what WHERE says of their columns holds after them. So inner joins move freely around them.
#include <algorithm>
#include <cmath>

#include "cellar/sql/plan/physical.h"

namespace cellar::sql::planning {

namespace {

// Joins of at most so many relations try every one as the first.
constexpr size_t kTryAllFirst = 10;

bool IsEquality(const Expr& expr) {
  return expr.kind == ExprKind::kCall && expr.args.size() == 2 &&
         expr.function->comparison == FunctionSpec::Comparison::kEqual;
}

// A projection whose values may be computed anywhere above.
bool IsMovable(const LogicalProject& project) {
  for (const ExprPtr& expr : project.exprs) {
    if (IsVolatile(*expr)) return false;
  }
  return true;
}

bool SameHashForm(Type a, Type b) {
  if (a.SameKind(b)) return true;
  auto textual = [](Type type) {
    return !type.array && (type.id == TypeId::kText || type.id == TypeId::kVarchar);
  };
  return textual(a) && textual(b);
}

}  // namespace

IdSet Physical::Expand(const IdSet& ids) const {
  if (virtual_.empty()) return ids;
  IdSet out = ids;
  bool changed = true;
  IdSet done;
  while (changed) {
    changed = false;
    IdSet current = out;
    current.ForEach([&](int id) {
      if (done.Has(id)) return;
      auto found = virtual_.find(id);
      // What a slot brings from an outer query is a column here, however it was computed there.
      if (found == virtual_.end() || SlotOf(id).has_value()) return;
      done.Add(id);
      AddIds(s_, *found->second, &out);
      changed = true;
    });
  }
  return out;
}

void Physical::SubstituteVirtual(ExprPtr* expr) const {
  if (virtual_.empty()) return;
  // Projections over projections take several rounds.
  for (int round = 0; round < 64; ++round) {
    std::vector<std::pair<int, const Expr*>> values;
    VisitExpr(**expr, [&](const Expr& node) {
      if (node.kind != ExprKind::kColumn) return;
      auto found = virtual_.find(node.index);
      if (found == virtual_.end() || SlotOf(node.index).has_value()) return;
      values.emplace_back(node.index, found->second.get());
    });
    if (values.empty()) return;
    Substitute(expr, values);
  }
}

void Physical::Flatten(LogicalPtr node, JoinTree* tree) {
  switch (node->kind) {
    case LogicalKind::kFilter: {
      auto& filter = node->As<LogicalFilter>();
      for (ExprPtr& condition : filter.conditions) {
        Conjunct conjunct;
        conjunct.expr = std::move(condition);
        tree->pool.push_back(std::move(conjunct));
      }
      Flatten(std::move(filter.children[0]), tree);
      return;
    }
    case LogicalKind::kProject: {
      auto& project = node->As<LogicalProject>();
      if (!IsMovable(project)) break;
      Flatten(std::move(project.children[0]), tree);
      for (size_t i = 0; i < project.ids.size(); ++i) {
        virtual_[project.ids[i]] = std::move(project.exprs[i]);
      }
      return;
    }
    case LogicalKind::kCteRef: {
      auto& ref = node->As<LogicalCteRef>();
      Cte& cte = s_.ctes[static_cast<size_t>(ref.cte)];
      if (!cte.inlinable || cte.references != 1 || cte.root == nullptr) break;
      for (size_t i = 0; i < ref.ids.size(); ++i) {
        virtual_[ref.ids[i]] = s_.ColumnExpr(cte.columns[i].id);
      }
      Flatten(std::move(cte.root), tree);
      return;
    }
    case LogicalKind::kJoin: {
      auto& join = node->As<LogicalJoin>();
      if (join.join == JoinKind::kInner) {
        for (ExprPtr& condition : join.conditions) {
          Conjunct conjunct;
          conjunct.expr = std::move(condition);
          tree->pool.push_back(std::move(conjunct));
        }
        Flatten(std::move(join.children[0]), tree);
        Flatten(std::move(join.children[1]), tree);
        return;
      }
      if (join.join == JoinKind::kFull) break;
      Flatten(std::move(join.children[0]), tree);
      Leaf leaf;
      leaf.join = join.join;
      leaf.null_aware = join.null_aware;
      leaf.on = std::move(join.conditions);
      leaf.tree = std::move(join.children[1]);
      AddProduced(*leaf.tree, &leaf.produced);
      tree->leaves.push_back(std::move(leaf));
      return;
    }
    default: break;
  }
  Leaf leaf;
  AddProduced(*node, &leaf.produced);
  leaf.tree = std::move(node);
  tree->leaves.push_back(std::move(leaf));
}

bool Physical::TrySemiJoin(ExprPtr* condition, JoinTree* tree, const IdSet& produced) {
  Expr* subplan = condition->get();
  bool negated = false;
  if (subplan->kind == ExprKind::kNot) {
    negated = true;
    subplan = subplan->args[0].get();
  }
  if (subplan->kind != ExprKind::kSubplan) return false;
  Subquery& subquery = s_.subqueries[static_cast<size_t>(subplan->index)];
  if (subquery.root == nullptr || subquery.plan >= 0) return false;
  bool any = subplan->subplan_kind == SubplanKind::kAny;
  if (!any && subplan->subplan_kind != SubplanKind::kExists) return false;
  if (any) {
    if (subplan->function->comparison != FunctionSpec::Comparison::kEqual) return false;
    if (HasSubplan(*subplan->args[0]) || IsVolatile(*subplan->args[0])) return false;
    if (!IdsOf(s_, *subplan->args[0]).Intersects(produced)) return false;
  }
  IdSet local = FreeIds(s_, *subquery.root);
  bool correlated = false;
  IdSet outer = Expand(produced);
  // Names of flattened projections count as the outer query's own.
  local.ForEach([&](int id) {
    if (outer.Has(id)) correlated = true;
    if (virtual_.count(id) != 0) correlated = true;
  });
  if (!any && !correlated) return false;  // one run answers for all rows
  if (any && negated && correlated) return false;
  if (any && negated && !SameHashForm(subplan->args[0]->type, s_.column(subquery.ids[0]).type)) {
    return false;
  }
  // Conditions that name outer columns move up to the join: through projections, filters, inner
  // joins.
  std::vector<ExprPtr*> correlated_conditions;
  if (correlated) {
    Logical* node = subquery.root.get();
    bool blocked = false;
    auto uses_outer = [&](const Expr& expr) {
      IdSet used = IdsOf(s_, expr);
      bool uses = false;
      used.ForEach(
          [&](int id) { uses = uses || (local.Has(id) && (outer.Has(id) || virtual_.count(id))); });
      return uses;
    };
    std::vector<Logical*> todo{node};
    IdSet accounted;
    std::vector<Logical*> leaves;
    while (!todo.empty() && !blocked) {
      Logical* next = todo.back();
      todo.pop_back();
      switch (next->kind) {
        case LogicalKind::kProject: {
          // For EXISTS the values do not matter.
          if (!IsMovable(next->As<LogicalProject>())) blocked = true;
          for (ExprPtr& expr : next->As<LogicalProject>().exprs) {
            if (any && uses_outer(*expr)) blocked = true;
          }
          todo.push_back(next->children[0].get());
          break;
        }
        case LogicalKind::kFilter:
          for (ExprPtr& expr : next->As<LogicalFilter>().conditions) {
            if (uses_outer(*expr)) correlated_conditions.push_back(&expr);
          }
          todo.push_back(next->children[0].get());
          break;
        case LogicalKind::kJoin:
          if (next->As<LogicalJoin>().join == JoinKind::kInner) {
            for (ExprPtr& expr : next->As<LogicalJoin>().conditions) {
              if (uses_outer(*expr)) correlated_conditions.push_back(&expr);
            }
            todo.push_back(next->children[0].get());
            todo.push_back(next->children[1].get());
          } else {
            leaves.push_back(next);
          }
          break;
        default: leaves.push_back(next); break;
      }
    }
    for (Logical* leaf : leaves) {
      IdSet free = FreeIds(s_, *leaf);
      free.ForEach([&](int id) { blocked = blocked || outer.Has(id) || virtual_.count(id) != 0; });
    }
    for (ExprPtr* expr : correlated_conditions) blocked = blocked || IsVolatile(**expr);
    if (blocked) return false;
  }
  Leaf leaf;
  leaf.join = negated ? JoinKind::kAnti : JoinKind::kSemi;
  leaf.null_aware = any && negated;
  for (ExprPtr* expr : correlated_conditions) {
    leaf.on.push_back(std::move(*expr));
    *expr = MakeBoolConstant(true);
  }
  if (any) {
    std::vector<ExprPtr> args;
    args.push_back(std::move(subplan->args[0]));
    args.push_back(s_.ColumnExpr(subquery.ids[0]));
    leaf.on.push_back(MakeCall(subplan->function, MakeType(TypeId::kBool), std::move(args)));
  }
  // True constants left behind vanish; EXISTS needs neither order nor values.
  LogicalPtr root = std::move(subquery.root);
  if (!any) {
    while (root->kind == LogicalKind::kSort ||
           (root->kind == LogicalKind::kProject && correlated_conditions.empty())) {
      root = std::move(root->children[0]);
    }
  }
  std::vector<Logical*> todo{root.get()};
  while (!todo.empty()) {
    Logical* next = todo.back();
    todo.pop_back();
    auto drop = [](std::vector<ExprPtr>& conditions) {
      conditions.erase(std::remove_if(conditions.begin(), conditions.end(),
                                      [](const ExprPtr& expr) { return IsTrueConstant(*expr); }),
                       conditions.end());
    };
    if (next->kind == LogicalKind::kFilter) drop(next->As<LogicalFilter>().conditions);
    if (next->kind == LogicalKind::kJoin) drop(next->As<LogicalJoin>().conditions);
    for (LogicalPtr& child : next->children) todo.push_back(child.get());
  }
  AddProduced(*root, &leaf.produced);
  leaf.tree = std::move(root);
  tree->leaves.push_back(std::move(leaf));
  return true;
}

void Physical::Strengthen(JoinTree* tree) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (size_t i = 0; i < tree->leaves.size(); ++i) {
      if (tree->leaves[i].join != JoinKind::kLeft) continue;
      bool rejects = false;
      for (const Conjunct& conjunct : tree->pool) {
        rejects = rejects || RejectsNulls(*conjunct.expr, tree->leaves[i].produced);
      }
      if (!rejects) continue;
      // Rows without a partner would fail: an inner join.
      Leaf leaf = std::move(tree->leaves[i]);
      tree->leaves.erase(tree->leaves.begin() + static_cast<long>(i));
      for (ExprPtr& condition : leaf.on) {
        Conjunct conjunct;
        conjunct.expr = std::move(condition);
        tree->pool.push_back(std::move(conjunct));
      }
      Flatten(std::move(leaf.tree), tree);
      for (Conjunct& conjunct : tree->pool) SubstituteVirtual(&conjunct.expr);
      changed = true;
      break;
    }
  }
}

void Physical::Distribute(JoinTree* tree) {
  std::vector<Conjunct> kept;
  for (Conjunct& conjunct : tree->pool) {
    conjunct.ids = Expand(IdsOf(s_, *conjunct.expr));
    Leaf* only = nullptr;
    size_t count = 0;
    for (Leaf& leaf : tree->leaves) {
      if (!conjunct.ids.Intersects(leaf.produced)) continue;
      ++count;
      only = &leaf;
    }
    if (count == 0) {
      // About nothing here: the first inner leaf asks it.
      for (Leaf& leaf : tree->leaves) {
        if (leaf.join == JoinKind::kInner) {
          only = &leaf;
          count = 1;
          break;
        }
      }
    }
    if (count == 1 && only->join == JoinKind::kInner) {
      only->conditions.push_back(std::move(conjunct.expr));
    } else {
      kept.push_back(std::move(conjunct));
    }
  }
  tree->pool = std::move(kept);
  // What ON says of the right side alone restricts the right side.
  for (Leaf& leaf : tree->leaves) {
    if (leaf.join == JoinKind::kInner || leaf.null_aware) continue;
    std::vector<ExprPtr> on;
    for (ExprPtr& condition : leaf.on) {
      IdSet ids = Expand(IdsOf(s_, *condition));
      bool own = ids.Intersects(leaf.produced);
      for (const Leaf& other : tree->leaves) {
        if (&other != &leaf && ids.Intersects(other.produced)) own = false;
      }
      (own ? leaf.conditions : on).push_back(std::move(condition));
    }
    leaf.on = std::move(on);
  }
  // a = b and a = 5 give b = 5.
  for (size_t round = 0; round < 3; ++round) {
    bool added = false;
    for (const Conjunct& conjunct : tree->pool) {
      if (!IsEquality(*conjunct.expr)) continue;
      const Expr &a = *conjunct.expr->args[0], &b = *conjunct.expr->args[1];
      if (a.kind != ExprKind::kColumn || b.kind != ExprKind::kColumn || !a.type.SameKind(b.type))
        continue;
      Leaf *left = nullptr, *right = nullptr;
      for (Leaf& leaf : tree->leaves) {
        if (leaf.join != JoinKind::kInner) continue;
        if (leaf.produced.Has(a.index)) left = &leaf;
        if (leaf.produced.Has(b.index)) right = &leaf;
      }
      if (left == nullptr || right == nullptr || left == right) continue;
      auto constant_of = [](const Leaf& leaf, int id) -> const Expr* {
        for (const ExprPtr& condition : leaf.conditions) {
          if (!IsEquality(*condition)) continue;
          for (size_t side = 0; side < 2; ++side) {
            const Expr& value = *condition->args[1 - side];
            bool fixed = value.kind == ExprKind::kConstant || value.kind == ExprKind::kParameter;
            if (condition->args[side]->kind == ExprKind::kColumn &&
                condition->args[side]->index == id && fixed) {
              return &value;
            }
          }
        }
        return nullptr;
      };
      const Expr* value_a = constant_of(*left, a.index);
      const Expr* value_b = constant_of(*right, b.index);
      if ((value_a == nullptr) == (value_b == nullptr)) continue;
      const Expr& value = value_a != nullptr ? *value_a : *value_b;
      const Expr& column = value_a != nullptr ? b : a;
      if (!value.type.SameKind(column.type)) continue;
      std::vector<ExprPtr> args;
      args.push_back(CloneExpr(column));
      args.push_back(CloneExpr(value));
      (value_a != nullptr ? right : left)
          ->conditions.push_back(
              MakeCall(conjunct.expr->function, MakeType(TypeId::kBool), std::move(args)));
      added = true;
    }
    if (!added) break;
  }
}

Status Physical::EstimateLeaves(JoinTree* tree, const Request& wanted) {
  IdSet others;
  for (const Leaf& leaf : tree->leaves) others.AddAll(leaf.produced);
  for (Leaf& leaf : tree->leaves) {
    // Filters directly over a table become its conditions; ones with subqueries may be joins
    // themselves.
    auto plain_filter = [](const Logical& node) {
      if (node.kind != LogicalKind::kFilter) return false;
      for (const ExprPtr& condition : node.As<LogicalFilter>().conditions) {
        if (HasSubplan(*condition)) return false;
      }
      return true;
    };
    while (plain_filter(*leaf.tree)) {
      for (ExprPtr& condition : leaf.tree->As<LogicalFilter>().conditions) {
        leaf.conditions.push_back(std::move(condition));
      }
      leaf.tree = std::move(leaf.tree->children[0]);
    }
    // A projection over a table hides nothing from a semi join or an outer join's columns that pass
    // through.
    while (leaf.tree->kind == LogicalKind::kProject && leaf.join != JoinKind::kInner &&
           leaf.join != JoinKind::kLeft && IsMovable(leaf.tree->As<LogicalProject>())) {
      auto& project = leaf.tree->As<LogicalProject>();
      for (size_t i = 0; i < project.ids.size(); ++i) {
        virtual_[project.ids[i]] = std::move(project.exprs[i]);
      }
      leaf.tree = std::move(project.children[0]);
      while (plain_filter(*leaf.tree)) {
        for (ExprPtr& condition : leaf.tree->As<LogicalFilter>().conditions) {
          leaf.conditions.push_back(std::move(condition));
        }
        leaf.tree = std::move(leaf.tree->children[0]);
      }
    }
    IdSet foreign = others;
    foreign.RemoveAll(leaf.produced);
    IdSet free = Expand(FreeIds(s_, *leaf.tree));
    for (const ExprPtr& condition : leaf.conditions) {
      IdSet used = Expand(IdsOf(s_, *condition));
      free.AddAll(used);
    }
    free.RemoveAll(leaf.produced);
    leaf.lateral = free.Intersects(foreign);
    IdSet needs = leaf.lateral ? free : IdSet();
    if (leaf.join != JoinKind::kInner) {
      for (const ExprPtr& condition : leaf.on) needs.AddAll(Expand(IdsOf(s_, *condition)));
    }
    needs.ForEach([&](int id) {
      if (foreign.Has(id)) leaf.depends.Add(id);
    });
    if (leaf.tree->kind == LogicalKind::kGet) {
      auto& get = leaf.tree->As<LogicalGet>();
      leaf.table_rows = TableRows(*get.table);
      Request request;
      request.needed = wanted.needed;
      AccessPath path = ChoosePath(get, leaf.conditions, request);
      leaf.rows = path.rows;
      leaf.cost = path.full_cost;
    } else if (leaf.lateral) {
      leaf.rows = 10;
      leaf.cost = 5000;
      leaf.table_rows = 10;
    } else {
      Request request;
      request.needed = wanted.needed;
      CELLAR_TRY_ASSIGN(Phys built,
                        Build(std::move(leaf.tree), std::move(leaf.conditions), request));
      leaf.rows = std::max(1.0, built.rows());
      leaf.cost = built.cost();
      leaf.table_rows = leaf.rows;
      leaf.built = std::move(built);
      leaf.conditions.clear();
    }
  }
  return Status();
}

Physical::JoinOrder Physical::Search(const JoinTree& tree, const IdSet& needed, int first,
                                     bool keep_order, const Request* order) const {
  size_t n = tree.leaves.size();
  JoinOrder out;
  std::vector<bool> joined(n, false);
  IdSet have;
  std::vector<bool> pool_done(tree.pool.size(), false);
  double rows = 0, cost = 0;

  struct Candidate {
    Method method = Method::kLoop;
    double rows = 0, cost = 0;
    bool connected = false;
  };
  auto evaluate = [&](size_t i) {
    const Leaf& leaf = tree.leaves[i];
    Candidate candidate;
    std::vector<const Expr*> conditions;
    IdSet all = have;
    all.AddAll(leaf.produced);
    for (size_t c = 0; c < tree.pool.size(); ++c) {
      if (pool_done[c] || !tree.pool[c].ids.Intersects(leaf.produced)) continue;
      // All other leaves that it names must be there.
      IdSet rest = tree.pool[c].ids;
      rest.RemoveAll(all);
      bool ready = true;
      for (size_t k = 0; k < n && ready; ++k) {
        if (!joined[k] && k != i && rest.Intersects(tree.leaves[k].produced)) ready = false;
      }
      if (ready && leaf.join == JoinKind::kInner) conditions.push_back(tree.pool[c].expr.get());
    }
    for (const ExprPtr& condition : leaf.on) conditions.push_back(condition.get());
    candidate.connected = !conditions.empty() || leaf.lateral;
    double selectivity = 1;
    bool hashable = false;
    const LogicalGet* get = leaf.tree != nullptr && leaf.tree->kind == LogicalKind::kGet
                                ? &leaf.tree->As<LogicalGet>()
                                : nullptr;
    for (const Expr* condition : conditions) {
      if (IsEquality(*condition)) {
        IdSet a = Expand(IdsOf(s_, *condition->args[0])),
              b = Expand(IdsOf(s_, *condition->args[1]));
        bool across = (a.Intersects(leaf.produced) && b.Intersects(have) && !a.Intersects(have)) ||
                      (b.Intersects(leaf.produced) && a.Intersects(have) && !b.Intersects(have));
        hashable = hashable || across;
        double distinct = std::max(1.0, std::min(leaf.table_rows, 200.0));
        if (get != nullptr) {
          distinct = 1;
          for (size_t side = 0; side < 2; ++side) {
            const Expr& arg = *condition->args[side];
            if (arg.kind == ExprKind::kColumn && leaf.produced.Has(arg.index)) {
              distinct = std::max(distinct, DistinctValues(*get, arg.index, leaf.table_rows));
            } else if (across && arg.kind == ExprKind::kColumn) {
              distinct = std::max(distinct, std::min(rows, 200.0));
            }
          }
        }
        selectivity /= distinct;
      } else {
        selectivity *= Selectivity(*condition, get, leaf.table_rows);
      }
    }
    double out_rows = std::max(1.0, rows * leaf.rows * selectivity);
    if (leaf.join == JoinKind::kLeft) out_rows = std::max(out_rows, rows);
    if (leaf.join == JoinKind::kSemi || leaf.join == JoinKind::kAnti) {
      out_rows = std::max(1.0, rows * 0.5);
    }
    candidate.rows = out_rows;
    if (leaf.lateral) {
      candidate.method = Method::kLateral;
      candidate.cost = cost + rows * std::max(leaf.cost, 1000.0);
      return candidate;
    }
    double loop = leaf.cost + leaf.rows * 20 + rows * leaf.rows * kPairCost;
    if (rows <= 1) loop = leaf.cost + leaf.rows * 20;
    candidate.method = Method::kLoop;
    candidate.cost = cost + loop;
    bool null_aware = leaf.null_aware;
    // Rows to be locked or changed are read by scans, so those loop over spans with slots instead.
    bool scan_only = get != nullptr && (get->lock != RowLock::kNone || get->row_ref >= 0);
    if (get != nullptr && s_.context.enable_lookup_join && !null_aware &&
        (!scan_only || leaf.join == JoinKind::kInner)) {
      std::vector<const Expr*> candidates = conditions;
      for (const ExprPtr& condition : leaf.conditions) candidates.push_back(condition.get());
      IdSet used = needed;
      for (const Expr* condition : candidates) AddIds(s_, *condition, &used);
      if (std::optional<LookupPath> path = ChooseLookup(*get, have, candidates, used)) {
        double lookup = cost + rows * (path->cost * (scan_only ? 1.5 : 0.8)) +
                        rows * path->matches * kFilterCost;
        if (lookup < candidate.cost) {
          candidate.method = scan_only ? Method::kLateral : Method::kLookup;
          candidate.cost = lookup;
          if (leaf.join == JoinKind::kInner && path->unique) {
            candidate.rows = std::min(candidate.rows, rows);
          }
        }
      }
    }
    if (hashable && !keep_order && (s_.context.enable_hash_join || null_aware)) {
      double build = std::min(leaf.rows, leaf.join == JoinKind::kInner ? rows : leaf.rows);
      double probe = leaf.join == JoinKind::kInner ? std::max(leaf.rows, rows) : rows;
      double hash =
          cost + leaf.cost + build * kHashBuildCost + probe * kHashProbeCost + out_rows * 10;
      if (hash < candidate.cost || null_aware) {
        candidate.method = Method::kHash;
        candidate.cost = hash;
      }
    }
    return candidate;
  };
  auto add = [&](size_t i, const Candidate& candidate) {
    const Leaf& leaf = tree.leaves[i];
    joined[i] = true;
    if (leaf.join == JoinKind::kInner || leaf.join == JoinKind::kLeft) have.AddAll(leaf.produced);
    rows = candidate.rows;
    cost = candidate.cost;
    if (candidate.method == Method::kHash) out.keeps_order = false;
    out.steps.push_back({i, candidate.method, rows, cost});
    for (size_t c = 0; c < tree.pool.size(); ++c) {
      if (pool_done[c]) continue;
      bool ready = true;
      for (size_t k = 0; k < n && ready; ++k) {
        if (!joined[k] && tree.pool[c].ids.Intersects(tree.leaves[k].produced)) ready = false;
      }
      if (ready) pool_done[c] = true;
    }
  };
  Candidate start;
  const Leaf& leaf = tree.leaves[static_cast<size_t>(first)];
  start.method = Method::kFirst;
  start.rows = leaf.rows;
  start.cost = leaf.cost;
  if (order != nullptr && leaf.tree != nullptr && leaf.tree->kind == LogicalKind::kGet) {
    Request request = *order;
    request.limit = kUnlimited;
    AccessPath path = ChoosePath(leaf.tree->As<LogicalGet>(), leaf.conditions, request);
    if (!path.ordered) out.keeps_order = false;
    start.cost = path.full_cost;
  }
  add(static_cast<size_t>(first), start);
  for (size_t step = 1; step < n; ++step) {
    int best = -1;
    Candidate best_candidate;
    for (size_t i = 0; i < n; ++i) {
      if (joined[i] || !have.ContainsAll(tree.leaves[i].depends)) continue;
      Candidate candidate = evaluate(i);
      bool better = best < 0;
      if (!better) {
        const Candidate& other = best_candidate;
        if (candidate.connected != other.connected) {
          better = candidate.connected;
        } else {
          // Few rows first, then little work.
          double a = candidate.cost + candidate.rows * 100, b = other.cost + other.rows * 100;
          better = a < b;
        }
      }
      if (better) {
        best = static_cast<int>(i);
        best_candidate = candidate;
      }
    }
    if (best < 0) break;  // a dependency that cannot be met: the caller notices the missing steps
    add(static_cast<size_t>(best), best_candidate);
  }
  out.rows = rows;
  out.cost = cost;
  return out;
}

Result<Phys> Physical::BuildJoins(LogicalPtr node, std::vector<ExprPtr> conditions,
                                  const Request& request) {
  if (node->kind == LogicalKind::kJoin && node->As<LogicalJoin>().join == JoinKind::kFull) {
    Request inner;
    inner.needed = Expand(request.needed);
    for (const ExprPtr& condition : conditions) AddIds(s_, *condition, &inner.needed);
    inner.needed = Expand(inner.needed);
    CELLAR_TRY_ASSIGN(Phys joined, BuildFullJoin(node->As<LogicalJoin>(), inner));
    return AddFilter(std::move(joined), std::move(conditions));
  }
  JoinTree tree;
  IdSet produced;
  AddProduced(*node, &produced);
  Flatten(std::move(node), &tree);
  for (ExprPtr& condition : conditions) {
    Conjunct conjunct;
    conjunct.expr = std::move(condition);
    tree.pool.push_back(std::move(conjunct));
  }
  // Projected names in conditions stand for their expressions.
  for (Conjunct& conjunct : tree.pool) SubstituteVirtual(&conjunct.expr);
  // Constants first: one that is false leaves nothing.
  for (const Conjunct& conjunct : tree.pool) {
    if (IsFalseOrNullConstant(*conjunct.expr)) {
      Request inner = request;
      inner.needed = Expand(request.needed);
      CELLAR_TRY_ASSIGN(Phys empty, BuildEmpty(inner.needed, produced));
      return empty;
    }
  }
  std::vector<Conjunct> pool;
  for (Conjunct& conjunct : tree.pool) {
    if (HasSubplan(*conjunct.expr)) {
      std::vector<ExprPtr> parts;
      SplitConjuncts(std::move(conjunct.expr), &parts);
      for (ExprPtr& part : parts) {
        if (TrySemiJoin(&part, &tree, produced)) continue;
        Conjunct kept;
        kept.expr = std::move(part);
        pool.push_back(std::move(kept));
      }
      continue;
    }
    pool.push_back(std::move(conjunct));
  }
  tree.pool = std::move(pool);
  Strengthen(&tree);
  for (Leaf& leaf : tree.leaves) {
    for (ExprPtr& condition : leaf.on) SubstituteVirtual(&condition);
  }
  // A leaf without columns (SELECT without FROM) joins to nothing.
  if (tree.leaves.size() > 1) {
    std::vector<Leaf> leaves;
    for (Leaf& leaf : tree.leaves) {
      bool inner_left = false;
      for (const Leaf& other : tree.leaves) {
        inner_left = inner_left ||
                     (&other != &leaf && other.join == JoinKind::kInner && other.tree != nullptr);
      }
      if (leaf.tree->kind == LogicalKind::kResult && leaf.join == JoinKind::kInner && inner_left) {
        leaf.tree = nullptr;
        continue;
      }
    }
    for (Leaf& leaf : tree.leaves) {
      if (leaf.tree != nullptr) leaves.push_back(std::move(leaf));
    }
    tree.leaves = std::move(leaves);
  }
  Distribute(&tree);

  Request inner;
  inner.needed = Expand(request.needed);
  for (const OrderKey& key : request.order) inner.needed.Add(key.id);
  for (const Conjunct& conjunct : tree.pool) inner.needed.AddAll(conjunct.ids);
  for (const Leaf& leaf : tree.leaves) {
    for (const ExprPtr& condition : leaf.on) AddIds(s_, *condition, &inner.needed);
    if (tree.leaves.size() > 1) inner.needed.AddAll(FreeIds(s_, *leaf.tree));
    for (const ExprPtr& condition : leaf.conditions) {
      if (tree.leaves.size() > 1) AddIds(s_, *condition, &inner.needed);
    }
  }
  inner.needed = Expand(inner.needed);

  // A wanted order in terms of what the leaves produce.
  std::vector<OrderKey> base_order;
  for (const OrderKey& key : request.order) {
    OrderKey base = key;
    for (int hops = 0; hops < 64; ++hops) {
      auto found = virtual_.find(base.id);
      if (found == virtual_.end() || found->second->kind != ExprKind::kColumn) break;
      base.id = found->second->index;
    }
    base_order.push_back(base);
  }

  Phys out;
  if (tree.leaves.size() == 1 && tree.leaves[0].join == JoinKind::kInner) {
    Leaf& leaf = tree.leaves[0];
    Request single;
    single.needed = inner.needed;
    single.order = base_order;
    single.limit = request.limit;
    single.exact = request.exact;
    for (const Conjunct& conjunct : tree.pool) AddIds(s_, *conjunct.expr, &single.needed);
    CELLAR_TRY_ASSIGN(out, Build(std::move(leaf.tree), std::move(leaf.conditions), single));
    std::vector<ExprPtr> rest;
    for (Conjunct& conjunct : tree.pool) rest.push_back(std::move(conjunct.expr));
    CELLAR_TRY_ASSIGN(out, AddFilter(std::move(out), std::move(rest)));
  } else {
    CELLAR_TRY(EstimateLeaves(&tree, inner));
    JoinOrder best;
    bool have_best = false;
    auto score = [&](const JoinOrder& order) {
      double fraction = 1;
      bool ordered = order.keeps_order && !base_order.empty();
      if (request.limit < order.rows && (base_order.empty() || ordered)) {
        // Hash joins read their build sides whole.
        fraction = order.keeps_order ? request.limit / order.rows : 1;
      }
      double sort = base_order.empty() || ordered
                        ? 0
                        : kSortFactor * order.rows * std::log2(std::max(2.0, order.rows));
      return order.cost * fraction + sort;
    };
    auto try_order = [&](JoinOrder order, bool ordered) {
      if (order.steps.size() != tree.leaves.size()) return;
      if (!ordered && !base_order.empty()) order.keeps_order = false;
      if (!have_best || score(order) < score(best)) {
        best = std::move(order);
        have_best = true;
      }
    };
    size_t inner_leaves = 0;
    for (const Leaf& leaf : tree.leaves) inner_leaves += leaf.join == JoinKind::kInner;
    std::vector<size_t> starts;
    for (size_t i = 0; i < tree.leaves.size(); ++i) {
      if (tree.leaves[i].join == JoinKind::kInner && tree.leaves[i].depends.empty())
        starts.push_back(i);
    }
    if (inner_leaves > kTryAllFirst) {
      std::sort(starts.begin(), starts.end(),
                [&](size_t a, size_t b) { return tree.leaves[a].rows < tree.leaves[b].rows; });
      starts.resize(std::min<size_t>(starts.size(), 2));
    }
    for (size_t start : starts) {
      try_order(Search(tree, inner.needed, static_cast<int>(start), false, nullptr), false);
    }
    if (!base_order.empty()) {
      // The relation that could give the order, first.
      for (size_t i = 0; i < tree.leaves.size(); ++i) {
        const Leaf& leaf = tree.leaves[i];
        if (leaf.join != JoinKind::kInner || !leaf.depends.empty() || leaf.tree == nullptr)
          continue;
        bool all = true;
        for (const OrderKey& key : base_order) all = all && leaf.produced.Has(key.id);
        if (!all) continue;
        Request ordered;
        ordered.needed = inner.needed;
        ordered.order = base_order;
        try_order(Search(tree, inner.needed, static_cast<int>(i), true, &ordered), true);
      }
    }
    if (!have_best) return InternalError("planner found no join order");
    Request joined;
    joined.needed = inner.needed;
    joined.order = best.keeps_order ? base_order : std::vector<OrderKey>();
    joined.limit = best.keeps_order ? request.limit : kUnlimited;
    CELLAR_TRY_ASSIGN(out, Construct(&tree, best, joined));
  }
  // Back to the order's own names.
  if (!request.order.empty() && Satisfies(out.order, base_order)) {
    std::vector<OrderKey> order = request.order;
    out.order = std::move(order);
  }
  // Flattened projections are computed now, if anybody wants them.
  IdSet have;
  for (int id : out.cols) have.Add(id);
  std::vector<int> computed;
  request.needed.ForEach([&](int id) {
    if (!have.Has(id) && produced.Has(id) && virtual_.count(id) != 0) computed.push_back(id);
  });
  if (computed.empty()) return out;
  std::vector<int> ids;
  bool exact = request.exact != nullptr;
  if (exact) {
    auto available = [&](int id) {
      return have.Has(id) || (produced.Has(id) && virtual_.count(id) != 0);
    };
    for (int id : *request.exact) exact = exact && available(id);
    // Everything wanted must be among them.
    IdSet listed;
    for (int id : *request.exact) listed.Add(id);
    request.needed.ForEach([&](int id) {
      if (available(id) && !listed.Has(id)) exact = false;
    });
  }
  if (exact) {
    ids = *request.exact;
  } else {
    for (int id : out.cols) {
      if (request.needed.Has(id)) ids.push_back(id);
    }
    ids.insert(ids.end(), computed.begin(), computed.end());
  }
  std::vector<OrderKey> order = out.order;
  CELLAR_TRY_ASSIGN(out, Project(std::move(out), ids));
  // Project drops keys it does not see; renamed ones are there under their own names.
  if (out.order.size() < order.size()) {
    bool all = true;
    for (const OrderKey& key : order)
      all = all && std::find(ids.begin(), ids.end(), key.id) != ids.end();
    if (all) out.order = std::move(order);
  }
  return out;
}

Result<Phys> Physical::Construct(JoinTree* tree, const JoinOrder& order, const Request& request) {
  Phys current;
  std::vector<bool> joined(tree->leaves.size(), false);
  for (size_t step = 0; step < order.steps.size(); ++step) {
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
      if (IsEquality(*condition)) {
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
  CELLAR_TRY(FinalizeAll(&on, cols));
  node->condition = JoinConjuncts(std::move(on));
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
