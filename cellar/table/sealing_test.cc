// Sealing changes no meaning: whatever fails in the midst of it, and beside writers, who never
// conflict with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "cellar/kv/faulty_engine.h"
#include "cellar/table/sealer.h"
#include "cellar/table/test_tables.h"

namespace cellar::table {
namespace {

using Rows = std::map<int, Row>;

TableDescriptor MakeTable(bool int_keys) {
  TableDescriptor table;
  table.name = "t";
  table.layout = catalog::Layout::kPages;
  table.columns = {MakeColumn(1, "id", TypeId::kInt4, true), MakeColumn(2, "a", TypeId::kInt4),
                   MakeColumn(3, "b", TypeId::kText), MakeColumn(4, "long", TypeId::kText)};
  table.indexes = {MakePrimary("t_pkey", {{1, !int_keys}}), MakeIndex("t_a_idx", {{2}, {3}})};
  return table;
}

// Long enough that updates of other columns are patches.
Row MakeRow(int id, uint64_t random) {
  return {std::to_string(id), std::to_string(random % 50), "b" + std::to_string(random % 7),
          std::string(random % 3 == 0 ? 10 : 300, 'x')};
}

SealOptions SmallSteps() {
  SealOptions options;
  options.max_rows = 16;
  options.page_bytes = 400;
  return options;
}

// Changes to the rows of one owner, made and remembered.
class Worker {
 public:
  Worker(Store* store, TablePtr table, int first_id, int ids, uint32_t seed)
      : store_(store), table_(std::move(table)), first_(first_id), ids_(ids), random_(seed) {}

  const Rows& rows() const { return rows_; }

  // One transaction of a few changes and reads, which are compared with what is remembered.
  Status Run(kv::Isolation isolation) {
    kv::TransactionOptions options;
    options.isolation = isolation;
    options.durable = false;
    std::unique_ptr<kv::Transaction> transaction = store_->engine()->Begin(options);
    Access access(transaction.get(), nullptr, store_->tables());
    Rows rows = rows_;
    for (size_t i = 0; i <= random_() % 4; ++i) {
      CELLAR_TRY(Change(&access, &rows));
      CELLAR_TRY(Compare(&access, rows));
    }
    CELLAR_TRY(transaction->Commit().status());
    rows_ = std::move(rows);
    return Status();
  }

 private:
  Result<std::vector<Row>> Scan(Access* access, ScanSpec spec) {
    CELLAR_TRY_ASSIGN(std::unique_ptr<Reader> reader, access->Scan(std::move(spec)));
    std::vector<Row> rows;
    RowBatch batch;
    while (true) {
      CELLAR_TRY_ASSIGN(const bool more, reader->Next(&batch));
      if (!more) return rows;
      for (Row& row : RowsOf(batch)) rows.push_back(std::move(row));
    }
  }

  Status Change(Access* access, Rows* rows) {
    const int id = first_ + static_cast<int>(random_() % static_cast<unsigned>(ids_));
    const std::vector<Type> types = LivingTypes(*table_);
    const auto old = rows->find(id);
    Row row = MakeRow(id, random_());
    RowBatch new_row = BatchOf(types, {row});
    if (old == rows->end()) {
      CELLAR_TRY(access->Insert(table_, &new_row, ConflictPolicy(), nullptr));
      rows->emplace(id, row);
      return Status();
    }
    ScanSpec spec = SpecOf(table_, table_->primary(), {PointOf({Datum::Int(id)})});
    spec.with_row_ref = true;
    CELLAR_TRY_ASSIGN(std::unique_ptr<Reader> reader, access->Scan(spec));
    RowBatch found;
    CELLAR_TRY_ASSIGN(const bool there, reader->Next(&found));
    if (!there) return InternalError("row {} is gone", id);
    const std::string ref(found.column(types.size()).bytes()[0]);
    const std::string_view view = ref;
    const RowBatch old_row = BatchOf(types, {old->second});
    if (random_() % 3 == 0) {
      CELLAR_TRY(access->Delete(table_, {&view, 1}, old_row));
      rows->erase(old);
      return Status();
    }
    row[3] = old->second[3];
    new_row = BatchOf(types, {row});
    CELLAR_TRY(access->Update(table_, {&view, 1}, old_row, new_row));
    old->second = row;
    return Status();
  }

