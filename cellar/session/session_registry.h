// Who is connected and what they do: an entry for each session of every door, for those who look
// at, cancel or end sessions that are not theirs (pg_stat_activity, pg_cancel_backend,
// pg_terminate_backend, DROP DATABASE, the shutdown).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/cancel.h"

namespace cellar::session {

// As pg_stat_activity names them.
enum class SessionState : uint8_t { kIdle, kActive, kInTransaction, kInFailedTransaction };
const char* SessionStateName(SessionState state);

// What a session waits for, as pg_stat_activity names it. Static storage.
struct WaitEvent {
  const char* type;
  const char* name;
};
inline constexpr WaitEvent kWaitsForClient{"Client", "ClientRead"};

// Of a query's text so much is kept, as PostgreSQL's track_activity_query_size.
inline constexpr size_t kMaxShownQueryBytes = 1023;

// Times are microseconds since 2000-01-01 UTC; 0: none.
struct SessionView {
  int32_t pid = 0;
  uint32_t login_oid = 0;  // the role that logged in
  std::string user;        // session_user
  uint64_t database_id = 0;
  std::string database, client_address, application_name;
  bool of_job = false;  // works on a job, for no client
  SessionState state = SessionState::kIdle;
  std::string query;  // the running statement's text, or the last one's
  int64_t began_micros = 0, transaction_micros = 0, query_micros = 0, changed_micros = 0;
};

// Thread-safe. Shared by its session and those who look at it.
class SessionEntry {
 public:
  SessionEntry(int32_t pid, int32_t secret, SessionView view);

  int32_t pid() const { return pid_; }
  int32_t secret() const { return secret_; }
  uint32_t login_oid() const { return login_oid_; }
  // Polled by whatever the session runs.
  CancelToken& cancel() { return cancel_; }

  // Ends the session: its running statement stops with 57P01, as does every later one, and its door
  // is told. `why` is kShutdown or kClientGone.
  void End(CancelToken::Reason why);
  // What wakes a door that waits for its client; called by End, from any thread, and must not
  // block. Empty: from now on nobody is there to be woken; on return no call runs any more.
  void SetWake(std::function<void()> wake);

  // The session works on a statement, or stopped doing so. For its thread alone. No lock while the
  // text is that of the statement before.
  void Work(std::string_view query, int64_t now_micros);
  void Rest(SessionState state, int64_t now_micros);
  void SetTransaction(int64_t start_micros) {
    transaction_micros_.store(start_micros, std::memory_order_relaxed);
  }
  void SetUser(std::string_view user);
  void SetDatabase(uint64_t id, std::string_view name);
  void SetApplicationName(std::string_view name);
  // Kept for the next call of the table API: it counts among nobody's.
  void SetPooled(bool pooled) { pooled_.store(pooled, std::memory_order_relaxed); }
  bool pooled() const { return pooled_.load(std::memory_order_relaxed); }

  SessionView View() const;

 private:
  const int32_t pid_, secret_;
  const uint32_t login_oid_;
  CancelToken cancel_;
  std::atomic<bool> pooled_{false};
  std::atomic<SessionState> state_{SessionState::kIdle};
  std::atomic<int64_t> transaction_micros_{0}, query_micros_{0}, changed_micros_{0};
  mutable std::mutex mutex_;
  SessionView view_;            // guarded by mutex_, but for what the atomics say
  std::mutex wake_mutex_;       // held while wake_ is called
  std::function<void()> wake_;  // guarded by wake_mutex_
};

// Thread-safe.
class SessionRegistry {
 public:
  using EntryPtr = std::shared_ptr<SessionEntry>;

  int32_t NextPid() { return next_pid_.fetch_add(1); }
  // False: the store is being closed, and the entry is not taken.
  bool Add(EntryPtr entry);
  void Remove(int32_t pid);
  EntryPtr Find(int32_t pid) const;  // null: there is none
  std::vector<EntryPtr> All() const;
  // By pid.
  std::vector<SessionView> Views() const;
  // Sessions of this role, and in this database but for `except` and pooled ones.
  size_t CountOfRole(uint32_t login_oid) const;
  size_t CountInDatabase(uint64_t database_id, int32_t except) const;
  // Cancels the running statement of the session when the secret is its own.
  bool Cancel(int32_t pid, int32_t secret);
  // All sessions end, and no new one comes.
  void EndAll();
  bool closed() const { return closed_.load(std::memory_order_relaxed); }
  // Until the session has gone, `limit` has passed or `cancel` asks to stop. True: it has gone.
  Result<bool> WaitUntilGone(int32_t pid, std::chrono::milliseconds limit,
                             const CancelToken& cancel) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable removed_;
  std::map<int32_t, EntryPtr> entries_;  // guarded by mutex_
  std::atomic<int32_t> next_pid_{1000};
  std::atomic<bool> closed_{false};
};

}  // namespace cellar::session
