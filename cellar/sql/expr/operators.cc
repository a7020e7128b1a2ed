// Arithmetic and bit operators of numbers, and concatenation.
#include <bit>
#include <cmath>
#include <limits>

#include "cellar/base/interrupt.h"
#include "cellar/sql/expr/registry.h"
#include "cellar/types/array.h"
#include "cellar/types/numeric.h"

namespace cellar::sql {
namespace {

Status OutOfRange(std::string_view what) {
  return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange, "{} out of range", what);
}
Status DivisionByZero() {
  return SqlError(Code::kInvalid, sqlstate::kDivisionByZero, "division by zero");
}
Status Overflow() {
  return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                  "value out of range: overflow");
}
Status Underflow() {
  return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                  "value out of range: underflow");
}

// ---- Integers. T is the result's width; operands of fewer bits are promoted by their storage.
// ----

template <typename T>
constexpr std::string_view NameOf() {
  return sizeof(T) == 2 ? "smallint" : sizeof(T) == 4 ? "integer" : "bigint";
}

enum class Arith : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kModulo };

// True when the result does not fit T. Never called with a zero divisor.
template <typename T, Arith op>
inline bool Compute(int64_t a, int64_t b, int64_t* out) {
  if constexpr (op == Arith::kAdd) {
    bool overflow = __builtin_add_overflow(a, b, out);
    return overflow || *out != static_cast<T>(*out);
  } else if constexpr (op == Arith::kSubtract) {
    bool overflow = __builtin_sub_overflow(a, b, out);
    return overflow || *out != static_cast<T>(*out);
  } else if constexpr (op == Arith::kMultiply) {
    bool overflow = __builtin_mul_overflow(a, b, out);
    return overflow || *out != static_cast<T>(*out);
  } else if constexpr (op == Arith::kDivide) {
    if (b == -1) {  // the one quotient that may overflow
      bool overflow = __builtin_sub_overflow(int64_t{0}, a, out);
      return overflow || *out != static_cast<T>(*out);
    }
    *out = a / b;
    return false;
  } else {
    *out = b == -1 ? 0 : a % b;
    return false;
  }
}

template <typename T, Arith op>
Result<Datum> IntScalar(EvalContext&, const Expr&, Args a) {
  const int64_t right = a[1].int_value();
  if ((op == Arith::kDivide || op == Arith::kModulo) && right == 0) return DivisionByZero();
  int64_t out;
  if (Compute<T, op>(a[0].int_value(), right, &out)) return OutOfRange(NameOf<T>());
  return Datum::Int(out);
}

template <typename F>
inline void ForEachRow(Selection rows, F&& visit) {
  const size_t count = rows.count;
  if (rows.rows == nullptr) {
    for (size_t i = 0; i < count; ++i) visit(i);
  } else {
    const uint32_t* places = rows.rows;
    for (size_t i = 0; i < count; ++i) visit(places[i]);
  }
}

template <typename T, Arith op>
Status IntVector(EvalContext&, const Expr&, std::span<const ColumnVector* const> args,
                 Selection rows, ColumnVector* result) {
  const int64_t* a = args[0]->ints();
  const int64_t* b = args[1]->ints();
  int64_t* out = result->ints();
  const uint8_t* nulls = result->nulls();
  if constexpr (op == Arith::kDivide || op == Arith::kModulo) {
    for (size_t i = 0; i < rows.count; ++i) {
      uint32_t row = rows[i];
      if (nulls[row] != 0) continue;
      if (b[row] == 0) return DivisionByZero();
      if (Compute<T, op>(a[row], b[row], &out[row])) return OutOfRange(NameOf<T>());
    }
    return Status();
  }
  bool overflow = false;
  ForEachRow(rows, [&](size_t row) {
    if (Compute<T, op>(a[row], b[row], &out[row])) [[unlikely]]
      overflow |= nulls[row] == 0;
  });
  return overflow ? OutOfRange(NameOf<T>()) : Status();
}

template <typename T>
void AddIntOperators(Registry& r, std::string_view plus, std::string_view minus,
                     std::string_view times, std::string_view divide) {
  r.Add(plus, IntScalar<T, Arith::kAdd>).vector = IntVector<T, Arith::kAdd>;
  r.Add(minus, IntScalar<T, Arith::kSubtract>).vector = IntVector<T, Arith::kSubtract>;
  r.Add(times, IntScalar<T, Arith::kMultiply>).vector = IntVector<T, Arith::kMultiply>;
  r.Add(divide, IntScalar<T, Arith::kDivide>).vector = IntVector<T, Arith::kDivide>;
}

