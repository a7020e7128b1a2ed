// Views as targets of INSERT, UPDATE and DELETE: a simple one stands for the table below it, as in
// PostgreSQL (https://www.postgresql.org/docs/15/sql-createview.html, "Updatable Views").
#include <algorithm>

#include "cellar/sql/plan/binder.h"

namespace cellar::sql::planning {

namespace {

constexpr size_t kMaxViewLevels = 64;

std::string_view WhyNotSimple(const ast::SelectStmt& select) {
  if (select.distinct) return "Views containing DISTINCT are not automatically updatable.";
  if (!select.group_by.empty() || select.has_grouping_sets)
    return "Views containing GROUP BY are not automatically updatable.";
  if (select.having != nullptr) return "Views containing HAVING are not automatically updatable.";
  if (select.set_op != ast::SetOp::kNone) {
    return "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.";
  }
  if (select.with != nullptr) return "Views containing WITH are not automatically updatable.";
  if (select.limit != nullptr || select.offset != nullptr)
    return "Views containing LIMIT or OFFSET are not automatically updatable.";
  return {};
}

std::string_view WhyNotTargets(const Block& block) {
  if (!block.aggregates.empty())
    return "Views that return aggregate functions are not automatically updatable.";
  if (!block.windows.empty())
    return "Views that return window functions are not automatically updatable.";
  if (!block.set_functions.empty())
    return "Views that return set-returning functions are not automatically updatable.";
  return {};
}

const ast::TableRef* OnlyTable(const ast::SelectStmt& select) {
  if (select.from.size() != 1 || select.from[0]->kind != ast::NodeKind::kTableRef) return nullptr;
  return &select.from[0]->As<ast::TableRef>();
}

}  // namespace

Result<ViewShape> Binder::ShapeOf(const catalog::TablePtr& view) {
  ViewShape out;
  Result<sql::Statement> parsed = ParseOne(view->view_sql);
  if (!parsed.ok() || parsed->ast == nullptr || parsed->ast->kind != ast::NodeKind::kSelect) {
    return InternalError("the text of view \"{}\" is not a query", view->name);
  }
  out.text = std::move(parsed->ast);
  const auto& select = out.text->As<ast::SelectStmt>();
  out.why = WhyNotSimple(select);
  if (!out.why.empty()) return out;
  constexpr std::string_view kNotOne =
      "Views that do not select from a single table or view are not automatically updatable.";
  if (!select.values.empty()) {
    out.why = kNotOne;
    return out;
  }
  // What the columns are is seen by binding them, in a statement of their own.
  Statement scratch(s_.context);
  Binder binder(scratch);
  binder.view_depth_ = view_depth_ + 1;
  binder.view_ = view;
  Block block;
  block.select = &select;
  block.scope.block = &block;
  CELLAR_TRY_ASSIGN(FromResult from, binder.BindFromList(select.from, nullptr, &block));
  block.scope.items = from.items;
  Env env;
  env.scope = &block.scope;
  std::vector<Target> targets;
  CELLAR_TRY(binder.BindTargets(select.targets, env, &targets));
  out.why = WhyNotTargets(block);
  if (!out.why.empty()) return out;
  const ast::TableRef* only = OnlyTable(select);
  if (only != nullptr) {
    out.from = only;
    out.below =
        FindRelation(*s_.context.catalog, *s_.context.scope, only->name.schema, only->name.name);
  }
  if (out.below == nullptr || from.items.size() != 1 ||
      (out.below->kind != catalog::RelationKind::kTable &&
       out.below->kind != catalog::RelationKind::kView)) {
    out.why = kNotOne;
    return out;
  }
  for (const Target& target : targets) {
    const std::vector<ScopeColumn>& columns = from.items[0]->columns;
    const auto same = [&](const ScopeColumn& column) {
      return target.expr->kind == ExprKind::kColumn && column.id == target.expr->index;
    };
    const auto found = std::find_if(columns.begin(), columns.end(), same);
    out.columns.push_back(found == columns.end() ? -1 : static_cast<int>(found - columns.begin()));
    out.exprs.push_back(target.ast);
  }
  return out;
}

Result<DmlTarget> Binder::FindTarget(const ast::QualifiedName& name, Change change) {
  DmlTarget out;
  CELLAR_TRY_ASSIGN(out.table, FindTargetRelation(name));
  catalog::TablePtr outer = view_;
  std::vector<CteName> hidden;
  while (out.table->kind == catalog::RelationKind::kView) {
    ViewLevel level;
    level.view = out.table;
    if (out.views.size() == kMaxViewLevels) {
      return SqlError(Code::kLimit, sqlstate::kInvalidObjectDefinition,
                      "infinite recursion detected in rules for relation \"{}\"", name.name)
          .WithLocation(name.location);
    }
    hidden.swap(cte_names_);
    Result<ViewShape> shape = ShapeOf(level.view);
    hidden.swap(cte_names_);
    if (!shape.ok()) return std::move(shape).status().WithLocation(name.location);
    level.shape = std::move(*shape);
    std::string_view why = level.shape.why;
    const std::vector<int>& columns = level.shape.columns;
    if (why.empty() && change != Change::kDelete &&
        std::all_of(columns.begin(), columns.end(), [](int at) { return at < 0; })) {
      why = "Views that have no updatable columns are not automatically updatable.";
    }
    if (!why.empty()) {
      return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                      "cannot {} view \"{}\"",
                      change == Change::kInsert   ? "insert into"
                      : change == Change::kUpdate ? "update"
                                                  : "delete from",
                      level.view->name)
          .WithDetail(std::string(why));
    }
    UseTable(level.view);
    level.use = AddUse(level.view);
    NoteChange(level.use, change);
    view_ = level.view;
    out.table = level.shape.below;
    out.views.push_back(std::move(level));
  }
  view_ = std::move(outer);
  if (out.table->kind == catalog::RelationKind::kSequence) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "cannot change sequence \"{}\"",
                    name.name);
  }
  return out;
}

