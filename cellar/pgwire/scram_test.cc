// SCRAM-SHA-256 against RFC 7677's example and a client of our own; TLS.
#include "cellar/pgwire/scram.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>

#include "cellar/pgwire/fake_host.h"
#include "cellar/pgwire/listener.h"
#include "cellar/pgwire/test_client.h"

namespace cellar::pgwire {
namespace {

std::string Sha256(std::string_view data) {
  std::string out(32, '\0');
  unsigned size = 0;
  EVP_Digest(data.data(), data.size(), reinterpret_cast<unsigned char*>(out.data()), &size,
             EVP_sha256(), nullptr);
  return out;
}

std::string Salted(std::string_view password, std::string_view salt, int iterations) {
  std::string out(32, '\0');
  PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()),
                    reinterpret_cast<const unsigned char*>(salt.data()),
                    static_cast<int>(salt.size()), iterations, EVP_sha256(), 32,
                    reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

std::string VerifierFor(std::string_view password, std::string_view salt = "0123456789abcdef") {
  const std::string salted = Salted(password, salt, 4096);
  return "SCRAM-SHA-256$4096:" + Base64Encode(salt) + "$" +
         Base64Encode(Sha256(HmacSha256(salted, "Client Key"))) + ":" +
         Base64Encode(HmacSha256(salted, "Server Key"));
}

// client-final-message for a server-first-message.
std::string ClientFinal(std::string_view password, const std::string& first_bare,
                        const std::string& server_first, const std::string& binding) {
  const size_t s = server_first.find(",s="), i = server_first.find(",i=");
  const std::string salt = *Base64Decode(server_first.substr(s + 3, i - s - 3));
  const std::string salted = Salted(password, salt, std::stoi(server_first.substr(i + 3)));
  const std::string key = HmacSha256(salted, "Client Key");
  const std::string bare = "c=" + Base64Encode(binding) + "," + server_first.substr(0, s);
  std::string proof = HmacSha256(Sha256(key), first_bare + "," + server_first + "," + bare);
  for (size_t at = 0; at < proof.size(); ++at) proof[at] = static_cast<char>(proof[at] ^ key[at]);
  return bare + ",p=" + Base64Encode(proof);
}

TEST(Scram, FollowsTheExampleOfRfc7677) {
  ScramVerifier verifier =
      *ParseScramVerifier(VerifierFor("pencil", *Base64Decode("W22ZaJ0SNY7soEsUEjb6gQ==")));
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

TEST(Scram, RefusesAWrongProofAndTheDoomed) {
  ScramVerifier verifier = *ParseScramVerifier(VerifierFor("secret"));
  for (const auto& [password, doomed] : {std::pair("wrong", false), std::pair("secret", true)}) {
    ScramExchange exchange(verifier, doomed, "");
    const std::string first = *exchange.First(kScramMechanism, "n,,n=,r=abc", "def");
    auto final = exchange.Final(ClientFinal(password, "n=,r=abc", first, "n,,"));
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
  EXPECT_EQ(
      other.Final(ClientFinal("secret", "n=,r=abc", first, header + "other")).status().sqlstate(),
      "28000");
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

class ScramLogin : public testing::Test {
 protected:
  ScramLogin() {
    host_.verifiers["ann"] = VerifierFor("secret");
    options_.wire.mock_secret = "mock";
    options_.tls = *TlsContext::SelfSigned("localhost");
    listener_ = std::move(*Listener::Start(&host_, options_));
  }
  FakeHost host_;
  ListenerOptions options_;
  std::unique_ptr<Listener> listener_;
};

// Types and sizes of what a login sees, up to the verdict.
std::string TryLogin(uint16_t port, std::string_view user, std::string_view password) {
  TestClient client(port);
  client.Send(Startup(Text("user") + Text(user) + '\0'));
  TestClient::Message asked = client.Next();
  std::string seen = asked.type + std::to_string(asked.body.size());
  const std::string first = "n,,n=,r=clientnonce";
  client.Send(
      Frame('p', Text("SCRAM-SHA-256") + Int32(static_cast<uint32_t>(first.size())) + first));
  asked = client.Next();
  seen += ' ' + (asked.type + std::to_string(asked.body.size()));
  if (asked.type != 'R') return seen;
  client.Send(Frame('p', ClientFinal(password, "n=,r=clientnonce", asked.body.substr(4), "n,,")));
  return seen + " " + client.Collect();
}

TEST_F(ScramLogin, OpensWithTheRightPasswordOnly) {
  EXPECT_EQ(TryLogin(listener_->port(), "ann", "secret"), "R19 R75 R R S S K Z:I");
  EXPECT_EQ(TryLogin(listener_->port(), "ann", "wrong"), "R19 R75 E:28P01 closed");
}

TEST_F(ScramLogin, TreatsUnknownUsersAlikeWhereNobodyIsTrusted) {
  options_.wire.trust_loopback = false;
  listener_ = std::move(*Listener::Start(&host_, options_));
  EXPECT_EQ(TryLogin(listener_->port(), "ann", "wrong"),
            TryLogin(listener_->port(), "eve", "wrong"));
  // A role without a password cannot log in either.
  EXPECT_EQ(TryLogin(listener_->port(), "cellar", ""), "R19 R75 E:28P01 closed");
}

TEST_F(ScramLogin, RefusesLongAndForeignSaslMessages) {
  TestClient client(listener_->port());
  client.Send(Startup(Text("user") + Text("ann") + '\0'));
  client.Next();
  client.Send(Frame('p', std::string(5000, 'x')));
  EXPECT_EQ(client.Collect(), "E:08P01 closed");
  TestClient query(listener_->port());
  query.Send(Startup(Text("user") + Text("ann") + '\0'));
  query.Next();
  query.Send(Query("rows 1"));
  EXPECT_EQ(query.Collect(), "E:08P01 closed");
}

class TlsClient {
 public:
  explicit TlsClient(int fd) {
    context_ = SSL_CTX_new(TLS_client_method());
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, fd);
    connected_ = SSL_connect(ssl_) == 1;
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  bool connected() const { return connected_; }
  std::string Exchange(std::string_view bytes) {
    SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
    char chunk[4096];
    const int got = SSL_read(ssl_, chunk, sizeof(chunk));
    return got > 0 ? std::string(chunk, static_cast<size_t>(got)) : "";
  }
  std::string Read() {
    char chunk[4096];
    const int got = SSL_read(ssl_, chunk, sizeof(chunk));
    return got > 0 ? std::string(chunk, static_cast<size_t>(got)) : "";
  }

 private:
  SSL_CTX* context_;
  SSL* ssl_;
  bool connected_ = false;
};

TEST_F(ScramLogin, SpeaksTls) {
  TestClient client(listener_->port());
  client.Send(Int32(8) + Int32(80877103));
  ASSERT_EQ(client.Take(1), "S");
  TlsClient tls(client.fd());
  ASSERT_TRUE(tls.connected());
  const std::string asked = tls.Exchange(Startup(Text("user") + Text("ann") + '\0'));
  EXPECT_NE(asked.find("SCRAM-SHA-256-PLUS"), std::string::npos);
}

TEST_F(ScramLogin, RefusesBytesBeforeTheHandshake) {
  TestClient client(listener_->port());
  client.Send(Int32(8) + Int32(80877103) + PlainStartup());
  ASSERT_EQ(client.Take(1), "S");
  TlsClient tls(client.fd());
  ASSERT_TRUE(tls.connected());
  EXPECT_NE(tls.Read().find("08P01"), std::string::npos);
}

}  // namespace
}  // namespace cellar::pgwire
