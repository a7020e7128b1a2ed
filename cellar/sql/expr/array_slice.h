// a[1:2][:3]: the part of an array between bounds.
#pragma once

#include "cellar/sql/expr/function.h"

namespace cellar::sql {

// Stand for a bound that is left out: the array's own.
inline constexpr int64_t kNoLowerBound = INT64_MIN, kNoUpperBound = INT64_MAX;

// Called with the array, then a lower and an upper bound (integers, or bigint for the two above)
// for each dimension. NULL when any of them is. Not a function that SQL can name.
const FunctionSpec& ArraySliceFunction();

}  // namespace cellar::sql
