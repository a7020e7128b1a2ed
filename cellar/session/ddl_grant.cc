// GRANT and REVOKE on objects, and what new objects get.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"

namespace cellar::session {
namespace {

constexpr std::string_view kInvalidGrant = "0LP01";

// Default privileges that count in every schema lie with the database, under these letters; those
// of its schema public under pg_default_acl's own. Persisted.
struct DefaultKind {
  char kind;    // as in PrivilegesOf and pg_default_acl
  char global;  // as stored
};
constexpr DefaultKind kDefaultKinds[] = {
    {'r', '1'}, {'S', '2'}, {'f', '3'}, {'T', '4'}, {'n', '5'}};

catalog::Acl* FindDefault(uint32_t role, char stored, catalog::NamespaceDescriptor* space) {
  for (catalog::DefaultAcl& one : space->default_acls) {
    if (one.role == role && one.object_type == stored) return &one.acl;
  }
  return nullptr;
}

const catalog::Acl* FindDefault(uint32_t role, char stored,
                                const catalog::NamespaceDescriptor& space) {
  for (const catalog::DefaultAcl& one : space.default_acls) {
    if (one.role == role && one.object_type == stored) return &one.acl;
  }
  return nullptr;
}

void SortItems(std::vector<catalog::AclItem>* items) {
  std::sort(items->begin(), items->end(), [](const auto& a, const auto& b) {
    return std::pair(a.grantee, a.grantor) < std::pair(b.grantee, b.grantor);
  });
}

bool SameItems(std::vector<catalog::AclItem> a, std::vector<catalog::AclItem> b) {
  SortItems(&a);
  SortItems(&b);
  return a == b;
}

}  // namespace

char GlobalDefaultLetter(char kind) {
  for (const DefaultKind& one : kDefaultKinds) {
    if (one.kind == kind) return one.global;
  }
  return 0;
}

char DefaultLetterKind(char stored, bool* global) {
  for (const DefaultKind& one : kDefaultKinds) {
    *global = one.global == stored;
    if (*global || one.kind == stored) return one.kind;
  }
  return 0;
}

void Session::Impl::ApplyDefaultPrivileges(catalog::TableDescriptor* table,
                                           catalog::NamespaceDescriptor* space) {
  catalog::SnapshotPtr catalog = CurrentCatalog();
  catalog::NamespacePtr database = catalog->GetNamespace(database_id);
  if (database == nullptr || (table != nullptr && table->temporary)) return;
  if (space != nullptr && space->parent != database_id) return;
  const char kind = space != nullptr                                  ? 'n'
                    : table->kind == catalog::RelationKind::kSequence ? 'S'
                                                                      : 'r';
  const uint32_t owner = Roles().OidOf(space != nullptr ? space->owner : table->owner);
  const catalog::Acl* everywhere = FindDefault(owner, GlobalDefaultLetter(kind), *database);
  const catalog::Acl* here = nullptr;
  catalog::NamespacePtr parent;
  if (table != nullptr) {
    parent = catalog->GetNamespace(table->parent);
    if (parent != nullptr) here = FindDefault(owner, kind, *parent);
  }
  if (everywhere == nullptr && here == nullptr) return;
  std::vector<catalog::AclItem> items =
      everywhere != nullptr ? everywhere->items : DefaultAclItems(kind, owner);
  if (here != nullptr) {
    for (const catalog::AclItem& item : here->items) AddGrant(item, &items);
  }
  if (SameItems(items, DefaultAclItems(kind, owner))) return;
  SortItems(&items);
  catalog::Acl& acl = space != nullptr ? space->acl : table->acl;
  acl.set = true;
  acl.items = std::move(items);
}

Result<std::vector<uint32_t>> Ddl::Grantees(const ast::GrantStmt& statement) {
  std::vector<uint32_t> grantees;
  for (const ast::RoleSpec& spec : statement.grantees) {
    if (spec.kind == ast::RoleKind::kPublic) {
      if (statement.grant && statement.grant_option) {
        return SqlError(Code::kInvalid, kInvalidGrant,
                        "grant options can only be granted to roles");
      }
      grantees.push_back(0);
      continue;
    }
    CELLAR_TRY_ASSIGN(const Role* role, FindRole(spec));
    grantees.push_back(role->oid);
  }
  if (statement.grantor) {
    CELLAR_TRY_ASSIGN(const Role* grantor, FindRole(*statement.grantor));
    if (grantor->oid != s_.user_oid) {
      return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                      "grantor must be current user");
    }
  }
  return grantees;
}

