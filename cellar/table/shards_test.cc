// Indexes whose keys a hash spreads over shards: which one is frozen, and nothing else shows.
#include <algorithm>

#include "cellar/table/test_tables.h"

namespace cellar::table {
namespace {

std::string Hex(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out += kDigits[static_cast<uint8_t>(byte) >> 4];
    out += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return out;
}

class ShardsTest : public testing::Test {
 protected:
  void Make(uint32_t shards, bool unique, catalog::Layout layout = catalog::Layout::kRow) {
    TableDescriptor table;
    table.name = "t";
    table.layout = layout;
    table.columns = {MakeColumn(1, "id", TypeId::kInt4, true), MakeColumn(2, "n", TypeId::kInt8),
                     MakeColumn(3, "name", TypeId::kText)};
    table.next_column_id = 4;
    table.indexes = {MakePrimary("t_pkey", {{1}}), MakeIndex("t_n", {{2}, {3, true}}, unique)};
    table.indexes.back().shards = shards;
    table_ = store_.Create(table);
    access_.reset();
    transaction_ = store_.engine()->Begin();
    access_ = std::make_unique<Access>(transaction_.get(), nullptr, store_.tables());
  }
  const IndexDescriptor& index() const { return table_->indexes.back(); }
  std::vector<std::string> Keys() {
    const codec::KeyRange range = codec::PrefixRange(codec::TablePrefix(table_->id, index().id));
    std::unique_ptr<kv::Cursor> cursor =
        Must(transaction_->Scan(range.start, range.end, kv::ScanOptions()));
    std::vector<std::string> keys;
    kv::Block block;
    while (Must(cursor->NextBlock(&block))) {
      for (size_t i = 0; i < block.size(); ++i) {
        keys.push_back(Hex(block.key(i).substr(range.start.size())));
      }
    }
    return keys;
  }

