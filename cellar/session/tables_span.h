// Ranges of keys as tuples of values: what programs and resume tokens give, cut, merged, and turned
// into the spans of values that the table layer reads. Private to this layer.
#pragma once

#include <string>
#include <vector>

#include "cellar/base/arena.h"
#include "cellar/codec/key.h"
#include "cellar/table/access.h"

namespace cellar::session {

// A place between keys: before or after all those that begin with `values`, in the index's order.
struct KeyEdge {
  std::vector<Datum> values;
  bool after = false;
  std::string bytes;  // of the values: set by SetBytes
  void SetBytes(std::span<const codec::KeyColumn> columns);
};
// Negative, zero, positive.
int CompareEdges(const KeyEdge& a, const KeyEdge& b);

struct KeyRange {
  KeyEdge from, to;
  static KeyRange All() {
    KeyRange all;
    all.to.after = true;
    return all;
  }
};

// Drops empty ranges, sorts, merges those that meet.
void NormaliseRanges(std::vector<KeyRange>* ranges);
// What lies in both, each normalised.
std::vector<KeyRange> IntersectRanges(const std::vector<KeyRange>& a,
                                      const std::vector<KeyRange>& b);
// The spans of a range, in index order, disjoint. Values are borrowed.
void AppendSpans(const KeyRange& range, std::span<const codec::KeyColumn> columns,
                 std::vector<table::Span>* spans);

}  // namespace cellar::session
