// Jobs, usage, checks, sealing.
#include <algorithm>
#include <thread>

#include "cellar/base/sqlstate.h"
#include "cellar/rpc/admin/handlers.h"
#include "cellar/rpc/admin/messages.h"
#include "cellar/rpc/admin/statements.h"
#include "cellar/rpc/wire/convert.h"

namespace cellar::rpc::admin {
namespace {

constexpr int64_t kMicros = 1000000;

void PutTime(const std::optional<std::string>& micros, google::protobuf::Timestamp* time) {
  const int64_t number = NumberOf(micros);
  time->set_seconds(number / kMicros);
  time->set_nanos(static_cast<int32_t>(number % kMicros * 1000));
}

v1::Job::State StateOf(const std::string& name) {
  if (name == "running") return v1::Job::STATE_RUNNING;
  if (name == "undoing") return v1::Job::STATE_UNDOING;
  if (name == "done") return v1::Job::STATE_DONE;
  if (name == "failed") return v1::Job::STATE_FAILED;
  return name == "cancelled" ? v1::Job::STATE_CANCELLED : v1::Job::STATE_UNSPECIFIED;
}

// What the list of jobs tells of an error, "23505: could not create ...".
Status ErrorOf(const std::string& text) {
  constexpr size_t kStateBytes = 5;
  const std::string state = text.substr(0, kStateBytes);
  const std::string message = text.size() > kStateBytes + 2 ? text.substr(kStateBytes + 2) : text;
  const Code code = state.rfind("23", 0) == 0   ? Code::kConstraint
                    : state.rfind("40", 0) == 0 ? Code::kConflict
                    : state.rfind("57", 0) == 0 ? Code::kCancelled
                    : state.rfind("XX", 0) == 0 ? Code::kInternal
                                                : Code::kInvalid;
  return Status(code, message).WithSqlState(state);
}

Status ReadJobs(AdminCall* call, const std::string& where, std::vector<v1::Job>* jobs) {
  CELLAR_TRY_ASSIGN(
      const TextRows rows,
      call->Query("SELECT job, kind, state, step, object, rows_done, rows_estimated, error, "
                  "created_by, (extract(epoch FROM created) * 1000000)::int8, "
                  "(extract(epoch FROM ended) * 1000000)::int8 FROM pg_catalog.cellar_jobs " +
                  where + " ORDER BY job"));
  for (const auto& row : rows) {
    v1::Job& job = jobs->emplace_back();
    job.set_id(static_cast<uint64_t>(NumberOf(row[0])));
    job.set_kind(row[1].value_or(""));
    job.set_state(StateOf(row[2].value_or("")));
    job.set_step(row[3].value_or(""));
    job.set_object(row[4].value_or(""));
    job.set_rows_done(static_cast<uint64_t>(NumberOf(row[5])));
    job.set_rows_estimated(static_cast<uint64_t>(NumberOf(row[6])));
    if (row[7]) PutError(ErrorOf(*row[7]), job.mutable_error());
    job.set_created_by(row[8].value_or(""));
    PutTime(row[9], job.mutable_created());
    if (row[10]) PutTime(row[10], job.mutable_ended());
  }
  return Status();
}

Status ReadJob(AdminCall* call, uint64_t id, v1::Job* answer) {
  std::vector<v1::Job> jobs;
  CELLAR_TRY(ReadJobs(call, fmt::format("WHERE job = {}", static_cast<int64_t>(id)), &jobs));
  if (jobs.empty()) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "job {} does not exist", id);
  }
  *answer = std::move(jobs.front());
  return Status();
}

Result<std::string> CheckSubject(AdminCall* call, const std::string& path) {
  CELLAR_TRY_ASSIGN(const Named named, Resolve(call, path, v1::OBJECT_KIND_UNSPECIFIED));
  if (named.kind == v1::OBJECT_KIND_NAMESPACE && !named.database()) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType,
                    "only tables and children of the root are checked");
  }
  // The catalog is read whole where the session is; the tables are the named database's.
  if (named.database()) CELLAR_TRY(call->Enter(named.place.database));
  return (named.database() ? "DATABASE " : "TABLE ") + named.Name();
}

// A string as the grammar of our own statements reads it: a backslash stands for itself.
std::string PlainLiteral(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

// "checked 1 table, 12 rows: all agree".
uint64_t RowsIn(const std::vector<std::string>& notices) {
  for (const std::string& notice : notices) {
    const size_t end = notice.find(" rows: ");
    if (notice.rfind("checked ", 0) != 0 || end == std::string::npos) continue;
    const size_t start = notice.rfind(' ', end - 1);
    return static_cast<uint64_t>(NumberOf(notice.substr(start + 1, end - start - 1)));
  }
  return 0;
}

}  // namespace

Status GetJob(AdminCall* call, const v1::GetJobRequest& request, v1::Job* answer) {
  constexpr std::chrono::milliseconds kLookEvery{20};
  CELLAR_TRY(call->Enter(""));
  while (true) {
    CELLAR_TRY(ReadJob(call, request.id(), answer));
    const bool ended =
        answer->state() != v1::Job::STATE_RUNNING && answer->state() != v1::Job::STATE_UNDOING;
    if (ended || !request.wait()) return Status();
    if (call->cancelled()) {
      return SqlError(Code::kCancelled, sqlstate::kQueryCanceled,
                      "the call ended before the job did");
    }
    std::this_thread::sleep_for(kLookEvery);
  }
}

