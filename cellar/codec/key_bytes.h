// The bytes of key fields: tags, integers, the escape. Shared by the encoder, the decoders and row
// values. Everything here follows docs/formats/key.md, sections 2 and 3, and is private to this
// layer.
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "cellar/base/arena.h"
#include "cellar/codec/key.h"
#include "cellar/types/datum.h"
#include "cellar/types/type.h"

namespace cellar::codec::internal {

__extension__ typedef __int128 int128_t;
__extension__ typedef unsigned __int128 uint128_t;

// Persisted: never renumber, never reuse.
inline constexpr uint8_t kTagNullFirst = 0x00;
inline constexpr uint8_t kTagEnd = 0x01;  // of a key, an array or a tuple
inline constexpr uint8_t kTagFalse = 0x03;
inline constexpr uint8_t kTagTrue = 0x04;
inline constexpr uint8_t kTagIntMin = 0x05;   // the 8-byte negative
inline constexpr uint8_t kTagIntZero = 0x15;  // the value 0; -8..55 around it
inline constexpr uint8_t kTagIntMax = 0x54;   // the 8-byte positive
inline constexpr uint8_t kTagDecimalNegativeInfinity = 0x55;
inline constexpr uint8_t kTagDecimalNegative = 0x56;
inline constexpr uint8_t kTagDecimalZero = 0x57;
inline constexpr uint8_t kTagDecimalPositive = 0x58;
inline constexpr uint8_t kTagDecimalInfinity = 0x59;
inline constexpr uint8_t kTagDecimalNaN = 0x5A;
inline constexpr uint8_t kTagFloat4 = 0x5B;
inline constexpr uint8_t kTagFloat8 = 0x5C;
inline constexpr uint8_t kTagUuid = 0x5D;
inline constexpr uint8_t kTagText = 0x60;
inline constexpr uint8_t kTagBytes = 0x61;
inline constexpr uint8_t kTagCollated = 0x62;
inline constexpr uint8_t kTagTimestamp = 0x68;
inline constexpr uint8_t kTagTimestamptz = 0x69;
inline constexpr uint8_t kTagDate = 0x6A;
inline constexpr uint8_t kTagTime = 0x6B;
inline constexpr uint8_t kTagTimetz = 0x6C;
inline constexpr uint8_t kTagInterval = 0x6D;
inline constexpr uint8_t kTagArray = 0x70;
inline constexpr uint8_t kTagTuple = 0x71;
inline constexpr uint8_t kBoundAboveValues = 0xFE;
inline constexpr uint8_t kTagNullLast = 0xFF;

// Ends of an array: one dimension from a lower bound below 1; from 1 (and the empty array); any
// other shape.
inline constexpr uint8_t kArrayEndBelow = 0x00;
inline constexpr uint8_t kArrayEndPlain = 0x01;
inline constexpr uint8_t kArrayEndShape = 0x02;

// How deep arrays and tuples may nest in bytes of unknown origin.
inline constexpr int kMaxNesting = 16;

enum class KeyKind : uint8_t {
  kNone,
  kBool,
  kInt,
  kFloat4,
  kFloat8,
  kNumeric,
  kText,
  kBytes,
  kCollated,
  kUuid,
  kTimestamp,
  kTimestamptz,
  kDate,
  kTime,
  kTimetz,
  kInterval,
  kArray,
};

constexpr KeyKind ScalarKindOf(TypeId id) {
  switch (id) {
    case TypeId::kBool: return KeyKind::kBool;
    case TypeId::kInt2:
    case TypeId::kInt4:
    case TypeId::kInt8:
    case TypeId::kEnum:
    case TypeId::kOid:
    case TypeId::kChar:
    case TypeId::kXid:
    case TypeId::kRegclass:
    case TypeId::kRegtype:
    case TypeId::kRegproc:
    case TypeId::kRegnamespace:
    case TypeId::kRegrole: return KeyKind::kInt;
    case TypeId::kFloat4: return KeyKind::kFloat4;
    case TypeId::kFloat8: return KeyKind::kFloat8;
    case TypeId::kNumeric: return KeyKind::kNumeric;
    case TypeId::kText:
    case TypeId::kVarchar:
    case TypeId::kBpchar:
    case TypeId::kName: return KeyKind::kText;
    case TypeId::kBytea: return KeyKind::kBytes;
    case TypeId::kDate: return KeyKind::kDate;
    case TypeId::kTime: return KeyKind::kTime;
    case TypeId::kTimetz: return KeyKind::kTimetz;
    case TypeId::kTimestamp: return KeyKind::kTimestamp;
    case TypeId::kTimestamptz: return KeyKind::kTimestamptz;
    case TypeId::kInterval: return KeyKind::kInterval;
    case TypeId::kUuid: return KeyKind::kUuid;
    default: return KeyKind::kNone;
  }
}
struct KindTable {
  KeyKind kinds[256];
  constexpr KindTable() : kinds() {
    for (int i = 0; i < 256; ++i) kinds[i] = ScalarKindOf(static_cast<TypeId>(i));
  }
};
inline constexpr KindTable kKinds;

inline KeyKind KindOf(const Type& type) {
  KeyKind scalar = kKinds.kinds[static_cast<uint8_t>(type.id)];
  if (type.array && scalar != KeyKind::kNone) return KeyKind::kArray;
  return type.collation != nullptr && scalar == KeyKind::kText ? KeyKind::kCollated : scalar;
}
inline KeyKind KindOf(const KeyColumn& column) { return KindOf(column.type); }

// What a value of an integer type may be.
struct IntegerRange {
  int64_t least;
  int64_t greatest;
  bool Holds(bool negative, uint64_t value) const {
    auto v = static_cast<int64_t>(value);
    return (negative || v >= 0) && v >= least && v <= greatest;
  }
};
constexpr IntegerRange IntegerRangeOf(TypeId id) {
  switch (id) {
    case TypeId::kEnum:
    case TypeId::kInt8: return {INT64_MIN, INT64_MAX};
    case TypeId::kInt4: return {INT32_MIN, INT32_MAX};
    case TypeId::kInt2: return {INT16_MIN, INT16_MAX};
    case TypeId::kChar: return {INT8_MIN, UINT8_MAX};
    default: return {0, UINT32_MAX};  // object ids
  }
}

// ---- Loads and stores; all keys are big-endian ----

inline uint64_t LoadBig64(const void* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return __builtin_bswap64(v);
}
inline uint32_t LoadBig32(const void* p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return __builtin_bswap32(v);
}
inline char* StoreBig64(uint64_t v, char* out) {
  v = __builtin_bswap64(v);
  std::memcpy(out, &v, 8);
  return out + 8;
}
inline char* StoreBig32(uint32_t v, char* out) {
  v = __builtin_bswap32(v);
  std::memcpy(out, &v, 4);
  return out + 4;
}
inline constexpr uint64_t kSign64 = uint64_t{1} << 63;
inline constexpr uint32_t kSign32 = uint32_t{1} << 31;

// ---- Integers ----

// How many of the low bytes of `v` are in use, at least 1.
inline int SizeInBytes(uint64_t v) { return (64 - std::countl_zero(v | 1) + 7) / 8; }

inline constexpr size_t kMaxIntBytes = 9;

// Both may write up to kMaxIntBytes at `out`, whatever they return.
inline char* WriteUint(uint64_t v, char* out) {
  if (v <= 55) {
    *out = static_cast<char>(kTagIntZero + v);
    return out + 1;
  }
  int n = SizeInBytes(v);
  *out = static_cast<char>(0x4C + n);
  StoreBig64(v << (64 - 8 * n), out + 1);
  return out + 1 + n;
}
inline char* WriteInt(int64_t value, char* out) {
  if (value >= -8) {
    if (value > 55) return WriteUint(static_cast<uint64_t>(value), out);
    *out = static_cast<char>(kTagIntZero + value);
    return out + 1;
  }
  int n = SizeInBytes(~static_cast<uint64_t>(value));
  *out = static_cast<char>(0x0D - n);
  StoreBig64(static_cast<uint64_t>(value) << (64 - 8 * n), out + 1);
  return out + 1 + n;
}

// ---- The escape ----

// Not 0 when a byte of `v` is 0.
inline uint64_t ZeroBytes(uint64_t v) { return (v - 0x0101010101010101) & ~v & 0x8080808080808080; }

// Copies n bytes as it looks for zero bytes; false (and undefined output) if there is one.
inline bool CopyWithoutZero(const char* in, size_t n, char* out) {
  if (n >= 16) {
    size_t i = 0;
#ifdef __SSE2__
    const __m128i zero = _mm_setzero_si128();
    __m128i least = _mm_set1_epi8(-1);
    do {
      __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), block);
      least = _mm_min_epu8(least, block);
      i += 16;
    } while (i + 16 <= n);
    __m128i tail = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + n - 16));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + n - 16), tail);
    least = _mm_min_epu8(least, tail);
    return _mm_movemask_epi8(_mm_cmpeq_epi8(least, zero)) == 0;
