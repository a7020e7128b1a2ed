// Backups: whole, shared, consistent beside writers, and not disturbed by damage, full disks and
// the ends of processes.
#include <gmock/gmock.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "cellar/engines/rocksdb/rocks_backup.h"
#include "engines.h"

namespace cellar::kv {
namespace {

namespace fs = std::filesystem;
using engines::FileCall;
using engines::RocksOptions;
using testing::HasSubstr;

// CELLAR_BACKUP_TEST=long: every step instead of some.
bool LongForm() {
  const char* form = std::getenv("CELLAR_BACKUP_TEST");
  return form != nullptr && std::string_view(form) == "long";
}

// In memory where that can be: these tests sync thousands of files, and no machine fails.
class FastDirectory {
 public:
  FastDirectory() {
    char in_memory[] = "/dev/shm/cellar-XXXXXX", on_disk[] = "/tmp/cellar-XXXXXX";
    char* made = ::mkdtemp(in_memory);
    path_ = made != nullptr ? made : ::mkdtemp(on_disk);
  }
  FastDirectory(const FastDirectory&) = delete;
  FastDirectory& operator=(const FastDirectory&) = delete;
  ~FastDirectory() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }
  std::string store() const { return path_ + "/store"; }

 private:
  std::string path_;
};

class Backup : public testing::Test {
 protected:
  std::string to() const { return directory_.path() + "/backups"; }
  std::string restored() const { return directory_.path() + "/restored"; }

