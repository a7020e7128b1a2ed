// A store in which one record of the catalog does not read: it opens, all else goes on, and what is
// named after the record says so.
#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <random>

#include "cellar/catalog/unreadable.h"
#include "cellar/codec/key.h"
#include "cellar/kv/counters.h"
#include "cellar/session/session_internal.h"
#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kSchema = R"(
  create schema s;
  create type mood as enum ('sad', 'glad');
  create sequence seq;
  create table t (id int primary key, a text unique, n int);
  create index t_n_idx on t (n);
  insert into t select i, 'a' || i, i % 7 from generate_series(1, 50) i;
  create table good (id int primary key, a text, m mood default 'glad');
  insert into good select i, 'g' || i from generate_series(1, 50) i;
  create table child (id int primary key, t int references t);
  insert into child values (1, 1);
  create table numbered (id int default nextval('seq'), v int);
  create table s.inside (id int primary key);
  insert into s.inside values (1), (2);
  create view v as select a from t;
  create role carol;
)";

class DamagedCatalogTest : public testing::Test, protected StoredRecords {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Open({}).ok());
    Run(kSchema);
    records_ = Dump();
  }

  uint64_t IdOf(const char* name) {
    const catalog::SnapshotPtr catalog = database_->impl()->catalog->Current();
    const catalog::NamespaceId database = session_->impl()->database_id;
    if (const auto table = catalog->FindTable(database, name)) return table->id.value;
    if (const auto type = catalog->FindType(database, name)) return type->id.value;
    if (const auto space = catalog->FindNamespace(database, name)) return space->id.value;
    ADD_FAILURE() << name;
    return 0;
  }
  // The descriptor of this name becomes garbage.
  void Damage(const char* name) {
    id_ = IdOf(name);
    Records damaged = records_;
    const std::string key = codec::DescriptorKey(id_);
    ASSERT_TRUE(damaged.contains(key));
    damaged[key] = "\xff\xff garbage";
    ASSERT_TRUE(Open(damaged).ok());
  }

  std::vector<std::string> Run(std::string_view text) {
    TextSink sink;
    const Status status = TestSession::RunIn(session_.get(), text, &sink);
    EXPECT_TRUE(status.ok()) << text << ": " << status.ToString();
    return sink.rows;
  }
  Status Try(std::string_view text) {
    TextSink sink;
    return TestSession::RunIn(session_.get(), text, &sink);
  }
  void ExpectUnreadable(std::string_view text) {
    const Status status = Try(text);
    EXPECT_EQ(status.sqlstate(), "XX001") << text << ": " << status.ToString();
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(fmt::format("object {} is unreadable", id_)))
        << text;
    EXPECT_THAT(std::string(status.hint()), HasSubstr("CHECK DATABASE")) << text;
  }
  void ExpectOthersGoOn() {
    EXPECT_THAT(Run("select count(*), max(a) from good"), ElementsAre("50|g9"));
    Run("insert into good values (100, 'new'); delete from good where id = 100");
    Run("create table other (a int primary key); insert into other values (1); drop table other");
    Run("alter table good add column more int default 3; alter table good drop column more");
    Run("select * from pg_class; select * from pg_namespace; select * from pg_type; "
        "select * from pg_constraint; select * from pg_depend; select * from pg_attribute; "
        "select * from pg_index; select * from pg_attrdef; select * from cellar_usage; "
        "select * from information_schema.columns; select * from information_schema.tables; "
        "select * from information_schema.referential_constraints; "
        "select * from information_schema.key_column_usage; select * from pg_sequences; "
        "select * from pg_views; show dropped; show jobs");
  }
  std::vector<std::string> Check(const char* form = "") {
    return Run(fmt::format("check database {}", form));
  }
  // CHECK names the descriptor and nothing else, REPAIR leaves it and its names.
  void ExpectFoundAndLeftAlone() {
    for (const char* form : {"", "fast", "full"}) {
      const std::vector<std::string> found = Check(form);
      EXPECT_THAT(found, Contains(HasSubstr(fmt::format("desc-/{} does not read", id_)))) << form;
      EXPECT_THAT(found, Each(Not(HasSubstr("in the catalog")))) << form;
      EXPECT_THAT(found, Each(Not(HasSubstr("stands for")))) << form;
    }
    const Records before = Dump();
    const std::vector<std::string> repaired = Run("repair database");
    EXPECT_THAT(repaired, Each(HasSubstr("LEFT ALONE")));
    EXPECT_THAT(repaired, Contains(HasSubstr(fmt::format("desc-/{} does not read", id_))));
    Records after = Dump();
    EXPECT_TRUE(before == after);
  }
  // All that was stored of it is there: with the descriptor as it was, nothing is amiss.
  void ExpectNothingLost() {
    Records mended = Dump();
    const std::string key = codec::DescriptorKey(id_);
    mended[key] = records_.at(key);
    ASSERT_TRUE(Open(mended).ok());
    EXPECT_THAT(Check("full"), IsEmpty());
    EXPECT_THAT(Run("select count(*) from t"), ElementsAre("50"));
    EXPECT_THAT(Run("select count(*) from s.inside"), ElementsAre("2"));
  }

  Records records_;
  uint64_t id_ = 0;
};

