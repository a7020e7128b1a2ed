// SELECT, VALUES, set operations and WITH.
#include <algorithm>

#include "cellar/sql/plan/binder.h"

namespace cellar::sql::planning {

namespace {

// PostgreSQL's FigureColname: 2 is a good name, 1 a poor one (a type, "case"), 0 none.
int FigureName(const ast::Expr& expr, std::string* name) {
  using ast::NodeKind;
  auto set = [name](std::string_view text, int strength) {
    *name = text;
    return strength;
  };
  switch (expr.kind) {
    case NodeKind::kColumnRef: {
      const auto& ref = expr.As<ast::ColumnRef>();
      if (ref.star || ref.parts.empty()) return 0;
      return set(ref.parts.back(), 2);
    }
    case NodeKind::kIndirection: {
      const auto& n = expr.As<ast::IndirectionExpr>();
      for (size_t i = n.steps.size(); i-- > 0;) {
        if (n.steps[i].step_kind == ast::IndirectionStep::Kind::kField)
          return set(n.steps[i].field, 2);
      }
      return FigureName(*n.arg, name);
    }
    case NodeKind::kFuncCall: return set(expr.As<ast::FuncCall>().name.name, 2);
    case NodeKind::kNullIf: return set("nullif", 2);
    case NodeKind::kCoalesce: return set("coalesce", 2);
    case NodeKind::kMinMax:
      return set(expr.As<ast::MinMaxExpr>().greatest ? "greatest" : "least", 2);
    case NodeKind::kArray: return set("array", 2);
    case NodeKind::kRow: return set("row", 2);
    case NodeKind::kGroupingFunc: return set("grouping", 2);
    case NodeKind::kCollate: return FigureName(*expr.As<ast::CollateExpr>().arg, name);
    case NodeKind::kTypeCast: {
      const auto& n = expr.As<ast::TypeCast>();
      int strength = FigureName(*n.arg, name);
      if (strength > 1) return strength;
      return set(n.type.name.name, 1);
    }
    case NodeKind::kCase: {
      const auto& n = expr.As<ast::CaseExpr>();
      int strength = n.default_result != nullptr ? FigureName(*n.default_result, name) : 0;
      if (strength > 1) return strength;
      return set("case", 1);
    }
    case NodeKind::kSqlValueFunction: {
      static constexpr std::string_view kNames[] = {
          "current_date",   "current_time",    "current_timestamp", "localtime",
          "localtimestamp", "current_role",    "current_user",      "user",
          "session_user",   "current_catalog", "current_schema"};
      return set(kNames[static_cast<size_t>(expr.As<ast::SqlValueFunction>().function)], 2);
    }
    case NodeKind::kSubLink: {
      const auto& n = expr.As<ast::SubLink>();
      if (n.sub_kind == ast::SubLinkKind::kExists) return set("exists", 2);
      if (n.sub_kind == ast::SubLinkKind::kArray) return set("array", 2);
      if (n.sub_kind != ast::SubLinkKind::kExpr) return 0;
      const ast::SelectStmt* select = n.select.get();
      while (select->set_op != ast::SetOp::kNone) select = select->operands[0].get();
      if (select->targets.empty()) {
        if (select->values.empty()) return 0;
        return set("column1", 2);
      }
      if (!select->targets[0].name.empty()) return set(select->targets[0].name, 2);
      return FigureName(*select->targets[0].expr, name);
    }
    default: return 0;
  }
}

std::string_view SetOpName(ast::SetOp op) {
  switch (op) {
    case ast::SetOp::kUnion: return "UNION";
    case ast::SetOp::kIntersect: return "INTERSECT";
    default: return "EXCEPT";
  }
}

LogicalPtr Wrap(std::unique_ptr<Logical> node, LogicalPtr child) {
  node->children.push_back(std::move(child));
  return node;
}

// An integer constant: a position in the output; otherwise nullopt.
std::optional<int> PositionOf(const ast::Expr& expr) {
  if (expr.kind != ast::NodeKind::kConst) return std::nullopt;
  const auto& constant = expr.As<ast::Const>();
  if (constant.const_kind != ast::ConstKind::kInteger) return std::nullopt;
  return constant.integer;
}

const std::string* PlainName(const ast::Expr& expr) {
  if (expr.kind != ast::NodeKind::kColumnRef) return nullptr;
  const auto& ref = expr.As<ast::ColumnRef>();
  if (ref.star || ref.parts.size() != 1) return nullptr;
  return &ref.parts[0];
}

bool ContainsVolatile(Logical* tree) {
  bool found = false;
  ForEachExpr(tree, [&](ExprPtr* expr) { found = found || IsVolatile(**expr); });
  for (LogicalPtr& child : tree->children) found = found || ContainsVolatile(child.get());
  if (tree->kind == LogicalKind::kGet && tree->As<LogicalGet>().lock != RowLock::kNone)
    found = true;
  return found;
}

}  // namespace

std::string OutputName(const ast::Expr& expr) {
  std::string name;
  if (FigureName(expr, &name) == 0) return "?column?";
  return name;
}

bool Binder::NullsFirst(const ast::SortBy& sort, bool descending) {
  if (sort.nulls == ast::SortNulls::kDefault) return descending;
  return sort.nulls == ast::SortNulls::kFirst;
}

Result<SortKey> Binder::MakeSortKey(const ast::SortBy& sort, ExprPtr expr) {
  SortKey key;
  key.descending = sort.direction == ast::SortDirection::kDesc;
  if (sort.direction == ast::SortDirection::kUsing) {
    if (sort.using_op.name == ">") {
      key.descending = true;
    } else if (sort.using_op.name != "<") {
      return SqlError(Code::kInvalid, sqlstate::kWrongObjectType,
                      "operator {} is not a valid ordering operator", sort.using_op.name)
          .WithLocation(sort.location);
    }
  }
  key.nulls_first = NullsFirst(sort, key.descending);
  if (LessOperator(expr->type) == nullptr && expr->type.id != TypeId::kRecord) {
    return SqlError(Code::kInvalid, sqlstate::kUndefinedFunction,
                    "could not identify an ordering operator for type {}", FormatType(expr->type))
        .WithHint("Use an explicit ordering operator or modify the query.")
        .WithLocation(expr->location);
  }
  key.expr = std::move(expr);
  return key;
}

Result<BoundQuery> Binder::BindSelect(const ast::SelectStmt& select, const Scope* outer,
                                      bool resolve_unknowns) {
  CELLAR_TRY(CheckStack());
  if (select.into != nullptr) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "SELECT ... INTO is not allowed here")
        .WithLocation(select.location);
  }
  size_t visible = cte_names_.size();
  if (select.with != nullptr) CELLAR_TRY(BindWith(*select.with, outer));
  Result<BoundQuery> out = BindQueryBody(select, outer, resolve_unknowns);
  if (select.with != nullptr) {
    cte_names_.erase(cte_names_.begin() + static_cast<long>(visible), cte_names_.end());
  }
  return out;
}

