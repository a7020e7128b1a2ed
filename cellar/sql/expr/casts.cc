// Casts: pg_cast's table, casts through text, array casts by element, and CastTo.
#include <fmt/format.h>

#include <cmath>

#include "cellar/sql/expr/blanks.h"
#include "cellar/sql/expr/registry.h"
#include "cellar/types/array.h"
#include "cellar/types/datetime.h"
#include "cellar/types/json.h"
#include "cellar/types/numeric.h"
#include "cellar/types/scalar_text.h"

namespace cellar::sql {
namespace {

Status OutOfRange(std::string_view type) {
  return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange, "{} out of range", type);
}

std::string_view IntegerName(TypeId id) {
  return id == TypeId::kInt2 ? "smallint" : id == TypeId::kInt4 ? "integer" : "bigint";
}

bool FitsInteger(int64_t value, TypeId id) {
  if (id == TypeId::kInt2) return value >= INT16_MIN && value <= INT16_MAX;
  if (id == TypeId::kInt4) return value >= INT32_MIN && value <= INT32_MAX;
  return true;
}

// The cast function F and then what the target's modifier asks.
template <FunctionSpec::ScalarFn F>
Result<Datum> WithModifier(EvalContext& context, const Expr& call, Args a) {
  if (call.type.modifier < 0) return F(context, call, a);
  CELLAR_TRY_ASSIGN(Datum value, F(context, call, a));
  if (value.is_null()) return value;
  return ApplyModifier(value, call.type, call.explicit_cast, context.arena());
}

Result<Datum> Same(EvalContext&, const Expr&, Args a) { return a[0]; }

// ---- Numbers ----

template <TypeId To>
Result<Datum> NarrowInt(EvalContext&, const Expr&, Args a) {
  if (!FitsInteger(a[0].int_value(), To)) return OutOfRange(IntegerName(To));
  return a[0];
}

template <TypeId To>
Status NarrowIntVector(EvalContext&, const Expr&, std::span<const ColumnVector* const> args,
                       Selection rows, ColumnVector* result) {
  const int64_t* in = args[0]->ints();
  int64_t* out = result->ints();
  for (size_t i = 0; i < rows.count; ++i) {
    uint32_t row = rows[i];
    out[row] = in[row];
    if (!FitsInteger(in[row], To) && !result->nulls()[row]) return OutOfRange(IntegerName(To));
  }
  return Status();
}

Status IntToDoubleVector(EvalContext&, const Expr&, std::span<const ColumnVector* const> args,
                         Selection rows, ColumnVector* result) {
  const int64_t* in = args[0]->ints();
  double* out = result->doubles();
  for (size_t i = 0; i < rows.count; ++i) out[rows[i]] = static_cast<double>(in[rows[i]]);
  return Status();
}

Status IntToFloatVector(EvalContext&, const Expr&, std::span<const ColumnVector* const> args,
                        Selection rows, ColumnVector* result) {
  const int64_t* in = args[0]->ints();
  double* out = result->doubles();
  for (size_t i = 0; i < rows.count; ++i) {
    out[rows[i]] = static_cast<double>(static_cast<float>(in[rows[i]]));
  }
  return Status();
}

Result<Datum> IntToDouble(EvalContext&, const Expr&, Args a) {
  return Datum::Double(static_cast<double>(a[0].int_value()));
}
Result<Datum> IntToFloat(EvalContext&, const Expr&, Args a) {
  return Datum::Double(static_cast<double>(static_cast<float>(a[0].int_value())));
}
Result<Datum> IntToNumeric(EvalContext& context, const Expr&, Args a) {
  return Datum::Bytes(numeric::FromInt64(a[0].int_value(), context.arena()));
}

template <TypeId To>
Result<Datum> DoubleToInt(EvalContext&, const Expr&, Args a) {
  double value = std::rint(a[0].double_value());
  constexpr double kLimit = To == TypeId::kInt2   ? 32768.0
                            : To == TypeId::kInt4 ? 2147483648.0
                                                  : 9223372036854775808.0;
  if (!(value >= -kLimit && value < kLimit)) return OutOfRange(IntegerName(To));
  return Datum::Int(static_cast<int64_t>(value));
}

Result<Datum> DoubleToFloat(EvalContext&, const Expr&, Args a) {
  double value = a[0].double_value();
  float narrow = static_cast<float>(value);
  if (std::isinf(narrow) && !std::isinf(value)) {
    return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                    "value out of range: overflow");
  }
  if (narrow == 0 && value != 0) {
    return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                    "value out of range: underflow");
  }
  return Datum::Double(static_cast<double>(narrow));
}

