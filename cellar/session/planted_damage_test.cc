// Damage of each class of record that a store has, planted as a wrong write would: CHECK tells of
// it, or nobody can be hurt by it; REPAIR takes no row away and makes nothing worse; reading ends.
//
// CELLAR_DAMAGES: how many of each class and kind are planted; 2 without it.
#include <gmock/gmock.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "cellar/catalog/records_check.h"
#include "cellar/codec/key.h"
#include "cellar/session/session_internal.h"
#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

using Records = StoredRecords::Records;

constexpr const char* kSchema = R"(
  create type mood as enum ('sad', 'glad');
  create sequence seq;
  select nextval('seq');
  create role carol;
  create role dave;
  grant carol to dave;
  create schema s;
  create table r (id int primary key, a text unique, n int, m mood, j jsonb) with (layout = row);
  create index r_n on r (n desc) include (a);
  create index r_part on r (a) where n > 3;
  insert into r select i, 'a' || i, i % 7, case when i % 2 = 0 then 'sad' else 'glad' end::mood, '{}'
    from generate_series(1, 120) i;
  create table p (id int primary key, a text, n int unique) with (layout = pages);
  create index p_a on p (a);
  insert into p select i, 'p' || repeat(md5(i::text), 10), i * 2 from generate_series(1, 900) i;
  alter table p seal;
  update p set a = 'changed' where id % 90 = 7;
  delete from p where id % 100 = 50;
  insert into p values (5000, 'late', 1);
  create table c (id int primary key, a text, n int) with (layout = cell);
  create index c_n on c (n);
  insert into c select i, 'c' || i, i % 5 from generate_series(1, 60) i;
  create table d (id int primary key, a text, n int) with (layout = datum);
  create index d_n on d (n);
  insert into d select i, 'd' || i, i % 5 from generate_series(1, 60) i;
  create table nokey (a int, b text);
  insert into nokey select i, 'x' from generate_series(1, 30) i;
  create table s.child (id int primary key, r int references r);
  insert into s.child select i, i from generate_series(1, 40) i;
  create view v as select a from r;
  grant select on r to carol;
  grant select on p to dave;
)";
const char* const kTables[] = {"r", "p", "c", "d", "nokey", "s.child"};

struct Kind {
  const char* name;
  // What no index has may be another good value or another good key: rows have no checksums of
  // their own (docs/guide/limits.md), and where values lie apart one that is gone is a NULL.
  bool told_of_rows, told_of_parts;
  // Changes records; false: it makes no sense here.
  std::function<bool(const std::string& key, const std::string& other, std::mt19937*, Records*)>
      plant;
};

char FlippedBit(char byte, std::mt19937* random) {
  return static_cast<char>(byte ^ 1 << (*random)() % 8);
}

const Kind kKinds[] = {
    {"is gone", true, false,
     [](const std::string& key, const std::string&, std::mt19937*, Records* records) {
       return records->erase(key) != 0;
     }},
    {"is cut off", true, true,
     [](const std::string& key, const std::string&, std::mt19937*, Records* records) {
       std::string& value = (*records)[key];
       if (value.size() < 2) return false;
       value.resize(value.size() / 2);
       return true;
     }},
    {"holds garbage", true, true,
     [](const std::string& key, const std::string&, std::mt19937*, Records* records) {
       (*records)[key] = "\xff\xfe garbage";
       return true;
     }},
    {"has a flipped bit in front", true, true,
     [](const std::string& key, const std::string&, std::mt19937* random, Records* records) {
       std::string& value = (*records)[key];
       if (value.empty()) return false;
       value[0] = FlippedBit(value[0], random);
       return true;
     }},
    {"holds another's value", false, false,
     [](const std::string& key, const std::string& other, std::mt19937*, Records* records) {
       if ((*records)[key] == (*records)[other]) return false;
       (*records)[key] = (*records)[other];
       return true;
     }},
    {"lies under another key", false, false,
     [](const std::string& key, const std::string&, std::mt19937* random, Records* records) {
       std::string moved = key;
       moved[moved.size() - 2] = FlippedBit(moved[moved.size() - 2], random);
       if (records->contains(moved)) return false;
       (*records)[moved] = (*records)[key];
       records->erase(key);
       return true;
     }},
};

