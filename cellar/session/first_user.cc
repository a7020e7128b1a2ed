#include "cellar/session/first_user.h"

#include "cellar/base/sqlstate.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {

FirstUser FindFirstUser(Database* database) {
  const std::optional<Role> role = database->impl()->roles->FindByOid(kBootstrapRole);
  if (!role) return {};
  return {role->name, role->can_login, role->verifier};
}

Status SetFirstUserVerifier(Database* database, const std::string& verifier) {
  Database::Impl& impl = *database->impl();
  const std::unique_ptr<kv::Transaction> transaction = impl.engine->Begin({});
  CELLAR_TRY_ASSIGN(std::shared_ptr<RoleSet> roles, RoleStore::Read(transaction.get()));
  const Role* found = roles->FindByOid(kBootstrapRole);
  if (found == nullptr) {
    return SqlError(Code::kCorruption, sqlstate::kDataCorrupted,
                    "the record of the first role is unreadable");
  }
  Role role = *found;
  role.verifier = verifier;
  ++roles->version;
  CELLAR_TRY(RoleStore::Write(role, role.name, transaction.get()));
  CELLAR_TRY(RoleStore::WriteShared(*roles, transaction.get()));
  roles->Put(std::move(role));
  CELLAR_TRY(transaction->Commit(kv::CommitOptions{}).status());
  impl.roles->Publish(std::move(roles));
  return Status();
}

}  // namespace cellar::session
