// How many rows conditions leave: guesses from the schema, as there are no histograms yet.
#include <algorithm>
#include <cmath>

#include "cellar/sql/plan/physical.h"

namespace cellar::sql::planning {

double Physical::TableRows(const catalog::TableDescriptor& table) const {
  if (!s_.context.estimate_rows) return 1000;
  return std::max(1.0, s_.context.estimate_rows(table));
}

double Physical::DistinctValues(const LogicalGet& get, int id, double rows) const {
  if (s_.column(id).type.id == TypeId::kBool) return 2;
  catalog::ColumnId column;
  for (size_t i = 0; i < get.ids.size(); ++i) {
    if (get.ids[i] == id) column = get.columns[i];
  }
  double guess = std::min(rows, 200.0);
  for (const catalog::IndexDescriptor& index : get.table->indexes) {
    if (index.key.empty() || index.key[0].column != column) continue;
    if (index.unique && index.key.size() == 1) return rows;
    guess = std::max(guess, rows / 10);
  }
  return std::max(1.0, guess);
}

double Physical::Selectivity(const std::vector<ExprPtr>& conditions, const LogicalGet* get,
                             double rows) const {
  double out = 1;
  for (const ExprPtr& condition : conditions) out *= Selectivity(*condition, get, rows);
  return out;
}

double Physical::Selectivity(const Expr& condition, const LogicalGet* get, double rows) const {
  auto distinct = [&](const Expr& expr) {
    if (get != nullptr && expr.kind == ExprKind::kColumn &&
        std::find(get->ids.begin(), get->ids.end(), expr.index) != get->ids.end()) {
      return DistinctValues(*get, expr.index, rows);
    }
    return std::max(1.0, std::min(rows, 200.0));
  };
  switch (condition.kind) {
    case ExprKind::kConstant: return IsTrueConstant(condition) ? 1 : 0;
    case ExprKind::kAnd: {
      double out = 1;
      for (const ExprPtr& arg : condition.args) out *= Selectivity(*arg, get, rows);
      return out;
    }
    case ExprKind::kOr: {
      double none = 1;
      for (const ExprPtr& arg : condition.args) none *= 1 - Selectivity(*arg, get, rows);
      return 1 - none;
    }
    case ExprKind::kNot: return 1 - Selectivity(*condition.args[0], get, rows);
    case ExprKind::kIsNull: return 0.05;
    case ExprKind::kIsNotNull: return 0.95;
    case ExprKind::kInList:
      return std::min(
          1.0, static_cast<double>(condition.args.size() - 1) / distinct(*condition.args[0]));
    case ExprKind::kNotInList: return 0.8;
    case ExprKind::kAnyArray: return std::min(1.0, 10 / distinct(*condition.args[0]));
    case ExprKind::kSubplan: return 0.5;
    case ExprKind::kColumn: return 0.5;
    case ExprKind::kIsNotDistinct: return 1 / distinct(*condition.args[0]);
    case ExprKind::kCall: break;
    default: return 0.5;
  }
  switch (condition.function->comparison) {
    case FunctionSpec::Comparison::kEqual:
      return 1 /
             std::max(
                 condition.args[0]->kind == ExprKind::kColumn ? distinct(*condition.args[0]) : 1.0,
                 condition.args[1]->kind == ExprKind::kColumn ? distinct(*condition.args[1]) : 1.0);
    case FunctionSpec::Comparison::kNotEqual: return 0.9;
    case FunctionSpec::Comparison::kLess:
    case FunctionSpec::Comparison::kLessEqual:
    case FunctionSpec::Comparison::kGreater:
    case FunctionSpec::Comparison::kGreaterEqual: return 1.0 / 3;
    case FunctionSpec::Comparison::kNone: break;
  }
  std::string_view name = condition.function->name;
  if (name == "~~" || name == "~~*" || name == "~") return 0.05;
  if (name == "!~~" || name == "!~~*" || name == "!~") return 0.95;
  return 1.0 / 3;
}

}  // namespace cellar::sql::planning
