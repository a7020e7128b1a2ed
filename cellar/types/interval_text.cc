// Reading intervals (PostgreSQL's, the SQL standard's and ISO 8601's forms) and printing them in
// four styles.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "cellar/base/sqlstate.h"
#include "cellar/types/datetime.h"
#include "cellar/types/datetime_internal.h"
#include "cellar/types/datetime_lexer.h"

namespace cellar {

using internal::DateTimeError;
using internal::DateTimeFailure;
using internal::DateTimeFieldText;
using internal::DateTimeLexer;
using internal::FieldKind;
using internal::TakeInteger;

namespace {

enum class Unit : uint8_t {
  kNone,
  kMicrosecond,
  kMillisecond,
  kSecond,
  kMinute,
  kHour,
  kDay,
  kWeek,
  kMonth,
  kYear,
  kDecade,
  kCentury,
  kMillennium,
  kAgo,
  kInvalid,  // a unit that intervals do not have
};

struct UnitName {
  std::string_view text;  // at most 10 letters count
  Unit unit;
};
constexpr UnitName kUnits[] = {
    {"ago", Unit::kAgo},
    {"c", Unit::kCentury},
    {"cent", Unit::kCentury},
    {"centuries", Unit::kCentury},
    {"century", Unit::kCentury},
    {"d", Unit::kDay},
    {"day", Unit::kDay},
    {"days", Unit::kDay},
    {"dec", Unit::kDecade},
    {"decade", Unit::kDecade},
    {"decades", Unit::kDecade},
    {"decs", Unit::kDecade},
    {"h", Unit::kHour},
    {"hour", Unit::kHour},
    {"hours", Unit::kHour},
    {"hr", Unit::kHour},
    {"hrs", Unit::kHour},
    {"m", Unit::kMinute},
    {"microsecon", Unit::kMicrosecond},
    {"mil", Unit::kMillennium},
    {"millennia", Unit::kMillennium},
    {"millennium", Unit::kMillennium},
    {"millisecon", Unit::kMillisecond},
    {"mils", Unit::kMillennium},
    {"min", Unit::kMinute},
    {"mins", Unit::kMinute},
    {"minute", Unit::kMinute},
    {"minutes", Unit::kMinute},
    {"mon", Unit::kMonth},
    {"mons", Unit::kMonth},
    {"month", Unit::kMonth},
    {"months", Unit::kMonth},
    {"ms", Unit::kMillisecond},
    {"msec", Unit::kMillisecond},
    {"msecond", Unit::kMillisecond},
    {"mseconds", Unit::kMillisecond},
    {"msecs", Unit::kMillisecond},
    {"s", Unit::kSecond},
    {"sec", Unit::kSecond},
    {"second", Unit::kSecond},
    {"seconds", Unit::kSecond},
    {"secs", Unit::kSecond},
    {"us", Unit::kMicrosecond},
    {"usec", Unit::kMicrosecond},
    {"usecond", Unit::kMicrosecond},
    {"useconds", Unit::kMicrosecond},
    {"usecs", Unit::kMicrosecond},
    {"w", Unit::kWeek},
    {"week", Unit::kWeek},
    {"weeks", Unit::kWeek},
    {"y", Unit::kYear},
    {"year", Unit::kYear},
    {"years", Unit::kYear},
    {"yr", Unit::kYear},
    {"yrs", Unit::kYear},
};

Unit FindUnit(std::string_view text) {
  text = text.substr(0, 10);
  const auto* found =
      std::lower_bound(std::begin(kUnits), std::end(kUnits), text,
                       [](const UnitName& entry, std::string_view t) { return entry.text < t; });
  return found != std::end(kUnits) && found->text == text ? found->unit : Unit::kInvalid;
}

constexpr int kFullRange = 0x7FFF;
constexpr int kMonthBit = 1 << 1, kYearBit = 1 << 2, kDayBit = 1 << 3, kHourBit = 1 << 10,
              kMinuteBit = 1 << 11, kSecondBit = 1 << 12;

// The unit of a bare number at the right end.
Unit UnitOfRange(int range) {
  if (range == kYearBit) return Unit::kYear;
  if (range == kMonthBit || range == (kYearBit | kMonthBit)) return Unit::kMonth;
  if (range == kDayBit) return Unit::kDay;
  if (range == kHourBit || range == (kDayBit | kHourBit)) return Unit::kHour;
  if (range == kMinuteBit || range == (kHourBit | kMinuteBit) ||
      range == (kDayBit | kHourBit | kMinuteBit)) {
    return Unit::kMinute;
  }
  return Unit::kSecond;
}

// A sum of fields in 64 bits, checked at the end.
class IntervalSum {
 public:
  bool AddMicros(int64_t value, double fraction, int64_t scale) {
    int64_t product;
    return !__builtin_mul_overflow(value, scale, &product) &&
           !__builtin_add_overflow(micros, product, &micros) &&
           AddFractionMicros(fraction, static_cast<double>(scale));
  }
  bool AddFractionMicros(double fraction, double scale) {
    if (fraction == 0) return true;
    fraction *= scale;
    const auto whole = static_cast<int64_t>(fraction);
    if (__builtin_add_overflow(micros, whole, &micros)) return false;
    fraction -= static_cast<double>(whole);
    if (fraction > 0.5) return !__builtin_add_overflow(micros, int64_t{1}, &micros);
    if (fraction < -0.5) return !__builtin_sub_overflow(micros, int64_t{1}, &micros);
    return true;
  }
  bool AddDays(int64_t value, int64_t scale) {
    return !__builtin_mul_overflow(value, scale, &value) && AddTo(value, &days);
  }
  // The fraction of `scale` days.
  bool AddFractionDays(double fraction, int scale) {
    if (fraction == 0) return true;
    fraction *= scale;
    const int whole = static_cast<int>(fraction);
    return AddTo(whole, &days) &&
           AddFractionMicros(fraction - whole, static_cast<double>(kMicrosPerDay));
  }
  bool AddMonths(int64_t value) { return AddTo(value, &months); }
  bool AddYears(int64_t value, double fraction, int scale) {
    int64_t sum;
    if (__builtin_mul_overflow(value, int64_t{scale}, &value) || value > INT32_MAX ||
        value < INT32_MIN || __builtin_add_overflow(years, value, &sum) || sum > INT32_MAX ||
        sum < INT32_MIN) {
      return false;
    }
    years = sum;
    return AddTo(static_cast<int64_t>(std::rint(fraction * scale * 12)), &months);
  }
  void Negate() {
    micros = micros == INT64_MIN ? INT64_MAX : -micros;
    days = -days;
    months = -months;
    years = -years;
  }

