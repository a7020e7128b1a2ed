// CHECK finds what is planted, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cellar/codec/key.h"
#include "cellar/kv/counters.h"
#include "cellar/table/compiled.h"
#include "cellar/table/test_tables.h"

namespace cellar::table {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckTest : public testing::Test {
 protected:
  void SetUp() override {
    TableDescriptor table;
    table.name = "t";
    table.columns = {MakeColumn(1, "id", TypeId::kInt4, true), MakeColumn(2, "a", TypeId::kText),
                     MakeColumn(3, "u", TypeId::kInt4), MakeColumn(4, "s", TypeId::kInt4)};
    table.indexes = {MakePrimary("t_pkey", {{1}}), MakeIndex("t_a_idx", {{2}}, false, {4}),
                     MakeIndex("t_u_key", {{3}}, true)};
    table_ = store_.Create(table);
    auto transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr);
    std::vector<Row> rows;
    for (int i = 0; i < 2000; ++i) {
      rows.push_back({std::to_string(i), "v" + std::to_string(i % 7), std::to_string(i * 2), "1"});
    }
    Must(InsertAll(&access, table_, rows));
    Must(transaction->Commit());
    batch_ = BatchOf(LivingTypes(*table_), rows);
  }

  // The key of row `row`'s entry.
  std::string KeyOf(size_t index, size_t row) {
    const CompiledTable* compiled = Must(CompiledTable::Of(*table_));
    std::string ref, key;
    const IndexCodec& primary = compiled->primary();
    codec::AppendKeyFields(batch_, row, primary.key_positions, primary.key_columns, &ref);
    compiled->indexes()[index].AppendKey(batch_, row, ref, &key);
    return key;
  }
  std::string ValueAt(std::string_view key) {
    auto transaction = store_.engine()->Begin();
    kv::PinnedValue value;
    EXPECT_TRUE(Must(transaction->Get(key, &value)));
    return std::string(value.view());
  }
  void Write(const std::string& key, const std::optional<std::string>& value) {
    auto transaction = store_.engine()->Begin();
    Must(value.has_value() ? transaction->Put(key, *value) : transaction->Delete(key));
    Must(transaction->Commit());
  }
  std::vector<std::string> Findings() {
    auto transaction = store_.engine()->Begin();
    return Check(table_, transaction.get());
  }
  Status ScanByIndex() {
    auto transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr);
    Result<std::unique_ptr<Reader>> reader = access.Scan(SpecOf(table_, table_->indexes[1]));
    CELLAR_TRY(reader.status());
    RowBatch batch;
    while (true) {
      CELLAR_TRY_ASSIGN(bool more, reader.value()->Next(&batch));
      if (!more) return Status();
    }
  }

  Store store_;
  TablePtr table_;
  RowBatch batch_;
};

TEST_F(CheckTest, HealthyTableHasNoFindings) {
  auto transaction = store_.engine()->Begin();
  uint64_t rows = 0;
  EXPECT_THAT(Check(table_, transaction.get(), &rows), IsEmpty());
  EXPECT_EQ(rows, 2000u);
}

TEST_F(CheckTest, MissingEntry) {
  Write(KeyOf(1, 5), std::nullopt);
  EXPECT_THAT(Findings(), ElementsAre("index t_a_idx of table t: no entry for row (5)",
                                      "index t_a_idx of table t: 1999 entries for 2000 rows"));
}

TEST_F(CheckTest, DanglingEntry) {
  Write(KeyOf(0, 5), std::nullopt);
  const std::vector<std::string> findings = Findings();
  EXPECT_THAT(findings, Contains(HasSubstr("index t_a_idx of table t: entry without a row, key")));
  EXPECT_THAT(findings, Contains(HasSubstr("index t_u_key of table t: entry without a row, key")));
  EXPECT_THAT(findings, Contains("index t_u_key of table t: 2000 entries for 1999 rows"));
  // Reading through the index says so too, instead of leaving the row out.
  const Status status = ScanByIndex();
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_EQ(status.sqlstate(), "XX001");
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"t_a_idx\""));
}

