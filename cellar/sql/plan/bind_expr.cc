// Expressions: constants, parameters, operators, coercion and folding.
#include <algorithm>
#include <charconv>
#include <cstddef>

#include "cellar/sql/expr/record_field.h"
#include "cellar/sql/plan/binder.h"
#include "cellar/types/array.h"

namespace cellar::sql::planning {

namespace {

// Bound expressions nest, and walks over them recurse.
constexpr size_t kMaxChainLinks = 4000;
// Connections have threads of 2 MiB.
constexpr std::ptrdiff_t kMaxStackBytes = 1 << 20;

bool IsUnknown(const Expr& expr) { return expr.type.id == TypeId::kUnknown && !expr.type.array; }

ExprPtr UnknownLiteral(std::string_view text, int location) {
  ExprPtr out = MakeConstant(Value(MakeType(TypeId::kUnknown), Datum::Bytes(text)));
  out->location = location;
  return out;
}

}  // namespace

std::string_view PlaceName(Place place) {
  switch (place) {
    case Place::kSelect: return "SELECT";
    case Place::kWhere: return "WHERE";
    case Place::kJoinOn: return "JOIN conditions";
    case Place::kGroupBy: return "GROUP BY";
    case Place::kHaving: return "HAVING";
    case Place::kOrderBy: return "ORDER BY";
    case Place::kDistinctOn: return "DISTINCT ON";
    case Place::kLimit: return "LIMIT";
    case Place::kOffset: return "OFFSET";
    case Place::kFunctionInFrom: return "functions in FROM";
    case Place::kValues: return "VALUES";
    case Place::kReturning: return "RETURNING";
    case Place::kUpdate: return "UPDATE";
    case Place::kCheck: return "check constraints";
    case Place::kDefault: return "DEFAULT expressions";
    case Place::kGenerated: return "column generation expressions";
    case Place::kWindow: return "window definitions";
    case Place::kFilter: return "FILTER";
    case Place::kConflictWhere: return "WHERE";
    case Place::kOwnFrom: return "FROM clause of their own query level";
    case Place::kIndexExpression: return "index expressions";
    case Place::kIndexPredicate: return "index predicates";
  }
  return "expressions";
}

ExprPtr Binder::Fold(ExprPtr expr) {
  if (expr->kind == ExprKind::kCall) {
    // A strict call of NULL is NULL, and its other arguments are not looked at.
    if (expr->function->strict && expr->function->set == nullptr) {
      for (const ExprPtr& arg : expr->args) {
        if (!IsConstant(*arg) || !arg->constant.is_null()) continue;
        ExprPtr out = MakeNull(expr->type);
        out->location = expr->location;
        return out;
      }
    }
    if (expr->function->volatility != Volatility::kImmutable || expr->function->set != nullptr) {
      return expr;
    }
  } else if (expr->kind != ExprKind::kArray && expr->kind != ExprKind::kSubscript) {
    return expr;
  }
  for (const ExprPtr& arg : expr->args) {
    if (!IsConstant(*arg)) return expr;
  }
  if (s_.context.fold == nullptr) return expr;
  // An error is left for the run: the expression may never be reached.
  Result<Datum> value = EvalScalar(*expr, *s_.context.fold);
  if (!value.ok()) return expr;
  ExprPtr out = MakeConstant(Value(expr->type, *value));
  out->location = expr->location;
  out->collation_source = expr->collation_source;
  return out;
}

Result<ExprPtr> Binder::Coerce(ExprPtr expr, Type to, CastContext context, int location) {
  if (to.id == TypeId::kAny || to.id == TypeId::kAnyelement || to.id == TypeId::kAnyarray) {
    return ResolveUnknown(std::move(expr));
  }
  if (expr->type == to) return expr;
  if (location < 0) location = expr->location;
  if (expr->kind == ExprKind::kParameter && IsUnknown(*expr)) {
    Type& known = s_.parameter_types[static_cast<size_t>(expr->index)];
    if (known.id == TypeId::kInvalid) {
      known = WithoutCollation(Plain(to));
    } else if (!known.SameKind(to)) {
      if (!CanCast(known, to, context)) {
        return SqlError(Code::kInvalid, "42P08", "inconsistent types deduced for parameter ${}",
                        expr->index + 1)
            .WithDetail(fmt::format("{} versus {}", FormatType(known), FormatType(to)))
            .WithLocation(location);
      }
    }
    expr->type = known;
    if (expr->type == to) return expr;
  }
  if (expr->kind == ExprKind::kConstant && expr->constant.is_null() && !IsUnknown(*expr) &&
      expr->type.SameKind(to)) {
    to.collation = expr->type.collation;
    expr->type = to;
    return expr;
  }
  // Dropping a modifier costs nothing, unless the value is shown by it.
  if (to.modifier == -1 && expr->type.SameKind(to) && !HidesBlanks(expr->type)) return expr;
  int at = expr->location;
  bool explicit_cast = context == CastContext::kExplicit;
  const bool literal = IsConstant(*expr) && IsUnknown(*expr);
  PLAN_TRY_ASSIGN_AT(ExprPtr out, CastTo(std::move(expr), to, context, s_.context.fold), location);
  if (out->location < 0) out->location = at;
  if (literal && to.id == TypeId::kRegclass && IsConstant(*out) && !out->constant.is_null() &&
      s_.context.catalog != nullptr) {
    // The text of a view follows the relation that it names like this.
    const auto oid = static_cast<uint32_t>(out->constant.datum().int_value());
    const catalog::TablePtr named = s_.context.catalog->GetTableByOid(oid);
    if (named != nullptr) NoteUse({at, named->id, {}, false});
  }
  if (explicit_cast && out->kind == ExprKind::kCall) out->explicit_cast = true;
  return Fold(std::move(out));
}

Result<ExprPtr> Binder::ResolveUnknown(ExprPtr expr) {
  if (!IsUnknown(*expr)) return expr;
  return Coerce(std::move(expr), MakeType(TypeId::kText), CastContext::kImplicit, -1);
}

Result<ExprPtr> Binder::ToBoolean(ExprPtr expr, std::string_view what, int location) {
  Type boolean = MakeType(TypeId::kBool);
  if (expr->type == boolean) return expr;
  if (IsUnknown(*expr)) return Coerce(std::move(expr), boolean, CastContext::kImplicit, location);
  return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                  "argument of {} must be type boolean, not type {}", what, FormatType(expr->type))
      .WithLocation(location);
}

