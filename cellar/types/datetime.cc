// Calendar, casts, arithmetic and constructors of dates, times and timestamps.
#include "cellar/types/datetime.h"

#include <cmath>

#include "cellar/base/sqlstate.h"
#include "cellar/types/datetime_internal.h"

namespace cellar {

namespace internal {

Status TimestampOutOfRange() {
  return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow, "timestamp out of range");
}

Result<int64_t> CheckTimestamp(int64_t micros) {
  if (micros < kMinTimestamp || micros >= kEndTimestamp) return TimestampOutOfRange();
  return micros;
}

Result<int64_t> CheckedTimestamp(const Civil& civil) {
  CELLAR_TRY_ASSIGN(int64_t micros, TimestampWithoutBounds(civil));
  return CheckTimestamp(micros);
}

Result<int64_t> TimestampWithoutBounds(const Civil& civil) {
  // Years are bounded before, so that days fit; the product may not.
  if (civil.year < -5000 || civil.year > 300000) return TimestampOutOfRange();
  const int64_t days = DaysFromCivil(civil.year, civil.month, civil.day);
  int64_t micros;
  if (__builtin_mul_overflow(days, kMicrosPerDay, &micros) ||
      __builtin_add_overflow(micros, TimeOfDay(civil), &micros)) {
    return TimestampOutOfRange();
  }
  return micros;
}

}  // namespace internal

using internal::CheckedTimestamp;
using internal::CheckTimestamp;
using internal::TimeOfDay;
using internal::TimestampOutOfRange;

namespace {

Status DateOutOfRange(std::string_view what) {
  return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow, "{}", what);
}

bool IsValidDate(int64_t days) { return days >= kMinDate && days < kEndDate; }

// Adds months keeping the day within the month.
void AddMonths(int32_t months, Civil* civil) {
  const int64_t total = civil->year * 12 + (civil->month - 1) + months;
  civil->year = internal::FloorDiv(total, 12);
  civil->month = static_cast<int>(total - civil->year * 12) + 1;
  civil->day = std::min(civil->day, DaysInMonth(civil->year, civil->month));
}

Result<int64_t> LocalToInstant(int64_t local, const TimeZone& zone) {
  return CheckTimestamp(local - int64_t{zone.OffsetOfLocal(local)} * kMicrosPerSecond);
}

const TimeZone& ZoneOrUtc(const TimeZone* zone) {
  return zone != nullptr ? *zone : TimeZone::Utc();
}

int64_t InstantToLocal(int64_t instant, const TimeZone& zone) {
  return instant + int64_t{zone.OffsetAt(instant)} * kMicrosPerSecond;
}

int64_t WrapToDay(int64_t micros) {
  const int64_t rest = micros % kMicrosPerDay;
  return rest < 0 ? rest + kMicrosPerDay : rest;
}

}  // namespace

// ---- Calendar ----

int64_t DaysFromCivil(int64_t year, int month, int day) {
  // Years start in March, so that the leap day is the last.
  year -= month <= 2 ? 1 : 0;
  const int64_t era = internal::FloorDiv(year, 400);
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 730425;
}

void CivilFromDays(int64_t days, int64_t* year, int* month, int* day) {
  days += 730425;
  const int64_t era = internal::FloorDiv(days, 146097);
  const auto day_of_era = static_cast<uint32_t>(days - era * 146097);
  const uint32_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const uint32_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const uint32_t shifted = (5 * day_of_year + 2) / 153;  // 0 is March
  *day = static_cast<int>(day_of_year - (153 * shifted + 2) / 5 + 1);
  *month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
  *year = era * 400 + year_of_era + (*month <= 2 ? 1 : 0);
}

int DaysInMonth(int64_t year, int month) {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month == 2 && leap ? 29 : kDays[month - 1];
}

Civil CivilFromTimestamp(int64_t micros) {
  Civil civil;
  const int64_t days = internal::FloorDiv(micros, kMicrosPerDay);
  const int64_t rest = WrapToDay(micros);  // the product of days may be beyond 64 bits
  CivilFromDays(days, &civil.year, &civil.month, &civil.day);
  internal::SetTimeOfDay(rest, &civil);
  return civil;
}

int64_t TimestampFromCivil(const Civil& civil) {
  return DaysFromCivil(civil.year, civil.month, civil.day) * kMicrosPerDay + TimeOfDay(civil);
}

// ---- Rounding ----

