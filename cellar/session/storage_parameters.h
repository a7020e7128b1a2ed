// The names that WITH (..) and SET (..) know. Private to this layer.
#pragma once

#include "cellar/base/status.h"
#include "cellar/sql/parser/ast.h"

namespace cellar::session {

// Cellar's own, and PostgreSQL's, which mean nothing here: dumps have them
// (https://www.postgresql.org/docs/15/sql-createtable.html#SQL-CREATETABLE-STORAGE-PARAMETERS,
// sql-createindex.html). Errors: 22023 for any other.
Status CheckTableParameters(const sql::ast::OptionList& options);
Status CheckIndexParameters(const sql::ast::OptionList& options);

}  // namespace cellar::session
