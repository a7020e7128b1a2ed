// Which index of a table, and which parts of it.
//
// A condition is searchable when it compares one column of the table with something that needs none
// of its columns. For an index, equalities bind its first columns, a range the next one; what an
// index cannot say stays a filter. OR over several columns becomes several spans when each arm
// binds the index.
#include <algorithm>
#include <cmath>

#include "cellar/sql/expr/collate.h"
#include "cellar/sql/plan/physical.h"
#include "cellar/types/array.h"

namespace cellar::sql::planning {

namespace {

using Comparison = FunctionSpec::Comparison;

bool IsTextual(Type type) {
  return !type.array && (type.id == TypeId::kText || type.id == TypeId::kVarchar);
}

}  // namespace

const Expr* SeeThrough(const Expr* expr) {
  while (expr->kind == ExprKind::kCall && expr->args.size() == 1) {
    Type from = expr->args[0]->type, to = expr->type;
    bool relabel = IsTextual(from) && IsTextual(to) && to.modifier == -1;
    bool widen = IsInteger(from) && IsInteger(to) && TypeLength(to) > TypeLength(from);
    if (!relabel && !widen) break;
    if (widen && expr->function->comparison != Comparison::kNone) break;
    // Only casts are named like their result's type.
    std::string_view name = expr->function->name;
    if (name != TypeName(ScalarOf(to)) && name != "cast" && name != "relabel") break;
    expr = expr->args[0].get();
  }
  return expr;
}

bool SameKeyForm(Type value, Type column) {
  if (value.SameKind(column)) return true;
  if (value.array || column.array) return false;
  if (IsInteger(value) && IsInteger(column)) return true;
  return IsTextual(value) && IsTextual(column);
}

namespace {

// More spans than this are worse than reading everything.
constexpr size_t kMaxSpans = 10000;

struct Probe {
  enum class Kind : uint8_t { kEqual, kIn, kArray, kLower, kUpper, kPrefix, kNull, kNotNull, kOr };
  Kind kind = Kind::kEqual;
  int id = -1;
  size_t condition = 0;  // its position among the conditions
  const Expr* source = nullptr;
  std::vector<const Expr*> values;       // kEqual, kLower, kUpper: one
  std::vector<ExprPtr> made;             // owned values (prefix bounds, array elements)
  const Collation* collation = nullptr;  // by which the condition compares
  bool inclusive = false;
  bool exact = true;                     // says all that the condition says
  std::vector<std::vector<Probe>> arms;  // kOr: searches of each arm
};

struct Matcher {
  const Statement& statement;
  const Physical& physical;
  const LogicalGet& get;
  IdSet own;

  Matcher(const Statement& s, const Physical& p, const LogicalGet& g)
      : statement(s), physical(p), get(g) {
    for (int id : g.ids) own.Add(id);
  }

  // The table's own column, or -1.
  int ColumnOf(const Expr& expr) const {
    const Expr* column = SeeThrough(&expr);
    if (column->kind == ExprKind::kColumn) return own.Has(column->index) ? column->index : -1;
    return IndexedOf(expr);
  }
  // What stands for an expression of one of the table's indexes, or -1.
  int IndexedOf(const Expr& expr) const {
    if (get.index_expressions.empty()) return -1;
    if (const int id = get.ExpressionOf(expr); id >= 0) return id;
    return get.ExpressionOf(*SeeThrough(&expr));
  }
  // Needs no column of the table. Subqueries may be asked for single values: they run when the scan
  // opens.
  bool Outside(const Expr& expr) const {
    return !physical.Expand(IdsOf(statement, expr)).Intersects(own) && !IsVolatile(expr) &&
           OnlyValueSubplans(expr);
  }
  static bool OnlyValueSubplans(const Expr& expr) {
    if (expr.kind == ExprKind::kSubplan && expr.subplan_kind != SubplanKind::kScalar &&
        expr.subplan_kind != SubplanKind::kArray) {
      return false;
    }
    for (const ExprPtr& arg : expr.args) {
      if (!OnlyValueSubplans(*arg)) return false;
    }
    return true;
  }
  bool Usable(int id, const Expr& value) const {
    return id >= 0 && SameKeyForm(value.type, statement.column(id).type) && Outside(value);
  }

