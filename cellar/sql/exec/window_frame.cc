#include "cellar/sql/exec/window_frame.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cellar/base/sqlstate.h"
#include "cellar/types/datetime.h"
#include "cellar/types/numeric.h"

namespace cellar::sql::exec {
namespace {

using Bound = WindowFrame::Bound;
using Exclusion = WindowFrame::Exclusion;

// Values of the ordering column plus or minus the offset of a RANGE bound, and how others compare
// with them: PostgreSQL's in_range functions.
class RangeBound {
 public:
  RangeBound(const WindowRows& rows, const ExprPtr& offset, bool preceding, bool start)
      : values_(*rows.order),
        expr_(*offset),
        subtract_(preceding != rows.descending),
        less_(start == rows.descending),
        type_(rows.order->type()) {}

  Status Open(EvalContext& context) {
    context_ = &context;
    CELLAR_TRY_ASSIGN(offset_, EvalScalar(expr_, context));
    return Status();
  }

  // Of the row whose value is not NULL.
  Status SetBase(uint32_t row) {
    if (row == base_) return Status();
    if (base_ == kNoRow) CELLAR_TRY(CheckOffset());
    base_ = row;
    always_ = false;
    never_ = false;
    arena_.Reset();
    const Datum base = values_.Get(row);
    switch (type_.id) {
      case TypeId::kInt2:
      case TypeId::kInt4:
      case TypeId::kInt8: {
        int64_t sum;
        const bool overflow =
            subtract_ ? __builtin_sub_overflow(base.int_value(), offset_.int_value(), &sum)
                      : __builtin_add_overflow(base.int_value(), offset_.int_value(), &sum);
        (subtract_ != less_ ? always_ : never_) = overflow;
        limit_ = Datum::Int(sum);
        return Status();
      }
      case TypeId::kFloat4:
      case TypeId::kFloat8: {
        const double value = base.double_value(), offset = offset_.double_value();
        // From one infinity back by another: all but NaN that lies before or behind.
        const bool all = std::isinf(value) && std::isinf(offset) && (subtract_ == (value > 0));
        const double infinity = std::numeric_limits<double>::infinity();
        limit_ = Datum::Double(all         ? (less_ ? infinity : -infinity)
                               : subtract_ ? value - offset
                                           : value + offset);
        return Status();
      }
      case TypeId::kNumeric: {
        const std::string_view value = base.bytes(), offset = offset_.bytes();
        if (!numeric::IsFinite(offset) &&
            numeric::KindOf(value) ==
                (subtract_ ? numeric::Kind::kInfinity : numeric::Kind::kNegativeInfinity)) {
          limit_ = Datum::Bytes(numeric::MakeInfinity(!less_));
          return Status();
        }
        CELLAR_TRY_ASSIGN(std::string_view sum, subtract_
                                                    ? numeric::Subtract(value, offset, &arena_)
                                                    : numeric::Add(value, offset, &arena_));
        limit_ = Datum::Bytes(sum);
        return Status();
      }
      case TypeId::kDate: {
        CELLAR_TRY_ASSIGN(int64_t at, TimestampFromDate(base.int_value()));
        CELLAR_TRY_ASSIGN(at, AddInterval(at, signed_));
        limit_ = Datum::Int(at);
        return Status();
      }
      case TypeId::kTimestamp: {
        CELLAR_TRY_ASSIGN(int64_t at, AddInterval(base.int_value(), signed_));
        limit_ = Datum::Int(at);
        return Status();
      }
      case TypeId::kTimestamptz: {
        CELLAR_TRY_ASSIGN(int64_t at,
                          AddIntervalTz(base.int_value(), signed_, context_->format.time_zone));
        limit_ = Datum::Int(at);
        return Status();
      }
      case TypeId::kTime: {  // does not wrap around midnight here
        int64_t sum;
        const bool overflow = __builtin_add_overflow(base.int_value(), signed_.micros, &sum);
        (less_ ? always_ : never_) = overflow;
        limit_ = Datum::Int(sum);
        return Status();
      }
      case TypeId::kTimetz: {
        TimeTz value = TimeTzOf(base);
        const bool overflow = __builtin_add_overflow(value.micros, signed_.micros, &value.micros);
        (less_ ? always_ : never_) = overflow;
        limit_ = MakeDatum(value, &arena_);
        return Status();
      }
      default: {
        CELLAR_TRY_ASSIGN(Interval sum, cellar::Add(IntervalOf(base), signed_));
        limit_ = MakeDatum(sum, &arena_);
        return Status();
      }
    }
  }

