// Bound expressions: what the planner makes of SQL text and the executor evaluates over batches.
//
// One tagged struct; names are resolved, overloads chosen, casts explicit. Immutable once planned,
// shared by all executions of a plan.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/types/datum.h"
#include "cellar/types/type.h"

namespace cellar::sql {

struct FunctionSpec;  // function.h

enum class ExprKind : uint8_t {
  kConstant,       // constant
  kColumn,         // column `index` of the input batch
  kParameter,      // $(index + 1) of the statement
  kExecParameter,  // slot `index` set by an outer plan node (correlated subqueries, nested loops)
  kCall,           // function(args): functions, operators and casts alike
  kAnd,            // args, any number; SQL three-valued; later args are evaluated only where needed
  kOr,
  kNot,
  kCase,  // args: when1, then1, when2, then2, ..., else (always present, maybe NULL constant);
          // CASE x WHEN y becomes x = y
  kCoalesce,
  kNullIf,  // args: a, b; function is the = to compare them
  kGreatest,
  kLeast,
  kIsNull,
  kIsNotNull,
  kIsTrue,  // boolean tests, two-valued results
  kIsNotTrue,
  kIsFalse,
  kIsNotFalse,
  kIsUnknown,
  kIsNotUnknown,
  kIsDistinct,  // args: a, b of one type
  kIsNotDistinct,
  kInList,  // args: x, item1, item2, ... of one type; NULL semantics of OR of =
  kNotInList,
  kArray,      // ARRAY[args]
  kSubscript,  // args: array, index
  kAnyArray,   // args: x, array; function compares x with an element: x op ANY (array)
  kAllArray,
  kRow,      // ROW(args), a record; with names, a relation's row: see FieldCount (record_field.h)
  kSubplan,  // see SubplanKind; `index` names the plan among the statement's subplans
};

enum class SubplanKind : uint8_t {
  kScalar,  // its one column of at most one row (21000 otherwise); NULL when empty
  kExists,
  kAny,  // args: left operands; x op ANY (subquery), with `function` comparing left with its column
  kAll,
  kArray,  // ARRAY(subquery)
};

// Where the collation of an expression's type comes from.
enum class CollationSource : uint8_t {
  kImplicit,  // a column, or none: the types of several have to agree
  kExplicit,  // COLLATE: goes before those of others
  kConflict,  // columns that do not agree: it may not be compared
};

struct Expr {
  ExprKind kind = ExprKind::kConstant;
  Type type;
  int location = -1;  // byte offset in the statement, for error positions
  int index = 0;
  SubplanKind subplan_kind = SubplanKind::kScalar;
  const FunctionSpec* function = nullptr;  // static lifetime
  bool explicit_cast = false;  // a cast the user wrote: varchar(n) truncates instead of failing
  CollationSource collation_source = CollationSource::kImplicit;
  Value constant;
  std::vector<std::unique_ptr<Expr>> args;
  std::vector<std::string> names;  // kRow: names of its fields; empty is f1, f2, ...
  // kSubplan of a correlated query: slots to fill, and the expressions (over the input batch) to
  // fill them with, before each run. Empty: the subplan runs once per execution and its result is
  // kept.
  std::vector<int> slots;
  std::vector<std::unique_ptr<Expr>> slot_values;
};
using ExprPtr = std::unique_ptr<Expr>;

ExprPtr MakeConstant(Value value);
ExprPtr MakeBoolConstant(bool value);
ExprPtr MakeNull(Type type);
ExprPtr MakeColumn(int index, Type type);
ExprPtr CloneExpr(const Expr& expr);
// Same shape, functions, constants and columns.
bool ExprEquals(const Expr& a, const Expr& b);
// No columns, parameters, slots, subplans or volatile functions below: may be folded.
// Stable functions (now(), text to timestamptz) are not folded either: plans outlive statements.
bool IsConstantExpr(const Expr& expr);
// No columns, subplans or volatile functions below: one value for all rows of an evaluation.
bool IsRowIndependent(const Expr& expr);
// The expression below casts that change no bytes (varchar to text): what an index on a column
// sees.
const Expr& StripRelabel(const Expr& expr);
// Largest number of arguments, columns used, and so on are left to walkers:
template <typename F>
void VisitExpr(const Expr& expr, F&& f) {  // parents first
  f(expr);
  for (const ExprPtr& arg : expr.args) VisitExpr(*arg, f);
  for (const ExprPtr& arg : expr.slot_values) VisitExpr(*arg, f);
}
template <typename F>
void VisitExprMutable(Expr* expr, F&& f) {
  f(expr);
  for (ExprPtr& arg : expr->args) VisitExprMutable(arg.get(), f);
  for (ExprPtr& arg : expr->slot_values) VisitExprMutable(arg.get(), f);
}

}  // namespace cellar::sql
