// Writers of one table beside each other and beside schema changes: indexes equal their table in
// the end, and no acknowledged row is lost.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "cellar/table/test_tables.h"

namespace cellar::table {
namespace {

constexpr int kWriters = 4;
constexpr int kTransactions = 60;
constexpr int kIds = 40;

class Concurrency : public testing::TestWithParam<kv::Isolation> {
 protected:
  void SetUp() override {
    TableDescriptor table;
    table.name = "t";
    table.columns = {MakeColumn(1, "id", TypeId::kInt4, true), MakeColumn(2, "u", TypeId::kInt4),
                     MakeColumn(3, "a", TypeId::kInt4)};
    table.indexes = {MakePrimary("t_pkey", {{1}}), MakeIndex("t_u_key", {{2}}, true),
                     MakeIndex("t_a_idx", {{3, true}})};
    table_ = store_.Create(table);
  }

  static bool Retry(const Status& status) { return status.code() == Code::kConflict; }

  // One transaction of a writer: a few changes to random rows, under the schema of the moment.
  Status Change(std::mt19937* random) {
    const TablePtr table = store_.catalog()->Current()->GetTable(table_->id);
    kv::TransactionOptions options;
    options.isolation = GetParam();
    auto transaction = store_.engine()->Begin(options);
    Access access(transaction.get(), nullptr, store_.tables());
    CELLAR_TRY(catalog::RequireCurrent(*table, transaction.get()));
    for (int i = 0; i < 3; ++i) {
      const int id = static_cast<int>((*random)() % kIds);
      Row row = {std::to_string(id), std::to_string((*random)() % kIds),
                 std::to_string((*random)() % 5)};
      row.resize(LivingTypes(*table).size());
      CELLAR_TRY(ChangeRow(&access, table, id, row, (*random)() % 3 == 0));
    }
    return transaction->Commit().status();
  }
  Status ChangeRow(Access* access, const TablePtr& table, int id, const Row& row, bool remove) {
    ScanSpec spec = SpecOf(table, table->primary(), {PointOf({Datum::Int(id)})});
    spec.with_row_ref = true;
    spec.lock.emplace();
    CELLAR_TRY_ASSIGN(std::unique_ptr<Reader> reader, access->Scan(spec));
    RowBatch found;
    CELLAR_TRY_ASSIGN(bool there, reader->Next(&found));
    const std::vector<Type> types = LivingTypes(*table);
    RowBatch changed = BatchOf(types, {row});
    ConflictPolicy skip;
    skip.kind = ConflictPolicy::Kind::kSkip;
    InsertOutcome outcome;
    if (!there) return access->Insert(table, &changed, skip, &outcome);
    const std::string ref(found.column(types.size()).bytes()[0]);
    const std::string_view view = ref;
    Row old_row = RowsOf(found)[0];
    old_row.pop_back();  // the RowRef
    RowBatch old = BatchOf(types, {old_row});
    if (remove) return access->Delete(table, {&view, 1}, old);
    const Status status = access->Update(table, {&view, 1}, old, changed);
    return status.sqlstate() == "23505" ? Status() : status;
  }

  void RunWriters(std::atomic<bool>* stop) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kWriters; ++t) {
      threads.emplace_back([this, t] {
        std::mt19937 random(static_cast<uint32_t>(t) + 1);
        for (int i = 0; i < kTransactions; ++i) {
          Status status = Change(&random);
          while (Retry(status)) status = Change(&random);
          EXPECT_TRUE(status.ok()) << status.ToString();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    *stop = true;
  }

  // Adds an index and fills it in, or drops it, in one transaction.
  Status ChangeSchema(bool add) {
    auto transaction = store_.engine()->Begin();
    catalog::CatalogEditor editor(store_.catalog(), transaction.get());
    TableDescriptor changed = *editor.snapshot()->GetTable(table_->id);
    Access access(transaction.get(), nullptr, store_.tables());
    const IndexId last = changed.indexes.back().id;
    if (add) {
      changed.indexes.push_back(MakeIndex("t_new_idx", {{3}, {2, true}}));
    } else {
      changed.indexes.pop_back();
      CELLAR_TRY(access.ClearIndex(changed, last));
    }
    CELLAR_TRY_ASSIGN(TablePtr made, editor.UpdateTable(changed));
    if (add) CELLAR_TRY(access.BuildIndex(made, made->indexes.back().id));
    CELLAR_TRY_ASSIGN(uint64_t version, transaction->Commit());
    store_.catalog()->Publish(editor, version);
    return Status();
  }

  void ExpectHealthy() {
    auto transaction = store_.engine()->Begin();
    const TablePtr table = store_.catalog()->Current()->GetTable(table_->id);
    uint64_t rows = 0;
    EXPECT_EQ(Check(table, transaction.get(), &rows), std::vector<std::string>());
    EXPECT_GT(rows, 0u);
  }

  Store store_;
  TablePtr table_;
};

TEST_P(Concurrency, WritersKeepIndexesRight) {
  std::atomic<bool> stop = false;
  RunWriters(&stop);
  ExpectHealthy();
}

TEST_P(Concurrency, SchemaChangesBesideWritersKeepIndexesRight) {
  std::atomic<bool> stop = false;
  int changes = 0;
  std::thread changer([&] {
    bool add = true;
    while (!stop) {
      Status status = ChangeSchema(add);
      EXPECT_TRUE(status.ok() || Retry(status)) << status.ToString();
      if (!status.ok()) continue;
      add = !add;
      ++changes;
    }
  });
  RunWriters(&stop);
  changer.join();
  while (changes % 2 == 0) {
    Must(ChangeSchema(true));
    ++changes;
  }
  ExpectHealthy();
}

INSTANTIATE_TEST_SUITE_P(Isolations, Concurrency,
                         testing::Values(kv::Isolation::kSerializable, kv::Isolation::kSnapshot),
                         [](const testing::TestParamInfo<kv::Isolation>& info) {
                           return info.param == kv::Isolation::kSnapshot ? "Snapshot"
                                                                         : "Serializable";
                         });

}  // namespace
}  // namespace cellar::table
