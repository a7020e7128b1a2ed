// Builds of indexes step by step, with rows changed between the steps.
#include "cellar/table/backfill.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cellar/table/test_tables.h"

namespace cellar::table {
namespace {

constexpr int kRows = 20000;

class BackfillTest : public testing::TestWithParam<catalog::Layout> {
 protected:
  void SetUp() override {
    TableDescriptor descriptor;
    descriptor.name = "t";
    descriptor.layout = GetParam();
    descriptor.columns = {MakeColumn(1, "id", TypeId::kInt8, true),
                          MakeColumn(2, "a", TypeId::kInt8)};
    descriptor.indexes = {MakePrimary("t_pkey", {{1}})};
    table_ = store_.Create(descriptor);
    std::vector<Row> rows;
    for (int i = 0; i < kRows; ++i) rows.push_back({std::to_string(i * 3), std::to_string(-i)});
    auto transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, store_.tables());
    Must(InsertAll(&access, table_, rows));
    Must(transaction->Commit());
  }
  void TearDown() override { SetRowsForTwoThreads(kRowsForTwoThreads); }

  // A row of each part of the table goes, changes and comes.
  void Disturb(int round) {
    auto transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, store_.tables());
    for (int part = 0; part < 8; ++part) {
      const int id = (part * kRows / 8 + round) * 3;
      Span span;
      span.equal = {Datum::Int(id)};
      Found found = FindRows(&access, table_, {span});
      Must(access.Delete(table_, found.views(), found.rows));
      const std::string value = std::to_string(100000 * (round + 1) + part);
      Must(InsertAll(&access, table_, {{std::to_string(id + 1), value}}));
    }
    Must(transaction->Commit());
  }

  Store store_;
  TablePtr table_;
};

// Of a table that takes several steps each one divides what it reads, or none does.
TEST_P(BackfillTest, StepsReadAboutAsManyRowsAsTheyAreAskedFor) {
  for (const bool threads : {false, true}) {
    SetRowsForTwoThreads(threads ? 100 : UINT64_MAX);
    TableDescriptor building = *table_;
    catalog::IndexDescriptor index = MakeIndex(threads ? "t_b" : "t_a", {{2}}, threads);
    index.state = catalog::IndexState::kWriteOnly;
    building.indexes.push_back(index);
    table_ = store_.Change(building);
    building = *table_;
    ++building.next_index_id;  // of the log
    table_ = store_.Change(building);
    const IndexId id = table_->indexes.back().id;
    BuildProgress progress;
    int steps = 0;
    const auto step = [&](uint64_t max_rows, bool finish) {
      kv::TransactionOptions options;
      options.isolation = kv::Isolation::kSnapshot;
      options.bulk = true;
      options.unmarked_writes = !finish;
      auto transaction = store_.engine()->Begin(options);
      const BackfillContext in{transaction.get(), nullptr, store_.tables(), store_.engine()};
      Must(BuildSome(in, table_, id, max_rows, nullptr, &progress));
      if (finish) Must(FinishBuild(in, *table_, id, progress));
      Must(transaction->Commit());
    };
    while (!progress.done) {
      ASSERT_LT(++steps, 20);
      step(5000, false);
      Disturb(steps + (threads ? 50 : 0));
    }
    EXPECT_GE(steps, 3);
    EXPECT_LE(steps, 8);
    step(0, false);
    step(0, true);
    TableDescriptor ready = *table_;
    ready.indexes.back().state = catalog::IndexState::kPublic;
    table_ = store_.Change(ready);
    auto transaction = store_.engine()->Begin();
    EXPECT_EQ(Check(table_, transaction.get()), std::vector<std::string>());
    EXPECT_EQ(progress.entries, kRows);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, BackfillTest,
                         testing::Values(catalog::Layout::kRow, catalog::Layout::kPages,
                                         catalog::Layout::kCell, catalog::Layout::kDatum));

}  // namespace
}  // namespace cellar::table
