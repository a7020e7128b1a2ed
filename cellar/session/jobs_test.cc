// Schema changes by jobs: beside writers, cancelled, failed, and after the store was closed.
#include "cellar/session/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "cellar/codec/key.h"
#include "cellar/session/session_internal.h"
#include "cellar/session/test_session.h"
#include "cellar/table/backfill.h"
#include "cellar/table/change_log.h"

namespace cellar::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class JobsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string_view layout = GetParam();
    // "_pieces": logs are longer than what is read of them at once.
    if (layout.ends_with("_pieces")) {
      layout.remove_suffix(std::string_view("_pieces").size());
      table::LogFollower::SetPieceBytes(40);
    }
    if (GetParam() != std::string_view("row")) table::SetRowsForTwoThreads(1000);
    DatabaseOptions options;
    options.table_layout = layout;
    session_ = std::make_unique<TestSession>(options);
    session_->Run(
        "CREATE TABLE t (id int PRIMARY KEY, a int, b text);"
        "INSERT INTO t SELECT i, i * 7, 'v' || i FROM generate_series(1, 5000) i");
  }
  void TearDown() override {
    JobService::SetHook(nullptr);
    table::LogFollower::SetPieceBytes(table::LogFollower::kPieceBytes);
    table::SetRowsForTwoThreads(table::kRowsForTwoThreads);
  }

  std::vector<std::string> Run(std::string_view text) { return session_->Run(text); }
  Status Try(std::string_view text) { return session_->Try(text); }

  // Keys under the ids of t's secondary indexes from `first` on.
  size_t KeysOfIndexes(uint32_t first) {
    const uint64_t table = std::stoull(Run("SELECT 't'::regclass::oid").front()) - 16384;
    auto reader = session_->engine()->Begin();
    const std::string start = codec::TablePrefix(codec::TableId{table}, codec::IndexId{first});
    auto cursor = reader->Scan(start, codec::PrefixEnd(codec::TablePrefix(codec::TableId{table})),
                               kv::ScanOptions());
    EXPECT_TRUE(cursor.ok());
    kv::Block block;
    size_t keys = 0;
    while (true) {
      Result<bool> more = (*cursor)->NextBlock(&block);
      if (!more.ok() || !*more) return keys;
      keys += block.size();
    }
  }

  std::unique_ptr<TestSession> session_;
};

TEST_P(JobsTest, BuildsAnIndex) {
  Run("CREATE INDEX t_a ON t (a)");
  EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
  EXPECT_THAT(Run("SELECT kind, state, rows_done, object FROM pg_catalog.cellar_jobs"),
              ElementsAre("build index|done|5000|index \"t_a\" of table \"t\""));
  EXPECT_THAT(Run("SELECT indisvalid FROM pg_index WHERE indexrelid = 't_a'::regclass"),
              ElementsAre("t"));
  EXPECT_THAT(Run("SELECT id FROM t WHERE a = 700"), ElementsAre("100"));
}

TEST_P(JobsTest, ABuildIsSeen) {
  const auto other = session_->Open();
  std::vector<std::string> seen;
  JobService::SetHook([&](std::string_view step) {
    if (step != "filled some") return;
    TextSink sink;
    EXPECT_TRUE(TestSession::RunIn(other.get(),
                                   "SELECT relid::regclass, index_relid::regclass, tuples_done, "
                                   "tuples_total FROM pg_stat_progress_create_index",
                                   &sink)
                    .ok());
    seen = sink.rows;
  });
  Run("CREATE INDEX t_a ON t (a)");
  JobService::SetHook(nullptr);
  EXPECT_THAT(seen, ElementsAre("t|t_a|5000|5000"));
  EXPECT_THAT(Run("SELECT 1 FROM pg_stat_progress_create_index"), IsEmpty());
}

TEST_P(JobsTest, SmallTablesNeedNone) {
  Run("CREATE TABLE few (a int); INSERT INTO few SELECT generate_series(1, 100)");
  Run("CREATE INDEX few_a ON few (a)");
  EXPECT_THAT(Run("SHOW JOBS"), IsEmpty());
  Run("CREATE INDEX CONCURRENTLY few_a2 ON few (a)");
  EXPECT_EQ(Run("SHOW JOBS").size(), 1u);
}

