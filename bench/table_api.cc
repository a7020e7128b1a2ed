// What the table API costs beside the engine: the same rows, keys and entries by cellar/table.h and
// by RocksDB alone, with the same options, in one run and in turn. A put is a transaction that
// knows what was there; RocksDB is measured both ways: as its own optimistic transaction that reads
// the row first, and as a batch that asks for nothing.
//
//   bench_table_api DIRECTORY [ROWS]
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/optimistic_transaction_db.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cellar/codec/key.h"
#include "cellar/db.h"
#include "cellar/table.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRepetitions = 5;
constexpr size_t kReads = 50000, kWrites = 20000;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}
void Check(const cellar::Status& status) {
  if (!status.ok()) Die(status.ToString());
}
template <typename T>
T Take(cellar::Result<T> result) {
  Check(result.status());
  return std::move(*result);
}
void Check(const rocksdb::Status& status) {
  if (!status.ok()) Die(status.ToString());
}

struct Cost {
  double wall = 0, cpu = 0;  // microseconds a call; of the calling thread
};

double ThreadMicros() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

Cost MicrosEach(size_t count, const std::function<void(size_t)>& body) {
  const auto start = Clock::now();
  const double cpu = ThreadMicros();
  for (size_t i = 0; i < count; ++i) body(i);
  const auto calls = static_cast<double>(count);
  return {std::chrono::duration<double, std::micro>(Clock::now() - start).count() / calls,
          (ThreadMicros() - cpu) / calls};
}

Cost Median(const std::vector<Cost>& costs) {
  std::vector<double> wall, cpu;
  for (const Cost& cost : costs) {
    wall.push_back(cost.wall);
    cpu.push_back(cost.cpu);
  }
  std::sort(wall.begin(), wall.end());
  std::sort(cpu.begin(), cpu.end());
  return {wall[wall.size() / 2], cpu[cpu.size() / 2]};
}

std::string IndexKey(int64_t group, int64_t id) {
  std::string key =
      cellar::codec::TablePrefix(cellar::codec::TableId{100}, cellar::codec::IndexId{4});
  cellar::codec::AppendKeyInt(group, &key);
  cellar::codec::AppendKeyInt(id, &key);
  cellar::codec::FinishKey(&key);
  return key;
}

