// SQL's special forms: ANY, IN, LIKE, BETWEEN, AND and OR, CASE, arrays, casts, CURRENT_DATE and
// kin.
#include <algorithm>

#include "cellar/sql/expr/array_slice.h"
#include "cellar/sql/plan/binder.h"
#include "cellar/types/array.h"

namespace cellar::sql::planning {

namespace {

bool IsUnknown(const Expr& expr) { return expr.type.id == TypeId::kUnknown && !expr.type.array; }

}  // namespace

Result<ExprPtr> Binder::BindAnyAll(const ast::AnyAllExpr& expr, Env& env) {
  CELLAR_TRY_ASSIGN(ExprPtr left, BindExpr(*expr.left, env));
  CELLAR_TRY_ASSIGN(ExprPtr right, BindExpr(*expr.right, env));
  std::string_view op = expr.op.name == "!=" ? std::string_view("<>") : expr.op.name;
  bool right_unknown = IsUnknown(*right);
  if (right_unknown) {
    // An untyped array literal or parameter: an array of the left side's type.
    if (IsUnknown(*left)) {
      CELLAR_TRY_ASSIGN(left, ResolveUnknown(std::move(left)));
    }
    Type element = left->type;
    Type array = ArrayOf(element);
    if (element.array) array = element;
    CELLAR_TRY_ASSIGN(right, Coerce(std::move(right), array, CastContext::kImplicit, -1));
  }
  Type element = ElementTypeOf(right->type);
  if (element.id == TypeId::kInvalid) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType,
                    "op ANY/ALL (array) requires array on "
                    "right side")
        .WithLocation(expr.location);
  }
  Type types[2] = {left->type, element};
  PLAN_TRY_ASSIGN_AT(ResolvedFunction resolved, ResolveOperator(op, types), expr.location);
  if (resolved.result.id != TypeId::kBool) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType,
                    "op ANY/ALL (array) requires operator to yield boolean")
        .WithLocation(expr.location);
  }
  CELLAR_TRY_ASSIGN(left,
                    Coerce(std::move(left), resolved.arg_types[0], CastContext::kImplicit, -1));
  if (!element.SameKind(resolved.arg_types[1])) {
    PLAN_TRY_ASSIGN_AT(const Type wanted, ArrayTypeFor(resolved.arg_types[1]), expr.location);
    // int2vector = ANY compares element-wise as it is; the cast of its elements is by array.
    CELLAR_TRY_ASSIGN(right, Coerce(std::move(right), wanted, CastContext::kImplicit, -1));
  }
  ExprPtr sides[2] = {std::move(left), std::move(right)};
  CollationSource source;
  Type result = resolved.result;
  PLAN_TRY_AT(Collate(&resolved.spec, sides, &result, &source), expr.location);
  left = std::move(sides[0]);
  right = std::move(sides[1]);
  auto out = std::make_unique<Expr>();
  out->kind = expr.all ? ExprKind::kAllArray : ExprKind::kAnyArray;
  out->type = MakeType(TypeId::kBool);
  out->function = resolved.spec;
  out->location = expr.location;
  out->args.push_back(std::move(left));
  out->args.push_back(std::move(right));
  return out;
}

Result<ExprPtr> Binder::BindDistinct(const ast::DistinctExpr& expr, Env& env) {
  CELLAR_TRY_ASSIGN(ExprPtr left, BindExpr(*expr.left, env));
  CELLAR_TRY_ASSIGN(ExprPtr right, BindExpr(*expr.right, env));
  return MakeDistinct(std::move(left), std::move(right), expr.negated, expr.location);
}

Result<ExprPtr> Binder::CoerceCompared(ExprPtr expr, Type to) {
  if (expr->type.SameKind(to)) return expr;
  return Coerce(std::move(expr), to, CastContext::kImplicit, -1);
}

