// Text forms of bool, integers, floats, bytea and uuid.
#include "cellar/types/scalar_text.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "cellar/base/interrupt.h"
#include "cellar/base/sqlstate.h"
#include "cellar/types/value_size.h"

namespace cellar {
namespace {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

// Lower case of an ASCII letter; other bytes as they are.
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool EqualsIgnoringCase(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (Lower(text[i]) != lower[i]) return false;
  }
  return true;
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = Lower(c);
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

constexpr char kHex[] = "0123456789abcdef";

Status OutOfRange(std::string_view type, std::string_view text) {
  return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                  "value \"{}\" is out of range for type {}", text, type);
}

template <typename Float>
Result<double> ParseFloat(std::string_view text, std::string_view type) {
  std::string_view body = Trim(text);
  bool negative = false;
  std::string_view digits = body;
  if (!digits.empty() && (digits[0] == '+' || digits[0] == '-')) {
    negative = digits[0] == '-';
    digits.remove_prefix(1);
  }
  Float value = 0;
  if (!digits.empty() && (digits[0] == '.' || (digits[0] >= '0' && digits[0] <= '9'))) {
    std::from_chars_result parsed;
    if (digits.size() > 2 && digits[0] == '0' && Lower(digits[1]) == 'x') {
      parsed = std::from_chars(digits.data() + 2, digits.data() + digits.size(), value,
                               std::chars_format::hex);
    } else {
      parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    }
    if (parsed.ptr != digits.data() + digits.size()) return InvalidInput(type, text);
    bool out_of_range = parsed.ec == std::errc::result_out_of_range || std::isinf(value);
    if (parsed.ec == std::errc::invalid_argument) return InvalidInput(type, text);
    if (value == 0 && !out_of_range) {
      for (char c : digits) {
        if (c == 'e' || c == 'E') break;
        if (c >= '1' && c <= '9') out_of_range = true;
      }
    }
    if (out_of_range) {
      return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                      "\"{}\" is out of range for type {}", text, type);
    }
  } else if (EqualsIgnoringCase(digits, "nan")) {
    return std::numeric_limits<double>::quiet_NaN();
  } else if (EqualsIgnoringCase(digits, "infinity") || EqualsIgnoringCase(digits, "inf")) {
    value = std::numeric_limits<Float>::infinity();
  } else {
    return InvalidInput(type, text);
  }
  return static_cast<double>(negative ? -value : value);
}

__extension__ typedef unsigned __int128 Wide;

// Whether the shortest digits of a large even float may lie exactly between it and a neighbour.
// They read back, for halves round to even, but PostgreSQL only takes digits nearer to the float
// than to any other.
template <typename Float>
bool IsBetweenFloats(Float value, std::string_view scientific) {
  value = std::fabs(value);
  if (!(value >= std::ldexp(Float{1}, std::numeric_limits<Float>::digits)) ||
      value > Float{3e38f}) {
    return false;
  }
  Wide decimal = 0;
  int exponent = 0;
  int places = -1;
  for (size_t i = 0; i < scientific.size(); ++i) {
    const char c = scientific[i];
    if (c == 'e') {
      std::from_chars(scientific.data() + i + 2, scientific.data() + scientific.size(), exponent);
      break;
    }
    if (c == '.' || c == '-') continue;
    decimal = decimal * 10 + static_cast<unsigned>(c - '0');
    ++places;
  }
  for (; places < exponent; ++places) decimal *= 10;
  const auto exact = static_cast<Wide>(value);
  const Wide distance = decimal > exact ? decimal - exact : exact - decimal;
  const Float neighbour =
      std::nextafter(value, decimal > exact ? std::numeric_limits<Float>::infinity() : Float{0});
  const auto other = static_cast<Wide>(neighbour);
  const Wide gap = other > exact ? other - exact : exact - other;
  return distance * 2 == gap;
}

