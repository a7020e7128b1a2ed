// One optimistic transaction of an OccEngine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/kv/engine.h"
#include "cellar/kv/lock_table.h"
#include "cellar/kv/occ_engine.h"
#include "cellar/kv/read_set.h"
#include "cellar/kv/spill.h"
#include "cellar/kv/write_buffer.h"

namespace cellar::kv {

class MergingCursor;

class OccTransaction : public Transaction {
 public:
  OccTransaction(OccEngine* engine, const TransactionOptions& options);
  ~OccTransaction() override;

  ReadViewPtr OpenView(const ReadView* writes_of) override;
  ReadViewPtr OpenNewestView(const ReadView* writes_of) override;
  Result<bool> WroteSince(std::string_view key, const ReadView& view) override;
  Result<bool> Get(std::string_view key, PinnedValue* value, const ReadOptions& options) override;
  Status MultiGet(std::span<const std::string_view> keys, std::span<PinnedValue> values,
                  std::span<bool> found, const ReadOptions& options) override;
  Result<std::unique_ptr<Cursor>> Scan(std::string_view start, std::string_view end,
                                       const ScanOptions& options) override;
  Status Put(std::string_view key, std::string_view value) override;
  Status Delete(std::string_view key) override;
  Status DeleteRange(std::string_view start, std::string_view end) override;
  Status PutIfAbsent(std::string_view key, std::string_view value) override;
  std::string_view duplicate_key() const override { return duplicate_; }
  Status AddReadConflict(std::string_view start, std::string_view end) override;
  Status AddReadConflict(std::string_view key) override;
  bool HoldReads(bool on) override;
  Status AddWriteConflict(std::string_view start, std::string_view end) override;
  Status AddWriteConflict(std::string_view key) override;
  Status Require(std::string_view key, uint64_t version) override;
  Status AddToCounter(std::string_view name, const CounterValues& values) override;
  Status CreateCounter(std::string_view name) override;
  Status DropCounter(std::string_view name) override;
  Result<std::optional<CounterValues>> GetCounter(std::string_view name,
                                                  const ReadView* view) override;
  Result<LockResult> Lock(std::span<const std::string_view> keys,
                          const LockOptions& options) override;
  Result<bool> LockName(LockKind kind, std::string_view name, const LockOptions& options) override;
  SavepointId Savepoint() override;
  Status RollbackTo(SavepointId savepoint) override;
  Status ReleaseSavepoint(SavepointId savepoint) override;
  Status RefreshSnapshot() override;
  uint64_t snapshot_version(const ReadView* view) override;
  TransactionStats stats() const override { return stats_; }
  Result<uint64_t> Commit(const CommitOptions& options) override;
  Result<uint64_t> Commit() override { return Commit(CommitOptions{options_.durable}); }
  void Abort() override;

 private:
  friend class MergingCursor;

  // What ReadView is here. While the transaction lives it knows its views: their sequence numbers
  // are bounds of runs, and places in counters_ that sums must not cross.
  struct View final : ReadView {
    View(OccTransaction* owner, uint64_t own_seq, size_t counter_changes)
        : transaction(owner), seq(own_seq), counters(counter_changes) {}
    ~View() override {
      if (transaction != nullptr) transaction->CloseView(this);
    }
    bool pinned() const { return snapshot != nullptr; }

    OccTransaction* transaction;                     // null once that has ended
    const uint64_t seq;                              // own writes with greater numbers do not show
    const size_t counters;                           // nor do later changes of counters
    std::shared_ptr<const SnapshotReader> snapshot;  // null before the first read
    uint64_t version = 0;                            // of the snapshot
  };
  // One state of the store, and its version.
  struct Seen {
    const std::shared_ptr<const SnapshotReader>& snapshot;
    uint64_t version;
  };

  struct Mark {
    SavepointId id;
    uint64_t seq;
    uint64_t bytes, ops;
    size_t counters;   // changes before it
    size_t conflicts;  // added keys before it
    size_t locks;      // taken before it
  };

