#include "cellar/sql/exec/window_aggregate.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/types/numeric.h"

namespace cellar::sql::exec {
namespace {

// A range of rows that only moves forward: tells of each row that enters and leaves.
template <typename Enter, typename Leave>
void Slide(RowRange* at, RowRange to, Enter&& enter, Leave&& leave) {
  for (uint32_t row = at->start; row < std::min(to.start, at->end); ++row) leave(row);
  for (uint32_t row = std::max(at->end, to.start); row < to.end; ++row) enter(row);
  *at = to;
}

// The best row of a range that moves forward: candidates, each worse than those before it.
class BestRow {
 public:
  // better(a, b): row a, which comes first, is strictly better than b.
  template <typename Better, typename Counts>
  void MoveTo(RowRange to, Better&& better, Counts&& counts) {
    Slide(
        &at_, to,
        [&](uint32_t row) {
          if (!counts(row)) return;
          while (rows_.size() > head_ && !better(rows_.back(), row)) rows_.pop_back();
          if (head_ > 0 && rows_.size() == head_) {
            rows_.clear();
            head_ = 0;
          }
          rows_.push_back(row);
        },
        [](uint32_t) {});
    while (head_ < rows_.size() && rows_[head_] < to.start) ++head_;
  }
  uint32_t row() const { return head_ < rows_.size() ? rows_[head_] : kNoRow; }

 private:
  RowRange at_;
  std::vector<uint32_t> rows_;
  size_t head_ = 0;
};

// A sum of numerics over a range that moves forward, and the greatest display scale in it.
class NumericRange {
 public:
  template <typename Counts>
  void MoveTo(RowRange to, const ColumnVector& values, Counts&& counts) {
    Slide(
        &at_, to,
        [&](uint32_t row) {
          if (counts(row)) sum_.Add(values.bytes()[row]);
        },
        [&](uint32_t row) {
          if (counts(row)) sum_.Remove(values.bytes()[row]);
        });
    scales_.MoveTo(
        to,
        [&](uint32_t a, uint32_t b) {
          return numeric::DisplayScale(values.bytes()[a]) >
                 numeric::DisplayScale(values.bytes()[b]);
        },
        counts);
  }
  const numeric::Accumulator& sum() const { return sum_; }
  int scale(const ColumnVector& values) const {
    return scales_.row() == kNoRow ? 0 : numeric::DisplayScale(values.bytes()[scales_.row()]);
  }

 private:
  RowRange at_;
  numeric::Accumulator sum_;
  BestRow scales_;
};

}  // namespace

template <typename F>
Status WindowAggregate::ForEachFrame(ColumnVector* result, F&& compute) {
  Poller poller(state_.context->cancel);
  for (const RowRange& partition : rows_.partitions) {
    for (uint32_t row = partition.start; row < partition.end; ++row) {
      CELLAR_TRY(poller.Step());
      if (row > partition.start && frames_.SameAsBefore(row)) {
        result->Set(row, result->Get(row - 1));
        continue;
      }
      CELLAR_TRY(compute(frames_.Of(row), row));
    }
  }
  return Status();
}

Status WindowAggregate::Prepare(EvalContext& context) {
  const RowBatch& input = *rows_.rows;
  const auto total = static_cast<uint32_t>(input.size());
  Selection rows{nullptr, total};
  if (call_.filter != nullptr) {
    Evaluator filter(call_.filter.get());
    CELLAR_TRY(filter.Filter(input, rows, context, &chosen_));
    rows = {chosen_.data(), chosen_.size()};
  } else {
    chosen_.resize(total);
    for (uint32_t i = 0; i < total; ++i) chosen_[i] = i;
  }
  args_.reserve(call_.args.size());
  for (const ExprPtr& arg : call_.args) {
    args_.emplace_back(arg.get());
    CELLAR_TRY_ASSIGN(const ColumnVector* values, args_.back().Eval(input, rows, context));
    values_.push_back(values);
  }
  if (call_.spec->strict) {
    for (const ColumnVector* values : values_) {
      if (values->has_nulls())
        std::erase_if(chosen_, [&](uint32_t row) { return values->IsNull(row); });
    }
  }
  first_.resize(size_t{total} + 1);
  size_t next = 0;
  Poller poller(context.cancel);
  for (uint32_t row = 0; row <= total; ++row) {
    CELLAR_TRY(poller.Step());
    first_[row] = static_cast<uint32_t>(next);
    if (next < chosen_.size() && chosen_[next] == row) ++next;
  }
  return Status();
}

Status WindowAggregate::Run(EvalContext& context, ColumnVector* result) {
  CELLAR_TRY(Prepare(context));
  const std::string_view name = call_.spec->name;
  if (name == "count") return RunCount(result);
  const Type type = call_.args.empty() ? Type() : call_.args[0]->type;
  if (!type.array && (name == "sum" || name == "avg")) {
    const bool average = name == "avg";
    if (type.id == TypeId::kInt2 || type.id == TypeId::kInt4 || type.id == TypeId::kInt8) {
      return RunIntegers(average, context, result);
    }
    if (type.id == TypeId::kNumeric) return RunNumerics(average, context, result);
  }
  if (name == "bool_and" || name == "every") return RunBooleans(true, result);
  if (name == "bool_or") return RunBooleans(false, result);
  if (name == "min" || name == "max") return RunExtreme(name == "max", result);
  return frames_.grows() ? RunGrowing(context, result) : RunAnew(context, result);
}

Status WindowAggregate::RunCount(ColumnVector* result) {
  return ForEachFrame(result, [&](const FrameRows& frame, uint32_t row) {
    uint64_t count = CountOf(frame.before) + CountOf(frame.after);
    if (frame.itself) count += CountOf({row, row + 1});
    result->ints()[row] = static_cast<int64_t>(count);
    return Status();
  });
}

Status WindowAggregate::RunIntegers(bool average, EvalContext& context, ColumnVector* result) {
  CountedVector<numeric::int128_t> sums(chosen_.size() + 1);  // of those before
  const int64_t* values = values_[0]->ints();
  for (size_t i = 0; i < chosen_.size(); ++i) sums[i + 1] = sums[i] + values[chosen_[i]];
  auto sum_of = [&](RowRange range) { return sums[first_[range.end]] - sums[first_[range.start]]; };
  return ForEachFrame(result, [&](const FrameRows& frame, uint32_t row) -> Status {
    uint64_t count = CountOf(frame.before) + CountOf(frame.after);
    numeric::int128_t sum = sum_of(frame.before) + sum_of(frame.after);
    if (frame.itself) {
      count += CountOf({row, row + 1});
      sum += sum_of({row, row + 1});
    }
    if (count == 0) {
      result->SetNull(row);
      return Status();
    }
    if (result->physical() == Physical::kInt64) {
      if (sum != static_cast<int64_t>(sum)) {
        return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange, "bigint out of range");
      }
      result->ints()[row] = static_cast<int64_t>(sum);
      return Status();
    }
    Arena* arena = context.arena();
    std::string_view out = numeric::Make(sum, 0, arena);
    if (average) {
      CELLAR_TRY_ASSIGN(
          out, numeric::Divide(out, numeric::FromInt64(static_cast<int64_t>(count), arena), arena));
    }
    result->bytes()[row] = out;
    return Status();
  });
}

