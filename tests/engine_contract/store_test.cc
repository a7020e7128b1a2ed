// Stores on disk: what survives, what is refused, and what happens when the disk fails.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "cellar/kv/store_header.h"
#include "engines.h"

namespace cellar::kv {
namespace {

namespace fs = std::filesystem;
using engines::FileCall;
using engines::OpenRocksEngine;
using engines::RocksOptions;
using testing::HasSubstr;

Status PutOne(Engine* engine, std::string_view key, std::string_view value, bool durable = true) {
  auto transaction = engine->Begin();
  CELLAR_TRY(transaction->Put(key, value));
  return transaction->Commit(CommitOptions{durable}).status();
}

class Store : public testing::Test {
 protected:
  std::unique_ptr<Engine> Open() { return Open(TestOptions(directory_.store())); }
  static std::unique_ptr<Engine> Open(const RocksOptions& options) {
    Result<std::unique_ptr<Engine>> engine = OpenRocksEngine(options);
    if (!engine.ok()) {
      ADD_FAILURE() << ToText(engine);
      return nullptr;
    }
    return std::move(engine).value();
  }
  Status OpenError(const RocksOptions& options) { return OpenRocksEngine(options).status(); }
  Status OpenError() { return OpenError(TestOptions(directory_.store())); }
  void WriteFile(const std::string& name, std::string_view text) {
    fs::create_directories(directory_.store());
    std::ofstream(directory_.store() + "/" + name) << text;
  }
  std::vector<fs::path> Logs() const {
    std::vector<fs::path> logs;
    for (const auto& entry : fs::directory_iterator(directory_.store())) {
      if (entry.path().extension() == ".log") logs.push_back(entry.path());
    }
    return logs;
  }

  TempDirectory directory_;
};

TEST_F(Store, ReopeningFindsEverything) {
  uint64_t version = 0;
  for (int round = 0; round < 3; ++round) {
    auto engine = Open();
    ASSERT_NE(engine, nullptr);
    EXPECT_GE(engine->latest_version(), version);
    for (int i = 0; i < round; ++i) EXPECT_EQ(Get(engine->Begin().get(), Key(i)), "v");
    ASSERT_OK(PutOne(engine.get(), Key(round), "v"));
    version = engine->latest_version();
    ASSERT_OK(engine->Close());
  }
}

TEST_F(Store, IsPrivate) {
  auto engine = Open();
  ASSERT_OK(PutOne(engine.get(), "a", "1"));
  auto large = engine->Begin();
  for (int i = 0; i < 1000; ++i) ASSERT_OK(large->Put(Key(i), std::string(1000, 'v')));
  ASSERT_OK(large->Commit());
  ASSERT_OK(engine->Compact("", ""));
  const auto others = fs::perms::group_all | fs::perms::others_all;
  EXPECT_EQ(fs::status(directory_.store()).permissions() & others, fs::perms::none);
  for (const auto& entry : fs::recursive_directory_iterator(directory_.store())) {
    EXPECT_EQ(entry.status().permissions() & others, fs::perms::none) << entry.path();
  }
}

TEST_F(Store, IsRefusedToASecondOpener) {
  auto engine = Open();
  const Status status = OpenError();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is in use by another process"));
  EXPECT_THAT(std::string(status.detail()), HasSubstr(std::to_string(::getpid())));
  engine = nullptr;
  EXPECT_NE(Open(), nullptr);
}

TEST_F(Store, MayBeReadByTools) {
  RocksOptions options = TestOptions(directory_.store());
  options.read_only = true;
  EXPECT_EQ(OpenError(options).code(), Code::kNotFound);
  { ASSERT_OK(PutOne(Open().get(), "a", "1")); }
  auto reader = Open(options);
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(Get(reader->Begin().get(), "a"), "1");
  EXPECT_EQ(CodeOf(PutOne(reader.get(), "a", "2")), Code::kInvalid);
}

TEST_F(Store, IsNotMadeUnlessAsked) {
  RocksOptions options = TestOptions(directory_.store());
  options.create_if_missing = false;
  EXPECT_EQ(OpenError(options).code(), Code::kNotFound);
  EXPECT_FALSE(fs::exists(directory_.store()));
}

TEST_F(Store, ForeignDirectoriesAreLeftAlone) {
  WriteFile("letter.txt", "dear");
  EXPECT_EQ(OpenError().code(), Code::kInvalid);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.store()), {}), 1);
  RocksOptions file = TestOptions(directory_.store() + "/letter.txt");
  EXPECT_EQ(OpenError(file).code(), Code::kInvalid);
}

