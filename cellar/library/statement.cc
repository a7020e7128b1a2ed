// Statements and their runs: parameters in, the session's direct statements behind them.
#include "cellar/library/library_internal.h"
#include "cellar/types/convert.h"

namespace cellar {
namespace internal {
namespace {

constexpr size_t kMaxCachedStatements = 256;
// Times that a text is prepared anew because tables changed between that and its start.
constexpr int kMaxPreparations = 50;

}  // namespace

StatementState::StatementState(std::shared_ptr<ConnectionState> owner)
    : connection(std::move(owner)) {
  connection->living.insert(this);
}

StatementState::~StatementState() {
  direct.reset();  // while the session lives
  connection->living.erase(this);
}

Result<Datum> ToDatum(const Param& value, Type type, const FormatSettings& format, bool borrow,
                      Arena* arena) {
  if (type.id == TypeId::kInvalid) type = MakeType(TypeId::kText);
  switch (value.kind()) {
    case Param::Kind::kNull: return Datum();
    case Param::Kind::kBool: return ConvertBool(value.int_value() != 0, type, format, arena);
    case Param::Kind::kInt: return ConvertInt(value.int_value(), type, format, arena);
    case Param::Kind::kDouble: return ConvertDouble(value.double_value(), type, format, arena);
    case Param::Kind::kText:
      if (borrow && !type.array && type.id == TypeId::kText && IsValidText(value.bytes()))
        return Datum::Bytes(value.bytes());
      return ParseDatum(value.bytes(), type, format, arena);  // a copy
    case Param::Kind::kBytes: {
      CELLAR_TRY_ASSIGN(Datum bytes, ConvertBytes(value.bytes(), type));
      return borrow ? bytes : CopyDatum(bytes, type, arena);
    }
  }
  return Datum();
}

Result<std::shared_ptr<StatementState>> MakeStatement(
    const std::shared_ptr<ConnectionState>& connection, std::string_view sql,
    std::span<const Type> types) {
  auto state = std::make_shared<StatementState>(connection);
  CELLAR_TRY_ASSIGN(state->direct,
                    session::DirectStatement::Prepare(connection->session.get(), sql, types));
  for (const session::ResultColumn& column : state->direct->columns())
    state->columns.push_back({column.name, column.type});
  return state;
}

Result<std::shared_ptr<StatementState>> FindStatement(
    const std::shared_ptr<ConnectionState>& connection, std::string_view sql) {
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

Status Start(StatementState* state) {
  state->cancels = state->connection->cancels.load();
  return state->direct->Start(state->parameters, &state->connection->sink);
}

Status EndBefore(StatementState* state) {
  ++state->run;
  CELLAR_TRY(state->direct->End());  // its parameters may lie in the arena
  state->arena.Reset();
  state->parameters.clear();
  return Status();
}

Status StartWith(StatementState* state, std::span<const Param> parameters, bool borrow) {
  CELLAR_TRY(EndBefore(state));
  const std::span<const Type> types = state->direct->parameter_types();
  if (types.size() != parameters.size()) {
    return SqlError(Code::kInvalid, sqlstate::kProtocolViolation,
                    "{} parameters given, but the statement has {}", parameters.size(),
                    types.size());
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    Result<Datum> value = ToDatum(parameters[i], types[i], state->connection->session->format(),
                                  borrow, &state->arena);
    if (!value.ok()) {
      return std::move(value).status().WithContext(fmt::format("parameter ${}", i + 1));
    }
    state->parameters.push_back(*value);
  }
  return Start(state);
}

Result<std::shared_ptr<StatementState>> StartText(
    const std::shared_ptr<ConnectionState>& connection, std::string_view sql,
    std::span<const Param> parameters, bool borrow) {
  session::Session* session = connection->session.get();
  for (int attempt = 0;; ++attempt) {
    const bool within_block = session->transaction_status() != 'I';
    const uint64_t generation = session::DirectStatement::CommittedGeneration(session);
    CELLAR_TRY_ASSIGN(std::shared_ptr<StatementState> state, FindStatement(connection, sql));
    Status status = StartWith(state.get(), parameters, borrow);
    if (status.ok()) return state;
    // Classes 42 and 0A are the planner's: it had agreed, and a table has changed since. Nothing
    // has run.
    const std::string_view refusal = status.sqlstate().substr(0, 2);
    if ((refusal != "42" && refusal != "0A") || attempt >= kMaxPreparations ||
        session::DirectStatement::CommittedGeneration(session) == generation) {
      return status;
    }
    if (!within_block) continue;
    return SqlError(Code::kConflict, sqlstate::kSerializationFailure,
                    "could not serialize access due to a concurrent change of the schema")
        .WithDetail(std::string(status.message()));
  }
}

Result<const RowBatch*> NextOf(StatementState* state) {
  if (state->cancels != state->connection->cancels.load(std::memory_order_relaxed)) {
    CELLAR_TRY(state->direct->Stop());
  }
  return state->direct->Next();
}

Result<uint64_t> Drain(StatementState* state) {
  while (true) {
    CELLAR_TRY_ASSIGN(const RowBatch* batch, NextOf(state));
    if (batch == nullptr) return state->direct->rows_affected();
  }
}

void EndRun(const std::shared_ptr<StatementState>& state, uint64_t run) {
  if (state == nullptr || state->run != run || state->direct == nullptr) return;
  ConnectionState& connection = *state->connection;
  if (!connection.Occupy()) {
    connection.ended_runs.emplace_back(state, run);  // Leave does it
    return;
  }
  (void)state->direct->End();
  Leave(&connection);
}

}  // namespace internal

using internal::Enter;
using internal::StatementState;

namespace {

const std::vector<Column>& NoColumns() {
  static const std::vector<Column> none;
  return none;
}

internal::ConnectionState* ConnectionOf(const std::shared_ptr<StatementState>& state) {
  return state == nullptr ? nullptr : state->connection.get();
}

}  // namespace

Statement::Statement(std::shared_ptr<StatementState> state) : state_(std::move(state)) {}
Statement::Statement(Statement&&) noexcept = default;
Statement& Statement::operator=(Statement&&) noexcept = default;
Statement::~Statement() = default;

std::span<const Type> Statement::parameter_types() const {
  if (state_ == nullptr || state_->direct == nullptr) return {};
  return state_->direct->parameter_types();
}

const std::vector<Column>& Statement::columns() const {
  return state_ == nullptr ? NoColumns() : state_->columns;
}

Result<Rows> Statement::RunQuery(std::span<const Param> parameters) {
  const std::shared_ptr<StatementState> state = state_;
  return Enter(ConnectionOf(state), [&]() -> Result<Rows> {
    CELLAR_TRY(internal::StartWith(state.get(), parameters, false));
    return Rows(state, state->run);
  });
}

Result<uint64_t> Statement::RunExecute(std::span<const Param> parameters) {
  const std::shared_ptr<StatementState> state = state_;
  return Enter(ConnectionOf(state), [&]() -> Result<uint64_t> {
    CELLAR_TRY(internal::StartWith(state.get(), parameters, true));
    return internal::Drain(state.get());
  });
}

Status Statement::Bind(int index, const Param& value) {
  if (state_ == nullptr) return internal::MovedFromError();
  StatementState& state = *state_;
  if (state.direct == nullptr) return internal::ClosedError();
  const std::span<const Type> types = parameter_types();
  if (index < 1 || static_cast<size_t>(index) > types.size()) {
    return SqlError(Code::kInvalid, sqlstate::kUndefinedParameter, "there is no parameter ${}",
                    index);
  }
  Type type = types[static_cast<size_t>(index) - 1];
  if (type.id == TypeId::kInvalid) type = MakeType(TypeId::kText);
  Arena arena;
  CELLAR_TRY_ASSIGN(Datum datum, internal::ToDatum(value, type, state.connection->session->format(),
                                                   true, &arena));
  state.bound.resize(types.size());
  state.bound[static_cast<size_t>(index) - 1] = Value(type, datum);
  return Status();
}

void Statement::ClearBindings() {
  if (state_ != nullptr) state_->bound.clear();
}

namespace {

Status StartBound(StatementState* state) {
  CELLAR_TRY(internal::EndBefore(state));
  state->bound.resize(state->direct->parameter_types().size());
  for (const Value& value : state->bound)
    state->parameters.push_back(CopyDatum(value.datum(), value.type(), &state->arena));
  return internal::Start(state);
}

}  // namespace

Result<Rows> Statement::QueryBound() {
  const std::shared_ptr<StatementState> state = state_;
  return Enter(ConnectionOf(state), [&]() -> Result<Rows> {
    CELLAR_TRY(StartBound(state.get()));
    return Rows(state, state->run);
  });
}

Result<uint64_t> Statement::ExecuteBound() {
  const std::shared_ptr<StatementState> state = state_;
  return Enter(ConnectionOf(state), [&]() -> Result<uint64_t> {
    CELLAR_TRY(StartBound(state.get()));
    return internal::Drain(state.get());
  });
}

}  // namespace cellar
