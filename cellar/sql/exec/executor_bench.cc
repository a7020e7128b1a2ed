// What operators cost a row when rows come for nothing: batches in memory instead of a table.
#include <benchmark/benchmark.h>

#include "cellar/sql/exec/executor.h"
#include "cellar/sql/plan/query_nodes.h"

namespace cellar::sql {
namespace {

constexpr size_t kRows = 1 << 20;

// The columns of the source: a int4, b int8, d float8, e float8, n float8 with NULLs, g text of six
// values with codes, h text of six values, k int4 of six values.
constexpr int kA = 0, kB = 1, kD = 2, kE = 3, kN = 4, kG = 5, kH = 6, kK = 7;

std::vector<Type> SourceTypes() {
  return {MakeType(TypeId::kInt4),   MakeType(TypeId::kInt8),   MakeType(TypeId::kFloat8),
          MakeType(TypeId::kFloat8), MakeType(TypeId::kFloat8), MakeType(TypeId::kText),
          MakeType(TypeId::kText),   MakeType(TypeId::kInt4)};
}

void FillBatch(size_t rows, RowBatch* batch) {
  static constexpr std::string_view kWords[] = {"open", "paid", "sent", "lost", "done", "void"};
  batch->Reset(SourceTypes());
  batch->Resize(rows);
  uint8_t* codes = batch->column(kG).SetDictionary(kWords);
  uint64_t random = 1;
  for (size_t i = 0; i < rows; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const int64_t value = static_cast<int64_t>(random >> 40);
    const uint8_t word = static_cast<uint8_t>((random >> 33) % 6);
    batch->column(kA).ints()[i] = value % 100000;
    batch->column(kB).ints()[i] = value;
    batch->column(kD).doubles()[i] = static_cast<double>(value) / 8;
    batch->column(kE).doubles()[i] = static_cast<double>(value % 10) / 100;
    batch->column(kN).doubles()[i] = static_cast<double>(value);
    if (value % 7 == 0) batch->column(kN).SetNull(i);
    codes[i] = word;
    batch->column(kG).bytes()[i] = batch->column(kH).bytes()[i] = kWords[word];
    batch->column(kK).ints()[i] = word;
  }
}

ExprPtr Column(int index) { return MakeColumn(index, SourceTypes()[static_cast<size_t>(index)]); }

ExprPtr Operator(std::string_view op, ExprPtr left, ExprPtr right) {
  const Type types[] = {left->type, right->type};
  const ResolvedFunction resolved = *ResolveOperator(op, types);
  auto out = std::make_unique<Expr>();
  out->kind = ExprKind::kCall;
  out->function = resolved.spec;
  out->type = resolved.result;
  out->args.push_back(std::move(left));
  out->args.push_back(std::move(right));
  return out;
}

AggregateCall Call(std::string_view name, ExprPtr arg) {
  AggregateCall call;
  std::vector<Type> types;
  if (arg != nullptr) types.push_back(arg->type);
  const ResolvedAggregate resolved = *ResolveAggregate(name, types, arg == nullptr);
  call.spec = resolved.spec;
  call.result = resolved.result;
  if (arg != nullptr) call.args.push_back(std::move(arg));
  return call;
}

PlanPtr Source() {
  auto source = std::make_unique<ExternalNode>();
  for (Type type : SourceTypes()) source->output.push_back({.name = {}, .type = type});
  return source;
}

std::shared_ptr<Plan> PlanOf(std::vector<ExprPtr> keys, std::vector<AggregateCall> calls) {
  auto node = std::make_unique<GroupingNode>();
  node->keys = std::move(keys);
  node->calls = std::move(calls);
  node->children.push_back(Source());
  auto plan = std::make_shared<Plan>();
  plan->root = std::move(node);
  return plan;
}

template <typename... T>
std::vector<std::decay_t<std::common_type_t<T...>>> List(T... items) {
  std::vector<std::decay_t<std::common_type_t<T...>>> out;
  (out.push_back(std::move(items)), ...);
  return out;
}

void Run(benchmark::State& state, const std::shared_ptr<Plan>& plan) {
  const size_t rows = static_cast<size_t>(state.range(0));
  EvalContext context;
  Arena arena;
  context.set_arena(&arena);
  for (auto _ : state) {
    size_t left = kRows / rows;
    bool filled = false;
    ExecEnvironment environment;
    environment.context = &context;
    environment.external_rows = [&](RowBatch* batch) -> Result<bool> {
      if (!filled) {
        state.PauseTiming();
        FillBatch(rows, batch);
        state.ResumeTiming();
        filled = true;
      }
      batch->SetSize(rows);
      return left-- > 0;
    };
    const std::unique_ptr<Execution> execution = *Execution::Open(plan, environment);
    while (const RowBatch* batch = *execution->Next()) benchmark::DoNotOptimize(batch->size());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kRows / rows * rows));
}

#define CELLAR_EXEC(name, keys, ...)                                     \
  void name(benchmark::State& state) {                                   \
    std::vector<ExprPtr> by;                                             \
    keys;                                                                \
    Run(state, PlanOf(std::move(by), List<AggregateCall>(__VA_ARGS__))); \
  }                                                                      \
  BENCHMARK(name)->Arg(200)->Arg(1024)->Unit(benchmark::kMicrosecond)

CELLAR_EXEC(CountStar, , Call("count", nullptr));
CELLAR_EXEC(SumInt4, , Call("sum", Column(kA)));
CELLAR_EXEC(SumInt8, , Call("sum", Column(kB)));
CELLAR_EXEC(SumDouble, , Call("sum", Column(kD)));
CELLAR_EXEC(SumDoubleWithNulls, , Call("sum", Column(kN)));
CELLAR_EXEC(MaxInt4, , Call("max", Column(kA)));
CELLAR_EXEC(MinDouble, , Call("min", Column(kD)));
CELLAR_EXEC(SumProduct, , Call("sum", Operator("*", Column(kD), Column(kE))));
CELLAR_EXEC(GroupByCodes, by.push_back(Column(kG)), Call("count", nullptr), Call("sum", Column(kA)),
            Call("avg", Column(kD)), Call("max", Column(kE)));
CELLAR_EXEC(GroupByText, by.push_back(Column(kH)), Call("count", nullptr), Call("sum", Column(kA)),
            Call("avg", Column(kD)), Call("max", Column(kE)));
CELLAR_EXEC(GroupByInt, by.push_back(Column(kK)), Call("count", nullptr), Call("sum", Column(kA)),
            Call("avg", Column(kD)), Call("max", Column(kE)));

}  // namespace
}  // namespace cellar::sql
