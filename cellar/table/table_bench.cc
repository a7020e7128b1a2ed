// What a point read costs at this layer, beside RocksDB's own Get of the same row, and what scans
// and inserts cost a row. Debian's RocksDB; warm cache.
#include <benchmark/benchmark.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "cellar/catalog/catalog.h"
#include "cellar/engines/rocksdb/rocks_engine.h"
#include "cellar/table/access.h"
#include "cellar/table/compiled.h"

namespace cellar::table {
namespace {

constexpr int kRows = 200000;

catalog::ColumnDescriptor Column(uint32_t id, std::string name, TypeId type) {
  catalog::ColumnDescriptor column;
  column.id.value = id;
  column.name = std::move(name);
  column.type = MakeType(type);
  column.not_null = id == 1;
  return column;
}

void Check(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "{}\n", status.ToString());
  std::abort();
}
template <typename T>
T Check(Result<T> result) {
  Check(result.status());
  return std::move(result).value();
}

// id int8 primary key, a int8 with an index, f float8, s text of 20 characters.
struct Fixture {
  Fixture() {
    directory = std::filesystem::temp_directory_path() /
                ("table_bench_" + std::to_string(std::random_device()()));
    std::filesystem::create_directories(directory);
    engines::RocksOptions options;
    options.directory = (directory / "store").string();
    options.cache_bytes = size_t{256} << 20;
    engine = Check(engines::OpenRocksEngine(options));
    catalog = Check(catalog::Catalog::Open(engine.get()));
    tables = std::make_unique<TableStore>(engine.get());
    Create();
    Load();
    Check(engine->Compact("", ""));
    OpenRaw();
  }
  ~Fixture() {
    raw.reset();
    catalog.reset();
    tables.reset();
    engine.reset();
    std::filesystem::remove_all(directory);
  }

  void Create() {
    TableDescriptor descriptor;
    descriptor.name = "t";
    descriptor.parent = catalog->Current()->FindNamespace(catalog::kRootNamespace, "cellar")->id;
    descriptor.columns = {Column(1, "id", TypeId::kInt8), Column(2, "a", TypeId::kInt8),
                          Column(3, "f", TypeId::kFloat8), Column(4, "s", TypeId::kText)};
    for (uint32_t id : {1u, 2u}) {
      IndexDescriptor index;
      index.name = "i" + std::to_string(id);
      index.primary = index.unique = id == 1;
      catalog::IndexColumn key;
      key.column.value = id;
      index.key = {key};
      descriptor.indexes.push_back(index);
    }
    auto transaction = engine->Begin();
    catalog::CatalogEditor editor(catalog.get(), transaction.get());
    const TablePtr made = Check(editor.CreateTable(descriptor));
    catalog->Publish(editor, Check(transaction->Commit()));
    table = catalog->Current()->GetTable(made->id);
    for (const catalog::ColumnDescriptor& column : table->columns) columns.push_back(column.id);
  }

  void Fill(RowBatch* batch, int64_t first, size_t count) {
    batch->Reset(std::vector<Type>{table->columns[0].type, table->columns[1].type,
                                   table->columns[2].type, table->columns[3].type});
    batch->Resize(count);
    for (size_t i = 0; i < count; ++i) {
      const int64_t id = first + static_cast<int64_t>(i);
      batch->column(0).Set(i, Datum::Int(id));
      batch->column(1).Set(i, Datum::Int(id * 7919 % kRows));
      batch->column(2).Set(i, Datum::Double(static_cast<double>(id) / 3));
      batch->column(3).Set(i, Datum::Bytes("twenty characters !!"));
    }
  }

  void Load() {
    RowBatch batch;
    for (int64_t first = 0; first < kRows; first += 1000) {
      auto transaction = engine->Begin();
      Access access(transaction.get(), nullptr, tables.get());
      Fill(&batch, first, 1000);
      Check(access.Insert(table, &batch, ConflictPolicy(), nullptr));
      kv::CommitOptions commit;
      commit.durable = first + 1000 >= kRows;
      Check(transaction->Commit(commit));
    }
  }

