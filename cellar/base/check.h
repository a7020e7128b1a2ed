// CELLAR_CHECK states what is proven; it is cheap and always on. Bytes from
// disk, network or users never reach one: they get kCorruption or kInvalid.
#pragma once

namespace cellar::internal {
[[noreturn]] void DieOfCheck(const char* file, int line, const char* condition);
}  // namespace cellar::internal

#define CELLAR_CHECK(condition)                        \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::cellar::internal::DieOfCheck(__FILE__, __LINE__, #condition))
#ifdef NDEBUG
#define CELLAR_DCHECK(condition) static_cast<void>(0)
#else
#define CELLAR_DCHECK(condition) CELLAR_CHECK(condition)
#endif
