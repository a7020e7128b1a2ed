// Keys made by rules of a collation that this process does not have are made anew.
#include <gtest/gtest.h>

#include "cellar/session/session_internal.h"
#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

class CollationsTest : public testing::Test {
 protected:
  void SetUp() override {
    session_.Run(
        "CREATE COLLATION changing (provider = icu, locale = 'sv');"
        "CREATE TABLE by_key (name text COLLATE changing PRIMARY KEY, n int);"
        "INSERT INTO by_key VALUES ('a', 1), ('ö', 2), ('o', 3), ('z', 4), ('ä', 5);"
        "CREATE TABLE by_index (id int PRIMARY KEY, name text COLLATE changing);"
        "CREATE INDEX by_index_name ON by_index (name DESC);"
        "INSERT INTO by_index SELECT n, name FROM by_key");
  }

  // As if the rules had been others when the keys were made: Swedish ones, of an older version.
  void Age() {
    Database::Impl& db = *session_.database()->impl();
    const std::unique_ptr<kv::Transaction> transaction = db.engine->Begin();
    catalog::CatalogEditor editor(db.catalog.get(), transaction.get());
    for (const char* name : {"changing", "by_key", "by_index"}) {
      for (const auto& list :
           {db.catalog->Current()->ListAllTables(), db.catalog->Current()->ListAllTypes()}) {
        for (const catalog::TablePtr& table : list) {
          if (table->name != name) continue;
          catalog::TableDescriptor next = *table;
          for (const Collation* one : catalog::CollationsOf(*table)) {
            catalog::ReplaceCollation(Old(*one), &next);
          }
          if (next.collation != nullptr) next.collation = Old(*next.collation);
          ASSERT_TRUE(editor.UpdateTable(std::move(next)).ok());
        }
      }
    }
    const Result<uint64_t> version = transaction->Commit();
    ASSERT_TRUE(version.ok());
    db.catalog->Publish(editor, *version);
  }

  static const Collation* Old(Collation of) {
    of.locale = "de";
    of.version = "1.0";
    return Intern(std::move(of));
  }

  std::string Joined(const std::string& query) {
    std::string out;
    for (const std::string& row : session_.Run(query)) out += row + " ";
    return out;
  }

  TestSession session_;
};

TEST_F(CollationsTest, KeysAreMadeAnewWhenTheRulesHaveChanged) {
  EXPECT_EQ(Joined("SELECT name FROM by_key ORDER BY name"), "a o z ä ö ");
  Age();
  // What opening a store does.
  const Status status = RefreshStaleCollations(session_.database());
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(Joined("SELECT name FROM by_key ORDER BY name"), "a ä o ö z ");
  EXPECT_EQ(Joined("SELECT n FROM by_key WHERE name = 'ö'"), "2 ");
  EXPECT_EQ(Joined("SELECT name FROM by_index WHERE name > 'b' ORDER BY name DESC"), "z ö o ");
  EXPECT_EQ(Joined("SELECT id FROM by_index WHERE name = 'ä'"), "5 ");
  EXPECT_EQ(Joined("CHECK DATABASE"), "");
  session_.Run("INSERT INTO by_key VALUES ('p', 6); DELETE FROM by_index WHERE name = 'ö'");
  EXPECT_EQ(Joined("CHECK DATABASE"), "");
  EXPECT_TRUE(RefreshStaleCollations(session_.database()).ok());
}

TEST_F(CollationsTest, WhatIsInTheBinFollowsWhenItComesBack) {
  session_.Run("DROP TABLE by_index");
  Age();
  ASSERT_TRUE(RefreshStaleCollations(session_.database()).ok());
  session_.Run("UNDROP TABLE by_index");
  EXPECT_EQ(Joined("SELECT name FROM by_index ORDER BY name"), "a ä o ö z ");
  EXPECT_EQ(Joined("CHECK DATABASE"), "");
}

}  // namespace
}  // namespace cellar::session
