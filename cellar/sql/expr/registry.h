// The static table of functions, operators, casts and aggregates, and the helpers with which the
// files of this folder fill it. Not for other layers: they resolve by function.h.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/expr/eval.h"
#include "cellar/sql/expr/function.h"
#include "cellar/types/value_size.h"

namespace cellar::sql {

using Args = std::span<const Datum>;
using Comparison = FunctionSpec::Comparison;
using Kernel = FunctionSpec::Kernel;

struct CastSpec {
  FunctionSpec spec;
  CastContext context = CastContext::kExplicit;
};

// Immutable after it was made.
class Registry {
 public:
  // Made on first use; about a millisecond.
  static const Registry& Get();

  // By signature: "lpad(text, int4, text) text", "+(int4, int4) int4", "concat(any...) text"
  // (variadic), "unnest(anyarray) setof anyelement". The text must be a literal. The reference is
  // good until the next Add.
  FunctionSpec& Add(std::string_view signature, FunctionSpec::ScalarFn scalar,
                    Volatility volatility = Volatility::kImmutable);
  FunctionSpec& AddSet(std::string_view signature, FunctionSpec::SetFn set,
                       Volatility volatility = Volatility::kImmutable);
  FunctionSpec& AddComparison(std::string_view op, Comparison comparison, Type left, Type right,
                              FunctionSpec::ScalarFn scalar);
  void AddCast(Type from, Type to, CastContext context, FunctionSpec::ScalarFn scalar,
               Volatility volatility = Volatility::kImmutable,
               FunctionSpec::VectorFn vector = nullptr);
  void AddRelabel(Type from, Type to, CastContext context);
  void AddAggregate(std::string_view signature,
                    std::unique_ptr<AggregateState> (*make)(std::span<const Type> arg_types),
                    bool strict = true);

  std::span<const FunctionSpec> functions() const { return functions_; }
  std::span<const AggregateSpec> aggregates() const { return aggregates_; }
  std::span<const FunctionSpec* const> Named(std::string_view name) const;
  std::span<const AggregateSpec* const> AggregatesNamed(std::string_view name) const;
  // The pg_cast entry between two types that are not arrays; null if there is none.
  const CastSpec* FindCast(Type from, Type to) const;

 private:
  Registry();
  void BuildIndex();

