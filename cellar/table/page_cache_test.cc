// Pages kept at hand: that they are used, that nobody sees a page that is not of his snapshot, and
// their bound.
#include "cellar/table/page_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <random>
#include <thread>

#include "cellar/table/cache_limit.h"
#include "cellar/table/page_directory.h"
#include "cellar/table/sealer.h"
#include "cellar/table/test_tables.h"

namespace cellar::table {
namespace {

constexpr int kRows = 6000;

class PageCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    TableDescriptor table;
    table.name = "t";
    table.layout = catalog::Layout::kPages;
    table.columns = {MakeColumn(1, "id", TypeId::kInt4, true), MakeColumn(2, "name", TypeId::kText),
                     MakeColumn(3, "n", TypeId::kInt8)};
    table.indexes = {MakePrimary("t_pkey", {{1}})};
    table_ = store_.Create(table);
    Load(0, kRows);
  }

  static Row RowOf(int id, int version = 0) {
    return {std::to_string(id), "the name of " + std::to_string(id * 7919),
            std::to_string(id % 7 + version)};
  }
  static std::vector<Row> RowsFrom(int first, int count, int version = 0) {
    std::vector<Row> rows;
    for (int i = first; i < first + count; ++i) rows.push_back(RowOf(i, version));
    return rows;
  }

  // A transaction and its access, and what reading took.
  struct User {
    explicit User(PageCacheTest* test, bool bulk = false) {
      kv::TransactionOptions options;
      options.bulk = bulk;
      transaction = test->store_.engine()->Begin(options);
      access = std::make_unique<Access>(transaction.get(), nullptr, test->store_.tables());
      test_ = test;
    }
    std::vector<Row> All() {
      return ScanRows(access.get(), SpecOf(test_->table_, test_->table_->primary()));
    }
    std::vector<Row> Point(int id) {
      return ScanRows(access.get(),
                      SpecOf(test_->table_, test_->table_->primary(), {PointOf({Datum::Int(id)})}));
    }
    uint64_t TripsOf(const std::function<void()>& work) {
      const uint64_t before = access->stats().trips;
      work();
      return access->stats().trips - before;
    }
    std::unique_ptr<kv::Transaction> transaction;
    std::unique_ptr<Access> access;

   private:
    PageCacheTest* test_;
  };

  void LoadInto(User* user, int first, int count) {
    Must(user->access->BeginBulk(table_));
    for (int i = first; i < first + count; i += 500) {
      Must(InsertAll(user->access.get(), table_, RowsFrom(i, std::min(500, first + count - i))));
    }
    Must(user->access->EndBulk(true));
  }
  void Load(int first, int count) {
    User user(this, true);
    LoadInto(&user, first, count);
    Must(user.transaction->Commit());
  }
  void Update(int id, int version) {
    User user(this);
    const Found found = FindRows(user.access.get(), table_, {PointOf({Datum::Int(id)})});
    ASSERT_EQ(found.refs.size(), 1u);
    const RowBatch rows = BatchOf(LivingTypes(*table_), {RowOf(id, version)});
    Must(user.access->Update(table_, found.views(), found.rows, rows));
    Must(user.transaction->Commit());
  }
  void Seal() { Must(Sealer(store_.engine(), store_.tables()).SealAll(table_, {}, nullptr)); }
  PageCache& cache() {
    return *store_.tables()->DirectoryOf(table_->storage_id(), table_->primary().id)->cache();
  }

  Store store_;
  TablePtr table_;
};

TEST_F(PageCacheTest, WhatWasReadOnceIsNotAskedForAgain) {
  User user(this);
  const uint64_t first = user.TripsOf([&] { EXPECT_EQ(user.All(), RowsFrom(0, kRows)); });
  EXPECT_GT(first, 5u);
  // The delta only.
  EXPECT_LE(user.TripsOf([&] { EXPECT_EQ(user.All(), RowsFrom(0, kRows)); }), 1u);
  EXPECT_EQ(user.TripsOf([&] { EXPECT_EQ(user.Point(4321), RowsFrom(4321, 1)); }), 1u);
  EXPECT_GT(cache().used_bytes(), 0u);
  // Ranges too, which begin and end within pages and between them.
  for (int begin = 0; begin < kRows; begin += 371) {
    Span span;
    span.lower = {Bound::Kind::kInclusive, Datum::Int(begin)};
    span.upper = {Bound::Kind::kExclusive, Datum::Int(begin + 500)};
    ScanSpec spec = SpecOf(table_, table_->primary(), {span});
    EXPECT_EQ(ScanRows(user.access.get(), spec), RowsFrom(begin, std::min(500, kRows - begin)));
    spec.reverse = true;
    std::vector<Row> down = RowsFrom(begin, std::min(500, kRows - begin));
    std::reverse(down.begin(), down.end());
    EXPECT_EQ(ScanRows(user.access.get(), spec), down);
  }
}