class PlantedDamageTest : public testing::Test, protected StoredRecords {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Open({}).ok());
    Run(kSchema);
    const catalog::SnapshotPtr catalog = database_->impl()->catalog->Current();
    for (const catalog::TablePtr& table : catalog->ListAllTables()) {
      if (table->kind != catalog::RelationKind::kTable) continue;
      for (const catalog::IndexDescriptor& index : table->indexes) {
        const uint32_t ids = index.primary ? codec::kIndexIdsOfPrimary : 1;
        for (uint32_t id = index.id.value; id < index.id.value + ids; ++id) {
          const std::string prefix = codec::TablePrefix(table->storage_id(), codec::IndexId{id});
          Class& made = classes_[prefix];
          made.name = fmt::format("{} {}+{}", table->name, index.name, id - index.id.value);
          made.of_rows = index.primary;
          made.of_parts = index.primary && (table->layout == catalog::Layout::kCell ||
                                            table->layout == catalog::Layout::kDatum);
        }
      }
    }
    for (const char* word : {"desc", "name", "ids", "seq", "role", "rowid", "count"}) {
      classes_[codec::SystemPrefix(word)].name = word;
      classes_[codec::SystemPrefix(word)].of_system = true;
    }
    database_->BeginShutdown();
    records_ = Dump();
    for (const auto& [key, value] : records_) {
      if (Class* of = ClassOf(key)) of->keys.push_back(key);
    }
  }

  struct Class {
    std::string name;
    bool of_rows = false, of_parts = false, of_system = false;
    std::vector<std::string> keys;
  };
  Class* ClassOf(std::string_view key) {
    for (auto& [prefix, of] : classes_) {
      if (key.starts_with(prefix)) return &of;
    }
    return nullptr;
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
  // Records of rows, by the undamaged catalog.
  Records RowsOf(const Records& records) {
    Records rows;
    for (const auto& [key, value] : records) {
      const Class* of = ClassOf(key);
      if (of != nullptr && of->of_rows) rows[key] = value;
    }
    return rows;
  }

  // What was planted is told, or the tables hold what they held.
  void Plant(const Class& of, const std::string& what, const Records& damaged, bool must_tell) {
    SCOPED_TRACE(what);
    const Status opened = Open(damaged);
    if (!opened.ok()) {
      ++refused_;
      return;  // which says what is wrong
    }
    const std::vector<std::string> findings = Run("check database full");
    std::vector<std::string> answers;
    for (const char* table : kTables) {
      // Ends, whatever it says.
      const Status read = Try(
          fmt::format("set statement_timeout = '20s'; select count(*), max(a::text) from {0} t(a);"
                      "select count(*) from {0} where true",
                      table));
      EXPECT_NE(read.sqlstate(), "57014") << table;
    }
    if (findings.empty()) {
      ++silent_;
      EXPECT_FALSE(of.of_system && must_tell);
      for (size_t i = 0; must_tell && i < std::size(kTables); ++i) {
        EXPECT_EQ(Run(fmt::format("select t::text from {} t order by 1", kTables[i])), whole_[i]);
      }
    } else {
      ++told_;
    }
    const Records rows = RowsOf(Dump());
    const Status repaired = Try("repair database");
    EXPECT_TRUE(repaired.ok()) << repaired.ToString();
    for (const auto& [key, value] : RowsOf(Dump())) {
      const auto before = rows.find(key);
      EXPECT_TRUE(before != rows.end() && before->second == value) << codec::PrintKey(key);
    }
    EXPECT_EQ(RowsOf(Dump()).size(), rows.size());
    // Nothing is found that was not there, nor more of it.
    EXPECT_LE(Run("check database full").size(), findings.size());
  }

  static int PerKind() {
    const char* text = std::getenv("CELLAR_DAMAGES");
    return text == nullptr ? 2 : std::max(1, std::atoi(text));
  }

  Records records_;
  std::map<std::string, Class> classes_;  // by the prefix of their keys
  std::vector<std::vector<std::string>> whole_;
  int told_ = 0, silent_ = 0, refused_ = 0;
};

TEST_F(PlantedDamageTest, IsToldAndNotMadeWorse) {
  ASSERT_TRUE(Open(records_).ok());
  ASSERT_TRUE(Run("check database full").empty());
  for (const char* table : kTables) {
    whole_.push_back(Run(fmt::format("select t::text from {} t order by 1", table)));
    ASSERT_GE(whole_.back().size(), 30u) << table;
  }
  std::mt19937 random(5);
  for (const auto& [prefix, of] : classes_) {
    if (of.keys.empty()) continue;
    for (const Kind& kind : kKinds) {
      for (int i = 0; i < PerKind(); ++i) {
        const std::string& key = of.keys[random() % of.keys.size()];
        const std::string& other = of.keys[random() % of.keys.size()];
        Records damaged = records_;
        if (!kind.plant(key, other, &random, &damaged)) continue;
        // A sequence that was never used has no record.
        const bool may_be_new = of.name == "seq" && (!damaged.contains(key));
        const bool must_tell = of.of_parts  ? kind.told_of_parts
                               : of.of_rows ? kind.told_of_rows
                                            : !may_be_new;
        Plant(of, fmt::format("{}: {} {}", of.name, codec::PrintKey(key), kind.name), damaged,
              must_tell);
      }
    }
  }
  EXPECT_GE(told_ + silent_ + refused_, 60 * PerKind());
  std::printf("%d told, %d without effect, %d refused\n", told_, silent_, refused_);
}

TEST_F(PlantedDamageTest, EveryBitOfADescriptorIsWatched) {
  std::mt19937 random(9);
  const std::vector<std::string>& keys = classes_[codec::SystemPrefix("desc")].keys;
  for (int i = 0; i < 500 * PerKind(); ++i) {
    const std::string& key = keys[random() % keys.size()];
    std::string value = records_[key];
    const size_t bit = random() % (value.size() * 8);
    value[bit / 8] = static_cast<char>(value[bit / 8] ^ 1 << bit % 8);
    std::unique_ptr<kv::Transaction> writer = database_->engine()->Begin();
    ASSERT_TRUE(writer->Put(key, value).ok());
    std::vector<std::string> findings;
    ASSERT_TRUE(catalog::CheckRecords(writer.get(), &findings).ok());
    EXPECT_FALSE(findings.empty()) << codec::PrintKey(key) << " bit " << bit;
    writer->Abort();
  }
}

}  // namespace
}  // namespace cellar::session
