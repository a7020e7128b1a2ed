// Aggregates: states in arrays indexed by group.
#include <algorithm>
#include <cmath>

#include "cellar/sql/expr/json_value.h"
#include "cellar/sql/expr/registry.h"
#include "cellar/types/array.h"
#include "cellar/types/datetime.h"
#include "cellar/types/json.h"
#include "cellar/types/numeric.h"

namespace cellar::sql {
namespace {

using Vectors = std::span<const ColumnVector* const>;

// Reserves the next `count` rows of a result and gives the first one's position.
size_t Extend(ColumnVector* result, size_t count) {
  const size_t at = result->size();
  result->Resize(at + count);
  return at;
}

// ---- sums ----

template <bool average>
class NumericSumState : public AggregateState {
 public:
  void Resize(size_t groups) override { cells_.resize(groups); }
  Status Add(EvalContext&, Vectors args, Selection rows, const uint32_t* groups) override {
    const std::string_view* values = args[0]->bytes();
    for (size_t i = 0; i < rows.count; ++i) cells_[groups[i]].Add(values[rows[i]]);
    return Status();
  }
  Status Finish(EvalContext& context, size_t start, size_t end, ColumnVector* result) override {
    const size_t at = Extend(result, end - start);
    for (size_t g = start; g < end; ++g) {
      if (cells_[g].count() == 0) {
        result->SetNull(at + g - start);
        continue;
      }
      CELLAR_TRY_ASSIGN(result->bytes()[at + g - start], average
                                                             ? cells_[g].Average(context.arena())
                                                             : cells_[g].Sum(context.arena()));
    }
    return Status();
  }
  size_t footprint_bytes() const override {
    return cells_.capacity() * sizeof(numeric::Accumulator);
  }

 private:
  std::vector<numeric::Accumulator> cells_;
};

template <bool average>
class IntervalSumState : public AggregateState {
 public:
  void Resize(size_t groups) override { cells_.resize(groups); }
  Status Add(EvalContext&, Vectors args, Selection rows, const uint32_t* groups) override {
    const std::string_view* values = args[0]->bytes();
    for (size_t i = 0; i < rows.count; ++i) {
      Cell& cell = cells_[groups[i]];
      CELLAR_TRY_ASSIGN(cell.sum, cellar::Add(cell.sum, IntervalOf(values[rows[i]])));
      ++cell.count;
    }
    return Status();
  }
  Status Finish(EvalContext& context, size_t start, size_t end, ColumnVector* result) override {
    const size_t at = Extend(result, end - start);
    for (size_t g = start; g < end; ++g) {
      const Cell& cell = cells_[g];
      if (cell.count == 0) {
        result->SetNull(at + g - start);
        continue;
      }
      Interval out = cell.sum;
      if (average) {
        CELLAR_TRY_ASSIGN(out, Divide(out, static_cast<double>(cell.count)));
      }
      result->Set(at + g - start, MakeDatum(out, context.arena()));
    }
    return Status();
  }
  size_t footprint_bytes() const override { return cells_.capacity() * sizeof(Cell); }

