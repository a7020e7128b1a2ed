// The client's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), without channel binding.
#pragma once

#include <string>
#include <string_view>

#include "cellar/base/status.h"

namespace cellar::auth {

// One login: send First(), give what comes back to Final, send its result, give the last answer to
// Verify.
class ScramClient {
 public:
  // `nonce`: fresh printable random text, as of MakeScramNonce.
  ScramClient(std::string_view password, std::string nonce)
      : password_(password), nonce_(std::move(nonce)) {}

  // client-first-message.
  std::string First() const;
  // client-final-message for the server's first. Cost: the server's iterations of PBKDF2, some
  // milliseconds. Errors: 08P01 when the message does not read or repeats no nonce of ours.
  Result<std::string> Final(std::string_view server_first);
  // OK when the server too has proved that it knows the password; else 28000.
  Status Verify(std::string_view server_final) const;

 private:
  std::string FirstBare() const { return "n=,r=" + nonce_; }

  std::string password_, nonce_, server_signature_;
};

}  // namespace cellar::auth
