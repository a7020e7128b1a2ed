// enum_first, enum_last, enum_range (PostgreSQL 15 manual, section 9.10). Only the arguments' types
// matter, but for the two ends of a range.
#include "cellar/sql/expr/registry.h"
#include "cellar/types/array.h"
#include "cellar/types/enum_type.h"

namespace cellar::sql {
namespace {

Result<const EnumType*> TypeOfCall(const Expr& call) {
  const EnumType* type = call.args[0]->type.enumeration;
  if (type != nullptr) return type;
  return SqlError(Code::kInvalid, sqlstate::kFeatureNotSupported,
                  "could not determine actual enum type");
}

template <bool last>
Result<Datum> Extreme(EvalContext&, const Expr& call, Args) {
  CELLAR_TRY_ASSIGN(const EnumType* type, TypeOfCall(call));
  if (type->labels.empty()) {
    return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                    "enum {} contains no values", FormatType(call.args[0]->type));
  }
  return Datum::Int(last ? type->labels.back().code : type->labels.front().code);
}

Result<Datum> Range(EvalContext& context, const Expr& call, Args a) {
  CELLAR_TRY_ASSIGN(const EnumType* type, TypeOfCall(call));
  ArrayBuilder builder(MakeEnum(type));
  const bool bounded = a.size() == 2;
  for (const EnumLabel& label : type->labels) {
    if (bounded && !a[0].is_null() && label.code < a[0].int_value()) continue;
    if (bounded && !a[1].is_null() && label.code > a[1].int_value()) continue;
    builder.Add(Datum::Int(label.code));
  }
  return Datum::Bytes(builder.Finish(context.arena()));
}

}  // namespace

void RegisterEnums(Registry& r) {
  constexpr Volatility kStable = Volatility::kStable;
  r.Add("enum_first(anyenum) anyenum", Extreme<false>, kStable).strict = false;
  r.Add("enum_last(anyenum) anyenum", Extreme<true>, kStable).strict = false;
  r.Add("enum_range(anyenum) anyarray", Range, kStable).strict = false;
  r.Add("enum_range(anyenum, anyenum) anyarray", Range, kStable).strict = false;
}

}  // namespace cellar::sql
