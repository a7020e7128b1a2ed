// FROM and WHERE as leaves and conditions: flattening, semi joins, outer joins that are inner ones.
#include <algorithm>

#include "cellar/sql/expr/collate.h"
#include "cellar/sql/plan/physical.h"

namespace cellar::sql::planning {

namespace {

// A projection whose values may be computed anywhere above.
bool IsMovable(const Statement& statement, const LogicalProject& project) {
  for (const ExprPtr& expr : project.exprs) {
    if (IsVolatile(statement, *expr)) return false;
  }
  return true;
}

}  // namespace

bool StandsAlone(const Statement& statement, const LogicalFilter& filter) {
  IdSet produced;
  AddProduced(filter, &produced);
  return produced.empty() &&
         std::any_of(filter.conditions.begin(), filter.conditions.end(),
                     [&](const ExprPtr& condition) { return IsVolatile(statement, *condition); });
}

bool IsEquality(const Expr& expr) {
  return expr.kind == ExprKind::kCall && expr.args.size() == 2 &&
         expr.function->comparison == FunctionSpec::Comparison::kEqual;
}

bool SameHashForm(Type a, Type b) {
  if (a.SameKind(b)) return true;
  auto textual = [](Type type) {
    return !type.array && (type.id == TypeId::kText || type.id == TypeId::kVarchar);
  };
  return textual(a) && textual(b);
}

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

void Physical::NameExpression(int id, ExprPtr expr) {
  // It is copied to wherever the name stands.
  VisitExpr(*expr, [&](const Expr& part) {
    if (part.kind == ExprKind::kSubplan)
      s_.subqueries[static_cast<size_t>(part.index)].shared = true;
  });
  virtual_[id] = std::move(expr);
}

Conjunct Physical::ConjunctOf(ExprPtr condition, const Logical& scope) const {
  Conjunct out;
  if (IsVolatile(s_, *condition)) AddProduced(scope, &out.scope);
  out.expr = std::move(condition);
  return out;
}

void Physical::Flatten(LogicalPtr node, JoinTree* tree) {
  switch (node->kind) {
    case LogicalKind::kFilter: {
      auto& filter = node->As<LogicalFilter>();
      if (StandsAlone(s_, filter)) break;
      for (ExprPtr& condition : filter.conditions) {
        tree->pool.push_back(ConjunctOf(std::move(condition), filter));
      }
      Flatten(std::move(filter.children[0]), tree);
      return;
    }
    case LogicalKind::kProject: {
      auto& project = node->As<LogicalProject>();
      if (!IsMovable(s_, project)) break;
      Flatten(std::move(project.children[0]), tree);
      for (size_t i = 0; i < project.ids.size(); ++i) {
        NameExpression(project.ids[i], std::move(project.exprs[i]));
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
          tree->pool.push_back(ConjunctOf(std::move(condition), join));
        }
        Flatten(std::move(join.children[0]), tree);
        Flatten(std::move(join.children[1]), tree);
        return;
      }
      if (join.join == JoinKind::kFull) break;
      Leaf leaf;
      AddProduced(join, &leaf.scope);
      Flatten(std::move(join.children[0]), tree);
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
  if (subquery.root == nullptr || subquery.plan >= 0 || subquery.shared) return false;
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
  // What differs from run to run is asked for each row.
  if (correlated && subquery.is_volatile) return false;
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
          if (!IsMovable(s_, next->As<LogicalProject>())) blocked = true;
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
    for (ExprPtr* expr : correlated_conditions) blocked = blocked || IsVolatile(s_, **expr);
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
        conjunct.scope = leaf.scope;
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
    auto find = [&] {
      for (Leaf& leaf : tree->leaves) {
        if (!conjunct.ids.Intersects(leaf.produced)) continue;
        ++count;
        only = &leaf;
      }
    };
    find();
    if (count == 0 && IsVolatile(s_, *conjunct.expr)) {
      conjunct.ids.AddAll(Expand(conjunct.scope));
      find();
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
      if (!value.type.SameKind(column.type) || !EqualByBytes(a.type.collation) ||
          !EqualByBytes(b.type.collation)) {
        continue;
      }
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
    CELLAR_TRY(s_.CheckCancel());
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
           leaf.join != JoinKind::kLeft && IsMovable(s_, leaf.tree->As<LogicalProject>())) {
      auto& project = leaf.tree->As<LogicalProject>();
      for (size_t i = 0; i < project.ids.size(); ++i) {
        NameExpression(project.ids[i], std::move(project.exprs[i]));
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
      NoteDistinct(get, leaf.table_rows);
      Request request;
      request.needed = Expand(wanted.needed);
      AccessPath path = ChoosePath(get, leaf.conditions, request);
      leaf.rows = path.rows;
      leaf.cost = path.full_cost;
    } else if (leaf.lateral) {
      leaf.rows = 10;
      leaf.cost = 5000;
      leaf.table_rows = 10;
    } else {
      Request request;
      request.needed = Expand(wanted.needed);
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

}  // namespace cellar::sql::planning
