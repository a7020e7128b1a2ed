// Roles and their SCRAM-SHA-256 verifiers (RFC 5802, RFC 7677; PostgreSQL manual 53.11 for the
// stored form).
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <unicode/usprep.h>
#include <unicode/ustring.h>

#include "cellar/base/sqlstate.h"
#include "cellar/codec/key.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {
namespace {

constexpr int kIterations = 4096;
constexpr size_t kSaltBytes = 16;
constexpr size_t kHashBytes = 32;

std::string RecordKey(std::string_view name) {
  std::string key = codec::SystemPrefix("role");
  codec::AppendKeyText(name, &key);
  codec::FinishKey(&key);
  return key;
}

// One line of text: login, superuser, oid, verifier. docs/formats/catalog.md.
std::string Encode(const Role& role) {
  return fmt::format("1 {} {} {} {}", role.can_login ? 1 : 0, role.superuser ? 1 : 0, role.oid,
                     role.verifier);
}

Result<Role> Decode(std::string_view name, std::string_view bytes) {
  Role role;
  role.name = name;
  unsigned login = 0, superuser = 0;
  std::string text(bytes);
  int consumed = 0;
  if (std::sscanf(text.c_str(), "1 %u %u %u %n", &login, &superuser, &role.oid, &consumed) != 3 ||
      consumed == 0) {
    return CorruptionError("role record of \"{}\" does not read", name);
  }
  role.can_login = login != 0;
  role.superuser = superuser != 0;
  role.verifier = text.substr(static_cast<size_t>(consumed));
  return role;
}

std::string Base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(length));
  return out;
}

std::string Hmac(std::string_view key, std::string_view data) {
  std::string out(kHashBytes, '\0');
  unsigned length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(data.data()), data.size(),
       reinterpret_cast<unsigned char*>(out.data()), &length);
  return out;
}

std::string Sha256(std::string_view data) {
  std::string out(kHashBytes, '\0');
  unsigned length = 0;
  EVP_Digest(data.data(), data.size(), reinterpret_cast<unsigned char*>(out.data()), &length,
             EVP_sha256(), nullptr);
  return out;
}

// RFC 4013, as clients apply it to what is typed: non-ASCII spaces become blanks, the rest NFKC.
// What it forbids stays as it is, as in PostgreSQL.
std::string SaslPrep(std::string_view password) {
  const auto size = static_cast<int32_t>(password.size());
  UErrorCode error = U_ZERO_ERROR;
  std::u16string source(password.size() + 1, u'\0');
  int32_t source_size = 0;
  u_strFromUTF8(source.data(), static_cast<int32_t>(source.size()), &source_size, password.data(),
                size, &error);
  std::unique_ptr<UStringPrepProfile, decltype(&usprep_close)> profile(
      usprep_openByType(USPREP_RFC4013_SASLPREP, &error), &usprep_close);
  // A character may become up to 18 when it is decomposed.
  std::u16string prepared(static_cast<size_t>(source_size) * 18 + 1, u'\0');
  const int32_t prepared_size =
      usprep_prepare(profile.get(), source.data(), source_size, prepared.data(),
                     static_cast<int32_t>(prepared.size()), USPREP_DEFAULT, nullptr, &error);
  std::string out(prepared.size() * 3, '\0');
  int32_t out_size = 0;
  u_strToUTF8(out.data(), static_cast<int32_t>(out.size()), &out_size, prepared.data(),
              prepared_size, &error);
  if (U_FAILURE(error)) return std::string(password);
  out.resize(static_cast<size_t>(out_size));
  return out;
}

}  // namespace

