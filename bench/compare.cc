// Measures one store: loads it, reads it, writes to it, and prints a line for each workload:
// store, workload, microseconds per operation (or row; sizes are in MB), CPU microseconds of this
// process; and, for the answers that all stores must agree in: "check", workload, answer.
//
//   compare files --csv DIR [--rows N]                     makes the files that stores load
//   compare STORE --dir DIR --csv DIR [--rows N] [--seconds S] [--only WORKLOAD] [--url URL]
//   compare rocksdb-build                     names the RocksDB that this program is linked with
//
// STORE is cellar-row or cellar-pages (with the tables below their SQL), rocksdb, sqlite, duckdb
// (URL is its library), or a name for the server at URL. tools/bench runs it for every store in
// turn and makes the tables.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string_view>
#include <thread>

#include "bench/store.h"
#include "cellar/engines/rocksdb/rocks_engine.h"

namespace cellar::bench {

namespace {

constexpr int kRangeRows = 100;
constexpr int kWriters = 16;
constexpr int kUpdatesEach = 1000;
constexpr int kWideCopies = 5, kWideShare = 5;

struct Options {
  std::string store, directory, csv, url, only;
  int64_t rows = 1000000;
  double seconds = 1;
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// All workloads of one table of one store; the names of the wide table's begin with "wide-".
class Comparison {
 public:
  Comparison(const Options& options, const Shape& shape)
      : options_(options), shape_(shape), prefix_(shape.copies > 1 ? "wide-" : "") {}

  void Import(Store* store) {
    store->Create(true);
    Once(store, "import", [&] { store->Load(options_.csv + "/" + shape_.table + ".csv"); });
  }

  void Load(Store* store) {
    store->Create(false);
    Once(store, "load", [&] { store->Load(options_.csv + "/" + shape_.table + ".csv"); });
    if (store->abilities().index) Once(store, "create-index", [&] { store->CreateIndex(); });
    store->Settle();
  }

  void Read(Store* store) {
    const Abilities abilities = store->abilities();
    const std::unique_ptr<Client> client = store->Connect();
    Random random(7);
    const int64_t n = shape_.rows;
    const auto by_id = [&] { return client->PointById(random.Below(n)); };
    const auto by_k = [&] { return client->PointByK(KOf(random.Below(n), n)); };
    if (client->Count() != n) Die(store->name() + ": rows are missing");
    Warm(store, client.get());
    if (abilities.index) {
      Repeat(store, "point-pk", 1, by_id);
      if (!wide()) Repeat(store, "point-index", 1, by_k);
      Repeat(store, "range-100", kRangeRows, [&] {
        const int64_t start = random.Below(n - kRangeRows);
        return client->Range(start, start + kRangeRows);
      });
      client->Begin();
      Repeat(store, "point-pk-transaction", 1, by_id);
      if (!wide()) Repeat(store, "point-index-transaction", 1, by_k);
      client->Commit();
    }
    // RocksDB alone decodes nothing, so its sum is none.
    const bool sums = abilities.analytics || store->name() != "rocksdb";
    Scan(
        store, "sum", [&] { return client->SumQty(); }, sums);
    if (abilities.scan) Scan(store, "scan", [&] { return client->ScanAll(); });
    if (wide()) return;
    Scan(store, "count", [&] { return client->Count(); });
    if (!abilities.analytics) return;
    Scan(store, "count-filter", [&] { return client->CountFiltered(); });
    Scan(store, "q6", [&] { return client->Q6(); });
    Scan(store, "group-by", [&] { return client->GroupBy(); });
  }

  void Size(Store* store) {
    const uint64_t bytes = store->Bytes();
    if (bytes > 0) Print(store, "size", static_cast<double>(bytes) / 1e12, 0, 1);
  }

