// Roles in memory and in the store (docs/formats/catalog.md).
#include "cellar/session/roles.h"

#include <algorithm>
#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/catalog/unreadable.h"
#include "cellar/codec/key.h"
#include "cellar/codec/sealed.h"

namespace cellar::session {
namespace {

std::string RecordKey(std::string_view name) {
  std::string key = codec::SystemPrefix("role");
  codec::AppendKeyText(name, &key);
  codec::FinishKey(&key);
  return key;
}

// ---- Records: lines of words; the last word of a line may hold anything but a line's end, which
// is escaped.

std::string Escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      ++i;
      out += text[i] == 'n' ? '\n' : text[i];
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string_view TakeWord(std::string_view* line) {
  const size_t end = std::min(line->find(' '), line->size());
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(std::min(end + 1, line->size()));
  return word;
}

template <typename T>
bool TakeNumber(std::string_view* line, T* out) {
  const std::string_view word = TakeWord(line);
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), *out);
  return !word.empty() && parsed.ec == std::errc() && parsed.ptr == word.data() + word.size();
}

void EncodeSettings(const std::vector<RoleSettings>& settings, std::string* out) {
  for (const RoleSettings& one : settings) {
    for (const auto& [name, value] : one.values) {
      *out += fmt::format("set {} {} {}\n", one.database, name, Escape(value));
    }
  }
}

bool DecodeSetting(std::string_view line, std::vector<RoleSettings>* settings) {
  uint64_t database = 0;
  if (!TakeNumber(&line, &database)) return false;
  const std::string name(TakeWord(&line));
  auto at = std::find_if(settings->begin(), settings->end(),
                         [&](const RoleSettings& one) { return one.database == database; });
  if (at == settings->end()) at = settings->insert(at, RoleSettings{database, {}});
  at->values.emplace_back(name, Unescape(line));
  return true;
}

struct Flag {
  const char* word;
  bool Role::*field;
};
constexpr Flag kFlags[] = {
    {"login", &Role::can_login},      {"superuser", &Role::superuser},
    {"createdb", &Role::create_db},   {"createrole", &Role::create_role},
    {"inherit", &Role::inherit},      {"replication", &Role::replication},
    {"bypassrls", &Role::bypass_rls},
};

std::string Encode(const Role& role) {
  // Programs that know no comments read the others as before.
  std::string out = fmt::format("{}\noid {}\nflags", role.comment.empty() ? '2' : '3', role.oid);
  for (const Flag& flag : kFlags) {
    if (role.*flag.field) out += fmt::format(" {}", flag.word);
  }
  out += '\n';
  if (role.connection_limit != -1) out += fmt::format("limit {}\n", role.connection_limit);
  if (role.valid_until_micros) out += fmt::format("until {}\n", *role.valid_until_micros);
  if (!role.verifier.empty()) out += fmt::format("verifier {}\n", Escape(role.verifier));
  for (const Membership& one : role.member_of) {
    out += fmt::format("member {} {} {}\n", one.role, one.grantor, one.admin ? 1 : 0);
  }
  EncodeSettings(role.settings, &out);
  if (!role.comment.empty()) out += fmt::format("comment {}\n", Escape(role.comment));
  return out;
}

constexpr std::string_view kFirstVersion = "1 ";
// Version 1, one line: "1 LOGIN SUPERUSER OID VERIFIER".
bool DecodeFirst(std::string_view bytes, Role* role) {
  unsigned login = 0, superuser = 0;
  if (TakeWord(&bytes) != "1" || !TakeNumber(&bytes, &login) || !TakeNumber(&bytes, &superuser) ||
      !TakeNumber(&bytes, &role->oid)) {
    return false;
  }
  role->can_login = login != 0;
  role->superuser = superuser != 0;
  role->verifier = bytes;
  if (role->oid == kBootstrapRole) role->create_db = role->create_role = true;
  return true;
}

// Calls visit(word, rest) for each line after the version. False: it does not read.
template <typename Visit>
bool EachLine(std::string_view bytes, Visit&& visit) {
  if (bytes.substr(0, 2) != "2\n" && bytes.substr(0, 2) != "3\n") return false;
  bytes.remove_prefix(2);
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) return false;
    std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    const std::string_view word = TakeWord(&line);
    if (!visit(word, line)) return false;
  }
  return true;
}

