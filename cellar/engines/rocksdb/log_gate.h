// Keeps calls from a log that has failed. RocksDB appends to its log in one thread and syncs it in
// another; after an error of either it must not be given another call on that log, which its
// assertions see to. So the call that fails does not return before the other side is out of
// RocksDB, and nobody gets in any more.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>

namespace cellar::engines {

// Thread-safe. Two sides: calls that append to the log, and calls that sync it.
class LogGate {
 public:
  enum class Side : bool { kAppend, kSync };

  // Before and after a call of RocksDB. Enter is false, and there is nothing to leave, when the log
  // has failed.
  bool Enter(Side side);
  void Leave(Side side);
  // In a call on the log's file that fails, before it returns: waits for the other side, unless
  // that is in a failing call too and so gives no further one. Then waits until a flush has begun
  // for every memtable that was sealed, a few seconds at most: RocksDB 7.8 forgets a flush that is
  // about to begin when the log fails, and Resume waits for it for ever.
  // `full`: there is no room, and else it is broken.
  void Fail(Side side, bool full = true);
  void Sealed();
  void FlushBegun();
  bool failed() const;
  bool broken() const { return broken_.load(std::memory_order_acquire); }
  // A log holds back what it was told to append, or does not any more. While one does, nothing more
  // is to be written: it might come into a later log, and survive what is held.
  void Hold(const void* log);
  void Release(const void* log);
  bool holding() const { return is_holding_.load(std::memory_order_acquire); }
  // How many appending calls, of which each writes one record at most, have been let in.
  uint64_t appends() const { return appends_.load(std::memory_order_relaxed); }
  // The next append fails for no reason, in a way that RocksDB recovers from by itself.
  // EndPretending: whether it has.
  void Pretend() { pretended_.store(true); }
  bool TakePretended() {
    return pretended_.load(std::memory_order_relaxed) && pretended_.exchange(false);
  }
  bool EndPretending() { return !pretended_.exchange(false); }
  // RocksDB has another log, and all that the others held lies in files.
  void Renew();

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t inside_[2] = {0, 0};
  std::atomic<uint64_t> appends_{0};
  std::set<const void*> holding_;
  std::atomic<bool> is_holding_{false};  // holding_ is not empty
  std::atomic<bool> pretended_{false};
  std::atomic<bool> broken_{false};  // failed, and not for want of room
  bool flush_expected_ = false;
  bool failed_ = false;
};

// A call of RocksDB on one side of the gate; `open` is false when it is not to be made.
class LogPass {
 public:
  LogPass(LogGate* gate, LogGate::Side side) : gate_(gate), side_(side), open_(gate->Enter(side)) {}
  ~LogPass() {
    if (open_) gate_->Leave(side_);
  }
  LogPass(const LogPass&) = delete;
  LogPass& operator=(const LogPass&) = delete;
  bool open() const { return open_; }

 private:
  LogGate* const gate_;
  const LogGate::Side side_;
  const bool open_;
};

}  // namespace cellar::engines
