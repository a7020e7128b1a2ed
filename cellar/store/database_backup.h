// Backups of one database: a store is built that holds it and nothing else, and backed up.
#pragma once

#include <string>

#include "cellar/base/status.h"
#include "cellar/kv/backup.h"
#include "cellar/session/session.h"

namespace cellar::store {

// Adds a backup of the database `name` to a directory of its backups, as it is at one moment of the
// call; writers go on meanwhile. With it are all roles, and the settings that hold in it; of the
// databases that every store has, empty ones. `store` is the directory of the store `from`, `user`
// a superuser of it. Errors: 3D000; as kv::BackupOptions says; 55000 for backups of another
// database. Cost: room and time of the database three times over, for no backup shares files with
// another; progress is told of the last third alone.
Result<kv::BackupInfo> BackupDatabase(session::Database* from, const std::string& store,
                                      const std::string& user, const std::string& name,
                                      const kv::BackupOptions& options);

}  // namespace cellar::store
