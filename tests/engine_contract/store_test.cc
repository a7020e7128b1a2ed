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
#include <set>
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
  std::string ReadFile(const std::string& name) {
    std::ifstream file(directory_.store() + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // A store of so many rows that was stopped cleanly, and a copy of it to start from again.
  void MakeBackup(int rows) {
    {
      auto engine = Open();
      for (int i = 0; i < rows; ++i) {
        ASSERT_OK(PutOne(engine.get(), Key(i), std::string(100, 'v')));
      }
    }
    KeepBackup();
  }
  void KeepBackup() {
    fs::remove_all(directory_.path() + "/backup");
    fs::copy(directory_.store(), directory_.path() + "/backup", fs::copy_options::recursive);
  }
  void RestoreBackup() {
    fs::remove_all(directory_.store());
    fs::copy(directory_.path() + "/backup", directory_.store(), fs::copy_options::recursive);
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
  WriteFile("CELLAR", "Cellar store, format 2, being made\n");
  EXPECT_OK(PutOne(Open().get(), "a", "1"));
  // From then on nothing of it may be missing.
  EXPECT_EQ(ReadFile("CELLAR"), "Cellar store, format 2\n");
}

// Of each file that a store has: it is refused, or as it was, and never taken for a new one.
TEST_F(Store, AFileThatIsGoneIsNoSilentLoss) {
  constexpr size_t kRows = 60;
  MakeBackup(kRows / 2);
  {
    // Half of them in tables, half in the log.
    auto engine = Open();
    ASSERT_OK(engine->Compact("", ""));
    for (size_t i = kRows / 2; i < kRows; ++i) {
      ASSERT_OK(PutOne(engine.get(), Key(static_cast<int>(i)), "v"));
    }
  }
  KeepBackup();
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory_.store())) {
    if (entry.is_regular_file()) names.push_back(entry.path().filename());
  }
  std::vector<std::vector<std::string>> cases;
  for (const std::string& name : names) cases.push_back({name});
  std::vector<std::string> logs = {"log_end"};
  for (const fs::path& log : Logs()) logs.push_back(log.filename());
  cases.push_back(logs);
  logs.push_back("CELLAR");
  cases.push_back(logs);
  cases.push_back({"CELLAR", "CURRENT"});
  int refused = 0;
  for (const std::vector<std::string>& missing : cases) {
    RestoreBackup();
    for (const std::string& name : missing) fs::remove(directory_.store() + "/" + name);
    Result<std::unique_ptr<Engine>> opened = OpenRocksEngine(TestOptions(directory_.store()));
    if (!opened.ok()) {
      ++refused;
      EXPECT_NE(opened.status().message(), "") << missing.front();
      continue;
    }
    EXPECT_EQ(ScanAll((*opened)->Begin().get(), "k", "l").size(), kRows) << missing.front();
  }
  EXPECT_GE(refused, 6);
}

// Programs of before wrote neither log_end nor what format 2 has.
TEST_F(Store, AStoreOfFormatOneBecomesOneOfFormatTwo) {
  StoreHeader header;
  {
    auto engine = Open();
    ASSERT_OK(PutOne(engine.get(), "a", "1"));
    header = *ParseStoreHeader(*Get(engine->Begin().get(), kStoreHeaderKey));
    EXPECT_EQ(header.format_version, 2u);
    header.format_version = 1;
    ASSERT_OK(PutOne(engine.get(), kStoreHeaderKey, EncodeStoreHeader(header)));
  }
  fs::remove(directory_.store() + "/log_end");
  WriteFile("CELLAR", "Cellar store, format 1\n");
  {
    auto engine = Open();
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(Get(engine->Begin().get(), "a"), "1");
    const StoreHeader now = *ParseStoreHeader(*Get(engine->Begin().get(), kStoreHeaderKey));
    EXPECT_EQ(now.format_version, 2u);
    EXPECT_EQ(now.store_id, header.store_id);
  }
  EXPECT_EQ(ReadFile("CELLAR"), "Cellar store, format 2\n");
  fs::remove(directory_.store() + "/log_end");
  EXPECT_EQ(OpenError().code(), Code::kCorruption);
}