  Store store_;
  TablePtr table_;
  std::unique_ptr<kv::Transaction> transaction_;
  std::unique_ptr<Access> access_;
};

TEST_F(ShardsTest, TheShardOfAKeyIsFrozen) {
  TableDescriptor table;
  table.name = "golden";
  table.columns = {MakeColumn(1, "id", TypeId::kInt4, true), MakeColumn(2, "n", TypeId::kInt8)};
  table.next_column_id = 3;
  table.indexes = {MakePrimary("golden_pkey", {{1}}), MakeIndex("golden_n", {{2}}, true)};
  table.indexes.back().shards = 8;
  table_ = store_.Create(table);
  transaction_ = store_.engine()->Begin();
  access_ = std::make_unique<Access>(transaction_.get(), nullptr, store_.tables());
  Must(
      InsertAll(access_.get(), table_,
                {{"1", "1"}, {"2", "2"}, {"3", "3"}, {"4", "100"}, {"5", "1000"}, {"6", "70000"}}));
  // int(CRC-32C of the fields modulo 8), the fields: docs/formats/key.md, section 4.
  EXPECT_EQ(Keys(),
            (std::vector<std::string>{"154d64", "1618", "164f011170", "1a17", "1a4e03e8", "1b16"}));
}

TEST_F(ShardsTest, ScansAreOrderedAndWholeForwardsAndBackwards) {
  for (const catalog::Layout layout : {catalog::Layout::kRow, catalog::Layout::kPages,
                                       catalog::Layout::kCell, catalog::Layout::kDatum}) {
    Make(7, false, layout);
    std::vector<Row> rows;
    for (int i = 0; i < 500; ++i) {
      Row row = {std::to_string(i), std::to_string(i * 37 % 90), "x" + std::to_string(i % 3)};
      if (i % 20 == 0) row[1].reset();
      rows.push_back(row);
    }
    Must(InsertAll(access_.get(), table_, rows));
    const auto less = [](const Row& a, const Row& b) {
      const auto number = [](const Cell& cell) { return cell ? std::stoi(*cell) : 1 << 30; };
      if (number(a[1]) != number(b[1])) return number(a[1]) < number(b[1]);
      if (a[2] != b[2]) return a[2] > b[2];
      return std::stoi(*a[0]) < std::stoi(*b[0]);
    };
    std::sort(rows.begin(), rows.end(), less);
    ScanSpec spec = SpecOf(table_, index());
    EXPECT_EQ(ScanRows(access_.get(), spec), rows);
    spec.reverse = true;
    std::vector<Row> backwards(rows.rbegin(), rows.rend());
    EXPECT_EQ(ScanRows(access_.get(), spec), backwards);

    Span range;
    range.lower = {Bound::Kind::kInclusive, Datum::Int(10)};
    range.upper = {Bound::Kind::kExclusive, Datum::Int(40)};
    std::vector<Row> part;
    for (const Row& row : rows) {
      if (row[1] && std::stoi(*row[1]) >= 10 && std::stoi(*row[1]) < 40) part.push_back(row);
    }
    EXPECT_EQ(ScanRows(access_.get(), SpecOf(table_, index(), {range})), part);
    Span null;
    null.nulls = Span::Nulls::kOnly;
    EXPECT_EQ(ScanRows(access_.get(), SpecOf(table_, index(), {null})).size(), 25u);
    EXPECT_EQ(Check(table_, transaction_.get()), std::vector<std::string>());
    TableDescriptor other = *table_;
    other.name = "other" + std::to_string(static_cast<int>(layout));
    for (catalog::IndexDescriptor& renamed : other.indexes)
      renamed.name = other.name + "_" + renamed.name;
    store_.Change(other);
  }
}

TEST_F(ShardsTest, PointsAndLookupsAskOneShardOrAll) {
  Make(5, true);
  std::vector<Row> rows;
  for (int i = 0; i < 60; ++i) rows.push_back({std::to_string(i), std::to_string(i), "n"});
  rows.push_back({"100", std::nullopt, "n"});
  rows.push_back({"101", std::nullopt, "n"});
  Must(InsertAll(access_.get(), table_, rows));
  EXPECT_EQ(InsertAll(access_.get(), table_, {{"200", "33", "n"}}).sqlstate(), "23505");
  const uint64_t before = access_->stats().trips;
  Span point;
  point.equal = {Datum::Int(33), Datum::Bytes("n")};
  ScanSpec spec = SpecOf(table_, index(), {point});
  spec.columns = {ColumnId{1}, ColumnId{2}, ColumnId{3}};
  EXPECT_EQ(ScanRows(access_.get(), spec), (std::vector<Row>{{"33", "33", "n"}}));
  EXPECT_EQ(access_->stats().trips, before + 1);
  RowBatch keys = BatchOf({MakeType(TypeId::kInt8)}, {{"7"}, {"59"}, {"900"}});
  RowBatch found;
  std::vector<uint32_t> key_row;
  Must(access_->Lookup(SpecOf(table_, index()), keys, &found, &key_row));
  EXPECT_EQ(found.size(), 2u);
  keys = BatchOf({MakeType(TypeId::kInt8), MakeType(TypeId::kText)}, {{"7", "n"}, {"8", "m"}});
  Must(access_->Lookup(SpecOf(table_, index()), keys, &found, &key_row));
  EXPECT_EQ(RowsOf(found), (std::vector<Row>{{"7", "7", "n"}}));
  EXPECT_EQ(Check(table_, transaction_.get()), std::vector<std::string>());
}

TEST_F(ShardsTest, RowsLieInShardsOfTheirKey) {
  TableDescriptor table;
  table.name = "golden";
  table.columns = {MakeColumn(1, "id", TypeId::kInt4, true), MakeColumn(2, "n", TypeId::kInt8)};
  table.next_column_id = 3;
  table.indexes = {MakePrimary("golden_pkey", {{1}}), MakeIndex("golden_n", {{2}})};
  table.indexes.front().shards = 8;
  table_ = store_.Create(table);
  transaction_ = store_.engine()->Begin();
  access_ = std::make_unique<Access>(transaction_.get(), nullptr, store_.tables());
  Must(InsertAll(access_.get(), table_, {{"1", "1"}, {"2", "2"}, {"100", "4"}, {"70000", "6"}}));
  std::vector<std::string> keys;
  const codec::KeyRange range =
      codec::PrefixRange(codec::TablePrefix(table_->id, table_->primary().id));
  std::unique_ptr<kv::Cursor> cursor =
      Must(transaction_->Scan(range.start, range.end, kv::ScanOptions()));
  kv::Block block;
  while (Must(cursor->NextBlock(&block))) {
    for (size_t i = 0; i < block.size(); ++i)
      keys.push_back(Hex(block.key(i).substr(range.start.size())));
  }
  // As the entries of an index with as many shards, and the row's own column group.
  EXPECT_EQ(keys, (std::vector<std::string>{"154d6415", "164f01117015", "1a1715", "1b1615"}));
  ScanSpec spec = SpecOf(table_, table_->primary());
  EXPECT_EQ(ScanRows(access_.get(), spec),
            (std::vector<Row>{{"1", "1"}, {"2", "2"}, {"100", "4"}, {"70000", "6"}}));
  EXPECT_EQ(Check(table_, transaction_.get()), std::vector<std::string>());

  // A row in a shard that is not its own is found by the check.
  std::string stray = codec::TablePrefix(table_->id, table_->primary().id);
  stray += "\x17\x16\x15";
  kv::PinnedValue value;
  ASSERT_TRUE(
      Must(transaction_->Get(codec::TablePrefix(table_->id, table_->primary().id) + "\x1b\x16\x15",
                             &value, kv::ReadMode::kSnapshot)));
  Must(transaction_->Put(stray, value.view()));
  const std::vector<std::string> found = Check(table_, transaction_.get());
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](const std::string& text) {
    return text.find("another shard") != std::string::npos;
  })) << testing::PrintToString(found);
}

}  // namespace
}  // namespace cellar::table
