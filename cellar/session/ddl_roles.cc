// Statements about roles: attributes, membership, settings, and what belongs to them.
#include <algorithm>

#include "cellar/auth/scram.h"
#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"
#include "cellar/types/text_io.h"

namespace cellar::session {
namespace {

template <typename... Args>
Status Denied(fmt::format_string<Args...> format, Args&&... args) {
  return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege, format,
                  std::forward<Args>(args)...);
}

Status NoRole(std::string_view name) {
  return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "role \"{}\" does not exist", name);
}

Status CheckRoleName(std::string_view name) {
  if (name == "public" || name == "none") {
    return SqlError(Code::kInvalid, sqlstate::kReservedName, "role name \"{}\" is reserved", name);
  }
  if (name.substr(0, 3) == "pg_") {
    return SqlError(Code::kInvalid, sqlstate::kReservedName, "role name \"{}\" is reserved", name)
        .WithDetail("Role names starting with \"pg_\" are reserved.");
  }
  return Status();
}

std::string_view DefaultNoun(char kind) {
  return kind == 'r'   ? "relations"
         : kind == 'S' ? "sequences"
         : kind == 'f' ? "functions"
         : kind == 'T' ? "types"
                       : "schemas";
}

bool Mentions(const catalog::Acl& acl, uint32_t role) {
  return acl.set && std::any_of(acl.items.begin(), acl.items.end(), [&](const auto& item) {
           return item.grantee == role || item.grantor == role;
         });
}

// Without what `role` was granted.
bool TakeAll(uint32_t role, uint32_t owner, catalog::Acl* acl) {
  bool changed = false;
  if (!acl->set) return false;
  for (size_t i = 0; i < acl->items.size();) {
    catalog::AclItem item = acl->items[i];
    if (item.grantee != role || role == owner) {
      ++i;
      continue;
    }
    item.grant_options = item.privileges;
    (void)TakeGrant(item, owner, true, &acl->items);
    changed = true;
    i = 0;
  }
  return changed;
}

}  // namespace

Result<const Role*> Ddl::FindRole(const ast::RoleSpec& spec) {
  const Role* role = nullptr;
  switch (spec.kind) {
    case ast::RoleKind::kNamed: role = s_.Roles().Find(spec.name); break;
    case ast::RoleKind::kCurrentRole:
    case ast::RoleKind::kCurrentUser: role = s_.Roles().FindByOid(s_.user_oid); break;
    case ast::RoleKind::kSessionUser: role = s_.Roles().FindByOid(s_.session_oid); break;
    case ast::RoleKind::kPublic: break;
  }
  if (role == nullptr) return NoRole(spec.name);
  return role;
}

std::string Ddl::RoleName(const ast::RoleSpec& spec) {
  switch (spec.kind) {
    case ast::RoleKind::kCurrentRole:
    case ast::RoleKind::kCurrentUser: return s_.user;
    case ast::RoleKind::kSessionUser: return s_.session_user;
    default: return spec.name;
  }
}

bool Ddl::MayManageRoles() {
  const Role* role = s_.Roles().FindByOid(s_.user_oid);
  return role != nullptr && (role->superuser || role->create_role);
}

// ---- CREATE, ALTER, DROP

