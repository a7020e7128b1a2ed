// NUMERIC: making, casts, rounding and order.
#include "cellar/types/numeric.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "cellar/base/sqlstate.h"
#include "cellar/types/numeric_internal.h"

namespace cellar::numeric {

using internal::Big;
using internal::BigInt;
using internal::BigPow10;
using internal::kMaxPow10;
using internal::kPow10;
using internal::Magnitude;
using internal::Pow10;
using internal::ScaleUp;
using internal::ToBig;
using internal::ToSmall;

namespace internal {

// Splits |value| by 10^drop: rounds half away from zero, or cuts.
int128_t DropDigits(int128_t value, int drop, bool round) {
  if (drop > kMaxPow10) return 0;
  const int128_t divisor = Pow10(drop);
  int128_t quotient = value / divisor;
  if (!round) return quotient;
  const uint128_t remainder = Magnitude(value % divisor);
  // remainder * 2 cannot overflow: it is below 2 * 10^38 < 2^128.
  if (remainder * 2 >= static_cast<uint128_t>(divisor)) quotient += value < 0 ? -1 : 1;
  return quotient;
}

}  // namespace internal

using internal::DecimalDigits;
using internal::DropDigits;

namespace {

Result<std::string_view> RoundOrTruncate(std::string_view n, int scale, bool round, Arena* arena) {
  if (!IsFinite(n)) return n;
  // Before the first digit of the largest value nothing is left but a carry.
  scale = std::clamp(scale, -(kMaxIntegerDigits + 1), kMaxDisplayScale);
  int128_t small;
  int old_scale;
  if (ToSmall(n, &small, &old_scale)) {
    if (scale == old_scale) return n;
    int128_t result;
    if (scale > old_scale) {
      if (scale <= 255 && ScaleUp(small, scale - old_scale, &result)) {
        return Make(result, scale, arena);
      }
    } else {
      result = DropDigits(small, old_scale - scale, round);
      if (scale >= 0) return Make(result, scale, arena);
      if (ScaleUp(result, -scale, &result)) return Make(result, 0, arena);
    }
  }
  Big big = ToBig(n);
  if (round || scale >= big.scale) {
    return internal::EncodeRounded(big.unscaled, big.scale, scale, arena);
  }
  BigInt cut = big.unscaled / BigPow10(big.scale - scale);
  if (scale < 0) return internal::Encode(cut * BigPow10(-scale), 0, arena);
  return internal::Encode(cut, scale, arena);
}

}  // namespace

// ---- Making and reading ----

std::string_view Make(int128_t unscaled, int scale, Arena* arena) {
  if (unscaled >= std::numeric_limits<int64_t>::min() &&
      unscaled <= std::numeric_limits<int64_t>::max()) {
    char* out = arena->Allocate(10);
    const auto value = static_cast<int64_t>(unscaled);
    out[0] = 1;
    out[1] = static_cast<char>(scale);
    std::memcpy(out + 2, &value, 8);
    return {out, 10};
  }
  char* out = arena->Allocate(18);
  out[0] = 2;
  out[1] = static_cast<char>(scale);
  std::memcpy(out + 2, &unscaled, 16);
  return {out, 18};
}

std::string_view MakeNaN() { return "\x06"; }
std::string_view MakeInfinity(bool negative) { return negative ? "\x04" : "\x05"; }

namespace {

std::string_view FromDigits(double value, int digits, Arena* arena) {
  if (std::isnan(value)) return MakeNaN();
  if (std::isinf(value)) return MakeInfinity(value < 0);
  char buffer[64];
  auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, digits);
  // Never fails: at most 15 digits and an exponent of three.
  auto parsed = Parse({buffer, static_cast<size_t>(end.ptr - buffer)}, arena);
  return parsed.ok() ? parsed.value() : MakeNaN();
}

Result<int64_t> ToInteger(std::string_view n, int64_t min, int64_t max, std::string_view type) {
  if (!IsFinite(n)) {
    return SqlError(Code::kInvalid, sqlstate::kFeatureNotSupported, "cannot convert {} to {}",
                    IsNaN(n) ? "NaN" : "infinity", type);
  }
  int128_t value;
  int scale;
  bool fits = ToSmall(n, &value, &scale);
  if (fits) {
    value = DropDigits(value, scale, true);
  } else {
    Big big = ToBig(n);
    BigInt rounded = internal::Rescale(big.unscaled, big.scale, 0);
    fits = abs(rounded) <= BigInt(std::numeric_limits<uint64_t>::max());
    if (fits) {
      value = static_cast<int128_t>(static_cast<uint64_t>(abs(rounded)));
      if (rounded < 0) value = -value;
    }
  }
  if (!fits || value < min || value > max) {
    return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange, "{} out of range", type);
  }
  return static_cast<int64_t>(value);
}

}  // namespace

