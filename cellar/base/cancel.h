// A request to stop, set by one thread and polled by another. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>

#include "cellar/base/status.h"

namespace cellar {

class CancelToken {
 public:
  // In rising weight: a heavier reason takes the place of a lighter one, never the other way round.
  // The last two end the session, and stay: kClientGone, nobody reads what comes; kShutdown, the
  // store is being closed, or somebody ended the session.
  enum class Reason : int { kNone = 0, kUser, kTimeout, kClientGone, kShutdown };

  void Cancel(Reason reason);
  // For the next statement: takes back what asked for the end of the last one alone.
  void Clear();
  // Statement deadline, checked by Check(); the epoch means none.
  void SetDeadline(std::chrono::steady_clock::time_point deadline) {
    deadline_.store(deadline.time_since_epoch().count(), std::memory_order_relaxed);
  }
  std::chrono::steady_clock::time_point deadline() const {
    return std::chrono::steady_clock::time_point(
        std::chrono::steady_clock::duration(deadline_.load(std::memory_order_relaxed)));
  }
  // Another token whose requests count here too, for as long as it is set; null: none. It outlives
  // that time.
  void SetParent(const CancelToken* parent) { parent_.store(parent, std::memory_order_release); }
  bool cancelled() const { return reason_.load(std::memory_order_relaxed) != 0; }
  Reason reason() const { return static_cast<Reason>(reason_.load(std::memory_order_relaxed)); }
  // The session is to end, not only its statement.
  bool ends_session() const { return reason() >= Reason::kClientGone; }
  // OK, or kCancelled with SQLSTATE 57014; 57P01 on shutdown, 08006 when the client has gone.
  // Cost: three relaxed loads, and a clock read when a deadline is set: call it per batch, per
  // mebibyte or per 10,000 steps, not per row.
  Status Check() const {
    if (reason_.load(std::memory_order_relaxed) == 0 &&
        deadline_.load(std::memory_order_relaxed) == 0 &&
        parent_.load(std::memory_order_relaxed) == nullptr) {
      return Status();
    }
    return CheckFully();
  }

 private:
  Status CheckFully() const;

  std::atomic<int> reason_{0};
  std::atomic<std::chrono::steady_clock::rep> deadline_{0};
  std::atomic<const CancelToken*> parent_{nullptr};
};

}  // namespace cellar
