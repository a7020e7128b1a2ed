#include "cellar/kv/lock_table.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"

namespace cellar::kv {
namespace {

// How long a waiter sleeps between looks at its cancel token.
constexpr std::chrono::milliseconds kPollInterval{10};

Status LockNotAvailable(const char* why) {
  return SqlError(Code::kUnavailable, sqlstate::kLockNotAvailable, "{}", why);
}

}  // namespace

Result<bool> LockTable::Acquire(Owner owner, std::string_view key, const LockOptions& options) {
  std::unique_lock held(mutex_);
  auto at = locks_.find(key);
  if (at == locks_.end()) at = locks_.try_emplace(std::string(key)).first;
  Lock& lock = at->second;
  if (lock.holder == owner) return true;
  if (lock.holder == 0) {
    lock.holder = owner;
    held_[owner].push_back(at);
    return true;
  }
  switch (options.wait) {
    case LockWait::kSkip: return false;
    case LockWait::kNoWait: return LockNotAvailable("could not obtain lock on row");
    case LockWait::kBlock: break;
  }
  if (ClosesCycle(owner, lock)) {
    ++deadlocks_;
    return SqlError(Code::kConflict, sqlstate::kDeadlockDetected, "deadlock detected");
  }
  ++waits_;
  Waiter waiter{.owner = owner};
  lock.waiters.push_back(&waiter);
  waiting_for_[owner] = &lock;
  Status status = Wait(&waiter, options, &held);
  waiting_for_.erase(owner);
  if (waiter.granted) {
    held_[owner].push_back(at);
    return true;
  }
  lock.waiters.erase(std::find(lock.waiters.begin(), lock.waiters.end(), &waiter));
  return status;
}

Status LockTable::Wait(Waiter* waiter, const LockOptions& options,
                       std::unique_lock<std::mutex>* held) {
  const auto began = std::chrono::steady_clock::now();
  while (!waiter->granted) {
    if (options.cancel != nullptr) CELLAR_TRY(options.cancel->Check());
    const auto now = std::chrono::steady_clock::now();
    auto until = now + (options.cancel != nullptr ? kPollInterval : std::chrono::hours(1));
    if (options.timeout.count() > 0) {
      if (now - began >= options.timeout) {
        return LockNotAvailable("canceling statement due to lock timeout");
      }
      until = std::min(until, began + options.timeout);
    }
    waiter->wake.wait_until(*held, until);
  }
  return {};
}

bool LockTable::ClosesCycle(Owner owner, const Lock& wanted) const {
  // Waiting behind others means waiting for them too, since they will hold the lock first.
  std::vector<Owner> ahead{wanted.holder};
  for (const Waiter* waiter : wanted.waiters) ahead.push_back(waiter->owner);
  std::vector<Owner> seen;
  while (!ahead.empty()) {
    const Owner next = ahead.back();
    ahead.pop_back();
    if (next == owner) return true;
    if (std::find(seen.begin(), seen.end(), next) != seen.end()) continue;
    seen.push_back(next);
    auto waits = waiting_for_.find(next);
    if (waits == waiting_for_.end()) continue;
    ahead.push_back(waits->second->holder);
    for (const Waiter* waiter : waits->second->waiters) {
      if (waiter->owner == next) break;
      ahead.push_back(waiter->owner);
    }
  }
  return false;
}

void LockTable::ReleaseAll(Owner owner) {
  std::lock_guard held(mutex_);
  auto locks = held_.find(owner);
  if (locks == held_.end()) return;
  const std::vector<Locks::iterator> released = std::move(locks->second);
  held_.erase(locks);
  for (Locks::iterator lock : released) Release(lock);
}

void LockTable::Release(Locks::iterator at) {
  Lock& lock = at->second;
  if (lock.waiters.empty()) {
    locks_.erase(at);
    return;
  }
  Waiter* next = lock.waiters.front();
  lock.waiters.erase(lock.waiters.begin());
  lock.holder = next->owner;
  next->granted = true;
  next->wake.notify_one();
}

}  // namespace cellar::kv
