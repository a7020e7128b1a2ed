// VALUES, set operations, LIMIT and WITH.
#include <algorithm>

#include "cellar/sql/plan/binder.h"

namespace cellar::sql::planning {

namespace {

std::string_view SetOpName(ast::SetOp op) {
  switch (op) {
    case ast::SetOp::kUnion: return "UNION";
    case ast::SetOp::kIntersect: return "INTERSECT";
    default: return "EXCEPT";
  }
}

// Of a column of a query's output: set operations see COLLATE in their inputs.
CollationSource SourceOfOutput(const Logical& root, int id) {
  const Logical* node = &root;
  while (node->kind == LogicalKind::kSort || node->kind == LogicalKind::kLimit ||
         node->kind == LogicalKind::kDistinct || node->kind == LogicalKind::kProject) {
    if (node->kind == LogicalKind::kProject) {
      const auto& project = static_cast<const LogicalProject&>(*node);
      for (size_t i = 0; i < project.ids.size(); ++i) {
        if (project.ids[i] == id) return SourceOfCollation(*project.exprs[i]);
      }
    }
    node = node->children[0].get();
  }
  return CollationSource::kImplicit;
}

}  // namespace

Result<BoundQuery> Binder::BindValues(const ast::SelectStmt& select, const Scope* outer,
                                      bool resolve_unknowns) {
  auto node = std::make_unique<LogicalValues>();
  Block block;
  block.scope.parent = outer;
  Env env;
  env.scope = &block.scope;
  env.place = Place::kValues;
  size_t width = 0;
  const auto lengths = [&select](const ast::ExprList& row) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                    "VALUES lists must all be the same length")
        .WithLocation(row.empty() ? select.location : ExprLocation(*row[0]));
  };
  for (const ast::ExprList& row : select.values) {
    std::vector<ExprPtr> bound;
    CELLAR_TRY(BindList(row, env, &bound));
    if (node->rows.empty()) width = bound.size();
    if (bound.size() != width) return lengths(row);
    node->rows.push_back(std::move(bound));
  }
  BoundQuery query;
  for (size_t i = 0; i < width; ++i) {
    std::vector<ExprPtr*> column;
    for (auto& row : node->rows) column.push_back(&row[i]);
    Type common;
    CELLAR_TRY(CoerceCommon(column, "VALUES", select.location, &common));
    if (common.id == TypeId::kUnknown && resolve_unknowns) {
      common = MakeType(TypeId::kText);
      for (ExprPtr* expr : column) {
        CELLAR_TRY_ASSIGN(*expr, ResolveUnknown(std::move(*expr)));
      }
    }
    // Modifiers survive only when all rows share one.
    bool same = true;
    for (ExprPtr* expr : column) same = same && (*expr)->type == (*column[0])->type;
    if (!same) common.modifier = -1;
    ColumnInfo info;
    info.name = fmt::format("column{}", i + 1);
    info.type = common;
    info.record = ShapeOf(**column[0]);
    std::string name = info.name;
    int id = s_.AddColumn(std::move(info));
    node->ids.push_back(id);
    query.columns.push_back({std::move(name), id});
  }
  query.root = std::move(node);
  return query;
}

