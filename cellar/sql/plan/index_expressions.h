// Expressions and predicates of indexes, for those who define and evaluate them.
#pragma once

#include <string>

#include "cellar/sql/plan/planner.h"

namespace cellar::sql {

enum class IndexPart : uint8_t { kExpression, kPredicate };

// Binds one over the living columns of its table, by position. Errors: 42P17 for functions that are
// not immutable, 0A000 for subqueries, 42803 for aggregates, 42804 for a predicate of another type.
Result<ExprPtr> BindIndexExpression(const ast::Node& expression,
                                    const catalog::TableDescriptor& table, IndexPart part,
                                    PlannerContext& context);

// "lower", "expr": what PostgreSQL calls an index's column that is an expression.
std::string IndexExpressionName(const ast::Node& expression);

}  // namespace cellar::sql