  // Whether the row's value, not NULL, lies on the inner side of the bound.
  Result<bool> Holds(uint32_t row) const {
    if (always_ || never_) return always_;
    Datum value = values_.Get(row);
    Type type = type_;
    if (type_.id == TypeId::kDate) {
      CELLAR_TRY_ASSIGN(int64_t at, TimestampFromDate(value.int_value()));
      value = Datum::Int(at);
      type = MakeType(TypeId::kTimestamp);
    }
    if (type_.id == TypeId::kFloat4) type = MakeType(TypeId::kFloat8);
    const int order = CompareDatums(value, limit_, type);
    return less_ ? order <= 0 : order >= 0;
  }
  bool IsNull(uint32_t row) const { return values_.IsNull(row); }
  bool offset_is_null() const { return offset_.is_null(); }

 private:
  Status CheckOffset() {
    bool bad = false;
    switch (type_.id) {
      case TypeId::kInt2:
      case TypeId::kInt4:
      case TypeId::kInt8: bad = offset_.int_value() < 0; break;
      case TypeId::kFloat4:
      case TypeId::kFloat8:
        bad = std::isnan(offset_.double_value()) || offset_.double_value() < 0;
        break;
      case TypeId::kNumeric:
        bad = numeric::IsNaN(offset_.bytes()) || numeric::SignOf(offset_.bytes()) < 0;
        break;
      default: {
        Interval offset = IntervalOf(offset_);
        const bool time = type_.id == TypeId::kTime || type_.id == TypeId::kTimetz;
        bad = time ? offset.micros < 0 : CompareIntervals(offset, Interval()) < 0;
        if (bad) break;
        signed_ = offset;
        if (subtract_ && time) {
          signed_.micros = -offset.micros;
        } else if (subtract_) {
          CELLAR_TRY_ASSIGN(signed_, cellar::Negate(offset));
        }
      }
    }
    if (!bad) return Status();
    return SqlError(Code::kInvalid, "22013",
                    "invalid preceding or following size in window function");
  }

  const ColumnVector& values_;
  const Expr& expr_;
  const bool subtract_, less_;
  const Type type_;
  EvalContext* context_ = nullptr;
  Arena arena_;
  Datum offset_, limit_;
  Interval signed_;
  uint32_t base_ = kNoRow;
  bool always_ = false, never_ = false;
};

bool IsOffset(Bound bound) {
  return bound == Bound::kOffsetPreceding || bound == Bound::kOffsetFollowing;
}

}  // namespace

Status Frames::Offset(const ExprPtr& expr, bool start, EvalContext& context, uint64_t* out) {
  if (expr == nullptr) return Status();
  const std::string_view word = start ? "starting" : "ending";
  CELLAR_TRY_ASSIGN(const Datum value, EvalScalar(*expr, context));
  if (value.is_null()) {
    return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed,
                    "frame {} offset must not be null", word);
  }
  if (frame_.mode == WindowFrame::Mode::kRange) return Status();
  if (value.int_value() < 0) {
    return SqlError(Code::kInvalid, "22013", "frame {} offset must not be negative", word);
  }
  *out = static_cast<uint64_t>(value.int_value());
  return Status();
}

Status Frames::Compute(EvalContext& context) {
  uint64_t start = 0, end = 0;
  CELLAR_TRY(Offset(frame_.start_offset, true, context, &start));
  CELLAR_TRY(Offset(frame_.end_offset, false, context, &end));
  bounds_.resize(rows_.peers.size());
  Poller poller(context.cancel);
  for (const RowRange& partition : rows_.partitions) {
    switch (frame_.mode) {
      case WindowFrame::Mode::kRows: CELLAR_TRY(ByRows(partition, start, end, &poller)); break;
      case WindowFrame::Mode::kGroups: CELLAR_TRY(ByGroups(partition, start, end, &poller)); break;
      case WindowFrame::Mode::kRange: CELLAR_TRY(ByRange(partition, context, &poller)); break;
    }
    // An empty frame may lie anywhere: where its start is, it moves forward as others do.
    for (uint32_t i = partition.start; i < partition.end; ++i) {
      CELLAR_TRY(poller.Step());
      bounds_[i].end = std::max(bounds_[i].start, bounds_[i].end);
    }
  }
  return Status();
}

Status Frames::ByRows(RowRange partition, uint64_t start_offset, uint64_t end_offset,
                      Poller* poller) {
  const uint64_t count = partition.size();
  // Where a bound `offset` rows from row i lies, as a count of rows of the partition.
  auto at = [count](Bound bound, uint64_t i, uint64_t offset) -> uint64_t {
    switch (bound) {
      case Bound::kUnboundedPreceding: return 0;
      case Bound::kOffsetPreceding: return i > offset ? i - offset : 0;
      case Bound::kCurrentRow: return i;
      case Bound::kOffsetFollowing: return offset < count - i ? i + offset : count;
      case Bound::kUnboundedFollowing: break;
    }
    return count;
  };
  for (uint64_t i = 0; i < count; ++i) {
    CELLAR_TRY(poller->Step());
    const uint64_t start = at(frame_.start, i, start_offset);
    // The end is the row behind the last one.
    const uint64_t end = std::min(count, at(frame_.end, i + 1, end_offset));
    bounds_[partition.start + i] = {partition.start + static_cast<uint32_t>(start),
                                    partition.start + static_cast<uint32_t>(end)};
  }
  return Status();
}