// to_chars, with the rule above.
template <typename Float>
char* WriteShortest(Float value, char* begin, char* end) {
  auto written = std::to_chars(begin, end, value, std::chars_format::scientific);
  if (!IsBetweenFloats(value, {begin, static_cast<size_t>(written.ptr - begin)}))
    return written.ptr;
  for (int places = 1; places < std::numeric_limits<Float>::max_digits10; ++places) {
    written = std::to_chars(begin, end, value, std::chars_format::scientific, places);
    Float back = 0;
    std::from_chars(begin, written.ptr, back);
    if (back == value &&
        !IsBetweenFloats(value, {begin, static_cast<size_t>(written.ptr - begin)})) {
      break;
    }
  }
  return written.ptr;
}

// The shortest digits that read back, laid out as PostgreSQL does: scientific outside 1e-4 <= x <
// 10^wide.
template <typename Float>
void AppendShortest(Float value, int wide, std::string* out) {
  char buffer[40];
  char* const end = WriteShortest(value, buffer, buffer + sizeof(buffer));
  // [-]d[.ddd]e[+-]dd
  const char* p = buffer;
  if (*p == '-') {
    out->push_back('-');
    ++p;
  }
  char digits[24];
  size_t count = 0;
  for (; *p != 'e'; ++p) {
    if (*p != '.') digits[count++] = *p;
  }
  const std::string_view tail(p, static_cast<size_t>(end - p));
  int exponent = 0;
  std::from_chars(p + 2, end, exponent);
  if (p[1] == '-') exponent = -exponent;
  if (exponent < -4 || exponent >= wide) {
    out->push_back(digits[0]);
    if (count > 1) {
      out->push_back('.');
      out->append(digits + 1, count - 1);
    }
    out->append(tail);
    return;
  }
  if (exponent < 0) {
    out->append("0.");
    out->append(static_cast<size_t>(-exponent - 1), '0');
    out->append(digits, count);
    return;
  }
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (count <= whole) {
    out->append(digits, count);
    out->append(whole - count, '0');
    return;
  }
  out->append(digits, whole);
  out->push_back('.');
  out->append(digits + whole, count - whole);
}

template <typename Float>
void AppendFloat(Float value, int precision, bool shortest, int wide, std::string* out) {
  if (std::isnan(value)) {
    out->append("NaN");
  } else if (std::isinf(value)) {
    out->append(value < 0 ? "-Infinity" : "Infinity");
  } else if (shortest) {
    AppendShortest(value, wide, out);
  } else {
    char buffer[64];
    auto end = std::to_chars(buffer, buffer + sizeof(buffer), static_cast<double>(value),
                             std::chars_format::general, precision < 1 ? 1 : precision);
    out->append(buffer, end.ptr);
  }
}

}  // namespace

Status InvalidInput(std::string_view type, std::string_view text) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidTextRepresentation,
                  "invalid input syntax for type {}: \"{}\"", type, text);
}

Result<bool> ParseBool(std::string_view text) {
  const std::string_view word = Trim(text);
  struct Spelling {
    std::string_view word;
    size_t least;  // characters that make it unique
    bool value;
  };
  static constexpr Spelling kSpellings[] = {
      {"true", 1, true}, {"false", 1, false}, {"yes", 1, true}, {"no", 1, false},
      {"on", 2, true},   {"off", 2, false},   {"1", 1, true},   {"0", 1, false}};
  for (const Spelling& spelling : kSpellings) {
    if (word.size() >= spelling.least && word.size() <= spelling.word.size() &&
        EqualsIgnoringCase(word, spelling.word.substr(0, word.size()))) {
      return spelling.value;
    }
  }
  return InvalidInput("boolean", text);
}

