// What of plan nodes only the planner and the executor look into: everything above includes plan.h,
// and need not be built anew for it.
//
// Nodes of the kinds below are always made as these.
#pragma once

#include <cstdint>
#include <vector>

#include "cellar/sql/plan/plan.h"

namespace cellar::sql {

// Which rows around a row a window function sees.
struct WindowFrame {
  enum class Mode : uint8_t { kRange, kRows, kGroups };
  enum class Bound : uint8_t {
    kUnboundedPreceding,
    kOffsetPreceding,
    kCurrentRow,
    kOffsetFollowing,
    kUnboundedFollowing
  };
  enum class Exclusion : uint8_t { kNone, kCurrentRow, kGroup, kTies };
  Mode mode = Mode::kRange;
  Bound start = Bound::kUnboundedPreceding, end = Bound::kCurrentRow;
  Exclusion exclusion = Exclusion::kNone;
  // Of the kOffset bounds, without input columns: bigint for kRows and kGroups; for kRange bigint
  // over integers, double precision over floats, numeric over numerics, else an interval.
  ExprPtr start_offset, end_offset;
};

// kWindow.
struct FramedWindowNode : WindowNode {
  std::vector<WindowFrame> frames;  // of each of `calls`
};

// kAggregate. With `sets`, the groups of each set come one after the other, keys that are not of
// the set NULL, and behind the aggregates one integer for each of `groupings`.
struct GroupingNode : AggregateNode {
  std::vector<std::vector<int>> sets;  // positions in `keys`, ascending; a set may be empty
  // GROUPING(...): positions in `keys`, the first one the highest bit.
  std::vector<std::vector<int>> groupings;
};

// kLimit.
struct TiesNode : LimitNode {
  // WITH TIES: columns of the input, which comes ordered by them; rows equal to the last one in
  // all of them are given too.
  std::vector<int> ties;
};

}  // namespace cellar::sql
