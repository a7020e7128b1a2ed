// OVER and WINDOW: window functions, named windows and frames.
#include <algorithm>

#include "cellar/sql/plan/binder.h"

namespace cellar::sql::planning {

namespace {

Status WindowingError(int location, std::string text) {
  return SqlError(Code::kInvalid, sqlstate::kWindowingError, "{}", text).WithLocation(location);
}

bool IsOffset(WindowFrame::Bound bound) {
  return bound == WindowFrame::Bound::kOffsetPreceding ||
         bound == WindowFrame::Bound::kOffsetFollowing;
}

// What is added to a RANGE frame's ordering column; nullopt: nothing can be.
std::optional<Type> RangeOffsetType(Type column) {
  if (column.array) return std::nullopt;
  switch (column.id) {
    case TypeId::kInt2:
    case TypeId::kInt4:
    case TypeId::kInt8: return MakeType(TypeId::kInt8);
    case TypeId::kFloat4:
    case TypeId::kFloat8: return MakeType(TypeId::kFloat8);
    case TypeId::kNumeric: return MakeType(TypeId::kNumeric);
    case TypeId::kDate:
    case TypeId::kTime:
    case TypeId::kTimetz:
    case TypeId::kTimestamp:
    case TypeId::kTimestamptz:
    case TypeId::kInterval: return MakeType(TypeId::kInterval);
    default: return std::nullopt;
  }
}

}  // namespace

bool IsWindowFunction(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "row_number", "rank", "dense_rank",  "percent_rank", "cume_dist", "ntile",
      "lag",        "lead", "first_value", "last_value",   "nth_value"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

Status Binder::BindWindow(const ast::WindowDef& def, Env& env, WindowSpec* spec) {
  const ast::SelectStmt* select = env.scope->block != nullptr ? env.scope->block->select : nullptr;
  // A definition sees those before it, an OVER all.
  bool is_definition = false;
  auto find = [&](const std::string& name) {
    const ast::WindowDef* found = nullptr;
    if (select == nullptr) return found;
    for (const ast::WindowDef& window : select->windows) {
      if (&window == &def) break;
      if (window.name == name) found = &window;
    }
    return found;
  };
  if (select != nullptr) {
    for (const ast::WindowDef& window : select->windows) is_definition |= &window == &def;
  }
  auto missing = [&](const std::string& name) {
    return SqlError(Code::kInvalid, sqlstate::kUndefinedObject, "window \"{}\" does not exist",
                    name)
        .WithLocation(def.location);
  };
  if (!def.name.empty() && !is_definition) {
    const ast::WindowDef* found = find(def.name);
    if (found == nullptr) return missing(def.name);
    return BindWindow(*found, env, spec);
  }
  if (!def.ref_name.empty()) {
    const ast::WindowDef* base = find(def.ref_name);
    if (base == nullptr) return missing(def.ref_name);
    CELLAR_TRY(BindWindow(*base, env, spec));
    if (!def.partition_by.empty()) {
      return WindowingError(
          def.location, "cannot override PARTITION BY clause of window \"" + def.ref_name + "\"");
    }
    if (!def.order_by.empty() && !spec->order_by.empty()) {
      return WindowingError(def.location,
                            "cannot override ORDER BY clause of window \"" + def.ref_name + "\"");
    }
    if (base->has_frame) {
      Status error = WindowingError(def.location, "cannot copy window \"" + def.ref_name +
                                                      "\" because it has a frame clause");
      if (!is_definition && def.order_by.empty() && !def.has_frame) {
        error = std::move(error).WithHint("Omit the parentheses in this OVER clause.");
      }
      return error;
    }
  }
  Env inner = env;
  inner.place = Place::kWindow;
  inner.in_window = true;
  for (const ast::ExprPtr& expr : def.partition_by) {
    CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(*expr, inner));
    CELLAR_TRY_ASSIGN(bound, ResolveUnknown(std::move(bound)));
    CELLAR_TRY(CheckAgreed(*bound));
    spec->partition_by.push_back(std::move(bound));
  }
  for (const ast::SortBy& sort : def.order_by) {
    CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(*sort.expr, inner));
    CELLAR_TRY_ASSIGN(bound, ResolveUnknown(std::move(bound)));
    CELLAR_TRY_ASSIGN(SortKey key, MakeSortKey(sort, std::move(bound)));
    spec->order_by.push_back(std::move(key));
  }
  return def.has_frame ? BindFrame(def, inner, spec) : Status();
}

