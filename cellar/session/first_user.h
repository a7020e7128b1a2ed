// The first role of a store, a superuser for good, for whoever opens doors to the store.
#pragma once

#include <string>

#include "cellar/base/status.h"

namespace cellar::session {

class Database;

struct FirstUser {
  std::string name;
  bool can_login = false;
  std::string verifier;  // of its password, "SCRAM-SHA-256$..."; empty: none
};

// As it is now. Without a name when its record does not read.
FirstUser FindFirstUser(Database* database);

// Gives it a password by its verifier; durable on return. Errors: kConflict when another
// transaction changes roles meanwhile, kCorruption when the records of roles do not read; those of
// the engine.
Status SetFirstUserVerifier(Database* database, const std::string& verifier);

}  // namespace cellar::session
