// One table: which index, which spans, which order.
#include "cellar/sql/plan/test_catalog.h"

namespace cellar::sql {
namespace {

class AccessPath : public PlannerTest {
 protected:
  void SetUp() override {
    PlannerTest::SetUp();
    Ddl("CREATE TABLE t (id int PRIMARY KEY, a int, b text, c timestamp, d numeric(10,2), f "
        "boolean);"
        "CREATE INDEX t_a ON t (a); CREATE INDEX t_b_c ON t (b, c DESC);"
        "CREATE UNIQUE INDEX t_d ON t (d);"
        "CREATE TABLE two (x int, y int, v text, PRIMARY KEY (x, y));");
    Rows("t", 100000);
    Rows("two", 100000);
  }
};

TEST_F(AccessPath, PointByPrimaryKey) {
  EXPECT_EQ(Explain("SELECT * FROM t WHERE id = 5"),
            "Index Scan using t_pkey on t\n"
            "  Spans: [(5) - (5)]");
  auto plan = TryPlan("SELECT id, a, b FROM t WHERE id = $1");
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ((*plan)->root->kind, PlanKind::kScan) << "an identity projection is left out";
  EXPECT_TRUE((*plan)->root->As<ScanNode>().unique_point);
  EXPECT_EQ((*plan)->output[1].attnum, 2);
  EXPECT_TRUE((*plan)->read_only);
}

TEST_F(AccessPath, ColumnsInAnotherOrderNeedNoProjection) {
  auto plan = TryPlan("SELECT b, id FROM t WHERE id = 1");
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ((*plan)->root->kind, PlanKind::kScan);
}

TEST_F(AccessPath, WhatOnlyTheFilterReadsIsNotInTheOutput) {
  auto plan = TryPlan("SELECT b, id FROM t WHERE d + 1 > 5 AND c < 'now'");
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ((*plan)->root->kind, PlanKind::kScan) << "no projection takes it out again";
  const auto& scan = (*plan)->root->As<ScanNode>();
  EXPECT_EQ(scan.output.size(), 2u);
  EXPECT_EQ(scan.columns.size(), 2u);
  EXPECT_EQ(scan.filter_columns.size(), 2u);
  EXPECT_EQ(scan.filter_names, (std::vector<std::string>{"c", "d"}));
  auto locked = TryPlan("SELECT b FROM t WHERE d > 5 FOR UPDATE");
  ASSERT_TRUE(locked.ok());
  const PlanNode* node = (*locked)->root.get();
  while (!node->children.empty()) node = node->children[0].get();
  EXPECT_TRUE(node->As<ScanNode>().filter_columns.empty());
}

TEST_F(AccessPath, RangesAndBetween) {
  EXPECT_EQ(Explain("SELECT id FROM t WHERE id > 5 AND id <= 9"),
            "Index Scan using t_pkey on t\n"
            "  Spans: ((5) - (9)]");
  EXPECT_EQ(Explain("SELECT id FROM t WHERE id BETWEEN 5 AND 9"),
            "Index Scan using t_pkey on t\n"
            "  Spans: [(5) - (9)]");
  EXPECT_EQ(Explain("SELECT * FROM t WHERE a = 3"),
            "Index Scan using t_a on t\n"
            "  Spans: [(3) - (3)]");
}

TEST_F(AccessPath, InListsAndOrBecomeSpans) {
  EXPECT_EQ(Explain("SELECT b FROM t WHERE id IN (3, 1)"),
            "Index Scan using t_pkey on t\n"
            "  Spans: [(3) - (3)], [(1) - (1)]");
  EXPECT_EQ(Explain("SELECT b FROM t WHERE id = 3 OR id = 1"),
            "Index Scan using t_pkey on t\n"
            "  Spans: [(3) - (3)], [(1) - (1)]");
  EXPECT_EQ(Explain("SELECT b FROM t WHERE id = ANY ('{4,5}')"),
            "Index Scan using t_pkey on t\n"
            "  Spans: [(4) - (4)], [(5) - (5)]");
  EXPECT_EQ(Explain("SELECT b FROM t WHERE id = ANY ($1)"),
            "Index Scan using t_pkey on t\n"
            "  Spans: [(each of $1) - (each of $1)]");
  EXPECT_EQ(Parameters("SELECT b FROM t WHERE id = ANY ($1)"), "integer[]");
}

TEST_F(AccessPath, CompositeKeys) {
  EXPECT_EQ(Explain("SELECT v FROM two WHERE x = 1 AND y = 2"),
            "Index Scan using two_pkey on two\n"
            "  Spans: [(1, 2) - (1, 2)]");
  EXPECT_EQ(Explain("SELECT v FROM two WHERE x = 1 AND y > 2"),
            "Index Scan using two_pkey on two\n"
            "  Spans: ((1, 2) - (1)]");
  EXPECT_EQ(Explain("SELECT v FROM two WHERE (x, y) = (1, 2)"),
            "Index Scan using two_pkey on two\n"
            "  Spans: [(1, 2) - (1, 2)]");
  EXPECT_EQ(Explain("SELECT v FROM two WHERE (x, y) > (1, 2)"),
            "Index Scan using two_pkey on two\n"
            "  Spans: ((1) - +inf], ((1, 2) - (1)]\n"
            "  Filter: ((x > 1) OR ((x = 1) AND (y > 2)))");
  EXPECT_EQ(Explain("SELECT v FROM two WHERE (x, y) IN ((1, 2), (3, 4))"),
            "Index Scan using two_pkey on two\n"
            "  Spans: [(1, 2) - (1, 2)], [(3, 4) - (3, 4)]\n"
            "  Filter: (((x = 1) AND (y = 2)) OR ((x = 3) AND (y = 4)))");
}

TEST_F(AccessPath, LikePrefixAndNullTests) {
  EXPECT_EQ(Explain("SELECT b, c FROM t WHERE b LIKE 'ab%'"),
            "Index Only Scan using t_b_c on t\n"
            "  Spans: [('ab'::text) - ('ac'::text))");
  EXPECT_EQ(Explain("SELECT b, c FROM t WHERE b IS NULL"),
            "Index Only Scan using t_b_c on t\n"
            "  Spans: [(NULL) - (NULL)]");
}

TEST_F(AccessPath, CoveringIndexIsPreferred) {
  EXPECT_EQ(Explain("SELECT id, a FROM t WHERE a > 5"),
            "Index Only Scan using t_a on t\n"
            "  Spans: ((5) - +inf]");
  // Not covering: a third of all rows is cheaper read in a row.
  EXPECT_EQ(Explain("SELECT * FROM t WHERE a > 5"),
            "Seq Scan on t\n"
            "  Filter: (a > 5)");
}

TEST_F(AccessPath, OrderFromAnIndex) {
  EXPECT_EQ(Explain("SELECT * FROM t ORDER BY id LIMIT 3"),
            "Limit\n"
            "  ->  Seq Scan on t");
  EXPECT_EQ(Explain("SELECT * FROM t ORDER BY id DESC LIMIT 3"),
            "Limit\n"
            "  ->  Index Scan Backward using t_pkey on t");
  EXPECT_EQ(Explain("SELECT * FROM t ORDER BY a DESC LIMIT 3"),
            "Limit\n"
            "  ->  Index Scan Backward using t_a on t");
  EXPECT_EQ(Explain("SELECT * FROM t ORDER BY a DESC NULLS LAST LIMIT 3"),
            "Limit\n"
            "  ->  Sort\n"
            "        Sort Key: a DESC NULLS LAST\n"
            "        Top: '3'::bigint\n"
            "        ->  Seq Scan on t");
  EXPECT_EQ(Explain("SELECT b, c FROM t WHERE b = 'x' ORDER BY c DESC"),
            "Index Only Scan using t_b_c on t\n"
            "  Spans: [('x'::text) - ('x'::text)]");
  EXPECT_EQ(Explain("SELECT * FROM t ORDER BY a"),
            "Sort\n"
            "  Sort Key: a\n"
            "  ->  Seq Scan on t");
}

TEST_F(AccessPath, MinAndMaxReadTheIndexEnd) {
  EXPECT_EQ(Explain("SELECT max(id) FROM t"),
            "Aggregate\n"
            "  ->  Limit\n"
            "        ->  Index Scan Backward using t_pkey on t");
  EXPECT_EQ(Explain("SELECT min(a) FROM t WHERE a > 10"),
            "Aggregate\n"
            "  ->  Limit\n"
            "        ->  Index Only Scan using t_a on t\n"
            "              Spans: ((10) - +inf]");
}

TEST_F(AccessPath, FalseConditionsReadNothing) {
  EXPECT_EQ(Explain("SELECT * FROM t WHERE false"), "Values Scan");
  EXPECT_EQ(Explain("SELECT * FROM t WHERE id = 1 AND NULL"), "Values Scan");
  EXPECT_EQ(Explain("SELECT count(*) FROM t WHERE 1 = 2"),
            "Aggregate\n"
            "  ->  Values Scan");
}

TEST_F(AccessPath, VarcharComparesThroughItsCast) {
  Ddl("CREATE TABLE w (k varchar(10) PRIMARY KEY, v int)");
  EXPECT_EQ(Explain("SELECT v FROM w WHERE k = 'x'"),
            "Index Scan using w_pkey on w\n"
            "  Spans: [('x'::text) - ('x'::text)]");
}

TEST_F(AccessPath, WideIntegersSearchNarrowColumns) {
  EXPECT_EQ(Explain("SELECT a FROM t WHERE id = 5::bigint"),
            "Index Scan using t_pkey on t\n"
            "  Spans: [('5'::bigint) - ('5'::bigint)]");
}

TEST_F(AccessPath, PointUpdateAndDelete) {
  EXPECT_EQ(Explain("UPDATE t SET a = a + 1 WHERE id = $1"),
            "Update on t\n"
            "  ->  Index Scan using t_pkey on t\n"
            "        Spans: [($1) - ($1)]");
  EXPECT_EQ(Explain("DELETE FROM t WHERE id = 3"),
            "Delete on t\n"
            "  ->  Index Scan using t_pkey on t\n"
            "        Spans: [(3) - (3)]");
  auto plan = TryPlan("UPDATE t SET a = a + 1 WHERE id = $1");
  ASSERT_TRUE(plan.ok());
  const PlanNode& scan = *(*plan)->root->children[0];
  ASSERT_EQ(scan.kind, PlanKind::kScan) << "no projection between";
  EXPECT_TRUE(scan.As<ScanNode>().with_row_ref);
  ASSERT_TRUE(scan.As<ScanNode>().locks_first.has_value());
  EXPECT_EQ(scan.As<ScanNode>().locks_first->mode, RowLockMode::kForNoKeyUpdate);
  EXPECT_FALSE((*plan)->read_only);
}

TEST_F(AccessPath, SelectForUpdateLocks) {
  auto plan = TryPlan("SELECT a FROM t WHERE id = 1 FOR UPDATE SKIP LOCKED");
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE((*plan)->locks_rows);
  const auto& scan = (*plan)->root->As<ScanNode>();
  ASSERT_TRUE(scan.locks_first.has_value()) << "its key is known before it is read";
  EXPECT_EQ(scan.locks_first->wait, RowLockWait::kSkipLocked);
  EXPECT_EQ((*plan)->lock_tag, "SELECT FOR UPDATE");
  EXPECT_EQ(Explain("SELECT id FROM t ORDER BY a LIMIT 1 FOR SHARE"),
            "Limit\n"
            "  ->  LockRows\n"
            "        Lock Rows: t for share\n"
            "        ->  Index Only Scan using t_a on t");
}

TEST_F(AccessPath, ManyColumnsByInAreACrossProduct) {
  EXPECT_EQ(Explain("SELECT v FROM two WHERE x IN (1, 2) AND y IN (3, 4)"),
            "Index Scan using two_pkey on two\n"
            "  Spans: [(1, 3) - (1, 3)], [(1, 4) - (1, 4)], [(2, 3) - (2, 3)], [(2, 4) - (2, 4)]");
}

TEST_F(AccessPath, StatisticsTellHowManyRowsThereAre) {
  Spread("t", "a", 1000, 0, 10000, 7, 0.5);
  EXPECT_NEAR(EstimatedRows("SELECT * FROM t WHERE a = 7"), 50000, 1);
  EXPECT_NEAR(EstimatedRows("SELECT * FROM t WHERE a = 8"), 50, 1);
  EXPECT_NEAR(EstimatedRows("SELECT * FROM t WHERE a = $1"), 100, 1);
  EXPECT_NEAR(EstimatedRows("SELECT * FROM t WHERE a >= 5000 AND a < 6000"), 5000, 100);
  EXPECT_NEAR(EstimatedRows("SELECT * FROM t WHERE a BETWEEN 5000 AND 6000"), 5000, 100);
  EXPECT_NEAR(EstimatedRows("SELECT * FROM t WHERE a IN (7, 8, NULL)"), 50050, 1);
  EXPECT_NEAR(EstimatedRows("SELECT * FROM t WHERE a > 20000"), 50, 1);
  EXPECT_NEAR(EstimatedRows("SELECT a, count(*) FROM t GROUP BY a"), 1000, 1);
  EXPECT_NEAR(EstimatedRows("SELECT * FROM t WHERE a <> 7"), 50000, 1);
  // The guesses for columns of which nothing is known stay.
  EXPECT_NEAR(EstimatedRows("SELECT * FROM t WHERE f"), 50000, 1);
}

TEST_F(AccessPath, StatisticsChooseTheIndex) {
  Spread("t", "a", 1000, 0, 10000, 7, 0.5);
  EXPECT_EQ(Explain("SELECT b FROM t WHERE a = 8"),
            "Index Scan using t_a on t\n"
            "  Spans: [(8) - (8)]");
  EXPECT_EQ(Explain("SELECT b FROM t WHERE a = 7"),
            "Seq Scan on t\n"
            "  Filter: (a = 7)");
}

}  // namespace
}  // namespace cellar::sql