  int64_t micros = 0, days = 0, months = 0, years = 0;

 private:
  static bool AddTo(int64_t value, int64_t* field) {
    int64_t sum;
    if (__builtin_add_overflow(*field, value, &sum) || sum > INT32_MAX || sum < INT32_MIN) {
      return false;
    }
    *field = sum;
    return true;
  }
};

// Adds value + fraction of `unit`.
DateTimeFailure AddUnit(Unit unit, int64_t value, double fraction, IntervalSum* sum) {
  bool fits;
  switch (unit) {
    case Unit::kMicrosecond: fits = sum->AddMicros(value, fraction, 1); break;
    case Unit::kMillisecond: fits = sum->AddMicros(value, fraction, 1000); break;
    case Unit::kSecond: fits = sum->AddMicros(value, fraction, kMicrosPerSecond); break;
    case Unit::kMinute: fits = sum->AddMicros(value, fraction, kMicrosPerMinute); break;
    case Unit::kHour: fits = sum->AddMicros(value, fraction, kMicrosPerHour); break;
    case Unit::kDay:
      fits = sum->AddDays(value, 1) &&
             sum->AddFractionMicros(fraction, static_cast<double>(kMicrosPerDay));
      break;
    case Unit::kWeek: fits = sum->AddDays(value, 7) && sum->AddFractionDays(fraction, 7); break;
    case Unit::kMonth: fits = sum->AddMonths(value) && sum->AddFractionDays(fraction, 30); break;
    case Unit::kYear: fits = sum->AddYears(value, fraction, 1); break;
    case Unit::kDecade: fits = sum->AddYears(value, fraction, 10); break;
    case Unit::kCentury: fits = sum->AddYears(value, fraction, 100); break;
    case Unit::kMillennium: fits = sum->AddYears(value, fraction, 1000); break;
    default: return DateTimeFailure::kBadFormat;
  }
  return fits ? DateTimeFailure::kNone : DateTimeFailure::kFieldOverflow;
}

// "hh:mm[:ss[.f]]"; hours have no limit.
DateTimeFailure AddClock(std::string_view text, int range, int64_t* micros) {
  int64_t hours, minutes, seconds = 0;
  int fraction = 0;
  bool overflow = false;
  if (!TakeInteger(&text, &hours, &overflow)) return DateTimeFailure::kBadFormat;
  if (text.empty() || text[0] != ':') return DateTimeFailure::kBadFormat;
  text.remove_prefix(1);
  const auto take_or_zero = [&overflow, &text](int64_t* value) {  // "4:" has no minutes
    if (!TakeInteger(&text, value, &overflow)) *value = 0;
  };
  take_or_zero(&minutes);
  if (text.empty()) {
    if (range == (kMinuteBit | kSecondBit)) {
      seconds = minutes;
      minutes = hours;
      hours = 0;
    }
  } else if (text[0] == '.') {
    if (!internal::ParseFractionMicros(text, &fraction)) return DateTimeFailure::kBadFormat;
    seconds = minutes;
    minutes = hours;
    hours = 0;
  } else {
    if (text[0] != ':') return DateTimeFailure::kBadFormat;
    text.remove_prefix(1);
    take_or_zero(&seconds);
    if (!text.empty() && (text[0] != '.' || !internal::ParseFractionMicros(text, &fraction))) {
      return DateTimeFailure::kBadFormat;
    }
  }
  if (overflow || hours < 0 || minutes < 0 || minutes > 59 || seconds < 0 || seconds > 60) {
    return DateTimeFailure::kFieldOverflow;
  }
  int64_t hour_micros;
  if (__builtin_mul_overflow(hours, kMicrosPerHour, &hour_micros) ||
      __builtin_add_overflow(hour_micros,
                             minutes * kMicrosPerMinute + seconds * kMicrosPerSecond + fraction,
                             micros)) {
    return DateTimeFailure::kFieldOverflow;
  }
  return DateTimeFailure::kNone;
}

// Fields from right to left, so that a unit is known before its number.
class IntervalDecoder {
 public:
  IntervalDecoder(int range, const FormatSettings& settings) : range_(range), settings_(settings) {}

