// What catalogs and functions say of roles and of what they have been granted.
#include "cellar/session/system_privileges.h"

#include <algorithm>
#include <set>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"
#include "cellar/types/array.h"

namespace cellar::session {
namespace {

using Items = std::vector<catalog::AclItem>;

// Bits of a list in the order in which privileges are listed.
template <typename Visit>
void EachPrivilege(uint32_t bits, Visit&& visit) {
  for (uint32_t bit = 1; bit <= kDatabaseCreate; bit <<= 1) {
    if ((bits & bit) != 0) visit(bit);
  }
}

class PrivilegeRows {
 public:
  PrivilegeRows(Session::Impl& session, const sql::VirtualTable& table, RowBatch* rows)
      : s_(session), table_(table), row_(table, rows), catalog_(session.CurrentCatalog()) {}

  bool Run() {
    struct Entry {
      std::string_view schema, name;
      void (PrivilegeRows::*make)();
    };
    static constexpr std::string_view kPg = "pg_catalog", kInfo = "information_schema";
    static constexpr Entry kEntries[] = {
        {kPg, "pg_auth_members", &PrivilegeRows::AuthMembers},
        {kPg, "pg_authid", &PrivilegeRows::Authid},
        {kPg, "pg_roles", &PrivilegeRows::Authid},
        {kPg, "pg_user", &PrivilegeRows::User},
        {kPg, "pg_shadow", &PrivilegeRows::User},
        {kPg, "pg_group", &PrivilegeRows::Group},
        {kPg, "pg_default_acl", &PrivilegeRows::DefaultAcl},
        {kPg, "pg_db_role_setting", &PrivilegeRows::RoleSetting},
        {kInfo, "table_privileges", &PrivilegeRows::TablePrivileges},
        {kInfo, "role_table_grants", &PrivilegeRows::TablePrivileges},
        {kInfo, "column_privileges", &PrivilegeRows::ColumnPrivileges},
        {kInfo, "role_column_grants", &PrivilegeRows::ColumnPrivileges},
        {kInfo, "usage_privileges", &PrivilegeRows::UsagePrivileges},
        {kInfo, "role_usage_grants", &PrivilegeRows::UsagePrivileges},
        {kInfo, "enabled_roles", &PrivilegeRows::EnabledRoles},
        {kInfo, "applicable_roles", &PrivilegeRows::ApplicableRoles},
        {kInfo, "administrable_role_authorizations", &PrivilegeRows::ApplicableRoles},
    };
    for (const Entry& entry : kEntries) {
      if (entry.schema != table_.schema || entry.name != table_.name) continue;
      (this->*entry.make)();
      return true;
    }
    return false;
  }

 private:
  const RoleSet& Roles() const { return s_.Roles(); }

  void Settings(std::string_view column,
                const std::vector<std::pair<std::string, std::string>>& settings) {
    if (settings.empty()) return;
    std::vector<std::string> texts;
    for (const auto& [name, value] : settings) texts.push_back(name + "=" + value);
    std::vector<Value> values;
    for (const std::string& text : texts)
      values.emplace_back(MakeType(TypeId::kText), Datum::Bytes(text));
    row_.Array(column, values);
  }
  void SettingsOf(const Role& role, std::string_view column) {
    for (const RoleSettings& one : role.settings) {
      if (one.database == 0) Settings(column, one.values);
    }
  }

  void Authid() {
    const bool secrets = table_.name == "pg_authid";
    for (const Role* role : Roles().List()) {
      row_.Int("oid", role->oid)
          .Text("rolname", role->name)
          .Bool("rolsuper", role->superuser)
          .Bool("rolinherit", role->inherit)
          .Bool("rolcreaterole", role->create_role)
          .Bool("rolcreatedb", role->create_db)
          .Bool("rolcanlogin", role->can_login)
          .Bool("rolreplication", role->replication)
          .Bool("rolbypassrls", role->bypass_rls)
          .Int("rolconnlimit", role->connection_limit);
      if (secrets) {
        row_.TextOrNull("rolpassword", role->verifier);
      } else {
        row_.Text("rolpassword", "********");
        SettingsOf(*role, "rolconfig");
      }
      if (role->valid_until_micros) row_.Int("rolvaliduntil", *role->valid_until_micros);
      row_.Emit();
    }
  }

