// Reads of what was there when a transaction or a cursor began go on, whatever is done to the
// relation meanwhile; and schema changes at once leave nothing behind.
//
// CELLAR_SCHEMA_SECONDS: how long schema changes run beside each other; 3 without it.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class OlderReadsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    session_.Run(
        fmt::format("CREATE TABLE t (id int PRIMARY KEY, a text, n int) WITH (layout = {});"
                    "CREATE INDEX t_n ON t (n);"
                    "INSERT INTO t SELECT i, 'a' || i, i % 10 FROM generate_series(1, 3000) i;"
                    "CREATE TABLE other (id int PRIMARY KEY);"
                    "INSERT INTO other VALUES (1);"
                    "CREATE VIEW v AS SELECT n, count(*) FROM t GROUP BY n;"
                    "CREATE ROLE carol",
                    GetParam()));
    other_ = session_.Open();
    sink_.session = other_.get();
  }
  std::vector<std::string> RunOther(std::string_view text) {
    sink_.rows.clear();
    const Status status = TestSession::RunIn(other_.get(), text, &sink_);
    EXPECT_TRUE(status.ok()) << text << ": " << status.ToString();
    return sink_.rows;
  }

  TestSession session_;
  std::unique_ptr<Session> other_;
  TextSink sink_;
};

// What is done to the table, in order; reads of before see none of it.
const char* const kChanges[] = {
    "GRANT SELECT ON t TO carol",
    "COMMENT ON TABLE t IS 'x'",
    "CREATE INDEX t_a ON t (a)",
    "REINDEX TABLE t",
    "DROP INDEX t_n",
    "ALTER TABLE t ADD COLUMN z int DEFAULT 5",
    "UPDATE t SET a = 'changed'",
    "DROP VIEW v",
    "ALTER TABLE t ALTER COLUMN n TYPE bigint",
    "ALTER TABLE t DROP COLUMN z",
    "DELETE FROM t WHERE id > 10",
    "ALTER TABLE t ALTER COLUMN a SET NOT NULL",
    "TRUNCATE t",
    "ALTER TABLE t RENAME COLUMN a TO b",
    "DROP TABLE t",
};

TEST_P(OlderReadsTest, TransactionsReadTheirSnapshotOn) {
  for (const char* begin :
       {"BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"}) {
    for (const bool reads_first : {true, false}) {
      SCOPED_TRACE(fmt::format("{} {}", begin, reads_first));
      RunOther(begin);
      RunOther(reads_first ? "SELECT count(*) FROM t" : "SELECT * FROM other");
      for (const char* change : kChanges) {
        session_.Run(change);
        SCOPED_TRACE(change);
        EXPECT_THAT(RunOther("SELECT count(*), sum(n), min(a), max(a) FROM t"),
                    ElementsAre("3000|13500|a1|a999"));
        EXPECT_THAT(RunOther("SELECT a FROM t WHERE id = 77"), ElementsAre("a77"));
        EXPECT_THAT(RunOther("SELECT count(*) FROM t WHERE n = 3"), ElementsAre("300"));
        EXPECT_THAT(RunOther("SELECT count FROM v WHERE n = 3"), ElementsAre("300"));
      }
      RunOther("COMMIT");
      EXPECT_EQ(TestSession::RunIn(other_.get(), "SELECT * FROM t", &sink_).sqlstate(), "42P01");
      session_.Run("PURGE TABLE t; DROP TABLE other; DROP OWNED BY carol; DROP ROLE carol");
      SetUp();
    }
  }
}

