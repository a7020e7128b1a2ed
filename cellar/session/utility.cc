// Statements that are neither queries nor schema: settings, EXPLAIN, prepared statements, cursors,
// notifications.
#include <algorithm>
#include <cmath>

#include "cellar/base/sqlstate.h"
#include "cellar/codec/key.h"
#include "cellar/session/lock_view.h"
#include "cellar/session/session_internal.h"
#include "cellar/session/still_current.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::session {
namespace {

// One column of text lines.
void SetLines(const std::string& column, const std::vector<std::string>& lines, Portal* portal) {
  const Type text = MakeType(TypeId::kText);
  portal->columns = {{column, text}};
  portal->rows.Reset({&text, 1});
  for (const std::string& line : lines) {
    const Datum value = Datum::Bytes(line);
    portal->rows.AppendRow({&value, 1});
  }
  portal->materialized = true;
}

void AppendTextRow(std::initializer_list<std::string_view> values, RowBatch* rows) {
  std::vector<Datum> row;
  for (std::string_view value : values) row.push_back(Datum::Bytes(value));
  rows->AppendRow(row);
}

bool SettingBool(const ast::OptionList& options, std::string_view name, bool fallback,
                 Status* status) {
  const ast::Option* option = ast::FindOption(options, name);
  if (option == nullptr) return fallback;
  const ast::Option::BoolValue value = option->ToBool();
  if (!value.valid) {
    *status = SqlError(Code::kInvalid, sqlstate::kSyntaxError, "{} requires a Boolean value", name);
  }
  return value.value;
}

}  // namespace

std::string SettingText(const ast::VariableSetStmt& statement) {
  if (statement.name != "search_path") return statement.ValueText();
  std::string value;
  for (const ast::ExprPtr& item : statement.values) {
    if (!value.empty()) value += ", ";
    if (item->kind == ast::NodeKind::kConst) {
      const auto& constant = item->As<ast::Const>();
      value += constant.text.empty() ? "\"\"" : sql::QuoteIdentifier(constant.text);
    }
  }
  return value;
}

Status Session::Impl::RunSet(const ast::VariableSetStmt& statement, ResultSink* sink,
                             std::string* tag) {
  *tag = statement.set_kind == ast::SetKind::kReset || statement.set_kind == ast::SetKind::kResetAll
             ? "RESET"
             : "SET";
  if (statement.local && !in_block) {
    CELLAR_TRY(Notify(sink, Severity::kWarning, sqlstate::kNoActiveSqlTransaction,
                      "SET LOCAL can only be used in transaction blocks"));
  }
  switch (statement.set_kind) {
    case ast::SetKind::kResetAll: settings.ResetAll(); return Status();
    case ast::SetKind::kReset:
    case ast::SetKind::kDefault:
      // RESET of the session's role takes SET ROLE along.
      if (statement.name == "session_authorization") CELLAR_TRY(settings.Reset("role"));
      return settings.Reset(statement.name);
    case ast::SetKind::kTransaction:
      if (!in_block) {
        return Notify(sink, Severity::kWarning, sqlstate::kNoActiveSqlTransaction,
                      "SET TRANSACTION can only be used in transaction blocks");
      }
      return ApplyModes(statement.modes);
    case ast::SetKind::kSessionTransaction: {
      const ast::TransactionModes& modes = statement.modes;
      if (modes.isolation != ast::Isolation::kUnset) {
        const char* level = modes.isolation == ast::Isolation::kReadCommitted ? "read committed"
                            : modes.isolation == ast::Isolation::kReadUncommitted
                                ? "read uncommitted"
                            : modes.isolation == ast::Isolation::kRepeatableRead ? "repeatable read"
                                                                                 : "serializable";
        CELLAR_TRY(settings.Set("default_transaction_isolation", level, false));
      }
      if (modes.read_only != ast::Tristate::kUnset) {
        CELLAR_TRY(settings.Set("default_transaction_read_only",
                                modes.read_only == ast::Tristate::kTrue ? "on" : "off", false));
      }
      if (modes.deferrable != ast::Tristate::kUnset) {
        CELLAR_TRY(settings.Set("default_transaction_deferrable",
                                modes.deferrable == ast::Tristate::kTrue ? "on" : "off", false));
      }
      return Status();
    }
    case ast::SetKind::kTransactionSnapshot:
      return UnsupportedError("SET TRANSACTION SNAPSHOT is not supported");
    case ast::SetKind::kFromCurrent: return UnsupportedError("SET FROM CURRENT is not supported");
    case ast::SetKind::kValue: break;
  }
  std::string value = SettingText(statement);
  if (statement.name == "role" || statement.name == "session_authorization") {
    CELLAR_TRY(CheckRoleSetting(statement.name, value));
    if (statement.name == "session_authorization")
      CELLAR_TRY(settings.Set("role", "none", statement.local));
  }
  if (statement.name == "timezone" && statement.values.size() == 1 &&
      statement.values[0]->kind == ast::NodeKind::kTypeCast) {
    // SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE
    CELLAR_TRY_ASSIGN(Interval interval, ParseInterval(value, -1, settings.format()));
    value = fmt::format("{}", static_cast<double>(interval.micros) / 3600e6);
  }
  if (statement.name == "transaction_isolation" || statement.name == "transaction_read_only") {
    ast::TransactionModes modes;
    if (statement.name == "transaction_read_only") {
      modes.read_only = value == "on" || value == "true" || value == "1" ? ast::Tristate::kTrue
                                                                         : ast::Tristate::kFalse;
    } else {
      modes.isolation = value == "repeatable read"  ? ast::Isolation::kRepeatableRead
                        : value == "read committed" ? ast::Isolation::kReadCommitted
                                                    : ast::Isolation::kSerializable;
    }
    return in_block ? ApplyModes(modes) : Status();
  }
  return settings.Set(statement.name, value, statement.local);
}