TEST_F(DamagedCatalogTest, ATable) {
  Damage("t");
  for (const char* text : {"select * from t",
                           "select 1 from public.t",
                           "insert into t values (1)",
                           "delete from t",
                           "update t set a = 1",
                           "drop table t",
                           "drop table if exists t",
                           "truncate t",
                           "create table t (a int)",
                           "create table if not exists t (a int)",
                           "alter table t add b int",
                           "alter table if exists t add b int",
                           "create index on t (a)",
                           "drop index t_n_idx",
                           "reindex index t_n_idx",
                           "grant select on t to carol",
                           "analyze t",
                           "begin; lock table t",
                           "check table t",
                           "repair table t",
                           "comment on table t is 'x'",
                           "copy t to stdout",
                           "create view w as select * from t",
                           "select * from v",
                           "alter table good rename to t",
                           "create table c2 (a int references t)",
                           "select 't'::regclass",
                           "create index t on good (a)",
                           "create table like_t (like t)",
                           "explain select * from t",
                           "prepare p as select * from t",
                           "insert into child values (2, 2)"}) {
    ExpectUnreadable(text);
    Run("rollback");
  }
  ExpectOthersGoOn();
  EXPECT_THAT(Run("select * from child"), ElementsAre("1|1"));
  EXPECT_THAT(Run("select relname from pg_class where relname like 't\\_%' or relname = 't'"),
              IsEmpty());
  ExpectFoundAndLeftAlone();
  ExpectNothingLost();
}

// A name farther along the search path does not stand for it.
TEST_F(DamagedCatalogTest, IsNotReplacedByAnotherOfItsName) {
  Run("create table s.t (other int)");
  records_ = Dump();
  Damage("t");
  Run("set search_path = public, s");
  ExpectUnreadable("select * from t");
  Run("set search_path = s, public");
  EXPECT_THAT(Run("select * from t"), IsEmpty());
}

TEST_F(DamagedCatalogTest, ASchema) {
  Damage("s");
  for (const char* text :
       {"select * from s.inside", "create table s.x (a int)", "drop schema s cascade",
        "drop schema if exists s", "create schema s", "create schema if not exists s",
        "alter schema s rename to r", "grant usage on schema s to carol", "drop table s.inside",
        "alter table good set schema s", "check table s.inside"}) {
    ExpectUnreadable(text);
  }
  ExpectOthersGoOn();
  ExpectFoundAndLeftAlone();
  ExpectNothingLost();
}

