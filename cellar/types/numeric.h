// NUMERIC with PostgreSQL's semantics: exact decimals of arbitrary precision that keep a display
// scale, NaN and the infinities.
//
// In-memory bytes (a Datum's kBytes; not persisted, see docs/formats for what is):
//   [1][scale: u8][unscaled: int64 LE]               10 bytes; scale <= 255
//   [2][scale: u8][unscaled: int128 LE]              18 bytes; when it does not fit the first
//   [3][negative: u8][scale: u16 LE][magnitude LE]   any other; magnitude without high zero bytes
//   [4] -Infinity   [5] Infinity   [6] NaN           1 byte
// Value = unscaled / 10^scale; scale is the display scale (0..16383). Invariant: one value of one
// display scale has one form, so equal bytes are equal values (and 1.0 and 1.00 differ in bytes
// only).
//
// Functions that may overflow answer kInvalid with SQLSTATE 22003 ("value overflows numeric
// format"); results live in the arena given. All functions expect bytes made by this file.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cellar/base/arena.h"
#include "cellar/base/status.h"
#include "cellar/types/datum.h"

namespace cellar::numeric {

__extension__ typedef __int128 int128_t;
__extension__ typedef unsigned __int128 uint128_t;

inline constexpr int kMaxDisplayScale = 16383;
inline constexpr int kMaxIntegerDigits = 131072;  // decimal digits before the point

enum class Kind : uint8_t { kFinite, kNegativeInfinity, kInfinity, kNaN };

inline Kind KindOf(std::string_view n) {
  switch (n[0]) {
    case 4: return Kind::kNegativeInfinity;
    case 5: return Kind::kInfinity;
    case 6: return Kind::kNaN;
    default: return Kind::kFinite;
  }
}
inline bool IsFinite(std::string_view n) { return n[0] < 4; }
inline bool IsNaN(std::string_view n) { return n[0] == 6; }

// The 10-byte form, which nearly all values have: true and its parts, or false for any other form.
inline bool AsSmall(std::string_view n, int64_t* unscaled, int* scale) {
  if (n[0] != 1) return false;
  *scale = static_cast<uint8_t>(n[1]);
  std::memcpy(unscaled, n.data() + 2, 8);
  return true;
}

inline constexpr size_t kSmallBytes = 10;
// Writes that form, kSmallBytes of it. 0 <= scale <= 255.
inline void WriteSmall(int64_t unscaled, int scale, char* out) {
  const auto value = static_cast<uint64_t>(unscaled);
  const uint64_t head = 1 | static_cast<uint64_t>(scale) << 8 | value << 16;
  const auto tail = static_cast<uint16_t>(value >> 48);
  std::memcpy(out, &head, 8);
  std::memcpy(out + 8, &tail, 2);
}

// ---- Making and reading ----

// unscaled / 10^scale, shown with `scale` digits after the point; 0 <= scale <= 255.
std::string_view Make(int128_t unscaled, int scale, Arena* arena);
inline std::string_view FromInt64(int64_t value, Arena* arena) {
  char* out = arena->Allocate(10);
  out[0] = 1;
  out[1] = 0;
  std::memcpy(out + 2, &value, 8);
  return {out, 10};
}
std::string_view MakeNaN();
std::string_view MakeInfinity(bool negative);
// As PostgreSQL's casts: 15 significant digits of a float8, 6 of a float4.
std::string_view FromDouble(double value, Arena* arena);
std::string_view FromFloat(float value, Arena* arena);

// Rounded half away from zero. Errors: 22003 "bigint out of range" (integer, smallint);
// 0A000 "cannot convert NaN to bigint".
Result<int64_t> ToInt64(std::string_view n);
Result<int64_t> ToInt32(std::string_view n);
Result<int64_t> ToInt16(std::string_view n);
// Errors: 22003 when the value is beyond the type's range.
Result<double> ToDouble(std::string_view n);
Result<double> ToFloat(std::string_view n);  // rounded to float
// Like ToDouble, without errors: overflow is an infinity. For estimates and comparisons.
double ToDoubleApproximate(std::string_view n);

// Blanks around are allowed. Errors: 22P02 'invalid input syntax for type numeric: "x"', 22003.
Result<std::string_view> Parse(std::string_view text, Arena* arena);
void AppendText(std::string_view n, std::string* out);
// As to_char's EEEE and scientific output: d.ddde+XX with `scale` digits after the point.
void AppendScientific(std::string_view n, int scale, std::string* out);

// PostgreSQL's numeric_send form: ndigits, weight, sign, dscale, base-10000 digits; all 16 bits
// big-endian.
void AppendBinary(std::string_view n, std::string* out);
// Errors: 22P03 "invalid sign in external \"numeric\" value" and the like; 08P01 for a short
// buffer.
Result<std::string_view> ParseBinary(std::string_view bytes, Arena* arena);

// The rounding and the check that numeric(p,s) asks; `modifier` as in Type. Errors: 22003 "numeric
// field overflow" with detail.
Result<std::string_view> ApplyModifier(std::string_view n, int32_t modifier, Arena* arena);
// Precision and scale of a modifier (scale may be negative), and back.
struct PrecisionScale {
  int precision = 0;
  int scale = 0;
};
PrecisionScale ModifierParts(int32_t modifier);
// Errors: 22023 "NUMERIC precision 2000 must be between 1 and 1000".
Result<int32_t> MakeModifier(int precision, int scale);

// ---- Order ----

// -1, 0, 1 of -Infinity < finite < Infinity < NaN; NaN equals itself.
int Compare(std::string_view a, std::string_view b);
inline bool Equal(std::string_view a, std::string_view b) { return a == b || Compare(a, b) == 0; }
// Same for all display scales of one value.
uint64_t Hash(std::string_view n);
// The greatest integer i with i / 10^scale <= n, and whether they are equal. What is beyond +-2^64,
// as the infinities and NaN (greatest) are, is +-2^64. 0 <= scale <= 255.
int128_t FloorAtScale(std::string_view n, int scale, bool* equal);
// -1, 0, 1; 0 for NaN.
int SignOf(std::string_view n);

// ---- Arithmetic ----

Result<std::string_view> Add(std::string_view a, std::string_view b, Arena* arena);
Result<std::string_view> Subtract(std::string_view a, std::string_view b, Arena* arena);
Result<std::string_view> Multiply(std::string_view a, std::string_view b, Arena* arena);
// Errors: 22012 "division by zero". Display scale by PostgreSQL's rule: at least 16 significant
// digits.
Result<std::string_view> Divide(std::string_view a, std::string_view b, Arena* arena);
Result<std::string_view> DivideTruncated(std::string_view a, std::string_view b,
                                         Arena* arena);  // div()
Result<std::string_view> Modulo(std::string_view a, std::string_view b, Arena* arena);
std::string_view Negate(std::string_view n, Arena* arena);
std::string_view Abs(std::string_view n, Arena* arena);
std::string_view Sign(std::string_view n, Arena* arena);
Result<std::string_view> Ceil(std::string_view n, Arena* arena);
Result<std::string_view> Floor(std::string_view n, Arena* arena);
// `scale` may be negative; half away from zero.
Result<std::string_view> Round(std::string_view n, int scale, Arena* arena);
Result<std::string_view> Truncate(std::string_view n, int scale, Arena* arena);
// Errors: 2201F "cannot take square root of a negative number".
Result<std::string_view> Sqrt(std::string_view n, Arena* arena);
Result<std::string_view> Exp(std::string_view n, Arena* arena);
// Errors: 2201E "cannot take logarithm of zero" / "... of a negative number".
Result<std::string_view> Ln(std::string_view n, Arena* arena);
Result<std::string_view> Log(std::string_view base, std::string_view n, Arena* arena);
Result<std::string_view> Log10(std::string_view n, Arena* arena);
// Errors: 2201F for zero to a negative power, a negative number to a non-integer power.
Result<std::string_view> Power(std::string_view base, std::string_view exponent, Arena* arena);
Result<std::string_view> Factorial(int64_t n, Arena* arena);
Result<std::string_view> Gcd(std::string_view a, std::string_view b, Arena* arena);
Result<std::string_view> Lcm(std::string_view a, std::string_view b, Arena* arena);

// Digits after the point: as shown; the least that holds the value (nullopt for NaN and
// infinities).
int DisplayScale(std::string_view n);
std::optional<int> MinScale(std::string_view n);
std::string_view TrimScale(std::string_view n, Arena* arena);

// ---- Aggregates ----

// A running exact sum: int128 while it fits, arbitrary precision afterwards. One thread at a time.
// Copyable.
class Accumulator {
 public:
  Accumulator();
  Accumulator(const Accumulator& other);
  Accumulator& operator=(const Accumulator& other);
  Accumulator(Accumulator&&) noexcept;
  Accumulator& operator=(Accumulator&&) noexcept;
  ~Accumulator();

