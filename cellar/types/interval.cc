// Arithmetic of intervals.
#include <algorithm>
#include <cmath>

#include "cellar/base/sqlstate.h"
#include "cellar/types/datetime.h"
#include "cellar/types/datetime_internal.h"

namespace cellar {

namespace internal {

Status IntervalOutOfRange() {
  return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow, "interval out of range");
}

}  // namespace internal

using internal::IntervalOutOfRange;

namespace {

bool ToInt32(double value, int32_t* out) {
  if (!(value >= -2147483648.0 && value <= 2147483647.0)) return false;
  *out = static_cast<int32_t>(value);
  return true;
}

double RoundToMicros(double value) { return std::rint(value * 1e6) / 1e6; }

// The interval whose fields are the given (possibly fractional) months, days and microseconds:
// fractions cascade down, a month of 30 days, a day of 24 hours.
Result<Interval> FromFractions(double months, double days, double micros) {
  Interval out;
  if (!ToInt32(months, &out.months) || !ToInt32(days, &out.days)) return IntervalOutOfRange();
  const double month_days = RoundToMicros((months - out.months) * 30);
  double seconds =
      RoundToMicros((days - out.days + month_days - static_cast<int>(month_days)) * 86400);
  if (std::fabs(seconds) >= 86400) {
    const int whole = static_cast<int>(seconds / 86400);
    if (__builtin_add_overflow(out.days, whole, &out.days)) return IntervalOutOfRange();
    seconds -= whole * 86400.0;
  }
  if (__builtin_add_overflow(out.days, static_cast<int32_t>(month_days), &out.days)) {
    return IntervalOutOfRange();
  }
  const double time = std::rint(micros + seconds * 1e6);
  if (!(time >= -9223372036854775808.0 && time < 9223372036854775808.0)) {
    return IntervalOutOfRange();
  }
  out.micros = static_cast<int64_t>(time);
  return out;
}

// Moves whole days of the time to the days.
Status CarryTime(Interval* value) {
  const int64_t days = value->micros / kMicrosPerDay;
  value->micros -= days * kMicrosPerDay;
  if (__builtin_add_overflow(int64_t{value->days}, days, &value->days)) return IntervalOutOfRange();
  return Status();
}

Status CarryDays(Interval* value) {
  const int32_t months = value->days / 30;
  value->days -= months * 30;
  if (__builtin_add_overflow(value->months, months, &value->months)) return IntervalOutOfRange();
  return Status();
}

// Gives the time the sign of the days.
void AlignTime(Interval* value) {
  if (value->days > 0 && value->micros < 0) {
    value->micros += kMicrosPerDay;
    --value->days;
  } else if (value->days < 0 && value->micros > 0) {
    value->micros -= kMicrosPerDay;
    ++value->days;
  }
}

}  // namespace

Result<Interval> Negate(Interval value) {
  if (value.micros == INT64_MIN || value.days == INT32_MIN || value.months == INT32_MIN) {
    return IntervalOutOfRange();
  }
  return Interval{-value.micros, -value.days, -value.months};
}

Result<Interval> Add(Interval a, Interval b) {
  Interval out;
  if (__builtin_add_overflow(a.micros, b.micros, &out.micros) ||
      __builtin_add_overflow(a.days, b.days, &out.days) ||
      __builtin_add_overflow(a.months, b.months, &out.months)) {
    return IntervalOutOfRange();
  }
  return out;
}

Result<Interval> Subtract(Interval a, Interval b) {
  Interval out;
  if (__builtin_sub_overflow(a.micros, b.micros, &out.micros) ||
      __builtin_sub_overflow(a.days, b.days, &out.days) ||
      __builtin_sub_overflow(a.months, b.months, &out.months)) {
    return IntervalOutOfRange();
  }
  return out;
}

Result<Interval> Multiply(Interval value, double factor) {
  return FromFractions(value.months * factor, value.days * factor,
                       static_cast<double>(value.micros) * factor);
}

Result<Interval> Divide(Interval value, double divisor) {
  if (divisor == 0) {
    return SqlError(Code::kInvalid, sqlstate::kDivisionByZero, "division by zero");
  }
  return FromFractions(value.months / divisor, value.days / divisor,
                       static_cast<double>(value.micros) / divisor);
}

Result<Interval> JustifyHours(Interval value) {
  CELLAR_TRY(CarryTime(&value));
  AlignTime(&value);
  return value;
}

