// Sessions: statements from text to results, in the simple and the extended protocol's ways.
#include "cellar/session/session.h"

#include <time.h>

#include <chrono>
#include <random>
#include <thread>

#include "cellar/base/check.h"
#include "cellar/base/sqlstate.h"
#include "cellar/catalog/unreadable.h"
#include "cellar/session/error_values.h"
#include "cellar/session/session_internal.h"
#include "cellar/session/value_text.h"
#include "cellar/sql/expr/reg_text.h"
#include "cellar/table/usage.h"

namespace cellar::session {

int64_t NowMicros() {
  constexpr int64_t kEpochShiftMicros = int64_t{946684800} * 1000000;  // 1970 to 2000
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
             .count() -
         kEpochShiftMicros;
}

int64_t RoughNowMicros() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  constexpr int64_t kEpochShiftSeconds = 946684800;  // 1970 to 2000
  return (int64_t{now.tv_sec} - kEpochShiftSeconds) * 1000000 + now.tv_nsec / 1000;
}

namespace {

// Times a statement that is its own transaction is run again after a conflict.
constexpr int kMaxRetries = 50;
// And for how long: what takes seconds and meets a writer each time would never end otherwise.
constexpr std::chrono::seconds kMaxRetryTime(5);
constexpr size_t kMaxPrepared = 10000;
constexpr size_t kMaxPortals = 10000;
// An execution that handled more rows is not kept for the next run: its buffers are large.
constexpr uint64_t kMaxSpareRows = 64;
// A plan is made anew after this long, so that it follows the tables' sizes.
constexpr int64_t kPlanLifeMicros = int64_t{20} * 1000000;
// An estimate of rows is good for a millisecond a row, within these: a table that was just made is
// soon filled.
constexpr int64_t kLeastEstimateLifeMicros = 50000;
constexpr int64_t kEstimateLifeMicros = int64_t{10} * 1000000;

int64_t LifeOfEstimate(double rows) {
  return static_cast<int64_t>(
      std::clamp(rows * 1000, double{kLeastEstimateLifeMicros}, double{kEstimateLifeMicros}));
}

uint64_t NextRandom(void* state) {  // xorshift128+
  uint64_t* s = static_cast<uint64_t*>(state);
  uint64_t x = s[0];
  const uint64_t y = s[1];
  s[0] = y;
  x ^= x << 23;
  s[1] = x ^ y ^ (x >> 17) ^ (y >> 26);
  return s[1] + y;
}

bool IsPlannable(const ast::Node& node) {
  switch (node.kind) {
    case ast::NodeKind::kSelect:
    case ast::NodeKind::kInsert:
    case ast::NodeKind::kUpdate:
    case ast::NodeKind::kDelete: return true;
    default: return false;
  }
}

bool EndsFailedBlock(const ast::Node& node) {
  if (node.kind != ast::NodeKind::kTransaction) return false;
  switch (node.As<ast::TransactionStmt>().transaction_kind) {
    case ast::TransactionKind::kCommit:
    case ast::TransactionKind::kRollback:
    case ast::TransactionKind::kRollbackTo: return true;
    default: return false;
  }
}

Status FailedBlockError() {
  return SqlError(
      Code::kInvalid, sqlstate::kInFailedSqlTransaction,
      "current transaction is aborted, commands ignored until end of transaction block");
}

// Statements that manage transactions by themselves.
bool IsTransactionControl(const ast::Node& node) {
  return node.kind == ast::NodeKind::kTransaction;
}

// Utility statements that are started anew after a conflict as queries are.
bool ChangesOneTable(const ast::Node& node) {
  return node.kind == ast::NodeKind::kAlterTable || node.kind == ast::NodeKind::kCreateIndex;
}

bool ShouldRetry(const Status& status) { return status.code() == Code::kConflict; }

bool TooLong(std::chrono::steady_clock::time_point began) {
  return std::chrono::steady_clock::now() - began > kMaxRetryTime;
}

void BackOff(int attempt, uint64_t random) {
  const uint64_t ceiling = uint64_t{50} << std::min(attempt, 8);  // microseconds
  std::this_thread::sleep_for(std::chrono::microseconds(random % ceiling));
}

Status NoSuchStatement(std::string_view name) {
  if (name.empty()) {
    return SqlError(Code::kNotFound, sqlstate::kInvalidSqlStatementName,
                    "unnamed prepared statement does not exist");
  }
  return SqlError(Code::kNotFound, sqlstate::kInvalidSqlStatementName,
                  "prepared statement \"{}\" does not exist", name);
}

std::vector<ResultColumn> ColumnsOf(const sql::Plan& plan) {
  std::vector<ResultColumn> columns;
  for (const sql::OutputColumn& column : plan.output) {
    columns.push_back({column.name, column.type, column.table_oid, column.attnum});
  }
  return columns;
}

}  // namespace

void SliceBatch(const RowBatch& from, size_t start, size_t end, RowBatch* to) {
  to->columns().resize(from.num_columns());
  for (size_t c = 0; c < from.num_columns(); ++c) {
    const ColumnVector& source = from.column(c);
    ColumnVector& target = to->column(c);
    target.Reset(source.type());
    target.Resize(end - start);
    for (size_t row = start; row < end; ++row) target.Set(row - start, source.Get(row));
  }
  to->SetSize(end - start);
}

bool Session::Impl::RetryAfter(const Status& status, int attempt) {
  if (!ShouldRetry(status) || attempt >= kMaxRetries) return false;
  db->retries.fetch_add(1, std::memory_order_relaxed);
  BackOff(attempt, NextRandom(random_state));
  return true;
}

// ---- Session::Impl
// ----------------------------------------------------------------------------------------

