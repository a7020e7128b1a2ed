// Ordered-set aggregates: mode and percentiles. The operator adds rows in the order of WITHIN
// GROUP; the sort expression is the last argument.
#include <cmath>

#include "cellar/sql/expr/registry.h"
#include "cellar/types/array.h"
#include "cellar/types/datetime.h"

namespace cellar::sql {
namespace {

using Vectors = std::span<const ColumnVector* const>;

// All values of each group, in the order they came.
class OrderedState : public AggregateState {
 public:
  explicit OrderedState(std::span<const Type> types) : types_(types.begin(), types.end()) {}
  void Resize(size_t groups) override { cells_.resize(groups); }
  Status Add(EvalContext&, Vectors args, Selection rows, const uint32_t* groups) override {
    const size_t last = args.size() - 1;
    for (size_t i = 0; i < rows.count; ++i) {
      Cell& cell = cells_[groups[i]];
      if (args.size() > 1 && cell.values.empty()) {
        cell.fraction = CopyDatum(args[0]->Get(rows[i]), types_[0], &arena_);
      }
      cell.values.push_back(CopyDatum(args[last]->Get(rows[i]), types_[last], &arena_));
    }
    return Status();
  }
  Status Finish(EvalContext& context, size_t start, size_t end, ColumnVector* result) override {
    const size_t at = result->size();
    result->Resize(at + end - start);
    for (size_t g = start; g < end; ++g) {
      Datum out;
      if (!cells_[g].values.empty()) {
        CELLAR_TRY_ASSIGN(out, ResultOf(cells_[g], context));
      }
      result->Set(at + g - start, out);
    }
    return Status();
  }
  size_t footprint_bytes() const override {
    size_t out = arena_.footprint_bytes() + cells_.capacity() * sizeof(Cell);
    for (const Cell& cell : cells_) out += cell.values.capacity() * sizeof(Datum);
    return out;
  }

 protected:
  struct Cell {
    Datum fraction;
    std::vector<Datum> values;  // not empty when asked for a result
  };
  virtual Result<Datum> ResultOf(const Cell& cell, EvalContext& context) const = 0;
  Type value_type() const { return types_.back(); }
  Type fraction_type() const { return types_.front(); }

 private:
  std::vector<Type> types_;
  std::vector<Cell> cells_;
  Arena arena_;
};

// The most frequent value; of several, the first.
class ModeState : public OrderedState {
 public:
  using OrderedState::OrderedState;

 protected:
  Result<Datum> ResultOf(const Cell& cell, EvalContext& context) const override {
    size_t best = 0, best_count = 0;
    for (size_t i = 0; i < cell.values.size();) {
      size_t next = i + 1;
      while (next < cell.values.size() &&
             CompareDatums(cell.values[i], cell.values[next], value_type()) == 0) {
        ++next;
      }
      if (next - i > best_count) best = i, best_count = next - i;
      i = next;
    }
    return CopyDatum(cell.values[best], value_type(), context.arena());
  }
};

Result<double> CheckFraction(double fraction) {
  if (fraction >= 0 && fraction <= 1) return fraction;
  return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                  "percentile value {} is not between 0 and 1", fraction);
}

template <bool continuous>
class PercentileState : public OrderedState {
 public:
  using OrderedState::OrderedState;

 protected:
  Result<Datum> ResultOf(const Cell& cell, EvalContext& context) const override {
    if (!fraction_type().array) return One(cell, cell.fraction.double_value(), context);
    ArrayView fractions(cell.fraction.bytes(), MakeType(TypeId::kFloat8));
    ArrayBuilder builder(value_type());
    std::vector<int32_t> lengths;
    for (int d = 0; d < fractions.dimensions(); ++d) lengths.push_back(fractions.length(d));
    for (size_t i = 0; i < fractions.size(); ++i) {
      Datum out;
      if (!fractions.IsNull(i)) {
        CELLAR_TRY_ASSIGN(out, One(cell, fractions.Get(i).double_value(), context));
      }
      builder.Add(out);
    }
    if (lengths.empty()) return Datum::Bytes(builder.Finish(context.arena()));
    return Datum::Bytes(builder.Finish(lengths, {}, context.arena()));
  }

 private:
  Result<Datum> One(const Cell& cell, double fraction, EvalContext& context) const {
    CELLAR_TRY_ASSIGN(fraction, CheckFraction(fraction));
    const double count = static_cast<double>(cell.values.size());
    if (!continuous) {
      const double row = std::max(1.0, std::ceil(fraction * count));
      return CopyDatum(cell.values[static_cast<size_t>(row) - 1], value_type(), context.arena());
    }
    const double row = fraction * (count - 1);
    const size_t low = static_cast<size_t>(std::floor(row)),
                 high = static_cast<size_t>(std::ceil(row));
    const double part = row - std::floor(row);
    if (value_type().id == TypeId::kInterval) {
      const Interval a = IntervalOf(cell.values[low]), b = IntervalOf(cell.values[high]);
      CELLAR_TRY_ASSIGN(Interval step, Subtract(b, a));
      CELLAR_TRY_ASSIGN(step, Multiply(step, part));
      CELLAR_TRY_ASSIGN(step, cellar::Add(a, step));
      return MakeDatum(step, context.arena());
    }
    const double a = cell.values[low].double_value(), b = cell.values[high].double_value();
    return Datum::Double(low == high ? a : a + part * (b - a));
  }
};

template <typename State>
std::unique_ptr<AggregateState> Make(std::span<const Type> types) {
  return std::make_unique<State>(types);
}

}  // namespace

void RegisterOrderedAggregates(Registry& r) {
  r.AddAggregate("mode(anyelement) anyelement", Make<ModeState>);
  r.AddAggregate("percentile_cont(float8, float8) float8", Make<PercentileState<true>>);
  r.AddAggregate("percentile_cont(float8, interval) interval", Make<PercentileState<true>>);
  r.AddAggregate("percentile_cont(float8[], float8) float8[]", Make<PercentileState<true>>);
  r.AddAggregate("percentile_cont(float8[], interval) interval[]", Make<PercentileState<true>>);
  r.AddAggregate("percentile_disc(float8, anyelement) anyelement", Make<PercentileState<false>>);
  r.AddAggregate("percentile_disc(float8[], anyelement) anyarray", Make<PercentileState<false>>);
}

}  // namespace cellar::sql
