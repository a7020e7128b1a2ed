// Transactions larger than their memory. On engines that do not spill the same must hold anyway.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>

#include "engines.h"

namespace cellar::kv {
namespace {

using testing::IsEmpty;

constexpr int kMany = 2000;

class Spill : public EngineTest {
 protected:
  bool spills() const { return GetParam() == EngineKind::kRocksSpilling; }
  size_t SpillFiles() const {
    const std::string path = directory_.store() + "/spill";
    if (!std::filesystem::exists(path)) return 0;
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }
  static std::vector<int> Shuffled(int count) {
    std::vector<int> numbers(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) numbers[static_cast<size_t>(i)] = i;
    std::mt19937 random(42);
    std::shuffle(numbers.begin(), numbers.end(), random);
    return numbers;
  }
};
CELLAR_ENGINE_SUITE(Spill);

TEST_P(Spill, ALargeTransactionIsReadableAndAtomic) {
  Put(Key(5), "old");
  Put(Key(kMany + 5), "old");
  auto transaction = engine_->Begin();
  for (const int i : Shuffled(kMany)) ASSERT_OK(transaction->Put(Key(i), "v" + Key(i)));
  for (int i = 0; i < kMany; i += 10) ASSERT_OK(transaction->Delete(Key(i)));
  for (int i = 1; i < kMany; i += 10) ASSERT_OK(transaction->Put(Key(i), "again"));
  if (spills()) {
    EXPECT_GT(engine_->stats().spilled_runs, 3u);
    EXPECT_GT(transaction->stats().spilled_bytes, 0u);
    EXPECT_GT(SpillFiles(), 3u);
  }
  Pairs expected;
  for (int i = 0; i < kMany; ++i) {
    if (i % 10 != 0) expected.emplace_back(Key(i), i % 10 == 1 ? "again" : "v" + Key(i));
  }
  expected.emplace_back(Key(kMany + 5), "old");
  for (int i = 0; i < kMany; i += 7) {
    const auto value = Get(transaction.get(), Key(i));
    if (i % 10 == 0) {
      EXPECT_EQ(value, std::nullopt);
    } else {
      EXPECT_EQ(value, i % 10 == 1 ? "again" : "v" + Key(i));
    }
  }
  EXPECT_EQ(ScanAll(transaction.get(), "k", "l"), expected);
  EXPECT_EQ(ScanAll(transaction.get(), "k", "l", {.reverse = true}),
            Pairs(expected.rbegin(), expected.rend()));
  EXPECT_EQ(Read(Key(5)), "old");
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(ScanAll(engine_->Begin().get(), "k", "l"), expected);
  EXPECT_EQ(SpillFiles(), 0u);
}

TEST_P(Spill, AscendingLoadsCommitWithoutRewriting) {
  auto transaction = engine_->Begin({.bulk = true});
  for (int i = 0; i < kMany; ++i) ASSERT_OK(transaction->PutIfAbsent(Key(i), "v"));
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(ScanAll(engine_->Begin().get(), "k", "l").size(), static_cast<size_t>(kMany));
  Put(Key(1), "later");
  EXPECT_EQ(Read(Key(1)), "later");
}

// Not enough for a run, and yet not by way of the log.
TEST_P(Spill, LargeValuesBecomeFilesAtTheCommit) {
  Put(Key(3), "old");
  auto transaction = engine_->Begin();
  const std::string large(5000, 'x');
  ASSERT_OK(transaction->Put(Key(3), large));
  EXPECT_EQ(engine_->stats().spilled_runs, 0u);
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(engine_->stats().spilled_runs, spills() ? 1u : 0u);
  EXPECT_EQ(ScanAll(engine_->Begin().get(), "k", "l"), (Pairs{{Key(3), large}}));
}

TEST_P(Spill, AbortLeavesNothing) {
  {
    auto transaction = engine_->Begin();
    for (const int i : Shuffled(kMany)) ASSERT_OK(transaction->Put(Key(i), "v"));
  }
  EXPECT_THAT(ScanAll(engine_->Begin().get(), "k", "l"), IsEmpty());
  EXPECT_EQ(SpillFiles(), 0u);
}

TEST_P(Spill, SavepointsReachAcrossSpilling) {
  auto transaction = engine_->Begin();
  for (int i = 0; i < 500; ++i) ASSERT_OK(transaction->Put(Key(i), "first"));
  const SavepointId savepoint = transaction->Savepoint();
  for (int round = 0; round < 2; ++round) {
    for (int i = 250; i < 1000; ++i) ASSERT_OK(transaction->Put(Key(i), "second"));
    for (int i = 0; i < 100; ++i) ASSERT_OK(transaction->Delete(Key(i)));
    EXPECT_EQ(ScanAll(transaction.get(), "k", "l").size(), 900u);
    EXPECT_EQ(Get(transaction.get(), Key(300)), "second");
    ASSERT_OK(transaction->RollbackTo(savepoint));
    EXPECT_EQ(ScanAll(transaction.get(), "k", "l").size(), 500u);
    EXPECT_EQ(Get(transaction.get(), Key(300)), "first");
    EXPECT_EQ(Get(transaction.get(), Key(50)), "first");
  }
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(ScanAll(engine_->Begin().get(), "k", "l").size(), 500u);
}

TEST_P(Spill, ACursorKeepsItsViewAcrossSpilling) {
  auto transaction = engine_->Begin();
  for (int i = 0; i < 300; ++i) ASSERT_OK(transaction->Put(Key(i), "old"));
  auto cursor = transaction->Scan("k", "l", {.block_bytes = 200, .first_block_bytes = 200});
  ASSERT_OK(cursor);
  Block block;
  int next = 0;
  while (*(*cursor)->NextBlock(&block)) {
    for (size_t i = 0; i < block.size(); ++i, ++next) {
      ASSERT_EQ(block.key(i), Key(next));
      ASSERT_EQ(block.value(i), "old");
      ASSERT_OK(transaction->Put(Key(next) + "x", std::string(50, 'n')));
      ASSERT_OK(transaction->Put(Key(next + 7), "new"));
      ASSERT_OK(transaction->Delete(Key(next)));
    }
  }
  EXPECT_EQ(next, 300);
}

TEST_P(Spill, DeleteRangeCoversSpilledAndStored) {
  for (int i = 0; i < 100; ++i) Put(Key(i), "stored");
  auto transaction = engine_->Begin();
  for (int i = 50; i < 800; ++i) ASSERT_OK(transaction->Put(Key(i), "before"));
  ASSERT_OK(transaction->DeleteRange(Key(20), Key(700)));
  for (int i = 600; i < 1000; ++i) ASSERT_OK(transaction->Put(Key(i), "after"));
  Pairs expected;
  for (int i = 0; i < 20; ++i) expected.emplace_back(Key(i), "stored");
  for (int i = 600; i < 1000; ++i) expected.emplace_back(Key(i), "after");
  EXPECT_EQ(ScanAll(transaction.get(), "k", "l"), expected);
  EXPECT_EQ(Get(transaction.get(), Key(30)), std::nullopt);
  EXPECT_EQ(Get(transaction.get(), Key(60)), std::nullopt);
  EXPECT_EQ(Get(transaction.get(), Key(650)), "after");
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(ScanAll(engine_->Begin().get(), "k", "l"), expected);
}

TEST_P(Spill, DuplicatesAreFoundAgainstStoreAndRuns) {
  Put(Key(kMany / 2), "stored");
  for (const bool bulk : {true, false}) {
    for (const bool ascending : {true, false}) {
      auto transaction = engine_->Begin({.bulk = bulk});
      Status status;
      for (int i : Shuffled(kMany)) {
        static int next = 0;
        if (ascending) i = next++ % kMany;
        status = transaction->PutIfAbsent(Key(i), "v");
        if (!status.ok()) break;
      }
      if (status.ok()) status = transaction->Commit().status();
      EXPECT_EQ(status.code(), Code::kConstraint);
      EXPECT_EQ(transaction->duplicate_key(), Key(kMany / 2));
    }
    auto own = engine_->Begin({.bulk = bulk});
    Status status = own->PutIfAbsent(Key(kMany + 1), "v");
    for (int i = kMany + 2; i < 2 * kMany && status.ok(); ++i)
      status = own->PutIfAbsent(Key(i), "v");
    if (status.ok()) status = own->PutIfAbsent(Key(kMany + 1), "twice");
    if (status.ok()) status = own->Commit().status();
    EXPECT_EQ(status.code(), Code::kConstraint);
    EXPECT_EQ(own->duplicate_key(), Key(kMany + 1));
  }
  EXPECT_EQ(ScanAll(engine_->Begin().get(), "k", "l").size(), 1u);
}

TEST_P(Spill, ARangeDeletionBeforeASpilledKeyDoesNotHideItsDuplicate) {
  auto transaction = engine_->Begin({.bulk = true});
  ASSERT_OK(transaction->DeleteRange("k", "l"));
  ASSERT_OK(transaction->PutIfAbsent(Key(1), "v"));
  for (int i = 2; i < 500; ++i) ASSERT_OK(transaction->PutIfAbsent(Key(i), "v"));
  Status status = transaction->PutIfAbsent(Key(1), "again");
  if (status.ok()) status = transaction->Commit().status();
  EXPECT_EQ(status.code(), Code::kConstraint);
  EXPECT_EQ(transaction->duplicate_key(), Key(1));
}

TEST_P(Spill, ALoadThatChangesOneSystemRecordLeavesTheOthersCurrent) {
  const std::string mine("\0desc-1", 7), other("\0desc-2", 7);
  Put(mine, "1");
  Put(other, "1");
  const uint64_t version = engine_->latest_version();
  auto load = engine_->Begin({.bulk = true});
  ASSERT_OK(load->Put(mine, "2"));
  const SavepointId savepoint = load->Savepoint();
  ASSERT_OK(load->Put(other, "2"));
  for (int i = 0; i < 500; ++i) ASSERT_OK(load->PutIfAbsent(Key(i), "v"));
  ASSERT_OK(load->RollbackTo(savepoint));
  for (int i = 0; i < 500; ++i) ASSERT_OK(load->PutIfAbsent(Key(i), "v"));
  auto reader = engine_->Begin();
  Get(reader.get(), mine);
  ASSERT_OK(reader->Put("own", "v"));
  ASSERT_OK(load->Commit());
  EXPECT_OK(engine_->Begin()->Require(other, version));
  EXPECT_EQ(CodeOf(engine_->Begin()->Require(mine, version)), Code::kConflict);
  EXPECT_EQ(CodeOf(reader->Commit()), Code::kConflict);
  EXPECT_EQ(Read(mine), "2");
  EXPECT_EQ(Read(other), "1");
}

TEST_P(Spill, DeletedThenInsertedAgainIsNoDuplicate) {
  for (int i = 0; i < 300; ++i) Put(Key(i), "old");
  auto transaction = engine_->Begin({.bulk = true});
  for (int i = 0; i < 300; ++i) ASSERT_OK(transaction->Delete(Key(i)));
  for (int i = 0; i < 300; ++i) ASSERT_OK(transaction->PutIfAbsent(Key(i), "new"));
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(Read(Key(123)), "new");
}

// What a load costs to check is counted, since it would not show otherwise.
TEST_P(Spill, ALoadIntoNothingOrBehindTheEndLooksNothingUpByKey) {
  Put("a", "another table before");
  for (int i = 0; i < 500; ++i) Put("x" + Key(i), "another table behind");
  for (int round = 0; round < 3; ++round) {
    for (const bool shuffled : {false, true}) {
      auto load = engine_->Begin({.bulk = true});
      const int first = (2 * round + (shuffled ? 1 : 0)) * kMany;
      for (int i : Shuffled(kMany)) {
        static int next = 0;
        if (!shuffled) i = next++ % kMany;
        ASSERT_OK(load->PutIfAbsent(Key(first + i), "v"));
        ASSERT_OK(load->PutIfAbsent("l" + Key(first + i), "an index of it"));
      }
      EXPECT_EQ(load->stats().trips, 0u);
      ASSERT_OK(load->Commit());
      EXPECT_LE(load->stats().trips, 12u);
    }
  }
  EXPECT_EQ(ScanAll(engine_->Begin().get(), "k", "m").size(), size_t{12} * kMany);
}

TEST_P(Spill, ALoadBetweenKeysReadsAheadOrLooksUpWhicheverIsLess) {
  auto stored = engine_->Begin({.bulk = true});
  for (int i = 0; i < 20 * kMany; ++i) {
    if (i % 200 != 7) ASSERT_OK(stored->Put(Key(i), "v"));
  }
  ASSERT_OK(stored->Commit());
  const auto trips = [&](int step, int count) {
    auto load = engine_->Begin({.bulk = true});
    for (int i = 0; i < count; ++i) {
      EXPECT_OK(load->PutIfAbsent(Key(i * step + 7) + (step % 200 == 0 ? "" : "x"), "v"));
    }
    EXPECT_OK(load->Commit());
    return load->stats().trips;
  };
  EXPECT_LE(trips(1, 2000), 100u);   // a few for every 16 KiB and run
  EXPECT_LE(trips(200, 200), 260u);  // one each, now and then one more
  auto duplicate = engine_->Begin({.bulk = true});
  Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) {
    status =
        duplicate->PutIfAbsent(Key(i * 400 + 90 + (i == 60 ? 0 : 1)) + (i == 60 ? "" : "y"), "v");
  }
  if (status.ok()) status = duplicate->Commit().status();
  EXPECT_EQ(status.code(), Code::kConstraint);
  EXPECT_EQ(duplicate->duplicate_key(), Key(60 * 400 + 90));
}

TEST_P(Spill, ABulkLoadConflictsOnlyWhereItMust) {
  Put("a", "1");
  auto near = engine_->Begin(), far = engine_->Begin({.bulk = true});
  Get(near.get(), Key(10));
  ASSERT_OK(near->Put("own", "v"));
  ASSERT_OK(far->PutIfAbsent("zzzz-other", "v"));
  auto load = engine_->Begin({.bulk = true});
  for (const int i : Shuffled(kMany)) ASSERT_OK(load->PutIfAbsent(Key(i), "v"));
  Put("b", "another table is written meanwhile");
  ASSERT_OK(load->Commit());
  EXPECT_EQ(CodeOf(near->Commit()), Code::kConflict);
  EXPECT_OK(far->Commit());
  auto late = engine_->Begin({.bulk = true});
  for (int i = kMany; i < 2 * kMany; ++i) ASSERT_OK(late->PutIfAbsent(Key(i), "v"));
  Put(Key(kMany + 3), "taken");
  EXPECT_EQ(CodeOf(late->Commit()), Code::kConflict);
}

// Such transactions write straight to files while their keys ascend; what they show must not tell.
TEST_P(Spill, AscendingWritesThatNobodyWaitsForAreReadableAmongOthers) {
  Put(Key(0), "old");
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    auto transaction =
        engine_->Begin({.isolation = Isolation::kSnapshot, .bulk = true, .unmarked_writes = true});
    std::map<std::string, std::string> model{{Key(0), "old"}};
    const auto check = [&] {
      EXPECT_EQ(ScanAll(transaction.get(), "k", "l"), Pairs(model.begin(), model.end()));
    };
    for (int i = 1; i < kMany; ++i) {
      ASSERT_OK(transaction->Put(Key(i), "v"));
      model[Key(i)] = "v";
      if (random() % 500 != 0) continue;
      const std::string key = Key(static_cast<int>(random() % static_cast<unsigned>(i + 1)));
      switch (random() % 6) {
        case 0:
          ASSERT_OK(transaction->Delete(key));
          model.erase(key);
          break;
        case 1:
          ASSERT_OK(transaction->Put(key, "again"));
          model[key] = "again";
          break;
        case 2:
          ASSERT_OK(transaction->DeleteRange(Key(0), key));
          model.erase(model.begin(), model.lower_bound(key));
          break;
        case 3: {
          const SavepointId savepoint = transaction->Savepoint();
          for (int j = 1; j <= kMany; ++j) ASSERT_OK(transaction->Put(Key(i + j), "gone"));
          ASSERT_OK(transaction->RollbackTo(savepoint));
          ASSERT_OK(transaction->ReleaseSavepoint(savepoint));
          break;
        }
        case 4: {
          const auto at = model.find(key);
          EXPECT_EQ(Get(transaction.get(), key),
                    at == model.end() ? std::nullopt : std::optional(at->second));
          break;
        }
        default: {
          auto cursor = transaction->Scan("k", "l", {.block_bytes = 64, .first_block_bytes = 64});
          ASSERT_OK(cursor);
          const Pairs before(model.begin(), model.end());
          Pairs seen;
          Block block;
          for (int j = 1; j <= kMany; ++j) ASSERT_OK(transaction->Put(Key(i + j), "late"));
          while (true) {
            auto more = (*cursor)->NextBlock(&block);
            ASSERT_OK(more);
            if (!*more) break;
            for (size_t j = 0; j < block.size(); ++j)
              seen.emplace_back(block.key(j), block.value(j));
          }
          EXPECT_EQ(seen, before);
          for (int j = 1; j <= kMany; ++j) model[Key(i + j)] = "late";
          break;
        }
      }
      check();
    }
    check();
    if (round % 2 == 0) continue;
    ASSERT_OK(transaction->Commit());
    EXPECT_EQ(ScanAll(engine_->Begin().get(), "k", "l"), Pairs(model.begin(), model.end()));
    auto again = engine_->Begin();
    ASSERT_OK(again->DeleteRange("k", "l"));
    ASSERT_OK(again->Put(Key(0), "old"));
    ASSERT_OK(again->Commit());
  }
}