bool DecodeSecond(std::string_view bytes, Role* role) {
  role->inherit = false;
  return EachLine(bytes, [&](std::string_view word, std::string_view line) {
    if (word == "oid") return TakeNumber(&line, &role->oid);
    if (word == "limit") return TakeNumber(&line, &role->connection_limit);
    if (word == "until") return TakeNumber(&line, &role->valid_until_micros.emplace());
    if (word == "set") return DecodeSetting(line, &role->settings);
    if (word == "verifier") {
      role->verifier = Unescape(line);
      return true;
    }
    if (word == "comment") {
      role->comment = Unescape(line);
      return true;
    }
    if (word == "member") {
      Membership one;
      unsigned admin = 0;
      if (!TakeNumber(&line, &one.role) || !TakeNumber(&line, &one.grantor) ||
          !TakeNumber(&line, &admin)) {
        return false;
      }
      one.admin = admin != 0;
      role->member_of.push_back(one);
      return true;
    }
    if (word != "flags") return false;
    while (!line.empty()) {
      const std::string_view name = TakeWord(&line);
      const auto* flag = std::find_if(std::begin(kFlags), std::end(kFlags),
                                      [&](const Flag& one) { return name == one.word; });
      if (flag == std::end(kFlags)) return false;
      role->*flag->field = true;
    }
    return true;
  });
}

Result<Role> Decode(std::string_view name, std::string_view key, std::string_view value) {
  CELLAR_TRY_ASSIGN(const std::string_view bytes, codec::Unseal(key, value));
  Role role;
  role.name = name;
  const bool first = bytes.starts_with(kFirstVersion);
  if (!(first ? DecodeFirst(bytes, &role) : DecodeSecond(bytes, &role)) || role.oid == 0) {
    return CorruptionError("role record of \"{}\" does not read", name);
  }
  return role;
}

}  // namespace

// ---- RoleSet

RoleSet::RoleSet() {
  struct BuiltIn {
    uint32_t oid;
    const char* name;
  };
  constexpr BuiltIn kBuiltIn[] = {{kDatabaseOwnerRole, "pg_database_owner"},
                                  {kReadAllDataRole, "pg_read_all_data"},
                                  {kWriteAllDataRole, "pg_write_all_data"},
                                  {kMonitorRole, "pg_monitor"},
                                  {kReadAllSettingsRole, "pg_read_all_settings"},
                                  {kReadAllStatsRole, "pg_read_all_stats"},
                                  {3377, "pg_stat_scan_tables"},
                                  {kReadServerFilesRole, "pg_read_server_files"},
                                  {kWriteServerFilesRole, "pg_write_server_files"},
                                  {4571, "pg_execute_server_program"},
                                  {kSignalBackendRole, "pg_signal_backend"},
                                  {4544, "pg_checkpoint"}};
  for (const BuiltIn& one : kBuiltIn) {
    Role role;
    role.oid = one.oid;
    role.name = one.name;
    role.built_in = true;
    if (one.oid == kMonitorRole) {
      for (uint32_t group : {kReadAllSettingsRole, kReadAllStatsRole, uint32_t{3377}}) {
        role.member_of.push_back({group, kBootstrapRole, false});
      }
    }
    Put(std::move(role));
  }
}

void RoleSet::Put(Role role) {
  auto at = roles_.find(role.oid);
  if (at != roles_.end()) names_.erase(at->second.name);
  names_[role.name] = role.oid;
  roles_[role.oid] = std::move(role);
}

void RoleSet::Remove(uint32_t oid) {
  auto at = roles_.find(oid);
  if (at == roles_.end()) return;
  names_.erase(at->second.name);
  roles_.erase(at);
}

namespace {

Status UnreadableRole(std::string_view name) {
  return SqlError(Code::kCorruption, sqlstate::kDataCorrupted,
                  "the record of role \"{}\" is unreadable", name)
      .WithHint(
          "Other roles are not concerned. Its name and what it owns stay as they are; a backup has "
          "the record.");
}

}  // namespace

const Role* RoleSet::Find(std::string_view name) const {
  auto at = names_.find(name);
  if (at != names_.end()) return FindByOid(at->second);
  if (unreadable.contains(name)) catalog::NoteUnreadableMet(UnreadableRole(name));
  return nullptr;
}

