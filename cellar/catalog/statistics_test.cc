#include "cellar/catalog/statistics.h"

#include <gtest/gtest.h>

namespace cellar::catalog {
namespace {

const Type kInt = MakeType(TypeId::kInt4);
const Type kText = MakeType(TypeId::kText);

// 10 % NULLs, 30 % sevens, the rest spread over 0 .. 100.
ColumnStatistics Numbers() {
  ColumnStatistics out;
  out.column.value = 1;
  out.type = kInt;
  out.null_fraction = 0.1;
  out.average_width = 4;
  out.distinct = 101;
  out.common = {Value(kInt, Datum::Int(7))};
  out.frequencies = {0.3};
  for (const int bound : {0, 50, 100}) out.bounds.emplace_back(kInt, Datum::Int(bound));
  return out;
}

TEST(ColumnStatistics, TellWhatPartOfTheRowsConditionsLeave) {
  const ColumnStatistics column = Numbers();
  EXPECT_DOUBLE_EQ(column.RestFraction(), 0.6);
  EXPECT_DOUBLE_EQ(column.FractionEqual(Datum::Int(7), 1000), 0.3);
  EXPECT_DOUBLE_EQ(column.FractionEqual(Datum::Int(8), 1000), 0.006);
  EXPECT_DOUBLE_EQ(column.FractionBelow(Datum::Int(25), false), 0.3 + 0.6 * 0.25);
  EXPECT_DOUBLE_EQ(column.FractionBelow(Datum::Int(7), false), 0.6 * 0.07);
  EXPECT_DOUBLE_EQ(column.FractionBelow(Datum::Int(-5), false), 0);
  EXPECT_DOUBLE_EQ(column.FractionBelow(Datum::Int(500), false), 0.9);
  EXPECT_DOUBLE_EQ(column.DistinctAmong(10), 10);
}

TEST(ColumnStatistics, PrefixesAreRanges) {
  ColumnStatistics column;
  column.type = kText;
  column.distinct = -1;
  for (const char* bound : {"a", "b", "c", "d", "e"}) {
    column.bounds.emplace_back(kText, Datum::Bytes(bound));
  }
  EXPECT_DOUBLE_EQ(column.FractionWithPrefix("b"), 0.25);
  EXPECT_DOUBLE_EQ(column.FractionWithPrefix("x"), 0);
  EXPECT_DOUBLE_EQ(column.DistinctAmong(400), 400);
}

TEST(TableStatistics, SurviveTheStoreAndRefuseWhatIsCut) {
  TableDescriptor table;
  table.name = "t";
  ColumnDescriptor number;
  number.id.value = 1;
  number.type = kInt;
  table.columns = {number};
  TableStatistics statistics;
  statistics.rows = 1000;
  statistics.changes = 1234;
  statistics.automatic = true;
  statistics.columns = {Numbers()};
  const std::string bytes = EncodeStatistics(statistics);
  const Result<TableStatistics> read = DecodeStatistics(table, bytes);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(EncodeStatistics(*read), bytes);
  EXPECT_EQ(read->changes, 1234);
  ASSERT_NE(read->Find(number.id), nullptr);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeStatistics(table, std::string_view(bytes).substr(0, size)).status().code(),
              Code::kCorruption);
  }
  // The example of docs/formats/catalog.md.
  TableStatistics none;
  none.rows = 2;
  none.changes = 3;
  none.gathered_micros = 4;
  EXPECT_EQ(
      EncodeStatistics(none),
      std::string("\x01\0\0\0\0\0\0\0\x40\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0", 30));
  // Another type, or no such column any more.
  table.columns[0].type = kText;
  EXPECT_TRUE(DecodeStatistics(table, bytes)->columns.empty());
}

}  // namespace
}  // namespace cellar::catalog
