// FROM: tables, views, CTEs, subqueries, functions and joins, and the scopes that they make.
#include <algorithm>
#include <utility>

#include "cellar/sql/expr/record_field.h"
#include "cellar/sql/plan/binder.h"
#include "cellar/sql/plan/system_views.h"

namespace cellar::sql::planning {

namespace {

constexpr std::string_view kInvalidRecursion = "42P19";
// Views that name views that name views.
constexpr int kMaxViewDepth = 64;
constexpr size_t kMaxFromItems = 1000;
// Of a statement, those of its views among them, which may double with each view on views.
constexpr size_t kMaxRelations = 10000;

std::string Shown(const ast::QualifiedName& name) {
  std::string out;
  if (!name.catalog.empty()) out += name.catalog + ".";
  if (!name.schema.empty()) out += name.schema + ".";
  return out + name.name;
}

// Binds what may name columns of its siblings. Aggregates of those are not allowed there.
template <typename F>
auto BindLateral(Block* block, F&& bind) {
  if (block == nullptr) return bind();
  const Place place = std::exchange(block->subquery_place, Place::kOwnFrom);
  auto bound = bind();
  block->subquery_place = place;
  return bound;
}

LogicalPtr CrossJoin(LogicalPtr left, LogicalPtr right) {
  if (left == nullptr) return right;
  auto join = std::make_unique<LogicalJoin>();
  join->children.push_back(std::move(left));
  join->children.push_back(std::move(right));
  return join;
}

}  // namespace

std::vector<int> LivingColumns(const catalog::TableDescriptor& table) {
  std::vector<int> out;
  out.reserve(table.columns.size());
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (!table.columns[i].dropped) out.push_back(static_cast<int>(i));
  }
  return out;
}

void Binder::UseTable(const catalog::TablePtr& table) {
  for (const catalog::TablePtr& known : s_.tables) {
    if (known->id == table->id) return;
  }
  s_.tables.push_back(table);
}

int Binder::AddUse(const catalog::TablePtr& relation) {
  RelationUse use;
  use.relation = relation;
  use.view = view_;
  s_.uses.push_back(std::move(use));
  return static_cast<int>(s_.uses.size()) - 1;
}

void Binder::MarkSelected(const ScopeColumn& column) {
  if (column.below != nullptr) MarkSelected(*column.below);
  if (column.use < 0) return;
  RelationUse& use = s_.uses[static_cast<size_t>(column.use)];
  use.selects = true;
  if (std::find(use.selected.begin(), use.selected.end(), column.column) == use.selected.end()) {
    use.selected.push_back(column.column);
  }
}

Status Binder::CheckSchema(const ast::QualifiedName& name) {
  // What a view's text names was found when the view was made.
  if (name.schema.empty() || view_ != nullptr) return Status();
  PLAN_TRY_AT(CheckSchemaUse(*s_.context.catalog, *s_.context.scope, name.schema), name.location);
  return Status();
}

Status Binder::CheckCatalogName(const ast::QualifiedName& name) {
  if (!name.catalog.empty() && name.catalog != s_.context.scope->database_name) {
    return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                    "cross-database references are not implemented: \"{}\"", Shown(name))
        .WithLocation(name.location);
  }
  return Status();
}

Status Binder::CheckDuplicateNames(const std::vector<ScopeItem*>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i]->name.empty() || !items[i]->relation_visible) continue;
    for (size_t j = 0; j < i; ++j) {
      if (!items[j]->relation_visible || items[j]->name != items[i]->name) continue;
      // Tables of one name in two schemas may stand side by side.
      if (!items[i]->schema.empty() && !items[j]->schema.empty() &&
          items[i]->schema != items[j]->schema) {
        continue;
      }
      return SqlError(Code::kInvalid, sqlstate::kDuplicateAlias,
                      "table name \"{}\" specified more than once", items[i]->name);
    }
  }
  return Status();
}