TEST_P(Spill, AnAscendingLoadThatNobodyWaitsForIsOneRunAndKnowsItsDuplicates) {
  Put(Key(kMany / 2), "old");
  for (const bool with_duplicate : {false, true}) {
    const uint64_t runs = engine_->stats().spilled_runs;
    auto transaction =
        engine_->Begin({.isolation = Isolation::kSnapshot, .bulk = true, .unmarked_writes = true});
    for (int i = 0; i < kMany; ++i) {
      if (i == kMany / 2 && !with_duplicate) continue;
      ASSERT_OK(transaction->PutIfAbsent(Key(i), "v"));
    }
    if (spills()) {
      EXPECT_EQ(engine_->stats().spilled_runs, runs + 1);
    }
    auto version = transaction->Commit();
    if (with_duplicate) {
      EXPECT_EQ(version.status().code(), Code::kConstraint);
      EXPECT_EQ(transaction->duplicate_key(), Key(kMany / 2));
    } else {
      ASSERT_OK(version);
      EXPECT_EQ(Read(Key(kMany / 2)), "old");
      EXPECT_EQ(Read(Key(1)), "v");
      auto cleanup = engine_->Begin();
      for (int i = 0; i < kMany; ++i) {
        if (i != kMany / 2) ASSERT_OK(cleanup->Delete(Key(i)));
      }
      ASSERT_OK(cleanup->Commit());
    }
    EXPECT_EQ(SpillFiles(), 0u);
  }
}

}  // namespace
}  // namespace cellar::kv
