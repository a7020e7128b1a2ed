// How large a value may be that a statement makes.
//
// Whoever makes the bytes of a value asks before it takes memory for them. Stored values are not
// asked about: larger ones, of earlier versions, stay readable.
#pragma once

#include <cstddef>

#include "cellar/base/status.h"

namespace cellar {

inline constexpr size_t kMaxValueBytes = size_t{256} << 20;

// Errors: 54000, with the size and the bound.
Status ValueTooLarge(size_t bytes);
inline Status CheckValueSize(size_t bytes) {
  return bytes <= kMaxValueBytes ? Status() : ValueTooLarge(bytes);
}

}  // namespace cellar
