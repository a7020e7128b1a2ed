// Running a plan: a tree of operators that pull batches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/sql/expr/eval.h"
#include "cellar/sql/plan/plan.h"
#include "cellar/sql/plan/planner.h"
#include "cellar/table/access.h"
#include "cellar/types/batch.h"

namespace cellar::sql {

class DeferredChecks;

// Rows of pg_catalog's tables; implemented by the session layer.
class VirtualRows {
 public:
  virtual ~VirtualRows() = default;
  // Appends all rows of the table, all columns, to *rows (already Reset to the column types). When
  // `key_column` is not negative, rows whose column differs from `key` may be left out.
  virtual Status Generate(std::string_view schema, std::string_view table, int key_column,
                          Datum key, RowBatch* rows) = 0;
};

// Plans of the statements that foreign keys carry out; implemented by the session layer.
class CascadePlans {
 public:
  virtual ~CascadePlans() = default;
  // Of UPDATE table SET c = c for each of the columns, or SET c = DEFAULT. The plan's own scan is
  // not run.
  virtual Result<std::shared_ptr<const Plan>> PlanCascade(
      const catalog::TablePtr& table, std::span<const catalog::ColumnId> columns,
      bool to_defaults) = 0;
};

// What an execution works with; all borrowed, outliving it.
struct ExecEnvironment {
  table::Access* access = nullptr;
  EvalContext* context =
      nullptr;  // parameters, clocks, session; its subplan runner is set by the execution
  VirtualRows* virtual_rows = nullptr;
  const catalog::CatalogSnapshot* catalog = nullptr;
  // Of the transaction; null: deferred foreign keys are checked at the end of the statement too.
  DeferredChecks* deferred = nullptr;
  // Null: rows that foreign keys change keep generated columns as they are, and none get defaults.
  CascadePlans* cascades = nullptr;
  // Of kExternal nodes: fills the batch, false at the end.
  std::function<Result<bool>(RowBatch*)> external_rows;
  // What all reads of the statement see, but for those that ask for what is there now: of unique
  // keys and foreign keys. Null: one is opened at the start.
  table::ReadViewPtr view;
  // False: none is opened either, since nothing is written that the statement could meet.
  bool with_view = true;
  // Rows that scans hand out and writers write at once, kBatchRows at most. Answers do not depend
  // on it, which tests prove with fewer.
  size_t batch_rows = kBatchRows;
  bool analyze = false;      // count rows and time per node
  bool serializable = true;  // what is known without reading counts as read at commit
  bool one_by_one = false;   // rows are locked as they are fetched, not before
  size_t memory_limit_bytes = size_t{256} << 20;  // of one sort, hash table or buffer: 53200 beyond
};

// One run of a plan. One thread at a time.
class Execution {
 public:
  static Result<std::unique_ptr<Execution>> Open(std::shared_ptr<const Plan> plan,
                                                 ExecEnvironment environment);
  ~Execution();

  // Whether Restart may be called: a chain of operators that keep nothing from run to run.
  bool restartable() const;
  // A fresh run of the same plan in a new environment, as Open would start it, without building the
  // operators again.
  Status Restart(ExecEnvironment environment);
  // Lets go of what belongs to the transaction; only Restart may follow.
  void Release();
  const Plan* plan() const;

  // The next batch (never empty), or null at the end; valid until the next call. Statements that
  // change rows do all their work in the first call.
  Result<const RowBatch*> Next();
  // Rows inserted, updated or deleted so far, or returned by a SELECT.
  uint64_t rows_affected() const;
  // Of rows_affected, rows of an INSERT that changed one that was there (ON CONFLICT DO UPDATE).
  uint64_t rows_replaced() const;
  std::span<const NodeCounters> counters() const;

  struct Impl;
  explicit Execution(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace cellar::sql