namespace {

std::shared_ptr<SessionEntry> MakeEntry(Database::Impl* db, const SessionOptions& options) {
  std::random_device device;
  SessionView view;
  view.user = options.user;
  view.login_oid = db->roles->Current()->OidOf(options.user);
  view.database = options.database;
  view.client_address = options.client_address;
  view.of_job = options.of_job;
  view.began_micros = view.changed_micros = NowMicros();
  return std::make_shared<SessionEntry>(db->sessions.NextPid(), static_cast<int32_t>(device()),
                                        std::move(view));
}

}  // namespace

Session::Impl::Impl(Database::Impl* database, SessionOptions session_options)
    : db(database),
      options(std::move(session_options)),
      entry(MakeEntry(db, options)),
      pid(entry->pid()),
      cancel(entry->cancel()),
      advisory_locks(&db->engine->locks(), static_cast<uint64_t>(pid)) {
  user = session_user = options.user;
  roles = db->roles->Current();
  database_name = options.database;
  std::random_device device;
  random_state[0] = (uint64_t{device()} << 32) | device();
  random_state[1] = (uint64_t{device()} << 32) | device() | 1;
}

Session::Impl::~Impl() {
  Rollback();
  portals.clear();
}

sql::NameScope& Session::Impl::Scope() {
  const uint64_t catalog_generation = CurrentCatalog()->generation();
  if (scope_generation != settings.generation() || scope_epoch != access_epoch ||
      scope_catalog_generation != catalog_generation) {
    scope_generation = settings.generation();
    scope_epoch = access_epoch;
    scope_catalog_generation = catalog_generation;
    scope.database_name = database_name;
    scope.database = database_id;
    scope.search_path.clear();
    const bool restricted = !IsSuperuser();
    for (const std::string& schema : settings.GetList("search_path")) {
      const std::string& name = schema == "$user" ? user : schema;
      // A schema that the role may not use is as good as absent.
      if (restricted) {
        std::optional<catalog::NamespaceId> space = sql::FindSchema(*CurrentCatalog(), scope, name);
        if (space && !MayUseSchema(*space)) continue;
      }
      scope.search_path.push_back(name);
    }
    scope.may_use = nullptr;
    if (restricted) scope.may_use = [this](catalog::NamespaceId id) { return MayUseSchema(id); };
  }
  scope.temporary = temporary_namespace;
  return scope;
}

void Session::Impl::SetUpContext(sql::EvalContext* context) {
  context->format = settings.format();
  context->statement_micros = NowMicros();
  context->transaction_micros =
      transaction != nullptr ? transaction->start_micros : context->statement_micros;
  context->format.now_micros = context->transaction_micros;
  context->cancel = &cancel;
  context->session = this;
  context->random = &NextRandom;
  context->random_state = random_state;
  context->clock_micros = &NowMicros;
}

sql::PlannerContext Session::Impl::MakePlannerContext(std::span<const Type> parameter_types) {
  sql::PlannerContext context;
  context.catalog = CurrentCatalog();
  context.scope = &Scope();
  context.virtual_catalog = &db->system;
  context.parameter_types = parameter_types;
  context.enable_index_scan = settings.GetBool("enable_indexscan");
  context.enable_hash_join = settings.GetBool("enable_hashjoin");
  context.enable_lookup_join =
      settings.GetBool("enable_lookupjoin") && settings.GetBool("enable_nestloop");
  context.enable_sort_elision = settings.GetBool("enable_sortelision");
  context.estimate_rows = [this](const catalog::TableDescriptor& table) -> double {
    const int64_t now = NowMicros();
    {
      std::lock_guard lock(db->estimates_mutex);
      auto at = db->estimates.find(table.storage_id().value);
      if (at != db->estimates.end() &&
          now - at->second.made_micros < LifeOfEstimate(at->second.rows)) {
        return at->second.rows;
      }
    }
    const double estimate = EstimateRows(table);
    std::lock_guard lock(db->estimates_mutex);
    db->estimates[table.storage_id().value] = {estimate, now};
    return estimate;
  };
  context.statistics = [this](const catalog::TableDescriptor& table) {
    return db->statistics->Find(table);
  };
  return context;
}

double Session::Impl::EstimateRows(const catalog::TableDescriptor& table) {
  kv::TransactionOptions read_only;
  read_only.read_only = true;
  const std::unique_ptr<kv::Transaction> reading = db->engine->Begin(read_only);
  const Result<std::optional<table::TableUsage>> usage = table::UsageOf(table, reading.get());
  if (usage.ok() && usage->has_value()) {
    return static_cast<double>(std::max<int64_t>(0, (*usage)->rows));
  }
  // Not counted, or this transaction's own.
  const Result<uint64_t> rows = transaction != nullptr ? transaction->access->EstimateRows(table)
                                                       : db->tables->EstimateRows(table);
  return rows.ok() ? static_cast<double>(*rows) : 1000;
}

Status Session::Impl::AddPosition(Status status, std::string_view text) const {
  if (status.ok()) return status;
  // Lower layers name the table of a violated constraint; where it lies is known here.
  if (!status.table_name().empty() && status.schema_name().empty()) {
    const std::string name(status.table_name());
    catalog::TablePtr table = sql::FindRelation(*db->catalog->Current(), scope, "", name);
    if (table != nullptr) {
      const std::string schema = table->parent == database_id
                                     ? "public"
                                     : db->catalog->Current()->GetNamespace(table->parent)->name;
      status = std::move(status).WithTable(schema, name);
    }
  }
  if (status.position() > 0 || status.location() < 0) return status;
  const size_t limit = std::min(text.size(), static_cast<size_t>(status.location()));
  int characters = 1;
  for (size_t i = 0; i < limit; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) ++characters;
  }
  return std::move(status).WithPosition(characters);
}

Status Session::Impl::Notify(ResultSink* sink, Severity severity, std::string_view sqlstate,
                             std::string message) {
  const std::string level = *settings.Get("client_min_messages");
  if (level == "error") return Status();
  if (level == "warning" && severity != Severity::kWarning) return Status();
  if (sink == nullptr) return Status();
  return sink->OnNotice(Notice{severity, std::string(sqlstate), std::move(message), "", ""});
}

