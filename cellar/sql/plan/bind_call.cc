// Function calls: scalar functions, set-returning ones in the select list, aggregates, windows.
#include <algorithm>

#include "cellar/sql/plan/binder.h"
#include "cellar/types/array.h"

namespace cellar::sql::planning {

namespace {

// Parameters that may be named, and what those that are left out are. Functions of PostgreSQL 15
// whose parameters have names.
struct NamedParameters {
  std::string_view function;
  struct One {
    std::string_view name;
    const char* instead = nullptr;  // a constant; null: none
    TypeId type = TypeId::kInt4;    // of that
  };
  std::vector<One> parameters;
};
const NamedParameters* FindNamed(std::string_view function) {
  static const std::vector<NamedParameters> all = {
      {"make_interval",
       {{"years", "0"},
        {"months", "0"},
        {"weeks", "0"},
        {"days", "0"},
        {"hours", "0"},
        {"mins", "0"},
        {"secs", "0", TypeId::kFloat8}}},
      {"make_date", {{"year"}, {"month"}, {"day"}}},
      {"make_time", {{"hour"}, {"min"}, {"sec"}}},
      {"make_timestamp", {{"year"}, {"month"}, {"mday"}, {"hour"}, {"min"}, {"sec"}}},
      {"make_timestamptz",
       {{"year"}, {"month"}, {"mday"}, {"hour"}, {"min"}, {"sec"}, {"timezone"}}},
      {"jsonb_set",
       {{"jsonb_in"}, {"path"}, {"replacement"}, {"create_if_missing", "true", TypeId::kBool}}},
      {"jsonb_insert",
       {{"jsonb_in"}, {"path"}, {"replacement"}, {"insert_after", "false", TypeId::kBool}}},
      {"parse_ident", {{"str"}, {"strict", "true", TypeId::kBool}}},
  };
  for (const NamedParameters& one : all) {
    if (one.function == function) return &one;
  }
  return nullptr;
}

// Brings arguments, the last of them named, into the order of the function's parameters.
Status PlaceNamed(std::string_view function, const std::vector<std::string>& names,
                  std::vector<ExprPtr>* args) {
  const size_t first = args->size() - names.size();
  auto missing = [&] {
    std::string shown(function);
    for (size_t i = 0; i < args->size(); ++i) {
      shown += i == 0 ? "(" : ", ";
      if (i >= first) shown += names[i - first] + " => ";
      shown += FormatType((*args)[i]->type);
    }
    return SqlError(Code::kInvalid, sqlstate::kUndefinedFunction, "function {}) does not exist",
                    shown)
        .WithHint(
            "No function matches the given name and argument types. You might need to add explicit "
            "type casts.");
  };
  const NamedParameters* known = FindNamed(function);
  if (known == nullptr || args->size() > known->parameters.size()) return missing();
  std::vector<int> places(known->parameters.size(), -1);  // of arguments
  for (size_t i = 0; i < first; ++i) places[i] = static_cast<int>(i);
  for (size_t i = 0; i < names.size(); ++i) {
    size_t p = first;
    while (p < places.size() && known->parameters[p].name != names[i]) ++p;
    if (p == places.size()) return missing();
    places[p] = static_cast<int>(first + i);
  }
  // The last parameter without a constant for it may be missing: there is a function without it.
  if (places.back() < 0 && known->parameters.back().instead == nullptr) places.pop_back();
  for (size_t p = 0; p < places.size(); ++p) {
    if (places[p] < 0 && known->parameters[p].instead == nullptr) return missing();
  }
  std::vector<ExprPtr> out;
  for (size_t p = 0; p < places.size(); ++p) {
    if (places[p] >= 0) {
      out.push_back(std::move((*args)[static_cast<size_t>(places[p])]));
      continue;
    }
    const Type type = MakeType(known->parameters[p].type);
    const std::string_view text = known->parameters[p].instead;
    out.push_back(MakeConstant(Value(type, type.id == TypeId::kBool ? Datum::Bool(text == "true")
                                           : type.id == TypeId::kFloat8 ? Datum::Double(0)
                                                                        : Datum::Int(0))));
  }
  *args = std::move(out);
  return Status();
}

bool IsOrderedSetAggregate(std::string_view name) {
  return name == "mode" || name == "percentile_cont" || name == "percentile_disc";
}

Status AggregateNotAllowed(Place place, int location) {
  return SqlError(Code::kInvalid, sqlstate::kGroupingError,
                  "aggregate functions are not allowed in {}", PlaceName(place))
      .WithLocation(location);
}

}  // namespace

bool AggregatesAllowed(Place place) {
  switch (place) {
    case Place::kSelect:
    case Place::kHaving:
    case Place::kOrderBy:
    case Place::kDistinctOn:
    case Place::kWindow: return true;
    default: return false;
  }
}

std::string Signature(std::string_view name, const std::vector<ExprPtr>& args) {
  std::string out(name);
  out += '(';
  for (size_t i = 0; i < args.size(); ++i) {
    if (i > 0) out += ", ";
    out += FormatType(args[i]->type);
  }
  return out + ")";
}

Type SetColumnType(const Expr& call, Type declared) {
  if (declared.id != TypeId::kAnyelement && declared.id != TypeId::kAnyarray) return declared;
  for (const ExprPtr& arg : call.args) {
    Type element = ElementTypeOf(arg->type);
    if (element.id == TypeId::kInvalid) continue;
    return declared.id == TypeId::kAnyelement ? element : arg->type;
  }
  return call.args.empty() ? declared : call.args[0]->type;
}

Result<ExprPtr> Binder::CallFunction(std::string_view name, std::vector<ExprPtr> args,
                                     int location) {
  std::vector<Type> types;
  types.reserve(args.size());
  for (const ExprPtr& arg : args) types.push_back(arg->type);
  PLAN_TRY_ASSIGN_AT(ResolvedFunction resolved, ResolveFunction(name, types), location);
  for (size_t i = 0; i < args.size(); ++i) {
    if (i < resolved.arg_types.size()) {
      CELLAR_TRY_ASSIGN(
          args[i], Coerce(std::move(args[i]), resolved.arg_types[i], CastContext::kImplicit, -1));
    }
  }
  if (name == "nextval" || name == "setval") s_.calls_writer = true;
  CollationSource source = CollationSource::kImplicit;
  PLAN_TRY_AT(Collate(&resolved.spec, args, &resolved.result, &source), location);
  ExprPtr call = MakeCall(resolved.spec, resolved.result, std::move(args));
  call->location = location;
  call->collation_source = source;
  return Fold(std::move(call));
}

Result<ExprPtr> Binder::BindCall(const ast::FuncCall& call, Env& env) {
  constexpr size_t kMostArguments = 100;
  if (call.args.size() > kMostArguments) {
    return SqlError(Code::kLimit, "54023", "cannot pass more than {} arguments to a function",
                    kMostArguments)
        .WithLocation(call.location);
  }
  const std::string& name = call.name.name;
  const std::string& schema = call.name.schema;
  bool builtin = schema.empty() || schema == "pg_catalog" || schema == "information_schema";
  if (!builtin) {
    std::string shown = schema + "." + name;
    std::vector<ExprPtr> args;
    for (const ast::ExprPtr& arg : call.args) {
      CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(*arg, env));
      args.push_back(std::move(bound));
    }
    return SqlError(Code::kInvalid, sqlstate::kUndefinedFunction, "function {} does not exist",
                    Signature(shown, args))
        .WithHint(
            "No function matches the given name and argument types. You might need to add explicit "
            "type casts.")
        .WithLocation(call.location);
  }
  if (call.over != nullptr) return BindWindowCall(call, name, env);
  if (IsAggregate(name)) return BindAggregate(call, name, env);
  if (IsWindowFunction(name)) {
    return SqlError(Code::kInvalid, sqlstate::kWindowingError,
                    "window function {} requires an OVER clause", name)
        .WithLocation(call.location);
  }
  const char* misuse = nullptr;
  if (call.star) misuse = "(*) specified";
  if (call.distinct) misuse = "DISTINCT specified";
  if (!call.order_by.empty())
    misuse = call.within_group ? "WITHIN GROUP specified" : "ORDER BY specified";
  if (call.filter != nullptr) misuse = "FILTER specified";
  if (misuse != nullptr && FunctionExists(name)) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType,
                    "{}, but {} is not an aggregate function", misuse, name)
        .WithLocation(call.location);
  }
  std::vector<ExprPtr> args;
  std::vector<std::string> names;  // of the last ones, when they are named
  args.reserve(call.args.size());
  for (const ast::ExprPtr& arg : call.args) {
    const ast::Expr* value = arg.get();
    if (arg->kind == ast::NodeKind::kNamedArg) {
      const auto& named = arg->As<ast::NamedArgExpr>();
      value = named.arg.get();
      if (std::find(names.begin(), names.end(), named.name) != names.end()) {
        return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                        "argument name \"{}\" used more than once", named.name)
            .WithLocation(arg->location);
      }
      names.push_back(named.name);
    } else if (!names.empty()) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                      "positional argument cannot follow named argument")
          .WithLocation(arg->location);
    }
    CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(*value, env));
    args.push_back(std::move(bound));
  }
  if (!names.empty()) PLAN_TRY_AT(PlaceNamed(name, names, &args), call.location);
  if (!FunctionExists(name) && args.size() == 1 && !call.variadic) {
    // A type's name called like a function is a cast.
    std::optional<Type> type = TypeFromName(name);
    if (!type.has_value() && s_.context.catalog != nullptr && s_.context.scope != nullptr) {
      catalog::TablePtr made =
          FindType(*s_.context.catalog, *s_.context.scope, call.name.schema, name);
      if (made != nullptr) type = MakeEnum(made->enumeration);
    }
    if (type.has_value()) {
      Result<ExprPtr> cast =
          Coerce(CloneExpr(*args[0]), *type, CastContext::kExplicit, call.location);
      if (cast.ok()) return cast;
    }
  }
  if (call.variadic) {
    // VARIADIC ARRAY[a, b] is a, b; other arrays have no counterpart.
    if (args.back()->kind != ExprKind::kArray) {
      return UnsupportedError("VARIADIC is supported with ARRAY[...] only")
          .WithLocation(call.location);
    }
    ExprPtr array = std::move(args.back());
    args.pop_back();
    for (ExprPtr& element : array->args) args.push_back(std::move(element));
  }
  CELLAR_TRY_ASSIGN(ExprPtr bound, CallFunction(name, std::move(args), call.location));
  if (bound->kind == ExprKind::kCall && bound->function->set != nullptr) {
    return BindSetFunction(std::move(bound), name, env);
  }
  return bound;
}

