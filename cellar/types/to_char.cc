// to_char of timestamps and intervals.
#include "cellar/types/to_char.h"

#include <cstdlib>

#include "cellar/base/sqlstate.h"
#include "cellar/types/datetime_internal.h"
#include "cellar/types/datetime_pattern.h"

namespace cellar {

using internal::PatternNode;

namespace {

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return out;
}
std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }

// What a pattern can ask for. For intervals the fields may be negative and without limits.
struct Moment {
  bool is_interval = false;
  int64_t year = 0;  // astronomical, or years of an interval
  int64_t month = 0, day = 0, hour = 0, minute = 0, second = 0, micros = 0;
  int64_t days = 0;         // since 2000-01-01
  int64_t day_of_year = 0;  // of intervals: days of 30-day months
  bool has_zone = false;
  int seconds_east = 0;
  std::string_view zone_name;

  int64_t shown_year() const { return is_interval || year > 0 ? year : 1 - year; }
};

Moment OfTimestamp(int64_t local) {
  Moment out;
  out.days = internal::FloorDiv(local, kMicrosPerDay);
  const Civil civil = CivilFromTimestamp(local);
  out.year = civil.year;
  out.month = civil.month;
  out.day = civil.day;
  out.hour = civil.hour;
  out.minute = civil.minute;
  out.second = civil.second;
  out.micros = civil.micros;
  out.day_of_year = out.days - DaysFromCivil(civil.year, 1, 1) + 1;
  return out;
}

Moment OfInterval(Interval value) {
  Moment out;
  out.is_interval = true;
  out.year = value.months / 12;
  out.month = value.months % 12;
  out.day = value.days;
  out.hour = value.micros / kMicrosPerHour;
  out.minute = value.micros / kMicrosPerMinute % 60;
  out.second = value.micros / kMicrosPerSecond % 60;
  out.micros = value.micros % kMicrosPerSecond;
  out.day_of_year = int64_t{value.months} * 30 + value.days;
  // As if the fields were a date: month 0 is the December before.
  const int64_t total = value.months - 1;
  const int64_t year = internal::FloorDiv(total, 12);
  out.days = DaysFromCivil(year, static_cast<int>(total - year * 12) + 1, 1) + out.day - 1;
  return out;
}

class Writer {
 public:
  Writer(const Moment& moment, std::string* out) : moment_(moment), out_(out) {}

  Status Write(std::string_view pattern) {
    for (const PatternNode& node : internal::SplitPattern(pattern, internal::kDateWords, true)) {
      if (node.kind != PatternNode::Kind::kWord) {
        out_->append(node.text);
        continue;
      }
      CELLAR_TRY(WriteWord(node));
    }
    return Status();
  }

 private:
  static Status NotOfIntervals() {
    return SqlError(Code::kInvalid, sqlstate::kInvalidDatetimeFormat,
                    "invalid format specification for an interval value")
        .WithHint("Intervals are not tied to specific calendar dates.");
  }

  // Fractions keep their zeros under FM, and a sign takes the place of one.
  void Fraction(int64_t value, int width, PatternNode node) {
    node.fill_mode = false;
    NumberWithSign(value, width, node);
  }
  // `width` counts the sign too.
  void NumberWithSign(int64_t value, int width, const PatternNode& node) {
    Number(value, width - (value < 0 ? 1 : 0), node);
  }
  // `width` counts digits; a sign comes on top.
  void Number(int64_t value, int width, const PatternNode& node) {
    const std::string digits = fmt::format("{}", std::abs(value));
    const size_t start = out_->size();
    if (value < 0) out_->push_back('-');
    if (!node.fill_mode && digits.size() < static_cast<size_t>(width)) {
      out_->append(static_cast<size_t>(width) - digits.size(), '0');
    }
    out_->append(digits);
    if (node.ordinal != 0) Ordinal(out_->substr(start), node);
  }
  void Ordinal(std::string_view number, const PatternNode& node) {
    if (node.ordinal == 0) return;
    const std::string_view suffix = internal::OrdinalSuffix(number, node.ordinal == 'T');
    out_->append(suffix);
  }
  // MONTH, Month or month, as the word itself is written.
  void Name(std::string_view name, int width, const PatternNode& node) {
    const bool lower = IsLower(node.text[0]);
    const bool upper = !lower && !IsLower(node.text[1]);
    out_->append(lower ? Lower(name) : upper ? Upper(name) : std::string(name));
    if (!node.fill_mode && !node.translated && name.size() < static_cast<size_t>(width)) {
      out_->append(static_cast<size_t>(width) - name.size(), ' ');
    }
  }
  void Cased(std::string_view upper, const PatternNode& node) {
    out_->append(IsLower(node.text[0]) ? Lower(upper) : std::string(upper));
  }