  std::unique_ptr<Engine> Open(const RocksOptions& options) {
    Result<std::unique_ptr<Engine>> engine = engines::OpenRocksEngine(options);
    if (!engine.ok()) {
      ADD_FAILURE() << ToText(engine);
      return nullptr;
    }
    return std::move(engine).value();
  }
  std::unique_ptr<Engine> Open() { return Open(TestOptions(directory_.store())); }
  static Status PutSome(Engine* engine, int from, int rows, std::string_view value) {
    auto transaction = engine->Begin();
    for (int i = from; i < from + rows; ++i) CELLAR_TRY(transaction->Put(Key(i), value));
    return transaction->Commit().status();
  }
  Result<BackupInfo> Make(Engine* engine, uint32_t keep = 0) {
    BackupOptions options;
    options.directory = to();
    options.keep = keep;
    return engine->Backup(options);
  }
  Result<BackupInfo> Restore(uint32_t number = 0) {
    engines::RestoreRequest request;
    request.from = to();
    request.number = number;
    request.directory = restored();
    return engines::RestoreBackup(request);
  }
  std::vector<BackupInfo> List() const {
    Result<std::vector<BackupInfo>> list = engines::ListBackups(to());
    if (list.ok()) return std::move(list).value();
    ADD_FAILURE() << ToText(list);
    return {};
  }
  // Rows of the restored store, without the header.
  Pairs RestoredRows() {
    const auto engine = Open(TestOptions(restored()));
    if (engine == nullptr) return {};
    return ScanAll(engine->Begin().get(), "k", "");
  }
  // A store of some hundred kilobytes in files and a little in the log, and one backup of it.
  void MakeStore() {
    const auto engine = Open();
    {
      auto transaction = engine->Begin();
      for (int i = 0; i < 400; ++i) {
        std::string noise;
        for (int j = 0; j < 1000; ++j) noise += static_cast<char>(random_());
        ASSERT_OK(transaction->Put(Key(i), noise));
      }
      ASSERT_OK(transaction->Commit());
    }
    ASSERT_OK(engine->Compact("", ""));
    ASSERT_OK(PutSome(engine.get(), 1000, 10, "in the log"));
    ASSERT_OK(Make(engine.get()));
    ASSERT_OK(PutSome(engine.get(), 2000, 10, "later"));
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(to())) {
      if (entry.is_regular_file() && entry.path().filename() != "cellar.lock") {
        files.push_back(entry.path());
      }
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  // The exit code, or minus the signal.
  int RunWriter(const std::string& what, const std::string& store, long kill_at) {
    const std::string number = std::to_string(kill_at), backups = to();
    const char* arguments[] = {CELLAR_BACKUP_WRITER, what.c_str(),   store.c_str(),
                               backups.c_str(),      number.c_str(), nullptr};
    pid_t pid = 0;
    if (::posix_spawn(&pid, CELLAR_BACKUP_WRITER, nullptr, nullptr,
                      const_cast<char* const*>(arguments), environ) != 0)
      return 99;
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

  FastDirectory directory_;
  std::minstd_rand random_{1};
};

TEST(MemoryBackup, IsRefused) {
  TempDirectory directory;
  BackupOptions options;
  options.directory = directory.path() + "/backups";
  EXPECT_EQ(OpenEngine(EngineKind::kMemory, "")->Backup(options).status().sqlstate(), "0A000");
  EXPECT_FALSE(fs::exists(options.directory));
}

TEST_F(Backup, RestoresAllOfItsMomentAndNothingLater) {
  Pairs before;
  StoreHeader original;
  {
    const auto engine = Open();
    ASSERT_OK(PutSome(engine.get(), 0, 100, "first"));
    ASSERT_OK(engine->Compact("", ""));
    ASSERT_OK(PutSome(engine.get(), 50, 100, "second"));
    before = ScanAll(engine->Begin().get(), "k", "");
    const auto header = Get(engine->Begin().get(), kStoreHeaderKey);
    original = ParseStoreHeader(*header).value();
    const Result<BackupInfo> made = Make(engine.get());
    ASSERT_OK(made);
    EXPECT_EQ(made->number, 1u);
    EXPECT_EQ(made->store_id, original.store_id);
    EXPECT_EQ(made->added_bytes, made->bytes);
    EXPECT_FALSE(made->damaged);
    ASSERT_OK(PutSome(engine.get(), 0, 1000, "later"));
    EXPECT_OK(engines::VerifyBackup(to(), 1));
    ASSERT_OK(Restore());  // beside the open store
  }
  EXPECT_EQ(RestoredRows(), before);
  const auto engine = Open(TestOptions(restored()));
  const auto header = Get(engine->Begin().get(), kStoreHeaderKey);
  EXPECT_NE(ParseStoreHeader(*header).value().store_id, original.store_id);
}

TEST_F(Backup, IsForItsOwnerAlone) {
  MakeStore();
  ASSERT_OK(Restore());
  for (const std::string& root : {to(), restored()}) {
    struct stat info {};
    ASSERT_EQ(::stat(root.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u) << root;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      ASSERT_EQ(::stat(entry.path().c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 0077, 0u) << entry.path();
    }
  }
}

TEST_F(Backup, SharesWhatHasNotChanged) {
  MakeStore();
  const auto engine = Open();
  const Result<BackupInfo> second = Make(engine.get());
  ASSERT_OK(second);
  EXPECT_GT(second->bytes, 300'000u);
  EXPECT_LT(second->added_bytes, 50'000u);
  const auto list = engines::ListBackups(to());
  ASSERT_OK(list);
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[1].added_bytes, second->added_bytes);
  EXPECT_EQ((*list)[0].bytes, (*list)[0].added_bytes);
}

TEST_F(Backup, KeepsAsManyAsIsSaid) {
  MakeStore();
  {
    const auto engine = Open();
    for (int i = 0; i < 4; ++i) {
      ASSERT_OK(PutSome(engine.get(), 3000 + i, 1, "more"));
      ASSERT_OK(Make(engine.get(), /*keep=*/3));
    }
  }
  const auto numbers = [&] {
    std::vector<uint32_t> out;
    for (const BackupInfo& info : List()) out.push_back(info.number);
    return out;
  };
  EXPECT_THAT(numbers(), testing::ElementsAre(3, 4, 5));
  EXPECT_EQ(engines::PruneBackups(to(), 0).status().sqlstate(), "22023");
  EXPECT_THAT(engines::PruneBackups(to(), 2).value(), testing::ElementsAre(3));
  EXPECT_THAT(engines::PruneBackups(to(), 2).value(), testing::IsEmpty());
  EXPECT_THAT(numbers(), testing::ElementsAre(4, 5));
  EXPECT_EQ(Restore(3).status().code(), Code::kNotFound);
  ASSERT_OK(Restore(4));
  EXPECT_EQ(RestoredRows().size(), 400u + 20 + 3);
}

// Each commit of a writer comes after its last one. So a backup that holds one holds all before it,
// whether they went to the log or, large ones, to files of their own; and each whole.
TEST_F(Backup, HoldsOneMomentBesideWriters) {
  RocksOptions options = TestOptions(directory_.store());
  options.spill_bytes = 4 << 10;
  options.write_buffer_bytes = 256 << 10;
  const int kWriters = 2, rounds = LongForm() ? 40 : 6;
  {
    const auto engine = Open(options);
    std::atomic<bool> stop{false};
    std::atomic<int> written{0}, limit{0};
    std::vector<std::thread> writers;
    for (int writer = 0; writer < kWriters; ++writer) {
      writers.emplace_back([&, writer] {
        for (int i = 0; !stop; ++i) {
          for (int now = limit; written >= now && !stop; now = limit) limit.wait(now);
          const bool large = i % 3 == 1;
          auto transaction = engine->Begin();
          const int rows = large ? 20 : 2;
          for (int row = 0; row < rows; ++row) {
            const std::string key = fmt::format("k{}/{:06}/{:02}", writer, i, row);
            EXPECT_OK(transaction->Put(key, std::string(large ? 1000 : 10, 'v')));
          }
          EXPECT_OK(transaction->Put(fmt::format("k{}", writer), std::to_string(i)));
          EXPECT_OK(transaction->Commit(CommitOptions{i % 5 == 0}));
          ++written;
        }
      });
    }
    for (int round = 0; round < rounds; ++round) {
      const int before = written;
      limit += 80;
      limit.notify_all();
      while (written < before + 20) std::this_thread::yield();
      EXPECT_OK(Make(engine.get()));
    }
    stop = true;
    ++limit;
    limit.notify_all();
    for (std::thread& thread : writers) thread.join();
    EXPECT_GT(engine->stats().spilled_runs, 0u);
  }
  for (int round = 1; round <= rounds; ++round) {
    ASSERT_OK(Restore(static_cast<uint32_t>(round)));
    const auto engine = Open(TestOptions(restored()));
    ASSERT_NE(engine, nullptr);
    auto reader = engine->Begin();
    for (int writer = 0; writer < kWriters; ++writer) {
      const auto last = Get(reader.get(), fmt::format("k{}", writer));
      ASSERT_TRUE(last.has_value());
      const int commits = std::stoi(*last) + 1;
      size_t expected = 0;
      for (int i = 0; i < commits; ++i) expected += i % 3 == 1 ? 20 : 2;
      const Pairs rows =
          ScanAll(reader.get(), fmt::format("k{}/", writer), fmt::format("k{}0", writer));
      EXPECT_EQ(rows.size(), expected) << "round " << round << ", " << commits << " commits";
    }
    reader.reset();
    ASSERT_OK(engine->Close());
    fs::remove_all(restored());
  }
}

TEST_F(Backup, OpensWhereItLies) {
  MakeStore();
  const auto files = Files();
  {
    Result<RocksOptions> options = engines::LocateBackup(to(), 1);
    ASSERT_OK(options);
    options->cache_bytes = 8 << 20;
    const auto engine = Open(*options);
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(ScanAll(engine->Begin().get(), "k", "").size(), 410u);
    EXPECT_EQ(Get(engine->Begin().get(), Key(1001)), "in the log");
    EXPECT_EQ(PutSome(engine.get(), 0, 1, "v").sqlstate(), "25006");
  }
  EXPECT_EQ(Files(), files);
  EXPECT_OK(engines::VerifyBackup(to(), 1));
}

TEST_F(Backup, RefusesPlacesThatAreSomethingElse) {
  MakeStore();
  const auto engine = Open();
  const auto make = [&](const std::string& path) {
    BackupOptions options;
    options.directory = path;
    return std::string(engine->Backup(options).status().sqlstate());
  };
  EXPECT_EQ(make(""), "22023");
  EXPECT_EQ(make(directory_.store() + "/backups"), "22023");
  EXPECT_EQ(make(directory_.store()), "22023");
  EXPECT_EQ(make(directory_.path()), "22023");
  fs::create_directory_symlink(directory_.store(), directory_.path() + "/link");
  EXPECT_EQ(make(directory_.path() + "/link/backups"), "22023");
  EXPECT_EQ(make(directory_.path() + "/none/backups"), "58P01");
  std::ofstream(directory_.path() + "/file") << "text";
  EXPECT_EQ(make(directory_.path() + "/file"), "55000");
  EXPECT_EQ(make(directory_.path() + "/file/backups"), "58030");
  fs::create_directory(directory_.path() + "/full");
  std::ofstream(directory_.path() + "/full/letter") << "text";
  EXPECT_EQ(make(directory_.path() + "/full"), "55000");
  EXPECT_EQ(make("/proc/backups"), "58P01");
  // Backups of another store.
  const auto other = Open(TestOptions(directory_.path() + "/other"));
  EXPECT_EQ(Make(other.get()).status().sqlstate(), "55000");
  // Restores too.
  engines::RestoreRequest request;
  request.from = to();
  request.directory = directory_.path() + "/full";
  EXPECT_EQ(engines::RestoreBackup(request).status().sqlstate(), "55000");
  EXPECT_TRUE(fs::exists(directory_.path() + "/full/letter"));
  request.directory = directory_.store();
  EXPECT_EQ(engines::RestoreBackup(request).status().sqlstate(), "55000");
  request.directory = restored();
  request.from = directory_.path() + "/full";
  EXPECT_EQ(engines::RestoreBackup(request).status().sqlstate(), "55000");
  request.from = directory_.path() + "/none";
  EXPECT_EQ(engines::RestoreBackup(request).status().sqlstate(), "58P01");
  EXPECT_FALSE(fs::exists(restored()));
  // A newer format.
  std::ofstream(to() + "/CELLAR_BACKUPS") << "Cellar backups, format 2\n";
  EXPECT_EQ(Make(engine.get()).status().code(), Code::kUnsupported);
  EXPECT_EQ(engines::ListBackups(to()).status().code(), Code::kUnsupported);
}

TEST_F(Backup, StopsWhenItIsCancelled) {
  const auto engine = Open();
  std::string noise;
  for (int i = 0; i < 1'000'000; ++i) noise += static_cast<char>(random_());
  for (int i = 0; i < 12; ++i) ASSERT_OK(PutSome(engine.get(), i, 1, noise));
  CancelToken token;
  BackupOptions options;
  options.directory = to();
  options.cancel = &token;
  uint64_t copied = 0;
  options.progress = [&](const BackupProgress& progress) {
    copied = progress.copied_bytes;
    EXPECT_GT(progress.total_bytes, 10'000'000u);
    token.Cancel(CancelToken::Reason::kUser);
  };
  EXPECT_EQ(engine->Backup(options).status().sqlstate(), "57014");
  EXPECT_GT(copied, 0u);
  EXPECT_TRUE(engines::ListBackups(to()).value().empty());
  EXPECT_OK(Make(engine.get()));
}

// One bit in every file, and every file missing or cut off.
TEST_F(Backup, DamageIsFoundNamedAndNotRestored) {
  MakeStore();
  {
    const auto engine = Open();
    ASSERT_OK(Make(engine.get()));
  }
  std::set<std::string> classes;
  for (const fs::path& path : Files()) {
    const std::string name = path.filename();
    if (name == "CELLAR_BACKUPS") continue;
    std::ifstream in(path, std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(in)), {});
    in.close();
    const std::string folder = path.parent_path().filename();
    const bool is_list = folder == "meta" || folder == "checks";
    classes.insert(is_list ? "meta"
                   : name.substr(0, name.find_first_of("-_")) == name
                       ? path.extension().string()
                       : name.substr(0, name.find_first_of("-_")));
    const auto write = [&](std::string_view content) {
      std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    };
    std::vector<size_t> places = {0, whole.size() / 2, whole.size() - 1};
    if (is_list) {
      places.clear();
      for (size_t at = 0; at < whole.size(); at += LongForm() ? 1 : 7) places.push_back(at);
    }
    const auto expect_found = [&](const std::string& what) {
      bool found = false, named = false;
      for (const uint32_t number : {1u, 2u}) {
        const Status status = engines::VerifyBackup(to(), number);
        if (status.ok()) continue;
        found = true;
        EXPECT_EQ(status.code(), Code::kCorruption) << what << ": " << status.ToString();
        named |= is_list || status.message().find(name) != std::string_view::npos;
        const Status refused = Restore(number).status();
        EXPECT_FALSE(refused.ok()) << what;
        EXPECT_FALSE(fs::exists(restored())) << what;
      }
      EXPECT_TRUE(found && named) << what;
    };
    for (const size_t at : places) {
      std::string damaged = whole;
      damaged[at] ^= 1;
      write(damaged);
      expect_found(fmt::format("{} at {}", path.string(), at));
    }
    write(whole.substr(0, whole.size() - 1));
    expect_found(path.string() + " cut off");
    fs::remove(path);
    expect_found(path.string() + " missing");
    write(whole);
  }
  EXPECT_OK(engines::VerifyBackup(to(), 1));
  EXPECT_OK(engines::VerifyBackup(to(), 2));
  EXPECT_THAT(classes, testing::IsSupersetOf({"meta", "MANIFEST", "OPTIONS", ".log"}));
}

TEST_F(Backup, OneDamagedBackupLeavesTheOthers) {
  MakeStore();
  const auto engine = Open();
  ASSERT_OK(Make(engine.get()));
  std::ofstream(to() + "/meta/1", std::ios::trunc) << "nothing";
  const auto list = engines::ListBackups(to());
  ASSERT_OK(list);
  ASSERT_EQ(list->size(), 2u);
  EXPECT_TRUE((*list)[0].damaged);
  EXPECT_FALSE((*list)[1].damaged);
  EXPECT_OK(engines::VerifyBackup(to(), 2));
  const Result<BackupInfo> third = Make(engine.get());
  ASSERT_OK(third);
  EXPECT_EQ(third->number, 3u);
  EXPECT_OK(engines::VerifyBackup(to(), 2));
  // The damaged one goes with those that are as old.
  EXPECT_THAT(engines::PruneBackups(to(), 2).value(), testing::ElementsAre(1));
  ASSERT_OK(Restore(2));
}

TEST_F(Backup, TheNewestIsNotQuietlyReplacedByAnOlderOne) {
  MakeStore();
  {
    const auto engine = Open();
    ASSERT_OK(Make(engine.get()));
  }
  std::ofstream(to() + "/meta/2", std::ios::trunc) << "nothing";
  EXPECT_EQ(Restore().status().code(), Code::kCorruption);
  ASSERT_OK(Restore(1));
}

TEST_F(Backup, AFullDiskLeavesEarlierBackupsAlone) {
  MakeStore();
  long fail_at = 0;
  std::atomic<long> calls{0};
  RocksOptions options = TestOptions(directory_.store());
  options.fault = [&](FileCall, std::string_view path) -> Status {
    if (!path.starts_with(to()) || ++calls != fail_at) return {};
    return SqlError(Code::kUnavailable, "53100", "full");
  };
  const auto engine = Open(options);
  for (int step = 1; step < 1000; step += LongForm() ? 1 : 4) {
    calls = 0;
    fail_at = step;
    const Status status = Make(engine.get(), /*keep=*/2).status();
    fail_at = 0;
    if (status.ok()) break;
    EXPECT_EQ(status.sqlstate(), "53100") << step << ": " << status.ToString();
    const auto list = engines::ListBackups(to());
    ASSERT_OK(list);
    EXPECT_EQ(list->size(), 1u) << step;
    EXPECT_OK(engines::VerifyBackup(to(), 1));
    ASSERT_LT(step, 900);
  }
  // The store itself has not noticed.
  EXPECT_OK(PutSome(engine.get(), 5000, 1, "v"));
  ASSERT_OK(Make(engine.get()));
  for (const BackupInfo& info : List()) {
    EXPECT_OK(engines::VerifyBackup(to(), info.number));
  }
}

TEST_F(Backup, AFullDiskEndsARestoreWithoutATrace) {
  MakeStore();
  for (int step = 1; step < 1000; step += LongForm() ? 1 : 3) {
    std::atomic<long> calls{0};
    engines::RestoreRequest request;
    request.from = to();
    request.directory = restored();
    request.fault = [&](FileCall, std::string_view) -> Status {
      if (++calls != step) return {};
      return SqlError(Code::kUnavailable, "53100", "full");
    };
    const Status status = engines::RestoreBackup(request).status();
    if (status.ok()) break;
    EXPECT_EQ(status.sqlstate(), "53100") << step << ": " << status.ToString();
    EXPECT_FALSE(fs::exists(restored())) << step;
    ASSERT_LT(step, 900);
  }
  EXPECT_EQ(RestoredRows().size(), 410u);
}

TEST_F(Backup, KilledAtAnyStepItLeavesTheEarlierOnes) {
  MakeStore();
  int code = -SIGKILL;
  for (long step = 1; code == -SIGKILL; step += LongForm() ? 1 : 5) {
    ASSERT_LT(step, 1000);
    code = RunWriter("create", directory_.store(), step);
    const auto list = engines::ListBackups(to());
    ASSERT_OK(list);
    EXPECT_GE(list->size(), 1u) << step;
    for (const BackupInfo& info : *list) {
      EXPECT_FALSE(info.damaged) << step;
      EXPECT_OK(engines::VerifyBackup(to(), info.number));
    }
  }
  EXPECT_EQ(code, 0);
  const auto engine = Open();
  ASSERT_OK(Make(engine.get(), /*keep=*/1));
  // Nothing but what the one backup is made of.
  uint64_t bytes = 0;
  for (const fs::path& file : Files()) {
    const std::string parent = file.parent_path().filename();
    if (parent != "meta" && parent != "checks" && parent != "backups") bytes += fs::file_size(file);
  }
  const auto list = engines::ListBackups(to());
  ASSERT_OK(list);
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ(bytes, (*list)[0].bytes);
}

TEST_F(Backup, KilledAtAnyStepARestoreIsNoStoreAndCanBeRepeated) {
  MakeStore();
  int code = -SIGKILL;
  for (long step = 1; code == -SIGKILL; step += LongForm() ? 1 : 3) {
    ASSERT_LT(step, 1000);
    code = RunWriter("restore", restored(), step);
    if (code != -SIGKILL) break;
    RocksOptions options = TestOptions(restored());
    options.create_if_missing = true;
    const Status status = engines::OpenRocksEngine(options).status();
    EXPECT_EQ(status.sqlstate(), "55000") << step;
    EXPECT_THAT(std::string(status.message()), HasSubstr("restore")) << step;
  }
  EXPECT_EQ(code, 0);
  EXPECT_EQ(RestoredRows().size(), 410u);
}

}  // namespace
}  // namespace cellar::kv
