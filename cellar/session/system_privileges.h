// Rows and functions about roles and grants. Private to this layer.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cellar/session/system_rows.h"

namespace cellar::session {

// False: no such table here.
bool GeneratePrivilegeRows(Session::Impl& session, const sql::VirtualTable& table, RowBatch* rows);
// Sets a column of type aclitem[].
void PutAcl(Session::Impl& session, std::string_view column,
            const std::vector<catalog::AclItem>& items, SystemRow* row);
// has_table_privilege and its kin, pg_has_role, acldefault; nullopt: another function.
std::optional<Result<Datum>> PrivilegeFunction(Session::Impl& session, std::string_view name,
                                               std::span<const Datum> args, Arena* arena);

}  // namespace cellar::session
