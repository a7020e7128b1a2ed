// EXTRACT, date_part, date_trunc and date_bin.
#include <cmath>
#include <limits>

#include "cellar/base/sqlstate.h"
#include "cellar/types/datetime.h"
#include "cellar/types/datetime_internal.h"
#include "cellar/types/numeric.h"

namespace cellar {

namespace internal {

IsoWeek IsoWeekOf(int64_t days) {
  // The Thursday of a week decides its year.
  const int weekday = (DayOfWeek(days) + 6) % 7;  // Monday is 0
  const int64_t thursday = days - weekday + 3;
  int64_t year;
  int month, day;
  CivilFromDays(thursday, &year, &month, &day);
  return {year, static_cast<int>((thursday - DaysFromCivil(year, 1, 1)) / 7) + 1};
}

int64_t DaysFromIsoWeek(int64_t year, int week) {
  const int64_t fourth = DaysFromCivil(year, 1, 4);  // always in week 1
  return fourth - (DayOfWeek(fourth) + 6) % 7 + int64_t{week - 1} * 7;
}

}  // namespace internal

namespace {

struct FieldName {
  std::string_view name;
  DateField field;
};
// The first name of a field is the one in errors.
constexpr FieldName kNames[] = {
    {"microseconds", DateField::kMicroseconds},
    {"microsecond", DateField::kMicroseconds},
    {"us", DateField::kMicroseconds},
    {"usec", DateField::kMicroseconds},
    {"usecond", DateField::kMicroseconds},
    {"useconds", DateField::kMicroseconds},
    {"usecs", DateField::kMicroseconds},
    {"milliseconds", DateField::kMilliseconds},
    {"millisecond", DateField::kMilliseconds},
    {"ms", DateField::kMilliseconds},
    {"msec", DateField::kMilliseconds},
    {"msecond", DateField::kMilliseconds},
    {"mseconds", DateField::kMilliseconds},
    {"msecs", DateField::kMilliseconds},
    {"second", DateField::kSecond},
    {"seconds", DateField::kSecond},
    {"s", DateField::kSecond},
    {"sec", DateField::kSecond},
    {"secs", DateField::kSecond},
    {"minute", DateField::kMinute},
    {"minutes", DateField::kMinute},
    {"m", DateField::kMinute},
    {"min", DateField::kMinute},
    {"mins", DateField::kMinute},
    {"hour", DateField::kHour},
    {"hours", DateField::kHour},
    {"h", DateField::kHour},
    {"hr", DateField::kHour},
    {"hrs", DateField::kHour},
    {"day", DateField::kDay},
    {"days", DateField::kDay},
    {"d", DateField::kDay},
    {"month", DateField::kMonth},
    {"months", DateField::kMonth},
    {"mon", DateField::kMonth},
    {"mons", DateField::kMonth},
    {"quarter", DateField::kQuarter},
    {"qtr", DateField::kQuarter},
    {"week", DateField::kWeek},
    {"weeks", DateField::kWeek},
    {"w", DateField::kWeek},
    {"year", DateField::kYear},
    {"years", DateField::kYear},
    {"y", DateField::kYear},
    {"yr", DateField::kYear},
    {"yrs", DateField::kYear},
    {"decade", DateField::kDecade},
    {"decades", DateField::kDecade},
    {"dec", DateField::kDecade},
    {"decs", DateField::kDecade},
    {"century", DateField::kCentury},
    {"centuries", DateField::kCentury},
    {"c", DateField::kCentury},
    {"cent", DateField::kCentury},
    {"millennium", DateField::kMillennium},
    {"millennia", DateField::kMillennium},
    {"mil", DateField::kMillennium},
    {"mils", DateField::kMillennium},
    {"isoyear", DateField::kIsoYear},
    {"dow", DateField::kDow},
    {"isodow", DateField::kIsoDow},
    {"doy", DateField::kDoy},
    {"julian", DateField::kJulian},
    {"jd", DateField::kJulian},
    {"j", DateField::kJulian},
    {"epoch", DateField::kEpoch},
    {"timezone", DateField::kTimezone},
    {"timezone_hour", DateField::kTimezoneHour},
    {"timezone_minute", DateField::kTimezoneMinute},
    // Keywords count by their first ten letters.
    {"timezone_h", DateField::kTimezoneHour},
    {"timezone_m", DateField::kTimezoneMinute},
};

std::string_view NameOf(DateField field) {
  for (const FieldName& entry : kNames) {
    if (entry.field == field) return entry.name;
  }
  return "";
}

Status Unsupported(DateField field, TypeId type) {
  return SqlError(Code::kInvalid, sqlstate::kFeatureNotSupported,
                  "unit \"{}\" not supported for type {}", NameOf(field),
                  FormatType(MakeType(type)));
}

// What EXTRACT found: a whole number, or one of `scale` decimals, or NULL, or an infinity.
struct Extracted {
  numeric::int128_t unscaled = 0;
  int scale = 0;
  bool null = false;
  int infinity = 0;
  // julian: whole days and a fraction of a day, divided as numerics are.
  bool with_fraction = false;
  int64_t day_micros = 0;
};
Extracted Whole(int64_t value) { return {value, 0}; }
Extracted Scaled(numeric::int128_t unscaled, int scale) { return {unscaled, scale}; }

bool GrowsForever(DateField field) {
  switch (field) {
    case DateField::kYear:
    case DateField::kDecade:
    case DateField::kCentury:
    case DateField::kMillennium:
    case DateField::kJulian:
    case DateField::kIsoYear:
    case DateField::kEpoch: return true;
    default: return false;
  }
}

Extracted OfInfinity(DateField field, bool positive) {
  Extracted out;
  if (GrowsForever(field))
    out.infinity = positive ? 1 : -1;
  else
    out.null = true;
  return out;
}

bool IsTimeField(DateField field) { return field <= DateField::kHour; }
bool IsZoneField(DateField field) { return field >= DateField::kTimezone; }

// Fields of a clock reading since midnight (negative parts for intervals).
Extracted OfClock(DateField field, int64_t micros) {
  const int64_t seconds_micros = micros % kMicrosPerMinute;
  switch (field) {
    case DateField::kMicroseconds: return Whole(seconds_micros);
    case DateField::kMilliseconds: return Scaled(seconds_micros, 3);
    case DateField::kSecond: return Scaled(seconds_micros, 6);
    case DateField::kMinute: return Whole(micros / kMicrosPerMinute % 60);
    default: return Whole(micros / kMicrosPerHour);
  }
}

int64_t CenturyLike(int64_t year, int64_t span) {
  return year > 0 ? (year + span - 1) / span : -((span - 1 - (year - 1)) / span);
}

// Fields of a calendar day.
Extracted OfDay(DateField field, int64_t days) {
  int64_t year;
  int month, day;
  CivilFromDays(days, &year, &month, &day);
  switch (field) {
    case DateField::kDay: return Whole(day);
    case DateField::kMonth: return Whole(month);
    case DateField::kQuarter: return Whole((month - 1) / 3 + 1);
    case DateField::kWeek: return Whole(internal::IsoWeekOf(days).week);
    case DateField::kYear: return Whole(year > 0 ? year : year - 1);
    case DateField::kDecade: return Whole(year >= 0 ? year / 10 : -((8 - (year - 1)) / 10));
    case DateField::kCentury: return Whole(CenturyLike(year, 100));
    case DateField::kMillennium: return Whole(CenturyLike(year, 1000));
    case DateField::kIsoYear: {
      const int64_t iso = internal::IsoWeekOf(days).year;
      return Whole(iso > 0 ? iso : iso - 1);
    }
    case DateField::kDow: return Whole(internal::DayOfWeek(days));
    case DateField::kIsoDow: {
      const int weekday = internal::DayOfWeek(days);
      return Whole(weekday == 0 ? 7 : weekday);
    }
    case DateField::kDoy: return Whole(days - DaysFromCivil(year, 1, 1) + 1);
    default: return Whole(days + internal::kJulianOf2000);
  }
}

// `local` is the clock reading, `epoch_micros` the moment since 1970.
Extracted OfMoment(DateField field, int64_t local, numeric::int128_t epoch_micros) {
  if (field == DateField::kEpoch) return Scaled(epoch_micros, 6);
  const int64_t days = internal::FloorDiv(local, kMicrosPerDay);
  const int64_t time = local - days * kMicrosPerDay;
  if (IsTimeField(field)) return OfClock(field, time);
  Extracted out = OfDay(field, days);
  if (field == DateField::kJulian) {
    out.with_fraction = true;
    out.day_micros = time;
  }
  return out;
}

Extracted OfZone(DateField field, int seconds_east) {
  if (field == DateField::kTimezone) return Whole(seconds_east);
  if (field == DateField::kTimezoneHour) return Whole(seconds_east / 3600);
  return Whole(seconds_east / 60 % 60);
}

Result<Extracted> OfInterval(DateField field, Interval value) {
  const int64_t years = value.months / 12, months = value.months % 12;
  switch (field) {
    case DateField::kDay: return Whole(value.days);
    case DateField::kMonth: return Whole(months);
    case DateField::kQuarter: return Whole(months / 3 + 1);
    case DateField::kYear: return Whole(years);
    case DateField::kDecade: return Whole(years / 10);
    case DateField::kCentury: return Whole(years / 100);
    case DateField::kMillennium: return Whole(years / 1000);
    case DateField::kEpoch: {
      // A year of 365.25 days, a month of 30; in quarters of a day, to stay whole.
      const int64_t quarters = 1461 * years + 120 * months + 4 * int64_t{value.days};
      return Scaled(numeric::int128_t{quarters} * (86400 / 4) * kMicrosPerSecond + value.micros, 6);
    }
    default: break;
  }
  if (IsTimeField(field)) return OfClock(field, value.micros);
  return Unsupported(field, TypeId::kInterval);
}

Result<Extracted> ExtractAny(DateField field, Datum value, Type type, const TimeZone* zone) {
  constexpr numeric::int128_t kEpochShift = numeric::int128_t{kUnixEpochSeconds} * kMicrosPerSecond;
  switch (type.id) {
    case TypeId::kDate: {
      if (IsTimeField(field) || IsZoneField(field)) return Unsupported(field, type.id);
      const int64_t days = value.int_value();
      if (!IsFiniteDate(days)) return OfInfinity(field, days > 0);
      if (field == DateField::kEpoch) return Whole((days + kUnixEpochDays) * 86400);
      return OfDay(field, days);
    }
    case TypeId::kTime: {
      if (field == DateField::kEpoch) return Scaled(value.int_value(), 6);
      if (!IsTimeField(field)) return Unsupported(field, type.id);
      return OfClock(field, value.int_value());
    }
    case TypeId::kTimetz: {
      const TimeTz time = TimeTzOf(value);
      if (IsZoneField(field)) return OfZone(field, -time.zone);
      if (field == DateField::kEpoch) return Scaled(time.micros + time.zone * kMicrosPerSecond, 6);
      if (!IsTimeField(field)) return Unsupported(field, type.id);
      return OfClock(field, time.micros);
    }
    case TypeId::kTimestamp: {
      const int64_t micros = value.int_value();
      if (!IsFiniteTimestamp(micros)) return OfInfinity(field, micros > 0);
      if (IsZoneField(field)) return Unsupported(field, type.id);
      return OfMoment(field, micros, micros + kEpochShift);
    }
    case TypeId::kTimestamptz: {
      const int64_t micros = value.int_value();
      if (!IsFiniteTimestamp(micros)) return OfInfinity(field, micros > 0);
      const int east = (zone != nullptr ? *zone : TimeZone::Utc()).OffsetAt(micros);
      if (IsZoneField(field)) return OfZone(field, east);
      return OfMoment(field, micros + east * kMicrosPerSecond, micros + kEpochShift);
    }
    case TypeId::kInterval: return OfInterval(field, IntervalOf(value));
    default: return Unsupported(field, type.id);
  }
}

}  // namespace

std::optional<DateField> FindDateField(std::string_view name) {
  char lower[16];
  if (name.empty() || name.size() > sizeof(lower)) return std::nullopt;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    lower[i] = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  const std::string_view word(lower, name.size());
  for (const FieldName& entry : kNames) {
    if (entry.name == word) return entry.field;
  }
  return std::nullopt;
}

Status UnknownUnit(std::string_view name, Type type) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                  "unit \"{}\" not recognized for type {}", lower, FormatType(MakeType(type.id)));
}

