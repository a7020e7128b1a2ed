// Layout `pages` as its owners see it: bulk loads into pages, sealing, what is left in the delta.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cellar/table/sealer.h"
#include "cellar/table/test_tables.h"

namespace cellar::table {
namespace {

class PagesTest : public testing::Test {
 protected:
  void SetUp() override {
    TableDescriptor table;
    table.name = "t";
    table.layout = catalog::Layout::kPages;
    table.columns = {MakeColumn(1, "id", TypeId::kInt4, true), MakeColumn(2, "name", TypeId::kText),
                     MakeColumn(3, "n", TypeId::kInt8)};
    table.indexes = {MakePrimary("t_pkey", {{1}}), MakeIndex("t_name", {{2}}, true)};
    table_ = store_.Create(table);
  }

  static std::vector<Row> RowsFrom(int first, int count) {
    std::vector<Row> rows;
    for (int i = first; i < first + count; ++i) {
      rows.push_back({std::to_string(i), "n" + std::to_string(i), std::to_string(i % 7)});
    }
    return rows;
  }
  // COPY in batches of 500 rows.
  Status Load(const std::vector<Row>& rows, kv::Transaction* transaction, Access* access) {
    CELLAR_TRY(access->BeginBulk(table_));
    for (size_t i = 0; i < rows.size(); i += 500) {
      const std::vector<Row> some(
          rows.begin() + static_cast<ptrdiff_t>(i),
          rows.begin() + static_cast<ptrdiff_t>(std::min(rows.size(), i + 500)));
      CELLAR_TRY(InsertAll(access, table_, some));
    }
    return access->EndBulk(true);
  }
  Status LoadAndCommit(const std::vector<Row>& rows) {
    kv::TransactionOptions options;
    options.bulk = true;
    std::unique_ptr<kv::Transaction> transaction = store_.engine()->Begin(options);
    Access access(transaction.get(), nullptr, store_.tables());
    CELLAR_TRY(Load(rows, transaction.get(), &access));
    return transaction->Commit().status();
  }
  std::vector<Row> All() {
    std::unique_ptr<kv::Transaction> transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, store_.tables());
    return ScanRows(&access, SpecOf(table_, table_->primary()));
  }
  size_t KeysOf(uint32_t part) {
    const codec::KeyRange range = codec::PrefixRange(
        codec::TablePrefix(table_->id, IndexId{table_->primary().id.value + part}));
    std::unique_ptr<kv::Transaction> transaction = store_.engine()->Begin();
    std::unique_ptr<kv::Cursor> cursor = Must(transaction->Scan(range.start, range.end));
    kv::Block block;
    size_t keys = 0;
    while (Must(cursor->NextBlock(&block))) keys += block.size();
    return keys;
  }
  size_t DeltaKeys() { return KeysOf(codec::kRowsOfPrimary); }
  size_t Pages() { return KeysOf(codec::kPagesOfPrimary); }

