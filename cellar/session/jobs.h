// Changes of the schema that take long, as jobs: records in the store, and the thread that works on
// them while the store is open (docs/decisions/0014-jobs.md). Private to this layer and its tests.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cellar/base/cancel.h"
#include "cellar/base/status.h"
#include "cellar/catalog/catalog.h"
#include "cellar/kv/doubt.h"
#include "cellar/kv/engine.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {

// Values are persisted. kOldBuild: of a store of an older version; it is not gone on with.
// kProgress and kCancelRequest: not jobs, but what other records say of one.
enum class JobKind : uint8_t {
  kOldBuild = 1,
  kValidate = 2,
  kRewrite = 3,
  kBuildIndex = 4,
  kProgress = 5,
  kCancelRequest = 6
};
// kUndoing: it has failed or was cancelled, and takes back what it made. The next three are final.
// kParked: nobody works on it until somebody says so, because the process has ended each time.
enum class JobState : uint8_t {
  kRunning = 1,
  kUndoing = 2,
  kDone = 3,
  kFailed = 4,
  kCancelled = 5,
  kParked = 6
};

// The record: docs/formats/jobs.md.
struct Job {
  uint64_t id = 0;
  JobKind kind = JobKind::kBuildIndex;
  JobState state = JobState::kRunning;
  catalog::TableId table;
  catalog::TableId storage;  // whose rows a build has read; a TRUNCATE changes the table's
  catalog::IndexId index;
  catalog::IndexId replaces;  // of a build by REINDEX: the index that goes when this one is ready
  std::string constraint;
  uint32_t constraint_oid = 0;
  catalog::ColumnId column;
  bool remove_on_failure = false;
  std::string database, created_by, object;
  std::string position;
  bool filled = false;
  uint64_t rows_done = 0, rows_estimated = 0;
  int64_t created_micros = 0, ended_micros = 0;
  bool detached = false;
  std::string copy, expression;
  bool cascade = false;  // of a rewrite: foreign keys that need a key which goes, go too
  int64_t copy_rows = 0, copy_bytes = 0;
  uint32_t progress_records = 0;  // whose numbers were used
  std::map<std::string, std::string> settings;
  Status error;
  // How often work has begun since the last step that was committed, and not come to rest: more
  // than one means that the process has ended meanwhile.
  uint32_t attempts = 0;
  JobState resume_state = JobState::kRunning;  // of a parked job: what it goes on with
  std::string parked_reason;
  bool cancel_requested = false;  // there is such a record

  bool ended() const { return state >= JobState::kDone && state <= JobState::kCancelled; }
  // What it does, or would do if it were not parked.
  JobState doing() const { return state == JobState::kParked ? resume_state : state; }
};

// job_records.cc
std::string JobKey(uint64_t id);
std::string EncodeJob(const Job& job);
// Puts the job's record. Progress that was put before goes.
Status PutJob(const Job& job, kv::Transaction* transaction);
Status PutCancelRequest(uint64_t id, kv::Transaction* transaction);
// What is stored about a job, for good.
Status EraseJob(uint64_t id, kv::Transaction* transaction);
// Puts how far a build is, under a key that was never used: a commit of files alone, all of whose
// keys are new, waits for nothing in memory to be written down.
Status PutProgress(Job* job, kv::Transaction* transaction);
Result<Job> DecodeJob(std::string_view bytes);  // kCorruption
const char* JobKindName(JobKind kind);
const char* JobStateName(JobState state);
const char* JobStepName(const Job& job);
// By id.
// Those whose records do not read are left out; CheckJobRecords tells them, in words.
Result<std::vector<Job>> ReadJobs(kv::Engine* engine);
Result<std::vector<Job>> ReadJobs(kv::Transaction* reader);
Status CheckJobRecords(kv::Transaction* reader, std::vector<std::string>* findings);
// nullopt: there is none.
Result<std::optional<Job>> ReadJob(kv::Engine* engine, uint64_t id);

// Errors of jobs. The table is in the bin, and its job waits there too; what it works on is gone.
Status JobTableInBin();
Status JobTargetGone(const Job& job);
Status CancelledJob();
// For tests (JobService::SetHook).
void JobStepPassed(std::string_view step);

// CANCEL JOB, RESUME JOB.
// Its maker, the owner of its table, and superusers may see and cancel a job.
bool MaySee(Session::Impl& session, const Job& job);
Status RunCancelJob(Session::Impl* session, const ast::OwnStmt& statement);
Status RunResumeJob(Session::Impl* session, const ast::OwnStmt& statement);

// Thread-safe.
class JobService {
 public:
  // The database outlives it.
  explicit JobService(Database* database) : database_(database) {}
  ~JobService() { Stop(); }
  JobService(const JobService&) = delete;
  JobService& operator=(const JobService&) = delete;

