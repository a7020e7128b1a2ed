// A process for tests to kill: job_worker DIRECTORY STATEMENT STEP N MICROS
//
// Runs the statement beside a writer, and kills itself after the N-th commit of its job that is
// such a step (JobStepPassed), or so many microseconds later. Ends with 0 when the statement
// succeeds first, 3 when it fails.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "cellar/engines/rocksdb/rocks_engine.h"
#include "cellar/session/discarding_sink.h"
#include "cellar/session/jobs.h"
#include "cellar/session/session.h"
#include "cellar/table/backfill.h"

namespace cellar::session {
namespace {

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    fmt::print(stderr, "{}\n", result.status().ToString());
    ::_exit(1);
  }
  return std::move(result).value();
}

int Run(const std::string& directory, const std::string& statement, const std::string& step,
        int count, int micros) {
  engines::RocksOptions options;
  options.directory = directory;
  options.cache_bytes = 8 << 20;
  std::atomic<int> passed = 0;
  std::thread killer;  // in the midst of what follows the commit
  JobService::SetHook([&](std::string_view name) {
    if (name != step || ++passed != count) return;
    if (micros == 0) ::kill(::getpid(), SIGKILL);
    killer = std::thread([micros] {
      std::this_thread::sleep_for(std::chrono::microseconds(micros));
      ::kill(::getpid(), SIGKILL);
    });
  });
  // Behind the hook: jobs that are left go on at once.
  const auto database = Must(Database::Open(Must(engines::OpenRocksEngine(options)), {}));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    const auto session = Must(Session::Open(database.get(), {}));
    DiscardingSink sink;
    for (int i = 0; !stop.load(); ++i) {
      // Conflicts and refusals are part of it.
      const std::string text = fmt::format(
          "UPDATE t SET b = b + 1 WHERE id = {}; INSERT INTO t VALUES ({}, {}, 1);"
          "DELETE FROM t WHERE id = {}",
          i % 100, -1 - i % 50, -1 - i, -1 - (i + 25) % 50);
      (void)session->ExecuteSimple(text, &sink);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const auto session = Must(Session::Open(database.get(), {}));
  DiscardingSink sink;
  const Status status = session->ExecuteSimple(statement, &sink);
  if (killer.joinable()) killer.join();
  stop = true;
  writer.join();
  return status.ok() ? 0 : 3;
}

}  // namespace
}  // namespace cellar::session

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  cellar::table::SetRowsForTwoThreads(1000);
  return cellar::session::Run(argv[1], argv[2], argv[3], std::atoi(argv[4]), std::atoi(argv[5]));
}
