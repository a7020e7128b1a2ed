// Helpers that the files of dates and times share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/base/status.h"
#include "cellar/types/datetime.h"

namespace cellar::internal {

inline int64_t FloorDiv(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient - (a % b < 0 ? 1 : 0);  // b > 0
}

inline int64_t TimeOfDay(const Civil& civil) {
  return ((int64_t{civil.hour} * 60 + civil.minute) * 60 + civil.second) * kMicrosPerSecond +
         civil.micros;
}

// Splits 0 <= micros <= one day.
inline void SetTimeOfDay(int64_t micros, Civil* civil) {
  const auto seconds = static_cast<int32_t>(micros / kMicrosPerSecond);
  civil->micros = static_cast<int32_t>(micros - int64_t{seconds} * kMicrosPerSecond);
  civil->second = seconds % 60;
  civil->minute = seconds / 60 % 60;
  civil->hour = seconds / 3600;
}

// 0 is Sunday.
inline int DayOfWeek(int64_t days) {
  const int64_t rest = (days + 6) % 7;  // 2000-01-01 was a Saturday
  return static_cast<int>(rest < 0 ? rest + 7 : rest);
}

// ISO 8601 weeks: Monday first, week 1 holds the year's first Thursday.
struct IsoWeek {
  int64_t year;
  int week;
};
IsoWeek IsoWeekOf(int64_t days);
int64_t DaysFromIsoWeek(int64_t year, int week);  // its Monday

inline constexpr int64_t kJulianOf2000 = 2451545;

Status TimestampOutOfRange();
Result<int64_t> CheckTimestamp(int64_t micros);
// The timestamp of fields in their ranges. Errors: 22008.
Result<int64_t> CheckedTimestamp(const Civil& civil);
// The same where only int64 is the bound: a local reading whose moment in UTC may be in range.
Result<int64_t> TimestampWithoutBounds(const Civil& civil);
Status IntervalOutOfRange();

// Two digits, zero padded.
inline void AppendTwo(int value, std::string* out) {
  out->push_back(static_cast<char>('0' + value / 10));
  out->push_back(static_cast<char>('0' + value % 10));
}
// ".123" of 123000 micros; nothing for 0.
void AppendFraction(int micros, std::string* out);

inline constexpr std::string_view kMonthNames[] = {"January",   "February", "March",    "April",
                                                   "May",       "June",     "July",     "August",
                                                   "September", "October",  "November", "December"};
inline constexpr std::string_view kDayNames[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                 "Thursday", "Friday", "Saturday"};

}  // namespace cellar::internal
