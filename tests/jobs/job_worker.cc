// A process for tests to kill: job_worker DIRECTORY STATEMENT N
//
// Runs the statement beside a writer, and kills itself after the N-th commit of its job. Ends with
// 0 when the statement succeeds, 3 when it fails.
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

int Run(const std::string& directory, const std::string& statement, int kill_after) {
  engines::RocksOptions options;
  options.directory = directory;
  options.cache_bytes = 8 << 20;
  const auto database = Must(Database::Open(Must(engines::OpenRocksEngine(options)), {}));
  std::atomic<int> commits = 0;
  JobService::SetHook([&commits, kill_after](std::string_view) {
    if (++commits == kill_after) ::kill(::getpid(), SIGKILL);
  });
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
  stop = true;
  writer.join();
  return status.ok() ? 0 : 3;
}

}  // namespace
}  // namespace cellar::session

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return cellar::session::Run(argv[1], argv[2], std::atoi(argv[3]));
}