  void Add(std::string_view n) {
    if (n[0] == 1 && static_cast<uint8_t>(n[1]) == scale_) {
      int64_t unscaled;
      std::memcpy(&unscaled, n.data() + 2, 8);
      sum_ += unscaled;  // cannot overflow: |sum_| < 2^126 by SpillIfLarge
      ++count_;
      if ((count_ & 0xFFFFF) == 0) SpillIfLarge();
      return;
    }
    AddSlow(n);
  }
  void AddInt(int64_t value) {
    if (scale_ == 0) {
      sum_ += value;
      ++count_;
      if ((count_ & 0xFFFFF) == 0) SpillIfLarge();
      return;
    }
    AddIntSlow(value);
  }
  // Takes back an Add of a value (moving window frames).
  void Remove(std::string_view n);
  void Merge(const Accumulator& other);

  // Values added (minus removed).
  int64_t count() const { return count_; }
  // sum(): display scale is the greatest seen. Undefined for count() == 0 (SQL's answer is NULL).
  Result<std::string_view> Sum(Arena* arena) const;
  // avg(): Sum / count by Divide's rule.
  Result<std::string_view> Average(Arena* arena) const;
  size_t footprint_bytes() const;

 private:
  struct Large;
  void AddSlow(std::string_view n);
  void AddIntSlow(int64_t value);
  void SpillIfLarge();
  void Spill();

