// Locks end when a commit is written, not when it is durable; nobody hears of it before that.
#include <gmock/gmock.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "engines.h"

namespace cellar::kv {
namespace {

// A store whose log does not get synced before it is told so.
class EarlyRelease : public testing::Test {
 protected:
  void SetUp() override {
    engines::RocksOptions options = TestOptions(directory_.store());
    options.spill_bytes = 6 << 10;
    options.fault = [this](engines::FileCall call, std::string_view path) -> Status {
      if (call != engines::FileCall::kSync || !path.ends_with(".log")) return {};
      std::unique_lock lock(mutex_);
      ++syncs_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return open_; });
      return std::exchange(error_, Status());
    };
    Result<std::unique_ptr<Engine>> engine = engines::OpenRocksEngine(options);
    ASSERT_OK(engine);
    engine_ = std::move(engine).value();
    Put("row", "0");
    Put("other", "0");
  }
  void TearDown() override {
    Open();
    for (std::thread& thread : threads_) thread.join();
  }

  void Put(std::string_view key, std::string_view value) {
    auto transaction = engine_->Begin();
    ASSERT_OK(transaction->Put(key, value));
    ASSERT_OK(transaction->Commit());
  }
  void Shut() {
    std::lock_guard lock(mutex_);
    open_ = false;
    syncs_ = 0;
  }
  void Open(Status error = {}) {
    std::lock_guard lock(mutex_);
    open_ = true;
    error_ = std::move(error);
    changed_.notify_all();
  }
  // Waits until the log is being synced.
  void AwaitSync() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return syncs_ != 0; });
  }

  struct Outcome {
    Status status;
    uint64_t version = 0;
    std::atomic<bool> known{false};
  };
  // Commits on a thread of its own.
  Outcome* Commit(std::unique_ptr<Transaction> transaction, CommitOptions options = {}) {
    outcomes_.push_back(std::make_unique<Outcome>());
    Outcome* outcome = outcomes_.back().get();
    threads_.emplace_back([outcome, options, owned = std::move(transaction)] {
      Result<uint64_t> version = owned->Commit(options);
      outcome->status = version.status();
      if (version.ok()) outcome->version = *version;
      outcome->known = true;
    });
    return outcome;
  }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  std::unique_ptr<Transaction> Lock(const TransactionOptions& options = {}) {
    auto transaction = engine_->Begin(options);
    const std::string_view keys[] = {"row"};
    EXPECT_OK(transaction->Lock(keys));
    return transaction;
  }
  // A commit of row = 1 whose sync does not come back.
  Outcome* Hang() {
    auto first = Lock();
    EXPECT_EQ(Get(first.get(), "row"), "0");
    EXPECT_OK(first->Put("row", "1"));
    Shut();
    Outcome* outcome = Commit(std::move(first));
    AwaitSync();
    return outcome;
  }

  TempDirectory directory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int syncs_ = 0;
  Status error_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::unique_ptr<Outcome>> outcomes_;
  std::vector<std::thread> threads_;
};

TEST_F(EarlyRelease, TheNextHolderOfALockReadsWhatIsNotDurableAndEverybodyElseWhatIs) {
  Outcome* first = Hang();
  for (const bool autocommit : {false, true}) {
    auto reader = engine_->Begin({.read_only = true, .autocommit = autocommit});
    EXPECT_EQ(Get(reader.get(), "row"), "0");
    EXPECT_EQ(ScanAll(reader.get(), "row", "rox").at(0).second, "0");
    EXPECT_OK(reader->Commit());  // and waits for nothing
  }
  // With and without a snapshot from before.
  auto second = engine_->Begin();
  const std::string_view keys[] = {"row"};
  EXPECT_EQ(Get(second.get(), "other"), "0");
  Result<LockResult> locked = second->Lock(keys);
  ASSERT_OK(locked);
  EXPECT_TRUE(locked->snapshot_moved);
  EXPECT_EQ(Get(second.get(), "row"), "1");
  EXPECT_OK(second->RefreshSnapshot());
  EXPECT_EQ(Get(second.get(), "row"), "1");
  EXPECT_OK(second->Put("row", "2"));
  Outcome* of_second = Commit(std::move(second));
  auto third = Lock();
  EXPECT_EQ(Get(third.get(), "row"), "2");
  EXPECT_OK(third->Put("row", "3"));
  Outcome* of_third = Commit(std::move(third), {.durable = false});
  EXPECT_EQ(Get(Lock().get(), "row"), "3");
  EXPECT_FALSE(first->known || of_second->known || of_third->known);
  EXPECT_EQ(Get(engine_->Begin().get(), "row"), "0");
  const uint64_t syncs = engine_->stats().synced_groups;
  Open();
  Join();
  for (const Outcome* each : {first, of_second, of_third}) EXPECT_OK(each->status);
  EXPECT_LT(first->version, of_second->version);
  EXPECT_LT(of_second->version, of_third->version);
  EXPECT_LE(engine_->stats().synced_groups - syncs, 2u);
  EXPECT_EQ(Get(engine_->Begin().get(), "row"), "3");
}