  std::optional<Probe> Match(const Expr& condition, size_t position) const {
    Probe out;
    out.condition = position;
    out.source = &condition;
    switch (condition.kind) {
      case ExprKind::kCall: return MatchCall(condition, std::move(out));
      case ExprKind::kColumn:
      case ExprKind::kNot: {
        const Expr& column = condition.kind == ExprKind::kNot ? *condition.args[0] : condition;
        if (column.kind != ExprKind::kColumn || !own.Has(column.index)) return std::nullopt;
        out.id = column.index;
        out.made.push_back(MakeBoolConstant(condition.kind == ExprKind::kColumn));
        out.values.push_back(out.made[0].get());
        return out;
      }
      case ExprKind::kIsTrue:
      case ExprKind::kIsFalse: {
        out.id = ColumnOf(*condition.args[0]);
        if (out.id < 0) return std::nullopt;
        out.made.push_back(MakeBoolConstant(condition.kind == ExprKind::kIsTrue));
        out.values.push_back(out.made[0].get());
        return out;
      }
      case ExprKind::kIsNull:
      case ExprKind::kIsNotNull:
        out.kind = condition.kind == ExprKind::kIsNull ? Probe::Kind::kNull : Probe::Kind::kNotNull;
        out.id = ColumnOf(*condition.args[0]);
        if (out.id < 0) return std::nullopt;
        return out;
      case ExprKind::kInList: {
        out.kind = Probe::Kind::kIn;
        out.id = ColumnOf(*condition.args[0]);
        out.collation = condition.args[0]->type.collation;
        if (out.id < 0) return std::nullopt;
        for (size_t i = 1; i < condition.args.size(); ++i) {
          const Expr& value = *condition.args[i];
          if (IsConstant(value) && value.constant.is_null()) continue;
          if (!Usable(out.id, value)) return std::nullopt;
          out.values.push_back(&value);
        }
        return out;
      }
      case ExprKind::kAnyArray: {
        if (condition.function->comparison != Comparison::kEqual) return std::nullopt;
        out.id = ColumnOf(*condition.args[0]);
        out.collation = condition.args[0]->type.collation;
        const Expr& array = *condition.args[1];
        Type element = ElementTypeOf(array.type);
        if (out.id < 0 || !Outside(array) || !SameKeyForm(element, statement.column(out.id).type)) {
          return std::nullopt;
        }
        if (IsConstant(array)) {
          out.kind = Probe::Kind::kIn;
          if (array.constant.is_null()) return out;
          ArrayView view(array.constant.datum().bytes(), element);
          for (size_t i = 0; i < view.size(); ++i) {
            if (view.IsNull(i)) continue;
            out.made.push_back(MakeConstant(Value(element, view.Get(i))));
            out.values.push_back(out.made.back().get());
          }
          return out;
        }
        if (array.kind == ExprKind::kArray) {
          out.kind = Probe::Kind::kIn;
          for (const ExprPtr& item : array.args) out.values.push_back(item.get());
          return out;
        }
        out.kind = Probe::Kind::kArray;
        out.values.push_back(&array);
        return out;
      }
      case ExprKind::kOr: return MatchOr(condition, std::move(out));
      default: return std::nullopt;
    }
  }

  std::optional<Probe> MatchCall(const Expr& call, Probe out) const {
    if (call.args.size() != 2) return std::nullopt;
    Comparison comparison = call.function->comparison;
    int left = ColumnOf(*call.args[0]);
    if (call.function->name == "~~" && left >= 0 && IsTextual(statement.column(left).type) &&
        IsConstant(*call.args[1]) && !call.args[1]->constant.is_null()) {
      return MatchLike(left, call.args[1]->constant.datum().bytes(), std::move(out));
    }
    if (comparison == Comparison::kNone || comparison == Comparison::kNotEqual) return std::nullopt;
    const Expr* value = call.args[1].get();
    out.id = left;
    out.collation = call.args[0]->type.collation != nullptr ? call.args[0]->type.collation
                                                            : call.args[1]->type.collation;
    if (!Usable(left, *value)) {
      out.id = ColumnOf(*call.args[1]);
      value = call.args[0].get();
      if (!Usable(out.id, *value)) return std::nullopt;
      switch (comparison) {
        case Comparison::kLess: comparison = Comparison::kGreater; break;
        case Comparison::kLessEqual: comparison = Comparison::kGreaterEqual; break;
        case Comparison::kGreater: comparison = Comparison::kLess; break;
        case Comparison::kGreaterEqual: comparison = Comparison::kLessEqual; break;
        default: break;
      }
    }
    switch (comparison) {
      case Comparison::kEqual: out.kind = Probe::Kind::kEqual; break;
      case Comparison::kLess:
      case Comparison::kLessEqual: out.kind = Probe::Kind::kUpper; break;
      default: out.kind = Probe::Kind::kLower; break;
    }
    out.inclusive = comparison == Comparison::kLessEqual || comparison == Comparison::kGreaterEqual;
    out.values.push_back(value);
    return out;
  }

