// SELECT: targets, grouping, ordering, DISTINCT, windows, row locks.
#include <algorithm>

#include "cellar/sql/parser/deparse.h"
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

}  // namespace

LogicalPtr Wrap(std::unique_ptr<Logical> node, LogicalPtr child) {
  node->children.push_back(std::move(child));
  return node;
}

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
  CELLAR_TRY(CheckAgreed(*expr));
  key.expr = std::move(expr);
  return key;
}

Result<BoundQuery> Binder::BindSelect(const ast::SelectStmt& select, const Scope* outer,
                                      bool resolve_unknowns) {
  CELLAR_TRY(CheckStack());
  CELLAR_TRY(s_.CheckCancel());
  if (select.into != nullptr) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "SELECT ... INTO is not allowed here")
        .WithLocation(select.location);
  }
  size_t visible = cte_names_.size();
  ++query_depth_;
  if (select.with != nullptr) CELLAR_TRY(BindWith(*select.with, outer));
  Result<BoundQuery> out = BindQueryBody(select, outer, resolve_unknowns);
  --query_depth_;
  if (select.with != nullptr) {
    cte_names_.erase(cte_names_.begin() + static_cast<long>(visible), cte_names_.end());
  }
  return out;
}

Result<BoundQuery> Binder::BindQueryBody(const ast::SelectStmt& select, const Scope* outer,
                                         bool resolve_unknowns) {
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

namespace {

// By the name of its relation, which a join may hide; without one where columns were merged.
void AppendStarColumn(const Scope& scope, const ScopeItem& item, const ScopeColumn& column,
                      std::string* text) {
  const ScopeItem* named = item.name.empty() ? nullptr : &item;
  for (const ScopeItem* other : scope.items) {
    if (named != nullptr) break;
    if (other->name.empty() || !other->relation_visible) continue;
    const bool holds = std::any_of(
        other->columns.begin(), other->columns.end(),
        [&](const ScopeColumn& its) { return its.id == column.id && its.name == column.name; });
    if (holds) named = other;
  }
  if (!text->empty()) *text += ", ";
  if (named != nullptr) *text += QuoteIdentifier(named->name) + ".";
  *text += QuoteIdentifier(column.name);
}

}  // namespace

Status Binder::ExpandStar(const ast::ColumnRef& ref, Env& env, std::vector<Target>* out) {
  const bool note = s_.context.star_uses != nullptr && view_depth_ == 0;
  StarUse use{ref.location, {}};
  auto add = [&](const ScopeItem& item, const ScopeColumn& column) -> Status {
    if (column.hidden) return Status();
    if (note) AppendStarColumn(*env.scope, item, column, &use.columns);
    Target target;
    target.name = column.name;
    CELLAR_TRY_ASSIGN(target.expr, ColumnFromScope(column, ref.location));
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
      for (const ScopeColumn& column : item->columns) CELLAR_TRY(add(*item, column));
    }
    if (note) s_.context.star_uses->push_back(std::move(use));
    return Status();
  }
  const std::string& name = ref.parts.back();
  const std::string* schema = ref.parts.size() > 1 ? &ref.parts[ref.parts.size() - 2] : nullptr;
  for (const Scope* scope = env.scope; scope != nullptr; scope = scope->parent) {
    for (const ScopeItem* item : scope->items) {
      if (!item->relation_visible || item->name != name) continue;
      if (schema != nullptr && item->schema != *schema) continue;
      for (const ScopeColumn& column : item->columns) CELLAR_TRY(add(*item, column));
      if (note) s_.context.star_uses->push_back(std::move(use));
      return Status();
    }
  }
  return SqlError(Code::kInvalid, sqlstate::kUndefinedTable,
                  "missing FROM-clause entry for table \"{}\"", name)
      .WithLocation(ref.location);
}

