// SCRAM-SHA-256 against RFC 7677's example and the client's side.
#include "cellar/auth/scram.h"

#include <gtest/gtest.h>

#include "cellar/auth/scram_client.h"
#include "cellar/auth/scram_keys.h"

namespace cellar::auth {
namespace {

std::string VerifierFor(std::string_view password) { return *MakePasswordVerifier(password); }

TEST(Scram, FollowsTheExampleOfRfc7677) {
  ScramVerifier verifier = *ParseScramVerifier(
      "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
      ":wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=");
  ScramExchange exchange(verifier, false, "");
  Result<std::string> first = exchange.First(kScramMechanism, "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
                                             "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*first,
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
            "s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
  auto final = exchange.Final(
      "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
      "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
  ASSERT_TRUE(final.ok());
  ASSERT_TRUE(final->has_value());
  EXPECT_EQ(**final, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
}

// What the client sends last, for a server's first message.
std::string FinalFor(std::string_view password, std::string_view server_first) {
  return *ScramClient(password, "abc").Final(server_first);
}

TEST(Scram, ClientAndServerProveThePasswordToEachOther) {
  ScramExchange exchange(*ParseScramVerifier(VerifierFor("p\u00e4ss")), false, "");
  ScramClient client("p\u00e4ss", MakeScramNonce());
  const std::string first = *exchange.First(kScramMechanism, client.First(), "def");
  auto final = exchange.Final(*client.Final(first));
  ASSERT_TRUE(final.ok());
  ASSERT_TRUE(final->has_value());
  EXPECT_TRUE(client.Verify(**final).ok());
  EXPECT_EQ(client.Verify("v=" + Base64Encode(std::string(32, 'x'))).sqlstate(), "28000");
  EXPECT_EQ(client.Verify("").sqlstate(), "28000");
}

TEST(Scram, APasswordFitsItsOwnVerifierAlone) {
  const ScramVerifier verifier = *ParseScramVerifier(VerifierFor("secret"));
  EXPECT_TRUE(PasswordFits("secret", verifier));
  EXPECT_FALSE(PasswordFits("Secret", verifier));
  EXPECT_FALSE(PasswordFits("", verifier));
}

TEST(Scram, TheClientRefusesMalformedMessages) {
  for (std::string_view message :
       {"", "r=abc", "r=abc,s=AAAA,i=1", "r=xyzabc,s=AAAA,i=1", "r=abcd,s=,i=1", "r=abcd,s=A,i=1",
        "r=abcd,s=AAAA,i=0", "r=abcd,s=AAAA,i=999999999999", "r=abcd,i=1,s=AAAA"}) {
    EXPECT_FALSE(ScramClient("x", "abc").Final(message).ok()) << message;
  }
}

TEST(Scram, RefusesAWrongProofAndTheDoomed) {
  ScramVerifier verifier = *ParseScramVerifier(VerifierFor("secret"));
  for (const auto& [password, doomed] : {std::pair("wrong", false), std::pair("secret", true)}) {
    ScramExchange exchange(verifier, doomed, "");
    const std::string first = *exchange.First(kScramMechanism, "n,,n=,r=abc", "def");
    auto final = exchange.Final(FinalFor(password, first));
    ASSERT_TRUE(final.ok());
    EXPECT_FALSE(final->has_value());
  }
}

TEST(Scram, RefusesMalformedMessages) {
  const ScramVerifier verifier = *ParseScramVerifier(VerifierFor("secret"));
  for (std::string_view message :
       {"", "n", "n,", "n,,", "x,,n=,r=abc", "n,a=root,n=,r=abc", "n,,m=1,n=,r=abc",
        "n,,n=", "n,,n=,r=", "n,,n=,r=a b", "p=tls-server-end-point,,n=,r=abc"}) {
    ScramExchange exchange(verifier, false, "");
    EXPECT_FALSE(exchange.First(kScramMechanism, message, "n").ok()) << message;
  }
  for (std::string_view message : {"", "c=biws", "c=biws,r=abcn",
                                   "c=biws,r=abcn,p=", "c=biws,r=other,p=", "c=,r=abcn,p=AAAA"}) {
    ScramExchange exchange(verifier, false, "");
    ASSERT_TRUE(exchange.First(kScramMechanism, "n,,n=,r=abc", "n").ok());
    EXPECT_FALSE(exchange.Final(message).ok()) << message;
  }
}

TEST(Scram, NoticesTamperingWithChannelBinding) {
  const ScramVerifier verifier = *ParseScramVerifier(VerifierFor("secret"));
  ScramExchange downgraded(verifier, false, "hash");
  EXPECT_EQ(downgraded.First(kScramMechanism, "y,,n=,r=abc", "n").status().sqlstate(), "28000");
  ScramExchange other(verifier, false, "hash");
  const std::string header = "p=tls-server-end-point,,";
  const std::string first = *other.First(kScramPlusMechanism, header + "n=,r=abc", "n");
  // A client that binds to nothing: its "c=" is another's.
  EXPECT_EQ(other.Final(FinalFor("secret", first)).status().sqlstate(), "28000");
}

TEST(Scram, MocksTheSameSaltEveryTime) {
  EXPECT_EQ(MockVerifier("mallory", "key").salt, MockVerifier("mallory", "key").salt);
  EXPECT_NE(MockVerifier("mallory", "key").salt, MockVerifier("mallory", "other").salt);
  EXPECT_NE(MockVerifier("mallory", "key").salt, MockVerifier("eve", "key").salt);
  EXPECT_EQ(MockVerifier("mallory", "key").salt.size(), 16u);
}

TEST(Scram, ReadsStoredVerifiers) {
  EXPECT_TRUE(ParseScramVerifier(VerifierFor("x")));
  for (std::string_view text : {"", "md5abc", "SCRAM-SHA-256$", "SCRAM-SHA-256$x:AAAA$AAAA:AAAA",
                                "SCRAM-SHA-256$4096:AAAA$AAAA:AAAA"}) {
    EXPECT_FALSE(ParseScramVerifier(text)) << text;
  }
}

}  // namespace
}  // namespace cellar::auth
