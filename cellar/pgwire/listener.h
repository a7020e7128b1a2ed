// Accepts connections and serves each on a thread of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "cellar/base/status.h"
#include "cellar/pgwire/backend.h"
#include "cellar/pgwire/channel.h"
#include "cellar/pgwire/transport.h"

namespace cellar::pgwire {

struct ListenerOptions {
  std::string host = "127.0.0.1";  // a name, an address, or "*" for all
  uint16_t port = 0;               // 0: a free one
  auth::LoginPolicy login;
  monitor::DoorMeters* meters = nullptr;  // outlives the listener; null: nothing is counted
  std::shared_ptr<const TlsContext> tls;  // null: none
  size_t max_connections = 2000;          // sessions
  size_t reserved_connections = 0;        // of these, for superusers alone
  size_t max_half_open = 400;             // connections that have not logged in yet
  size_t max_half_open_per_address = 200;
  std::chrono::milliseconds login_timeout{10000};
  // Of a connection's thread. Only what is used costs memory; deep statements need much, and frames
  // of the address sanitizer are several times as large.
#if defined(__SANITIZE_ADDRESS__)
  size_t stack_bytes = size_t{32} << 20;
#else
  size_t stack_bytes = size_t{2} << 20;
#endif
};

// Thread-safe.
class Listener {
 public:
  // Listens when it returns. `host` outlives the listener. Errors: kUnavailable (the address is
  // taken), kInvalid (it is none).
  static Result<std::unique_ptr<Listener>> Start(Host* host, const ListenerOptions& options);
  virtual ~Listener() = default;  // as Stop(0)

  virtual uint16_t port() const = 0;
  // Sessions that are logged in.
  virtual size_t sessions() const = 0;
  // For connections from now on.
  virtual void SetTls(std::shared_ptr<const TlsContext> tls) = 0;
  virtual void SetRules(std::shared_ptr<const auth::HbaRules> rules) = 0;
  // Takes no more connections and tells those that are idle to go; cancel the running statements
  // yourself, before. Waits up to `grace` for all to end, then breaks them off and waits until they
  // have. True when nobody had to be broken off.
  virtual bool Stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace cellar::pgwire
