// Reading dates, times and timestamps: a straight path for ISO 8601, and PostgreSQL's
// field-by-field decoding (manual, appendix B.1) for everything else it accepts.
#include <algorithm>
#include <cmath>

#include "cellar/base/sqlstate.h"
#include "cellar/types/datetime.h"
#include "cellar/types/datetime_internal.h"
#include "cellar/types/datetime_lexer.h"
#include "cellar/types/zone_abbreviations.h"

namespace cellar {

using internal::DateTimeError;
using internal::DateTimeFailure;
using internal::DateTimeFieldText;
using internal::DateTimeLexer;
using internal::FieldKind;
using internal::TakeInteger;
using internal::Word;

namespace {

bool IsDigit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
bool IsAlpha(char c) { return c >= 'a' && c <= 'z'; }

constexpr uint32_t kYear = 1, kMonth = 2, kDay = 4, kDayOfYear = 8, kTimePart = 16, kZonePart = 32,
                   kDayOfWeekPart = 64, kAmPmPart = 128, kEraPart = 256;
constexpr uint32_t kDatePart = kYear | kMonth | kDay;
constexpr int kMaxZoneHours = 15;

enum class Special : uint8_t { kNone, kEpoch, kInfinity, kNegativeInfinity };

const TimeZone& SessionZone(const FormatSettings& settings) {
  return settings.time_zone != nullptr ? *settings.time_zone : TimeZone::Utc();
}

// Gathers the fields of one literal.
class Decoder {
 public:
  explicit Decoder(const FormatSettings& settings) : settings_(settings) {}

  DateTimeFailure Decode(std::span<const DateTimeFieldText> fields, bool time_only);

  Special special() const { return special_; }
  const Civil& civil() const { return civil_; }
  int seconds_east() const { return seconds_east_; }
  bool is_now() const { return is_now_; }
  // Of `text`, which did not decode.
  Status Error(DateTimeFailure failure, std::string_view text, std::string_view type) const {
    return DateTimeError(failure, unknown_zone_.empty() ? text : unknown_zone_, type);
  }

 private:
  DateTimeFailure DecodeField(std::span<const DateTimeFieldText> fields, size_t i, uint32_t* mask);
  DateTimeFailure DecodeDateLike(std::span<const DateTimeFieldText> fields, size_t i,
                                 uint32_t* mask);
  DateTimeFailure DecodeWord(std::span<const DateTimeFieldText> fields, size_t i, uint32_t* mask);
  DateTimeFailure DecodePlainNumber(std::span<const DateTimeFieldText> fields, size_t i,
                                    uint32_t* mask);
  DateTimeFailure DecodeDate(std::string_view text, uint32_t* mask);
  DateTimeFailure DecodeNumber(std::string_view text, bool text_month, uint32_t have,
                               uint32_t* mask);
  DateTimeFailure DecodeNumberField(std::string_view text, uint32_t have, uint32_t* mask);
  DateTimeFailure DecodeTime(std::string_view text, uint32_t* mask);
  DateTimeFailure DecodeZone(std::string_view text);
  DateTimeFailure DecodeJulian(std::string_view text, uint32_t* mask);
  DateTimeFailure Finish();
  DateTimeFailure FinishZone();
  void SetToday(int days_from_now);
  int64_t LocalNow() const {
    return settings_.now_micros +
           int64_t{SessionZone(settings_).OffsetAt(settings_.now_micros)} * kMicrosPerSecond;
  }

