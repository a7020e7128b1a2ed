// to_date and to_timestamp: reading text by a pattern.
#include <algorithm>
#include <cstdlib>

#include "cellar/base/sqlstate.h"
#include "cellar/types/datetime_internal.h"
#include "cellar/types/datetime_lexer.h"
#include "cellar/types/datetime_pattern.h"
#include "cellar/types/to_char.h"

namespace cellar {

using internal::PatternNode;

namespace {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsDigit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
bool IsAlphanumeric(char c) { return IsDigit(c) || (Lower(c) >= 'a' && Lower(c) <= 'z'); }
bool IsSeparator(char c) { return c > ' ' && c < 127 && !IsAlphanumeric(c); }

bool StartsWithIgnoringCase(std::string_view text, std::string_view name) {
  if (text.size() < name.size()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    if (Lower(text[i]) != Lower(name[i])) return false;
  }
  return true;
}

Status FormatError(std::string message, std::string detail) {
  Status status = SqlError(Code::kInvalid, sqlstate::kInvalidDatetimeFormat, "{}", message);
  return detail.empty() ? status : std::move(status).WithDetail(std::move(detail));
}

// What the fields said; 0 is not given, as in PostgreSQL.
struct Fields {
  int64_t hour = 0, minute = 0, second = 0, second_of_day = 0;
  int64_t day_of_week = 0, day = 0, day_of_year = 0, month = 0, week = 0, week_of_month = 0;
  int64_t year = 0, century = 0, julian = 0, millis = 0, micros = 0, year_digits = 4;
  int64_t zone_sign = 0, zone_hour = 0, zone_minute = 0;
  int64_t pm = 0, bc = 0;
  int fraction_digits = 0;  // of the last FF1 to FF6
  bool clock12 = false, iso = false, gregorian = false;
};

class Reader {
 public:
  Reader(std::string_view text, std::string_view pattern)
      : text_(text), nodes_(internal::SplitPattern(pattern, internal::kDateWords, true)) {}

  Status Read();
  // Into fields of their ranges, with the year astronomical. Errors: 22008 for what is not.
  Status Resolve(Civil* out) const;
  const Fields& fields() const { return f_; }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  void SkipSpaces(bool count) {
    while (!AtEnd() && IsSpace(text_[at_])) {
      ++at_;
      if (count) ++extra_skipped_;
    }
  }
  size_t CharacterLength() const {
    size_t end = at_ + 1;
    while (end < text_.size() && (text_[end] & 0xC0) == 0x80) ++end;
    return end - at_;
  }

  Status ReadWord(size_t i);
  // As scanf's %d: blanks, then at most so many characters of sign and digits.
  bool ScanNumber(size_t width, int64_t* value) {
    SkipSpaces(false);
    const size_t end = std::min(text_.size() - at_, width) + at_;
    bool negative = false;
    if (at_ < end && (text_[at_] == '-' || text_[at_] == '+')) negative = text_[at_++] == '-';
    const size_t first = at_;
    for (*value = 0; at_ < end && IsDigit(text_[at_]); ++at_) {
      if (*value < INT32_MAX) *value = *value * 10 + (text_[at_] - '0');
    }
    if (negative) *value = -*value;
    return at_ > first;
  }
  // TH is left out behind numbers; names do not look for it.
  static bool TakesOrdinal(const PatternNode& node);
  bool NonDigitFollows(size_t i) const;
  Status ReadNumber(size_t i, int length, int64_t* field, int* used = nullptr);
  Status ReadFraction(size_t i, int length, int unit_digits, int64_t* field);
  Status ReadYear(size_t i, int length, int* used = nullptr);
  Status ReadName(size_t i, std::span<const std::string_view> names, size_t letters, int* found);
  Status Set(size_t i, int64_t value, int64_t* field);
  Status SetMode(bool iso);
  Status OutOfRange() const {
    return internal::DateTimeError(internal::DateTimeFailure::kFieldOverflow, text_, "timestamp");
  }

