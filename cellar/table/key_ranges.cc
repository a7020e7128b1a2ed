#include "cellar/table/key_ranges.h"

#include <algorithm>

namespace cellar::table {
namespace {

// All columns that keys of the index hold, in order.
const codec::KeyColumn& ColumnAt(const IndexCodec& index, size_t i) {
  return i < index.key_columns.size() ? index.key_columns[i]
                                      : index.rest_columns[i - index.key_columns.size()];
}

// The range of one bounded column below `prefix`: docs/formats/key.md, section 2. In a DESC column
// greater values have smaller bytes, so the bounds change places.
KeyItem BoundedItem(const std::string& prefix, const codec::KeyColumn& column, const Span& span) {
  const bool descending = column.direction == codec::Direction::kDescending;
  const Bound& first = descending ? span.upper : span.lower;
  const Bound& last = descending ? span.lower : span.upper;
  KeyItem item;
  if (first.kind == Bound::Kind::kUnbounded) {
    item.start = codec::BelowValues(prefix);
  } else {
    item.start = prefix;
    codec::AppendKeyField(first.value, column, &item.start);
    if (first.kind == Bound::Kind::kExclusive) item.start = codec::PrefixEnd(item.start);
  }
  if (last.kind == Bound::Kind::kUnbounded) {
    item.end = codec::AboveValues(prefix);
  } else {
    item.end = prefix;
    codec::AppendKeyField(last.value, column, &item.end);
    if (last.kind == Bound::Kind::kInclusive) item.end = codec::PrefixEnd(item.end);
  }
  return item;
}

KeyItem FromRange(codec::KeyRange range) {
  KeyItem item;
  item.start = std::move(range.start);
  item.end = std::move(range.end);
  return item;
}

// The range of a span below `prefix`, in one shard.
KeyItem ItemOf(const IndexCodec& index, const std::string& prefix, size_t columns,
               const Span& span) {
  if (span.equal.size() == columns) return FromRange(codec::PrefixRange(prefix));
  const codec::KeyColumn& next = ColumnAt(index, span.equal.size());
  if (span.lower.kind != Bound::Kind::kUnbounded || span.upper.kind != Bound::Kind::kUnbounded) {
    return BoundedItem(prefix, next, span);
  }
  if (span.nulls == Span::Nulls::kOnly) return FromRange(codec::NullRange(prefix, next.nulls));
  if (span.nulls == Span::Nulls::kExclude) return FromRange(codec::NonNullRange(prefix));
  return FromRange(codec::PrefixRange(prefix));
}

}  // namespace

std::vector<std::string> PrefixesOf(const IndexCodec& index, std::string_view fields, bool whole) {
  std::vector<std::string> out;
  const uint32_t count = index.shards == 0 || whole ? 1 : index.shards;
  for (uint32_t shard = 0; shard < count; ++shard) {
    std::string& prefix = out.emplace_back(index.prefix);
    if (index.shards != 0) prefix.push_back(ShardField(shard));
    prefix.append(fields);
    if (index.shards != 0 && whole) index.FillShard(index.prefix.size(), &prefix);
  }
  return out;
}

bool IsPoint(const IndexCodec& index, std::span<const Datum> equal) {
  if (!index.unique || equal.size() != index.key_columns.size()) return false;
  if (!index.nulls_distinct) return true;
  return std::none_of(equal.begin(), equal.end(), [](Datum value) { return value.is_null(); });
}

namespace {

// The shard is that of the index's own fields, of which a span may give more or less.
void AddShards(const IndexCodec& index, size_t columns, const Span& span,
               std::vector<KeyItem>* items) {
  const size_t own = std::min(span.equal.size(), index.key_columns.size());
  std::string fields, rest;
  for (size_t i = 0; i < span.equal.size(); ++i) {
    codec::AppendKeyField(span.equal[i], ColumnAt(index, i), i < own ? &fields : &rest);
  }
  KeyItem all;
  for (std::string& prefix : PrefixesOf(index, fields, own == index.key_columns.size())) {
    prefix += rest;
    if (IsPoint(index, span.equal)) {
      if (index.primary) prefix.push_back(kGroupZero);
      codec::FinishKey(&prefix);
      all.point = true;
      all.start = std::move(prefix);
      break;
    }
    KeyItem item = ItemOf(index, prefix, columns, span);
    if (!item.end.empty() && item.start >= item.end) return;
    if (all.start.empty()) {
      all = std::move(item);
    } else {
      all.other_shards.push_back({std::move(item.start), std::move(item.end)});
    }
  }
  items->push_back(std::move(all));
}

}  // namespace

Result<std::vector<KeyItem>> KeyItemsOf(const IndexCodec& index, std::span<const Span> spans) {
  std::vector<KeyItem> items;
  items.reserve(spans.size());
  const size_t columns = index.key_columns.size() + index.rest_columns.size();
  for (const Span& span : spans) {
    if (span.equal.size() > columns) {
      return InternalError("span of {} values in an index of {} columns", span.equal.size(),
                           columns);
    }
    if (index.shards != 0) {
      AddShards(index, columns, span, &items);
      continue;
    }
    std::string prefix = index.prefix;
    for (size_t i = 0; i < span.equal.size(); ++i) {
      codec::AppendKeyField(span.equal[i], ColumnAt(index, i), &prefix);
    }
    if (IsPoint(index, span.equal)) {
      KeyItem item;
      item.point = true;
      item.start = std::move(prefix);
      if (index.primary) item.start.push_back(kGroupZero);
      codec::FinishKey(&item.start);
      items.push_back(std::move(item));
      continue;
    }
    KeyItem item = ItemOf(index, prefix, columns, span);
    if (item.end.empty() || item.start < item.end) items.push_back(std::move(item));
  }
  return items;
}

bool Contains(std::span<const KeyItem> items, std::string_view key) {
  return std::any_of(items.begin(), items.end(), [&](const KeyItem& item) {
    if (item.point) return key == item.start;
    const auto within = [key](std::string_view start, std::string_view end) {
      return key >= start && (end.empty() || key < end);
    };
    return within(item.start, item.end) ||
           std::any_of(
               item.other_shards.begin(), item.other_shards.end(),
               [&](const codec::KeyRange& range) { return within(range.start, range.end); });
  });
}

std::string PrintItem(const KeyItem& item) {
  if (item.point) return codec::PrintKey(item.start);
  std::string out = codec::PrintKey(item.start) + " - " + codec::PrintKey(item.end);
  if (!item.other_shards.empty()) {
    out += fmt::format(" and {} more shards", item.other_shards.size());
  }
  return out;
}

}  // namespace cellar::table
