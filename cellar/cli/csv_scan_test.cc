#include "cellar/cli/csv_scan.h"

#include <gtest/gtest.h>

namespace cellar::cli {
namespace {

std::string Joined(std::string_view text, bool at_end = true) {
  std::string out;
  while (auto record = TakeCsvRecord(',', at_end, &text)) {
    for (const CsvValue& value : *record) out += (value.quoted ? "q" : "") + value.text + "|";
    out += "\n";
  }
  return out + std::string(text);
}

TEST(CsvScan, SplitsRecords) {
  EXPECT_EQ(Joined("a,b\nc,\n"), "a|b|\nc||\n");
  EXPECT_EQ(Joined("a\r\nb"), "a|\nb|\n");
  EXPECT_EQ(Joined("\"a,\"\"b\"\"\nc\",d\n"), "qa,\"b\"\nc|d|\n");
  EXPECT_EQ(Joined("\"\"\n"), "q|\n");
}

TEST(CsvScan, LeavesWhatIsNotComplete) {
  EXPECT_EQ(Joined("a\nb", false), "a|\nb");
  EXPECT_EQ(Joined("a\n\"b", true), "a|\n\"b");
}

TEST(CsvScan, GuessesTheNarrowestType) {
  const std::pair<std::vector<const char*>, TypeId> cases[] = {
      {{"1", "-5"}, TypeId::kInt4},
      {{"1", "3000000000"}, TypeId::kInt8},
      {{"1", "2.5"}, TypeId::kNumeric},
      {{"1", "007"}, TypeId::kText},
      {{"true", "f"}, TypeId::kBool},
      {{"2020-01-31"}, TypeId::kDate},
      {{"2020-02-31"}, TypeId::kText},
      {{"2020-01-31", "2020-01-31 10:00:00"}, TypeId::kTimestamp},
      {{"2020-01-31 10:00:00+02"}, TypeId::kTimestamptz},
      {{"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, TypeId::kUuid},
      {{"now"}, TypeId::kText},
      {{"1", ""}, TypeId::kText},
      {{}, TypeId::kText},
  };
  for (const auto& [values, type] : cases) {
    TypeGuess guess;
    for (const char* value : values) guess.Add(value);
    EXPECT_EQ(guess.type().id, type) << (values.empty() ? "" : values.back());
  }
}

TEST(CsvScan, MakesColumnNames) {
  EXPECT_EQ(ColumnNameFrom("Unit Price ($)", 1), "unit_price");
  EXPECT_EQ(ColumnNameFrom("2nd", 1), "_2nd");
  EXPECT_EQ(ColumnNameFrom("--", 3), "column_3");
}

}  // namespace
}  // namespace cellar::cli
