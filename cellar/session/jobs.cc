#include "cellar/session/jobs.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cellar/base/sqlstate.h"
#include "cellar/codec/key.h"
#include "cellar/session/ddl.h"
#include "cellar/session/job_pace.h"
#include "cellar/session/session_internal.h"
#include "cellar/table/backfill.h"
#include "cellar/table/rewrite.h"
#include "cellar/table/usage.h"

namespace cellar::session {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstBackOff{1}, kLongestBackOff{50};
// How often a small commit that meets a conflict is tried again.
constexpr int kMaxConflicts = 1000;
// Before something that cannot be done now is looked at again.
constexpr milliseconds kLater{1000};
constexpr milliseconds kLookEvery{10};  // of those who wait
// So many records of ended jobs are kept.
constexpr size_t kKeptJobs = 100;

std::function<void(std::string_view)>& Hook() {
  static std::function<void(std::string_view)> hook;
  return hook;
}
bool IsTransient(Code code) {
  return code == Code::kConflict || code == Code::kUnavailable || code == Code::kCommitUnknown;
}

}  // namespace

void JobStepPassed(std::string_view step) {
  if (Hook()) Hook()(step);
}

Status JobTargetGone(const Job& job) {
  return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "{} was dropped meanwhile",
                  job.object);
}

Status CancelledJob() {
  return SqlError(Code::kCancelled, sqlstate::kQueryCanceled, "the job was cancelled");
}

Status JobTableInBin() { return MakeError(Code::kUnavailable, "the table of the job was dropped"); }

namespace {

// The services of open databases.
struct Services {
  std::mutex mutex;
  std::map<const Database::Impl*, std::unique_ptr<JobService>> of;
};
Services& AllServices() {
  static Services services;
  return services;
}

}  // namespace

JobService* JobService::Of(const Database::Impl* database) {
  std::lock_guard lock(AllServices().mutex);
  const auto at = AllServices().of.find(database);
  return at == AllServices().of.end() ? nullptr : at->second.get();
}

void JobService::Open(Database* database) {
  auto service = std::make_unique<JobService>(database);
  service->Start();
  std::lock_guard lock(AllServices().mutex);
  AllServices().of[database->impl()] = std::move(service);
}

void JobService::Close(const Database::Impl* database) {
  std::unique_ptr<JobService> closing;  // ends behind the lock
  std::lock_guard lock(AllServices().mutex);
  const auto at = AllServices().of.find(database);
  if (at == AllServices().of.end()) return;
  closing = std::move(at->second);
  AllServices().of.erase(at);
}

void JobService::SetHook(std::function<void(std::string_view)> hook) { Hook() = std::move(hook); }

void JobService::Start() {
  // Signals are for the threads of whoever opened the store.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void JobService::Stop() {
  std::thread ending;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    cancel_.Cancel(CancelToken::Reason::kShutdown);
    if (session_ != nullptr) session_->Cancel(true);
    ending = std::move(thread_);
  }
  changed_.notify_all();
  if (ending.joinable()) ending.join();
}

void JobService::Wake() {
  {
    std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

Status JobService::Cancel(uint64_t id) {
  kv::Engine* engine = database_->impl()->engine.get();
  CELLAR_TRY_ASSIGN(const std::optional<Job> job, ReadJob(engine, id));
  if (!job.has_value()) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "job {} does not exist", id);
  }
  if (job->ended() || job->state == JobState::kUndoing) {
    return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                    "job {} has ended already", id);
  }
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