Result<BoundQuery> Binder::BindQueryBody(const ast::SelectStmt& select, const Scope* outer,
                                         bool resolve_unknowns) {
  if (select.with_ties) {
    return UnsupportedError("FETCH FIRST ... WITH TIES is not supported")
        .WithLocation(select.location);
  }
  if (select.set_op != ast::SetOp::kNone) {
    CELLAR_TRY_ASSIGN(BoundQuery query, BindSetOperation(select, outer));
    if (!select.locking.empty()) {
      return UnsupportedError("FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT")
          .WithLocation(select.location);
    }
    CELLAR_TRY(SortByOutput(select, &query));
    CELLAR_TRY(AddLimit(select, outer, &query));
    return query;
  }
  if (!select.values.empty()) {
    CELLAR_TRY_ASSIGN(BoundQuery query, BindValues(select, outer, resolve_unknowns));
    CELLAR_TRY(SortByOutput(select, &query));
    CELLAR_TRY(AddLimit(select, outer, &query));
    return query;
  }
  CELLAR_TRY_ASSIGN(BoundQuery query, BindPlainSelect(select, outer, resolve_unknowns));
  CELLAR_TRY(AddLimit(select, outer, &query));
  return query;
}

Status Binder::ExpandStar(const ast::ColumnRef& ref, Env& env, std::vector<Target>* out) {
  auto add = [&](const ScopeColumn& column) -> Status {
    if (column.hidden) return Status();
    Target target;
    target.name = column.name;
    CELLAR_TRY_ASSIGN(target.expr, ColumnFromScope(column, ref.location));
    target.record = column.record;
    target.location = ref.location;
    out->push_back(std::move(target));
    return Status();
  };
  if (ref.parts.empty()) {
    if (env.scope->items.empty()) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                      "SELECT * with no tables specified is not valid")
          .WithLocation(ref.location);
    }
    for (const ScopeItem* item : env.scope->items) {
      if (!item->columns_visible) continue;
      for (const ScopeColumn& column : item->columns) CELLAR_TRY(add(column));
    }
    return Status();
  }
  const std::string& name = ref.parts.back();
  const std::string* schema = ref.parts.size() > 1 ? &ref.parts[ref.parts.size() - 2] : nullptr;
  for (const Scope* scope = env.scope; scope != nullptr; scope = scope->parent) {
    for (const ScopeItem* item : scope->items) {
      if (!item->relation_visible || item->name != name) continue;
      if (schema != nullptr && item->schema != *schema) continue;
      for (const ScopeColumn& column : item->columns) CELLAR_TRY(add(column));
      return Status();
    }
  }
  return SqlError(Code::kInvalid, sqlstate::kUndefinedTable,
                  "missing FROM-clause entry for table \"{}\"", name)
      .WithLocation(ref.location);
}