Status ListJobs(AdminCall* call, const v1::ListJobsRequest& request, v1::ListJobsResponse* answer) {
  CELLAR_TRY(call->Enter(""));
  std::vector<v1::Job> jobs;
  CELLAR_TRY(ReadJobs(call, "", &jobs));
  for (v1::Job& job : jobs) {
    const bool wanted = request.states().empty() ||
                        std::find(request.states().begin(), request.states().end(), job.state()) !=
                            request.states().end();
    if (wanted) answer->add_jobs()->Swap(&job);
  }
  return Status();
}

Status CancelJob(AdminCall* call, const v1::CancelJobRequest& request, v1::Job* answer) {
  CELLAR_TRY(call->Enter(""));
  CELLAR_TRY(ReadJob(call, request.id(), answer));
  CELLAR_TRY(call->Run(fmt::format("CANCEL JOB {}", request.id())));
  return ReadJob(call, request.id(), answer);
}

Status GetUsage(AdminCall* call, const v1::GetUsageRequest& request, v1::GetUsageResponse* answer) {
  CELLAR_TRY_ASSIGN(const Named named, Resolve(call, request.path(), v1::OBJECT_KIND_UNSPECIFIED));
  CELLAR_TRY(call->Enter(named.place.database));
  std::string path = "/" + named.place.database;
  if (!named.place.schema.empty() && named.place.schema != "public")
    path += "/" + named.place.schema;
  if (!named.place.name.empty()) path += "/" + named.place.name;
  const std::string own = QuoteLiteral(path), below = QuoteLiteral(path + "/");
  std::string where = "object = " + own;
  if (request.recursive()) where += " OR starts_with(object, " + below + ")";
  CELLAR_TRY_ASSIGN(
      const TextRows rows,
      call->Query(
          "SELECT object, kind, state, rows, bytes, disk_bytes, inserted, updated, deleted, "
          "read, bin_rows, bin_bytes, (extract(epoch FROM since) * 1000000)::int8, "
          "array_to_string(options, E'\\n') FROM pg_catalog.cellar_usage "
          "WHERE state <> 'collecting' AND (" +
          where + ") ORDER BY object <> " + own + ", state DESC, object"));
  const auto number = [](const std::optional<std::string>& text) {
    return static_cast<uint64_t>(std::max<int64_t>(0, NumberOf(text)));
  };
  for (const auto& row : rows) {
    v1::Usage* usage = answer->add_usage();
    usage->set_path(row[0].value_or(""));
    usage->set_kind(row[1].value_or("") == "table" ? v1::OBJECT_KIND_TABLE
                                                   : v1::OBJECT_KIND_NAMESPACE);
    usage->set_dropped(row[2].value_or("") != "living");
    usage->set_rows(number(row[3]));
    usage->set_bytes(number(row[4]));
    usage->set_disk_bytes(number(row[5]));
    usage->set_inserted(number(row[6]));
    usage->set_updated(number(row[7]));
    usage->set_deleted(number(row[8]));
    usage->set_read(number(row[9]));
    usage->set_bin_rows(number(row[10]));
    usage->set_bin_bytes(number(row[11]));
    if (row[12]) PutTime(row[12], usage->mutable_since());
    if (row[13]) PutZoneTexts(*row[13], usage->mutable_zone());
  }
  return Status();
}

Status Check(AdminCall* call, const v1::CheckRequest& request,
             const std::function<bool(const v1::CheckFinding&)>& send) {
  CELLAR_TRY_ASSIGN(const std::string subject, CheckSubject(call, request.path()));
  std::string text = (request.repair() ? "REPAIR " : "CHECK ") + subject;
  if (request.depth() != v1::CheckRequest::DEPTH_DEFAULT && request.repair()) {
    return BadRequest("a repair has no depth");
  }
  if (request.depth() == v1::CheckRequest::DEPTH_FAST) text += " FAST";
  if (request.depth() == v1::CheckRequest::DEPTH_FULL) text += " FULL";
  CELLAR_TRY_ASSIGN(const TextRows rows, call->Query(text));
  v1::CheckFinding finding;
  finding.set_rows_read(RowsIn(call->notices()));
  for (const auto& row : rows) {
    finding.set_object(row[0].value_or(""));
    finding.set_index(row[1].value_or(""));
    finding.set_problem(row[2].value_or(""));
    if (!send(finding)) return Status();
  }
  finding.clear_object();
  finding.clear_index();
  finding.clear_problem();
  (void)send(finding);  // the caller has gone: nobody is left to tell
  return Status();
}

Status Seal(AdminCall* call, const v1::SealRequest& request, v1::Empty*) {
  CELLAR_TRY_ASSIGN(const Place place, RelationPlace(request.table()));
  CELLAR_TRY(call->Enter(place.database));
  return call->Run("ALTER TABLE " + place.Relation() + " SEAL" + (request.full() ? " FULL" : ""));
}

Status CreateBackup(AdminCall* call, const v1::CreateBackupRequest& request, v1::Backup* answer) {
  CELLAR_TRY(call->Enter(""));
  std::string text = "BACKUP STORE TO " + PlainLiteral(request.directory());
  if (request.keep() != 0) text += fmt::format(" WITH (keep = {})", request.keep());
  CELLAR_TRY_ASSIGN(const TextRows rows, call->Query(text));
  if (rows.size() != 1) return InternalError("a backup told nothing of itself");
  answer->set_number(static_cast<uint32_t>(NumberOf(rows[0][0])));
  answer->set_files(static_cast<uint64_t>(NumberOf(rows[0][1])));
  answer->set_bytes(static_cast<uint64_t>(NumberOf(rows[0][2])));
  answer->set_new_bytes(static_cast<uint64_t>(NumberOf(rows[0][3])));
  return Status();
}

}  // namespace cellar::rpc::admin
