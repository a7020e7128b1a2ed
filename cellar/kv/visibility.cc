#include "cellar/kv/visibility.h"

namespace cellar::kv {

Visibility::Visibility(Storage* storage, uint64_t version)
    : storage_(storage), started_(version), applied_(version), published_(version) {}

bool Visibility::Start(uint64_t version, bool durable) {
  std::shared_ptr<const SnapshotReader> stale;
  std::lock_guard lock(mutex_);
  if (durable && !hiding_) {
    // Nothing is on its way, so this is the state at published_.
    if (shared_ == nullptr || shared_version_ != published_) {
      stale = std::move(shared_);
      shared_ = storage_->TakeSnapshot();
      shared_version_ = published_;
    }
    hiding_.store(true, std::memory_order_seq_cst);
  }
  started_.store(version, std::memory_order_seq_cst);
  return hiding_;
}

void Visibility::Applied(uint64_t version, bool hidden) {
  std::lock_guard lock(mutex_);
  applied_.store(version, std::memory_order_release);
  if (hidden) {
    hidden_ = version;
  } else {
    published_.store(version, std::memory_order_release);
  }
}

void Visibility::Failed(uint64_t version) {
  std::lock_guard lock(mutex_);
  applied_.store(version, std::memory_order_release);
  if (hidden_ > published_) return;
  published_.store(version, std::memory_order_release);
  hiding_.store(false, std::memory_order_seq_cst);
}

Status Visibility::Sync(bool* failed) {
  const uint64_t version = applied();
  // It may hold more than `version`, but nothing that the sync which follows does not cover.
  std::shared_ptr<const SnapshotReader> snapshot = storage_->TakeSnapshot();
  if (Status status = storage_->SyncLog(failed); !status.ok()) {
    unknown_.store(true, std::memory_order_seq_cst);
    return status;
  }
  std::lock_guard lock(mutex_);
  // An earlier sync may have published all that this one is for, and commits that asked for none
  // may have come since: what is published stays so.
  if (version > published_) {
    std::swap(shared_, snapshot);
    shared_version_ = version;
    published_.store(version, std::memory_order_release);
  }
  if (hiding_ && hidden_ <= version && applied_ == started_) {
    // What came after `version`, if anything, has failed.
    shared_version_ = applied_;
    published_.store(applied_, std::memory_order_release);
    hiding_.store(false, std::memory_order_seq_cst);
    unknown_.store(false, std::memory_order_seq_cst);
  }
  return {};
}

std::shared_ptr<const SnapshotReader> Visibility::Acquire(uint64_t at_least, uint64_t* version) {
  std::shared_ptr<const SnapshotReader> stale;
  std::lock_guard lock(mutex_);
  if (at_least > published_) {
    *version = applied_;
    return storage_->TakeSnapshot();
  }
  // A read without a snapshot may already have seen a group that is on its way but not hidden, so
  // that a snapshot without it must not be handed out any more.
  if (shared_ != nullptr && shared_version_ == (hiding_ ? published_ : started_)) {
    *version = shared_version_;
    return shared_;
  }
  *version = published_;
  std::shared_ptr<const SnapshotReader> snapshot = storage_->TakeSnapshot();
  stale = std::move(shared_);
  if (published_ == started_) {
    shared_ = snapshot;
    shared_version_ = published_;
  }
  return snapshot;
}

void Visibility::DropStale() {
  std::shared_ptr<const SnapshotReader> stale;
  std::lock_guard lock(mutex_);
  if (!hiding_ && shared_version_ != started_) stale = std::move(shared_);
}

void Visibility::Drop() {
  std::shared_ptr<const SnapshotReader> stale;
  std::lock_guard lock(mutex_);
  stale = std::move(shared_);
}

}  // namespace cellar::kv
