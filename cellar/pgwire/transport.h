// A connection's bytes: a plain socket, or TLS over one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "cellar/base/status.h"

namespace cellar::pgwire {

// Blocking. One thread at a time. Does not own the socket.
class Transport {
 public:
  virtual ~Transport() = default;
  // Waits for at least one byte; 0 at the end of the stream and on every error.
  virtual size_t Read(char* to, size_t capacity) = 0;
  // Writes all of it, waiting for a peer that does not read; false when it is gone, or when
  // give_up said so while nothing could be sent for kWriteLookEvery.
  virtual bool Write(std::string_view bytes) = 0;
  // True when Read would not wait although the socket has nothing (TLS holds decrypted bytes).
  virtual bool HasBuffered() const { return false; }
  // Outlives the transport; null: waits for ever.
  void set_give_up(const std::atomic<bool>* give_up) { give_up_ = give_up; }

 protected:
  bool gives_up() const { return give_up_ != nullptr && give_up_->load(std::memory_order_relaxed); }

 private:
  const std::atomic<bool>* give_up_ = nullptr;
};

// How long a write waits for room before it looks whether to give up; set by LimitWrites.
inline constexpr std::chrono::milliseconds kWriteLookEvery{200};
void LimitWrites(int fd);

std::unique_ptr<Transport> MakePlainTransport(int fd);

// A certificate with its key: what a server needs to speak TLS 1.2 or newer. Immutable,
// thread-safe.
class TlsContext {
 public:
  // PEM files. Errors: kInvalid, with OpenSSL's reason.
  static Result<std::shared_ptr<const TlsContext>> Load(const std::string& certificate_file,
                                                        const std::string& key_file);
  // A fresh P-256 key with a certificate for `host`, valid for a year.
  static Result<std::shared_ptr<const TlsContext>> SelfSigned(const std::string& host);
  virtual ~TlsContext() = default;

  // The server's side of a handshake on `fd`. Errors: kUnavailable.
  virtual Result<std::unique_ptr<Transport>> Accept(int fd) const = 0;
  // The hash of the certificate that SCRAM's channel binding tls-server-end-point compares
  // (RFC 5929).
  virtual const std::string& end_point_hash() const = 0;
};

}  // namespace cellar::pgwire
