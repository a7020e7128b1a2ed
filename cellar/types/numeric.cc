// NUMERIC's forms: making, reading, text, binary, rounding, order and key digits.
#include "cellar/types/numeric.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "cellar/base/sqlstate.h"
#include "cellar/types/numeric_internal.h"

namespace cellar::numeric {

namespace internal {

Status OverflowError() {
  return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                  "value overflows numeric format");
}

BigInt BigFrom(int128_t value) {
  uint128_t magnitude = Magnitude(value);
  BigInt out = static_cast<uint64_t>(magnitude >> 64);
  out <<= 64;
  out |= static_cast<uint64_t>(magnitude);
  if (value < 0) out = -out;
  return out;
}

BigInt BigPow10(int n) {
  if (n <= kMaxPow10) return BigFrom(Pow10(n));
  return boost::multiprecision::pow(BigInt(10), static_cast<unsigned>(n));
}

Big ToBig(std::string_view n) {
  Big out;
  int128_t small;
  if (ToSmall(n, &small, &out.scale)) {
    out.unscaled = BigFrom(small);
    return out;
  }
  uint16_t scale;
  std::memcpy(&scale, n.data() + 2, 2);
  out.scale = scale;
  if (n.size() == 4) return out;
  const auto* begin = reinterpret_cast<const uint8_t*>(n.data() + 4);
  boost::multiprecision::import_bits(out.unscaled, begin, begin + n.size() - 4, 8, false);
  if (n[1] != 0) out.unscaled = -out.unscaled;
  return out;
}

Result<std::string_view> Encode(const BigInt& unscaled, int scale, Arena* arena) {
  if (scale > kMaxDisplayScale) return OverflowError();
  if (unscaled == 0) {
    if (scale <= 255) return Make(0, scale, arena);
  } else {
    const size_t bits = boost::multiprecision::msb(abs(unscaled)) + 1;
    if (bits <= 127 && scale <= 255) {
      BigInt magnitude = abs(unscaled);
      uint128_t value = static_cast<uint64_t>(magnitude >> 64);
      value = (value << 64) | static_cast<uint64_t>(magnitude & 0xFFFFFFFFFFFFFFFFu);
      auto small = static_cast<int128_t>(value);
      return Make(unscaled < 0 ? -small : small, scale, arena);
    }
    if (bits > 435000 && CountDigits(abs(unscaled)) - scale > kMaxIntegerDigits) {
      return OverflowError();
    }
  }
  std::vector<uint8_t> magnitude;
  if (unscaled != 0) {
    boost::multiprecision::export_bits(abs(unscaled), std::back_inserter(magnitude), 8, false);
  }
  const size_t size = 4 + magnitude.size();
  char* out = arena->Allocate(size);
  out[0] = 3;
  out[1] = unscaled < 0 ? 1 : 0;
  const auto scale16 = static_cast<uint16_t>(scale);
  std::memcpy(out + 2, &scale16, 2);
  if (!magnitude.empty()) std::memcpy(out + 4, magnitude.data(), magnitude.size());
  return std::string_view(out, size);
}

BigInt DivideHalfAway(const BigInt& numerator, const BigInt& denominator) {
  BigInt quotient, remainder;
  boost::multiprecision::divide_qr(numerator, denominator, quotient, remainder);
  if (abs(remainder) * 2 >= abs(denominator)) {
    if ((numerator < 0) != (denominator < 0))
      --quotient;
    else
      ++quotient;
  }
  return quotient;
}

BigInt Rescale(const BigInt& unscaled, int scale, int new_scale) {
  if (new_scale >= scale) return unscaled * BigPow10(new_scale - scale);
  const int drop = scale - new_scale;
  // More digits than the value has: the quotient is 0 (or 1 at most just below).
  if (unscaled == 0 || drop > CountDigits(abs(unscaled)) + 1) return 0;
  return DivideHalfAway(unscaled, BigPow10(drop));
}

Result<std::string_view> EncodeRounded(const BigInt& unscaled, int scale, int new_scale,
                                       Arena* arena) {
  if (new_scale < 0) {
    return Encode(Rescale(unscaled, scale, new_scale) * BigPow10(-new_scale), 0, arena);
  }
  return Encode(Rescale(unscaled, scale, new_scale), new_scale, arena);
}

int CountDigits(uint128_t magnitude) {
  if (magnitude == 0) return 1;
  const auto high = static_cast<uint64_t>(magnitude >> 64);
  const int bits = high != 0 ? 128 - __builtin_clzll(high)
                             : 64 - __builtin_clzll(static_cast<uint64_t>(magnitude));
  int digits = (bits * 1233) >> 12;  // floor(bits * log10(2)), exact up to 128 bits
  if (digits > kMaxPow10) return kMaxPow10 + 1;
  return magnitude >= kPow10[static_cast<size_t>(digits)] ? digits + 1 : digits;
}

int CountDigits(const BigInt& magnitude) {
  if (magnitude == 0) return 1;
  const auto top = static_cast<int64_t>(boost::multiprecision::msb(magnitude));
  if (top < 126) {
    uint128_t value = static_cast<uint64_t>(magnitude >> 64);
    value = (value << 64) | static_cast<uint64_t>(magnitude & 0xFFFFFFFFFFFFFFFFu);
    return CountDigits(value);
  }
  const auto shift = static_cast<unsigned>(top - 62);
  const auto leading = static_cast<double>(static_cast<uint64_t>(magnitude >> shift));
  const double log = std::log10(leading) + shift * 0.30102999566398119521;
  const double whole = std::floor(log);
  if (log - whole > 1e-6 && log - whole < 1 - 1e-6) return static_cast<int>(whole) + 1;
  const int near = static_cast<int>(std::round(log));
  return magnitude >= BigPow10(near) ? near + 1 : near;
}

namespace {

int FloorDiv4(int value) { return value >= 0 ? value / 4 : -((-value + 3) / 4); }

// The first eight base-10000 places from a leading run of decimal digits.
Leading LeadingFromDigits(uint64_t top, int top_digits, int total_digits, int scale, bool rest) {
  Leading out;
  const int exponent = total_digits - 1 - scale;  // of the first decimal digit
  out.weight = FloorDiv4(exponent);
  const int first_digits = exponent - 4 * out.weight + 1;  // 1..4
  const int want = first_digits + 4;
  uint64_t value = top;
  int have = top_digits;
  while (have < want) {
    value *= 10;
    ++have;
  }
  uint64_t below = 0;
  if (have > want) {
    const auto divisor = static_cast<uint64_t>(Pow10(have - want));
    below = value % divisor;
    value /= divisor;
  }
  out.first = static_cast<int>(value / 10000);
  out.second = static_cast<int>(value % 10000);
  out.more = out.second != 0 || below != 0 || rest;
  return out;
}

}  // namespace

Leading LeadingOf(std::string_view n) {
  int128_t small;
  int scale;
  if (!ToSmall(n, &small, &scale)) {
    Big big = ToBig(n);
    return LeadingOf(big.unscaled, big.scale);
  }
  if (small == 0) return {};
  uint128_t magnitude = Magnitude(small);
  const int digits = CountDigits(magnitude);
  if (digits <= 18) {
    return LeadingFromDigits(static_cast<uint64_t>(magnitude), digits, digits, scale, false);
  }
  const uint128_t divisor = kPow10[static_cast<size_t>(digits - 18)];
  return LeadingFromDigits(static_cast<uint64_t>(magnitude / divisor), 18, digits, scale,
                           magnitude % divisor != 0);
}

Leading LeadingOf(const BigInt& unscaled, int scale) {
  if (unscaled == 0) return {};
  BigInt magnitude = abs(unscaled);
  const int digits = CountDigits(magnitude);
  if (digits <= 18) {
    return LeadingFromDigits(static_cast<uint64_t>(magnitude), digits, digits, scale, false);
  }
  BigInt top, rest;
  boost::multiprecision::divide_qr(magnitude, BigPow10(digits - 18), top, rest);
  return LeadingFromDigits(static_cast<uint64_t>(top), 18, digits, scale, rest != 0);
}

int DivisionScale(const Leading& a, int a_scale, const Leading& b, int b_scale) {
  int weight = a.weight - b.weight;
  if (a.first <= b.first) --weight;
  int scale = std::max({16 - weight * 4, a_scale, b_scale, 0});
  return std::min(scale, 1000);
}

}  // namespace internal

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

