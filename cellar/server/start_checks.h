// What a server looks at before it opens a store to others: whose the files are that everything
// rests on, and who else may write or read them. `self` is the user of this process (geteuid).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cellar/base/status.h"

namespace cellar::server {

// The directory of a store: it must belong to `self` (root may use anybody's), and be closed to all
// others but for readers of its group, as PostgreSQL demands (mode 0700 or 0750). The mode of one
// that holds no store yet does not matter: it becomes 0700. Errors: 55000, with what to do.
Status CheckStoreDirectory(const std::string& directory, uid_t self);

// The key of a certificate: it must belong to `self` and be closed to all others, or to root and be
// closed to all but readers of its group. Errors: 55000; kInvalid when there is no such file.
Status CheckKeyFile(const std::string& path, uid_t self);

// Rules of who may come in: nobody but their owner and group may write them. Errors as above.
Status CheckRulesFile(const std::string& path);

// What is allowed and still better otherwise, a sentence each: running as root, a directory of
// somebody else, a parent directory where others may put another in its place.
std::vector<std::string> StartWarnings(const std::string& directory, uid_t self);

// The directories that COPY and BACKUP may use must not hold the store, nor lie in it: its files
// are no tables. `directories` and the store exist. Errors: kInvalid.
Status CheckCopyDirectories(const std::vector<std::string>& directories, const std::string& store);

}  // namespace cellar::server
