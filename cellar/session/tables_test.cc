// The table API inside a program: every call, beside what SQL sees.
#include "cellar/session/tables.h"

#include <map>
#include <random>
#include <thread>

#include "cellar/codec/key.h"
#include "cellar/session/tables_internal.h"
#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

class TablesTest : public testing::Test {
 protected:
  TablesTest() { store_ = Open("cellar"); }
  std::unique_ptr<TableStore> Open(const std::string& user) {
    SessionOptions options;
    options.user = user;
    Result<std::unique_ptr<TableStore>> store = OpenTables(db_.database(), options);
    EXPECT_TRUE(store.ok()) << store.status().ToString();
    return std::move(*store);
  }
  std::shared_ptr<Table> OpenTable(const std::string& path) {
    Result<std::shared_ptr<Table>> table = store_->OpenTable(path);
    EXPECT_TRUE(table.ok()) << table.status().ToString();
    return std::move(*table);
  }
  // Rows of a result as SQL's test rows look.
  static std::vector<std::string> Text(const RowSet& rows) {
    std::vector<std::string> lines;
    for (Row row : rows) {
      std::string& line = lines.emplace_back();
      for (size_t c = 0; c < rows.columns().size(); ++c) {
        if (c > 0) line += '|';
        line += row.ToString(c);
      }
    }
    return lines;
  }
  static std::vector<std::string> ScanAll(Table* table, const ScanOptions& options) {
    std::vector<std::string> lines;
    Result<std::unique_ptr<Scanner>> scan = table->Scan(options);
    EXPECT_TRUE(scan.ok()) << scan.status().ToString();
    if (!scan.ok()) return lines;
    while (const RowSet* rows = (*scan)->NextBatch()) {
      const std::vector<std::string> some = Text(*rows);
      lines.insert(lines.end(), some.begin(), some.end());
    }
    EXPECT_TRUE((*scan)->status().ok()) << (*scan)->status().ToString();
    return lines;
  }

  TestSession db_;
  std::unique_ptr<TableStore> store_;
};

using Lines = std::vector<std::string>;

TEST_F(TablesTest, PutGetLookup) {
  db_.Run("CREATE TABLE e (id bigint PRIMARY KEY, last_name text, telephone text DEFAULT '-')");
  db_.Run("CREATE INDEX e_name ON e (last_name)");
  std::shared_ptr<Table> table = OpenTable("/cellar/e");
  Record record = table->NewRecord();
  record.Set("id", 1).Set("last_name", "kimball");
  Result<WriteResult> put = table->Put(record);
  ASSERT_TRUE(put.ok()) << put.status().ToString();
  EXPECT_EQ(put->inserted, 1u);
  EXPECT_GT(put->commit_version, 0u);
  record.Clear();
  record.Set("id", 1).Set("telephone", "555");
  put = table->Put(record);
  ASSERT_TRUE(put.ok()) << put.status().ToString();
  EXPECT_EQ(put->inserted, 0u);
  EXPECT_EQ(put->updated, 1u);
  EXPECT_EQ(db_.Run("SELECT * FROM e"), Lines{"1|kimball|555"});
  db_.Run("INSERT INTO e VALUES (2, 'kimball', 'x'), (3, 'ada', 'y')");
  Result<RowSet> rows = table->Get({1});
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(Text(*rows), Lines{"1|kimball|555"});
  rows = table->Get({4}, {"telephone"});
  ASSERT_TRUE(rows.ok());
  EXPECT_TRUE(rows->empty());
  RowSet many;
  const std::vector<Key> keys{{3}, {9}, {1}, {3}};
  ASSERT_TRUE(table->Get(keys, {.columns = {"id"}}, &many).ok());
  EXPECT_EQ(Text(many), (Lines{"3", "1", "3"}));
  EXPECT_EQ(many.key_positions(), (std::vector<uint32_t>{0, 2, 3}));
  rows = table->Lookup("e_name", {"kimball"}, {"telephone"});
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(Text(*rows), (Lines{"555", "x"}));
  EXPECT_EQ(table->Lookup("e_name", {"nobody"})->size(), 0u);
  EXPECT_EQ(table->Lookup("no such", {"x"}).status().sqlstate(), "42704");
  EXPECT_EQ(store_->OpenTable("/cellar/no").status().sqlstate(), "42P01");
}

TEST_F(TablesTest, LooksUpManyKeysInTheirOrder) {
  db_.Run("CREATE TABLE t (id int PRIMARY KEY, a text, b int)");
  db_.Run("CREATE INDEX t_ab ON t (a, b DESC)");
  db_.Run("INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 1), (3, 'x', 2), (4, NULL, 1), (5, 'y', 2)");
  std::shared_ptr<Table> table = OpenTable("/cellar/t");
  RowSet rows;
  const std::vector<Key> keys{{"y"}, {"none"}, {"x", 2}, {nullptr}};
  ASSERT_TRUE(table->Lookup("t_ab", keys, {"id"}, {}, &rows).ok());
  EXPECT_EQ(Text(rows), (Lines{"5", "2", "3", "4"}));
  EXPECT_EQ(rows.key_positions(), (std::vector<uint32_t>{0, 0, 2, 3}));
  LookupOptions few;
  few.max_rows = 2;
  EXPECT_EQ(table->Lookup("t_ab", keys, {"id"}, few, &rows).sqlstate(), "54000");
  EXPECT_EQ(table->Lookup("t_ab", Key{"x", 1, 2}).status().sqlstate(), "22023");
  EXPECT_EQ(table->Get(Key{"x", 1}, {.index = "t_ab"}, &rows).sqlstate(), "42809");
  db_.Run("CREATE INDEX t_lower ON t (lower(a))");
  EXPECT_EQ(table->Lookup("t_lower", Key{"x"}).status().sqlstate(), "0A000");
  EXPECT_EQ(ScanAll(table.get(), {.index = "t_lower", .columns = {"id"}}),
            (Lines{"1", "3", "2", "5", "4"}));
}

