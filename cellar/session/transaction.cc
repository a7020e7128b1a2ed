// A session's transaction: begin, commit, rollback, savepoints, and what statements ask of it.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/codec/key.h"
#include "cellar/session/session_internal.h"
#include "cellar/session/still_current.h"
#include "cellar/session/tables_internal.h"

namespace cellar::session {
namespace {

constexpr uint64_t kMostBesideMakingRoom = 256 << 10;  // bytes

std::string_view IsolationName(ast::Isolation isolation) {
  switch (isolation) {
    case ast::Isolation::kReadUncommitted: return "read uncommitted";
    case ast::Isolation::kReadCommitted: return "read committed";
    case ast::Isolation::kRepeatableRead: return "repeatable read";
    default: return "serializable";
  }
}

// REPEATABLE READ is the snapshot alone; READ COMMITTED takes one for each statement.
kv::Isolation KvIsolation(std::string_view name) {
  return name == "serializable" ? kv::Isolation::kSerializable : kv::Isolation::kSnapshot;
}

table::Access::Level AccessLevel(std::string_view name) {
  if (name == "serializable") return table::Access::Level::kSerializable;
  return name == "repeatable read" ? table::Access::Level::kRepeatableRead
                                   : table::Access::Level::kReadCommitted;
}

}  // namespace

Status Session::Impl::RefreshStatementSnapshot() {
  if (transaction == nullptr) return Status();
  const Settings::Hot& hot = settings.hot();
  transaction->access->set_lock_timeouts(std::chrono::milliseconds(hot.lock_timeout_ms),
                                         std::chrono::milliseconds(hot.deadlock_timeout_ms));
  if (!in_block) return Status();
  const std::string& isolation = settings.hot().isolation;
  if (isolation != "read committed" && isolation != "read uncommitted") return Status();
  return transaction->kv->RefreshSnapshot();
}

Status Session::Impl::EnsureTransaction(bool read_only_autocommit) {
  if (transaction != nullptr) return Status();
  if (!in_block) CELLAR_TRY(settings.SetDefaultModes());
  auto begun = std::make_unique<TransactionState>();
  const Settings::Hot& hot = settings.hot();
  kv::TransactionOptions kv_options;
  kv_options.isolation = KvIsolation(hot.isolation);
  begun->read_only = hot.read_only || db->options.read_only;
  kv_options.read_only = begun->read_only || read_only_autocommit;
  kv_options.autocommit = !in_block && read_only_autocommit;
  kv_options.lock_group = static_cast<uint64_t>(pid);
  begun->kv = db->engine->Begin(kv_options);
  begun->access = std::make_unique<table::Access>(begun->kv.get(), &cancel, db->tables.get());
  begun->access->set_format(settings.format());
  begun->access->set_limits(db->quotas->Active());
  begun->access->set_level(AccessLevel(hot.isolation));
  begun->start_micros = NowMicros();
  settings.mutable_format()->now_micros = begun->start_micros;
  transaction = std::move(begun);
  entry->SetTransaction(transaction->start_micros);
  settings.BeginTransaction();
  return Status();
}

catalog::SnapshotPtr Session::Impl::CurrentCatalog() {
  if (transaction != nullptr && transaction->editor != nullptr)
    return transaction->editor->snapshot();
  if (transaction != nullptr && transaction->catalog != nullptr) return transaction->catalog;
  return db->catalog->Current();
}

catalog::CatalogEditor& Session::Impl::Editor() {
  if (transaction->editor == nullptr) {
    transaction->editor =
        std::make_unique<catalog::CatalogEditor>(db->catalog.get(), transaction->kv.get());
  }
  return *transaction->editor;
}

Status Session::Impl::RequireTables(const sql::Plan& plan) {
  for (const catalog::TablePtr& table : plan.tables) {
    // A table of this very transaction is guarded by the editor's own reads.
    if (table->commit_version == catalog::kUncommitted) continue;
    if (transaction->editor != nullptr &&
        db->catalog->Current()->GetTable(table->id).get() != table.get()) {
      continue;
    }
    CELLAR_TRY(RequireTable(*table, !plan.read_only || plan.locks_rows));
  }
  return Status();
}

bool Session::Impl::ReadsOnlyItsSnapshot() {
  return transaction != nullptr && transaction->editor == nullptr &&
         (transaction->read_only || settings.hot().isolation == "repeatable read");
}

Status Session::Impl::RequireTable(const catalog::TableDescriptor& table, bool writes) {
  const std::pair<uint64_t, uint64_t> condition(table.id.value, table.commit_version);
  // Once something has changed, a write is told so before its commit is.
  const bool changed = transaction->catalog != nullptr;
  if (transaction->required.contains(condition) && !(writes && changed)) return Status();
  // The catalog that the snapshot holds says what the snapshot holds.
  const bool reads_snapshot = !writes && ReadsOnlyItsSnapshot();
  if (reads_snapshot && changed) return Status();
  Status status = catalog::RequireCurrent(table, transaction->kv.get());
  if (status.ok()) transaction->required.insert(condition);
  if (status.code() != Code::kConflict || !reads_snapshot) return status;
  CELLAR_TRY_ASSIGN(const bool describes,
                    catalog::DescribesSnapshot(table, transaction->kv.get(), nullptr));
  return describes ? Status() : status;
}

Result<bool> Session::Impl::TakeCatalogOfSnapshot() {
  if (!ReadsOnlyItsSnapshot() || transaction->catalog != nullptr) return false;
  CELLAR_TRY_ASSIGN(transaction->catalog, catalog::ReadCatalog(transaction->kv.get()));
  return true;
}

Status Session::Impl::CheckStillCurrent(Portal* portal) {
  if (portal->prepared->plan == nullptr) return Status();
  // Who waits for locks reads again what is newer than the view, and the plan must be as new: a row
  // that a rewrite has moved elsewhere would seem to be gone.
  const bool reads_again = !portal->prepared->plan->read_only;
  if (portal->checked && !reads_again) return Status();
  portal->checked = true;
  const kv::ReadView* view = reads_again ? nullptr : portal->statement->view.get();
  for (const catalog::TablePtr& table : portal->prepared->plan->tables) {
    if (table->commit_version == catalog::kUncommitted) continue;
    if (transaction->editor != nullptr &&
        db->catalog->Current()->GetTable(table->id).get() != table.get()) {
      continue;
    }
    CELLAR_TRY(session::CheckStillCurrent(*table, transaction->kv.get(), view));
  }
  return Status();
}

Result<const RowBatch*> Session::Impl::NextRows(Portal* portal) {
  // A cursor's rows are its own statement's, whoever fetches them.
  std::optional<MemoryScope> scope;
  if (portal->statement.get() != statement) scope.emplace(AccountOf(portal->statement.get()));
  Result<const RowBatch*> next = portal->execution->Next();
  if (!next.ok()) {
    // Every batch anew: locks and later reads may have met what the first ones did not.
    portal->checked = false;
    if (next.status().code() == Code::kConflict || transaction == nullptr) return next;
  }
  CELLAR_TRY(CheckStillCurrent(portal));
  return next;
}

Status Session::Impl::CheckWritable(std::string_view tag) {
  if (transaction == nullptr || !transaction->read_only) return Status();
  return SqlError(Code::kInvalid, sqlstate::kReadOnlySqlTransaction,
                  "cannot execute {} in a read-only transaction", tag);
}

Status Session::Impl::Commit(ResultSink* sink) {
  if (transaction == nullptr) {
    in_block = false;
    failed = false;
    return Status();
  }
  InterruptDirectRuns();
  Status status = CheckDeferred(true);
  // Cursors WITH HOLD read the rest of their rows now; other portals end with the transaction.
  for (auto at = portals.begin(); at != portals.end();) {
    Portal& portal = *at->second;
    if (portal.hold && !portal.finished && status.ok()) {
      if (portal.execution != nullptr) {
        while (true) {
          Result<const RowBatch*> batch = NextRows(&portal);
          if (!batch.ok()) {
            status = batch.status();
            break;
          }
          if (*batch == nullptr) break;
          portal.rows.AppendAll(**batch);
          if (portal.rows.footprint_bytes() > settings.hot().work_mem_bytes) {
            status = SqlError(Code::kLimit, sqlstate::kOutOfMemory,
                              "cursor \"{}\" holds too many rows", portal.name)
                         .WithHint("Declare it WITHOUT HOLD, or raise work_mem.");
            break;
          }
        }
        portal.execution.reset();
        portal.materialized = true;
      }
      ++at;
      continue;
    }
    if (portal.materialized && (portal.hold || !portal.cursor)) {
      ++at;
      continue;
    }
    at = portals.erase(at);
  }
  ForgetRoleChanges();
  const InterruptScope deaf(nullptr);  // what has begun to commit is seen through
  std::unique_ptr<TransactionState> ending = std::move(transaction);
  in_block = false;
  failed = false;
  const bool marks =
      !commit_marker.empty() &&
      (ending->roles != nullptr || (ending->editor != nullptr && ending->editor->changed()));
  if (status.ok() && marks) status = tables::MarkCommit(this, ending->kv.get());
  if (status.ok()) {
    const bool durable = settings.hot().durable && !relaxed_commit;
    // Beside what such a statement writes, little may be written.
    const bool makes_room = ending->makes_room && ending->kv->stats().bytes < kMostBesideMakingRoom;
    const kv::CommitOptions options{durable, makes_room};
    const bool edits = ending->editor != nullptr && ending->editor->changed();
    Result<uint64_t> version =
        edits ? db->catalog->Commit(*ending->editor, options) : ending->kv->Commit(options);
    if (version.ok()) {
      last_commit_version = *version;
      if (marks) {
        commit_marker.clear();
        tables::ForgetOldMarkers(db->engine.get());
      }
      if (edits) {
        for (catalog::TableId id : ending->dropped_sequences) db->sequences->Remove(id);
        if (ending->purged) db->collecting->Wake();
      }
      if (ending->roles != nullptr) db->roles->Publish(ending->roles);
      if (!ending->notifies.empty()) db->notifications.Send(ending->notifies);
    } else {
      status = version.status();
      if (status.code() == Code::kCommitUnknown && ending->roles != nullptr) {
        db->roles->NoteUnknown();
      }
      if (status.code() == Code::kConstraint && !ending->kv->duplicate_key().empty()) {
        catalog::SnapshotPtr catalog =
            ending->editor != nullptr ? ending->editor->snapshot() : db->catalog->Current();
        status = table::DuplicateKeyError(*catalog, ending->kv->duplicate_key());
      }
    }
  }
  const bool sealed_now =
      status.ok() && settings.hot().seal_always && !ending->read_only && !db->options.read_only;
  const std::set<std::pair<uint64_t, uint64_t>> used = std::move(ending->required);
  ending->access.reset();
  ending->editor.reset();
  ending->kv.reset();
  if (sealed_now) SealAfterCommit(used);
  settings.EndTransaction(status.ok());
  if (sink != nullptr) {
    Status sent = SendParameterChanges(sink);
    if (status.ok()) status = std::move(sent);
  }
  return status;
}

void Session::Impl::ForgetRoleChanges() {
  if (transaction == nullptr || transaction->roles == nullptr) return;
  ++access_epoch;
  roles_settings_generation = 0;
}

void Session::Impl::InterruptDirectRuns() {
  for (DirectRun* run : direct_runs) run->Interrupt();
  direct_runs.clear();
}

void Session::Impl::Rollback() {
  InterruptDirectRuns();
  for (auto at = portals.begin(); at != portals.end();) {
    Portal& portal = *at->second;
    at = portal.hold && portal.materialized && portal.execution == nullptr ? std::next(at)
                                                                           : portals.erase(at);
  }
  if (transaction != nullptr) {
    ForgetRoleChanges();
    transaction->editor.reset();
    transaction->access.reset();
    transaction->kv->Abort();
    transaction.reset();
    settings.EndTransaction(false);
  }
  in_block = false;
  failed = false;
}

void Session::Impl::Fail() {
  const MemoryScope unlimited(nullptr);  // undoing is not refused
  const InterruptScope deaf(nullptr);    // nor interrupted
  if (!in_block) {
    Rollback();
    return;
  }
  failed = true;
  // What may be returned to stays; locks that were taken since go now, as all do without one.
  if (transaction != nullptr && !transaction->savepoints.empty()) {
    static_cast<void>(transaction->kv->RollbackTo(transaction->savepoints.back().kv));
  }
  if (transaction != nullptr && transaction->savepoints.empty()) {
    InterruptDirectRuns();
    portals.clear();
    ForgetRoleChanges();
    transaction->editor.reset();
    transaction->access.reset();
    transaction->kv->Abort();
    transaction.reset();
    settings.EndTransaction(false);
  }
}

Status Session::Impl::ApplyModes(const ast::TransactionModes& modes) {
  const bool has_read = transaction != nullptr && transaction->kv->stats().reads > 0;
  if (modes.isolation != ast::Isolation::kUnset) {
    const std::string_view name = IsolationName(modes.isolation);
    if (has_read && *settings.Get("transaction_isolation") != name) {
      return SqlError(Code::kInvalid, sqlstate::kActiveSqlTransaction,
                      "SET TRANSACTION ISOLATION LEVEL must be called before any query");
    }
    CELLAR_TRY(settings.Set("transaction_isolation", name, true));
    if (transaction != nullptr && !has_read && transaction->kv->stats().ops == 0 &&
        transaction->savepoints.empty()) {
      // Nothing has happened yet: begin again at the new level.
      kv::TransactionOptions kv_options;
      kv_options.isolation = KvIsolation(name);
      kv_options.read_only = transaction->read_only;
      kv_options.lock_group = static_cast<uint64_t>(pid);
      transaction->editor.reset();
      transaction->access.reset();
      transaction->kv = db->engine->Begin(kv_options);
      transaction->access =
          std::make_unique<table::Access>(transaction->kv.get(), &cancel, db->tables.get());
      transaction->access->set_format(settings.format());
      transaction->access->set_limits(db->quotas->Active());
      transaction->access->set_level(AccessLevel(name));
      transaction->required.clear();
    }
  }
  if (modes.read_only != ast::Tristate::kUnset) {
    const bool read_only = modes.read_only == ast::Tristate::kTrue;
    if (!read_only && has_read && transaction->read_only) {
      return SqlError(Code::kInvalid, sqlstate::kActiveSqlTransaction,
                      "transaction read-write mode must be set before any query");
    }
    CELLAR_TRY(settings.Set("transaction_read_only", read_only ? "on" : "off", true));
    if (transaction != nullptr) transaction->read_only = read_only;
  }
  if (modes.deferrable != ast::Tristate::kUnset) {
    CELLAR_TRY(settings.Set("transaction_deferrable",
                            modes.deferrable == ast::Tristate::kTrue ? "on" : "off", true));
  }
  return Status();
}

Status Session::Impl::RunTransactionStatement(const ast::TransactionStmt& statement,
                                              ResultSink* sink, std::string* tag) {
  switch (statement.transaction_kind) {
    case ast::TransactionKind::kBegin:
    case ast::TransactionKind::kStart: {
      *tag = statement.transaction_kind == ast::TransactionKind::kBegin ? "BEGIN"
                                                                        : "START TRANSACTION";
      if (in_block) {
        return Notify(sink, Severity::kWarning, sqlstate::kActiveSqlTransaction,
                      "there is already a transaction in progress");
      }
      // An implicit transaction that is under way becomes the block.
      CELLAR_TRY(EnsureTransaction(false));
      in_block = true;
      Status status = ApplyModes(statement.modes);
      return status;
    }
    case ast::TransactionKind::kCommit:
    case ast::TransactionKind::kRollback: {
      const bool commit = statement.transaction_kind == ast::TransactionKind::kCommit;
      const bool was_in_block = in_block;
      const bool was_failed = failed;
      *tag = commit && !was_failed ? "COMMIT" : "ROLLBACK";
      std::string level = *settings.Get("transaction_isolation");
      if (!was_in_block) {
        CELLAR_TRY(Notify(sink, Severity::kWarning, sqlstate::kNoActiveSqlTransaction,
                          "there is no transaction in progress"));
      }
      if (commit && !was_failed) {
        CELLAR_TRY(Commit(sink));
      } else {
        Rollback();
        CELLAR_TRY(SendParameterChanges(sink));
      }
      if (statement.chain) {
        if (!was_in_block) {
          return SqlError(Code::kInvalid, sqlstate::kNoActiveSqlTransaction,
                          "{} AND CHAIN can only be used in transaction blocks",
                          commit ? "COMMIT" : "ROLLBACK");
        }
        CELLAR_TRY(EnsureTransaction(false));
        in_block = true;
        CELLAR_TRY(settings.Set("transaction_isolation", level, true));
      }
      return Status();
    }
    case ast::TransactionKind::kSavepoint: {
      *tag = "SAVEPOINT";
      if (!in_block) {
        return SqlError(Code::kInvalid, sqlstate::kNoActiveSqlTransaction,
                        "SAVEPOINT can only be used in transaction blocks");
      }
      SavepointState savepoint;
      savepoint.name = statement.name;
      savepoint.kv = transaction->kv->Savepoint();
      savepoint.had_editor = transaction->editor != nullptr;
      if (savepoint.had_editor) savepoint.editor = transaction->editor->Savepoint();
      savepoint.settings = settings.Savepoint();
      savepoint.roles = transaction->roles;
      savepoint.deferred = transaction->deferred.Savepoint();
      transaction->savepoints.push_back(std::move(savepoint));
      return Status();
    }
    case ast::TransactionKind::kRelease:
    case ast::TransactionKind::kRollbackTo: {
      const bool release = statement.transaction_kind == ast::TransactionKind::kRelease;
      *tag = release ? "RELEASE" : "ROLLBACK";
      if (!in_block) {
        return SqlError(Code::kInvalid, sqlstate::kNoActiveSqlTransaction,
                        "{} can only be used in transaction blocks",
                        release ? "RELEASE SAVEPOINT" : "ROLLBACK TO SAVEPOINT");
      }
      size_t count = transaction == nullptr ? 0 : transaction->savepoints.size();
      while (count > 0 && transaction->savepoints[count - 1].name != statement.name) --count;
      if (count == 0) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidSavepoint,
                        "savepoint \"{}\" does not exist", statement.name);
      }
      SavepointState& savepoint = transaction->savepoints[count - 1];
      if (release) {
        CELLAR_TRY(transaction->kv->ReleaseSavepoint(savepoint.kv));
        transaction->savepoints.resize(count - 1);
        transaction->deferred.Release(count > 1 ? &transaction->savepoints[count - 2].deferred
                                                : nullptr);
        return Status();
      }
      CELLAR_TRY(transaction->kv->RollbackTo(savepoint.kv));
      if (savepoint.had_editor)
        transaction->editor->RollbackTo(savepoint.editor);
      else
        transaction->editor.reset();
      settings.RollbackTo(savepoint.settings);
      transaction->deferred.RollbackTo(savepoint.deferred);
      if (transaction->roles != savepoint.roles) {
        ForgetRoleChanges();
        transaction->roles = savepoint.roles;
      }
      InterruptDirectRuns();
      for (auto at = portals.begin(); at != portals.end();) {
        at = at->second->execution != nullptr ? portals.erase(at) : std::next(at);
      }
      transaction->savepoints.resize(count);
      failed = false;
      return SendParameterChanges(sink);
    }
    case ast::TransactionKind::kPrepare:
    case ast::TransactionKind::kCommitPrepared:
    case ast::TransactionKind::kRollbackPrepared: break;
  }
  return UnsupportedError("prepared transactions are not supported");
}

}  // namespace cellar::session