  const FormatSettings& settings_;
  bool time_only_ = false;
  uint32_t have_ = 0;
  Civil civil_{0, 1, 1, 0, 0, 0, 0};
  int day_of_year_ = 0;
  int seconds_east_ = 0;
  bool daylight_modifier_ = false;
  std::shared_ptr<const TimeZone> named_zone_;
  std::string unknown_zone_;
  bool text_month_ = false;
  bool two_digit_year_ = false;
  bool julian_ = false;
  bool bc_ = false;
  bool is_now_ = false;
  int am_pm_ = -1;                 // 1 is PM
  Word labeled_ = Word::kUnknown;  // what the field before says of this one: kIsoTime, kJulian
  Special special_ = Special::kNone;
};

bool TakeInt(std::string_view* text, int* out, DateTimeFailure* failure) {
  int64_t value = 0;
  bool overflow = false;
  if (!TakeInteger(text, &value, &overflow)) {
    *failure = DateTimeFailure::kBadFormat;
    return false;
  }
  if (overflow || value > INT32_MAX || value < INT32_MIN) {
    *failure = DateTimeFailure::kFieldOverflow;
    return false;
  }
  *out = static_cast<int>(value);
  return true;
}

int ToInt(std::string_view digits) {
  int value = 0;
  for (char c : digits) value = value * 10 + (c - '0');
  return value;
}

DateTimeFailure Decoder::DecodeZone(std::string_view text) {
  const bool west = text[0] == '-';
  std::string_view rest = text.substr(1);
  int hours, minutes = 0, seconds = 0;
  DateTimeFailure failure = DateTimeFailure::kNone;
  if (!TakeInt(&rest, &hours, &failure)) {
    return failure == DateTimeFailure::kFieldOverflow ? DateTimeFailure::kZoneOverflow : failure;
  }
  if (!rest.empty() && rest[0] == ':') {
    rest.remove_prefix(1);
    if (!TakeInt(&rest, &minutes, &failure)) return failure;
    if (!rest.empty() && rest[0] == ':') {
      rest.remove_prefix(1);
      if (!TakeInt(&rest, &seconds, &failure)) return failure;
    }
  } else if (rest.empty() && text.size() > 3) {
    minutes = hours % 100;
    hours /= 100;
  }
  if (hours < 0 || hours > kMaxZoneHours || minutes < 0 || minutes >= 60 || seconds < 0 ||
      seconds >= 60) {
    return DateTimeFailure::kZoneOverflow;
  }
  if (!rest.empty()) return DateTimeFailure::kBadFormat;
  seconds_east_ = (hours * 60 + minutes) * 60 + seconds;
  if (west) seconds_east_ = -seconds_east_;
  return DateTimeFailure::kNone;
}

DateTimeFailure Decoder::DecodeTime(std::string_view text, uint32_t* mask) {
  *mask = kTimePart;
  DateTimeFailure failure = DateTimeFailure::kNone;
  if (!TakeInt(&text, &civil_.hour, &failure)) return failure;
  if (text.empty() || text[0] != ':') return DateTimeFailure::kBadFormat;
  text.remove_prefix(1);
  if (!TakeInt(&text, &civil_.minute, &failure)) return failure;
  civil_.second = civil_.micros = 0;
  if (!text.empty() && text[0] == '.') {  // mm:ss.fff
    if (!internal::ParseFractionMicros(text, &civil_.micros)) return DateTimeFailure::kBadFormat;
    civil_.second = civil_.minute;
    civil_.minute = civil_.hour;
    civil_.hour = 0;
  } else if (!text.empty()) {
    if (text[0] != ':') return DateTimeFailure::kBadFormat;
    text.remove_prefix(1);
    if (!TakeInt(&text, &civil_.second, &failure)) return failure;
    if (!text.empty() && (text[0] != '.' || !internal::ParseFractionMicros(text, &civil_.micros))) {
      return DateTimeFailure::kBadFormat;
    }
  }
  if (civil_.hour < 0 || civil_.minute < 0 || civil_.minute > 59 || civil_.second < 0 ||
      civil_.second > 60 || civil_.micros > kMicrosPerSecond) {
    return DateTimeFailure::kFieldOverflow;
  }
  return DateTimeFailure::kNone;
}

// Run-together digits: yymmdd, yyyymmdd, hhmmss, hhmm, with a fraction of seconds.
DateTimeFailure Decoder::DecodeNumberField(std::string_view text, uint32_t have, uint32_t* mask) {
  const size_t point = text.find('.');
  if (point != std::string_view::npos) {
    if (!internal::ParseFractionMicros(text.substr(point), &civil_.micros)) {
      return DateTimeFailure::kBadFormat;
    }
    text = text.substr(0, point);
  } else if ((have & kDatePart) != kDatePart && text.size() >= 6) {
    const size_t year_digits = text.size() - 4;
    if (year_digits > 9) return DateTimeFailure::kFieldOverflow;
    *mask = kDatePart;
    civil_.year = ToInt(text.substr(0, year_digits));
    civil_.month = ToInt(text.substr(year_digits, 2));
    civil_.day = ToInt(text.substr(year_digits + 2));
    if (year_digits == 2) two_digit_year_ = true;
    return DateTimeFailure::kNone;
  }
  if ((have & kTimePart) == 0 && (text.size() == 6 || text.size() == 4)) {
    *mask = kTimePart;
    civil_.hour = ToInt(text.substr(0, 2));
    civil_.minute = ToInt(text.substr(2, 2));
    civil_.second = text.size() == 6 ? ToInt(text.substr(4)) : 0;
    return DateTimeFailure::kNone;
  }
  return DateTimeFailure::kBadFormat;
}

// One number of a date: which part it is follows from what there is already and the date order.
DateTimeFailure Decoder::DecodeNumber(std::string_view text, bool text_month, uint32_t have,
                                      uint32_t* mask) {
  const size_t length = text.size();
  std::string_view rest = text;
  int value;
  DateTimeFailure failure = DateTimeFailure::kNone;
  if (!TakeInt(&rest, &value, &failure)) return failure;
  if (!rest.empty()) {
    if (rest[0] != '.') return DateTimeFailure::kBadFormat;
    if (length - rest.size() > 2) return DecodeNumberField(text, have | kDatePart, mask);
    if (!internal::ParseFractionMicros(rest, &civil_.micros)) return DateTimeFailure::kBadFormat;
  }
  if (length == 3 && (have & kDatePart) == kYear && value >= 1 && value <= 366) {
    *mask = kDayOfYear | kMonth | kDay;
    day_of_year_ = value;
    return DateTimeFailure::kNone;
  }
  const bool looks_like_year = length >= 3 || settings_.date_order == DateOrder::kYmd;
  switch (have & kDatePart) {
    case 0:
      *mask = looks_like_year ? kYear : settings_.date_order == DateOrder::kDmy ? kDay : kMonth;
      break;
    case kYear:
    case kDay: *mask = kMonth; break;
    case kMonth: *mask = text_month && looks_like_year ? kYear : kDay; break;
    case kYear | kMonth:
      *mask = kDay;
      if (text_month && length >= 3 && two_digit_year_) {
        // DD-MON-YYYY in year-first order: the first number was the day after all.
        civil_.day = static_cast<int>(civil_.year);
        civil_.year = value;
        two_digit_year_ = false;
        return DateTimeFailure::kNone;
      }
      break;
    case kMonth | kDay: *mask = kYear; break;
    case kDatePart: return DecodeNumberField(text, have, mask);
    default: return DateTimeFailure::kBadFormat;
  }
  if (*mask == kYear) {
    civil_.year = value;
    two_digit_year_ = length <= 2;
  } else if (*mask == kMonth) {
    civil_.month = value;
  } else {
    civil_.day = value;
  }
  return DateTimeFailure::kNone;
}

DateTimeFailure Decoder::DecodeDate(std::string_view text, uint32_t* mask) {
  constexpr size_t kMaxParts = 25;
  std::string_view parts[kMaxParts];
  size_t count = 0;
  size_t i = 0;
  *mask = 0;
  while (i < text.size() && count < kMaxParts) {
    while (i < text.size() && !IsDigit(text[i]) && !IsAlpha(text[i])) ++i;
    if (i == text.size()) return DateTimeFailure::kBadFormat;
    const size_t start = i;
    if (IsDigit(text[i])) {
      while (i < text.size() && IsDigit(text[i])) ++i;
    } else {
      while (i < text.size() && IsAlpha(text[i])) ++i;
    }
    parts[count++] = text.substr(start, i - start);
    if (i < text.size() && !IsDigit(text[i]) && !IsAlpha(text[i])) ++i;
  }
  uint32_t have = have_;
  bool text_month = false;
  for (size_t k = 0; k < count; ++k) {
    if (!IsAlpha(parts[k][0])) continue;
    int value;
    const Word word = internal::FindWord(parts[k], &value);
    if (word == Word::kIgnored) continue;
    if (word != Word::kMonth || (have & kMonth) != 0) return DateTimeFailure::kBadFormat;
    civil_.month = value;
    text_month = true;
    have |= kMonth;
    *mask |= kMonth;
  }
  for (size_t k = 0; k < count; ++k) {
    if (IsAlpha(parts[k][0])) continue;
    uint32_t part = 0;
    const DateTimeFailure failure = DecodeNumber(parts[k], text_month, have, &part);
    if (failure != DateTimeFailure::kNone) return failure;
    if ((have & part) != 0) return DateTimeFailure::kBadFormat;
    have |= part;
    *mask |= part;
  }
  if ((have & ~(kDayOfYear | kZonePart) & (kDatePart | kTimePart)) != kDatePart) {
    return DateTimeFailure::kBadFormat;
  }
  return DateTimeFailure::kNone;
}

DateTimeFailure Decoder::DecodeJulian(std::string_view text, uint32_t* mask) {
  int64_t day;
  bool overflow = false;
  if (!TakeInteger(&text, &day, &overflow)) return DateTimeFailure::kBadFormat;
  if (overflow || day < 0 || day > 2147483493) return DateTimeFailure::kFieldOverflow;
  CivilFromDays(day - internal::kJulianOf2000, &civil_.year, &civil_.month, &civil_.day);
  *mask = kDatePart;
  julian_ = true;
  if (!text.empty()) {
    double fraction;
    if (text[0] != '.' || !internal::ParseFraction(text, &fraction)) {
      return DateTimeFailure::kBadFormat;
    }
    *mask |= kTimePart;
    internal::SetTimeOfDay(static_cast<int64_t>(fraction * static_cast<double>(kMicrosPerDay)),
                           &civil_);
  }
  return DateTimeFailure::kNone;
}

void Decoder::SetToday(int days_from_now) {
  const int64_t days = internal::FloorDiv(LocalNow(), kMicrosPerDay) + days_from_now;
  CivilFromDays(days, &civil_.year, &civil_.month, &civil_.day);
}

DateTimeFailure Decoder::DecodeWord(std::span<const DateTimeFieldText> fields, size_t i,
                                    uint32_t* mask) {
  const std::string_view text = fields[i].text;
  if (internal::FindChangingAbbreviation(text) != nullptr) {
    // Means what it means on the day, a time alone today.
    std::shared_ptr<const TimeZone> zone = TimeZone::Find(text);
    if (zone != nullptr) {
      *mask = kZonePart;
      if (time_only_) {
        seconds_east_ = zone->OffsetAt(settings_.now_micros);
      } else {
        named_zone_ = std::move(zone);
      }
      return DateTimeFailure::kNone;
    }
  }
  if (const auto* zone = internal::FindZoneAbbreviation(text)) {
    *mask = kZonePart;
    seconds_east_ = zone->minutes_east * 60;
    return DateTimeFailure::kNone;
  }
  int value = 0;
  const Word word = internal::FindWord(text, &value);
  const bool date_word = word == Word::kToday || word == Word::kTomorrow ||
                         word == Word::kYesterday || word == Word::kEpoch ||
                         word == Word::kInfinity || word == Word::kNegativeInfinity ||
                         word == Word::kMonth || word == Word::kDayOfWeek;
  if (time_only_ && date_word) return DateTimeFailure::kBadFormat;
  switch (word) {
    case Word::kIgnored: return DateTimeFailure::kNone;
    case Word::kNow: {
      *mask = kDatePart | kTimePart | kZonePart;
      civil_ = CivilFromTimestamp(LocalNow());
      seconds_east_ = SessionZone(settings_).OffsetAt(settings_.now_micros);
      is_now_ = true;
      return DateTimeFailure::kNone;
    }
    case Word::kToday:
    case Word::kTomorrow:
    case Word::kYesterday:
      *mask = kDatePart;
      SetToday(word == Word::kToday ? 0 : word == Word::kTomorrow ? 1 : -1);
      is_now_ = true;
      return DateTimeFailure::kNone;
    case Word::kZulu:
      *mask = kTimePart | kZonePart;
      civil_.hour = civil_.minute = civil_.second = civil_.micros = 0;
      seconds_east_ = 0;
      return DateTimeFailure::kNone;
    case Word::kEpoch:
    case Word::kInfinity:
    case Word::kNegativeInfinity:
      *mask = kDatePart | kTimePart | kZonePart;
      special_ = word == Word::kEpoch      ? Special::kEpoch
                 : word == Word::kInfinity ? Special::kInfinity
                                           : Special::kNegativeInfinity;
      return DateTimeFailure::kNone;
    case Word::kMonth:
      *mask = kMonth;
      // A number before a month's name was the day.
      if ((have_ & kMonth) != 0 && !text_month_ && (have_ & kDay) == 0 && civil_.month >= 1 &&
          civil_.month <= 31) {
        civil_.day = civil_.month;
        *mask = kDay;
      }
      text_month_ = true;
      civil_.month = value;
      return DateTimeFailure::kNone;
    case Word::kDayOfWeek: *mask = kDayOfWeekPart; return DateTimeFailure::kNone;
    case Word::kAmPm:
      *mask = kAmPmPart;
      am_pm_ = value;
      return DateTimeFailure::kNone;
    case Word::kEra:
      *mask = kEraPart;
      bc_ = value == 1;
      return DateTimeFailure::kNone;
    case Word::kDaylight:
      daylight_modifier_ = true;
      seconds_east_ += 3600;
      return DateTimeFailure::kNone;
    case Word::kIsoTime: {
      if (!time_only_ && (have_ & kDatePart) != kDatePart) return DateTimeFailure::kBadFormat;
      const bool time_follows =
          i + 1 < fields.size() &&
          (fields[i + 1].kind == FieldKind::kNumber || fields[i + 1].kind == FieldKind::kTime ||
           fields[i + 1].kind == FieldKind::kDate);
      if (!time_follows) return DateTimeFailure::kBadFormat;
      labeled_ = word;
      return DateTimeFailure::kNone;
    }
    case Word::kJulian: labeled_ = word; return DateTimeFailure::kNone;
    case Word::kUnknown: break;
  }
  named_zone_ = TimeZone::Find(text);
  if (named_zone_ == nullptr || fields[i].kind == FieldKind::kSpecial) {
    return DateTimeFailure::kBadFormat;
  }
  *mask = kZonePart;
  return DateTimeFailure::kNone;
}

// Digits or letters with separators: a date, a zone name, or "hhmmss-zz".
DateTimeFailure Decoder::DecodeDateLike(std::span<const DateTimeFieldText> fields, size_t i,
                                        uint32_t* mask) {
  const std::string_view text = fields[i].text;
  if (labeled_ == Word::kJulian) {  // "J2451187-08": a Julian day with a zone
    labeled_ = Word::kUnknown;
    const size_t sign = text.find('-');
    if (sign == std::string_view::npos) return DateTimeFailure::kBadFormat;
    DateTimeFailure failure = DecodeJulian(text.substr(0, sign), mask);
    if (failure == DateTimeFailure::kNone) failure = DecodeZone(text.substr(sign));
    *mask |= kZonePart;
    return failure;
  }
  bool is_date;
  if (time_only_) {
    is_date = i == 0 && fields.size() >= 2 &&
              (fields.back().kind == FieldKind::kDate || fields[1].kind == FieldKind::kTime);
  } else {
    is_date = labeled_ == Word::kUnknown && (have_ & (kMonth | kDay)) != (kMonth | kDay);
  }
  if (is_date) return DecodeDate(text, mask);
  if (IsDigit(text[0]) || labeled_ != Word::kUnknown) {
    labeled_ = Word::kUnknown;
    const size_t sign = text.find('-');
    if ((have_ & kTimePart) != 0 || sign == std::string_view::npos) {
      return DateTimeFailure::kBadFormat;
    }
    DateTimeFailure failure = DecodeZone(text.substr(sign));
    if (failure != DateTimeFailure::kNone) return failure;
    failure = DecodeNumberField(text.substr(0, sign), have_ | (time_only_ ? kDatePart : 0), mask);
    *mask |= kZonePart;
    return failure;
  }
  named_zone_ = TimeZone::Find(text);
  if (named_zone_ == nullptr) {
    unknown_zone_ = text;
    return DateTimeFailure::kUnknownZone;
  }
  *mask = kZonePart;
  return DateTimeFailure::kNone;
}

DateTimeFailure Decoder::DecodePlainNumber(std::span<const DateTimeFieldText> fields, size_t i,
                                           uint32_t* mask) {
  const std::string_view text = fields[i].text;
  if (labeled_ == Word::kJulian) {
    labeled_ = Word::kUnknown;
    return DecodeJulian(text, mask);
  }
  if (labeled_ == Word::kIsoTime) {
    labeled_ = Word::kUnknown;
    const DateTimeFailure failure = DecodeNumberField(text, have_ | kDatePart, mask);
    if (failure == DateTimeFailure::kNone && *mask != kTimePart) return DateTimeFailure::kBadFormat;
    return failure;
  }
  const size_t point = text.find('.');
  const bool fraction = point != std::string_view::npos;
  if (time_only_) {
    if (fraction) {
      if (i == 0 && fields.size() >= 2 && fields.back().kind == FieldKind::kDate) {
        return DecodeDate(text, mask);
      }
      if (point <= 2) return DateTimeFailure::kBadFormat;
      return DecodeNumberField(text, have_ | kDatePart, mask);
    }
    if (text.size() > 4) return DecodeNumberField(text, have_ | kDatePart, mask);
    return DecodeNumber(text, false, have_ | kDatePart, mask);
  }
  if (fraction && (have_ & kDatePart) == 0) return DecodeDate(text, mask);
  if (fraction && point > 2) return DecodeNumberField(text, have_, mask);
  if (text.size() >= 6 && ((have_ & kDatePart) == 0 || (have_ & kTimePart) == 0)) {
    return DecodeNumberField(text, have_, mask);
  }
  return DecodeNumber(text, text_month_, have_, mask);
}

DateTimeFailure Decoder::DecodeField(std::span<const DateTimeFieldText> fields, size_t i,
                                     uint32_t* mask) {
  switch (fields[i].kind) {
    case FieldKind::kDate: return DecodeDateLike(fields, i, mask);
    case FieldKind::kTime: {
      if (labeled_ == Word::kJulian) return DateTimeFailure::kBadFormat;
      labeled_ = Word::kUnknown;
      const DateTimeFailure failure = DecodeTime(fields[i].text, mask);
      if (failure != DateTimeFailure::kNone) return failure;
      return internal::TimeOfDay(civil_) > kMicrosPerDay ? DateTimeFailure::kFieldOverflow
                                                         : DateTimeFailure::kNone;
    }
    case FieldKind::kZone: *mask = kZonePart; return DecodeZone(fields[i].text);
    case FieldKind::kNumber: return DecodePlainNumber(fields, i, mask);
    case FieldKind::kString:
    case FieldKind::kSpecial: return DecodeWord(fields, i, mask);
  }
  return DateTimeFailure::kBadFormat;
}

DateTimeFailure Decoder::Decode(std::span<const DateTimeFieldText> fields, bool time_only) {
  time_only_ = time_only;
  for (size_t i = 0; i < fields.size(); ++i) {
    uint32_t mask = 0;
    const DateTimeFailure failure = DecodeField(fields, i, &mask);
    if (failure != DateTimeFailure::kNone) return failure;
    if ((mask & have_) != 0) return DateTimeFailure::kBadFormat;
    have_ |= mask;
  }
  if (special_ != Special::kNone) return DateTimeFailure::kNone;
  return Finish();
}

DateTimeFailure Decoder::Finish() {
  if ((have_ & kYear) != 0 && !julian_ && !is_now_) {
    if (bc_) {
      if (civil_.year <= 0) return DateTimeFailure::kFieldOverflow;
      civil_.year = 1 - civil_.year;
    } else if (two_digit_year_) {
      if (civil_.year < 0) return DateTimeFailure::kFieldOverflow;
      civil_.year += civil_.year < 70 ? 2000 : civil_.year < 100 ? 1900 : 0;
    } else if (civil_.year <= 0) {
      return DateTimeFailure::kFieldOverflow;
    }
  }
  if ((have_ & kDayOfYear) != 0) {
    CivilFromDays(DaysFromCivil(civil_.year, 1, 1) + day_of_year_ - 1, &civil_.year, &civil_.month,
                  &civil_.day);
  }
  if ((have_ & kMonth) != 0 && (civil_.month < 1 || civil_.month > 12)) {
    return DateTimeFailure::kMonthDayOverflow;
  }
  if ((have_ & kDay) != 0 && (civil_.day < 1 || civil_.day > 31)) {
    return DateTimeFailure::kMonthDayOverflow;
  }
  if ((have_ & kDatePart) == kDatePart && civil_.day > DaysInMonth(civil_.year, civil_.month)) {
    return DateTimeFailure::kFieldOverflow;
  }
  if (am_pm_ >= 0 && civil_.hour > 12) return DateTimeFailure::kFieldOverflow;
  if (am_pm_ == 0 && civil_.hour == 12)
    civil_.hour = 0;
  else if (am_pm_ == 1 && civil_.hour != 12)
    civil_.hour += 12;
  const bool time_valid = civil_.hour <= 24 && civil_.minute < 60 && civil_.second <= 60 &&
                          internal::TimeOfDay(civil_) <= kMicrosPerDay;
  if (!time_valid) return DateTimeFailure::kFieldOverflow;
  if (time_only_ ? (have_ & kTimePart) == 0 : (have_ & kDatePart) != kDatePart) {
    return DateTimeFailure::kBadFormat;
  }
  return FinishZone();
}

DateTimeFailure Decoder::FinishZone() {
  const bool has_date = (have_ & kDatePart) == kDatePart;
  const bool named = named_zone_ != nullptr;
  if (!named && (have_ & kZonePart) != 0) return DateTimeFailure::kNone;
  if (named && daylight_modifier_) return DateTimeFailure::kBadFormat;
  const TimeZone& zone = named ? *named_zone_ : SessionZone(settings_);
  Civil local = civil_;
  if (!has_date) {
    if ((have_ & kDatePart) != 0 || (named && !zone.is_fixed())) return DateTimeFailure::kBadFormat;
    const int64_t today = internal::FloorDiv(LocalNow(), kMicrosPerDay);
    CivilFromDays(today, &local.year, &local.month, &local.day);
  }
  // Dates go further than timestamps; beyond those any offset will do.
  local.year = std::clamp<int64_t>(local.year, -5000, 290000);
  local.day = std::min(local.day, DaysInMonth(local.year, local.month));
  seconds_east_ = zone.OffsetOfLocal(TimestampFromCivil(local));
  return DateTimeFailure::kNone;
}

// ---- ISO 8601 straight ahead ----

// Two digits, or -1 (any negative number).
int TwoDigits(const char* p) {
  const auto high = static_cast<unsigned char>(p[0] - '0'),
             low = static_cast<unsigned char>(p[1] - '0');
  return high < 10 && low < 10 ? high * 10 + low : -1;
}

// "YYYY-MM-DD" at the front, with valid fields.
bool TakeIsoDate(std::string_view text, int64_t* days) {
  if (text.size() < 10 || text[4] != '-' || text[7] != '-') return false;
  const int century = TwoDigits(text.data()), year = TwoDigits(text.data() + 2),
            month = TwoDigits(text.data() + 5), day = TwoDigits(text.data() + 8);
  if ((century | year | month | day) < 0) return false;
  const int full = century * 100 + year;
  if (full < 1 || month < 1 || month > 12 || day < 1 || day > DaysInMonth(full, month))
    return false;
  *days = DaysFromCivil(full, month, day);
  return true;
}

// "HH:MM[:SS[.f...]]" at the front of `*text`, at most 6 digits of fraction.
bool TakeIsoTime(std::string_view* text, int64_t* micros) {
  if (text->size() < 5 || (*text)[2] != ':') return false;
  const char* p = text->data();
  const int hour = TwoDigits(p), minute = TwoDigits(p + 3);
  int second = 0;
  size_t used = 5;
  int64_t fraction = 0;
  if (text->size() > 5 && p[5] == ':') {
    if (text->size() < 8) return false;
    second = TwoDigits(p + 6);
    used = 8;
    if (text->size() > 8 && p[8] == '.') {
      int64_t scale = kMicrosPerSecond;
      for (used = 9; used < text->size() && IsDigit(p[used]); ++used) {
        scale /= 10;
        fraction += (p[used] - '0') * scale;
      }
      if (used == 9 || used > 15) return false;
    }
  }
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return false;
  *micros = ((int64_t{hour} * 60 + minute) * 60 + second) * kMicrosPerSecond + fraction;
  text->remove_prefix(used);
  return true;
}

// "", "Z", "+HH", "+HH:MM"; sets *east when there is one.
bool TakeIsoZone(std::string_view text, bool* has_zone, int* east) {
  *has_zone = !text.empty();
  if (text.empty()) return true;
  if (text == "Z" || text == "z") {
    *east = 0;
    return true;
  }
  if ((text[0] != '+' && text[0] != '-') || (text.size() != 3 && text.size() != 6)) return false;
  const int hours = TwoDigits(text.data() + 1);
  const int minutes = text.size() == 6 ? TwoDigits(text.data() + 4) : 0;
  if (hours < 0 || hours > kMaxZoneHours || minutes < 0 || minutes > 59) return false;
  if (text.size() == 6 && text[3] != ':') return false;
  *east = (hours * 60 + minutes) * 60;
  if (text[0] == '-') *east = -*east;
  return true;
}

bool ParseIsoTimestamp(std::string_view text, int64_t* local, bool* has_zone, int* east) {
  int64_t days, micros;
  if (!TakeIsoDate(text, &days)) return false;
  *has_zone = false;
  if (text.size() == 10) {
    *local = days * kMicrosPerDay;
    return true;
  }
  if (text[10] != ' ' && text[10] != 'T') return false;
  text.remove_prefix(11);
  if (!TakeIsoTime(&text, &micros) || !TakeIsoZone(text, has_zone, east)) return false;
  *local = days * kMicrosPerDay + micros;
  return true;
}

DateTimeFailure DecodeText(std::string_view text, bool time_only, Decoder* decoder) {
  DateTimeLexer lexer;
  if (!lexer.Split(text)) return DateTimeFailure::kBadFormat;
  return decoder->Decode(lexer.fields(), time_only);
}

constexpr int64_t kEpoch = -kUnixEpochSeconds * kMicrosPerSecond;

Status OutOfRange(std::string_view what, std::string_view text) {
  return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow, "{} out of range: \"{}\"", what,
                  text);
}

Result<int64_t> ParseAnyTimestamp(std::string_view text, bool with_zone, int precision,
                                  const FormatSettings& settings) {
  int64_t local;
  bool has_zone;
  int east = 0;
  if (ParseIsoTimestamp(text, &local, &has_zone, &east)) {
    if (with_zone) {
      if (!has_zone) {
        east = settings.time_zone == nullptr ? 0 : settings.time_zone->OffsetOfLocal(local);
      }
      local -= east * kMicrosPerSecond;
    }
    return precision >= 0 && precision < 6 ? RoundTimestamp(local, precision) : local;
  }
  Decoder decoder(settings);
  const DateTimeFailure failure = DecodeText(text, false, &decoder);
  if (failure != DateTimeFailure::kNone) {
    return decoder.Error(failure, text, with_zone ? "timestamp with time zone" : "timestamp");
  }
  switch (decoder.special()) {
    case Special::kEpoch: return kEpoch;
    case Special::kInfinity: return kTimestampInfinity;
    case Special::kNegativeInfinity: return kTimestampNegativeInfinity;
    case Special::kNone: break;
  }
  Result<int64_t> micros = internal::TimestampWithoutBounds(decoder.civil());
  if (micros.ok()) {
    const int64_t east = with_zone ? decoder.seconds_east() : 0;
    micros = internal::CheckTimestamp(*micros - east * kMicrosPerSecond);
  }
  if (!micros.ok()) return OutOfRange("timestamp", text);
  return RoundTimestamp(*micros, precision);
}

}  // namespace

