#include "cellar/rpc/server/identity.h"

#include <gtest/gtest.h>

#include "cellar/auth/scram_client.h"

namespace cellar::rpc {
namespace {

class Roles : public auth::RoleDirectory {
 public:
  std::optional<std::string> PasswordVerifier(std::string_view role) override {
    if (role == "ann") return verifier;
    return std::nullopt;
  }
  bool RoleExists(std::string_view role) override {
    return role == "ann" || role == "bob" || role == "cellar";
  }
  bool IsMember(std::string_view user, std::string_view role) override { return user == role; }
  std::string verifier = *auth::MakePasswordVerifier("secret");
};

class IdentityTest : public testing::Test {
 protected:
  IdentityTest() : service_(&roles_, [this] { return policy_; }) {
    policy_.mock_secret = "mock";
    policy_.trust_loopback = true;
    local_.address = "127.0.0.1";
    local_.loopback = true;
  }
  CallerClaims Local(std::string user, std::string token = "") {
    CallerClaims claims = local_;
    claims.user = std::move(user);
    claims.token = std::move(token);
    return claims;
  }
  // The token.
  Result<std::string> Login(const std::string& user, const std::string& password) {
    auth::ScramClient client(password, auth::MakeScramNonce());
    CELLAR_TRY_ASSIGN(auto started, service_.StartScram(Local(user), client.First()));
    CELLAR_TRY_ASSIGN(std::string final, client.Final(started.server_first));
    CELLAR_TRY_ASSIGN(auto finished, service_.FinishScram(Local(user), started.exchange, final));
    CELLAR_TRY(client.Verify(finished.server_final));
    return finished.token;
  }
  std::string_view StateOf(const CallerClaims& claims) {
    last_ = service_.Identify(claims);
    return last_.status().sqlstate();
  }

  Roles roles_;
  auth::LoginPolicy policy_;
  CallerClaims local_;
  IdentityService service_;
  Result<Identity> last_ = Identity();
};

TEST_F(IdentityTest, TrustsThoseWithoutPasswordOfThisMachine) {
  EXPECT_EQ(service_.Identify(Local(""))->user, "cellar");
  EXPECT_EQ(service_.Identify(Local("bob"))->user, "bob");
  EXPECT_EQ(StateOf(Local("eve")), "28000");
  EXPECT_EQ(StateOf(Local("ann")), "28P01");
  CallerClaims far = Local("bob");
  far.loopback = false;
  far.address = "192.0.2.1";
  EXPECT_EQ(StateOf(far), "28000");
  far.encrypted = true;
  EXPECT_EQ(StateOf(far), "28P01");
}

TEST_F(IdentityTest, TokensProveAPassword) {
  const Result<std::string> token = Login("ann", "secret");
  ASSERT_TRUE(token.ok()) << token.status().ToString();
  EXPECT_EQ(service_.Identify(Local("ann", *token))->user, "ann");
  EXPECT_EQ(StateOf(Local("bob", *token)), "28000");
  EXPECT_EQ(StateOf(Local("ann", *token + "x")), "28000");
  roles_.verifier = *auth::MakePasswordVerifier("other");
  EXPECT_EQ(StateOf(Local("ann", *token)), "28000");
}

TEST_F(IdentityTest, WrongPasswordsAndUnknownUsersLookAlike) {
  EXPECT_EQ(Login("ann", "wrong").status().sqlstate(), "28P01");
  policy_.trust_loopback = false;
  EXPECT_EQ(Login("eve", "wrong").status().sqlstate(), "28P01");
  EXPECT_EQ(Login("bob", "").status().sqlstate(), "28P01");
}

TEST_F(IdentityTest, APasswordThatIsNotAskedForMayBeProved) {
  policy_.made_verifier = roles_.verifier;
  EXPECT_EQ(service_.Identify(Local("ann"))->user, "ann");
  EXPECT_TRUE(Login("ann", "secret").ok());
  EXPECT_EQ(Login("ann", "wrong").status().sqlstate(), "28P01");
}

TEST_F(IdentityTest, AnExchangeServesOnce) {
  auth::ScramClient client("secret", "nonce");
  const auto started = service_.StartScram(Local("ann"), client.First());
  ASSERT_TRUE(started.ok());
  const std::string final = *client.Final(started->server_first);
  EXPECT_TRUE(service_.FinishScram(Local("ann"), started->exchange, final).ok());
  EXPECT_EQ(service_.FinishScram(Local("ann"), started->exchange, final).status().sqlstate(),
            "28000");
  EXPECT_EQ(service_.StartScram(Local("ann"), "garbage").status().sqlstate(), "08P01");
}

TEST_F(IdentityTest, CertificatesNameTheRole) {
  CallerClaims claims = Local("");
  claims.loopback = false;
  claims.encrypted = true;
  claims.certificate_name = "ann";
  EXPECT_EQ(service_.Identify(claims)->user, "ann");
  claims.user = "bob";
  EXPECT_EQ(StateOf(claims), "28000");
  claims.user = "";
  claims.certificate_name = "eve";
  EXPECT_EQ(StateOf(claims), "28000");
}

}  // namespace
}  // namespace cellar::rpc
