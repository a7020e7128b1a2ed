// Is a value that was read from the store one that could have been stored?
#pragma once

#include "cellar/types/datum.h"
#include "cellar/types/type.h"

namespace cellar {

// Text must be UTF-8 without zero bytes and as short as its type says, JSON must parse, numbers and
// times must lie in their types' ranges, enum codes must be labels'. NULL always is. The datum must
// be one that a decoder of this type gave. Errors: kCorruption, in words. Cost: a look at each
// byte.
Status CheckStoredValue(Datum value, const Type& type);

}  // namespace cellar
