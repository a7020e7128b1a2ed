#include "cellar/auth/policy.h"

#include <gtest/gtest.h>

namespace cellar::auth {
namespace {

const std::string& AnnsVerifier() {
  static const std::string verifier = *MakePasswordVerifier("secret");
  return verifier;
}

class Roles : public RoleDirectory {
 public:
  std::optional<std::string> PasswordVerifier(std::string_view role) override {
    if (role == "ann") return AnnsVerifier();
    if (role == "broken") return "md5abc";
    return std::nullopt;
  }
  bool RoleExists(std::string_view role) override { return role == "ann" || role == "bob"; }
  bool IsMember(std::string_view user, std::string_view role) override { return user == role; }
};

// "in", "password", "doomed", or the error's message.
std::string Decide(const LoginPolicy& policy, std::string_view user, bool loopback,
                   bool encrypted = false) {
  Roles roles;
  HbaClient client;
  client.address = loopback ? "127.0.0.1" : "192.0.2.1";
  client.encrypted = encrypted;
  client.user = user;
  client.database = "d";
  auto decision = DecideLogin(policy, client, loopback, &roles);
  if (!decision.ok()) return std::string(decision.status().message());
  if (!decision->has_value()) return "in";
  return (*decision)->doomed ? "doomed" : "password";
}

TEST(LoginPolicy, TrustsRolesWithoutPasswordOfThisMachineOnly) {
  LoginPolicy policy;
  policy.trust_loopback = true;
  EXPECT_EQ(Decide(policy, "bob", true), "in");
  EXPECT_EQ(Decide(policy, "ann", true), "password");
  EXPECT_EQ(Decide(policy, "broken", true), "doomed");
  EXPECT_EQ(Decide(policy, "eve", true), "role \"eve\" does not exist");
  EXPECT_EQ(Decide(policy, "ann", false), "connection from host \"192.0.2.1\" is not encrypted");
  EXPECT_EQ(Decide(policy, "ann", false, true), "password");
  EXPECT_EQ(Decide(policy, "bob", false, true), "doomed");
  EXPECT_EQ(Decide(policy, "eve", false, true), "doomed");
  policy.trust_loopback = false;
  EXPECT_EQ(Decide(policy, "bob", true), "doomed");
  policy.require_encryption_off_loopback = false;
  EXPECT_EQ(Decide(policy, "ann", false), "password");
}

TEST(LoginPolicy, TrustsNobodyUnlessToldTo) {
  EXPECT_EQ(Decide(LoginPolicy(), "bob", true), "doomed");
  EXPECT_EQ(Decide(LoginPolicy(), "ann", true), "password");
}

TEST(LoginPolicy, APasswordThatNobodyChoseIsNotAskedForWhereNoneIs) {
  LoginPolicy policy;
  policy.made_verifier = AnnsVerifier();
  EXPECT_EQ(Decide(policy, "ann", true), "password");
  policy.trust_loopback = true;
  EXPECT_EQ(Decide(policy, "ann", true), "in");
  EXPECT_EQ(Decide(policy, "ann", false, true), "password");
  policy.made_verifier = *MakePasswordVerifier("secret");  // of another salt
  EXPECT_EQ(Decide(policy, "ann", true), "password");
}

TEST(LoginPolicy, RulesReplaceTheChoices) {
  LoginPolicy policy;
  policy.rules = *HbaRules::Parse(
      "host d bob 192.0.2.0/24 trust\n"
      "host d eve 192.0.2.0/24 trust\n"
      "host d broken all reject\n"
      "host d ann all scram-sha-256\n");
  EXPECT_EQ(Decide(policy, "bob", false), "in");
  EXPECT_EQ(Decide(policy, "eve", false), "role \"eve\" does not exist");
  EXPECT_EQ(Decide(policy, "ann", false), "password");
  EXPECT_EQ(Decide(policy, "broken", true),
            "pg_hba.conf rejects connection for host \"127.0.0.1\", user \"broken\", database "
            "\"d\", no encryption");
  EXPECT_EQ(Decide(policy, "bob", true),
            "no pg_hba.conf entry for host \"127.0.0.1\", user \"bob\", database \"d\", no "
            "encryption");
}

TEST(FailureDelays, GrowAfterTheFirstFew) {
  FailureDelays delays;
  std::chrono::milliseconds last{0};
  for (int i = 0; i < 60; ++i) {
    const auto delay = delays.Failed("192.0.2.1", "ann");
    EXPECT_GE(delay, last);
    EXPECT_EQ(delay.count() == 0, i < 3) << i;
    last = delay;
  }
  EXPECT_EQ(last.count(), 2000);
  EXPECT_EQ(delays.Failed("192.0.2.2", "ann").count(), 0);
}

}  // namespace
}  // namespace cellar::auth
