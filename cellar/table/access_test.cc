#include "cellar/table/access.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "cellar/codec/key.h"
#include "cellar/table/compiled.h"
#include "cellar/table/keys_dump.h"
#include "cellar/table/test_tables.h"

namespace cellar::table {
namespace {

using testing::Test;

TableDescriptor People() {
  TableDescriptor table;
  table.name = "people";
  table.columns = {MakeColumn(1, "id", TypeId::kInt4, true),
                   MakeColumn(2, "name", TypeId::kText, true), MakeColumn(3, "age", TypeId::kInt4)};
  table.indexes = {MakePrimary("people_pkey", {{1}}), MakeIndex("people_name_key", {{2}}, true),
                   MakeIndex("people_age_idx", {{3}}),
                   MakeIndex("people_age_name_idx", {{3, true}}, false, {2})};
  return table;
}

class AccessTest : public Test {
 protected:
  void SetUp() override { table_ = store_.Create(People()); }

  std::unique_ptr<kv::Transaction> Begin(bool read_committed = false) {
    kv::TransactionOptions options;
    if (read_committed) options.isolation = kv::Isolation::kSnapshot;
    return store_.engine()->Begin(options);
  }
  void Fill(const std::vector<Row>& rows) {
    auto transaction = Begin();
    Access access(transaction.get(), nullptr, store_.tables());
    Must(InsertAll(&access, table_, rows));
    Must(transaction->Commit());
  }
  void FillMany(int count) {
    std::vector<Row> rows;
    for (int i = 0; i < count; ++i) {
      rows.push_back({std::to_string(i), "n" + std::to_string(i), std::to_string(i % 10)});
    }
    Fill(rows);
  }
  const IndexDescriptor& Index(std::string_view name) { return *table_->FindIndex(name); }
  std::vector<Row> All() {
    auto transaction = Begin();
    Access access(transaction.get(), nullptr);
    return ScanRows(&access, SpecOf(table_, table_->primary()));
  }
  void UpdateOne(Access* access, int id, const Row& row) {
    Found found = FindRows(access, table_, {PointOf({Datum::Int(id)})});
    ASSERT_EQ(found.refs.size(), 1u);
    Must(access->Update(table_, found.views(), found.rows, BatchOf(LivingTypes(*table_), {row})));
  }

  Store store_;
  TablePtr table_;