Result<ExprPtr> Binder::MakeDistinct(ExprPtr left, ExprPtr right, bool negated, int location) {
  if (IsRowExpression(*left) && IsRowExpression(*right)) {
    if (left->args.size() != right->args.size()) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                      "unequal number of entries in row expressions")
          .WithLocation(location);
    }
    std::vector<ExprPtr> tests;
    for (size_t i = 0; i < left->args.size(); ++i) {
      CELLAR_TRY_ASSIGN(ExprPtr test, MakeDistinct(std::move(left->args[i]),
                                                   std::move(right->args[i]), negated, location));
      tests.push_back(std::move(test));
    }
    if (tests.empty()) return MakeBoolConstant(negated);
    return MakeLogic(negated ? ExprKind::kAnd : ExprKind::kOr, std::move(tests));
  }
  // The types that = would compare.
  Type types[2] = {left->type, right->type};
  PLAN_TRY_ASSIGN_AT(ResolvedFunction resolved, ResolveOperator("=", types), location);
  Type common = resolved.arg_types[0];
  if (!resolved.arg_types[0].SameKind(resolved.arg_types[1])) {
    PLAN_TRY_ASSIGN_AT(common, CommonType(resolved.arg_types, "IS DISTINCT FROM"), location);
  }
  common.modifier = -1;
  CELLAR_TRY_ASSIGN(left, CoerceCompared(std::move(left), common));
  CELLAR_TRY_ASSIGN(right, CoerceCompared(std::move(right), common));
  std::vector<ExprPtr> args;
  for (ExprPtr* side : {&left, &right}) {
    ExprPtr* other = side == &left ? &right : &left;
    if (IsConstant(**side) && (*side)->constant.is_null()) {
      args.push_back(std::move(*other));
      return MakeLogic(negated ? ExprKind::kIsNull : ExprKind::kIsNotNull, std::move(args));
    }
  }
  args.push_back(std::move(left));
  args.push_back(std::move(right));
  PLAN_TRY_AT(CollateEqually(args), location);
  ExprPtr out =
      MakeLogic(negated ? ExprKind::kIsNotDistinct : ExprKind::kIsDistinct, std::move(args));
  out->location = location;
  return out;
}

Result<ExprPtr> Binder::BindIn(const ast::InExpr& expr, Env& env) {
  CELLAR_TRY_ASSIGN(ExprPtr arg, BindExpr(*expr.arg, env));
  std::vector<ExprPtr> items;
  items.reserve(expr.list.size());
  bool rows = IsRowExpression(*arg);
  for (const ast::ExprPtr& item : expr.list) {
    CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(*item, env));
    items.push_back(std::move(bound));
  }
  std::string_view op = expr.negated ? "<>" : "=";
  if (!rows && items.size() > 1) {
    std::vector<Type> types{arg->type};
    for (const ExprPtr& item : items) types.push_back(item->type);
    // Items that already are the argument's type, or unknown, need no search for a common one.
    bool simple = !IsUnknown(*arg);
    for (const Type& type : types) {
      simple = simple && (type.SameKind(arg->type) || type.id == TypeId::kUnknown);
    }
    Result<Type> common = simple ? Result<Type>(arg->type) : CommonType(types, "IN");
    if (common.ok()) {
      Type target = *common;
      target.modifier = -1;
      // Integers of several widths compare without a cast of the column.
      if (EqualityOperator(target) != nullptr) {
        auto out = std::make_unique<Expr>();
        out->kind = expr.negated ? ExprKind::kNotInList : ExprKind::kInList;
        out->type = MakeType(TypeId::kBool);
        out->location = expr.location;
        CELLAR_TRY_ASSIGN(arg, CoerceCompared(std::move(arg), target));
        out->args.reserve(items.size() + 1);
        out->args.push_back(std::move(arg));
        for (ExprPtr& item : items) {
          CELLAR_TRY_ASSIGN(ExprPtr cast, CoerceCompared(std::move(item), target));
          out->args.push_back(std::move(cast));
        }
        PLAN_TRY_AT(CollateEqually(out->args), expr.location);
        return out;
      }
    }
  }
  std::vector<ExprPtr> tests;
  for (ExprPtr& item : items) {
    CELLAR_TRY_ASSIGN(ExprPtr test,
                      MakeOperator(op, CloneExpr(*arg), std::move(item), expr.location));
    tests.push_back(std::move(test));
  }
  if (tests.size() == 1) return std::move(tests[0]);
  return MakeLogic(expr.negated ? ExprKind::kAnd : ExprKind::kOr, std::move(tests));
}