  std::optional<Probe> MatchLike(int id, std::string_view pattern, Probe out) const {
    std::string prefix;
    size_t i = 0;
    for (; i < pattern.size() && pattern[i] != '%' && pattern[i] != '_'; ++i) {
      if (pattern[i] == '\\') {
        if (++i == pattern.size()) return std::nullopt;
      }
      prefix += pattern[i];
    }
    Type text = MakeType(TypeId::kText);
    out.id = id;
    out.made.push_back(MakeConstant(Value(text, Datum::Bytes(prefix))));
    if (i == pattern.size()) {  // no wildcard
      out.kind = Probe::Kind::kEqual;
      out.values.push_back(out.made[0].get());
      return out;
    }
    if (prefix.empty()) return std::nullopt;
    // The least text above everything with the prefix: the last character that can grow is made
    // greater.
    std::string end = prefix;
    while (!end.empty()) {
      // Bytes order UTF-8; a bound need not be valid text, only above all texts with the prefix.
      unsigned char last = static_cast<unsigned char>(end.back());
      if (last < 0xFF) {
        end.back() = static_cast<char>(last + 1);
        break;
      }
      end.pop_back();
    }
    out.kind = Probe::Kind::kPrefix;
    out.exact = pattern.substr(i) == "%";
    out.made.push_back(MakeConstant(Value(text, Datum::Bytes(end))));
    out.values.push_back(out.made[0].get());
    if (!end.empty()) out.values.push_back(out.made[1].get());
    return out;
  }

