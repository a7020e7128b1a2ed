// INSERT, UPDATE, DELETE: columns, defaults, conflicts, constraints, RETURNING.
#include <algorithm>

#include "cellar/sql/expr/array_slice.h"
#include "cellar/sql/parser/scan.h"
#include "cellar/sql/plan/binder.h"
#include "cellar/sql/plan/operator_classes.h"
#include "cellar/types/array.h"

namespace cellar::sql::planning {

namespace {

// What "schema.table.column" may say of a statement's target.
std::string SchemaOfTarget(const ast::QualifiedName& name) {
  return name.schema.empty() ? "public" : name.schema;
}

constexpr std::string_view kGeneratedAlways = "428C9";

// Position of a column among the living ones; -1 when it is not there.
int LivingPosition(const catalog::TableDescriptor& table, catalog::ColumnId column) {
  int position = 0;
  for (const catalog::ColumnDescriptor& candidate : table.columns) {
    if (candidate.dropped) continue;
    if (candidate.id == column) return position;
    ++position;
  }
  return -1;
}

int LivingPosition(const catalog::TableDescriptor& table, std::string_view name) {
  int position = 0;
  for (const catalog::ColumnDescriptor& candidate : table.columns) {
    if (candidate.dropped) continue;
    if (candidate.name == name) return position;
    ++position;
  }
  return -1;
}

Status NoSuchColumn(const catalog::TableDescriptor& table, std::string_view name, int location) {
  return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn,
                  "column \"{}\" of relation \"{}\" does not exist", name, table.name)
      .WithLocation(location);
}

Status NotDefault(const catalog::ColumnDescriptor& column, bool insert, int location) {
  if (!column.generated_sql.empty()) {
    Status status =
        insert ? SqlError(Code::kInvalid, kGeneratedAlways,
                          "cannot insert a non-DEFAULT value into column \"{}\"", column.name)
               : SqlError(Code::kInvalid, kGeneratedAlways,
                          "column \"{}\" can only be updated to DEFAULT", column.name);
    return std::move(status)
        .WithDetail(fmt::format("Column \"{}\" is a generated column.", column.name))
        .WithLocation(location);
  }
  Status status =
      insert ? SqlError(Code::kInvalid, kGeneratedAlways,
                        "cannot insert a non-DEFAULT value into column \"{}\"", column.name)
             : SqlError(Code::kInvalid, kGeneratedAlways,
                        "column \"{}\" can only be updated to DEFAULT", column.name);
  status = std::move(status)
               .WithDetail(fmt::format(
                   "Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name))
               .WithLocation(location);
  if (!insert) return status;
  return std::move(status).WithHint("Use OVERRIDING SYSTEM VALUE to override.");
}

}  // namespace

Result<BoundQuery> Binder::BindStatement(const ast::Node& statement, const Scope* outer) {
  auto with_ctes = [&](const std::unique_ptr<ast::WithClause>& with,
                       auto&& bind) -> Result<BoundQuery> {
    size_t visible = cte_names_.size();
    if (with != nullptr) CELLAR_TRY(BindWith(*with, outer));
    // A WITH further in is not the statement's own.
    ++query_depth_;
    Result<BoundQuery> out = bind();
    --query_depth_;
    cte_names_.erase(cte_names_.begin() + static_cast<long>(visible), cte_names_.end());
    return out;
  };
  switch (statement.kind) {
    case ast::NodeKind::kSelect: return BindSelect(statement.As<ast::SelectStmt>(), outer);
    case ast::NodeKind::kInsert: {
      const auto& n = statement.As<ast::InsertStmt>();
      return with_ctes(n.with, [&] { return BindInsert(n, outer); });
    }
    case ast::NodeKind::kUpdate: {
      const auto& n = statement.As<ast::UpdateStmt>();
      return with_ctes(n.with, [&] { return BindUpdate(n, outer); });
    }
    case ast::NodeKind::kDelete: {
      const auto& n = statement.As<ast::DeleteStmt>();
      return with_ctes(n.with, [&] { return BindDelete(n, outer); });
    }
    default: break;
  }
  return UnsupportedError("this statement cannot be planned");
}

Result<catalog::TablePtr> Binder::FindTargetRelation(const ast::QualifiedName& name) {
  CELLAR_TRY(CheckCatalogName(name));
  const PlannerContext& context = s_.context;
  CELLAR_TRY(CheckSchema(name));
  catalog::TablePtr table = FindRelation(*context.catalog, *context.scope, name.schema, name.name);
  if (context.virtual_catalog != nullptr && (!name.schema.empty() || table == nullptr) &&
      context.virtual_catalog->Find(name.schema.empty() ? "pg_catalog" : name.schema, name.name) !=
          nullptr) {
    return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege,
                    "permission denied: \"{}\" is a system catalog", name.name)
        .WithLocation(name.location);
  }
  if (table == nullptr) {
    std::string shown = name.schema.empty() ? name.name : name.schema + "." + name.name;
    return SqlError(Code::kInvalid, sqlstate::kUndefinedTable, "relation \"{}\" does not exist",
                    shown)
        .WithLocation(name.location);
  }
  return table;
}

namespace {

// Own types while one table's expression is bound, and the others again afterwards.
template <typename T>
class Emptied {
 public:
  explicit Emptied(std::vector<T>* list) : list_(list) { list_->swap(outer_); }
  ~Emptied() { list_->swap(outer_); }
  Emptied(const Emptied&) = delete;
  Emptied& operator=(const Emptied&) = delete;

