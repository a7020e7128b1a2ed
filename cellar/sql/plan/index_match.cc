// What indexes on expressions and partial indexes say of a query: which of its expressions an index
// holds, and whether its conditions leave only rows that the index has.
#include <algorithm>
#include <utility>

#include "cellar/sql/expr/collate.h"
#include "cellar/sql/plan/binder.h"
#include "cellar/sql/plan/index_expressions.h"
#include "cellar/sql/plan/operator_classes.h"
#include "cellar/sql/plan/physical.h"
#include "cellar/types/array.h"

namespace cellar::sql::planning {

namespace {

using Comparison = FunctionSpec::Comparison;

bool IsMutable(const Expr& expr) {
  if (expr.function != nullptr && expr.function->volatility != Volatility::kImmutable) return true;
  return std::any_of(expr.args.begin(), expr.args.end(),
                     [](const ExprPtr& arg) { return IsMutable(*arg); });
}

// A comparison of something with a constant that is not NULL.
struct Compared {
  const Expr* subject = nullptr;
  Comparison comparison = Comparison::kNone;
  const Expr* constant = nullptr;
};

Comparison Mirrored(Comparison comparison) {
  switch (comparison) {
    case Comparison::kLess: return Comparison::kGreater;
    case Comparison::kLessEqual: return Comparison::kGreaterEqual;
    case Comparison::kGreater: return Comparison::kLess;
    case Comparison::kGreaterEqual: return Comparison::kLessEqual;
    default: return comparison;
  }
}

std::optional<Compared> ComparedOf(const Expr& expr) {
  if (expr.kind != ExprKind::kCall || expr.args.size() != 2 ||
      expr.function->comparison == Comparison::kNone) {
    return std::nullopt;
  }
  const Expr &left = *expr.args[0], &right = *expr.args[1];
  if (left.type.collation != nullptr || right.type.collation != nullptr) return std::nullopt;
  Compared out{&left, expr.function->comparison, &right};
  if (left.kind == ExprKind::kConstant) {
    out = {&right, Mirrored(expr.function->comparison), &left};
  }
  if (out.constant->kind != ExprKind::kConstant || out.constant->constant.is_null()) {
    return std::nullopt;
  }
  return out;
}

bool SameSubject(const Expr& a, const Expr& b) {
  return ExprEquals(StripRelabel(a), StripRelabel(b));
}

// Values of both types order as CompareDatums says of either.
bool Comparable(Type a, Type b) {
  if (a.SameKind(b)) return true;
  if (a.array || b.array) return false;
  const auto textual = [](Type type) {
    return type.id == TypeId::kText || type.id == TypeId::kVarchar;
  };
  return (IsInteger(a) && IsInteger(b)) || (textual(a) && textual(b));
}

// Whether x `op` bound follows from x `known` value.
bool Follows(Comparison known, Datum value, Comparison op, Datum bound, Type type) {
  const int order = CompareDatums(value, bound, type);
  switch (known) {
    case Comparison::kEqual:
      switch (op) {
        case Comparison::kEqual: return order == 0;
        case Comparison::kNotEqual: return order != 0;
        case Comparison::kLess: return order < 0;
        case Comparison::kLessEqual: return order <= 0;
        case Comparison::kGreater: return order > 0;
        case Comparison::kGreaterEqual: return order >= 0;
        case Comparison::kNone: return false;
      }
      return false;
    case Comparison::kLess:
      return (op == Comparison::kLess || op == Comparison::kLessEqual ||
              op == Comparison::kNotEqual) &&
             order <= 0;
    case Comparison::kLessEqual:
      return (op == Comparison::kLessEqual && order <= 0) ||
             ((op == Comparison::kLess || op == Comparison::kNotEqual) && order < 0);
    case Comparison::kGreater:
      return (op == Comparison::kGreater || op == Comparison::kGreaterEqual ||
              op == Comparison::kNotEqual) &&
             order >= 0;
    case Comparison::kGreaterEqual:
      return (op == Comparison::kGreaterEqual && order >= 0) ||
             ((op == Comparison::kGreater || op == Comparison::kNotEqual) && order > 0);
    case Comparison::kNotEqual: return op == Comparison::kNotEqual && order == 0;
    case Comparison::kNone: return false;
  }
  return false;
}

// The values of x IN (...) and x = ANY ('{...}'), when all are constants; NULLs among them match
// nothing and are left out.
struct Listed {
  const Expr* subject = nullptr;
  Type type;
  std::vector<Datum> values;
};

std::optional<Listed> ListedOf(const Expr& expr) {
  Listed out;
  if (!expr.args.empty() && expr.args[0]->type.collation != nullptr) return std::nullopt;
  if (expr.kind == ExprKind::kInList) {
    out.subject = expr.args[0].get();
    out.type = expr.args[1]->type;
    for (size_t i = 1; i < expr.args.size(); ++i) {
      const Expr& item = *expr.args[i];
      if (item.kind != ExprKind::kConstant || !Comparable(item.type, out.type)) return std::nullopt;
      if (!item.constant.is_null()) out.values.push_back(item.constant.datum());
    }
    return out;
  }
  if (expr.kind != ExprKind::kAnyArray || expr.function->comparison != Comparison::kEqual ||
      expr.args[1]->kind != ExprKind::kConstant || expr.args[1]->constant.is_null()) {
    return std::nullopt;
  }
  out.subject = expr.args[0].get();
  out.type = ElementTypeOf(expr.args[1]->type);
  const ArrayView view(expr.args[1]->constant.datum().bytes(), out.type);
  for (size_t i = 0; i < view.size(); ++i) {
    if (!view.IsNull(i)) out.values.push_back(view.Get(i));
  }
  return out;
}

// What `x`, `NOT x`, `x IS TRUE` and `x = true` say of a boolean when they are true.
struct Flag {
  const Expr* subject = nullptr;
  bool value = false;
};

std::optional<Flag> FlagOf(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kNot:
    case ExprKind::kIsFalse: return Flag{expr.args[0].get(), false};
    case ExprKind::kIsTrue: return Flag{expr.args[0].get(), true};
    case ExprKind::kCall:
      if (std::optional<Compared> compared = ComparedOf(expr);
          compared.has_value() && compared->constant->type.id == TypeId::kBool) {
        const bool value = compared->constant->constant.datum().bool_value();
        if (compared->comparison == Comparison::kEqual) return Flag{compared->subject, value};
        if (compared->comparison == Comparison::kNotEqual) return Flag{compared->subject, !value};
      }
      break;
    default: break;
  }
  if (expr.type.id != TypeId::kBool || expr.type.array) return std::nullopt;
  return Flag{&expr, true};
}

// Does a true `condition` say that `x` is not NULL?
bool SaysNotNull(const Expr& condition, const Expr& x) {
  const Expr& subject = StripRelabel(x);
  if (subject.kind == ExprKind::kColumn) {
    IdSet ids;
    ids.Add(subject.index);
    return RejectsNulls(condition, ids);
  }
  switch (condition.kind) {
    case ExprKind::kCall:
      return condition.function->strict &&
             std::any_of(condition.args.begin(), condition.args.end(),
                         [&](const ExprPtr& arg) { return SameSubject(*arg, x); });
    case ExprKind::kInList:
    case ExprKind::kAnyArray:
    case ExprKind::kIsNotNull: return SameSubject(*condition.args[0], x);
    default: return false;
  }
}

bool ImpliesOne(const Expr& condition, const Expr& wanted);

// One condition that says `subject` is `value`.
bool ValueImplies(const Expr& subject, Type type, Datum value, const Expr& wanted) {
  if (std::optional<Compared> compared = ComparedOf(wanted); compared.has_value()) {
    return SameSubject(subject, *compared->subject) && Comparable(type, compared->constant->type) &&
           Follows(Comparison::kEqual, value, compared->comparison,
                   compared->constant->constant.datum(), type);
  }
  if (std::optional<Listed> listed = ListedOf(wanted); listed.has_value()) {
    return SameSubject(subject, *listed->subject) && Comparable(type, listed->type) &&
           std::any_of(listed->values.begin(), listed->values.end(),
                       [&](Datum item) { return CompareDatums(value, item, type) == 0; });
  }
  if (wanted.kind == ExprKind::kNotInList && wanted.args[0]->type.collation == nullptr &&
      SameSubject(subject, *wanted.args[0])) {
    return std::all_of(wanted.args.begin() + 1, wanted.args.end(), [&](const ExprPtr& item) {
      return item->kind == ExprKind::kConstant && !item->constant.is_null() &&
             Comparable(type, item->type) &&
             CompareDatums(value, item->constant.datum(), type) != 0;
    });
  }
  return false;
}

// Is `wanted` true of every row of which `condition` is true?
bool ImpliesOne(const Expr& condition, const Expr& wanted) {
  if (ExprEquals(condition, wanted)) return true;
  if (wanted.kind == ExprKind::kAnd) {
    return std::all_of(wanted.args.begin(), wanted.args.end(),
                       [&](const ExprPtr& arg) { return ImpliesOne(condition, *arg); });
  }
  if (condition.kind == ExprKind::kOr) {
    return std::all_of(condition.args.begin(), condition.args.end(),
                       [&](const ExprPtr& arg) { return ImpliesOne(*arg, wanted); });
  }
  if (condition.kind == ExprKind::kAnd) {
    if (std::any_of(condition.args.begin(), condition.args.end(),
                    [&](const ExprPtr& arg) { return ImpliesOne(*arg, wanted); })) {
      return true;
    }
  }
  if (wanted.kind == ExprKind::kOr) {
    if (std::any_of(wanted.args.begin(), wanted.args.end(),
                    [&](const ExprPtr& arg) { return ImpliesOne(condition, *arg); })) {
      return true;
    }
  }
  if (wanted.kind == ExprKind::kIsNotNull && SaysNotNull(condition, *wanted.args[0])) return true;
  if (std::optional<Listed> listed = ListedOf(condition); listed.has_value()) {
    return std::all_of(listed->values.begin(), listed->values.end(), [&](Datum value) {
      return ValueImplies(*listed->subject, listed->type, value, wanted);
    });
  }
  if (std::optional<Compared> known = ComparedOf(condition); known.has_value()) {
    const Datum value = known->constant->constant.datum();
    const Type type = known->constant->type;
    if (known->comparison == Comparison::kEqual &&
        ValueImplies(*known->subject, type, value, wanted)) {
      return true;
    }
    if (std::optional<Compared> bound = ComparedOf(wanted);
        bound.has_value() && SameSubject(*known->subject, *bound->subject) &&
        Comparable(type, bound->constant->type) &&
        Follows(known->comparison, value, bound->comparison, bound->constant->constant.datum(),
                type)) {
      return true;
    }
  }
  const std::optional<Flag> said = FlagOf(condition), asked = FlagOf(wanted);
  return said.has_value() && asked.has_value() && said->value == asked->value &&
         SameSubject(*said->subject, *asked->subject) &&
         // A bare condition is itself; it was compared above.
         (said->subject != &condition || asked->subject != &wanted);
}

}  // namespace