#else
    uint64_t found = 0;
    do {
      uint64_t v;
      std::memcpy(&v, in + i, 8);
      std::memcpy(out + i, &v, 8);
      found |= ZeroBytes(v);
      i += 8;
    } while (i + 8 <= n);
    uint64_t v;
    std::memcpy(&v, in + n - 8, 8);
    std::memcpy(out + n - 8, &v, 8);
    return (found | ZeroBytes(v)) == 0;
#endif
  }
  if (n >= 8) {
    uint64_t a, b;
    std::memcpy(&a, in, 8);
    std::memcpy(&b, in + n - 8, 8);
    std::memcpy(out, &a, 8);
    std::memcpy(out + n - 8, &b, 8);
    return (ZeroBytes(a) | ZeroBytes(b)) == 0;
  }
  if (n >= 4) {
    uint32_t a, b;
    std::memcpy(&a, in, 4);
    std::memcpy(&b, in + n - 4, 4);
    std::memcpy(out, &a, 4);
    std::memcpy(out + n - 4, &b, 4);
    return ZeroBytes(a | uint64_t{b} << 32) == 0;
  }
  bool found = false;
  for (size_t i = 0; i < n; ++i) {
    out[i] = in[i];
    found |= in[i] == 0;
  }
  return !found;
}