 private:
  std::vector<T>* list_;
  std::vector<T> outer_;
};

}  // namespace

Result<ExprPtr> Binder::BindTableExpression(const ast::Expr& expression,
                                            const catalog::TableDescriptor* table, Type target,
                                            Place place) {
  Block block;
  block.scope.block = nullptr;
  ScopeItem* item = nullptr;
  std::vector<int> ids;
  if (table != nullptr) {
    item = NewItem();
    item->name = table->name;
    for (const catalog::ColumnDescriptor& column : table->columns) {
      if (column.dropped) continue;
      ColumnInfo info;
      info.name = column.name;
      info.type = column.type;
      ids.push_back(s_.AddColumn(std::move(info)));
      item->columns.push_back({column.name, ids.back(), column.hidden});
    }
    block.scope.items.push_back(item);
  }
  const Emptied own_types(&own_types_);
  const Emptied own_collations(&own_collations_);
  if (table != nullptr) {
    own_collations_ = catalog::CollationsOf(*table);
    for (const catalog::ColumnDescriptor& column : table->columns) {
      if (column.type.enumeration != nullptr) own_types_.push_back(column.type);
    }
  }
  if (target.enumeration != nullptr) own_types_.push_back(target);
  Env env;
  env.scope = &block.scope;
  env.place = place;
  size_t subqueries = s_.subqueries.size();
  CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(expression, env));
  if (s_.subqueries.size() != subqueries) {
    return UnsupportedError("cannot use subquery in {}",
                            PlaceName(place) == "DEFAULT expressions" ? "DEFAULT expression"
                            : place == Place::kCheck                  ? "check constraint"
                            : place == Place::kIndexExpression        ? "index expression"
                            : place == Place::kIndexPredicate         ? "index predicate"
                                                              : "column generation expression")
        .WithLocation(ExprLocation(expression));
  }
  if (place == Place::kCheck) {
    CELLAR_TRY_ASSIGN(bound, ToBoolean(std::move(bound), "CHECK", ExprLocation(expression)));
  } else if (place == Place::kIndexPredicate) {
    CELLAR_TRY_ASSIGN(bound, ToBoolean(std::move(bound), "WHERE", ExprLocation(expression)));
  } else if (target.id != TypeId::kInvalid) {
    Type from = bound->type;
    if (from.id != TypeId::kUnknown && !from.SameKind(target) &&
        !CanCast(from, target, CastContext::kAssignment)) {
      return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                      "default expression is of type {} but the column is of type {}",
                      FormatType(from), FormatType(target))
          .WithHint("You will need to rewrite or cast the expression.")
          .WithLocation(ExprLocation(expression));
    }
    CELLAR_TRY_ASSIGN(bound, Coerce(std::move(bound), target, CastContext::kAssignment,
                                    ExprLocation(expression)));
  } else {
    CELLAR_TRY_ASSIGN(bound, ResolveUnknown(std::move(bound)));
  }
  // From ids to positions.
  VisitExprMutable(bound.get(), [&](Expr* expr) {
    if (expr->kind != ExprKind::kColumn) return;
    auto at = std::find(ids.begin(), ids.end(), expr->index);
    if (at != ids.end()) expr->index = static_cast<int>(at - ids.begin());
  });
  return bound;
}

Result<ExprPtr> Binder::AssignTo(ExprPtr value, const catalog::ColumnDescriptor& column,
                                 int location) {
  Type from = value->type;
  if (from.id != TypeId::kUnknown && !from.SameKind(column.type) &&
      !CanCast(from, column.type, CastContext::kAssignment)) {
    return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                    "column \"{}\" is of type {} but expression is of type {}", column.name,
                    FormatType(Plain(column.type)), FormatType(from))
        .WithHint("You will need to rewrite or cast the expression.")
        .WithLocation(location);
  }
  return Coerce(std::move(value), column.type, CastContext::kAssignment, location);
}

namespace {

// The default's text with oids in place of relations' names in '..'::regclass. What a default
// names was looked up, and allowed, when the default was made.
std::string WithOidsOfRelations(const std::string& text, const PlannerContext& context) {
  constexpr std::string_view kCast = "::regclass";
  if (text.find(kCast) == std::string::npos) return text;
  std::string out;
  for (size_t at = 0;;) {
    const ScanToken token = NextToken(text, at);
    out.append(text, at, token.end - at);
    if (token.kind == ScanKind::kEnd) return out;
    at = token.end;
    if (token.kind != ScanKind::kString || text[token.begin] != '\'' ||
        text.compare(token.end, kCast.size(), kCast) != 0)
      continue;
    std::string name;
    for (size_t i = token.begin + 1; i + 1 < token.end; ++i) {
      if (text[i] == '\'') ++i;
      name += text[i];
    }
    const Result<ast::ExprPtr> parsed = ParseExpression(name);
    if (!parsed.ok() || !(*parsed)->Is<ast::ColumnRef>()) continue;
    const ast::NameList& parts = (*parsed)->As<ast::ColumnRef>().parts;
    if (parts.empty() || parts.size() > 2) continue;
    const catalog::TablePtr found =
        FindRelation(*context.catalog, *context.scope,
                     parts.size() == 2 ? std::string_view(parts[0]) : "", parts.back());
    if (found == nullptr) continue;
    out.resize(out.size() - (token.end - token.begin));
    out += fmt::format("'{}'", found->oid());
  }
}

}  // namespace

Result<ExprPtr> Binder::ColumnDefault(const catalog::TableDescriptor& table,
                                      const catalog::ColumnDescriptor& column) {
  if (!column.generated_sql.empty()) return MakeNull(column.type);  // computed afterwards
  bool from_sequence = column.identity != catalog::Identity::kNone;
  if (!from_sequence && column.sequence.value != 0 &&
      column.default_sql.rfind("nextval(", 0) == 0) {
    catalog::TablePtr sequence = s_.context.catalog->GetTable(column.sequence);
    from_sequence =
        sequence != nullptr && column.default_sql.find(sequence->name) != std::string::npos;
  }
  if (from_sequence && column.sequence.value != 0) {
    catalog::TablePtr sequence = s_.context.catalog->GetTable(column.sequence);
    if (sequence == nullptr) {
      return InternalError("the sequence of column \"{}\" of \"{}\" is missing", column.name,
                           table.name);
    }
    std::vector<ExprPtr> args;
    args.push_back(MakeConstant(Value(MakeType(TypeId::kRegclass), Datum::Int(sequence->oid()))));
    CELLAR_TRY_ASSIGN(ExprPtr next, CallFunction("nextval", std::move(args), -1));
    return Coerce(std::move(next), column.type, CastContext::kAssignment, -1);
  }
  if (column.default_sql.empty()) return MakeNull(column.type);
  CELLAR_TRY_ASSIGN(ast::ExprPtr parsed,
                    ParseExpression(WithOidsOfRelations(column.default_sql, s_.context)));
  Result<ExprPtr> bound = BindTableExpression(*parsed, nullptr, column.type, Place::kDefault);
  if (!bound.ok()) return std::move(bound).status();
  // Positions in the default's text are not positions in the statement.
  VisitExprMutable(bound->get(), [](Expr* expr) { expr->location = -1; });
  return bound;
}