namespace {

void AddFilters(const ast::Expr& condition, std::vector<const ast::SubLink*>* out) {
  if (condition.kind == ast::NodeKind::kSubLink) {
    out->push_back(&condition.As<ast::SubLink>());
  } else if (condition.kind == ast::NodeKind::kBool) {
    const auto& logic = condition.As<ast::BoolExpr>();
    if (logic.op == ast::BoolOp::kAnd) {
      for (const ast::ExprPtr& arg : logic.args) AddFilters(*arg, out);
    } else if (logic.op == ast::BoolOp::kNot && logic.args[0]->kind == ast::NodeKind::kSubLink) {
      out->push_back(&logic.args[0]->As<ast::SubLink>());
    }
  }
}

}  // namespace

Result<ExprPtr> Binder::BindCondition(const ast::Expr& expr, Env& env, std::string_view what) {
  const size_t before = filters_.size();
  // Of operators (NOT, AND, IS TRUE) it is not known yet whether NULL is as good as false.
  if (what != "NOT" && what != "AND" && what != "OR" && what.substr(0, 3) != "IS ")
    AddFilters(expr, &filters_);
  Result<ExprPtr> bound = BindExpr(expr, env);
  filters_.resize(before);
  if (!bound.ok()) return bound;
  return ToBoolean(std::move(*bound), what, ExprLocation(expr));
}

Status Binder::CoerceCommon(std::vector<ExprPtr*> exprs, std::string_view what, int location,
                            Type* common) {
  std::vector<Type> types;
  types.reserve(exprs.size());
  for (ExprPtr* expr : exprs) types.push_back((*expr)->type);
  bool same = true;
  for (const Type& type : types) same = same && type == types[0];
  Type target = types[0];
  if (!same || IsUnknown(**exprs[0])) {
    PLAN_TRY_ASSIGN_AT(target, CommonType(types, what), location);
  }
  for (ExprPtr* expr : exprs) {
    CELLAR_TRY_ASSIGN(*expr, Coerce(std::move(*expr), target, CastContext::kImplicit, -1));
  }
  if (IsCollatable(target)) {
    std::vector<const Expr*> inputs;
    for (ExprPtr* expr : exprs) inputs.push_back(expr->get());
    PLAN_TRY_ASSIGN_AT(const InputCollation input, CollationOfAll(inputs), location);
    target.collation = input.collation;
  }
  *common = target;
  return Status();
}