  DateTimeFailure Decode(std::span<const DateTimeFieldText> fields, IntervalSum* sum) {
    // In the SQL standard's style a leading minus holds for all fields, unless others have signs
    // too.
    if (settings_.interval_style == IntervalStyle::kSqlStandard && !fields.empty() &&
        fields[0].text[0] == '-') {
      force_negative_ = true;
      for (size_t i = 1; i < fields.size(); ++i) {
        if (fields[i].text[0] == '-' || fields[i].text[0] == '+') force_negative_ = false;
      }
    }
    bool ago = false;
    uint32_t have = 0;
    for (size_t i = fields.size(); i-- > 0;) {
      uint32_t mask = 0;
      const DateTimeFieldText& field = fields[i];
      DateTimeFailure failure = DateTimeFailure::kNone;
      if (field.kind == FieldKind::kString || field.kind == FieldKind::kSpecial) {
        if (unit_pending_) return DateTimeFailure::kBadFormat;
        unit_ = FindUnit(field.text);
        if (unit_ == Unit::kInvalid) return DateTimeFailure::kBadFormat;
        if (unit_ == Unit::kAgo) {
          ago = true;
          unit_ = Unit::kSecond;
        } else {
          unit_pending_ = true;
        }
      } else if (field.kind == FieldKind::kTime) {
        failure = DecodeClock(field.text, sum, &mask);
      } else {
        const bool signed_clock =
            field.kind == FieldKind::kZone && field.text.find(':', 1) != std::string_view::npos;
        if (!signed_clock || DecodeClock(field.text, sum, &mask) != DateTimeFailure::kNone) {
          failure = DecodeNumber(field.text, sum, &mask);
        }
      }
      if (failure != DateTimeFailure::kNone) return failure;
      if ((mask & have) != 0) return DateTimeFailure::kBadFormat;
      have |= mask;
    }
    if (have == 0 || unit_pending_) return DateTimeFailure::kBadFormat;
    if (ago) sum->Negate();
    return DateTimeFailure::kNone;
  }

