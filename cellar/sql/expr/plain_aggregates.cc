// Aggregates whose state is a word or two: count, and sums, averages and extremes of integers and
// floats. Most of what scans over many rows spend above the table layer is spent here.
#include <cmath>

#include "cellar/sql/expr/registry.h"
#include "cellar/types/numeric.h"

namespace cellar::sql {
namespace {

using Vectors = std::span<const ColumnVector* const>;

// Calls visit(value, i) for the i-th selected row, in order.
template <typename T, typename F>
inline void ForEach(const T* values, Selection rows, F&& visit) {
  const size_t count = rows.count;
  if (rows.rows == nullptr) {
    for (size_t i = 0; i < count; ++i) visit(values[i], i);
  } else {
    const uint32_t* places = rows.rows;
    for (size_t i = 0; i < count; ++i) visit(values[places[i]], i);
  }
}

// States that are a cell for each group. Derived: SetResult(cell, context, row, result).
template <typename Derived, typename Cell>
class CellState : public AggregateState {
 public:
  void Resize(size_t groups) override { cells_.resize(groups); }
  Status Finish(EvalContext& context, size_t start, size_t end, ColumnVector* result) override {
    const size_t at = result->size();
    result->Resize(at + end - start);
    for (size_t g = start; g < end; ++g) {
      CELLAR_TRY(Derived::SetResult(cells_[g], context, at + g - start, result));
    }
    return Status();
  }
  size_t footprint_bytes() const override { return cells_.capacity() * sizeof(Cell); }

 protected:
  std::vector<Cell> cells_;
};

// ---- count ----

class CountState : public CellState<CountState, int64_t> {
 public:
  Status Add(EvalContext&, Vectors, Selection rows, const uint32_t* groups) override {
    int64_t* counts = cells_.data();
    for (size_t i = 0; i < rows.count; ++i) ++counts[groups[i]];
    return Status();
  }
  Status AddToGroup(EvalContext&, Vectors, Selection rows, uint32_t group) override {
    cells_[group] += static_cast<int64_t>(rows.count);
    return Status();
  }
  static Status SetResult(int64_t count, EvalContext&, size_t row, ColumnVector* result) {
    result->ints()[row] = count;
    return Status();
  }
};

// ---- Sums of integers ----

struct IntSum {
  int64_t sum = 0;
  bool any = false;
};

// sum(int2), sum(int4): bigint.
class IntSumState : public CellState<IntSumState, IntSum> {
 public:
  Status Add(EvalContext&, Vectors args, Selection rows, const uint32_t* groups) override {
    IntSum* cells = cells_.data();
    bool overflow = false;
    ForEach(args[0]->ints(), rows, [&](int64_t value, size_t i) {
      IntSum& cell = cells[groups[i]];
      cell.any = true;
      overflow |= __builtin_add_overflow(cell.sum, value, &cell.sum);
    });
    return overflow ? OutOfRange() : Status();
  }
  Status AddToGroup(EvalContext&, Vectors args, Selection rows, uint32_t group) override {
    if (rows.count == 0) return Status();
    IntSum& cell = cells_[group];
    cell.any = true;
    constexpr int64_t kFar = int64_t{1} << 62;
    if (rows.count < (size_t{1} << 30) && cell.sum < kFar && cell.sum > -kFar) {
      // Values of 32 bits: no sum on the way can leave the range.
      int64_t sum = 0;
      ForEach(args[0]->ints(), rows, [&](int64_t value, size_t) { sum += value; });
      cell.sum += sum;
      return Status();
    }
    bool overflow = false;
    ForEach(args[0]->ints(), rows, [&](int64_t value, size_t) {
      overflow |= __builtin_add_overflow(cell.sum, value, &cell.sum);
    });
    return overflow ? OutOfRange() : Status();
  }
  static Status SetResult(const IntSum& cell, EvalContext&, size_t row, ColumnVector* result) {
    if (cell.any)
      result->ints()[row] = cell.sum;
    else
      result->SetNull(row);
    return Status();
  }