std::string RowKey(int64_t id) {
  std::string key =
      cellar::codec::TablePrefix(cellar::codec::TableId{100}, cellar::codec::IndexId{0});
  cellar::codec::AppendKeyInt(id, &key);
  cellar::codec::AppendKeyInt(0, &key);
  cellar::codec::FinishKey(&key);
  return key;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) Die("bench_table_api DIRECTORY [ROWS]");
  const std::string directory = argv[1];
  const int64_t rows = argc > 2 ? std::atoll(argv[2]) : 200000;
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);

  auto database = Take(
      cellar::Database::Open(directory + "/cellar", {.durable = false, .table_layout = "row"}));
  auto connection = Take(database->Connect());
  Check(connection->ExecuteScript(
      "CREATE TABLE kv (key bigint PRIMARY KEY, value text);"
      "CREATE TABLE indexed (key bigint PRIMARY KEY, grp bigint, value text);"
      "CREATE INDEX ON indexed (grp)"));
  auto store = Take(database->Tables());
  auto kv = Take(store->OpenTable("/cellar/kv"));
  auto indexed = Take(store->OpenTable("/cellar/indexed"));

  rocksdb::OptimisticTransactionDB* raw = nullptr;
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(size_t{256} << 20);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  Check(rocksdb::OptimisticTransactionDB::Open(options, directory + "/rocksdb", &raw));
  const std::unique_ptr<rocksdb::OptimisticTransactionDB> rocks(raw);

  const std::string value(100, 'v');
  rocksdb::WriteOptions write;
  for (int64_t first = 0; first < rows; first += 1000) {
    std::vector<cellar::Record> a, b;
    rocksdb::WriteBatch batch;
    for (int64_t id = first; id < std::min(rows, first + 1000); ++id) {
      a.push_back(kv->NewRecord().Set(0, id).Set(1, value));
      b.push_back(indexed->NewRecord().Set(0, id).Set(1, id % 1000).Set(2, value));
      Check(batch.Put(RowKey(id), value));
      Check(batch.Put(IndexKey(id % 1000, id), ""));
    }
    Check(kv->Put(a).status());
    Check(indexed->Put(b).status());
    Check(rocks->Write(write, &batch));
  }
  Check(rocks->Flush({}));
  Check(connection->Execute("VACUUM").status());

  std::mt19937_64 random(7);
  std::vector<int64_t> keys(std::max(kReads, kWrites));
  std::vector<Cost> get_raw, get_kv, put_raw, replace_raw, put_kv, put_raw_index, insert_raw_index,
      put_index;
  int64_t fresh = rows;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    for (int64_t& key : keys) key = static_cast<int64_t>(random() % static_cast<uint64_t>(rows));
    size_t bytes = 0;
    get_raw.push_back(MicrosEach(kReads, [&](size_t i) {
      rocksdb::PinnableSlice found;
      Check(rocks->Get({}, rocks->DefaultColumnFamily(), RowKey(keys[i]), &found));
      bytes += found.size();
    }));
    const cellar::GetOptions get{.columns = Take(kv->Project({"value"}))};
    cellar::RowSet set;
    size_t read = 0;
    get_kv.push_back(MicrosEach(kReads, [&](size_t i) {
      Check(kv->Get(cellar::Key{keys[i]}, get, &set));
      read += set[0].GetText(0).size();
    }));
    if (read != bytes) Die("different answers");
    put_raw.push_back(
        MicrosEach(kWrites, [&](size_t i) { Check(rocks->Put(write, RowKey(keys[i]), value)); }));
    std::unique_ptr<rocksdb::Transaction> transaction;
    auto begin = [&] {
      transaction.reset(rocks->BeginTransaction(write, {}, transaction.release()));
    };
    auto read_first = [&](int64_t id) {
      rocksdb::PinnableSlice found;
      const rocksdb::Status status =
          transaction->GetForUpdate({}, rocks->DefaultColumnFamily(), RowKey(id), &found);
      if (!status.IsNotFound()) Check(status);
    };
    replace_raw.push_back(MicrosEach(kWrites, [&](size_t i) {
      begin();
      read_first(keys[i]);
      Check(transaction->Put(RowKey(keys[i]), value));
      Check(transaction->Commit());
    }));
    cellar::Record record = kv->NewRecord();
    put_kv.push_back(MicrosEach(kWrites, [&](size_t i) {
      record.Set(0, keys[i]).Set(1, value);
      Check(kv->Put(record).status());
    }));
    // New rows with an entry each, each way behind the others.
    put_raw_index.push_back(MicrosEach(kWrites, [&](size_t i) {
      const int64_t id = fresh + static_cast<int64_t>(i);
      rocksdb::WriteBatch batch;
      Check(batch.Put(RowKey(id), value));
      Check(batch.Put(IndexKey(id % 1000, id), ""));
      Check(rocks->Write(write, &batch));
    }));
    fresh += kWrites;
    insert_raw_index.push_back(MicrosEach(kWrites, [&](size_t i) {
      const int64_t id = fresh + static_cast<int64_t>(i);
      begin();
      read_first(id);
      Check(transaction->Put(RowKey(id), value));
      Check(transaction->Put(IndexKey(id % 1000, id), ""));
      Check(transaction->Commit());
    }));
    cellar::Record three = indexed->NewRecord();
    put_index.push_back(MicrosEach(kWrites, [&](size_t i) {
      const int64_t id = fresh + static_cast<int64_t>(i);
      three.Set(0, id).Set(1, id % 1000).Set(2, value);
      Check(indexed->Put(three).status());
    }));
    fresh += kWrites;
  }
  auto line = [](const char* what, const std::vector<Cost>& api, const std::vector<Cost>& bare) {
    const Cost a = Median(api), b = Median(bare);
    std::printf("%-36s %7.2f us, RocksDB %7.2f: %5.2f   CPU %7.2f us, RocksDB %7.2f: %5.2f\n", what,
                a.wall, b.wall, a.wall / b.wall, a.cpu, b.cpu, a.cpu / b.cpu);
  };
  line("get of a (key, value) row", get_kv, get_raw);
  line("put over a (key, value) row", put_kv, replace_raw);
  line("  beside a blind write", put_kv, put_raw);
  line("put of a new row, one index", put_index, insert_raw_index);
  line("  beside a blind batch", put_index, put_raw_index);
  return 0;
}