  // The same rows in a plain RocksDB with the same block and filter settings.
  void OpenRaw() {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::BlockBasedTableOptions blocks;
    blocks.block_size = 16 << 10;
    blocks.block_cache = rocksdb::NewLRUCache(size_t{256} << 20);
    blocks.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(blocks));
    rocksdb::DB* db = nullptr;
    if (!rocksdb::DB::Open(options, (directory / "raw").string(), &db).ok()) std::abort();
    raw.reset(db);
    const codec::KeyRange range =
        codec::PrefixRange(codec::TablePrefix(table->id, table->primary().id));
    auto transaction = engine->Begin();
    auto cursor = Check(transaction->Scan(range.start, range.end));
    kv::Block block;
    while (Check(cursor->NextBlock(&block))) {
      for (size_t i = 0; i < block.size(); ++i) {
        const rocksdb::Slice key(block.key(i).data(), block.key(i).size());
        const rocksdb::Slice value(block.value(i).data(), block.value(i).size());
        if (!raw->Put(rocksdb::WriteOptions(), key, value).ok()) std::abort();
      }
    }
    if (!raw->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr).ok()) std::abort();
  }

  ScanSpec PointSpec(int64_t id) const {
    ScanSpec spec;
    spec.table = table;
    spec.index = table->primary().id;
    spec.spans.resize(1);
    spec.spans[0].equal = {Datum::Int(id)};
    spec.columns = columns;
    return spec;
  }

  std::filesystem::path directory;
  std::unique_ptr<kv::Engine> engine;
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<TableStore> tables;
  TablePtr table;
  std::vector<ColumnId> columns;
  std::unique_ptr<rocksdb::DB> raw;
};

Fixture& Shared() {
  static Fixture fixture;
  return fixture;
}

std::string RawKey(const Fixture& fixture, int64_t id) {
  std::string key = codec::TablePrefix(fixture.table->id, fixture.table->primary().id);
  codec::AppendKeyInt(id, &key);
  key.push_back(kGroupZero);
  return key;
}

void RawRocksGet(benchmark::State& state) {
  Fixture& fixture = Shared();
  std::mt19937_64 random(1);
  rocksdb::PinnableSlice value;
  for (auto _ : state) {
    const std::string key = RawKey(fixture, static_cast<int64_t>(random() % kRows));
    value.Reset();
    if (!fixture.raw->Get(rocksdb::ReadOptions(), fixture.raw->DefaultColumnFamily(), key, &value)
             .ok()) {
      state.SkipWithError("absent");
    }
    benchmark::DoNotOptimize(value.data());
  }
}
BENCHMARK(RawRocksGet);

// Begin, Get, end of a transaction, without this layer.
void EngineGet(benchmark::State& state) {
  Fixture& fixture = Shared();
  std::mt19937_64 random(1);
  kv::PinnedValue value;
  kv::TransactionOptions options;
  options.autocommit = true;
  options.read_only = true;
  for (auto _ : state) {
    const std::string key = RawKey(fixture, static_cast<int64_t>(random() % kRows));
    auto transaction = fixture.engine->Begin(options);
    if (!Check(transaction->Get(key, &value))) state.SkipWithError("absent");
    benchmark::DoNotOptimize(value.view().data());
  }
}
BENCHMARK(EngineGet);

// A transaction, an access and a scan for each row, as a statement of its own does.
void PointRead(benchmark::State& state) {
  Fixture& fixture = Shared();
  std::mt19937_64 random(1);
  kv::TransactionOptions options;
  options.autocommit = true;
  options.read_only = true;
  RowBatch batch;
  for (auto _ : state) {
    auto transaction = fixture.engine->Begin(options);
    Access access(transaction.get(), nullptr, fixture.tables.get());
    auto reader = Check(access.Scan(fixture.PointSpec(static_cast<int64_t>(random() % kRows))));
    if (!Check(reader->Next(&batch))) state.SkipWithError("absent");
    benchmark::DoNotOptimize(batch.column(1).ints()[0]);
  }
}
BENCHMARK(PointRead);

