// a[1:2][:3], the part of an array between bounds, and a[1] = x.
#pragma once

#include "cellar/sql/expr/function.h"

namespace cellar::sql {

// Stand for a bound that is left out: the array's own.
inline constexpr int64_t kNoLowerBound = INT64_MIN, kNoUpperBound = INT64_MAX;

// Called with the array, then a lower and an upper bound (integers, or bigint for the two above)
// for each dimension. NULL when any of them is. Not a function that SQL can name.
const FunctionSpec& ArraySliceFunction();

// Called with an array, an element and a subscript for each dimension: the array with that element.
// A new one for NULL and for an array without elements; one of one dimension grows to the
// subscript. Errors: 2202E, 22004 for a NULL subscript, 54000.
const FunctionSpec& ArrayAssignFunction();

}  // namespace cellar::sql