Status Binder::BindFrame(const ast::WindowDef& def, Env& env, WindowSpec* spec) {
  WindowFrame& frame = spec->frame;
  // The same names in the same order.
  frame.mode = static_cast<WindowFrame::Mode>(def.frame_mode);
  frame.start = static_cast<WindowFrame::Bound>(def.frame_start);
  frame.end = static_cast<WindowFrame::Bound>(def.frame_end);
  frame.exclusion = static_cast<WindowFrame::Exclusion>(def.exclusion);
  const bool offsets = IsOffset(frame.start) || IsOffset(frame.end);
  const bool range = frame.mode == WindowFrame::Mode::kRange;
  if (range && offsets && spec->order_by.size() != 1) {
    return WindowingError(
        def.location, "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column");
  }
  if (frame.mode == WindowFrame::Mode::kGroups && spec->order_by.empty()) {
    return WindowingError(def.location, "GROUPS mode requires an ORDER BY clause");
  }
  auto bind = [&](const ast::Expr& expr, ExprPtr* out) -> Status {
    const std::string_view mode = range                                    ? "RANGE"
                                  : frame.mode == WindowFrame::Mode::kRows ? "ROWS"
                                                                           : "GROUPS";
    const size_t aggregates = env.scope->block->aggregates.size();
    CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(expr, env));
    const int location = bound->location;
    if (env.scope->block->aggregates.size() != aggregates) {
      return SqlError(Code::kInvalid, sqlstate::kGroupingError,
                      "aggregate functions are not allowed in window {}", mode)
          .WithLocation(location);
    }
    Type wanted = MakeType(TypeId::kInt8);
    if (range) {
      const Type column = spec->order_by[0].expr->type;
      const std::optional<Type> offset = RangeOffsetType(column);
      if (!offset.has_value()) {
        return UnsupportedError(
                   "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
                   FormatType(Plain(column)))
            .WithLocation(location);
      }
      wanted = *offset;
      const bool unknown = bound->type.id == TypeId::kUnknown;
      if (!unknown && !CanCast(bound->type, wanted, CastContext::kImplicit)) {
        return UnsupportedError(
                   "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {} and "
                   "offset type {}",
                   FormatType(Plain(column)), FormatType(Plain(bound->type)))
            .WithHint("Cast the offset value to an appropriate type.")
            .WithLocation(location);
      }
    } else if (bound->type.id != TypeId::kUnknown &&
               !CanCast(bound->type, wanted, CastContext::kAssignment)) {
      return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                      "argument of {} must be type bigint, not type {}", mode,
                      FormatType(bound->type))
          .WithLocation(location);
    }
    CELLAR_TRY_ASSIGN(bound,
                      Coerce(std::move(bound), wanted,
                             range ? CastContext::kImplicit : CastContext::kAssignment, location));
    IdSet used = IdsOf(s_, *bound);
    for (const ScopeItem* item : env.scope->items) {
      for (const ScopeColumn& column : item->columns) {
        if (column.id < 0 || !used.Has(column.id)) continue;
        return SqlError(Code::kInvalid, sqlstate::kInvalidColumnReference,
                        "argument of {} must not contain variables", mode)
            .WithLocation(location);
      }
    }
    *out = std::move(bound);
    return Status();
  };
  if (IsOffset(frame.start)) CELLAR_TRY(bind(*def.start_offset, &frame.start_offset));
  if (IsOffset(frame.end)) CELLAR_TRY(bind(*def.end_offset, &frame.end_offset));
  return Status();
}

Status Binder::CheckWindows(const ast::SelectStmt& select, Env& env) {
  for (size_t i = 0; i < select.windows.size(); ++i) {
    const ast::WindowDef& def = select.windows[i];
    for (size_t k = 0; k < i; ++k) {
      if (select.windows[k].name == def.name) {
        return WindowingError(def.location, "window \"" + def.name + "\" is already defined");
      }
    }
    WindowSpec unused;
    CELLAR_TRY(BindWindow(def, env, &unused));
  }
  return Status();
}

namespace {

bool SameWindow(const BoundWindow& a, const BoundWindow& b) {
  const auto same_offset = [](const ExprPtr& x, const ExprPtr& y) {
    return (x == nullptr) == (y == nullptr) && (x == nullptr || ExprEquals(*x, *y));
  };
  const WindowFrame &f = a.spec.frame, &g = b.spec.frame;
  return a.call.function == b.call.function && a.call.result == b.call.result &&
         SameExprs(a.call.args, b.call.args) && SameAggregate(a.call.aggregate, b.call.aggregate) &&
         SameExprs(a.spec.partition_by, b.spec.partition_by) &&
         SameKeys(a.spec.order_by, b.spec.order_by) && f.mode == g.mode && f.start == g.start &&
         f.end == g.end && f.exclusion == g.exclusion &&
         same_offset(f.start_offset, g.start_offset) && same_offset(f.end_offset, g.end_offset);
}

}  // namespace