Result<ExprPtr> Binder::BindSetFunction(ExprPtr call, const std::string& name, Env& env) {
  if (env.place == Place::kFunctionInFrom) return call;
  if (env.in_aggregate) {
    return UnsupportedError("aggregate function calls cannot contain set-returning function calls")
        .WithLocation(call->location);
  }
  bool allowed = env.place == Place::kSelect || env.place == Place::kOrderBy ||
                 env.place == Place::kGroupBy || env.place == Place::kDistinctOn;
  if (!allowed || env.scope->block == nullptr) {
    return UnsupportedError("set-returning functions are not allowed in {}", PlaceName(env.place))
        .WithLocation(call->location);
  }
  Block& block = *env.scope->block;
  // The same call twice (in a target and in ORDER BY) is one column.
  for (const BoundSetFunction& known : block.set_functions) {
    if (env.place != Place::kSelect && known.record == nullptr && ExprEquals(*known.call, *call)) {
      return s_.ColumnExpr(known.id, call->location);
    }
  }
  int location = call->location;
  BoundSetFunction entry;
  for (const BoundSetFunction& known : block.set_functions) {
    if (IdsOf(s_, *call).Has(known.id)) entry.level = std::max(entry.level, known.level + 1);
  }
  const auto& columns = call->function->set_columns;
  if (columns.size() > 1) {
    // (f(x)).a, (f(x)).b: one run of f for both.
    for (const BoundSetFunction& known : block.set_functions) {
      if (known.record != nullptr && ExprEquals(*known.call, *call)) {
        return RowOf(*known.record, location);
      }
    }
    auto record = std::make_shared<RecordInfo>();
    for (const auto& [column_name, type] : columns) {
      ColumnInfo info;
      info.name = column_name;
      info.type = SetColumnType(*call, type);
      record->names.push_back(column_name);
      record->ids.push_back(s_.AddColumn(std::move(info)));
    }
    entry.record = record;
    entry.call = std::move(call);
    block.set_functions.push_back(std::move(entry));
    return RowOf(*record, location);
  }
  ColumnInfo info;
  info.name = name;
  info.type = call->type;
  entry.id = s_.AddColumn(std::move(info));
  entry.call = std::move(call);
  int id = entry.id;
  block.set_functions.push_back(std::move(entry));
  return s_.ColumnExpr(id, location);
}