std::string_view FromDouble(double value, Arena* arena) { return FromDigits(value, 15, arena); }
std::string_view FromFloat(float value, Arena* arena) {
  return FromDigits(static_cast<double>(value), 6, arena);
}

Result<int64_t> ToInt64(std::string_view n) {
  return ToInteger(n, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(),
                   "bigint");
}
Result<int64_t> ToInt32(std::string_view n) {
  return ToInteger(n, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max(),
                   "integer");
}
Result<int64_t> ToInt16(std::string_view n) {
  return ToInteger(n, std::numeric_limits<int16_t>::min(), std::numeric_limits<int16_t>::max(),
                   "smallint");
}

double ToDoubleApproximate(std::string_view n) {
  switch (KindOf(n)) {
    case Kind::kNaN: return std::numeric_limits<double>::quiet_NaN();
    case Kind::kInfinity: return std::numeric_limits<double>::infinity();
    case Kind::kNegativeInfinity: return -std::numeric_limits<double>::infinity();
    case Kind::kFinite: break;
  }
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  int64_t unscaled;
  int scale;
  if (AsSmall(n, &unscaled, &scale) && scale <= 22 && unscaled >= -(int64_t{1} << 53) &&
      unscaled <= (int64_t{1} << 53)) {
    return static_cast<double>(unscaled) / kPowers[scale];  // both exact: rounded once
  }
  std::string text;
  AppendText(n, &text);
  double out = 0;
  auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  if (parsed.ec == std::errc::result_out_of_range) {
    if (text.find_first_not_of("-0.") < text.find('.')) {
      out = std::numeric_limits<double>::infinity();
    } else {
      out = 0;
    }
    if (text[0] == '-') out = -out;
  }
  return out;
}

Result<double> ToDouble(std::string_view n) {
  double out = ToDoubleApproximate(n);
  if (IsFinite(n) && (std::isinf(out) || (out == 0 && SignOf(n) != 0))) {
    std::string text;
    AppendText(n, &text);
    return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                    "\"{}\" is out of range for type double precision", text);
  }
  return out;
}

Result<double> ToFloat(std::string_view n) {
  if (!IsFinite(n)) return ToDoubleApproximate(n);
  std::string text;
  AppendText(n, &text);
  float out = 0;
  auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  if (parsed.ec != std::errc() || (out == 0 && SignOf(n) != 0)) {
    return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                    "\"{}\" is out of range for type real", text);
  }
  return static_cast<double>(out);
}

// ---- Precision and scale ----

PrecisionScale ModifierParts(int32_t modifier) {
  const int32_t packed = modifier - 4;
  return {(packed >> 16) & 0xFFFF, ((packed & 0x7FF) ^ 1024) - 1024};
}

Result<int32_t> MakeModifier(int precision, int scale) {
  if (precision < 1 || precision > 1000) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "NUMERIC precision {} must be between 1 and 1000", precision);
  }
  if (scale < -1000 || scale > 1000) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "NUMERIC scale {} must be between -1000 and 1000", scale);
  }
  return ((precision << 16) | (scale & 0x7FF)) + 4;
}

