// Jobs as they are stored.
#include <algorithm>
#include <set>

#include "cellar/codec/key.h"
#include "cellar/codec/sealed.h"
#include "cellar/kv/engine.h"
#include "cellar/session/jobs.h"
#include "proto/job.pb.h"

namespace cellar::session {

namespace {

std::string ProgressKey(uint64_t id, uint32_t number) {
  return codec::SystemKey("job", {id, number});
}

// Smaller than those of progress.
std::string CancelKey(uint64_t id) { return codec::SystemKey("job", {id, 0}); }

Status PutSealed(std::string_view key, std::string_view content, kv::Transaction* transaction) {
  return transaction->Put(key, codec::Seal(key, content));
}

// Adds a record to those of smaller keys.
Status AddRecord(std::string_view key, std::string_view value, std::vector<Job>* jobs) {
  CELLAR_TRY_ASSIGN(const std::string_view bytes, codec::Unseal(key, value));
  CELLAR_TRY_ASSIGN(Job read, DecodeJob(bytes));
  const bool asks = read.kind == JobKind::kCancelRequest;
  if (read.kind != JobKind::kProgress && !asks) {
    jobs->push_back(std::move(read));
    return Status();
  }
  if (jobs->empty() || jobs->back().id != read.id) {
    return CorruptionError("there is {} of job {}, but no record of it",
                           asks ? "a request to cancel" : "progress", read.id);
  }
  Job& job = jobs->back();
  if (asks) {
    job.cancel_requested = true;
    return Status();
  }
  job.storage = read.storage;
  job.position = std::move(read.position);
  job.filled = read.filled;
  job.rows_done = read.rows_done;
  job.copy_rows = read.copy_rows;
  job.progress_records = read.progress_records;
  job.attempts = read.attempts;
  return Status();
}

// Of the key of a record; 0: of none.
uint64_t JobOf(std::string_view key) {
  key.remove_prefix(std::min(key.size(), codec::SystemPrefix("job").size()));
  const Result<uint64_t> id = codec::TakeKeyUint(&key);
  return id.ok() ? *id : 0;
}

// `unreadable`: is told of jobs that have a record that does not read, and that are left out;
// null: such a record is an error.
Result<std::vector<Job>> ReadRecords(kv::Transaction* reader, const codec::KeyRange& range,
                                     std::set<uint64_t>* unreadable) {
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    reader->Scan(range.start, range.end, kv::ScanOptions{}));
  std::vector<Job> jobs;
  kv::Block block;
  while (true) {
    CELLAR_TRY_ASSIGN(bool more, cursor->NextBlock(&block));
    if (!more) return jobs;
    for (size_t i = 0; i < block.size(); ++i) {
      const uint64_t id = JobOf(block.key(i));
      if (unreadable != nullptr && unreadable->contains(id)) continue;
      Status status = AddRecord(block.key(i), block.value(i), &jobs);
      if (unreadable == nullptr || status.code() != Code::kCorruption) {
        CELLAR_TRY(std::move(status));
        continue;
      }
      unreadable->insert(id);
      if (!jobs.empty() && jobs.back().id == id) jobs.pop_back();
    }
  }
}

std::unique_ptr<kv::Transaction> Reader(kv::Engine* engine) {
  kv::TransactionOptions options;
  options.read_only = true;
  return engine->Begin(options);
}

}  // namespace

std::string JobKey(uint64_t id) { return codec::SystemKey("job", {id}); }

Status PutJob(const Job& job, kv::Transaction* transaction) {
  for (uint32_t number = 1; number <= job.progress_records; ++number) {
    CELLAR_TRY(transaction->Delete(ProgressKey(job.id, number)));
  }
  if (job.ended()) CELLAR_TRY(transaction->Delete(CancelKey(job.id)));
  return PutSealed(JobKey(job.id), EncodeJob(job), transaction);
}

