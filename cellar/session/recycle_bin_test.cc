// The recycle bin against a model: random DROP, UNDROP, TRUNCATE, RENAME, PURGE, ROLLBACK; and what
// names cost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "cellar/kv/engine.h"
#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

struct Model {
  using Rows = std::set<int>;
  struct Dropped {
    std::string name;
    Rows rows;
  };
  std::map<std::string, Rows> living;
  std::vector<Dropped> bin;  // the newest last

  std::vector<Dropped>::iterator Newest(const std::string& name) {
    auto found = bin.end();
    for (auto at = bin.begin(); at != bin.end(); ++at) {
      if (at->name == name) found = at;
    }
    return found;
  }
};

class RandomBin {
 public:
  explicit RandomBin(uint32_t seed) : random_(seed) {}

  void Run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      const Model before = model_;
      const bool block = Pick(4) == 0;
      if (block) session_.Run("BEGIN");
      bool alive = Change();
      for (int i = 0; block && alive && i < 2; ++i) alive = Change();
      if (block && alive && Pick(2) == 0) {
        session_.Run("COMMIT");
      } else if (block) {
        session_.Run("ROLLBACK");
        model_ = before;
      }
      Compare();
    }
  }

 private:
  int Pick(int below) { return static_cast<int>(random_() % static_cast<uint32_t>(below)); }
  std::string Name() { return std::string(1, static_cast<char>('a' + Pick(4))); }

  // Runs a statement that must do what the model says; false when it must fail and has.
  bool Do(const std::string& sql, bool allowed) {
    const Status status = session_.Try(sql);
    EXPECT_EQ(status.ok(), allowed) << sql << ": " << status.ToString();
    return status.ok();
  }

  bool Change() {
    const std::string name = Name(), other = Name();
    const bool lives = model_.living.contains(name);
    switch (Pick(8)) {
      case 0:
        if (!Do("CREATE TABLE " + name + " (k int PRIMARY KEY, v int UNIQUE)", !lives))
          return false;
        model_.living[name] = {};
        return true;
      case 1:
      case 2: {
        if (!lives) return true;
        const int first = next_;
        next_ += 1 + Pick(30);
        if (!Do("INSERT INTO " + name + " SELECT i, -i FROM generate_series(" +
                    std::to_string(first) + ", " + std::to_string(next_ - 1) + ") i",
                true))
          return false;
        for (int i = first; i < next_; ++i) model_.living[name].insert(i);
        return true;
      }
      case 3:
        if (!Do("DROP TABLE " + name, lives)) return false;
        model_.bin.push_back({name, model_.living[name]});
        model_.living.erase(name);
        return true;
      case 4:
        if (!Do("TRUNCATE " + name, lives)) return false;
        model_.bin.push_back({name, model_.living[name]});
        model_.living[name].clear();
        return true;
      case 5: {
        const auto found = model_.Newest(name);
        const bool allowed = found != model_.bin.end() && !model_.living.contains(other);
        if (!Do("UNDROP TABLE " + name + " AS " + other, allowed)) return false;
        model_.living[other] = found->rows;
        model_.bin.erase(found);
        return true;
      }
      case 6: {
        const bool allowed = lives && !model_.living.contains(other);
        if (!Do("ALTER TABLE " + name + " RENAME TO " + other, allowed)) return false;
        model_.living[other] = std::move(model_.living[name]);
        model_.living.erase(name);
        return true;
      }
      default: {
        if (Pick(4) != 0) return true;
        const bool allowed = model_.Newest(name) != model_.bin.end();
        // What was purged before and is not deleted yet is still in the bin.
        const Status status = session_.Try("PURGE TABLE " + name);
        if (allowed) {
          EXPECT_TRUE(status.ok()) << status.ToString();
        }
        if (!status.ok()) return false;
        std::erase_if(model_.bin, [&](const auto& one) { return one.name == name; });
        return true;
      }
    }
  }

  void Compare() {
    std::vector<std::string> names;
    for (const auto& [name, rows] : model_.living) {
      names.push_back(name);
      std::vector<std::string> expected;
      for (int i : rows) expected.push_back(std::to_string(i) + "|" + std::to_string(-i));
      EXPECT_EQ(session_.Run("SELECT k, v FROM " + name + " ORDER BY k"), expected) << name;
      std::reverse(expected.begin(), expected.end());
      EXPECT_EQ(session_.Run("SELECT k, v FROM " + name + " ORDER BY v"), expected) << name;
    }
    EXPECT_EQ(session_.Run("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ "
                           "'^[a-d]$' ORDER BY 1"),
              names);
    std::vector<std::string> bin;
    for (const Model::Dropped& dropped : model_.bin)
      bin.push_back(dropped.name + "|" + std::to_string(dropped.rows.size()));
    EXPECT_EQ(session_.Run("SELECT right(path, 1), rows FROM cellar_dropped WHERE state = "
                           "'dropped' ORDER BY drop_group"),
              bin);
  }

  std::mt19937 random_;
  TestSession session_;
  Model model_;
  int next_ = 1;
};

