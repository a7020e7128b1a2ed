// An aggregate over window frames. Private to this layer.
#pragma once

#include <vector>

#include "cellar/sql/exec/window_frame.h"

namespace cellar::sql::exec {

// Counts, sums and averages of exact types, booleans' and, or, and extremes cost the same for
// frames of any size. Others do where frames begin with their partition; else they are computed
// anew for each row, as rounding and order ask.
class WindowAggregate {
 public:
  WindowAggregate(const AggregateCall& call, const WindowRows& rows, const Frames& frames,
                  ExecState* state)
      : call_(call), rows_(rows), frames_(frames), state_(*state) {}

  // Sets a result for each row. Bytes live in context.arena().
  Status Run(EvalContext& context, ColumnVector* result);

 private:
  Status Prepare(EvalContext& context);
  // Calls compute(frame, row) for rows whose frame differs from the one before.
  template <typename F>
  Status ForEachFrame(ColumnVector* result, F&& compute);
  uint64_t CountOf(RowRange range) const { return first_[range.end] - first_[range.start]; }
  Selection Chosen(RowRange range) const {
    return {chosen_.data() + first_[range.start], CountOf(range)};
  }

  Status RunCount(ColumnVector* result);
  Status RunIntegers(bool average, EvalContext& context, ColumnVector* result);
  Status RunBooleans(bool all, ColumnVector* result);
  Status RunNumerics(bool average, EvalContext& context, ColumnVector* result);
  Status RunExtreme(bool greatest, ColumnVector* result);
  Status RunGrowing(EvalContext& context, ColumnVector* result);
  Status RunAnew(EvalContext& context, ColumnVector* result);
  Status AddTo(AggregateState* state, uint32_t group, Selection rows, EvalContext& context);

  const AggregateCall& call_;
  const WindowRows& rows_;
  const Frames& frames_;
  ExecState& state_;
  std::vector<Evaluator> args_;
  std::vector<const ColumnVector*> values_;
  std::vector<uint32_t>
      chosen_;  // rows that pass the filter, without NULLs where those are skipped
  CountedVector<uint32_t> first_;  // for each row and behind the last: how many of them lie before
  std::vector<uint32_t> groups_;
};

}  // namespace cellar::sql::exec
