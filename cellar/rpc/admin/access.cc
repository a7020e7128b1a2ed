// Roles and grants.
#include <algorithm>
#include <map>

#include "cellar/base/sqlstate.h"
#include "cellar/rpc/admin/handlers.h"
#include "cellar/rpc/admin/messages.h"
#include "cellar/rpc/admin/statements.h"

namespace cellar::rpc::admin {
namespace {

bool IsTrue(const std::optional<std::string>& text) { return text && *text == "t"; }

Status AnswerRoles(AdminCall* call, const std::string& name, std::vector<v1::Role>* roles) {
  std::string text =
      "SELECT r.rolname, r.rolcanlogin, r.rolsuper, r.rolcreatedb, r.rolcreaterole, r.rolinherit, "
      "r.rolconnlimit, g.rolname FROM pg_catalog.pg_roles r LEFT JOIN "
      "pg_catalog.pg_auth_members m ON m.member = r.oid LEFT JOIN pg_catalog.pg_roles g ON g.oid = "
      "m.roleid";
  if (!name.empty()) text += " WHERE r.rolname = " + QuoteLiteral(name);
  CELLAR_TRY_ASSIGN(const TextRows rows, call->Query(text + " ORDER BY r.rolname, g.rolname"));
  for (const auto& row : rows) {
    if (roles->empty() || roles->back().name() != *row[0]) {
      v1::Role& role = roles->emplace_back();
      role.set_name(*row[0]);
      role.set_can_login(IsTrue(row[1]));
      role.set_superuser(IsTrue(row[2]));
      role.set_create_namespaces(IsTrue(row[3]));
      role.set_create_roles(IsTrue(row[4]));
      role.set_inherit(IsTrue(row[5]));
      role.set_connection_limit(static_cast<int32_t>(NumberOf(row[6])));
    }
    if (row[7]) roles->back().add_member_of(*row[7]);
  }
  return Status();
}

Status AnswerRole(AdminCall* call, const std::string& name, v1::Role* answer) {
  std::vector<v1::Role> roles;
  CELLAR_TRY(AnswerRoles(call, name, &roles));
  if (roles.empty()) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "role \"{}\" does not exist",
                    name);
  }
  *answer = std::move(roles.front());
  return Status();
}

std::string RoleOptions(const v1::Role& role, const std::set<std::string>& paths) {
  std::string out;
  const auto add = [&](const char* path, bool value, const char* word) {
    if (paths.contains(path)) out += std::string(value ? " " : " NO") + word;
  };
  add("can_login", role.can_login(), "LOGIN");
  add("superuser", role.superuser(), "SUPERUSER");
  add("create_namespaces", role.create_namespaces(), "CREATEDB");
  add("create_roles", role.create_roles(), "CREATEROLE");
  add("inherit", role.inherit(), "INHERIT");
  if (paths.contains("connection_limit")) {
    out += fmt::format(" CONNECTION LIMIT {}", role.connection_limit());
  }
  if (paths.contains("password")) {
    out += " PASSWORD " + (role.password().empty() ? "NULL" : QuoteLiteral(role.password()));
  }
  return out;
}

// Words alone: what is no privilege is for the server to say, but it must be one.
Result<std::string> PrivilegeList(const v1::Grant& grant) {
  std::vector<std::string> parts;
  for (const std::string& privilege : grant.privileges()) {
    const bool words = std::all_of(privilege.begin(), privilege.end(), [](char c) {
      return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == ' ';
    });
    if (!words || privilege.empty()) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "unrecognized privilege type")
          .WithDetail(fmt::format("It is \"{}\".", privilege));
    }
    parts.push_back(privilege);
    if (!grant.column().empty()) parts.back() += " (" + QuoteIdentifier(grant.column()) + ")";
  }
  if (parts.empty()) return BadRequest("the request names no privilege");
  return Join(parts);
}

std::string RoleName(const std::string& name) {
  return name == "public" ? "PUBLIC" : QuoteIdentifier(name);
}

std::string OnWhat(const Named& named) {
  // GRANT knows views as tables.
  const std::string keyword =
      named.kind == v1::OBJECT_KIND_VIEW ? std::string("TABLE") : named.Keyword();
  return keyword + " " + named.Name();
}

Status AnswerGrants(AdminCall* call, const Named& named, v1::ListGrantsResponse* answer) {
  if (named.kind == v1::OBJECT_KIND_NAMESPACE) {
    CELLAR_TRY_ASSIGN(const catalog::NamespacePtr space, call->FindNamespace(named.place));
    answer->set_owner(space->owner);
  } else {
    CELLAR_TRY_ASSIGN(const catalog::TablePtr table, call->FindRelation(named.place));
    answer->set_owner(table->owner);
  }
  const std::string exploded =
      "SELECT CASE WHEN x.grantee = 0 THEN 'public' ELSE pg_get_userbyid(x.grantee) END, "
      "pg_get_userbyid(x.grantor), x.is_grantable, x.privilege_type, {0} FROM "
      "pg_catalog.{1} o, aclexplode(o.{2}) x WHERE o.{3} = {4}";
  std::string text;
  if (named.kind != v1::OBJECT_KIND_NAMESPACE) {
    text = fmt::format(fmt::runtime(exploded), "''::text", "pg_class", "relacl", "oid", named.oid) +
           " UNION ALL " +
           fmt::format(fmt::runtime(exploded), "o.attname::text", "pg_attribute", "attacl",
                       "attrelid", named.oid);
  } else if (named.database()) {
    text =
        fmt::format(fmt::runtime(exploded), "''::text", "pg_database", "datacl", "oid", named.oid);
  } else {
    text =
        fmt::format(fmt::runtime(exploded), "''::text", "pg_namespace", "nspacl", "oid", named.oid);
  }
  CELLAR_TRY_ASSIGN(const TextRows rows, call->Query(text));
  std::map<std::tuple<std::string, std::string, std::string, bool>, v1::Grant*> grants;
  for (const auto& row : rows) {
    const std::string role = row[0].value_or(""), grantor = row[1].value_or("");
    const std::string column = row[4].value_or("");
    v1::Grant*& grant = grants[{column, role, grantor, IsTrue(row[2])}];
    if (grant == nullptr) {
      grant = answer->add_grants();
      grant->set_role(role);
      grant->set_grantor(grantor);
      grant->set_with_grant_option(IsTrue(row[2]));
      grant->set_column(column);
    }
    grant->add_privileges(row[3].value_or(""));
  }
  return Status();
}

}  // namespace