// The same inside one transaction.
void PointReadInTransaction(benchmark::State& state) {
  Fixture& fixture = Shared();
  std::mt19937_64 random(1);
  kv::TransactionOptions options;
  options.read_only = true;
  auto transaction = fixture.engine->Begin(options);
  Access access(transaction.get(), nullptr, fixture.tables.get());
  RowBatch batch;
  for (auto _ : state) {
    auto reader = Check(access.Scan(fixture.PointSpec(static_cast<int64_t>(random() % kRows))));
    if (!Check(reader->Next(&batch))) state.SkipWithError("absent");
    benchmark::DoNotOptimize(batch.column(1).ints()[0]);
  }
}
BENCHMARK(PointReadInTransaction);

void RunScan(benchmark::State& state, IndexId index, std::vector<ColumnId> columns) {
  Fixture& fixture = Shared();
  kv::TransactionOptions options;
  options.read_only = true;
  int64_t rows = 0;
  RowBatch batch;
  for (auto _ : state) {
    auto transaction = fixture.engine->Begin(options);
    Access access(transaction.get(), nullptr);
    ScanSpec spec;
    spec.table = fixture.table;
    spec.index = index;
    spec.spans = {Span{}};
    spec.columns = columns;
    auto reader = Check(access.Scan(std::move(spec)));
    while (Check(reader->Next(&batch))) rows += static_cast<int64_t>(batch.size());
  }
  state.SetItemsProcessed(rows);
}
void ScanAllColumns(benchmark::State& state) {
  RunScan(state, Shared().table->primary().id, Shared().columns);
}
BENCHMARK(ScanAllColumns)->Unit(benchmark::kMillisecond);
void ScanOneColumn(benchmark::State& state) {
  RunScan(state, Shared().table->primary().id, {ColumnId{2}});
}
BENCHMARK(ScanOneColumn)->Unit(benchmark::kMillisecond);
void CountRows(benchmark::State& state) { RunScan(state, Shared().table->primary().id, {}); }
BENCHMARK(CountRows)->Unit(benchmark::kMillisecond);
void ScanCoveringIndex(benchmark::State& state) {
  RunScan(state, Shared().table->indexes[1].id, {ColumnId{2}, ColumnId{1}});
}
BENCHMARK(ScanCoveringIndex)->Unit(benchmark::kMillisecond);
void ScanIndexAndRows(benchmark::State& state) {
  RunScan(state, Shared().table->indexes[1].id, Shared().columns);
}
BENCHMARK(ScanIndexAndRows)->Unit(benchmark::kMillisecond);

void RawRocksScan(benchmark::State& state) {
  Fixture& fixture = Shared();
  int64_t rows = 0;
  for (auto _ : state) {
    std::unique_ptr<rocksdb::Iterator> it(fixture.raw->NewIterator(rocksdb::ReadOptions()));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      benchmark::DoNotOptimize(it->value().data());
      ++rows;
    }
  }
  state.SetItemsProcessed(rows);
}
BENCHMARK(RawRocksScan)->Unit(benchmark::kMillisecond);

// Batches of 1000 rows into a table with one secondary index, not synced; then rolled back.
void InsertRows(benchmark::State& state) {
  Fixture& fixture = Shared();
  RowBatch batch;
  int64_t next = 10 * kRows;
  int64_t rows = 0;
  for (auto _ : state) {
    auto transaction = fixture.engine->Begin();
    Access access(transaction.get(), nullptr, fixture.tables.get());
    fixture.Fill(&batch, next, 1000);
    next += 1000;
    Check(access.Insert(fixture.table, &batch, ConflictPolicy(), nullptr));
    transaction->Abort();
    rows += 1000;
  }
  state.SetItemsProcessed(rows);
}
BENCHMARK(InsertRows)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace cellar::table