namespace {

constexpr char kDigitPairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

// Writes the decimal digits of `value` so that they end at `end`; returns where they start.
char* WriteDigits(uint64_t value, char* end) {
  while (value >= 100) {
    end -= 2;
    std::memcpy(end, kDigitPairs + 2 * (value % 100), 2);
    value /= 100;
  }
  if (value >= 10) {
    end -= 2;
    std::memcpy(end, kDigitPairs + 2 * value, 2);
  } else {
    *--end = static_cast<char>('0' + value);
  }
  return end;
}

char* WriteDigits(uint128_t value, char* end) {
  constexpr uint64_t kChunk = 10000000000000000000u;  // 10^19
  while (value > std::numeric_limits<uint64_t>::max()) {
    char* start = WriteDigits(static_cast<uint64_t>(value % kChunk), end);
    while (end - start < 19) *--start = '0';
    end = start;
    value /= kChunk;
  }
  return WriteDigits(static_cast<uint64_t>(value), end);
}

// sign, digits before the point, point, `scale` digits; `digits` has no leading zeros but for "0".
void AppendPointed(bool negative, std::string_view digits, int scale, std::string* out) {
  const auto fraction = static_cast<size_t>(scale);
  if (negative) out->push_back('-');
  if (fraction == 0) {
    out->append(digits);
    return;
  }
  if (digits.size() > fraction) {
    out->append(digits.substr(0, digits.size() - fraction));
    out->push_back('.');
    out->append(digits.substr(digits.size() - fraction));
    return;
  }
  out->append("0.");
  out->append(fraction - digits.size(), '0');
  out->append(digits);
}

// Decimal digits of a finite value's magnitude, without sign and point.
class DecimalDigits {
 public:
  explicit DecimalDigits(std::string_view n) {
    int128_t small;
    if (ToSmall(n, &small, &scale_)) {
      negative_ = small < 0;
      char* end = buffer_ + sizeof(buffer_);
      char* start = WriteDigits(Magnitude(small), end);
      digits_ = {start, static_cast<size_t>(end - start)};
    } else {
      Big big = ToBig(n);
      scale_ = big.scale;
      negative_ = big.unscaled < 0;
      large_ = abs(big.unscaled).str();
      digits_ = large_;
    }
  }
  DecimalDigits(const DecimalDigits&) = delete;
  DecimalDigits& operator=(const DecimalDigits&) = delete;

