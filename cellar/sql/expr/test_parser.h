// For tests: binds one SQL expression given as text, so that cases read like SQL. Covers what the
// cases need; the product's parser is another layer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cellar/sql/expr/eval.h"

namespace cellar::sql::testing {

struct TestColumn {
  std::string name;
  Type type;
};

// Names that are not functions are columns, by position. Folds with `context` as a planner would.
Result<ExprPtr> Bind(std::string_view text, const std::vector<TestColumn>& columns,
                     EvalContext* context);

}  // namespace cellar::sql::testing
