// On whose behalf a call is: proto/cellar/v1/auth.proto.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "cellar/auth/policy.h"
#include "cellar/base/status.h"

namespace cellar::rpc {

// What the transport knows of a caller, and what the caller says of itself.
struct CallerClaims {
  std::string address;  // "127.0.0.1", "::1"
  bool loopback = false;
  bool encrypted = false;
  std::optional<std::string> certificate_name;  // of a verified client certificate
  std::string user, database, token;            // empty: not said
};

struct Identity {
  std::string user, database, address;
};

// Thread-safe.
class IdentityService {
 public:
  // `roles` outlives it. `policy` gives what is in force now.
  IdentityService(auth::RoleDirectory* roles, std::function<auth::LoginPolicy()> policy)
      : roles_(roles), policy_(std::move(policy)) {}

  // Cost: a look at the roles, under a mutex. Errors: 28000, 28P01.
  Result<Identity> Identify(const CallerClaims& claims);

  struct Started {
    std::string exchange, server_first;
  };
  // Errors: 28000 for those who may not come in; 08P01; 53300 when too many logins are under way.
  Result<Started> StartScram(const CallerClaims& claims, std::string_view client_first);
  struct Finished {
    std::string server_final, token;
  };
  // Sleeps before the answer to a wrong password. *user: who logs in, where that is known. Errors:
  // 28P01, 08P01, 28000 (no such exchange).
  Result<Finished> FinishScram(const CallerClaims& claims, const std::string& exchange,
                               std::string_view client_final, std::string* user = nullptr);

 private:
  using Clock = std::chrono::steady_clock;
  struct Exchange {
    std::string user;
    auth::ScramExchange scram;
    Clock::time_point ends;
  };
  struct Token {
    std::string user, verifier;  // the verifier that the password was proved against
    Clock::time_point ends;
  };
  void Sweep(Clock::time_point now);  // under mutex_

  auth::RoleDirectory* const roles_;
  const std::function<auth::LoginPolicy()> policy_;
  auth::FailureDelays delays_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Exchange>> exchanges_;  // guarded by mutex_
  std::map<std::string, Token, std::less<>> tokens_;            // guarded by mutex_
  Clock::time_point next_sweep_;
};

}  // namespace cellar::rpc