Status Binder::BindTargets(const ast::TargetList& targets, Env& env, std::vector<Target>* out) {
  for (const ast::SelectTarget& item : targets) {
    if (item.expr->kind == ast::NodeKind::kColumnRef && item.expr->As<ast::ColumnRef>().star) {
      CELLAR_TRY(ExpandStar(item.expr->As<ast::ColumnRef>(), env, out));
      continue;
    }
    if (item.expr->kind == ast::NodeKind::kIndirection) {
      // (row).*
      const auto& indirection = item.expr->As<ast::IndirectionExpr>();
      if (indirection.steps.size() == 1 &&
          indirection.steps[0].step_kind == ast::IndirectionStep::Kind::kStar) {
        CELLAR_TRY_ASSIGN(ExprPtr row, BindExpr(*indirection.arg, env));
        if (row->kind != ExprKind::kRow || row->names.empty()) {
          return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "type {} is not composite",
                          FormatType(row->type))
              .WithLocation(indirection.location);
        }
        for (size_t i = 0; i < row->args.size(); ++i) {
          Target target;
          target.name = row->names[i];
          target.expr = std::move(row->args[i]);
          target.location = item.location;
          out->push_back(std::move(target));
        }
        continue;
      }
    }
    Target target;
    CELLAR_TRY_ASSIGN(target.expr, BindExpr(*item.expr, env));
    target.name = item.name.empty() ? OutputName(*item.expr) : item.name;
    target.ast = item.expr.get();
    target.location = item.location;
    out->push_back(std::move(target));
  }
  return Status();
}

Status Binder::ReplaceKeys(ExprPtr* expr, const std::vector<ExprPtr>& keys,
                           const std::vector<int>& key_ids) {
  if ((*expr)->kind == ExprKind::kColumn || (*expr)->kind == ExprKind::kConstant) return Status();
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i]->kind != ExprKind::kColumn && ExprEquals(**expr, *keys[i])) {
      *expr = s_.ColumnExpr(key_ids[i], (*expr)->location);
      return Status();
    }
  }
  for (ExprPtr& arg : (*expr)->args) CELLAR_TRY(ReplaceKeys(&arg, keys, key_ids));
  return Status();
}

Status Binder::CheckUngrouped(const Expr& expr, const IdSet& local, const IdSet& allowed) {
  auto complain = [&](int id, int location, bool outer) -> Status {
    const ColumnInfo& info = s_.column(id);
    std::string shown = info.qualifier.empty() ? info.name : info.qualifier + "." + info.name;
    if (outer) {
      return SqlError(Code::kInvalid, sqlstate::kGroupingError,
                      "subquery uses ungrouped column \"{}\" from outer query", shown)
          .WithLocation(location);
    }
    return SqlError(Code::kInvalid, sqlstate::kGroupingError,
                    "column \"{}\" must appear in the GROUP BY clause or be used in an aggregate "
                    "function",
                    shown)
        .WithLocation(location);
  };
  if (expr.kind == ExprKind::kColumn) {
    if (local.Has(expr.index) && !allowed.Has(expr.index)) {
      return complain(expr.index, expr.location, false);
    }
    return Status();
  }
  if (expr.kind == ExprKind::kSubplan) {
    IdSet used = FreeIds(s_, *s_.subqueries[static_cast<size_t>(expr.index)].root);
    Status status;
    used.ForEach([&](int id) {
      if (status.ok() && local.Has(id) && !allowed.Has(id))
        status = complain(id, expr.location, true);
    });
    CELLAR_TRY(status);
  }
  for (const ExprPtr& arg : expr.args) CELLAR_TRY(CheckUngrouped(*arg, local, allowed));
  return Status();
}

