// What programs do wrong: each answers a Status or a defined value.
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <stdexcept>
#include <thread>

#include "cellar/base/sqlstate.h"
#include "cellar/db.h"
#include "cellar/table.h"

namespace cellar {
namespace {

constexpr std::string_view kClosed = "08003";

class MisuseTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/cellar_misuse_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory_ = name;
    OpenOptions options;
    options.durable = false;
    options.cache_bytes = 32 << 20;
    auto opened = Database::Open(directory_ + "/store", options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    database_ = std::move(*opened);
    connection_ = Connect();
  }
  void TearDown() override {
    connection_.reset();
    database_.reset();
    std::filesystem::remove_all(directory_);
  }
  std::unique_ptr<Connection> Connect(std::function<void(std::string_view)> on_notice = {}) {
    ConnectOptions options;
    options.on_notice = std::move(on_notice);
    auto connection = database_->Connect(options);
    EXPECT_TRUE(connection.ok()) << connection.status().ToString();
    return std::move(*connection);
  }
  void Execute(std::string_view sql) {
    const Status status = connection_->ExecuteScript(sql);
    EXPECT_TRUE(status.ok()) << sql << ": " << status.ToString();
  }
  Rows Query(std::string_view sql) {
    Result<Rows> rows = connection_->Query(sql);
    EXPECT_TRUE(rows.ok()) << sql << ": " << rows.status().ToString();
    return std::move(*rows);
  }
  std::string One(std::string_view sql) {
    Rows rows = Query(sql);
    if (!rows.Next()) return rows.status().ToString();
    return rows.ToString(0);
  }
  // Every getter, where there is nothing.
  static void ExpectNothing(const Rows& rows, size_t column) {
    EXPECT_TRUE(rows.IsNull(column));
    EXPECT_EQ(rows.GetInt(column), 0);
    EXPECT_EQ(rows.GetDouble(column), 0);
    EXPECT_FALSE(rows.GetBool(column));
    EXPECT_EQ(rows.GetText(column), "");
    EXPECT_EQ(rows.GetBytes(column), "");
    EXPECT_EQ(rows.ToString(column), "");
    EXPECT_EQ(rows.Get<std::optional<int>>(column), std::nullopt);
  }

