#include "cellar/engines/rocksdb/rocks_storage.h"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/metadata.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>

#include "cellar/base/memory_account.h"
#include "cellar/base/sqlstate.h"
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
constexpr std::string_view kCouldNotRead = "could not read the store";
constexpr std::string_view kCouldNotWrite = "could not write to the store";

rocksdb::Slice ToSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

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
  options.track_and_verify_wals_in_manifest = true;
  options.paranoid_checks = true;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.skip_stats_update_on_db_open = true;
  options.keep_log_file_num = 4;
  options.max_log_file_size = 4 << 20;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;

  options.write_buffer_size = ours.write_buffer_bytes;
  options.max_write_buffer_number = 3;
  // Memtables count against the cache, so that one number bounds both.
  options.write_buffer_manager =
      std::make_shared<rocksdb::WriteBufferManager>(2 * ours.write_buffer_bytes, cache);
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
        spill_bytes_(ours.spill_bytes),
        read_only_(read_only),
        env_(MakePrivateEnv(ours.fault)),
        cache_(rocksdb::NewLRUCache(
            std::max(ours.cache_bytes != 0 ? ours.cache_bytes : DefaultCacheBytes(),
                     kMinCacheBytes),
            /*num_shard_bits=*/2)),
        options_(MakeOptions(ours, env_.get(), cache_)),
        spill_read_options_(SpillReadOptions(options_)) {
    options_.listeners.push_back(covered_);
  }
  ~RocksStorage() override { static_cast<void>(Close().ok()); }

  Status Open(bool create) {
    CELLAR_TRY(cache_charge_.Resize(cache_->GetCapacity()));
    rocksdb::DB* db = nullptr;
    options_.create_if_missing = create;
    const rocksdb::Status status = read_only_
                                       ? rocksdb::DB::OpenForReadOnly(options_, directory_, &db)
                                       : rocksdb::DB::Open(options_, directory_, &db);
    CELLAR_TRY(FromRocks(status, "could not open the store"));
    db_.reset(db);
    opened_version_ = db_->GetLatestSequenceNumber();
    if (!read_only_) {
      // A crash leaves what transactions had spilled but not committed.
      std::error_code error;
      std::filesystem::remove_all(spill_directory_, error);
    }
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

  Status Write(std::span<const kv::GroupMember> group, bool* failed) override {
    std::lock_guard lock(write_mutex_);
    CELLAR_TRY(ReadyToWrite());
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
    rocksdb::Status status = rocksdb::Status::IOError(rocksdb::Status::kNoSpace);
    if (!disk_full_ && !failed_) {
      status = db_->SyncWAL();
      if (status.ok()) return {};
      // The log may have failed just now, and whose write it was is still to note why.
      std::lock_guard lock(write_mutex_);
      if (IsDiskFull(status)) disk_full_ = true;
    }
    return Unknown(status, disk_full_ && !failed_ ? nullptr : failed);
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
    CELLAR_TRY(ReadyToWrite());
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
    if (!paths.empty()) {
      rocksdb::IngestExternalFileOptions ingest;
      ingest.move_files = true;
      ingest.write_global_seqno = false;
      // With a sequence number, which consistency takes, each file would soon be compacted alone.
      ingest.snapshot_consistency = !unread;
      CELLAR_TRY(NoteWrite(db_->IngestExternalFile(paths, ingest), failed));
    }
    // Ingesting may leave the sequence number where it was, but versions must stay below it.
    std::string header;
    const rocksdb::Status status = db_->Get(latest_, ToSlice(kv::kStoreHeaderKey), &header);
    if (!status.ok()) return {};
    return NoteWrite(db_->Put(rocksdb::WriteOptions(), ToSlice(kv::kStoreHeaderKey), header),
                     failed);
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
    if (failed_) return SqlError(Code::kUnavailable, sqlstate::kIoError, "{}", kCouldNotWrite);
    if (disk_full_) return DiskFull();
    return FromRocks(db_->SyncWAL(), kCouldNotWrite);
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
  Status Close() override {
    if (db_ == nullptr) return {};
    Status status = Sync();
    const rocksdb::Status closed = db_->Close();
    if (status.ok() && !closed.IsNotSupported()) {
      status = FromRocks(closed, "could not close the store");
    }
    db_.reset();
    return status;
  }

 private:
  static Status DiskFull() {
    return FromRocks(rocksdb::Status::IOError(rocksdb::Status::kNoSpace), kCouldNotWrite);
  }
  // Refuses when read only; after a full disk, tries whether there is room again.
  Status ReadyToWrite() {
    if (read_only_) {
      return SqlError(Code::kInvalid, sqlstate::kReadOnlySqlTransaction,
                      "the store is open for reading only");
    }
    if (!disk_full_) return {};
    // Busy while RocksDB itself looks for room, every five seconds.
    if (!db_->Resume().ok()) return DiskFull();
    disk_full_ = false;
    return {};
  }
  Status NoteWrite(const rocksdb::Status& status, bool* failed) {
    if (status.ok()) return {};
    if (IsDiskFull(status)) {
      disk_full_ = true;
      return FromRocks(status, kCouldNotWrite);
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
  const std::unique_ptr<rocksdb::Env> env_;
  const std::shared_ptr<rocksdb::Cache> cache_;
  MemoryCharge cache_charge_{MemoryAccount::Process()};  // of all it may come to hold
  rocksdb::Options options_;
  const rocksdb::Options spill_read_options_;
  const std::shared_ptr<CoveredKeys> covered_ = std::make_shared<CoveredKeys>();
  std::unique_ptr<rocksdb::DB> db_;
  const rocksdb::ReadOptions latest_;
  uint64_t opened_version_ = 0;
  std::atomic<uint64_t> spill_files_{0};

  // Of the one writer.
  rocksdb::WriteBatch batch_;
  std::mutex write_mutex_;  // held by Write
  std::atomic<bool> disk_full_{false};
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
