// The contract every storage engine fulfils: ordered bytes, transactions, limits as data.
//
// Keys are unsigned bytes compared with memcmp. A transaction reads one snapshot, sees its own
// writes, buffers them, and commits them at once. Callers size their batches by Limits.
// The contract suite in tests/engine_contract runs on every engine.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/cancel.h"
#include "cellar/base/status.h"
#include "cellar/kv/block.h"
#include "cellar/kv/locks.h"

namespace cellar::kv {

struct BackupInfo;  // cellar/kv/backup.h
struct BackupOptions;
class LockTable;  // cellar/kv/lock_table.h

// What an engine can take in one transaction; SIZE_MAX means no bound of its own.
struct Limits {
  size_t max_key_bytes = 64 << 10;
  size_t max_value_bytes = size_t{1} << 30;
  size_t max_txn_bytes = SIZE_MAX;   // keys and values written
  size_t max_txn_ops = SIZE_MAX;     // writes
  size_t soft_txn_bytes = SIZE_MAX;  // split work that may be split (backfill, sealing) here
  std::chrono::milliseconds max_txn_age = std::chrono::milliseconds::max();
  bool native_ranges = true;    // DeleteRange costs O(1), whatever it covers
  bool unknown_commit = false;  // Commit may answer kCommitUnknown, not only when the disk fails
  bool cheap_bulk = true;       // large transactions spill to disk instead of failing
};

// How a read counts at commit. kTracked: if another transaction has changed what was read, Commit
// answers kConflict (serializable isolation only). kSnapshot: the read never causes a conflict.
enum class ReadMode : uint8_t { kTracked, kSnapshot };

// kSerializable: tracked reads, points and ranges, are validated at commit; strict in real time.
// kSnapshot: reads are not validated; keys written are: the first committer wins.
enum class Isolation : uint8_t { kSerializable, kSnapshot };

// What the reads of one statement see: one snapshot of the store, and of the transaction's own
// writes those made before the view was opened. So a statement reads the state of its start,
// whatever it has written meanwhile, and by whatever cursors it opens meanwhile. Views nest: one
// that is opened later sees what was written before it.
//
// Opening costs no trip: the snapshot is the one that the view's first read takes or finds.
// Later advances of the transaction's snapshot do not show in it, but for those by Lock that change
// nothing of what was read. Made by Transaction::OpenView; reads name it in ReadOptions or
// ScanOptions. It may outlive its transaction, and is then good for nothing. Immutable to its
// users; its first read, and its end, belong on the transaction's thread.
class ReadView {
 public:
  virtual ~ReadView() = default;
};
using ReadViewPtr = std::shared_ptr<const ReadView>;

// How and at which view a key is read. Null: the transaction's snapshot and all of its writes.
struct ReadOptions {
  ReadOptions() = default;
  ReadOptions(ReadMode read_mode, const ReadView* at = nullptr) : mode(read_mode), view(at) {}
  ReadMode mode = ReadMode::kTracked;
  const ReadView* view = nullptr;  // borrowed for the call
};

struct ScanOptions {
  bool reverse = false;
  bool keys_only = false;              // values come back empty
  bool fill_cache = true;              // false: a large scan that must not evict others' blocks
  uint64_t limit = 0;                  // most pairs to return in all; 0: no limit
  size_t block_bytes = 64 << 10;       // aim for later blocks; one pair always fits
  size_t first_block_bytes = 4 << 10;  // aim for the first block; grows by 4 up to block_bytes
  ReadMode mode = ReadMode::kTracked;
  // Borrowed by Scan alone. Null: the snapshot and the own writes as they are when Scan is called.
  const ReadView* view = nullptr;
};

// Reads a key range block by block, all of it at the view that its scan was opened with.
// Must not outlive its transaction. One thread at a time.
class Cursor {
 public:
  virtual ~Cursor() = default;
  // Replaces the content of `*block` with the next pairs. False, and an empty block, at the end.
  // Cost: one engine trip, none when own writes alone fill the block.
  virtual Result<bool> NextBlock(Block* block) = 0;
  // One pair, for large values that are worth not copying: the views are valid until the cursor's
  // next call or end. False at the end. Use this or NextBlock, not both on one cursor. Cost: a step
  // of the engine's iterator, nothing copied unless own writes lie in the range.
  virtual Result<bool> NextView(std::string_view* key, std::string_view* value) = 0;
};

struct LockResult {
  std::vector<bool> acquired;  // one per key, in order; all true unless kSkip
  // One per key: it was written after the snapshot of the view.
  std::vector<bool> changed;
  // One of them was. The transaction's snapshot holds that: read them again, at OpenView(view).
  bool snapshot_moved = false;
};

struct TransactionOptions {
  Isolation isolation = Isolation::kSerializable;
  bool read_only = false;  // writes answer kInvalid; nothing is tracked, nothing validated
  bool durable = true;     // default of Commit()
  // One statement that its caller reruns by itself on kConflict: the first Get reads without a
  // snapshot, which makes single-row lookups as cheap as the engine's own Get.
  bool autocommit = false;
  // PutIfAbsent may report duplicates as late as Commit, in exchange for sequential checks.
  bool bulk = false;
  // Writes that change no meaning (moving rows between layouts): others' reads of them do not
  // conflict. The own reads are validated as usual.
  bool unmarked_writes = false;
  // Whose locks its own do not exclude, and by which name others see them; 0: nobody's, a number
  // from kFirstLockGroup on.
  uint64_t lock_group = 0;
};
inline constexpr uint64_t kFirstLockGroup = uint64_t{1} << 40;

struct CommitOptions {
  bool durable = true;  // false: may be lost in a crash, even when later commits are not
  // It deletes more than it writes, or will let others do so: taken although the disk has no room
  // left for ordinary commits.
  bool makes_room = false;
};

struct TransactionStats {
  uint64_t bytes = 0;          // of keys and values in the write buffer and spilled runs
  uint64_t ops = 0;            // writes
  uint64_t reads = 0;          // keys asked for and pairs returned
  uint64_t trips = 0;          // calls that reached the engine, the commit included
  uint64_t spilled_bytes = 0;  // of `bytes`, what lies in spill files
};

using SavepointId = uint64_t;

// The sums of one counter (counters.h); what each means is the user's.
inline constexpr size_t kCounters = 6;
using CounterValues = std::array<int64_t, kCounters>;

// One transaction. One thread at a time. Destroying it without Commit aborts it. After Commit or
// Abort only stats(), snapshot_version() and duplicate_key() may be called.
class Transaction {
 public:
  virtual ~Transaction() = default;

