// Subqueries in expressions.
#include <algorithm>
#include <utility>

#include "cellar/sql/plan/binder.h"

namespace cellar::sql::planning {

Result<BoundQuery> Binder::BindSubquery(const ast::SelectStmt& select, Env& env) {
  Block* block = env.scope->block;
  const auto bind = [&] {
    return InPlace("a subquery", [&] { return BindSelect(select, env.scope); });
  };
  if (block == nullptr) return bind();
  const Place place = std::exchange(block->subquery_place, env.place);
  const bool in_aggregate = std::exchange(block->subquery_in_aggregate, env.in_aggregate);
  Result<BoundQuery> bound = bind();
  block->subquery_place = place;
  block->subquery_in_aggregate = in_aggregate;
  return bound;
}

Result<ExprPtr> Binder::BindRowSubLink(const ast::OperatorExpr& op, Env& env) {
  const auto& link = op.right->As<ast::SubLink>();
  CELLAR_TRY_ASSIGN(ExprPtr left, BindExpr(*op.left, env));
  CELLAR_TRY_ASSIGN(BoundQuery query, BindSubquery(*link.select, env));
  const size_t wanted = left->args.size();
  if (query.columns.size() != wanted) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "subquery has too {} columns",
                    query.columns.size() > wanted ? "many" : "few")
        .WithLocation(link.location);
  }
  // The row that there is gives the answer, none NULL, several the error: SELECT (a, b) op (x, y).
  auto right = std::make_unique<Expr>();
  right->kind = ExprKind::kRow;
  right->type = MakeType(TypeId::kRecord);
  for (const QueryColumn& column : query.columns) right->args.push_back(s_.ColumnExpr(column.id));
  CELLAR_TRY_ASSIGN(ExprPtr answer,
                    MakeRowComparison(op.op.name == "!=" ? "<>" : op.op.name, std::move(left),
                                      std::move(right), op.location));
  auto out = std::make_unique<Expr>();
  out->kind = ExprKind::kSubplan;
  out->subplan_kind = SubplanKind::kScalar;
  out->type = answer->type;
  out->location = link.location;
  ColumnInfo info;
  info.name = "?column?";
  info.type = answer->type;
  auto project = std::make_unique<LogicalProject>();
  project->ids.push_back(s_.AddColumn(std::move(info)));
  project->exprs.push_back(std::move(answer));
  Subquery subquery;
  subquery.ids = project->ids;
  subquery.root = Wrap(std::move(project), std::move(query.root));
  out->index = static_cast<int>(s_.subqueries.size());
  s_.AddSubquery(std::move(subquery));
  return out;
}