// What a present row has need not be given again, and what a new row lacks is refused.
TEST_F(TablesTest, CellsOfPresentRowsChangeAlone) {
  db_.Run(
      "CREATE TABLE t (id int PRIMARY KEY, a text NOT NULL, b int CHECK (b > length(a)), c int)");
  db_.Run("INSERT INTO t VALUES (1, 'x', 5, 1)");
  std::shared_ptr<Table> table = OpenTable("/cellar/t");
  std::vector<Record> records(2, table->NewRecord());
  records[0].Set("id", 1).Set("c", 7);
  records[1].Set("id", 2).Set("c", 8).Set("a", "y");
  Result<WriteResult> put = table->Put(records);
  ASSERT_TRUE(put.ok()) << put.status().ToString();
  EXPECT_EQ(put->updated, 1u);
  EXPECT_EQ(put->inserted, 1u);
  EXPECT_EQ(db_.Run("SELECT * FROM t"), (Lines{"1|x|5|7", "2|y||8"}));
  EXPECT_EQ(table->Put(table->NewRecord().Set("id", 3).Set("c", 1)).status().sqlstate(), "23502");
  EXPECT_EQ(table->Put(table->NewRecord().Set("id", 1).Set("b", 1)).status().sqlstate(), "23514");
  EXPECT_EQ(*table->Increment({1}, "c", 1), Cell(8));
  EXPECT_EQ(table->Increment({3}, "c", 1).status().sqlstate(), "23502");
}

TEST_F(TablesTest, OldMarkersGo) {
  db_.Run("CREATE TABLE t (id int PRIMARY KEY)");
  std::shared_ptr<Table> table = OpenTable("/cellar/t");
  for (int i = 0; i < 3; ++i) {
    PutOptions once;
    once.call.idempotency_id = "id" + std::to_string(i);
    ASSERT_TRUE(table->Put(table->NewRecord().Set("id", i), once).ok());
  }
  auto markers = [&] {
    auto transaction = db_.engine()->Begin();
    const std::string start = codec::SystemPrefix("txn");
    auto cursor = std::move(*transaction->Scan(start, codec::PrefixEnd(start)));
    kv::Block block;
    size_t count = 0;
    while (*cursor->NextBlock(&block)) count += block.size();
    return count;
  };
  EXPECT_EQ(markers(), 3u);
  tables::SweepMarkers(db_.engine(), NowMicros());
  EXPECT_EQ(markers(), 3u);
  tables::SweepMarkers(db_.engine(), NowMicros() + int64_t{30} * 3600 * 1000000);
  EXPECT_EQ(markers(), 0u);
}

TEST_F(TablesTest, ConstraintsAreThoseOfSql) {
  db_.Run("CREATE TABLE p (id int PRIMARY KEY)");
  db_.Run(
      "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p, n int NOT NULL DEFAULT 7 CHECK (n > "
      "0), "
      "twice int GENERATED ALWAYS AS (n * 2) STORED, u text UNIQUE)");
  std::shared_ptr<Table> table = OpenTable("/cellar/c");
  auto put = [&](Record record, PutMode mode = PutMode::kUpsert) {
    return table->Put(record, {.mode = mode}).status();
  };
  EXPECT_TRUE(put(table->NewRecord().Set("id", 1).Set("u", "x")).ok());
  EXPECT_EQ(db_.Run("SELECT * FROM c"), Lines{"1||7|14|x"});
  EXPECT_EQ(put(table->NewRecord().Set("id", 2).Set("n", 0)).sqlstate(), "23514");
  EXPECT_EQ(put(table->NewRecord().Set("id", 2).Set("n", nullptr)).sqlstate(), "23502");
  EXPECT_EQ(put(table->NewRecord().Set("id", 2).Set("p", 5)).sqlstate(), "23503");
  EXPECT_EQ(put(table->NewRecord().Set("id", 2).Set("u", "x")).sqlstate(), "23505");
  EXPECT_EQ(put(table->NewRecord().Set("id", 2).Set("twice", 5)).sqlstate(), "428C9");
  EXPECT_EQ(put(table->NewRecord().Set("id", 1), PutMode::kInsert).sqlstate(), "23505");
  EXPECT_EQ(put(table->NewRecord().Set("id", 2).Set("n", 1), PutMode::kUpdate).sqlstate(), "P0002");
  EXPECT_EQ(put(table->NewRecord().Set("no", 2)).sqlstate(), "42703");
  EXPECT_EQ(put(table->NewRecord().Set("id", "x")).sqlstate(), "22P02");
  db_.Run("INSERT INTO p VALUES (5)");
  EXPECT_TRUE(put(table->NewRecord().Set("id", 1).Set("p", 5).Set("n", 3), PutMode::kUpdate).ok());
  EXPECT_EQ(db_.Run("SELECT * FROM c"), Lines{"1|5|3|6|x"});
  std::shared_ptr<Table> parents = OpenTable("/cellar/p");
  EXPECT_EQ(parents->Delete({5}).status().sqlstate(), "23503");
  // Of several rows all or none are written.
  std::vector<Record> records(2, table->NewRecord());
  records[0].Set("id", 10);
  records[1].Set("id", 11).Set("n", -1);
  EXPECT_EQ(table->Put(records).status().sqlstate(), "23514");
  EXPECT_EQ(db_.Run("SELECT count(*) FROM c"), Lines{"1"});
}

