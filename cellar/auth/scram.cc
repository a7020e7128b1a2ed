#include "cellar/auth/scram.h"

#include <openssl/crypto.h>

#include <charconv>

#include "cellar/auth/scram_keys.h"
#include "cellar/base/sqlstate.h"

namespace cellar::auth {
namespace {

constexpr int kIterations = 4096;
constexpr size_t kSaltBytes = 16;

// Splits at the next `separator`, which is taken; all that is left when there is none.
std::string_view TakeUntil(char separator, std::string_view* text) {
  const size_t end = text->find(separator);
  std::string_view taken = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  return taken;
}

// "r=value" with this letter, up to the next comma.
std::optional<std::string_view> TakeAttribute(char letter, std::string_view* text) {
  if (text->size() < 2 || (*text)[0] != letter || (*text)[1] != '=') return std::nullopt;
  return TakeUntil(',', text).substr(2);
}

bool IsPrintable(std::string_view text) {
  for (char c : text) {
    if (c < 0x21 || c > 0x7E || c == ',') return false;
  }
  return !text.empty();
}

template <typename... Args>
Status ProtocolError(fmt::format_string<Args...> format, Args&&... args) {
  return SqlError(Code::kInvalid, sqlstate::kProtocolViolation, format,
                  std::forward<Args>(args)...);
}

Status Malformed(std::string_view detail) {
  return ProtocolError("malformed SCRAM message").WithDetail(std::string(detail));
}

Status BindingError(std::string_view detail) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidAuthorization,
                  "SCRAM channel binding negotiation error")
      .WithDetail(std::string(detail));
}

}  // namespace

std::string MakeScramNonce() { return Base64Encode(RandomBytes(18)); }

std::optional<ScramVerifier> ParseScramVerifier(std::string_view text) {
  if (TakeUntil('$', &text) != kScramMechanism) return std::nullopt;
  ScramVerifier verifier;
  const std::string_view iterations = TakeUntil(':', &text);
  const char* end = iterations.data() + iterations.size();
  const auto parsed = std::from_chars(iterations.data(), end, verifier.iterations);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  if (verifier.iterations < 1 || verifier.iterations > kMaxScramIterations) return std::nullopt;
  std::optional<std::string> salt = Base64Decode(TakeUntil('$', &text));
  std::optional<std::string> stored = Base64Decode(TakeUntil(':', &text));
  std::optional<std::string> server = Base64Decode(text);
  if (!salt || salt->empty() || !stored || stored->size() != kScramKeyBytes || !server ||
      server->size() != kScramKeyBytes) {
    return std::nullopt;
  }
  verifier.salt = std::move(*salt);
  verifier.stored_key = std::move(*stored);
  verifier.server_key = std::move(*server);
  return verifier;
}

bool PasswordFits(std::string_view password, const ScramVerifier& verifier) {
  const std::string salted = SaltedPassword(password, verifier.salt, verifier.iterations);
  const std::string stored = Sha256(HmacSha256(salted, "Client Key"));
  return stored.size() == verifier.stored_key.size() &&
         CRYPTO_memcmp(stored.data(), verifier.stored_key.data(), stored.size()) == 0;
}

Result<std::string> MakePasswordVerifier(std::string_view password) {
  if (password.substr(0, kScramMechanism.size() + 1) == std::string(kScramMechanism) + "$") {
    return std::string(password);
  }
  if (password.empty()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "password must not be empty");
  }
  const std::string salt = RandomBytes(kSaltBytes);
  const std::string salted = SaltedPassword(password, salt, kIterations);
  return fmt::format("{}${}:{}${}:{}", kScramMechanism, kIterations, Base64Encode(salt),
                     Base64Encode(Sha256(HmacSha256(salted, "Client Key"))),
                     Base64Encode(HmacSha256(salted, "Server Key")));
}

ScramVerifier MockVerifier(std::string_view user, std::string_view secret) {
  ScramVerifier verifier;
  verifier.iterations = kIterations;
  verifier.salt = HmacSha256(secret, "salt of " + std::string(user)).substr(0, kSaltBytes);
  verifier.stored_key = HmacSha256(secret, "stored key of " + std::string(user));
  verifier.server_key = HmacSha256(secret, "server key of " + std::string(user));
  return verifier;
}