 private:
  struct Cell {
    Interval sum;
    int64_t count = 0;
  };
  std::vector<Cell> cells_;
};

// ---- min and max ----

// Values that are bytes: one owned value a group.
template <bool greatest>
class ExtremeState : public AggregateState {
 public:
  explicit ExtremeState(Type type) : type_(type) {}
  void Resize(size_t groups) override { cells_.resize(groups); }
  Status Add(EvalContext&, Vectors args, Selection rows, const uint32_t* groups) override {
    for (size_t i = 0; i < rows.count; ++i) {
      Cell& cell = cells_[groups[i]];
      const std::string_view value = args[0]->bytes()[rows[i]];
      if (cell.any) {
        int order = CompareDatums(Datum::Bytes(value), Datum::Bytes(cell.owned), type_);
        // Of equal values (1.0 and 1.00) the last one stays, as in PostgreSQL.
        if (greatest ? order < 0 : order > 0) continue;
      }
      cell.any = true;
      const size_t before = cell.owned.capacity();
      cell.owned.assign(value);
      owned_bytes_ += cell.owned.capacity() - before;
    }
    return Status();
  }
  Status Finish(EvalContext& context, size_t start, size_t end, ColumnVector* result) override {
    const size_t at = Extend(result, end - start);
    for (size_t g = start; g < end; ++g) {
      const Cell& cell = cells_[g];
      if (!cell.any)
        result->SetNull(at + g - start);
      else
        result->Set(at + g - start, Datum::Bytes(context.arena()->Copy(cell.owned)));
    }
    return Status();
  }
  size_t footprint_bytes() const override {
    return cells_.capacity() * sizeof(Cell) + owned_bytes_;
  }

 private:
  struct Cell {
    bool any = false;
    std::string owned;
  };

  Type type_;
  size_t owned_bytes_ = 0;
  std::vector<Cell> cells_;
};

template <bool greatest>
std::unique_ptr<AggregateState> MakeExtreme(std::span<const Type> types) {
  const Physical physical = PhysicalOf(types[0]);
  if (physical != Physical::kBytes) return MakePlainExtreme(physical, greatest);
  return std::make_unique<ExtremeState<greatest>>(types[0]);
}

// ---- bool_and, bool_or, bit_and, bit_or, bit_xor ----

enum class BitOp : uint8_t { kAnd, kOr, kXor };

template <BitOp op>
class BitState : public AggregateState {
 public:
  void Resize(size_t groups) override { cells_.resize(groups); }
  Status Add(EvalContext&, Vectors args, Selection rows, const uint32_t* groups) override {
    const int64_t* values = args[0]->ints();
    for (size_t i = 0; i < rows.count; ++i) {
      Cell& cell = cells_[groups[i]];
      const int64_t value = values[rows[i]];
      if (!cell.any)
        cell.value = value;
      else if (op == BitOp::kAnd)
        cell.value &= value;
      else if (op == BitOp::kOr)
        cell.value |= value;
      else
        cell.value ^= value;
      cell.any = true;
    }
    return Status();
  }
  Status Finish(EvalContext&, size_t start, size_t end, ColumnVector* result) override {
    const size_t at = Extend(result, end - start);
    for (size_t g = start; g < end; ++g) {
      if (cells_[g].any)
        result->ints()[at + g - start] = cells_[g].value;
      else
        result->SetNull(at + g - start);
    }
    return Status();
  }
  size_t footprint_bytes() const override { return cells_.capacity() * sizeof(Cell); }

 private:
  struct Cell {
    int64_t value = 0;
    bool any = false;
  };
  std::vector<Cell> cells_;
};

// ---- string_agg ----

class StringState : public AggregateState {
 public:
  void Resize(size_t groups) override { cells_.resize(groups); }
  Status Add(EvalContext& context, Vectors args, Selection rows, const uint32_t* groups) override {
    for (size_t i = 0; i < rows.count; ++i) {
      const Datum value = args[0]->Get(rows[i]);
      if (value.is_null()) continue;
      Cell& cell = cells_[groups[i]];
      const size_t separator = args[1]->IsNull(rows[i]) ? 0 : args[1]->bytes()[rows[i]].size();
      CELLAR_TRY(MayGrow(context, cell.text, separator + value.bytes().size()));
      if (cell.any && !args[1]->IsNull(rows[i])) cell.text += args[1]->bytes()[rows[i]];
      cell.any = true;
      cell.text += value.bytes();
    }
    return Status();
  }
  Status Finish(EvalContext& context, size_t start, size_t end, ColumnVector* result) override {
    const size_t at = Extend(result, end - start);
    for (size_t g = start; g < end; ++g) {
      if (cells_[g].any)
        result->Set(at + g - start, Datum::Bytes(context.arena()->Copy(cells_[g].text)));
      else
        result->SetNull(at + g - start);
    }
    return Status();
  }
  size_t footprint_bytes() const override {
    size_t out = cells_.capacity() * sizeof(Cell);
    for (const Cell& cell : cells_) out += cell.text.capacity();
    return out;
  }

