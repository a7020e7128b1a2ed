// Backups without the store that they are of, whichever engine has made them: looked at, thrown
// away, made stores again. kv::Engine::Backup makes them; StoreOptions::backup opens one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/kv/backup.h"

namespace cellar::store {

// Of all functions: 58P01 for a directory that is not there, 55000 for one that holds no backups,
// kUnsupported for a newer format, 42501 and 58030 for what cannot be read.

// Told now and then, by one thread at a time; empty: nobody is.
using OnBackupProgress = std::function<void(const kv::BackupProgress&)>;

// By number, damaged ones among them. Cost: a look at the size of each file.
Result<std::vector<kv::BackupInfo>> ListBackups(const std::string& directory);
// Reads every byte of one backup and compares checksums. Errors: kCorruption, naming the first
// damaged or missing file; kNotFound.
Status VerifyBackup(const std::string& directory, uint32_t number,
                    const OnBackupProgress& progress = {});
// Removes all but the newest `keep` > 0 that are not damaged, and damaged ones older than those;
// the numbers removed. Errors: 55006 while another process changes the directory.
Result<std::vector<uint32_t>> PruneBackups(const std::string& directory, uint32_t keep);
// Makes a store, in a directory that is absent, empty, or left by an interrupted call; number 0:
// the newest backup. The store gets an id of its own. Errors: kNotFound; kCorruption for a damaged
// backup; 55000 for a directory that is not empty; 53100. After one, nothing is left.
Result<kv::BackupInfo> RestoreBackup(const std::string& from, uint32_t number,
                                     const std::string& directory,
                                     const OnBackupProgress& progress = {});

}  // namespace cellar::store
