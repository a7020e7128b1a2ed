// Foreign keys that wait for the end of the transaction, with little memory to keep them in.
#include <gtest/gtest.h>

#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

DatabaseOptions LittleMemory() {
  DatabaseOptions options;
  options.memory_limit_bytes = 256 << 10;
  return options;
}

class Deferred : public testing::Test {
 protected:
  Deferred() : db_(LittleMemory()) {
    db_.Run(
        "CREATE TABLE p (id int PRIMARY KEY);"
        "CREATE TABLE c (id int PRIMARY KEY, p_id int CONSTRAINT fk REFERENCES p DEFERRABLE "
        "INITIALLY DEFERRED)");
  }
  std::string Sqlstate(std::string_view text) { return std::string(db_.Try(text).sqlstate()); }

  TestSession db_;
};

// Far more keys than there is memory for, none of which is there when it is written.
constexpr std::string_view kChildren = "INSERT INTO c SELECT n, n FROM generate_series(1, 5000) n";

TEST_F(Deferred, ManyKeysThatComeLater) {
  db_.Run("BEGIN");
  db_.Run(kChildren);
  db_.Run("INSERT INTO p SELECT n FROM generate_series(1, 5000) n");
  db_.Run("COMMIT");
  EXPECT_EQ(db_.Run("SELECT count(*) FROM c"), std::vector<std::string>{"5000"});
}

TEST_F(Deferred, OneOfManyKeysIsMissing) {
  db_.Run("BEGIN");
  db_.Run(kChildren);
  db_.Run("INSERT INTO p SELECT n FROM generate_series(1, 4999) n");
  EXPECT_EQ(Sqlstate("COMMIT"), "23503");
  EXPECT_EQ(db_.Run("SELECT count(*) FROM c"), std::vector<std::string>{"0"});
}

// Keys that are in order are forgotten on the way; taking one away brings it back.
TEST_F(Deferred, ManyKeysThatAreThere) {
  db_.Run("INSERT INTO p SELECT n FROM generate_series(1, 5000) n");
  db_.Run("BEGIN");
  db_.Run(kChildren);
  db_.Run("DELETE FROM p WHERE id = 7");
  EXPECT_EQ(Sqlstate("COMMIT"), "23503");
  db_.Run("BEGIN");
  db_.Run(kChildren);
  db_.Run("COMMIT");
  EXPECT_EQ(db_.Run("SELECT count(*) FROM c"), std::vector<std::string>{"5000"});
}

TEST_F(Deferred, ManyKeysThatGo) {
  db_.Run("INSERT INTO p SELECT n FROM generate_series(1, 5000) n");
  db_.Run(kChildren);
  db_.Run("BEGIN");
  db_.Run("DELETE FROM p");
  EXPECT_EQ(Sqlstate("COMMIT"), "23503");
  db_.Run("BEGIN");
  db_.Run("DELETE FROM p");
  db_.Run("DELETE FROM c");
  db_.Run("COMMIT");
  EXPECT_EQ(db_.Run("SELECT count(*) FROM p"), std::vector<std::string>{"0"});
}

// Old rows may break a constraint that is not validated, so it cannot be looked at as a whole.
TEST_F(Deferred, ManyKeysOfAConstraintNotValidated) {
  db_.Run(
      "ALTER TABLE c DROP CONSTRAINT fk;"
      "ALTER TABLE c ADD CONSTRAINT fk FOREIGN KEY (p_id) REFERENCES p INITIALLY DEFERRED NOT "
      "VALID");
  db_.Run("BEGIN");
  EXPECT_EQ(Sqlstate(kChildren), "54000");
  db_.Run("ROLLBACK");
}

TEST_F(Deferred, ALoopOfSavepoints) {
  db_.Run("BEGIN; SAVEPOINT outside");
  for (int i = 0; i < 50; ++i) {
    db_.Run("SAVEPOINT s; INSERT INTO c VALUES (" + std::to_string(i) + ", 1); RELEASE s");
  }
  db_.Run("SAVEPOINT s; INSERT INTO c VALUES (100, 2); ROLLBACK TO s; RELEASE s");
  db_.Run("INSERT INTO p VALUES (1); RELEASE outside; COMMIT");
  EXPECT_EQ(db_.Run("SELECT count(*) FROM c"), std::vector<std::string>{"50"});
}

// What the check has read must hold at the commit.
TEST_F(Deferred, WhoTakesTheKeyAwayWaits) {
  db_.Run("INSERT INTO p VALUES (1)");
  db_.Run("BEGIN; INSERT INTO c VALUES (1, 1); SET CONSTRAINTS ALL IMMEDIATE");
  const std::unique_ptr<Session> other = db_.Open();
  TextSink sink;
  ASSERT_TRUE(TestSession::RunIn(other.get(), "SET lock_timeout = '10ms'", &sink).ok());
  const Status waits = TestSession::RunIn(other.get(), "DELETE FROM p WHERE id = 1", &sink);
  EXPECT_EQ(waits.sqlstate(), "55P03");
  EXPECT_EQ(Sqlstate("COMMIT"), "");
}

TEST_F(Deferred, ExtendedProtocolChecksAtSync) {
  const std::unique_ptr<Session> session = db_.Open();
  TextSink sink;
  sink.session = session.get();
  ASSERT_TRUE(session->Parse("", "INSERT INTO c VALUES (1, 1)", {}, &sink).ok());
  ASSERT_TRUE(session->Bind("", "", {}).ok());
  ASSERT_TRUE(session->ExecutePortal("", 0, false, &sink).ok());
  const Status status = session->Sync(&sink);
  EXPECT_EQ(status.sqlstate(), "23503");
  EXPECT_EQ(status.detail(), "Key (p_id)=(1) is not present in table \"p\".");
  EXPECT_EQ(session->transaction_status(), 'I');
}

}  // namespace
}  // namespace cellar::session