 private:
  static uint32_t MaskOf(Unit unit) { return 1u << static_cast<int>(unit); }
  static uint32_t AllSeconds() {
    return MaskOf(Unit::kSecond) | MaskOf(Unit::kMillisecond) | MaskOf(Unit::kMicrosecond);
  }

  DateTimeFailure DecodeClock(std::string_view text, IntervalSum* sum, uint32_t* mask) {
    const bool negative = text[0] == '-';
    if (negative || text[0] == '+') text.remove_prefix(1);
    int64_t micros;
    const DateTimeFailure failure = AddClock(text, range_, &micros);
    if (failure != DateTimeFailure::kNone) return failure;
    if (negative || force_negative_) micros = -micros;
    if (__builtin_add_overflow(sum->micros, micros, &sum->micros)) {
      return DateTimeFailure::kFieldOverflow;
    }
    *mask = MaskOf(Unit::kHour) | MaskOf(Unit::kMinute) | AllSeconds();
    unit_ = Unit::kDay;  // what a number to the left is
    unit_pending_ = false;
    return DateTimeFailure::kNone;
  }

  DateTimeFailure DecodeNumber(std::string_view text, IntervalSum* sum, uint32_t* mask) {
    if (unit_ == Unit::kNone) unit_ = UnitOfRange(range_);
    const bool negative = text[0] == '-';
    int64_t value = 0;
    double fraction = 0;
    bool overflow = false;
    if (text[0] != '.' && !(text.size() > 1 && text[1] == '.' && (negative || text[0] == '+')) &&
        !TakeInteger(&text, &value, &overflow)) {
      return DateTimeFailure::kBadFormat;
    }
    if (overflow) return DateTimeFailure::kFieldOverflow;
    if (text.empty()) {
      // a whole number
    } else if (text[0] == '-') {  // years-months
      text.remove_prefix(1);
      int64_t months;
      if (text.empty() || text[0] == '-' || text[0] == '+' ||
          !TakeInteger(&text, &months, &overflow)) {
        return DateTimeFailure::kBadFormat;
      }
      if (overflow || months >= 12) return DateTimeFailure::kFieldOverflow;
      if (!text.empty()) return DateTimeFailure::kBadFormat;
      unit_ = Unit::kMonth;
      if (negative) months = -months;
      if (__builtin_mul_overflow(value, int64_t{12}, &value) ||
          __builtin_add_overflow(value, months, &value)) {
        return DateTimeFailure::kFieldOverflow;
      }
    } else if (text[0] == '.') {
      if (!internal::ParseFraction(text, &fraction)) return DateTimeFailure::kBadFormat;
      if (negative) fraction = -fraction;
    } else {
      return DateTimeFailure::kBadFormat;
    }
    if (force_negative_) {
      if (value > 0) value = -value;
      if (fraction > 0) fraction = -fraction;
    }
    const DateTimeFailure failure = AddUnit(unit_, value, fraction, sum);
    *mask = MaskOf(unit_);
    if (unit_ == Unit::kSecond && fraction != 0) *mask = AllSeconds();
    if (unit_ == Unit::kHour) unit_ = Unit::kDay;
    unit_pending_ = false;
    return failure;
  }

  int range_;
  const FormatSettings& settings_;
  bool force_negative_ = false;
  Unit unit_ = Unit::kNone;
  bool unit_pending_ = false;  // a unit without its number yet
};

// "P1Y2M3DT4H5M6S", "P1W", "P0001-02-03T04:05:06", "P20240102T030405".
class Iso8601Reader {
 public:
  explicit Iso8601Reader(std::string_view text) : text_(text) {}

