// Codes of enum columns that no label has are corruption, by every way of reading and layout.
#include "cellar/table/enum_check.h"

#include <gtest/gtest.h>

#include "cellar/table/test_tables.h"
#include "cellar/types/array.h"
#include "cellar/types/enum_type.h"

namespace cellar::table {
namespace {

class EnumCheckTest : public testing::TestWithParam<catalog::Layout> {
 protected:
  void SetUp() override {
    TableDescriptor type;
    type.kind = catalog::RelationKind::kType;
    type.name = "mood";
    EnumType definition;
    definition.labels = {{kEnumCodeGap, 0, "sad"}, {2 * kEnumCodeGap, 0, "ok"}};
    type.enumeration = Intern(definition);
    mood_ = MakeEnum(store_.Create(type)->enumeration);

    TableDescriptor table;
    table.name = "people";
    table.layout = GetParam();
    table.columns = {MakeColumn(1, "id", TypeId::kInt4, true), MakeColumn(2, "m", TypeId::kText),
                     MakeColumn(3, "list", TypeId::kText)};
    table.columns[1].type = mood_;
    table.columns[2].type = ArrayOf(mood_);
    table.indexes = {MakePrimary("people_pkey", {{1}}), MakeIndex("people_m", {{2}})};
    table_ = store_.Create(table);
  }

  // A row past ParseDatum: any code.
  void Put(int64_t id, std::optional<int64_t> code, std::vector<int64_t> list = {}) {
    RowBatch batch;
    batch.Reset(LivingTypes(*table_));
    batch.Resize(1);
    batch.column(0).Set(0, Datum::Int(id));
    batch.column(1).Set(0, code ? Datum::Int(*code) : Datum());
    ArrayBuilder builder(mood_);
    for (int64_t one : list) builder.Add(Datum::Int(one));
    builder.Add(Datum());
    batch.column(2).Set(0, Datum::Bytes(builder.Finish(batch.arena())));
    auto transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, store_.tables());
    Must(access.Insert(table_, &batch, ConflictPolicy(), nullptr));
    Must(transaction->Commit());
  }
  Status Scan(const IndexDescriptor& index, std::vector<ColumnId> columns) {
    auto transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, store_.tables());
    ScanSpec spec = SpecOf(table_, index);
    spec.columns = std::move(columns);
    std::unique_ptr<Reader> reader = Must(access.Scan(spec));
    RowBatch batch;
    while (true) {
      Result<bool> more = reader->Next(&batch);
      if (!more.ok()) return more.status();
      if (!*more) return Status();
    }
  }

  Store store_;
  Type mood_;
  TablePtr table_;
};

TEST_P(EnumCheckTest, LabelsPass) {
  Put(1, kEnumCodeGap, {2 * kEnumCodeGap, kEnumCodeGap});
  Put(2, 2 * kEnumCodeGap);
  Put(3, std::nullopt);
  EXPECT_TRUE(Scan(table_->primary(), LivingIds(*table_)).ok());
  EXPECT_TRUE(Scan(*table_->FindIndex("people_m"), {ColumnId{2}}).ok());
}

TEST_P(EnumCheckTest, AnUnknownCodeIsCorruptionAndNamed) {
  Put(1, kEnumCodeGap);
  Put(2, 7);
  for (const IndexDescriptor* index : {&table_->primary(), table_->FindIndex("people_m")}) {
    const Status status = Scan(*index, {ColumnId{2}});
    EXPECT_EQ(status.code(), Code::kCorruption);
    EXPECT_EQ(status.sqlstate(), "XX001");
    EXPECT_EQ(status.message(),
              "column \"m\" of table \"people\" holds 7, which is no label of enum mood");
  }
  // Who does not read the column does not meet it.
  EXPECT_TRUE(Scan(table_->primary(), {ColumnId{1}}).ok());
}

TEST_P(EnumCheckTest, AnUnknownCodeInAnArrayIsToo) {
  Put(1, kEnumCodeGap, {kEnumCodeGap, 8});
  EXPECT_EQ(Scan(table_->primary(), LivingIds(*table_)).message(),
            "column \"list\" of table \"people\" holds 8, which is no label of enum mood");
}

INSTANTIATE_TEST_SUITE_P(Layouts, EnumCheckTest,
                         testing::Values(catalog::Layout::kRow, catalog::Layout::kPages,
                                         catalog::Layout::kCell, catalog::Layout::kDatum));

}  // namespace
}  // namespace cellar::table
