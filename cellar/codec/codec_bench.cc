// What keys and rows cost. The targets are in docs/formats/key.md and row.md, "Cost".
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "cellar/codec/key.h"
#include "cellar/codec/key_bytes.h"
#include "cellar/codec/page.h"
#include "cellar/codec/random_values.h"
#include "cellar/codec/row.h"

namespace cellar::codec {
namespace {

using testing::RandomValues;

constexpr size_t kValues = 1024;  // a power of two; in the first-level cache

// Ids and small numbers mostly, as keys have.
std::vector<int64_t> Integers() {
  RandomValues random(1);
  std::vector<int64_t> out;
  for (size_t i = 0; i < kValues; ++i)
    out.push_back(static_cast<int64_t>(random.Bits() >> (32 + random.Below(24))));
  return out;
}

void WriteInteger(benchmark::State& state) {
  std::vector<int64_t> values = Integers();
  char out[16];
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(internal::WriteInt(values[i++ % kValues], out));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(WriteInteger);

void AppendInteger(benchmark::State& state) {
  std::vector<int64_t> values = Integers();
  std::string key;
  size_t i = 0;
  for (auto _ : state) {
    key.clear();
    AppendKeyInt(values[i++ % kValues], &key);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(AppendInteger);

void TakeInteger(benchmark::State& state) {
  std::string keys;
  for (int64_t v : Integers()) AppendKeyInt(v, &keys);
  std::string_view in = keys;
  bool negative;
  uint64_t value;
  internal::Cursor cursor(in);
  for (auto _ : state) {
    if (cursor.left() == 0) cursor = internal::Cursor(in);
    internal::TakeInteger(&cursor, &negative, &value);
    benchmark::DoNotOptimize(value);
  }
}
BENCHMARK(TakeInteger);

void TakeIntegerResult(benchmark::State& state) {
  std::string keys;
  for (int64_t v : Integers()) AppendKeyInt(v, &keys);
  std::string_view in = keys;
  for (auto _ : state) {
    if (in.empty()) in = keys;
    benchmark::DoNotOptimize(TakeKeyInt(&in));
  }
}
BENCHMARK(TakeIntegerResult);

void WriteText(benchmark::State& state) {
  std::string text(static_cast<size_t>(state.range(0)), 'x');
  char out[512];
  for (auto _ : state) {
    benchmark::DoNotOptimize(text.data());
    benchmark::DoNotOptimize(internal::WriteEscaped(internal::kTagText, text, out));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(WriteText)->Arg(5)->Arg(13)->Arg(32)->Arg(64)->Arg(128);

void CopyText(benchmark::State& state) {
  std::string text(static_cast<size_t>(state.range(0)), 'x');
  char out[512];
  for (auto _ : state) {
    benchmark::DoNotOptimize(text.data());
    benchmark::DoNotOptimize(std::memcpy(out, text.data(), text.size()));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(CopyText)->Arg(5)->Arg(13)->Arg(32)->Arg(64)->Arg(128);

std::vector<KeyColumn> CompositeColumns() {
  return {{MakeType(TypeId::kInt8)}, {MakeType(TypeId::kText)}, {MakeType(TypeId::kInt8)}};
}

// The same fields into a buffer, without columns and strings: what the bytes themselves cost.
void WriteComposite(benchmark::State& state) {
  std::vector<int64_t> values = Integers();
  char out[64];
  size_t i = 0;
  for (auto _ : state) {
    char* end = internal::WriteInt(values[i++ % kValues], out);
    end = internal::WriteEscaped(internal::kTagText, "thirteenbytes", end);
    benchmark::DoNotOptimize(internal::WriteInt(values[(i + 7) % kValues], end));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(WriteComposite);

void AppendComposite(benchmark::State& state) {
  std::vector<KeyColumn> columns = CompositeColumns();
  std::vector<int64_t> values = Integers();
  std::vector<std::array<Datum, 3>> rows(kValues);
  for (size_t i = 0; i < kValues; ++i) {
    rows[i] = {Datum::Int(values[i]), Datum::Bytes("thirteenbytes"),
               Datum::Int(values[(i + 7) % kValues])};
  }
  std::string key;
  size_t i = 0;
  for (auto _ : state) {
    key.clear();
    AppendKeyFields(rows[i++ % kValues], columns, &key);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(AppendComposite);

void DecodeComposite(benchmark::State& state) {
  std::vector<KeyColumn> columns = CompositeColumns();
  std::vector<int64_t> values = Integers();
  std::vector<std::string> keys(kValues);
  for (size_t i = 0; i < kValues; ++i) {
    Datum datums[3] = {Datum::Int(values[i]), Datum::Bytes("thirteenbytes"),
                       Datum::Int(values[(i + 7) % kValues])};
    AppendKeyFields(datums, columns, &keys[i]);
  }
  KeyDecoder decoder(columns, {0, 1, 2});
  std::vector<Type> types = {columns[0].type, columns[1].type, columns[2].type};
  RowBatch batch;
  batch.Reset(types);
  batch.Resize(kValues);
  size_t i = 0;
  for (auto _ : state) {
    if (i == kValues) {
      i = 0;
      batch.Clear();
      batch.Resize(kValues);
    }
    std::string_view in = keys[i];
    benchmark::DoNotOptimize(decoder.Decode(&in, i++, &batch));
  }
}
BENCHMARK(DecodeComposite);

// Ten columns: a plain business row.
RowFormat TenColumns() {
  std::vector<RowColumn> columns;
  for (TypeId id :
       {TypeId::kInt8, TypeId::kText, TypeId::kInt4, TypeId::kFloat8, TypeId::kTimestamptz,
        TypeId::kBool, TypeId::kText, TypeId::kNumeric, TypeId::kDate, TypeId::kUuid}) {
    columns.push_back({ColumnId{static_cast<uint32_t>(columns.size() + 1)}, MakeType(id)});
  }
  return *RowFormat::Make(1, std::move(columns));
}

std::vector<std::vector<Datum>> TenColumnRows(Arena* arena) {
  RandomValues random(2);
  RowFormat format = TenColumns();
  std::vector<std::vector<Datum>> rows(kValues);
  for (std::vector<Datum>& row : rows) {
    for (const RowColumn& column : format.columns())
      row.push_back(random.Value(column.type, arena));
    row[1] = Datum::Bytes("thirteenbytes");
    row[7] = Datum::Bytes(numeric::Make(static_cast<int64_t>(random.Below(100000)), 2, arena));
  }
  return rows;
}

void EncodeRow(benchmark::State& state) {
  Arena arena;
  RowFormat format = TenColumns();
  std::vector<std::vector<Datum>> rows = TenColumnRows(&arena);
  std::string value;
  size_t i = 0;
  for (auto _ : state) {
    value.clear();
    benchmark::DoNotOptimize(RowEncoder::Append(format, rows[i++ % kValues], &value));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(EncodeRow);

// The first range(0) columns of a block of rows; time is per row.
void DecodeRow(benchmark::State& state) {
  Arena arena;
  RowFormat format = TenColumns();
  std::vector<std::string> values;
  for (const std::vector<Datum>& row : TenColumnRows(&arena)) {
    (void)RowEncoder::Append(format, row, &values.emplace_back());
  }
  std::vector<std::string_view> views(values.begin(), values.end());
  std::vector<WantedColumn> wanted;
  std::vector<Type> types;
  for (const RowColumn& column : format.columns()) {
    if (wanted.size() == static_cast<size_t>(state.range(0))) break;
    wanted.push_back({column.id, column.type, static_cast<uint32_t>(types.size()), {}});
    types.push_back(column.type);
  }
  RowBytes bytes = state.range(1) != 0 ? RowBytes::kCopy : RowBytes::kBorrow;
  RowDecoder decoder = *RowDecoder::Make(format, std::move(wanted), bytes);
  RowBatch batch;
  batch.Reset(types);
  for (auto _ : state) {
    batch.Clear();
    batch.Resize(kValues);
    benchmark::DoNotOptimize(decoder.Decode(views, 0, &batch));
    benchmark::ClobberMemory();
  }
  state.counters["ns_per_row"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kValues * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(DecodeRow)->Args({1, 0})->Args({2, 0})->Args({10, 0})->Args({10, 1});

// ---- Pages: ns per row ----

void CountRows(benchmark::State& state, size_t rows) {
  state.counters["ns_per_row"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(rows) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// An id, a number of 3 bytes, one of 5 with NULLs, a price, a flag, one of 20 words, a text.
RowBatch PageBatch(size_t rows) {
  RandomValues random(3);
  const std::vector<Type> types = {MakeType(TypeId::kInt8),   MakeType(TypeId::kInt4),
                                   MakeType(TypeId::kInt8),   MakeType(TypeId::kFloat8),
                                   MakeType(TypeId::kBool),   MakeType(TypeId::kText),
                                   MakeType(TypeId::kVarchar)};
  RowBatch batch;
  batch.Reset(types);
  for (size_t i = 0; i < rows; ++i) {
    const std::string word = "word " + std::to_string(random.Below(20));
    std::string text(20 + random.Below(25), ' ');
    for (char& c : text) c = static_cast<char>('a' + random.Below(26));
    Datum code = Datum::Int(static_cast<int64_t>(random.Bits() >> 24));
    if (random.OneIn(10)) code = Datum();
    const auto cents = static_cast<double>(random.Below(10000000));
    Datum row[] = {Datum::Int(static_cast<int64_t>(i)),
                   Datum::Int(static_cast<int64_t>(random.Below(1000000))),
                   code,
                   Datum::Double(cents / 100),
                   Datum::Bool(random.OneIn(2)),
                   Datum::Bytes(word),
                   Datum::Bytes(text)};
    batch.AppendRow(row);
  }
  return batch;
}

std::string MakePage(const RowBatch& batch, std::string page = {}) {
  std::vector<RowColumn> columns;
  std::vector<uint32_t> positions;
  for (const ColumnVector& column : batch.columns()) {
    positions.push_back(static_cast<uint32_t>(columns.size()));
    columns.push_back({ColumnId{static_cast<uint32_t>(columns.size() + 1)}, column.type()});
  }
  const RowFormat format = *RowFormat::Make(1, columns);
  PageRows rows;
  rows.format = &format;
  rows.batch = &batch;
  rows.positions = positions;
  rows.count = batch.size();
  rows.keys = PageKeys::kInt;
  page.clear();
  (void)AppendPage(rows, &page);
  return page;
}

void AppendPageOfSevenColumns(benchmark::State& state) {
  const RowBatch batch = PageBatch(static_cast<size_t>(state.range(0)));
  std::string page;
  for (auto _ : state) page = MakePage(batch, std::move(page));
  CountRows(state, batch.size());
}
BENCHMARK(AppendPageOfSevenColumns)->Arg(128)->Arg(1024);

void ParsePage(benchmark::State& state) {
  const std::string page = MakePage(PageBatch(1024));
  PageView view;
  for (auto _ : state) benchmark::DoNotOptimize(view.Parse(page).ok());
}
BENCHMARK(ParsePage);

// range(0): the column.
void DecodeChunk(benchmark::State& state) {
  const RowBatch batch = PageBatch(1024);
  const std::string page = MakePage(batch);
  const auto at = static_cast<uint32_t>(state.range(0));
  PageView view;
  (void)view.Parse(page);
  ColumnVector column(batch.column(at).type());
  column.Resize(1024);
  Arena arena;
  for (auto _ : state) {
    arena.Reset();
    Chunk chunk;
    (void)view.GetChunk(at, column.type(), &chunk);
    benchmark::DoNotOptimize(chunk.Decode(0, 1024, 0, &column, &arena).ok());
    benchmark::ClobberMemory();
  }
  CountRows(state, 1024);
}
BENCHMARK(DecodeChunk)->DenseRange(0, 6);

void FilterChunk(benchmark::State& state) {
  const RowBatch batch = PageBatch(1024);
  const std::string page = MakePage(batch);
  const auto at = static_cast<uint32_t>(state.range(0));
  PageView view;
  (void)view.Parse(page);
  Chunk chunk;
  (void)view.GetChunk(at, batch.column(at).type(), &chunk);
  ValueFilter filter{FilterOp::kLess, batch.column(at).Get(7)};
  if (filter.value.is_null()) filter.value = batch.column(at).Get(8);
  std::vector<uint8_t> mask(1024);
  for (auto _ : state) {
    std::fill(mask.begin(), mask.end(), 1);
    benchmark::DoNotOptimize(chunk.Filter(filter, 0, 1024, mask.data()).ok());
    benchmark::ClobberMemory();
  }
  CountRows(state, 1024);
}
BENCHMARK(FilterChunk)->DenseRange(0, 6);

void GetFromChunk(benchmark::State& state) {
  const RowBatch batch = PageBatch(1024);
  const std::string page = MakePage(batch);
  const auto at = static_cast<uint32_t>(state.range(0));
  PageView view;
  (void)view.Parse(page);
  Chunk chunk;
  (void)view.GetChunk(at, batch.column(at).type(), &chunk);
  uint32_t row = 0;
  Arena arena;
  for (auto _ : state) {
    arena.Reset();
    benchmark::DoNotOptimize(chunk.Get(row, &arena).ok());
    row = (row + 37) % 1024;
  }
}
BENCHMARK(GetFromChunk)->DenseRange(0, 6);

}  // namespace
}  // namespace cellar::codec
