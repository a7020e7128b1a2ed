// A store at the other end of a connection: the same interface as cellar/table.h inside a program.
//
//   CELLAR_TRY_ASSIGN(auto store, cellar::Connect("127.0.0.1:5434", {.user = "ada"}));
//   CELLAR_TRY_ASSIGN(auto employees, store->OpenTable("/microsoft/employees"));
//
// Speaks gRPC (proto/cellar/v1) with `cellar serve --grpc`.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "cellar/table.h"

namespace cellar {

struct ClientOptions {
  std::string user = "cellar";
  std::string database = "cellar";
  // Proved by SCRAM-SHA-256, never sent. Empty: the role needs none.
  std::string password = {};
  // Connections to the server; calls take turns.
  size_t channels = 2;
  // PEM text. All empty: no TLS. `ca`: who signed the server's certificate; `certificate` and
  // `key`: the client's own, whose common name is the role.
  std::string ca = {}, certificate = {}, key = {};
  // Of calls that have no timeout of their own; 0: none.
  std::chrono::milliseconds default_timeout{0};
  // How long reads, and writes with an idempotency id, are tried again while the server cannot be
  // reached. A write without one is never sent twice: kCommitUnknown says that it may have
  // happened.
  std::chrono::milliseconds retry_for{10000};
};

// `target`: "HOST:PORT". Waits for nothing but a login when there is a password. Errors: 28P01,
// kUnavailable (after options.retry_for).
Result<std::unique_ptr<TableStore>> Connect(const std::string& target,
                                            const ClientOptions& options = {});

}  // namespace cellar
