// What of plan nodes only the planner and the executor look into: everything above includes plan.h,
// and need not be built anew for it.
//
// Nodes of the kinds below are always made as these.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cellar/sql/plan/plan.h"

namespace cellar::sql {

// Which rows around a row a window function sees.
struct WindowFrame {
  enum class Mode : uint8_t { kRange, kRows, kGroups };
  enum class Bound : uint8_t {
    kUnboundedPreceding,
    kOffsetPreceding,
    kCurrentRow,
    kOffsetFollowing,
    kUnboundedFollowing
  };
  enum class Exclusion : uint8_t { kNone, kCurrentRow, kGroup, kTies };
  Mode mode = Mode::kRange;
  Bound start = Bound::kUnboundedPreceding, end = Bound::kCurrentRow;
  Exclusion exclusion = Exclusion::kNone;
  // Of the kOffset bounds, without input columns: bigint for kRows and kGroups; for kRange bigint
  // over integers, double precision over floats, numeric over numerics, else an interval.
  ExprPtr start_offset, end_offset;
};

// kWindow.
struct FramedWindowNode : WindowNode {
  std::vector<WindowFrame> frames;  // of each of `calls`
};

// kAggregate. With `sets`, the groups of each set come one after the other, keys that are not of
// the set NULL, and behind the aggregates one integer for each of `groupings`.
struct GroupingNode : AggregateNode {
  std::vector<std::vector<int>> sets;  // positions in `keys`, ascending; a set may be empty
  // GROUPING(...): positions in `keys`, the first one the highest bit.
  std::vector<std::vector<int>> groupings;
};

// kLimit.
struct TiesNode : LimitNode {
  // WITH TIES: columns of the input, which comes ordered by them; rows equal to the last one in
  // all of them are given too.
  std::vector<int> ties;
};

// Calls f(const Expr&) for each expression of the node itself, not of those below it: what it
// computes, compares and limits by. The checks of a table's constraints are not among them.
template <typename F>
class NodeExprVisitor {
 public:
  explicit NodeExprVisitor(F f) : f_(std::move(f)) {}
  void Visit(const PlanNode& node) {
    switch (node.kind) {
      case PlanKind::kResult: return One(node.As<ResultNode>().filter);
      case PlanKind::kValues:
        for (const auto& row : node.As<ValuesNode>().rows_exprs) Many(row);
        return;
      case PlanKind::kScan:
        One(node.As<ScanNode>().filter);
        for (const SpanExpr& span : node.As<ScanNode>().spans) {
          Many(span.equal);
          One(span.lower.value);
          One(span.upper.value);
        }
        return;
      case PlanKind::kVirtualScan: return One(node.As<VirtualScanNode>().key);
      case PlanKind::kFunctionScan: return Many(node.As<FunctionScanNode>().calls);
      case PlanKind::kFilter: return One(node.As<FilterNode>().condition);
      case PlanKind::kProject: return Many(node.As<ProjectNode>().exprs);
      case PlanKind::kProjectSet: return Many(node.As<ProjectSetNode>().exprs);
      case PlanKind::kNestedLoop:
        One(node.As<NestedLoopNode>().condition);
        return Many(node.As<NestedLoopNode>().slot_values);
      case PlanKind::kHashJoin:
        Many(node.As<HashJoinNode>().left_keys);
        Many(node.As<HashJoinNode>().right_keys);
        return One(node.As<HashJoinNode>().condition);
      case PlanKind::kLookupJoin:
        Many(node.As<LookupJoinNode>().keys);
        return One(node.As<LookupJoinNode>().condition);
      case PlanKind::kSort: Keys(node.As<SortNode>().keys); return One(node.As<SortNode>().top);
      case PlanKind::kLimit:
        One(node.As<LimitNode>().limit);
        return One(node.As<LimitNode>().offset);
      case PlanKind::kAggregate:
        Many(node.As<AggregateNode>().keys);
        for (const AggregateCall& call : node.As<AggregateNode>().calls) Call(call);
        return;
      case PlanKind::kWindow: {
        const auto& window = node.As<FramedWindowNode>();
        Many(window.partition_by);
        Keys(window.order_by);
        for (const WindowCall& call : window.calls) {
          Many(call.args);
          Call(call.aggregate);
        }
        for (const WindowFrame& frame : window.frames) {
          One(frame.start_offset);
          One(frame.end_offset);
        }
        return;
      }
      case PlanKind::kInsert: {
        const auto& insert = node.As<InsertNode>();
        for (const auto& [column, value] : insert.on_conflict.assignments) One(value);
        One(insert.on_conflict.where);
        return Many(insert.returning_exprs);
      }
      case PlanKind::kUpdate:
        for (const auto& [column, value] : node.As<UpdateNode>().assignments) One(value);
        return Many(node.As<UpdateNode>().returning_exprs);
      case PlanKind::kDelete: return Many(node.As<DeleteNode>().returning_exprs);
      case PlanKind::kExternal:
      case PlanKind::kCteScan:
      case PlanKind::kWorkTableScan:
      case PlanKind::kLockRows:
      case PlanKind::kDistinct:
      case PlanKind::kAppend:
      case PlanKind::kSetOperation:
      case PlanKind::kRecursiveUnion: return;
    }
  }

 private:
  void One(const ExprPtr& expr) {
    if (expr != nullptr) f_(*expr);
  }
  void Many(const std::vector<ExprPtr>& exprs) {
    for (const ExprPtr& expr : exprs) One(expr);
  }
  void Keys(const std::vector<SortKey>& keys) {
    for (const SortKey& key : keys) One(key.expr);
  }
  void Call(const AggregateCall& call) {
    Many(call.args);
    One(call.filter);
    Keys(call.order_by);
  }

  F f_;
};
template <typename F>
void VisitNodeExprs(const PlanNode& node, F f) {
  NodeExprVisitor<F>(std::move(f)).Visit(node);
}

}  // namespace cellar::sql