Status Ddl::ApplyRoleOptions(const ast::OptionList& options, Role* role) {
  for (const ast::Option& option : options) {
    if (option.name == "password") {
      if (option.value_kind == ast::OptionKind::kNone) {
        role->verifier.clear();
        continue;
      }
      if (option.text.empty()) {
        CELLAR_TRY(Notice(Severity::kNotice, "00000",
                          "empty string is not a valid password, clearing password"));
        role->verifier.clear();
        continue;
      }
      constexpr size_t kMd5Length = 35;
      if (option.text.size() == kMd5Length && option.text.substr(0, 3) == "md5" &&
          option.text.find_first_not_of("0123456789abcdef", 3) == std::string::npos) {
        return UnsupportedError("MD5 passwords are not supported")
            .WithHint("Give the password itself, or a SCRAM-SHA-256 verifier.");
      }
      CELLAR_TRY_ASSIGN(role->verifier, auth::MakePasswordVerifier(option.text));
    } else if (option.name == "superuser") {
      role->superuser = option.ToBool().value;
    } else if (option.name == "canlogin") {
      role->can_login = option.ToBool().value;
    } else if (option.name == "inherit") {
      role->inherit = option.ToBool().value;
    } else if (option.name == "createrole") {
      role->create_role = option.ToBool().value;
    } else if (option.name == "createdb") {
      role->create_db = option.ToBool().value;
    } else if (option.name == "isreplication") {
      role->replication = option.ToBool().value;
    } else if (option.name == "bypassrls") {
      role->bypass_rls = option.ToBool().value;
    } else if (option.name == "connectionlimit") {
      if (option.integer < -1 || option.integer > INT32_MAX) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                        "invalid connection limit: {}", option.integer);
      }
      role->connection_limit = static_cast<int>(option.integer);
    } else if (option.name == "validUntil") {
      Arena arena;
      CELLAR_TRY_ASSIGN(Datum until, ParseDatum(option.text, MakeType(TypeId::kTimestamptz),
                                                s_.settings.format(), &arena));
      role->valid_until_micros = until.int_value();
    }
  }
  return Status();
}

Status Ddl::CreateRole(const ast::CreateRoleStmt& statement) {
  CELLAR_TRY(CheckRoleName(statement.name));
  Role role;
  role.name = statement.name;
  role.can_login = statement.spelling == ast::CreateRoleStmt::Spelling::kUser;
  CELLAR_TRY(ApplyRoleOptions(statement.options, &role));
  if (!s_.IsSuperuser()) {
    if (role.superuser) return Denied("must be superuser to create superusers");
    if (role.replication) return Denied("must be superuser to create replication users");
    if (role.bypass_rls) return Denied("must be superuser to create bypassrls users");
    if (!MayManageRoles()) return Denied("permission denied to create role");
  }
  if (s_.Roles().Find(role.name) != nullptr || s_.Roles().unreadable.contains(role.name)) {
    return SqlError(Code::kExists, sqlstate::kDuplicateObject, "role \"{}\" already exists",
                    role.name);
  }
  CELLAR_TRY(s_.WriteRole(std::move(role)));
  const uint32_t made = s_.Roles().OidOf(statement.name);
  for (const ast::Option& option : statement.options) {
    const bool into = option.name == "addroleto";
    if (!into && option.name != "rolemembers" && option.name != "adminmembers") continue;
    for (const std::string& name : option.list) {
      ast::RoleSpec spec;
      spec.name = name;
      if (name == "current_user" || name == "current_role") spec.kind = ast::RoleKind::kCurrentUser;
      if (name == "session_user") spec.kind = ast::RoleKind::kSessionUser;
      CELLAR_TRY_ASSIGN(const Role* other, FindRole(spec));
      const uint32_t oid = other->oid;
      CELLAR_TRY(into ? ChangeMember(oid, made, true, false)
                      : ChangeMember(made, oid, true, option.name == "adminmembers"));
    }
  }
  return Status();
}

Status Ddl::CommentOnRole(const std::string& name, const std::string& text) {
  const Role* found = s_.Roles().Find(name);
  if (found == nullptr) return NoRole(name);
  if (found->superuser && !s_.IsSuperuser()) return Denied("must be superuser");
  if (!MayManageRoles()) return Denied("must have CREATEROLE privilege");
  if (found->built_in) {
    return UnsupportedError("comments on the roles that every store has are not supported");
  }
  Role role = *found;
  role.comment = text;
  return s_.WriteRole(std::move(role));
}

