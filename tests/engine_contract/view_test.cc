// Cursor::NextView: pair by pair it reads and tracks what NextBlock does.
#include <gmock/gmock.h>

#include "engines.h"

namespace cellar::kv {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class View : public EngineTest {
 protected:
  // Checks each view until the next call, as the contract allows.
  static Pairs Drain(Cursor* cursor, size_t most = SIZE_MAX) {
    Pairs pairs;
    std::string_view key, value;
    while (pairs.size() < most) {
      const Result<bool> more = cursor->NextView(&key, &value);
      if (!more.ok()) ADD_FAILURE() << more.status().ToString();
      if (!more.ok() || !*more) break;
      pairs.emplace_back(key, value);
    }
    return pairs;
  }
  static Pairs Views(Transaction* transaction, std::string_view start, std::string_view end,
                     const ScanOptions& options = {}) {
    auto cursor = transaction->Scan(start, end, options);
    if (!cursor.ok()) ADD_FAILURE() << cursor.status().ToString();
    if (!cursor.ok()) return {};
    Pairs pairs = Drain(cursor->get());
    EXPECT_THAT(Drain(cursor->get()), IsEmpty()) << "the end stays the end";
    return pairs;
  }
  // In all directions and lengths, views are what blocks hold.
  static void ExpectSameAsBlocks(Transaction* transaction) {
    for (const bool reverse : {false, true}) {
      for (const bool keys_only : {false, true}) {
        for (const uint64_t limit : {0, 1, 7, 100000}) {
          for (const char* start : {"", "k", "k00000050", "z"}) {
            for (const char* end : {"", "k00000010", "k00000090", "l"}) {
              const ScanOptions options{
                  .reverse = reverse, .keys_only = keys_only, .limit = limit, .block_bytes = 300};
              ASSERT_EQ(Views(transaction, start, end, options),
                        ScanAll(transaction, start, end, options))
                  << start << " to " << end << (reverse ? " reverse" : "") << " limit " << limit;
            }
          }
        }
      }
    }
  }
};
CELLAR_ENGINE_SUITE(View);

TEST_P(View, EqualsBlocksOnWhatIsStored) {
  for (int i = 0; i < 100; i += 2) Put(Key(i), "v" + Key(i));
  Put(Key(40), std::string(40000, 'x'));
  ExpectSameAsBlocks(engine_->Begin({.read_only = true}).get());
  ExpectSameAsBlocks(engine_->Begin().get());
  ASSERT_OK(engine_->Compact("", ""));
  ExpectSameAsBlocks(engine_->Begin().get());
}

TEST_P(View, EqualsBlocksWithOwnWrites) {
  for (int i = 0; i < 100; i += 2) Put(Key(i), "old");
  auto transaction = engine_->Begin();
  for (int i = 0; i < 100; i += 3) ASSERT_OK(transaction->Put(Key(i), "new"));
  for (int i = 0; i < 100; i += 10) ASSERT_OK(transaction->Delete(Key(i)));
  ExpectSameAsBlocks(transaction.get());
  EXPECT_EQ(Views(transaction.get(), Key(2), Key(5)),
            (Pairs{{Key(2), "old"}, {Key(3), "new"}, {Key(4), "old"}}));
}

TEST_P(View, EqualsBlocksWithOwnRangeDeletions) {
  for (int i = 0; i < 100; ++i) Put(Key(i), "old");
  auto transaction = engine_->Begin();
  ASSERT_OK(transaction->Put(Key(30), "hidden"));
  ASSERT_OK(transaction->DeleteRange(Key(20), Key(60)));
  ASSERT_OK(transaction->Put(Key(40), "later"));
  ExpectSameAsBlocks(transaction.get());
  EXPECT_EQ(Views(transaction.get(), Key(19), Key(61)),
            (Pairs{{Key(19), "old"}, {Key(40), "later"}, {Key(60), "old"}}));
}

TEST_P(View, EqualsBlocksWithSpilledRuns) {
  for (int i = 0; i < 100; i += 2) Put(Key(i), "old");
  auto transaction = engine_->Begin();
  for (int i = 0; i < 1500; ++i) ASSERT_OK(transaction->Put(Key(i * 7 % 1500), "new"));
  for (int i = 0; i < 1500; i += 5) ASSERT_OK(transaction->Delete(Key(i)));
  ASSERT_OK(transaction->DeleteRange(Key(60), Key(1400)));
  if (GetParam() == EngineKind::kRocksSpilling) {
    EXPECT_GT(engine_->stats().spilled_runs, 1u);
  }
  ExpectSameAsBlocks(transaction.get());
  EXPECT_EQ(Views(transaction.get(), "k", "l").size(), 48u + 80u);
}

TEST_P(View, DoesNotSeeLaterOwnWrites) {
  for (int i = 0; i < 50; ++i) Put(Key(i), "old");
  for (const bool with_own : {false, true}) {
    auto transaction = engine_->Begin();
    if (with_own) ASSERT_OK(transaction->Put(Key(10), "first"));
    auto cursor = transaction->Scan("k", "l", {.block_bytes = 64, .first_block_bytes = 64});
    ASSERT_OK(cursor);
    for (int i = 0; i < 50; ++i) {
      EXPECT_THAT(Drain(cursor->get(), 1),
                  ElementsAre(Pair(Key(i), with_own && i == 10 ? "first" : "old")));
      ASSERT_OK(transaction->Put(Key(i) + "x", "moved"));
      ASSERT_OK(transaction->Put(Key(i + 5), "changed"));
      ASSERT_OK(transaction->Delete(Key(i)));
    }
    EXPECT_THAT(Drain(cursor->get()), IsEmpty());
  }
}

TEST_P(View, TracksOnlyAsFarAsItWent) {
  for (int i = 0; i < 10; ++i) Put(Key(i), "v");
  struct Case {
    bool reverse, by_limit;
    int changed;
    bool conflicts;
  };
  for (const Case& c :
       {Case{false, true, 1, true}, Case{false, true, 3, false}, Case{false, false, 2, true},
        Case{false, false, 3, false}, Case{true, true, 8, true}, Case{true, true, 6, false},
        Case{true, false, 7, true}, Case{true, false, 6, false}}) {
    for (const bool open_at_commit : {false, true}) {
      auto one = engine_->Begin();
      auto cursor =
          one->Scan(Key(0), Key(10), {.reverse = c.reverse, .limit = c.by_limit ? uint64_t{3} : 0});
      ASSERT_OK(cursor);
      EXPECT_EQ(Drain(cursor->get(), c.by_limit ? SIZE_MAX : 3).size(), 3u);
      if (!open_at_commit) cursor->reset();
      ASSERT_OK(one->Put("own", "v"));
      Put(Key(c.changed), "changed");
      EXPECT_EQ(CodeOf(one->Commit()), c.conflicts ? Code::kConflict : Code::kOk)
          << c.reverse << c.by_limit << c.changed;
    }
  }
}

TEST_P(View, TracksTheWholeRangeOnceItHasEnded) {
  Put(Key(1), "v");
  for (const bool reverse : {false, true}) {
    auto one = engine_->Begin();
    EXPECT_EQ(Views(one.get(), Key(0), Key(9), {.reverse = reverse}).size(), reverse ? 2u : 1u);
    ASSERT_OK(one->Put("own", "v"));
    Put(Key(reverse ? 7 : 5), "phantom");
    EXPECT_EQ(CodeOf(one->Commit()), Code::kConflict);
  }
  auto empty = engine_->Begin();
  EXPECT_THAT(Views(empty.get(), "x", "y"), IsEmpty());
  ASSERT_OK(empty->Put("own", "v"));
  Put("xx", "v");
  EXPECT_EQ(CodeOf(empty->Commit()), Code::kConflict);
}

TEST_P(View, SnapshotModeTracksNothing) {
  Put(Key(1), "v");
  auto one = engine_->Begin();
  EXPECT_EQ(Views(one.get(), Key(0), Key(9), {.mode = ReadMode::kSnapshot}).size(), 1u);
  ASSERT_OK(one->Put("own", "v"));
  Put(Key(1), "changed");
  EXPECT_OK(one->Commit());
}

TEST_P(View, AViewStaysWhereItIsUntilTheNextCall) {
  for (int i = 0; i < 20; ++i) Put(Key(i), std::string(20000, static_cast<char>('a' + i)));
  ASSERT_OK(engine_->Compact("", ""));
  auto reader = engine_->Begin({.read_only = true});
  auto cursor = reader->Scan("k", "l");
  ASSERT_OK(cursor);
  std::string_view key, value;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(*(*cursor)->NextView(&key, &value));
    Put(Key(i), "replaced");
    for (int j = 0; j < 20; ++j) Read(Key(j));
    EXPECT_EQ(key, Key(i));
    EXPECT_EQ(value, std::string(20000, static_cast<char>('a' + i)));
  }
  EXPECT_FALSE(*(*cursor)->NextView(&key, &value));
}

}  // namespace
}  // namespace cellar::kv
