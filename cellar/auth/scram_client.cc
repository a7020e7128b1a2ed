#include "cellar/auth/scram_client.h"

#include <openssl/crypto.h>

#include <charconv>
#include <optional>

#include "cellar/auth/scram.h"
#include "cellar/auth/scram_keys.h"
#include "cellar/base/sqlstate.h"

namespace cellar::auth {
namespace {

constexpr std::string_view kHeader = "n,,";  // no channel binding, no authorization identity

Status BadAnswer() {
  return SqlError(Code::kInvalid, sqlstate::kProtocolViolation,
                  "the server's SCRAM message does not read");
}

}  // namespace

std::string ScramClient::First() const { return std::string(kHeader) + FirstBare(); }

Result<std::string> ScramClient::Final(std::string_view server_first) {
  const size_t s = server_first.find(",s="), i = server_first.find(",i=");
  if (server_first.substr(0, 2) != "r=" || s == std::string_view::npos ||
      i == std::string_view::npos || i < s) {
    return BadAnswer();
  }
  const std::string_view nonce = server_first.substr(2, s - 2);
  if (nonce.size() <= nonce_.size() || nonce.substr(0, nonce_.size()) != nonce_) {
    return BadAnswer();
  }
  const std::optional<std::string> salt = Base64Decode(server_first.substr(s + 3, i - s - 3));
  int iterations = 0;
  const std::string_view digits = server_first.substr(i + 3);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), iterations);
  if (!salt || salt->empty() || parsed.ec != std::errc() || iterations < 1 ||
      iterations > kMaxScramIterations) {
    return BadAnswer();
  }
  const std::string salted = SaltedPassword(password_, *salt, iterations);
  const std::string client_key = HmacSha256(salted, "Client Key");
  const std::string bare =
      "c=" + Base64Encode(kHeader) + "," + std::string(server_first.substr(0, s));
  const std::string message = FirstBare() + "," + std::string(server_first) + "," + bare;
  std::string proof = HmacSha256(Sha256(client_key), message);
  for (size_t at = 0; at < proof.size(); ++at) {
    proof[at] = static_cast<char>(proof[at] ^ client_key[at]);
  }
  server_signature_ = HmacSha256(HmacSha256(salted, "Server Key"), message);
  return bare + ",p=" + Base64Encode(proof);
}

Status ScramClient::Verify(std::string_view server_final) const {
  const std::string expected = "v=" + Base64Encode(server_signature_);
  if (!server_signature_.empty() && server_final.size() == expected.size() &&
      CRYPTO_memcmp(server_final.data(), expected.data(), expected.size()) == 0) {
    return Status();
  }
  return SqlError(Code::kInvalid, sqlstate::kInvalidAuthorization,
                  "the server could not prove that it knows the password");
}

}  // namespace cellar::auth