Status Ddl::AlterRole(const ast::AlterRoleStmt& statement) {
  uint64_t database = 0;
  if (!statement.database.empty()) {
    catalog::NamespacePtr found =
        Catalog()->FindNamespace(catalog::kRootNamespace, statement.database);
    if (found == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kInvalidCatalogName,
                      "database \"{}\" does not exist", statement.database);
    }
    database = found->id.value;
  }
  if (statement.all_roles) {
    if (!s_.IsSuperuser()) return Denied("must be superuser to alter settings globally");
    std::vector<RoleSettings> settings = s_.Roles().shared_settings;
    CELLAR_TRY(ChangeSettings(*statement.set, database, &settings));
    return s_.WriteSharedSettings(std::move(settings));
  }
  CELLAR_TRY_ASSIGN(const Role* found, FindRole(statement.role));
  Role role = *found;
  const bool self = role.oid == s_.user_oid;
  if (role.built_in) {
    return SqlError(Code::kInvalid, sqlstate::kReservedName, "role name \"{}\" is reserved",
                    role.name)
        .WithDetail("Cannot alter reserved roles.");
  }
  if (statement.set != nullptr) {
    if (role.superuser && !s_.IsSuperuser()) return Denied("must be superuser to alter superusers");
    if (!self && !MayManageRoles()) return Denied("permission denied");
    CELLAR_TRY(ChangeSettings(*statement.set, database, &role.settings));
    return s_.WriteRole(std::move(role));
  }
  auto names = [&](std::string_view name) {
    return ast::FindOption(statement.options, name) != nullptr;
  };
  if (!s_.IsSuperuser()) {
    if (role.superuser || names("superuser")) {
      return Denied("must be superuser to alter superuser roles or change superuser attribute");
    }
    if (role.replication || names("isreplication")) {
      return Denied("must be superuser to alter replication roles or change replication attribute");
    }
    if (names("bypassrls")) return Denied("must be superuser to change bypassrls attribute");
    const bool only_password = statement.options.size() == 1 && names("password");
    if (!MayManageRoles() && !(self && only_password)) return Denied("permission denied");
  }
  // ALTER GROUP ... ADD | DROP USER
  for (const ast::Option& option : statement.options) {
    if (option.name != "rolemembers") continue;
    for (const std::string& name : option.list) {
      const Role* member = s_.Roles().Find(name);
      if (member == nullptr) return NoRole(name);
      CELLAR_TRY(ChangeMember(role.oid, member->oid, !statement.drop_members, false));
    }
    return Status();
  }
  if (role.oid == kBootstrapRole && names("superuser")) {
    const ast::Option* option = ast::FindOption(statement.options, "superuser");
    if (!option->ToBool().value) {
      return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                      "the first user of a store stays a superuser");
    }
  }
  CELLAR_TRY(ApplyRoleOptions(statement.options, &role));
  return s_.WriteRole(std::move(role));
}

