// Cuts the text of a date, time or interval into fields and knows the words they may be; for the
// parsers of datetime_parse.cc and interval_text.cc. The division is PostgreSQL's (manual, appendix
// B.1).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cellar/base/status.h"
#include "cellar/types/type.h"

namespace cellar::internal {

enum class FieldKind : uint8_t {
  kNumber,   // digits, perhaps with a fraction
  kString,   // letters
  kDate,     // digits and letters with separators, or a zone name
  kTime,     // has a colon
  kZone,     // a sign, then a digit
  kSpecial,  // a sign, then letters
};
struct DateTimeFieldText {
  FieldKind kind;
  std::string_view text;  // lower case
};

// Holds the fields' text. One use.
class DateTimeLexer {
 public:
  // False for characters that no date or time has, or too many fields.
  bool Split(std::string_view text);
  std::span<const DateTimeFieldText> fields() const { return {fields_, count_}; }

 private:
  static constexpr size_t kMaxFields = 25;
  char buffer_[256];
  DateTimeFieldText fields_[kMaxFields];
  size_t count_ = 0;
};

// What a word of a date means.
enum class Word : uint8_t {
  kUnknown,
  kIgnored,  // "at", "on"
  kMonth,    // value 1..12
  kDayOfWeek,
  kAmPm,      // value 1 for PM
  kEra,       // value 1 for BC
  kIsoTime,   // "t"
  kJulian,    // "j", "jd", "julian"
  kDaylight,  // "dst"
  kNow,
  kToday,
  kTomorrow,
  kYesterday,
  kZulu,  // "allballs"
  kEpoch,
  kInfinity,
  kNegativeInfinity,
};
Word FindWord(std::string_view lower, int* value);

// How decoding failed; DateTimeError makes the Status.
enum class DateTimeFailure : uint8_t {
  kNone,
  kBadFormat,
  kFieldOverflow,
  kMonthDayOverflow,  // a different DateStyle may help
  kIntervalOverflow,
  kZoneOverflow,
  kUnknownZone,  // the text is its name
};
Status DateTimeError(DateTimeFailure failure, std::string_view text, std::string_view type);

// Reads digits at the front of `*text` (a sign too) into an int64. False on no digit; sets
// *overflow.
bool TakeInteger(std::string_view* text, int64_t* out, bool* overflow);
// ".123" -> 0.123. False if anything but digits follows the point.
bool ParseFraction(std::string_view text, double* out);
// The same in microseconds, rounded.
bool ParseFractionMicros(std::string_view text, int* out);

}  // namespace cellar::internal
