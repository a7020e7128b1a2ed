// One engine has backups.
#include "cellar/store/backup.h"

#include "cellar/engines/rocksdb/rocks_backup.h"

namespace cellar::store {

Result<std::vector<kv::BackupInfo>> ListBackups(const std::string& directory) {
  return engines::ListBackups(directory);
}

Status VerifyBackup(const std::string& directory, uint32_t number,
                    const OnBackupProgress& progress) {
  return engines::VerifyBackup(directory, number, progress);
}

Result<std::vector<uint32_t>> PruneBackups(const std::string& directory, uint32_t keep) {
  return engines::PruneBackups(directory, keep);
}

Result<kv::BackupInfo> RestoreBackup(const std::string& from, uint32_t number,
                                     const std::string& directory,
                                     const OnBackupProgress& progress) {
  engines::RestoreRequest request;
  request.from = from;
  request.number = number;
  request.directory = directory;
  request.progress = progress;
  return engines::RestoreBackup(request);
}

}  // namespace cellar::store
