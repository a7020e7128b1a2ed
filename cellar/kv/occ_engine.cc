#include "cellar/kv/occ_engine.h"

#include "cellar/base/sqlstate.h"
#include "cellar/kv/occ_transaction.h"

namespace cellar::kv {

OccEngine::OccEngine(std::unique_ptr<Storage> storage, const OccOptions& options)
    : storage_(std::move(storage)),
      conflicts_(options.conflict_slots_log2, options.conflict_ring_bytes_log2,
                 storage_->opened_version()),
      queue_(storage_.get(), &conflicts_, storage_->opened_version()),
      spill_bytes_(storage_->spill_bytes()),
      limits_(storage_->limits()) {}

OccEngine::~OccEngine() {
  // Whoever cares for the outcome has called Close.
  static_cast<void>(Close().ok());
}

std::unique_ptr<Transaction> OccEngine::Begin(const TransactionOptions& options) {
  return std::make_unique<OccTransaction>(this, options);
}

uint64_t OccEngine::ApproximateBytes(std::string_view start, std::string_view end) {
  return CheckOpen().ok() ? storage_->ApproximateBytes(start, end) : 0;
}

std::vector<std::string> OccEngine::SplitPoints(std::string_view start, std::string_view end,
                                                size_t parts) {
  if (parts < 2 || !CheckOpen().ok()) return {};
  return storage_->SplitPoints(start, end, parts);
}

Status OccEngine::Compact(std::string_view start, std::string_view end) {
  CELLAR_TRY(CheckOpen());
  DropStaleSnapshot();
  return storage_->Compact(start, end);
}

Status OccEngine::Sync() {
  CELLAR_TRY(CheckOpen());
  CELLAR_TRY(queue_.health());
  return storage_->Sync();
}

EngineStats OccEngine::stats() const {
  EngineStats stats;
  // Every transaction that could take locks has an owner id, so ids count them.
  stats.begins = next_owner_.load(std::memory_order_relaxed) - 1;
  stats.trips = trips_.load(std::memory_order_relaxed);
  stats.spilled_runs = spilled_runs_.load(std::memory_order_relaxed);
  stats.lock_waits = locks_.waits();
  stats.deadlocks = locks_.deadlocks();
  queue_.AddStats(&stats);
  if (CheckOpen().ok()) storage_->AddStats(&stats);
  return stats;
}

Status OccEngine::Close() {
  if (closed_.exchange(true)) return {};
  queue_.Stop(MakeError(Code::kUnavailable, "the store is closed"));
  {
    std::lock_guard lock(snapshot_mutex_);
    shared_snapshot_.reset();
  }
  return storage_->Close();
}

Status OccEngine::CheckOpen() const {
  if (!closed_.load(std::memory_order_acquire)) return {};
  return MakeError(Code::kUnavailable, "the store is closed");
}

std::shared_ptr<const SnapshotReader> OccEngine::AcquireSnapshot(uint64_t* version) {
  std::lock_guard lock(snapshot_mutex_);
  const uint64_t started = queue_.started();
  if (shared_snapshot_ != nullptr && shared_version_ == started) {
    *version = shared_version_;
    return shared_snapshot_;
  }
  const uint64_t published = queue_.published();
  std::shared_ptr<const SnapshotReader> snapshot = storage_->TakeSnapshot();
  *version = published;
  // While a group is on its way, a read without snapshot may already see it, and a snapshot that
  // lacks it must not be handed out after such a read.
  if (published == started) {
    shared_snapshot_ = snapshot;
    shared_version_ = published;
  } else {
    shared_snapshot_.reset();
  }
  return snapshot;
}

void OccEngine::DropStaleSnapshot() {
  std::shared_ptr<const SnapshotReader> stale;
  std::lock_guard lock(snapshot_mutex_);
  if (shared_snapshot_ != nullptr && shared_version_ != queue_.started()) {
    stale = std::move(shared_snapshot_);
  }
}

void OccEngine::NoteEnd(const TransactionStats& stats) {
  if (stats.trips != 0) trips_.fetch_add(stats.trips, std::memory_order_relaxed);
}

}  // namespace cellar::kv
