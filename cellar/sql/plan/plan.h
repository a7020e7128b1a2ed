// Plans: the physical tree that the planner hands to the executor.
//
// A plan is immutable, owns all its expressions and descriptors, and may be executed by many
// sessions at once. Column positions in expressions are positions in the child's output (for joins:
// left columns, then right).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cellar/catalog/catalog.h"
#include "cellar/sql/expr/expr.h"
#include "cellar/sql/expr/function.h"
#include "cellar/types/batch.h"

namespace cellar::sql {

struct VirtualTable;

struct OutputColumn {
  std::string name;
  Type type;
  uint32_t table_oid = 0;  // when it is a plain column of a table
  int16_t attnum = 0;
};

enum class PlanKind : uint8_t {
  kResult,  // one row without columns, or none when `filter` says so: SELECT without FROM
  kValues,
  kScan,
  kVirtualScan,  // pg_catalog tables
  kFunctionScan,
  kExternal,  // rows handed in by the caller (COPY)
  kFilter,
  kProject,
  kProjectSet,  // set-returning functions in the select list
  kNestedLoop,
  kHashJoin,
  kLookupJoin,  // nested loop by index, a batch of outer rows at a time
  kSort,
  kLimit,
  kLockRows,
  kDistinct,
  kAggregate,
  kWindow,
  kAppend,  // UNION ALL
  kSetOperation,
  kCteScan,
  kRecursiveUnion,
  kWorkTableScan,
  kInsert,
  kUpdate,
  kDelete,
};

struct PlanNode {
  explicit PlanNode(PlanKind kind) : kind(kind) {}
  virtual ~PlanNode() = default;
  template <typename T>
  const T& As() const {
    return static_cast<const T&>(*this);
  }