TEST_F(CheckTest, EntryOfOtherValues) {
  batch_.column(1).Set(5, Datum::Bytes("other"));
  Write(KeyOf(1, 5), "");
  const std::vector<std::string> findings = Findings();
  EXPECT_THAT(findings, Contains(HasSubstr("is not that of its row (5)")));
  EXPECT_THAT(findings, Contains("index t_a_idx of table t: 2001 entries for 2000 rows"));
}

TEST_F(CheckTest, EntryWithWrongStoredColumns) {
  Write(KeyOf(1, 5), ValueAt(KeyOf(1, 6)).substr(0, 3));
  EXPECT_THAT(Findings(),
              ElementsAre("index t_a_idx of table t: the entry of row (5) holds other values"));
}

TEST_F(CheckTest, TwoRowsWithOneUniqueKey) {
  // Row 5 becomes u = 12, as row 6 has, behind the index's back.
  auto transaction = store_.engine()->Begin();
  const CompiledTable* compiled = Must(CompiledTable::Of(*table_));
  const std::string old_key = KeyOf(2, 5);
  batch_.column(2).Set(5, Datum::Int(12));
  std::string value;
  Must(compiled->AppendRow(batch_, 5, &value));
  Write(KeyOf(0, 5), value);
  Write(old_key, std::nullopt);
  const std::vector<std::string> findings = Findings();
  EXPECT_THAT(findings, Contains("index t_u_key of table t: rows (5) and (6) share one key"));
  EXPECT_THAT(findings, Contains("index t_u_key of table t: 1999 entries for 2000 rows"));
}

TEST_F(CheckTest, DamagedRow) {
  Write(KeyOf(0, 5), "\xff\xff");
  EXPECT_THAT(Findings(), Contains(HasSubstr("table t: row ")));
}

TEST_F(CheckTest, KeysOfNoIndex) {
  std::string key = codec::TablePrefix(table_->id, IndexId{77});
  codec::AppendKeyInt(1, &key);
  Write(key, "x");
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("keys of no index")));
}

TEST_F(CheckTest, AThousandFindingsAreCountedRatherThanListed) {
  auto transaction = store_.engine()->Begin();
  Access access(transaction.get(), nullptr);
  Must(access.ClearIndex(*table_, table_->indexes[1].id));
  const std::vector<std::string> findings = Check(table_, transaction.get());
  EXPECT_LT(findings.size(), 110u);
  EXPECT_EQ(findings.back(), "1901 more findings");
}

// ---- Keys, and Repair
// ----------------------------------------------------------------------------------------------

class RepairTest : public CheckTest {
 protected:
  RepairReport Repair() {
    auto transaction = store_.engine()->Begin();
    RepairReport report;
    Must(RepairTable(table_, transaction.get(), CheckOptions(), &report));
    Must(transaction->Commit());
    return report;
  }
};

TEST_F(RepairTest, LeavesAHealthyTableAlone) {
  const RepairReport report = Repair();
  EXPECT_THAT(report.done, IsEmpty());
  EXPECT_THAT(report.left, IsEmpty());
}

TEST_F(RepairTest, RebuildsWhatDiffersAndNothingElse) {
  Write(KeyOf(1, 5), std::nullopt);
  Write(KeyOf(1, 6) + "x", "");
  std::string stray = codec::TablePrefix(table_->id, IndexId{77});
  codec::AppendKeyInt(1, &stray);
  Write(stray, "");
  const RepairReport report = Repair();
  EXPECT_THAT(report.done, ElementsAre(HasSubstr("removed 1 keys of no index"),
                                       "index t_a_idx of table t: rebuilt"));
  EXPECT_THAT(report.left, IsEmpty());
  EXPECT_THAT(Findings(), IsEmpty());
}

