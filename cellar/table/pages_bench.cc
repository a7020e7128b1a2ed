// What layouts cost at this layer: loads, sealing, scans of some columns, rows by key, on a million
// rows of ten columns. Warm cache.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "cellar/catalog/catalog.h"
#include "cellar/engines/rocksdb/rocks_engine.h"
#include "cellar/table/access.h"
#include "cellar/table/sealer.h"

namespace cellar::table {
namespace {

constexpr int64_t kRows = 1000000;

void Check(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "{}\n", status.ToString());
  std::abort();
}
template <typename T>
T Check(Result<T> result) {
  Check(result.status());
  return std::move(result).value();
}

struct Names {
  Names() {
    for (int i = 0; i < 20; ++i) kinds.push_back("kind of thing " + std::to_string(i));
    std::mt19937_64 random(7);
    for (int i = 0; i < 4096; ++i) {
      std::string text;
      for (size_t n = 8 + random() % 37; text.size() < n;) {
        text.push_back(static_cast<char>('a' + random() % 26));
      }
      texts.push_back(std::move(text));
    }
  }
  std::vector<std::string> kinds, texts;
};
const Names& TheNames() {
  static const Names names;
  return names;
}

// id int8 primary key, k int4, at timestamp, price float8, name text, kind text of 20, qty int4
// below 100, flag bool, note text, code int8 of 40 bits or NULL.
constexpr TypeId kTypes[] = {TypeId::kInt8, TypeId::kInt4, TypeId::kTimestamp, TypeId::kFloat8,
                             TypeId::kText, TypeId::kText, TypeId::kInt4,      TypeId::kBool,
                             TypeId::kText, TypeId::kInt8};

struct Fixture {
  explicit Fixture(catalog::Layout layout) {
    directory = std::filesystem::temp_directory_path() /
                ("pages_bench_" + std::to_string(std::random_device()()));
    std::filesystem::create_directories(directory);
    engines::RocksOptions options;
    options.directory = (directory / "store").string();
    options.cache_bytes = size_t{512} << 20;
    engine = Check(engines::OpenRocksEngine(options));
    catalog = Check(catalog::Catalog::Open(engine.get()));
    tables = std::make_unique<TableStore>(engine.get());
    table = Create(layout, "t");
    const auto begin = std::chrono::steady_clock::now();
    Load(table, kRows);
    const std::chrono::duration<double> load = std::chrono::steady_clock::now() - begin;
    const codec::KeyRange range = codec::PrefixRange(codec::TablePrefix(table->id));
    Check(engine->Compact(range.start, range.end));
    fmt::print("{}: loaded in {:.2f} s, {:.1f} MB\n",
               layout == catalog::Layout::kRow ? "rows" : "pages", load.count(),
               static_cast<double>(engine->ApproximateBytes(range.start, range.end)) / 1e6);
    for (const catalog::ColumnDescriptor& column : table->columns) columns.push_back(column.id);
  }
  ~Fixture() {
    catalog.reset();
    tables.reset();
    engine.reset();
    std::filesystem::remove_all(directory);
  }

  TablePtr Create(catalog::Layout layout, std::string name) {
    TableDescriptor descriptor;
    descriptor.name = std::move(name);
    descriptor.layout = layout;
    descriptor.parent = catalog->Current()->FindNamespace(catalog::kRootNamespace, "cellar")->id;
    for (uint32_t i = 0; i < std::size(kTypes); ++i) {
      catalog::ColumnDescriptor column;
      column.id.value = i + 1;
      column.name = "c" + std::to_string(i);
      column.type = MakeType(kTypes[i]);
      column.not_null = i == 0;
      descriptor.columns.push_back(column);
    }
    IndexDescriptor index;
    index.name = descriptor.name + "_pkey";
    index.primary = index.unique = true;
    catalog::IndexColumn key;
    key.column.value = 1;
    index.key = {key};
    descriptor.indexes.push_back(index);
    auto transaction = engine->Begin();
    catalog::CatalogEditor editor(catalog.get(), transaction.get());
    const TablePtr made = Check(editor.CreateTable(descriptor));
    catalog->Publish(editor, Check(transaction->Commit()));
    return catalog->Current()->GetTable(made->id);
  }

