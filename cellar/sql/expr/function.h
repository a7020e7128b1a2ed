// Functions, operators, casts and aggregates: what there is, and which one a call means.
//
// The registry is a static table made on first use. Resolution follows PostgreSQL 15's rules
// (manual, chapter 10): exact match, then implicit casts, preferring exact types and preferred
// types of a category; unknown literals take the other side's type or text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/sql/expr/expr.h"
#include "cellar/types/batch.h"

namespace cellar::sql {

class EvalContext;  // eval.h

enum class Volatility : uint8_t { kImmutable, kStable, kVolatile };

// The rows of a batch to compute: rows[0..count), ascending; null `rows` means 0..count.
struct Selection {
  const uint32_t* rows = nullptr;
  size_t count = 0;
  uint32_t operator[](size_t i) const { return rows ? rows[i] : static_cast<uint32_t>(i); }
};

// The rows of one call of a set-returning function, made as they are asked for. One thread at a
// time.
class SetRows {
 public:
  virtual ~SetRows() = default;
  // Appends at most `most` rows to the columns, which have the types of the function's row, and
  // returns how many; 0 at the end. Their bytes live in context.arena(), in the arguments, or in
  // this object until its next call.
  virtual Result<size_t> Next(EvalContext& context, size_t most,
                              std::span<ColumnVector* const> columns) = 0;
};
using SetRowsPtr = std::unique_ptr<SetRows>;

struct FunctionSpec {
  std::string_view
      name;  // operators by their symbol: "+", "~~" (LIKE), "~~*" (ILIKE), "||"; casts: "int4"...
  std::vector<Type> args;
  Type result;            // kAnyelement/kAnyarray follow the arguments
  bool variadic = false;  // the last argument repeats
  bool strict = true;     // NULL in, NULL out, without a call
  Volatility volatility = Volatility::kImmutable;
  uint32_t oid = 0;  // pg_proc oid where one is well known
  // Row at a time; bytes of the result live in context.arena() or the arguments.
  using ScalarFn = Result<Datum> (*)(EvalContext& context, const Expr& call,
                                     std::span<const Datum> args);
  ScalarFn scalar = nullptr;
  // Whole vectors (preferred when set): arguments are full-length vectors valid at the selected
  // rows; writes result rows at the same positions. NULLs of strict functions are handled by the
  // caller beforehand (result NULL where any argument is), values at NULL rows may be anything.
  using VectorFn = Status (*)(EvalContext& context, const Expr& call,
                              std::span<const ColumnVector* const> args, Selection rows,
                              ColumnVector* result);
  VectorFn vector = nullptr;
  // Set for comparison operators, so that planners can use them with indexes.
  enum class Comparison : uint8_t {
    kNone,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual
  };
  Comparison comparison = Comparison::kNone;
  // Set-returning (generate_series, unnest, ...): evaluated by FunctionScan and ProjectSet through
  // `set`. The arguments' bytes outlive the rows; null: there are no rows.
  using SetFn = Result<SetRowsPtr> (*)(EvalContext& context, const Expr& call,
                                       std::span<const Datum> args);
  SetFn set = nullptr;
  std::vector<std::pair<std::string, Type>> set_columns;  // names and types of its rows
  // A cast; prints as (x)::type. A relabel is a cast that changes no bytes: the evaluator skips it.
  bool cast = false;
  bool relabel = false;
  // Several kAnyelement and kAnyarray arguments are brought to their common type (anycompatible).
  bool compatible = false;
  // kAnyelement does not stand for an array here.
  bool nonarray = false;
  // Comparisons of plain words: what fused filters and hashed lists may do without a call. kBytes
  // compares as unsigned bytes.
  enum class Kernel : uint8_t { kNone, kInts, kDoubles, kBytes };
  Kernel kernel = Kernel::kNone;
};

struct ResolvedFunction {
  const FunctionSpec* spec = nullptr;
  std::vector<Type> arg_types;  // what each argument must be cast to
  Type result;
};

// Errors: 42883 with PostgreSQL's message and hint ("function foo(integer) does not exist",
// "operator does not exist: text + integer"), 42725 when ambiguous.
Result<ResolvedFunction> ResolveFunction(std::string_view name, std::span<const Type> args);
// Prefix operators have one argument.
Result<ResolvedFunction> ResolveOperator(std::string_view op, std::span<const Type> args);
bool FunctionExists(std::string_view name);

enum class CastContext : uint8_t { kImplicit, kAssignment, kExplicit };
// Casts exist between these types in this context (modifiers ignored).
bool CanCast(Type from, Type to, CastContext context);
// Wraps `expr` in the casts that make it `to`, modifier included; folds constants (an unknown
// literal becomes a constant of `to`, 22P02 if it does not read). Errors: 42846 cannot cast, 42804
// in assignment context
// ("column "a" is of type integer but expression is of type text" is the caller's to say).
Result<ExprPtr> CastTo(ExprPtr expr, Type to, CastContext context, EvalContext* fold);
// pg_type.typcategory and typispreferred: 'N' with float8 and oid preferred, and so on.
char TypeCategory(Type type);
bool IsPreferredType(Type type);
// The common type of UNION, CASE, VALUES, COALESCE, ARRAY arms (manual 10.5). 42804 when there is
// none.
Result<Type> CommonType(std::span<const Type> types, std::string_view what);
// The type of arrays whose elements are of this one. Errors: 42704 where there is none: of arrays
// (ARRAY[a] of arrays is of their own type) and of pseudo-types.
Result<Type> ArrayTypeFor(Type element);
// The operator's mate when its operands change places (< for >), null if none.
const FunctionSpec* Commutator(const FunctionSpec& op);
// The operator that is true where this comparison is false (<> for =), null if none.
const FunctionSpec* Negator(const FunctionSpec& op);
const FunctionSpec* EqualityOperator(Type type);
const FunctionSpec* LessOperator(Type type);

// Aggregates keep one state per group, in arrays indexed by group.
class AggregateState {
 public:
  virtual ~AggregateState() = default;
  // Makes room for groups [0, count).
  virtual void Resize(size_t groups) = 0;
  // Adds row rows[i] of the argument vectors to group groups[i]. NULL arguments are already left
  // out for strict aggregates; DISTINCT, FILTER and ORDER BY are handled by the operator.
  virtual Status Add(EvalContext& context, std::span<const ColumnVector* const> args,
                     Selection rows, const uint32_t* groups) = 0;
  // The same for rows that all belong to one group.
  virtual Status AddToGroup(EvalContext& context, std::span<const ColumnVector* const> args,
                            Selection rows, uint32_t group) {
    return Add(context, args, rows, std::vector<uint32_t>(rows.count, group).data());
  }
  // Appends results of groups [start, end) to `result`.
  virtual Status Finish(EvalContext& context, size_t start, size_t end, ColumnVector* result) = 0;
  virtual size_t footprint_bytes() const = 0;
};

struct AggregateSpec {
  std::string_view name;
  std::vector<Type> args;  // empty for count(*)
  Type result;
  bool strict = true;     // skips rows with a NULL argument
  bool nonarray = false;  // kAnyelement does not stand for an array
  std::unique_ptr<AggregateState> (*make)(std::span<const Type> arg_types) = nullptr;
};
struct ResolvedAggregate {
  const AggregateSpec* spec = nullptr;
  std::vector<Type> arg_types;
  Type result;
};
bool IsAggregate(std::string_view name);
Result<ResolvedAggregate> ResolveAggregate(std::string_view name, std::span<const Type> args,
                                           bool star);

// Every function, for pg_proc and completion.
std::span<const FunctionSpec> AllFunctions();
std::span<const AggregateSpec> AllAggregates();

}  // namespace cellar::sql