Status Session::Impl::SendParameterChanges(ResultSink* sink) {
  if (sink == nullptr) return Status();
  for (const std::string& name : settings.TakeChanges()) {
    CELLAR_TRY(sink->OnParameter(name, *settings.Get(name)));
  }
  return Status();
}

// ---- Preparing
// --------------------------------------------------------------------------------------------

Status Session::Impl::PlanPrepared(Prepared* prepared) {
  for (Type& type : prepared->client_types) type = Refreshed(type);
  FoldingPlanner planner(*this, prepared->client_types);
  sql::PlannerContext& context = planner.context;
  CELLAR_TRY_ASSIGN(prepared->plan, sql::PlanStatement(*prepared->statement->ast, context));
  prepared->plan_generation = context.catalog->generation();
  prepared->settings_generation = settings.generation();
  prepared->access_epoch = access_epoch;
  prepared->allowed = false;
  prepared->planned_micros = planner.eval.statement_micros;
  prepared->parameter_types = prepared->plan->parameter_types;
  prepared->returns_rows = prepared->plan->returns_rows;
  return Status();
}

Status Session::Impl::EnsurePlan(Prepared* prepared) {
  FollowRoles();
  if (!prepared->plannable) return Status();
  const bool own_changes =
      transaction != nullptr && transaction->editor != nullptr && transaction->editor->changed();
  if (prepared->plan != nullptr && !own_changes &&
      prepared->settings_generation == settings.generation() &&
      prepared->access_epoch == access_epoch &&
      prepared->plan_generation == CurrentCatalog()->generation() &&
      NowMicros() - prepared->planned_micros < kPlanLifeMicros) {
    return Status();
  }
  std::vector<ResultColumn> before = std::move(prepared->columns);
  const bool had_plan = prepared->plan != nullptr;
  std::vector<Type> types = prepared->parameter_types;
  if (had_plan) prepared->client_types = types;  // what was announced stays
  Status status = PlanPrepared(prepared);
  if (!status.ok()) {
    prepared->columns = std::move(before);
    return status;
  }
  prepared->columns = ColumnsOf(*prepared->plan);
  if (prepared->announced && !before.empty() && prepared->returns_rows) {
    bool same = before.size() == prepared->columns.size();
    for (size_t i = 0; same && i < before.size(); ++i)
      same = before[i].type == prepared->columns[i].type;
    if (!same) {
      prepared->plan.reset();
      prepared->columns = std::move(before);
      return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                      "cached plan must not change result type");
    }
  }
  return Status();
}

Result<std::shared_ptr<Prepared>> Session::Impl::Prepare(
    std::string name, std::shared_ptr<const std::string> text,
    std::shared_ptr<const sql::Statement> statement, std::vector<Type> client_types) {
  auto prepared = std::make_shared<Prepared>();
  prepared->name = std::move(name);
  prepared->text = *text;
  prepared->message = std::move(text);
  prepared->statement = std::move(statement);
  prepared->client_types = std::move(client_types);
  prepared->prepared_micros = NowMicros();
  if (prepared->statement->ast == nullptr) return prepared;
  const ast::Node& node = *prepared->statement->ast;
  prepared->plannable = IsPlannable(node);
  if (failed && !EndsFailedBlock(node)) return FailedBlockError();
  if (prepared->plannable) {
    Status status = EnsurePlan(prepared.get());
    if (!status.ok()) return AddPosition(std::move(status), prepared->text);
    return prepared;
  }
  prepared->parameter_types = prepared->client_types;
  const Type text_type = MakeType(TypeId::kText);
  switch (node.kind) {
    case ast::NodeKind::kVariableShow: {
      const std::string& shown = node.As<ast::VariableShowStmt>().name;
      prepared->returns_rows = true;
      if (shown == "all") {
        prepared->columns = {
            {"name", text_type}, {"setting", text_type}, {"description", text_type}};
      } else if (const sql::VirtualTable* listed = ListShownBy(shown)) {
        for (const sql::OutputColumn& column : listed->columns)
          prepared->columns.push_back({column.name, column.type});
      } else {
        prepared->columns = {{settings.CanonicalName(shown), text_type}};
      }
      break;
    }
    case ast::NodeKind::kExplain:
      prepared->returns_rows = true;
      prepared->columns = {{"QUERY PLAN", text_type}};
      break;
    case ast::NodeKind::kFetch: {
      const auto& fetch = node.As<ast::FetchStmt>();
      auto portal = portals.find(fetch.cursor);
      if (!fetch.move && portal != portals.end()) {
        prepared->returns_rows = true;
        prepared->columns = portal->second->result_columns();
      }
      break;
    }
    case ast::NodeKind::kOwn:
      prepared->columns = ColumnsOf(node.As<ast::OwnStmt>());
      prepared->returns_rows = !prepared->columns.empty();
      break;
    case ast::NodeKind::kExecute: {
      auto target = statements.find(node.As<ast::ExecuteStmt>().name);
      if (target != statements.end()) {
        prepared->returns_rows = target->second->returns_rows;
        prepared->columns = target->second->columns;
      }
      break;
    }
    default: break;
  }
  return prepared;
}

// ---- Running
// ----------------------------------------------------------------------------------------------

Result<sql::ExecEnvironment> Session::Impl::MakeEnvironment(
    Statement* of, sql::EvalContext* context, const catalog::CatalogSnapshot* seen_catalog,
    bool with_view) {
  sql::ExecEnvironment environment;
  environment.with_view = with_view;
  if (with_view) {
    CELLAR_TRY_ASSIGN(of->view, transaction->access->OpenView());
  }
  environment.access = transaction->access.get();
  environment.view = of->view;
  environment.context = context;
  environment.virtual_rows = this;
  environment.catalog = seen_catalog;
  environment.deferred = &transaction->deferred;
  environment.cascades = this;
  environment.serializable = settings.hot().isolation == "serializable";
  environment.memory_limit_bytes = settings.hot().work_mem_bytes;
  environment.batch_rows = db->options.batch_rows;
  return environment;
}