Result<Datum> Extract(DateField field, Datum value, Type type, const TimeZone* zone, Arena* arena) {
  CELLAR_TRY_ASSIGN(Extracted found, ExtractAny(field, value, type, zone));
  if (found.null) return Datum();
  if (found.infinity != 0) return Datum::Bytes(numeric::MakeInfinity(found.infinity < 0));
  std::string_view out = numeric::Make(found.unscaled, found.scale, arena);
  if (found.with_fraction) {
    CELLAR_TRY_ASSIGN(std::string_view fraction,
                      numeric::Divide(numeric::FromInt64(found.day_micros, arena),
                                      numeric::FromInt64(kMicrosPerDay, arena), arena));
    CELLAR_TRY_ASSIGN(out, numeric::Add(out, fraction, arena));
  }
  return Datum::Bytes(out);
}

Result<Datum> DatePart(DateField field, Datum value, Type type, const TimeZone* zone) {
  if (type.id == TypeId::kDate) {  // date_part of a date is that of a timestamp
    CELLAR_TRY_ASSIGN(int64_t micros, TimestampFromDate(value.int_value()));
    return DatePart(field, Datum::Int(micros), MakeType(TypeId::kTimestamp), zone);
  }
  CELLAR_TRY_ASSIGN(Extracted found, ExtractAny(field, value, type, zone));
  if (found.null) return Datum();
  if (found.infinity != 0) {
    return Datum::Double(found.infinity * std::numeric_limits<double>::infinity());
  }
  static constexpr double kScales[] = {1, 10, 100, 1000, 1e4, 1e5, 1e6};
  double out = static_cast<double>(found.unscaled) / kScales[found.scale];
  if (found.with_fraction) {
    out += static_cast<double>(found.day_micros) / static_cast<double>(kMicrosPerDay);
  }
  return Datum::Double(out);
}

