#include "cellar/types/reference_key.h"

#include <gtest/gtest.h>

#include <string>

#include "cellar/types/datetime.h"

namespace cellar {
namespace {

// The equal value as text, or "none".
std::string Equal(const char* text, TypeId from, TypeId to, const TimeZone* zone = nullptr) {
  FormatSettings format;
  format.time_zone = zone;
  Arena arena;
  const Result<Datum> value = ParseDatum(text, MakeType(from), format, &arena);
  EXPECT_TRUE(value.ok()) << text;
  Datum equal;
  if (!ConvertReferenceKey(*value, MakeType(from), MakeType(to), format, &arena, &equal))
    return "none";
  std::string out;
  AppendDatumText(equal, MakeType(to), format, &out);
  return out;
}

TEST(ReferenceKey, NumbersMeetWhereTheyAreEqual) {
  using enum TypeId;
  EXPECT_EQ(Equal("9223372036854775807", kInt8, kNumeric), "9223372036854775807");
  EXPECT_EQ(Equal("2.00", kNumeric, kInt4), "2");
  EXPECT_EQ(Equal("2.01", kNumeric, kInt4), "none");
  EXPECT_EQ(Equal("32768", kNumeric, kInt2), "none");
  EXPECT_EQ(Equal("NaN", kNumeric, kInt8), "none");
  EXPECT_EQ(Equal("1e30", kNumeric, kInt8), "none");
  EXPECT_EQ(Equal("0.5", kFloat8, kFloat4), "0.5");
  EXPECT_EQ(Equal("0.1", kFloat8, kFloat4), "none");
  EXPECT_EQ(Equal("1e300", kFloat8, kFloat4), "none");
  EXPECT_EQ(Equal("NaN", kFloat8, kFloat4), "NaN");
  EXPECT_EQ(Equal("Infinity", kFloat4, kFloat8), "Infinity");
  EXPECT_EQ(Equal("9223372036854775807", kInt8, kFloat8), "9.223372036854776e+18");
  EXPECT_EQ(Equal("9.223372036854775807e18", kFloat8, kInt8), "none");
  EXPECT_EQ(Equal("-9.223372036854775808e18", kFloat8, kInt8), "-9223372036854775808");
  EXPECT_EQ(Equal("1.5", kFloat8, kInt8), "none");
  EXPECT_EQ(Equal("5000000000", kInt8, kInt4), "none");
  EXPECT_EQ(Equal("-1", kInt4, kOid), "4294967295");
  EXPECT_EQ(Equal("4294967295", kOid, kInt4), "-1");
  EXPECT_EQ(Equal("4294967296", kInt8, kOid), "none");
}

TEST(ReferenceKey, MomentsMeetInTheTimeZone) {
  using enum TypeId;
  const std::shared_ptr<const TimeZone> berlin = TimeZone::Find("Europe/Berlin");
  ASSERT_NE(berlin, nullptr);
  EXPECT_EQ(Equal("2024-01-01", kDate, kTimestamp), "2024-01-01 00:00:00");
  EXPECT_EQ(Equal("2024-01-01 00:00:01", kTimestamp, kDate), "none");
  EXPECT_EQ(Equal("2024-01-01 00:00+01", kTimestamptz, kDate, berlin.get()), "2024-01-01");
  EXPECT_EQ(Equal("2024-01-01 00:00+00", kTimestamptz, kDate, berlin.get()), "none");
  // Half past two was never there that night: PostgreSQL takes it for half past three.
  EXPECT_EQ(Equal("2024-03-31 02:30", kTimestamp, kTimestamptz, berlin.get()),
            "2024-03-31 03:30:00+02");
  EXPECT_EQ(Equal("infinity", kDate, kTimestamptz, berlin.get()), "infinity");
  EXPECT_EQ(Equal("-infinity", kTimestamptz, kDate, berlin.get()), "-infinity");
}

TEST(ReferenceKey, OnlyWhatPostgreSQLCompares) {
  using enum TypeId;
  const auto can = [](TypeId from, TypeId to) {
    return CanReference(MakeType(from), MakeType(to));
  };
  EXPECT_TRUE(can(kInt2, kNumeric) && can(kNumeric, kFloat8) && can(kFloat8, kFloat4));
  EXPECT_TRUE(can(kDate, kTimestamptz) && can(kTimestamptz, kDate) && can(kInt8, kOid));
  EXPECT_FALSE(can(kNumeric, kInt8) || can(kFloat8, kNumeric) || can(kText, kInt4));
  EXPECT_FALSE(can(kOid, kInt4) || can(kDate, kInt4) || can(kBool, kInt4));
  EXPECT_FALSE(CanReference(ArrayOf(MakeType(kInt4)), MakeType(kNumeric)));
}

}  // namespace
}  // namespace cellar