Result<ExprPtr> Binder::BindLike(const ast::LikeExpr& expr, Env& env) {
  CELLAR_TRY_ASSIGN(ExprPtr arg, BindExpr(*expr.arg, env));
  CELLAR_TRY_ASSIGN(ExprPtr pattern, BindExpr(*expr.pattern, env));
  std::string_view op;
  switch (expr.like_kind) {
    case ast::LikeKind::kLike: op = expr.negated ? "!~~" : "~~"; break;
    case ast::LikeKind::kILike: op = expr.negated ? "!~~*" : "~~*"; break;
    case ast::LikeKind::kSimilar: op = expr.negated ? "!~" : "~"; break;
  }
  bool similar = expr.like_kind == ast::LikeKind::kSimilar;
  if (expr.escape != nullptr || similar) {
    std::vector<ExprPtr> args;
    CELLAR_TRY_ASSIGN(pattern, ResolveUnknown(std::move(pattern)));
    args.push_back(std::move(pattern));
    if (expr.escape != nullptr) {
      CELLAR_TRY_ASSIGN(ExprPtr escape, BindExpr(*expr.escape, env));
      CELLAR_TRY_ASSIGN(escape, ResolveUnknown(std::move(escape)));
      args.push_back(std::move(escape));
    }
    CELLAR_TRY_ASSIGN(pattern, CallFunction(similar ? "similar_to_escape" : "like_escape",
                                            std::move(args), expr.location));
  }
  return MakeOperator(op, std::move(arg), std::move(pattern), expr.location);
}

Result<ExprPtr> Binder::BindBetween(const ast::BetweenExpr& expr, Env& env) {
  CELLAR_TRY_ASSIGN(ExprPtr arg, BindExpr(*expr.arg, env));
  CELLAR_TRY_ASSIGN(ExprPtr low, BindExpr(*expr.low, env));
  CELLAR_TRY_ASSIGN(ExprPtr high, BindExpr(*expr.high, env));
  auto range = [&](const Expr& from, const Expr& to) -> Result<ExprPtr> {
    CELLAR_TRY_ASSIGN(ExprPtr above, MakeOperator(expr.negated ? "<" : ">=", CloneExpr(*arg),
                                                  CloneExpr(from), expr.location));
    CELLAR_TRY_ASSIGN(ExprPtr below, MakeOperator(expr.negated ? ">" : "<=", CloneExpr(*arg),
                                                  CloneExpr(to), expr.location));
    std::vector<ExprPtr> both;
    both.push_back(std::move(above));
    both.push_back(std::move(below));
    return MakeLogic(expr.negated ? ExprKind::kOr : ExprKind::kAnd, std::move(both));
  };
  CELLAR_TRY_ASSIGN(ExprPtr out, range(*low, *high));
  if (!expr.symmetric) return out;
  CELLAR_TRY_ASSIGN(ExprPtr swapped, range(*high, *low));
  std::vector<ExprPtr> either;
  either.push_back(std::move(out));
  either.push_back(std::move(swapped));
  return MakeLogic(expr.negated ? ExprKind::kAnd : ExprKind::kOr, std::move(either));
}

Result<ExprPtr> Binder::BindBool(const ast::BoolExpr& expr, Env& env) {
  if (expr.op == ast::BoolOp::kNot) {
    const ast::Expr& inner = *expr.args[0];
    // NOT IN (subquery) and NOT EXISTS keep their shape for the planner.
    if (inner.kind == ast::NodeKind::kSubLink) {
      return BindSubLink(inner.As<ast::SubLink>(), env, true);
    }
    CELLAR_TRY_ASSIGN(ExprPtr arg, BindCondition(inner, env, "NOT"));
    if (IsConstant(*arg)) {
      if (arg->constant.is_null()) return arg;
      return MakeBoolConstant(!arg->constant.datum().bool_value());
    }
    std::vector<ExprPtr> args;
    args.push_back(std::move(arg));
    return MakeLogic(ExprKind::kNot, std::move(args));
  }
  bool is_and = expr.op == ast::BoolOp::kAnd;
  std::vector<ExprPtr> args;
  bool decided = false;
  for (const ast::ExprPtr& item : expr.args) {
    CELLAR_TRY_ASSIGN(ExprPtr arg, BindCondition(*item, env, is_and ? "AND" : "OR"));
    if (IsConstant(*arg) && !arg->constant.is_null()) {
      if (arg->constant.datum().bool_value() != is_and) decided = true;
      continue;
    }
    args.push_back(std::move(arg));
  }
  if (decided) return MakeBoolConstant(!is_and);
  if (args.empty()) return MakeBoolConstant(is_and);
  if (args.size() == 1) return std::move(args[0]);
  return MakeLogic(is_and ? ExprKind::kAnd : ExprKind::kOr, std::move(args));
}

