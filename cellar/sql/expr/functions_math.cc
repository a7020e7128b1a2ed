// Functions of numbers.
#include <cmath>
#include <limits>

#include "cellar/sql/expr/registry.h"
#include "cellar/types/array.h"
#include "cellar/types/numeric.h"
#include "cellar/types/record.h"

namespace cellar::sql {
namespace {

constexpr double kPi = 3.14159265358979323846;

Status InputOutOfRange() {
  return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange, "input is out of range");
}
Status Overflow() {
  return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                  "value out of range: overflow");
}
Status Underflow() {
  return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                  "value out of range: underflow");
}
Status OutOfRange(std::string_view what) {
  return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange, "{} out of range", what);
}
Status LogError(bool zero) {
  return SqlError(Code::kInvalid, "2201E", "cannot take logarithm of {}",
                  zero ? "zero" : "a negative number");
}
Status PowerError(std::string_view why) { return SqlError(Code::kInvalid, "2201F", "{}", why); }
Status WidthBucketError(std::string_view why) {
  return SqlError(Code::kInvalid, "2201G", "{}", why);
}

Result<Datum> Bytes(Result<std::string_view> value) {
  if (!value.ok()) return std::move(value).status();
  return Datum::Bytes(*value);
}

template <double (*F)(double)>
Result<Datum> Plain(EvalContext&, const Expr&, Args a) {
  return Datum::Double(F(a[0].double_value()));
}

// For functions without a value at infinity.
template <double (*F)(double)>
Result<Datum> Trigonometric(EvalContext&, const Expr&, Args a) {
  double x = a[0].double_value();
  if (std::isinf(x)) return InputOutOfRange();
  return Datum::Double(F(x));
}

template <double (*F)(double)>
Result<Datum> InUnitRange(EvalContext&, const Expr&, Args a) {
  double x = a[0].double_value();
  if (x < -1 || x > 1) return InputOutOfRange();
  return Datum::Double(F(x));
}

template <double (*F)(double)>
Result<Datum> MayOverflow(EvalContext&, const Expr&, Args a) {
  double x = a[0].double_value(), out = F(x);
  if (std::isinf(out) && !std::isinf(x)) return Overflow();
  return Datum::Double(out);
}

// A product or quotient of x that is not 0.
template <double (*F)(double)>
Result<Datum> MayUnderflow(EvalContext& context, const Expr& call, Args a) {
  CELLAR_TRY_ASSIGN(const Datum out, MayOverflow<F>(context, call, a));
  if (out.double_value() == 0 && a[0].double_value() != 0) {
    return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                    "value out of range: underflow");
  }
  return out;
}

// Degrees: exact at the usual angles, because each formula is scaled by its value at one of them.
constexpr double kRadian = kPi / 180.0;

double Degrees(double radians) { return radians / kRadian; }
double SinTo30(double x) { return std::sin(x * kRadian) / std::sin(30 * kRadian) / 2.0; }
double CosTo60(double x) {
  return 1.0 - (1.0 - std::cos(x * kRadian)) / (1.0 - std::cos(60 * kRadian)) / 2.0;
}
double SinQuadrant(double x) { return x <= 30 ? SinTo30(x) : CosTo60(90 - x); }
double CosQuadrant(double x) { return x <= 60 ? CosTo60(x) : SinTo30(90 - x); }

