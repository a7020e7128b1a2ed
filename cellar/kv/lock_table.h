// Exclusive locks on keys for the transactions of one process, with deadlock detection.
//
// Waiters of a key are served in order of arrival. An owner waits for one key at a time, so the
// wait-for graph is a set of chains: a request that would close a cycle is refused at once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cellar/base/cancel.h"
#include "cellar/base/status.h"
#include "cellar/kv/engine.h"

namespace cellar::kv {

// Thread-safe.
class LockTable {
 public:
  using Owner = uint64_t;  // of one transaction, never 0

  // Makes `owner` the holder of `key`; true at once if it is already. False only with kSkip.
  // Errors as Transaction::Lock.
  Result<bool> Acquire(Owner owner, std::string_view key, const LockOptions& options);
  // Gives up everything the owner holds. Cost: nothing if it holds nothing.
  void ReleaseAll(Owner owner);

  uint64_t waits() const { return waits_; }
  uint64_t deadlocks() const { return deadlocks_; }

 private:
  struct Waiter {
    Owner owner;
    bool granted = false;
    std::condition_variable wake;
  };
  struct Lock {
    Owner holder = 0;
    std::vector<Waiter*> waiters;  // few; a deque takes 600 bytes though it is empty
  };
  using Locks = std::map<std::string, Lock, std::less<>>;

  bool ClosesCycle(Owner owner, const Lock& wanted) const;
  Status Wait(Waiter* waiter, const LockOptions& options, std::unique_lock<std::mutex>* held);
  void Release(Locks::iterator lock);

  std::mutex mutex_;  // guards all below
  Locks locks_;
  std::unordered_map<Owner, std::vector<Locks::iterator>> held_;
  std::unordered_map<Owner, const Lock*> waiting_for_;
  std::atomic<uint64_t> waits_{0};
  std::atomic<uint64_t> deadlocks_{0};
};

}  // namespace cellar::kv