TEST_F(PageCacheTest, SnapshotsSeeTheirOwnPagesWhileTheSealerWorks) {
  User old(this);
  EXPECT_EQ(old.All(), RowsFrom(0, kRows));
  for (int round = 1; round <= 3; ++round) {
    Update(3000, 100 * round);
    User delta(this);
    EXPECT_EQ(delta.Point(3000)[0], RowOf(3000, 100 * round));
    Seal();
    // The first read keeps the new page, the second one finds it.
    for (int read = 0; read < 2; ++read) {
      User now(this);
      EXPECT_EQ(now.Point(3000)[0], RowOf(3000, 100 * round));
      EXPECT_EQ(now.All()[3000], RowOf(3000, 100 * round));
      EXPECT_EQ(now.All().size(), size_t{kRows});
    }
    EXPECT_EQ(old.Point(3000)[0], RowOf(3000));
    EXPECT_EQ(old.All(), RowsFrom(0, kRows));
    EXPECT_EQ(delta.Point(3000)[0], RowOf(3000, 100 * round));
    EXPECT_EQ(delta.All()[3000], RowOf(3000, 100 * round));
  }
  // Pages that the sealer left alone are still at hand.
  User user(this);
  EXPECT_EQ(user.TripsOf([&] { EXPECT_EQ(user.Point(10), RowsFrom(10, 1)); }), 1u);
}

TEST_F(PageCacheTest, AnOldReaderBringsNoOldPageBack) {
  User old(this);
  EXPECT_EQ(old.Point(-1).size(), 0u);  // takes its snapshot
  Update(3000, 100);
  Seal();
  EXPECT_EQ(old.All(), RowsFrom(0, kRows));
  User now(this);
  EXPECT_EQ(now.Point(3000)[0], RowOf(3000, 100));
  EXPECT_EQ(now.All()[3000], RowOf(3000, 100));
}

TEST_F(PageCacheTest, ClearedTablesAreEmptyForThoseWhoShouldSeeIt) {
  User before(this);
  EXPECT_EQ(before.All(), RowsFrom(0, kRows));
  {
    User user(this);
    Must(user.access->ClearTable(*table_));
    EXPECT_EQ(user.All().size(), 0u);
    EXPECT_EQ(user.Point(5).size(), 0u);
    // Not committed: others go on, and keep nothing.
    User other(this);
    EXPECT_EQ(other.All(), RowsFrom(0, kRows));
    EXPECT_EQ(user.Point(5).size(), 0u);
    Must(user.transaction->Commit());
  }
  User after(this);
  EXPECT_EQ(after.All().size(), 0u);
  EXPECT_EQ(after.Point(5).size(), 0u);
  EXPECT_EQ(before.All(), RowsFrom(0, kRows));
  EXPECT_EQ(before.Point(5), RowsFrom(5, 1));
}

TEST_F(PageCacheTest, AScanDoesNotSeeWhatItsTransactionWritesMeanwhile) {
  {
    User warm(this);
    EXPECT_EQ(warm.All().size(), size_t{kRows});
  }
  // Some pages at hand and some not, so that the scan changes between the ways.
  Update(2500, 100);
  Seal();
  User user(this, true);
  std::unique_ptr<Reader> reader = Must(user.access->Scan(SpecOf(table_, table_->primary())));
  RowBatch batch;
  ASSERT_TRUE(Must(reader->Next(&batch)));
  std::vector<Row> rows = RowsOf(batch);
  LoadInto(&user, kRows, 3000);
  for (Row& row : ReadAll(reader.get())) rows.push_back(std::move(row));
  std::vector<Row> expected = RowsFrom(0, kRows);
  expected[2500] = RowOf(2500, 100);
  EXPECT_EQ(rows, expected);
  // A new one sees them, another transaction does not.
  EXPECT_EQ(user.All().size(), size_t{kRows + 3000});
  EXPECT_EQ(user.Point(kRows + 2000), RowsFrom(kRows + 2000, 1));
  User other(this);
  EXPECT_EQ(other.All().size(), size_t{kRows});
  EXPECT_EQ(other.Point(kRows + 2000).size(), 0u);
  Must(user.transaction->Commit());
  User after(this);
  EXPECT_EQ(after.All().size(), size_t{kRows + 3000});
}

