#include "cellar/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace cellar::internal {

void DieOfCheck(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "cellar: fatal: %s:%d: %s does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace cellar::internal