Status Session::Impl::StartPortal(Portal* portal) {
  Prepared& prepared = *portal->prepared;
  CELLAR_TRY(EnsurePlan(&prepared));
  CELLAR_TRY(CheckPrepared(&prepared));
  const bool alone = statement->commits_by_itself && !in_block && transaction == nullptr;
  CELLAR_TRY(EnsureTransaction(alone && prepared.plan->read_only && !prepared.plan->locks_rows));
  CELLAR_TRY(RefreshStatementSnapshot());
  if (!prepared.plan->read_only) {
    const std::string_view lock = prepared.plan->lock_tag;
    CELLAR_TRY(CheckWritable(lock.empty() ? std::string_view(prepared.statement->tag) : lock));
  }
  if (in_block || !prepared.plan->read_only) {
    Status status = RequireTables(*prepared.plan);
    if (status.code() == Code::kConflict && prepared.plan->read_only) {
      // A relation has changed since the snapshot that is read, which has it as it was.
      CELLAR_TRY_ASSIGN(const bool again, TakeCatalogOfSnapshot());
      if (again) {
        CELLAR_TRY(EnsurePlan(&prepared));
        CELLAR_TRY(CheckPrepared(&prepared));
        status = RequireTables(*prepared.plan);
      }
    }
    CELLAR_TRY(std::move(status));
  }
  const sql::Plan& plan = *prepared.plan;
  SetUpContext(&portal->context);
  portal->context.parameters = portal->parameters;
  portal->catalog = CurrentCatalog();
  // Beside a query that is its transaction nothing is written that it might meet.
  const bool with_view = !alone || !plan.read_only || plan.locks_rows;
  CELLAR_TRY_ASSIGN(
      sql::ExecEnvironment environment,
      MakeEnvironment(portal->statement.get(), &portal->context, portal->catalog.get(), with_view));
  if (prepared.spare != nullptr && prepared.spare->plan() == prepared.plan.get()) {
    portal->execution = std::move(prepared.spare);
    CELLAR_TRY(portal->execution->Restart(std::move(environment)));
  } else {
    prepared.spare.reset();
    CELLAR_TRY_ASSIGN(portal->execution,
                      sql::Execution::Open(prepared.plan, std::move(environment)));
  }
  portal->started = true;
  portal->checked = false;
  return Status();
}

void Session::Impl::Recycle(Portal* portal) {
  std::unique_ptr<sql::Execution> execution = std::move(portal->execution);
  portal->pending = nullptr;
  portal->statement->view.reset();
  if (execution == nullptr || !execution->restartable()) return;
  if (execution->rows_affected() > kMaxSpareRows) return;
  execution->Release();
  portal->prepared->spare = std::move(execution);
}

Result<ExecuteOutcome> Session::Impl::PumpPortal(Portal* portal, uint64_t max_rows,
                                                 ResultSink* sink, bool send_columns, bool* sent) {
  const bool returns_rows = portal->materialized || portal->prepared->returns_rows;
  uint64_t left = max_rows == 0 ? UINT64_MAX : max_rows;
  bool columns_sent = !send_columns || !returns_rows;
  RowBatch slice;
  while (!portal->finished) {
    if (portal->pending == nullptr) {
      // Rows that FETCH has read ahead come before those still to be made.
      if (portal->position < portal->rows.size()) {
        portal->pending = &portal->rows;
        portal->pending_row = portal->position;
      } else if (portal->execution == nullptr || portal->exhausted) {
        portal->finished = true;
        break;
      } else {
        CELLAR_TRY_ASSIGN(portal->pending, NextRows(portal));
        portal->pending_row = 0;
        if (portal->pending == nullptr) {
          portal->exhausted = portal->finished = true;
          break;
        }
      }
    }
    if (!columns_sent) {
      *sent = true;
      CELLAR_TRY(sink->OnColumns(portal->result_columns()));
      columns_sent = true;
    }
    const size_t available = portal->pending->size() - portal->pending_row;
    const size_t count = static_cast<size_t>(std::min<uint64_t>(left, available));
    *sent = true;
    portal->prepared->announced = true;
    if (count == portal->pending->size()) {
      CELLAR_TRY(sink->OnRows(*portal->pending));
    } else {
      SliceBatch(*portal->pending, portal->pending_row, portal->pending_row + count, &slice);
      CELLAR_TRY(sink->OnRows(slice));
    }
    portal->rows_sent += count;
    portal->pending_row += count;
    if (portal->pending == &portal->rows) portal->position += count;
    left -= count;
    if (portal->pending_row >= portal->pending->size()) portal->pending = nullptr;
    if (left == 0 && max_rows != 0) return ExecuteOutcome::kSuspended;
  }
  if (!columns_sent) {
    *sent = true;
    CELLAR_TRY(sink->OnColumns(portal->result_columns()));
  }
  return ExecuteOutcome::kComplete;
}

std::string Session::Impl::CompletionTag(const Portal& portal) const {
  if (!portal.tag.empty()) return portal.tag;
  const Prepared& prepared = *portal.prepared;
  const uint64_t affected =
      portal.execution != nullptr ? portal.execution->rows_affected() : portal.rows_sent;
  switch (prepared.plan->kind) {
    case sql::StatementKind::kInsert: return fmt::format("INSERT 0 {}", affected);
    case sql::StatementKind::kUpdate: return fmt::format("UPDATE {}", affected);
    case sql::StatementKind::kDelete: return fmt::format("DELETE {}", affected);
    case sql::StatementKind::kSelect: return fmt::format("SELECT {}", portal.rows_sent);
  }
  return "SELECT 0";
}