TEST_F(PageCacheTest, StaysWithinItsBound) {
  size_t whole = 0;
  {
    User user(this);
    user.All();
    whole = cache().used_bytes();
  }
  ASSERT_GT(whole, 0u);
  LimitPageCache(store_.tables(), whole / 2);
  EXPECT_LE(cache().used_bytes(), whole / 2);
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    User user(this);
    const int id = static_cast<int>(random() % kRows);
    EXPECT_EQ(user.Point(id), RowsFrom(id, 1));
    EXPECT_LE(cache().used_bytes(), whole / 2);
    if (i % 100 == 0) {
      EXPECT_EQ(user.All(), RowsFrom(0, kRows));
    }
  }
  EXPECT_GT(cache().used_bytes(), 0u);
  LimitPageCache(store_.tables(), 0);
  EXPECT_EQ(cache().used_bytes(), 0u);
  User user(this);
  EXPECT_EQ(user.All(), RowsFrom(0, kRows));
}

// A row moves a unit at a time between two others: every snapshot finds the same sum, whatever is
// sealed, kept and thrown out beside it.
TEST_F(PageCacheTest, SumsHoldUnderWritersSealersAndASmallCache) {
  int64_t sum = 0;
  {
    User user(this);
    for (const Row& row : user.All()) sum += std::stoll(*row[2]);
  }
  LimitPageCache(store_.tables(), cache().used_bytes() / 2);
  std::atomic<bool> done{false};
  std::atomic<int> seals{0};
  std::thread sealer([&] {
    Sealer work(store_.engine(), store_.tables());
    while (!done) {
      std::string position;
      EXPECT_TRUE(work.Step(table_, {}, &position).ok());
      ++seals;
      std::this_thread::yield();
    }
  });
  std::thread writer([&] {
    std::mt19937 random(2);
    while (!done) {
      User user(this);
      const int from = static_cast<int>(random() % kRows), to = static_cast<int>(random() % kRows);
      if (from == to) continue;
      Span first = PointOf({Datum::Int(from)}), second = PointOf({Datum::Int(to)});
      Found found = FindRows(user.access.get(), table_, {first});
      const Found other = FindRows(user.access.get(), table_, {second});
      if (found.refs.size() != 1 || other.refs.size() != 1) {
        ADD_FAILURE() << "a row is missing";
        break;
      }
      RowBatch less = BatchOf(LivingTypes(*table_), {RowsOf(found.rows)[0]});
      RowBatch more = BatchOf(LivingTypes(*table_), {RowsOf(other.rows)[0]});
      less.column(2).ints()[0] -= 1;
      more.column(2).ints()[0] += 1;
      Must(user.access->Update(table_, found.views(), found.rows, less));
      Must(user.access->Update(table_, other.views(), other.rows, more));
      const Status status = user.transaction->Commit().status();
      EXPECT_TRUE(status.ok() || status.sqlstate() == "40001") << status.ToString();
    }
  });
  std::mt19937 random(3);
  for (int i = 0; i < 60 || seals < 20; ++i) {
    User user(this);
    int64_t seen = 0;
    const std::vector<Row> rows = user.All();
    ASSERT_EQ(rows.size(), size_t{kRows});
    for (const Row& row : rows) seen += std::stoll(*row[2]);
    EXPECT_EQ(seen, sum);
    for (int k = 0; k < 20; ++k) {
      const int id = static_cast<int>(random() % kRows);
      EXPECT_EQ(user.Point(id)[0], rows[static_cast<size_t>(id)]);
    }
  }
  done = true;
  sealer.join();
  writer.join();
}

}  // namespace
}  // namespace cellar::table
