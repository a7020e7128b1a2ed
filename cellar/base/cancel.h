// A request to stop, set by one thread and polled by another. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>

#include "cellar/base/status.h"

namespace cellar {

class CancelToken {
 public:
  enum class Reason : int { kNone = 0, kUser, kTimeout, kShutdown };

  void Cancel(Reason reason) { reason_.store(static_cast<int>(reason), std::memory_order_relaxed); }
  void Clear() { reason_.store(0, std::memory_order_relaxed); }
  // Statement deadline, checked by Check(); the epoch means none.
  void SetDeadline(std::chrono::steady_clock::time_point deadline) {
    deadline_.store(deadline.time_since_epoch().count(), std::memory_order_relaxed);
  }
  bool cancelled() const { return reason_.load(std::memory_order_relaxed) != 0; }
  // OK, or kCancelled with SQLSTATE 57014 (57P01 on shutdown). Cost: two relaxed
  // loads, and a clock read when a deadline is set: call it per batch, not per row.
  Status Check() const;

 private:
  std::atomic<int> reason_{0};
  std::atomic<std::chrono::steady_clock::rep> deadline_{0};
};

}  // namespace cellar
