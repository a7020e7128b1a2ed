#include "cellar/engines/rocksdb/rocks_storage.h"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/metadata.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_manager.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/stackable_db.h>
#include <rocksdb/utilities/table_properties_collectors.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <random>
#include <thread>

#include "cellar/base/memory_account.h"
#include "cellar/base/sqlstate.h"
#include "cellar/engines/rocksdb/disk_space.h"
#include "cellar/engines/rocksdb/log_end.h"
#include "cellar/engines/rocksdb/log_gate.h"
#include "cellar/engines/rocksdb/rocks_backup.h"
#include "cellar/engines/rocksdb/rocks_file_system.h"
#include "cellar/engines/rocksdb/rocks_read.h"
#include "cellar/engines/rocksdb/rocks_spill.h"
#include "cellar/engines/rocksdb/rocks_status.h"

namespace cellar::engines {
namespace {

constexpr size_t kMaxCacheBytes = 256 << 20;
constexpr size_t kMinCacheBytes = 8 << 20;
constexpr size_t kMaxKeyBytes = 1 << 20;
constexpr size_t kSoftTransactionBytes = 4 << 20;
constexpr size_t kKeepBatchBytes = 8 << 20;
constexpr uint64_t kMaxSplitScanBytes = 64 << 20;
constexpr size_t kDeletionWindow = 32 << 10;  // entries
constexpr size_t kMinWriteBufferBytes = 4 << 20;
constexpr uint64_t kMinMarginBytes = 2 << 20;
constexpr size_t kSpillBuffers = 4;
constexpr uint64_t kLittleInMemory = 4 << 20;  // a backup takes it from the log
constexpr auto kLongestFlush = std::chrono::seconds(60);
constexpr uint64_t kDiskParts = 32;  // of a small disk, a memtable takes one at most
constexpr std::string_view kCouldNotRead = "could not read the store";
constexpr std::string_view kCouldNotWrite = "could not write to the store";

rocksdb::Slice ToSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

// A memtable becomes a file, and so does a log of its size before that.
size_t WriteBufferBytes(const RocksOptions& ours) {
  const uint64_t part = DiskSpace::TotalBytes(ours.directory) / kDiskParts;
  if (part >= ours.write_buffer_bytes) return ours.write_buffer_bytes;
  return std::min<size_t>(ours.write_buffer_bytes, std::max<size_t>(part, kMinWriteBufferBytes));
}

// On a small disk no transaction is to make the log large.
size_t SpillBytes(const RocksOptions& ours) {
  const size_t write_buffer = WriteBufferBytes(ours);
  if (write_buffer == ours.write_buffer_bytes) return ours.spill_bytes;
  return std::min(ours.spill_bytes, kSpillBuffers * write_buffer);
}

size_t DefaultCacheBytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || page_bytes <= 0) return kMaxCacheBytes / 4;
  return std::min({kMaxCacheBytes, static_cast<size_t>(pages) * static_cast<size_t>(page_bytes) / 4,
                   MemoryAccount::Process()->limit() / 4});
}

