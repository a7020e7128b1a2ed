// As deparse.h, but with only those parentheses that PostgreSQL writes when it is asked for pretty
// text (pg_get_expr(..., true)): what psql shows.
#pragma once

#include <string>

#include "cellar/sql/parser/ast.h"

namespace cellar::sql {

// "a > 0 AND b::text = 'x'::text".
std::string DeparsePretty(const ast::Expr& expr);
// As DeparseView.
std::string DeparsePrettyView(const ast::SelectStmt& select);
// The same for text that stands by itself; it comes back as it is when it does not parse.
std::string PrettyExpression(const std::string& sql);
std::string PrettyView(const std::string& sql);

}  // namespace cellar::sql
