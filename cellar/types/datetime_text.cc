// Printing dates, times and timestamps in PostgreSQL's date styles.
#include <cstdlib>

#include "cellar/types/datetime.h"
#include "cellar/types/datetime_internal.h"

namespace cellar {

namespace internal {

void AppendFraction(int micros, std::string* out) {
  if (micros == 0) return;
  char text[7];
  text[0] = '.';
  for (int i = 6; i >= 1; --i) {
    text[i] = static_cast<char>('0' + micros % 10);
    micros /= 10;
  }
  size_t size = 7;
  while (text[size - 1] == '0') --size;
  out->append(text, size);
}

}  // namespace internal

using internal::AppendTwo;

namespace {

const TimeZone& ZoneOrUtc(const FormatSettings& settings) {
  return settings.time_zone != nullptr ? *settings.time_zone : TimeZone::Utc();
}

// At least four digits; BC years count from 1.
void AppendYear(int64_t year, std::string* out) {
  const int64_t shown = year > 0 ? year : 1 - year;
  if (shown < 10000) {
    AppendTwo(static_cast<int>(shown / 100), out);
    AppendTwo(static_cast<int>(shown % 100), out);
  } else {
    out->append(fmt::format("{}", shown));
  }
}

void AppendClock(int hour, int minute, int second, int micros, std::string* out) {
  char text[8] = {static_cast<char>('0' + hour / 10),   static_cast<char>('0' + hour % 10),   ':',
                  static_cast<char>('0' + minute / 10), static_cast<char>('0' + minute % 10), ':',
                  static_cast<char>('0' + second / 10), static_cast<char>('0' + second % 10)};
  out->append(text, sizeof(text));
  internal::AppendFraction(micros, out);
}

// "+02", "-03:30", "+00:53:28"; names of zones can give more than 99 hours.
void AppendOffset(int east, std::string* out) {
  const int seconds = std::abs(east), hours = seconds / 3600;
  out->push_back(east < 0 ? '-' : '+');
  if (hours > 99) *out += fmt::format("{}", hours / 100);
  AppendTwo(hours % 100, out);
  if (seconds % 3600 != 0) {
    out->push_back(':');
    AppendTwo(seconds / 60 % 60, out);
  }
  if (seconds % 60 != 0) {
    out->push_back(':');
    AppendTwo(seconds % 60, out);
  }
}

void AppendCalendarDate(const Civil& civil, const FormatSettings& settings, std::string* out) {
  char separator = '-';
  bool day_first = settings.date_order == DateOrder::kDmy;
  switch (settings.date_style) {
    case DateStyle::kIso:
      if (civil.year > 0 && civil.year < 10000) {
        const auto year = static_cast<int>(civil.year);
        char text[10];
        text[0] = static_cast<char>('0' + year / 1000);
        text[1] = static_cast<char>('0' + year / 100 % 10);
        text[2] = static_cast<char>('0' + year / 10 % 10);
        text[3] = static_cast<char>('0' + year % 10);
        text[4] = text[7] = '-';
        text[5] = static_cast<char>('0' + civil.month / 10);
        text[6] = static_cast<char>('0' + civil.month % 10);
        text[8] = static_cast<char>('0' + civil.day / 10);
        text[9] = static_cast<char>('0' + civil.day % 10);
        out->append(text, sizeof(text));
        return;
      }
      AppendYear(civil.year, out);
      out->push_back('-');
      AppendTwo(civil.month, out);
      out->push_back('-');
      AppendTwo(civil.day, out);
      return;
    case DateStyle::kSql: separator = '/'; break;
    case DateStyle::kGerman:
      separator = '.';
      day_first = true;
      break;
    case DateStyle::kPostgres: break;
  }
  AppendTwo(day_first ? civil.day : civil.month, out);
  out->push_back(separator);
  AppendTwo(day_first ? civil.month : civil.day, out);
  out->push_back(separator);
  AppendYear(civil.year, out);
}

void AppendEra(const Civil& civil, std::string* out) {
  if (civil.year <= 0) out->append(" BC");
}

// `zone` null for timestamps without one.
void AppendMoment(const Civil& civil, const int* east, std::string_view abbreviation,
                  const FormatSettings& settings, std::string* out) {
  if (settings.date_style == DateStyle::kPostgres) {
    // Mon Jul 01 14:00:00 2024 CEST
    const int64_t days = DaysFromCivil(civil.year, civil.month, civil.day);
    out->append(internal::kDayNames[internal::DayOfWeek(days)].substr(0, 3));
    const std::string_view month = internal::kMonthNames[civil.month - 1].substr(0, 3);
    out->push_back(' ');
    if (settings.date_order == DateOrder::kDmy) {
      AppendTwo(civil.day, out);
      out->push_back(' ');
      out->append(month);
    } else {
      out->append(month);
      out->push_back(' ');
      AppendTwo(civil.day, out);
    }
    out->push_back(' ');
    AppendClock(civil.hour, civil.minute, civil.second, civil.micros, out);
    out->push_back(' ');
    AppendYear(civil.year, out);
  } else {
    AppendCalendarDate(civil, settings, out);
    out->push_back(' ');
    AppendClock(civil.hour, civil.minute, civil.second, civil.micros, out);
  }
  if (east != nullptr) {
    if (settings.date_style == DateStyle::kIso) {
      AppendOffset(*east, out);
    } else {
      out->push_back(' ');
      out->append(abbreviation);
    }
  }
  AppendEra(civil, out);
}

bool AppendInfinity(bool positive, bool negative, std::string* out) {
  if (positive) out->append("infinity");
  if (negative) out->append("-infinity");
  return positive || negative;
}

}  // namespace

void AppendDate(int64_t days, const FormatSettings& settings, std::string* out) {
  if (AppendInfinity(days == kDateInfinity, days == kDateNegativeInfinity, out)) return;
  Civil civil;
  CivilFromDays(days, &civil.year, &civil.month, &civil.day);
  AppendCalendarDate(civil, settings, out);
  AppendEra(civil, out);
}

void AppendTime(int64_t micros, std::string* out) {
  Civil civil;
  internal::SetTimeOfDay(micros, &civil);
  AppendClock(civil.hour, civil.minute, civil.second, civil.micros, out);
}

void AppendTimeTz(TimeTz value, std::string* out) {
  AppendTime(value.micros, out);
  AppendOffset(-value.zone, out);
}

void AppendTimestamp(int64_t micros, const FormatSettings& settings, std::string* out) {
  if (AppendInfinity(micros == kTimestampInfinity, micros == kTimestampNegativeInfinity, out)) {
    return;
  }
  AppendMoment(CivilFromTimestamp(micros), nullptr, {}, settings, out);
}

void AppendTimestampTz(int64_t micros, const FormatSettings& settings, std::string* out) {
  if (AppendInfinity(micros == kTimestampInfinity, micros == kTimestampNegativeInfinity, out)) {
    return;
  }
  const TimeZone& zone = ZoneOrUtc(settings);
  std::string_view abbreviation;
  int east;
  if (settings.date_style == DateStyle::kIso) {
    east = zone.OffsetAt(micros);
  } else {
    bool is_dst;
    east = zone.OffsetAt(micros, &is_dst, &abbreviation);
  }
  AppendMoment(CivilFromTimestamp(micros + east * kMicrosPerSecond), &east, abbreviation, settings,
               out);
}

}  // namespace cellar
