#include "cellar/kv/backup.h"

#include "cellar/kv/engine.h"
#include "cellar/kv/storage.h"

namespace cellar::kv {
namespace {

Status NoBackups() { return UnsupportedError("this storage engine has no backups"); }

}  // namespace

Result<BackupInfo> Engine::Backup(const BackupOptions&) { return NoBackups(); }
Result<BackupInfo> Storage::Backup(const BackupOptions&) { return NoBackups(); }

}  // namespace cellar::kv
