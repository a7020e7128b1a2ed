// Database, Connection and Transaction over a session.
#include "cellar/db.h"

#include <random>
#include <thread>

#include "cellar/kv/backup.h"
#include "cellar/kv/engine.h"
#include "cellar/library/library_internal.h"
#include "cellar/session/tables.h"
#include "cellar/store/open.h"

namespace cellar {

namespace {

constexpr int kMaxRetries = 50;
constexpr std::string_view kConnectionDoesNotExist = "08003";

std::string_view SeverityName(session::Severity severity) {
  switch (severity) {
    case session::Severity::kDebug: return "DEBUG";
    case session::Severity::kLog: return "LOG";
    case session::Severity::kInfo: return "INFO";
    case session::Severity::kWarning: return "WARNING";
    case session::Severity::kNotice: break;
  }
  return "NOTICE";
}

Status NoCopy() {
  return UnsupportedError("COPY with STDIN or STDOUT is not for the library")
      .WithHint("Use Connection::Load, or COPY with a file.");
}

Status EndedError() {
  return SqlError(Code::kInvalid, sqlstate::kNoActiveSqlTransaction, "the transaction has ended");
}

}  // namespace

namespace internal {

Status LibrarySink::OnColumns(std::span<const session::ResultColumn>) { return Status(); }
Status LibrarySink::OnRows(const RowBatch&) { return Status(); }
Status LibrarySink::OnComplete(std::string_view) { return Status(); }
Status LibrarySink::OnEmptyQuery() { return Status(); }
Status LibrarySink::OnNotice(const session::Notice& notice) {
  if (!connection_->on_notice) return Status();
  return CallProgram(connection_, [&] {
    connection_->on_notice(fmt::format("{}: {}", SeverityName(notice.severity), notice.message));
    return Status();
  });
}
Status LibrarySink::OnParameter(std::string_view, std::string_view) { return Status(); }
Status LibrarySink::OnNotification(int32_t, std::string_view, std::string_view) { return Status(); }
Status LibrarySink::OnCopyIn(int, bool) { return NoCopy(); }
Result<bool> LibrarySink::ReadCopyData(std::string*) { return NoCopy(); }
Status LibrarySink::OnCopyOut(int, bool) { return NoCopy(); }
Status LibrarySink::OnCopyData(std::string_view) { return NoCopy(); }
Status LibrarySink::OnCopyOutEnd() { return NoCopy(); }

Status ClosedError() {
  return SqlError(Code::kInvalid, kConnectionDoesNotExist, "the connection is closed");
}

Status MovedFromError() {
  return SqlError(Code::kInvalid, kConnectionDoesNotExist,
                  "nothing is left here: the object has been moved from");
}

Status ReentryError() {
  return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                  "the connection is in use")
      .WithDetail("A function that a call on it runs, or another thread, has used it.")
      .WithHint("Use another connection.");
}

Status CheckText(SqlText text) {
  if (text.given()) return Status();
  return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed, "the text is a null pointer");
}

void Close(ConnectionState* state) {
  state->statements.clear();
  for (StatementState* statement : state->living) {
    ++statement->run;
    statement->direct.reset();
  }
  state->session.reset();  // rolls back
  state->database.reset();
}

void Leave(ConnectionState* state) {
  while (!state->ended_runs.empty()) {
    const auto [statement, run] = std::move(state->ended_runs.back());
    state->ended_runs.pop_back();
    if (statement->run == run && statement->direct != nullptr) (void)statement->direct->End();
  }
  const uint64_t ended = std::exchange(state->ended_transaction, 0);
  if (ended != 0 && ended == state->transactions && state->session != nullptr &&
      state->session->transaction_status() != 'I') {
    (void)state->session->ExecuteSimple("ROLLBACK", &state->sink);
  }
  if (state->closing) Close(state);
  state->busy.store(false, std::memory_order_release);
}