Result<uint32_t> Ddl::PrivilegeBits(const ast::GrantStmt::Privilege& privilege, char kind,
                                    std::string_view noun) {
  const uint32_t bit = PrivilegeBit(privilege.name, kind);
  if (bit != 0) return bit;
  std::string upper = privilege.name;
  for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  for (char known : {'r', 'S', 'n', 'd', 'f'}) {
    if (PrivilegeBit(upper, known) == 0) continue;
    return SqlError(Code::kInvalid, kInvalidGrant, "invalid privilege type {} for {}", upper, noun);
  }
  return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "unrecognized privilege type \"{}\"",
                  privilege.name);
}

Status Ddl::ApplyGrant(const ast::GrantStmt& statement, const std::vector<uint32_t>& grantees,
                       uint32_t privileges, bool all, const GrantTarget& target,
                       const std::vector<catalog::AclItem>& whole,
                       std::vector<catalog::AclItem>* items) {
  std::vector<catalog::AclItem> counting = *items;
  for (const catalog::AclItem& item : whole) AddGrant(item, &counting);
  uint32_t options = 0;
  const uint32_t grantor =
      BestGrantor(counting, s_.user_oid, target.owner, privileges, s_.View(), &options);
  const uint32_t possible = privileges & options;
  if (options == 0) {
    const Held held = HeldIn(counting, grantor, target.owner, s_.View());
    if (!s_.IsSuperuser() && held.privileges == 0 && held.options == 0) {
      return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege,
                      "permission denied for {} {}", target.noun, target.name);
    }
  }
  if (possible == 0 || (!all && possible != privileges)) {
    const bool none = possible == 0;
    CELLAR_TRY(
        Notice(Severity::kWarning, statement.grant ? "01007" : "01006",
               fmt::format("{} privileges {} for \"{}\"", none ? "no" : "not all",
                           statement.grant ? "were granted" : "could be revoked", target.name)));
  }
  if (possible == 0) return Status();
  for (uint32_t grantee : grantees) {
    catalog::AclItem item;
    item.grantee = grantee;
    item.grantor = grantor;
    if (statement.grant) {
      item.privileges = possible;
      // The owner has all options without a grant.
      if (statement.grant_option) item.grant_options = grantee == target.owner ? 0 : possible;
      CELLAR_TRY(CheckCircular(counting, item, target.owner));
      AddGrant(item, items);
    } else {
      item.privileges = statement.grant_option ? 0 : possible;
      item.grant_options = possible;
      CELLAR_TRY(TakeGrant(item, target.owner, statement.cascade, items));
    }
  }
  return Status();
}

