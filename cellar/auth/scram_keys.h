// What both sides of SCRAM-SHA-256 compute (RFC 5802, section 3), over OpenSSL.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cellar::auth {

inline constexpr size_t kScramKeyBytes = 32;
// More would keep a core busy for seconds.
inline constexpr int kMaxScramIterations = 10'000'000;

std::string Base64Encode(std::string_view bytes);
std::optional<std::string> Base64Decode(std::string_view text);
std::string Sha256(std::string_view data);
std::string HmacSha256(std::string_view key, std::string_view data);
// PBKDF2 of the password after SASLprep (RFC 4013); what that forbids stays as it is, as in
// PostgreSQL.
std::string SaltedPassword(std::string_view password, std::string_view salt, int iterations);
// Cryptographically random; dies when the system has none.
std::string RandomBytes(size_t count);

}  // namespace cellar::auth