  int128_t sum_ = 0;  // unscaled at scale_
  int scale_ = 0;
  int64_t count_ = 0;
  std::unique_ptr<Large> large_;  // what no longer fits sum_, and the counts of NaN and infinities
};

// var_*/stddev_* of numerics and integers: exact sums of x and x^2. One thread at a time.
class VarianceAccumulator {
 public:
  VarianceAccumulator() = default;
  Status Add(std::string_view n);
  void Merge(const VarianceAccumulator& other);
  int64_t count() const { return sum_.count(); }
  // Undefined for count() == 0, and for count() == 1 when `sample` (SQL's answer is NULL).
  Result<std::string_view> Variance(bool sample, Arena* arena) const;
  Result<std::string_view> StandardDeviation(bool sample, Arena* arena) const;

 private:
  Accumulator sum_;
  Accumulator squares_;
  Arena scratch_;
};

// ---- For the key encoding (docs/formats/key.md, section 3) ----

// |value| = 0.d1 d2 d3.. x 100^exponent with base-100 digits, d1 not 0, the last not 0.
class KeyDigits {
 public:
  bool negative = false;
  int32_t exponent = 0;
  // digits() has at least one entry for a non-zero value, each 0..99; valid while this lives.
  std::span<const uint8_t> digits() const {
    return {large_.empty() ? inline_ : reinterpret_cast<const uint8_t*>(large_.data()), size_};
  }

 private:
  friend void ToKeyDigits(std::string_view n, KeyDigits* out);
  uint8_t inline_[24];
  size_t size_ = 0;
  std::string large_;
};
// `n` is finite and not zero (SignOf(n) != 0). No allocation up to 38 decimal digits.
void ToKeyDigits(std::string_view n, KeyDigits* out);
// The value back, shown with `display_scale` digits after the point, or with the least that hold it
// when that is more (so 0 asks for the shortest). Errors: kCorruption if a digit is above 99, the
// first or last is 0, there is none, or the exponent is out of range.
Result<std::string_view> FromKeyDigits(bool negative, int32_t exponent,
                                       std::span<const uint8_t> digits, int display_scale,
                                       Arena* arena);

}  // namespace cellar::numeric
