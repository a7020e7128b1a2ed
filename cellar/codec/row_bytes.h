// The bytes of row values: format bytes, loads and stores, stored forms. Shared by the encoder and
// the decoders; private to this layer (docs/formats/row.md).
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "cellar/types/datum.h"
#include "cellar/types/type.h"

namespace cellar::codec::internal {

// Of the format byte: the low six bits say what the value is. Persisted; docs/formats/row.md lists
// them.
inline constexpr uint8_t kKindMask = 0x3F;
inline constexpr uint8_t kKindRow = 0x01;
inline constexpr uint8_t kKindPatch = 0x02;
inline constexpr uint8_t kKindCell = 0x03;
inline constexpr uint8_t kKindLongRow = 0x06;
inline constexpr uint8_t kFlagTrailer = 0x40;
inline constexpr uint8_t kFlagWide = 0x80;

// In a cell's type byte.
inline constexpr uint8_t kCellArray = 0x80;

template <typename T>
inline T Load(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <typename T>
inline void Store(T value, char* p) {
  std::memcpy(p, &value, sizeof value);
}

inline void AppendVarint(uint64_t v, std::string* out) {
  for (; v >= 0x80; v >>= 7) out->push_back(static_cast<char>(v | 0x80));
  out->push_back(static_cast<char>(v));
}

// A canonical varint of at most 32 bits.
inline bool TakeVarint(std::string_view* in, uint32_t* value) {
  uint64_t v = 0;
  for (size_t i = 0; i < 5 && i < in->size(); ++i) {
    auto b = static_cast<uint8_t>((*in)[i]);
    v |= uint64_t{b & 0x7FU} << (7 * i);
    if (b >= 0x80) continue;
    if (v > UINT32_MAX || (b == 0 && i > 0)) return false;
    *value = static_cast<uint32_t>(v);
    in->remove_prefix(i + 1);
    return true;
  }
  return false;
}

inline bool IsArrayType(Type type) {
  return type.array || type.id == TypeId::kInt2vector || type.id == TypeId::kOidvector;
}

// A value's bytes outside the fixed section: trailers and cells. Not NULL.
void AppendStored(Datum value, Type type, std::string* out);
// The other way; views into `bytes`. False when they are no such value.
bool ParseStored(std::string_view bytes, Type type, Datum* value);
// May values stored as `stored` be read as `wanted` as they are?
bool Fits(Type stored, Type wanted);

}  // namespace cellar::codec::internal