Result<Datum> DoubleToNumeric(EvalContext& context, const Expr&, Args a) {
  return Datum::Bytes(numeric::FromDouble(a[0].double_value(), context.arena()));
}
Result<Datum> FloatToNumeric(EvalContext& context, const Expr&, Args a) {
  return Datum::Bytes(numeric::FromFloat(static_cast<float>(a[0].double_value()), context.arena()));
}

template <TypeId To>
Result<Datum> NumericToInt(EvalContext&, const Expr&, Args a) {
  Result<int64_t> value = To == TypeId::kInt2   ? numeric::ToInt16(a[0].bytes())
                          : To == TypeId::kInt4 ? numeric::ToInt32(a[0].bytes())
                                                : numeric::ToInt64(a[0].bytes());
  if (!value.ok()) return std::move(value).status();
  return Datum::Int(*value);
}
Result<Datum> NumericToDouble(EvalContext&, const Expr&, Args a) {
  CELLAR_TRY_ASSIGN(double value, numeric::ToDouble(a[0].bytes()));
  return Datum::Double(value);
}
Result<Datum> NumericToFloat(EvalContext&, const Expr&, Args a) {
  CELLAR_TRY_ASSIGN(double value, numeric::ToFloat(a[0].bytes()));
  return Datum::Double(value);
}

Result<Datum> IntToBool(EvalContext&, const Expr&, Args a) {
  return Datum::Bool(a[0].int_value() != 0);
}
Result<Datum> IntToOid(EvalContext&, const Expr&, Args a) {
  return Datum::Int(static_cast<int64_t>(static_cast<uint32_t>(a[0].int_value())));
}
Result<Datum> BigIntToOid(EvalContext&, const Expr&, Args a) {
  if (a[0].int_value() < 0 || a[0].int_value() > UINT32_MAX) return OutOfRange("OID");
  return a[0];
}
Result<Datum> OidToInt(EvalContext&, const Expr&, Args a) {
  return Datum::Int(static_cast<int32_t>(static_cast<uint32_t>(a[0].int_value())));
}

// ---- Strings ----

Result<Datum> BoolToText(EvalContext&, const Expr&, Args a) {
  return Datum::Bytes(a[0].bool_value() ? "true" : "false");
}
// Blanks at the end mean nothing in character(n), and are kept where it has no n.
std::string_view WithoutBlanks(std::string_view text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}
Result<Datum> BpcharToText(EvalContext&, const Expr&, Args a) {
  return Datum::Bytes(WithoutBlanks(a[0].bytes()));
}
Result<Datum> TextToName(EvalContext&, const Expr&, Args a) {
  std::string_view text = a[0].bytes();
  if (text.size() > 63) {
    size_t size = 63;
    while (size > 0 && (static_cast<uint8_t>(text[size]) & 0xC0) == 0x80) --size;
    text = text.substr(0, size);
  }
  return Datum::Bytes(text);
}
Result<Datum> BpcharToName(EvalContext& context, const Expr& call, Args a) {
  const Datum text = Datum::Bytes(WithoutBlanks(a[0].bytes()));
  return TextToName(context, call, {&text, 1});
}
Result<Datum> TextToChar(EvalContext&, const Expr&, Args a) {
  return Datum::Int(ParseChar(a[0].bytes()));
}
Result<Datum> CharToText(EvalContext& context, const Expr&, Args a) {
  std::string text;
  AppendChar(static_cast<uint8_t>(a[0].int_value()), &text);
  return TextOf(context, text);
}
Result<Datum> CharToInt(EvalContext&, const Expr&, Args a) {
  return Datum::Int(static_cast<int8_t>(a[0].int_value()));
}
Result<Datum> IntToChar(EvalContext&, const Expr&, Args a) {
  if (a[0].int_value() < INT8_MIN || a[0].int_value() > INT8_MAX) return OutOfRange("\"char\"");
  return Datum::Int(static_cast<uint8_t>(a[0].int_value()));
}