  void Write(Store* store) {
    if (store->abilities().scan && !wide()) ScanChanged(store);
    const std::unique_ptr<Client> client = store->Connect();
    Warm(store, client.get());
    for (const bool durable : {false, true}) {
      client->SetDurable(durable);
      Batches(store, durable ? "update-1000-durable" : "update-1000-relaxed", client.get());
    }
    if (wide()) return;
    std::atomic<int64_t> next_id = shape_.rows;
    for (int writers : {1, kWriters}) {
      Durable(store, fmt::format("insert-{}", writers), writers, [&](Client* writer, Random*) {
        const int64_t id = next_id.fetch_add(1, std::memory_order_relaxed);
        writer->Insert(MakeRow(id, shape_.rows));
      });
      Durable(
          store, fmt::format("update-{}", writers), writers,
          [&](Client* writer, Random* random) { writer->AddToQty(random->Below(shape_.rows)); });
    }
  }

 private:
  bool Wanted(std::string_view workload) const {
    return options_.only.empty() || workload.find(options_.only) != std::string_view::npos;
  }
  bool wide() const { return shape_.copies > 1; }
  void Print(Store* store, std::string_view workload, double seconds, double cpu, double count) {
    fmt::print("{}\t{}{}\t{:.5f}\t{:.5f}\n", store->name(), prefix_, workload,
               seconds * 1e6 / count, cpu * 1e6 / count);
    std::fflush(stdout);
  }
  // Per row.
  void Once(Store* store, std::string_view workload, const std::function<void()>& work) {
    const double cpu = CpuSeconds(), start = Now();
    work();
    Print(store, workload, Now() - start, CpuSeconds() - cpu, static_cast<double>(shape_.rows));
  }
  // Fills the caches that a running store would have, which SQLite has for each connection.
  static void Warm(Store* store, Client* client) {
    if (store->abilities().scan) client->ScanAll();
  }
  // Per row of the table, after one pass that shows the answer.
  template <typename Work>
  void Scan(Store* store, std::string_view workload, Work work, bool agreed = true) {
    if (!Wanted(workload)) return;
    const auto answer = work();
    if (agreed) fmt::print("check\t{}{}\t{:.9g}\n", prefix_, workload, static_cast<double>(answer));
    const double cpu = CpuSeconds(), start = Now();
    int64_t scans = 0;
    while (scans == 0 || Now() - start < options_.seconds) {
      work();
      ++scans;
    }
    Print(store, workload, Now() - start, CpuSeconds() - cpu,
          static_cast<double>(scans * shape_.rows));
  }
  void Update(Client* client, Random* random, int64_t updates) {
    client->Begin();
    for (int64_t i = 0; i < updates; ++i) client->AddToQty(random->Below(shape_.rows));
    client->Commit();
  }
  // With 2 % of the rows changed since the store was at its tidiest.
  void ScanChanged(Store* store) {
    const std::unique_ptr<Client> client = store->Connect();
    client->KeepChangesApart();
    client->SetDurable(false);
    Random random(11);
    for (int64_t left = shape_.rows / 50; left > 0; left -= kUpdatesEach)
      Update(client.get(), &random, std::min<int64_t>(left, kUpdatesEach));
    Scan(store, "dirty-sum", [&] { return client->SumQty(); });
    Scan(store, "dirty-scan", [&] { return client->ScanAll(); });
  }
  // Per row, many in a transaction.
  void Batches(Store* store, std::string_view workload, Client* client) {
    if (!Wanted(workload)) return;
    Random random(13);
    Update(client, &random, kUpdatesEach);
    const double cpu = CpuSeconds(), start = Now();
    int64_t commits = 0;
    while (commits == 0 || Now() - start < options_.seconds) {
      Update(client, &random, kUpdatesEach);
      ++commits;
    }
    Print(store, workload, Now() - start, CpuSeconds() - cpu,
          static_cast<double>(commits * kUpdatesEach));
  }
  // Per call, after a fifth of the time to warm up.
  template <typename Work>
  void Repeat(Store* store, std::string_view workload, int64_t rows_each, Work work) {
    if (!Wanted(workload)) return;
    constexpr int kCallsPerLook = 16;
    const auto run = [&](double seconds) {
      int64_t calls = 0, rows = 0;
      const double start = Now();
      do {
        for (int i = 0; i < kCallsPerLook; ++i) rows += work();
        calls += kCallsPerLook;
      } while (Now() - start < seconds);
      if (rows != calls * rows_each)
        Die(fmt::format("{}: {}: wrong rows", store->name(), workload));
      return calls;
    };
    run(options_.seconds / 5);
    const double cpu = CpuSeconds(), start = Now();
    const int64_t calls = run(options_.seconds);
    Print(store, workload, Now() - start, CpuSeconds() - cpu, static_cast<double>(calls));
  }
  // Time of the clock between commits, whoever made them.
  void Durable(Store* store, const std::string& workload, int writers,
               const std::function<void(Client*, Random*)>& work) {
    if (!Wanted(workload)) return;
    std::atomic<int64_t> commits = 0;
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < writers; ++i) clients.push_back(store->Connect());
    const double cpu = CpuSeconds(), start = Now(), end = start + options_.seconds;
    std::vector<std::thread> threads;
    for (int i = 0; i < writers; ++i) {
      threads.emplace_back([&, i] {
        Random random(static_cast<uint64_t>(i) + 100);
        int64_t done = 0;
        while (Now() < end) {
          work(clients[static_cast<size_t>(i)].get(), &random);
          ++done;
        }
        commits += done;
      });
    }
    for (std::thread& thread : threads) thread.join();
    Print(store, workload, Now() - start, CpuSeconds() - cpu, static_cast<double>(commits));
  }

