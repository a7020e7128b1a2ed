// The writer behind deparse.h; deparse.cc writes expressions, deparse_query.cc queries.
#pragma once

#include <string>
#include <utility>

#include "cellar/sql/parser/ast.h"

namespace cellar::sql {

class Deparser {
 public:
  // With `lines`, the outermost query gets one clause a line.
  // `pretty`: see pretty.h.
  explicit Deparser(bool lines = false, bool pretty = false) : lines_(lines), pretty_(pretty) {}

  void Expression(const ast::Expr& expr);
  void Select(const ast::SelectStmt& select);
  void Statement(const ast::Stmt& statement);
  std::string Take() { return std::move(out_); }

 private:
  void Name(const ast::QualifiedName& name);
  void Names(const ast::NameList& names);
  void Op(const ast::QualifiedName& op);
  void List(const ast::ExprList& list);
  void Sort(const std::vector<ast::SortBy>& list);
  void Constant(const ast::Const& constant);
  void Chain(const ast::OperatorChain& chain);
  void Frame(const ast::WindowDef& window);
  void Window(const ast::WindowDef& window);
  bool SqlSyntaxCall(const ast::FuncCall& call);
  void Call(const ast::FuncCall& call);
  void Like(const ast::LikeExpr& like);
  void Case(const ast::CaseExpr& expr);
  void SubQuery(const ast::SubLink& link);
  void Steps(const std::vector<ast::IndirectionStep>& steps);
  void SqlValue(const ast::SqlValueFunction& value);
  void Cast(const ast::TypeCast& cast);
  void Parenthesised(const ast::Expr& expr);

  void With(const ast::WithClause* with);
  void PlainSelect(const ast::SelectStmt& select);
  void Operands(const ast::SelectStmt& select);
  void Targets(const ast::TargetList& targets);
  void From(const ast::FromItem& item);
  void FromList(const std::vector<ast::FromItemPtr>& items);
  void Alias(const ast::Alias& alias);
  void ColumnDefs(const std::vector<ast::ColumnDef>& columns);
  void Sets(const std::vector<ast::SetClause>& sets);
  void Target(const ast::AssignTarget& target);
  void Insert(const ast::InsertStmt& insert);
  void Conflict(const ast::OnConflict& conflict);
  void Update(const ast::UpdateStmt& update);
  void Delete(const ast::DeleteStmt& statement);
  void Returning(const ast::TargetList& targets);
  // Starts a clause: on a new line with that indent in the outermost query, else after a blank.
  void Clause(int indent, std::string_view words);

  std::string out_;
  bool lines_, pretty_;
  const ast::Expr* parent_ = nullptr;  // of the expression being written; null: a clause
  int depth_ = 0;
};

}  // namespace cellar::sql