bool Implies(const std::vector<const Expr*>& conditions, const Expr& wanted) {
  if (wanted.kind == ExprKind::kAnd) {
    return std::all_of(wanted.args.begin(), wanted.args.end(),
                       [&](const ExprPtr& arg) { return Implies(conditions, *arg); });
  }
  if (IsConstant(wanted)) return IsTrueConstant(wanted);
  return std::any_of(conditions.begin(), conditions.end(),
                     [&](const Expr* condition) { return ImpliesOne(*condition, wanted); });
}

// ---- Binding ----

Result<ExprPtr> Binder::BindIndexPart(const ast::Expr& expression,
                                      const catalog::TableDescriptor& table, Place place) {
  // What a text means must not hang on who asks: literals are read with no session's settings.
  EvalContext neutral;
  Arena arena;
  neutral.set_arena(&arena);
  EvalContext* const session = std::exchange(s_.context.fold, &neutral);
  Result<ExprPtr> result = BindTableExpression(expression, &table, Type(), place);
  s_.context.fold = session;
  CELLAR_TRY_ASSIGN(ExprPtr bound, std::move(result));
  if (IsMutable(*bound)) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidObjectDefinition,
                    "functions in index {} must be marked IMMUTABLE",
                    place == Place::kIndexPredicate ? "predicate" : "expression");
  }
  VisitExprMutable(bound.get(), [](Expr* expr) { expr->location = -1; });
  return bound;
}

