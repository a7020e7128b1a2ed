// Dates, times, timestamps and intervals with PostgreSQL's semantics.
//
// In memory: date is int64 days since 2000-01-01; time is microseconds since midnight
// (0..86400000000); timestamp and timestamptz are microseconds since 2000-01-01 (UTC for
// timestamptz); infinities are the extremes (kDateInfinity, kTimestampInfinity and their negatives,
// as PostgreSQL's). interval is 16 bytes {int64 micros, int32 days, int32 months} and timetz 12
// bytes {int64 micros, int32 seconds west of UTC}, little-endian, in a Datum's kBytes.
//
// Calendar: proleptic Gregorian, year 0 is 1 BC. Errors are kInvalid with SQLSTATE 22007 (syntax),
// 22008 (out of range), 22015 (interval field) or 22023 (unknown unit or zone) and PostgreSQL's
// messages.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cellar/base/arena.h"
#include "cellar/base/status.h"
#include "cellar/types/datum.h"
#include "cellar/types/text_io.h"

namespace cellar {

inline constexpr int64_t kMicrosPerSecond = 1000000;
inline constexpr int64_t kMicrosPerMinute = 60 * kMicrosPerSecond;
inline constexpr int64_t kMicrosPerHour = 60 * kMicrosPerMinute;
inline constexpr int64_t kMicrosPerDay = 24 * kMicrosPerHour;
// Days and seconds from 1970-01-01 to 2000-01-01.
inline constexpr int64_t kUnixEpochDays = 10957;
inline constexpr int64_t kUnixEpochSeconds = kUnixEpochDays * 86400;

inline constexpr int64_t kDateInfinity = INT32_MAX;
inline constexpr int64_t kDateNegativeInfinity = INT32_MIN;
inline constexpr int64_t kTimestampInfinity = INT64_MAX;
inline constexpr int64_t kTimestampNegativeInfinity = INT64_MIN;
// Half-open ranges of finite values: dates from 4714-11-24 BC to 5874897-12-31, timestamps from
// 4714-11-24 BC to 294276-12-31.
inline constexpr int64_t kMinDate = -2451545;
inline constexpr int64_t kEndDate = 2145031949;
inline constexpr int64_t kMinTimestamp = -211813488000000000;
inline constexpr int64_t kEndTimestamp = 9223371331200000000;

inline bool IsFiniteDate(int64_t days) {
  return days != kDateInfinity && days != kDateNegativeInfinity;
}
inline bool IsFiniteTimestamp(int64_t micros) {
  return micros != kTimestampInfinity && micros != kTimestampNegativeInfinity;
}

struct Interval {
  int64_t micros = 0;
  int32_t days = 0;
  int32_t months = 0;
  bool operator==(const Interval&) const = default;  // by fields; CompareIntervals is SQL's order
};
struct TimeTz {
  int64_t micros = 0;
  int32_t zone = 0;  // seconds WEST of UTC
  bool operator==(const TimeTz&) const = default;
};
// Bytes that are none are the zero interval.
inline Interval IntervalOf(std::string_view bytes) {
  Interval out;
  if (bytes.size() == 16) std::memcpy(&out, bytes.data(), 16);
  return out;
}
inline Interval IntervalOf(Datum datum) { return IntervalOf(datum.bytes()); }
inline Datum MakeDatum(Interval value, Arena* arena) {
  char* out = arena->Allocate(16);
  std::memcpy(out, &value, 16);
  return Datum::Bytes({out, 16});
}
inline TimeTz TimeTzOf(std::string_view bytes) {
  TimeTz out;
  if (bytes.size() != 12) return out;
  std::memcpy(&out.micros, bytes.data(), 8);
  std::memcpy(&out.zone, bytes.data() + 8, 4);
  return out;
}
inline TimeTz TimeTzOf(Datum datum) { return TimeTzOf(datum.bytes()); }
inline Datum MakeDatum(TimeTz value, Arena* arena) {
  char* out = arena->Allocate(12);
  std::memcpy(out, &value.micros, 8);
  std::memcpy(out + 8, &value.zone, 4);
  return Datum::Bytes({out, 12});
}

// ---- Time zones ----

// A zone of the tz database or a fixed offset. Immutable, thread-safe.
class TimeZone {
 public:
  // By name, case ignored: "UTC", "Europe/Berlin", "EST5EDT", abbreviations ("PST"), POSIX offsets
  // ("UTC+3",
  // "<+07>-7", "+02"), whose sign means WEST of UTC as in AT TIME ZONE. Null if unknown. Cost:
  // reads a file the first time.
  static std::shared_ptr<const TimeZone> Find(std::string_view name);
  // As SET TIME ZONE reads its value: a plain number ("+02", "-3.5") is hours EAST, the rest like
  // Find, without abbreviations.
  static std::shared_ptr<const TimeZone> FindForSetting(std::string_view value);
  // An empty name becomes POSIX's ("<+02>-02"), as PostgreSQL shows it.
  static std::shared_ptr<const TimeZone> FixedOffset(int seconds_east, std::string name);
  static const TimeZone& Utc();

