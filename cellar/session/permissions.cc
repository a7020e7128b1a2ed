// Who may do what: the current role, what it has been granted, and the checks that every statement
// goes through.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {
namespace {

template <typename... Args>
Status Denied(fmt::format_string<Args...> format, Args&&... args) {
  return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege, format,
                  std::forward<Args>(args)...);
}

std::string_view KindName(const catalog::TableDescriptor& table) {
  switch (table.kind) {
    case catalog::RelationKind::kView: return "view";
    case catalog::RelationKind::kSequence: return "sequence";
    case catalog::RelationKind::kType: return "type";
    case catalog::RelationKind::kCollation: return "collation";
    default: return "table";
  }
}

Status NoRole(std::string_view name) {
  return SqlError(Code::kNotFound, sqlstate::kInvalidParameterValue, "role \"{}\" does not exist",
                  name);
}

}  // namespace

// ---- Who

const RoleSet& Session::Impl::Roles() const {
  return transaction != nullptr && transaction->roles != nullptr ? *transaction->roles : *roles;
}

void Session::Impl::FollowRoles() {
  const uint64_t published = db->roles->generation();
  if (published == roles_generation && settings.generation() == roles_settings_generation) return;
  if (published != roles_generation || roles == nullptr) {
    roles_generation = published;
    roles = db->roles->Current();
    ++access_epoch;
  }
  auto follow = [&](std::string_view setting, uint32_t fallback) {
    const std::string value = *settings.Get(setting);
    if (value.empty() || value == "none" || value == "default") return fallback;
    auto known = roles_set.find(value);
    if (known != roles_set.end()) return known->second;
    return Roles().OidOf(value);
  };
  const uint32_t session_before = session_oid, user_before = user_oid;
  session_oid = follow("session_authorization", login_oid);
  user_oid = follow("role", session_oid);
  if (session_before != session_oid || user_before != user_oid) ++access_epoch;
  const Role* session_role = Roles().FindByOid(session_oid);
  if (session_role != nullptr && session_role->name != session_user) {
    session_user = session_role->name;
    entry->SetUser(session_user);
  }
  if (const Role* role = Roles().FindByOid(user_oid)) user = role->name;
  const std::string superuser = IsSuperuser() ? "on" : "off";
  if (*settings.Get("is_superuser") != superuser)
    (void)settings.SetDefault("is_superuser", superuser);
  roles_settings_generation = settings.generation();
}

Status Session::Impl::CheckRoleSetting(std::string_view name, std::string_view value) {
  const bool authorization = name == "session_authorization";
  if (!authorization && value == "none") return Status();
  const Role* role = Roles().Find(value);
  if (role == nullptr) return NoRole(value);
  if (authorization) {
    if (role->oid != login_oid && !Roles().IsSuperuser(login_oid)) {
      return Denied("permission denied to set session authorization");
    }
  } else if (!Roles().IsMemberOf(session_oid, role->oid, DatabaseOwner())) {
    return Denied("permission denied to set role \"{}\"", value);
  }
  roles_set.insert_or_assign(std::string(value), role->oid);
  return Status();
}

uint32_t Session::Impl::DatabaseOwner() {
  catalog::NamespacePtr database = CurrentCatalog()->GetNamespace(database_id);
  return database == nullptr ? 0 : OwnerOf(*database, true);
}

uint32_t Session::Impl::OwnerOf(const catalog::NamespaceDescriptor& space, bool as_database) const {
  if (!as_database && space.parent == catalog::kRootNamespace) return kDatabaseOwnerRole;
  const uint32_t owner = Roles().OidOf(space.owner);
  // Databases that are older than owners.
  return owner == 0 && space.owner.empty() ? kBootstrapRole : owner;
}

// ---- What has been granted

std::vector<catalog::AclItem> Session::Impl::AclOf(const catalog::TableDescriptor& table) const {
  if (table.acl.set) return table.acl.items;
  const bool sequence = table.kind == catalog::RelationKind::kSequence;
  return DefaultAclItems(sequence ? 'S' : 'r', OwnerOf(table));
}