rocksdb::Options MakeOptions(const RocksOptions& ours, rocksdb::Env* env,
                             const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::Options options;
  options.env = env;
  options.max_background_jobs = ours.background_jobs;
  options.max_open_files = -1;
  options.bytes_per_sync = options.wal_bytes_per_sync = 1 << 20;
  options.allow_concurrent_memtable_write = false;  // one leader writes
  options.avoid_unnecessary_blocking_io = true;
  options.max_total_wal_size = 512 << 20;
  // Promise P1: what was acknowledged survives. Logs are never recycled, their set is checked.
  options.recycle_log_file_num = 0;
  options.track_and_verify_wals_in_manifest = !ours.accept_log_damage;
  options.paranoid_checks = true;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.skip_stats_update_on_db_open = true;
  options.keep_log_file_num = 4;
  options.max_log_file_size = 4 << 20;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;

  options.write_buffer_size = WriteBufferBytes(ours);
  options.max_write_buffer_number = 3;
  // Memtables count against the cache, so that one number bounds both.
  options.write_buffer_manager =
      std::make_shared<rocksdb::WriteBufferManager>(2 * options.write_buffer_size, cache);
  // Scans step over what was deleted until it is compacted away: files that are half deletions
  // somewhere are compacted of themselves.
  options.table_properties_collector_factories.push_back(
      rocksdb::NewCompactOnDeletionCollectorFactory(kDeletionWindow, kDeletionWindow / 2));
  options.memtable_whole_key_filtering = true;
  options.memtable_prefix_bloom_size_ratio = 0.02;
  options.level_compaction_dynamic_level_bytes = true;
  options.compression = rocksdb::kLZ4Compression;
  if (ours.compress_cold_data) options.bottommost_compression = rocksdb::kZSTD;

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.block_size = 16 << 10;
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.whole_key_filtering = true;
  table.cache_index_and_filter_blocks = ours.cache_index_blocks;
  table.pin_l0_filter_and_index_blocks_in_cache = ours.cache_index_blocks;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

// For spill files: dozens may be open, so their indexes are cached instead of held, and their
// filters, which iterators have no use for, are not even read.
rocksdb::Options SpillReadOptions(rocksdb::Options options) {
  auto table = *options.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>();
  table.cache_index_and_filter_blocks = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

std::unique_ptr<rocksdb::Iterator> IteratorOfDb(void* source, const rocksdb::ReadOptions& options) {
  return std::unique_ptr<rocksdb::Iterator>(
      static_cast<rocksdb::DB*>(source)->NewIterator(options));
}

Result<bool> GetInto(rocksdb::DB* db, const rocksdb::ReadOptions& options, std::string_view key,
                     kv::PinnedValue* value) {
  rocksdb::PinnableSlice* slice = PinOf(value);
  const rocksdb::Status status = db->Get(options, db->DefaultColumnFamily(), ToSlice(key), slice);
  if (status.ok()) {
    value->Refresh();
    return true;
  }
  value->Reset();
  if (status.IsNotFound()) return false;
  return FromRocks(status, kCouldNotRead);
}

// Knows whether many keys of the memtable are covered by range deletions. Flushing drops them.
class CoveredKeys : public rocksdb::EventListener {
 public:
  bool any() const { return since_.load(std::memory_order_relaxed) != 0; }
  // Before the deletion is written, at this sequence number or later.
  void Note(rocksdb::DB* db, const rocksdb::Range& range) {
    constexpr uint64_t kMany = 256;
    uint64_t keys = 0, bytes = 0;
    db->GetApproximateMemTableStats(range, &keys, &bytes);
    if (keys >= kMany) since_ = db->GetLatestSequenceNumber() + 1;
  }
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo& info) override {
    uint64_t since = since_;
    if (info.largest_seqno >= since) since_.compare_exchange_strong(since, 0);
  }

 private:
  std::atomic<uint64_t> since_{0};  // 0: no
};

// Notes that RocksDB has found the disk full, and keeps it from looking for room by itself: it
// would do so every five seconds, want a whole memtable of room however little there is to write,
// and refuse to be asked meanwhile.
class FullDisk : public rocksdb::EventListener {
 public:
  explicit FullDisk(LogGate* gate) : gate_(gate) {}
  bool found() const { return found_.load(std::memory_order_acquire); }
  void set(bool found) { found_.store(found, std::memory_order_release); }
  // A compaction did not find room: writes go on.
  bool compaction_failed() const { return compaction_failed_.load(std::memory_order_acquire); }
  void ForgetCompaction() { compaction_failed_.store(false, std::memory_order_release); }
  // Nothing is written any more, or not before a resume.
  bool stopped() const { return found() || broken_.load(std::memory_order_acquire); }
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override {
    if (!IsDiskFull(*error)) {
      // One that is pretended passes.
      if (error->severity() >= rocksdb::Status::Severity::kHardError && !pretending_) {
        broken_ = true;
      }
      return;
    }
    if (reason == rocksdb::BackgroundErrorReason::kCompaction) {
      compaction_failed_.store(true, std::memory_order_release);
      *error = rocksdb::Status::OK();
      return;
    }
    set(true);
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status error,
                            bool* by_itself) override {
    if (IsDiskFull(error)) *by_itself = false;
    error.PermitUncheckedError();
  }
  void OnMemTableSealed(const rocksdb::MemTableInfo&) override { gate_->Sealed(); }
  void OnFlushBegin(rocksdb::DB*, const rocksdb::FlushJobInfo&) override { gate_->FlushBegun(); }
  void OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo& info) override {
    info.old_bg_error.PermitUncheckedError();
    if (info.new_bg_error.ok()) pretending_ = false;
  }
  // A failure is about to be pretended (LogGate); until RocksDB has recovered from it by itself.
  void set_pretending(bool pretending) { pretending_ = pretending; }
  bool pretending() const { return pretending_; }

 private:
  LogGate* const gate_;
  std::atomic<bool> found_{false}, broken_{false}, compaction_failed_{false};
  std::atomic<bool> pretending_{false};
};

class RocksSnapshot : public kv::SnapshotReader {
 public:
  RocksSnapshot(rocksdb::DB* db, const CoveredKeys* covered) : db_(db), covered_(covered) {
    read_.snapshot = db->GetSnapshot();
  }
  ~RocksSnapshot() override { db_->ReleaseSnapshot(read_.snapshot); }

  Result<bool> Get(std::string_view key, kv::PinnedValue* value) const override {
    return GetInto(db_, read_, key, value);
  }

  Status MultiGet(std::span<const std::string_view> keys, std::span<kv::PinnedValue> values,
                  std::span<bool> found) const override {
    if (keys.size() == 1) {
      CELLAR_TRY_ASSIGN(found[0], Get(keys[0], &values[0]));
      return {};
    }
    std::vector<rocksdb::Slice> slices(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) slices[i] = ToSlice(keys[i]);
    std::vector<rocksdb::PinnableSlice> got(keys.size());
    std::vector<rocksdb::Status> statuses(keys.size());
    db_->MultiGet(read_, db_->DefaultColumnFamily(), keys.size(), slices.data(), got.data(),
                  statuses.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      found[i] = statuses[i].ok();
      if (found[i]) {
        *PinOf(&values[i]) = std::move(got[i]);
        values[i].Refresh();
      } else if (statuses[i].IsNotFound()) {
        values[i].Reset();
      } else {
        return FromRocks(statuses[i], kCouldNotRead);
      }
    }
    return {};
  }