  void User() {
    for (const Role* role : Roles().List()) {
      if (!role->can_login) continue;
      row_.Text("usename", role->name)
          .Int("usesysid", role->oid)
          .Bool("usecreatedb", role->create_db)
          .Bool("usesuper", role->superuser)
          .Bool("userepl", role->replication)
          .Bool("usebypassrls", role->bypass_rls);
      if (table_.name == "pg_shadow") {
        row_.TextOrNull("passwd", role->verifier);
      } else {
        row_.Text("passwd", "********");
      }
      if (role->valid_until_micros) row_.Int("valuntil", *role->valid_until_micros);
      SettingsOf(*role, "useconfig");
      row_.Emit();
    }
  }

  void Group() {
    for (const Role* role : Roles().List()) {
      if (role->can_login) continue;
      std::vector<int64_t> members;
      for (const Role* other : Roles().List()) {
        for (const Membership& one : other->member_of) {
          if (one.role == role->oid) members.push_back(other->oid);
        }
      }
      row_.Text("groname", role->name).Int("grosysid", role->oid).IntArray("grolist", members);
      row_.Emit();
    }
  }

  void AuthMembers() {
    for (const Role* role : Roles().List()) {
      for (const Membership& one : role->member_of) {
        row_.Int("roleid", one.role)
            .Int("member", role->oid)
            .Int("grantor", one.grantor)
            .Bool("admin_option", one.admin)
            .Emit();
      }
    }
  }

  std::vector<catalog::NamespacePtr> Namespaces() {
    std::vector<catalog::NamespacePtr> spaces = catalog_->ListNamespaces(s_.database_id);
    spaces.insert(spaces.begin(), catalog_->GetNamespace(s_.database_id));
    return spaces;
  }

  void DefaultAcl() {
    int64_t oid = kFirstUserRole;
    for (const catalog::NamespacePtr& space : Namespaces()) {
      for (const catalog::DefaultAcl& one : space->default_acls) {
        bool global = false;
        const char kind = DefaultLetterKind(one.object_type, &global);
        row_.Int("oid", ++oid)
            .Int("defaclrole", one.role)
            .Int("defaclnamespace", global ? 0 : s_.NamespaceOid(space->id))
            .Char("defaclobjtype", kind);
        PutAcl(s_, "defaclacl", one.acl.items, &row_);
        row_.Emit();
      }
    }
  }

  void RoleSetting() {
    auto emit = [&](const std::vector<RoleSettings>& settings, uint32_t role) {
      for (const RoleSettings& one : settings) {
        const uint64_t first = catalog::TableDescriptor::kFirstOid;
        row_.Int("setdatabase", one.database == 0 ? 0 : static_cast<int64_t>(one.database + first))
            .Int("setrole", role);
        Settings("setconfig", one.values);
        row_.Emit();
      }
    };
    emit(Roles().shared_settings, 0);
    for (const Role* role : Roles().List()) emit(role->settings, role->oid);
  }

  // ---- information_schema

  // Whether a grant is shown: it is from or to a role that the current one acts as. Grants to
  // PUBLIC are, but not in the views of what one's own roles have.
  bool Shown(const catalog::AclItem& item) {
    if (s_.HasPrivilegesOf(item.grantor)) return true;
    if (item.grantee == 0) return table_.name.substr(0, 5) != "role_";
    return s_.HasPrivilegesOf(item.grantee);
  }
  void Grant(const catalog::AclItem& item, uint32_t bit, uint32_t owner) {
    const bool grantable =
        (item.grant_options & bit) != 0 ||
        (item.grantee != 0 && Roles().HasPrivilegesOf(item.grantee, owner, s_.DatabaseOwner()));
    row_.Text("grantor", Roles().NameOf(item.grantor))
        .Text("grantee", item.grantee == 0 ? "PUBLIC" : Roles().NameOf(item.grantee))
        .Text("privilege_type", PrivilegeName(bit))
        .Text("is_grantable", grantable ? "YES" : "NO");
  }

