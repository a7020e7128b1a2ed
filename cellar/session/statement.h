// One statement from its first frame to its last. Private to this layer.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cellar/base/memory_account.h"
#include "cellar/session/session.h"
#include "cellar/session/session_registry.h"
#include "cellar/table/access.h"

namespace cellar::session {

// What belongs to one statement: a statement of a simple query, a portal (and so a cursor) until
// it is closed, a parse, a call of the table API, a step of a job. Its address stays the same as
// long as it lives. What may stop it is the session's token (SessionEntry::cancel): a request to
// cancel means whatever the session runs, and what a transaction holds polls it beyond the end of a
// statement; while it runs its deadline is the token's. One thread at a time.
struct Statement {
  Statement() = default;
  explicit Statement(std::string_view query) : text(query) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  std::string_view text;          // as the client sent it, others of the same message included;
                                  // borrowed
  ResultSink* sink = nullptr;     // while it runs, for notices; may be null
  bool commits_by_itself = true;  // it is a transaction of its own when no block is open
  int conflicts = 0;              // for which it was started anew
  std::chrono::steady_clock::time_point deadline;  // epoch: none
  // What its reads see, from its start on; null: it reads nothing, or nothing is written beside it
  // that it could meet.
  table::ReadViewPtr view;
  // All that it holds is charged to it, or to operators' accounts below it; null until it first
  // works. Below that of its session. See Session::Impl::AccountOf.
  MemoryAccountPtr memory;
};

// The time that a session works on a statement: from a client's message to its answer, or a call
// of a program. Says so in the registry, and arms the deadline (statement_timeout, unless the call
// has one of its own). A request to cancel that came before the outermost scope is for nothing,
// unless the scope goes on with what an earlier one began: then it is for that.
// Scopes nest, as a program's callback may run another statement.
class StatementScope {
 public:
  // timeout_ms: 0 takes the setting's.
  StatementScope(Session::Impl* session, Statement* statement, ResultSink* sink,
                 int64_t timeout_ms = 0, bool goes_on = false);
  ~StatementScope();
  StatementScope(const StatementScope&) = delete;
  StatementScope& operator=(const StatementScope&) = delete;

  // The message goes on with another statement, of the same text, with a time limit of its own.
  // They share an account, as they share what was parsed.
  void Continue();
  // A call with this limit (0: the setting's) is part of the statement.
  void Arm(int64_t timeout_ms);

 private:
  Session::Impl* session_;
  Statement* before_;
  ResultSink* sink_;
  std::optional<Statement> later_;  // the one that runs, of those behind the first
  bool outermost_;
};

}  // namespace cellar::session