  // Ann grows old and bob becomes bea, after the reader's snapshot.
  void ChangeBehind(kv::Transaction* reader) {
    reader->snapshot_version();
    auto other = Begin(true);
    Access writing(other.get(), nullptr);
    UpdateOne(&writing, 1, {"1", "ann", "99"});
    UpdateOne(&writing, 2, {"2", "bea", "30"});
    Must(other->Commit());
  }
};

// ---- Errors ----

TEST_F(AccessTest, DuplicateKeyErrorIsThatOfPostgres) {
  Fill({{"1", "ann", "30"}});
  auto transaction = Begin();
  Access access(transaction.get(), nullptr);
  Status status = InsertAll(&access, table_, {{"2", "bob", "1"}, {"1", "cid", "2"}});
  EXPECT_EQ(status.sqlstate(), "23505");
  EXPECT_EQ(status.message(), "duplicate key value violates unique constraint \"people_pkey\"");
  EXPECT_EQ(status.detail(), "Key (id)=(1) already exists.");
  EXPECT_EQ(status.table_name(), "people");
  EXPECT_EQ(status.constraint_name(), "people_pkey");
  EXPECT_EQ(InsertAll(&access, table_, {{"3", "ann", "2"}}).detail(),
            "Key (name)=(ann) already exists.");
  EXPECT_EQ(InsertAll(&access, table_, {{"4", "dan", "2"}, {"5", "dan", "2"}}).detail(),
            "Key (name)=(dan) already exists.");
  Found found = FindRows(&access, table_, {PointOf({Datum::Int(1)})});
  EXPECT_EQ(access
                .Update(table_, found.views(), found.rows,
                        BatchOf(LivingTypes(*table_), {{"1", "ann", "31"}}))
                .code(),
            Code::kOk);
}

TEST_F(AccessTest, NullInANotNullColumnIsReportedWithItsRow) {
  auto transaction = Begin();
  Access access(transaction.get(), nullptr);
  const std::string longer(70, 'x');
  Status status =
      InsertAll(&access, table_, {{"1", longer, "3"}, {"2", std::nullopt, std::nullopt}});
  EXPECT_EQ(status.sqlstate(), "23502");
  EXPECT_EQ(status.message(),
            "null value in column \"name\" of relation \"people\" violates not-null constraint");
  EXPECT_EQ(status.detail(), "Failing row contains (2, null, null).");
  EXPECT_EQ(status.column_name(), "name");
  status = InsertAll(&access, table_, {{std::nullopt, longer, "3"}});
  EXPECT_EQ(status.detail(), "Failing row contains (null, " + std::string(64, 'x') + "..., 3).");
}

TEST_F(AccessTest, OnConflictOfOneIndexLeavesOthersAnError) {
  Fill({{"1", "ann", "30"}});
  auto transaction = Begin();
  Access access(transaction.get(), nullptr);
  ConflictPolicy policy;
  policy.kind = ConflictPolicy::Kind::kSkip;
  policy.indexes = {table_->primary().id};
  InsertOutcome outcome;
  RowBatch rows = BatchOf(LivingTypes(*table_), {{"1", "ann", "1"}, {"2", "bob", "1"}});
  Must(access.Insert(table_, &rows, policy, &outcome));
  EXPECT_EQ(outcome.inserted, (std::vector<uint8_t>{0, 1}));
  rows = BatchOf(LivingTypes(*table_), {{"3", "ann", "1"}});
  EXPECT_EQ(access.Insert(table_, &rows, policy, &outcome).constraint_name(), "people_name_key");
}

TEST_F(AccessTest, ReportedConflictNamesTheRowInTheWay) {
  Fill({{"1", "ann", "30"}, {"2", "bob", "31"}});
  auto transaction = Begin();
  Access access(transaction.get(), nullptr);
  ConflictPolicy policy;
  policy.kind = ConflictPolicy::Kind::kReport;
  policy.indexes = {Index("people_name_key").id};
  InsertOutcome outcome;
  RowBatch rows =
      BatchOf(LivingTypes(*table_), {{"7", "bob", "1"}, {"8", "new", "1"}, {"9", "new", "1"}});
  Must(access.Insert(table_, &rows, policy, &outcome));
  EXPECT_EQ(outcome.inserted, (std::vector<uint8_t>{0, 1, 0}));
  EXPECT_EQ(outcome.conflicting_ref[2], "");
  const std::string_view ref = outcome.conflicting_ref[0];
  RowBatch batch;
  std::vector<uint8_t> found;
  Must(access.Fetch(table_, {&ref, 1}, LivingIds(*table_), &batch, &found));
  EXPECT_EQ(RowsOf(batch), (std::vector<Row>{{"2", "bob", "31"}}));
}

// ---- Reading ----

TEST_F(AccessTest, FetchKeepsOrderAndFlagsAbsentRows) {
  FillMany(5);
  auto transaction = Begin();
  Access access(transaction.get(), nullptr);
  Found found = FindRows(&access, table_, {Span{}});
  std::vector<std::string_view> refs = {found.refs[3], "nowhere", found.refs[1]};
  RowBatch batch;
  std::vector<uint8_t> flags;
  const std::vector<ColumnId> columns = {ColumnId{2}};
  Must(access.Fetch(table_, refs, columns, &batch, &flags));
  EXPECT_EQ(flags, (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(RowsOf(batch), (std::vector<Row>{{"n3"}, {"n1"}}));
}

TEST_F(AccessTest, ListsOfPointsAreReadInTheGivenOrder) {
  FillMany(3000);
  auto transaction = Begin();
  Access access(transaction.get(), nullptr);
  std::vector<Span> spans;
  for (int i = 0; i < 2500; ++i) spans.push_back(PointOf({Datum::Int(i * 2)}));
  const std::vector<Row> rows = ScanRows(&access, SpecOf(table_, table_->primary(), spans));
  ASSERT_EQ(rows.size(), 1500u);
  EXPECT_EQ(rows[1][0], "2");
  EXPECT_EQ(rows.back()[0], "2998");
  EXPECT_LE(access.stats().trips, 3u);
}

TEST_F(AccessTest, SeveralRangesFollowEachOtherInBothDirections) {
  FillMany(100);
  auto transaction = Begin();
  Access access(transaction.get(), nullptr);
  auto range = [](int low, int high) {
    Span span;
    span.lower.kind = Bound::Kind::kInclusive;
    span.lower.value = Datum::Int(low);
    span.upper.kind = Bound::Kind::kExclusive;
    span.upper.value = Datum::Int(high);
    return span;
  };
  ScanSpec spec =
      SpecOf(table_, table_->primary(), {range(3, 5), PointOf({Datum::Int(50)}), range(97, 200)});
  spec.columns = {ColumnId{1}};
  EXPECT_EQ(ScanRows(&access, spec),
            (std::vector<Row>{{"3"}, {"4"}, {"50"}, {"97"}, {"98"}, {"99"}}));
  std::reverse(spec.spans.begin(), spec.spans.end());
  spec.reverse = true;
  EXPECT_EQ(ScanRows(&access, spec),
            (std::vector<Row>{{"99"}, {"98"}, {"97"}, {"50"}, {"4"}, {"3"}}));
  spec.spans.clear();
  EXPECT_TRUE(ScanRows(&access, spec).empty());
}

TEST_F(AccessTest, NoColumnsStillCountRows) {
  FillMany(2100);
  auto transaction = Begin();
  Access access(transaction.get(), nullptr);
  for (std::string_view name : {"people_pkey", "people_name_key", "people_age_idx"}) {
    ScanSpec spec = SpecOf(table_, Index(name));
    spec.columns.clear();
    std::unique_ptr<Reader> reader = Must(access.Scan(spec));
    RowBatch batch;
    size_t rows = 0;
    while (Must(reader->Next(&batch))) {
      EXPECT_LE(batch.size(), kBatchRows);
      rows += batch.size();
    }
    EXPECT_EQ(rows, 2100u) << name;
  }
}

TEST_F(AccessTest, CoveringIndexReadsNoRows) {
  FillMany(50);
  auto transaction = Begin();
  Access access(transaction.get(), nullptr);
  ScanSpec spec = SpecOf(table_, Index("people_age_name_idx"), {PointOf({Datum::Int(3)})});
  std::vector<Row> rows = ScanRows(&access, spec);
  EXPECT_EQ(rows, (std::vector<Row>{{"3", "n3", "3"},
                                    {"13", "n13", "3"},
                                    {"23", "n23", "3"},
                                    {"33", "n33", "3"},
                                    {"43", "n43", "3"}}));
  EXPECT_EQ(access.stats().rows_read, 5u);
  // A row that lost its value would not be noticed, as it is not read.
  Access other(transaction.get(), nullptr);
  spec.index = Index("people_age_idx").id;
  EXPECT_EQ(ScanRows(&other, spec), rows);
  EXPECT_EQ(other.stats().rows_read, 10u);
}

TEST_F(AccessTest, ColumnsAddedLaterAnswerTheirFrozenDefaultForOldRows) {
  Fill({{"1", "ann", "30"}});
  TableDescriptor wider = *table_;
  wider.columns.push_back(MakeColumn(0, "city", TypeId::kText));
  wider.columns.back().initial_value = Value(MakeType(TypeId::kText), Datum::Bytes("Oslo"));
  wider.columns.push_back(MakeColumn(0, "more", TypeId::kInt8));
  table_ = store_.Change(wider);
  Fill({{"2", "bob", "31", "Bonn", "9"}});
  EXPECT_EQ(All(), (std::vector<Row>{{"1", "ann", "30", "Oslo", std::nullopt},
                                     {"2", "bob", "31", "Bonn", "9"}}));
}

TEST_F(AccessTest, DroppedColumnsVanishAndIntegersWidenWithoutARewrite) {
  Fill({{"1", "ann", "30"}});
  TableDescriptor changed = *table_;
  changed.columns[2].type = MakeType(TypeId::kInt8);
  changed.columns.push_back(MakeColumn(0, "late", TypeId::kInt4));
  table_ = store_.Change(changed);
  Fill({{"2", "bob", "5000000000", "1"}});
  changed = *table_;
  changed.columns[3].dropped = true;
  table_ = store_.Change(changed);
  EXPECT_EQ(All(), (std::vector<Row>{{"1", "ann", "30"}, {"2", "bob", "5000000000"}}));
  auto transaction = Begin();
  EXPECT_TRUE(Check(table_, transaction.get()).empty());
}

TEST_F(AccessTest, CancelledScansStop) {
  FillMany(10);
  auto transaction = Begin();
  CancelToken cancel;
  Access access(transaction.get(), &cancel);
  cancel.Cancel(CancelToken::Reason::kUser);
  std::unique_ptr<Reader> reader = Must(access.Scan(SpecOf(table_, table_->primary())));
  RowBatch batch;
  EXPECT_EQ(reader->Next(&batch).status().sqlstate(), "57014");
}

TEST_F(AccessTest, PointReadsCompileOnce) {
  FillMany(3);
  auto transaction = Begin();
  Access access(transaction.get(), nullptr);
  ScanRows(&access, SpecOf(table_, table_->primary(), {PointOf({Datum::Int(1)})}));
  const CompiledTable* compiled = Must(CompiledTable::Of(*table_));
  auto first =
      Must(compiled->Scan(table_->primary().id, LivingIds(*table_), false, ScanBytes::kBorrow));
  auto second =
      Must(compiled->Scan(table_->primary().id, LivingIds(*table_), false, ScanBytes::kBorrow));
  EXPECT_EQ(first, second);
  EXPECT_EQ(Must(CompiledTable::Of(*table_)), compiled);
}

// ---- Index states ----

TEST_F(AccessTest, WritersObeyIndexStates) {
  TableDescriptor changed = *table_;
  changed.indexes[2].state = catalog::IndexState::kWriteOnly;
  changed.indexes[3].state = catalog::IndexState::kDeleteOnly;
  table_ = store_.Change(changed);
  FillMany(3);
  auto transaction = Begin();
  Access access(transaction.get(), nullptr);
  auto entries = [&](IndexId index) {
    const codec::KeyRange range = codec::PrefixRange(codec::TablePrefix(table_->id, index));
    auto cursor = Must(transaction->Scan(range.start, range.end));
    kv::Block block;
    size_t count = 0;
    while (Must(cursor->NextBlock(&block))) count += block.size();
    return count;
  };
  const IndexId built = Index("people_age_idx").id;
  const IndexId log{built.value + 1};
  // The test's other index has the id that a build would have taken for the log.
  EXPECT_EQ(log, Index("people_age_name_idx").id);
  EXPECT_EQ(entries(built), 0u);
  EXPECT_EQ(entries(log), 1u);
  Found found = FindRows(&access, table_, {Span{}});
  Must(access.Delete(table_, found.views(), found.rows));
  EXPECT_EQ(entries(built), 0u);
  EXPECT_EQ(entries(log), 2u);
}

// ---- Row ids ----

TEST_F(AccessTest, HiddenRowIdsAreUniqueAcrossThreadsAndRestarts) {
  TableDescriptor descriptor;
  descriptor.name = "log";
  descriptor.columns = {MakeColumn(1, "text", TypeId::kText)};
  TablePtr log = store_.Create(descriptor);
  auto insert = [&](TableStore* tables, int count) {
    auto transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, tables);
    std::vector<Row> rows(static_cast<size_t>(count), Row{"x", std::nullopt});
    Must(InsertAll(&access, log, rows));
    Must(transaction->Commit());
  };
  constexpr int kThreads = 4, kBatches = 10, kRows = 100;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kBatches; ++i) insert(store_.tables(), kRows);
    });
  }
  for (std::thread& thread : threads) thread.join();
  TableStore restarted(store_.engine());
  insert(&restarted, kRows);
  insert(nullptr, kRows);  // from the transaction itself
  auto transaction = store_.engine()->Begin();
  Access access(transaction.get(), nullptr);
  const std::vector<Row> rows = ScanRows(&access, SpecOf(log, log->primary()));
  EXPECT_EQ(rows.size(), size_t{kThreads * kBatches * kRows + 2 * kRows});
  EXPECT_TRUE(Check(log, transaction.get()).empty());
}

