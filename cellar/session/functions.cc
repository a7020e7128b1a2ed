// What SQL functions ask of the session: identity, settings, sequences, object names.
#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"
#include "cellar/session/session_internal.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::session {

std::vector<std::string> Session::Impl::CurrentSchemas(bool implicit) {
  std::vector<std::string> schemas;
  if (implicit) {
    if (temporary_namespace.value != 0) schemas.push_back(SchemaName(temporary_namespace));
    schemas.push_back("pg_catalog");
  }
  for (const std::string& schema : Scope().search_path) {
    if (schema == "pg_catalog" && implicit) continue;
    if (sql::FindSchema(*CurrentCatalog(), Scope(), schema) || db->system.HasSchema(schema))
      schemas.push_back(schema);
  }
  return schemas;
}

Result<std::string> Session::Impl::GetSetting(std::string_view name, bool missing_ok,
                                              bool* missing) {
  *missing = false;
  std::optional<std::string> value = settings.Get(name);
  if (value) return *value;
  if (missing_ok) {
    *missing = true;
    return std::string();
  }
  return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                  "unrecognized configuration parameter \"{}\"", name);
}

Result<std::string> Session::Impl::SetSetting(std::string_view name, std::string_view value,
                                              bool local) {
  if (name == "role" || name == "session_authorization") CELLAR_TRY(CheckRoleSetting(name, value));
  CELLAR_TRY(settings.Set(name, value, local));
  return *settings.Get(name);
}

std::string Session::Impl::SchemaName(catalog::NamespaceId id) {
  if (id == database_id) return "public";
  catalog::NamespacePtr space = CurrentCatalog()->GetNamespace(id);
  return space == nullptr ? "" : space->name;
}

std::string Session::Impl::QualifiedName(const catalog::TableDescriptor& table) {
  catalog::TablePtr visible = sql::FindRelation(*CurrentCatalog(), Scope(), "", table.name);
  if (visible != nullptr && visible->id == table.id) return sql::QuoteIdentifier(table.name);
  return sql::QuoteQualified(SchemaName(table.parent), table.name);
}

// ---- Sequences
// --------------------------------------------------------------------------------------------

namespace {

Result<catalog::TablePtr> FindSequence(Session::Impl& session, uint32_t oid) {
  catalog::TablePtr sequence = session.CurrentCatalog()->GetTableByOid(oid);
  if (sequence == nullptr) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedTable,
                    "relation with OID {} does not exist", oid);
  }
  if (sequence->kind != catalog::RelationKind::kSequence) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a sequence",
                    sequence->name);
  }
  return sequence;
}

}  // namespace

Result<int64_t> Session::Impl::NextValue(uint32_t oid) {
  CELLAR_TRY_ASSIGN(catalog::TablePtr sequence, FindSequence(*this, oid));
  CELLAR_TRY(CheckSequence(*sequence, kUsage | kUpdate));
  CELLAR_TRY(CheckWritable("nextval()"));
  CELLAR_TRY_ASSIGN(int64_t value, db->sequences->Next(*sequence));
  sequence_values[oid] = value;
  last_sequence = oid;
  return value;
}

Result<int64_t> Session::Impl::CurrentValue(uint32_t oid) {
  CELLAR_TRY_ASSIGN(catalog::TablePtr sequence, FindSequence(*this, oid));
  CELLAR_TRY(CheckTable(*sequence, kUsage | kSelect));
  auto at = sequence_values.find(oid);
  if (at == sequence_values.end()) {
    return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                    "currval of sequence \"{}\" is not yet defined in this session",
                    sequence->name);
  }
  return at->second;
}

Result<int64_t> Session::Impl::LastValue() {
  if (!last_sequence) {
    return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                    "lastval is not yet defined in this session");
  }
  return CurrentValue(*last_sequence);
}

Result<int64_t> Session::Impl::SetValue(uint32_t oid, int64_t value, bool called) {
  CELLAR_TRY_ASSIGN(catalog::TablePtr sequence, FindSequence(*this, oid));
  CELLAR_TRY(CheckTable(*sequence, kUpdate));
  CELLAR_TRY(CheckWritable("setval()"));
  CELLAR_TRY(db->sequences->Set(*sequence, value, called));
  if (called) sequence_values[oid] = value;
  return value;
}

// ---- Object names
// -----------------------------------------------------------------------------------------