Result<int64_t> ParseInteger(std::string_view text, TypeId type) {
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end && IsSpace(*p)) ++p;
  bool negative = false;
  if (p < end && (*p == '-' || *p == '+')) negative = *p++ == '-';
  const char* first = p;
  uint64_t magnitude = 0;
  bool overflow = false;
  for (; p < end; ++p) {
    const auto digit = static_cast<unsigned char>(*p - '0');
    if (digit > 9) break;
    overflow |= p - first >= 18 && (__builtin_mul_overflow(magnitude, uint64_t{10}, &magnitude) ||
                                    __builtin_add_overflow(magnitude, uint64_t{digit}, &magnitude));
    if (p - first < 18) magnitude = magnitude * 10 + digit;
  }
  const bool no_digits = p == first;
  while (p < end && IsSpace(*p)) ++p;
  std::string_view name;
  int64_t max;
  switch (type) {
    case TypeId::kInt2: name = "smallint", max = INT16_MAX; break;
    case TypeId::kInt4: name = "integer", max = INT32_MAX; break;
    default: name = "bigint", max = INT64_MAX; break;
  }
  if (no_digits || p != end) return InvalidInput(name, text);
  if (overflow || magnitude > static_cast<uint64_t>(max) + (negative ? 1 : 0)) {
    return OutOfRange(name, text);
  }
  return static_cast<int64_t>(negative ? uint64_t{0} - magnitude : magnitude);
}

Result<int64_t> ParseOid(std::string_view text, std::string_view type) {
  auto value = ParseInteger(text, TypeId::kInt8);
  if (!value.ok()) {
    return value.status().sqlstate() == sqlstate::kNumericValueOutOfRange
               ? OutOfRange(type, text)
               : InvalidInput(type, text);
  }
  if (*value > UINT32_MAX || *value < INT32_MIN) return OutOfRange(type, text);
  return static_cast<int64_t>(static_cast<uint32_t>(*value));
}

Result<double> ParseFloat8(std::string_view text) {
  return ParseFloat<double>(text, "double precision");
}
Result<double> ParseFloat4(std::string_view text) { return ParseFloat<float>(text, "real"); }

Result<std::string_view> ParseBytea(std::string_view text, Arena* arena) {
  if (text.size() >= 2 && text[0] == '\\' && text[1] == 'x') {
    CELLAR_TRY(CheckValueSize(text.size() / 2 - 1));
    char* out = arena->Allocate(text.size() / 2);
    size_t size = 0;
    int high = -1;
    for (size_t i = 2; i < text.size(); ++i) {
      PollSteps();
      const char c = text[i];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        if (high >= 0) break;  // blanks only between pairs
        continue;
      }
      const int digit = HexValue(c);
      if (digit < 0) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                        "invalid hexadecimal digit: \"{}\"", c);
      }
      if (high < 0) {
        high = digit;
      } else {
        out[size++] = static_cast<char>(high * 16 + digit);
        high = -1;
      }
    }
    if (high >= 0) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "invalid hexadecimal data: odd number of digits");
    }
    return std::string_view(out, size);
  }
  // An octal byte takes four characters.
  CELLAR_TRY(CheckValueSize(text.size() / 4));
  char* out = arena->Allocate(text.size());
  size_t size = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    PollSteps();
    if (text[i] != '\\') {
      out[size++] = text[i];
      continue;
    }
    auto octal = [&](size_t k, char max) {
      return i + k < text.size() && text[i + k] >= '0' && text[i + k] <= max;
    };
    if (i + 1 < text.size() && text[i + 1] == '\\') {
      out[size++] = '\\';
      ++i;
    } else if (octal(1, '3') && octal(2, '7') && octal(3, '7')) {
      out[size++] = static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                      (text[i + 3] - '0'));
      i += 3;
    } else {
      return SqlError(Code::kInvalid, sqlstate::kInvalidTextRepresentation,
                      "invalid input syntax for type bytea");
    }
  }
  CELLAR_TRY(CheckValueSize(size));
  return std::string_view(out, size);
}

