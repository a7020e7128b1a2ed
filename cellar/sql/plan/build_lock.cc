// Where a plan locks rows: in a node above all that chooses them, or in a scan that knows their
// keys.
#include <algorithm>

#include "cellar/sql/plan/physical.h"

namespace cellar::sql::planning {

namespace {

// What relations beside the locked ones give rows above a tree, and what its conditions ask for.
void AddOthers(const Statement& statement, const Logical& tree, IdSet* others, IdSet* asked) {
  switch (tree.kind) {
    case LogicalKind::kGet:
      if (tree.As<LogicalGet>().lock >= 0) return;
      break;
    case LogicalKind::kFilter:
      for (const ExprPtr& condition : tree.As<LogicalFilter>().conditions) {
        AddIds(statement, *condition, asked);
      }
      return AddOthers(statement, *tree.children[0], others, asked);
    case LogicalKind::kProject:
    case LogicalKind::kSort: return AddOthers(statement, *tree.children[0], others, asked);
    case LogicalKind::kJoin: {
      const auto& join = tree.As<LogicalJoin>();
      for (const ExprPtr& condition : join.conditions) AddIds(statement, *condition, asked);
      AddOthers(statement, *tree.children[0], others, asked);
      if (join.join != JoinKind::kSemi && join.join != JoinKind::kAnti) {
        AddOthers(statement, *tree.children[1], others, asked);
      }
      return;
    }
    default:
      // Read again, it would not be the same.
      if (ContainsVolatile(statement, tree)) return;
      break;
  }
  for (const int id : tree.ids) others->Add(id);
}

// A scan that reads single rows of the primary index, and nothing that it would not return.
bool MayLockFirst(const ScanNode& scan) {
  return scan.unique_point && scan.filter == nullptr && scan.index == scan.table->primary().id;
}

}  // namespace

Result<Phys> Physical::BuildLock(LogicalLock& lock, std::vector<ExprPtr> conditions,
                                 const Request& request) {
  IdSet others, asked;
  AddOthers(s_, *lock.children[0], &others, &asked);
  for (const ExprPtr& condition : conditions) AddIds(s_, *condition, &asked);
  Request below;
  below.needed = request.needed;
  below.order = request.order;
  below.limit = request.limit;
  Expand(asked).ForEach([&](int id) {
    if (others.Has(id)) below.needed.Add(id);
  });
  for (const LogicalLock::Target& target : lock.targets) below.needed.Add(target.row_ref);
  if (others.empty()) below.exact = request.exact;
  CELLAR_TRY_ASSIGN(Phys child, Build(std::move(lock.children[0]), std::move(conditions), below));
  if (child.node->kind == PlanKind::kScan && lock.targets.size() == 1 &&
      MayLockFirst(child.node->As<ScanNode>()) &&
      (child.at_most_one || request.limit == kUnlimited)) {
    auto& scan = static_cast<ScanNode&>(*child.node);
    scan.locks_first = lock.targets[0].how;
    if (!request.needed.Has(lock.targets[0].row_ref)) {
      scan.with_row_ref = false;
      child.cols.pop_back();
      SetOutput(&child);
    }
    return child;
  }
  auto node = std::make_unique<LockRowsNode>();
  const auto place = [&](int id) {
    return static_cast<int>(std::find(child.cols.begin(), child.cols.end(), id) -
                            child.cols.begin());
  };
  for (LogicalLock::Target& target : lock.targets) {
    const int row_ref = place(target.row_ref);
    // Where it is known that no row comes there is nothing to refer to.
    if (row_ref == static_cast<int>(child.cols.size())) return child;
    node->targets.push_back({std::move(target.table), row_ref, target.lock, target.how});
  }
  for (const int id : child.cols) {
    if (others.Has(id)) node->others.push_back(place(id));
  }
  node->one_by_one = request.limit != kUnlimited;
  Phys out;
  out.cols = child.cols;
  out.order = child.order;
  out.at_most_one = child.at_most_one;
  node->rows = child.rows();
  node->cost = child.cost();
  node->children.push_back(std::move(child.node));
  node->cost += node->rows * kFilterCost;
  out.node = std::move(node);
  SetOutput(&out);
  return out;
}

}  // namespace cellar::sql::planning