Status Binder::Lock(const ast::SelectStmt& select, Block& block) {
  for (const ast::LockingClause& clause : select.locking) {
    static constexpr std::string_view kNames[] = {"FOR KEY SHARE", "FOR SHARE", "FOR NO KEY UPDATE",
                                                  "FOR UPDATE"};
    std::string_view name = kNames[static_cast<size_t>(clause.strength)];
    const char* with = nullptr;
    if (select.distinct) with = "DISTINCT clause";
    if (!select.group_by.empty()) with = "GROUP BY clause";
    if (select.having != nullptr) with = "HAVING clause";
    if (!block.aggregates.empty()) with = "aggregate functions";
    if (!block.windows.empty()) with = "window functions";
    if (with != nullptr) {
      return UnsupportedError("{} is not allowed with {}", name, with);
    }
    RowLock lock = clause.wait == ast::LockWait::kBlock  ? RowLock::kBlock
                   : clause.wait == ast::LockWait::kSkip ? RowLock::kSkipLocked
                                                         : RowLock::kNoWait;
    std::vector<bool> found(clause.tables.size(), false);
    for (ScopeItem* item : block.scope.items) {
      bool named = clause.tables.empty();
      for (size_t i = 0; i < clause.tables.size(); ++i) {
        if (clause.tables[i].name == item->name) named = found[i] = true;
      }
      if (named && item->get != nullptr) {
        item->get->lock = lock;
        s_.locks_rows = true;
      }
    }
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i]) {
        return SqlError(Code::kInvalid, sqlstate::kUndefinedTable,
                        "relation \"{}\" in {} clause not found in FROM clause",
                        clause.tables[i].name, name)
            .WithLocation(clause.tables[i].location);
      }
    }
  }
  return Status();
}

Result<LogicalPtr> Binder::AddSetFunctions(Block& block, LogicalPtr root, const IdSet* only) {
  int levels = 0;
  for (const BoundSetFunction& entry : block.set_functions)
    levels = std::max(levels, entry.level + 1);
  for (int level = 0; level < levels; ++level) {
    auto set = std::make_unique<LogicalProjectSet>();
    for (BoundSetFunction& entry : block.set_functions) {
      if (entry.level != level || entry.call == nullptr) continue;
      if (only != nullptr && (entry.id < 0 || !only->Has(entry.id))) continue;
      if (entry.record != nullptr) {
        auto function = std::make_unique<LogicalFunctionGet>();
        function->ids = entry.record->ids;
        function->alias = std::string(entry.call->function->name);
        function->calls.push_back(std::move(entry.call));
        auto join = std::make_unique<LogicalJoin>();
        join->children.push_back(std::move(root));
        join->children.push_back(std::move(function));
        root = std::move(join);
        continue;
      }
      set->ids.push_back(entry.id);
      set->exprs.push_back(std::move(entry.call));
    }
    if (!set->ids.empty()) root = Wrap(std::move(set), std::move(root));
  }
  return root;
}

Result<LogicalPtr> Binder::AddWindows(Block& block, LogicalPtr root) {
  // One node per distinct specification.
  std::vector<bool> done(block.windows.size(), false);
  for (size_t i = 0; i < block.windows.size(); ++i) {
    if (done[i]) continue;
    auto node = std::make_unique<LogicalWindow>();
    const WindowSpec& spec = block.windows[i].spec;
    auto same = [&](const WindowSpec& other) {
      if (spec.partition_by.size() != other.partition_by.size() ||
          spec.order_by.size() != other.order_by.size()) {
        return false;
      }
      for (size_t k = 0; k < spec.partition_by.size(); ++k) {
        if (!ExprEquals(*spec.partition_by[k], *other.partition_by[k])) return false;
      }
      for (size_t k = 0; k < spec.order_by.size(); ++k) {
        const SortKey &a = spec.order_by[k], &b = other.order_by[k];
        if (a.descending != b.descending || a.nulls_first != b.nulls_first ||
            !ExprEquals(*a.expr, *b.expr)) {
          return false;
        }
      }
      return true;
    };
    for (size_t j = i; j < block.windows.size(); ++j) {
      if (done[j] || !same(block.windows[j].spec)) continue;
      done[j] = true;
      node->ids.push_back(block.windows[j].id);
      node->calls.push_back(std::move(block.windows[j].call));
    }
    node->partition_by = std::move(block.windows[i].spec.partition_by);
    node->order_by = std::move(block.windows[i].spec.order_by);
    root = Wrap(std::move(node), std::move(root));
  }
  return root;
}