size_t Binder::SetsOf(const Env& env) {
  return env.scope->block == nullptr ? 0 : env.scope->block->set_functions.size();
}

Status Binder::RefuseSets(const Env& env, size_t before, std::string_view what, int location) {
  if (SetsOf(env) == before) return Status();
  return UnsupportedError("set-returning functions are not allowed in {}", what)
      .WithHint("You might be able to move the set-returning function into a LATERAL FROM item.")
      .WithLocation(location);
}

Result<ExprPtr> Binder::BindCase(const ast::CaseExpr& expr, Env& env) {
  const size_t sets = SetsOf(env);
  auto out = std::make_unique<Expr>();
  out->kind = ExprKind::kCase;
  out->location = expr.location;
  ExprPtr subject;
  if (expr.arg != nullptr) {
    CELLAR_TRY_ASSIGN(subject, BindExpr(*expr.arg, env));
    CELLAR_TRY_ASSIGN(subject, ResolveUnknown(std::move(subject)));
  }
  for (const ast::CaseExpr::When& when : expr.whens) {
    ExprPtr condition;
    if (subject != nullptr) {
      CELLAR_TRY_ASSIGN(ExprPtr value, BindExpr(*when.condition, env));
      CELLAR_TRY_ASSIGN(condition,
                        MakeOperator("=", CloneExpr(*subject), std::move(value), when.location));
    } else {
      CELLAR_TRY_ASSIGN(condition, BindCondition(*when.condition, env, "CASE/WHEN"));
    }
    CELLAR_TRY_ASSIGN(ExprPtr result, BindExpr(*when.result, env));
    out->args.push_back(std::move(condition));
    out->args.push_back(std::move(result));
  }
  if (expr.default_result != nullptr) {
    CELLAR_TRY_ASSIGN(ExprPtr value, BindExpr(*expr.default_result, env));
    out->args.push_back(std::move(value));
  } else {
    out->args.push_back(MakeNull(MakeType(TypeId::kUnknown)));
  }
  CELLAR_TRY(RefuseSets(env, sets, "CASE", expr.location));
  std::vector<ExprPtr*> arms;
  // PostgreSQL looks at the ELSE first when it seeks the common type.
  arms.push_back(&out->args.back());
  for (size_t i = 1; i < out->args.size(); i += 2) arms.push_back(&out->args[i]);
  CELLAR_TRY(CoerceCommon(arms, "CASE", expr.location, &out->type));
  return out;
}

Result<ExprPtr> Binder::BindMinMax(ExprKind kind, const ast::ExprList& args, std::string_view name,
                                   Env& env, int location) {
  auto out = std::make_unique<Expr>();
  out->kind = kind;
  out->location = location;
  const size_t sets = SetsOf(env);
  for (const ast::ExprPtr& arg : args) {
    CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(*arg, env));
    out->args.push_back(std::move(bound));
  }
  if (kind == ExprKind::kCoalesce) CELLAR_TRY(RefuseSets(env, sets, name, location));
  std::vector<ExprPtr*> arms;
  for (ExprPtr& arg : out->args) arms.push_back(&arg);
  CELLAR_TRY(CoerceCommon(arms, name, location, &out->type));
  // What the others name still counts: it may not be allowed here.
  const bool constant = std::all_of(out->args.begin(), out->args.end(),
                                    [](const ExprPtr& arg) { return IsConstant(*arg); });
  if (kind == ExprKind::kCoalesce && constant && !out->args[0]->constant.is_null()) {
    return std::move(out->args[0]);
  }
  return out;
}

