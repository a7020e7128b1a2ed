#include "cellar/catalog/catalog.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "cellar/catalog/catalog_internal.h"
#include "cellar/catalog/persistent_map.h"
#include "cellar/catalog/unreadable.h"
#include "cellar/codec/key.h"
#include "cellar/kv/faulty_engine.h"
#include "cellar/kv/memory_engine.h"

namespace cellar::catalog {
namespace {

ColumnDescriptor Column(uint32_t id, std::string name, TypeId type, bool not_null = false) {
  ColumnDescriptor column;
  column.id.value = id;
  column.name = std::move(name);
  column.type = MakeType(type);
  column.not_null = not_null;
  return column;
}

IndexDescriptor Index(std::string name, std::vector<uint32_t> columns, bool unique = false,
                      bool primary = false) {
  IndexDescriptor index;
  index.name = std::move(name);
  index.unique = unique || primary;
  index.primary = primary;
  for (uint32_t id : columns) {
    IndexColumn column;
    column.column.value = id;
    index.key.push_back(column);
  }
  return index;
}

TableDescriptor SimpleTable(NamespaceId parent, std::string name) {
  TableDescriptor table;
  table.parent = parent;
  table.name = name;
  table.columns = {Column(1, "id", TypeId::kInt4, true), Column(2, "name", TypeId::kText)};
  table.indexes = {Index(name + "_pkey", {1}, true, true), Index(name + "_name_idx", {2})};
  return table;
}

class CatalogTest : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = kv::MakeMemoryEngine();
    Reopen();
  }
  void Reopen() {
    Result<std::unique_ptr<Catalog>> opened = Catalog::Open(engine_.get());
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    catalog_ = std::move(opened).value();
  }
  NamespaceId Database() {
    return catalog_->Current()->FindNamespace(kRootNamespace, "cellar")->id;
  }

  // Runs `edit` in a transaction of its own, commits and publishes.
  template <typename Edit>
  Status Run(Edit&& edit) {
    std::unique_ptr<kv::Transaction> transaction = engine_->Begin();
    CatalogEditor editor(catalog_.get(), transaction.get());
    CELLAR_TRY(edit(editor));
    CELLAR_TRY_ASSIGN(uint64_t version, transaction->Commit());
    catalog_->Publish(editor, version);
    return Status();
  }
  Status Create(const TableDescriptor& table) {
    return Run([&](CatalogEditor& editor) { return editor.CreateTable(table).status(); });
  }

  std::unique_ptr<kv::Engine> engine_;
  std::unique_ptr<Catalog> catalog_;
};

// A type of two labels and, with it, a table whose second column has it.
TableDescriptor MoodType(NamespaceId parent) {
  TableDescriptor type;
  type.kind = RelationKind::kType;
  type.parent = parent;
  type.name = "mood";
  type.enumeration = Intern({0, 0, "", {{kEnumCodeGap, 0, "sad"}, {2 * kEnumCodeGap, 0, "ok"}}});
  return type;
}
TableDescriptor TableWith(NamespaceId parent, std::string name, const EnumType* type) {
  TableDescriptor table = SimpleTable(parent, std::move(name));
  table.columns[1].type = MakeEnum(type);
  return table;
}

TEST_F(CatalogTest, TypesShareNamesWithRelationsButAreNone) {
  ASSERT_TRUE(Create(MoodType(Database())).ok());
  Reopen();
  SnapshotPtr snapshot = catalog_->Current();
  TablePtr type = snapshot->FindType(Database(), "mood");
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(type->enumeration->name, "mood");
  EXPECT_EQ(type->enumeration->oid, type->oid());
  EXPECT_NE(type->enumeration->labels[0].oid, type->enumeration->labels[1].oid);
  EXPECT_EQ(snapshot->FindTable(Database(), "mood"), nullptr);
  EXPECT_EQ(snapshot->GetTableByOid(type->oid()), nullptr);
  EXPECT_EQ(snapshot->GetTypeByOid(type->oid()), type);
  EXPECT_EQ(snapshot->GetTypeByOid(type->enumeration->array_oid), type);
  EXPECT_TRUE(snapshot->ListTables(Database()).empty());
  EXPECT_TRUE(snapshot->ListAllTables().empty());
  EXPECT_EQ(snapshot->ListTypes(Database()).size(), 1u);
  EXPECT_EQ(snapshot->ListAllTypes().size(), 1u);
  EXPECT_EQ(Create(SimpleTable(Database(), "mood")).sqlstate(), "42P07");
  ASSERT_TRUE(Run([&](CatalogEditor& editor) { return editor.DropTable(type->id); }).ok());
  EXPECT_EQ(catalog_->Current()->GetTypeByOid(type->oid()), nullptr);
  EXPECT_TRUE(Create(SimpleTable(Database(), "mood")).ok());
}