  // That of an open database; null: it is open for reading only.
  static JobService* Of(const Database::Impl* database);
  static void Open(Database* database);
  // Waits for the running step.
  static void Close(const Database::Impl* database);

  // Goes on with all jobs that have not ended.
  void Start();
  // Jobs stay as they are. No Start after it.
  void Stop();
  // After the commit of a new job.
  void Wake();
  // After one of unknown outcome, which may turn out to be there.
  void NoteUnknown();
  // Until the job has ended; its error, if it has one. When `cancel` is asked to stop, the job is
  // cancelled, unless it is because of the shutdown.
  Status Wait(uint64_t id, const CancelToken* cancel);
  // Asks for the end of a job, durably; a parked one is worked on again for that. Errors: 42704
  // unknown, 55000 ended already.
  Status Cancel(uint64_t id);
  // A parked job is worked on again. Errors: 42704 unknown, 55000 not parked.
  Status Resume(uint64_t id);
  // Whether jobs run (DatabaseOptions::run_jobs).
  bool running() const { return runs_; }

  // Tests only: called after each commit of a job, with the step's name.
  static void SetHook(std::function<void(std::string_view)> hook);

 private:
  using Clock = std::chrono::steady_clock;

  void Run();
  // Works on one job until it has ended, or cannot go on now.
  void Work(Job job);
  Status Go(Job* job);
  Status Build(Job* job);
  // Before work on a job begins: says so in its record, or parks the job if the process has ended
  // kMostAttempts times since its last step. False: it is parked.
  Result<bool> NoteAttempt(Job* job);
  // Work on the job came to rest: the process did not end.
  void NoteRest(Job* job);
  // Changes the record of a job in one commit, again after conflicts. `change` says what becomes of
  // what is stored now.
  Status ChangeRecord(uint64_t id, const std::function<Status(Job*, kv::Transaction*)>& change);
  // Those of an older version end before anybody writes.
  Status EndOldBuilds();
  bool InDoubt();
  bool IsUnreadableTable(const Job& job) const;
  // What builds and rewrites have in common: steps until all rows are read, more of them until
  // writers leave little, and the last one. `step`: one commit, which adds rows to what is made.
  struct StepSize {
    uint64_t max_rows = 0;
    bool finish = false;  // what is made is in use with it, unless a writer has come
  };
  struct StepPlan {
    const char* name;   // of the steps that read rows
    uint64_t rows = 0;  // of each; 0: as JobPace says
    std::function<Status(StepSize, uint64_t* changes)> step;
  };
  Status TakeSteps(Job* job, const StepPlan& plan);
  // One commit. With two threads a duplicate may be none.
  Status BuildStep(const catalog::TablePtr& table, StepSize size, int threads, Job* job,
                   uint64_t* changes);
  Status Validate(Job* job);
  // As the job's creator. CANCEL JOB reaches it until CloseSession.
  struct JobSession {
    std::unique_ptr<Session> session;
    Statement statement;
    std::optional<StatementScope> running;
  };
  Result<std::unique_ptr<JobSession>> OpenSession(const Job& job,
                                                  std::map<std::string, std::string> settings);
  void CloseSession();
  // rewrite_job.cc
  Status Rewrite(Job* job);
  Status RewriteIn(Session::Impl* session, Job* job);
  // One commit. `finish`: the table becomes its copy in it, unless a writer has come.
  Status RewriteStep(Session::Impl* session, const catalog::TablePtr& table,
                     const catalog::TablePtr& copy, uint64_t max_rows, bool finish, Job* job,
                     uint64_t* changes);
  Status Undo(Job* job);
  Status Detach(Job* job);
  Status Clear(Job* job);
  // One commit: `change` edits the table's descriptor, and the record becomes `job`. Conflicts are
  // tried again.
  using Change = std::function<Status(catalog::TableDescriptor*, catalog::CatalogEditor*)>;
  Status Edit(const Job& job, const Change& change);
  // The sequences of columns that only the copy has, as they are now.
  std::vector<catalog::TablePtr> OwnSequences(const Job& job);
  // One commit, with the record.
  Status RemoveSequences(const std::vector<catalog::TablePtr>& sequences, const Job& job);
  Status Put(const Job& job);
  void End(Job* job, JobState state);
  void Forget();
  // False when the service stops, or the running job is cancelled.
  bool Rest(Clock::duration duration);

  Database* database_;
  bool runs_ = false;   // Start was called
  CancelToken cancel_;  // of what is running
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  bool stopping_ = false, woken_ = false;
  uint64_t running_ = 0;
  Session* session_ = nullptr;  // in which the running job evaluates
  std::set<uint64_t> cancelled_;
  std::thread thread_;
  std::map<uint64_t, Clock::time_point> not_before_;  // of the thread only
  kv::Doubt doubt_;                                   // of new jobs and of steps
  // Why jobs do not go on, where the store takes no writes; guarded by mutex_.
  std::map<uint64_t, Status> refused_;
};

}  // namespace cellar::session
