#include "cellar/auth/scram_keys.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <unicode/usprep.h>
#include <unicode/ustring.h>

#include <memory>

#include "cellar/base/check.h"

namespace cellar::auth {
namespace {

unsigned char* Raw(std::string& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }
const unsigned char* Raw(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
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

std::string Base64Encode(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(Raw(out), Raw(bytes), static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

std::optional<std::string> Base64Decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  if (text.empty()) return std::string();
  size_t padding = 0;
  while (padding < 2 && text[text.size() - 1 - padding] == '=') ++padding;
  const std::string_view body = text.substr(0, text.size() - padding);
  for (char c : body) {
    const bool valid = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '+' || c == '/';
    if (!valid) return std::nullopt;
  }
  std::string out(text.size() / 4 * 3, '\0');
  if (EVP_DecodeBlock(Raw(out), Raw(text), static_cast<int>(text.size())) < 0) return std::nullopt;
  out.resize(out.size() - padding);
  return out;
}

std::string HmacSha256(std::string_view key, std::string_view data) {
  std::string out(kScramKeyBytes, '\0');
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), Raw(data), data.size(), Raw(out),
       &size);
  return out;
}

std::string Sha256(std::string_view data) {
  std::string out(kScramKeyBytes, '\0');
  unsigned size = 0;
  EVP_Digest(data.data(), data.size(), Raw(out), &size, EVP_sha256(), nullptr);
  return out;
}

std::string SaltedPassword(std::string_view password, std::string_view salt, int iterations) {
  const std::string prepared = SaslPrep(password);
  std::string out(kScramKeyBytes, '\0');
  PKCS5_PBKDF2_HMAC(prepared.data(), static_cast<int>(prepared.size()), Raw(salt),
                    static_cast<int>(salt.size()), iterations, EVP_sha256(),
                    static_cast<int>(out.size()), Raw(out));
  return out;
}

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  CELLAR_CHECK(RAND_bytes(Raw(bytes), static_cast<int>(bytes.size())) == 1);
  return bytes;
}

}  // namespace cellar::auth