TEST_F(DamagedCatalogTest, ATypeASequenceAView) {
  Damage("mood");
  ExpectUnreadable("select 'sad'::mood");
  ExpectUnreadable("create table u (m mood)");
  ExpectUnreadable("drop type mood");
  ExpectUnreadable("drop type if exists mood");
  ExpectUnreadable("create type mood as enum ('x')");
  EXPECT_THAT(Run("select m from good where id = 1"), ElementsAre("glad"));
  ExpectOthersGoOn();
  ExpectFoundAndLeftAlone();

  ASSERT_TRUE(Open(records_).ok());
  Damage("seq");
  ExpectUnreadable("select nextval('seq')");
  ExpectUnreadable("insert into numbered (v) values (1)");
  ExpectUnreadable("drop sequence seq");
  Run("insert into numbered values (7, 1)");
  ExpectOthersGoOn();
  ExpectFoundAndLeftAlone();

  ASSERT_TRUE(Open(records_).ok());
  Damage("v");
  ExpectUnreadable("select * from v");
  ExpectUnreadable("create or replace view v as select 1");
  ExpectUnreadable("drop view v");
  ExpectOthersGoOn();
  ExpectFoundAndLeftAlone();
  ExpectNothingLost();
}

TEST_F(DamagedCatalogTest, ARole) {
  Records damaged = records_;
  const std::string prefix = codec::SystemPrefix("role");
  size_t found = 0;
  for (auto& [key, value] : damaged) {
    if (!key.starts_with(prefix) || key.find("carol") == std::string::npos) continue;
    value = "garbage";
    ++found;
  }
  ASSERT_EQ(found, 1u);
  ASSERT_TRUE(Open(damaged).ok());
  for (const char* text : {"drop role carol", "drop role if exists carol", "create role carol",
                           "alter role carol login", "grant select on good to carol",
                           "set role carol", "alter table good owner to carol"}) {
    const Status status = Try(text);
    EXPECT_EQ(status.sqlstate(), "XX001") << text << ": " << status.ToString();
    EXPECT_THAT(std::string(status.message()), HasSubstr("role \"carol\" is unreadable")) << text;
  }
  ExpectOthersGoOn();
  Run("create role dave; drop role dave");
  EXPECT_THAT(Check(), Contains(HasSubstr("the record of role \"carol\" does not read")));
  EXPECT_THAT(Run("repair database"), Contains(HasSubstr("LEFT ALONE: the record of role")));
}

TEST_F(DamagedCatalogTest, ItsDatabaseAndSchemaAreNotDropped) {
  Run("create schema holder; create table holder.x (a int)");
  const uint64_t space = IdOf("holder");
  const catalog::TablePtr table =
      database_->impl()->catalog->Current()->FindTable(catalog::NamespaceId{space}, "x");
  ASSERT_NE(table, nullptr);
  records_ = Dump();
  id_ = table->id.value;
  Records damaged = records_;
  damaged[codec::DescriptorKey(id_)] = "";
  ASSERT_TRUE(Open(damaged).ok());
  ExpectUnreadable("drop schema holder");
  ExpectUnreadable("drop schema holder cascade");
  ExpectOthersGoOn();
  ExpectFoundAndLeftAlone();
  ExpectNothingLost();
}

// What is in the bin goes when its time has come, what does not read stays.
TEST_F(DamagedCatalogTest, TheCollectorLeavesItAlone) {
  Run("create table dropped (a int); insert into dropped values (1); create schema gone");
  id_ = IdOf("dropped");
  Run("drop table dropped");
  Run("drop schema gone");
  records_ = Dump();
  Records damaged = records_;
  damaged[codec::DescriptorKey(id_)] = "garbage";
  ASSERT_TRUE(Open(damaged).ok());
  const std::string data = codec::TablePrefix(catalog::TableId{id_});
  const auto stored = [&] {
    size_t count = 0;
    for (const auto& [key, value] : Dump()) count += key.starts_with(data) ? 1 : 0;
    return count;
  };
  ASSERT_EQ(stored(), 1u);
  Run("drop table good");
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(database_->impl()->collector->Step().ok());
  EXPECT_EQ(stored(), 1u);
  ExpectFoundAndLeftAlone();
}