Result<Binder::FromResult> Binder::BindFromList(const std::vector<ast::FromItemPtr>& from,
                                                const Scope* outer, Block* block) {
  // Their joins nest as deep.
  if (from.size() > kMaxFromItems) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded, "FROM has more than {} items",
                    kMaxFromItems);
  }
  FromResult out;
  for (const ast::FromItemPtr& item : from) {
    CELLAR_TRY_ASSIGN(FromResult one, BindFromItem(*item, outer, out.items, block));
    out.root = CrossJoin(std::move(out.root), std::move(one.root));
    out.items.insert(out.items.end(), one.items.begin(), one.items.end());
  }
  CELLAR_TRY(CheckDuplicateNames(out.items));
  if (out.root == nullptr) out.root = std::make_unique<LogicalResult>();
  return out;
}

Result<Binder::FromResult> Binder::BindFromItem(const ast::FromItem& item, const Scope* outer,
                                                const std::vector<ScopeItem*>& siblings,
                                                Block* block) {
  CELLAR_TRY(s_.CheckCancel());
  if (++s_.from_items > kMaxRelations) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "the statement and its views read more than {} relations", kMaxRelations);
  }
  switch (item.kind) {
    case ast::NodeKind::kTableRef: return BindTableRef(item.As<ast::TableRef>(), outer);
    case ast::NodeKind::kSubqueryRef: {
      const auto& ref = item.As<ast::SubqueryRef>();
      if (!ref.lateral) return BindSubqueryRef(ref, outer);
      Scope scope;
      scope.parent = outer;
      scope.block = block;
      scope.items = siblings;
      return BindLateral(block, [&] { return BindSubqueryRef(ref, &scope); });
    }
    case ast::NodeKind::kFunctionRef: {
      Scope scope;
      scope.parent = outer;
      scope.block = block;
      scope.items = siblings;
      return BindLateral(
          block, [&] { return BindFunctionRef(item.As<ast::FunctionRef>(), &scope, block); });
    }
    case ast::NodeKind::kJoin: return BindJoin(item.As<ast::JoinExpr>(), outer, siblings, block);
    case ast::NodeKind::kUnsupportedFrom:
      return UnsupportedError("{} is not supported", item.As<ast::UnsupportedFrom>().what)
          .WithLocation(item.location);
    default: break;
  }
  return UnsupportedError("this FROM item is not supported").WithLocation(item.location);
}

Status Binder::ApplyAlias(ScopeItem* item, const ast::Alias& alias, int location) {
  if (!alias.name.empty()) {
    item->name = alias.name;
    item->schema.clear();
  }
  size_t next = 0;
  for (ScopeColumn& column : item->columns) {
    if (column.hidden) continue;
    if (next == alias.columns.size()) break;
    column.name = alias.columns[next++];
  }
  if (next < alias.columns.size()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidColumnReference,
                    "table \"{}\" has {} columns available but {} columns specified", item->name,
                    next, alias.columns.size())
        .WithLocation(location);
  }
  return Status();
}

Result<ScopeItem*> Binder::MakeItem(std::string name, const std::vector<QueryColumn>& columns,
                                    const ast::Alias& alias, int location) {
  ScopeItem* item = NewItem();
  item->name = std::move(name);
  item->columns.reserve(columns.size());
  for (const QueryColumn& column : columns) {
    item->columns.push_back({column.name, column.id});
  }
  CELLAR_TRY(ApplyAlias(item, alias, location));
  return item;
}

void Binder::NoteUse(NameUse use) {
  if (s_.context.name_uses != nullptr && view_depth_ == 0) s_.context.name_uses->push_back(use);
}

void Binder::NoteColumn(const ScopeItem& item, const ScopeColumn& column, int location) {
  if (s_.context.name_uses == nullptr || item.get == nullptr || item.table == nullptr) return;
  const auto at = static_cast<size_t>(&column - item.columns.data());
  if (at < item.get->columns.size())
    NoteUse({location, item.table->id, item.get->columns[at], false});
}

