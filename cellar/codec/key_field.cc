// Reading the bytes of one key field. Every length is checked before it is read, and only the
// canonical form of a value is accepted, so that what decodes encodes to the same bytes again
// (docs/formats/key.md).
#include <bit>
#include <cmath>
#include <limits>

#include "cellar/codec/key_bytes.h"
#include "cellar/types/array.h"
#include "cellar/types/collation.h"
#include "cellar/types/datetime.h"
#include "cellar/types/numeric.h"

namespace cellar::codec::internal {

namespace {

constexpr int64_t kMaxZoneSeconds = 16 * 3600 - 1;

void CopyMasked(const uint8_t* in, size_t n, uint8_t mask, char* out) {
  if (mask == 0) {
    std::memcpy(out, in, n);
    return;
  }
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<char>(in[i] ^ mask);
}

bool TakeFixed64(Cursor* cursor, uint64_t* value) {
  if (!cursor->Need(9)) return false;
  *value = LoadBig64(cursor->at + 1) ^ cursor->mask64();
  cursor->at += 9;
  return true;
}
bool TakeFixed32(Cursor* cursor, uint32_t* value) {
  if (!cursor->Need(5)) return false;
  *value = LoadBig32(cursor->at + 1) ^ static_cast<uint32_t>(cursor->mask64());
  cursor->at += 5;
  return true;
}

bool TakeFloat8(Cursor* cursor, Datum* value) {
  const uint8_t* start = cursor->at;
  uint64_t bits;
  if (!TakeFixed64(cursor, &bits)) return false;
  if (bits == ~uint64_t{0}) {
    *value = Datum::Double(std::numeric_limits<double>::quiet_NaN());
    return true;
  }
  bits = (bits & kSign64) != 0 ? bits ^ kSign64 : ~bits;
  auto d = std::bit_cast<double>(bits);
  if (std::isnan(d) || bits == kSign64) return cursor->FailAt(start, "not a canonical float");
  *value = Datum::Double(d);
  return true;
}

bool TakeFloat4(Cursor* cursor, Datum* value) {
  const uint8_t* start = cursor->at;
  uint32_t bits;
  if (!TakeFixed32(cursor, &bits)) return false;
  if (bits == ~uint32_t{0}) {
    *value = Datum::Double(std::numeric_limits<double>::quiet_NaN());
    return true;
  }
  bits = (bits & kSign32) != 0 ? bits ^ kSign32 : ~bits;
  auto f = std::bit_cast<float>(bits);
  if (std::isnan(f) || bits == kSign32) return cursor->FailAt(start, "not a canonical float");
  *value = Datum::Double(f);
  return true;
}

// Base-100 digits of a DECIMAL after its exponent, up to the last.
bool TakeDigits(Cursor* cursor, std::string* digits) {
  while (true) {
    if (!cursor->Need(1)) return false;
    uint8_t b = cursor->Peek();
    if (b < 2 || b > 200) return cursor->Fail("not a decimal digit");
    ++cursor->at;
    digits->push_back(static_cast<char>((b - 1) / 2));
    if (b % 2 == 1) return true;
  }
}

bool TakeNumeric(Cursor* cursor, Arena* arena, Datum* value) {
  const uint8_t* start = cursor->at;
  uint8_t tag = cursor->Peek();
  ++cursor->at;
  switch (tag) {
    case kTagDecimalNegativeInfinity:
      *value = Datum::Bytes(numeric::MakeInfinity(true));
      return true;
    case kTagDecimalInfinity: *value = Datum::Bytes(numeric::MakeInfinity(false)); return true;
    case kTagDecimalNaN: *value = Datum::Bytes(numeric::MakeNaN()); return true;
    case kTagDecimalZero: *value = Datum::Bytes(numeric::FromInt64(0, arena)); return true;
    case kTagDecimalNegative:
    case kTagDecimalPositive: break;
    default: return cursor->FailAt(start, "not a decimal");
  }
  bool negative = tag == kTagDecimalNegative;
  uint8_t outer = cursor->mask;
  if (negative) cursor->mask = static_cast<uint8_t>(~outer);
  bool exponent_negative;
  uint64_t magnitude;
  std::string digits;
  if (!cursor->Need(1) || !TakeInteger(cursor, &exponent_negative, &magnitude) ||
      !TakeDigits(cursor, &digits)) {
    return false;
  }
  cursor->mask = outer;
  auto exponent = static_cast<int64_t>(magnitude);
  if ((!exponent_negative && exponent < 0) || exponent > INT32_MAX || exponent < INT32_MIN) {
    return cursor->FailAt(start, "decimal exponent out of range");
  }
  Result<std::string_view> made = numeric::FromKeyDigits(
      negative, static_cast<int32_t>(exponent),
      {reinterpret_cast<const uint8_t*>(digits.data()), digits.size()}, 0, arena);
  if (!made.ok()) return cursor->FailAt(start, "not a canonical decimal");
  *value = Datum::Bytes(*made);
  return true;
}

bool TakeTimestamp(Cursor* cursor, Datum* value) {
  const uint8_t* start = cursor->at;
  uint64_t bits;
  if (!TakeFixed64(cursor, &bits)) return false;
  auto micros = static_cast<int64_t>(bits ^ kSign64);
  if (IsFiniteTimestamp(micros) && (micros < kMinTimestamp || micros >= kEndTimestamp)) {
    return cursor->FailAt(start, "timestamp out of range");
  }
  *value = Datum::Int(micros);
  return true;
}

bool TakeDate(Cursor* cursor, Datum* value) {
  const uint8_t* start = cursor->at;
  uint32_t bits;
  if (!TakeFixed32(cursor, &bits)) return false;
  int64_t days = static_cast<int32_t>(bits ^ kSign32);
  if (IsFiniteDate(days) && (days < kMinDate || days >= kEndDate)) {
    return cursor->FailAt(start, "date out of range");
  }
  *value = Datum::Int(days);
  return true;
}

bool TakeTime(Cursor* cursor, Datum* value) {
  const uint8_t* start = cursor->at;
  uint64_t bits;
  if (!TakeFixed64(cursor, &bits)) return false;
  auto micros = static_cast<int64_t>(bits ^ kSign64);
  if (micros < 0 || micros > kMicrosPerDay) return cursor->FailAt(start, "time out of range");
  *value = Datum::Int(micros);
  return true;
}

bool TakeTimetz(Cursor* cursor, Arena* arena, Datum* value) {
  const uint8_t* start = cursor->at;
  if (!cursor->Need(13)) return false;
  auto utc = static_cast<int64_t>(LoadBig64(start + 1) ^ cursor->mask64() ^ kSign64);
  auto zone = static_cast<int32_t>(LoadBig32(start + 9) ^ static_cast<uint32_t>(cursor->mask64()) ^
                                   kSign32);
  constexpr int64_t kMaxUtc = kMicrosPerDay + kMaxZoneSeconds * kMicrosPerSecond;
  if (zone < -kMaxZoneSeconds || zone > kMaxZoneSeconds || utc < -kMaxUtc || utc > kMaxUtc) {
    return cursor->Fail("time out of range");
  }
  TimeTz time{utc - zone * kMicrosPerSecond, zone};
  if (time.micros < 0 || time.micros > kMicrosPerDay) return cursor->Fail("time out of range");
  cursor->at += 13;
  *value = MakeDatum(time, arena);
  return true;
}

bool TakeInterval(Cursor* cursor, Arena* arena, Datum* value) {
  if (!cursor->Need(17)) return false;
  uint64_t high = LoadBig64(cursor->at + 1) ^ cursor->mask64() ^ kSign64;
  uint64_t low = LoadBig64(cursor->at + 9) ^ cursor->mask64();
  char* bytes = arena->Allocate(16);
  if (!IntervalFromKey(static_cast<int128_t>(uint128_t{high} << 64 | low), bytes)) {
    return cursor->Fail("interval out of range");
  }
  cursor->at += 17;
  *value = Datum::Bytes({bytes, 16});
  return true;
}

bool TakeArray(Cursor* cursor, Type type, Arena* arena, Datum* value) {
  Type element = ElementTypeOf(type);
  KeyKind kind = KindOf(element);
  ArrayBuilder builder(element);
  ++cursor->at;
  while (true) {
    if (!cursor->Need(1)) return false;
    uint8_t tag = cursor->Peek();
    if (tag <= kArrayEndShape) break;
    Datum item;
    if (tag == kTagNullLast) {
      ++cursor->at;
    } else if (!TakeValue(cursor, kind, element, arena, &item)) {
      return false;
    }
    builder.Add(item);
  }
  ArrayShape shape;
  if (!TakeArrayEnd(cursor, builder.size(), &shape)) return false;
  if (shape.dimensions == 0) {
    *value = Datum::Bytes(builder.Finish(arena));
  } else {
    auto n = static_cast<size_t>(shape.dimensions);
    *value = Datum::Bytes(builder.Finish(std::span<const int32_t>(shape.lengths, n),
                                         std::span<const int32_t>(shape.bounds, n), arena));
  }
  return true;
}

bool TakeInt32(Cursor* cursor, int32_t* value) {
  const uint8_t* start = cursor->at;
  bool negative;
  uint64_t v;
  if (!cursor->Need(1) || !TakeInteger(cursor, &negative, &v)) return false;
  if (!IntegerRangeOf(TypeId::kInt4).Holds(negative, v))
    return cursor->FailAt(start, "array bound out of range");
  *value = static_cast<int32_t>(static_cast<int64_t>(v));
  return true;
}

}  // namespace

bool FindTerminator(Cursor* cursor, const uint8_t** terminator, size_t* escapes) {
  const uint8_t* p = cursor->at;
  *escapes = 0;
  while (true) {
    p = FindByte(p, cursor->end, cursor->mask);
    if (cursor->end - p < 2)
      return cursor->FailAt(cursor->end, "ends inside a text or bytes field");
    auto next = static_cast<uint8_t>(p[1] ^ cursor->mask);
    if (next == 0x01) break;
    if (next != 0xFF) return cursor->FailAt(p + 1, "unknown escape");
    ++*escapes;
    p += 2;
  }
  *terminator = p;
  cursor->at = p + 2;
  return true;
}

bool TakeEscaped(Cursor* cursor, Arena* arena, std::string_view* bytes) {
  const uint8_t* p = cursor->at;
  const uint8_t* terminator;
  size_t escapes;
  if (!FindTerminator(cursor, &terminator, &escapes)) return false;
  size_t size = static_cast<size_t>(terminator - p) - escapes;
  if (size == 0) {
    *bytes = {};
    return true;
  }
  char* out = arena->Allocate(size);
  *bytes = {out, size};
  while (true) {
    const uint8_t* stop = escapes == 0 ? terminator : FindByte(p, terminator, cursor->mask);
    auto run = static_cast<size_t>(stop - p);
    CopyMasked(p, run, cursor->mask, out);
    if (stop == terminator) return true;
    out += run;
    *out++ = 0;
    p = stop + 2;
  }
}

bool IntervalFromKey(int128_t micros, char* interval) {
  constexpr int128_t kMonth = int128_t{30} * kMicrosPerDay;
  auto clamp = [](int128_t v) {
    return static_cast<int32_t>(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
  };
  Interval out;
  out.months = clamp(micros / kMonth);
  micros -= out.months * kMonth;
  out.days = clamp(micros / kMicrosPerDay);
  micros -= int128_t{out.days} * kMicrosPerDay;
  if (micros > INT64_MAX || micros < INT64_MIN) return false;
  out.micros = static_cast<int64_t>(micros);
  std::memcpy(interval, &out, 16);
  return true;
}

bool TakeArrayEnd(Cursor* cursor, size_t elements, ArrayShape* shape) {
  const uint8_t* start = cursor->at;
  uint8_t tag = cursor->Peek();
  ++cursor->at;
  if (tag == kArrayEndPlain) return true;
  if (elements == 0) return cursor->FailAt(start, "an empty array has no bounds");
  if (tag == kArrayEndBelow) {
    shape->dimensions = 1;
    shape->lengths[0] = static_cast<int32_t>(elements);
    if (!TakeInt32(cursor, &shape->bounds[0])) return false;
    return shape->bounds[0] < 1 || cursor->FailAt(start, "not a canonical array bound");
  }
  int32_t dimensions;
  if (!TakeInt32(cursor, &dimensions)) return false;
  if (dimensions < 1 || dimensions > kMaxArrayDimensions) {
    return cursor->FailAt(start, "array dimensions out of range");
  }
  shape->dimensions = dimensions;
  uint64_t product = 1;
  for (int i = 0; i < dimensions; ++i) {
    if (!TakeInt32(cursor, &shape->lengths[i])) return false;
    if (shape->lengths[i] < 1) return cursor->FailAt(start, "array length out of range");
    product *= static_cast<uint64_t>(shape->lengths[i]);
    if (product > elements) break;
  }
  if (product != elements) return cursor->FailAt(start, "array lengths do not match its elements");
  for (int i = 0; i < dimensions; ++i) {
    if (!TakeInt32(cursor, &shape->bounds[i])) return false;
  }
  if (dimensions == 1 && shape->bounds[0] <= 1) {
    return cursor->FailAt(start, "not a canonical array bound");
  }
  return true;
}

bool TakeValue(Cursor* cursor, KeyKind kind, Type type, Arena* arena, Datum* value) {
  if (!cursor->Need(1)) return false;
  uint8_t tag = cursor->Peek();
  auto expect = [&](uint8_t wanted) {
    return tag == wanted || cursor->Fail("a field of another type or direction");
  };
  switch (kind) {
    case KeyKind::kInt: {
      const uint8_t* start = cursor->at;
      bool negative;
      uint64_t v;
      if (!TakeInteger(cursor, &negative, &v)) return false;
      if (!IntegerRangeOf(type.id).Holds(negative, v))
        return cursor->FailAt(start, "integer out of range");
      *value = Datum::Int(static_cast<int64_t>(v));
      return true;
    }
    case KeyKind::kBool:
      if (tag != kTagFalse && tag != kTagTrue) return expect(kTagFalse);
      *value = Datum::Bool(tag == kTagTrue);
      ++cursor->at;
      return true;
    case KeyKind::kText:
    case KeyKind::kBytes:
    case KeyKind::kCollated: {
      if (!expect(kind == KeyKind::kText    ? kTagText
                  : kind == KeyKind::kBytes ? kTagBytes
                                            : kTagCollated)) {
        return false;
      }
      ++cursor->at;
      const uint8_t* start = cursor->at;
      std::string_view bytes;
      if (!TakeEscaped(cursor, arena, &bytes)) return false;
      if (kind == KeyKind::kCollated && type.collation->deterministic) {
        const size_t end = bytes.find('\0');
        if (end == std::string_view::npos) {
          return cursor->FailAt(start, "a sort key without its text");
        }
        bytes.remove_prefix(end + 1);
      }
      if (type.id == TypeId::kBpchar && kind != KeyKind::kBytes && bytes.ends_with(' ')) {
        return cursor->FailAt(start, "not a canonical padded text");
      }
      *value = Datum::Bytes(bytes);
      return true;
    }
    case KeyKind::kFloat4: return expect(kTagFloat4) && TakeFloat4(cursor, value);
    case KeyKind::kFloat8: return expect(kTagFloat8) && TakeFloat8(cursor, value);
    case KeyKind::kNumeric: return TakeNumeric(cursor, arena, value);
    case KeyKind::kTimestamp: return expect(kTagTimestamp) && TakeTimestamp(cursor, value);
    case KeyKind::kTimestamptz: return expect(kTagTimestamptz) && TakeTimestamp(cursor, value);
    case KeyKind::kDate: return expect(kTagDate) && TakeDate(cursor, value);
    case KeyKind::kTime: return expect(kTagTime) && TakeTime(cursor, value);
    case KeyKind::kTimetz: return expect(kTagTimetz) && TakeTimetz(cursor, arena, value);
    case KeyKind::kInterval: return expect(kTagInterval) && TakeInterval(cursor, arena, value);
    case KeyKind::kUuid: {
      if (!expect(kTagUuid) || !cursor->Need(17)) return false;
      char* out = arena->Allocate(16);
      CopyMasked(cursor->at + 1, 16, cursor->mask, out);
      cursor->at += 17;
      *value = Datum::Bytes({out, 16});
      return true;
    }
    case KeyKind::kArray: return expect(kTagArray) && TakeArray(cursor, type, arena, value);
    case KeyKind::kNone: break;
  }
  return cursor->Fail("a column of this type has no key form");
}

}  // namespace cellar::codec::internal
