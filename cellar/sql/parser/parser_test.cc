#include "cellar/sql/parser/parser.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "cellar/base/sqlstate.h"

namespace cellar::sql {
namespace {

using ast::NodeKind;

// The only statement of `text`; the test fails when there is none.
Statement One(std::string_view text) {
  Result<Statement> result = ParseOne(text);
  EXPECT_TRUE(result.ok()) << text << ": " << result.status().ToString();
  if (!result.ok() || result->ast == nullptr) return {std::make_unique<ast::CheckpointStmt>()};
  return std::move(*result);
}

template <typename T>
T& Root(Statement& statement) {
  EXPECT_EQ(static_cast<int>(statement.ast->kind), static_cast<int>(T::kKind));
  return statement.ast->As<T>();
}

Status ErrorOf(std::string_view text) {
  auto result = Parse(text);
  EXPECT_FALSE(result.ok()) << text;
  return result.ok() ? Status() : std::move(result).status();
}

TEST(Parser, NamesEveryStatementByItsCommandTag) {
  struct Case {
    const char* text;
    NodeKind kind;
    const char* tag;
  };
  const Case cases[] = {
      {"SELECT 1", NodeKind::kSelect, "SELECT"},
      {"VALUES (1), (2)", NodeKind::kSelect, "SELECT"},
      {"TABLE t", NodeKind::kSelect, "SELECT"},
      {"SELECT 1 INTO x", NodeKind::kCreateTableAs, "SELECT INTO"},
      {"INSERT INTO t VALUES (1)", NodeKind::kInsert, "INSERT"},
      {"UPDATE t SET a = 1", NodeKind::kUpdate, "UPDATE"},
      {"DELETE FROM t", NodeKind::kDelete, "DELETE"},
      {"CREATE TABLE t ()", NodeKind::kCreateTable, "CREATE TABLE"},
      {"CREATE TABLE t AS SELECT 1", NodeKind::kCreateTableAs, "CREATE TABLE AS"},
      {"CREATE MATERIALIZED VIEW v AS SELECT 1", NodeKind::kCreateTableAs,
       "CREATE MATERIALIZED VIEW"},
      {"REFRESH MATERIALIZED VIEW v", NodeKind::kRefreshMatView, "REFRESH MATERIALIZED VIEW"},
      {"ALTER TABLE t ADD a int", NodeKind::kAlterTable, "ALTER TABLE"},
      {"ALTER INDEX i SET (fillfactor = 70)", NodeKind::kAlterTable, "ALTER INDEX"},
      {"ALTER TABLE t RENAME TO u", NodeKind::kRename, "ALTER TABLE"},
      {"ALTER TABLE t RENAME a TO b", NodeKind::kRename, "ALTER TABLE"},
      {"ALTER TABLE t RENAME CONSTRAINT a TO b", NodeKind::kRename, "ALTER TABLE"},
      {"ALTER SCHEMA s RENAME TO u", NodeKind::kRename, "ALTER SCHEMA"},
      {"ALTER DATABASE s RENAME TO u", NodeKind::kRename, "ALTER DATABASE"},
      {"ALTER VIEW v RENAME TO u", NodeKind::kRename, "ALTER VIEW"},
      {"ALTER INDEX v RENAME TO u", NodeKind::kRename, "ALTER INDEX"},
      {"ALTER TABLE t SET SCHEMA s", NodeKind::kAlterObjectSchema, "ALTER TABLE"},
      {"ALTER TYPE t SET SCHEMA s", NodeKind::kAlterObjectSchema, "ALTER TYPE"},
      {"ALTER SCHEMA s OWNER TO bob", NodeKind::kAlterOwner, "ALTER SCHEMA"},
      {"ALTER FUNCTION f(int) OWNER TO bob", NodeKind::kAlterOwner, "ALTER FUNCTION"},
      {"DROP TABLE t", NodeKind::kDrop, "DROP TABLE"},
      {"DROP INDEX CONCURRENTLY IF EXISTS a.b", NodeKind::kDrop, "DROP INDEX"},
      {"DROP FUNCTION f(int, text)", NodeKind::kDrop, "DROP FUNCTION"},
      {"DROP TRIGGER x ON s.t", NodeKind::kDrop, "DROP TRIGGER"},
      {"DROP EXTENSION x", NodeKind::kDrop, "DROP EXTENSION"},
      {"CREATE INDEX ON t (a)", NodeKind::kCreateIndex, "CREATE INDEX"},
      {"CREATE SCHEMA s", NodeKind::kCreateSchema, "CREATE SCHEMA"},
      {"CREATE DATABASE d", NodeKind::kCreateDatabase, "CREATE DATABASE"},
      {"ALTER DATABASE d SET a = 1", NodeKind::kAlterDatabase, "ALTER DATABASE"},
      {"ALTER DATABASE d WITH CONNECTION LIMIT 5", NodeKind::kAlterDatabase, "ALTER DATABASE"},
      {"DROP DATABASE IF EXISTS d WITH (FORCE)", NodeKind::kDropDatabase, "DROP DATABASE"},
      {"CREATE VIEW v AS SELECT 1", NodeKind::kCreateView, "CREATE VIEW"},
      {"CREATE SEQUENCE s", NodeKind::kCreateSequence, "CREATE SEQUENCE"},
      {"ALTER SEQUENCE s RESTART", NodeKind::kAlterSequence, "ALTER SEQUENCE"},
      {"CREATE TYPE t AS ENUM ('a')", NodeKind::kCreateEnum, "CREATE TYPE"},
      {"ALTER TYPE t ADD VALUE 'b'", NodeKind::kAlterEnum, "ALTER TYPE"},
      {"CREATE DOMAIN d AS int CHECK (VALUE > 0)", NodeKind::kCreateDomain, "CREATE DOMAIN"},
      {"CREATE EXTENSION IF NOT EXISTS x", NodeKind::kCreateExtension, "CREATE EXTENSION"},
      {"CREATE ROLE r", NodeKind::kCreateRole, "CREATE ROLE"},
      {"CREATE USER r PASSWORD 'x'", NodeKind::kCreateRole, "CREATE ROLE"},
      {"ALTER USER r SUPERUSER", NodeKind::kAlterRole, "ALTER ROLE"},
      {"ALTER ROLE r SET a TO 1", NodeKind::kAlterRole, "ALTER ROLE"},
      {"DROP USER r", NodeKind::kDropRole, "DROP ROLE"},
      {"GRANT SELECT ON t TO r", NodeKind::kGrant, "GRANT"},
      {"GRANT a TO b", NodeKind::kGrant, "GRANT ROLE"},
      {"REVOKE ALL ON SCHEMA s FROM r", NodeKind::kGrant, "REVOKE"},
      {"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO r", NodeKind::kGrant,
       "ALTER DEFAULT PRIVILEGES"},
      {"COMMENT ON TABLE t IS 'x'", NodeKind::kComment, "COMMENT"},
      {"COMMENT ON COLUMN s.t.c IS NULL", NodeKind::kComment, "COMMENT"},
      {"COMMENT ON CONSTRAINT c ON t IS 'x'", NodeKind::kComment, "COMMENT"},
      {"COMMENT ON FUNCTION f(int) IS 'x'", NodeKind::kComment, "COMMENT"},
      {"COMMENT ON DATABASE d IS 'x'", NodeKind::kComment, "COMMENT"},
      {"COMMENT ON TYPE d IS 'x'", NodeKind::kComment, "COMMENT"},
      {"TRUNCATE a, ONLY b RESTART IDENTITY CASCADE", NodeKind::kTruncate, "TRUNCATE TABLE"},
      {"COPY t FROM STDIN", NodeKind::kCopy, "COPY"},
      {"EXPLAIN SELECT 1", NodeKind::kExplain, "EXPLAIN"},
      {"BEGIN", NodeKind::kTransaction, "BEGIN"},
      {"START TRANSACTION", NodeKind::kTransaction, "START TRANSACTION"},
      {"END", NodeKind::kTransaction, "COMMIT"},
      {"ABORT", NodeKind::kTransaction, "ROLLBACK"},
      {"SAVEPOINT a", NodeKind::kTransaction, "SAVEPOINT"},
      {"RELEASE a", NodeKind::kTransaction, "RELEASE"},
      {"ROLLBACK TO a", NodeKind::kTransaction, "ROLLBACK"},
      {"PREPARE TRANSACTION 'a'", NodeKind::kTransaction, "PREPARE TRANSACTION"},
      {"COMMIT PREPARED 'a'", NodeKind::kTransaction, "COMMIT PREPARED"},
      {"SET a = 1", NodeKind::kVariableSet, "SET"},
      {"RESET ALL", NodeKind::kVariableSet, "RESET"},
      {"SHOW ALL", NodeKind::kVariableShow, "SHOW"},
      {"SET CONSTRAINTS ALL DEFERRED", NodeKind::kSetConstraints, "SET CONSTRAINTS"},
      {"PREPARE p (int) AS SELECT $1", NodeKind::kPrepare, "PREPARE"},
      {"EXECUTE p (1)", NodeKind::kExecute, "EXECUTE"},
      {"DEALLOCATE p", NodeKind::kDeallocate, "DEALLOCATE"},
      {"DEALLOCATE ALL", NodeKind::kDeallocate, "DEALLOCATE ALL"},
      {"DECLARE c CURSOR FOR SELECT 1", NodeKind::kDeclareCursor, "DECLARE CURSOR"},
      {"FETCH 5 FROM c", NodeKind::kFetch, "FETCH"},
      {"MOVE c", NodeKind::kFetch, "MOVE"},
      {"CLOSE c", NodeKind::kClosePortal, "CLOSE CURSOR"},
      {"CLOSE ALL", NodeKind::kClosePortal, "CLOSE CURSOR ALL"},
      {"LISTEN x", NodeKind::kListen, "LISTEN"},
      {"NOTIFY x, 'y'", NodeKind::kNotify, "NOTIFY"},
      {"UNLISTEN *", NodeKind::kUnlisten, "UNLISTEN"},
      {"LOCK TABLE t IN SHARE MODE NOWAIT", NodeKind::kLock, "LOCK TABLE"},
      {"VACUUM ANALYZE t (a, b)", NodeKind::kVacuum, "VACUUM"},
      {"ANALYZE", NodeKind::kVacuum, "ANALYZE"},
      {"CLUSTER t USING i", NodeKind::kCluster, "CLUSTER"},
      {"REINDEX TABLE t", NodeKind::kReindex, "REINDEX"},
      {"CHECKPOINT", NodeKind::kCheckpoint, "CHECKPOINT"},
      {"DISCARD ALL", NodeKind::kDiscard, "DISCARD ALL"},
      {"DO $$ BEGIN END $$", NodeKind::kDo, "DO"},
      {"CALL p(1)", NodeKind::kCall, "CALL"},
      {"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", NodeKind::kOther,
       "CREATE FUNCTION"},
      {"CREATE TRIGGER x BEFORE INSERT ON t EXECUTE FUNCTION f()", NodeKind::kOther,
       "CREATE TRIGGER"},
      {"CREATE TYPE t AS (a int)", NodeKind::kOther, "CREATE TYPE"},
      {"CREATE POLICY p ON t", NodeKind::kOther, "CREATE POLICY"},
      {"CREATE RULE r AS ON INSERT TO t DO INSTEAD NOTHING", NodeKind::kOther, "CREATE RULE"},
      {"CREATE AGGREGATE a (int) (sfunc = f, stype = int)", NodeKind::kOther, "CREATE AGGREGATE"},
      {"CREATE CAST (a AS b) WITHOUT FUNCTION", NodeKind::kOther, "CREATE CAST"},
      {"CREATE PUBLICATION p FOR ALL TABLES", NodeKind::kOther, "CREATE PUBLICATION"},
      {"CREATE TABLESPACE x LOCATION '/x'", NodeKind::kOther, "CREATE TABLESPACE"},
      {"MERGE INTO t USING u ON a = b WHEN MATCHED THEN DELETE", NodeKind::kOther, "MERGE"},
      {"ALTER SYSTEM SET a = 1", NodeKind::kOther, "ALTER SYSTEM"},
      {"SECURITY LABEL ON TABLE t IS 'x'", NodeKind::kOther, "SECURITY LABEL"},
      {"REASSIGN OWNED BY a TO b", NodeKind::kOwned, "REASSIGN OWNED"},
      {"CREATE STATISTICS s ON a, b FROM t", NodeKind::kOther, "CREATE STATISTICS"},
  };
  for (const Case& c : cases) {
    Statement statement = One(c.text);
    EXPECT_EQ(static_cast<int>(statement.ast->kind), static_cast<int>(c.kind)) << c.text;
    EXPECT_EQ(statement.tag, c.tag) << c.text;
  }
}

TEST(Parser, SplitsStatementsAndKnowsTheirText) {
  const std::string text = " SELECT 1 ; -- note\n ;/* x /* y */ */ INSERT INTO t VALUES (';') ;\n";
  auto result = Parse(text);
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->size(), 2u);
  EXPECT_EQ((*result)[0].TextIn(text), "SELECT 1");
  EXPECT_EQ((*result)[1].TextIn(text), "INSERT INTO t VALUES (';')");
  EXPECT_TRUE(Parse("")->empty());
  EXPECT_TRUE(Parse(" ; ; -- nothing")->empty());
  EXPECT_EQ(ErrorOf("SELECT 1; SELEC").position(), 11);
}

TEST(Parser, ReportsErrorsWithStateAndPosition) {
  Status status = ErrorOf("selec 1");
  EXPECT_EQ(status.message(), "syntax error at or near \"selec\"");
  EXPECT_EQ(status.sqlstate(), "42601");
  EXPECT_EQ(status.position(), 1);
  status = ErrorOf("SELECT 'größe', 日本 FROM WHERE");
  EXPECT_EQ(status.message(), "syntax error at or near \"WHERE\"");
  EXPECT_EQ(status.position(), 25);  // characters, not bytes
  EXPECT_EQ(ErrorOf("SELECT (1").message(), "syntax error at end of input");
  EXPECT_EQ(ErrorOf("SELECT 'x").message(), "unterminated quoted string at or near \"'x\"");
  EXPECT_EQ(ErrorOf("SELECT \xff").sqlstate(), sqlstate::kCharacterNotInRepertoire);
  EXPECT_EQ(ErrorOf("SELECT '\xff\xfe'").message(),
            "invalid byte sequence for encoding \"UTF8\": 0xff 0xfe 0x27");
  EXPECT_EQ(ErrorOf(std::string_view("SELECT 1\0", 9)).sqlstate(), "22021");
  EXPECT_EQ(ErrorOf("CREATE ASSERTION a CHECK (true)").sqlstate(), "0A000");
  EXPECT_EQ(ErrorOf("CREATE TABLE t (a int DEFERRABLE)").message(), "misplaced DEFERRABLE clause");
  EXPECT_EQ(ErrorOf("SELECT a.b.c.d()").sqlstate(), "42601");
  EXPECT_EQ(ParseOne("SELECT 1; SELECT 2").status().sqlstate(), "42601");
  EXPECT_EQ(ParseOne(" -- x")->ast, nullptr);
}

TEST(Parser, RefusesParametersWhereSqlHasNone) {
  EXPECT_EQ(ErrorOf("SET a = $1").sqlstate(), "42601");
  EXPECT_EQ(ErrorOf("CREATE ROLE r PASSWORD $1").sqlstate(), "42601");
  EXPECT_FALSE(Parse("SELECT ?").ok());
  EXPECT_FALSE(Parse("SELECT a ? b FROM t WHERE ? = 1").ok());
}

std::string Repeat(std::string_view text, int times) {
  std::string out;
  out.reserve(text.size() * times);
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Parser, KeepsLongStatementsFlat) {
  const int n = 100000;
  for (const char* link :
       {" + 1", " || 'x'", " AND true", " OR false", "::int", " COLLATE \"C\""}) {
    auto result = Parse("SELECT 1" + Repeat(link, n));
    if (!result.ok()) {
      EXPECT_EQ(result.status().sqlstate(), sqlstate::kStatementTooComplex) << link;
    }
    const std::string_view text = link;
    EXPECT_EQ(result.ok(), text != "::int" && text != " COLLATE \"C\"") << link;
  }
  EXPECT_TRUE(Parse("SELECT 1 IN (1" + Repeat(", 1", n) + ")").ok());
  EXPECT_TRUE(Parse("VALUES (1)" + Repeat(", (1)", n)).ok());
  auto unions = Parse("SELECT 1" + Repeat(" UNION ALL SELECT 1", 20000));
  ASSERT_TRUE(unions.ok());
  EXPECT_EQ((*unions)[0].ast->As<ast::SelectStmt>().operands.size(), 20001u);
  auto sum = Parse("SELECT 1" + Repeat(" + 1", n));
  const ast::Expr& chain = *(*sum)[0].ast->As<ast::SelectStmt>().targets[0].expr;
  ASSERT_TRUE(chain.Is<ast::OperatorChain>());
  EXPECT_EQ(chain.As<ast::OperatorChain>().links.size(), 100000u);
}

TEST(Parser, RefusesWhatNestsTooDeep) {
  for (const auto& [open, close] :
       {std::pair("(", ")"), std::pair("NOT ", ""), std::pair("- ", ""), std::pair("(SELECT ", ")"),
        std::pair("ARRAY[", "]"), std::pair("abs(", ")"), std::pair("1 + (", ")"),
        std::pair("CASE WHEN true THEN ", " END")}) {
    for (int depth : {300, 2000, 30000}) {
      auto result = Parse("SELECT " + Repeat(open, depth) + "1" + Repeat(close, depth));
      if (depth == 300) {
        EXPECT_TRUE(result.ok()) << open << result.status().ToString();
      } else if (!result.ok()) {
        EXPECT_EQ(result.status().sqlstate(), sqlstate::kStatementTooComplex) << open << depth;
        EXPECT_EQ(result.status().message(), "stack depth limit exceeded");
      }
    }
  }
}

TEST(Parser, WorksInManyThreads) {
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&good, i] {
      for (int k = 0; k < 300; ++k) {
        const std::string text = "SELECT a" + std::to_string(i) + " FROM t WHERE b = 'x' || $1";
        auto result = Parse(text);
        auto bad = Parse("SELECT a" + std::to_string(i) + " FORM t u");
        const bool named = result.ok() && (*result)[0]
                                                  .ast->As<ast::SelectStmt>()
                                                  .targets[0]
                                                  .expr->As<ast::ColumnRef>()
                                                  .parts[0] == "a" + std::to_string(i);
        if (named && !bad.ok() && bad.status().position() == 16) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 1200);
}

// Each thread that parsed used to take a pthread key, of which a process has 1,024, for good.
TEST(Parser, ThreadsLeaveNothingBehind) {
  const long keys = ::sysconf(_SC_THREAD_KEYS_MAX);
  ASSERT_GT(keys, 0);
  for (long i = 0; i < keys + 100; ++i) {
    bool parsed = false;
    std::thread([&parsed] { parsed = Parse("SELECT 1").ok(); }).join();
    ASSERT_TRUE(parsed) << i;
  }
  pthread_key_t key;
  ASSERT_EQ(::pthread_key_create(&key, nullptr), 0);
  ::pthread_key_delete(key);
}

std::string Times(size_t count, std::string_view text) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

// PostgreSQL's scanner alone would take minutes for these.
TEST(Parser, CommentsCostTheirLength) {
  constexpr size_t kMany = 200000;
  const std::string texts[] = {
      "SELECT " + Times(kMany, "/*") + "x" + Times(kMany, "*/") + " 1 + a.b",
      "SELECT " + Times(kMany, "/**/") + " 1 + a.b",
      "SELECT " + Times(kMany, "/*+x*/") + " 1 + a.b",
      "SELECT '/*' " + Times(kMany, "/*'*/") + " || $$/*$$ -- /*\n" + Times(kMany, "/*\xC3\xA4*/"),
  };
  for (const std::string& text : texts) {
    const Statement statement = One(text);
    EXPECT_EQ(statement.tag, "SELECT") << text.substr(0, 20);
  }
  // Positions count from the beginning of the text as it is, in characters.
  const std::string prefix = "SELECT /*\xC3\xA4*/" + Times(40, "/*/**/*/");
  const Status wrong = ErrorOf(prefix + " FROM FROM");
  EXPECT_EQ(wrong.position(), static_cast<int>(prefix.size()) - 1 + 6 + 1);
  const Status open = ErrorOf("SELECT 1 " + Times(kMany, "/*"));
  EXPECT_EQ(open.sqlstate(), "42601");
  EXPECT_EQ(open.position(), 10);
  EXPECT_TRUE(open.message().starts_with("unterminated /* comment at or near \"/*/*"));
  // What only looks like a comment is left alone.
  const Statement kept = One("SELECT '" + Times(40, "/*-") + "'" + Times(40, "/*-*/"));
  EXPECT_EQ(kept.ast->As<ast::SelectStmt>().targets[0].expr->As<ast::Const>().text,
            Times(40, "/*-"));
}

}  // namespace
}  // namespace cellar::sql