Binder::Binder(Statement& statement)
    : s_(statement), stack_start_(static_cast<const char*>(__builtin_frame_address(0))) {}

Status Binder::CheckStack() const {
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  if (stack_start_ - here < kMaxStackBytes) return Status();
  return SqlError(Code::kLimit, sqlstate::kStatementTooComplex, "stack depth limit exceeded")
      .WithHint("Write deeply nested expressions as lists, or in parts.");
}

Result<ExprPtr> Binder::BindExpr(const ast::Expr& expr, Env& env) {
  using ast::NodeKind;
  CELLAR_TRY(CheckStack());
  CELLAR_TRY(s_.CheckCancel());
  switch (expr.kind) {
    case NodeKind::kConst: return BindConst(expr.As<ast::Const>());
    case NodeKind::kColumnRef: return BindColumnRef(expr.As<ast::ColumnRef>(), env);
    case NodeKind::kParamRef: return BindParam(expr.As<ast::ParamRef>());
    case NodeKind::kOperator: return BindOperator(expr.As<ast::OperatorExpr>(), env);
    case NodeKind::kOperatorChain: {
      const auto& chain = expr.As<ast::OperatorChain>();
      if (chain.links.size() > kMaxChainLinks) {
        return SqlError(Code::kLimit, sqlstate::kStatementTooComplex, "stack depth limit exceeded")
            .WithHint("Write the chain of operators as a list, or in parts.")
            .WithLocation(expr.location);
      }
      CELLAR_TRY_ASSIGN(ExprPtr left, BindExpr(*chain.first, env));
      for (const auto& link : chain.links) {
        CELLAR_TRY_ASSIGN(ExprPtr right, BindExpr(*link.right, env));
        CELLAR_TRY_ASSIGN(
            left, MakeOperator(link.op.name, std::move(left), std::move(right), link.location));
      }
      return left;
    }
    case NodeKind::kAnyAll: return BindAnyAll(expr.As<ast::AnyAllExpr>(), env);
    case NodeKind::kDistinctFrom: return BindDistinct(expr.As<ast::DistinctExpr>(), env);
    case NodeKind::kNullIf: {
      const auto& n = expr.As<ast::NullIfExpr>();
      CELLAR_TRY_ASSIGN(ExprPtr left, BindExpr(*n.left, env));
      CELLAR_TRY_ASSIGN(ExprPtr right, BindExpr(*n.right, env));
      // An untyped literal takes the other side's type.
      if (right->type.id == TypeId::kUnknown) {
        CELLAR_TRY_ASSIGN(left, ResolveUnknown(std::move(left)));
      } else if (left->type.id == TypeId::kUnknown) {
        CELLAR_TRY_ASSIGN(left,
                          Coerce(std::move(left), right->type, CastContext::kImplicit, n.location));
      }
      // The result has the type that the comparison sees on the left.
      const Type sides[] = {left->type, right->type};
      const Result<ResolvedFunction> compared = ResolveOperator("=", sides);
      CELLAR_TRY_ASSIGN(ExprPtr equal,
                        MakeOperator("=", CloneExpr(*left), std::move(right), n.location));
      if (compared.ok() && !compared->arg_types[0].SameKind(left->type)) {
        CELLAR_TRY_ASSIGN(left, Coerce(std::move(left), compared->arg_types[0],
                                       CastContext::kImplicit, n.location));
      }
      auto out = std::make_unique<Expr>();
      out->kind = ExprKind::kNullIf;
      out->location = n.location;
      out->type = left->type;
      if (IsConstant(*equal))
        return IsTrueConstant(*equal) ? MakeNull(left->type) : std::move(left);
      if (equal->kind != ExprKind::kCall || equal->args.size() != 2) {
        // Rows are compared field by field.
        out->kind = ExprKind::kCase;
        out->args.push_back(std::move(equal));
        out->args.push_back(MakeNull(left->type));
        out->args.push_back(std::move(left));
        return out;
      }
      // Both sides have the types of the comparison.
      out->function = equal->function;
      if (!equal->args[0]->type.SameKind(left->type)) {
        CELLAR_TRY_ASSIGN(equal->args[0], Coerce(std::move(equal->args[0]), left->type,
                                                 CastContext::kImplicit, n.location));
      }
      out->type = equal->args[0]->type;
      out->args = std::move(equal->args);
      return out;
    }
    case NodeKind::kIn: return BindIn(expr.As<ast::InExpr>(), env);
    case NodeKind::kLike: return BindLike(expr.As<ast::LikeExpr>(), env);
    case NodeKind::kBetween: return BindBetween(expr.As<ast::BetweenExpr>(), env);
    case NodeKind::kBool: return BindBool(expr.As<ast::BoolExpr>(), env);
    case NodeKind::kNullTest: {
      const auto& n = expr.As<ast::NullTest>();
      CELLAR_TRY_ASSIGN(ExprPtr arg, BindExpr(*n.arg, env));
      CELLAR_TRY_ASSIGN(arg, ResolveUnknown(std::move(arg)));
      // All fields must be (not) NULL; those that are records themselves only as a whole, which is
      // asked of the value.
      bool plain = arg->kind == ExprKind::kRow;
      for (const ExprPtr& field : arg->args) plain = plain && field->type.id != TypeId::kRecord;
      if (plain) {
        std::vector<ExprPtr> tests;
        for (size_t i = 0; i < FieldCount(*arg); ++i) {
          std::vector<ExprPtr> one;
          one.push_back(std::move(arg->args[i]));
          tests.push_back(
              MakeLogic(n.negated ? ExprKind::kIsNotNull : ExprKind::kIsNull, std::move(one)));
        }
        if (tests.empty()) return MakeBoolConstant(!n.negated);
        return JoinConjuncts(std::move(tests));
      }
      if (IsConstant(*arg)) return MakeBoolConstant(arg->constant.is_null() != n.negated);
      std::vector<ExprPtr> args;
      args.push_back(std::move(arg));
      return MakeLogic(n.negated ? ExprKind::kIsNotNull : ExprKind::kIsNull, std::move(args));
    }
    case NodeKind::kBooleanTest: {
      const auto& n = expr.As<ast::BooleanTest>();
      static constexpr ExprKind kKinds[3][2] = {{ExprKind::kIsTrue, ExprKind::kIsNotTrue},
                                                {ExprKind::kIsFalse, ExprKind::kIsNotFalse},
                                                {ExprKind::kIsUnknown, ExprKind::kIsNotUnknown}};
      static constexpr std::string_view kNames[3][2] = {{"IS TRUE", "IS NOT TRUE"},
                                                        {"IS FALSE", "IS NOT FALSE"},
                                                        {"IS UNKNOWN", "IS NOT UNKNOWN"}};
      size_t test = static_cast<size_t>(n.test);
      CELLAR_TRY_ASSIGN(ExprPtr arg, BindCondition(*n.arg, env, kNames[test][n.negated]));
      std::vector<ExprPtr> args;
      args.push_back(std::move(arg));
      return MakeLogic(kKinds[test][n.negated], std::move(args));
    }
    case NodeKind::kCase: return BindCase(expr.As<ast::CaseExpr>(), env);
    case NodeKind::kCoalesce:
      return BindMinMax(ExprKind::kCoalesce, expr.As<ast::CoalesceExpr>().args, "COALESCE", env,
                        expr.location);
    case NodeKind::kMinMax: {
      const auto& n = expr.As<ast::MinMaxExpr>();
      return BindMinMax(n.greatest ? ExprKind::kGreatest : ExprKind::kLeast, n.args,
                        n.greatest ? "GREATEST" : "LEAST", env, n.location);
    }
    case NodeKind::kFuncCall: return BindCall(expr.As<ast::FuncCall>(), env);
    case NodeKind::kTypeCast: return BindTypeCast(expr.As<ast::TypeCast>(), env);
    case NodeKind::kSubLink: return BindSubLink(expr.As<ast::SubLink>(), env, false);
    case NodeKind::kArray: return BindArray(expr.As<ast::ArrayExpr>(), env, Type());
    case NodeKind::kIndirection: {
      const auto& n = expr.As<ast::IndirectionExpr>();
      return BindIndirection(n, n.steps.size(), env);
    }
    case NodeKind::kRow: {
      auto out = std::make_unique<Expr>();
      out->kind = ExprKind::kRow;
      out->type = MakeType(TypeId::kRecord);
      out->location = expr.location;
      CELLAR_TRY(BindList(expr.As<ast::RowExpr>().args, env, &out->args));
      return out;
    }
    case NodeKind::kSqlValueFunction:
      return BindValueFunction(expr.As<ast::SqlValueFunction>(), env);
    case NodeKind::kCollate: {
      const auto& n = expr.As<ast::CollateExpr>();
      PLAN_TRY_ASSIGN_AT(const Collation* const collation, CollationNamed(n.collation), n.location);
      CELLAR_TRY_ASSIGN(ExprPtr arg, BindExpr(*n.arg, env));
      CELLAR_TRY_ASSIGN(arg, ResolveUnknown(std::move(arg)));
      if (!IsCollatable(arg->type)) {
        return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                        "collations are not supported by type {}", FormatType(arg->type))
            .WithLocation(n.location);
      }
      if (IsCollate(*arg)) arg = std::move(arg->args[0]);
      return WithCollation(std::move(arg), collation);
    }
    case NodeKind::kDefault:
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                      "DEFAULT is not allowed in this context")
          .WithLocation(expr.location);
    case NodeKind::kNamedArg:
      return UnsupportedError("named arguments are not supported").WithLocation(expr.location);
    case NodeKind::kGroupingFunc: return BindGrouping(expr.As<ast::GroupingFunc>(), env);
    case NodeKind::kGroupingSet:
      return UnsupportedError("grouping sets are not supported").WithLocation(expr.location);
    case NodeKind::kCurrentOf:
      return UnsupportedError("WHERE CURRENT OF is not supported").WithLocation(expr.location);
    case NodeKind::kUnsupportedExpr:
      return UnsupportedError("{} is not supported", expr.As<ast::UnsupportedExpr>().what)
          .WithLocation(expr.location);
    default: break;
  }
  return UnsupportedError("this expression is not supported").WithLocation(expr.location);
}