  Status WriteWord(const PatternNode& node);
  Status WriteCalendarName(const PatternNode& node);
  void WriteZone(const PatternNode& node);
  void WriteYear(const PatternNode& node);
  void WriteRoman(const PatternNode& node);

  const Moment& moment_;
  std::string* out_;
};

Status Writer::WriteCalendarName(const PatternNode& node) {
  if (moment_.is_interval) return NotOfIntervals();
  const std::string_view month = internal::kMonthNames[moment_.month - 1];
  const std::string_view day = internal::kDayNames[internal::DayOfWeek(moment_.days)];
  switch (node.id) {
    case internal::kWordMonthName: Name(month, 9, node); break;
    case internal::kWordMonthShort: Name(month.substr(0, 3), 0, node); break;
    case internal::kWordDayName: Name(day, 9, node); break;
    default: Name(day.substr(0, 3), 0, node); break;
  }
  return Status();
}

void Writer::WriteZone(const PatternNode& node) {
  const int east = moment_.seconds_east;
  const char sign = east < 0 ? '-' : '+';
  const int magnitude = std::abs(east);
  switch (node.id) {
    case internal::kWordZone:
      if (moment_.has_zone) {
        out_->append(IsLower(node.text[0]) ? Lower(moment_.zone_name)
                                           : std::string(moment_.zone_name));
      }
      break;
    case internal::kWordZoneHour:
      out_->append(fmt::format("{}{:02}", sign, magnitude / 3600));
      break;
    case internal::kWordZoneMinute: out_->append(fmt::format("{:02}", magnitude / 60 % 60)); break;
    default:
      out_->append(node.fill_mode ? fmt::format("{}{}", sign, magnitude / 3600)
                                  : fmt::format("{}{:02}", sign, magnitude / 3600));
      if (magnitude % 3600 != 0) out_->append(fmt::format(":{:02}", magnitude / 60 % 60));
      break;
  }
}

void Writer::WriteYear(const PatternNode& node) {
  int64_t year = moment_.shown_year();
  const bool iso = node.id >= internal::kWordIsoYear4 && node.id <= internal::kWordIsoYear1;
  if (iso) {
    const int64_t iso_year = internal::IsoWeekOf(moment_.days).year;
    year = moment_.is_interval || iso_year > 0 ? iso_year : 1 - iso_year;
  }
  // Only an interval's own year decides whether a sign comes on top of the width.
  const int less = iso && moment_.is_interval && moment_.shown_year() >= 0 && year < 0 ? 1 : 0;
  switch (node.id) {
    case internal::kWordYearComma: {
      const size_t start = out_->size();
      out_->append(fmt::format("{},{:03}", year / 1000, year % 1000));
      Ordinal(std::string(*out_, start), node);
      return;
    }
    case internal::kWordYear4:
    case internal::kWordIsoYear4: return Number(year, 4 - less, node);
    case internal::kWordYear3:
    case internal::kWordIsoYear3: return Number(year % 1000, 3 - less, node);
    case internal::kWordYear2:
    case internal::kWordIsoYear2: return Number(year % 100, 2 - less, node);
    default: return Number(year % 10, 1, node);
  }
}

void Writer::WriteRoman(const PatternNode& node) {
  if (moment_.month == 0 && moment_.year == 0) return;
  // Intervals of whole years show December, or January when negative; negative months count back.
  int64_t index = moment_.month - 1;
  if (moment_.month == 0)
    index = moment_.year >= 0 ? 11 : 0;
  else if (moment_.month < 0)
    index = 12 + moment_.month;
  const std::string_view text = internal::kRomanMonths[index];
  Cased(text, node);
  if (!node.fill_mode && text.size() < 4) out_->append(4 - text.size(), ' ');
}

