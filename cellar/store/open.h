// Opening a store directory: the engine and the database over it. Every door of the program comes
// through here.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cellar/base/status.h"
#include "cellar/kv/engine.h"
#include "cellar/session/session.h"

namespace cellar::store {

struct StoreOptions {
  std::string directory;
  bool create_if_missing = true;
  // Takes no lock and writes nothing: for looking at a store that another process may have open.
  bool read_only = false;
  // `directory` holds backups: this one is opened where it lies, 0 the newest. Read-only.
  std::optional<uint32_t> backup;
  bool durable_commits = true;
  bool run_jobs = true;  // false: jobs stay as they are, and none is made
  // Opens a store whose log has lost durable commits; `lost`, if set, is told what that gives up.
  bool accept_log_damage = false;
  std::function<void(std::string_view message)> lost;
  size_t cache_bytes = 0;                             // 0: a quarter of memory, at most 256 MiB
  size_t statement_memory_bytes = size_t{256} << 20;  // default of work_mem
  size_t statement_limit_bytes = 0;                   // see session::DatabaseOptions
  // What the process may hold, caches and memtables among it; 0: DefaultProcessMemory(), unless
  // another store of the process has said.
  size_t process_limit_bytes = 0;
  // What default_table_layout and cellar.seal begin with. Empty: what the environment variables
  // CELLAR_DEFAULT_TABLE_LAYOUT and CELLAR_SEAL say, or else what is built in.
  std::string table_layout, seal;
  // What SHOW says of them.
  int max_connections = 2000, superuser_reserved_connections = 3;
  // default_transaction_isolation of sessions that speak PostgreSQL's protocol.
  std::string client_isolation = "read committed";
};

// Errors: as engines::OpenRocksEngine, and kNotFound for an absent directory that is not to be
// made.
Result<std::unique_ptr<kv::Engine>> OpenEngine(const StoreOptions& options);
Result<std::unique_ptr<session::Database>> OpenDatabase(const StoreOptions& options);

}  // namespace cellar::store
