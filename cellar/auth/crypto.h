// OpenSSL, ready for use.
#pragma once

#include "cellar/base/status.h"

namespace cellar::auth {

// Makes what OpenSSL makes at its first use: its tables, its keys for data of threads, its random
// generators. For the start of a server: later the process may have no such key left, and then
// nobody could log in. Errors: kUnavailable when there is no randomness.
Status ReadyCrypto();

}  // namespace cellar::auth
