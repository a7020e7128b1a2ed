// The collector against interruptions, readers and clocks.
#include "cellar/session/collector.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>

#include "cellar/codec/key.h"
#include "cellar/kv/faulty_engine.h"
#include "cellar/kv/memory_engine.h"
#include "cellar/table/access.h"

namespace cellar::session {
namespace {

constexpr int64_t kHour = int64_t{3600} * 1000000;
constexpr int kRows = 25000;  // three steps

// A store that can be closed and opened again without ending its engine, as after a kill: whatever
// was not committed is gone, and so is all that is in memory.
class CollectorTest : public testing::Test {
 protected:
  CollectorTest()
      : engine_(kv::MakeMemoryEngine(), [this](kv::FaultPoint point) { return OnPoint(point); }) {
    Open();
  }

  kv::Fault OnPoint(kv::FaultPoint) {
    if (!points_left_) return kv::Fault::kNone;
    if (*points_left_ == 0) return kv::Fault::kUnavailable;  // dead from here on
    --*points_left_;
    return kv::Fault::kNone;
  }

  void Open() {
    collector_.reset();
    clock_.reset();
    tables_.reset();
    catalog_.reset();
    auto catalog = catalog::Catalog::Open(&engine_);
    ASSERT_TRUE(catalog.ok()) << catalog.status().ToString();
    catalog_ = std::move(*catalog);
    tables_ = std::make_unique<table::TableStore>(&engine_);
    clock_ = std::make_unique<StoreClock>(&engine_, [this] { return boot_micros_; });
    ASSERT_TRUE(clock_->Load().ok());
    collector_ =
        std::make_unique<Collector>(catalog_.get(), clock_.get(), [this](catalog::TableId storage) {
          tables_->Forget(storage);
          forgotten_ = storage;
        });
  }

  // Runs `edit` in a transaction of its own and publishes it.
  void Edit(const std::function<Status(catalog::CatalogEditor*, kv::Transaction*)>& edit) {
    std::unique_ptr<kv::Transaction> transaction = engine_.Begin();
    catalog::CatalogEditor editor(catalog_.get(), transaction.get());
    Status status = edit(&editor, transaction.get());
    ASSERT_TRUE(status.ok()) << status.ToString();
    auto version = transaction->Commit();
    ASSERT_TRUE(version.ok()) << version.status().ToString();
    catalog_->Publish(editor, *version);
  }

  catalog::DropMark Mark(int64_t keep) const {
    catalog::DropMark mark;
    mark.ticks = clock_->Ticks();
    mark.keep_micros = keep;
    return mark;
  }

  // A table with an index and `rows` rows; in the database `cellar`.
  catalog::TableId MakeTable(const std::string& name, int rows) {
    catalog::TableDescriptor table;
    table.parent = catalog::NamespaceId{2};
    table.name = name;
    table.columns.resize(1);
    table.columns[0].name = "a";
    table.columns[0].type = MakeType(TypeId::kInt4);
    catalog::TablePtr made;
    Edit([&](catalog::CatalogEditor* editor, kv::Transaction*) -> Status {
      CELLAR_TRY_ASSIGN(made, editor->CreateTable(table));
      return Status();
    });
    std::unique_ptr<kv::Transaction> transaction = engine_.Begin();
    table::Access access(transaction.get(), nullptr, tables_.get());
    std::vector<Type> types;
    for (const catalog::ColumnDescriptor& column : made->columns) types.push_back(column.type);
    RowBatch batch;
    batch.Reset(types);
    for (int i = 0; i < rows; ++i) {
      batch.AppendRow(std::vector<Datum>{Datum::Int(i), Datum()});
      if (batch.size() < 1000 && i + 1 < rows) continue;
      Status status = access.Insert(made, &batch, table::ConflictPolicy(), nullptr);
      EXPECT_TRUE(status.ok()) << status.ToString();
      batch.Reset(types);
    }
    EXPECT_TRUE(transaction->Commit().ok());
    return made->id;
  }

  void Drop(catalog::TableId id, int64_t keep) {
    Edit([&](catalog::CatalogEditor* editor, kv::Transaction*) {
      return editor->DropTable(id, Mark(keep));
    });
  }

  uint64_t CountKeys(catalog::TableId storage, kv::Transaction* transaction = nullptr) {
    std::unique_ptr<kv::Transaction> own;
    if (transaction == nullptr) own = engine_.Begin();
    kv::Transaction* reader = own != nullptr ? own.get() : transaction;
    const codec::KeyRange range = codec::PrefixRange(codec::TablePrefix(storage));
    auto cursor = reader->Scan(range.start, range.end);
    EXPECT_TRUE(cursor.ok());
    uint64_t keys = 0;
    kv::Block block;
    while (*(*cursor)->NextBlock(&block)) keys += block.size();
    return keys;
  }

