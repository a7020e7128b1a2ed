// Names, types and errors.
#include "cellar/sql/plan/test_catalog.h"

namespace cellar::sql {
namespace {

class Binder : public PlannerTest {
 protected:
  void SetUp() override {
    PlannerTest::SetUp();
    Ddl("CREATE TABLE t (id int PRIMARY KEY, a int, b text, c timestamp, d numeric(10,2), f "
        "boolean,"
        "                v varchar(5));"
        "CREATE TABLE u (id bigint PRIMARY KEY, t_id int REFERENCES t, w text);"
        "CREATE TABLE g (k int PRIMARY KEY, x int, y int GENERATED ALWAYS AS (x * 2) STORED,"
        "                z int DEFAULT 7, CHECK (x > 0));"
        "CREATE TABLE n (q int, r text)");
    View("recent", "SELECT id, a AS aa FROM t WHERE a > 10");
    View("counted", "SELECT count(*) FROM t");
    virtual_.Add("pg_class",
                 "oid oid, relname name, relnamespace oid, relkind \"char\", relam oid");
    virtual_.Add("pg_namespace", "oid oid, nspname name");
    virtual_.Add("pg_index",
                 "indexrelid oid, indrelid oid, indkey int2vector, indisprimary boolean");
    virtual_.Add("pg_attribute", "attrelid oid, attname name, atttypid oid, attnum int2");
  }
};

struct ErrorCase {
  const char *sql, *error;
};

TEST_F(Binder, ErrorsAreThoseOfPostgres) {
  const ErrorCase kCases[] = {
      {"SELECT * FROM missing", "42P01: relation \"missing\" does not exist"},
      {"SELECT * FROM s.missing", "42P01: relation \"s.missing\" does not exist"},
      {"SELECT nope FROM t", "42703: column \"nope\" does not exist"},
      {"SELECT t.nope FROM t", "42703: column t.nope does not exist"},
      {"SELECT x.a FROM t", "42P01: missing FROM-clause entry for table \"x\""},
      {"SELECT t.a FROM t AS x", "42P01: invalid reference to FROM-clause entry for table \"t\""},
      {"SELECT id FROM t, u", "42702: column reference \"id\" is ambiguous"},
      {"SELECT * FROM t, t", "42712: table name \"t\" specified more than once"},
      {"SELECT a FROM t GROUP BY b",
       "42803: column \"t.a\" must appear in the GROUP BY clause or be used in an aggregate "
       "function"},
      {"SELECT a, count(*) FROM t",
       "42803: column \"t.a\" must appear in the GROUP BY clause or be used in an aggregate "
       "function"},
      {"SELECT * FROM t WHERE count(*) > 1", "42803: aggregate functions are not allowed in WHERE"},
      {"SELECT sum(count(*)) FROM t", "42803: aggregate function calls cannot be nested"},
      {"SELECT a FROM t GROUP BY count(*)",
       "42803: aggregate functions are not allowed in GROUP BY"},
      {"SELECT * FROM t JOIN u ON sum(a) > 1",
       "42803: aggregate functions are not allowed in JOIN conditions"},
      {"SELECT a FROM t HAVING a > 1",
       "42803: column \"t.a\" must appear in the GROUP BY clause or be used in an aggregate "
       "function"},
      {"SELECT (SELECT t.a) FROM t GROUP BY b",
       "42803: subquery uses ungrouped column \"t.a\" from outer query"},
      {"SELECT row_number() FROM t", "42P20: window function row_number requires an OVER clause"},
      {"SELECT * FROM t WHERE row_number() OVER () > 1",
       "42P20: window functions are not allowed in WHERE"},
      {"SELECT lower(a) OVER () FROM t",
       "42809: OVER specified, but lower is not a window function nor an aggregate function"},
      {"SELECT sum(a) OVER w FROM t", "42704: window \"w\" does not exist"},
      {"SELECT * FROM t WHERE a",
       "42804: argument of WHERE must be type boolean, not type integer"},
      {"SELECT * FROM t WHERE NOT a",
       "42804: argument of NOT must be type boolean, not type integer"},
      {"SELECT a + b FROM t", "42883: operator does not exist: integer + text"},
      {"SELECT nofunc(a) FROM t", "42883: function nofunc(integer) does not exist"},
      {"SELECT a::date FROM t", "42846: cannot cast type integer to date"},
      {"SELECT 'x'::int", "22P02: invalid input syntax for type integer: \"x\""},
      {"SELECT 1::nosuch", "42704: type \"nosuch\" does not exist"},
      {"SELECT * FROM t ORDER BY 9", "42P10: ORDER BY position 9 is not in select list"},
      {"SELECT a FROM t GROUP BY 2", "42P10: GROUP BY position 2 is not in select list"},
      {"SELECT a FROM t ORDER BY 'x'", "42601: non-integer constant in ORDER BY"},
      {"SELECT DISTINCT a FROM t ORDER BY b",
       "42P10: for SELECT DISTINCT, ORDER BY expressions must appear in select list"},
      {"SELECT DISTINCT ON (a) a, b FROM t ORDER BY b",
       "42P10: SELECT DISTINCT ON expressions must match initial ORDER BY expressions"},
      {"SELECT a FROM t LIMIT a", "42P10: argument of LIMIT must not contain variables"},
      {"SELECT a FROM t LIMIT true",
       "42804: argument of LIMIT must be type bigint, not type boolean"},
      {"SELECT 1 UNION SELECT 1, 2",
       "42601: each UNION query must have the same number of columns"},
      {"SELECT 1 UNION SELECT true", "42804: UNION types integer and boolean cannot be matched"},
      {"VALUES (1), (2, 3)", "42601: VALUES lists must all be the same length"},
      {"SELECT CASE WHEN true THEN 1 ELSE true END",
       "42804: CASE types boolean and integer cannot be matched"},
      {"SELECT ARRAY[]", "42P18: cannot determine type of empty array"},
      {"SELECT (SELECT 1, 2)", "42601: subquery must return only one column"},
      {"SELECT * FROM t WHERE a IN (SELECT 1, 2)", "42601: subquery has too many columns"},
      {"SELECT (1, 2) = (1, 2, 3)", "42601: unequal number of entries in row expressions"},
      {"SELECT * FROM t AS x(p, q, r, s, t, u, v, w)",
       "42P10: table \"x\" has 7 columns available but 8 columns specified"},
      {"SELECT * FROM t JOIN u USING (nope)",
       "42703: column \"nope\" specified in USING clause does not exist in left table"},
      {"SELECT * FROM t WHERE a = $1 AND f = $1",
       "42883: operator does not exist: boolean = integer"},
      {"SELECT b COLLATE \"de_DE\" FROM t",
       "42704: collation \"de_DE\" for encoding \"UTF8\" does not exist"},
      {"SELECT $2 + 1", "42P18: could not determine data type of parameter $1"},
      {"INSERT INTO t VALUES (1, 2, 3, 4, 5, 6, 7, 8)",
       "42601: INSERT has more expressions than target columns"},
      {"INSERT INTO t (id, a) VALUES (1)",
       "42601: INSERT has more target columns than expressions"},
      {"INSERT INTO t (id, id) VALUES (1, 2)", "42701: column \"id\" specified more than once"},
      {"INSERT INTO t (zz) VALUES (1)", "42703: column \"zz\" of relation \"t\" does not exist"},
      {"INSERT INTO t (id) VALUES (true)",
       "42804: column \"id\" is of type integer but expression is of type boolean"},
      {"INSERT INTO t (id) SELECT b FROM t",
       "42804: column \"id\" is of type integer but expression is of type text"},
      {"INSERT INTO g (k, y) VALUES (1, 2)",
       "428C9: cannot insert a non-DEFAULT value into column \"y\""},
      {"INSERT INTO t (id) VALUES (1) ON CONFLICT (a) DO NOTHING",
       "42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification"},
      {"INSERT INTO t (id) VALUES (1) ON CONFLICT ON CONSTRAINT zz DO NOTHING",
       "42704: constraint \"zz\" for table \"t\" does not exist"},
      {"INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET a = a + 1",
       "42702: column reference \"a\" is ambiguous"},
      {"INSERT INTO counted VALUES (1)", "55000: cannot insert into view \"counted\""},
      {"UPDATE t SET zz = 1", "42703: column \"zz\" of relation \"t\" does not exist"},
      {"UPDATE t SET a = 1, a = 2", "42601: multiple assignments to same column \"a\""},
      {"UPDATE t SET a = 'x'", "22P02: invalid input syntax for type integer: \"x\""},
      {"UPDATE t SET a = b",
       "42804: column \"a\" is of type integer but expression is of type text"},
      {"UPDATE g SET y = 1", "428C9: column \"y\" can only be updated to DEFAULT"},
      {"UPDATE t SET a = count(*)", "42803: aggregate functions are not allowed in UPDATE"},
      {"DELETE FROM missing", "42P01: relation \"missing\" does not exist"},
      {"DELETE FROM pg_class", "42501: permission denied: \"pg_class\" is a system catalog"},
      {"SELECT * FROM t x, LATERAL (SELECT y.a) z",
       "42P01: missing FROM-clause entry for table \"y\""},
      {"WITH w AS (SELECT 1), w AS (SELECT 2) SELECT 1",
       "42712: WITH query name \"w\" specified more than once"},
      {"SELECT generate_series(1, 2) FROM t WHERE generate_series(1, 2) = 1",
       "0A000: set-returning functions are not allowed in WHERE"},
      {"SELECT a FROM t FOR UPDATE OF zz",
       "42P01: relation \"zz\" in FOR UPDATE clause not found in FROM clause"},
      {"SELECT DISTINCT a FROM t FOR UPDATE",
       "0A000: FOR UPDATE is not allowed with DISTINCT clause"},
  };
  for (const ErrorCase& c : kCases) EXPECT_EQ(ErrorOf(c.sql), c.error) << c.sql;
}

TEST_F(Binder, ErrorsCarryTheOffset) {
  EXPECT_EQ(TryPlan("SELECT id, nope FROM t").status().location(), 11);
  EXPECT_EQ(TryPlan("SELECT * FROM missing").status().location(), 14);
  EXPECT_EQ(TryPlan("SELECT 1 FROM t WHERE a + b > 1").status().location(), 24);
  EXPECT_EQ(TryPlan("SELECT b, count(*) FROM t GROUP BY a").status().location(), 7);
  EXPECT_EQ(TryPlan("INSERT INTO t (id) VALUES ('q')").status().location(), 27);
}

TEST_F(Binder, OutputNamesAndTypes) {
  EXPECT_EQ(Columns("SELECT 1, 'x', NULL, 2.5, true"),
            "?column? integer, ?column? text, ?column? text, ?column? numeric, ?column? boolean");
  EXPECT_EQ(Columns("SELECT a::text, b::varchar(3), count(*), max(d) FROM t GROUP BY a, b"),
            "a text, b character varying(3), count bigint, max numeric");
  EXPECT_EQ(
      Columns("SELECT CASE WHEN f THEN 1 END, CASE WHEN f THEN 1 ELSE a END, coalesce(a, 1), "
              "EXISTS (SELECT 1), ARRAY[1, 2], (SELECT max(a) FROM t), 'x'::name FROM t"),
      "case integer, a integer, coalesce integer, exists boolean, array integer[], max integer, "
      "name name");
  EXPECT_EQ(Columns("SELECT * FROM recent"), "id integer, aa integer");
  EXPECT_EQ(Columns("SELECT * FROM t x(p) JOIN u USING (id)"),
            "42703: column \"id\" specified in USING clause does not exist in left table");
  EXPECT_EQ(Columns("SELECT * FROM u NATURAL JOIN (SELECT 1::bigint AS id, 'z' AS z) s"),
            "id bigint, t_id integer, w text, z text");
  EXPECT_EQ(Columns("VALUES (1, 'a'), (2.5, NULL)"), "column1 numeric, column2 text");
  EXPECT_EQ(Columns("SELECT 1 AS x UNION ALL SELECT 2.5"), "x numeric");
  EXPECT_EQ(Columns("SELECT * FROM n"), "q integer, r text") << "the row id stays hidden";
  EXPECT_EQ(Columns("SELECT current_date, now() - now(), c + interval '1 day' FROM t"),
            "current_date date, ?column? interval, ?column? timestamp without time zone");
}

TEST_F(Binder, ParametersTakeTypesFromTheirPlaces) {
  EXPECT_EQ(Parameters("SELECT * FROM t WHERE id = $1 AND b = $2 AND d > $3"),
            "integer, text, numeric");
  EXPECT_EQ(Parameters("INSERT INTO t (id, b, c) VALUES ($1, $2, $3)"),
            "integer, text, timestamp without time zone");
  EXPECT_EQ(Parameters("UPDATE t SET v = $1 WHERE id = $2"), "character varying, integer");
  EXPECT_EQ(Parameters("SELECT $1"), "text");
  EXPECT_EQ(Parameters("SELECT $1::int"), "integer");
  EXPECT_EQ(Parameters("SELECT * FROM t LIMIT $1 OFFSET $2"), "bigint, bigint");
  EXPECT_EQ(Parameters("SELECT * FROM t WHERE id IN ($1, $2)"), "integer, integer");
  EXPECT_EQ(Parameters("SELECT * FROM t WHERE id BETWEEN $1 AND $2"), "integer, integer");
  EXPECT_EQ(Parameters("SELECT coalesce($1, a) FROM t"), "integer");
  EXPECT_EQ(Parameters("SELECT * FROM t WHERE b LIKE $1"), "text");
}

TEST_F(Binder, CatalogQueriesOfClientsBind) {
  const char* const kQueries[] = {
      "SELECT n.nspname as \"Schema\", c.relname as \"Name\", CASE c.relkind WHEN 'r' THEN 'table' "
      "WHEN "
      "'v' THEN 'view' END as \"Type\" FROM pg_catalog.pg_class c LEFT JOIN "
      "pg_catalog.pg_namespace n ON "
      "n.oid = c.relnamespace WHERE c.relkind IN ('r','p','') AND n.nspname <> 'pg_catalog' AND "
      "n.nspname "
      "!~ '^pg_toast' ORDER BY 1,2",
      "SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN "
      "pg_catalog.pg_namespace n "
      "ON n.oid = c.relnamespace WHERE c.relname OPERATOR(pg_catalog.~) '^(t)$' COLLATE "
      "pg_catalog.default "
      "ORDER BY 2, 3",
      "SELECT result.TABLE_CAT, result.COLUMN_NAME, result.KEY_SEQ FROM (SELECT NULL AS TABLE_CAT, "
      "a.attname AS COLUMN_NAME, (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ, "
      "(information_schema._pg_expandarray(i.indkey)) AS KEYS, a.attnum AS A_ATTNUM FROM "
      "pg_catalog.pg_class ct JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid) JOIN "
      "pg_catalog.pg_index i ON (a.attrelid = i.indrelid) WHERE true AND i.indisprimary) result "
      "WHERE "
      "result.A_ATTNUM = (result.KEYS).x ORDER BY result.table_cat",
      "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND "
      "a.attnum = "
      "ANY (i.indkey) WHERE i.indrelid = 't'::regclass AND i.indisprimary",
      "SELECT oid::regclass::text, relnamespace::regnamespace FROM pg_class WHERE oid = 16385",
      "SELECT * FROM (SELECT relname, row_number() OVER (PARTITION BY relnamespace ORDER BY oid) "
      "AS rn FROM "
      "pg_class) c WHERE true ORDER BY rn",
      "SELECT x.oid, x.* FROM pg_class x",
      "SELECT i.indexrelid, k.n, k.attnum FROM pg_index i, unnest(i.indkey) WITH ORDINALITY AS "
      "k(attnum, n)",
      "SELECT ARRAY(SELECT attname FROM pg_attribute a WHERE a.attrelid = c.oid ORDER BY attnum) "
      "FROM "
      "pg_class c",
      "SELECT current_schema(), session_user, current_database()",
      "SELECT * FROM current_schema()",
      "SELECT relname FROM pg_class WHERE relname = ANY (current_schemas(false))",
  };
  for (const char* sql : kQueries) EXPECT_EQ(ErrorOf(sql), "ok") << sql;
}

TEST_F(Binder, CompositeValuesHaveFields) {
  EXPECT_EQ(Columns("SELECT (x).id, x.a FROM t x"), "id integer, a integer");
  EXPECT_EQ(Columns("SELECT (s.r).b FROM (SELECT t AS r FROM t) s"), "b text");
  EXPECT_EQ(
      Columns("SELECT (t).* FROM t"),
      "id integer, a integer, b text, c timestamp without time zone, d numeric(10,2), f boolean, v "
      "character varying(5)");
  EXPECT_EQ(ErrorOf("SELECT (t).nope FROM t"),
            "42703: could not identify column \"nope\" in record data type");
}

TEST_F(Binder, TablesUsedAreRecorded) {
  auto plan = TryPlan("INSERT INTO u (id, t_id) SELECT id, id FROM recent");
  ASSERT_TRUE(plan.ok());
  std::string names;
  for (const auto& table : (*plan)->tables) names += table->name + " ";
  EXPECT_EQ(names, "u recent t ");
  EXPECT_EQ((*plan)->kind, StatementKind::kInsert);
  EXPECT_FALSE((*plan)->returns_rows);
}

TEST_F(Binder, ConstraintsReachTheNodes) {
  auto plan = TryPlan("INSERT INTO u (id, t_id) VALUES (1, 2)");
  ASSERT_TRUE(plan.ok());
  const auto& insert = (*plan)->root->As<InsertNode>();
  ASSERT_EQ(insert.foreign_keys.size(), 1u);
  EXPECT_EQ(insert.foreign_keys[0].columns, std::vector<int>{1});
  auto del = TryPlan("DELETE FROM t WHERE id = 1");
  ASSERT_TRUE(del.ok());
  EXPECT_EQ((*del)->root->As<DeleteNode>().referenced_by.size(), 1u);
  auto update = TryPlan("UPDATE t SET a = 1 WHERE id = 1");
  EXPECT_EQ((*update)->root->As<UpdateNode>().referenced_by.size(), 0u);
  auto generated = TryPlan("UPDATE g SET x = x + 1 WHERE k = 1");
  ASSERT_TRUE(generated.ok());
  EXPECT_EQ((*generated)->root->As<UpdateNode>().assignments.size(), 2u);
  EXPECT_EQ((*generated)->root->As<UpdateNode>().checks.size(), 1u);
}

}  // namespace
}  // namespace cellar::sql