Status Session::Impl::RunStatement(const std::shared_ptr<Prepared>& prepared, ResultSink* sink,
                                   bool send_columns, std::string* tag) {
  Portal portal(statement);
  portal.prepared = prepared;
  bool sent = false;
  if (prepared->plannable) {
    CELLAR_TRY(StartPortal(&portal));
  } else {
    CELLAR_TRY(RunUtility(*prepared, &portal, sink, &portal.tag));
    if (!portal.materialized) {
      *tag = portal.tag;
      return Status();
    }
  }
  CELLAR_TRY_ASSIGN(ExecuteOutcome outcome, PumpPortal(&portal, 0, sink, send_columns, &sent));
  CELLAR_CHECK(outcome == ExecuteOutcome::kComplete);
  *tag = CompletionTag(portal);
  return Status();
}

namespace {

// Remembers whether anything has reached the client, after which nothing may be run again.
class WatchingSink : public ResultSink {
 public:
  explicit WatchingSink(ResultSink* sink) : sink_(sink) {}
  bool touched() const { return touched_; }

  Status OnColumns(std::span<const ResultColumn> columns) override {
    return Touch().OnColumns(columns);
  }
  Status OnRows(const RowBatch& batch) override { return Touch().OnRows(batch); }
  Status OnComplete(std::string_view tag) override { return Touch().OnComplete(tag); }
  Status OnEmptyQuery() override { return Touch().OnEmptyQuery(); }
  Status OnNotice(const Notice& notice) override { return sink_->OnNotice(notice); }
  Status OnParameter(std::string_view name, std::string_view value) override {
    return sink_->OnParameter(name, value);
  }
  Status OnNotification(int32_t pid, std::string_view channel, std::string_view payload) override {
    return sink_->OnNotification(pid, channel, payload);
  }
  Status OnCopyInColumns(std::span<const ResultColumn> columns) override {
    return sink_->OnCopyInColumns(columns);
  }
  Status OnCopyIn(int columns, bool binary) override { return Touch().OnCopyIn(columns, binary); }
  Result<bool> ReadCopyData(std::string* chunk) override { return Touch().ReadCopyData(chunk); }
  Status OnCopyOut(int columns, bool binary) override { return Touch().OnCopyOut(columns, binary); }
  Status OnCopyData(std::string_view data) override { return Touch().OnCopyData(data); }
  Status OnCopyOutEnd() override { return Touch().OnCopyOutEnd(); }

 private:
  ResultSink& Touch() {
    touched_ = true;
    return *sink_;
  }
  ResultSink* sink_;
  bool touched_ = false;
};

}  // namespace

Status Session::Impl::ExecuteSimple(std::string_view text, ResultSink* sink) {
  Statement first(text);
  StatementScope running(this, &first, sink);
  return Guarded([&] { return RunMessage(text, &running, sink); });
}

Status Session::Impl::RunMessage(std::string_view text, StatementScope* running, ResultSink* sink) {
  Result<std::vector<sql::Statement>> parsed = sql::Parse(text);
  if (!parsed.ok()) {
    Fail();
    return AddPosition(parsed.status(), text);
  }
  if (parsed->empty()) return sink->OnEmptyQuery();
  const bool single = parsed->size() == 1;
  statement->commits_by_itself = single;
  const auto whole = std::make_shared<const std::string>(text);
  for (sql::Statement& one : *parsed) {
    if (&one != parsed->data()) {
      running->Continue();
      statement->commits_by_itself = false;
    }
    auto tree = std::make_shared<const sql::Statement>(std::move(one));
    WatchingSink watch(sink);
    std::string tag;
    Status status;
    const auto began = std::chrono::steady_clock::now();
    for (int attempt = 0;; ++attempt) {
      status = cancel.Check();
      if (status.ok() && failed && !EndsFailedBlock(*tree->ast)) status = FailedBlockError();
      const bool alone = single && !in_block && transaction == nullptr;
      if (status.ok()) {
        Result<std::shared_ptr<Prepared>> prepared = Prepare("", whole, tree, {});
        status = prepared.ok() ? RunStatement(*prepared, &watch, true, &tag) : prepared.status();
        if (status.ok() && !IsTransactionControl(*tree->ast) && alone && !in_block)
          status = Commit(&watch);
      }
      if (status.ok()) break;
      Fail();
      if (!alone || watch.touched() || TooLong(began) || !RetryAfter(status, attempt)) break;
      ++statement->conflicts;
    }
    if (!status.ok()) {
      status = catalog::ExplainUnreadable(std::move(status));
      return AddPosition(HideValues(this, std::move(status)), text);
    }
    CELLAR_TRY(SendParameterChanges(sink));
    // In a transaction of several statements the tags come as the statements end, as in PostgreSQL.
    CELLAR_TRY(sink->OnComplete(tag));
  }
  if (transaction != nullptr && !in_block) {
    Status status = Commit(sink);
    if (!status.ok()) return HideValues(this, std::move(status));
  }
  for (const NotificationHub::Message& message : db->notifications.Take(pid)) {
    CELLAR_TRY(sink->OnNotification(message.pid, message.channel, message.payload));
  }
  return Status();
}

// ---- Session
// ----------------------------------------------------------------------------------------------

namespace {

Status ShuttingDown() {
  return SqlError(Code::kUnavailable, sqlstate::kCannotConnectNow,
                  "the database system is shutting down");
}

}  // namespace

Session::Session() = default;

Session::~Session() {
  if (impl_ == nullptr) return;
  Database::Impl* db = impl_->db;
  impl_->entry->SetWake({});
  db->notifications.Unlisten(impl_->pid, "");
  impl_->advisory_locks.ReleaseAll();
  impl_->Rollback();
  impl_->DropTemporarySchema();
  if (impl_->pauses_sealing) db->sealing->Resume();
  // Who waits for its end may count on all of the above.
  db->sessions.Remove(impl_->pid);
}

