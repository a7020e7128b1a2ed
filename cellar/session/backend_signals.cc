#include "cellar/session/backend_signals.h"

#include "cellar/base/sqlstate.h"

namespace cellar::session {
namespace {

Status Warn(Session::Impl* session, std::string message) {
  return session->Notify(session->statement->sink, Severity::kWarning, "01000", std::move(message));
}

Status Refused(std::string_view message) {
  return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege, "{}", message);
}

// The session that may be signalled; null: there is none, and the caller was told.
Result<SessionRegistry::EntryPtr> Find(Session::Impl* session, int32_t pid,
                                       std::string_view for_superusers,
                                       std::string_view for_members) {
  const SessionRegistry::EntryPtr entry = session->db->sessions.Find(pid);
  if (entry == nullptr) {
    CELLAR_TRY(Warn(session, fmt::format("PID {} is not a PostgreSQL backend process", pid)));
    return SessionRegistry::EntryPtr();
  }
  const uint32_t target = entry->login_oid();
  if (session->Roles().IsSuperuser(target) && !session->IsSuperuser())
    return Refused(for_superusers);
  if (!session->HasPrivilegesOf(target) && !session->HasPrivilegesOf(kSignalBackendRole))
    return Refused(for_members);
  return entry;
}

}  // namespace

Result<bool> CancelBackend(Session::Impl* session, int32_t pid) {
  CELLAR_TRY_ASSIGN(const SessionRegistry::EntryPtr entry,
                    Find(session, pid, "must be a superuser to cancel superuser query",
                         "must be a member of the role whose query is being canceled or member of "
                         "pg_signal_backend"));
  if (entry == nullptr) return false;
  entry->cancel().Cancel(CancelToken::Reason::kUser);
  return true;
}

Result<bool> TerminateBackend(Session::Impl* session, int32_t pid, int64_t timeout_ms) {
  if (timeout_ms < 0) {
    return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                    "\"timeout\" must not be negative");
  }
  CELLAR_TRY_ASSIGN(
      const SessionRegistry::EntryPtr entry,
      Find(session, pid, "must be a superuser to terminate superuser process",
           "must be a member of the role whose process is being terminated or member of "
           "pg_signal_backend"));
  if (entry == nullptr) return false;
  entry->End(CancelToken::Reason::kShutdown);
  if (timeout_ms == 0) return true;
  CELLAR_TRY_ASSIGN(const bool gone,
                    session->db->sessions.WaitUntilGone(pid, std::chrono::milliseconds(timeout_ms),
                                                        session->cancel));
  if (!gone) {
    CELLAR_TRY(
        Warn(session, fmt::format("backend with PID {} did not terminate within {} {}", pid,
                                  timeout_ms, timeout_ms == 1 ? "millisecond" : "milliseconds")));
  }
  return gone;
}

}  // namespace cellar::session