  DateTimeFailure Read(IntervalSum* sum) {
    if (text_.size() < 2 || text_[0] != 'P') return DateTimeFailure::kBadFormat;
    text_.remove_prefix(1);
    bool date_part = true, have_field = false;
    while (!text_.empty()) {
      if (text_[0] == 'T') {
        date_part = false;
        have_field = false;
        text_.remove_prefix(1);
        continue;
      }
      const size_t before = text_.size();
      int64_t value;
      double fraction;
      const DateTimeFailure number = ReadNumber(&value, &fraction);
      if (number != DateTimeFailure::kNone) return number;
      const size_t width = before - text_.size();
      const char unit = text_.empty() ? '\0' : text_[0];
      if (!text_.empty()) text_.remove_prefix(1);
      DateTimeFailure failure;
      if (date_part) {
        switch (unit) {
          case 'Y': failure = AddUnit(Unit::kYear, value, fraction, sum); break;
          case 'M': failure = AddUnit(Unit::kMonth, value, fraction, sum); break;
          case 'W': failure = AddUnit(Unit::kWeek, value, fraction, sum); break;
          case 'D': failure = AddUnit(Unit::kDay, value, fraction, sum); break;
          case 'T':
          case '\0':
            if (width == 8 && !have_field) {  // yyyymmdd
              failure = First(AddUnit(Unit::kYear, value / 10000, 0, sum),
                              AddUnit(Unit::kMonth, value / 100 % 100, 0, sum),
                              AddUnit(Unit::kDay, value % 100, fraction, sum));
              if (unit == 'T') {
                date_part = false;
                have_field = false;
              }
              if (failure != DateTimeFailure::kNone || unit == '\0') return failure;
              continue;
            }
            [[fallthrough]];
          case '-': {
            if (have_field) return DateTimeFailure::kBadFormat;
            failure = AddUnit(Unit::kYear, value, fraction, sum);
            if (failure != DateTimeFailure::kNone || unit == '\0') return failure;
            if (unit == 'T') {
              date_part = false;
              continue;
            }
            char end;
            failure = ReadPart(Unit::kMonth, sum, &end);
            if (failure != DateTimeFailure::kNone || end == '\0') return failure;
            if (end == 'T') {
              date_part = false;
              continue;
            }
            if (end != '-') return DateTimeFailure::kBadFormat;
            failure = ReadPart(Unit::kDay, sum, &end);
            if (failure != DateTimeFailure::kNone || end == '\0') return failure;
            if (end != 'T') return DateTimeFailure::kBadFormat;
            date_part = false;
            continue;
          }
          default: return DateTimeFailure::kBadFormat;
        }
      } else {
        switch (unit) {
          case 'H': failure = AddUnit(Unit::kHour, value, fraction, sum); break;
          case 'M': failure = AddUnit(Unit::kMinute, value, fraction, sum); break;
          case 'S': failure = AddUnit(Unit::kSecond, value, fraction, sum); break;
          case '\0':
            if (width == 6 && !have_field) {  // hhmmss
              return First(AddUnit(Unit::kHour, value / 10000, 0, sum),
                           AddUnit(Unit::kMinute, value / 100 % 100, 0, sum),
                           AddUnit(Unit::kSecond, value % 100, fraction, sum));
            }
            [[fallthrough]];
          case ':': {
            if (have_field) return DateTimeFailure::kBadFormat;
            failure = AddUnit(Unit::kHour, value, fraction, sum);
            if (failure != DateTimeFailure::kNone || unit == '\0') return failure;
            char end;
            failure = ReadPart(Unit::kMinute, sum, &end);
            if (failure != DateTimeFailure::kNone || end == '\0') return failure;
            if (end != ':') return DateTimeFailure::kBadFormat;
            failure = ReadPart(Unit::kSecond, sum, &end);
            if (failure != DateTimeFailure::kNone) return failure;
            return end == '\0' ? DateTimeFailure::kNone : DateTimeFailure::kBadFormat;
          }
          default: return DateTimeFailure::kBadFormat;
        }
      }
      if (failure != DateTimeFailure::kNone) return failure;
      have_field = true;
    }
    return DateTimeFailure::kNone;
  }