int64_t RoundMicros(int64_t micros, int precision) {
  static constexpr int64_t kScales[] = {1000000, 100000, 10000, 1000, 100, 10};
  if (precision < 0 || precision >= 6) return micros;
  const int64_t scale = kScales[precision];
  if (micros >= 0) return (micros + scale / 2) / scale * scale;
  return -((-micros + scale / 2) / scale * scale);
}

Result<int64_t> RoundTimestamp(int64_t micros, int precision) {
  if (!IsFiniteTimestamp(micros)) return micros;
  return CheckTimestamp(RoundMicros(micros, precision));
}

// ---- Casts ----

Result<int64_t> TimestampFromDate(int64_t days) {
  if (days == kDateInfinity) return kTimestampInfinity;
  if (days == kDateNegativeInfinity) return kTimestampNegativeInfinity;
  if (days >= kEndTimestamp / kMicrosPerDay) {
    return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow,
                    "date out of range for timestamp");
  }
  return days * kMicrosPerDay;
}

Result<int64_t> TimestampTzFromDate(int64_t days, const TimeZone* zone) {
  CELLAR_TRY_ASSIGN(int64_t local, TimestampFromDate(days));
  return TimestampTzFromTimestamp(local, zone);
}

int64_t DateFromTimestamp(int64_t micros) {
  if (micros == kTimestampInfinity) return kDateInfinity;
  if (micros == kTimestampNegativeInfinity) return kDateNegativeInfinity;
  return internal::FloorDiv(micros, kMicrosPerDay);
}

int64_t DateFromTimestampTz(int64_t micros, const TimeZone* zone) {
  if (!IsFiniteTimestamp(micros)) return DateFromTimestamp(micros);
  return DateFromTimestamp(InstantToLocal(micros, ZoneOrUtc(zone)));
}

Result<int64_t> TimestampTzFromTimestamp(int64_t micros, const TimeZone* zone) {
  if (!IsFiniteTimestamp(micros)) return micros;
  return LocalToInstant(micros, ZoneOrUtc(zone));
}

Result<int64_t> TimestampFromTimestampTz(int64_t micros, const TimeZone* zone) {
  if (!IsFiniteTimestamp(micros)) return micros;
  return CheckTimestamp(InstantToLocal(micros, ZoneOrUtc(zone)));
}

int64_t TimeFromTimestamp(int64_t micros) {
  return IsFiniteTimestamp(micros) ? WrapToDay(micros) : 0;
}

TimeTz TimeTzFromTimestampTz(int64_t micros, const TimeZone* zone) {
  if (!IsFiniteTimestamp(micros)) return {};
  const int offset = ZoneOrUtc(zone).OffsetAt(micros);
  return {WrapToDay(micros + offset * kMicrosPerSecond), -offset};
}

TimeTz TimeTzFromTime(int64_t micros, const FormatSettings& settings) {
  const TimeZone& zone = ZoneOrUtc(settings.time_zone);
  const int64_t today =
      internal::FloorDiv(InstantToLocal(settings.now_micros, zone), kMicrosPerDay);
  return {micros, -zone.OffsetOfLocal(today * kMicrosPerDay + micros)};
}

TimeTz TimeTzAtZone(TimeTz value, int seconds_east) {
  const int64_t utc = value.micros + value.zone * kMicrosPerSecond;
  return {WrapToDay(utc + seconds_east * kMicrosPerSecond), -seconds_east};
}

Result<std::shared_ptr<const TimeZone>> ZoneFromInterval(Interval value) {
  if (value.months != 0 || value.days != 0) {
    std::string text;
    AppendInterval(value, FormatSettings(), &text);
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "interval time zone \"{}\" must not include months or days", text);
  }
  return TimeZone::FixedOffset(static_cast<int>(value.micros / kMicrosPerSecond), "");
}

Result<std::shared_ptr<const TimeZone>> FindZone(std::string_view name) {
  std::shared_ptr<const TimeZone> zone = TimeZone::Find(name);
  if (zone == nullptr) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "time zone \"{}\" not recognized", name);
  }
  return zone;
}

Interval IntervalFromTime(int64_t micros) { return {micros, 0, 0}; }
int64_t TimeFromInterval(Interval value) { return WrapToDay(value.micros); }

// ---- Arithmetic ----

Result<int64_t> AddDays(int64_t date, int64_t days) {
  if (!IsFiniteDate(date)) return date;
  const int64_t result = date + days;  // both fit 33 bits
  if (!IsValidDate(result)) return DateOutOfRange("date out of range");
  return result;
}