TEST_P(JobsTest, InABlockItIsPartOfTheBlock) {
  Run("BEGIN; CREATE INDEX t_a ON t (a); ROLLBACK");
  EXPECT_THAT(Run("SHOW JOBS"), IsEmpty());
  EXPECT_EQ(KeysOfIndexes(4), 0u);
  EXPECT_EQ(Try("BEGIN; CREATE INDEX CONCURRENTLY t_a ON t (a)").sqlstate(), "25001");
  Run("ROLLBACK");
}

TEST_P(JobsTest, AFailedUniqueBuildLeavesNothing) {
  Run("UPDATE t SET a = 7 WHERE id = 4999");
  const Status status = Try("CREATE UNIQUE INDEX t_a ON t (a)");
  EXPECT_EQ(status.sqlstate(), "23505");
  EXPECT_THAT(std::string(status.message()), HasSubstr("could not create unique index \"t_a\""));
  EXPECT_EQ(status.detail(), "Key (a)=(7) is duplicated.");
  EXPECT_EQ(KeysOfIndexes(4), 0u);
  EXPECT_THAT(Run("SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 't'::regclass"),
              ElementsAre("t_pkey"));
  EXPECT_THAT(Run("SELECT state, error FROM pg_catalog.cellar_jobs"),
              ElementsAre("failed|23505: could not create unique index \"t_a\""));
  Run("UPDATE t SET a = -1 WHERE id = 4999; CREATE UNIQUE INDEX t_a ON t (a)");
  EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
}

// Half of the rows of a build may be read by another thread, later, when a writer has moved a
// unique key from one half to the other: the build must look again before it fails.
TEST_P(JobsTest, UniqueKeysMayMoveWhileABuildReads) {
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    const auto session = session_->Open();
    for (int i = 0; !stop.load(); ++i) {
      const int from = i % 2 == 0 ? 10 : 4990, to = i % 2 == 0 ? 4990 : 10;
      TextSink sink;
      const Status status =
          TestSession::RunIn(session.get(),
                             fmt::format("BEGIN; UPDATE t SET a = -{} WHERE id = {};"
                                         "UPDATE t SET a = 70 WHERE id = {}; COMMIT",
                                         from, from, to),
                             &sink);
      if (!status.ok()) {
        EXPECT_EQ(status.code(), Code::kConflict) << status.ToString();
        EXPECT_TRUE(TestSession::RunIn(session.get(), "ROLLBACK", &sink).ok());
        --i;
      }
    }
  });
  for (int round = 0; round < 20; ++round) {
    Run("CREATE UNIQUE INDEX t_u ON t (a)");
    EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
    Run("DROP INDEX t_u");
  }
  stop = true;
  writer.join();
}

TEST_P(JobsTest, RowsOfAllSortsAreDividedBetweenTwoThreads) {
  Run("CREATE TABLE m (a text, b int, c int, PRIMARY KEY (a, b));"
      "INSERT INTO m SELECT repeat('x', i % 40), i, i % 7 FROM generate_series(1, 3000) i;"
      "CREATE TABLE n (id int PRIMARY KEY, c int) WITH (layout = datum);"
      "INSERT INTO n SELECT (i - 2000) * 100, i % 7 FROM generate_series(1, 4000) i;"
      "CREATE TABLE o (id int PRIMARY KEY, c int) WITH (layout = cell);"
      "INSERT INTO o SELECT i, i % 7 FROM generate_series(-3000, 3000) i;"
      "INSERT INTO o VALUES (2000000000, 3)");
  for (const char* table : {"m", "n", "o"}) {
    Run(fmt::format("CREATE INDEX {0}_c ON {0} (c)", table));
    EXPECT_THAT(Run(fmt::format("CHECK TABLE {} FULL", table)), IsEmpty()) << table;
    Run(fmt::format("CREATE INDEX {0}_p ON {0} ((c + 1)) WHERE c > 3", table));
    EXPECT_THAT(Run(fmt::format("CHECK TABLE {} FULL", table)), IsEmpty()) << table;
    EXPECT_THAT(Run(fmt::format("ALTER TABLE {0} RENAME c TO d; SELECT count(*) > 100 FROM {0} "
                                "WHERE d + 1 = 5 AND d > 3",
                                table)),
                ElementsAre("t"));
  }
}

