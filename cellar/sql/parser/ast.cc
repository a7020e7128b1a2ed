#include "cellar/sql/parser/ast.h"

#include <algorithm>

namespace cellar::sql::ast {

// Out of line where a member's type is complete only later in the headers.
SubLink::SubLink() : Expr(kKind) {}
SubLink::~SubLink() = default;
SubqueryRef::SubqueryRef() : FromItem(kKind) {}
SubqueryRef::~SubqueryRef() = default;
AlterDatabaseStmt::AlterDatabaseStmt() : Stmt(kKind) {}
AlterDatabaseStmt::~AlterDatabaseStmt() = default;
AlterRoleStmt::AlterRoleStmt() : Stmt(kKind) {}
AlterRoleStmt::~AlterRoleStmt() = default;

std::string Option::ToText() const {
  switch (value_kind) {
    case OptionKind::kNone: return "";
    case OptionKind::kInteger: return std::to_string(integer);
    case OptionKind::kFloat:
    case OptionKind::kString: return text;
    case OptionKind::kBool: return boolean ? "true" : "false";
    case OptionKind::kStar: return "*";
    case OptionKind::kType: return type->name.name;
    case OptionKind::kList: break;
  }
  std::string out;
  for (const std::string& item : list) {
    if (!out.empty()) out += ", ";
    out += item;
  }
  return out;
}

Option::BoolValue Option::ToBool() const {
  if (value_kind == OptionKind::kNone) return {true, true};
  if (value_kind == OptionKind::kBool) return {true, boolean};
  if (value_kind == OptionKind::kInteger) return {integer == 0 || integer == 1, integer == 1};
  std::string word = ToText();
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (word == "true" || word == "on") return {true, true};
  if (word == "false" || word == "off") return {true, false};
  return {false, false};
}

const Option* FindOption(const OptionList& options, std::string_view name) {
  for (const Option& option : options) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

}  // namespace cellar::sql::ast
