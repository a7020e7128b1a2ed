// Who holds how much memory, and who may have more.
//
// Accounts form a tree: the process, a statement in it, an operator in that. What is charged to one
// is charged to those above it, in larger steps: an account takes 16 KiB to 1 MiB at a time from
// its parent, so that the one all threads share is touched seldom. A charge beyond a limit is
// refused before the allocator is asked.
//
// A thread works for one account at a time (MemoryScope). AllocateCounted charges that one, and
// each piece remembers whom it was charged to: it may outlive the statement, and be freed by
// another thread. A thread that works for nobody charges nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>  // tidy: allow(new) the header of std::bad_alloc
#include <utility>
#include <vector>

#include "cellar/base/status.h"

namespace cellar {

// Why an account refused, or, without a limit, the system. The strings are literals.
struct MemoryRefusal {
  const char* account = "";               // "statement"
  const char* setting = "";               // what governs its limit: "--statement-mb"
  size_t asked = 0, used = 0, limit = 0;  // bytes
};
// 53200. The detail names the account, what was asked for, what is in use, and the limit.
Status OutOfMemoryError(const MemoryRefusal& refusal);

// The one exception of Cellar: thrown by arenas, vectors and other counted memory, caught where a
// statement, call or step of a job was begun (CatchOutOfMemory).
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(const MemoryRefusal& refusal) : refusal_(refusal) {}
  const char* what() const noexcept override { return "cellar: out of memory"; }
  const MemoryRefusal& refusal() const { return refusal_; }

 private:
  MemoryRefusal refusal_;
};

class MemoryAccount;
struct CloseAccount {
  void operator()(MemoryAccount* account) const;
};
// The account takes no more charges once this is gone; it lives on until all of it is given back.
using MemoryAccountPtr = std::unique_ptr<MemoryAccount, CloseAccount>;

// Thread-safe. Cost of a charge or release: one atomic addition, and a lock per step taken from the
// parent or given back to it.
class MemoryAccount {
 public:
  static constexpr size_t kNoLimit = size_t{1} << 60;

  // `name` and `setting` are literals. Throws OutOfMemory when the parent refuses.
  static MemoryAccountPtr Make(MemoryAccount* parent, const char* name, const char* setting,
                               size_t limit);
  // Of the process, with no limit until one is set.
  static MemoryAccount* Process();
  // The account that this thread works for; null: none.
  static MemoryAccount* Current() { return current_; }

  // Charges, or changes nothing and returns false. `refusal` may be null.
  bool TryCharge(size_t bytes, MemoryRefusal* refusal);
  Status Charge(size_t bytes);
  // Gives back what was charged. The account may be gone afterwards.
  void Release(size_t bytes);

  size_t used() const {
    return static_cast<size_t>(used_.load(std::memory_order_relaxed)) & (kOpen - 1);
  }
  size_t limit() const { return limit_.load(std::memory_order_relaxed); }
  void set_limit(size_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  // The most that was ever taken from the parent, in its steps.
  size_t peak() const { return peak_.load(std::memory_order_relaxed); }

  MemoryAccount(MemoryAccount* parent, const char* name, const char* setting, size_t limit)
      : parent_(parent), name_(name), setting_(setting), limit_(limit) {}

 private:
  friend class MemoryScope;
  friend struct CloseAccount;
  static constexpr uint64_t kOpen = uint64_t{1} << 62;  // counted in used_ until it is closed

  // Takes from the parent what `used` needs. `refusal` is not null.
  bool Grow(size_t used, MemoryRefusal* refusal);
  void Shrink(size_t used);

  static thread_local constinit MemoryAccount* current_;

  MemoryAccount* const parent_;
  const char* const name_;
  const char* const setting_;
  std::atomic<size_t> limit_;
  std::atomic<uint64_t> used_{kOpen};
  std::atomic<size_t> granted_{0}, peak_{0};  // by the parent
  std::mutex mutex_;                          // of changes of granted_
};

// Lets the thread work for an account (null: for nobody) until it goes.
class MemoryScope {
 public:
  explicit MemoryScope(MemoryAccount* account)
      : before_(std::exchange(MemoryAccount::current_, account)) {}
  ~MemoryScope() { MemoryAccount::current_ = before_; }
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  MemoryAccount* before_;
};

// What one owner has charged for memory that counts itself nowhere else. One thread at a time.
class MemoryCharge {
 public:
  MemoryCharge() = default;
  explicit MemoryCharge(MemoryAccount* account) : account_(account) {}  // null: charges nothing
  MemoryCharge(MemoryCharge&& other) noexcept
      : account_(std::exchange(other.account_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryCharge& operator=(MemoryCharge&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryCharge() { Clear(); }

  // Makes the charge this large. 53200, with the charge as it was, when the account refuses.
  Status Resize(size_t bytes);
  // Adds to the charge. Throws OutOfMemory: for code that has no Status to return.
  void Add(size_t bytes);
  void Clear() {
    if (bytes_ != 0) account_->Release(std::exchange(bytes_, 0));
  }
  size_t bytes() const { return bytes_; }

 private:
  MemoryAccount* account_ = nullptr;
  size_t bytes_ = 0;
};

// Uninitialised memory, aligned to 16, charged to the account that the thread works for when it is
// at least kLeastCounted bytes. Throws OutOfMemory, or frees.
inline constexpr size_t kLeastCounted = 1024;
void* AllocateCounted(size_t bytes);
void FreeCounted(void* memory) noexcept;

struct CountedDeleter {
  void operator()(void* memory) const noexcept { FreeCounted(memory); }
};
// An array of plain values.
template <typename T>
using CountedArray = std::unique_ptr<T[], CountedDeleter>;
template <typename T>
CountedArray<T> MakeCountedArray(size_t size) {
  return CountedArray<T>(static_cast<T*>(AllocateCounted(size * sizeof(T))));
}

// For containers of the standard library.
template <typename T>
struct CountedAllocator {
  using value_type = T;
  CountedAllocator() = default;
  template <typename U>
  CountedAllocator(const CountedAllocator<U>&) {}  // NOLINT: implicit by contract
  T* allocate(size_t n) { return static_cast<T*>(AllocateCounted(n * sizeof(T))); }
  void deallocate(T* memory, size_t) { FreeCounted(memory); }
  friend bool operator==(const CountedAllocator&, const CountedAllocator&) { return true; }
};
template <typename T>
using CountedVector = std::vector<T, CountedAllocator<T>>;

// Runs `body`, which returns a Status or Result, and makes 53200 of memory that could not be had.
// Whatever `body` had changed is as it was when memory ran out: the caller rolls back as after any
// error.
template <typename F>
auto CatchOutOfMemory(F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const OutOfMemory& error) {
    return OutOfMemoryError(error.refusal());
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError(MemoryRefusal());
  }
}

}  // namespace cellar
