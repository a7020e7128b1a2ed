// The operators' common ground, private to this layer.
//
// An operator is opened any number of times; each Open starts a fresh run (correlated subqueries,
// inner sides of loops). Next hands out a batch of its own that the caller may change and that
// lives until the next call on the operator. Values in it may point into children's batches, which
// live as long.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cellar/sql/exec/executor.h"
#include "cellar/sql/plan/query_nodes.h"

namespace cellar::sql::exec {

class Operator;

// Steps of a loop (rows, comparisons) between two looks at the cancel token.
inline constexpr size_t kStepsBetweenPolls = 4096;

// Looks at a cancel token once in kStepsBetweenPolls steps (rows, comparisons) of a loop.
class Poller {
 public:
  explicit Poller(const CancelToken* cancel) : cancel_(cancel) {}  // may be null
  Status Step(size_t steps = 1) {
    steps_ += steps;
    if (steps_ < kStepsBetweenPolls) return Status();
    steps_ = 0;
    return cancel_ != nullptr ? cancel_->Check() : Status();
  }

 private:
  const CancelToken* cancel_;
  size_t steps_ = 0;
};

// Shared by all operators of one execution.
struct ExecState {
  const Plan* plan = nullptr;
  ExecEnvironment env;
  EvalContext* context = nullptr;
  std::vector<NodeCounters> counters;
  uint64_t rows_affected = 0;
  uint64_t rows_replaced = 0;

  // Plan::ctes, computed as they are read. A recursive plan's work tables.
  struct Cte {
    std::unique_ptr<Operator> source;
    RowBatch rows;                   // so far
    bool ready = false;              // begun, and good for other readers with the same slots
    bool complete = false;           // `rows` are all
    bool read_once = false;          // by one reader that is opened once: rows need not be kept
    bool keeps = true;               // false: reads the work table of a recursive query
    std::vector<int> slots;          // outer slots it reads
    std::vector<Value> slot_values;  // those it was computed with
  };
  std::vector<Cte> ctes;
  std::vector<const RowBatch*> work_tables;
  // While a row that was changed by others is read again (lock_rows.cc): which rows each scan gives
  // instead of all, by ScanNode::lock, and at which view. Null: the scan gives what it always does.
  struct Recheck {
    kv::ReadViewPtr view;
    std::vector<const std::vector<std::string>*> rows;  // references
  };
  const Recheck* recheck = nullptr;
  std::vector<Operator*> scans;  // those that hold something of the transaction between calls

  // Does the node compute one row after the other?
  bool RowByRow(const PlanNode& node) const {
    return node.has_effects && (plan->row_by_row || env.batch_rows == 1);
  }

  table::Access& access() { return *env.access; }
  Status CheckMemory(size_t bytes) const;
  Status CheckCancel() const { return context->cancel ? context->cancel->Check() : Status(); }
};

class Operator {
 public:
  // `measured`: EXPLAIN ANALYZE counts it as the node.
  Operator(const PlanNode& node, ExecState* state, bool measured = true)
      : node_(node), state_(*state), measured_(measured && state->env.analyze) {}
  virtual ~Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  Status Open() {
    if (measured_) ++counters().loops;
    return DoOpen();
  }
  // Null at the end; never an empty batch. Looks at the cancel token, so that no loop over a
  // child's batches has to.
  Result<RowBatch*> Next() {
    CELLAR_TRY(state_.CheckCancel());
    if (!measured_) return DoNext();
    return TimedNext();
  }
  // After Open, instead of Next: how many rows there would be, if that is known without reading
  // them.
  virtual Result<std::optional<uint64_t>> CountRows() { return std::optional<uint64_t>(); }
  const PlanNode& node() const { return node_; }
  // Drops what belongs to the transaction. Only Open may follow.
  virtual void Release() {}

 protected:
  virtual Status DoOpen() = 0;
  virtual Result<RowBatch*> DoNext() = 0;

  NodeCounters& counters() { return state_.counters[node_.id]; }
  EvalContext& context() { return *state_.context; }
  // Counts what `call` reads as this node's.
  template <typename F>
  auto CountReads(F&& call) {
    if (!state_.env.analyze) return call();
    const table::AccessStats before = state_.access().stats();
    auto result = call();
    const table::AccessStats& after = state_.access().stats();
    counters().trips += after.trips - before.trips;
    counters().rows_read += after.rows_read - before.rows_read;
    counters().bytes_read += after.bytes_read - before.bytes_read;
    return result;
  }

  const PlanNode& node_;
  ExecState& state_;

