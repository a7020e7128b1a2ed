// BACKUP DATABASE. A backup of one database is made by way of another store, which sessions cannot
// open: whoever opened this one does.
#pragma once

#include <functional>
#include <string>

#include "cellar/base/status.h"

namespace cellar::kv {
struct BackupInfo;  // cellar/kv/backup.h
struct BackupOptions;
}  // namespace cellar::kv

namespace cellar::session {

class Database;

// Backs up the one database `name`; `user` is a superuser's name. Errors: 3D000, and as
// kv::BackupOptions says.
using DatabaseBackup = std::function<Result<kv::BackupInfo>(
    const std::string& user, const std::string& name, const kv::BackupOptions& options)>;

// Before there are sessions; without it BACKUP DATABASE is 0A000.
void SetDatabaseBackup(Database* database, DatabaseBackup make);

}  // namespace cellar::session
