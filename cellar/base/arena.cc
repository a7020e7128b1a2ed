#include "cellar/base/arena.h"

#include <algorithm>

namespace cellar {

namespace {
constexpr size_t kFirstBlockBytes = 4 << 10;
constexpr size_t kLargestBlockBytes = 256 << 10;
}  // namespace

char* Arena::AllocateSlow(size_t bytes) {
  size_t size =
      blocks_.empty() ? kFirstBlockBytes : std::min(kLargestBlockBytes, blocks_.back().size * 2);
  size = std::max(size, bytes);
  blocks_.push_back({MakeCountedArray<char>(size), size});
  footprint_ += size;
  next_ = blocks_.back().bytes.get() + bytes;
  left_ = size - bytes;
  return blocks_.back().bytes.get();
}

void Arena::Reset() {
  if (blocks_.empty()) return;
  blocks_.resize(1);
  footprint_ = blocks_[0].size;
  next_ = blocks_[0].bytes.get();
  left_ = blocks_[0].size;
}

}  // namespace cellar
