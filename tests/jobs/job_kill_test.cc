// kill -9 after each step of a job, and at random moments behind it: when the store is opened
// again the job goes on by itself, its end is that of a job that nobody killed, and CHECK finds
// nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "cellar/codec/key.h"
#include "cellar/engines/rocksdb/rocks_engine.h"
#include "cellar/session/jobs.h"
#include "cellar/session/session_internal.h"
#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Store {
 public:
  explicit Store(const std::string& directory, bool run_jobs = true) {
    DatabaseOptions database_options;
    database_options.run_jobs = run_jobs;
    engines::RocksOptions options;
    options.directory = directory;
    options.cache_bytes = 8 << 20;
    auto engine = engines::OpenRocksEngine(options);
    EXPECT_TRUE(engine.ok()) << engine.status().ToString();
    auto database = Database::Open(std::move(*engine), database_options);
    EXPECT_TRUE(database.ok()) << database.status().ToString();
    database_ = std::move(*database);
    auto session = Session::Open(database_.get(), {});
    EXPECT_TRUE(session.ok());
    session_ = std::move(*session);
  }

  std::vector<std::string> Run(std::string_view text) {
    TextSink sink;
    const Status status = TestSession::RunIn(session_.get(), text, &sink);
    EXPECT_TRUE(status.ok()) << text << ": " << status.ToString();
    return sink.rows;
  }
  Status Try(std::string_view text) {
    TextSink sink;
    return TestSession::RunIn(session_.get(), text, &sink);
  }
  void WaitForJobs() {
    const CancelToken never;
    for (const std::string& id :
         Run("SELECT job FROM pg_catalog.cellar_jobs WHERE ended IS NULL")) {
      (void)JobService::Of(database_->impl())->Wait(std::stoull(id), &never);
    }
  }
  // Keys of t under the ids of indexes other than its first.
  size_t KeysOfIndexes() {
    const uint64_t table = std::stoull(Run("SELECT 't'::regclass::oid").front()) - 16384;
    auto reader = database_->engine()->Begin();
    auto cursor = reader->Scan(codec::TablePrefix(codec::TableId{table}, codec::IndexId{4}),
                               codec::PrefixEnd(codec::TablePrefix(codec::TableId{table})),
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

 private:
  std::unique_ptr<Database> database_;
  std::unique_ptr<Session> session_;
};

class JobKill : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = (std::filesystem::temp_directory_path() / "cellar_jobs_XXXXXX").string();
    ASSERT_NE(mkdtemp(directory_.data()), nullptr);
    Store(StoreOf()).Run(
        "CREATE TABLE t (id int PRIMARY KEY, a int, b int);"
        "INSERT INTO t SELECT i, i, i / 2 FROM generate_series(1, 40000) i");
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string StoreOf() const { return directory_ + "/store"; }

  // The worker's exit status; -1 when it was killed.
  int RunWorker(const std::string& statement, const std::string& step, int count, int micros) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl(CELLAR_JOB_WORKER, CELLAR_JOB_WORKER, StoreOf().c_str(), statement.c_str(),
              step.c_str(), std::to_string(count).c_str(), std::to_string(micros).c_str(), nullptr);
      ::_exit(1);
    }
    int exit_status = 0;
    EXPECT_EQ(::waitpid(child, &exit_status, 0), child);
    return WIFSIGNALED(exit_status) ? -1 : WEXITSTATUS(exit_status);
  }

  // Kills the statement's job after each of its steps, those of a kind that comes often at a random
  // one too; then lets it go on. `check` looks at the store after each. With CELLAR_JOB_KILLS, so
  // often for each step: once at once, then at random moments behind it, at most 50 ms and the
  // shorter the more often. `end`: of a worker that was not killed.
  void KillAtSteps(const std::string& statement, int end, const std::vector<std::string>& steps,
                   const std::function<void(Store*)>& check) {
    constexpr unsigned kRepeats = 8;
    const char* kills = std::getenv("CELLAR_JOB_KILLS");
    int killed = 0;
    for (const std::string& step : steps) {
      const bool often = step == kCopied;
      const int times = kills != nullptr ? std::atoi(kills) : often ? 2 : 1;
      for (int time = 0; time < times; ++time) {
        const int count = time > 0 && often ? static_cast<int>(1 + random_() % kRepeats) : 1;
        std::uniform_real_distribution<> exponent(0, std::log(50000.0));
        const int micros =
            time == 0 || kills == nullptr ? 0 : static_cast<int>(std::exp(exponent(random_)));
        SCOPED_TRACE(fmt::format("{}: {} {}, {} us", statement, step, count, micros));
        const int status = RunWorker(statement, step, count, micros);
        EXPECT_TRUE(status == -1 || (count > 1 && status == end)) << status;
        killed += status == -1;
        // As the kill has left it: what the job wrote is the job's.
        EXPECT_THAT(Store(StoreOf(), false).Run("CHECK DATABASE"), IsEmpty());
        Store store(StoreOf());
        store.WaitForJobs();
        EXPECT_THAT(store.Run("CHECK TABLE t FULL"), IsEmpty());
        check(&store);
        if (HasFailure()) return;
      }
    }
    fmt::print("{}: {} kills\n", statement, killed);
  }

  // Steps: "begun" is no commit of the job, but what follows the one that made it.
  static constexpr const char* kCopied = "copied some";
  const std::vector<std::string> kBuild{"begun", "filled some", "caught up", "published"};
  const std::vector<std::string> kFailedBuild{"begun", "detached", "cleared"};
  const std::vector<std::string> kRewrite{"begun", kCopied, "caught up", "published"};
  const std::vector<std::string> kFailedRewrite{"begun", kCopied, "detached", "cleared"};
  const std::vector<std::string> kValidate{"begun", "validated", "published"};

  std::mt19937 random_{20261128};
  std::string directory_;
};