Status Binder::CheckEntries(size_t entries, const char* what) {
  // PostgreSQL's MaxTupleAttributeNumber.
  constexpr size_t kMostEntries = 1664;
  if (entries <= kMostEntries) return Status();
  return SqlError(Code::kLimit, sqlstate::kTooManyColumns, "{} can have at most {} entries", what,
                  kMostEntries);
}

Status Binder::BindTargets(const ast::TargetList& targets, Env& env, std::vector<Target>* out) {
  CELLAR_TRY(CheckEntries(targets.size(), "target lists"));
  CELLAR_TRY(AddTargets(targets, env, out));
  return CheckEntries(out->size(), "target lists");
}

Status Binder::AddTargets(const ast::TargetList& targets, Env& env, std::vector<Target>* out) {
  for (const ast::SelectTarget& item : targets) {
    if (item.expr->kind == ast::NodeKind::kColumnRef && item.expr->As<ast::ColumnRef>().star) {
      CELLAR_TRY(ExpandStar(item.expr->As<ast::ColumnRef>(), env, out));
      continue;
    }
    if (item.expr->kind == ast::NodeKind::kIndirection) {
      // (row).*
      const auto& indirection = item.expr->As<ast::IndirectionExpr>();
      if (indirection.steps.back().step_kind == ast::IndirectionStep::Kind::kStar) {
        CELLAR_TRY(ExpandRecord(indirection, env, out));
        continue;
      }
    }
    Target target;
    CELLAR_TRY_ASSIGN(target.expr, BindExpr(*item.expr, env));
    target.name = item.name.empty() ? OutputName(*item.expr) : item.name;
    if (s_.context.name_uses != nullptr && view_depth_ == 0 && item.name.empty()) {
      for (NameUse& use : *s_.context.name_uses) {
        if (use.location == item.expr->location && use.column.value != 0) use.gives_name = true;
      }
    }
    target.ast = item.expr.get();
    target.location = item.location;
    out->push_back(std::move(target));
  }
  return Status();
}

Status Binder::ReplaceKeys(ExprPtr* expr, const std::vector<ExprPtr>& keys,
                           const std::vector<int>& key_ids, const std::vector<size_t>& order) {
  if ((*expr)->kind == ExprKind::kColumn || (*expr)->kind == ExprKind::kConstant) return Status();
  for (const size_t i : order) {
    if (keys[i]->kind != ExprKind::kColumn && ExprEquals(**expr, *keys[i])) {
      *expr = s_.ColumnExpr(key_ids[i], (*expr)->location);
      return Status();
    }
  }
  for (ExprPtr& arg : (*expr)->args) CELLAR_TRY(ReplaceKeys(&arg, keys, key_ids, order));
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
      node->frames.push_back(std::move(block.windows[j].spec.frame));
    }
    node->partition_by = std::move(block.windows[i].spec.partition_by);
    node->order_by = std::move(block.windows[i].spec.order_by);
    root = Wrap(std::move(node), std::move(root));
  }
  return root;
}