  template <typename Visit>
  void EachRelation(Visit&& visit) {
    for (const catalog::NamespacePtr& space : Namespaces()) {
      if (space->name.substr(0, 8) == "pg_temp_" && space->id != s_.temporary_namespace) continue;
      for (const catalog::TablePtr& table : catalog_->ListTables(space->id)) visit(*table);
    }
  }

  void TablePrivileges() {
    EachRelation([&](const catalog::TableDescriptor& table) {
      if (table.kind == catalog::RelationKind::kSequence) return;
      for (const catalog::AclItem& item : s_.AclOf(table)) {
        if (!Shown(item)) continue;
        EachPrivilege(item.privileges & kTablePrivileges, [&](uint32_t bit) {
          Grant(item, bit, s_.OwnerOf(table));
          row_.Text("table_catalog", s_.database_name)
              .Text("table_schema", s_.SchemaName(table.parent))
              .Text("table_name", table.name)
              .Text("with_hierarchy", bit == kSelect ? "YES" : "NO")
              .Emit();
        });
      }
    });
    catalog::AclItem everybody{0, kBootstrapRole, kSelect, 0};
    if (!Shown(everybody)) return;
    for (const sql::VirtualTable* table : s_.db->system.All()) {
      if (table->name == "pg_authid" || table->name == "pg_shadow") continue;
      Grant(everybody, kSelect, kBootstrapRole);
      row_.Text("table_catalog", s_.database_name)
          .Text("table_schema", table->schema)
          .Text("table_name", table->name)
          .Text("with_hierarchy", "YES")
          .Emit();
    }
  }

  void ColumnPrivileges() {
    EachRelation([&](const catalog::TableDescriptor& table) {
      if (table.kind == catalog::RelationKind::kSequence) return;
      const Items whole = s_.AclOf(table);
      for (const Attribute& attribute : AttributesOf(table)) {
        const catalog::ColumnDescriptor& column = *attribute.column;
        if (column.dropped) continue;
        Items items;
        for (catalog::AclItem item : whole) {
          item.privileges &= kColumnPrivileges;
          item.grant_options &= kColumnPrivileges;
          if (item.privileges != 0) items.push_back(item);
        }
        for (const catalog::AclItem& item : column.acl.items) AddGrant(item, &items);
        for (const catalog::AclItem& item : items) {
          if (!Shown(item)) continue;
          EachPrivilege(item.privileges, [&](uint32_t bit) {
            Grant(item, bit, s_.OwnerOf(table));
            row_.Text("table_catalog", s_.database_name)
                .Text("table_schema", s_.SchemaName(table.parent))
                .Text("table_name", table.name)
                .Text("column_name", column.name)
                .Emit();
          });
        }
      }
    });
  }

  void UsagePrivileges() {
    EachRelation([&](const catalog::TableDescriptor& table) {
      if (table.kind != catalog::RelationKind::kSequence) return;
      for (const catalog::AclItem& item : s_.AclOf(table)) {
        if ((item.privileges & kUsage) == 0 || !Shown(item)) continue;
        Grant(item, kUsage, s_.OwnerOf(table));
        row_.Text("object_catalog", s_.database_name)
            .Text("object_schema", s_.SchemaName(table.parent))
            .Text("object_name", table.name)
            .Text("object_type", "SEQUENCE")
            .Emit();
      }
    });
  }

  void EnabledRoles() {
    for (const Role* role : Roles().List()) {
      if (s_.HasPrivilegesOf(role->oid)) row_.Text("role_name", role->name).Emit();
    }
  }

  void ApplicableRoles() {
    const bool administrable = table_.name != "applicable_roles";
    for (const Role* role : Roles().List()) {
      if (!s_.HasPrivilegesOf(role->oid)) continue;
      for (const Membership& one : role->member_of) {
        if (administrable && !one.admin) continue;
        row_.Text("grantee", role->name)
            .Text("role_name", Roles().NameOf(one.role))
            .Text("is_grantable", one.admin ? "YES" : "NO")
            .Emit();
      }
      if (!administrable && role->oid == s_.DatabaseOwner()) {
        row_.Text("grantee", role->name)
            .Text("role_name", Roles().NameOf(kDatabaseOwnerRole))
            .Text("is_grantable", "NO")
            .Emit();
      }
    }
  }

