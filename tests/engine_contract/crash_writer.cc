// A process for tests to kill: crash_writer pairs|loads DIRECTORY FIRST
//
// pairs: threads commit two keys at a time, durably. loads: transactions that spill commit one
// after the other. Each commit's number goes to standard output, as an int, once it is
// acknowledged.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cellar/engines/rocksdb/rocks_engine.h"

namespace cellar::kv {
namespace {

constexpr int kThreads = 3;
constexpr int kRowsOfALoad = 3000;

void Require(bool ok) {
  if (!ok) ::_exit(1);
}

void Tell(int number) {
  Require(::write(STDOUT_FILENO, &number, sizeof(number)) == sizeof(number));
}

void CommitPairs(Engine* engine, int first) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([=] {
      for (int i = 0;; ++i) {
        const int id = (first * kThreads + t) * 1000000 + i;
        auto transaction = engine->Begin();
        Require(transaction->Put(fmt::format("a{}", id), std::string(50, 'v')).ok());
        Require(transaction->Put(fmt::format("b{}", id), "v").ok());
        Require(transaction->Commit().ok());
        Tell(id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void CommitLoads(Engine* engine, int first) {
  for (int load = first;; ++load) {
    auto transaction = engine->Begin({.bulk = true});
    for (int i = 0; i < kRowsOfALoad; ++i) {
      const int row = load * 10000 + (i * 7919) % kRowsOfALoad;
      Require(transaction->PutIfAbsent(fmt::format("k{:08}", row), std::string(60, 'v')).ok());
    }
    Require(transaction->Commit().ok());
    Tell(load);
  }
}

}  // namespace
}  // namespace cellar::kv

int main(int argc, char** argv) {
  using namespace cellar;
  if (argc != 4) return 2;
  engines::RocksOptions options;
  options.directory = argv[2];
  options.cache_bytes = 8 << 20;
  options.write_buffer_bytes = 1 << 20;
  options.spill_bytes = 64 << 10;
  Result<std::unique_ptr<kv::Engine>> engine = engines::OpenRocksEngine(options);
  kv::Require(engine.ok());
  if (std::string_view(argv[1]) == "pairs") {
    kv::CommitPairs(engine->get(), std::atoi(argv[3]));
  } else {
    kv::CommitLoads(engine->get(), std::atoi(argv[3]));
  }
  return 1;
}