// ---- Locks ----

TEST_F(AccessTest, LockedPointSeesWhatItsHolderWrote) {
  Fill({{"1", "ann", "30"}});
  auto holder = Begin();
  Access writing(holder.get(), nullptr);
  UpdateOne(&writing, 1, {"1", "ann", "31"});
  ScanSpec spec = SpecOf(table_, table_->primary(), {PointOf({Datum::Int(1)})});
  spec.lock.emplace();
  ScanRows(&writing, spec);
  auto waiter = Begin();
  waiter->snapshot_version();
  std::vector<Row> rows;
  std::thread thread([&] {
    Access access(waiter.get(), nullptr);
    rows = ScanRows(&access, spec);
  });
  while (store_.engine()->stats().lock_waits == 0) std::this_thread::yield();
  Must(holder->Commit());
  thread.join();
  EXPECT_EQ(rows, (std::vector<Row>{{"1", "ann", "31"}}));
}

// What the scan returns, locked; what has changed is read again.
std::vector<Row> ScanAndLock(Access* access, ScanSpec spec, RowLockSpec how) {
  spec.view = Must(access->OpenView());
  spec.with_row_ref = true;
  std::vector<Row> rows;
  std::vector<std::string> changed;
  kv::ReadViewPtr newest;
  std::unique_ptr<Reader> reader = Must(access->Scan(spec));
  RowBatch batch;
  const auto add = [&](const std::vector<bool>& kept) {
    const std::vector<Row> found = RowsOf(batch);
    for (size_t i = 0; i < found.size(); ++i) {
      if (!kept[i]) continue;
      rows.push_back(found[i]);
      rows.back().pop_back();  // the RowRef
    }
  };
  while (Must(reader->Next(&batch))) {
    const std::span<const std::string_view> refs(batch.column(spec.columns.size()).bytes(),
                                                 batch.size());
    std::vector<RowLockOutcome> outcomes;
    Must(access->LockRows(*spec.table, refs, how, spec.view.get(), &outcomes, &newest));
    std::vector<bool> kept;
    for (size_t i = 0; i < refs.size(); ++i) {
      kept.push_back(outcomes[i] == RowLockOutcome::kLocked);
      if (outcomes[i] == RowLockOutcome::kChanged) changed.emplace_back(refs[i]);
    }
    add(kept);
  }
  if (changed.empty()) return rows;
  spec.view = newest;
  std::unique_ptr<Reader> again = Must(access->ScanRows(spec, changed));
  while (Must(again->Next(&batch))) add(std::vector<bool>(batch.size(), true));
  return rows;
}

