// Expressions: constants, column references, operators, casts and SQL's special forms.
#include <algorithm>
#include <charconv>
#include <cstddef>

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

// How a reference is written in messages.
std::string Joined(const std::vector<std::string>& parts, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) out += '.';
    out += parts[i];
  }
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
      known = to;
      known.modifier = -1;
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
    expr->type = to;
    return expr;
  }
  if (to.modifier == -1 && expr->type.SameKind(to))
    return expr;  // dropping a modifier costs nothing
  int at = expr->location;
  bool explicit_cast = context == CastContext::kExplicit;
  PLAN_TRY_ASSIGN_AT(ExprPtr out, CastTo(std::move(expr), to, context, s_.context.fold), location);
  if (out->location < 0) out->location = at;
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

Result<ExprPtr> Binder::BindCondition(const ast::Expr& expr, Env& env, std::string_view what) {
  CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(expr, env));
  return ToBoolean(std::move(bound), what, ExprLocation(expr));
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
      CELLAR_TRY_ASSIGN(ExprPtr equal,
                        MakeOperator("=", CloneExpr(*left), std::move(right), n.location));
      auto out = std::make_unique<Expr>();
      out->kind = ExprKind::kNullIf;
      out->location = n.location;
      out->type = left->type;
      if (equal->kind != ExprKind::kCall || equal->args.size() != 2) {
        // Folded: NULLIF of two constants.
        std::vector<ExprPtr> args;
        bool is_equal = IsTrueConstant(*equal);
        if (is_equal) return MakeNull(left->type);
        return left;
      }
      // Both sides have the types of the comparison.
      out->function = equal->function;
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
      if (arg->kind == ExprKind::kRow) {
        // All fields must be (not) NULL.
        std::vector<ExprPtr> tests;
        for (ExprPtr& field : arg->args) {
          std::vector<ExprPtr> one;
          one.push_back(std::move(field));
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
    case NodeKind::kIndirection: return BindIndirection(expr.As<ast::IndirectionExpr>(), env);
    case NodeKind::kRow: {
      auto out = std::make_unique<Expr>();
      out->kind = ExprKind::kRow;
      out->type = MakeType(TypeId::kRecord);
      out->location = expr.location;
      for (const ast::ExprPtr& arg : expr.As<ast::RowExpr>().args) {
        CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(*arg, env));
        out->args.push_back(std::move(bound));
      }
      return out;
    }
    case NodeKind::kSqlValueFunction:
      return BindValueFunction(expr.As<ast::SqlValueFunction>(), env);
    case NodeKind::kCollate: {
      const auto& n = expr.As<ast::CollateExpr>();
      const std::string& name = n.collation.name;
      bool known = name == "C" || name == "POSIX" || name == "default" || name == "ucs_basic";
      if (!known) {
        return UnsupportedError("collation \"{}\" is not supported", name).WithLocation(n.location);
      }
      CELLAR_TRY_ASSIGN(ExprPtr arg, BindExpr(*n.arg, env));
      CELLAR_TRY_ASSIGN(arg, ResolveUnknown(std::move(arg)));
      if (!IsString(arg->type)) {
        return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                        "collations are not supported by type {}", FormatType(arg->type))
            .WithLocation(n.location);
      }
      return arg;
    }
    case NodeKind::kDefault:
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                      "DEFAULT is not allowed in this context")
          .WithLocation(expr.location);
    case NodeKind::kNamedArg:
      return UnsupportedError("named arguments are not supported").WithLocation(expr.location);
    case NodeKind::kGroupingFunc:
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

Result<ExprPtr> Binder::ColumnFromScope(const ScopeColumn& column, int location) {
  if (column.record != nullptr) {
    auto row = std::make_unique<Expr>();
    row->kind = ExprKind::kRow;
    row->type = MakeType(TypeId::kRecord);
    row->location = location;
    row->names = column.record->names;
    row->names = column.record->names;
    for (int id : column.record->ids) row->args.push_back(s_.ColumnExpr(id, location));
    return row;
  }
  return s_.ColumnExpr(column.id, location);
}

