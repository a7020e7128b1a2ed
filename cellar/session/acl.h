// Access control lists: what privileges there are, and how grants add up and are taken back, as in
// PostgreSQL (manual 5.7). Not for other layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/catalog/descriptor.h"
#include "cellar/session/roles.h"

namespace cellar::session {

// Persisted (docs/formats/catalog.md).
inline constexpr uint32_t kInsert = 1 << 0, kSelect = 1 << 1, kUpdate = 1 << 2, kDelete = 1 << 3,
                          kTruncate = 1 << 4, kReferences = 1 << 5, kTrigger = 1 << 6,
                          kExecute = 1 << 7, kUsage = 1 << 8, kCreate = 1 << 9,
                          kTemporary = 1 << 10, kConnect = 1 << 11;
// CREATE on a database. Its descriptor is that of its schema public too, and one list holds what is
// granted on both.
inline constexpr uint32_t kDatabaseCreate = 1 << 12;

inline constexpr uint32_t kTablePrivileges =
    kInsert | kSelect | kUpdate | kDelete | kTruncate | kReferences | kTrigger;
inline constexpr uint32_t kColumnPrivileges = kInsert | kSelect | kUpdate | kReferences;
inline constexpr uint32_t kSequencePrivileges = kSelect | kUpdate | kUsage;
inline constexpr uint32_t kSchemaPrivileges = kUsage | kCreate;
inline constexpr uint32_t kDatabasePrivileges = kDatabaseCreate | kTemporary | kConnect;

// Kinds of objects by the letter that acldefault and pg_default_acl use: 'r' table, 'S' sequence,
// 'n' schema, 'd' database, 'c' column, 'f' function, 'T' type.
uint32_t PrivilegesOf(char kind);
// What nobody had to grant.
std::vector<catalog::AclItem> DefaultAclItems(char kind, uint32_t owner);

// "SELECT" of one bit; the bit of a name in any case, 0 when there is none for objects of this
// kind.
std::string_view PrivilegeName(uint32_t bit);
uint32_t PrivilegeBit(std::string_view name, char kind);

// "alice=arw*/bob", and "{...,...}" as type aclitem[] prints.
std::string AclItemText(const catalog::AclItem& item, const RoleSet& roles);

struct AclView {
  const RoleSet* roles;
  uint32_t database_owner;
};
// Which of `wanted` (and of `wanted_options`, as grant options) `role` has. The owner has every
// grant option. Superusers are not special here.
struct Held {
  uint32_t privileges = 0, options = 0;
};
Held HeldIn(const std::vector<catalog::AclItem>& items, uint32_t role, uint32_t owner,
            const AclView& view);
// As whom `role` grants: the owner when it may act as it, else the role of its own that holds most
// grant options of `privileges`, the owner of nothing last. *options is what that one may grant.
uint32_t BestGrantor(const std::vector<catalog::AclItem>& items, uint32_t role, uint32_t owner,
                     uint32_t privileges, const AclView& view, uint32_t* options);

void AddGrant(const catalog::AclItem& item, std::vector<catalog::AclItem>* items);
// 0LP01 when the grantor would have its option from the grantee.
Status CheckCircular(const std::vector<catalog::AclItem>& items, const catalog::AclItem& item,
                     uint32_t owner);
// Takes `item`'s privileges and options away, and with `cascade` what was granted on the strength
// of them. Error: 2BP01 without it.
Status TakeGrant(const catalog::AclItem& item, uint32_t owner, bool cascade,
                 std::vector<catalog::AclItem>* items);
// Every mention of `from` becomes `to`.
void ReplaceRole(uint32_t from, uint32_t to, std::vector<catalog::AclItem>* items);

}  // namespace cellar::session
