// How much memory this process may use.
#pragma once

#include <cstddef>

namespace cellar {

// The default limit of the process's account: three quarters of the machine's memory or of what its
// control group is allowed, and no more than half of the address space (RLIMIT_AS, ulimit -v) that
// is still free, of which threads' stacks and the allocator take much that is never used. Reads
// files of /proc and /sys.
size_t DefaultProcessMemory();

}  // namespace cellar