Result<BoundQuery> Binder::BindPlainSelect(const ast::SelectStmt& select, const Scope* outer,
                                           bool resolve_unknowns) {
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

  // The target that is written like this, among those that are not told by their bound form: with
  // subqueries, and constants.
  auto target_like = [&](const ast::Expr& expr, bool windows = false) -> std::optional<size_t> {
    std::string text;
    for (size_t i = 0; i < targets.size(); ++i) {
      const Target& target = targets[i];
      if (target.ast == nullptr || target.ast->kind != expr.kind) continue;
      // Two bindings of a subquery, or of a window with one, are not equal as expressions.
      if (!windows && !IsConstant(*target.expr) && !HasSubplan(*target.expr)) continue;
      if (text.empty()) text = DeparseExpr(expr);
      if (DeparseExpr(*target.ast) == text) return i;
    }
    return std::nullopt;
  };

  // GROUP BY: input columns come before output names.
  std::vector<ExprPtr> keys;
  std::vector<size_t> key_targets;  // the target that each key is; kNoTarget: none
  constexpr size_t kNoTarget = SIZE_MAX;
  std::vector<std::vector<int>> sets;
  std::vector<std::string> key_texts;  // of keys with subqueries
  AddKeys add_keys = [&](const ast::Expr& expr) -> Result<std::vector<int>> {
    env.place = Place::kGroupBy;
    if (expr.kind == ast::NodeKind::kRow && !expr.As<ast::RowExpr>().explicit_row &&
        !ExpandsRecords(expr.As<ast::RowExpr>().args)) {
      // (a, b) is a list of keys.
      std::vector<int> places;
      for (const ast::ExprPtr& arg : expr.As<ast::RowExpr>().args) {
        CELLAR_TRY_ASSIGN(const std::vector<int> inner, add_keys(*arg));
        places.insert(places.end(), inner.begin(), inner.end());
      }
      return places;
    }
    std::optional<size_t> target;
    bool input_column = false;
    if (const std::string* name = PlainName(expr)) {
      for (const ScopeItem* item : block.scope.items) {
        if (!item->columns_visible) continue;
        for (const ScopeColumn& column : item->columns) input_column |= column.name == *name;
      }
    }
    CELLAR_TRY(output_target(expr, "GROUP BY", !input_column, &target));
    if (!target.has_value()) target = target_like(expr);
    ExprPtr key;
    if (target.has_value()) {
      key = CloneExpr(*targets[*target].expr);
      IdSet used = IdsOf(s_, *key);
      for (const BoundAggregate& aggregate : block.aggregates) {
        if (used.Has(aggregate.id)) {
          return SqlError(Code::kInvalid, sqlstate::kGroupingError,
                          "aggregate functions are not allowed in GROUP BY")
              .WithLocation(expr.location);
        }
      }
    } else {
      CELLAR_TRY_ASSIGN(key, BindExpr(expr, env));
      CELLAR_TRY_ASSIGN(key, ResolveUnknown(std::move(key)));
    }
    std::vector<int> places;
    // With grouping sets a key is the target that it names, or the first that is like it: two
    // targets of one expression may be NULL in different sets.
    auto add_key = [&](ExprPtr one, size_t named) {
      if (!select.has_grouping_sets) named = kNoTarget;
      for (size_t i = 0; i < visible && named == kNoTarget && select.has_grouping_sets; ++i) {
        if (ExprEquals(*targets[i].expr, *one) && !IsConstant(*one)) named = i;
      }
      size_t k = 0;
      while (k < keys.size() &&
             (key_targets[k] != named || (named == kNoTarget && !ExprEquals(*keys[k], *one)))) {
        ++k;
      }
      places.push_back(static_cast<int>(k));
      if (k < keys.size()) return;
      key_texts.push_back(HasSubplan(*one) ? DeparseExpr(expr) : std::string());
      keys.push_back(std::move(one));
      key_targets.push_back(named);
    };
    add_key(std::move(key), target.value_or(kNoTarget));
    return places;
  };
  CELLAR_TRY(BindGroupBy(select, add_keys, &sets));

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
    if (!found.has_value()) found = target_like(expr, expr.kind != ast::NodeKind::kColumnRef);
    if (!found.has_value()) {
      env.place = place;
      CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(expr, env));
      CELLAR_TRY_ASSIGN(bound, ResolveUnknown(std::move(bound)));
      for (size_t i = 0; i < targets.size() && !found.has_value(); ++i) {
        if (ExprEquals(*targets[i].expr, *bound)) found = i;
      }
      if (!found.has_value()) {
        Target target;
        target.name = "?column?";
        target.location = ExprLocation(expr);
        target.expr = std::move(bound);
        target.ast = &expr;
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
  for (const OrderItem& item : order) CELLAR_TRY(CheckAgreed(*targets[item.target].expr));
  for (const ExprPtr& key : keys) CELLAR_TRY(CheckAgreed(*key));
  if (select.distinct && select.distinct_on.empty()) {
    for (size_t i = 0; i < visible; ++i) CELLAR_TRY(CheckAgreed(*targets[i].expr));
  }
  std::vector<size_t> distinct_on;
  for (const ast::ExprPtr& expr : select.distinct_on) {
    size_t index = 0;
    CELLAR_TRY(find_or_add_target(*expr, "SELECT DISTINCT ON", Place::kDistinctOn, &index));
    CELLAR_TRY(CheckAgreed(*targets[index].expr));
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

  for (const ScopeItem* item : block.scope.items) {
    if (!item->work_table || block.aggregates.empty()) continue;
    return SqlError(Code::kInvalid, "42P19",
                    "aggregate functions are not allowed in a recursive query's recursive term")
        .WithLocation(select.location);
  }
  env.place = Place::kSelect;
  CELLAR_TRY(CheckWindows(select, env));
  CELLAR_TRY_ASSIGN(std::unique_ptr<LogicalLock> lock, Lock(select, block));

  // Set-returning functions that are grouped by run below the grouping, others above it.
  IdSet early;
  for (const ExprPtr& key : keys) AddIds(s_, *key, &early);
  if (!keys.empty()) {
    CELLAR_TRY_ASSIGN(root, AddSetFunctions(block, std::move(root), &early));
  }

  CELLAR_TRY_ASSIGN(auto groupings, PlaceGroupings(block, keys));
  if (!groupings.empty() && sets.empty()) {
    // GROUPING() of a plain GROUP BY: all keys are one set.
    sets.emplace_back();
    for (size_t k = 0; k < keys.size(); ++k) sets[0].push_back(static_cast<int>(k));
  }
  // Keys of sets are NULL in other sets, so that they are not the columns they are made of.
  const bool by_sets = !sets.empty();
  if (!keys.empty() || by_sets || !block.aggregates.empty() || having != nullptr) {
    IdSet local;
    AddProduced(*root, &local);
    IdSet allowed;
    auto aggregate = std::make_unique<LogicalAggregate>();
    std::vector<int> key_ids;
    IdSet in_all;  // columns by which every set groups
    for (size_t k = 0; k < keys.size(); ++k) {
      const ExprPtr& key = keys[k];
      const bool column = key->kind == ExprKind::kColumn;
      bool common = column;
      for (const std::vector<int>& set : sets) {
        common = common && std::binary_search(set.begin(), set.end(), static_cast<int>(k));
      }
      if (common) in_all.Add(key->index);
      // A column of an outer query keeps its id for that query.
      const bool own = column && local.Has(key->index);
      if (own) allowed.Add(key->index);
      if (own && !by_sets) {
        key_ids.push_back(key->index);
      } else {
        ColumnInfo info;
        info.name = column ? s_.column(key->index).name : "?column?";
        if (column) info.qualifier = s_.column(key->index).qualifier;
        info.type = key->type;
        info.record = ShapeOf(*key);
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
          have = have || (item->get->columns[i] == column.column && in_all.Has(item->get->ids[i]));
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
      for (ExprPtr* offset : {&window.spec.frame.start_offset, &window.spec.frame.end_offset}) {
        if (*offset != nullptr) above.push_back(offset);
      }
    }
    // Keys that are targets are those alone. What else is like several keys means the first target
    // among them.
    std::vector<size_t> in_order(keys.size());
    for (size_t k = 0; k < keys.size(); ++k) in_order[k] = k;
    std::stable_sort(in_order.begin(), in_order.end(),
                     [&](size_t a, size_t b) { return key_targets[a] < key_targets[b]; });
    for (size_t k = 0; k < keys.size(); ++k) {
      if (key_targets[k] != kNoTarget) targets[key_targets[k]].expr = s_.ColumnExpr(key_ids[k]);
    }
    // Subqueries about the rows that are grouped are told by their texts.
    for (size_t k = 0; k < key_texts.size(); ++k) {
      if (key_texts[k].empty() || !IdsOf(s_, *keys[k]).Intersects(local)) continue;
      for (Target& target : targets) {
        if (target.ast == nullptr || !HasSubplan(*target.expr)) continue;
        if (DeparseExpr(*target.ast) == key_texts[k]) target.expr = s_.ColumnExpr(key_ids[k]);
      }
    }
    for (ExprPtr* expr : above) {
      CELLAR_TRY(ReplaceKeys(expr, keys, key_ids, in_order));
      CELLAR_TRY(CheckUngrouped(**expr, local, with_dependent));
    }
    IdSet used;
    for (ExprPtr* expr : above) AddIds(s_, **expr, &used);
    for (int id : dependent) {
      if (used.Has(id) && !allowed.Has(id)) {
        const int place = static_cast<int>(keys.size());
        in_order.push_back(keys.size());
        keys.push_back(s_.ColumnExpr(id));
        key_ids.push_back(by_sets ? s_.AddColumn(s_.column(id)) : id);
        allowed.Add(id);
        for (std::vector<int>& set : sets) set.push_back(place);
      }
    }
    if (by_sets) {
      std::vector<ExprPtr> columns;
      std::vector<std::pair<int, const Expr*>> values;
      for (const size_t k : in_order) {
        if (keys[k]->kind != ExprKind::kColumn) continue;
        columns.push_back(s_.ColumnExpr(key_ids[k]));
        values.emplace_back(keys[k]->index, columns.back().get());
      }
      for (ExprPtr* expr : above) {
        ReplaceInSubqueries(**expr, values);
        Substitute(expr, values);
      }
    }
    aggregate->keys = std::move(keys);
    aggregate->ids = std::move(key_ids);
    for (BoundAggregate& call : block.aggregates) {
      aggregate->ids.push_back(call.id);
      aggregate->calls.push_back(std::move(call.call));
    }
    for (const BoundGrouping& grouping : block.groupings) aggregate->ids.push_back(grouping.id);
    aggregate->sets = std::move(sets);
    aggregate->groupings = std::move(groupings);
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
  // What is volatile and decides neither order nor what is distinct is computed behind the sort,
  // for rows that LIMIT lets through.
  auto late = std::make_unique<LogicalProject>();
  std::vector<bool> is_late(targets.size(), false);
  if (!order.empty() && (!select.distinct || !select.distinct_on.empty())) {
    for (size_t i = 0; i < targets.size(); ++i) {
      is_late[i] = IsVolatile(s_, *targets[i].expr);
    }
    for (const OrderItem& item : order) is_late[item.target] = false;
    for (const size_t target : distinct_on) is_late[target] = false;
  }
  std::vector<int> target_ids;
  // A column of an outer query gets an id of its own here: an outer join around this query may null
  // it.
  IdSet own;
  AddProduced(*root, &own);
  // Each output column has an id of its own: those above tell them apart, whatever they are made
  // of.
  auto id_of = [&](ExprPtr expr, const std::string& name, LogicalProject* in) {
    if (expr->kind == ExprKind::kColumn && own.Has(expr->index)) {
      const int id = expr->index;
      own.Remove(id);
      return id;
    }
    ColumnInfo info = InfoOf(name, *expr);
    if (expr->kind == ExprKind::kColumn) {
      const ColumnInfo& of = s_.column(expr->index);
      info.table_oid = of.table_oid;
      info.attnum = of.attnum;
      info.not_null = of.not_null;
    }
    int id = s_.AddColumn(std::move(info));
    in->ids.push_back(id);
    in->exprs.push_back(std::move(expr));
    return id;
  };
  for (size_t i = 0; i < targets.size(); ++i) {
    Target& target = targets[i];
    QueryColumn column;
    column.name = target.name;
    column.id = id_of(std::move(target.expr), target.name, is_late[i] ? late.get() : project.get());
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
  // Behind the sort, as rows come to be returned; LIMIT is above.
  if (lock != nullptr) root = Wrap(std::move(lock), std::move(root));
  if (!late->ids.empty()) root = Wrap(std::move(late), std::move(root));
  query.root = std::move(root);
  return query;
}

}  // namespace cellar::sql::planning