  std::optional<Probe> MatchOr(const Expr& condition, Probe out) const {
    out.kind = Probe::Kind::kOr;
    bool one_column = true;
    int id = -1;
    for (const ExprPtr& arm : condition.args) {
      std::vector<Probe> searches;
      auto add = [&](const Expr& conjunct) {
        std::optional<Probe> search = Match(conjunct, out.condition);
        if (search.has_value()) searches.push_back(std::move(*search));
        return !searches.empty() && search.has_value();
      };
      bool whole = true;
      if (arm->kind == ExprKind::kAnd) {
        for (const ExprPtr& conjunct : arm->args) whole = add(*conjunct) && whole;
      } else {
        whole = add(*arm);
      }
      if (searches.empty()) return std::nullopt;
      bool equal =
          whole && searches.size() == 1 &&
          (searches[0].kind == Probe::Kind::kEqual || searches[0].kind == Probe::Kind::kIn) &&
          searches[0].exact;
      one_column = one_column && equal && (id < 0 || searches[0].id == id);
      if (equal) id = searches[0].id;
      out.arms.push_back(std::move(searches));
    }
    if (one_column) {
      // a = 1 OR a = 2 is a IN (1, 2).
      out.kind = Probe::Kind::kIn;
      out.id = id;
      for (std::vector<Probe>& arm : out.arms) {
        for (const Expr* value : arm[0].values) out.values.push_back(value);
        for (ExprPtr& value : arm[0].made) out.made.push_back(std::move(value));
      }
      out.arms.clear();
      return out;
    }
    out.exact = false;
    return out;
  }
};

struct Spans {
  std::vector<SpanExpr> spans;
  std::vector<size_t> used;  // conditions said in full
  size_t equal_columns = 0;
  bool single = true;  // the equal columns have one value each
  bool range = false, both_bounds = false, prefix = false, null_only = false, exclude_null = false;
  double values = 1;  // combinations of equal values
  const Expr *low = nullptr, *high = nullptr;
};

SpanExpr CloneSpan(const SpanExpr& from) {
  SpanExpr out;
  for (const ExprPtr& value : from.equal) out.equal.push_back(CloneExpr(*value));
  out.equal_null = from.equal_null;
  out.array_position = from.array_position;
  return out;
}

// Does the order, or for equality the identity, of a key under `own` serve this search?
bool Serves(const Probe& search, const Collation* own) {
  switch (search.kind) {
    case Probe::Kind::kEqual:
    case Probe::Kind::kIn:
    case Probe::Kind::kArray:
      return search.collation == own || (EqualByBytes(search.collation) && EqualByBytes(own));
    case Probe::Kind::kLower:
    case Probe::Kind::kUpper: return search.collation == own;
    case Probe::Kind::kPrefix: return own == nullptr;
    default: return true;
  }
}

// What `searches` say of an index's leading columns.
Spans SpansOf(const Physical& physical, const LogicalGet& get,
              const catalog::IndexDescriptor& index, const std::vector<const Probe*>& all) {
  Spans out;
  out.spans.emplace_back();
  bool has_array = false;
  for (const catalog::IndexColumn& key : index.key) {
    const int id = get.IdOfKey(key);
    if (id < 0) break;
    const Collation* const collation = physical.CollationOf(get, key);
    std::vector<const Probe*> searches;
    for (const Probe* search : all) {
      if (Serves(*search, collation)) searches.push_back(search);
    }
    const Probe* equal = nullptr;
    auto rank = [](const Probe& search) {
      switch (search.kind) {
        case Probe::Kind::kEqual: return 4;
        case Probe::Kind::kNull: return 3;
        case Probe::Kind::kIn: return 2;
        case Probe::Kind::kArray: return 1;
        default: return 0;
      }
    };
    for (const Probe* search : searches) {
      if (search->id != id || rank(*search) == 0) continue;
      if (search->kind == Probe::Kind::kArray && has_array) continue;
      if (search->kind == Probe::Kind::kIn &&
          out.spans.size() * std::max<size_t>(1, search->values.size()) > kMaxSpans) {
        continue;
      }
      if (equal == nullptr || rank(*search) > rank(*equal)) equal = search;
    }
    if (equal != nullptr) {
      if (equal->exact) out.used.push_back(equal->condition);
      ++out.equal_columns;
      switch (equal->kind) {
        case Probe::Kind::kNull:
          for (SpanExpr& span : out.spans) {
            span.equal.push_back(MakeNull(MakeType(TypeId::kUnknown)));
            span.equal_null.resize(span.equal.size());
            span.equal_null.back() = true;
          }
          break;
        case Probe::Kind::kArray:
          has_array = true;
          out.single = false;
          out.values *= 10;
          for (SpanExpr& span : out.spans) {
            span.array_position = static_cast<int>(span.equal.size());
            span.equal.push_back(CloneExpr(*equal->values[0]));
            span.equal_null.resize(span.equal.size());
          }
          break;
        case Probe::Kind::kIn: {
          std::vector<SpanExpr> product;
          product.reserve(out.spans.size() * equal->values.size());
          for (SpanExpr& span : out.spans) {
            for (const Expr* value : equal->values) {
              product.push_back(CloneSpan(span));
              product.back().equal.push_back(CloneExpr(*value));
              product.back().equal_null.resize(product.back().equal.size());
            }
          }
          out.values *= static_cast<double>(equal->values.size());
          out.single = out.single && equal->values.size() == 1;
          out.spans = std::move(product);
          break;
        }
        default:
          for (SpanExpr& span : out.spans) {
            span.equal.push_back(CloneExpr(*equal->values[0]));
            span.equal_null.resize(span.equal.size());
          }
          break;
      }
      continue;
    }
    const Probe *lower = nullptr, *upper = nullptr, *not_null = nullptr, *prefix = nullptr;
    for (const Probe* search : searches) {
      if (search->id != id) continue;
      if (search->kind == Probe::Kind::kLower && lower == nullptr) lower = search;
      if (search->kind == Probe::Kind::kUpper && upper == nullptr) upper = search;
      if (search->kind == Probe::Kind::kPrefix && prefix == nullptr) prefix = search;
      if (search->kind == Probe::Kind::kNotNull && not_null == nullptr) not_null = search;
    }
    if (prefix != nullptr) {
      for (SpanExpr& span : out.spans) {
        span.lower = {CloneExpr(*prefix->values[0]), true};
        if (prefix->values.size() > 1) span.upper = {CloneExpr(*prefix->values[1]), false};
      }
      if (prefix->exact) out.used.push_back(prefix->condition);
      out.range = out.prefix = true;
    } else if (lower != nullptr || upper != nullptr) {
      for (SpanExpr& span : out.spans) {
        if (lower != nullptr) span.lower = {CloneExpr(*lower->values[0]), lower->inclusive};
        if (upper != nullptr) span.upper = {CloneExpr(*upper->values[0]), upper->inclusive};
      }
      if (lower != nullptr) out.used.push_back(lower->condition);
      if (upper != nullptr) out.used.push_back(upper->condition);
      out.range = true;
      out.both_bounds = lower != nullptr && upper != nullptr;
      if (lower != nullptr) out.low = lower->values[0];
      if (upper != nullptr) out.high = upper->values[0];
    }
    if (not_null != nullptr) {
      for (SpanExpr& span : out.spans) span.exclude_null = true;
      out.used.push_back(not_null->condition);
      out.exclude_null = true;
    }
    break;
  }
  return out;
}

// What a scan of the primary index costs a row, where these columns are read.
double RowScanCost(const LogicalGet& get, const IdSet& needed) {
  const auto values = static_cast<double>(
      std::count_if(get.ids.begin(), get.ids.end(), [&](int id) { return needed.Has(id); }));
  switch (get.table->layout) {
    // A key for each group, wanted or not.
    case catalog::Layout::kRow:
      return kRowScanCost * static_cast<double>(1 + get.table->groups.size());
    case catalog::Layout::kPages: return kPagedRowCost + kPagedValueCost * values;
    // A key for each column, wanted or not; a key for each wanted one.
    case catalog::Layout::kCell:
      return kRowScanCost * static_cast<double>(get.table->columns.size());
    case catalog::Layout::kDatum: return kRowScanCost * std::max(1.0, values);
  }
  return kRowScanCost;
}

}  // namespace

bool Physical::Covers(const LogicalGet& get, const catalog::IndexDescriptor& index,
                      const IdSet& needed) const {
  if (index.primary) return true;
  const catalog::IndexDescriptor& primary = get.table->primary();
  for (size_t i = 0; i < get.ids.size(); ++i) {
    if (!needed.Has(get.ids[i])) continue;
    auto holds = [&](const std::vector<catalog::IndexColumn>& key) {
      for (const catalog::IndexColumn& column : key) {
        if (column.column == get.columns[i]) return true;
      }
      return false;
    };
    if (holds(index.key) || holds(primary.key)) continue;
    if (std::find(index.stored.begin(), index.stored.end(), get.columns[i]) != index.stored.end())
      continue;
    return false;
  }
  return true;
}

namespace {

// One of the conjuncts?
bool IsPartOf(const Expr& condition, const Expr& predicate) {
  if (predicate.kind != ExprKind::kAnd) return ExprEquals(condition, predicate);
  return std::any_of(predicate.args.begin(), predicate.args.end(),
                     [&](const ExprPtr& arg) { return ExprEquals(condition, *arg); });
}

}  // namespace

bool Physical::HasIndexOrder(const LogicalGet& get, int id) const {
  for (const catalog::IndexDescriptor& index : get.table->indexes) {
    if (index.state != catalog::IndexState::kPublic || index.key.empty() ||
        !index.predicate.empty()) {
      continue;
    }
    for (size_t i = 0; i < get.columns.size(); ++i) {
      if (get.ids[i] == id && index.key[0].column == get.columns[i] &&
          CollationOf(get, index.key[0]) == s_.column(id).type.collation) {
        return true;
      }
    }
  }
  return false;
}

bool Physical::AllKnown(const LogicalGet& get, const std::vector<ExprPtr>& conditions,
                        const std::vector<size_t>& which) const {
  return !which.empty() && std::all_of(which.begin(), which.end(), [&](size_t one) {
    return KnownSelectivity(*conditions[one], &get, 1).has_value();
  });
}

AccessPath Physical::ChoosePath(const LogicalGet& get, const std::vector<ExprPtr>& conditions,
                                const Request& request) const {
  Matcher matcher(s_, *this, get);
  std::vector<Probe> searches;
  for (size_t i = 0; i < conditions.size(); ++i) {
    std::optional<Probe> search = matcher.Match(*conditions[i], i);
    if (search.has_value()) searches.push_back(std::move(*search));
  }
  IdSet needed = request.needed;
  for (const ExprPtr& condition : conditions) AddIds(s_, *condition, &needed);
  needed = Expand(needed);
  double table_rows = TableRows(*get.table);
  double all_selectivity = Selectivity(conditions, &get, table_rows);

  AccessPath best;
  bool have_best = false;
  auto consider = [&](const catalog::IndexDescriptor& index, Spans spans) {
    AccessPath path;
    path.index = &index;
    path.consumed.assign(conditions.size(), false);
    for (size_t used : spans.used) path.consumed[used] = true;
    const Expr* predicate = get.PredicateOf(index);
    double index_rows = table_rows;
    if (predicate == nullptr) {
      path.covering = Covers(get, index, needed);
    } else {
      index_rows = std::max(1.0, table_rows * Selectivity(*predicate, &get, table_rows));
      // What the predicate says need not be asked of rows.
      IdSet asked = request.needed;
      for (size_t i = 0; i < conditions.size(); ++i) {
        if (IsPartOf(*conditions[i], *predicate)) path.consumed[i] = true;
        if (!path.consumed[i]) AddIds(s_, *conditions[i], &asked);
      }
      path.covering = Covers(get, index, Expand(asked));
    }
    // Rows in the spans.
    bool whole_key = spans.equal_columns >= index.key.size();
    double fraction = 1;
    size_t position = 0;
    for (const catalog::IndexColumn& key : index.key) {
      if (position == spans.equal_columns) break;
      if (const int id = get.IdOfKey(key); id >= 0) fraction /= DistinctValues(get, id, table_rows);
      ++position;
    }
    double rows = std::max(index_rows * fraction, spans.equal_columns > 0 ? 1.0 : index_rows);
    if (index.unique && whole_key) rows = 1;
    rows *= spans.values;
    if (spans.range) {
      double part = spans.prefix ? 1.0 / 50 : spans.both_bounds ? 1.0 / 9 : 1.0 / 3;
      rows = std::max(1.0, rows * part);
      // A closed range of integers over a unique column holds no more rows than numbers.
      if (spans.both_bounds && index.unique && spans.equal_columns + 1 == index.key.size() &&
          IsConstant(*spans.low) && IsConstant(*spans.high) && IsInteger(spans.low->type) &&
          IsInteger(spans.high->type) && !spans.low->constant.is_null() &&
          !spans.high->constant.is_null()) {
        double width = static_cast<double>(spans.high->constant.datum().int_value()) -
                       static_cast<double>(spans.low->constant.datum().int_value()) + 1;
        rows = std::min(rows, std::max(1.0, width * spans.values));
      }
    }
    if (!(index.unique && whole_key) && AllKnown(get, conditions, spans.used)) {
      std::vector<const Expr*> used;
      for (size_t one : spans.used) used.push_back(conditions[one].get());
      rows = std::max(1.0, table_rows * Selectivity(used, &get, table_rows));
    }
    rows = std::min(rows, table_rows);
    path.scanned = rows;
    double rest = 1;
    for (size_t i = 0; i < conditions.size(); ++i) {
      if (!path.consumed[i]) rest *= Selectivity(*conditions[i], &get, table_rows);
    }
    // The same answer whatever the path: never more than the guess over all conditions, unless a
    // key says so.
    path.rows = std::max(1.0, std::min(rows * rest, std::max(1.0, rows)));
    if (!(index.unique && whole_key)) {
      path.rows = std::min(path.rows, std::max(1.0, table_rows * std::max(all_selectivity, 1e-12)));
    }
    path.unique_point = index.unique && whole_key && !spans.spans.empty();
    for (const SpanExpr& span : spans.spans) {
      for (bool null : span.equal_null) path.unique_point = path.unique_point && !null;
      path.unique_point = path.unique_point && span.equal.size() == index.key.size();
    }
    // Order: columns with one value do not count.
    if (!request.order.empty()) {
      struct KeyPart {
        int id;
        bool descending, nulls_first;
        const Collation* collation;
      };
      std::vector<KeyPart> parts;
      bool unordered = false;
      auto add = [&](const catalog::IndexColumn& key) {
        const int id = get.IdOfKey(key);
        if (id < 0) unordered = true;
        if (!unordered) {
          parts.push_back({id, key.direction == codec::Direction::kDescending,
                           key.nulls == codec::NullPlacement::kFirst, CollationOf(get, key)});
        }
      };
      for (const catalog::IndexColumn& key : index.key) add(key);
      if (!index.unique) {
        for (const catalog::IndexColumn& key : get.table->primary().key) add(key);
      }
      // May two rows share the whole key of a unique index, as those with NULLs do?
      bool no_twins = index.unique;
      for (size_t i = 0; i < index.key.size() && !index.nulls_not_distinct; ++i) {
        const int id = get.IdOfKey(index.key[i]);
        if (id >= 0 && s_.column(id).not_null) continue;
        bool excluded = i == spans.equal_columns && (spans.range || spans.exclude_null);
        if (i < spans.equal_columns) {
          excluded = std::all_of(spans.spans.begin(), spans.spans.end(), [i](const SpanExpr& span) {
            return i < span.equal.size() && (i >= span.equal_null.size() || !span.equal_null[i]);
          });
        }
        no_twins = no_twins && excluded;
      }
      auto matches = [&](bool reverse) {
        size_t at = 0;
        for (OrderKey wanted : request.order) {
          const Collation* const collation = s_.column(wanted.id).type.collation;
          wanted.id = IndexedId(get, wanted.id);
          // Skip columns that are fixed to one value.
          while (at < spans.equal_columns && spans.single && at < parts.size() &&
                 parts[at].id != wanted.id) {
            ++at;
          }
          bool fixed = false;
          for (size_t i = 0; i < spans.equal_columns && spans.single && i < parts.size(); ++i) {
            fixed = fixed || (parts[i].id == wanted.id && EqualByBytes(parts[i].collation));
          }
          if (fixed) continue;
          // All columns of a unique key given: nothing further can differ.
          if (no_twins && at >= index.key.size()) return true;
          if (at >= parts.size() || parts[at].id != wanted.id || parts[at].collation != collation) {
            return false;
          }
          if (parts[at].descending != (wanted.descending != reverse)) return false;
          bool nulls_first = parts[at].nulls_first != reverse;
          if (nulls_first != wanted.nulls_first && !s_.column(wanted.id).not_null) {
            // A range excludes NULLs, so their place does not matter.
            bool no_nulls = at == spans.equal_columns && (spans.range || spans.exclude_null);
            if (!no_nulls) return false;
          }
          ++at;
        }
        return true;
      };
      if (spans.spans.size() == 1 && path.unique_point && spans.single) {
        path.ordered = true;
      } else if (matches(false)) {
        path.ordered = true;
      } else if (matches(true)) {
        path.ordered = true;
        path.reverse = true;
      }
    }
    double per_row = index.primary ? RowScanCost(get, needed)
                                   : kIndexEntryCost + (path.covering ? 0 : kRowFetchCost);
    double seeks = kSeekCost * std::max<double>(1, static_cast<double>(spans.spans.size()) *
                                                       (spans.values > 1 ? 0.3 : 1));
    if (index.shards != 0 && !whole_key) seeks *= index.shards;
    path.full_cost = seeks + rows * per_row + rows * kFilterCost * (conditions.empty() ? 0 : 1);
    double wanted_fraction = 1;
    if (request.limit < path.rows && (request.order.empty() || path.ordered)) {
      wanted_fraction = std::max(request.limit, 1.0) / path.rows;
    }
    path.cost = seeks + (path.full_cost - seeks) * wanted_fraction;
    double compare = path.cost;
    if (!request.order.empty() && !path.ordered) {
      compare += kSortFactor * path.rows * std::log2(std::max(2.0, path.rows));
    }
    // Equal costs go to the primary index, which is considered first.
    double best_compare = best.cost;
    if (have_best && !request.order.empty() && !best.ordered) {
      best_compare += kSortFactor * best.rows * std::log2(std::max(2.0, best.rows));
    }
    if (!have_best || compare < best_compare) {
      path.spans = std::move(spans.spans);
      best = std::move(path);
      have_best = true;
    }
  };

  std::vector<const Probe*> simple;
  for (const Probe& search : searches) {
    if (search.kind != Probe::Kind::kOr) simple.push_back(&search);
  }
  std::vector<const Expr*> all_conditions;
  for (const ExprPtr& condition : conditions) all_conditions.push_back(condition.get());
  for (const catalog::IndexDescriptor& index : get.table->indexes) {
    if (!Usable(get, index, all_conditions)) continue;
    if (!index.primary && !s_.context.enable_index_scan) continue;
    Spans spans = SpansOf(*this, get, index, simple);
    bool bound =
        spans.equal_columns > 0 || spans.range || spans.exclude_null || !index.predicate.empty();
    bool strong = spans.equal_columns > 0;
    if (bound || index.primary || !request.order.empty() || Covers(get, index, needed)) {
      consider(index, std::move(spans));
    }
    if (have_best && best.unique_point && best.spans.size() == 1) break;  // nothing beats one key
    if (strong) continue;
    for (const Probe& search : searches) {
      if (search.kind != Probe::Kind::kOr) continue;
      Spans all;
      all.values = 0;
      all.single = false;
      bool every = true;
      size_t least_equal = SIZE_MAX;
      bool any_range = false;
      for (const std::vector<Probe>& arm : search.arms) {
        std::vector<const Probe*> list;
        for (const Probe& one : arm) list.push_back(&one);
        list.insert(list.end(), simple.begin(), simple.end());
        Spans part = SpansOf(*this, get, index, list);
        if (part.equal_columns == 0 && !part.range) every = false;
        if (!every) break;
        least_equal = std::min(least_equal, part.equal_columns);
        any_range = any_range || part.range;
        all.values += part.values;
        for (SpanExpr& span : part.spans) all.spans.push_back(std::move(span));
      }
      if (!every || all.spans.empty() || all.spans.size() > kMaxSpans) continue;
      all.equal_columns = least_equal;
      all.range = least_equal == 0 && any_range;
      all.both_bounds = false;
      consider(index, std::move(all));
    }
  }
  return best;
}

Result<Phys> Physical::BuildGet(LogicalGet& get, std::vector<ExprPtr> conditions,
                                const Request& request) {
  // IS NOT NULL of a column that cannot be NULL says nothing.
  conditions.erase(
      std::remove_if(conditions.begin(), conditions.end(),
                     [&](const ExprPtr& condition) {
                       if (condition->kind != ExprKind::kIsNotNull) return false;
                       const Expr& arg = *condition->args[0];
                       return arg.kind == ExprKind::kColumn && s_.column(arg.index).not_null &&
                              std::find(get.ids.begin(), get.ids.end(), arg.index) != get.ids.end();
                     }),
      conditions.end());
  AccessPath path = ChoosePath(get, conditions, request);
  NoteDistinct(get, TableRows(*get.table));
  if (path.index == nullptr) {
    return InternalError("table \"{}\" has no readable index", get.table->name);
  }
  return MakeScan(get, std::move(path), std::move(conditions), request);
}

Result<Phys> Physical::MakeScan(LogicalGet& get, AccessPath path, std::vector<ExprPtr> conditions,
                                const Request& request) {
  auto node = std::make_unique<ScanNode>();
  node->table = get.table;
  node->alias = get.alias;
  node->index = path.index->id;
  node->reverse = path.reverse;
  node->unique_point = path.unique_point;
  node->lock = get.lock;
  std::vector<ExprPtr> filter;
  for (size_t i = 0; i < conditions.size(); ++i) {
    if (!path.consumed[i]) filter.push_back(std::move(conditions[i]));
  }
  IdSet wanted = Expand(request.needed), filtered_by;
  for (const ExprPtr& condition : filter) AddIds(s_, *condition, &filtered_by);
  filtered_by = Expand(filtered_by);
  const bool filter_columns = get.row_ref < 0;
  if (!filter_columns) wanted.AddAll(filtered_by);
  Phys out;
  // In the order that the caller wants them, when that needs no more columns.
  bool direct = request.exact != nullptr && get.row_ref < 0 && !request.exact->empty();
  if (direct) {
    for (int id : *request.exact) {
      direct = direct && std::find(get.ids.begin(), get.ids.end(), id) != get.ids.end() &&
               std::count(request.exact->begin(), request.exact->end(), id) == 1;
    }
    IdSet exact;
    for (int id : *request.exact) exact.Add(id);
    for (int id : get.ids) direct = direct && (!wanted.Has(id) || exact.Has(id));
  }
  if (direct) {
    for (int id : *request.exact) {
      auto at = std::find(get.ids.begin(), get.ids.end(), id);
      node->columns.push_back(get.columns[static_cast<size_t>(at - get.ids.begin())]);
      out.cols.push_back(id);
    }
  } else {
    for (size_t i = 0; i < get.ids.size(); ++i) {
      if (!wanted.Has(get.ids[i])) continue;
      node->columns.push_back(get.columns[i]);
      out.cols.push_back(get.ids[i]);
    }
  }
  std::vector<int> filter_cols = out.cols;
  for (size_t i = 0; i < get.ids.size() && filter_columns; ++i) {
    const int id = get.ids[i];
    if (!filtered_by.Has(id) || std::count(out.cols.begin(), out.cols.end(), id) != 0) continue;
    node->filter_columns.push_back(get.columns[i]);
    node->filter_names.push_back(OutputOf(id).name);
    filter_cols.push_back(id);
  }
  if (get.row_ref >= 0) {
    node->with_row_ref = true;
    out.cols.push_back(get.row_ref);
  }
  for (SpanExpr& span : path.spans) {
    CELLAR_TRY(FinalizeAll(&span.equal, {}));
    if (span.lower.value != nullptr) CELLAR_TRY(Finalize(&span.lower.value, {}));
    if (span.upper.value != nullptr) CELLAR_TRY(Finalize(&span.upper.value, {}));
  }
  node->spans = std::move(path.spans);
  OrderByCost(&filter);
  bool subplan = !filter.empty() && HasSubplan(*filter.back());
  bool filtered = !filter.empty();
  CELLAR_TRY(FinalizeAll(&filter, filter_cols));
  node->filter = JoinConjuncts(std::move(filter));
  bool order_kept = request.order.empty() || path.ordered;
  if (request.limit != kUnlimited && order_kept && !filtered) {
    node->limit_hint = static_cast<uint64_t>(std::min(request.limit, 1e15));
  } else if (request.limit != kUnlimited && order_kept) {
    // Some rows will fail the filter.
    double guess = request.limit * std::max(1.0, path.scanned / std::max(1.0, path.rows));
    node->limit_hint = static_cast<uint64_t>(std::min(guess + 1, 1e15));
  }
  node->rows = path.rows;
  node->cost = path.cost + (subplan ? path.scanned * kSubplanCost : 0);
  out.at_most_one =
      path.unique_point && node->spans.size() == 1 && node->spans[0].array_position < 0;
  if (path.ordered) out.order = request.order;
  out.node = std::move(node);
  SetOutput(&out);
  return out;
}

std::optional<LookupPath> Physical::ChooseLookup(const LogicalGet& get, const IdSet& outer,
                                                 const std::vector<const Expr*>& candidates,
                                                 const IdSet& needed) const {
  Matcher matcher(s_, *this, get);
  double table_rows = TableRows(*get.table);
  std::optional<LookupPath> best;
  for (const catalog::IndexDescriptor& index : get.table->indexes) {
    if (!Usable(get, index, candidates)) continue;
    LookupPath path;
    path.index = &index;
    bool joined = false;
    double fraction = 1;
    for (const catalog::IndexColumn& key : index.key) {
      const int id = get.IdOfKey(key);
      if (id < 0) break;
      const Expr* value = nullptr;
      size_t used = 0;
      bool from_outer = false;
      for (size_t c = 0; c < candidates.size(); ++c) {
        const Expr& condition = *candidates[c];
        if (condition.kind != ExprKind::kCall || condition.args.size() != 2 ||
            condition.function->comparison != Comparison::kEqual) {
          continue;
        }
        for (size_t side = 0; side < 2; ++side) {
          if (matcher.ColumnOf(*condition.args[side]) != id) continue;
          const Expr& other = *condition.args[1 - side];
          if (!matcher.Usable(id, other)) continue;
          bool uses_outer = Expand(IdsOf(s_, other)).Intersects(outer);
          if (HasSubplan(other)) continue;
          if (value != nullptr && (from_outer || !uses_outer)) continue;
          value = &other;
          used = c;
          from_outer = uses_outer;
        }
      }
      if (value == nullptr) break;
      joined = joined || from_outer;
      path.keys.push_back(CloneExpr(*value));
      path.used.push_back(used);
      fraction /= DistinctValues(get, id, table_rows);
    }
    if (path.keys.empty() || !joined) continue;
    path.unique = index.unique && path.keys.size() == index.key.size();
    path.matches = path.unique ? 1 : std::max(1.0, table_rows * fraction);
    path.covering = Covers(get, index, needed);
    double per_row = index.primary ? RowScanCost(get, needed)
                                   : kIndexEntryCost + (path.covering ? 0 : kRowFetchCost);
    const bool all_shards = index.shards != 0 && path.keys.size() < index.key.size();
    path.cost = kSeekCost * (all_shards ? index.shards : 1) + path.matches * per_row;
    if (!best.has_value() || path.cost < best->cost) best = std::move(path);
  }
  return best;
}

}  // namespace cellar::sql::planning