TEST_F(RepairTest, DropsEntriesOfRowsThatAreGone) {
  Write(KeyOf(0, 5), std::nullopt);
  EXPECT_THAT(Repair().done,
              ElementsAre(HasSubstr("index t_a_idx of table t: entry without a row"),
                          "index t_a_idx of table t: rebuilt",
                          HasSubstr("index t_u_key of table t: entry without a row"),
                          "index t_u_key of table t: rebuilt", HasSubstr("counted, 1999 rows")));
  EXPECT_THAT(Findings(), IsEmpty());
}

// As a descriptor that lost an index, or has another layout, makes rows look like.
TEST_F(RepairTest, RemovesNothingThatCouldBeARow) {
  const std::string row = ValueAt(KeyOf(0, 5));
  for (const std::string& value : {row, std::string("x"), std::string("\x04 a page"),
                                   std::string("\x06 a long row"), std::string("\x03\x01")}) {
    for (const uint32_t index : {77u, table_->primary().id.value + 1}) {
      std::string stray = codec::TablePrefix(table_->id, IndexId{index});
      codec::AppendKeyInt(1, &stray);
      Write(stray, value);
      const RepairReport report = Repair();
      EXPECT_THAT(report.done, IsEmpty());
      EXPECT_THAT(report.left, ElementsAre(HasSubstr("may be a row")));
      EXPECT_EQ(ValueAt(stray), value);
      Write(stray, std::nullopt);
    }
  }
}

// The index may be all that is left of the row.
TEST_F(RepairTest, LeavesTheIndexesOfDamagedRowsAlone) {
  Write(KeyOf(0, 9), "\xff\xff");
  Write(KeyOf(1, 5), std::nullopt);
  const RepairReport report = Repair();
  EXPECT_THAT(report.done, IsEmpty());
  EXPECT_THAT(report.left, Contains(HasSubstr("index t_a_idx of table t: not rebuilt")));
  EXPECT_THAT(report.left, Contains(HasSubstr("table t: not counted")));
}

TEST_F(RepairTest, SaysWhatItCannotMend) {
  // Row 5 becomes u = 12, as row 6 has; row 9 is damaged.
  const std::string old_key = KeyOf(2, 5);
  batch_.column(2).Set(5, Datum::Int(12));
  std::string value;
  Must(Must(CompiledTable::Of(*table_))->AppendRow(batch_, 5, &value));
  Write(KeyOf(0, 5), value);
  Write(old_key, std::nullopt);
  RepairReport report = Repair();
  EXPECT_THAT(report.done, IsEmpty());
  EXPECT_THAT(report.left, ElementsAre(HasSubstr("index t_u_key of table t: not rebuilt, could not "
                                                 "create unique index \"t_u_key\"")));
  Write(KeyOf(0, 9), "\xff\xff");
  report = Repair();
  EXPECT_THAT(report.left, Contains(HasSubstr("table t: row ")));
}

// A table whose rows have a hidden id, as a process that opens the store finds it.
class RowIdTest : public testing::Test {
 protected:
  void SetUp() override {
    TableDescriptor table;
    table.name = "h";
    table.columns = {MakeColumn(1, "a", TypeId::kInt4)};
    table.next_column_id = 2;
    table_ = store_.Create(table);
    Reopen();
    Must(Insert({{"1", std::nullopt}, {"2", std::nullopt}}));
    EXPECT_THAT(Findings(), IsEmpty());
  }
  void Reopen() {
    table_ = store_.Change(*table_);
    tables_ = std::make_unique<TableStore>(store_.engine());
  }
  Status Insert(const std::vector<Row>& rows) {
    auto transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, tables_.get());
    CELLAR_TRY(InsertAll(&access, table_, rows));
    return transaction->Commit().status();
  }
  void Write(const std::string& key, std::optional<std::string> value) {
    auto transaction = store_.engine()->Begin();
    Must(value ? transaction->Put(key, *value) : transaction->Delete(key));
    Must(transaction->Commit());
  }
  std::vector<std::string> Findings() {
    auto transaction = store_.engine()->Begin();
    return Check(table_, transaction.get());
  }
  size_t CountRows() {
    auto transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr);
    return ScanRows(&access, SpecOf(table_, table_->primary())).size();
  }
  RepairReport Repair() {
    auto transaction = store_.engine()->Begin();
    RepairReport report;
    Must(RepairTable(table_, transaction.get(), CheckOptions(), &report));
    Must(transaction->Commit());
    return report;
  }
  std::string RecordKey() const { return codec::SystemKey("rowid", {table_->storage_id().value}); }

  Store store_;
  TablePtr table_;
  std::unique_ptr<TableStore> tables_;
};

