// Reading and writing within one transaction and from one to the next.
#include <gmock/gmock.h>

#include "engines.h"

namespace cellar::kv {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class Basic : public EngineTest {};
CELLAR_ENGINE_SUITE(Basic);

TEST_P(Basic, CommittedWritesAreRead) {
  Put("a", "1");
  EXPECT_EQ(Read("a"), "1");
  EXPECT_EQ(Read("b"), std::nullopt);
}

TEST_P(Basic, OwnWritesShowBeforeCommitAndVanishOnAbort) {
  Put("a", "1");
  auto transaction = engine_->Begin();
  ASSERT_OK(transaction->Put("a", "2"));
  ASSERT_OK(transaction->Put("b", "3"));
  EXPECT_EQ(Get(transaction.get(), "a"), "2");
  ASSERT_OK(transaction->Delete("a"));
  EXPECT_EQ(Get(transaction.get(), "a"), std::nullopt);
  EXPECT_EQ(Get(transaction.get(), "b"), "3");
  EXPECT_EQ(Read("a"), "1");
  EXPECT_EQ(Read("b"), std::nullopt);
  transaction->Abort();
  EXPECT_EQ(Read("a"), "1");
  EXPECT_EQ(CodeOf(transaction->Put("c", "")), Code::kInvalid);
}

TEST_P(Basic, EmptyAndBinaryValuesSurvive) {
  const std::string binary("\0\xff\0", 3);
  Put("empty", "");
  Put(binary, binary);
  EXPECT_EQ(Read("empty"), "");
  EXPECT_EQ(Read(binary), binary);
}

TEST_P(Basic, MultiGetMixesStoredAndOwn) {
  Put("a", "1");
  Put("b", "2");
  auto transaction = engine_->Begin();
  ASSERT_OK(transaction->Put("c", "3"));
  ASSERT_OK(transaction->Delete("b"));
  const std::vector<std::string_view> keys{"c", "a", "b", "d"};
  std::vector<PinnedValue> values(4);
  bool found[4];
  ASSERT_OK(transaction->MultiGet(keys, values, found));
  EXPECT_THAT(found, ElementsAre(true, true, false, false));
  EXPECT_EQ(values[0].view(), "3");
  EXPECT_EQ(values[1].view(), "1");
}

TEST_P(Basic, PinnedValuesOutliveMovesAndLaterWrites) {
  const std::string big(100000, 'x');
  Put("big", big);
  Put("small", "s");
  auto transaction = engine_->Begin({.read_only = true});
  std::vector<PinnedValue> values(1);
  ASSERT_OK(transaction->Get("small", &values[0]));
  for (int i = 0; i < 10; ++i) values.emplace_back();
  EXPECT_EQ(values[0].view(), "s");
  ASSERT_OK(transaction->Get("big", &values[1]));
  Put("big", "new");
  PinnedValue moved = std::move(values[1]);
  EXPECT_EQ(moved.view(), big);
  values[0].Assign("own");
  moved = std::move(values[0]);
  EXPECT_EQ(moved.view(), "own");
}

TEST_P(Basic, ScansAreHalfOpenAndOrdered) {
  for (const char* key : {"a", "b", "b\1", "c", "d"}) Put(key, key);
  auto transaction = engine_->Begin({.read_only = true});
  EXPECT_THAT(ScanAll(transaction.get(), "b", "d"),
              ElementsAre(Pair("b", "b"), Pair("b\1", "b\1"), Pair("c", "c")));
  EXPECT_THAT(ScanAll(transaction.get(), "b", "d", {.reverse = true}),
              ElementsAre(Pair("c", "c"), Pair("b\1", "b\1"), Pair("b", "b")));
  EXPECT_THAT(ScanAll(transaction.get(), "c", ""), ElementsAre(Pair("c", "c"), Pair("d", "d")));
  EXPECT_THAT(ScanAll(transaction.get(), "b", "b"), IsEmpty());
  EXPECT_THAT(ScanAll(transaction.get(), "c", "b"), IsEmpty());
  EXPECT_THAT(ScanAll(transaction.get(), "a", "z", {.keys_only = true, .limit = 2}),
              ElementsAre(Pair("a", ""), Pair("b", "")));
}

TEST_P(Basic, ScansMergeOwnWrites) {
  for (int i = 0; i < 100; i += 2) Put(Key(i), "old");
  auto transaction = engine_->Begin();
  Pairs expected;
  for (int i = 0; i < 100; ++i) {
    if (i % 3 == 0) ASSERT_OK(transaction->Put(Key(i), "new"));
    if (i % 10 == 4) ASSERT_OK(transaction->Delete(Key(i)));
    if (i % 10 == 4) continue;
    if (i % 3 == 0)
      expected.emplace_back(Key(i), "new");
    else if (i % 2 == 0)
      expected.emplace_back(Key(i), "old");
  }
  const Pairs backwards(expected.rbegin(), expected.rend());
  for (const size_t block : {1, 40, 64 << 10}) {
    const ScanOptions options{.block_bytes = block, .first_block_bytes = block};
    EXPECT_EQ(ScanAll(transaction.get(), "k", "l", options), expected);
    ScanOptions reverse = options;
    reverse.reverse = true;
    EXPECT_EQ(ScanAll(transaction.get(), "k", "l", reverse), backwards);
    for (const uint64_t limit : {1, 2, 7, 50}) {
      ScanOptions limited = options;
      limited.limit = limit;
      const Pairs some = ScanAll(transaction.get(), "k", "l", limited);
      EXPECT_EQ(some, Pairs(expected.begin(), expected.begin() + static_cast<ptrdiff_t>(limit)));
    }
  }
}

TEST_P(Basic, ACursorDoesNotSeeLaterOwnWrites) {
  for (int i = 0; i < 50; ++i) Put(Key(i), "old");
  auto transaction = engine_->Begin();
  ASSERT_OK(transaction->Put(Key(10), "first"));
  auto cursor = transaction->Scan("k", "l", {.block_bytes = 64, .first_block_bytes = 64});
  ASSERT_OK(cursor);
  Block block;
  int next = 0;
  while (*(*cursor)->NextBlock(&block)) {
    for (size_t i = 0; i < block.size(); ++i, ++next) {
      EXPECT_EQ(block.key(i), Key(next));
      EXPECT_EQ(block.value(i), next == 10 ? "first" : "old");
      // As an UPDATE that moves every row ahead of the scan, and touches the one just read.
      ASSERT_OK(transaction->Put(Key(next) + "x", "moved"));
      ASSERT_OK(transaction->Put(Key(next + 5), "changed"));
      ASSERT_OK(transaction->Delete(Key(next)));
    }
  }
  EXPECT_EQ(next, 50);
}

TEST_P(Basic, DeleteRangeHidesStoredAndOwnButNotLaterWrites) {
  for (int i = 0; i < 10; ++i) Put(Key(i), "old");
  auto transaction = engine_->Begin();
  ASSERT_OK(transaction->Put(Key(3), "own"));
  ASSERT_OK(transaction->DeleteRange(Key(2), Key(8)));
  ASSERT_OK(transaction->Put(Key(5), "later"));
  EXPECT_EQ(Get(transaction.get(), Key(3)), std::nullopt);
  EXPECT_EQ(Get(transaction.get(), Key(5)), "later");
  const Pairs expected{
      {Key(0), "old"}, {Key(1), "old"}, {Key(5), "later"}, {Key(8), "old"}, {Key(9), "old"}};
  EXPECT_EQ(ScanAll(transaction.get(), "k", "l"), expected);
  EXPECT_EQ(ScanAll(transaction.get(), "k", "l", {.reverse = true}),
            Pairs(expected.rbegin(), expected.rend()));
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(ScanAll(engine_->Begin().get(), "k", "l"), expected);
  auto all = engine_->Begin();
  ASSERT_OK(all->DeleteRange("k", ""));
  ASSERT_OK(all->Commit());
  EXPECT_THAT(ScanAll(engine_->Begin().get(), "", ""),
              testing::Each(Pair(testing::Lt("k"), testing::_)));
}

TEST_P(Basic, SavepointsUndoWrites) {
  Put("a", "0");
  auto transaction = engine_->Begin();
  ASSERT_OK(transaction->Put("a", "1"));
  const SavepointId outer = transaction->Savepoint();
  ASSERT_OK(transaction->Put("a", "2"));
  ASSERT_OK(transaction->Put("b", "2"));
  const SavepointId inner = transaction->Savepoint();
  ASSERT_OK(transaction->Delete("a"));
  ASSERT_OK(transaction->DeleteRange("b", "c"));
  EXPECT_EQ(Get(transaction.get(), "a"), std::nullopt);
  EXPECT_EQ(Get(transaction.get(), "b"), std::nullopt);
  ASSERT_OK(transaction->RollbackTo(inner));
  EXPECT_EQ(Get(transaction.get(), "a"), "2");
  EXPECT_EQ(Get(transaction.get(), "b"), "2");
  ASSERT_OK(transaction->RollbackTo(outer));
  EXPECT_EQ(Get(transaction.get(), "a"), "1");
  EXPECT_EQ(Get(transaction.get(), "b"), std::nullopt);
  EXPECT_EQ(CodeOf(transaction->RollbackTo(inner)), Code::kNotFound);
  ASSERT_OK(transaction->Put("b", "3"));
  ASSERT_OK(transaction->ReleaseSavepoint(outer));
  EXPECT_EQ(CodeOf(transaction->RollbackTo(outer)), Code::kNotFound);
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(Read("a"), "1");
  EXPECT_EQ(Read("b"), "3");
}

TEST_P(Basic, PutIfAbsentNamesTheDuplicate) {
  Put("a", "1");
  for (const bool bulk : {false, true}) {
    auto transaction = engine_->Begin({.bulk = bulk});
    ASSERT_OK(transaction->PutIfAbsent("b", "2"));
    Status status = transaction->PutIfAbsent("a", "2");
    if (status.ok()) status = transaction->Commit().status();
    EXPECT_EQ(status.code(), Code::kConstraint);
    EXPECT_EQ(StateOf(status), "23505");
    EXPECT_EQ(transaction->duplicate_key(), "a");
    transaction->Abort();
    EXPECT_EQ(Read("a"), "1");
    EXPECT_EQ(Read("b"), std::nullopt);
  }
}

TEST_P(Basic, PutIfAbsentAfterOwnDeleteIsNoDuplicate) {
  Put("a", "1");
  for (const bool bulk : {false, true}) {
    auto transaction = engine_->Begin({.bulk = bulk});
    ASSERT_OK(transaction->Delete("a"));
    ASSERT_OK(transaction->PutIfAbsent("a", "2"));
    EXPECT_EQ(CodeOf(transaction->PutIfAbsent("a", "3")), Code::kConstraint);
    ASSERT_OK(transaction->Commit());
    EXPECT_EQ(Read("a"), "2");
  }
}

TEST_P(Basic, ReplacingAnUnprovenKeyStillFindsTheDuplicate) {
  Put("a", "1");
  auto transaction = engine_->Begin({.bulk = true});
  Status status = transaction->PutIfAbsent("a", "2");
  if (status.ok()) status = transaction->Delete("a");
  if (status.ok()) status = transaction->Commit().status();
  EXPECT_EQ(status.code(), Code::kConstraint);
}

TEST_P(Basic, LimitsAreErrors) {
  auto transaction = engine_->Begin();
  const std::string long_key(engine_->limits().max_key_bytes + 1, 'k');
  EXPECT_EQ(StateOf(transaction->Put(long_key, "")), "54000");
  auto reader = engine_->Begin({.read_only = true});
  EXPECT_EQ(StateOf(reader->Put("a", "")), "25006");
}

TEST_P(Basic, TripsAreCounted) {
  for (int i = 0; i < 10; ++i) Put(Key(i), "v");
  auto transaction = engine_->Begin();
  EXPECT_EQ(transaction->stats().trips, 0u);
  Get(transaction.get(), Key(1));
  EXPECT_EQ(transaction->stats().trips, 1u);
  ScanAll(transaction.get(), Key(0), Key(5));
  EXPECT_LE(transaction->stats().trips, 3u);
  ASSERT_OK(transaction->Put("own", "v"));
  const uint64_t before = transaction->stats().trips;
  Get(transaction.get(), "own");
  EXPECT_EQ(transaction->stats().trips, before);
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(transaction->stats().trips, before + 1);
  EXPECT_GE(engine_->stats().trips, before + 1);
}

TEST_P(Basic, VersionsGrowWithCommits) {
  const uint64_t before = engine_->latest_version();
  auto transaction = engine_->Begin();
  ASSERT_OK(transaction->Put("a", "1"));
  Result<uint64_t> version = transaction->Commit();
  ASSERT_OK(version);
  EXPECT_GT(*version, before);
  EXPECT_EQ(engine_->latest_version(), *version);
  auto reader = engine_->Begin({.read_only = true});
  EXPECT_EQ(reader->snapshot_version(), *version);
  Put("a", "2");
  EXPECT_EQ(Get(reader.get(), "a"), "1");
  EXPECT_EQ(*reader->Commit(), *version);
}

TEST_P(Basic, SizesAndSplitPointsFollowTheData) {
  auto transaction = engine_->Begin();
  for (int i = 0; i < 3000; ++i) ASSERT_OK(transaction->Put(Key(i), std::string(100, 'v')));
  ASSERT_OK(transaction->Commit());
  EXPECT_GT(engine_->ApproximateBytes(Key(0), Key(3000)), 10000u);
  const std::vector<std::string> points = engine_->SplitPoints(Key(0), Key(3000), 4);
  EXPECT_THAT(points, testing::SizeIs(testing::AllOf(testing::Ge(1u), testing::Le(3u))));
  EXPECT_TRUE(std::is_sorted(points.begin(), points.end()));
  for (const std::string& point : points) {
    EXPECT_GT(point, Key(0));
    EXPECT_LT(point, Key(3000));
  }
  EXPECT_OK(engine_->Compact("", ""));
  EXPECT_OK(engine_->Sync());
  EXPECT_EQ(ScanAll(engine_->Begin().get(), "k", "l").size(), 3000u);
}

TEST_P(Basic, AClosedEngineIsUnavailable) {
  ASSERT_OK(engine_->Close());
  PinnedValue value;
  EXPECT_EQ(CodeOf(engine_->Begin()->Get("a", &value)), Code::kUnavailable);
  EXPECT_EQ(CodeOf(engine_->Begin()->Put("a", "b")), Code::kUnavailable);
  EXPECT_EQ(CodeOf(engine_->Compact("", "")), Code::kUnavailable);
}

}  // namespace
}  // namespace cellar::kv
