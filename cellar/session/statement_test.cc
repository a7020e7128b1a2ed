// What a statement may hold and how long its lists may be, whoever sends it.
#include <gtest/gtest.h>

#include "cellar/base/sqlstate.h"
#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

std::string Repeat(std::string_view first, std::string_view more, size_t times) {
  std::string out(first);
  for (size_t i = 0; i < times; ++i) out += more;
  return out;
}

TEST(StatementTest, ListsAreAsLongAsPostgresqlsMayBe) {
  TestSession sessions;
  const std::string longest = Repeat("1", ", 1", 1663);
  EXPECT_TRUE(sessions.Try("SELECT " + longest).ok());
  EXPECT_EQ(sessions.Try("SELECT " + longest + ", 1").sqlstate(), sqlstate::kTooManyColumns);
  EXPECT_TRUE(sessions.Try("SELECT ROW(" + longest + ")").ok());
  EXPECT_EQ(sessions.Try("SELECT ROW(" + longest + ", 1)").sqlstate(), sqlstate::kTooManyColumns);
  sessions.Run("CREATE TABLE t (a int, b int)");
  EXPECT_EQ(sessions.Try("SELECT " + Repeat("t.*", ", t.*", 832) + " FROM t").sqlstate(),
            sqlstate::kTooManyColumns);
  EXPECT_TRUE(sessions.Try("SELECT concat(" + Repeat("1", ", 1", 99) + ")").ok());
  EXPECT_EQ(sessions.Try("SELECT concat(" + Repeat("1", ", 1", 100) + ")").sqlstate(), "54023");
}

TEST(StatementTest, JoinsAreAsManyAsPlanningCanNest) {
  TestSession sessions;
  const auto joined = [](size_t items) {
    std::string text = "SELECT 1 FROM ";
    for (size_t i = 0; i < items; ++i) text += fmt::format("{}(VALUES (1)) t{}", i ? ", " : "", i);
    return text;
  };
  EXPECT_EQ(sessions.Run(joined(1000)), std::vector<std::string>{"1"});
  for (const size_t items : {1001, 3000, 20000}) {
    EXPECT_EQ(sessions.Try(joined(items)).sqlstate(), sqlstate::kProgramLimitExceeded);
  }
  // Each view reads the one before twice.
  sessions.Run("CREATE VIEW v0 AS SELECT 1 AS x");
  Status status;
  int views = 0;
  while (status.ok() && views < 40) {
    status = sessions.Try(
        fmt::format("CREATE VIEW v{} AS SELECT a.x FROM v{} a, v{} b", views + 1, views, views));
    if (status.ok()) ++views;
  }
  EXPECT_EQ(status.sqlstate(), sqlstate::kProgramLimitExceeded);
  EXPECT_GE(views, 8);
}

TEST(StatementTest, TreesOfLongTextsAreChargedBeforeTheyAreMade) {
  DatabaseOptions options;
  options.statement_limit_bytes = size_t{32} << 20;
  TestSession sessions(options);
  const std::string large = Repeat("SELECT 1 IN (1", ", 1", 200000) + ")";
  const std::string small = Repeat("SELECT 1 IN (1", ", 1", 20000) + ")";
  EXPECT_EQ(sessions.Try(large).sqlstate(), sqlstate::kOutOfMemory);
  // It is given back, however often.
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sessions.Run(small), std::vector<std::string>{"t"});
  // Prepared statements keep theirs: the session has twice what a statement has.
  Status status;
  int prepared = 0;
  for (; prepared < 20 && status.ok(); ++prepared) {
    status = sessions.Try("PREPARE p" + std::to_string(prepared) + " AS " + small);
  }
  EXPECT_EQ(status.sqlstate(), sqlstate::kOutOfMemory);
  EXPECT_GE(prepared, 2);
  sessions.Run("DEALLOCATE ALL");
  EXPECT_EQ(sessions.Run(small), std::vector<std::string>{"t"});
}

