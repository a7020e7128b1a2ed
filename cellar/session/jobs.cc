#include "cellar/session/jobs.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cellar/base/memory_account.h"
#include "cellar/base/sqlstate.h"
#include "cellar/catalog/unreadable.h"
#include "cellar/codec/key.h"
#include "cellar/session/ddl.h"
#include "cellar/session/job_pace.h"
#include "cellar/session/session_internal.h"
#include "cellar/table/backfill.h"
#include "cellar/table/change_log.h"
#include "cellar/table/rewrite.h"
#include "cellar/table/usage.h"

namespace cellar::session {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstBackOff{1};
// How often a small commit that meets a conflict is tried again.
constexpr int kMaxConflicts = 1000;
// Steps that catch up with writers before the end is tried, unless one has found few changes.
constexpr int kMostRounds = 20;
constexpr uint64_t kFewChanges = 64;
// So often the end is tried beside writers; then they wait for it.
constexpr int kTriesBesideWriters = 5;
// So often without letting them go: those that were under way come to their end meanwhile.
constexpr int kTriesInPause = 3;
// How long a writer waits at most; after so many pauses twice as long each time, up to the second:
// then the machine is so busy that a step takes longer.
constexpr milliseconds kPause{100};
constexpr int kPausesOfOneLength = 5;
constexpr milliseconds kLongestPause{2000};
constexpr milliseconds kBetweenTries{1};
// That an index build reads at once, unless it is interrupted.
constexpr uint64_t kRowsOfBuildStep = uint64_t{4} << 20;
constexpr milliseconds kTellEvery{500};  // how far a long step is
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

// No room, or the disk fails: whoever waits for the job would wait for whoever looks after the
// disk.
bool IsRefusedByStore(const Status& status) {
  return status.sqlstate() == sqlstate::kDiskFull || status.sqlstate() == sqlstate::kIoError ||
         status.code() == Code::kCommitUnknown;
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
  if (database->impl()->options.run_jobs) {
    (void)service->EndOldBuilds();  // what does not end now fails when its turn comes
    service->Start();
  }
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
  runs_ = true;
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

void JobService::NoteUnknown() {
  doubt_.Note(database_->impl()->engine.get());
  Wake();
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
    if (const auto refused = refused_.find(id); refused != refused_.end()) {
      // Nor can it be taken back now.
      return SqlError(Code::kCommitUnknown, sqlstate::kStatementCompletionUnknown,
                      "the change is not done yet: {}", refused->second.message())
          .WithDetail(std::string(refused->second.detail()))
          .WithHint(fmt::format("Job {} goes on by itself once the store takes writes again; "
                                "CANCEL JOB {} takes the change back.",
                                id, id));
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
    const bool in_doubt = InDoubt();
    Result<std::vector<Job>> jobs = ReadJobs(database_->impl()->engine.get());
    bool left = !jobs.ok() || in_doubt;
    if (jobs.ok() && !in_doubt) {
      for (Job& job : *jobs) {
        if (job.ended() || job.state == JobState::kParked || IsUnreadableTable(job)) continue;
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

// Whether a step may be done or not: doing it once more would count its rows twice. Nor is it known
// then whether there are new jobs.
bool JobService::InDoubt() {
  kv::Engine* engine = database_->impl()->engine.get();
  if (!doubt_.any() || doubt_.Settle(engine)) return false;
  (void)engine->Sync();  // other commits may be long in coming
  return !doubt_.Settle(engine) && doubt_.any();
}

// Then the job rests: nothing is known of what it would change.
bool JobService::IsUnreadableTable(const Job& job) const {
  return catalog::IsUnreadable(*database_->impl()->catalog->Current(), job.table.value);
}

void JobService::Work(Job job) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    running_ = job.id;
    cancel_.Clear();
    if (job.cancel_requested) cancelled_.insert(job.id);
    if (cancelled_.contains(job.id)) cancel_.Cancel(CancelToken::Reason::kUser);
  }
  const uint64_t id = job.id;
  Status status = CatchOutOfMemory([&] {
    // What a step holds counts, and is bounded by the step itself.
    const MemoryAccountPtr memory = MemoryAccount::Make(MemoryAccount::Process(), "job",
                                                        "--memory-mb", MemoryAccount::kNoLimit);
    const MemoryScope scope(memory.get());
    return Go(&job);
  });
  if (!status.ok()) NoteRest(&job);
  std::lock_guard lock(mutex_);
  running_ = 0;
  if (status.ok()) {
    cancelled_.erase(id);
    not_before_.erase(id);
  } else {
    not_before_[id] = Clock::now() + kLater;
  }
  if (status.code() == Code::kCommitUnknown) doubt_.Note(database_->impl()->engine.get());
  refused_.erase(id);
  if (IsRefusedByStore(status)) refused_[id] = std::move(status);
  changed_.notify_all();
}

// Not OK: the job waits for a better time.
Status JobService::Go(Job* job) {
  Database::Impl& db = *database_->impl();
  const catalog::SnapshotPtr now = db.catalog->Current();
  const bool needs_table = job->state == JobState::kRunning || !job->detached;
  if (needs_table && now->GetTable(job->table) == nullptr &&
      now->GetDroppedTable(job->table) != nullptr) {
    return JobTableInBin();
  }
  CELLAR_TRY_ASSIGN(const bool may_work, NoteAttempt(job));
  if (!may_work) return Status();
  JobStepPassed("begun");
  if (job->state == JobState::kRunning) {
    Status status;
    if (db.catalog->Current()->GetTable(job->table) == nullptr) {
      if (db.catalog->Current()->GetDroppedTable(job->table) != nullptr) return JobTableInBin();
      status = JobTargetGone(*job);
    } else if (status = cancel_.Check(); status.ok()) {
      switch (job->kind) {
        case JobKind::kOldBuild: status = CancelledJob(); break;
        case JobKind::kBuildIndex: status = Build(job); break;
        case JobKind::kValidate: status = Validate(job); break;
        case JobKind::kRewrite: status = Rewrite(job); break;
        case JobKind::kProgress:
        case JobKind::kCancelRequest: break;
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
  if (undone.ok()) Forget();
  return undone;
}

Status JobService::Put(const Job& job) {
  std::unique_ptr<kv::Transaction> writer = database_->impl()->engine->Begin();
  CELLAR_TRY(PutJob(job, writer.get()));
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
    if (!EraseJob((*jobs)[i].id, writer.get()).ok()) return;
  }
  (void)writer->Commit();
}

Status JobService::Edit(const Job& job, const Change& change) {
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
      CELLAR_TRY(change(&next, &editor));
      CELLAR_TRY(editor.UpdateTable(std::move(next)).status());
      CELLAR_TRY(PutJob(job, writer.get()));
      return db.catalog->Commit(editor).status();
    };
    Status status = once();
    if (status.code() != Code::kConflict || conflicts >= kMaxConflicts) return status;
    if (!Rest(kFirstBackOff)) return status;
  }
}

// ---- Steps

Status JobService::TakeSteps(Job* job, const StepPlan& plan) {
  Database::Impl& db = *database_->impl();
  uint64_t changes = 0;
  // Only a change of the descriptor refuses a step.
  const auto step_again = [&](uint64_t max_rows) -> Status {
    for (int tries = 0;; ++tries) {
      CELLAR_TRY(cancel_.Check());
      Status status = plan.step({max_rows, false}, &changes);
      if (status.code() != Code::kConflict || tries >= kMaxConflicts) return status;
      if (!Rest(kBetweenTries)) return CancelledJob();
    }
  };
  JobPace pace(db.engine.get());
  for (int tries = 0;; ++tries) {
    // Again, when a TRUNCATE has come.
    while (!job->filled) {
      pace.Begin();
      CELLAR_TRY(step_again(plan.rows != 0 ? plan.rows : pace.rows()));
      JobStepPassed(plan.name);
      const Clock::duration rest = pace.End();
      if (!Rest(plan.rows != 0 ? Clock::duration::zero() : rest)) return CancelledJob();
    }
    for (int round = 0; round < (tries == 0 ? kMostRounds : 1); ++round) {
      CELLAR_TRY(step_again(0));
      JobStepPassed("caught up");
      if (changes <= kFewChanges) break;
    }
    if (!job->filled) continue;
    CELLAR_TRY(cancel_.Check());
    std::optional<table::WriterPause> pause;
    const catalog::TablePtr table = db.catalog->Current()->GetTable(job->table);
    if (tries >= kTriesBesideWriters && table != nullptr) {
      const int doublings = tries - kTriesBesideWriters - kPausesOfOneLength;
      const milliseconds longest = kPause * (1 << std::clamp(doublings, 0, 10));
      pause.emplace(db.tables.get(), table->storage_id(), std::min(longest, kLongestPause));
      // Those that did not meet it commit meanwhile.
      if (!Rest(kBetweenTries)) return CancelledJob();
    }
    Status status = plan.step({0, true}, &changes);
    for (int again = 1; pause.has_value() && again < kTriesInPause; ++again) {
      if (status.code() != Code::kConflict) break;
      status = plan.step({0, true}, &changes);
    }
    if (status.ok()) {
      JobStepPassed("published");
      return Status();
    }
    if (status.code() != Code::kConflict || tries >= kMaxConflicts) return status;
    pause.reset();
    if (!Rest(kBetweenTries)) return CancelledJob();
  }
}

// ---- Building an index

namespace {

Status PublishIndex(const Job& job, catalog::TableDescriptor* table) {
  const auto find = [table](catalog::IndexId id) {
    return std::find_if(table->indexes.begin(), table->indexes.end(),
                        [id](const catalog::IndexDescriptor& index) { return index.id == id; });
  };
  const auto built = find(job.index);
  if (built == table->indexes.end()) return JobTargetGone(job);
  built->state = catalog::IndexState::kPublic;
  built->job = 0;
  if (job.replaces.value == 0) return Status();
  const auto old = find(job.replaces);
  if (old == table->indexes.end()) return JobTargetGone(job);
  // To everybody it is the same index still.
  built->name = old->name;
  built->oid = old->oid;
  built->constraint = old->constraint;
  built->deferrable = old->deferrable;
  built->comment = old->comment;
  built->constraint_comment = old->constraint_comment;
  std::swap(*built, *old);
  table->indexes.erase(built);
  return Status();
}

}  // namespace

Status JobService::BuildStep(const catalog::TablePtr& table, StepSize size, int threads, Job* job,
                             uint64_t* changes) {
  const auto [max_rows, finish] = size;
  Database::Impl& db = *database_->impl();
  Job next = *job;
  if (job->storage != table->storage_id()) {
    // A TRUNCATE has come; the index is as empty as the table was then.
    next.storage = table->storage_id();
    next.position.clear();
    next.filled = false;
    next.copy_rows = 0;
  }
  kv::TransactionOptions options;
  options.isolation = kv::Isolation::kSnapshot;
  options.bulk = true;
  options.unmarked_writes = !finish;  // nobody reads what they change
  const std::unique_ptr<kv::Transaction> transaction = db.engine->Begin(options);
  CELLAR_TRY(catalog::RequireCurrent(*table, transaction.get()));
  const table::BackfillContext in{transaction.get(), &cancel_, db.tables.get(),
                                  threads == 1 ? nullptr : db.engine.get()};
  table::BuildProgress progress;
  progress.position = next.position;
  progress.done = next.filled;
  progress.entries = next.copy_rows;
  progress.rows = next.rows_done;
  Clock::time_point told = Clock::now();
  const auto tell = [&](uint64_t rows) -> Status {
    if (Clock::now() - told < kTellEvery) return Status();
    Job so_far = *job;
    so_far.rows_done = rows;
    CELLAR_TRY(Put(so_far));
    told = Clock::now();
    return Status();
  };
  CELLAR_TRY(table::BuildSome(in, table, job->index, max_rows, tell, &progress));
  next.position = progress.position;
  next.filled = progress.done;
  next.copy_rows = progress.entries;
  next.rows_done = progress.rows;
  next.attempts = 1;
  *changes = progress.changes;
  catalog::CatalogEditor editor(db.catalog.get(), transaction.get());
  if (finish) {
    if (!next.filled) return MakeError(Code::kConflict, "the table was truncated");
    CELLAR_TRY(table::FinishBuild(in, *table, job->index, progress));
    catalog::TableDescriptor changed = *table;
    CELLAR_TRY(PublishIndex(*job, &changed));
    if (job->replaces.value != 0) {
      table::Access access(transaction.get(), &cancel_, db.tables.get());
      CELLAR_TRY(access.ClearIndex(*table, job->replaces));
    }
    CELLAR_TRY(editor.UpdateTable(std::move(changed)).status());
    End(&next, JobState::kDone);
  }
  CELLAR_TRY(max_rows == 0 ? PutJob(next, transaction.get())
                           : PutProgress(&next, transaction.get()));
  const Result<uint64_t> version = db.catalog->Commit(editor);
  if (version.status().code() == Code::kConstraint && !transaction->duplicate_key().empty()) {
    return table::BuildDuplicate(*table, job->index, transaction->duplicate_key());
  }
  CELLAR_TRY(version.status());
  *job = std::move(next);
  return Status();
}

Status JobService::Build(Job* job) {
  Database::Impl& db = *database_->impl();
  return TakeSteps(
      job, {"filled some", kRowsOfBuildStep, [&](StepSize size, uint64_t* changes) -> Status {
              const catalog::TablePtr table = db.catalog->Current()->GetTable(job->table);
              if (table == nullptr) return JobTableInBin();
              if (table->FindIndex(job->index) == nullptr ||
                  (job->replaces.value != 0 && table->FindIndex(job->replaces) == nullptr)) {
                return JobTargetGone(*job);
              }
              Status status = BuildStep(table, size, 2, job, changes);
              if (status.code() != Code::kConstraint || size.max_rows == 0) return status;
              return BuildStep(table, size, 1, job, changes);  // perhaps it is none
            }});
}

Status JobService::EndOldBuilds() {
  CELLAR_TRY_ASSIGN(std::vector<Job> jobs, ReadJobs(database_->impl()->engine.get()));
  for (Job& job : jobs) {
    if (job.kind != JobKind::kOldBuild || job.ended() || job.detached) continue;
    if (IsUnreadableTable(job)) continue;
    job.state = JobState::kUndoing;
    job.error = SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                         "{} was being built by another version", job.object);
    CELLAR_TRY(Detach(&job));
  }
  return Status();
}

// ---- Sessions

Result<std::unique_ptr<JobService::JobSession>> JobService::OpenSession(
    const Job& job, std::map<std::string, std::string> settings) {
  SessionOptions options;
  options.user = job.created_by;
  options.database = job.database;
  options.of_job = true;
  for (auto& [name, value] : settings) options.settings.emplace_back(name, std::move(value));
  // Limits of its creator's statements are none of a job's.
  options.settings.emplace_back("statement_timeout", "0");
  auto made = std::make_unique<JobSession>();
  CELLAR_TRY_ASSIGN(made->session, Session::Open(database_, options));
  Session* session = made->session.get();
  made->statement.text = JobKindName(job.kind);
  made->running.emplace(session->impl(), &made->statement, nullptr);
  std::lock_guard lock(mutex_);
  session_ = session;
  if (stopping_) session_->Cancel(true);
  if (cancelled_.contains(job.id)) session_->Cancel(false);
  return made;
}

void JobService::CloseSession() {
  std::lock_guard lock(mutex_);
  session_ = nullptr;
}

// ---- Validating a constraint
// -----------------------------------------------------------------------------

Status JobService::Validate(Job* job) {
  Database::Impl& db = *database_->impl();
  CELLAR_TRY_ASSIGN(const std::unique_ptr<JobSession> opened,
                    OpenSession(*job, {{"default_transaction_isolation", "repeatable read"},
                                       {"default_transaction_read_only", "on"}}));
  const auto look = [&]() -> Status {
    while (true) {
      const catalog::TablePtr table = db.catalog->Current()->GetTable(job->table);
      if (table == nullptr) return JobTableInBin();
      // The snapshot is younger than the descriptor: all rows that are newer keep the constraint.
      Session::Impl& impl = *opened->session->impl();
      CELLAR_TRY(impl.EnsureTransaction(false));
      Ddl ddl(&impl, nullptr);
      Status status = ddl.VerifyConstraint(table, job->constraint, job->column);
      impl.Rollback();
      CELLAR_TRY(std::move(status));
      JobStepPassed("validated");
      bool changed = false;
      Job done = *job;
      End(&done, JobState::kDone);
      status = Edit(done, [&](catalog::TableDescriptor* next, catalog::CatalogEditor*) -> Status {
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

std::vector<catalog::TablePtr> JobService::OwnSequences(const Job& job) {
  std::vector<catalog::TablePtr> found;
  if (job.kind != JobKind::kRewrite || job.copy.empty()) return found;
  const Result<catalog::TableDescriptor> copy = catalog::DecodeTable(job.copy);
  if (!copy.ok()) return found;
  const catalog::SnapshotPtr catalog = database_->impl()->catalog->Current();
  for (const catalog::ColumnDescriptor& column : copy->columns) {
    const catalog::TablePtr sequence = catalog->GetTable(column.sequence);
    // Those of other columns are owned already.
    if (sequence == nullptr || column.dropped || sequence->sequence.owner_table.value != 0)
      continue;
    found.push_back(sequence);
  }
  return found;
}

Status JobService::RemoveSequences(const std::vector<catalog::TablePtr>& sequences,
                                   const Job& job) {
  Database::Impl& db = *database_->impl();
  const std::unique_ptr<kv::Transaction> writer = db.engine->Begin();
  catalog::CatalogEditor editor(db.catalog.get(), writer.get());
  for (const catalog::TablePtr& sequence : sequences) {
    CELLAR_TRY(editor.RemoveTable(sequence->id));
  }
  CELLAR_TRY(PutJob(job, writer.get()));
  return db.catalog->Commit(editor).status();
}

Status JobService::Detach(Job* job) {
  Database::Impl& db = *database_->impl();
  Job next = *job;
  next.detached = true;
  next.attempts = 1;
  const std::vector<catalog::TablePtr> own = OwnSequences(*job);
  Status status;
  if (db.catalog->Current()->GetTable(job->table) == nullptr) {
    if (db.catalog->Current()->GetDroppedTable(job->table) != nullptr) return JobTableInBin();
    // It was purged; what it would have had stands beside it.
    status = RemoveSequences(own, next);
  } else {
    status =
        Edit(next, [&](catalog::TableDescriptor* table, catalog::CatalogEditor* editor) -> Status {
          if (job->kind == JobKind::kBuildIndex || job->kind == JobKind::kOldBuild) {
            std::erase_if(table->indexes, [job](const catalog::IndexDescriptor& index) {
              return index.id == job->index && index.job == job->id;
            });
          } else if (job->kind == JobKind::kRewrite) {
            if (table->job == job->id) table->job = 0;
            for (const catalog::TablePtr& sequence : own) {
              if (editor->snapshot()->GetTable(sequence->id) == nullptr) continue;
              CELLAR_TRY(editor->RemoveTable(sequence->id));
            }
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
  for (const catalog::TablePtr& sequence : own) db.sequences->Remove(sequence->storage_id());
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
    CELLAR_TRY(table::ClearBuild(*table, job->index, writer.get()));
  }
  if (job->kind == JobKind::kOldBuild && table != nullptr) {
    table::Access access(writer.get(), nullptr, db.tables.get());
    CELLAR_TRY(access.ClearIndex(*table, job->index));
  }
  if (job->kind == JobKind::kRewrite && table != nullptr) {
    CELLAR_TRY_ASSIGN(const catalog::TableDescriptor copy, catalog::DecodeTable(job->copy));
    CELLAR_TRY(table::ClearRewrite(copy, writer.get()));
    next.copy.clear();
  }
  CELLAR_TRY(PutJob(next, writer.get()));
  CELLAR_TRY(writer->Commit().status());
  *job = std::move(next);
  JobStepPassed("cleared");
  return Status();
}

}  // namespace cellar::session
