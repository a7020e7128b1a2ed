// Backups of a store, as every engine that has them tells of them. A directory holds the backups of
// one store; they share the files that did not change in between.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cellar/base/cancel.h"

namespace cellar::kv {

struct BackupProgress {
  uint64_t copied_bytes = 0;  // so far; of a backup that is verified, read
  uint64_t total_bytes = 0;   // of the store, whatever earlier backups hold of it; of the backup
};

struct BackupOptions {
  // Of backups of this store alone. Absent or empty: it is made one, for its owner alone. Not
  // within the store, nor around it.
  std::string directory;
  uint32_t keep = 0;  // this many of the newest stay afterwards, the new one among them; 0: all
  // Told now and then, by one thread at a time; empty: nobody is.
  std::function<void(const BackupProgress&)> progress;
  const CancelToken* cancel = nullptr;  // borrowed; polled about every 4 MiB
  // For a store that was built to be backed up, in the directory itself, which the caller holds: of
  // what store the backup says it is.
  std::optional<std::array<uint8_t, 16>> as_store;
};
// Errors of making one; earlier backups are as they were, and what was begun is cleared away, at
// the latest by the next one: kInvalid 55000 for a directory that holds something else, or another
// store's backups; 22023 for one within the store; 42501, 58030 and 58P01 for a path that cannot be
// used; kUnavailable 53100 without room there, 55006 when the directory is being changed by another
// process; kCancelled; kUnsupported for a newer format.

struct BackupInfo {
  uint32_t number = 0;       // within the directory, growing
  int64_t unix_seconds = 0;  // when it was begun
  uint64_t bytes = 0;        // of its files, shared ones among them
  uint64_t added_bytes = 0;  // of files that no backup with a lower number has
  uint32_t files = 0;        // shared ones among them
  bool damaged = false;      // files are missing or of another size; then only `number` counts
  std::array<uint8_t, 16> store_id{};
  uint32_t format_version = 0;  // of the store
  uint64_t change = 0;          // the engine's number of the last change that it holds
  std::string program;          // the version of Cellar that made it
};

}  // namespace cellar::kv