Status WindowAggregate::RunBooleans(bool all, ColumnVector* result) {
  std::vector<uint32_t> trues(chosen_.size() + 1);
  for (size_t i = 0; i < chosen_.size(); ++i) {
    trues[i + 1] = trues[i] + (values_[0]->ints()[chosen_[i]] != 0 ? 1 : 0);
  }
  auto trues_of = [&](RowRange range) {
    return uint64_t{trues[first_[range.end]]} - trues[first_[range.start]];
  };
  return ForEachFrame(result, [&](const FrameRows& frame, uint32_t row) {
    uint64_t count = CountOf(frame.before) + CountOf(frame.after);
    uint64_t found = trues_of(frame.before) + trues_of(frame.after);
    if (frame.itself) {
      count += CountOf({row, row + 1});
      found += trues_of({row, row + 1});
    }
    if (count == 0) {
      result->SetNull(row);
    } else {
      result->ints()[row] = (all ? found == count : found > 0) ? 1 : 0;
    }
    return Status();
  });
}

Status WindowAggregate::RunNumerics(bool average, EvalContext& context, ColumnVector* result) {
  const ColumnVector& values = *values_[0];
  NumericRange before, after;
  Arena scratch;
  auto counts = [&](uint32_t row) { return first_[row + 1] != first_[row]; };
  return ForEachFrame(result, [&](const FrameRows& frame, uint32_t row) -> Status {
    before.MoveTo(frame.before, values, counts);
    after.MoveTo(frame.after, values, counts);
    const numeric::Accumulator* sum = &before.sum();
    int scale = before.scale(values);
    numeric::Accumulator merged;
    if (frame.itself || after.sum().count() > 0) {
      merged = before.sum();
      merged.Merge(after.sum());
      scale = std::max(scale, after.scale(values));
      if (frame.itself && counts(row)) {
        merged.Add(values.bytes()[row]);
        scale = std::max(scale, numeric::DisplayScale(values.bytes()[row]));
      }
      sum = &merged;
    }
    if (sum->count() == 0) {
      result->SetNull(row);
      return Status();
    }
    // The sum still shows the digits of values that have left.
    scratch.Reset();
    CELLAR_TRY_ASSIGN(std::string_view out, sum->Sum(&scratch));
    if (numeric::IsFinite(out) && numeric::DisplayScale(out) != scale) {
      CELLAR_TRY_ASSIGN(out, numeric::Round(out, scale, &scratch));
    }
    if (average) {
      CELLAR_TRY_ASSIGN(out,
                        numeric::Divide(out, numeric::FromInt64(sum->count(), &scratch), &scratch));
    }
    result->Set(row, CopyDatum(Datum::Bytes(out), result->type(), context.arena()));
    return Status();
  });
}

