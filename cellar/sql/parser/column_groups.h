// The text of option `groups`: name (column, ..), ..
#pragma once

#include <string_view>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/sql/parser/ast_ddl.h"

namespace cellar::sql {

// The groups of a text such as `hot (a, b), "Cold" (c)`, as GroupChange::kAdd without locations.
// An empty text has none. Errors: 22023.
Result<std::vector<ast::GroupChange>> ParseColumnGroups(std::string_view text);

}  // namespace cellar::sql
