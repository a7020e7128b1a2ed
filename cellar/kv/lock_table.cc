#include "cellar/kv/lock_table.h"

#include <algorithm>

#include "cellar/base/check.h"
#include "cellar/base/sqlstate.h"
#include "cellar/kv/hash.h"

namespace cellar::kv {
namespace {

// How long a waiter sleeps between looks at its cancel token.
constexpr std::chrono::milliseconds kPollInterval{10};
// What a lock takes: an entry of the table, and one of its owner.
constexpr size_t kLockBytes = 112;

constexpr std::array<LockModes, kLockModes> MakeConflicts() {
  // Row i names the modes that exclude mode i: manual 13.3.1, table 13.2.
  using M = LockMode;
  std::array<LockModes, kLockModes> conflicts{};
  const auto exclude = [&](M a, M b) {
    conflicts[static_cast<size_t>(a)] |= ModeBit(b);
    conflicts[static_cast<size_t>(b)] |= ModeBit(a);
  };
  for (size_t i = 0; i < kLockModes; ++i) exclude(M::kAccessExclusive, static_cast<M>(i));
  for (size_t i = 1; i < kLockModes; ++i) exclude(M::kExclusive, static_cast<M>(i));
  for (const M mode : {M::kRowExclusive, M::kShareUpdateExclusive, M::kShare}) {
    exclude(M::kShareRowExclusive, mode);
  }
  exclude(M::kShareRowExclusive, M::kShareRowExclusive);
  exclude(M::kShare, M::kRowExclusive);
  exclude(M::kShare, M::kShareUpdateExclusive);
  exclude(M::kShareUpdateExclusive, M::kShareUpdateExclusive);
  return conflicts;
}
constexpr std::array<LockModes, kLockModes> kConflicts = MakeConflicts();

Status LockNotAvailable(const char* why) {
  return SqlError(Code::kUnavailable, sqlstate::kLockNotAvailable, "{}", why);
}

}  // namespace

LockModes ConflictsOf(LockMode mode) { return kConflicts[static_cast<size_t>(mode)]; }

std::string_view LockModeName(LockMode mode) {
  static constexpr std::string_view kNames[kLockModes] = {
      "AccessShareLock", "RowShareLock",          "RowExclusiveLock", "ShareUpdateExclusiveLock",
      "ShareLock",       "ShareRowExclusiveLock", "ExclusiveLock",    "AccessExclusiveLock"};
  return kNames[static_cast<size_t>(mode)];
}

// ---- LockOwner ----

Result<bool> LockOwner::Acquire(LockKind kind, std::string_view name, const LockOptions& options) {
  const size_t before = mark();
  CELLAR_TRY_ASSIGN(const bool got, table_->Acquire(this, kind, name, options));
  if (got && !options.keep) RollbackTo(before);
  return got;
}

bool LockOwner::Release(LockKind kind, std::string_view name, LockMode mode) {
  const uint64_t hash = LockTable::HashOf(kind, name);
  const auto at = std::find_if(held_.rbegin(), held_.rend(), [&](const Held& held) {
    return held.hash == hash && held.mode == mode;
  });
  if (at == held_.rend()) return false;
  held_.erase(std::next(at).base());
  return table_->Release(this, hash, mode);
}

void LockOwner::RollbackTo(size_t mark) {
  while (held_.size() > mark) {
    const Held last = held_.back();
    held_.pop_back();
    table_->Release(this, last.hash, last.mode);
  }
  if (held_.empty()) charges_.clear();
}

// Locks outlive the statement that takes them; it is the one that is charged.
void LockOwner::Charge() {
  MemoryAccount* const account = MemoryAccount::Current();
  if (account == nullptr) return;
  if (charges_.empty() || charges_.back().first != account) {
    charges_.emplace_back(account, MemoryCharge(account));
  }
  charges_.back().second.Add(kLockBytes);
}

// ---- LockTable ----

uint64_t LockTable::HashOf(LockKind kind, std::string_view name) {
  return HashKey(name) ^ (static_cast<uint64_t>(kind) * 0x9E3779B97F4A7C15);
}

LockModes LockTable::Lock::OthersModes(uint64_t group) const {
  LockModes modes = 0;
  ForEachHolder([&](const Holder& holder) {
    if (holder.owner->group_ != group) modes |= holder.modes;
  });
  return modes;
}

LockTable::Holder* LockTable::Lock::HolderOf(const LockOwner* owner) {
  if (first.owner == owner) return &first;
  if (rest == nullptr) return nullptr;
  for (Holder& holder : rest->holders) {
    if (holder.owner == owner) return &holder;
  }
  return nullptr;
}

void LockTable::Grant(Lock* lock, LockOwner* owner, LockMode mode) {
  Holder* holder = lock->HolderOf(owner);
  if (holder == nullptr && lock->first.owner == nullptr) holder = &lock->first;
  if (holder == nullptr) {
    if (lock->rest == nullptr) lock->rest = std::make_unique<Rest>();
    holder = &lock->rest->holders.emplace_back();
  }
  holder->owner = owner;
  holder->modes |= ModeBit(mode);
}

bool LockTable::MustQueue(const Lock& lock, LockMode mode) {
  if (!lock.fair() || lock.rest == nullptr) return false;
  return std::any_of(lock.rest->waiters.begin(), lock.rest->waiters.end(), [&](Waiter* waiter) {
    return (ModeBit(waiter->mode) & ConflictsOf(mode)) != 0;
  });
}

bool LockTable::Blocks(const Waiter& ahead, const Waiter& waiter) {
  return ahead.owner->group_ != waiter.owner->group_ &&
         (ModeBit(ahead.mode) & ConflictsOf(waiter.mode)) != 0;
}

// Takes an entry out of its shard at the end of a scope, if it is not used. The shard's mutex is
// held then.
class LockTable::Sweep {
 public:
  Sweep(Shard* shard, uint64_t hash, const Lock* lock) : shard_(shard), hash_(hash), lock_(lock) {}
  ~Sweep() {
    if (lock_->first.owner == nullptr && !lock_->HasWaiters()) shard_->locks.erase(hash_);
  }
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