Result<ExprPtr> Binder::BindArray(const ast::ArrayExpr& array, Env& env, Type wanted) {
  auto out = std::make_unique<Expr>();
  out->kind = ExprKind::kArray;
  out->location = array.location;
  if (array.elements.empty()) {
    if (wanted.id == TypeId::kInvalid) {
      return SqlError(Code::kInvalid, sqlstate::kIndeterminateDatatype,
                      "cannot determine type of empty array")
          .WithHint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
          .WithLocation(array.location);
    }
    out->type = wanted;
    return out;
  }
  // With one array among them, all elements are arrays: parts of one of more dimensions.
  bool nested = false;
  for (const ast::ExprPtr& element : array.elements) {
    ExprPtr bound;
    if (element->kind == ast::NodeKind::kArray) {
      CELLAR_TRY_ASSIGN(bound, BindArray(element->As<ast::ArrayExpr>(), env, wanted));
    } else {
      CELLAR_TRY_ASSIGN(bound, BindExpr(*element, env));
    }
    nested = nested || bound->type.array;
    out->args.push_back(std::move(bound));
  }
  if (wanted.id != TypeId::kInvalid) {
    const Type item = nested ? wanted : ElementTypeOf(wanted);
    for (ExprPtr& arg : out->args) {
      CELLAR_TRY_ASSIGN(arg, Coerce(std::move(arg), item, CastContext::kExplicit, -1));
    }
  }
  std::vector<ExprPtr*> items;
  for (ExprPtr& arg : out->args) items.push_back(&arg);
  Type common;
  CELLAR_TRY(CoerceCommon(items, "ARRAY", array.location, &common));
  if (common.id == TypeId::kUnknown) {
    common = MakeType(TypeId::kText);
    for (ExprPtr& arg : out->args) {
      CELLAR_TRY_ASSIGN(arg, ResolveUnknown(std::move(arg)));
    }
  }
  if (nested) {
    out->type = common;
  } else {
    PLAN_TRY_ASSIGN_AT(out->type, ArrayTypeFor(common), array.location);
  }
  if (HidesBlanks(common)) out->type.modifier = common.modifier;
  return Fold(std::move(out));
}

Result<ExprPtr> Binder::BindIndirection(const ast::IndirectionExpr& expr, size_t steps, Env& env) {
  CELLAR_TRY_ASSIGN(ExprPtr value, BindExpr(*expr.arg, env));
  auto subscript = [&](const ast::Expr& given) -> Result<ExprPtr> {
    CELLAR_TRY_ASSIGN(ExprPtr index, BindExpr(given, env));
    const Type wanted = MakeType(TypeId::kInt4);
    if (!IsUnknown(*index) && !CanCast(index->type, wanted, CastContext::kAssignment)) {
      return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                      "array subscript must have type integer")
          .WithLocation(ExprLocation(given));
    }
    return Coerce(std::move(index), wanted, CastContext::kAssignment, -1);
  };
  for (size_t i = 0; i < steps; ++i) {
    const ast::IndirectionStep& step = expr.steps[i];
    switch (step.step_kind) {
      case ast::IndirectionStep::Kind::kField: {
        CELLAR_TRY_ASSIGN(value, FieldOf(std::move(value), step.field, expr.location));
        break;
      }
      case ast::IndirectionStep::Kind::kSubscript:
      case ast::IndirectionStep::Kind::kSlice: {
        // A name is an array of "char" to PostgreSQL, from 0.
        const bool of_name = value->type.id == TypeId::kName && !value->type.array;
        Type element = of_name ? MakeType(TypeId::kChar) : ElementTypeOf(value->type);
        if (element.id == TypeId::kInvalid) {
          return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                          "cannot subscript type {} because it does not support subscripting",
                          FormatType(value->type))
              .WithLocation(expr.location);
        }
        // With one slice among them, all subscripts of a run are slices: a[2] is a[1:2].
        size_t run = i;
        bool sliced = false;
        for (; run < steps; ++run) {
          const ast::IndirectionStep::Kind kind = expr.steps[run].step_kind;
          sliced = sliced || kind == ast::IndirectionStep::Kind::kSlice;
          if (kind != ast::IndirectionStep::Kind::kSubscript &&
              kind != ast::IndirectionStep::Kind::kSlice) {
            break;
          }
        }
        if (sliced) {
          if (!value->type.array) {
            return UnsupportedError("slices of type {} are not supported", FormatType(value->type))
                .WithLocation(expr.location);
          }
          const Type type = value->type;
          std::vector<ExprPtr> args;
          args.push_back(std::move(value));
          auto bound = [&](const ast::Expr* given, int64_t instead) -> Status {
            if (given == nullptr) {
              args.push_back(MakeConstant(Value(MakeType(TypeId::kInt8), Datum::Int(instead))));
              return Status();
            }
            CELLAR_TRY_ASSIGN(args.emplace_back(), subscript(*given));
            return Status();
          };
          for (; i < run; ++i) {
            const ast::IndirectionStep& one = expr.steps[i];
            const bool slice = one.step_kind == ast::IndirectionStep::Kind::kSlice;
            CELLAR_TRY(bound(one.lower.get(), slice ? kNoLowerBound : 1));
            CELLAR_TRY(bound(one.upper.get(), kNoUpperBound));
          }
          --i;
          value = MakeCall(&ArraySliceFunction(), type, std::move(args));
          value->location = expr.location;
          value = Fold(std::move(value));
          break;
        }
        auto out = std::make_unique<Expr>();
        out->kind = ExprKind::kSubscript;
        out->type = element;
        out->location = expr.location;
        out->args.push_back(std::move(value));
        // a[1][2] is one access of a two-dimensional array.
        while (true) {
          CELLAR_TRY_ASSIGN(out->args.emplace_back(), subscript(*expr.steps[i].upper));
          if (i + 1 >= steps ||
              expr.steps[i + 1].step_kind != ast::IndirectionStep::Kind::kSubscript) {
            break;
          }
          ++i;
        }
        value = Fold(std::move(out));
        break;
      }
      case ast::IndirectionStep::Kind::kStar:
        return UnsupportedError("row expansion via \"*\" is not supported here")
            .WithLocation(expr.location);
    }
  }
  return value;
}

