// Roles, who is a member of which, and where they are kept. Not for other layers.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/kv/doubt.h"
#include "cellar/kv/engine.h"

namespace cellar::session {

// The first role of a store, and owner of what the system brings.
inline constexpr uint32_t kBootstrapRole = 10;
// Roles that are always there, under PostgreSQL's oids.
inline constexpr uint32_t kDatabaseOwnerRole = 6171, kReadAllDataRole = 6181,
                          kWriteAllDataRole = 6182, kMonitorRole = 3373,
                          kReadAllSettingsRole = 3374, kReadAllStatsRole = 3375,
                          kReadServerFilesRole = 4569, kWriteServerFilesRole = 4570,
                          kSignalBackendRole = 4200;
inline constexpr uint32_t kFirstUserRole = 16000;

struct Membership {
  uint32_t role = 0;  // the group
  uint32_t grantor = 0;
  bool admin = false;
};

// Values of settings for sessions in one database; database 0: in all. ALTER ROLE ... SET.
struct RoleSettings {
  uint64_t database = 0;  // namespace id
  std::vector<std::pair<std::string, std::string>> values;
};

struct Role {
  std::string name;
  uint32_t oid = 0;
  bool can_login = false;
  bool superuser = false;
  bool create_db = false;
  bool create_role = false;
  bool inherit = true;
  bool replication = false;
  bool bypass_rls = false;
  bool built_in = false;                      // not in the store, cannot be changed
  int connection_limit = -1;                  // -1: none
  std::optional<int64_t> valid_until_micros;  // of its password, since 2000-01-01 UTC
  std::string verifier;                       // SCRAM-SHA-256$..., empty: no password
  std::vector<Membership> member_of;
  std::vector<RoleSettings> settings;
  std::string comment;
};

// All roles at one moment. Immutable once shared.
class RoleSet {
 public:
  RoleSet();
  const Role* Find(std::string_view name) const;
  const Role* FindByOid(uint32_t oid) const;
  // The name, or the oid's digits when there is no such role (any more).
  std::string NameOf(uint32_t oid) const;
  uint32_t OidOf(std::string_view name) const;  // 0: none
  std::vector<const Role*> List() const;        // by oid
  // Whether `role` may do what `of` may: it is `of`, a superuser, or a member through roles that
  // inherit. `database_owner` is what pg_database_owner stands for.
  bool HasPrivilegesOf(uint32_t role, uint32_t of, uint32_t database_owner) const;
  // Whether it may become `of` with SET ROLE.
  bool IsMemberOf(uint32_t role, uint32_t of, uint32_t database_owner) const;
  // As IsMemberOf, but what superusers may do does not count.
  bool IsGrantedMember(uint32_t role, uint32_t of, uint32_t database_owner) const;
  // Whether it may grant membership in `of`.
  bool IsAdminOf(uint32_t role, uint32_t of, uint32_t database_owner) const;
  bool IsSuperuser(uint32_t role) const;

  uint64_t version = 0;
  uint32_t next_oid = kFirstUserRole;
  std::vector<RoleSettings> shared_settings;  // of all roles
  // Roles whose records do not read: nobody is one of them, and their names are taken. "": the
  // record that all share, without which roles are not changed.
  std::set<std::string, std::less<>> unreadable;
  void Put(Role role);  // by oid; a changed name is followed
  void Remove(uint32_t oid);

 private:
  enum class Follow : uint8_t { kAll, kInheriting };
  std::vector<uint32_t> Closure(uint32_t role, Follow follow, uint32_t database_owner) const;
  std::map<uint32_t, Role> roles_;
  std::map<std::string, uint32_t, std::less<>> names_;
};
using RoleSetPtr = std::shared_ptr<const RoleSet>;

// The committed roles, kept in the store under the system word "role". Thread-safe. roles.cc.
class RoleStore {
 public:
  explicit RoleStore(kv::Engine* engine) : engine_(engine) {}
  // Reads all; makes the superuser `cellar` when there is none.
  Status Load();
  RoleSetPtr Current() const;
  // Grows with each published change.
  uint64_t generation() const {
    Settle();
    return generation_.load(std::memory_order_acquire);
  }
  // After the commit of a transaction that wrote `roles`.
  void Publish(RoleSetPtr roles);
  // After one of unknown outcome: all are read again once it is known.
  void NoteUnknown() { doubt_.Note(engine_); }

  // All roles as a transaction sees them.
  static Result<std::shared_ptr<RoleSet>> Read(kv::Transaction* transaction);
  // Writes one role; `old_name` when it had another. WriteShared goes with every change: two
  // transactions that change roles conflict.
  static Status Write(const Role& role, std::string_view old_name, kv::Transaction* transaction);
  static Status Erase(const Role& role, kv::Transaction* transaction);
  static Status WriteShared(const RoleSet& roles, kv::Transaction* transaction);

  std::optional<Role> Find(std::string_view name) const;
  std::optional<Role> FindByOid(uint32_t oid) const;
  std::vector<Role> List() const;

 private:
  Status Reload() const;
  // Reads all again when what was noted as unknown is known.
  void Settle() const;

  kv::Engine* engine_;
  mutable kv::Doubt doubt_;
  mutable std::mutex mutex_;
  mutable RoleSetPtr current_;
  mutable std::atomic<uint64_t> generation_{1};
};

// CHECK of the records of roles: a finding, in words, for each that does not read.
Status CheckRoleRecords(kv::Transaction* transaction, std::vector<std::string>* findings);

}  // namespace cellar::session