Result<std::string_view> ApplyModifier(std::string_view n, int32_t modifier, Arena* arena) {
  if (modifier < 4) return n;
  const PrecisionScale limits = ModifierParts(modifier);
  if (IsNaN(n)) return n;
  if (!IsFinite(n)) {
    return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange, "numeric field overflow")
        .WithDetail(
            fmt::format("A field with precision {}, scale {} cannot hold an infinite value.",
                        limits.precision, limits.scale));
  }
  CELLAR_TRY_ASSIGN(std::string_view rounded, Round(n, limits.scale, arena));
  int128_t small;
  int scale;
  bool fits;
  if (ToSmall(rounded, &small, &scale) && limits.scale >= 0) {
    fits = limits.precision > kMaxPow10 || Magnitude(small) < kPow10[size_t(limits.precision)];
  } else {
    Big big = ToBig(rounded);
    // A negative scale leaves -scale zeros at the end that do not count.
    const int digits = internal::CountDigits(abs(big.unscaled)) + std::min(limits.scale, 0);
    fits = big.unscaled == 0 || digits <= limits.precision;
  }
  if (fits) return rounded;
  const int before = limits.precision - limits.scale;
  return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange, "numeric field overflow")
      .WithDetail(fmt::format(
          "A field with precision {}, scale {} must round to an absolute value less than {}{}.",
          limits.precision, limits.scale, before != 0 ? "10^" : "", before != 0 ? before : 1));
}

Result<std::string_view> Round(std::string_view n, int scale, Arena* arena) {
  return RoundOrTruncate(n, scale, true, arena);
}
Result<std::string_view> Truncate(std::string_view n, int scale, Arena* arena) {
  return RoundOrTruncate(n, scale, false, arena);
}

int DisplayScale(std::string_view n) {
  if (n[0] < 3) return static_cast<uint8_t>(n[1]);
  if (n[0] > 3) return 0;
  uint16_t scale;
  std::memcpy(&scale, n.data() + 2, 2);
  return scale;
}

std::optional<int> MinScale(std::string_view n) {
  if (!IsFinite(n)) return std::nullopt;
  DecimalDigits decimal(n);
  if (decimal.digits() == "0") return 0;
  const size_t last = decimal.digits().find_last_not_of('0');
  const int zeros = static_cast<int>(decimal.digits().size() - 1 - last);
  return std::max(0, decimal.scale() - zeros);
}

std::string_view TrimScale(std::string_view n, Arena* arena) {
  std::optional<int> scale = MinScale(n);
  if (!scale) return n;
  auto out = Truncate(n, *scale, arena);  // fewer digits never overflow
  return out.ok() ? out.value() : n;
}

// ---- Order ----

int SignOf(std::string_view n) {
  switch (n[0]) {
    case 1:
    case 2: {
      int128_t value;
      int scale;
      ToSmall(n, &value, &scale);
      return value < 0 ? -1 : value > 0;
    }
    case 3: return n.size() == 4 ? 0 : n[1] != 0 ? -1 : 1;
    case 4: return -1;
    case 5: return 1;
    default: return 0;
  }
}

int Compare(std::string_view a, std::string_view b) {
  if (a[0] == 1 && b[0] == 1 && a[1] == b[1]) {
    int64_t x, y;
    std::memcpy(&x, a.data() + 2, 8);
    std::memcpy(&y, b.data() + 2, 8);
    return x < y ? -1 : x > y;
  }
  if (!IsFinite(a) || !IsFinite(b)) {
    // -Infinity 0, finite 1, Infinity 2, NaN 3.
    auto rank = [](std::string_view n) { return IsFinite(n) ? 1 : n[0] == 4 ? 0 : n[0] - 3; };
    return rank(a) < rank(b) ? -1 : rank(a) > rank(b);
  }
  int128_t x, y;
  int x_scale, y_scale;
  if (ToSmall(a, &x, &x_scale) && ToSmall(b, &y, &y_scale)) {
    if ((x < 0) != (y < 0)) return x < 0 ? -1 : 1;
    if (x == 0 || y == 0) return x < y ? -1 : x > y;
    int128_t left = x, right = y;
    const bool scaled = x_scale < y_scale ? ScaleUp(x, y_scale - x_scale, &left)
                                          : ScaleUp(y, x_scale - y_scale, &right);
    if (scaled) return left < right ? -1 : left > right;
    // The side that cannot be scaled up has the greater magnitude.
    const bool x_is_greater = x_scale < y_scale;
    return x_is_greater == (x > 0) ? 1 : -1;
  }
  Big big_a = ToBig(a), big_b = ToBig(b);
  if (big_a.scale < big_b.scale) big_a.unscaled *= BigPow10(big_b.scale - big_a.scale);
  if (big_b.scale < big_a.scale) big_b.unscaled *= BigPow10(big_a.scale - big_b.scale);
  const int order = big_a.unscaled.compare(big_b.unscaled);
  return order < 0 ? -1 : order > 0;
}