 private:
  struct Cell {
    bool any = false;
    std::string text;
  };
  std::vector<Cell> cells_;
};

// ---- array_agg ----

class ArrayState : public AggregateState {
 public:
  explicit ArrayState(Type type) : type_(type) {}
  void Resize(size_t groups) override { cells_.resize(groups); }
  Status Add(EvalContext& context, Vectors args, Selection rows, const uint32_t* groups) override {
    for (size_t i = 0; i < rows.count; ++i) {
      Cell& cell = cells_[groups[i]];
      const Datum value = args[0]->Get(rows[i]);
      const size_t bytes = sizeof(Datum) + value.bytes().size();
      CELLAR_TRY(CheckValueSize(cell.bytes + bytes));
      CELLAR_TRY(context.StepOver(bytes));
      cell.bytes += bytes;
      cell.values.push_back(CopyDatum(value, type_, &arena_));
    }
    return Status();
  }
  Status Finish(EvalContext& context, size_t start, size_t end, ColumnVector* result) override {
    const size_t at = Extend(result, end - start);
    for (size_t g = start; g < end; ++g) {
      if (cells_[g].values.empty()) {
        result->SetNull(at + g - start);
        continue;
      }
      CELLAR_TRY_ASSIGN(std::string_view out,
                        AccumulateArray(cells_[g].values, type_, context.arena()));
      result->bytes()[at + g - start] = out;
    }
    return Status();
  }
  size_t footprint_bytes() const override {
    size_t out = cells_.capacity() * sizeof(Cell) + arena_.footprint_bytes();
    for (const Cell& cell : cells_) out += cell.values.capacity() * sizeof(Datum);
    return out;
  }

 private:
  struct Cell {
    std::vector<Datum> values;
    size_t bytes = 0;
  };

  Type type_;
  std::vector<Cell> cells_;
  Arena arena_;
};

// ---- JSON ----

template <bool object, bool binary>
class JsonState : public AggregateState {
 public:
  explicit JsonState(std::span<const Type> types) : types_(types.begin(), types.end()) {}
  void Resize(size_t groups) override { cells_.resize(groups); }
  Status Add(EvalContext& context, Vectors args, Selection rows, const uint32_t* groups) override {
    for (size_t i = 0; i < rows.count; ++i) {
      std::string& cell = cells_[groups[i]];
      if (cell.empty()) {
        cell = object ? "{ " : "[";
      } else {
        cell += ", ";
        const bool structured = IsArrayLike(types_[0]) || types_[0].id == TypeId::kRecord;
        if (!object && structured && !args[0]->IsNull(rows[i])) cell += "\n ";
      }
      if (object) {
        const Datum key = args[0]->Get(rows[i]);
        if (key.is_null()) {
          return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                          "field name must not be null");
        }
        CELLAR_TRY(AppendJsonKey(key, types_[0], context, &cell));
        cell += " : ";
        CELLAR_TRY(AppendJson(args[1]->Get(rows[i]), types_[1], context, &cell));
      } else {
        CELLAR_TRY(AppendJson(args[0]->Get(rows[i]), types_[0], context, &cell));
      }
    }
    return Status();
  }
  Status Finish(EvalContext& context, size_t start, size_t end, ColumnVector* result) override {
    const size_t at = Extend(result, end - start);
    for (size_t g = start; g < end; ++g) {
      if (cells_[g].empty()) {
        result->SetNull(at + g - start);
        continue;
      }
      std::string text = cells_[g] + (object ? " }" : "]");
      if (binary) {
        CELLAR_TRY_ASSIGN(result->bytes()[at + g - start], ParseJsonb(text, context.arena()));
      } else {
        result->Set(at + g - start, Datum::Bytes(context.arena()->Copy(text)));
      }
    }
    return Status();
  }
  size_t footprint_bytes() const override {
    size_t out = cells_.capacity() * sizeof(std::string);
    for (const std::string& cell : cells_) out += cell.capacity();
    return out;
  }

