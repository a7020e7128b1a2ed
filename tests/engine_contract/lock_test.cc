// SELECT FOR UPDATE's needs: locks, waiting, deadlocks, and a snapshot that moves along.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "engines.h"

namespace cellar::kv {
namespace {

using testing::ElementsAre;

const std::vector<std::string_view> kA{"a"}, kB{"b"};

class Locks : public EngineTest {
 protected:
  // Until somebody waits for a lock.
  void AwaitWaiter(uint64_t waits) {
    while (engine_->stats().lock_waits < waits) std::this_thread::yield();
  }
};
CELLAR_ENGINE_SUITE(Locks);

TEST_P(Locks, AWaiterGetsTheLockAndANewSnapshot) {
  Put("a", "0");
  auto one = engine_->Begin();
  ASSERT_OK(one->Lock(kA));
  ASSERT_OK(one->Put("a", "1"));
  auto two = engine_->Begin();
  EXPECT_EQ(Get(two.get(), "b"), std::nullopt);  // its snapshot is old
  std::thread waiter([&] {
    Result<LockResult> lock = two->Lock(kA);
    ASSERT_OK(lock);
    EXPECT_TRUE(lock->snapshot_moved);
    EXPECT_EQ(Get(two.get(), "a"), "1");
    ASSERT_OK(two->Put("a", "2"));
    ASSERT_OK(two->Commit());
  });
  AwaitWaiter(1);
  ASSERT_OK(one->Commit());
  waiter.join();
  EXPECT_EQ(Read("a"), "2");
}

TEST_P(Locks, TellsWhichKeysHaveChanged) {
  Put("a", "0");
  Put("b", "0");
  auto one = engine_->Begin({.isolation = Isolation::kSnapshot});
  EXPECT_EQ(Get(one.get(), "a"), "0");
  Put("b", "1");
  const std::vector<std::string_view> both{"a", "b"};
  Result<LockResult> told = one->Lock(both, {.only_tell = true});
  ASSERT_OK(told);
  EXPECT_THAT(told->changed, ElementsAre(false, true));
  EXPECT_FALSE(told->snapshot_moved);
  EXPECT_EQ(Get(one.get(), "b"), "0") << "the snapshot stays";
  // Beside it there is a view of what is there now.
  const ReadViewPtr newest = one->OpenNewestView();
  PinnedValue value;
  ASSERT_OK(one->Get("b", &value, ReadOptions(ReadMode::kSnapshot, newest.get())));
  EXPECT_EQ(value.view(), "1");
  EXPECT_EQ(CodeOf(one->Lock(both)), Code::kConflict);
}

TEST_P(Locks, RollingBackGivesUpLaterLocks) {
  auto one = engine_->Begin(), two = engine_->Begin();
  ASSERT_OK(one->Lock(kA, {.mode = kForShare}));
  const SavepointId savepoint = one->Savepoint();
  ASSERT_OK(one->Lock(kA));
  ASSERT_OK(one->Lock(kB));
  EXPECT_FALSE(two->Lock(kB, {.wait = LockWait::kNoWait}).ok());
  ASSERT_OK(one->RollbackTo(savepoint));
  EXPECT_OK(two->Lock(kB, {.wait = LockWait::kNoWait}));
  EXPECT_OK(two->Lock(kA, {.mode = kForShare, .wait = LockWait::kNoWait}));
  EXPECT_FALSE(two->Lock(kA, {.wait = LockWait::kNoWait}).ok());
}

TEST_P(Locks, NamesOfOneGroupDoNotExcludeEachOther) {
  auto one = engine_->Begin({.lock_group = 7}), other = engine_->Begin({.lock_group = 7}),
       stranger = engine_->Begin();
  const LockOptions skip{.wait = LockWait::kSkip};
  EXPECT_TRUE(*one->LockName(LockKind::kTable, "t", skip));
  EXPECT_TRUE(*other->LockName(LockKind::kTable, "t", skip));
  EXPECT_FALSE(*stranger->LockName(LockKind::kTable, "t", skip));
  EXPECT_TRUE(*stranger->LockName(LockKind::kAdvisory, "t", skip)) << "another kind";
}

// Two marks: whoever writes one makes those who have read it fail, and nobody else.
TEST_P(Locks, AConflictOfOneKey) {
  for (const bool reads_it : {true, false}) {
    auto reader = engine_->Begin({.isolation = Isolation::kSnapshot});
    EXPECT_EQ(Get(reader.get(), "x"), std::nullopt);
    reader->HoldReads(true);
    ASSERT_OK(reader->AddReadConflict(reads_it ? "mark" : "marl"));
    reader->HoldReads(false);
    auto writer = engine_->Begin({.isolation = Isolation::kSnapshot});
    const SavepointId savepoint = writer->Savepoint();
    ASSERT_OK(writer->AddWriteConflict("marl"));
    ASSERT_OK(writer->RollbackTo(savepoint));
    ASSERT_OK(writer->AddWriteConflict("mark"));
    ASSERT_OK(writer->Put("y", "1"));
    ASSERT_OK(writer->Commit());
    ASSERT_OK(reader->Put("z", "1"));
    EXPECT_EQ(reader->Commit().ok(), !reads_it);
  }
}

TEST_P(Locks, AnUnchangedKeyLeavesTheSnapshot) {
  Put("a", "0");
  auto one = engine_->Begin();
  EXPECT_EQ(Get(one.get(), "a"), "0");
  Result<LockResult> lock = one->Lock(kA);
  ASSERT_OK(lock);
  EXPECT_FALSE(lock->snapshot_moved);
  EXPECT_THAT(lock->acquired, ElementsAre(true));
  ASSERT_OK(one->Lock(kA));  // again: held already
}

TEST_P(Locks, TheSnapshotDoesNotMoveOverWhatWasRead) {
  Put("a", "0");
  for (const bool range : {false, true}) {
    auto one = engine_->Begin();
    if (range) {
      ScanAll(one.get(), "a", "b");
    } else {
      Get(one.get(), "a");
    }
    Put("a", "1");
    Result<LockResult> lock = one->Lock(kA);
    EXPECT_EQ(CodeOf(lock), Code::kConflict);
    EXPECT_EQ(StateOf(lock), "40001");
  }
  auto moving = engine_->Begin({.isolation = Isolation::kSnapshot});
  Get(moving.get(), "a");
  Put("a", "2");
  Result<LockResult> lock = moving->Lock(kA, {.move_over_reads = true});
  ASSERT_OK(lock);
  EXPECT_TRUE(lock->snapshot_moved);
  EXPECT_EQ(Get(moving.get(), "a"), "2");
}

TEST_P(Locks, AnOpenCursorCountsAsRead) {
  Put("a", "0");
  Put("c", "0");
  auto one = engine_->Begin();
  auto cursor = one->Scan("a", "z", {.block_bytes = 1, .first_block_bytes = 1});
  ASSERT_OK(cursor);
  Block block;
  ASSERT_TRUE(*(*cursor)->NextBlock(&block));
  Put("a", "1");
  EXPECT_EQ(CodeOf(one->Lock(kA)), Code::kConflict);
}

TEST_P(Locks, NoWaitAndSkipLockedAnswerAtOnce) {
  auto one = engine_->Begin(), two = engine_->Begin();
  ASSERT_OK(one->Lock(kA));
  Result<LockResult> lock = two->Lock(kA, {.wait = LockWait::kNoWait});
  EXPECT_EQ(StateOf(lock), "55P03");
  const std::vector<std::string_view> both{"b", "a"};
  lock = two->Lock(both, {.wait = LockWait::kSkip});
  ASSERT_OK(lock);
  EXPECT_THAT(lock->acquired, ElementsAre(true, false));
}

TEST_P(Locks, WaitingEndsWithTimeoutAndCancellation) {
  auto one = engine_->Begin(), two = engine_->Begin();
  ASSERT_OK(one->Lock(kA));
  Result<LockResult> lock = two->Lock(kA, {.timeout = std::chrono::milliseconds(5)});
  EXPECT_EQ(StateOf(lock), "55P03");
  CancelToken cancel;
  cancel.Cancel(CancelToken::Reason::kUser);
  lock = two->Lock(kA, {.cancel = &cancel});
  EXPECT_EQ(CodeOf(lock), Code::kCancelled);
  one->Abort();
  EXPECT_OK(two->Lock(kA));
}

TEST_P(Locks, ADeadlockIsFoundAtOnce) {
  auto one = engine_->Begin(), two = engine_->Begin();
  ASSERT_OK(one->Lock(kA));
  ASSERT_OK(two->Lock(kB));
  // Whoever looks is refused, so only one of them does.
  const LockOptions patient{.deadlock_after = std::chrono::hours(1)};
  std::thread waiter([&] { EXPECT_OK(one->Lock(kB, patient)); });
  AwaitWaiter(1);
  Result<LockResult> lock = two->Lock(kA);
  EXPECT_EQ(CodeOf(lock), Code::kConflict);
  EXPECT_EQ(StateOf(lock), "40P01");
  two->Abort();
  waiter.join();
  EXPECT_EQ(engine_->stats().deadlocks, 1u);
}

TEST_P(Locks, DestroyingATransactionFreesItsLocks) {
  {
    auto one = engine_->Begin();
    ASSERT_OK(one->Lock(kA));
  }
  auto two = engine_->Begin();
  EXPECT_OK(two->Lock(kA, {.wait = LockWait::kNoWait}));
}

// A queue: workers take the first job nobody holds.
TEST_P(Locks, SkipLockedSharesOutAQueue) {
  constexpr int kJobs = 40;
  for (int i = 0; i < kJobs; ++i) Put(Key(i), "todo");
  std::atomic<int> done{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < 3; ++t) {
    workers.emplace_back([&] {
      for (int tries = 0; tries < 100000; ++tries) {
        auto transaction = engine_->Begin({.durable = false});
        const Pairs jobs =
            ScanAll(transaction.get(), "k", "l", {.limit = 5, .mode = ReadMode::kSnapshot});
        if (jobs.empty()) return;
        for (const auto& [key, value] : jobs) {
          const std::vector<std::string_view> keys{key};
          Result<LockResult> lock = transaction->Lock(keys, {.wait = LockWait::kSkip});
          ASSERT_OK(lock);
          if (!lock->acquired[0]) continue;
          if (!Get(transaction.get(), key)) continue;  // another worker was here
          ASSERT_OK(transaction->Delete(key));
          Result<uint64_t> version = transaction->Commit();
          ASSERT_OK(version);
          ++done;
          break;
        }
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(done, kJobs);
}

}  // namespace
}  // namespace cellar::kv