std::unique_ptr<LogicalGet> Binder::MakeGet(const catalog::TablePtr& table,
                                            const std::string& alias, ScopeItem* item) {
  UseTable(table);
  ++s_.relations;
  auto get = std::make_unique<LogicalGet>();
  get->table = table;
  get->alias = alias;
  item->name = alias;
  item->table = table;
  item->get = get.get();
  item->use = get->use = AddUse(table);
  item->columns.reserve(table->columns.size());
  for (size_t i = 0; i < table->columns.size(); ++i) {
    const catalog::ColumnDescriptor& column = table->columns[i];
    if (column.dropped) continue;
    ColumnInfo info;
    info.name = column.name;
    info.qualifier = alias;
    info.type = column.type;
    if (!column.hidden) {
      info.table_oid = table->oid();
      info.attnum = static_cast<int16_t>(i + 1);
    }
    info.not_null = column.not_null;
    int id = s_.AddColumn(std::move(info));
    get->ids.push_back(id);
    get->columns.push_back(column.id);
    item->columns.push_back({column.name, id, column.hidden, item->use, column.id});
  }
  // An index whose texts do not bind is no help to the query, and no harm.
  if (Status status = BindIndexes(get.get()); !status.ok()) {
    get->index_expressions.clear();
    get->index_predicates.clear();
  }
  return get;
}

Result<Binder::FromResult> Binder::BindTableRef(const ast::TableRef& ref, const Scope* outer) {
  if (ref.has_sample) {
    return UnsupportedError("TABLESAMPLE is not supported").WithLocation(ref.location);
  }
  CELLAR_TRY(CheckCatalogName(ref.name));
  int location = ref.name.location >= 0 ? ref.name.location : ref.location;
  if (ref.name.schema.empty()) {
    for (size_t i = cte_names_.size(); i-- > 0;) {
      if (cte_names_[i].name == ref.name.name) return BindCteRef(cte_names_[i], ref);
    }
  }
  std::string alias = ref.alias.name.empty() ? ref.name.name : ref.alias.name;
  const PlannerContext& context = s_.context;
  const std::string& schema = ref.name.schema;
  FromResult out;
  ScopeItem* item = nullptr;
  const VirtualTable* virtual_table = nullptr;
  if (context.virtual_catalog != nullptr) {
    if (schema.empty()) {
      virtual_table = context.virtual_catalog->Find("pg_catalog", ref.name.name);
      for (size_t i = 0; virtual_table == nullptr && i < context.scope->search_path.size(); ++i) {
        // Only information_schema can be met here; user tables before it win.
        const std::string& entry = context.scope->search_path[i];
        if (!context.virtual_catalog->HasSchema(entry)) continue;
        if (FindRelation(*context.catalog, *context.scope, "", ref.name.name) == nullptr) {
          virtual_table = context.virtual_catalog->Find(entry, ref.name.name);
        }
      }
    } else {
      virtual_table = context.virtual_catalog->Find(schema, ref.name.name);
    }
  }
  if (virtual_table != nullptr) {
    s_.uses_virtual = true;
    s_.virtual_tables.push_back(virtual_table);
    if (!virtual_table->view_sql.empty()) {
      return BindView(virtual_table->view_sql, ref.name.name, alias, ref.alias, location, view_);
    }
    ++s_.relations;
    auto get = std::make_unique<LogicalVirtualGet>();
    get->table = virtual_table;
    get->alias = alias;
    item = NewItem();
    item->name = alias;
    item->schema = virtual_table->schema;
    if (virtual_table->schema == "pg_catalog" && virtual_table->oid < kFirstSystemView)
      item->system_oid = virtual_table->oid;
    item->columns.reserve(virtual_table->columns.size());
    for (const OutputColumn& column : virtual_table->columns) {
      ColumnInfo info;
      info.name = column.name;
      info.qualifier = alias;
      info.type = column.type;
      info.table_oid = virtual_table->oid;
      info.attnum = column.attnum != 0 ? column.attnum : static_cast<int16_t>(get->ids.size() + 1);
      int id = s_.AddColumn(std::move(info));
      get->ids.push_back(id);
      item->columns.push_back({column.name, id});
    }
    CELLAR_TRY(ApplyAlias(item, ref.alias, location));
    out.root = std::move(get);
    out.items.push_back(item);
    return out;
  }
  CELLAR_TRY(CheckSchema(ref.name));
  catalog::TablePtr table = FindRelation(*context.catalog, *context.scope, schema, ref.name.name);
  if (table == nullptr) {
    return SqlError(Code::kInvalid, sqlstate::kUndefinedTable, "relation \"{}\" does not exist",
                    Shown(ref.name))
        .WithLocation(location);
  }
  NoteUse({location, table->id, {}, ref.alias.name.empty()});
  if (table->kind == catalog::RelationKind::kView) {
    UseTable(table);
    ast::Alias names;
    names.name = ref.alias.name;
    names.columns = ref.alias.columns;
    for (const catalog::ColumnDescriptor& column : table->columns) {
      if (!column.dropped) names.columns.push_back(column.name);
    }
    // The view's own column names, then the reference's over them.
    size_t given = ref.alias.columns.size();
    if (given > 0) {
      std::vector<std::string> own(names.columns.begin() + static_cast<long>(given),
                                   names.columns.end());
      for (size_t i = 0; i < given && i < own.size(); ++i) own[i] = ref.alias.columns[i];
      names.columns = std::move(own);
    }
    const int use = AddUse(table);
    s_.uses[static_cast<size_t>(use)].selects = true;
    CELLAR_TRY_ASSIGN(FromResult view,
                      BindView(table->view_sql, ref.name.name, alias, names, location, table));
    ScopeItem* shown = view.items.back();
    shown->use = use;
    if (ref.alias.name.empty()) shown->schema = schema.empty() ? "public" : schema;
    size_t next = 0;
    for (const catalog::ColumnDescriptor& column : table->columns) {
      if (column.dropped || next >= shown->columns.size()) continue;
      shown->columns[next].use = use;
      shown->columns[next++].column = column.id;
    }
    return view;
  }
  if (table->kind == catalog::RelationKind::kSequence && table->columns.empty()) {
    UseTable(table);
    const int use = AddUse(table);
    s_.uses[static_cast<size_t>(use)].selects = true;
    CELLAR_TRY_ASSIGN(
        FromResult state,
        BindView(fmt::format("SELECT last_value, log_cnt, is_called "
                             "FROM pg_catalog.cellar_sequence_state WHERE seqrelid = {}",
                             table->oid()),
                 ref.name.name, alias, ref.alias, location, view_));
    state.items.back()->use = use;
    return state;
  }
  item = NewItem();
  std::unique_ptr<LogicalGet> get = MakeGet(table, alias, item);
  s_.uses[static_cast<size_t>(item->use)].selects = true;
  item->schema = schema.empty() ? "public" : schema;
  CELLAR_TRY(ApplyAlias(item, ref.alias, location));
  out.root = std::move(get);
  out.items.push_back(item);
  return out;
}

