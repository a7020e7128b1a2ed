#include "cellar/db.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "cellar/base/sqlstate.h"

namespace cellar {
namespace {

class LibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/cellar_library_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory_ = name;
    Reopen();
  }
  void TearDown() override {
    connection_.reset();
    database_.reset();
    std::filesystem::remove_all(directory_);
  }
  void Reopen(OpenOptions options = {}) {
    connection_.reset();
    database_.reset();
    options.durable = false;
    options.cache_bytes = 32 << 20;
    auto opened = Database::Open(directory_ + "/store", options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    database_ = std::move(*opened);
    connection_ = Connect();
  }
  std::unique_ptr<Connection> Connect() {
    auto connection = database_->Connect();
    EXPECT_TRUE(connection.ok()) << connection.status().ToString();
    return std::move(*connection);
  }
  template <typename... Args>
  uint64_t Execute(std::string_view sql, const Args&... args) {
    Result<uint64_t> count = connection_->Execute(sql, args...);
    EXPECT_TRUE(count.ok()) << sql << ": " << count.status().ToString();
    return count.ok() ? *count : 0;
  }
  template <typename... Args>
  std::string One(std::string_view sql, const Args&... args) {
    Result<Rows> rows = connection_->Query(sql, args...);
    if (!rows.ok()) return rows.status().ToString();
    if (!rows->Next()) return rows->status().ok() ? "no row" : rows->status().ToString();
    return rows->IsNull(0) ? "NULL" : rows->ToString(0);
  }
  void MakeItems(int count) {
    Execute("CREATE TABLE item (id int PRIMARY KEY, name text, price double precision)");
    for (int i = 0; i < count; ++i)
      Execute("INSERT INTO item VALUES ($1, $2, $3)", i, "item " + std::to_string(i), i * 0.5);
  }

  std::string directory_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(LibraryTest, RowsComeBackTypedAfterReopening) {
  MakeItems(3);
  Reopen();
  Result<Rows> rows = connection_->Query("SELECT id, name, price FROM item ORDER BY id");
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->columns().size(), 3u);
  EXPECT_EQ(rows->columns()[1].name, "name");
  int64_t expected = 0;
  while (rows->Next()) {
    EXPECT_EQ(rows->GetInt(0), expected);
    EXPECT_EQ(rows->GetText(1), "item " + std::to_string(expected));
    EXPECT_EQ(rows->GetDouble(2), 0.5 * static_cast<double>(expected));
    EXPECT_EQ(rows->Get<std::string>(0), std::to_string(expected));
    ++expected;
  }
  EXPECT_TRUE(rows->status().ok());
  EXPECT_EQ(expected, 3);
}

TEST_F(LibraryTest, ParametersBecomeTheTypesOfTheStatement) {
  Execute(
      "CREATE TABLE t (a smallint, b bigint, c numeric(10,2), d timestamp, e bytea, f bool, g "
      "uuid, "
      "h real, i text)");
  const char raw[] = {0, 1, 2};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(raw));
  EXPECT_EQ(Execute("INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)", 7,
                    int64_t{1} << 40, "12.345", "2024-02-29 12:00", bytes, true,
                    "00000000-0000-0000-0000-000000000001", 0.25, std::optional<std::string>()),
            1u);
  EXPECT_EQ(One("SELECT t.*::text FROM t"),
            "(7,1099511627776,12.35,\"2024-02-29 12:00:00\",\"\\\\x000102\",t,"
            "00000000-0000-0000-0000-000000000001,0.25,)");
  EXPECT_EQ(One("SELECT a FROM t WHERE c = $1", 12.35), "7");
  EXPECT_EQ(One("SELECT a FROM t WHERE c > $1", 12), "7");
  EXPECT_EQ(One("SELECT a FROM t WHERE e = $1", bytes), "7");
  EXPECT_EQ(connection_->Execute("INSERT INTO t (a) VALUES ($1)", 40000).status().sqlstate(),
            sqlstate::kNumericValueOutOfRange);
  EXPECT_EQ(connection_->Execute("INSERT INTO t (d) VALUES ($1)", "soon").status().sqlstate(),
            "22007");
  EXPECT_EQ(connection_->Execute("INSERT INTO t (a) VALUES ($1)").status().sqlstate(),
            sqlstate::kProtocolViolation);
}

