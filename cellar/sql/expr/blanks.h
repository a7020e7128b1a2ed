// Blanks at the end of char(n).
#pragma once

#include "cellar/types/type.h"

namespace cellar::sql {

// Values of char(n), and of arrays of it, lie in memory without the blanks that fill them up. Those
// of character without an n are shown as they lie. So who forgets the n adds the blanks first:
// CastTo does, where it leaves out a modifier.
constexpr bool HidesBlanks(Type type) { return type.id == TypeId::kBpchar && type.modifier >= 4; }

}  // namespace cellar::sql
