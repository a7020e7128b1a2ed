// PostgreSQL's binary send and receive formats: big-endian numbers, text as it is.
#include <bit>
#include <cstring>

#include "cellar/base/sqlstate.h"
#include "cellar/types/array.h"
#include "cellar/types/datetime.h"
#include "cellar/types/enum_type.h"
#include "cellar/types/json.h"
#include "cellar/types/numeric.h"
#include "cellar/types/record.h"
#include "cellar/types/scalar_text.h"
#include "cellar/types/text_io.h"
#include "cellar/types/value_size.h"

namespace cellar {
namespace {

template <typename Int>
void AppendBig(Int value, std::string* out) {
  char bytes[sizeof(Int)];
  for (size_t i = 0; i < sizeof(Int); ++i) {
    bytes[i] = static_cast<char>(static_cast<uint64_t>(value) >> (8 * (sizeof(Int) - 1 - i)));
  }
  out->append(bytes, sizeof(Int));
}

template <typename Int>
Int ReadBig(std::string_view bytes, size_t offset = 0) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(Int); ++i) {
    value = (value << 8) | static_cast<uint8_t>(bytes[offset + i]);
  }
  return static_cast<Int>(value);
}

Status CheckSize(std::string_view bytes, size_t size) {
  if (bytes.size() == size) return Status();
  if (bytes.size() < size) {
    return SqlError(Code::kInvalid, sqlstate::kProtocolViolation,
                    "insufficient data left in message");
  }
  return SqlError(Code::kInvalid, sqlstate::kInvalidBinaryRepresentation,
                  "incorrect binary data format");
}

Status FieldOverflow(std::string_view what) {
  return SqlError(Code::kInvalid, sqlstate::kDatetimeFieldOverflow, "{} out of range", what);
}

Result<Datum> ParseScalar(std::string_view bytes, Type type, Arena* arena) {
  const int16_t length = TypeLength(type);
  if (length > 0 && type.id != TypeId::kName && type.id != TypeId::kAclitem &&
      type.id != TypeId::kEnum) {
    CELLAR_TRY(CheckSize(bytes, static_cast<size_t>(length)));
  }
  switch (type.id) {
    case TypeId::kBool: return Datum::Bool(bytes[0] != 0);
    case TypeId::kChar: return Datum::Int(static_cast<uint8_t>(bytes[0]));
    case TypeId::kInt2: return Datum::Int(ReadBig<int16_t>(bytes));
    case TypeId::kInt4: return Datum::Int(ReadBig<int32_t>(bytes));
    case TypeId::kInt8: return Datum::Int(ReadBig<int64_t>(bytes));
    case TypeId::kOid:
    case TypeId::kXid:
    case TypeId::kRegclass:
    case TypeId::kRegtype:
    case TypeId::kRegproc:
    case TypeId::kRegnamespace:
    case TypeId::kRegrole: return Datum::Int(ReadBig<uint32_t>(bytes));
    case TypeId::kFloat4:
      return Datum::Double(static_cast<double>(std::bit_cast<float>(ReadBig<uint32_t>(bytes))));
    case TypeId::kFloat8: return Datum::Double(std::bit_cast<double>(ReadBig<uint64_t>(bytes)));
    case TypeId::kNumeric: {
      CELLAR_TRY_ASSIGN(std::string_view value, numeric::ParseBinary(bytes, arena));
      return Datum::Bytes(value);
    }
    case TypeId::kDate: {
      const int64_t days = ReadBig<int32_t>(bytes);
      if (IsFiniteDate(days) && (days < kMinDate || days >= kEndDate)) return FieldOverflow("date");
      return Datum::Int(days);
    }
    case TypeId::kTime: {
      const auto micros = ReadBig<int64_t>(bytes);
      if (micros < 0 || micros > kMicrosPerDay) return FieldOverflow("time");
      return Datum::Int(micros);
    }
    case TypeId::kTimetz: {
      const TimeTz value = {ReadBig<int64_t>(bytes), ReadBig<int32_t>(bytes, 8)};
      if (value.micros < 0 || value.micros > kMicrosPerDay) return FieldOverflow("time");
      if (value.zone <= -57600 || value.zone >= 57600) {
        return SqlError(Code::kInvalid, "22009", "time zone displacement out of range");
      }
      return MakeDatum(value, arena);
    }
    case TypeId::kTimestamp:
    case TypeId::kTimestamptz: {
      const auto micros = ReadBig<int64_t>(bytes);
      if (IsFiniteTimestamp(micros) && (micros < kMinTimestamp || micros >= kEndTimestamp)) {
        return FieldOverflow("timestamp");
      }
      return Datum::Int(micros);
    }
    case TypeId::kInterval:
      return MakeDatum(Interval{ReadBig<int64_t>(bytes), ReadBig<int32_t>(bytes, 8),
                                ReadBig<int32_t>(bytes, 12)},
                       arena);
    case TypeId::kUuid:
    case TypeId::kBytea: return Datum::Bytes(arena->Copy(bytes));
    case TypeId::kJsonb:
      if (bytes.empty() || bytes[0] != 1) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidBinaryRepresentation,
                        "unsupported jsonb version number {}",
                        bytes.empty() ? 0 : static_cast<int>(bytes[0]));
      }
      return ParseDatum(bytes.substr(1), type, FormatSettings(), arena);
    case TypeId::kInt2vector:
    case TypeId::kOidvector: {
      CELLAR_TRY_ASSIGN(std::string_view array,
                        ParseArrayBinary(bytes, ElementTypeOf(type), arena));
      return Datum::Bytes(array);
    }
    case TypeId::kVoid: return Datum::Bytes({});
    default: return ParseDatum(bytes, Plain(type), FormatSettings(), arena);
  }
}

}  // namespace

