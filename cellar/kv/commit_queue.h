// Validates and writes transactions in groups, and syncs the log for many groups at once.
//
// Two threads work at a time, both of them committers. The leader takes all that wait, validates
// them in order, writes the survivors with one engine call, lets go of their locks, and hands over
// the lead. The syncer makes durable what was written so far, tells whose commits these are, and
// hands over to one of those who were written meanwhile.
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
#include "cellar/kv/counters.h"
#include "cellar/kv/lock_table.h"
#include "cellar/kv/storage.h"
#include "cellar/kv/visibility.h"

namespace cellar::kv {

// One transaction on its way through the queue; lives on its committer's stack.
struct CommitRequest {
  const ReadSet* reads = nullptr;
  uint64_t checked = 0;  // see ConflictIndex::Unchanged
  WriteSet writes;
  std::span<const std::unique_ptr<SpillFile>> files;  // instead of the buffer's keys
  bool ingest = false;                                // take the files
  bool unread = false;                                // as Storage::Ingest says
  std::span<const CounterChange> counters;
  bool durable = true;
  bool makes_room = false;     // as CommitOptions say
  LockOwner* locks = nullptr;  // to let go of once the writes show; null: none

  Status status;         // the outcome
  uint64_t version = 0;  // if that is OK; if it is kConflict, rivals have none above this

  enum class State : uint8_t { kWaiting, kLeading, kSyncing, kDone } state = State::kWaiting;
  bool hidden = false;  // written, but to be synced
  std::vector<CounterWrite> counter_writes;
  std::condition_variable wake;
};

// Thread-safe.
class CommitQueue {
 public:
  CommitQueue(Storage* storage, ConflictIndex* conflicts, Visibility* visibility);

  // Blocks until the request's outcome is known.
  void Submit(CommitRequest* request);

  // Waits until commits up to `version` are applied, or published, or have failed.
  void AwaitApplied(uint64_t version);
  void AwaitPublished(uint64_t version);
  // Tries to make durable, and publish, what a failed sync has left behind, as every commit does
  // before anything else.
  void SyncWhatIsLeft();
  // No commit is acknowledged any more.
  void Stop(Status why);
  Status health() const;

  void AddStats(EngineStats* stats) const;

 private:
  // Keeps one group's latency and memory in bounds; one request is always taken.
  static constexpr size_t kMaxGroupBytes = 4 << 20;
  static constexpr size_t kMaxGroup = 1024;
  using State = CommitRequest::State;

  static void Wake(CommitRequest* request, State state);
  void Lead(CommitRequest* request, std::unique_lock<std::mutex>* held);
  // At the end of leading, the mutex held: the next leads, and somebody syncs what was written.
  void PassOn(CommitRequest* syncs_next);
  void Sync(CommitRequest* request, std::unique_lock<std::mutex>* held);
  void TakeGroup(std::vector<CommitRequest*>* group);
  void Process(std::span<CommitRequest* const> group);
  // Makes durable what a failed sync has left, as far as that is possible now.
  Status SyncAgain(std::span<CommitRequest* const> group);
  bool Validate(CommitRequest* request);
  void StopAfter(const Status& error);

  Storage* const storage_;
  ConflictIndex* const conflicts_;
  Visibility* const visibility_;

  mutable std::mutex mutex_;  // guards queue_, leading_, unsynced_, syncing_, stopped_
  std::deque<CommitRequest*> queue_;
  bool leading_ = false;
  std::deque<CommitRequest*> unsynced_;  // written
  bool syncing_ = false;
  bool sync_failed_ = false;          // commits are hidden that nobody waits for
  std::condition_variable progress_;  // something was applied or published
  Status stopped_;
  std::atomic<bool> is_stopped_{false};

  // Of the leader.
  std::vector<CommitRequest*> group_;
  std::vector<GroupMember> members_;
  std::vector<CommitRequest*> valid_;
  CounterTable counters_;

  std::atomic<uint64_t> commits_{0}, conflicts_count_{0}, groups_{0}, synced_groups_{0};
};

}  // namespace cellar::kv
