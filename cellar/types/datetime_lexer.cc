// Fields and words of dates, times and intervals.
#include "cellar/types/datetime_lexer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "cellar/base/sqlstate.h"

namespace cellar::internal {
namespace {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsDigit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
bool IsAlpha(char c) { return Lower(c) >= 'a' && Lower(c) <= 'z'; }
bool IsPunctuation(char c) { return c > ' ' && c < 127 && !IsDigit(c) && !IsAlpha(c); }

struct WordEntry {
  std::string_view text;
  Word word;
  int value;
};

// Sorted by text.
constexpr WordEntry kWords[] = {
    {"-infinity", Word::kNegativeInfinity, 0},
    {"ad", Word::kEra, 0},
    {"allballs", Word::kZulu, 0},
    {"am", Word::kAmPm, 0},
    {"apr", Word::kMonth, 4},
    {"april", Word::kMonth, 4},
    {"at", Word::kIgnored, 0},
    {"aug", Word::kMonth, 8},
    {"august", Word::kMonth, 8},
    {"bc", Word::kEra, 1},
    {"dec", Word::kMonth, 12},
    {"december", Word::kMonth, 12},
    {"dst", Word::kDaylight, 0},
    {"epoch", Word::kEpoch, 0},
    {"feb", Word::kMonth, 2},
    {"february", Word::kMonth, 2},
    {"fri", Word::kDayOfWeek, 5},
    {"friday", Word::kDayOfWeek, 5},
    {"infinity", Word::kInfinity, 0},
    {"j", Word::kJulian, 0},
    {"jan", Word::kMonth, 1},
    {"january", Word::kMonth, 1},
    {"jd", Word::kJulian, 0},
    {"jul", Word::kMonth, 7},
    {"julian", Word::kJulian, 0},
    {"july", Word::kMonth, 7},
    {"jun", Word::kMonth, 6},
    {"june", Word::kMonth, 6},
    {"mar", Word::kMonth, 3},
    {"march", Word::kMonth, 3},
    {"may", Word::kMonth, 5},
    {"mon", Word::kDayOfWeek, 1},
    {"monday", Word::kDayOfWeek, 1},
    {"nov", Word::kMonth, 11},
    {"november", Word::kMonth, 11},
    {"now", Word::kNow, 0},
    {"oct", Word::kMonth, 10},
    {"october", Word::kMonth, 10},
    {"on", Word::kIgnored, 0},
    {"pm", Word::kAmPm, 1},
    {"sat", Word::kDayOfWeek, 6},
    {"saturday", Word::kDayOfWeek, 6},
    {"sep", Word::kMonth, 9},
    {"sept", Word::kMonth, 9},
    {"september", Word::kMonth, 9},
    {"sun", Word::kDayOfWeek, 0},
    {"sunday", Word::kDayOfWeek, 0},
    {"t", Word::kIsoTime, 0},
    {"thu", Word::kDayOfWeek, 4},
    {"thur", Word::kDayOfWeek, 4},
    {"thurs", Word::kDayOfWeek, 4},
    {"thursday", Word::kDayOfWeek, 4},
    {"today", Word::kToday, 0},
    {"tomorrow", Word::kTomorrow, 0},
    {"tue", Word::kDayOfWeek, 2},
    {"tues", Word::kDayOfWeek, 2},
    {"tuesday", Word::kDayOfWeek, 2},
    {"wed", Word::kDayOfWeek, 3},
    {"wednesday", Word::kDayOfWeek, 3},
    {"weds", Word::kDayOfWeek, 3},
    {"yesterday", Word::kYesterday, 0},
};

}  // namespace

Word FindWord(std::string_view lower, int* value) {
  const auto* found = std::lower_bound(
      std::begin(kWords), std::end(kWords), lower,
      [](const WordEntry& entry, std::string_view text) { return entry.text < text; });
  if (found == std::end(kWords) || found->text != lower) return Word::kUnknown;
  *value = found->value;
  return found->word;
}

namespace {

// Letters that end where digits begin: "j2451187", "1y2mon"; others go on as a date or zone name.
bool IsKeyword(std::string_view lower) {
  constexpr std::string_view kUnitWords[] = {"d", "h",   "m",   "mm",     "s",
                                             "y", "dow", "doy", "isodow", "isoyear"};
  int ignored;
  return std::find(std::begin(kUnitWords), std::end(kUnitWords), lower) != std::end(kUnitWords) ||
         FindWord(lower, &ignored) != Word::kUnknown;
}

}  // namespace

bool DateTimeLexer::Split(std::string_view text) {
  size_t used = 0;
  size_t i = 0;
  auto peek = [&](size_t k = 0) { return i + k < text.size() ? text[i + k] : '\0'; };
  auto take = [&] {
    if (used < sizeof(buffer_)) buffer_[used] = Lower(text[i]);
    ++used;
    ++i;
  };
  while (i < text.size()) {
    if (IsSpace(text[i])) {
      ++i;
      continue;
    }
    if (count_ == kMaxFields) return false;
    const size_t start = used;
    FieldKind kind;
    if (IsDigit(text[i])) {
      while (IsDigit(peek())) take();
      const char delimiter = peek();
      if (delimiter == ':') {
        kind = FieldKind::kTime;
        while (IsDigit(peek()) || peek() == ':' || peek() == '.') take();
      } else if (delimiter == '-' || delimiter == '/' || delimiter == '.') {
        take();
        if (IsDigit(peek())) {
          kind = delimiter == '.' ? FieldKind::kNumber : FieldKind::kDate;
          while (IsDigit(peek())) take();
          // Three fields need the same delimiter twice.
          if (peek() == delimiter) {
            kind = FieldKind::kDate;
            take();
            while (IsDigit(peek()) || peek() == delimiter) take();
          }
        } else {
          kind = FieldKind::kDate;
          while (IsDigit(peek()) || IsAlpha(peek()) || peek() == delimiter) take();
        }
      } else {
        kind = FieldKind::kNumber;
      }
    } else if (text[i] == '.') {
      kind = FieldKind::kNumber;
      take();
      while (IsDigit(peek())) take();
    } else if (IsAlpha(text[i])) {
      kind = FieldKind::kString;
      while (IsAlpha(peek())) take();
      const char next = peek();
      bool date = next == '-' || next == '/' || next == '.';
      if (!date && (next == '+' || IsDigit(next))) {
        if (used > sizeof(buffer_)) return false;
        date = !IsKeyword({buffer_ + start, used - start});
      }
      if (date) {
        kind = FieldKind::kDate;
        do {
          take();
        } while (peek() == '+' || peek() == '-' || peek() == '/' || peek() == '_' ||
                 peek() == '.' || peek() == ':' || IsDigit(peek()) || IsAlpha(peek()));
      }
    } else if (text[i] == '+' || text[i] == '-') {
      take();
      while (IsSpace(peek())) ++i;
      if (IsDigit(peek())) {
        kind = FieldKind::kZone;
        while (IsDigit(peek()) || peek() == ':' || peek() == '.' || peek() == '-') take();
      } else if (IsAlpha(peek())) {
        kind = FieldKind::kSpecial;
        while (IsAlpha(peek())) take();
      } else {
        return false;
      }
    } else if (IsPunctuation(text[i])) {
      ++i;
      continue;
    } else {
      return false;
    }
    if (used > sizeof(buffer_)) return false;
    fields_[count_++] = {kind, {buffer_ + start, used - start}};
  }
  return true;
}

Status DateTimeError(DateTimeFailure failure, std::string_view text, std::string_view type) {
  switch (failure) {
    case DateTimeFailure::kNone: return Status();
    case DateTimeFailure::kFieldOverflow:
      return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow,
                      "date/time field value out of range: \"{}\"", text);
    case DateTimeFailure::kMonthDayOverflow:
      return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow,
                      "date/time field value out of range: \"{}\"", text)
          .WithHint("Perhaps you need a different \"datestyle\" setting.");
    case DateTimeFailure::kIntervalOverflow:
      return SqlError(Code::kInvalid, sqlstate::kIntervalFieldOverflow,
                      "interval field value out of range: \"{}\"", text);
    case DateTimeFailure::kZoneOverflow:
      return SqlError(Code::kInvalid, "22009", "time zone displacement out of range: \"{}\"", text);
    case DateTimeFailure::kUnknownZone:
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "time zone \"{}\" not recognized", text);
    case DateTimeFailure::kBadFormat: break;
  }
  return SqlError(Code::kInvalid, sqlstate::kInvalidDatetimeFormat,
                  "invalid input syntax for type {}: \"{}\"", type, text);
}