Status JobService::Wait(uint64_t id, const CancelToken* cancel) {
  Database::Impl& db = *database_->impl();
  Status stopped;  // why the job was cancelled
  while (true) {
    CELLAR_TRY_ASSIGN(const std::optional<Job> job, ReadJob(db.engine.get(), id));
    if (!job.has_value()) return InternalError("job {} has no record any more", id);
    if (job->ended()) {
      // The catalog of this process follows the commit.
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this, id] { return running_ != id; });
      return job->state == JobState::kCancelled && !stopped.ok() ? stopped : job->error;
    }
    if (stopped.ok()) {
      stopped = cancel->Check();
      if (!stopped.ok() && db.shutting_down.load()) return stopped;
      if (!stopped.ok()) (void)Cancel(id);  // it may just have ended
    }
    if (db.catalog->Current()->GetTable(job->table) == nullptr) return JobTargetGone(*job);
    std::unique_lock lock(mutex_);
    if (stopping_) {
      return SqlError(Code::kCancelled, sqlstate::kAdminShutdown,
                      "the store is being closed; job {} goes on when it is opened again", id);
    }
    changed_.wait_for(lock, kLookEvery);
  }
}

bool JobService::Rest(Clock::duration duration) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, duration, [this] { return stopping_ || cancelled_.contains(running_); });
  return !stopping_ && !cancelled_.contains(running_);
}

void JobService::Run() {
  while (true) {
    Result<std::vector<Job>> jobs = ReadJobs(database_->impl()->engine.get());
    bool left = !jobs.ok();
    if (jobs.ok()) {
      for (Job& job : *jobs) {
        if (job.ended()) continue;
        const auto at = not_before_.find(job.id);
        if (at == not_before_.end() || at->second <= Clock::now()) Work(std::move(job));
      }
      left = !not_before_.empty();
    }
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return stopping_ || woken_; };
    if (left)
      changed_.wait_for(lock, kLater, ready);
    else
      changed_.wait(lock, ready);
    if (stopping_) return;
    woken_ = false;
  }
}

void JobService::Work(Job job) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    running_ = job.id;
    cancel_.Clear();
    if (cancelled_.contains(job.id)) cancel_.Cancel(CancelToken::Reason::kUser);
  }
  const uint64_t id = job.id;
  Status status = Go(&job);
  std::lock_guard lock(mutex_);
  running_ = 0;
  if (status.ok()) {
    cancelled_.erase(id);
    not_before_.erase(id);
  } else {
    not_before_[id] = Clock::now() + kLater;
  }
  changed_.notify_all();
}

// Not OK: the job waits for a better time.
Status JobService::Go(Job* job) {
  Database::Impl& db = *database_->impl();
  if (job->state == JobState::kRunning) {
    Status status;
    if (db.catalog->Current()->GetTable(job->table) == nullptr) {
      if (db.catalog->Current()->GetDroppedTable(job->table) != nullptr) return JobTableInBin();
      status = JobTargetGone(*job);
    } else {
      switch (job->kind) {
        case JobKind::kBuildIndex: status = Build(job); break;
        case JobKind::kValidate: status = Validate(job); break;
        case JobKind::kRewrite: status = Rewrite(job); break;
      }
    }
    if (status.ok()) {
      Forget();
      return Status();
    }
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return status;
      const bool stopped = status.code() == Code::kCancelled || IsTransient(status.code());
      if (stopped && cancelled_.contains(job->id)) status = CancelledJob();
    }
    if (status.code() == Code::kCommitUnknown) CELLAR_TRY(db.catalog->Reload());
    if (IsTransient(status.code())) return status;
    job->error = std::move(status);
    job->state = JobState::kUndoing;
  }
  // What is being taken back is not cancelled again.
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return CancelledJob();
    cancelled_.erase(job->id);
    cancel_.Clear();
  }
  Status undone = Undo(job);
  if (undone.code() == Code::kCommitUnknown) CELLAR_TRY(db.catalog->Reload());
  if (undone.ok()) Forget();
  return undone;
}

Status JobService::Put(const Job& job) {
  std::unique_ptr<kv::Transaction> writer = database_->impl()->engine->Begin();
  CELLAR_TRY(writer->Put(JobKey(job.id), EncodeJob(job)));
  return writer->Commit().status();
}

void JobService::End(Job* job, JobState state) {
  job->state = state;
  job->ended_micros = NowMicros();
}

