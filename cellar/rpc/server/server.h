// The gRPC door: services cellar.v1.Data and Auth, health and reflection.
//
// Debian's gRPC of 2022 must not face strangers (docs/decisions/0016-grpc.md): it listens on this
// machine's loopback, or asks every client for a certificate.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cellar/auth/policy.h"
#include "cellar/base/status.h"
#include "cellar/monitor/meters.h"
#include "cellar/rpc/server/identity.h"
#include "cellar/table.h"

namespace grpc {
class Service;
}

namespace cellar::rpc {

class Calls;

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;                     // 0: a free one
  std::string tls_certificate, tls_key;  // PEM files; empty: no TLS
  std::string tls_client_ca;             // PEM file: who signs clients' certificates
  size_t max_message_bytes = size_t{64} << 20;
  size_t max_transactions = 10000;  // open ones
  std::chrono::milliseconds idle_transaction{60000};
  monitor::DoorMeters* meters = nullptr;  // outlives the server; null: nothing is counted
};

// Opens the store as one identity sees it. Thread-safe.
using StoreFactory = std::function<Result<std::unique_ptr<TableStore>>(const Identity&)>;

// Makes a further service, once. The argument outlives what it makes.
using ServiceFactory = std::function<std::unique_ptr<grpc::Service>(Calls*)>;

// Thread-safe.
class Server {
 public:
  // Listens when it returns. `roles` outlives it. Errors: kInvalid (an address of another machine's
  // reach without tls_client_ca, unreadable files), kUnavailable (the address is taken).
  static Result<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                               auth::RoleDirectory* roles,
                                               std::function<auth::LoginPolicy()> policy,
                                               StoreFactory factory,
                                               const std::vector<ServiceFactory>& services = {});
  virtual ~Server() = default;  // as Stop(0)
  virtual uint16_t port() const = 0;
  // Health answers NOT_SERVING; waits for calls up to `grace`, then cancels them; rolls back what
  // is open.
  virtual void Stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace cellar::rpc