  std::string directory_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(MisuseTest, AValueThatIsNotThereIsNullAndTheStatusTells) {
  Rows rows = Query("SELECT 1, 'x', 2.5 FROM generate_series(1, 2)");
  ExpectNothing(rows, 0);
  EXPECT_EQ(rows.status().sqlstate(), sqlstate::kInvalidCursorState);
  int seen = 0;
  while (rows.Next()) {
    ExpectNothing(rows, 3);
    ExpectNothing(rows, SIZE_MAX);
    ++seen;
  }
  EXPECT_EQ(seen, 2);  // misuse does not end the rows
  ExpectNothing(rows, 0);
  EXPECT_FALSE(rows.Next());
  rows = Query("SELECT 1");
  ASSERT_TRUE(rows.Next());
  EXPECT_TRUE(rows.status().ok());
  ExpectNothing(rows, 1);
  EXPECT_EQ(rows.status().sqlstate(), sqlstate::kUndefinedColumn);
  rows = Query("SELECT 1");
  ASSERT_NE(rows.NextBatch(), nullptr);
  ExpectNothing(rows, 0);
}

TEST_F(MisuseTest, NumbersThatDoNotFitAreTheNearest) {
  Rows rows = Query("SELECT 3000000000, -1, 1e30::numeric, -1e30::numeric, 1e300::float8, 200");
  ASSERT_TRUE(rows.Next());
  EXPECT_EQ(rows.Get<int64_t>(0), 3000000000);
  EXPECT_EQ(rows.Get<int>(5), 200);
  EXPECT_EQ(rows.GetInt(2), INT64_MAX);
  EXPECT_EQ(rows.GetInt(3), INT64_MIN);
  EXPECT_EQ(rows.GetInt(4), INT64_MAX);
  EXPECT_TRUE(rows.status().ok());
  EXPECT_EQ(rows.Get<int>(0), std::numeric_limits<int>::max());
  EXPECT_EQ(rows.status().sqlstate(), sqlstate::kNumericValueOutOfRange);
  EXPECT_EQ(rows.Get<uint32_t>(1), 0u);
  EXPECT_EQ(rows.Get<int8_t>(5), 127);
  EXPECT_EQ(rows.Get<std::optional<int16_t>>(0), 32767);
}

// As psql shows it, whatever the type.
TEST_F(MisuseTest, TextOfEveryType) {
  Execute("CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE TABLE r (a int, b text)");
  const std::pair<const char*, const char*> cases[] = {
      {"true", "t"},
      {"7::smallint", "7"},
      {"1.50::numeric", "1.50"},
      {"1.5::float8", "1.5"},
      {"'a'::text", "a"},
      {"'a'::varchar(3)", "a"},
      {"'a'::char(3)", "a  "},
      {"'\\x00ff'::bytea", "\\x00ff"},
      {"'2024-02-29'::date", "2024-02-29"},
      {"'12:30'::time", "12:30:00"},
      {"'12:30+02'::timetz", "12:30:00+02"},
      {"'2024-02-29 12:30'::timestamp", "2024-02-29 12:30:00"},
      {"'2024-02-29 12:30+00'::timestamptz", "2024-02-29 12:30:00+00"},
      {"'1 mon 2 days 03:00'::interval", "1 mon 2 days 03:00:00"},
      {"'00000000-0000-0000-0000-000000000001'::uuid", "00000000-0000-0000-0000-000000000001"},
      {"'[1]'::json", "[1]"},
      {"'{\"a\":1}'::jsonb", "{\"a\": 1}"},
      {"'glad'::mood", "glad"},
      {"ARRAY[1,NULL,3]", "{1,NULL,3}"},
      {"ARRAY['a b','c']", "{\"a b\",c}"},
      {"ARRAY['sad','glad']::mood[]", "{sad,glad}"},
      {"ROW(1,'x')", "(1,x)"},
      {"'r'::regclass", "r"},
      {"'integer'::regtype", "integer"},
      {"'1 2 3'::int2vector", "1 2 3"},
      {"NULL::int", ""},
  };
  for (const auto& [value, text] : cases) {
    Rows rows = Query(fmt::format("SELECT {0}, {0} FROM generate_series(1, 2)", value));
    while (rows.Next()) {
      const std::string_view first = rows.GetText(0);
      EXPECT_EQ(rows.GetText(1), text) << value;
      EXPECT_EQ(first, text) << value;  // still valid
      EXPECT_EQ(rows.ToString(0), text) << value;
      EXPECT_EQ(rows.Get<std::string_view>(0).data(), first.data()) << value;
    }
    EXPECT_TRUE(rows.status().ok()) << value << rows.status().ToString();
  }
  // Bytes are given away for types whose bytes mean something.
  Rows rows = Query(
      "SELECT 1.5::numeric, ARRAY[1], '{\"a\":1}'::jsonb, interval '1 day', ROW(1), "
      "'\\x0001'::bytea, 'x'::text");
  ASSERT_TRUE(rows.Next());
  for (size_t column = 0; column < 5; ++column) EXPECT_EQ(rows.GetBytes(column), "") << column;
  EXPECT_EQ(rows.GetBytes(5), std::string_view("\0\1", 2));
  EXPECT_EQ(rows.GetBytes(6), "x");
}

TEST_F(MisuseTest, NumbersOfTimesHaveTheirUnits) {
  Rows rows = Query(
      "SELECT '2000-01-03'::date, '1999-12-31'::date, '2000-01-01 00:00:01'::timestamp, "
      "'2000-01-01 02:00:01+02'::timestamptz, '00:00:01'::time, '00:00:01+05'::timetz, "
      "'1 mon 1 day 00:00:01'::interval, true");
  ASSERT_TRUE(rows.Next());
  constexpr int64_t kDay = int64_t{86400} * 1000000;
  const int64_t expected[] = {2, -1, 1000000, 1000000, 1000000, 1000000, 31 * kDay + 1000000, 1};
  for (size_t column = 0; column < std::size(expected); ++column) {
    EXPECT_EQ(rows.GetInt(column), expected[column]) << column;
    EXPECT_EQ(rows.GetDouble(column), static_cast<double>(expected[column])) << column;
  }
}

// A NULL that an expression made may have anything behind it.
TEST_F(MisuseTest, ComputedNullsReadAsNothing) {
  Rows rows = Query(
      "SELECT g + NULL::int, nullif(g, g), (g::text || NULL), nullif(g::float8, g) "
      "FROM generate_series(1, 100) g");
  while (rows.Next()) {
    for (size_t column = 0; column < 4; ++column) {
      EXPECT_TRUE(rows.IsNull(column));
      EXPECT_EQ(rows.GetInt(column), 0);
      EXPECT_EQ(rows.GetDouble(column), 0);
      EXPECT_EQ(rows.GetText(column), "");
    }
  }
}

TEST_F(MisuseTest, NullPointersAreNullOrRefused) {
  const char* null = nullptr;
  Result<Rows> rows = connection_->Query("SELECT $1::text IS NULL, $2::int IS NULL", null,
                                         std::optional<const char*>(null));
  ASSERT_TRUE(rows.ok() && rows->Next());
  EXPECT_TRUE(rows->GetBool(0));
  EXPECT_TRUE(rows->GetBool(1));
  EXPECT_EQ(connection_->Query(null).status().sqlstate(), sqlstate::kNullValueNotAllowed);
  EXPECT_EQ(connection_->Execute(nullptr).status().sqlstate(), sqlstate::kNullValueNotAllowed);
  EXPECT_EQ(connection_->Prepare(null).status().sqlstate(), sqlstate::kNullValueNotAllowed);
  EXPECT_EQ(connection_->ExecuteScript(null).sqlstate(), sqlstate::kNullValueNotAllowed);
  EXPECT_EQ(connection_->Load(null, {}, [](Loader&) { return false; }).status().sqlstate(),
            sqlstate::kNullValueNotAllowed);
  EXPECT_EQ(connection_->Load("t", {}, nullptr).status().sqlstate(),
            sqlstate::kNullValueNotAllowed);
  EXPECT_EQ(connection_->Run(nullptr).sqlstate(), sqlstate::kNullValueNotAllowed);
  EXPECT_TRUE(Cell(null).is_null());
  EXPECT_EQ(*connection_->Execute(""), 0u);
}

TEST_F(MisuseTest, TheDatabaseGoesBeforeItsConnections) {
  Execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2)");
  auto store = database_->Tables();
  ASSERT_TRUE(store.ok());
  auto table = (*store)->OpenTable("/cellar/t");
  ASSERT_TRUE(table.ok());
  database_.reset();
  EXPECT_EQ(One("SELECT count(*) FROM t"), "2");
  EXPECT_EQ((*table)->Get({1})->size(), 1u);
  auto transaction = (*store)->Begin();
  ASSERT_TRUE(transaction.ok());
  auto scan = (*table)->Scan({});
  ASSERT_TRUE(scan.ok());
  store->reset();  // the store goes before its tables, transactions and scans
  connection_.reset();
  int rows = 0;
  for (Row row : **scan) rows += row.IsNull(0) ? 0 : 1;
  EXPECT_EQ(rows, 2);
  scan->reset();
  RowSet found;
  EXPECT_TRUE((*table)->Get({2}, {.call = {.transaction = transaction->get()}}, &found).ok());
  EXPECT_TRUE((*transaction)->Commit().ok());
  transaction->reset();
  EXPECT_FALSE(Database::Open(directory_ + "/store").ok());
  table->reset();
  EXPECT_TRUE(Database::Open(directory_ + "/store").ok());  // the last one closes it
}

TEST_F(MisuseTest, TheConnectionGoesBeforeWhatCameFromIt) {
  Execute("CREATE TABLE t (id int PRIMARY KEY)");
  Execute("INSERT INTO t SELECT generate_series(1, 5000)");
  Result<Statement> statement = connection_->Prepare("SELECT id FROM t WHERE id > $1");
  ASSERT_TRUE(statement.ok());
  Rows rows = *statement->Query(0);
  ASSERT_TRUE(rows.Next());
  Result<Transaction> transaction = connection_->Begin();
  ASSERT_TRUE(transaction.ok());
  Rows inside = Query("SELECT id FROM t");
  ASSERT_TRUE(inside.Next());
  ASSERT_TRUE(connection_->Execute("INSERT INTO t VALUES (0)").ok());
  connection_.reset();
  for (Rows* left : {&rows, &inside}) {
    ExpectNothing(*left, 0);
    EXPECT_FALSE(left->Next());
    EXPECT_EQ(left->status().sqlstate(), kClosed);
    EXPECT_EQ(left->columns().size(), 1u);
    EXPECT_EQ(left->affected(), 0u);
    EXPECT_EQ(left->NextBatch(), nullptr);
  }
  EXPECT_EQ(statement->Query(1).status().sqlstate(), kClosed);
  EXPECT_EQ(statement->Execute(1).status().sqlstate(), kClosed);
  EXPECT_EQ(statement->Bind(1, 1).sqlstate(), kClosed);
  EXPECT_EQ(statement->QueryBound().status().sqlstate(), kClosed);
  EXPECT_TRUE(statement->parameter_types().empty());
  EXPECT_EQ(transaction->Commit().sqlstate(), kClosed);
  connection_ = Connect();
  EXPECT_EQ(One("SELECT count(*) FROM t"), "5000");  // rolled back
}

TEST_F(MisuseTest, WhatWasMovedFromIsEmpty) {
  Rows rows = Query("SELECT 1 FROM generate_series(1, 3)");
  ASSERT_TRUE(rows.Next());
  Rows moved = std::move(rows);
  EXPECT_EQ(moved.GetInt(0), 1);
  ExpectNothing(rows, 0);  // NOLINT: on purpose, as below
  EXPECT_FALSE(rows.Next());
  EXPECT_EQ(rows.status().sqlstate(), kClosed);
  EXPECT_TRUE(rows.columns().empty());
  EXPECT_EQ(rows.affected(), 0u);
  Statement statement = *connection_->Prepare("SELECT 1");
  Statement other = std::move(statement);
  EXPECT_EQ(statement.Query().status().sqlstate(), kClosed);
  EXPECT_EQ(statement.Execute().status().sqlstate(), kClosed);
  EXPECT_EQ(statement.Bind(1, 1).sqlstate(), kClosed);
  EXPECT_EQ(statement.ExecuteBound().status().sqlstate(), kClosed);
  EXPECT_TRUE(statement.columns().empty());
  EXPECT_TRUE(statement.parameter_types().empty());
  statement.ClearBindings();
  EXPECT_EQ(*other.Execute(), 1u);
  Transaction transaction = *connection_->Begin();
  Transaction taken = std::move(transaction);
  EXPECT_FALSE(transaction.Commit().ok());
  EXPECT_TRUE(transaction.Rollback().ok());
  EXPECT_TRUE(connection_->in_transaction());
  EXPECT_TRUE(taken.Commit().ok());
}

TEST_F(MisuseTest, RowsOfARunThatAnotherRefusedStartEnded) {
  Statement statement = *connection_->Prepare("SELECT repeat('x', $1::int) || $2::text");
  Rows rows = *statement.Query(3, "end");
  ASSERT_TRUE(rows.Next());
  EXPECT_EQ(rows.GetText(0), "xxxend");
  EXPECT_EQ(statement.Query("no number", "").status().sqlstate(), "22P02");
  ExpectNothing(rows, 0);
  EXPECT_FALSE(rows.Next());
  EXPECT_EQ(rows.status().sqlstate(), sqlstate::kInvalidCursorState);
}

TEST_F(MisuseTest, AnEndedTransactionLeavesLaterOnesAlone) {
  Execute("CREATE TABLE t (id int PRIMARY KEY)");
  auto first = std::make_unique<Transaction>(*connection_->Begin());
  Execute("COMMIT");
  Transaction second = *connection_->Begin();
  Execute("INSERT INTO t VALUES (1)");
  EXPECT_EQ(first->Commit().sqlstate(), sqlstate::kNoActiveSqlTransaction);
  first.reset();
  EXPECT_TRUE(connection_->in_transaction());
  EXPECT_TRUE(second.Commit().ok());
  EXPECT_EQ(One("SELECT count(*) FROM t"), "1");
}

// ---- The program's own code within calls ----

TEST_F(MisuseTest, WhatLoadsFunctionThrowsRollsBackAndGoesOn) {
  Execute("CREATE TABLE t (id int PRIMARY KEY)");
  const auto throws = [](Loader& loader) -> Result<bool> {
    for (int i = 0; i < 10; ++i) CELLAR_TRY(loader.Add(i));
    std::vector<int>().at(3) = 0;  // std::out_of_range
    return true;
  };
  EXPECT_THROW((void)connection_->Load("t", {}, throws), std::out_of_range);
  EXPECT_FALSE(connection_->in_transaction());
  for (int i = 100; i < 105; ++i)
    EXPECT_TRUE(connection_->Execute("INSERT INTO t VALUES ($1)", i).ok());
  connection_ = Connect();
  EXPECT_EQ(One("SELECT count(*) FROM t"), "5");
  // Within a transaction that one is spoiled, as by any error.
  Transaction transaction = *connection_->Begin();
  EXPECT_THROW((void)connection_->Load("t", {}, throws), std::out_of_range);
  EXPECT_TRUE(connection_->in_transaction());
  EXPECT_EQ(connection_->Execute("SELECT 1").status().sqlstate(),
            sqlstate::kInFailedSqlTransaction);
  EXPECT_TRUE(transaction.Rollback().ok());
  EXPECT_EQ(One("SELECT count(*) FROM t"), "5");
  EXPECT_THROW((void)connection_->Run([](Connection& c) -> Status {
    EXPECT_TRUE(c.Execute("INSERT INTO t VALUES (1)").ok());
    std::vector<int>().at(3) = 0;
    return Status();
  }),
               std::out_of_range);
  EXPECT_FALSE(connection_->in_transaction());
  EXPECT_EQ(One("SELECT count(*) FROM t"), "5");
}

TEST_F(MisuseTest, WhatNoticesThrowRollsBackAndGoesOn) {
  bool throws = false;
  connection_ = Connect([&](std::string_view) {
    if (throws) std::vector<int>().at(3) = 0;
  });
  Execute("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE IF NOT EXISTS t (id int)");
  throws = true;
  EXPECT_THROW((void)connection_->ExecuteScript(
                   "INSERT INTO t VALUES (1); CREATE TABLE IF NOT EXISTS t (id int)"),
               std::out_of_range);
  EXPECT_THROW((void)connection_->Execute("CREATE TABLE IF NOT EXISTS t (id int)"),
               std::out_of_range);
  EXPECT_FALSE(connection_->in_transaction());
  EXPECT_EQ(One("SELECT count(*) FROM t"), "0");
}

TEST_F(MisuseTest, CallsFromWithinACallAreRefused) {
  Execute("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int)");
  Execute("INSERT INTO u SELECT generate_series(1, 5000)");
  Statement prepared = *connection_->Prepare("SELECT 1");
  Result<uint64_t> loaded = connection_->Load("t", {}, [&](Loader& loader) -> Result<bool> {
    Connection& c = *connection_;
    const auto refused = [](const Status& status) {
      EXPECT_EQ(status.sqlstate(), sqlstate::kObjectNotInPrerequisiteState) << status.ToString();
    };
    refused(c.Load("t", {}, [](Loader&) { return false; }).status());
    refused(c.Query("SELECT 1").status());
    refused(c.Execute("DROP TABLE t").status());
    refused(c.ExecuteScript("COMMIT"));
    refused(c.Begin().status());
    refused(c.Run([](Connection&) { return Status(); }));
    refused(c.Prepare("SELECT 1").status());
    refused(prepared.Query().status());
    refused(prepared.Execute().status());
    refused(prepared.QueryBound().status());
    EXPECT_FALSE(c.in_transaction());
    CELLAR_TRY(loader.Add(1));
    return false;
  });
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(*loaded, 1u);
  // Rows that are open may be stepped through, in a transaction or out of one.
  for (const bool within : {false, true}) {
    std::optional<Transaction> transaction;
    if (within) transaction.emplace(*connection_->Begin());
    Execute("DELETE FROM t");
    Rows rows = Query("SELECT id FROM u");
    ASSERT_TRUE(rows.Next());
    loaded = connection_->Load("t", {}, [&](Loader& loader) -> Result<bool> {
      CELLAR_TRY(loader.Add(rows.GetInt(0)));
      return rows.Next();
    });
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    EXPECT_EQ(*loaded, 5000u);
    if (within) {
      EXPECT_TRUE(transaction->Commit().ok());
    }
    EXPECT_EQ(One("SELECT sum(id) FROM t"), One("SELECT sum(id) FROM u"));
  }
}

// What is let go of within a call goes when that is over.
TEST_F(MisuseTest, ObjectsEndWithinACall) {
  Execute("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int)");
  Execute("INSERT INTO u SELECT generate_series(1, 5000)");
  std::optional<Transaction> transaction(*connection_->Begin());
  std::optional<Rows> rows(Query("SELECT id FROM u"));
  ASSERT_TRUE(rows->Next());
  std::optional<Statement> statement(*connection_->Prepare("SELECT 1"));
  Result<uint64_t> loaded = connection_->Load("t", {}, [&](Loader& loader) -> Result<bool> {
    CELLAR_TRY(loader.Add(1));
    rows.reset();
    statement.reset();
    transaction.reset();
    EXPECT_TRUE(connection_->in_transaction());
    return false;
  });
  EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_FALSE(connection_->in_transaction());
  EXPECT_EQ(One("SELECT count(*) FROM t"), "0");
  loaded = connection_->Load("t", {}, [&](Loader& loader) -> Result<bool> {
    CELLAR_TRY(loader.Add(1));
    connection_.reset();
    return false;
  });
  EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
  connection_ = Connect();
  EXPECT_EQ(One("SELECT count(*) FROM t"), "1");
}

TEST_F(MisuseTest, LoadTakesWhatIsNotGenerated) {
  Execute("CREATE TABLE t (a int PRIMARY KEY, b int GENERATED ALWAYS AS (a * 2) STORED, c text)");
  Result<uint64_t> loaded = connection_->Load("t", {}, [](Loader& loader) -> Result<bool> {
    EXPECT_EQ(loader.Add(1, 2, "x").sqlstate(), sqlstate::kProtocolViolation);
    CELLAR_TRY(loader.Add(1, "x"));
    return false;
  });
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(One("SELECT t FROM t"), "(1,2,x)");
}

// ---- Cancel ----

TEST_F(MisuseTest, CancelStopsRowsBeingRead) {
  constexpr int kRows = 200000;
  Execute("CREATE TABLE t (id int)");
  Execute(fmt::format("INSERT INTO t SELECT generate_series(1, {})", kRows));
  for (const bool within : {false, true}) {
    for (const bool kept : {false, true}) {
      std::optional<Transaction> transaction;
      if (within) transaction.emplace(*connection_->Begin());
      Rows rows = Query("SELECT id FROM t");
      ASSERT_TRUE(rows.Next());
      if (kept) {
        EXPECT_EQ(One("SELECT 1"), "1");  // out of transactions the rest is in memory now
      }
      std::thread([&] { connection_->Cancel(); }).join();
      int seen = 1;
      while (rows.Next()) ++seen;
      EXPECT_LT(seen, 10000);
      EXPECT_EQ(rows.status().sqlstate(), sqlstate::kQueryCanceled) << rows.status().ToString();
      if (within) {
        EXPECT_EQ(connection_->Execute("SELECT 1").status().sqlstate(),
                  sqlstate::kInFailedSqlTransaction);
      }
      transaction.reset();
      EXPECT_EQ(One("SELECT 2"), "2");  // and nothing later
    }
  }
  connection_->Cancel();  // of nothing
  EXPECT_EQ(One("SELECT 3"), "3");
}

TEST_F(MisuseTest, WhatIsCommittedIsNotCancelled) {
  Execute("CREATE TABLE t (id int)");
  Rows rows = Query("INSERT INTO t SELECT generate_series(1, 5000) RETURNING id");
  ASSERT_TRUE(rows.Next());
  connection_->Cancel();
  int seen = 1;
  while (rows.Next()) ++seen;
  EXPECT_TRUE(rows.status().ok()) << rows.status().ToString();
  EXPECT_EQ(seen, 5000);
}

// ---- The table API ----

TEST_F(MisuseTest, RecordsAndRowsOfTheTableApi) {
  Execute("CREATE TABLE t (id int PRIMARY KEY, n numeric, a int[], x text)");
  auto store = *database_->Tables();
  auto other = *database_->Tables();
  auto table = *store->OpenTable("/cellar/t");
  Record record = table->NewRecord();
  record.Set("id", 1)
      .Set("n", "1.50")
      .Set("a", "{1,2}")
      .Set("x", static_cast<const char*>(nullptr));
  Record moved = std::move(record);
  EXPECT_EQ(table->Put(record).status().sqlstate(), sqlstate::kInvalidParameterValue);
  record.Set("id", 2);
  EXPECT_FALSE(record.Has(0));
  EXPECT_FALSE(record.PrimaryKey().ok());
  EXPECT_FALSE(moved.Has(99));
  EXPECT_TRUE(moved.at(99).is_null());
  ASSERT_TRUE(table->Put(moved).ok());
  EXPECT_EQ(table->Put(Record(nullptr)).status().sqlstate(), sqlstate::kInvalidParameterValue);
  RowSet rows = *table->Get({1});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].GetText(1), "1.50");
  EXPECT_EQ(rows[0].GetText(2), "{1,2}");
  EXPECT_EQ(rows[0].GetBytes(1), "");
  EXPECT_TRUE(rows[0].IsNull(3));
  EXPECT_TRUE(rows[0].IsNull(4));
  EXPECT_EQ(rows[0].GetInt(4), 0);
  EXPECT_EQ(rows[0].GetText(SIZE_MAX), "");
  EXPECT_EQ(rows[7].GetDouble(0), 0);
  EXPECT_EQ(rows[7].ToString(0), "");
  EXPECT_TRUE(rows[7].GetCell(0).is_null());
  EXPECT_EQ(rows[0].Get<int8_t>(0), 1);
  EXPECT_EQ(Row(nullptr, 0).Get<std::string>("x"), "");
  // Cells that are no rows of the schema.
  CellBatch cells;
  ASSERT_TRUE(ToCells(std::span(&moved, 1), &cells).ok());
  EXPECT_EQ(table->PutCells(nullptr, cells, {}).status().sqlstate(),
            sqlstate::kInvalidParameterValue);
  cells.positions[1] = 77;
  EXPECT_EQ(table->PutCells(table->schema(), cells, {}).status().sqlstate(),
            sqlstate::kInvalidParameterValue);
  cells.positions[1] = 3;  // of another type
  EXPECT_EQ(table->PutCells(table->schema(), cells, {}).status().sqlstate(),
            sqlstate::kInvalidParameterValue);
  cells.positions.pop_back();
  EXPECT_EQ(table->PutCells(table->schema(), cells, {}).status().sqlstate(),
            sqlstate::kInvalidParameterValue);
  // A transaction of another store.
  auto transaction = *other->Begin();
  EXPECT_EQ(table->Put(moved, {.call = {.transaction = transaction.get()}}).status().sqlstate(),
            sqlstate::kInvalidParameterValue);
  // A scan behind its end.
  auto scan = *table->Scan({});
  auto at = scan->begin();
  ++at;
  EXPECT_TRUE(at == scan->end());
  ++at;
  EXPECT_TRUE((*at).IsNull(0));
}

