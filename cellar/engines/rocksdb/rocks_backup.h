// Backups of a store: RocksDB's backup engine, with what makes its directory ours. The directory is
// specified in docs/formats/backup.md; see docs/decisions/0033-backups.md.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/engines/rocksdb/rocks_engine.h"
#include "cellar/kv/backup.h"
#include "cellar/kv/store_header.h"

namespace rocksdb {
class DB;
}

namespace cellar::engines {

class DirectoryLock;

// What a backup says of itself beside RocksDB's list of its files.
struct BackupNote {
  kv::StoreHeader store;
  uint64_t change = 0;  // it holds all changes up to this
  int64_t unix_seconds = 0;
  std::string program;
};
std::string EncodeBackupNote(const BackupNote& note);
// Errors: kCorruption; kUnsupported for one of a newer version.
Result<BackupNote> ParseBackupNote(std::string_view text);

// An open store, borrowed.
struct BackupSource {
  rocksdb::DB* db = nullptr;
  std::string directory;
  kv::StoreHeader header;
  const std::atomic<uint64_t>* total_bytes = nullptr;  // known once the copying begins
  std::function<Status(FileCall, std::string_view path)> fault;
  std::function<void()> prepare;  // called when nothing more stands in the way of the backup
};
// Errors: as kv::BackupOptions says.
Result<kv::BackupInfo> AddBackup(const BackupSource& source, const kv::BackupOptions& options);

// Where a store can be built that is to be backed up into the directory in which it lies: for
// backups that are not of a whole store. While it lives nobody else changes the backups. For one
// thread at a time.
class BackupYard {
 public:
  // `directory`: as kv::BackupOptions says. `source`: the store that it must lie apart from.
  // `store_id`: of what store its backups say they are; other ones are refused. Errors: as
  // kv::BackupOptions says.
  static Result<std::unique_ptr<BackupYard>> Open(const std::string& directory,
                                                  const std::string& source,
                                                  const std::array<uint8_t, 16>& store_id);
  BackupYard(std::string store, std::unique_ptr<DirectoryLock> lock);
  ~BackupYard();  // what was built must be closed; it is removed

  const std::string& store() const { return store_; }  // a directory that does not exist yet

 private:
  const std::string store_;
  const std::unique_ptr<DirectoryLock> lock_;
};

// All of the functions below: 58P01 for a directory that is not there, 55000 for one that holds no
// backups, kUnsupported for a newer format, 42501 and 58030 for what cannot be read.

// By number, damaged ones among them. Cost: a look at the size of each file.
Result<std::vector<kv::BackupInfo>> ListBackups(const std::string& directory);
// Reads every byte of one backup and compares checksums. Errors: kCorruption, naming the first
// damaged or missing file; kNotFound. `tell`: as RestoreRequest::progress.
Status VerifyBackup(const std::string& directory, uint32_t number,
                    const std::function<void(const kv::BackupProgress&)>& tell = {});
// Removes all but the newest `keep` > 0 that are not damaged, and damaged ones older than those;
// the numbers removed. Errors: 55006 when another process changes the directory.
Result<std::vector<uint32_t>> PruneBackups(const std::string& directory, uint32_t keep);

struct RestoreRequest {
  std::string from;
  uint32_t number = 0;  // 0: the newest
  std::string directory;
  // Told of the bytes of the backup that were read, by one thread at a time; empty: nobody is.
  std::function<void(const kv::BackupProgress&)> progress;
  // Tests only, as in RocksOptions.
  std::function<Status(FileCall, std::string_view path)> fault;
};
// Makes the store in an absent or empty directory, or one that an interrupted restore has left,
// verifying checksums. It gets an id of its own, and so backups of its own. Until it is whole, it
// does not open as a store; after an error nothing is left. Errors: kNotFound; kCorruption for a
// damaged backup; 55000 for a directory that is not empty; 53100.
Result<kv::BackupInfo> RestoreBackup(const RestoreRequest& request);

// Where a backup can be opened as a store, for reading only. Checksums of whole files are not
// looked at, those of blocks are.
Result<RocksOptions> LocateBackup(const std::string& directory, uint32_t number);

}  // namespace cellar::engines