Result<std::unique_ptr<Session>> Session::Open(Database* database, const SessionOptions& options) {
  Database::Impl* db = database->impl();
  if (db->shutting_down.load()) return ShuttingDown();
  // tidy: allow(new) the constructor is private
  std::unique_ptr<Session> session(new Session);  // NOLINT: private constructor
  session->impl_ = std::make_unique<Impl>(db, options);
  Impl& impl = *session->impl_;
  catalog::ForgetUnreadableMet();
  catalog::NamespacePtr space =
      db->catalog->Current()->FindNamespace(catalog::kRootNamespace, options.database);
  if (space == nullptr) {
    return catalog::ExplainUnreadable(SqlError(Code::kNotFound, sqlstate::kInvalidCatalogName,
                                               "database \"{}\" does not exist", options.database));
  }
  impl.database_id = space->id;
  CELLAR_TRY(impl.settings.SetDefault("session_authorization", options.user));
  impl.login_oid = db->roles->Current()->OidOf(options.user);
  impl.roles_set[options.user] = impl.login_oid;
  impl.FollowRoles();
  CELLAR_TRY(impl.CheckLogin(*space, false));
  if (!db->options.durable_commits)
    CELLAR_TRY(impl.settings.SetDefault("synchronous_commit", "off"));
  CELLAR_TRY(impl.settings.SetDefault("work_mem",
                                      fmt::format("{}", db->options.memory_limit_bytes >> 10)));
  if (!db->options.table_layout.empty())
    CELLAR_TRY(impl.settings.SetDefault("default_table_layout", db->options.table_layout));
  if (!db->options.seal.empty())
    CELLAR_TRY(impl.settings.SetDefault("cellar.seal", db->options.seal));
  CELLAR_TRY(
      impl.settings.SetDefault("max_connections", std::to_string(db->options.max_connections)));
  CELLAR_TRY(impl.settings.SetDefault("superuser_reserved_connections",
                                      std::to_string(db->options.superuser_reserved_connections)));
  if (options.of_client) {
    CELLAR_TRY(
        impl.settings.SetDefault("default_transaction_isolation", db->options.client_isolation));
  }
  CELLAR_TRY(impl.ApplyRoleSettings());
  for (const auto& [name, value] : options.settings) {
    if (!impl.settings.Get(name) && name.find('.') == std::string::npos) {
      return SqlError(Code::kInvalid, sqlstate::kUndefinedObject,
                      "unrecognized configuration parameter \"{}\"", name);
    }
    std::string plain = value;
    if (plain.size() >= 2 && plain.front() == '\'' && plain.back() == '\'')
      plain = plain.substr(1, plain.size() - 2);
    if (name == "role" || name == "session_authorization")
      CELLAR_TRY(impl.CheckRoleSetting(name, plain));
    CELLAR_TRY(impl.settings.SetDefault(name, plain));
  }
  impl.FollowRoles();
  (void)impl.settings.TakeChanges();
  impl.seal_rate_kb = impl.settings.hot().seal_rate_kb;
  impl.FollowSealSettings();
  impl.entry->SetDatabase(impl.database_id.value, impl.database_name);
  impl.ShowRest();
  if (!db->sessions.Add(impl.entry)) return ShuttingDown();
  return session;
}

Status Session::ExecuteSimple(std::string_view text, ResultSink* sink) {
  return impl_->ExecuteSimple(text, sink);
}

Status Session::Parse(const std::string& name, std::string_view text,
                      std::span<const uint32_t> parameter_oids, ResultSink* sink) {
  Impl& impl = *impl_;
  Statement statement(text);
  StatementScope running(&impl, &statement, sink);
  auto run = [&]() -> Status {
    CELLAR_TRY(impl.cancel.Check());
    if (!name.empty() && impl.statements.count(name) != 0) {
      return SqlError(Code::kExists, sqlstate::kDuplicatePreparedStatement,
                      "prepared statement \"{}\" already exists", name);
    }
    if (impl.statements.size() >= kMaxPrepared) {
      return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                      "too many prepared statements");
    }
    Result<sql::Statement> parsed = sql::ParseOne(text);
    if (!parsed.ok()) return impl.AddPosition(parsed.status(), text);
    std::vector<Type> types;
    for (uint32_t oid : parameter_oids) {
      std::optional<Type> type = oid == 0 ? Type{} : sql::TypeOfOid(*impl.CurrentCatalog(), oid);
      if (!type) {
        return SqlError(Code::kInvalid, sqlstate::kUndefinedObject,
                        "type with OID {} does not exist", oid);
      }
      if (type->id == TypeId::kUnknown) type = Type{};
      types.push_back(*type);
    }
    CELLAR_TRY_ASSIGN(
        std::shared_ptr<Prepared> prepared,
        impl.Prepare(name, std::make_shared<const std::string>(text),
                     std::make_shared<const sql::Statement>(std::move(*parsed)), std::move(types)));
    if (!name.empty()) CELLAR_TRY(impl.ChargeNamed(&statement, prepared.get()));
    impl.statements[name] = std::move(prepared);
    return Status();
  };
  Status status = catalog::ExplainUnreadable(impl.Guarded(run));
  if (!status.ok()) impl.Fail();
  return status;
}

Result<StatementDescription> Session::DescribeStatement(const std::string& name) {
  auto at = impl_->statements.find(name);
  if (at == impl_->statements.end()) {
    impl_->Fail();
    return NoSuchStatement(name);
  }
  Prepared& prepared = *at->second;
  prepared.announced = true;
  StatementDescription description;
  for (const Type& type : prepared.parameter_types) {
    description.parameter_oids.push_back(type.id == TypeId::kInvalid ? 25 : OidOf(type));
  }
  description.columns = prepared.columns;
  description.returns_rows = prepared.returns_rows;
  return description;
}