  std::vector<FunctionSpec> functions_;
  std::vector<AggregateSpec> aggregates_;
  std::unordered_map<uint32_t, CastSpec> casts_;
  std::unordered_map<std::string_view, std::vector<const FunctionSpec*>> by_name_;
  std::unordered_map<std::string_view, std::vector<const AggregateSpec*>> aggregates_by_name_;
};

// The object id in pg_proc of a function by its signature; 0 if it has none.
uint32_t FindFunctionOid(const FunctionSpec& spec);

// Each file of functions adds its own.
void RegisterOperators(Registry& registry);
void RegisterComparisons(Registry& registry);
void RegisterCasts(Registry& registry);
void RegisterMath(Registry& registry);
void RegisterText(Registry& registry);
void RegisterTextFormats(Registry& registry);
void RegisterPatterns(Registry& registry);
void RegisterDateTime(Registry& registry);
void RegisterArrays(Registry& registry);
void RegisterSets(Registry& registry);
void RegisterEnums(Registry& registry);
void RegisterJson(Registry& registry);
void RegisterSystem(Registry& registry);
void RegisterAggregates(Registry& registry);
void RegisterPlainAggregates(Registry& registry);
void RegisterOrderedAggregates(Registry& registry);

// Casts that are found by rule and not in the table: arrays by element, and any type by its text.
const FunctionSpec& ArrayCastSpec();
const FunctionSpec& TextCastSpec();
// To the same type with another modifier.
const FunctionSpec& ModifierCastSpec();

// int4 for int4[], int2 for int2vector; kInvalid otherwise.
Type ElementOf(Type type);
// The array type of an element: int2[] for int2.
inline Type ArrayTypeOf(Type element) { return ArrayOf(element); }
inline bool IsArrayLike(Type type) { return ElementOf(type).id != TypeId::kInvalid; }

// The state of min or max over values that are words.
std::unique_ptr<AggregateState> MakePlainExtreme(Physical physical, bool greatest);

// ---- For function bodies ----

// A new value of these bytes. Errors: 54000 when it would be too large.
inline Result<Datum> TextOf(EvalContext& context, std::string_view text) {
  CELLAR_TRY(CheckValueSize(text.size()));
  return Datum::Bytes(context.arena()->Copy(text));
}
// Asked before `more` bytes are appended to a new value: it stays within the bound, and the
// statement is to go on. Errors: 54000, 57014.
inline Status MayGrow(EvalContext& context, const std::string& value, size_t more) {
  CELLAR_TRY(CheckValueSize(value.size() + more));
  return context.StepOver(more);
}
inline const TimeZone* ZoneOf(EvalContext& context) { return context.format.time_zone; }
// x op ANY or ALL (array) for one row; `e` is the kAnyArray or kAllArray.
Result<Datum> CompareWithArray(const Expr& e, Datum value, Datum array, EvalContext& context);
// XX000: a function or a subquery gave a value that its expression's type does not have. Never
// foreign memory instead (types/datum.h).
Status WrongForm(const Expr& e);
// The value of a call of function.scalar, which has the form of the call's type. Functions make
// texts and lists beside their results, of about the size of what they are given: while a call over
// a megabyte or more runs, that much is charged. Errors: the function's, 53200, XX000 for a value
// of another form.
Result<Datum> CallLong(const Expr& call, EvalContext& context, std::span<const Datum> args);
inline Result<Datum> CallScalar(const Expr& call, EvalContext& context,
                                std::span<const Datum> args) {
  constexpr size_t kLongBytes = size_t{1} << 20;
  size_t bytes = 0;
  for (const Datum& arg : args) bytes += arg.byte_count();
  if (bytes >= kLongBytes) return CallLong(call, context, args);
  Result<Datum> value = call.function->scalar(context, call, args);
  if (value.ok() && !HasForm(*value, call.type)) return WrongForm(call);
  return value;
}
// The text form of a value, as its output function gives it. Text of more than kMaxValueBytes is
// cut off behind them, and whoever makes a value of it is refused by MayGrow or TextOf.
std::string OutputText(Datum value, Type type, EvalContext& context);
// The same as a cast to text gives it: booleans are words.
std::string CastText(Datum value, Type type, EvalContext& context);
// char(n) with its padding, as pattern operators see it.
std::string Padded(std::string_view text, Type type);

// Sets of which `next` makes a row at a time: Result<bool>(EvalContext&, std::span<Datum> row), one
// value a column, false at the end.
template <typename NextRow>
class RowByRow final : public SetRows {
 public:
  explicit RowByRow(NextRow next) : next_(std::move(next)) {}
  Result<size_t> Next(EvalContext& context, size_t most,
                      std::span<ColumnVector* const> columns) override {
    row_.resize(columns.size());
    size_t rows = 0;
    for (; rows < most && !done_; ++rows) {
      CELLAR_TRY(context.Step());
      CELLAR_TRY_ASSIGN(const bool more, next_(context, std::span<Datum>(row_)));
      if (!more) {
        done_ = true;
        break;
      }
      for (size_t c = 0; c < columns.size(); ++c) columns[c]->Append(row_[c]);
    }
    return rows;
  }

 private:
  NextRow next_;
  std::vector<Datum> row_;
  bool done_ = false;
};
template <typename NextRow>
SetRowsPtr MakeRowByRow(NextRow next) {
  return std::make_unique<RowByRow<NextRow>>(std::move(next));
}
// Of few rows, all made beforehand.
using StoredSet = std::vector<std::vector<Value>>;
SetRowsPtr MakeStoredSet(StoredSet rows);

// Body of a scalar function: CELLAR_SCALAR { return Datum::Int(a[0].int_value()); }
#define CELLAR_SCALAR [](EvalContext & context, const Expr& call, Args a) -> Result<Datum>

}  // namespace cellar::sql