 private:
  static DateTimeFailure First(DateTimeFailure a, DateTimeFailure b, DateTimeFailure c) {
    if (a != DateTimeFailure::kNone) return a;
    return b != DateTimeFailure::kNone ? b : c;
  }
  DateTimeFailure ReadPart(Unit unit, IntervalSum* sum, char* end) {
    int64_t value;
    double fraction;
    const DateTimeFailure number = ReadNumber(&value, &fraction);
    if (number != DateTimeFailure::kNone) return number;
    *end = text_.empty() ? '\0' : text_[0];
    if (!text_.empty()) text_.remove_prefix(1);
    return AddUnit(unit, value, fraction, sum);
  }
  DateTimeFailure ReadNumber(int64_t* value, double* fraction) {
    *value = 0;
    *fraction = 0;
    if (text_.empty()) return DateTimeFailure::kBadFormat;
    // As C reads a double, exponents and all; it begins with a digit, a minus or a point.
    if (text_[0] != '-' && text_[0] != '.' && (text_[0] < '0' || text_[0] > '9')) {
      return DateTimeFailure::kBadFormat;
    }
    double number = 0;
    const auto read = std::from_chars(text_.data(), text_.data() + text_.size(), number);
    if (read.ec == std::errc::invalid_argument) return DateTimeFailure::kBadFormat;
    constexpr double kMost = 1e15;  // as far as a double's whole numbers and their parts go
    if (read.ec != std::errc()) return DateTimeFailure::kBadFormat;
    if (!(number >= -kMost && number <= kMost)) return DateTimeFailure::kFieldOverflow;
    const double whole = std::trunc(number);
    *value = static_cast<int64_t>(whole);
    *fraction = number - whole;
    text_.remove_prefix(static_cast<size_t>(read.ptr - text_.data()));
    return DateTimeFailure::kNone;
  }

  std::string_view text_;
};

// ---- Printing ----

struct Parts {
  int64_t years, months, days, hours, minutes, seconds, micros;

  explicit Parts(Interval value)
      : years(value.months / 12),
        months(value.months % 12),
        days(value.days),
        hours(value.micros / kMicrosPerHour),
        minutes(value.micros / kMicrosPerMinute % 60),
        seconds(value.micros / kMicrosPerSecond % 60),
        micros(value.micros % kMicrosPerSecond) {}