Status Binder::BindIndexes(LogicalGet* get) {
  const catalog::TableDescriptor& table = *get->table;
  const auto bind = [&](const std::string& sql, Place place) -> Result<ExprPtr> {
    CELLAR_TRY_ASSIGN(ast::ExprPtr parsed, ParseExpression(sql));
    CELLAR_TRY_ASSIGN(ExprPtr bound, BindIndexPart(*parsed, table, place));
    VisitExprMutable(bound.get(), [&](Expr* expr) {
      if (expr->kind == ExprKind::kColumn) {
        expr->index = get->ids[static_cast<size_t>(expr->index)];
      }
    });
    return bound;
  };
  for (const catalog::IndexDescriptor& index : table.indexes) {
    if (index.state != catalog::IndexState::kPublic) continue;
    for (const catalog::IndexColumn& key : index.key) {
      if (key.expression.empty()) continue;
      CELLAR_TRY_ASSIGN(ExprPtr bound, bind(key.expression, Place::kIndexExpression));
      if (get->ExpressionOf(*bound) >= 0) {
        get->index_expressions.push_back({key.expression, get->ExpressionOf(*bound), nullptr});
        continue;
      }
      ColumnInfo info;
      info.name = key.expression;
      info.qualifier = get->alias;
      info.type = bound->type;
      get->index_expressions.push_back(
          {key.expression, s_.AddColumn(std::move(info)), std::move(bound)});
    }
    if (index.predicate.empty()) continue;
    CELLAR_TRY_ASSIGN(ExprPtr bound, bind(index.predicate, Place::kIndexPredicate));
    get->index_predicates.emplace_back(index.id, std::move(bound));
  }
  return Status();
}