TEST_F(Store, ANewerFormatIsRefusedWithAdvice) {
  { ASSERT_OK(PutOne(Open().get(), "a", "1")); }
  WriteFile("CELLAR", "Cellar store, format 3\n");
  EXPECT_EQ(OpenError().code(), Code::kUnsupported);
  EXPECT_NE(OpenError().hint(), "");
  WriteFile("CELLAR", "Cellar store, format 2\n");
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
  MakeBackup(200);
  ASSERT_EQ(Logs().size(), 1u);
  const fs::path log = Logs()[0];
  std::mt19937 random(7);
  const auto size = static_cast<int>(fs::file_size(log));
  ASSERT_GT(size, 20000);
  for (int trial = 0; trial < 8; ++trial) {
    RestoreBackup();
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

// A process that was killed: its files as they were in the middle.
TEST_F(Store, ATornTailIsRecovered) {
  const fs::path killed = directory_.path() + "/killed";
  {
    auto engine = Open();
    const std::string end = ReadFile("log_end");
    for (int i = 0; i < 50; ++i) ASSERT_OK(PutOne(engine.get(), Key(i), std::string(100, 'v')));
    fs::copy(directory_.store(), killed, fs::copy_options::recursive);
    // Within a second of the commits the record of the log's end may not know of them yet.
    std::ofstream(killed / "log_end", std::ios::binary) << end;
  }
  fs::remove_all(directory_.store());
  fs::rename(killed, directory_.store());
  std::ifstream file(Logs()[0], std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  fs::resize_file(Logs()[0], content.find_last_not_of('\0') + 1 - 5);
  auto engine = Open();
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(ScanAll(engine->Begin().get(), "k", "l").size(), 49u);
}

// Whatever of the log is missing after a clean stop, however little: refused, and nothing changed.
TEST_F(Store, ALogThatWasCutOffOrDeletedIsNoSilentLoss) {
  MakeBackup(50);
  ASSERT_EQ(Logs().size(), 1u);
  const fs::path log = Logs()[0];
  const uint64_t size = fs::file_size(log);
  std::string lost;
  for (const uint64_t left :
       {size - 1, size - 5, size - 200, size / 2, uint64_t{1}, uint64_t{0}, UINT64_MAX}) {
    RestoreBackup();
    if (left == UINT64_MAX) {
      fs::remove(log);
    } else {
      fs::resize_file(log, left);
    }
    for (int again = 0; again < 2; ++again) {
      const Status status = OpenError();
      EXPECT_EQ(status.code(), Code::kCorruption) << left;
      EXPECT_EQ(status.sqlstate(), "XX001") << left;
      EXPECT_THAT(std::string(status.hint()), HasSubstr("--accept-log-damage"));
    }
    RocksOptions accept = TestOptions(directory_.store());
    accept.accept_log_damage = true;
    accept.lost = [&](std::string_view message) { lost = message; };
    {
      auto engine = Open(accept);
      ASSERT_NE(engine, nullptr) << left;
      EXPECT_LT(ScanAll(engine->Begin().get(), "k", "l").size(), 50u);
      EXPECT_THAT(lost, HasSubstr("change"));
    }
    // What was given up is not asked for again.
    EXPECT_NE(Open(), nullptr) << left;
  }
}

TEST_F(Store, ADamagedRecordOfTheLogsEndIsRefused) {
  { ASSERT_OK(PutOne(Open().get(), "a", "1")); }
  WriteFile("log_end", std::string(1024, 'x'));
  EXPECT_EQ(OpenError().code(), Code::kCorruption);
  RocksOptions accept = TestOptions(directory_.store());
  accept.accept_log_damage = true;
  { EXPECT_EQ(Get(Open(accept)->Begin().get(), "a"), "1"); }
  EXPECT_NE(Open(), nullptr);
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
    ASSERT_OK(PutOne(engine.get(), Key(200), "v"));
    // What was refused has left no mark: its keys are free.
    auto again = engine->Begin({.isolation = Isolation::kSnapshot});
    ASSERT_OK(again->PutIfAbsent(Key(100), "v"));
    ASSERT_OK(again->Commit());
    ASSERT_OK(engine->Begin()->Delete(Key(100)));
    auto gone = engine->Begin();
    ASSERT_OK(gone->Delete(Key(100)));
    ASSERT_OK(gone->Commit());
  }
  EXPECT_EQ(ScanAll(Open()->Begin().get(), "k", "l").size(), 101u);
}

// The disk is full, or fails, from one call on, whichever that is: of the log, a file, the
// manifest. Nothing ends, what was acknowledged is there, and after a full disk writes go on at
// once.
class FailingDisk : public Store {
 protected:
  // What is told of each key: acknowledged, unknown, or nothing when it was refused.
  struct Told {
    std::set<std::string> kept, unknown;
  };
  void Write(Engine* engine, int number, Told* told, std::string* state) {
    const std::string key = Key(number);
    const Status status =
        PutOne(engine, key, std::string(700 + number % 5 * 700, 'v'), number % 3 != 0);
    *state = status.ok() ? "" : std::string(status.sqlstate());
    // What did not ask to be durable may be lost when the disk fails.
    if (status.ok() && number % 3 != 0) told->kept.insert(key);
    if (status.ok() && number % 3 == 0) told->unknown.insert(key);
    if (status.code() == Code::kCommitUnknown) told->unknown.insert(key);
  }
  // The next number; *state stays empty if none is refused.
  int WriteUntilRefused(Engine* engine, Told* told, std::string* state) {
    int number = 0;
    for (; number < 300 && state->empty(); ++number) Write(engine, number, told, state);
    return number;
  }
  void ExpectTold(Engine* engine, const Told& told, int call) {
    std::set<std::string> found;
    for (const auto& [key, value] : ScanAll(engine->Begin().get(), "k", "l")) found.insert(key);
    for (const std::string& key : told.kept) EXPECT_TRUE(found.contains(key)) << call << key;
    for (const std::string& key : found) {
      EXPECT_TRUE(told.kept.contains(key) || told.unknown.contains(key)) << call << key;
    }
  }
  // Fails calls from this one on while `failing`.
  RocksOptions Options(std::string_view state, FileCall which, int call) {
    calls_ = 0;
    RocksOptions options = TestOptions(directory_.store());
    options.write_buffer_bytes = options.spill_bytes = 64 << 10;
    options.fault = [this, state, which, call](FileCall made, std::string_view) -> Status {
      if (!failing_ || made != which || ++calls_ < call) return {};
      return SqlError(Code::kUnavailable, state, "injected");
    };
    return options;
  }
  // A transaction that is large enough to come as files overwrites what is in memory.
  void ExpectFilesLieOverMemory(Engine* engine) {
    const auto name = [](int i) { return "m" + std::to_string(100 + i); };
    for (int i = 0; i < kOverwritten; ++i) EXPECT_OK(PutOne(engine, name(i), "old", false));
    auto large = engine->Begin();
    for (int i = 0; i < kOverwritten; ++i) EXPECT_OK(large->Put(name(i), "new"));
    for (int i = 0; i < 200; ++i) EXPECT_OK(large->Put("n" + std::to_string(i), Large()));
    EXPECT_OK(large->Commit());
    EXPECT_GT(engine->stats().spilled_runs, 0u);
    EXPECT_EQ(Overwritten(engine), std::set<std::string>{"new"});
  }
  static std::string Large() { return std::string(5000, 'x'); }
  static std::set<std::string> Overwritten(Engine* engine) {
    std::set<std::string> values;
    for (const auto& [key, value] : ScanAll(engine->Begin().get(), "m", "n")) values.insert(value);
    return values;
  }
  static constexpr int kOverwritten = 20;
  // CELLAR_DISK_STEPS: how closely the calls are tried; 1,000: each.
  static int Steps() {
    const char* steps = std::getenv("CELLAR_DISK_STEPS");
    return steps == nullptr ? 2 : std::max(1, std::atoi(steps));
  }
  void Fresh() { fs::remove_all(directory_.store()); }

  std::atomic<int> calls_{0};
  std::atomic<bool> failing_{true};
};

TEST_F(FailingDisk, FullFromAnyCallOn) {
  for (const FileCall which : {FileCall::kAppend, FileCall::kMake, FileCall::kSync}) {
    int met = 0;
    for (int call = 1; call < (which == FileCall::kMake ? 60 : 900); call += 1 + call / Steps()) {
      SCOPED_TRACE(testing::Message() << "call " << call << " of kind " << static_cast<int>(which));
      Fresh();
      Told told;
      std::string state;
      failing_ = true;
      Result<std::unique_ptr<Engine>> opened = OpenRocksEngine(Options("53100", which, call));
      if (!opened.ok()) {
        EXPECT_EQ(opened.status().sqlstate(), "53100");
        failing_ = false;
        EXPECT_NE(Open(), nullptr);
        continue;
      }
      Engine* engine = opened->get();
      int number = WriteUntilRefused(engine, &told, &state);
      if (!state.empty()) {
        ++met;
        EXPECT_TRUE(state == "53100" || state == "40003") << state;
        for (int again = 0; again < 3; ++again, ++number) {
          Write(engine, number, &told, &state);
          EXPECT_TRUE(state == "53100" || state == "40003") << state;
        }
        ExpectTold(engine, told, call);
      }
      failing_ = false;
      for (int again = 0; again < 30; ++again, ++number) {
        Write(engine, number, &told, &state);
        EXPECT_EQ(state, "");
      }
      ExpectTold(engine, told, call);
      ExpectFilesLieOverMemory(engine);
      EXPECT_OK(engine->Close());
      opened = MakeError(Code::kUnavailable, "closed");
      const std::unique_ptr<Engine> again = Open();
      ExpectTold(again.get(), told, call);
      EXPECT_EQ(Overwritten(again.get()), std::set<std::string>{"new"});
    }
    EXPECT_GE(met, 4);
  }
}

TEST_F(FailingDisk, BrokenFromAnyCallOn) {
  int met = 0;
  for (const FileCall which : {FileCall::kAppend, FileCall::kSync}) {
    for (int call = 1; call < 500; call += 1 + call / Steps()) {
      Fresh();
      Told told;
      std::string state;
      failing_ = true;
      Result<std::unique_ptr<Engine>> opened = OpenRocksEngine(Options("58030", which, call));
      if (!opened.ok()) {
        EXPECT_EQ(opened.status().sqlstate(), "58030") << call;
        failing_ = false;
        continue;
      }
      Engine* engine = opened->get();
      int number = WriteUntilRefused(engine, &told, &state);
      if (!state.empty()) {
        ++met;
        for (int again = 0; again < 3; ++again, ++number) {
          Write(engine, number, &told, &state);
          EXPECT_EQ(state, "58030") << call;
        }
        ExpectTold(engine, told, call);
        // Not even when the disk is whole again: what it holds of the log is not known.
        failing_ = false;
        Write(engine, number, &told, &state);
        EXPECT_EQ(state, "58030") << call;
      }
      failing_ = false;
      static_cast<void>(engine->Close().ok());
      opened = MakeError(Code::kUnavailable, "closed");
      auto again = Open();
      ASSERT_NE(again, nullptr) << call;
      ExpectTold(again.get(), told, call);
    }
  }
  EXPECT_GE(met, 10);
}

// A running crash_writer and what it has told so far.
class CrashWriter {
 public:
  CrashWriter(const std::string& mode, const std::string& directory, int first) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      ::execl(CELLAR_CRASH_WRITER, CELLAR_CRASH_WRITER, mode.c_str(), directory.c_str(),
              std::to_string(first).c_str(), nullptr);
      ::_exit(1);
    }
    ::close(ends[1]);
    from_child_ = ends[0];
  }

  // Kills it some time after it has told of `count` commits; false if it ended otherwise.
  bool KillAfter(size_t count, std::chrono::milliseconds later) {
    int id;
    while (::read(from_child_, &id, sizeof(id)) == sizeof(id)) {
      told_.push_back(id);
      if (told_.size() != count) continue;
      // tidy: allow(sleep) the kill is to fall anywhere within a commit
      std::this_thread::sleep_for(later);
      ::kill(child_, SIGKILL);
    }
    ::close(from_child_);
    int exit_status = 0;
    return ::waitpid(child_, &exit_status, 0) == child_ && WIFSIGNALED(exit_status) &&
           WTERMSIG(exit_status) == SIGKILL;
  }
  const std::vector<int>& told() const { return told_; }

 private:
  pid_t child_ = -1;
  int from_child_ = -1;
  std::vector<int> told_;
};

