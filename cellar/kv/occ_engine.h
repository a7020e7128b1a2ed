// Transactions by optimistic validation over any Storage: the Engine that the memory engine and the
// RocksDB engine share. See README.md for why it is right.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "cellar/kv/commit_queue.h"
#include "cellar/kv/conflict_index.h"
#include "cellar/kv/engine.h"
#include "cellar/kv/lock_table.h"
#include "cellar/kv/storage.h"
#include "cellar/kv/visibility.h"

namespace cellar::kv {

struct OccOptions {
  int conflict_slots_log2 = 21;       // 8 bytes each
  int conflict_ring_bytes_log2 = 24;  // recent commits' keys, for range reads
};

// Thread-safe.
class OccEngine : public Engine {
 public:
  explicit OccEngine(std::unique_ptr<Storage> storage, const OccOptions& options = {});
  ~OccEngine() override;

  std::unique_ptr<Transaction> Begin(const TransactionOptions& options = {}) override;
  Limits limits() const override { return storage_->limits(); }
  // Whoever keeps what was read beside a commit of unknown outcome must take it for one to come.
  uint64_t latest_version() const override {
    return visibility_.unknown() ? visibility_.started() : visibility_.published();
  }
  uint64_t ApproximateBytes(std::string_view start, std::string_view end) override;
  std::vector<std::string> SplitPoints(std::string_view start, std::string_view end,
                                       size_t parts) override;
  Status Compact(std::string_view start, std::string_view end) override;
  Status Sync() override;
  EngineStats stats() const override;
  LockTable& locks() override { return locks_; }
  Result<BackupInfo> Backup(const BackupOptions& options) override;
  Status Close() override;

  Storage& storage() { return *storage_; }

 private:
  friend class OccTransaction;

  Status CheckOpen() const;
  void NoteEnd(const TransactionStats& stats);

  const std::unique_ptr<Storage> storage_;
  ConflictIndex conflicts_;
  Visibility visibility_;
  LockTable locks_;
  CommitQueue queue_;
  const size_t spill_bytes_;
  const Limits limits_;
  std::atomic<bool> closed_{false};
  std::atomic<uint64_t> begins_{0};
  std::atomic<uint64_t> trips_{0}, spilled_runs_{0};
};

}  // namespace cellar::kv
