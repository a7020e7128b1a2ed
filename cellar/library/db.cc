// Database, Connection, Statement and Rows over a session's direct statements.
#include "cellar/db.h"

#include <charconv>
#include <cmath>
#include <random>
#include <thread>

#include "cellar/base/sqlstate.h"
#include "cellar/library/library_internal.h"
#include "cellar/session/tables.h"
#include "cellar/store/open.h"
#include "cellar/types/convert.h"

namespace cellar {

namespace {

constexpr int kMaxRetries = 50;
constexpr size_t kMaxCachedStatements = 256;

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

}  // namespace

namespace internal {

Status LibrarySink::OnColumns(std::span<const session::ResultColumn>) { return Status(); }
Status LibrarySink::OnRows(const RowBatch&) { return Status(); }
Status LibrarySink::OnComplete(std::string_view) { return Status(); }
Status LibrarySink::OnEmptyQuery() { return Status(); }
Status LibrarySink::OnNotice(const session::Notice& notice) {
  if (on_notice_) on_notice_(fmt::format("{}: {}", SeverityName(notice.severity), notice.message));
  return Status();
}
Status LibrarySink::OnParameter(std::string_view, std::string_view) { return Status(); }
Status LibrarySink::OnNotification(int32_t, std::string_view, std::string_view) { return Status(); }
Status LibrarySink::OnCopyIn(int, bool) { return NoCopy(); }
Result<bool> LibrarySink::ReadCopyData(std::string*) { return NoCopy(); }
Status LibrarySink::OnCopyOut(int, bool) { return NoCopy(); }
Status LibrarySink::OnCopyData(std::string_view) { return NoCopy(); }
Status LibrarySink::OnCopyOutEnd() { return NoCopy(); }

Result<Datum> ToDatum(const Param& value, Type type, const FormatSettings& format, Arena* arena) {
  if (type.id == TypeId::kInvalid) type = MakeType(TypeId::kText);
  switch (value.kind()) {
    case Param::Kind::kNull: return Datum();
    case Param::Kind::kBool: return ConvertBool(value.int_value() != 0, type, format, arena);
    case Param::Kind::kInt: return ConvertInt(value.int_value(), type, format, arena);
    case Param::Kind::kDouble: return ConvertDouble(value.double_value(), type, format, arena);
    case Param::Kind::kText: {
      CELLAR_TRY_ASSIGN(Datum parsed, ParseDatum(value.bytes(), type, format, arena));
      return CopyDatum(parsed, type, arena);
    }
    case Param::Kind::kBytes: {
      CELLAR_TRY_ASSIGN(Datum bytes, ConvertBytes(value.bytes(), type));
      return CopyDatum(bytes, type, arena);
    }
  }
  return Datum();
}

}  // namespace internal

using internal::ConnectionState;
using internal::StatementState;

// ---- Database ----

struct Database::Impl {
  std::unique_ptr<session::Database> database;
};

Database::Database() : impl_(std::make_unique<Impl>()) {}
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
  auto state = std::make_shared<ConnectionState>(options.on_notice);
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
  return session::OpenTables(impl_->database.get(), session);
}

void Database::Shutdown() { impl_->database->BeginShutdown(); }

// ---- Statement ----

Statement::Statement(std::shared_ptr<StatementState> state) : state_(std::move(state)) {}
Statement::Statement(Statement&&) noexcept = default;
Statement& Statement::operator=(Statement&&) noexcept = default;
Statement::~Statement() = default;

std::span<const Type> Statement::parameter_types() const {
  return state_->direct->parameter_types();
}
const std::vector<Column>& Statement::columns() const { return state_->columns; }

namespace {

Result<std::shared_ptr<StatementState>> MakeStatement(ConnectionState* connection,
                                                      std::string_view sql,
                                                      std::span<const Type> types) {
  auto state = std::make_shared<StatementState>();
  state->connection = connection;
  CELLAR_TRY_ASSIGN(state->direct,
                    session::DirectStatement::Prepare(connection->session.get(), sql, types));
  for (const session::ResultColumn& column : state->direct->columns())
    state->columns.push_back({column.name, column.type});
  return state;
}

// Starts a run with state->parameters.
Status Start(StatementState* state) {
  ++state->run;
  return state->direct->Start(state->parameters, &state->connection->sink);
}

Status StartWith(StatementState* state, std::span<const Param> parameters) {
  const std::span<const Type> types = state->direct->parameter_types();
  if (types.size() != parameters.size()) {
    return SqlError(Code::kInvalid, sqlstate::kProtocolViolation,
                    "{} parameters given, but the statement has {}", parameters.size(),
                    types.size());
  }
  CELLAR_TRY(state->direct->End());  // its parameters may lie in the arena
  state->arena.Reset();
  state->parameters.clear();
  for (size_t i = 0; i < parameters.size(); ++i) {
    Result<Datum> value = internal::ToDatum(parameters[i], types[i],
                                            state->connection->session->format(), &state->arena);
    if (!value.ok()) {
      return std::move(value).status().WithContext(fmt::format("parameter ${}", i + 1));
    }
    state->parameters.push_back(*value);
  }
  return Start(state);
}

// The run's rows, dropped.
Result<uint64_t> Drain(StatementState* state) {
  while (true) {
    CELLAR_TRY_ASSIGN(const RowBatch* batch, state->direct->Next());
    if (batch == nullptr) return state->direct->rows_affected();
  }
}

}  // namespace

