// Integers behind NUMERIC: encoding, rescaling, counting digits, PostgreSQL's rules for result
// scales.
#include "cellar/types/numeric_internal.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cellar/base/interrupt.h"
#include "cellar/base/sqlstate.h"

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

namespace {

// Digits that one 64-bit word holds.
constexpr size_t kWordDigits = 19;

// Appends exactly `width` digits of magnitude < 10^width.
void AppendPadded(const BigInt& magnitude, size_t width, std::string* out) {
  if (width <= kWordDigits) {
    const std::string digits = std::to_string(static_cast<uint64_t>(magnitude));
    out->append(width - digits.size(), '0');
    out->append(digits);
    return;
  }
  const size_t low_width = width / 2;
  BigInt high, low;
  boost::multiprecision::divide_qr(magnitude, BigPow10(static_cast<int>(low_width)), high, low);
  AppendPadded(high, width - low_width, out);
  AppendPadded(low, low_width, out);
}

}  // namespace

BigInt BigFromDigits(std::string_view digits) {
  if (digits.size() <= kWordDigits) {
    uint64_t value = 0;
    for (char c : digits) value = value * 10 + static_cast<uint64_t>(c - '0');
    return value;
  }
  const size_t low = digits.size() / 2;
  return BigFromDigits(digits.substr(0, digits.size() - low)) * BigPow10(static_cast<int>(low)) +
         BigFromDigits(digits.substr(digits.size() - low));
}

std::string DigitsOf(const BigInt& magnitude) {
  std::string out;
  AppendPadded(magnitude, static_cast<size_t>(CountDigits(magnitude)), &out);
  return out;
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
  // What is done with tens of thousands of digits takes milliseconds: it is a step for each byte.
  PollSteps(n.size());
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

}  // namespace cellar::numeric
