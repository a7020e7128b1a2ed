#include <gtest/gtest.h>

#include "cellar/cli/error_text.h"
#include "cellar/cli/result_printer.h"
#include "cellar/cli/text_width.h"

namespace cellar::cli {
namespace {

using Cells = std::vector<std::optional<std::string>>;

std::string Print(const PrintStyle& style, const std::vector<session::ResultColumn>& columns,
                  const std::vector<Cells>& rows, int terminal_columns = 0) {
  std::string out;
  ResultPrinter printer(style, terminal_columns, [&](std::string_view text) { out += text; });
  printer.Begin(columns);
  for (const Cells& row : rows) {
    std::vector<const std::string*> cells;
    for (const auto& cell : row) cells.push_back(cell ? &*cell : nullptr);
    printer.AddRow(cells);
  }
  printer.End();
  return out;
}

std::vector<session::ResultColumn> TwoColumns() {
  return {{"n", MakeType(TypeId::kInt4)}, {"name", MakeType(TypeId::kText)}};
}

TEST(Printer, AlignsNumbersRightAndTextLeft) {
  EXPECT_EQ(Print({}, TwoColumns(), {{"1", "ann"}, {"100", std::nullopt}}),
            "  n  | name \n"
            "-----+------\n"
            "   1 | ann\n"
            " 100 | NULL\n"
            "(2 rows)\n\n");
}

TEST(Printer, CountsWideAndCombiningCharacters) {
  EXPECT_EQ(DisplayWidth("日本"), 4);
  EXPECT_EQ(DisplayWidth("e\xCC\x81"), 1);
  EXPECT_EQ(DisplayWidth("\xff"), 1);
  EXPECT_EQ(Print({}, {{"a", MakeType(TypeId::kText)}, {"b", MakeType(TypeId::kText)}},
                  {{"日本", "x"}, {"é", "y"}}),
            "  a   | b \n"
            "------+---\n"
            " 日本 | x\n"
            " é    | y\n"
            "(2 rows)\n\n");
}

TEST(Printer, ContinuesValuesOfSeveralLines) {
  EXPECT_EQ(Print({}, TwoColumns(), {{"1", "two\nlines"}}),
            " n | name  \n"
            "---+-------\n"
            " 1 | two  +\n"
            "   | lines\n"
            "(1 row)\n\n");
}

TEST(Printer, ShowsControlCharacters) { EXPECT_EQ(Printable("a\x1b[b\tc"), "a\\x1B[b c"); }

TEST(Printer, PrintsALinePerValue) {
  PrintStyle style;
  style.expanded = true;
  EXPECT_EQ(Print(style, TwoColumns(), {{"1", "ann"}}),
            "-[ RECORD 1 ]\n"
            "n    | 1\n"
            "name | ann\n\n");
  EXPECT_EQ(Print(style, TwoColumns(), {}), "(0 rows)\n\n");
}

TEST(Printer, PrintsWideTablesExpandedOnNarrowTerminals) {
  PrintStyle style;
  style.expanded_auto = true;
  EXPECT_EQ(Print(style, TwoColumns(), {{"1", std::string(30, 'x')}}, 20).substr(0, 12),
            "-[ RECORD 1 ");
  EXPECT_EQ(Print(style, TwoColumns(), {{"1", "x"}}, 20).substr(0, 3), " n ");
}

TEST(Printer, DrawsBorders) {
  PrintStyle style;
  style.border = 2;
  EXPECT_EQ(Print(style, TwoColumns(), {{"1", "a"}}),
            "+---+------+\n"
            "| n | name |\n"
            "+---+------+\n"
            "| 1 | a    |\n"
            "+---+------+\n"
            "(1 row)\n\n");
}

TEST(Printer, WritesCsv) {
  PrintStyle style;
  style.mode = OutputMode::kCsv;
  EXPECT_EQ(
      Print(style, TwoColumns(), {{"1", "a,b"}, {"2", std::nullopt}, {"3", ""}, {"4", "\"q\""}}),
      "n,name\n1,\"a,b\"\n2,\n3,\"\"\n4,\"\"\"q\"\"\"\n");
}

TEST(Printer, WritesJson) {
  PrintStyle style;
  style.mode = OutputMode::kJson;
  const std::vector<session::ResultColumn> columns = {{"i", MakeType(TypeId::kInt8)},
                                                      {"f", MakeType(TypeId::kFloat8)},
                                                      {"b", MakeType(TypeId::kBool)},
                                                      {"j", MakeType(TypeId::kJsonb)},
                                                      {"t", MakeType(TypeId::kText)}};
  EXPECT_EQ(
      Print(style, columns,
            {{"1", "NaN", "t", "{\"a\": 1}", "q\"\n\x01"}, {std::nullopt, "1e+20", "f", "1", "é"}}),
      "[{\"i\":1,\"f\":\"NaN\",\"b\":true,\"j\":{\"a\": 1},\"t\":\"q\\\"\\n\\u0001\"},\n"
      " {\"i\":null,\"f\":1e+20,\"b\":false,\"j\":1,\"t\":\"é\"}]\n");
  EXPECT_EQ(Print(style, columns, {}), "[]\n");
}

TEST(Printer, GoesOnPastTheHeldRows) {
  std::vector<Cells> rows(ResultPrinter::kHeldRows + 5, Cells{"1", "x"});
  const std::string out = Print({}, TwoColumns(), rows);
  EXPECT_NE(out.find("(20005 rows)"), std::string::npos);
  EXPECT_EQ(out.find(" n | name"), 0u);
}

TEST(ErrorText, PointsAtThePlace) {
  const Status error = SqlError(Code::kInvalid, "42P01", "relation \"nope\" does not exist")
                           .WithHint("Make it.")
                           .WithPosition(16);
  EXPECT_EQ(ErrorText(error, "SELECT *\n FROM nope"),
            "ERROR:  relation \"nope\" does not exist\n"
            "LINE 2:  FROM nope\n"
            "              ^\n"
            "HINT:  Make it.\n");
}

TEST(ErrorText, ShowsAWindowOfLongLines) {
  const std::string statement = std::string(100, 'a') + " here " + std::string(100, 'b');
  const std::string text =
      ErrorText(SqlError(Code::kInvalid, "42601", "x").WithPosition(102), statement);
  EXPECT_NE(text.find("LINE 1: ..." + std::string(39, 'a') + " here "), std::string::npos) << text;
  const size_t caret = text.rfind('^'), line = text.rfind('\n', caret);
  EXPECT_EQ(caret - line - 1, text.find("here") - text.find("LINE")) << text;
}

}  // namespace
}  // namespace cellar::cli
