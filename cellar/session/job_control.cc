// What is decided about jobs from outside of their steps: cancelled, parked, resumed.
#include "cellar/base/sqlstate.h"
#include "cellar/session/jobs.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {
namespace {

// So often the process may end at the same step before the job is left alone.
constexpr uint32_t kMostAttempts = 2;
constexpr int kMaxRecordConflicts = 1000;

Status NoSuchJob(uint64_t id) {
  return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "job {} does not exist", id);
}

}  // namespace

Status JobService::ChangeRecord(uint64_t id,
                                const std::function<Status(Job*, kv::Transaction*)>& change) {
  kv::Engine* engine = database_->impl()->engine.get();
  for (int conflicts = 0;; ++conflicts) {
    auto once = [&]() -> Status {
      const std::unique_ptr<kv::Transaction> writer = engine->Begin();
      // A condition of the commit; the record with what progress says of it is read beside it.
      kv::PinnedValue value;
      CELLAR_TRY_ASSIGN(const bool found, writer->Get(JobKey(id), &value, kv::ReadMode::kTracked));
      CELLAR_TRY_ASSIGN(std::optional<Job> job, ReadJob(engine, id));
      if (!found || !job.has_value()) return NoSuchJob(id);
      CELLAR_TRY(change(&*job, writer.get()));
      return writer->Commit().status();
    };
    Status status = once();
    if (status.code() != Code::kConflict || conflicts >= kMaxRecordConflicts) return status;
  }
}

Status JobService::Cancel(uint64_t id) {
  CELLAR_TRY(ChangeRecord(id, [id](Job* job, kv::Transaction* writer) -> Status {
    if (job->ended() || job->doing() == JobState::kUndoing) {
      return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                      "job {} has ended already", id);
    }
    if (job->state == JobState::kParked) {
      job->state = job->resume_state;
      job->attempts = 0;
      CELLAR_TRY(PutJob(*job, writer));
    }
    return PutCancelRequest(id, writer);
  }));
  std::lock_guard lock(mutex_);
  cancelled_.insert(id);
  if (running_ == id) {
    cancel_.Cancel(CancelToken::Reason::kUser);
    if (session_ != nullptr) session_->Cancel(false);
  }
  woken_ = true;
  changed_.notify_all();
  return Status();
}

Status JobService::Resume(uint64_t id) {
  CELLAR_TRY(ChangeRecord(id, [id](Job* job, kv::Transaction* writer) -> Status {
    if (job->state != JobState::kParked) {
      return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                      "job {} is not parked", id);
    }
    job->state = job->resume_state;
    job->attempts = 0;
    return PutJob(*job, writer);
  }));
  Wake();
  return Status();
}

Result<bool> JobService::NoteAttempt(Job* job) {
  if (job->attempts >= kMostAttempts) {
    Job parked = *job;
    parked.parked_reason =
        fmt::format("the process ended {} times while it was {}; RESUME JOB {} tries again",
                    job->attempts, JobStepName(*job), job->id);
    parked.resume_state = job->state;
    parked.state = JobState::kParked;
    CELLAR_TRY(Put(parked));
    *job = std::move(parked);
    return false;
  }
  ++job->attempts;
  CELLAR_TRY(Put(*job));
  return true;
}

void JobService::NoteRest(Job* job) {
  if (job->attempts == 0 || job->ended()) return;
  job->attempts = 0;
  // What is stored may be ahead of *job, where a commit's outcome was unknown. At worst the attempt
  // counts as one that did not come to rest.
  (void)ChangeRecord(job->id, [](Job* stored, kv::Transaction* writer) {
    stored->attempts = 0;
    return PutJob(*stored, writer);
  });
}

}  // namespace cellar::session