Status Ddl::RenameRole(const ast::RenameStmt& statement) {
  const Role* found = s_.Roles().Find(statement.sub_name);
  if (found == nullptr) return NoRole(statement.sub_name);
  Role role = *found;
  if (role.oid == s_.session_oid) return UnsupportedError("session user cannot be renamed");
  if (role.oid == s_.user_oid) return UnsupportedError("current user cannot be renamed");
  CELLAR_TRY(CheckRoleName(role.name));
  CELLAR_TRY(CheckRoleName(statement.new_name));
  if (s_.Roles().Find(statement.new_name) != nullptr ||
      s_.Roles().unreadable.contains(statement.new_name)) {
    return SqlError(Code::kExists, sqlstate::kDuplicateObject, "role \"{}\" already exists",
                    statement.new_name);
  }
  if (role.superuser && !s_.IsSuperuser()) return Denied("must be superuser to rename superusers");
  if (!MayManageRoles()) return Denied("permission denied to rename role");
  const std::string old_name = role.name;
  role.name = statement.new_name;
  CELLAR_TRY(s_.WriteRole(std::move(role)));
  // Descriptors name their owners.
  for (const catalog::TablePtr& table : Catalog()->ListAllTables()) {
    if (table->owner != old_name) continue;
    catalog::TableDescriptor next = *table;
    next.owner = statement.new_name;
    CELLAR_TRY(Editor().UpdateTable(std::move(next)).status());
  }
  auto follow = [&](const catalog::NamespacePtr& space) -> Status {
    if (space->owner != old_name) return Status();
    catalog::NamespaceDescriptor next = *space;
    next.owner = statement.new_name;
    return Editor().UpdateNamespace(std::move(next));
  };
  for (const catalog::NamespacePtr& database : Catalog()->ListNamespaces(catalog::kRootNamespace)) {
    CELLAR_TRY(follow(database));
    for (const catalog::NamespacePtr& schema : Catalog()->ListNamespaces(database->id)) {
      CELLAR_TRY(follow(schema));
    }
  }
  // What comes back from the bin has its owner still.
  for (const catalog::TablePtr& table : Catalog()->ListDroppedTables()) {
    if (table->owner != old_name || table->state != catalog::ObjectState::kDropped) continue;
    catalog::TableDescriptor next = *table;
    next.owner = statement.new_name;
    CELLAR_TRY(Editor().UpdateDroppedTable(std::move(next)));
  }
  for (const catalog::NamespacePtr& space : Catalog()->ListDroppedNamespaces()) {
    if (space->owner != old_name || space->state != catalog::ObjectState::kDropped) continue;
    catalog::NamespaceDescriptor next = *space;
    next.owner = statement.new_name;
    CELLAR_TRY(Editor().UpdateDroppedNamespace(std::move(next)));
  }
  return Status();
}

std::vector<std::string> Ddl::DependentsOf(uint32_t role) {
  std::vector<std::string> lines;
  std::map<std::string, int> elsewhere;  // by database
  const std::string name = s_.Roles().NameOf(role);
  for (const catalog::NamespacePtr& database : Catalog()->ListNamespaces(catalog::kRootNamespace)) {
    const bool here = database->id == s_.database_id;
    auto add = [&](std::string line) {
      if (here) {
        lines.push_back(std::move(line));
      } else {
        ++elsewhere[database->name];
      }
    };
    if (s_.Roles().OidOf(database->owner) == role)
      lines.push_back(fmt::format("owner of database {}", database->name));
    // One list for the database and its schema public.
    uint32_t bits = 0;
    for (const catalog::AclItem& item : database->acl.items) {
      if (item.grantee == role || item.grantor == role) bits |= item.privileges;
    }
    if (database->owner != name && (bits & kDatabasePrivileges) != 0)
      lines.push_back(fmt::format("privileges for database {}", database->name));
    if ((bits & kSchemaPrivileges) != 0) add("privileges for schema public");
    std::vector<catalog::NamespacePtr> spaces = Catalog()->ListNamespaces(database->id);
    spaces.insert(spaces.begin(), database);
    for (const catalog::NamespacePtr& space : spaces) {
      const bool is_database = space->id == database->id;
      const std::string schema = is_database ? "public" : space->name;
      if (!is_database && s_.Roles().OidOf(space->owner) == role) {
        add(fmt::format("owner of schema {}", schema));
      } else if (!is_database && Mentions(space->acl, role)) {
        add(fmt::format("privileges for schema {}", schema));
      }
      for (const catalog::DefaultAcl& one : space->default_acls) {
        bool global = false;
        const char kind = DefaultLetterKind(one.object_type, &global);
        const std::string what =
            fmt::format("default privileges on new {} belonging to role {}{}", DefaultNoun(kind),
                        s_.Roles().NameOf(one.role), global ? "" : " in schema " + schema);
        if (one.role == role) {
          add("owner of " + what);
        } else if (Mentions(one.acl, role)) {
          add("privileges for " + what);
        }
      }
      std::vector<catalog::TablePtr> tables = Catalog()->ListTables(space->id);
      for (catalog::TablePtr& type : Catalog()->ListTypes(space->id)) {
        tables.push_back(std::move(type));
      }
      for (const catalog::TablePtr& table : tables) {
        const char* kind = table->kind == catalog::RelationKind::kType        ? "type"
                           : table->kind == catalog::RelationKind::kCollation ? "collation"
                           : table->kind == catalog::RelationKind::kView      ? "view"
                           : table->kind == catalog::RelationKind::kSequence  ? "sequence"
                                                                              : "table";
        const std::string shown = here ? s_.QualifiedName(*table) : table->name;
        if (s_.Roles().OidOf(table->owner) == role) {
          // Sequences of columns go with their tables.
          if (table->sequence.owner_table.value == 0)
            add(fmt::format("owner of {} {}", kind, shown));
          continue;
        }
        if (Mentions(table->acl, role)) add(fmt::format("privileges for {} {}", kind, shown));
        for (const catalog::ColumnDescriptor& column : table->columns) {
          if (!column.dropped && Mentions(column.acl, role))
            add(fmt::format("privileges for column {} of {} {}", column.name, kind, shown));
        }
      }
    }
  }
  for (const auto& [database, count] : elsewhere) {
    lines.push_back(
        fmt::format("{} object{} in database {}", count, count == 1 ? "" : "s", database));
  }
  return lines;
}