Result<ExprPtr> Binder::BindConst(const ast::Const& constant) {
  ExprPtr out;
  switch (constant.const_kind) {
    case ast::ConstKind::kNull: out = MakeNull(MakeType(TypeId::kUnknown)); break;
    case ast::ConstKind::kBool: out = MakeBoolConstant(constant.boolean); break;
    case ast::ConstKind::kInteger:
      out = MakeConstant(Value(MakeType(TypeId::kInt4), Datum::Int(constant.integer)));
      break;
    case ast::ConstKind::kString: return UnknownLiteral(constant.text, constant.location);
    case ast::ConstKind::kNumeric: {
      int64_t value = 0;
      const char* end = constant.text.data() + constant.text.size();
      auto [parsed, error] = std::from_chars(constant.text.data(), end, value);
      if (error == std::errc() && parsed == end) {
        Type type =
            MakeType(value >= INT32_MIN && value <= INT32_MAX ? TypeId::kInt4 : TypeId::kInt8);
        out = MakeConstant(Value(type, Datum::Int(value)));
        break;
      }
      return Coerce(UnknownLiteral(constant.text, constant.location), MakeType(TypeId::kNumeric),
                    CastContext::kExplicit, constant.location);
    }
    case ast::ConstKind::kBitString:
      return UnsupportedError("bit string types are not supported").WithLocation(constant.location);
  }
  out->location = constant.location;
  return out;
}

