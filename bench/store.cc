#include "bench/store.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace cellar::bench {

void Die(const std::string& what) {
  fmt::print(stderr, "{}\n", what);
  std::exit(1);
}

void Client::Unable() { Die("a workload that this store does not do"); }

uint64_t BytesInDirectory(const std::string& path) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    // RocksDB's own diary is no data.
    if (entry.is_regular_file() && !entry.path().filename().string().starts_with("LOG"))
      bytes += entry.file_size();
  }
  return bytes;
}

}  // namespace cellar::bench