TEST_F(CatalogTest, ANewColumnTakesTheTypeThatIsThereNow) {
  ASSERT_TRUE(Create(MoodType(Database())).ok());
  const TablePtr old = catalog_->Current()->FindType(Database(), "mood");
  TableDescriptor changed = *old;
  EnumType more = *old->enumeration;
  more.labels.push_back({3 * kEnumCodeGap, 0, "happy"});
  changed.enumeration = Intern(more);
  ASSERT_TRUE(
      Run([&](CatalogEditor& editor) { return editor.UpdateTable(changed).status(); }).ok());
  ASSERT_TRUE(Create(TableWith(Database(), "t", old->enumeration)).ok());
  Reopen();
  TablePtr table = catalog_->Current()->FindTable(Database(), "t");
  EXPECT_EQ(table->columns[1].type.enumeration->labels.size(), 3u);
  const TablePtr type = catalog_->Current()->FindType(Database(), "mood");
  EXPECT_EQ(table->columns[1].type.enumeration, type->enumeration);

  ASSERT_TRUE(Run([&](CatalogEditor& editor) { return editor.DropTable(type->id); }).ok());
  EXPECT_EQ(Create(TableWith(Database(), "u", type->enumeration)).sqlstate(), "42704");
}

TEST_F(CatalogTest, AColumnOfATypeAndADropOfTheTypeConflictEitherWay) {
  for (const bool drop_first : {true, false}) {
    ASSERT_TRUE(Create(MoodType(Database())).ok());
    const TablePtr type = catalog_->Current()->FindType(Database(), "mood");
    std::unique_ptr<kv::Transaction> one = engine_->Begin(), two = engine_->Begin();
    CatalogEditor makes(catalog_.get(), one.get()), drops(catalog_.get(), two.get());
    const TableDescriptor table = TableWith(Database(), drop_first ? "a" : "b", type->enumeration);
    ASSERT_TRUE(makes.CreateTable(table).ok());
    ASSERT_TRUE(drops.DropTable(type->id).ok());
    kv::Transaction* first = drop_first ? two.get() : one.get();
    kv::Transaction* second = drop_first ? one.get() : two.get();
    Result<uint64_t> version = first->Commit();
    ASSERT_TRUE(version.ok());
    EXPECT_EQ(second->Commit().status().code(), Code::kConflict);
    catalog_->Publish(drop_first ? drops : makes, *version);
  }
}

TEST_F(CatalogTest, NewStoreHasRootAndFirstDatabases) {
  SnapshotPtr snapshot = catalog_->Current();
  ASSERT_NE(snapshot->GetNamespace(kRootNamespace), nullptr);
  NamespacePtr database = snapshot->FindNamespace(kRootNamespace, "cellar");
  ASSERT_NE(database, nullptr);
  EXPECT_EQ(database->parent, kRootNamespace);
  EXPECT_NE(snapshot->FindNamespace(kRootNamespace, "postgres"), nullptr);
  EXPECT_EQ(snapshot->ListNamespaces(kRootNamespace).size(), 2u);
}

TEST_F(CatalogTest, ReopeningKeepsAllObjects) {
  ASSERT_TRUE(Create(SimpleTable(Database(), "t")).ok());
  Reopen();
  TablePtr table = catalog_->Current()->FindTable(Database(), "t");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->columns.size(), 2u);
  EXPECT_EQ(catalog_->Current()->PathOf(*table), "/cellar/t");
}

TEST_F(CatalogTest, CreateTableFillsInIdsOidsAndRowFormat) {
  ASSERT_TRUE(Create(SimpleTable(Database(), "t")).ok());
  SnapshotPtr snapshot = catalog_->Current();
  TablePtr table = snapshot->FindTable(Database(), "t");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->version, 1u);
  EXPECT_EQ(table->indexes[0].id.value, 0u);
  EXPECT_EQ(table->indexes[1].id.value, 4u);
  EXPECT_EQ(table->next_index_id, 5u);
  EXPECT_NE(table->indexes[0].oid, table->indexes[1].oid);
  EXPECT_EQ(table->next_column_id, 3u);
  ASSERT_EQ(table->row_formats.size(), 1u);
  EXPECT_EQ(table->row_formats[0].columns.size(), 2u);
  EXPECT_EQ(snapshot->GetTableByOid(table->oid()), table);
  const IndexDescriptor* index = nullptr;
  EXPECT_EQ(snapshot->FindTableOfIndex(Database(), "t_name_idx", &index), table);
  ASSERT_NE(index, nullptr);
  EXPECT_EQ(index->name, "t_name_idx");
  EXPECT_EQ(snapshot->FindTableOfIndexOid(index->oid, &index), table);
}