Result<ExprPtr> Binder::WholeRow(const ScopeItem& item, int location) {
  if (item.scalar_function && !item.columns.empty()) {
    return ColumnFromScope(item.columns[0], location);
  }
  auto row = std::make_unique<Expr>();
  row->kind = ExprKind::kRow;
  row->type = MakeType(TypeId::kRecord);
  row->location = location;
  for (const ScopeColumn& column : item.columns) {
    if (column.hidden) continue;
    CELLAR_TRY_ASSIGN(ExprPtr field, ColumnFromScope(column, location));
    row->names.push_back(column.name);
    row->args.push_back(std::move(field));
  }
  return row;
}

Result<ExprPtr> Binder::BindColumnRef(const ast::ColumnRef& ref, Env& env) {
  const std::vector<std::string>& parts = ref.parts;
  size_t n = parts.size();
  if (ref.star && n == 0) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                    "row expansion via \"*\" is not supported here")
        .WithLocation(ref.location);
  }
  if (n == 1 && !ref.star) {
    for (const Scope* scope = env.scope; scope != nullptr; scope = scope->parent) {
      const ScopeColumn* found = nullptr;
      for (const ScopeItem* item : scope->items) {
        if (!item->columns_visible) continue;
        for (const ScopeColumn& column : item->columns) {
          if (column.name != parts[0]) continue;
          if (item->lateral_only) {
            return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn,
                            "column \"{}\" does not exist", parts[0])
                .WithDetail(
                    fmt::format("There is a column named \"{}\" in table \"{}\", but it cannot "
                                "be referenced from this part of the query.",
                                parts[0], item->name))
                .WithLocation(ref.location);
          }
          if (found != nullptr) {
            return SqlError(Code::kInvalid, sqlstate::kAmbiguousColumn,
                            "column reference \"{}\" is ambiguous", parts[0])
                .WithLocation(ref.location);
          }
          found = &column;
        }
      }
      if (found != nullptr) return ColumnFromScope(*found, ref.location);
    }
    // The name of a relation: its whole row.
    for (const Scope* scope = env.scope; scope != nullptr; scope = scope->parent) {
      for (const ScopeItem* item : scope->items) {
        if (item->relation_visible && !item->lateral_only && item->name == parts[0]) {
          return WholeRow(*item, ref.location);
        }
      }
    }
    if (parts[0] == "tableoid") {
      for (const Scope* scope = env.scope; scope != nullptr; scope = scope->parent) {
        const ScopeItem* only = nullptr;
        size_t tables = 0;
        for (const ScopeItem* item : scope->items) {
          if (item->table == nullptr || !item->columns_visible) continue;
          only = item;
          ++tables;
        }
        if (tables == 1) {
          return MakeConstant(Value(MakeType(TypeId::kOid), Datum::Int(only->table->oid())));
        }
      }
    }
    if (env.place == Place::kDefault) {
      return SqlError(Code::kInvalid, sqlstate::kFeatureNotSupported,
                      "cannot use column reference in DEFAULT expression")
          .WithLocation(ref.location);
    }
    return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn, "column \"{}\" does not exist",
                    parts[0])
        .WithLocation(ref.location);
  }
  // Qualified: the relation's name is the last part before the column.
  size_t relation_at = ref.star ? n - 1 : n - 2;
  if (relation_at > 2) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                    "improper qualified name (too many dotted names): {}", Joined(parts, n))
        .WithLocation(ref.location);
  }
  const std::string& relation = parts[relation_at];
  const std::string* schema = relation_at > 0 ? &parts[relation_at - 1] : nullptr;
  const ScopeItem* hidden = nullptr;
  for (const Scope* scope = env.scope; scope != nullptr; scope = scope->parent) {
    const ScopeItem* found = nullptr;
    for (const ScopeItem* item : scope->items) {
      if (item->name != relation || (schema != nullptr && item->schema != *schema)) continue;
      if (!item->relation_visible || item->lateral_only) {
        hidden = item;
        continue;
      }
      if (found != nullptr) {
        return SqlError(Code::kInvalid, "42P09", "table reference \"{}\" is ambiguous", relation)
            .WithLocation(ref.location);
      }
      found = item;
    }
    if (found == nullptr) continue;
    if (ref.star) return WholeRow(*found, ref.location);
    const ScopeColumn* match = nullptr;
    for (const ScopeColumn& column : found->columns) {
      if (column.name != parts[n - 1]) continue;
      if (match != nullptr) {
        return SqlError(Code::kInvalid, sqlstate::kAmbiguousColumn,
                        "column reference \"{}\" is ambiguous", parts[n - 1])
            .WithLocation(ref.location);
      }
      match = &column;
    }
    if (match != nullptr) return ColumnFromScope(*match, ref.location);
    if (parts[n - 1] == "tableoid" && found->table != nullptr) {
      ExprPtr oid = MakeConstant(Value(MakeType(TypeId::kOid), Datum::Int(found->table->oid())));
      return oid;
    }
    return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn, "column {}.{} does not exist",
                    relation, parts[n - 1])
        .WithLocation(ref.location);
  }
  // "column.field" of a composite column.
  if (n == 2 && !ref.star) {
    for (const Scope* scope = env.scope; scope != nullptr; scope = scope->parent) {
      for (const ScopeItem* item : scope->items) {
        if (!item->columns_visible || item->lateral_only) continue;
        for (const ScopeColumn& column : item->columns) {
          if (column.name != parts[0] || column.record == nullptr) continue;
          CELLAR_TRY_ASSIGN(ExprPtr row, ColumnFromScope(column, ref.location));
          return FieldOf(std::move(row), parts[1], ref.location);
        }
      }
    }
  }
  if (hidden != nullptr) {
    Status status = SqlError(Code::kInvalid, sqlstate::kUndefinedTable,
                             "invalid reference to FROM-clause entry for table \"{}\"", relation)
                        .WithLocation(ref.location);
    return std::move(status).WithHint(fmt::format(
        "There is an entry for table \"{}\", but it cannot be referenced from this part of "
        "the query.",
        relation));
  }
  // The alias hides the table's own name.
  for (const Scope* scope = env.scope; scope != nullptr; scope = scope->parent) {
    for (const ScopeItem* item : scope->items) {
      if (item->table != nullptr && item->table->name == relation && item->name != relation) {
        return SqlError(Code::kInvalid, sqlstate::kUndefinedTable,
                        "invalid reference to FROM-clause entry for table \"{}\"", relation)
            .WithHint(
                fmt::format("Perhaps you meant to reference the table alias \"{}\".", item->name))
            .WithLocation(ref.location);
      }
    }
  }
  return SqlError(Code::kInvalid, sqlstate::kUndefinedTable,
                  "missing FROM-clause entry for table \"{}\"", relation)
      .WithLocation(ref.location);
}