  std::unique_ptr<kv::RawCursor> Scan(std::string_view start, std::string_view end,
                                      const kv::RawScanOptions& options) const override {
    return MakeRocksCursor(read_, db_, IteratorOfDb, start, end, options, covered_->any());
  }

 private:
  rocksdb::DB* const db_;
  const CoveredKeys* const covered_;
  rocksdb::ReadOptions read_;
};

class RocksStorage : public kv::Storage {
 public:
  RocksStorage(const RocksOptions& ours, bool read_only)
      : directory_(ours.directory),
        spill_directory_(ours.directory + "/spill"),
        spill_bytes_(SpillBytes(ours)),
        read_only_(read_only),
        fault_(ours.fault),
        env_(ours.env != nullptr ? ours.env : MakePrivateEnv(ours.fault, &gate_)),
        files_(rocksdb::NewSstFileManager(env_.get())),
        cache_(rocksdb::NewLRUCache(
            std::max(ours.cache_bytes != 0 ? ours.cache_bytes : DefaultCacheBytes(),
                     kMinCacheBytes),
            /*num_shard_bits=*/2)),
        options_(MakeOptions(ours, env_.get(), cache_)),
        spill_read_options_(SpillReadOptions(options_)),
        margin_bytes_(std::max<uint64_t>(options_.write_buffer_size / 4, kMinMarginBytes)),
        space_(directory_, margin_bytes_) {
    options_.listeners.push_back(covered_);
    options_.listeners.push_back(full_);
    options_.sst_file_manager = files_;
  }
  ~RocksStorage() override { static_cast<void>(Close().ok()); }

  Status Open(bool create) {
    CELLAR_TRY(cache_charge_.Resize(cache_->GetCapacity()));
    // Opening writes too.
    if (!read_only_) space_.GiveReserve();
    rocksdb::DB* db = nullptr;
    options_.create_if_missing = create;
    const rocksdb::Status status = read_only_
                                       ? rocksdb::DB::OpenForReadOnly(options_, directory_, &db)
                                       : rocksdb::DB::Open(options_, directory_, &db);
    if (Status opened = FromRocks(status, "could not open the store"); !opened.ok()) {
      if (!IsDiskFull(status)) return opened;
      return std::move(opened).WithHint(
          "What the log holds becomes a file when the store is opened: free as much room, and "
          "open it again.");
    }
    db_.reset(db);
    opened_version_ = db_->GetLatestSequenceNumber();
    if (!read_only_) {
      // A crash leaves what transactions had spilled but not committed.
      std::error_code error;
      std::filesystem::remove_all(spill_directory_, error);
    }
    return {};
  }
  // From here on the record of the log's end is kept, from one of this generation on.
  Status KeepLogEnd(uint64_t generation) {
    LogEnd first;
    first.change = db_->GetLatestSequenceNumber();
    first.generation = generation;
    // What was recovered lies in the system's cache alone, if the last process was killed.
    CELLAR_TRY(FromRocks(db_->SyncWAL(), kCouldNotWrite));
    CELLAR_TRY_ASSIGN(log_end_, LogEndKeeper::Start(directory_, first));
    return {};
  }
  rocksdb::DB* db() { return db_.get(); }

  kv::Limits limits() const override {
    kv::Limits limits;
    limits.max_key_bytes = kMaxKeyBytes;
    limits.soft_txn_bytes = kSoftTransactionBytes;
    return limits;
  }
  uint64_t opened_version() const override { return opened_version_; }

  std::shared_ptr<const kv::SnapshotReader> TakeSnapshot() override {
    return std::make_shared<RocksSnapshot>(db_.get(), covered_.get());
  }
  Result<bool> GetLatest(std::string_view key, kv::PinnedValue* value) override {
    return GetInto(db_.get(), latest_, key, value);
  }

  Status Admit(size_t bytes, bool makes_room) override {
    if (read_only_) {
      return SqlError(Code::kInvalid, sqlstate::kReadOnlySqlTransaction,
                      "the store is open for reading only");
    }
    if (!full_->found() && gate_.holding()) CELLAR_TRY(WriteHeld());
    if (full_->found()) return TryAgain(makes_room);
    const uint64_t plenty = 3 * options_.write_buffer_size + 2 * margin_bytes_;
    uint64_t free = space_.FreeBytes();
    if (free < 64 * plenty) free = space_.FreeBytes(/*now=*/true);
    if (free <= plenty) LimitCompactions(free);
    if (makes_room) {
      if (free < margin_bytes_ / 2) space_.GiveReserve();
      return {};
    }
    const uint64_t wanted = 2 * bytes + margin_bytes_;  // in the log, and in a file
    // Seldom is it so little that what is in memory might not fit.
    if (free > plenty + wanted) {
      FreeCompactions();
      if (free < 16 * plenty) space_.KeepReserve();
      return {};
    }
    if (free >= UnwrittenBytes() + wanted && !WritesAreStopped()) return {};
    // What does not fit is not begun: a flush that fails would keep out what makes room. What was
    // deleted in memory takes none.
    const bool fits = free >= UnwrittenBytes() || covered_->any();
    if (free < UnwrittenBytes() + wanted && UnwrittenBytes() > margin_bytes_ && fits) {
      // Written to files it takes less room, and its log goes.
      bool begun;
      {
        const std::lock_guard whole(change_mutex_);
        begun = BeginToWriteOut();
      }
      if (begun) AwaitWritten(kLongestFlush);
      if (full_->found()) return TryAgain(makes_room);
      if (!begun) return LogHasFailed();
      free = space_.FreeBytes(/*now=*/true);
    }
    const uint64_t needed = UnwrittenBytes() + wanted;
    if (free < needed || WritesAreStopped()) return DiskFull(free, needed);
    return {};
  }