  Store store_;
  TablePtr table_;
};

TEST_F(PagesTest, AscendingLoadsBecomePages) {
  Must(LoadAndCommit(RowsFrom(0, 3000)));
  EXPECT_EQ(DeltaKeys(), 0u);
  const size_t pages = Pages();
  EXPECT_GE(pages, 3u);
  EXPECT_EQ(All(), RowsFrom(0, 3000));
  // Behind the last row: the last page is filled up.
  Must(LoadAndCommit(RowsFrom(3000, 1000)));
  EXPECT_EQ(DeltaKeys(), 0u);
  EXPECT_GT(Pages(), pages);
  EXPECT_EQ(All(), RowsFrom(0, 4000));
}

TEST_F(PagesTest, LoadsAmongOtherRowsGoThroughTheDelta) {
  Must(LoadAndCommit(RowsFrom(1000, 1000)));
  Must(LoadAndCommit(RowsFrom(0, 1000)));
  EXPECT_EQ(DeltaKeys(), 1000u);
  EXPECT_EQ(All(), RowsFrom(0, 2000));
  // Ascending at first, then not.
  std::vector<Row> rows = RowsFrom(2500, 1000);
  const std::vector<Row> before = RowsFrom(2000, 500);
  rows.insert(rows.end(), before.begin(), before.end());
  Must(LoadAndCommit(rows));
  EXPECT_EQ(DeltaKeys(), 1500u);
  EXPECT_EQ(All(), RowsFrom(0, 3500));
}

TEST_F(PagesTest, LoadsReportDuplicates) {
  Must(LoadAndCommit(RowsFrom(0, 1000)));
  EXPECT_EQ(LoadAndCommit(RowsFrom(500, 1000)).sqlstate(), "23505");
  std::vector<Row> twice = RowsFrom(1000, 600);
  twice[599] = {"1598", "other", "1"};
  EXPECT_EQ(LoadAndCommit(twice).sqlstate(), "23505");
  std::vector<Row> name = RowsFrom(1000, 600);
  name[300][1] = "n5";
  EXPECT_FALSE(LoadAndCommit(name).ok());
  EXPECT_EQ(All(), RowsFrom(0, 1000));
}

TEST_F(PagesTest, LoadsConflictWithWritersOfTheSameKeysAlone) {
  for (const bool same : {false, true}) {
    const int first = same ? 6000 : 1000;
    std::vector<Row> rows = RowsFrom(first, 1000);
    rows.erase(rows.begin() + 500);
    kv::TransactionOptions options;
    options.bulk = true;
    std::unique_ptr<kv::Transaction> transaction = store_.engine()->Begin(options);
    Access access(transaction.get(), nullptr, store_.tables());
    Must(Load(rows, transaction.get(), &access));
    {
      std::unique_ptr<kv::Transaction> other = store_.engine()->Begin();
      Access writer(other.get(), nullptr, store_.tables());
      const int id = first + (same ? 501 : 500);
      Must(InsertAll(&writer, table_, {{std::to_string(id), "other", "1"}}));
      Must(other->Commit());
    }
    const Status status = transaction->Commit().status();
    EXPECT_EQ(status.ok(), !same) << status.ToString();
    EXPECT_EQ(status.sqlstate(), same ? "40001" : "");
    std::unique_ptr<kv::Transaction> cleaner = store_.engine()->Begin();
    Access access_to_other(cleaner.get(), nullptr, store_.tables());
    Found found =
        FindRows(&access_to_other, table_, {PointOf({Datum::Int(first + (same ? 501 : 500))})});
    ASSERT_EQ(found.refs.size(), 1u);
    Must(access_to_other.Delete(table_, found.views(), found.rows));
    Must(cleaner->Commit());
  }
  std::vector<Row> expected = RowsFrom(1000, 1000);
  expected.erase(expected.begin() + 500);
  EXPECT_EQ(All(), expected);
}

TEST_F(PagesTest, ReadersOfALoadedRangeConflictWithTheLoad) {
  std::unique_ptr<kv::Transaction> range = store_.engine()->Begin();
  Access range_reader(range.get(), nullptr, store_.tables());
  EXPECT_EQ(ScanRows(&range_reader, SpecOf(table_, table_->primary())).size(), 0u);
  std::unique_ptr<kv::Transaction> point = store_.engine()->Begin();
  Access point_reader(point.get(), nullptr, store_.tables());
  EXPECT_EQ(FindRows(&point_reader, table_, {PointOf({Datum::Int(70)})}).refs.size(), 0u);
  Must(LoadAndCommit(RowsFrom(0, 1000)));
  Must(InsertAll(&range_reader, table_, {{"-1", "a", "1"}}));
  EXPECT_EQ(range->Commit().status().sqlstate(), "40001");
  Must(InsertAll(&point_reader, table_, {{"-2", "b", "1"}}));
  EXPECT_EQ(point->Commit().status().sqlstate(), "40001");
}

TEST_F(PagesTest, SealingEmptiesTheDelta) {
  {
    std::unique_ptr<kv::Transaction> transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, store_.tables());
    Must(InsertAll(&access, table_, RowsFrom(0, 3000)));
    Must(transaction->Commit());
  }
  EXPECT_EQ(DeltaKeys(), 3000u);
  Sealer sealer(store_.engine(), store_.tables());
  EXPECT_EQ(Must(sealer.StateOf(table_)).changes, 3000u);
  const SealStep done = Must(sealer.SealAll(table_, {}, nullptr));
  EXPECT_EQ(done.rows, 3000u);
  EXPECT_EQ(Must(sealer.StateOf(table_)).changes, 0u);
  EXPECT_EQ(DeltaKeys(), 0u);
  EXPECT_EQ(All(), RowsFrom(0, 3000));
  // Nothing to do: nothing is written.
  EXPECT_EQ(Must(sealer.SealAll(table_, {}, nullptr)).pages, 0u);
}

