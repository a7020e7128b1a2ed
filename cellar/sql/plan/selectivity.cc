// How many rows conditions leave: from what is known of the columns' values, else guesses from the
// schema.
#include <algorithm>
#include <cmath>

#include "cellar/sql/plan/physical.h"
#include "cellar/types/array.h"

namespace cellar::sql::planning {
namespace {

using Comparison = FunctionSpec::Comparison;

bool IsKnown(const Expr& value) { return IsConstant(value) && !value.constant.is_null(); }

bool IsRange(Comparison comparison) {
  return comparison == Comparison::kLess || comparison == Comparison::kLessEqual ||
         comparison == Comparison::kGreater || comparison == Comparison::kGreaterEqual;
}

Comparison Mirrored(Comparison comparison) {
  switch (comparison) {
    case Comparison::kLess: return Comparison::kGreater;
    case Comparison::kLessEqual: return Comparison::kGreaterEqual;
    case Comparison::kGreater: return Comparison::kLess;
    case Comparison::kGreaterEqual: return Comparison::kLessEqual;
    default: return comparison;
  }
}

}  // namespace

double Physical::TableRows(const catalog::TableDescriptor& table) const {
  if (!s_.context.estimate_rows) return 1000;
  return std::max(1.0, s_.context.estimate_rows(table));
}

double Physical::DistinctValues(const LogicalGet& get, int id, double rows) const {
  if (const catalog::ColumnStatistics* known = StatisticsOf(get, id)) {
    return known->DistinctAmong(rows);
  }
  if (s_.column(id).type.id == TypeId::kBool) return 2;
  double guess = std::min(rows, 200.0);
  for (const catalog::IndexDescriptor& index : get.table->indexes) {
    if (index.key.empty() || get.IdOfKey(index.key[0]) != id) continue;
    if (index.unique && index.key.size() == 1 && index.predicate.empty()) return rows;
    guess = std::max(guess, rows / 10);
  }
  return std::max(1.0, guess);
}

const catalog::ColumnStatistics* Physical::StatisticsOf(const LogicalGet& get, int id) const {
  if (!s_.context.statistics) return nullptr;
  auto [at, added] = statistics_.try_emplace(get.table->id.value);
  if (added) at->second = s_.context.statistics(*get.table);
  if (at->second == nullptr) return nullptr;
  for (size_t i = 0; i < get.ids.size(); ++i) {
    if (get.ids[i] != id) continue;
    const catalog::ColumnStatistics* known = at->second->Find(get.columns[i]);
    return known != nullptr && known->type.SameKind(s_.column(id).type) ? known : nullptr;
  }
  return nullptr;
}

std::optional<Physical::KnownComparison> Physical::ComparisonOf(const Expr& condition,
                                                                const LogicalGet* get) const {
  if (get == nullptr || condition.kind != ExprKind::kCall || condition.args.size() != 2 ||
      condition.function->comparison == Comparison::kNone) {
    return std::nullopt;
  }
  for (size_t side = 0; side < 2; ++side) {
    const Expr* column = SeeThrough(condition.args[side].get());
    if (column->kind != ExprKind::kColumn) continue;
    const catalog::ColumnStatistics* known = StatisticsOf(*get, column->index);
    const Expr& value = *condition.args[1 - side];
    if (known == nullptr || !SameKeyForm(value.type, known->type)) continue;
    KnownComparison out;
    out.id = column->index;
    out.column = known;
    out.comparison =
        side == 0 ? condition.function->comparison : Mirrored(condition.function->comparison);
    out.value = &value;
    return out;
  }
  return std::nullopt;
}

double Physical::Selectivity(const std::vector<ExprPtr>& conditions, const LogicalGet* get,
                             double rows) const {
  std::vector<const Expr*> all;
  for (const ExprPtr& condition : conditions) all.push_back(condition.get());
  return Selectivity(all, get, rows);
}

double Physical::Selectivity(const std::vector<const Expr*>& conditions, const LogicalGet* get,
                             double rows) const {
  // The bounds of one column are no independent conditions.
  struct Range {
    KnownComparison of;
    double low = 0, high = 1;
  };
  std::vector<Range> ranges;
  double out = 1;
  for (const Expr* condition : conditions) {
    const std::optional<KnownComparison> one = ComparisonOf(*condition, get);
    if (!one.has_value() || !IsRange(one->comparison) || !IsKnown(*one->value)) {
      out *= Selectivity(*condition, get, rows);
      continue;
    }
    auto at = std::find_if(ranges.begin(), ranges.end(),
                           [&](const Range& range) { return range.of.id == one->id; });
    if (at == ranges.end()) {
      at = ranges.insert(at, Range{*one, 0, 1 - one->column->null_fraction});
    }
    const Datum value = one->value->constant.datum();
    switch (one->comparison) {
      case Comparison::kLess:
      case Comparison::kLessEqual:
        at->high = std::min(
            at->high, one->column->FractionBelow(value, one->comparison == Comparison::kLessEqual));
        break;
      default:
        at->low = std::max(
            at->low, one->column->FractionBelow(value, one->comparison == Comparison::kGreater));
    }
  }
  for (const Range& range : ranges) {
    // Even an empty range may hold rows that came later: as many as one value has.
    const double least = range.of.column->RestFraction() / range.of.column->DistinctAmong(rows);
    out *= std::clamp(range.high - range.low, std::min(1.0, least), 1.0);
  }
  return out;
}

double Physical::Selectivity(const Expr& condition, const LogicalGet* get, double rows) const {
  auto distinct = [&](const Expr& expr) {
    if (get != nullptr && expr.kind == ExprKind::kColumn &&
        std::find(get->ids.begin(), get->ids.end(), expr.index) != get->ids.end()) {
      return DistinctValues(*get, expr.index, rows);
    }
    if (get != nullptr && !get->index_expressions.empty()) {
      if (const int id = get->ExpressionOf(expr); id >= 0) return DistinctValues(*get, id, rows);
    }
    return std::max(1.0, std::min(rows, 200.0));
  };
  if (const std::optional<double> known_share = KnownSelectivity(condition, get, rows))
    return *known_share;
  // Something whose values may be many.
  const auto known = [&](const Expr& expr) {
    return expr.kind == ExprKind::kColumn || (get != nullptr && get->ExpressionOf(expr) >= 0);
  };
  switch (condition.kind) {
    case ExprKind::kConstant: return IsTrueConstant(condition) ? 1 : 0;
    case ExprKind::kAnd: return Selectivity(condition.args, get, rows);
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
      return 1 / std::max(known(*condition.args[0]) ? distinct(*condition.args[0]) : 1.0,
                          known(*condition.args[1]) ? distinct(*condition.args[1]) : 1.0);
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

void Physical::NoteDistinct(const LogicalGet& get, double rows) {
  for (const int id : get.ids) {
    if (const catalog::ColumnStatistics* known = StatisticsOf(get, id)) {
      distinct_[id] = known->DistinctAmong(rows) + (known->null_fraction > 0 ? 1 : 0);
    }
  }
}

double Physical::GroupsOf(const Expr& key, double rows) const {
  const Expr* column = SeeThrough(&key);
  for (int hops = 0; hops < 64 && column->kind == ExprKind::kColumn; ++hops) {
    const auto known = distinct_.find(column->index);
    if (known != distinct_.end()) return std::min(known->second, std::max(1.0, rows));
    const auto below = virtual_.find(column->index);
    if (below == virtual_.end()) break;
    column = SeeThrough(below->second.get());
  }
  return std::max(2.0, std::sqrt(rows));
}

std::optional<double> Physical::KnownSelectivity(const Expr& condition, const LogicalGet* get,
                                                 double rows) const {
  if (get == nullptr || condition.args.empty()) return std::nullopt;
  const auto known_of = [&](const Expr& expr) -> const catalog::ColumnStatistics* {
    const Expr* column = SeeThrough(&expr);
    return column->kind == ExprKind::kColumn ? StatisticsOf(*get, column->index) : nullptr;
  };
  const auto equal = [&](const catalog::ColumnStatistics& column, Datum value) {
    // Values never seen may have come since.
    return std::max(column.FractionEqual(value, rows), 1 / std::max(1.0, rows));
  };
  const auto any_value = [&](const catalog::ColumnStatistics& column) {
    return (1 - column.null_fraction) / column.DistinctAmong(rows);
  };
  const catalog::ColumnStatistics* column = nullptr;
  switch (condition.kind) {
    case ExprKind::kIsNull:
    case ExprKind::kIsNotNull:
      column = known_of(*condition.args[0]);
      if (column == nullptr) return std::nullopt;
      return condition.kind == ExprKind::kIsNull ? column->null_fraction
                                                 : 1 - column->null_fraction;
    case ExprKind::kInList:
    case ExprKind::kNotInList: {
      column = known_of(*condition.args[0]);
      if (column == nullptr) return std::nullopt;
      double in = 0;
      for (size_t i = 1; i < condition.args.size(); ++i) {
        const Expr& value = *condition.args[i];
        if (!SameKeyForm(value.type, column->type)) return std::nullopt;
        if (IsConstant(value) && value.constant.is_null()) continue;
        in += IsKnown(value) ? equal(*column, value.constant.datum()) : any_value(*column);
      }
      in = std::min(in, 1 - column->null_fraction);
      return condition.kind == ExprKind::kInList ? in : 1 - column->null_fraction - in;
    }
    case ExprKind::kAnyArray: {
      column = known_of(*condition.args[0]);
      const Expr& array = *condition.args[1];
      const Type element = ElementTypeOf(array.type);
      if (column == nullptr || condition.function->comparison != Comparison::kEqual ||
          !IsKnown(array) || !SameKeyForm(element, column->type)) {
        return std::nullopt;
      }
      double in = 0;
      const ArrayView view(array.constant.datum().bytes(), element);
      for (size_t i = 0; i < view.size(); ++i) {
        if (!view.IsNull(i)) in += equal(*column, view.Get(i));
      }
      return std::min(in, 1 - column->null_fraction);
    }
    case ExprKind::kCall: break;
    default: return std::nullopt;
  }
  if (condition.function->name == "~~" && condition.args.size() == 2 &&
      IsKnown(*condition.args[1])) {
    column = known_of(*condition.args[0]);
    if (column == nullptr || PhysicalOf(column->type) != cellar::Physical::kBytes)
      return std::nullopt;
    const std::string_view pattern = condition.args[1]->constant.datum().bytes();
    const size_t end = std::min(pattern.find_first_of("%_\\"), pattern.size());
    if (end == pattern.size()) return equal(*column, condition.args[1]->constant.datum());
    if (end == 0) return std::nullopt;
    // What follows the prefix leaves some part of it.
    const double rest = pattern.substr(end) == "%" ? 1 : 0.2;
    return std::max(column->FractionWithPrefix(pattern.substr(0, end)) * rest,
                    1 / std::max(1.0, rows));
  }
  const std::optional<KnownComparison> one = ComparisonOf(condition, get);
  if (!one.has_value()) return std::nullopt;
  const double in = IsKnown(*one->value) ? equal(*one->column, one->value->constant.datum())
                                         : any_value(*one->column);
  if (one->comparison == Comparison::kEqual) return std::min(in, 1 - one->column->null_fraction);
  if (one->comparison == Comparison::kNotEqual) {
    return std::max(0.0, 1 - one->column->null_fraction - in);
  }
  if (!IsKnown(*one->value)) return std::nullopt;
  return Selectivity(std::vector<const Expr*>{&condition}, get, rows);
}

}  // namespace cellar::sql::planning