// The oldest ended jobs beyond what is kept.
void JobService::Forget() {
  kv::Engine* engine = database_->impl()->engine.get();
  Result<std::vector<Job>> jobs = ReadJobs(engine);
  if (!jobs.ok()) return;
  std::erase_if(*jobs, [](const Job& job) { return !job.ended(); });
  if (jobs->size() <= kKeptJobs) return;
  std::unique_ptr<kv::Transaction> writer = engine->Begin();
  for (size_t i = 0; i + kKeptJobs < jobs->size(); ++i) {
    if (!writer->Delete(JobKey((*jobs)[i].id)).ok()) return;
  }
  (void)writer->Commit();
}

Status JobService::Edit(const Job& job,
                        const std::function<Status(catalog::TableDescriptor*)>& change) {
  Database::Impl& db = *database_->impl();
  for (int conflicts = 0;; ++conflicts) {
    auto once = [&]() -> Status {
      std::unique_ptr<kv::Transaction> writer = db.engine->Begin();
      catalog::CatalogEditor editor(db.catalog.get(), writer.get());
      const catalog::TablePtr table = editor.snapshot()->GetTable(job.table);
      if (table == nullptr) {
        return db.catalog->Current()->GetDroppedTable(job.table) != nullptr ? JobTableInBin()
                                                                            : JobTargetGone(job);
      }
      catalog::TableDescriptor next = *table;
      CELLAR_TRY(change(&next));
      CELLAR_TRY(editor.UpdateTable(std::move(next)).status());
      CELLAR_TRY(writer->Put(JobKey(job.id), EncodeJob(job)));
      CELLAR_TRY_ASSIGN(const uint64_t version, writer->Commit());
      db.catalog->Publish(editor, version);
      return Status();
    };
    Status status = once();
    if (status.code() != Code::kConflict || conflicts >= kMaxConflicts) return status;
    if (!Rest(kFirstBackOff)) return status;
  }
}

// ---- Building an index
// -----------------------------------------------------------------------------------

// One commit: rows are read and their entries written by it, so it holds only if nobody has changed
// those rows, or the descriptor, meanwhile.
Status JobService::Backfill(const catalog::TablePtr& table, const Job& job, uint64_t max_rows,
                            Job* next) {
  Database::Impl& db = *database_->impl();
  kv::TransactionOptions options;
  // Nobody reads the entries of a non-unique index yet. Those of a unique one are read by writers
  // who look for duplicates.
  options.unmarked_writes = !table->FindIndex(job.index)->unique;
  std::unique_ptr<kv::Transaction> transaction = db.engine->Begin(options);
  CELLAR_TRY(catalog::RequireCurrent(*table, transaction.get()));
  table::BackfillStep step;
  CELLAR_TRY(table::BackfillIndex({transaction.get(), &cancel_, db.tables.get()}, table, job.index,
                                  max_rows, &next->position, &step));
  next->rows_done += step.rows;
  next->filled = step.done;
  CELLAR_TRY(transaction->Put(JobKey(job.id), EncodeJob(*next)));
  return transaction->Commit().status();
}

Status JobService::CountEntries(const catalog::TablePtr& table, const Job& job) {
  Database::Impl& db = *database_->impl();
  const catalog::IndexDescriptor& index = *table->FindIndex(job.index);
  if (!index.predicate.empty()) return Status();
  kv::TransactionOptions options;
  options.read_only = true;
  std::unique_ptr<kv::Transaction> reader = db.engine->Begin(options);
  CELLAR_TRY_ASSIGN(const std::optional<table::TableUsage> usage,
                    table::UsageOf(*table, reader.get()));
  if (!usage.has_value()) return Status();
  CELLAR_TRY_ASSIGN(
      const uint64_t entries,
      table::CountEntries({reader.get(), &cancel_, db.tables.get()}, *table, job.index));
  if (entries == static_cast<uint64_t>(usage->rows)) return Status();
  return SqlError(Code::kCorruption, "XX001", "index \"{}\" has {} entries for {} rows", index.name,
                  entries, usage->rows);
}