Status Session::Bind(const std::string& portal_name, const std::string& statement_name,
                     std::span<const BoundParameter> parameters) {
  Impl& impl = *impl_;
  auto run = [&]() -> Status {
    auto at = impl.statements.find(statement_name);
    if (at == impl.statements.end()) {
      return NoSuchStatement(statement_name);
    }
    const std::shared_ptr<Prepared>& prepared = at->second;
    if (impl.failed && prepared->statement->ast != nullptr &&
        !EndsFailedBlock(*prepared->statement->ast)) {
      return FailedBlockError();
    }
    if (parameters.size() != prepared->parameter_types.size()) {
      return SqlError(
          Code::kInvalid, sqlstate::kProtocolViolation,
          "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
          parameters.size(), statement_name, prepared->parameter_types.size());
    }
    auto existing = impl.portals.find(portal_name);
    if (existing != impl.portals.end() && !portal_name.empty()) {
      return SqlError(Code::kExists, sqlstate::kDuplicateCursor, "cursor \"{}\" already exists",
                      portal_name);
    }
    if (impl.portals.size() >= kMaxPortals) {
      return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded, "too many portals");
    }
    auto portal = std::make_unique<Portal>();
    portal->name = portal_name;
    portal->statement->text = prepared->text;
    portal->prepared = prepared;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const BoundParameter& parameter = parameters[i];
      Type type = impl.Refreshed(prepared->parameter_types[i]);
      if (type.id == TypeId::kInvalid) type = MakeType(TypeId::kText);
      if (parameter.is_null) {
        portal->parameters.push_back(Datum());
        continue;
      }
      Result<Datum> value =
          parameter.binary
              ? ParseDatumBinary(parameter.bytes, type, &portal->arena)
              : ParseDatum(parameter.bytes, type, impl.settings.format(), &portal->arena);
      if (!value.ok()) {
        return value.status().context().empty()
                   ? std::move(value).status().WithContext(
                         fmt::format("portal \"{}\" parameter ${}", portal_name, i + 1))
                   : std::move(value).status();
      }
      portal->parameters.push_back(*value);
    }
    if (!portal_name.empty()) {
      portal->charge = MemoryCharge(impl.AccountOf(portal->statement.get()));
      CELLAR_TRY(portal->charge.Resize(sizeof(Portal) + prepared->execution_bytes()));
    }
    impl.portals[portal_name] = std::move(portal);
    return Status();
  };
  Status status = impl.Guarded(run);
  if (!status.ok()) impl.Fail();
  return status;
}

Result<std::vector<ResultColumn>> Session::DescribePortal(const std::string& name,
                                                          bool* returns_rows) {
  auto at = impl_->portals.find(name);
  if (at == impl_->portals.end()) {
    impl_->Fail();
    return SqlError(Code::kNotFound, sqlstate::kInvalidCursorName, "portal \"{}\" does not exist",
                    name);
  }
  const Portal& portal = *at->second;
  if (!portal.started && !portal.prepared->announced && !impl_->failed) {
    // What is told now must be what the execution gives.
    Statement statement(portal.prepared->text);
    StatementScope running(impl_.get(), &statement, nullptr);
    Status status = impl_->Guarded([&] { return impl_->EnsurePlan(portal.prepared.get()); });
    if (!status.ok()) {
      impl_->Fail();
      return status;
    }
  }
  portal.prepared->announced = true;
  *returns_rows = portal.materialized || portal.prepared->returns_rows;
  return portal.result_columns();
}

Result<ExecuteOutcome> Session::ExecutePortal(const std::string& name, uint64_t max_rows,
                                              bool sync_follows, ResultSink* sink) {
  Impl& impl = *impl_;
  const auto at = impl.portals.find(name);
  if (at == impl.portals.end()) {
    impl.Fail();
    return SqlError(Code::kNotFound, sqlstate::kInvalidCursorName, "portal \"{}\" does not exist",
                    name);
  }
  // They outlive the portal, which an error drops.
  const std::shared_ptr<Statement> statement = at->second->statement;
  const std::shared_ptr<Prepared> kept_text = at->second->prepared;
  StatementScope running(&impl, statement.get(), sink);
  auto run = [&]() -> Result<ExecuteOutcome> {
    CELLAR_TRY(impl.cancel.Check());
    Portal* portal = at->second.get();
    const Prepared& prepared = *portal->prepared;
    if (prepared.statement->ast == nullptr) {
      CELLAR_TRY(sink->OnEmptyQuery());
      return ExecuteOutcome::kComplete;
    }
    const ast::Node& node = *prepared.statement->ast;
    if (impl.failed && !EndsFailedBlock(node)) return FailedBlockError();
    statement->commits_by_itself = sync_follows;
    const bool alone =
        sync_follows && !impl.in_block && impl.transaction == nullptr && !portal->started;
    bool sent = false;
    statement->conflicts = 0;
    const auto began = std::chrono::steady_clock::now();
    for (int attempt = 0;; ++attempt) {
      auto once = [&]() -> Result<ExecuteOutcome> {
        if (!portal->started && !portal->materialized) {
          if (prepared.plannable) {
            CELLAR_TRY(impl.StartPortal(portal));
          } else {
            // Transaction statements destroy portals: keep this one out of their way.
            std::unique_ptr<Portal> kept = std::move(impl.portals[name]);
            impl.portals.erase(name);
            Status status = impl.RunUtility(prepared, kept.get(), sink, &kept->tag);
            impl.portals[name] = std::move(kept);
            CELLAR_TRY(std::move(status));
            portal->started = true;
            if (!portal->materialized) portal->finished = true;
          }
        }
        return impl.PumpPortal(portal, max_rows, sink, false, &sent);
      };
      Result<ExecuteOutcome> outcome = once();
      std::string tag;
      if (outcome.ok() && *outcome == ExecuteOutcome::kComplete) {
        tag = portal->tag = impl.CompletionTag(*portal);
        impl.Recycle(portal);
        if (alone && !impl.in_block && impl.transaction != nullptr) {
          // The commit would drop portals that run in the transaction; this one is done.
          std::unique_ptr<Portal> kept = std::move(impl.portals[name]);
          impl.portals.erase(name);
          Status committed = impl.Commit(sink);
          impl.portals[name] = std::move(kept);
          if (!committed.ok()) outcome = committed;
        }
      }
      if (outcome.ok()) {
        if (*outcome == ExecuteOutcome::kComplete) {
          CELLAR_TRY(impl.SendParameterChanges(sink));
          CELLAR_TRY(sink->OnComplete(tag));
        }
        return outcome;
      }
      if (!alone || sent || !(prepared.plannable || ChangesOneTable(node)) ||
          !ShouldRetry(outcome.status()) || attempt >= kMaxRetries || TooLong(began)) {
        return outcome;
      }
      // Start over with the same parameters.
      std::unique_ptr<Portal> kept = std::move(impl.portals[name]);
      impl.portals.erase(name);
      kept->execution.reset();
      kept->started = kept->finished = kept->exhausted = false;
      kept->pending = nullptr;
      kept->rows_sent = 0;
      impl.Rollback();
      impl.portals[name] = std::move(kept);
      ++statement->conflicts;
      impl.RetryAfter(outcome.status(), attempt);
    }
  };
  Result<ExecuteOutcome> outcome = impl.Guarded(run);
  if (!outcome.ok()) {
    Status status = catalog::ExplainUnreadable(outcome.status());
    status = impl.AddPosition(HideValues(&impl, std::move(status)), kept_text->text);
    impl.Fail();
    return status;
  }
  return outcome;
}

