#include "cellar/auth/crypto.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

namespace cellar::auth {

Status ReadyCrypto() {
  unsigned char bytes[32];
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  const bool ready =
      OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CRYPTO_STRINGS | OPENSSL_INIT_ADD_ALL_CIPHERS |
                              OPENSSL_INIT_ADD_ALL_DIGESTS | OPENSSL_INIT_LOAD_CONFIG,
                          nullptr) == 1 &&
      RAND_bytes(bytes, sizeof(bytes)) == 1 && RAND_priv_bytes(bytes, sizeof(bytes)) == 1 &&
      EVP_Digest(bytes, sizeof(bytes), digest, &size, EVP_sha256(), nullptr) == 1;
  ERR_clear_error();
  if (!ready) return MakeError(Code::kUnavailable, "OpenSSL has no randomness");
  return Status();
}

}  // namespace cellar::auth
