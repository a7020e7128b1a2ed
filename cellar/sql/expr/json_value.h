// Any SQL value as JSON text: to_json's rules. Not for other layers.
#pragma once

#include <string>

#include "cellar/sql/expr/eval.h"

namespace cellar::sql {

// NULL is null; numbers, booleans and json stay; arrays and records nest; the rest is a string.
// Errors: 54000 when *out becomes too large for a value, 57014.
Status AppendJson(Datum value, Type type, EvalContext& context, std::string* out);

// A key of an object: a string, whatever the type. Errors: 22023 for arrays, records and json.
Status AppendJsonKey(Datum value, Type type, EvalContext& context, std::string* out);
// Appends a JSON string literal with quotes. Errors: as AppendJson.
Status AppendJsonText(std::string_view text, EvalContext& context, std::string* out);

}  // namespace cellar::sql
