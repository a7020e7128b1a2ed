// What `cellar backup` does by way of sessions: see backup.cc for the rest.
#pragma once

#include "cellar/cli/commands.h"
#include "cellar/kv/backup.h"

namespace cellar::cli {

// One database, or one table, of a backup into the store or the server that the command names, in
// one transaction; a database that was made for it goes again when that fails. Errors: 3D000,
// 42P01 for what the backup does not have; 42P04, 42P07 for what the store has already.
Status RestoreInto(const BackupCommand& command);
// BACKUP STORE or DATABASE; only numbers, files and bytes are told.
Result<kv::BackupInfo> BackupByServer(const BackupCommand& command);

}  // namespace cellar::cli