// ---- date_trunc ----

namespace {

// date_trunc knows fewer words than EXTRACT.
Status NotTruncatable(DateField field, TypeId type) {
  switch (field) {
    case DateField::kIsoYear:
    case DateField::kDow:
    case DateField::kIsoDow:
    case DateField::kDoy:
    case DateField::kJulian:
    case DateField::kEpoch: return UnknownUnit(NameOf(field), MakeType(type));
    default: return Unsupported(field, type);
  }
}

// Sets the fields below `field` to their least.
Status TruncateCivil(DateField field, TypeId type, Civil* civil) {
  auto clear_time = [civil] { civil->hour = civil->minute = civil->second = civil->micros = 0; };
  int64_t& year = civil->year;
  switch (field) {
    case DateField::kWeek: {
      const int64_t days = DaysFromCivil(year, civil->month, civil->day);
      const internal::IsoWeek week = internal::IsoWeekOf(days);
      CivilFromDays(internal::DaysFromIsoWeek(week.year, week.week), &year, &civil->month,
                    &civil->day);
      clear_time();
      return Status();
    }
    case DateField::kMillennium:
      year = (CenturyLike(year, 1000)) * 1000 - (year > 0 ? 999 : -1);
      break;
    case DateField::kCentury: year = CenturyLike(year, 100) * 100 - (year > 0 ? 99 : -1); break;
    case DateField::kDecade:
      year = year > 0 ? year / 10 * 10 : -((8 - (year - 1)) / 10) * 10;
      break;
    case DateField::kYear: break;
    case DateField::kQuarter: civil->month = (civil->month - 1) / 3 * 3 + 1; [[fallthrough]];
    case DateField::kMonth: civil->day = 1; [[fallthrough]];
    case DateField::kDay: clear_time(); return Status();
    case DateField::kHour: civil->minute = 0; [[fallthrough]];
    case DateField::kMinute: civil->second = 0; [[fallthrough]];
    case DateField::kSecond: civil->micros = 0; return Status();
    case DateField::kMilliseconds: civil->micros = civil->micros / 1000 * 1000; return Status();
    case DateField::kMicroseconds: return Status();
    default: return NotTruncatable(field, type);
  }
  civil->month = civil->day = 1;
  clear_time();
  return Status();
}

}  // namespace

