#include "cellar/types/convert.h"

#include <charconv>
#include <cmath>
#include <string>

#include "cellar/base/sqlstate.h"
#include "cellar/types/datetime.h"

namespace cellar {
namespace {

Status OutOfRange(Type type) {
  return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange, "{} out of range",
                  FormatType(type));
}

Result<Datum> ParseLocal(std::string_view text, Type type, const FormatSettings& format,
                         Arena* arena) {
  return ParseDatum(arena->Copy(text), type, format, arena);
}

}  // namespace

Result<Datum> ConvertBool(bool value, Type type, const FormatSettings& format, Arena* arena) {
  if (type == MakeType(TypeId::kBool)) return Datum::Bool(value);
  return ParseDatum(value ? "true" : "false", type, format, arena);
}

Result<Datum> ConvertInt(int64_t value, Type type, const FormatSettings& format, Arena* arena) {
  if (!type.array) {
    switch (type.id) {
      case TypeId::kInt8: return Datum::Int(value);
      case TypeId::kInt4:
        if (value < INT32_MIN || value > INT32_MAX) return OutOfRange(type);
        return Datum::Int(value);
      case TypeId::kInt2:
        if (value < INT16_MIN || value > INT16_MAX) return OutOfRange(type);
        return Datum::Int(value);
      case TypeId::kFloat8: return Datum::Double(static_cast<double>(value));
      case TypeId::kFloat4: return Datum::Double(static_cast<float>(value));
      default: break;
    }
  }
  char text[24];
  auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return ParseLocal(std::string_view(text, static_cast<size_t>(end - text)), type, format, arena);
}

Result<Datum> ConvertDouble(double value, Type type, const FormatSettings& format, Arena* arena) {
  if (!type.array) {
    if (type.id == TypeId::kFloat8) return Datum::Double(value);
    if (type.id == TypeId::kFloat4) {
      const float narrow = static_cast<float>(value);
      if (std::isinf(narrow) && !std::isinf(value)) return OutOfRange(type);
      return Datum::Double(narrow);
    }
    if (IsInteger(type) && std::nearbyint(value) == value && std::fabs(value) < 0x1p63) {
      return ConvertInt(static_cast<int64_t>(value), type, format, arena);
    }
  }
  std::string text;
  AppendDatumText(Datum::Double(value), MakeType(TypeId::kFloat8), FormatSettings(), &text);
  return ParseLocal(text, type, format, arena);
}

Result<Datum> ConvertBytes(std::string_view bytes, Type type) {
  if (!type.array && type.id == TypeId::kBytea) return Datum::Bytes(bytes);
  if (!type.array && type.id == TypeId::kUuid && bytes.size() == 16) return Datum::Bytes(bytes);
  return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch, "bytes given for a value of type {}",
                  FormatType(type));
}

namespace {

int64_t Clamped(IntervalSpan value) {
  if (value > INT64_MAX) return INT64_MAX;
  if (value < INT64_MIN) return INT64_MIN;
  return static_cast<int64_t>(value);
}

// Microseconds, of those two types of times that lie in memory as bytes.
bool IsLongTime(Type type) {
  return !type.array && (type.id == TypeId::kInterval || type.id == TypeId::kTimetz);
}
IntervalSpan LongTime(Datum value, Type type) {
  return type.id == TypeId::kTimetz ? TimeTzOf(value).micros : SpanOf(IntervalOf(value));
}

}  // namespace

int64_t DatumAsInt(Datum value, Type type) {
  if (value.is_null()) return 0;
  switch (PhysicalOf(type)) {
    case Physical::kInt64: return value.int_value();
    case Physical::kDouble: {
      const double number = value.double_value();
      if (std::isnan(number)) return 0;
      if (number >= 0x1p63) return INT64_MAX;
      if (number < -0x1p63) return INT64_MIN;
      return static_cast<int64_t>(number);
    }
    case Physical::kBytes: break;
  }
  if (IsLongTime(type)) return Clamped(LongTime(value, type));
  std::string text;
  AppendDatumText(value, type, FormatSettings(), &text);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return text[0] == '-' ? INT64_MIN : INT64_MAX;
  return number;
}

double DatumAsDouble(Datum value, Type type) {
  if (value.is_null()) return 0;
  switch (PhysicalOf(type)) {
    case Physical::kInt64: return static_cast<double>(value.int_value());
    case Physical::kDouble: return value.double_value();
    case Physical::kBytes: break;
  }
  if (IsLongTime(type)) return static_cast<double>(LongTime(value, type));
  std::string text;
  AppendDatumText(value, type, FormatSettings(), &text);
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool ShowsAsItLies(Type type) {
  return !type.array && (type.id == TypeId::kText || type.id == TypeId::kVarchar ||
                         type.id == TypeId::kName || type.id == TypeId::kUnknown);
}

bool HasPlainBytes(Type type) {
  return !type.array && (IsString(type) || type.id == TypeId::kBytea || type.id == TypeId::kUuid);
}

}  // namespace cellar