Result<Binder::FromResult> Binder::BindView(const std::string& sql, std::string_view name,
                                            std::string_view alias, const ast::Alias& alias_spec,
                                            int location, const catalog::TablePtr& view) {
  if (view_depth_ >= kMaxViewDepth) {
    return SqlError(Code::kLimit, sqlstate::kInvalidObjectDefinition,
                    "infinite recursion detected in rules for relation \"{}\"", name)
        .WithLocation(location);
  }
  Result<sql::Statement> parsed = ParseOne(sql);
  if (!parsed.ok()) {
    return InternalError("the text of view \"{}\" does not parse: {}", name,
                         parsed.status().message());
  }
  if (parsed->ast == nullptr || parsed->ast->kind != ast::NodeKind::kSelect) {
    return InternalError("the text of view \"{}\" is not a query", name);
  }
  std::vector<CteName> saved;
  saved.swap(cte_names_);
  ++view_depth_;
  catalog::TablePtr outer_view = std::exchange(view_, view);
  Result<BoundQuery> query = BindSelect(parsed->ast->As<ast::SelectStmt>(), nullptr);
  view_ = std::move(outer_view);
  --view_depth_;
  saved.swap(cte_names_);
  if (!query.ok()) {
    // Positions inside the view's text mean nothing to the statement's reader.
    Status error = std::move(query).status();
    return std::move(error).WithLocation(location);
  }
  FromResult out;
  CELLAR_TRY_ASSIGN(ScopeItem * item,
                    MakeItem(std::string(alias), query->columns, alias_spec, location));
  item->tree = query->root.get();
  out.root = std::move(query->root);
  out.items.push_back(item);
  return out;
}