Status Ddl::GrantOnRelation(const ast::GrantStmt& statement, const std::vector<uint32_t>& grantees,
                            const catalog::TablePtr& relation) {
  const bool sequence = relation->kind == catalog::RelationKind::kSequence;
  if (statement.object_type == ast::ObjectType::kSequence && !sequence) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a sequence",
                    relation->name);
  }
  GrantTarget target;
  target.kind = sequence ? 'S' : 'r';
  target.noun = sequence                                         ? "sequence"
                : relation->kind == catalog::RelationKind::kView ? "view"
                                                                 : "table";
  target.name = relation->name;
  target.owner = s_.OwnerOf(*relation);
  catalog::TableDescriptor next = *relation;
  std::vector<catalog::AclItem> items = s_.AclOf(next);
  uint32_t whole = 0;
  bool all = statement.privileges.empty();
  std::vector<std::pair<size_t, uint32_t>> by_column;  // position, bits
  if (all) whole = PrivilegesOf(target.kind);
  for (const ast::GrantStmt::Privilege& privilege : statement.privileges) {
    if (privilege.columns.empty()) {
      // GRANT ... ON TABLE names sequences too.
      const bool as_table = sequence && statement.object_type != ast::ObjectType::kSequence &&
                            PrivilegeBit(privilege.name, 'S') == 0 &&
                            PrivilegeBit(privilege.name, 'r') != 0;
      if (as_table) {
        CELLAR_TRY(
            Notice(Severity::kWarning, kInvalidGrant,
                   fmt::format("sequence \"{}\" only supports USAGE, SELECT, and UPDATE privileges",
                               relation->name)));
        continue;
      }
      CELLAR_TRY_ASSIGN(uint32_t bit,
                        PrivilegeBits(privilege, target.kind,
                                      sequence                                 ? "sequence"
                                      : PrivilegeBit(privilege.name, 'S') != 0 ? "table"
                                                                               : "relation"));
      whole |= bit;
      continue;
    }
    uint32_t bits = kColumnPrivileges;
    if (!privilege.name.empty()) {
      CELLAR_TRY_ASSIGN(bits, PrivilegeBits(privilege, 'c', "column"));
    }
    if (sequence) {
      return SqlError(Code::kInvalid, kInvalidGrant,
                      "sequence \"{}\" only supports USAGE, SELECT, and UPDATE privileges",
                      relation->name);
    }
    for (const std::string& name : privilege.columns) {
      size_t at = 0;
      while (at < next.columns.size() && (next.columns[at].dropped || next.columns[at].hidden ||
                                          next.columns[at].name != name)) {
        ++at;
      }
      if (at == next.columns.size()) {
        return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn,
                        "column \"{}\" of relation \"{}\" does not exist", name, next.name);
      }
      by_column.emplace_back(at, bits);
    }
  }
  const std::vector<catalog::AclItem> table_items = items;
  // What is taken from the table is taken from each column as well.
  if (!statement.grant && (whole & kColumnPrivileges) != 0) {
    for (size_t i = 0; i < next.columns.size(); ++i) {
      if (next.columns[i].acl.set) by_column.emplace_back(i, whole & kColumnPrivileges);
    }
  }
  if (whole != 0) {
    CELLAR_TRY(ApplyGrant(statement, grantees, whole, all, target, {}, &items));
    next.acl.set = true;
    next.acl.items = std::move(items);
  }
  for (const auto& [position, bits] : by_column) {
    catalog::ColumnDescriptor& column = next.columns[position];
    CELLAR_TRY(ApplyGrant(statement, grantees, bits, all || whole != 0, target, table_items,
                          &column.acl.items));
    column.acl.set = !column.acl.items.empty();
  }
  return Editor().UpdateTable(std::move(next)).status();
}

Status Ddl::GrantOnNamespace(const ast::GrantStmt& statement, const std::vector<uint32_t>& grantees,
                             const catalog::NamespacePtr& space, bool as_database) {
  GrantTarget target;
  target.kind = as_database ? 'd' : 'n';
  target.noun = as_database ? "database" : "schema";
  target.name = as_database ? space->name : s_.SchemaName(space->id);
  target.owner = s_.OwnerOf(*space, as_database);
  uint32_t privileges = statement.privileges.empty() ? PrivilegesOf(target.kind) : 0;
  for (const ast::GrantStmt::Privilege& privilege : statement.privileges) {
    if (!privilege.columns.empty()) {
      return SqlError(Code::kInvalid, kInvalidGrant,
                      "column privileges are only valid for relations");
    }
    CELLAR_TRY_ASSIGN(uint32_t bit, PrivilegeBits(privilege, target.kind, target.noun));
    privileges |= bit;
  }
  std::vector<catalog::AclItem> items = s_.AclOf(*space, as_database);
  CELLAR_TRY(ApplyGrant(statement, grantees, privileges, statement.privileges.empty(), target, {},
                        &items));
  catalog::NamespaceDescriptor next = *space;
  // A database's list holds that of its schema public too.
  if (space->parent == catalog::kRootNamespace) {
    for (const catalog::AclItem& item : s_.AclOf(*space, !as_database)) AddGrant(item, &items);
  }
  next.acl.set = true;
  next.acl.items = std::move(items);
  return Editor().UpdateNamespace(std::move(next));
}

