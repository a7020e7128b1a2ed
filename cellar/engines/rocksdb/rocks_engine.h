// The RocksDB engine: a store in a directory of this machine.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cellar/base/status.h"
#include "cellar/kv/engine.h"

namespace rocksdb {
class Env;
}

namespace cellar::engines {

// What a fault hook is asked about: one call on a file of the store.
enum class FileCall : uint8_t { kMake, kAppend, kSync };

struct RocksOptions {
  std::string directory;
  bool create_if_missing = true;
  // For tools: no lock is taken, nothing is written, writes answer kInvalid.
  bool read_only = false;
  // Open although the log has lost durable commits: it holds records behind a damaged place, or
  // ends before the place that is known to have been reached. A power cut leaves damaged places too
  // if commits did not wait for the disk.
  bool accept_log_damage = false;
  // Told what that loses; empty: nobody is.
  std::function<void(std::string_view message)> lost;

  // Of blocks and memtables together; 0: a quarter of the machine's memory, at most 256 MiB.
  size_t cache_bytes = 0;
  size_t write_buffer_bytes = 64 << 20;  // of one memtable; up to three exist
  size_t spill_bytes = 64 << 20;         // of one transaction, before it goes to files
  int background_jobs = 2;
  // Counts index and filter blocks against the cache: bounded memory, somewhat slower reads.
  bool cache_index_blocks = false;
  bool compress_cold_data = false;  // ZSTD for the last level instead of LZ4

  // Of a backup that is looked at where it lies (rocks_backup.h), read-only; null: files as usual.
  std::shared_ptr<rocksdb::Env> env;

  // Tests only: what a call on a file is to answer, of a backup too; empty: none.
  std::function<Status(FileCall, std::string_view path)> fault;
};

// Opens the store, or makes one in an absent or empty directory (mode 0700, files 0600). Recovers
// what was committed durably. Errors: kNotFound; kUnavailable (55006) if another process has it;
// kInvalid for a directory that is something else; kUnsupported for a newer format; kCorruption for
// a damaged log, which is then left as it is; kUnavailable (58030, 53100) when the disk refuses.
Result<std::unique_ptr<kv::Engine>> OpenRocksEngine(const RocksOptions& options);

// Version and build of the RocksDB that programs are linked with.
std::string_view RocksBuild();

}  // namespace cellar::engines
