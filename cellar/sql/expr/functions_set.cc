// generate_series, unnest and others that return sets; those of strings, JSON and the catalog stand
// beside their kind.
#include <algorithm>

#include "cellar/sql/expr/registry.h"
#include "cellar/types/array.h"
#include "cellar/types/datetime.h"
#include "cellar/types/numeric.h"

namespace cellar::sql {

SetRowsPtr MakeStoredSet(StoredSet rows) {
  return MakeRowByRow([rows = std::move(rows), next = size_t{0}](
                          EvalContext&, std::span<Datum> row) mutable -> Result<bool> {
    if (next == rows.size()) return false;
    for (size_t c = 0; c < row.size(); ++c) row[c] = rows[next][c].datum();
    ++next;
    return true;
  });
}

namespace {

// The array argument's element type; resolved calls have concrete types.
Type ElementAt(const Expr& call, size_t i) { return Plain(ElementOf(call.args[i]->type)); }

Result<SetRowsPtr> Unnest(EvalContext&, const Expr& call, Args a) {
  const ArrayView view(a[0].bytes(), ElementAt(call, 0));
  return MakeRowByRow(
      [view, next = size_t{0}](EvalContext&, std::span<Datum> row) mutable -> Result<bool> {
        if (next == view.size()) return false;
        row[0] = view.Get(next++);
        return true;
      });
}

// information_schema._pg_expandarray: each element with its number.
Result<SetRowsPtr> ExpandArray(EvalContext&, const Expr& call, Args a) {
  const ArrayView view(a[0].bytes(), ElementAt(call, 0));
  return MakeRowByRow(
      [view, next = size_t{0}](EvalContext&, std::span<Datum> row) mutable -> Result<bool> {
        if (next == view.size()) return false;
        row[0] = view.Get(next++);
        row[1] = Datum::Int(static_cast<int64_t>(next));
        return true;
      });
}

Status ZeroStep() {
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "step size cannot equal zero");
}

// From `start` by `step`, `count` of them: no addition here overflows.
class IntRows final : public SetRows {
 public:
  IntRows(int64_t start, int64_t step, uint64_t left)
      : next_(static_cast<uint64_t>(start)), step_(static_cast<uint64_t>(step)), left_(left) {}
  Result<size_t> Next(EvalContext&, size_t most, std::span<ColumnVector* const> columns) override {
    const size_t rows = static_cast<size_t>(std::min<uint64_t>(most, left_));
    ColumnVector& column = *columns[0];
    const size_t base = column.size();
    column.Resize(base + rows);
    int64_t* out = column.ints() + base;
    // Unsigned: behind the last value it may wrap.
    for (size_t i = 0; i < rows; ++i, next_ += step_) out[i] = static_cast<int64_t>(next_);
    left_ -= rows;
    return rows;
  }

 private:
  uint64_t next_, step_, left_;
};

Result<SetRowsPtr> IntSeries(EvalContext&, const Expr&, Args a) {
  const int64_t start = a[0].int_value(), stop = a[1].int_value();
  const int64_t step = a.size() == 3 ? a[2].int_value() : 1;
  if (step == 0) return ZeroStep();
  if (step > 0 ? start > stop : start < stop) return SetRowsPtr();
  // Differences of unsigned words are right where those of signed ones would overflow.
  const auto first = static_cast<uint64_t>(start), last = static_cast<uint64_t>(stop);
  const uint64_t width = step > 0 ? last - first : first - last;
  const uint64_t stride =
      step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  // All 2^64 values are one more than the count can say; nobody gets to the last of them.
  const uint64_t steps = width / stride;
  return SetRowsPtr(
      std::make_unique<IntRows>(start, step, steps == UINT64_MAX ? steps : steps + 1));
}

Result<SetRowsPtr> NumericSeries(EvalContext&, const Expr&, Args a) {
  Arena arena;
  const std::string_view step = a.size() == 3 ? a[2].bytes() : numeric::FromInt64(1, &arena);
  const std::pair<std::string_view, std::string_view> inputs[] = {
      {a[0].bytes(), "start"}, {a[1].bytes(), "stop"}, {step, "step"}};
  for (const auto& [input, name] : inputs) {
    if (numeric::IsFinite(input)) continue;
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "{} {} cannot be {}", name,
                    name == "step" ? "size" : "value", numeric::IsNaN(input) ? "NaN" : "infinity");
  }
  const int sign = numeric::SignOf(step);
  if (sign == 0) return ZeroStep();
  return MakeRowByRow([value = std::string(a[0].bytes()), stop = std::string(a[1].bytes()),
                       step = std::string(step), sign, first = true](
                          EvalContext& context, std::span<Datum> row) mutable -> Result<bool> {
    if (!first) {
      CELLAR_TRY_ASSIGN(value, numeric::Add(value, step, context.arena()));
    }
    first = false;
    const int order = numeric::Compare(value, stop);
    if (sign > 0 ? order > 0 : order < 0) return false;
    row[0] = Datum::Bytes(context.arena()->Copy(value));
    return true;
  });
}

