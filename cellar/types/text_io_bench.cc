// What COPY and the wire do per value: text to datum and back.
#include <benchmark/benchmark.h>

#include <array>

#include "cellar/types/numeric.h"
#include "cellar/types/text_io.h"

namespace cellar {
namespace {

struct Sample {
  TypeId type;
  std::array<const char*, 4> texts;
};

constexpr Sample kSamples[] = {
    {TypeId::kInt4, {"1", "12345", "-99999999", "70000"}},
    {TypeId::kInt8, {"1", "12345678901234", "-5", "987654321"}},
    {TypeId::kText, {"hello world", "a longer piece of text here, ok", "x", "some more"}},
    {TypeId::kFloat8, {"1.5", "0.1234567890123", "1e20", "-17.25"}},
    {TypeId::kNumeric, {"12.34", "1234567.1234", "-0.01", "42"}},
    {TypeId::kDate, {"2024-02-29", "1999-12-31", "2001-01-01", "1970-06-15"}},
    {TypeId::kTimestamp,
     {"2024-02-29 12:34:56.789", "1999-12-31 00:00:00", "2001-01-01 23:59:59",
      "1970-06-15 08:00:00"}},
    {TypeId::kTimestamptz,
     {"2024-02-29 12:34:56.789+01", "1999-12-31 00:00:00+00", "2001-01-01 23:59:59-08",
      "1970-06-15 08:00:00+05:30"}},
    {TypeId::kInterval, {"1 day 02:03:04", "3 mons", "-00:00:01.5", "1 year 2 mons"}},
    {TypeId::kUuid,
     {"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000",
      "ffffffff-ffff-ffff-ffff-ffffffffffff", "12345678-9abc-def0-1234-56789abcdef0"}},
    {TypeId::kBytea, {"\\xdeadbeef0011", "\\x", "\\x00", "\\xffffffffffffffffffff"}},
    {TypeId::kJsonb, {"{\"a\": 1, \"bb\": [1, 2, 3]}", "1", "[]", "{\"k\": \"v\"}"}},
};

void BM_Parse(benchmark::State& state) {
  const Sample& sample = kSamples[state.range(0)];
  const Type type = MakeType(sample.type);
  const FormatSettings settings;
  Arena arena;
  size_t i = 0;
  for (auto _ : state) {
    if ((i & 1023) == 0) arena.Reset();
    benchmark::DoNotOptimize(ParseDatum(sample.texts[i++ & 3], type, settings, &arena));
  }
  state.SetLabel(TypeName(type));
}

void BM_Print(benchmark::State& state) {
  const Sample& sample = kSamples[state.range(0)];
  const Type type = MakeType(sample.type);
  const FormatSettings settings;
  Arena arena;
  std::array<Datum, 4> values;
  for (size_t k = 0; k < 4; ++k) {
    values[k] = ParseDatum(sample.texts[k], type, settings, &arena).value();
  }
  std::string out;
  size_t i = 0;
  for (auto _ : state) {
    out.clear();
    AppendDatumText(values[i++ & 3], type, settings, &out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetLabel(TypeName(type));
}

BENCHMARK(BM_Parse)->DenseRange(0, std::size(kSamples) - 1);
BENCHMARK(BM_Print)->DenseRange(0, std::size(kSamples) - 1);

void BM_Numeric(benchmark::State& state) {
  Arena arena;
  const std::string a(*numeric::Parse("1234567.1234", &arena)), b(*numeric::Parse("12.34", &arena));
  size_t i = 0;
  for (auto _ : state) {
    if ((i++ & 1023) == 0) arena.Reset();
    switch (state.range(0)) {
      case 0: benchmark::DoNotOptimize(numeric::Add(a, b, &arena)); break;
      case 1: benchmark::DoNotOptimize(numeric::Multiply(a, b, &arena)); break;
      case 2: benchmark::DoNotOptimize(numeric::Divide(a, b, &arena)); break;
      case 3: benchmark::DoNotOptimize(numeric::Compare(a, b)); break;
      default: benchmark::DoNotOptimize(numeric::Hash(a)); break;
    }
  }
  static constexpr const char* kLabels[] = {"add", "multiply", "divide", "compare", "hash"};
  state.SetLabel(kLabels[state.range(0)]);
}
BENCHMARK(BM_Numeric)->DenseRange(0, 4);

}  // namespace
}  // namespace cellar