template <typename T>
Result<Datum> NegateInt(EvalContext&, const Expr&, Args a) {
  if (a[0].int_value() == std::numeric_limits<T>::min()) return OutOfRange(NameOf<T>());
  return Datum::Int(-a[0].int_value());
}
template <typename T>
Result<Datum> AbsInt(EvalContext&, const Expr&, Args a) {
  int64_t value = a[0].int_value();
  if (value == std::numeric_limits<T>::min()) return OutOfRange(NameOf<T>());
  return Datum::Int(value < 0 ? -value : value);
}

template <typename T>
void AddBitOperators(Registry& r, std::string_view both, std::string_view either,
                     std::string_view exclusive, std::string_view invert, std::string_view left,
                     std::string_view right) {
  r.Add(
      both, CELLAR_SCALAR { return Datum::Int(a[0].int_value() & a[1].int_value()); });
  r.Add(
      either, CELLAR_SCALAR { return Datum::Int(a[0].int_value() | a[1].int_value()); });
  r.Add(
      exclusive, CELLAR_SCALAR { return Datum::Int(a[0].int_value() ^ a[1].int_value()); });
  r.Add(
      invert, CELLAR_SCALAR { return Datum::Int(~a[0].int_value()); });
  // Shift counts wrap at the width of the processor's operation: 32 bits for smallint and integer.
  r.Add(
      left, CELLAR_SCALAR {
        constexpr unsigned kMask = sizeof(T) == 8 ? 63 : 31;
        unsigned shift = static_cast<unsigned>(a[1].int_value()) & kMask;
        return Datum::Int(static_cast<T>(static_cast<uint64_t>(a[0].int_value()) << shift));
      });
  r.Add(
      right, CELLAR_SCALAR {
        constexpr unsigned kMask = sizeof(T) == 8 ? 63 : 31;
        return Datum::Int(a[0].int_value() >> (static_cast<unsigned>(a[1].int_value()) & kMask));
      });
}

// ---- Floats. `single` rounds to float4. ----

template <Arith op, bool single>
inline Status ComputeDouble(double a, double b, double* out) {
  double value;
  if constexpr (op == Arith::kAdd) value = a + b;
  if constexpr (op == Arith::kSubtract) value = a - b;
  if constexpr (op == Arith::kMultiply) value = a * b;
  if constexpr (op == Arith::kDivide) {
    if (b == 0 && !std::isnan(a)) return DivisionByZero();
    value = a / b;
  }
  if constexpr (single) value = static_cast<double>(static_cast<float>(value));
  if (std::isinf(value) && !std::isinf(a) && !std::isinf(b)) return Overflow();
  if constexpr (op == Arith::kMultiply) {
    if (value == 0 && a != 0 && b != 0) return Underflow();
  }
  if constexpr (op == Arith::kDivide) {
    if (value == 0 && a != 0 && !std::isinf(b)) return Underflow();
  }
  *out = value;
  return Status();
}

template <Arith op, bool single>
Result<Datum> DoubleScalar(EvalContext&, const Expr&, Args a) {
  double out = 0;
  CELLAR_TRY((ComputeDouble<op, single>(a[0].double_value(), a[1].double_value(), &out)));
  return Datum::Double(out);
}

template <Arith op, bool single>
Status DoubleVector(EvalContext&, const Expr&, std::span<const ColumnVector* const> args,
                    Selection rows, ColumnVector* result) {
  const double* a = args[0]->doubles();
  const double* b = args[1]->doubles();
  double* out = result->doubles();
  const uint8_t* nulls = result->nulls();
  Status status;
  const auto compute = [&](size_t row) {
    if (nulls[row] == 0 && status.ok()) {
      status = ComputeDouble<op, single>(a[row], b[row], &out[row]);
    }
  };
  if constexpr (op == Arith::kDivide || single) {
    ForEachRow(rows, compute);
  } else {
    ForEachRow(rows, [&](size_t row) {
      out[row] = op == Arith::kAdd        ? a[row] + b[row]
                 : op == Arith::kSubtract ? a[row] - b[row]
                                          : a[row] * b[row];
      // Zeros, infinities, NaN: the only results that may be errors.
      const uint64_t exponent = (std::bit_cast<uint64_t>(out[row]) >> 52) & 0x7ff;
      if (exponent - 1 >= 0x7fe) [[unlikely]]
        compute(row);
    });
  }
  return status;
}

template <bool single>
void AddDoubleOperators(Registry& r, std::string_view plus, std::string_view minus,
                        std::string_view times, std::string_view divide) {
  r.Add(plus, DoubleScalar<Arith::kAdd, single>).vector = DoubleVector<Arith::kAdd, single>;
  r.Add(minus, DoubleScalar<Arith::kSubtract, single>).vector =
      DoubleVector<Arith::kSubtract, single>;
  r.Add(times, DoubleScalar<Arith::kMultiply, single>).vector =
      DoubleVector<Arith::kMultiply, single>;
  r.Add(divide, DoubleScalar<Arith::kDivide, single>).vector = DoubleVector<Arith::kDivide, single>;
}

