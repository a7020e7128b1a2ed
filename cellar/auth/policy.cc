#include "cellar/auth/policy.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"

namespace cellar::auth {
namespace {

using Challenge = std::optional<PasswordChallenge>;
using std::chrono::milliseconds;

constexpr size_t kMaxFailureRecords = 10000;
constexpr milliseconds kFailureDelayStep{50}, kMaxFailureDelay{2000};
constexpr std::chrono::minutes kFailureMemory{10};
constexpr int kFreeFailures = 3;  // slips of the finger

template <typename... Args>
Status Refused(fmt::format_string<Args...> format, Args&&... args) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidAuthorization, format,
                  std::forward<Args>(args)...);
}

Result<Challenge> Trust(const HbaClient& client, RoleDirectory* roles) {
  if (roles->RoleExists(client.user)) return Challenge();
  return Refused("role \"{}\" does not exist", client.user);
}

// No stored verifier, or one that does not read: no password is right.
PasswordChallenge AskPassword(std::string_view user, const std::optional<std::string>& stored,
                              std::string_view mock_secret) {
  std::optional<ScramVerifier> verifier;
  if (stored) verifier = ParseScramVerifier(*stored);
  PasswordChallenge challenge;
  challenge.doomed = !verifier.has_value();
  challenge.verifier = challenge.doomed ? MockVerifier(user, mock_secret) : std::move(*verifier);
  return challenge;
}

}  // namespace

PasswordChallenge ChallengeOf(const LoginPolicy& policy, const std::string& user,
                              RoleDirectory* roles) {
  return AskPassword(user, roles->PasswordVerifier(user), policy.mock_secret);
}

Result<Challenge> DecideLogin(const LoginPolicy& policy, const HbaClient& client, bool loopback,
                              RoleDirectory* roles) {
  if (policy.rules != nullptr) {
    const HbaRule* rule = policy.rules->Find(
        client,
        [&](std::string_view user, std::string_view role) { return roles->IsMember(user, role); });
    if (rule == nullptr || rule->method == HbaMethod::kReject) {
      return Refused(
          "{} host \"{}\", user \"{}\", database \"{}\", {}",
          rule == nullptr ? "no pg_hba.conf entry for" : "pg_hba.conf rejects connection for",
          client.address, client.user, client.database,
          client.encrypted ? "SSL encryption" : "no encryption");
    }
    if (rule->method == HbaMethod::kTrust) return Trust(client, roles);
    return Challenge(ChallengeOf(policy, client.user, roles));
  }
  if (!loopback && policy.require_encryption_off_loopback && !client.encrypted) {
    return Refused("connection from host \"{}\" is not encrypted", client.address)
        .WithHint("Connect with sslmode=require.");
  }
  const std::optional<std::string> stored = roles->PasswordVerifier(client.user);
  if (loopback && policy.trust_loopback) {
    const bool made = !policy.made_verifier.empty() && stored == policy.made_verifier;
    if (!stored || made) return Trust(client, roles);
  }
  return Challenge(AskPassword(client.user, stored, policy.mock_secret));
}

Status WrongPassword(std::string_view user) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidPassword,
                  "password authentication failed for user \"{}\"", user);
}

milliseconds FailureDelays::Failed(std::string_view address, std::string_view user) {
  const auto now = std::chrono::steady_clock::now();
  std::lock_guard lock(mutex_);
  if (failures_.size() >= kMaxFailureRecords) failures_.clear();
  Failures& record = failures_[fmt::format("{} {}", address, user)];
  if (now - record.last > kFailureMemory) record.count = 0;
  record.last = now;
  record.count = std::min(record.count + 1, 100);
  return std::min(kMaxFailureDelay, kFailureDelayStep * std::max(0, record.count - kFreeFailures));
}

}  // namespace cellar::auth