Status CreateRole(AdminCall* call, const v1::CreateRoleRequest& request, v1::Role* answer) {
  const v1::Role& role = request.role();
  if (!role.comment().empty()) return UnsupportedError("comments on roles");
  CELLAR_TRY(call->Enter(""));
  std::set<std::string> paths = {"can_login", "superuser", "create_namespaces", "create_roles",
                                 "inherit"};
  if (role.connection_limit() != 0) paths.insert("connection_limit");
  if (!role.password().empty()) paths.insert("password");
  std::string text = "CREATE ROLE " + QuoteIdentifier(role.name()) + RoleOptions(role, paths);
  if (!role.member_of().empty()) text += " IN ROLE " + NameList(role.member_of());
  CELLAR_TRY(call->Run(text));
  return AnswerRole(call, role.name(), answer);
}

Status UpdateRole(AdminCall* call, const v1::UpdateRoleRequest& request, v1::Role* answer) {
  const v1::Role& role = request.role();
  CELLAR_TRY_ASSIGN(
      const std::set<std::string> paths,
      UpdatePaths(request.update_mask(), role,
                  {"name", "can_login", "superuser", "create_namespaces", "create_roles", "inherit",
                   "connection_limit", "member_of", "password"}));
  CELLAR_TRY(call->Enter(""));
  const std::string name = QuoteIdentifier(request.name());
  std::vector<std::string> statements;
  const std::string options = RoleOptions(role, paths);
  if (!options.empty()) statements.push_back("ALTER ROLE " + name + options);
  if (paths.contains("member_of")) {
    v1::Role before;
    CELLAR_TRY(AnswerRole(call, request.name(), &before));
    const auto has = [](const v1::Role& of, const std::string& group) {
      return std::find(of.member_of().begin(), of.member_of().end(), group) != of.member_of().end();
    };
    for (const std::string& group : role.member_of()) {
      if (has(before, group)) continue;
      statements.push_back("GRANT " + QuoteIdentifier(group) + " TO " + name);
    }
    for (const std::string& group : before.member_of()) {
      if (has(role, group)) continue;
      statements.push_back("REVOKE " + QuoteIdentifier(group) + " FROM " + name);
    }
  }
  std::string now = request.name();
  if (paths.contains("name") && role.name() != now) {
    now = role.name();
    statements.push_back("ALTER ROLE " + name + " RENAME TO " + QuoteIdentifier(now));
  }
  CELLAR_TRY(call->RunAll(statements));
  return AnswerRole(call, now, answer);
}

Status DropRole(AdminCall* call, const v1::DropRoleRequest& request, v1::Empty*) {
  CELLAR_TRY(call->Enter(""));
  return call->Run(std::string("DROP ROLE ") + (request.if_exists() ? "IF EXISTS " : "") +
                   QuoteIdentifier(request.name()));
}

Status ListRoles(AdminCall* call, const v1::ListRolesRequest&, v1::ListRolesResponse* answer) {
  CELLAR_TRY(call->Enter(""));
  std::vector<v1::Role> roles;
  CELLAR_TRY(AnswerRoles(call, "", &roles));
  for (v1::Role& role : roles) answer->add_roles()->Swap(&role);
  return Status();
}

Status ListGrants(AdminCall* call, const v1::ListGrantsRequest& request,
                  v1::ListGrantsResponse* answer) {
  CELLAR_TRY_ASSIGN(const Named named, Resolve(call, request.path(), request.kind()));
  return AnswerGrants(call, named, answer);
}

Status GrantPrivileges(AdminCall* call, const v1::GrantRequest& request,
                       v1::ListGrantsResponse* answer) {
  CELLAR_TRY_ASSIGN(const std::string privileges, PrivilegeList(request.grant()));
  CELLAR_TRY_ASSIGN(const Named named, Resolve(call, request.path(), request.kind()));
  std::string text =
      "GRANT " + privileges + " ON " + OnWhat(named) + " TO " + RoleName(request.grant().role());
  if (request.grant().with_grant_option()) text += " WITH GRANT OPTION";
  CELLAR_TRY(call->Run(text));
  return AnswerGrants(call, named, answer);
}

Status RevokePrivileges(AdminCall* call, const v1::RevokeRequest& request,
                        v1::ListGrantsResponse* answer) {
  CELLAR_TRY_ASSIGN(const std::string privileges, PrivilegeList(request.grant()));
  CELLAR_TRY_ASSIGN(const Named named, Resolve(call, request.path(), request.kind()));
  std::string text = "REVOKE ";
  if (request.only_grant_option()) text += "GRANT OPTION FOR ";
  text += privileges + " ON " + OnWhat(named) + " FROM " + RoleName(request.grant().role());
  if (request.cascade()) text += " CASCADE";
  CELLAR_TRY(call->Run(text));
  return AnswerGrants(call, named, answer);
}

}  // namespace cellar::rpc::admin
