// The columns of a record that its reader has declared: FROM f() AS x(a int, b text).
#pragma once

#include "cellar/sql/expr/function.h"

namespace cellar::sql {

// Called with a record, a position from 1 and how many fields there are to be: the value of that
// field, of the call's type. NULL of a NULL record. Not a function that SQL can name. Errors: 42804
// where the record has another number of fields, or one of another type there.
const FunctionSpec& RecordFieldFunction();

}  // namespace cellar::sql
