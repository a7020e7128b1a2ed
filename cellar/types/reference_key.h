// Values of foreign keys whose two columns have different types: which types may meet, and which
// value of the one equals a value of the other as PostgreSQL compares them
// (https://www.postgresql.org/docs/15/sql-createtable.html, REFERENCES: an equality operator of the
// key's operator family, or an implicit cast to its type).
#pragma once

#include "cellar/base/arena.h"
#include "cellar/types/datum.h"
#include "cellar/types/text_io.h"
#include "cellar/types/type.h"

namespace cellar {

// May a column of type `referencing` reference a key of type `referenced`?
bool CanReference(Type referencing, Type referenced);

// Do equal values of both lie under the same keys of an index, as they are?
bool HaveSameKeys(Type a, Type b);

// Is there at most one referencing value that equals a referenced one? Not for values that are
// rounded on the way.
bool IsInjectiveReference(Type referencing, Type referenced);

// The value of type `to` that equals `value`, not NULL, of type `from`: false if none does. Between
// types that may reference each other, in both directions. Bytes of the result are those of `value`
// or lie in the arena.
bool ConvertReferenceKey(Datum value, Type from, Type to, const FormatSettings& format,
                         Arena* arena, Datum* result);

}  // namespace cellar
