// Open addressing with linear probes, at most half full.
#include "cellar/sql/expr/in_set.h"

#include <functional>

namespace cellar::sql {

uint64_t InSet::HashOf(Datum value) const {
  uint64_t hash;
  switch (kernel_) {
    case FunctionSpec::Kernel::kInts:
      hash = static_cast<uint64_t>(value.int_value()) * 0x9E3779B97F4A7C15;
      return hash ^ (hash >> 32);
    case FunctionSpec::Kernel::kBytes: return std::hash<std::string_view>()(value.bytes());
    default: return HashDatum(value, type_);
  }
}

bool InSet::Same(Datum a, Datum b) const {
  switch (kernel_) {
    case FunctionSpec::Kernel::kInts: return a.int_value() == b.int_value();
    case FunctionSpec::Kernel::kBytes: return a.bytes() == b.bytes();
    default: return CompareDatums(a, b, type_) == 0;
  }
}

void InSet::Build(Type type, FunctionSpec::Kernel kernel, const std::vector<Datum>& items) {
  type_ = type;
  kernel_ = kernel;
  size_t size = 16;
  while (size < 2 * items.size()) size *= 2;
  mask_ = size - 1;
  slots_.assign(size, Datum());
  used_.assign(size, 0);
  for (Datum item : items) {
    size_t slot = static_cast<size_t>(HashOf(item)) & mask_;
    while (used_[slot] != 0 && !Same(slots_[slot], item)) slot = (slot + 1) & mask_;
    slots_[slot] = item;
    used_[slot] = 1;
  }
}

}  // namespace cellar::sql
