// Which rows a window function sees around each row. Private to this layer.
#pragma once

#include <cstdint>
#include <vector>

#include "cellar/sql/exec/operator.h"

namespace cellar::sql::exec {

// Positions [start, end) in window order.
struct RowRange {
  uint32_t start = 0, end = 0;
  uint32_t size() const { return end - start; }
  bool operator==(const RowRange&) const = default;
};

// The rows of a frame, in order: `before`, the row itself when `itself`, and `after`. Both ranges
// of consecutive rows of a partition move forward only.
struct FrameRows {
  RowRange before, after;
  bool itself = false;
  uint64_t size() const { return uint64_t{before.size()} + after.size() + (itself ? 1 : 0); }
};

// What of a window's rows all its calls share: by position in window order.
struct WindowRows {
  const RowBatch* rows = nullptr;
  CountedVector<RowRange> partitions;
  CountedVector<RowRange> peers;  // one a row
  // Of the first ordering expression, for RANGE with offsets; null: there is none.
  const ColumnVector* order = nullptr;
  bool descending = false, nulls_first = false;
};

class Frames {
 public:
  Frames(const WindowFrame& frame, const WindowRows& rows) : frame_(frame), rows_(rows) {}

  // Errors: 22013 for negative offsets, 22004 for NULL ones. Cost: linear in the rows.
  Status Compute(EvalContext& context);
  FrameRows Of(uint32_t row) const;
  // Of rows of a partition that see the same rows, all but the first.
  bool SameAsBefore(uint32_t row) const;
  // All frames of a partition start with it and leave nothing out.
  bool grows() const {
    return frame_.start == WindowFrame::Bound::kUnboundedPreceding &&
           frame_.exclusion == WindowFrame::Exclusion::kNone;
  }

 private:
  Status Offset(const ExprPtr& expr, bool start, EvalContext& context, uint64_t* out);
  Status ByRows(RowRange partition, uint64_t start_offset, uint64_t end_offset, Poller* poller);
  Status ByGroups(RowRange partition, uint64_t start_offset, uint64_t end_offset, Poller* poller);
  Status ByRange(RowRange partition, EvalContext& context, Poller* poller);

  const WindowFrame& frame_;
  const WindowRows& rows_;
  CountedVector<RowRange> bounds_;  // without the exclusion
  CountedVector<uint32_t> groups_;  // scratch: where peers begin
};

}  // namespace cellar::sql::exec