TEST_P(OlderReadsTest, CursorsReadTheirSnapshotOn) {
  for (const char* begin : {"BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"}) {
    SCOPED_TRACE(begin);
    RunOther(begin);
    RunOther("DECLARE c CURSOR FOR SELECT id, a FROM t ORDER BY id");
    RunOther("DECLARE d CURSOR FOR SELECT a FROM t WHERE n = 3 ORDER BY id");
    int next = 1;
    const auto fetch = [&] {
      EXPECT_THAT(RunOther("FETCH c"), ElementsAre(fmt::format("{0}|a{0}", next)));
      EXPECT_THAT(RunOther("FETCH d"), ElementsAre(fmt::format("a{}", (next - 1) * 10 + 3)));
      ++next;
    };
    fetch();
    for (const char* change : kChanges) {
      session_.Run(change);
      SCOPED_TRACE(change);
      fetch();
    }
    RunOther("MOVE FORWARD 1000 IN c");
    EXPECT_THAT(RunOther("FETCH c"), ElementsAre(fmt::format("{0}|a{0}", next + 1000)));
    RunOther("COMMIT");
    session_.Run("PURGE TABLE t; DROP TABLE other; DROP OWNED BY carol; DROP ROLE carol");
    SetUp();
  }
}

// The write is refused, not the reads before it.
TEST_P(OlderReadsTest, WritesOfAnOlderTableAreRefused) {
  RunOther("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t");
  session_.Run("ALTER TABLE t ADD COLUMN z int");
  EXPECT_THAT(RunOther("SELECT max(a) FROM t"), ElementsAre("a999"));
  EXPECT_EQ(TestSession::RunIn(other_.get(), "UPDATE t SET n = 1", &sink_).sqlstate(), "40001");
  RunOther("ROLLBACK");
}

TEST_P(OlderReadsTest, SchemaChangesAtOnceLeaveNothingBehind) {
  const char* seconds = std::getenv("CELLAR_SCHEMA_SECONDS");
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::seconds(seconds == nullptr ? 3 : std::atoi(seconds));
  session_.Run("CREATE DATABASE elsewhere");
  const std::vector<std::string> statements = {
      "REINDEX TABLE t",
      "REINDEX INDEX t_n",
      "REINDEX INDEX t_x",
      "CREATE INDEX t_x ON t (a)",
      "CREATE UNIQUE INDEX t_y ON t (id, n)",
      "DROP INDEX t_x",
      "DROP INDEX t_y",
      "DROP INDEX t_n; CREATE INDEX t_n ON t (n)",
      "ALTER TABLE t ADD COLUMN z int DEFAULT 1",
      "ALTER TABLE t DROP COLUMN z",
      "ALTER TABLE t ALTER COLUMN n TYPE bigint",
      "ALTER TABLE t ALTER COLUMN n TYPE int",
      "ALTER TABLE t ADD CONSTRAINT t_check CHECK (n >= 0)",
      "ALTER TABLE t DROP CONSTRAINT t_check",
      "DROP TABLE other; UNDROP TABLE other",
      "TRUNCATE other; INSERT INTO other VALUES (1)",
      "ALTER TABLE t ADD FOREIGN KEY (n) REFERENCES other NOT VALID",
      "CREATE TABLE extra (id int PRIMARY KEY, x int UNIQUE); INSERT INTO extra VALUES (1, 1)",
      "DROP TABLE extra; PURGE TABLE extra",
      "UPDATE t SET a = a || 'x' WHERE id % 50 = 1",
      "INSERT INTO t (id, a, n) SELECT max(id) + 1, 'new', 3 FROM t",
      "DELETE FROM t WHERE id % 97 = 5",
  };
  std::atomic<int> done{0};
  const auto run = [&](unsigned seed) {
    SessionOptions options;
    if (seed == 3) options.database = "elsewhere";
    const std::unique_ptr<Session> session = session_.Open(options);
    TextSink sink;
    sink.session = session.get();
    std::mt19937 random(seed);
    while (std::chrono::steady_clock::now() < until) {
      const Status status =
          TestSession::RunIn(session.get(), statements[random() % statements.size()], &sink);
      if (status.ok()) ++done;
      EXPECT_NE(status.code(), Code::kCorruption) << status.ToString();
      EXPECT_NE(status.code(), Code::kInternal) << status.ToString();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) threads.emplace_back(run, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(done, 20);
  EXPECT_THAT(session_.Run("CHECK DATABASE FULL"), IsEmpty());
  EXPECT_THAT(session_.Run("REPAIR DATABASE"), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Layouts, OlderReadsTest, testing::Values("row", "pages", "cell"));

}  // namespace
}  // namespace cellar::session
