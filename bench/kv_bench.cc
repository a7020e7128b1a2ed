// The key-value layer beside the RocksDB it stands on: the same data, the same options, in turn.
//
// CELLAR_BENCH_DIR names the directory of both stores (default: the system's temporary one). What
// counts is the ratio of a Kv figure to its Raw neighbour in one run.
#include <benchmark/benchmark.h>
#include <fmt/core.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "cellar/engines/rocksdb/rocks_engine.h"
#include "cellar/kv/engine.h"

namespace cellar {
namespace {

constexpr int kRows = 500000;
constexpr size_t kValueBytes = 100;
constexpr size_t kCacheBytes = 256 << 20;

std::string Key(int row) { return fmt::format("\x15\x16row{:08}", row); }

void Require(bool ok) {
  if (!ok) std::abort();
}

std::string Directory(const char* name) {
  const char* base = std::getenv("CELLAR_BENCH_DIR");
  const std::filesystem::path path =
      (base != nullptr ? std::filesystem::path(base) : std::filesystem::temp_directory_path()) /
      "cellar-kv-bench" / name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path.parent_path());
  return path.string();
}

// Half of the rows in files, half where a running server has them: in what is compacted later.
rocksdb::DB* Raw() {
  static const std::unique_ptr<rocksdb::DB> db = [] {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 64 << 20;
    options.max_write_buffer_number = 3;
    options.memtable_whole_key_filtering = true;
    options.memtable_prefix_bloom_size_ratio = 0.02;
    options.allow_concurrent_memtable_write = false;
    options.avoid_unnecessary_blocking_io = true;
    options.max_background_jobs = 2;
    options.level_compaction_dynamic_level_bytes = true;
    options.compression = rocksdb::kLZ4Compression;
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(kCacheBytes, 2);
    table.block_size = 16 << 10;
    table.format_version = 5;
    table.checksum = rocksdb::kXXH3;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DB* opened = nullptr;
    Require(rocksdb::DB::Open(options, Directory("raw"), &opened).ok());
    const std::string value(kValueBytes, 'v');
    for (int i = 0; i < kRows; i += 1000) {
      rocksdb::WriteBatch batch;
      for (int j = i; j < i + 1000; ++j) Require(batch.Put(Key(j), value).ok());
      Require(opened->Write({}, &batch).ok());
    }
    Require(opened->CompactRange({}, nullptr, nullptr).ok());
    return std::unique_ptr<rocksdb::DB>(opened);
  }();
  return db.get();
}

kv::Engine* Ours() {
  static const std::unique_ptr<kv::Engine> engine = [] {
    engines::RocksOptions options;
    options.directory = Directory("kv");
    options.cache_bytes = kCacheBytes;
    auto opened = engines::OpenRocksEngine(options);
    Require(opened.ok());
    const std::string value(kValueBytes, 'v');
    for (int i = 0; i < kRows; i += 1000) {
      auto transaction = (*opened)->Begin({.durable = false});
      for (int j = i; j < i + 1000; ++j) Require(transaction->Put(Key(j), value).ok());
      Require(transaction->Commit().ok());
    }
    Require((*opened)->Compact("", "").ok());
    return std::move(opened).value();
  }();
  return engine.get();
}

struct Picker {
  explicit Picker(int seed) : random(static_cast<unsigned>(seed)) {}
  int operator()() { return std::uniform_int_distribution<int>(0, kRows - 200)(random); }
  std::minstd_rand random;
};

void RawGet(benchmark::State& state) {
  rocksdb::DB* db = Raw();
  Picker pick(1);
  rocksdb::PinnableSlice value;
  for (auto _ : state) {
    value.Reset();
    Require(db->Get({}, db->DefaultColumnFamily(), Key(pick()), &value).ok());
  }
}
BENCHMARK(RawGet);

void KvGetAutocommit(benchmark::State& state) {
  kv::Engine* engine = Ours();
  Picker pick(1);
  kv::PinnedValue value;
  for (auto _ : state) {
    auto transaction = engine->Begin({.read_only = true, .autocommit = true});
    Require(*transaction->Get(Key(pick()), &value));
    Require(transaction->Commit().ok());
  }
}
BENCHMARK(KvGetAutocommit);

void RawSnapshotGet(benchmark::State& state) {
  rocksdb::DB* db = Raw();
  Picker pick(1);
  rocksdb::PinnableSlice value;
  for (auto _ : state) {
    value.Reset();
    rocksdb::ReadOptions options;
    options.snapshot = db->GetSnapshot();
    Require(db->Get(options, db->DefaultColumnFamily(), Key(pick()), &value).ok());
    db->ReleaseSnapshot(options.snapshot);
  }
}
BENCHMARK(RawSnapshotGet);

void KvGetTransaction(benchmark::State& state) {
  kv::Engine* engine = Ours();
  Picker pick(1);
  kv::PinnedValue value;
  for (auto _ : state) {
    auto transaction = engine->Begin();
    Require(*transaction->Get(Key(pick()), &value));
    Require(transaction->Commit().ok());
  }
}
BENCHMARK(KvGetTransaction);

// What Begin and Commit cost by themselves.
void KvBeginCommit(benchmark::State& state) {
  kv::Engine* engine = Ours();
  for (auto _ : state) Require(engine->Begin({.read_only = true})->Commit().ok());
}
BENCHMARK(KvBeginCommit);

void RawScan(benchmark::State& state) {
  rocksdb::DB* db = Raw();
  Picker pick(1);
  const auto rows = static_cast<int>(state.range(0));
  for (auto _ : state) {
    const int from = rows >= kRows ? 0 : pick();
    const std::string end = Key(from + rows);
    const rocksdb::Slice upper(end);
    rocksdb::ReadOptions options;
    options.iterate_upper_bound = &upper;
    const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(options));
    size_t bytes = 0;
    for (it->Seek(Key(from)); it->Valid(); it->Next()) {
      bytes += it->key().size() + it->value().size();
    }
    benchmark::DoNotOptimize(bytes);
  }
  state.SetItemsProcessed(state.iterations() * rows);
}
BENCHMARK(RawScan)->Arg(1)->Arg(10)->Arg(100)->Arg(kRows);

