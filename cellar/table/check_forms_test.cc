// CHECK against thousands of random damages of stored values, in every layout and every kind of
// record: what it does not find changes no row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "cellar/codec/key.h"
#include "cellar/codec/patch.h"
#include "cellar/table/compiled.h"
#include "cellar/table/sealer.h"
#include "cellar/table/test_tables.h"

namespace cellar::table {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kRows = 24;
constexpr int kPlantings = 600;

enum class Storage { kRows, kShards, kGroups, kCells, kDatums, kPages };

struct Record {
  std::string key, value;
};

class CheckFormsTest : public testing::TestWithParam<Storage> {
 protected:
  // Rows of three row formats; a column that is gone, one that came later, one that became wider.
  // An index holds each column, so whatever a row says differently its entry says otherwise.
  void SetUp() override {
    TableDescriptor table;
    table.name = "t";
    table.columns = {
        MakeColumn(1, "id", TypeId::kInt4, true), MakeColumn(2, "k", TypeId::kNumeric, true),
        MakeColumn(3, "a", TypeId::kText),        MakeColumn(4, "u", TypeId::kInt4),
        MakeColumn(5, "n", TypeId::kNumeric),     MakeColumn(6, "f", TypeId::kFloat8),
        MakeColumn(7, "b", TypeId::kBool),        MakeColumn(8, "gone", TypeId::kText)};
    table.next_column_id = 9;
    table.indexes = {MakePrimary("t_pkey", {{1}, {2}})};
    switch (GetParam()) {
      case Storage::kRows: break;
      case Storage::kShards: table.indexes.front().shards = 3; break;
      case Storage::kCells: table.layout = catalog::Layout::kCell; break;
      case Storage::kDatums: table.layout = catalog::Layout::kDatum; break;
      case Storage::kPages: table.layout = catalog::Layout::kPages; break;
      case Storage::kGroups:
        table.groups = {{1, "hot", {ColumnId{3}, ColumnId{8}}}, {256, "cold", {ColumnId{5}}}};
        table.next_group_id = 257;
        break;
    }
    table_ = store_.Create(table);
    Insert(0);
    TableDescriptor next = *table_;
    next.columns[7].dropped = true;
    next.columns[3].type = MakeType(TypeId::kInt8);
    table_ = store_.Change(next);
    Insert(1);
    next = *table_;
    next.columns.push_back(MakeColumn(9, "late", TypeId::kText));
    next.columns.back().initial_value = Value(MakeType(TypeId::kText), Datum::Bytes("then"));
    next.next_column_id = 10;
    table_ = store_.Change(next);
    Insert(2);
    if (GetParam() == Storage::kPages) LayOverPages();
    next = *table_;
    next.indexes.push_back(MakeIndex("t_all", {{3}}, false, {4, 5, 6, 7, 9}));
    table_ = store_.Change(next);
    auto transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, store_.tables());
    Must(access.BuildIndex(table_, table_->indexes.back().id));
    Must(transaction->Commit());
    records_ = Records();
    before_ = Must(ReadBack());
    ASSERT_EQ(before_.size() % 2, 0u);
    ASSERT_THAT(Findings(), IsEmpty());
  }

