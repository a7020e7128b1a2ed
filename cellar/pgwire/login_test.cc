// Logins with SCRAM-SHA-256, and TLS.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <csignal>

#include "cellar/auth/scram.h"
#include "cellar/auth/scram_client.h"
#include "cellar/pgwire/fake_host.h"
#include "cellar/pgwire/listener.h"
#include "cellar/pgwire/test_client.h"

namespace cellar::pgwire {
namespace {

std::string VerifierFor(std::string_view password) { return *auth::MakePasswordVerifier(password); }

class ScramLogin : public testing::Test {
 protected:
  ScramLogin() {
    std::signal(SIGPIPE, SIG_IGN);  // as the server does: either side may hang up first
    host_.verifiers["ann"] = VerifierFor("secret");
    options_.login.mock_secret = "mock";
    options_.login.trust_loopback = true;
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
  auth::ScramClient scram(password, "clientnonce");
  const std::string first = scram.First();
  client.Send(
      Frame('p', Text("SCRAM-SHA-256") + Int32(static_cast<uint32_t>(first.size())) + first));
  asked = client.Next();
  seen += ' ' + (asked.type + std::to_string(asked.body.size()));
  if (asked.type != 'R') return seen;
  client.Send(Frame('p', *scram.Final(asked.body.substr(4))));
  return seen + " " + client.Collect();
}

TEST_F(ScramLogin, OpensWithTheRightPasswordOnly) {
  EXPECT_EQ(TryLogin(listener_->port(), "ann", "secret"), "R19 R75 R R S S K Z:I");
  EXPECT_EQ(TryLogin(listener_->port(), "ann", "wrong"), "R19 R75 E:28P01 closed");
}

TEST_F(ScramLogin, TreatsUnknownUsersAlikeWhereNobodyIsTrusted) {
  options_.login.trust_loopback = false;
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
