// NUMERIC as text, in PostgreSQL's binary form, and as digits of keys.
#include <algorithm>
#include <limits>

#include "cellar/base/sqlstate.h"
#include "cellar/types/numeric.h"
#include "cellar/types/numeric_internal.h"

namespace cellar::numeric {

namespace internal {

namespace {

constexpr char kDigitPairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

}  // namespace

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

}  // namespace internal

using internal::Big;
using internal::BigInt;
using internal::BigPow10;
using internal::DecimalDigits;
using internal::DropDigits;
using internal::kDigitPairs;
using internal::ScaleUp;
using internal::ToBig;
using internal::WriteDigits;

namespace {

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
  BigInt value = internal::BigFromDigits(digits);
  if (negative) value = -value;
  return internal::Encode(value, static_cast<int>(scale), arena);
}
}  // namespace

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
  std::string digits = internal::DigitsOf(abs(significand));
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
    big = internal::BigFromDigits(std::string_view(text).substr(first));
    if (sign == kNegative) big = -big;
  }
  if (natural > scale) {
    return internal::Encode(big / BigPow10(natural - scale), scale, arena);
  }
  return internal::Encode(big * BigPow10(scale - natural), scale, arena);
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
  BigInt value = internal::BigFromDigits(text);
  if (negative) value = -value;
  return internal::Encode(value * BigPow10(scale - natural), scale, arena);
}

}  // namespace cellar::numeric