void Scan(benchmark::State& state, kv::Transaction* transaction) {
  Picker pick(1);
  const auto rows = static_cast<int>(state.range(0));
  kv::Block block;
  for (auto _ : state) {
    const int from = rows >= kRows ? 0 : pick();
    auto cursor = transaction->Scan(Key(from), Key(from + rows));
    size_t bytes = 0;
    while (*(*cursor)->NextBlock(&block)) {
      for (size_t i = 0; i < block.size(); ++i)
        bytes += block.key(i).size() + block.value(i).size();
    }
    benchmark::DoNotOptimize(bytes);
  }
  state.SetItemsProcessed(state.iterations() * rows);
}

void KvScan(benchmark::State& state) {
  auto transaction = Ours()->Begin({.read_only = true});
  Scan(state, transaction.get());
}
BENCHMARK(KvScan)->Arg(1)->Arg(10)->Arg(100)->Arg(kRows);

// As KvScan, with a thousand own writes to merge.
void KvScanOverOwnWrites(benchmark::State& state) {
  auto transaction = Ours()->Begin();
  for (int i = 0; i < 1000; ++i) Require(transaction->Put(Key(i * (kRows / 1000)), "own").ok());
  Scan(state, transaction.get());
}
BENCHMARK(KvScanOverOwnWrites)->Arg(100)->Arg(kRows);