// A job that ends the process twice at the same step is left alone.
constexpr const char* kJob =
    "SELECT state, step, error LIKE 'the process ended 2 times while it was %; RESUME JOB %' "
    "FROM pg_catalog.cellar_jobs ORDER BY job DESC LIMIT 1";
constexpr const char* kLastJob = "SELECT max(job) FROM pg_catalog.cellar_jobs";

class ParkedJob : public JobKill {
 protected:
  // The second time the job goes on by itself when the store is opened.
  void KillTwice(const std::string& statement, const std::string& step) {
    ASSERT_EQ(RunWorker(statement, step, 1, 0), -1);
    ASSERT_EQ(RunWorker("SELECT pg_sleep(60)", step, 1, 0), -1);
  }
  static std::string JobOf(Store* store) { return store->Run(kLastJob).front(); }
  // Opening is not done when it is parked: its thread does that.
  static void WaitUntilParked(Store* store) {
    while (store->Run(kJob).front().substr(0, 6) != "parked") std::this_thread::yield();
  }
};

TEST_F(ParkedJob, GoesOnWhenSomebodySaysSo) {
  for (const char* statement : {"CREATE INDEX t_a ON t (a)", "ALTER TABLE t ALTER b TYPE numeric",
                                "ALTER TABLE t ADD CONSTRAINT c CHECK (b >= 0)"}) {
    SCOPED_TRACE(statement);
    KillTwice(statement, "begun");
    if (HasFailure()) return;
    {
      Store store(StoreOf());
      WaitUntilParked(&store);
      EXPECT_THAT(store.Run(kJob).front(), testing::EndsWith("|t"));
      // The rest of the store goes on.
      EXPECT_THAT(store.Run("SELECT count(*) FROM t WHERE id > 0"), ElementsAre("40000"));
      EXPECT_THAT(store.Run("CHECK TABLE t FULL"), IsEmpty());
    }
    Store store(StoreOf());  // and it stays parked
    EXPECT_THAT(store.Run(kJob).front(), testing::StartsWith("parked"));
    EXPECT_EQ(store.Try("RESUME JOB 123456").sqlstate(), "42704");
    store.Run("RESUME JOB " + JobOf(&store));
    store.WaitForJobs();
    EXPECT_THAT(store.Run(kJob).front(), testing::StartsWith("done"));
    EXPECT_EQ(store.Try("RESUME JOB " + JobOf(&store)).sqlstate(), "55000");
    EXPECT_THAT(store.Run("CHECK TABLE t FULL"), IsEmpty());
  }
}

TEST_F(ParkedJob, IsTakenBackWhenItIsCancelled) {
  KillTwice("CREATE INDEX t_a ON t (a)", "begun");
  Store store(StoreOf());
  WaitUntilParked(&store);
  store.Run("CANCEL JOB " + JobOf(&store));
  store.WaitForJobs();
  EXPECT_THAT(store.Run(kJob).front(), testing::StartsWith("cancelled"));
  EXPECT_THAT(store.Run("SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass"),
              ElementsAre("1"));
  EXPECT_EQ(store.KeysOfIndexes(), 0u);
}