Result<Rows> Statement::RunQuery(std::span<const Param> parameters) {
  CELLAR_TRY(StartWith(state_.get(), parameters));
  return Rows(state_, state_->run);
}

Result<uint64_t> Statement::RunExecute(std::span<const Param> parameters) {
  CELLAR_TRY(StartWith(state_.get(), parameters));
  return Drain(state_.get());
}

Status Statement::Bind(int index, const Param& value) {
  const std::span<const Type> types = parameter_types();
  if (index < 1 || static_cast<size_t>(index) > types.size()) {
    return SqlError(Code::kInvalid, sqlstate::kUndefinedParameter, "there is no parameter ${}",
                    index);
  }
  StatementState& state = *state_;
  Type type = types[static_cast<size_t>(index) - 1];
  if (type.id == TypeId::kInvalid) type = MakeType(TypeId::kText);
  Arena arena;
  CELLAR_TRY_ASSIGN(Datum datum,
                    internal::ToDatum(value, type, state.connection->session->format(), &arena));
  state.bound.resize(types.size());
  state.bound[static_cast<size_t>(index) - 1] = Value(type, datum);
  return Status();
}

void Statement::ClearBindings() { state_->bound.clear(); }

Result<Rows> Statement::QueryBound() {
  StatementState& state = *state_;
  CELLAR_TRY(state.direct->End());
  state.bound.resize(parameter_types().size());
  state.arena.Reset();
  state.parameters.clear();
  for (const Value& value : state.bound)
    state.parameters.push_back(CopyDatum(value.datum(), value.type(), &state.arena));
  CELLAR_TRY(Start(&state));
  return Rows(state_, state.run);
}

Result<uint64_t> Statement::ExecuteBound() {
  CELLAR_TRY_ASSIGN(Rows rows, QueryBound());
  while (rows.NextBatch() != nullptr) {
  }
  CELLAR_TRY(rows.status());
  return rows.affected();
}

// ---- Rows ----

Rows::Rows(std::shared_ptr<StatementState> state, uint64_t run)
    : state_(std::move(state)),
      run_(run),
      live_run_(&state_->run),
      batch_(state_->direct->current()) {}

Rows::Rows(Rows&& other) noexcept
    : state_(std::move(other.state_)),
      run_(other.run_),
      live_run_(other.live_run_),
      batch_(other.batch_),
      row_(other.row_),
      count_(other.count_),
      status_(std::move(other.status_)) {}

Rows& Rows::operator=(Rows&& other) noexcept {
  if (this == &other) return *this;
  if (state_ != nullptr && state_->run == run_) (void)state_->direct->End();
  state_ = std::move(other.state_);
  run_ = other.run_;
  live_run_ = other.live_run_;
  batch_ = other.batch_;
  row_ = other.row_;
  count_ = other.count_;
  status_ = std::move(other.status_);
  return *this;
}

Rows::~Rows() {
  if (state_ != nullptr && state_->run == run_) (void)state_->direct->End();
}

const std::vector<Column>& Rows::columns() const { return state_->columns; }
uint64_t Rows::affected() const { return state_->direct->rows_affected(); }

// Moves to the next batch that has rows.
bool Rows::Advance() {
  count_ = 0;
  row_ = SIZE_MAX;
  if (!status_.ok()) return false;
  if (state_->run != run_) {
    status_ = SqlError(Code::kInvalid, sqlstate::kInvalidCursorState,
                       "the statement has been run again before all rows were read");
    return false;
  }
  Result<const RowBatch*> batch = state_->direct->Next();
  if (!batch.ok()) {
    status_ = std::move(batch).status();
    return false;
  }
  if (*batch == nullptr) return false;
  count_ = (*batch)->size();
  return true;
}

bool Rows::NextRow() {
  if (!Advance()) return false;
  row_ = 0;
  return true;
}

const RowBatch* Rows::NextBatch() {
  if (!Advance()) return nullptr;
  row_ = count_ = 0;  // row by row goes on behind it
  return *batch_;
}