// Brings an angle into 0..90; the signs are those of its sine and cosine.
double Fold(double x, int* sin_sign, int* cos_sign) {
  *sin_sign = *cos_sign = 1;
  x = std::fmod(x, 360.0);
  if (x < 0) x = -x, *sin_sign = -1;
  if (x > 180) x = 360 - x, *sin_sign = -*sin_sign;
  if (x > 90) x = 180 - x, *cos_sign = -1;
  return x;
}
double SinDegrees(double x) {
  int sin_sign, cos_sign;
  x = Fold(x, &sin_sign, &cos_sign);
  return sin_sign * SinQuadrant(x);
}
double CosDegrees(double x) {
  int sin_sign, cos_sign;
  x = Fold(x, &sin_sign, &cos_sign);
  return cos_sign * CosQuadrant(x);
}
double TanDegrees(double x) {
  int sin_sign, cos_sign;
  x = Fold(x, &sin_sign, &cos_sign);
  const double unit = SinQuadrant(45) / CosQuadrant(45);
  double out = sin_sign * cos_sign * (SinQuadrant(x) / CosQuadrant(x) / unit);
  return out == 0 ? 0 : out;  // no negative zero
}
double CotDegrees(double x) {
  int sin_sign, cos_sign;
  x = Fold(x, &sin_sign, &cos_sign);
  const double unit = CosQuadrant(45) / SinQuadrant(45);
  double out = sin_sign * cos_sign * (CosQuadrant(x) / SinQuadrant(x) / unit);
  return out == 0 ? 0 : out;
}
double Cot(double x) { return 1.0 / std::tan(x); }
double AsinQuadrant(double x) {
  if (x <= 0.5) return std::asin(x) / std::asin(0.5) * 30.0;
  return 90.0 - std::acos(x) / std::acos(0.5) * 60.0;
}
double AcosQuadrant(double x) {
  if (x <= 0.5) return 90.0 - std::asin(x) / std::asin(0.5) * 30.0;
  return std::acos(x) / std::acos(0.5) * 60.0;
}
double AsinDegrees(double x) { return x >= 0 ? AsinQuadrant(x) : -AsinQuadrant(-x); }
double AcosDegrees(double x) { return x >= 0 ? AcosQuadrant(x) : 90.0 + AsinQuadrant(-x); }
double AtanDegrees(double x) { return std::atan(x) / std::atan(1.0) * 45.0; }
double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
double Radians(double x) { return x * (kPi / 180.0); }

Result<Datum> SqrtDouble(EvalContext&, const Expr&, Args a) {
  if (a[0].double_value() < 0) return PowerError("cannot take square root of a negative number");
  return Datum::Double(std::sqrt(a[0].double_value()));
}
Result<Datum> ExpDouble(EvalContext&, const Expr&, Args a) {
  double x = a[0].double_value(), out = std::exp(x);
  if (std::isinf(out) && !std::isinf(x)) return Overflow();
  if (out == 0 && !std::isinf(x)) return Underflow();
  return Datum::Double(out);
}
template <double (*F)(double)>
Result<Datum> Logarithm(EvalContext&, const Expr&, Args a) {
  double x = a[0].double_value();
  if (x == 0) return LogError(true);
  if (x < 0) return LogError(false);
  return Datum::Double(F(x));
}

Result<Datum> PowerDouble(EvalContext&, const Expr&, Args a) {
  double x = a[0].double_value(), y = a[1].double_value();
  if (x == 0 && y < 0) return PowerError("zero raised to a negative power is undefined");
  if (x < 0 && std::isfinite(y) && std::floor(y) != y) {
    return PowerError("a negative number raised to a non-integer power yields a complex result");
  }
  double out = std::pow(x, y);
  if (std::isfinite(x) && std::isfinite(y)) {
    if (std::isinf(out)) return Overflow();
    if (out == 0 && x != 0) return Underflow();
  }
  return Datum::Double(out);
}

Result<Datum> AtanTwo(EvalContext&, const Expr&, Args a) {
  return Datum::Double(std::atan2(a[0].double_value(), a[1].double_value()));
}
Result<Datum> AtanTwoDegrees(EvalContext&, const Expr&, Args a) {
  double angle = std::atan2(a[0].double_value(), a[1].double_value());
  return Datum::Double(angle / std::atan(1.0) * 45.0);
}

template <typename T>
Result<Datum> GcdInt(EvalContext&, const Expr&, Args a) {
  using U = uint64_t;
  U x = a[0].int_value() < 0 ? U{0} - static_cast<U>(a[0].int_value())
                             : static_cast<U>(a[0].int_value());
  U y = a[1].int_value() < 0 ? U{0} - static_cast<U>(a[1].int_value())
                             : static_cast<U>(a[1].int_value());
  while (y != 0) {
    U rest = x % y;
    x = y;
    y = rest;
  }
  if (x > static_cast<U>(std::numeric_limits<T>::max())) {
    return OutOfRange(sizeof(T) == 4 ? "integer" : "bigint");
  }
  return Datum::Int(static_cast<int64_t>(x));
}
template <typename T>
Result<Datum> LcmInt(EvalContext& context, const Expr& call, Args a) {
  int64_t x = a[0].int_value(), y = a[1].int_value();
  if (x == 0 || y == 0) return Datum::Int(0);
  CELLAR_TRY_ASSIGN(Datum gcd, GcdInt<T>(context, call, a));
  int64_t out;
  if (__builtin_mul_overflow(x / gcd.int_value(), y, &out) || out != static_cast<T>(out) ||
      out == std::numeric_limits<T>::min()) {
    return OutOfRange(sizeof(T) == 4 ? "integer" : "bigint");
  }
  return Datum::Int(out < 0 ? -out : out);
}