Status PutCancelRequest(uint64_t id, kv::Transaction* transaction) {
  Job record;
  record.id = id;
  record.kind = JobKind::kCancelRequest;
  return PutSealed(CancelKey(id), EncodeJob(record), transaction);
}

Status EraseJob(uint64_t id, kv::Transaction* transaction) {
  CELLAR_TRY(transaction->Delete(CancelKey(id)));
  return transaction->Delete(JobKey(id));
}

Status PutProgress(Job* job, kv::Transaction* transaction) {
  Job record;
  record.id = job->id;
  record.kind = JobKind::kProgress;
  record.storage = job->storage;
  record.position = job->position;
  record.filled = job->filled;
  record.rows_done = job->rows_done;
  record.copy_rows = job->copy_rows;
  record.progress_records = ++job->progress_records;
  record.attempts = job->attempts;
  return PutSealed(ProgressKey(job->id, job->progress_records), EncodeJob(record), transaction);
}

std::string EncodeJob(const Job& job) {
  proto::Job out;
  out.set_id(job.id);
  out.set_kind(static_cast<uint32_t>(job.kind));
  out.set_state(static_cast<uint32_t>(job.state));
  out.set_table_id(job.table.value);
  out.set_storage_id(job.storage.value);
  out.set_index_id(job.index.value);
  out.set_replaced_index_id(job.replaces.value);
  out.set_constraint(job.constraint);
  out.set_constraint_oid(job.constraint_oid);
  out.set_column_id(job.column.value);
  out.set_remove_on_failure(job.remove_on_failure);
  out.set_database(job.database);
  out.set_created_by(job.created_by);
  out.set_object(job.object);
  out.set_position(job.position);
  out.set_filled(job.filled);
  out.set_rows_done(job.rows_done);
  out.set_rows_estimated(job.rows_estimated);
  out.set_created_micros(job.created_micros);
  out.set_ended_micros(job.ended_micros);
  out.set_detached(job.detached);
  out.set_copy(job.copy);
  out.set_expression(job.expression);
  out.set_cascade(job.cascade);
  out.set_copy_rows(job.copy_rows);
  out.set_copy_bytes(job.copy_bytes);
  out.set_progress_records(job.progress_records);
  out.set_attempts(job.attempts);
  if (job.state == JobState::kParked) {
    out.set_resume_state(static_cast<uint32_t>(job.resume_state));
    out.set_parked_reason(job.parked_reason);
  }
  for (const auto& [name, value] : job.settings) (*out.mutable_settings())[name] = value;
  if (!job.error.ok()) {
    proto::Job::Error* error = out.mutable_error();
    error->set_code(static_cast<uint32_t>(job.error.code()));
    error->set_sqlstate(std::string(job.error.sqlstate()));
    error->set_message(std::string(job.error.message()));
    error->set_detail(std::string(job.error.detail()));
    error->set_table(std::string(job.error.table_name()));
    error->set_column(std::string(job.error.column_name()));
    error->set_constraint(std::string(job.error.constraint_name()));
  }
  return out.SerializeAsString();
}