Result<Interval> JustifyDays(Interval value) {
  CELLAR_TRY(CarryDays(&value));
  if (value.months > 0 && value.days < 0) {
    value.days += 30;
    --value.months;
  } else if (value.months < 0 && value.days > 0) {
    value.days -= 30;
    ++value.months;
  }
  return value;
}

Result<Interval> JustifyInterval(Interval value) {
  // First the days, where that keeps the sum below from overflowing.
  if ((value.days > 0 && value.micros > 0) || (value.days < 0 && value.micros < 0)) {
    CELLAR_TRY(CarryDays(&value));
  }
  CELLAR_TRY(CarryTime(&value));
  CELLAR_TRY(CarryDays(&value));
  if (value.months > 0 && (value.days < 0 || (value.days == 0 && value.micros < 0))) {
    value.days += 30;
    --value.months;
  } else if (value.months < 0 && (value.days > 0 || (value.days == 0 && value.micros > 0))) {
    value.days -= 30;
    ++value.months;
  }
  AlignTime(&value);
  return value;
}

int CompareIntervals(Interval a, Interval b) {
  const IntervalSpan x = SpanOf(a), y = SpanOf(b);
  return x < y ? -1 : x > y;
}

uint64_t HashInterval(Interval value) {
  uint64_t hash = static_cast<uint64_t>(SpanOf(value)) * 0xD6E8FEB86659FD93;
  hash ^= hash >> 32;
  hash *= 0xD6E8FEB86659FD93;
  return hash ^ (hash >> 32);
}

Result<Interval> MakeInterval(int64_t years, int64_t months, int64_t weeks, int64_t days,
                              int64_t hours, int64_t minutes, double seconds) {
  Interval out;
  const double micros = std::rint(seconds * 1e6);
  if (!(std::fabs(micros) < 9e18)) return IntervalOutOfRange();
  int64_t hour_micros, minute_micros;
  if (__builtin_mul_overflow(years, 12, &years) ||
      __builtin_add_overflow(years, months, &out.months) ||
      __builtin_mul_overflow(weeks, 7, &weeks) || __builtin_add_overflow(weeks, days, &out.days) ||
      __builtin_mul_overflow(hours, kMicrosPerHour, &hour_micros) ||
      __builtin_mul_overflow(minutes, kMicrosPerMinute, &minute_micros) ||
      __builtin_add_overflow(hour_micros, minute_micros, &out.micros) ||
      __builtin_add_overflow(out.micros, static_cast<int64_t>(micros), &out.micros)) {
    return IntervalOutOfRange();
  }
  return out;
}

// ---- Modifiers: a precision, or (field mask << 16) | precision ----

namespace {

constexpr int kFullRange = 0x7FFF;
constexpr int kFullPrecision = 0xFFFF;
constexpr int kMonthBit = 1 << 1, kYearBit = 1 << 2, kDayBit = 1 << 3, kHourBit = 1 << 10,
              kMinuteBit = 1 << 11;

}  // namespace

int32_t MakeIntervalModifier(int32_t range, int precision) {
  if (range == kFullRange && precision < 0) return -1;
  return ((range & kFullRange) << 16) | (precision < 0 ? kFullPrecision : precision);
}

Result<Interval> ApplyIntervalModifier(Interval value, int32_t modifier) {
  if (modifier < 0) return value;
  const int range = modifier <= 6 ? kFullRange : (modifier >> 16) & kFullRange;
  const int precision = modifier & 0xFFFF;
  // Fields less significant than the last named are dropped.
  if (range == kYearBit) {
    value.months = value.months / 12 * 12;
    value.days = 0;
    value.micros = 0;
  } else if (range == kMonthBit || range == (kYearBit | kMonthBit)) {
    value.days = 0;
    value.micros = 0;
  } else if (range == kDayBit) {
    value.micros = 0;
  } else if (range == kHourBit || range == (kDayBit | kHourBit)) {
    value.micros = value.micros / kMicrosPerHour * kMicrosPerHour;
  } else if (range == kMinuteBit || range == (kHourBit | kMinuteBit) ||
             range == (kDayBit | kHourBit | kMinuteBit)) {
    value.micros = value.micros / kMicrosPerMinute * kMicrosPerMinute;
  }
  if (precision < 6) {
    if (value.micros > INT64_MAX - kMicrosPerSecond ||
        value.micros < INT64_MIN + kMicrosPerSecond) {
      return IntervalOutOfRange();
    }
    value.micros = RoundMicros(value.micros, precision);
  }
  return value;
}

}  // namespace cellar