TEST_F(Store, SomebodyElsesRocksDbIsRefused) {
  {
    // A store without marker and header is a plain RocksDB database.
    auto engine = Open();
    auto transaction = engine->Begin();
    ASSERT_OK(transaction->Delete(kStoreHeaderKey));
    ASSERT_OK(transaction->Put("theirs", "v"));
    ASSERT_OK(transaction->Commit());
  }
  EXPECT_EQ(OpenError().code(), Code::kCorruption);
  fs::remove(directory_.store() + "/CELLAR");
  EXPECT_EQ(OpenError().code(), Code::kInvalid);
  EXPECT_FALSE(fs::exists(directory_.store() + "/CELLAR"));
}

TEST_F(Store, ALostMarkerIsMadeAgain) {
  { ASSERT_OK(PutOne(Open().get(), "a", "1")); }
  fs::remove(directory_.store() + "/CELLAR");
  EXPECT_EQ(Get(Open()->Begin().get(), "a"), "1");
  EXPECT_TRUE(fs::exists(directory_.store() + "/CELLAR"));
}

TEST_F(Store, AnInterruptedMakingIsFinished) {
  WriteFile("CELLAR", "Cellar store, format 1\n");
  EXPECT_OK(PutOne(Open().get(), "a", "1"));
}

TEST_F(Store, ANewerFormatIsRefusedWithAdvice) {
  { ASSERT_OK(PutOne(Open().get(), "a", "1")); }
  WriteFile("CELLAR", "Cellar store, format 2\n");
  EXPECT_EQ(OpenError().code(), Code::kUnsupported);
  EXPECT_NE(OpenError().hint(), "");
  WriteFile("CELLAR", "Cellar store, format 1\n");
  StoreHeader header;
  header.format_version = 7;
  { ASSERT_OK(PutOne(Open().get(), kStoreHeaderKey, EncodeStoreHeader(header) + "more")); }
  EXPECT_EQ(OpenError().code(), Code::kUnsupported);
}

TEST_F(Store, LeftoversOfSpillingGoAtOpen) {
  { ASSERT_OK(PutOne(Open().get(), "a", "1")); }
  fs::create_directory(directory_.store() + "/spill");
  WriteFile("spill/000001.sst", "torn");
  EXPECT_NE(Open(), nullptr);
  EXPECT_FALSE(fs::exists(directory_.store() + "/spill/000001.sst"));
}

TEST_F(Store, AFlippedBitInTheLogIsNoSilentLoss) {
  {
    auto engine = Open();
    for (int i = 0; i < 200; ++i) ASSERT_OK(PutOne(engine.get(), Key(i), std::string(100, 'v')));
  }
  ASSERT_EQ(Logs().size(), 1u);
  const fs::path log = Logs()[0];
  const fs::path backup = directory_.path() + "/backup";
  fs::copy(directory_.store(), backup, fs::copy_options::recursive);
  std::mt19937 random(7);
  const auto size = static_cast<int>(fs::file_size(log));
  ASSERT_GT(size, 20000);
  for (int trial = 0; trial < 8; ++trial) {
    fs::remove_all(directory_.store());
    fs::copy(backup, directory_.store(), fs::copy_options::recursive);
    std::fstream file(log, std::ios::in | std::ios::out | std::ios::binary);
    // Not in the last record: damage there cannot be told from a torn tail.
    const int at = std::uniform_int_distribution<int>(0, size - 300)(random);
    file.seekg(at);
    const char byte = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1 << trial % 8));
    file.close();
    const Status status = OpenError();
    ASSERT_EQ(status.code(), Code::kCorruption) << "byte " << at;
    EXPECT_EQ(status.sqlstate(), "XX001");
  }
  RocksOptions accept = TestOptions(directory_.store());
  accept.accept_log_damage = true;
  EXPECT_NE(Open(accept), nullptr);
}