 private:
  static Status OutOfRange() {
    return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange, "bigint out of range");
  }
};

struct WideSum {
  numeric::int128_t sum = 0;
  int64_t count = 0;
};

// sum and avg of bigint, avg of smaller integers: a 128-bit sum never overflows.
template <bool average>
class WideIntState : public CellState<WideIntState<average>, WideSum> {
 public:
  Status Add(EvalContext&, Vectors args, Selection rows, const uint32_t* groups) override {
    WideSum* cells = this->cells_.data();
    ForEach(args[0]->ints(), rows, [&](int64_t value, size_t i) {
      WideSum& cell = cells[groups[i]];
      cell.sum += value;
      ++cell.count;
    });
    return Status();
  }
  Status AddToGroup(EvalContext&, Vectors args, Selection rows, uint32_t group) override {
    WideSum& cell = this->cells_[group];
    numeric::int128_t sum = 0;
    ForEach(args[0]->ints(), rows, [&](int64_t value, size_t) { sum += value; });
    cell.sum += sum;
    cell.count += static_cast<int64_t>(rows.count);
    return Status();
  }
  static Status SetResult(const WideSum& cell, EvalContext& context, size_t row,
                          ColumnVector* result) {
    if (cell.count == 0) {
      result->SetNull(row);
      return Status();
    }
    Arena* arena = context.arena();
    std::string_view out = numeric::Make(cell.sum, 0, arena);
    if (average) {
      CELLAR_TRY_ASSIGN(out, numeric::Divide(out, numeric::FromInt64(cell.count, arena), arena));
    }
    result->bytes()[row] = out;
    return Status();
  }
};

// ---- Sums of floats ----

struct DoubleSum {
  double sum = -0.0;  // leaves every value as it is, its sign too
  int64_t count = 0;
};

// sum and avg of floats, in the order of the rows, which decides the last digits; `single` rounds
// the running sum to float4 as sum(real) does.
template <bool average, bool single>
class DoubleSumState : public CellState<DoubleSumState<average, single>, DoubleSum> {
 public:
  Status Add(EvalContext&, Vectors args, Selection rows, const uint32_t* groups) override {
    DoubleSum* cells = this->cells_.data();
    bool overflow = false;
    ForEach(args[0]->doubles(), rows, [&](double value, size_t i) {
      DoubleSum& cell = cells[groups[i]];
      const double next = Plus(cell.sum, value);
      if (!std::isfinite(next)) [[unlikely]]
        overflow |= Overflows(cell.sum, value, next);
      cell.sum = next;
      ++cell.count;
    });
    return overflow ? OutOfRange() : Status();
  }
  Status AddToGroup(EvalContext&, Vectors args, Selection rows, uint32_t group) override {
    DoubleSum& cell = this->cells_[group];
    double sum = cell.sum;
    ForEach(args[0]->doubles(), rows, [&](double value, size_t) { sum = Plus(sum, value); });
    if (!std::isfinite(sum)) [[unlikely]] {
      // A sum that was infinite once never becomes finite again: only here may one have overflowed.
      bool overflow = false;
      sum = cell.sum;
      ForEach(args[0]->doubles(), rows, [&](double value, size_t) {
        const double next = Plus(sum, value);
        overflow |= Overflows(sum, value, next);
        sum = next;
      });
      if (overflow) return OutOfRange();
    }
    cell.sum = sum;
    cell.count += static_cast<int64_t>(rows.count);
    return Status();
  }
  static Status SetResult(const DoubleSum& cell, EvalContext&, size_t row, ColumnVector* result) {
    if (cell.count == 0)
      result->SetNull(row);
    else
      result->doubles()[row] =
          average ? (cell.sum + 0.0) / static_cast<double>(cell.count) : cell.sum;
    return Status();
  }

 private:
  static double Plus(double sum, double value) {
    const double next = sum + value;
    return single && !average ? static_cast<double>(static_cast<float>(next)) : next;
  }
  static bool Overflows(double sum, double value, double next) {
    return std::isinf(next) && !std::isinf(value) && !std::isinf(sum);
  }
  static Status OutOfRange() {
    return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                    "value out of range: overflow");
  }
};