  const Options& options_;
  Shape shape_;
  std::string_view prefix_;
};

Options ReadOptions(int argc, char** argv) {
  Options options;
  if (argc < 2) Die("usage: compare STORE --dir DIR --csv DIR [--rows N] [--seconds S]");
  options.store = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--dir")
      options.directory = argv[i + 1];
    else if (name == "--csv")
      options.csv = argv[i + 1];
    else if (name == "--url")
      options.url = argv[i + 1];
    else if (name == "--only")
      options.only = argv[i + 1];
    else if (name == "--rows")
      options.rows = std::atoll(argv[i + 1]);
    else if (name == "--seconds")
      options.seconds = std::atof(argv[i + 1]);
    else
      Die(fmt::format("compare: unknown option {}", name));
  }
  if (options.rows < 50 * kRangeRows) Die("compare: at least 5000 rows");
  return options;
}

std::unique_ptr<Store> Open(const Options& options, const Shape& shape, const char* name) {
  const std::string directory = options.directory + "/" + name;
  if (options.store == "cellar-row") return OpenCellar(directory, shape, "row");
  if (options.store == "cellar-pages") return OpenCellar(directory, shape, "pages");
  if (options.store == "rocksdb") return OpenRocks(directory, shape);
  if (options.store == "sqlite") return OpenSqlite(directory, shape);
  if (options.store == "duckdb") return OpenDuckDb(directory, shape, options.url);
  return OpenServer(options.store, options.url, shape);
}

int Run(const Options& options) {
  const Shape narrow{"rows", options.rows, 1};
  const Shape wide{"wide", options.rows / kWideShare, kWideCopies};
  if (options.store == "files") {
    for (const Shape& shape : {narrow, wide})
      WriteCsv(shape, options.csv + "/" + shape.table + ".csv");
    return 0;
  }
  std::filesystem::create_directories(options.directory);
  Comparison comparison(options, narrow);
  std::unique_ptr<Store> store = Open(options, narrow, "import");
  const Abilities abilities = store->abilities();
  if (abilities.import) comparison.Import(store.get());
  store.reset();
  std::filesystem::remove_all(options.directory + "/import");
  store = Open(options, narrow, "rows");
  comparison.Load(store.get());
  comparison.Read(store.get());
  if (options.store.starts_with("cellar-") && options.url.empty())
    comparison.Read(OpenCellarTables(store.get()).get());
  comparison.Size(store.get());
  if (abilities.writes) comparison.Write(store.get());
  store.reset();
  if (!abilities.wide) return 0;
  Comparison wide_comparison(options, wide);
  store = Open(options, wide, "wide");
  wide_comparison.Load(store.get());
  wide_comparison.Read(store.get());
  wide_comparison.Size(store.get());
  if (abilities.writes) wide_comparison.Write(store.get());
  return 0;
}

}  // namespace
}  // namespace cellar::bench

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "rocksdb-build") {
    fmt::print("{}\n", cellar::engines::RocksBuild());
    return 0;
  }
  return cellar::bench::Run(cellar::bench::ReadOptions(argc, argv));
}