void AppendDatumBinary(Datum value, Type type, std::string* out) {
  if (type.array) return AppendArrayBinary(value.bytes(), ElementTypeOf(type), out);
  switch (type.id) {
    case TypeId::kBool:
    case TypeId::kChar: out->push_back(static_cast<char>(value.int_value())); return;
    case TypeId::kInt2: AppendBig(static_cast<int16_t>(value.int_value()), out); return;
    case TypeId::kInt4:
    case TypeId::kDate:
    case TypeId::kOid:
    case TypeId::kXid:
    case TypeId::kRegclass:
    case TypeId::kRegtype:
    case TypeId::kRegproc:
    case TypeId::kRegnamespace:
    case TypeId::kRegrole: AppendBig(static_cast<uint32_t>(value.int_value()), out); return;
    case TypeId::kInt8:
    case TypeId::kTime:
    case TypeId::kTimestamp:
    case TypeId::kTimestamptz: AppendBig(value.int_value(), out); return;
    case TypeId::kFloat4:
      AppendBig(std::bit_cast<uint32_t>(static_cast<float>(value.double_value())), out);
      return;
    case TypeId::kFloat8: AppendBig(std::bit_cast<uint64_t>(value.double_value()), out); return;
    case TypeId::kNumeric: numeric::AppendBinary(value.bytes(), out); return;
    case TypeId::kTimetz: {
      const TimeTz time = TimeTzOf(value);
      AppendBig(time.micros, out);
      AppendBig(time.zone, out);
      return;
    }
    case TypeId::kInterval: {
      const Interval interval = IntervalOf(value);
      AppendBig(interval.micros, out);
      AppendBig(interval.days, out);
      AppendBig(interval.months, out);
      return;
    }
    case TypeId::kJsonb:
      out->push_back(1);
      out->append(value.bytes());
      return;
    case TypeId::kInt2vector:
    case TypeId::kOidvector: AppendArrayBinary(value.bytes(), ElementTypeOf(type), out); return;
    case TypeId::kBpchar: AppendDatumText(value, type, FormatSettings(), out); return;
    case TypeId::kEnum: AppendEnum(value.int_value(), type, out); return;
    case TypeId::kRecord: AppendRecordBinary(value.bytes(), out); return;
    default: out->append(value.bytes()); return;
  }
}

Result<Datum> ParseDatumBinary(std::string_view bytes, Type type, Arena* arena) {
  if (type.array) {
    CELLAR_TRY_ASSIGN(std::string_view array, ParseArrayBinary(bytes, ElementTypeOf(type), arena));
    return Datum::Bytes(array);
  }
  CELLAR_TRY(CheckValueSize(bytes.size()));
  CELLAR_TRY_ASSIGN(Datum value, ParseScalar(bytes, type, arena));
  return ApplyModifier(value, type, false, arena);
}

}  // namespace cellar
