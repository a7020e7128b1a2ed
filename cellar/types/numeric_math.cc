// NUMERIC's arithmetic: the four operations on int128 with arbitrary precision behind, roots,
// logarithms and powers. Result scales follow PostgreSQL's rules, so that digits agree.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cellar/base/interrupt.h"
#include "cellar/base/sqlstate.h"
#include "cellar/types/numeric.h"
#include "cellar/types/numeric_internal.h"

namespace cellar::numeric {

using internal::Big;
using internal::BigFrom;
using internal::BigInt;
using internal::BigPow10;
using internal::CountDigits;
using internal::Encode;
using internal::EncodeRounded;
using internal::kMaxPow10;
using internal::kPow10;
using internal::Leading;
using internal::LeadingOf;
using internal::Magnitude;
using internal::Pow10;
using internal::ScaleUp;
using internal::ToBig;
using internal::ToSmall;

namespace {

constexpr std::string_view kInvalidPower = "2201F";
constexpr std::string_view kInvalidLogarithm = "2201E";
// Limits of PostgreSQL's numeric.c.
constexpr int kMinSignificantDigits = 16;
constexpr int kMaxResultScale = 2000;
constexpr int kMaxDivisionScale = 1000;

Status DivisionByZero() {
  return SqlError(Code::kInvalid, sqlstate::kDivisionByZero, "division by zero");
}

int ResultScale(int weight, int scale_a, int scale_b = 0) {
  int scale = std::max({kMinSignificantDigits - weight, scale_a, scale_b, 0});
  return std::min(scale, kMaxDivisionScale);
}

// a + sign * b of which one at least is not finite.
std::string_view AddSpecial(std::string_view a, std::string_view b, bool subtract) {
  if (IsNaN(a) || IsNaN(b)) return MakeNaN();
  Kind b_kind = KindOf(b);
  if (subtract && b_kind != Kind::kFinite) {
    b_kind = b_kind == Kind::kInfinity ? Kind::kNegativeInfinity : Kind::kInfinity;
  }
  if (IsFinite(a)) return MakeInfinity(b_kind == Kind::kNegativeInfinity);
  if (b_kind != Kind::kFinite && b_kind != KindOf(a)) return MakeNaN();
  return a;
}

Result<std::string_view> AddOrSubtract(std::string_view a, std::string_view b, bool subtract,
                                       Arena* arena) {
  int128_t x, y;
  int x_scale, y_scale;
  if (ToSmall(a, &x, &x_scale) && ToSmall(b, &y, &y_scale)) {
    const int scale = std::max(x_scale, y_scale);
    int128_t left, right, result;
    if (ScaleUp(x, scale - x_scale, &left) && ScaleUp(y, scale - y_scale, &right)) {
      const bool overflow = subtract ? __builtin_sub_overflow(left, right, &result)
                                     : __builtin_add_overflow(left, right, &result);
      if (!overflow) return Make(result, scale, arena);
    }
  }
  if (!IsFinite(a) || !IsFinite(b)) return AddSpecial(a, b, subtract);
  Big left = ToBig(a), right = ToBig(b);
  const int scale = std::max(left.scale, right.scale);
  if (left.scale < scale) left.unscaled *= BigPow10(scale - left.scale);
  if (right.scale < scale) right.unscaled *= BigPow10(scale - right.scale);
  return Encode(
      subtract ? BigInt(left.unscaled - right.unscaled) : BigInt(left.unscaled + right.unscaled),
      scale, arena);
}

// Infinite by finite or by infinite.
Result<std::string_view> DivideSpecial(std::string_view a, std::string_view b, Arena* arena) {
  if (IsNaN(a) || IsNaN(b)) return MakeNaN();
  if (IsFinite(a)) return FromInt64(0, arena);
  if (!IsFinite(b)) return MakeNaN();
  const int sign = SignOf(b);
  if (sign == 0) return DivisionByZero();
  return MakeInfinity((sign < 0) != (SignOf(a) < 0));
}

bool IsIntegral(std::string_view n) { return IsFinite(n) && *MinScale(n) == 0; }

// ---- Fixed point with binary fractions: value = mantissa / 2^bits ----

BigInt ToFixed(const BigInt& unscaled, int scale, unsigned bits) {
  return (unscaled << bits) / BigPow10(scale);
}

BigInt FromFixed(const BigInt& fixed, unsigned bits, int scale) {
  BigInt scaled = fixed * BigPow10(scale);
  BigInt half = BigInt(1) << (bits - 1);
  if (scaled < 0) return -BigInt((-scaled + half) >> bits);
  return (scaled + half) >> bits;
}

// Before a product of two numbers of so many bits.
void PollProduct(unsigned bits) {
  const size_t limbs = bits / 64 + 1;
  PollSteps(std::min<size_t>(limbs * limbs / 16 + 1, 10'000));
}

unsigned BitsFor(int digits) { return static_cast<unsigned>(digits * 3.3219281 + 32); }

// e^x for x >= 0; the result has `bits` binary fractions, of which the last few are noise.
BigInt ExpFixed(const BigInt& x, unsigned bits) {
  // e^x = (e^(x / 2^k))^(2^k) with x / 2^k below 2^-8; each squaring doubles the relative error.
  const unsigned top = x == 0 ? 0 : static_cast<unsigned>(boost::multiprecision::msb(x)) + 1;
  const unsigned halvings = top + 8 > bits ? top + 8 - bits : 0;
  const unsigned extra = 2 * halvings + 16;
  const unsigned wide = bits + extra;
  BigInt reduced = (x << extra) >> halvings;
  BigInt sum = BigInt(1) << wide;
  BigInt term = sum;
  for (unsigned i = 1; term != 0; ++i) {
    PollProduct(wide);
    term = ((term * reduced) >> wide) / i;
    sum += term;
  }
  for (unsigned i = 0; i < halvings; ++i) {
    PollProduct(wide);
    sum = (sum * sum) >> wide;
  }
  return sum >> extra;
}

// 2 atanh(numerator / denominator) with `bits` fractions; |numerator / denominator| < 1/2.
BigInt TwiceAtanh(const BigInt& numerator, const BigInt& denominator, unsigned bits) {
  BigInt z = (numerator << bits) / denominator;
  BigInt square = (z * z) >> bits;
  BigInt power = z, sum = z;
  for (unsigned i = 3; power != 0; i += 2) {
    PollProduct(bits);
    // A negative number shifts towards minus infinity and would never become 0.
    power = power < 0 ? -BigInt((-power * square) >> bits) : BigInt((power * square) >> bits);
    sum += power / i;
  }
  return sum * 2;
}

// ln x for x > 0, both with `bits` fractions; exact to about 2^(8 - bits).
BigInt LnFixed(const BigInt& x, unsigned bits) {
  const unsigned wide = bits + 32;
  BigInt value = x << 32;
  // x = m 2^e with m in [3/4, 3/2).
  int exponent = static_cast<int>(boost::multiprecision::msb(value)) - static_cast<int>(wide);
  if (exponent > 0)
    value >>= static_cast<unsigned>(exponent);
  else
    value <<= static_cast<unsigned>(-exponent);
  const BigInt one = BigInt(1) << wide;
  if (value * 2 >= one * 3) {
    value >>= 1;
    ++exponent;
  }
  BigInt sum = TwiceAtanh(value - one, value + one, wide);
  if (exponent != 0) {
    // ln 2 = 18 atanh(1/26) - 2 atanh(1/4801) + 8 atanh(1/8749).
    BigInt ln2 =
        TwiceAtanh(1, 26, wide) * 9 - TwiceAtanh(1, 4801, wide) + TwiceAtanh(1, 8749, wide) * 4;
    sum += ln2 * exponent;
  }
  return sum < 0 ? -BigInt(-sum >> 32) : BigInt(sum >> 32);
}

// ln of a positive decimal with `bits` fractions.
BigInt LnOf(const BigInt& unscaled, int scale, unsigned bits) {
  // Shifts by a power of two would lose digits of a tiny value: widen by its leading zeros.
  const int leading_zeros = std::max(0, scale - CountDigits(unscaled));
  const unsigned wide = bits + BitsFor(leading_zeros);
  BigInt out = LnFixed(ToFixed(unscaled, scale, wide), wide);
  const unsigned drop = wide - bits;
  return out < 0 ? -BigInt(-out >> drop) : BigInt(out >> drop);
}

double ApproximateDouble(const Big& value) {
  if (value.unscaled == 0) return 0;
  const BigInt magnitude = abs(value.unscaled);
  const int digits = CountDigits(magnitude);
  const int drop = std::max(0, digits - 17);
  const auto top = static_cast<double>(static_cast<uint64_t>(magnitude / BigPow10(drop)));
  const double out = top * std::pow(10.0, drop - value.scale);
  return value.unscaled < 0 ? -out : out;
}

// PostgreSQL's estimate of the decimal weight of ln(value), value > 0.
int EstimateLnWeight(const Big& value) {
  const BigInt ten_scale = BigPow10(value.scale + 1);
  const BigInt ten_value =
      value.unscaled * 100;  // value * 10^(scale + 2), against 90 and 110 percent
  if (ten_value >= ten_scale * 9 && ten_value <= ten_scale * 11) {
    const BigInt difference = value.unscaled - BigPow10(value.scale);
    if (difference == 0) return 0;
    const Leading x = LeadingOf(difference, value.scale);
    return x.weight * 4 + static_cast<int>(std::log10(x.first));
  }
  const Leading x = LeadingOf(value.unscaled, value.scale);
  int digits = x.first;
  int weight = x.weight * 4;
  if (x.more) {
    digits = digits * 10000 + x.second;
    weight -= 4;
  }
  const double ln = std::log(static_cast<double>(digits)) + weight * 2.302585092994046;
  return static_cast<int>(std::log10(std::fabs(ln)));
}

Result<std::string_view> ExpAt(const Big& arg, int scale, Arena* arena) {
  const double approximate = ApproximateDouble(arg);
  if (approximate >= kMaxResultScale * 3) return internal::OverflowError();
  if (approximate <= -kMaxResultScale * 3) return Encode(BigInt(0), scale, arena);
  const int weight = static_cast<int>(std::fabs(approximate) * 0.434294481903252) + 1;
  // Negative arguments are inverted, which needs the digits twice.
  const unsigned bits = BitsFor(scale + 2 * weight + 10);
  BigInt value = ExpFixed(ToFixed(abs(arg.unscaled), arg.scale, bits), bits);
  if (arg.unscaled < 0) value = (BigInt(1) << (2 * bits)) / value;
  return Encode(FromFixed(value, bits, scale), scale, arena);
}

// base^exponent for an exponent that fits an int: PostgreSQL's power_var_int.
Result<std::string_view> PowerInt(const Big& base, int exponent, Arena* arena) {
  double weight = 0;  // of the result, approximately
  if (base.unscaled != 0) {
    const BigInt magnitude = abs(base.unscaled);
    const int digits = CountDigits(magnitude);
    const int drop = std::max(0, digits - 17);
    const auto top = static_cast<double>(static_cast<uint64_t>(magnitude / BigPow10(drop)));
    weight = exponent * (std::log10(top) + drop - base.scale);
  }
  if (weight > kMaxIntegerDigits) return internal::OverflowError();
  const int scale = std::min(std::max(kMinSignificantDigits, base.scale), kMaxDivisionScale);
  if (weight + 1 < -scale) return Encode(BigInt(0), scale, arena);
  switch (exponent) {
    case 0: return Encode(BigPow10(scale), scale, arena);
    case 1: return EncodeRounded(base.unscaled, base.scale, scale, arena);
    case 2: return EncodeRounded(base.unscaled * base.unscaled, 2 * base.scale, scale, arena);
    default: break;
  }
  if (base.unscaled == 0) {
    if (exponent < 0) return DivisionByZero();
    return Encode(BigInt(0), scale, arena);
  }
  // Square and multiply on decimals of which only as many digits are kept as the result shows.
  const unsigned magnitude =
      exponent < 0 ? 0u - static_cast<unsigned>(exponent) : static_cast<unsigned>(exponent);
  const int keep = std::max(1 + scale + static_cast<int>(weight), 1) + 12 +
                   static_cast<int>(std::log10(magnitude)) * 2;
  Big square = base;
  int64_t square_scale = base.scale;
  BigInt result = 1;
  int64_t result_scale = 0;
  auto trim = [keep](BigInt* value, int64_t* value_scale) {
    const int drop = CountDigits(abs(*value)) - keep;
    if (drop <= keep / 8 + 4) return;
    *value = internal::DivideHalfAway(*value, BigPow10(drop));
    *value_scale -= drop;
  };
  for (unsigned rest = magnitude; rest != 0; rest >>= 1) {
    PollProduct(static_cast<unsigned>(keep) * 4);
    if (rest & 1) {
      result *= square.unscaled;
      result_scale += square_scale;
      trim(&result, &result_scale);
    }
    if (rest > 1) {
      square.unscaled *= square.unscaled;
      square_scale *= 2;
      trim(&square.unscaled, &square_scale);
    }
  }
  if (exponent < 0) {
    // 1 / (result / 10^result_scale), at `scale` digits.
    const int64_t shift = scale + result_scale;
    if (shift < 0) return Encode(BigInt(0), scale, arena);
    return Encode(internal::DivideHalfAway(BigPow10(static_cast<int>(shift)), result), scale,
                  arena);
  }
  if (result_scale < 0) {
    result *= BigPow10(static_cast<int>(-result_scale));
    result_scale = 0;
  }
  return EncodeRounded(result, static_cast<int>(result_scale), scale, arena);
}

Result<std::string_view> PowerSpecial(std::string_view base, std::string_view exponent,
                                      Arena* arena) {
  const std::string_view one = FromInt64(1, arena);
  // POSIX: NaN ^ 0 and 1 ^ NaN are 1.
  if (IsNaN(base)) return IsFinite(exponent) && SignOf(exponent) == 0 ? one : MakeNaN();
  const bool base_is_one = IsFinite(base) && Compare(base, one) == 0;
  if (IsNaN(exponent)) return base_is_one ? one : MakeNaN();
  const int base_sign = SignOf(base), exponent_sign = SignOf(exponent);
  if (base_sign == 0 && exponent_sign < 0) {
    return SqlError(Code::kInvalid, kInvalidPower, "zero raised to a negative power is undefined");
  }
  if (base_sign < 0 && IsFinite(exponent) && !IsIntegral(exponent)) {
    return SqlError(Code::kInvalid, kInvalidPower,
                    "a negative number raised to a non-integer power yields a complex result");
  }
  if (base_is_one || exponent_sign == 0) return one;
  if (base_sign == 0) return FromInt64(0, arena);
  if (!IsFinite(exponent)) {
    bool greater = true;
    if (IsFinite(base)) {
      if (Compare(base, FromInt64(-1, arena)) == 0) return one;
      greater = Compare(Abs(base, arena), one) > 0;
    }
    if (greater == (exponent_sign > 0)) return MakeInfinity(false);
    return FromInt64(0, arena);
  }
  if (exponent_sign < 0) return FromInt64(0, arena);
  if (base_sign > 0) return MakeInfinity(false);
  Big value = ToBig(exponent);
  BigInt whole = value.unscaled / BigPow10(value.scale);
  return MakeInfinity((abs(whole) & 1) == 1);
}

}  // namespace

namespace internal {

BigInt SqrtRounded(const BigInt& unscaled, int scale, int result_scale) {
  // One more digit than asked; the cut root decides the rounding, as no root ends in exactly half.
  const int shift = 2 * (result_scale + 1) - scale;
  BigInt radicand =
      shift >= 0 ? BigInt(unscaled * BigPow10(shift)) : BigInt(unscaled / BigPow10(-shift));
  return DivideHalfAway(sqrt(radicand), 10);
}

}  // namespace internal

Result<std::string_view> Add(std::string_view a, std::string_view b, Arena* arena) {
  if (a[0] == 1 && b[0] == 1 && a[1] == b[1]) {
    int64_t x, y, sum;
    std::memcpy(&x, a.data() + 2, 8);
    std::memcpy(&y, b.data() + 2, 8);
    if (!__builtin_add_overflow(x, y, &sum)) return Make(sum, static_cast<uint8_t>(a[1]), arena);
  }
  return AddOrSubtract(a, b, false, arena);
}

Result<std::string_view> Subtract(std::string_view a, std::string_view b, Arena* arena) {
  return AddOrSubtract(a, b, true, arena);
}

Result<std::string_view> Multiply(std::string_view a, std::string_view b, Arena* arena) {
  int128_t x, y, product;
  int x_scale, y_scale;
  if (ToSmall(a, &x, &x_scale) && ToSmall(b, &y, &y_scale) && x_scale + y_scale <= 255 &&
      !__builtin_mul_overflow(x, y, &product)) {
    return Make(product, x_scale + y_scale, arena);
  }
  if (!IsFinite(a) || !IsFinite(b)) {
    const int sign = SignOf(a) * SignOf(b);
    if (IsNaN(a) || IsNaN(b) || sign == 0) return MakeNaN();
    return MakeInfinity(sign < 0);
  }
  Big left = ToBig(a), right = ToBig(b);
  const int scale = left.scale + right.scale;
  return EncodeRounded(left.unscaled * right.unscaled, scale, std::min(scale, kMaxDisplayScale),
                       arena);
}

Result<std::string_view> Divide(std::string_view a, std::string_view b, Arena* arena) {
  if (!IsFinite(a) || !IsFinite(b)) return DivideSpecial(a, b, arena);
  if (SignOf(b) == 0) return DivisionByZero();
  const int a_scale = DisplayScale(a), b_scale = DisplayScale(b);
  const int scale = internal::DivisionScale(LeadingOf(a), a_scale, LeadingOf(b), b_scale);
  // a / b x 10^scale = unscaled a x 10^shift / unscaled b; shift >= b_scale >= 0.
  const int shift = scale - a_scale + b_scale;
  int128_t x, y, numerator;
  int ignored;
  if (scale <= 255 && ToSmall(a, &x, &ignored) && ToSmall(b, &y, &ignored) &&
      ScaleUp(x, shift, &numerator)) {
    int128_t quotient = numerator / y;
    const uint128_t remainder = Magnitude(numerator % y);
    if (remainder >= Magnitude(y) - remainder) quotient += (numerator < 0) != (y < 0) ? -1 : 1;
    return Make(quotient, scale, arena);
  }
  Big left = ToBig(a), right = ToBig(b);
  return Encode(internal::DivideHalfAway(left.unscaled * BigPow10(shift), right.unscaled), scale,
                arena);
}

Result<std::string_view> DivideTruncated(std::string_view a, std::string_view b, Arena* arena) {
  if (!IsFinite(a) || !IsFinite(b)) return DivideSpecial(a, b, arena);
  if (SignOf(b) == 0) return DivisionByZero();
  Big left = ToBig(a), right = ToBig(b);
  const int scale = std::max(left.scale, right.scale);
  left.unscaled *= BigPow10(scale - left.scale);
  right.unscaled *= BigPow10(scale - right.scale);
  return Encode(left.unscaled / right.unscaled, 0, arena);
}

Result<std::string_view> Modulo(std::string_view a, std::string_view b, Arena* arena) {
  if (!IsFinite(a) || !IsFinite(b)) {
    if (IsNaN(a) || IsNaN(b)) return MakeNaN();
    if (IsFinite(a)) return a;
    if (IsFinite(b) && SignOf(b) == 0) return DivisionByZero();
    return MakeNaN();
  }
  if (SignOf(b) == 0) return DivisionByZero();
  int128_t x, y;
  int x_scale, y_scale;
  if (ToSmall(a, &x, &x_scale) && ToSmall(b, &y, &y_scale)) {
    const int scale = std::max(x_scale, y_scale);
    int128_t left, right;
    if (ScaleUp(x, scale - x_scale, &left) && ScaleUp(y, scale - y_scale, &right)) {
      return Make(right == -1 ? 0 : left % right, scale, arena);
    }
  }
  Big left = ToBig(a), right = ToBig(b);
  const int scale = std::max(left.scale, right.scale);
  left.unscaled *= BigPow10(scale - left.scale);
  right.unscaled *= BigPow10(scale - right.scale);
  return Encode(left.unscaled % right.unscaled, scale, arena);
}

std::string_view Negate(std::string_view n, Arena* arena) {
  switch (KindOf(n)) {
    case Kind::kNaN: return n;
    case Kind::kInfinity: return MakeInfinity(true);
    case Kind::kNegativeInfinity: return MakeInfinity(false);
    case Kind::kFinite: break;
  }
  int128_t small;
  int scale;
  if (ToSmall(n, &small, &scale) && small != std::numeric_limits<int128_t>::min()) {
    return Make(-small, scale, arena);
  }
  Big big = ToBig(n);
  auto out = Encode(-big.unscaled, big.scale, arena);  // as many digits: cannot overflow
  return out.ok() ? out.value() : n;
}

std::string_view Abs(std::string_view n, Arena* arena) {
  return SignOf(n) < 0 ? Negate(n, arena) : n;
}

std::string_view Sign(std::string_view n, Arena* arena) {
  return IsNaN(n) ? n : FromInt64(SignOf(n), arena);
}

namespace {

Result<std::string_view> ToWhole(std::string_view n, int direction, Arena* arena) {
  if (!IsFinite(n)) return n;
  CELLAR_TRY_ASSIGN(std::string_view whole, Truncate(n, 0, arena));
  if (Compare(whole, n) * direction >= 0) return whole;
  return Add(whole, FromInt64(direction, arena), arena);
}

}  // namespace

Result<std::string_view> Ceil(std::string_view n, Arena* arena) { return ToWhole(n, 1, arena); }
Result<std::string_view> Floor(std::string_view n, Arena* arena) { return ToWhole(n, -1, arena); }

Result<std::string_view> Sqrt(std::string_view n, Arena* arena) {
  if (IsNaN(n)) return n;
  if (SignOf(n) < 0) {
    return SqlError(Code::kInvalid, kInvalidPower, "cannot take square root of a negative number");
  }
  if (!IsFinite(n)) return n;
  Big arg = ToBig(n);
  const Leading leading = LeadingOf(arg.unscaled, arg.scale);
  const int weight = (leading.weight + 1) * 2 - 1;
  const int scale = ResultScale(weight, arg.scale);
  return Encode(internal::SqrtRounded(arg.unscaled, arg.scale, scale), scale, arena);
}

Result<std::string_view> Exp(std::string_view n, Arena* arena) {
  if (!IsFinite(n)) return KindOf(n) == Kind::kNegativeInfinity ? FromInt64(0, arena) : n;
  Big arg = ToBig(n);
  const double weight = std::clamp<double>(ApproximateDouble(arg) * 0.434294481903252,
                                           -kMaxResultScale, kMaxResultScale);
  return ExpAt(arg, ResultScale(static_cast<int>(weight), arg.scale), arena);
}

namespace {

Status LogarithmDomain(std::string_view n) {
  const int sign = SignOf(n);
  if (sign > 0) return Status();
  return SqlError(Code::kInvalid, kInvalidLogarithm, "cannot take logarithm of {}",
                  sign == 0 ? "zero" : "a negative number");
}

}  // namespace

Result<std::string_view> Ln(std::string_view n, Arena* arena) {
  if (IsNaN(n)) return n;
  CELLAR_TRY(LogarithmDomain(n));
  if (!IsFinite(n)) return n;
  Big arg = ToBig(n);
  const int scale = ResultScale(EstimateLnWeight(arg), arg.scale);
  const unsigned bits = BitsFor(scale + 10);
  return Encode(FromFixed(LnOf(arg.unscaled, arg.scale, bits), bits, scale), scale, arena);
}

Result<std::string_view> Log(std::string_view base, std::string_view n, Arena* arena) {
  if (IsNaN(base) || IsNaN(n)) return MakeNaN();
  CELLAR_TRY(LogarithmDomain(base));
  CELLAR_TRY(LogarithmDomain(n));
  if (!IsFinite(base)) return IsFinite(n) ? FromInt64(0, arena) : MakeNaN();
  if (!IsFinite(n)) return n;
  Big big_base = ToBig(base), arg = ToBig(n);
  const int base_weight = EstimateLnWeight(big_base), arg_weight = EstimateLnWeight(arg);
  const int scale = ResultScale(arg_weight - base_weight, big_base.scale, arg.scale);
  // A base near 1 has a tiny logarithm, whose error grows in the division.
  const unsigned bits = BitsFor(scale + 2 * std::abs(base_weight) + std::abs(arg_weight) + 20);
  BigInt ln_base = LnOf(big_base.unscaled, big_base.scale, bits);
  if (ln_base == 0) return DivisionByZero();
  BigInt quotient = (LnOf(arg.unscaled, arg.scale, bits) << bits) / ln_base;
  return Encode(FromFixed(quotient, bits, scale), scale, arena);
}

Result<std::string_view> Log10(std::string_view n, Arena* arena) {
  return Log(FromInt64(10, arena), n, arena);
}

Result<std::string_view> Power(std::string_view base, std::string_view exponent, Arena* arena) {
  if (!IsFinite(base) || !IsFinite(exponent)) return PowerSpecial(base, exponent, arena);
  const int base_sign = SignOf(base), exponent_sign = SignOf(exponent);
  if (base_sign == 0 && exponent_sign < 0) {
    return SqlError(Code::kInvalid, kInvalidPower, "zero raised to a negative power is undefined");
  }
  const bool integral = IsIntegral(exponent);
  if (base_sign < 0 && !integral) {
    return SqlError(Code::kInvalid, kInvalidPower,
                    "a negative number raised to a non-integer power yields a complex result");
  }
  Big big_base = ToBig(base), big_exponent = ToBig(exponent);
  bool odd = false;
  if (integral) {
    BigInt whole = big_exponent.unscaled / BigPow10(big_exponent.scale);
    if (whole <= std::numeric_limits<int32_t>::max() &&
        whole >= std::numeric_limits<int32_t>::min()) {
      return PowerInt(big_base, static_cast<int>(whole), arena);
    }
    odd = (abs(whole) & 1) == 1;
  }
  if (base_sign == 0) return Encode(BigInt(0), kMinSignificantDigits, arena);
  const int base_scale = big_base.scale;
  big_base.unscaled = abs(big_base.unscaled);
  // ln(base) * exponent, first roughly, to learn how many digits the result has.
  const unsigned rough_bits = BitsFor(std::max(8 - EstimateLnWeight(big_base), 0) +
                                      CountDigits(abs(big_exponent.unscaled)));
  Big rough = {FromFixed(LnOf(big_base.unscaled, base_scale, rough_bits), rough_bits, 40), 40};
  const double value = ApproximateDouble(rough) * ApproximateDouble(big_exponent);
  if (std::fabs(value) > kMaxResultScale * 3.01) {
    if (value > 0) return internal::OverflowError();
    return Encode(BigInt(0), kMaxDivisionScale, arena);
  }
  const int weight = static_cast<int>(value * 0.434294481903252);
  const int scale = ResultScale(weight, base_scale, big_exponent.scale);
  const int digits = scale + std::abs(weight) * 2 + CountDigits(abs(big_exponent.unscaled)) + 20;
  const unsigned bits = BitsFor(digits);
  Big product;
  product.scale = digits;
  product.unscaled =
      FromFixed(LnOf(big_base.unscaled, base_scale, bits), bits, digits) * big_exponent.unscaled;
  product.unscaled /= BigPow10(big_exponent.scale);
  CELLAR_TRY_ASSIGN(std::string_view result, ExpAt(product, scale, arena));
  return base_sign < 0 && odd ? Negate(result, arena) : result;
}

Result<std::string_view> Factorial(int64_t n, Arena* arena) {
  if (n < 0) {
    return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                    "factorial of a negative number is undefined");
  }
  if (n > 32177) return internal::OverflowError();
  BigInt product = 1;
  for (int64_t i = 2; i <= n; ++i) {
    PollSteps(static_cast<size_t>(i) / 16);  // limbs of the product
    product *= static_cast<uint64_t>(i);
  }
  return Encode(product, 0, arena);
}

Result<std::string_view> Gcd(std::string_view a, std::string_view b, Arena* arena) {
  if (!IsFinite(a) || !IsFinite(b)) return MakeNaN();
  Big left = ToBig(a), right = ToBig(b);
  const int scale = std::max(left.scale, right.scale);
  left.unscaled *= BigPow10(scale - left.scale);
  right.unscaled *= BigPow10(scale - right.scale);
  return Encode(gcd(abs(left.unscaled), abs(right.unscaled)), scale, arena);
}

Result<std::string_view> Lcm(std::string_view a, std::string_view b, Arena* arena) {
  if (!IsFinite(a) || !IsFinite(b)) return MakeNaN();
  Big left = ToBig(a), right = ToBig(b);
  const int scale = std::max(left.scale, right.scale);
  left.unscaled *= BigPow10(scale - left.scale);
  right.unscaled *= BigPow10(scale - right.scale);
  if (left.unscaled == 0 || right.unscaled == 0) return Encode(BigInt(0), scale, arena);
  const BigInt divisor = gcd(abs(left.unscaled), abs(right.unscaled));
  return Encode(abs(left.unscaled) / divisor * abs(right.unscaled), scale, arena);
}

}  // namespace cellar::numeric
