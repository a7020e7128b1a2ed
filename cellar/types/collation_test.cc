#include "cellar/types/collation.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "cellar/types/datum.h"

namespace cellar {
namespace {

const Collation* Make(std::string locale, bool deterministic = true) {
  Collation made;
  made.oid = 20000;
  made.name = locale;
  made.locale = locale;
  made.deterministic = deterministic;
  made.version = CollationVersion(locale);
  return Intern(std::move(made));
}

Type TextOf(const Collation* collation) {
  Type type = MakeType(TypeId::kText);
  type.collation = collation;
  return type;
}

TEST(Collation, ContentIsInternedOnce) {
  EXPECT_EQ(Make("de"), Make("de"));
  EXPECT_NE(Make("de"), Make("sv"));
  EXPECT_NE(Make("de"), Make("de", false));
  EXPECT_FALSE(IsStale(*Make("de")));
  Collation old = *Make("de");
  old.version = "1.2";
  EXPECT_TRUE(IsStale(*Intern(old)));
}

TEST(Collation, BuiltInOnesHaveTheNamesOfPostgresql) {
  for (const std::string name : {"und-x-icu", "de-x-icu", "en-US-x-icu", "sv-SE-x-icu"}) {
    const Collation* found = FindBuiltInCollation(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->name, name);
    EXPECT_TRUE(found->built_in && found->deterministic);
    EXPECT_FALSE(IsStale(*found));
  }
  EXPECT_EQ(FindBuiltInCollation("nowhere-x-icu"), nullptr);
  EXPECT_EQ(FindBuiltInCollation("de"), nullptr);
  EXPECT_GT(BuiltInCollations().size(), 500u);
  EXPECT_LT(BuiltInCollations().back().oid, 16384u);
}

TEST(Collation, LocalesOrderInTheirOwnWays) {
  EXPECT_LT(CompareTexts("ö", "z", *Make("de")), 0);
  EXPECT_GT(CompareTexts("ö", "z", *Make("sv")), 0);
  EXPECT_LT(CompareTexts("a", "B", *Make("en")), 0);
  EXPECT_NE(CompareTexts("a", "A", *Make("en")), 0);
  // The same character in two spellings: equal by the rules, told apart by the bytes.
  const std::string composed = "\xC3\xA9", decomposed = "e\xCC\x81";
  EXPECT_NE(CompareTexts(composed, decomposed, *Make("fr")), 0);
  EXPECT_EQ(CompareTexts(composed, decomposed, *Make("fr", false)), 0);
}

TEST(Collation, LevelsIgnoreCaseAndAccents) {
  const Collation* no_case = Make("und-u-ks-level2", false);
  const Collation* no_accent = Make("und-u-ks-level1", false);
  EXPECT_EQ(CompareTexts("Grün", "GRÜN", *no_case), 0);
  EXPECT_EQ(CompareTexts("Straße", "STRASSE", *no_accent), 0);
  EXPECT_NE(CompareTexts("resume", "résumé", *no_case), 0);
  EXPECT_EQ(CompareTexts("RESUME", "résumé", *no_accent), 0);
  EXPECT_EQ(HashText("RESUME", *no_accent), HashText("résumé", *no_accent));
}

// Order, equality, hashes and keys agree, for any bytes.
TEST(Collation, KeysOrderAsTextsDo) {
  std::mt19937 random(5);
  const std::vector<std::string> pieces = {"a", "A",    "b",  "ä", "Ä",  "e\xCC\x81", "é",
                                           " ", "-",    "z",  "ß", "ss", "1",         "10",
                                           "2", "\xFF", "中", "😀", "\t", "\x01\x02"};
  const auto text = [&] {
    std::string out;
    for (size_t n = random() % 6; n > 0; --n) out += pieces[random() % pieces.size()];
    return out;
  };
  for (const Collation* collation :
       {Make("de"), Make("sv"), Make("und-u-ks-level1", false), Make("und-u-ks-level2", false),
        Make("de-u-co-phonebk"), Make("en-u-kn-true")}) {
    const Type type = TextOf(collation);
    for (int i = 0; i < 20000; ++i) {
      const std::string a = text(), b = text();
      std::string key_a, key_b;
      AppendSortKey(a, *collation, &key_a);
      AppendSortKey(b, *collation, &key_b);
      const int order = CompareDatums(Datum::Bytes(a), Datum::Bytes(b), type);
      const int by_key = key_a.compare(key_b);
      ASSERT_EQ(order < 0, by_key < 0) << collation->locale << ": " << a << " | " << b;
      ASSERT_EQ(order == 0, by_key == 0) << collation->locale << ": " << a << " | " << b;
      if (collation->deterministic) {
        ASSERT_EQ(order == 0, a == b);
        ASSERT_EQ(key_a.substr(key_a.find('\0') + 1), a);
      }
      if (order == 0) {
        ASSERT_EQ(HashDatum(Datum::Bytes(a), type), HashDatum(Datum::Bytes(b), type));
      }
    }
  }
}

TEST(Collation, LongTextsHaveKeys) {
  const Collation* collation = Make("de");
  std::string a(100'000, 'a'), b = a + "ä", key_a, key_b;
  AppendSortKey(a, *collation, &key_a);
  AppendSortKey(b, *collation, &key_b);
  EXPECT_LT(key_a, key_b);
  EXPECT_LT(CompareTexts(a, b, *collation), 0);
}

TEST(Collation, ThreadsShareACollator) {
  const Collation* collation = Make("de-u-co-phonebk");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        std::string key;
        AppendSortKey("Größe", *collation, &key);
        ASSERT_LT(CompareTexts("Größe", "Grube", *collation), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Collation, UnknownLocalesAreErrors) {
  EXPECT_TRUE(CheckCollationLocale("de-u-co-phonebk").ok());
  EXPECT_EQ(CheckCollationLocale("de-u-ks-nonsense").sqlstate(), "22023");
}

}  // namespace
}  // namespace cellar