Status Writer::WriteWord(const PatternNode& node) {
  using namespace internal;  // NOLINT: the words
  const Moment& m = moment_;
  switch (node.id) {
    case kWordAmDotted: Cased(m.hour % 24 >= 12 ? "P.M." : "A.M.", node); break;
    case kWordAm: Cased(m.hour % 24 >= 12 ? "PM" : "AM", node); break;
    case kWordHour12: Number(m.hour % 12 == 0 ? 12 : m.hour % 12, 2, node); break;
    case kWordHour24: Number(m.hour, 2, node); break;
    case kWordMinute: Number(m.minute, 2, node); break;
    case kWordSecond: Number(m.second, 2, node); break;
    case kWordFraction1: Fraction(m.micros / 100000, 1, node); break;
    case kWordFraction2: Fraction(m.micros / 10000, 2, node); break;
    case kWordFraction3:
    case kWordMillisecond: Fraction(m.micros / 1000, 3, node); break;
    case kWordFraction4: Fraction(m.micros / 100, 4, node); break;
    case kWordFraction5: Fraction(m.micros / 10, 5, node); break;
    case kWordFraction6:
    case kWordMicrosecond: Fraction(m.micros, 6, node); break;
    case kWordSecondOfDay: Number((m.hour * 60 + m.minute) * 60 + m.second, 1, node); break;
    case kWordZone:
    case kWordZoneHour:
    case kWordZoneMinute:
    case kWordOffset:
      if (m.is_interval) return NotOfIntervals();
      WriteZone(node);
      break;
    case kWordEraDotted:
    case kWordEra:
      if (m.is_interval) return NotOfIntervals();
      if (node.id == kWordEra)
        Cased(m.year <= 0 ? "BC" : "AD", node);
      else
        Cased(m.year <= 0 ? "B.C." : "A.D.", node);
      break;
    case kWordMonthName:
    case kWordMonthShort:
    case kWordDayName:
    case kWordDayShort: return WriteCalendarName(node);
    case kWordMonthNumber: Number(m.month, 2, node); break;
    case kWordDayOfYear: NumberWithSign(m.day_of_year, 3, node); break;
    case kWordIsoDayOfYear:
      Number(m.days - DaysFromIsoWeek(IsoWeekOf(m.days).year, 1) + 1, 3, node);
      break;
    case kWordDayOfMonth: NumberWithSign(m.day, 2, node); break;
    case kWordDayOfWeek:
      if (m.is_interval) return NotOfIntervals();
      Number(DayOfWeek(m.days) + 1, 1, node);
      break;
    case kWordIsoDayOfWeek:
      if (m.is_interval) return NotOfIntervals();
      Number((DayOfWeek(m.days) + 6) % 7 + 1, 1, node);
      break;
    case kWordWeekOfYear: {
      NumberWithSign((m.day_of_year - 1) / 7 + 1, 2, node);
      break;
    }
    case kWordIsoWeek: Number(IsoWeekOf(m.days).week, 2, node); break;
    case kWordQuarter:
      if (m.month != 0) Number((m.month - 1) / 3 + 1, 1, node);
      break;
    case kWordCentury: {
      int64_t century = m.year / 100;
      if (!m.is_interval) century = m.year > 0 ? (m.year - 1) / 100 + 1 : m.year / 100 - 1;
      Number(century, 2, node);
      break;
    }
    case kWordYearComma:
    case kWordYear4:
    case kWordYear3:
    case kWordYear2:
    case kWordYear1:
    case kWordIsoYear4:
    case kWordIsoYear3:
    case kWordIsoYear2:
    case kWordIsoYear1: WriteYear(node); break;
    case kWordRoman: WriteRoman(node); break;
    case kWordWeekOfMonth: Number((m.day - 1) / 7 + 1, 1, node); break;
    case kWordJulian: Number(m.days + kJulianOf2000, 1, node); break;
    default: break;
  }
  return Status();
}

}  // namespace

Status TimestampToChar(int64_t micros, std::string_view pattern, std::string* out) {
  if (!IsFiniteTimestamp(micros)) return Status();
  return Writer(OfTimestamp(micros), out).Write(pattern);
}

Status TimestampTzToChar(int64_t micros, std::string_view pattern, const TimeZone* zone_or_null,
                         std::string* out) {
  if (!IsFiniteTimestamp(micros)) return Status();
  const TimeZone& zone = zone_or_null != nullptr ? *zone_or_null : TimeZone::Utc();
  bool is_dst;
  std::string_view name;
  const int east = zone.OffsetAt(micros, &is_dst, &name);
  Moment moment = OfTimestamp(micros + east * kMicrosPerSecond);
  moment.has_zone = true;
  moment.seconds_east = east;
  moment.zone_name = name;
  return Writer(moment, out).Write(pattern);
}

Status IntervalToChar(Interval value, std::string_view pattern, std::string* out) {
  return Writer(OfInterval(value), out).Write(pattern);
}

}  // namespace cellar
