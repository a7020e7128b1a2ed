// Cells, keys, records and filters by themselves.
#include <gtest/gtest.h>

#include "cellar/codec/key.h"
#include "cellar/table.h"

namespace cellar {
namespace {

SchemaPtr Employees() {
  auto schema = std::make_shared<TableSchema>();
  schema->path = "/microsoft/employees";
  schema->id = schema->storage_id = 104;
  schema->columns = {{1, "id", MakeType(TypeId::kInt8), true},
                     {2, "last_name", MakeType(TypeId::kText)},
                     {3, "born", MakeType(TypeId::kDate)},
                     {4, "salary", MakeType(TypeId::kNumeric)}};
  TableIndex primary;
  primary.name = "employees_pkey";
  primary.primary = primary.unique = true;
  primary.key = {{1, "", MakeType(TypeId::kText)}, {0, "", MakeType(TypeId::kInt8), true}};
  schema->indexes = {primary};
  return schema;
}

TEST(CellTest, BecomesTheTypeOfItsColumn) {
  Arena arena;
  EXPECT_EQ(Cell(7).To(MakeType(TypeId::kInt2), &arena)->int_value(), 7);
  EXPECT_EQ(Cell("7").To(MakeType(TypeId::kInt8), &arena)->int_value(), 7);
  EXPECT_EQ(Cell(2).To(MakeType(TypeId::kFloat8), &arena)->double_value(), 2.0);
  EXPECT_EQ(Cell("2000-01-03").To(MakeType(TypeId::kDate), &arena)->int_value(), 2);
  EXPECT_EQ(Cell(12.5).To(MakeType(TypeId::kText), &arena)->bytes(), "12.5");
  EXPECT_TRUE(Cell(nullptr).To(MakeType(TypeId::kText), &arena)->is_null());
  EXPECT_EQ(Cell(70000).To(MakeType(TypeId::kInt2), &arena).status().sqlstate(), "22003");
  EXPECT_EQ(Cell("x").To(MakeType(TypeId::kInt4), &arena).status().sqlstate(), "22P02");
  EXPECT_EQ(Cell("\xff").To(MakeType(TypeId::kText), &arena).status().sqlstate(), "22021");
  EXPECT_EQ(Cell::Bytes("abc").To(MakeType(TypeId::kInt4), &arena).status().sqlstate(), "42804");
}

TEST(CellTest, ComesBackFromADatum) {
  Arena arena;
  for (const auto& [cell, type] :
       std::vector<std::pair<Cell, Type>>{{true, MakeType(TypeId::kBool)},
                                          {-5, MakeType(TypeId::kInt4)},
                                          {1.5, MakeType(TypeId::kFloat8)},
                                          {"käse", MakeType(TypeId::kText)},
                                          {"10.50", MakeType(TypeId::kNumeric)},
                                          {"2024-02-29", MakeType(TypeId::kDate)},
                                          {"{1,NULL,3}", ArrayOf(TypeId::kInt4)},
                                          {Cell::Bytes("a\0b"), MakeType(TypeId::kBytea)},
                                          {nullptr, MakeType(TypeId::kText)}}) {
    Result<Datum> datum = cell.To(type, &arena);
    ASSERT_TRUE(datum.ok()) << datum.status().ToString();
    EXPECT_EQ(Cell::Of(*datum, type), cell) << FormatType(type);
  }
}

TEST(KeyBytesTest, AreThoseOfTheCodec) {
  SchemaPtr schema = Employees();
  const TableIndex& primary = schema->indexes[0];
  Result<std::string> fields = EncodeKeyFields(*schema, primary, {"kimball", 7});
  ASSERT_TRUE(fields.ok());
  std::string expected;
  codec::AppendKeyText("kimball", &expected);
  codec::AppendKeyField(Datum::Int(7), {MakeType(TypeId::kInt8), codec::Direction::kDescending},
                        &expected);
  EXPECT_EQ(*fields, expected);
  EXPECT_EQ(*EncodePartitionKey(*schema, primary, {"kimball", 7}, 1) +
                *EncodeRangeKey(*schema, primary, {"kimball", 7}, 1),
            expected);
  EXPECT_EQ(EncodeKeyFields(*schema, primary, {"kimball"}).status().sqlstate(), "22023");
  EXPECT_EQ(codec::PrintKey(*EncodeStoreKey(*schema, primary, {"kimball", 7})),
            "/104/0/'kimball'/7 desc/0");
}

TEST(RecordTest, KeepsWhatIsSet) {
  Record record(Employees());
  record.Set("last_name", "kimball").Set(0, 7);
  EXPECT_TRUE(record.Has(1));
  EXPECT_FALSE(record.Has(2));
  EXPECT_EQ(*record.PrimaryKey(), (Key{"kimball", 7}));
  record.Set("no such", 1);
  EXPECT_EQ(record.status().sqlstate(), "42703");
  record.Clear();
  EXPECT_TRUE(record.status().ok());
  EXPECT_FALSE(record.Has(1));
  EXPECT_EQ(record.PrimaryKey().status().sqlstate(), "23502");
}

TEST(RecordTest, RecordsBecomeColumns) {
  SchemaPtr schema = Employees();
  std::vector<Record> records(2, Record(schema));
  records[0].Set("id", 1).Set("salary", "10.5");
  records[1].Set("id", 2).Set("last_name", nullptr);
  CellBatch cells;
  ASSERT_TRUE(ToCells(records, &cells).ok());
  EXPECT_EQ(cells.positions, (std::vector<uint32_t>{0, 1, 3}));
  EXPECT_TRUE(cells.unset[0].empty());
  EXPECT_EQ(cells.unset[1], (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(cells.unset[2], (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(cells.rows.column(0).ints()[1], 2);
  EXPECT_TRUE(cells.rows.column(1).IsNull(1));
  records[1].Set("born", "not a date");
  const Status status = ToCells(records, &cells).status();
  EXPECT_EQ(status.sqlstate(), "22007");
  EXPECT_EQ(status.column_name(), "born");
}

TEST(RowSetTest, RowsReadByPositionAndName) {
  SchemaPtr schema = Employees();
  RowSet rows;
  rows.SetColumns(schema, std::vector<uint32_t>{1, 0});
  const std::vector<Type> types{MakeType(TypeId::kText), MakeType(TypeId::kInt8)};
  rows.mutable_batch()->Reset(types);
  rows.mutable_batch()->AppendRow(std::vector<Datum>{Datum::Bytes("12x"), Datum::Int(7)});
  rows.mutable_batch()->AppendRow(std::vector<Datum>{Datum(), Datum::Int(8)});
  int64_t sum = 0;
  for (Row row : rows) sum += row.Get<int64_t>("id");
  EXPECT_EQ(sum, 15);
  EXPECT_EQ(rows[0].GetText(0), "12x");
  EXPECT_EQ(rows[0].GetInt(0), 12);
  EXPECT_EQ(rows[1].Get<std::optional<std::string>>("last_name"), std::nullopt);
  EXPECT_EQ(rows[1].Get<int>("no such"), 0);
  EXPECT_EQ(rows[0].GetCell(1), Cell(7));
}

TEST(FilterTest, BuildsTrees) {
  const Filter filter = Col("age") < 30 && !Col("name").StartsWith("k") && Col("x").In({1, "a"});
  EXPECT_EQ(filter.ToString(), "(and (< age 30) (not (starts with name 'k')) (in x 1 'a'))");
  EXPECT_EQ(filter.args().size(), 3u);
  EXPECT_EQ(filter.depth(), 4u);
  EXPECT_EQ((3 == Col("a") + 1).ToString(), "(= 3 (+ a 1))");
}

TEST(FilterTest, ATreeWithoutEndIsCut) {
  Filter filter = Col("a");
  for (int i = 0; i < 1000000; ++i) filter = !filter;
  EXPECT_GT(Filter(!filter).depth(), 0u);
}

}  // namespace
}  // namespace cellar