  std::string_view text_;
  std::vector<PatternNode> nodes_;
  size_t at_ = 0;
  int extra_skipped_ = 0;
  bool fixed_ = false;  // after FX
  Fields f_;
};

// May a number be as long as its digits go, for what follows is no digit?
bool Reader::NonDigitFollows(size_t i) const {
  if (nodes_[i].ordinal != 0) return true;
  if (i + 1 == nodes_.size()) return true;
  const PatternNode& next = nodes_[i + 1];
  if (next.kind == PatternNode::Kind::kWord) return !next.digits;
  return !(next.text.size() == 1 && IsDigit(next.text[0]));
}

Status Reader::Set(size_t i, int64_t value, int64_t* field) {
  if (*field != 0 && *field != value) {
    return FormatError(
        fmt::format("conflicting values for \"{}\" field in formatting string", nodes_[i].text),
        "This value contradicts a previous setting for the same field type.");
  }
  *field = value;
  return Status();
}

Status Reader::SetMode(bool iso) {
  if (iso ? f_.gregorian : f_.iso) {
    return std::move(FormatError("invalid combination of date conventions", ""))
        .WithHint("Do not mix Gregorian and ISO week date conventions in a formatting template.");
  }
  (iso ? f_.iso : f_.gregorian) = true;
  return Status();
}

Status Reader::ReadNumber(size_t i, int length, int64_t* field, int* used) {
  const size_t first = at_;  // blanks count as digits of a fraction
  SkipSpaces(false);
  const std::string_view window = text_.substr(at_, static_cast<size_t>(length));
  const bool open = nodes_[i].fill_mode || NonDigitFollows(i);
  const std::string_view source = open ? text_.substr(at_) : window;
  size_t size = 0;
  if (size < source.size() && (source[0] == '-' || source[0] == '+')) size = 1;
  const size_t digits = size;
  int64_t value = 0;
  while (size < source.size() && IsDigit(source[size])) {
    if (value < INT64_MAX / 10 - 10) value = value * 10 + (source[size] - '0');
    ++size;
  }
  if (size == digits) size = 0;
  if (!open) {
    if (window.size() < static_cast<size_t>(length)) {
      return std::move(
                 FormatError(fmt::format("source string too short for \"{}\" formatting field",
                                         nodes_[i].text),
                             fmt::format("Field requires {} characters, but only {} remain.",
                                         length, window.size())))
          .WithHint("If your source string is not fixed-width, try using the \"FM\" modifier.");
    }
    if (size > 0 && size < static_cast<size_t>(length)) {
      return std::move(FormatError(
                           fmt::format("invalid value \"{}\" for \"{}\"", window, nodes_[i].text),
                           fmt::format("Field requires {} characters, but only {} could be parsed.",
                                       length, size)))
          .WithHint("If your source string is not fixed-width, try using the \"FM\" modifier.");
    }
  }
  if (size == 0) {
    return FormatError(fmt::format("invalid value \"{}\" for \"{}\"", window, nodes_[i].text),
                       "Value must be an integer.");
  }
  if (source[0] == '-') value = -value;
  if (value > INT32_MAX || value < INT32_MIN) {
    return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow,
                    "value for \"{}\" in source string is out of range", nodes_[i].text)
        .WithDetail(fmt::format("Value must be in the range {} to {}.", INT32_MIN, INT32_MAX));
  }
  at_ += size;
  if (used != nullptr) *used = static_cast<int>(at_ - first);
  if (field == nullptr) return Status();
  return Set(i, value, field);
}

// "25" of MS is 250 thousandths.
Status Reader::ReadFraction(size_t i, int length, int unit_digits, int64_t* field) {
  int used = 0;
  CELLAR_TRY(ReadNumber(i, length, field, &used));
  for (int k = used; k < unit_digits; ++k) *field *= 10;
  return Status();
}

Status Reader::ReadYear(size_t i, int length, int* used) {
  int digits = 0;
  CELLAR_TRY(ReadNumber(i, length, &f_.year, &digits));
  // Short years are near 2020.
  if (length < 4 && digits < 4) {
    if (f_.year < 70)
      f_.year += 2000;
    else if (f_.year < 100)
      f_.year += 1900;
    else if (f_.year < 520)
      f_.year += 2000;
    else if (f_.year < 1000)
      f_.year += 1000;
  }
  f_.year_digits = length;
  if (used != nullptr) *used = digits;
  return Status();
}

Status Reader::ReadName(size_t i, std::span<const std::string_view> names, size_t letters,
                        int* found) {
  for (size_t k = 0; k < names.size(); ++k) {
    const std::string_view name = names[k].substr(0, letters);
    if (StartsWithIgnoringCase(text_.substr(at_), name)) {
      *found = static_cast<int>(k);
      at_ += name.size();
      return Status();
    }
  }
  const std::string_view rest = text_.substr(at_);
  const size_t end = std::min(rest.find_first_of(" \t\n\r\f\v"), rest.size());
  return FormatError(
      fmt::format("invalid value \"{}\" for \"{}\"", rest.substr(0, end), nodes_[i].text),
      "The given value did not match any of the allowed values for this field.");
}

Status Reader::ReadWord(size_t i) {
  using namespace internal;  // NOLINT: the words
  static constexpr std::string_view kAm[] = {"am", "pm"}, kAmDotted[] = {"a.m.", "p.m."};
  static constexpr std::string_view kEras[] = {"ad", "bc"}, kErasDotted[] = {"a.d.", "b.c."};
  const PatternNode& node = nodes_[i];
  if (node.id <= kWordAm || (node.id >= kWordHour24 && node.id <= kWordHour12)) {
    // no date convention
  } else if (node.id >= kWordIsoDayOfYear && node.id <= kWordIsoYear1) {
    CELLAR_TRY(SetMode(true));
  } else if (node.id == kWordDayOfWeek || node.id == kWordDayOfYear || node.id == kWordDayOfMonth ||
             node.id == kWordMonthNumber || node.id == kWordMonthName ||
             node.id == kWordMonthShort || node.id == kWordRoman || node.id == kWordWeekOfYear ||
             node.id == kWordWeekOfMonth || node.id >= kWordYearComma) {
    CELLAR_TRY(SetMode(false));
  }
  int found = 0;
  switch (node.id) {
    case kWordFixed: fixed_ = true; return Status();
    case kWordAmDotted:
    case kWordAm:
      if (node.id == kWordAm)
        CELLAR_TRY(ReadName(i, kAm, 4, &found));
      else
        CELLAR_TRY(ReadName(i, kAmDotted, 4, &found));
      f_.clock12 = true;
      return Set(i, found, &f_.pm);
    case kWordEraDotted:
    case kWordEra:
      if (node.id == kWordEra)
        CELLAR_TRY(ReadName(i, kEras, 4, &found));
      else
        CELLAR_TRY(ReadName(i, kErasDotted, 4, &found));
      return Set(i, found, &f_.bc);
    case kWordHour12: f_.clock12 = true; return ReadNumber(i, 2, &f_.hour);
    case kWordHour24: return ReadNumber(i, 2, &f_.hour);
    case kWordMinute: return ReadNumber(i, 2, &f_.minute);
    case kWordSecond: return ReadNumber(i, 2, &f_.second);
    case kWordMillisecond: return ReadFraction(i, 3, 3, &f_.millis);
    case kWordFraction1:
    case kWordFraction2:
    case kWordFraction3:
    case kWordFraction4:
    case kWordFraction5:
    case kWordFraction6:
      f_.fraction_digits = node.id - kWordFraction1 + 1;
      return ReadFraction(i, f_.fraction_digits, 6, &f_.micros);
    case kWordMicrosecond: return ReadFraction(i, 6, 6, &f_.micros);
    case kWordSecondOfDay:
      return ReadNumber(i, static_cast<int>(node.text.size()), &f_.second_of_day);
    case kWordZone:
    case kWordOffset:
      return UnsupportedError("formatting field \"{}\" is only supported in to_char", node.text);
    case kWordZoneHour:
      if (!AtEnd() && (text_[at_] == '+' || text_[at_] == '-' || text_[at_] == ' ')) {
        f_.zone_sign = text_[at_++] == '-' ? -1 : 1;
      } else {
        // The sign may have been taken for a separator.
        f_.zone_sign = extra_skipped_ > 0 && at_ > 0 && text_[at_ - 1] == '-' ? -1 : 1;
      }
      return ReadNumber(i, 2, &f_.zone_hour);
    case kWordZoneMinute:
      if (f_.zone_sign == 0) f_.zone_sign = 1;
      return ReadNumber(i, 2, &f_.zone_minute);
    case kWordMonthName:
      CELLAR_TRY(ReadName(i, kMonthNames, 9, &found));
      return Set(i, found + 1, &f_.month);
    case kWordMonthShort:
      CELLAR_TRY(ReadName(i, kMonthNames, 3, &found));
      return Set(i, found + 1, &f_.month);
    case kWordMonthNumber: return ReadNumber(i, 2, &f_.month);
    case kWordDayName:
    case kWordDayShort:
      CELLAR_TRY(ReadName(i, kDayNames, node.id == kWordDayName ? 9 : 3, &found));
      // What contradicts is judged by the numbers as they are read, here from 0.
      CELLAR_TRY(Set(i, found, &f_.day_of_week));
      ++f_.day_of_week;
      return Status();
    case kWordDayOfYear:
    case kWordIsoDayOfYear: return ReadNumber(i, 3, &f_.day_of_year);
    case kWordDayOfMonth: return ReadNumber(i, 2, &f_.day);
    case kWordDayOfWeek: return ReadNumber(i, 1, &f_.day_of_week);
    case kWordIsoDayOfWeek: {
      CELLAR_TRY(ReadNumber(i, 1, &f_.day_of_week));
      // Counted from Sunday, as the others.
      if (++f_.day_of_week > 7) f_.day_of_week = 1;
      return Status();
    }
    case kWordWeekOfYear:
    case kWordIsoWeek: return ReadNumber(i, 2, &f_.week);
    case kWordQuarter: return ReadNumber(i, 1, nullptr);  // says nothing exact
    case kWordCentury: return ReadNumber(i, 2, &f_.century);
    case kWordYearComma: {
      int64_t thousands = 0, rest = 0;
      const bool read = ScanNumber(SIZE_MAX, &thousands) && !AtEnd() && text_[at_] == ',' &&
                        (++at_, ScanNumber(3, &rest));
      if (!read) {
        return FormatError(fmt::format("invalid input string for \"{}\"", node.text), "");
      }
      f_.year_digits = 4;
      return Set(i, thousands * 1000 + rest, &f_.year);
    }
    case kWordYear4:
    case kWordIsoYear4: return ReadYear(i, 4);
    case kWordYear3:
    case kWordIsoYear3: return ReadYear(i, 3);
    case kWordYear2:
    case kWordIsoYear2: return ReadYear(i, 2);
    case kWordYear1:
    case kWordIsoYear1: return ReadYear(i, 1);
    case kWordRoman: {
      // Longer numerals before their prefixes.
      int best = -1;
      for (int k = 0; k < 12; ++k) {
        if (StartsWithIgnoringCase(text_.substr(at_), kRomanMonths[k]) &&
            (best < 0 || kRomanMonths[k].size() > kRomanMonths[best].size())) {
          best = k;
        }
      }
      if (best < 0) return ReadName(i, {}, 0, &found);
      at_ += kRomanMonths[best].size();
      return Set(i, best + 1, &f_.month);
    }
    case kWordWeekOfMonth: return ReadNumber(i, 1, &f_.week_of_month);
    case kWordJulian: return ReadNumber(i, 1, &f_.julian);
    default: return Status();
  }
}

bool Reader::TakesOrdinal(const PatternNode& node) {
  using namespace internal;  // NOLINT: the words
  switch (node.id) {
    case kWordFixed:
    case kWordAmDotted:
    case kWordAm:
    case kWordEraDotted:
    case kWordEra:
    case kWordZoneHour:
    case kWordZoneMinute:
    case kWordMonthName:
    case kWordMonthShort:
    case kWordDayName:
    case kWordDayShort:
    case kWordRoman: return false;
    default: return true;
  }
}

Status Reader::Read() {
  for (size_t i = 0; i < nodes_.size() && !AtEnd(); ++i) {
    const PatternNode& node = nodes_[i];
    const bool is_word = node.kind == PatternNode::Kind::kWord;
    const bool is_fixed = is_word && node.id == internal::kWordFixed;
    if (!fixed_ && !is_fixed && (is_word || i == 0)) SkipSpaces(true);
    if (AtEnd()) break;
    if (node.kind == PatternNode::Kind::kSpace || node.kind == PatternNode::Kind::kSeparator) {
      if (fixed_) {
        at_ += CharacterLength();
      } else {
        // One separator of the pattern takes one of the text, or none.
        --extra_skipped_;
        if (IsSpace(text_[at_]) || IsSeparator(text_[at_])) {
          ++at_;
          ++extra_skipped_;
        }
      }
      continue;
    }
    if (!is_word) {
      if (!fixed_ && extra_skipped_ > 0)
        --extra_skipped_;
      else
        at_ += CharacterLength();
      continue;
    }
    CELLAR_TRY(ReadWord(i));
    for (int k = 0; k < 2 && !AtEnd() && node.ordinal != 0 && TakesOrdinal(node); ++k) {
      at_ += CharacterLength();
    }
    if (!fixed_) {
      extra_skipped_ = 0;
      SkipSpaces(true);
    }
  }
  return Status();
}

Status Reader::Resolve(Civil* out) const {
  Fields f = f_;
  *out = Civil{0, 1, 1, 0, 0, 0, 0};
  int64_t hour = 0, minute = 0, second = 0, month = 1, day = 1;
  bool has_year = false, has_month = false, has_day = false;
  if (f.second_of_day != 0) {
    hour = f.second_of_day / 3600;
    minute = f.second_of_day / 60 % 60;
    second = f.second_of_day % 60;
  }
  if (f.second != 0) second = f.second;
  if (f.minute != 0) minute = f.minute;
  if (f.hour != 0) hour = f.hour;
  if (f.clock12) {
    if (hour < 1 || hour > 12) {
      return std::move(
                 FormatError(fmt::format("hour \"{}\" is invalid for the 12-hour clock", hour), ""))
          .WithHint("Use the 24-hour clock, or give an hour between 1 and 12.");
    }
    if (f.pm == 1 && hour < 12)
      hour += 12;
    else if (f.pm != 1 && hour == 12)
      hour = 0;
  }
  if (f.bc == 1) f.century = -f.century;
  if (f.year != 0) {
    if (f.century != 0 && f.year_digits <= 2) {
      out->year = f.year % 100;
      if (out->year != 0) {
        out->year = f.century >= 0 ? out->year + (f.century - 1) * 100
                                   : (f.century + 1) * 100 - out->year + 1;
      } else {
        out->year = f.century * 100 + (f.century >= 0 ? 0 : 1);
      }
    } else {
      out->year = f.bc == 1 ? -f.year : f.year;
      if (out->year < 0) ++out->year;
    }
    has_year = true;
  } else if (f.century != 0) {
    out->year = f.century >= 0 ? (f.century - 1) * 100 + 1 : f.century * 100 + 1;
    has_year = true;
  }
  auto set_days = [&](int64_t days) {
    int month_of_days, day_of_month;
    CivilFromDays(days, &out->year, &month_of_days, &day_of_month);
    month = month_of_days;
    day = day_of_month;
    has_year = has_month = has_day = true;
  };
  if (f.julian != 0) set_days(f.julian - internal::kJulianOf2000);
  if (f.week != 0) {
    if (f.iso) {
      // Day of week counts from Sunday; an ISO week starts on Monday.
      const int weekday = f.day_of_week == 0 ? 0 : (f.day_of_week + 5) % 7;
      set_days(internal::DaysFromIsoWeek(out->year, f.week) + weekday);
    } else {
      f.day_of_year = (f.week - 1) * 7 + 1;
    }
  }
  if (f.week_of_month != 0) f.day = (f.week_of_month - 1) * 7 + 1;
  if (f.day != 0) {
    day = f.day;
    has_day = true;
  }
  if (f.month != 0) {
    month = f.month;
    has_month = true;
  }
  if (f.day_of_year != 0 && (month <= 1 || day <= 1)) {
    if (out->year == 0 && f.bc != 1) {
      return FormatError("cannot calculate day of year without year information", "");
    }
    if (f.iso) {
      set_days(internal::DaysFromIsoWeek(out->year, 1) - 1 + f.day_of_year);
    } else {
      const int length = DaysInMonth(out->year, 2) == 29 ? 366 : 365;
      if (f.day_of_year < 1 || f.day_of_year > length) {
        return OutOfRange();
      }
      Civil found;
      CivilFromDays(DaysFromCivil(out->year, 1, 1) + f.day_of_year - 1, &found.year, &found.month,
                    &found.day);
      if (month <= 1) month = found.month;
      if (day <= 1) day = found.day;
      has_month = has_day = true;
    }
  }
  const int64_t micros = f.millis * 1000 + f.micros;
  const bool date_valid = (!has_month || (month >= 1 && month <= 12)) &&
                          (!has_day || (day >= 1 && day <= 31)) &&
                          (!(has_year && has_month && has_day) ||
                           day <= DaysInMonth(out->year, static_cast<int>(month)));
  const bool time_valid = hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 &&
                          second < 60 && micros >= 0 && micros < kMicrosPerSecond;
  if (!date_valid || !time_valid || std::abs(out->year) > 10000000) return OutOfRange();
  out->month = static_cast<int>(month);
  out->day = static_cast<int>(day);
  out->hour = static_cast<int>(hour);
  out->minute = static_cast<int>(minute);
  out->second = static_cast<int>(second);
  out->micros = static_cast<int>(micros);
  if (f.zone_hour < 0 || f.zone_hour > 15 || f.zone_minute < 0 || f.zone_minute >= 60) {
    return internal::DateTimeError(internal::DateTimeFailure::kZoneOverflow, text_, "timestamp");
  }
  return Status();
}

}  // namespace

