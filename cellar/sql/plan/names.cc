// Names of relations, schemas and types.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/catalog/unreadable.h"
#include "cellar/sql/plan/planner.h"

namespace cellar::sql {

std::optional<catalog::NamespaceId> FindSchema(const catalog::CatalogSnapshot& catalog,
                                               const NameScope& scope, std::string_view schema) {
  if (schema == "public") return scope.database;
  if (schema == "pg_temp") {
    if (scope.temporary.value == 0) return std::nullopt;
    return scope.temporary;
  }
  catalog::NamespacePtr found = catalog.FindNamespace(scope.database, schema);
  if (found == nullptr) return std::nullopt;
  return found->id;
}

namespace {

// Is the name in a schema that cannot be looked into, or that of something unreadable? Then what is
// farther along the path is not what was meant.
bool IsHidden(const catalog::CatalogSnapshot& catalog, const NameScope& scope,
              const std::string& schema, std::string_view name) {
  std::optional<catalog::NamespaceId> space = FindSchema(catalog, scope, schema);
  if (!space.has_value()) {
    const uint64_t id =
        catalog::FindUnreadable(catalog, scope.database, schema, catalog::NameKind::kNamespace);
    if (id == 0) return false;
    space = catalog::NamespaceId{id};
    if (catalog.FindTable(*space, name) != nullptr || catalog.FindType(*space, name) != nullptr ||
        catalog.FindCollation(*space, name) != nullptr) {
      return true;
    }
  }
  return catalog::FindUnreadable(catalog, *space, name, catalog::NameKind::kRelation) != 0;
}

// The first that `find` finds in the schema named, or along the search path.
template <typename Find>
catalog::TablePtr FindAlong(const catalog::CatalogSnapshot& catalog, const NameScope& scope,
                            std::string_view schema, std::string_view name, Find&& find) {
  if (!schema.empty()) {
    std::optional<catalog::NamespaceId> space = FindSchema(catalog, scope, schema);
    return space.has_value() ? find(*space) : nullptr;
  }
  if (scope.temporary.value != 0) {
    if (catalog::TablePtr found = find(scope.temporary)) return found;
  }
  const bool damaged = catalog::HasUnreadable(catalog);
  for (const std::string& entry : scope.search_path) {
    std::optional<catalog::NamespaceId> space = FindSchema(catalog, scope, entry);
    catalog::TablePtr found = space.has_value() ? find(*space) : nullptr;
    if (found != nullptr) return found;
    if (damaged && IsHidden(catalog, scope, entry, name)) return nullptr;
  }
  return nullptr;
}

}  // namespace

catalog::TablePtr FindRelation(const catalog::CatalogSnapshot& catalog, const NameScope& scope,
                               std::string_view schema, std::string_view name) {
  return FindAlong(catalog, scope, schema, name,
                   [&](catalog::NamespaceId space) { return catalog.FindTable(space, name); });
}

catalog::TablePtr FindType(const catalog::CatalogSnapshot& catalog, const NameScope& scope,
                           std::string_view schema, std::string_view name) {
  return FindAlong(catalog, scope, schema, name,
                   [&](catalog::NamespaceId space) { return catalog.FindType(space, name); });
}

catalog::TablePtr FindCollation(const catalog::CatalogSnapshot& catalog, const NameScope& scope,
                                std::string_view schema, std::string_view name) {
  return FindAlong(catalog, scope, schema, name,
                   [&](catalog::NamespaceId space) { return catalog.FindCollation(space, name); });
}

Result<const Collation*> ResolveCollation(const ast::QualifiedName& name,
                                          const catalog::CatalogSnapshot* catalog,
                                          const NameScope* scope) {
  if (name.schema.empty() || name.schema == "pg_catalog") {
    static constexpr std::string_view kByBytes[] = {"C", "POSIX", "ucs_basic", "default"};
    if (std::find(std::begin(kByBytes), std::end(kByBytes), name.name) != std::end(kByBytes)) {
      return nullptr;
    }
    const Collation* built_in = FindBuiltInCollation(name.name);
    if (built_in != nullptr) return built_in;
  }
  if (catalog != nullptr && scope != nullptr) {
    const catalog::TablePtr made = FindCollation(*catalog, *scope, name.schema, name.name);
    if (made != nullptr) return made->collation;
  }
  return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                  "collation \"{}{}{}\" for encoding \"UTF8\" does not exist", name.schema,
                  name.schema.empty() ? "" : ".", name.name);
}

std::optional<Type> TypeOfOid(const catalog::CatalogSnapshot& catalog, uint32_t oid,
                              int32_t modifier) {
  if (std::optional<Type> type = TypeFromOid(oid, modifier)) return type;
  const catalog::TablePtr made = catalog.GetTypeByOid(oid);
  if (made == nullptr) return std::nullopt;
  return MakeEnum(made->enumeration, made->enumeration->array_oid == oid);
}

Status CheckSchemaUse(const catalog::CatalogSnapshot& catalog, const NameScope& scope,
                      std::string_view schema) {
  if (scope.may_use == nullptr) return Status();
  const std::optional<catalog::NamespaceId> space = FindSchema(catalog, scope, schema);
  if (!space || scope.may_use(*space)) return Status();
  return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege,
                  "permission denied for schema {}", schema);
}