  // A view of the transaction as it is now. With `writes_of`, a view of this transaction: its own
  // writes are those of that view, its snapshot is the transaction's present one.
  virtual ReadViewPtr OpenView(const ReadView* writes_of = nullptr) = 0;
  // The same, whose snapshot is a new one, which holds all that Lock has met; the transaction's
  // stays as it is.
  virtual ReadViewPtr OpenNewestView(const ReadView* writes_of = nullptr) = 0;
  // Has this transaction written `key` since the view was opened, or deleted a range that holds it?
  // Cost: no trip to the engine; a look at each run of spilled writes that may hold it.
  virtual Result<bool> WroteSince(std::string_view key, const ReadView& view) = 0;

  // Reads one key; false if it is absent (`*value` is then empty). Own writes show.
  virtual Result<bool> Get(std::string_view key, PinnedValue* value,
                           const ReadOptions& options = {}) = 0;
  // Reads keys.size() keys in one trip; `values` and `found` must be as long as `keys`.
  virtual Status MultiGet(std::span<const std::string_view> keys, std::span<PinnedValue> values,
                          std::span<bool> found, const ReadOptions& options = {}) = 0;
  // Reads [start, end) in key order, or downwards with options.reverse. An empty `end` means no
  // upper bound. Opening costs no trip; each block costs one. A tracked scan tracks what it has
  // returned so far, and the whole range once it has ended.
  virtual Result<std::unique_ptr<Cursor>> Scan(std::string_view start, std::string_view end,
                                               const ScanOptions& options = {}) = 0;