Result<ExprPtr> Binder::BindSubLink(const ast::SubLink& link, Env& env, bool negated) {
  bool quantified =
      link.sub_kind == ast::SubLinkKind::kAny || link.sub_kind == ast::SubLinkKind::kAll;
  ExprPtr test;
  if (quantified) {
    CELLAR_TRY_ASSIGN(test, BindExpr(*link.test, env));
  }
  CELLAR_TRY_ASSIGN(BoundQuery query, BindSubquery(*link.select, env));
  auto negate = [&](ExprPtr expr) -> ExprPtr {
    if (!negated) return expr;
    std::vector<ExprPtr> args;
    args.push_back(std::move(expr));
    return MakeLogic(ExprKind::kNot, std::move(args));
  };
  auto out = std::make_unique<Expr>();
  out->kind = ExprKind::kSubplan;
  out->type = MakeType(TypeId::kBool);
  out->location = link.location;
  auto register_query = [&](std::vector<int> ids) {
    Subquery subquery;
    subquery.root = std::move(query.root);
    subquery.ids = std::move(ids);
    out->index = static_cast<int>(s_.subqueries.size());
    s_.AddSubquery(std::move(subquery));
  };
  auto ids_of = [&] {
    std::vector<int> ids;
    for (const QueryColumn& column : query.columns) ids.push_back(column.id);
    return ids;
  };
  if (link.sub_kind == ast::SubLinkKind::kExists) {
    out->subplan_kind = SubplanKind::kExists;
    register_query({});
    return negate(std::move(out));
  }
  size_t wanted = test != nullptr && IsRowExpression(*test) ? test->args.size() : 1;
  if (query.columns.size() != wanted) {
    if (quantified) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "subquery has too {} columns",
                      query.columns.size() > wanted ? "many" : "few")
          .WithLocation(link.location);
    }
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "subquery must return only one column")
        .WithLocation(link.location);
  }
  if (link.sub_kind == ast::SubLinkKind::kExpr || link.sub_kind == ast::SubLinkKind::kArray) {
    Type type = s_.column(query.columns[0].id).type;
    if (link.sub_kind == ast::SubLinkKind::kArray) {
      out->subplan_kind = SubplanKind::kArray;
      // Arrays are stacked to one of one dimension more, of the same type.
      out->type = type;
      if (!type.array) {
        PLAN_TRY_ASSIGN_AT(out->type, ArrayTypeFor(type), link.location);
      }
      if (HidesBlanks(type)) out->type.modifier = type.modifier;
    } else {
      out->subplan_kind = SubplanKind::kScalar;
      out->type = type;
    }
    register_query(ids_of());
    if (negated) {
      CELLAR_TRY_ASSIGN(ExprPtr boolean, ToBoolean(std::move(out), "NOT", link.location));
      return negate(std::move(boolean));
    }
    return out;
  }
  std::string_view op = link.is_in || link.op.empty() ? std::string_view("=") : link.op.name;
  if (op == "!=") op = "<>";
  bool all = link.sub_kind == ast::SubLinkKind::kAll;
  if (IsRowExpression(*test) && test->args.size() != 1) {
    auto row = std::make_unique<Expr>();
    row->kind = ExprKind::kRow;
    row->type = MakeType(TypeId::kRecord);
    for (const QueryColumn& column : query.columns) row->args.push_back(s_.ColumnExpr(column.id));
    CELLAR_TRY_ASSIGN(ExprPtr match,
                      MakeRowComparison(op, std::move(test), std::move(row), link.location));
    if (!all && std::find(filters_.begin(), filters_.end(), &link) != filters_.end()) {
      // WHERE (a, b) IN (SELECT x, y ..): whether a row matches. NOT IN asks that none may match.
      if (negated) {
        std::vector<ExprPtr> args;
        args.push_back(std::move(match));
        match = MakeLogic(ExprKind::kIsNotFalse, std::move(args));
      }
      auto filter = std::make_unique<LogicalFilter>();
      SplitConjuncts(std::move(match), &filter->conditions);
      query.root = Wrap(std::move(filter), std::move(query.root));
      out->subplan_kind = SubplanKind::kExists;
      register_query({});
      return negate(std::move(out));
    }
    // true op ANY (SELECT (a, b) op (x, y) ..)
    ColumnInfo info;
    info.name = "?column?";
    info.type = match->type;
    auto project = std::make_unique<LogicalProject>();
    const int id = s_.AddColumn(std::move(info));
    project->ids.push_back(id);
    project->exprs.push_back(std::move(match));
    query.root = Wrap(std::move(project), std::move(query.root));
    const Type types[2] = {out->type, out->type};
    PLAN_TRY_ASSIGN_AT(ResolvedFunction equal, ResolveOperator("=", types), link.location);
    out->subplan_kind = all ? SubplanKind::kAll : SubplanKind::kAny;
    out->function = equal.spec;
    out->args.push_back(MakeConstant(Value(out->type, Datum::Bool(true))));
    register_query({id});
    return negate(std::move(out));
  }
  if (IsRowExpression(*test)) test = std::move(test->args[0]);
  int column_id = query.columns[0].id;
  Type types[2] = {test->type, s_.column(column_id).type};
  PLAN_TRY_ASSIGN_AT(ResolvedFunction resolved, ResolveOperator(op, types), link.location);
  if (resolved.result.id != TypeId::kBool) {
    return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                    "row comparison operator must yield type boolean, not type {}",
                    FormatType(resolved.result))
        .WithLocation(link.location);
  }
  CELLAR_TRY_ASSIGN(test,
                    Coerce(std::move(test), resolved.arg_types[0], CastContext::kImplicit, -1));
  ExprPtr column = s_.ColumnExpr(column_id);
  if (!column->type.SameKind(resolved.arg_types[1])) {
    CELLAR_TRY_ASSIGN(column, Coerce(std::move(column), resolved.arg_types[1],
                                     CastContext::kImplicit, link.location));
  }
  ExprPtr sides[2] = {std::move(test), std::move(column)};
  CollationSource source;
  PLAN_TRY_AT(Collate(&resolved.spec, sides, &resolved.result, &source), link.location);
  test = std::move(sides[0]);
  if (ExprPtr cast = std::move(sides[1]); cast->kind != ExprKind::kColumn) {
    auto project = std::make_unique<LogicalProject>();
    ColumnInfo info = s_.column(column_id);
    info.type = cast->type;
    column_id = s_.AddColumn(std::move(info));
    project->ids.push_back(column_id);
    project->exprs.push_back(std::move(cast));
    project->children.push_back(std::move(query.root));
    query.root = std::move(project);
  }
  out->subplan_kind = all ? SubplanKind::kAll : SubplanKind::kAny;
  out->function = resolved.spec;
  out->args.push_back(std::move(test));
  register_query({column_id});
  return negate(std::move(out));
}

}  // namespace cellar::sql::planning
