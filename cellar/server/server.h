// `cellar serve`: a store, its database and the PostgreSQL listener, until a signal ends it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/store/open.h"

namespace cellar::server {

struct ServeOptions {
  store::StoreOptions store;
  std::string host = "127.0.0.1";
  uint16_t port = 5433;
  int max_connections = 2000;
  int superuser_reserved_connections = 3;  // of these; fewer than all
  // Where cellar.v1 is served over gRPC; empty: nowhere. Beyond loopback only with grpc_client_ca.
  std::string grpc_host;
  uint16_t grpc_port = 0;
  std::string grpc_client_ca;  // PEM file: clients must have a certificate that it signed
  // Where /metrics, /healthz and /readyz are; empty: nowhere.
  std::string http_host;
  uint16_t http_port = 0;
  std::string tls_certificate, tls_key;  // PEM files; empty: no TLS, or
  bool tls_self_signed = false;          // a certificate made at the start
  // Roles without a password come in from this machine. Otherwise everybody needs one, and the
  // superuser of a store without passwords is given one (superuser_url.h). Not beside rules.
  bool trust_local = false;
  // Let other machines come in unencrypted.
  bool allow_plaintext = false;
  // Rules of who may connect, as pg_hba.conf; they replace the two choices above. Empty: `hba.conf`
  // in the store's directory, if there is one.
  std::string hba_file;
  // Where COPY and BACKUP may read and write: in and below these, outside of the store. None:
  // nowhere.
  std::vector<std::string> copy_directories;
  std::chrono::milliseconds shutdown_grace{10000};
};

// "HOST:PORT", "[::1]:5433", ":5433" or "5433"; an empty host is 127.0.0.1, "*" all addresses.
Result<std::pair<std::string, uint16_t>> ParseListenAddress(std::string_view text);

// Runs until SIGTERM or SIGINT, then ends all sessions, closes the store and returns OK; a second
// signal shortens the wait. SIGHUP reads the certificate and the rules again. `ready` is called
// with the URL of each door, PostgreSQL's first, once it is open. Blocks these signals in the whole
// process; call it before other threads are started. The log's first lines say what is served, from
// where, and who may come in. Errors: of the store, the certificate or the address, and those of
// start_checks.h; nothing runs then.
Status Serve(const ServeOptions& options, const std::function<void(const std::string& url)>& ready);

}  // namespace cellar::server