TEST_F(Store, AcknowledgedCommitsSurviveKill) {
  size_t survivors = 0;
  for (int round = 0; round < 5; ++round) {
    CrashWriter writer("pairs", directory_.store(), round);
    ASSERT_TRUE(
        writer.KillAfter(20 + static_cast<size_t>(round) * 30, std::chrono::milliseconds(round)));
    auto engine = Open();
    ASSERT_NE(engine, nullptr);
    auto reader = engine->Begin({.read_only = true});
    for (const int id : writer.told()) {
      ASSERT_TRUE(Get(reader.get(), "a" + std::to_string(id)).has_value()) << id;
    }
    const Pairs a = ScanAll(reader.get(), "a", "b"), b = ScanAll(reader.get(), "b", "c");
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i].first.substr(1), b[i].first.substr(1));
    survivors += writer.told().size();
  }
  EXPECT_GE(survivors, 400u);
}

// Large transactions commit by files: a kill leaves each of them whole or absent.
TEST_F(Store, SpilledTransactionsAreAllOrNothingUnderKill) {
  constexpr int kRows = 3000;
  for (int round = 0; round < 4; ++round) {
    const int first = round * 100;
    CrashWriter writer("loads", directory_.store(), first);
    ASSERT_TRUE(writer.KillAfter(2, std::chrono::milliseconds(3 + round * 7)));
    auto engine = Open();
    ASSERT_NE(engine, nullptr);
    for (int load = first; load < first + 30; ++load) {
      const size_t rows =
          ScanAll(engine->Begin().get(), Key(load * 10000), Key((load + 1) * 10000)).size();
      if (load - first < static_cast<int>(writer.told().size())) {
        EXPECT_EQ(rows, static_cast<size_t>(kRows)) << load;
      } else {
        EXPECT_THAT(rows, testing::AnyOf(0u, static_cast<size_t>(kRows))) << load;
      }
    }
  }
}

}  // namespace
}  // namespace cellar::kv