TEST_F(DamagedCatalogTest, ACountThatDoesNotReadIsCountedAnew) {
  const catalog::SnapshotPtr catalog = database_->impl()->catalog->Current();
  const std::string key =
      kv::CounterKey(catalog::CounterNameOf(*catalog->GetTable(catalog::TableId{IdOf("t")})), 0);
  ASSERT_TRUE(records_.contains(key));
  Records damaged = records_;
  damaged[key] = "xyz";
  ASSERT_TRUE(Open(damaged).ok());
  ExpectOthersGoOn();
  EXPECT_THAT(Check(), Contains(HasSubstr("its count is damaged")));
  EXPECT_THAT(Run("check table t"), Contains(HasSubstr("its count is damaged")));
  EXPECT_THAT(Run("repair table t"), Contains(HasSubstr("counted, 50 rows")));
  EXPECT_THAT(Check("full"), IsEmpty());
  Run("insert into t values (51, 'x', 1)");
  EXPECT_THAT(Run("select count(*) from t"), ElementsAre("51"));
}

TEST_F(DamagedCatalogTest, TheClockGoesOnFromTheLatestDrop) {
  Run("create table dropped (a int); drop table dropped");
  const auto when = [this] {
    return database_->impl()->catalog->Current()->ListDroppedTables().front()->dropped_at_ticks;
  };
  const int64_t before = when();
  Records damaged = Dump();
  damaged[codec::SystemKey("clock")] = "garbage";
  ASSERT_TRUE(Open(damaged).ok());
  EXPECT_EQ(when(), before);
  EXPECT_GE(database_->impl()->clock->Ticks(), before);
  ASSERT_TRUE(database_->impl()->collector->Step().ok());
  Run("undrop table dropped");
}

// Whatever a descriptor becomes: the store opens, statements answer, others read as before.
TEST_F(DamagedCatalogTest, NoDamageOfADescriptorIsMoreThanItsOwn) {
  std::mt19937 random(1);
  std::vector<std::string> keys;
  const std::string prefix = codec::SystemPrefix("desc");
  const std::string good = codec::DescriptorKey(IdOf("good"));
  const std::string mood = codec::DescriptorKey(IdOf("mood"));
  const std::string database = codec::DescriptorKey(session_->impl()->database_id.value);
  for (const auto& [key, value] : records_) {
    if (key.starts_with(prefix) && key != good && key != database && key != mood)
      keys.push_back(key);
  }
  size_t unreadable = 0;
  for (int round = 0; round < 150 && !HasFailure(); ++round) {
    Records damaged = records_;
    std::string& value = damaged[keys[random() % keys.size()]];
    switch (random() % 3) {
      case 0: value.resize(random() % value.size()); break;
      case 1: value[random() % value.size()] = static_cast<char>(random()); break;
      default:
        for (char& byte : value) byte = static_cast<char>(random());
    }
    ASSERT_TRUE(Open(damaged).ok());
    if (HasFailure()) break;
    EXPECT_THAT(Run("select count(*), max(a) from good"), ElementsAre("50|g9")) << round;
    for (const char* text :
         {"select * from t", "insert into child values (2, 2)", "select * from v",
          "select nextval('seq')", "select * from s.inside", "select count(*) from pg_class",
          "select count(*) from pg_constraint", "select count(*) from pg_depend", "show dropped"}) {
      (void)Try(text);
    }
    unreadable += catalog::HasUnreadable(*database_->impl()->catalog->Current()) ? 1 : 0;
  }
  EXPECT_GT(unreadable, 50u);
}

}  // namespace
}  // namespace cellar::session
