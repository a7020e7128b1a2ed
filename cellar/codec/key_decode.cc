// Decoding of key fields by column, and skipping them by tag (docs/formats/key.md).
#include "cellar/base/check.h"
#include "cellar/codec/key.h"
#include "cellar/codec/key_bytes.h"

namespace cellar::codec {

namespace internal {

namespace {

bool SkipInteger(Cursor* cursor) {
  bool negative;
  uint64_t value;
  return cursor->Need(1) && TakeInteger(cursor, &negative, &value);
}

bool SkipDecimal(Cursor* cursor, uint8_t tag) {
  ++cursor->at;
  if (tag != kTagDecimalNegative && tag != kTagDecimalPositive) return true;
  uint8_t outer = cursor->mask;
  if (tag == kTagDecimalNegative) cursor->mask = static_cast<uint8_t>(~outer);
  if (!SkipInteger(cursor)) return false;
  while (true) {
    if (!cursor->Need(1)) return false;
    uint8_t b = cursor->Peek();
    if (b < 2 || b > 200) return cursor->Fail("not a decimal digit");
    ++cursor->at;
    if (b % 2 == 1) break;
  }
  cursor->mask = outer;
  return true;
}

bool SkipNested(Cursor* cursor, int depth) {
  if (depth >= kMaxNesting) return cursor->Fail("nested too deeply");
  bool array = cursor->Peek() == kTagArray;
  ++cursor->at;
  for (size_t elements = 0;; ++elements) {
    if (!cursor->Need(1)) return false;
    uint8_t tag = cursor->Peek();
    if (array && tag <= kArrayEndShape) {
      ArrayShape shape;
      return TakeArrayEnd(cursor, elements, &shape);
    }
    if (tag == kTagEnd) {
      ++cursor->at;
      return true;
    }
    if (tag == kTagNullLast) {
      ++cursor->at;
    } else if (!SkipField(cursor, depth + 1)) {
      return false;
    }
  }
}

}  // namespace

bool SkipField(Cursor* cursor, int depth) {
  if (!cursor->Need(1)) return false;
  uint8_t tag = cursor->Peek();
  size_t size = 0;
  if (tag == kTagFalse || tag == kTagTrue) {
    size = 1;
  } else if (tag >= kTagIntMin && tag <= kTagIntMax) {
    return SkipInteger(cursor);
  } else if (tag >= kTagDecimalNegativeInfinity && tag <= kTagDecimalNaN) {
    return SkipDecimal(cursor, tag);
  } else if (tag >= kTagText && tag <= kTagCollated) {
    ++cursor->at;
    const uint8_t* terminator;
    size_t escapes;
    return FindTerminator(cursor, &terminator, &escapes);
  } else if (tag == kTagArray || tag == kTagTuple) {
    return SkipNested(cursor, depth);
  } else {
    switch (tag) {
      case kTagFloat4:
      case kTagDate: size = 5; break;
      case kTagFloat8:
      case kTagTimestamp:
      case kTagTimestamptz:
      case kTagTime: size = 9; break;
      case kTagTimetz: size = 13; break;
      case kTagUuid:
      case kTagInterval: size = 17; break;
      default: return cursor->Fail("unknown tag");
    }
  }
  if (!cursor->Need(size)) return false;
  cursor->at += size;
  return true;
}

}  // namespace internal

using namespace internal;  // NOLINT: the private half of this very layer

namespace {

Status FieldError(const Cursor& cursor, std::string_view in) {
  return CorruptionError("key makes no sense at byte {}: {}",
                         cursor.at - reinterpret_cast<const uint8_t*>(in.data()), cursor.error);
}

size_t Consumed(const Cursor& cursor, std::string_view in) {
  return static_cast<size_t>(cursor.at - reinterpret_cast<const uint8_t*>(in.data()));
}

uint8_t NullByteOf(const KeyColumn& column) {
  return column.nulls == NullPlacement::kFirst ? kTagNullFirst : kTagNullLast;
}
uint8_t MaskOf(const KeyColumn& column) {
  return column.direction == Direction::kDescending ? 0xFF : 0;
}

// A short ascending TEXT field without escapes; otherwise false, and nothing is consumed.
inline bool TakePlainText(Cursor* cursor, Arena* arena, std::string_view* text) {
  constexpr ptrdiff_t kShort = 16;
  const uint8_t* start = cursor->at + 1;
  if (cursor->mask != 0 || *cursor->at != kTagText || cursor->end - start < kShort + 2)
    return false;
  const uint8_t* zero = FindByte(start, start + kShort + 1, 0);
  if (zero - start > kShort || zero[1] != 0x01) return false;
  char* out = arena->Allocate(kShort);
  std::memcpy(out, start, kShort);  // more than the text: a fixed size costs no call
  *text = {out, static_cast<size_t>(zero - start)};
  cursor->at = zero + 2;
  return true;
}

// One field at the cursor, as the column says.
bool TakeColumn(Cursor* cursor, const KeyColumn& column, Arena* arena, Datum* value) {
  if (!cursor->Need(1)) return false;
  if (*cursor->at == NullByteOf(column)) {
    ++cursor->at;
    *value = Datum();
    return true;
  }
  cursor->mask = MaskOf(column);
  return TakeValue(cursor, KindOf(column), column.type, arena, value);
}

bool SkipColumn(Cursor* cursor) {
  if (!cursor->Need(1)) return false;
  uint8_t first = *cursor->at;
  if (first == kTagNullFirst || first == kTagNullLast) {
    ++cursor->at;
    return true;
  }
  cursor->mask = (first & 0x80) != 0 ? 0xFF : 0;
  return SkipField(cursor, 0);
}

}  // namespace

Result<Datum> TakeKeyField(std::string_view* in, const KeyColumn& column, Arena* arena) {
  Cursor cursor(*in);
  Datum value;
  if (!TakeColumn(&cursor, column, arena, &value)) return FieldError(cursor, *in);
  in->remove_prefix(Consumed(cursor, *in));
  return value;
}

Result<int64_t> TakeKeyInt(std::string_view* in) {
  Cursor cursor(*in);
  bool negative;
  uint64_t value;
  if (!cursor.Need(1) || !TakeInteger(&cursor, &negative, &value)) return FieldError(cursor, *in);
  if (!negative && value > INT64_MAX) {
    return CorruptionError("key makes no sense at byte 0: integer out of range");
  }
  in->remove_prefix(Consumed(cursor, *in));
  return static_cast<int64_t>(value);
}

Result<uint64_t> TakeKeyUint(std::string_view* in) {
  Cursor cursor(*in);
  bool negative;
  uint64_t value;
  if (!cursor.Need(1) || !TakeInteger(&cursor, &negative, &value)) return FieldError(cursor, *in);
  if (negative) return CorruptionError("key makes no sense at byte 0: integer out of range");
  in->remove_prefix(Consumed(cursor, *in));
  return value;
}

Result<std::string> TakeKeyText(std::string_view* in) {
  Arena arena;
  CELLAR_TRY_ASSIGN(Datum text, TakeKeyField(in, KeyColumn{MakeType(TypeId::kText)}, &arena));
  if (text.is_null()) return CorruptionError("key holds NULL where a text is due");
  return std::string(text.bytes());
}

Result<std::vector<Datum>> TakeKeyTuple(std::string_view* in, std::span<const Type> types,
                                        Direction direction, Arena* arena) {
  Cursor cursor(*in, direction == Direction::kDescending ? 0xFF : 0);
  if (!cursor.Need(1)) return FieldError(cursor, *in);
  if (cursor.Peek() != kTagTuple) {
    cursor.Fail("not a tuple");
    return FieldError(cursor, *in);
  }
  ++cursor.at;
  std::vector<Datum> values(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    if (!cursor.Need(1)) return FieldError(cursor, *in);
    if (cursor.Peek() == kTagNullLast) {
      ++cursor.at;
    } else if (!TakeValue(&cursor, KindOf(types[i]), types[i], arena, &values[i])) {
      return FieldError(cursor, *in);
    }
  }
  if (!cursor.Need(1)) return FieldError(cursor, *in);
  if (cursor.Peek() != kTagEnd) {
    cursor.Fail("a tuple of more fields");
    return FieldError(cursor, *in);
  }
  ++cursor.at;
  in->remove_prefix(Consumed(cursor, *in));
  return values;
}

Status SkipKeyField(std::string_view* in) {
  Cursor cursor(*in);
  if (!SkipColumn(&cursor)) return FieldError(cursor, *in);
  in->remove_prefix(Consumed(cursor, *in));
  return Status();
}

KeyDecoder::KeyDecoder(std::vector<KeyColumn> columns, std::vector<int> positions) {
  CELLAR_CHECK(columns.size() == positions.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    const KeyColumn& column = columns[i];
    const IntegerRange range = IntegerRangeOf(column.type.id);
    steps_.push_back({column, positions[i], static_cast<uint8_t>(KindOf(column)),
                      NullByteOf(column), MaskOf(column), range.least, range.greatest});
  }
}

Status KeyDecoder::Decode(std::string_view* in, size_t row, RowBatch* batch) const {
  Cursor cursor(*in);
  for (const Step& step : steps_) {
    if (step.position < 0) {
      if (!SkipColumn(&cursor)) return FieldError(cursor, *in);
      continue;
    }
    if (!cursor.Need(1)) return FieldError(cursor, *in);
    ColumnVector& column = batch->column(static_cast<size_t>(step.position));
    if (*cursor.at == step.null_byte) {
      ++cursor.at;
      column.SetNull(row);
      continue;
    }
    cursor.mask = step.mask;
    const auto kind = static_cast<KeyKind>(step.kind);
    // The usual kinds, without a call.
    if (kind == KeyKind::kInt) {
      bool negative;
      uint64_t value;
      if (!TakeInteger(&cursor, &negative, &value)) return FieldError(cursor, *in);
      if (!IntegerRange{step.least, step.greatest}.Holds(negative, value)) {
        cursor.Fail("integer out of range");
        return FieldError(cursor, *in);
      }
      column.nulls()[row] = 0;
      column.ints()[row] = static_cast<int64_t>(value);
      continue;
    }
    if (std::string_view text; kind == KeyKind::kText && step.column.type.id != TypeId::kBpchar &&
                               TakePlainText(&cursor, batch->arena(), &text)) {
      column.nulls()[row] = 0;
      column.bytes()[row] = text;
      continue;
    }
    Datum value;
    if (!TakeValue(&cursor, kind, step.column.type, batch->arena(), &value)) {
      return FieldError(cursor, *in);
    }
    column.Set(row, value);
  }
  in->remove_prefix(Consumed(cursor, *in));
  return Status();
}

}  // namespace cellar::codec
