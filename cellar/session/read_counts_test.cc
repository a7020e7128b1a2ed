// Rows read are counted whatever happens to the table before they are written down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cellar/session/session_internal.h"
#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

// What cellar_usage shows once all reads are written down.
std::vector<std::string> ReadsOf(TestSession* test) {
  const Status status = test->database()->impl()->tables->FlushReads();
  EXPECT_TRUE(status.ok()) << status.ToString();
  return test->Run("SELECT state, read FROM cellar_usage WHERE kind = 'table' ORDER BY 1, 2");
}

constexpr const char* kTenRows =
    "CREATE TABLE t (k int PRIMARY KEY, v int);"
    "INSERT INTO t SELECT n, n FROM generate_series(1, 10) n";

TEST(ReadCountsTest, ChangesOfATableLoseNone) {
  TestSession session;
  session.Run(kTenRows);
  for (const char* change :
       {"ALTER TABLE t SET (priority = 1)", "ALTER TABLE t ADD COLUMN w int DEFAULT 7",
        "ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME TO t", "CREATE INDEX i ON t (v)"}) {
    session.Run("SELECT sum(v) FROM t");
    session.Run(change);
  }
  EXPECT_THAT(ReadsOf(&session), testing::ElementsAre("living|40"));
}

TEST(ReadCountsTest, ThoseBeforeTruncateGoWithTheRows) {
  TestSession session;
  session.Run(kTenRows);
  session.Run("SELECT sum(v) FROM t");
  session.Run("TRUNCATE t");
  session.Run("INSERT INTO t VALUES (1, 1), (2, 2)");
  session.Run("SELECT sum(v) FROM t");
  EXPECT_THAT(ReadsOf(&session), testing::ElementsAre("dropped|10", "living|2"));
}

TEST(ReadCountsTest, OfADroppedTable) {
  TestSession session;
  session.Run(kTenRows);
  session.Run("SELECT sum(v) FROM t");
  session.Run("DROP TABLE t");
  EXPECT_THAT(ReadsOf(&session), testing::ElementsAre("dropped|10"));
}

TEST(ReadCountsTest, InTransactionsThatChangeTheSchema) {
  TestSession session;
  session.Run(kTenRows);
  session.Run("BEGIN");
  session.Run("ALTER TABLE t ADD COLUMN w int");
  session.Run("SELECT sum(v) FROM t");
  session.Run("ALTER TABLE t DROP COLUMN w");
  session.Run("SELECT sum(v) FROM t");
  session.Run("CREATE TABLE made (k int); INSERT INTO made VALUES (1)");
  session.Run("SELECT sum(k) FROM made");
  session.Run("COMMIT");
  session.Run("BEGIN");
  session.Run("ALTER TABLE t ADD COLUMN w int");
  session.Run("SELECT sum(v) FROM t");
  session.Run("ROLLBACK");
  EXPECT_THAT(ReadsOf(&session), testing::ElementsAre("living|1", "living|30"));
}

}  // namespace
}  // namespace cellar::session