Block* Binder::OwnerOf(const std::vector<const Expr*>& exprs, Env& env) {
  IdSet used;
  for (const Expr* expr : exprs) AddIds(s_, *expr, &used);
  Block* nearest = nullptr;
  for (const Scope* scope = env.scope; scope != nullptr; scope = scope->parent) {
    if (scope->block == nullptr) continue;
    if (nearest == nullptr) nearest = scope->block;
    for (const BoundAggregate& aggregate : scope->block->aggregates) {
      if (used.Has(aggregate.id)) return scope->block;
    }
    for (const ScopeItem* item : scope->items) {
      for (const ScopeColumn& column : item->columns) {
        if (column.id >= 0 && used.Has(column.id)) return scope->block;
      }
    }
  }
  return nearest;
}

Result<AggregateCall> Binder::MakeAggregateCall(const ast::FuncCall& call, const std::string& name,
                                                Env& env, bool windowed) {
  Env inner = env;
  inner.in_aggregate = !windowed;
  AggregateCall out;
  out.distinct = call.distinct;
  std::vector<ExprPtr> args;
  std::vector<SortKey> order;
  auto bind_order = [&]() -> Status {
    for (const ast::SortBy& sort : call.order_by) {
      CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(*sort.expr, inner));
      CELLAR_TRY_ASSIGN(bound, ResolveUnknown(std::move(bound)));
      CELLAR_TRY_ASSIGN(SortKey key, MakeSortKey(sort, std::move(bound)));
      order.push_back(std::move(key));
    }
    return Status();
  };
  for (const ast::ExprPtr& arg : call.args) {
    CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(*arg, inner));
    args.push_back(std::move(bound));
  }
  CELLAR_TRY(bind_order());
  if (call.distinct) {
    for (const ExprPtr& arg : args) CELLAR_TRY(CheckAgreed(*arg));
  }
  if (call.within_group) {
    // Ordered-set aggregates take their sort expressions as last arguments.
    for (const SortKey& key : order) args.push_back(CloneExpr(*key.expr));
  }
  std::vector<Type> types;
  for (const ExprPtr& arg : args) types.push_back(arg->type);
  if (!call.star && args.empty() && name == "count") {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType,
                    "count(*) must be used to call a parameterless aggregate function")
        .WithLocation(call.location);
  }
  PLAN_TRY_ASSIGN_AT(ResolvedAggregate resolved, ResolveAggregate(name, types, call.star),
                     call.location);
  if (call.within_group != IsOrderedSetAggregate(name)) {
    Status error =
        call.within_group
            ? SqlError(Code::kInvalid, sqlstate::kWrongObjectType,
                       "{} is not an ordered-set aggregate, so it cannot have WITHIN GROUP", name)
            : SqlError(Code::kInvalid, sqlstate::kWrongObjectType,
                       "WITHIN GROUP is required for ordered-set aggregate {}", name);
    return std::move(error).WithLocation(call.location);
  }
  for (size_t i = 0; i < args.size() && i < resolved.arg_types.size(); ++i) {
    const ExprPtr given = CloneExpr(*args[i]);
    CELLAR_TRY_ASSIGN(
        args[i], Coerce(std::move(args[i]), resolved.arg_types[i], CastContext::kImplicit, -1));
    // ORDER BY of an argument orders by what has become of it.
    for (SortKey& key : order) {
      if (!call.within_group && ExprEquals(*key.expr, *given)) key.expr = CloneExpr(*args[i]);
    }
  }
  if (IsCollatable(resolved.result)) {
    std::vector<const Expr*> inputs;
    for (const ExprPtr& arg : args) inputs.push_back(arg.get());
    PLAN_TRY_ASSIGN_AT(const InputCollation input, CollationOfAll(inputs), call.location);
    resolved.result.collation = input.collation;
  }
  out.spec = resolved.spec;
  out.result = resolved.result;
  // min and max of char(n) find its values, without the blanks.
  if (args.size() == 1 && out.result.id == TypeId::kBpchar && args[0]->type.SameKind(out.result)) {
    out.result.modifier = args[0]->type.modifier;
  }
  out.args = std::move(args);
  out.order_by = std::move(order);
  if (call.distinct && !out.order_by.empty() && !call.within_group) {
    for (const SortKey& key : out.order_by) {
      bool found = false;
      for (const ExprPtr& arg : out.args) found = found || ExprEquals(*arg, *key.expr);
      if (!found) {
        return SqlError(
                   Code::kInvalid, sqlstate::kInvalidColumnReference,
                   "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument "
                   "list")
            .WithLocation(key.expr->location);
      }
    }
  }
  if (call.filter != nullptr) {
    Env filter_env = inner;
    filter_env.place = Place::kFilter;
    CELLAR_TRY_ASSIGN(out.filter, BindCondition(*call.filter, filter_env, "FILTER"));
  }
  return out;
}