Result<Job> DecodeJob(std::string_view bytes) {
  proto::Job in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return CorruptionError("the record of a job does not read");
  }
  const bool parked = in.state() == static_cast<uint32_t>(JobState::kParked);
  if (in.kind() < 1 || in.kind() > 6 || in.state() < 1 || in.state() > 6 ||
      (parked && (in.resume_state() < 1 || in.resume_state() > 2)) ||
      in.error().code() > static_cast<uint32_t>(Code::kInternal)) {
    return CorruptionError("the record of job {} is of an unknown kind or state", in.id());
  }
  Job job;
  job.id = in.id();
  job.kind = static_cast<JobKind>(in.kind());
  job.state = static_cast<JobState>(in.state());
  job.table.value = in.table_id();
  job.storage.value = in.storage_id();
  job.index.value = in.index_id();
  job.replaces.value = in.replaced_index_id();
  job.constraint = in.constraint();
  job.constraint_oid = in.constraint_oid();
  job.column.value = in.column_id();
  job.remove_on_failure = in.remove_on_failure();
  job.database = in.database();
  job.created_by = in.created_by();
  job.object = in.object();
  job.position = in.position();
  job.filled = in.filled();
  job.rows_done = in.rows_done();
  job.rows_estimated = in.rows_estimated();
  job.created_micros = in.created_micros();
  job.ended_micros = in.ended_micros();
  job.detached = in.detached();
  job.copy = in.copy();
  job.expression = in.expression();
  job.cascade = in.cascade();
  job.copy_rows = in.copy_rows();
  job.copy_bytes = in.copy_bytes();
  job.progress_records = in.progress_records();
  job.attempts = in.attempts();
  if (parked) {
    job.resume_state = static_cast<JobState>(in.resume_state());
    job.parked_reason = in.parked_reason();
  }
  for (const auto& [name, value] : in.settings()) job.settings[name] = value;
  if (in.error().code() != 0) {
    Status error(static_cast<Code>(in.error().code()), in.error().message());
    if (!in.error().sqlstate().empty())
      error = std::move(error).WithSqlState(in.error().sqlstate());
    if (!in.error().detail().empty()) error = std::move(error).WithDetail(in.error().detail());
    if (!in.error().table().empty()) error = std::move(error).WithTable("", in.error().table());
    if (!in.error().column().empty()) error = std::move(error).WithColumn(in.error().column());
    if (!in.error().constraint().empty())
      error = std::move(error).WithConstraint(in.error().constraint());
    job.error = std::move(error);
  }
  return job;
}

const char* JobKindName(JobKind kind) {
  switch (kind) {
    case JobKind::kOldBuild:
    case JobKind::kBuildIndex: return "build index";
    case JobKind::kValidate: return "validate constraint";
    case JobKind::kRewrite: return "rewrite table";
    case JobKind::kProgress:
    case JobKind::kCancelRequest: break;
  }
  return "";
}

const char* JobStateName(JobState state) {
  switch (state) {
    case JobState::kRunning: return "running";
    case JobState::kUndoing: return "undoing";
    case JobState::kDone: return "done";
    case JobState::kFailed: return "failed";
    case JobState::kCancelled: return "cancelled";
    case JobState::kParked: return "parked";
  }
  return "";
}

const char* JobStepName(const Job& job) {
  if (job.doing() == JobState::kUndoing) return job.detached ? "clearing" : "detaching";
  if (job.kind == JobKind::kValidate) return "validating";
  if (job.filled) return "catching up";
  return job.kind == JobKind::kRewrite ? "copying" : "filling";
}

Result<std::vector<Job>> ReadJobs(kv::Engine* engine) { return ReadJobs(Reader(engine).get()); }

Result<std::vector<Job>> ReadJobs(kv::Transaction* reader) {
  std::set<uint64_t> unreadable;
  return ReadRecords(reader, codec::PrefixRange(codec::SystemPrefix("job")), &unreadable);
}

Status CheckJobRecords(kv::Transaction* reader, std::vector<std::string>* findings) {
  std::set<uint64_t> unreadable;
  const codec::KeyRange all = codec::PrefixRange(codec::SystemPrefix("job"));
  CELLAR_TRY(ReadRecords(reader, all, &unreadable).status());
  for (const uint64_t id : unreadable) {
    findings->push_back(fmt::format("the record of job {} does not read", id));
  }
  return Status();
}

Result<std::optional<Job>> ReadJob(kv::Engine* engine, uint64_t id) {
  codec::KeyRange range;
  range.start = JobKey(id);
  range.end = JobKey(id + 1);
  CELLAR_TRY_ASSIGN(std::vector<Job> jobs, ReadRecords(Reader(engine).get(), range, nullptr));
  if (jobs.empty()) return std::optional<Job>();
  return std::optional<Job>(std::move(jobs.front()));
}

}  // namespace cellar::session