std::vector<catalog::AclItem> Session::Impl::AclOf(const catalog::NamespaceDescriptor& space,
                                                   bool as_database) const {
  const uint32_t mask = as_database ? kDatabasePrivileges : kSchemaPrivileges;
  if (space.acl.set) {
    std::vector<catalog::AclItem> items;
    for (catalog::AclItem item : space.acl.items) {
      item.privileges &= mask;
      item.grant_options &= mask;
      if (item.privileges != 0) items.push_back(item);
    }
    return items;
  }
  const uint32_t owner = OwnerOf(space, as_database);
  std::vector<catalog::AclItem> items = DefaultAclItems(as_database ? 'd' : 'n', owner);
  if (!as_database && space.parent == catalog::kRootNamespace) {
    items.push_back({0, owner, kUsage, 0});
  }
  return items;
}

Held Session::Impl::TableRights(const catalog::TableDescriptor& table, uint32_t role) {
  if (Roles().IsSuperuser(role)) return {UINT32_MAX, UINT32_MAX};
  Held held = HeldIn(AclOf(table), role, OwnerOf(table), View());
  const bool sequence = table.kind == catalog::RelationKind::kSequence;
  if ((held.privileges & kSelect) == 0 &&
      Roles().HasPrivilegesOf(role, kReadAllDataRole, DatabaseOwner())) {
    held.privileges |= kSelect;
  }
  const uint32_t writes = sequence ? kUpdate : kInsert | kUpdate | kDelete;
  if ((held.privileges & writes) != writes &&
      Roles().HasPrivilegesOf(role, kWriteAllDataRole, DatabaseOwner())) {
    held.privileges |= writes;
  }
  return held;
}

Held Session::Impl::ColumnRights(const catalog::TableDescriptor& table,
                                 const catalog::ColumnDescriptor& column, uint32_t role) {
  if (Roles().IsSuperuser(role)) return {UINT32_MAX, UINT32_MAX};
  if (!column.acl.set) return {};
  return HeldIn(column.acl.items, role, OwnerOf(table), View());
}

Held Session::Impl::SchemaRights(catalog::NamespaceId id, uint32_t role) {
  if (Roles().IsSuperuser(role) || (id == temporary_namespace && id.value != 0))
    return {UINT32_MAX, UINT32_MAX};
  catalog::NamespacePtr space = CurrentCatalog()->GetNamespace(id);
  if (space == nullptr) return {};
  Held held = HeldIn(AclOf(*space, false), role, OwnerOf(*space, false), View());
  if ((held.privileges & kUsage) == 0 &&
      (Roles().HasPrivilegesOf(role, kReadAllDataRole, DatabaseOwner()) ||
       Roles().HasPrivilegesOf(role, kWriteAllDataRole, DatabaseOwner()))) {
    held.privileges |= kUsage;
  }
  return held;
}

Held Session::Impl::DatabaseRights(const catalog::NamespaceDescriptor& database, uint32_t role) {
  if (Roles().IsSuperuser(role)) return {UINT32_MAX, UINT32_MAX};
  return HeldIn(AclOf(database, true), role, OwnerOf(database, true), View());
}

// ---- Checks

Status Session::Impl::CheckTable(const catalog::TableDescriptor& table, uint32_t privileges) {
  if ((TableRights(table, user_oid).privileges & privileges) != 0) return Status();
  return Denied("permission denied for {} {}", KindName(table), table.name);
}

Status Session::Impl::CheckSchema(catalog::NamespaceId id, uint32_t privileges) {
  if ((SchemaRights(id, user_oid).privileges & privileges) != 0) return Status();
  return Denied("permission denied for schema {}", SchemaName(id));
}

Status Session::Impl::CheckOwner(const catalog::TableDescriptor& table) {
  if (Owns(table)) return Status();
  return Denied("must be owner of {} {}", KindName(table), table.name);
}

Status Session::Impl::CheckOwner(const catalog::NamespaceDescriptor& space) {
  const bool database = space.parent == catalog::kRootNamespace;
  if (HasPrivilegesOf(OwnerOf(space, database))) return Status();
  return Denied("must be owner of {} {}", database ? "database" : "schema", space.name);
}