Status Binder::BindChecks(const catalog::TableDescriptor& table, std::vector<CheckExpr>* out) {
  std::vector<const catalog::CheckConstraint*> by_name;
  for (const catalog::CheckConstraint& check : table.checks) by_name.push_back(&check);
  std::sort(by_name.begin(), by_name.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  for (const catalog::CheckConstraint* one : by_name) {
    const catalog::CheckConstraint& check = *one;
    CELLAR_TRY_ASSIGN(ast::ExprPtr parsed, ParseExpression(check.expression));
    CheckExpr bound;
    bound.name = check.name;
    CELLAR_TRY_ASSIGN(bound.condition, BindTableExpression(*parsed, &table, Type(), Place::kCheck));
    VisitExprMutable(bound.condition.get(), [](Expr* expr) { expr->location = -1; });
    out->push_back(std::move(bound));
  }
  return Status();
}

namespace {

// An index of `table` whose first columns are `columns` in some order; with `whole`, exactly them
// and unique.
const catalog::IndexDescriptor* IndexOver(const catalog::TableDescriptor& table,
                                          const std::vector<catalog::ColumnId>& columns,
                                          bool whole) {
  const catalog::IndexDescriptor* found = nullptr;
  for (const catalog::IndexDescriptor& index : table.indexes) {
    if (index.state != catalog::IndexState::kPublic || !index.predicate.empty()) continue;
    if (index.key.size() < columns.size() ||
        (whole && (index.key.size() != columns.size() || !index.unique))) {
      continue;
    }
    bool match = true;
    for (size_t i = 0; i < columns.size(); ++i) {
      match =
          match && std::find(columns.begin(), columns.end(), index.key[i].column) != columns.end();
    }
    if (match && (found == nullptr || index.key.size() < found->key.size())) found = &index;
  }
  return found;
}

// Pairs of (theirs, ours): put in the index's order.
void FillCheck(const catalog::TableDescriptor& own, const std::vector<catalog::ColumnId>& ours,
               const catalog::TablePtr& other, const std::vector<catalog::ColumnId>& theirs,
               const catalog::IndexDescriptor* index, ForeignKeyCheck* check) {
  check->table = other;
  std::vector<size_t> order;
  if (index != nullptr) {
    check->index = index->id;
    for (size_t i = 0; i < theirs.size(); ++i) {
      auto at = std::find(theirs.begin(), theirs.end(), index->key[i].column);
      order.push_back(static_cast<size_t>(at - theirs.begin()));
    }
  } else {
    for (size_t i = 0; i < theirs.size(); ++i) order.push_back(i);
  }
  for (size_t i : order) {
    check->other_columns.push_back(theirs[i]);
    check->columns.push_back(LivingPosition(own, ours[i]));
  }
}

}  // namespace

Status Binder::AddForeignKeys(const catalog::TableDescriptor& table,
                              std::vector<ForeignKeyCheck>* out) {
  for (const catalog::ForeignKey& key : table.foreign_keys) {
    catalog::TablePtr other = s_.context.catalog->GetTable(key.referenced_table);
    if (other == nullptr) {
      return InternalError("table referenced by constraint \"{}\" is missing", key.name);
    }
    UseTable(other);
    ForeignKeyCheck check;
    check.constraint = key.name;
    FillCheck(table, key.columns, other, key.referenced_columns,
              IndexOver(*other, key.referenced_columns, true), &check);
    out->push_back(std::move(check));
  }
  return Status();
}

Status Binder::AddReferencing(const catalog::TableDescriptor& table,
                              std::vector<ForeignKeyCheck>* out) {
  for (const catalog::TablePtr& other : s_.context.catalog->ListReferencing(table.id)) {
    for (const catalog::ForeignKey& key : other->foreign_keys) {
      if (key.referenced_table != table.id) continue;
      UseTable(other);
      ForeignKeyCheck check;
      check.constraint = key.name;
      check.action = key.on_delete;
      FillCheck(table, key.referenced_columns, other, key.columns,
                IndexOver(*other, key.columns, false), &check);
      out->push_back(std::move(check));
    }
  }
  return Status();
}

Status Binder::AddGenerated(const catalog::TableDescriptor& table,
                            const std::vector<int>& target_ids,
                            std::vector<std::pair<int, ExprPtr>>* assignments) {
  int position = -1;
  std::vector<std::pair<int, ExprPtr>> generated;
  for (const catalog::ColumnDescriptor& column : table.columns) {
    if (column.dropped) continue;
    ++position;
    if (column.generated_sql.empty()) continue;
    CELLAR_TRY_ASSIGN(ast::ExprPtr parsed, ParseExpression(column.generated_sql));
    CELLAR_TRY_ASSIGN(ExprPtr value,
                      BindTableExpression(*parsed, &table, column.type, Place::kGenerated));
    // Over the new row: assigned columns by their new values, others by their old ones.
    VisitExprMutable(value.get(), [&](Expr* expr) {
      expr->location = -1;
      if (expr->kind == ExprKind::kColumn)
        expr->index = target_ids[static_cast<size_t>(expr->index)];
    });
    std::vector<std::pair<int, const Expr*>> values;
    for (const auto& [at, assigned] : *assignments) {
      values.emplace_back(target_ids[static_cast<size_t>(at)], assigned.get());
    }
    Substitute(&value, values);
    generated.emplace_back(position, std::move(value));
  }
  for (auto& entry : generated) {
    assignments->erase(
        std::remove_if(assignments->begin(), assignments->end(),
                       [&](const auto& known) { return known.first == entry.first; }),
        assignments->end());
    assignments->push_back(std::move(entry));
  }
  return Status();
}

Status Binder::BindReturning(const ast::TargetList& targets, Scope* scope,
                             std::vector<ExprPtr>* exprs, BoundQuery* query, Logical* node) {
  Env env;
  env.scope = scope;
  env.place = Place::kReturning;
  std::vector<Target> bound;
  CELLAR_TRY(BindTargets(targets, env, &bound));
  for (Target& target : bound) {
    CELLAR_TRY_ASSIGN(target.expr, ResolveUnknown(std::move(target.expr)));
    ColumnInfo info;
    if (target.expr->kind == ExprKind::kColumn) info = s_.column(target.expr->index);
    info.name = target.name;
    info.type = target.expr->type;
    info.record = ShapeOf(*target.expr);
    int id = s_.AddColumn(std::move(info));
    node->ids.push_back(id);
    exprs->push_back(std::move(target.expr));
    query->columns.push_back({target.name, id});
  }
  return Status();
}

Result<BoundQuery> Binder::BindInsert(const ast::InsertStmt& insert, const Scope* outer) {
  CELLAR_TRY_ASSIGN(DmlTarget to, FindTarget(insert.table, Change::kInsert));
  const catalog::TablePtr& table = to.table;
  UseTable(table);
  std::vector<int> living = LivingColumns(*table);
  auto column_at = [&](size_t position) -> const catalog::ColumnDescriptor& {
    return table->columns[static_cast<size_t>(living[position])];
  };
  const int use = AddUse(table);
  AskAs(to, use);
  NoteChange(use, Change::kInsert);
  // Positions that the statement gives values for; of a view, the columns too.
  std::vector<size_t> wanted;
  std::vector<const ScopeColumn*> of_view;
  const ScopeItem* view = nullptr;
  if (!to.views.empty()) {
    ScopeItem* own = NewItem();
    for (size_t i = 0; i < living.size(); ++i) {
      own->columns.push_back({column_at(i).name, -1, column_at(i).hidden, use, column_at(i).id});
    }
    CELLAR_TRY_ASSIGN(view, ThroughViews(to, own, insert.alias, nullptr));
  }
  const auto want = [&](const ScopeColumn& column) {
    of_view.push_back(&column);
    wanted.push_back(static_cast<size_t>(LivingPosition(*table, BaseOf(column).column)));
  };
  if (insert.columns.empty() && view != nullptr) {
    for (const ScopeColumn& column : view->columns) want(column);
  } else if (insert.columns.empty()) {
    for (size_t i = 0; i < living.size(); ++i) {
      if (!column_at(i).hidden) wanted.push_back(i);
    }
  }
  for (const ast::AssignTarget& target : insert.columns) {
    if (view != nullptr) {
      CELLAR_TRY_ASSIGN(const ScopeColumn* column,
                        ChangedColumn(to, *view, target.column, target.location, Change::kInsert));
      want(*column);
    } else {
      const int position = LivingPosition(*table, target.column);
      if (position < 0) return NoSuchColumn(*table, target.column, target.location);
      wanted.push_back(static_cast<size_t>(position));
    }
    if (!target.steps.empty()) {
      return UnsupportedError("storing into array elements or fields is not supported")
          .WithLocation(target.location);
    }
    if (std::find(wanted.begin(), wanted.end() - 1, wanted.back()) != wanted.end() - 1) {
      return SqlError(Code::kInvalid, sqlstate::kDuplicateColumn,
                      "column \"{}\" specified more than once", target.column)
          .WithLocation(target.location);
    }
  }
  auto check_count = [&](size_t given, int location) -> Status {
    for (size_t i = 0; i < std::min(given, wanted.size()); ++i) {
      if (view != nullptr) {
        CELLAR_TRY(ChangedColumn(to, *view, of_view[i]->name, location, Change::kInsert).status());
        NoteChanged(*of_view[i], Change::kInsert);
        continue;
      }
      s_.uses[static_cast<size_t>(use)].inserted.push_back(column_at(wanted[i]).id);
    }
    if (given > wanted.size()) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                      "INSERT has more expressions than target columns")
          .WithLocation(location);
    }
    if (given < wanted.size() && !insert.columns.empty()) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                      "INSERT has more target columns than expressions")
          .WithLocation(insert.columns[given].location);
    }
    return Status();
  };
  // A value for a column that must be generated: an error, or replaced by the default.
  enum class Given : uint8_t { kKeep, kUseDefault };
  auto check_given = [&](const catalog::ColumnDescriptor& column, int location) -> Result<Given> {
    if (!column.generated_sql.empty()) return NotDefault(column, true, location);
    if (column.identity == catalog::Identity::kAlways &&
        insert.overriding == ast::Overriding::kNone) {
      return NotDefault(column, true, location);
    }
    if (column.identity != catalog::Identity::kNone &&
        insert.overriding == ast::Overriding::kUserValue) {
      return Given::kUseDefault;
    }
    return Given::kKeep;
  };

  auto node = std::make_unique<LogicalInsert>();
  node->table = table;
  node->alias = !insert.alias.empty() ? insert.alias
                : view != nullptr     ? to.views[0].view->name
                                      : table->name;
  std::vector<int> inputs(living.size(), -1);
  auto new_column = [&](const catalog::ColumnDescriptor& column) {
    ColumnInfo info;
    info.name = column.name;
    info.type = column.type;
    return s_.AddColumn(std::move(info));
  };
  LogicalPtr source;
  bool plain_values =
      insert.source != nullptr && !insert.source->values.empty() &&
      std::none_of(insert.source->values.begin(), insert.source->values.end(), ExpandsRecords) &&
      insert.source->order_by.empty() && insert.source->limit == nullptr &&
      insert.source->offset == nullptr && insert.source->with == nullptr;
  if (insert.source == nullptr || plain_values) {
    auto values = std::make_unique<LogicalValues>();
    for (size_t i = 0; i < living.size(); ++i) {
      inputs[i] = new_column(column_at(i));
      values->ids.push_back(inputs[i]);
    }
    Block block;
    block.scope.parent = outer;
    Env env;
    env.scope = &block.scope;
    env.place = Place::kValues;
    size_t rows = plain_values ? insert.source->values.size() : 1;
    size_t width = plain_values ? insert.source->values[0].size() : 0;
    values->rows.reserve(rows);
    // Constant defaults are bound once.
    std::vector<ExprPtr> defaults(living.size());
    auto default_of = [&](size_t position) -> Result<ExprPtr> {
      if (defaults[position] == nullptr) {
        CELLAR_TRY_ASSIGN(defaults[position], ColumnDefault(*table, column_at(position)));
      }
      return CloneExpr(*defaults[position]);
    };
    for (size_t r = 0; r < rows; ++r) {
      std::vector<ExprPtr> row(living.size());
      if (plain_values) {
        const ast::ExprList& given = insert.source->values[r];
        if (given.size() != width) {
          return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                          "VALUES lists must all be the same length")
              .WithLocation(given.empty() ? insert.source->location : ExprLocation(*given[0]));
        }
        if (r == 0) {
          int location = given.size() > wanted.size() ? ExprLocation(*given[wanted.size()]) : -1;
          CELLAR_TRY(check_count(given.size(), location));
        }
        for (size_t i = 0; i < given.size(); ++i) {
          if (given[i]->kind == ast::NodeKind::kDefault) continue;
          const catalog::ColumnDescriptor& column = column_at(wanted[i]);
          int location = ExprLocation(*given[i]);
          CELLAR_TRY_ASSIGN(Given what, check_given(column, location));
          if (what == Given::kUseDefault) continue;
          CELLAR_TRY_ASSIGN(ExprPtr value, BindExpr(*given[i], env));
          CELLAR_TRY_ASSIGN(row[wanted[i]], AssignTo(std::move(value), column, location));
        }
      }
      for (size_t i = 0; i < living.size(); ++i) {
        if (row[i] != nullptr) continue;
        CELLAR_TRY_ASSIGN(row[i], default_of(i));
      }
      values->rows.push_back(std::move(row));
    }
    source = std::move(values);
  } else {
    CELLAR_TRY_ASSIGN(BoundQuery query,
                      BindSelect(*insert.source, outer, /*resolve_unknowns=*/false));
    const ast::TargetList& targets = insert.source->targets;
    CELLAR_TRY(check_count(query.columns.size(),
                           targets.size() > wanted.size() ? targets[wanted.size()].location : -1));
    for (size_t i = 0; i < query.columns.size(); ++i) {
      const catalog::ColumnDescriptor& column = column_at(wanted[i]);
      int location = i < targets.size() ? ExprLocation(*targets[i].expr) : -1;
      CELLAR_TRY_ASSIGN(Given what, check_given(column, location));
      if (what == Given::kUseDefault) continue;
      Type from = s_.column(query.columns[i].id).type;
      if (from.id != TypeId::kUnknown && !from.SameKind(column.type) &&
          !CanCast(from, column.type, CastContext::kAssignment)) {
        return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                        "column \"{}\" is of type {} but expression is of type {}", column.name,
                        FormatType(Plain(column.type)), FormatType(from))
            .WithHint("You will need to rewrite or cast the expression.")
            .WithLocation(location);
      }
      CELLAR_TRY(CoerceColumn(&query, i, column.type, CastContext::kAssignment, location));
      inputs[wanted[i]] = query.columns[i].id;
    }
    auto project = std::make_unique<LogicalProject>();
    for (size_t i = 0; i < living.size(); ++i) {
      if (inputs[i] >= 0) continue;
      CELLAR_TRY_ASSIGN(ExprPtr value, ColumnDefault(*table, column_at(i)));
      inputs[i] = new_column(column_at(i));
      project->ids.push_back(inputs[i]);
      project->exprs.push_back(std::move(value));
    }
    source = std::move(query.root);
    if (!project->ids.empty()) {
      project->children.push_back(std::move(source));
      source = std::move(project);
    }
  }
  // Generated columns are computed from the others.
  std::vector<std::pair<int, ExprPtr>> generated;
  CELLAR_TRY(AddGenerated(*table, inputs, &generated));
  if (!generated.empty()) {
    auto project = std::make_unique<LogicalProject>();
    for (auto& [position, value] : generated) {
      int id = new_column(column_at(static_cast<size_t>(position)));
      inputs[static_cast<size_t>(position)] = id;
      project->ids.push_back(id);
      project->exprs.push_back(std::move(value));
    }
    project->children.push_back(std::move(source));
    source = std::move(project);
  }
  node->inputs = std::move(inputs);
  node->children.push_back(std::move(source));
  CELLAR_TRY(BindChecks(*table, &node->checks));
  CELLAR_TRY(AddForeignKeys(*table, &node->foreign_keys));

  BoundQuery query;
  if (insert.on_conflict != nullptr || !insert.returning.empty()) {
    ScopeItem* target = NewItem();
    target->name = node->alias;
    target->schema = SchemaOfTarget(insert.table);
    target->table = table;
    for (size_t i = 0; i < living.size(); ++i) {
      const catalog::ColumnDescriptor& column = column_at(i);
      ColumnInfo info;
      info.name = column.name;
      info.qualifier = node->alias;
      info.type = column.type;
      info.table_oid = table->oid();
      info.attnum = static_cast<int16_t>(living[i] + 1);
      int id = s_.AddColumn(std::move(info));
      node->stored.push_back(id);
      target->columns.push_back({column.name, id, column.hidden, use, column.id});
    }
    Block block;
    Scope& scope = block.scope;
    scope.block = &block;
    scope.parent = outer;
    CELLAR_TRY_ASSIGN(ScopeItem * shown, ThroughViews(to, target, node->alias, nullptr));
    scope.items.push_back(shown);
    if (insert.on_conflict != nullptr) {
      CELLAR_TRY(BindConflict(*insert.on_conflict, to, target, &scope, node.get()));
    }
    if (!insert.returning.empty()) {
      node->has_returning = true;
      scope.items = {shown};
      CELLAR_TRY(BindReturning(insert.returning, &scope, &node->returning, &query, node.get()));
    }
  }
  query.root = std::move(node);
  return query;
}