Result<BoundQuery> Binder::BindPlainSelect(const ast::SelectStmt& select, const Scope* outer,
                                           bool resolve_unknowns) {
  if (select.has_grouping_sets) {
    return UnsupportedError("GROUPING SETS, ROLLUP and CUBE are not supported")
        .WithLocation(select.location);
  }
  Block block;
  block.select = &select;
  CELLAR_TRY_ASSIGN(FromResult from, BindFromList(select.from, outer, &block));
  block.scope.parent = outer;
  block.scope.block = &block;
  block.scope.items = std::move(from.items);
  LogicalPtr root = std::move(from.root);
  Env env;
  env.scope = &block.scope;

  if (select.where != nullptr) {
    env.place = Place::kWhere;
    CELLAR_TRY_ASSIGN(ExprPtr condition, BindCondition(*select.where, env, "WHERE"));
    auto filter = std::make_unique<LogicalFilter>();
    SplitConjuncts(std::move(condition), &filter->conditions);
    if (!filter->conditions.empty()) root = Wrap(std::move(filter), std::move(root));
  }

  std::vector<Target> targets;
  env.place = Place::kSelect;
  CELLAR_TRY(BindTargets(select.targets, env, &targets));
  size_t visible = targets.size();
  if (resolve_unknowns) {
    for (Target& target : targets) {
      CELLAR_TRY_ASSIGN(target.expr, ResolveUnknown(std::move(target.expr)));
    }
  }

  // The target that an integer or an output name means; null when the expression is one of its own.
  auto output_target = [&](const ast::Expr& expr, std::string_view clause, bool names,
                           std::optional<size_t>* found) -> Status {
    if (expr.kind == ast::NodeKind::kConst) {
      std::optional<int> position = PositionOf(expr);
      if (!position.has_value()) {
        const auto& constant = expr.As<ast::Const>();
        if (constant.const_kind == ast::ConstKind::kNull ||
            constant.const_kind == ast::ConstKind::kBool) {
          return Status();
        }
        return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "non-integer constant in {}",
                        clause)
            .WithLocation(expr.location);
      }
      if (*position < 1 || *position > static_cast<int>(visible)) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidColumnReference,
                        "{} position {} is not in select list", clause, *position)
            .WithLocation(expr.location);
      }
      *found = static_cast<size_t>(*position) - 1;
      return Status();
    }
    const std::string* name = PlainName(expr);
    if (name == nullptr || !names) return Status();
    for (size_t i = 0; i < visible; ++i) {
      if (targets[i].name != *name) continue;
      if (found->has_value()) {
        if (ExprEquals(*targets[**found].expr, *targets[i].expr)) continue;
        return SqlError(Code::kInvalid, sqlstate::kAmbiguousColumn, "{} \"{}\" is ambiguous",
                        clause, *name)
            .WithLocation(expr.location);
      }
      *found = i;
    }
    return Status();
  };

  // GROUP BY: input columns come before output names.
  std::vector<ExprPtr> keys;
  for (const ast::ExprPtr& expr : select.group_by) {
    env.place = Place::kGroupBy;
    std::optional<size_t> target;
    bool input_column = false;
    if (const std::string* name = PlainName(*expr)) {
      for (const ScopeItem* item : block.scope.items) {
        if (!item->columns_visible) continue;
        for (const ScopeColumn& column : item->columns) input_column |= column.name == *name;
      }
    }
    CELLAR_TRY(output_target(*expr, "GROUP BY", !input_column, &target));
    ExprPtr key;
    if (target.has_value()) {
      key = CloneExpr(*targets[*target].expr);
      IdSet used = IdsOf(s_, *key);
      for (const BoundAggregate& aggregate : block.aggregates) {
        if (used.Has(aggregate.id)) {
          return SqlError(Code::kInvalid, sqlstate::kGroupingError,
                          "aggregate functions are not allowed in GROUP BY")
              .WithLocation(expr->location);
        }
      }
    } else {
      CELLAR_TRY_ASSIGN(key, BindExpr(*expr, env));
      CELLAR_TRY_ASSIGN(key, ResolveUnknown(std::move(key)));
    }
    auto add_key = [&](ExprPtr one) {
      for (const ExprPtr& known : keys) {
        if (ExprEquals(*known, *one)) return;
      }
      keys.push_back(std::move(one));
    };
    if (key->kind == ExprKind::kRow) {
      for (ExprPtr& field : key->args) add_key(std::move(field));
    } else {
      add_key(std::move(key));
    }
  }

  ExprPtr having;
  if (select.having != nullptr) {
    env.place = Place::kHaving;
    CELLAR_TRY_ASSIGN(having, BindCondition(*select.having, env, "HAVING"));
  }

  // ORDER BY and DISTINCT ON: output names come before input columns; what is in no target becomes
  // a hidden one.
  auto find_or_add_target = [&](const ast::Expr& expr, std::string_view clause, Place place,
                                size_t* index) -> Status {
    std::optional<size_t> found;
    CELLAR_TRY(output_target(expr, clause, true, &found));
    if (!found.has_value()) {
      env.place = place;
      CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(expr, env));
      CELLAR_TRY_ASSIGN(bound, ResolveUnknown(std::move(bound)));
      for (size_t i = 0; i < targets.size() && !found.has_value(); ++i) {
        if (ExprEquals(*targets[i].expr, *bound) && !IsVolatile(*bound)) found = i;
      }
      if (!found.has_value()) {
        Target target;
        target.name = "?column?";
        target.location = ExprLocation(expr);
        target.expr = std::move(bound);
        targets.push_back(std::move(target));
        found = targets.size() - 1;
      }
    }
    *index = *found;
    return Status();
  };
  struct OrderItem {
    size_t target;
    const ast::SortBy* sort;
  };
  std::vector<OrderItem> order;
  for (const ast::SortBy& sort : select.order_by) {
    size_t index = 0;
    CELLAR_TRY(find_or_add_target(*sort.expr, "ORDER BY", Place::kOrderBy, &index));
    if (select.distinct && select.distinct_on.empty() && index >= visible) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidColumnReference,
                      "for SELECT DISTINCT, ORDER BY expressions must appear in select list")
          .WithLocation(ExprLocation(*sort.expr));
    }
    order.push_back({index, &sort});
  }
  std::vector<size_t> distinct_on;
  for (const ast::ExprPtr& expr : select.distinct_on) {
    size_t index = 0;
    CELLAR_TRY(find_or_add_target(*expr, "SELECT DISTINCT ON", Place::kDistinctOn, &index));
    if (std::find(distinct_on.begin(), distinct_on.end(), index) == distinct_on.end()) {
      distinct_on.push_back(index);
    }
  }
  for (size_t i = 0; i < order.size() && i < distinct_on.size(); ++i) {
    if (std::find(distinct_on.begin(), distinct_on.end(), order[i].target) == distinct_on.end()) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidColumnReference,
                      "SELECT DISTINCT ON expressions must match initial ORDER BY expressions")
          .WithLocation(ExprLocation(*order[i].sort->expr));
    }
  }

  CELLAR_TRY(Lock(select, block));

  // Set-returning functions that are grouped by run below the grouping, others above it.
  IdSet early;
  for (const ExprPtr& key : keys) AddIds(s_, *key, &early);
  if (!keys.empty()) {
    CELLAR_TRY_ASSIGN(root, AddSetFunctions(block, std::move(root), &early));
  }

  if (!keys.empty() || !block.aggregates.empty() || having != nullptr) {
    IdSet local;
    AddProduced(*root, &local);
    IdSet allowed;
    auto aggregate = std::make_unique<LogicalAggregate>();
    std::vector<int> key_ids;
    for (const ExprPtr& key : keys) {
      if (key->kind == ExprKind::kColumn) {
        key_ids.push_back(key->index);
      } else {
        ColumnInfo info;
        info.name = "?column?";
        info.type = key->type;
        key_ids.push_back(s_.AddColumn(std::move(info)));
      }
      if (EqualityOperator(key->type) == nullptr && key->type.id != TypeId::kRecord) {
        return SqlError(Code::kInvalid, sqlstate::kUndefinedFunction,
                        "could not identify an equality operator for type {}",
                        FormatType(key->type))
            .WithLocation(key->location);
      }
      allowed.Add(key_ids.back());
    }
    // A table's primary key among the keys determines its other columns.
    std::vector<int> dependent;
    for (const ScopeItem* item : block.scope.items) {
      if (item->get == nullptr || item->table->indexes.empty()) continue;
      const catalog::IndexDescriptor& primary = item->table->primary();
      bool whole = !primary.key.empty();
      for (const catalog::IndexColumn& column : primary.key) {
        bool have = false;
        for (size_t i = 0; i < item->get->columns.size(); ++i) {
          have = have || (item->get->columns[i] == column.column && allowed.Has(item->get->ids[i]));
        }
        whole = whole && have;
      }
      if (whole) dependent.insert(dependent.end(), item->get->ids.begin(), item->get->ids.end());
    }
    IdSet with_dependent = allowed;
    for (int id : dependent) with_dependent.Add(id);
    std::vector<ExprPtr*> above;
    for (Target& target : targets) above.push_back(&target.expr);
    if (having != nullptr) above.push_back(&having);
    for (BoundSetFunction& entry : block.set_functions) {
      if (entry.call != nullptr) above.push_back(&entry.call);
    }
    for (BoundWindow& window : block.windows) {
      for (ExprPtr& arg : window.call.args) above.push_back(&arg);
      for (ExprPtr& arg : window.call.aggregate.args) above.push_back(&arg);
      if (window.call.aggregate.filter != nullptr) above.push_back(&window.call.aggregate.filter);
      for (ExprPtr& expr : window.spec.partition_by) above.push_back(&expr);
      for (SortKey& key : window.spec.order_by) above.push_back(&key.expr);
    }
    for (ExprPtr* expr : above) {
      CELLAR_TRY(ReplaceKeys(expr, keys, key_ids));
      CELLAR_TRY(CheckUngrouped(**expr, local, with_dependent));
    }
    IdSet used;
    for (ExprPtr* expr : above) AddIds(s_, **expr, &used);
    for (int id : dependent) {
      if (used.Has(id) && !allowed.Has(id)) {
        keys.push_back(s_.ColumnExpr(id));
        key_ids.push_back(id);
        allowed.Add(id);
      }
    }
    aggregate->keys = std::move(keys);
    aggregate->ids = std::move(key_ids);
    for (BoundAggregate& call : block.aggregates) {
      aggregate->ids.push_back(call.id);
      aggregate->calls.push_back(std::move(call.call));
    }
    root = Wrap(std::move(aggregate), std::move(root));
    if (having != nullptr) {
      auto filter = std::make_unique<LogicalFilter>();
      SplitConjuncts(std::move(having), &filter->conditions);
      if (!filter->conditions.empty()) root = Wrap(std::move(filter), std::move(root));
    }
  }
  CELLAR_TRY_ASSIGN(root, AddWindows(block, std::move(root)));
  CELLAR_TRY_ASSIGN(root, AddSetFunctions(block, std::move(root), nullptr));

  BoundQuery query;
  auto project = std::make_unique<LogicalProject>();
  std::vector<int> target_ids;
  // A column of an outer query gets an id of its own here: an outer join around this query may null
  // it.
  IdSet own;
  AddProduced(*root, &own);
  auto id_of = [&](ExprPtr expr, const std::string& name) {
    if (expr->kind == ExprKind::kColumn && own.Has(expr->index)) return expr->index;
    ColumnInfo info;
    info.name = name;
    info.type = expr->type;
    int id = s_.AddColumn(std::move(info));
    project->ids.push_back(id);
    project->exprs.push_back(std::move(expr));
    return id;
  };
  for (size_t i = 0; i < targets.size(); ++i) {
    Target& target = targets[i];
    QueryColumn column;
    column.name = target.name;
    if (target.expr->kind == ExprKind::kRow && !target.expr->names.empty()) {
      auto record = std::make_shared<RecordInfo>();
      record->names = target.expr->names;
      for (size_t k = 0; k < target.expr->args.size(); ++k) {
        record->ids.push_back(id_of(CloneExpr(*target.expr->args[k]), record->names[k]));
      }
      column.record = std::move(record);
    }
    column.id = id_of(std::move(target.expr), target.name);
    target_ids.push_back(column.id);
    if (i < visible) query.columns.push_back(std::move(column));
  }
  if (!project->ids.empty()) root = Wrap(std::move(project), std::move(root));

  std::vector<SortKey> sort_keys;
  for (const OrderItem& item : order) {
    CELLAR_TRY_ASSIGN(SortKey key,
                      MakeSortKey(*item.sort, s_.ColumnExpr(target_ids[item.target],
                                                            ExprLocation(*item.sort->expr))));
    sort_keys.push_back(std::move(key));
  }
  if (select.distinct) {
    auto distinct = std::make_unique<LogicalDistinct>();
    if (distinct_on.empty()) {
      for (size_t i = 0; i < visible; ++i) {
        Type type = s_.column(target_ids[i]).type;
        if (EqualityOperator(type) == nullptr && type.id != TypeId::kRecord &&
            type.id != TypeId::kUnknown) {
          return SqlError(Code::kInvalid, sqlstate::kUndefinedFunction,
                          "could not identify an equality operator for type {}", FormatType(type))
              .WithLocation(targets[i].location);
        }
        if (std::find(distinct->on.begin(), distinct->on.end(), target_ids[i]) ==
            distinct->on.end()) {
          distinct->on.push_back(target_ids[i]);
        }
      }
    } else {
      distinct->distinct_on = true;
      for (size_t index : distinct_on) distinct->on.push_back(target_ids[index]);
      // Which row of each group is kept follows from ORDER BY; the groups come in its order too.
      for (SortKey& key : sort_keys) {
        SortKey copy;
        copy.expr = CloneExpr(*key.expr);
        copy.descending = key.descending;
        copy.nulls_first = key.nulls_first;
        distinct->order.push_back(std::move(copy));
      }
    }
    root = Wrap(std::move(distinct), std::move(root));
  }
  if (!sort_keys.empty()) {
    auto sort = std::make_unique<LogicalSort>();
    sort->keys = std::move(sort_keys);
    root = Wrap(std::move(sort), std::move(root));
  }
  query.root = std::move(root);
  return query;
}