  bool tracks(ReadMode mode) const { return (tracking_ || holds_) && mode == ReadMode::kTracked; }
  Status CheckLive() const;
  // The view as this class knows it; null for null. Error: it is another transaction's.
  Result<View*> Own(const ReadView* view) const;
  void CloseView(View* view);
  // What reads at the view see of the store; pins it.
  Result<Seen> See(View* view);
  // The changes of counters from here on may be summed up: no savepoint or view parts them.
  size_t CountersSince() const;
  // From here on reads see one state.
  Status EnsureSnapshot();
  // The error that asks for a rerun, once that would see what has changed.
  Status Refuse();
  // The same of a locked key, which was written or deleted.
  Status RefuseFor(std::string_view key);
  // From here on there is a version to validate against.
  void EnsureVersion();
  void SetVersion(uint64_t version);

  // *version: of the state that was read.
  Result<bool> GetStored(std::string_view key, View* view, PinnedValue* value, uint64_t* version);
  // The own write of a key that a view at `seq` holds, if any.
  Result<WriteBuffer::Found> FindOwn(std::string_view key, uint64_t seq, PinnedValue* value);
  // Whether the key exists for a write that is about to replace an unproven one.
  Result<bool> ExistsBelowBuffer(std::string_view key);

  Status ProveRange(std::string_view start, std::string_view end);

  Status ChangeCounter(CounterChange change);
  // Adds to an earlier change of the same counter, if one at or behind `since` can take it.
  bool SumUp(const CounterChange& change, size_t since, size_t end);

  WriteBuffer& buffer();
  Status CheckWrite(std::string_view key, size_t value_bytes);
  Status Write(WriteKind kind, std::string_view key, std::string_view value);
  // Moves the buffer's keys to runs.
  Status Spill();
  // Large ascending writes that nobody else waits for go straight to a file; see Write.
  bool MayStream(std::string_view key);
  Status OpenStream();
  // Ends such a file, so that it can be read and followed by other writes.
  Status EndStream() { return streams() ? KeepError(runs_->Close()) : Status(); }
  // Writes are lost if it is an error: the transaction is good for nothing from here on.
  Status KeepError(Status status) {
    broken_ = std::move(status);
    return broken_;
  }
  bool streams() const { return runs_ != nullptr && runs_->is_open(); }
  // Sequence numbers that runs must not straddle; ascending, the newest one last.
  std::vector<uint64_t> SpillBounds() const;

  Status MoveSnapshot(bool over_reads);
  Status ProveBuffered();
  // Would its writes cost less as files than by way of log and write buffer?
  bool BelongsInFiles() const;
  void PrepareWrites(CommitRequest* request);
  void CollectOpenRanges();
  std::vector<Mark>::iterator FindSavepoint(SavepointId id);
  void End();

  OccEngine* const engine_;
  const TransactionOptions options_;
  const bool tracking_;
  bool holds_ = false;  // see HoldReads
  bool live_ = true;
  Status broken_;
  bool read_without_snapshot_ = false;
  bool added_conflicts_ = false;  // reads_ holds what this transaction has not read
  bool may_hold_unproven_ = false;

  std::shared_ptr<const SnapshotReader> snapshot_;
  uint64_t version_ = 0;
  uint64_t least_version_ = 0;  // that a snapshot must hold, for the sake of locked keys
  uint64_t first_read_hash_ = 0;
  uint32_t epoch_ = 0;
  std::vector<uint64_t> epoch_versions_;

  ReadSet reads_;
  std::vector<ReadRange> write_conflicts_;
  std::vector<std::string> conflict_keys_;  // of AddWriteConflict
  std::unique_ptr<WriteBuffer> buffer_;
  std::vector<CounterChange> counters_;
  std::unique_ptr<SpillSet> runs_;
  uint64_t changes_ = 0;  // counts whatever invalidates places in buffer and runs
  uint64_t spilled_seq_ = 0;
  uint32_t ascending_ = 0;  // writes in a row that were behind all keys of the buffer
  std::vector<Mark> savepoints_;
  SavepointId next_savepoint_ = 1;
  std::vector<MergingCursor*> cursors_;
  std::vector<View*> views_;  // open ones
  std::string duplicate_;
  TransactionStats stats_;
  LockOwner locks_;
};

}  // namespace cellar::kv
