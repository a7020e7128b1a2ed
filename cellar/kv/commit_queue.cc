#include "cellar/kv/commit_queue.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"

namespace cellar::kv {

CommitQueue::CommitQueue(Storage* storage, ConflictIndex* conflicts, Visibility* visibility)
    : storage_(storage), conflicts_(conflicts), visibility_(visibility), counters_(storage) {}

void CommitQueue::Wake(CommitRequest* request, State state) {
  request->state = state;
  request->wake.notify_one();
}

void CommitQueue::Submit(CommitRequest* request) {
  std::unique_lock held(mutex_);
  queue_.push_back(request);
  if (!leading_) {
    leading_ = true;
    request->state = State::kLeading;
  }
  while (request->state != State::kDone) {
    switch (request->state) {
      case State::kWaiting:
        request->wake.wait(held, [&] { return request->state != State::kWaiting; });
        break;
      case State::kLeading: Lead(request, &held); break;
      case State::kSyncing: Sync(request, &held); break;
      case State::kDone: break;
    }
  }
}

// Writes what waits, of which `request` is the first.
void CommitQueue::Lead(CommitRequest* request, std::unique_lock<std::mutex>* held) {
  TakeGroup(&group_);
  const bool again = sync_failed_ && !syncing_ && unsynced_.empty();
  syncing_ |= again;
  held->unlock();
  const bool synced = again && SyncAgain(group_).ok();
  Process(group_);
  held->lock();
  if (again) {
    syncing_ = false;
    sync_failed_ = !synced;
  }
  for (CommitRequest* member : group_) {
    if (member->hidden) {
      unsynced_.push_back(member);
      member->state = State::kWaiting;
    } else {
      Wake(member, State::kDone);
    }
  }
  // Whoever is awake syncs, if the others have not.
  PassOn(request->hidden ? request : nullptr);
}

void CommitQueue::PassOn(CommitRequest* syncs_next) {
  if (queue_.empty()) {
    leading_ = false;
  } else {
    Wake(queue_.front(), State::kLeading);
  }
  if (!syncing_ && !unsynced_.empty()) {
    syncing_ = true;
    Wake(syncs_next != nullptr ? syncs_next : unsynced_.front(), State::kSyncing);
  }
  progress_.notify_all();
}

// Syncs what was written, `request` among it.
void CommitQueue::Sync(CommitRequest* request, std::unique_lock<std::mutex>* held) {
  std::deque<CommitRequest*> batch;
  batch.swap(unsynced_);
  held->unlock();
  bool failed = false;
  const Status status = visibility_->Sync(&failed);
  if (failed) StopAfter(status);
  if (status.ok()) synced_groups_.fetch_add(1, std::memory_order_relaxed);
  held->lock();
  sync_failed_ = !status.ok();
  for (CommitRequest* member : batch) {
    member->status = status;
    Wake(member, State::kDone);
  }
  if (unsynced_.empty()) {
    syncing_ = false;
  } else {
    Wake(unsynced_.front(), State::kSyncing);
  }
  progress_.notify_all();
}

Status CommitQueue::SyncAgain(std::span<CommitRequest* const> group) {
  CELLAR_TRY(health());
  // Whatever is hidden is in the way of new commits, which read what was published.
  const bool makes_room = std::any_of(
      group.begin(), group.end(), [](const CommitRequest* member) { return member->makes_room; });
  CELLAR_TRY(storage_->Admit(0, makes_room));
  bool failed = false;
  Status status = visibility_->Sync(&failed);
  if (failed) StopAfter(status);
  return status;
}

void CommitQueue::TakeGroup(std::vector<CommitRequest*>* group) {
  group->clear();
  size_t bytes = 0;
  while (!queue_.empty() && group->size() < kMaxGroup) {
    CommitRequest* next = queue_.front();
    // Files are ingested by a call of their own.
    if (!group->empty() && (next->ingest || bytes > kMaxGroupBytes)) break;
    queue_.pop_front();
    group->push_back(next);
    if (next->ingest) break;
    bytes += next->writes.buffer->footprint_bytes();
  }
}

bool CommitQueue::Validate(CommitRequest* request) {
  if (request->reads == nullptr || conflicts_->Unchanged(*request->reads, request->checked)) {
    return true;
  }
  request->status =
      SqlError(Code::kConflict, sqlstate::kSerializationFailure,
               "could not serialize access due to read/write dependencies among transactions")
          .WithHint("The transaction might succeed if retried.");
  conflicts_count_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void CommitQueue::Process(std::span<CommitRequest* const> group) {
  members_.clear();
  valid_.clear();
  bool durable = false;
  Status status = health();
  uint64_t version = visibility_->started();
  for (CommitRequest* request : group) {
    if (!status.ok()) {
      request->status = status;
      continue;
    }
    // Before its writes are marked: what is refused has changed nothing.
    const size_t bytes = request->ingest ? 0 : request->writes.buffer->footprint_bytes();
    request->status = storage_->Admit(bytes, request->makes_room);
    if (!request->status.ok()) continue;
    if (!Validate(request)) {
      request->version = version;  // of the rivals, at most
      continue;
    }
    if (!request->counters.empty()) {
      request->status = counters_.Prepare(request->counters, version + 1, request->ingest,
                                          &request->counter_writes);
      if (!request->status.ok()) continue;
    }
    request->version = ++version;
    conflicts_->Mark(request->writes, version);
    durable |= request->durable || request->ingest;
    valid_.push_back(request);
    members_.push_back({request->writes.buffer, request->counter_writes, version});
  }
  if (valid_.empty()) return;
  const bool hidden = visibility_->Start(version, durable);
  bool failed = false;
  if (valid_.front()->ingest) {
    const CommitRequest& only = *valid_.front();
    status = storage_->Ingest(only.files, only.writes.buffer->range_deletions(),
                              only.counter_writes, only.unread, version, &failed);
  } else {
    status = storage_->Write(members_, &failed);
  }
  if (!status.ok()) {
    counters_.Forget();
    if (failed) {
      StopAfter(status);
    } else {
      visibility_->Failed(version);
    }
    for (CommitRequest* request : valid_) request->status = status;
    return;
  }
  visibility_->Applied(version, hidden);
  for (CommitRequest* request : valid_) {
    request->hidden = hidden;
    if (request->locks != nullptr) request->locks->ReleaseAll();
  }
  groups_.fetch_add(1, std::memory_order_relaxed);
  commits_.fetch_add(valid_.size(), std::memory_order_relaxed);
}

void CommitQueue::StopAfter(const Status& error) {
  Stop(SqlError(Code::kUnavailable, sqlstate::kIoError,
                "the store stopped taking writes after a write error")
           .WithDetail(std::string(error.message()))
           .WithHint("Restart the server: it recovers every acknowledged commit."));
}

void CommitQueue::AwaitApplied(uint64_t version) {
  if (visibility_->applied() >= version) return;
  std::unique_lock held(mutex_);
  progress_.wait(held,
                 [&] { return visibility_->applied() >= version || is_stopped_ || !leading_; });
}

void CommitQueue::SyncWhatIsLeft() {
  std::unique_lock held(mutex_);
  if (!sync_failed_ || leading_ || syncing_ || !unsynced_.empty()) return;
  leading_ = syncing_ = true;
  held.unlock();
  const bool synced = SyncAgain({}).ok();
  held.lock();
  syncing_ = false;
  sync_failed_ = !synced;
  PassOn(nullptr);
}

void CommitQueue::AwaitPublished(uint64_t version) {
  if (visibility_->published() >= version) return;
  // Who waits here is refused over what is hidden, so that nobody may ever come to commit.
  SyncWhatIsLeft();
  std::unique_lock held(mutex_);
  progress_.wait(held, [&] {
    return visibility_->published() >= version || is_stopped_ || (!leading_ && !syncing_);
  });
}

void CommitQueue::Stop(Status why) {
  std::lock_guard held(mutex_);
  if (is_stopped_) return;
  stopped_ = std::move(why);
  is_stopped_ = true;
  progress_.notify_all();
}

Status CommitQueue::health() const {
  if (!is_stopped_.load(std::memory_order_acquire)) return {};
  std::lock_guard held(mutex_);
  return stopped_;
}

void CommitQueue::AddStats(EngineStats* stats) const {
  stats->commits += commits_.load(std::memory_order_relaxed);
  stats->conflicts += conflicts_count_.load(std::memory_order_relaxed);
  stats->groups += groups_.load(std::memory_order_relaxed);
  stats->synced_groups += synced_groups_.load(std::memory_order_relaxed);
}

}  // namespace cellar::kv
