// Reading keys without their schema: tags say what each field is (docs/formats/key.md, section 2).
#include <fmt/core.h>

#include "cellar/codec/key.h"
#include "cellar/codec/key_bytes.h"
#include "cellar/types/text_io.h"

namespace cellar::codec {

using namespace internal;  // NOLINT: the private half of this very layer

namespace {

void AppendHex(std::string_view bytes, std::string* out) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (char c : bytes) {
    auto b = static_cast<uint8_t>(c);
    out->push_back(kDigits[b >> 4]);
    out->push_back(kDigits[b & 15]);
  }
}

void AppendQuoted(std::string_view text, std::string* out) {
  out->push_back('\'');
  for (char c : text) {
    if (c == '\'') out->push_back('\'');
    out->push_back(c);
  }
  out->push_back('\'');
}

struct TagType {
  std::string_view name;
  TypeId type;
};

// What a field of this ascending tag is; no name for a tag that is not assigned.
TagType TypeOfTag(uint8_t tag) {
  if (tag >= kTagIntMin && tag <= kTagIntMax) return {"INT", TypeId::kInt8};
  switch (tag) {
    case kTagFalse:
    case kTagTrue: return {"BOOL", TypeId::kBool};
    case kTagDecimalNegativeInfinity:
    case kTagDecimalNegative:
    case kTagDecimalZero:
    case kTagDecimalPositive:
    case kTagDecimalInfinity:
    case kTagDecimalNaN: return {"DECIMAL", TypeId::kNumeric};
    case kTagFloat4: return {"FLOAT32", TypeId::kFloat4};
    case kTagFloat8: return {"FLOAT64", TypeId::kFloat8};
    case kTagUuid: return {"UUID", TypeId::kUuid};
    case kTagText: return {"TEXT", TypeId::kText};
    case kTagBytes: return {"BYTES", TypeId::kBytea};
    case kTagCollated: return {"COLLATED", TypeId::kBytea};
    case kTagTimestamp: return {"TIMESTAMP", TypeId::kTimestamp};
    case kTagTimestamptz: return {"TIMESTAMPTZ", TypeId::kTimestamptz};
    case kTagDate: return {"DATE", TypeId::kDate};
    case kTagTime: return {"TIME", TypeId::kTime};
    case kTagTimetz: return {"TIMETZ", TypeId::kTimetz};
    case kTagInterval: return {"INTERVAL", TypeId::kInterval};
    case kTagArray: return {"ARRAY", TypeId::kInvalid};
    case kTagTuple: return {"TUPLE", TypeId::kInvalid};
    default: return {{}, TypeId::kInvalid};
  }
}

bool ReadValue(Cursor* cursor, int depth, Arena* arena, std::string* out);

// The elements of an array "{1,2}" or the fields of a tuple "(1,'a')"; other bounds than from 1 are
// told in front, "[0:1]={1,2}", and the elements of more dimensions follow in storage order.
bool ReadNested(Cursor* cursor, int depth, Arena* arena, std::string* out) {
  if (depth >= kMaxNesting) return cursor->Fail("nested too deeply");
  bool array = cursor->Peek() == kTagArray;
  ++cursor->at;
  std::string body;
  ArrayShape shape;
  for (size_t elements = 0;; ++elements) {
    if (!cursor->Need(1)) return false;
    uint8_t tag = cursor->Peek();
    if (array && tag <= kArrayEndShape) {
      if (!TakeArrayEnd(cursor, elements, &shape)) return false;
      break;
    }
    if (tag == kTagEnd) {
      ++cursor->at;
      break;
    }
    if (elements > 0) body.push_back(',');
    if (tag == kTagNullLast) {
      ++cursor->at;
      body.append("NULL");
    } else if (!ReadValue(cursor, depth + 1, arena, &body)) {
      return false;
    }
  }
  for (int i = 0; i < shape.dimensions; ++i) {
    out->append(
        fmt::format("[{}:{}]", shape.bounds[i], int64_t{shape.bounds[i]} + shape.lengths[i] - 1));
  }
  if (shape.dimensions > 0) out->push_back('=');
  out->push_back(array ? '{' : '(');
  out->append(body);
  out->push_back(array ? '}' : ')');
  return true;
}

// One non-NULL field, as in the ascending form under the cursor's mask.
bool ReadValue(Cursor* cursor, int depth, Arena* arena, std::string* out) {
  TagType type = TypeOfTag(cursor->Peek());
  if (type.name.empty()) return cursor->Fail("unknown tag");
  if (type.name == "ARRAY" || type.name == "TUPLE") return ReadNested(cursor, depth, arena, out);
  if (type.name == "INT") {
    bool negative;
    uint64_t value;
    if (!TakeInteger(cursor, &negative, &value)) return false;
    out->append(negative ? fmt::format("{}", static_cast<int64_t>(value))
                         : fmt::format("{}", value));
    return true;
  }
  if (type.type == TypeId::kText || type.type == TypeId::kBytea) {
    ++cursor->at;
    std::string_view bytes;
    if (!TakeEscaped(cursor, arena, &bytes)) return false;
    if (type.type == TypeId::kText) {
      AppendQuoted(bytes, out);
    } else {
      out->append("'\\x");
      AppendHex(bytes, out);
      out->push_back('\'');
    }
    return true;
  }
  Datum value;
  if (!TakeValue(cursor, ScalarKindOf(type.type), MakeType(type.type), arena, &value)) return false;
  AppendDatumText(value, MakeType(type.type), FormatSettings{}, out);
  return true;
}

bool ReadField(Cursor* cursor, Arena* arena, DecodedField* field) {
  uint8_t first = *cursor->at;
  if (first == kTagNullFirst || first == kTagNullLast) {
    field->tag = first;
    field->type = "NULL";
    field->is_null = true;
    field->value = "NULL";
    ++cursor->at;
    return true;
  }
  cursor->mask = (first & 0x80) != 0 ? 0xFF : 0;
  field->direction = cursor->mask != 0 ? Direction::kDescending : Direction::kAscending;
  field->tag = cursor->Peek();
  field->type = TypeOfTag(field->tag).name;
  return ReadValue(cursor, 0, arena, &field->value);
}

size_t OffsetOf(const Cursor& cursor, std::string_view key) {
  return static_cast<size_t>(cursor.at - reinterpret_cast<const uint8_t*>(key.data()));
}

// Fields from `offset` on. *bad is where reading stopped, on error.
Status ReadFields(std::string_view key, size_t offset, DecodedKey* out, size_t* bad) {
  Arena arena;
  Cursor cursor(key);
  cursor.at += offset;
  while (cursor.left() > 0) {
    size_t at = OffsetOf(cursor, key);
    if (*cursor.at == kTagEnd && cursor.left() == 1 && at > 0 && key[at - 1] == '\0') {
      out->end_marker = true;
      return Status();
    }
    DecodedField field;
    field.offset = at;
    if (!ReadField(&cursor, &arena, &field)) {
      *bad = at;
      return CorruptionError("key makes no sense at byte {}: {}", OffsetOf(cursor, key),
                             cursor.error);
    }
    out->fields.push_back(std::move(field));
  }
  return Status();
}

Status ReadKey(std::string_view key, DecodedKey* out, size_t* bad) {
  *bad = 0;
  if (key.empty()) return CorruptionError("key makes no sense at byte 0: it is empty");
  size_t offset = 0;
  if (key[0] == '\0') {
    size_t dash = key.find('-');
    if (dash == std::string_view::npos) {
      return CorruptionError("key makes no sense at byte {}: a system record without its word",
                             key.size());
    }
    for (size_t i = 1; i < dash; ++i) {
      char c = key[i];
      if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) {
        return CorruptionError("key makes no sense at byte {}: not a system record's word", i);
      }
    }
    if (dash == 1) return CorruptionError("key makes no sense at byte 1: an empty word");
    out->word = std::string(key.substr(1, dash - 1));
    offset = dash + 1;
  }
  return ReadFields(key, offset, out, bad);
}

}  // namespace

Result<DecodedKey> DecodeKey(std::string_view key) {
  DecodedKey out;
  size_t bad;
  CELLAR_TRY(ReadKey(key, &out, &bad));
  return out;
}

Result<DecodedKey> DecodeKeyFields(std::string_view fields) {
  DecodedKey out;
  size_t bad;
  CELLAR_TRY(ReadFields(fields, 0, &out, &bad));
  return out;
}

std::string PrintKey(std::string_view key) {
  DecodedKey decoded;
  size_t bad;
  bool whole = ReadKey(key, &decoded, &bad).ok();
  std::string out;
  if (!decoded.word.empty()) out = decoded.word + "-";
  for (const DecodedField& field : decoded.fields) {
    out.push_back('/');
    out.append(field.value);
    if (field.direction == Direction::kDescending) out.append(" desc");
  }
  if (!whole) {
    out.append("/x");
    AppendHex(key.substr(bad), &out);
  }
  return out;
}

}  // namespace cellar::codec