Status Binder::CheckRecursion(const CteName& name, int location) const {
  const auto refuse = [&](std::string_view where) {
    return SqlError(Code::kInvalid, kInvalidRecursion,
                    "recursive reference to query \"{}\" must not appear {}", name.name, where)
        .WithLocation(location);
  };
  if (name.no_union) {
    return SqlError(Code::kInvalid, kInvalidRecursion,
                    "recursive query \"{}\" does not have the form non-recursive-term UNION [ALL] "
                    "recursive-term",
                    name.name)
        .WithLocation(location);
  }
  if (name.too_early) return refuse("within its non-recursive term");
  for (size_t i = name.recursion; i < recursion_places_.size(); ++i) {
    if (!recursion_places_[i].empty())
      return refuse(fmt::format("within {}", recursion_places_[i]));
  }
  if (*name.referenced) return refuse("more than once");
  return Status();
}

Result<Binder::FromResult> Binder::BindCteRef(CteName& named, const ast::TableRef& ref) {
  CteName name = named;
  if (!name.is_work_table && name.definition != nullptr) {
    const Cte& known = s_.ctes[static_cast<size_t>(name.cte)];
    if (known.references > 0 && !known.modifying && !FreeIds(s_, *known.root).empty()) {
      // A correlated one is computed where it is used: each use gets its own tree.
      size_t position = static_cast<size_t>(&named - cte_names_.data());
      std::vector<CteName> saved = cte_names_;
      cte_names_.resize(position);
      CELLAR_TRY_ASSIGN(name.cte, BindCte(*name.definition, name.recursive, name.outer));
      cte_names_ = std::move(saved);
    }
  }
  std::string alias = ref.alias.name.empty() ? ref.name.name : ref.alias.name;
  ++s_.relations;
  FromResult out;
  std::vector<QueryColumn> columns;
  auto fresh = [&](const std::vector<QueryColumn>& from, Logical* node) -> Status {
    for (const QueryColumn& column : from) {
      ColumnInfo info = s_.column(column.id);
      info.qualifier = alias;
      info.name = column.name;
      int id = s_.AddColumn(std::move(info));
      node->ids.push_back(id);
      columns.push_back({column.name, id});
    }
    return Status();
  };
  if (name.is_work_table) {
    CELLAR_TRY(CheckRecursion(name, ref.location));
    *name.referenced = true;
    auto scan = std::make_unique<LogicalWorkTable>();
    scan->work_table = name.work_table;
    scan->name = name.name;
    CELLAR_TRY(fresh(name.columns, scan.get()));
    out.root = std::move(scan);
  } else {
    Cte& cte = s_.ctes[static_cast<size_t>(name.cte)];
    if (cte.modifying && cte.columns.empty()) {
      return SqlError(Code::kInvalid, sqlstate::kFeatureNotSupported,
                      "WITH query \"{}\" does not have a RETURNING clause", name.name)
          .WithLocation(ref.location);
    }
    ++cte.references;
    auto scan = std::make_unique<LogicalCteRef>();
    scan->cte = name.cte;
    CELLAR_TRY(fresh(cte.columns, scan.get()));
    out.root = std::move(scan);
  }
  CELLAR_TRY_ASSIGN(ScopeItem * item, MakeItem(alias, columns, ref.alias, ref.location));
  item->work_table = name.is_work_table;
  out.items.push_back(item);
  return out;
}

Result<Binder::FromResult> Binder::BindSubqueryRef(const ast::SubqueryRef& ref,
                                                   const Scope* outer) {
  CELLAR_TRY_ASSIGN(BoundQuery query, BindSelect(*ref.select, outer));
  FromResult out;
  CELLAR_TRY_ASSIGN(ScopeItem * item,
                    MakeItem(ref.alias.name, query.columns, ref.alias, ref.location));
  item->tree = query.root.get();
  out.root = std::move(query.root);
  out.items.push_back(item);
  return out;
}

