#include "cellar/types/datetime.h"

#include <gtest/gtest.h>

#include <random>

#include "cellar/types/pg_cases.h"

namespace cellar {
namespace {

TEST(Calendar, CountsDaysBothWays) {
  EXPECT_EQ(DaysFromCivil(2000, 1, 1), 0);
  EXPECT_EQ(DaysFromCivil(1970, 1, 1), -kUnixEpochDays);
  EXPECT_EQ(DaysFromCivil(-4713, 11, 24), kMinDate);
  EXPECT_EQ(DaysFromCivil(5874898, 1, 1), kEndDate);
  int64_t year;
  int month, day;
  for (int64_t days = -2451545; days < 3000000; days += 97) {
    CivilFromDays(days, &year, &month, &day);
    ASSERT_EQ(DaysFromCivil(year, month, day), days);
    ASSERT_LE(day, DaysInMonth(year, month));
  }
}

TEST(DateTime, KeepsEveryValueThroughTextInEveryStyle) {
  std::mt19937_64 random(99);
  for (DateStyle style :
       {DateStyle::kIso, DateStyle::kPostgres, DateStyle::kSql, DateStyle::kGerman}) {
    for (DateOrder order : {DateOrder::kMdy, DateOrder::kDmy}) {
      if (style == DateStyle::kGerman && order != DateOrder::kDmy) continue;
      const Session session(style, order, IntervalStyle::kPostgres, "UTC");
      const FormatSettings& settings = session.settings();
      for (int i = 0; i < 400; ++i) {
        const int64_t span = i % 2 == 0 ? kEndTimestamp - 1 : 100 * 365 * kMicrosPerDay;
        int64_t micros = static_cast<int64_t>(random() % static_cast<uint64_t>(span));
        if (i % 3 == 0) micros = std::max(-micros, kMinTimestamp);
        std::string text;
        AppendTimestamp(micros, settings, &text);
        EXPECT_EQ(*ParseTimestamp(text, -1, settings), micros) << text;
        text.clear();
        AppendTimestampTz(micros, settings, &text);
        EXPECT_EQ(*ParseTimestampTz(text, -1, settings), micros) << text;
        text.clear();
        const int64_t days = DateFromTimestamp(micros);
        AppendDate(days, settings, &text);
        EXPECT_EQ(*ParseDate(text, settings), days) << text;
      }
    }
  }
}

TEST(Interval, KeepsEveryValueThroughTextInEveryStyle) {
  std::mt19937_64 random(5);
  auto pick = [&](int64_t limit) {
    if (random() % 3 == 0) return int64_t{0};
    const auto value = static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
    return random() % 2 == 0 ? value : -value;
  };
  for (IntervalStyle style : {IntervalStyle::kPostgres, IntervalStyle::kPostgresVerbose,
                              IntervalStyle::kSqlStandard, IntervalStyle::kIso8601}) {
    const Session session(DateStyle::kIso, DateOrder::kMdy, style, "UTC");
    for (int i = 0; i < 500; ++i) {
      const Interval value = {pick(1000 * kMicrosPerHour), static_cast<int32_t>(pick(100000)),
                              static_cast<int32_t>(pick(100000))};
      std::string text;
      AppendInterval(value, session.settings(), &text);
      auto back = ParseInterval(text, -1, session.settings());
      ASSERT_TRUE(back.ok()) << text;
      EXPECT_EQ(*back, value) << text;
    }
  }
}

TEST(DateTime, ReadsWordsThatDependOnNow) {
  // Now is 2026-01-13 12:00 UTC; in Auckland it is the 14th.
  const Session utc(DateStyle::kIso, DateOrder::kMdy, IntervalStyle::kPostgres, "UTC");
  const Session auckland(DateStyle::kIso, DateOrder::kMdy, IntervalStyle::kPostgres,
                         "Pacific/Auckland");
  EXPECT_EQ(ReadAndPrint("date", "today", utc.settings()), "2026-01-13");
  EXPECT_EQ(ReadAndPrint("date", "today", auckland.settings()), "2026-01-14");
  EXPECT_EQ(ReadAndPrint("date", "tomorrow", utc.settings()), "2026-01-14");
  EXPECT_EQ(ReadAndPrint("timestamp", "yesterday 04:05", utc.settings()), "2026-01-12 04:05:00");
  EXPECT_EQ(ReadAndPrint("timestamptz", "now", auckland.settings()), "2026-01-14 01:00:00+13");
  EXPECT_EQ(ReadAndPrint("timestamp", "now", auckland.settings()), "2026-01-14 01:00:00");
  EXPECT_EQ(ReadAndPrint("time", "now", utc.settings()), "12:00:00");
  EXPECT_EQ(ReadAndPrint("timestamptz", "today", auckland.settings()), "2026-01-14 00:00:00+13");
}

TEST(DateTime, RoundsToItsPrecision) {
  Arena arena;
  auto print = [&](TypeId id, int32_t modifier, std::string_view text) {
    const Type type = MakeType(id, modifier);
    return Print(ParseDatum(text, type, FormatSettings(), &arena), type, FormatSettings());
  };
  EXPECT_EQ(print(TypeId::kTimestamp, 0, "2024-01-01 23:59:59.5"), "2024-01-02 00:00:00");
  EXPECT_EQ(print(TypeId::kTimestamp, 3, "1999-12-31 23:59:59.9994"), "1999-12-31 23:59:59.999");
  EXPECT_EQ(print(TypeId::kTime, 2, "12:00:00.125"), "12:00:00.13");
  EXPECT_EQ(print(TypeId::kTimetz, 0, "12:00:00.5+02"), "12:00:01+02");
  EXPECT_EQ(print(TypeId::kInterval, 1, "1.25 s"), "00:00:01.3");
  const int32_t year_to_month = MakeIntervalModifier((1 << 2) | (1 << 1), -1);
  EXPECT_EQ(print(TypeId::kInterval, year_to_month, "1-2"), "1 year 2 mons");
  EXPECT_EQ(print(TypeId::kInterval, year_to_month, "14 mons 3 days"), "1 year 2 mons");
  EXPECT_EQ(print(TypeId::kInterval, MakeIntervalModifier(1 << 10, -1), "5"), "05:00:00");
}

TEST(TimeZone, IsFoundByNameWhateverTheCase) {
  EXPECT_EQ(TimeZone::Find("europe/BERLIN")->name(), "Europe/Berlin");
  EXPECT_EQ(TimeZone::Find("utc")->name(), "UTC");
  EXPECT_EQ(TimeZone::Find("nonsense"), nullptr);
  EXPECT_EQ(TimeZone::Find("../../etc/passwd"), nullptr);
  EXPECT_EQ(TimeZone::Find("Europe"), nullptr);
  EXPECT_EQ(TimeZone::Find(""), nullptr);
  EXPECT_EQ(TimeZone::Find("UTC+3")->OffsetAt(0), -3 * 3600);
  EXPECT_EQ(TimeZone::Find("<+07>-7")->OffsetAt(0), 7 * 3600);
  EXPECT_EQ(TimeZone::Find("pst")->OffsetAt(0), -8 * 3600);
  EXPECT_EQ(TimeZone::FindForSetting("pst"), nullptr);
  EXPECT_EQ(TimeZone::FindForSetting("+02")->OffsetAt(0), 2 * 3600);
  EXPECT_EQ(TimeZone::FindForSetting("+02")->name(), "<+02>-02");
  EXPECT_EQ(TimeZone::FindForSetting("-3.5")->OffsetAt(0), -12600);
}

TEST(TimeZone, KnowsLocalReadingsInGapsAndOverlaps) {
  auto zone = TimeZone::Find("America/New_York");
  auto offset = [&](std::string_view local) {
    return zone->OffsetOfLocal(*ParseTimestamp(local, -1, FormatSettings())) / 3600;
  };
  EXPECT_EQ(offset("2024-03-10 01:59:59"), -5);
  EXPECT_EQ(offset("2024-03-10 02:30:00"), -5);  // never was
  EXPECT_EQ(offset("2024-03-10 03:00:00"), -4);
  EXPECT_EQ(offset("2024-11-03 00:59:59"), -4);
  EXPECT_EQ(offset("2024-11-03 01:30:00"), -5);  // was twice
  EXPECT_EQ(offset("2024-11-03 02:00:00"), -5);
  EXPECT_EQ(offset("2099-07-01 12:00:00"), -4);  // by the rule after the last transition
  auto posix = TimeZone::Find("EST5EDT,M3.2.0,M11.1.0");
  ASSERT_NE(posix, nullptr);
  EXPECT_EQ(posix->OffsetOfLocal(*ParseTimestamp("2024-07-01", -1, FormatSettings())), -4 * 3600);
}

TEST(DateTime, RefusesResultsOutOfRange) {
  EXPECT_EQ(AddDays(kEndDate - 1, 1).status().message(), "date out of range");
  EXPECT_EQ(*AddDays(kDateInfinity, -5), kDateInfinity);
  EXPECT_EQ(SubtractDates(kDateInfinity, 0).status().sqlstate(), "22008");
  EXPECT_EQ(AddInterval(0, {0, INT32_MAX, 0}).status().message(), "timestamp out of range");
  EXPECT_EQ(AddInterval(0, {INT64_MAX, 0, 0}).status().sqlstate(), "22008");
  EXPECT_EQ(*AddInterval(kTimestampInfinity, {1, 1, 1}), kTimestampInfinity);
  EXPECT_EQ(Negate(Interval{0, INT32_MIN, 0}).status().message(), "interval out of range");
  EXPECT_EQ(Divide(Interval{1, 1, 1}, 0).status().sqlstate(), "22012");
  EXPECT_EQ(MakeDate(2023, 2, 29).status().message(), "date field value out of range: 2023-02-29");
  EXPECT_EQ(MakeDate(0, 1, 1).status().sqlstate(), "22008");
  EXPECT_EQ(*MakeDate(-1, 1, 1), DaysFromCivil(0, 1, 1));
  EXPECT_EQ(*MakeTime(8, 15, 23.5), 29723500000);
  EXPECT_EQ(MakeTime(24, 0, 0.1).status().sqlstate(), "22008");
  EXPECT_EQ(*MakeTimestamp(2013, 7, 15, 8, 15, 23.5),
            *ParseTimestamp("2013-07-15 08:15:23.5", -1, FormatSettings()));
  EXPECT_EQ(*TimestampTzFromUnix(0), -kUnixEpochSeconds * kMicrosPerSecond);
  EXPECT_EQ(TimestampTzFromUnix(1e18).status().sqlstate(), "22008");
}

}  // namespace
}  // namespace cellar