 private:
  std::vector<Type> types_;
  std::vector<std::string> cells_;
};

// ---- Variance ----

enum class Spread : uint8_t { kVarSample, kVarPopulation, kDevSample, kDevPopulation };
constexpr bool IsSample(Spread s) { return s == Spread::kVarSample || s == Spread::kDevSample; }
constexpr bool IsDeviation(Spread s) {
  return s == Spread::kDevSample || s == Spread::kDevPopulation;
}

// Of integers and numerics: exact.
template <Spread spread, bool ints>
class NumericSpreadState : public AggregateState {
 public:
  void Resize(size_t groups) override { cells_.resize(groups); }
  Status Add(EvalContext&, Vectors args, Selection rows, const uint32_t* groups) override {
    for (size_t i = 0; i < rows.count; ++i) {
      std::string_view value;
      if (ints) {
        scratch_.Reset();
        value = numeric::FromInt64(args[0]->ints()[rows[i]], &scratch_);
      } else {
        value = args[0]->bytes()[rows[i]];
      }
      CELLAR_TRY(cells_[groups[i]].Add(value));
    }
    return Status();
  }
  Status Finish(EvalContext& context, size_t start, size_t end, ColumnVector* result) override {
    const size_t at = Extend(result, end - start);
    for (size_t g = start; g < end; ++g) {
      if (cells_[g].count() < (IsSample(spread) ? 2 : 1)) {
        result->SetNull(at + g - start);
        continue;
      }
      CELLAR_TRY_ASSIGN(result->bytes()[at + g - start],
                        IsDeviation(spread)
                            ? cells_[g].StandardDeviation(IsSample(spread), context.arena())
                            : cells_[g].Variance(IsSample(spread), context.arena()));
    }
    return Status();
  }
  size_t footprint_bytes() const override {
    return cells_.capacity() * sizeof(numeric::VarianceAccumulator);
  }

 private:
  std::vector<numeric::VarianceAccumulator> cells_;
  Arena scratch_;
};

// Of floats, by Youngs and Cramer's recurrence over sums.
template <Spread spread>
class DoubleSpreadState : public AggregateState {
 public:
  void Resize(size_t groups) override { cells_.resize(groups); }
  Status Add(EvalContext&, Vectors args, Selection rows, const uint32_t* groups) override {
    const double* values = args[0]->doubles();
    for (size_t i = 0; i < rows.count; ++i) {
      Cell& cell = cells_[groups[i]];
      const double x = values[rows[i]];
      cell.n += 1;
      cell.sum += x;
      if (cell.n > 1) {
        const double t = x * cell.n - cell.sum;
        cell.squares += t * t / (cell.n * (cell.n - 1));
        if (std::isinf(cell.sum) || std::isinf(cell.squares)) {
          if (!std::isinf(x) && !cell.infinite) {
            return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                            "value out of range: overflow");
          }
          cell.squares = std::nan("");
        }
      }
      if (!std::isfinite(x)) {
        cell.infinite = true;
        cell.squares = std::nan("");
      }
    }
    return Status();
  }
  Status Finish(EvalContext&, size_t start, size_t end, ColumnVector* result) override {
    const size_t at = Extend(result, end - start);
    for (size_t g = start; g < end; ++g) {
      const Cell& cell = cells_[g];
      if (cell.n < (IsSample(spread) ? 2 : 1)) {
        result->SetNull(at + g - start);
        continue;
      }
      double out = cell.squares / (IsSample(spread) ? cell.n - 1 : cell.n);
      result->doubles()[at + g - start] = IsDeviation(spread) ? std::sqrt(out) : out;
    }
    return Status();
  }
  size_t footprint_bytes() const override { return cells_.capacity() * sizeof(Cell); }