TEST_F(CatalogTest, TableWithoutPrimaryKeyGetsAHiddenRowId) {
  TableDescriptor table = SimpleTable(Database(), "t");
  table.indexes.clear();
  ASSERT_TRUE(Create(table).ok());
  TablePtr made = catalog_->Current()->FindTable(Database(), "t");
  ASSERT_EQ(made->columns.size(), 3u);
  EXPECT_TRUE(made->columns[2].hidden);
  EXPECT_TRUE(made->primary().primary);
  EXPECT_EQ(made->primary().key[0].column, made->columns[2].id);
}

TEST_F(CatalogTest, NamesThatOlderStoresGaveHiddenKeysAreOutOfReachAndGoAtTheNextChange) {
  TableDescriptor table = SimpleTable(Database(), "hh");
  table.indexes.clear();
  ASSERT_TRUE(Create(table).ok());
  const TablePtr made = catalog_->Current()->FindTable(Database(), "hh");
  TableDescriptor older = *made;
  older.indexes[0].name = "hh_rowid";
  NameRecord record;
  record.relation_id = made->id.value;
  record.is_index = true;
  record.index = made->indexes[0].id;
  const std::unique_ptr<kv::Transaction> transaction = engine_->Begin();
  ASSERT_TRUE(transaction->Put(codec::DescriptorKey(made->id.value), EncodeTable(older)).ok());
  ASSERT_TRUE(
      transaction->Put(codec::NameKey(Database(), "hh_rowid"), EncodeNameRecord(record)).ok());
  ASSERT_TRUE(transaction->Commit().ok());
  Reopen();

  const IndexDescriptor* index = nullptr;
  EXPECT_EQ(catalog_->Current()->FindTableOfIndex(Database(), "hh_rowid", &index), nullptr);
  EXPECT_EQ(index, nullptr);
  EXPECT_EQ(Create(SimpleTable(Database(), "hh_rowid")).sqlstate(), "42P07");
  ASSERT_TRUE(
      Run([&](CatalogEditor& editor) {
        return editor.UpdateTable(*catalog_->Current()->FindTable(Database(), "hh")).status();
      }).ok());
  EXPECT_TRUE(Create(SimpleTable(Database(), "hh_rowid")).ok());
  Reopen();
  EXPECT_TRUE(catalog_->Current()->FindTable(Database(), "hh")->indexes[0].name.empty());
}

TEST_F(CatalogTest, RelationsAndIndexesOfANamespaceShareNames) {
  ASSERT_TRUE(Create(SimpleTable(Database(), "t")).ok());
  Status again = Create(SimpleTable(Database(), "t"));
  EXPECT_EQ(again.sqlstate(), "42P07");
  EXPECT_EQ(again.message(), "relation \"t\" already exists");
  Status index_name = Create(SimpleTable(Database(), "t_name_idx"));
  EXPECT_EQ(index_name.sqlstate(), "42P07");
  TableDescriptor other = SimpleTable(Database(), "u");
  other.indexes[1].name = "t";
  EXPECT_EQ(Create(other).sqlstate(), "42P07");
}

TEST_F(CatalogTest, ANamespaceAndATableMayShareAName) {
  ASSERT_TRUE(Create(SimpleTable(Database(), "app")).ok());
  ASSERT_TRUE(Run([&](CatalogEditor& editor) {
                return editor.CreateNamespace(Database(), "app", "cellar").status();
              }).ok());
  EXPECT_NE(catalog_->Current()->FindTable(Database(), "app"), nullptr);
  EXPECT_NE(catalog_->Current()->FindNamespace(Database(), "app"), nullptr);
  TableId id = catalog_->Current()->FindTable(Database(), "app")->id;
  ASSERT_TRUE(Run([&](CatalogEditor& editor) { return editor.DropTable(id); }).ok());
  Reopen();
  EXPECT_EQ(catalog_->Current()->FindTable(Database(), "app"), nullptr);
  EXPECT_NE(catalog_->Current()->FindNamespace(Database(), "app"), nullptr);
  EXPECT_EQ(Run([&](CatalogEditor& editor) {
              return editor.CreateNamespace(Database(), "app", "cellar").status();
            }).sqlstate(),
            "42P06");
}