Status Session::Impl::CheckSequence(const catalog::TableDescriptor& sequence, uint32_t privileges) {
  // Asked for every row that takes a value.
  const uint64_t generation = CurrentCatalog()->generation();
  const bool usual = (privileges & kUsage) != 0;
  if (usual && allowed_sequence == sequence.id.value && allowed_sequence_generation == generation &&
      allowed_sequence_epoch == access_epoch) {
    return Status();
  }
  Status status = CheckTable(sequence, privileges);
  if (!status.ok()) {
    // Who may insert into a table may take values of its identity columns.
    catalog::TablePtr table = CurrentCatalog()->GetTable(sequence.sequence.owner_table);
    bool identity = false, inserts = false;
    for (size_t i = 0; table != nullptr && i < table->columns.size(); ++i) {
      const catalog::ColumnDescriptor& column = table->columns[i];
      if (column.dropped) continue;
      identity |= column.sequence == sequence.id && column.identity != catalog::Identity::kNone;
      inserts |= (ColumnRights(*table, column, user_oid).privileges & kInsert) != 0;
    }
    if (!identity || (privileges & kUsage) == 0) return status;
    inserts |= (TableRights(*table, user_oid).privileges & kInsert) != 0;
    if (!inserts) return status;
  }
  if (usual) {
    allowed_sequence = sequence.id.value;
    allowed_sequence_generation = generation;
    allowed_sequence_epoch = access_epoch;
  }
  return Status();
}

Status Session::Impl::CheckUse(const sql::RelationUse& use) {
  const uint32_t role = use.view != nullptr ? OwnerOf(*use.view) : user_oid;
  if (Roles().IsSuperuser(role)) return Status();
  const catalog::TableDescriptor& table = *use.relation;
  uint32_t wanted = 0;
  if (use.selects) wanted |= kSelect;
  if (use.inserts) wanted |= kInsert;
  if (use.updates) wanted |= kUpdate;
  if (use.deletes) wanted |= kDelete;
  const uint32_t missing = wanted & ~TableRights(table, role).privileges;
  if (missing == 0) return Status();
  auto columns_allow = [&](uint32_t privilege, const std::vector<catalog::ColumnId>& named) {
    if (named.empty()) {  // any column will do
      return std::any_of(table.columns.begin(), table.columns.end(),
                         [&](const catalog::ColumnDescriptor& column) {
                           return !column.dropped && !column.hidden &&
                                  (ColumnRights(table, column, role).privileges & privilege) != 0;
                         });
    }
    return std::all_of(named.begin(), named.end(), [&](catalog::ColumnId id) {
      const catalog::ColumnDescriptor* column = table.FindColumn(id);
      return column != nullptr &&
             (column->hidden || (ColumnRights(table, *column, role).privileges & privilege) != 0);
    });
  };
  const bool allowed = (missing & kDelete) == 0 &&
                       ((missing & kSelect) == 0 || columns_allow(kSelect, use.selected)) &&
                       ((missing & kInsert) == 0 || columns_allow(kInsert, use.inserted)) &&
                       ((missing & kUpdate) == 0 || columns_allow(kUpdate, use.updated));
  if (allowed) return Status();
  return Denied("permission denied for {} {}", KindName(table), table.name);
}

Status Session::Impl::CheckPlan(const sql::Plan& plan) {
  FollowRoles();
  const bool superuser = IsSuperuser();
  for (const sql::RelationUse& use : plan.uses) {
    if (superuser && use.view == nullptr) continue;
    CELLAR_TRY(CheckUse(use));
  }
  if (superuser) return Status();
  for (const sql::VirtualTable* table : plan.virtual_tables) {
    for (std::string_view secret :
         {"pg_authid", "pg_shadow", "pg_hba_file_rules", "pg_file_settings"}) {
      if (table->schema == "pg_catalog" && table->name == secret) {
        return Denied("permission denied for {} {}", secret == "pg_authid" ? "table" : "view",
                      table->name);
      }
    }
  }
  return Status();
}

Status Session::Impl::CheckPrepared(Prepared* prepared) {
  if (prepared->allowed) return Status();
  CELLAR_TRY(CheckPlan(*prepared->plan));
  prepared->allowed = true;
  return Status();
}

