// What indexes hold beside columns: expressions and predicates. Private to this layer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/catalog/descriptor.h"
#include "cellar/sql/parser/ast.h"

namespace cellar::session {

namespace ast = sql::ast;

// The type of an expression that an index may hold. Errors: 42P17, 0A000, 42803, 42P16 and those of
// names and types. *agreed: its columns' collations do not contradict each other.
Result<Type> CheckIndexExpression(const ast::Expr& expr, const catalog::TableDescriptor& table,
                                  bool* agreed = nullptr);
Status CheckIndexPredicate(const ast::Expr& expr, const catalog::TableDescriptor& table);
bool Mentions(const ast::Expr& expr, std::string_view column);
// Do its expressions or its predicate name the column?
Result<bool> IndexMentions(const catalog::IndexDescriptor& index, std::string_view column);
// Do they still make sense after types of columns have changed?
Status RecheckIndexes(const catalog::TableDescriptor& table);
// Of the attribute of an index that `part` is; kInvalid when it makes no sense.
Type IndexPartType(const catalog::TableDescriptor& table, const catalog::IndexColumn& part);

// Of WITH (shards = n), 2 to 32; 0: not given. Errors: 22023.
Result<uint32_t> ShardsOf(const ast::OptionList& options);

// As pg_get_indexdef shows them.
std::string ShowIndexExpression(const std::string& sql, bool pretty);
std::string ShowIndexPredicate(const std::string& sql, bool pretty);
// "name", "lower", "expr": of an index's attribute, and in the names that are chosen for indexes.
std::string IndexPartName(const catalog::TableDescriptor& table, const catalog::IndexColumn& part);
// Of all its attributes, told apart by numbers.
std::vector<std::string> IndexPartNames(const catalog::TableDescriptor& table,
                                        const catalog::IndexDescriptor& index);

}  // namespace cellar::session
