#include "cellar/sql/plan/logical.h"

#include <functional>
#include <map>

#include "cellar/sql/expr/record_field.h"
#include "cellar/types/array.h"

namespace cellar::sql::planning {

Status At(Status status, int location) {
  if (location >= 0 && status.location() < 0) return std::move(status).WithLocation(location);
  return status;
}

void AddProduced(const Logical& tree, IdSet* out) {
  for (int id : tree.ids) out->Add(id);
  if (tree.kind == LogicalKind::kGet && tree.As<LogicalGet>().row_ref >= 0) {
    out->Add(tree.As<LogicalGet>().row_ref);
  }
  if (tree.kind == LogicalKind::kInsert) {
    for (int id : tree.As<LogicalInsert>().stored) out->Add(id);
    for (int id : tree.As<LogicalInsert>().excluded) out->Add(id);
  }
  for (const LogicalPtr& child : tree.children) AddProduced(*child, out);
}

void ForEachExpr(Logical* node, const std::function<void(ExprPtr*)>& f) {
  auto each = [&f](std::vector<ExprPtr>& exprs) {
    for (ExprPtr& expr : exprs) f(&expr);
  };
  auto keys = [&f](std::vector<SortKey>& sort_keys) {
    for (SortKey& key : sort_keys) f(&key.expr);
  };
  auto aggregate = [&](AggregateCall& call) {
    each(call.args);
    if (call.filter != nullptr) f(&call.filter);
    keys(call.order_by);
  };
  switch (node->kind) {
    case LogicalKind::kValues:
      for (auto& row : node->As<LogicalValues>().rows) each(row);
      break;
    case LogicalKind::kFunctionGet: each(node->As<LogicalFunctionGet>().calls); break;
    case LogicalKind::kFilter: each(node->As<LogicalFilter>().conditions); break;
    case LogicalKind::kProject: each(node->As<LogicalProject>().exprs); break;
    case LogicalKind::kProjectSet: each(node->As<LogicalProjectSet>().exprs); break;
    case LogicalKind::kJoin: each(node->As<LogicalJoin>().conditions); break;
    case LogicalKind::kAggregate: {
      auto& n = node->As<LogicalAggregate>();
      each(n.keys);
      for (AggregateCall& call : n.calls) aggregate(call);
      break;
    }
    case LogicalKind::kWindow: {
      auto& n = node->As<LogicalWindow>();
      each(n.partition_by);
      keys(n.order_by);
      for (WindowCall& call : n.calls) {
        each(call.args);
        aggregate(call.aggregate);
      }
      for (WindowFrame& frame : n.frames) {
        if (frame.start_offset != nullptr) f(&frame.start_offset);
        if (frame.end_offset != nullptr) f(&frame.end_offset);
      }
      break;
    }
    case LogicalKind::kSort: keys(node->As<LogicalSort>().keys); break;
    case LogicalKind::kLimit: {
      auto& n = node->As<LogicalLimit>();
      if (n.limit != nullptr) f(&n.limit);
      if (n.offset != nullptr) f(&n.offset);
      break;
    }
    case LogicalKind::kDistinct: keys(node->As<LogicalDistinct>().order); break;
    case LogicalKind::kInsert: {
      auto& n = node->As<LogicalInsert>();
      for (auto& [position, value] : n.assignments) f(&value);
      if (n.conflict_where != nullptr) f(&n.conflict_where);
      each(n.returning);
      break;
    }
    case LogicalKind::kUpdate: {
      auto& n = node->As<LogicalUpdate>();
      for (auto& [position, value] : n.assignments) f(&value);
      each(n.returning);
      break;
    }
    case LogicalKind::kDelete: each(node->As<LogicalDelete>().returning); break;
    default: break;
  }
}

namespace {

// Looks at each WITH query once, however many queries name it: a chain of queries that name the one
// before twice would take twice as long with each.
class IdWalk {
 public:
  explicit IdWalk(const Statement& statement) : statement_(statement) {}

