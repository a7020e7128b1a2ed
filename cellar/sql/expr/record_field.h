// (r).f, a field of a record that is not written as ROW(...).
#pragma once

#include "cellar/sql/expr/function.h"

namespace cellar::sql {

// Called with a record and the position of the field, a constant from 0; the call's type is the
// field's. NULL of a NULL record. Not a function that SQL can name. Errors: 42804 for a record
// without such a field of that type.
const FunctionSpec& RecordFieldFunction();

// The call for field `position` of `record`. Of ROW(...) itself it is the argument.
ExprPtr MakeFieldOf(ExprPtr record, size_t position, Type type);

// The fields of kRow. The row of a relation has as many as names, and maybe one argument more,
// which tells whether the row is there at all: the value is NULL where that argument is.
inline size_t FieldCount(const Expr& row) {
  return row.names.empty() ? row.args.size() : row.names.size();
}

}  // namespace cellar::sql