Result<Binder::FromResult> Binder::BindFunctionRef(const ast::FunctionRef& ref, const Scope* outer,
                                                   Block* block) {
  Scope scope;
  scope.parent = outer;
  Env env;
  env.scope = &scope;
  env.place = Place::kFunctionInFrom;
  ++s_.relations;
  auto node = std::make_unique<LogicalFunctionGet>();
  node->ordinality = ref.ordinality;
  ScopeItem* item = NewItem();
  auto new_column = [&](const std::string& name, Type type) {
    ColumnInfo info;
    info.name = name;
    info.type = type;
    return s_.AddColumn(std::move(info));
  };
  auto add_column = [&](std::string name, Type type) {
    const int id = new_column(name, type);
    node->ids.push_back(id);
    item->columns.push_back({std::move(name), id});
  };
  auto fields = std::make_unique<LogicalProject>();  // of records with column definitions
  size_t scalars = 0;
  std::string first_name;
  for (const ast::FunctionRef::Function& function : ref.functions) {
    std::string name = OutputName(*function.call);
    if (first_name.empty()) first_name = name;
    // unnest(a, b) is ROWS FROM (unnest(a), unnest(b)).
    if (function.call->kind == ast::NodeKind::kFuncCall) {
      const auto& call = function.call->As<ast::FuncCall>();
      if (call.name.name == "unnest" && call.args.size() > 1) {
        for (const ast::ExprPtr& arg : call.args) {
          CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(*arg, env));
          std::vector<ExprPtr> one;
          one.push_back(std::move(bound));
          CELLAR_TRY_ASSIGN(ExprPtr unnest, CallFunction("unnest", std::move(one), call.location));
          add_column("unnest", unnest->type);
          node->calls.push_back(std::move(unnest));
          ++scalars;
        }
        continue;
      }
    }
    CELLAR_TRY_ASSIGN(ExprPtr call, BindExpr(*function.call, env));
    CELLAR_TRY_ASSIGN(call, ResolveUnknown(std::move(call)));
    const std::vector<ast::ColumnDef>& definitions =
        !function.columns.empty() ? function.columns : ref.columns;
    bool many = call->kind == ExprKind::kCall && call->function->set_columns.size() > 1;
    if (!definitions.empty()) {
      if (call->type.id != TypeId::kRecord || call->type.array || many) {
        Status error =
            many ? SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                            "a column definition list is redundant for a function with OUT "
                            "parameters")
                 : SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                            "a column definition list is only allowed for functions returning "
                            "\"record\"");
        return std::move(error).WithLocation(ref.location);
      }
      const int record = new_column(name, call->type);
      node->ids.push_back(record);
      for (size_t i = 0; i < definitions.size(); ++i) {
        CELLAR_TRY_ASSIGN(Type type, TypeNamed(definitions[i].type));
        const int id = new_column(definitions[i].name, type);
        item->columns.push_back({definitions[i].name, id, false});
        fields->ids.push_back(id);
        fields->exprs.push_back(MakeFieldOf(s_.ColumnExpr(record), i, definitions.size(), type));
      }
    } else if (many) {
      for (const auto& [column_name, type] : call->function->set_columns) {
        add_column(column_name, SetColumnType(*call, type));
      }
    } else if (call->kind == ExprKind::kRow && !call->names.empty()) {
      for (size_t i = 0; i < call->names.size(); ++i) {
        add_column(call->names[i], call->args[i]->type);
      }
    } else if (call->type.id == TypeId::kRecord && !call->type.array) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                      "a column definition list is required for functions returning \"record\"")
          .WithLocation(ref.location);
    } else {
      // A scalar's column is called like the alias.
      bool rename = !ref.alias.name.empty() && ref.alias.columns.empty() && !ref.rows_from;
      std::string column_name = name;
      if (call->kind == ExprKind::kCall && call->function->set_columns.size() == 1 &&
          !call->function->set_columns[0].first.empty()) {
        column_name = call->function->set_columns[0].first;
        if (column_name == std::string(call->function->name)) {
          column_name = name;
        } else {
          rename = false;  // it has a name of its own
        }
      }
      add_column(rename ? ref.alias.name : column_name, call->type);
      ++scalars;
    }
    node->calls.push_back(std::move(call));
  }
  if (ref.ordinality) add_column("ordinality", MakeType(TypeId::kInt8));
  item->name = first_name;
  item->scalar_function = scalars == 1 && item->columns.size() == 1;
  CELLAR_TRY(ApplyAlias(item, ref.alias, ref.location));
  node->alias = item->name;
  for (const ScopeColumn& column : item->columns) {
    ColumnInfo& info = s_.columns[static_cast<size_t>(column.id)];
    info.qualifier = item->name;
    info.name = column.name;
  }
  FromResult out;
  out.root = std::move(node);
  if (!fields->ids.empty()) out.root = Wrap(std::move(fields), std::move(out.root));
  out.items.push_back(item);
  return out;
}

