// The table of types and what is derived from it: object ids, names, display names, physical forms.
#include "cellar/types/type.h"

#include <fmt/format.h>

#include <array>

#include "cellar/types/enum_type.h"

namespace cellar {
namespace {

struct TypeRow {
  TypeId id;
  uint32_t oid;
  uint32_t array_oid;  // 0: has no array type
  int16_t length;
  Physical physical;
  std::string_view name;     // pg_type.typname
  std::string_view display;  // format_type() without a modifier
};

// Values of oid and length: pg_type.dat of PostgreSQL 15.
constexpr TypeRow kRows[] = {
    {TypeId::kBool, 16, 1000, 1, Physical::kInt64, "bool", "boolean"},
    {TypeId::kInt2, 21, 1005, 2, Physical::kInt64, "int2", "smallint"},
    {TypeId::kInt4, 23, 1007, 4, Physical::kInt64, "int4", "integer"},
    {TypeId::kInt8, 20, 1016, 8, Physical::kInt64, "int8", "bigint"},
    {TypeId::kFloat4, 700, 1021, 4, Physical::kDouble, "float4", "real"},
    {TypeId::kFloat8, 701, 1022, 8, Physical::kDouble, "float8", "double precision"},
    {TypeId::kNumeric, 1700, 1231, -1, Physical::kBytes, "numeric", "numeric"},
    {TypeId::kText, 25, 1009, -1, Physical::kBytes, "text", "text"},
    {TypeId::kVarchar, 1043, 1015, -1, Physical::kBytes, "varchar", "character varying"},
    {TypeId::kBpchar, 1042, 1014, -1, Physical::kBytes, "bpchar", "character"},
    {TypeId::kBytea, 17, 1001, -1, Physical::kBytes, "bytea", "bytea"},
    {TypeId::kDate, 1082, 1182, 4, Physical::kInt64, "date", "date"},
    {TypeId::kTime, 1083, 1183, 8, Physical::kInt64, "time", "time without time zone"},
    {TypeId::kTimetz, 1266, 1270, 12, Physical::kBytes, "timetz", "time with time zone"},
    {TypeId::kTimestamp, 1114, 1115, 8, Physical::kInt64, "timestamp",
     "timestamp without time zone"},
    {TypeId::kTimestamptz, 1184, 1185, 8, Physical::kInt64, "timestamptz",
     "timestamp with time zone"},
    {TypeId::kInterval, 1186, 1187, 16, Physical::kBytes, "interval", "interval"},
    {TypeId::kUuid, 2950, 2951, 16, Physical::kBytes, "uuid", "uuid"},
    {TypeId::kJson, 114, 199, -1, Physical::kBytes, "json", "json"},
    {TypeId::kJsonb, 3802, 3807, -1, Physical::kBytes, "jsonb", "jsonb"},
    {TypeId::kOid, 26, 1028, 4, Physical::kInt64, "oid", "oid"},
    {TypeId::kName, 19, 1003, 64, Physical::kBytes, "name", "name"},
    {TypeId::kChar, 18, 1002, 1, Physical::kInt64, "char", "\"char\""},
    {TypeId::kRegclass, 2205, 2210, 4, Physical::kInt64, "regclass", "regclass"},
    {TypeId::kRegtype, 2206, 2211, 4, Physical::kInt64, "regtype", "regtype"},
    {TypeId::kRegproc, 24, 1008, 4, Physical::kInt64, "regproc", "regproc"},
    {TypeId::kRegnamespace, 4089, 4090, 4, Physical::kInt64, "regnamespace", "regnamespace"},
    {TypeId::kRegrole, 4096, 4097, 4, Physical::kInt64, "regrole", "regrole"},
    {TypeId::kInt2vector, 22, 1006, -1, Physical::kBytes, "int2vector", "int2vector"},
    {TypeId::kOidvector, 30, 1013, -1, Physical::kBytes, "oidvector", "oidvector"},
    {TypeId::kXid, 28, 1011, 4, Physical::kInt64, "xid", "xid"},
    {TypeId::kAclitem, 1033, 1034, 12, Physical::kBytes, "aclitem", "aclitem"},
    {TypeId::kPgNodeTree, 194, 0, -1, Physical::kBytes, "pg_node_tree", "pg_node_tree"},
    {TypeId::kEnum, 0, 0, 4, Physical::kInt64, "enum", "enum"},
    {TypeId::kUnknown, 705, 0, -2, Physical::kBytes, "unknown", "unknown"},
    {TypeId::kVoid, 2278, 0, 4, Physical::kBytes, "void", "void"},
    {TypeId::kRecord, 2249, 2287, -1, Physical::kBytes, "record", "record"},
    {TypeId::kAnyelement, 2283, 0, 4, Physical::kBytes, "anyelement", "anyelement"},
    {TypeId::kAnyarray, 2277, 0, -1, Physical::kBytes, "anyarray", "anyarray"},
    {TypeId::kAny, 2276, 0, 4, Physical::kBytes, "any", "\"any\""},
    {TypeId::kAnyenum, 3500, 0, 4, Physical::kInt64, "anyenum", "anyenum"},
};
constexpr TypeRow kInvalidRow = {TypeId::kInvalid, 0, 0, -1, Physical::kBytes, "invalid", "???"};

constexpr size_t kNumIds = 107;
constexpr std::array<uint8_t, kNumIds> MakeIndex() {
  std::array<uint8_t, kNumIds> index{};
  for (uint8_t& entry : index) entry = 0xFF;
  for (size_t i = 0; i < std::size(kRows); ++i) {
    index[static_cast<size_t>(kRows[i].id)] = static_cast<uint8_t>(i);
  }
  return index;
}
constexpr std::array<uint8_t, kNumIds> kIndex = MakeIndex();

const TypeRow& RowOf(TypeId id) {
  size_t i = static_cast<size_t>(id);
  if (i >= kNumIds || kIndex[i] == 0xFF) return kInvalidRow;
  return kRows[kIndex[i]];
}

// Other spellings that the SQL grammar or users write.
struct Alias {
  std::string_view name;
  TypeId id;
};
constexpr Alias kAliases[] = {
    {"int", TypeId::kInt4},
    {"decimal", TypeId::kNumeric},
    {"dec", TypeId::kNumeric},
    {"float", TypeId::kFloat8},
    {"time with time zone", TypeId::kTimetz},
    {"time", TypeId::kTime},
    {"char varying", TypeId::kVarchar},
    {"national character varying", TypeId::kVarchar},
    {"national character", TypeId::kBpchar},
    {"nchar", TypeId::kBpchar},
};

// Bits of an interval's field mask: 1 << the field's number in PostgreSQL's datetime.h.
constexpr int kMonthBit = 1 << 1, kYearBit = 1 << 2, kDayBit = 1 << 3, kHourBit = 1 << 10,
              kMinuteBit = 1 << 11, kSecondBit = 1 << 12;

std::string_view IntervalFields(int range) {
  switch (range) {
    case kYearBit: return " year";
    case kMonthBit: return " month";
    case kDayBit: return " day";
    case kHourBit: return " hour";
    case kMinuteBit: return " minute";
    case kSecondBit: return " second";
    case kYearBit | kMonthBit: return " year to month";
    case kDayBit | kHourBit: return " day to hour";
    case kDayBit | kHourBit | kMinuteBit: return " day to minute";
    case kDayBit | kHourBit | kMinuteBit | kSecondBit: return " day to second";
    case kHourBit | kMinuteBit: return " hour to minute";
    case kHourBit | kMinuteBit | kSecondBit: return " hour to second";
    case kMinuteBit | kSecondBit: return " minute to second";
    default: return "";
  }
}

// As SQL text names it: quoted unless it is a plain word.
std::string Quoted(const std::string& name) {
  const bool plain =
      !name.empty() && (name[0] < '0' || name[0] > '9') && name[0] != '$' &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_$") == std::string::npos;
  if (plain) return name;
  std::string out = "\"";
  for (char c : name) {
    if (c == '"') out += c;
    out += c;
  }
  return out + "\"";
}

std::string FormatElement(Type type) {
  if (type.enumeration != nullptr) return Quoted(type.enumeration->name);
  const TypeRow& row = RowOf(type.id);
  const int32_t modifier = type.modifier;
  if (modifier < 0) {
    // "character" alone would read back as character(1).
    return std::string(type.id == TypeId::kBpchar ? row.name : row.display);
  }
  switch (type.id) {
    case TypeId::kVarchar:
    case TypeId::kBpchar:
      if (modifier >= 4) return fmt::format("{}({})", row.display, modifier - 4);
      break;
    case TypeId::kNumeric:
      if (modifier >= 4) {
        int precision = ((modifier - 4) >> 16) & 0xFFFF;
        int scale = (((modifier - 4) & 0x7FF) ^ 1024) - 1024;
        return fmt::format("numeric({},{})", precision, scale);
      }
      break;
    case TypeId::kTime: return fmt::format("time({}) without time zone", modifier);
    case TypeId::kTimetz: return fmt::format("time({}) with time zone", modifier);
    case TypeId::kTimestamp: return fmt::format("timestamp({}) without time zone", modifier);
    case TypeId::kTimestamptz: return fmt::format("timestamp({}) with time zone", modifier);
    case TypeId::kInterval: {
      int precision = modifier & 0xFFFF;
      std::string out = fmt::format("interval{}", IntervalFields((modifier >> 16) & 0x7FFF));
      if (precision != 0xFFFF) out += fmt::format("({})", precision);
      return out;
    }
    default: break;
  }
  return std::string(row.display);
}

}  // namespace

Physical PhysicalOf(Type type) { return type.array ? Physical::kBytes : RowOf(type.id).physical; }

bool IsInteger(Type type) {
  return !type.array &&
         (type.id == TypeId::kInt2 || type.id == TypeId::kInt4 || type.id == TypeId::kInt8);
}

bool IsNumber(Type type) {
  return IsInteger(type) ||
         (!type.array && (type.id == TypeId::kFloat4 || type.id == TypeId::kFloat8 ||
                          type.id == TypeId::kNumeric));
}

bool IsString(Type type) {
  if (type.array) return false;
  switch (type.id) {
    case TypeId::kText:
    case TypeId::kVarchar:
    case TypeId::kBpchar:
    case TypeId::kName:
    case TypeId::kUnknown: return true;
    default: return false;
  }
}

bool IsCollatable(Type type) { return type.id != TypeId::kUnknown && IsString(ScalarOf(type)); }

bool IsDateTime(Type type) {
  return !type.array && type.id >= TypeId::kDate && type.id <= TypeId::kInterval;
}

bool IsStorable(Type type) {
  if (type.id == TypeId::kInvalid || type.id >= TypeId::kUnknown) return false;
  const TypeRow& row = RowOf(type.id);
  if (row.id == TypeId::kInvalid) return false;
  if (type.id == TypeId::kEnum) return type.enumeration != nullptr;
  return !type.array || row.array_oid != 0;
}

bool Type::SameEnumeration(const Type& other) const {
  return enumeration != nullptr && other.enumeration != nullptr &&
         enumeration->oid == other.enumeration->oid;
}

uint32_t OidOf(Type type) {
  if (type.enumeration != nullptr) {
    return type.array ? type.enumeration->array_oid : type.enumeration->oid;
  }
  const TypeRow& row = RowOf(type.id);
  return type.array ? row.array_oid : row.oid;
}

std::optional<Type> TypeFromOid(uint32_t oid, int32_t modifier) {
  if (oid == 0) return std::nullopt;
  for (const TypeRow& row : kRows) {
    if (row.oid == oid) return Type{row.id, false, modifier};
    if (row.array_oid == oid) return Type{row.id, true, modifier};
  }
  return std::nullopt;
}

std::string TypeName(Type type) {
  if (type.enumeration != nullptr) {
    return type.array ? fmt::format("_{}", type.enumeration->name) : type.enumeration->name;
  }
  const TypeRow& row = RowOf(type.id);
  return type.array ? fmt::format("_{}", row.name) : std::string(row.name);
}

int16_t TypeLength(Type type) { return type.array ? int16_t{-1} : RowOf(type.id).length; }

std::string FormatType(Type type) {
  if (!type.array) return FormatElement(type);
  type.array = false;
  return FormatElement(type) + "[]";
}

std::optional<Type> TypeFromName(std::string_view name) {
  bool array = false;
  if (name.size() > 2 && name.ends_with("[]")) {
    array = true;
    name.remove_suffix(2);
  } else if (name.size() > 1 && name[0] == '_') {
    array = true;
    name.remove_prefix(1);
  }
  for (const TypeRow& row : kRows) {
    if (row.id == TypeId::kEnum) continue;  // no type of its own
    if (row.name == name || row.display == name) return Type{row.id, array, -1};
  }
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return Type{alias.id, array, -1};
  }
  return std::nullopt;
}

}  // namespace cellar