Result<BoundQuery> Binder::BindValues(const ast::SelectStmt& select, const Scope* outer,
                                      bool resolve_unknowns) {
  auto node = std::make_unique<LogicalValues>();
  Block block;
  block.scope.parent = outer;
  Env env;
  env.scope = &block.scope;
  env.place = Place::kValues;
  size_t width = select.values[0].size();
  for (const ast::ExprList& row : select.values) {
    if (row.size() != width) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                      "VALUES lists must all be the same length")
          .WithLocation(row.empty() ? select.location : ExprLocation(*row[0]));
    }
    std::vector<ExprPtr> bound;
    for (const ast::ExprPtr& expr : row) {
      CELLAR_TRY_ASSIGN(ExprPtr value, BindExpr(*expr, env));
      bound.push_back(std::move(value));
    }
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
    std::string name = info.name;
    int id = s_.AddColumn(std::move(info));
    node->ids.push_back(id);
    query.columns.push_back({std::move(name), id, nullptr});
  }
  query.root = std::move(node);
  return query;
}

Status Binder::CoerceColumn(BoundQuery* query, size_t i, Type to, CastContext context,
                            int location) {
  int id = query->columns[i].id;
  const Type from = s_.column(id).type;
  if (from == to || (to.modifier == -1 && from.SameKind(to))) return Status();
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
  query->columns[i].record = nullptr;
  return Status();
}

