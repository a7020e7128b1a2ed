#include "cellar/sql/exec/scan_conditions.h"

#include <algorithm>
#include <limits>

#include "cellar/sql/expr/collate.h"

namespace cellar::sql::exec {
namespace {

using Comparison = FunctionSpec::Comparison;
using Kernel = FunctionSpec::Kernel;

bool IsInt(Type type) {
  return !type.array &&
         (type.id == TypeId::kInt2 || type.id == TypeId::kInt4 || type.id == TypeId::kInt8);
}
bool IsFloat(Type type) {
  return !type.array && (type.id == TypeId::kFloat4 || type.id == TypeId::kFloat8);
}
bool IsText(Type type) {
  return !type.array &&
         (type.id == TypeId::kText || type.id == TypeId::kVarchar || type.id == TypeId::kName);
}

// The operator, applied to a column of this type, orders stored values as CompareDatums does.
bool ComparesAsStored(const FunctionSpec& spec, Type column, Type value) {
  switch (spec.kernel) {
    case Kernel::kInts:
      return (IsInt(column) && IsInt(value)) || (column.id == value.id && !column.array);
    case Kernel::kDoubles: return IsFloat(column) && IsFloat(value);
    case Kernel::kBytes:
      return (IsText(column) && IsText(value)) || (column.id == value.id && !column.array);
    case Kernel::kNone:
      return column.id == TypeId::kNumeric && value.id == TypeId::kNumeric && !column.array &&
             !value.array;
  }
  return false;
}

std::optional<FilterOp> OpOf(Comparison comparison, bool swapped) {
  switch (comparison) {
    case Comparison::kEqual: return FilterOp::kEqual;
    case Comparison::kNotEqual: return FilterOp::kNotEqual;
    case Comparison::kLess: return swapped ? FilterOp::kGreater : FilterOp::kLess;
    case Comparison::kLessEqual:
      return swapped ? FilterOp::kGreaterOrEqual : FilterOp::kLessOrEqual;
    case Comparison::kGreater: return swapped ? FilterOp::kLess : FilterOp::kGreater;
    case Comparison::kGreaterEqual:
      return swapped ? FilterOp::kLessOrEqual : FilterOp::kGreaterOrEqual;
    case Comparison::kNone: return std::nullopt;
  }
  return std::nullopt;
}

struct IntRange {
  int64_t least, greatest;
};
IntRange RangeOf(Type type) {
  if (type.id == TypeId::kInt2) return {INT16_MIN, INT16_MAX};
  if (type.id == TypeId::kInt4) return {INT32_MIN, INT32_MAX};
  return {INT64_MIN, INT64_MAX};
}

}  // namespace

ScanConditions::ScanConditions(const ScanNode& scan) : scan_(scan) {
  columns_ = scan.columns;
  if (!scan.filter) return;
  std::vector<const Expr*> rest;
  // One row hardly repays the division of labour.
  if (scan.unique_point) {
    rest.push_back(scan.filter.get());
  } else {
    Split(*scan.filter, &rest);
  }
  if (pushed_.empty()) {
    columns_.insert(columns_.end(), scan.filter_columns.begin(), scan.filter_columns.end());
    rest_.emplace(scan.filter.get());
    return;
  }
  if (rest.empty()) return;
  if (rest.size() == 1) {
    rest_expr_ = CloneExpr(*rest[0]);
  } else {
    rest_expr_ = std::make_unique<Expr>();
    rest_expr_->kind = ExprKind::kAnd;
    rest_expr_->type = MakeType(TypeId::kBool);
    for (const Expr* part : rest) rest_expr_->args.push_back(CloneExpr(*part));
  }
  VisitExprMutable(rest_expr_.get(), [this](Expr* part) { Remap(part); });
  rest_.emplace(rest_expr_.get());
}

// Columns that no remaining condition needs are not read, so the others move.
void ScanConditions::Remap(Expr* expr) {
  const size_t width = scan_.columns.size();
  if (expr->kind != ExprKind::kColumn || static_cast<size_t>(expr->index) < width) return;
  const catalog::ColumnId column = scan_.filter_columns[static_cast<size_t>(expr->index) - width];
  auto at = std::find(columns_.begin() + static_cast<ptrdiff_t>(width), columns_.end(), column);
  expr->index = static_cast<int>(at - columns_.begin());
  if (at == columns_.end()) columns_.push_back(column);
}

void ScanConditions::Split(const Expr& condition, std::vector<const Expr*>* rest) {
  if (condition.kind == ExprKind::kAnd) {
    for (const ExprPtr& arg : condition.args) Split(*arg, rest);
  } else if (!Match(condition)) {
    rest->push_back(&condition);
  }
}

const Expr* ScanConditions::ColumnOf(const Expr& expr) const {
  const Expr& column = StripRelabel(expr);
  if (column.kind != ExprKind::kColumn) return nullptr;
  const size_t index = static_cast<size_t>(column.index);
  return index < scan_.columns.size() + scan_.filter_columns.size() ? &column : nullptr;
}

void ScanConditions::Push(const Expr& column, FilterOp op, const Expr* value, Datum constant) {
  const size_t index = static_cast<size_t>(column.index), width = scan_.columns.size();
  const catalog::ColumnId id =
      index < width ? scan_.columns[index] : scan_.filter_columns[index - width];
  pushed_.push_back(Pushed{id, column.type, op, value, constant});
}

bool ScanConditions::Match(const Expr& condition) {
  const Type boolean = MakeType(TypeId::kBool);
  switch (condition.kind) {
    case ExprKind::kColumn:
      if (condition.type != boolean || ColumnOf(condition) == nullptr) return false;
      Push(condition, FilterOp::kEqual, nullptr, Datum::Bool(true));
      return true;
    case ExprKind::kNot:
    case ExprKind::kIsTrue:
    case ExprKind::kIsFalse: {
      const Expr& column = *condition.args[0];
      if (column.type != boolean || column.kind != ExprKind::kColumn || !ColumnOf(column)) {
        return false;
      }
      Push(column, FilterOp::kEqual, nullptr, Datum::Bool(condition.kind == ExprKind::kIsTrue));
      return true;
    }
    case ExprKind::kIsNull:
    case ExprKind::kIsNotNull: {
      const Expr* column = ColumnOf(*condition.args[0]);
      if (column == nullptr || column->type.id == TypeId::kRecord) return false;
      Push(*column, condition.kind == ExprKind::kIsNull ? FilterOp::kIsNull : FilterOp::kIsNotNull,
           nullptr);
      return true;
    }
    case ExprKind::kCall: break;
    default: return false;
  }
  if (condition.args.size() != 2) return false;
  for (size_t side = 0; side < 2; ++side) {
    const Expr* column = ColumnOf(*condition.args[side]);
    const Expr& value = *condition.args[1 - side];
    if (column == nullptr || !IsRowIndependent(value)) continue;
    // Scans compare by the column's own collation, and page by page by bytes.
    if (condition.args[side]->type.collation != nullptr || column->type.collation != nullptr) {
      const bool by_bytes = EqualByBytes(condition.args[side]->type.collation) &&
                            EqualByBytes(column->type.collation) &&
                            (condition.function->comparison == Comparison::kEqual ||
                             condition.function->comparison == Comparison::kNotEqual);
      if (!by_bytes) return false;
    }
    const std::optional<FilterOp> op = OpOf(condition.function->comparison, side == 1);
    if (!op || !ComparesAsStored(*condition.function, column->type, value.type)) return false;
    Push(*column, *op, &value);
    return true;
  }
  return false;
}

ScanConditions::Fit ScanConditions::Fill(const Pushed& pushed, EvalContext& context,
                                         std::vector<table::ColumnFilter>* filters) {
  table::ColumnFilter out{pushed.column, {pushed.op, pushed.constant}};
  if (pushed.value != nullptr) {
    Result<Datum> value = EvalScalar(*pushed.value, context);
    if (!value.ok()) return Fit::kFails;
    if (value->is_null()) return Fit::kNothingPasses;
    out.filter.value = *value;
  }
  if (pushed.value != nullptr && IsInt(pushed.type)) {
    // Beyond the column's range the value is as good as infinite.
    const IntRange range = RangeOf(pushed.type);
    const int64_t value = out.filter.value.int_value();
    if (value < range.least || value > range.greatest) {
      const bool high = value > range.greatest;
      const bool passes =
          pushed.op == FilterOp::kNotEqual ||
          ((pushed.op == FilterOp::kLess || pushed.op == FilterOp::kLessOrEqual) && high) ||
          ((pushed.op == FilterOp::kGreater || pushed.op == FilterOp::kGreaterOrEqual) && !high);
      if (!passes) return Fit::kNothingPasses;
      out.filter = {FilterOp::kIsNotNull, Datum()};
    }
  }
  if (pushed.value != nullptr && pushed.type.id == TypeId::kFloat4) {
    const double value = out.filter.value.double_value();
    if (value == value && static_cast<double>(static_cast<float>(value)) != value) {
      return Fit::kFails;
    }
  }
  filters->push_back(out);
  return Fit::kPushed;
}

bool ScanConditions::Prepare(EvalContext& context, table::ScanSpec* spec) {
  all_pushed_ = true;
  for (const Pushed& pushed : pushed_) {
    switch (Fill(pushed, context, &spec->filters)) {
      case Fit::kPushed: break;
      case Fit::kNothingPasses: return false;
      case Fit::kFails: all_pushed_ = false; break;
    }
    if (!all_pushed_) break;
  }
  spec->columns = columns_;
  if (!all_pushed_) {
    spec->filters.clear();
    spec->columns = scan_.columns;
    spec->columns.insert(spec->columns.end(), scan_.filter_columns.begin(),
                         scan_.filter_columns.end());
    if (!whole_) whole_.emplace(scan_.filter.get());
  }
  return true;
}

Evaluator* ScanConditions::filter() {
  std::optional<Evaluator>& filter = all_pushed_ ? rest_ : whole_;
  return filter ? &*filter : nullptr;
}

}  // namespace cellar::sql::exec
