#include "cellar/session/statement.h"

#include "cellar/catalog/unreadable.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {

StatementScope::StatementScope(Session::Impl* session, Statement* statement, ResultSink* sink,
                               int64_t timeout_ms, bool goes_on)
    : session_(session),
      before_(session->statement),
      sink_(sink),
      outermost_(before_ == &session->no_statement) {
  catalog::ForgetUnreadableMet();
  session->statement = statement;
  statement->sink = sink;
  if (outermost_) {
    if (!goes_on) session->cancel.Clear();
    session->entry->Work(statement->text, RoughNowMicros());
  }
  Arm(timeout_ms);
}

StatementScope::~StatementScope() {
  Session::Impl& s = *session_;
  s.statement->sink = nullptr;
  s.KeepAccount(s.statement);
  s.statement = before_;
  s.FollowSealSettings();
  s.cancel.SetDeadline(before_->deadline);
  if (!outermost_) return;
  s.cancel.Clear();
  s.ShowRest();
}

void StatementScope::Continue() {
  Statement* ended = session_->statement;
  ended->sink = nullptr;
  const std::string_view text = ended->text;
  MemoryAccountPtr memory = std::move(ended->memory);
  session_->statement = &later_.emplace(text);
  later_->memory = std::move(memory);
  later_->sink = sink_;
  Arm(0);
}

void StatementScope::Arm(int64_t timeout_ms) {
  const int64_t limit = timeout_ms > 0 ? timeout_ms : session_->settings.hot().statement_timeout_ms;
  session_->statement->deadline =
      limit > 0 ? std::chrono::steady_clock::now() + std::chrono::milliseconds(limit)
                : std::chrono::steady_clock::time_point();
  session_->cancel.SetDeadline(session_->statement->deadline);
}

void Session::Impl::ShowRest() {
  SessionState state = SessionState::kIdle;
  if (in_block) state = failed ? SessionState::kInFailedTransaction : SessionState::kInTransaction;
  entry->SetTransaction(transaction == nullptr ? 0 : transaction->start_micros);
  if (shown_settings != settings.generation()) {
    shown_settings = settings.generation();
    entry->SetApplicationName(*settings.Get("application_name"));
  }
  entry->Rest(state, RoughNowMicros());
}

}  // namespace cellar::session