Result<ExprPtr> Binder::BindWindowCall(const ast::FuncCall& call, const std::string& name,
                                       Env& env) {
  bool allowed = env.place == Place::kSelect || env.place == Place::kOrderBy ||
                 env.place == Place::kDistinctOn;
  if (env.in_window) {
    return SqlError(Code::kInvalid, sqlstate::kWindowingError,
                    "window function calls cannot be nested")
        .WithLocation(call.location);
  }
  if (env.in_aggregate) {
    return SqlError(Code::kInvalid, sqlstate::kGroupingError,
                    "aggregate function calls cannot contain window function calls")
        .WithLocation(call.location);
  }
  if (!allowed || env.scope->block == nullptr) {
    return SqlError(Code::kInvalid, sqlstate::kWindowingError,
                    "window functions are not allowed in {}", PlaceName(env.place))
        .WithLocation(call.location);
  }
  Block& block = *env.scope->block;
  BoundWindow window;
  window.call.function = name;
  Env inner = env;
  inner.in_window = true;
  if (IsWindowFunction(name)) {
    if (call.filter != nullptr) {
      return UnsupportedError("FILTER is not implemented for non-aggregate window functions")
          .WithLocation(call.location);
    }
    for (const ast::ExprPtr& arg : call.args) {
      CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(*arg, inner));
      window.call.args.push_back(std::move(bound));
    }
    std::vector<ExprPtr>& args = window.call.args;
    size_t n = args.size();
    size_t least = 0, most = 0;
    Type result = MakeType(TypeId::kInt8);
    if (name == "percent_rank" || name == "cume_dist") result = MakeType(TypeId::kFloat8);
    if (name == "ntile") {
      least = most = 1;
      result = MakeType(TypeId::kInt4);
    }
    if (name == "lag" || name == "lead") least = 1, most = 3;
    if (name == "first_value" || name == "last_value") least = most = 1;
    if (name == "nth_value") least = most = 2;
    if (n < least || n > most) {
      return SqlError(Code::kInvalid, sqlstate::kUndefinedFunction, "function {} does not exist",
                      Signature(name, args))
          .WithHint(
              "No function matches the given name and argument types. You might need to add "
              "explicit type casts.")
          .WithLocation(call.location);
    }
    if (name == "ntile") {
      CELLAR_TRY_ASSIGN(
          args[0], Coerce(std::move(args[0]), MakeType(TypeId::kInt4), CastContext::kImplicit, -1));
    } else if (most > 0) {
      CELLAR_TRY_ASSIGN(args[0], ResolveUnknown(std::move(args[0])));
      if (n >= 2) {
        CELLAR_TRY_ASSIGN(args[1], Coerce(std::move(args[1]), MakeType(TypeId::kInt4),
                                          CastContext::kImplicit, -1));
      }
      result = args[0]->type;
      if (n == 3) {
        std::vector<ExprPtr*> both{&args[0], &args[2]};
        CELLAR_TRY(CoerceCommon(both, name, call.location, &result));
      }
    }
    window.call.result = result;
  } else if (IsAggregate(name)) {
    if (call.within_group) {
      return UnsupportedError("OVER is not supported for ordered-set aggregate {}", name)
          .WithLocation(call.location);
    }
    if (call.distinct) {
      return UnsupportedError("DISTINCT is not implemented for window functions")
          .WithLocation(call.location);
    }
    if (!call.order_by.empty()) {
      return UnsupportedError("aggregate ORDER BY is not implemented for window functions")
          .WithLocation(call.location);
    }
    CELLAR_TRY_ASSIGN(window.call.aggregate, MakeAggregateCall(call, name, inner, true));
    window.call.result = window.call.aggregate.result;
  } else {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType,
                    "OVER specified, but {} is not a window function nor an aggregate function",
                    name)
        .WithLocation(call.location);
  }
  CELLAR_TRY(BindWindow(*call.over, env, &window.spec));
  const auto shown_as = [&](int id) -> Result<ExprPtr> {
    ExprPtr out = s_.ColumnExpr(id, call.location);
    const Type shown = Plain(out->type);
    return Coerce(std::move(out), shown, CastContext::kImplicit, -1);
  };
  // The same call in a target and in ORDER BY or DISTINCT ON is one column.
  for (const BoundWindow& known : block.windows) {
    if (env.place != Place::kSelect && SameWindow(known, window)) return shown_as(known.id);
  }
  ColumnInfo info;
  info.name = name;
  info.type = window.call.result;
  if (!window.call.args.empty()) info.record = ShapeOf(*window.call.args[0]);
  window.id = s_.AddColumn(std::move(info));
  int id = window.id;
  block.windows.push_back(std::move(window));
  return shown_as(id);
}

}  // namespace cellar::sql::planning