TEST_F(CatalogTest, NamespaceErrorsAreThoseOfPostgres) {
  auto create = [&](NamespaceId parent, std::string_view name) {
    return Run([&](CatalogEditor& editor) {
      return editor.CreateNamespace(parent, name, "cellar").status();
    });
  };
  EXPECT_EQ(create(kRootNamespace, "cellar").sqlstate(), "42P04");
  EXPECT_TRUE(create(Database(), "s").ok());
  EXPECT_EQ(create(Database(), "s").sqlstate(), "42P06");
  EXPECT_EQ(create(Database(), "public").sqlstate(), "42P06");
  EXPECT_EQ(create(Database(), "pg_x").sqlstate(), "42939");
  EXPECT_EQ(create(NamespaceId{999}, "x").sqlstate(), "3F000");
}

TEST_F(CatalogTest, RenameDropAndRecreateFreeNamesAtOnce) {
  ASSERT_TRUE(Create(SimpleTable(Database(), "t")).ok());
  TablePtr first = catalog_->Current()->FindTable(Database(), "t");
  ASSERT_TRUE(Run([&](CatalogEditor& editor) {
                TableDescriptor renamed = *first;
                renamed.name = "old";
                CELLAR_TRY(editor.UpdateTable(renamed).status());
                // The indexes kept their names, so a new "t" must choose others.
                TableDescriptor fresh = SimpleTable(Database(), "t");
                fresh.indexes[0].name = "t2_pkey";
                fresh.indexes[1].name = "t2_name_idx";
                return editor.CreateTable(fresh).status();
              }).ok());
  SnapshotPtr snapshot = catalog_->Current();
  EXPECT_EQ(snapshot->FindTable(Database(), "old")->id, first->id);
  EXPECT_NE(snapshot->FindTable(Database(), "t")->id, first->id);
  ASSERT_TRUE(Run([&](CatalogEditor& editor) { return editor.DropTable(first->id); }).ok());
  ASSERT_TRUE(Create(SimpleTable(Database(), "old")).sqlstate().empty());
  Reopen();
  snapshot = catalog_->Current();
  EXPECT_NE(snapshot->FindTable(Database(), "old")->id, first->id);
  EXPECT_EQ(snapshot->GetTable(first->id), nullptr);
  ASSERT_NE(snapshot->GetDroppedTable(first->id), nullptr);
  EXPECT_EQ(snapshot->ListDroppedTables().size(), 1u);
  EXPECT_GT(snapshot->GetDroppedTable(first->id)->dropped_at_micros, 0);
}

TEST_F(CatalogTest, DropNamespaceDemandsThatItIsEmpty) {
  NamespaceId schema;
  ASSERT_TRUE(Run([&](CatalogEditor& editor) -> Status {
                CELLAR_TRY_ASSIGN(NamespacePtr made,
                                  editor.CreateNamespace(Database(), "s", "cellar"));
                schema = made->id;
                return editor.CreateTable(SimpleTable(schema, "t")).status();
              }).ok());
  auto drop = [&] {
    return Run([&](CatalogEditor& editor) { return editor.DropNamespace(schema); });
  };
  EXPECT_EQ(drop().sqlstate(), "2BP01");
  TableId id = catalog_->Current()->FindTable(schema, "t")->id;
  ASSERT_TRUE(Run([&](CatalogEditor& editor) { return editor.DropTable(id); }).ok());
  EXPECT_TRUE(drop().ok());
  EXPECT_EQ(catalog_->Current()->FindNamespace(Database(), "s"), nullptr);
  EXPECT_EQ(Create(SimpleTable(schema, "t")).sqlstate(), "3F000");
}

TEST_F(CatalogTest, RollbackToSavepointForgetsLaterChanges) {
  ASSERT_TRUE(Run([&](CatalogEditor& editor) -> Status {
                CELLAR_TRY(editor.CreateTable(SimpleTable(Database(), "a")).status());
                return Status();
              }).ok());
  std::unique_ptr<kv::Transaction> transaction = engine_->Begin();
  CatalogEditor editor(catalog_.get(), transaction.get());
  EXPECT_FALSE(editor.changed());
  const kv::SavepointId kv_savepoint = transaction->Savepoint();
  const size_t savepoint = editor.Savepoint();
  ASSERT_TRUE(editor.CreateTable(SimpleTable(Database(), "b")).ok());
  ASSERT_TRUE(editor.DropTable(catalog_->Current()->FindTable(Database(), "a")->id).ok());
  EXPECT_TRUE(editor.changed());
  EXPECT_EQ(editor.snapshot()->FindTable(Database(), "a"), nullptr);
  EXPECT_NE(editor.snapshot()->FindTable(Database(), "b"), nullptr);
  EXPECT_EQ(catalog_->Current()->FindTable(Database(), "b"), nullptr);
  ASSERT_TRUE(transaction->RollbackTo(kv_savepoint).ok());
  editor.RollbackTo(savepoint);
  EXPECT_FALSE(editor.changed());
  EXPECT_NE(editor.snapshot()->FindTable(Database(), "a"), nullptr);
  EXPECT_EQ(editor.snapshot()->FindTable(Database(), "b"), nullptr);
  ASSERT_TRUE(editor.CreateTable(SimpleTable(Database(), "b")).ok());
  Result<uint64_t> version = transaction->Commit();
  ASSERT_TRUE(version.ok());
  catalog_->Publish(editor, version.value());
  EXPECT_NE(catalog_->Current()->FindTable(Database(), "b"), nullptr);
  EXPECT_NE(catalog_->Current()->FindTable(Database(), "a"), nullptr);
}