  // Steps until there is nothing to do; the number of steps.
  int CollectAll() {
    for (int steps = 0; steps < 1000; ++steps) {
      Result<CollectStep> step = collector_->Step();
      EXPECT_TRUE(step.ok()) << step.status().ToString();
      if (!step.ok() || step->action == CollectAction::kNothing) return steps;
    }
    ADD_FAILURE() << "never ends";
    return -1;
  }

  std::optional<uint64_t> points_left_;
  int64_t boot_micros_ = 1000;
  kv::FaultyEngine engine_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<table::TableStore> tables_;
  std::unique_ptr<StoreClock> clock_;
  std::unique_ptr<Collector> collector_;
  std::optional<catalog::TableId> forgotten_;
};

TEST_F(CollectorTest, TakesWhatIsOverInBoundedSteps) {
  const catalog::TableId table = MakeTable("t", kRows);
  const catalog::TableId other = MakeTable("other", 10);
  Drop(table, kHour);
  EXPECT_EQ(CollectAll(), 0);
  boot_micros_ += kHour - 1;
  EXPECT_EQ(CollectAll(), 0);
  boot_micros_ += 1;
  std::vector<CollectAction> actions;
  while (true) {
    Result<CollectStep> step = collector_->Step();
    ASSERT_TRUE(step.ok()) << step.status().ToString();
    if (step->action == CollectAction::kNothing) break;
    EXPECT_LE(step->keys, Collector::kKeysAStep);
    actions.push_back(step->action);
  }
  EXPECT_EQ(actions, (std::vector<CollectAction>{CollectAction::kBegun, CollectAction::kDeleted,
                                                 CollectAction::kDeleted, CollectAction::kDeleted,
                                                 CollectAction::kRemoved}));
  EXPECT_EQ(CountKeys(table), 0u);
  EXPECT_EQ(CountKeys(other), 10u);
  EXPECT_EQ(forgotten_, table);
  EXPECT_EQ(catalog_->Current()->GetDroppedTable(table), nullptr);
  Open();
  EXPECT_EQ(catalog_->Current()->GetDroppedTable(table), nullptr);
  EXPECT_NE(catalog_->Current()->GetTable(other), nullptr);
}

TEST_F(CollectorTest, NothingComesBackOnceItIsBegun) {
  const catalog::TableId table = MakeTable("t", 10);
  Drop(table, 0);
  ASSERT_EQ(collector_->Step()->action, CollectAction::kBegun);
  std::unique_ptr<kv::Transaction> transaction = engine_.Begin();
  catalog::CatalogEditor editor(catalog_.get(), transaction.get());
  Result<catalog::TablePtr> back = editor.UndropTable(*catalog_->Current()->GetDroppedTable(table));
  EXPECT_EQ(back.status().sqlstate(), "55000");
}

// Who commits first wins; the other is told.
TEST_F(CollectorTest, UndropAndCollectionExcludeEachOther) {
  for (const bool undrop_first : {true, false}) {
    const catalog::TableId table = MakeTable(undrop_first ? "a" : "b", 10);
    Drop(table, 0);
    std::unique_ptr<kv::Transaction> transaction = engine_.Begin();
    catalog::CatalogEditor editor(catalog_.get(), transaction.get());
    ASSERT_TRUE(editor.UndropTable(*catalog_->Current()->GetDroppedTable(table)).ok());
    if (undrop_first) {
      ASSERT_TRUE(transaction->Commit().ok());  // not published yet
      EXPECT_EQ(collector_->Step().status().code(), Code::kConflict);
      ASSERT_TRUE(catalog_->Reload().ok());
      EXPECT_EQ(CollectAll(), 0);
      EXPECT_NE(catalog_->Current()->GetTable(table), nullptr);
      EXPECT_EQ(CountKeys(table), 10u);
    } else {
      ASSERT_EQ(collector_->Step()->action, CollectAction::kBegun);
      EXPECT_EQ(transaction->Commit().status().code(), Code::kConflict);
      transaction.reset();
      CollectAll();
      EXPECT_EQ(CountKeys(table), 0u);
    }
  }
}

TEST_F(CollectorTest, ReadersOfOlderSnapshotsSeeAllRows) {
  const catalog::TableId table = MakeTable("t", kRows);
  kv::TransactionOptions read_only;
  read_only.read_only = true;
  std::unique_ptr<kv::Transaction> reader = engine_.Begin(read_only);
  EXPECT_EQ(CountKeys(table, reader.get()), uint64_t{kRows});
  Drop(table, 0);
  while (collector_->Step()->action != CollectAction::kNothing)
    EXPECT_EQ(CountKeys(table, reader.get()), uint64_t{kRows});
  EXPECT_EQ(CountKeys(table), 0u);
}

// Dies before its n-th call of the engine, for every n there is; opened again it goes on.
TEST_F(CollectorTest, GoesOnAfterAKillAtAnyPoint) {
  for (uint64_t n = 0;; ++n) {
    const catalog::TableId table = MakeTable("t", kRows);
    const catalog::TableId other = MakeTable("other", 3);
    Drop(table, 0);
    points_left_ = n;
    Status status;
    while (status.ok()) {
      Result<CollectStep> step = collector_->Step();
      status = step.status();
      if (step.ok() && step->action == CollectAction::kNothing) break;
    }
    const bool died = !status.ok();
    points_left_.reset();
    Open();
    const catalog::TablePtr left = catalog_->Current()->GetDroppedTable(table);
    // A descriptor is there as long as a key is.
    if (left == nullptr) {
      EXPECT_EQ(CountKeys(table), 0u) << n;
    }
    // It may come back whole or not at all.
    if (left != nullptr && left->state == catalog::ObjectState::kDropped) {
      EXPECT_EQ(CountKeys(table), uint64_t{kRows}) << n;
    }
    CollectAll();
    EXPECT_EQ(CountKeys(table), 0u) << n;
    EXPECT_EQ(catalog_->Current()->GetDroppedTable(table), nullptr) << n;
    EXPECT_EQ(CountKeys(other), 3u) << n;
    Drop(other, 0);
    CollectAll();
    if (!died) {
      EXPECT_GT(n, 8u);
      return;
    }
  }
}

TEST_F(CollectorTest, TruncatedRowsGoAndTheTableStays) {
  const catalog::TableId table = MakeTable("t", 100);
  Edit([&](catalog::CatalogEditor* editor, kv::Transaction*) {
    return editor->TruncateTable(table, Mark(0));
  });
  const catalog::TableId now = catalog_->Current()->GetTable(table)->storage_id();
  EXPECT_NE(now, table);
  EXPECT_EQ(CountKeys(table), 100u);
  ASSERT_NE(catalog_->Current()->GetTableByStorage(table), nullptr);
  EXPECT_TRUE(catalog_->Current()->GetTableByStorage(table)->truncated);
  EXPECT_EQ(catalog_->Current()->GetTableByStorage(now)->id, table);
  CollectAll();
  EXPECT_EQ(CountKeys(table), 0u);
  EXPECT_EQ(catalog_->Current()->GetTableByStorage(table), nullptr);
  EXPECT_EQ(catalog_->Current()->GetTable(table)->storage_id(), now);
}

TEST_F(CollectorTest, NamespacesGoAfterWhatWasInThem) {
  catalog::NamespaceId space;
  Edit([&](catalog::CatalogEditor* editor, kv::Transaction*) -> Status {
    CELLAR_TRY_ASSIGN(catalog::NamespacePtr made,
                      editor->CreateNamespace(catalog::NamespaceId{2}, "s", "cellar"));
    space = made->id;
    catalog::TableDescriptor view;
    view.parent = space;
    view.name = "v";
    view.kind = catalog::RelationKind::kView;
    view.view_sql = "SELECT 1";
    CELLAR_TRY_ASSIGN(catalog::TablePtr stored, editor->CreateTable(view));
    CELLAR_TRY(editor->DropTable(stored->id, Mark(2 * kHour)));
    return editor->DropNamespace(space, Mark(kHour));
  });
  boot_micros_ += kHour;
  EXPECT_EQ(CollectAll(), 0);
  boot_micros_ += kHour;
  EXPECT_EQ(CollectAll(), 3);
  EXPECT_EQ(catalog_->Current()->GetDroppedNamespace(space), nullptr);
  Open();
  EXPECT_TRUE(catalog_->Current()->ListDroppedNamespaces().empty());
}

TEST_F(CollectorTest, IdsAreNeverUsedAgain) {
  uint64_t greatest = 0;
  for (int i = 0; i < 20; ++i) {
    const catalog::TableId table = MakeTable("t", 1);
    EXPECT_GT(table.value, greatest);
    greatest = table.value;
    Drop(table, 0);
    CollectAll();
    if (i % 3 == 0) Open();
  }
}

// Only time in which the store was open counts, and no crash makes it more.
TEST_F(CollectorTest, TheClockOnlyGrowsWhileTheStoreIsOpen) {
  const catalog::TableId table = MakeTable("t", 1);
  boot_micros_ += kHour / 2;
  ASSERT_TRUE(clock_->Save().ok());
  EXPECT_EQ(clock_->Ticks(), kHour / 2);
  Drop(table, kHour);
  boot_micros_ += kHour / 2;  // not saved: lost
  Open();
  EXPECT_EQ(clock_->Ticks(), kHour / 2);
  boot_micros_ = 0;  // the machine was started anew
  Open();
  EXPECT_EQ(clock_->Ticks(), kHour / 2);
  boot_micros_ = 100 * kHour;
  Open();
  EXPECT_EQ(CollectAll(), 0);
  boot_micros_ += kHour - 1;
  EXPECT_EQ(CollectAll(), 0);
  boot_micros_ += 1;
  EXPECT_GT(CollectAll(), 0);
}

}  // namespace
}  // namespace cellar::session
