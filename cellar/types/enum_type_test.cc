#include "cellar/types/enum_type.h"

#include <gtest/gtest.h>

#include "cellar/types/record.h"
#include "cellar/types/text_io.h"

namespace cellar {
namespace {

EnumType Mood(uint32_t oid = 20000) {
  EnumType type{oid, oid + 1, "mood", {}};
  for (const char* name : {"sad", "ok", "happy"}) {
    type.labels.push_back({*NextEnumCode(type.labels, type.labels.size()), ++oid + 10, name});
  }
  return type;
}

TEST(EnumTypeTest, InternsEqualContentOnce) {
  const EnumType* one = Intern(Mood());
  EXPECT_EQ(one, Intern(Mood()));
  EnumType longer = Mood();
  longer.labels.push_back({*NextEnumCode(longer.labels, 3), 1, "elated"});
  const EnumType* two = Intern(longer);
  EXPECT_NE(one, two);
  // Versions of one type are the same type; another oid is another.
  EXPECT_TRUE(MakeEnum(one) == MakeEnum(two));
  EXPECT_FALSE(MakeEnum(one) == MakeEnum(Intern(Mood(30000))));
  EXPECT_FALSE(MakeEnum(one) == MakeEnum(one, true));
}

TEST(EnumTypeTest, CodesLeaveRoomBetweenLabels) {
  std::vector<EnumLabel> labels = Mood().labels;
  EXPECT_EQ(labels[0].code, kEnumCodeGap);
  EXPECT_EQ(labels[2].code, 3 * kEnumCodeGap);
  EXPECT_EQ(NextEnumCode(labels, 0), 0);
  EXPECT_EQ(NextEnumCode(labels, 1), kEnumCodeGap + kEnumCodeGap / 2);
  EXPECT_EQ(NextEnumCode(labels, 3), 4 * kEnumCodeGap);
  // Always behind the first: the gap ends after 32 times, and says so.
  int room = 0;
  while (std::optional<int64_t> code = NextEnumCode(labels, 1)) {
    EXPECT_LT(labels[0].code, *code);
    EXPECT_LT(*code, labels[1].code);
    labels.insert(labels.begin() + 1, EnumLabel{*code, 0, "x"});
    ++room;
  }
  EXPECT_EQ(room, 32);
  labels = {{INT64_MIN + 1, 0, "first"}, {INT64_MAX - 1, 0, "last"}};
  EXPECT_EQ(NextEnumCode(labels, 0), std::nullopt);
  EXPECT_EQ(NextEnumCode(labels, 2), std::nullopt);
  EXPECT_EQ(NextEnumCode(labels, 1), -1);
}

TEST(EnumTypeTest, ReadsAndWritesLabels) {
  const Type type = MakeEnum(Intern(Mood()));
  Arena arena;
  Result<Datum> ok = ParseDatum("ok", type, {}, &arena);
  ASSERT_TRUE(ok.ok());
  EXPECT_EQ(ok->int_value(), 2 * kEnumCodeGap);
  Result<Datum> bad = ParseDatum("OK", type, {}, &arena);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().sqlstate(), "22P02");
  EXPECT_EQ(bad.status().message(), "invalid input value for enum mood: \"OK\"");
  std::string text;
  AppendDatumText(*ok, type, {}, &text);
  EXPECT_EQ(text, "ok");
  std::string binary;
  AppendDatumBinary(*ok, type, &binary);
  EXPECT_EQ(binary, "ok");
  ASSERT_TRUE(ParseDatumBinary("happy", type, &arena).ok());
  EXPECT_FALSE(ParseDatumBinary("hap", type, &arena).ok());
  // A code that no label has prints as a number, and never crashes.
  text.clear();
  AppendDatumText(Datum::Int(7), type, {}, &text);
  EXPECT_EQ(text, "7");
}

TEST(EnumTypeTest, GoesThroughArraysAndRecords) {
  const Type type = MakeEnum(Intern(Mood()));
  Arena arena;
  Result<Datum> array = ParseDatum("{happy,NULL,sad}", ArrayOf(type), {}, &arena);
  ASSERT_TRUE(array.ok());
  std::string text;
  AppendDatumText(*array, ArrayOf(type), {}, &text);
  EXPECT_EQ(text, "{happy,NULL,sad}");
  std::string_view record = MakeRecord({{type, Datum::Int(kEnumCodeGap), "m"}}, &arena).value();
  text.clear();
  AppendRecordText(record, {}, &text);
  EXPECT_EQ(text, "(sad)");
}

TEST(EnumTypeTest, IsNamedAsSqlNamesIt) {
  EnumType odd = Mood(40000);
  odd.name = "My Mood";
  const Type type = MakeEnum(Intern(odd));
  EXPECT_EQ(FormatType(type), "\"My Mood\"");
  EXPECT_EQ(FormatType(ArrayOf(type)), "\"My Mood\"[]");
  EXPECT_EQ(TypeName(ArrayOf(type)), "_My Mood");
  EXPECT_EQ(OidOf(type), 40000U);
  EXPECT_EQ(OidOf(ArrayOf(type)), 40001U);
  EXPECT_TRUE(IsStorable(type));
  EXPECT_FALSE(TypeFromName("enum").has_value());
}

}  // namespace
}  // namespace cellar
