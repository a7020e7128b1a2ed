#include "cellar/sql/exec/spans.h"

#include <algorithm>

#include "cellar/types/array.h"

namespace cellar::sql::exec {
namespace {

using table::Bound;
using table::Span;

// Compares spans of one index in index order.
class SpanOrder {
 public:
  SpanOrder(const ScanNode& scan)
      : keys_(scan.table->KeyColumnsOf(*scan.table->FindIndex(scan.index))) {
    // Descriptors know no types of expressions; the values that they are compared with have them.
    const auto learn = [this](size_t column, const ExprPtr& value) {
      if (value == nullptr || column >= keys_.size()) return;
      if (keys_[column].type.id == TypeId::kInvalid) keys_[column].type = value->type;
    };
    for (const SpanExpr& span : scan.spans) {
      for (size_t i = 0; i < span.equal.size(); ++i) {
        if (static_cast<int>(i) == span.array_position) {
          Type element = span.equal[i]->type;
          element.array = false;
          if (i < keys_.size() && keys_[i].type.id == TypeId::kInvalid) keys_[i].type = element;
        } else if (i >= span.equal_null.size() || !span.equal_null[i]) {
          learn(i, span.equal[i]);
        }
      }
      learn(span.equal.size(), span.lower.value);
      learn(span.equal.size(), span.upper.value);
    }
  }

  int CompareValue(size_t column, Datum a, Datum b) const {
    const codec::KeyColumn& key = keys_[column];
    if (a.is_null() || b.is_null()) {
      if (a.is_null() && b.is_null()) return 0;
      const bool null_low = key.nulls == codec::NullPlacement::kFirst;
      return a.is_null() == null_low ? -1 : 1;
    }
    int order = CompareDatums(a, b, key.type);
    return key.direction == codec::Direction::kDescending ? -order : order;
  }
  // By the equal values both have, then the shorter (wider) one first.
  int CompareEqual(const Span& a, const Span& b) const {
    const size_t common = std::min(a.equal.size(), b.equal.size());
    for (size_t i = 0; i < common; ++i) {
      if (int order = CompareValue(i, a.equal[i], b.equal[i]); order != 0) return order;
    }
    return 0;
  }
  bool Descending(size_t column) const {
    return keys_[column].direction == codec::Direction::kDescending;
  }
  bool NullsLow(size_t column) const { return keys_[column].nulls == codec::NullPlacement::kFirst; }

  // Position of a span's low end on the column after its equal ones, as a sortable triple.
  struct End {
    int region;  // 0 below all (unbounded or low NULLs), 1 a value, 2 above all
    Datum value;
    int nudge;  // 0 at the value, 1 just past it
  };
  End Low(const Span& span) const {
    const size_t column = span.equal.size();
    if (span.nulls == Span::Nulls::kOnly) return NullsLow(column) ? End{0, {}, 0} : End{2, {}, 1};
    const Bound& bound = Descending(column) ? span.upper : span.lower;
    if (bound.kind == Bound::Kind::kUnbounded) return End{0, {}, Restricted(span) ? 1 : 0};
    return End{1, bound.value, bound.kind == Bound::Kind::kExclusive ? 1 : 0};
  }
  End High(const Span& span) const {
    const size_t column = span.equal.size();
    if (span.nulls == Span::Nulls::kOnly) return NullsLow(column) ? End{0, {}, 1} : End{2, {}, 2};
    const Bound& bound = Descending(column) ? span.lower : span.upper;
    if (bound.kind == Bound::Kind::kUnbounded) return End{2, {}, Restricted(span) ? 0 : 2};
    return End{1, bound.value, bound.kind == Bound::Kind::kInclusive ? 1 : 0};
  }
  int CompareEnds(size_t column, const End& a, const End& b) const {
    if (a.region != b.region) return a.region < b.region ? -1 : 1;
    if (a.region == 1) {
      if (int order = CompareValue(column, a.value, b.value); order != 0) return order;
    }
    return a.nudge < b.nudge ? -1 : a.nudge > b.nudge;
  }

