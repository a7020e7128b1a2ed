#include "cellar/rpc/server/identity.h"

#include <thread>

#include "cellar/auth/scram_keys.h"
#include "cellar/base/sqlstate.h"

namespace cellar::rpc {
namespace {

constexpr std::chrono::seconds kExchangeLife{10};
constexpr std::chrono::hours kTokenLife{1};
constexpr size_t kMaxExchanges = 1000;
constexpr size_t kMaxTokens = 100000;
constexpr size_t kTokenBytes = 32;
constexpr const char* kDefaultName = "cellar";

template <typename... Args>
Status Refused(fmt::format_string<Args...> format, Args&&... args) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidAuthorization, format,
                  std::forward<Args>(args)...);
}

// With the user whom the certificate or nothing names where none is said.
Result<auth::HbaClient> ClientOf(const CallerClaims& claims) {
  auth::HbaClient client;
  client.address = claims.address;
  client.encrypted = claims.encrypted;
  client.database = claims.database.empty() ? kDefaultName : claims.database;
  client.user = claims.user;
  if (client.user.empty()) client.user = claims.certificate_name.value_or(kDefaultName);
  if (claims.certificate_name && client.user != *claims.certificate_name) {
    return Refused("the certificate is that of \"{}\", not of user \"{}\"",
                   *claims.certificate_name, client.user);
  }
  return client;
}

}  // namespace

void IdentityService::Sweep(Clock::time_point now) {
  if (now < next_sweep_) return;
  next_sweep_ = now + kExchangeLife;
  std::erase_if(exchanges_, [&](const auto& entry) { return entry.second->ends < now; });
  std::erase_if(tokens_, [&](const auto& entry) { return entry.second.ends < now; });
}

Result<Identity> IdentityService::Identify(const CallerClaims& claims) {
  CELLAR_TRY_ASSIGN(auth::HbaClient client, ClientOf(claims));
  Identity identity{client.user, client.database, client.address};
  if (claims.certificate_name) {
    if (roles_->RoleExists(client.user)) return identity;
    return Refused("role \"{}\" does not exist", client.user);
  }
  if (!claims.token.empty()) {
    const std::optional<std::string> verifier = roles_->PasswordVerifier(client.user);
    const Clock::time_point now = Clock::now();
    std::lock_guard lock(mutex_);
    const auto at = tokens_.find(claims.token);
    if (at != tokens_.end() && at->second.ends >= now && at->second.user == client.user &&
        verifier == at->second.verifier) {
      at->second.ends = now + kTokenLife;
      return identity;
    }
    return Refused("the token is not valid for user \"{}\" any more", client.user)
        .WithHint("Log in again: service cellar.v1.Auth.");
  }
  CELLAR_TRY_ASSIGN(std::optional<auth::PasswordChallenge> challenge,
                    auth::DecideLogin(policy_(), client, claims.loopback, roles_));
  if (!challenge.has_value()) return identity;
  return SqlError(Code::kInvalid, sqlstate::kInvalidPassword, "user \"{}\" needs a password",
                  client.user)
      .WithHint("Log in with service cellar.v1.Auth and send its token.");
}

Result<IdentityService::Started> IdentityService::StartScram(const CallerClaims& claims,
                                                             std::string_view client_first) {
  CELLAR_TRY_ASSIGN(auth::HbaClient client, ClientOf(claims));
  const auth::LoginPolicy policy = policy_();
  CELLAR_TRY_ASSIGN(std::optional<auth::PasswordChallenge> challenge,
                    auth::DecideLogin(policy, client, claims.loopback, roles_));
  if (!challenge) {
    // Who needs no password may prove one that it has.
    challenge = auth::ChallengeOf(policy, client.user, roles_);
  }
  auth::ScramExchange scram(std::move(challenge->verifier), challenge->doomed, "");
  CELLAR_TRY_ASSIGN(std::string server_first,
                    scram.First(auth::kScramMechanism, client_first, auth::MakeScramNonce()));
  Started started{auth::Base64Encode(auth::RandomBytes(kTokenBytes)), std::move(server_first)};
  const Clock::time_point now = Clock::now();
  std::lock_guard lock(mutex_);
  if (exchanges_.size() >= kMaxExchanges) next_sweep_ = now;
  Sweep(now);
  if (exchanges_.size() >= kMaxExchanges) {
    return SqlError(Code::kLimit, sqlstate::kTooManyConnections, "too many logins are under way");
  }
  exchanges_[started.exchange] =
      std::make_unique<Exchange>(Exchange{client.user, std::move(scram), now + kExchangeLife});
  return started;
}

Result<IdentityService::Finished> IdentityService::FinishScram(const CallerClaims& claims,
                                                               const std::string& exchange,
                                                               std::string_view client_final,
                                                               std::string* user) {
  std::unique_ptr<Exchange> found;
  {
    std::lock_guard lock(mutex_);
    if (const auto at = exchanges_.find(exchange); at != exchanges_.end()) {
      found = std::move(at->second);
      exchanges_.erase(at);
    }
  }
  if (found == nullptr || found->ends < Clock::now()) return Refused("no such login is under way");
  if (user != nullptr) *user = found->user;
  const std::optional<std::string> verifier = roles_->PasswordVerifier(found->user);
  CELLAR_TRY_ASSIGN(std::optional<std::string> final, found->scram.Final(client_final));
  if (!final.has_value() || !verifier.has_value()) {
    std::this_thread::sleep_for(delays_.Failed(claims.address, found->user));
    return auth::WrongPassword(found->user);
  }
  Finished finished{std::move(*final), auth::Base64Encode(auth::RandomBytes(kTokenBytes))};
  const Clock::time_point now = Clock::now();
  std::lock_guard lock(mutex_);
  Sweep(now);
  if (tokens_.size() >= kMaxTokens) {
    return SqlError(Code::kLimit, sqlstate::kTooManyConnections, "too many logins");
  }
  tokens_[finished.token] = Token{found->user, *verifier, now + kTokenLife};
  return finished;
}

}  // namespace cellar::rpc