Result<ExprPtr> Binder::FieldOf(ExprPtr row, const std::string& field, int location) {
  if (row->type.id != TypeId::kRecord || row->type.array) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType,
                    "column notation .{} applied to type {}, which is not a composite type", field,
                    FormatType(row->type))
        .WithLocation(location);
  }
  if (row->kind == ExprKind::kRow && !row->names.empty()) {
    for (size_t i = 0; i < row->names.size() && i < row->args.size(); ++i) {
      if (row->names[i] == field) return std::move(row->args[i]);
    }
  } else if (row->kind == ExprKind::kRow && field.size() > 1 && field[0] == 'f') {
    size_t position = 0;
    auto [end, error] = std::from_chars(field.data() + 1, field.data() + field.size(), position);
    if (error == std::errc() && end == field.data() + field.size() && position >= 1 &&
        position <= row->args.size()) {
      return std::move(row->args[position - 1]);
    }
  }
  return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn,
                  "could not identify column \"{}\" in record data type", field)
      .WithLocation(location);
}

Result<ExprPtr> Binder::BindOperator(const ast::OperatorExpr& op, Env& env) {
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
  if (left != nullptr && left->kind == ExprKind::kRow && right->kind == ExprKind::kRow) {
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
  ExprPtr call = MakeCall(resolved.spec, resolved.result, std::move(args));
  call->location = location;
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
    Type array = ArrayOf(element.id);
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
    Type wanted = ArrayOf(resolved.arg_types[1].id);
    // int2vector = ANY compares element-wise as it is; the cast of its elements is by array.
    CELLAR_TRY_ASSIGN(right, Coerce(std::move(right), wanted, CastContext::kImplicit, -1));
  }
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

Result<ExprPtr> Binder::MakeDistinct(ExprPtr left, ExprPtr right, bool negated, int location) {
  if (left->kind == ExprKind::kRow && right->kind == ExprKind::kRow) {
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
  CELLAR_TRY_ASSIGN(left, Coerce(std::move(left), common, CastContext::kImplicit, -1));
  CELLAR_TRY_ASSIGN(right, Coerce(std::move(right), common, CastContext::kImplicit, -1));
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
  ExprPtr out =
      MakeLogic(negated ? ExprKind::kIsNotDistinct : ExprKind::kIsDistinct, std::move(args));
  out->location = location;
  return out;
}

Result<ExprPtr> Binder::BindIn(const ast::InExpr& expr, Env& env) {
  CELLAR_TRY_ASSIGN(ExprPtr arg, BindExpr(*expr.arg, env));
  std::vector<ExprPtr> items;
  items.reserve(expr.list.size());
  bool rows = arg->kind == ExprKind::kRow;
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
        CELLAR_TRY_ASSIGN(arg, Coerce(std::move(arg), target, CastContext::kImplicit, -1));
        out->args.reserve(items.size() + 1);
        out->args.push_back(std::move(arg));
        for (ExprPtr& item : items) {
          CELLAR_TRY_ASSIGN(ExprPtr cast,
                            Coerce(std::move(item), target, CastContext::kImplicit, -1));
          out->args.push_back(std::move(cast));
        }
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

Result<ExprPtr> Binder::BindCase(const ast::CaseExpr& expr, Env& env) {
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
  for (const ast::ExprPtr& arg : args) {
    CELLAR_TRY_ASSIGN(ExprPtr bound, BindExpr(*arg, env));
    out->args.push_back(std::move(bound));
  }
  std::vector<ExprPtr*> arms;
  for (ExprPtr& arg : out->args) arms.push_back(&arg);
  CELLAR_TRY(CoerceCommon(arms, name, location, &out->type));
  if (kind == ExprKind::kCoalesce && IsConstant(*out->args[0]) &&
      !out->args[0]->constant.is_null()) {
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
  for (const ast::ExprPtr& element : array.elements) {
    ExprPtr bound;
    if (element->kind == ast::NodeKind::kArray) {
      CELLAR_TRY_ASSIGN(bound, BindArray(element->As<ast::ArrayExpr>(), env, wanted));
    } else {
      CELLAR_TRY_ASSIGN(bound, BindExpr(*element, env));
    }
    if (wanted.id != TypeId::kInvalid && element->kind != ast::NodeKind::kArray) {
      Type item = ElementTypeOf(wanted);
      CELLAR_TRY_ASSIGN(bound, Coerce(std::move(bound), item, CastContext::kExplicit, -1));
    }
    out->args.push_back(std::move(bound));
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
  out->type = common.array ? common : ArrayOf(common.id);
  return Fold(std::move(out));
}

Result<ExprPtr> Binder::BindIndirection(const ast::IndirectionExpr& expr, Env& env) {
  CELLAR_TRY_ASSIGN(ExprPtr value, BindExpr(*expr.arg, env));
  for (size_t i = 0; i < expr.steps.size(); ++i) {
    const ast::IndirectionStep& step = expr.steps[i];
    switch (step.step_kind) {
      case ast::IndirectionStep::Kind::kField: {
        CELLAR_TRY_ASSIGN(value, FieldOf(std::move(value), step.field, expr.location));
        break;
      }
      case ast::IndirectionStep::Kind::kSubscript: {
        Type element = ElementTypeOf(value->type);
        if (element.id == TypeId::kInvalid) {
          return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                          "cannot subscript type {} because it does not support subscripting",
                          FormatType(value->type))
              .WithLocation(expr.location);
        }
        auto out = std::make_unique<Expr>();
        out->kind = ExprKind::kSubscript;
        out->type = element;
        out->location = expr.location;
        out->args.push_back(std::move(value));
        // a[1][2] is one access of a two-dimensional array.
        while (true) {
          CELLAR_TRY_ASSIGN(ExprPtr index, BindExpr(*expr.steps[i].upper, env));
          CELLAR_TRY_ASSIGN(index, Coerce(std::move(index), MakeType(TypeId::kInt4),
                                          CastContext::kAssignment, -1));
          out->args.push_back(std::move(index));
          if (i + 1 >= expr.steps.size() ||
              expr.steps[i + 1].step_kind != ast::IndirectionStep::Kind::kSubscript) {
            break;
          }
          ++i;
        }
        value = Fold(std::move(out));
        break;
      }
      case ast::IndirectionStep::Kind::kSlice:
        return UnsupportedError("array slices are not supported").WithLocation(expr.location);
      case ast::IndirectionStep::Kind::kStar:
        return UnsupportedError("row expansion via \"*\" is not supported here")
            .WithLocation(expr.location);
    }
  }
  return value;
}

Result<ExprPtr> Binder::BindTypeCast(const ast::TypeCast& cast, Env& env) {
  CELLAR_TRY_ASSIGN(Type type, ResolveTypeName(cast.type, nullptr));
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

Result<ExprPtr> Binder::BindSubLink(const ast::SubLink& link, Env& env, bool negated) {
  bool quantified =
      link.sub_kind == ast::SubLinkKind::kAny || link.sub_kind == ast::SubLinkKind::kAll;
  ExprPtr test;
  if (quantified) {
    CELLAR_TRY_ASSIGN(test, BindExpr(*link.test, env));
  }
  CELLAR_TRY_ASSIGN(BoundQuery query, BindSelect(*link.select, env.scope));
  auto negate = [&](ExprPtr expr) -> ExprPtr {
    if (!negated) return expr;
    std::vector<ExprPtr> args;
    args.push_back(std::move(expr));
    return MakeLogic(ExprKind::kNot, std::move(args));
  };
  auto out = std::make_unique<Expr>();
  out->kind = ExprKind::kSubplan;
  out->type = MakeType(TypeId::kBool);
  out->location = link.location;
  auto register_query = [&](std::vector<int> ids) {
    Subquery subquery;
    subquery.root = std::move(query.root);
    subquery.ids = std::move(ids);
    out->index = static_cast<int>(s_.subqueries.size());
    s_.subqueries.push_back(std::move(subquery));
  };
  auto ids_of = [&] {
    std::vector<int> ids;
    for (const QueryColumn& column : query.columns) ids.push_back(column.id);
    return ids;
  };
  if (link.sub_kind == ast::SubLinkKind::kExists) {
    out->subplan_kind = SubplanKind::kExists;
    register_query({});
    return negate(std::move(out));
  }
  size_t wanted = test != nullptr && test->kind == ExprKind::kRow ? test->args.size() : 1;
  if (query.columns.size() != wanted) {
    if (quantified) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "subquery has too {} columns",
                      query.columns.size() > wanted ? "many" : "few")
          .WithLocation(link.location);
    }
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "subquery must return only one column")
        .WithLocation(link.location);
  }
  if (link.sub_kind == ast::SubLinkKind::kExpr || link.sub_kind == ast::SubLinkKind::kArray) {
    Type type = s_.column(query.columns[0].id).type;
    if (link.sub_kind == ast::SubLinkKind::kArray) {
      out->subplan_kind = SubplanKind::kArray;
      out->type = type.array ? type : ArrayOf(type.id);
    } else {
      out->subplan_kind = SubplanKind::kScalar;
      out->type = type;
      out->type.modifier = type.modifier;
    }
    register_query(ids_of());
    if (negated) {
      CELLAR_TRY_ASSIGN(ExprPtr boolean, ToBoolean(std::move(out), "NOT", link.location));
      return negate(std::move(boolean));
    }
    return out;
  }
  std::string_view op = link.is_in || link.op.empty() ? std::string_view("=") : link.op.name;
  if (op == "!=") op = "<>";
  bool all = link.sub_kind == ast::SubLinkKind::kAll;
  if (test->kind == ExprKind::kRow && test->args.size() != 1) {
    // (a, b) IN (SELECT x, y ..): whether a matching row exists. NOT IN asks that no row may match.
    if (all || op != "=") {
      return UnsupportedError(
                 "row comparison with ALL, or by an operator other than =, over a "
                 "subquery is not supported")
          .WithLocation(link.location);
    }
    auto row = std::make_unique<Expr>();
    row->kind = ExprKind::kRow;
    row->type = MakeType(TypeId::kRecord);
    for (const QueryColumn& column : query.columns) row->args.push_back(s_.ColumnExpr(column.id));
    CELLAR_TRY_ASSIGN(ExprPtr match,
                      MakeRowComparison("=", std::move(test), std::move(row), link.location));
    if (negated) {
      std::vector<ExprPtr> args;
      args.push_back(std::move(match));
      match = MakeLogic(ExprKind::kIsNotFalse, std::move(args));
    }
    auto filter = std::make_unique<LogicalFilter>();
    SplitConjuncts(std::move(match), &filter->conditions);
    filter->children.push_back(std::move(query.root));
    query.root = std::move(filter);
    out->subplan_kind = SubplanKind::kExists;
    register_query({});
    return negate(std::move(out));
  }
  if (test->kind == ExprKind::kRow) test = std::move(test->args[0]);
  int column_id = query.columns[0].id;
  Type types[2] = {test->type, s_.column(column_id).type};
  PLAN_TRY_ASSIGN_AT(ResolvedFunction resolved, ResolveOperator(op, types), link.location);
  if (resolved.result.id != TypeId::kBool) {
    return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                    "row comparison operator must yield type boolean, not type {}",
                    FormatType(resolved.result))
        .WithLocation(link.location);
  }
  CELLAR_TRY_ASSIGN(test,
                    Coerce(std::move(test), resolved.arg_types[0], CastContext::kImplicit, -1));
  if (!s_.column(column_id).type.SameKind(resolved.arg_types[1])) {
    auto project = std::make_unique<LogicalProject>();
    CELLAR_TRY_ASSIGN(ExprPtr cast, Coerce(s_.ColumnExpr(column_id), resolved.arg_types[1],
                                           CastContext::kImplicit, link.location));
    ColumnInfo info = s_.column(column_id);
    info.type = cast->type;
    column_id = s_.AddColumn(std::move(info));
    project->ids.push_back(column_id);
    project->exprs.push_back(std::move(cast));
    project->children.push_back(std::move(query.root));
    query.root = std::move(project);
  }
  out->subplan_kind = all ? SubplanKind::kAll : SubplanKind::kAny;
  out->function = resolved.spec;
  out->args.push_back(std::move(test));
  register_query({column_id});
  return negate(std::move(out));
}

}  // namespace cellar::sql::planning
