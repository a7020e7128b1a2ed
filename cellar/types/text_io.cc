// Text forms of every type: dispatch, and the character types.
#include "cellar/types/text_io.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>

#include "cellar/base/interrupt.h"
#include "cellar/base/sqlstate.h"
#include "cellar/types/array.h"
#include "cellar/types/datetime.h"
#include "cellar/types/enum_type.h"
#include "cellar/types/json.h"
#include "cellar/types/numeric.h"
#include "cellar/types/record.h"
#include "cellar/types/scalar_text.h"
#include "cellar/types/value_size.h"

namespace cellar {
namespace {

constexpr size_t kMaxNameBytes = 63;

// 22021, naming the first bytes that are not UTF-8.
Status InvalidEncoding(std::string_view text) {
  size_t i = 0;
  size_t length = 1;
  while (i < text.size()) {
    PollSteps();
    const auto c = static_cast<uint8_t>(text[i]);
    length = c < 0x80 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    if (c == 0 || i + length > text.size() || !simdjson::validate_utf8(text.data() + i, length)) {
      break;
    }
    i += length;
  }
  std::string bytes;
  for (size_t k = i; k < text.size() && k < i + length; ++k) {
    bytes += fmt::format("{}0x{:02x}", k == i ? "" : " ", static_cast<uint8_t>(text[k]));
  }
  return SqlError(Code::kInvalid, sqlstate::kCharacterNotInRepertoire,
                  "invalid byte sequence for encoding \"UTF8\": {}", bytes);
}

std::string_view WithoutTrailingBlanks(std::string_view text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Cuts to varchar(n) or char(n).
Result<std::string_view> ApplyLength(std::string_view text, Type type, bool explicit_cast) {
  const bool blank_padded = type.id == TypeId::kBpchar;
  if (type.modifier < 4) return text;
  const auto limit = static_cast<size_t>(type.modifier - 4);
  if (text.size() > limit) {
    const size_t bytes = BytesOfCharacters(text, limit);
    if (bytes < text.size()) {
      if (!explicit_cast && !WithoutTrailingBlanks(text.substr(bytes)).empty()) {
        return SqlError(Code::kInvalid, sqlstate::kStringDataRightTruncation,
                        "value too long for type {}", FormatType(type));
      }
      text = text.substr(0, bytes);
    }
  }
  return blank_padded ? WithoutTrailingBlanks(text) : text;
}

Result<Datum> ParseString(std::string_view text, Type type, Arena* arena) {
  if (!IsValidText(text)) return InvalidEncoding(text);
  switch (type.id) {
    case TypeId::kVarchar:
    case TypeId::kBpchar: {
      CELLAR_TRY_ASSIGN(text, ApplyLength(text, type, false));
      break;
    }
    case TypeId::kName:
      if (text.size() > kMaxNameBytes) {
        size_t size = kMaxNameBytes;
        while (size > 0 && (text[size] & 0xC0) == 0x80) --size;
        text = text.substr(0, size);
      }
      break;
    default: break;
  }
  return Datum::Bytes(arena->Copy(text));
}

// '1 2 3': the text of int2vector and oidvector.
Result<Datum> ParseVector(std::string_view text, Type type, const FormatSettings& settings,
                          Arena* arena) {
  const Type element = ElementTypeOf(type);
  ArrayBuilder builder(element);
  size_t at = 0;
  while (true) {
    while (at < text.size() && text[at] == ' ') ++at;
    if (at == text.size()) break;
    const size_t end = std::min(text.find(' ', at), text.size());
    CELLAR_TRY_ASSIGN(Datum datum, ParseDatum(text.substr(at, end - at), element, settings, arena));
    CELLAR_TRY(builder.TryAdd(datum));
    at = end;
  }
  return Datum::Bytes(builder.Finish(arena, 0));
}

Result<Datum> ToDatum(Result<std::string_view> bytes) {
  if (!bytes.ok()) return std::move(bytes).status();
  return Datum::Bytes(*bytes);
}
Result<Datum> ToDatum(Result<int64_t> value) {
  if (!value.ok()) return std::move(value).status();
  return Datum::Int(*value);
}
Result<Datum> ToDatum(Result<double> value) {
  if (!value.ok()) return std::move(value).status();
  return Datum::Double(*value);
}

}  // namespace

bool IsValidText(std::string_view text) {
  const char* p = text.data();
  size_t left = text.size();
  // Short plain ASCII, the usual case, needs no call. A byte of 0 borrows into the top bit of its
  // lane.
  constexpr uint64_t kHigh = 0x8080808080808080, kLow = 0x0101010101010101;
  while (left >= 8 && text.size() <= 64) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    if (((word | (word - kLow)) & kHigh) != 0) break;
    p += 8;
    left -= 8;
  }
  if (left < 8) {
    bool plain = true;
    for (size_t i = 0; i < left; ++i) plain &= p[i] > 0;
    if (plain) return true;
  }
  return (left == 0 || std::memchr(p, 0, left) == nullptr) && simdjson::validate_utf8(p, left);
}

Result<Datum> ParseDatum(std::string_view text, Type type, const FormatSettings& settings,
                         Arena* arena) {
  if (type.array) return ToDatum(ParseArray(text, ElementTypeOf(type), settings, arena));
  // Text of bytea is longer than its value, which ParseBytea knows.
  if (type.id != TypeId::kBytea) CELLAR_TRY(CheckValueSize(text.size()));
  switch (type.id) {
    case TypeId::kBool: {
      CELLAR_TRY_ASSIGN(bool value, ParseBool(text));
      return Datum::Bool(value);
    }
    case TypeId::kInt2:
    case TypeId::kInt4:
    case TypeId::kInt8: return ToDatum(ParseInteger(text, type.id));
    case TypeId::kFloat4: return ToDatum(ParseFloat4(text));
    case TypeId::kFloat8: return ToDatum(ParseFloat8(text));
    case TypeId::kNumeric: {
      CELLAR_TRY_ASSIGN(std::string_view value, numeric::Parse(text, arena));
      if (type.modifier < 0) return Datum::Bytes(value);
      return ToDatum(numeric::ApplyModifier(value, type.modifier, arena));
    }
    case TypeId::kBytea: return ToDatum(ParseBytea(text, arena));
    case TypeId::kDate: return ToDatum(ParseDate(text, settings));
    case TypeId::kTime: return ToDatum(ParseTime(text, type.modifier, settings));
    case TypeId::kTimetz: {
      CELLAR_TRY_ASSIGN(TimeTz value, ParseTimeTz(text, type.modifier, settings));
      return MakeDatum(value, arena);
    }
    case TypeId::kTimestamp: return ToDatum(ParseTimestamp(text, type.modifier, settings));
    case TypeId::kTimestamptz: return ToDatum(ParseTimestampTz(text, type.modifier, settings));
    case TypeId::kInterval: {
      CELLAR_TRY_ASSIGN(Interval value, ParseInterval(text, type.modifier, settings));
      return MakeDatum(value, arena);
    }
    case TypeId::kUuid: return ToDatum(ParseUuid(text, arena));
    case TypeId::kJson:
      if (!IsValidText(text)) return InvalidEncoding(text);
      CELLAR_TRY(ValidateJson(text));
      return Datum::Bytes(arena->Copy(text));
    case TypeId::kJsonb:
      if (!IsValidText(text)) return InvalidEncoding(text);
      return ToDatum(ParseJsonb(text, arena));
    case TypeId::kOid: return ToDatum(ParseOid(text, "oid"));
    case TypeId::kXid: return ToDatum(ParseOid(text, "xid"));
    case TypeId::kRegclass:
    case TypeId::kRegtype:
    case TypeId::kRegproc:
    case TypeId::kRegnamespace:
    case TypeId::kRegrole:
      if (text == "-") return Datum::Int(0);
      return ToDatum(ParseOid(text, "oid"));
    case TypeId::kChar: return Datum::Int(ParseChar(text));
    case TypeId::kInt2vector:
    case TypeId::kOidvector: return ParseVector(text, type, settings, arena);
    case TypeId::kEnum: return ToDatum(ParseEnum(text, type));
    case TypeId::kVoid: return Datum::Bytes({});
    case TypeId::kRecord:
      return UnsupportedError("input of anonymous composite types is not implemented");
    case TypeId::kAnyelement:
    case TypeId::kAnyarray:
    case TypeId::kAny:
    case TypeId::kAnyenum:
    case TypeId::kInvalid:
      return UnsupportedError("cannot accept a value of type {}", FormatType(type));
    default: return ParseString(text, type, arena);
  }
}

void AppendDatumText(Datum value, Type type, const FormatSettings& settings, std::string* out) {
  if (type.array) return AppendArrayText(value.bytes(), ElementTypeOf(type), settings, out);
  switch (type.id) {
    case TypeId::kBool: out->push_back(value.bool_value() ? 't' : 'f'); return;
    case TypeId::kInt2:
    case TypeId::kInt4:
    case TypeId::kInt8:
    case TypeId::kOid:
    case TypeId::kXid:
    case TypeId::kRegclass:
    case TypeId::kRegtype:
    case TypeId::kRegproc:
    case TypeId::kRegnamespace:
    case TypeId::kRegrole: AppendInteger(value.int_value(), out); return;
    case TypeId::kFloat4:
      AppendFloat4(value.double_value(), settings.extra_float_digits, out);
      return;
    case TypeId::kFloat8:
      AppendFloat8(value.double_value(), settings.extra_float_digits, out);
      return;
    case TypeId::kNumeric: numeric::AppendText(value.bytes(), out); return;
    case TypeId::kBytea: {
      // No more bytes are printed than show that the text is too long.
      const size_t room = settings.max_text_bytes - std::min(settings.max_text_bytes, out->size());
      const size_t most = settings.bytea_output == ByteaOutput::kHex ? room / 2 : room;
      AppendBytea(value.bytes().substr(0, std::min(value.bytes().size(), most) + 1),
                  settings.bytea_output, out);
      return;
    }
    case TypeId::kDate: AppendDate(value.int_value(), settings, out); return;
    case TypeId::kTime: AppendTime(value.int_value(), out); return;
    case TypeId::kTimetz: AppendTimeTz(TimeTzOf(value), out); return;
    case TypeId::kTimestamp: AppendTimestamp(value.int_value(), settings, out); return;
    case TypeId::kTimestamptz: AppendTimestampTz(value.int_value(), settings, out); return;
    case TypeId::kInterval: AppendInterval(IntervalOf(value), settings, out); return;
    case TypeId::kUuid: AppendUuid(value.bytes(), out); return;
    case TypeId::kEnum: AppendEnum(value.int_value(), type, out); return;
    case TypeId::kRecord: AppendRecordText(value.bytes(), settings, out); return;
    case TypeId::kChar: AppendChar(static_cast<uint8_t>(value.int_value()), out); return;
    case TypeId::kInt2vector:
    case TypeId::kOidvector: {
      ArrayView view(value.bytes(), ElementTypeOf(type));
      for (size_t i = 0; i < view.size(); ++i) {
        PollSteps();
        if (i > 0) out->push_back(' ');
        AppendInteger(view.Get(i).int_value(), out);
      }
      return;
    }
    case TypeId::kBpchar: {
      out->append(value.bytes());
      if (type.modifier < 4) return;
      const auto width = static_cast<size_t>(type.modifier - 4);
      const size_t characters = CountCharacters(value.bytes());
      if (characters < width) out->append(width - characters, ' ');
      return;
    }
    default: out->append(value.bytes()); return;
  }
}

Result<Datum> ApplyModifier(Datum value, Type type, bool explicit_cast, Arena* arena) {
  if (type.modifier < 0 || value.is_null()) return value;
  if (type.array) {
    const Type element = ElementTypeOf(type);
    ArrayView view(value.bytes(), element);
    ArrayBuilder builder(element);
    std::vector<int32_t> lengths, bounds;
    for (int d = 0; d < view.dimensions(); ++d) {
      lengths.push_back(view.length(d));
      bounds.push_back(view.lower_bound(d));
    }
    for (size_t i = 0; i < view.size(); ++i) {
      CELLAR_TRY_ASSIGN(Datum datum, ApplyModifier(view.Get(i), element, explicit_cast, arena));
      CELLAR_TRY(builder.TryAdd(datum));
    }
    return Datum::Bytes(builder.Finish(lengths, bounds, arena));
  }
  switch (type.id) {
    case TypeId::kVarchar:
    case TypeId::kBpchar: return ToDatum(ApplyLength(value.bytes(), type, explicit_cast));
    case TypeId::kNumeric:
      return ToDatum(numeric::ApplyModifier(value.bytes(), type.modifier, arena));
    case TypeId::kTime: return Datum::Int(RoundMicros(value.int_value(), type.modifier));
    case TypeId::kTimetz: {
      TimeTz time = TimeTzOf(value);
      time.micros = RoundMicros(time.micros, type.modifier);
      return MakeDatum(time, arena);
    }
    case TypeId::kTimestamp:
    case TypeId::kTimestamptz: return ToDatum(RoundTimestamp(value.int_value(), type.modifier));
    case TypeId::kInterval: {
      CELLAR_TRY_ASSIGN(Interval interval, ApplyIntervalModifier(IntervalOf(value), type.modifier));
      return MakeDatum(interval, arena);
    }
    default: return value;
  }
}

}  // namespace cellar