  std::string_view digits() const { return digits_; }
  bool negative() const { return negative_; }
  int scale() const { return scale_; }

 private:
  char buffer_[40];
  std::string large_;
  std::string_view digits_;
  bool negative_ = false;
  int scale_ = 0;
};

// 2n bytes of base-100 or 4n of base-10000: the digit string cut at the point, zero padded at both
// ends. Calls emit(value) for each group of `width` digits from the first that holds a digit;
// returns the number of groups before the point (may be negative: groups of zeros after the point
// that were not emitted).
template <typename Emit>
int ForEachGroup(std::string_view digits, int scale, int width, Emit emit) {
  const int before = static_cast<int>(digits.size()) - scale;  // digits before the point
  const int groups = before >= 0 ? (before + width - 1) / width : -((-before) / width);
  int lead = groups * width - before;  // zeros in front of the first digit
  size_t i = 0;
  while (i < digits.size()) {
    int value = 0;
    for (int k = 0; k < width; ++k) {
      value *= 10;
      if (lead > 0) {
        --lead;
      } else if (i < digits.size()) {
        value += digits[i++] - '0';
      }
    }
    emit(value);
  }
  return groups;
}

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsDigit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

Status SyntaxError(std::string_view text) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidTextRepresentation,
                  "invalid input syntax for type numeric: \"{}\"", text);
}

bool EqualsIgnoringCase(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    if (c != lower[i]) return false;
  }
  return true;
}