  // A row by key, or the rows of a range of the own keys, either way.
  Status Compare(Access* access, const Rows& rows) {
    int low = first_ + static_cast<int>(random_() % static_cast<unsigned>(ids_));
    int high = random_() % 2 == 0
                   ? low
                   : first_ + static_cast<int>(random_() % static_cast<unsigned>(ids_));
    if (low > high) std::swap(low, high);
    Span span;
    span.lower.kind = span.upper.kind = Bound::Kind::kInclusive;
    span.lower.value = Datum::Int(low);
    span.upper.value = Datum::Int(high);
    ScanSpec spec = SpecOf(table_, table_->primary(), {span});
    if (low == high) spec.spans = {PointOf({Datum::Int(low)})};
    spec.reverse = random_() % 2 == 0;
    std::vector<Row> expected;
    for (auto row = rows.lower_bound(low); row != rows.end() && row->first <= high; ++row) {
      expected.push_back(row->second);
    }
    const bool descending = table_->primary().key[0].direction == codec::Direction::kDescending;
    if (spec.reverse != descending) std::reverse(expected.begin(), expected.end());
    CELLAR_TRY_ASSIGN(const std::vector<Row> got, Scan(access, spec));
    EXPECT_EQ(got, expected) << low << " to " << high;
    return Status();
  }

  Store* store_;
  const TablePtr table_;
  const int first_, ids_;
  std::mt19937 random_;
  Rows rows_;
};

void ExpectRows(Store* store, TableStore* tables, const TablePtr& table, const Rows& rows) {
  std::unique_ptr<kv::Transaction> transaction = store->engine()->Begin();
  Access access(transaction.get(), nullptr, tables);
  std::vector<Row> expected;
  for (const auto& [id, row] : rows) expected.push_back(row);
  ScanSpec spec = SpecOf(table, table->primary());
  spec.reverse = table->primary().key[0].direction == codec::Direction::kDescending;
  EXPECT_EQ(ScanRows(&access, spec), expected);
  uint64_t count = 0;
  EXPECT_EQ(Check(table, transaction.get(), &count), std::vector<std::string>());
  EXPECT_EQ(count, rows.size());
}

// ---- Faults at every point of sealing ----

struct FaultPlan {
  std::atomic<bool> armed{false};
  std::atomic<int> points_left{0};
  std::atomic<bool> hit{false};
  kv::Fault fault = kv::Fault::kNone;
  bool commits_only = false;
};

class SealFaults : public testing::TestWithParam<kv::Fault> {};

TEST_P(SealFaults, AnywhereLeaveTheTableAsItWas) {
  FaultPlan plan;
  plan.fault = GetParam();
  plan.commits_only =
      GetParam() == kv::Fault::kUnknownApplied || GetParam() == kv::Fault::kUnknownLost;
  const auto hook = [&plan](kv::FaultPoint point) {
    if (!plan.armed || (plan.commits_only && point != kv::FaultPoint::kCommit)) {
      return kv::Fault::kNone;
    }
    if (plan.points_left-- != 0) return kv::Fault::kNone;
    plan.hit = true;
    return plan.fault;
  };
  Store store(std::make_unique<kv::FaultyEngine>(MakeTestEngine(), hook));
  const TablePtr table = store.Create(MakeTable(true));
  Worker worker(&store, table, 0, 60, 1);
  Sealer sealer(store.engine(), store.tables());
  SealOptions options = SmallSteps();
  // Commits are few, so they are gone through again and again.
  constexpr int kCommitRounds = 40, kCommitsOfASeal = 5;
  if (plan.commits_only) options.max_rows = 3;
  int hits = 0;
  for (int round = 0; !testing::Test::HasFailure(); ++round) {
    const int point = plan.commits_only ? round % kCommitsOfASeal : round;
    for (int i = 0; i < 6; ++i) Must(worker.Run(kv::Isolation::kSerializable));
    options.repack = round % 3 == 0;
    plan.points_left = point;
    plan.hit = false;
    plan.armed = true;
    const Result<SealStep> sealed = sealer.SealAll(table, options, nullptr);
    plan.armed = false;
    SCOPED_TRACE(round);
    if (!sealed.ok()) {
      EXPECT_TRUE(plan.hit) << sealed.status().ToString();
      EXPECT_NE(sealed.status().code(), Code::kCorruption) << sealed.status().ToString();
    } else {
      EXPECT_TRUE(sealed->done);
    }
    // By what is known of the pages, and by somebody who has seen none of them.
    ExpectRows(&store, store.tables(), table, worker.rows());
    TableStore others(store.engine());
    ExpectRows(&store, &others, table, worker.rows());
    hits += plan.hit ? 1 : 0;
    if (plan.commits_only ? round == kCommitRounds : !plan.hit) break;  // behind the last point
  }
  EXPECT_GT(hits, 20);
}

INSTANTIATE_TEST_SUITE_P(Faults, SealFaults,
                         testing::Values(kv::Fault::kConflict, kv::Fault::kUnavailable,
                                         kv::Fault::kUnknownApplied, kv::Fault::kUnknownLost),
                         [](const testing::TestParamInfo<kv::Fault>& info) {
                           switch (info.param) {
                             case kv::Fault::kConflict: return "Conflict";
                             case kv::Fault::kUnavailable: return "Unavailable";
                             case kv::Fault::kUnknownApplied: return "UnknownApplied";
                             default: return "UnknownLost";
                           }
                         });

// ---- Beside readers and writers ----

TEST(Sealing, ASnapshotStaysWhatItWas) {
  Store store;
  const TablePtr table = store.Create(MakeTable(true));
  Worker worker(&store, table, 0, 100, 1);
  Sealer sealer(store.engine(), store.tables());
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 10; ++i) Must(worker.Run(kv::Isolation::kSerializable));
    kv::TransactionOptions read_only;
    read_only.read_only = true;
    std::unique_ptr<kv::Transaction> reader = store.engine()->Begin(read_only);
    Access access(reader.get(), nullptr, store.tables());
    const std::vector<Row> before = ScanRows(&access, SpecOf(table, table->primary()));
    EXPECT_EQ(before.size(), worker.rows().size());
    const std::vector<Row> by_index = ScanRows(&access, SpecOf(table, table->indexes[1]));
    for (int i = 0; i < 10; ++i) Must(worker.Run(kv::Isolation::kSerializable));
    SealOptions options = SmallSteps();
    options.repack = round % 2 == 0;
    EXPECT_TRUE(Must(sealer.SealAll(table, options, nullptr)).done);
    EXPECT_EQ(ScanRows(&access, SpecOf(table, table->primary())), before);
    EXPECT_EQ(ScanRows(&access, SpecOf(table, table->indexes[1])), by_index);
    for (const Row& row : before) {
      const Span point = PointOf({Datum::Int(std::stoi(*row[0]))});
      EXPECT_EQ(ScanRows(&access, SpecOf(table, table->primary(), {point})), std::vector<Row>{row});
    }
  }
}