bool SameKeys(const std::vector<SortKey>& a, const std::vector<SortKey>& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) {
    same = ExprEquals(*a[i].expr, *b[i].expr) && a[i].descending == b[i].descending &&
           a[i].nulls_first == b[i].nulls_first;
  }
  return same;
}

bool SameExprs(const std::vector<ExprPtr>& a, const std::vector<ExprPtr>& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = ExprEquals(*a[i], *b[i]);
  return same;
}

bool SameAggregate(const AggregateCall& a, const AggregateCall& b) {
  return a.spec == b.spec && a.distinct == b.distinct && a.result == b.result &&
         SameExprs(a.args, b.args) && (a.filter == nullptr) == (b.filter == nullptr) &&
         (a.filter == nullptr || ExprEquals(*a.filter, *b.filter)) &&
         SameKeys(a.order_by, b.order_by);
}

Result<ExprPtr> Binder::BindAggregate(const ast::FuncCall& call, const std::string& name,
                                      Env& env) {
  CELLAR_TRY_ASSIGN(AggregateCall bound, MakeAggregateCall(call, name, env, false));
  // An aggregate over outer columns only belongs to the outer query.
  std::vector<const Expr*> exprs;
  for (const ExprPtr& arg : bound.args) exprs.push_back(arg.get());
  std::vector<const Expr*> all = exprs;
  for (const SortKey& key : bound.order_by) all.push_back(key.expr.get());
  if (bound.filter != nullptr) all.push_back(bound.filter.get());
  CollationSource source = CollationSource::kImplicit;
  if (IsCollatable(bound.result)) {
    CELLAR_TRY_ASSIGN(const InputCollation input, CollationOfAll(exprs));
    source = input.source;
  }
  const auto result_of = [&](int id) {
    ExprPtr result = s_.ColumnExpr(id, call.location);
    result->collation_source = source;
    const Type shown = Plain(result->type);
    return Coerce(std::move(result), shown, CastContext::kImplicit, -1);
  };
  Block* block = OwnerOf(all, env);
  if (block == nullptr || (block == env.scope->block && !AggregatesAllowed(env.place))) {
    return AggregateNotAllowed(env.place, call.location);
  }
  // One of an outer query is a value like others there.
  if (env.in_aggregate && block == env.scope->block) {
    return SqlError(Code::kInvalid, sqlstate::kGroupingError,
                    "aggregate function calls cannot be nested")
        .WithLocation(call.location);
  }
  IdSet used;
  for (const Expr* expr : all) AddIds(s_, *expr, &used);
  const bool nested =
      std::any_of(block->aggregates.begin(), block->aggregates.end(),
                  [&used](const BoundAggregate& known) { return used.Has(known.id); });
  if (nested || block != env.scope->block) {
    if (nested || block->subquery_in_aggregate) {
      return SqlError(Code::kInvalid, sqlstate::kGroupingError,
                      "aggregate function calls cannot be nested")
          .WithLocation(call.location);
    }
    if (!AggregatesAllowed(block->subquery_place))
      return AggregateNotAllowed(block->subquery_place, call.location);
  }
  for (const BoundAggregate& known : block->aggregates) {
    bool same = SameAggregate(known.call, bound);
    for (const ExprPtr& arg : bound.args) same = same && !IsVolatile(*arg);
    if (same) return result_of(known.id);
  }
  ColumnInfo info;
  info.name = name;
  info.type = bound.result;
  int id = s_.AddColumn(std::move(info));
  block->aggregates.push_back({std::move(bound), id});
  return result_of(id);
}

}  // namespace cellar::sql::planning