void KvOwnPut(benchmark::State& state) {
  const std::string value(kValueBytes, 'v');
  Picker pick(1);
  const auto writes = static_cast<int>(state.range(0));
  for (auto _ : state) {
    auto transaction = Ours()->Begin();
    for (int i = 0; i < writes; ++i) Require(transaction->Put(Key(pick()), value).ok());
  }
  state.SetItemsProcessed(state.iterations() * writes);
}
BENCHMARK(KvOwnPut)->Arg(2)->Arg(100)->Arg(10000);

void RawCommit(benchmark::State& state) {
  rocksdb::DB* db = Raw();
  Picker pick(state.thread_index());
  const std::string value(kValueBytes, 'w');
  rocksdb::WriteOptions options;
  options.sync = state.range(0) != 0;
  for (auto _ : state) {
    rocksdb::WriteBatch batch;
    Require(batch.Put(Key(pick()), value).ok());
    Require(batch.Put(Key(pick()), value).ok());
    Require(db->Write(options, &batch).ok());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(RawCommit)->Arg(0)->UseRealTime();
BENCHMARK(RawCommit)->Arg(1)->Threads(1)->Threads(4)->Threads(16)->UseRealTime();

void KvCommit(benchmark::State& state) {
  kv::Engine* engine = Ours();
  Picker pick(state.thread_index());
  const std::string value(kValueBytes, 'w');
  for (auto _ : state) {
    auto transaction = engine->Begin({.durable = state.range(0) != 0});
    Require(transaction->Put(Key(pick()), value).ok());
    Require(transaction->Put(Key(pick()), value).ok());
    Require(transaction->Commit().ok());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(KvCommit)->Arg(0)->UseRealTime();
BENCHMARK(KvCommit)->Arg(1)->Threads(1)->Threads(4)->Threads(16)->UseRealTime();

// Two tracked reads and two writes, validated.
void RawReadWrite(benchmark::State& state) {
  rocksdb::DB* db = Raw();
  Picker pick(state.thread_index());
  rocksdb::PinnableSlice value;
  const std::string fresh(kValueBytes, 'w');
  for (auto _ : state) {
    rocksdb::WriteBatch batch;
    for (int i = 0; i < 2; ++i) {
      const std::string key = Key(pick());
      value.Reset();
      Require(db->Get({}, db->DefaultColumnFamily(), key, &value).ok());
      Require(batch.Put(key, fresh).ok());
    }
    Require(db->Write({}, &batch).ok());
  }
}
BENCHMARK(RawReadWrite)->Threads(1)->Threads(4)->UseRealTime();

void KvReadWrite(benchmark::State& state) {
  kv::Engine* engine = Ours();
  Picker pick(state.thread_index());
  kv::PinnedValue value;
  const std::string fresh(kValueBytes, 'w');
  int64_t conflicts = 0;
  for (auto _ : state) {
    auto transaction = engine->Begin({.durable = false});
    for (int i = 0; i < 2; ++i) {
      const std::string key = Key(pick());
      Require(*transaction->Get(key, &value));
      Require(transaction->Put(key, fresh).ok());
    }
    if (!transaction->Commit().ok()) ++conflicts;
  }
  state.counters["conflicts"] = static_cast<double>(conflicts);
}
BENCHMARK(KvReadWrite)->Threads(1)->Threads(4)->UseRealTime();

// A load of 200 bytes a row in one transaction, past the write buffer: spilled and ingested.
void KvBulkLoad(benchmark::State& state) {
  kv::Engine* engine = Ours();
  const std::string value(180, 'b');
  const auto rows = static_cast<int>(state.range(0));
  int load = 0;
  for (auto _ : state) {
    auto transaction = engine->Begin({.bulk = true});
    for (int i = 0; i < rows; ++i) {
      Require(transaction->PutIfAbsent(fmt::format("\x17load{:04}{:012}", load, i), value).ok());
    }
    Require(transaction->Commit().ok());
    ++load;
  }
  state.SetItemsProcessed(state.iterations() * rows);
}
BENCHMARK(KvBulkLoad)->Arg(1000000)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cellar

BENCHMARK_MAIN();