TEST_F(LibraryTest, PreparedStatementRunsManyTimes) {
  MakeItems(100);
  Result<Statement> select = connection_->Prepare("SELECT name FROM item WHERE id = $1");
  ASSERT_TRUE(select.ok());
  ASSERT_EQ(select->parameter_types().size(), 1u);
  EXPECT_EQ(select->parameter_types()[0].id, TypeId::kInt4);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) {
      Result<Rows> rows = select->Query(i);
      ASSERT_TRUE(rows.ok());
      ASSERT_TRUE(rows->Next());
      EXPECT_EQ(rows->GetText(0), "item " + std::to_string(i));
      EXPECT_FALSE(rows->Next());
    }
    // Left before the end, which the next run does not mind.
    ASSERT_TRUE(select->Query(5)->Next());
  }
  Result<Rows> none = select->Query(1000);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->Next());
  EXPECT_TRUE(none->status().ok());
}

TEST_F(LibraryTest, BoundValuesStay) {
  Result<Statement> sum = connection_->Prepare("SELECT $1::int + $2::int");
  ASSERT_TRUE(sum.ok());
  ASSERT_TRUE(sum->Bind(1, 40).ok());
  for (int i : {1, 2}) {
    ASSERT_TRUE(sum->Bind(2, i).ok());
    Result<Rows> rows = sum->QueryBound();
    ASSERT_TRUE(rows.ok() && rows->Next());
    EXPECT_EQ(rows->GetInt(0), 40 + i);
  }
  EXPECT_EQ(sum->Bind(3, 1).sqlstate(), sqlstate::kUndefinedParameter);
}

TEST_F(LibraryTest, BatchesHoldAllRows) {
  Execute("CREATE TABLE n (i int PRIMARY KEY)");
  EXPECT_EQ(Execute("INSERT INTO n SELECT generate_series(1, 5000)"), 5000u);
  Result<Rows> rows = connection_->Query("SELECT i FROM n ORDER BY i");
  ASSERT_TRUE(rows.ok());
  int64_t next = 1;
  while (const RowBatch* batch = rows->NextBatch()) {
    for (size_t row = 0; row < batch->size(); ++row, ++next)
      ASSERT_EQ(batch->column(0).ints()[row], next);
  }
  EXPECT_EQ(next, 5001);
  EXPECT_EQ(rows->affected(), 5000u);
}

TEST_F(LibraryTest, AQueryInProgressSurvivesOtherStatements) {
  Execute("CREATE TABLE n (i int PRIMARY KEY, j int)");
  Execute("INSERT INTO n SELECT g, 0 FROM generate_series(1, 3000) g");
  Result<Rows> rows = connection_->Query("SELECT i, 'row ' || i FROM n ORDER BY i");
  ASSERT_TRUE(rows.ok());
  int64_t seen = 0;
  while (rows->Next()) {
    ++seen;
    if (seen % 500 == 1) {
      EXPECT_EQ(Execute("UPDATE n SET j = j + 1 WHERE i = $1", rows->GetInt(0)), 1u);
    }
    ASSERT_EQ(rows->GetInt(0), seen);
    ASSERT_EQ(rows->GetText(1), "row " + std::to_string(seen));
  }
  EXPECT_TRUE(rows->status().ok()) << rows->status().ToString();
  EXPECT_EQ(seen, 3000);
  EXPECT_EQ(One("SELECT sum(j) FROM n"), "6");
}