TEST_F(MisuseTest, RecordsMadeBesideChangesOfTheTable) {
  Execute("CREATE TABLE t (id int PRIMARY KEY, v int, w int)");
  auto store = *database_->Tables();
  auto table = *store->OpenTable("/cellar/t");
  std::vector<Record> records;
  records.push_back(table->NewRecord().Set("id", 1).Set("v", 10));
  Execute("ALTER TABLE t ADD COLUMN more int DEFAULT 5; ALTER TABLE t RENAME v TO renamed");
  ASSERT_TRUE(table->Refresh().ok());
  records.push_back(table->NewRecord().Set("id", 2).Set("renamed", 20).Set("more", 6));
  Execute("ALTER TABLE t DROP COLUMN w");
  ASSERT_TRUE(table->Refresh().ok());
  records.push_back(table->NewRecord().Set("id", 3).Set("renamed", 30));
  auto put = table->Put(records);
  ASSERT_TRUE(put.ok()) << put.status().ToString();
  EXPECT_EQ(One("SELECT string_agg(t::text, ' ' ORDER BY id) FROM t"),
            "(1,10,5) (2,20,6) (3,30,5)");
  records[0].Set("w", 1);
  EXPECT_EQ(table->Put(records).status().sqlstate(), sqlstate::kUndefinedColumn);
  Execute("CREATE TABLE other (id int PRIMARY KEY)");
  records.push_back((*store->OpenTable("/cellar/other"))->NewRecord().Set("id", 1));
  EXPECT_EQ(table->Put(records).status().sqlstate(), sqlstate::kInvalidParameterValue);
}

}  // namespace
}  // namespace cellar