TEST_F(Store, ATornTailIsRecovered) {
  {
    auto engine = Open();
    for (int i = 0; i < 50; ++i) ASSERT_OK(PutOne(engine.get(), Key(i), std::string(100, 'v')));
  }
  const fs::path log = Logs()[0];
  fs::resize_file(log, fs::file_size(log) - 5);
  auto engine = Open();
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(ScanAll(engine->Begin().get(), "k", "l").size(), 49u);
}

TEST_F(Store, AFailedSyncStopsAcknowledging) {
  std::atomic<bool> fail{false};
  RocksOptions options = TestOptions(directory_.store());
  options.fault = [&](FileCall call, std::string_view path) -> Status {
    if (fail && call == FileCall::kSync && path.ends_with(".log")) {
      fail = false;
      return MakeError(Code::kUnavailable, "injected");
    }
    return {};
  };
  {
    auto engine = Open(options);
    ASSERT_OK(PutOne(engine.get(), "a", "1"));
    fail = true;
    const Status unknown = PutOne(engine.get(), "b", "2");
    EXPECT_EQ(unknown.code(), Code::kCommitUnknown);
    EXPECT_EQ(unknown.sqlstate(), "40003");
    for (int i = 0; i < 3; ++i) {
      const Status refused = PutOne(engine.get(), "c", "3");
      EXPECT_EQ(refused.code(), Code::kUnavailable);
      EXPECT_EQ(refused.sqlstate(), "58030");
    }
    EXPECT_EQ(Get(engine->Begin().get(), "a"), "1");
  }
  auto engine = Open();
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(Get(engine->Begin().get(), "a"), "1");
  EXPECT_EQ(Get(engine->Begin().get(), "c"), std::nullopt);
}