std::vector<catalog::IndexId> Binder::ArbitersOf(const catalog::TableDescriptor& table,
                                                 const std::vector<ArbiterPart>& parts,
                                                 const Expr* where) {
  const auto bound = [&](const std::string& sql, Place place) -> ExprPtr {
    Result<ast::ExprPtr> parsed = ParseExpression(sql);
    if (!parsed.ok()) return nullptr;
    Result<ExprPtr> made = BindIndexPart(**parsed, table, place);
    return made.ok() ? std::move(*made) : nullptr;
  };
  const auto same_thing = [](const ArbiterPart& part, const catalog::IndexColumn& key,
                             const ExprPtr& own) {
    if (part.expression == nullptr) return key.expression.empty() && part.column == key.column;
    return own != nullptr && ExprEquals(*part.expression, *own);
  };
  const auto same_order = [](const ArbiterPart& part, const catalog::IndexColumn& key, Type type) {
    if (part.collation) {
      if (!IsCollatable(type)) return false;
      const Collation* of_key = key.collation != nullptr ? key.collation : type.collation;
      if (of_key == catalog::ByBytes()) of_key = nullptr;
      if (*part.collation != of_key) return false;
    }
    return part.opclass.empty() || IsOperatorClass(part.opclass, key.opclass, type);
  };
  const auto matches = [&](const catalog::IndexDescriptor& index) {
    if (index.state != catalog::IndexState::kPublic || !index.unique) return false;
    // As sets: each part of the key is asked for, and each thing asked for is in the key.
    std::vector<uint8_t> seen(parts.size(), 0);
    for (const catalog::IndexColumn& key : index.key) {
      ExprPtr own;
      if (!key.expression.empty()) own = bound(key.expression, Place::kIndexExpression);
      const catalog::ColumnDescriptor* column = table.FindColumn(key.column);
      const Type type = own != nullptr ? own->type : column != nullptr ? column->type : Type();
      bool asked = false;
      for (size_t i = 0; i < parts.size(); ++i) {
        if (!same_thing(parts[i], key, own)) continue;
        asked = true;
        if (same_order(parts[i], key, type)) seen[i] = 1;
      }
      if (!asked) return false;
    }
    if (std::find(seen.begin(), seen.end(), 0) != seen.end()) return false;
    if (index.predicate.empty()) return true;
    if (where == nullptr) return false;
    const ExprPtr predicate = bound(index.predicate, Place::kIndexPredicate);
    std::vector<ExprPtr> conjuncts;
    SplitConjuncts(CloneExpr(*where), &conjuncts);
    std::vector<const Expr*> conditions;
    for (const ExprPtr& one : conjuncts) conditions.push_back(one.get());
    return predicate != nullptr && Implies(conditions, *predicate);
  };
  std::vector<catalog::IndexId> arbiters;
  for (const catalog::IndexDescriptor& index : table.indexes) {
    if (matches(index)) arbiters.push_back(index.id);
  }
  return arbiters;
}