  void Insert(int round) {
    std::vector<Row> rows;
    for (int i = 0; i < kRows; ++i) {
      const int n = i * 3 + round;
      Row row = {std::to_string(n),
                 std::to_string(n) + (n % 2 == 0 ? ".50" : ".5"),
                 n % 5 == 0 ? Cell() : Cell("text " + std::to_string(n)),
                 std::to_string(n * 7),
                 n % 4 == 0 ? Cell() : Cell(std::to_string(n) + ".250"),
                 n % 3 == 0 ? Cell() : Cell("1.5"),
                 n % 2 == 0 ? "true" : "false"};
      if (round == 0) row.push_back("old");
      if (round == 2) row.push_back(n % 2 == 0 ? Cell() : Cell("now"));
      rows.push_back(std::move(row));
    }
    auto transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, store_.tables());
    Must(InsertAll(&access, table_, rows));
    Must(transaction->Commit());
  }

  // Pages with a delta of each kind over them.
  void LayOverPages() {
    Sealer sealer(store_.engine(), store_.tables());
    SealOptions options;
    options.page_bytes = 600;
    ASSERT_TRUE(Must(sealer.SealAll(table_, options, nullptr)).done);
    auto transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, store_.tables());
    Found found = FindRows(&access, table_, {Span{}});
    const std::vector<Row> rows = RowsOf(found.rows);
    const std::string long_text(40000, 'x');
    RowBatch changed = BatchOf(LivingTypes(*table_), rows);
    for (size_t i = 0; i < changed.size(); ++i) {
      if (i % 4 == 0) changed.column(2).Set(i, Datum::Bytes("patched"));
      if (i == 9) changed.column(7).Set(i, Datum::Bytes(long_text));
    }
    std::vector<std::string_view> refs = found.views();
    changed.column(5).Set(1, Datum::Double(2.5));
    Must(access.Update(table_, refs, found.rows, changed));
    const std::string gone = found.refs[3];
    const std::string_view gone_view = gone;
    RowBatch gone_row = BatchOf(LivingTypes(*table_), {rows[3]});
    Must(access.Delete(table_, {&gone_view, 1}, gone_row));
    Must(InsertAll(&access, table_,
                   {{"5000", "1.0", "in the delta", "1", "2.0", "3", "true", "delta"}}));
    Must(transaction->Commit());
  }

  std::vector<Record> Records() {
    const codec::KeyRange range = codec::PrefixRange(codec::TablePrefix(table_->storage_id()));
    auto transaction = store_.engine()->Begin();
    std::unique_ptr<kv::Cursor> cursor = Must(transaction->Scan(range.start, range.end));
    std::vector<Record> out;
    kv::Block block;
    while (Must(cursor->NextBlock(&block))) {
      for (size_t i = 0; i < block.size(); ++i) {
        out.push_back({std::string(block.key(i)), std::string(block.value(i))});
      }
    }
    return out;
  }
  void Write(const std::string& key, const std::string& value) {
    kv::TransactionOptions options;
    options.durable = false;
    auto transaction = store_.engine()->Begin(options);
    Must(transaction->Put(key, value));
    Must(transaction->Commit());
  }
  std::vector<std::string> Findings() {
    auto transaction = store_.engine()->Begin();
    return Check(table_, transaction.get());
  }
  // All rows, upwards and downwards, by a store that has kept nothing.
  Result<std::vector<Row>> ReadBack() {
    std::vector<Row> rows;
    for (const bool reverse : {false, true}) {
      auto transaction = store_.engine()->Begin();
      TableStore tables(store_.engine());
      Access access(transaction.get(), nullptr, &tables);
      ScanSpec spec = SpecOf(table_, table_->primary());
      spec.reverse = reverse;
      CELLAR_TRY_ASSIGN(std::unique_ptr<Reader> reader, access.Scan(spec));
      RowBatch batch;
      while (true) {
        CELLAR_TRY_ASSIGN(const bool more, reader->Next(&batch));
        if (!more) break;
        for (Row& row : RowsOf(batch)) rows.push_back(std::move(row));
      }
    }
    return rows;
  }

  size_t Pick(size_t count) { return random_() % count; }
  std::string RandomBytes(size_t count) {
    std::string out;
    for (size_t i = 0; i < count; ++i) out.push_back(static_cast<char>(random_()));
    return out;
  }
  std::string Damage(std::string value) {
    const size_t size = value.size();
    switch (Pick(8)) {
      case 0: return value.substr(0, size == 0 ? 0 : Pick(size));
      case 1: return value + RandomBytes(1 + Pick(9));
      case 2: return value + std::string(1 + Pick(3), '\0');
      case 3: return RandomBytes(size);
      case 4: return RandomBytes(Pick(40));
      case 5: return records_[Pick(records_.size())].value;
      case 6:
        if (size != 0) value[Pick(size)] = static_cast<char>(random_());
        return value;
      default:
        if (size != 0) {
          char& byte = value[Pick(size)];
          byte = static_cast<char>(byte ^ (1 << Pick(8)));
        }
        return value;
    }
  }

  Store store_;
  TablePtr table_;
  std::vector<Record> records_;
  std::vector<Row> before_;
  std::mt19937 random_{1u + static_cast<unsigned>(testing::GTEST_FLAG(random_seed))};
};

TEST_P(CheckFormsTest, WhatIsNotFoundChangesNoRow) {
  size_t found = 0, equal = 0;
  for (int i = 0; i < kPlantings && !HasFailure(); ++i) {
    const Record& record = records_[Pick(records_.size())];
    const std::string damaged = Damage(record.value);
    if (damaged == record.value) continue;
    SCOPED_TRACE(testing::Message() << "planting " << i << " at " << codec::PrintKey(record.key)
                                    << ": " << testing::PrintToString(record.value) << " becomes "
                                    << testing::PrintToString(damaged));
    Write(record.key, damaged);
    const std::vector<std::string> findings = Findings();  // of all forms, which agree
    if (findings.empty()) {
      ++equal;
      const Result<std::vector<Row>> rows = ReadBack();
      ASSERT_TRUE(rows.ok()) << rows.status().ToString();
      EXPECT_EQ(rows.value(), before_);
    } else {
      ++found;
      EXPECT_THAT(findings.front(), HasSubstr("table t: "));
    }
    Write(record.key, record.value);
  }
  EXPECT_GT(found, 20 * equal);
  EXPECT_THAT(Findings(), IsEmpty());
}

// Of rows that lie alone; of those in pages check_pages_test tells.
class CheckOwnKeyTest : public CheckFormsTest {};

