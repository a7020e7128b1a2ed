#include "cellar/base/memory_account.h"

#include <algorithm>
#include <cstdlib>

#include "cellar/base/sqlstate.h"

namespace cellar {

namespace {

constexpr size_t kLeastStep = 16 << 10, kLargestStep = 1 << 20;

// How much is taken from the parent at once: more by who uses much already.
size_t StepOf(size_t used) { return std::clamp(used / 8, kLeastStep, kLargestStep); }

// In front of each piece of counted memory.
struct alignas(16) Header {
  MemoryAccount* account;  // null: not charged
  size_t bytes;            // charged
};

}  // namespace

thread_local constinit MemoryAccount* MemoryAccount::current_ = nullptr;

Status OutOfMemoryError(const MemoryRefusal& refusal) {
  Status status = SqlError(Code::kLimit, sqlstate::kOutOfMemory, "out of memory");
  if (refusal.limit == 0) {
    return std::move(status).WithDetail(
        refusal.asked == 0 ? "The system has no more memory."
                           : fmt::format("The system has no {} bytes more.", refusal.asked));
  }
  return std::move(status)
      .WithDetail(fmt::format("The {} asked for {} bytes beside the {} that it uses; {} lets it "
                              "have {}.",
                              refusal.account, refusal.asked, refusal.used, refusal.setting,
                              refusal.limit))
      .WithHint(fmt::format("Select or change less at once, or raise {}.", refusal.setting));
}

MemoryAccountPtr MemoryAccount::Make(MemoryAccount* parent, const char* name, const char* setting,
                                     size_t limit) {
  // The account's own size keeps the parent alive as long as it lives.
  if (MemoryRefusal refusal; !parent->TryCharge(sizeof(MemoryAccount), &refusal)) {
    throw OutOfMemory(refusal);  // tidy: allow(throw) the one exception there is
  }
  return MemoryAccountPtr(std::make_unique<MemoryAccount>(parent, name, setting, limit).release());
}

MemoryAccount* MemoryAccount::Process() {
  static MemoryAccount process(nullptr, "process", "--memory-mb", kNoLimit);
  return &process;
}

bool MemoryAccount::TryCharge(size_t bytes, MemoryRefusal* refusal) {
  MemoryRefusal ignored;
  if (refusal == nullptr) refusal = &ignored;
  const size_t limit = this->limit();
  if (bytes > limit) {  // nor may absurd sizes carry into the flag
    *refusal = {name_, setting_, bytes, used(), limit};
    return false;
  }
  const uint64_t now = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const size_t used = static_cast<size_t>(now) & (kOpen - 1);
  if (used <= limit) {
    if (parent_ == nullptr) {
      if (used > peak_.load(std::memory_order_relaxed)) {
        peak_.store(used, std::memory_order_relaxed);
      }
      return true;
    }
    if (used <= granted_.load(std::memory_order_relaxed) || Grow(used, refusal)) return true;
  } else {
    *refusal = {name_, setting_, bytes, used - bytes, limit};
  }
  used_.fetch_sub(bytes, std::memory_order_relaxed);  // open, so never the last
  return false;
}

bool MemoryAccount::Grow(size_t used, MemoryRefusal* refusal) {
  const std::lock_guard lock(mutex_);
  const size_t granted = granted_.load(std::memory_order_relaxed);
  if (used <= granted) return true;
  const size_t needed = used - granted, step = StepOf(used);
  size_t taken = (needed + step - 1) / step * step;
  if (!parent_->TryCharge(taken, refusal)) {
    taken = needed;
    if (!parent_->TryCharge(taken, refusal)) return false;
  }
  granted_.store(granted + taken, std::memory_order_relaxed);
  peak_.store(std::max(peak(), granted + taken), std::memory_order_relaxed);
  return true;
}

void MemoryAccount::Shrink(size_t used) {
  const std::lock_guard lock(mutex_);
  const size_t granted = granted_.load(std::memory_order_relaxed), kept = used + StepOf(used);
  if (granted <= kept) return;
  granted_.store(kept, std::memory_order_relaxed);
  parent_->Release(granted - kept);
}

Status MemoryAccount::Charge(size_t bytes) {
  MemoryRefusal refusal;
  return TryCharge(bytes, &refusal) ? Status() : OutOfMemoryError(refusal);
}

void MemoryAccount::Release(size_t bytes) {
  if (parent_ != nullptr) {
    // Before the subtraction: until then what is released keeps the account alive.
    const size_t used = this->used(), left = used - std::min(used, bytes & (kOpen - 1));
    if (granted_.load(std::memory_order_relaxed) > left + 2 * StepOf(left)) Shrink(left);
  }
  // Release and acquire: whoever takes the last sees all that others have done.
  if (used_.fetch_sub(bytes, std::memory_order_acq_rel) != bytes) return;
  const std::unique_ptr<MemoryAccount> last(this);
  parent_->Release(granted_.load(std::memory_order_relaxed) + sizeof(MemoryAccount));
}

void CloseAccount::operator()(MemoryAccount* account) const {
  account->Release(MemoryAccount::kOpen);
}

Status MemoryCharge::Resize(size_t bytes) {
  if (account_ == nullptr) return Status();
  if (bytes > bytes_) CELLAR_TRY(account_->Charge(bytes - bytes_));
  if (bytes < bytes_) account_->Release(bytes_ - bytes);
  bytes_ = bytes;
  return Status();
}

void MemoryCharge::Add(size_t bytes) {
  if (account_ == nullptr) return;
  MemoryRefusal refusal;
  if (!account_->TryCharge(bytes, &refusal)) {
    throw OutOfMemory(refusal);  // tidy: allow(throw) the one exception there is
  }
  bytes_ += bytes;
}

void* AllocateCounted(size_t bytes) {
  Header header{nullptr, bytes};
  if (bytes >= kLeastCounted && MemoryAccount::Current() != nullptr) {
    MemoryRefusal refusal;
    if (!MemoryAccount::Current()->TryCharge(bytes, &refusal)) {
      throw OutOfMemory(refusal);  // tidy: allow(throw) the one exception there is
    }
    header.account = MemoryAccount::Current();
  }
  void* memory = bytes > SIZE_MAX / 2 ? nullptr : std::malloc(sizeof(Header) + bytes);
  if (memory == nullptr) {
    if (header.account != nullptr) header.account->Release(bytes);
    MemoryRefusal refusal;
    refusal.asked = bytes;
    throw OutOfMemory(refusal);  // tidy: allow(throw) the one exception there is
  }
  *static_cast<Header*>(memory) = header;
  return static_cast<Header*>(memory) + 1;
}

void FreeCounted(void* memory) noexcept {
  if (memory == nullptr) return;
  Header* header = static_cast<Header*>(memory) - 1;
  if (header->account != nullptr) header->account->Release(header->bytes);
  std::free(header);
}

}  // namespace cellar