void Binder::NoteChange(int use, Change change) {
  RelationUse& noted = s_.uses[static_cast<size_t>(use)];
  noted.inserts |= change == Change::kInsert;
  noted.updates |= change == Change::kUpdate;
  noted.deletes |= change == Change::kDelete;
}

void Binder::NoteChanged(const ScopeColumn& column, Change change) {
  for (const ScopeColumn* at = &column; at != nullptr; at = at->below) {
    if (at->use < 0) continue;
    RelationUse& use = s_.uses[static_cast<size_t>(at->use)];
    (change == Change::kInsert ? use.inserted : use.updated).push_back(at->column);
  }
}

void Binder::AskAs(const DmlTarget& target, int use) {
  if (!target.views.empty()) s_.uses[static_cast<size_t>(use)].view = target.views.back().view;
}

Result<ExprPtr> Binder::BindInView(const ComputedColumn& computed, Place place) {
  Scope scope;
  scope.items.push_back(computed.below);
  Env env;
  env.scope = &scope;
  env.place = place;
  std::vector<CteName> hidden;
  hidden.swap(cte_names_);
  ++view_depth_;
  catalog::TablePtr outer = std::exchange(view_, computed.view);
  Result<ExprPtr> bound = place == Place::kWhere ? BindCondition(*computed.expr, env, "WHERE")
                                                 : BindExpr(*computed.expr, env);
  view_ = std::move(outer);
  --view_depth_;
  hidden.swap(cte_names_);
  // Positions in the view's text are not positions in the statement.
  if (!bound.ok()) return std::move(bound).status().WithLocation(-1);
  VisitExprMutable(bound->get(), [](Expr* expr) { expr->location = -1; });
  return bound;
}

Result<ScopeItem*> Binder::ThroughViews(const DmlTarget& target, ScopeItem* base,
                                        const std::string& alias,
                                        std::vector<ExprPtr>* conditions) {
  ScopeItem* below = base;
  const std::string schema = base->schema;  // of the name in the statement
  for (size_t i = target.views.size(); i-- > 0;) {
    const ViewLevel& level = target.views[i];
    const ast::TableRef& from = *level.shape.from;
    below->name = from.name.name;
    below->schema = from.name.schema.empty() ? "public" : from.name.schema;
    CELLAR_TRY(ApplyAlias(below, from.alias, -1));
    ScopeItem* item = NewItem();
    item->use = level.use;
    size_t next = 0;
    for (const catalog::ColumnDescriptor& column : level.view->columns) {
      if (column.dropped || next == level.shape.columns.size()) continue;
      const int at = level.shape.columns[next];
      const ast::Expr* expr = level.shape.exprs[next++];
      ScopeColumn shown;
      shown.name = column.name;
      shown.use = level.use;
      shown.column = column.id;
      if (at >= 0) {
        shown.below = &below->columns[static_cast<size_t>(at)];
        shown.id = shown.below->id;
        shown.computed = shown.below->computed;
      } else {
        shown.computed = std::make_shared<ComputedColumn>(ComputedColumn{expr, below, level.view});
      }
      item->columns.push_back(std::move(shown));
    }
    if (conditions != nullptr) {
      const ast::ExprPtr& where = level.shape.text->As<ast::SelectStmt>().where;
      if (where != nullptr) {
        CELLAR_TRY_ASSIGN(ExprPtr bound,
                          BindInView({where.get(), below, level.view}, Place::kWhere));
        SplitConjuncts(std::move(bound), conditions);
      }
    }
    below = item;
    below->name = alias;
  }
  below->schema = schema;
  return below;
}

Result<const ScopeColumn*> Binder::ChangedColumn(const DmlTarget& target, const ScopeItem& item,
                                                 const std::string& name, int location,
                                                 Change change) {
  const catalog::TableDescriptor& named =
      target.views.empty() ? *target.table : *target.views[0].view;
  for (const ScopeColumn& column : item.columns) {
    if (column.name != name || column.column.value == 0) continue;
    if (column.computed != nullptr) {
      return SqlError(Code::kInvalid, sqlstate::kFeatureNotSupported,
                      "cannot {} column \"{}\" of view \"{}\"",
                      change == Change::kInsert ? "insert into" : "update", name, named.name)
          .WithDetail(
              "View columns that are not columns of their base relation are not updatable.");
    }
    return &column;
  }
  return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn,
                  "column \"{}\" of relation \"{}\" does not exist", name, named.name)
      .WithLocation(location);
}

}  // namespace cellar::sql::planning

namespace cellar::sql {

Result<ViewChanges> ChangesThroughView(const catalog::TablePtr& view, PlannerContext& context) {
  ViewChanges out;
  std::vector<int> at;  // of each column of `view`, in what is looked at now; -1: computed
  catalog::TablePtr relation = view;
  for (size_t i = 0; relation->kind == catalog::RelationKind::kView; ++i) {
    planning::Statement statement(context);
    CELLAR_TRY_ASSIGN(planning::ViewShape shape, planning::Binder(statement).ShapeOf(relation));
    if (!shape.why.empty() || i == planning::kMaxViewLevels) return ViewChanges();
    if (i == 0) {
      at = shape.columns;
    } else {
      for (int& column : at) {
        if (column >= 0) column = shape.columns[static_cast<size_t>(column)];
      }
    }
    relation = shape.below;
  }
  out.deletes = true;
  for (const int column : at) out.columns.push_back(column >= 0);
  return out;
}

}  // namespace cellar::sql