Status Binder::BindConflict(const ast::OnConflict& conflict, const DmlTarget& to, ScopeItem* target,
                            Scope* scope, LogicalInsert* node) {
  const catalog::TablePtr& table = to.table;
  if (!to.views.empty() && (conflict.do_update || !conflict.elements.empty())) {
    return UnsupportedError("ON CONFLICT that names columns of a view is not supported")
        .WithLocation(conflict.location);
  }
  // Looking for the row in the way reads the arbiter's columns.
  auto reads = [&](catalog::ColumnId id) {
    for (const ScopeColumn& column : target->columns) {
      if (column.column == id) MarkSelected(column);
    }
  };
  node->conflict = conflict.do_update ? OnConflict::Kind::kUpdate : OnConflict::Kind::kNothing;
  if (!conflict.constraint.empty()) {
    for (const catalog::IndexDescriptor& index : table->indexes) {
      if (index.name != conflict.constraint) continue;
      if (!index.primary && !(index.unique && index.constraint)) continue;
      node->arbiters = {index.id};
      for (const catalog::IndexColumn& column : index.key) reads(column.column);
    }
    if (node->arbiters.empty()) {
      return SqlError(Code::kInvalid, sqlstate::kUndefinedObject,
                      "constraint \"{}\" for table \"{}\" does not exist", conflict.constraint,
                      table->name)
          .WithLocation(conflict.location);
    }
  } else if (!conflict.elements.empty()) {
    std::vector<ArbiterPart> parts;
    for (const ast::IndexElement& element : conflict.elements) {
      const bool directed = element.direction != ast::SortDirection::kDefault;
      if (directed || element.nulls != ast::SortNulls::kDefault) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidColumnReference,
                        "{} is not allowed in ON CONFLICT clause",
                        directed ? "ASC/DESC" : "NULLS FIRST/LAST")
            .WithLocation(conflict.location);
      }
      ArbiterPart& part = parts.emplace_back();
      if (!element.collation.empty()) {
        CELLAR_TRY_ASSIGN(part.collation, CollationNamed(element.collation));
      }
      if (!element.opclass.empty()) {
        CELLAR_TRY(CheckOperatorClass(element.opclass));
        part.opclass = element.opclass.name;
      }
      if (element.column.empty()) {
        CELLAR_TRY_ASSIGN(ExprPtr bound, BindTableExpression(*element.expr, table.get(), Type(),
                                                             Place::kIndexExpression));
        VisitExprMutable(bound.get(), [&](Expr* expr) {
          expr->location = -1;
          if (expr->kind == ExprKind::kColumn)
            MarkSelected(target->columns[static_cast<size_t>(expr->index)]);
        });
        part.expression = std::move(bound);
        continue;
      }
      const catalog::ColumnDescriptor* column = table->FindColumn(element.column);
      if (column == nullptr || column->hidden) {
        return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn, "column \"{}\" does not exist",
                        element.column)
            .WithLocation(conflict.location);
      }
      part.column = column->id;
      reads(column->id);
    }
    ExprPtr where;
    if (conflict.index_where != nullptr) {
      CELLAR_TRY_ASSIGN(where, BindTableExpression(*conflict.index_where, table.get(), Type(),
                                                   Place::kIndexPredicate));
      VisitExpr(*where, [&](const Expr& expr) {
        if (expr.kind == ExprKind::kColumn)
          MarkSelected(target->columns[static_cast<size_t>(expr.index)]);
      });
    }
    node->arbiters = ArbitersOf(*table, parts, where.get());
    if (node->arbiters.empty()) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidColumnReference,
                      "there is no unique or exclusion constraint matching the ON CONFLICT "
                      "specification")
          .WithLocation(conflict.location);
    }
  } else if (conflict.do_update) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                    "ON CONFLICT DO UPDATE requires inference specification or constraint name")
        .WithHint("For example, ON CONFLICT (column_name).")
        .WithLocation(conflict.location);
  }
  for (const catalog::IndexDescriptor& index : table->indexes) {
    const auto& arbiters = node->arbiters;
    const bool asked =
        arbiters.empty() || std::find(arbiters.begin(), arbiters.end(), index.id) != arbiters.end();
    if (!index.deferrable || !asked) continue;
    return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                    "ON CONFLICT does not support deferrable unique constraints/exclusion "
                    "constraints as arbiters")
        .WithTable("", table->name)
        .WithConstraint(index.name);
  }
  if (!conflict.do_update) return Status();
  ScopeItem* excluded = NewItem();
  excluded->name = "excluded";
  for (const ScopeColumn& column : target->columns) {
    ColumnInfo info = s_.column(column.id);
    info.qualifier = "excluded";
    int id = s_.AddColumn(std::move(info));
    node->excluded.push_back(id);
    excluded->columns.push_back({column.name, id, column.hidden, column.use, column.column});
  }
  scope->items.push_back(excluded);
  Env env;
  env.scope = scope;
  env.place = Place::kUpdate;
  CELLAR_TRY(BindAssignments(conflict.sets, to, *target, env, node->stored, &node->assignments));
  NoteChange(target->columns[0].use, Change::kUpdate);
  MarkUpdated(conflict.sets, *target);
  if (conflict.where != nullptr) {
    env.place = Place::kConflictWhere;
    CELLAR_TRY_ASSIGN(node->conflict_where, BindCondition(*conflict.where, env, "WHERE"));
  }
  CELLAR_TRY(AddReferencing(*table, &node->referenced_by));
  return Status();
}