TEST_F(AccessTest, ReadCommittedLocksDropRowsThatLeftTheSpan) {
  Fill({{"1", "ann", "30"}, {"2", "bob", "30"}, {"3", "cid", "30"}});
  ScanSpec spec = SpecOf(table_, Index("people_age_idx"), {PointOf({Datum::Int(30)})});
  auto reader_transaction = Begin(true);
  Access access(reader_transaction.get(), nullptr);
  access.set_level(Access::Level::kReadCommitted);
  ChangeBehind(reader_transaction.get());
  EXPECT_EQ(ScanAndLock(&access, spec, {}),
            (std::vector<Row>{{"3", "cid", "30"}, {"2", "bea", "30"}}));
}

TEST_F(AccessTest, AFilterHoldsForWhatIsReadAgain) {
  Fill({{"1", "ann", "30"}, {"2", "bob", "30"}});
  ScanSpec spec = SpecOf(table_, table_->primary());
  spec.columns = {ColumnId{2}};
  ColumnFilter filter;
  filter.column = ColumnId{3};
  filter.filter.op = FilterOp::kEqual;
  filter.filter.value = Datum::Int(30);
  spec.filters = {filter};
  auto reader_transaction = Begin(true);
  Access access(reader_transaction.get(), nullptr);
  access.set_level(Access::Level::kReadCommitted);
  ChangeBehind(reader_transaction.get());
  EXPECT_EQ(ScanAndLock(&access, spec, {}), (std::vector<Row>{{"bea"}}));
}

