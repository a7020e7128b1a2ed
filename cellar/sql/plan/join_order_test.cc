// Several tables: order, methods, outer and semi joins, subqueries.
#include "cellar/sql/plan/binder.h"
#include "cellar/sql/plan/physical.h"
#include "cellar/sql/plan/test_catalog.h"

namespace cellar::sql {
namespace {

class JoinOrder : public PlannerTest {
 protected:
  void SetUp() override {
    PlannerTest::SetUp();
    Ddl("CREATE TABLE big (id int PRIMARY KEY, k int, s text); CREATE INDEX big_k ON big (k);"
        "CREATE TABLE mid (id int PRIMARY KEY, big_id int, v text); CREATE INDEX mid_b ON mid "
        "(big_id);"
        "CREATE TABLE tiny (id int PRIMARY KEY, mid_id int)");
    Rows("big", 1000000);
    Rows("mid", 10000);
    Rows("tiny", 5);
  }
};

TEST_F(JoinOrder, StartsWithTheSmallSideAndLooksUp) {
  EXPECT_EQ(
      Explain("SELECT b.s FROM big b, mid m, tiny t WHERE b.id = m.big_id AND m.id = t.mid_id"),
      "Lookup Join using big_pkey on big b\n"
      "  Lookup Cond: (id = m.big_id)\n"
      "  ->  Lookup Join using mid_pkey on mid m\n"
      "        Lookup Cond: (id = t.mid_id)\n"
      "        ->  Seq Scan on tiny t");
}

TEST_F(JoinOrder, ConstantsSpreadThroughEqualities) {
  EXPECT_EQ(Explain("SELECT 1 FROM mid m JOIN big b ON b.id = m.big_id WHERE b.id = 7"),
            "Lookup Join using mid_b on mid m\n"
            "  Lookup Cond: (big_id = b.id)\n"
            "  Join Filter: (m.big_id = 7)\n"
            "  ->  Index Scan using big_pkey on big b\n"
            "        Spans: [(7) - (7)]");
}

TEST_F(JoinOrder, HashJoinBuildsTheSmallerSide) {
  EXPECT_EQ(Explain("SELECT * FROM big b JOIN mid m ON b.k = m.id"),
            "Hash Join\n"
            "  Hash Cond: (b.k = m.id)\n"
            "  ->  Seq Scan on big b\n"
            "  ->  Seq Scan on mid m");
}

TEST_F(JoinOrder, LeftJoinBecomesInnerWhenWhereRejectsNulls) {
  EXPECT_EQ(Explain("SELECT * FROM tiny t LEFT JOIN mid m ON m.id = t.mid_id WHERE m.v = 'x'"),
            "Lookup Join using mid_pkey on mid m\n"
            "  Lookup Cond: (id = t.mid_id)\n"
            "  Join Filter: (m.v = 'x'::text)\n"
            "  ->  Seq Scan on tiny t");
  EXPECT_EQ(Explain("SELECT * FROM tiny t LEFT JOIN mid m ON m.id = t.mid_id WHERE m.v IS NULL"),
            "Filter\n"
            "  Filter: (m.v IS NULL)\n"
            "  ->  Lookup Left Join using mid_pkey on mid m\n"
            "        Lookup Cond: (id = t.mid_id)\n"
            "        ->  Seq Scan on tiny t");
}

TEST_F(JoinOrder, OnConditionsStayWithTheOuterJoin) {
  EXPECT_EQ(
      Explain("SELECT * FROM tiny t LEFT JOIN mid m ON m.id = t.mid_id AND t.id > 1 AND m.v = 'x'"),
      "Lookup Left Join using mid_pkey on mid m\n"
      "  Lookup Cond: (id = t.mid_id)\n"
      "  Join Filter: ((t.id > 1) AND (m.v = 'x'::text))\n"
      "  ->  Seq Scan on tiny t");
}

TEST_F(JoinOrder, ExistsAndInBecomeSemiJoins) {
  EXPECT_EQ(
      Explain("SELECT * FROM tiny t WHERE EXISTS (SELECT 1 FROM mid m WHERE m.big_id = t.id)"),
      "Lookup Semi Join using mid_b on mid m\n"
      "  Lookup Cond: (big_id = t.id)\n"
      "  ->  Seq Scan on tiny t");
  EXPECT_EQ(
      Explain("SELECT * FROM tiny t WHERE NOT EXISTS (SELECT 1 FROM mid m WHERE m.big_id = t.id)"),
      "Lookup Anti Join using mid_b on mid m\n"
      "  Lookup Cond: (big_id = t.id)\n"
      "  ->  Seq Scan on tiny t");
  EXPECT_EQ(Explain("SELECT * FROM tiny t WHERE t.mid_id IN (SELECT m.id FROM mid m)"),
            "Lookup Semi Join using mid_pkey on mid m\n"
            "  Lookup Cond: (id = t.mid_id)\n"
            "  ->  Seq Scan on tiny t");
  EXPECT_EQ(Explain("SELECT * FROM mid WHERE id NOT IN (SELECT mid_id FROM tiny)"),
            "Hash Anti Join\n"
            "  Hash Cond: (mid.id = tiny.mid_id)\n"
            "  ->  Seq Scan on mid\n"
            "  ->  Seq Scan on tiny");
}

TEST_F(JoinOrder, ViewsAndSubqueriesFlatten) {
  View("joined",
       "SELECT m.id AS mid, b.k + 1 AS kk, b.id AS bid FROM mid m JOIN big b ON b.id = m.big_id");
  EXPECT_EQ(Explain("SELECT kk FROM joined WHERE mid = 3"),
            "Lookup Join using big_pkey on big b\n"
            "  Lookup Cond: (id = m.big_id)\n"
            "  ->  Index Scan using mid_pkey on mid m\n"
            "        Spans: [(3) - (3)]");
  EXPECT_EQ(Explain("SELECT * FROM (SELECT id, k * 2 AS d FROM big) x WHERE d = 8 AND id = 4"),
            "Index Scan using big_pkey on big\n"
            "  Spans: [(4) - (4)]\n"
            "  Filter: ((k * 2) = 8)");
  EXPECT_EQ(
      Explain("SELECT * FROM (SELECT id FROM big UNION ALL SELECT id FROM mid) x WHERE id = 4"),
      "Append\n"
      "  ->  Index Scan using big_pkey on big\n"
      "        Spans: [(4) - (4)]\n"
      "  ->  Index Scan using mid_pkey on mid\n"
      "        Spans: [(4) - (4)]");
}

TEST_F(JoinOrder, UncorrelatedScalarsRunOnceAndCorrelatedOnesGetSlots) {
  auto plan = TryPlan(
      "SELECT (SELECT count(*) FROM mid), (SELECT v FROM mid WHERE mid.id = tiny.mid_id) "
      "FROM tiny");
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ((*plan)->subplans.size(), 2u);
  const auto& project = (*plan)->root->As<ProjectNode>();
  EXPECT_TRUE(project.exprs[0]->slots.empty());
  EXPECT_EQ(project.exprs[1]->slots.size(), 1u);
  EXPECT_EQ((*plan)->num_slots, 1);
}

TEST_F(JoinOrder, CorrelationReachesThroughLevels) {
  EXPECT_EQ(
      ErrorOf("SELECT (SELECT (SELECT max(b.id) FROM big b WHERE b.k = t.id AND b.id > m.id) FROM "
              "mid m WHERE m.id = t.mid_id) FROM tiny t"),
      "ok");
  EXPECT_EQ(
      ErrorOf("SELECT * FROM tiny t WHERE EXISTS (SELECT 1 FROM mid m WHERE m.id = t.mid_id AND "
              "EXISTS (SELECT 1 FROM big b WHERE b.k = t.id AND b.id = m.big_id))"),
      "ok");
  EXPECT_EQ(
      ErrorOf("SELECT * FROM tiny t, LATERAL (SELECT * FROM mid m WHERE m.id = t.mid_id AND m.v IN "
              "(SELECT s FROM big WHERE k = t.id)) x"),
      "ok");
}

TEST_F(JoinOrder, SubqueriesSeeComputedColumnsOfTheOuterQuery) {
  View("computed", "SELECT id, k + 1 AS kk, coalesce(s, 'none') AS ss FROM big");
  const char* const kQueries[] = {
      "SELECT kk FROM computed c WHERE kk >= (SELECT max(m.id) FROM mid m WHERE m.big_id = c.kk)",
      "SELECT kk FROM computed c WHERE EXISTS (SELECT 1 FROM mid m WHERE m.id = c.kk OR c.ss = "
      "m.v)",
      "SELECT * FROM tiny t LEFT JOIN (SELECT k, count(*)::int AS n FROM big GROUP BY k) g ON g.k "
      "= t.id "
      "AND g.k > (SELECT count(m.id) FROM mid m WHERE m.id = g.n)",
      "SELECT * FROM tiny t LEFT JOIN computed c ON c.id = t.id WHERE c.kk NOT IN (SELECT m.id "
      "FROM mid m "
      "WHERE m.v = c.ss)",
  };
  for (const char* sql : kQueries) EXPECT_EQ(ErrorOf(sql), "ok") << sql;
}

TEST_F(JoinOrder, OrderSurvivesLookups) {
  EXPECT_EQ(
      Explain("SELECT b.id, m.v FROM mid m JOIN big b ON b.id = m.big_id ORDER BY m.id LIMIT 5"),
      "Limit\n"
      "  ->  Lookup Join using big_pkey on big b\n"
      "        Lookup Cond: (id = m.big_id)\n"
      "        ->  Seq Scan on mid m");
}

TEST_F(JoinOrder, ChangesJoinBySpansOfTheirTarget) {
  EXPECT_EQ(Explain("DELETE FROM big USING tiny WHERE tiny.mid_id = big.id"),
            "Delete on big\n"
            "  ->  Nested Loop\n"
            "        ->  Seq Scan on tiny\n"
            "        ->  Index Scan using big_pkey on big\n"
            "              Spans: [($slot0) - ($slot0)]");
}

TEST_F(JoinOrder, SixtyTablesPlanQuickly) {
  std::string ddl, from, where;
  for (int i = 0; i < 60; ++i) {
    ddl += fmt::format("CREATE TABLE j{} (a int PRIMARY KEY, b int, x text);", i);
    from += fmt::format("{}j{}", i > 0 ? "," : "", i);
    if (i > 0) where += fmt::format("{} a{} = b{}", i > 1 ? " AND" : "", i, i - 1);
  }
  // Distinct column names as in SQLite's tests.
  ddl.clear();
  for (int i = 0; i < 60; ++i) {
    ddl += fmt::format("CREATE TABLE j{} (a{} int PRIMARY KEY, b{} int, x{} text);", i, i, i, i);
  }
  Ddl(ddl);
  Result<std::shared_ptr<const Plan>> plan =
      TryPlan("SELECT * FROM " + from + " WHERE" + where + " AND a0 = 1");
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ((*plan)->output.size(), 180u);
}

TEST_F(JoinOrder, PlanningStopsWhenItIsAskedTo) {
  CancelToken token;
  token.Cancel(CancelToken::Reason::kUser);
  fold_.cancel = &token;
  std::string joins = "tiny t0", sum = "id", selects = "SELECT 1";
  for (int i = 1; i <= 100; ++i) {
    joins = fmt::format("({} JOIN tiny t{} USING (id))", joins, i);
    sum += " + id";
    selects += " UNION ALL SELECT 1";
  }
  for (const std::string& text :
       {"SELECT * FROM " + joins, "SELECT " + sum + " FROM tiny", selects}) {
    EXPECT_EQ(TryPlan(text).status().sqlstate(), "57014") << text.substr(0, 40);
  }
  fold_.cancel = nullptr;
}

// The search asks at each pair of relations, whatever they cost.
TEST_F(JoinOrder, PlanningAsksInTheSearchToo) {
  const CancelToken token;
  fold_.cancel = &token;
  const auto steps = [this](int tables) {
    std::string from = "tiny t0";
    for (int i = 1; i < tables; ++i) from += fmt::format(" JOIN tiny t{} USING (id)", i);
    PlannerContext context = Context();
    Result<std::vector<Statement>> parsed = Parse("SELECT 1 FROM " + from);
    planning::Statement statement(context);
    planning::Binder binder(statement);
    Result<planning::BoundQuery> query = binder.BindStatement(*parsed->front().ast, nullptr);
    EXPECT_TRUE(query.ok());
    const uint32_t bound = statement.steps;
    Plan plan;
    EXPECT_TRUE(planning::Physical(statement, &plan).BuildRoot(std::move(*query)).ok());
    return statement.steps - bound;
  };
  EXPECT_GT(steps(60), 60u * 59u);  // two searches over half of the pairs
  fold_.cancel = nullptr;
}

}  // namespace
}  // namespace cellar::sql