// Everything but plain short decimals. `body` is `text` without blanks around.
Result<std::string_view> ParseSlow(std::string_view text, std::string_view body, Arena* arena) {
  std::string_view rest = body;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  if (EqualsIgnoringCase(body, "nan")) return MakeNaN();
  if (EqualsIgnoringCase(rest, "infinity") || EqualsIgnoringCase(rest, "inf")) {
    return MakeInfinity(negative);
  }
  std::string digits;
  int64_t scale = 0;
  bool point = false;
  size_t i = 0;
  for (; i < rest.size(); ++i) {
    if (IsDigit(rest[i])) {
      digits.push_back(rest[i]);
      if (point) ++scale;
    } else if (rest[i] == '.' && !point) {
      point = true;
    } else {
      break;
    }
  }
  if (digits.empty()) return SyntaxError(text);
  if (i < rest.size() && (rest[i] == 'e' || rest[i] == 'E')) {
    ++i;
    bool exponent_negative = false;
    if (i < rest.size() && (rest[i] == '-' || rest[i] == '+')) exponent_negative = rest[i++] == '-';
    int64_t exponent = 0;
    const size_t first = i;
    for (; i < rest.size() && IsDigit(rest[i]); ++i) {
      if (exponent < 1000000000000) exponent = exponent * 10 + (rest[i] - '0');
    }
    if (i == first) return SyntaxError(text);
    if (exponent >= std::numeric_limits<int32_t>::max() / 2) return internal::OverflowError();
    scale += exponent_negative ? exponent : -exponent;
  }
  if (i != rest.size()) return SyntaxError(text);
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  if (digits == "0") {
    if (scale > kMaxDisplayScale) return internal::OverflowError();
    return internal::Encode(BigInt(0), static_cast<int>(std::max<int64_t>(scale, 0)), arena);
  }
  if (static_cast<int64_t>(digits.size()) - scale > kMaxIntegerDigits || scale > kMaxDisplayScale) {
    return internal::OverflowError();
  }
  if (scale < 0) {
    digits.append(static_cast<size_t>(-scale), '0');
    scale = 0;
  }
  if (digits.size() <= 38 && scale <= 255) {
    int128_t value = 0;
    for (char c : digits) value = value * 10 + (c - '0');
    return Make(negative ? -value : value, static_cast<int>(scale), arena);
  }
  BigInt value(digits);
  if (negative) value = -value;
  return internal::Encode(value, static_cast<int>(scale), arena);
}

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

Result<std::string_view> RoundOrTruncate(std::string_view n, int scale, bool round, Arena* arena) {
  if (!IsFinite(n)) return n;
  scale = std::clamp(scale, -2000, 2000);
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

// ---- Text ----

Result<std::string_view> Parse(std::string_view text, Arena* arena) {
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end && IsSpace(*p)) ++p;
  while (end > p && IsSpace(end[-1])) --end;
  const std::string_view body(p, static_cast<size_t>(end - p));
  bool negative = false;
  if (p < end && (*p == '-' || *p == '+')) negative = *p++ == '-';
  if (end - p <= 19) {
    // At most 18 digits and a point (or 19 digits, below 2^64): no overflow to watch.
    uint64_t value = 0;
    const char* point = nullptr;
    const char* start = p;
    for (; p < end; ++p) {
      const auto digit = static_cast<unsigned char>(*p - '0');
      if (digit < 10) {
        value = value * 10 + digit;
      } else if (*p == '.' && point == nullptr) {
        point = p;
      } else {
        break;
      }
    }
    const auto consumed = p - start;
    if (p == end && consumed > (point != nullptr ? 1 : 0)) {
      const int scale = point == nullptr ? 0 : static_cast<int>(end - point - 1);
      const auto wide = static_cast<int128_t>(value);
      return Make(negative ? -wide : wide, scale, arena);
    }
  }
  return ParseSlow(text, body, arena);
}

void AppendText(std::string_view n, std::string* out) {
  switch (KindOf(n)) {
    case Kind::kNaN: out->append("NaN"); return;
    case Kind::kInfinity: out->append("Infinity"); return;
    case Kind::kNegativeInfinity: out->append("-Infinity"); return;
    case Kind::kFinite: break;
  }
  int64_t unscaled;
  int scale;
  if (AsSmall(n, &unscaled, &scale)) {
    char buffer[20];
    char* end = buffer + sizeof(buffer);
    const uint64_t magnitude = unscaled < 0 ? uint64_t{0} - static_cast<uint64_t>(unscaled)
                                            : static_cast<uint64_t>(unscaled);
    char* start = WriteDigits(magnitude, end);
    AppendPointed(unscaled < 0, {start, static_cast<size_t>(end - start)}, scale, out);
    return;
  }
  DecimalDigits decimal(n);
  AppendPointed(decimal.negative(), decimal.digits(), decimal.scale(), out);
}

