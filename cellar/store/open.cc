// Engines by name; there is one.
#include "cellar/store/open.h"

#include <cstdlib>
#include <filesystem>

#include "cellar/base/machine_memory.h"
#include "cellar/base/memory_account.h"
#include "cellar/engines/rocksdb/rocks_backup.h"
#include "cellar/engines/rocksdb/rocks_engine.h"
#include "cellar/session/database_backup.h"
#include "cellar/session/page_cache.h"
#include "cellar/store/database_backup.h"

namespace cellar::store {
namespace {

std::string OrEnvironment(const std::string& value, const char* name) {
  if (!value.empty()) return value;
  const char* found = std::getenv(name);
  return found == nullptr ? std::string() : std::string(found);
}

}  // namespace

Result<std::unique_ptr<kv::Engine>> OpenEngine(const StoreOptions& options) {
  MemoryAccount* const process = MemoryAccount::Process();
  if (options.process_limit_bytes != 0) {
    process->set_limit(options.process_limit_bytes);
  } else if (process->limit() == MemoryAccount::kNoLimit) {
    process->set_limit(DefaultProcessMemory());
  }
  engines::RocksOptions rocks;
  if (options.backup) {
    // The table files of a backup are named by whole paths.
    const std::string directory = std::filesystem::absolute(options.directory);
    CELLAR_TRY_ASSIGN(rocks, engines::LocateBackup(directory, *options.backup));
  } else {
    rocks.directory = options.directory;
    rocks.create_if_missing = options.create_if_missing;
    rocks.read_only = options.read_only;
  }
  rocks.accept_log_damage = options.accept_log_damage;
  rocks.lost = options.lost;
  rocks.cache_bytes = options.cache_bytes;
  return engines::OpenRocksEngine(rocks);
}

Result<std::unique_ptr<session::Database>> OpenDatabase(const StoreOptions& options) {
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Engine> engine, OpenEngine(options));
  session::DatabaseOptions database;
  database.create_if_missing = options.create_if_missing && !options.backup;
  database.read_only = options.read_only || options.backup;
  database.run_jobs = options.run_jobs;
  database.max_connections = options.max_connections;
  database.superuser_reserved_connections = options.superuser_reserved_connections;
  database.client_isolation = options.client_isolation;
  database.durable_commits = options.durable_commits;
  database.memory_limit_bytes = options.statement_memory_bytes;
  database.statement_limit_bytes = options.statement_limit_bytes;
  database.table_layout = OrEnvironment(options.table_layout, "CELLAR_DEFAULT_TABLE_LAYOUT");
  database.seal = OrEnvironment(options.seal, "CELLAR_SEAL");
  // Of tests: what statements answer does not depend on it.
  const std::string batch_rows = OrEnvironment("", "CELLAR_BATCH_ROWS");
  if (!batch_rows.empty()) {
    const size_t rows = std::strtoul(batch_rows.c_str(), nullptr, 10);
    database.batch_rows = std::clamp<size_t>(rows, 1, kBatchRows);
  }
  Result<std::unique_ptr<session::Database>> opened =
      session::Database::Open(std::move(engine), database);
  if (opened.ok() && !database.read_only) {
    session::SetDatabaseBackup(opened->get(), [from = opened->get(), store = options.directory](
                                                  const std::string& user, const std::string& name,
                                                  const kv::BackupOptions& backup) {
      return BackupDatabase(from, store, user, name, backup);
    });
  }
  if (opened.ok() && options.cache_bytes != 0) {
    session::LimitPageCache(opened->get(), options.cache_bytes / 2);
  }
  return opened;
}

}  // namespace cellar::store
