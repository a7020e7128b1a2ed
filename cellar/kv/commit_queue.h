// Validates and writes transactions in groups. The first committer leads: it takes all that wait,
// validates them in order, writes the survivors with one engine call, and hands over the lead.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/kv/conflict_index.h"
#include "cellar/kv/storage.h"

namespace cellar::kv {

// One transaction on its way through the queue; lives on its committer's stack.
struct CommitRequest {
  const ReadSet* reads = nullptr;
  uint64_t checked = 0;  // see ConflictIndex::Unchanged
  WriteSet writes;
  std::span<const std::unique_ptr<SpillFile>> files;  // instead of the buffer's keys
  bool ingest = false;                                // take the files
  bool durable = true;

  Status status;         // the outcome
  uint64_t version = 0;  // if that is OK

  enum class State : uint8_t { kWaiting, kLeading, kDone } state = State::kWaiting;
  std::condition_variable wake;
};

// Thread-safe.
class CommitQueue {
 public:
  CommitQueue(Storage* storage, ConflictIndex* conflicts, uint64_t version);

  // Blocks until the request's outcome is known.
  void Submit(CommitRequest* request);

  // Every commit up to this is applied and shows in snapshots taken from now on.
  uint64_t published() const { return published_.load(std::memory_order_acquire); }
  // Versions up to this may be in the store, or about to be.
  uint64_t started() const { return started_.load(std::memory_order_seq_cst); }
  // Waits until commits up to `version` are published or have failed.
  void AwaitPublished(uint64_t version);
  // No commit is acknowledged any more.
  void Stop(Status why);
  Status health() const;

  void AddStats(EngineStats* stats) const;

 private:
  // Keeps one group's latency and memory in bounds; one request is always taken.
  static constexpr size_t kMaxGroupBytes = 4 << 20;
  static constexpr size_t kMaxGroup = 1024;

  void TakeGroup(std::vector<CommitRequest*>* group);
  void Process(std::span<CommitRequest* const> group);
  bool Validate(CommitRequest* request);

  Storage* const storage_;
  ConflictIndex* const conflicts_;

  mutable std::mutex mutex_;  // guards queue_, leading_, stopped_
  std::deque<CommitRequest*> queue_;
  bool leading_ = false;
  Status stopped_;
  std::atomic<bool> is_stopped_{false};

  // Of the leader.
  std::vector<CommitRequest*> group_;
  std::vector<GroupMember> members_;
  std::vector<CommitRequest*> valid_;

  std::atomic<uint64_t> started_;
  std::atomic<uint64_t> published_;
  std::atomic<uint64_t> commits_{0}, conflicts_count_{0}, groups_{0}, synced_groups_{0};
};

}  // namespace cellar::kv