Status Binder::CoerceColumn(BoundQuery* query, size_t i, Type to, CastContext context,
                            int location) {
  int id = query->columns[i].id;
  const Type from = s_.column(id).type;
  if (from == to || (to.modifier == -1 && from.SameKind(to) && !HidesBlanks(from))) return Status();
  if (from.id == TypeId::kUnknown) {
    // A literal or parameter in a projection, or VALUES, below.
    for (Logical* node = query->root.get(); node != nullptr;
         node = node->children.empty() ? nullptr : node->children[0].get()) {
      auto position = std::find(node->ids.begin(), node->ids.end(), id);
      if (position == node->ids.end()) continue;
      size_t at = static_cast<size_t>(position - node->ids.begin());
      std::vector<ExprPtr*> exprs;
      if (node->kind == LogicalKind::kProject)
        exprs.push_back(&node->As<LogicalProject>().exprs[at]);
      if (node->kind == LogicalKind::kValues) {
        for (auto& row : node->As<LogicalValues>().rows) exprs.push_back(&row[at]);
      }
      if (exprs.empty()) break;
      for (ExprPtr* expr : exprs) {
        CELLAR_TRY_ASSIGN(*expr, Coerce(std::move(*expr), to, context, location));
      }
      s_.columns[static_cast<size_t>(id)].type = to;
      return Status();
    }
  }
  CELLAR_TRY_ASSIGN(ExprPtr cast, Coerce(s_.ColumnExpr(id, location), to, context, location));
  ColumnInfo info = s_.column(id);
  info.type = cast->type;
  info.table_oid = 0;
  info.attnum = 0;
  int cast_id = s_.AddColumn(std::move(info));
  LogicalProject* project = nullptr;
  if (query->root->kind == LogicalKind::kProject) project = &query->root->As<LogicalProject>();
  bool own = project != nullptr &&
             std::find(project->ids.begin(), project->ids.end(), id) == project->ids.end();
  if (!own) {
    auto fresh = std::make_unique<LogicalProject>();
    project = fresh.get();
    query->root = Wrap(std::move(fresh), std::move(query->root));
  }
  project->ids.push_back(cast_id);
  project->exprs.push_back(std::move(cast));
  query->columns[i].id = cast_id;
  return Status();
}

Result<BoundQuery> Binder::BindSetOperation(const ast::SelectStmt& select, const Scope* outer) {
  std::vector<BoundQuery> inputs;
  std::string_view name = SetOpName(select.set_op);
  for (const ast::SelectPtr& operand : select.operands) {
    const bool intersect = select.set_op == ast::SetOp::kIntersect && select.set_all;
    const bool except = select.set_op == ast::SetOp::kExcept && !inputs.empty();
    CELLAR_TRY_ASSIGN(BoundQuery query, InPlace(intersect || except ? name : "", [&] {
                        return BindSelect(*operand, outer, /*resolve_unknowns=*/false);
                      }));
    if (!inputs.empty() && query.columns.size() != inputs[0].columns.size()) {
      int location = operand->targets.empty() ? operand->location : operand->targets[0].location;
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                      "each {} query must have the same number of columns", name)
          .WithLocation(location);
    }
    inputs.push_back(std::move(query));
  }
  BoundQuery out;
  size_t width = inputs[0].columns.size();
  for (size_t i = 0; i < width; ++i) {
    // From the left, pair by pair.
    Type common = s_.column(inputs[0].columns[i].id).type;
    for (size_t q = 1; q < inputs.size(); ++q) {
      Type next = s_.column(inputs[q].columns[i].id).type;
      if (common == next) continue;
      Type pair[2] = {common, next};
      const ast::SelectStmt& operand = *select.operands[q];
      int location = i < operand.targets.size() ? operand.targets[i].location : operand.location;
      PLAN_TRY_ASSIGN_AT(common, CommonType(pair, name), location);
    }
    if (IsCollatable(common)) {
      // All have to agree, as operands of one comparison would.
      std::vector<ExprPtr> columns;
      std::vector<const Expr*> inputs_of;
      for (const BoundQuery& query : inputs) {
        columns.push_back(s_.ColumnExpr(query.columns[i].id));
        columns.back()->collation_source = SourceOfOutput(*query.root, query.columns[i].id);
        inputs_of.push_back(columns.back().get());
      }
      CELLAR_TRY_ASSIGN(const InputCollation input, CollationOfAll(inputs_of));
      const bool keeps_all = select.set_op == ast::SetOp::kUnion && select.set_all;
      if (input.source == CollationSource::kConflict && !keeps_all)
        return CollationMismatch(inputs_of, select.operands[0]->location);
      common.collation = input.collation;
    }
    if (common.id == TypeId::kUnknown) common = MakeType(TypeId::kText);
    for (BoundQuery& query : inputs) {
      CELLAR_TRY(CoerceColumn(&query, i, common, CastContext::kImplicit, -1));
    }
    ColumnInfo info;
    info.name = inputs[0].columns[i].name;
    info.type = common;
    info.record = s_.column(inputs[0].columns[i].id).record;
    int id = s_.AddColumn(std::move(info));
    out.columns.push_back({inputs[0].columns[i].name, id});
  }
  auto ids_of = [](const BoundQuery& query) {
    std::vector<int> ids;
    for (const QueryColumn& column : query.columns) ids.push_back(column.id);
    return ids;
  };
  std::vector<int> out_ids = ids_of(out);
  if (select.set_op == ast::SetOp::kUnion) {
    auto append = std::make_unique<LogicalAppend>();
    append->ids = out_ids;
    for (BoundQuery& query : inputs) {
      append->inputs.push_back(ids_of(query));
      append->children.push_back(std::move(query.root));
    }
    out.root = std::move(append);
    if (!select.set_all) {
      auto distinct = std::make_unique<LogicalDistinct>();
      distinct->on = out_ids;
      out.root = Wrap(std::move(distinct), std::move(out.root));
    }
    return out;
  }
  BoundQuery left = std::move(inputs[0]);
  for (size_t q = 1; q < inputs.size(); ++q) {
    auto node = std::make_unique<LogicalSetOperation>();
    node->operation = select.set_op == ast::SetOp::kIntersect ? SetOperationNode::Kind::kIntersect
                                                              : SetOperationNode::Kind::kExcept;
    node->all = select.set_all;
    node->inputs.push_back(ids_of(left));
    node->inputs.push_back(ids_of(inputs[q]));
    node->children.push_back(std::move(left.root));
    node->children.push_back(std::move(inputs[q].root));
    if (q + 1 == inputs.size()) {
      node->ids = out_ids;
    } else {
      for (int id : out_ids) {
        ColumnInfo info = s_.column(id);
        node->ids.push_back(s_.AddColumn(std::move(info)));
      }
    }
    for (size_t i = 0; i < width; ++i) left.columns[i].id = node->ids[i];
    left.root = std::move(node);
  }
  out.root = std::move(left.root);
  return out;
}

