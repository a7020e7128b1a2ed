#include "cellar/engines/rocksdb/log_gate.h"

#include <chrono>

namespace cellar::engines {
namespace {

constexpr auto kLongestWaitForFlush = std::chrono::seconds(3);

size_t At(LogGate::Side side) { return side == LogGate::Side::kAppend ? 0 : 1; }

}  // namespace

bool LogGate::Enter(Side side) {
  std::lock_guard lock(mutex_);
  if (failed_) return false;
  ++inside_[At(side)];
  if (side == Side::kAppend) appends_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void LogGate::Leave(Side side) {
  std::lock_guard lock(mutex_);
  --inside_[At(side)];
  changed_.notify_all();
}

void LogGate::Fail(Side side, bool full) {
  std::unique_lock lock(mutex_);
  if (!full) broken_.store(true, std::memory_order_release);
  if (failed_) return;
  failed_ = true;
  changed_.wait(lock, [&] { return inside_[1 - At(side)] == 0; });
  changed_.wait_for(lock, kLongestWaitForFlush, [&] { return !flush_expected_; });
}

void LogGate::Sealed() {
  std::lock_guard lock(mutex_);
  flush_expected_ = true;
}

void LogGate::FlushBegun() {
  std::lock_guard lock(mutex_);
  flush_expected_ = false;
  changed_.notify_all();
}

bool LogGate::failed() const {
  std::lock_guard lock(mutex_);
  return failed_;
}

void LogGate::Hold(const void* log) {
  std::lock_guard lock(mutex_);
  holding_.insert(log);
  is_holding_.store(true, std::memory_order_release);
}

void LogGate::Release(const void* log) {
  std::lock_guard lock(mutex_);
  holding_.erase(log);
  is_holding_.store(!holding_.empty(), std::memory_order_release);
}

void LogGate::Renew() {
  std::lock_guard lock(mutex_);
  failed_ = false;
  holding_.clear();
  is_holding_.store(false, std::memory_order_release);
}

}  // namespace cellar::engines
