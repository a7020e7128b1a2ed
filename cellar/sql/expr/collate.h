// Which collation a comparison goes by: PostgreSQL 15 manual, section 24.2.1.
#pragma once

#include <span>

#include "cellar/sql/expr/expr.h"
#include "cellar/types/collation.h"

namespace cellar::sql {

// `expr COLLATE ...`: the expression under this collation (null: by bytes), which others yield to.
ExprPtr WithCollation(ExprPtr expr, const Collation* collation);
// Is it the call that WithCollation makes?
bool IsCollate(const Expr& expr);

struct InputCollation {
  const Collation* collation = nullptr;
  CollationSource source = CollationSource::kImplicit;
};
// Of the expressions together. Errors: 42P21 for two explicit ones; two implicit ones that differ
// are kConflict, which is an error for whoever compares by it.
Result<InputCollation> CollationOfAll(std::span<const Expr* const> exprs);

// Of a value that may be of several parts (CASE, COALESCE, ARRAY[..]) too.
CollationSource SourceOfCollation(const Expr& expr);
// For values that are sorted, grouped by or told apart. Errors: 42P21 for one of columns whose
// collations do not agree.
Status CheckAgreed(const Expr& expr);
// The same for inputs of one output: those of a set operation.
Status CollationMismatch(std::span<const Expr* const> exprs, int location);

// For a call of `function` with these arguments: brings those of a comparison to one collation, and
// changes `function` to one that goes by it; gives text that comes out of a call its collation.
// Errors: 42P21, 42P22 for a comparison without a collation, 0A000 for searches under one that is
// not deterministic.
Status Collate(const FunctionSpec** function, std::span<ExprPtr> args, Type* result,
               CollationSource* source);
// For values that are compared without a function, as in x IN (...).
Status CollateEqually(std::span<ExprPtr> exprs);

// Do equal texts, under either collation, have equal bytes?
inline bool EqualByBytes(const Collation* collation) {
  return collation == nullptr || collation->deterministic;
}

}  // namespace cellar::sql
