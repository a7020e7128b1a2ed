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

}  // namespace

bool IsPoint(const IndexCodec& index, std::span<const Datum> equal) {
  if (!index.unique || equal.size() != index.key_columns.size()) return false;
  if (!index.nulls_distinct) return true;
  return std::none_of(equal.begin(), equal.end(), [](Datum value) { return value.is_null(); });
}

Result<std::vector<KeyItem>> KeyItemsOf(const IndexCodec& index, std::span<const Span> spans) {
  std::vector<KeyItem> items;
  items.reserve(spans.size());
  const size_t columns = index.key_columns.size() + index.rest_columns.size();
  for (const Span& span : spans) {
    if (span.equal.size() > columns) {
      return InternalError("span of {} values in an index of {} columns", span.equal.size(),
                           columns);
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
    const bool bounded =
        span.lower.kind != Bound::Kind::kUnbounded || span.upper.kind != Bound::Kind::kUnbounded;
    if (span.equal.size() == columns) {
      items.push_back(FromRange(codec::PrefixRange(prefix)));
      continue;
    }
    const codec::KeyColumn& next = ColumnAt(index, span.equal.size());
    if (bounded) {
      items.push_back(BoundedItem(prefix, next, span));
    } else if (span.nulls == Span::Nulls::kOnly) {
      items.push_back(FromRange(codec::NullRange(prefix, next.nulls)));
    } else if (span.nulls == Span::Nulls::kExclude) {
      items.push_back(FromRange(codec::NonNullRange(prefix)));
    } else {
      items.push_back(FromRange(codec::PrefixRange(prefix)));
    }
    const KeyItem& item = items.back();
    if (!item.end.empty() && item.start >= item.end) items.pop_back();
  }
  return items;
}

bool Contains(std::span<const KeyItem> items, std::string_view key) {
  return std::any_of(items.begin(), items.end(), [&](const KeyItem& item) {
    if (item.point) return key == item.start;
    return key >= item.start && (item.end.empty() || key < item.end);
  });
}

std::string PrintItem(const KeyItem& item) {
  if (item.point) return codec::PrintKey(item.start);
  return codec::PrintKey(item.start) + " - " + codec::PrintKey(item.end);
}

}  // namespace cellar::table