const sql::VirtualTable* Session::Impl::ListShownBy(std::string_view name) const {
  if (name == "dropped") return db->system.Find("pg_catalog", "cellar_dropped");
  return nullptr;
}

Status Session::Impl::RunShow(const ast::VariableShowStmt& statement, Portal* portal) {
  if (statement.name == "all") {
    const Type text = MakeType(TypeId::kText);
    portal->columns = {{"name", text}, {"setting", text}, {"description", text}};
    const Type types[] = {text, text, text};
    portal->rows.Reset(types);
    for (const SettingInfo& info : settings.All()) {
      AppendTextRow({info.name, *settings.Get(info.name), info.description}, &portal->rows);
    }
    portal->materialized = true;
    portal->tag = "SHOW";
    return Status();
  }
  if (const sql::VirtualTable* listed = ListShownBy(statement.name)) {
    CELLAR_TRY(EnsureTransaction(true));
    for (const sql::OutputColumn& column : listed->columns)
      portal->columns.push_back({column.name, column.type});
    CELLAR_TRY(Generate(listed->schema, listed->name, -1, Datum(), &portal->rows));
    portal->materialized = true;
    portal->tag = "SHOW";
    return Status();
  }
  // Outside of a block it is a transaction of its own.
  if (!in_block && transaction == nullptr) CELLAR_TRY(settings.SetDefaultModes());
  std::optional<std::string> value = settings.Get(statement.name);
  if (!value) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                    "unrecognized configuration parameter \"{}\"", statement.name);
  }
  SetLines(settings.CanonicalName(statement.name), {*value}, portal);
  portal->tag = "SHOW";
  return Status();
}