Result<const Collation*> Binder::CollationNamed(const ast::QualifiedName& name) const {
  for (const Collation* own : own_collations_) {
    if (!own->built_in && own->name == name.name) return own;
  }
  return ResolveCollation(name, s_.context.catalog.get(), s_.context.scope);
}

Result<Type> Binder::TypeNamed(const ast::TypeName& name) const {
  // A stored expression means the types of its table, wherever they are now.
  for (Type type : own_types_) {
    const EnumType& own = *type.enumeration;
    if (own.name != name.name.name || !name.typmods.empty()) continue;
    return MakeEnum(&own, !name.array_bounds.empty());
  }
  return ResolveTypeName(name, nullptr, s_.context.catalog.get(), s_.context.scope);
}

Result<ExprPtr> Binder::BindTypeCast(const ast::TypeCast& cast, Env& env) {
  CELLAR_TRY_ASSIGN(Type type, TypeNamed(cast.type));
  ExprPtr arg;
  if (cast.arg->kind == ast::NodeKind::kArray && type.array) {
    Type bare = type;
    bare.modifier = -1;
    CELLAR_TRY_ASSIGN(arg, BindArray(cast.arg->As<ast::ArrayExpr>(), env, bare));
  } else {
    CELLAR_TRY_ASSIGN(arg, BindExpr(*cast.arg, env));
  }
  int location = cast.location >= 0 ? cast.location : ExprLocation(*cast.arg);
  if (IsUnknown(*arg) && IsConstant(*arg)) location = ExprLocation(*cast.arg);
  if (arg->kind == ExprKind::kRow && type.id != TypeId::kRecord) {
    // Only text has a cast from any row.
    CELLAR_TRY_ASSIGN(arg, ResolveUnknown(std::move(arg)));
  }
  return Coerce(std::move(arg), type, CastContext::kExplicit, location);
}

Result<ExprPtr> Binder::BindValueFunction(const ast::SqlValueFunction& function, Env& env) {
  auto now_as = [&](TypeId id) -> Result<ExprPtr> {
    CELLAR_TRY_ASSIGN(ExprPtr now, CallFunction("now", {}, function.location));
    Type type = MakeType(id, function.precision >= 0 ? std::min(function.precision, 6) : -1);
    return Coerce(std::move(now), type, CastContext::kExplicit, function.location);
  };
  switch (function.function) {
    case ast::SqlValueKind::kCurrentDate: return now_as(TypeId::kDate);
    case ast::SqlValueKind::kCurrentTime: return now_as(TypeId::kTimetz);
    case ast::SqlValueKind::kCurrentTimestamp: return now_as(TypeId::kTimestamptz);
    case ast::SqlValueKind::kLocalTime: return now_as(TypeId::kTime);
    case ast::SqlValueKind::kLocalTimestamp: return now_as(TypeId::kTimestamp);
    case ast::SqlValueKind::kCurrentRole:
    case ast::SqlValueKind::kCurrentUser:
    case ast::SqlValueKind::kUser: return CallFunction("current_user", {}, function.location);
    case ast::SqlValueKind::kSessionUser:
      return CallFunction("session_user", {}, function.location);
    case ast::SqlValueKind::kCurrentCatalog:
      return CallFunction("current_database", {}, function.location);
    case ast::SqlValueKind::kCurrentSchema:
      return CallFunction("current_schema", {}, function.location);
  }
  return InternalError("unknown SQL value function");
}

}  // namespace cellar::sql::planning
