// cellar/table.h inside a program and over gRPC: the same calls, the same answers.
#include "cellar/session/tables.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include "cellar/client.h"
#include "cellar/pgwire/backend.h"
#include "cellar/rpc/server/server.h"
#include "cellar/session/test_session.h"
#include "cellar/table.h"

namespace cellar {
namespace {

using Lines = std::vector<std::string>;

struct Door {
  const char* name;
  bool remote;
};

class Tables : public testing::TestWithParam<Door> {
 protected:
  Tables() {
    if (GetParam().remote) StartServer({});
    store_ = Open("cellar");
  }

  void StartServer(rpc::ServerOptions options) {
    if (host_ == nullptr) host_ = pgwire::MakeHost(db_.database());
    options.meters = &meters_;
    auto server = rpc::Server::Start(
        options, host_.get(), [] { return auth::LoginPolicy{.trust_loopback = true}; },
        [this](const rpc::Identity& identity) {
          session::SessionOptions session;
          session.user = identity.user;
          session.database = identity.database;
          return session::OpenTables(db_.database(), session);
        });
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(*server);
  }
  std::string target() const { return fmt::format("127.0.0.1:{}", server_->port()); }

  Result<std::unique_ptr<TableStore>> TryOpen(const std::string& user,
                                              const std::string& password = "") {
    if (GetParam().remote) {
      return Connect(
          target(),
          {.user = user, .password = password, .retry_for = std::chrono::milliseconds(2000)});
    }
    session::SessionOptions options;
    options.user = user;
    return session::OpenTables(db_.database(), options);
  }
  std::unique_ptr<TableStore> Open(const std::string& user, const std::string& password = "") {
    auto store = TryOpen(user, password);
    EXPECT_TRUE(store.ok()) << store.status().ToString();
    return std::move(*store);
  }
  std::shared_ptr<Table> OpenTable(const std::string& path) {
    auto table = store_->OpenTable(path);
    EXPECT_TRUE(table.ok()) << table.status().ToString();
    return std::move(*table);
  }
  static Lines Text(const RowSet& rows) {
    Lines lines;
    for (Row row : rows) {
      std::string& line = lines.emplace_back();
      for (size_t c = 0; c < rows.columns().size(); ++c) {
        if (c > 0) line += '|';
        line += row.ToString(c);
      }
    }
    return lines;
  }
  static Lines ScanAll(Table* table, const ScanOptions& options) {
    Lines lines;
    auto scan = table->Scan(options);
    EXPECT_TRUE(scan.ok()) << scan.status().ToString();
    if (!scan.ok()) return lines;
    while (const RowSet* rows = (*scan)->NextBatch()) {
      const Lines some = Text(*rows);
      lines.insert(lines.end(), some.begin(), some.end());
    }
    EXPECT_TRUE((*scan)->status().ok()) << (*scan)->status().ToString();
    return lines;
  }