// ---- Of a table in a query ----

int LogicalGet::ExpressionOf(const Expr& expr) const {
  for (const IndexExpression& known : index_expressions) {
    if (known.expr != nullptr && ExprEquals(*known.expr, expr)) return known.id;
  }
  return -1;
}

int LogicalGet::IdOfKey(const catalog::IndexColumn& key) const {
  if (key.expression.empty()) {
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i] == key.column) return ids[i];
    }
    return -1;
  }
  for (const IndexExpression& known : index_expressions) {
    if (known.sql == key.expression) return known.id;
  }
  return -1;
}

const Expr* LogicalGet::PredicateOf(const catalog::IndexDescriptor& index) const {
  for (const auto& [id, predicate] : index_predicates) {
    if (id == index.id) return predicate.get();
  }
  return nullptr;
}

const Collation* Physical::CollationOf(const LogicalGet& get,
                                       const catalog::IndexColumn& key) const {
  if (key.collation != nullptr) {
    return key.collation == catalog::ByBytes() ? nullptr : key.collation;
  }
  const int id = get.IdOfKey(key);
  return id < 0 ? nullptr : s_.column(id).type.collation;
}

bool Physical::Usable(const LogicalGet& get, const catalog::IndexDescriptor& index,
                      const std::vector<const Expr*>& conditions) const {
  if (index.state != catalog::IndexState::kPublic) return false;
  if (index.predicate.empty()) return true;
  const Expr* predicate = get.PredicateOf(index);
  if (predicate == nullptr) return false;
  // IS NOT NULL of a column that never is NULL was dropped from the conditions.
  std::vector<const Expr*> wanted;
  if (predicate->kind == ExprKind::kAnd) {
    for (const ExprPtr& arg : predicate->args) wanted.push_back(arg.get());
  } else {
    wanted.push_back(predicate);
  }
  return std::all_of(wanted.begin(), wanted.end(), [&](const Expr* part) {
    if (part->kind == ExprKind::kIsNotNull && part->args[0]->kind == ExprKind::kColumn &&
        s_.column(part->args[0]->index).not_null) {
      return true;
    }
    return Implies(conditions, *part);
  });
}

// The id that an index knows it by.
int Physical::IndexedId(const LogicalGet& get, int id) const {
  ExprPtr expr = s_.ColumnExpr(id);
  SubstituteVirtual(&expr);
  // Under which collation is asked apart from this (CollationOf).
  if (IsCollate(*expr) && expr->args[0]->kind == ExprKind::kColumn) return expr->args[0]->index;
  if (get.index_expressions.empty()) return id;
  const int known = get.ExpressionOf(*expr);
  return known >= 0 ? known : id;
}

}  // namespace cellar::sql::planning

namespace cellar::sql {

std::string IndexExpressionName(const ast::Node& expression) {
  std::string name = planning::OutputName(static_cast<const ast::Expr&>(expression));
  return name == "?column?" ? "expr" : name;
}

Result<ExprPtr> BindIndexExpression(const ast::Node& expression,
                                    const catalog::TableDescriptor& table, IndexPart part,
                                    PlannerContext& context) {
  planning::Statement statement(context);
  planning::Binder binder(statement);
  return binder.BindIndexPart(static_cast<const ast::Expr&>(expression), table,
                              part == IndexPart::kPredicate ? planning::Place::kIndexPredicate
                                                            : planning::Place::kIndexExpression);
}

}  // namespace cellar::sql
