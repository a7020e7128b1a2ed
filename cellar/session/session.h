// Database and Session: the one code path that every door uses.
//
// A Session is one client's conversation: settings, a transaction, prepared statements, portals.
// The wire protocols turn their frames into these calls and give a ResultSink for what comes back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/types/batch.h"
#include "cellar/types/text_io.h"

namespace cellar::kv {
class Engine;
}

namespace cellar::session {

struct ResultColumn {
  std::string name;
  Type type;
  uint32_t table_oid = 0;
  int16_t attnum = 0;
};

enum class Severity : uint8_t { kDebug, kLog, kInfo, kNotice, kWarning };
struct Notice {
  Severity severity = Severity::kNotice;
  std::string sqlstate = "00000";
  std::string message, detail, hint;
};

// Where results go. Calls come on the session's thread, between a call into the session and its
// return. An error that a sink returns (the client is gone) ends the statement.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  // Before the first batch of a statement that returns rows (ExecuteSimple only).
  virtual Status OnColumns(std::span<const ResultColumn> columns) = 0;
  // Rows; the batch is borrowed for the call.
  virtual Status OnRows(const RowBatch& batch) = 0;
  // "INSERT 0 1", "SELECT 5", "CREATE TABLE".
  virtual Status OnComplete(std::string_view tag) = 0;
  virtual Status OnEmptyQuery() = 0;
  virtual Status OnNotice(const Notice& notice) = 0;
  // A setting that clients follow has changed.
  virtual Status OnParameter(std::string_view name, std::string_view value) = 0;
  virtual Status OnNotification(int32_t pid, std::string_view channel,
                                std::string_view payload) = 0;
  // Before OnCopyIn: what a row is to consist of.
  virtual Status OnCopyInColumns(std::span<const ResultColumn>) { return Status(); }
  // COPY FROM STDIN: begins; then the session reads until false (end). A client's CopyFail is an
  // error (57014).
  virtual Status OnCopyIn(int columns, bool binary) = 0;
  virtual Result<bool> ReadCopyData(std::string* chunk) = 0;
  // COPY TO STDOUT.
  virtual Status OnCopyOut(int columns, bool binary) = 0;
  virtual Status OnCopyData(std::string_view data) = 0;
  virtual Status OnCopyOutEnd() = 0;
};

struct SessionOptions {
  std::string user = "cellar";
  std::string database = "cellar";
  std::string client_address;                                 // "127.0.0.1", empty for embedded use
  std::vector<std::pair<std::string, std::string>> settings;  // start-up parameters
  bool of_job = false;                                        // of the store itself, for no client
  // Speaks PostgreSQL's protocol: its default isolation is DatabaseOptions::client_isolation, that
  // of others SERIALIZABLE.
  bool of_client = false;
};

struct BoundParameter {
  bool is_null = false;
  bool binary = false;
  std::string_view bytes;
};

struct StatementDescription {
  std::vector<uint32_t> parameter_oids;
  std::vector<ResultColumn> columns;
  bool returns_rows = false;
};

enum class ExecuteOutcome : uint8_t { kComplete, kSuspended };

struct DatabaseOptions {
  bool create_if_missing = true;
  bool read_only = false;
  bool run_jobs = true;                           // false: jobs stay as they are, and none is made
  bool durable_commits = true;                    // default of synchronous_commit
  size_t memory_limit_bytes = size_t{256} << 20;  // default of work_mem: one sort, hash or buffer
  // All that a statement holds at once; a session may hold twice that. 0: eight times
  // memory_limit_bytes, at least 512 MiB, and no more than a quarter of the process's limit.
  size_t statement_limit_bytes = 0;
  std::string table_layout;        // default of default_table_layout; empty: the built-in one
  std::string seal;                // default of cellar.seal: auto, off, always; empty: auto
  size_t batch_rows = kBatchRows;  // see sql::ExecEnvironment; fewer is for tests
  // What SHOW says of them; the door counts.
  int max_connections = 2000, superuser_reserved_connections = 3;
  std::string client_isolation = "read committed";
};

class Database;

// One client. One thread at a time, apart from Cancel.
class Session {
 public:
  // Errors: 3D000 for an unknown database, kInvalid for settings that do not read.
  static Result<std::unique_ptr<Session>> Open(Database* database, const SessionOptions& options);
  ~Session();  // rolls back