TEST_F(AccessTest, SkipLockedLeavesOutRowsOfOthers) {
  FillMany(4);
  ScanSpec spec = SpecOf(table_, table_->primary(), {PointOf({Datum::Int(2)})});
  spec.lock.emplace();
  auto holder = Begin();
  Access holding(holder.get(), nullptr);
  ScanRows(&holding, spec);
  auto other = Begin();
  Access access(other.get(), nullptr);
  spec.lock->wait = kv::LockWait::kSkip;
  EXPECT_TRUE(ScanRows(&access, spec).empty());
  spec.lock.reset();
  spec.spans = {Span{}};
  spec.columns = {ColumnId{1}};
  EXPECT_EQ(ScanAndLock(&access, spec, {.wait = kv::LockWait::kSkip}),
            (std::vector<Row>{{"0"}, {"1"}, {"3"}}));
  std::vector<RowLockOutcome> outcomes;
  kv::ReadViewPtr newest;
  ScanSpec point = SpecOf(table_, table_->primary(), {PointOf({Datum::Int(2)})});
  point.columns.clear();
  point.with_row_ref = true;
  std::unique_ptr<Reader> reader = Must(access.Scan(point));
  RowBatch batch;
  ASSERT_TRUE(Must(reader->Next(&batch)));
  const std::string_view refs[] = {batch.column(0).bytes()[0]};
  const Status status =
      access.LockRows(*table_, refs, {.wait = kv::LockWait::kNoWait}, nullptr, &outcomes, &newest);
  EXPECT_EQ(status.sqlstate(), "55P03");
  EXPECT_NE(status.message().find("in relation \"people\""), std::string::npos);
}

