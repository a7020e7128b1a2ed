#include "cellar/sql/parser/deparse.h"

#include <gtest/gtest.h>
#include <pg_query.h>

#include <string>

#include "cellar/sql/parser/keywords.h"
#include "cellar/sql/parser/parser.h"

namespace cellar::sql {
namespace {

std::string Expr(std::string_view text) {
  auto expr = ParseExpression(text);
  if (!expr.ok()) return expr.status().ToString();
  return DeparseExpr(**expr);
}

std::string Again(std::string_view text) {
  auto statement = ParseOne(text);
  if (!statement.ok()) return statement.status().ToString();
  return DeparseStatement(*statement->ast);
}

TEST(Deparse, WritesExpressionsAsPostgresDoes) {
  struct Case {
    const char* text;
    const char* want;
  };
  const Case cases[] = {
      {"a > 0", "(a > 0)"},
      {"a>0 and b<5 or not c", "(((a > 0) AND (b < 5)) OR (NOT c))"},
      {"now()", "now()"},
      {"nextval('s')", "nextval('s'::regclass)"},
      {"nextval('s'::regclass)", "nextval('s'::regclass)"},
      {"'it''s'::text", "'it''s'::text"},
      {"e'a\\\\b'", "E'a\\\\b'"},
      {"a::varchar(10)", "(a)::character varying(10)"},
      {"a::int[]", "(a)::integer[]"},
      {"cast(a as timestamp(3) with time zone)", "(a)::timestamp(3) with time zone"},
      {"a::numeric(10,2)", "(a)::numeric(10,2)"},
      {"a::char", "(a)::character(1)"},
      {"a::\"char\"", "(a)::\"char\""},
      {"a::interval day to second(3)", "(a)::interval day to second(3)"},
      {"interval '1' month", "'1'::interval month"},
      {"date '2020-01-01'", "'2020-01-01'::date"},
      {"-1", "'-1'::integer"},
      {"- a", "(- a)"},
      {"9999999999", "'9999999999'::bigint"},
      {"1.5e10", "1.5e10"},
      {"true", "true"},
      {"null", "NULL"},
      {"b'101'", "B'101'"},
      {"a in (1,2)", "(a IN (1, 2))"},
      {"a not in ('x')", "(a NOT IN ('x'))"},
      {"a like 'x%'", "(a LIKE 'x%')"},
      {"a not ilike 'x%'", "(a NOT ILIKE 'x%')"},
      {"a like 'x' escape '!'", "(a LIKE 'x' ESCAPE '!')"},
      {"a similar to 'x'", "(a SIMILAR TO 'x')"},
      {"a between 1 and 2", "(a BETWEEN 1 AND 2)"},
      {"a not between symmetric 1 and 2", "(a NOT BETWEEN SYMMETRIC 1 AND 2)"},
      {"a is not null", "(a IS NOT NULL)"},
      {"a is not true", "(a IS NOT TRUE)"},
      {"a is unknown", "(a IS UNKNOWN)"},
      {"a is distinct from b", "(a IS DISTINCT FROM b)"},
      {"a is not distinct from b", "(a IS NOT DISTINCT FROM b)"},
      {"case a when 1 then 'x' else 'y' end", "CASE a WHEN 1 THEN 'x' ELSE 'y' END"},
      {"coalesce(a, greatest(b, 1), nullif(c, 2))", "COALESCE(a, GREATEST(b, 1), NULLIF(c, 2))"},
      {"count(distinct a order by b desc nulls last) filter (where c)",
       "count(DISTINCT a ORDER BY b DESC NULLS LAST) FILTER (WHERE c)"},
      {"count(*) over (partition by a order by b rows between 1 preceding and current row)",
       "count(*) OVER (PARTITION BY a ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"},
      {"rank() over w", "rank() OVER w"},
      {"percentile_cont(0.5) within group (order by a)",
       "percentile_cont(0.5) WITHIN GROUP (ORDER BY a)"},
      {"f(a, variadic b)", "f(a, VARIADIC b)"},
      {"f(x => 1)", "f(x => 1)"},
      {"extract(year from d)", "EXTRACT(year FROM d)"},
      {"substring(a from 1 for 2)", "SUBSTRING(a FROM 1 FOR 2)"},
      {"substring(a, 1)", "\"substring\"(a, 1)"},
      {"position('x' in a)", "POSITION('x' IN a)"},
      {"trim(both 'x' from a)", "TRIM(BOTH 'x' FROM a)"},
      {"trim(a)", "TRIM(BOTH FROM a)"},
      {"overlay(a placing b from 1)", "OVERLAY(a PLACING b FROM 1)"},
      {"t at time zone 'UTC'", "(t AT TIME ZONE 'UTC')"},
      {"current_timestamp(2)", "CURRENT_TIMESTAMP(2)"},
      {"current_date", "CURRENT_DATE"},
      {"array[1,2,a]", "ARRAY[1, 2, a]"},
      {"a[1]", "a[1]"},
      {"(a).b[1:2]", "(a).b[1:2]"},
      {"(f(x)).*", "(f(x)).*"},
      {"row(1,2)", "ROW(1, 2)"},
      {"(1,2)", "(1, 2)"},
      {"a = any($1)", "(a = ANY ($1))"},
      {"a <> all(b)", "(a <> ALL (b))"},
      {"a collate \"C\"", "(a COLLATE \"C\")"},
      {"a operator(pg_catalog.~) 'x'", "(a ~ 'x')"},
      {"exists (select 1 from t where x)", "(EXISTS (SELECT 1 FROM t WHERE x))"},
      {"a in (select b from t)", "(a IN (SELECT b FROM t))"},
      {"array(select 1)", "ARRAY(SELECT 1)"},
      {"\"Weird\".\"select\"", "\"Weird\".\"select\""},
      {"a || 'x'::text || b", "((a || 'x'::text) || b)"},
  };
  for (const Case& c : cases) {
    const std::string got = Expr(c.text);
    EXPECT_EQ(got, c.want) << c.text;
    EXPECT_EQ(Expr(got), got) << c.text;
  }
}

std::string Fingerprint(const std::string& text) {
  PgQueryFingerprintResult result = pg_query_fingerprint(text.c_str());
  std::string out = result.error != nullptr ? result.error->message : result.fingerprint_str;
  pg_query_free_fingerprint_result(result);
  return out;
}

// The library's own view of a statement must not change when it goes through our tree. This fails
// when a field is forgotten, and when the headers' nodes are laid out unlike those of the linked
// library.
TEST(Deparse, KeepsTheMeaningTheLibrarySees) {
  const char* cases[] = {
      "SELECT 1",
      "SELECT * FROM t",
      "SELECT a.*, b.x AS y FROM a, s.b AS b WHERE a.id = b.id AND a.n > 5",
      "SELECT DISTINCT a FROM t ORDER BY a DESC NULLS FIRST LIMIT 10 OFFSET 5",
      "SELECT DISTINCT ON (a, b) a, b, c FROM t ORDER BY a, b, c USING <",
      "SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > 1",
      "SELECT a, b, sum(c) FROM t GROUP BY ROLLUP (a, b), GROUPING SETS ((a), (), (b, c)), CUBE "
      "(d)",
      "SELECT * FROM a JOIN b ON a.x = b.x LEFT JOIN c USING (y, z) NATURAL FULL JOIN d CROSS JOIN "
      "e",
      "SELECT * FROM a LEFT JOIN (b JOIN c ON b.i = c.i) ON a.i = b.i RIGHT JOIN d ON true",
      "SELECT * FROM (a JOIN b USING (i)) AS j (p, q)",
      "SELECT * FROM (SELECT 1) AS s (x), LATERAL (SELECT s.x) AS l",
      "SELECT * FROM generate_series(1, 3) WITH ORDINALITY AS g (n, o)",
      "SELECT * FROM json_to_record('{}') AS r (a int, b text)",
      "SELECT * FROM ROWS FROM (f(1) AS (a int), g(2)) AS z",
      "SELECT * FROM ONLY t FOR UPDATE OF t NOWAIT",
      "SELECT * FROM t FOR SHARE SKIP LOCKED",
      "VALUES (1, 'a'), (2, DEFAULT)",
      "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3",
      "SELECT 1 UNION SELECT 2 EXCEPT (SELECT 3 INTERSECT ALL SELECT 4) ORDER BY 1",
      "(SELECT 1 ORDER BY 1 LIMIT 1) UNION (SELECT 2)",
      "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM "
      "r",
      "WITH a AS MATERIALIZED (SELECT 1), b AS NOT MATERIALIZED (DELETE FROM t RETURNING *) SELECT "
      "* "
      "FROM a, b",
      "SELECT row_number() OVER w, lag(a, 1) OVER (w ROWS UNBOUNDED PRECEDING EXCLUDE TIES) FROM t "
      "WINDOW w AS (PARTITION BY b ORDER BY c DESC)",
      "SELECT sum(a) OVER (ORDER BY b RANGE BETWEEN '1 day' PRECEDING AND UNBOUNDED FOLLOWING)",
      "SELECT CASE WHEN a THEN 1 WHEN b THEN 2 END, CASE x WHEN 1 THEN 2 ELSE 3 END",
      "SELECT a IN (1, 2), a NOT IN (SELECT 1), (a, b) IN (SELECT 1, 2), (a, b) = (1, 2)",
      "SELECT a LIKE 'x', a NOT LIKE 'x' ESCAPE 'y', a ILIKE 'x', a SIMILAR TO 'x' ESCAPE '#'",
      "SELECT a BETWEEN 1 AND 2, a NOT BETWEEN SYMMETRIC 1 AND 2",
      "SELECT a IS NULL, a IS NOT TRUE, a IS DISTINCT FROM b, a IS NOT DISTINCT FROM b",
      "SELECT a = ANY (b), a = ALL (ARRAY[1, 2]), a < SOME (SELECT 1), EXISTS (SELECT), "
      "ARRAY(SELECT 1)",
      "SELECT x[1], x[1:2][3], (y).z, (y).*, (f(a)).b[2], $1, $2::text",
      "SELECT 'a'::text, CAST(b AS varchar(10)), c::timestamp(3) with time zone, d::int[][], "
      "e::my.type",
      "SELECT interval '1' day, interval(3) '1 s', interval '1-2' year to month, time '10:00'",
      "SELECT extract(year FROM d), substring(a FROM 1), trim(LEADING 'x' FROM a), position('a' IN "
      "b)",
      "SELECT a AT TIME ZONE 'UTC', (a, b) OVERLAPS (c, d), a COLLATE \"C\", normalize(a, NFC)",
      "SELECT coalesce(a, b), greatest(a, b), least(a), nullif(a, b), ROW(a, b), ROW(), (a, b)",
      "SELECT current_date, current_timestamp, current_timestamp(3), localtime, current_user, user",
      "SELECT count(DISTINCT a), string_agg(a, ',' ORDER BY b), mode() WITHIN GROUP (ORDER BY c)",
      "SELECT count(*) FILTER (WHERE a > 1), f(VARIADIC a), g(x => 1, y => 2), GROUPING(a, b)",
      "SELECT 1 FETCH FIRST 3 ROWS ONLY",
      "SELECT a FROM t ORDER BY a FETCH FIRST 3 ROWS WITH TIES",
      "SELECT -a, +b, @ c, !! d, a OPERATOR(s.+) b, NOT a, a AND (b OR c) AND NOT (d AND e)",
      "INSERT INTO t VALUES (1, DEFAULT)",
      "INSERT INTO s.t AS x (a, b[1], c.d) SELECT 1, 2, 3 RETURNING *, a AS z",
      "INSERT INTO t DEFAULT VALUES",
      "INSERT INTO t (a) OVERRIDING SYSTEM VALUE VALUES (1) ON CONFLICT DO NOTHING",
      "INSERT INTO t (a) VALUES (1) ON CONFLICT (a, (lower(b)) COLLATE \"C\") WHERE a > 0 DO "
      "UPDATE SET "
      "b = excluded.b, (c, d) = ROW(1, 2) WHERE t.b IS NULL",
      "INSERT INTO t (a) VALUES (1) ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING RETURNING a",
      "UPDATE t SET a = 1, b = DEFAULT, (c, d) = (SELECT 1, 2), (e, f) = (1, DEFAULT), g = 7",
      "UPDATE ONLY t AS x SET a = y.a FROM u AS y WHERE x.i = y.i RETURNING x.*",
      "UPDATE t SET a = 1 WHERE CURRENT OF c",
      "DELETE FROM t USING u WHERE t.i = u.i RETURNING 1",
      "WITH w AS (SELECT 1) DELETE FROM ONLY t AS x",
      "WITH w AS (SELECT 1) INSERT INTO t SELECT * FROM w",
  };
  for (const char* text : cases) {
    const std::string written = Again(text);
    EXPECT_EQ(Fingerprint(written), Fingerprint(text)) << text << "\n" << written;
    EXPECT_EQ(Again(written), written) << text;
  }
}

TEST(Deparse, LaysViewsOutByClause) {
  auto statement = ParseOne(
      "CREATE VIEW v AS SELECT a, count(*) AS n FROM t JOIN u ON t.i = u.i WHERE a > 1 GROUP BY a "
      "HAVING count(*) > 1 ORDER BY a LIMIT 3");
  ASSERT_TRUE(statement.ok());
  EXPECT_EQ(
      DeparseView(*statement->ast->As<ast::CreateViewStmt>().query),
      " SELECT a,\n    count(*) AS n\n   FROM t\n     JOIN u ON (t.i = u.i)\n  WHERE (a > 1)\n"
      "  GROUP BY a\n HAVING (count(*) > 1)\n  ORDER BY a\n LIMIT 3");
}

TEST(Deparse, QuotesWhatNeedsIt) {
  EXPECT_EQ(QuoteIdentifier("abc_1"), "abc_1");
  EXPECT_EQ(QuoteIdentifier("Abc"), "\"Abc\"");
  EXPECT_EQ(QuoteIdentifier("1a"), "\"1a\"");
  EXPECT_EQ(QuoteIdentifier(""), "\"\"");
  EXPECT_EQ(QuoteIdentifier("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(QuoteIdentifier("user"), "\"user\"");
  EXPECT_EQ(QuoteIdentifier("name"), "name");
  EXPECT_EQ(QuoteIdentifier("größe"), "\"größe\"");
  EXPECT_EQ(QuoteQualified("s", "Order"), "s.\"Order\"");
  EXPECT_EQ(QuoteLiteral("it's"), "'it''s'");
  EXPECT_EQ(QuoteLiteral("a\\b"), "E'a\\\\b'");
}

TEST(Deparse, ShowsDefaultsWithTheirType) {
  auto show = [](std::string_view text, std::string_view type) {
    return DeparseDefault(**ParseExpression(text), type);
  };
  EXPECT_EQ(show("'x'", "character varying"), "'x'::character varying");
  EXPECT_EQ(show("null", "text"), "NULL::text");
  EXPECT_EQ(show("0", "integer"), "0");
  EXPECT_EQ(show("now()", "timestamp with time zone"), "now()");
}

TEST(Deparse, WritesLongChains) {
  std::string text = "SELECT 1";
  for (int i = 0; i < 3000; ++i) text += i % 2 == 0 ? " + a" : " - 2";
  const std::string written = Again(text);
  EXPECT_EQ(Fingerprint(written), Fingerprint(text));
  EXPECT_EQ(Again(written), written);
}

TEST(Keywords, AreThoseOfTheGrammar) {
  EXPECT_EQ(FindKeyword("select"), KeywordCategory::kReserved);
  EXPECT_EQ(FindKeyword("between"), KeywordCategory::kColumnName);
  EXPECT_EQ(FindKeyword("left"), KeywordCategory::kTypeOrFunction);
  EXPECT_EQ(FindKeyword("abort"), KeywordCategory::kUnreserved);
  EXPECT_EQ(FindKeyword("abc"), KeywordCategory::kNone);
  EXPECT_GT(Keywords().size(), 400u);
}

}  // namespace
}  // namespace cellar::sql