  void AddIds(const Expr& expr, IdSet* out) {
    if (expr.kind == ExprKind::kColumn) {
      out->Add(expr.index);
      return;
    }
    if (expr.kind == ExprKind::kSubplan) {
      const Subquery& subquery = statement_.subqueries[static_cast<size_t>(expr.index)];
      if (subquery.plan >= 0) {
        for (int id : subquery.outer_ids) out->Add(id);
      } else if (subquery.root != nullptr) {
        out->AddAll(Free(*subquery.root));
      }
    }
    for (const ExprPtr& arg : expr.args) AddIds(*arg, out);
  }
  IdSet Free(const Logical& tree) {
    IdSet used, produced;
    AddUsed(tree, &used);
    AddProduced(tree, &produced);
    used.RemoveAll(produced);
    return used;
  }

 private:
  void AddUsed(const Logical& tree, IdSet* out) {
    // The visitor only reads.
    ForEachExpr(const_cast<Logical*>(&tree), [&](ExprPtr* expr) { AddIds(**expr, out); });
    auto add_inputs = [out](const std::vector<std::vector<int>>& inputs) {
      for (const auto& ids : inputs) {
        for (int id : ids) out->Add(id);
      }
    };
    switch (tree.kind) {
      case LogicalKind::kAppend: add_inputs(tree.As<LogicalAppend>().inputs); break;
      case LogicalKind::kSetOperation: add_inputs(tree.As<LogicalSetOperation>().inputs); break;
      case LogicalKind::kRecursiveUnion: add_inputs(tree.As<LogicalRecursiveUnion>().inputs); break;
      case LogicalKind::kDistinct:
        for (int id : tree.As<LogicalDistinct>().on) out->Add(id);
        break;
      case LogicalKind::kCteRef: {
        const int index = tree.As<LogicalCteRef>().cte;
        const Cte& cte = statement_.ctes[static_cast<size_t>(index)];
        if (cte.root == nullptr) break;
        auto known = ctes_.find(index);
        if (known == ctes_.end()) known = ctes_.emplace(index, Free(*cte.root)).first;
        out->AddAll(known->second);
        break;
      }
      default: break;
    }
    for (const LogicalPtr& child : tree.children) AddUsed(*child, out);
  }