TEST_F(TablesTest, Expectations) {
  db_.Run("CREATE TABLE q (id int PRIMARY KEY, owner text, n int)");
  std::shared_ptr<Table> table = OpenTable("/cellar/q");
  PutOptions absent{.expect = {{.row = 0, .absent = true}}};
  EXPECT_TRUE(table->Put(table->NewRecord().Set("id", 1), absent)->applied);
  Result<WriteResult> again = table->Put(table->NewRecord().Set("id", 1), absent);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->applied);
  EXPECT_EQ(again->unmet, std::vector<uint32_t>{0});
  PutOptions unowned{.expect = {{.cells = {{"owner", nullptr}}}}};
  const Record take = table->NewRecord().Set("id", 1).Set("owner", "a");
  EXPECT_TRUE(table->Put(take, unowned)->applied);
  EXPECT_FALSE(table->Put(take, unowned)->applied);
  DeleteOptions owned{.expect = {{.cells = {{"owner", "b"}}}}};
  EXPECT_FALSE(table->Delete({1}, owned)->applied);
  owned.expect[0].cells[0].second = "a";
  Result<WriteResult> deleted = table->Delete({1}, owned);
  EXPECT_TRUE(deleted->applied);
  EXPECT_EQ(deleted->deleted, 1u);
}

TEST_F(TablesTest, IncrementsAndAppends) {
  db_.Run("CREATE TABLE n (k text PRIMARY KEY, hits int, log text, seen int[], d int DEFAULT 4)");
  std::shared_ptr<Table> table = OpenTable("/cellar/n");
  EXPECT_EQ(*table->Increment({"a"}, "hits", 2), Cell(2));
  EXPECT_EQ(*table->Increment({"a"}, "hits", -5), Cell(-3));
  EXPECT_EQ(*table->Increment({"a"}, "log", "x"), Cell("x"));
  EXPECT_EQ(*table->Increment({"a"}, "log", "yz"), Cell("xyz"));
  EXPECT_EQ(*table->Increment({"a"}, "seen", "{1,2}"), Cell("{1,2}"));
  EXPECT_EQ(*table->Increment({"a"}, "seen", "{3}"), Cell("{1,2,3}"));
  EXPECT_EQ(db_.Run("SELECT * FROM n"), Lines{"a|-3|xyz|{1,2,3}|4"});
  EXPECT_EQ(table->Increment({"b"}, "hits", 1, {.must_exist = true}).status().sqlstate(), "P0002");
  EXPECT_EQ(table->Increment({"a"}, "hits", 2147483647).ok(), true);
  EXPECT_EQ(table->Increment({"a"}, "hits", 2147483647).status().sqlstate(), "22003");
}

TEST_F(TablesTest, TransactionsHappenTogetherOrNotAtAll) {
  db_.Run("CREATE TABLE t (id int PRIMARY KEY, n int)");
  db_.Run("INSERT INTO t VALUES (1, 1), (2, 2)");
  std::shared_ptr<Table> table = OpenTable("/cellar/t");
  {
    auto transaction = *store_->Begin();
    ASSERT_TRUE(table->Put(table->NewRecord().Set("id", 3), {.call = {transaction.get()}}).ok());
    RowSet rows;
    ASSERT_TRUE(table->Get(Key{3}, {.call = {transaction.get()}}, &rows).ok());
    EXPECT_EQ(rows.size(), 1u);
    EXPECT_EQ(table->Get({3})->size(), 0u);
  }
  EXPECT_EQ(db_.Run("SELECT count(*) FROM t"), Lines{"2"});
  // Write skew is refused.
  auto a = *store_->Begin();
  auto b = *store_->Begin();
  RowSet rows;
  ASSERT_TRUE(table->Get(Key{1}, {.call = {a.get()}}, &rows).ok());
  ASSERT_TRUE(table->Get(Key{2}, {.call = {b.get()}}, &rows).ok());
  ASSERT_TRUE(table->Put(table->NewRecord().Set("id", 2).Set("n", 0), {.call = {a.get()}}).ok());
  ASSERT_TRUE(table->Put(table->NewRecord().Set("id", 1).Set("n", 0), {.call = {b.get()}}).ok());
  EXPECT_TRUE(a->Commit().ok());
  EXPECT_EQ(b->Commit().status().code(), Code::kConflict);
  EXPECT_EQ(db_.Run("SELECT * FROM t"), (Lines{"1|1", "2|0"}));
  // After an error there is only the way back.
  auto failed = *store_->Begin();
  EXPECT_EQ(
      table
          ->Put(table->NewRecord().Set("id", 1), {.mode = PutMode::kInsert, .call = {failed.get()}})
          .status()
          .sqlstate(),
      "23505");
  EXPECT_EQ(table->Get(Key{1}, {.call = {failed.get()}}, &rows).sqlstate(), "25P02");
  EXPECT_EQ(failed->Commit().status().sqlstate(), "25P02");
  EXPECT_TRUE(failed->Rollback().ok());
  EXPECT_EQ(table->Get(Key{1}, {.call = {failed.get()}}, &rows).sqlstate(), "25P01");
}