// ---- Dates and times ----

template <typename T>
Result<Datum> IntResult(Result<T> value) {
  if (!value.ok()) return std::move(value).status();
  return Datum::Int(*value);
}
Result<Datum> DateToTimestamp(EvalContext&, const Expr&, Args a) {
  return IntResult(TimestampFromDate(a[0].int_value()));
}
Result<Datum> DateToTimestampTz(EvalContext& context, const Expr&, Args a) {
  return IntResult(TimestampTzFromDate(a[0].int_value(), ZoneOf(context)));
}
Result<Datum> TimestampToDate(EvalContext&, const Expr&, Args a) {
  return Datum::Int(DateFromTimestamp(a[0].int_value()));
}
Result<Datum> TimestampTzToDate(EvalContext& context, const Expr&, Args a) {
  return Datum::Int(DateFromTimestampTz(a[0].int_value(), ZoneOf(context)));
}
Result<Datum> TimestampToTimestampTz(EvalContext& context, const Expr&, Args a) {
  return IntResult(TimestampTzFromTimestamp(a[0].int_value(), ZoneOf(context)));
}
Result<Datum> TimestampTzToTimestamp(EvalContext& context, const Expr&, Args a) {
  return IntResult(TimestampFromTimestampTz(a[0].int_value(), ZoneOf(context)));
}
Result<Datum> TimestampToTime(EvalContext&, const Expr&, Args a) {
  if (!IsFiniteTimestamp(a[0].int_value())) return Datum();
  return Datum::Int(TimeFromTimestamp(a[0].int_value()));
}
Result<Datum> TimestampTzToTime(EvalContext& context, const Expr&, Args a) {
  if (!IsFiniteTimestamp(a[0].int_value())) return Datum();
  CELLAR_TRY_ASSIGN(int64_t local, TimestampFromTimestampTz(a[0].int_value(), ZoneOf(context)));
  return Datum::Int(TimeFromTimestamp(local));
}
Result<Datum> TimestampTzToTimeTz(EvalContext& context, const Expr&, Args a) {
  if (!IsFiniteTimestamp(a[0].int_value())) return Datum();
  return MakeDatum(TimeTzFromTimestampTz(a[0].int_value(), ZoneOf(context)), context.arena());
}
Result<Datum> TimeToTimeTz(EvalContext& context, const Expr&, Args a) {
  return MakeDatum(TimeTzFromTime(a[0].int_value(), context.format), context.arena());
}
Result<Datum> TimeTzToTime(EvalContext&, const Expr&, Args a) {
  return Datum::Int(TimeTzOf(a[0]).micros);
}
Result<Datum> TimeToInterval(EvalContext& context, const Expr&, Args a) {
  return MakeDatum(IntervalFromTime(a[0].int_value()), context.arena());
}
Result<Datum> IntervalToTime(EvalContext&, const Expr&, Args a) {
  return Datum::Int(TimeFromInterval(IntervalOf(a[0])));
}

// ---- JSON ----

Result<Datum> JsonToJsonb(EvalContext& context, const Expr&, Args a) {
  CELLAR_TRY_ASSIGN(std::string_view text, ParseJsonb(a[0].bytes(), context.arena()));
  return Datum::Bytes(text);
}

Status JsonbCastError(JsonType type, Type to) {
  std::string_view name = type == JsonType::kNull      ? "null"
                          : type == JsonType::kString  ? "string"
                          : type == JsonType::kNumber  ? "numeric"
                          : type == JsonType::kBoolean ? "boolean"
                          : type == JsonType::kArray   ? "array"
                                                       : "object";
  Type plain = MakeType(to.id);
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                  "cannot cast jsonb {} to type {}", name, FormatType(plain));
}
Result<Datum> JsonbToBool(EvalContext&, const Expr& call, Args a) {
  JsonType type = JsonTypeOf(a[0].bytes());
  if (type != JsonType::kBoolean) return JsonbCastError(type, call.type);
  return Datum::Bool(a[0].bytes() == "true");
}
Result<Datum> JsonbToNumeric(EvalContext& context, const Expr& call, Args a) {
  JsonType type = JsonTypeOf(a[0].bytes());
  if (type != JsonType::kNumber) return JsonbCastError(type, call.type);
  CELLAR_TRY_ASSIGN(std::string_view value, numeric::Parse(a[0].bytes(), context.arena()));
  return Datum::Bytes(value);
}
template <FunctionSpec::ScalarFn Then>
Result<Datum> JsonbToNumber(EvalContext& context, const Expr& call, Args a) {
  CELLAR_TRY_ASSIGN(Datum number, JsonbToNumeric(context, call, a));
  return Then(context, call, {&number, 1});
}

