// The packet that opens a connection (PostgreSQL manual 55.2.1, 55.7).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/base/status.h"

namespace cellar::pgwire {

struct StartupRequest {
  enum class Kind : uint8_t { kStartup, kSsl, kGssEncryption, kCancel };
  Kind kind = Kind::kStartup;
  // kStartup
  int minor_version = 0;
  std::string user, database;
  std::vector<std::pair<std::string, std::string>> settings;  // in the client's order
  std::vector<std::string> unknown_protocol_options;          // names that begin with _pq_.
  // kCancel
  int32_t pid = 0, secret = 0;
};

// `body` is the packet without its length. Errors: 0A000 for another protocol or replication, 08P01
// for a malformed packet, 28000 without a user, 22021 for text that is not UTF-8, 42601 for a bad
// `options`.
Result<StartupRequest> ParseStartup(std::string_view body);

// What `options` holds: "-c name=value" and "--name=value", separated by blanks, with backslashes
// before blanks that belong to a value. Error: 42601.
Result<std::vector<std::pair<std::string, std::string>>> ParseCommandLineOptions(
    std::string_view options);

}  // namespace cellar::pgwire
