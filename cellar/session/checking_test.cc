// CHECK finds damage that lies in the store, and REPAIR mends it, through SQL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "cellar/codec/key.h"
#include "cellar/kv/memory_engine.h"
#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckingTest : public testing::Test {
 protected:
  void SetUp() override {
    session_.Run(
        "CREATE TABLE t (id int PRIMARY KEY, a text, n int);"
        "CREATE INDEX t_a ON t (a);"
        "INSERT INTO t SELECT i, 'v' || i, i FROM generate_series(1, 300) i");
  }

  // Deletes the first key of an index of t.
  void DamageIndex(const std::string& name) {
    const std::string oid = session_.Run("SELECT oid FROM pg_class WHERE relname = 't'").front();
    const codec::TableId table{std::stoull(oid) - 16384};
    auto transaction = session_.engine()->Begin();
    // The secondary index is the second one: behind the four ids of the primary.
    const codec::KeyRange range =
        codec::PrefixRange(codec::TablePrefix(table, codec::IndexId{name == "t_a" ? 4u : 0u}));
    auto cursor = transaction->Scan(range.start, range.end, kv::ScanOptions());
    ASSERT_TRUE(cursor.ok());
    kv::Block block;
    ASSERT_TRUE(*(*cursor)->NextBlock(&block));
    ASSERT_TRUE(transaction->Delete(block.key(0)).ok());
    ASSERT_TRUE(transaction->Commit().ok());
  }

  TestSession session_;
};

TEST_F(CheckingTest, AMissingEntryIsFoundAndMended) {
  DamageIndex("t_a");
  for (const char* mode : {"", " FAST", " FULL"}) {
    EXPECT_THAT(session_.Run(std::string("CHECK TABLE t") + mode),
                Contains(HasSubstr("/cellar/t|t_a|index t_a of table t: ")));
  }
  EXPECT_THAT(session_.Run("CHECK DATABASE"), Contains(HasSubstr("no entry for row (1)")));
  EXPECT_THAT(session_.Run("REPAIR TABLE t"),
              ElementsAre("/cellar/t|index t_a of table t: rebuilt"));
  EXPECT_THAT(session_.Run("CHECK DATABASE FULL"), IsEmpty());
  EXPECT_THAT(session_.Run("SELECT count(*) FROM t WHERE a >= 'v'"), ElementsAre("300"));
}

TEST_F(CheckingTest, KeysWithoutATableAreToldAndStay) {
  auto transaction = session_.engine()->Begin();
  ASSERT_TRUE(
      transaction->Put(codec::TablePrefix(codec::TableId{9999}, codec::IndexId{0}) + "\x16", "x")
          .ok());
  ASSERT_TRUE(transaction->Commit().ok());
  EXPECT_THAT(session_.Run("CHECK DATABASE FAST"),
              ElementsAre(HasSubstr("keys of table 9999, which is not in the catalog")));
  EXPECT_THAT(session_.Run("REPAIR DATABASE"), ElementsAre(HasSubstr("LEFT ALONE: keys of table")));
}

TEST_F(CheckingTest, ACatalogNameWithoutAnObjectIsRemoved) {
  auto transaction = session_.engine()->Begin();
  const std::string key = codec::NameKey(codec::NamespaceId{2}, "ghost");
  ASSERT_TRUE(transaction->Put(key, std::string("\x10\x84\x07", 3)).ok());
  ASSERT_TRUE(transaction->Commit().ok());
  EXPECT_THAT(session_.Run("CHECK DATABASE"), ElementsAre(HasSubstr("name \"ghost\"")));
  EXPECT_THAT(session_.Run("REPAIR DATABASE"), ElementsAre(HasSubstr("stands for nothing now")));
  EXPECT_THAT(session_.Run("CHECK DATABASE"), IsEmpty());
}

TEST_F(CheckingTest, RowsThatBreakAConstraintAreFoundByTheFullForm) {
  session_.Run(
      "CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p VALUES (1), (2);"
      "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p); INSERT INTO c VALUES (1, 1)");
  const std::string oid = session_.Run("SELECT oid FROM pg_class WHERE relname = 'p'").front();
  const codec::KeyRange rows = codec::PrefixRange(
      codec::TablePrefix(codec::TableId{std::stoull(oid) - 16384}, codec::IndexId{0}));
  auto transaction = session_.engine()->Begin();
  ASSERT_TRUE(transaction->DeleteRange(rows.start, rows.end).ok());
  ASSERT_TRUE(transaction->Commit().ok());
  EXPECT_THAT(session_.Run("CHECK TABLE c"), IsEmpty());
  EXPECT_THAT(session_.Run("CHECK TABLE c FULL"), ElementsAre(HasSubstr("foreign key constraint")));
}

// What others make, change and drop while CHECK reads is neither missing, nor left over, nor
// broken.
TEST_F(CheckingTest, CriesNoWolfBesideSchemaChanges) {
  session_.Run(
      "CREATE TABLE p (id int PRIMARY KEY, a int);"
      "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p);"
      "INSERT INTO p SELECT i, i FROM generate_series(1, 500) i;"
      "INSERT INTO c SELECT i, i FROM generate_series(1, 500) i;"
      "CREATE DATABASE other");
  std::atomic<bool> stop{false};
  std::atomic<int> changes{0};
  const auto change = [&](const char* database, std::vector<std::string> statements) {
    SessionOptions options;
    options.database = database;
    const std::unique_ptr<Session> session = session_.Open(options);
    TextSink sink;
    sink.session = session.get();
    while (!stop) {
      for (const std::string& text : statements) {
        if (session->ExecuteSimple(text, &sink).ok()) ++changes;
      }
    }
  };
  std::thread makes(change, "other",
                    std::vector<std::string>{"CREATE TABLE x (id int PRIMARY KEY, a int UNIQUE)",
                                             "INSERT INTO x VALUES (1, 1), (2, 2)", "DROP TABLE x",
                                             "PURGE TABLE x"});
  std::thread rewrites(
      change, "cellar",
      std::vector<std::string>{"ALTER TABLE p ALTER COLUMN a TYPE bigint",
                               "ALTER TABLE p ALTER COLUMN a TYPE int", "REINDEX TABLE c",
                               "TRUNCATE t", "INSERT INTO t VALUES (1, 'a', 1)"});
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  int checks = 0;
  while (std::chrono::steady_clock::now() < until || checks < 3 || changes < 10) {
    for (const char* text : {"CHECK DATABASE FULL", "CHECK TABLE c FULL"}) {
      EXPECT_THAT(session_.Run(text), IsEmpty()) << text;
      ++checks;
    }
  }
  stop = true;
  makes.join();
  rewrites.join();
}

}  // namespace
}  // namespace cellar::session
