// Many sorted keys as a few ranges that hold them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellar::kv {

// Takes keys, or ranges, in ascending order, and covers them with a bounded number of ranges. Of
// neighbours those that share the longest prefix are joined first, so that no range reaches over
// from the keys of one table or index to those of another while there are ranges enough for both:
// what lies between them belongs to others.
class KeySpans {
 public:
  static constexpr size_t kMost = 64;
  explicit KeySpans(size_t most = kMost) : most_(most) {}
  // What covers all that these cover.
  static KeySpans Union(std::span<const KeySpans* const> all);

  // Cost: a comparison with the key before; a search among the ranges, for the few keys that share
  // less with theirs than any two of the ranges do.
  void Add(std::string_view key) { AddRange(key, key); }
  // Both ends belong to it. It may overlap what was added before, but not begin before it.
  void AddRange(std::string_view first, std::string_view last);

  bool empty() const { return spans_.empty(); }
  // [start, end), ascending and disjoint. Bounds of long keys are cut short, to outside of the
  // range.
  std::vector<std::pair<std::string, std::string>> Take();

 private:
  struct Span {
    std::string first, last;
    size_t shared = 0;  // bytes that `first` has in common with `last` of the one before
  };
  void Join();

  const size_t most_;
  std::vector<Span> spans_;
  size_t joined_at_ = SIZE_MAX;  // keys that share as much with the one before stay with it
};

}  // namespace cellar::kv