  ~TimeZone();
  const std::string& name() const { return name_; }
  // Seconds EAST of UTC at an instant (micros since 2000-01-01 UTC).
  int OffsetAt(int64_t utc_micros) const;
  // The same, with daylight-saving flag and abbreviation ("CEST"; valid while this lives).
  int OffsetAt(int64_t utc_micros, bool* is_dst, std::string_view* abbreviation) const;
  // Seconds east for a local clock reading; in a gap the offset before it, in an overlap the one
  // after it (standard time), as PostgreSQL's DetermineTimeZoneOffset.
  int OffsetOfLocal(int64_t local_micros) const;
  bool is_fixed() const { return fixed_; }

 private:
  friend class TimeZoneLoader;
  TimeZone();
  struct Rep;
  std::string name_;
  bool fixed_ = true;
  int fixed_offset_ = 0;
  std::unique_ptr<Rep> rep_;
};

// ---- Calendar ----

struct Civil {
  int64_t year = 2000;  // astronomical: 0 is 1 BC
  int month = 1, day = 1, hour = 0, minute = 0, second = 0, micros = 0;
};
int64_t DaysFromCivil(int64_t year, int month,
                      int day);  // since 2000-01-01; fields in their ranges
void CivilFromDays(int64_t days, int64_t* year, int* month, int* day);
Civil CivilFromTimestamp(int64_t micros);
int64_t TimestampFromCivil(const Civil& civil);  // no range check
int DaysInMonth(int64_t year, int month);

// ---- Text ----

Result<int64_t> ParseDate(std::string_view text, const FormatSettings& settings);
// `precision` 0..6 rounds fractional seconds; -1 does not.
Result<int64_t> ParseTime(std::string_view text, int precision, const FormatSettings& settings);
Result<TimeTz> ParseTimeTz(std::string_view text, int precision, const FormatSettings& settings);
Result<int64_t> ParseTimestamp(std::string_view text, int precision,
                               const FormatSettings& settings);
Result<int64_t> ParseTimestampTz(std::string_view text, int precision,
                                 const FormatSettings& settings);
// `modifier` as in Type: a precision, or PostgreSQL's (range << 16) | precision; -1 is none. The
// range also says what a bare number means ('5' of INTERVAL HOUR).
Result<Interval> ParseInterval(std::string_view text, int32_t modifier,
                               const FormatSettings& settings);

void AppendDate(int64_t days, const FormatSettings& settings, std::string* out);
void AppendTime(int64_t micros, std::string* out);
void AppendTimeTz(TimeTz value, std::string* out);
void AppendTimestamp(int64_t micros, const FormatSettings& settings, std::string* out);
void AppendTimestampTz(int64_t micros, const FormatSettings& settings, std::string* out);
void AppendInterval(Interval value, const FormatSettings& settings, std::string* out);

// Rounding to `precision` digits of fractional seconds.
int64_t RoundMicros(int64_t micros, int precision);
Result<int64_t> RoundTimestamp(int64_t micros, int precision);
Result<Interval> ApplyIntervalModifier(Interval value, int32_t modifier);
// PostgreSQL's interval typmod from the grammar's field mask and precision (-1: none).
int32_t MakeIntervalModifier(int32_t range, int precision);

// ---- Casts ----

Result<int64_t> TimestampFromDate(int64_t days);
Result<int64_t> TimestampTzFromDate(int64_t days, const TimeZone* zone);
int64_t DateFromTimestamp(int64_t micros);
int64_t DateFromTimestampTz(int64_t micros, const TimeZone* zone);
// Local clock reading -> instant and back (cast and AT TIME ZONE).
Result<int64_t> TimestampTzFromTimestamp(int64_t micros, const TimeZone* zone);
Result<int64_t> TimestampFromTimestampTz(int64_t micros, const TimeZone* zone);
int64_t TimeFromTimestamp(int64_t micros);  // 0 for infinities: SQL's answer there is NULL
TimeTz TimeTzFromTimestampTz(int64_t micros, const TimeZone* zone);
TimeTz TimeTzFromTime(int64_t micros, const FormatSettings& settings);
TimeTz TimeTzAtZone(TimeTz value, int seconds_east);  // the same moment in another zone
// AT TIME ZONE <interval>: months and days must be 0 (22023). The zone has no name.
Result<std::shared_ptr<const TimeZone>> ZoneFromInterval(Interval value);
// Errors: 22023 'time zone "x" not recognized'.
Result<std::shared_ptr<const TimeZone>> FindZone(std::string_view name);
Interval IntervalFromTime(int64_t micros);
int64_t TimeFromInterval(Interval value);

// ---- Arithmetic (errors: 22008 "timestamp out of range", "interval out of range", ...) ----

Result<int64_t> AddDays(int64_t date, int64_t days);  // date + integer
// Days between; errors: 22008 "cannot subtract infinite dates".
Result<int64_t> SubtractDates(int64_t a, int64_t b);
Result<int64_t> AddInterval(int64_t timestamp, Interval interval);
Result<int64_t> AddIntervalTz(int64_t timestamptz, Interval interval, const TimeZone* zone);
int64_t AddIntervalToTime(int64_t time, Interval interval);  // wraps at midnight
TimeTz AddIntervalToTimeTz(TimeTz time, Interval interval);
Result<int64_t> AddTimeToDate(int64_t date, int64_t time);   // date + time = timestamp
Result<int64_t> AddTimeTzToDate(int64_t date, TimeTz time);  // date + timetz = timestamptz
// a - b in days and time.
Result<Interval> SubtractTimestamps(int64_t a, int64_t b);
Interval SubtractTimes(int64_t a, int64_t b);
Result<Interval> Negate(Interval value);
Result<Interval> Add(Interval a, Interval b);
Result<Interval> Subtract(Interval a, Interval b);
Result<Interval> Multiply(Interval value, double factor);
Result<Interval> Divide(Interval value, double divisor);  // 22012 for 0
Result<Interval> JustifyHours(Interval value);
Result<Interval> JustifyDays(Interval value);
Result<Interval> JustifyInterval(Interval value);
// age(a, b): years, months, days, time.
Result<Interval> Age(int64_t a, int64_t b);
Result<Interval> AgeTz(int64_t a, int64_t b, const TimeZone* zone);
// (a_start, a_end) OVERLAPS ... is the planner's; these are its order.
int CompareIntervals(Interval a, Interval b);
uint64_t HashInterval(Interval value);
int CompareTimeTz(TimeTz a, TimeTz b);
uint64_t HashTimeTz(TimeTz value);
// Interval as microseconds with a month of 30 days, for order and key encodings: SQL-equal
// intervals have equal values. 128 bits never overflow.
__extension__ typedef __int128 IntervalSpan;
inline IntervalSpan SpanOf(Interval value) {
  return static_cast<IntervalSpan>(value.micros) +
         (static_cast<IntervalSpan>(value.months) * 30 + value.days) * kMicrosPerDay;
}

// ---- Fields ----

enum class DateField : uint8_t {
  kMicroseconds,
  kMilliseconds,
  kSecond,
  kMinute,
  kHour,
  kDay,
  kMonth,
  kQuarter,
  kWeek,
  kYear,
  kDecade,
  kCentury,
  kMillennium,
  kIsoYear,
  kDow,
  kIsoDow,
  kDoy,
  kJulian,
  kEpoch,
  kTimezone,
  kTimezoneHour,
  kTimezoneMinute,
};
// 'hour', 'hours', 'h', 'dow'... as EXTRACT and date_trunc accept, case ignored. nullopt if
// unknown: the error is UnknownUnit.
std::optional<DateField> FindDateField(std::string_view name);
// 22023 'unit "x" not recognized for type timestamp without time zone'.
Status UnknownUnit(std::string_view name, Type type);

// EXTRACT(field FROM value), value of date, time, timetz, timestamp, timestamptz or interval: a
// numeric with PostgreSQL's scale, or NULL (fields of an infinity that do not grow). `zone` (null
// is UTC) is used for timestamptz. Errors: 0A000 'unit "hour" not supported for type date', 22008.
Result<Datum> Extract(DateField field, Datum value, Type type, const TimeZone* zone, Arena* arena);
// date_part: the same as float8.
Result<Datum> DatePart(DateField field, Datum value, Type type, const TimeZone* zone);

Result<int64_t> TruncateTimestamp(DateField field, int64_t micros);
Result<int64_t> TruncateTimestampTz(DateField field, int64_t micros, const TimeZone* zone);
Result<Interval> TruncateInterval(DateField field, Interval value);
// date_bin(stride, source, origin).
Result<int64_t> BinTimestamp(Interval stride, int64_t source, int64_t origin);

// ---- Constructors (errors: 22008 "date field value out of range: 2024-02-31" ...) ----

Result<int64_t> MakeDate(int64_t year, int64_t month, int64_t day);  // negative year is BC
Result<int64_t> MakeTime(int64_t hour, int64_t minute, double seconds);
Result<int64_t> MakeTimestamp(int64_t year, int64_t month, int64_t day, int64_t hour,
                              int64_t minute, double seconds);
Result<Interval> MakeInterval(int64_t years, int64_t months, int64_t weeks, int64_t days,
                              int64_t hours, int64_t minutes, double seconds);
// to_timestamp(float8): seconds since 1970.
Result<int64_t> TimestampTzFromUnix(double seconds);

}  // namespace cellar