  Session::Impl& s_;
  const sql::VirtualTable& table_;
  SystemRow row_;
  catalog::SnapshotPtr catalog_;
};

// ---- has_..._privilege

struct Asked {
  uint32_t privileges = 0, options = 0;  // any of these
};

// "SELECT, INSERT WITH GRANT OPTION".
Result<Asked> ParseAsked(std::string_view text, char kind) {
  Asked asked;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, comma);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    std::string upper(word);
    for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    constexpr std::string_view kOption = " WITH GRANT OPTION";
    const bool option = upper.size() > kOption.size() &&
                        upper.compare(upper.size() - kOption.size(), kOption.size(), kOption) == 0;
    if (option) upper.resize(upper.size() - kOption.size());
    const uint32_t bit = PrivilegeBit(upper, kind);
    // RULE was one once, and is still taken.
    if (bit == 0 && !(kind == 'r' && upper == "RULE")) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "unrecognized privilege type: \"{}\"", word);
    }
    (option ? asked.options : asked.privileges) |= bit;
    if (comma == text.size()) return asked;
    text.remove_prefix(comma + 1);
  }
}

Datum Answer(const Held& held, const Asked& asked) {
  return Datum::Bool((held.privileges & asked.privileges) != 0 ||
                     (held.options & held.privileges & asked.options) != 0);
}

Result<Datum> HasRole(Session::Impl& s, uint32_t role, uint32_t of, std::string_view text) {
  const RoleSet& roles = s.Roles();
  if (roles.FindByOid(of) == nullptr) return Datum();
  bool answer = false;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string word(text.substr(0, comma));
    for (char& c : word) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    while (!word.empty() && word.front() == ' ') word.erase(0, 1);
    while (!word.empty() && word.back() == ' ') word.pop_back();
    if (word == "MEMBER") {
      answer |= roles.IsMemberOf(role, of, s.DatabaseOwner());
    } else if (word == "USAGE") {
      answer |= roles.HasPrivilegesOf(role, of, s.DatabaseOwner());
    } else if (word.substr(0, 6) == "MEMBER" || word.substr(0, 5) == "USAGE") {
      const std::string_view rest =
          std::string_view(word).substr(word.substr(0, 6) == "MEMBER" ? 6 : 5);
      if (rest != " WITH ADMIN OPTION" && rest != " WITH GRANT OPTION") break;
      answer |= roles.IsAdminOf(role, of, s.DatabaseOwner());
    } else {
      break;
    }
    if (comma == text.size()) return Datum::Bool(answer);
    text.remove_prefix(comma + 1);
  }
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                  "unrecognized privilege type: \"{}\"", text);
}

Datum AclArray(const std::vector<std::string>& items, Arena* arena) {
  ArrayBuilder builder(MakeType(TypeId::kAclitem));
  for (const std::string& item : items) builder.Add(Datum::Bytes(item));
  return Datum::Bytes(builder.Finish(arena, 1));
}

}  // namespace

void PutAcl(Session::Impl& session, std::string_view column, const Items& items, SystemRow* row) {
  std::vector<std::string> texts;
  for (const catalog::AclItem& item : items) texts.push_back(AclItemText(item, session.Roles()));
  std::vector<Value> values;
  for (const std::string& text : texts)
    values.emplace_back(MakeType(TypeId::kAclitem), Datum::Bytes(text));
  row->Array(column, values);
}

bool GeneratePrivilegeRows(Session::Impl& session, const sql::VirtualTable& table, RowBatch* rows) {
  return PrivilegeRows(session, table, rows).Run();
}

