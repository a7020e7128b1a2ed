// Access control lists.
#include "cellar/session/acl.h"

#include <algorithm>
#include <array>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::session {
namespace {

struct Privilege {
  uint32_t bit;
  char letter;
  std::string_view name;
};
// In the order in which lists print them.
constexpr Privilege kPrivileges[] = {
    {kInsert, 'a', "INSERT"},   {kSelect, 'r', "SELECT"},         {kUpdate, 'w', "UPDATE"},
    {kDelete, 'd', "DELETE"},   {kTruncate, 'D', "TRUNCATE"},     {kReferences, 'x', "REFERENCES"},
    {kTrigger, 't', "TRIGGER"}, {kExecute, 'X', "EXECUTE"},       {kUsage, 'U', "USAGE"},
    {kCreate, 'C', "CREATE"},   {kDatabaseCreate, 'C', "CREATE"}, {kTemporary, 'T', "TEMPORARY"},
    {kConnect, 'c', "CONNECT"},
};

using Items = std::vector<catalog::AclItem>;

Items::iterator FindItem(uint32_t grantee, uint32_t grantor, Items* items) {
  return std::find_if(items->begin(), items->end(), [&](const catalog::AclItem& item) {
    return item.grantee == grantee && item.grantor == grantor;
  });
}

// Grant options that `role` has by itself, from anybody.
uint32_t OptionsOf(const Items& items, uint32_t role, uint32_t owner) {
  if (role == owner) return UINT32_MAX;
  uint32_t options = 0;
  for (const catalog::AclItem& item : items) {
    if (item.grantee == role) options |= item.grant_options;
  }
  return options;
}

Status TakeDependent(uint32_t grantor, uint32_t lost, uint32_t owner, bool cascade, Items* items) {
  if (grantor == owner) return Status();
  lost &= ~OptionsOf(*items, grantor, owner);  // somebody else gave it too
  if (lost == 0) return Status();
  for (size_t i = 0; i < items->size();) {
    const catalog::AclItem& item = (*items)[i];
    if (item.grantor != grantor || (item.privileges & lost) == 0) {
      ++i;
      continue;
    }
    if (!cascade) {
      return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                      "dependent privileges exist")
          .WithHint("Use CASCADE to revoke them too.");
    }
    catalog::AclItem gone = item;
    gone.privileges &= lost;
    gone.grant_options = gone.privileges;
    CELLAR_TRY(TakeGrant(gone, owner, cascade, items));
    i = 0;
  }
  return Status();
}

}  // namespace

uint32_t PrivilegesOf(char kind) {
  switch (kind) {
    case 'r': return kTablePrivileges;
    case 'c': return kColumnPrivileges;
    case 'S':
    case 's': return kSequencePrivileges;
    case 'n': return kSchemaPrivileges;
    case 'd': return kDatabasePrivileges;
    case 'f': return kExecute;
    case 'T': return kUsage;
    default: return 0;
  }
}

std::vector<catalog::AclItem> DefaultAclItems(char kind, uint32_t owner) {
  std::vector<catalog::AclItem> items;
  const uint32_t everybody = kind == 'd'   ? kTemporary | kConnect
                             : kind == 'f' ? kExecute
                             : kind == 'T' ? kUsage
                                           : 0;
  if (everybody != 0) items.push_back({0, owner, everybody, 0});
  if (kind != 'c') items.push_back({owner, owner, PrivilegesOf(kind), 0});
  return items;
}

std::string_view PrivilegeName(uint32_t bit) {
  for (const Privilege& one : kPrivileges) {
    if (one.bit == bit) return one.name;
  }
  return "";
}

uint32_t PrivilegeBit(std::string_view name, char kind) {
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  if (upper == "TEMP") upper = "TEMPORARY";
  for (const Privilege& one : kPrivileges) {
    if (one.name == upper && (PrivilegesOf(kind) & one.bit) != 0) return one.bit;
  }
  return 0;
}

