// What is asked of one row that is to be written: NOT NULL and CHECK. Private to this layer.
#pragma once

#include <memory>
#include <vector>

#include "cellar/sql/exec/operator.h"

namespace cellar::sql::exec {

class RowChecks {
 public:
  // `checks` are by name, and live as long.
  RowChecks(catalog::TablePtr table, const std::vector<CheckExpr>& checks);

  // The first row that breaks something: as in PostgreSQL, of one row NOT NULL is asked first, then
  // the checks by their names. Errors of NOT NULL are the writer's: *broken is then OK. Returns
  // rows.size() if all are in order. `rows`: the living columns.
  Result<size_t> FirstBroken(const RowBatch& rows, ExecState* state, Status* broken);

 private:
  catalog::TablePtr table_;
  const std::vector<CheckExpr>& checks_;
  std::vector<size_t> not_null_;
  std::vector<Evaluator> evaluators_;
  Arena arena_;
};

// The first `count` rows, borrowed.
RowBatch FirstRows(const RowBatch& rows, size_t count);

}  // namespace cellar::sql::exec
