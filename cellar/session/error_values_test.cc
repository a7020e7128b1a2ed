// Which values of rows the errors of violated constraints show, and to whom.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

TEST(ErrorValues, AreForThoseWhoMayReadThem) {
  TestSession session;
  session.Run(
      "CREATE TABLE sec (id int PRIMARY KEY, pw text UNIQUE, n int CHECK (n > 0));"
      "CREATE TABLE parent (a int PRIMARY KEY);"
      "CREATE TABLE child (id int PRIMARY KEY, a int REFERENCES parent);"
      "INSERT INTO sec VALUES (1, 'hidden', 1); INSERT INTO parent VALUES (1);"
      "INSERT INTO child VALUES (1, 1); CREATE ROLE wo; GRANT SELECT (id) ON sec TO wo;"
      "GRANT INSERT, UPDATE ON sec TO wo; GRANT INSERT ON child TO wo; GRANT DELETE ON parent TO "
      "wo");
  struct Case {
    const char* sql;
    const char* to_owner;
    const char* to_writer;
  };
  const Case cases[] = {
      {"UPDATE sec SET n = -5", "Failing row contains (1, hidden, -5).", ""},
      {"INSERT INTO sec VALUES (NULL, 'x', 1)", "Failing row contains (null, x, 1).", ""},
      {"INSERT INTO sec VALUES (2, 'hidden', 1)", "Key (pw)=(hidden) already exists.", ""},
      {"INSERT INTO sec VALUES (1, 'other', 1)", "Key (id)=(1) already exists.",
       "Key (id)=(1) already exists."},
      {"INSERT INTO child VALUES (2, 5)", "Key (a)=(5) is not present in table \"parent\".",
       "Key is not present in table \"parent\"."},
      {"DELETE FROM parent", "Key (a)=(1) is still referenced from table \"child\".",
       "Key is still referenced from table \"child\"."},
  };
  for (const Case& one : cases) EXPECT_EQ(session.Try(one.sql).detail(), one.to_owner) << one.sql;
  session.Run("SET ROLE wo");
  for (const Case& one : cases) EXPECT_EQ(session.Try(one.sql).detail(), one.to_writer) << one.sql;
  session.Run("RESET ROLE; GRANT SELECT ON sec, child, parent TO wo; SET ROLE wo");
  for (const Case& one : cases) EXPECT_EQ(session.Try(one.sql).detail(), one.to_owner) << one.sql;
}

TEST(Cancelling, WhatIsIdleIsForNothing) {
  TestSession session;
  const std::unique_ptr<Session> other = session.Open();
  other->Cancel(false);
  TextSink sink;
  EXPECT_TRUE(
      TestSession::RunIn(other.get(), "SELECT count(*) FROM generate_series(1, 10)", &sink).ok());
  std::atomic<bool> ended = false;
  std::thread canceller([&] {
    while (!ended) {
      other->Cancel(false);
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(TestSession::RunIn(other.get(), "SELECT pg_sleep(20)", &sink).sqlstate(), "57014");
  ended = true;
  canceller.join();
}

}  // namespace
}  // namespace cellar::session