  // Buffer writes; key and value are copied. Errors: kLimit (54000) past limits(); kInvalid when
  // read only. No trip, but a large transaction may spill to disk here (53100 when that is full).
  virtual Status Put(std::string_view key, std::string_view value) = 0;
  virtual Status Delete(std::string_view key) = 0;
  // Deletes [start, end): of the snapshot and of the own writes. Conflicts with every reader.
  virtual Status DeleteRange(std::string_view start, std::string_view end) = 0;
  // Put that demands the key's absence, which is tracked. A duplicate answers kConstraint (23505)
  // here, or, with options.bulk, here or at Commit; duplicate_key() then names the key.
  virtual Status PutIfAbsent(std::string_view key, std::string_view value) = 0;
  // The key whose PutIfAbsent failed; empty otherwise. Valid until the transaction is destroyed.
  virtual std::string_view duplicate_key() const = 0;

  // Makes Commit fail if [start, end) changes meanwhile, as if it had been read; any isolation.
  virtual Status AddReadConflict(std::string_view start, std::string_view end) = 0;
  // The same for one key, as if a Get had found what is known of it: for whoever knows without
  // reading. Serializable isolation only, as of tracked reads. Cost: no trip.
  virtual Status AddReadConflict(std::string_view key) = 0;
  // From here on reads are tracked, and validated by Commit, under any isolation; or again as the
  // isolation says. For checks that must hold for what is committed, such as foreign keys. Returns
  // what it was before.
  virtual bool HoldReads(bool on) = 0;
  // Makes this transaction's Commit, if it writes anything, count as a write of [start, end) too:
  // for what others have read there, whose rows change although none of these keys does, and for
  // the first committer of snapshot isolation. Counts in spite of unmarked_writes. No trip. Like
  // every write of a range it also refuses others' older point reads elsewhere (see ReadSet).
  virtual Status AddWriteConflict(std::string_view start, std::string_view end) = 0;
  // The same of one key, in spite of what lies beside it; not for the first committer.
  virtual Status AddWriteConflict(std::string_view key) = 0;
  // Demands that `key` has not been written after commit version `version`: checked here, without
  // a trip, and again by a Commit that writes. Error: kConflict (40001). Exact for system records,
  // whose keys begin with 00. Of other keys a false alarm is possible the first time one is named;
  // with the version of a newer read it passes.
  virtual Status Require(std::string_view key, uint64_t version) = 0;

  // Counters are sums that the commit changes without conflicts, whatever else it writes. `name`
  // begins with 00, is no prefix of another counter's, and nothing else lies behind it. Cost: no
  // trip; one write to the engine per commit and counter.
  //
  // Adds; nothing, if the counter does not exist when the transaction commits.
  virtual Status AddToCounter(std::string_view name, const CounterValues& values) = 0;
  // Makes the counter, all zero, unless it exists.
  virtual Status CreateCounter(std::string_view name) = 0;
  virtual Status DropCounter(std::string_view name) = 0;
  // The counter in the view's snapshot, with what this transaction had added when it was opened;
  // nullopt if it does not exist. Untracked. Cost: a trip.
  virtual Result<std::optional<CounterValues>> GetCounter(std::string_view name,
                                                          const ReadView* view = nullptr) = 0;

  // Locks the keys of rows, in this process (see README.md), until the transaction ends or rolls
  // back to a savepoint before. If a locked key was written after the snapshot, the snapshot is
  // advanced, provided that nothing tracked so far has changed; else kConflict 40001. Errors:
  // kConflict 40P01 on a deadlock; kUnavailable 55P03 with kNoWait or after the timeout;
  // kCancelled. Locks taken before an error stay held.
  // Locks do not stop writers that take none: those lose or win at commit as always.
  virtual Result<LockResult> Lock(std::span<const std::string_view> keys,
                                  const LockOptions& options = {}) = 0;
  // Locks what is no row, as long and with the same errors. False only with kSkip.
  virtual Result<bool> LockName(LockKind kind, std::string_view name,
                                const LockOptions& options = {}) = 0;

