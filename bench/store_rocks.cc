// RocksDB alone: the keys and values that Cellar would write, with the options of Cellar's engine,
// and no decoding: what a layer above it can at best reach.
#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "bench/store.h"
#include "cellar/codec/key.h"
#include "cellar/codec/row.h"

namespace cellar::bench {
namespace {

constexpr codec::TableId kTable{100};
constexpr codec::IndexId kPrimary{0}, kOfK{8};
constexpr char kGroupZero = 0x15;

void Check(const rocksdb::Status& status) {
  if (!status.ok()) Die("rocksdb: " + status.ToString());
}

rocksdb::Slice ToSlice(const std::string& text) { return {text.data(), text.size()}; }

// The options of cellar/engines/rocksdb, in the order in which they stand there.
rocksdb::Options MakeOptions() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.max_background_jobs = 2;
  options.max_open_files = -1;
  options.bytes_per_sync = options.wal_bytes_per_sync = 1 << 20;
  options.allow_concurrent_memtable_write = false;
  options.avoid_unnecessary_blocking_io = true;
  options.max_total_wal_size = 512 << 20;
  options.recycle_log_file_num = 0;
  options.track_and_verify_wals_in_manifest = true;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.write_buffer_size = 64 << 20;
  options.max_write_buffer_number = 3;
  const auto cache = rocksdb::NewLRUCache(size_t{256} << 20);
  options.write_buffer_manager =
      std::make_shared<rocksdb::WriteBufferManager>(size_t{128} << 20, cache);
  options.memtable_whole_key_filtering = true;
  options.memtable_prefix_bloom_size_ratio = 0.02;
  options.level_compaction_dynamic_level_bytes = true;
  options.compression = rocksdb::kLZ4Compression;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.block_size = 16 << 10;
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

class Encoder {
 public:
  Encoder() : format_(Format()) {}
  std::string RowKey(int64_t id) const {
    std::string key = codec::TablePrefix(kTable, kPrimary);
    codec::AppendKeyInt(id, &key);
    key.push_back(kGroupZero);
    return key;
  }
  std::string EntryPrefix(int32_t k) const {
    std::string key = codec::TablePrefix(kTable, kOfK);
    codec::AppendKeyInt(k, &key);
    return key;
  }
  std::string EntryKey(int32_t k, int64_t id) const {
    std::string key = EntryPrefix(k);
    codec::AppendKeyInt(id, &key);
    key.push_back(kGroupZero);
    return key;
  }
  std::string RowValue(const Row& row) const {
    const Datum values[] = {
        Datum::Int(row.id),     Datum::Int(row.k),
        Datum::Int(row.at),     Datum::Double(row.price),
        Datum::Bytes(row.name), Datum::Bytes(row.kind),
        Datum::Int(row.qty),    Datum::Bool(row.flag),
        Datum::Bytes(row.note), row.has_code ? Datum::Int(row.code) : Datum::Null()};
    std::string value;
    if (!codec::RowEncoder::Append(format_, values, &value).ok()) Die("rocksdb: a row too large");
    return value;
  }

 private:
  static codec::RowFormat Format() {
    std::vector<codec::RowColumn> columns;
    for (TypeId type :
         {TypeId::kInt8, TypeId::kInt4, TypeId::kTimestamp, TypeId::kFloat8, TypeId::kText,
          TypeId::kText, TypeId::kInt4, TypeId::kBool, TypeId::kText, TypeId::kInt8}) {
      codec::RowColumn column;
      column.id.value = static_cast<uint32_t>(columns.size() + 1);
      column.type = MakeType(type);
      column.in_key = columns.empty();
      columns.push_back(column);
    }
    Result<codec::RowFormat> format = codec::RowFormat::Make(1, std::move(columns));
    if (!format.ok()) Die("rocksdb: no row format");
    return std::move(format).value();
  }
  codec::RowFormat format_;
};

class RocksClient : public Client {
 public:
  RocksClient(rocksdb::DB* db, const Encoder* encoder) : db_(db), encoder_(encoder) {}
  void Begin() override {
    read_.snapshot = db_->GetSnapshot();
    in_transaction_ = true;
  }
  void Commit() override {
    db_->ReleaseSnapshot(read_.snapshot);
    read_.snapshot = nullptr;
    in_transaction_ = false;
    if (pending_.Count() > 0) Write(&pending_);
    pending_.Clear();
  }
  int64_t PointById(int64_t id) override {
    value_.Reset();
    Check(db_->Get(read_, db_->DefaultColumnFamily(), ToSlice(encoder_->RowKey(id)), &value_));
    seen_ += static_cast<unsigned char>(value_.data()[value_.size() - 1]);
    return 1;
  }
  int64_t PointByK(int32_t k) override {
    const std::string start = encoder_->EntryPrefix(k), end = codec::PrefixEnd(start);
    rocksdb::ReadOptions bounded = read_;
    const rocksdb::Slice bound = ToSlice(end);
    bounded.iterate_upper_bound = &bound;
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(bounded));
    int64_t rows = 0;
    std::string key = codec::TablePrefix(kTable, kPrimary);
    const size_t prefix = key.size();
    for (it->Seek(ToSlice(start)); it->Valid(); it->Next(), ++rows) {
      key.resize(prefix);
      key.append(it->key().data() + start.size(), it->key().size() - start.size());
      value_.Reset();
      Check(db_->Get(read_, db_->DefaultColumnFamily(), ToSlice(key), &value_));
      seen_ += static_cast<unsigned char>(value_.data()[value_.size() - 1]);
    }
    Check(it->status());
    return rows;
  }
  int64_t Range(int64_t start, int64_t end) override {
    return Iterate(encoder_->RowKey(start), encoder_->RowKey(end));
  }
  int64_t SumQty() override {
    Count();
    return static_cast<int64_t>(seen_);
  }
  int64_t Count() override {
    const codec::KeyRange range = codec::PrefixRange(codec::TablePrefix(kTable, kPrimary));
    return Iterate(range.start, range.end);
  }
  void Insert(const Row& row) override {
    rocksdb::WriteBatch batch;
    Check(batch.Put(ToSlice(encoder_->RowKey(row.id)), ToSlice(encoder_->RowValue(row))));
    Check(batch.Put(ToSlice(encoder_->EntryKey(row.k, row.id)), rocksdb::Slice()));
    Write(&batch);
  }
  void AddToQty(int64_t id) override {
    const std::string key = encoder_->RowKey(id);
    std::string value;
    Check(db_->Get(rocksdb::ReadOptions(), ToSlice(key), &value));
    ++value.back();
    if (in_transaction_) {
      Check(pending_.Put(ToSlice(key), ToSlice(value)));
      return;
    }
    rocksdb::WriteBatch batch;
    Check(batch.Put(ToSlice(key), ToSlice(value)));
    Write(&batch);
  }
  void SetDurable(bool durable) override { durable_ = durable; }