 private:
  Shard* const shard_;
  const uint64_t hash_;
  const Lock* const lock_;
};

Result<bool> LockTable::Acquire(LockOwner* owner, LockKind kind, std::string_view name,
                                const LockOptions& options) {
  const uint64_t hash = HashOf(kind, name);
  Shard& shard = ShardOf(hash);
  std::unique_lock held(shard.mutex);
  Lock* const lock = &shard.locks[hash];  // stays where it is, however the table grows
  if (const Holder* own = lock->HolderOf(owner); own != nullptr) {
    // The modes of rows and keys include one another; of the others each is shown by its name.
    const bool nested = kind == LockKind::kRow || kind == LockKind::kKey;
    if (nested ? own->modes >= ModeBit(options.mode) : (own->modes & ModeBit(options.mode)) != 0) {
      return true;
    }
  }
  // Whatever becomes of it, an entry that nobody holds or awaits goes: charging may throw.
  const Sweep sweep(&shard, hash, lock);
  owner->Charge();
  if (owner->held_.capacity() == owner->held_.size()) {
    owner->held_.reserve(2 * owner->held_.size() + 8);
  }
  if (lock->rest == nullptr && (kind == LockKind::kTable || kind == LockKind::kAdvisory)) {
    lock->rest = std::make_unique<Rest>();
    lock->rest->name = name;
  }
  lock->kind = kind;
  // Who holds it and wants more goes before those who wait for it to let go.
  bool raises = false;
  lock->ForEachHolder(
      [&](const Holder& holder) { raises |= holder.owner->group_ == owner->group_; });
  const bool free = (lock->OthersModes(owner->group_) & ConflictsOf(options.mode)) == 0;
  if (free && (raises || !MustQueue(*lock, options.mode))) {
    Grant(lock, owner, options.mode);
    owner->held_.push_back({hash, options.mode});
    return true;
  }
  switch (options.wait) {
    case LockWait::kSkip: return false;
    case LockWait::kNoWait: return LockNotAvailable("could not obtain lock on row");
    case LockWait::kBlock: break;
  }
  waits_.fetch_add(1, std::memory_order_relaxed);
  Waiter waiter{.owner = owner, .mode = options.mode, .name = std::string(name), .lock = lock};
  if (lock->rest == nullptr) lock->rest = std::make_unique<Rest>();
  std::vector<Waiter*>& waiters = lock->rest->waiters;
  waiters.insert(raises ? waiters.begin() : waiters.end(), &waiter);
  {
    const std::lock_guard waiting(waiting_mutex_);
    waiting_[owner->group_] = &waiter;
  }
  Status status = Wait(&waiter, options, &held);
  {
    const std::lock_guard waiting(waiting_mutex_);
    waiting_.erase(owner->group_);
  }
  if (waiter.granted) {
    owner->held_.push_back({hash, options.mode});
    return true;
  }
  waiters.erase(std::find(waiters.begin(), waiters.end(), &waiter));
  GrantWaiters(lock);
  return status;
}

Status LockTable::Wait(Waiter* waiter, const LockOptions& options,
                       std::unique_lock<std::mutex>* held) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  bool looked = false;  // for a deadlock
  while (!waiter->granted) {
    if (options.cancel != nullptr) CELLAR_TRY(options.cancel->Check());
    const Clock::time_point now = Clock::now();
    if (!looked && now - began >= options.deadlock_after) {
      looked = true;
      held->unlock();
      bool deadlock;
      {
        const std::vector<std::unique_lock<std::mutex>> all = LockAll();
        deadlock = !waiter->granted && IsDeadlock(waiter);
      }
      held->lock();
      if (waiter->granted) break;
      if (deadlock) {
        deadlocks_.fetch_add(1, std::memory_order_relaxed);
        return SqlError(Code::kConflict, sqlstate::kDeadlockDetected, "deadlock detected");
      }
      continue;
    }
    Clock::time_point until =
        now + (options.cancel != nullptr ? kPollInterval : std::chrono::hours(1));
    if (!looked) until = std::min(until, began + options.deadlock_after);
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

bool LockTable::Release(LockOwner* owner, uint64_t hash, LockMode mode) {
  Shard& shard = ShardOf(hash);
  const std::lock_guard held(shard.mutex);
  const auto at = shard.locks.find(hash);
  CELLAR_CHECK(at != shard.locks.end());
  Lock& lock = at->second;
  Holder* const holder = lock.HolderOf(owner);
  CELLAR_CHECK(holder != nullptr);
  holder->modes &= static_cast<LockModes>(~ModeBit(mode));
  if (holder->modes == 0) {
    if (holder != &lock.first) {
      lock.rest->holders.erase(lock.rest->holders.begin() + (holder - lock.rest->holders.data()));
    } else if (lock.rest != nullptr && !lock.rest->holders.empty()) {
      lock.first = lock.rest->holders.back();
      lock.rest->holders.pop_back();
    } else {
      lock.first = {};
    }
  }
  if (lock.HasWaiters()) GrantWaiters(&lock);
  if (lock.first.owner == nullptr && !lock.HasWaiters()) shard.locks.erase(at);
  return true;
}

void LockTable::GrantWaiters(Lock* lock) {
  if (lock->rest == nullptr) return;
  std::vector<Waiter*>& waiters = lock->rest->waiters;
  LockModes wanted = 0;  // by those who go on waiting
  for (size_t i = 0; i < waiters.size();) {
    Waiter* const waiter = waiters[i];
    const LockModes conflicts = ConflictsOf(waiter->mode);
    if ((wanted & conflicts) != 0 || (lock->OthersModes(waiter->owner->group_) & conflicts) != 0) {
      wanted |= ModeBit(waiter->mode);
      ++i;
      continue;
    }
    Grant(lock, waiter->owner, waiter->mode);
    waiters.erase(waiters.begin() + static_cast<ptrdiff_t>(i));
    waiter->granted = true;
    waiter->wake.notify_one();
  }
}

// ---- Deadlocks ----

std::vector<std::unique_lock<std::mutex>> LockTable::LockAll() {
  std::vector<std::unique_lock<std::mutex>> all;
  all.reserve(kShards);
  for (Shard& shard : shards_) all.emplace_back(shard.mutex);
  return all;
}

// Depth first, from whom `waiter` waits for to `target`; `queues`: also those who stand before it.
bool LockTable::FindCycle(Waiter* waiter, uint64_t target, bool queues, std::vector<uint64_t>* seen,
                          std::vector<Edge>* path) {
  const auto follow = [&](uint64_t group, Waiter* ahead) {
    path->push_back({waiter, ahead});
    if (group == target) return true;
    if (std::find(seen->begin(), seen->end(), group) == seen->end()) {
      seen->push_back(group);
      const auto next = waiting_.find(group);
      if (next != waiting_.end() && !next->second->granted &&
          FindCycle(next->second, target, queues, seen, path)) {
        return true;
      }
    }
    path->pop_back();
    return false;
  };
  bool found = false;
  const LockModes conflicts = ConflictsOf(waiter->mode);
  waiter->lock->ForEachHolder([&](const Holder& holder) {
    if (found || holder.owner->group_ == waiter->owner->group_) return;
    if ((holder.modes & conflicts) != 0) found = follow(holder.owner->group_, nullptr);
  });
  if (found || !queues) return found;
  for (Waiter* ahead : waiter->lock->rest->waiters) {
    if (ahead == waiter) break;
    if (Blocks(*ahead, *waiter) && follow(ahead->owner->group_, ahead)) return true;
  }
  return false;
}

bool LockTable::IsDeadlock(Waiter* waiter) {
  const std::lock_guard waiting(waiting_mutex_);
  const uint64_t group = waiter->owner->group_;
  // Each round ends one wait in a queue, so that there are few.
  constexpr int kMostRounds = 64;
  for (int round = 0; round < kMostRounds && !waiter->granted; ++round) {
    std::vector<uint64_t> seen;
    std::vector<Edge> path;
    if (FindCycle(waiter, group, false, &seen, &path)) return true;
    seen.clear();
    if (!FindCycle(waiter, group, true, &seen, &path)) return false;
    // Somebody waits behind one who waits: the other way round it goes on.
    const auto edge = std::find_if(path.begin(), path.end(),
                                   [](const Edge& one) { return one.ahead != nullptr; });
    if (edge == path.end()) return true;
    Lock* const lock = edge->waiter->lock;
    std::vector<Waiter*>& queue = lock->rest->waiters;
    queue.erase(std::find(queue.begin(), queue.end(), edge->waiter));
    queue.insert(std::find(queue.begin(), queue.end(), edge->ahead), edge->waiter);
    GrantWaiters(lock);
  }
  return !waiter->granted;
}

// ---- Who waits for whom ----

std::vector<LockInfo> LockTable::List() {
  std::vector<LockInfo> list;
  for (Shard& shard : shards_) {
    const std::lock_guard held(shard.mutex);
    for (const auto& entry : shard.locks) {
      const Lock& lock = entry.second;
      if (lock.rest == nullptr) continue;
      if (!lock.rest->name.empty()) {
        lock.ForEachHolder([&](const Holder& holder) {
          for (size_t i = 0; i < kLockModes; ++i) {
            const auto mode = static_cast<LockMode>(i);
            if ((holder.modes & ModeBit(mode)) == 0) continue;
            list.push_back({lock.kind, mode, true, holder.owner->group_, lock.rest->name});
          }
        });
      }
      for (const Waiter* waiter : lock.rest->waiters) {
        list.push_back({lock.kind, waiter->mode, false, waiter->owner->group_, waiter->name});
      }
    }
  }
  return list;
}

std::vector<uint64_t> LockTable::Blockers(uint64_t group) {
  const std::vector<std::unique_lock<std::mutex>> all = LockAll();
  const std::lock_guard waiting(waiting_mutex_);
  std::vector<uint64_t> groups;
  const auto at = waiting_.find(group);
  if (at == waiting_.end() || at->second->granted) return groups;
  const Waiter& waiter = *at->second;
  waiter.lock->ForEachHolder([&](const Holder& holder) {
    if (holder.owner->group_ == group) return;
    if ((holder.modes & ConflictsOf(waiter.mode)) != 0) groups.push_back(holder.owner->group_);
  });
  for (const Waiter* ahead : waiter.lock->rest->waiters) {
    if (ahead == &waiter) break;
    if (Blocks(*ahead, waiter)) groups.push_back(ahead->owner->group_);
  }
  return groups;
}

}  // namespace cellar::kv