Result<Datum> WidthBucketDouble(EvalContext&, const Expr&, Args a) {
  double x = a[0].double_value(), low = a[1].double_value(), high = a[2].double_value();
  int64_t count = a[3].int_value();
  if (count <= 0) return WidthBucketError("count must be greater than zero");
  if (std::isnan(x) || std::isnan(low) || std::isnan(high)) {
    return WidthBucketError("operand, lower bound, and upper bound cannot be NaN");
  }
  if (std::isinf(low) || std::isinf(high)) {
    return WidthBucketError("lower and upper bounds must be finite");
  }
  if (low == high) return WidthBucketError("lower bound cannot equal upper bound");
  double n = static_cast<double>(count);
  int64_t bucket;
  if (low < high) {
    bucket = x < low     ? 0
             : x >= high ? count + 1
                         : std::min<int64_t>(
                               count, static_cast<int64_t>(n * ((x - low) / (high - low))) + 1);
  } else {
    bucket = x > low     ? 0
             : x <= high ? count + 1
                         : std::min<int64_t>(
                               count, static_cast<int64_t>(n * ((low - x) / (low - high))) + 1);
  }
  if (bucket > INT32_MAX) return OutOfRange("integer");
  return Datum::Int(bucket);
}

Result<Datum> WidthBucketNumeric(EvalContext& context, const Expr&, Args a) {
  Arena* arena = context.arena();
  std::string_view x = a[0].bytes(), low = a[1].bytes(), high = a[2].bytes();
  const int64_t count = a[3].int_value();
  if (count <= 0) return WidthBucketError("count must be greater than zero");
  if (numeric::IsNaN(x) || numeric::IsNaN(low) || numeric::IsNaN(high)) {
    return WidthBucketError("operand, lower bound, and upper bound cannot be NaN");
  }
  if (!numeric::IsFinite(low) || !numeric::IsFinite(high)) {
    return WidthBucketError("lower and upper bounds must be finite");
  }
  const int order = numeric::Compare(low, high);
  if (order == 0) return WidthBucketError("lower bound cannot equal upper bound");
  const int at_low = numeric::Compare(x, low), at_high = numeric::Compare(x, high);
  if (order < 0 ? at_low < 0 : at_low > 0) return Datum::Int(0);
  if (order < 0 ? at_high >= 0 : at_high <= 0) {
    if (count == INT32_MAX) return OutOfRange("integer");
    return Datum::Int(count + 1);
  }
  CELLAR_TRY_ASSIGN(std::string_view from, numeric::Subtract(x, low, arena));
  CELLAR_TRY_ASSIGN(std::string_view width, numeric::Subtract(high, low, arena));
  CELLAR_TRY_ASSIGN(std::string_view product,
                    numeric::Multiply(from, numeric::FromInt64(count, arena), arena));
  CELLAR_TRY_ASSIGN(std::string_view quotient, numeric::DivideTruncated(product, width, arena));
  CELLAR_TRY_ASSIGN(int64_t bucket, numeric::ToInt64(quotient));
  return Datum::Int(bucket + 1);
}

// width_bucket(x, thresholds): how many thresholds are at most x.
Result<Datum> WidthBucketArray(EvalContext&, const Expr& call, Args a) {
  const Type element = MakeType(ElementOf(call.args[1]->type).id);
  ArrayView view(a[1].bytes(), element);
  if (view.dimensions() > 1) {
    return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                    "thresholds must be one-dimensional array");
  }
  if (view.has_nulls()) {
    return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed,
                    "thresholds array must not contain NULLs");
  }
  size_t low = 0, high = view.size();
  while (low < high) {
    size_t middle = (low + high) / 2;
    CELLAR_TRY_ASSIGN(const int order, CompareWithRecords(a[0], view.Get(middle), element));
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return Datum::Int(static_cast<int64_t>(low));
}

