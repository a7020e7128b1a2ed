// SCRAM-SHA-256 verifiers of passwords (RFC 5802, RFC 7677; PostgreSQL manual 53.11 for the
// stored form).
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <unicode/usprep.h>
#include <unicode/ustring.h>

#include "cellar/base/sqlstate.h"
#include "cellar/session/roles.h"

namespace cellar::session {
namespace {

constexpr int kIterations = 4096;
constexpr size_t kSaltBytes = 16;
constexpr size_t kHashBytes = 32;

std::string Base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(length));
  return out;
}

std::string Hmac(std::string_view key, std::string_view data) {
  std::string out(kHashBytes, '\0');
  unsigned length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(data.data()), data.size(),
       reinterpret_cast<unsigned char*>(out.data()), &length);
  return out;
}

std::string Sha256(std::string_view data) {
  std::string out(kHashBytes, '\0');
  unsigned length = 0;
  EVP_Digest(data.data(), data.size(), reinterpret_cast<unsigned char*>(out.data()), &length,
             EVP_sha256(), nullptr);
  return out;
}

// RFC 4013, as clients apply it to what is typed: non-ASCII spaces become blanks, the rest NFKC.
// What it forbids stays as it is, as in PostgreSQL.
std::string SaslPrep(std::string_view password) {
  const auto size = static_cast<int32_t>(password.size());
  UErrorCode error = U_ZERO_ERROR;
  std::u16string source(password.size() + 1, u'\0');
  int32_t source_size = 0;
  u_strFromUTF8(source.data(), static_cast<int32_t>(source.size()), &source_size, password.data(),
                size, &error);
  std::unique_ptr<UStringPrepProfile, decltype(&usprep_close)> profile(
      usprep_openByType(USPREP_RFC4013_SASLPREP, &error), &usprep_close);
  // A character may become up to 18 when it is decomposed.
  std::u16string prepared(static_cast<size_t>(source_size) * 18 + 1, u'\0');
  const int32_t prepared_size =
      usprep_prepare(profile.get(), source.data(), source_size, prepared.data(),
                     static_cast<int32_t>(prepared.size()), USPREP_DEFAULT, nullptr, &error);
  std::string out(prepared.size() * 3, '\0');
  int32_t out_size = 0;
  u_strToUTF8(out.data(), static_cast<int32_t>(out.size()), &out_size, prepared.data(),
              prepared_size, &error);
  if (U_FAILURE(error)) return std::string(password);
  out.resize(static_cast<size_t>(out_size));
  return out;
}

}  // namespace

Result<std::string> MakePasswordVerifier(std::string_view clear_password) {
  if (clear_password.substr(0, 14) == "SCRAM-SHA-256$") return std::string(clear_password);
  const std::string password = SaslPrep(clear_password);
  if (password.empty()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "password must not be empty");
  }
  std::string salt(kSaltBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(salt.data()), static_cast<int>(salt.size())) !=
      1) {
    return InternalError("no random bytes for a salt");
  }
  std::string salted(kHashBytes, '\0');
  PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()),
                    reinterpret_cast<const unsigned char*>(salt.data()),
                    static_cast<int>(salt.size()), kIterations, EVP_sha256(),
                    static_cast<int>(salted.size()),
                    reinterpret_cast<unsigned char*>(salted.data()));
  const std::string stored = Sha256(Hmac(salted, "Client Key"));
  const std::string server = Hmac(salted, "Server Key");
  return fmt::format("SCRAM-SHA-256${}:{}${}:{}", kIterations, Base64(salt), Base64(stored),
                     Base64(server));
}

}  // namespace cellar::session