// ---- Numerics ----

using NumericFn = Result<std::string_view> (*)(std::string_view, std::string_view, Arena*);

template <NumericFn F>
Result<Datum> NumericScalar(EvalContext& context, const Expr&, Args a) {
  CELLAR_TRY_ASSIGN(std::string_view out, F(a[0].bytes(), a[1].bytes(), context.arena()));
  return Datum::Bytes(out);
}

template <NumericFn F>
Status NumericVector(EvalContext& context, const Expr&, std::span<const ColumnVector* const> args,
                     Selection rows, ColumnVector* result) {
  const std::string_view* a = args[0]->bytes();
  const std::string_view* b = args[1]->bytes();
  std::string_view* out = result->bytes();
  Arena* arena = context.arena();
  for (size_t i = 0; i < rows.count; ++i) {
    uint32_t row = rows[i];
    if (result->nulls()[row] != 0) continue;
    CELLAR_TRY_ASSIGN(out[row], F(a[row], b[row], arena));
  }
  return Status();
}

// ---- Concatenation ----

Result<Datum> Join(EvalContext& context, std::string_view a, std::string_view b) {
  CELLAR_TRY(CheckValueSize(a.size() + b.size()));
  char* out = context.arena()->Allocate(a.size() + b.size());
  constexpr size_t kLongBytes = 1 << 20;
  if (a.size() + b.size() > kLongBytes) {
    char* end = out;
    for (const std::string_view part : {a, b}) {
      InPieces(part, [&end](std::string_view piece) {
        std::memcpy(end, piece.data(), piece.size());
        end += piece.size();
      });
    }
    return Datum::Bytes({out, a.size() + b.size()});
  }
  if (!a.empty()) std::memcpy(out, a.data(), a.size());
  if (!b.empty()) std::memcpy(out + a.size(), b.data(), b.size());
  return Datum::Bytes({out, a.size() + b.size()});
}

Result<Datum> ConcatBytes(EvalContext& context, const Expr&, Args a) {
  return Join(context, a[0].bytes(), a[1].bytes());
}
Result<Datum> ConcatTextAny(EvalContext& context, const Expr& call, Args a) {
  return Join(context, a[0].bytes(), CastText(a[1], call.args[1]->type, context));
}
Result<Datum> ConcatAnyText(EvalContext& context, const Expr& call, Args a) {
  return Join(context, CastText(a[0], call.args[0]->type, context), a[1].bytes());
}

void AddIntegers(Registry& r) {
  AddIntOperators<int16_t>(r, "+(int2, int2) int2", "-(int2, int2) int2", "*(int2, int2) int2",
                           "/(int2, int2) int2");
  AddIntOperators<int32_t>(r, "+(int4, int4) int4", "-(int4, int4) int4", "*(int4, int4) int4",
                           "/(int4, int4) int4");
  AddIntOperators<int64_t>(r, "+(int8, int8) int8", "-(int8, int8) int8", "*(int8, int8) int8",
                           "/(int8, int8) int8");
  AddIntOperators<int32_t>(r, "+(int2, int4) int4", "-(int2, int4) int4", "*(int2, int4) int4",
                           "/(int2, int4) int4");
  AddIntOperators<int32_t>(r, "+(int4, int2) int4", "-(int4, int2) int4", "*(int4, int2) int4",
                           "/(int4, int2) int4");
  AddIntOperators<int64_t>(r, "+(int4, int8) int8", "-(int4, int8) int8", "*(int4, int8) int8",
                           "/(int4, int8) int8");
  AddIntOperators<int64_t>(r, "+(int8, int4) int8", "-(int8, int4) int8", "*(int8, int4) int8",
                           "/(int8, int4) int8");
  AddIntOperators<int64_t>(r, "+(int2, int8) int8", "-(int2, int8) int8", "*(int2, int8) int8",
                           "/(int2, int8) int8");
  AddIntOperators<int64_t>(r, "+(int8, int2) int8", "-(int8, int2) int8", "*(int8, int2) int8",
                           "/(int8, int2) int8");
  r.Add("%(int2, int2) int2", IntScalar<int16_t, Arith::kModulo>).vector =
      IntVector<int16_t, Arith::kModulo>;
  r.Add("%(int4, int4) int4", IntScalar<int32_t, Arith::kModulo>).vector =
      IntVector<int32_t, Arith::kModulo>;
  r.Add("%(int8, int8) int8", IntScalar<int64_t, Arith::kModulo>).vector =
      IntVector<int64_t, Arith::kModulo>;
  r.Add("mod(int2, int2) int2", IntScalar<int16_t, Arith::kModulo>);
  r.Add("mod(int4, int4) int4", IntScalar<int32_t, Arith::kModulo>);
  r.Add("mod(int8, int8) int8", IntScalar<int64_t, Arith::kModulo>);

  r.Add("-(int2) int2", NegateInt<int16_t>);
  r.Add("-(int4) int4", NegateInt<int32_t>);
  r.Add("-(int8) int8", NegateInt<int64_t>);
  r.Add("@(int2) int2", AbsInt<int16_t>);
  r.Add("@(int4) int4", AbsInt<int32_t>);
  r.Add("@(int8) int8", AbsInt<int64_t>);
  r.Add("abs(int2) int2", AbsInt<int16_t>);
  r.Add("abs(int4) int4", AbsInt<int32_t>);
  r.Add("abs(int8) int8", AbsInt<int64_t>);
  AddBitOperators<int16_t>(r, "&(int2, int2) int2", "|(int2, int2) int2", "#(int2, int2) int2",
                           "~(int2) int2", "<<(int2, int4) int2", ">>(int2, int4) int2");
  AddBitOperators<int32_t>(r, "&(int4, int4) int4", "|(int4, int4) int4", "#(int4, int4) int4",
                           "~(int4) int4", "<<(int4, int4) int4", ">>(int4, int4) int4");
  AddBitOperators<int64_t>(r, "&(int8, int8) int8", "|(int8, int8) int8", "#(int8, int8) int8",
                           "~(int8) int8", "<<(int8, int4) int8", ">>(int8, int4) int8");
}

