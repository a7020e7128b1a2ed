#include "cellar/types/reference_key.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "cellar/types/datetime.h"
#include "cellar/types/numeric.h"

namespace cellar {
namespace {

bool IsFloat(TypeId id) { return id == TypeId::kFloat4 || id == TypeId::kFloat8; }
bool IsMoment(TypeId id) {
  return id == TypeId::kDate || id == TypeId::kTimestamp || id == TypeId::kTimestamptz;
}

bool FitsInteger(int64_t value, TypeId id) {
  switch (id) {
    case TypeId::kInt2: return value >= INT16_MIN && value <= INT16_MAX;
    case TypeId::kInt4: return value >= INT32_MIN && value <= INT32_MAX;
    default: return true;
  }
}

// A number of `to` from one of `from`, rounded where `to` is a float.
bool ConvertNumber(Datum value, TypeId from, TypeId to, Arena* arena, Datum* result) {
  const auto put_double = [&](double number) {
    *result = Datum::Double(to == TypeId::kFloat4 ? static_cast<double>(static_cast<float>(number))
                                                  : number);
    return true;
  };
  if (from == TypeId::kNumeric) {
    if (IsFloat(to)) {
      const Result<double> number = to == TypeId::kFloat4 ? numeric::ToFloat(value.bytes())
                                                          : numeric::ToDouble(value.bytes());
      return number.ok() && put_double(*number);
    }
    const Result<int64_t> whole = numeric::ToInt64(value.bytes());
    if (!whole.ok() || !FitsInteger(*whole, to)) return false;
    *result = Datum::Int(*whole);
    return numeric::Equal(numeric::FromInt64(*whole, arena), value.bytes());
  }
  if (IsFloat(from)) {
    const double number = value.double_value();
    if (IsFloat(to)) {
      put_double(number);
      return std::isnan(number) || result->double_value() == number;
    }
    if (to == TypeId::kNumeric) {
      std::string text;
      AppendDatumText(value, MakeType(from), FormatSettings(), &text);
      const Result<std::string_view> parsed = numeric::Parse(text, arena);
      if (!parsed.ok()) return false;
      *result = Datum::Bytes(*parsed);
      const Result<double> back =
          from == TypeId::kFloat4 ? numeric::ToFloat(*parsed) : numeric::ToDouble(*parsed);
      return back.ok() && (*back == number || std::isnan(number));
    }
    constexpr double kBound = 9223372036854775808.0;  // 2^63
    if (!(number >= -kBound && number < kBound) || number != std::floor(number)) return false;
    *result = Datum::Int(static_cast<int64_t>(number));
    return FitsInteger(result->int_value(), to);
  }
  const int64_t whole = value.int_value();
  if (to == TypeId::kNumeric) {
    *result = Datum::Bytes(numeric::FromInt64(whole, arena));
    return true;
  }
  if (IsFloat(to)) {
    *result = Datum::Double(to == TypeId::kFloat4 ? static_cast<double>(static_cast<float>(whole))
                                                  : static_cast<double>(whole));
    return true;
  }
  if (to == TypeId::kOid) {
    const bool wraps = from == TypeId::kInt4 || from == TypeId::kInt2;
    *result = Datum::Int(wraps ? static_cast<uint32_t>(whole) : whole);
    return wraps || (whole >= 0 && whole <= std::numeric_limits<uint32_t>::max());
  }
  if (from == TypeId::kOid && to != TypeId::kInt8) {
    *result = Datum::Int(static_cast<int32_t>(static_cast<uint32_t>(whole)));
    return FitsInteger(result->int_value(), to);
  }
  *result = value;
  return FitsInteger(whole, to);
}

Result<int64_t> MomentAs(int64_t value, TypeId from, TypeId to, const TimeZone* zone) {
  switch (to) {
    case TypeId::kDate:
      return from == TypeId::kTimestamp ? DateFromTimestamp(value)
                                        : DateFromTimestampTz(value, zone);
    case TypeId::kTimestamp:
      return from == TypeId::kDate ? TimestampFromDate(value)
                                   : TimestampFromTimestampTz(value, zone);
    default:
      return from == TypeId::kDate ? TimestampTzFromDate(value, zone)
                                   : TimestampTzFromTimestamp(value, zone);
  }
}

bool ConvertMoment(int64_t value, TypeId from, TypeId to, const TimeZone* zone, Datum* result) {
  const Result<int64_t> moment = MomentAs(value, from, to, zone);
  if (!moment.ok()) return false;
  const Result<int64_t> back = MomentAs(*moment, to, from, zone);
  *result = Datum::Int(*moment);
  // Of two local times that are one moment, the one that PostgreSQL would not print is that moment
  // all the same.
  const bool exact = from == TypeId::kTimestamp && to == TypeId::kTimestamptz;
  return exact || (back.ok() && *back == value);
}

}  // namespace

bool HaveSameKeys(Type a, Type b) {
  return a.SameKind(b) || (IsInteger(a) && IsInteger(b)) || (IsString(a) && IsString(b));
}

bool CanReference(Type referencing, Type referenced) {
  if (HaveSameKeys(referencing, referenced)) return true;
  if (referencing.array || referenced.array) return false;
  const TypeId from = referencing.id, to = referenced.id;
  if (IsInteger(referencing)) return to == TypeId::kNumeric || IsFloat(to) || to == TypeId::kOid;
  if (from == TypeId::kNumeric) return IsFloat(to);
  return (IsFloat(from) && IsFloat(to)) || (IsMoment(from) && IsMoment(to));
}

bool IsInjectiveReference(Type referencing, Type referenced) {
  const TypeId from = referencing.id, to = referenced.id;
  if (from == TypeId::kNumeric && IsFloat(to)) return false;
  if (from == TypeId::kInt8 && (IsFloat(to) || to == TypeId::kOid)) return to == TypeId::kOid;
  if (from == TypeId::kInt4 && to == TypeId::kFloat4) return false;
  return from != TypeId::kTimestamp || to != TypeId::kTimestamptz;
}

bool ConvertReferenceKey(Datum value, Type from, Type to, const FormatSettings& format,
                         Arena* arena, Datum* result) {
  if (from.id != to.id && IsMoment(from.id) && IsMoment(to.id)) {
    return ConvertMoment(value.int_value(), from.id, to.id, format.time_zone, result);
  }
  if (from.id != to.id && !from.array && (IsNumber(from) || from.id == TypeId::kOid) &&
      (IsNumber(to) || to.id == TypeId::kOid)) {
    return ConvertNumber(value, from.id, to.id, arena, result);
  }
  *result = value;
  return true;
}

}  // namespace cellar
