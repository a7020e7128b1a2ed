// ADD COLUMN with constraints, serial and identity columns, beside others and by jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <utility>

#include "cellar/session/jobs.h"
#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AddColumnTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    DatabaseOptions options;
    options.table_layout = GetParam();
    session_ = std::make_unique<TestSession>(options);
    session_->Run(
        "CREATE TABLE parents (id int PRIMARY KEY); INSERT INTO parents SELECT generate_series(1, "
        "9);"
        "CREATE TABLE t (id int PRIMARY KEY, a int, b text);"
        "INSERT INTO t SELECT i, i * 7, 'v' || i FROM generate_series(1, 5000) i");
    other_ = session_->Open();
  }
  void TearDown() override { JobService::SetHook(nullptr); }

  std::vector<std::string> Run(std::string_view text) { return session_->Run(text); }
  Status Try(std::string_view text) { return session_->Try(text); }
  Status TryOther(std::string_view text) {
    TextSink sink;
    return TestSession::RunIn(other_.get(), text, &sink);
  }
  // Runs the statements in another session after the first step that has copied rows.
  void Meanwhile(std::vector<std::string> statements) {
    met_ = false;
    JobService::SetHook([this, statements = std::move(statements)](std::string_view step) {
      if (step != "copied some" || std::exchange(met_, true)) return;
      for (const std::string& text : statements) {
        const Status status = TryOther(text);
        EXPECT_TRUE(status.ok()) << text << ": " << status.ToString();
      }
    });
  }
  std::vector<std::string> Sequences() {
    return Run("SELECT oid::regclass FROM pg_class WHERE relkind = 'S'");
  }

  std::unique_ptr<TestSession> session_;
  std::unique_ptr<Session> other_;
  bool met_ = false;
};

TEST_P(AddColumnTest, ReferencesMeetThoseWhoDeleteParents) {
  // Each deletes row 7 of the parents, which the statement's rows refer to or may refer to.
  for (const char* text :
       {"CREATE TABLE child (p int REFERENCES parents); INSERT INTO child VALUES (7)",
        "CREATE TABLE child (p int); ALTER TABLE child ADD FOREIGN KEY (p) REFERENCES parents;"
        "INSERT INTO child VALUES (7)",
        "CREATE TABLE child (id int); INSERT INTO child VALUES (1);"
        "ALTER TABLE child ADD COLUMN p int DEFAULT 7 REFERENCES parents",
        "CREATE TABLE child (id int); ALTER TABLE child ADD COLUMN p int REFERENCES parents;"
        "INSERT INTO child VALUES (1, 7)"}) {
    SCOPED_TRACE(text);
    ASSERT_TRUE(TryOther("BEGIN; DELETE FROM parents WHERE id = 7").ok());
    std::future<Status> adds = std::async(std::launch::async, [&] { return Try(text); });
    (void)adds.wait_for(std::chrono::milliseconds(20));  // whether it waits is for it to know
    const Status deleted = TryOther("COMMIT");
    const Status added = adds.get();
    EXPECT_EQ(deleted.sqlstate(), added.ok() ? "40001" : "") << added.ToString();
    EXPECT_TRUE(added.ok() || added.sqlstate() == "23503" || added.sqlstate() == "40001")
        << added.ToString();
    (void)TryOther("ROLLBACK");
    if (added.ok()) {
      EXPECT_THAT(Run("SELECT p FROM child WHERE p NOT IN (SELECT id FROM parents)"), IsEmpty());
    }
    Run("DROP TABLE IF EXISTS child; INSERT INTO parents VALUES (7) ON CONFLICT DO NOTHING");
  }
  Run("CREATE TABLE child (id int); INSERT INTO child VALUES (1); BEGIN;"
      "ALTER TABLE child ADD COLUMN p int DEFAULT 7 REFERENCES parents");
  EXPECT_TRUE(TryOther("DELETE FROM parents WHERE id = 7").ok());
  EXPECT_EQ(Try("COMMIT").sqlstate(), "40001");
}