TEST_F(AccessTest, TwoTransactionsCannotAddOneUniqueKey) {
  for (bool read_committed : {false, true}) {
    auto first = Begin(read_committed), second = Begin(read_committed);
    Access a(first.get(), nullptr), b(second.get(), nullptr);
    const std::string name = read_committed ? "rc" : "ser";
    const std::string id = read_committed ? "1" : "3";
    Must(InsertAll(&a, table_, {{id, name, "1"}}));
    Status status;
    const uint64_t waits = store_.engine()->stats().lock_waits;
    std::thread thread([&] {
      status = InsertAll(&b, table_, {{read_committed ? "2" : "4", name, "1"}});
    });
    while (store_.engine()->stats().lock_waits == waits) std::this_thread::yield();
    Must(first->Commit());
    thread.join();
    EXPECT_EQ(status.sqlstate(), "23505") << "it waits, and is told";
  }
}

// ---- Whole tables ----

TEST_F(AccessTest, BuildIndexFindsDuplicatesAndFillsIn) {
  Fill({{"1", "ann", "30"},
        {"2", "bob", "30"},
        {"3", "cid", std::nullopt},
        {"4", "dan", std::nullopt}});
  TableDescriptor changed = *table_;
  changed.indexes.push_back(MakeIndex("age_key", {{3}}, true));
  changed.indexes.push_back(MakeIndex("name_idx", {{2, true}}, false, {3}));
  table_ = store_.Change(changed);
  {
    auto transaction = Begin();
    Access access(transaction.get(), nullptr);
    Status status = access.BuildIndex(table_, Index("age_key").id);
    EXPECT_EQ(status.sqlstate(), "23505");
    EXPECT_EQ(status.message(), "could not create unique index \"age_key\"");
    EXPECT_EQ(status.detail(), "Key (age)=(30) is duplicated.");
  }
  auto transaction = Begin();
  Access access(transaction.get(), nullptr);
  UpdateOne(&access, 2, {"2", "bob", "31"});
  Must(access.ClearIndex(*table_, Index("age_key").id));
  Must(access.ClearIndex(*table_, Index("name_idx").id));
  Must(access.BuildIndex(table_, Index("age_key").id));
  Must(access.BuildIndex(table_, Index("name_idx").id));
  EXPECT_EQ(Check(table_, transaction.get()), std::vector<std::string>());
  Must(transaction->Commit());
}

