// Which commits readers may see, and the snapshot that they share.
//
// A group is written to the log and applied first, and synced later, so that whoever waits for its
// locks need not wait for the disk. Until the sync it is hidden: ordinary transactions read the
// state before it. Only who asks for a version by number sees more, and must be acknowledged after
// that version is published.
//
// Invariants:
//   1. published <= applied <= started. Everything up to `published` is durable, as far as it asked
//      for that.
//   2. While commits are hidden, the shared snapshot exists and is the state at `published`, apart
//      from commits that were durable already when it was published.
//   3. Commits come to be hidden before they are written: who finds nothing hidden after reading
//   the
//      newest state has read nothing that was hidden.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "cellar/base/status.h"
#include "cellar/kv/storage.h"

namespace cellar::kv {

// Thread-safe; Start, Applied and Failed are for one thread at a time, and so is Sync.
class Visibility {
 public:
  Visibility(Storage* storage, uint64_t version);

  // Versions up to this may be in the store, or about to be.
  uint64_t started() const { return started_.load(std::memory_order_seq_cst); }
  // Versions up to this are in the store, or have failed.
  uint64_t applied() const { return applied_.load(std::memory_order_acquire); }
  // Every commit up to this shows in all snapshots taken from now on.
  uint64_t published() const { return published_.load(std::memory_order_acquire); }
  bool hiding() const { return hiding_.load(std::memory_order_seq_cst); }
  // A sync has failed, and none has succeeded since: commits whose outcome was told as unknown may
  // be published yet.
  bool unknown() const { return unknown_.load(std::memory_order_seq_cst); }

  // A group with versions up to `version` is about to be written; true if it is hidden until a
  // Sync, which is so if it asks for that itself or if something before it is hidden.
  bool Start(uint64_t version, bool durable);
  // It was written, or, as nothing of it is in the store, has failed.
  void Applied(uint64_t version, bool hidden);
  void Failed(uint64_t version);
  // Makes durable and publishes what was applied before the call.
  Status Sync(bool* failed);

  // A snapshot that holds every commit up to *version, which is at least `at_least`, and may hold
  // commits not yet published only if that is above published(). Await its application before.
  std::shared_ptr<const SnapshotReader> Acquire(uint64_t at_least, uint64_t* version);
  // Lets go of the shared snapshot if it is out of date, or in any case.
  void DropStale();
  void Drop();

 private:
  Storage* const storage_;
  std::mutex mutex_;  // guards the shared snapshot and all changes of the versions
  std::shared_ptr<const SnapshotReader> shared_;
  uint64_t shared_version_ = 0;
  uint64_t hidden_ = 0;  // the greatest version that was applied hidden
  std::atomic<uint64_t> started_, applied_, published_;
  std::atomic<bool> hiding_{false}, unknown_{false};
};

}  // namespace cellar::kv