// ---- Through text ----

Result<Datum> TextToReg(EvalContext& context, const Expr& call, Args a) {
  std::string_view text = a[0].bytes();
  if (context.session == nullptr) {
    return ParseDatum(text, MakeType(call.type.id), context.format, context.arena());
  }
  CELLAR_TRY_ASSIGN(uint32_t oid, context.session->LookupReg(call.type.id, text));
  return Datum::Int(oid);
}

bool IsReg(Type type) {
  return !type.array && type.id >= TypeId::kRegclass && type.id <= TypeId::kRegrole;
}

Result<Datum> CastThroughText(EvalContext& context, const Expr& call, Args a) {
  const Type from = call.args[0]->type;
  Type to = call.type;
  std::string owned;
  std::string_view text;
  if (!from.array && PhysicalOf(from) == Physical::kBytes && !HidesBlanks(from) &&
      (TypeCategory(from) == 'S' || from.id == TypeId::kUnknown || from.id == TypeId::kJson ||
       from.id == TypeId::kJsonb)) {
    text = a[0].bytes();
  } else {
    owned = OutputText(a[0], from, context);
    text = owned;
  }
  if (IsReg(to)) {
    Datum copy = Datum::Bytes(text);
    return TextToReg(context, call, {&copy, 1});
  }
  if (to.id == TypeId::kUnknown) return TextOf(context, text);
  const int32_t modifier = to.modifier;
  if (to.id != TypeId::kInterval && !to.array) to.modifier = -1;
  CELLAR_TRY_ASSIGN(Datum value, ParseDatum(text, to, context.format, context.arena()));
  if (modifier < 0 || value.is_null() || to.modifier >= 0) return value;
  return ApplyModifier(value, call.type, call.explicit_cast, context.arena());
}

// ---- Arrays ----

struct CastPath {
  const FunctionSpec* spec = nullptr;
  bool none = true;  // there is no such cast
};
CastPath FindPath(Type from, Type to, CastContext context);

Result<Datum> CastArray(EvalContext& context, const Expr& call, Args a) {
  const Type from = ElementOf(call.args[0]->type);
  const Type to = ElementOf(call.type);
  CastPath path = FindPath(from, Plain(to), CastContext::kExplicit);
  if (path.none) return InternalError("array cast without an element cast");
  ArrayView view(a[0].bytes(), from);
  Expr element;
  element.kind = ExprKind::kCall;
  element.type = to;
  element.explicit_cast = call.explicit_cast;
  element.args.push_back(MakeNull(HidesBlanks(from) ? from : Plain(from)));
  const FunctionSpec* spec = path.spec;
  if (spec == nullptr && (to.modifier >= 0 || HidesBlanks(from))) spec = &ModifierCastSpec();
  ArrayBuilder builder(to);
  std::vector<int32_t> lengths, bounds;
  for (int i = 0; i < view.dimensions(); ++i) {
    lengths.push_back(view.length(i));
    bounds.push_back(view.lower_bound(i));
  }
  for (size_t i = 0; i < view.size(); ++i) {
    Datum value = view.Get(i);
    if (!value.is_null() && spec != nullptr) {
      CELLAR_TRY_ASSIGN(value, spec->scalar(context, element, {&value, 1}));
      if (spec->relabel && to.modifier >= 0) {
        CELLAR_TRY_ASSIGN(value, ApplyModifier(value, to, call.explicit_cast, context.arena()));
      }
    }
    CELLAR_TRY(context.Step());
    CELLAR_TRY(builder.TryAdd(value));
  }
  if (lengths.empty()) return Datum::Bytes(builder.Finish(context.arena()));
  return Datum::Bytes(builder.Finish(lengths, bounds, context.arena()));
}