TEST_F(CatalogTest, TwoEditorsOfOneTableCannotBothCommit) {
  for (kv::Isolation isolation : {kv::Isolation::kSerializable, kv::Isolation::kSnapshot}) {
    const std::string name = isolation == kv::Isolation::kSnapshot ? "snap" : "ser";
    ASSERT_TRUE(Create(SimpleTable(Database(), name)).ok());
    kv::TransactionOptions options;
    options.isolation = isolation;
    auto first = engine_->Begin(options), second = engine_->Begin(options);
    CatalogEditor a(catalog_.get(), first.get()), b(catalog_.get(), second.get());
    for (CatalogEditor* editor : {&a, &b}) {
      TableDescriptor changed = *editor->snapshot()->FindTable(Database(), name);
      changed.comment = "changed";
      ASSERT_TRUE(editor->UpdateTable(changed).ok());
    }
    Result<uint64_t> version = first->Commit();
    ASSERT_TRUE(version.ok());
    catalog_->Publish(a, version.value());
    EXPECT_EQ(second->Commit().status().code(), Code::kConflict);
  }
}

TEST_F(CatalogTest, TwoEditorsCannotTakeOneName) {
  for (kv::Isolation isolation : {kv::Isolation::kSerializable, kv::Isolation::kSnapshot}) {
    const std::string name = isolation == kv::Isolation::kSnapshot ? "snap" : "ser";
    kv::TransactionOptions options;
    options.isolation = isolation;
    auto first = engine_->Begin(options), second = engine_->Begin(options);
    CatalogEditor a(catalog_.get(), first.get()), b(catalog_.get(), second.get());
    ASSERT_TRUE(a.CreateTable(SimpleTable(Database(), name)).ok());
    ASSERT_TRUE(b.CreateTable(SimpleTable(Database(), name)).ok());
    Result<uint64_t> version = first->Commit();
    ASSERT_TRUE(version.ok());
    catalog_->Publish(a, version.value());
    EXPECT_EQ(second->Commit().status().code(), Code::kConflict);
  }
}

TEST_F(CatalogTest, CreatingInANamespaceThatIsBeingDroppedConflictsEitherWay) {
  for (bool create_first : {true, false}) {
    for (kv::Isolation isolation : {kv::Isolation::kSerializable, kv::Isolation::kSnapshot}) {
      NamespaceId schema;
      ASSERT_TRUE(Run([&](CatalogEditor& editor) -> Status {
                    const std::string name =
                        "s" + std::to_string(create_first) + std::to_string(int(isolation));
                    CELLAR_TRY_ASSIGN(NamespacePtr made,
                                      editor.CreateNamespace(Database(), name, ""));
                    schema = made->id;
                    return Status();
                  }).ok());
      kv::TransactionOptions options;
      options.isolation = isolation;
      auto creating = engine_->Begin(options), dropping = engine_->Begin(options);
      CatalogEditor a(catalog_.get(), creating.get()), b(catalog_.get(), dropping.get());
      ASSERT_TRUE(a.CreateTable(SimpleTable(schema, "t")).ok());
      ASSERT_TRUE(b.DropNamespace(schema).ok());
      Result<uint64_t> first = create_first ? creating->Commit() : dropping->Commit();
      ASSERT_TRUE(first.ok());
      catalog_->Publish(create_first ? a : b, first.value());
      Result<uint64_t> second = create_first ? dropping->Commit() : creating->Commit();
      EXPECT_EQ(second.status().code(), Code::kConflict);
    }
  }
}

TEST_F(CatalogTest, EditorsOfDifferentTablesBothCommitAndPublishInEitherOrder) {
  auto first = engine_->Begin(), second = engine_->Begin();
  CatalogEditor a(catalog_.get(), first.get()), b(catalog_.get(), second.get());
  ASSERT_TRUE(a.CreateTable(SimpleTable(Database(), "a")).ok());
  ASSERT_TRUE(b.CreateTable(SimpleTable(Database(), "b")).ok());
  Result<uint64_t> va = first->Commit();
  Result<uint64_t> vb = second->Commit();
  ASSERT_TRUE(va.ok() && vb.ok()) << vb.status().ToString();
  catalog_->Publish(b, vb.value());
  catalog_->Publish(a, va.value());
  EXPECT_NE(catalog_->Current()->FindTable(Database(), "a"), nullptr);
  EXPECT_NE(catalog_->Current()->FindTable(Database(), "b"), nullptr);
}