int64_t Rows::ConvertToInt(size_t column) const {
  const ColumnVector& values = batch().column(column);
  if (values.physical() == Physical::kDouble) {
    const double value = values.doubles()[row_];
    if (std::isnan(value)) return 0;
    if (value >= 0x1p63) return INT64_MAX;
    if (value < -0x1p63) return INT64_MIN;
    return static_cast<int64_t>(value);
  }
  const std::string text = ToString(column);
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double Rows::ConvertToDouble(size_t column) const {
  const ColumnVector& values = batch().column(column);
  if (values.physical() == Physical::kInt64) return static_cast<double>(values.ints()[row_]);
  const std::string text = ToString(column);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string Rows::ToString(size_t column) const {
  const ColumnVector& values = batch().column(column);
  std::string text;
  if (!values.IsNull(row_))
    state_->connection->session->AppendText(values.Get(row_), values.type(), &text);
  return text;
}

// ---- Connection ----

Connection::Connection(std::shared_ptr<ConnectionState> state) : state_(std::move(state)) {}

Connection::~Connection() {
  if (state_ != nullptr) state_->statements.clear();  // before the session
}

Result<Statement> Connection::Prepare(std::string_view sql, std::span<const Type> types) {
  CELLAR_TRY_ASSIGN(std::shared_ptr<StatementState> state, MakeStatement(state_.get(), sql, types));
  return Statement(std::move(state));
}

namespace internal {
namespace {

// The statement with this text, prepared now or before.
Result<std::shared_ptr<StatementState>> Find(ConnectionState* connection, std::string_view sql) {
  std::string text(sql);
  auto at = connection->statements.find(text);
  if (at != connection->statements.end()) {
    // Somebody may be reading its rows still: they keep it, and we take another.
    if (at->second.use_count() == 1 && !at->second->direct->stale()) return at->second;
    connection->statements.erase(at);
  }
  CELLAR_TRY_ASSIGN(std::shared_ptr<StatementState> state, MakeStatement(connection, sql, {}));
  if (connection->statements.size() >= kMaxCachedStatements) connection->statements.clear();
  connection->statements.emplace(std::move(text), state);
  return state;
}

}  // namespace
}  // namespace internal

Result<Rows> Connection::RunQuery(std::string_view sql, std::span<const Param> parameters) {
  CELLAR_TRY_ASSIGN(std::shared_ptr<StatementState> state, internal::Find(state_.get(), sql));
  CELLAR_TRY(StartWith(state.get(), parameters));
  const uint64_t run = state->run;
  return Rows(std::move(state), run);
}

Result<uint64_t> Connection::RunExecute(std::string_view sql, std::span<const Param> parameters) {
  CELLAR_TRY_ASSIGN(std::shared_ptr<StatementState> state, internal::Find(state_.get(), sql));
  CELLAR_TRY(StartWith(state.get(), parameters));
  return Drain(state.get());
}

Status Connection::ExecuteScript(std::string_view sql) {
  CELLAR_TRY(session::DirectStatement::Settle(state_->session.get()));
  return state_->session->ExecuteSimple(sql, &state_->sink);
}

bool Connection::in_transaction() const { return state_->session->transaction_status() != 'I'; }

void Connection::Cancel() { state_->session->Cancel(false); }

Result<Transaction> Connection::Begin() {
  if (in_transaction()) {
    return SqlError(Code::kInvalid, sqlstate::kActiveSqlTransaction,
                    "there is already a transaction in progress");
  }
  CELLAR_TRY(ExecuteScript("BEGIN"));
  return Transaction(this);
}

Status Connection::Run(const std::function<Status(Connection&)>& body) {
  std::minstd_rand random(std::random_device{}());
  for (int attempt = 0;; ++attempt) {
    CELLAR_TRY_ASSIGN(Transaction transaction, Begin());
    Status status = body(*this);
    status = status.ok() ? transaction.Commit() : std::move(status);
    if (status.code() != Code::kConflict || attempt >= kMaxRetries) return status;
    CELLAR_TRY(transaction.Rollback());
    const uint64_t ceiling = uint64_t{50} << std::min(attempt, 8);  // microseconds
    std::this_thread::sleep_for(std::chrono::microseconds(random() % ceiling));
  }
}

// ---- Transaction ----

Transaction::~Transaction() {
  if (connection_ != nullptr) (void)Rollback();
}

Status Transaction::Commit() {
  if (connection_ == nullptr) return InvalidError("the transaction has ended");
  Connection& connection = *std::exchange(connection_, nullptr);
  const char status = connection.state_->session->transaction_status();
  if (status == 'T') return connection.ExecuteScript("COMMIT");
  if (status == 'E') {
    CELLAR_TRY(connection.ExecuteScript("ROLLBACK"));
    return SqlError(Code::kInvalid, sqlstate::kInFailedSqlTransaction,
                    "the transaction was rolled back: a statement in it has failed");
  }
  return SqlError(Code::kInvalid, sqlstate::kNoActiveSqlTransaction, "the transaction has ended");
}

Status Transaction::Rollback() {
  if (connection_ == nullptr) return Status();
  Connection& connection = *std::exchange(connection_, nullptr);
  if (!connection.in_transaction()) return Status();
  return connection.ExecuteScript("ROLLBACK");
}

std::string_view LibraryVersion() { return CELLAR_VERSION; }

}  // namespace cellar