TEST(StatementTest, SettingsOfASessionAreBounded) {
  TestSession sessions;
  const Status refused = sessions.Try(
      "SELECT count(set_config('a.b' || i, repeat('x', 100000), false)) FROM generate_series(1, "
      "100000) i");
  EXPECT_EQ(refused.sqlstate(), sqlstate::kProgramLimitExceeded);
  // The statement was undone; one value at a time may change for ever.
  EXPECT_EQ(sessions.Run("SELECT count(set_config('a.b', repeat('x', 100000), false)) FROM "
                         "generate_series(1, 300)"),
            std::vector<std::string>{"300"});
  for (int i = 0; i < 1000; ++i)
    sessions.Run("SELECT set_config('a.b', repeat('x', 100000), false)");
}

TEST(StatementTest, ACursorIsChargedApartFromWhoFetches) {
  DatabaseOptions options;
  options.statement_limit_bytes = size_t{32} << 20;
  TestSession sessions(options);
  // Two that hold some 20 MB each: more than a statement may, not more than a session.
  sessions.Run("BEGIN");
  for (const char* name : {"a", "b"}) {
    sessions.Run("DECLARE " + std::string(name) +
                 " SCROLL CURSOR FOR SELECT repeat('x', 1000) FROM generate_series(1, 20000)");
    EXPECT_EQ(sessions.Run("FETCH ABSOLUTE 18000 FROM " + std::string(name)).size(), 1u);
  }
  sessions.Run("CLOSE a; CLOSE b; COMMIT");
  // One beyond it is refused, and the session goes on.
  sessions.Run("BEGIN");
  sessions.Run(
      "DECLARE c SCROLL CURSOR FOR SELECT repeat('x', 1000) FROM generate_series(1, 50000)");
  EXPECT_EQ(sessions.Try("FETCH ABSOLUTE 48000 FROM c").sqlstate(), sqlstate::kOutOfMemory);
  sessions.Run("ROLLBACK");
  EXPECT_EQ(sessions.Run("SELECT 1"), std::vector<std::string>{"1"});
}

TEST(StatementTest, NamedStatementsAndPortalsAreCharged) {
  DatabaseOptions options;
  options.statement_limit_bytes = size_t{16} << 20;
  TestSession sessions(options);
  const std::unique_ptr<Session> session = sessions.Open();
  TextSink sink;
  sink.session = session.get();
  const std::string text = Repeat("SELECT 1", ", 1", 1600);
  const auto name = [](int i) { return fmt::format("n{}", i); };
  // Some megabytes of trees and plans, and then of executions.
  int kept = 0;
  while (session->Parse(name(kept), text, {}, &sink).ok() && kept < 1000) ++kept;
  EXPECT_GE(kept, 10);
  EXPECT_LT(kept, 100);
  EXPECT_EQ(session->Parse(name(kept), text, {}, &sink).sqlstate(), sqlstate::kOutOfMemory);
  ASSERT_TRUE(session->ExecuteSimple("DEALLOCATE ALL; BEGIN", &sink).ok());
  ASSERT_TRUE(session->Parse("s", text, {}, &sink).ok());
  int open = 0;
  while (session->Bind(name(open), "s", {}).ok() && open < 1000) ++open;
  EXPECT_GE(open, 10);
  EXPECT_LT(open, 40);
  ASSERT_TRUE(session->ExecuteSimple("ROLLBACK", &sink).ok());
  EXPECT_TRUE(session->ExecuteSimple("SELECT 1", &sink).ok());
  // Those without a name replace each other.
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(session->Parse("", text, {}, &sink).ok());
    ASSERT_TRUE(session->Bind("", "", {}).ok());
  }
}

TEST(StatementTest, StatementsOfOneMessageSeeWhatTheOnesBeforeDid) {
  TestSession sessions;
  const std::string many =
      Repeat("CREATE TABLE t (a int)", "; INSERT INTO t SELECT count(*) FROM t", 200);
  EXPECT_EQ(sessions.Run(many + "; SELECT count(*), max(a) FROM t"),
            std::vector<std::string>{"200|199"});
}

}  // namespace
}  // namespace cellar::session