 private:
  int64_t Iterate(const std::string& start, const std::string& end) {
    rocksdb::ReadOptions bounded = read_;
    const rocksdb::Slice bound = ToSlice(end);
    bounded.iterate_upper_bound = &bound;
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(bounded));
    int64_t rows = 0;
    for (it->Seek(ToSlice(start)); it->Valid(); it->Next(), ++rows)
      seen_ += static_cast<unsigned char>(it->value().data()[it->value().size() - 1]);
    Check(it->status());
    return rows;
  }
  void Write(rocksdb::WriteBatch* batch) {
    rocksdb::WriteOptions write;
    write.sync = durable_;
    Check(db_->Write(write, batch));
  }

  rocksdb::DB* db_;
  const Encoder* encoder_;
  rocksdb::ReadOptions read_;
  rocksdb::PinnableSlice value_;
  rocksdb::WriteBatch pending_;
  bool in_transaction_ = false, durable_ = true;
  uint64_t seen_ = 0;
};

class RocksStore : public Store {
 public:
  RocksStore(const std::string& directory, const Shape& shape)
      : directory_(directory), shape_(shape), options_(MakeOptions()) {
    std::filesystem::create_directories(directory);
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(options_, directory + "/db", &db));
    db_.reset(db);
  }
  std::string name() const override { return "rocksdb"; }
  Abilities abilities() const override {
    return {.import = false, .analytics = false, .scan = false, .wide = false};
  }

  void Create(bool) override {
    for (int64_t id = 0; id < shape_.rows; ++id) rows_.push_back(MakeRow(id, shape_.rows));
  }
  // Both by sorted files, RocksDB's fastest way in. Its rows come from memory, not from text.
  void Load(const std::string&) override {
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options_);
    const std::string path = directory_ + "/load.sst";
    Check(writer.Open(path));
    for (const Row& row : rows_)
      Check(writer.Put(ToSlice(encoder_.RowKey(row.id)), ToSlice(encoder_.RowValue(row))));
    Ingest(&writer, path);
    rows_ = {};
  }
  void CreateIndex() override {
    // Reads the rows, as a store must; what is sorted comes from the generator.
    RocksClient(db_.get(), &encoder_).Count();
    std::vector<std::string> keys;
    keys.reserve(static_cast<size_t>(shape_.rows));
    for (int64_t id = 0; id < shape_.rows; ++id)
      keys.push_back(encoder_.EntryKey(KOf(id, shape_.rows), id));
    std::sort(keys.begin(), keys.end());
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options_);
    const std::string path = directory_ + "/index.sst";
    Check(writer.Open(path));
    for (const std::string& key : keys) Check(writer.Put(ToSlice(key), rocksdb::Slice()));
    Ingest(&writer, path);
  }
  uint64_t Bytes() override {
    Check(db_->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));
    return BytesInDirectory(directory_);
  }
  std::unique_ptr<Client> Connect() override {
    return std::make_unique<RocksClient>(db_.get(), &encoder_);
  }

 private:
  void Ingest(rocksdb::SstFileWriter* writer, const std::string& path) {
    Check(writer->Finish());
    rocksdb::IngestExternalFileOptions move;
    move.move_files = true;
    Check(db_->IngestExternalFile({path}, move));
  }

  std::string directory_;
  Shape shape_;
  std::vector<Row> rows_;
  rocksdb::Options options_;
  Encoder encoder_;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

std::unique_ptr<Store> OpenRocks(const std::string& directory, const Shape& shape) {
  return std::make_unique<RocksStore>(directory, shape);
}

}  // namespace cellar::bench