Status Session::Impl::RunExplain(const ast::ExplainStmt& statement, const Prepared& prepared,
                                 Portal* portal) {
  sql::ExplainOptions explain;
  Status status;
  explain.analyze = SettingBool(statement.options, "analyze", false, &status);
  explain.verbose = SettingBool(statement.options, "verbose", false, &status);
  explain.costs = SettingBool(statement.options, "costs", true, &status);
  explain.timing = SettingBool(statement.options, "timing", true, &status);
  const bool summary = SettingBool(statement.options, "summary", explain.analyze, &status);
  CELLAR_TRY(std::move(status));
  if (const ast::Option* format = ast::FindOption(statement.options, "format")) {
    if (format->ToText() != "text")
      return UnsupportedError("EXPLAIN format \"{}\" is not supported", format->ToText());
  }
  const ast::Node* query = statement.query.get();
  std::vector<Type> types = prepared.client_types;
  std::shared_ptr<const sql::Plan> plan;
  std::vector<Datum> parameters = portal->parameters;
  const auto start = std::chrono::steady_clock::now();
  portal->context.set_arena(&portal->arena);
  SetUpContext(&portal->context);
  if (query->kind == ast::NodeKind::kExecute) {
    auto at = statements.find(query->As<ast::ExecuteStmt>().name);
    if (at == statements.end()) {
      return SqlError(Code::kNotFound, sqlstate::kInvalidSqlStatementName,
                      "prepared statement \"{}\" does not exist",
                      query->As<ast::ExecuteStmt>().name);
    }
    CELLAR_TRY(EnsurePlan(at->second.get()));
    if (!at->second->plannable)
      return UnsupportedError("EXPLAIN of this statement is not supported");
    plan = at->second->plan;
    CELLAR_TRY(EvaluateExecuteArguments(query->As<ast::ExecuteStmt>(), *at->second, &portal->arena,
                                        &parameters));
  } else {
    if (query->kind == ast::NodeKind::kCreateTableAs)
      query = query->As<ast::CreateTableAsStmt>().query.get();
    switch (query->kind) {
      case ast::NodeKind::kSelect:
      case ast::NodeKind::kInsert:
      case ast::NodeKind::kUpdate:
      case ast::NodeKind::kDelete: break;
      default:
        SetLines("QUERY PLAN", {"Utility Statement"}, portal);
        portal->tag = "EXPLAIN";
        return Status();
    }
    sql::PlannerContext context = MakePlannerContext(types);
    context.fold = &portal->context;
    CELLAR_TRY_ASSIGN(plan, sql::PlanStatement(*query, context));
  }
  const auto planned = std::chrono::steady_clock::now();
  CELLAR_TRY(CheckPlan(*plan));
  std::vector<std::string> lines;
  if (!explain.analyze) {
    lines = sql::ExplainPlan(*plan, explain, {});
  } else {
    CELLAR_TRY(EnsureTransaction(false));
    if (!plan->read_only) CELLAR_TRY(CheckWritable("EXPLAIN"));
    CELLAR_TRY(RequireTables(*plan));
    portal->context.parameters = parameters;
    const catalog::SnapshotPtr catalog = CurrentCatalog();
    CELLAR_TRY_ASSIGN(sql::ExecEnvironment environment,
                      MakeEnvironment(this->statement, &portal->context, catalog.get()));
    environment.analyze = true;
    CELLAR_TRY_ASSIGN(std::unique_ptr<sql::Execution> execution,
                      sql::Execution::Open(plan, environment));
    bool checked = false;
    while (true) {
      CELLAR_TRY_ASSIGN(const RowBatch* batch,
                        session::NextRows(*this, plan->tables, execution.get(), &checked));
      if (batch == nullptr) break;
    }
    lines = sql::ExplainPlan(*plan, explain, execution->counters());
  }
  if (summary) {
    const auto end = std::chrono::steady_clock::now();
    auto millis = [](auto from, auto to) {
      return static_cast<double>(
                 std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count()) /
             1e6;
    };
    lines.push_back(fmt::format("Planning Time: {:.3f} ms", millis(start, planned)));
    if (explain.analyze)
      lines.push_back(fmt::format("Execution Time: {:.3f} ms", millis(planned, end)));
  }
  SetLines("QUERY PLAN", lines, portal);
  portal->tag = "EXPLAIN";
  return Status();
}

Status Session::Impl::EvaluateExecuteArguments(const ast::ExecuteStmt& statement,
                                               const Prepared& target, Arena* arena,
                                               std::vector<Datum>* parameters) {
  parameters->clear();
  if (statement.args.size() != target.parameter_types.size()) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                    "wrong number of parameters for prepared statement \"{}\"", statement.name)
        .WithDetail(fmt::format("Expected {} parameters but got {}.", target.parameter_types.size(),
                                statement.args.size()));
  }
  sql::PlannerContext context = MakePlannerContext({});
  sql::EvalContext eval;
  SetUpContext(&eval);
  eval.set_arena(arena);
  context.fold = &eval;
  for (size_t i = 0; i < statement.args.size(); ++i) {
    const Type type = Refreshed(target.parameter_types[i]);
    CELLAR_TRY_ASSIGN(sql::ExprPtr bound,
                      sql::BindTableExpression(*statement.args[i], nullptr, type, context));
    CELLAR_TRY_ASSIGN(Datum value, sql::EvalScalar(*bound, eval));
    parameters->push_back(CopyDatum(value, type, arena));
  }
  return Status();
}

