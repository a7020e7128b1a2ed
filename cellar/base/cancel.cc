#include "cellar/base/cancel.h"

#include "cellar/base/sqlstate.h"

namespace cellar {

Status CancelToken::Check() const {
  Reason reason = static_cast<Reason>(reason_.load(std::memory_order_relaxed));
  if (reason == Reason::kNone) {
    auto deadline = deadline_.load(std::memory_order_relaxed);
    if (deadline == 0) return Status();
    if (std::chrono::steady_clock::now().time_since_epoch().count() < deadline) return Status();
    reason = Reason::kTimeout;
  }
  switch (reason) {
    case Reason::kTimeout:
      return SqlError(Code::kCancelled, sqlstate::kQueryCanceled,
                      "canceling statement due to statement timeout");
    case Reason::kShutdown:
      return SqlError(Code::kCancelled, sqlstate::kAdminShutdown,
                      "terminating connection due to administrator command");
    default:
      return SqlError(Code::kCancelled, sqlstate::kQueryCanceled,
                      "canceling statement due to user request");
  }
}

}  // namespace cellar