void Recover(ConnectionState* state) {
  for (StatementState* statement : state->living) {
    if (statement->direct != nullptr) statement->direct->Abandon();
  }
  state->session->Fail();
}

}  // namespace internal

using internal::ConnectionState;
using internal::Enter;
using internal::StatementState;

// ---- Database ----

struct Database::Impl {
  std::unique_ptr<session::Database> database;
};

Database::Database() : impl_(std::make_shared<Impl>()) {}
Database::~Database() = default;

Result<std::unique_ptr<Database>> Database::Open(const std::string& directory,
                                                 const OpenOptions& options) {
  store::StoreOptions store;
  store.directory = directory;
  store.create_if_missing = options.create_if_missing && !options.read_only;
  store.read_only = options.read_only;
  store.durable_commits = options.durable;
  store.cache_bytes = options.cache_bytes;
  store.statement_memory_bytes = options.statement_memory_bytes;
  store.statement_limit_bytes = options.statement_limit_bytes;
  store.process_limit_bytes = options.process_limit_bytes;
  store.table_layout = options.table_layout;
  store.seal = options.seal;
  // tidy: allow(new) the constructor is private
  std::unique_ptr<Database> database(new Database);
  CELLAR_TRY_ASSIGN(database->impl_->database, store::OpenDatabase(store));
  return database;
}

Result<std::unique_ptr<Connection>> Database::Connect(const ConnectOptions& options) {
  auto state = std::make_shared<ConnectionState>(impl_, options.on_notice);
  session::SessionOptions session;
  session.user = options.user;
  session.database = options.database;
  session.settings = options.settings;
  CELLAR_TRY_ASSIGN(state->session, session::Session::Open(impl_->database.get(), session));
  // tidy: allow(new) the constructor is private
  return std::unique_ptr<Connection>(new Connection(std::move(state)));
}

Result<std::unique_ptr<TableStore>> Database::Tables(const ConnectOptions& options) {
  session::SessionOptions session;
  session.user = options.user;
  session.database = options.database;
  session.settings = options.settings;
  return session::OpenTables(impl_->database.get(), session, impl_);
}

Result<BackupReport> Database::Backup(const std::string& directory, const BackupOptions& options) {
  kv::BackupOptions backup;
  backup.directory = directory;
  backup.keep = options.keep;
  if (options.progress) {
    backup.progress = [&options](const kv::BackupProgress& progress) {
      options.progress(progress.copied_bytes, progress.total_bytes);
    };
  }
  CELLAR_TRY_ASSIGN(const kv::BackupInfo info, impl_->database->engine()->Backup(backup));
  return BackupReport{info.number, info.files, info.bytes, info.added_bytes};
}

void Database::Shutdown() { impl_->database->BeginShutdown(); }

// ---- Connection ----

Connection::Connection(std::shared_ptr<ConnectionState> state) : state_(std::move(state)) {}

Connection::~Connection() {
  // Within a call: when that is over.
  state_->closing = true;
  if (state_->Occupy()) internal::Leave(state_.get());
}

Result<Statement> Connection::Prepare(SqlText sql, std::span<const Type> types) {
  CELLAR_TRY(internal::CheckText(sql));
  const std::shared_ptr<ConnectionState> state = state_;
  return Enter(state.get(), [&]() -> Result<Statement> {
    CELLAR_TRY_ASSIGN(std::shared_ptr<StatementState> made,
                      internal::MakeStatement(state, sql.view(), types));
    return Statement(std::move(made));
  });
}

Result<Rows> Connection::RunQuery(SqlText sql, std::span<const Param> parameters) {
  CELLAR_TRY(internal::CheckText(sql));
  const std::shared_ptr<ConnectionState> state = state_;
  return Enter(state.get(), [&]() -> Result<Rows> {
    CELLAR_TRY_ASSIGN(std::shared_ptr<StatementState> started,
                      internal::StartText(state, sql.view(), parameters, false));
    const uint64_t run = started->run;
    return Rows(std::move(started), run);
  });
}

