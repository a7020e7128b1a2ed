#include "cellar/base/machine_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

namespace cellar {
namespace {

// The number at the start of a file; SIZE_MAX when there is none ("max").
size_t NumberIn(const char* path) {
  std::ifstream file(path);
  size_t number = 0;
  return file >> number ? number : SIZE_MAX;
}

}  // namespace

size_t DefaultProcessMemory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGE_SIZE);
  size_t memory = SIZE_MAX;
  if (pages > 0 && page_bytes > 0)
    memory = static_cast<size_t>(pages) * static_cast<size_t>(page_bytes);
  // Control groups, version 2 and 1, as a container sees its own.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    memory = std::min(memory, NumberIn(path));
  }
  size_t share = memory / 4 * 3;
  rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY && page_bytes > 0) {
    const size_t used_pages = NumberIn("/proc/self/statm");
    const size_t used = used_pages == SIZE_MAX ? 0 : used_pages * static_cast<size_t>(page_bytes);
    const size_t free = space.rlim_cur > used ? space.rlim_cur - used : 0;
    share = std::min(share, free / 2);
  }
  return share;
}

}  // namespace cellar
