// Who may connect from where, and how they prove who they are: a file of rules as PostgreSQL's
// pg_hba.conf (manual 21.1).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"

namespace cellar::auth {

enum class HbaMethod : uint8_t { kTrust, kReject, kScram };

struct HbaName {
  std::string text;
  bool quoted = false;  // then no word or sign in it means anything
};

struct HbaRule {
  enum class Connection : uint8_t { kLocal, kHost, kHostSsl, kHostNoSsl };
  Connection connection = Connection::kHost;
  std::vector<HbaName> databases, users;
  bool any_address = false;
  int family_bits = 0;  // 32 or 128
  std::array<uint8_t, 16> address{}, mask{};
  HbaMethod method = HbaMethod::kReject;
  int line = 0;
};

struct HbaClient {
  std::string address;  // "127.0.0.1", "::1"
  bool encrypted = false;
  std::string user, database;
};

// Immutable.
class HbaRules {
 public:
  // Errors: kInvalid, naming line and column of the first mistake. Lines longer than 64 kB and
  // files of more than 100000 lines are mistakes.
  static Result<std::shared_ptr<const HbaRules>> Parse(std::string_view text);
  // Reads and parses a file; the error names it.
  static Result<std::shared_ptr<const HbaRules>> Load(const std::string& path);

  // The first rule that fits, or null. `is_member`(user, role) answers for names as +role and for
  // samerole.
  const HbaRule* Find(
      const HbaClient& client,
      const std::function<bool(std::string_view, std::string_view)>& is_member) const;
  const std::vector<HbaRule>& rules() const { return rules_; }

 private:
  std::vector<HbaRule> rules_;
};

}  // namespace cellar::auth