 private:
  const bool measured_;
  Result<RowBatch*> TimedNext();
};
using OperatorPtr = std::unique_ptr<Operator>;

std::vector<Type> TypesOf(const std::vector<OutputColumn>& columns);
std::vector<Type> TypesOf(const std::vector<ExprPtr>& exprs);

// The operator tree of a plan tree.
Result<OperatorPtr> Build(const PlanNode& node, ExecState* state);

// Builders by kind, each in the file named for it.
Result<OperatorPtr> BuildSource(const PlanNode& node, ExecState* state);  // scan.cc
// The child as the node wants its rows: one at a time, or many again.
OperatorPtr SuitRows(const PlanNode& node, OperatorPtr child, ExecState* state);  // rowwise.cc
Result<OperatorPtr> BuildRowwise(const PlanNode& node, OperatorPtr child,
                                 ExecState* state);  // rowwise.cc
Result<OperatorPtr> BuildJoin(const PlanNode& node, std::vector<OperatorPtr> children,
                              ExecState* state);
Result<OperatorPtr> BuildAggregate(const PlanNode& node, OperatorPtr child, ExecState* state);
Result<OperatorPtr> BuildGroupingSets(const PlanNode& node, OperatorPtr child, ExecState* state);
Result<OperatorPtr> BuildDistinct(const PlanNode& node, OperatorPtr child, ExecState* state);
Result<OperatorPtr> BuildSort(const PlanNode& node, OperatorPtr child, ExecState* state);
Result<OperatorPtr> BuildWindow(const PlanNode& node, OperatorPtr child, ExecState* state);
Result<OperatorPtr> BuildSetOperation(const PlanNode& node, std::vector<OperatorPtr> children,
                                      ExecState* state);
OperatorPtr BuildLockRows(const PlanNode& node, OperatorPtr child, ExecState* state);
table::RowLockSpec LockSpecOf(RowLock lock);
Result<OperatorPtr> BuildModify(const PlanNode& node, OperatorPtr child, ExecState* state);

// Runs data-modifying WITH queries that nobody has read.
Status FinishModifyingCtes(ExecState* state);

// Slots read by the expressions below `node` and not filled below it: what its result depends on.
std::vector<int> OuterSlots(const PlanNode& node, const Plan& plan);
bool ReadsSlots(const std::vector<ExprPtr>& exprs, const Plan& plan);
// Its result depends on the current rows of a recursive query around it, and so may never be kept.
bool ReadsWorkTable(const PlanNode& node, const Plan& plan);
// What `node` returns is the same for the whole execution.
inline bool IsStable(const PlanNode& node, const Plan& plan) {
  return OuterSlots(node, plan).empty() && !ReadsWorkTable(node, plan);
}

// Marks the WITH queries of the plan that are read once.
void FindCtesReadOnce(ExecState* state);

// Reads all of `child` (opened here) into *rows, a batch of its column types.
Status ReadAll(Operator* child, ExecState* state, RowBatch* rows);

// Copies the vector of values (not the bytes behind views).
void CopyColumn(const ColumnVector& from, size_t rows, ColumnVector* to);
// to[i] = from[rows[i]], NULL where rows[i] is kNoRow. Borrows bytes.
inline constexpr uint32_t kNoRow = UINT32_MAX;
void GatherColumn(const ColumnVector& from, const uint32_t* rows, size_t count, ColumnVector* to);

// Makes it `rows` long; new values are NULL.
void PadWithNulls(size_t rows, ColumnVector* column);

// The next `most` rows of `rows` from *next on, as a batch that borrows their bytes; null when
// there are no more. `columns` picks and orders the columns; null: all.
RowBatch* EmitChunk(const RowBatch& rows, const std::vector<int>* columns, size_t* next,
                    RowBatch* out, size_t most = kBatchRows);

// The batches of a child, for an operator whose expressions may make wide values of their rows: in
// parts for which about kEnoughBytes are made, as far as the part before tells, so that a batch is
// never a thousand values of megabytes. One thread at a time.
class PartInput {
 public:
  // These expressions are evaluated over the batches.
  void Watch(const Expr& expr);
  void Open() {
    input_ = nullptr;
    next_ = 0;
  }
  // The child's next batch or the next part of one, valid until the next call; null at the end.
  Result<RowBatch*> Next(Operator* child);
  // That took so many bytes.
  void Note(const RowBatch& part, size_t bytes) {
    if (watched_) most_rows_ = std::max<size_t>(1, kEnoughBytes * part.size() / (bytes + 1));
  }

 private:
  static constexpr size_t kEnoughBytes = 8 << 20;
  static constexpr size_t kFirstRows = 16;  // of an input that has more

  bool watched_ = false;
  size_t most_rows_ = kFirstRows;
  RowBatch* input_ = nullptr;  // of which rows before next_ are done; null: none is begun
  size_t next_ = 0;
  RowBatch part_;
};

// Evaluates expressions over batches into vectors that live until the next call.
class ExprList {
 public:
  explicit ExprList(const std::vector<ExprPtr>& exprs);
  // Results for all rows of `input`; they may be columns of `input` itself.
  Status Eval(const RowBatch& input, EvalContext& context);
  const std::vector<const ColumnVector*>& columns() const { return columns_; }
  size_t size() const { return evaluators_.size(); }

 private:
  std::vector<Evaluator> evaluators_;
  std::vector<const ColumnVector*> columns_;
};

// Emits the rows of a stored batch in chunks, in place or by a permutation.
class StoredRows {
 public:
  RowBatch& rows() { return rows_; }
  void Rewind() { next_ = 0; }
  void Reset(std::span<const Type> types) {
    rows_.Reset(types);
    order_.clear();
    ordered_ = false;
    next_ = 0;
  }
  // Rows come in this order; the batch's own when never called.
  void SetOrder(CountedVector<uint32_t> order) {
    order_ = std::move(order);
    ordered_ = true;
  }
  // Null at the end. Borrows bytes of rows().
  RowBatch* NextChunk(RowBatch* out);

 private:
  RowBatch rows_;
  CountedVector<uint32_t> order_;
  bool ordered_ = false;
  size_t next_ = 0;
};

}  // namespace cellar::sql::exec
