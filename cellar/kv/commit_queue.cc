#include "cellar/kv/commit_queue.h"

#include <chrono>
#include <thread>

#include "cellar/base/sqlstate.h"

namespace cellar::kv {

CommitQueue::CommitQueue(Storage* storage, ConflictIndex* conflicts, uint64_t version)
    : storage_(storage), conflicts_(conflicts), started_(version), published_(version) {}

void CommitQueue::Submit(CommitRequest* request) {
  std::unique_lock held(mutex_);
  queue_.push_back(request);
  if (leading_) {
    request->wake.wait(held, [&] { return request->state != CommitRequest::State::kWaiting; });
    if (request->state == CommitRequest::State::kDone) return;
  }
  leading_ = true;
  TakeGroup(&group_);
  held.unlock();
  Process(group_);
  held.lock();
  for (CommitRequest* member : group_) {
    member->state = CommitRequest::State::kDone;
    if (member != request) member->wake.notify_one();
  }
  if (queue_.empty()) {
    leading_ = false;
  } else {
    queue_.front()->state = CommitRequest::State::kLeading;
    queue_.front()->wake.notify_one();
  }
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
  bool sync = false;
  Status status = health();
  uint64_t version = started_.load(std::memory_order_relaxed);
  for (CommitRequest* request : group) {
    if (!status.ok()) {
      request->status = status;
      continue;
    }
    if (!Validate(request)) continue;
    request->version = ++version;
    conflicts_->Mark(request->writes, version);
    sync |= request->durable;
    valid_.push_back(request);
    members_.push_back({request->writes.buffer, version});
  }
  if (valid_.empty()) return;
  // Before the write: a snapshot taken when started() was lower must not be shared from now on.
  started_.store(version, std::memory_order_seq_cst);
  bool failed = false;
  if (valid_.front()->ingest) {
    const CommitRequest& only = *valid_.front();
    status = storage_->Ingest(only.files, only.writes.buffer->range_deletions(), version, &failed);
  } else {
    status = storage_->Write(members_, sync, &failed);
  }
  if (!status.ok()) {
    if (failed) {
      Stop(SqlError(Code::kUnavailable, sqlstate::kIoError,
                    "the store stopped taking writes after a write error")
               .WithDetail(std::string(status.message()))
               .WithHint("Restart the server: it recovers every acknowledged commit."));
    }
    for (CommitRequest* request : valid_) request->status = status;
    return;
  }
  published_.store(version, std::memory_order_release);
  groups_.fetch_add(1, std::memory_order_relaxed);
  if (sync) synced_groups_.fetch_add(1, std::memory_order_relaxed);
  commits_.fetch_add(valid_.size(), std::memory_order_relaxed);
}

void CommitQueue::AwaitPublished(uint64_t version) {
  for (int spins = 0; published() < version; ++spins) {
    {
      std::lock_guard held(mutex_);
      if (!leading_ || is_stopped_) return;
    }
    if (spins < 64) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

void CommitQueue::Stop(Status why) {
  std::lock_guard held(mutex_);
  if (is_stopped_) return;
  stopped_ = std::move(why);
  is_stopped_ = true;
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