TEST_F(LibraryTest, QueriesOfOneTransactionRunSideBySide) {
  MakeItems(3);
  Result<Transaction> transaction = connection_->Begin();
  ASSERT_TRUE(transaction.ok());
  Result<Rows> outer = connection_->Query("SELECT id FROM item ORDER BY id");
  ASSERT_TRUE(outer.ok());
  std::string pairs;
  while (outer->Next()) {
    Result<Rows> inner = connection_->Query("SELECT id FROM item WHERE id < $1", outer->GetInt(0));
    ASSERT_TRUE(inner.ok());
    while (inner->Next()) pairs += outer->ToString(0) + inner->ToString(0) + " ";
  }
  EXPECT_EQ(pairs, "10 20 21 ");
  Result<Rows> open = connection_->Query("SELECT id FROM item ORDER BY id");
  ASSERT_TRUE(open.ok() && open->Next());
  ASSERT_TRUE(transaction->Commit().ok());
  EXPECT_EQ(open->GetInt(0), 0);  // what was read stays
  while (open->Next()) {
  }
  EXPECT_EQ(open->status().sqlstate(), sqlstate::kInvalidCursorState);
}

TEST_F(LibraryTest, RowsOfAnEarlierRunNotice) {
  MakeItems(10);
  Result<Statement> all = connection_->Prepare("SELECT id FROM item");
  ASSERT_TRUE(all.ok());
  Result<Rows> first = all->Query();
  ASSERT_TRUE(first.ok() && first->Next());
  Result<Rows> second = all->Query();
  ASSERT_TRUE(second.ok() && second->Next());
  EXPECT_FALSE(first->Next());
  EXPECT_EQ(first->status().sqlstate(), sqlstate::kInvalidCursorState);
  first = Result<Rows>(Status(Code::kInvalid, "gone"));  // does not end the second run
  int left = 0;
  while (second->Next()) ++left;
  EXPECT_EQ(left, 9);
}

TEST_F(LibraryTest, TransactionsCommitOrLeaveNothing) {
  MakeItems(0);
  {
    Result<Transaction> transaction = connection_->Begin();
    ASSERT_TRUE(transaction.ok());
    Execute("INSERT INTO item VALUES (1, 'a', 1)");
    EXPECT_TRUE(connection_->in_transaction());
    EXPECT_EQ(connection_->Begin().status().sqlstate(), sqlstate::kActiveSqlTransaction);
  }
  EXPECT_FALSE(connection_->in_transaction());
  EXPECT_EQ(One("SELECT count(*) FROM item"), "0");
  {
    Result<Transaction> transaction = connection_->Begin();
    ASSERT_TRUE(transaction.ok());
    Execute("INSERT INTO item VALUES (1, 'a', 1)");
    ASSERT_TRUE(transaction->Commit().ok());
  }
  EXPECT_EQ(One("SELECT count(*) FROM item"), "1");
  Result<Transaction> transaction = connection_->Begin();
  ASSERT_TRUE(transaction.ok());
  EXPECT_EQ(connection_->Execute("INSERT INTO item VALUES (1, 'b', 2)").status().sqlstate(),
            sqlstate::kUniqueViolation);
  EXPECT_EQ(connection_->Execute("SELECT 1").status().sqlstate(),
            sqlstate::kInFailedSqlTransaction);
  EXPECT_EQ(transaction->Commit().sqlstate(), sqlstate::kInFailedSqlTransaction);
  EXPECT_FALSE(connection_->in_transaction());
}