TEST_F(RowIdTest, RowsAreNotOverwrittenWhenTheirRecordIsLost) {
  Write(RecordKey(), std::nullopt);
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("the record of the next row id is missing")));
  Reopen();
  Must(Insert({{"3", std::nullopt}, {"4", std::nullopt}, {"5", std::nullopt}}));
  EXPECT_EQ(CountRows(), 5u);
  EXPECT_THAT(Findings(), IsEmpty());
}

TEST_F(RowIdTest, DamagedRecordsAreFoundAndMended) {
  Write(RecordKey(), "\xff\xfe");
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("the record of the next row id is damaged")));
  Reopen();
  EXPECT_EQ(Insert({{"3", std::nullopt}}).code(), Code::kCorruption);
  EXPECT_THAT(Repair().done, ElementsAre(HasSubstr("it is 3 now")));
  EXPECT_THAT(Findings(), IsEmpty());
  Must(Insert({{"3", std::nullopt}}));
  EXPECT_EQ(CountRows(), 3u);
}

TEST_F(RowIdTest, DamagedCountsAreFoundAndMended) {
  const std::string counter = catalog::CounterNameOf(*table_);
  const auto plant = [&](std::optional<std::string> value) {
    Write(kv::CounterKey(counter, 0), std::move(value));
  };
  plant("xyz");
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("its count is damaged")));
  EXPECT_THAT(Repair().done, ElementsAre(HasSubstr("counted, 2 rows")));
  EXPECT_THAT(Findings(), IsEmpty());
  plant(std::nullopt);
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("its count is missing, 2 rows are there")));
  EXPECT_THAT(Repair().done, ElementsAre(HasSubstr("counted, 2 rows")));
  EXPECT_THAT(Findings(), IsEmpty());
}

TEST_F(CheckTest, KeysOfTablesThatTheCatalogDoesNotKnow) {
  const auto findings = [&](CheckMode mode) {
    auto transaction = store_.engine()->Begin();
    std::vector<CheckFinding> found;
    Must(CheckKeys(*store_.catalog()->Current(), transaction.get(), CheckOptions{mode}, &found));
    std::vector<std::string> out;
    for (const CheckFinding& finding : found) out.push_back(finding.text);
    return out;
  };
  EXPECT_THAT(findings(CheckMode::kFast), IsEmpty());
  EXPECT_THAT(findings(CheckMode::kFull), IsEmpty());
  for (const uint64_t id : {uint64_t{7700}, uint64_t{7701}}) {
    std::string key = codec::TablePrefix(codec::TableId{id}, IndexId{0});
    for (int i = 0; i < 3; ++i) Write(key + static_cast<char>(0x16 + i), "x");
  }
  Write("\x02nonsense", "x");
  for (const CheckMode mode : {CheckMode::kFast, CheckMode::kFull}) {
    const std::vector<std::string> found = findings(mode);
    EXPECT_THAT(found, Contains(HasSubstr("keys of table 7700, which is not in the catalog")));
    EXPECT_THAT(found, Contains(HasSubstr("keys of table 7701")));
    EXPECT_THAT(found, Contains(HasSubstr("belongs to no table")));
  }
}

}  // namespace
}  // namespace cellar::table