TEST(RecycleBinTest, DoesWhatTheModelSays) {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    RandomBin(seed).Run(120);
    if (testing::Test::HasFailure()) return;
  }
}

// Nothing of what names cost depends on how many rows there are. The engine counts the trips of
// the background too: the fewest of some runs are those of the statement.
TEST(RecycleBinTest, StatementsCostTheSameForAnyTable) {
  const auto run = [](int rows) {
    TestSession session;
    session.Run("CREATE TABLE t (k int PRIMARY KEY, v int UNIQUE) WITH (layout = row)");
    session.Run("INSERT INTO t SELECT i, i FROM generate_series(1, " + std::to_string(rows) +
                ") i");
    std::vector<uint64_t> out;
    for (const char* sql :
         {"ALTER TABLE t RENAME TO u", "ALTER TABLE u RENAME COLUMN v TO w", "DROP TABLE u",
          "UNDROP TABLE u AS t", "TRUNCATE t", "UNDROP TABLE t AS before"}) {
      const uint64_t before = session.engine()->stats().trips;
      session.Run(sql);
      out.push_back(session.engine()->stats().trips - before);
      EXPECT_LE(out.back(), 20u) << sql;
    }
    return out;
  };
  const auto trips = [&](int rows) {
    std::vector<uint64_t> out = run(rows);
    for (int i = 1; i < 4; ++i) {
      const std::vector<uint64_t> again = run(rows);
      for (size_t j = 0; j < out.size(); ++j) out[j] = std::min(out[j], again[j]);
    }
    return out;
  };
  EXPECT_EQ(trips(0), trips(20000));
}

TEST(RecycleBinTest, NoticesSayWhatCannotComeBack) {
  TestSession session;
  session.Run("CREATE TABLE p (id int PRIMARY KEY)");
  session.Run("CREATE TABLE c (id int REFERENCES p)");
  session.Run("DROP TABLE c");
  session.Run("ALTER TABLE p DROP CONSTRAINT p_pkey");
  TextSink sink;
  std::unique_ptr<Session> other = session.Open();
  ASSERT_TRUE(TestSession::RunIn(other.get(), "UNDROP TABLE c", &sink).ok());
  ASSERT_EQ(sink.notices.size(), 1u);
  EXPECT_EQ(sink.notices[0],
            "foreign key constraint \"c_id_fkey\" on table \"c\" cannot come back: what it "
            "references is gone");
  session.Run("INSERT INTO c VALUES (7)");
}

TEST(RecycleBinTest, SchemasComeBackWithTheirSequences) {
  TestSession session;
  // One sequence is named before its table and one behind it.
  session.Run(
      "CREATE SCHEMA s; CREATE SEQUENCE s.alone; CREATE TABLE s.a (id serial, n int DEFAULT "
      "nextval('s.alone')); ALTER TABLE s.a RENAME TO t; INSERT INTO s.t DEFAULT VALUES;"
      "CREATE TABLE s.b (id int GENERATED ALWAYS AS IDENTITY);");
  session.Run("DROP SCHEMA s CASCADE");
  session.Run("UNDROP SCHEMA s");
  EXPECT_THAT(session.Run("SELECT pg_get_serial_sequence('s.t', 'id'),"
                          " pg_get_serial_sequence('s.b', 'id')"),
              testing::ElementsAre("s.a_id_seq|s.b_id_seq"));
  EXPECT_THAT(session.Run("INSERT INTO s.t DEFAULT VALUES RETURNING id, n"),
              testing::ElementsAre("2|2"));
  EXPECT_THAT(session.Run("INSERT INTO s.b DEFAULT VALUES RETURNING id"),
              testing::ElementsAre("1"));
}

TEST(RecycleBinTest, CountersFollowTheRows) {
  TestSession session;
  session.Run("CREATE TABLE t (k int PRIMARY KEY)");
  session.Run("INSERT INTO t VALUES (1), (2), (3)");
  session.Run("TRUNCATE t");
  session.Run("INSERT INTO t VALUES (1)");
  EXPECT_EQ(session.Run("SELECT rows FROM cellar_dropped"), std::vector<std::string>{"3"});
  session.Run("UNDROP TABLE t AS was");
  session.Run("DROP TABLE t");
  EXPECT_EQ(session.Run("SELECT rows FROM cellar_dropped"), std::vector<std::string>{"1"});
  EXPECT_EQ(session.Run("CHECK DATABASE FULL"), std::vector<std::string>());
}

}  // namespace
}  // namespace cellar::session
