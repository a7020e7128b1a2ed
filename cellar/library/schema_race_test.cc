// Readers and writers beside ALTER TABLE: what has handed out nothing runs again, nobody reads rows
// by a description that they do not have. CELLAR_SCHEMA_RACE_SECONDS makes it long.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>

#include "cellar/base/sqlstate.h"
#include "cellar/db.h"
#include "cellar/table.h"

namespace cellar {
namespace {

constexpr int kRows = 3000;
constexpr int kDefaultSeconds = 5;

class SchemaRace : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/cellar_race_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory_ = name;
    OpenOptions options;
    options.durable = false;
    options.cache_bytes = 32 << 20;
    auto opened = Database::Open(directory_ + "/store", options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    database_ = std::move(*opened);
    const char* seconds = std::getenv("CELLAR_SCHEMA_RACE_SECONDS");
    end_ = std::chrono::steady_clock::now() +
           std::chrono::seconds(seconds == nullptr ? kDefaultSeconds : std::atoi(seconds));
  }
  void TearDown() override {
    database_.reset();
    std::filesystem::remove_all(directory_);
  }

  bool Going() const { return std::chrono::steady_clock::now() < end_ && !HasFailure(); }
  std::unique_ptr<Connection> Connect() {
    auto connection = database_->Connect();
    EXPECT_TRUE(connection.ok()) << connection.status().ToString();
    return std::move(*connection);
  }
  // Calls `step` with a connection of its own until time is over.
  void Loop(const char* name, std::function<void(Connection&)> step) {
    threads_.emplace_back([this, name, step = std::move(step)] {
      std::unique_ptr<Connection> connection = Connect();
      int rounds = 0;
      for (; Going(); ++rounds) step(*connection);
      EXPECT_GT(rounds, 0);
      std::printf("%s: %d rounds\n", name, rounds);
    });
  }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::string directory_;
  std::unique_ptr<Database> database_;
  std::chrono::steady_clock::time_point end_;
  std::vector<std::thread> threads_;
};

int Pick(int n) {
  static thread_local std::minstd_rand random(std::random_device{}());
  return static_cast<int>(random() % static_cast<unsigned>(n));
}

// v stays 7 * id, whoever changes what.
TEST_F(SchemaRace, NobodyMeetsARowThatTheyCannotRead) {
  {
    auto connection = Connect();
    ASSERT_TRUE(connection
                    ->ExecuteScript(fmt::format(
                        "CREATE TABLE t (id int PRIMARY KEY, v int, n int DEFAULT 0);"
                        "CREATE INDEX t_v ON t (v);"
                        "CREATE TABLE loaded (id int PRIMARY KEY, twice int GENERATED ALWAYS AS "
                        "(id * 2) STORED);"
                        "INSERT INTO t SELECT g, g * 7 FROM generate_series(0, {}) g",
                        kRows - 1))
                    .ok());
  }
  Loop("alter", [](Connection& c) {
    static std::atomic<int> number = 0;
    const int n = ++number;
    for (const char* table : {"t", "loaded"}) {
      Status status =
          c.ExecuteScript(fmt::format("ALTER TABLE {} ADD COLUMN x{} int DEFAULT {}", table, n, n));
      EXPECT_TRUE(status.ok() || status.code() == Code::kConflict) << status.ToString();
      if (!status.ok()) continue;
      if (std::string_view(table) == "t") {
        // Rows of the new form.
        status = c.Execute("UPDATE t SET n = n + 1 WHERE id < 50").status();
        EXPECT_TRUE(status.ok() || status.code() == Code::kConflict) << status.ToString();
      }
      do {
        status = c.ExecuteScript(fmt::format("ALTER TABLE {} DROP COLUMN x{}", table, n));
      } while (status.code() == Code::kConflict);
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
  });
  Loop("scan", [](Connection& c) {
    Result<Rows> rows = c.Query("SELECT id, v FROM t ORDER BY id");
    ASSERT_TRUE(rows.ok()) << rows.status().ToString();
    int next = 0;
    for (; rows->Next(); ++next) {
      ASSERT_EQ(rows->GetInt(0), next);
      ASSERT_EQ(rows->GetInt(1), next * 7);
    }
    EXPECT_TRUE(rows->status().ok() || (next > 0 && rows->status().code() == Code::kConflict))
        << rows->status().ToString();
    if (rows->status().ok()) {
      EXPECT_EQ(next, kRows);
    }
  });
  Loop("all columns", [](Connection& c) {
    const int id = Pick(kRows);
    Result<Rows> rows = c.Query("SELECT * FROM t WHERE id = $1", id);
    ASSERT_TRUE(rows.ok()) << rows.status().ToString();
    ASSERT_TRUE(rows->Next()) << rows->status().ToString();
    ASSERT_EQ(rows->GetInt(1), id * 7);
    rows = c.Query("SELECT t.* FROM t WHERE v = $1", id * 7);
    ASSERT_TRUE(rows.ok()) << rows.status().ToString();
    ASSERT_TRUE(rows->Next()) << rows->status().ToString();
    ASSERT_EQ(rows->GetInt(0), id);
  });
  Loop("change", [](Connection& c) {
    Result<uint64_t> changed = c.Execute("UPDATE t SET n = n + 1 WHERE id = $1", Pick(kRows));
    ASSERT_TRUE(changed.ok()) << changed.status().ToString();
    ASSERT_EQ(*changed, 1u);
  });
  Loop("run", [](Connection& c) {
    const int id = Pick(kRows);
    const Status status = c.Run([id](Connection& inner) -> Status {
      CELLAR_TRY_ASSIGN(Rows rows, inner.Query("SELECT * FROM t WHERE id = $1", id));
      if (!rows.Next())
        return rows.status().ok() ? MakeError(Code::kNotFound, "no row") : rows.status();
      EXPECT_EQ(rows.GetInt(1), id * 7);
      return inner.Execute("UPDATE t SET v = $1 WHERE id = $2", rows.GetInt(1), id).status();
    });
    ASSERT_TRUE(status.ok()) << status.ToString();
  });
  Loop("load", [](Connection& c) {
    static std::atomic<int> next = 0;
    const int first = next.fetch_add(100);
    int at = first;
    Result<uint64_t> loaded = c.Load("loaded", {}, [&](Loader& loader) -> Result<bool> {
      // What is not generated; columns come and go.
      Status added = loader.Add(at);
      if (added.sqlstate() == sqlstate::kProtocolViolation) added = loader.Add(at, 1);
      CELLAR_TRY(std::move(added));
      return ++at < first + 100;
    });
    EXPECT_TRUE(loaded.ok() || loaded.status().code() == Code::kConflict)
        << loaded.status().ToString();
  });
  Join();
  auto connection = Connect();
  Result<Rows> check = connection->Query("CHECK DATABASE FULL");
  ASSERT_TRUE(check.ok()) << check.status().ToString();
  while (check->Next()) ADD_FAILURE() << check->ToString(0) << " " << check->ToString(1);
  Result<Rows> wrong = connection->Query("SELECT count(*) FROM loaded WHERE twice <> id * 2");
  ASSERT_TRUE(wrong.ok() && wrong->Next());
  EXPECT_EQ(wrong->GetInt(0), 0);
}

}  // namespace
}  // namespace cellar
