// Engines by name; there is one.
#include "cellar/server/store.h"

#include "cellar/engines/rocksdb/rocks_engine.h"

namespace cellar::server {

Result<std::unique_ptr<kv::Engine>> OpenEngine(const StoreOptions& options) {
  engines::RocksOptions rocks;
  rocks.directory = options.directory;
  rocks.create_if_missing = options.create_if_missing;
  rocks.read_only = options.read_only;
  rocks.accept_log_damage = options.accept_log_damage;
  rocks.cache_bytes = options.cache_bytes;
  return engines::OpenRocksEngine(rocks);
}

Result<std::unique_ptr<session::Database>> OpenDatabase(const StoreOptions& options) {
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Engine> engine, OpenEngine(options));
  session::DatabaseOptions database;
  database.create_if_missing = options.create_if_missing;
  database.read_only = options.read_only;
  database.durable_commits = options.durable_commits;
  database.memory_limit_bytes = options.statement_memory_bytes;
  return session::Database::Open(std::move(engine), database);
}

}  // namespace cellar::server