Status JobService::Build(Job* job) {
  Database::Impl& db = *database_->impl();
  JobPace pace(db.engine.get());
  Clock::duration back_off = kFirstBackOff;
  while (!job->filled) {
    CELLAR_TRY(cancel_.Check());
    const catalog::TablePtr table = db.catalog->Current()->GetTable(job->table);
    if (table == nullptr) return JobTableInBin();
    if (table->FindIndex(job->index) == nullptr) return JobTargetGone(*job);
    pace.Begin();
    Job next = *job;
    Status status = Backfill(table, *job, pace.rows(), &next);
    if (status.code() == Code::kConflict) {
      pace.Refused();
      back_off = std::min<Clock::duration>(back_off * 2, kLongestBackOff);
      if (!Rest(back_off)) return CancelledJob();
      continue;
    }
    CELLAR_TRY(std::move(status));
    *job = std::move(next);
    JobStepPassed("filled some");
    back_off = kFirstBackOff;
    if (!Rest(pace.End())) return CancelledJob();
  }
  CELLAR_TRY(cancel_.Check());
  const catalog::TablePtr table = db.catalog->Current()->GetTable(job->table);
  if (table == nullptr) return JobTableInBin();
  if (table->FindIndex(job->index) == nullptr) return JobTargetGone(*job);
  CELLAR_TRY(CountEntries(table, *job));
  JobStepPassed("counted");
  Job done = *job;
  End(&done, JobState::kDone);
  CELLAR_TRY(Edit(done, [job](catalog::TableDescriptor* next) -> Status {
    for (catalog::IndexDescriptor& index : next->indexes) {
      if (index.id != job->index) continue;
      index.state = catalog::IndexState::kPublic;
      index.job = 0;
      return Status();
    }
    return JobTargetGone(*job);
  }));
  *job = std::move(done);
  JobStepPassed("published");
  return Status();
}

// ---- Sessions

Result<std::unique_ptr<Session>> JobService::OpenSession(
    const Job& job, std::map<std::string, std::string> settings) {
  SessionOptions options;
  options.user = job.created_by;
  options.database = job.database;
  for (auto& [name, value] : settings) options.settings.emplace_back(name, std::move(value));
  CELLAR_TRY_ASSIGN(std::unique_ptr<Session> session, Session::Open(database_, options));
  std::lock_guard lock(mutex_);
  session_ = session.get();
  if (stopping_) session_->Cancel(true);
  if (cancelled_.contains(job.id)) session_->Cancel(false);
  return session;
}

void JobService::CloseSession() {
  std::lock_guard lock(mutex_);
  session_ = nullptr;
}

// ---- Validating a constraint
// -----------------------------------------------------------------------------