void AddDoubles(Registry& r) {
  r.Add("width_bucket(anycompatible, anycompatiblearray) int4", WidthBucketArray);
  auto ceil = Plain<std::ceil>;
  r.Add("ceil(float8) float8", ceil);
  r.Add("ceiling(float8) float8", ceil);
  r.Add("floor(float8) float8", Plain<std::floor>);
  r.Add("round(float8) float8", Plain<std::rint>);
  r.Add("trunc(float8) float8", Plain<std::trunc>);
  r.Add("sign(float8) float8", Plain<Sign>);
  r.Add("sqrt(float8) float8", SqrtDouble);
  r.Add("|/(float8) float8", SqrtDouble);
  r.Add("cbrt(float8) float8", Plain<std::cbrt>);
  r.Add("||/(float8) float8", Plain<std::cbrt>);
  r.Add("exp(float8) float8", ExpDouble);
  r.Add("ln(float8) float8", Logarithm<std::log>);
  r.Add("log(float8) float8", Logarithm<std::log10>);
  r.Add("log10(float8) float8", Logarithm<std::log10>);
  r.Add("^(float8, float8) float8", PowerDouble);
  r.Add("power(float8, float8) float8", PowerDouble);
  r.Add("pow(float8, float8) float8", PowerDouble);
  r.Add(
      "pi() float8", CELLAR_SCALAR { return Datum::Double(kPi); });
  r.Add("degrees(float8) float8", MayUnderflow<Degrees>);
  r.Add("radians(float8) float8", MayUnderflow<Radians>);
  r.Add("sin(float8) float8", Trigonometric<std::sin>);
  r.Add("cos(float8) float8", Trigonometric<std::cos>);
  r.Add("tan(float8) float8", Trigonometric<std::tan>);
  r.Add("cot(float8) float8", Trigonometric<Cot>);
  r.Add("sind(float8) float8", Trigonometric<SinDegrees>);
  r.Add("cosd(float8) float8", Trigonometric<CosDegrees>);
  r.Add("tand(float8) float8", Trigonometric<TanDegrees>);
  r.Add("cotd(float8) float8", Trigonometric<CotDegrees>);
  r.Add("asin(float8) float8", InUnitRange<std::asin>);
  r.Add("acos(float8) float8", InUnitRange<std::acos>);
  r.Add("asind(float8) float8", InUnitRange<AsinDegrees>);
  r.Add("acosd(float8) float8", InUnitRange<AcosDegrees>);
  r.Add("atan(float8) float8", Plain<std::atan>);
  r.Add("atand(float8) float8", Plain<AtanDegrees>);
  r.Add("atan2(float8, float8) float8", AtanTwo);
  r.Add("atan2d(float8, float8) float8", AtanTwoDegrees);
  r.Add("sinh(float8) float8", Plain<std::sinh>);
  r.Add("cosh(float8) float8", Plain<std::cosh>);
  r.Add("tanh(float8) float8", Plain<std::tanh>);
  r.Add("asinh(float8) float8", Plain<std::asinh>);
  r.Add(
      "acosh(float8) float8", CELLAR_SCALAR {
        if (a[0].double_value() < 1) return InputOutOfRange();
        return Datum::Double(std::acosh(a[0].double_value()));
      });
  r.Add("atanh(float8) float8", InUnitRange<std::atanh>);
  r.Add("width_bucket(float8, float8, float8, int4) int4", WidthBucketDouble);
  r.Add(
      "random() float8",
      CELLAR_SCALAR {
        return Datum::Double(static_cast<double>(context.NextRandom() >> 11) * 0x1.0p-53);
      },
      Volatility::kVolatile);
  r.Add(
      "setseed(float8) void",
      CELLAR_SCALAR {
        double seed = a[0].double_value();
        if (!(seed >= -1 && seed <= 1)) {
          return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                          "setseed parameter {} is out of allowed range [-1,1]", seed);
        }
        uint64_t bits;
        std::memcpy(&bits, &seed, 8);
        context.SeedRandom(bits);
        return Datum::Bytes("");
      },
      Volatility::kVolatile);
}