  Status Write(std::span<const kv::GroupMember> group, bool* failed) override {
    const std::lock_guard whole(change_mutex_);
    const LogPass pass(&gate_, LogGate::Side::kAppend);
    if (!pass.open()) return LogHasFailed();
    for (const kv::GroupMember& member : group) {
      AddToBatch(*member.writes);
      for (const kv::CounterWrite& counter : member.counters) {
        if (counter.value) {
          batch_.Put(ToSlice(counter.key), ToSlice(*counter.value));
        } else {
          batch_.Delete(ToSlice(counter.key));
        }
      }
    }
    const rocksdb::Status status = db_->Write(rocksdb::WriteOptions(), &batch_);
    if (batch_.GetDataSize() > kKeepBatchBytes) {
      batch_ = rocksdb::WriteBatch();
    } else {
      batch_.Clear();
    }
    return NoteWrite(status, failed);
  }

  Status SyncLog(bool* failed) override {
    // RocksDB takes no further calls on a log after an error, even if the disk was only full. Then
    // finding room brings what was written to disk, and a later call succeeds.
    const std::lock_guard alone(sync_mutex_);
    rocksdb::Status status = rocksdb::Status::IOError(rocksdb::Status::kNoSpace);
    {
      const LogPass pass(&gate_, LogGate::Side::kSync);
      if (pass.open()) {
        const uint64_t change = db_->GetLatestSequenceNumber();
        status = db_->SyncWAL();
        if (status.ok()) {
          if (log_end_ != nullptr) log_end_->Note(change);
          return {};
        }
        if (IsDiskFull(status)) full_->set(true);
      }
    }
    // An append that has found the disk full, or broken, may not have come to say so yet.
    if (IsDiskFull(status) && !failed_ && !gate_.broken()) return Unknown(status, nullptr);
    return Unknown(status, failed);
  }

  size_t spill_bytes() const override { return read_only_ ? SIZE_MAX : spill_bytes_; }
  Result<std::unique_ptr<kv::SpillWriter>> NewSpillFile() override {
    CELLAR_TRY_ASSIGN(std::string path, NewSpillPath());
    return MakeRocksSpillWriter(options_, spill_read_options_, std::move(path));
  }
  Status Ingest(std::span<const std::unique_ptr<kv::SpillFile>> files,
                std::span<const kv::WriteBuffer::RangeDeletion> range_deletions,
                std::span<const kv::CounterWrite> counters, bool unread, uint64_t version,
                bool* failed) override {
    const std::lock_guard whole(change_mutex_);
    std::vector<std::string> paths;
    if (!range_deletions.empty()) {
      // First of the list: overlapping files are ordered as they are listed.
      CELLAR_TRY_ASSIGN(std::string path, NewSpillPath());
      paths.push_back(std::move(path));
      CELLAR_TRY(WriteRangeDeletions(options_, paths.back(), range_deletions));
    }
    for (const std::unique_ptr<kv::SpillFile>& file : files) paths.push_back(SpillPath(*file));
    if (!counters.empty()) {
      CELLAR_TRY_ASSIGN(std::string path, NewSpillPath());
      paths.push_back(std::move(path));
      CELLAR_TRY(WriteCounters(options_, paths.back(), counters));
    }
    {
      // Ingesting may leave the sequence number where it was, but versions must stay below it.
      // First, so that if this fails nothing has changed.
      const LogPass pass(&gate_, LogGate::Side::kAppend);
      if (!pass.open()) return LogHasFailed();
      CELLAR_TRY(NoteWrite(PutHeader(), failed));
    }
    // The files are durable at once, so all that they may rest on must be.
    if (Status synced = SyncLog(failed); !synced.ok()) {
      return *failed ? synced : DiskFull(space_free_, UnwrittenBytes() + margin_bytes_);
    }
    if (paths.empty()) return {};
    rocksdb::IngestExternalFileOptions ingest;
    ingest.move_files = true;
    ingest.write_global_seqno = false;
    // With a sequence number, which consistency takes, each file would soon be compacted alone.
    ingest.snapshot_consistency = !unread;
    return NoteWrite(db_->IngestExternalFile(paths, ingest), failed);
  }