Status Session::Impl::DeclareCursor(const ast::DeclareCursorStmt& statement,
                                    const Prepared& prepared) {
  if (!in_block && !statement.hold) {
    return SqlError(Code::kInvalid, sqlstate::kNoActiveSqlTransaction,
                    "DECLARE CURSOR can only be used in transaction blocks");
  }
  if (portals.count(statement.name) != 0) {
    return SqlError(Code::kExists, sqlstate::kDuplicateCursor, "cursor \"{}\" already exists",
                    statement.name);
  }
  auto target = std::make_shared<Prepared>();
  target->message = prepared.message;
  target->text = prepared.text;
  target->client_types = prepared.client_types;
  target->plannable = true;
  sql::PlannerContext context = MakePlannerContext(prepared.client_types);
  auto portal = std::make_unique<Portal>();
  const MemoryScope scope(AccountOf(portal->statement.get()));
  SetUpContext(&portal->context);
  portal->context.set_arena(&portal->arena);
  context.fold = &portal->context;
  // The cursor's query lives inside this statement's tree, which the plan does not need after
  // planning.
  CELLAR_TRY_ASSIGN(target->plan, sql::PlanStatement(*statement.query, context));
  if (target->plan->locks_rows && (statement.scroll || statement.hold)) {
    return UnsupportedError("DECLARE {}CURSOR {}... {} is not supported",
                            statement.scroll ? "SCROLL " : "", statement.scroll ? "" : "WITH HOLD ",
                            target->plan->lock_tag.substr(std::string_view("SELECT ").size()))
        .WithDetail(statement.scroll ? "Scrollable cursors must be READ ONLY."
                                     : "Holdable cursors must be READ ONLY.");
  }
  target->statement = prepared.statement;
  target->plan_generation = context.catalog->generation();
  target->settings_generation = settings.generation();
  target->planned_micros = NowMicros();
  target->returns_rows = true;
  for (const sql::OutputColumn& column : target->plan->output) {
    target->columns.push_back({column.name, column.type, column.table_oid, column.attnum});
  }
  portal->name = statement.name;
  portal->prepared = target;
  portal->columns = target->columns;
  portal->cursor = true;
  portal->scroll = statement.scroll;
  portal->hold = statement.hold;
  std::vector<Type> types;
  for (const ResultColumn& column : portal->columns) types.push_back(column.type);
  portal->rows.Reset(types);
  CELLAR_TRY(EnsureTransaction(false));
  CELLAR_TRY(CheckPlan(*target->plan));
  CELLAR_TRY(RequireTables(*target->plan));
  portal->catalog = CurrentCatalog();
  CELLAR_TRY_ASSIGN(
      sql::ExecEnvironment environment,
      MakeEnvironment(portal->statement.get(), &portal->context, portal->catalog.get()));
  environment.one_by_one = target->plan->locks_rows;
  // What it has taken of a sequence is what was fetched.
  if (target->plan->has_effects) environment.batch_rows = 1;
  // It shows what is there now, however late its first row is fetched.
  static_cast<void>(transaction->kv->snapshot_version(environment.view.get()));
  CELLAR_TRY_ASSIGN(portal->execution, sql::Execution::Open(target->plan, environment));
  portal->started = true;
  portal->statement->text = target->text;
  portals[statement.name] = std::move(portal);
  return Status();
}