TEST_P(JobsTest, WritersMeetUniqueIndexesThatAreBeingBuilt) {
  // 30000 has the key of 20000 until that goes, and some rows exchange theirs.
  Run("INSERT INTO t SELECT i, i * 7, 'v' || i FROM generate_series(5001, 20000) i");
  bool done = false;
  const auto other = session_->Open();
  JobService::SetHook([&](std::string_view step) {
    if (step != "filled some" || std::exchange(done, true)) return;
    TextSink sink;
    for (const char* text :
         {"UPDATE t SET b = 'y' WHERE id = 10", "INSERT INTO t VALUES (30000, 140000, 'x')",
          "UPDATE t SET b = 'y', a = a WHERE id = 20000", "DELETE FROM t WHERE id = 20000",
          "UPDATE t SET a = a + 100000 WHERE id > 4000",
          "UPDATE t SET a = 77 - a WHERE id IN (1, 10)", "UPDATE t SET id = 40000 WHERE id = 3",
          "UPDATE t SET id = 3 WHERE id = 4", "DELETE FROM t WHERE id = 5",
          "INSERT INTO t VALUES (5, 35, 'again')"}) {
      (void)TestSession::RunIn(other.get(), text, &sink);
    }
  });
  const Status status = Try("CREATE UNIQUE INDEX t_a ON t (a)");
  JobService::SetHook(nullptr);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(done);
  EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
  EXPECT_THAT(Run("SELECT count(*), count(DISTINCT a) FROM t"), ElementsAre("20000|20000"));
}

TEST_P(JobsTest, ADuplicateThatComesDuringABuildEndsIt) {
  const auto other = session_->Open();
  for (const char* text : {"INSERT INTO t VALUES (-1, 70, 'x'), (6000, 1, 'y')",
                           "UPDATE t SET a = 70 WHERE id = 4000"}) {
    bool done = false;
    JobService::SetHook([&](std::string_view step) {
      if (step != "filled some" || std::exchange(done, true)) return;
      TextSink sink;
      EXPECT_TRUE(TestSession::RunIn(other.get(), text, &sink).ok());
    });
    const Status status = Try("CREATE UNIQUE INDEX t_a ON t (a)");
    JobService::SetHook(nullptr);
    EXPECT_EQ(status.sqlstate(), "23505");
    EXPECT_EQ(status.detail(), "Key (a)=(70) is duplicated.");
    EXPECT_EQ(KeysOfIndexes(4), 0u);
    EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
    Run("DELETE FROM t WHERE id = -1; UPDATE t SET a = 7 * id WHERE id = 4000");
  }
  Run("CREATE UNIQUE INDEX t_a ON t (a)");
}

TEST_P(JobsTest, PartialIndexesFollowWritersWhileTheyAreBuilt) {
  const auto other = session_->Open();
  bool done = false;
  JobService::SetHook([&](std::string_view step) {
    if (step != "filled some" || std::exchange(done, true)) return;
    for (const char* text :
         {"UPDATE t SET a = -a WHERE id % 2 = 0 AND id < 100", "DELETE FROM t WHERE id = 7",
          "INSERT INTO t VALUES (6000, 1, 'x'), (6001, -1, 'y')",
          "UPDATE t SET b = 'z' WHERE id = 9",
          "UPDATE t SET a = -a WHERE id % 4 = 0 AND id < 100"}) {
      TextSink sink;
      EXPECT_TRUE(TestSession::RunIn(other.get(), text, &sink).ok());
    }
  });
  Run("CREATE INDEX t_a ON t (upper(b)) INCLUDE (a) WHERE a > 0");
  JobService::SetHook(nullptr);
  EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
  EXPECT_THAT(Run("SELECT id FROM t WHERE upper(b) = 'Z' AND a > 0"), ElementsAre("9"));
}