Result<Datum> CastModifier(EvalContext& context, const Expr& call, Args a) {
  const Type from = call.args[0]->type;
  if (call.type.modifier < 0 && !HidesBlanks(from)) return a[0];
  if (call.type.array) return CastArray(context, call, a);
  if (call.type.modifier < 0) return TextOf(context, Padded(a[0].bytes(), from));
  return ApplyModifier(a[0], call.type, call.explicit_cast, context.arena());
}

FunctionSpec GenericCast(std::string_view name, FunctionSpec::ScalarFn scalar) {
  FunctionSpec spec;
  spec.name = name;
  spec.args = {MakeType(TypeId::kAny)};
  spec.result = MakeType(TypeId::kAny);
  spec.cast = true;
  spec.scalar = scalar;
  return spec;
}

// Input functions that depend on settings or the catalog.
bool IsStableText(Type type) {
  switch (type.id) {
    case TypeId::kDate:
    case TypeId::kTime:
    case TypeId::kTimetz:
    case TypeId::kTimestamp:
    case TypeId::kTimestamptz:
    case TypeId::kInterval:
    case TypeId::kBytea:
    case TypeId::kFloat4:
    case TypeId::kFloat8:
    case TypeId::kEnum: return true;
    default: return IsReg(MakeType(type.id));
  }
}

const FunctionSpec& StableTextCastSpec() {
  static const FunctionSpec spec = [] {
    FunctionSpec out = GenericCast("cast", CastThroughText);
    out.volatility = Volatility::kStable;
    return out;
  }();
  return spec;
}

// A spec of null with !none: nothing to do.
CastPath FindPath(Type from, Type to, CastContext context) {
  CastPath path;
  if (from.SameKind(to)) {
    path.none = false;
    return path;
  }
  if (!from.array && !to.array) {
    if (const CastSpec* cast = Registry::Get().FindCast(from, to)) {
      if (cast->context <= context) {
        path.none = false;
        path.spec = &cast->spec;
      }
      return path;
    }
  }
  if (to.array && IsArrayLike(from)) {
    CastPath element = FindPath(Plain(ElementOf(from)), ScalarOf(to), context);
    if (element.none) return path;
    path.none = false;
    path.spec = &ArrayCastSpec();
    return path;
  }
  if (from.id == TypeId::kVoid || to.id == TypeId::kVoid) return path;
  bool to_text = context >= CastContext::kAssignment && TypeCategory(to) == 'S';
  bool from_text = context >= CastContext::kExplicit && TypeCategory(from) == 'S';
  if (!to_text && !from_text) return path;
  path.none = false;
  bool stable = IsStableText(from) || IsStableText(to);
  path.spec = stable ? &StableTextCastSpec() : &TextCastSpec();
  return path;
}

ExprPtr WrapCast(ExprPtr expr, const FunctionSpec* spec, Type to, bool is_explicit) {
  auto call = std::make_unique<Expr>();
  call->kind = ExprKind::kCall;
  call->type = to;
  call->location = expr->location;
  call->function = spec;
  call->explicit_cast = is_explicit;
  call->args.push_back(std::move(expr));
  return call;
}

Result<ExprPtr> ReadLiteral(const Expr& expr, Type to, bool is_explicit, EvalContext* fold) {
  if (expr.constant.is_null()) {
    ExprPtr out = MakeNull(to);
    out->location = expr.location;
    return out;
  }
  Arena arena;
  std::string_view text = expr.constant.datum().bytes();
  const FormatSettings defaults;
  const FormatSettings& settings = fold != nullptr ? fold->format : defaults;
  Datum value;
  if (IsReg(to) && fold != nullptr && fold->session != nullptr) {
    Result<uint32_t> oid = fold->session->LookupReg(to.id, text);
    if (!oid.ok()) return std::move(oid).status().WithLocation(expr.location);
    value = Datum::Int(*oid);
  } else {
    Type plain = to;
    if (to.id != TypeId::kInterval && !to.array) plain.modifier = -1;
    Result<Datum> parsed = ParseDatum(text, plain, settings, &arena);
    if (parsed.ok() && plain.modifier != to.modifier) {
      parsed = ApplyModifier(*parsed, to, is_explicit, &arena);
    }
    if (!parsed.ok()) return std::move(parsed).status().WithLocation(expr.location);
    value = *parsed;
  }
  ExprPtr out = MakeConstant(Value(to, value));
  out->location = expr.location;
  return out;
}

}  // namespace