Status WindowAggregate::RunExtreme(bool greatest, ColumnVector* result) {
  const ColumnVector& values = *values_[0];
  const Type type = call_.args[0]->type;
  auto counts = [&](uint32_t row) { return first_[row + 1] != first_[row]; };
  // Of equal values the last one is the answer.
  auto better = [&](uint32_t a, uint32_t b) {
    if (values.physical() == Physical::kInt64) {
      const int64_t x = values.ints()[a], y = values.ints()[b];
      return greatest ? x > y : x < y;
    }
    const int order = CompareDatums(values.Get(a), values.Get(b), type);
    return greatest ? order > 0 : order < 0;
  };
  BestRow before, after;
  return ForEachFrame(result, [&](const FrameRows& frame, uint32_t row) {
    before.MoveTo(frame.before, better, counts);
    after.MoveTo(frame.after, better, counts);
    uint32_t best = before.row();
    const uint32_t others[] = {frame.itself && counts(row) ? row : kNoRow, after.row()};
    for (uint32_t other : others) {
      if (other != kNoRow && (best == kNoRow || !better(best, other))) best = other;
    }
    result->Set(row, best == kNoRow ? Datum() : values.Get(best));
    return Status();
  });
}

Status WindowAggregate::AddTo(AggregateState* state, uint32_t group, Selection rows,
                              EvalContext& context) {
  constexpr size_t kFew = 64;
  if (rows.count == 0) return Status();
  // Frames may be long: a frame's rows go in in pieces, between which the token is looked at.
  for (; rows.count > kStepsBetweenPolls;
       rows = {rows.rows + kStepsBetweenPolls, rows.count - kStepsBetweenPolls}) {
    CELLAR_TRY(state_.CheckCancel());
    CELLAR_TRY(state->AddToGroup(context, values_, {rows.rows, kStepsBetweenPolls}, group));
  }
  if (rows.count >= kFew) return state->AddToGroup(context, values_, rows, group);
  groups_.assign(rows.count, group);
  return state->Add(context, values_, rows, groups_.data());
}

Status WindowAggregate::RunGrowing(EvalContext& context, ColumnVector* result) {
  std::unique_ptr<AggregateState> state;
  uint32_t done = 0;
  size_t unchecked = 0;
  const std::vector<Type> types = TypesOf(call_.args);
  ColumnVector value;
  return ForEachFrame(result, [&](const FrameRows& frame, uint32_t row) -> Status {
    if (frame.before.start == row) {  // a partition's first
      state = call_.spec->make(types);
      state->Resize(1);
      done = frame.before.start;
    }
    CELLAR_TRY(AddTo(state.get(), 0, Chosen({done, frame.before.end}), context));
    done = frame.before.end;
    value.Reset(call_.result);
    CELLAR_TRY(state->Finish(context, 0, 1, &value));
    result->Set(row, value.Get(0));
    if (++unchecked % kBatchRows != 0) return Status();
    return state_.CheckMemory(state->footprint_bytes() + context.arena()->footprint_bytes());
  });
}

Status WindowAggregate::RunAnew(EvalContext& context, ColumnVector* result) {
  // A group for each frame, some hundred frames at a time.
  constexpr uint32_t kMostGroups = 256;
  constexpr size_t kMostAdded = 1 << 16;  // rows
  const std::vector<Type> types = TypesOf(call_.args);
  std::unique_ptr<AggregateState> state;
  std::vector<uint32_t> rows, groups;  // rows that await the result of a group
  uint32_t count = 0;
  size_t added = 0;
  ColumnVector values;
  auto flush = [&]() -> Status {
    if (rows.empty()) return Status();
    CELLAR_TRY(state_.CheckCancel());
    values.Reset(call_.result);
    CELLAR_TRY(state->Finish(context, 0, count, &values));
    for (size_t i = 0; i < rows.size(); ++i) result->Set(rows[i], values.Get(groups[i]));
    const size_t bytes = state->footprint_bytes() + context.arena()->footprint_bytes();
    rows.clear();
    groups.clear();
    state.reset();
    count = 0;
    added = 0;
    return state_.CheckMemory(bytes);
  };
  for (const RowRange& partition : rows_.partitions) {
    for (uint32_t row = partition.start; row < partition.end; ++row) {
      const bool same = row > partition.start && frames_.SameAsBefore(row);
      if (same && count == 0) {
        result->Set(row, result->Get(row - 1));
        continue;
      }
      if (!same && (count == kMostGroups || added >= kMostAdded)) CELLAR_TRY(flush());
      if (!same) {
        if (state == nullptr) {
          state = call_.spec->make(types);
          state->Resize(kMostGroups);
        }
        const FrameRows frame = frames_.Of(row);
        const uint32_t group = count++;
        CELLAR_TRY(AddTo(state.get(), group, Chosen(frame.before), context));
        if (frame.itself) CELLAR_TRY(AddTo(state.get(), group, Chosen({row, row + 1}), context));
        CELLAR_TRY(AddTo(state.get(), group, Chosen(frame.after), context));
        added += frame.size();
      }
      rows.push_back(row);
      groups.push_back(count - 1);
    }
  }
  return flush();
}

}  // namespace cellar::sql::exec