Status Frames::ByGroups(RowRange partition, uint64_t start_offset, uint64_t end_offset,
                        Poller* poller) {
  groups_.clear();
  for (uint32_t i = partition.start; i < partition.end; i = rows_.peers[i].end) {
    CELLAR_TRY(poller->Step());
    groups_.push_back(i);
  }
  groups_.push_back(partition.end);
  const uint64_t count = groups_.size() - 1;
  for (uint64_t g = 0; g < count; ++g) {
    CELLAR_TRY(poller->Step());
    uint64_t start = 0, end = count;
    if (frame_.start == Bound::kOffsetPreceding) start = g > start_offset ? g - start_offset : 0;
    if (frame_.start == Bound::kCurrentRow) start = g;
    if (frame_.start == Bound::kOffsetFollowing)
      start = start_offset < count - g ? g + start_offset : count;
    if (frame_.end == Bound::kOffsetPreceding) end = g + 1 > end_offset ? g + 1 - end_offset : 0;
    if (frame_.end == Bound::kCurrentRow) end = g + 1;
    if (frame_.end == Bound::kOffsetFollowing)
      end = end_offset < count - g - 1 ? g + 1 + end_offset : count;
    const RowRange range{groups_[start], groups_[end]};
    std::fill(bounds_.begin() + groups_[g], bounds_.begin() + groups_[g + 1], range);
  }
  return Status();
}

Status Frames::ByRange(RowRange partition, EvalContext& context, Poller* poller) {
  std::optional<RangeBound> from, to;
  if (IsOffset(frame_.start)) {
    from.emplace(rows_, frame_.start_offset, frame_.start == Bound::kOffsetPreceding, true);
    CELLAR_TRY(from->Open(context));
  }
  if (IsOffset(frame_.end)) {
    to.emplace(rows_, frame_.end_offset, frame_.end == Bound::kOffsetPreceding, false);
    CELLAR_TRY(to->Open(context));
  }
  uint32_t start = partition.start, end = partition.start;
  for (uint32_t i = partition.start; i < partition.end; i = rows_.peers[i].end) {
    CELLAR_TRY(poller->Step());
    const RowRange peers = rows_.peers[i];
    if (frame_.start == Bound::kCurrentRow) start = peers.start;
    if (from) {
      // NULLs see one another only: those that lie before are passed by, those behind not.
      const bool null = from->IsNull(i);
      if (!null) CELLAR_TRY(from->SetBase(i));
      for (; start < partition.end; ++start) {
        CELLAR_TRY(poller->Step());
        const bool other = from->IsNull(start);
        if (null || other) {
          if (rows_.nulls_first ? !other || null : other || !null) break;
          continue;
        }
        CELLAR_TRY_ASSIGN(const bool inside, from->Holds(start));
        if (inside) break;
      }
    }
    if (frame_.end == Bound::kCurrentRow) end = peers.end;
    if (frame_.end == Bound::kUnboundedFollowing) end = partition.end;
    if (to) {
      const bool null = to->IsNull(i);
      if (!null) CELLAR_TRY(to->SetBase(i));
      for (; end < partition.end; ++end) {
        CELLAR_TRY(poller->Step());
        const bool other = to->IsNull(end);
        if (null || other) {
          if (rows_.nulls_first ? !other && null : other && !null) break;
          continue;
        }
        CELLAR_TRY_ASSIGN(const bool inside, to->Holds(end));
        if (!inside) break;
      }
    }
    std::fill(bounds_.begin() + peers.start, bounds_.begin() + peers.end, RowRange{start, end});
  }
  return Status();
}

FrameRows Frames::Of(uint32_t row) const {
  const RowRange bounds = bounds_[row];
  FrameRows out;
  if (frame_.exclusion == Exclusion::kNone) {
    out.before = bounds;
    out.after = {bounds.end, bounds.end};
    return out;
  }
  RowRange cut = rows_.peers[row];
  if (frame_.exclusion == Exclusion::kCurrentRow) cut = {row, row + 1};
  const uint32_t first = std::clamp(cut.start, bounds.start, bounds.end);
  const uint32_t second = std::clamp(cut.end, bounds.start, bounds.end);
  out.before = {bounds.start, first};
  out.after = {second, bounds.end};
  out.itself = frame_.exclusion == Exclusion::kTies && row >= bounds.start && row < bounds.end;
  return out;
}

bool Frames::SameAsBefore(uint32_t row) const {
  if (row == 0 || bounds_[row] != bounds_[row - 1]) return false;
  if (frame_.exclusion == Exclusion::kNone) return true;
  return frame_.exclusion == Exclusion::kGroup && rows_.peers[row] == rows_.peers[row - 1];
}

}  // namespace cellar::sql::exec