Status Binder::SortByOutput(const ast::SelectStmt& select, BoundQuery* query) {
  if (select.order_by.empty()) return Status();
  auto sort = std::make_unique<LogicalSort>();
  for (const ast::SortBy& item : select.order_by) {
    std::optional<size_t> found;
    if (std::optional<int> position = PositionOf(*item.expr)) {
      if (*position < 1 || *position > static_cast<int>(query->columns.size())) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidColumnReference,
                        "ORDER BY position {} is not in select list", *position)
            .WithLocation(item.expr->location);
      }
      found = static_cast<size_t>(*position) - 1;
    } else if (const std::string* name = PlainName(*item.expr)) {
      for (size_t i = 0; i < query->columns.size() && !found.has_value(); ++i) {
        if (query->columns[i].name == *name) found = i;
      }
      if (!found.has_value()) {
        return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn, "column \"{}\" does not exist",
                        *name)
            .WithLocation(item.expr->location);
      }
    } else {
      return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                      "invalid UNION/INTERSECT/EXCEPT ORDER BY clause")
          .WithDetail("Only result column names can be used, not expressions or functions.")
          .WithHint(
              "Add the expression/function to every SELECT, or move the UNION into a FROM clause.")
          .WithLocation(ExprLocation(*item.expr));
    }
    CELLAR_TRY_ASSIGN(SortKey key, MakeSortKey(item, s_.ColumnExpr(query->columns[*found].id,
                                                                   ExprLocation(*item.expr))));
    sort->keys.push_back(std::move(key));
  }
  query->root = Wrap(std::move(sort), std::move(query->root));
  return Status();
}