void Binder::MarkUpdated(const std::vector<ast::SetClause>& sets, const ScopeItem& item) {
  for (const ast::SetClause& set : sets) {
    for (const ast::AssignTarget& target : set.targets) {
      for (const ScopeColumn& column : item.columns) {
        if (column.name == target.column) NoteChanged(column, Change::kUpdate);
      }
    }
  }
}

Status Binder::BindAssignments(const std::vector<ast::SetClause>& sets, const DmlTarget& to,
                               const ScopeItem& item, Env& env, const std::vector<int>& target_ids,
                               std::vector<std::pair<int, ExprPtr>>* out) {
  const catalog::TableDescriptor& table = *to.table;
  std::vector<int> living = LivingColumns(table);
  // The array with the element that the target's subscripts name set to `value`.
  auto assign_element = [&](ExprPtr array, const ast::AssignTarget& target,
                            const catalog::ColumnDescriptor& column, ExprPtr value,
                            int location) -> Result<ExprPtr> {
    for (const ast::IndirectionStep& step : target.steps) {
      if (step.step_kind != ast::IndirectionStep::Kind::kSubscript) {
        return UnsupportedError("storing into slices of arrays or fields is not supported")
            .WithLocation(target.location);
      }
    }
    if (!column.type.array) {
      return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                      "cannot subscript type {} because it does not support subscripting",
                      FormatType(Plain(column.type)))
          .WithLocation(target.location);
    }
    Type element = ElementTypeOf(column.type);
    if (value->type.id != TypeId::kUnknown && !value->type.SameKind(element) &&
        !CanCast(value->type, element, CastContext::kAssignment)) {
      return SqlError(
                 Code::kInvalid, sqlstate::kDatatypeMismatch,
                 "subscripted assignment to \"{}\" requires type {} but expression is of type {}",
                 column.name, FormatType(element), FormatType(value->type))
          .WithHint("You will need to rewrite or cast the expression.")
          .WithLocation(location);
    }
    element.modifier = column.type.modifier;
    std::vector<ExprPtr> args;
    args.push_back(std::move(array));
    CELLAR_TRY_ASSIGN(args.emplace_back(),
                      Coerce(std::move(value), element, CastContext::kAssignment, location));
    for (const ast::IndirectionStep& step : target.steps) {
      CELLAR_TRY_ASSIGN(ExprPtr index, BindExpr(*step.upper, env));
      const Type wanted = MakeType(TypeId::kInt4);
      if (index->type.id != TypeId::kUnknown &&
          !CanCast(index->type, wanted, CastContext::kAssignment)) {
        return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                        "array subscript must have type integer")
            .WithLocation(ExprLocation(*step.upper));
      }
      CELLAR_TRY_ASSIGN(args.emplace_back(),
                        Coerce(std::move(index), wanted, CastContext::kAssignment, -1));
    }
    return MakeCall(&ArrayAssignFunction(), column.type, std::move(args));
  };
  auto assign = [&](const ast::AssignTarget& target, ExprPtr value, bool is_default,
                    int location) -> Status {
    CELLAR_TRY_ASSIGN(const ScopeColumn* named,
                      ChangedColumn(to, item, target.column, target.location, Change::kUpdate));
    const int position = LivingPosition(table, BaseOf(*named).column);
    ExprPtr* before = nullptr;  // what the column has become by assignments to its elements
    for (auto& [known, expr] : *out) {
      if (known == position && !target.steps.empty() && expr->kind == ExprKind::kCall &&
          expr->function == &ArrayAssignFunction()) {
        before = &expr;
      } else if (known == position) {
        return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                        "multiple assignments to same column \"{}\"", target.column)
            .WithLocation(target.location);
      }
    }
    const catalog::ColumnDescriptor& column =
        table.columns[static_cast<size_t>(living[static_cast<size_t>(position)])];
    if (!target.steps.empty()) {
      if (is_default) {
        return UnsupportedError("cannot set an array element to DEFAULT")
            .WithLocation(target.location);
      }
      if (!column.generated_sql.empty()) return NotDefault(column, false, location);
      ExprPtr array = before != nullptr ? std::move(*before)
                                        : s_.ColumnExpr(target_ids[static_cast<size_t>(position)]);
      CELLAR_TRY_ASSIGN(
          value, assign_element(std::move(array), target, column, std::move(value), location));
      if (before != nullptr) {
        *before = std::move(value);
      } else {
        out->emplace_back(position, std::move(value));
      }
      return Status();
    }
    if (is_default) {
      CELLAR_TRY_ASSIGN(value, ColumnDefault(table, column));
    } else {
      if (!column.generated_sql.empty() || column.identity == catalog::Identity::kAlways) {
        return NotDefault(column, false, location);
      }
      CELLAR_TRY_ASSIGN(value, AssignTo(std::move(value), column, location));
    }
    out->emplace_back(position, std::move(value));
    return Status();
  };
  for (const ast::SetClause& set : sets) {
    if (!set.multi) {
      bool is_default = set.value->kind == ast::NodeKind::kDefault;
      ExprPtr value;
      // An unknown column is reported before what is wrong with the value.
      CELLAR_TRY(
          ChangedColumn(to, item, set.targets[0].column, set.targets[0].location, Change::kUpdate)
              .status());
      if (!is_default) {
        CELLAR_TRY_ASSIGN(value, BindExpr(*set.value, env));
      }
      CELLAR_TRY(assign(set.targets[0], std::move(value), is_default, ExprLocation(*set.value)));
      continue;
    }
    if (set.value->kind == ast::NodeKind::kRow) {
      const auto& row = set.value->As<ast::RowExpr>();
      if (ExpandsRecords(row.args)) {
        std::vector<ExprPtr> fields;
        CELLAR_TRY(BindList(row.args, env, &fields));
        if (fields.size() != set.targets.size()) {
          return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                          "number of columns does not match number of values")
              .WithLocation(set.value->location);
        }
        for (size_t i = 0; i < fields.size(); ++i) {
          CELLAR_TRY(assign(set.targets[i], std::move(fields[i]), false, set.value->location));
        }
        continue;
      }
      if (row.args.size() != set.targets.size()) {
        return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                        "number of columns does not match number of values")
            .WithLocation(set.value->location);
      }
      for (size_t i = 0; i < row.args.size(); ++i) {
        bool is_default = row.args[i]->kind == ast::NodeKind::kDefault;
        ExprPtr value;
        if (!is_default) {
          CELLAR_TRY_ASSIGN(value, BindExpr(*row.args[i], env));
        }
        CELLAR_TRY(
            assign(set.targets[i], std::move(value), is_default, ExprLocation(*row.args[i])));
      }
      continue;
    }
    if (set.value->kind != ast::NodeKind::kSubLink ||
        set.value->As<ast::SubLink>().sub_kind != ast::SubLinkKind::kExpr) {
      return UnsupportedError(
                 "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() "
                 "expression")
          .WithLocation(set.value->location);
    }
    // (a, b) = (SELECT x, y ..): one scalar subquery per column.
    const auto& link = set.value->As<ast::SubLink>();
    for (size_t i = 0; i < set.targets.size(); ++i) {
      CELLAR_TRY_ASSIGN(BoundQuery query, BindSelect(*link.select, env.scope));
      if (query.columns.size() != set.targets.size()) {
        return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                        "number of columns does not match number of values")
            .WithLocation(set.value->location);
      }
      auto value = std::make_unique<Expr>();
      value->kind = ExprKind::kSubplan;
      value->subplan_kind = SubplanKind::kScalar;
      value->type = s_.column(query.columns[i].id).type;
      value->location = link.location;
      value->index = static_cast<int>(s_.subqueries.size());
      Subquery subquery;
      subquery.root = std::move(query.root);
      subquery.ids.push_back(query.columns[i].id);
      s_.AddSubquery(std::move(subquery));
      CELLAR_TRY(assign(set.targets[i], std::move(value), false, link.location));
    }
  }
  return AddGenerated(table, target_ids, out);
}