namespace {

Status BadModifier(std::string message, int location) {
  return Status(Code::kInvalid, std::move(message))
      .WithSqlState(sqlstate::kInvalidParameterValue)
      .WithLocation(location);
}

Result<int32_t> ModifierOf(const ast::TypeName& name, TypeId id) {
  const std::vector<int32_t>& mods = name.typmods;
  switch (id) {
    case TypeId::kVarchar:
    case TypeId::kBpchar: {
      const char* shown = id == TypeId::kVarchar ? "varchar" : "char";
      if (mods.size() != 1) return BadModifier("invalid type modifier", name.location);
      if (mods[0] < 1) {
        return BadModifier(fmt::format("length for type {} must be at least 1", shown),
                           name.location);
      }
      if (mods[0] > 10485760) {
        return BadModifier(fmt::format("length for type {} cannot exceed 10485760", shown),
                           name.location);
      }
      return mods[0] + 4;
    }
    case TypeId::kNumeric: {
      if (mods.size() > 2) return BadModifier("invalid NUMERIC type modifier", name.location);
      int32_t precision = mods[0], scale = mods.size() == 2 ? mods[1] : 0;
      if (precision < 1 || precision > 1000) {
        return BadModifier(
            fmt::format("NUMERIC precision {} must be between 1 and 1000", precision),
            name.location);
      }
      if (scale < -1000 || scale > 1000) {
        return BadModifier(fmt::format("NUMERIC scale {} must be between -1000 and 1000", scale),
                           name.location);
      }
      return ((precision << 16) | (scale & 0x7FF)) + 4;
    }
    case TypeId::kTime:
    case TypeId::kTimetz:
    case TypeId::kTimestamp:
    case TypeId::kTimestamptz: {
      if (mods.size() != 1) return BadModifier("invalid type modifier", name.location);
      if (mods[0] < 0) {
        bool zone = id == TypeId::kTimetz || id == TypeId::kTimestamptz;
        bool stamp = id == TypeId::kTimestamp || id == TypeId::kTimestamptz;
        return BadModifier(
            fmt::format("{}({}){} precision must not be negative", stamp ? "TIMESTAMP" : "TIME",
                        mods[0], zone ? " WITH TIME ZONE" : ""),
            name.location);
      }
      return std::min(mods[0], 6);
    }
    case TypeId::kInterval:
      // PostgreSQL's form: the mask of fields above, the precision below.
      if (mods[0] == ast::kIntervalFullRange) return mods.size() == 2 ? std::min(mods[1], 6) : -1;
      return (mods[0] << 16) | (mods.size() == 2 && mods[1] >= 0 ? std::min(mods[1], 6) : 0xFFFF);
    default:
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                      "type modifier is not allowed for type \"{}\"", name.name.name)
          .WithLocation(name.location);
  }
}

}  // namespace

namespace {

std::optional<Type> FindMadeType(const catalog::CatalogSnapshot& catalog, const NameScope& scope,
                                 const ast::QualifiedName& name) {
  if (catalog::TablePtr type = FindType(catalog, scope, name.schema, name.name)) {
    return MakeEnum(type->enumeration);
  }
  // The array type of mood is _mood.
  if (!name.name.starts_with('_')) return std::nullopt;
  catalog::TablePtr type = FindType(catalog, scope, name.schema, name.name.substr(1));
  if (type == nullptr) return std::nullopt;
  return MakeEnum(type->enumeration, true);
}

}  // namespace

Result<Type> ResolveTypeName(const ast::TypeName& name, int* serial,
                             const catalog::CatalogSnapshot* catalog, const NameScope* scope) {
  if (serial != nullptr) *serial = 0;
  std::string shown =
      name.name.schema.empty() ? name.name.name : name.name.schema + "." + name.name.name;
  Status unknown =
      SqlError(Code::kInvalid, sqlstate::kUndefinedObject, "type \"{}\" does not exist", shown)
          .WithLocation(name.location);
  if (name.pct_type) return UnsupportedError("%TYPE is not supported").WithLocation(name.location);
  if (name.setof)
    return UnsupportedError("SETOF is not supported here").WithLocation(name.location);
  const bool built_in = name.name.schema.empty() || name.name.schema == "pg_catalog";
  if (name.name.schema.empty()) {
    int bytes = 0;
    const std::string& n = name.name.name;
    if (n == "serial" || n == "serial4") bytes = 4;
    if (n == "bigserial" || n == "serial8") bytes = 8;
    if (n == "smallserial" || n == "serial2") bytes = 2;
    if (bytes != 0) {
      if (serial == nullptr) return unknown;
      if (!name.array_bounds.empty()) {
        return UnsupportedError("array of serial is not implemented").WithLocation(name.location);
      }
      *serial = bytes;
      return MakeType(bytes == 2 ? TypeId::kInt2 : bytes == 4 ? TypeId::kInt4 : TypeId::kInt8);
    }
  }
  std::optional<Type> type;
  if (built_in) type = TypeFromName(name.name.name);
  if (!type.has_value() && catalog != nullptr && scope != nullptr) {
    if (!name.name.schema.empty()) {
      CELLAR_TRY(CheckSchemaUse(*catalog, *scope, name.name.schema));
      if (!built_in && !FindSchema(*catalog, *scope, name.name.schema)) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidSchemaName,
                        "schema \"{}\" does not exist", name.name.schema)
            .WithLocation(name.location);
      }
    }
    type = FindMadeType(*catalog, *scope, name.name);
  }
  if (!type.has_value()) return unknown;
  if (name.has_other_typmods) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "type modifiers must be simple constants or identifiers")
        .WithLocation(name.location);
  }
  if (!name.typmods.empty()) {
    CELLAR_TRY_ASSIGN(type->modifier, ModifierOf(name, type->id));
  }
  if (!name.array_bounds.empty()) type->array = true;
  return *type;
}

}  // namespace cellar::sql