Status Binder::AddLimit(const ast::SelectStmt& select, const Scope* outer, BoundQuery* query) {
  if (select.limit == nullptr && select.offset == nullptr) return Status();
  auto node = std::make_unique<LogicalLimit>();
  auto bind = [&](const ast::Expr& expr, std::string_view clause, Place place,
                  ExprPtr* out) -> Status {
    Scope scope;
    scope.parent = outer;
    Env env;
    env.scope = &scope;
    env.place = place;
    Result<ExprPtr> bound = BindExpr(expr, env);
    if (!bound.ok()) {
      if (bound.status().sqlstate() == sqlstate::kUndefinedColumn) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidColumnReference,
                        "argument of {} must not contain variables", clause)
            .WithLocation(ExprLocation(expr));
      }
      return std::move(bound).status();
    }
    Type from = (*bound)->type;
    Type wanted = MakeType(TypeId::kInt8);
    if (from.id != TypeId::kUnknown && !CanCast(from, wanted, CastContext::kAssignment)) {
      return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                      "argument of {} must be type bigint, not type {}", clause, FormatType(from))
          .WithLocation(ExprLocation(expr));
    }
    CELLAR_TRY_ASSIGN(
        *out, Coerce(std::move(*bound), wanted, CastContext::kAssignment, ExprLocation(expr)));
    return Status();
  };
  if (select.limit != nullptr)
    CELLAR_TRY(bind(*select.limit, "LIMIT", Place::kLimit, &node->limit));
  if (select.offset != nullptr) {
    CELLAR_TRY(bind(*select.offset, "OFFSET", Place::kOffset, &node->offset));
  }
  // Values that are computed behind the sort lie over it.
  const Logical* sorted = query->root.get();
  while (sorted->kind == LogicalKind::kProject) sorted = sorted->children[0].get();
  if (select.with_ties && sorted->kind == LogicalKind::kSort) {
    if (node->limit != nullptr && IsConstant(*node->limit) && node->limit->constant.is_null()) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidRowCountInLimit,
                      "row count cannot be null in FETCH FIRST ... WITH TIES clause")
          .WithLocation(ExprLocation(*select.limit));
    }
    for (const SortKey& key : sorted->As<LogicalSort>().keys) {
      node->ties.push_back(key.expr->index);
    }
  }
  query->root = Wrap(std::move(node), std::move(query->root));
  return Status();
}

Status Binder::BindWith(const ast::WithClause& with, const Scope* outer) {
  size_t first = cte_names_.size();
  for (const ast::CommonTableExpr& cte : with.ctes) {
    for (size_t i = first; i < cte_names_.size(); ++i) {
      if (cte_names_[i].name == cte.name) {
        return SqlError(Code::kInvalid, sqlstate::kDuplicateAlias,
                        "WITH query name \"{}\" specified more than once", cte.name)
            .WithLocation(cte.location);
      }
    }
    if (cte.has_search || cte.has_cycle) {
      return UnsupportedError("SEARCH and CYCLE clauses are not supported")
          .WithLocation(cte.location);
    }
    CELLAR_TRY_ASSIGN(int index, BindCte(cte, with.recursive, outer));
    CteName name;
    name.name = cte.name;
    name.cte = index;
    name.definition = &cte;
    name.outer = outer;
    name.recursive = with.recursive;
    cte_names_.push_back(std::move(name));
  }
  return Status();
}

