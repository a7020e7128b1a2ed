#include "cellar/kv/occ_engine.h"

#include "cellar/base/sqlstate.h"
#include "cellar/kv/backup.h"
#include "cellar/kv/occ_transaction.h"

namespace cellar::kv {

OccEngine::OccEngine(std::unique_ptr<Storage> storage, const OccOptions& options)
    : storage_(std::move(storage)),
      conflicts_(options.conflict_slots_log2, options.conflict_ring_bytes_log2,
                 storage_->opened_version()),
      visibility_(storage_.get(), storage_->opened_version()),
      queue_(storage_.get(), &conflicts_, &visibility_),
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
  visibility_.DropStale();
  return storage_->Compact(start, end);
}

Status OccEngine::Sync() {
  CELLAR_TRY(CheckOpen());
  CELLAR_TRY(queue_.health());
  queue_.SyncWhatIsLeft();
  return storage_->Sync();
}

Result<BackupInfo> OccEngine::Backup(const BackupOptions& options) {
  CELLAR_TRY(CheckOpen());
  CELLAR_TRY(queue_.health());
  return storage_->Backup(options);
}

EngineStats OccEngine::stats() const {
  EngineStats stats;
  stats.begins = begins_.load(std::memory_order_relaxed);
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
  visibility_.Drop();
  return storage_->Close();
}

Status OccEngine::CheckOpen() const {
  if (!closed_.load(std::memory_order_acquire)) return {};
  return MakeError(Code::kUnavailable, "the store is closed");
}

void OccEngine::NoteEnd(const TransactionStats& stats) {
  if (stats.trips != 0) trips_.fetch_add(stats.trips, std::memory_order_relaxed);
}

}  // namespace cellar::kv