Status Ddl::DefaultPrivileges(const ast::GrantStmt& statement) {
  char kind = 0;
  switch (statement.object_type) {
    case ast::ObjectType::kTable: kind = 'r'; break;
    case ast::ObjectType::kSequence: kind = 'S'; break;
    case ast::ObjectType::kFunction:
    case ast::ObjectType::kRoutine:
    case ast::ObjectType::kProcedure: kind = 'f'; break;
    case ast::ObjectType::kType: kind = 'T'; break;
    case ast::ObjectType::kSchema: kind = 'n'; break;
    default: return UnsupportedError("default privileges for these objects are not supported");
  }
  if (kind == 'n' && !statement.in_schemas.empty()) {
    return SqlError(Code::kInvalid, kInvalidGrant,
                    "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS");
  }
  uint32_t privileges = statement.privileges.empty() ? PrivilegesOf(kind) : 0;
  for (const ast::GrantStmt::Privilege& privilege : statement.privileges) {
    if (!privilege.columns.empty()) {
      return SqlError(Code::kInvalid, kInvalidGrant,
                      "default privileges cannot be set for columns");
    }
    CELLAR_TRY_ASSIGN(uint32_t bit, PrivilegeBits(privilege, kind,
                                                  kind == 'r'   ? "relation"
                                                  : kind == 'S' ? "sequence"
                                                  : kind == 'f' ? "function"
                                                  : kind == 'T' ? "type"
                                                                : "schema"));
    privileges |= bit;
  }
  CELLAR_TRY_ASSIGN(std::vector<uint32_t> grantees, Grantees(statement));
  std::vector<uint32_t> creators;
  for (const ast::RoleSpec& spec : statement.for_roles) {
    CELLAR_TRY_ASSIGN(const Role* role, FindRole(spec));
    if (!s_.Roles().IsMemberOf(s_.user_oid, role->oid, s_.DatabaseOwner())) {
      return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege,
                      "must be member of role \"{}\"", role->name);
    }
    creators.push_back(role->oid);
  }
  if (creators.empty()) creators.push_back(s_.user_oid);
  std::vector<std::optional<catalog::NamespaceId>> spaces;  // nullopt: everywhere
  for (const std::string& name : statement.in_schemas) {
    std::optional<catalog::NamespaceId> space = sql::FindSchema(*Catalog(), s_.Scope(), name);
    if (!space) {
      return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist",
                      name);
    }
    spaces.push_back(space);
  }
  if (spaces.empty()) spaces.push_back(std::nullopt);
  for (uint32_t creator : creators) {
    for (const std::optional<catalog::NamespaceId>& space : spaces) {
      catalog::NamespaceDescriptor next = *Catalog()->GetNamespace(space.value_or(s_.database_id));
      const char stored = space ? kind : GlobalDefaultLetter(kind);
      const catalog::Acl* before = FindDefault(creator, stored, next);
      std::vector<catalog::AclItem> standard;
      if (!space) standard = DefaultAclItems(kind, creator);
      std::vector<catalog::AclItem> items = before != nullptr ? before->items : standard;
      for (uint32_t grantee : grantees) {
        catalog::AclItem item{grantee, creator, privileges, 0};
        if (statement.grant) {
          if (statement.grant_option && grantee != creator) item.grant_options = privileges;
          AddGrant(item, &items);
        } else {
          item.grant_options = privileges;
          if (statement.grant_option) item.privileges = 0;
          CELLAR_TRY(TakeGrant(item, creator, statement.cascade, &items));
        }
      }
      SortItems(&items);  // as PostgreSQL keeps them
      catalog::Acl* known = FindDefault(creator, stored, &next);
      if (SameItems(items, standard)) {
        next.default_acls.erase(std::remove_if(next.default_acls.begin(), next.default_acls.end(),
                                               [&](const catalog::DefaultAcl& one) {
                                                 return one.role == creator &&
                                                        one.object_type == stored;
                                               }),
                                next.default_acls.end());
      } else if (known != nullptr) {
        known->items = std::move(items);
      } else {
        next.default_acls.push_back({creator, stored, {true, std::move(items)}});
      }
      CELLAR_TRY(Editor().UpdateNamespace(std::move(next)));
    }
  }
  return Status();
}

