// A process for tests to kill: seal_writer DIRECTORY SEED
//
// One thread inserts, updates and deletes rows of a table with layout `pages`, another seals it in
// small steps. Each commit is told of twice on standard output, as a SealTold: before it begins,
// and once it is acknowledged.
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "cellar/engines/rocksdb/rocks_engine.h"
#include "cellar/table/sealer.h"
#include "tests/table/seal_told.h"

namespace cellar::table {
namespace {

void Require(bool ok) {
  if (!ok) ::_exit(1);
}
template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    fmt::print(stderr, "{}\n", result.status().ToString());
    ::_exit(1);
  }
  return std::move(result).value();
}

void Tell(const SealTold& told) {
  Require(::write(STDOUT_FILENO, &told, sizeof told) == sizeof told);
}

void Seal(kv::Engine* engine, TableStore* tables, const TablePtr& table) {
  Sealer sealer(engine, tables);
  SealOptions options;
  options.max_rows = 16;
  options.page_bytes = 600;
  std::string position;
  while (true) {
    if (!Must(sealer.Step(table, options, &position)).done) continue;
    position.clear();
    options.repack = !options.repack;
  }
}

class Writer {
 public:
  Writer(kv::Engine* engine, TableStore* tables, TablePtr table, bool durable)
      : engine_(engine), tables_(tables), table_(std::move(table)), durable_(durable) {
    for (const catalog::ColumnDescriptor& column : table_->columns) types_.push_back(column.type);
  }

  // Gives row `id` the version, or deletes it when that is 0.
  Status Change(int id, int version) {
    kv::TransactionOptions options;
    options.durable = durable_;
    std::unique_ptr<kv::Transaction> transaction = engine_->Begin(options);
    Access access(transaction.get(), nullptr, tables_);
    ScanSpec spec;
    spec.table = table_;
    spec.index = table_->primary().id;
    Span span;
    span.equal = {Datum::Int(id)};
    spec.spans = {span};
    for (const catalog::ColumnDescriptor& column : table_->columns) {
      spec.columns.push_back(column.id);
    }
    spec.with_row_ref = true;
    CELLAR_TRY_ASSIGN(std::unique_ptr<Reader> reader, access.Scan(spec));
    RowBatch found;
    CELLAR_TRY_ASSIGN(const bool there, reader->Next(&found));
    const std::string text = SealTextOf(id);
    RowBatch row;
    row.Reset(types_);
    row.AppendRow(std::vector<Datum>{Datum::Int(id), Datum::Int(version), Datum::Bytes(text)});
    if (!there) {
      if (version != 0) CELLAR_TRY(access.Insert(table_, &row, ConflictPolicy(), nullptr));
    } else {
      const std::string ref(found.column(types_.size()).bytes()[0]);
      const std::string_view view = ref;
      RowBatch old;
      old.Reset(types_);
      old.AppendRow(std::vector<Datum>{found.column(0).Get(0), found.column(1).Get(0),
                                       found.column(2).Get(0)});
      CELLAR_TRY(version != 0 ? access.Update(table_, {&view, 1}, old, row)
                              : access.Delete(table_, {&view, 1}, old));
    }
    return transaction->Commit().status();
  }

 private:
  kv::Engine* engine_;
  TableStore* tables_;
  const TablePtr table_;
  const bool durable_;
  std::vector<Type> types_;
};

[[noreturn]] void Run(const std::string& directory, int seed) {
  engines::RocksOptions options;
  options.directory = directory;
  options.cache_bytes = 8 << 20;
  options.write_buffer_bytes = 256 << 10;
  std::unique_ptr<kv::Engine> engine = Must(engines::OpenRocksEngine(options));
  std::unique_ptr<catalog::Catalog> catalog = Must(catalog::Catalog::Open(engine.get()));
  TableStore tables(engine.get());
  const TablePtr table = Must(FindSealTable(*catalog->Current()));
  std::thread sealing([&] { Seal(engine.get(), &tables, table); });
  Writer writer(engine.get(), &tables, table, SealWritesDurably(seed));
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (int i = 1;; ++i) {
    SealTold told;
    told.id = static_cast<int>(random() % kSealIds);
    told.version = random() % 4 == 0 ? 0 : seed * 1000000 + i;
    Tell(told);
    const Status status = writer.Change(told.id, told.version);
    if (!status.ok()) fmt::print(stderr, "{}\n", status.ToString());
    Require(status.ok());
    told.acknowledged = true;
    Tell(told);
  }
}

}  // namespace
}  // namespace cellar::table

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  cellar::table::Run(argv[1], std::atoi(argv[2]));
}