void AppendScientific(std::string_view n, int scale, std::string* out) {
  if (!IsFinite(n)) return AppendText(n, out);
  Big big = ToBig(n);
  int exponent = 0;
  if (big.unscaled != 0) exponent = internal::CountDigits(abs(big.unscaled)) - 1 - big.scale;
  // The significand is the same digits with the point moved.
  BigInt significand = internal::Rescale(big.unscaled, big.scale + exponent, scale);
  std::string digits = abs(significand).str();
  AppendPointed(significand < 0, digits, scale, out);
  out->append(fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent)));
}

// ---- Binary ----

namespace {

void AppendUint16(int value, std::string* out) {
  out->push_back(static_cast<char>((value >> 8) & 0xFF));
  out->push_back(static_cast<char>(value & 0xFF));
}
uint16_t ReadUint16(std::string_view bytes, size_t offset) {
  return static_cast<uint16_t>((static_cast<uint8_t>(bytes[offset]) << 8) |
                               static_cast<uint8_t>(bytes[offset + 1]));
}
constexpr uint16_t kPositive = 0x0000, kNegative = 0x4000, kNaNSign = 0xC000,
                   kInfinitySign = 0xD000, kNegativeInfinitySign = 0xF000;

Status BinaryError(std::string_view what) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidBinaryRepresentation,
                  "invalid {} in external \"numeric\" value", what);
}

}  // namespace

void AppendBinary(std::string_view n, std::string* out) {
  const Kind kind = KindOf(n);
  if (kind != Kind::kFinite) {
    AppendUint16(0, out);
    AppendUint16(0, out);
    AppendUint16(kind == Kind::kNaN        ? kNaNSign
                 : kind == Kind::kInfinity ? kInfinitySign
                                           : kNegativeInfinitySign,
                 out);
    AppendUint16(kind == Kind::kNaN ? 0 : 32, out);  // as PostgreSQL sends it
    return;
  }
  DecimalDigits decimal(n);
  const size_t header = out->size();
  out->append(8, '\0');
  int count = 0;
  int last = 0;  // groups up to the last that is not zero
  int weight = 0;
  if (decimal.digits() != "0") {
    weight = ForEachGroup(decimal.digits(), decimal.scale(), 4, [&](int group) {
      AppendUint16(group, out);
      ++count;
      if (group != 0) last = count;
    });
    --weight;
  }
  out->resize(header + 8 + 2 * static_cast<size_t>(last));
  std::string head;
  AppendUint16(last, &head);
  AppendUint16(weight, &head);
  AppendUint16(decimal.negative() ? kNegative : kPositive, &head);
  AppendUint16(decimal.scale(), &head);
  std::memcpy(out->data() + header, head.data(), 8);
}