Result<uint64_t> Connection::RunExecute(SqlText sql, std::span<const Param> parameters) {
  CELLAR_TRY(internal::CheckText(sql));
  const std::shared_ptr<ConnectionState> state = state_;
  return Enter(state.get(), [&]() -> Result<uint64_t> {
    CELLAR_TRY_ASSIGN(std::shared_ptr<StatementState> started,
                      internal::StartText(state, sql.view(), parameters, true));
    return internal::Drain(started.get());
  });
}

Status Connection::ExecuteScript(SqlText sql) {
  CELLAR_TRY(internal::CheckText(sql));
  const std::shared_ptr<ConnectionState> state = state_;
  return Enter(state.get(), [&]() -> Status {
    CELLAR_TRY(session::DirectStatement::Settle(state->session.get()));
    return state->session->ExecuteSimple(sql.view(), &state->sink);
  });
}

bool Connection::in_transaction() const { return state_->session->transaction_status() != 'I'; }

void Connection::Cancel() {
  state_->cancels.fetch_add(1);
  state_->session->Cancel(false);
}

Result<Transaction> Connection::Begin() {
  const std::shared_ptr<ConnectionState> state = state_;
  return Enter(state.get(), [&]() -> Result<Transaction> {
    if (state->session->transaction_status() != 'I') {
      return SqlError(Code::kInvalid, sqlstate::kActiveSqlTransaction,
                      "there is already a transaction in progress");
    }
    CELLAR_TRY(session::DirectStatement::Settle(state->session.get()));
    CELLAR_TRY(state->session->ExecuteSimple("BEGIN", &state->sink));
    return Transaction(state, ++state->transactions);
  });
}

Status Connection::Run(const std::function<Status(Connection&)>& body) {
  if (!body) {
    return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed, "there is no function to run");
  }
  std::minstd_rand random(std::random_device{}());
  for (int attempt = 0;; ++attempt) {
    CELLAR_TRY_ASSIGN(Transaction transaction, Begin());
    Status status = body(*this);  // what it throws rolls back
    status = status.ok() ? transaction.Commit() : std::move(status);
    if (status.code() != Code::kConflict || attempt >= kMaxRetries) return status;
    CELLAR_TRY(transaction.Rollback());
    const uint64_t ceiling = uint64_t{50} << std::min(attempt, 8);  // microseconds
    std::this_thread::sleep_for(std::chrono::microseconds(random() % ceiling));
  }
}

// ---- Transaction ----

Transaction::~Transaction() {
  if (connection_ == nullptr) return;
  // Within a call on the connection: when that is over.
  if (connection_->busy.load(std::memory_order_relaxed))
    connection_->ended_transaction = number_;
  else
    (void)Rollback();
}

Status Transaction::Commit() {
  const std::shared_ptr<ConnectionState> state = std::move(connection_);
  if (state == nullptr) return EndedError();
  return Enter(state.get(), [&]() -> Status {
    if (state->transactions != number_) return EndedError();
    CELLAR_TRY(session::DirectStatement::Settle(state->session.get()));
    switch (state->session->transaction_status()) {
      case 'T': return state->session->ExecuteSimple("COMMIT", &state->sink);
      case 'E':
        CELLAR_TRY(state->session->ExecuteSimple("ROLLBACK", &state->sink));
        return SqlError(Code::kInvalid, sqlstate::kInFailedSqlTransaction,
                        "the transaction was rolled back: a statement in it has failed");
      default: return EndedError();
    }
  });
}

Status Transaction::Rollback() {
  const std::shared_ptr<ConnectionState> state = std::move(connection_);
  if (state == nullptr) return Status();
  if (state->session == nullptr) return Status();  // rolled back when it closed
  return Enter(state.get(), [&]() -> Status {
    if (state->transactions != number_ || state->session->transaction_status() == 'I')
      return Status();
    return state->session->ExecuteSimple("ROLLBACK", &state->sink);
  });
}

std::string_view LibraryVersion() { return CELLAR_VERSION; }

}  // namespace cellar
