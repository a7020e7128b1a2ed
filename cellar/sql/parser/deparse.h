// Syntax trees back to SQL, in the manner of PostgreSQL's pg_get_expr: operators fully
// parenthesised, pg_catalog left away, types by their SQL names. Parsing the result gives the same
// tree, but for locations and for names PostgreSQL would not tell apart (int4 comes back as
// integer).
#pragma once

#include <string>
#include <string_view>

#include "cellar/sql/parser/ast.h"

namespace cellar::sql {

// The name as it must be written: quoted when it is not plain lower case, or is a keyword that is
// not free to use as any name.
std::string QuoteIdentifier(std::string_view name);

// schema.name, or name when schema is empty; each quoted as needed.
std::string QuoteQualified(std::string_view schema, std::string_view name);

// 'value', or E'value' when it holds a backslash.
std::string QuoteLiteral(std::string_view value);

// "(a > 0)", "now()", "nextval('s'::regclass)".
std::string DeparseExpr(const ast::Expr& expr);

// A column's default as PostgreSQL shows it: string constants and NULL carry the column's type
// ("'x'::character varying"), by which clients tell them from expressions. `type` as format_type
// says.
std::string DeparseDefault(const ast::Expr& expr, std::string_view type);

// "character varying(10)[]".
std::string DeparseType(const ast::TypeName& type);

// SELECT, INSERT, UPDATE or DELETE on one line; anything else gives an empty text.
std::string DeparseStatement(const ast::Stmt& statement);

// A view's query laid out as pg_get_viewdef does, one clause a line, without the semicolon.
std::string DeparseView(const ast::SelectStmt& select);

// Renames the column in every reference to it, for checks and generated columns of one table.
void RenameColumn(ast::Expr* expr, std::string_view from, std::string_view to);

}  // namespace cellar::sql