void AddNumerics(Registry& r) {
  auto ceil = CELLAR_SCALAR { return Bytes(numeric::Ceil(a[0].bytes(), context.arena())); };
  r.Add("ceil(numeric) numeric", ceil);
  r.Add("ceiling(numeric) numeric", ceil);
  r.Add(
      "floor(numeric) numeric",
      CELLAR_SCALAR { return Bytes(numeric::Floor(a[0].bytes(), context.arena())); });
  r.Add(
      "round(numeric) numeric",
      CELLAR_SCALAR { return Bytes(numeric::Round(a[0].bytes(), 0, context.arena())); });
  r.Add(
      "round(numeric, int4) numeric", CELLAR_SCALAR {
        return Bytes(
            numeric::Round(a[0].bytes(), static_cast<int>(a[1].int_value()), context.arena()));
      });
  r.Add(
      "trunc(numeric) numeric",
      CELLAR_SCALAR { return Bytes(numeric::Truncate(a[0].bytes(), 0, context.arena())); });
  r.Add(
      "trunc(numeric, int4) numeric", CELLAR_SCALAR {
        return Bytes(
            numeric::Truncate(a[0].bytes(), static_cast<int>(a[1].int_value()), context.arena()));
      });
  r.Add(
      "sign(numeric) numeric",
      CELLAR_SCALAR { return Datum::Bytes(numeric::Sign(a[0].bytes(), context.arena())); });
  r.Add(
      "sqrt(numeric) numeric",
      CELLAR_SCALAR { return Bytes(numeric::Sqrt(a[0].bytes(), context.arena())); });
  r.Add(
      "exp(numeric) numeric",
      CELLAR_SCALAR { return Bytes(numeric::Exp(a[0].bytes(), context.arena())); });
  r.Add(
      "ln(numeric) numeric",
      CELLAR_SCALAR { return Bytes(numeric::Ln(a[0].bytes(), context.arena())); });
  auto log10 = CELLAR_SCALAR { return Bytes(numeric::Log10(a[0].bytes(), context.arena())); };
  r.Add("log(numeric) numeric", log10);
  r.Add("log10(numeric) numeric", log10);
  r.Add(
      "log(numeric, numeric) numeric",
      CELLAR_SCALAR { return Bytes(numeric::Log(a[0].bytes(), a[1].bytes(), context.arena())); });
  auto power = CELLAR_SCALAR {
    return Bytes(numeric::Power(a[0].bytes(), a[1].bytes(), context.arena()));
  };
  r.Add("power(numeric, numeric) numeric", power);
  r.Add("pow(numeric, numeric) numeric", power);
  r.Add(
      "div(numeric, numeric) numeric", CELLAR_SCALAR {
        return Bytes(numeric::DivideTruncated(a[0].bytes(), a[1].bytes(), context.arena()));
      });
  r.Add(
      "gcd(numeric, numeric) numeric",
      CELLAR_SCALAR { return Bytes(numeric::Gcd(a[0].bytes(), a[1].bytes(), context.arena())); });
  r.Add(
      "lcm(numeric, numeric) numeric",
      CELLAR_SCALAR { return Bytes(numeric::Lcm(a[0].bytes(), a[1].bytes(), context.arena())); });
  auto factorial = CELLAR_SCALAR {
    return Bytes(numeric::Factorial(a[0].int_value(), context.arena()));
  };
  r.Add("factorial(int8) numeric", factorial);
  r.Add("width_bucket(numeric, numeric, numeric, int4) int4", WidthBucketNumeric);
  r.Add(
      "scale(numeric) int4", CELLAR_SCALAR {
        if (!numeric::IsFinite(a[0].bytes())) return Datum();
        return Datum::Int(numeric::DisplayScale(a[0].bytes()));
      });
  r.Add(
      "min_scale(numeric) int4", CELLAR_SCALAR {
        std::optional<int> scale = numeric::MinScale(a[0].bytes());
        return scale.has_value() ? Datum::Int(*scale) : Datum();
      });
  r.Add(
      "trim_scale(numeric) numeric",
      CELLAR_SCALAR { return Datum::Bytes(numeric::TrimScale(a[0].bytes(), context.arena())); });
}

}  // namespace

void RegisterMath(Registry& r) {
  AddDoubles(r);
  AddNumerics(r);
  r.Add("gcd(int4, int4) int4", GcdInt<int32_t>);
  r.Add("gcd(int8, int8) int8", GcdInt<int64_t>);
  r.Add("lcm(int4, int4) int4", LcmInt<int32_t>);
  r.Add("lcm(int8, int8) int8", LcmInt<int64_t>);
}

}  // namespace cellar::sql