const Role* RoleSet::FindByOid(uint32_t oid) const {
  auto at = roles_.find(oid);
  return at == roles_.end() ? nullptr : &at->second;
}

std::string RoleSet::NameOf(uint32_t oid) const {
  const Role* role = FindByOid(oid);
  return role == nullptr ? fmt::format("{}", oid) : role->name;
}

uint32_t RoleSet::OidOf(std::string_view name) const {
  auto at = names_.find(name);
  return at == names_.end() ? 0 : at->second;
}

std::vector<const Role*> RoleSet::List() const {
  std::vector<const Role*> list;
  for (const auto& [oid, role] : roles_) list.push_back(&role);
  return list;
}

bool RoleSet::IsSuperuser(uint32_t oid) const {
  const Role* role = FindByOid(oid);
  return role != nullptr && role->superuser;
}

std::vector<uint32_t> RoleSet::Closure(uint32_t start, Follow follow,
                                       uint32_t database_owner) const {
  std::vector<uint32_t> reached{start};
  for (size_t i = 0; i < reached.size(); ++i) {
    const Role* role = FindByOid(reached[i]);
    if (role == nullptr || (follow == Follow::kInheriting && !role->inherit)) continue;
    auto reach = [&](uint32_t oid) {
      if (std::find(reached.begin(), reached.end(), oid) == reached.end()) reached.push_back(oid);
    };
    for (const Membership& one : role->member_of) reach(one.role);
    if (role->oid == database_owner) reach(kDatabaseOwnerRole);
  }
  return reached;
}

bool RoleSet::HasPrivilegesOf(uint32_t role, uint32_t of, uint32_t database_owner) const {
  if (role == of || IsSuperuser(role)) return true;
  const std::vector<uint32_t> reached = Closure(role, Follow::kInheriting, database_owner);
  return std::find(reached.begin(), reached.end(), of) != reached.end();
}

bool RoleSet::IsGrantedMember(uint32_t role, uint32_t of, uint32_t database_owner) const {
  const std::vector<uint32_t> reached = Closure(role, Follow::kAll, database_owner);
  return std::find(reached.begin(), reached.end(), of) != reached.end();
}

bool RoleSet::IsMemberOf(uint32_t role, uint32_t of, uint32_t database_owner) const {
  return IsSuperuser(role) || IsGrantedMember(role, of, database_owner);
}

bool RoleSet::IsAdminOf(uint32_t role, uint32_t of, uint32_t database_owner) const {
  if (IsSuperuser(role)) return true;
  for (uint32_t oid : Closure(role, Follow::kAll, database_owner)) {
    const Role* member = FindByOid(oid);
    if (member == nullptr) continue;
    for (const Membership& one : member->member_of) {
      if (one.role == of && one.admin) return true;
    }
  }
  return false;
}

// ---- RoleStore

Result<std::shared_ptr<RoleSet>> RoleStore::Read(kv::Transaction* transaction) {
  auto roles = std::make_shared<RoleSet>();
  bool shared = false, lines = false;
  const std::string prefix = codec::SystemPrefix("role");
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    transaction->Scan(prefix, codec::PrefixEnd(prefix), kv::ScanOptions{}));
  kv::Block block;
  while (true) {
    CELLAR_TRY_ASSIGN(bool more, cursor->NextBlock(&block));
    if (!more) break;
    for (size_t i = 0; i < block.size(); ++i) {
      std::string_view key = block.key(i).substr(prefix.size());
      CELLAR_TRY_ASSIGN(std::string name, codec::TakeKeyText(&key));
      if (name.empty()) {
        shared = true;
        const Result<std::string_view> record = codec::Unseal(block.key(i), block.value(i));
        const bool reads =
            record.ok() && EachLine(*record, [&](std::string_view word, std::string_view line) {
              if (word == "version") return TakeNumber(&line, &roles->version);
              if (word == "next") {
                uint32_t next = 0;
                if (!TakeNumber(&line, &next)) return false;
                roles->next_oid = std::max(roles->next_oid, next);
                return true;
              }
              return word == "set" && DecodeSetting(line, &roles->shared_settings);
            });
        if (!reads) roles->unreadable.insert("");
        continue;
      }
      Result<Role> decoded = Decode(name, block.key(i), block.value(i));
      if (!decoded.ok()) {
        roles->unreadable.insert(std::move(name));
        continue;
      }
      Role role = std::move(decoded).value();
      const Result<std::string_view> content = codec::Unseal(block.key(i), block.value(i));
      lines = lines || (content.ok() && !content->starts_with(kFirstVersion));
      roles->next_oid = std::max(roles->next_oid, role.oid + 1);
      roles->Put(std::move(role));
    }
  }
  // Without it a new role would get the oid, and the grants, of one that was dropped. Programs that
  // wrote roles in one line wrote none.
  if (lines && !shared) roles->unreadable.insert("");
  // It is not written before it is changed.
  if (roles->FindByOid(kBootstrapRole) == nullptr && roles->Find("cellar") == nullptr &&
      !roles->unreadable.contains("cellar")) {
    Role first;
    first.name = "cellar";
    first.can_login = first.superuser = first.create_db = first.create_role = true;
    first.replication = first.bypass_rls = true;
    first.oid = kBootstrapRole;
    roles->Put(std::move(first));
  }
  return roles;
}

