// Comparison operators of every type, and between types that have such operators.
#include <cmath>

#include "cellar/sql/expr/registry.h"
#include "cellar/types/array.h"
#include "cellar/types/datetime.h"
#include "cellar/types/numeric.h"
#include "cellar/types/record.h"

namespace cellar::sql {
namespace {

using C = Comparison;

constexpr bool Holds(C c, int order) {
  switch (c) {
    case C::kEqual: return order == 0;
    case C::kNotEqual: return order != 0;
    case C::kLess: return order < 0;
    case C::kLessEqual: return order <= 0;
    case C::kGreater: return order > 0;
    case C::kGreaterEqual: return order >= 0;
    case C::kNone: break;
  }
  return false;
}

template <C c, typename T>
constexpr bool HoldsPlain(T a, T b) {
  if constexpr (c == C::kEqual) return a == b;
  if constexpr (c == C::kNotEqual) return a != b;
  if constexpr (c == C::kLess) return a < b;
  if constexpr (c == C::kLessEqual) return a <= b;
  if constexpr (c == C::kGreater) return a > b;
  return a >= b;
}

int OrderDoubles(double a, double b) {
  if (std::isnan(a)) return std::isnan(b) ? 0 : 1;
  if (std::isnan(b)) return -1;
  return a < b ? -1 : a > b;
}

int OrderInts(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

std::string_view Unpadded(std::string_view text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

template <C c>
Result<Datum> CompareInts(EvalContext&, const Expr&, Args a) {
  return Datum::Bool(HoldsPlain<c>(a[0].int_value(), a[1].int_value()));
}

template <C c>
Status CompareIntVectors(EvalContext&, const Expr&, std::span<const ColumnVector* const> args,
                         Selection rows, ColumnVector* result) {
  const int64_t* a = args[0]->ints();
  const int64_t* b = args[1]->ints();
  int64_t* out = result->ints();
  if (rows.rows == nullptr) {
    for (size_t i = 0; i < rows.count; ++i) out[i] = HoldsPlain<c>(a[i], b[i]);
  } else {
    for (size_t i = 0; i < rows.count; ++i) {
      uint32_t row = rows.rows[i];
      out[row] = HoldsPlain<c>(a[row], b[row]);
    }
  }
  return Status();
}

template <C c>
Result<Datum> CompareDoubles(EvalContext&, const Expr&, Args a) {
  return Datum::Bool(Holds(c, OrderDoubles(a[0].double_value(), a[1].double_value())));
}

template <C c>
Status CompareDoubleVectors(EvalContext&, const Expr&, std::span<const ColumnVector* const> args,
                            Selection rows, ColumnVector* result) {
  const double* a = args[0]->doubles();
  const double* b = args[1]->doubles();
  int64_t* out = result->ints();
  for (size_t i = 0; i < rows.count; ++i) {
    uint32_t row = rows[i];
    out[row] = Holds(c, OrderDoubles(a[row], b[row]));
  }
  return Status();
}

template <C c>
Result<Datum> CompareBytes(EvalContext&, const Expr&, Args a) {
  return Datum::Bool(HoldsPlain<c>(a[0].bytes(), a[1].bytes()));
}

template <C c>
Status CompareBytesVectors(EvalContext&, const Expr&, std::span<const ColumnVector* const> args,
                           Selection rows, ColumnVector* result) {
  const std::string_view* a = args[0]->bytes();
  const std::string_view* b = args[1]->bytes();
  int64_t* out = result->ints();
  for (size_t i = 0; i < rows.count; ++i) {
    uint32_t row = rows[i];
    if (result->nulls()[row] == 0) out[row] = HoldsPlain<c>(a[row], b[row]);
  }
  return Status();
}

template <C c>
Result<Datum> CompareBpchar(EvalContext&, const Expr&, Args a) {
  return Datum::Bool(Holds(c, Unpadded(a[0].bytes()).compare(Unpadded(a[1].bytes()))));
}
template <C c>
Result<Datum> CompareNumeric(EvalContext&, const Expr&, Args a) {
  return Datum::Bool(Holds(c, numeric::Compare(a[0].bytes(), a[1].bytes())));
}
template <C c>
Status CompareNumericVectors(EvalContext&, const Expr&, std::span<const ColumnVector* const> args,
                             Selection rows, ColumnVector* result) {
  const std::string_view* a = args[0]->bytes();
  const std::string_view* b = args[1]->bytes();
  int64_t* out = result->ints();
  for (size_t i = 0; i < rows.count; ++i) {
    uint32_t row = rows[i];
    if (result->nulls()[row] == 0) out[row] = Holds(c, numeric::Compare(a[row], b[row]));
  }
  return Status();
}
template <C c, TypeId id>
Result<Datum> CompareAs(EvalContext&, const Expr&, Args a) {
  return Datum::Bool(Holds(c, CompareDatums(a[0], a[1], MakeType(id))));
}
template <C c>
Result<Datum> CompareArray(EvalContext&, const Expr& call, Args a) {
  Type element = MakeType(ElementOf(call.args[0]->type).id);
  element.collation = call.args[0]->type.collation;
  if (element.id == TypeId::kRecord) {
    CELLAR_TRY_ASSIGN(const int order, CompareWithRecords(a[0], a[1], ArrayOf(element)));
    return Datum::Bool(Holds(c, order));
  }
  return Datum::Bool(Holds(c, CompareArrays(a[0].bytes(), a[1].bytes(), element)));
}
template <C c>
Result<Datum> CompareRecord(EvalContext&, const Expr&, Args a) {
  CELLAR_TRY_ASSIGN(int order, CompareRecords(a[0].bytes(), a[1].bytes()));
  return Datum::Bool(Holds(c, order));
}

// Dates and timestamps compare as local time of the day's start.
int64_t DateAsTimestamp(int64_t days) {
  if (days == kDateInfinity) return kTimestampInfinity;
  if (days == kDateNegativeInfinity) return kTimestampNegativeInfinity;
  // Later than any timestamp: still below infinity, as PostgreSQL has it.
  if (days >= kEndTimestamp / kMicrosPerDay) return kTimestampInfinity - 1;
  return days * kMicrosPerDay;
}
int64_t LocalAsInstant(int64_t micros, EvalContext& context) {
  if (!IsFiniteTimestamp(micros) || micros == kTimestampInfinity - 1) return micros;
  Result<int64_t> instant = TimestampTzFromTimestamp(micros, ZoneOf(context));
  return instant.ok() ? *instant : micros;
}
template <TypeId id>
int64_t AsInstant(Datum value, EvalContext& context, bool zoned) {
  int64_t micros = value.int_value();
  if (id == TypeId::kDate) micros = DateAsTimestamp(micros);
  if (zoned && id != TypeId::kTimestamptz) micros = LocalAsInstant(micros, context);
  return micros;
}
template <C c, TypeId left, TypeId right>
Result<Datum> CompareTimes(EvalContext& context, const Expr&, Args a) {
  constexpr bool zoned = left == TypeId::kTimestamptz || right == TypeId::kTimestamptz;
  return Datum::Bool(Holds(
      c, OrderInts(AsInstant<left>(a[0], context, zoned), AsInstant<right>(a[1], context, zoned))));
}

struct Symbol {
  C comparison;
  std::string_view text;
};

// Adds all six operators; `make` gives (scalar, vector) for each.
template <typename Adder>
void AddSix(Adder add) {
  add.template operator()<C::kEqual>("=");
  add.template operator()<C::kNotEqual>("<>");
  add.template operator()<C::kLess>("<");
  add.template operator()<C::kLessEqual>("<=");
  add.template operator()<C::kGreater>(">");
  add.template operator()<C::kGreaterEqual>(">=");
}

void AddInts(Registry& r, Type left, Type right) {
  AddSix([&]<C c>(std::string_view op) {
    FunctionSpec& spec = r.AddComparison(op, c, left, right, CompareInts<c>);
    spec.vector = CompareIntVectors<c>;
    spec.kernel = Kernel::kInts;
  });
}
void AddDoubles(Registry& r, Type left, Type right) {
  AddSix([&]<C c>(std::string_view op) {
    FunctionSpec& spec = r.AddComparison(op, c, left, right, CompareDoubles<c>);
    spec.vector = CompareDoubleVectors<c>;
    spec.kernel = Kernel::kDoubles;
  });
}
void AddBytes(Registry& r, Type left, Type right) {
  AddSix([&]<C c>(std::string_view op) {
    FunctionSpec& spec = r.AddComparison(op, c, left, right, CompareBytes<c>);
    spec.vector = CompareBytesVectors<c>;
    spec.kernel = Kernel::kBytes;
  });
}
template <TypeId id>
void AddGeneric(Registry& r) {
  AddSix([&]<C c>(std::string_view op) {
    r.AddComparison(op, c, MakeType(id), MakeType(id), CompareAs<c, id>);
  });
}
template <TypeId left, TypeId right>
void AddTimes(Registry& r) {
  AddSix([&]<C c>(std::string_view op) {
    FunctionSpec& spec =
        r.AddComparison(op, c, MakeType(left), MakeType(right), CompareTimes<c, left, right>);
    if (left == TypeId::kTimestamptz || right == TypeId::kTimestamptz) {
      spec.volatility = Volatility::kStable;
    }
  });
}

}  // namespace

void RegisterComparisons(Registry& r) {
  const Type ints[] = {MakeType(TypeId::kInt2), MakeType(TypeId::kInt4), MakeType(TypeId::kInt8)};
  for (Type left : ints) {
    for (Type right : ints) AddInts(r, left, right);
  }
  for (TypeId id : {TypeId::kBool, TypeId::kOid, TypeId::kChar, TypeId::kDate, TypeId::kTime,
                    TypeId::kTimestamp, TypeId::kTimestamptz, TypeId::kAnyenum}) {
    AddInts(r, MakeType(id), MakeType(id));
  }
  const Type floats[] = {MakeType(TypeId::kFloat4), MakeType(TypeId::kFloat8)};
  for (Type left : floats) {
    for (Type right : floats) AddDoubles(r, left, right);
  }
  const Type text = MakeType(TypeId::kText), name = MakeType(TypeId::kName);
  AddBytes(r, text, text);
  AddBytes(r, name, name);
  AddBytes(r, name, text);
  AddBytes(r, text, name);
  AddBytes(r, MakeType(TypeId::kBytea), MakeType(TypeId::kBytea));
  AddBytes(r, MakeType(TypeId::kUuid), MakeType(TypeId::kUuid));
  AddSix([&]<C c>(std::string_view op) {
    Type type = MakeType(TypeId::kBpchar);
    r.AddComparison(op, c, type, type, CompareBpchar<c>);
  });
  AddSix([&]<C c>(std::string_view op) {
    Type type = MakeType(TypeId::kNumeric);
    r.AddComparison(op, c, type, type, CompareNumeric<c>).vector = CompareNumericVectors<c>;
  });
  AddGeneric<TypeId::kTimetz>(r);
  AddGeneric<TypeId::kInterval>(r);
  AddGeneric<TypeId::kJsonb>(r);
  AddGeneric<TypeId::kOidvector>(r);
  for (const auto& [op, comparison] : {std::pair("=", C::kEqual), std::pair("<>", C::kNotEqual)}) {
    Type xid = MakeType(TypeId::kXid), int4 = MakeType(TypeId::kInt4);
    auto scalar = comparison == C::kEqual ? CompareInts<C::kEqual> : CompareInts<C::kNotEqual>;
    r.AddComparison(op, comparison, xid, xid, scalar);
    r.AddComparison(op, comparison, xid, int4, scalar);
  }
  r.AddComparison("=", C::kEqual, MakeType(TypeId::kAclitem), MakeType(TypeId::kAclitem),
                  CompareBytes<C::kEqual>);
  AddSix([&]<C c>(std::string_view op) {
    Type type = MakeType(TypeId::kAnyarray);
    r.AddComparison(op, c, type, type, CompareArray<c>);
  });
  AddSix([&]<C c>(std::string_view op) {
    Type type = MakeType(TypeId::kRecord);
    r.AddComparison(op, c, type, type, CompareRecord<c>);
  });
  AddTimes<TypeId::kDate, TypeId::kTimestamp>(r);
  AddTimes<TypeId::kTimestamp, TypeId::kDate>(r);
  AddTimes<TypeId::kDate, TypeId::kTimestamptz>(r);
  AddTimes<TypeId::kTimestamptz, TypeId::kDate>(r);
  AddTimes<TypeId::kTimestamp, TypeId::kTimestamptz>(r);
  AddTimes<TypeId::kTimestamptz, TypeId::kTimestamp>(r);
}

}  // namespace cellar::sql
