// Each kind of damage to the catalog's records is found, and mended where it can be.
#include "cellar/catalog/records_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cellar/catalog/catalog_internal.h"
#include "cellar/codec/key.h"
#include "cellar/kv/memory_engine.h"

namespace cellar::catalog {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RecordsCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = kv::MakeMemoryEngine();
    Result<std::unique_ptr<Catalog>> catalog = Catalog::Open(engine_.get());
    ASSERT_TRUE(catalog.ok());
    std::unique_ptr<kv::Transaction> transaction = engine_->Begin();
    CatalogEditor editor(catalog->get(), transaction.get());
    Result<NamespacePtr> space = editor.CreateNamespace(NamespaceId{2}, "app", "bob");
    ASSERT_TRUE(space.ok());
    space_ = (*space)->id;
    TableDescriptor table;
    table.parent = space_;
    table.name = "t";
    ColumnDescriptor id;
    id.id.value = 1;
    id.name = "id";
    id.type = MakeType(TypeId::kInt4);
    id.not_null = true;
    table.columns = {id};
    IndexDescriptor primary;
    primary.name = "t_pkey";
    primary.primary = primary.unique = true;
    IndexColumn part;
    part.column.value = 1;
    primary.key = {part};
    table.indexes = {primary};
    Result<TablePtr> made = editor.CreateTable(table);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    table_ = *made;
    ASSERT_TRUE(transaction->Commit().ok());
  }

  void Write(const std::string& key, const std::optional<std::string>& value) {
    std::unique_ptr<kv::Transaction> transaction = engine_->Begin();
    ASSERT_TRUE((value ? transaction->Put(key, *value) : transaction->Delete(key)).ok());
    ASSERT_TRUE(transaction->Commit().ok());
  }
  std::vector<std::string> Findings() {
    std::vector<std::string> findings;
    EXPECT_TRUE(CheckRecords(engine_->Begin().get(), &findings).ok());
    return findings;
  }
  // What Repair did; what is left must be what a check finds then.
  std::vector<std::string> Repair() {
    std::vector<std::string> done, left;
    std::unique_ptr<kv::Transaction> transaction = engine_->Begin();
    EXPECT_TRUE(RepairRecords(transaction.get(), &done, &left).ok());
    EXPECT_TRUE(transaction->Commit().ok());
    EXPECT_EQ(Findings(), left);
    return done;
  }
  std::string TableName() { return codec::NameKey(space_, "t"); }

  std::unique_ptr<kv::Engine> engine_;
  NamespaceId space_;
  TablePtr table_;
};

TEST_F(RecordsCheckTest, AHealthyCatalogHasNoFindings) {
  EXPECT_THAT(Findings(), IsEmpty());
  EXPECT_THAT(Repair(), IsEmpty());
}

TEST_F(RecordsCheckTest, ANameWithoutADescriptorIsRemoved) {
  NameRecord record;
  record.relation_id = 900;
  Write(codec::NameKey(space_, "ghost"), EncodeNameRecord(record));
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("\"ghost\" in namespace")));
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("stands for relation 900 rather than nothing")));
  EXPECT_EQ(Repair().size(), 1u);
  EXPECT_THAT(Findings(), IsEmpty());
}

TEST_F(RecordsCheckTest, ADescriptorWithoutItsNameGetsItBack) {
  Write(TableName(), std::nullopt);
  Write(codec::NameKey(space_, "t_pkey"), std::nullopt);
  EXPECT_EQ(Findings().size(), 2u);
  EXPECT_EQ(Repair().size(), 2u);
  EXPECT_THAT(Findings(), IsEmpty());
}

TEST_F(RecordsCheckTest, AnotherObjectsNameIsPutRight) {
  NameRecord record;
  record.namespace_id = space_.value;
  Write(TableName(), EncodeNameRecord(record));
  EXPECT_EQ(Repair().size(), 1u);
  EXPECT_THAT(Findings(), IsEmpty());
}

TEST_F(RecordsCheckTest, TwoObjectsOfOneName) {
  TableDescriptor twin = *table_;
  twin.id.value = table_->id.value + 20;
  Write(codec::DescriptorKey(twin.id.value), EncodeTable(twin));
  EXPECT_THAT(Findings(), Contains(HasSubstr("are both named \"t\"")));
  EXPECT_THAT(Repair(), IsEmpty());
}

TEST_F(RecordsCheckTest, BytesThatDoNotRead) {
  Write(codec::DescriptorKey(table_->id.value), "\xff\xff");
  // Its names stay.
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("does not read")));
  EXPECT_THAT(Repair(), IsEmpty());
  Write(codec::SystemPrefix("name") + "\x15", "x");
  EXPECT_THAT(Findings(), Contains(HasSubstr("name")));
}

TEST_F(RecordsCheckTest, AnothersKey) {
  Write(codec::DescriptorKey(900), EncodeTable(*table_));
  EXPECT_THAT(Findings(), Contains(HasSubstr("holds the descriptor of object")));
}

TEST_F(RecordsCheckTest, ParentsAndReferencedTablesThatAreGone) {
  TableDescriptor table = *table_;
  table.foreign_keys.emplace_back();
  table.foreign_keys[0].name = "t_fkey";
  table.foreign_keys[0].referenced_table.value = 901;
  Write(codec::DescriptorKey(table.id.value), EncodeTable(table));
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("references relation 901")));
  Write(codec::DescriptorKey(space_.value), std::nullopt);
  EXPECT_THAT(Findings(), Contains(HasSubstr("relation 5 \"t\" lies in namespace 4")));
}

TEST_F(RecordsCheckTest, IdsThatWouldBeHandedOutAgain) {
  Write(codec::SystemKey("ids"), "\x08\x03");  // as format 1 wrote it
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("the sequence of ids is at 3")));
  EXPECT_EQ(Repair().size(), 1u);
  Write(codec::SystemKey("ids"), std::nullopt);
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("does not read")));
  EXPECT_EQ(Repair().size(), 1u);
  EXPECT_THAT(Findings(), IsEmpty());
}

}  // namespace
}  // namespace cellar::catalog
