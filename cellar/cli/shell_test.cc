#include "cellar/cli/shell.h"

#include <gtest/gtest.h>

#include "cellar/cli/completion.h"

namespace cellar::cli {
namespace {

using Words = std::vector<std::string>;

TEST(Shell, SplitsArguments) {
  EXPECT_EQ(SplitArguments(" a  'b c' \"D e\" 'it''s' "), (Words{"a", "b c", "\"D e\"", "it's"}));
  EXPECT_EQ(SplitArguments(""), Words{});
}

TEST(Shell, TurnsPatternsIntoLike) {
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(LikePattern("Emp*"), Pair("", "emp%"));
  EXPECT_EQ(LikePattern("hr.e?p"), Pair("hr", "e_p"));
  EXPECT_EQ(LikePattern("\"My.Table\""), Pair("", "My.Table"));
  EXPECT_EQ(LikePattern("a_b"), Pair("", "a\\_b"));
}

TEST(Shell, QuotesLiterals) {
  EXPECT_EQ(SqlLiteral("it's"), "'it''s'");
  EXPECT_EQ(SqlLiteral("a\\b"), " E'a\\\\b'");
}

Words Complete(std::string_view before, std::string_view pending = "") {
  NameSource names;
  names.relations = [] { return Words{"orders", "order_lines", "Customers"}; };
  names.columns = [](std::string_view text) {
    return text.find("orders") != std::string_view::npos ? Words{"placed_at"} : Words{"price"};
  };
  return CompleteLine(pending, before, names).words;
}

TEST(Completion, OffersRelationsWhereTheyBelong) {
  EXPECT_EQ(Complete("SELECT * FROM or"), (Words{"order_lines", "orders"}));
  EXPECT_EQ(Complete("SELECT * FROM c"), Words{});
  EXPECT_EQ(Complete("SELECT * FROM \"C"), Words{"\"Customers\""});
}

TEST(Completion, OffersColumnsOfTheStatement) {
  EXPECT_EQ(Complete("WHERE p", "SELECT * FROM orders")[0], "parallel");
  const Words words = Complete("WHERE pl", "SELECT * FROM orders");
  EXPECT_NE(std::find(words.begin(), words.end(), "placed_at"), words.end());
}

TEST(Completion, FollowsTheCaseOfKeywords) {
  EXPECT_EQ(Complete("SELEC"), Words{"SELECT"});
  EXPECT_EQ(Complete("selec"), Words{"select"});
}

TEST(Completion, OffersCommands) {
  EXPECT_EQ(Complete("\\tim"), Words{"timing"});
  EXPECT_EQ(Complete("\\d ord"), (Words{"order_lines", "orders"}));
}

}  // namespace
}  // namespace cellar::cli
