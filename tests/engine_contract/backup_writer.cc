// Makes or restores a backup and kills itself with -9 before call N on a file of it: for the tests
// of backups. Ends with 0 when there are fewer calls, with 1 after an error.
//
//   engine_backup_writer create STORE BACKUPS N | restore STORE BACKUPS N
#include <fmt/core.h>
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cellar/engines/rocksdb/rocks_backup.h"

namespace {

using cellar::Status;

int Main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string_view what = argv[1], store = argv[2], backups = argv[3];
  const long kill_at = std::atol(argv[4]);
  std::atomic<long> calls{0};
  const std::string_view watched = what == "create" ? backups : store;
  const auto fault = [&](cellar::engines::FileCall, std::string_view path) {
    if (path.starts_with(watched) && ++calls == kill_at) ::raise(SIGKILL);
    return Status();
  };
  Status status;
  if (what == "create") {
    cellar::engines::RocksOptions options;
    options.directory = store;
    options.create_if_missing = false;
    options.cache_bytes = 8 << 20;
    options.fault = fault;
    auto engine = cellar::engines::OpenRocksEngine(options);
    status = engine.status();
    if (status.ok()) {
      cellar::kv::BackupOptions backup;
      backup.directory = backups;
      backup.keep = 2;
      status = (*engine)->Backup(backup).status();
    }
  } else {
    cellar::engines::RestoreRequest request;
    request.from = backups;
    request.directory = store;
    request.fault = fault;
    status = cellar::engines::RestoreBackup(request).status();
  }
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.ToString());
  return 1;
}

}  // namespace

int main(int argc, char** argv) { return Main(argc, argv); }