  uint64_t ApproximateBytes(std::string_view start, std::string_view end) override {
    if (!end.empty() && start >= end) return 0;
    const rocksdb::Range range(ToSlice(start), ToSlice(end.empty() ? BeyondAllKeys() : end));
    rocksdb::SizeApproximationOptions options;
    options.include_files = options.include_memtables = true;
    uint64_t bytes = 0;
    const rocksdb::Status status =
        db_->GetApproximateSizes(options, db_->DefaultColumnFamily(), &range, 1, &bytes);
    return status.ok() ? bytes : 0;
  }
  std::vector<std::string> SplitPoints(std::string_view start, std::string_view end,
                                       size_t parts) override;
  Status Compact(std::string_view start, std::string_view end) override {
    // It begins with a flush, which must not come into the way of the one that Resume wants.
    if (full_->found() || gate_.holding()) {
      return DiskFull(space_free_, UnwrittenBytes() + margin_bytes_);
    }
    {
      // RocksDB would do it itself, but also just after the log has failed.
      const std::lock_guard whole(change_mutex_);
      if (!BeginToWriteOut()) return LogHasFailed();
    }
    if (!AwaitWritten(kLongestFlush)) return LogHasFailed();
    files_->SetMaxAllowedSpaceUsage(0);  // it may be what makes room
    rocksdb::CompactRangeOptions options;
    options.exclusive_manual_compaction = false;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
    const rocksdb::Slice low = ToSlice(start), high = ToSlice(end);
    return FromRocks(
        db_->CompactRange(options, start.empty() ? nullptr : &low, end.empty() ? nullptr : &high),
        "could not compact the store");
  }
  Status Sync() override {
    if (read_only_) return {};
    // RocksDB takes no further calls on a log after an error: what is not in it stays out.
    const std::lock_guard alone(sync_mutex_);
    const LogPass pass(&gate_, LogGate::Side::kSync);
    if (!pass.open()) return LogHasFailed();
    const uint64_t change = db_->GetLatestSequenceNumber();
    CELLAR_TRY(FromRocks(db_->SyncWAL(), kCouldNotWrite));
    if (log_end_ != nullptr) log_end_->Note(change);
    return {};
  }
  void AddStats(kv::EngineStats* stats) const override {
    const auto property = [&](const std::string& name) {
      uint64_t value = 0;
      return db_->GetIntProperty(name, &value) ? value : 0;
    };
    stats->cache_bytes = cache_->GetUsage();
    stats->memory_bytes = stats->cache_bytes + property("rocksdb.cur-size-all-mem-tables") +
                          property("rocksdb.estimate-table-readers-mem");
    stats->disk_bytes = property("rocksdb.live-sst-files-size");
  }
  Result<kv::BackupInfo> Backup(const kv::BackupOptions& options) override;
  Status Close() override {
    if (db_ == nullptr) return {};
    Status status = Sync();
    const uint64_t change = db_->GetLatestSequenceNumber();
    const rocksdb::Status closed = db_->Close();
    if (status.ok() && !closed.IsNotSupported()) {
      status = FromRocks(closed, "could not close the store");
    }
    db_.reset();
    if (log_end_ != nullptr && status.ok()) status = log_end_->Stop(change);
    log_end_.reset();
    return status;
  }

 private:
  friend class BackedUpDb;

  // Of a backup: lists the files of one state, in which the log ends with a whole group and holds
  // nothing beyond a file that was ingested after the list was begun, as RocksDB by itself would
  // let it. Commits wait for it: a sync of the log.
  rocksdb::Status ListFiles(const rocksdb::LiveFilesStorageInfoOptions& options,
                            std::vector<rocksdb::LiveFileStorageInfo>* files) {
    const std::lock_guard whole(change_mutex_);
    const std::lock_guard alone(sync_mutex_);
    const LogPass pass(&gate_, LogGate::Side::kSync);
    if (!pass.open()) return rocksdb::Status::IOError("the log of the store has failed");
    const rocksdb::Status status = db_->GetLiveFilesStorageInfo(options, files);
    if (IsDiskFull(status)) full_->set(true);
    return status;
  }
  // Moves what is in memory alone, and in the log, to files, which later backups share; unless it
  // is little, or the disk is full.
  void WriteOutMemory(const CancelToken* cancel);