namespace {

LogicalPtr Locked(LogicalLock::Target target, LogicalPtr root) {
  auto lock = std::make_unique<LogicalLock>();
  lock->targets.push_back(std::move(target));
  lock->children.push_back(std::move(root));
  return lock;
}

}  // namespace

Result<Binder::TargetRows> Binder::BindTargetRows(const DmlTarget& to,
                                                  const ast::QualifiedName& name,
                                                  const std::string& alias, Change change,
                                                  const std::vector<ast::FromItemPtr>& others,
                                                  const Scope* outer, Block* block) {
  TargetRows out;
  ScopeItem* base = NewItem();
  std::unique_ptr<LogicalGet> get = MakeGet(to.table, alias, base);
  base->schema = SchemaOfTarget(name);
  AskAs(to, base->use);
  NoteChange(base->use, change);
  out.lock = LockOf(get.get(), {change == Change::kDelete ? RowLockMode::kForUpdate
                                                          : RowLockMode::kForNoKeyUpdate,
                                RowLockWait::kBlock});
  out.ids = get->ids;
  out.row_ref = get->row_ref;
  out.root = std::move(get);
  std::vector<ExprPtr> of_views;
  CELLAR_TRY_ASSIGN(out.named, ThroughViews(to, base, alias, &of_views));
  if (!of_views.empty()) {
    auto filter = std::make_unique<LogicalFilter>();
    filter->conditions = std::move(of_views);
    out.root = Wrap(std::move(filter), std::move(out.root));
  }
  block->scope.block = block;
  block->scope.parent = outer;
  block->scope.items.push_back(out.named);
  if (others.empty()) return out;
  CELLAR_TRY_ASSIGN(FromResult from, BindFromList(others, outer, block));
  auto join = std::make_unique<LogicalJoin>();
  join->children.push_back(std::move(out.root));
  join->children.push_back(std::move(from.root));
  out.root = std::move(join);
  block->scope.items.insert(block->scope.items.end(), from.items.begin(), from.items.end());
  CELLAR_TRY(CheckDuplicateNames(block->scope.items));
  return out;
}