const FunctionSpec& ArrayCastSpec() {
  static const FunctionSpec spec = GenericCast("array_cast", CastArray);
  return spec;
}
const FunctionSpec& TextCastSpec() {
  static const FunctionSpec spec = GenericCast("cast", CastThroughText);
  return spec;
}
const FunctionSpec& ModifierCastSpec() {
  static const FunctionSpec spec = GenericCast("modifier", CastModifier);
  return spec;
}

bool CanCast(Type from, Type to, CastContext context) {
  if (from.SameKind(to)) return true;
  if (!from.array && from.id == TypeId::kUnknown) return true;
  if (!to.array && (to.id == TypeId::kAny || to.id == TypeId::kAnyelement)) return true;
  if (to == MakeType(TypeId::kAnyenum)) return !from.array && from.id == TypeId::kEnum;
  return !FindPath(from, to, context).none;
}

Result<ExprPtr> CastTo(ExprPtr expr, Type to, CastContext context, EvalContext* fold) {
  const Type from = expr->type;
  const bool is_explicit = context == CastContext::kExplicit;
  // Text keeps its collation, whatever else becomes of it.
  to.collation = IsCollatable(to) && IsCollatable(from) ? from.collation : nullptr;
  const CollationSource source = expr->collation_source;
  if (!to.array && (to.id == TypeId::kAny || to.id == TypeId::kAnyelement)) return expr;
  if (to == MakeType(TypeId::kAnyenum) && !from.array && from.id == TypeId::kEnum) return expr;
  if (!from.array && from.id == TypeId::kUnknown && to.id != TypeId::kUnknown) {
    const bool needs_session = IsReg(to) && expr->kind == ExprKind::kConstant &&
                               !expr->constant.is_null() &&
                               (fold == nullptr || fold->session == nullptr);
    if (expr->kind == ExprKind::kConstant && !needs_session) {
      return ReadLiteral(*expr, to, is_explicit, fold);
    }
    return WrapCast(std::move(expr), IsStableText(to) ? &StableTextCastSpec() : &TextCastSpec(), to,
                    is_explicit);
  }
  if (expr->kind == ExprKind::kConstant && expr->constant.is_null()) {
    if (FindPath(from, to, context).none && !from.SameKind(to)) {
      return SqlError(Code::kInvalid, sqlstate::kCannotCoerce, "cannot cast type {} to {}",
                      FormatType(ScalarOf(from)), FormatType(ScalarOf(to)))
          .WithLocation(expr->location);
    }
    ExprPtr out = MakeNull(to);
    out->location = expr->location;
    out->collation_source = source;
    return out;
  }
  CastPath path = FindPath(from, to, context);
  if (path.none) {
    Type plain_from = from, plain_to = to;
    plain_from.modifier = plain_to.modifier = -1;
    return SqlError(Code::kInvalid, sqlstate::kCannotCoerce, "cannot cast type {} to {}",
                    FormatType(plain_from), FormatType(plain_to))
        .WithLocation(expr->location);
  }
  const bool modify = to.modifier >= 0 ? !(from.SameKind(to) && from.modifier == to.modifier)
                                       : from.SameKind(to) && HidesBlanks(from);
  if (path.spec == nullptr && !modify) return expr;
  if (path.spec == nullptr || (path.spec->relabel && modify)) {
    if (path.spec != nullptr) {
      Type plain = to;
      plain.modifier = -1;
      expr = WrapCast(std::move(expr), path.spec, plain, is_explicit);
    }
    path.spec = &ModifierCastSpec();
  }
  const bool foldable =
      expr->kind == ExprKind::kConstant && path.spec->volatility == Volatility::kImmutable;
  const bool relabelled_constant =
      expr->kind == ExprKind::kCall && expr->function->relabel && IsConstantExpr(*expr);
  ExprPtr call = WrapCast(std::move(expr), path.spec, to, is_explicit);
  call->collation_source = source;
  if (!foldable && !relabelled_constant) return call;
  Arena arena;
  EvalContext own;
  EvalContext& eval = fold != nullptr ? *fold : own;
  Arena* before = eval.arena();
  eval.set_arena(&arena);
  Result<Datum> value = EvalScalar(*call, eval);
  eval.set_arena(before);
  if (!value.ok()) return std::move(value).status().WithLocation(call->location);
  ExprPtr out = MakeConstant(Value(to, *value));
  out->location = call->location;
  out->collation_source = source;
  return out;
}