  Status DiskFull(uint64_t free, uint64_t needed) const {
    return FromRocks(rocksdb::Status::IOError(rocksdb::Status::kNoSpace), kCouldNotWrite)
        .WithDetail(fmt::format("\"{}\" has {} MB of room; {} MB are needed.", directory_,
                                free >> 20, (needed + (1 << 20) - 1) >> 20))
        .WithHint(
            "Writes go on by themselves once there is room. DROP, TRUNCATE and PURGE work "
            "meanwhile.");
  }
  // After a failure of the log, which is not used any more.
  Status LogHasFailed() const {
    if (!failed_ && !gate_.broken()) return DiskFull(space_free_, UnwrittenBytes() + margin_bytes_);
    return SqlError(Code::kUnavailable, sqlstate::kIoError, "{}", kCouldNotWrite);
  }
  // Bytes in memory that have no file but the log.
  uint64_t UnwrittenBytes() const {
    uint64_t bytes = 0;
    return db_->GetIntProperty("rocksdb.cur-size-all-mem-tables", &bytes) ? bytes : 0;
  }
  // Compactions that did not find room are not tried again with less than they need: each attempt
  // would take what is left for a while. (SetOptions, which could turn them off, writes.)
  void LimitCompactions(uint64_t free) {
    if (!full_->compaction_failed()) return;
    files_->SetMaxAllowedSpaceUsage(files_->GetTotalSize() + free + 2 * options_.write_buffer_size);
  }
  void FreeCompactions() {
    if (!full_->compaction_failed()) return;
    files_->SetMaxAllowedSpaceUsage(0);
    full_->ForgetCompaction();
  }
  // Compaction is so far behind that a write would wait for it.
  bool WritesAreStopped() const {
    uint64_t stopped = 0;
    return db_->GetIntProperty("rocksdb.is-write-stopped", &stopped) && stopped != 0;
  }
  // Waits for background work that was under way when the disk was found full. If it fails while
  // RocksDB 7.8 resumes, that gives up with its flush not yet begun, and the next one waits for
  // that flush for ever. After an error no other begins.
  bool AwaitQuiet() const {
    constexpr auto kLongest = std::chrono::seconds(10);
    constexpr auto kStep = std::chrono::milliseconds(5);
    const auto until = std::chrono::steady_clock::now() + kLongest;
    const auto running = [this](const char* what) {
      uint64_t count = 0;
      return db_->GetIntProperty(what, &count) && count != 0;
    };
    while (running("rocksdb.num-running-flushes") || running("rocksdb.num-running-compactions")) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(kStep);  // tidy: allow(sleep) no event tells of the end
    }
    return true;
  }
  // Begins to make files of all that is in memory. Called beside no other write. (RocksDB's own
  // waiting for the end would wait for a sync that fails, which waits for us.) False: the log has
  // failed, and RocksDB must not be asked for another one but by Resume.
  bool BeginToWriteOut() {
    const LogPass pass(&gate_, LogGate::Side::kAppend);
    if (!pass.open()) return false;
    rocksdb::FlushOptions flush;
    flush.wait = false;
    flush.allow_write_stall = true;  // compactions, which would end one, want room themselves
    return db_->Flush(flush).ok();
  }
  // False: not all that was sealed before is in files, since the disk failed or it took too long.
  bool AwaitWritten(std::chrono::seconds longest, const CancelToken* cancel = nullptr) const {
    constexpr auto kStep = std::chrono::milliseconds(1);
    const auto until = std::chrono::steady_clock::now() + longest;
    uint64_t waiting = 0;
    while (db_->GetIntProperty("rocksdb.num-immutable-mem-table", &waiting) && waiting != 0) {
      if (full_->stopped() || gate_.failed()) return false;
      if (std::chrono::steady_clock::now() > until) return false;
      if (cancel != nullptr && cancel->cancelled()) return false;
      std::this_thread::sleep_for(kStep);  // tidy: allow(sleep) no event tells of the end
    }
    return !full_->stopped();
  }
  // What a log holds back. Not OK only when the disk is broken; if it is full, that is noted.
  Status WriteHeld() {
    bool failed = false;
    Status status = SyncLog(&failed);
    if (status.ok() || !full_->found() || failed) return status;
    return {};
  }
  // After a full disk: goes on if there is room.
  Status TryAgain(bool makes_room) {
    if (failed_ || gate_.broken()) return LogHasFailed();
    const uint64_t needed = UnwrittenBytes() + margin_bytes_;
    if (makes_room) space_.GiveReserve();
    space_free_ = space_.FreeBytes(/*now=*/true);
    LimitCompactions(space_free_);
    if (!makes_room && space_free_ < needed) return DiskFull(space_free_, needed);
    if (!AwaitQuiet()) return DiskFull(space_free_, needed);
    if (const rocksdb::Status resumed = db_->Resume(); !resumed.ok()) {
      const Status full = DiskFull(space_free_, needed);
      const bool for_good = resumed.severity() >= rocksdb::Status::Severity::kFatalError;
      return Status(full)
          .WithDetail(fmt::format("{} The last attempt: {}", full.detail(), resumed.ToString()))
          .WithHint(for_good ? std::string("Restart the server: what was committed is there.")
                             : std::string(full.hint()));
    }
    // All that the failed log held lies in files now, and RocksDB has begun another.
    full_->set(false);
    gate_.Renew();
    if (EndStop()) return {};
    full_->set(true);
    return DiskFull(space_free_, needed);
  }
  // After the first error of this kind RocksDB 7.8 takes itself for stopped for ever: it refuses to
  // ingest, by an assertion, and does not wait for its flushes. Only a recovery that it has begun
  // by itself ends that. So it gets a reason for one: an append to its log fails, once, in a way
  // that it takes for passing. False: not done, since the disk has failed once more.
  bool EndStop() {
    constexpr auto kLongest = std::chrono::seconds(10);
    constexpr auto kStep = std::chrono::milliseconds(1);
    // The log is not used again: neither side may be in it.
    const std::lock_guard whole(change_mutex_);
    const std::lock_guard alone(sync_mutex_);
    {
      const LogPass pass(&gate_, LogGate::Side::kAppend);
      // It takes another log only if there is something in memory.
      if (!pass.open() || !PutHeader().ok()) return false;
    }
    full_->set_pretending(true);
    gate_.Pretend();
    {
      const LogPass pass(&gate_, LogGate::Side::kAppend);
      PutHeader().PermitUncheckedError();
    }
    const bool failed = gate_.EndPretending();
    const auto until = std::chrono::steady_clock::now() + kLongest;
    while (failed && full_->pretending() && std::chrono::steady_clock::now() < until) {
      if (full_->stopped()) break;
      std::this_thread::sleep_for(kStep);  // tidy: allow(sleep) no event tells of the end
    }
    const bool recovered = failed && !full_->pretending();
    full_->set_pretending(false);
    if (recovered) gate_.Renew();
    return recovered;
  }
  // The header record once more: a change that changes nothing.
  rocksdb::Status PutHeader() {
    std::string header;
    rocksdb::Status status = db_->Get(latest_, ToSlice(kv::kStoreHeaderKey), &header);
    if (status.IsNotFound()) return rocksdb::Status::OK();
    if (!status.ok()) return status;
    return db_->Put(rocksdb::WriteOptions(), ToSlice(kv::kStoreHeaderKey), header);
  }
  Status NoteWrite(const rocksdb::Status& status, bool* failed) {
    if (status.ok()) return {};
    if (IsDiskFull(status)) {
      full_->set(true);
      space_free_ = space_.FreeBytes(/*now=*/true);
      return DiskFull(space_free_, UnwrittenBytes() + margin_bytes_);
    }
    return Unknown(status, failed);
  }
  // Whether the log reached the disk is not known, so the failure may turn out a success.
  Status Unknown(const rocksdb::Status& status, bool* failed) {
    if (failed != nullptr) *failed = failed_ = true;
    return SqlError(Code::kCommitUnknown, sqlstate::kStatementCompletionUnknown,
                    "could not write to the store, the outcome of the commit is unknown: {}",
                    status.ToString());
  }
  void AddToBatch(const kv::WriteBuffer& writes) {
    for (const kv::WriteBuffer::RangeDeletion& range : writes.range_deletions()) {
      const std::string_view end = range.end.empty() ? BeyondAllKeys() : range.end;
      covered_->Note(db_.get(), rocksdb::Range(ToSlice(range.start), ToSlice(end)));
      batch_.DeleteRange(ToSlice(range.start), ToSlice(end));
    }
    writes.ForEachFinal([this](const kv::WriteBuffer::Node& node) {
      if (node.kind == kv::WriteKind::kDelete) {
        batch_.Delete(ToSlice(node.key()));
      } else {
        batch_.Put(ToSlice(node.key()), ToSlice(node.value()));
      }
    });
  }
  Result<std::string> NewSpillPath() {
    std::error_code error;
    if (std::filesystem::create_directory(spill_directory_, error)) {
      std::filesystem::permissions(spill_directory_, std::filesystem::perms::owner_all, error);
    }
    if (error) {
      return SqlError(
          Code::kUnavailable,
          error == std::errc::no_space_on_device ? sqlstate::kDiskFull : sqlstate::kIoError,
          "could not make the spill directory: {}", error.message());
    }
    return fmt::format("{}/{:06}.sst", spill_directory_, ++spill_files_);
  }

  const std::string directory_, spill_directory_;
  const size_t spill_bytes_;
  const bool read_only_;
  const std::function<Status(FileCall, std::string_view path)> fault_;
  LogGate gate_;
  const std::shared_ptr<rocksdb::Env> env_;
  const std::shared_ptr<rocksdb::SstFileManager> files_;
  const std::shared_ptr<rocksdb::Cache> cache_;
  MemoryCharge cache_charge_{MemoryAccount::Process()};  // of all it may come to hold
  rocksdb::Options options_;
  const rocksdb::Options spill_read_options_;
  // Free bytes beyond what is in memory that writes leave alone, for what makes room.
  const uint64_t margin_bytes_;
  DiskSpace space_;
  const std::shared_ptr<CoveredKeys> covered_ = std::make_shared<CoveredKeys>();
  const std::shared_ptr<FullDisk> full_ = std::make_shared<FullDisk>(&gate_);
  std::unique_ptr<LogEndKeeper> log_end_;
  std::unique_ptr<rocksdb::DB> db_;
  const rocksdb::ReadOptions latest_;
  uint64_t opened_version_ = 0;
  std::atomic<uint64_t> spill_files_{0};
  std::mutex change_mutex_;  // held by whoever changes the database; taken before the next
  std::mutex sync_mutex_;    // held by whoever syncs the log

  // Of the one writer.
  rocksdb::WriteBatch batch_;
  std::atomic<uint64_t> space_free_{0};  // when the disk was last found full
  std::atomic<bool> failed_{false};
};