  bool has_time() const { return hours != 0 || minutes != 0 || seconds != 0 || micros != 0; }
  bool time_negative() const { return hours < 0 || minutes < 0 || seconds < 0 || micros < 0; }
};

void AppendSeconds(const Parts& parts, bool two_digits, std::string* out) {
  const int64_t seconds = std::abs(parts.seconds);
  if (two_digits && seconds < 10) out->push_back('0');
  out->append(fmt::format("{}", seconds));
  internal::AppendFraction(static_cast<int>(std::abs(parts.micros)), out);
}

void AppendPostgres(const Parts& parts, std::string* out) {
  bool first = true;
  bool after_negative = false;  // a positive number after a negative one shows its sign
  auto append = [&](int64_t value, std::string_view unit) {
    if (value == 0) return;
    out->append(fmt::format("{}{}{} {}{}", first ? "" : " ", after_negative && value > 0 ? "+" : "",
                            value, unit, value != 1 ? "s" : ""));
    after_negative = value < 0;
    first = false;
  };
  append(parts.years, "year");
  append(parts.months, "mon");
  append(parts.days, "day");
  if (!first && !parts.has_time()) return;
  out->append(fmt::format("{}{}{:02}:{:02}:", first ? "" : " ",
                          parts.time_negative() ? "-"
                          : after_negative      ? "+"
                                                : "",
                          std::abs(parts.hours), std::abs(parts.minutes)));
  AppendSeconds(parts, true, out);
}

void AppendVerbose(const Parts& parts, std::string* out) {
  out->push_back('@');
  bool first = true;
  bool ago = false;  // the first field's sign is that of the whole
  auto append = [&](int64_t value, std::string_view unit) {
    if (value == 0) return;
    if (first) {
      ago = value < 0;
      value = std::abs(value);
    } else if (ago) {
      value = -value;
    }
    out->append(fmt::format(" {} {}{}", value, unit, value == 1 ? "" : "s"));
    first = false;
  };
  append(parts.years, "year");
  append(parts.months, "mon");
  append(parts.days, "day");
  append(parts.hours, "hour");
  append(parts.minutes, "min");
  if (parts.seconds != 0 || parts.micros != 0) {
    out->push_back(' ');
    if (parts.seconds < 0 || (parts.seconds == 0 && parts.micros < 0)) {
      if (first)
        ago = true;
      else if (!ago)
        out->push_back('-');
    } else if (ago) {
      out->push_back('-');
    }
    AppendSeconds(parts, false, out);
    out->append(std::abs(parts.seconds) != 1 || parts.micros != 0 ? " secs" : " sec");
    first = false;
  }
  if (first) out->append(" 0");
  if (ago) out->append(" ago");
}

void AppendIso8601(const Parts& parts, std::string* out) {
  const size_t start = out->size();
  out->push_back('P');
  auto append = [&](int64_t value, char unit) {
    if (value != 0) out->append(fmt::format("{}{}", value, unit));
  };
  append(parts.years, 'Y');
  append(parts.months, 'M');
  append(parts.days, 'D');
  if (parts.has_time()) out->push_back('T');
  append(parts.hours, 'H');
  append(parts.minutes, 'M');
  if (parts.seconds != 0 || parts.micros != 0) {
    if (parts.seconds < 0 || parts.micros < 0) out->push_back('-');
    AppendSeconds(parts, false, out);
    out->push_back('S');
  }
  if (out->size() == start + 1) out->append("T0S");
}

void AppendSqlStandard(Parts parts, std::string* out) {
  const bool negative =
      parts.years < 0 || parts.months < 0 || parts.days < 0 || parts.time_negative();
  const bool positive = parts.years > 0 || parts.months > 0 || parts.days > 0 || parts.hours > 0 ||
                        parts.minutes > 0 || parts.seconds > 0 || parts.micros > 0;
  const bool year_month = parts.years != 0 || parts.months != 0;
  const bool day_time = parts.days != 0 || parts.has_time();
  if (!negative && !positive) {
    out->push_back('0');
    return;
  }
  if ((negative && positive) || (year_month && day_time)) {
    // No standard form: signs for each part.
    out->append(
        fmt::format("{}{}-{} {}{} {}{}:{:02}:", parts.years < 0 || parts.months < 0 ? '-' : '+',
                    std::abs(parts.years), std::abs(parts.months), parts.days < 0 ? '-' : '+',
                    std::abs(parts.days), parts.time_negative() ? '-' : '+', std::abs(parts.hours),
                    std::abs(parts.minutes)));
    AppendSeconds(parts, true, out);
    return;
  }
  if (negative) out->push_back('-');
  if (year_month) {
    out->append(fmt::format("{}-{}", std::abs(parts.years), std::abs(parts.months)));
    return;
  }
  if (parts.days != 0) out->append(fmt::format("{} ", std::abs(parts.days)));
  out->append(fmt::format("{}:{:02}:", std::abs(parts.hours), std::abs(parts.minutes)));
  AppendSeconds(parts, true, out);
}

}  // namespace

Result<Interval> ParseInterval(std::string_view text, int32_t modifier,
                               const FormatSettings& settings) {
  const int range = modifier <= 6 ? kFullRange : (modifier >> 16) & kFullRange;
  IntervalSum sum;
  DateTimeFailure failure = DateTimeFailure::kBadFormat;
  DateTimeLexer lexer;
  if (lexer.Split(text)) failure = IntervalDecoder(range, settings).Decode(lexer.fields(), &sum);
  if (failure == DateTimeFailure::kBadFormat) {
    sum = IntervalSum();
    failure = Iso8601Reader(text).Read(&sum);
  }
  if (failure == DateTimeFailure::kFieldOverflow) failure = DateTimeFailure::kIntervalOverflow;
  if (failure != DateTimeFailure::kNone) return DateTimeError(failure, text, "interval");
  const int64_t months = sum.years * 12 + sum.months;
  if (months > INT32_MAX || months < INT32_MIN || sum.days > INT32_MAX || sum.days < INT32_MIN) {
    return internal::IntervalOutOfRange();
  }
  return ApplyIntervalModifier(
      {sum.micros, static_cast<int32_t>(sum.days), static_cast<int32_t>(months)}, modifier);
}

void AppendInterval(Interval value, const FormatSettings& settings, std::string* out) {
  const Parts parts(value);
  switch (settings.interval_style) {
    case IntervalStyle::kPostgres: return AppendPostgres(parts, out);
    case IntervalStyle::kPostgresVerbose: return AppendVerbose(parts, out);
    case IntervalStyle::kSqlStandard: return AppendSqlStandard(parts, out);
    case IntervalStyle::kIso8601: return AppendIso8601(parts, out);
  }
}

}  // namespace cellar