TEST_F(ParkedJob, IsOneThatCannotBeTakenBackEither) {
  ASSERT_EQ(RunWorker("CREATE UNIQUE INDEX t_b ON t (b)", "detached", 1, 0), -1);
  ASSERT_EQ(RunWorker("SELECT pg_sleep(60)", "begun", 1, 0), -1);
  Store store(StoreOf());
  WaitUntilParked(&store);
  EXPECT_THAT(store.Run(kJob), ElementsAre("parked|clearing|t"));
  EXPECT_EQ(store.Try("CANCEL JOB " + JobOf(&store)).sqlstate(), "55000");
  store.Run("RESUME JOB " + JobOf(&store));
  store.WaitForJobs();
  EXPECT_THAT(store.Run(kJob).front(), testing::StartsWith("failed"));
  EXPECT_EQ(store.KeysOfIndexes(), 0u);
}

// A request to cancel outlives the process.
TEST_F(ParkedJob, StoresOpenWithoutRunningJobs) {
  ASSERT_EQ(RunWorker("CREATE INDEX t_a ON t (a)", "begun", 1, 0), -1);
  {
    Store store(StoreOf(), false);
    EXPECT_THAT(store.Run(kJob).front(), testing::StartsWith("running"));
    EXPECT_EQ(store.Try("CREATE INDEX CONCURRENTLY t_b ON t (b)").sqlstate(), "55000");
    store.Run("CANCEL JOB " + JobOf(&store));
    EXPECT_THAT(store.Run(kJob).front(), testing::StartsWith("running"));
  }
  Store store(StoreOf());
  store.WaitForJobs();
  EXPECT_THAT(store.Run(kJob).front(), testing::StartsWith("cancelled"));
  EXPECT_EQ(store.KeysOfIndexes(), 0u);
}

// Stopped in good order it has not ended the process.
TEST_F(ParkedJob, IsNoneThatWasStopped) {
  ASSERT_EQ(RunWorker("CREATE INDEX t_a ON t (a)", "begun", 1, 0), -1);
  for (int i = 0; i < 3; ++i) Store store(StoreOf());
  Store store(StoreOf());
  store.WaitForJobs();
  EXPECT_THAT(store.Run(kJob).front(), testing::StartsWith("done"));
}

constexpr const char* kIndexes =
    "SELECT indexrelid::regclass, indisvalid FROM pg_index WHERE indrelid = 't'::regclass "
    "ORDER BY 1";

TEST_F(JobKill, IndexesAreThereInTheEnd) {
  for (const char* kind : {"INDEX", "UNIQUE INDEX"}) {
    KillAtSteps(fmt::format("CREATE {} t_a ON t (a)", kind), 0, kBuild, [](Store* store) {
      EXPECT_THAT(store->Run(kIndexes), ElementsAre("t_pkey|t", "t_a|t"));
      store->Run("DROP INDEX t_a");
    });
  }
  KillAtSteps("ALTER TABLE t ADD CONSTRAINT t_a UNIQUE (a)", 0, kBuild, [](Store* store) {
    EXPECT_THAT(store->Run(kIndexes), ElementsAre("t_pkey|t", "t_a|t"));
    store->Run("ALTER TABLE t DROP CONSTRAINT t_a");
  });
}

TEST_F(JobKill, RebuiltIndexesStayTheSame) {
  Store(StoreOf()).Run("CREATE INDEX t_b ON t (b); ALTER TABLE t ADD CONSTRAINT t_a UNIQUE (a)");
  const std::string state =
      "SELECT indexrelid::regclass, indexrelid, indisvalid, (SELECT conname FROM pg_constraint "
      "WHERE conindid = indexrelid) FROM pg_index WHERE indrelid = 't'::regclass ORDER BY 1";
  const std::vector<std::string> before = Store(StoreOf()).Run(state);
  ASSERT_EQ(before.size(), 3u);
  for (const char* statement : {"REINDEX INDEX t_a", "REINDEX TABLE CONCURRENTLY t"}) {
    KillAtSteps(statement, 0, kBuild, [&](Store* store) {
      EXPECT_EQ(store->Run(state), before);
      EXPECT_THAT(store->Run("SELECT count(*) >= 40000 FROM t WHERE a > -1000000"),
                  ElementsAre("t"));
    });
  }
}

TEST_F(JobKill, AFailedUniqueBuildLeavesNothing) {
  KillAtSteps("CREATE UNIQUE INDEX t_b ON t (b)", 3, kFailedBuild, [](Store* store) {
    EXPECT_THAT(store->Run(kIndexes), ElementsAre("t_pkey|t"));
    EXPECT_EQ(store->KeysOfIndexes(), 0u);
  });
}