Result<std::string_view> ParseUuid(std::string_view text, Arena* arena) {
  std::string_view body = text;
  const bool braces = !body.empty() && body[0] == '{';
  if (braces) {
    if (body.back() != '}') return InvalidInput("uuid", text);
    body = body.substr(1, body.size() - 2);
  }
  char* out = arena->Allocate(16);
  size_t at = 0;
  for (size_t i = 0; i < 16; ++i) {
    if (at + 2 > body.size()) return InvalidInput("uuid", text);
    const int high = HexValue(body[at]), low = HexValue(body[at + 1]);
    if (high < 0 || low < 0) return InvalidInput("uuid", text);
    out[i] = static_cast<char>(high * 16 + low);
    at += 2;
    // A hyphen may follow each group of four digits.
    if (i % 2 == 1 && i < 15 && at < body.size() && body[at] == '-') ++at;
  }
  if (at != body.size()) return InvalidInput("uuid", text);
  return std::string_view(out, 16);
}

uint8_t ParseChar(std::string_view text) {
  const auto octal = [&](size_t i) { return text[i] >= '0' && text[i] <= '7'; };
  if (text.size() == 4 && text[0] == '\\' && octal(1) && octal(2) && octal(3))
    return static_cast<uint8_t>((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
  return text.empty() ? 0 : static_cast<uint8_t>(text[0]);
}

void AppendChar(uint8_t value, std::string* out) {
  if (value >= 0x80) {
    const auto digit = [&](int shift) { return static_cast<char>('0' + (value >> shift & 7)); };
    out->insert(out->end(), {'\\', digit(6), digit(3), digit(0)});
  } else if (value != 0) {
    out->push_back(static_cast<char>(value));
  }
}

void AppendInteger(int64_t value, std::string* out) {
  char buffer[24];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  out->append(buffer, end.ptr);
}

void AppendFloat8(double value, int extra_float_digits, std::string* out) {
  AppendFloat(value, 15 + extra_float_digits, extra_float_digits > 0, 15, out);
}
void AppendFloat4(double value, int extra_float_digits, std::string* out) {
  AppendFloat(static_cast<float>(value), 6 + extra_float_digits, extra_float_digits > 0, 6, out);
}

void AppendBytea(std::string_view bytes, ByteaOutput form, std::string* out) {
  if (form == ByteaOutput::kHex) {
    const size_t start = out->size();
    out->resize(start + 2 + 2 * bytes.size());
    char* p = out->data() + start;
    *p++ = '\\';
    *p++ = 'x';
    InPieces(bytes, [&p](std::string_view piece) {
      for (char c : piece) {
        *p++ = kHex[static_cast<uint8_t>(c) >> 4];
        *p++ = kHex[c & 15];
      }
    });
    return;
  }
  for (char c : bytes) {
    PollSteps();
    const auto byte = static_cast<uint8_t>(c);
    if (byte == '\\') {
      out->append("\\\\");
    } else if (byte < 0x20 || byte > 0x7E) {
      out->push_back('\\');
      out->push_back(static_cast<char>('0' + (byte >> 6)));
      out->push_back(static_cast<char>('0' + ((byte >> 3) & 7)));
      out->push_back(static_cast<char>('0' + (byte & 7)));
    } else {
      out->push_back(c);
    }
  }
}

void AppendUuid(std::string_view bytes, std::string* out) {
  char text[36];
  char* p = text;
  for (size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *p++ = '-';
    *p++ = kHex[static_cast<uint8_t>(bytes[i]) >> 4];
    *p++ = kHex[bytes[i] & 15];
  }
  out->append(text, sizeof(text));
}

size_t CountCharacters(std::string_view text) {
  size_t count = 0;
  for (char c : text) count += (c & 0xC0) != 0x80;
  return count;
}

size_t BytesOfCharacters(std::string_view text, size_t characters) {
  size_t i = 0;
  for (; i < text.size(); ++i) {
    if ((text[i] & 0xC0) != 0x80 && characters-- == 0) break;
  }
  return i;
}

}  // namespace cellar
