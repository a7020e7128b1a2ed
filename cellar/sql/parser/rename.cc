// Renaming a column inside an expression of one table.
#include "cellar/sql/parser/ast.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::sql {

namespace {

void RenameAll(ast::ExprList& exprs, std::string_view from, std::string_view to) {
  for (ast::ExprPtr& expr : exprs) RenameColumn(expr.get(), from, to);
}

}  // namespace

void RenameColumn(ast::Expr* expr, std::string_view from, std::string_view to) {
  if (expr == nullptr) return;
  auto each = [from, to](const ast::ExprPtr& child) { RenameColumn(child.get(), from, to); };
  switch (expr->kind) {
    case ast::NodeKind::kColumnRef: {
      auto& column = expr->As<ast::ColumnRef>();
      if (!column.parts.empty() && column.parts.back() == from) column.parts.back() = to;
      return;
    }
    case ast::NodeKind::kOperator:
      each(expr->As<ast::OperatorExpr>().left);
      each(expr->As<ast::OperatorExpr>().right);
      return;
    case ast::NodeKind::kOperatorChain:
      each(expr->As<ast::OperatorChain>().first);
      for (auto& link : expr->As<ast::OperatorChain>().links) each(link.right);
      return;
    case ast::NodeKind::kAnyAll:
      each(expr->As<ast::AnyAllExpr>().left);
      each(expr->As<ast::AnyAllExpr>().right);
      return;
    case ast::NodeKind::kDistinctFrom:
      each(expr->As<ast::DistinctExpr>().left);
      each(expr->As<ast::DistinctExpr>().right);
      return;
    case ast::NodeKind::kNullIf:
      each(expr->As<ast::NullIfExpr>().left);
      each(expr->As<ast::NullIfExpr>().right);
      return;
    case ast::NodeKind::kIn:
      each(expr->As<ast::InExpr>().arg);
      return RenameAll(expr->As<ast::InExpr>().list, from, to);
    case ast::NodeKind::kLike:
      each(expr->As<ast::LikeExpr>().arg);
      each(expr->As<ast::LikeExpr>().pattern);
      each(expr->As<ast::LikeExpr>().escape);
      return;
    case ast::NodeKind::kBetween:
      each(expr->As<ast::BetweenExpr>().arg);
      each(expr->As<ast::BetweenExpr>().low);
      each(expr->As<ast::BetweenExpr>().high);
      return;
    case ast::NodeKind::kBool: return RenameAll(expr->As<ast::BoolExpr>().args, from, to);
    case ast::NodeKind::kNullTest: return each(expr->As<ast::NullTest>().arg);
    case ast::NodeKind::kBooleanTest: return each(expr->As<ast::BooleanTest>().arg);
    case ast::NodeKind::kCase: {
      auto& with = expr->As<ast::CaseExpr>();
      each(with.arg);
      for (auto& when : with.whens) {
        each(when.condition);
        each(when.result);
      }
      each(with.default_result);
      return;
    }
    case ast::NodeKind::kCoalesce: return RenameAll(expr->As<ast::CoalesceExpr>().args, from, to);
    case ast::NodeKind::kMinMax: return RenameAll(expr->As<ast::MinMaxExpr>().args, from, to);
    case ast::NodeKind::kFuncCall: return RenameAll(expr->As<ast::FuncCall>().args, from, to);
    case ast::NodeKind::kNamedArg: return each(expr->As<ast::NamedArgExpr>().arg);
    case ast::NodeKind::kTypeCast: return each(expr->As<ast::TypeCast>().arg);
    case ast::NodeKind::kArray: return RenameAll(expr->As<ast::ArrayExpr>().elements, from, to);
    case ast::NodeKind::kRow: return RenameAll(expr->As<ast::RowExpr>().args, from, to);
    case ast::NodeKind::kCollate: return each(expr->As<ast::CollateExpr>().arg);
    case ast::NodeKind::kIndirection: {
      auto& indirection = expr->As<ast::IndirectionExpr>();
      each(indirection.arg);
      for (auto& step : indirection.steps) {
        each(step.lower);
        each(step.upper);
      }
      return;
    }
    default: return;
  }
}

}  // namespace cellar::sql