Result<int64_t> SubtractDates(int64_t a, int64_t b) {
  if (!IsFiniteDate(a) || !IsFiniteDate(b)) return DateOutOfRange("cannot subtract infinite dates");
  return a - b;
}

Result<int64_t> AddInterval(int64_t timestamp, Interval interval) {
  if (!IsFiniteTimestamp(timestamp)) return timestamp;
  if (interval.months != 0) {
    Civil civil = CivilFromTimestamp(timestamp);
    AddMonths(interval.months, &civil);
    CELLAR_TRY_ASSIGN(timestamp, CheckedTimestamp(civil));
  }
  int64_t micros;
  if (__builtin_mul_overflow(int64_t{interval.days}, kMicrosPerDay, &micros) ||
      __builtin_add_overflow(timestamp, micros, &micros)) {
    return TimestampOutOfRange();
  }
  CELLAR_TRY(CheckTimestamp(micros).status());
  if (__builtin_add_overflow(micros, interval.micros, &micros)) return TimestampOutOfRange();
  return CheckTimestamp(micros);
}

Result<int64_t> AddIntervalTz(int64_t timestamptz, Interval interval,
                              const TimeZone* zone_or_null) {
  if (!IsFiniteTimestamp(timestamptz)) return timestamptz;
  const TimeZone& zone = ZoneOrUtc(zone_or_null);
  // Months and days keep the local clock; the time is exact.
  if (interval.months != 0) {
    Civil civil = CivilFromTimestamp(InstantToLocal(timestamptz, zone));
    AddMonths(interval.months, &civil);
    CELLAR_TRY_ASSIGN(int64_t local, CheckedTimestamp(civil));
    CELLAR_TRY_ASSIGN(timestamptz, LocalToInstant(local, zone));
  }
  if (interval.days != 0) {
    int64_t local;
    if (__builtin_mul_overflow(int64_t{interval.days}, kMicrosPerDay, &local) ||
        __builtin_add_overflow(InstantToLocal(timestamptz, zone), local, &local)) {
      return TimestampOutOfRange();
    }
    CELLAR_TRY_ASSIGN(timestamptz, LocalToInstant(local, zone));
  }
  if (__builtin_add_overflow(timestamptz, interval.micros, &timestamptz)) {
    return TimestampOutOfRange();
  }
  return CheckTimestamp(timestamptz);
}

int64_t AddIntervalToTime(int64_t time, Interval interval) {
  return WrapToDay(time + interval.micros % kMicrosPerDay);
}

TimeTz AddIntervalToTimeTz(TimeTz time, Interval interval) {
  return {AddIntervalToTime(time.micros, interval), time.zone};
}

Result<int64_t> AddTimeToDate(int64_t date, int64_t time) {
  CELLAR_TRY_ASSIGN(int64_t midnight, TimestampFromDate(date));
  if (!IsFiniteTimestamp(midnight)) return midnight;
  return CheckTimestamp(midnight + time);
}

Result<int64_t> AddTimeTzToDate(int64_t date, TimeTz time) {
  CELLAR_TRY_ASSIGN(int64_t midnight, TimestampFromDate(date));
  if (!IsFiniteTimestamp(midnight)) return midnight;
  return CheckTimestamp(midnight + time.micros + time.zone * kMicrosPerSecond);
}

Result<Interval> SubtractTimestamps(int64_t a, int64_t b) {
  if (!IsFiniteTimestamp(a) || !IsFiniteTimestamp(b)) {
    return DateOutOfRange("cannot subtract infinite timestamps");
  }
  int64_t micros;
  if (__builtin_sub_overflow(a, b, &micros)) return DateOutOfRange("interval out of range");
  return JustifyHours({micros, 0, 0});
}

Interval SubtractTimes(int64_t a, int64_t b) { return {a - b, 0, 0}; }

namespace {

// Years, months, days and time between two clock readings.
Interval SymbolicDifference(int64_t a, int64_t b) {
  Civil x = CivilFromTimestamp(a), y = CivilFromTimestamp(b);
  const bool negative = a < b;
  if (negative) std::swap(x, y);
  int64_t time = TimeOfDay(x) - TimeOfDay(y);
  int64_t days = x.day - y.day;
  int64_t months = (x.year - y.year) * 12 + (x.month - y.month);
  if (time < 0) {
    time += kMicrosPerDay;
    --days;
  }
  // The month that lends its days is that of the earlier reading.
  while (days < 0) {
    days += DaysInMonth(y.year, y.month);
    --months;
  }
  Interval out{time, static_cast<int32_t>(days), static_cast<int32_t>(months)};
  if (negative) out = {-out.micros, -out.days, -out.months};
  return out;
}

}  // namespace

