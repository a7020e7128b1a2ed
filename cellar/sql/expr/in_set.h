// Hashed sets of constants for IN lists and = ANY of long arrays. Not for other layers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cellar/sql/expr/function.h"
#include "cellar/types/datum.h"

namespace cellar::sql {

// Membership of non-NULL values of one type. Borrows the bytes of what was added. Immutable after
// Build.
class InSet {
 public:
  // `items` without NULLs.
  void Build(Type type, FunctionSpec::Kernel kernel, const std::vector<Datum>& items);
  bool Contains(Datum value) const {
    size_t slot = static_cast<size_t>(HashOf(value)) & mask_;
    while (used_[slot] != 0) {
      if (Same(slots_[slot], value)) return true;
      slot = (slot + 1) & mask_;
    }
    return false;
  }

 private:
  uint64_t HashOf(Datum value) const;
  bool Same(Datum a, Datum b) const;

  Type type_;
  FunctionSpec::Kernel kernel_ = FunctionSpec::Kernel::kNone;
  size_t mask_ = 0;
  std::vector<Datum> slots_;
  std::vector<uint8_t> used_;
};

}  // namespace cellar::sql