Result<int64_t> ParseDate(std::string_view text, const FormatSettings& settings) {
  int64_t days;
  if (text.size() == 10 && TakeIsoDate(text, &days)) return days;
  Decoder decoder(settings);
  const DateTimeFailure failure = DecodeText(text, false, &decoder);
  if (failure != DateTimeFailure::kNone) return decoder.Error(failure, text, "date");
  switch (decoder.special()) {
    case Special::kEpoch: return -kUnixEpochDays;
    case Special::kInfinity: return kDateInfinity;
    case Special::kNegativeInfinity: return kDateNegativeInfinity;
    case Special::kNone: break;
  }
  const Civil& civil = decoder.civil();
  if (civil.year < -4713 || civil.year > 5874897) return OutOfRange("date", text);
  days = DaysFromCivil(civil.year, civil.month, civil.day);
  if (days < kMinDate || days >= kEndDate) return OutOfRange("date", text);
  return days;
}

Result<int64_t> ParseTime(std::string_view text, int precision, const FormatSettings& settings) {
  std::string_view rest = text;
  int64_t micros;
  if (TakeIsoTime(&rest, &micros) && rest.empty()) return RoundMicros(micros, precision);
  Decoder decoder(settings);
  const DateTimeFailure failure = DecodeText(text, true, &decoder);
  if (failure != DateTimeFailure::kNone) return decoder.Error(failure, text, "time");
  return RoundMicros(internal::TimeOfDay(decoder.civil()), precision);
}

Result<TimeTz> ParseTimeTz(std::string_view text, int precision, const FormatSettings& settings) {
  Decoder decoder(settings);
  const DateTimeFailure failure = DecodeText(text, true, &decoder);
  if (failure != DateTimeFailure::kNone) {
    return decoder.Error(failure, text, "time with time zone");
  }
  return TimeTz{RoundMicros(internal::TimeOfDay(decoder.civil()), precision),
                -decoder.seconds_east()};
}

Result<int64_t> ParseTimestamp(std::string_view text, int precision,
                               const FormatSettings& settings) {
  return ParseAnyTimestamp(text, false, precision, settings);
}

Result<int64_t> ParseTimestampTz(std::string_view text, int precision,
                                 const FormatSettings& settings) {
  return ParseAnyTimestamp(text, true, precision, settings);
}

}  // namespace cellar
