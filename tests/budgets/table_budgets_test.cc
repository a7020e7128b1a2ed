// Engine trips per batch at the table layer, as its transaction counts them: docs/architecture.md,
// "The walk of a row".
#include <gtest/gtest.h>

#include "cellar/kv/memory_engine.h"
#include "cellar/table/test_tables.h"

namespace cellar::table {

std::unique_ptr<kv::Engine> MakeTestEngine() { return kv::MakeMemoryEngine(); }

namespace {

class TableBudgets : public testing::Test {
 protected:
  void SetUp() override {
    TableDescriptor table;
    table.name = "t";
    table.columns = {MakeColumn(1, "id", TypeId::kInt4, true), MakeColumn(2, "u", TypeId::kInt4),
                     MakeColumn(3, "a", TypeId::kInt4), MakeColumn(4, "s", TypeId::kText)};
    table.indexes = {MakePrimary("t_pkey", {{1}}), MakeIndex("t_u_key", {{2}}, true),
                     MakeIndex("t_a_idx", {{3}}), MakeIndex("t_s_idx", {{4}}, false, {3})};
    table_ = store_.Create(table);
    auto transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr);
    Must(InsertAll(&access, table_, Rows(0, kRows)));
    Must(transaction->Commit());
  }

  static constexpr int kRows = 5000;
  static std::vector<Row> Rows(int first, int count) {
    std::vector<Row> rows;
    for (int i = first; i < first + count; ++i) {
      rows.push_back({std::to_string(i), std::to_string(i), std::to_string(i % 100), "s"});
    }
    return rows;
  }
  // Trips of what `work` does in a transaction of its own, and of its commit.
  template <typename Work>
  uint64_t Trips(Work&& work, bool commit = true) {
    auto transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr);
    work(&access);
    if (commit) Must(transaction->Commit());
    return transaction->stats().trips;
  }
  Span Range(int low, int high) {
    Span span;
    span.lower.kind = Bound::Kind::kInclusive;
    span.lower.value = Datum::Int(low);
    span.upper.kind = Bound::Kind::kExclusive;
    span.upper.value = Datum::Int(high);
    return span;
  }
  std::vector<Span> Points(int first, int count) {
    std::vector<Span> spans;
    for (int i = first; i < first + count; ++i) spans.push_back(PointOf({Datum::Int(i)}));
    return spans;
  }

  Store store_;
  TablePtr table_;
};

TEST_F(TableBudgets, InsertOfABatchIsOneProbeAndOneCommit) {
  EXPECT_EQ(Trips([&](Access* access) { Must(InsertAll(access, table_, Rows(10000, 1000))); }), 2u);
}

TEST_F(TableBudgets, RowByPrimaryKeyIsOneTrip) {
  EXPECT_EQ(Trips(
                [&](Access* access) {
                  ScanRows(access, SpecOf(table_, table_->primary(), {PointOf({Datum::Int(17)})}));
                },
                false),
            1u);
}

TEST_F(TableBudgets, RowByUniqueIndexIsTwoTripsAndOneWhenCovered) {
  ScanSpec spec = SpecOf(table_, table_->indexes[1], {PointOf({Datum::Int(17)})});
  EXPECT_EQ(Trips([&](Access* access) { ScanRows(access, spec); }, false), 2u);
  spec.columns = {ColumnId{1}, ColumnId{2}};
  EXPECT_EQ(Trips([&](Access* access) { ScanRows(access, spec); }, false), 1u);
}

TEST_F(TableBudgets, ListOfKeysIsOneTripABatch) {
  const ScanSpec spec = SpecOf(table_, table_->primary(), Points(0, 1000));
  EXPECT_EQ(Trips([&](Access* access) { ScanRows(access, spec); }, false), 1u);
}

TEST_F(TableBudgets, RangeIsATripABlockAndTwiceThatWhenRowsAreFetched) {
  ScanSpec spec = SpecOf(table_, table_->indexes[2], {PointOf({Datum::Int(7)})});
  spec.columns = {ColumnId{3}, ColumnId{1}};
  const uint64_t covering = Trips([&](Access* access) { ScanRows(access, spec); }, false);
  EXPECT_LE(covering, 2u);  // the block, and its end
  spec.columns = LivingIds(*table_);
  EXPECT_LE(Trips([&](Access* access) { ScanRows(access, spec); }, false), covering + 1);
  spec.spans = {Span{}};
  const uint64_t rows = Trips([&](Access* access) { ScanRows(access, spec); }, false);
  spec.columns = {ColumnId{3}, ColumnId{1}};
  const uint64_t blocks = Trips([&](Access* access) { ScanRows(access, spec); }, false);
  EXPECT_LE(rows, 2 * blocks);
}

TEST_F(TableBudgets, UpdateByKeyIsOneReadAtMostOneProbeAndOneCommit) {
  auto update = [&](int column, int delta) {
    return Trips([&](Access* access) {
      ScanSpec spec = SpecOf(table_, table_->primary(), Points(100, 500));
      spec.with_row_ref = true;
      spec.lock.emplace();
      std::unique_ptr<Reader> reader = Must(access->Scan(spec));
      RowBatch batch;
      ASSERT_TRUE(Must(reader->Next(&batch)));
      ASSERT_EQ(batch.size(), 500u);
      const std::string_view* bytes = batch.column(4).bytes();
      const std::vector<std::string_view> refs(bytes, bytes + batch.size());
      RowBatch old_rows, new_rows;
      for (RowBatch* rows : {&old_rows, &new_rows}) {
        rows->Reset(LivingTypes(*table_));
        rows->Resize(batch.size());
        for (size_t c = 0; c < 4; ++c) {
          for (size_t i = 0; i < batch.size(); ++i) {
            rows->column(c).Set(i, batch.column(c).Get(i));
          }
        }
      }
      for (size_t i = 0; i < batch.size(); ++i) {
        ColumnVector& vector = new_rows.column(static_cast<size_t>(column));
        vector.Set(i, Datum::Int(vector.ints()[i] + delta));
      }
      Must(access->Update(table_, refs, old_rows, new_rows));
    });
  };
  EXPECT_EQ(update(2, 1), 2u);       // no unique key changes
  EXPECT_EQ(update(1, 100000), 3u);  // one does
}

TEST_F(TableBudgets, DeleteByKeyIsOneReadAndOneCommit) {
  EXPECT_EQ(Trips([&](Access* access) {
              Found found = FindRows(access, table_, Points(300, 500));
              ASSERT_EQ(found.refs.size(), 500u);
              Must(access->Delete(table_, found.views(), found.rows));
            }),
            2u);
}

TEST_F(TableBudgets, LookUpOfAThousandKeysIsOneTrip) {
  RowBatch keys = BatchOf({MakeType(TypeId::kInt4)}, [] {
    std::vector<Row> rows;
    for (int i = 0; i < 1000; ++i) rows.push_back({std::to_string(i * 3)});
    return rows;
  }());
  RowBatch batch;
  std::vector<uint32_t> key_row;
  EXPECT_EQ(Trips(
                [&](Access* access) {
                  Must(access->Lookup(SpecOf(table_, table_->primary()), keys, &batch, &key_row));
                },
                false),
            1u);
  EXPECT_EQ(batch.size(), 1000u);
}

TEST_F(TableBudgets, RequiringTheDescriptorCostsNoTrip) {
  EXPECT_EQ(
      Trips([&](Access* access) { Must(catalog::RequireCurrent(*table_, access->transaction())); },
            false),
      0u);
}

}  // namespace
}  // namespace cellar::table