Status Session::Impl::CheckServerFile(bool reading) {
  if (HasPrivilegesOf(reading ? kReadServerFilesRole : kWriteServerFilesRole)) return Status();
  return Denied("must be superuser or have privileges of the {} role to COPY {} a file",
                reading ? "pg_read_server_files" : "pg_write_server_files", reading ? "from" : "to")
      .WithHint(
          "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.");
}

// ---- Login

Status Session::Impl::CheckLogin(const catalog::NamespaceDescriptor& database, bool is_in) {
  const Role* role = Roles().Find(options.user);
  if (role == nullptr) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidAuthorization, "role \"{}\" does not exist",
                    options.user);
  }
  if (!role->can_login) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidAuthorization,
                    "role \"{}\" is not permitted to log in", options.user);
  }
  if (role->superuser) return Status();
  if ((DatabaseRights(database, role->oid).privileges & kConnect) == 0) {
    return Denied("permission denied for database \"{}\"", database.name)
        .WithDetail("User does not have CONNECT privilege.");
  }
  if (role->connection_limit >= 0) {
    const auto open = static_cast<int64_t>(db->sessions.CountOfRole(role->oid));
    if (open - (is_in ? 1 : 0) >= role->connection_limit) {
      return SqlError(Code::kLimit, sqlstate::kTooManyConnections,
                      "too many connections for role \"{}\"", role->name);
    }
  }
  return Status();
}

Status Session::Impl::ApplyRoleSettings() {
  auto apply = [&](const std::vector<RoleSettings>& from, uint64_t database) {
    for (const RoleSettings& one : from) {
      if (one.database != database) continue;
      for (const auto& [name, value] : one.values) {
        // What has become invalid since it was stored must not keep people out.
        (void)settings.SetDefault(name, value);
      }
    }
  };
  const Role* role = Roles().FindByOid(login_oid);
  if (role == nullptr) return Status();
  apply(Roles().shared_settings, 0);
  apply(Roles().shared_settings, database_id.value);
  apply(role->settings, 0);
  apply(role->settings, database_id.value);
  return Status();
}

// ---- Changes of roles

Status Session::Impl::BeginRoleChange(std::shared_ptr<RoleSet>* changed) {
  CELLAR_TRY(EnsureTransaction(false));
  CELLAR_TRY(CheckWritable("ALTER ROLE"));
  if (transaction->roles != nullptr) {
    *changed = std::make_shared<RoleSet>(*transaction->roles);
    return Status();
  }
  CELLAR_TRY_ASSIGN(*changed, RoleStore::Read(transaction->kv.get()));
  ++(*changed)->version;
  return RoleStore::WriteShared(**changed, transaction->kv.get());
}

Status Session::Impl::WriteRole(Role role) {
  std::shared_ptr<RoleSet> changed;
  CELLAR_TRY(BeginRoleChange(&changed));
  std::string old_name;
  if (role.oid == 0) {
    role.oid = changed->next_oid++;
  } else if (const Role* before = changed->FindByOid(role.oid)) {
    old_name = before->name;
  }
  CELLAR_TRY(RoleStore::Write(role, old_name, transaction->kv.get()));
  CELLAR_TRY(RoleStore::WriteShared(*changed, transaction->kv.get()));
  changed->Put(std::move(role));
  transaction->roles = std::move(changed);
  ++access_epoch;
  roles_settings_generation = 0;
  return Status();
}

Status Session::Impl::EraseRole(const Role& role) {
  std::shared_ptr<RoleSet> changed;
  CELLAR_TRY(BeginRoleChange(&changed));
  CELLAR_TRY(RoleStore::Erase(role, transaction->kv.get()));
  changed->Remove(role.oid);
  transaction->roles = std::move(changed);
  ++access_epoch;
  return Status();
}

Status Session::Impl::WriteSharedSettings(std::vector<RoleSettings> changed_settings) {
  std::shared_ptr<RoleSet> changed;
  CELLAR_TRY(BeginRoleChange(&changed));
  changed->shared_settings = std::move(changed_settings);
  CELLAR_TRY(RoleStore::WriteShared(*changed, transaction->kv.get()));
  transaction->roles = std::move(changed);
  return Status();
}

}  // namespace cellar::session
