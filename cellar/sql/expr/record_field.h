// Fields of records: (r).f of one that is not written as ROW(...), and the columns of one that its
// reader has declared, FROM f() AS x(a int, b text).
#pragma once

#include "cellar/sql/expr/function.h"

namespace cellar::sql {

// Called with a record, the position of a field, a constant from 0, and how many fields there must
// be, 0: any number; the call's type is the field's. NULL of a NULL record. Not a function that SQL
// can name. Errors: 42804 for a record with another number of fields, or without such a field of
// that type.
const FunctionSpec& RecordFieldFunction();

// The call for field `position` of `record`, which has `count` fields (0: any number). Of ROW(...)
// itself, if any number will do, it is the argument.
ExprPtr MakeFieldOf(ExprPtr record, size_t position, size_t count, Type type);

// The fields of kRow. The row of a relation has as many as names, and maybe one argument more,
// which tells whether the row is there at all: the value is NULL where that argument is.
inline size_t FieldCount(const Expr& row) {
  return row.names.empty() ? row.args.size() : row.names.size();
}

}  // namespace cellar::sql