// ---- min and max ----

template <typename T>
struct Extreme {
  T value = 0;
  bool any = false;
};

bool IsNan(int64_t) { return false; }
bool IsNan(double value) { return std::isnan(value); }

// T: int64_t or double. Of equal values (0 and -0) the last one stays, as in PostgreSQL.
template <bool greatest, typename T>
class ExtremeOfState : public CellState<ExtremeOfState<greatest, T>, Extreme<T>> {
 public:
  Status Add(EvalContext&, Vectors args, Selection rows, const uint32_t* groups) override {
    Extreme<T>* cells = this->cells_.data();
    ForEach(ValuesOf(*args[0]), rows, [&](T value, size_t i) {
      Extreme<T>& cell = cells[groups[i]];
      if (!cell.any || !Beats(cell.value, value)) cell.value = value;
      cell.any = true;
    });
    return Status();
  }
  Status AddToGroup(EvalContext&, Vectors args, Selection rows, uint32_t group) override {
    if (rows.count == 0) return Status();
    Extreme<T>& cell = this->cells_[group];
    const T* values = ValuesOf(*args[0]);
    T best = cell.any ? cell.value : values[rows[0]];
    bool nan = IsNan(best);
    ForEach(values, rows, [&](T value, size_t) {
      best = (greatest ? best > value : best < value) ? best : value;
      nan |= IsNan(value);
    });
    if (nan) {
      best = cell.any ? cell.value : values[rows[0]];
      ForEach(values, rows, [&](T value, size_t) { best = Beats(best, value) ? best : value; });
    }
    cell = {best, true};
    return Status();
  }
  static Status SetResult(const Extreme<T>& cell, EvalContext&, size_t row, ColumnVector* result) {
    if (!cell.any)
      result->SetNull(row);
    else if constexpr (std::is_same_v<T, double>)
      result->doubles()[row] = cell.value;
    else
      result->ints()[row] = cell.value;
    return Status();
  }

 private:
  static const T* ValuesOf(const ColumnVector& column) {
    if constexpr (std::is_same_v<T, double>)
      return column.doubles();
    else
      return column.ints();
  }
  // NaN is greater than all others.
  static bool Beats(T best, T value) {
    if (IsNan(best) || IsNan(value)) {
      return greatest ? IsNan(best) && !IsNan(value) : !IsNan(best) && IsNan(value);
    }
    return greatest ? best > value : best < value;
  }
};

template <typename State>
std::unique_ptr<AggregateState> Make(std::span<const Type>) {
  return std::make_unique<State>();
}

}  // namespace

void RegisterPlainAggregates(Registry& r) {
  r.AddAggregate("count() int8", Make<CountState>, false);
  r.AddAggregate("count(any) int8", Make<CountState>);
  r.AddAggregate("sum(int2) int8", Make<IntSumState>);
  r.AddAggregate("sum(int4) int8", Make<IntSumState>);
  r.AddAggregate("sum(int8) numeric", Make<WideIntState<false>>);
  r.AddAggregate("sum(float4) float4", Make<DoubleSumState<false, true>>);
  r.AddAggregate("sum(float8) float8", Make<DoubleSumState<false, false>>);
  r.AddAggregate("avg(int2) numeric", Make<WideIntState<true>>);
  r.AddAggregate("avg(int4) numeric", Make<WideIntState<true>>);
  r.AddAggregate("avg(int8) numeric", Make<WideIntState<true>>);
  r.AddAggregate("avg(float4) float8", Make<DoubleSumState<true, true>>);
  r.AddAggregate("avg(float8) float8", Make<DoubleSumState<true, false>>);
}

std::unique_ptr<AggregateState> MakePlainExtreme(Physical physical, bool greatest) {
  if (physical == Physical::kInt64) {
    if (greatest) return std::make_unique<ExtremeOfState<true, int64_t>>();
    return std::make_unique<ExtremeOfState<false, int64_t>>();
  }
  if (greatest) return std::make_unique<ExtremeOfState<true, double>>();
  return std::make_unique<ExtremeOfState<false, double>>();
}

}  // namespace cellar::sql