 private:
  static bool Restricted(const Span& span) {
    return span.lower.kind != Bound::Kind::kUnbounded ||
           span.upper.kind != Bound::Kind::kUnbounded || span.nulls == Span::Nulls::kExclude;
  }
  std::vector<codec::KeyColumn> keys_;
};

bool HasRange(const Span& span) {
  return span.lower.kind != Bound::Kind::kUnbounded || span.upper.kind != Bound::Kind::kUnbounded ||
         span.nulls != Span::Nulls::kInclude;
}

// True when every row of `inner` lies in `outer`, whose equal values are a prefix of inner's.
bool Covers(const Span& outer, const Span& inner, const SpanOrder& order) {
  if (outer.equal.size() > inner.equal.size() || order.CompareEqual(outer, inner) != 0)
    return false;
  if (!HasRange(outer)) return true;
  const size_t column = outer.equal.size();
  if (inner.equal.size() > column) {
    // A point on the ranged column: inside when the range admits the value.
    const Datum value = inner.equal[column];
    if (value.is_null()) return outer.nulls == Span::Nulls::kOnly;
    if (outer.nulls == Span::Nulls::kOnly) return false;
    SpanOrder::End low{1, value, 0}, high{1, value, 1};
    return order.CompareEnds(column, order.Low(outer), low) <= 0 &&
           order.CompareEnds(column, high, order.High(outer)) <= 0;
  }
  return order.CompareEnds(column, order.Low(outer), order.Low(inner)) <= 0 &&
         order.CompareEnds(column, order.High(inner), order.High(outer)) <= 0;
}

}  // namespace

Status MakeSpans(const ScanNode& scan, EvalContext& context, Arena* arena,
                 std::vector<Span>* spans) {
  spans->clear();
  context.set_arena(arena);
  for (const SpanExpr& from : scan.spans) {
    Span span;
    bool empty = false;
    for (size_t i = 0; i < from.equal.size() && !empty; ++i) {
      CELLAR_TRY_ASSIGN(Datum value, EvalScalar(*from.equal[i], context));
      const bool wants_null = i < from.equal_null.size() && from.equal_null[i];
      empty = value.is_null() && !wants_null;
      span.equal.push_back(value);
    }
    for (auto [bound, to] :
         {std::pair{&from.lower, &span.lower}, std::pair{&from.upper, &span.upper}}) {
      if (!bound->value || empty) continue;
      CELLAR_TRY_ASSIGN(to->value, EvalScalar(*bound->value, context));
      empty = to->value.is_null();
      to->kind = bound->inclusive ? Bound::Kind::kInclusive : Bound::Kind::kExclusive;
    }
    if (empty) continue;
    if (from.only_null)
      span.nulls = Span::Nulls::kOnly;
    else if (from.exclude_null)
      span.nulls = Span::Nulls::kExclude;
    if (from.array_position < 0) {
      spans->push_back(std::move(span));
      continue;
    }
    // One span for each element; the merge below drops those that repeat.
    const size_t position = static_cast<size_t>(from.array_position);
    Type element = from.equal[position]->type;
    element.array = false;
    const ArrayView elements(span.equal[position].bytes(), element);
    for (size_t i = 0; i < elements.size(); ++i) {
      if (elements.IsNull(i)) continue;
      Span one = span;
      one.equal[position] = elements.Get(i);
      spans->push_back(std::move(one));
    }
  }
  if (spans->size() < 2) return Status();

  const SpanOrder order(scan);
  auto less = [&order](const Span& a, const Span& b) {
    if (int by_equal = order.CompareEqual(a, b); by_equal != 0) return by_equal < 0;
    if (a.equal.size() == b.equal.size()) {
      if (!HasRange(a) && !HasRange(b)) return false;
      if (!HasRange(a) || !HasRange(b)) return !HasRange(a);
      const size_t column = a.equal.size();
      int low = order.CompareEnds(column, order.Low(a), order.Low(b));
      if (low != 0) return low < 0;
      return order.CompareEnds(column, order.High(a), order.High(b)) > 0;
    }
    // The wider first; a ranged wide one against a point inside its column compares by the low end.
    const Span& wide = a.equal.size() < b.equal.size() ? a : b;
    const Span& narrow = a.equal.size() < b.equal.size() ? b : a;
    if (!HasRange(wide)) return &wide == &a;
    const size_t column = wide.equal.size();
    SpanOrder::End point{1, narrow.equal[column], 0};
    if (narrow.equal[column].is_null())
      point = order.NullsLow(column) ? SpanOrder::End{0, {}, 0} : SpanOrder::End{2, {}, 1};
    int low = order.CompareEnds(column, order.Low(wide), point);
    return &wide == &a ? low <= 0 : low > 0;
  };
  std::stable_sort(spans->begin(), spans->end(), less);
  std::vector<Span> merged;
  for (Span& span : *spans) {
    if (!merged.empty() && Covers(merged.back(), span, order)) continue;
    if (!merged.empty() && merged.back().equal.size() == span.equal.size() &&
        order.CompareEqual(merged.back(), span) == 0 && HasRange(merged.back()) && HasRange(span) &&
        merged.back().nulls != Span::Nulls::kOnly && span.nulls != Span::Nulls::kOnly) {
      const size_t column = span.equal.size();
      Span& last = merged.back();
      if (order.CompareEnds(column, order.Low(span), order.High(last)) <
          0) {  // they overlap: extend
        if (order.Descending(column))
          last.lower = span.lower;
        else
          last.upper = span.upper;
        if (!HasRange(last)) last.nulls = Span::Nulls::kExclude;
        continue;
      }
    }
    merged.push_back(std::move(span));
  }
  if (scan.reverse) std::reverse(merged.begin(), merged.end());
  *spans = std::move(merged);
  return Status();
}

}  // namespace cellar::sql::exec