 private:
  struct Cell {
    double n = 0, sum = 0, squares = 0;
    bool infinite = false;
  };
  std::vector<Cell> cells_;
};

// ---- Regression: corr, covar_*, regr_* ----

enum class Regression : uint8_t {
  kCorr,
  kCovarSample,
  kCovarPopulation,
  kCount,
  kAvgX,
  kAvgY,
  kSxx,
  kSyy,
  kSxy,
  kSlope,
  kIntercept,
  kR2
};

template <Regression kind>
class RegressionState : public AggregateState {
 public:
  void Resize(size_t groups) override { cells_.resize(groups); }
  Status Add(EvalContext&, Vectors args, Selection rows, const uint32_t* groups) override {
    for (size_t i = 0; i < rows.count; ++i) {
      Cell& c = cells_[groups[i]];
      const double y = args[0]->doubles()[rows[i]], x = args[1]->doubles()[rows[i]];
      const Cell before = c;
      c.n += 1;
      if (kind == Regression::kCount) continue;
      c.sx += x;
      c.sy += y;
      if (c.n > 1) {
        const double tx = x * c.n - c.sx, ty = y * c.n - c.sy, scale = 1 / (c.n * (c.n - 1));
        c.sxx += tx * tx * scale;
        c.syy += ty * ty * scale;
        c.sxy += tx * ty * scale;
        CELLAR_TRY(CheckOverflow(before, x, y, &c));
        continue;
      }
      if (!std::isfinite(x)) c.sxx = c.sxy = std::nan("");
      if (!std::isfinite(y)) c.syy = c.sxy = std::nan("");
    }
    return Status();
  }
  Status Finish(EvalContext&, size_t start, size_t end, ColumnVector* result) override {
    const size_t at = Extend(result, end - start);
    for (size_t g = start; g < end; ++g) {
      if (kind == Regression::kCount) {
        result->ints()[at + g - start] = static_cast<int64_t>(cells_[g].n);
        continue;
      }
      std::optional<double> out = ResultOf(cells_[g]);
      if (out.has_value())
        result->doubles()[at + g - start] = *out;
      else
        result->SetNull(at + g - start);
    }
    return Status();
  }
  size_t footprint_bytes() const override { return cells_.capacity() * sizeof(Cell); }

 private:
  struct Cell {
    double n = 0, sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
  };
  // Infinite sums of finite inputs are an error; infinite inputs make sums of products NaN.
  static Status CheckOverflow(const Cell& before, double x, double y, Cell* c) {
    const bool finite_x = !std::isinf(before.sx) && !std::isinf(x);
    const bool finite_y = !std::isinf(before.sy) && !std::isinf(y);
    if (((std::isinf(c->sx) || std::isinf(c->sxx)) && finite_x) ||
        ((std::isinf(c->sy) || std::isinf(c->syy)) && finite_y) ||
        (std::isinf(c->sxy) && finite_x && finite_y)) {
      return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                      "value out of range: overflow");
    }
    for (double* sum : {&c->sxx, &c->syy, &c->sxy}) {
      if (std::isinf(*sum)) *sum = std::nan("");
    }
    return Status();
  }
  static std::optional<double> ResultOf(const Cell& c) {
    if (c.n < 1) return std::nullopt;
    switch (kind) {
      case Regression::kCorr:
        if (c.sxx == 0 || c.syy == 0) return std::nullopt;
        return c.sxy / std::sqrt(c.sxx * c.syy);
      case Regression::kCovarSample:
        if (c.n < 2) return std::nullopt;
        return c.sxy / (c.n - 1);
      case Regression::kCovarPopulation: return c.sxy / c.n;
      case Regression::kAvgX: return c.sx / c.n;
      case Regression::kAvgY: return c.sy / c.n;
      case Regression::kSxx: return c.sxx;
      case Regression::kSyy: return c.syy;
      case Regression::kSxy: return c.sxy;
      case Regression::kSlope:
        if (c.sxx == 0) return std::nullopt;
        return c.sxy / c.sxx;
      case Regression::kIntercept:
        if (c.sxx == 0) return std::nullopt;
        return (c.sy - c.sx * c.sxy / c.sxx) / c.n;
      case Regression::kR2:
        if (c.sxx == 0) return std::nullopt;
        if (c.syy == 0) return 1.0;
        return c.sxy * c.sxy / (c.sxx * c.syy);
      case Regression::kCount: break;
    }
    return std::nullopt;
  }
  std::vector<Cell> cells_;
};

