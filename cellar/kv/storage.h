// What an engine implements below OccEngine: snapshots to read, groups to write, files to ingest.
//
// Versions are commit numbers given out by OccEngine, one per committed transaction, growing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/kv/block.h"
#include "cellar/kv/engine.h"
#include "cellar/kv/write_buffer.h"

namespace cellar::kv {

// One sorted source, read block by block. One thread at a time.
class RawCursor {
 public:
  virtual ~RawCursor() = default;
  // Replaces `*block` by the next pairs: at least one, then until `target_bytes` or `limit` pairs
  // (0: none) are reached. False, and an empty block, at the end.
  virtual Result<bool> NextBlock(size_t target_bytes, uint64_t limit, Block* block) = 0;
  // One pair, not copied if the source can do so: the views are valid until the next call. False at
  // the end. Not to be mixed with NextBlock.
  virtual Result<bool> NextView(std::string_view* key, std::string_view* value) {
    CELLAR_TRY_ASSIGN(const bool more, NextBlock(1, 1, &view_));
    if (!more) return false;
    *key = view_.key(0);
    *value = view_.value(0);
    return true;
  }

 private:
  Block view_;
};

struct RawScanOptions {
  bool reverse = false;
  bool keys_only = false;
  bool fill_cache = true;
};

// One consistent state of the store, immutable and thread-safe. Cursors must not outlive it.
class SnapshotReader {
 public:
  virtual ~SnapshotReader() = default;
  virtual Result<bool> Get(std::string_view key, PinnedValue* value) const = 0;
  virtual Status MultiGet(std::span<const std::string_view> keys, std::span<PinnedValue> values,
                          std::span<bool> found) const = 0;
  // [start, end); empty `end`: unbounded.
  virtual std::unique_ptr<RawCursor> Scan(std::string_view start, std::string_view end,
                                          const RawScanOptions& options) const = 0;
};

// A finished sorted file of one transaction. Its file is deleted with it unless it was ingested.
// One thread at a time.
class SpillFile {
 public:
  virtual ~SpillFile() = default;
  virtual Result<bool> Get(std::string_view key, PinnedValue* value) = 0;
  virtual std::unique_ptr<RawCursor> Scan(std::string_view start, std::string_view end,
                                          const RawScanOptions& options) = 0;
};

// Takes strictly ascending keys. Deletes the file when destroyed before Finish.
class SpillWriter {
 public:
  virtual ~SpillWriter() = default;
  virtual Status Put(std::string_view key, std::string_view value) = 0;
  virtual Status Delete(std::string_view key) = 0;
  virtual uint64_t file_bytes() const = 0;
  virtual Result<std::unique_ptr<SpillFile>> Finish() = 0;
};

// A counter's record to put, or to delete.
struct CounterWrite {
  std::string key;
  std::optional<std::string> value;
};

// One member of a group: what it writes and the version it gets.
struct GroupMember {
  const WriteBuffer* writes;
  std::span<const CounterWrite> counters;
  uint64_t version;
};

class Storage {
 public:
  virtual ~Storage() = default;

  virtual Limits limits() const = 0;
  // No version handed out before the store was opened is above this.
  virtual uint64_t opened_version() const = 0;

  virtual std::shared_ptr<const SnapshotReader> TakeSnapshot() = 0;
  // Reads the newest state, without a snapshot.
  virtual Result<bool> GetLatest(std::string_view key, PinnedValue* value) = 0;

  // Whether a commit of so many bytes may be tried now; asked before each, by the thread that calls
  // Write. Commits that make room, by deleting, are let through for longer. Errors: kUnavailable
  // 53100 with what is needed; kInvalid 25006 when the storage is open for reading only.
  virtual Status Admit(size_t bytes, bool makes_room) = 0;
  // Applies a group at once: all of it or nothing. It shows in snapshots taken from now on and
  // survives the process, but not the machine. Called by one thread at a time, in order of
  // versions.
  // `*failed` is set if the store must take no more writes; the error's code then says what the
  // members are told.
  virtual Status Write(std::span<const GroupMember> group, bool* failed) = 0;
  // Makes durable all groups whose Write returned before the call, and perhaps later ones.
  // Thread-safe, also beside Write and Ingest. After an error, which is kCommitUnknown, nobody
  // knows of groups not yet durable; unless `*failed`, a later call may still make them so.
  virtual Status SyncLog(bool* failed) = 0;

  // Bytes of a write buffer from which it goes to spill files; SIZE_MAX: never.
  virtual size_t spill_bytes() const = 0;
  virtual Result<std::unique_ptr<SpillWriter>> NewSpillFile() = 0;
  // Makes earlier groups durable, and then applies the range deletions and adds the files, which do
  // not overlap, and the counters, at once and durably. Called like Write. After an error nothing
  // of it is there, unless `*failed`.
  // `unread`: nobody reads the files' keys in a snapshot taken before; such ones may show them.
  virtual Status Ingest(std::span<const std::unique_ptr<SpillFile>> files,
                        std::span<const WriteBuffer::RangeDeletion> range_deletions,
                        std::span<const CounterWrite> counters, bool unread, uint64_t version,
                        bool* failed) = 0;

  virtual uint64_t ApproximateBytes(std::string_view start, std::string_view end) = 0;
  virtual std::vector<std::string> SplitPoints(std::string_view start, std::string_view end,
                                               size_t parts) = 0;
  virtual Status Compact(std::string_view start, std::string_view end) = 0;
  virtual Status Sync() = 0;
  // Fills the byte counters.
  virtual void AddStats(EngineStats* stats) const = 0;
  // As Engine::Backup: a state that holds each group whole or not at all. Thread-safe.
  virtual Result<BackupInfo> Backup(const BackupOptions& options);
  virtual Status Close() = 0;
};

}  // namespace cellar::kv
