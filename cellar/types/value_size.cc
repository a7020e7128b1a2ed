#include "cellar/types/value_size.h"

#include "cellar/base/sqlstate.h"

namespace cellar {

Status ValueTooLarge(size_t bytes) {
  return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                  "value of {} bytes is larger than the maximum of {} bytes", bytes,
                  kMaxValueBytes);
}

}  // namespace cellar