std::string AclItemText(const catalog::AclItem& item, const RoleSet& roles) {
  auto put_role = [&](uint32_t oid, std::string* out) {
    const std::string name = roles.NameOf(oid);
    const bool plain = std::all_of(
        name.begin(), name.end(), [](unsigned char c) { return c == '_' || std::isalnum(c) != 0; });
    if (plain) {
      *out += name;
      return;
    }
    *out += '"';
    for (char c : name) {
      if (c == '"') *out += '"';
      *out += c;
    }
    *out += '"';
  };
  std::string out;
  if (item.grantee != 0) put_role(item.grantee, &out);
  out += '=';
  for (const Privilege& one : kPrivileges) {
    if ((item.privileges & one.bit) != 0) out += one.letter;
    if ((item.grant_options & one.bit) != 0) out += '*';
  }
  out += '/';
  put_role(item.grantor, &out);
  return out;
}

Held HeldIn(const Items& items, uint32_t role, uint32_t owner, const AclView& view) {
  Held held;
  for (const catalog::AclItem& item : items) {
    if (item.grantee != 0 && item.grantee != role &&
        !view.roles->HasPrivilegesOf(role, item.grantee, view.database_owner)) {
      continue;
    }
    held.privileges |= item.privileges;
    if (item.grantee != 0) held.options |= item.grant_options;
  }
  if (view.roles->HasPrivilegesOf(role, owner, view.database_owner)) held.options = UINT32_MAX;
  return held;
}

uint32_t BestGrantor(const Items& items, uint32_t role, uint32_t owner, uint32_t privileges,
                     const AclView& view, uint32_t* options) {
  if (view.roles->HasPrivilegesOf(role, owner, view.database_owner)) {
    *options = privileges;
    return owner;
  }
  uint32_t best = role;
  *options = OptionsOf(items, role, owner) & privileges;
  int count = __builtin_popcount(*options);
  for (const catalog::AclItem& item : items) {
    if (*options == privileges) break;
    if (item.grantee == 0 || item.grantee == role ||
        !view.roles->HasPrivilegesOf(role, item.grantee, view.database_owner)) {
      continue;
    }
    const uint32_t theirs = OptionsOf(items, item.grantee, owner) & privileges;
    if (__builtin_popcount(theirs) <= count) continue;
    best = item.grantee;
    *options = theirs;
    count = __builtin_popcount(theirs);
  }
  return best;
}

void AddGrant(const catalog::AclItem& item, Items* items) {
  auto at = FindItem(item.grantee, item.grantor, items);
  if (at == items->end()) {
    items->push_back(item);
    return;
  }
  at->privileges |= item.privileges;
  at->grant_options |= item.grant_options;
}

Status CheckCircular(const Items& items, const catalog::AclItem& item, uint32_t owner) {
  if (item.grantor == owner || item.grant_options == 0) return Status();
  // What the grantor may still pass on once the grantee's own options are gone.
  Items rest = items;
  for (size_t i = 0; i < rest.size();) {
    if (rest[i].grantee != item.grantee || rest[i].grant_options == 0) {
      ++i;
      continue;
    }
    catalog::AclItem gone = rest[i];
    gone.privileges = gone.grant_options;
    CELLAR_TRY(TakeGrant(gone, owner, true, &rest));
    i = 0;
  }
  if ((item.grant_options & ~OptionsOf(rest, item.grantor, owner)) == 0) return Status();
  return SqlError(Code::kInvalid, "0LP01",
                  "grant options cannot be granted back to your own grantor");
}

Status TakeGrant(const catalog::AclItem& item, uint32_t owner, bool cascade, Items* items) {
  auto at = FindItem(item.grantee, item.grantor, items);
  if (at == items->end()) return Status();
  const uint32_t options_before = at->grant_options;
  at->privileges &= ~item.privileges;
  at->grant_options &= ~item.grant_options;
  const uint32_t lost = options_before & ~at->grant_options;
  if (at->privileges == 0 && at->grant_options == 0) items->erase(at);
  if (lost == 0 || item.grantee == 0) return Status();
  return TakeDependent(item.grantee, lost, owner, cascade, items);
}

void ReplaceRole(uint32_t from, uint32_t to, Items* items) {
  Items old;
  old.swap(*items);
  for (catalog::AclItem item : old) {
    if (item.grantee == from) item.grantee = to;
    if (item.grantor == from) item.grantor = to;
    AddGrant(item, items);
  }
}

}  // namespace cellar::session
