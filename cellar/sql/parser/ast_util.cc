// What walks a tree without knowing what it is for.
#include "cellar/sql/parser/parser.h"

namespace cellar::sql {

namespace {

int Leftmost(int a, int b) {
  if (a < 0) return b;
  if (b < 0) return a;
  return a < b ? a : b;
}

}  // namespace

int ExprLocation(const ast::Expr& expr) {
  using ast::NodeKind;
  auto with = [&expr](const ast::ExprPtr& first) {
    return first == nullptr ? expr.location : Leftmost(expr.location, ExprLocation(*first));
  };
  switch (expr.kind) {
    case NodeKind::kOperator: return with(expr.As<ast::OperatorExpr>().left);
    case NodeKind::kOperatorChain: return with(expr.As<ast::OperatorChain>().first);
    case NodeKind::kAnyAll: return with(expr.As<ast::AnyAllExpr>().left);
    case NodeKind::kDistinctFrom: return with(expr.As<ast::DistinctExpr>().left);
    case NodeKind::kIn: return with(expr.As<ast::InExpr>().arg);
    case NodeKind::kLike: return with(expr.As<ast::LikeExpr>().arg);
    case NodeKind::kBetween: return with(expr.As<ast::BetweenExpr>().arg);
    case NodeKind::kNullTest: return with(expr.As<ast::NullTest>().arg);
    case NodeKind::kBooleanTest: return with(expr.As<ast::BooleanTest>().arg);
    case NodeKind::kTypeCast: return with(expr.As<ast::TypeCast>().arg);
    case NodeKind::kSubLink: return with(expr.As<ast::SubLink>().test);
    case NodeKind::kIndirection: return with(expr.As<ast::IndirectionExpr>().arg);
    case NodeKind::kCollate: return with(expr.As<ast::CollateExpr>().arg);
    case NodeKind::kBool: {
      const auto& args = expr.As<ast::BoolExpr>().args;
      return args.empty() ? expr.location : with(args[0]);
    }
    default: return expr.location;
  }
}

namespace ast {

std::string VariableSetStmt::ValueText() const {
  std::string out;
  for (const ExprPtr& value : values) {
    if (!out.empty()) out += ", ";
    const Expr* at = value.get();
    if (at->Is<TypeCast>()) at = at->As<TypeCast>().arg.get();
    if (!at->Is<Const>()) continue;
    const auto& constant = at->As<Const>();
    switch (constant.const_kind) {
      case ConstKind::kNull: break;
      case ConstKind::kInteger: out += std::to_string(constant.integer); break;
      case ConstKind::kBool: out += constant.boolean ? "true" : "false"; break;
      case ConstKind::kNumeric:
      case ConstKind::kString:
      case ConstKind::kBitString: out += constant.text; break;
    }
  }
  return out;
}

}  // namespace ast

}  // namespace cellar::sql
