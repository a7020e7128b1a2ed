#include "cellar/sql/expr/array_slice.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/expr/eval.h"
#include "cellar/types/array.h"

namespace cellar::sql {
namespace {

Result<Datum> Slice(EvalContext& context, const Expr& call, std::span<const Datum> args) {
  const Type element = ElementTypeOf(call.args[0]->type);
  const ArrayView view(args[0].bytes(), element);
  ArrayBuilder builder(element);
  const auto dimensions = static_cast<size_t>(view.dimensions());
  const size_t given = (args.size() - 1) / 2;
  if (given > dimensions) return Datum::Bytes(builder.Finish(context.arena()));
  std::vector<int32_t> lengths(dimensions);
  std::vector<int64_t> starts(dimensions);  // counted from 0
  for (size_t d = 0; d < dimensions; ++d) {
    const int64_t first = view.lower_bound(static_cast<int>(d));
    const int64_t last = first + view.length(static_cast<int>(d)) - 1;
    int64_t lower = first, upper = last;
    if (d < given) {
      lower = std::max(lower, args[1 + 2 * d].int_value());
      upper = std::min(upper, args[2 + 2 * d].int_value());
    }
    if (lower > upper) return Datum::Bytes(builder.Finish(context.arena()));
    lengths[d] = static_cast<int32_t>(upper - lower + 1);
    starts[d] = lower - first;
  }
  // Counts through the places of the result, the last dimension fastest.
  std::vector<int32_t> at(dimensions);
  while (true) {
    size_t place = 0;
    for (size_t d = 0; d < dimensions; ++d) {
      place = place * static_cast<size_t>(view.length(static_cast<int>(d))) +
              static_cast<size_t>(starts[d] + at[d]);
    }
    CELLAR_TRY(builder.TryAdd(view.Get(place)));
    size_t d = dimensions;
    while (d > 0 && ++at[d - 1] == lengths[d - 1]) at[--d] = 0;
    if (d == 0) break;
  }
  return Datum::Bytes(builder.Finish(lengths, {}, context.arena()));
}

Result<Datum> Assign(EvalContext& context, const Expr& call, std::span<const Datum> args) {
  const Type element = ElementTypeOf(call.args[0]->type);
  ArrayBuilder builder(element);
  const size_t given = args.size() - 2;
  std::vector<int32_t> lengths, lower_bounds;
  for (const Datum& subscript : args.subspan(2)) {
    if (subscript.is_null()) {
      return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed,
                      "array subscript in assignment must not be null");
    }
    lengths.push_back(1);
    lower_bounds.push_back(static_cast<int32_t>(subscript.int_value()));
  }
  CELLAR_TRY(CheckArrayBounds(lengths, lower_bounds));
  const bool fresh = args[0].is_null() || ArrayView(args[0].bytes(), element).dimensions() == 0;
  if (fresh) {
    CELLAR_TRY(builder.TryAdd(args[1]));
    return Datum::Bytes(builder.Finish(lengths, lower_bounds, context.arena()));
  }
  const ArrayView view(args[0].bytes(), element);
  if (static_cast<size_t>(view.dimensions()) != given) {
    return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                    "wrong number of array subscripts");
  }
  if (given == 1) {
    const int64_t first = view.lower_bound(0), last = first + view.length(0) - 1;
    const int64_t at = args[2].int_value();
    const int64_t from = std::min(first, at), to = std::max(last, at);
    if (to - from + 1 > static_cast<int64_t>(kMaxArrayElements)) {
      return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                      "array size exceeds the maximum allowed ({})", kMaxArrayElements);
    }
    for (int64_t i = from; i <= to; ++i) {
      Datum value;
      if (i == at) {
        value = args[1];
      } else if (i >= first && i <= last) {
        value = view.Get(static_cast<size_t>(i - first));
      }
      CELLAR_TRY(context.Step());
      CELLAR_TRY(builder.TryAdd(value));
    }
    lengths[0] = static_cast<int32_t>(to - from + 1);
    lower_bounds[0] = static_cast<int32_t>(from);
    return Datum::Bytes(builder.Finish(lengths, lower_bounds, context.arena()));
  }
  size_t place = 0;
  for (size_t d = 0; d < given; ++d) {
    const int dimension = static_cast<int>(d);
    const int64_t offset = args[2 + d].int_value() - view.lower_bound(dimension);
    lengths[d] = view.length(dimension);
    lower_bounds[d] = view.lower_bound(dimension);
    if (offset < 0 || offset >= lengths[d]) {
      return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                      "array subscript out of range");
    }
    place = place * static_cast<size_t>(lengths[d]) + static_cast<size_t>(offset);
  }
  for (size_t i = 0; i < view.size(); ++i)
    CELLAR_TRY(builder.TryAdd(i == place ? args[1] : view.Get(i)));
  return Datum::Bytes(builder.Finish(lengths, lower_bounds, context.arena()));
}

}  // namespace

const FunctionSpec& ArrayAssignFunction() {
  static const FunctionSpec spec = [] {
    FunctionSpec out;
    out.name = "array_assign";
    out.args = {MakeType(TypeId::kAnyarray), MakeType(TypeId::kAnyelement),
                MakeType(TypeId::kInt4)};
    out.result = MakeType(TypeId::kAnyarray);
    out.variadic = true;
    out.strict = false;
    out.scalar = Assign;
    return out;
  }();
  return spec;
}

const FunctionSpec& ArraySliceFunction() {
  static const FunctionSpec spec = [] {
    FunctionSpec out;
    out.name = "array_slice";
    out.args = {MakeType(TypeId::kAnyarray), MakeType(TypeId::kInt8)};
    out.result = MakeType(TypeId::kAnyarray);
    out.variadic = true;
    out.scalar = Slice;
    return out;
  }();
  return spec;
}

}  // namespace cellar::sql