TEST_P(AddColumnTest, WhatWasVerifiedHoldsInAnyIsolation) {
  const std::pair<const char*, const char*> kPairs[] = {
      {"ALTER TABLE few ADD CHECK (a > 0)", "INSERT INTO few VALUES (3, -1)"},
      {"ALTER TABLE few ALTER a SET NOT NULL", "INSERT INTO few VALUES (3, NULL)"},
      {"ALTER TABLE few ADD FOREIGN KEY (a) REFERENCES parents",
       "DELETE FROM parents WHERE id = 1"},
      {"ALTER TABLE few ADD FOREIGN KEY (a) REFERENCES parents", "INSERT INTO few VALUES (3, 99)"},
      {"ALTER TABLE few ADD COLUMN b int DEFAULT 1 REFERENCES parents",
       "DELETE FROM parents WHERE id = 1"},
      {"ALTER TABLE none ADD COLUMN b int NOT NULL", "INSERT INTO none VALUES (1)"},
      {"CREATE UNIQUE INDEX u ON few (a)", "INSERT INTO few VALUES (3, 1)"},
      {"ALTER TABLE few ALTER a TYPE text", "INSERT INTO few VALUES (3, 1)"}};
  for (const char* isolation : {"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}) {
    for (const auto& [change, write] : kPairs) {
      SCOPED_TRACE(std::string(isolation) + ": " + change);
      Run("CREATE TABLE few (id int PRIMARY KEY, a int); INSERT INTO few VALUES (1, 1), (2, 2);"
          "CREATE TABLE none (id int PRIMARY KEY)");
      Run(std::string("BEGIN ISOLATION LEVEL ") + isolation);
      Run(change);
      EXPECT_TRUE(TryOther(write).ok());
      EXPECT_EQ(Try("COMMIT").sqlstate(), "40001");
      EXPECT_THAT(Run("CHECK DATABASE FULL"), IsEmpty());
      Run("DROP TABLE few, none; INSERT INTO parents VALUES (1) ON CONFLICT DO NOTHING");
    }
  }
}

TEST_P(AddColumnTest, WhatIsKnownOfAConstantReadsNoRows) {
  Run("ALTER TABLE t ADD COLUMN p int DEFAULT 7 REFERENCES parents CHECK (p > 0)");
  Run("ALTER TABLE t ADD COLUMN q int REFERENCES parents CHECK (q > 0)");
  EXPECT_EQ(Try("ALTER TABLE t ADD COLUMN r int DEFAULT 3 UNIQUE").detail(),
            "Key (r)=(3) is duplicated.");
  EXPECT_THAT(Run("SHOW JOBS"), IsEmpty());
  // In a block beside writers: nobody reads what these write.
  Run("BEGIN; ALTER TABLE t ADD COLUMN s int DEFAULT 7 REFERENCES parents CHECK (s > 0)");
  EXPECT_TRUE(TryOther("UPDATE t SET a = 1 WHERE id = 2500").ok());
  EXPECT_TRUE(Try("COMMIT").ok());
  EXPECT_THAT(Run("CHECK DATABASE"), IsEmpty());
}

TEST_P(AddColumnTest, SerialColumnsComeWithTheirSequence) {
  Run("CREATE SCHEMA x; CREATE ROLE boss");
  Meanwhile({"UPDATE t SET a = 0 WHERE id < 10", "INSERT INTO t VALUES (6000, 1, 'new')",
             "DELETE FROM t WHERE id = 20", "ALTER SEQUENCE t_s_seq RENAME TO counted",
             "ALTER TABLE t SET SCHEMA x", "ALTER TABLE x.t OWNER TO boss"});
  Run("ALTER TABLE t ADD COLUMN s serial CHECK (s > 0)");
  EXPECT_TRUE(met_);
  EXPECT_THAT(Run("SELECT count(*), count(DISTINCT s), min(s) > 0 FROM x.t"),
              ElementsAre("5000|5000|t"));
  EXPECT_THAT(Run("SELECT pg_get_serial_sequence('x.t', 's')"), ElementsAre("x.counted"));
  EXPECT_THAT(Run("SELECT relowner::regrole FROM pg_class WHERE relname = 'counted'"),
              ElementsAre("boss"));
  Run("INSERT INTO x.t VALUES (7000, 1, 'new')");
  EXPECT_THAT(Run("SELECT s = currval('x.counted') FROM x.t WHERE id = 7000"), ElementsAre("t"));
  EXPECT_THAT(Run("CHECK DATABASE"), IsEmpty());
  Run("ALTER TABLE x.t DROP COLUMN s");
  EXPECT_THAT(Sequences(), IsEmpty());
}

TEST_P(AddColumnTest, WhatFailsLeavesNoSequence) {
  EXPECT_EQ(Try("ALTER TABLE t ADD COLUMN s serial CHECK (s < 4000)").sqlstate(), "23514");
  EXPECT_THAT(Sequences(), IsEmpty());
  EXPECT_EQ(
      Try("ALTER TABLE t ADD COLUMN s int GENERATED ALWAYS AS IDENTITY (MAXVALUE 9)").sqlstate(),
      "2200H");
  EXPECT_THAT(Sequences(), IsEmpty());
  Meanwhile({"DROP SEQUENCE t_s_seq"});
  EXPECT_EQ(Try("ALTER TABLE t ADD COLUMN s serial").sqlstate(), "42P01");
  EXPECT_THAT(Sequences(), IsEmpty());
  JobService::SetHook([this](std::string_view step) {
    if (step != "copied some" || std::exchange(met_, true)) return;
    TextSink sink;
    const Status status =
        TestSession::RunIn(other_.get(), "SELECT max(job) FROM pg_catalog.cellar_jobs", &sink);
    EXPECT_TRUE(status.ok() && TryOther("CANCEL JOB " + sink.rows[0]).ok());
  });
  met_ = false;
  EXPECT_EQ(Try("ALTER TABLE t ADD COLUMN s serial").sqlstate(), "57014");
  EXPECT_THAT(Sequences(), IsEmpty());
  JobService::SetHook(nullptr);
  EXPECT_THAT(Run("CHECK DATABASE"), IsEmpty());
  Run("ALTER TABLE t ADD COLUMN s serial");
  EXPECT_THAT(Sequences(), ElementsAre("t_s_seq"));
}

TEST_P(AddColumnTest, ADroppedTableTakesTheSequenceOfItsJob) {
  Meanwhile({"DROP TABLE t"});
  EXPECT_EQ(Try("ALTER TABLE t ADD COLUMN s serial").sqlstate(), "42704");
  JobService::SetHook(nullptr);
  Run("PURGE TABLE t");
  const std::string waiting = "SELECT job FROM pg_catalog.cellar_jobs WHERE ended IS NULL";
  for (int i = 0; i < 1000 && !Run(waiting).empty(); ++i) {
    JobService::Of(session_->database()->impl())->Wake();
    Run("SELECT pg_sleep(0.01)");
  }
  EXPECT_THAT(Run(waiting), IsEmpty());
  EXPECT_THAT(Sequences(), IsEmpty());
  EXPECT_THAT(Run("CHECK DATABASE"), IsEmpty());
}

TEST_P(AddColumnTest, ReferencesComeAtTheEnd) {
  Meanwhile({"INSERT INTO t VALUES (6000, 1, 'new')", "DELETE FROM parents WHERE id = 9"});
  Run("ALTER TABLE t ADD COLUMN p int UNIQUE REFERENCES parents");
  EXPECT_TRUE(met_);
  EXPECT_EQ(Try("UPDATE t SET p = 9 WHERE id = 1").sqlstate(), "23503");
  Run("UPDATE t SET p = 8 WHERE id = 1");
  EXPECT_EQ(Try("UPDATE t SET p = 8 WHERE id = 2").sqlstate(), "23505");
  EXPECT_EQ(Try("DELETE FROM parents WHERE id = 8").sqlstate(), "23503");
  EXPECT_THAT(Run("CHECK DATABASE"), IsEmpty());

  Meanwhile({"DROP TABLE parents CASCADE"});
  const Status status = Try("ALTER TABLE t ADD COLUMN q int UNIQUE REFERENCES parents");
  EXPECT_EQ(status.sqlstate(), "42704") << status.ToString();
  EXPECT_EQ(Try("SELECT q FROM t").sqlstate(), "42703");
  EXPECT_THAT(Run("CHECK DATABASE"), IsEmpty());
}

TEST_P(AddColumnTest, ForeignKeysGoWithThePartOfAKeyInOneCommit) {
  Run("ALTER TABLE t ADD COLUMN part int NOT NULL DEFAULT 1, ADD COLUMN up int,"
      "ADD COLUMN up_part int; ALTER TABLE t DROP CONSTRAINT t_pkey;"
      "ALTER TABLE t ADD PRIMARY KEY (id, part), ADD CONSTRAINT itself FOREIGN KEY (up, up_part)"
      " REFERENCES t; CREATE TABLE child (id int, part int, FOREIGN KEY (id, part) REFERENCES t);"
      "INSERT INTO child VALUES (1, 1)");
  const std::string keys = "SELECT conname FROM pg_constraint WHERE contype = 'f' ORDER BY 1";
  for (const char* text :
       {"ALTER TABLE t DROP COLUMN part", "ALTER TABLE t DROP CONSTRAINT t_pkey"})
    EXPECT_EQ(Try(text).sqlstate(), "2BP01");
  std::vector<std::string> seen;
  JobService::SetHook([&](std::string_view step) {
    if (step != "copied some" || std::exchange(met_, true)) return;
    EXPECT_EQ(TryOther("DELETE FROM t WHERE id = 1").sqlstate(), "23503");
    TextSink sink;
    EXPECT_TRUE(TestSession::RunIn(other_.get(), keys, &sink).ok());
    seen = sink.rows;
  });
  const size_t jobs = Run("SHOW JOBS").size();
  Run("ALTER TABLE t DROP COLUMN part CASCADE");
  EXPECT_EQ(Run("SHOW JOBS").size(), jobs + 1);
  EXPECT_THAT(seen, ElementsAre("child_id_part_fkey", "itself"));
  EXPECT_THAT(Run(keys), IsEmpty());
  EXPECT_THAT(Run("CHECK DATABASE"), IsEmpty());

  // With what is not the job's it is done in the statement's own transaction.
  Run("ALTER TABLE t ADD COLUMN part int NOT NULL DEFAULT 1;"
      "ALTER TABLE t ADD COLUMN twice int GENERATED ALWAYS AS (part * 2) STORED;"
      "ALTER TABLE t ADD PRIMARY KEY (id, part, twice); CREATE VIEW v AS SELECT part FROM t;"
      "ALTER TABLE child ADD COLUMN twice int,"
      "ADD FOREIGN KEY (id, part, twice) REFERENCES t");
  const size_t more = Run("SHOW JOBS").size();
  Run("ALTER TABLE t DROP COLUMN part CASCADE");
  EXPECT_EQ(Run("SHOW JOBS").size(), more);
  EXPECT_THAT(Run(keys), IsEmpty());
  EXPECT_EQ(Try("SELECT * FROM v").sqlstate(), "42P01");
  EXPECT_EQ(Try("SELECT twice FROM t").sqlstate(), "42703");
  EXPECT_THAT(Run("CHECK DATABASE"), IsEmpty());

  // In a block too.
  Run("ALTER TABLE t ADD PRIMARY KEY (id), ADD CONSTRAINT itself FOREIGN KEY (up) REFERENCES t,"
      "DROP COLUMN up_part; BEGIN; ALTER TABLE t DROP COLUMN id CASCADE; COMMIT");
  EXPECT_THAT(Run(keys), IsEmpty());
  EXPECT_THAT(Run("CHECK DATABASE"), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Layouts, AddColumnTest, testing::Values("row", "pages"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace cellar::session
