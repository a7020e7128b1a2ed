#include "cellar/base/cancel.h"

#include "cellar/base/sqlstate.h"

namespace cellar {

void CancelToken::Cancel(Reason reason) {
  const int wanted = static_cast<int>(reason);
  int now = reason_.load(std::memory_order_relaxed);
  while (now < wanted && !reason_.compare_exchange_weak(now, wanted, std::memory_order_relaxed)) {
  }
}

void CancelToken::Clear() {
  int now = reason_.load(std::memory_order_relaxed);
  while (now != 0 && now < static_cast<int>(Reason::kClientGone) &&
         !reason_.compare_exchange_weak(now, 0, std::memory_order_relaxed)) {
  }
}

Status CancelToken::CheckFully() const {
  Reason why = reason();
  if (why == Reason::kNone) {
    const auto deadline = deadline_.load(std::memory_order_relaxed);
    if (deadline != 0 && std::chrono::steady_clock::now().time_since_epoch().count() >= deadline)
      why = Reason::kTimeout;
  }
  switch (why) {
    case Reason::kNone: {
      const CancelToken* parent = parent_.load(std::memory_order_acquire);
      return parent == nullptr ? Status() : parent->Check();
    }
    case Reason::kUser: break;
    case Reason::kTimeout:
      return SqlError(Code::kCancelled, sqlstate::kQueryCanceled,
                      "canceling statement due to statement timeout");
    case Reason::kClientGone:
      return SqlError(Code::kCancelled, sqlstate::kConnectionFailure, "connection to client lost");
    case Reason::kShutdown:
      return SqlError(Code::kCancelled, sqlstate::kAdminShutdown,
                      "terminating connection due to administrator command");
  }
  return SqlError(Code::kCancelled, sqlstate::kQueryCanceled,
                  "canceling statement due to user request");
}

}  // namespace cellar