template <TypeId id>
Result<SetRowsPtr> TimeSeries(EvalContext&, const Expr&, Args a) {
  const Interval step = IntervalOf(a[2]);
  const int sign = CompareIntervals(step, Interval());
  if (sign == 0) return ZeroStep();
  return MakeRowByRow([value = a[0].int_value(), stop = a[1].int_value(), step, sign, first = true](
                          EvalContext& context, std::span<Datum> row) mutable -> Result<bool> {
    if (!first) {
      CELLAR_TRY_ASSIGN(const int64_t next, id == TypeId::kTimestamptz
                                                ? AddIntervalTz(value, step, ZoneOf(context))
                                                : AddInterval(value, step));
      if (next == value) return false;  // an infinity
      value = next;
    }
    first = false;
    if (sign > 0 ? value > stop : value < stop) return false;
    row[0] = Datum::Int(value);
    return true;
  });
}

Result<SetRowsPtr> Subscripts(EvalContext&, const Expr& call, Args a) {
  const ArrayView view(a[0].bytes(), ElementAt(call, 0));
  const int64_t dimension = a[1].int_value();
  if (dimension < 1 || dimension > view.dimensions()) return SetRowsPtr();
  const int d = static_cast<int>(dimension - 1);
  const int64_t low = view.lower_bound(d), length = view.length(d);
  const bool reverse = a.size() == 3 && a[2].bool_value();
  return SetRowsPtr(std::make_unique<IntRows>(reverse ? low + length - 1 : low, reverse ? -1 : 1,
                                              static_cast<uint64_t>(length)));
}

}  // namespace

void RegisterSets(Registry& r) {
  r.AddSet("unnest(anyarray) setof anyelement", Unnest);
  for (const char* signature :
       {"generate_series(int4, int4) setof int4", "generate_series(int4, int4, int4) setof int4",
        "generate_series(int8, int8) setof int8", "generate_series(int8, int8, int8) setof int8"}) {
    r.AddSet(signature, IntSeries);
  }
  r.AddSet("generate_series(numeric, numeric) setof numeric", NumericSeries);
  r.AddSet("generate_series(numeric, numeric, numeric) setof numeric", NumericSeries);
  r.AddSet("generate_series(timestamp, timestamp, interval) setof timestamp",
           TimeSeries<TypeId::kTimestamp>);
  r.AddSet("generate_series(timestamptz, timestamptz, interval) setof timestamptz",
           TimeSeries<TypeId::kTimestamptz>, Volatility::kStable);
  r.AddSet("generate_subscripts(anyarray, int4) setof int4", Subscripts);
  r.AddSet("generate_subscripts(anyarray, int4, bool) setof int4", Subscripts);
  FunctionSpec& expand = r.AddSet("_pg_expandarray(anyarray) setof record", ExpandArray);
  expand.set_columns = {{"x", MakeType(TypeId::kAnyelement)}, {"n", MakeType(TypeId::kInt4)}};
}

}  // namespace cellar::sql
