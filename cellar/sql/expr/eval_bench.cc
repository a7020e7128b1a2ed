// What evaluation costs: per row of a batch, and per node of a single row.
#include <benchmark/benchmark.h>

#include "cellar/sql/expr/eval.h"
#include "cellar/sql/expr/function.h"
#include "cellar/sql/expr/test_parser.h"

namespace cellar::sql {
namespace {

const std::vector<testing::TestColumn> kColumns = {{"a", MakeType(TypeId::kInt4)},
                                                   {"b", MakeType(TypeId::kInt4)},
                                                   {"t", MakeType(TypeId::kText)},
                                                   {"f", MakeType(TypeId::kFloat8)},
                                                   {"n", MakeType(TypeId::kNumeric)}};

RowBatch MakeBatch(size_t rows) {
  std::vector<Type> types;
  for (const testing::TestColumn& column : kColumns) types.push_back(column.type);
  RowBatch batch;
  batch.Reset(types);
  Arena arena;
  for (size_t i = 0; i < rows; ++i) {
    const int64_t value = static_cast<int64_t>(i * 7919 % 1000);
    Datum n = *ParseDatum(std::to_string(value) + ".25", types[4], FormatSettings(), &arena);
    const std::string text = "customer " + std::to_string(value);
    const Datum row[] = {Datum::Int(value), Datum::Int(value + 1), Datum::Bytes(text),
                         Datum::Double(static_cast<double>(value)), n};
    batch.AppendRow(row);
  }
  return batch;
}

void Run(benchmark::State& state, const char* text, bool filter) {
  const size_t rows = static_cast<size_t>(state.range(0));
  RowBatch batch = MakeBatch(rows);
  Arena arena;
  EvalContext context;
  context.set_arena(&arena);
  ExprPtr expr = *testing::Bind(text, kColumns, &context);
  Evaluator evaluator(expr.get());
  std::vector<uint32_t> passing;
  for (auto _ : state) {
    arena.Reset();
    if (filter) {
      passing.clear();
      benchmark::DoNotOptimize(evaluator.Filter(batch, {nullptr, rows}, context, &passing).ok());
    } else {
      benchmark::DoNotOptimize(evaluator.Eval(batch, {nullptr, rows}, context).ok());
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(rows));
}

#define CELLAR_EVAL(name, text) BENCHMARK_CAPTURE(Run, name, text, false)->Arg(1)->Arg(1024)
#define CELLAR_FILTER(name, text) BENCHMARK_CAPTURE(Run, name, text, true)->Arg(1)->Arg(1024)

CELLAR_EVAL(add, "a + b");
CELLAR_EVAL(add_constant, "a + 1");
CELLAR_EVAL(multiply_add, "a * 3 + b");
CELLAR_EVAL(divide, "a / 3");
CELLAR_EVAL(float_add, "f + 1.5");
CELLAR_EVAL(numeric_add, "n + n");
CELLAR_EVAL(compare, "a < b");
CELLAR_EVAL(lower, "lower(t)");
CELLAR_EVAL(concat, "t || 'x'");
CELLAR_EVAL(case_when, "case when a < 500 then 1 else 2 end");
CELLAR_FILTER(less_than_constant, "a < 500");
CELLAR_FILTER(text_equal, "t = 'customer 7'");
CELLAR_FILTER(conjunction, "a < 500 and b > 100 and f < 400");
CELLAR_FILTER(in_20, "a in (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20)");
CELLAR_FILTER(like_prefix, "t like 'customer 7%'");
CELLAR_FILTER(like_middle, "t like '%77%'");
CELLAR_FILTER(regex, "t ~ '7[0-9]$'");

void Resolve(benchmark::State& state) {
  const Type pair[2] = {MakeType(TypeId::kInt4), MakeType(TypeId::kUnknown)};
  for (auto _ : state) benchmark::DoNotOptimize(ResolveOperator("=", pair).ok());
}
BENCHMARK(Resolve);

void Aggregate(benchmark::State& state, const char* name, int column) {
  RowBatch batch = MakeBatch(1024);
  Arena arena;
  EvalContext context;
  context.set_arena(&arena);
  const Type type = batch.column(static_cast<size_t>(column)).type();
  ResolvedAggregate resolved = *ResolveAggregate(name, {&type, 1}, false);
  std::unique_ptr<AggregateState> aggregate = resolved.spec->make(resolved.arg_types);
  aggregate->Resize(16);
  std::vector<uint32_t> groups;
  for (uint32_t i = 0; i < 1024; ++i) groups.push_back(i % 16);
  const ColumnVector* args[] = {&batch.column(static_cast<size_t>(column))};
  for (auto _ : state) {
    benchmark::DoNotOptimize(aggregate->Add(context, args, {nullptr, 1024}, groups.data()).ok());
  }
  state.SetItemsProcessed(state.iterations() * 1024);
}
BENCHMARK_CAPTURE(Aggregate, sum_int4, "sum", 0);
BENCHMARK_CAPTURE(Aggregate, max_int4, "max", 0);
BENCHMARK_CAPTURE(Aggregate, avg_numeric, "avg", 4);
BENCHMARK_CAPTURE(Aggregate, count, "count", 0);

}  // namespace
}  // namespace cellar::sql
