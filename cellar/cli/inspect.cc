// `cellar keys` and `cellar check`: a store looked at from below.
#include <csignal>
#include <cstdio>

#include "cellar/catalog/catalog.h"
#include "cellar/catalog/records_check.h"
#include "cellar/cli/commands.h"
#include "cellar/cli/error_text.h"
#include "cellar/session/checking.h"
#include "cellar/session/index_expressions.h"
#include "cellar/table/check.h"
#include "cellar/table/keys_dump.h"

namespace cellar::cli {
namespace {

struct OpenStore {
  std::unique_ptr<kv::Engine> engine;
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<kv::Transaction> reader;
};

kv::TransactionOptions ReadOnly() {
  kv::TransactionOptions read;
  read.read_only = true;
  read.isolation = kv::Isolation::kSnapshot;
  return read;
}

// Read only: a server may have the store open, and nothing is changed by looking.
Result<std::unique_ptr<kv::Engine>> OpenToRead(store::StoreOptions options) {
  options.read_only = true;
  options.create_if_missing = false;
  return store::OpenEngine(options);
}

Result<OpenStore> Open(const store::StoreOptions& options) {
  OpenStore store;
  CELLAR_TRY_ASSIGN(store.engine, OpenToRead(options));
  CELLAR_TRY_ASSIGN(store.catalog, catalog::Catalog::Open(store.engine.get()));
  store.reader = store.engine->Begin(ReadOnly());
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

Status PrintKeys(const store::StoreOptions& options, const std::string& table, uint64_t limit,
                 bool bounds, uint64_t* unreadable) {
  CELLAR_TRY_ASSIGN(OpenStore store, Open(options));
  const catalog::SnapshotPtr catalog = store.catalog->Current();
  session::InstallIndexExpressions();
  table::DumpOptions dump;
  dump.limit = limit;
  dump.bounds = bounds;
  if (!table.empty()) {
    CELLAR_TRY_ASSIGN(catalog::TablePtr found, FindTable(*catalog, table));
    dump.table = found->storage_id();
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

Status CheckStore(const store::StoreOptions& options, table::CheckMode mode, uint64_t* problems) {
  session::InstallIndexExpressions();
  std::vector<table::CheckFinding> findings;
  table::CheckTotals totals;
  Result<OpenStore> store = Open(options);
  if (!store.ok()) {
    // The catalog may be what is damaged: then its records say more than the first error does.
    if (store.status().code() != Code::kCorruption) return store.status();
    CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Engine> engine, OpenToRead(options));
    std::vector<std::string> records;
    CELLAR_TRY(catalog::CheckRecords(engine->Begin(ReadOnly()).get(), &records));
    for (std::string& text : records) findings.push_back({"", "", std::move(text)});
    if (findings.empty()) return store.status();
  } else {
    std::vector<catalog::TablePtr> tables;
    const catalog::SnapshotPtr catalog = store->catalog->Current();
    for (const catalog::TablePtr& table : catalog->ListAllTables()) {
      if (table->kind == catalog::RelationKind::kTable) tables.push_back(table);
    }
    table::CheckOptions check;
    check.mode = mode;
    CELLAR_TRY_ASSIGN(check.of_jobs, session::RangesOfJobs(*catalog, store->reader.get()));
    CELLAR_TRY(table::CheckStore(*catalog, tables, store->reader.get(), check, &totals, &findings));
    std::vector<std::string> records;
    CELLAR_TRY(session::CheckSessionRecords(store->engine.get(), &records));
    for (std::string& text : records) findings.push_back({"", "", std::move(text)});
  }
  for (const table::CheckFinding& finding : findings) {
    if (!finding.table.empty()) fmt::print("{}: ", finding.table);
    fmt::print("{}\n", finding.text);
  }
  *problems = findings.size();
  fmt::print("checked {} tables, {} rows: {}\n", totals.tables, totals.rows,
             findings.empty() ? "all agree" : fmt::format("{} problems", findings.size()));
  return Status();
}

// REPAIR DATABASE of each database.
Status RepairStore(store::StoreOptions options, uint64_t* left) {
  session::InstallIndexExpressions();
  options.create_if_missing = false;
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Engine> engine, store::OpenEngine(options));
  CELLAR_TRY_ASSIGN(std::unique_ptr<catalog::Catalog> catalog,
                    catalog::Catalog::Open(engine.get()));
  const catalog::SnapshotPtr current = catalog->Current();
  std::unique_ptr<kv::Transaction> transaction = engine->Begin();
  table::RepairReport report;
  table::CheckOptions check;
  CELLAR_TRY_ASSIGN(check.of_jobs, session::RangesOfJobs(*current, transaction.get()));
  CELLAR_TRY(table::RepairRecords(*current, transaction.get(), table::CheckOptions(), &report));
  for (const catalog::TablePtr& table : current->ListAllTables()) {
    if (table->kind != catalog::RelationKind::kTable) continue;
    CELLAR_TRY(table::RepairTable(table, transaction.get(), check, &report));
  }
  CELLAR_TRY(transaction->Commit().status());
  CELLAR_TRY(session::CheckSessionRecords(engine.get(), &report.left));
  for (const std::string& text : report.done) fmt::print("{}\n", text);
  for (const std::string& text : report.left) fmt::print("LEFT ALONE: {}\n", text);
  fmt::print("{} repaired, {} left alone\n", report.done.size(), report.left.size());
  *left = report.left.size();
  return Status();
}

}  // namespace

int RunKeys(const store::StoreOptions& store, const std::string& table, uint64_t limit,
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

int RunCheck(const store::StoreOptions& store, const CheckCommand& command) {
  uint64_t problems = 0;
  table::CheckMode mode = table::CheckMode::kAuto;
  if (command.fast) mode = table::CheckMode::kFast;
  if (command.full) mode = table::CheckMode::kFull;
  const Status status =
      command.repair ? RepairStore(store, &problems) : CheckStore(store, mode, &problems);
  std::fflush(stdout);
  if (!status.ok()) {
    fmt::print(stderr, "{}", PlainErrorText(status));
    return 1;
  }
  return problems > 0 ? 1 : 0;
}

}  // namespace cellar::cli
