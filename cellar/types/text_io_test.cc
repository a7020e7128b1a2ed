#include "cellar/types/text_io.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "cellar/types/array.h"
#include "cellar/types/pg_cases.h"
#include "cellar/types/record.h"

namespace cellar {
namespace {

std::string ReadWithModifier(TypeId id, int32_t modifier, std::string_view text) {
  Arena arena;
  const Type type = MakeType(id, modifier);
  return Print(ParseDatum(text, type, FormatSettings(), &arena), type, FormatSettings());
}

TEST(TextIo, LimitsAndPadsCharacterTypes) {
  EXPECT_EQ(ReadWithModifier(TypeId::kVarchar, 7, "abc"), "abc");
  EXPECT_EQ(ReadWithModifier(TypeId::kVarchar, 7, "abc  "), "abc");
  EXPECT_EQ(ReadWithModifier(TypeId::kVarchar, 7, "abcd"),
            "ERROR 22001 value too long for type character varying(3)");
  EXPECT_EQ(ReadWithModifier(TypeId::kVarchar, 7, "äöü"), "äöü");
  EXPECT_EQ(ReadWithModifier(TypeId::kBpchar, 9, "ab"), "ab   ");
  EXPECT_EQ(ReadWithModifier(TypeId::kBpchar, 9, "äb       "), "äb   ");
  EXPECT_EQ(ReadWithModifier(TypeId::kBpchar, 5, "ab"),
            "ERROR 22001 value too long for type character(1)");
  EXPECT_EQ(ReadWithModifier(TypeId::kName, -1, std::string(70, 'x')), std::string(63, 'x'));
  EXPECT_EQ(ReadWithModifier(TypeId::kChar, -1, "abc"), "a");
  EXPECT_EQ(ReadWithModifier(TypeId::kChar, -1, ""), "");
}

TEST(TextIo, CutsOnExplicitCasts) {
  Arena arena;
  const Type varchar = MakeType(TypeId::kVarchar, 6);
  EXPECT_EQ(ApplyModifier(Datum::Bytes("äöü"), varchar, true, &arena)->bytes(), "äö");
  EXPECT_EQ(ApplyModifier(Datum::Bytes("äöü"), varchar, false, &arena).status().sqlstate(),
            "22001");
  const Type array = {TypeId::kVarchar, true, 6};
  const std::string_view bytes =
      *ParseArray("{abc,NULL,d}", MakeType(TypeId::kText), FormatSettings(), &arena);
  EXPECT_EQ(Print(ApplyModifier(Datum::Bytes(bytes), array, true, &arena), array, FormatSettings()),
            "{ab,NULL,d}");
}

TEST(TextIo, RefusesTextThatIsNotUtf8) {
  EXPECT_TRUE(IsValidText(""));
  EXPECT_TRUE(IsValidText("plain text that is longer than eight bytes"));
  EXPECT_TRUE(IsValidText("grüße, 世界, 🙂"));
  EXPECT_FALSE(IsValidText(std::string_view("a\0b", 3)));
  EXPECT_FALSE(IsValidText(std::string_view("abcdefgh\0", 9)));
  EXPECT_FALSE(IsValidText("\xff"));
  EXPECT_FALSE(IsValidText("abcdefghij\xc3"));
  EXPECT_FALSE(IsValidText("\xed\xa0\x80"));
  EXPECT_FALSE(IsValidText("\xc0\x80"));
  EXPECT_EQ(ReadAndPrint("text", "ab\xc3("),
            "ERROR 22021 invalid byte sequence for encoding \"UTF8\": 0xc3 0x28");
  EXPECT_EQ(ReadAndPrint("text", std::string_view("a\0", 2)),
            "ERROR 22021 invalid byte sequence for encoding \"UTF8\": 0x00");
}

TEST(TextIo, KeepsEveryFloatThroughText) {
  std::mt19937_64 random(1);
  Arena arena;
  const Type float8 = MakeType(TypeId::kFloat8), float4 = MakeType(TypeId::kFloat4);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = random();
    double wide;
    std::memcpy(&wide, &bits, 8);
    std::string text;
    AppendDatumText(Datum::Double(wide), float8, FormatSettings(), &text);
    EXPECT_EQ(CompareDatums(*ParseDatum(text, float8, FormatSettings(), &arena),
                            Datum::Double(wide), float8),
              0)
        << text;
    float narrow;
    std::memcpy(&narrow, &bits, 4);
    text.clear();
    AppendDatumText(Datum::Double(narrow), float4, FormatSettings(), &text);
    EXPECT_EQ(CompareDatums(*ParseDatum(text, float4, FormatSettings(), &arena),
                            Datum::Double(narrow), float4),
              0)
        << text;
  }
}

TEST(TextIo, PrintsFloatsWithFewerDigitsOnRequest) {
  FormatSettings settings;
  settings.extra_float_digits = 0;
  EXPECT_EQ(Print(Datum::Double(0.1 + 0.2), MakeType(TypeId::kFloat8), settings), "0.3");
  EXPECT_EQ(Print(Datum::Double(1e20 / 3), MakeType(TypeId::kFloat8), settings),
            "3.33333333333333e+19");
  settings.extra_float_digits = -3;
  EXPECT_EQ(Print(Datum::Double(1.0 / 3), MakeType(TypeId::kFloat8), settings), "0.333333333333");
  EXPECT_EQ(Print(Datum::Double(1.0f / 3), MakeType(TypeId::kFloat4), settings), "0.333");
}

TEST(TextIo, PrintsByteaInTwoForms) {
  FormatSettings settings;
  const Datum bytes = Datum::Bytes(std::string_view("a\\\x01\xff", 4));
  EXPECT_EQ(Print(bytes, MakeType(TypeId::kBytea), settings), "\\x615c01ff");
  settings.bytea_output = ByteaOutput::kEscape;
  EXPECT_EQ(Print(bytes, MakeType(TypeId::kBytea), settings), "a\\\\\\001\\377");
}

TEST(BinaryIo, RefusesWrongSizesAndRanges) {
  Arena arena;
  auto state = [&](std::string_view bytes, TypeId id) {
    return std::string(ParseDatumBinary(bytes, MakeType(id), &arena).status().sqlstate());
  };
  EXPECT_EQ(state("abc", TypeId::kInt4), "08P01");
  EXPECT_EQ(state("abcde", TypeId::kInt4), "22P03");
  EXPECT_EQ(state("", TypeId::kBool), "08P01");
  EXPECT_EQ(state("\x7f\xff\xff\xff\xff\xff\xff\xfe", TypeId::kTimestamp), "22008");
  EXPECT_EQ(state("\x7f\xff\xff\xff\xff\xff\xff\xff", TypeId::kTimestamp), "");
  EXPECT_EQ(state("\x7f\xff\xff\xff\xff\xff\xff\xff", TypeId::kTime), "22008");
  EXPECT_EQ(state("\x02{}", TypeId::kJsonb), "22P03");
  EXPECT_EQ(state("\x01{", TypeId::kJsonb), "22P02");
  EXPECT_EQ(state("\xff", TypeId::kText), "22021");
}

// Quotes double at each level of nesting: the text of 60 levels would fill any memory.
TEST(Text, OfNestedRecordsIsCutOff) {
  Arena arena;
  std::string_view record = *MakeRecord({{MakeType(TypeId::kInt4), Datum::Int(1), ""}}, &arena);
  for (int level = 0; level < 60; ++level) {
    record = *MakeRecord({{MakeType(TypeId::kRecord), Datum::Bytes(record), ""}}, &arena);
  }
  FormatSettings settings;
  settings.max_text_bytes = 1 << 20;
  std::string text;
  AppendRecordText(record, settings, &text);
  EXPECT_GT(text.size(), settings.max_text_bytes);
  EXPECT_LT(text.size(), 2 * settings.max_text_bytes);
}

TEST(Text, OfLongValuesIsCutOff) {
  Arena arena;
  FormatSettings settings;
  settings.max_text_bytes = 1000;
  std::string text;
  AppendDatumText(Datum::Bytes(std::string(5000, 'x')), MakeType(TypeId::kBytea), settings, &text);
  EXPECT_GT(text.size(), 1000u);
  EXPECT_LT(text.size(), 1100u);
  ArrayBuilder builder(MakeType(TypeId::kInt4));
  for (int i = 0; i < 100000; ++i) builder.Add(Datum::Int(i));
  text.clear();
  AppendArrayText(builder.Finish(&arena), MakeType(TypeId::kInt4), settings, &text);
  EXPECT_GT(text.size(), 1000u);
  EXPECT_LT(text.size(), 1100u);
}

}  // namespace
}  // namespace cellar