Status Ddl::DropRole(const ast::DropRoleStmt& statement) {
  if (!MayManageRoles()) return Denied("permission denied to drop role");
  for (const ast::RoleSpec& spec : statement.roles) {
    if (spec.kind != ast::RoleKind::kNamed) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "cannot use special role specifier in DROP ROLE");
    }
    const Role* found = s_.Roles().Find(spec.name);
    if (found == nullptr) {
      if (!statement.if_exists) return NoRole(spec.name);
      CELLAR_TRY(Notice(Severity::kNotice, "00000",
                        fmt::format("role \"{}\" does not exist, skipping", spec.name)));
      continue;
    }
    const Role role = *found;
    if (role.oid == s_.user_oid) {
      return SqlError(Code::kInvalid, sqlstate::kObjectInUse, "current user cannot be dropped");
    }
    if (role.oid == s_.session_oid || role.oid == s_.login_oid) {
      return SqlError(Code::kInvalid, sqlstate::kObjectInUse, "session user cannot be dropped");
    }
    if (role.superuser && !s_.IsSuperuser()) return Denied("must be superuser to drop superusers");
    if (role.built_in || role.oid == kBootstrapRole) {
      return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                      "cannot drop role {} because it is required by the database system",
                      role.name);
    }
    const std::vector<std::string> dependents = DependentsOf(role.oid);
    if (!dependents.empty()) {
      return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                      "role \"{}\" cannot be dropped because some objects depend on it", role.name)
          .WithDetail(JoinNames(dependents, "\n"));
    }
    std::vector<Role> members;
    for (const Role* other : s_.Roles().List()) {
      if (std::any_of(other->member_of.begin(), other->member_of.end(),
                      [&](const Membership& one) { return one.role == role.oid; })) {
        members.push_back(*other);
      }
    }
    for (Role& member : members) {
      member.member_of.erase(
          std::remove_if(member.member_of.begin(), member.member_of.end(),
                         [&](const Membership& one) { return one.role == role.oid; }),
          member.member_of.end());
      CELLAR_TRY(s_.WriteRole(std::move(member)));
    }
    CELLAR_TRY(s_.EraseRole(role));
  }
  return Status();
}

// ---- Membership