// A transaction that read and wrote before its rows were moved into pages commits after it.
TEST(Sealing, DoesNotAbortTransactionsThatAreOpen) {
  for (const kv::Isolation isolation : {kv::Isolation::kSerializable, kv::Isolation::kSnapshot}) {
    Store store;
    const TablePtr table = store.Create(MakeTable(true));
    Worker worker(&store, table, 0, 100, 1);
    for (int i = 0; i < 60; ++i) Must(worker.Run(kv::Isolation::kSerializable));
    kv::TransactionOptions options;
    options.isolation = isolation;
    std::unique_ptr<kv::Transaction> transaction = store.engine()->Begin(options);
    Access access(transaction.get(), nullptr, store.tables());
    EXPECT_EQ(ScanRows(&access, SpecOf(table, table->primary())).size(), worker.rows().size());
    Sealer sealer(store.engine(), store.tables());
    EXPECT_GT(Must(sealer.SealAll(table, SmallSteps(), nullptr)).rows, 0u);
    Must(InsertAll(&access, table, {MakeRow(500, 1)}));
    Must(transaction->Commit());
    Rows rows = worker.rows();
    rows.emplace(500, MakeRow(500, 1));
    ExpectRows(&store, store.tables(), table, rows);
  }
}

TEST(Sealing, WhatIsNotCommittedYetIsStillToBeSealed) {
  Store store;
  const TablePtr table = store.Create(MakeTable(true));
  Sealer sealer(store.engine(), store.tables());
  std::unique_ptr<kv::Transaction> transaction = store.engine()->Begin(kv::TransactionOptions());
  {
    Access access(transaction.get(), nullptr, store.tables());
    std::vector<Row> rows;
    for (int i = 0; i < 50; ++i) rows.push_back(MakeRow(i, 1));
    Must(InsertAll(&access, table, rows));
    EXPECT_TRUE(Must(sealer.SealAll(table, SmallSteps(), nullptr)).done);
    Must(transaction->Commit());
  }
  EXPECT_EQ(sealer.ChangesOf(table), 50u);
  EXPECT_EQ(Must(sealer.SealAll(table, SmallSteps(), nullptr)).rows, 50u);
  EXPECT_EQ(sealer.ChangesOf(table), 0u);
}