// The longest that n bytes become, tag and terminator included.
inline size_t MaxEscapedSize(size_t n) { return 2 * n + 3; }

// Tag, escaped bytes, terminator; `out` has MaxEscapedSize(bytes.size()) bytes.
inline char* WriteEscaped(uint8_t tag, std::string_view bytes, char* out) {
  *out++ = static_cast<char>(tag);
  if (CopyWithoutZero(bytes.data(), bytes.size(), out)) {
    out += bytes.size();
  } else {
    for (char c : bytes) {
      *out++ = c;
      if (c == 0) *out++ = static_cast<char>(0xFF);
    }
  }
  *out++ = 0x00;
  *out++ = 0x01;
  return out;
}

inline std::string_view WithoutTrailingBlanks(std::string_view text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// ---- Reading ----

// Reads fields from front to back. A failed read sets `error` and leaves `at` on the byte that
// makes no sense; a cursor that has failed is not used again. `mask` is FF inside a descending
// field.
struct Cursor {
  const uint8_t* at;
  const uint8_t* end;
  uint8_t mask = 0;
  const char* error = nullptr;

  Cursor(std::string_view bytes, uint8_t mask_value = 0)
      : at(reinterpret_cast<const uint8_t*>(bytes.data())),
        end(at + bytes.size()),
        mask(mask_value) {}

  size_t left() const { return static_cast<size_t>(end - at); }
  bool Fail(const char* what) {
    error = what;
    return false;
  }
  bool FailAt(const uint8_t* where, const char* what) {
    at = where;
    return Fail(what);
  }
  bool Need(size_t n) { return left() >= n || FailAt(end, "ends inside a field"); }
  // The next byte as in the ascending form. At least one is left.
  uint8_t Peek() const { return static_cast<uint8_t>(*at ^ mask); }
  uint64_t mask64() const { return mask * uint64_t{0x0101010101010101}; }
};

// The first `byte` in [p, end), or end.
inline const uint8_t* FindByte(const uint8_t* p, const uint8_t* end, uint8_t byte) {
#ifdef __SSE2__
  const __m128i wanted = _mm_set1_epi8(static_cast<char>(byte));
  for (; end - p >= 16; p += 16) {
    __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    auto hits = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(block, wanted)));
    if (hits != 0) return p + std::countr_zero(hits);
  }
