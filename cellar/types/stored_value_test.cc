#include "cellar/types/stored_value.h"

#include <gtest/gtest.h>

#include "cellar/types/array.h"
#include "cellar/types/datetime.h"
#include "cellar/types/enum_type.h"
#include "cellar/types/text_io.h"

namespace cellar {
namespace {

Type Of(TypeId id, int32_t modifier = -1) {
  Type type = MakeType(id);
  type.modifier = modifier;
  return type;
}

bool IsGood(Datum value, const Type& type) { return CheckStoredValue(value, type).ok(); }

TEST(StoredValue, TakesWhatParses) {
  struct Case {
    TypeId id;
    const char* text;
  };
  Arena arena;
  for (const Case& one :
       {Case{TypeId::kBool, "t"}, Case{TypeId::kInt2, "-32768"}, Case{TypeId::kInt4, "2147483647"},
        Case{TypeId::kInt8, "1"}, Case{TypeId::kText, "héllo"}, Case{TypeId::kDate, "infinity"},
        Case{TypeId::kDate, "4714-11-24 BC"}, Case{TypeId::kDate, "5874897-12-31"},
        Case{TypeId::kTime, "24:00:00"}, Case{TypeId::kTimetz, "00:00:00+15:59"},
        Case{TypeId::kTimestamp, "-infinity"},
        Case{TypeId::kTimestamptz, "294276-12-31 23:59:59.999999+00"},
        Case{TypeId::kJson, "{\"a\": [1, null]}"}, Case{TypeId::kJsonb, "[]"},
        Case{TypeId::kChar, "\\377"}, Case{TypeId::kNumeric, "1.5"},
        Case{TypeId::kUuid, "00000000-0000-0000-0000-000000000001"}}) {
    const Result<Datum> value = ParseDatum(one.text, Of(one.id), FormatSettings(), &arena);
    ASSERT_TRUE(value.ok()) << one.text << value.status().message();
    EXPECT_TRUE(IsGood(*value, Of(one.id))) << one.text;
  }
  EXPECT_TRUE(IsGood(Datum(), Of(TypeId::kText)));
}

TEST(StoredValue, RefusesWhatNoStatementStores) {
  EXPECT_FALSE(IsGood(Datum::Int(2), Of(TypeId::kBool)));
  EXPECT_FALSE(IsGood(Datum::Int(40000), Of(TypeId::kInt2)));
  EXPECT_FALSE(IsGood(Datum::Bytes("\xff"), Of(TypeId::kText)));
  EXPECT_FALSE(IsGood(Datum::Bytes(std::string_view("a\0b", 3)), Of(TypeId::kText)));
  EXPECT_FALSE(IsGood(Datum::Bytes("abc"), Of(TypeId::kVarchar, 4 + 2)));
  EXPECT_TRUE(IsGood(Datum::Bytes("\xc3\xa9\xc3\xa9"), Of(TypeId::kVarchar, 4 + 2)));
  EXPECT_FALSE(IsGood(Datum::Bytes(std::string(64, 'n')), Of(TypeId::kName)));
  EXPECT_FALSE(IsGood(Datum::Bytes("{"), Of(TypeId::kJson)));
  EXPECT_FALSE(IsGood(Datum::Int(kEndDate), Of(TypeId::kDate)));
  EXPECT_FALSE(IsGood(Datum::Int(kMicrosPerDay + 1), Of(TypeId::kTime)));
  EXPECT_FALSE(IsGood(Datum::Int(kMinTimestamp - 1), Of(TypeId::kTimestamp)));
}

TEST(StoredValue, LooksAtCodesAndElements) {
  EnumType mood;
  mood.oid = 20000;
  mood.array_oid = 20001;
  mood.name = "mood";
  mood.labels = {{int64_t{1} << 32, 20002, "sad"}};
  Type type = Of(TypeId::kEnum);
  type.enumeration = Intern(std::move(mood));
  EXPECT_TRUE(IsGood(Datum::Int(int64_t{1} << 32), type));
  EXPECT_FALSE(IsGood(Datum::Int(7), type));

  Arena arena;
  ArrayBuilder builder(Of(TypeId::kText));
  builder.Add(Datum::Bytes("a"));
  builder.Add(Datum());
  builder.Add(Datum::Bytes("\xff"));
  Type array = Of(TypeId::kText);
  array.array = true;
  const Status status = CheckStoredValue(Datum::Bytes(builder.Finish(&arena)), array);
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_EQ(status.message(), "element 3: it is no UTF-8 text");
  EXPECT_FALSE(IsGood(Datum::Bytes("x"), array));
}

}  // namespace
}  // namespace cellar
