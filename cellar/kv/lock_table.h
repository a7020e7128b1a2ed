// Who holds and who waits for what, among the transactions and sessions of one process.
//
// A lock decides who waits, never what is right: that is for validation at commit. So the table may
// know rows by a hash of their keys, and two keys with one hash may wait for each other.
//
// Owners belong to groups: a session, and the transaction that it runs, are one. Owners of a group
// exclude each other never, and wait for one lock at a time.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cellar/base/memory_account.h"
#include "cellar/base/status.h"
#include "cellar/kv/locks.h"

namespace cellar::kv {

class LockTable;

// Holds locks until it is destroyed, or told to let go. One thread at a time; any thread may be the
// one.
class LockOwner {
 public:
  // The table outlives it.
  LockOwner(LockTable* table, uint64_t group) : table_(table), group_(group) {}
  ~LockOwner() { ReleaseAll(); }
  LockOwner(const LockOwner&) = delete;
  LockOwner& operator=(const LockOwner&) = delete;

  // Takes what is locked in this mode; true at once if that is held. False only with kSkip. Errors:
  // kConflict 40P01 on a deadlock; kUnavailable 55P03 with kNoWait or after the timeout;
  // kCancelled. Throws OutOfMemory when the thread's account refuses. Cost without a wait: the
  // mutex of a shard, and an entry of its table.
  Result<bool> Acquire(LockKind kind, std::string_view name, const LockOptions& options);
  // Lets go of one mode. False: it was not held.
  bool Release(LockKind kind, std::string_view name, LockMode mode);
  // What was taken since `mark` was asked for goes.
  size_t mark() const { return held_.size(); }
  void RollbackTo(size_t mark);
  void ReleaseAll() { RollbackTo(0); }

  uint64_t group() const { return group_; }

 private:
  friend class LockTable;
  struct Held {
    uint64_t hash;
    LockMode mode;
  };
  void Charge();

  LockTable* const table_;
  const uint64_t group_;
  std::vector<Held> held_;  // in the order in which they were taken
  std::vector<std::pair<const MemoryAccount*, MemoryCharge>> charges_;
};

// Thread-safe.
class LockTable {
 public:
  // Locks of tables and advisory ones, and whatever is waited for.
  std::vector<LockInfo> List();
  // The groups that this one waits for: those that hold, and those that are before it in the queue.
  // Empty: it does not wait.
  std::vector<uint64_t> Blockers(uint64_t group);

  uint64_t waits() const { return waits_.load(std::memory_order_relaxed); }
  uint64_t deadlocks() const { return deadlocks_.load(std::memory_order_relaxed); }

 private:
  friend class LockOwner;

  struct Lock;
  struct Holder {
    LockOwner* owner = nullptr;
    LockModes modes = 0;
  };
  struct Waiter {
    LockOwner* owner;
    LockMode mode;
    std::string name;
    Lock* lock;
    bool granted = false;
    std::condition_variable wake;
  };
  // What few locks have.
  struct Rest {
    std::vector<Holder> holders;   // beside the first
    std::vector<Waiter*> waiters;  // in the order in which they are served
    std::string name;              // of tables and advisory locks
  };
  struct Lock {
    Holder first;
    LockKind kind = LockKind::kRow;
    std::unique_ptr<Rest> rest;

    template <typename Visit>
    void ForEachHolder(Visit&& visit) const {
      if (first.owner != nullptr) visit(first);
      if (rest == nullptr) return;
      for (const Holder& holder : rest->holders) visit(holder);
    }
    // Modes in the hands of other groups.
    LockModes OthersModes(uint64_t group) const;
    Holder* HolderOf(const LockOwner* owner);
    bool HasWaiters() const { return rest != nullptr && !rest->waiters.empty(); }
    // Waiters of rows let those pass who need not wait: a row is asked for by few, and waits are
    // short. Of everything else nobody overtakes.
    bool fair() const { return kind != LockKind::kRow; }
  };
  struct alignas(64) Shard {
    std::mutex mutex;
    std::unordered_map<uint64_t, Lock> locks;
  };
  class Sweep;
  static constexpr size_t kShards = 64;

  static uint64_t HashOf(LockKind kind, std::string_view name);
  Shard& ShardOf(uint64_t hash) { return shards_[hash % kShards]; }

  Result<bool> Acquire(LockOwner* owner, LockKind kind, std::string_view name,
                       const LockOptions& options);
  bool Release(LockOwner* owner, uint64_t hash, LockMode mode);

  // Of one shard, whose mutex is held.
  static void Grant(Lock* lock, LockOwner* owner, LockMode mode);
  // Somebody waits whom this mode would keep waiting.
  static bool MustQueue(const Lock& lock, LockMode mode);
  static bool Blocks(const Waiter& ahead, const Waiter& waiter);
  static void GrantWaiters(Lock* lock);
  Status Wait(Waiter* waiter, const LockOptions& options, std::unique_lock<std::mutex>* held);

  // With all shards' mutexes held.
  std::vector<std::unique_lock<std::mutex>> LockAll();
  struct Edge {
    Waiter* waiter;
    Waiter* ahead;  // who stands before it in the queue; null: the next one holds
  };
  bool FindCycle(Waiter* waiter, uint64_t target, bool queues, std::vector<uint64_t>* seen,
                 std::vector<Edge>* path);
  // Could the wait never end? Changes the order of queues where that helps.
  bool IsDeadlock(Waiter* waiter);

  std::array<Shard, kShards> shards_;
  std::mutex waiting_mutex_;                       // taken after a shard's
  std::unordered_map<uint64_t, Waiter*> waiting_;  // by group
  std::atomic<uint64_t> waits_{0}, deadlocks_{0};
};

}  // namespace cellar::kv