TEST_F(CatalogTest, LatePublishOfADropDoesNotTakeTheNameFromItsNewOwner) {
  ASSERT_TRUE(Create(SimpleTable(Database(), "t")).ok());
  TableId old_id = catalog_->Current()->FindTable(Database(), "t")->id;
  auto first = engine_->Begin();
  CatalogEditor a(catalog_.get(), first.get());
  ASSERT_TRUE(a.DropTable(old_id).ok());
  Result<uint64_t> va = first->Commit();
  ASSERT_TRUE(va.ok());
  auto second = engine_->Begin();
  CatalogEditor b(catalog_.get(), second.get());
  ASSERT_TRUE(b.CreateTable(SimpleTable(Database(), "t")).ok());
  Result<uint64_t> vb = second->Commit();
  ASSERT_TRUE(vb.ok());
  catalog_->Publish(b, vb.value());
  catalog_->Publish(a, va.value());
  TablePtr table = catalog_->Current()->FindTable(Database(), "t");
  ASSERT_NE(table, nullptr);
  EXPECT_NE(table->id, old_id);
  EXPECT_EQ(catalog_->Current()->GetTable(old_id), nullptr);
}

TEST_F(CatalogTest, ManyThreadsCreateTablesWithDistinctIds) {
  constexpr int kThreads = 4, kTables = 20;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTables; ++i) {
        std::string name = "t" + std::to_string(t) + "_" + std::to_string(i);
        Status status;
        do {
          status = Create(SimpleTable(Database(), name));
        } while (status.code() == Code::kConflict);
        EXPECT_TRUE(status.ok()) << status.ToString();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<TablePtr> tables = catalog_->Current()->ListTables(Database());
  EXPECT_EQ(tables.size(), size_t{kThreads * kTables});
  std::set<uint32_t> oids;
  for (const TablePtr& table : tables) {
    EXPECT_TRUE(oids.insert(table->oid()).second);
    for (const IndexDescriptor& index : table->indexes) {
      EXPECT_TRUE(oids.insert(index.oid).second);
    }
  }
  const size_t before = tables.size();
  Reopen();
  EXPECT_EQ(catalog_->Current()->ListTables(Database()).size(), before);
}

TEST_F(CatalogTest, RequireCurrentRefusesACommitUnderAnOldSchema) {
  ASSERT_TRUE(Create(SimpleTable(Database(), "t")).ok());
  TablePtr table = catalog_->Current()->FindTable(Database(), "t");
  auto writer = engine_->Begin();
  ASSERT_TRUE(RequireCurrent(*table, writer.get()).ok());
  ASSERT_TRUE(writer->Put("x", "y").ok());
  ASSERT_TRUE(Run([&](CatalogEditor& editor) {
                TableDescriptor changed = *table;
                changed.columns.push_back(Column(0, "more", TypeId::kInt8));
                return editor.UpdateTable(changed).status();
              }).ok());
  EXPECT_EQ(writer->Commit().status().code(), Code::kConflict);
  TablePtr changed = catalog_->Current()->FindTable(Database(), "t");
  EXPECT_EQ(changed->version, 2u);
  EXPECT_EQ(changed->row_formats.size(), 2u);
  EXPECT_EQ(changed->columns[2].id.value, 3u);
  auto later = engine_->Begin();
  ASSERT_TRUE(RequireCurrent(*changed, later.get()).ok());
  ASSERT_TRUE(later->Put("x", "y").ok());
  EXPECT_TRUE(later->Commit().ok());
}

TEST_F(CatalogTest, RequireCurrentRefusesADescriptorNewerThanTheSnapshot) {
  ASSERT_TRUE(Create(SimpleTable(Database(), "t")).ok());
  auto old = engine_->Begin();
  kv::PinnedValue value;
  ASSERT_TRUE(old->Get("x", &value).ok());
  ASSERT_TRUE(RequireCurrent(*catalog_->Current()->FindTable(Database(), "t"), old.get()).ok());
  ASSERT_TRUE(Create(SimpleTable(Database(), "later")).ok());
  TablePtr later = catalog_->Current()->FindTable(Database(), "later");
  EXPECT_EQ(RequireCurrent(*later, old.get()).sqlstate(), "40001");
  auto fresh = engine_->Begin();
  EXPECT_TRUE(RequireCurrent(*later, fresh.get()).ok());
  ASSERT_TRUE(fresh->Get("x", &value).ok());
  EXPECT_TRUE(RequireCurrent(*later, fresh.get()).ok());
}

