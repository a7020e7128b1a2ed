// GROUP BY: keys, GROUPING SETS, ROLLUP and CUBE, and GROUPING().
#include <algorithm>

#include "cellar/sql/plan/binder.h"

namespace cellar::sql::planning {

namespace {

using Sets = std::vector<std::vector<int>>;

constexpr size_t kMostSets = 4096;
constexpr size_t kMostCubeElements = 12;

Status TooManySets(int location) {
  return SqlError(Code::kLimit, sqlstate::kStatementTooComplex,
                  "too many grouping sets present (maximum {})", kMostSets)
      .WithLocation(location);
}

void Append(const std::vector<int>& from, std::vector<int>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

void MakeSet(std::vector<int>* keys) {
  std::sort(keys->begin(), keys->end());
  keys->erase(std::unique(keys->begin(), keys->end()), keys->end());
}

// Every set of one list with every set of the other.
Result<Sets> Cross(const Sets& a, const Sets& b, int location) {
  if (a.size() * b.size() > kMostSets) return TooManySets(location);
  Sets out;
  for (const std::vector<int>& left : a) {
    for (const std::vector<int>& right : b) {
      out.push_back(left);
      Append(right, &out.back());
    }
  }
  return out;
}

}  // namespace

// `add_keys` binds an expression, adds what it groups by to the keys, and says where they are.
Result<std::vector<std::vector<int>>> Binder::ExpandGrouping(const ast::Expr& element,
                                                             const AddKeys& add_keys) {
  Sets out;
  if (element.kind != ast::NodeKind::kGroupingSet) {
    CELLAR_TRY_ASSIGN(out.emplace_back(), add_keys(element));
    return out;
  }
  const auto& set = element.As<ast::GroupingSet>();
  if (set.set_kind == ast::GroupingSetKind::kSets) {
    for (const ast::ExprPtr& item : set.content) {
      CELLAR_TRY_ASSIGN(Sets inner, ExpandGrouping(*item, add_keys));
      out.insert(out.end(), inner.begin(), inner.end());
      if (out.size() > kMostSets) return TooManySets(set.location);
    }
    return out;
  }
  Sets elements;
  for (const ast::ExprPtr& item : set.content) {
    CELLAR_TRY_ASSIGN(elements.emplace_back(), add_keys(*item));
  }
  switch (set.set_kind) {
    case ast::GroupingSetKind::kRollup:
      for (size_t n = elements.size() + 1; n-- > 0;) {
        out.emplace_back();
        for (size_t i = 0; i < n; ++i) Append(elements[i], &out.back());
      }
      break;
    case ast::GroupingSetKind::kCube:
      if (elements.size() > kMostCubeElements) {
        return SqlError(Code::kLimit, "54011", "CUBE is limited to {} elements", kMostCubeElements)
            .WithLocation(set.location);
      }
      for (uint32_t left_out = 0; left_out < uint32_t{1} << elements.size(); ++left_out) {
        out.emplace_back();
        for (size_t i = 0; i < elements.size(); ++i) {
          if ((left_out >> (elements.size() - 1 - i) & 1) == 0) Append(elements[i], &out.back());
        }
      }
      break;
    default:
      out.emplace_back();
      for (const std::vector<int>& one : elements) Append(one, &out.back());
      break;
  }
  return out;
}

Status Binder::BindGroupBy(const ast::SelectStmt& select, const AddKeys& add_keys, Sets* sets) {
  if (!select.has_grouping_sets) {
    for (const ast::ExprPtr& expr : select.group_by) CELLAR_TRY(add_keys(*expr).status());
    return Status();
  }
  sets->emplace_back();
  for (const ast::ExprPtr& expr : select.group_by) {
    CELLAR_TRY_ASSIGN(const Sets inner, ExpandGrouping(*expr, add_keys));
    CELLAR_TRY_ASSIGN(*sets, Cross(*sets, inner, ExprLocation(*expr)));
  }
  for (std::vector<int>& set : *sets) MakeSet(&set);
  if (!select.group_distinct) return Status();
  Sets kept;
  for (std::vector<int>& set : *sets) {
    if (std::find(kept.begin(), kept.end(), set) == kept.end()) kept.push_back(std::move(set));
  }
  *sets = std::move(kept);
  return Status();
}

Result<ExprPtr> Binder::BindGrouping(const ast::GroupingFunc& call, Env& env) {
  constexpr size_t kMostArguments = 31;
  if (call.args.size() > kMostArguments) {
    return SqlError(Code::kLimit, "54023", "GROUPING must have fewer than 32 arguments")
        .WithLocation(call.location);
  }
  if (env.in_aggregate) {
    return SqlError(Code::kInvalid, sqlstate::kGroupingError,
                    "aggregate function calls cannot be nested")
        .WithLocation(call.location);
  }
  BoundGrouping out;
  std::vector<const Expr*> exprs;
  for (const ast::ExprPtr& arg : call.args) {
    CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(*arg, env));
    exprs.push_back(bound.get());
    out.args.push_back(std::move(bound));
    out.locations.push_back(ExprLocation(*arg));
  }
  Block* block = OwnerOf(exprs, env);
  if (block == nullptr || (block == env.scope->block && !AggregatesAllowed(env.place))) {
    return SqlError(Code::kInvalid, sqlstate::kGroupingError,
                    "grouping operations are not allowed in {}", PlaceName(env.place))
        .WithLocation(call.location);
  }
  if (block != env.scope->block && !AggregatesAllowed(block->subquery_place)) {
    return SqlError(Code::kInvalid, sqlstate::kGroupingError,
                    "grouping operations are not allowed in {}", PlaceName(block->subquery_place))
        .WithLocation(call.location);
  }
  ColumnInfo info;
  info.name = "grouping";
  info.type = MakeType(TypeId::kInt4);
  out.id = s_.AddColumn(std::move(info));
  const int id = out.id;
  block->groupings.push_back(std::move(out));
  return s_.ColumnExpr(id, call.location);
}

Result<Sets> Binder::PlaceGroupings(const Block& block, const std::vector<ExprPtr>& keys) {
  Sets out;
  for (const BoundGrouping& grouping : block.groupings) {
    std::vector<int>& places = out.emplace_back();
    for (size_t a = 0; a < grouping.args.size(); ++a) {
      size_t k = 0;
      while (k < keys.size() && !ExprEquals(*keys[k], *grouping.args[a])) ++k;
      if (k == keys.size()) {
        return SqlError(Code::kInvalid, sqlstate::kGroupingError,
                        "arguments to GROUPING must be grouping expressions of the associated "
                        "query level")
            .WithLocation(grouping.locations[a]);
      }
      places.push_back(static_cast<int>(k));
    }
  }
  return out;
}

void Binder::ReplaceInSubqueries(const Expr& expr,
                                 const std::vector<std::pair<int, const Expr*>>& values) {
  VisitExpr(expr, [&](const Expr& part) {
    if (part.kind != ExprKind::kSubplan) return;
    ReplaceInTree(s_.subqueries[static_cast<size_t>(part.index)].root.get(), values);
  });
}

void Binder::ReplaceInTree(Logical* tree, const std::vector<std::pair<int, const Expr*>>& values) {
  ForEachExpr(tree, [&](ExprPtr* expr) {
    ReplaceInSubqueries(**expr, values);
    Substitute(expr, values);
  });
  for (const LogicalPtr& child : tree->children) ReplaceInTree(child.get(), values);
}

}  // namespace cellar::sql::planning