constexpr const char* kShape =
    "SELECT count(*), count(DISTINCT id), count(b), sum(a) >= 0 FROM t WHERE id > 0";

TEST_F(JobKill, RewrittenTablesAreWhole) {
  Store(StoreOf()).Run("CREATE INDEX t_b ON t (b)");
  const std::pair<const char*, const char*> kChanges[] = {
      {"ALTER TABLE t SET (layout = cell)", "ALTER TABLE t SET (layout = pages)"},
      {"ALTER TABLE t SET (layout = row, groups = 'g (a), h (b)')",
       "ALTER TABLE t SET (layout = pages)"},
      {"ALTER TABLE t ALTER a TYPE numeric", "ALTER TABLE t ALTER a TYPE int"},
      {"ALTER TABLE t ADD COLUMN r float8 DEFAULT random()", "ALTER TABLE t DROP COLUMN r"},
      {"ALTER TABLE t DROP CONSTRAINT t_pkey", "ALTER TABLE t ADD PRIMARY KEY (id)"},
  };
  for (const auto& [change, back] : kChanges) {
    SCOPED_TRACE(change);
    KillAtSteps(change, 0, kRewrite, [back = back](Store* store) {
      EXPECT_THAT(store->Run(kShape), ElementsAre("40000|40000|40000|t"));
      store->Run(back);
      EXPECT_THAT(store->Run("CHECK TABLE t FULL"), IsEmpty());
    });
  }
}

TEST_F(JobKill, APartOfTheKeyIsDroppedWithAllThatNeedsIt) {
  const std::string with_part =
      "DELETE FROM t WHERE id < 0; ALTER TABLE t ADD COLUMN c serial CHECK (c > 0);"
      "ALTER TABLE t ADD PRIMARY KEY (id, c)";
  Store(StoreOf()).Run("ALTER TABLE t DROP CONSTRAINT t_pkey; " + with_part);
  KillAtSteps("ALTER TABLE t DROP COLUMN c", 0, kRewrite, [&](Store* store) {
    EXPECT_THAT(store->Run(kShape), ElementsAre("40000|40000|40000|t"));
    EXPECT_THAT(store->Run("SELECT conname FROM pg_constraint WHERE conrelid = 't'::regclass"),
                IsEmpty());
    EXPECT_THAT(store->Run("SELECT relname FROM pg_class WHERE relkind = 'S'"), IsEmpty());
    store->Run(with_part);
  });
}

constexpr const char* kSequences = "SELECT relname FROM pg_class WHERE relkind = 'S'";
constexpr const char* kConstraints =
    "SELECT conname FROM pg_constraint WHERE conrelid = 't'::regclass ORDER BY 1";

TEST_F(JobKill, APartOfTheKeyTakesForeignKeysWithIt) {
  const std::string with_part =
      "DELETE FROM t WHERE id < 0; ALTER TABLE t ADD COLUMN c int NOT NULL DEFAULT 1,"
      "ADD COLUMN up int; ALTER TABLE t ADD PRIMARY KEY (id, c);"
      "ALTER TABLE t ADD CONSTRAINT itself FOREIGN KEY (up, c) REFERENCES t;"
      "CREATE TABLE child (id int, c int, CONSTRAINT other FOREIGN KEY (id, c) REFERENCES t);"
      "INSERT INTO child VALUES (1, 1)";
  Store(StoreOf()).Run("ALTER TABLE t DROP CONSTRAINT t_pkey; " + with_part);
  KillAtSteps("ALTER TABLE t DROP COLUMN c CASCADE", 0, kRewrite, [&](Store* store) {
    EXPECT_THAT(store->Run(kShape), ElementsAre("40000|40000|40000|t"));
    EXPECT_THAT(store->Run("SELECT conname FROM pg_constraint WHERE contype = 'f'"), IsEmpty());
    store->Run("ALTER TABLE t DROP COLUMN up; DROP TABLE child; " + with_part);
  });
}