Result<std::string> ScramExchange::First(std::string_view mechanism, std::string_view message,
                                         std::string_view nonce) {
  const bool tls = !end_point_hash_.empty();
  plus_ = mechanism == kScramPlusMechanism;
  if (mechanism != kScramMechanism && !(plus_ && tls)) {
    return ProtocolError("client selected an invalid SASL authentication mechanism");
  }
  const std::string_view whole = message;
  const std::string_view flag = TakeUntil(',', &message);
  if (flag == "n") {
    if (plus_) {
      return Malformed("The client selected SCRAM-SHA-256-PLUS without channel binding data.");
    }
  } else if (flag == "y") {
    if (plus_) {
      return Malformed("The client selected SCRAM-SHA-256-PLUS without channel binding data.");
    }
    if (tls) {
      return BindingError(
          "The client supports SCRAM channel binding but thinks the server does not.  "
          "However, this server does support channel binding.");
    }
  } else if (flag.substr(0, 2) == "p=") {
    if (!plus_) {
      return Malformed(
          "The client selected SCRAM-SHA-256 without channel binding, but the message includes "
          "channel binding data.");
    }
    if (flag != "p=tls-server-end-point") {
      return ProtocolError("unsupported SCRAM channel-binding type");
    }
  } else {
    return Malformed("The message does not begin with a channel binding flag.");
  }
  // An authorization identity would follow here.
  if (!TakeUntil(',', &message).empty()) {
    return UnsupportedError("client uses authorization identity, but it is not supported");
  }
  gs2_header_ = whole.substr(0, whole.size() - message.size());
  client_first_bare_ = message;
  if (!message.empty() && message[0] == 'm') {
    return UnsupportedError("client requires an unsupported SCRAM extension");
  }
  // The user name of the start-up packet counts; this one is ignored.
  if (!TakeAttribute('n', &message)) return Malformed("The user name attribute is missing.");
  const std::optional<std::string_view> client_nonce = TakeAttribute('r', &message);
  if (!client_nonce || !IsPrintable(*client_nonce)) {
    return Malformed("The nonce is missing or not printable.");
  }
  nonce_ = std::string(*client_nonce) + std::string(nonce);
  server_first_ =
      fmt::format("r={},s={},i={}", nonce_, Base64Encode(verifier_.salt), verifier_.iterations);
  return server_first_;
}

Result<std::optional<std::string>> ScramExchange::Final(std::string_view message) {
  const size_t proof_at = message.rfind(",p=");
  if (proof_at == std::string_view::npos) return Malformed("The proof is missing.");
  const std::string_view without_proof = message.substr(0, proof_at);
  const std::optional<std::string> proof = Base64Decode(message.substr(proof_at + 3));
  if (!proof || proof->size() != kScramKeyBytes) return Malformed("The proof has a wrong length.");
  std::string_view rest = without_proof;
  const std::optional<std::string_view> binding = TakeAttribute('c', &rest);
  const std::optional<std::string_view> nonce = TakeAttribute('r', &rest);
  if (!binding || !nonce) return Malformed("The channel binding or the nonce is missing.");
  if (*nonce != nonce_)
    return ProtocolError("invalid SCRAM response").WithDetail("Nonce does not match.");
  const std::string expected = gs2_header_ + (plus_ ? end_point_hash_ : std::string());
  if (*binding != Base64Encode(expected)) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidAuthorization,
                    "SCRAM channel binding check failed");
  }
  const std::string auth_message =
      client_first_bare_ + "," + server_first_ + "," + std::string(without_proof);
  std::string client_key = HmacSha256(verifier_.stored_key, auth_message);
  for (size_t i = 0; i < kScramKeyBytes; ++i)
    client_key[i] = static_cast<char>(client_key[i] ^ (*proof)[i]);
  const bool fits =
      CRYPTO_memcmp(Sha256(client_key).data(), verifier_.stored_key.data(), kScramKeyBytes) == 0;
  std::string answer = "v=" + Base64Encode(HmacSha256(verifier_.server_key, auth_message));
  if (!fits || doomed_) return std::optional<std::string>();
  return std::optional<std::string>(std::move(answer));
}

}  // namespace cellar::auth