Status Session::Impl::RunFetch(const ast::FetchStmt& statement, Portal* out, std::string* tag) {
  auto at = portals.find(statement.cursor);
  if (at == portals.end()) {
    return SqlError(Code::kNotFound, sqlstate::kInvalidCursorName, "cursor \"{}\" does not exist",
                    statement.cursor);
  }
  Portal& cursor = *at->second;
  const MemoryScope scope(AccountOf(cursor.statement.get()));
  using Direction = ast::FetchStmt::Direction;
  const bool keeps = cursor.scroll || cursor.hold;

  // A portal of the extended protocol may be a cursor too: started here if need be, and what a row
  // limit left of a batch goes first.
  if (!cursor.started && !cursor.materialized) {
    if (!cursor.prepared->plannable) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidCursorState,
                      "portal \"{}\" cannot be run as a cursor", cursor.name);
    }
    CELLAR_TRY(StartPortal(&cursor));
  }
  if (cursor.rows.num_columns() == 0) {
    std::vector<Type> types;
    for (const ResultColumn& column : cursor.result_columns()) types.push_back(column.type);
    cursor.rows.Reset(types);
  }
  if (cursor.pending != nullptr && cursor.pending != &cursor.rows) {
    std::vector<uint32_t> rest;
    for (size_t row = cursor.pending_row; row < cursor.pending->size(); ++row) {
      rest.push_back(static_cast<uint32_t>(row));
    }
    cursor.rows.AppendRows(*cursor.pending, rest);
  }
  cursor.pending = nullptr;

  // Rows of the cursor up to `wanted` (0-based, exclusive) are brought into cursor.rows; a cursor
  // that does not scroll drops what it has passed.
  auto read_until = [&](int64_t wanted) -> Status {
    while (!cursor.exhausted && cursor.execution != nullptr &&
           static_cast<int64_t>(cursor.rows.size()) < wanted) {
      CELLAR_TRY_ASSIGN(const RowBatch* batch, NextRows(&cursor));
      if (batch == nullptr) {
        cursor.exhausted = true;
        break;
      }
      cursor.rows.AppendAll(*batch);
      if (cursor.rows.footprint_bytes() > settings.hot().work_mem_bytes) {
        return SqlError(Code::kLimit, sqlstate::kOutOfMemory, "cursor \"{}\" holds too many rows",
                        cursor.name)
            .WithHint("Declare it NO SCROLL, or fetch less at once.");
      }
    }
    return Status();
  };

  std::vector<int64_t> picks;  // 0-based rows of cursor.rows, in order
  int64_t position =
      static_cast<int64_t>(cursor.position);  // rows before it are passed; on row position - 1
  auto scroll_error = [&]() {
    return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                    "cursor can only scan forward")
        .WithHint("Declare it with SCROLL option to enable backward scan.");
  };
  int64_t count = statement.count;
  Direction direction = statement.direction;
  if ((direction == Direction::kForward || direction == Direction::kBackward) && count < 0 &&
      count != -ast::FetchStmt::kAll) {
    direction = direction == Direction::kForward ? Direction::kBackward : Direction::kForward;
    count = -count;
  }
  switch (direction) {
    case Direction::kForward: {
      if (count == 0) {
        if (position > 0 && position <= static_cast<int64_t>(cursor.rows.size()))
          picks.push_back(position - 1);
        break;
      }
      if (!keeps && position > 0) {
        // Forget passed rows: the store starts at the current position again.
        RowBatch rest;
        std::vector<Type> types;
        for (const ResultColumn& column : cursor.result_columns()) types.push_back(column.type);
        rest.Reset(types);
        std::vector<uint32_t> left;
        for (size_t row = static_cast<size_t>(position); row < cursor.rows.size(); ++row) {
          left.push_back(static_cast<uint32_t>(row));
        }
        rest.AppendRows(cursor.rows, left);
        cursor.rows = std::move(rest);
        position = 0;
      }
      const int64_t wanted = count == ast::FetchStmt::kAll ? INT64_MAX : position + count;
      CELLAR_TRY(read_until(wanted));
      const int64_t end = std::min<int64_t>(wanted, static_cast<int64_t>(cursor.rows.size()));
      for (int64_t row = position; row < end; ++row) picks.push_back(row);
      position = end < wanted ? static_cast<int64_t>(cursor.rows.size()) + 1 : end;
      if (position > static_cast<int64_t>(cursor.rows.size()) && !cursor.scroll && !cursor.hold) {
        position = static_cast<int64_t>(cursor.rows.size());
      }
      break;
    }
    case Direction::kBackward: {
      if (!keeps) return scroll_error();
      // `position` rows have been passed, the last of them is the current row.
      int64_t row = std::min<int64_t>(position, static_cast<int64_t>(cursor.rows.size()) + 1) - 2;
      for (int64_t taken = 0; row >= 0 && (count == ast::FetchStmt::kAll || taken < count);
           ++taken) {
        picks.push_back(row--);
      }
      const bool ran_out =
          count == ast::FetchStmt::kAll || static_cast<int64_t>(picks.size()) < count;
      position = ran_out ? 0 : picks.back() + 1;
      break;
    }
    case Direction::kAbsolute:
    case Direction::kRelative: {
      int64_t target;  // 1-based row
      if (direction == Direction::kRelative) {
        target = position + count;
      } else if (count >= 0) {
        target = count;
      } else {
        CELLAR_TRY(read_until(INT64_MAX));
        target = static_cast<int64_t>(cursor.rows.size()) + 1 + count;
      }
      if (!keeps && target <= position && !(target == position && count == 0))
        return scroll_error();
      CELLAR_TRY(read_until(target));
      if (target >= 1 && target <= static_cast<int64_t>(cursor.rows.size()))
        picks.push_back(target - 1);
      position = std::clamp<int64_t>(target, 0, static_cast<int64_t>(cursor.rows.size()) + 1);
      break;
    }
  }
  cursor.position = static_cast<size_t>(position);
  cursor.finished = false;
  // The fetch that reads the end leaves the cursor open.
  if (statement.move) {
    *tag = fmt::format("MOVE {}", picks.size());
    return Status();
  }
  out->columns = cursor.result_columns();
  std::vector<Type> types;
  for (const ResultColumn& column : cursor.result_columns()) types.push_back(column.type);
  out->rows.Reset(types);
  std::vector<uint32_t> rows(picks.begin(), picks.end());
  out->rows.AppendRows(cursor.rows, rows);
  out->materialized = true;
  *tag = fmt::format("FETCH {}", picks.size());
  return Status();
}