template <typename State>
std::unique_ptr<AggregateState> Make(std::span<const Type>) {
  return std::make_unique<State>();
}
template <typename State>
std::unique_ptr<AggregateState> MakeTyped(std::span<const Type> types) {
  return std::make_unique<State>(types);
}

template <Spread spread>
void AddSpread(Registry& r, const char* int2, const char* int4, const char* int8,
               const char* numeric, const char* float4, const char* float8) {
  for (const char* s : {int2, int4, int8}) {
    r.AddAggregate(s, Make<NumericSpreadState<spread, true>>);
  }
  r.AddAggregate(numeric, Make<NumericSpreadState<spread, false>>);
  for (const char* s : {float4, float8}) r.AddAggregate(s, Make<DoubleSpreadState<spread>>);
}

#define CELLAR_ADD_SPREAD(spread, name)                                                     \
  AddSpread<spread>(r, name "(int2) numeric", name "(int4) numeric", name "(int8) numeric", \
                    name "(numeric) numeric", name "(float4) float8", name "(float8) float8")

void AddSums(Registry& r) {
  r.AddAggregate("sum(numeric) numeric", Make<NumericSumState<false>>);
  r.AddAggregate("sum(interval) interval", Make<IntervalSumState<false>>);
  r.AddAggregate("avg(numeric) numeric", Make<NumericSumState<true>>);
  r.AddAggregate("avg(interval) interval", Make<IntervalSumState<true>>);
}

void AddExtremes(Registry& r) {
  for (const char* s :
       {"min(int2) int2", "min(int4) int4", "min(int8) int8", "min(oid) oid", "min(float4) float4",
        "min(float8) float8", "min(numeric) numeric", "min(date) date", "min(time) time",
        "min(timetz) timetz", "min(timestamp) timestamp", "min(timestamptz) timestamptz",
        "min(interval) interval", "min(text) text", "min(bpchar) bpchar", "min(anyarray) anyarray",
        "min(anyenum) anyenum"}) {
    r.AddAggregate(s, MakeExtreme<false>);
  }
  for (const char* s :
       {"max(int2) int2", "max(int4) int4", "max(int8) int8", "max(oid) oid", "max(float4) float4",
        "max(float8) float8", "max(numeric) numeric", "max(date) date", "max(time) time",
        "max(timetz) timetz", "max(timestamp) timestamp", "max(timestamptz) timestamptz",
        "max(interval) interval", "max(text) text", "max(bpchar) bpchar", "max(anyarray) anyarray",
        "max(anyenum) anyenum"}) {
    r.AddAggregate(s, MakeExtreme<true>);
  }
}