TEST(Sealing, AScanUnderALimitStopsBeforeDeletedRows) {
  Store store;
  const TablePtr table = store.Create(MakeTable(true));
  Sealer sealer(store.engine(), store.tables());
  const auto run = [&](const std::function<void(Access*)>& work) {
    std::unique_ptr<kv::Transaction> transaction = store.engine()->Begin(kv::TransactionOptions());
    Access access(transaction.get(), nullptr, store.tables());
    work(&access);
    Must(transaction->Commit());
  };
  constexpr int kRows = 5000;
  run([&](Access* access) {
    std::vector<Row> rows;
    for (int i = 0; i < kRows; ++i) rows.push_back(MakeRow(i, 1));
    Must(InsertAll(access, table, rows));
  });
  EXPECT_TRUE(Must(sealer.SealAll(table, SmallSteps(), nullptr)).done);
  // Only the last ten stay.
  run([&](Access* access) {
    ScanSpec spec = SpecOf(table, table->primary());
    spec.with_row_ref = true;
    Result<std::unique_ptr<Reader>> reader = access->Scan(std::move(spec));
    RowBatch batch;
    int left = kRows - 10;
    while (left > 0 && Must((*reader)->Next(&batch))) {
      std::vector<uint32_t> first;
      for (uint32_t i = 0; i < batch.size() && left > 0; ++i, --left) first.push_back(i);
      batch.Keep(first);
      const size_t width = table->columns.size();
      const std::vector<std::string_view> refs(batch.column(width).bytes(),
                                               batch.column(width).bytes() + batch.size());
      RowBatch old_rows;
      old_rows.columns().resize(width);
      for (size_t c = 0; c < width; ++c) std::swap(old_rows.column(c), batch.column(c));
      old_rows.SetSize(refs.size());
      Must(access->Delete(table, refs, old_rows));
    }
  });
  run([&](Access* access) {
    ScanSpec spec = SpecOf(table, table->primary());
    spec.reverse = true;
    spec.limit_hint = 3;
    Result<std::unique_ptr<Reader>> reader = access->Scan(std::move(spec));
    RowBatch batch;
    EXPECT_TRUE(Must((*reader)->Next(&batch)));
    EXPECT_GE(batch.size(), 3u);
    EXPECT_LT(access->stats().rows_read, 100u);  // a page or two and a small block of the delta
  });
}

struct Setting {
  int writers;
  bool int_keys;
  kv::Isolation isolation;
};

class SealBesideWriters : public testing::TestWithParam<Setting> {};

// Each writer has keys of its own, so all conflicts that there are would be the sealer's.
TEST_P(SealBesideWriters, NeverConflicts) {
  constexpr int kTransactions = 150;
  constexpr int kIds = 80;
  Store store;
  const TablePtr table = store.Create(MakeTable(GetParam().int_keys));
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < GetParam().writers; ++i) {
    workers.push_back(
        std::make_unique<Worker>(&store, table, i * kIds, kIds, static_cast<uint32_t>(i) + 1));
  }
  std::atomic<int> working = GetParam().writers;
  std::atomic<uint64_t> sealed = 0;
  std::vector<std::thread> threads;
  for (std::unique_ptr<Worker>& worker : workers) {
    threads.emplace_back([&] {
      // Longer where the sealer had no turn yet.
      for (int i = 0; i < kTransactions || (sealed == 0 && i < 100 * kTransactions); ++i) {
        const Status status = worker->Run(GetParam().isolation);
        EXPECT_TRUE(status.ok()) << status.ToString();
      }
      --working;
    });
  }
  Sealer sealer(store.engine(), store.tables());
  std::string position;
  SealOptions options = SmallSteps();
  while (working > 0) {
    const Result<SealStep> step = sealer.Step(table, options, &position);
    EXPECT_TRUE(step.ok()) << step.status().ToString();
    if (!step.ok()) break;
    sealed += step->rows;
    if (!step->done) continue;
    position.clear();
    options.repack = !options.repack;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Must(sealer.SealAll(table, SmallSteps(), nullptr)).done);
  EXPECT_GT(sealed, 0u);
  Rows all;
  for (const std::unique_ptr<Worker>& worker : workers) {
    all.insert(worker->rows().begin(), worker->rows().end());
  }
  ExpectRows(&store, store.tables(), table, all);
}

INSTANTIATE_TEST_SUITE_P(Settings, SealBesideWriters,
                         testing::Values(Setting{1, true, kv::Isolation::kSerializable},
                                         Setting{1, false, kv::Isolation::kSnapshot},
                                         Setting{3, true, kv::Isolation::kSerializable},
                                         Setting{3, false, kv::Isolation::kSerializable}),
                         [](const testing::TestParamInfo<Setting>& info) {
                           return std::string(info.param.writers == 1 ? "One" : "Three") +
                                  (info.param.int_keys ? "Int" : "Refs") +
                                  (info.param.isolation == kv::Isolation::kSnapshot
                                       ? "Snapshot"
                                       : "Serializable");
                         });

}  // namespace
}  // namespace cellar::table