Result<BoundQuery> Binder::BindSetOperation(const ast::SelectStmt& select, const Scope* outer) {
  std::vector<BoundQuery> inputs;
  std::string_view name = SetOpName(select.set_op);
  for (const ast::SelectPtr& operand : select.operands) {
    CELLAR_TRY_ASSIGN(BoundQuery query, BindSelect(*operand, outer, /*resolve_unknowns=*/false));
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
    if (common.id == TypeId::kUnknown) common = MakeType(TypeId::kText);
    for (BoundQuery& query : inputs) {
      CELLAR_TRY(CoerceColumn(&query, i, common, CastContext::kImplicit, -1));
    }
    ColumnInfo info;
    info.name = inputs[0].columns[i].name;
    info.type = common;
    int id = s_.AddColumn(std::move(info));
    out.columns.push_back({inputs[0].columns[i].name, id, nullptr});
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
    if (may_recurse) {
      CELLAR_TRY_ASSIGN(query, BindRecursive(cte, select, outer));
    } else {
      CELLAR_TRY_ASSIGN(query, BindSelect(select, outer));
    }
    out.inlinable =
        cte.materialize != ast::CteMaterialize::kAlways && !ContainsVolatile(query.root.get());
  } else {
    if (outer != nullptr) {
      return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                      "WITH clause containing a data-modifying statement must be at the top level")
          .WithLocation(cte.location);
    }
    out.modifying = true;
    CELLAR_TRY_ASSIGN(query, BindStatement(*cte.query, nullptr));
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
  for (size_t q = 0; q < n; ++q) {
    bool last = q + 1 == n;
    if (last) {
      // The recursive term sees the columns as the terms before it made them.
      CteName name;
      name.name = cte.name;
      name.is_work_table = true;
      name.work_table = work_table;
      name.referenced = &referenced;
      for (size_t i = 0; i < inputs[0].columns.size(); ++i) {
        QueryColumn column = inputs[0].columns[i];
        if (i < cte.columns.size()) column.name = cte.columns[i];
        column.record = nullptr;
        name.columns.push_back(std::move(column));
      }
      cte_names_.push_back(std::move(name));
    }
    CELLAR_TRY_ASSIGN(BoundQuery query,
                      BindSelect(*select.operands[q], outer, /*resolve_unknowns=*/q == 0));
    if (last) cte_names_.pop_back();
    if (!inputs.empty() && query.columns.size() != inputs[0].columns.size()) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                      "each UNION query must have the same number of columns")
          .WithLocation(select.operands[q]->location);
    }
    inputs.push_back(std::move(query));
  }
  std::vector<std::vector<int>> ids;
  for (size_t q = 0; q < n; ++q) {
    for (size_t i = 0; i < inputs[0].columns.size(); ++i) {
      Type first = s_.column(inputs[0].columns[i].id).type;
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
    int id = s_.AddColumn(std::move(info));
    out_ids.push_back(id);
    out.columns.push_back({column.name, id, nullptr});
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