Result<int64_t> TruncateTimestamp(DateField field, int64_t micros) {
  if (!IsFiniteTimestamp(micros)) return micros;
  Civil civil = CivilFromTimestamp(micros);
  CELLAR_TRY(TruncateCivil(field, TypeId::kTimestamp, &civil));
  return internal::CheckedTimestamp(civil);
}

Result<int64_t> TruncateTimestampTz(DateField field, int64_t micros, const TimeZone* zone_or_null) {
  if (!IsFiniteTimestamp(micros)) return micros;
  const TimeZone& zone = zone_or_null != nullptr ? *zone_or_null : TimeZone::Utc();
  int64_t east = zone.OffsetAt(micros);
  Civil civil = CivilFromTimestamp(micros + east * kMicrosPerSecond);
  CELLAR_TRY(TruncateCivil(field, TypeId::kTimestamptz, &civil));
  CELLAR_TRY_ASSIGN(int64_t local, internal::CheckedTimestamp(civil));
  // Within a day the offset stays; at midnight it may have been another.
  if (!IsTimeField(field)) east = zone.OffsetOfLocal(local);
  return internal::CheckTimestamp(local - east * kMicrosPerSecond);
}

Result<Interval> TruncateInterval(DateField field, Interval value) {
  auto cut = [](int64_t number, int64_t unit) { return number / unit * unit; };
  auto months_only = [&](int64_t unit) {
    return Interval{0, 0, static_cast<int32_t>(cut(value.months, unit))};
  };
  switch (field) {
    case DateField::kMillennium: return months_only(12000);
    case DateField::kCentury: return months_only(1200);
    case DateField::kDecade: return months_only(120);
    case DateField::kYear: return months_only(12);
    case DateField::kQuarter: return months_only(3);
    case DateField::kMonth: return months_only(1);
    case DateField::kDay: value.micros = 0; return value;
    case DateField::kHour: value.micros = cut(value.micros, kMicrosPerHour); return value;
    case DateField::kMinute: value.micros = cut(value.micros, kMicrosPerMinute); return value;
    case DateField::kSecond: value.micros = cut(value.micros, kMicrosPerSecond); return value;
    case DateField::kMilliseconds: value.micros = cut(value.micros, 1000); return value;
    case DateField::kMicroseconds: return value;
    case DateField::kWeek:
      return std::move(Unsupported(field, TypeId::kInterval))
          .WithDetail("Months usually have fractional weeks.");
    default: return NotTruncatable(field, TypeId::kInterval);
  }
}

Result<int64_t> BinTimestamp(Interval stride, int64_t source, int64_t origin) {
  if (!IsFiniteTimestamp(source)) return source;
  if (!IsFiniteTimestamp(origin)) {
    return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow, "origin out of range");
  }
  if (stride.months != 0) {
    return UnsupportedError(
        "timestamps cannot be binned into intervals containing months or years");
  }
  int64_t step;
  if (__builtin_mul_overflow(int64_t{stride.days}, kMicrosPerDay, &step) ||
      __builtin_add_overflow(step, stride.micros, &step)) {
    return internal::IntervalOutOfRange();
  }
  if (step <= 0) {
    return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow,
                    "stride must be greater than zero");
  }
  int64_t difference;
  if (__builtin_sub_overflow(source, origin, &difference)) return internal::IntervalOutOfRange();
  int64_t rest = difference % step;
  if (rest < 0) rest += step;
  int64_t result;
  if (__builtin_sub_overflow(source, rest, &result)) return internal::TimestampOutOfRange();
  return internal::CheckTimestamp(result);
}

}  // namespace cellar