Result<int> Binder::BindCte(const ast::CommonTableExpr& cte, bool recursive, const Scope* outer) {
  Cte out;
  out.name = cte.name;
  BoundQuery query;
  if (cte.query->kind == ast::NodeKind::kSelect) {
    const auto& select = cte.query->As<ast::SelectStmt>();
    bool may_recurse =
        recursive && select.set_op == ast::SetOp::kUnion && select.operands.size() >= 2;
    const auto bind = [&]() -> Result<BoundQuery> {
      if (may_recurse) return BindRecursive(cte, select, outer);
      if (!recursive) return BindSelect(select, outer);
      CteName self;
      self.name = cte.name;
      self.is_work_table = self.no_union = true;
      cte_names_.push_back(std::move(self));
      Result<BoundQuery> bound = BindSelect(select, outer);
      cte_names_.pop_back();
      return bound;
    };
    CELLAR_TRY_ASSIGN(query, bind());
    out.inlinable =
        cte.materialize != ast::CteMaterialize::kAlways && !ContainsVolatile(s_, *query.root);
  } else {
    if (outer != nullptr || query_depth_ > 1 || view_depth_ > 0) {
      return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                      "WITH clause containing a data-modifying statement must be at the top level")
          .WithLocation(cte.location);
    }
    out.modifying = true;
    query_depth_ += 2;
    CELLAR_TRY_ASSIGN(query, BindStatement(*cte.query, nullptr));
    query_depth_ -= 2;
  }
  if (cte.columns.size() > query.columns.size()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidColumnReference,
                    "WITH query \"{}\" has {} columns available but {} columns specified", cte.name,
                    query.columns.size(), cte.columns.size())
        .WithLocation(cte.location);
  }
  for (size_t i = 0; i < cte.columns.size(); ++i) query.columns[i].name = cte.columns[i];
  out.columns = std::move(query.columns);
  out.root = std::move(query.root);
  s_.ctes.push_back(std::move(out));
  return static_cast<int>(s_.ctes.size()) - 1;
}