std::vector<std::string> RocksStorage::SplitPoints(std::string_view start, std::string_view end,
                                                   size_t parts) {
  std::vector<std::string> candidates;
  if (ApproximateBytes(start, end) <= kMaxSplitScanBytes) {
    // Little enough to look at every key: its place by bytes is then exact.
    const RocksSnapshot snapshot(db_.get(), covered_.get());
    const auto cursor = snapshot.Scan(start, end, {.fill_cache = false});
    kv::Block block;
    constexpr size_t kStepBytes = 16 << 10;
    while (true) {
      Result<bool> more = cursor->NextBlock(kStepBytes, 0, &block);
      if (!more.ok() || !*more) break;
      candidates.emplace_back(block.key(0));
    }
    if (!candidates.empty()) candidates.erase(candidates.begin());
  } else {
    std::vector<rocksdb::LiveFileMetaData> files;
    db_->GetLiveFilesMetaData(&files);
    for (const rocksdb::LiveFileMetaData& file : files) {
      if (file.smallestkey > start && (end.empty() || file.smallestkey < end)) {
        candidates.push_back(file.smallestkey);
      }
    }
    std::sort(candidates.begin(), candidates.end());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  }
  if (candidates.size() < parts) return candidates;
  std::vector<std::string> points;
  for (size_t i = 1; i < parts; ++i) points.push_back(candidates[i * candidates.size() / parts]);
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

// The database as the backup engine of RocksDB sees it.
class BackedUpDb : public rocksdb::StackableDB {
 public:
  // Both outlive it; the bytes of the files are added to `total_bytes`.
  BackedUpDb(RocksStorage* storage, std::atomic<uint64_t>* total_bytes)
      : StackableDB(std::shared_ptr<rocksdb::DB>(storage->db(), [](rocksdb::DB*) {})),
        storage_(storage),
        total_bytes_(total_bytes) {}

  rocksdb::Status GetLiveFilesStorageInfo(
      const rocksdb::LiveFilesStorageInfoOptions& options,
      std::vector<rocksdb::LiveFileStorageInfo>* files) override {
    const rocksdb::Status status = storage_->ListFiles(options, files);
    for (const rocksdb::LiveFileStorageInfo& file : *files) *total_bytes_ += file.size;
    return status;
  }

 private:
  RocksStorage* const storage_;
  std::atomic<uint64_t>* const total_bytes_;
};

void RocksStorage::WriteOutMemory(const CancelToken* cancel) {
  if (full_->found() || UnwrittenBytes() < kLittleInMemory) return;
  {
    const std::lock_guard whole(change_mutex_);
    if (!BeginToWriteOut()) return;
  }
  AwaitWritten(kLongestFlush, cancel);  // what is not in files by then is taken from the log
}

Result<kv::BackupInfo> RocksStorage::Backup(const kv::BackupOptions& options) {
  if (read_only_) {
    return SqlError(Code::kInvalid, sqlstate::kReadOnlySqlTransaction,
                    "a store that is open for reading only is not backed up");
  }
  if (failed_ || gate_.failed()) return LogHasFailed();
  kv::PinnedValue bytes;
  CELLAR_TRY_ASSIGN(const bool found, GetLatest(kv::kStoreHeaderKey, &bytes));
  if (!found) return CorruptionError("the store has lost its header record");
  CELLAR_TRY_ASSIGN(const kv::StoreHeader header, kv::ParseStoreHeader(bytes.view()));
  bytes.DropPin();
  std::atomic<uint64_t> total_bytes = 0;
  BackedUpDb db(this, &total_bytes);
  BackupSource source;
  source.db = &db;
  source.directory = directory_;
  source.header = header;
  source.total_bytes = &total_bytes;
  source.fault = fault_;
  source.prepare = [&] { WriteOutMemory(options.cancel); };
  return AddBackup(source, options);
}

}  // namespace

