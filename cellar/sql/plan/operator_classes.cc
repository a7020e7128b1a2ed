#include "cellar/sql/plan/operator_classes.h"

#include <algorithm>
#include <array>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::sql {

namespace {

// All of text's order by bytes, so the pattern classes are what the default one is.
constexpr std::array<OperatorClass, 31> kClasses = {{
    {"text_ops", TypeId::kText, false, true},
    {"varchar_ops", TypeId::kText, false, false},
    {"bpchar_ops", TypeId::kBpchar, false, true},
    {"text_pattern_ops", TypeId::kText, false, false},
    {"varchar_pattern_ops", TypeId::kText, false, false},
    {"bpchar_pattern_ops", TypeId::kBpchar, false, false},
    {"bool_ops", TypeId::kBool, false, true},
    {"int2_ops", TypeId::kInt2, false, true},
    {"int4_ops", TypeId::kInt4, false, true},
    {"int8_ops", TypeId::kInt8, false, true},
    {"float4_ops", TypeId::kFloat4, false, true},
    {"float8_ops", TypeId::kFloat8, false, true},
    {"numeric_ops", TypeId::kNumeric, false, true},
    {"bytea_ops", TypeId::kBytea, false, true},
    {"date_ops", TypeId::kDate, false, true},
    {"time_ops", TypeId::kTime, false, true},
    {"timetz_ops", TypeId::kTimetz, false, true},
    {"timestamp_ops", TypeId::kTimestamp, false, true},
    {"timestamptz_ops", TypeId::kTimestamptz, false, true},
    {"interval_ops", TypeId::kInterval, false, true},
    {"uuid_ops", TypeId::kUuid, false, true},
    {"oid_ops", TypeId::kOid, false, true},
    {"name_ops", TypeId::kName, false, true},
    {"char_ops", TypeId::kChar, false, true},
    {"array_ops", TypeId::kAnyarray, true, true},
    {"oidvector_ops", TypeId::kOidvector, false, true},
    {"jsonb_ops", TypeId::kJsonb, false, true},
    {"record_ops", TypeId::kRecord, false, true},
    {"xid8_ops", TypeId::kXid, false, false},
    {"cidr_ops", TypeId::kInvalid, false, false},
    {"enum_ops", TypeId::kEnum, false, true},
}};

bool Accepts(const OperatorClass& of, Type type) {
  if (of.array) return type.array;
  if (type.array) return false;
  const auto textual = [](TypeId id) { return id == TypeId::kText || id == TypeId::kVarchar; };
  if (textual(of.type) || of.type == TypeId::kBpchar) {
    return textual(type.id) || (of.type == TypeId::kBpchar && type.id == TypeId::kBpchar);
  }
  return of.type == type.id;
}

}  // namespace

std::span<const OperatorClass> OperatorClasses() { return kClasses; }

std::string_view DefaultOperatorClass(Type type) {
  if (type.array) return "array_ops";
  if (type.id == TypeId::kVarchar) return "text_ops";
  for (const OperatorClass& one : kClasses) {
    if (one.is_default && one.type == type.id) return one.name;
  }
  return "";
}

Status CheckOperatorClass(const ast::QualifiedName& name) {
  const bool known = std::any_of(kClasses.begin(), kClasses.end(),
                                 [&](const OperatorClass& one) { return one.name == name.name; });
  if (known && (name.schema.empty() || name.schema == "pg_catalog")) return Status();
  return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                  "operator class \"{}\" does not exist for access method \"btree\"",
                  QuoteQualified(name.schema, name.name));
}

bool IsOperatorClass(std::string_view name, std::string_view of_part, Type type) {
  // Two names of one class of text each.
  const auto canonical = [](std::string_view one) -> std::string_view {
    if (one == "varchar_ops") return "text_ops";
    return one == "varchar_pattern_ops" ? "text_pattern_ops" : one;
  };
  return canonical(name) == canonical(of_part.empty() ? DefaultOperatorClass(type) : of_part);
}

Result<std::string> ResolveOperatorClass(const ast::QualifiedName& name, Type type) {
  CELLAR_TRY(CheckOperatorClass(name));
  const auto at = std::find_if(kClasses.begin(), kClasses.end(),
                               [&](const OperatorClass& one) { return one.name == name.name; });
  if (!Accepts(*at, type)) {
    return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                    "operator class \"{}\" does not accept data type {}", name.name,
                    FormatType(Plain(type)));
  }
  if (at->name == DefaultOperatorClass(type)) return std::string();
  return std::string(at->name);
}

}  // namespace cellar::sql
