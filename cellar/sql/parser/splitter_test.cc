#include "cellar/sql/parser/splitter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cellar::sql {
namespace {

TEST(Splitter, EndsStatementsWherePsqlDoes) {
  struct Case {
    const char* text;
    std::vector<std::string> statements;
    const char* rest;
    SplitState state;
  };
  const Case cases[] = {
      {"", {}, "", SplitState::kEmpty},
      {"SELECT 1;", {"SELECT 1"}, "", SplitState::kEmpty},
      {" ; ;; ", {}, " ", SplitState::kEmpty},
      {"a;b ; c", {"a", "b"}, " c", SplitState::kStatement},
      {"-- x;\nSELECT 1 -- ;\n;\n", {"SELECT 1"}, "\n", SplitState::kEmpty},
      {"/* ; /* ; */ ; */ a /* b */ ;", {"a"}, "", SplitState::kEmpty},
      {"SELECT ';' ;", {"SELECT ';'"}, "", SplitState::kEmpty},
      {"SELECT 'it''s;';", {"SELECT 'it''s;'"}, "", SplitState::kEmpty},
      {"SELECT 'a\\';", {"SELECT 'a\\'"}, "", SplitState::kEmpty},
      {"SELECT E'a\\';';", {"SELECT E'a\\';'"}, "", SplitState::kEmpty},
      {"SELECT e'a\\\\';", {"SELECT e'a\\\\'"}, "", SplitState::kEmpty},
      {"SELECT type'a\\';", {"SELECT type'a\\'"}, "", SplitState::kEmpty},
      {"SELECT \"a;\"\"b\";", {"SELECT \"a;\"\"b\""}, "", SplitState::kEmpty},
      {"SELECT $$ ; $$;", {"SELECT $$ ; $$"}, "", SplitState::kEmpty},
      {"SELECT $a$ ; $$ ; $b$ $a$;", {"SELECT $a$ ; $$ ; $b$ $a$"}, "", SplitState::kEmpty},
      {"SELECT a$b$;c$b$;", {"SELECT a$b$", "c$b$"}, "", SplitState::kEmpty},
      {"SELECT $1;", {"SELECT $1"}, "", SplitState::kEmpty},
      {"CREATE RULE r AS DO (a; b);", {"CREATE RULE r AS DO (a; b)"}, "", SplitState::kEmpty},
      {"SELECT (1", {}, "SELECT (1", SplitState::kParenthesis},
      {"SELECT 'x", {}, "SELECT 'x", SplitState::kSingleQuote},
      {"SELECT \"x", {}, "SELECT \"x", SplitState::kDoubleQuote},
      {"SELECT $q$x", {}, "SELECT $q$x", SplitState::kDollarQuote},
      {"a; /* x", {"a"}, " /* x", SplitState::kComment},
      {"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN a THEN 1 END; SELECT 2; END; "
       "x;",
       {"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN a THEN 1 END; SELECT 2; END",
        "x"},
       "",
       SplitState::kEmpty},
      {"create or replace procedure p() begin atomic a; end;",
       {"create or replace procedure p() begin atomic a; end"},
       "",
       SplitState::kEmpty},
      {"BEGIN; SELECT 1; END;", {"BEGIN", "SELECT 1", "END"}, "", SplitState::kEmpty},
      {"größe 'ü;'; x", {"größe 'ü;'"}, " x", SplitState::kStatement},
  };
  for (const Case& c : cases) {
    SplitText split = SplitStatements(c.text);
    EXPECT_EQ(split.statements, c.statements) << c.text;
    EXPECT_EQ(split.rest, c.rest) << c.text;
    EXPECT_EQ(static_cast<char>(split.state), static_cast<char>(c.state)) << c.text;
    // Line by line gives the same.
    StatementSplitter lines;
    std::vector<std::string> got;
    std::string_view text = c.text;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
      for (std::string& statement : lines.Feed(text.substr(0, end))) got.push_back(statement);
      text.remove_prefix(end);
    }
    EXPECT_EQ(got, c.statements) << c.text;
    EXPECT_EQ(lines.state(), c.state) << c.text;
  }
}

TEST(Splitter, GoesOnInsideWhatIsOpen) {
  StatementSplitter splitter;
  EXPECT_TRUE(splitter.Feed("SELECT 'a\n").empty());
  EXPECT_EQ(splitter.state(), SplitState::kSingleQuote);
  EXPECT_TRUE(splitter.Feed("b;''c' /* x\n").empty());
  EXPECT_EQ(splitter.state(), SplitState::kComment);
  EXPECT_TRUE(splitter.Feed("; */ || $x$\n").empty());
  EXPECT_EQ(splitter.state(), SplitState::kDollarQuote);
  const auto done = splitter.Feed(";$x$; SELECT 2\n");
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0], "SELECT 'a\nb;''c' /* x\n; */ || $x$\n;$x$");
  EXPECT_EQ(splitter.pending(), " SELECT 2\n");
  EXPECT_EQ(splitter.TakeRest(), "SELECT 2");
  EXPECT_EQ(splitter.state(), SplitState::kEmpty);
  EXPECT_EQ(splitter.TakeRest(), "");
}

TEST(Splitter, StopsAtACommand) {
  StatementSplitter splitter(true);
  EXPECT_TRUE(splitter.Feed("SELECT 1 \\g out.txt\n").empty());
  EXPECT_EQ(splitter.backslash(), "g out.txt");
  EXPECT_EQ(splitter.pending(), "SELECT 1 ");
  EXPECT_EQ(splitter.TakeRest(), "SELECT 1");
  EXPECT_EQ(splitter.Feed("SELECT '\\x';\n").size(), 1u);
  EXPECT_EQ(splitter.backslash(), "");
  EXPECT_TRUE(splitter.Feed("\\d t\n").empty());
  EXPECT_EQ(splitter.backslash(), "d t");
  EXPECT_FALSE(splitter.has_statement());
}

}  // namespace
}  // namespace cellar::sql