TEST_P(JobsTest, ConstraintsAreValidated) {
  Run("ALTER TABLE t ADD CONSTRAINT pos CHECK (a > 0); ");
  Run("ALTER TABLE t ADD CONSTRAINT big CHECK (a < 100) NOT VALID");
  EXPECT_THAT(Run("SELECT conname, convalidated FROM pg_constraint WHERE contype = 'c' ORDER BY 1"),
              ElementsAre("big|f", "pos|t"));
  EXPECT_EQ(Try("INSERT INTO t VALUES (9000, 200, 'x')").sqlstate(), "23514");
  EXPECT_EQ(Try("ALTER TABLE t VALIDATE CONSTRAINT big").sqlstate(), "23514");
  EXPECT_THAT(Run("SELECT convalidated FROM pg_constraint WHERE conname = 'big'"),
              ElementsAre("f"));
  EXPECT_EQ(Try("ALTER TABLE t ADD CONSTRAINT few CHECK (a < 100)").sqlstate(), "23514");
  EXPECT_THAT(Run("SELECT conname FROM pg_constraint WHERE conname = 'few'"), IsEmpty());
  Run("ALTER TABLE t DROP CONSTRAINT big");

  Run("ALTER TABLE t ALTER COLUMN a SET NOT NULL");
  EXPECT_EQ(Try("INSERT INTO t VALUES (9000, NULL, 'x')").sqlstate(), "23502");
  Run("INSERT INTO t VALUES (9001, 1, NULL)");
  const Status null = Try("ALTER TABLE t ALTER COLUMN b SET NOT NULL");
  EXPECT_EQ(null.sqlstate(), "23502");
  EXPECT_EQ(null.message(), "column \"b\" of relation \"t\" contains null values");
  EXPECT_THAT(Run("SELECT conname FROM pg_constraint WHERE contype = 'c'"), ElementsAre("pos"));

  Run("CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p SELECT generate_series(1, 5000)");
  EXPECT_EQ(Try("ALTER TABLE t ADD CONSTRAINT fk FOREIGN KEY (id) REFERENCES p").sqlstate(),
            "23503");
  Run("DELETE FROM t WHERE id = 9001");
  Run("ALTER TABLE t ADD CONSTRAINT fk FOREIGN KEY (id) REFERENCES p");
  EXPECT_EQ(Try("DELETE FROM p WHERE id = 3").sqlstate(), "23503");
  EXPECT_THAT(Run("SELECT convalidated FROM pg_constraint WHERE conname = 'fk'"), ElementsAre("t"));
  EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
}

TEST_P(JobsTest, CancelledAtEachStepItLeavesNothing) {
  const auto other = session_->Open();
  for (const char* step : {"filled some", "caught up"}) {
    SCOPED_TRACE(step);
    std::atomic<bool> asked = false;
    JobService::SetHook([&](std::string_view passed) {
      if (passed != step || asked.exchange(true)) return;
      TextSink sink;
      EXPECT_TRUE(
          TestSession::RunIn(other.get(),
                             "SELECT job FROM pg_catalog.cellar_jobs WHERE step IS NOT NULL", &sink)
              .ok());
      ASSERT_EQ(sink.rows.size(), 1u);
      EXPECT_TRUE(TestSession::RunIn(other.get(), "CANCEL JOB " + sink.rows[0], &sink).ok());
    });
    const Status status = Try("CREATE INDEX t_a ON t (a)");
    JobService::SetHook(nullptr);
    EXPECT_EQ(status.sqlstate(), "57014");
    EXPECT_EQ(KeysOfIndexes(4), 0u);
    EXPECT_THAT(Run("SELECT DISTINCT state FROM pg_catalog.cellar_jobs"), ElementsAre("cancelled"));
    EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
  }
  EXPECT_EQ(Try("CANCEL JOB 123456").sqlstate(), "42704");
  EXPECT_EQ(Try("CANCEL JOB " + Run("SELECT max(job) FROM pg_catalog.cellar_jobs")[0]).sqlstate(),
            "55000");
}

TEST_P(JobsTest, DroppedWhileItIsBuilt) {
  const auto other = session_->Open();
  std::atomic<bool> dropped = false;
  JobService::SetHook([&](std::string_view step) {
    if (step != "filled some" || dropped.exchange(true)) return;
    TextSink sink;
    EXPECT_TRUE(TestSession::RunIn(other.get(), "DROP INDEX t_a", &sink).ok());
  });
  EXPECT_EQ(Try("CREATE INDEX t_a ON t (a)").sqlstate(), "42704");
  JobService::SetHook(nullptr);
  EXPECT_EQ(KeysOfIndexes(4), 0u);
  EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
}