Result<ExprPtr> Binder::BindParam(const ast::ParamRef& ref) {
  if (ref.number < 1 || ref.number > 65535) {
    return SqlError(Code::kInvalid, sqlstate::kUndefinedParameter, "there is no parameter ${}",
                    ref.number)
        .WithLocation(ref.location);
  }
  size_t index = static_cast<size_t>(ref.number) - 1;
  if (s_.parameter_types.size() <= index) {
    s_.parameter_types.resize(index + 1);
    s_.parameter_locations.resize(index + 1, -1);
  }
  s_.parameter_locations[index] = ref.location;
  auto out = std::make_unique<Expr>();
  out->kind = ExprKind::kParameter;
  out->index = ref.number - 1;
  out->location = ref.location;
  out->type = s_.parameter_types[index].id == TypeId::kInvalid ? MakeType(TypeId::kUnknown)
                                                               : s_.parameter_types[index];
  return out;
}

Result<ExprPtr> Binder::BindOperator(const ast::OperatorExpr& op, Env& env) {
  if (op.left != nullptr && op.left->kind == ast::NodeKind::kRow &&
      op.right->kind == ast::NodeKind::kSubLink &&
      op.right->As<ast::SubLink>().sub_kind == ast::SubLinkKind::kExpr) {
    return BindRowSubLink(op, env);
  }
  CELLAR_TRY_ASSIGN(ExprPtr right, BindExpr(*op.right, env));
  ExprPtr left;
  if (op.left != nullptr) {
    CELLAR_TRY_ASSIGN(left, BindExpr(*op.left, env));
  } else if (op.op.name == "-" && IsConstant(*right) && !right->constant.is_null() &&
             IsNumber(right->type) && op.right->kind == ast::NodeKind::kConst) {
    // -2147483648 is an int4 though 2147483648 is not.
    if (right->type.id == TypeId::kInt8 &&
        right->constant.datum().int_value() == -int64_t{INT32_MIN}) {
      return MakeConstant(Value(MakeType(TypeId::kInt4), Datum::Int(INT32_MIN)));
    }
  }
  return MakeOperator(op.op.name, std::move(left), std::move(right), op.location);
}