Result<BoundQuery> Binder::BindUpdate(const ast::UpdateStmt& update, const Scope* outer) {
  CELLAR_TRY_ASSIGN(DmlTarget to, FindTarget(update.table, Change::kUpdate));
  const catalog::TablePtr& table = to.table;
  auto node = std::make_unique<LogicalUpdate>();
  node->table = table;
  node->alias = update.alias.name.empty() ? update.table.name : update.alias.name;
  Block block;
  CELLAR_TRY_ASSIGN(TargetRows rows, BindTargetRows(to, update.table, node->alias, Change::kUpdate,
                                                    update.from, outer, &block));
  node->target = std::move(rows.ids);
  node->row_ref = rows.row_ref;
  LogicalPtr root = std::move(rows.root);
  Env env;
  env.scope = &block.scope;
  env.place = Place::kUpdate;
  CELLAR_TRY(BindAssignments(update.sets, to, *rows.named, env, node->target, &node->assignments));
  MarkUpdated(update.sets, *rows.named);
  if (update.where != nullptr) {
    env.place = Place::kWhere;
    CELLAR_TRY_ASSIGN(ExprPtr condition, BindCondition(*update.where, env, "WHERE"));
    auto filter = std::make_unique<LogicalFilter>();
    SplitConjuncts(std::move(condition), &filter->conditions);
    if (!filter->conditions.empty()) {
      filter->children.push_back(std::move(root));
      root = std::move(filter);
    }
  }
  node->children.push_back(Locked(std::move(rows.lock), std::move(root)));
  CELLAR_TRY(BindChecks(*table, &node->checks));
  std::vector<ForeignKeyCheck> own, theirs;
  CELLAR_TRY(AddForeignKeys(*table, &own));
  CELLAR_TRY(AddReferencing(*table, &theirs));
  auto changes = [&](const ForeignKeyCheck& check) {
    for (int position : check.columns) {
      for (const auto& [assigned, value] : node->assignments) {
        if (assigned == position) return true;
      }
    }
    return false;
  };
  for (ForeignKeyCheck& check : own) {
    if (changes(check)) node->foreign_keys.push_back(std::move(check));
  }
  for (ForeignKeyCheck& check : theirs) {
    if (!changes(check)) continue;
    for (const catalog::ForeignKey& key : check.table->foreign_keys) {
      if (key.name == check.constraint) check.action = key.on_update;
    }
    node->referenced_by.push_back(std::move(check));
  }
  BoundQuery query;
  if (!update.returning.empty()) {
    node->has_returning = true;
    CELLAR_TRY(BindReturning(update.returning, &block.scope, &node->returning, &query, node.get()));
  }
  query.root = std::move(node);
  return query;
}