  // The simple protocol: every statement of `text`, in one implicit transaction unless it says
  // otherwise. Stops at the first error and returns it, with position() set.
  Status ExecuteSimple(std::string_view text, ResultSink* sink);

  // The extended protocol. "" is the unnamed statement or portal. After an error the caller skips
  // to Sync.
  Status Parse(const std::string& name, std::string_view text,
               std::span<const uint32_t> parameter_oids, ResultSink* sink);
  Result<StatementDescription> DescribeStatement(const std::string& name);
  Status Bind(const std::string& portal, const std::string& statement,
              std::span<const BoundParameter> parameters);
  Result<std::vector<ResultColumn>> DescribePortal(const std::string& portal, bool* returns_rows);
  // max_rows 0: all. kSuspended: the portal goes on with the next call. No OnColumns here.
  // `sync_follows`: the client's next message is Sync, so the statement is a transaction of its
  // own: it commits before OnComplete, and is run again by itself after a conflict while nothing
  // has been sent.
  Result<ExecuteOutcome> ExecutePortal(const std::string& portal, uint64_t max_rows,
                                       bool sync_follows, ResultSink* sink);
  Status CloseStatement(const std::string& name);  // absent is fine
  Status ClosePortal(const std::string& name);
  // Ends the implicit transaction: commits it, or rolls it back after an error. The commit's error
  // comes back.
  Status Sync(ResultSink* sink);

  // 'I' idle, 'T' in a transaction block, 'E' in a failed one.
  char transaction_status() const;
  const FormatSettings& format() const;
  // Settings to report at start-up (server_version, client_encoding, ...).
  std::vector<std::pair<std::string, std::string>> ReportedParameters() const;
  int32_t pid() const;
  int32_t cancel_secret() const;
  // Thread-safe. Stops the running statement with 57014 (shutdown: the session ends, 57P01).
  void Cancel(bool shutdown);
  // Thread-safe. Nobody is there any more to read what comes: the session ends, with 08006.
  void ClientGone();
  // Called from any thread when the session is told to end (shutdown, pg_terminate_backend), which
  // its next statement finds out by itself: wakes a door that waits for its client. Must not block.
  // Empty: none; on return no call runs any more.
  void SetWake(std::function<void()> wake);
  // True once the session was told to end.
  bool ending() const;

  // What a wire protocol needs besides.
  // An error that the protocol itself found: fails the transaction block, or rolls back.
  void Fail();
  // AppendDatumText, but reg* types print as names.
  void AppendText(Datum value, Type type, std::string* out);
  // A setting's value in its own unit; 0 when it is unknown or not a number.
  int64_t SettingNumber(std::string_view name) const;
  // True while the client listens on a channel. TakeNotifications hands on what has come, outside
  // of a transaction.
  bool listening() const;
  Status TakeNotifications(ResultSink* sink);

  struct Impl;
  Impl* impl() { return impl_.get(); }

 private:
  Session();
  std::unique_ptr<Impl> impl_;
};

// An open store with its catalog. Thread-safe; outlives its sessions.
class Database {
 public:
  static Result<std::unique_ptr<Database>> Open(std::unique_ptr<kv::Engine> engine,
                                                const DatabaseOptions& options);
  ~Database();

  // Cancels the session's running statement when pid and secret match; false otherwise.
  bool Cancel(int32_t pid, int32_t secret);
  // Sessions end with 57P01 at their next statement; running ones are cancelled.
  void BeginShutdown();
  // Sessions of all doors that run a statement: "1002 (role)". For a log.
  std::vector<std::string> RunningSessions() const;
  // Finds what SCRAM needs of a role: its stored verifier "SCRAM-SHA-256$..."; nullopt: no such
  // role or no password.
  std::optional<std::string> PasswordVerifier(std::string_view role);
  bool RoleExists(std::string_view role);
  bool IsSuperuser(std::string_view role);
  // Whether `user` is `role` or was granted it, if through others.
  bool IsMember(std::string_view user, std::string_view role);
  kv::Engine* engine();
  // Times that statements were run again by themselves after a conflict.
  uint64_t retries() const;

  struct Impl;
  Impl* impl() { return impl_.get(); }

 private:
  Database();
  std::unique_ptr<Impl> impl_;
};

}  // namespace cellar::session
