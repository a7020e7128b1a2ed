// Sockets and OpenSSL.
#include "cellar/pgwire/transport.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>

namespace cellar::pgwire {
namespace {

class PlainTransport : public Transport {
 public:
  explicit PlainTransport(int fd) : fd_(fd) {}

  size_t Read(char* to, size_t capacity) override {
    while (true) {
      const ssize_t got = ::recv(fd_, to, capacity, 0);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) return 0;
    }
  }
  bool Write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) {
        if (errno == EINTR) continue;
        if ((errno == EAGAIN || errno == EWOULDBLOCK) && !gives_up()) continue;
        return false;
      }
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

 private:
  int fd_;
};

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using SslPtr = std::unique_ptr<SSL, Freer<SSL_free>>;
using SslContextPtr = std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Freer<X509_free>>;

class TlsTransport : public Transport {
 public:
  explicit TlsTransport(SslPtr ssl) : ssl_(std::move(ssl)) {}
  ~TlsTransport() override { SSL_shutdown(ssl_.get()); }

  size_t Read(char* to, size_t capacity) override {
    ERR_clear_error();
    const int limit = static_cast<int>(std::min<size_t>(capacity, 1 << 30));
    const int got = SSL_read(ssl_.get(), to, limit);
    return got > 0 ? static_cast<size_t>(got) : 0;
  }
  bool Write(std::string_view bytes) override {
    while (!bytes.empty()) {
      ERR_clear_error();
      const int size = static_cast<int>(std::min<size_t>(bytes.size(), 1 << 30));
      const int sent = SSL_write(ssl_.get(), bytes.data(), size);
      // The same bytes are offered again, as SSL_write asks.
      if (sent <= 0 && SSL_get_error(ssl_.get(), sent) == SSL_ERROR_WANT_WRITE && !gives_up())
        continue;
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  bool HasBuffered() const override { return SSL_has_pending(ssl_.get()) == 1; }

 private:
  SslPtr ssl_;
};

Status OpenSslError(std::string_view what) {
  char reason[256] = "unknown reason";
  if (const unsigned long code = ERR_get_error(); code != 0) {
    ERR_error_string_n(code, reason, sizeof(reason));
  }
  return InvalidError("{}: {}", what, reason);
}

// RFC 5929: the digest of the signature algorithm, SHA-256 in place of MD5 and SHA-1.
std::string EndPointHash(X509* certificate) {
  int digest_id = NID_undef;
  X509_get_signature_info(certificate, &digest_id, nullptr, nullptr, nullptr);
  const EVP_MD* digest = EVP_sha256();
  if (digest_id != NID_undef && digest_id != NID_md5 && digest_id != NID_sha1) {
    if (const EVP_MD* named = EVP_get_digestbynid(digest_id)) digest = named;
  }
  std::string hash(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  X509_digest(certificate, digest, reinterpret_cast<unsigned char*>(hash.data()), &size);
  hash.resize(size);
  return hash;
}

class OpenSslContext : public TlsContext {
 public:
  OpenSslContext(SslContextPtr context, std::string hash)
      : context_(std::move(context)), hash_(std::move(hash)) {}

  Result<std::unique_ptr<Transport>> Accept(int fd) const override {
    ERR_clear_error();
    SslPtr ssl(SSL_new(context_.get()));
    if (ssl == nullptr || SSL_set_fd(ssl.get(), fd) != 1) return OpenSslError("TLS");
    if (SSL_accept(ssl.get()) != 1) {
      return MakeError(Code::kUnavailable, "TLS handshake failed");
    }
    return std::unique_ptr<Transport>(std::make_unique<TlsTransport>(std::move(ssl)));
  }
  const std::string& end_point_hash() const override { return hash_; }

 private:
  SslContextPtr context_;
  std::string hash_;
};

Result<SslContextPtr> NewContext() {
  SslContextPtr context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return OpenSslError("cannot set up TLS");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE |
                                         SSL_OP_IGNORE_UNEXPECTED_EOF);
  // Idle connections give their record buffers back.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_cipher_list(context.get(), "HIGH:!aNULL:!MD5:!3DES:!kRSA");
  return context;
}

bool AddExtension(X509* certificate, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

bool IsAddress(const std::string& host) {
  return host.find(':') != std::string::npos ||
         host.find_first_not_of("0123456789.") == std::string::npos;
}

CertificatePtr MakeCertificate(EVP_PKEY* key, const std::string& host) {
  constexpr long kYearSeconds = 365L * 24 * 3600;
  CertificatePtr certificate(X509_new());
  X509* x = certificate.get();
  if (x == nullptr) return nullptr;
  uint64_t serial = 0;
  X509_NAME* name = X509_get_subject_name(x);
  const std::string alternative =
      (IsAddress(host) ? "IP:" : "DNS:") + host + ",DNS:localhost,IP:127.0.0.1,IP:::1";
  std::string common = host.substr(0, 64);
  const bool made =
      X509_set_version(x, X509_VERSION_3) == 1 && EVP_PKEY_id(key) == EVP_PKEY_EC &&
      RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) == 1 &&
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), serial) == 1 &&
      X509_gmtime_adj(X509_getm_notBefore(x), -3600) != nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(x), kYearSeconds) != nullptr &&
      X509_set_pubkey(x, key) == 1 &&
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(common.c_str()), -1, -1,
                                 0) == 1 &&
      X509_set_issuer_name(x, name) == 1 &&
      AddExtension(x, NID_basic_constraints, "critical,CA:FALSE") &&
      AddExtension(x, NID_subject_alt_name, alternative) && X509_sign(x, key, EVP_sha256()) > 0;
  if (!made) return nullptr;
  return certificate;
}

}  // namespace

void LimitWrites(int fd) {
  timeval limit{};
  limit.tv_usec = static_cast<suseconds_t>(std::chrono::microseconds(kWriteLookEvery).count());
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

std::unique_ptr<Transport> MakePlainTransport(int fd) {
  return std::make_unique<PlainTransport>(fd);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::Load(const std::string& certificate_file,
                                                           const std::string& key_file) {
  ERR_clear_error();
  CELLAR_TRY_ASSIGN(SslContextPtr context, NewContext());
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_file.c_str()) != 1) {
    return OpenSslError("cannot load the certificate \"" + certificate_file + "\"");
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return OpenSslError("cannot load the private key \"" + key_file + "\"");
  }
  if (SSL_CTX_check_private_key(context.get()) != 1) {
    return OpenSslError("the private key does not belong to the certificate");
  }
  std::string hash = EndPointHash(SSL_CTX_get0_certificate(context.get()));
  return std::shared_ptr<const TlsContext>(
      std::make_shared<OpenSslContext>(std::move(context), std::move(hash)));
}

Result<std::shared_ptr<const TlsContext>> TlsContext::SelfSigned(const std::string& host) {
  ERR_clear_error();
  CELLAR_TRY_ASSIGN(SslContextPtr context, NewContext());
  KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslError("cannot make a key");
  CertificatePtr certificate = MakeCertificate(key.get(), host.empty() ? "localhost" : host);
  if (certificate == nullptr) return OpenSslError("cannot make a certificate");
  if (SSL_CTX_use_certificate(context.get(), certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1) {
    return OpenSslError("cannot use the certificate that was made");
  }
  std::string hash = EndPointHash(certificate.get());
  return std::shared_ptr<const TlsContext>(
      std::make_shared<OpenSslContext>(std::move(context), std::move(hash)));
}

}  // namespace cellar::pgwire
