// Enumerations (CREATE TYPE .. AS ENUM): what a Type of kEnum points to.
//
// A value lies in memory and in the store as its label's code, an int64 (Physical::kInt64). Codes
// ascend with the labels' order and keep wide gaps, so that a label can come between two others
// and values compare, hash and order as integers. Renaming a label changes no value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/types/type.h"

namespace cellar {

struct EnumLabel {
  int64_t code = 0;
  uint32_t oid = 0;  // pg_enum.oid
  std::string name;
  bool operator==(const EnumLabel&) const = default;
};

// A label of a new type at position i, from 0, has the code (i + 1) * kEnumCodeGap.
inline constexpr int64_t kEnumCodeGap = int64_t{1} << 32;
// Bytes of a label at most, as in PostgreSQL.
inline constexpr size_t kMaxEnumLabelBytes = 63;

// Immutable once interned.
struct EnumType {
  uint32_t oid = 0;        // pg_type.oid; two definitions of one oid are versions of one type
  uint32_t array_oid = 0;  // of its array type
  std::string name;
  std::vector<EnumLabel> labels;  // by code, ascending

  // Null when there is none. Cost: O(log labels), O(labels).
  const EnumLabel* FindCode(int64_t code) const;
  const EnumLabel* FindName(std::string_view label) const;
  bool operator==(const EnumType&) const = default;
};

// The one instance of this content: kept until the process ends, so that types may point to it
// freely. Each version of a definition that was ever loaded stays; a version has some tens of bytes
// a label. Thread-safe.
const EnumType* Intern(EnumType definition);

inline Type MakeEnum(const EnumType* definition, bool array = false) {
  return Type{TypeId::kEnum, array, -1, definition};
}

// 22P02 'invalid input value for enum mood: "x"'.
Result<int64_t> ParseEnum(std::string_view label, Type type);
// The label, or the code's digits when the type has no such code.
void AppendEnum(int64_t code, Type type, std::string* out);

// A code for a label at this position among `labels`: below all, above all, or in the middle of two
// neighbours; nullopt when there is no room, after 32 times between the same two at least.
std::optional<int64_t> NextEnumCode(const std::vector<EnumLabel>& labels, size_t position);

}  // namespace cellar
