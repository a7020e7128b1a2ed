// The table of cases in cases.txt: expressions and what PostgreSQL 15 (C.UTF-8, UTC) answers.
#include <gtest/gtest.h>

#include <fstream>

#include "cellar/sql/expr/test_parser.h"

namespace cellar::sql {
namespace {

std::string Answer(std::string_view text) {
  Arena arena;
  EvalContext context;
  context.set_arena(&arena);
  Result<ExprPtr> expr = testing::Bind(text, {}, &context);
  Status status;
  if (expr.ok()) {
    Result<Datum> value = EvalScalar(**expr, context);
    if (value.ok()) {
      if (value->is_null()) return "NULL";
      std::string out;
      AppendDatumText(*value, (*expr)->type, context.format, &out);
      return out;
    }
    status = value.status();
  } else {
    status = expr.status();
  }
  return "ERROR " + std::string(status.sqlstate()) + " " + std::string(status.message());
}

// Lines of "expression => answer"; \n in an answer is a line feed.
TEST(Cases, AnswerAsPostgreSql) {
  std::ifstream in(CELLAR_EXPR_CASES);
  ASSERT_TRUE(in.is_open());
  std::string line;
  int number = 0, cases = 0;
  while (std::getline(in, line)) {
    ++number;
    size_t arrow = line.rfind(" => ");
    if (line.empty() || line[0] == '#' || arrow == std::string::npos) continue;
    ++cases;
    std::string got = Answer(line.substr(0, arrow)), escaped;
    for (char c : got) {
      if (c == '\n')
        escaped += "\\n";
      else
        escaped += c;
    }
    EXPECT_EQ(escaped, line.substr(arrow + 4))
        << "line " << number << ": " << line.substr(0, arrow);
  }
  EXPECT_GT(cases, 900);
}

}  // namespace
}  // namespace cellar::sql