void AddBits(Registry& r) {
  r.AddAggregate("bool_and(bool) bool", Make<BitState<BitOp::kAnd>>);
  r.AddAggregate("every(bool) bool", Make<BitState<BitOp::kAnd>>);
  r.AddAggregate("bool_or(bool) bool", Make<BitState<BitOp::kOr>>);
  for (const char* s : {"bit_and(int2) int2", "bit_and(int4) int4", "bit_and(int8) int8"}) {
    r.AddAggregate(s, Make<BitState<BitOp::kAnd>>);
  }
  for (const char* s : {"bit_or(int2) int2", "bit_or(int4) int4", "bit_or(int8) int8"}) {
    r.AddAggregate(s, Make<BitState<BitOp::kOr>>);
  }
  for (const char* s : {"bit_xor(int2) int2", "bit_xor(int4) int4", "bit_xor(int8) int8"}) {
    r.AddAggregate(s, Make<BitState<BitOp::kXor>>);
  }
}

void AddRegressions(Registry& r) {
  r.AddAggregate("corr(float8, float8) float8", Make<RegressionState<Regression::kCorr>>);
  r.AddAggregate("covar_samp(float8, float8) float8",
                 Make<RegressionState<Regression::kCovarSample>>);
  r.AddAggregate("covar_pop(float8, float8) float8",
                 Make<RegressionState<Regression::kCovarPopulation>>);
  r.AddAggregate("regr_count(float8, float8) int8", Make<RegressionState<Regression::kCount>>);
  r.AddAggregate("regr_avgx(float8, float8) float8", Make<RegressionState<Regression::kAvgX>>);
  r.AddAggregate("regr_avgy(float8, float8) float8", Make<RegressionState<Regression::kAvgY>>);
  r.AddAggregate("regr_sxx(float8, float8) float8", Make<RegressionState<Regression::kSxx>>);
  r.AddAggregate("regr_syy(float8, float8) float8", Make<RegressionState<Regression::kSyy>>);
  r.AddAggregate("regr_sxy(float8, float8) float8", Make<RegressionState<Regression::kSxy>>);
  r.AddAggregate("regr_slope(float8, float8) float8", Make<RegressionState<Regression::kSlope>>);
  r.AddAggregate("regr_intercept(float8, float8) float8",
                 Make<RegressionState<Regression::kIntercept>>);
  r.AddAggregate("regr_r2(float8, float8) float8", Make<RegressionState<Regression::kR2>>);
}

}  // namespace

void RegisterAggregates(Registry& r) {
  AddSums(r);
  AddExtremes(r);
  AddBits(r);
  r.AddAggregate("string_agg(text, text) text", Make<StringState>, false);
  r.AddAggregate("string_agg(bytea, bytea) bytea", Make<StringState>, false);
  for (const char* s : {"array_agg(anynonarray) anyarray", "array_agg(anyarray) anyarray"}) {
    r.AddAggregate(
        s,
        [](std::span<const Type> types) -> std::unique_ptr<AggregateState> {
          return std::make_unique<ArrayState>(types[0]);
        },
        false);
  }
  r.AddAggregate("json_agg(anyelement) json", MakeTyped<JsonState<false, false>>, false);
  r.AddAggregate("jsonb_agg(anyelement) jsonb", MakeTyped<JsonState<false, true>>, false);
  r.AddAggregate("json_object_agg(any, any) json", MakeTyped<JsonState<true, false>>, false);
  r.AddAggregate("jsonb_object_agg(any, any) jsonb", MakeTyped<JsonState<true, true>>, false);
  CELLAR_ADD_SPREAD(Spread::kVarSample, "variance");
  CELLAR_ADD_SPREAD(Spread::kVarSample, "var_samp");
  CELLAR_ADD_SPREAD(Spread::kVarPopulation, "var_pop");
  CELLAR_ADD_SPREAD(Spread::kDevSample, "stddev");
  CELLAR_ADD_SPREAD(Spread::kDevSample, "stddev_samp");
  CELLAR_ADD_SPREAD(Spread::kDevPopulation, "stddev_pop");
  AddRegressions(r);
}

#undef CELLAR_ADD_SPREAD

}  // namespace cellar::sql