Result<ExprPtr> Binder::MakeOperator(std::string_view op, ExprPtr left, ExprPtr right,
                                     int location) {
  if (op == "!=") op = "<>";
  // ROW(..) op ROW(..) goes field by field; rows of relations are compared as records.
  if (left != nullptr && IsRowExpression(*left) && IsRowExpression(*right)) {
    return MakeRowComparison(op, std::move(left), std::move(right), location);
  }
  std::vector<Type> types;
  if (left != nullptr) types.push_back(left->type);
  types.push_back(right->type);
  PLAN_TRY_ASSIGN_AT(ResolvedFunction resolved, ResolveOperator(op, types), location);
  std::vector<ExprPtr> args;
  if (left != nullptr) args.push_back(std::move(left));
  args.push_back(std::move(right));
  for (size_t i = 0; i < args.size(); ++i) {
    CELLAR_TRY_ASSIGN(
        args[i], Coerce(std::move(args[i]), resolved.arg_types[i], CastContext::kImplicit, -1));
  }
  CollationSource source = CollationSource::kImplicit;
  PLAN_TRY_AT(Collate(&resolved.spec, args, &resolved.result, &source), location);
  ExprPtr call = MakeCall(resolved.spec, resolved.result, std::move(args));
  call->location = location;
  call->collation_source = source;
  return Fold(std::move(call));
}

Result<ExprPtr> Binder::MakeRowComparison(std::string_view op, ExprPtr left, ExprPtr right,
                                          int location) {
  if (left->args.size() != right->args.size()) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                    "unequal number of entries in row expressions")
        .WithLocation(location);
  }
  if (left->args.empty()) {
    return UnsupportedError("cannot compare rows of zero length").WithLocation(location);
  }
  size_t n = left->args.size();
  if (op == "=" || op == "<>") {
    std::vector<ExprPtr> tests;
    for (size_t i = 0; i < n; ++i) {
      CELLAR_TRY_ASSIGN(ExprPtr test, MakeOperator(op, std::move(left->args[i]),
                                                   std::move(right->args[i]), location));
      tests.push_back(std::move(test));
    }
    if (n == 1) return std::move(tests[0]);
    return MakeLogic(op == "=" ? ExprKind::kAnd : ExprKind::kOr, std::move(tests));
  }
  if (op != "<" && op != "<=" && op != ">" && op != ">=") {
    return SqlError(Code::kInvalid, sqlstate::kFeatureNotSupported,
                    "could not determine interpretation of row comparison operator {}", op)
        .WithLocation(location);
  }
  // (a, b) < (x, y): a < x OR (a = x AND b < y). From the last field outwards.
  std::string_view strict = op.substr(0, 1);
  ExprPtr rest;
  for (size_t i = n; i-- > 0;) {
    bool last = i + 1 == n;
    ExprPtr a = CloneExpr(*left->args[i]), b = CloneExpr(*right->args[i]);
    CELLAR_TRY_ASSIGN(ExprPtr less,
                      MakeOperator(last ? op : strict, std::move(a), std::move(b), location));
    if (last) {
      rest = std::move(less);
      continue;
    }
    CELLAR_TRY_ASSIGN(ExprPtr equal, MakeOperator("=", std::move(left->args[i]),
                                                  std::move(right->args[i]), location));
    std::vector<ExprPtr> both, either;
    both.push_back(std::move(equal));
    both.push_back(std::move(rest));
    either.push_back(std::move(less));
    either.push_back(MakeLogic(ExprKind::kAnd, std::move(both)));
    rest = MakeLogic(ExprKind::kOr, std::move(either));
  }
  return rest;
}

}  // namespace cellar::sql::planning
