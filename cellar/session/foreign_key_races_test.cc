// Foreign keys beside other transactions: no row refers to one that is gone, under any isolation.
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

struct Race {
  const char* isolation;
  const char* key;  // how the constraint is declared
  const char* layout;
  bool child_commits_first;
};

class ForeignKeyRaces : public testing::TestWithParam<Race> {};

// One transaction refers to a row that another one deletes: one waits for the other, or is refused,
// but for cascades; under READ COMMITTED with PostgreSQL's answers alone.
TEST_P(ForeignKeyRaces, LeaveNoOrphan) {
  const Race& race = GetParam();
  TestSession db;
  const std::string with = std::string(" WITH (layout = ") + race.layout + ")";
  db.Run("CREATE TABLE p (id int PRIMARY KEY, u text UNIQUE)" + with);
  db.Run("CREATE TABLE c (id int PRIMARY KEY, p_id int " + std::string(race.key) + ")" + with);
  db.Run("INSERT INTO p VALUES (1, 'one'), (2, 'two')");
  const std::unique_ptr<Session> other = db.Open();
  const auto run = [&](bool child, const std::string& sql) {
    TextSink sink;
    return child ? db.Try(sql) : TestSession::RunIn(other.get(), sql, &sink);
  };
  const auto change = [&](bool child) {
    return run(child, child ? "INSERT INTO c VALUES (1, 1)" : "DELETE FROM p WHERE id = 1");
  };
  const std::string begin = std::string("BEGIN ISOLATION LEVEL ") + race.isolation;
  for (const bool child : {true, false}) ASSERT_TRUE(run(child, begin).ok());
  const bool first = race.child_commits_first;
  ASSERT_TRUE(change(first).ok());
  std::future<Status> second = std::async(std::launch::async, [&] { return change(!first); });
  (void)second.wait_for(std::chrono::milliseconds(20));  // whether it waits is for it to know
  // A deferred check waits at the COMMIT.
  std::future<Status> commit = std::async(std::launch::async, [&] { return run(first, "COMMIT"); });
  Status status = second.get();
  if (status.ok()) {
    status = run(!first, "COMMIT");
  } else {
    EXPECT_TRUE(run(!first, "ROLLBACK").ok());
  }
  const bool read_committed = std::string_view(race.isolation) == "READ COMMITTED";
  for (const Status& one : {status, commit.get()}) {
    EXPECT_TRUE(one.ok() || one.sqlstate() == "23503" ||
                (!read_committed && one.sqlstate() == "40001"))
        << one.ToString();
  }
  EXPECT_EQ(db.Run("SELECT count(*) FROM c WHERE p_id NOT IN (SELECT id FROM p)"),
            std::vector<std::string>{"0"});
}

std::vector<Race> Races() {
  std::vector<Race> races;
  for (const char* isolation : {"SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"}) {
    for (const char* key : {"REFERENCES p", "REFERENCES p DEFERRABLE INITIALLY DEFERRED",
                            "REFERENCES p ON DELETE CASCADE", "REFERENCES p ON DELETE SET NULL"}) {
      for (const char* layout : {"row", "pages", "cell", "datum"}) {
        for (const bool first : {true, false}) races.push_back({isolation, key, layout, first});
      }
    }
  }
  return races;
}

INSTANTIATE_TEST_SUITE_P(All, ForeignKeyRaces, testing::ValuesIn(Races()));

}  // namespace
}  // namespace cellar::session