Status Ddl::ChangeMember(uint32_t group, uint32_t member_oid, bool grant, bool admin) {
  const RoleSet& roles = s_.Roles();
  const std::string group_name = roles.NameOf(group), member_name = roles.NameOf(member_oid);
  const Role* found = roles.FindByOid(member_oid);
  if (found == nullptr) return NoRole(member_name);
  Role member = *found;
  if (group == kDatabaseOwnerRole) {
    return SqlError(Code::kInvalid, "0LP01", "role \"{}\" cannot have explicit members",
                    group_name);
  }
  if (member_oid == kDatabaseOwnerRole) {
    return SqlError(Code::kInvalid, "0LP01", "role \"{}\" cannot be a member of any role",
                    member_name);
  }
  if (grant && member.built_in)
    return UnsupportedError("memberships of role \"{}\" cannot be changed", member_name);
  auto at = std::find_if(member.member_of.begin(), member.member_of.end(),
                         [&](const Membership& one) { return one.role == group; });
  if (grant) {
    if (roles.IsGrantedMember(group, member_oid, 0)) {
      return SqlError(Code::kInvalid, "0LP01", "role \"{}\" is a member of role \"{}\"", group_name,
                      member_name);
    }
    if (at != member.member_of.end() && (at->admin || !admin)) {
      return Notice(
          Severity::kNotice, "00000",
          fmt::format("role \"{}\" is already a member of role \"{}\"", member_name, group_name));
    }
    if (at == member.member_of.end()) {
      member.member_of.push_back({group, s_.user_oid, admin});
    } else {
      at->admin = true;
      at->grantor = s_.user_oid;
    }
    return s_.WriteRole(std::move(member));
  }
  if (at == member.member_of.end()) {
    return Notice(
        Severity::kWarning, "01000",
        fmt::format("role \"{}\" is not a member of role \"{}\"", member_name, group_name));
  }
  if (admin) {
    at->admin = false;
  } else {
    member.member_of.erase(at);
  }
  return s_.WriteRole(std::move(member));
}

Status Ddl::GrantRoles(const ast::GrantStmt& statement) {
  if (statement.grantor) {
    CELLAR_TRY_ASSIGN(const Role* grantor, FindRole(*statement.grantor));
    if (grantor->oid != s_.user_oid && !s_.IsSuperuser())
      return Denied("must be superuser to set grantor");
  }
  for (const ast::GrantStmt::Privilege& granted : statement.privileges) {
    if (!granted.columns.empty()) {
      return SqlError(Code::kInvalid, "0LP01",
                      "column names cannot be included in GRANT/REVOKE ROLE");
    }
    const Role* group = s_.Roles().Find(granted.name);
    if (group == nullptr) return NoRole(granted.name);
    const uint32_t oid = group->oid;
    if (group->superuser) {
      if (!s_.IsSuperuser()) return Denied("must be superuser to alter superusers");
    } else if (!MayManageRoles() && !s_.Roles().IsAdminOf(s_.user_oid, oid, s_.DatabaseOwner())) {
      return Denied("must have admin option on role \"{}\"", group->name);
    }
    for (const ast::RoleSpec& spec : statement.grantees) {
      CELLAR_TRY_ASSIGN(const Role* member, FindRole(spec));
      CELLAR_TRY(ChangeMember(oid, member->oid, statement.grant, statement.grant_option));
    }
  }
  return Status();
}

// ---- Settings

Status Ddl::ChangeSettings(const ast::VariableSetStmt& set, uint64_t database,
                           std::vector<RoleSettings>* settings) {
  auto at = std::find_if(settings->begin(), settings->end(),
                         [&](const RoleSettings& one) { return one.database == database; });
  if (at == settings->end()) at = settings->insert(at, RoleSettings{database, {}});
  auto& values = at->values;
  auto forget = [&](std::string_view name) {
    values.erase(std::remove_if(values.begin(), values.end(),
                                [&](const auto& entry) { return entry.first == name; }),
                 values.end());
  };
  switch (set.set_kind) {
    case ast::SetKind::kResetAll: values.clear(); break;
    case ast::SetKind::kReset:
    case ast::SetKind::kDefault: forget(set.name); break;
    case ast::SetKind::kFromCurrent:
    case ast::SetKind::kValue: {
      std::string value;
      if (set.set_kind == ast::SetKind::kValue) {
        value = SettingText(set);
      } else if (std::optional<std::string> current = s_.settings.Get(set.name)) {
        value = *current;
      }
      if (set.name == "role" || set.name == "session_authorization")
        return UnsupportedError("setting \"{}\" cannot be kept with a role", set.name);
      Settings probe = s_.settings;
      CELLAR_TRY(probe.Set(set.name, value, false));
      forget(set.name);
      values.emplace_back(set.name, *probe.Get(set.name));
      break;
    }
    default: return UnsupportedError("this form of SET is not supported here");
  }
  if (values.empty()) settings->erase(at);
  return Status();
}

