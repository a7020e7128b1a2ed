// Making, copying and comparing bound expressions.
#include "cellar/sql/expr/expr.h"

#include <bit>

#include "cellar/sql/expr/function.h"

namespace cellar::sql {

ExprPtr MakeConstant(Value value) {
  auto expr = std::make_unique<Expr>();
  expr->kind = ExprKind::kConstant;
  expr->type = value.type();
  expr->constant = std::move(value);
  return expr;
}

ExprPtr MakeBoolConstant(bool value) {
  return MakeConstant(Value(MakeType(TypeId::kBool), Datum::Bool(value)));
}

ExprPtr MakeNull(Type type) { return MakeConstant(Value(type, Datum())); }

ExprPtr MakeColumn(int index, Type type) {
  auto expr = std::make_unique<Expr>();
  expr->kind = ExprKind::kColumn;
  expr->type = type;
  expr->index = index;
  return expr;
}

ExprPtr CloneExpr(const Expr& expr) {
  auto out = std::make_unique<Expr>();
  out->kind = expr.kind;
  out->type = expr.type;
  out->location = expr.location;
  out->index = expr.index;
  out->subplan_kind = expr.subplan_kind;
  out->function = expr.function;
  out->explicit_cast = expr.explicit_cast;
  out->collation_source = expr.collation_source;
  out->constant = expr.constant;
  out->slots = expr.slots;
  out->names = expr.names;
  out->args.reserve(expr.args.size());
  for (const ExprPtr& arg : expr.args) out->args.push_back(CloneExpr(*arg));
  for (const ExprPtr& arg : expr.slot_values) out->slot_values.push_back(CloneExpr(*arg));
  return out;
}

bool ExprEquals(const Expr& a, const Expr& b) {
  if (a.kind != b.kind || a.type != b.type || a.type.collation != b.type.collation ||
      a.function != b.function || a.index != b.index || a.args.size() != b.args.size() ||
      a.slots != b.slots || a.names != b.names || a.slot_values.size() != b.slot_values.size()) {
    return false;
  }
  if (a.kind == ExprKind::kSubplan && a.subplan_kind != b.subplan_kind) return false;
  if (a.kind == ExprKind::kConstant) {
    if (a.constant.is_null() != b.constant.is_null()) return false;
    if (!a.constant.is_null()) {
      // Compared by bytes: 1.0 and 1.00 are equal in SQL and print differently.
      const Datum left = a.constant.datum(), right = b.constant.datum();
      switch (PhysicalOf(a.type)) {
        case Physical::kBytes:
          if (left.bytes() != right.bytes()) return false;
          break;
        case Physical::kInt64:
          if (left.int_value() != right.int_value()) return false;
          break;
        case Physical::kDouble:
          if (std::bit_cast<uint64_t>(left.double_value()) !=
              std::bit_cast<uint64_t>(right.double_value())) {
            return false;
          }
          break;
      }
    }
  }
  for (size_t i = 0; i < a.args.size(); ++i) {
    if (!ExprEquals(*a.args[i], *b.args[i])) return false;
  }
  for (size_t i = 0; i < a.slot_values.size(); ++i) {
    if (!ExprEquals(*a.slot_values[i], *b.slot_values[i])) return false;
  }
  return true;
}

bool IsConstantExpr(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kColumn:
    case ExprKind::kParameter:
    case ExprKind::kExecParameter:
    case ExprKind::kSubplan: return false;
    default: break;
  }
  if (expr.function != nullptr) {
    if (expr.function->volatility != Volatility::kImmutable || expr.function->set != nullptr) {
      return false;
    }
  }
  for (const ExprPtr& arg : expr.args) {
    if (!IsConstantExpr(*arg)) return false;
  }
  return true;
}

bool IsRowIndependent(const Expr& expr) {
  if (expr.kind == ExprKind::kColumn || expr.kind == ExprKind::kSubplan) return false;
  if (expr.function != nullptr && expr.function->volatility == Volatility::kVolatile) return false;
  for (const ExprPtr& arg : expr.args) {
    if (!IsRowIndependent(*arg)) return false;
  }
  return true;
}

const Expr& StripRelabel(const Expr& expr) {
  const Expr* out = &expr;
  while (out->kind == ExprKind::kCall && out->function->relabel) out = out->args[0].get();
  return *out;
}

}  // namespace cellar::sql