bool TakeInteger(std::string_view* text, int64_t* out, bool* overflow) {
  size_t i = 0;
  bool negative = false;
  if (!text->empty() && ((*text)[0] == '-' || (*text)[0] == '+')) {
    negative = (*text)[0] == '-';
    i = 1;
  }
  const size_t first = i;
  int64_t value = 0;
  for (; i < text->size() && IsDigit((*text)[i]); ++i) {
    const int digit = (*text)[i] - '0';
    *overflow |= __builtin_mul_overflow(value, int64_t{10}, &value) ||
                 __builtin_sub_overflow(value, int64_t{digit}, &value);
  }
  if (i == first) return false;
  // Gathered as a negative number, for that range is one larger.
  if (!negative) *overflow |= __builtin_sub_overflow(int64_t{0}, value, &value);
  *out = value;
  text->remove_prefix(i);
  return true;
}

bool ParseFraction(std::string_view text, double* out) {
  *out = 0;
  if (text.size() == 1) return true;  // "1." is 1
  for (char c : text.substr(1)) {
    if (!IsDigit(c)) return false;
  }
  return std::from_chars(text.data(), text.data() + text.size(), *out).ec !=
         std::errc::invalid_argument;
}

bool ParseFractionMicros(std::string_view text, int* out) {
  double fraction;
  if (!ParseFraction(text, &fraction)) return false;
  *out = static_cast<int>(std::rint(fraction * 1e6));
  return true;
}

}  // namespace cellar::internal
