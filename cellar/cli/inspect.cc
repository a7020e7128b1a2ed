// `cellar keys` and `cellar check`: a store looked at from below.
#include <csignal>
#include <cstdio>

#include "cellar/catalog/catalog.h"
#include "cellar/cli/commands.h"
#include "cellar/cli/error_text.h"
#include "cellar/table/access.h"
#include "cellar/table/keys_dump.h"

namespace cellar::cli {
namespace {

struct OpenStore {
  std::unique_ptr<kv::Engine> engine;
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<kv::Transaction> reader;
};

// Read only: a server may have the store open, and nothing is changed by looking.
Result<OpenStore> Open(server::StoreOptions options) {
  options.read_only = true;
  options.create_if_missing = false;
  OpenStore store;
  CELLAR_TRY_ASSIGN(store.engine, server::OpenEngine(options));
  CELLAR_TRY_ASSIGN(store.catalog, catalog::Catalog::Open(store.engine.get()));
  kv::TransactionOptions read;
  read.read_only = true;
  read.isolation = kv::Isolation::kSnapshot;
  store.reader = store.engine->Begin(read);
  return store;
}

// By path ("/cellar/t"), or by name where only one table has it.
Result<catalog::TablePtr> FindTable(const catalog::CatalogSnapshot& catalog,
                                    const std::string& name) {
  catalog::TablePtr found;
  for (const catalog::TablePtr& table : catalog.ListAllTables()) {
    if (catalog.PathOf(*table) == name) return table;
    if (table->name != name) continue;
    if (found != nullptr) {
      return InvalidError("there are several tables \"{}\"; write the path", name)
          .WithHint(fmt::format("\"{}\" is one of them.", catalog.PathOf(*table)));
    }
    found = table;
  }
  if (found == nullptr) return MakeError(Code::kNotFound, "there is no table \"{}\"", name);
  return found;
}

Status PrintKeys(const server::StoreOptions& options, const std::string& table, uint64_t limit,
                 bool bounds, uint64_t* unreadable) {
  CELLAR_TRY_ASSIGN(OpenStore store, Open(options));
  const catalog::SnapshotPtr catalog = store.catalog->Current();
  table::DumpOptions dump;
  dump.limit = limit;
  dump.bounds = bounds;
  if (!table.empty()) {
    CELLAR_TRY_ASSIGN(catalog::TablePtr found, FindTable(*catalog, table));
    dump.table = found->id;
  }
  CELLAR_TRY_ASSIGN(table::DumpTotals totals,
                    table::DumpKeys(store.reader.get(), *catalog, dump,
                                    [](const table::DumpedKey& key) -> Status {
                                      const std::string line = key.ToString() + "\n";
                                      std::fwrite(line.data(), 1, line.size(), stdout);
                                      return Status();
                                    }));
  fmt::print(stderr, "{} keys, {} bytes of keys, {} bytes of values\n", totals.keys,
             totals.key_bytes, totals.value_bytes);
  if (totals.unreadable > 0) fmt::print(stderr, "{} keys do not read\n", totals.unreadable);
  *unreadable = totals.unreadable;
  return Status();
}

Status CheckStore(const server::StoreOptions& options, uint64_t* problems) {
  CELLAR_TRY_ASSIGN(OpenStore store, Open(options));
  const catalog::SnapshotPtr catalog = store.catalog->Current();
  uint64_t tables = 0, all_rows = 0;
  for (const catalog::TablePtr& table : catalog->ListAllTables()) {
    if (table->kind != catalog::RelationKind::kTable) continue;
    uint64_t rows = 0;
    std::vector<table::CheckFinding> findings;
    CELLAR_TRY(table::CheckTable(table, store.reader.get(), &rows, &findings));
    const std::string path = catalog->PathOf(*table);
    for (const table::CheckFinding& finding : findings) {
      fmt::print("{}: {}\n", path, finding.text);
    }
    *problems += findings.size();
    all_rows += rows;
    ++tables;
  }
  CELLAR_TRY_ASSIGN(table::DumpTotals totals,
                    table::DumpKeys(store.reader.get(), *catalog, table::DumpOptions(),
                                    [](const table::DumpedKey& key) -> Status {
                                      if (!key.readable) fmt::print("{}\n", key.ToString());
                                      return Status();
                                    }));
  *problems += totals.unreadable;
  fmt::print("checked {} tables, {} rows, {} keys: {}\n", tables, all_rows, totals.keys,
             *problems == 0 ? "all agree" : fmt::format("{} problems", *problems));
  return Status();
}

}  // namespace

int RunKeys(const server::StoreOptions& store, const std::string& table, uint64_t limit,
            bool bounds) {
  std::signal(SIGPIPE, SIG_DFL);  // `cellar keys | head` ends quietly
  uint64_t unreadable = 0;
  const Status status = PrintKeys(store, table, limit, bounds, &unreadable);
  std::fflush(stdout);
  if (!status.ok()) {
    fmt::print(stderr, "{}", PlainErrorText(status));
    return 1;
  }
  return unreadable > 0 ? 1 : 0;
}

int RunCheck(const server::StoreOptions& store) {
  uint64_t problems = 0;
  const Status status = CheckStore(store, &problems);
  std::fflush(stdout);
  if (!status.ok()) {
    fmt::print(stderr, "{}", PlainErrorText(status));
    return 1;
  }
  return problems > 0 ? 1 : 0;
}

}  // namespace cellar::cli
