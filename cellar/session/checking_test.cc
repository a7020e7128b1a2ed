// CHECK finds damage that lies in the store, and REPAIR mends it, through SQL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace cellar::session