Status Session::Impl::RunUtility(const Prepared& prepared, Portal* portal, ResultSink* sink,
                                 std::string* tag) {
  const ast::Node& node = *prepared.statement->ast;
  *tag = prepared.statement->tag;
  FollowRoles();
  switch (node.kind) {
    case ast::NodeKind::kTransaction:
      return RunTransactionStatement(node.As<ast::TransactionStmt>(), sink, tag);
    case ast::NodeKind::kVariableSet: return RunSet(node.As<ast::VariableSetStmt>(), sink, tag);
    case ast::NodeKind::kVariableShow: return RunShow(node.As<ast::VariableShowStmt>(), portal);
    case ast::NodeKind::kExplain: return RunExplain(node.As<ast::ExplainStmt>(), prepared, portal);
    case ast::NodeKind::kCopy: return RunCopy(prepared, sink, tag);
    case ast::NodeKind::kPrepare: {
      const auto& statement = node.As<ast::PrepareStmt>();
      if (statements.count(statement.name) != 0) {
        return SqlError(Code::kExists, sqlstate::kDuplicatePreparedStatement,
                        "prepared statement \"{}\" already exists", statement.name);
      }
      std::vector<Type> types;
      for (const ast::TypeName& name : statement.types) {
        int serial = 0;
        CELLAR_TRY_ASSIGN(Type type, TypeNamed(name, &serial));
        types.push_back(type);
      }
      // The tree of the query belongs to this statement: parse its text again for a tree of its
      // own.
      const auto text =
          std::make_shared<const std::string>(sql::DeparseStatement(*statement.query));
      Result<sql::Statement> parsed = sql::ParseOne(*text);
      if (!parsed.ok() && parsed.status().code() == Code::kLimit) return parsed.status();
      if (!parsed.ok() || parsed->ast == nullptr)
        return UnsupportedError("PREPARE of this statement is not supported");
      CELLAR_TRY_ASSIGN(
          std::shared_ptr<Prepared> made,
          Prepare(statement.name, text, std::make_shared<const sql::Statement>(std::move(*parsed)),
                  std::move(types)));
      made->from_sql = made->announced = true;
      CELLAR_TRY(ChargeNamed(this->statement, made.get()));
      statements[statement.name] = std::move(made);
      return Status();
    }
    case ast::NodeKind::kExecute: {
      const auto& statement = node.As<ast::ExecuteStmt>();
      auto at = statements.find(statement.name);
      if (at == statements.end()) {
        return SqlError(Code::kNotFound, sqlstate::kInvalidSqlStatementName,
                        "prepared statement \"{}\" does not exist", statement.name);
      }
      std::shared_ptr<Prepared> target = at->second;
      if (!target->plannable) return RunUtility(*target, portal, sink, tag);
      Portal run;
      run.prepared = target;
      CELLAR_TRY(EvaluateExecuteArguments(statement, *target, &run.arena, &run.parameters));
      CELLAR_TRY(StartPortal(&run));
      std::vector<Type> types;
      for (const ResultColumn& column : run.result_columns()) types.push_back(column.type);
      portal->columns = run.result_columns();
      portal->rows.Reset(types);
      while (true) {
        CELLAR_TRY_ASSIGN(const RowBatch* batch, NextRows(&run));
        if (batch == nullptr) break;
        portal->rows.AppendAll(*batch);
        run.rows_sent += batch->size();
      }
      portal->materialized = target->returns_rows;
      *tag = CompletionTag(run);
      return Status();
    }
    case ast::NodeKind::kDeallocate: {
      const std::string& name = node.As<ast::DeallocateStmt>().name;
      if (name.empty()) {
        *tag = "DEALLOCATE ALL";
        std::shared_ptr<Prepared> unnamed = statements.count("") ? statements[""] : nullptr;
        statements.clear();
        if (unnamed != nullptr) statements[""] = std::move(unnamed);
        return Status();
      }
      if (statements.erase(name) == 0) {
        return SqlError(Code::kNotFound, sqlstate::kInvalidSqlStatementName,
                        "prepared statement \"{}\" does not exist", name);
      }
      return Status();
    }
    case ast::NodeKind::kDeclareCursor:
      return DeclareCursor(node.As<ast::DeclareCursorStmt>(), prepared);
    case ast::NodeKind::kFetch: return RunFetch(node.As<ast::FetchStmt>(), portal, tag);
    case ast::NodeKind::kClosePortal: {
      const std::string& name = node.As<ast::ClosePortalStmt>().name;
      if (name.empty()) {
        *tag = "CLOSE CURSOR ALL";
        for (auto at = portals.begin(); at != portals.end();) {
          at = at->second->cursor ? portals.erase(at) : std::next(at);
        }
        return Status();
      }
      if (portals.erase(name) == 0) {
        return SqlError(Code::kNotFound, sqlstate::kInvalidCursorName,
                        "cursor \"{}\" does not exist", name);
      }
      return Status();
    }
    case ast::NodeKind::kListen:
      db->notifications.Listen(pid, node.As<ast::ListenStmt>().channel);
      return Status();
    case ast::NodeKind::kUnlisten:
      db->notifications.Unlisten(pid, node.As<ast::UnlistenStmt>().channel);
      return Status();
    case ast::NodeKind::kNotify: {
      CELLAR_TRY(EnsureTransaction(false));
      const auto& statement = node.As<ast::NotifyStmt>();
      transaction->notifies.push_back({pid, statement.channel, statement.payload});
      return Status();
    }
    case ast::NodeKind::kDiscard:
      switch (node.As<ast::DiscardStmt>().target) {
        case ast::DiscardStmt::Target::kAll:
          *tag = "DISCARD ALL";
          if (in_block) {
            return SqlError(Code::kInvalid, sqlstate::kActiveSqlTransaction,
                            "DISCARD ALL cannot run inside a transaction block");
          }
          portals.clear();
          statements.clear();
          settings.ResetAll();
          CELLAR_TRY(settings.Reset("session_authorization"));
          CELLAR_TRY(settings.Reset("role"));
          db->notifications.Unlisten(pid, "");
          DropTemporarySchema();
          temporary_namespace = {};
          sequence_values.clear();
          last_sequence.reset();
          return Status();
        case ast::DiscardStmt::Target::kPlans: *tag = "DISCARD PLANS"; return Status();
        case ast::DiscardStmt::Target::kSequences:
          *tag = "DISCARD SEQUENCES";
          sequence_values.clear();
          last_sequence.reset();
          return Status();
        case ast::DiscardStmt::Target::kTemp:
          *tag = "DISCARD TEMP";
          DropTemporarySchema();
          temporary_namespace = {};
          return Status();
      }
      return Status();
    case ast::NodeKind::kVacuum: return RunVacuum(node.As<ast::VacuumStmt>(), sink, tag);
    case ast::NodeKind::kAlterTable: {
      const auto& statement = node.As<ast::AlterTableStmt>();
      if (!statement.commands.empty() &&
          statement.commands.front().kind == ast::AlterTableKind::kSeal)
        return RunSeal(statement, sink);
      return RunDdl(prepared, sink, tag);
    }
    case ast::NodeKind::kCheckpoint:
      if (!HasPrivilegesOf(4544)) {
        return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege,
                        "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT");
      }
      return db->engine->Sync();
    case ast::NodeKind::kLock: {
      if (!in_block) {
        return SqlError(Code::kInvalid, sqlstate::kNoActiveSqlTransaction,
                        "LOCK TABLE can only be used in transaction blocks");
      }
      const auto& statement = node.As<ast::LockStmt>();
      for (const ast::QualifiedName& name : statement.tables) {
        catalog::TablePtr table =
            sql::FindRelation(*CurrentCatalog(), Scope(), name.schema, name.name);
        if (table == nullptr) {
          return SqlError(Code::kNotFound, sqlstate::kUndefinedTable,
                          "relation \"{}\" does not exist", name.name);
        }
        constexpr int kAccessShare = 1, kRowExclusive = 3;
        const uint32_t writes = kUpdate | kDelete | kTruncate;
        CELLAR_TRY(sql::CheckSchemaUse(*CurrentCatalog(), Scope(), name.schema));
        CELLAR_TRY(CheckTable(*table, statement.mode == kAccessShare    ? uint32_t{kSelect}
                                      : statement.mode <= kRowExclusive ? writes | kInsert
                                                                        : writes));
        // Readers never wait for each other; conflicting writers are told at their commit.
        CELLAR_TRY(LockWholeTable(*table, statement.mode, statement.nowait));
      }
      return Status();
    }
    case ast::NodeKind::kCluster: return Status();  // indexes are never out of order here
    case ast::NodeKind::kSetConstraints:
      return RunSetConstraints(node.As<ast::SetConstraintsStmt>(), sink);
    case ast::NodeKind::kCreateExtension: {
      const std::string& name = node.As<ast::CreateExtensionStmt>().name;
      if (name == "plpgsql" && node.As<ast::CreateExtensionStmt>().if_not_exists) return Status();
      return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                      "extension \"{}\" is not available", name);
    }
    case ast::NodeKind::kOwn: return RunOwnStatement(node.As<ast::OwnStmt>(), portal, sink, tag);
    case ast::NodeKind::kDo:
    case ast::NodeKind::kCall:
    case ast::NodeKind::kCreateDomain:
    case ast::NodeKind::kRefreshMatView:
    case ast::NodeKind::kOther:
      if (prepared.statement->tag == "CREATE TYPE") {
        return UnsupportedError("CREATE TYPE is supported for enum types only");
      }
      return UnsupportedError("{} is not supported", prepared.statement->tag);
    default: return RunDdl(prepared, sink, tag);
  }
}

