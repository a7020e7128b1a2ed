// Values that indexes hold or ask of rows beyond their columns: expressions as keys, and the
// predicates of partial indexes. This layer knows no SQL: whoever does hands in how texts become
// values, once a process. Without it, such tables do not open: an index would not follow its rows.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "cellar/base/status.h"
#include "cellar/catalog/descriptor.h"
#include "cellar/types/batch.h"

namespace cellar::table {

class CompiledTable;

// An expression over the living columns of a table.
struct ComputedColumn {
  std::string sql;
  bool predicate = false;
};

// Computes some expressions of one version of a table. One thread at a time.
class RowEvaluator {
 public:
  virtual ~RowEvaluator() = default;
  // Of the expressions.
  virtual std::span<const Type> types() const = 0;
  // `rows` holds all living columns, in ordinal order, and perhaps more. Fills columns `first`.. of
  // *out, which has as many rows and one column for each expression; bytes lie in its arena or are
  // borrowed from `rows`. Errors: what the expressions raise (22012, ..).
  virtual Status Evaluate(const RowBatch& rows, size_t first, RowBatch* out) = 0;
};

// Errors: those of texts that do not fit the table.
using MakeRowEvaluator = Result<std::unique_ptr<RowEvaluator>> (*)(
    const catalog::TableDescriptor& table, std::span<const ComputedColumn> columns);

// Before the first use; later calls replace what was set. Thread-safe.
void SetMakeRowEvaluator(MakeRowEvaluator make);

// Errors: those of the texts; kInternal when nothing was set.
Result<std::unique_ptr<RowEvaluator>> MakeEvaluator(const catalog::TableDescriptor& table,
                                                    std::span<const ComputedColumn> columns);

// Rows together with their computed columns, which lie behind the living ones: what the positions
// of an IndexCodec speak of. Borrows the rows.
class IndexedRows {
 public:
  // Cost: nothing for a table without computed columns. Errors: those of Evaluate.
  Status Compute(const CompiledTable& table, const RowBatch& rows);
  const RowBatch& rows() const { return *rows_; }

 private:
  const RowBatch* rows_ = nullptr;
  RowBatch extended_;
};

}  // namespace cellar::table
