// The server's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, 7677, 5929; PostgreSQL
// manual 55.3).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cellar/base/status.h"

namespace cellar::auth {

inline constexpr std::string_view kScramMechanism = "SCRAM-SHA-256";
inline constexpr std::string_view kScramPlusMechanism = "SCRAM-SHA-256-PLUS";
inline constexpr size_t kMaxSaslBytes = 1024;

// A verifier for a password given in clear, with a fresh salt, or the verifier itself when it is
// one already. Error: 22023 for an empty one.
Result<std::string> MakePasswordVerifier(std::string_view password);

// What is stored instead of a password: "SCRAM-SHA-256$4096:salt$stored key:server key", in base64.
struct ScramVerifier {
  int iterations = 0;
  std::string salt, stored_key, server_key;  // raw
};
std::optional<ScramVerifier> ParseScramVerifier(std::string_view text);
// Whether the verifier was made of this password. Cost: that of one login.
bool PasswordFits(std::string_view password, const ScramVerifier& verifier);

// A verifier that no password fits, always the same for a user of one store: what a login of an
// unknown user is answered with, so that it looks like any other. `secret` must not be known
// outside.
ScramVerifier MockVerifier(std::string_view user, std::string_view secret);

// One login. Call First, then Final. One thread at a time.
class ScramExchange {
 public:
  // `end_point_hash`: of the server's certificate, empty without TLS. `doomed`: refuse whatever
  // comes, after the same work.
  ScramExchange(ScramVerifier verifier, bool doomed, std::string_view end_point_hash)
      : verifier_(std::move(verifier)), doomed_(doomed), end_point_hash_(end_point_hash) {}

  // Takes client-first-message, returns server-first-message. `nonce`: fresh printable random text.
  // Errors: 08P01 malformed; 28000 when channel binding was tampered with.
  Result<std::string> First(std::string_view mechanism, std::string_view message,
                            std::string_view nonce);
  // Takes client-final-message, returns server-final-message; nullopt: wrong password.
  Result<std::optional<std::string>> Final(std::string_view message);

 private:
  ScramVerifier verifier_;
  bool doomed_;
  std::string end_point_hash_;
  bool plus_ = false;
  std::string gs2_header_, client_first_bare_, server_first_, nonce_;
};

// 18 random bytes in base64, for First.
std::string MakeScramNonce();

}  // namespace cellar::auth
