#include "cellar/session/sealing.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cellar/base/memory_account.h"
#include "cellar/base/sqlstate.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookEvery{200};
// A table that does not change is looked at less and less often: 200 ms << 5.
constexpr int kMaxQuietLooks = 5;
// Fewer unsealed rows than this, or than one in kShareOfRows, stay where they are.
constexpr uint64_t kFewRows = 1000, kShareOfRows = 50;
constexpr uint64_t kFewBytes = 64 << 10, kShareOfBytes = 33;
// How often a step gives way to users before the table is left for the next look.
constexpr int kMaxConflicts = 6;
constexpr milliseconds kFirstBackOff{10};
// After a commit, under SealMode::kAlways.
constexpr int kMaxConflictsAlways = 20;

void LogProblem(const catalog::TableDescriptor& table, const Status& status) {
  std::fprintf(stderr, "cellar: sealing table \"%s\" failed: %s\n", table.name.c_str(),
               status.ToString().c_str());
}

bool IsPaged(const catalog::TableDescriptor& table) {
  return table.kind == catalog::RelationKind::kTable && table.layout == catalog::Layout::kPages;
}

}  // namespace

Result<SealMode> ParseSealMode(std::string_view name) {
  if (name == "auto") return SealMode::kAuto;
  if (name == "off") return SealMode::kOff;
  if (name == "always") return SealMode::kAlways;
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                  "invalid value for option \"seal\": {}", name)
      .WithDetail("Valid values are \"auto\", \"off\" and \"always\".");
}

uint64_t SealAllowance(const table::StorageState& state) {
  return std::max(kFewBytes, state.page_bytes / kShareOfBytes);
}

bool SealIsDue(const table::StorageState& state, uint64_t left_bytes) {
  return state.changes > std::max(kFewRows, state.page_rows / kShareOfRows) ||
         state.delta_bytes > left_bytes + SealAllowance(state);
}

void SealService::Start() {
  // Signals are for the threads of whoever opened the store.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void SealService::Stop() {
  std::thread ending;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    ending = std::move(thread_);
  }
  changed_.notify_all();
  if (ending.joinable()) ending.join();
}

void SealService::Pause() {
  std::lock_guard lock(mutex_);
  ++pauses_;
}

void SealService::Resume() {
  std::lock_guard lock(mutex_);
  --pauses_;
}

bool SealService::Wait(Clock::duration duration) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, duration, [this] { return stopping_; });
  return !stopping_ && pauses_ == 0;
}

void SealService::Run() {
  while (true) {
    if (Wait(kLookEvery)) LookAtAll();
    std::lock_guard lock(mutex_);
    if (stopping_) return;
  }
}

void SealService::LookAtAll() {
  ++round_;
  for (const catalog::TablePtr& table : catalog_->Current()->ListAllTables()) {
    if (!IsPaged(*table)) continue;
    Watch& watch = watches_[table->storage_id().value];
    watch.seen_in = round_;
    if (Clock::now() < watch.next_look) continue;
    Look(table, &watch);
    if (!Wait(Clock::duration::zero())) return;
  }
  std::erase_if(watches_, [this](const auto& entry) { return entry.second.seen_in != round_; });
}

void SealService::Look(const catalog::TablePtr& table, Watch* watch) {
  auto look = [&]() -> Status {
    CELLAR_TRY_ASSIGN(table::StorageState state, sealer_->StateOf(table));
    // What is deleted stays on disk until the engine compacts it.
    watch->left_bytes = std::min(watch->left_bytes, state.delta_bytes);
    watch->quiet_looks =
        state.changes != watch->seen_changes ? 0 : std::min(watch->quiet_looks + 1, kMaxQuietLooks);
    watch->seen_changes = state.changes;
    watch->next_look = Clock::now() + kLookEvery * (1 << watch->quiet_looks);
    if (!SealIsDue(state, watch->left_bytes)) return Status();
    CELLAR_TRY(Seal(table));
    CELLAR_TRY_ASSIGN(state, sealer_->StateOf(table));
    watch->left_bytes = state.delta_bytes;
    watch->seen_changes = state.changes;
    return Status();
  };
  Status status = CatchOutOfMemory(look);
  // A schema that has changed comes as a conflict: the next look has the new one.
  if (status.ok() || status.code() == Code::kConflict) return;
  watch->quiet_looks = kMaxQuietLooks;
  watch->next_look = Clock::now() + kLookEvery * (1 << kMaxQuietLooks);
  if (!std::exchange(watch->reported, true)) LogProblem(*table, status);
}

