// Any SQL value as JSON text: to_json's rules. Not for other layers.
#pragma once

#include <string>

#include "cellar/sql/expr/eval.h"

namespace cellar::sql {

// NULL is null; numbers, booleans and json stay; arrays and records nest; the rest is a string.
void AppendJson(Datum value, Type type, EvalContext& context, std::string* out);

}  // namespace cellar::sql