TEST_P(JobsTest, RowsTruncatedDuringABuildComeBackWithoutTheIndex) {
  const auto other = session_->Open();
  std::atomic<bool> truncated = false;
  JobService::SetHook([&](std::string_view step) {
    if (step != "filled some" || truncated.exchange(true)) return;
    TextSink sink;
    EXPECT_TRUE(TestSession::RunIn(other.get(), "TRUNCATE t", &sink).ok());
  });
  Run("CREATE UNIQUE INDEX t_a ON t (a)");
  JobService::SetHook(nullptr);
  EXPECT_THAT(Run("SELECT count(*) FROM t"), ElementsAre("0"));
  Run("UNDROP TABLE t AS old");
  EXPECT_THAT(Run("SELECT count(*), max(a) FROM old"), ElementsAre("5000|35000"));
  EXPECT_THAT(Run("SELECT indexrelid::regclass, indisvalid FROM pg_index "
                  "WHERE indrelid IN ('t'::regclass, 'old'::regclass) ORDER BY indrelid, 1"),
              ElementsAre("t_pkey|t", "t_a|t", "t_pkey1|t"));
  Run("INSERT INTO old VALUES (6000, 7, 'x')");
  EXPECT_THAT(Run("CHECK DATABASE"), IsEmpty());
}

TEST_P(JobsTest, RewritesTables) {
  Run("CREATE INDEX t_a ON t (a)");
  for (const char* layout : {"cell", "row", "datum", "pages"}) {
    Run(fmt::format("ALTER TABLE t SET (layout = {})", layout));
    EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty()) << layout;
  }
  Run("ALTER TABLE t SET (layout = row, groups = 'g (a), h (b)')");
  const int64_t jobs = std::stoll(Run("SELECT count(*) FROM cellar_jobs")[0]);
  Run("ALTER TABLE t DROP GROUP g, ALTER b DROP GROUP, ALTER a SET GROUP h");
  EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
  Run("ALTER TABLE t RENAME GROUP h TO g");
  EXPECT_EQ(std::stoll(Run("SELECT count(*) FROM cellar_jobs")[0]), jobs + 1);
  EXPECT_THAT(Run("SELECT groupname, columns FROM cellar_column_groups"), ElementsAre("g|{a}"));
  Run("ALTER TABLE t ALTER a TYPE text USING 'n' || a");
  Run("ALTER TABLE t ADD COLUMN r float8 DEFAULT random()");
  Run("ALTER TABLE t ADD COLUMN g int GENERATED ALWAYS AS (length(a)) STORED");
  Run("ALTER TABLE t DROP CONSTRAINT t_pkey");
  Run("INSERT INTO t VALUES (1, 'twice', 'b', 1)");
  const Status twice = Try("ALTER TABLE t ADD PRIMARY KEY (id)");
  EXPECT_EQ(twice.sqlstate(), "23505");
  Run("ALTER TABLE t ALTER id DROP NOT NULL; UPDATE t SET id = NULL WHERE a = 'twice'");
  const Status null = Try("ALTER TABLE t ADD PRIMARY KEY (id)");
  EXPECT_EQ(null.message(), "column \"id\" of relation \"t\" contains null values");
  Run("DELETE FROM t WHERE id IS NULL");
  Run("ALTER TABLE t ADD PRIMARY KEY (id, b)");
  EXPECT_EQ(Try("ALTER TABLE t ALTER a TYPE varchar").sqlstate(), "0A000");
  EXPECT_EQ(Try("ALTER TABLE t ALTER b TYPE int USING b::int").sqlstate(), "22P02");
  EXPECT_THAT(Run("SELECT id, a, b, g FROM t WHERE a = 'n700'"), ElementsAre("100|n700|v100|4"));
  EXPECT_THAT(Run("SELECT count(*), count(DISTINCT r) > 4900, sum(g) FROM t"),
              ElementsAre("5000|t|28415"));
  EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
  EXPECT_THAT(Run("SELECT state, count(*) FROM pg_catalog.cellar_jobs "
                  "WHERE kind = 'rewrite table' GROUP BY 1 ORDER BY 1"),
              ElementsAre("done|11", "failed|3"));
}