void AddFloats(Registry& r) {
  AddDoubleOperators<true>(r, "+(float4, float4) float4", "-(float4, float4) float4",
                           "*(float4, float4) float4", "/(float4, float4) float4");
  AddDoubleOperators<false>(r, "+(float8, float8) float8", "-(float8, float8) float8",
                            "*(float8, float8) float8", "/(float8, float8) float8");
  AddDoubleOperators<false>(r, "+(float4, float8) float8", "-(float4, float8) float8",
                            "*(float4, float8) float8", "/(float4, float8) float8");
  AddDoubleOperators<false>(r, "+(float8, float4) float8", "-(float8, float4) float8",
                            "*(float8, float4) float8", "/(float8, float4) float8");
  auto negate = CELLAR_SCALAR { return Datum::Double(-a[0].double_value()); };
  auto abs = CELLAR_SCALAR { return Datum::Double(std::fabs(a[0].double_value())); };
  r.Add("-(float4) float4", negate);
  r.Add("-(float8) float8", negate);
  r.Add("@(float4) float4", abs);
  r.Add("@(float8) float8", abs);
  r.Add("abs(float4) float4", abs);
  r.Add("abs(float8) float8", abs);
}

void AddNumerics(Registry& r) {
  r.Add("+(numeric, numeric) numeric", NumericScalar<numeric::Add>).vector =
      NumericVector<numeric::Add>;
  r.Add("-(numeric, numeric) numeric", NumericScalar<numeric::Subtract>).vector =
      NumericVector<numeric::Subtract>;
  r.Add("*(numeric, numeric) numeric", NumericScalar<numeric::Multiply>).vector =
      NumericVector<numeric::Multiply>;
  r.Add("/(numeric, numeric) numeric", NumericScalar<numeric::Divide>).vector =
      NumericVector<numeric::Divide>;
  r.Add("%(numeric, numeric) numeric", NumericScalar<numeric::Modulo>);
  r.Add("mod(numeric, numeric) numeric", NumericScalar<numeric::Modulo>);
  r.Add("^(numeric, numeric) numeric", NumericScalar<numeric::Power>);
  auto negate = CELLAR_SCALAR {
    return Datum::Bytes(numeric::Negate(a[0].bytes(), context.arena()));
  };
  auto abs = CELLAR_SCALAR { return Datum::Bytes(numeric::Abs(a[0].bytes(), context.arena())); };
  r.Add("-(numeric) numeric", negate);
  r.Add("@(numeric) numeric", abs);
  r.Add("abs(numeric) numeric", abs);
}

}  // namespace

void RegisterOperators(Registry& r) {
  AddIntegers(r);
  AddFloats(r);
  AddNumerics(r);
  auto same = CELLAR_SCALAR { return a[0]; };
  for (std::string_view plus : {"+(int2) int2", "+(int4) int4", "+(int8) int8", "+(float4) float4",
                                "+(float8) float8", "+(numeric) numeric"}) {
    r.Add(plus, same);
  }
  r.Add("||(text, text) text", ConcatBytes);
  r.Add("||(bytea, bytea) bytea", ConcatBytes);
  r.Add("||(text, anynonarray) text", ConcatTextAny, Volatility::kStable);
  r.Add("||(anynonarray, text) text", ConcatAnyText, Volatility::kStable);
}

}  // namespace cellar::sql
