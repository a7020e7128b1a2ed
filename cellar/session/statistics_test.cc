// ANALYZE, and how near the truth the planner comes with what it finds.
#include "cellar/session/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class StatisticsTest : public testing::Test {
 protected:
  void SetUp() override {
    session_.Run(
        "CREATE TABLE t (id int PRIMARY KEY, grp int, name text, price numeric(12,2), note text);"
        "INSERT INTO t SELECT i, CASE WHEN i % 2 = 0 THEN 1 ELSE i % 500 END,"
        " 'n' || (i % 1000), i / 100.0, CASE WHEN i % 4 = 0 THEN 'x' END"
        " FROM generate_series(1, 20000) i;"
        "CREATE INDEX t_grp ON t (grp);"
        "CREATE TABLE u (k int PRIMARY KEY, t_id int, grp int);"
        "INSERT INTO u SELECT i, i * 3, i % 500 FROM generate_series(1, 3000) i");
  }
  double Estimated(const std::string& query) {
    const std::vector<std::string> lines = session_.Run("EXPLAIN " + query);
    const size_t at = lines.empty() ? std::string::npos : lines[0].find("rows=");
    if (at == std::string::npos) {
      ADD_FAILURE() << query;
      return 0;
    }
    return std::stod(lines[0].substr(at + 5));
  }
  TestSession session_;
};

TEST_F(StatisticsTest, EstimatesAreWithinAFactorOfThree) {
  session_.Run("ANALYZE");
  for (const std::string query : {
           "SELECT * FROM t",
           "SELECT * FROM t WHERE grp = 1",
           "SELECT * FROM t WHERE grp = 77",
           "SELECT * FROM t WHERE id < 5000",
           "SELECT * FROM t WHERE id BETWEEN 1000 AND 1400",
           "SELECT * FROM t WHERE price > 190",
           "SELECT * FROM t WHERE price >= 20 AND price < 40 AND note IS NULL",
           "SELECT * FROM t WHERE note IS NOT NULL",
           "SELECT * FROM t WHERE name = 'n17'",
           "SELECT * FROM t WHERE name IN ('n17', 'n18', 'n400')",
           "SELECT * FROM t WHERE name LIKE 'n99%'",
           "SELECT * FROM t WHERE grp <> 1",
           "SELECT * FROM t JOIN u ON u.t_id = t.id",
           "SELECT * FROM t JOIN u ON u.grp = t.grp WHERE t.grp > 1",
           "SELECT grp, count(*) FROM t GROUP BY grp",
           "SELECT name, count(*) FROM t GROUP BY name",
       }) {
    const double truth = std::stod(session_.Run("SELECT count(*) FROM (" + query + ") q").front());
    const double estimated = Estimated(query);
    EXPECT_LE(estimated, std::max(truth, 1.0) * 3) << query;
    EXPECT_GE(estimated, truth / 3) << query;
  }
}

TEST_F(StatisticsTest, SystemTablesShowThem) {
  EXPECT_THAT(session_.Run("SELECT * FROM pg_stats"), IsEmpty());
  session_.Run("ANALYZE t (id, note)");
  EXPECT_THAT(session_.Run("SELECT attname, null_frac, n_distinct, avg_width, most_common_vals"
                           " FROM pg_stats WHERE tablename = 't' ORDER BY attname"),
              ElementsAre("id|0|-1|4|", "note|0.75|1|1|{x}"));
  EXPECT_THAT(session_.Run("SELECT n_live_tup, last_analyze IS NOT NULL FROM pg_stat_user_tables"
                           " WHERE relname = 't'"),
              ElementsAre("20000|t"));
  EXPECT_THAT(session_.Run("SELECT reltuples, relpages > 0 FROM pg_class WHERE relname = 't'"),
              ElementsAre("20000|t"));
  EXPECT_EQ(session_.Try("ANALYZE t (id, nothing)").sqlstate(), "42703");
  EXPECT_EQ(session_.Try("ANALYZE t (id, id)").sqlstate(), "42701");
  session_.Run("BEGIN; CREATE TABLE mine (a int); ANALYZE mine; ANALYZE t; COMMIT");
}

TEST(Statistics, ATenthOfTheRowsMakesThemStale) {
  EXPECT_FALSE(StatisticsAreStale(0, 50));
  EXPECT_TRUE(StatisticsAreStale(0, 51));
  EXPECT_FALSE(StatisticsAreStale(1000, 150));
  EXPECT_TRUE(StatisticsAreStale(1000, 151));
}

}  // namespace
}  // namespace cellar::session