Result<std::string> MakePasswordVerifier(std::string_view clear_password) {
  if (clear_password.substr(0, 14) == "SCRAM-SHA-256$") return std::string(clear_password);
  const std::string password = SaslPrep(clear_password);
  if (password.empty()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "password must not be empty");
  }
  std::string salt(kSaltBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(salt.data()), static_cast<int>(salt.size())) !=
      1) {
    return InternalError("no random bytes for a salt");
  }
  std::string salted(kHashBytes, '\0');
  PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()),
                    reinterpret_cast<const unsigned char*>(salt.data()),
                    static_cast<int>(salt.size()), kIterations, EVP_sha256(),
                    static_cast<int>(salted.size()),
                    reinterpret_cast<unsigned char*>(salted.data()));
  const std::string stored = Sha256(Hmac(salted, "Client Key"));
  const std::string server = Hmac(salted, "Server Key");
  return fmt::format("SCRAM-SHA-256${}:{}${}:{}", kIterations, Base64(salt), Base64(stored),
                     Base64(server));
}

Status RoleStore::Load() {
  std::lock_guard lock(mutex_);
  roles_.clear();
  kv::TransactionOptions options;
  options.read_only = true;
  {
    std::unique_ptr<kv::Transaction> reader = engine_->Begin(options);
    const std::string prefix = codec::SystemPrefix("role");
    CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                      reader->Scan(prefix, codec::PrefixEnd(prefix), kv::ScanOptions{}));
    kv::Block block;
    while (true) {
      CELLAR_TRY_ASSIGN(bool more, cursor->NextBlock(&block));
      if (!more) break;
      for (size_t i = 0; i < block.size(); ++i) {
        std::string_view key = block.key(i).substr(prefix.size());
        CELLAR_TRY_ASSIGN(std::string name, codec::TakeKeyText(&key));
        CELLAR_TRY_ASSIGN(Role role, Decode(name, block.value(i)));
        next_oid_ = std::max(next_oid_, role.oid + 1);
        roles_[name] = std::move(role);
      }
    }
  }
  if (!roles_.empty()) return Status();
  Role first;
  first.name = "cellar";
  first.superuser = true;
  first.oid = 10;
  roles_[first.name] = first;
  return Status();
}

std::optional<Role> RoleStore::Find(std::string_view name) {
  std::lock_guard lock(mutex_);
  auto at = roles_.find(name);
  return at == roles_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<Role> RoleStore::FindByOid(uint32_t oid) {
  std::lock_guard lock(mutex_);
  for (const auto& [name, role] : roles_) {
    if (role.oid == oid) return role;
  }
  return std::nullopt;
}

std::vector<Role> RoleStore::List() {
  std::lock_guard lock(mutex_);
  std::vector<Role> list;
  for (const auto& [name, role] : roles_) list.push_back(role);
  return list;
}

Status RoleStore::Create(Role role) {
  std::lock_guard lock(mutex_);
  if (roles_.count(role.name) != 0) {
    return SqlError(Code::kExists, sqlstate::kDuplicateObject, "role \"{}\" already exists",
                    role.name);
  }
  role.oid = std::max<uint32_t>(next_oid_, 16000);
  std::unique_ptr<kv::Transaction> writer = engine_->Begin();
  CELLAR_TRY(writer->Put(RecordKey(role.name), Encode(role)));
  CELLAR_TRY(writer->Commit().status());
  next_oid_ = role.oid + 1;
  roles_[role.name] = role;
  return Status();
}

Status RoleStore::Change(const Role& role) {
  std::lock_guard lock(mutex_);
  if (roles_.count(role.name) == 0) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "role \"{}\" does not exist",
                    role.name);
  }
  std::unique_ptr<kv::Transaction> writer = engine_->Begin();
  CELLAR_TRY(writer->Put(RecordKey(role.name), Encode(role)));
  CELLAR_TRY(writer->Commit().status());
  roles_[role.name] = role;
  return Status();
}

Status RoleStore::Drop(std::string_view name) {
  std::lock_guard lock(mutex_);
  auto at = roles_.find(name);
  if (at == roles_.end()) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "role \"{}\" does not exist",
                    name);
  }
  std::unique_ptr<kv::Transaction> writer = engine_->Begin();
  CELLAR_TRY(writer->Delete(RecordKey(name)));
  CELLAR_TRY(writer->Commit().status());
  roles_.erase(at);
  return Status();
}

}  // namespace cellar::session