namespace {

// Splits "a.b" with double quotes into parts, lower-casing what is not quoted.
Result<std::vector<std::string>> SplitName(std::string_view text) {
  std::vector<std::string> parts;
  size_t i = 0;
  auto bad = [text]() {
    return SqlError(Code::kInvalid, sqlstate::kInvalidName, "invalid name syntax: \"{}\"", text);
  };
  while (true) {
    std::string part;
    while (i < text.size() && text[i] == ' ') ++i;
    if (i < text.size() && text[i] == '"') {
      ++i;
      while (true) {
        if (i >= text.size()) return bad();
        if (text[i] == '"') {
          if (i + 1 < text.size() && text[i + 1] == '"') {
            part += '"';
            i += 2;
            continue;
          }
          ++i;
          break;
        }
        part += text[i++];
      }
    } else {
      while (i < text.size() && text[i] != '.') {
        char c = text[i++];
        part += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
      }
      while (!part.empty() && part.back() == ' ') part.pop_back();
    }
    if (part.empty()) return bad();
    parts.push_back(std::move(part));
    while (i < text.size() && text[i] == ' ') ++i;
    if (i >= text.size()) return parts;
    if (text[i] != '.') return bad();
    ++i;
  }
}

// Input, output, receive and send functions of types, which catalogs and clients name.
struct TypeFunction {
  uint32_t oid;
  const char* name;
};
constexpr TypeFunction kTypeFunctions[] = {
    {750, "array_in"},        {751, "array_out"},    {2400, "array_recv"}, {2401, "array_send"},
    {1242, "boolin"},         {1244, "byteain"},     {1245, "charin"},     {34, "namein"},
    {460, "int8in"},          {38, "int2in"},        {42, "int4in"},       {46, "textin"},
    {200, "float4in"},        {214, "float8in"},     {1044, "bpcharin"},   {1046, "varcharin"},
    {1084, "date_in"},        {1143, "time_in"},     {1350, "timetz_in"},  {1312, "timestamp_in"},
    {1150, "timestamptz_in"}, {1160, "interval_in"}, {1701, "numeric_in"}, {2952, "uuid_in"},
    {321, "json_in"},         {3806, "jsonb_in"},    {1798, "oidin"},      {40, "int2vectorin"},
    {54, "oidvectorin"},      {2218, "regclassin"},  {2220, "regtypein"},  {44, "regprocin"},
    {2290, "record_in"},      {3504, "enum_in"},     {3507, "enum_out"},   {3532, "enum_recv"},
    {3533, "enum_send"}};

}  // namespace

uint32_t TypeInputFunction(Type type) {
  if (type.array) return 750;
  std::string name = TypeName(type);
  for (const TypeFunction& function : kTypeFunctions) {
    const std::string_view candidate = function.name;
    if (candidate == name + "in" || candidate == name + "_in") return function.oid;
  }
  return 46;
}

Result<uint32_t> Session::Impl::LookupReg(TypeId kind, std::string_view name) {
  if (name == "-") return 0u;
  if (!name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos) {
    uint32_t oid = 0;
    std::from_chars(name.data(), name.data() + name.size(), oid);
    return oid;
  }
  switch (kind) {
    case TypeId::kRegclass: {
      CELLAR_TRY_ASSIGN(std::vector<std::string> parts, SplitName(name));
      if (parts.size() == 3) parts.erase(parts.begin());  // the database, which must be this one
      const std::string schema = parts.size() > 1 ? parts[0] : "";
      const std::string& relation = parts.back();
      CELLAR_TRY(sql::CheckSchemaUse(*CurrentCatalog(), Scope(), schema));
      if (schema.empty() || db->system.HasSchema(schema)) {
        const sql::VirtualTable* table =
            db->system.Find(schema.empty() ? "pg_catalog" : schema, relation);
        if (table != nullptr) return table->oid;
      }
      catalog::TablePtr table = sql::FindRelation(*CurrentCatalog(), Scope(), schema, relation);
      if (table != nullptr) return table->oid();
      std::vector<std::string> schemas =
          schema.empty() ? Scope().search_path : std::vector<std::string>{schema};
      if (schema.empty() && temporary_namespace.value != 0)
        schemas.insert(schemas.begin(), "pg_temp");
      for (const std::string& candidate : schemas) {
        std::optional<catalog::NamespaceId> space =
            sql::FindSchema(*CurrentCatalog(), Scope(), candidate);
        const catalog::IndexDescriptor* index = nullptr;
        if (space && CurrentCatalog()->FindTableOfIndex(*space, relation, &index) != nullptr)
          return index->oid;
      }
      if (!schema.empty() && !sql::FindSchema(*CurrentCatalog(), Scope(), schema) &&
          !db->system.HasSchema(schema)) {
        return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName,
                        "schema \"{}\" does not exist", schema);
      }
      return SqlError(Code::kNotFound, sqlstate::kUndefinedTable, "relation \"{}\" does not exist",
                      name);
    }
    case TypeId::kRegtype: {
      Result<ast::TypeName> parsed = sql::ParseTypeName(name);
      if (!parsed.ok()) return parsed.status();
      int serial = 0;
      CELLAR_TRY_ASSIGN(Type type, TypeNamed(*parsed, &serial));
      return OidOf(type);
    }
    case TypeId::kRegnamespace: {
      CELLAR_TRY_ASSIGN(std::vector<std::string> parts, SplitName(name));
      if (parts[0] == "pg_catalog") return 11u;
      if (parts[0] == "information_schema") return 13000u;
      std::optional<catalog::NamespaceId> space =
          sql::FindSchema(*CurrentCatalog(), Scope(), parts[0]);
      if (!space) {
        return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName,
                        "schema \"{}\" does not exist", parts[0]);
      }
      return NamespaceOid(*space);
    }
    case TypeId::kRegrole: {
      CELLAR_TRY_ASSIGN(std::vector<std::string> parts, SplitName(name));
      const Role* role = Roles().Find(parts[0]);
      if (role == nullptr)
        return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "role \"{}\" does not exist",
                        parts[0]);
      return role->oid;
    }
    case TypeId::kRegproc: {
      CELLAR_TRY_ASSIGN(std::vector<std::string> parts, SplitName(name));
      for (const TypeFunction& function : kTypeFunctions) {
        if (parts.back() == function.name) return function.oid;
      }
      for (const sql::FunctionSpec& function : sql::AllFunctions()) {
        if (function.name == parts.back()) return FunctionOid(function);
      }
      return SqlError(Code::kNotFound, sqlstate::kUndefinedFunction,
                      "function \"{}\" does not exist", name);
    }
    default: return InternalError("no lookup of this kind of object");
  }
}

