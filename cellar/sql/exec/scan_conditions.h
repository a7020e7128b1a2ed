// The filter of a scan, split: comparisons of a column with a value that holds for the whole run go
// to the table layer, which decides on stored bytes; the rest is evaluated here. Private to this
// layer.
#pragma once

#include <optional>
#include <vector>

#include "cellar/sql/exec/operator.h"

namespace cellar::sql::exec {

class ScanConditions {
 public:
  explicit ScanConditions(const ScanNode& scan);  // outlives this

  // Sets the spec's columns and filters for a run. False: no row can pass. Values are made in the
  // context's arena, which outlives the scan. A value that cannot be computed is no error here: the
  // whole filter is evaluated then, and fails if a row comes that far.
  bool Prepare(EvalContext& context, table::ScanSpec* spec);
  // What is left to evaluate on the rows of the last Prepare; null: nothing. The batch's columns
  // beyond the scan's output are of no more use afterwards.
  Evaluator* filter();

 private:
  struct Pushed {
    catalog::ColumnId column;
    Type type;
    FilterOp op;
    const Expr* value;  // null: `constant`, or no value at all
    Datum constant;
  };
  enum class Fit : uint8_t { kPushed, kNothingPasses, kFails };

  void Split(const Expr& condition, std::vector<const Expr*>* rest);
  bool Match(const Expr& condition);
  const Expr* ColumnOf(const Expr& expr) const;
  void Push(const Expr& column, FilterOp op, const Expr* value, Datum constant = Datum());
  Fit Fill(const Pushed& pushed, EvalContext& context, std::vector<table::ColumnFilter>* filters);
  void Remap(Expr* expr);

  const ScanNode& scan_;
  std::vector<Pushed> pushed_;
  std::vector<catalog::ColumnId> columns_;  // when conditions are pushed
  ExprPtr rest_expr_;
  std::optional<Evaluator> rest_, whole_;
  bool all_pushed_ = true;  // of the last Prepare
};

}  // namespace cellar::sql::exec
