// Who may come in, and whether they must prove a password first: one answer for every door.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "cellar/auth/hba.h"
#include "cellar/auth/scram.h"
#include "cellar/base/status.h"

namespace cellar::auth {

// What is known of roles. Thread-safe.
class RoleDirectory {
 public:
  virtual ~RoleDirectory() = default;
  // "SCRAM-SHA-256$..."; nullopt: no such role, or it has no password.
  virtual std::optional<std::string> PasswordVerifier(std::string_view role) = 0;
  virtual bool RoleExists(std::string_view role) = 0;
  // Whether `user` is `role` or was granted it, if through others.
  virtual bool IsMember(std::string_view user, std::string_view role) = 0;
};

struct LoginPolicy {
  // Roles without a password come in from this machine without one. Otherwise, and from elsewhere,
  // only a password opens the door.
  bool trust_loopback = false;
  // The verifier of a password that nobody chose: who has it counts as a role without a password
  // where those are trusted. Empty: none.
  std::string made_verifier;
  // Refuse what comes from other machines unencrypted.
  bool require_encryption_off_loopback = true;
  // Replace the two choices above. Null: none.
  std::shared_ptr<const HbaRules> rules;
  // Makes unknown users look like known ones: random, kept secret, best the same after a restart.
  std::string mock_secret;
};

// A password that has to be proved.
struct PasswordChallenge {
  ScramVerifier verifier;
  bool doomed = false;  // no password is right: see ScramExchange
};

// nullopt: comes in as it is. Errors: 28000 for those who may not come in at all.
Result<std::optional<PasswordChallenge>> DecideLogin(const LoginPolicy& policy,
                                                     const HbaClient& client, bool loopback,
                                                     RoleDirectory* roles);

// What proves that a client is `user`; doomed when nothing does: no such role, or no password.
PasswordChallenge ChallengeOf(const LoginPolicy& policy, const std::string& user,
                              RoleDirectory* roles);

// 28P01, as PostgreSQL words it.
Status WrongPassword(std::string_view user);

// Slows down guessing. Thread-safe.
class FailureDelays {
 public:
  // How long to wait before the answer to a wrong password; grows with each one of an address and
  // user within ten minutes, up to two seconds.
  std::chrono::milliseconds Failed(std::string_view address, std::string_view user);

 private:
  struct Failures {
    int count = 0;
    std::chrono::steady_clock::time_point last;
  };
  std::mutex mutex_;
  std::map<std::string, Failures> failures_;
};

}  // namespace cellar::auth