  static void Fill(RowBatch* batch, int64_t first, size_t count) {
    std::vector<Type> types;
    for (TypeId type : kTypes) types.push_back(MakeType(type));
    batch->Reset(types);
    batch->Resize(count);
    const Names& names = TheNames();
    for (size_t i = 0; i < count; ++i) {
      const int64_t id = first + static_cast<int64_t>(i);
      std::mt19937_64 random(static_cast<uint64_t>(id));
      batch->column(0).Set(i, Datum::Int(id));
      batch->column(1).Set(i, Datum::Int(id * 7919 % kRows));
      batch->column(2).Set(i, Datum::Int(700000000000000 + id * 1000000 + id % 999983));
      batch->column(3).Set(i, Datum::Double(static_cast<double>(random() % 1000000) / 100));
      const std::string_view name = names.texts[random() % names.texts.size()];
      batch->column(4).Set(i, Datum::Bytes(name.substr(0, 16)));
      batch->column(5).Set(i, Datum::Bytes(names.kinds[random() % 20]));
      batch->column(6).Set(i, Datum::Int(static_cast<int64_t>(random() % 100)));
      batch->column(7).Set(i, Datum::Int(static_cast<int64_t>(random() % 2)));
      batch->column(8).Set(i, Datum::Bytes(names.texts[random() % names.texts.size()]));
      batch->column(9).Set(
          i, random() % 10 == 0 ? Datum()
                                : Datum::Int(static_cast<int64_t>(random() & ((1ULL << 40) - 1))));
    }
  }

  void Load(const TablePtr& into, int64_t rows) {
    kv::TransactionOptions options;
    options.bulk = true;
    auto transaction = engine->Begin(options);
    Access access(transaction.get(), nullptr, tables.get());
    Check(access.BeginBulk(into));
    RowBatch batch;
    for (int64_t first = 0; first < rows; first += 1000) {
      Fill(&batch, first, 1000);
      Check(access.Insert(into, &batch, ConflictPolicy(), nullptr));
    }
    Check(access.EndBulk(true));
    Check(transaction->Commit());
  }

  ScanSpec PointSpec(int64_t id) const {
    ScanSpec spec;
    spec.table = table;
    spec.index = table->primary().id;
    spec.spans.resize(1);
    spec.spans[0].equal = {Datum::Int(id)};
    spec.columns = columns;
    return spec;
  }