TEST_F(LibraryTest, RunRetriesUntilNoIncrementIsLost) {
  Execute("CREATE TABLE counter (id int PRIMARY KEY, n int)");
  Execute("INSERT INTO counter VALUES (1, 0)");
  constexpr int kThreads = 4, kRounds = 25;
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      std::unique_ptr<Connection> connection = Connect();
      for (int i = 0; i < kRounds; ++i) {
        Status status = connection->Run([](Connection& c) -> Status {
          CELLAR_TRY_ASSIGN(Rows rows, c.Query("SELECT n FROM counter WHERE id = 1"));
          if (!rows.Next()) return rows.status();
          return c.Execute("UPDATE counter SET n = $1 WHERE id = 1", rows.GetInt(0) + 1).status();
        });
        if (!status.ok()) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(One("SELECT n FROM counter"), std::to_string(kThreads * kRounds - failures.load()));
  EXPECT_EQ(failures.load(), 0);
}

TEST_F(LibraryTest, AutocommitUpdatesRetryByThemselves) {
  Execute("CREATE TABLE counter (id int PRIMARY KEY, n int)");
  Execute("INSERT INTO counter VALUES (1, 0)");
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      std::unique_ptr<Connection> connection = Connect();
      for (int i = 0; i < 50; ++i) {
        if (!connection->Execute("UPDATE counter SET n = n + 1 WHERE id = $1", 1).ok()) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(One("SELECT n FROM counter"), "150");
}

TEST_F(LibraryTest, LoadIsAtomicAndFillsDefaults) {
  Execute("CREATE TABLE l (id int PRIMARY KEY, name text, at date, extra int DEFAULT 9)");
  const std::string columns[] = {"id", "name", "at"};
  int next = 0;
  auto fill = [&](Loader& loader) -> Result<bool> {
    for (int i = 0; i < 300 && next < 2000; ++i, ++next) {
      CELLAR_TRY(loader.Add(
          next,
          next % 7 == 0 ? std::optional<std::string>() : std::optional("n" + std::to_string(next)),
          "2024-01-01"));
    }
    return next < 2000;
  };
  Result<uint64_t> loaded = connection_->Load("l", columns, fill);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(*loaded, 2000u);
  EXPECT_EQ(One("SELECT count(*) || ' ' || count(name) || ' ' || sum(extra) FROM l"),
            "2000 1714 18000");
  next = 1999;
  EXPECT_EQ(connection_->Load("l", columns, fill).status().sqlstate(), sqlstate::kUniqueViolation);
  next = 1990;
  auto fails = [&](Loader& loader) -> Result<bool> {
    CELLAR_TRY(loader.Add(5000, "x", "2024-01-01"));
    return loader.Add("five", "x", "2024-01-01").ok();
  };
  ASSERT_TRUE(connection_->Load("l", columns, fails).ok());  // it chose to stop there
  auto refuses = [&](Loader& loader) -> Result<bool> {
    CELLAR_TRY(loader.Add(5001, "x", "2024-01-01"));
    CELLAR_TRY(loader.Add("five", "x", "2024-01-01"));
    return false;
  };
  EXPECT_EQ(connection_->Load("l", columns, refuses).status().sqlstate(), "22P02");
  EXPECT_EQ(One("SELECT count(*) FROM l"), "2001");
}

TEST_F(LibraryTest, UtilityStatementsReturnTheirRows) {
  EXPECT_EQ(One("SHOW server_encoding"), "UTF8");
  MakeItems(1);
  EXPECT_NE(One("EXPLAIN SELECT * FROM item WHERE id = 1").find("item"), std::string::npos);
  EXPECT_TRUE(
      connection_->ExecuteScript("SET search_path = public; SELECT 1; DROP TABLE item").ok());
  EXPECT_EQ(connection_->Query("SELECT * FROM item").status().sqlstate(),
            sqlstate::kUndefinedTable);
}

TEST_F(LibraryTest, QueryByTextFollowsTheSchema) {
  MakeItems(1);
  EXPECT_EQ(connection_->Query("SELECT * FROM item")->columns().size(), 3u);
  Execute("ALTER TABLE item ADD COLUMN more int");
  EXPECT_EQ(connection_->Query("SELECT * FROM item")->columns().size(), 4u);
}

TEST_F(LibraryTest, ErrorsTellWhatAndWhere) {
  Status status = connection_->Execute("SELECT 1 +").status();
  EXPECT_EQ(status.sqlstate(), sqlstate::kSyntaxError);
  status = connection_->Execute("SELECT nothing").status();
  EXPECT_EQ(status.sqlstate(), sqlstate::kUndefinedColumn);
  EXPECT_EQ(status.position(), 8);
  status = connection_->Execute("SELECT 1 / $1::int", 0).status();
  EXPECT_EQ(status.sqlstate(), sqlstate::kDivisionByZero);
  EXPECT_EQ(One("SELECT 1"), "1");
}

TEST_F(LibraryTest, ReturningComesBackAfterTheCommit) {
  Execute("CREATE TABLE r (id int PRIMARY KEY)");
  Result<Rows> rows = connection_->Query("INSERT INTO r VALUES (1), (2) RETURNING id * 10");
  ASSERT_TRUE(rows.ok());
  std::unique_ptr<Connection> other = Connect();
  Result<Rows> count = other->Query("SELECT count(*) FROM r");
  ASSERT_TRUE(count.ok() && count->Next());
  EXPECT_EQ(count->GetInt(0), 2);
  ASSERT_TRUE(rows->Next());
  EXPECT_EQ(rows->GetInt(0), 10);
  ASSERT_TRUE(rows->Next());
  EXPECT_FALSE(rows->Next());
}

TEST_F(LibraryTest, ValuesConvertAsFarAsTheyGo) {
  Result<Rows> rows =
      connection_->Query("SELECT '12'::text, 3.75::numeric, 2.5::float8, NULL::int, 7");
  ASSERT_TRUE(rows.ok() && rows->Next());
  EXPECT_EQ(rows->GetInt(0), 12);
  EXPECT_EQ(rows->GetDouble(1), 3.75);
  EXPECT_EQ(rows->GetInt(2), 2);
  EXPECT_EQ(rows->GetInt(3), 0);
  EXPECT_EQ(rows->Get<std::optional<int>>(3), std::nullopt);
  EXPECT_EQ(rows->Get<std::optional<int>>(4), 7);
  EXPECT_EQ(rows->GetText(4), "7");
}

TEST_F(LibraryTest, TheStoreIsOpenOnce) {
  EXPECT_FALSE(Database::Open(directory_ + "/store").ok());
  OpenOptions absent;
  absent.create_if_missing = false;
  EXPECT_EQ(Database::Open(directory_ + "/none", absent).status().code(), Code::kNotFound);
}

// Unsealed rows of a table, as far as this process knows.
constexpr const char* kChanges =
    "SELECT changes FROM cellar_table_storage WHERE tablename = 'item'";

TEST_F(LibraryTest, TablesGetTheLayoutOfTheOptions) {
  EXPECT_EQ(One("SHOW default_table_layout"), "pages");
  OpenOptions options;
  options.table_layout = "row";
  options.seal = "off";
  Reopen(options);
  MakeItems(3);
  EXPECT_EQ(One("SELECT layout FROM cellar_table_storage WHERE tablename = 'item'"), "row");
  EXPECT_EQ(One("SELECT reloptions FROM pg_class WHERE relname = 'item'"), "{layout=row}");
  Execute("CREATE TABLE other (a int) WITH (layout = pages)");
  EXPECT_EQ(One("SELECT layout FROM cellar_table_storage WHERE tablename = 'other'"), "pages");
  EXPECT_EQ(One("SHOW cellar.seal"), "off");
  options.table_layout = "heap";
  EXPECT_EQ(Database::Open(directory_ + "/other", options).status().sqlstate(),
            sqlstate::kInvalidParameterValue);
  options.table_layout = "";
  options.seal = "soon";
  EXPECT_EQ(Database::Open(directory_ + "/other", options).status().sqlstate(),
            sqlstate::kInvalidParameterValue);
}

TEST_F(LibraryTest, SealsInTheBackground) {
  OpenOptions options;
  options.table_layout = "pages";
  options.seal = "auto";
  Reopen(options);
  MakeItems(0);
  constexpr int kRows = 20000;
  Execute("INSERT INTO item SELECT n, 'item ' || n, n / 2 FROM generate_series(1, $1::int) n",
          kRows);
  Execute("UPDATE item SET name = 'new' WHERE id % 10 = 0");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto changes = [this] { return std::stoi(One(kChanges)); };
  while (changes() >= 1000 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_LT(changes(), 1000);
  EXPECT_EQ(One("SELECT page_rows > 10000 FROM cellar_table_storage WHERE tablename = 'item'"),
            "t");
  EXPECT_EQ(One("SELECT count(*) FROM item"), std::to_string(kRows));
  EXPECT_EQ(One("SELECT count(*) FROM item WHERE name = 'new'"), std::to_string(kRows / 10));
  // Few rows are left alone.
  const int before = changes();
  Execute("DELETE FROM item WHERE id = 1");
  EXPECT_EQ(changes(), before + 1);
  Reopen(options);
  EXPECT_EQ(One("SELECT count(*) FROM item"), std::to_string(kRows - 1));
}

TEST_F(LibraryTest, SealingStopsForASessionThatWantsItOff) {
  OpenOptions options;
  options.table_layout = "pages";
  options.seal = "auto";
  Reopen(options);
  MakeItems(0);
  Execute("SET cellar.seal = off");
  Execute("INSERT INTO item SELECT n, 'x', 0 FROM generate_series(1, 5000) n");
  EXPECT_EQ(One(kChanges), "5000");
  ASSERT_TRUE(connection_->ExecuteScript("ALTER TABLE item SEAL").ok());
  EXPECT_EQ(One(kChanges), "0");
  Execute("SET cellar.seal = always");
  Execute("UPDATE item SET price = 1");
  EXPECT_EQ(One(kChanges), "0");
  EXPECT_EQ(One("SELECT sum(price) FROM item"), "5000");
  EXPECT_EQ(connection_->ExecuteScript("BEGIN; ALTER TABLE item SEAL").sqlstate(),
            sqlstate::kActiveSqlTransaction);
}

// Writers, the background thread and the end of the store, beside each other.
TEST_F(LibraryTest, TheStoreClosesWhileItIsBeingSealed) {
  OpenOptions options;
  options.table_layout = "pages";
  options.seal = "auto";
  Reopen(options);
  MakeItems(0);
  int64_t rows = 0;
  for (int round = 0; round < 4; ++round) {
    Reopen(options);
    std::vector<std::thread> writers;
    for (int w = 0; w < 2; ++w) {
      writers.emplace_back([this, round, w] {
        std::unique_ptr<Connection> connection = Connect();
        for (int i = 0; i < 20; ++i) {
          const int first = ((round * 2 + w) * 20 + i) * 200;
          EXPECT_TRUE(connection
                          ->Execute("INSERT INTO item SELECT n, 'x', 0 FROM "
                                    "generate_series($1::int, $2::int) n",
                                    first, first + 199)
                          .ok());
          EXPECT_TRUE(
              connection->Execute("UPDATE item SET price = price + 1 WHERE id = $1", first).ok());
        }
      });
    }
    for (std::thread& writer : writers) writer.join();
    rows += 2 * 20 * 200;
    EXPECT_EQ(One("SELECT count(*) FROM item"), std::to_string(rows));
    EXPECT_EQ(One("SELECT sum(price) FROM item"), std::to_string(rows / 200));
  }
}

TEST_F(LibraryTest, ReadOnlyRefusesToWrite) {
  MakeItems(1);
  connection_.reset();
  database_.reset();
  OpenOptions options;
  options.read_only = true;
  auto opened = Database::Open(directory_ + "/store", options);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  auto connection = (*opened)->Connect();
  ASSERT_TRUE(connection.ok());
  EXPECT_EQ((*connection)->Execute("DELETE FROM item").status().sqlstate(),
            sqlstate::kReadOnlySqlTransaction);
  EXPECT_EQ((*connection)->Execute("SELECT * FROM item").value(), 1u);
}

}  // namespace
}  // namespace cellar