  const Statement& statement_;
  std::map<int, IdSet> ctes_;  // free ids
};

}  // namespace

void AddIds(const Statement& statement, const Expr& expr, IdSet* out) {
  IdWalk(statement).AddIds(expr, out);
}

IdSet FreeIds(const Statement& statement, const Logical& tree) {
  return IdWalk(statement).Free(tree);
}

bool HasSubplan(const Expr& expr) {
  if (expr.kind == ExprKind::kSubplan) return true;
  for (const ExprPtr& arg : expr.args) {
    if (HasSubplan(*arg)) return true;
  }
  return false;
}

bool IsVolatile(const Expr& expr) {
  if (expr.function != nullptr && expr.function->volatility == Volatility::kVolatile) return true;
  for (const ExprPtr& arg : expr.args) {
    if (IsVolatile(*arg)) return true;
  }
  return false;
}

bool IsVolatile(const Statement& statement, const Expr& expr) {
  if (expr.kind == ExprKind::kSubplan) {
    const Subquery& subquery = statement.subqueries[static_cast<size_t>(expr.index)];
    if (subquery.is_volatile) return true;
  }
  if (expr.function != nullptr && expr.function->volatility == Volatility::kVolatile) return true;
  for (const ExprPtr& arg : expr.args) {
    if (IsVolatile(statement, *arg)) return true;
  }
  return false;
}

void OrderByCost(std::vector<ExprPtr>* conditions) {
  const auto rank = [](const Expr& condition) {
    return HasSubplan(condition) ? 2 : IsVolatile(condition) ? 1 : 0;
  };
  std::stable_sort(conditions->begin(), conditions->end(),
                   [&](const ExprPtr& a, const ExprPtr& b) { return rank(*a) < rank(*b); });
}

bool ContainsVolatile(const Statement& statement, const Logical& tree) {
  bool found = tree.kind == LogicalKind::kLock;
  // The visitor only reads.
  ForEachExpr(const_cast<Logical*>(&tree),
              [&](ExprPtr* expr) { found = found || IsVolatile(statement, **expr); });
  for (const LogicalPtr& child : tree.children) {
    found = found || ContainsVolatile(statement, *child);
  }
  return found;
}

namespace {

// NULL in any of `ids` makes the expression NULL.
bool IsStrictIn(const Expr& expr, const IdSet& ids) {
  switch (expr.kind) {
    case ExprKind::kColumn: return ids.Has(expr.index);
    case ExprKind::kCall:
      if (!expr.function->strict || expr.function->set != nullptr) return false;
      break;
    case ExprKind::kNot: break;
    case ExprKind::kInList:
    case ExprKind::kNotInList: return IsStrictIn(*expr.args[0], ids);
    case ExprKind::kAnyArray:
      // Of no elements it is false, whatever is compared.
      if (!IsConstant(*expr.args[1]) || expr.args[1]->constant.is_null() ||
          ArrayView(expr.args[1]->constant.datum().bytes(), ElementTypeOf(expr.args[1]->type))
                  .size() == 0) {
        return false;
      }
      return IsStrictIn(*expr.args[0], ids);
    default: return false;
  }
  for (const ExprPtr& arg : expr.args) {
    if (IsStrictIn(*arg, ids)) return true;
  }
  return false;
}

}  // namespace

bool RejectsNulls(const Expr& condition, const IdSet& ids) {
  switch (condition.kind) {
    case ExprKind::kAnd:
      for (const ExprPtr& arg : condition.args) {
        if (RejectsNulls(*arg, ids)) return true;
      }
      return false;
    case ExprKind::kOr:
      for (const ExprPtr& arg : condition.args) {
        if (!RejectsNulls(*arg, ids)) return false;
      }
      return !condition.args.empty();
    case ExprKind::kIsNotNull:
    case ExprKind::kIsTrue:
    case ExprKind::kIsFalse:
    case ExprKind::kAnyArray: return IsStrictIn(*condition.args[0], ids);
    default: return IsStrictIn(condition, ids);
  }
}

void SplitConjuncts(ExprPtr condition, std::vector<ExprPtr>* out) {
  if (condition->kind == ExprKind::kAnd) {
    for (ExprPtr& arg : condition->args) SplitConjuncts(std::move(arg), out);
    return;
  }
  if (!IsTrueConstant(*condition)) out->push_back(std::move(condition));
}

ExprPtr JoinConjuncts(std::vector<ExprPtr> conditions) {
  if (conditions.empty()) return nullptr;
  if (conditions.size() == 1) return std::move(conditions[0]);
  return MakeLogic(ExprKind::kAnd, std::move(conditions));
}

void Substitute(ExprPtr* expr, const std::vector<std::pair<int, const Expr*>>& values) {
  if ((*expr)->kind == ExprKind::kColumn) {
    for (const auto& [id, value] : values) {
      if (id == (*expr)->index) {
        *expr = CloneExpr(*value);
        return;
      }
    }
    return;
  }
  for (ExprPtr& arg : (*expr)->args) Substitute(&arg, values);
  // A field of a record that turns out to be ROW(...).
  if ((*expr)->kind == ExprKind::kCall && (*expr)->function == &RecordFieldFunction() &&
      (*expr)->args[0]->kind == ExprKind::kRow &&
      (*expr)->args[2]->constant.datum().int_value() == 0) {
    const auto position = static_cast<size_t>((*expr)->args[1]->constant.datum().int_value());
    *expr = MakeFieldOf(std::move((*expr)->args[0]), position, 0, (*expr)->type);
  }
}

ExprPtr MakeCall(const FunctionSpec* function, Type type, std::vector<ExprPtr> args) {
  auto expr = std::make_unique<Expr>();
  expr->kind = ExprKind::kCall;
  expr->type = type;
  expr->function = function;
  if (!args.empty()) expr->location = args[0]->location;
  expr->args = std::move(args);
  return expr;
}

ExprPtr MakeLogic(ExprKind kind, std::vector<ExprPtr> args) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->type = MakeType(TypeId::kBool);
  if (!args.empty()) expr->location = args[0]->location;
  expr->args = std::move(args);
  return expr;
}

}  // namespace cellar::sql::planning