Status Session::CloseStatement(const std::string& name) {
  impl_->statements.erase(name);
  return Status();
}

Status Session::ClosePortal(const std::string& name) {
  impl_->portals.erase(name);
  return Status();
}

Status Session::Sync(ResultSink* sink) {
  Impl& impl = *impl_;
  Status status;
  if (!impl.in_block && impl.transaction != nullptr) {
    status = impl.Guarded([&] { return impl.Commit(sink); });
    if (!status.ok()) impl.Rollback();
  }
  if (!impl.in_block) {
    // The unnamed portal and others of the implicit transaction end here; cursors WITH HOLD stay.
    for (auto at = impl.portals.begin(); at != impl.portals.end();) {
      at = at->second->hold ? std::next(at) : impl.portals.erase(at);
    }
    for (const NotificationHub::Message& message : impl.db->notifications.Take(impl.pid)) {
      CELLAR_TRY(sink->OnNotification(message.pid, message.channel, message.payload));
    }
  }
  return status;
}

char Session::transaction_status() const {
  if (!impl_->in_block) return 'I';
  return impl_->failed ? 'E' : 'T';
}

const FormatSettings& Session::format() const { return impl_->settings.format(); }

std::vector<std::pair<std::string, std::string>> Session::ReportedParameters() const {
  std::vector<std::pair<std::string, std::string>> parameters;
  for (const std::string& name : impl_->settings.ReportedNames()) {
    parameters.emplace_back(name, *impl_->settings.Get(name));
  }
  return parameters;
}

int32_t Session::pid() const { return impl_->pid; }
int32_t Session::cancel_secret() const { return impl_->entry->secret(); }

void Session::Fail() { impl_->Fail(); }

void AppendValueText(Session::Impl& session, Datum value, Type type, std::string* out) {
  if (sql::PrintsName(type.id)) {
    const auto print = [&](uint32_t oid) { return session.PrintReg(type.id, oid); };
    if (type.array) {
      sql::AppendNamesOfArray(value.bytes(), ElementTypeOf(type), session.settings.format(), print,
                              out);
    } else {
      out->append(print(static_cast<uint32_t>(value.int_value())));
    }
    return;
  }
  AppendDatumText(value, type, session.settings.format(), out);
}

Result<Datum> ParseValueText(Session::Impl& session, std::string_view text, Type type,
                             Arena* arena) {
  const FormatSettings& format = session.settings.format();
  if (!sql::PrintsName(type.id)) return ParseDatum(text, type, format, arena);
  const auto look_up = [&](std::string_view name) -> Result<Datum> {
    CELLAR_TRY_ASSIGN(const uint32_t oid, session.LookupReg(type.id, name));
    return Datum::Int(oid);
  };
  if (!type.array) return look_up(text);
  const Type names_type = ArrayOf(TypeId::kText);
  CELLAR_TRY_ASSIGN(const Datum names, ParseDatum(text, names_type, format, arena));
  const ArrayView view(names.bytes(), ElementTypeOf(names_type));
  ArrayBuilder oids(ElementTypeOf(type));
  for (size_t i = 0; i < view.size(); ++i) {
    Datum oid;
    if (!view.IsNull(i)) {
      CELLAR_TRY_ASSIGN(oid, look_up(view.Get(i).bytes()));
    }
    oids.Add(oid);
  }
  std::vector<int32_t> lengths, bounds;
  for (int i = 0; i < view.dimensions(); ++i) {
    lengths.push_back(view.length(i));
    bounds.push_back(view.lower_bound(i));
  }
  return Datum::Bytes(lengths.empty() ? oids.Finish(arena) : oids.Finish(lengths, bounds, arena));
}

void Session::AppendText(Datum value, Type type, std::string* out) {
  AppendValueText(*impl_, value, type, out);
}

int64_t Session::SettingNumber(std::string_view name) const {
  return impl_->settings.Get(name) ? impl_->settings.GetInt(name) : 0;
}

bool Session::listening() const { return impl_->db->notifications.Listens(impl_->pid); }

Status Session::TakeNotifications(ResultSink* sink) {
  if (impl_->in_block) return Status();
  for (const NotificationHub::Message& message : impl_->db->notifications.Take(impl_->pid)) {
    CELLAR_TRY(sink->OnNotification(message.pid, message.channel, message.payload));
  }
  return Status();
}

void Session::Cancel(bool shutdown) {
  if (shutdown) return impl_->entry->End(CancelToken::Reason::kShutdown);
  impl_->cancel.Cancel(CancelToken::Reason::kUser);
}

void Session::ClientGone() { impl_->entry->End(CancelToken::Reason::kClientGone); }

void Session::SetWake(std::function<void()> wake) { impl_->entry->SetWake(std::move(wake)); }

bool Session::ending() const { return impl_->cancel.ends_session(); }

}  // namespace cellar::session
