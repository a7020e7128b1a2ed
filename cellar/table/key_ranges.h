// Spans of an index, which speak of values, as ranges of keys. Private to the layer.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cellar/codec/key.h"
#include "cellar/table/access.h"
#include "cellar/table/compiled.h"

namespace cellar::table {

// A key that is looked up, or a half-open range that is scanned.
struct KeyItem {
  bool point = false;
  std::string start;  // of a point: the key
  std::string end;    // of a range; empty: unbounded
  // Of a range in an index with shards: the same in the other shards, to be merged with this.
  std::vector<codec::KeyRange> other_shards;
};

// True when the values name one entry of the index at most, by its whole key.
bool IsPoint(const IndexCodec& index, std::span<const Datum> equal);

// One item a span, in order; spans that hold nothing are left out. Adjacent and overlapping ranges
// are not merged. Errors: kInternal for a span with more values than the index has key columns.
Result<std::vector<KeyItem>> KeyItemsOf(const IndexCodec& index, std::span<const Span> spans);

// What keys of the index with these first fields, `fields`, begin with: one prefix a shard where
// they do not tell it.
std::vector<std::string> PrefixesOf(const IndexCodec& index, std::string_view fields, bool whole);

// Does a whole key of the index lie in one of the items?
bool Contains(std::span<const KeyItem> items, std::string_view key);

// "/(1, 'x')-..." for EXPLAIN: the items as PrintKey shows them.
std::string PrintItem(const KeyItem& item);

}  // namespace cellar::table
