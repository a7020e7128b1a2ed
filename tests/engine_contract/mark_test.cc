// Conflicts that callers add by name, and writes that count for nobody.
#include <gmock/gmock.h>

#include "engines.h"

namespace cellar::kv {
namespace {

constexpr TransactionOptions kSnapshotIsolation{.isolation = Isolation::kSnapshot};
constexpr TransactionOptions kUnmarked{.unmarked_writes = true};

class Mark : public EngineTest {
 protected:
  // Enough to spill on the engine that does.
  void WriteMuch(Transaction* transaction) {
    for (int i = 0; i < 400; ++i) ASSERT_OK(transaction->Put("m" + Key(i), "v"));
  }
};
CELLAR_ENGINE_SUITE(Mark);

TEST_P(Mark, AKeyThatIsNamedConflictsAsIfItHadBeenRead) {
  for (const bool present : {false, true}) {
    if (present) Put("a", "1");
    auto changed = engine_->Begin(), untouched = engine_->Begin();
    ASSERT_OK(changed->AddReadConflict("a"));
    ASSERT_OK(untouched->AddReadConflict("b"));
    EXPECT_EQ(changed->stats().trips, 0u);
    ASSERT_OK(changed->Put("own", "v"));
    ASSERT_OK(untouched->Put("other", "v"));
    Put("a", "2");
    const Result<uint64_t> refused = changed->Commit();
    EXPECT_EQ(CodeOf(refused), Code::kConflict);
    EXPECT_EQ(StateOf(refused), "40001");
    EXPECT_OK(untouched->Commit());
  }
}

TEST_P(Mark, ANamedKeyCountsOnlyWhereReadsAreTracked) {
  auto one = engine_->Begin(kSnapshotIsolation);
  ASSERT_OK(one->AddReadConflict("a"));
  ASSERT_OK(one->Put("own", "v"));
  Put("a", "2");
  EXPECT_OK(one->Commit());
  auto reader = engine_->Begin({.read_only = true});
  ASSERT_OK(reader->AddReadConflict("a"));
  Put("a", "3");
  EXPECT_OK(reader->Commit());
}

TEST_P(Mark, WhatIsNamedAfterAReadWithoutSnapshotIsNotForgotten) {
  for (const bool range : {false, true}) {
    Put("a", "1");
    auto one = engine_->Begin({.autocommit = true});
    EXPECT_EQ(Get(one.get(), "a"), "1");
    ASSERT_OK(range ? one->AddReadConflict("f", "g") : one->AddReadConflict("foo"));
    Put("foo", "changed");
    Get(one.get(), "c");  // takes the snapshot
    ASSERT_OK(one->Put("own", "v"));
    EXPECT_EQ(CodeOf(one->Commit()), Code::kConflict);
  }
}

TEST_P(Mark, AWriteConflictRefusesPointAndRangeReaders) {
  for (const bool much : {false, true}) {
    Put(Key(1), "v");
    auto point = engine_->Begin(), absent = engine_->Begin(), range = engine_->Begin(),
         named = engine_->Begin(), bulk = engine_->Begin({.bulk = true}), open = engine_->Begin();
    Get(point.get(), Key(1));
    Get(absent.get(), Key(2));
    ScanAll(range.get(), Key(0), Key(5));
    ASSERT_OK(named->AddReadConflict(Key(3)));
    Get(bulk.get(), Key(1));
    auto cursor = open->Scan(Key(8), "l");
    ASSERT_OK(cursor);
    Block block;
    ASSERT_OK((*cursor)->NextBlock(&block));
    int i = 0;
    for (Transaction* each :
         {point.get(), absent.get(), range.get(), named.get(), bulk.get(), open.get()}) {
      ASSERT_OK(each->Put("own" + std::to_string(i++), "v"));
    }
    auto writer = engine_->Begin();
    ASSERT_OK(writer->AddWriteConflict(Key(0), Key(9)));
    if (much) WriteMuch(writer.get());
    ASSERT_OK(writer->Put("elsewhere", "v"));
    ASSERT_OK(writer->Commit());
    for (Transaction* each :
         {point.get(), absent.get(), range.get(), named.get(), bulk.get(), open.get()}) {
      const Result<uint64_t> refused = each->Commit();
      EXPECT_EQ(CodeOf(refused), Code::kConflict);
      EXPECT_EQ(StateOf(refused), "40001");
    }
    EXPECT_EQ(Read(Key(1)), "v") << "nothing is deleted";
    EXPECT_EQ(Read("elsewhere"), "v");
  }
}

TEST_P(Mark, AWriteConflictLeavesRangesElsewhereAlone) {
  auto before = engine_->Begin(), after = engine_->Begin(), bulk = engine_->Begin({.bulk = true});
  ScanAll(before.get(), "a", Key(0));
  ScanAll(after.get(), Key(9), "z");
  Get(bulk.get(), "z");
  ASSERT_OK(before->Put("1", "v"));
  ASSERT_OK(after->Put("2", "v"));
  ASSERT_OK(bulk->Put("3", "v"));
  auto writer = engine_->Begin();
  ASSERT_OK(writer->AddWriteConflict(Key(0), Key(9)));
  ASSERT_OK(writer->AddWriteConflict(Key(9), Key(9)));
  ASSERT_OK(writer->Put("0", "v"));
  ASSERT_OK(writer->Commit());
  EXPECT_OK(before->Commit());
  EXPECT_OK(after->Commit());
  EXPECT_OK(bulk->Commit());
}

TEST_P(Mark, AWriteConflictIsAWriteToSnapshotIsolation) {
  for (const bool much : {false, true}) {
    // Somebody who writes there and comes later loses.
    auto late = engine_->Begin(kSnapshotIsolation);
    Get(late.get(), "x");
    ASSERT_OK(late->Put(Key(5), "late"));
    auto writer = engine_->Begin(kSnapshotIsolation);
    ASSERT_OK(writer->AddWriteConflict(Key(0), Key(9)));
    if (much) WriteMuch(writer.get());
    ASSERT_OK(writer->Put(much ? "y1" : "y0", "v"));
    ASSERT_OK(writer->Commit());
    EXPECT_EQ(CodeOf(late->Commit()), Code::kConflict);
    // And wins when it comes first.
    auto second = engine_->Begin(kSnapshotIsolation);
    Get(second.get(), "x");
    ASSERT_OK(second->AddWriteConflict(Key(0), Key(9)));
    if (much) WriteMuch(second.get());
    ASSERT_OK(second->Put("z", "v"));
    Put(Key(5), "first");
    EXPECT_EQ(CodeOf(second->Commit()), Code::kConflict);
    EXPECT_EQ(Read("z"), std::nullopt);
  }
}

TEST_P(Mark, AWriteConflictWithoutAWriteIsNone) {
  auto one = engine_->Begin();
  Get(one.get(), "a");
  ASSERT_OK(one->Put("own", "v"));
  auto idle = engine_->Begin();
  ASSERT_OK(idle->AddWriteConflict("a", "b"));
  EXPECT_OK(idle->Commit());
  EXPECT_OK(one->Commit());
  auto reader = engine_->Begin({.read_only = true});
  EXPECT_EQ(StateOf(reader->AddWriteConflict("a", "b")), "25006");
}

TEST_P(Mark, AWriteConflictCountsWithRequire) {
  Put("schema", "1");
  const uint64_t version = engine_->latest_version();
  auto one = engine_->Begin();
  ASSERT_OK(one->Require("schema", version));
  ASSERT_OK(one->Put("own", "v"));
  auto writer = engine_->Begin();
  ASSERT_OK(writer->AddWriteConflict("s", "t"));
  ASSERT_OK(writer->Put("x", "v"));
  ASSERT_OK(writer->Commit());
  EXPECT_EQ(CodeOf(one->Commit()), Code::kConflict);
}

// A sealer moves the rows of [k0, k9) to a page and removes them from the delta.
class Sealing : public Mark {
 protected:
  std::unique_ptr<Transaction> ReadDelta() {
    auto sealer = engine_->Begin(kUnmarked);
    ScanAll(sealer.get(), Key(0), Key(9));
    return sealer;
  }
  void WritePage(Transaction* sealer, bool much) {
    ASSERT_OK(sealer->DeleteRange(Key(0), Key(9)));
    ASSERT_OK(sealer->Put("page", "v"));
    if (much) WriteMuch(sealer);
  }
};
CELLAR_ENGINE_SUITE(Sealing);

TEST_P(Sealing, DisturbsNoReader) {
  for (const bool much : {false, true}) {
    for (int i = 0; i < 9; ++i) Put(Key(i), "row");
    auto point = engine_->Begin(), absent = engine_->Begin(), range = engine_->Begin(),
         page = engine_->Begin(), snapshot = engine_->Begin(kSnapshotIsolation),
         single = engine_->Begin({.autocommit = true});
    Get(point.get(), Key(1));
    Get(absent.get(), Key(1) + "x");
    ScanAll(range.get(), Key(0), Key(9));
    Get(page.get(), "page");
    Get(single.get(), Key(1));
    ASSERT_OK(snapshot->Put(Key(2), "new"));
    int i = 0;
    for (Transaction* each : {point.get(), absent.get(), range.get(), page.get(), single.get()}) {
      ASSERT_OK(each->Put("own" + std::to_string(i++), "v"));
    }
    auto sealer = ReadDelta();
    WritePage(sealer.get(), much);
    ASSERT_OK(sealer->Commit());
    EXPECT_EQ(Read(Key(1)), std::nullopt);
    EXPECT_EQ(Read("page"), "v");
    EXPECT_EQ(ScanAll(point.get(), Key(0), Key(9)).size(), 9u) << "snapshots stay as they were";
    for (Transaction* each :
         {point.get(), absent.get(), range.get(), page.get(), snapshot.get(), single.get()}) {
      EXPECT_OK(each->Commit());
    }
    EXPECT_EQ(Read(Key(2)), "new") << "a write that commits later is above the deletion";
  }
}

TEST_P(Sealing, LosesToAUserWhoWroteWhatItRead) {
  for (const bool much : {false, true}) {
    for (const bool by_key : {false, true}) {
      for (int i = 0; i < 9; ++i) Put(Key(i), "row");
      // A changed row, a new row, and a tombstone.
      for (const char* what : {"changed", "new", "removed"}) {
        auto user = engine_->Begin();
        const std::string key = std::string_view(what) == "new" ? Key(3) + "x" : Key(3);
        Get(user.get(), key);
        ASSERT_OK(user->Put(key, what));
        auto sealer = ReadDelta();
        if (by_key) {
          for (int i = 0; i < 9; ++i) ASSERT_OK(sealer->Delete(Key(i)));
          ASSERT_OK(sealer->Put("page", "stale"));
          if (much) WriteMuch(sealer.get());
        } else {
          WritePage(sealer.get(), much);
        }
        ASSERT_OK(user->Commit());
        const Result<uint64_t> refused = sealer->Commit();
        EXPECT_EQ(CodeOf(refused), Code::kConflict) << what;
        EXPECT_EQ(StateOf(refused), "40001");
        EXPECT_EQ(Read(key), what);
        EXPECT_EQ(Read("page"), std::nullopt);
      }
    }
  }
}

TEST_P(Sealing, LosesWhenOnlyKeysWereNamed) {
  Put(Key(1), "row");
  auto sealer = engine_->Begin(kUnmarked);
  ASSERT_OK(sealer->AddReadConflict(Key(1)));
  ASSERT_OK(sealer->Delete(Key(1)));
  Put(Key(1), "changed");
  EXPECT_EQ(CodeOf(sealer->Commit()), Code::kConflict);
}

TEST_P(Sealing, WinsOverAUserWhoHasNotCommittedAndBothCount) {
  for (int i = 0; i < 9; ++i) Put(Key(i), "row");
  auto user = engine_->Begin();
  EXPECT_EQ(Get(user.get(), Key(3)), "row");
  ASSERT_OK(user->Put(Key(3), "changed"));
  auto sealer = ReadDelta();
  WritePage(sealer.get(), false);
  ASSERT_OK(sealer->Commit());
  ASSERT_OK(user->Commit());
  EXPECT_EQ(Read(Key(3)), "changed");
  EXPECT_EQ(Read(Key(4)), std::nullopt);
  EXPECT_EQ(ScanAll(engine_->Begin().get(), Key(0), Key(9)).size(), 1u);
}

TEST_P(Sealing, UsersStillConflictWithEachOtherAroundIt) {
  for (int i = 0; i < 9; ++i) Put(Key(i), "row");
  auto one = engine_->Begin(), two = engine_->Begin();
  Get(one.get(), Key(3));
  Get(two.get(), Key(3));
  ASSERT_OK(one->Put(Key(3), "one"));
  ASSERT_OK(two->Put(Key(3), "two"));
  auto sealer = ReadDelta();
  WritePage(sealer.get(), false);
  ASSERT_OK(sealer->Commit());
  ASSERT_OK(one->Commit());
  EXPECT_EQ(CodeOf(two->Commit()), Code::kConflict);
  EXPECT_EQ(Read(Key(3)), "one");
}

TEST_P(Sealing, MayAddAWriteConflictThatCounts) {
  for (const bool much : {false, true}) {
    auto one = engine_->Begin(), elsewhere = engine_->Begin();
    ScanAll(one.get(), Key(0), Key(9));
    ScanAll(elsewhere.get(), "x", "y");
    ASSERT_OK(one->Put("own", "v"));
    ASSERT_OK(elsewhere->Put("other", "v"));
    auto sealer = engine_->Begin(kUnmarked);
    if (much) WriteMuch(sealer.get());
    ASSERT_OK(sealer->Put("page", "v"));
    ASSERT_OK(sealer->AddWriteConflict(Key(5), Key(6)));
    ASSERT_OK(sealer->Commit());
    EXPECT_EQ(CodeOf(one->Commit()), Code::kConflict);
    EXPECT_OK(elsewhere->Commit());
  }
}

TEST_P(Sealing, BetweenTwoReadsOfAnAutocommitTransactionItAsksForARerun) {
  Put(Key(1), "row");
  for (const bool absent : {false, true}) {
    auto reader = engine_->Begin({.read_only = true, .autocommit = true});
    EXPECT_EQ(Get(reader.get(), absent ? "nothing" : Key(1)).has_value(), !absent);
    auto sealer = ReadDelta();
    ASSERT_OK(sealer->Delete(Key(1)));
    ASSERT_OK(sealer->Put("page", "row"));
    ASSERT_OK(sealer->Commit());
    PinnedValue value;
    EXPECT_EQ(CodeOf(reader->Get("page", &value)), Code::kConflict);
    auto again = engine_->Begin({.read_only = true});
    EXPECT_EQ(Get(again.get(), Key(1)), std::nullopt);
    EXPECT_EQ(Get(again.get(), "page"), "row");
    Put(Key(1), "row");
  }
}

// Commits too large to be remembered key by key: of two tables, what lies between them is nobody's
// business but its readers'.
TEST_P(Mark, ALargeCommitConflictsOnlyInTheTablesThatItWrites) {
  // Beyond what spills, and what is joined to ranges.
  for (const int rows : {400, GetParam() == EngineKind::kRocksSpilling ? 4000 : 60000}) {
    std::string tag = std::to_string(rows);
    auto other = engine_->Begin(), point = engine_->Begin(), range = engine_->Begin();
    ScanAll(other.get(), "t5", "t6");
    Get(other.get(), "t5" + Key(3));
    Get(other.get(), std::string("\1", 1));
    Get(point.get(), "t9" + Key(7));
    ScanAll(range.get(), "t1" + Key(5), "t1" + Key(9));
    auto large = engine_->Begin();
    ASSERT_OK(large->Put(std::string("\0job", 4) + tag, "v"));
    for (const char* table : {"t1", "t9"}) {
      for (int row = 0; row < rows; ++row) ASSERT_OK(large->Put(table + Key(row), tag));
    }
    ASSERT_OK(large->Commit());
    int i = 0;
    for (Transaction* each : {other.get(), point.get(), range.get()}) {
      ASSERT_OK(each->Put("own" + std::to_string(i++), "v"));
    }
    EXPECT_OK(other->Commit());
    EXPECT_EQ(CodeOf(point->Commit()), Code::kConflict);
    EXPECT_EQ(CodeOf(range->Commit()), Code::kConflict);
  }
}

}  // namespace
}  // namespace cellar::kv