Result<Interval> Age(int64_t a, int64_t b) {
  if (!IsFiniteTimestamp(a) || !IsFiniteTimestamp(b)) return TimestampOutOfRange();
  return SymbolicDifference(a, b);
}

Result<Interval> AgeTz(int64_t a, int64_t b, const TimeZone* zone) {
  if (!IsFiniteTimestamp(a) || !IsFiniteTimestamp(b)) return TimestampOutOfRange();
  const TimeZone& local = ZoneOrUtc(zone);
  return SymbolicDifference(InstantToLocal(a, local), InstantToLocal(b, local));
}

int CompareTimeTz(TimeTz a, TimeTz b) {
  const int64_t x = a.micros + a.zone * kMicrosPerSecond;
  const int64_t y = b.micros + b.zone * kMicrosPerSecond;
  if (x != y) return x < y ? -1 : 1;
  return a.zone < b.zone ? -1 : a.zone > b.zone;
}

uint64_t HashTimeTz(TimeTz value) {
  uint64_t hash = static_cast<uint64_t>(value.micros) * 0xD6E8FEB86659FD93;
  hash ^= hash >> 32;
  hash = (hash ^ static_cast<uint32_t>(value.zone)) * 0xD6E8FEB86659FD93;
  return hash ^ (hash >> 32);
}

// ---- Constructors ----

Result<int64_t> MakeDate(int64_t year, int64_t month, int64_t day) {
  auto invalid = [&] {
    return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow,
                    "date field value out of range: {}-{:02}-{:02}", year, month, day);
  };
  if (year == 0 || month < 1 || month > 12 || day < 1) return invalid();
  const int64_t astronomical = year < 0 ? year + 1 : year;
  if (astronomical < -4713 || astronomical > 5874897) {
    return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow,
                    "date out of range: {}-{:02}-{:02}", year, month, day);
  }
  if (day > DaysInMonth(astronomical, static_cast<int>(month))) return invalid();
  const int64_t days = DaysFromCivil(astronomical, static_cast<int>(month), static_cast<int>(day));
  if (!IsValidDate(days)) {
    return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow,
                    "date out of range: {}-{:02}-{:02}", year, month, day);
  }
  return days;
}

Result<int64_t> MakeTime(int64_t hour, int64_t minute, double seconds) {
  const double micros = std::rint(seconds * 1e6);
  const bool valid =
      hour >= 0 && hour <= 24 && minute >= 0 && minute < 60 && micros >= 0 && micros <= 60e6;
  int64_t time = 0;
  if (valid) {
    time = hour * kMicrosPerHour + minute * kMicrosPerMinute + static_cast<int64_t>(micros);
  }
  if (!valid || time > kMicrosPerDay) {
    return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow,
                    "time field value out of range: {}:{:02}:{:02g}", hour, minute, seconds);
  }
  return time;
}

Result<int64_t> MakeTimestamp(int64_t year, int64_t month, int64_t day, int64_t hour,
                              int64_t minute, double seconds) {
  CELLAR_TRY_ASSIGN(int64_t date, MakeDate(year, month, day));
  CELLAR_TRY_ASSIGN(int64_t time, MakeTime(hour, minute, seconds));
  int64_t micros;
  if (__builtin_mul_overflow(date, kMicrosPerDay, &micros) ||
      __builtin_add_overflow(micros, time, &micros) || !CheckTimestamp(micros).ok()) {
    return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow,
                    "timestamp out of range: {}-{:02}-{:02} {}:{:02}:{:02g}", year, month, day,
                    hour, minute, seconds);
  }
  return micros;
}

Result<int64_t> TimestampTzFromUnix(double seconds) {
  if (std::isnan(seconds)) {
    return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow, "timestamp cannot be NaN");
  }
  if (std::isinf(seconds)) return seconds > 0 ? kTimestampInfinity : kTimestampNegativeInfinity;
  const double micros = std::rint((seconds - static_cast<double>(kUnixEpochSeconds)) * 1e6);
  if (micros < static_cast<double>(kMinTimestamp) || micros >= static_cast<double>(kEndTimestamp)) {
    return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow,
                    "timestamp out of range: \"{:g}\"", seconds);
  }
  return static_cast<int64_t>(micros);
}

}  // namespace cellar
