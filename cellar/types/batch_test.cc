#include "cellar/types/batch.h"

#include <gtest/gtest.h>

namespace cellar {
namespace {

constexpr Type kTypes[] = {MakeType(TypeId::kInt4), MakeType(TypeId::kText),
                           MakeType(TypeId::kFloat8)};

RowBatch MakeBatch(int rows) {
  RowBatch batch;
  batch.Reset(kTypes);
  for (int i = 0; i < rows; ++i) {
    const std::string text = "row " + std::to_string(i);
    const Datum row[] = {Datum::Int(i), i % 3 == 0 ? Datum() : Datum::Bytes(text),
                         Datum::Double(i / 2.0)};
    batch.AppendRow(row);
  }
  return batch;
}

TEST(RowBatch, KeepsCopiesOfAppendedRows) {
  RowBatch batch = MakeBatch(3000);
  ASSERT_EQ(batch.size(), 3000u);
  EXPECT_TRUE(batch.column(1).IsNull(0));
  EXPECT_TRUE(batch.column(1).has_nulls());
  EXPECT_EQ(batch.column(1).Get(2999).is_null(), 2999 % 3 == 0);
  EXPECT_EQ(batch.column(1).Get(2998).bytes(), "row 2998");
  EXPECT_EQ(batch.column(0).Get(1234).int_value(), 1234);
  EXPECT_EQ(batch.column(2).Get(1235).double_value(), 617.5);
}

TEST(RowBatch, AppendsChosenRowsOfAnother) {
  RowBatch to;
  to.Reset(kTypes);
  {
    RowBatch from = MakeBatch(10);
    const uint32_t rows[] = {9, 1, 3, 1};
    to.AppendRows(from, rows);
    to.AppendAll(from);
  }
  ASSERT_EQ(to.size(), 14u);
  EXPECT_EQ(to.column(0).Get(0).int_value(), 9);
  EXPECT_TRUE(to.column(1).IsNull(0));
  EXPECT_EQ(to.column(1).Get(1).bytes(), "row 1");
  EXPECT_TRUE(to.column(1).IsNull(2));
  EXPECT_EQ(to.column(1).Get(3).bytes(), "row 1");
  EXPECT_EQ(to.column(1).Get(12).bytes(), "row 8");
}

TEST(RowBatch, KeepsOnlyTheRowsAskedFor) {
  RowBatch batch = MakeBatch(10);
  const uint32_t rows[] = {0, 4, 9};
  batch.Keep(rows);
  ASSERT_EQ(batch.size(), 3u);
  EXPECT_TRUE(batch.column(1).IsNull(0));
  EXPECT_EQ(batch.column(1).Get(1).bytes(), "row 4");
  EXPECT_EQ(batch.column(0).Get(2).int_value(), 9);
}

TEST(RowBatch, CountsRowsWithoutColumns) {
  RowBatch batch;
  batch.Reset({});
  batch.SetSize(7);
  EXPECT_EQ(batch.size(), 7u);
  RowBatch to;
  to.Reset({});
  to.AppendAll(batch);
  EXPECT_EQ(to.size(), 7u);
}

TEST(ColumnVector, GrowsKeepingValuesAndClearsNullsOfNewRows) {
  ColumnVector column(MakeType(TypeId::kText));
  column.Append(Datum::Bytes("a"));
  column.Append(Datum());
  column.Resize(1000);
  EXPECT_EQ(column.Get(0).bytes(), "a");
  EXPECT_TRUE(column.IsNull(1));
  EXPECT_FALSE(column.IsNull(999));
  column.Reset(MakeType(TypeId::kInt8));
  column.Append(Datum::Int(5));
  EXPECT_FALSE(column.has_nulls());
  EXPECT_EQ(column.Get(0).int_value(), 5);
}

}  // namespace
}  // namespace cellar