TEST_P(JobsTest, DropsAPartOfTheKey) {
  Run("ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD COLUMN s serial CHECK (s > 0),"
      "ADD CONSTRAINT larger CHECK (a > id), ADD UNIQUE (s, a);"
      "ALTER TABLE t ADD PRIMARY KEY (id, s); CREATE INDEX t_b ON t (b)");
  const size_t jobs = Run("SHOW JOBS").size();
  const auto other = session_->Open();
  bool done = false;
  JobService::SetHook([&](std::string_view step) {
    if (step != "copied some" || std::exchange(done, true)) return;
    TextSink sink;
    for (const char* text : {"UPDATE t SET a = a + 1 WHERE id < 100", "DELETE FROM t WHERE id = 1",
                             "INSERT INTO t VALUES (7000, 8000, 'x')",
                             "ALTER TABLE t ADD CONSTRAINT late CHECK (s > -5) NOT VALID"}) {
      const Status status = TestSession::RunIn(other.get(), text, &sink);
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
  });
  Run("ALTER TABLE t DROP COLUMN s");
  JobService::SetHook(nullptr);
  EXPECT_TRUE(done);
  EXPECT_EQ(Run("SHOW JOBS").size(), jobs + 1);
  EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
  EXPECT_THAT(Run("SELECT count(*), count(DISTINCT id), min(a) FROM t"),
              ElementsAre("5000|5000|15"));
  EXPECT_THAT(Run("SELECT conname FROM pg_constraint WHERE conrelid = 't'::regclass"),
              ElementsAre("larger"));
  EXPECT_THAT(Run("SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 't'::regclass "
                  "AND indisvalid AND NOT indisprimary"),
              ElementsAre("t_b"));
  EXPECT_THAT(Run("SELECT relname FROM pg_class WHERE relkind = 'S'"), IsEmpty());
}

TEST_P(JobsTest, IndexesAreRebuiltBesideWriters) {
  Run("CREATE INDEX t_a ON t (a); ALTER TABLE t ADD CONSTRAINT t_b UNIQUE (b);"
      "COMMENT ON INDEX t_a IS 'kept'");
  const std::string state =
      "SELECT indexrelid, relname, indisunique, indisvalid, obj_description(indexrelid, "
      "'pg_class') FROM pg_index JOIN pg_class c ON c.oid = indexrelid "
      "WHERE indrelid = 't'::regclass ORDER BY 1";
  const std::vector<std::string> before = Run(state);
  const auto other = session_->Open();
  int steps = 0;
  JobService::SetHook([&](std::string_view step) {
    if (step != "filled some") return;
    ++steps;
    TextSink sink;
    for (const char* text :
         {"UPDATE t SET a = -a, b = b || 'x' WHERE id < 300",
          "UPDATE t SET b = 'w' || id WHERE id % 7 = 0", "DELETE FROM t WHERE id % 50 = 0"}) {
      const Status status = TestSession::RunIn(other.get(), text, &sink);
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
    EXPECT_EQ(
        TestSession::RunIn(other.get(), "INSERT INTO t SELECT -id, a, b FROM t WHERE id = 2", &sink)
            .sqlstate(),
        "23505");
  });
  Run("REINDEX TABLE t; REINDEX INDEX t_a");
  EXPECT_EQ(steps, 0);  // a message of two commits as a whole
  Run("REINDEX TABLE t");
  EXPECT_EQ(steps, 2);
  JobService::SetHook(nullptr);
  EXPECT_EQ(Run(state), before);
  EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
  EXPECT_THAT(Run("SELECT count(*) FROM t WHERE a < 0"), ElementsAre("0"));
}

TEST_P(JobsTest, OthersWhileATableIsRewritten) {
  Run("CREATE INDEX t_a ON t (a)");
  const auto other = session_->Open();
  std::atomic<bool> looked = false;
  JobService::SetHook([&](std::string_view step) {
    if (step != "copied some" || looked.exchange(true)) return;
    const auto run = [&](const char* text) {
      TextSink sink;
      return TestSession::RunIn(other.get(), text, &sink);
    };
    for (const char* text :
         {"CREATE INDEX t_b ON t (b)", "ALTER TABLE t ADD COLUMN x int", "TRUNCATE t",
          "ALTER TABLE t RENAME COLUMN b TO c", "DROP INDEX t_a"}) {
      EXPECT_EQ(run(text).sqlstate(), "55006") << text;
    }
    for (const char* text :
         {"INSERT INTO t VALUES (-1, 1, 'new'), (6000, 2, 'new')", "DELETE FROM t WHERE id = 2",
          "UPDATE t SET id = 9000 WHERE id = 3", "UPDATE t SET b = 'changed' WHERE id > 4900",
          "CHECK TABLE t FULL", "ALTER TABLE t ALTER b SET DEFAULT 'd'",
          "COMMENT ON COLUMN t.b IS 'c'", "ALTER TABLE t RENAME TO u"}) {
      EXPECT_TRUE(run(text).ok()) << text;
    }
  });
  Run("ALTER TABLE t DROP CONSTRAINT t_pkey");
  JobService::SetHook(nullptr);
  EXPECT_TRUE(looked.load());
  Run("INSERT INTO u (id, a) VALUES (7000, 1)");
  EXPECT_THAT(
      Run("SELECT count(*), count(*) FILTER (WHERE b = 'changed'), min(id), max(id) FROM u"),
      ElementsAre("5002|102|-1|9000"));
  EXPECT_THAT(Run("SELECT b FROM u WHERE id = 7000"), ElementsAre("d"));
  EXPECT_THAT(Run("CHECK TABLE u FULL"), IsEmpty());
}

TEST_P(JobsTest, ACancelledRewriteLeavesNothing) {
  const auto other = session_->Open();
  std::atomic<bool> asked = false;
  JobService::SetHook([&](std::string_view step) {
    if (step != "copied some" || asked.exchange(true)) return;
    TextSink sink;
    EXPECT_TRUE(TestSession::RunIn(other.get(), "UPDATE t SET a = 0 WHERE id < 10", &sink).ok());
    EXPECT_TRUE(
        TestSession::RunIn(other.get(), "SELECT max(job) FROM pg_catalog.cellar_jobs", &sink).ok());
    EXPECT_TRUE(TestSession::RunIn(other.get(), "CANCEL JOB " + sink.rows[0], &sink).ok());
  });
  EXPECT_EQ(Try("ALTER TABLE t ALTER a TYPE numeric").sqlstate(), "57014");
  JobService::SetHook(nullptr);
  EXPECT_EQ(KeysOfIndexes(4), 0u);
  EXPECT_THAT(Run("SELECT state FROM pg_catalog.cellar_jobs"), ElementsAre("cancelled"));
  EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
  Run("ALTER TABLE t ALTER a TYPE numeric");
  EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
}

// Counts what COPY TO sends.
class CopySink : public TextSink {
 public:
  size_t lines = 0;
  Status OnCopyData(std::string_view data) override {
    lines += static_cast<size_t>(std::count(data.begin(), data.end(), '\n'));
    return Status();
  }
};

// An execution that knows the descriptor before a rewrite, and a snapshot behind it, would find
// nothing.
TEST_P(JobsTest, ReadersMissNothingWhileTablesAreRewritten) {
  Run("CREATE TABLE few (id int PRIMARY KEY, a int); CREATE INDEX few_a ON few (a);"
      "INSERT INTO few SELECT i, i FROM generate_series(1, 50) i");
  std::atomic<bool> stop = false;
  std::vector<std::thread> readers;
  readers.emplace_back([&] {
    const auto session = session_->Open();
    TextSink prepared;
    EXPECT_TRUE(
        TestSession::RunIn(session.get(), "PREPARE p AS SELECT id FROM few", &prepared).ok());
    while (!stop.load()) {
      TextSink sink;
      const Status status = TestSession::RunIn(session.get(), "EXECUTE p", &sink);
      if (status.code() == Code::kConflict) continue;
      EXPECT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(sink.rows.size(), 50u);
    }
  });
  readers.emplace_back([&] {
    const auto session = session_->Open();
    while (!stop.load()) {
      CopySink sink;
      const Status status = TestSession::RunIn(session.get(), "COPY few TO STDOUT", &sink);
      if (status.code() == Code::kConflict) continue;
      EXPECT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(sink.lines, 50u);
    }
  });
  for (int round = 0; round < 30; ++round) {
    Run("ALTER TABLE few SET (layout = cell)");
    Run("ALTER TABLE few SET (layout = row)");
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

TEST_P(JobsTest, AnotherTypeMustFitForeignKeys) {
  Run("CREATE TABLE p (id bigint PRIMARY KEY); INSERT INTO p SELECT generate_series(1, 5000);"
      "ALTER TABLE t ADD CONSTRAINT k FOREIGN KEY (id) REFERENCES p");
  EXPECT_EQ(Try("ALTER TABLE t ALTER id TYPE numeric").sqlstate(), "42804");
  EXPECT_EQ(Try("ALTER TABLE p ALTER id TYPE text").sqlstate(), "42804");
  Run("ALTER TABLE t ALTER id TYPE smallint");
  Run("DELETE FROM t WHERE id = 7; INSERT INTO t VALUES (7, 1, 'x')");
}

TEST_P(JobsTest, AnotherTypeMustKeepConstraints) {
  Run("ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)");
  const Status broken = Try("ALTER TABLE t ALTER a TYPE int USING 34000 - a");
  EXPECT_EQ(broken.sqlstate(), "23514");
  EXPECT_EQ(broken.message(), "check constraint \"c\" of relation \"t\" is violated by some row");
  EXPECT_EQ(Try("ALTER TABLE t ALTER a TYPE text").sqlstate(), "42883");
  Run("ALTER TABLE t ALTER a TYPE numeric USING a + 1");
  EXPECT_THAT(Run("SELECT min(a), max(a) FROM t"), ElementsAre("8|35001"));
}

// Three writers with a model each, and indexes made and dropped beside them.
TEST_P(JobsTest, BesideWriters) {
  constexpr int kWriters = 3, kIds = 300;
  std::atomic<bool> stop = false;
  std::array<std::map<int, int>, kWriters> models;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      const auto session = session_->Open();
      std::mt19937 random(static_cast<uint32_t>(w));
      std::map<int, int>& model = models[static_cast<size_t>(w)];
      for (int i = 0; !stop.load(); ++i) {
        const int id = 100000 + w * kIds + static_cast<int>(random() % kIds);
        const int a = 1000000 * (w + 1) + i;
        const auto known = model.find(id);
        const bool remove = known != model.end() && random() % 3 == 0;
        const std::string text = known == model.end()
                                     ? fmt::format("INSERT INTO t VALUES ({}, {}, 'w')", id, a)
                                 : remove ? fmt::format("DELETE FROM t WHERE id = {}", id)
                                          : fmt::format("UPDATE t SET a = {} WHERE id = {}", a, id);
        TextSink sink;
        const Status status = TestSession::RunIn(session.get(), text, &sink);
        if (status.code() == Code::kConflict) continue;
        EXPECT_TRUE(status.ok()) << status.ToString();
        if (remove)
          model.erase(id);
        else
          model[id] = a;
      }
    });
  }
  const auto rewrite = [&] {
    for (const char* text :
         {"ALTER TABLE t ALTER a TYPE bigint", "ALTER TABLE t SET (layout = cell)",
          "ALTER TABLE t SET (layout = row, groups = 'g (a), h (b)')",
          "ALTER TABLE t DROP CONSTRAINT t_pkey", "ALTER TABLE t ADD PRIMARY KEY (id)",
          "ALTER TABLE t ALTER b SET GROUP g", "ALTER TABLE t SET (layout = pages)",
          "ALTER TABLE t ALTER a TYPE int"}) {
      Run(text);
      EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty()) << text;
    }
  };
  for (int round = 0; round < 3; ++round) {
    Run("CREATE INDEX t_a ON t (a)");
    Run("CREATE UNIQUE INDEX t_u ON t (a) INCLUDE (b)");
    Run("ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)");
    EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
    Run("ALTER TABLE t DROP CONSTRAINT c");
    if (round == 0) rewrite();
    Run("DROP INDEX t_a");
    Run("DROP INDEX t_u");
  }
  Run("CREATE UNIQUE INDEX t_u ON t (a)");
  stop = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_THAT(Run("CHECK TABLE t FULL"), IsEmpty());
  std::map<int, int> expected, found;
  for (const auto& model : models) expected.insert(model.begin(), model.end());
  for (const std::string& row : Run("SELECT id, a FROM t WHERE id >= 100000")) {
    found[std::stoi(row)] = std::stoi(row.substr(row.find('|') + 1));
  }
  EXPECT_EQ(found, expected);
}

INSTANTIATE_TEST_SUITE_P(Layouts, JobsTest, testing::Values("row", "pages", "row_pieces"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace cellar::session