TEST_F(AccessTest, ClearTableLeavesNothing) {
  FillMany(100);
  auto transaction = Begin();
  Access access(transaction.get(), nullptr);
  Must(access.ClearTable(*table_));
  Must(transaction->Commit());
  EXPECT_TRUE(All().empty());
  auto check = Begin();
  uint64_t rows = 1;
  EXPECT_TRUE(Check(table_, check.get(), &rows).empty());
  EXPECT_EQ(rows, 0u);
}

TEST_F(AccessTest, RewriteChangesPrimaryKeyAndTypes) {
  FillMany(3000);
  TableDescriptor changed = *table_;
  changed.indexes[0] = MakePrimary("people_pkey2", {{2}});
  changed.indexes[0].oid = 0;
  changed.columns[2].type = MakeType(TypeId::kText);
  TablePtr from = table_;
  table_ = store_.Change(changed);
  EXPECT_NE(table_->primary().id, from->primary().id);
  EXPECT_EQ(table_->row_formats.size(), 2u);
  auto transaction = Begin();
  Access access(transaction.get(), nullptr);
  Must(access.Rewrite(from, table_, [&](const RowBatch& rows, RowBatch* to) {
    std::vector<Row> texts = RowsOf(rows);
    for (Row& row : texts) row[2] = "age " + *row[2];
    *to = BatchOf(LivingTypes(*table_), texts);
    return Status();
  }));
  EXPECT_EQ(Check(table_, transaction.get()), std::vector<std::string>());
  Must(transaction->Commit());
  const std::vector<Row> rows = All();
  ASSERT_EQ(rows.size(), 3000u);
  EXPECT_EQ(rows[1], (Row{"1", "n1", "age 1"}));
  EXPECT_EQ(rows[2], (Row{"10", "n10", "age 0"}));
}

TEST_F(AccessTest, BulkLoadReportsDuplicatesByName) {
  kv::TransactionOptions options;
  options.bulk = true;
  for (const bool duplicate : {false, true}) {
    auto transaction = store_.engine()->Begin(options);
    Access access(transaction.get(), nullptr);
    Must(access.BeginBulk(table_));
    std::vector<Row> rows;
    for (int i = 0; i < 2000; ++i) {
      rows.push_back({std::to_string(i), "n" + std::to_string(i), "1"});
    }
    if (duplicate) rows = {{"5000", "fresh", "1"}, {"5001", "n7", "1"}};
    Status status = InsertAll(&access, table_, rows);
    Must(access.EndBulk(true));
    if (status.ok()) {
      status = transaction->Commit().status();
      if (status.code() == Code::kConstraint) {
        status = DuplicateKeyError(*store_.catalog()->Current(), transaction->duplicate_key());
      }
    }
    if (!duplicate) {
      EXPECT_TRUE(status.ok()) << status.ToString();
    } else {
      EXPECT_EQ(status.detail(), "Key (name)=(n7) already exists.");
    }
  }
  auto check = Begin();
  uint64_t rows = 0;
  EXPECT_TRUE(Check(table_, check.get(), &rows).empty());
  EXPECT_EQ(rows, 2000u);
}

TEST_F(AccessTest, EstimatesAreExactForSmallTables) {
  FillMany(123);
  auto transaction = Begin();
  Access with_store(transaction.get(), nullptr, store_.tables());
  EXPECT_EQ(Must(with_store.EstimateRows(*table_)), 123u);
  Access without(transaction.get(), nullptr);
  EXPECT_EQ(Must(without.EstimateRows(*table_)), 123u);
}

TEST_F(AccessTest, EstimatesOfLargeTablesAreNear) {
  FillMany(40000);
  const uint64_t rows = Must(store_.tables()->EstimateRows(*table_));
  EXPECT_GT(rows, 20000u);
  EXPECT_LT(rows, 80000u);
}

// ---- Keys for people ----

