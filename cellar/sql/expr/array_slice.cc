#include "cellar/sql/expr/array_slice.h"

#include <algorithm>

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
    builder.Add(view.Get(place));
    size_t d = dimensions;
    while (d > 0 && ++at[d - 1] == lengths[d - 1]) at[--d] = 0;
    if (d == 0) break;
  }
  return Datum::Bytes(builder.Finish(lengths, {}, context.arena()));
}

}  // namespace

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
