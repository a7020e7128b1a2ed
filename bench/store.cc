#include "bench/store.h"

#include <fmt/format.h>
#include <sys/resource.h>

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

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace cellar::bench
