// What a parse costs: text to our tree, its destruction included.
#include <benchmark/benchmark.h>

#include <string>

#include "cellar/sql/parser/deparse.h"
#include "cellar/sql/parser/parser.h"
#include "cellar/sql/parser/splitter.h"

namespace cellar::sql {
namespace {

constexpr const char* kBegin = "BEGIN";
constexpr const char* kPoint = "SELECT a, b FROM t WHERE id = $1";
constexpr const char* kInsert =
    "INSERT INTO accounts (id, name, balance, created) VALUES ($1, $2, $3, now()) RETURNING id";
constexpr const char* kJoin =
    "SELECT c.name, o.day, sum(l.price * l.quantity) AS total FROM customers c "
    "JOIN orders o ON o.customer = c.id JOIN lines l ON l.order_id = o.id "
    "JOIN products p ON p.id = l.product LEFT JOIN stock s ON s.product = p.id "
    "WHERE c.region = 'north' AND o.day >= '2024-01-01' AND p.kind IN ('a', 'b', 'c') "
    "GROUP BY c.name, o.day HAVING count(*) > 3 ORDER BY total DESC LIMIT 20";

void BM_Parse(benchmark::State& state, const char* text) {
  for (auto _ : state) {
    auto result = Parse(text);
    benchmark::DoNotOptimize(result);
  }
}
BENCHMARK_CAPTURE(BM_Parse, begin, kBegin);
BENCHMARK_CAPTURE(BM_Parse, point_select, kPoint);
BENCHMARK_CAPTURE(BM_Parse, insert, kInsert);
BENCHMARK_CAPTURE(BM_Parse, five_way_join, kJoin);

void BM_ParseInList(benchmark::State& state) {
  std::string text = "SELECT * FROM t WHERE id IN (1";
  for (int i = 1; i < state.range(0); ++i) text += ", " + std::to_string(i);
  text += ")";
  for (auto _ : state) {
    auto result = Parse(text);
    benchmark::DoNotOptimize(result);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_ParseInList)->Arg(1000);

void BM_ParseExpression(benchmark::State& state) {
  for (auto _ : state) {
    auto result = ParseExpression("nextval('accounts_id_seq'::regclass)");
    benchmark::DoNotOptimize(result);
  }
}
BENCHMARK(BM_ParseExpression);

void BM_Deparse(benchmark::State& state) {
  auto statement = ParseOne(kJoin);
  for (auto _ : state) benchmark::DoNotOptimize(DeparseStatement(*statement->ast));
}
BENCHMARK(BM_Deparse);

void BM_Split(benchmark::State& state) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += "INSERT INTO t VALUES (1, 'some text', $q$more$q$); -- x\n";
  for (auto _ : state) benchmark::DoNotOptimize(SplitStatements(text));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}
BENCHMARK(BM_Split);

}  // namespace
}  // namespace cellar::sql
