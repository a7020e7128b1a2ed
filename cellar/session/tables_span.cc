#include "cellar/session/tables_span.h"

#include <algorithm>
#include <cstring>

namespace cellar::session {
namespace {

using table::Bound;
using table::Span;

bool NullsFirst(const codec::KeyColumn& column) {
  return column.nulls == codec::NullPlacement::kFirst;
}

Span Below(const std::vector<Datum>& values, size_t count) {
  Span span;
  span.equal.assign(values.begin(), values.begin() + static_cast<long>(count));
  return span;
}

Bound At(Datum value, bool inclusive) {
  return {inclusive ? Bound::Kind::kInclusive : Bound::Kind::kExclusive, value};
}

// In the index's order: where a DESC column's bounds belong.
void SetFirst(const codec::KeyColumn& column, Bound bound, Span* span) {
  (column.direction == codec::Direction::kDescending ? span->upper : span->lower) = bound;
}
void SetLast(const codec::KeyColumn& column, Bound bound, Span* span) {
  (column.direction == codec::Direction::kDescending ? span->lower : span->upper) = bound;
}

void AppendNulls(Span span, Span::Nulls nulls, std::vector<Span>* spans) {
  span.nulls = nulls;
  spans->push_back(std::move(span));
}

// Below the first `at` values: everything from value `at` on.
void AppendFrom(const std::vector<Datum>& values, size_t at, bool inclusive,
                const codec::KeyColumn& column, std::vector<Span>* spans) {
  const Datum value = values[at];
  if (value.is_null()) {
    if (NullsFirst(column)) {
      AppendNulls(Below(values, at), inclusive ? Span::Nulls::kInclude : Span::Nulls::kExclude,
                  spans);
    } else if (inclusive) {
      AppendNulls(Below(values, at), Span::Nulls::kOnly, spans);
    }
    return;
  }
  Span span = Below(values, at);
  SetFirst(column, At(value, inclusive), &span);
  spans->push_back(std::move(span));
  if (!NullsFirst(column)) AppendNulls(Below(values, at), Span::Nulls::kOnly, spans);
}

// Below the first `at` values: everything up to value `at`.
void AppendUpTo(const std::vector<Datum>& values, size_t at, bool inclusive,
                const codec::KeyColumn& column, std::vector<Span>* spans) {
  const Datum value = values[at];
  if (value.is_null()) {
    if (!NullsFirst(column)) {
      AppendNulls(Below(values, at), inclusive ? Span::Nulls::kInclude : Span::Nulls::kExclude,
                  spans);
    } else if (inclusive) {
      AppendNulls(Below(values, at), Span::Nulls::kOnly, spans);
    }
    return;
  }
  if (NullsFirst(column)) AppendNulls(Below(values, at), Span::Nulls::kOnly, spans);
  Span span = Below(values, at);
  SetLast(column, At(value, inclusive), &span);
  spans->push_back(std::move(span));
}

// Below the first `at` values, which both have: from one value to another, greater one.
void AppendBetween(const KeyEdge& from, bool from_inclusive, const KeyEdge& to, bool to_inclusive,
                   size_t at, const codec::KeyColumn& column, std::vector<Span>* spans) {
  const Datum first = from.values[at], last = to.values[at];
  if (first.is_null() && from_inclusive) {
    AppendNulls(Below(from.values, at), Span::Nulls::kOnly, spans);
  }
  Span span = Below(from.values, at);
  if (!first.is_null()) SetFirst(column, At(first, from_inclusive), &span);
  if (!last.is_null()) SetLast(column, At(last, to_inclusive), &span);
  span.nulls = Span::Nulls::kExclude;
  spans->push_back(std::move(span));
  if (last.is_null() && to_inclusive) {
    AppendNulls(Below(from.values, at), Span::Nulls::kOnly, spans);
  }
}

bool SameField(Datum a, Datum b, const codec::KeyColumn& column) {
  std::string left, right;
  codec::AppendKeyField(a, column, &left);
  codec::AppendKeyField(b, column, &right);
  return left == right;
}

}  // namespace

void KeyEdge::SetBytes(std::span<const codec::KeyColumn> columns) {
  bytes.clear();
  codec::AppendKeyFields(values, columns.first(values.size()), &bytes);
}

int CompareEdges(const KeyEdge& a, const KeyEdge& b) {
  const size_t common = std::min(a.bytes.size(), b.bytes.size());
  const int order = std::memcmp(a.bytes.data(), b.bytes.data(), common);
  if (order != 0) return order;
  if (a.bytes.size() == b.bytes.size()) return int{a.after} - int{b.after};
  // No field is a prefix of another: the shorter one has fewer fields, and holds the longer one.
  if (a.bytes.size() < b.bytes.size()) return a.after ? 1 : -1;
  return b.after ? -1 : 1;
}

void NormaliseRanges(std::vector<KeyRange>* ranges) {
  std::erase_if(*ranges,
                [](const KeyRange& range) { return CompareEdges(range.from, range.to) >= 0; });
  std::sort(ranges->begin(), ranges->end(),
            [](const KeyRange& a, const KeyRange& b) { return CompareEdges(a.from, b.from) < 0; });
  size_t kept = 0;
  for (size_t i = 1; i < ranges->size(); ++i) {
    KeyRange& last = (*ranges)[kept];
    if (CompareEdges((*ranges)[i].from, last.to) <= 0) {
      if (CompareEdges((*ranges)[i].to, last.to) > 0) last.to = std::move((*ranges)[i].to);
    } else if (++kept != i) {
      (*ranges)[kept] = std::move((*ranges)[i]);
    }
  }
  if (!ranges->empty()) ranges->resize(kept + 1);
}

std::vector<KeyRange> IntersectRanges(const std::vector<KeyRange>& a,
                                      const std::vector<KeyRange>& b) {
  std::vector<KeyRange> both;
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    KeyRange range;
    range.from = CompareEdges(a[i].from, b[j].from) >= 0 ? a[i].from : b[j].from;
    const bool first_ends = CompareEdges(a[i].to, b[j].to) <= 0;
    range.to = first_ends ? a[i].to : b[j].to;
    if (CompareEdges(range.from, range.to) < 0) both.push_back(std::move(range));
    if (first_ends) {
      ++i;
    } else {
      ++j;
    }
  }
  return both;
}

void AppendSpans(const KeyRange& range, std::span<const codec::KeyColumn> columns,
                 std::vector<table::Span>* spans) {
  const KeyEdge &from = range.from, &to = range.to;
  const size_t n = from.values.size(), m = to.values.size();
  size_t same = 0;
  while (same < n && same < m && SameField(from.values[same], to.values[same], columns[same])) {
    ++same;
  }
  const bool from_inclusive = !from.after, to_inclusive = to.after;
  if (same == n && same == m) {
    if (from_inclusive && to_inclusive) spans->push_back(Below(from.values, n));
    return;
  }
  if (same < n) {
    // Out of the depth of `from`, to where the two part.
    const size_t top = same == m ? same : same + 1;
    for (size_t at = n; at-- > top;) {
      AppendFrom(from.values, at, from_inclusive && at + 1 == n, columns[at], spans);
    }
  }
  if (same < n && same < m) {
    AppendBetween(from, from_inclusive && same + 1 == n, to, to_inclusive && same + 1 == m, same,
                  columns[same], spans);
  }
  if (same < m) {
    const size_t top = same == n ? same : same + 1;
    for (size_t at = top; at < m; ++at) {
      AppendUpTo(to.values, at, to_inclusive && at + 1 == m, columns[at], spans);
    }
  }
}

}  // namespace cellar::session