Status Session::Impl::RunVacuum(const ast::VacuumStmt& statement, ResultSink* sink,
                                std::string* tag) {
  *tag = statement.vacuum ? "VACUUM" : "ANALYZE";
  if (statement.vacuum && in_block) {
    return SqlError(Code::kInvalid, sqlstate::kActiveSqlTransaction,
                    "VACUUM cannot run inside a transaction block");
  }
  Status status;
  const bool full = SettingBool(statement.options, "full", false, &status);
  const bool analyze = SettingBool(statement.options, "analyze", false, &status);
  CELLAR_TRY(std::move(status));
  if (statement.vacuum) CELLAR_TRY(Commit(sink));
  std::vector<catalog::TablePtr> tables;
  for (const ast::VacuumStmt::Target& target : statement.tables) {
    catalog::TablePtr table =
        sql::FindRelation(*CurrentCatalog(), Scope(), target.table.schema, target.table.name);
    if (table == nullptr &&
        db->system.Find(target.table.schema.empty() ? "pg_catalog" : target.table.schema,
                        target.table.name) == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedTable, "relation \"{}\" does not exist",
                      target.table.name);
    }
    if (table != nullptr) tables.push_back(std::move(table));
  }
  const bool all = statement.tables.empty();
  if (all) tables = CurrentCatalog()->ListAllTables();
  std::vector<catalog::TablePtr> owned;
  for (catalog::TablePtr& table : tables) {
    catalog::NamespacePtr database = CurrentCatalog()->GetNamespace(database_id);
    if (Owns(*table) || HasPrivilegesOf(OwnerOf(*database, true))) {
      owned.push_back(std::move(table));
    } else if (!all) {
      CELLAR_TRY(Notify(sink, Severity::kWarning, "01000",
                        fmt::format("permission denied to {} \"{}\", skipping it",
                                    statement.vacuum ? "vacuum" : "analyze", table->name)));
    }
  }
  tables = std::move(owned);
  if (statement.vacuum) {
    CELLAR_TRY(SealTables(tables, full));
  }
  if (!statement.vacuum || analyze) return Analyze(statement, tables, sink);
  std::lock_guard lock(db->estimates_mutex);
  db->estimates.clear();
  return Status();
}

Status Session::Impl::LockWholeTable(const catalog::TableDescriptor& table, int mode, bool nowait) {
  CELLAR_TRY(EnsureTransaction(false));
  kv::LockOptions options = LockOptionsOfSettings();
  options.mode = static_cast<kv::LockMode>(mode - 1);
  if (nowait) options.wait = kv::LockWait::kNoWait;
  Status status =
      transaction->kv->LockName(kv::LockKind::kTable, TableLockName(table.id), options).status();
  if (nowait && status.sqlstate() == sqlstate::kLockNotAvailable) {
    return SqlError(Code::kUnavailable, sqlstate::kLockNotAvailable,
                    "could not obtain lock on relation \"{}\"", table.name);
  }
  return status;
}

kv::LockOptions Session::Impl::LockOptionsOfSettings() {
  kv::LockOptions options;
  options.timeout = std::chrono::milliseconds(settings.hot().lock_timeout_ms);
  options.deadlock_after = std::chrono::milliseconds(settings.hot().deadlock_timeout_ms);
  options.cancel = &cancel;
  return options;
}

}  // namespace cellar::session