// Without an index that would tell.
TEST_P(CheckOwnKeyTest, HoldsWhatAWriterPutThere) {
  const CompiledTable& compiled = *Must(CompiledTable::Of(*table_));
  for (const Record& record : records_) {
    if (!record.key.starts_with(compiled.primary().prefix) || record.key.back() != kGroupZero ||
        record.value.empty() || (record.value[0] & 0x3F) != 1) {
      continue;
    }
    std::vector<std::string> damages = {"", "x", record.value.substr(0, record.value.size() - 1),
                                        record.value + '\0', record.value + "more"};
    for (const unsigned char bit : {0x01, 0x02, 0x20, 0x40, 0x80}) {
      damages.push_back(record.value);
      damages.back()[0] = static_cast<char>(damages.back()[0] ^ bit);
    }
    damages.push_back(record.value);
    damages.back()[1] = '\x7f';  // the row format
    for (const std::string& damaged : damages) {
      Write(record.key, damaged);
      EXPECT_THAT(Findings(), Contains(HasSubstr(codec::PrintKey(record.key) + " is damaged")))
          << testing::PrintToString(damaged);
    }
    Write(record.key, record.value);
  }
}

std::string NameOf(const testing::TestParamInfo<Storage>& info) {
  static constexpr const char* kNames[] = {"Rows", "Shards", "Groups", "Cells", "Datums", "Pages"};
  return kNames[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Layouts, CheckOwnKeyTest,
                         testing::Values(Storage::kRows, Storage::kShards, Storage::kGroups,
                                         Storage::kCells, Storage::kDatums),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Layouts, CheckFormsTest,
                         testing::Values(Storage::kRows, Storage::kShards, Storage::kGroups,
                                         Storage::kCells, Storage::kDatums, Storage::kPages),
                         NameOf);

// Of what no index holds, the parts of a row still prove something.
TEST(CheckPartsTest, APartHoldsItsOwnColumns) {
  Store store;
  TableDescriptor descriptor;
  descriptor.name = "t";
  descriptor.layout = catalog::Layout::kCell;
  descriptor.columns = {MakeColumn(1, "id", TypeId::kInt4, true), MakeColumn(2, "a", TypeId::kText),
                        MakeColumn(3, "b", TypeId::kText)};
  descriptor.indexes = {MakePrimary("t_pkey", {{1}})};
  const TablePtr table = store.Create(descriptor);
  auto transaction = store.engine()->Begin();
  Access access(transaction.get(), nullptr);
  Must(InsertAll(&access, table, {{"1", "x", std::nullopt}}));
  std::string key = Must(CompiledTable::Of(*table))->primary().prefix;
  codec::AppendKeyInt(1, &key);
  codec::AppendKeyUint(2, &key);
  codec::FinishKey(&key);
  EXPECT_THAT(Check(table, transaction.get()), IsEmpty());
  const auto patch = [](std::initializer_list<uint32_t> columns) {
    std::string out;
    codec::BeginPatch(&out);
    for (uint32_t column : columns) {
      codec::AppendPatchColumn(ColumnId{column}, Datum::Bytes("x"), MakeType(TypeId::kText), &out);
    }
    return out;
  };
  const std::pair<std::string, const char*> damages[] = {
      {patch({}), "it holds no column"},
      {patch({3}), "it holds column b, which lies elsewhere"},
      {patch({2, 2}), "it holds column 2 twice"},
      {patch({77}), "it holds unknown column 77"}};
  for (const auto& [value, text] : damages) {
    Must(transaction->Put(key, value));
    EXPECT_THAT(Check(table, transaction.get()), Contains(HasSubstr(text)));
  }
}

TEST(CheckPartsTest, KeysOfNoColumnAreFound) {
  Store store;
  TableDescriptor descriptor;
  descriptor.name = "t";
  descriptor.layout = catalog::Layout::kDatum;
  descriptor.columns = {MakeColumn(1, "id", TypeId::kInt4, true), MakeColumn(2, "a", TypeId::kText),
                        MakeColumn(5, "b", TypeId::kText)};
  descriptor.next_column_id = 6;
  descriptor.indexes = {MakePrimary("t_pkey", {{1}})};
  const TablePtr table = store.Create(descriptor);
  for (const uint32_t column : {1u, 3u, 77u}) {
    auto transaction = store.engine()->Begin();
    Access access(transaction.get(), nullptr);
    Must(InsertAll(&access, table, {{"1", "x", std::nullopt}}));
    EXPECT_THAT(Check(table, transaction.get()), IsEmpty());
    std::string key = codec::TablePrefix(table->storage_id(), table->primary().id);
    codec::AppendKeyUint(column, &key);
    codec::AppendKeyInt(1, &key);
    key.push_back(kGroupZero);
    Must(transaction->Put(key, "x"));
    EXPECT_THAT(Check(table, transaction.get()), Contains(HasSubstr("keys of no column")));
  }
}

}  // namespace
}  // namespace cellar::table