TEST_F(JobKill, ColumnsComeWithTheirConstraintsAndSequences) {
  Store(StoreOf()).Run("CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p VALUES (5)");
  struct Change {
    const char* statement;
    std::vector<std::string> constraints;
    const char* values;  // so many different ones
    size_t sequences;
  };
  const Change kChanges[] = {
      {"ALTER TABLE t ADD COLUMN c serial CHECK (c > 0)", {"t_c_check", "t_pkey"}, "40000", 1},
      {"ALTER TABLE t ADD COLUMN c bigint GENERATED ALWAYS AS IDENTITY UNIQUE",
       {"t_c_key", "t_pkey"},
       "40000",
       1},
      {"ALTER TABLE t ADD COLUMN c int UNIQUE REFERENCES p",
       {"t_c_fkey", "t_c_key", "t_pkey"},
       "0",
       0},
      {"ALTER TABLE t ADD COLUMN c int DEFAULT 5 CHECK (c + b >= 0)",
       {"t_check", "t_pkey"},
       "1",
       0},
  };
  for (const Change& change : kChanges) {
    SCOPED_TRACE(change.statement);
    KillAtSteps(change.statement, 0, kRewrite, [&change](Store* store) {
      EXPECT_THAT(store->Run(kShape), ElementsAre("40000|40000|40000|t"));
      EXPECT_EQ(store->Run(kConstraints), change.constraints);
      EXPECT_EQ(store->Run(kSequences).size(), change.sequences);
      EXPECT_THAT(store->Run("SELECT count(DISTINCT c) FROM t WHERE id > 0"),
                  ElementsAre(change.values));
      store->Run("ALTER TABLE t DROP COLUMN c");
      EXPECT_THAT(store->Run(kSequences), IsEmpty());
    });
  }
}

TEST_F(JobKill, AColumnThatFailsLeavesNoSequence) {
  KillAtSteps("ALTER TABLE t ADD COLUMN c serial CHECK (c < 39000)", 3, kFailedRewrite,
              [](Store* store) {
                EXPECT_THAT(store->Run(kShape), ElementsAre("40000|40000|40000|t"));
                EXPECT_THAT(store->Run(kSequences), IsEmpty());
                EXPECT_THAT(store->Run(kConstraints), ElementsAre("t_pkey"));
                EXPECT_EQ(store->KeysOfIndexes(), 0u);
              });
}

TEST_F(JobKill, AFailedRewriteLeavesTheTable) {
  Store(StoreOf()).Run("UPDATE t SET b = 100000 WHERE id = 39000");
  KillAtSteps(
      "ALTER TABLE t ALTER a TYPE int USING a / (a - 39000)", 3, kFailedRewrite, [&](Store* store) {
        EXPECT_THAT(store->Run("SELECT pg_typeof(a) FROM t WHERE a = 500"), ElementsAre("integer"));
        EXPECT_EQ(store->KeysOfIndexes(), 0u);
      });
  KillAtSteps("ALTER TABLE t ALTER b TYPE smallint", 3, kFailedRewrite, [&](Store* store) {
    EXPECT_THAT(store->Run("SELECT pg_typeof(b) FROM t WHERE a = 500"), ElementsAre("integer"));
    EXPECT_EQ(store->KeysOfIndexes(), 0u);
  });
}

TEST_F(JobKill, ConstraintsAreValidatedOrGone) {
  KillAtSteps("ALTER TABLE t ADD CONSTRAINT c CHECK (b >= 0)", 0, kValidate, [](Store* store) {
    EXPECT_THAT(store->Run("SELECT conname, convalidated FROM pg_constraint WHERE contype = 'c'"),
                ElementsAre("c|t"));
    store->Run("ALTER TABLE t DROP CONSTRAINT c");
  });
  KillAtSteps("ALTER TABLE t ALTER b SET NOT NULL", 0, kValidate, [](Store* store) {
    EXPECT_THAT(store->Run("SELECT attnotnull FROM pg_attribute WHERE attrelid = 't'::regclass "
                           "AND attname = 'b'"),
                ElementsAre("t"));
    EXPECT_THAT(store->Run("SELECT conname FROM pg_constraint WHERE contype = 'c'"), IsEmpty());
    store->Run("ALTER TABLE t ALTER b DROP NOT NULL");
  });
  Store(StoreOf()).Run(
      "CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p SELECT generate_series(-100, 80000)");
  KillAtSteps("ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (b) REFERENCES p", 0, kValidate,
              [](Store* store) {
                EXPECT_THAT(store->Run("SELECT conname, convalidated FROM pg_constraint "
                                       "WHERE contype = 'f'"),
                            ElementsAre("f|t"));
                store->Run("ALTER TABLE t DROP CONSTRAINT f");
              });
  KillAtSteps("ALTER TABLE t ADD CONSTRAINT c CHECK (b < 0)", 3, kFailedBuild, [](Store* store) {
    EXPECT_THAT(store->Run("SELECT conname FROM pg_constraint WHERE contype = 'c'"), IsEmpty());
  });
}

}  // namespace
}  // namespace cellar::session
