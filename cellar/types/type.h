// Logical types: what a column or expression is, and how its values lie in memory.
//
// Only three physical forms exist (Physical), so that operators and codecs have
// three cases, not thirty. TypeId values are persisted in descriptors and keys'
// goldens: never renumber, never reuse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cellar/base/status.h"

namespace cellar {

enum class TypeId : uint8_t {
  kInvalid = 0,
  kBool = 1,
  kInt2 = 2,
  kInt4 = 3,
  kInt8 = 4,
  kFloat4 = 5,
  kFloat8 = 6,
  kNumeric = 7,
  kText = 8,
  kVarchar = 9,
  kBpchar = 10,  // char(n), blank padded; stored without the padding
  kBytea = 11,
  kDate = 12,
  kTime = 13,
  kTimetz = 14,
  kTimestamp = 15,
  kTimestamptz = 16,
  kInterval = 17,
  kUuid = 18,
  kJson = 19,
  kJsonb = 20,
  // Types of catalog columns.
  kOid = 40,
  kName = 41,
  kChar = 42,  // "char": one byte
  kRegclass = 43,
  kRegtype = 44,
  kRegproc = 45,
  kRegnamespace = 46,
  kRegrole = 47,
  kInt2vector = 48,
  kOidvector = 49,
  kXid = 50,
  kAclitem = 51,
  kPgNodeTree = 52,
  kEnum = 60,  // Type::enumeration says which
  // Only in expressions, never stored.
  kUnknown = 100,  // an untyped literal or parameter
  kVoid = 101,
  kRecord = 102,
  kAnyelement = 103,  // in function signatures
  kAnyarray = 104,
  kAny = 105,
  kAnyenum = 106,
};

// How a value lies in a Datum or a ColumnVector.
enum class Physical : uint8_t {
  kInt64,   // bool (0/1), int2/4/8, oid, reg*, "char" (byte value), date (days since 2000-01-01),
            // time, timestamp, timestamptz (microseconds since midnight / 2000-01-01 UTC), enums
            // (types/enum_type.h)
  kDouble,  // float4 (rounded to float), float8
  kBytes,   // text, varchar, bpchar, name, unknown: UTF-8. bytea: raw. uuid: 16 bytes.
            // numeric: types/numeric.h. interval, timetz: types/datetime.h. arrays: types/array.h.
};

struct EnumType;   // types/enum_type.h
struct Collation;  // types/collation.h

struct Type {
  TypeId id = TypeId::kInvalid;
  bool array = false;     // an array of `id`
  int32_t modifier = -1;  // PostgreSQL's atttypmod: varchar(n) is n + 4; numeric(p,s) is ((p << 16)
                          // | s) + 4; time/timestamp/interval precision p is p; -1 is none
  // Of kEnum: its definition, interned. Versions of one definition make the same type.
  const EnumType* enumeration = nullptr;
  // Of text, and of arrays of it: how it compares, interned; null: by bytes. Types that differ in
  // it alone are the same type.
  const Collation* collation = nullptr;

  bool operator==(const Type& other) const { return SameKind(other) && modifier == other.modifier; }
  // Equal but for the modifier.
  bool SameKind(const Type& other) const {
    return id == other.id && array == other.array &&
           (enumeration == other.enumeration || SameEnumeration(other));
  }

 private:
  bool SameEnumeration(const Type& other) const;
};

constexpr Type MakeType(TypeId id, int32_t modifier = -1) { return Type{id, false, modifier}; }
constexpr Type ArrayOf(TypeId id) { return Type{id, true, -1}; }
// The array type of an element, int2[] for int2; an array stays what it is.
constexpr Type ArrayOf(const Type& element) {
  return Type{element.id, true, -1, element.enumeration, element.collation};
}
// The type without its modifier.
constexpr Type Plain(Type type) {
  type.modifier = -1;
  return type;
}
// An array's element; the type itself otherwise. Without a modifier.
constexpr Type ScalarOf(Type type) {
  type.array = false;
  type.modifier = -1;
  return type;
}

Physical PhysicalOf(Type type);
bool IsInteger(Type type);     // int2, int4, int8
bool IsNumber(Type type);      // integers, floats, numeric
bool IsString(Type type);      // text, varchar, bpchar, name, unknown
bool IsDateTime(Type type);    // date, time, timetz, timestamp, timestamptz, interval
bool IsCollatable(Type type);  // strings but for unknown ones, and arrays of them
// The type, compared by bytes.
constexpr Type WithoutCollation(Type type) {
  type.collation = nullptr;
  return type;
}
// May a column of a user table have this type?
bool IsStorable(Type type);

// PostgreSQL's object id of the type (int4 is 23, _int4 is 1007), and back; nullopt for an unknown
// id. Enums have theirs in the catalog: OidOf knows it, TypeFromOid does not.
uint32_t OidOf(Type type);
std::optional<Type> TypeFromOid(uint32_t oid, int32_t modifier = -1);
// pg_type.typname ("int4", "_int4", "bpchar") and typlen (-1 for variable, -2 never).
std::string TypeName(Type type);
int16_t TypeLength(Type type);
// format_type(): "integer", "character varying(30)", "numeric(10,2)", "timestamp with time zone",
// "integer[]".
std::string FormatType(Type type);
// From a name as PostgreSQL's grammar hands it on ("int4", "varchar", "timestamptz", "bool",
// "text") or a display name; no modifier. nullopt if unknown.
std::optional<Type> TypeFromName(std::string_view name);

}  // namespace cellar