// The prefix of its pages ends in 00, as no key may.
TEST_F(PagesTest, TheFirstPageOfAnyIndexHasAFinishedKey) {
  TableDescriptor table;
  table.name = "u";
  table.layout = catalog::Layout::kPages;
  table.columns = table_->columns;
  table.indexes = {MakePrimary("u_pkey", {{1}})};
  table.next_index_id = 255;
  table_ = store_.Create(table);
  ASSERT_EQ(table_->primary().id.value, 255u);
  ASSERT_EQ(codec::TablePrefix(table_->id, IndexId{256}).back(), '\0');
  Must(LoadAndCommit(RowsFrom(0, 3000)));
  {
    std::unique_ptr<kv::Transaction> transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, store_.tables());
    Must(InsertAll(&access, table_, {{"-1", "first", "0"}}));
    Must(transaction->Commit());
  }
  Must(Sealer(store_.engine(), store_.tables()).SealAll(table_, {}, nullptr));
  EXPECT_EQ(DeltaKeys(), 0u);
  EXPECT_EQ(All().size(), 3001u);
  std::unique_ptr<kv::Transaction> transaction = store_.engine()->Begin();
  Access access(transaction.get(), nullptr, store_.tables());
  EXPECT_EQ(FindRows(&access, table_, {PointOf({Datum::Int(-1)})}).refs.size(), 1u);
  EXPECT_EQ(Check(table_, transaction.get()), std::vector<std::string>());
  const codec::KeyRange range = codec::PrefixRange(codec::TablePrefix(table_->id, IndexId{256}));
  std::unique_ptr<kv::Cursor> cursor = Must(transaction->Scan(range.start, range.end));
  kv::Block block;
  while (Must(cursor->NextBlock(&block))) {
    for (size_t k = 0; k < block.size(); ++k) EXPECT_NE(block.key(k).back(), '\0');
  }
}

// The first read or seal of a process knows no page yet. Keys of small numbers: zero is the byte
// that ends a page's key, and the beginning of one key goes on in the next.
class ColdPagesTest : public testing::TestWithParam<int> {
 protected:
  static constexpr int kColumns = 3, kLeast = -2, kMost = 2;

  ColdPagesTest() {
    TableDescriptor table;
    table.name = "t";
    table.layout = catalog::Layout::kPages;
    for (uint32_t c = 1; c <= kColumns; ++c) {
      table.columns.push_back(
          MakeColumn(c, std::string(1, static_cast<char>('a' + c - 1)), TypeId::kInt4, true));
    }
    table.indexes = {MakePrimary("t_pkey", {{1}, {2}, {3}})};
    table_ = store_.Create(table);
    for (int key = 0; key < 125; ++key) {
      if (random_() % 8 == 0) continue;
      rows_.push_back({Part(key / 25), Part(key / 5 % 5), Part(key % 5)});
    }
  }
  static std::string Part(int digit) { return std::to_string(kLeast + digit); }
  void Insert(const std::vector<Row>& rows) {
    TableStore cold(store_.engine());
    const std::unique_ptr<kv::Transaction> transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, &cold);
    Must(InsertAll(&access, table_, rows));
    Must(transaction->Commit());
  }
  // Small pages, so that every beginning of a key is in the middle of some and ends others.
  void Seal(bool repack) {
    TableStore cold(store_.engine());
    SealOptions options;
    options.page_bytes = 100;
    options.repack = repack;
    options.max_bytes = 300;
    Must(Sealer(store_.engine(), &cold).SealAll(table_, options, nullptr));
  }
  std::vector<Row> Scan(const Span& span, bool reverse) {
    TableStore cold(store_.engine());
    const std::unique_ptr<kv::Transaction> transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, &cold);
    ScanSpec spec = SpecOf(table_, table_->primary(), {span});
    spec.reverse = reverse;
    return ScanRows(&access, spec);
  }
  void ExpectAllFound() {
    for (int columns = 0; columns <= kColumns; ++columns) {
      for (int key = 0; key < 125; ++key) {
        const std::vector<int> digits = {key / 25, key / 5 % 5, key % 5};
        std::vector<Row> expected;
        Span span;
        for (int c = 0; c < columns; ++c) {
          span.equal.push_back(Datum::Int(kLeast + digits[static_cast<size_t>(c)]));
        }
        for (const Row& row : rows_) {
          bool fits = true;
          for (size_t c = 0; c < span.equal.size(); ++c) fits &= *row[c] == Part(digits[c]);
          if (fits) expected.push_back(row);
        }
        EXPECT_EQ(Scan(span, false), expected) << key << " " << columns;
        std::reverse(expected.begin(), expected.end());
        EXPECT_EQ(Scan(span, true), expected) << key << " " << columns;
        if (columns == 0) break;
      }
    }
  }

  std::mt19937 random_{static_cast<unsigned>(GetParam())};
  Store store_;
  TablePtr table_;
  std::vector<Row> rows_;  // in the order of the key
};

TEST_P(ColdPagesTest, AreFoundByEveryBeginningOfAKey) {
  std::vector<Row> first, later;
  for (const Row& row : rows_) (random_() % 3 == 0 ? later : first).push_back(row);
  Insert(first);
  Seal(false);
  Insert(later);
  ExpectAllFound();
  Seal(GetParam() % 2 == 0);
  ExpectAllFound();
}
INSTANTIATE_TEST_SUITE_P(Seeds, ColdPagesTest, testing::Range(0, 6));

}  // namespace
}  // namespace cellar::table