Status Ddl::Grant(const ast::GrantStmt& statement) {
  if (statement.of_roles) return GrantRoles(statement);
  if (statement.default_privileges) return DefaultPrivileges(statement);
  CELLAR_TRY_ASSIGN(std::vector<uint32_t> grantees, Grantees(statement));
  switch (statement.object_type) {
    case ast::ObjectType::kTable:
    case ast::ObjectType::kSequence: {
      std::vector<catalog::TableId> relations;
      for (const ast::ObjectName& object : statement.objects) {
        if (!statement.all_in_schema) {
          const ast::QualifiedName name = NameOf(object);
          CELLAR_TRY(sql::CheckSchemaUse(*Catalog(), s_.Scope(), name.schema));
          CELLAR_TRY_ASSIGN(catalog::TablePtr relation, FindRelation(name));
          relations.push_back(relation->id);
          continue;
        }
        std::optional<catalog::NamespaceId> space =
            sql::FindSchema(*Catalog(), s_.Scope(), object.parts.back());
        if (!space) {
          return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName,
                          "schema \"{}\" does not exist", object.parts.back());
        }
        CELLAR_TRY(s_.CheckSchema(*space, kUsage));
        for (const catalog::TablePtr& relation : Catalog()->ListTables(*space)) {
          const bool sequence = relation->kind == catalog::RelationKind::kSequence;
          if (sequence == (statement.object_type == ast::ObjectType::kSequence))
            relations.push_back(relation->id);
        }
      }
      for (catalog::TableId id : relations) {
        CELLAR_TRY(GrantOnRelation(statement, grantees, Catalog()->GetTable(id)));
      }
      return Status();
    }
    case ast::ObjectType::kSchema:
      for (const ast::ObjectName& object : statement.objects) {
        const std::string& name = object.parts.back();
        std::optional<catalog::NamespaceId> space = sql::FindSchema(*Catalog(), s_.Scope(), name);
        if (!space) {
          if (s_.db->system.HasSchema(name)) {
            return UnsupportedError("privileges of schema \"{}\" cannot be changed", name);
          }
          return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName,
                          "schema \"{}\" does not exist", name);
        }
        CELLAR_TRY(GrantOnNamespace(statement, grantees, Catalog()->GetNamespace(*space), false));
      }
      return Status();
    case ast::ObjectType::kDatabase:
      for (const ast::ObjectName& object : statement.objects) {
        catalog::NamespacePtr space =
            Catalog()->FindNamespace(catalog::kRootNamespace, object.parts.back());
        if (space == nullptr) {
          return SqlError(Code::kNotFound, sqlstate::kInvalidCatalogName,
                          "database \"{}\" does not exist", object.parts.back());
        }
        CELLAR_TRY(GrantOnNamespace(statement, grantees, space, true));
      }
      return Status();
    default:
      return UnsupportedError("privileges on a {} are not supported",
                              ast::ObjectTypeName(statement.object_type));
  }
}

}  // namespace cellar::session