#endif
  const uint64_t pattern = byte * uint64_t{0x0101010101010101};
  for (; end - p >= 8; p += 8) {
    uint64_t v;
    std::memcpy(&v, p, 8);
    v ^= pattern;
    uint64_t hits = (v - 0x0101010101010101) & ~v & 0x8080808080808080;
    if (hits != 0) return p + std::countr_zero(hits) / 8;
  }
  while (p != end && *p != byte) ++p;
  return p;
}

// An integer of the family, tag included. At least one byte is left. Values below 0 come in *value
// with *negative set.
inline bool TakeInteger(Cursor* cursor, bool* negative, uint64_t* value) {
  uint8_t tag = cursor->Peek();
  if (tag >= 0x0D && tag <= 0x4C) {
    int small = tag - kTagIntZero;
    *negative = small < 0;
    *value = static_cast<uint64_t>(static_cast<int64_t>(small));
    ++cursor->at;
    return true;
  }
  if (tag < kTagIntMin || tag > kTagIntMax) return cursor->Fail("not an integer");
  *negative = tag < 0x0D;
  int n = *negative ? 0x0D - tag : tag - 0x4C;
  if (!cursor->Need(static_cast<size_t>(n) + 1)) return false;
  uint64_t v = 0;
  if (cursor->left() >= kMaxIntBytes) {
    v = (LoadBig64(cursor->at + 1) ^ cursor->mask64()) >> (64 - 8 * n);
  } else {
    for (int i = 1; i <= n; ++i) v = v << 8 | static_cast<uint8_t>(cursor->at[i] ^ cursor->mask);
  }
  uint64_t magnitude = v;
  if (*negative) {
    if (n < 8) v |= ~uint64_t{0} << (8 * n);
    magnitude = ~v;
  }
  uint64_t least = n == 1 ? (*negative ? 8 : 56) : uint64_t{1} << (8 * (n - 1));
  if (magnitude < least || (*negative && magnitude >= kSign64)) {
    return cursor->Fail("not a canonical integer");
  }
  *value = v;
  cursor->at += n + 1;
  return true;
}

// In a field whose tag has been read: finds its terminator, counts the zero bytes in the value, and
// leaves the cursor behind it all.
bool FindTerminator(Cursor* cursor, const uint8_t** terminator, size_t* escapes);
// The bytes of a field whose tag has been read, up to and over its terminator, in `arena`.
bool TakeEscaped(Cursor* cursor, Arena* arena, std::string_view* bytes);
// One non-NULL field, tag included.
bool TakeValue(Cursor* cursor, KeyKind kind, Type type, Arena* arena, Datum* value);
// One field by its tag alone. `depth` counts the arrays and tuples around it.
bool SkipField(Cursor* cursor, int depth);
// Inside arrays and tuples, after the elements: reads the rest of an array's end.
struct ArrayShape {
  int dimensions = 0;  // 0: plain
  int32_t lengths[6];
  int32_t bounds[6];
};
bool TakeArrayEnd(Cursor* cursor, size_t elements, ArrayShape* shape);

// The parts of `interval` in microseconds, months counted as 30 days; and the justified parts back,
// false when out of range.
int128_t IntervalKey(std::string_view interval);
bool IntervalFromKey(int128_t micros, char* interval);  // 16 bytes

}  // namespace cellar::codec::internal
