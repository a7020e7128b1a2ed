// count(*) of whole tables comes from their counters: it takes one trip, and always agrees with
// what a scan finds.
#include <gtest/gtest.h>

#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

// What a plan that cannot use the counter answers.
constexpr const char* kScanned = "SELECT count(*) FROM t WHERE id IS NOT NULL OR id IS NULL";
constexpr const char* kCounted = "SELECT count(*) FROM t";

class CountTest : public testing::TestWithParam<const char*> {
 protected:
  CountTest() {
    sessions_.Run(std::string("SET default_table_layout = ") + GetParam());
    sessions_.Run("CREATE TABLE t (id int PRIMARY KEY, a int)");
  }
  static Status In(Session* session, std::string_view text, std::vector<std::string>* rows) {
    TextSink sink;
    const Status status = TestSession::RunIn(session, text, &sink);
    *rows = sink.rows;
    return status;
  }
  void ExpectCount(const std::string& rows) {
    EXPECT_EQ(sessions_.Run(kCounted), std::vector<std::string>{rows});
    EXPECT_EQ(sessions_.Run(kScanned), std::vector<std::string>{rows});
  }

  TestSession sessions_;
};

TEST_P(CountTest, AgreesWithAScanWhateverIsWritten) {
  ExpectCount("0");
  sessions_.Run("INSERT INTO t SELECT g, g FROM generate_series(1, 3000) AS g");
  ExpectCount("3000");
  sessions_.Run("DELETE FROM t WHERE id % 3 = 0");
  sessions_.Run("UPDATE t SET id = id + 10000 WHERE id % 3 = 1");
  ExpectCount("2000");
  sessions_.Run("BEGIN; INSERT INTO t VALUES (-1), (-2)");
  ExpectCount("2002");
  sessions_.Run("SAVEPOINT s; DELETE FROM t");
  ExpectCount("0");
  sessions_.Run("ROLLBACK TO s");
  ExpectCount("2002");
  sessions_.Run("ROLLBACK");
  ExpectCount("2000");
  sessions_.Run("INSERT INTO t VALUES (2, 0), (-5, 0) ON CONFLICT DO NOTHING");
  sessions_.Run("ALTER TABLE t ALTER a TYPE text");
  ExpectCount("2001");
  EXPECT_EQ(sessions_.Run("SELECT count(*), count(*) + 1 FROM t"),
            std::vector<std::string>{"2001|2002"});
  EXPECT_EQ(sessions_.Run("SELECT count(*) FILTER (WHERE id < 0) FROM t"),
            std::vector<std::string>{"1"});
  EXPECT_EQ(sessions_.Run("SELECT count(*) FROM (SELECT * FROM t LIMIT 7) AS s"),
            std::vector<std::string>{"7"});
  sessions_.Run("TRUNCATE t");
  ExpectCount("0");
}

TEST_P(CountTest, IsTheSnapshotsAndOneTrip) {
  sessions_.Run("INSERT INTO t SELECT g, g FROM generate_series(1, 3000) AS g");
  const std::unique_ptr<Session> other = sessions_.Open();
  std::vector<std::string> rows;
  sessions_.Run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM t LIMIT 1");
  ASSERT_TRUE(In(other.get(), "DELETE FROM t WHERE id > 100", &rows).ok());
  ExpectCount("3000");
  sessions_.Run("COMMIT");
  ExpectCount("100");
  std::string plan;
  sessions_.Run("SET default_transaction_isolation = serializable");
  for (const std::string& line : sessions_.Run(std::string("EXPLAIN (ANALYZE) ") + kCounted)) {
    plan += line + "\n";
  }
  EXPECT_NE(plan.find("trips=1 rows=0"), std::string::npos) << plan;
  // Whoever has counted has read: locks of rows do not move the snapshot.
  sessions_.Run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t");
  ASSERT_TRUE(In(other.get(), "UPDATE t SET a = 0 WHERE id = 1", &rows).ok());
  EXPECT_FALSE(sessions_.Try("UPDATE t SET a = 1 WHERE id = 1").ok());
  sessions_.Run("ROLLBACK");
}

TEST_P(CountTest, ConflictsWithRowsThatComeIfSerializableOnly) {
  sessions_.Run("INSERT INTO t VALUES (1, 1)");
  const std::unique_ptr<Session> other = sessions_.Open();
  for (const char* isolation : {"SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"}) {
    SCOPED_TRACE(isolation);
    std::vector<std::string> rows;
    ASSERT_TRUE(In(other.get(), std::string("BEGIN ISOLATION LEVEL ") + isolation, &rows).ok());
    ASSERT_TRUE(In(other.get(), kCounted, &rows).ok());
    sessions_.Run("INSERT INTO t SELECT max(id) + 1, 0 FROM t");
    ASSERT_TRUE(In(other.get(), "INSERT INTO t SELECT min(id) - 1, 0 FROM t", &rows).ok());
    const Status commit = In(other.get(), "COMMIT", &rows);
    EXPECT_EQ(commit.ok(), std::string_view(isolation) != "SERIALIZABLE") << commit.ToString();
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, CountTest, testing::Values("row", "pages", "cell", "datum"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace cellar::session