int128_t FloorAtScale(std::string_view n, int scale, bool* equal) {
  constexpr int128_t kBeyond = int128_t{1} << 64;
  *equal = false;
  if (!IsFinite(n)) return KindOf(n) == Kind::kNegativeInfinity ? -kBeyond : kBeyond;
  int128_t value, floor;
  int value_scale;
  if (ToSmall(n, &value, &value_scale)) {
    if (value_scale <= scale) {
      if (!ScaleUp(value, scale - value_scale, &floor)) return value < 0 ? -kBeyond : kBeyond;
      *equal = true;
    } else {
      floor = DropDigits(value, value_scale - scale, false);
      int128_t back;
      *equal = ScaleUp(floor, value_scale - scale, &back) && back == value;
      if (!*equal && value < 0) --floor;
    }
  } else {
    const Big big = ToBig(n);
    BigInt unscaled = big.unscaled;
    if (big.scale <= scale) {
      unscaled *= BigPow10(scale - big.scale);
      *equal = true;
    } else {
      const BigInt divisor = BigPow10(big.scale - scale);
      unscaled /= divisor;  // towards zero
      *equal = unscaled * divisor == big.unscaled;
      if (!*equal && big.unscaled < 0) --unscaled;
    }
    if (abs(unscaled) >= internal::BigFrom(kBeyond)) {
      *equal = false;
      return unscaled < 0 ? -kBeyond : kBeyond;
    }
    floor = static_cast<int128_t>(unscaled);
  }
  if (floor >= kBeyond || floor <= -kBeyond) {
    *equal = false;
    return floor < 0 ? -kBeyond : kBeyond;
  }
  return floor;
}

uint64_t Hash(std::string_view n) {
  uint64_t hash = 0x51ED270B7F4A7C15;
  auto mix = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0xD6E8FEB86659FD93;
    hash ^= hash >> 32;
  };
  if (!IsFinite(n)) {
    mix(static_cast<uint8_t>(n[0]));
    return hash;
  }
  int128_t small;
  int scale;
  if (ToSmall(n, &small, &scale)) {
    uint128_t magnitude = Magnitude(small);
    if (magnitude <= std::numeric_limits<uint64_t>::max()) {
      auto low = static_cast<uint64_t>(magnitude);
      while (low != 0 && low % 10 == 0) low /= 10, --scale;
      magnitude = low;
    } else {
      while (magnitude % 10 == 0) magnitude /= 10, --scale;
    }
    if (magnitude == 0) scale = 0;
    mix(static_cast<uint64_t>(magnitude));
    if (magnitude >> 64 != 0) mix(static_cast<uint64_t>(magnitude >> 64));
    mix(static_cast<uint64_t>(static_cast<int64_t>(scale)) * 2 + (small < 0 ? 1 : 0));
    return hash;
  }
  Big big = ToBig(n);
  scale = big.scale;
  BigInt magnitude = abs(big.unscaled);
  if (magnitude == 0) {
    mix(0);
    mix(0);
    return hash;
  }
  std::string digits = internal::DigitsOf(magnitude);
  const size_t last = digits.find_last_not_of('0');
  scale -= static_cast<int>(digits.size() - 1 - last);
  digits.resize(last + 1);
  BigInt stripped = internal::BigFromDigits(digits);
  const size_t words = boost::multiprecision::msb(stripped) / 64 + 1;
  for (size_t i = 0; i < words; ++i) {
    mix(static_cast<uint64_t>((stripped >> (64 * i)) & 0xFFFFFFFFFFFFFFFFu));
  }
  mix(static_cast<uint64_t>(static_cast<int64_t>(scale)) * 2 + (big.unscaled < 0 ? 1 : 0));
  return hash;
}

}  // namespace cellar::numeric
