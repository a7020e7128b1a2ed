// What the files of NUMERIC share: the three in-memory forms as integers, and powers of ten.
// Included by numeric*.cc only, for it brings Boost's big integers.
#pragma once

#include <array>
#include <boost/multiprecision/cpp_int.hpp>
#include <string>
#include <string_view>

#include "cellar/base/arena.h"
#include "cellar/base/status.h"
#include "cellar/types/numeric.h"

namespace cellar::numeric::internal {

// Without expression templates: every operation yields a BigInt, at little cost for these sizes.
using BigInt = boost::multiprecision::number<boost::multiprecision::cpp_int_backend<>,
                                             boost::multiprecision::et_off>;

inline constexpr int kMaxPow10 = 38;  // 10^38 < 2^127 <= 10^39

constexpr std::array<uint128_t, kMaxPow10 + 1> MakePowers() {
  std::array<uint128_t, kMaxPow10 + 1> powers{};
  powers[0] = 1;
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
  return powers;
}
inline constexpr std::array<uint128_t, kMaxPow10 + 1> kPow10 = MakePowers();

inline int128_t Pow10(int n) { return static_cast<int128_t>(kPow10[static_cast<size_t>(n)]); }
inline uint128_t Magnitude(int128_t value) {
  return value < 0 ? uint128_t{0} - static_cast<uint128_t>(value) : static_cast<uint128_t>(value);
}
// value * 10^n without overflow, or false. n >= 0.
inline bool ScaleUp(int128_t value, int n, int128_t* out) {
  if (value == 0) {
    *out = 0;
    return true;
  }
  return n <= kMaxPow10 && !__builtin_mul_overflow(value, Pow10(n), out);
}

// Forms 1 and 2.
inline bool ToSmall(std::string_view n, int128_t* unscaled, int* scale) {
  if (n[0] == 1) {
    int64_t value;
    std::memcpy(&value, n.data() + 2, 8);
    *unscaled = value;
  } else if (n[0] == 2) {
    std::memcpy(unscaled, n.data() + 2, 16);
  } else {
    return false;
  }
  *scale = static_cast<uint8_t>(n[1]);
  return true;
}

// Any finite form. `Big` is a value and the power of ten it is divided by.
struct Big {
  BigInt unscaled;
  int scale = 0;
};
Big ToBig(std::string_view n);
BigInt BigFrom(int128_t value);
BigInt BigPow10(int n);

// The canonical form; 22003 if there are more than kMaxIntegerDigits before the point. A scale
// above kMaxDisplayScale is 22003 too.
Result<std::string_view> Encode(const BigInt& unscaled, int scale, Arena* arena);
// The same for a value whose scale may be above kMaxDisplayScale or below 0: rounds, or multiplies.
Result<std::string_view> EncodeRounded(const BigInt& unscaled, int scale, int new_scale,
                                       Arena* arena);
BigInt Rescale(const BigInt& unscaled, int scale, int new_scale);  // half away from zero
BigInt DivideHalfAway(const BigInt& numerator, const BigInt& denominator);

// A magnitude from its decimal digits and back, by halves: their time grows with the cost of a
// product.
BigInt BigFromDigits(std::string_view digits);
std::string DigitsOf(const BigInt& magnitude);

// Decimal digits of a magnitude; 1 for 0.
int CountDigits(uint128_t magnitude);
int CountDigits(const BigInt& magnitude);

// PostgreSQL keeps base-10000 digits; its rules for result scales ask for the weight and value of
// the first.
struct Leading {
  int weight = 0;
  int first = 0;
  int second = 0;     // the next base-10000 digit
  bool more = false;  // has digits after the first
};
Leading LeadingOf(std::string_view n);
Leading LeadingOf(const BigInt& unscaled, int scale);
// select_div_scale().
int DivisionScale(const Leading& a, int a_scale, const Leading& b, int b_scale);

BigInt SqrtRounded(const BigInt& unscaled, int scale, int result_scale);

Status OverflowError();

// value / 10^drop: rounded half away from zero, or cut.
int128_t DropDigits(int128_t value, int drop, bool round);

// Writes the decimal digits of `value` so that they end at `end`; returns where they start.
char* WriteDigits(uint64_t value, char* end);
char* WriteDigits(uint128_t value, char* end);

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
      large_ = DigitsOf(abs(big.unscaled));
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

}  // namespace cellar::numeric::internal