TEST_F(TablesTest, ConcurrentIncrementsAllCount) {
  db_.Run("CREATE TABLE n (k int PRIMARY KEY, hits int)");
  std::shared_ptr<Table> table = OpenTable("/cellar/n");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 50; ++j) {
        Status status = store_->Run([&](TableTransaction* transaction) -> Status {
          RowSet rows;
          CELLAR_TRY(table->Get(Key{1}, {.for_update = true, .call = {transaction}}, &rows));
          const int64_t n = rows.empty() ? 0 : rows[0].Get<int64_t>("hits");
          return table
              ->Put(table->NewRecord().Set("k", 1).Set("hits", n + 1), {.call = {transaction}})
              .status();
        });
        EXPECT_TRUE(status.ok()) << status.ToString();
        EXPECT_TRUE(table->Increment({2}, "hits", 1).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(db_.Run("SELECT * FROM n"), (Lines{"1|200", "2|200"}));
}

TEST_F(TablesTest, ARepeatedCallDoesNothing) {
  db_.Run("CREATE TABLE n (k int PRIMARY KEY, hits int)");
  std::shared_ptr<Table> table = OpenTable("/cellar/n");
  const Table::RowChange change{{1}, {{"hits", 5}}};
  IncrementOptions once{.call = {.idempotency_id = "call-1"}};
  Result<IncrementResult> first = table->Increment(std::span(&change, 1), once);
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  EXPECT_FALSE(first->write.repeated);
  Result<IncrementResult> second = table->Increment(std::span(&change, 1), once);
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  EXPECT_TRUE(second->write.repeated);
  EXPECT_EQ(second->write.inserted, 1u);
  EXPECT_EQ(db_.Run("SELECT * FROM n"), Lines{"1|5"});
  EXPECT_EQ(*store_->FindOutcome("call-1"), Outcome::kCommitted);
  // Asking decides.
  EXPECT_EQ(*store_->FindOutcome("call-2"), Outcome::kAborted);
  EXPECT_EQ(*store_->FindOutcome("call-2"), Outcome::kAborted);
  once.call.idempotency_id = "call-2";
  EXPECT_EQ(table->Increment(std::span(&change, 1), once).status().sqlstate(), "0B000");
  // A transaction that is asked about before it commits cannot commit any more.
  auto transaction = *store_->Begin({.idempotency_id = "call-3"});
  ASSERT_TRUE(table->Put(table->NewRecord().Set("k", 9), {.call = {transaction.get()}}).ok());
  EXPECT_EQ(*store_->FindOutcome("call-3"), Outcome::kAborted);
  EXPECT_FALSE(transaction->Commit().ok());
  auto committed = *store_->Begin({.idempotency_id = "call-4"});
  ASSERT_TRUE(table->Put(table->NewRecord().Set("k", 8), {.call = {committed.get()}}).ok());
  EXPECT_TRUE(committed->Commit().ok());
  EXPECT_EQ(*store_->FindOutcome("call-4"), Outcome::kCommitted);
  EXPECT_EQ(store_->Begin({.idempotency_id = "call-4"}).status().sqlstate(), "0B000");
  EXPECT_EQ(db_.Run("SELECT k FROM n"), (Lines{"1", "8"}));
  EXPECT_EQ(store_->FindOutcome(std::string(65, 'x')).status().sqlstate(), "22023");
}

TEST_F(TablesTest, PrivilegesAreThoseOfSql) {
  db_.Run("CREATE TABLE s (id int PRIMARY KEY, open text, secret text)");
  db_.Run("INSERT INTO s VALUES (1, 'o', 's')");
  db_.Run("CREATE ROLE r LOGIN");
  std::unique_ptr<TableStore> theirs = Open("r");
  std::shared_ptr<Table> table = *theirs->OpenTable("/cellar/s");
  EXPECT_EQ(table->Get({1}).status().sqlstate(), "42501");
  EXPECT_EQ(table->Put(table->NewRecord().Set("id", 2)).status().sqlstate(), "42501");
  EXPECT_EQ(table->Delete({1}).status().sqlstate(), "42501");
  db_.Run("GRANT SELECT (id, open) ON s TO r");
  EXPECT_EQ(Text(*table->Get({1}, {"open"})), Lines{"o"});
  EXPECT_EQ(table->Get({1}, {"secret"}).status().sqlstate(), "42501");
  EXPECT_EQ(table->Scan({.filter = Col("secret") == "s", .columns = {"id"}}).status().sqlstate(),
            "42501");
  db_.Run("GRANT ALL ON s TO r");
  EXPECT_TRUE(table->Put(table->NewRecord().Set("id", 2)).ok());
  db_.Run("REVOKE ALL ON s FROM r");
  EXPECT_EQ(table->Put(table->NewRecord().Set("id", 2)).status().sqlstate(), "42501");
  db_.Run("CREATE SCHEMA hidden; CREATE TABLE hidden.x (id int PRIMARY KEY)");
  EXPECT_EQ(theirs->OpenTable("/cellar/hidden/x").status().sqlstate(), "42501");
  EXPECT_TRUE(store_->OpenTable("/cellar/hidden/x").ok());
}

TEST_F(TablesTest, AnOpenTableFollowsItsTable) {
  db_.Run("CREATE TABLE f (id int PRIMARY KEY, a text)");
  std::shared_ptr<Table> table = OpenTable("/cellar/f");
  const Record old = table->NewRecord().Set("id", 1).Set("a", "x");
  const Projection columns = *table->Project({"a"});
  db_.Run("ALTER TABLE f RENAME COLUMN a TO b; ALTER TABLE f RENAME TO g");
  db_.Run("ALTER TABLE g ADD COLUMN c int DEFAULT 5");
  ASSERT_TRUE(table->Put(old).ok());
  EXPECT_EQ(Text(*table->Get({1})), Lines{"1|x|5"});
  EXPECT_EQ(Text(*table->Get({1}, columns)), Lines{"x"});
  EXPECT_EQ(table->schema()->path, "/cellar/g");
  EXPECT_EQ(table->schema()->columns[1].name, "b");
  RowSet rows;
  EXPECT_EQ(table->Get(Key{1}, {.call = {.schema_version = 1}}, &rows).sqlstate(), "55000");
  db_.Run("DROP TABLE g");
  EXPECT_EQ(table->Get({1}).status().sqlstate(), "42P01");
}

TEST_F(TablesTest, FiltersAreTypeChecked) {
  db_.Run("CREATE TABLE t (id int PRIMARY KEY, name text, at timestamp, b bytea)");
  db_.Run(
      "INSERT INTO t VALUES (1, 'ab%c', '2024-01-01', '\\x00ff'), (2, NULL, NULL, NULL), "
      "(3, 'xyz', '2025-01-01', '\\x01')");
  std::shared_ptr<Table> table = OpenTable("/cellar/t");
  auto ids = [&](const Filter& filter) {
    return ScanAll(table.get(), {.filter = filter, .columns = {"id"}});
  };
  EXPECT_EQ(ids(Col("name").StartsWith("ab%")), Lines{"1"});
  EXPECT_EQ(ids(Col("name").EndsWith("z") || Col("name").IsNull()), (Lines{"2", "3"}));
  EXPECT_EQ(ids(Col("name").Contains("b%")), Lines{"1"});
  EXPECT_EQ(ids(!(Col("name") == "xyz")), Lines{"1"});
  EXPECT_EQ(ids(Col("at") < "2024-06-01"), Lines{"1"});
  EXPECT_EQ(ids(Col("at") > Filter::Literal("2024-06-01", "timestamp")), Lines{"3"});
  EXPECT_EQ(ids(Col("id").In({1, 3, 9}) && Col("id") + 1 > 2), Lines{"3"});
  EXPECT_EQ(ids((Col("id") > 1) ^ (Col("name") == "xyz")), Lines{});
  EXPECT_EQ(ids(Col("b").StartsWith(Cell::Bytes(std::string_view("\0", 1)))), Lines{"1"});
  EXPECT_EQ(ids(Col("id") % 2 == 1), (Lines{"1", "3"}));
  EXPECT_EQ(ids(-Col("id") < -2), Lines{"3"});
  EXPECT_EQ(ids(Col("id") < 2.5), (Lines{"1", "2"}));
  auto error = [&](const Filter& filter) {
    Result<std::unique_ptr<Scanner>> scan = table->Scan({.filter = filter});
    if (!scan.ok()) return std::string(scan.status().sqlstate());
    while ((*scan)->NextBatch() != nullptr) {
    }
    return std::string((*scan)->status().sqlstate());
  };
  EXPECT_EQ(error(Col("no") == 1), "42703");
  EXPECT_EQ(error(Col("name") == 1), "42883");
  EXPECT_EQ(error(Col("id") + 1), "42804");
  EXPECT_EQ(error(Col("id") / 0 == 1), "22012");
  EXPECT_EQ(error(Col("id") == "x"), "22P02");
  EXPECT_EQ(error(Col("id") == Filter::Literal("1", "int); DROP TABLE t")), "42601");
  Filter deep = Col("id") == 1;
  for (int i = 0; i < 100; ++i) deep = !deep;
  EXPECT_EQ(error(deep), "54001");
}

TEST_F(TablesTest, KeyConditionsBecomeSpans) {
  db_.Run("CREATE TABLE t (a int, b text, v int, PRIMARY KEY (a, b))");
  db_.Run("INSERT INTO t SELECT i / 10, 'k' || i % 10, i FROM generate_series(0, 999) i");
  std::shared_ptr<Table> table = OpenTable("/cellar/t");
  auto examined = [&](const Filter& filter) {
    auto scan = std::move(*table->Scan({.filter = filter}));
    while (scan->NextBatch() != nullptr) {
    }
    EXPECT_TRUE(scan->status().ok());
    return scan->rows_examined();
  };
  EXPECT_EQ(examined(Col("a") == 7), 10u);
  EXPECT_EQ(examined(Col("a") == 7 && Col("b") == "k3"), 1u);
  EXPECT_EQ(examined(Col("a").In({3, 5}) && Col("b") < "k2" && Col("v") > 0), 4u);
  EXPECT_EQ(examined(Col("a") == 7 && Col("b").StartsWith("k1")), 1u);
  EXPECT_EQ(examined(Col("a") >= 98 && Col("v") > 0), 20u);
  EXPECT_EQ(examined(1 > Col("a")), 10u);
  EXPECT_EQ(examined(Col("a").IsNull()), 0u);
  // What is no key is decided by the scan.
  EXPECT_EQ(examined(Col("v") == 500), 1u);
  EXPECT_EQ(examined(Col("v") > 499 && 502 >= Col("v") && Col("b") != "k1"), 2u);
  EXPECT_EQ(examined(Col("v") == 1 || Col("v") == 2), 1000u);
}

TEST_F(TablesTest, DatesBecomeSpans) {
  for (const char* layout : {"row", "pages"}) {
    db_.Run(
        fmt::format("CREATE TABLE t (d date, s timestamp, z timestamptz, n int, "
                    "PRIMARY KEY (d, n)) WITH (layout = {});"
                    "CREATE INDEX t_s ON t (s); CREATE INDEX t_z ON t (z DESC)",
                    layout));
    db_.Run(
        "INSERT INTO t SELECT date '2024-01-01' + i, timestamp '2024-01-01' + i * interval '1 h',"
        " timestamptz '2024-01-01 00:00+00' + i * interval '1 h', i FROM "
        "generate_series(0, 99) i");
    std::shared_ptr<Table> table = OpenTable("/cellar/t");
    auto found = [&](const std::string& index, const Filter& filter) {
      auto scan = std::move(*table->Scan({.index = index, .filter = filter}));
      uint64_t rows = 0;
      while (const RowSet* batch = scan->NextBatch()) rows += batch->size();
      EXPECT_TRUE(scan->status().ok()) << scan->status().ToString();
      return std::pair(rows, scan->rows_examined());
    };
    const auto both = [](uint64_t rows) { return std::pair(rows, rows); };
    EXPECT_EQ(found("", Col("d") == "2024-02-29"), both(1));
    EXPECT_EQ(found("", Col("d") < Filter::Literal("2024-01-05", "date")), both(4));
    EXPECT_EQ(found("t_s", Col("s") >= "2024-01-01 10:00" && Col("s") < "2024-01-01T12:30:00.5"),
              both(3));
    EXPECT_EQ(found("t_s", Col("s") == Filter::Literal("2024-01-02", "timestamp")), both(1));
    EXPECT_EQ(found("t_z", Col("z") > "2024-01-04 03:00:00+01"), both(25));
    EXPECT_EQ(found("t_z", Col("z") <= Filter::Literal("2024-01-01 05:00Z", "timestamptz")),
              both(6));
    // These depend on the settings and the time: rows are asked one by one.
    EXPECT_EQ(found("t_z", Col("z") > "2024-01-04 03:00").second, 100u);
    EXPECT_EQ(found("", Col("d") < "now"), std::pair(uint64_t{100}, uint64_t{100}));
    EXPECT_EQ(found("", Col("d") < Filter::Literal("2024-01-05", "timestamp")).second, 100u);
    db_.Run("DROP TABLE t");
  }
}

// Every operation at random beside a map, and everything that is read beside SQL.
TEST_F(TablesTest, RandomOperationsAgreeWithAMapAndWithSql) {
  for (const char* layout : {"row", "pages", "cell", "datum"}) {
    SCOPED_TRACE(layout);
    db_.Run(std::string("CREATE TABLE m (a int, b text, v int, w text, PRIMARY KEY (a, b)) "
                        "WITH (layout = ") +
            layout + ")");
    db_.Run("CREATE INDEX m_v ON m (v DESC NULLS LAST, w)");
    db_.Run("CREATE UNIQUE INDEX m_u ON m (w NULLS FIRST, a, b)");
    std::shared_ptr<Table> table = OpenTable("/cellar/m");
    using ModelKey = std::pair<int, std::string>;
    using ModelRow = std::pair<std::optional<int>, std::optional<std::string>>;
    std::map<ModelKey, ModelRow> model;
    std::mt19937 random(42);
    auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const std::vector<std::string> texts{"", "a", "ab", "b", "k'", std::string("\x01", 1)};
    auto print = [&](const ModelKey& key, const ModelRow& row) {
      return fmt::format("{}|{}|{}|{}", key.first, key.second,
                         row.first ? std::to_string(*row.first) : "", row.second.value_or(""));
    };
    for (int step = 0; step < 400; ++step) {
      const ModelKey key{pick(6) - 2, texts[static_cast<size_t>(pick(6))]};
      Record record = table->NewRecord().Set("a", key.first).Set("b", key.second);
      ModelRow row;
      const bool sets_v = pick(2) != 0, sets_w = pick(2) != 0;
      if (pick(3) != 0) row.first = pick(5);
      if (pick(3) != 0) row.second = texts[static_cast<size_t>(pick(6))];
      if (sets_v) record.Set("v", row.first);
      if (sets_w) record.Set("w", row.second);
      const bool there = model.contains(key);
      auto apply = [&] {
        ModelRow& stored = model[key];
        if (sets_v) stored.first = row.first;
        if (sets_w) stored.second = row.second;
      };
      switch (pick(6)) {
        case 0:
        case 1:
        case 2: {
          Result<WriteResult> put = table->Put(record);
          ASSERT_TRUE(put.ok()) << put.status().ToString();
          EXPECT_EQ(put->inserted, there ? 0u : 1u);
          EXPECT_EQ(put->updated, there && (sets_v || sets_w) ? 1u : 0u);
          apply();
          break;
        }
        case 3: {
          const Status status = table->Put(record, {.mode = PutMode::kInsert}).status();
          EXPECT_EQ(status.ok(), !there) << status.ToString();
          if (!there) apply();
          break;
        }
        case 4: {
          const Status status = table->Put(record, {.mode = PutMode::kUpdate}).status();
          EXPECT_EQ(status.ok(), there) << status.ToString();
          if (there) apply();
          break;
        }
        case 5: {
          Result<WriteResult> deleted = table->Delete({key.first, key.second});
          ASSERT_TRUE(deleted.ok()) << deleted.status().ToString();
          EXPECT_EQ(deleted->deleted, model.erase(key));
          break;
        }
      }
      if (step % 20 != 19) continue;
      Lines expected;
      for (const auto& [k, r] : model) expected.push_back(print(k, r));
      ASSERT_EQ(ScanAll(table.get(), {}), expected);
      ASSERT_EQ(db_.Run("SELECT * FROM m ORDER BY a, b"), expected);
      for (const auto& [k, r] : model) {
        ASSERT_EQ(Text(*table->Get({k.first, k.second})), Lines{print(k, r)});
      }
      // Every index, both ways, piece by piece with tokens.
      for (const auto& [index, order, back] :
           std::vector<std::tuple<std::string, std::string, std::string>>{
               {"", "a, b", "a DESC, b DESC"},
               {"m_v", "v DESC NULLS LAST, w, a, b",
                "v NULLS FIRST, w DESC NULLS FIRST, a DESC, b DESC"},
               {"m_u", "w NULLS FIRST, a, b", "w DESC NULLS LAST, a DESC, b DESC"}}) {
        for (bool reverse : {false, true}) {
          const Lines sql = db_.Run("SELECT * FROM m ORDER BY " + (reverse ? back : order));
          ASSERT_EQ(ScanAll(table.get(), {.index = index, .reverse = reverse}), sql) << index;
          Lines pieces;
          ScanOptions piece{
              .index = index, .reverse = reverse, .max_rows = static_cast<uint64_t>(1 + pick(3))};
          while (true) {
            auto scan = std::move(*table->Scan(piece));
            while (const RowSet* rows = scan->NextBatch()) {
              for (std::string& line : Text(*rows)) pieces.push_back(std::move(line));
            }
            ASSERT_TRUE(scan->status().ok()) << scan->status().ToString();
            if (scan->end_reason() == EndReason::kComplete) break;
            piece.resume_token = scan->resume_token();
          }
          ASSERT_EQ(pieces, sql) << index << reverse;
        }
      }
      // Spans and filters beside the same in SQL.
      const int low = pick(6) - 2, high = pick(6) - 2;
      const std::string from = texts[static_cast<size_t>(pick(5))];
      ASSERT_EQ(ScanAll(table.get(), {.spans = {{{low, from}, pick(1) != 0, {high}, true}}}),
                db_.Run(fmt::format("SELECT * FROM m WHERE (a, b) >= ({}, {}) AND a <= {} "
                                    "ORDER BY a, b",
                                    low, "'" + (from == "k'" ? "k''" : from) + "'", high)));
      ASSERT_EQ(ScanAll(table.get(), {.index = "m_v", .spans = {KeySpan::After({low})}}),
                db_.Run(fmt::format("SELECT * FROM m WHERE v < {} OR v IS NULL "
                                    "ORDER BY v DESC NULLS LAST, w, a, b",
                                    low)));
      ASSERT_EQ(ScanAll(table.get(),
                        {.index = "m_v",
                         .filter = Col("v") >= low && (Col("w") == from || Col("a") < high)}),
                db_.Run(fmt::format("SELECT * FROM m WHERE v >= {} AND (w = {} OR a < {}) "
                                    "ORDER BY v DESC NULLS LAST, w, a, b",
                                    low, "'" + (from == "k'" ? "k''" : from) + "'", high)));
      ASSERT_EQ(
          ScanAll(table.get(), {.index = "m_u", .reverse = true, .filter = Col("w").IsNull()}),
          db_.Run("SELECT * FROM m WHERE w IS NULL ORDER BY a DESC, b DESC"));
    }
    Result<WriteResult> cleared =
        table->DeleteSpans(std::vector<KeySpan>{KeySpan::Prefix({1}), KeySpan::From({3})}, {});
    ASSERT_TRUE(cleared.ok()) << cleared.status().ToString();
    EXPECT_EQ(db_.Run("SELECT count(*) FROM m WHERE a = 1 OR a >= 3"), Lines{"0"});
    EXPECT_EQ(db_.Run("CHECK TABLE m"), Lines{});
    db_.Run("DROP TABLE m");
  }
}

// Writes that go straight to the table layer do what their plans would.
TEST_F(TablesTest, DirectWritesAreThoseOfPlans) {
  const auto by_plan =
      std::make_shared<tables::Store>(db_.database(), SessionOptions{.user = "cellar"});
  by_plan->set_direct(false);
  for (const char* layout : {"row", "pages", "cell", "datum"}) {
    SCOPED_TRACE(layout);
    for (const char* name : {"one", "two"}) {
      db_.Run(fmt::format(
          "CREATE TABLE {0} (a int, b varchar(3), v int NOT NULL, w text, x numeric(6,2), "
          "y text DEFAULT 'none', PRIMARY KEY (b, a)) WITH (layout = {1});"
          "CREATE INDEX ON {0} (v, w); CREATE UNIQUE INDEX {0}_u ON {0} (w, v) WHERE v > 3;"
          "CREATE INDEX ON {0} (lower(w), x) INCLUDE (y)",
          name, layout));
    }
    std::shared_ptr<Table> one = OpenTable("/cellar/one");
    std::shared_ptr<Table> two = *by_plan->OpenTable("/cellar/two");
    std::mt19937 random(7);
    auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    int failed = 0, replaced = 0;
    std::unique_ptr<TableTransaction> ours, theirs;
    for (int step = 0; step < 500; ++step) {
      std::vector<Record> mine, others;
      const int columns = pick(16), count = pick(4) == 0 ? 1 + pick(6) : 1;
      for (int i = 0; i < count; ++i) {
        Record& record = mine.emplace_back(one->NewRecord());
        record.Set("a", pick(4)).Set("b", std::string(1, static_cast<char>('p' + pick(3))));
        if ((columns & 1) != 0) record.Set("v", pick(20) == 0 ? Cell() : Cell(pick(6)));
        if ((columns & 2) != 0)
          record.Set("w", pick(4) == 0
                              ? Cell()
                              : Cell("W" + std::string(static_cast<size_t>(pick(3) * 200), 'x')));
        if ((columns & 4) != 0) record.Set("x", pick(1000));
        if ((columns & 8) != 0) record.Set("y", pick(2) == 0 ? Cell() : Cell("given"));
        Record& other = others.emplace_back(two->NewRecord());
        for (size_t c = 0; c < 6; ++c) {
          if (record.Has(c)) other.Set(c, record.at(c));
        }
      }
      if (ours == nullptr && pick(20) == 0) {
        ours = *store_->Begin();
        theirs = *by_plan->Begin({});
      }
      const PutMode mode = std::array{PutMode::kUpsert, PutMode::kUpsert, PutMode::kInsert,
                                      PutMode::kUpdate}[static_cast<size_t>(pick(4))];
      Result<WriteResult> a = WriteResult(), b = WriteResult();
      if (pick(5) == 0) {
        std::vector<Key> keys;
        for (const Record& record : mine) keys.push_back({record.at(1), record.at(0)});
        a = one->Delete(keys, {.call = {.transaction = ours.get()}});
        b = two->Delete(keys, {.call = {.transaction = theirs.get()}});
      } else {
        a = one->Put(mine, {.mode = mode, .call = {.transaction = ours.get()}});
        b = two->Put(others, {.mode = mode, .call = {.transaction = theirs.get()}});
      }
      ASSERT_EQ(a.status().sqlstate(), b.status().sqlstate())
          << step << " " << a.status().ToString() << " / " << b.status().ToString();
      if (a.ok()) {
        EXPECT_EQ(a->inserted, b->inserted);
        EXPECT_EQ(a->updated, b->updated);
        EXPECT_EQ(a->deleted, b->deleted);
        replaced += a->updated > 0 ? 1 : 0;
      } else {
        ++failed;
      }
      if (ours != nullptr && (!a.ok() || pick(4) == 0)) {
        ASSERT_EQ(ours->Commit().ok(), theirs->Commit().ok());
        ours.reset();
        theirs.reset();
      }
      if (step % 50 == 49 && ours == nullptr) {
        if (pick(2) == 0) db_.Run("VACUUM one; VACUUM two");
        ASSERT_EQ(db_.Run("SELECT * FROM one ORDER BY b, a"),
                  db_.Run("SELECT * FROM two ORDER BY b, a"));
      }
    }
    ours.reset();
    theirs.reset();
    EXPECT_GT(failed, 50);
    EXPECT_GT(replaced, 50);
    for (const char* what :
         {"SELECT * FROM {} ORDER BY b, a", "SELECT v, w, a, b FROM {} ORDER BY v, w, a, b",
          "SELECT count(*) FROM {}",
          "SELECT rows, bytes, inserted, updated, deleted FROM cellar_usage WHERE object LIKE "
          "'%/{}'",
          "CHECK TABLE {}"}) {
      EXPECT_EQ(db_.Run(fmt::format(fmt::runtime(what), "one")),
                db_.Run(fmt::format(fmt::runtime(what), "two")));
    }
    EXPECT_EQ(db_.Run("CHECK TABLE one"), Lines{});
    db_.Run("DROP TABLE one; DROP TABLE two");
  }
}

TEST_F(TablesTest, ResumeTokensSayWhyNot) {
  db_.Run("CREATE TABLE t (id int PRIMARY KEY, v int)");
  db_.Run("CREATE INDEX t_v ON t (v)");
  db_.Run("INSERT INTO t SELECT i, i FROM generate_series(1, 10) i");
  std::shared_ptr<Table> table = OpenTable("/cellar/t");
  auto token = [&](ScanOptions options) {
    options.max_rows = 3;
    auto scan = std::move(*table->Scan(options));
    while (scan->NextBatch() != nullptr) {
    }
    EXPECT_EQ(scan->end_reason(), EndReason::kRows);
    return scan->resume_token();
  };
  const std::string primary = token({}), secondary = token({.index = "t_v"});
  db_.Run("ALTER TABLE t ADD COLUMN w text DEFAULT 'n'; ALTER TABLE t ALTER id TYPE bigint");
  EXPECT_EQ(ScanAll(table.get(), {.max_rows = 1, .resume_token = primary}), Lines{"4|4|n"});
  EXPECT_EQ(table->Scan({.resume_token = secondary}).status().sqlstate(), "55000");
  EXPECT_EQ(table->Scan({.resume_token = primary + "x"}).status().sqlstate(), "22023");
  EXPECT_EQ(table->Scan({.reverse = true, .resume_token = primary}).status().sqlstate(), "22023");
  db_.Run("DROP INDEX t_v; CREATE INDEX t_v ON t (v)");
  EXPECT_EQ(ScanAll(table.get(), {.index = "t_v", .max_rows = 1, .resume_token = secondary}),
            Lines{"4|4|n"});
  db_.Run("DROP INDEX t_v; CREATE INDEX t_v ON t (v DESC)");
  EXPECT_EQ(table->Scan({.index = "t_v", .resume_token = secondary}).status().sqlstate(), "55000");
}

// Nobody has to hold a thousand of them at once.
TEST_F(TablesTest, LongRowsComeFewAtATime) {
  for (const char* layout : {"row", "pages", "cell", "datum"}) {
    SCOPED_TRACE(layout);
    db_.Run(
        fmt::format("CREATE TABLE t (id int PRIMARY KEY, k int, v text) WITH (layout = {});"
                    "CREATE INDEX t_k ON t (k)",
                    layout));
    db_.Run("INSERT INTO t SELECT i, i % 7, repeat('x', 100000) FROM generate_series(1, 400) i");
    std::shared_ptr<Table> table = OpenTable("/cellar/t");
    for (const char* index : {"", "t_k"}) {
      auto scan = std::move(*table->Scan({.index = index}));
      size_t rows = 0, longest = 0;
      while (const RowSet* batch = scan->NextBatch()) {
        rows += batch->size();
        longest = std::max(longest, batch->size());
      }
      EXPECT_TRUE(scan->status().ok()) << scan->status().ToString();
      EXPECT_EQ(rows, 400u);
      // The first look-up of an index does not know yet how long rows are.
      EXPECT_LE(longest, *index == '\0' ? 32u : 128u);
    }
    std::vector<Key> keys;
    for (int i = 400; i > 0; --i) keys.push_back({i});
    RowSet rows;
    ASSERT_TRUE(table->Get(keys, {}, &rows).ok());
    EXPECT_EQ(rows.size(), 400u);
    EXPECT_EQ(rows[399].Get<int>("id"), 1);
    EXPECT_EQ(rows.key_positions()[300], 300u);
    db_.Run("DROP TABLE t");
  }
}

TEST_F(TablesTest, ScansEndAtTheirLimits) {
  db_.Run("CREATE TABLE t (id int PRIMARY KEY, v text)");
  db_.Run("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i");
  std::shared_ptr<Table> table = OpenTable("/cellar/t");
  auto scan = std::move(*table->Scan({.max_bytes = 1080}));
  size_t rows = 0;
  for (Row row : *scan) rows += static_cast<size_t>(row.GetInt(0) > 0);
  EXPECT_EQ(rows, 10u);
  EXPECT_EQ(scan->end_reason(), EndReason::kBytes);
  CancelToken cancel;
  cancel.Cancel(CancelToken::Reason::kUser);
  EXPECT_EQ(table->Scan({.call = {.cancel = &cancel}}).status().sqlstate(), "57014");
  // A scan in a transaction ends with it.
  auto transaction = *store_->Begin();
  auto open = std::move(*table->Scan({.call = {transaction.get()}}));
  ASSERT_NE(open->NextBatch(), nullptr);
  transaction.reset();
  EXPECT_EQ(open->NextBatch(), nullptr);
  EXPECT_EQ(open->status().sqlstate(), "24000");
  EXPECT_EQ(table->Lookup("t_pkey", {1})->size(), 1u);
}

}  // namespace
}  // namespace cellar::session
