#include "cellar/types/type.h"

#include <gtest/gtest.h>

namespace cellar {
namespace {

TEST(Type, HasPostgreSqlsObjectIdsBothWays) {
  struct Case {
    TypeId id;
    uint32_t oid, array_oid;
  };
  constexpr Case kCases[] = {
      {TypeId::kBool, 16, 1000},      {TypeId::kInt4, 23, 1007},      {TypeId::kText, 25, 1009},
      {TypeId::kNumeric, 1700, 1231}, {TypeId::kTimetz, 1266, 1270},  {TypeId::kUuid, 2950, 2951},
      {TypeId::kJsonb, 3802, 3807},   {TypeId::kName, 19, 1003},      {TypeId::kBpchar, 1042, 1014},
      {TypeId::kDate, 1082, 1182},    {TypeId::kInterval, 1186, 1187}};
  for (const Case& c : kCases) {
    EXPECT_EQ(OidOf(MakeType(c.id)), c.oid);
    EXPECT_EQ(OidOf(ArrayOf(c.id)), c.array_oid);
    EXPECT_EQ(TypeFromOid(c.oid), MakeType(c.id));
    EXPECT_EQ(TypeFromOid(c.array_oid), ArrayOf(c.id));
  }
  EXPECT_EQ(TypeFromOid(0), std::nullopt);
  EXPECT_EQ(TypeFromOid(4711), std::nullopt);
}

TEST(Type, FormatsNamesWithModifiersAsFormatType) {
  auto format = [](TypeId id, int32_t modifier) { return FormatType(MakeType(id, modifier)); };
  EXPECT_EQ(format(TypeId::kVarchar, 34), "character varying(30)");
  EXPECT_EQ(format(TypeId::kBpchar, 14), "character(10)");
  EXPECT_EQ(format(TypeId::kBpchar, -1), "bpchar");
  EXPECT_EQ(format(TypeId::kNumeric, ((10 << 16) | 2) + 4), "numeric(10,2)");
  EXPECT_EQ(format(TypeId::kNumeric, ((10 << 16) | (-2 & 2047)) + 4), "numeric(10,-2)");
  EXPECT_EQ(format(TypeId::kTimestamp, 3), "timestamp(3) without time zone");
  EXPECT_EQ(format(TypeId::kTimestamptz, 0), "timestamp(0) with time zone");
  EXPECT_EQ(format(TypeId::kTimetz, 2), "time(2) with time zone");
  EXPECT_EQ(format(TypeId::kInterval, (4 << 16) | 0xFFFF), "interval year");
  EXPECT_EQ(format(TypeId::kInterval, 0x7FFF0003), "interval(3)");
  EXPECT_EQ(format(TypeId::kInterval, 3), "interval(3)");
  EXPECT_EQ(format(TypeId::kChar, -1), "\"char\"");
  EXPECT_EQ(FormatType(Type{TypeId::kVarchar, true, 34}), "character varying(30)[]");
  EXPECT_EQ(FormatType(ArrayOf(TypeId::kInt4)), "integer[]");
}

TEST(Type, IsFoundByItsNames) {
  EXPECT_EQ(TypeFromName("int4"), MakeType(TypeId::kInt4));
  EXPECT_EQ(TypeFromName("integer"), MakeType(TypeId::kInt4));
  EXPECT_EQ(TypeFromName("_int4"), ArrayOf(TypeId::kInt4));
  EXPECT_EQ(TypeFromName("text[]"), ArrayOf(TypeId::kText));
  EXPECT_EQ(TypeFromName("char"), MakeType(TypeId::kChar));
  EXPECT_EQ(TypeFromName("character"), MakeType(TypeId::kBpchar));
  EXPECT_EQ(TypeFromName("double precision"), MakeType(TypeId::kFloat8));
  EXPECT_EQ(TypeFromName("timestamp with time zone"), MakeType(TypeId::kTimestamptz));
  EXPECT_EQ(TypeFromName("nonsense"), std::nullopt);
  for (int i = 1; i < 106; ++i) {
    const Type type = MakeType(static_cast<TypeId>(i));
    if (OidOf(type) == 0) continue;
    EXPECT_EQ(TypeFromName(TypeName(type)), type);
    EXPECT_EQ(TypeFromOid(OidOf(type)), type);
  }
}

TEST(Type, StoresNoPseudoTypes) {
  EXPECT_TRUE(IsStorable(MakeType(TypeId::kInt4)));
  EXPECT_TRUE(IsStorable(ArrayOf(TypeId::kText)));
  EXPECT_FALSE(IsStorable(MakeType(TypeId::kUnknown)));
  EXPECT_FALSE(IsStorable(MakeType(TypeId::kVoid)));
  EXPECT_FALSE(IsStorable(MakeType(TypeId::kInvalid)));
  EXPECT_FALSE(IsStorable(ArrayOf(TypeId::kPgNodeTree)));
}

}  // namespace
}  // namespace cellar