  std::filesystem::path directory;
  std::unique_ptr<kv::Engine> engine;
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<TableStore> tables;
  TablePtr table;
  std::vector<ColumnId> columns;
};

Fixture& Shared(const benchmark::State& state) {
  static Fixture rows(catalog::Layout::kRow);
  static Fixture pages(catalog::Layout::kPages);
  return state.range(0) == 0 ? rows : pages;
}

void Scan(benchmark::State& state, std::vector<ColumnId> columns,
          std::vector<ColumnFilter> filters) {
  Fixture& fixture = Shared(state);
  kv::TransactionOptions options;
  options.read_only = true;
  int64_t rows = 0;
  RowBatch batch;
  for (auto _ : state) {
    auto transaction = fixture.engine->Begin(options);
    Access access(transaction.get(), nullptr, fixture.tables.get());
    ScanSpec spec;
    spec.table = fixture.table;
    spec.index = fixture.table->primary().id;
    spec.spans = {Span{}};
    spec.columns = columns;
    if (state.range(0) != 0) spec.filters = filters;
    auto reader = Check(access.Scan(std::move(spec)));
    while (Check(reader->Next(&batch))) {
      rows += static_cast<int64_t>(batch.size());
      benchmark::DoNotOptimize(batch.size());
    }
  }
  state.counters["ns_row"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(kRows) / 1e9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["rows"] = static_cast<double>(rows) / static_cast<double>(state.iterations());
}
void ScanNone(benchmark::State& state) { Scan(state, {}, {}); }
BENCHMARK(ScanNone)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
void ScanInt(benchmark::State& state) { Scan(state, {ColumnId{7}}, {}); }
BENCHMARK(ScanInt)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
void ScanDouble(benchmark::State& state) { Scan(state, {ColumnId{4}}, {}); }
BENCHMARK(ScanDouble)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
void ScanKind(benchmark::State& state) { Scan(state, {ColumnId{6}}, {}); }
BENCHMARK(ScanKind)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
void ScanNote(benchmark::State& state) { Scan(state, {ColumnId{9}}, {}); }
BENCHMARK(ScanNote)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
void ScanAll(benchmark::State& state) { Scan(state, Shared(state).columns, {}); }
BENCHMARK(ScanAll)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
void FilterTwo(benchmark::State& state) {
  Scan(state, {ColumnId{4}},
       {{ColumnId{7}, {FilterOp::kLess, Datum::Int(24)}},
        {ColumnId{4}, {FilterOp::kLess, Datum::Double(5000)}}});
}
BENCHMARK(FilterTwo)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void Point(benchmark::State& state) {
  Fixture& fixture = Shared(state);
  std::mt19937_64 random(1);
  kv::TransactionOptions options;
  options.autocommit = true;
  options.read_only = true;
  RowBatch batch;
  for (auto _ : state) {
    auto transaction = fixture.engine->Begin(options);
    Access access(transaction.get(), nullptr, fixture.tables.get());
    auto reader = Check(access.Scan(fixture.PointSpec(static_cast<int64_t>(random() % kRows))));
    if (!Check(reader->Next(&batch))) state.SkipWithError("absent");
    benchmark::DoNotOptimize(batch.column(1).ints()[0]);
  }
}
BENCHMARK(Point)->Arg(0)->Arg(1);

void PointInTransaction(benchmark::State& state) {
  Fixture& fixture = Shared(state);
  std::mt19937_64 random(1);
  kv::TransactionOptions options;
  options.read_only = true;
  auto transaction = fixture.engine->Begin(options);
  Access access(transaction.get(), nullptr, fixture.tables.get());
  RowBatch batch;
  for (auto _ : state) {
    auto reader = Check(access.Scan(fixture.PointSpec(static_cast<int64_t>(random() % kRows))));
    if (!Check(reader->Next(&batch))) state.SkipWithError("absent");
    benchmark::DoNotOptimize(batch.column(1).ints()[0]);
  }
}
BENCHMARK(PointInTransaction)->Arg(0)->Arg(1);

void Range100(benchmark::State& state) {
  Fixture& fixture = Shared(state);
  std::mt19937_64 random(1);
  kv::TransactionOptions options;
  options.read_only = true;
  RowBatch batch;
  for (auto _ : state) {
    auto transaction = fixture.engine->Begin(options);
    Access access(transaction.get(), nullptr, fixture.tables.get());
    const int64_t start = static_cast<int64_t>(random() % (kRows - 100));
    ScanSpec spec = fixture.PointSpec(0);
    spec.spans[0].equal.clear();
    spec.spans[0].lower = {Bound::Kind::kInclusive, Datum::Int(start)};
    spec.spans[0].upper = {Bound::Kind::kExclusive, Datum::Int(start + 100)};
    auto reader = Check(access.Scan(std::move(spec)));
    size_t rows = 0;
    while (Check(reader->Next(&batch))) rows += batch.size();
    if (rows != 100) state.SkipWithError("not 100 rows");
  }
}
BENCHMARK(Range100)->Arg(0)->Arg(1);

// Updates of one column, 1000 a commit; the delta is sealed away between runs, untimed.
void Update(benchmark::State& state) {
  Fixture& fixture = Shared(state);
  std::mt19937_64 random(1);
  RowBatch old_rows, new_rows;
  int64_t rows = 0;
  for (auto _ : state) {
    auto transaction = fixture.engine->Begin();
    Access access(transaction.get(), nullptr, fixture.tables.get());
    for (int i = 0; i < 1000; ++i) {
      ScanSpec spec = fixture.PointSpec(static_cast<int64_t>(random() % kRows));
      spec.with_row_ref = true;
      auto reader = Check(access.Scan(std::move(spec)));
      Check(reader->Next(&old_rows));
      const std::string ref(old_rows.column(10).bytes()[0]);
      old_rows.columns().pop_back();
      new_rows.Reset(std::vector<Type>());
      for (const ColumnVector& column : old_rows.columns()) {
        ColumnVector& added = new_rows.columns().emplace_back(column.type());
        added.Append(column.Get(0));
      }
      new_rows.SetSize(1);
      new_rows.column(6).Set(0, Datum::Int(new_rows.column(6).ints()[0] + 1));
      const std::string_view view = ref;
      Check(access.Update(fixture.table, {&view, 1}, old_rows, new_rows));
    }
    kv::CommitOptions commit;
    commit.durable = false;
    Check(transaction->Commit(commit));
    rows += 1000;
  }
  state.SetItemsProcessed(rows);
}
BENCHMARK(Update)->Arg(0)->Arg(1)->Iterations(20)->Unit(benchmark::kMillisecond);

// With 2 % of the rows in the delta.
void ScanIntDirty(benchmark::State& state) { Scan(state, {ColumnId{7}}, {}); }
BENCHMARK(ScanIntDirty)->Arg(1)->Unit(benchmark::kMillisecond);
void ScanAllDirty(benchmark::State& state) { Scan(state, Shared(state).columns, {}); }
BENCHMARK(ScanAllDirty)->Arg(1)->Unit(benchmark::kMillisecond);

void Seal(benchmark::State& state) {
  Fixture& fixture = Shared(state);
  Sealer sealer(fixture.engine.get(), fixture.tables.get());
  for (auto _ : state) {
    const SealStep step = Check(sealer.SealAll(fixture.table, {}, nullptr));
    state.counters["rows"] = static_cast<double>(step.rows);
    state.counters["pages"] = static_cast<double>(step.pages);
  }
}
BENCHMARK(Seal)->Arg(1)->Iterations(1)->Unit(benchmark::kMillisecond);
void ScanIntSealedAgain(benchmark::State& state) { Scan(state, {ColumnId{7}}, {}); }
BENCHMARK(ScanIntSealedAgain)->Arg(1)->Unit(benchmark::kMillisecond);

// Rows that were inserted one commit after the other, all sealed: what is left of them in the delta
// until the engine compacts it.
void ScanAfterSealingAll(benchmark::State& state) {
  Fixture& fixture = Shared(state);
  static const TablePtr table = [&] {
    TablePtr made = fixture.Create(catalog::Layout::kPages, "sealed");
    RowBatch batch;
    for (int64_t first = 0; first < kRows; first += 1000) {
      auto transaction = fixture.engine->Begin();
      Access access(transaction.get(), nullptr, fixture.tables.get());
      Fixture::Fill(&batch, first, 1000);
      Check(access.Insert(made, &batch, ConflictPolicy(), nullptr));
      kv::CommitOptions commit;
      commit.durable = false;
      Check(transaction->Commit(commit));
    }
    const auto begin = std::chrono::steady_clock::now();
    Check(Sealer(fixture.engine.get(), fixture.tables.get()).SealAll(made, {}, nullptr));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    fmt::print("sealed {} rows in {:.2f} s\n", kRows, took.count());
    return made;
  }();
  const TablePtr whole = std::exchange(fixture.table, table);
  Scan(state, {ColumnId{7}}, {});
  fixture.table = whole;
}
BENCHMARK(ScanAfterSealingAll)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cellar::table