  PlanKind kind;
  std::vector<OutputColumn> output;
  std::vector<std::unique_ptr<PlanNode>> children;
  double rows = 0;  // planner's estimate
  double cost = 0;  // nanoseconds, planner's estimate
  int id = 0;       // position in Plan for EXPLAIN ANALYZE counters, assigned at the end
  // It calls what changes, or reads, something that is no row: sequences, advisory locks, the
  // clock.
  bool has_effects = false;
};
using PlanPtr = std::unique_ptr<PlanNode>;

struct ResultNode : PlanNode {
  ResultNode() : PlanNode(PlanKind::kResult) {}
  ExprPtr filter;  // constant condition; null: true
};

struct ValuesNode : PlanNode {
  ValuesNode() : PlanNode(PlanKind::kValues) {}
  std::vector<std::vector<ExprPtr>> rows_exprs;  // evaluated without input
};

// Bounds as expressions without input columns (constants, parameters, slots); become a table::Span
// at run time.
struct BoundExpr {
  ExprPtr value;  // null: unbounded. A NULL value at run time makes the span empty.
  bool inclusive = false;
};
struct SpanExpr {
  std::vector<ExprPtr> equal;    // NULL at run time makes the span empty, unless equal_null[i]
  std::vector<bool> equal_null;  // IS NULL on that column
  BoundExpr lower, upper;
  bool only_null = false;     // IS NULL on the column after `equal`
  bool exclude_null = false;  // IS NOT NULL
  // When not negative: equal[array_position] is an array (x = ANY($1)), and at run time the span
  // stands for one span for each of its distinct non-NULL elements; a NULL array gives none.
  int array_position = -1;
};

// How rows are locked, weakest first (manual 13.3.2), and what is done about those that others
// hold.
enum class RowLockMode : uint8_t { kForKeyShare, kForShare, kForNoKeyUpdate, kForUpdate };
enum class RowLockWait : uint8_t { kBlock, kNoWait, kSkipLocked };
struct RowLock {
  RowLockMode mode = RowLockMode::kForUpdate;
  RowLockWait wait = RowLockWait::kBlock;
};

// Rows of one table through one index. Output: `columns`, then the row reference if with_row_ref.
struct ScanNode : PlanNode {
  ScanNode() : PlanNode(PlanKind::kScan) {}
  catalog::TablePtr table;
  std::string alias;
  catalog::IndexId index;
  // Cross product is done by the planner: each entry is one span; at run time empty ones are
  // dropped, the rest sorted and merged where they overlap. Whole index: one SpanExpr with nothing
  // set.
  std::vector<SpanExpr> spans;
  std::vector<catalog::ColumnId> columns;
  bool reverse = false;
  bool unique_point = false;  // every span is a full key of a unique index: at most one row each
  ExprPtr filter;             // over the output, then filter_columns; what the spans do not say
  // Columns that the filter alone needs, which the output lacks, and their names for EXPLAIN. None
  // when rows are locked or referred to.
  std::vector<catalog::ColumnId> filter_columns;
  std::vector<std::string> filter_names;
  uint64_t limit_hint = 0;
  bool with_row_ref = false;
  // Not negative: its rows are locked, and this number says which LockRowsNode::Target does it.
  // That may have the scan give the newest versions of rows again (ExecState::recheck).
  int lock = -1;
  // The scan locks them itself, by primary key, before it reads them: then all that it reads is
  // returned and locked, and nobody else locks it.
  std::optional<RowLock> locks_first;
};

struct VirtualScanNode : PlanNode {
  VirtualScanNode() : PlanNode(PlanKind::kVirtualScan) {}
  std::string schema, table;
  std::vector<int> columns;  // positions in the virtual table
  // Equality on a column with an expression that needs no input: a hint for the generator; the
  // filter still holds.
  int key_column = -1;
  ExprPtr key;
};

struct FunctionScanNode : PlanNode {
  FunctionScanNode() : PlanNode(PlanKind::kFunctionScan) {}
  std::vector<ExprPtr> calls;  // ROWS FROM: run side by side; set-returning or scalar
  bool ordinality = false;     // a last bigint column
};

// Rows come from ExecEnvironment::external_rows. Never made by the planner.
struct ExternalNode : PlanNode {
  ExternalNode() : PlanNode(PlanKind::kExternal) {}
};

struct FilterNode : PlanNode {
  FilterNode() : PlanNode(PlanKind::kFilter) {}
  ExprPtr condition;
};

struct ProjectNode : PlanNode {
  ProjectNode() : PlanNode(PlanKind::kProject) {}
  std::vector<ExprPtr> exprs;
};

// As Project, but calls of set-returning functions at the top of an expression expand the row;
// shorter ones are padded with NULL (manual 38.5.9).
struct ProjectSetNode : PlanNode {
  ProjectSetNode() : PlanNode(PlanKind::kProjectSet) {}
  std::vector<ExprPtr> exprs;
};

enum class JoinKind : uint8_t { kInner, kLeft, kRight, kFull, kSemi, kAnti };

// Output: left columns then right columns (kSemi, kAnti: left only).
struct NestedLoopNode : PlanNode {
  NestedLoopNode() : PlanNode(PlanKind::kNestedLoop) {}
  JoinKind join = JoinKind::kInner;  // not kRight, kFull
  ExprPtr condition;                 // over left ++ right; null: true
  // LATERAL: slots filled from the left row before each run of the right side. Empty: the right
  // side is computed once and kept.
  std::vector<int> slots;
  std::vector<ExprPtr> slot_values;
};

struct HashJoinNode : PlanNode {
  HashJoinNode() : PlanNode(PlanKind::kHashJoin) {}
  JoinKind join = JoinKind::kInner;
  std::vector<ExprPtr> left_keys, right_keys;  // same types pairwise; over their own child
  ExprPtr condition;                           // rest of ON, over left ++ right; null: true
  bool null_aware = false;                     // kAnti for NOT IN
};

// children[0] is the outer side; for each of its rows the index is looked up by `keys`.
// Output: outer columns then `columns` (kSemi, kAnti: outer only).
struct LookupJoinNode : PlanNode {
  LookupJoinNode() : PlanNode(PlanKind::kLookupJoin) {}
  JoinKind join = JoinKind::kInner;  // kInner, kLeft, kSemi, kAnti
  catalog::TablePtr table;
  std::string alias;
  catalog::IndexId index;
  std::vector<ExprPtr>
      keys;  // over the outer row; equal to the first key columns; types match them
  std::vector<catalog::ColumnId> columns;
  ExprPtr condition;  // over outer ++ columns; null: true
};

struct SortKey {
  ExprPtr expr;
  bool descending = false;
  bool nulls_first = false;
};
struct SortNode : PlanNode {
  SortNode() : PlanNode(PlanKind::kSort) {}
  std::vector<SortKey> keys;
  // Rows ordered by the first `presorted` keys arrive that way. Reserved for incremental sorts.
  int presorted = 0;
  // Only the first this many rows are wanted (LIMIT + OFFSET above); null: all.
  ExprPtr top;
};

struct LimitNode : PlanNode {
  LimitNode() : PlanNode(PlanKind::kLimit) {}
  ExprPtr limit, offset;  // bigint; null pointer or NULL value: none
};

// Locks rows of tables below, once everything below has chosen them; its output is the child's.
// Under READ COMMITTED a row that was changed meanwhile is read again, and all that is below must
// choose it again, with the rows of other relations as they were.
struct LockRowsNode : PlanNode {
  LockRowsNode() : PlanNode(PlanKind::kLockRows) {}
  struct Target {
    catalog::TablePtr table;
    int row_ref = 0;  // column of the output
    int lock = 0;     // ScanNode::lock
    RowLock how;
  };
  std::vector<Target> targets;
  // Columns of the output that are other relations': by these a row that was read again is known.
  std::vector<int> others;
  bool one_by_one = false;  // perhaps not all rows are wanted, so that none is locked in vain
};

struct DistinctNode : PlanNode {
  DistinctNode() : PlanNode(PlanKind::kDistinct) {}
  std::vector<int> on;  // columns that decide; empty: all
  bool sorted = false;  // input arrives ordered by them (DISTINCT ON keeps the first of each)
};

struct AggregateCall {
  const AggregateSpec* spec = nullptr;
  std::vector<ExprPtr> args;  // over the input
  Type result;
  bool distinct = false;
  ExprPtr filter;                 // null: none
  std::vector<SortKey> order_by;  // over the input
};
// Output: group keys, then aggregates. Without keys always exactly one row.
struct AggregateNode : PlanNode {
  AggregateNode() : PlanNode(PlanKind::kAggregate) {}
  std::vector<ExprPtr> keys;
  std::vector<AggregateCall> calls;
  bool sorted = false;  // input arrives grouped by the keys
};

struct WindowCall {
  std::string function;  // row_number, rank, dense_rank, ntile, lag, lead, first_value, last_value,
                         // nth_value, percent_rank, cume_dist; or an aggregate in `aggregate`
  AggregateCall aggregate;
  std::vector<ExprPtr> args;
  Type result;
  enum class Frame : uint8_t { kRangeToCurrent, kRowsToCurrent, kWhole };
  Frame frame = Frame::kRangeToCurrent;
};
// Output: input columns, then one column per call. Sorts its input itself.
struct WindowNode : PlanNode {
  WindowNode() : PlanNode(PlanKind::kWindow) {}
  std::vector<ExprPtr> partition_by;
  std::vector<SortKey> order_by;
  std::vector<WindowCall> calls;
};

struct AppendNode : PlanNode {
  AppendNode() : PlanNode(PlanKind::kAppend) {}
};

struct SetOperationNode : PlanNode {
  SetOperationNode() : PlanNode(PlanKind::kSetOperation) {}
  enum class Kind : uint8_t { kUnion, kIntersect, kExcept };
  Kind operation = Kind::kUnion;
  bool all = false;
};

// Reads Plan::ctes[cte], which is computed once, on first use.
struct CteScanNode : PlanNode {
  CteScanNode() : PlanNode(PlanKind::kCteScan) {}
  int cte = 0;
  std::string name;
};
// children: the non-recursive and the recursive term.
struct RecursiveUnionNode : PlanNode {
  RecursiveUnionNode() : PlanNode(PlanKind::kRecursiveUnion) {}
  int work_table = 0;
  bool all = false;
};
struct WorkTableScanNode : PlanNode {
  WorkTableScanNode() : PlanNode(PlanKind::kWorkTableScan) {}
  int work_table = 0;
};

// "Living columns" below: a table's columns that are not dropped, in ordinal order, hidden row id
// included.

struct CheckExpr {
  std::string name;
  ExprPtr condition;  // over the living columns; violated when false
};
// A key that must exist in another table (referencing side), or must not be referenced any more
// (referenced side).
struct ForeignKeyCheck {
  std::string constraint;
  catalog::TablePtr table;  // the other table
  std::optional<catalog::IndexId>
      index;  // of the other table, whose first columns are `other_columns`
  std::vector<catalog::ColumnId> other_columns;  // in the index's order when `index` is set
  std::vector<int> columns;  // positions among our living columns, pairing with other_columns
  catalog::ForeignKeyAction action = catalog::ForeignKeyAction::kNoAction;  // referenced side only
};
struct OnConflict {
  enum class Kind : uint8_t { kNone, kNothing, kUpdate };
  Kind kind = Kind::kNone;
  std::vector<catalog::IndexId> arbiters;  // empty: any unique index (only kNothing)
  // kUpdate: new values of the row in the way, over [its living columns, excluded.* living
  // columns].
  std::vector<std::pair<int, ExprPtr>> assignments;  // position among living columns -> value
  ExprPtr where;                                     // over the same; null: true
};
// The child's output is all living columns, in order, defaults and casts applied.
struct InsertNode : PlanNode {
  InsertNode() : PlanNode(PlanKind::kInsert) {}
  catalog::TablePtr table;
  std::vector<CheckExpr> checks;
  std::vector<ForeignKeyCheck> foreign_keys;   // referencing side
  std::vector<ForeignKeyCheck> referenced_by;  // for kUpdate conflicts
  OnConflict on_conflict;
  bool returning = false;                // output: RETURNING expressions
  std::vector<ExprPtr> returning_exprs;  // over the living columns of the stored row
};
// The child's output: [0, n) the old row's living columns, column `row_ref` its reference, others
// as needed.
struct UpdateNode : PlanNode {
  UpdateNode() : PlanNode(PlanKind::kUpdate) {}
  catalog::TablePtr table;
  int row_ref = 0;
  std::vector<std::pair<int, ExprPtr>>
      assignments;  // position among living columns -> value over child output
  std::vector<CheckExpr> checks;
  std::vector<ForeignKeyCheck> foreign_keys, referenced_by;  // only those whose columns change
  bool returning = false;
  // Over [new row's living columns, then the child's columns after the first n].
  std::vector<ExprPtr> returning_exprs;
};
struct DeleteNode : PlanNode {
  DeleteNode() : PlanNode(PlanKind::kDelete) {}
  catalog::TablePtr table;
  int row_ref = 0;
  std::vector<ForeignKeyCheck> referenced_by;
  bool returning = false;
  std::vector<ExprPtr> returning_exprs;  // over the child's output
};

// What a statement does with one relation that it names: what its role, or the owner of the view in
// whose text the name stands, must have been granted. Columns are those the statement names itself.
struct RelationUse {
  catalog::TablePtr relation;
  catalog::TablePtr view;  // null: the statement's own role is asked
  bool selects = false, inserts = false, updates = false, deletes = false;
  std::vector<catalog::ColumnId> selected, inserted, updated;
};

enum class StatementKind : uint8_t { kSelect, kInsert, kUpdate, kDelete };

struct Plan {
  StatementKind kind = StatementKind::kSelect;
  PlanPtr root;
  std::vector<PlanPtr> subplans;  // Expr::index of kSubplan
  std::vector<PlanPtr> ctes;  // CteScanNode::cte; data-modifying ones run to the end even if unread
  int num_slots = 0;
  int num_work_tables = 0;
  int num_nodes = 0;
  std::vector<OutputColumn> output;  // empty when nothing is returned
  bool returns_rows = false;
  std::vector<Type> parameter_types;  // of $1.., inferred where the client left them open
  std::vector<catalog::TablePtr>
      tables;  // every relation used: their versions are commit conditions
  std::vector<RelationUse> uses;
  std::vector<const VirtualTable*> virtual_tables;
  bool read_only = true;
  bool locks_rows = false;    // FOR UPDATE or its kin
  std::string_view lock_tag;  // then: "SELECT FOR UPDATE"
  int num_locks = 0;          // numbers of ScanNode::lock
  bool has_effects = false;   // some node has
  // Those nodes compute one row after the other, and hand each on before the next: others see what
  // they did, or may not want the rest.
  bool row_by_row = false;
  size_t expressions = 0;  // nodes of all its expressions: a measure of what it and its runs hold
  bool uses_virtual_tables = false;  // depends on the whole catalog: do not cache across DDL
};

}  // namespace cellar::sql