std::string Session::Impl::PrintReg(TypeId kind, uint32_t oid) {
  if (oid == 0) return "-";
  switch (kind) {
    case TypeId::kRegclass: {
      if (catalog::TablePtr table = CurrentCatalog()->GetTableByOid(oid))
        return QualifiedName(*table);
      const catalog::IndexDescriptor* index = nullptr;
      if (catalog::TablePtr table = CurrentCatalog()->FindTableOfIndexOid(oid, &index)) {
        catalog::TablePtr visible = sql::FindRelation(*CurrentCatalog(), Scope(), "", table->name);
        if (visible != nullptr && visible->id == table->id)
          return sql::QuoteIdentifier(index->name);
        return sql::QuoteQualified(SchemaName(table->parent), index->name);
      }
      for (const sql::VirtualTable* table : db->system.All()) {
        if (table->oid != oid) continue;
        return table->schema == "pg_catalog" ? table->name
                                             : sql::QuoteQualified(table->schema, table->name);
      }
      break;
    }
    case TypeId::kRegtype:
      if (std::optional<Type> type = TypeFromOid(oid)) {
        if (type->id == TypeId::kBpchar) return type->array ? "character[]" : "character";
        return FormatType(*type);
      }
      if (catalog::TablePtr made = CurrentCatalog()->GetTypeByOid(oid)) {
        const Type type = MakeEnum(made->enumeration, made->enumeration->array_oid == oid);
        catalog::TablePtr visible = sql::FindType(*CurrentCatalog(), Scope(), "", made->name);
        if (visible != nullptr && visible->id == made->id) return NameInSql(type);
        return sql::QuoteIdentifier(SchemaName(made->parent)) + "." + NameInSql(type);
      }
      break;
    case TypeId::kRegnamespace:
      if (oid == 11) return "pg_catalog";
      if (oid == 13000) return "information_schema";
      if (oid == NamespaceOid(database_id)) return "public";
      for (const catalog::NamespacePtr& space : CurrentCatalog()->ListNamespaces(database_id)) {
        if (space->oid() == oid) return sql::QuoteIdentifier(space->name);
      }
      break;
    case TypeId::kRegrole:
      if (const Role* role = Roles().FindByOid(oid)) return sql::QuoteIdentifier(role->name);
      break;
    case TypeId::kRegproc:
      for (const TypeFunction& function : kTypeFunctions) {
        if (oid == function.oid) return function.name;
      }
      for (const sql::FunctionSpec& function : sql::AllFunctions()) {
        if (FunctionOid(function) == oid) return std::string(function.name);
      }
      break;
    default: break;
  }
  return fmt::format("{}", oid);
}

uint32_t Session::Impl::NamespaceOid(catalog::NamespaceId id) const {
  // PostgreSQL's own oid of "public", which tools know.
  constexpr uint32_t kPublicOid = 2200;
  return id == database_id ? kPublicOid
                           : static_cast<uint32_t>(id.value) + catalog::TableDescriptor::kFirstOid;
}

uint32_t FunctionOid(const sql::FunctionSpec& function) {
  // Functions without a well-known oid are numbered by their place in the registry, below user
  // objects.
  constexpr uint32_t kFirst = 8000;
  if (function.oid != 0) return function.oid;
  return kFirst + static_cast<uint32_t>(&function - sql::AllFunctions().data());
}

}  // namespace cellar::session