Result<BoundQuery> Binder::BindDelete(const ast::DeleteStmt& del, const Scope* outer) {
  CELLAR_TRY_ASSIGN(DmlTarget to, FindTarget(del.table, Change::kDelete));
  const catalog::TablePtr& table = to.table;
  auto node = std::make_unique<LogicalDelete>();
  node->table = table;
  node->alias = del.alias.name.empty() ? del.table.name : del.alias.name;
  Block block;
  CELLAR_TRY_ASSIGN(TargetRows rows, BindTargetRows(to, del.table, node->alias, Change::kDelete,
                                                    del.using_items, outer, &block));
  node->target = std::move(rows.ids);
  node->row_ref = rows.row_ref;
  LogicalPtr root = std::move(rows.root);
  Env env;
  env.scope = &block.scope;
  if (del.where != nullptr) {
    env.place = Place::kWhere;
    CELLAR_TRY_ASSIGN(ExprPtr condition, BindCondition(*del.where, env, "WHERE"));
    auto filter = std::make_unique<LogicalFilter>();
    SplitConjuncts(std::move(condition), &filter->conditions);
    if (!filter->conditions.empty()) {
      filter->children.push_back(std::move(root));
      root = std::move(filter);
    }
  }
  node->children.push_back(Locked(std::move(rows.lock), std::move(root)));
  CELLAR_TRY(AddReferencing(*table, &node->referenced_by));
  BoundQuery query;
  if (!del.returning.empty()) {
    node->has_returning = true;
    CELLAR_TRY(BindReturning(del.returning, &block.scope, &node->returning, &query, node.get()));
  }
  query.root = std::move(node);
  return query;
}

}  // namespace cellar::sql::planning