TEST_F(CatalogTest, DescriptorErrorsAreThoseOfPostgres) {
  TableDescriptor twice = SimpleTable(Database(), "t");
  twice.columns[1].name = "id";
  EXPECT_EQ(Create(twice).sqlstate(), "42701");
  TableDescriptor json = SimpleTable(Database(), "t");
  json.columns[1].type = MakeType(TypeId::kJson);
  EXPECT_EQ(Create(json).sqlstate(), "42704");
  TableDescriptor stale = SimpleTable(Database(), "t");
  ASSERT_TRUE(Create(stale).ok());
  TableDescriptor known = *catalog_->Current()->FindTable(Database(), "t");
  known.version = 77;
  EXPECT_EQ(Run([&](CatalogEditor& e) { return e.UpdateTable(known).status(); }).code(),
            Code::kConflict);
}

TEST_F(CatalogTest, ReloadSeesWhatAnotherCatalogCommitted) {
  Result<std::unique_ptr<Catalog>> other = Catalog::Open(engine_.get());
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(Create(SimpleTable(Database(), "t")).ok());
  EXPECT_EQ(other.value()->Current()->FindTable(Database(), "t"), nullptr);
  ASSERT_TRUE(other.value()->Reload().ok());
  EXPECT_NE(other.value()->Current()->FindTable(Database(), "t"), nullptr);
}

TEST(CatalogCommit, OfUnknownOutcomeShowsOnceItIsKnown) {
  for (const kv::Fault fault : {kv::Fault::kUnknownApplied, kv::Fault::kUnknownLost}) {
    bool faulty = false;
    kv::FaultyEngine engine(kv::MakeMemoryEngine(), [&](kv::FaultPoint point) {
      return faulty && point == kv::FaultPoint::kCommit ? fault : kv::Fault::kNone;
    });
    Result<std::unique_ptr<Catalog>> catalog = Catalog::Open(&engine);
    ASSERT_TRUE(catalog.ok());
    const std::unique_ptr<kv::Transaction> transaction = engine.Begin();
    CatalogEditor editor(catalog->get(), transaction.get());
    ASSERT_TRUE(editor.CreateNamespace(kRootNamespace, "new", "cellar").ok());
    faulty = true;
    EXPECT_EQ((*catalog)->Commit(editor).status().code(), Code::kCommitUnknown);
    faulty = false;
    EXPECT_EQ((*catalog)->Current()->FindNamespace(kRootNamespace, "new") != nullptr,
              fault == kv::Fault::kUnknownApplied);
  }
}

TEST_F(CatalogTest, ForeignKeysAreFoundFromTheReferencedTable) {
  ASSERT_TRUE(Create(SimpleTable(Database(), "parent")).ok());
  TablePtr parent = catalog_->Current()->FindTable(Database(), "parent");
  TableDescriptor child = SimpleTable(Database(), "child");
  ForeignKey key;
  key.name = "child_fk";
  key.columns = {ColumnId{1}};
  key.referenced_table = parent->id;
  key.referenced_columns = {ColumnId{1}};
  child.foreign_keys.push_back(key);
  ASSERT_TRUE(Create(child).ok());
  std::vector<TablePtr> found = catalog_->Current()->ListReferencing(parent->id);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]->name, "child");
  EXPECT_NE(found[0]->foreign_keys[0].oid, 0u);
  TableDescriptor without = *found[0];
  without.foreign_keys.clear();
  ASSERT_TRUE(Run([&](CatalogEditor& e) { return e.UpdateTable(without).status(); }).ok());
  EXPECT_TRUE(catalog_->Current()->ListReferencing(parent->id).empty());
}

TEST_F(CatalogTest, ADescriptorThatDoesNotReadIsLeftOut) {
  auto transaction = engine_->Begin();
  ASSERT_TRUE(transaction->Put(codec::DescriptorKey(500), "\xff\xff").ok());
  ASSERT_TRUE(transaction->Commit().ok());
  Result<std::unique_ptr<Catalog>> opened = Catalog::Open(engine_.get());
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  const SnapshotPtr catalog = (*opened)->Current();
  ASSERT_EQ(ListUnreadable(*catalog).size(), 1u);
  EXPECT_TRUE(IsUnreadable(*catalog, 500));
  ForgetUnreadableMet();
  EXPECT_EQ(catalog->GetTable(TableId{500}), nullptr);
  EXPECT_EQ(UnreadableMet().sqlstate(), "XX001");
  EXPECT_FALSE(HasUnreadable(*catalog_->Current()));
}