Status Ddl::AlterDatabase(const ast::AlterDatabaseStmt& statement) {
  catalog::NamespacePtr database =
      Catalog()->FindNamespace(catalog::kRootNamespace, statement.name);
  if (database == nullptr) {
    return SqlError(Code::kNotFound, sqlstate::kInvalidCatalogName,
                    "database \"{}\" does not exist", statement.name);
  }
  if (statement.set == nullptr) return UnsupportedError("ALTER DATABASE is not supported");
  CELLAR_TRY(s_.CheckOwner(*database));
  std::vector<RoleSettings> settings = s_.Roles().shared_settings;
  CELLAR_TRY(ChangeSettings(*statement.set, database->id.value, &settings));
  return s_.WriteSharedSettings(std::move(settings));
}

// ---- What belongs to roles

Status Ddl::ReassignOwned(const std::vector<uint32_t>& roles, uint32_t owner) {
  const std::string name = s_.Roles().NameOf(owner);
  auto listed = [&](const std::string& of) {
    return std::find(roles.begin(), roles.end(), s_.Roles().OidOf(of)) != roles.end();
  };
  for (const catalog::NamespacePtr& database : Catalog()->ListNamespaces(catalog::kRootNamespace)) {
    if (listed(database->owner)) CELLAR_TRY(SetOwner(database, name));
  }
  std::vector<catalog::NamespaceId> spaces{s_.database_id};
  for (const catalog::NamespacePtr& schema : Catalog()->ListNamespaces(s_.database_id)) {
    spaces.push_back(schema->id);
    if (listed(schema->owner)) CELLAR_TRY(SetOwner(schema, name));
  }
  for (catalog::NamespaceId space : spaces) {
    std::vector<catalog::TablePtr> tables = Catalog()->ListTables(space);
    for (catalog::TablePtr& type : Catalog()->ListTypes(space)) tables.push_back(std::move(type));
    for (const catalog::TablePtr& table : tables) {
      catalog::TablePtr now = Catalog()->GetTable(table->id);
      if (now != nullptr && listed(now->owner)) CELLAR_TRY(SetOwner(now, name));
    }
  }
  return Status();
}

