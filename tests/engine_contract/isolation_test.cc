// Serializable means no anomaly; snapshot isolation means the first committer wins.
#include <gmock/gmock.h>

#include <thread>

#include "engines.h"

namespace cellar::kv {
namespace {

class IsolationTest : public EngineTest {};
CELLAR_ENGINE_SUITE(IsolationTest);

TEST_P(IsolationTest, LostUpdateIsRefused) {
  Put("a", "0");
  auto one = engine_->Begin(), two = engine_->Begin();
  Get(one.get(), "a");
  Get(two.get(), "a");
  ASSERT_OK(one->Put("a", "1"));
  ASSERT_OK(two->Put("a", "2"));
  ASSERT_OK(one->Commit());
  Result<uint64_t> second = two->Commit();
  EXPECT_EQ(CodeOf(second), Code::kConflict);
  EXPECT_EQ(StateOf(second), "40001");
  EXPECT_EQ(Read("a"), "1");
  EXPECT_GE(engine_->stats().conflicts, 1u);
}

TEST_P(IsolationTest, WriteSkewIsRefused) {
  Put("a", "1");
  Put("b", "1");
  auto one = engine_->Begin(), two = engine_->Begin();
  for (Transaction* each : {one.get(), two.get()}) {
    Get(each, "a");
    Get(each, "b");
  }
  ASSERT_OK(one->Put("a", "0"));
  ASSERT_OK(two->Put("b", "0"));
  ASSERT_OK(one->Commit());
  EXPECT_EQ(CodeOf(two->Commit()), Code::kConflict);
}

TEST_P(IsolationTest, WriteSkewPassesUnderSnapshotIsolationAsItsNameSays) {
  Put("a", "1");
  Put("b", "1");
  const TransactionOptions snapshot{.isolation = Isolation::kSnapshot};
  auto one = engine_->Begin(snapshot), two = engine_->Begin(snapshot);
  for (Transaction* each : {one.get(), two.get()}) {
    Get(each, "a");
    Get(each, "b");
  }
  ASSERT_OK(one->Put("a", "0"));
  ASSERT_OK(two->Put("b", "0"));
  ASSERT_OK(one->Commit());
  EXPECT_OK(two->Commit());
}

TEST_P(IsolationTest, HeldReadsAreValidatedUnderAnyIsolation) {
  for (const bool scans : {false, true}) {
    Put("a", "1");
    Put("b", "1");
    const TransactionOptions snapshot{.isolation = Isolation::kSnapshot};
    auto one = engine_->Begin(snapshot), two = engine_->Begin(snapshot);
    const auto read = [&](Transaction* transaction, const std::string& key) {
      EXPECT_FALSE(transaction->HoldReads(true));
      if (scans) {
        ScanAll(transaction, key, key + "~");
      } else {
        Get(transaction, key);
      }
      EXPECT_TRUE(transaction->HoldReads(false));
    };
    read(one.get(), "b");
    read(two.get(), "a");
    // What is read beside it is not held.
    Get(one.get(), "c");
    Put("c", "2");
    ASSERT_OK(one->Put("a", "0"));
    ASSERT_OK(two->Put("b", "0"));
    ASSERT_OK(one->Commit());
    EXPECT_EQ(CodeOf(two->Commit()), Code::kConflict);
  }
}

TEST_P(IsolationTest, SnapshotIsolationLetsTheFirstCommitterWin) {
  Put("a", "0");
  const TransactionOptions snapshot{.isolation = Isolation::kSnapshot};
  auto one = engine_->Begin(snapshot), two = engine_->Begin(snapshot);
  Get(one.get(), "a");
  Get(two.get(), "a");
  ASSERT_OK(one->Put("a", "1"));
  ASSERT_OK(two->Put("a", "2"));
  ASSERT_OK(one->Commit());
  EXPECT_EQ(CodeOf(two->Commit()), Code::kConflict);
}

TEST_P(IsolationTest, AWriteStaysValidatedAgainstTheSnapshotItWasMadeUnder) {
  Put("a", "0");
  auto one = engine_->Begin({.isolation = Isolation::kSnapshot});
  Get(one.get(), "a");
  ASSERT_OK(one->Put("a", "1"));
  Put("a", "other");
  ASSERT_OK(one->RefreshSnapshot());
  EXPECT_EQ(CodeOf(one->Commit()), Code::kConflict);
}

TEST_P(IsolationTest, APhantomIsRefusedInBothDirections) {
  Put(Key(1), "v");
  for (const bool reverse : {false, true}) {
    auto one = engine_->Begin(), two = engine_->Begin();
    const size_t count = ScanAll(one.get(), Key(0), Key(9), {.reverse = reverse}).size();
    EXPECT_EQ(count, ScanAll(two.get(), Key(0), Key(9)).size());
    ASSERT_OK(one->Put(Key(reverse ? 5 : 4), "v"));
    ASSERT_OK(two->Put(Key(reverse ? 7 : 6), "v"));
    ASSERT_OK(two->Commit());
    EXPECT_EQ(CodeOf(one->Commit()), Code::kConflict);
  }
}

TEST_P(IsolationTest, AnEmptyRangeIsTrackedToo) {
  auto one = engine_->Begin();
  EXPECT_TRUE(ScanAll(one.get(), "x", "y").empty());
  ASSERT_OK(one->Put("z", "v"));
  Put("xx", "v");
  EXPECT_EQ(CodeOf(one->Commit()), Code::kConflict);
}

TEST_P(IsolationTest, AScanTracksOnlyAsFarAsItWent) {
  for (int i = 0; i < 10; ++i) Put(Key(i), "v");
  for (const bool reverse : {false, true}) {
    auto one = engine_->Begin();
    ScanAll(one.get(), Key(0), Key(10), {.reverse = reverse, .limit = 3});
    ASSERT_OK(one->Put("own", "v"));
    Put(Key(reverse ? 2 : 7), "changed");
    EXPECT_OK(one->Commit());
  }
  auto one = engine_->Begin();
  ScanAll(one.get(), Key(0), Key(10), {.limit = 3});
  ASSERT_OK(one->Put("own", "v"));
  Put(Key(1), "changed");
  EXPECT_EQ(CodeOf(one->Commit()), Code::kConflict);
}

TEST_P(IsolationTest, ADeletedKeyInARangeIsAConflict) {
  Put(Key(1), "v");
  auto one = engine_->Begin();
  ScanAll(one.get(), Key(0), Key(9));
  ASSERT_OK(one->Put("own", "v"));
  auto two = engine_->Begin();
  ASSERT_OK(two->Delete(Key(1)));
  ASSERT_OK(two->Commit());
  EXPECT_EQ(CodeOf(one->Commit()), Code::kConflict);
}

TEST_P(IsolationTest, DeleteRangeConflictsWithPointAndRangeReaders) {
  Put(Key(1), "v");
  auto point = engine_->Begin(), range = engine_->Begin(), absent = engine_->Begin();
  Get(point.get(), Key(1));
  ScanAll(range.get(), Key(0), Key(5));
  Get(absent.get(), Key(2));
  for (Transaction* each : {point.get(), range.get(), absent.get()}) {
    ASSERT_OK(each->Put("own", "v"));
  }
  auto drop = engine_->Begin();
  ASSERT_OK(drop->DeleteRange(Key(0), Key(9)));
  ASSERT_OK(drop->Commit());
  EXPECT_EQ(CodeOf(point->Commit()), Code::kConflict);
  EXPECT_EQ(CodeOf(range->Commit()), Code::kConflict);
  EXPECT_EQ(CodeOf(absent->Commit()), Code::kConflict);
}

TEST_P(IsolationTest, SnapshotReadsNeverConflict) {
  Put("a", "1");
  auto one = engine_->Begin();
  EXPECT_EQ(Get(one.get(), "a", ReadMode::kSnapshot), "1");
  ScanAll(one.get(), "a", "b", {.mode = ReadMode::kSnapshot});
  ASSERT_OK(one->Put("own", "v"));
  Put("a", "2");
  EXPECT_EQ(Get(one.get(), "a", ReadMode::kSnapshot), "1");
  EXPECT_OK(one->Commit());
}

TEST_P(IsolationTest, AddReadConflictCountsInEveryIsolation) {
  for (const Isolation isolation : {Isolation::kSerializable, Isolation::kSnapshot}) {
    auto one = engine_->Begin({.isolation = isolation});
    ASSERT_OK(one->AddReadConflict("f", "g"));
    ASSERT_OK(one->Put("own", "v"));
    Put("foo", "v");
    EXPECT_EQ(CodeOf(one->Commit()), Code::kConflict);
  }
}

TEST_P(IsolationTest, ReadersNeverConflictAndSeeOneState) {
  Put("a", "1");
  Put("b", "1");
  auto reader = engine_->Begin();
  EXPECT_EQ(Get(reader.get(), "a"), "1");
  auto writer = engine_->Begin();
  ASSERT_OK(writer->Put("a", "2"));
  ASSERT_OK(writer->Put("b", "2"));
  ASSERT_OK(writer->Commit());
  EXPECT_EQ(Get(reader.get(), "b"), "1");
  EXPECT_OK(reader->Commit());
}

TEST_P(IsolationTest, AnAutocommitReadIsPartOfOneStateOrAConflict) {
  Put("a", "1");
  Put("b", "1");
  auto reader = engine_->Begin({.read_only = true, .autocommit = true});
  EXPECT_EQ(Get(reader.get(), "a"), "1");
  Put("b", "2");
  EXPECT_EQ(Get(reader.get(), "b"), "2");
  auto torn = engine_->Begin({.read_only = true, .autocommit = true});
  EXPECT_EQ(Get(torn.get(), "a"), "1");
  auto writer = engine_->Begin();
  ASSERT_OK(writer->Put("a", "3"));
  ASSERT_OK(writer->Put("b", "3"));
  ASSERT_OK(writer->Commit());
  PinnedValue value;
  EXPECT_EQ(CodeOf(torn->Get("b", &value)), Code::kConflict);
}

TEST_P(IsolationTest, RequireFailsOnceTheKeyWasWritten) {
  Put("schema", "1");
  const uint64_t version = engine_->latest_version();
  auto one = engine_->Begin(), two = engine_->Begin();
  ASSERT_OK(one->Require("schema", version));
  ASSERT_OK(two->Require("schema", version));
  EXPECT_EQ(one->stats().trips, 0u);
  ASSERT_OK(one->Put("x", "v"));
  ASSERT_OK(one->Commit());
  Put("schema", "2");
  ASSERT_OK(two->Put("y", "v"));
  EXPECT_EQ(CodeOf(two->Commit()), Code::kConflict);
  auto three = engine_->Begin();
  EXPECT_EQ(CodeOf(three->Require("schema", version)), Code::kConflict);
  ASSERT_OK(three->Require("schema", engine_->latest_version()));
  // Others' writes, however many, raise no false alarm once the key is watched.
  auto many = engine_->Begin();
  for (int i = 0; i < 2000; ++i) ASSERT_OK(many->Put(Key(i), "v"));
  ASSERT_OK(many->Commit());
  ASSERT_OK(three->Put("z", "v"));
  EXPECT_OK(three->Commit());
  auto drop = engine_->Begin();
  const uint64_t before_drop = engine_->latest_version();
  ASSERT_OK(drop->DeleteRange("s", "t"));
  ASSERT_OK(drop->Commit());
  EXPECT_EQ(CodeOf(engine_->Begin()->Require("schema", before_drop)), Code::kConflict);
}

TEST_P(IsolationTest, UnmarkedWritesAbortNobody) {
  Put("delta", "v");
  auto reader = engine_->Begin();
  Get(reader.get(), "delta");
  ScanAll(reader.get(), "d", "e");
  ASSERT_OK(reader->Put("own", "v"));
  auto seal = engine_->Begin({.unmarked_writes = true});
  Get(seal.get(), "delta");
  ASSERT_OK(seal->Delete("delta"));
  ASSERT_OK(seal->Put("page", "v"));
  ASSERT_OK(seal->Commit());
  EXPECT_OK(reader->Commit());
  EXPECT_EQ(Read("page"), "v");
}

TEST_P(IsolationTest, RefreshedSnapshotsSeeNewCommits) {
  Put("a", "1");
  auto one = engine_->Begin({.isolation = Isolation::kSnapshot});
  EXPECT_EQ(Get(one.get(), "a"), "1");
  Put("a", "2");
  EXPECT_EQ(Get(one.get(), "a"), "1");
  ASSERT_OK(one->RefreshSnapshot());
  EXPECT_EQ(Get(one.get(), "a"), "2");
  ASSERT_OK(one->Put("a", "3"));
  EXPECT_OK(one->Commit());
}

TEST_P(IsolationTest, ConcurrentIncrementsAddUp) {
  Put("n", "0");
  constexpr int kThreads = 4, kEach = 100;
  std::atomic<int> conflicts{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int done = 0; done < kEach;) {
        auto transaction = engine_->Begin({.durable = false});
        const int n = std::stoi(*Get(transaction.get(), "n"));
        ASSERT_OK(transaction->Put("n", std::to_string(n + 1)));
        Result<uint64_t> version = transaction->Commit();
        if (version.ok()) {
          ++done;
        } else {
          ASSERT_EQ(CodeOf(version), Code::kConflict);
          ++conflicts;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Read("n"), std::to_string(kThreads * kEach));
}

TEST_P(IsolationTest, DurableCommitsOfManyThreadsShareSyncs) {
  constexpr int kThreads = 8, kEach = 25;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        auto transaction = engine_->Begin();
        ASSERT_OK(transaction->Put(Key(t * 1000 + i), "v"));
        ASSERT_OK(transaction->Commit());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const EngineStats stats = engine_->stats();
  EXPECT_EQ(stats.commits, static_cast<uint64_t>(kThreads * kEach));
  EXPECT_LE(stats.groups, stats.commits);
  EXPECT_EQ(ScanAll(engine_->Begin().get(), "k", "l").size(),
            static_cast<size_t>(kThreads * kEach));
}

// Money moves between accounts; the sum is read by scans that must never see a half-done move.
TEST_P(IsolationTest, TransfersKeepTheSumUnderConcurrentScans) {
  constexpr int kAccounts = 20;
  auto setup = engine_->Begin();
  for (int i = 0; i < kAccounts; ++i) ASSERT_OK(setup->Put(Key(i), "100"));
  ASSERT_OK(setup->Commit());
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string from = Key((i * 7 + t) % kAccounts), to = Key((i * 3 + 1) % kAccounts);
        if (from == to) continue;
        auto transaction = engine_->Begin({.durable = false});
        const int a = std::stoi(*Get(transaction.get(), from));
        const int b = std::stoi(*Get(transaction.get(), to));
        ASSERT_OK(transaction->Put(from, std::to_string(a - 1)));
        ASSERT_OK(transaction->Put(to, std::to_string(b + 1)));
        Result<uint64_t> version = transaction->Commit();
        ASSERT_TRUE(version.ok() || CodeOf(version) == Code::kConflict);
      }
    });
  }
  std::thread scanner([&] {
    while (!stop) {
      auto transaction = engine_->Begin({.read_only = true});
      int sum = 0;
      for (const auto& [key, value] : ScanAll(transaction.get(), "k", "l")) sum += std::stoi(value);
      ASSERT_EQ(sum, kAccounts * 100);
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  scanner.join();
}

}  // namespace
}  // namespace cellar::kv
