// Messages as statements of SQL. Every name and literal is quoted; expressions and types are parsed
// as such and written anew, so that each stays what it is said to be.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/rpc/admin/admin_call.h"

namespace cellar::v1 {
class CheckConstraint;
class Column;
class ForeignKey;
class Index;
class Zone;
}  // namespace cellar::v1

namespace cellar::rpc {

using sql::QuoteIdentifier;
using sql::QuoteLiteral;

// Errors: the parser's.
Result<std::string> ExpressionText(const std::string& text);
Result<std::string> TypeText(const std::string& text);
template <typename Names>
std::string NameList(const Names& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + QuoteIdentifier(name);
  return out;
}

// "name type DEFAULT ...".
Result<std::string> ColumnText(const v1::Column& column);
// Of a table or constraint: "CONSTRAINT name CHECK (...)".
Result<std::string> CheckText(const v1::CheckConstraint& check);
Result<std::string> ForeignKeyText(const v1::ForeignKey& key, const Place& table);
// Of PRIMARY KEY and UNIQUE constraints.
Result<std::string> KeyConstraintText(const v1::Index& index);
bool IsKeyConstraint(const v1::Index& index);
Result<std::string> CreateIndexText(const v1::Index& index, const std::string& relation,
                                    bool if_not_exists);
// "row", "pages", ...; 22023 for none.
Result<std::string> LayoutText(int layout);
// The settings among `paths` ("zone.x"): those with a value as "x = 'v'", those without as "x".
void ZoneTexts(const v1::Zone& zone, const std::set<std::string>& paths,
               std::vector<std::string>* set, std::vector<std::string>* reset);
// The paths of all that is set.
std::set<std::string> ZonePaths(const v1::Zone& zone);
// "ALTER ... SET (...)", "ALTER ... RESET (...)".
void AddOptionStatements(const std::string& alter, const std::vector<std::string>& set,
                         const std::vector<std::string>& reset,
                         std::vector<std::string>* statements);
// "COMMENT ON what IS 'text'"; NULL for an empty one.
std::string CommentText(const std::string& what, const std::string& comment);
std::string Join(const std::vector<std::string>& parts);

}  // namespace cellar::rpc
