// The superuser's way into a store that nobody has given passwords yet: a secret of the server's
// own making, which lies, in a URL to connect with, in a file that the store's owner alone reads.
//
// Invariants:
//   1. The file is there, whole and with mode 0600, before the store knows the secret: whatever
//      ends the process between the two, the next start makes another one.
//   2. A file whose password is not (any more) the superuser's is removed at the start.
//   3. The secret is neither logged nor printed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/base/status.h"
#include "cellar/session/session.h"

namespace cellar::server {

inline constexpr const char* kSuperuserUrlFile = "superuser.url";

enum class SuperuserSecret : uint8_t {
  kNone,  // no file: its password is one of somebody's choice, it has none, or it may not log in
  kMade,  // now
  kKept,  // of an earlier start
};

// What the file says.
struct SuperuserUrl {
  SuperuserSecret secret = SuperuserSecret::kNone;
  std::string user;      // the store's first role, who is a superuser; empty: unreadable
  std::string verifier;  // what it has in the store; of the secret, unless that is kNone
  std::string path;      // of the file
  bool stale = false;    // a file was there, and is gone (invariant 2)
};

// Reads the file of the store in `directory` and compares it with the store. Makes a secret when
// `may_make` and the first user has no password. `authority` and `database` are the URL's: what
// clients connect to. Errors: those of the file system, as 58030 or 53100, and of the store.
Result<SuperuserUrl> PrepareSuperuserUrl(session::Database* database, const std::string& directory,
                                         bool may_make, std::string_view authority,
                                         std::string_view database_name);

// Writes the file anew when it names another address or has another mode.
Status UpdateSuperuserUrl(const SuperuserUrl& url, std::string_view authority,
                          std::string_view database_name);

// A name as it is written in a URL.
std::string PercentEncoded(std::string_view text);

}  // namespace cellar::server