Result<int64_t> ToDate(std::string_view text, std::string_view pattern) {
  Reader reader(text, pattern);
  CELLAR_TRY(reader.Read());
  Civil civil;
  CELLAR_TRY(reader.Resolve(&civil));
  const int64_t days = civil.year < -4713 || civil.year > 5874897
                           ? kEndDate
                           : DaysFromCivil(civil.year, civil.month, civil.day);
  if (days < kMinDate || days >= kEndDate) {
    return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow, "date out of range: \"{}\"",
                    text);
  }
  return days;
}

Result<int64_t> ToTimestampTz(std::string_view text, std::string_view pattern,
                              const TimeZone* zone) {
  Reader reader(text, pattern);
  CELLAR_TRY(reader.Read());
  Civil civil;
  CELLAR_TRY(reader.Resolve(&civil));
  CELLAR_TRY_ASSIGN(int64_t local, internal::TimestampWithoutBounds(civil));
  const Fields& fields = reader.fields();
  int64_t east = (zone != nullptr ? *zone : TimeZone::Utc()).OffsetOfLocal(local);
  if (fields.zone_sign != 0) {
    east = fields.zone_sign * (fields.zone_hour * 3600 + fields.zone_minute * 60);
  }
  CELLAR_TRY_ASSIGN(local, internal::CheckTimestamp(local - east * kMicrosPerSecond));
  return fields.fraction_digits == 0 ? local : RoundTimestamp(local, fields.fraction_digits);
}

}  // namespace cellar
