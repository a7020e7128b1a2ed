// For tests: calls by name with arguments in text.
#include "cellar/types/pg_cases.h"

#include <cstdlib>

namespace cellar {
namespace {

Result<Datum> IntDatum(Result<int64_t> value) {
  if (!value.ok()) return value.status();
  return Datum::Int(*value);
}

std::string NumericText(Result<std::string_view> value) {
  if (!value.ok()) return Describe(value.status(), false);
  std::string out;
  numeric::AppendText(*value, &out);
  return out;
}

}  // namespace

std::string CallDateFunction(const FunctionCase& c, const FormatSettings& settings) {
  Arena arena;
  const std::string_view function = c.function;
  const Type interval = MakeType(TypeId::kInterval);
  Status bad_argument;
  auto read = [&](std::string_view type, std::string_view text) {
    Result<Datum> value = ParseDatum(text, *TypeFromName(type), settings, &arena);
    if (value.ok()) return *value;
    if (bad_argument.ok()) bad_argument = value.status();
    return Datum();
  };
  auto interval_datum = [&](Result<Interval> value) -> Result<Datum> {
    if (!value.ok()) return value.status();
    return MakeDatum(*value, &arena);
  };
  auto print = [&](Result<Datum> value, std::string_view type) {
    return Print(std::move(value), *TypeFromName(type), settings);
  };
  const TimeZone* zone = settings.time_zone;
  if (function == "extract" || function == "part" || function == "trunc") {
    const Datum value = read(c.b, c.c);
    if (!bad_argument.ok()) return Describe(bad_argument);
    const Type type = *TypeFromName(c.b);
    std::optional<DateField> field = FindDateField(c.a);
    if (!field) return Describe(UnknownUnit(c.a, type));
    if (function == "extract") {
      return print(Extract(*field, value, type, zone, &arena), "numeric");
    }
    if (function == "part") return print(DatePart(*field, value, type, zone), "float8");
    if (type.id == TypeId::kTimestamp) {
      return print(IntDatum(TruncateTimestamp(*field, value.int_value())), c.b);
    }
    if (type.id == TypeId::kTimestamptz) {
      return print(IntDatum(TruncateTimestampTz(*field, value.int_value(), zone)), c.b);
    }
    return print(interval_datum(TruncateInterval(*field, IntervalOf(value))), c.b);
  }
  const bool with_zone = std::string_view(c.a) == "timestamptz";
  if (function == "add") {
    const Datum moment = read(c.a, c.b), span = read("interval", c.c);
    if (!bad_argument.ok()) return Describe(bad_argument);
    return print(IntDatum(with_zone ? AddIntervalTz(moment.int_value(), IntervalOf(span), zone)
                                    : AddInterval(moment.int_value(), IntervalOf(span))),
                 c.a);
  }
  if (function == "age" || function == "sub") {
    const int64_t a = read(c.a, c.b).int_value(), b = read(c.a, c.c).int_value();
    if (!bad_argument.ok()) return Describe(bad_argument);
    if (function == "sub")
      return Print(interval_datum(SubtractTimestamps(a, b)), interval, settings);
    return Print(interval_datum(with_zone ? AgeTz(a, b, zone) : Age(a, b)), interval, settings);
  }
  if (function == "mul" || function == "div") {
    const Datum span = read("interval", c.a), factor = read("float8", c.b);
    if (!bad_argument.ok()) return Describe(bad_argument);
    return Print(
        interval_datum(function == "mul" ? Multiply(IntervalOf(span), factor.double_value())
                                         : Divide(IntervalOf(span), factor.double_value())),
        interval, settings);
  }
  if (function == "justify") {
    const Datum span = read("interval", c.b);
    if (!bad_argument.ok()) return Describe(bad_argument);
    const std::string_view what = c.a;
    return Print(interval_datum(what == "hours"  ? JustifyHours(IntervalOf(span))
                                : what == "days" ? JustifyDays(IntervalOf(span))
                                                 : JustifyInterval(IntervalOf(span))),
                 interval, settings);
  }
  if (function == "attz") {
    const Datum moment = read(c.b, c.c);
    if (!bad_argument.ok()) return Describe(bad_argument);
    auto other = FindZone(c.a);
    if (!other.ok()) return Describe(other.status());
    if (std::string_view(c.b) == "timestamp") {
      return print(IntDatum(TimestampTzFromTimestamp(moment.int_value(), other->get())),
                   "timestamptz");
    }
    return print(IntDatum(TimestampFromTimestampTz(moment.int_value(), other->get())), "timestamp");
  }
  if (function == "bin") {
    const Datum stride = read("interval", c.a), moment = read("timestamp", c.b);
    if (!bad_argument.ok()) return Describe(bad_argument);
    return print(IntDatum(BinTimestamp(IntervalOf(stride), moment.int_value(), 0)), "timestamp");
  }
  return "no such function";
}

std::string CallFormatFunction(const FunctionCase& c, const FormatSettings& settings) {
  Arena arena;
  const std::string_view function = c.function;
  if (function == "to_date") {
    return Print(IntDatum(ToDate(c.a, c.b)), MakeType(TypeId::kDate), settings);
  }
  if (function == "to_timestamp") {
    return Print(IntDatum(ToTimestampTz(c.a, c.b, settings.time_zone)),
                 MakeType(TypeId::kTimestamptz), settings);
  }
  if (function == "to_number") {
    auto value = ToNumber(c.a, c.b, &arena);
    return value.ok() ? NumericText(*value) : Describe(value.status());
  }
  const Type type = *TypeFromName(c.a);
  Result<Datum> value = ParseDatum(c.b, type, settings, &arena);
  if (!value.ok()) return Describe(value.status());
  std::string out;
  Status status;
  switch (type.id) {
    case TypeId::kTimestamp: status = TimestampToChar(value->int_value(), c.c, &out); break;
    case TypeId::kTimestamptz:
      status = TimestampTzToChar(value->int_value(), c.c, settings.time_zone, &out);
      break;
    case TypeId::kInterval: status = IntervalToChar(IntervalOf(*value), c.c, &out); break;
    case TypeId::kNumeric: status = NumericToChar(value->bytes(), c.c, &out); break;
    case TypeId::kInt8: status = Int64ToChar(value->int_value(), c.c, &out); break;
    default: status = DoubleToChar(value->double_value(), c.c, &out); break;
  }
  return status.ok() ? out : Describe(status);
}

std::string CallNumericFunction(const FunctionCase& c) {
  using namespace numeric;  // NOLINT: a test's helper
  Arena arena;
  const std::string_view f = c.function;
  auto parsed = Parse(c.a, &arena);
  if (!parsed.ok()) return Describe(parsed.status(), false);
  const std::string_view a = *parsed;
  const int digits = std::atoi(c.b);
  if (f == "round") return NumericText(Round(a, digits, &arena));
  if (f == "trunc") return NumericText(Truncate(a, digits, &arena));
  if (f == "mod")
    return NumericText(ApplyModifier(a, *MakeModifier(digits, std::atoi(c.c)), &arena));
  if (f == "ln") return NumericText(Ln(a, &arena));
  if (f == "exp") return NumericText(Exp(a, &arena));
  if (f == "sqrt") return NumericText(Sqrt(a, &arena));
  if (f == "ceil") return NumericText(Ceil(a, &arena));
  if (f == "floor") return NumericText(Floor(a, &arena));
  if (f == "abs") return NumericText(Abs(a, &arena));
  if (f == "trim_scale") return NumericText(TrimScale(a, &arena));
  if (f == "send") {
    std::string bytes;
    AppendBinary(a, &bytes);
    return HexOf(bytes);
  }
  auto second = Parse(c.b, &arena);
  if (!second.ok()) return Describe(second.status(), false);
  const std::string_view b = *second;
  if (f == "+") return NumericText(Add(a, b, &arena));
  if (f == "-") return NumericText(Subtract(a, b, &arena));
  if (f == "*") return NumericText(Multiply(a, b, &arena));
  if (f == "/") return NumericText(Divide(a, b, &arena));
  if (f == "%") return NumericText(Modulo(a, b, &arena));
  if (f == "div") return NumericText(DivideTruncated(a, b, &arena));
  if (f == "power") return NumericText(Power(a, b, &arena));
  if (f == "log") return NumericText(Log(a, b, &arena));
  if (f == "gcd") return NumericText(Gcd(a, b, &arena));
  if (f == "lcm") return NumericText(Lcm(a, b, &arena));
  if (f == "cmp") return std::to_string(Compare(a, b));
  return "no such function";
}

}  // namespace cellar
