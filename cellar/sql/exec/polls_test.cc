// How long operators go on after somebody has asked them to stop: counted in evaluations of an
// expression, not in time.
#include <gtest/gtest.h>

#include "cellar/sql/exec/executor.h"
#include "cellar/sql/plan/query_nodes.h"

namespace cellar::sql {
namespace {

constexpr uint64_t kMostSteps = 10000;

// What the probe has counted, and when it asks for the end.
uint64_t calls = 0, cancel_at = 0;
CancelToken* token = nullptr;

// probe(x): false; counts its calls, and cancels at one of them.
Result<Datum> Probe(EvalContext&, const Expr&, std::span<const Datum>) {
  if (++calls == cancel_at) token->Cancel(CancelToken::Reason::kUser);
  return Datum::Bool(false);
}

const FunctionSpec& ProbeSpec() {
  static const FunctionSpec spec = [] {
    FunctionSpec made;
    made.name = "probe";
    made.args = {MakeType(TypeId::kInt8)};
    made.result = MakeType(TypeId::kBool);
    made.volatility = Volatility::kVolatile;
    made.scalar = Probe;
    return made;
  }();
  return spec;
}

ExprPtr Column(int index = 0) { return MakeColumn(index, MakeType(TypeId::kInt8)); }

ExprPtr CallProbe(int column = 0) {
  auto call = std::make_unique<Expr>();
  call->kind = ExprKind::kCall;
  call->function = &ProbeSpec();
  call->type = MakeType(TypeId::kBool);
  call->args.push_back(Column(column));
  return call;
}

// generate_series(1, rows), which looks at no token itself.
PlanPtr Series(int64_t rows) {
  auto node = std::make_unique<FunctionScanNode>();
  const Type type = MakeType(TypeId::kInt8);
  const Type types[] = {type, type};
  const ResolvedFunction resolved = *ResolveFunction("generate_series", types);
  auto call = std::make_unique<Expr>();
  call->kind = ExprKind::kCall;
  call->function = resolved.spec;
  call->type = resolved.result;
  for (int64_t bound : {int64_t{1}, rows}) {
    call->args.push_back(MakeConstant(Value(type, Datum::Int(bound))));
  }
  node->calls.push_back(std::move(call));
  node->output.push_back({.name = "g", .type = type});
  return node;
}

constexpr int64_t kEndless = int64_t{1} << 60;

AggregateCall CountOfProbes() {
  AggregateCall call;
  const Type types[] = {MakeType(TypeId::kBool)};
  const ResolvedAggregate resolved = *ResolveAggregate("count", types, false);
  call.spec = resolved.spec;
  call.result = resolved.result;
  call.args.push_back(CallProbe());
  return call;
}

// Runs to the end; checks that it was cancelled, and how many evaluations later.
void ExpectStops(PlanPtr root, std::vector<PlanPtr> ctes = {}, int work_tables = 0, int slots = 0) {
  auto plan = std::make_shared<Plan>();
  plan->root = std::move(root);
  plan->ctes = std::move(ctes);
  plan->num_work_tables = work_tables;
  plan->num_slots = slots;
  for (const uint64_t at : {uint64_t{1}, uint64_t{1500}, uint64_t{50001}}) {
    CancelToken cancel;
    token = &cancel;
    calls = 0;
    cancel_at = at;
    Arena arena;
    EvalContext context;
    context.set_arena(&arena);
    context.cancel = &cancel;
    ExecEnvironment environment;
    environment.context = &context;
    Status status;
    const auto run = [&]() -> Status {
      CELLAR_TRY_ASSIGN(const std::unique_ptr<Execution> execution,
                        Execution::Open(plan, environment));
      while (true) {
        CELLAR_TRY_ASSIGN(const RowBatch* batch, execution->Next());
        if (batch == nullptr) return Status();
      }
    };
    status = run();
    EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
    EXPECT_GE(calls, at);
    EXPECT_LE(calls - at, kMostSteps) << "cancelled at " << at;
  }
}

template <typename Node>
PlanPtr Over(std::unique_ptr<Node> node, PlanPtr child) {
  if (node->output.empty()) node->output = child->output;
  node->children.push_back(std::move(child));
  return node;
}

PlanPtr Filtered(PlanPtr child) {
  auto node = std::make_unique<FilterNode>();
  node->condition = CallProbe();
  return Over(std::move(node), std::move(child));
}

TEST(Polls, FilterWithoutOutput) { ExpectStops(Filtered(Series(kEndless))); }

TEST(Polls, Projection) {
  auto node = std::make_unique<ProjectNode>();
  node->exprs.push_back(CallProbe());
  node->output.push_back({.name = {}, .type = MakeType(TypeId::kBool)});
  ExpectStops(Over(std::move(node), Series(kEndless)));
}

TEST(Polls, AppendOfManyWithoutRows) {
  auto node = std::make_unique<AppendNode>();
  node->output = Series(1)->output;
  for (int i = 0; i < 60000; ++i) node->children.push_back(Filtered(Series(1)));
  ExpectStops(std::move(node));
}

TEST(Polls, NestedLoopWithoutOutput) {
  for (JoinKind kind : {JoinKind::kInner, JoinKind::kLeft, JoinKind::kSemi, JoinKind::kAnti}) {
    for (int64_t inner : {int64_t{3}, int64_t{100000}}) {
      auto node = std::make_unique<NestedLoopNode>();
      node->join = kind;
      node->condition = CallProbe(1);
      node->output = Series(1)->output;
      if (kind == JoinKind::kInner || kind == JoinKind::kLeft)
        node->output.push_back(node->output[0]);
      node->children.push_back(Series(kEndless));
      node->children.push_back(Series(inner));
      ExpectStops(std::move(node));
    }
  }
}

TEST(Polls, LateralJoinWithoutOutput) {
  auto node = std::make_unique<NestedLoopNode>();
  node->slots.push_back(0);
  node->slot_values.push_back(Column());
  node->condition = CallProbe(1);
  node->output = Series(1)->output;
  node->output.push_back(node->output[0]);
  node->children.push_back(Series(kEndless));
  node->children.push_back(Series(kEndless));
  ExpectStops(std::move(node), {}, 0, 1);
}

TEST(Polls, HashJoinWithOneLongChain) {
  for (JoinKind kind : {JoinKind::kInner, JoinKind::kLeft, JoinKind::kAnti}) {
    auto node = std::make_unique<HashJoinNode>();
    node->join = kind;
    for (auto* keys : {&node->left_keys, &node->right_keys}) {
      keys->push_back(MakeConstant(Value(MakeType(TypeId::kInt8), Datum::Int(1))));
    }
    node->condition = CallProbe(1);
    node->output = Series(1)->output;
    if (kind != JoinKind::kAnti) node->output.push_back(node->output[0]);
    node->children.push_back(Series(kEndless));
    node->children.push_back(Series(100000));
    ExpectStops(std::move(node));
  }
}

TEST(Polls, Aggregate) {
  for (bool grouped : {false, true}) {
    auto node = std::make_unique<GroupingNode>();
    if (grouped) node->keys.push_back(CallProbe());
    node->calls.push_back(CountOfProbes());
    ExpectStops(Over(std::move(node), Series(kEndless)));
  }
}

TEST(Polls, SortAndDistinct) {
  auto sort = std::make_unique<SortNode>();
  sort->keys.emplace_back().expr = CallProbe();
  ExpectStops(Over(std::move(sort), Series(kEndless)));
  ExpectStops(Over(std::make_unique<DistinctNode>(), Filtered(Series(kEndless))));
}

TEST(Polls, SetOperation) {
  auto node = std::make_unique<SetOperationNode>();
  node->operation = SetOperationNode::Kind::kExcept;
  node->output = Series(1)->output;
  node->children.push_back(Series(10));
  node->children.push_back(Filtered(Series(kEndless)));
  ExpectStops(std::move(node));
}

TEST(Polls, Recursion) {
  const auto work = [] {
    auto scan = std::make_unique<WorkTableScanNode>();
    scan->output = Series(1)->output;
    return scan;
  };
  // Each round gives what it got; the probe is asked of what comes out.
  auto node = std::make_unique<RecursiveUnionNode>();
  node->all = true;
  node->output = Series(1)->output;
  node->children.push_back(Series(3));
  node->children.push_back(work());
  ExpectStops(Filtered(std::move(node)), {}, 1);
}

TEST(Polls, WithQueryReadTwice) {
  const auto scan = [] {
    auto node = std::make_unique<CteScanNode>();
    node->output = Series(1)->output;
    return node;
  };
  auto append = std::make_unique<AppendNode>();
  append->output = Series(1)->output;
  append->children.push_back(Filtered(scan()));
  append->children.push_back(Filtered(scan()));
  std::vector<PlanPtr> ctes;
  ctes.push_back(Series(kEndless));
  ExpectStops(std::move(append), std::move(ctes));
}

}  // namespace
}  // namespace cellar::sql