// All that lies below it goes on, though nothing is put into it.
TEST_F(CatalogTest, ARootThatDoesNotReadIsWhatItHasToBe) {
  auto transaction = engine_->Begin();
  ASSERT_TRUE(transaction->Put(codec::DescriptorKey(kRootNamespace.value), "").ok());
  ASSERT_TRUE(transaction->Commit().ok());
  Result<std::unique_ptr<Catalog>> opened = Catalog::Open(engine_.get());
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  EXPECT_NE((*opened)->Current()->FindNamespace(kRootNamespace, "cellar"), nullptr);
  transaction = engine_->Begin();
  CatalogEditor editor(opened->get(), transaction.get());
  EXPECT_EQ(editor.CreateNamespace(kRootNamespace, "more", "bob").status().code(),
            Code::kCorruption);
}

TEST(PersistentMap, CopiesKeepTheirContentWhileOthersChange) {
  PersistentMap<uint64_t, uint64_t> map;
  std::map<uint64_t, uint64_t> model;
  std::vector<std::pair<PersistentMap<uint64_t, uint64_t>, std::map<uint64_t, uint64_t>>> kept;
  uint64_t state = 7;
  for (int i = 0; i < 4000; ++i) {
    state = MixBits(state);
    uint64_t key = state % 300;
    if (state % 3 == 0) {
      map.Erase(key);
      model.erase(key);
    } else {
      map.Set(key, state);
      model[key] = state;
    }
    if (i % 500 == 0) kept.emplace_back(map, model);
  }
  kept.emplace_back(map, model);
  for (const auto& [copy, expected] : kept) {
    std::map<uint64_t, uint64_t> seen;
    copy.VisitAll([&](uint64_t key, uint64_t value) {
      seen[key] = value;
      return true;
    });
    EXPECT_EQ(seen, expected);
    std::vector<uint64_t> from;
    copy.VisitFrom(uint64_t{150}, [&](uint64_t key, uint64_t) {
      from.push_back(key);
      return true;
    });
    EXPECT_TRUE(std::is_sorted(from.begin(), from.end()));
    EXPECT_EQ(from.size(), size_t(std::distance(expected.lower_bound(150), expected.end())));
  }
}

// An id that is handed out twice would put one object over another.
TEST_F(CatalogTest, IdsGoOnBehindAllThatAreInUse) {
  ASSERT_TRUE(Create(SimpleTable(Database(), "first")).ok());
  const TablePtr first = catalog_->Current()->FindTable(Database(), "first");
  const auto reopen_with = [&](std::optional<std::string> ids) {
    std::unique_ptr<kv::Transaction> transaction = engine_->Begin();
    const std::string key = IdKey();
    ASSERT_TRUE((ids ? transaction->Put(key, *ids) : transaction->Delete(key)).ok());
    ASSERT_TRUE(transaction->Commit().ok());
    Reopen();
  };
  int made = 0;
  for (const std::optional<std::string>& ids :
       {std::optional<std::string>("\x08\x02"), std::optional<std::string>()}) {
    reopen_with(ids);
    // Not made anew either.
    ASSERT_NE(catalog_->Current()->GetTable(first->id), nullptr);
    const std::string name = fmt::format("another{}", made++);
    ASSERT_TRUE(Create(SimpleTable(Database(), name)).ok());
    EXPECT_EQ(catalog_->Current()->FindTable(Database(), "first")->id, first->id);
    const TablePtr other = catalog_->Current()->FindTable(Database(), name);
    EXPECT_GT(other->id.value, GreatestIdOf(*first));
  }
  reopen_with("nonsense");
  EXPECT_EQ(Create(SimpleTable(Database(), "last")).code(), Code::kCorruption);
}

TEST_F(CatalogTest, AnIdThatAnObjectHasIsRefused) {
  ASSERT_TRUE(Create(SimpleTable(Database(), "first")).ok());
  // Written by somebody whom this catalog does not know of.
  const uint64_t next = catalog_->Current()->data().greatest_id + 1;
  std::unique_ptr<kv::Transaction> transaction = engine_->Begin();
  for (uint64_t id = next; id < next + 100; ++id) {
    TableDescriptor table = SimpleTable(Database(), "stranger");
    table.id.value = id;
    ASSERT_TRUE(PutDescriptor(table, transaction.get()).ok());
  }
  ASSERT_TRUE(transaction->Commit().ok());
  const Status status = Create(SimpleTable(Database(), "second"));
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_NE(status.message().find("but an object has it"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace cellar::catalog