void RegisterCasts(Registry& r) {
  constexpr CastContext kI = CastContext::kImplicit, kA = CastContext::kAssignment,
                        kE = CastContext::kExplicit;
  constexpr Volatility kStable = Volatility::kStable;
  const Type boolean = MakeType(TypeId::kBool), int2 = MakeType(TypeId::kInt2),
             int4 = MakeType(TypeId::kInt4), int8 = MakeType(TypeId::kInt8),
             float4 = MakeType(TypeId::kFloat4), float8 = MakeType(TypeId::kFloat8),
             numeric = MakeType(TypeId::kNumeric), text = MakeType(TypeId::kText),
             varchar = MakeType(TypeId::kVarchar), bpchar = MakeType(TypeId::kBpchar),
             name = MakeType(TypeId::kName), character = MakeType(TypeId::kChar),
             oid = MakeType(TypeId::kOid), json = MakeType(TypeId::kJson),
             jsonb = MakeType(TypeId::kJsonb), date = MakeType(TypeId::kDate),
             time = MakeType(TypeId::kTime), timetz = MakeType(TypeId::kTimetz),
             timestamp = MakeType(TypeId::kTimestamp), timestamptz = MakeType(TypeId::kTimestamptz),
             interval = MakeType(TypeId::kInterval), node_tree = MakeType(TypeId::kPgNodeTree);
  const Type regs[] = {MakeType(TypeId::kRegclass), MakeType(TypeId::kRegtype),
                       MakeType(TypeId::kRegproc), MakeType(TypeId::kRegnamespace),
                       MakeType(TypeId::kRegrole)};

  r.AddRelabel(int2, int4, kI);
  r.AddRelabel(int2, int8, kI);
  r.AddRelabel(int4, int8, kI);
  r.AddCast(int4, int2, kA, NarrowInt<TypeId::kInt2>, Volatility::kImmutable,
            NarrowIntVector<TypeId::kInt2>);
  r.AddCast(int8, int2, kA, NarrowInt<TypeId::kInt2>, Volatility::kImmutable,
            NarrowIntVector<TypeId::kInt2>);
  r.AddCast(int8, int4, kA, NarrowInt<TypeId::kInt4>, Volatility::kImmutable,
            NarrowIntVector<TypeId::kInt4>);
  for (Type from : {int2, int4, int8}) {
    r.AddCast(from, float8, kI, IntToDouble, Volatility::kImmutable, IntToDoubleVector);
    r.AddCast(from, float4, kI, IntToFloat, Volatility::kImmutable, IntToFloatVector);
    r.AddCast(from, numeric, kI, WithModifier<IntToNumeric>);
  }
  r.AddRelabel(float4, float8, kI);
  r.AddCast(float8, float4, kA, DoubleToFloat);
  for (Type from : {float4, float8}) {
    r.AddCast(from, int2, kA, DoubleToInt<TypeId::kInt2>);
    r.AddCast(from, int4, kA, DoubleToInt<TypeId::kInt4>);
    r.AddCast(from, int8, kA, DoubleToInt<TypeId::kInt8>);
  }
  r.AddCast(float4, numeric, kA, WithModifier<FloatToNumeric>);
  r.AddCast(float8, numeric, kA, WithModifier<DoubleToNumeric>);
  r.AddCast(numeric, int2, kA, NumericToInt<TypeId::kInt2>);
  r.AddCast(numeric, int4, kA, NumericToInt<TypeId::kInt4>);
  r.AddCast(numeric, int8, kA, NumericToInt<TypeId::kInt8>);
  r.AddCast(numeric, float4, kI, NumericToFloat);
  r.AddCast(numeric, float8, kI, NumericToDouble);
  r.AddCast(int4, boolean, kE, IntToBool);
  r.AddCast(boolean, int4, kE, Same);

  for (Type to : {text, varchar, bpchar}) r.AddCast(boolean, to, kA, WithModifier<BoolToText>);
  r.AddRelabel(text, varchar, kI);
  r.AddRelabel(varchar, text, kI);
  r.AddCast(bpchar, text, kI, BpcharToText);
  r.AddCast(bpchar, varchar, kI, WithModifier<BpcharToText>);
  r.AddCast(text, bpchar, kI, WithModifier<Same>);
  r.AddCast(varchar, bpchar, kI, WithModifier<Same>);
  r.AddRelabel(name, text, kI);
  r.AddRelabel(name, varchar, kA);
  r.AddCast(name, bpchar, kA, WithModifier<Same>);
  r.AddCast(bpchar, name, kI, BpcharToName);
  for (Type from : {text, varchar}) r.AddCast(from, name, kI, TextToName);
  for (Type from : {text, varchar, bpchar}) {
    r.AddCast(from, character, kA, TextToChar);
  }
  r.AddCast(character, text, kI, CharToText);
  r.AddCast(character, varchar, kA, WithModifier<CharToText>);
  r.AddCast(character, bpchar, kA, WithModifier<CharToText>);
  r.AddCast(character, int4, kE, CharToInt);
  r.AddCast(int4, character, kE, IntToChar);
  r.AddRelabel(node_tree, text, kI);
  r.AddRelabel(MakeType(TypeId::kUnknown), text, kI);

  r.AddCast(int2, oid, kI, IntToOid);
  r.AddCast(int4, oid, kI, IntToOid);
  r.AddCast(int8, oid, kI, BigIntToOid);
  r.AddCast(oid, int4, kA, OidToInt);
  r.AddRelabel(oid, int8, kA);
  for (Type reg : regs) {
    r.AddRelabel(oid, reg, kI);
    r.AddRelabel(reg, oid, kI);
    r.AddRelabel(reg, int8, kA);
    r.AddCast(reg, int4, kA, OidToInt);
    r.AddCast(int2, reg, kI, IntToOid);
    r.AddCast(int4, reg, kI, IntToOid);
    r.AddCast(int8, reg, kI, BigIntToOid);
  }
  r.AddCast(text, regs[0], kI, TextToReg, kStable);
  r.AddCast(varchar, regs[0], kI, TextToReg, kStable);

  r.AddCast(date, timestamp, kI, WithModifier<DateToTimestamp>);
  r.AddCast(date, timestamptz, kI, WithModifier<DateToTimestampTz>, kStable);
  r.AddCast(timestamp, date, kA, TimestampToDate);
  r.AddCast(timestamptz, date, kA, TimestampTzToDate, kStable);
  r.AddCast(timestamp, timestamptz, kI, WithModifier<TimestampToTimestampTz>, kStable);
  r.AddCast(timestamptz, timestamp, kA, WithModifier<TimestampTzToTimestamp>, kStable);
  r.AddCast(timestamp, time, kA, WithModifier<TimestampToTime>);
  r.AddCast(timestamptz, time, kA, WithModifier<TimestampTzToTime>, kStable);
  r.AddCast(timestamptz, timetz, kA, WithModifier<TimestampTzToTimeTz>, kStable);
  r.AddCast(time, timetz, kI, WithModifier<TimeToTimeTz>, kStable);
  r.AddCast(timetz, time, kA, WithModifier<TimeTzToTime>);
  r.AddCast(time, interval, kI, WithModifier<TimeToInterval>);
  r.AddCast(interval, time, kA, WithModifier<IntervalToTime>);

  r.AddCast(json, jsonb, kA, JsonToJsonb);
  r.AddRelabel(jsonb, json, kA);
  r.AddCast(jsonb, boolean, kE, JsonbToBool);
  r.AddCast(jsonb, numeric, kE, WithModifier<JsonbToNumeric>);
  r.AddCast(jsonb, int2, kE, JsonbToNumber<NumericToInt<TypeId::kInt2>>);
  r.AddCast(jsonb, int4, kE, JsonbToNumber<NumericToInt<TypeId::kInt4>>);
  r.AddCast(jsonb, int8, kE, JsonbToNumber<NumericToInt<TypeId::kInt8>>);
  r.AddCast(jsonb, float4, kE, JsonbToNumber<NumericToFloat>);
  r.AddCast(jsonb, float8, kE, JsonbToNumber<NumericToDouble>);
}

}  // namespace cellar::sql