Result<BoundQuery> Binder::BindRecursive(const ast::CommonTableExpr& cte,
                                         const ast::SelectStmt& select, const Scope* outer) {
  size_t visible = cte_names_.size();
  if (select.with != nullptr) CELLAR_TRY(BindWith(*select.with, outer));
  std::vector<BoundQuery> inputs;
  size_t n = select.operands.size();
  int work_table = s_.work_tables++;
  bool referenced = false;
  BoundQuery out;
  recursion_places_.push_back("");
  for (size_t q = 0; q < n; ++q) {
    bool last = q + 1 == n;
    if (last) {
      for (size_t i = 0; i < inputs[0].columns.size(); ++i) {
        Type type = s_.column(inputs[0].columns[i].id).type;
        for (size_t k = 1; k < q; ++k) {
          const Type pair[2] = {type, s_.column(inputs[k].columns[i].id).type};
          PLAN_TRY_ASSIGN_AT(type, CommonType(pair, "UNION"), select.operands[k]->location);
        }
        for (size_t k = 0; k < q; ++k) {
          CELLAR_TRY(CoerceColumn(&inputs[k], i, type, CastContext::kImplicit, -1));
        }
      }
      // The recursive term sees the columns as the terms before it made them.
      CteName name;
      name.name = cte.name;
      name.is_work_table = true;
      name.work_table = work_table;
      name.referenced = &referenced;
      name.recursion = recursion_places_.size() - 1;
      for (size_t i = 0; i < inputs[0].columns.size(); ++i) {
        QueryColumn column = inputs[0].columns[i];
        if (i < cte.columns.size()) column.name = cte.columns[i];
        name.columns.push_back(std::move(column));
      }
      cte_names_.push_back(std::move(name));
    } else {
      CteName name;
      name.name = cte.name;
      name.is_work_table = name.too_early = true;
      cte_names_.push_back(std::move(name));
    }
    CELLAR_TRY_ASSIGN(BoundQuery query,
                      BindSelect(*select.operands[q], outer, /*resolve_unknowns=*/q == 0));
    cte_names_.pop_back();
    if (!inputs.empty() && query.columns.size() != inputs[0].columns.size()) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                      "each UNION query must have the same number of columns")
          .WithLocation(select.operands[q]->location);
    }
    inputs.push_back(std::move(query));
  }
  recursion_places_.pop_back();
  if (referenced) {
    const std::string_view clause = !select.order_by.empty()   ? "ORDER BY"
                                    : select.offset != nullptr ? "OFFSET"
                                    : select.limit != nullptr  ? "LIMIT"
                                    : !select.locking.empty()  ? "FOR UPDATE/SHARE"
                                                               : "";
    if (!clause.empty()) {
      return UnsupportedError("{} in a recursive query is not implemented", clause)
          .WithLocation(select.location);
    }
  }
  // Where nothing recurs the columns have the types that UNION finds, else those of the first term.
  std::vector<Type> firsts;
  for (size_t i = 0; i < inputs[0].columns.size(); ++i) {
    Type type = s_.column(inputs[0].columns[i].id).type;
    for (size_t q = 1; q < n && !referenced; ++q) {
      const Type pair[2] = {type, s_.column(inputs[q].columns[i].id).type};
      PLAN_TRY_ASSIGN_AT(type, CommonType(pair, "UNION"), select.operands[q]->location);
    }
    firsts.push_back(type);
  }
  std::vector<std::vector<int>> ids;
  for (size_t q = 0; q < n; ++q) {
    for (size_t i = 0; i < inputs[0].columns.size(); ++i) {
      const Type first = firsts[i];
      Type own = s_.column(inputs[q].columns[i].id).type;
      if (own.id != TypeId::kUnknown && !own.SameKind(first)) {
        Type pair[2] = {first, own};
        Result<Type> common = CommonType(pair, "UNION");
        if (referenced && (!common.ok() || !common->SameKind(first))) {
          return SqlError(
                     Code::kInvalid, sqlstate::kDatatypeMismatch,
                     "recursive query \"{}\" column {} has type {} in non-recursive term but type "
                     "{} overall",
                     cte.name, i + 1, FormatType(first), FormatType(common.ok() ? *common : own))
              .WithHint("Cast the output of the non-recursive term to the correct type.");
        }
      }
      Type plain = first;
      if (own != first) plain.modifier = -1;
      CELLAR_TRY(CoerceColumn(&inputs[q], i, plain, CastContext::kImplicit, -1));
    }
    std::vector<int> own;
    for (const QueryColumn& column : inputs[q].columns) own.push_back(column.id);
    ids.push_back(std::move(own));
  }
  std::vector<int> out_ids;
  for (const QueryColumn& column : inputs[0].columns) {
    ColumnInfo info;
    info.name = column.name;
    info.type = s_.column(column.id).type;
    info.record = s_.column(column.id).record;
    int id = s_.AddColumn(std::move(info));
    out_ids.push_back(id);
    out.columns.push_back({column.name, id});
  }
  if (!referenced) {
    auto append = std::make_unique<LogicalAppend>();
    append->ids = out_ids;
    append->inputs = std::move(ids);
    for (BoundQuery& query : inputs) append->children.push_back(std::move(query.root));
    out.root = std::move(append);
    if (!select.set_all) {
      auto distinct = std::make_unique<LogicalDistinct>();
      distinct->on = out_ids;
      out.root = Wrap(std::move(distinct), std::move(out.root));
    }
  } else {
    auto node = std::make_unique<LogicalRecursiveUnion>();
    node->work_table = work_table;
    node->all = select.set_all;
    node->ids = out_ids;
    if (n == 2) {
      node->inputs.push_back(ids[0]);
      node->children.push_back(std::move(inputs[0].root));
    } else {
      auto append = std::make_unique<LogicalAppend>();
      for (int id : out_ids) {
        ColumnInfo info = s_.column(id);
        append->ids.push_back(s_.AddColumn(std::move(info)));
      }
      for (size_t q = 0; q + 1 < n; ++q) {
        append->inputs.push_back(ids[q]);
        append->children.push_back(std::move(inputs[q].root));
      }
      node->inputs.push_back(append->ids);
      node->children.push_back(std::move(append));
    }
    node->inputs.push_back(ids[n - 1]);
    node->children.push_back(std::move(inputs[n - 1].root));
    out.root = std::move(node);
  }
  CELLAR_TRY(SortByOutput(select, &out));
  CELLAR_TRY(AddLimit(select, outer, &out));
  cte_names_.erase(cte_names_.begin() + static_cast<long>(visible), cte_names_.end());
  return out;
}

}  // namespace cellar::sql::planning