std::optional<Result<Datum>> PrivilegeFunction(Session::Impl& s, std::string_view name,
                                               std::span<const Datum> args, Arena* arena) {
  auto oid = [&](size_t i) { return static_cast<uint32_t>(args[i].int_value()); };
  if (name == "acldefault") {
    const char kind = static_cast<char>(args[0].int_value());
    if (PrivilegesOf(kind) == 0 && kind != 'l' && kind != 't' && kind != 'F' && kind != 'L') {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "unrecognized objtype abbreviation: {}", kind);
    }
    std::vector<std::string> texts;
    for (const catalog::AclItem& item : DefaultAclItems(kind, oid(1))) {
      if (item.privileges != 0) texts.push_back(AclItemText(item, s.Roles()));
    }
    return AclArray(texts, arena);
  }
  if (name == "database_oid") {  // what has_database_privilege asks before
    catalog::NamespacePtr database =
        s.CurrentCatalog()->FindNamespace(catalog::kRootNamespace, args[0].bytes());
    if (database == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kInvalidCatalogName,
                      "database \"{}\" does not exist", args[0].bytes());
    }
    return Datum::Int(database->oid());
  }
  if (name.substr(0, 4) != "has_" && name != "pg_has_role") return std::nullopt;
  // (role or NULL for the current one, object, [column name or NULL, number,] privilege)
  const uint32_t role = args[0].is_null() ? s.user_oid : oid(0);
  const std::string_view text = args.back().bytes();
  catalog::SnapshotPtr catalog = s.CurrentCatalog();
  auto answer = [&]() -> Result<Datum> {
    if (name == "pg_has_role") return HasRole(s, role, oid(1), text);
    if (name == "has_schema_privilege") {
      CELLAR_TRY_ASSIGN(Asked asked, ParseAsked(text, 'n'));
      if (oid(1) == kPgCatalogOid || oid(1) == kInformationSchemaOid) {
        return Answer(s.Roles().IsSuperuser(role) ? Held{UINT32_MAX, UINT32_MAX} : Held{kUsage, 0},
                      asked);
      }
      if (oid(1) == s.NamespaceOid(s.database_id))
        return Answer(s.SchemaRights(s.database_id, role), asked);
      for (const catalog::NamespacePtr& space : catalog->ListNamespaces(s.database_id)) {
        if (s.NamespaceOid(space->id) == oid(1))
          return Answer(s.SchemaRights(space->id, role), asked);
      }
      return Datum();
    }
    if (name == "has_database_privilege") {
      CELLAR_TRY_ASSIGN(Asked asked, ParseAsked(text, 'd'));
      for (const catalog::NamespacePtr& database :
           catalog->ListNamespaces(catalog::kRootNamespace)) {
        if (database->oid() == oid(1)) return Answer(s.DatabaseRights(*database, role), asked);
      }
      return Datum();
    }
    const bool sequence = name == "has_sequence_privilege";
    const bool column = name == "has_column_privilege";
    const bool any_column = name == "has_any_column_privilege";
    if (!sequence && !column && !any_column && name != "has_table_privilege")
      return Datum::Bool(true);  // functions, types and languages are everybody's
    CELLAR_TRY_ASSIGN(Asked asked, ParseAsked(text, sequence               ? 'S'
                                                    : column || any_column ? 'c'
                                                                           : 'r'));
    catalog::TablePtr table = catalog->GetTableByOid(oid(1));
    if (table == nullptr) {
      for (const sql::VirtualTable* system : s.db->system.All()) {
        if (system->oid != oid(1)) continue;
        const bool secret = system->name == "pg_authid" || system->name == "pg_shadow";
        return Answer(s.Roles().IsSuperuser(role) ? Held{UINT32_MAX, UINT32_MAX}
                      : secret                    ? Held{}
                                                  : Held{kSelect, 0},
                      asked);
      }
      return Datum();
    }
    if (sequence && table->kind != catalog::RelationKind::kSequence) {
      return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a sequence",
                      table->name);
    }
    const Held whole = s.TableRights(*table, role);
    Datum by_table = Answer(whole, asked);
    if ((!column && !any_column) || (any_column && by_table.bool_value())) return by_table;
    bool found = false;
    for (const Attribute& attribute : AttributesOf(*table)) {
      const catalog::ColumnDescriptor& one = *attribute.column;
      if (one.dropped) continue;
      if (column && !(args[2].is_null() ? attribute.number == args[3].int_value()
                                        : one.name == args[2].bytes())) {
        continue;
      }
      found = true;
      if (by_table.bool_value() || Answer(s.ColumnRights(*table, one, role), asked).bool_value())
        return Datum::Bool(true);
    }
    if (column && !found) {
      if (args[2].is_null()) return Datum();
      return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn,
                      "column \"{}\" of relation \"{}\" does not exist", args[2].bytes(),
                      table->name);
    }
    return Datum::Bool(false);
  };
  return answer();
}

}  // namespace cellar::session