Result<Binder::FromResult> Binder::BindJoin(const ast::JoinExpr& join, const Scope* outer,
                                            const std::vector<ScopeItem*>& siblings, Block* block) {
  // A recursive query is not joined where rows may stand for its lack.
  const auto side = [&](const ast::FromItem& of, bool filled,
                        const std::vector<ScopeItem*>& beside) -> Result<FromResult> {
    return InPlace(filled ? "an outer join" : "",
                   [&] { return BindFromItem(of, outer, beside, block); });
  };
  const bool full = join.type == ast::JoinType::kFull;
  CELLAR_TRY_ASSIGN(FromResult left,
                    side(*join.left, full || join.type == ast::JoinType::kRight, siblings));
  std::vector<ScopeItem*> visible = siblings;
  visible.insert(visible.end(), left.items.begin(), left.items.end());
  CELLAR_TRY_ASSIGN(FromResult right,
                    side(*join.right, full || join.type == ast::JoinType::kLeft, visible));

  bool swap = join.type == ast::JoinType::kRight;
  auto node = std::make_unique<LogicalJoin>();
  switch (join.type) {
    case ast::JoinType::kInner: node->join = JoinKind::kInner; break;
    case ast::JoinType::kLeft:
    case ast::JoinType::kRight: node->join = JoinKind::kLeft; break;
    case ast::JoinType::kFull: node->join = JoinKind::kFull; break;
  }

  // Columns to be merged, by name.
  auto find = [&](const std::vector<ScopeItem*>& items, const std::string& name,
                  const char* side) -> Result<const ScopeColumn*> {
    const ScopeColumn* found = nullptr;
    for (const ScopeItem* item : items) {
      if (!item->columns_visible) continue;
      for (const ScopeColumn& column : item->columns) {
        if (column.name != name || column.hidden) continue;
        if (found != nullptr) {
          return SqlError(Code::kInvalid, sqlstate::kAmbiguousColumn,
                          "common column name \"{}\" appears more than once in {} table", name,
                          side)
              .WithLocation(join.location);
        }
        found = &column;
      }
    }
    return found;
  };
  std::vector<std::string> merged = join.using_columns;
  for (size_t i = 0; i < merged.size(); ++i) {
    if (std::find(merged.begin(), merged.begin() + static_cast<long>(i), merged[i]) !=
        merged.begin() + static_cast<long>(i)) {
      return SqlError(Code::kInvalid, sqlstate::kDuplicateColumn,
                      "column name \"{}\" appears more than once in USING clause", merged[i])
          .WithLocation(join.location);
    }
  }
  if (join.natural) {
    for (const ScopeItem* item : left.items) {
      if (!item->columns_visible) continue;
      for (const ScopeColumn& column : item->columns) {
        if (column.hidden) continue;
        CELLAR_TRY_ASSIGN(const ScopeColumn* other, find(right.items, column.name, "right"));
        if (other != nullptr &&
            std::find(merged.begin(), merged.end(), column.name) == merged.end()) {
          merged.push_back(column.name);
        }
      }
    }
  }
  ScopeItem* item = nullptr;
  if (!merged.empty() || !join.alias.name.empty()) {
    item = NewItem();
    item->of_join = true;
  }
  LogicalPtr projection;
  std::vector<int> hidden_ids;
  ScopeItem* using_item = nullptr;
  for (const std::string& name : merged) {
    CELLAR_TRY_ASSIGN(const ScopeColumn* a, find(left.items, name, "left"));
    CELLAR_TRY_ASSIGN(const ScopeColumn* b, find(right.items, name, "right"));
    if (a == nullptr || b == nullptr) {
      return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn,
                      "column \"{}\" specified in USING clause does not exist in {} table", name,
                      a == nullptr ? "left" : "right")
          .WithLocation(join.location);
    }
    MarkSelected(*a);
    MarkSelected(*b);
    const Type left_type = s_.column(a->id).type, right_type = s_.column(b->id).type;
    if (const Type types[2] = {left_type, right_type}; !left_type.SameKind(right_type)) {
      PLAN_TRY_AT(CommonType(types, "JOIN/USING").status(), join.location);
    }
    CELLAR_TRY_ASSIGN(ExprPtr equal,
                      MakeOperator("=", s_.ColumnExpr(a->id), s_.ColumnExpr(b->id), join.location));
    node->conditions.push_back(std::move(equal));
    int id = swap ? b->id : a->id;
    if (full || !left_type.SameKind(right_type)) {
      if (projection == nullptr) projection = std::make_unique<LogicalProject>();
      ExprPtr value;
      if (full) {
        value = std::make_unique<Expr>();
        value->kind = ExprKind::kCoalesce;
        value->args.push_back(s_.ColumnExpr(a->id));
        value->args.push_back(s_.ColumnExpr(b->id));
        std::vector<ExprPtr*> both{&value->args[0], &value->args[1]};
        CELLAR_TRY(CoerceCommon(both, "JOIN/USING", join.location, &value->type));
      } else {
        Type types[2] = {left_type, right_type};
        PLAN_TRY_ASSIGN_AT(Type common, CommonType(types, "JOIN/USING"), join.location);
        CELLAR_TRY_ASSIGN(value, Coerce(s_.ColumnExpr(id), common, CastContext::kImplicit, -1));
      }
      if (value->kind != ExprKind::kColumn) {
        ColumnInfo info;
        info.name = name;
        info.type = value->type;
        id = s_.AddColumn(std::move(info));
        projection->ids.push_back(id);
        projection->As<LogicalProject>().exprs.push_back(std::move(value));
      }
    }
    item->columns.push_back({name, id});
  }
  if (!join.using_alias.empty()) {
    using_item = NewItem();
    using_item->name = join.using_alias;
    using_item->columns = item->columns;
    using_item->columns_visible = false;
    using_item->of_join = true;
  }
  if (item != nullptr) {
    auto is_merged = [&](const std::string& name) {
      return std::find(merged.begin(), merged.end(), name) != merged.end();
    };
    for (FromResult* side : {&left, &right}) {
      for (ScopeItem* child : side->items) {
        if (child->columns_visible) {
          for (const ScopeColumn& column : child->columns) {
            if (!column.hidden && !is_merged(column.name)) item->columns.push_back(column);
          }
        }
      }
    }
  }
  if (join.condition != nullptr) {
    Scope scope;
    scope.parent = outer;
    scope.block = block;
    scope.items = left.items;
    scope.items.insert(scope.items.end(), right.items.begin(), right.items.end());
    Env env;
    env.scope = &scope;
    env.place = Place::kJoinOn;
    CELLAR_TRY_ASSIGN(ExprPtr condition, BindCondition(*join.condition, env, "JOIN/ON"));
    SplitConjuncts(std::move(condition), &node->conditions);
  }
  if (item != nullptr) {
    for (FromResult* side : {&left, &right}) {
      for (ScopeItem* child : side->items) {
        child->columns_visible = false;
        if (!join.alias.name.empty()) child->relation_visible = false;
      }
    }
    CELLAR_TRY(ApplyAlias(item, join.alias, join.location));
  }
  node->children.push_back(std::move(swap ? right.root : left.root));
  node->children.push_back(std::move(swap ? left.root : right.root));
  for (FromResult* side : {&left, &right}) {
    const size_t child = (side == &left) == swap ? 1 : 0;
    const bool nulled =
        node->join == JoinKind::kFull || (node->join == JoinKind::kLeft && child == 1);
    for (ScopeItem* one : side->items) {
      if (!nulled || one->nulled_by != nullptr) continue;
      one->nulled_by = node.get();
      one->nulled_side = child;
    }
  }
  FromResult out;
  if (projection != nullptr && !projection->ids.empty()) {
    projection->children.push_back(std::move(node));
    out.root = std::move(projection);
  } else {
    out.root = std::move(node);
  }
  out.items = std::move(left.items);
  out.items.insert(out.items.end(), right.items.begin(), right.items.end());
  if (item != nullptr) out.items.push_back(item);
  if (using_item != nullptr) out.items.push_back(using_item);
  return out;
}

}  // namespace cellar::sql::planning
