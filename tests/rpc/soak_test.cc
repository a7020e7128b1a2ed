// Many callers of the gRPC door while its server is killed and started again: nothing that was
// answered is lost, nothing is done twice.
//
// CELLAR_SOAK_SECONDS (4) and CELLAR_SOAK_CALLERS (20) set how long and how many.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "cellar/client.h"

namespace cellar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int FromEnvironment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

// `cellar serve` as a process of its own.
class ServerProcess {
 public:
  explicit ServerProcess(std::string store) : store_(std::move(store)) {}
  ~ServerProcess() { Kill(); }

  // The port of the gRPC door; 0: it did not start.
  int Start(int port) {
    int pipe_ends[2];
    if (::pipe(pipe_ends) != 0) return 0;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(pipe_ends[1], STDOUT_FILENO);
      ::close(pipe_ends[0]);
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, STDERR_FILENO);
      const std::string grpc = fmt::format("127.0.0.1:{}", port);
      ::execl(CELLAR_PROGRAM, "cellar", "serve", "--store", store_.c_str(), "--listen",
              "127.0.0.1:0", "--trust-local", "--grpc", grpc.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(pipe_ends[1]);
    std::string output;
    char chunk[256];
    int found = 0;
    while (found == 0) {
      const ssize_t got = ::read(pipe_ends[0], chunk, sizeof(chunk));
      if (got <= 0) break;
      output.append(chunk, static_cast<size_t>(got));
      const size_t at = output.find("ready grpc://127.0.0.1:");
      if (at != std::string::npos && output.find('\n', at) != std::string::npos) {
        found = std::atoi(output.c_str() + at + 23);
      }
    }
    ::close(pipe_ends[0]);
    return found;
  }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  std::string store_;
  pid_t pid_ = 0;
};

TEST(Soak, NothingIsLostAndNothingHappensTwice) {
  const int callers = FromEnvironment("CELLAR_SOAK_CALLERS", 20);
  const auto duration = seconds(FromEnvironment("CELLAR_SOAK_SECONDS", 4));
  char folder[] = "/tmp/cellar_soak_XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  ServerProcess server(std::string(folder) + "/store");
  const int port = server.Start(0);
  ASSERT_NE(port, 0);
  const std::string target = fmt::format("127.0.0.1:{}", port);
  ClientOptions patient;
  patient.retry_for = seconds(60);
  patient.channels = 4;
  {
    // The catalog's own door is SQL: the table is made by a child that is done before the server
    // opens the store again.
    server.Kill();
    const std::string sql = fmt::format(
        "{} sql --store {}/store -q -c \"CREATE TABLE tally (caller int PRIMARY KEY, "
        "own bigint DEFAULT 0, shared bigint DEFAULT 0)\"",
        CELLAR_PROGRAM, folder);
    ASSERT_EQ(std::system(sql.c_str()), 0);
    ASSERT_EQ(server.Start(port), port);
  }
  std::unique_ptr<TableStore> store = std::move(*Connect(target, patient));
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> shared{0}, retried{0};
  std::vector<uint64_t> acknowledged(static_cast<size_t>(callers));
  std::vector<std::string> failures(static_cast<size_t>(callers));
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; ++caller) {
    threads.emplace_back([&, caller] {
      const auto self = static_cast<size_t>(caller);
      const auto table = store->OpenTable("/cellar/tally");
      if (!table.ok()) {
        failures[self] = table.status().ToString();
        return;
      }
      for (uint64_t n = 0; !stop.load(); ++n) {
        // Row -1 is everybody's: its conflicts are the server's to run again.
        const bool own = n % 4 != 0;
        const Table::RowChange change{{own ? caller : -1}, {{own ? "own" : "shared", 1}}};
        IncrementOptions options;
        options.call.idempotency_id = fmt::format("{}.{}", caller, n);
        while (true) {
          const auto result = (*table)->Increment(std::span(&change, 1), options);
          if (result.ok()) {
            if (result->write.repeated) ++retried;
            break;
          }
          // Conflicts of too many, and a server that is going down: the same call again.
          if (result.status().code() != Code::kConflict &&
              result.status().code() != Code::kUnavailable &&
              result.status().code() != Code::kCommitUnknown) {
            failures[self] = result.status().ToString();
            return;
          }
        }
        if (own) {
          ++acknowledged[self];
        } else {
          ++shared;
        }
      }
    });
  }
  const auto end = std::chrono::steady_clock::now() + duration;
  int kills = 0;
  while (std::chrono::steady_clock::now() < end) {
    // tidy: allow(sleep) the kill is to fall anywhere
    std::this_thread::sleep_for(milliseconds(700));
    server.Kill();
    ++kills;
    ASSERT_EQ(server.Start(port), port);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  auto table = *store->OpenTable("/cellar/tally");
  uint64_t sum = 0;
  for (int caller = 0; caller < callers; ++caller) {
    const uint64_t expected = acknowledged[static_cast<size_t>(caller)];
    const auto rows = table->Get({caller}, {"own"});
    ASSERT_TRUE(rows.ok()) << rows.status().ToString();
    const int64_t counted = rows->empty() ? 0 : (*rows)[0].GetInt(0);
    EXPECT_EQ(static_cast<uint64_t>(counted), expected) << "caller " << caller;
    sum += expected;
  }
  const auto rows = table->Get({-1}, {"shared"});
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->empty() ? 0u : static_cast<uint64_t>((*rows)[0].GetInt(0)), shared.load());
  RecordProperty("calls", static_cast<int>(sum + shared));
  fmt::print("{} callers, {} kills: {} calls, {} of them answered after a retry\n", callers, kills,
             sum + shared, retried.load());
  EXPECT_GT(sum, 0u);
  store.reset();
  server.Kill();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cellar
