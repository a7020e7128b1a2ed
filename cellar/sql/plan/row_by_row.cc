// Which nodes of a plan must compute one row after the other: those whose calls change or read
// something outside the rows (sequences, locks, the clock), so that others see what they did.
#include "cellar/sql/plan/row_by_row.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "cellar/sql/plan/planner.h"
#include "cellar/sql/plan/query_nodes.h"

namespace cellar::sql::planning {
namespace {

// Volatile, but nobody can tell in which order rows were computed, unless setseed is among them.
constexpr std::array<std::string_view, 3> kIndifferent = {"random", "gen_random_uuid",
                                                          "current_query"};

class Marker {
 public:
  explicit Marker(Plan* plan) : plan_(*plan) {}

  void Run() {
    Walk();
    if (calls_ > 0 && sets_state_) {
      every_call_ = true;
      Walk();
    }
    if (calls_ == 0) return;
    plan_.has_effects = true;
    plan_.row_by_row = stops_early_ || (calls_ > 1 && !IndependentSequences());
  }

 private:
  void Walk() {
    calls_ = 0;
    plan_.expressions = 0;
    sequences_.clear();
    subplan_calls_.assign(plan_.subplans.size(), -1);
    for (size_t i = 0; i < plan_.subplans.size(); ++i) CallsOfSubplan(static_cast<int>(i));
    for (PlanPtr& cte : plan_.ctes) {
      if (cte != nullptr) Node(cte.get());
    }
    Node(plan_.root.get());
  }
  // Marks the nodes of the tree.
  void Node(PlanNode* node) {
    for (PlanPtr& child : node->children) Node(child.get());
    const size_t before = calls_;
    bool calls_subplan = false;
    std::swap(calls_subplan, calls_subplan_);
    Exprs(*node);
    std::swap(calls_subplan, calls_subplan_);
    node->has_effects = calls_subplan || calls_ > before;
    switch (node->kind) {
      case PlanKind::kLimit: stops_early_ = true; break;
      case PlanKind::kNestedLoop: NoteJoin(node->As<NestedLoopNode>().join); break;
      case PlanKind::kHashJoin: NoteJoin(node->As<HashJoinNode>().join); break;
      case PlanKind::kLookupJoin: NoteJoin(node->As<LookupJoinNode>().join); break;
      // A work table grows while it is read.
      case PlanKind::kRecursiveUnion: stops_early_ = true; break;
      default: break;
    }
  }
  void NoteJoin(JoinKind kind) {
    if (kind == JoinKind::kSemi || kind == JoinKind::kAnti) stops_early_ = true;
  }
  int CallsOfSubplan(int index) {
    int& known = subplan_calls_[static_cast<size_t>(index)];
    if (known >= 0) return known;
    known = 0;
    const size_t before = calls_;
    Node(plan_.subplans[static_cast<size_t>(index)].get());
    // Most subplans want one row.
    if (calls_ > before) stops_early_ = true;
    return subplan_calls_[static_cast<size_t>(index)] = static_cast<int>(calls_ - before);
  }

  void Exprs(const PlanNode& node) {
    if (node.kind != PlanKind::kValues) {
      VisitNodeExprs(node, [this](const Expr& expr) { One(expr); });
      return;
    }
    // It computes row by row of itself, so all of its rows are like one.
    const size_t before = calls_;
    size_t most = 0;
    for (const auto& row : node.As<ValuesNode>().rows_exprs) {
      calls_ = before;
      for (const ExprPtr& expr : row) One(*expr);
      most = std::max(most, calls_ - before);
    }
    calls_ = before + std::min<size_t>(most, 1);
  }
  void One(const Expr& expr) {
    VisitExpr(expr, [this](const Expr& part) {
      ++plan_.expressions;
      if (part.kind == ExprKind::kSubplan && part.index >= 0 && CallsOfSubplan(part.index) > 0) {
        calls_subplan_ = true;
      }
      if (part.function == nullptr || part.function->volatility == Volatility::kImmutable) return;
      const std::string_view name = part.function->name;
      if (part.function->volatility != Volatility::kVolatile ||
          std::find(kIndifferent.begin(), kIndifferent.end(), name) != kIndifferent.end()) {
        if (every_call_) ++calls_;
        return;
      }
      ++calls_;
      if (name == "setseed" || name == "set_config") sets_state_ = true;
      if (name == "nextval" && part.args.size() == 1 && part.args[0]->kind == ExprKind::kConstant &&
          !part.args[0]->constant.is_null() && !part.args[0]->type.array &&
          part.args[0]->type.id == TypeId::kRegclass) {
        sequences_.push_back(part.args[0]->constant.datum().int_value());
      } else {
        others_ = true;
      }
    });
  }

  // Only nextval, of a sequence of its own each.
  bool IndependentSequences() {
    if (others_) return false;
    std::sort(sequences_.begin(), sequences_.end());
    return std::adjacent_find(sequences_.begin(), sequences_.end()) == sequences_.end();
  }

  Plan& plan_;
  std::vector<int> subplan_calls_;
  size_t calls_ = 0;
  bool calls_subplan_ = false;  // the node that is looked at, one with calls
  bool stops_early_ = false;    // somebody may not want all rows
  bool sets_state_ = false;     // what others read, volatile or stable
  bool every_call_ = false;     // so they count as well
  bool others_ = false;         // calls of others than nextval
  std::vector<int64_t> sequences_;
};

}  // namespace

void MarkRowByRow(Plan* plan) { Marker(plan).Run(); }

}  // namespace cellar::sql::planning