  // Marks the write buffer. Savepoints nest; rolling back to one drops later ones and keeps it.
  // Reads stay tracked. Error: kNotFound for one that is gone.
  virtual SavepointId Savepoint() = 0;
  virtual Status RollbackTo(SavepointId savepoint) = 0;
  virtual Status ReleaseSavepoint(SavepointId savepoint) = 0;

  // Reads from here on see everything committed before this call (READ COMMITTED takes one per
  // statement). Earlier tracked reads and writes are still validated against their own snapshots.
  virtual Status RefreshSnapshot() = 0;
  // Every commit with a version up to this shows in the snapshot (of the view); takes one if there
  // is none yet.
  virtual uint64_t snapshot_version(const ReadView* view = nullptr) = 0;

  virtual TransactionStats stats() const = 0;

  // Validates and applies everything at once; the commit's version, or the snapshot's version if
  // nothing was written. Errors: kConflict 40001, nothing applied; kConstraint 23505 (bulk);
  // kCommitUnknown 40003; kUnavailable 58030 or 53100. The transaction is over in every case.
  virtual Result<uint64_t> Commit(const CommitOptions& options) = 0;
  // With the durability of the TransactionOptions.
  virtual Result<uint64_t> Commit() = 0;
  virtual void Abort() = 0;
};

// Counters since the engine was opened.
struct EngineStats {
  uint64_t begins = 0;
  uint64_t trips = 0;          // calls of transactions that reached the engine
  uint64_t commits = 0;        // with writes
  uint64_t conflicts = 0;      // commits refused by validation
  uint64_t groups = 0;         // writes to the engine's log; commits / groups is the batching
  uint64_t synced_groups = 0;  // syncs of the log for them
  uint64_t spilled_runs = 0;
  uint64_t lock_waits = 0;
  uint64_t deadlocks = 0;
  uint64_t cache_bytes = 0;   // block cache in use
  uint64_t memory_bytes = 0;  // block cache, write buffers and readers together
  uint64_t disk_bytes = 0;    // live files
};

// An open store. Thread-safe. Transactions must end before it is closed or destroyed.
class Engine {
 public:
  virtual ~Engine() = default;

  // Never null; costs no trip.
  virtual std::unique_ptr<Transaction> Begin(const TransactionOptions& options = {}) = 0;

  virtual Limits limits() const = 0;
  // The version of the newest commit that all later transactions see.
  virtual uint64_t latest_version() const = 0;
  // Bytes on disk between two keys, roughly; good from about 500 pairs on.
  virtual uint64_t ApproximateBytes(std::string_view start, std::string_view end) = 0;
  // At most `parts` - 1 sorted keys that cut [start, end) into pieces of similar size.
  virtual std::vector<std::string> SplitPoints(std::string_view start, std::string_view end,
                                               size_t parts) = 0;
  // Rewrites [start, end) so that dead versions go; both empty: everything.
  virtual Status Compact(std::string_view start, std::string_view end) = 0;
  // Makes all commits durable, those that did not ask for it too.
  virtual Status Sync() = 0;
  virtual EngineStats stats() const = 0;
  // Who holds and awaits which locks; for locks that outlive transactions, too.
  virtual LockTable& locks() = 0;
  // Adds a backup of the store, as it is at one moment of the call, to a directory of them; writers
  // go on meanwhile. Include cellar/kv/backup.h. Errors: see there; 0A000 from engines that have no
  // backups.
  virtual Result<BackupInfo> Backup(const BackupOptions& options);
  // Flushes and releases the store. Later calls answer kUnavailable.
  virtual Status Close() = 0;
};

}  // namespace cellar::kv
