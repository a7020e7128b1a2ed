// Bump allocator: memory lives until Reset or destruction. One thread at a time. Its blocks are
// charged to the account that the thread works for when they are taken (memory_account.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "cellar/base/memory_account.h"

namespace cellar {

class Arena {
 public:
  Arena() = default;
  Arena(Arena&&) noexcept = default;
  Arena& operator=(Arena&&) noexcept = default;

  // Uninitialised bytes, aligned to 8. Throws OutOfMemory. Cost: an allocation per 4 KiB at first,
  // per 256 KiB later.
  char* Allocate(size_t bytes) {
    size_t rounded = (bytes + 7) & ~size_t{7};
    if (rounded <= left_) {
      char* out = next_;
      next_ += rounded;
      left_ -= rounded;
      return out;
    }
    return AllocateSlow(rounded);
  }
  // A copy of `bytes` that lives as long as the arena's content.
  std::string_view Copy(std::string_view bytes) {
    if (bytes.empty()) return {};
    char* out = Allocate(bytes.size());
    std::memcpy(out, bytes.data(), bytes.size());
    return {out, bytes.size()};
  }
  // Forgets all content, keeps the first block for reuse.
  void Reset();
  // Bytes obtained from the system.
  size_t footprint_bytes() const { return footprint_; }

 private:
  struct Block {
    CountedArray<char> bytes;
    size_t size;
  };
  char* AllocateSlow(size_t bytes);

  std::vector<Block> blocks_;
  char* next_ = nullptr;
  size_t left_ = 0;
  size_t footprint_ = 0;
};

}  // namespace cellar