  session::TestSession db_;
  monitor::DoorMeters meters_{"table"};
  std::unique_ptr<pgwire::Host> host_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<TableStore> store_;
};

TEST_P(Tables, EveryTypeComesBack) {
  db_.Run(
      "CREATE TABLE t (id bigint PRIMARY KEY, b boolean, s smallint, f float8, n numeric(20,4), "
      "x text, y bytea, d date, ts timestamptz, u uuid, j jsonb, a int[], iv interval)");
  auto table = OpenTable("/cellar/t");
  Record record = table->NewRecord();
  record.Set("id", int64_t{1} << 60)
      .Set("b", true)
      .Set("s", -7)
      .Set("f", 1.5)
      .Set("n", "12345678901234.5678")
      .Set("x", "na\xc3\xafve")
      .Set("y", Cell::Bytes(std::string("\0\xff", 2)))
      .Set("d", "2024-02-29")
      .Set("ts", "2024-02-29 12:00:00+02")
      .Set("u", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
      .Set("j", "{\"k\": [1, null]}")
      .Set("a", "{1,NULL,3}")
      .Set("iv", "1 mon 2 days");
  ASSERT_TRUE(table->Put(record).ok());
  Record nulls = table->NewRecord();
  nulls.Set("id", 2);
  ASSERT_TRUE(table->Put(nulls).ok());
  const Lines expected = {
      "1152921504606846976|t|-7|1.5|12345678901234.5678|na\xc3\xafve|\\x00ff|2024-02-29|"
      "2024-02-29 10:00:00+00|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|{\"k\": [1, null]}|{1,NULL,3}|"
      "1 mon 2 days"};
  auto rows = table->Get({int64_t{1} << 60});
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(Text(*rows), expected);
  rows = table->Get({2}, {"x", "id"});
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(Text(*rows), Lines{"|2"});
  EXPECT_EQ(ScanAll(table.get(), {.reverse = true}).front(), expected[0]);
  record.Clear();
  record.Set("id", 3).Set("s", 70000);
  EXPECT_EQ(table->Put(record).status().sqlstate(), "22003");
  record.Set("nothing", 1);
  EXPECT_EQ(table->Put(record).status().sqlstate(), "42703");
}

TEST_P(Tables, KeysIndexesAndScans) {
  db_.Run("CREATE TABLE e (id int PRIMARY KEY, last_name text, age int, telephone text)");
  db_.Run("CREATE INDEX e_name ON e (last_name, age DESC)");
  db_.Run(
      "INSERT INTO e SELECT i, CASE i % 3 WHEN 0 THEN 'kimball' WHEN 1 THEN 'ada' END, i % 50, "
      "'t' || i FROM generate_series(1, 5000) i");
  auto table = OpenTable("/cellar/e");
  RowSet many;
  const std::vector<Key> keys{{3}, {99999}, {1}, {3}};
  ASSERT_TRUE(table->Get(keys, {.columns = {"id"}}, &many).ok());
  EXPECT_EQ(Text(many), (Lines{"3", "1", "3"}));
  EXPECT_EQ(many.key_positions(), (std::vector<uint32_t>{0, 2, 3}));
  auto found = table->Lookup("e_name", {"kimball", 21}, {"telephone"});
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_EQ(Text(*found).size(), 34u);
  EXPECT_EQ(
      table->Lookup("e_name", std::vector<Key>{{"ada"}}, {}, {.max_rows = 5}, &many).sqlstate(),
      "54000");
  EXPECT_EQ(ScanAll(table.get(), {}).size(), 5000u);
  EXPECT_EQ(ScanAll(table.get(),
                    {.spans = {KeySpan::Between({10}, {13})}, .reverse = true, .columns = {"id"}}),
            (Lines{"12", "11", "10"}));
  EXPECT_EQ(ScanAll(table.get(), {.index = "e_name",
                                  .spans = {KeySpan::Prefix({"kimball", 49})},
                                  .filter = Col("id") < 200 && Col("telephone").EndsWith("9"),
                                  .columns = {"id"}}),
            (Lines{"99"}));
  EXPECT_EQ(ScanAll(table.get(),
                    {.filter = Col("last_name").IsNull() && Col("id") <= 5, .columns = {"id"}}),
            (Lines{"2", "5"}));
  auto bad = table->Scan({.filter = Col("id").StartsWith("x")});
  if (bad.ok()) {
    EXPECT_EQ((*bad)->NextBatch(), nullptr);
    EXPECT_EQ((*bad)->status().sqlstate(), "42883");
  } else {
    EXPECT_EQ(bad.status().sqlstate(), "42883");
  }
}

TEST_P(Tables, ScansResume) {
  db_.Run("CREATE TABLE r (id int PRIMARY KEY, v text)");
  db_.Run("INSERT INTO r SELECT i, 'v' || i FROM generate_series(1, 3000) i");
  auto table = OpenTable("/cellar/r");
  Lines seen;
  std::string token;
  int rounds = 0;
  while (true) {
    auto scan = table->Scan({.columns = {"id"}, .max_rows = 700, .resume_token = token});
    ASSERT_TRUE(scan.ok()) << scan.status().ToString();
    while (const RowSet* rows = (*scan)->NextBatch()) {
      const Lines some = Text(*rows);
      seen.insert(seen.end(), some.begin(), some.end());
    }
    ASSERT_TRUE((*scan)->status().ok()) << (*scan)->status().ToString();
    if ((*scan)->end_reason() == EndReason::kComplete) break;
    EXPECT_EQ((*scan)->end_reason(), EndReason::kRows);
    token = (*scan)->resume_token();
    if (++rounds == 2) db_.Run("ALTER TABLE r ADD COLUMN w int DEFAULT 7");
    ASSERT_LT(rounds, 10);
  }
  EXPECT_EQ(seen.size(), 3000u);
  EXPECT_EQ(seen.back(), "3000");
}

TEST_P(Tables, WritesWithConditionsAndIncrements) {
  db_.Run("CREATE TABLE w (k text PRIMARY KEY, v text, n bigint NOT NULL DEFAULT 0)");
  auto table = OpenTable("/cellar/w");
  Record record = table->NewRecord();
  record.Set("k", "a").Set("v", "1");
  EXPECT_EQ(table->Put(record, {.mode = PutMode::kUpdate}).status().sqlstate(), "P0002");
  ASSERT_TRUE(table->Put(record, {.mode = PutMode::kInsert}).ok());
  const Status duplicate = table->Put(record, {.mode = PutMode::kInsert}).status();
  EXPECT_EQ(duplicate.sqlstate(), "23505");
  EXPECT_EQ(duplicate.constraint_name(), "w_pkey");
  record.Set("v", "2");
  auto put = table->Put(record, {.expect = {{.row = 0, .cells = {{"v", "0"}}}}});
  ASSERT_TRUE(put.ok()) << put.status().ToString();
  EXPECT_FALSE(put->applied);
  EXPECT_EQ(put->unmet, std::vector<uint32_t>{0});
  put = table->Put(record, {.expect = {{.row = 0, .cells = {{"v", "1"}}}}});
  ASSERT_TRUE(put.ok());
  EXPECT_TRUE(put->applied);
  auto sum = table->Increment({"a"}, "n", 5);
  ASSERT_TRUE(sum.ok()) << sum.status().ToString();
  EXPECT_EQ(*sum, Cell(5));
  EXPECT_EQ(*table->Increment({"a"}, "n", -7), Cell(-2));
  EXPECT_EQ(*table->Increment({"new"}, "n", 1), Cell(1));
  EXPECT_EQ(*table->Increment({"a"}, "v", "3"), Cell("23"));
  EXPECT_EQ(db_.Run("SELECT * FROM w ORDER BY k"), (Lines{"a|23|-2", "new||1"}));
  record.Clear();
  record.Set("k", "z").Set("n", nullptr);
  EXPECT_EQ(table->Put(record).status().sqlstate(), "23502");
  auto gone = table->Delete({"a"}, {.filter = Col("n") > 0});
  ASSERT_TRUE(gone.ok()) << gone.status().ToString();
  EXPECT_EQ(gone->deleted, 0u);
  EXPECT_EQ(table->Delete({"a"})->deleted, 1u);
  EXPECT_TRUE(table->Delete(std::span<const Key>(), {})->applied);
  db_.Run("INSERT INTO w SELECT 'k' || i FROM generate_series(10, 99) i");
  const std::vector<KeySpan> spans{KeySpan::Between({"k2"}, {"k3"})};
  EXPECT_EQ(table->DeleteSpans(spans, {})->deleted, 10u);
  EXPECT_EQ(table->DeleteSpans({}, {})->deleted, 81u);
}

TEST_P(Tables, Transactions) {
  db_.Run("CREATE TABLE x (id int PRIMARY KEY, v int)");
  db_.Run("INSERT INTO x SELECT i, 0 FROM generate_series(1, 5000) i");
  auto table = OpenTable("/cellar/x");
  auto transaction = store_->Begin();
  ASSERT_TRUE(transaction.ok()) << transaction.status().ToString();
  const CallOptions in{.transaction = transaction->get()};
  // A scan goes on while rows are changed behind it.
  auto scan = table->Scan({.columns = {"id"}, .call = in});
  ASSERT_TRUE(scan.ok());
  size_t rows = 0;
  Record record = table->NewRecord();
  while (const RowSet* batch = (*scan)->NextBatch()) {
    rows += batch->size();
    record.Clear();
    record.Set("id", (*batch)[0].GetInt(0)).Set("v", 1);
    const auto put = table->Put(record, {.call = in});
    ASSERT_TRUE(put.ok()) << put.status().ToString();
  }
  ASSERT_TRUE((*scan)->status().ok()) << (*scan)->status().ToString();
  EXPECT_EQ(rows, 5000u);
  scan->reset();
  EXPECT_EQ(db_.Run("SELECT count(*) FROM x WHERE v = 1"), Lines{"0"});
  ASSERT_TRUE((*transaction)->Commit().ok());
  EXPECT_NE(db_.Run("SELECT count(*) FROM x WHERE v = 1"), Lines{"0"});

  // Two read-modify-writes of one row: one has to run again.
  std::atomic<int> runs{0};
  const auto add = [&](TableStore* store) {
    auto own = *store->OpenTable("/cellar/x");
    const Status status = store->Run([&](TableTransaction* inside) -> Status {
      ++runs;
      const CallOptions call{.transaction = inside};
      RowSet read;
      CELLAR_TRY(own->Get(Key{1}, {.columns = {"v"}, .call = call}, &read));
      Record changed = own->NewRecord();
      changed.Set("id", 1).Set("v", read[0].GetInt(0) + 10);
      return own->Put(changed, {.call = call}).status();
    });
    EXPECT_TRUE(status.ok()) << status.ToString();
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10; ++n) add(store_.get());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(db_.Run("SELECT v FROM x WHERE id = 1"), Lines{"401"});
  EXPECT_GE(runs.load(), 40);

  auto rolled_back = *store_->Begin();
  record.Clear();
  record.Set("id", 9000).Set("v", 1);
  ASSERT_TRUE(table->Put(record, {.call = {.transaction = rolled_back.get()}}).ok());
  ASSERT_TRUE(rolled_back->Rollback().ok());
  EXPECT_TRUE(table->Get({9000})->empty());
}

TEST_P(Tables, IdempotencyIds) {
  db_.Run("CREATE TABLE i (id int PRIMARY KEY, n int DEFAULT 0)");
  auto table = OpenTable("/cellar/i");
  const IncrementOptions once{.call = {.idempotency_id = "call-1"}};
  ASSERT_TRUE(table->Increment({1}, "n", 5, once).ok());
  const Table::RowChange change{{1}, {{"n", 5}}};
  auto again = table->Increment(std::span(&change, 1), once);
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_TRUE(again->write.repeated);
  EXPECT_EQ(db_.Run("SELECT n FROM i"), Lines{"5"});
  EXPECT_EQ(*store_->FindOutcome("call-1"), Outcome::kCommitted);
  // What was asked for before it came may not come any more.
  EXPECT_EQ(*store_->FindOutcome("call-2"), Outcome::kAborted);
  EXPECT_EQ(
      table->Increment({1}, "n", 5, {.call = {.idempotency_id = "call-2"}}).status().sqlstate(),
      "0B000");
  // An id is one call's, and one role's.
  db_.Run("CREATE TABLE other (id int PRIMARY KEY, n int)");
  db_.Run("CREATE ROLE helper LOGIN");
  db_.Run("GRANT ALL ON i TO helper");
  auto other = OpenTable("/cellar/other");
  EXPECT_EQ(table->Delete({1}, {.call = {.idempotency_id = "call-1"}}).status().sqlstate(),
            "0B000");
  EXPECT_EQ(other->Increment({1}, "n", 5, once).status().sqlstate(), "0B000");
  EXPECT_EQ(store_->Begin({.idempotency_id = "call-1"}).status().sqlstate(), "0B000");
  auto store = Open("helper");
  EXPECT_EQ(*store->FindOutcome("call-3"), Outcome::kAborted);
  EXPECT_TRUE(table->Increment({2}, "n", 5, {.call = {.idempotency_id = "call-3"}}).ok());
  auto theirs = *store->OpenTable("/cellar/i");
  EXPECT_TRUE(theirs->Increment({1}, "n", 1, once).ok());
  EXPECT_EQ(db_.Run("SELECT n FROM i ORDER BY id"), (Lines{"6", "5"}));
  auto transaction = *store_->Begin({.idempotency_id = "tx-1"});
  ASSERT_TRUE(table->Increment({1}, "n", 1, {.call = {.transaction = transaction.get()}}).ok());
  ASSERT_TRUE(transaction->Commit().ok());
  EXPECT_EQ(*store_->FindOutcome("tx-1"), Outcome::kCommitted);
}

TEST_P(Tables, FollowRenamesAndChangesOfTheSchema) {
  db_.Run("CREATE TABLE s (id int PRIMARY KEY, v int)");
  db_.Run("INSERT INTO s VALUES (1, 10)");
  auto table = OpenTable("/cellar/s");
  ASSERT_EQ(Text(*table->Get({1})), Lines{"1|10"});
  db_.Run("ALTER TABLE s ADD COLUMN w text DEFAULT 'new'");
  ASSERT_TRUE(table->Refresh().ok());
  EXPECT_EQ(Text(*table->Get({1})), Lines{"1|10|new"});
  db_.Run("ALTER TABLE s ALTER COLUMN v TYPE text");
  const auto rows = table->Get({1}, {"v"});
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(Text(*rows), Lines{"10"});
  db_.Run("DROP TABLE s");
  EXPECT_EQ(table->Get({1}).status().sqlstate(), "42P01");
}

TEST_P(Tables, PrivilegesAreThoseOfSql) {
  db_.Run("CREATE TABLE p (id int PRIMARY KEY, secret text, open text)");
  db_.Run("CREATE ROLE reader LOGIN");
  db_.Run("GRANT SELECT (id, open) ON p TO reader");
  auto store = Open("reader");
  auto opened = store->OpenTable("/cellar/p");
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  EXPECT_TRUE((*opened)->Get({1}, {"id", "open"}).ok());
  EXPECT_EQ((*opened)->Get({1}, {"secret"}).status().sqlstate(), "42501");
  Record record = (*opened)->NewRecord();
  record.Set("id", 1);
  EXPECT_EQ((*opened)->Put(record).status().sqlstate(), "42501");
  EXPECT_EQ((*opened)->Delete({1}).status().sqlstate(), "42501");
  db_.Run("REVOKE ALL ON p FROM reader");
  db_.Run("REVOKE SELECT (id, open) ON p FROM reader");
  EXPECT_EQ((*opened)->Get({1}, {"id"}).status().sqlstate(), "42501");
}

TEST_P(Tables, LoginsAreLookedAtAgain) {
  db_.Run("CREATE TABLE secret (id int PRIMARY KEY)");
  db_.Run("CREATE ROLE r1 LOGIN");
  db_.Run("GRANT SELECT ON secret TO r1");
  auto store = Open("r1");
  auto table = *store->OpenTable("/cellar/secret");
  ASSERT_TRUE(table->Get({1}).ok());
  // The name is another role's from here on.
  db_.Run("ALTER ROLE r1 RENAME TO r2");
  db_.Run("CREATE ROLE r1 LOGIN");
  EXPECT_EQ(table->Get({1}).status().sqlstate(), "42501");
  db_.Run("GRANT SELECT ON secret TO r1");
  EXPECT_TRUE(table->Get({1}).ok());
  db_.Run("ALTER ROLE r1 NOLOGIN");
  EXPECT_EQ(table->Get({1}).status().sqlstate(), "28000");
  db_.Run("ALTER ROLE r1 LOGIN CONNECTION LIMIT 0");
  EXPECT_EQ(table->Get({1}).status().sqlstate(), "53300");
  db_.Run("ALTER ROLE r1 CONNECTION LIMIT -1");
  EXPECT_TRUE(table->Get({1}).ok());
  db_.Run("REVOKE CONNECT ON DATABASE cellar FROM PUBLIC");
  EXPECT_EQ(table->Get({1}).status().sqlstate(), "42501");
}

TEST_P(Tables, TheOrderOfAScanIsReadToo) {
  db_.Run("CREATE TABLE pay (id int PRIMARY KEY, name text, pay int)");
  db_.Run("CREATE INDEX by_pay ON pay (pay)");
  db_.Run("CREATE INDEX by_half ON pay ((pay / 2))");
  db_.Run("CREATE INDEX well_paid ON pay (name) WHERE pay > 2");
  db_.Run("INSERT INTO pay VALUES (1, 'a', 3), (2, 'b', 2)");
  db_.Run("CREATE ROLE clerk LOGIN");
  db_.Run("GRANT SELECT (name) ON pay TO clerk");
  auto store = Open("clerk");
  auto table = *store->OpenTable("/cellar/pay");
  for (const char* index : {"by_pay", "by_half", "well_paid"}) {
    auto scan = table->Scan({.index = index, .columns = {"name"}});
    if (scan.ok()) {
      EXPECT_EQ((*scan)->NextBatch(), nullptr) << index;
      EXPECT_EQ((*scan)->status().sqlstate(), "42501") << index;
    } else {
      EXPECT_EQ(scan.status().sqlstate(), "42501") << index;
    }
  }
  auto scan = table->Scan({.columns = {"name"}, .max_rows = 1});
  ASSERT_TRUE(scan.ok()) << scan.status().ToString();
  EXPECT_EQ(Text(*(*scan)->NextBatch()), Lines{"a"});
  EXPECT_EQ((*scan)->NextBatch(), nullptr);
  EXPECT_EQ((*scan)->resume_token(), "");
}

TEST_P(Tables, PutsWaitForLocks) {
  db_.Run("CREATE TABLE l (id int PRIMARY KEY, v int)");
  db_.Run("INSERT INTO l VALUES (1, 1)");
  auto table = OpenTable("/cellar/l");
  auto transaction = *store_->Begin({});
  const Key key{1};
  RowSet rows;
  ASSERT_TRUE(table
                  ->Get(std::span(&key, 1),
                        {.for_update = true, .call = {.transaction = transaction.get()}}, &rows)
                  .ok());
  Record record = table->NewRecord();
  record.Set("id", 1).Set("v", 2);
  for (int i = 0; i < 2; ++i) {
    auto put = table->Put(record, {.call = {.timeout = std::chrono::milliseconds(100)}});
    EXPECT_FALSE(put.ok());
  }
  ASSERT_TRUE(table->Increment({1}, "v", 10, {.call = {.transaction = transaction.get()}}).ok());
  ASSERT_TRUE(transaction->Commit().ok());
  EXPECT_TRUE(table->Put(record).ok());
  EXPECT_EQ(db_.Run("SELECT v FROM l"), Lines{"2"});
}

TEST_P(Tables, CallsEndInTime) {
  db_.Run("CREATE TABLE big (id int PRIMARY KEY, v text)");
  db_.Run("INSERT INTO big SELECT i, repeat('x', 100) FROM generate_series(1, 50000) i");
  auto table = OpenTable("/cellar/big");
  CancelToken cancel;
  auto scan = table->Scan({.call = {.cancel = &cancel}});
  ASSERT_TRUE(scan.ok());
  ASSERT_NE((*scan)->NextBatch(), nullptr);
  cancel.Cancel(CancelToken::Reason::kUser);
  while ((*scan)->NextBatch() != nullptr) {
  }
  EXPECT_EQ((*scan)->status().code(), Code::kCancelled);
  // Left half read.
  scan = table->Scan({});
  ASSERT_NE((*scan)->NextBatch(), nullptr);
  scan->reset();
  scan = table->Scan({.call = {.timeout = std::chrono::milliseconds(1)}});
  if (scan.ok()) {
    // tidy: allow(sleep) the deadline has to pass
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    while ((*scan)->NextBatch() != nullptr) {
    }
    EXPECT_EQ((*scan)->status().code(), Code::kCancelled);
  }
}

// Every call beside changes of the table: nothing answers that the store is damaged, nobody reads a
// wrong row, what has handed out nothing runs again. CELLAR_SCHEMA_RACE_SECONDS makes it long.
TEST_P(Tables, ChangesOfTheTableDisturbNobody) {
  constexpr int kRows = 2000;
  db_.Run(fmt::format(
      "CREATE TABLE t (id int PRIMARY KEY, v int, n int DEFAULT 0); CREATE INDEX t_v ON t (v);"
      "INSERT INTO t SELECT g, g * 7 FROM generate_series(0, {}) g",
      kRows - 1));
  const char* seconds = std::getenv("CELLAR_SCHEMA_RACE_SECONDS");
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::seconds(seconds == nullptr ? 3 : std::atoi(seconds));
  const auto going = [&] { return std::chrono::steady_clock::now() < end && !HasFailure(); };
  const auto pick = [](int n) {
    static thread_local std::minstd_rand random(std::random_device{}());
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  std::vector<std::thread> threads;
  const auto loop = [&](const char* name, std::function<void(TableStore&, Table&)> step) {
    threads.emplace_back([&, name, step = std::move(step)] {
      std::unique_ptr<TableStore> store = Open("cellar");
      auto table = store->OpenTable("/cellar/t");
      ASSERT_TRUE(table.ok()) << table.status().ToString();
      int rounds = 0;
      for (; going(); ++rounds) step(*store, **table);
      EXPECT_GT(rounds, 0);
      std::printf("%s: %d rounds\n", name, rounds);
    });
  };
  loop("get", [&](TableStore&, Table& table) {
    const int id = pick(kRows);
    RowSet rows;
    const Status status = table.Get({id}, GetOptions{}, &rows);
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_EQ(rows.size(), 1u);
    ASSERT_EQ(rows[0].Get<int>("v"), id * 7);
  });
  loop("lookup", [&](TableStore&, Table& table) {
    const int a = pick(kRows), b = pick(kRows);
    const std::vector<Key> keys{{a * 7}, {b * 7}};
    RowSet rows;
    const Status status = table.Lookup("t_v", keys, {"id", "n"}, {}, &rows);
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_EQ(rows.size(), 2u);
    ASSERT_EQ(rows[0].GetInt(0), a);
    ASSERT_EQ(rows[1].GetInt(0), b);
  });
  for (const bool all : {false, true}) {
    loop(all ? "scan all columns" : "scan", [&, all](TableStore&, Table& table) {
      ScanOptions options;
      if (!all) options.columns = {"id", "v"};
      auto scan = table.Scan(options);
      ASSERT_TRUE(scan.ok()) << scan.status().ToString();
      int next = 0;
      for (Row row : **scan) {
        ASSERT_EQ(row.GetInt(0), next);
        ASSERT_EQ(row.GetInt(1), next * 7);
        ++next;
      }
      const Status& status = (*scan)->status();
      ASSERT_TRUE(status.ok() || (next > 0 && status.code() == Code::kConflict))
          << next << status.ToString();
      if (status.ok()) {
        ASSERT_EQ(next, kRows);
      }
    });
  }
  loop("put", [&](TableStore&, Table& table) {
    const int a = pick(kRows), b = kRows - 1 - a;
    auto put = table.Put(std::vector{table.NewRecord().Set("id", a).Set("v", a * 7),
                                     table.NewRecord().Set("id", b).Set("n", 1)});
    ASSERT_TRUE(put.ok()) << put.status().ToString();
  });
  loop("run", [&](TableStore& store, Table& table) {
    const int id = pick(kRows);
    const Status status = store.Run([&](TableTransaction* transaction) -> Status {
      const CallOptions call{.transaction = transaction};
      RowSet rows;
      CELLAR_TRY(table.Get({id}, {.for_update = true, .call = call}, &rows));
      EXPECT_EQ(rows.size(), 1u);
      EXPECT_EQ(rows[0].Get<int>("v"), id * 7);
      return table.Increment({id}, "n", 1, {.call = call}).status();
    });
    // Changes without a pause may be quicker than a transaction of several calls, each time.
    ASSERT_TRUE(status.ok() || status.code() == Code::kConflict) << status.ToString();
  });
  int changes = 0;
  for (; going(); ++changes) {
    for (const std::string& change :
         {fmt::format("ALTER TABLE t ADD COLUMN x{} int DEFAULT {}", changes, changes),
          std::string("UPDATE t SET n = n + 1 WHERE id < 50"),
          fmt::format("ALTER TABLE t DROP COLUMN x{}", changes)}) {
      Status status;
      do {
        status = db_.Try(change);
      } while (status.code() == Code::kConflict);
      ASSERT_TRUE(status.ok()) << change << status.ToString();
    }
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%d changes\n", changes);
  EXPECT_EQ(db_.Run("SELECT count(*) FROM t WHERE v <> id * 7"), Lines{"0"});
  EXPECT_EQ(db_.Run("CHECK TABLE t FULL"), Lines{});
}

INSTANTIATE_TEST_SUITE_P(Door, Tables, testing::Values(Door{"embedded", false}, Door{"grpc", true}),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- What only the remote one has ----

class Remote : public Tables {};
INSTANTIATE_TEST_SUITE_P(Door, Remote, testing::Values(Door{"grpc", true}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(Remote, PasswordsAreProved) {
  db_.Run("CREATE ROLE ann LOGIN PASSWORD 'secret'");
  db_.Run("CREATE TABLE a (id int PRIMARY KEY)");
  db_.Run("GRANT SELECT ON a TO ann");
  EXPECT_EQ(TryOpen("ann", "wrong").status().sqlstate(), "28P01");
  auto store = Open("ann", "secret");
  auto table = *store->OpenTable("/cellar/a");
  EXPECT_TRUE(table->Get({1}).ok());
  EXPECT_EQ((*TryOpen("ann"))->OpenTable("/cellar/a").status().sqlstate(), "28P01");
  // A server that has been started anew knows no tokens: the client logs in again.
  rpc::ServerOptions options;
  options.port = server_->port();
  server_.reset();
  StartServer(options);
  EXPECT_TRUE(table->Get({1}).ok());
  db_.Run("ALTER ROLE ann PASSWORD 'other'");
  EXPECT_EQ(table->Get({1}).status().sqlstate(), "28P01");
  EXPECT_GT(meters_.logins_refused.load(), 0u);
}

TEST_P(Remote, ReadsOutliveARestartAndWritesSayTheyMayHaveHappened) {
  db_.Run("CREATE TABLE a (id int PRIMARY KEY)");
  auto table = OpenTable("/cellar/a");
  rpc::ServerOptions options;
  options.port = server_->port();
  server_.reset();
  std::thread later([&] {
    // tidy: allow(sleep) the client is to find nobody for a while
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    StartServer(options);
  });
  EXPECT_TRUE(table->Get({1}).ok());
  later.join();
  server_.reset();
  Record record = table->NewRecord();
  record.Set("id", 1);
  EXPECT_EQ(table->Put(record).status().code(), Code::kCommitUnknown);
  std::thread again([&] {
    // tidy: allow(sleep) the client is to find nobody for a while
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    StartServer(options);
  });
  EXPECT_TRUE(table->Put(record, {.call = {.idempotency_id = "p"}}).ok());
  again.join();
}

TEST_P(Remote, IdleTransactionsEnd) {
  rpc::ServerOptions options;
  options.port = server_->port();
  options.idle_transaction = std::chrono::milliseconds(200);
  server_.reset();
  StartServer(options);
  db_.Run("CREATE TABLE a (id int PRIMARY KEY)");
  auto table = OpenTable("/cellar/a");
  auto transaction = *store_->Begin();
  Record record = table->NewRecord();
  record.Set("id", 1);
  ASSERT_TRUE(table->Put(record, {.call = {.transaction = transaction.get()}}).ok());
  // tidy: allow(sleep) the idle time has to pass
  std::this_thread::sleep_for(std::chrono::milliseconds(900));
  EXPECT_EQ(transaction->Commit().status().sqlstate(), "25P01");
  EXPECT_TRUE(table->Get({1})->empty());
  // Ending a transaction under a scan of it ends the scan.
  // More than fits into the buffers between the two.
  db_.Run("CREATE TABLE wide (id int PRIMARY KEY, v text)");
  db_.Run("INSERT INTO wide SELECT i, repeat('x', 1000) FROM generate_series(1, 40000) i");
  auto wide = OpenTable("/cellar/wide");
  auto other = *store_->Begin();
  auto scan = *wide->Scan({.call = {.transaction = other.get()}});
  ASSERT_NE(scan->NextBatch(), nullptr);
  EXPECT_TRUE(other->Commit().ok());
  while (scan->NextBatch() != nullptr) {
  }
  EXPECT_FALSE(scan->status().ok());
}

TEST(ServerStart, RefusesOtherMachinesWithoutCertificates) {
  session::TestSession db;
  auto host = pgwire::MakeHost(db.database());
  rpc::ServerOptions options;
  options.host = "0.0.0.0";
  EXPECT_EQ(rpc::Server::Start(
                options, host.get(), [] { return auth::LoginPolicy{.trust_loopback = true}; },
                [](const rpc::Identity&) -> Result<std::unique_ptr<TableStore>> {
                  return InternalError("never");
                })
                .status()
                .code(),
            Code::kInvalid);
}

}  // namespace
}  // namespace cellar