Status RoleStore::Load() { return Reload(); }

Status RoleStore::Reload() const {
  kv::TransactionOptions options;
  options.read_only = true;
  std::unique_ptr<kv::Transaction> reader = engine_->Begin(options);
  CELLAR_TRY_ASSIGN(std::shared_ptr<RoleSet> roles, Read(reader.get()));
  std::lock_guard lock(mutex_);
  if (current_ != nullptr && roles->version < current_->version) return Status();
  current_ = std::move(roles);
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return Status();
}

void RoleStore::Settle() const {
  if (doubt_.Settle(engine_) && !Reload().ok()) doubt_.Note(engine_);
}

RoleSetPtr RoleStore::Current() const {
  Settle();
  std::lock_guard lock(mutex_);
  return current_;
}

void RoleStore::Publish(RoleSetPtr roles) {
  std::lock_guard lock(mutex_);
  if (roles->version <= current_->version) return;
  current_ = std::move(roles);
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

Status RoleStore::Write(const Role& role, std::string_view old_name, kv::Transaction* transaction) {
  if (!old_name.empty() && old_name != role.name) {
    CELLAR_TRY(transaction->Delete(RecordKey(old_name)));
  }
  const std::string key = RecordKey(role.name);
  return transaction->Put(key, codec::Seal(key, Encode(role)));
}

Status RoleStore::Erase(const Role& role, kv::Transaction* transaction) {
  return transaction->Delete(RecordKey(role.name));
}

Status CheckRoleRecords(kv::Transaction* transaction, std::vector<std::string>* findings) {
  CELLAR_TRY_ASSIGN(const std::shared_ptr<RoleSet> roles, RoleStore::Read(transaction));
  for (const std::string& name : roles->unreadable) {
    findings->push_back(name.empty()
                            ? "the record that all roles share does not read"
                            : fmt::format("the record of role \"{}\" does not read", name));
  }
  return Status();
}

Status RoleStore::WriteShared(const RoleSet& roles, kv::Transaction* transaction) {
  if (roles.unreadable.contains("")) {
    return SqlError(Code::kCorruption, sqlstate::kDataCorrupted,
                    "the record that all roles share is unreadable");
  }
  std::string record = fmt::format("2\nversion {}\nnext {}\n", roles.version, roles.next_oid);
  EncodeSettings(roles.shared_settings, &record);
  const std::string key = RecordKey("");
  return transaction->Put(key, codec::Seal(key, record));
}

std::optional<Role> RoleStore::Find(std::string_view name) const {
  const RoleSetPtr roles = Current();
  const Role* role = roles->Find(name);
  return role == nullptr ? std::nullopt : std::optional(*role);
}

std::optional<Role> RoleStore::FindByOid(uint32_t oid) const {
  const RoleSetPtr roles = Current();
  const Role* role = roles->FindByOid(oid);
  return role == nullptr ? std::nullopt : std::optional(*role);
}

std::vector<Role> RoleStore::List() const {
  const RoleSetPtr roles = Current();
  std::vector<Role> list;
  for (const Role* role : roles->List()) list.push_back(*role);
  return list;
}

}  // namespace cellar::session
