// Start-up and authentication.
#include "cellar/pgwire/login.h"

#include <thread>

#include "cellar/auth/scram.h"
#include "cellar/base/sqlstate.h"
#include "cellar/monitor/log.h"
#include "cellar/pgwire/errors.h"
#include "cellar/pgwire/startup.h"

namespace cellar::pgwire {
namespace {

constexpr int kAuthOk = 0, kAuthSasl = 10, kAuthSaslContinue = 11, kAuthSaslFinal = 12;

void Refuse(const Status& status, Channel* channel) {
  PutError(status, true, &channel->writer);
  channel->writer.Flush();
}

// Answers requests for encryption, each at most once, until the start-up packet or a cancel request
// has come. False: the connection is over.
bool ReadStartup(Channel* channel, Gate* gate, StartupRequest* request) {
  bool asked_ssl = false, asked_gss = false;
  while (true) {
    std::string_view body;
    if (channel->reader.ReadStartup(&body) != ReadResult::kMessage) return false;
    Result<StartupRequest> parsed = ParseStartup(body);
    if (!parsed.ok()) {
      Refuse(parsed.status(), channel);
      return false;
    }
    *request = std::move(*parsed);
    switch (request->kind) {
      case StartupRequest::Kind::kStartup:
      case StartupRequest::Kind::kCancel: return true;
      case StartupRequest::Kind::kGssEncryption: {
        if (asked_gss || asked_ssl) return false;
        asked_gss = true;
        channel->writer.PutByte('N');
        if (!channel->writer.Flush()) return false;
        break;
      }
      case StartupRequest::Kind::kSsl: {
        if (asked_ssl) return false;
        asked_ssl = true;
        const std::shared_ptr<const TlsContext> tls = gate->tls();
        channel->writer.PutByte(tls != nullptr ? 'S' : 'N');
        if (!channel->writer.Flush()) return false;
        if (tls == nullptr) break;
        // What came before the handshake may be an attacker's, not the client's (CVE-2021-23214).
        const bool injected = !channel->reader.empty();
        Result<std::unique_ptr<Transport>> secure = tls->Accept(channel->fd);
        if (!secure.ok()) return false;
        channel->Secure(std::move(*secure));
        if (injected) {
          Refuse(ProtocolError("received unencrypted data after SSL request")
                     .WithDetail("This could be either a client-software bug or evidence of an "
                                 "attempted man-in-the-middle attack."),
                 channel);
          return false;
        }
        break;
      }
    }
  }
}

bool ReadSaslMessage(Channel* channel, std::string_view* body) {
  char type = 0;
  switch (channel->reader.Read(&type, body, auth::kMaxSaslBytes)) {
    case ReadResult::kMessage: break;
    case ReadResult::kTooLong:
    case ReadResult::kNoMemory:
    case ReadResult::kBadLength:
      Refuse(ProtocolError("invalid password packet size"), channel);
      return false;
    case ReadResult::kEnd: return false;
  }
  if (type == 'p') return true;
  Refuse(ProtocolError("expected SASL response, got message type {}", static_cast<int>(type)),
         channel);
  return false;
}

void PutSasl(int step, std::string_view data, MessageWriter* out) {
  out->Begin('R');
  out->PutInt32(static_cast<uint32_t>(step));
  out->PutBytes(data);
  out->End();
}

// True when the client has proved that it knows the password.
bool Authenticate(Channel* channel, const StartupRequest& request, const Peer& peer,
                  auth::PasswordChallenge challenge, Gate* gate) {
  MessageWriter& out = channel->writer;
  const std::shared_ptr<const TlsContext> tls = channel->secure != nullptr ? gate->tls() : nullptr;
  out.Begin('R');
  out.PutInt32(kAuthSasl);
  if (tls != nullptr) out.PutText(auth::kScramPlusMechanism);
  out.PutText(auth::kScramMechanism);
  out.PutByte('\0');
  out.End();
  if (!out.Flush()) return false;

  std::string_view body;
  if (!ReadSaslMessage(channel, &body)) return false;
  BodyReader initial(body);
  const std::string_view mechanism = initial.Text();
  const int32_t size = initial.Int32();
  const std::string_view first = size < 0 ? std::string_view() : initial.Bytes(size);
  if (!initial.ok() || !initial.at_end()) {
    Refuse(ProtocolError("malformed SASL initial response"), channel);
    return false;
  }
  auth::ScramExchange exchange(std::move(challenge.verifier), challenge.doomed,
                               tls != nullptr ? std::string_view(tls->end_point_hash()) : "");
  Result<std::string> server_first = exchange.First(mechanism, first, auth::MakeScramNonce());
  if (!server_first.ok()) {
    Refuse(server_first.status(), channel);
    return false;
  }
  PutSasl(kAuthSaslContinue, *server_first, &out);
  if (!out.Flush() || !ReadSaslMessage(channel, &body)) return false;
  Result<std::optional<std::string>> final = exchange.Final(body);
  if (!final.ok()) {
    Refuse(final.status(), channel);
    return false;
  }
  if (!final->has_value()) {
    std::this_thread::sleep_for(gate->LoginFailed(peer, request.user));
    Refuse(auth::WrongPassword(request.user), channel);
    return false;
  }
  PutSasl(kAuthSaslFinal, **final, &out);
  return true;
}

// Whether and how this client may come in. False: refused, and told so.
bool Authorize(Channel* channel, const StartupRequest& request, const Peer& peer, Host* host,
               Gate* gate) {
  auth::HbaClient client;
  client.address = peer.address;
  client.encrypted = channel->secure != nullptr;
  client.user = request.user;
  client.database = request.database;
  Result<std::optional<auth::PasswordChallenge>> decision =
      auth::DecideLogin(gate->policy(), client, peer.loopback, host);
  if (!decision.ok()) {
    Refuse(decision.status(), channel);
    return false;
  }
  return !decision->has_value() ||
         Authenticate(channel, request, peer, std::move(**decision), gate);
}

}  // namespace

void PutReady(const Conversation& conversation, MessageWriter* out) {
  out->Begin('Z');
  out->PutByte(conversation.transaction_status());
  out->End();
}

void PutParameter(std::string_view name, std::string_view value, MessageWriter* out) {
  out->Begin('S');
  out->PutText(name);
  out->PutText(value);
  out->End();
}

std::unique_ptr<Conversation> Login(Channel* channel, const Peer& peer, Host* host, Gate* gate) {
  StartupRequest request;
  if (!ReadStartup(channel, gate, &request)) return nullptr;
  if (request.kind == StartupRequest::Kind::kCancel) {
    host->Cancel(request.pid, request.secret);  // no answer, whatever came of it
    return nullptr;
  }
  MessageWriter& out = channel->writer;
  if (gate->stopping()) {
    Refuse(SqlError(Code::kUnavailable, sqlstate::kCannotConnectNow,
                    "the database system is shutting down"),
           channel);
    return nullptr;
  }
  if (request.minor_version > 0 || !request.unknown_protocol_options.empty()) {
    out.Begin('v');
    out.PutInt32(0);  // the newest minor version spoken here
    out.PutInt32(static_cast<uint32_t>(request.unknown_protocol_options.size()));
    for (const std::string& name : request.unknown_protocol_options) out.PutText(name);
    out.End();
  }
  if (!Authorize(channel, request, peer, host, gate)) {
    if (gate->meters() != nullptr) {
      gate->meters()->logins_refused.fetch_add(1, std::memory_order_relaxed);
    }
    monitor::Log(monitor::LogLevel::kWarning, "login refused",
                 {{"user", request.user}, {"database", request.database}, {"from", peer.address}});
    return nullptr;
  }
  // Behind the login: the places that are kept for superusers are for those who are.
  const bool superuser = host->IsSuperuser(request.user);
  if (!gate->Admit(superuser)) {
    Refuse(SqlError(Code::kLimit, sqlstate::kTooManyConnections, "{}",
                    superuser ? "sorry, too many clients already"
                              : "remaining connection slots are reserved for non-replication "
                                "superuser connections"),
           channel);
    return nullptr;
  }
  PutSasl(kAuthOk, "", &out);
  session::SessionOptions session_options;
  session_options.user = std::move(request.user);
  session_options.database = std::move(request.database);
  session_options.client_address = peer.address;
  session_options.settings = std::move(request.settings);
  session_options.of_client = true;
  Result<std::unique_ptr<Conversation>> conversation = host->Open(session_options);
  if (!conversation.ok()) {
    Refuse(conversation.status(), channel);
    return nullptr;
  }
  for (const auto& [name, value] : (*conversation)->ReportedParameters()) {
    PutParameter(name, value, &out);
  }
  out.Begin('K');
  out.PutInt32(static_cast<uint32_t>((*conversation)->pid()));
  out.PutInt32(static_cast<uint32_t>((*conversation)->cancel_secret()));
  out.End();
  PutReady(**conversation, &out);
  gate->LoggedIn();
  return std::move(*conversation);
}

}  // namespace cellar::pgwire