Status Ddl::DropOwned(const std::vector<uint32_t>& roles, bool cascade) {
  for (uint32_t role : roles) {
    for (const catalog::NamespacePtr& database :
         Catalog()->ListNamespaces(catalog::kRootNamespace)) {
      catalog::NamespaceDescriptor next = *database;
      const bool here = database->id == s_.database_id;
      // The owners of the two halves of its list differ; taking grants asks for neither.
      bool changed = TakeAll(role, here ? s_.OwnerOf(next, true) : role, &next.acl);
      if (changed) CELLAR_TRY(Editor().UpdateNamespace(std::move(next)));
    }
    std::vector<catalog::NamespaceId> spaces{s_.database_id};
    for (const catalog::NamespacePtr& schema : Catalog()->ListNamespaces(s_.database_id))
      spaces.push_back(schema->id);
    // Tables first: a schema is dropped when it is empty.
    for (catalog::NamespaceId space : spaces) {
      std::vector<catalog::TablePtr> tables = Catalog()->ListTables(space);
      for (catalog::TablePtr& type : Catalog()->ListTypes(space)) {
        tables.push_back(std::move(type));
      }
      for (const catalog::TablePtr& listed : tables) {
        catalog::TablePtr table = Catalog()->GetTable(listed->id);
        if (table == nullptr) continue;
        const uint32_t owner = s_.OwnerOf(*table);
        if (owner == role) {
          ast::DropStmt drop;
          drop.object_type =
              table->kind == catalog::RelationKind::kType        ? ast::ObjectType::kType
              : table->kind == catalog::RelationKind::kCollation ? ast::ObjectType::kCollation
              : table->kind == catalog::RelationKind::kView      ? ast::ObjectType::kView
              : table->kind == catalog::RelationKind::kSequence  ? ast::ObjectType::kSequence
                                                                 : ast::ObjectType::kTable;
          // Sequences of columns go with their tables.
          if (table->sequence.owner_table.value != 0 &&
              Catalog()->GetTable(table->sequence.owner_table) != nullptr) {
            continue;
          }
          drop.cascade = cascade;
          ast::ObjectName object;
          object.parts = {s_.SchemaName(table->parent), table->name};
          drop.objects.push_back(std::move(object));
          CELLAR_TRY(DropObjects(drop));
          continue;
        }
        catalog::TableDescriptor next = *table;
        bool changed = TakeAll(role, owner, &next.acl);
        for (catalog::ColumnDescriptor& column : next.columns) {
          changed |= TakeAll(role, owner, &column.acl);
          column.acl.set = column.acl.set && !column.acl.items.empty();
        }
        if (changed) CELLAR_TRY(Editor().UpdateTable(std::move(next)).status());
      }
    }
    for (catalog::NamespaceId id : spaces) {
      catalog::NamespacePtr space = Catalog()->GetNamespace(id);
      if (id != s_.database_id && s_.OwnerOf(*space, false) == role) {
        ast::DropStmt drop;
        drop.object_type = ast::ObjectType::kSchema;
        drop.cascade = cascade;
        ast::ObjectName object;
        object.parts = {space->name};
        drop.objects.push_back(std::move(object));
        CELLAR_TRY(DropObjects(drop));
        continue;
      }
      catalog::NamespaceDescriptor next = *space;
      const size_t before = next.default_acls.size();
      next.default_acls.erase(
          std::remove_if(next.default_acls.begin(), next.default_acls.end(),
                         [&](const catalog::DefaultAcl& one) { return one.role == role; }),
          next.default_acls.end());
      bool changed = next.default_acls.size() != before;
      for (catalog::DefaultAcl& one : next.default_acls)
        changed |= TakeAll(role, one.role, &one.acl);
      if (id != s_.database_id) changed |= TakeAll(role, s_.OwnerOf(next, false), &next.acl);
      if (changed) CELLAR_TRY(Editor().UpdateNamespace(std::move(next)));
    }
  }
  return Status();
}

Status Ddl::Owned(const ast::OwnedStmt& statement) {
  std::vector<uint32_t> roles;
  for (const ast::RoleSpec& spec : statement.roles) {
    CELLAR_TRY_ASSIGN(const Role* role, FindRole(spec));
    if (!s_.HasPrivilegesOf(role->oid)) {
      return Denied("permission denied to {} objects", statement.reassign ? "reassign" : "drop");
    }
    if (role->oid == kBootstrapRole) {
      return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                      "cannot {} objects owned by role {} because they are required by the "
                      "database system",
                      statement.reassign ? "reassign ownership of" : "drop", role->name);
    }
    roles.push_back(role->oid);
  }
  if (!statement.reassign) return DropOwned(roles, statement.cascade);
  CELLAR_TRY_ASSIGN(const Role* owner, FindRole(statement.new_owner));
  if (!s_.HasPrivilegesOf(owner->oid)) return Denied("permission denied to reassign objects");
  return ReassignOwned(roles, owner->oid);
}

}  // namespace cellar::session