Result<std::string_view> ParseBinary(std::string_view bytes, Arena* arena) {
  if (bytes.size() < 8) {
    return SqlError(Code::kInvalid, sqlstate::kProtocolViolation,
                    "insufficient data left in message");
  }
  const size_t count = ReadUint16(bytes, 0);
  const int weight = static_cast<int16_t>(ReadUint16(bytes, 2));
  const uint16_t sign = ReadUint16(bytes, 4);
  const int scale = ReadUint16(bytes, 6);
  switch (sign) {
    case kPositive:
    case kNegative: break;
    case kNaNSign: return MakeNaN();
    case kInfinitySign: return MakeInfinity(false);
    case kNegativeInfinitySign: return MakeInfinity(true);
    default: return BinaryError("sign");
  }
  if (scale > kMaxDisplayScale) return BinaryError("scale");
  if (bytes.size() < 8 + 2 * count) {
    return SqlError(Code::kInvalid, sqlstate::kProtocolViolation,
                    "insufficient data left in message");
  }
  if (bytes.size() > 8 + 2 * count) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidBinaryRepresentation,
                    "incorrect binary data format");
  }
  // value = digits as one integer x 10^(4 (weight + 1 - count)); digits beyond the scale are cut.
  const int natural = 4 * (static_cast<int>(count) - weight - 1);
  bool small = count <= 9;
  int128_t value = 0;
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    const uint16_t digit = ReadUint16(bytes, 8 + 2 * i);
    if (digit > 9999) return BinaryError("digit");
    if (small)
      value = value * 10000 + digit;
    else
      text += fmt::format("{:04}", digit);
  }
  if (small && scale <= 255) {
    if (sign == kNegative) value = -value;
    int128_t result;
    if (natural >= scale) return Make(DropDigits(value, natural - scale, false), scale, arena);
    if (ScaleUp(value, scale - natural, &result)) return Make(result, scale, arena);
  }
  BigInt big =
      small ? internal::BigFrom(sign == kNegative && value > 0 ? -value : value) : BigInt(0);
  if (!small) {
    const size_t first = std::min(text.find_first_not_of('0'), text.size() - 1);
    big = BigInt(text.substr(first));
    if (sign == kNegative) big = -big;
  }
  if (natural > scale) {
    return internal::Encode(big / BigPow10(natural - scale), scale, arena);
  }
  return internal::Encode(big * BigPow10(scale - natural), scale, arena);
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
  std::string digits = magnitude.str();
  const size_t last = digits.find_last_not_of('0');
  scale -= static_cast<int>(digits.size() - 1 - last);
  digits.resize(last + 1);
  BigInt stripped(digits);
  const size_t words = boost::multiprecision::msb(stripped) / 64 + 1;
  for (size_t i = 0; i < words; ++i) {
    mix(static_cast<uint64_t>((stripped >> (64 * i)) & 0xFFFFFFFFFFFFFFFFu));
  }
  mix(static_cast<uint64_t>(static_cast<int64_t>(scale)) * 2 + (big.unscaled < 0 ? 1 : 0));
  return hash;
}

// ---- Key digits ----

void ToKeyDigits(std::string_view n, KeyDigits* out) {
  DecimalDigits decimal(n);
  out->negative = decimal.negative();
  out->large_.clear();
  size_t size = 0;
  size_t last = 0;
  const bool fits = decimal.digits().size() <= 2 * sizeof(out->inline_) - 2;
  out->exponent = ForEachGroup(decimal.digits(), decimal.scale(), 2, [&](int group) {
    if (fits)
      out->inline_[size] = static_cast<uint8_t>(group);
    else
      out->large_.push_back(static_cast<char>(group));
    ++size;
    if (group != 0) last = size;
  });
  out->size_ = last;
  if (!fits) out->large_.resize(last);
}

Result<std::string_view> FromKeyDigits(bool negative, int32_t exponent,
                                       std::span<const uint8_t> digits, int display_scale,
                                       Arena* arena) {
  constexpr int32_t kMaxExponent = kMaxIntegerDigits / 2 + 1;
  if (digits.empty() || digits.front() == 0 || digits.back() == 0 ||
      digits.size() > kMaxIntegerDigits || exponent > kMaxExponent || exponent < -kMaxExponent) {
    return CorruptionError("decimal with digits that no encoder writes");
  }
  for (uint8_t digit : digits) {
    if (digit > 99) return CorruptionError("decimal with a digit above 99");
  }
  // value = digits as one integer / 10^natural.
  int natural = 2 * (static_cast<int>(digits.size()) - exponent);
  const bool drop_zero = digits.back() % 10 == 0;
  if (drop_zero) --natural;
  const int scale = std::max({natural, display_scale, 0});
  if (scale > kMaxDisplayScale) return CorruptionError("decimal scale {} out of range", scale);
  if (digits.size() <= 19 && scale <= 255) {
    int128_t value = 0;
    for (uint8_t digit : digits) value = value * 100 + digit;
    if (drop_zero) value /= 10;
    if (negative) value = -value;
    int128_t result;
    if (ScaleUp(value, scale - natural, &result)) return Make(result, scale, arena);
  }
  std::string text;
  for (uint8_t digit : digits) text.append(kDigitPairs + 2 * digit, 2);
  if (drop_zero) text.pop_back();
  if (text[0] == '0') text.erase(0, 1);
  BigInt value(text);
  if (negative) value = -value;
  return internal::Encode(value * BigPow10(scale - natural), scale, arena);
}

}  // namespace cellar::numeric