TEST_F(EarlyRelease, WhoOnlyReadWhatIsNotDurableIsAcknowledgedAfterIt) {
  Outcome* first = Hang();
  auto second = Lock();
  EXPECT_EQ(Get(second.get(), "row"), "1");
  Outcome* of_second = Commit(std::move(second));
  EXPECT_EQ(Get(Lock().get(), "row"), "1") << "the lock is free again";
  EXPECT_FALSE(of_second->known);
  Open();
  Join();
  EXPECT_OK(first->status);
  EXPECT_OK(of_second->status);
  EXPECT_GE(of_second->version, first->version);
}

TEST_F(EarlyRelease, NobodyIsAcknowledgedWhenTheSyncFails) {
  Outcome* first = Hang();
  auto second = Lock();
  EXPECT_EQ(Get(second.get(), "row"), "1");
  EXPECT_OK(second->Put("row", "2"));
  Outcome* of_second = Commit(std::move(second));
  auto third = Lock();
  Get(third.get(), "row");
  Outcome* of_third = Commit(std::move(third));
  Open(MakeError(Code::kUnavailable, "injected"));
  Join();
  EXPECT_EQ(first->status.code(), Code::kCommitUnknown);
  EXPECT_EQ(first->status.sqlstate(), "40003");
  EXPECT_TRUE(of_second->status.code() == Code::kCommitUnknown ||
              of_second->status.code() == Code::kUnavailable);
  EXPECT_EQ(of_third->status.code(), Code::kUnavailable);
  EXPECT_EQ(Get(engine_->Begin().get(), "row"), "0") << "what is not known shows to nobody";
  auto late = engine_->Begin();
  ASSERT_OK(late->Put("late", "v"));
  EXPECT_EQ(StateOf(late->Commit()), "58030");
}

TEST_F(EarlyRelease, AConflictIsToldWhenARerunWouldSeeTheRival) {
  auto rival = engine_->Begin();
  EXPECT_EQ(Get(rival.get(), "row"), "0");
  ASSERT_OK(rival->Put("row", "rival"));
  Outcome* first = Hang();
  Outcome* refused = Commit(std::move(rival));
  auto required = engine_->Begin();
  std::atomic<bool> told{false};
  const uint64_t version = engine_->latest_version();
  threads_.emplace_back([&] {
    EXPECT_EQ(CodeOf(required->Require("row", version)), Code::kConflict);
    told = true;
  });
  EXPECT_EQ(Get(engine_->Begin().get(), "row"), "0");
  EXPECT_FALSE(refused->known || told);
  Open();
  Join();
  EXPECT_OK(first->status);
  EXPECT_EQ(refused->status.code(), Code::kConflict);
  EXPECT_EQ(Get(engine_->Begin().get(), "row"), "1");
}

TEST_F(EarlyRelease, AnIngestedTransactionRestsOnDurableOnes) {
  Outcome* first = Hang();
  auto load = Lock();
  EXPECT_EQ(Get(load.get(), "row"), "1");
  for (int i = 0; i < 500; ++i) ASSERT_OK(load->Put(Key(i), "v"));
  ASSERT_GT(load->stats().spilled_bytes, 0u);
  Outcome* of_load = Commit(std::move(load));
  EXPECT_TRUE(ScanAll(engine_->Begin().get(), "k", "l").empty());
  EXPECT_FALSE(first->known || of_load->known);
  Open();
  Join();
  EXPECT_OK(first->status);
  EXPECT_OK(of_load->status);
  EXPECT_EQ(ScanAll(engine_->Begin().get(), "k", "l").size(), 500u);
}

// Counters that are handed on by locks: nothing may be lost, skipped or seen twice, and a reader's
// two counters, which every commit moves together, are always equal.
TEST_F(EarlyRelease, CountersAddUpUnderManyThreads) {
  constexpr int kThreads = 6, kEach = 60;
  std::atomic<bool> stop{false};
  std::atomic<int> acknowledged{0};
  std::vector<std::thread> writers;
  for (int t = 0; t < kThreads; ++t) {
    writers.emplace_back([&, t] {
      for (int done = 0; done < kEach;) {
        auto transaction = Lock();
        const int n = std::stoi(*Get(transaction.get(), "row"));
        ASSERT_EQ(n, std::stoi(*Get(transaction.get(), "other")));
        ASSERT_OK(transaction->Put("row", std::to_string(n + 1)));
        ASSERT_OK(transaction->Put("other", std::to_string(n + 1)));
        const Result<uint64_t> version = transaction->Commit({.durable = (done + t) % 5 != 0});
        if (!version.ok()) {
          ASSERT_EQ(CodeOf(version), Code::kConflict);
          continue;
        }
        ++done;
        ++acknowledged;
      }
    });
  }
  std::thread reader([&] {
    int last = 0;
    for (int i = 0; !stop; ++i) {
      const int before = acknowledged;
      auto transaction = engine_->Begin({.read_only = true, .autocommit = i % 2 == 0});
      PinnedValue row, other;
      ASSERT_OK(transaction->Get("row", &row));
      const int n = std::stoi(std::string(row.view()));
      const Result<bool> found = transaction->Get("other", &other);
      if (!found.ok()) continue;
      ASSERT_EQ(row.view(), other.view());
      ASSERT_GE(n, before) << "what was acknowledged shows";
      ASSERT_GE(n, last) << "time does not go back";
      last = n;
    }
  });
  for (std::thread& thread : writers) thread.join();
  stop = true;
  reader.join();
  EXPECT_EQ(Get(engine_->Begin().get(), "row"), std::to_string(kThreads * kEach));
}

}  // namespace
}  // namespace cellar::kv