Result<OpenedStorage> OpenRocksStorage(const RocksOptions& options, bool create, bool read_only) {
  auto storage = std::make_unique<RocksStorage>(options, read_only);
  CELLAR_TRY(storage->Open(create));
  OpenedStorage opened;
  opened.last_sequence = storage->db()->GetLatestSequenceNumber();
  kv::PinnedValue bytes;
  CELLAR_TRY_ASSIGN(const bool found, storage->GetLatest(kv::kStoreHeaderKey, &bytes));
  if (found) {
    CELLAR_TRY_ASSIGN(kv::StoreHeader header, kv::ParseStoreHeader(bytes.view()));
    opened.header = std::make_unique<kv::StoreHeader>(header);
  } else {
    const std::unique_ptr<rocksdb::Iterator> it =
        IteratorOfDb(storage->db(), rocksdb::ReadOptions());
    it->SeekToFirst();
    opened.empty = !it->Valid() && it->status().ok();
  }
  bytes.DropPin();
  opened.storage = std::move(storage);
  return opened;
}

Status KeepLogEnd(kv::Storage* storage, uint64_t generation) {
  return static_cast<RocksStorage*>(storage)->KeepLogEnd(generation);
}

kv::StoreHeader NewStoreHeader() {
  kv::StoreHeader header;
  std::random_device random;
  for (uint8_t& byte : header.store_id) byte = static_cast<uint8_t>(random());
  return header;
}

Status WriteStoreHeader(kv::Storage* storage, const kv::StoreHeader& header) {
  rocksdb::WriteOptions write;
  write.sync = true;
  return FromRocks(static_cast<RocksStorage*>(storage)->db()->Put(
                       write, ToSlice(kv::kStoreHeaderKey), kv::EncodeStoreHeader(header)),
                   kCouldNotWrite);
}

}  // namespace cellar::engines

#if defined(__SANITIZE_THREAD__)
// Debian's RocksDB is not instrumented, so its atomics do not order anything for the sanitizer.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:rocksdb::\n"; }
#endif