TEST_F(AccessTest, DumpedKeysNameTheirFields) {
  Fill({{"7", "ann", "30"}});
  auto transaction = Begin();
  std::vector<std::string> lines;
  DumpOptions options;
  options.table = table_->id;
  DumpTotals totals = Must(
      DumpKeys(transaction.get(), *store_.catalog()->Current(), options, [&](const DumpedKey& key) {
        EXPECT_TRUE(key.readable);
        const std::string line = key.ToString();
        lines.push_back(line.substr(0, line.find("  ")));
        return Status();
      }));
  EXPECT_EQ(totals.keys, 4u);
  EXPECT_EQ(totals.unreadable, 0u);
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "/cellar/people row people_pkey (id=7, group=0)",
                       "/cellar/people unique people_name_key (name='ann')",
                       "/cellar/people index people_age_idx (age=30, id=7)",
                       "/cellar/people index people_age_name_idx (age=30 desc, id=7)"}));
}

TEST_F(AccessTest, SpansPrintAsKeys) {
  Span range;
  range.lower.kind = Bound::Kind::kInclusive;
  range.lower.value = Datum::Int(5);
  ScanSpec spec = SpecOf(table_, table_->primary(), {PointOf({Datum::Int(3)}), range});
  const std::vector<std::string> spans = Must(DescribeSpans(spec));
  ASSERT_EQ(spans.size(), 2u);
  const std::string prefix = "/" + std::to_string(table_->id.value) + "/0/";
  EXPECT_EQ(spans[0], prefix + "3/0");
  EXPECT_EQ(spans[1].substr(0, prefix.size() + 4), prefix + "5 - ");
}

TEST_F(AccessTest, FiltersDropRowsAndTheirColumnsNeedNotBeWanted) {
  Fill({{"1", "ann", "30"}, {"2", "bob", "20"}, {"3", "cid", std::nullopt}, {"4", "dan", "40"}});
  auto transaction = Begin();
  Access access(transaction.get(), nullptr);
  const auto scan = [&](std::string_view index, std::vector<Span> spans,
                        std::vector<uint32_t> columns, bool ref) {
    ScanSpec spec = SpecOf(table_, Index(index), std::move(spans));
    spec.columns.clear();
    for (uint32_t id : columns) spec.columns.push_back(ColumnId{id});
    spec.filters = {{ColumnId{3}, {FilterOp::kGreater, Datum::Int(20)}},
                    {ColumnId{2}, {FilterOp::kNotEqual, Datum::Bytes("dan")}}};
    spec.with_row_ref = ref;
    return ScanRows(&access, spec);
  };
  for (std::string_view index : {"people_pkey", "people_name_key", "people_age_name_idx"}) {
    EXPECT_EQ(scan(index, {Span{}}, {1}, false), (std::vector<Row>{{"1"}})) << index;
    EXPECT_EQ(scan(index, {Span{}}, {3, 1}, false), (std::vector<Row>{{"30", "1"}})) << index;
    EXPECT_EQ(scan(index, {Span{}}, {}, false).size(), 1u) << index;
    const std::vector<Row> with_ref = scan(index, {Span{}}, {1}, true);
    ASSERT_EQ(with_ref.size(), 1u) << index;
    EXPECT_EQ(with_ref[0].size(), 2u) << index;
    EXPECT_EQ(with_ref[0][0], "1") << index;
  }
  EXPECT_EQ(scan("people_pkey", {PointOf({Datum::Int(1)})}, {2}, false).size(), 1u);
  EXPECT_TRUE(scan("people_pkey", {PointOf({Datum::Int(2)})}, {2}, false).empty());
  EXPECT_TRUE(scan("people_pkey", {PointOf({Datum::Int(3)})}, {2}, true).empty());
}

TEST_F(AccessTest, DumpFlagsKeysThatMakeNoSense) {
  auto writer = Begin();
  Must(writer->Put("\x5e\x5f nonsense", "v"));
  Must(writer->Commit());
  auto transaction = Begin();
  uint64_t flagged = 0, system = 0;
  DumpTotals totals =
      Must(DumpKeys(transaction.get(), *store_.catalog()->Current(), {}, [&](const DumpedKey& key) {
        flagged += key.readable ? 0 : 1;
        system += key.system_word.empty() ? 0 : 1;
        return Status();
      }));
  EXPECT_EQ(flagged, 1u);
  EXPECT_EQ(totals.unreadable, 1u);
  EXPECT_GT(system, 3u);
}

}  // namespace
}  // namespace cellar::table
