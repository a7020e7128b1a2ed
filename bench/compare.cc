// Measures one store: loads it, reads it, writes to it, and prints a line for each workload:
// store, workload, microseconds per operation (or row), CPU microseconds of this process.
//
//   compare STORE --dir DIR [--rows N] [--seconds S] [--only WORKLOAD] [--url URL]
//   compare rocksdb-build
//
// STORE is cellar (with the tables below its SQL), rocksdb, sqlite, or a name for the server at
// URL. tools/bench runs it for every store in turn and makes the table. The second form names the
// RocksDB that this program is linked with.
#include <fmt/format.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <thread>

#include "bench/store.h"
#include "cellar/engines/rocksdb/rocks_engine.h"

namespace cellar::bench {

void Die(const std::string& what) {
  fmt::print(stderr, "{}\n", what);
  std::exit(1);
}

namespace {

constexpr int kRangeRows = 100;
constexpr int kWriters = 16;

struct Options {
  std::string store, directory, url, only;
  int64_t rows = 1000000;
  double seconds = 1;
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Comparison {
 public:
  explicit Comparison(Options options) : options_(std::move(options)) {}

  void Load(Store* store) {
    const std::vector<Row> rows = MakeRows(options_.rows);
    store->Prepare(rows);
    Once(store, "load", [&] { store->Load(rows); });
    Once(store, "create-index", [&] { store->CreateIndex(); });
    store->Settle();
  }

  void Read(Store* store) {
    const std::unique_ptr<Client> client = store->Connect();
    Random random(7);
    const int64_t n = options_.rows;
    const auto by_id = [&] { return client->PointById(random.Below(n)); };
    const auto by_k = [&] { return client->PointByK(KOf(random.Below(n), n)); };
    // Both of the caches that a running store would have: the first pass is not measured.
    if (client->Count() < n) Die(store->name() + ": rows are missing");
    Repeat(store, "point-pk", 1, by_id);
    Repeat(store, "point-index", 1, by_k);
    Repeat(store, "range-100", kRangeRows, [&] {
      const int64_t start = random.Below(n - kRangeRows);
      return client->Range(start, start + kRangeRows);
    });
    client->Begin();
    Repeat(store, "point-pk-transaction", 1, by_id);
    Repeat(store, "point-index-transaction", 1, by_k);
    client->Commit();
    Scan(store, "sum", [&] { client->SumQty(); });
    Scan(store, "count", [&] { client->Count(); });
  }

  void Write(Store* store) {
    std::atomic<int64_t> next_id = options_.rows;
    for (int writers : {1, kWriters}) {
      Durable(store, fmt::format("insert-{}", writers), writers, [&](Client* client, Random*) {
        const int64_t id = next_id.fetch_add(1, std::memory_order_relaxed);
        client->Insert(MakeRow(id, options_.rows));
      });
      Durable(
          store, fmt::format("update-{}", writers), writers,
          [&](Client* client, Random* random) { client->AddToQty(random->Below(options_.rows)); });
    }
  }

 private:
  bool Wanted(std::string_view workload) const {
    return options_.only.empty() || workload.find(options_.only) != std::string_view::npos;
  }
  void Print(Store* store, std::string_view workload, double seconds, double cpu, double count) {
    fmt::print("{}\t{}\t{:.5f}\t{:.5f}\n", store->name(), workload, seconds * 1e6 / count,
               cpu * 1e6 / count);
    std::fflush(stdout);
  }
  // Per row.
  void Once(Store* store, std::string_view workload, const std::function<void()>& work) {
    const double cpu = CpuSeconds(), start = Now();
    work();
    Print(store, workload, Now() - start, CpuSeconds() - cpu, static_cast<double>(options_.rows));
  }
  void Scan(Store* store, std::string_view workload, const std::function<void()>& work) {
    if (!Wanted(workload)) return;
    const double cpu = CpuSeconds(), start = Now();
    int64_t scans = 0;
    while (scans == 0 || Now() - start < options_.seconds) {
      work();
      ++scans;
    }
    Print(store, workload, Now() - start, CpuSeconds() - cpu,
          static_cast<double>(scans * options_.rows));
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

  Options options_;
};

Options ReadOptions(int argc, char** argv) {
  Options options;
  if (argc < 2) Die("usage: compare STORE --dir DIR [--rows N] [--seconds S] [--only WORKLOAD]");
  options.store = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--dir")
      options.directory = argv[i + 1];
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
  if (options.rows < 10 * kRangeRows) Die("compare: at least 1000 rows");
  return options;
}

int Run(const Options& options) {
  std::unique_ptr<Store> store;
  if (options.store == "cellar")
    store = OpenCellar(options.directory);
  else if (options.store == "rocksdb")
    store = OpenRocks(options.directory, options.rows);
  else if (options.store == "sqlite")
    store = OpenSqlite(options.directory);
  else
    store = OpenServer(options.store, options.url);
  Comparison comparison(options);
  comparison.Load(store.get());
  comparison.Read(store.get());
  if (options.store == "cellar") comparison.Read(OpenCellarTables(store.get()).get());
  comparison.Write(store.get());
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