TEST_F(Store, AFullDiskRefusesWritesUntilThereIsRoom) {
  std::atomic<bool> full{false};
  RocksOptions options = TestOptions(directory_.store());
  options.fault = [&](FileCall call, std::string_view path) -> Status {
    if (full && call == FileCall::kAppend) {
      return SqlError(Code::kUnavailable, "53100", "injected");
    }
    return {};
  };
  {
    auto engine = Open(options);
    for (int i = 0; i < 100; ++i) ASSERT_OK(PutOne(engine.get(), Key(i), "v"));
    full = true;
    for (int i = 100; i < 110; ++i) {
      const Status refused = PutOne(engine.get(), Key(i), "v");
      EXPECT_EQ(refused.code(), Code::kUnavailable);
      EXPECT_EQ(refused.sqlstate(), "53100");
    }
    EXPECT_EQ(ScanAll(engine->Begin().get(), "k", "l").size(), 100u);
    full = false;
    // RocksDB looks every few seconds whether there is room again.
    Status status;
    for (int i = 0; i < 100; ++i) {
      status = PutOne(engine.get(), Key(200), "v");
      if (status.ok()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    ASSERT_OK(status);
  }
  EXPECT_EQ(ScanAll(Open()->Begin().get(), "k", "l").size(), 101u);
}

// The child commits pairs of keys from several threads and tells of each commit once it is
// acknowledged; the parent kills it and looks: all that was told is there, nothing by halves.
TEST_F(Store, AcknowledgedCommitsSurviveKill) {
  constexpr int kThreads = 3;
  int survivors = 0;
  for (int round = 0; round < 4; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(pipe[0]);
      Result<std::unique_ptr<Engine>> engine = OpenRocksEngine(TestOptions(directory_.store()));
      if (!engine.ok()) ::_exit(1);
      std::vector<std::thread> threads;
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          for (int i = 0;; ++i) {
            const int id = (round * kThreads + t) * 1000000 + i;
            auto transaction = (*engine)->Begin();
            bool ok = transaction->Put("a" + std::to_string(id), std::string(50, 'v')).ok() &&
                      transaction->Put("b" + std::to_string(id), "v").ok();
            ok = ok && transaction->Commit().ok();
            if (!ok || ::write(pipe[1], &id, sizeof(id)) != sizeof(id)) ::_exit(1);
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
    ::close(pipe[1]);
    std::vector<int> told;
    int id;
    const size_t wanted = 50 + static_cast<size_t>(round) * 100;
    while (::read(pipe[0], &id, sizeof(id)) == sizeof(id)) {
      told.push_back(id);
      if (told.size() == wanted) ::kill(child, SIGKILL);
    }
    ::close(pipe[0]);
    int exit_status;
    ASSERT_EQ(::waitpid(child, &exit_status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(exit_status));
    ASSERT_GE(told.size(), wanted);
    auto engine = Open();
    ASSERT_NE(engine, nullptr);
    auto reader = engine->Begin({.read_only = true});
    for (const int one : told) {
      ASSERT_TRUE(Get(reader.get(), "a" + std::to_string(one)).has_value()) << one;
    }
    const Pairs a = ScanAll(reader.get(), "a", "b"), b = ScanAll(reader.get(), "b", "c");
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i].first.substr(1), b[i].first.substr(1));
    survivors += static_cast<int>(told.size());
  }
  EXPECT_GT(survivors, 500);
}

// Large transactions commit by files: a kill leaves each of them whole or absent.
TEST_F(Store, SpilledTransactionsAreAllOrNothingUnderKill) {
  RocksOptions options = TestOptions(directory_.store());
  options.spill_bytes = 64 << 10;
  constexpr int kRows = 3000;
  int last_told = -1;
  for (int round = 0; round < 3; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Result<std::unique_ptr<Engine>> engine = OpenRocksEngine(options);
      if (!engine.ok()) ::_exit(1);
      for (int load = round * 100;; ++load) {
        auto transaction = (*engine)->Begin({.bulk = true});
        for (int i = 0; i < kRows; ++i) {
          const int key = (i * 7919) % kRows;
          if (!transaction->PutIfAbsent(Key(load * 10000 + key), std::string(60, 'v')).ok()) {
            ::_exit(1);
          }
        }
        if (!transaction->Commit().ok()) ::_exit(1);
        if (::write(pipe[1], &load, sizeof(load)) != sizeof(load)) ::_exit(1);
      }
    }
    ::close(pipe[1]);
    std::vector<int> told;
    int load;
    while (::read(pipe[0], &load, sizeof(load)) == sizeof(load)) {
      told.push_back(load);
      if (told.size() == 3) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5 + round * 7));
        ::kill(child, SIGKILL);
      }
    }
    ::close(pipe[0]);
    int exit_status;
    ASSERT_EQ(::waitpid(child, &exit_status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(exit_status));
    auto engine = Open(options);
    ASSERT_NE(engine, nullptr);
    for (int i = round * 100; i < round * 100 + 10; ++i) {
      const size_t rows =
          ScanAll(engine->Begin().get(), Key(i * 10000), Key((i + 1) * 10000)).size();
      EXPECT_THAT(rows, testing::AnyOf(0u, static_cast<size_t>(kRows))) << i;
      if (std::count(told.begin(), told.end(), i) != 0) {
        EXPECT_EQ(rows, static_cast<size_t>(kRows)) << i;
      }
    }
    last_told = told.empty() ? last_told : told.back();
  }
  EXPECT_GT(last_told, 0);
}

}  // namespace
}  // namespace cellar::kv