Status JobService::Validate(Job* job) {
  Database::Impl& db = *database_->impl();
  CELLAR_TRY_ASSIGN(const std::unique_ptr<Session> session,
                    OpenSession(*job, {{"default_transaction_isolation", "repeatable read"},
                                       {"default_transaction_read_only", "on"}}));
  const auto look = [&]() -> Status {
    while (true) {
      const catalog::TablePtr table = db.catalog->Current()->GetTable(job->table);
      if (table == nullptr) return JobTableInBin();
      // The snapshot is younger than the descriptor: all rows that are newer keep the constraint.
      Session::Impl& impl = *session->impl();
      CELLAR_TRY(impl.EnsureTransaction(false));
      Ddl ddl(&impl, nullptr);
      Status status = ddl.VerifyConstraint(table, job->constraint, job->column);
      impl.Rollback();
      CELLAR_TRY(std::move(status));
      JobStepPassed("validated");
      bool changed = false;
      Job done = *job;
      End(&done, JobState::kDone);
      status = Edit(done, [&](catalog::TableDescriptor* next) -> Status {
        changed = next->version != table->version;
        if (changed) return MakeError(Code::kInvalid, "the table has changed");
        const auto is_it = [job](const auto& candidate) {
          return candidate.oid == job->constraint_oid;
        };
        const auto check = std::find_if(next->checks.begin(), next->checks.end(), is_it);
        const auto key = std::find_if(next->foreign_keys.begin(), next->foreign_keys.end(), is_it);
        if (check != next->checks.end()) {
          check->validated = true;
          if (job->column.value != 0) {
            next->checks.erase(check);
            const int at = next->OrdinalOf(job->column);
            if (at < 0) return JobTargetGone(*job);
            next->columns[static_cast<size_t>(at)].not_null = true;
          }
        } else if (key != next->foreign_keys.end()) {
          key->validated = true;
        } else {
          return JobTargetGone(*job);
        }
        return Status();
      });
      if (changed) continue;
      CELLAR_TRY(std::move(status));
      *job = std::move(done);
      JobStepPassed("published");
      return Status();
    }
  };
  Status status = look();
  CloseSession();
  return status;
}

// ---- Taking back
// -----------------------------------------------------------------------------------------

Status JobService::Undo(Job* job) {
  if (!job->detached) CELLAR_TRY(Detach(job));
  return Clear(job);
}

Status JobService::Detach(Job* job) {
  Database::Impl& db = *database_->impl();
  Job next = *job;
  next.detached = true;
  Status status;
  if (db.catalog->Current()->GetTable(job->table) == nullptr) {
    if (db.catalog->Current()->GetDroppedTable(job->table) != nullptr) return JobTableInBin();
    status = Put(next);
  } else {
    status = Edit(next, [job](catalog::TableDescriptor* table) -> Status {
      if (job->kind == JobKind::kBuildIndex) {
        std::erase_if(table->indexes, [job](const catalog::IndexDescriptor& index) {
          return index.id == job->index && index.job == job->id;
        });
      } else if (job->kind == JobKind::kRewrite) {
        if (table->job == job->id) table->job = 0;
      } else if (job->remove_on_failure) {
        const auto is_it = [job](const auto& candidate) {
          return candidate.oid == job->constraint_oid;
        };
        std::erase_if(table->checks, is_it);
        std::erase_if(table->foreign_keys, is_it);
      }
      return Status();
    });
  }
  CELLAR_TRY(std::move(status));
  *job = std::move(next);
  JobStepPassed("detached");
  return Status();
}

// Nobody writes entries of the index, or the log, any more: their commits would depend on a
// descriptor that is not current.
Status JobService::Clear(Job* job) {
  Database::Impl& db = *database_->impl();
  Job next = *job;
  End(&next, job->error.code() == Code::kCancelled ? JobState::kCancelled : JobState::kFailed);
  kv::TransactionOptions options;
  options.unmarked_writes = true;
  std::unique_ptr<kv::Transaction> writer = db.engine->Begin(options);
  catalog::TablePtr table = db.catalog->Current()->GetTable(job->table);
  if (table == nullptr) table = db.catalog->Current()->GetDroppedTable(job->table);
  if (job->kind == JobKind::kBuildIndex && table != nullptr) {
    table::Access access(writer.get(), nullptr, db.tables.get());
    CELLAR_TRY(access.ClearIndex(*table, job->index));
  }
  if (job->kind == JobKind::kRewrite && table != nullptr) {
    CELLAR_TRY_ASSIGN(const catalog::TableDescriptor copy, catalog::DecodeTable(job->copy));
    CELLAR_TRY(table::ClearRewrite(copy, writer.get()));
    next.copy.clear();
  }
  CELLAR_TRY(writer->Put(JobKey(job->id), EncodeJob(next)));
  CELLAR_TRY(writer->Commit().status());
  *job = std::move(next);
  JobStepPassed("cleared");
  return Status();
}

}  // namespace cellar::session