// Works at most half of the time.
Status SealService::Seal(const catalog::TablePtr& table) {
  std::string position;
  Clock::duration back_off = kFirstBackOff;
  for (int conflicts = 0; conflicts < kMaxConflicts;) {
    const Clock::time_point start = Clock::now();
    CELLAR_TRY_ASSIGN(const table::SealStep step, sealer_->Step(table, {}, &position));
    if (step.done) return Status();
    Clock::duration rest = Clock::now() - start;
    if (step.conflict) {
      ++conflicts;
      rest = back_off;
      back_off *= 2;
    } else {
      conflicts = 0;
      back_off = kFirstBackOff;
      const uint64_t rate = rate_.load(std::memory_order_relaxed);
      if (rate > 0) {
        rest = std::max<Clock::duration>(rest, milliseconds(step.bytes * 1000 / rate));
      }
    }
    if (!Wait(rest)) return Status();
  }
  return Status();
}

// ---- What statements ask for
// ------------------------------------------------------------------------------

namespace {

Status BusyError(const catalog::TableDescriptor& table) {
  return SqlError(Code::kUnavailable, sqlstate::kLockNotAvailable,
                  "table \"{}\" could not be sealed: other transactions keep writing to it",
                  table.name);
}

}  // namespace

Status Session::Impl::SealTables(const std::vector<catalog::TablePtr>& tables, bool repack) {
  if (db->options.read_only) {
    return SqlError(Code::kInvalid, sqlstate::kReadOnlySqlTransaction,
                    "cannot seal tables of a store that is open for reading only");
  }
  table::SealOptions seal;
  seal.repack = repack;
  for (const catalog::TablePtr& table : tables) {
    if (!IsPaged(*table)) continue;
    CELLAR_TRY_ASSIGN(const table::SealStep step, db->sealer->SealAll(table, seal, &cancel));
    if (step.conflict) return BusyError(*table);
  }
  return Status();
}

Status Session::Impl::RunSeal(const ast::AlterTableStmt& statement, ResultSink* sink) {
  if (in_block) {
    return SqlError(Code::kInvalid, sqlstate::kActiveSqlTransaction,
                    "ALTER TABLE ... SEAL cannot run inside a transaction block");
  }
  // What earlier statements of the same message did is sealed too.
  CELLAR_TRY(Commit(sink));
  catalog::TablePtr table =
      sql::FindRelation(*CurrentCatalog(), Scope(), statement.table.schema, statement.table.name);
  if (table == nullptr) {
    if (statement.if_exists) {
      return Notify(sink, Severity::kNotice, "00000",
                    fmt::format("relation \"{}\" does not exist, skipping", statement.table.name));
    }
    return SqlError(Code::kNotFound, sqlstate::kUndefinedTable, "relation \"{}\" does not exist",
                    statement.table.name);
  }
  if (table->kind != catalog::RelationKind::kTable) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a table",
                    table->name);
  }
  CELLAR_TRY(CheckOwner(*table));
  if (!IsPaged(*table)) {
    return Notify(sink, Severity::kNotice, "00000",
                  fmt::format("table \"{}\" has layout {}: there is nothing to seal", table->name,
                              LayoutName(table->layout)));
  }
  return SealTables({table}, statement.commands.front().action == "SEAL FULL");
}

void Session::Impl::SealAfterCommit(const std::set<std::pair<uint64_t, uint64_t>>& used) {
  for (const catalog::TablePtr& table : db->catalog->Current()->ListAllTables()) {
    if (!IsPaged(*table)) continue;
    const auto at = used.lower_bound({table->id.value, 0});
    const bool was_used = at != used.end() && at->first == table->id.value;
    if (!was_used && db->sealer->ChangesOf(table) == 0) continue;
    std::string position;
    for (int conflicts = 0; conflicts < kMaxConflictsAlways;) {
      Result<table::SealStep> step = db->sealer->Step(table, {}, &position);
      if (!step.ok()) {
        if (step.status().code() != Code::kConflict) LogProblem(*table, step.status());
        break;
      }
      if (step->done) break;
      conflicts = step->conflict ? conflicts + 1 : 0;
      if (step->conflict) std::this_thread::sleep_for(milliseconds(1));
    }
  }
}

void Session::Impl::FollowSealSettings() {
  const Settings::Hot& hot = settings.hot();
  if (hot.seal_off != pauses_sealing) {
    pauses_sealing = hot.seal_off;
    if (pauses_sealing)
      db->sealing->Pause();
    else
      db->sealing->Resume();
  }
  if (hot.seal_rate_kb != seal_rate_kb) {
    seal_rate_kb = hot.seal_rate_kb;
    db->sealing->set_rate(static_cast<uint64_t>(std::max<int64_t>(0, seal_rate_kb)) * 1024);
  }
}

}  // namespace cellar::session
