// What the files of this layer share. Not for programs: those include cellar/db.h.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cellar/base/arena.h"
#include "cellar/base/sqlstate.h"
#include "cellar/db.h"
#include "cellar/session/direct.h"
#include "cellar/session/session.h"

namespace cellar {
namespace internal {

// Hands notices on; nothing else comes here.
class LibrarySink : public session::ResultSink {
 public:
  explicit LibrarySink(ConnectionState* connection) : connection_(connection) {}
  Status OnColumns(std::span<const session::ResultColumn> columns) override;
  Status OnRows(const RowBatch& batch) override;
  Status OnComplete(std::string_view tag) override;
  Status OnEmptyQuery() override;
  Status OnNotice(const session::Notice& notice) override;
  Status OnParameter(std::string_view name, std::string_view value) override;
  Status OnNotification(int32_t pid, std::string_view channel, std::string_view payload) override;
  Status OnCopyIn(int columns, bool binary) override;
  Result<bool> ReadCopyData(std::string* chunk) override;
  Status OnCopyOut(int columns, bool binary) override;
  Status OnCopyData(std::string_view data) override;
  Status OnCopyOutEnd() override;

 protected:
  ConnectionState* connection() { return connection_; }

 private:
  ConnectionState* connection_;
};

// A connection, shared by all that came from it. Its session goes with the Connection.
struct ConnectionState {
  ConnectionState(std::shared_ptr<const void> store, std::function<void(std::string_view)> notices)
      : database(std::move(store)), on_notice(std::move(notices)), sink(this) {}

  std::shared_ptr<const void> database;       // keeps the store open
  std::unique_ptr<session::Session> session;  // null: closed
  std::function<void(std::string_view)> on_notice;
  LibrarySink sink;
  // Plans of Query and Execute, by text.
  std::unordered_map<std::string, std::shared_ptr<StatementState>> statements;
  std::unordered_set<StatementState*> living;  // all that there are, for Close
  std::atomic<uint64_t> cancels{0};            // calls of Cancel
  uint64_t transactions = 0;                   // that Begin has begun

  // A call is in the session. Whoever comes then is the program's own code, called back from there,
  // or another thread, which must not: see Enter.
  std::atomic<bool> busy{false};
  bool Occupy() {
    if (busy.load(std::memory_order_relaxed)) return false;
    busy.store(true, std::memory_order_relaxed);
    return true;
  }
  std::exception_ptr thrown;  // by that code, on its way to the program
  // What such code let go of, to be done when the call is over.
  std::vector<std::pair<std::shared_ptr<StatementState>, uint64_t>> ended_runs;
  uint64_t ended_transaction = 0;
  bool closing = false;
};

struct StatementState {
  StatementState(std::shared_ptr<ConnectionState> owner);
  ~StatementState();
  StatementState(const StatementState&) = delete;
  StatementState& operator=(const StatementState&) = delete;

  const std::shared_ptr<ConnectionState> connection;
  std::unique_ptr<session::DirectStatement> direct;  // null once the connection is closed
  std::vector<Column> columns;
  uint64_t run = 0;      // counts runs, so that Rows of an earlier one notice
  uint64_t cancels = 0;  // of the connection, when the run began
  Arena arena;           // bytes of parameters
  std::vector<Datum> parameters;
  std::vector<Value> bound;  // text for parameters of no type
};

Status ClosedError();     // 08003
Status ReentryError();    // 55000
Status MovedFromError();  // 08003
// The session goes, and all that came from it is dead.
void Close(ConnectionState* state);
// After a call: what was put off while it ran.
void Leave(ConnectionState* state);
// After an exception that came out of a call into the session: nothing stays half done.
void Recover(ConnectionState* state);

class Leaving {
 public:
  explicit Leaving(ConnectionState* state) : state_(state), flying_(std::uncaught_exceptions()) {}
  ~Leaving() {
    if (std::uncaught_exceptions() > flying_ && state_->session != nullptr) Recover(state_);
    Leave(state_);
  }
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;

 private:
  ConnectionState* state_;
  int flying_;
};

// Every call that goes into the session goes through here: one at a time. `state` lives until it
// returns; null is that of what was moved from. Errors: 55000 from within such a call, which is
// from the program's own code; 08003 when the connection has gone; 53200. What the program's code
// has thrown meanwhile (CallProgram) is thrown on here, after the session has seen it as an error.
template <typename Body>
auto Enter(ConnectionState* state, const Body& body) -> decltype(body()) {
  if (state == nullptr) return MovedFromError();
  if (!state->Occupy()) return ReentryError();
  auto result = [&]() -> decltype(body()) {
    const Leaving leaving(state);
    if (state->session == nullptr) return ClosedError();
    try {
      return body();
    } catch (const std::bad_alloc&) {
      Recover(state);
      return SqlError(Code::kLimit, sqlstate::kOutOfMemory, "out of memory");
    }
  }();
  const std::exception_ptr thrown = std::exchange(state->thrown, nullptr);
  if (thrown != nullptr) std::rethrow_exception(thrown);
  return result;
}

// Runs the program's own code from within the session. What it throws is an error to the session,
// so that no frame of it is left half way, and is thrown on by Enter.
template <typename Call>
auto CallProgram(ConnectionState* state, const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (...) {
    if (state->thrown == nullptr) state->thrown = std::current_exception();
  }
  return SqlError(Code::kCancelled, "38000", "the program's own function has thrown an exception");
}

// 22004 for a null pointer.
Status CheckText(SqlText text);

// `value` as a value of `type`. `borrow`: its bytes may be those of `value`; else they lie in
// `arena`. Errors: 22P02, 22003, 22021, ...
Result<Datum> ToDatum(const Param& value, Type type, const FormatSettings& format, bool borrow,
                      Arena* arena);

// The statement with this text, prepared now or before. Within Enter.
Result<std::shared_ptr<StatementState>> FindStatement(
    const std::shared_ptr<ConnectionState>& connection, std::string_view sql);
Result<std::shared_ptr<StatementState>> MakeStatement(
    const std::shared_ptr<ConnectionState>& connection, std::string_view sql,
    std::span<const Type> types);
// Starts a run of the statement with this text, preparing it anew when tables have changed since:
// within a transaction block that is 40001.
Result<std::shared_ptr<StatementState>> StartText(
    const std::shared_ptr<ConnectionState>& connection, std::string_view sql,
    std::span<const Param> parameters, bool borrow);
// Starts a run with these parameters. `borrow`: their bytes live until its end; else they are
// copied.
Status StartWith(StatementState* state, std::span<const Param> parameters, bool borrow);
// Ends the run before, whose Rows notice, and starts one with state->parameters.
Status EndBefore(StatementState* state);
Status Start(StatementState* state);
// The run's rows, dropped; how many there were, or were changed.
Result<uint64_t> Drain(StatementState* state);
// The run's next batch; 57014 after Cancel.
Result<const RowBatch*> NextOf(StatementState* state);
// Ends the run if it is still that one.
void EndRun(const std::shared_ptr<StatementState>& state, uint64_t run);

}  // namespace internal
}  // namespace cellar
