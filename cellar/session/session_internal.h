// What the files of this layer share. Not for other layers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "cellar/base/arena.h"
#include "cellar/base/cancel.h"
#include "cellar/base/interrupt.h"
#include "cellar/base/memory_account.h"
#include "cellar/catalog/catalog.h"
#include "cellar/kv/engine.h"
#include "cellar/session/acl.h"
#include "cellar/session/advisory_locks.h"
#include "cellar/session/collector.h"
#include "cellar/session/database_backup.h"
#include "cellar/session/quotas.h"
#include "cellar/session/read_counts.h"
#include "cellar/session/roles.h"
#include "cellar/session/sealing.h"
#include "cellar/session/server_files.h"
#include "cellar/session/session.h"
#include "cellar/session/session_registry.h"
#include "cellar/session/settings.h"
#include "cellar/session/statement.h"
#include "cellar/session/statistics.h"
#include "cellar/sql/exec/deferred_checks.h"
#include "cellar/sql/exec/executor.h"
#include "cellar/sql/expr/eval.h"
#include "cellar/sql/parser/ast.h"
#include "cellar/sql/parser/ast_ddl.h"
#include "cellar/sql/parser/parser.h"
#include "cellar/sql/plan/planner.h"
#include "cellar/table/access.h"

namespace cellar::session {

namespace ast = sql::ast;

// pg_catalog and information_schema: definitions. Rows are made by SystemRows. system_catalog.cc.
// Thread-safe.
class SystemCatalog : public sql::VirtualCatalog {
 public:
  SystemCatalog();
  ~SystemCatalog() override;
  const sql::VirtualTable* Find(std::string_view schema, std::string_view table) const override;
  bool HasSchema(std::string_view schema) const override;
  std::vector<const sql::VirtualTable*> All() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Values of sequences, cached in blocks. Thread-safe. sequences.cc.
class SequenceCache {
 public:
  explicit SequenceCache(kv::Engine* engine) : engine_(engine) {}
  // Errors: 2200H past the end. Cost: one engine commit per 32 values.
  Result<int64_t> Next(const catalog::TableDescriptor& sequence);
  Status Set(const catalog::TableDescriptor& sequence, int64_t value, bool called);
  // The last value handed out and whether it was; for pg_sequences and SELECT * FROM seq.
  Result<std::pair<int64_t, bool>> Peek(const catalog::TableDescriptor& sequence);
  void Forget(catalog::TableId storage);
  // The state of a sequence that is gone, or goes on under another id.
  void Remove(catalog::TableId storage);

 private:
  struct State {
    std::mutex mutex;
    bool loaded = false;
    int64_t next = 0;  // to hand out
    int64_t left = 0;  // values still reserved in the store
    bool exhausted = false;
    int64_t last = 0;
    bool called = false;
  };
  std::shared_ptr<State> Find(catalog::TableId id);
  Status Load(const catalog::TableDescriptor& sequence, State* state);
  Status Store(const catalog::TableDescriptor& sequence, int64_t value, bool called);

  kv::Engine* engine_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<State>> states_;
};

// LISTEN and NOTIFY between sessions of this process. Thread-safe. notify.cc.
class NotificationHub {
 public:
  struct Message {
    int32_t pid;
    std::string channel, payload;
  };
  void Listen(int32_t pid, const std::string& channel);
  void Unlisten(int32_t pid, const std::string& channel);  // empty: all
  void Send(const std::vector<Message>& messages);
  std::vector<Message> Take(int32_t pid);
  bool HasMessages(int32_t pid);
  bool Listens(int32_t pid);

 private:
  std::mutex mutex_;
  std::map<int32_t, std::set<std::string>> listeners_;
  std::map<int32_t, std::vector<Message>> queues_;
};

struct Database::Impl {
  DatabaseOptions options;
  size_t StatementLimit() const;  // in bytes; memory.cc
  std::unique_ptr<kv::Engine> engine;
  std::unique_ptr<catalog::Catalog> catalog;
  SystemCatalog system;
  std::unique_ptr<table::TableStore> tables;
  std::unique_ptr<table::Sealer> sealer;
  std::unique_ptr<SequenceCache> sequences;
  std::unique_ptr<RoleStore> roles;
  std::unique_ptr<Quotas> quotas;
  ServerFiles files;               // set before there are sessions
  DatabaseBackup database_backup;  // so is this
  NotificationHub notifications;
  std::atomic<bool> shutting_down{false};
  std::atomic<uint64_t> retries{0};
  int64_t start_micros = 0;
  SessionRegistry sessions;
  // Row estimates for the planner, by table id, with the time they were made.
  std::mutex estimates_mutex;
  struct Estimate {
    double rows = 0;
    int64_t made_micros = 0;
  };
  std::unordered_map<uint64_t, Estimate> estimates;
  std::unique_ptr<StoreClock> clock;
  std::unique_ptr<Collector> collector;
  // Last: their threads end first.
  std::unique_ptr<CollectService> collecting;
  std::unique_ptr<ReadCounts> read_counts;
  std::unique_ptr<StatisticsService> statistics;
  std::unique_ptr<SealService> sealing;
};

// A statement that has been parsed, and planned when it is a query. Shared by portals.
struct Prepared {
  std::string name;
  std::shared_ptr<const std::string> message;  // the text is its; statements of a message share it
  std::string_view text;                       // as the client sent it
  std::shared_ptr<const sql::Statement> statement;  // ast null: empty query
  std::vector<Type> client_types;                   // as declared; kInvalid: infer
  bool plannable = false;                           // SELECT, VALUES, INSERT, UPDATE, DELETE
  std::shared_ptr<const sql::Plan> plan;
  uint64_t plan_generation = 0;  // of the catalog
  uint64_t settings_generation = 0;
  uint64_t access_epoch = 0;  // see Session::Impl::access_epoch
  bool allowed = false;       // the plan's uses have been checked at that epoch
  int64_t planned_micros = 0;
  std::unique_ptr<sql::Execution> spare;  // of this plan, released: the next portal restarts it
  std::vector<Type> parameter_types;
  std::vector<ResultColumn> columns;
  bool returns_rows = false;
  bool from_sql = false;  // PREPARE rather than Parse
  // Somebody has been told the types of `columns`, or has had rows of them: a plan that is made
  // anew must keep them.
  bool announced = false;
  int64_t prepared_micros = 0;
  MemoryCharge charge;  // of a named one, to the session: its text, tree and plan, roughly
  // What an execution of the plan takes before it has read anything, roughly.
  size_t execution_bytes() const {
    return plan == nullptr ? 0 : plan->expressions * kExecutionBytesOfExpression;
  }
  static constexpr size_t kExecutionBytesOfExpression = 1200;
};

// A running or runnable statement: a portal of the extended protocol, a cursor, or one simple
// statement.
struct Portal {
  Portal() : statement(std::make_shared<Statement>()) {}
  // Of a statement that outlives it.
  explicit Portal(Statement* running) : statement(std::shared_ptr<void>(), running) {}

  std::string name;
  std::shared_ptr<Statement> statement;  // may outlive it
  std::shared_ptr<Prepared> prepared;
  Arena arena;  // parameters
  std::vector<Datum> parameters;
  sql::EvalContext context;
  catalog::SnapshotPtr catalog;  // what the execution sees
  std::unique_ptr<sql::Execution> execution;
  bool started = false, finished = false;
  bool checked = false;    // CheckStillCurrent
  bool exhausted = false;  // the execution has given its last row; some may wait in `rows`
  // The rest of a batch of which a row limit took only a part.
  const RowBatch* pending = nullptr;
  size_t pending_row = 0;
  uint64_t rows_sent = 0;
  std::string tag;  // of a finished utility statement
  // Results of utility statements and of cursors that scroll or outlive their transaction.
  bool materialized = false;
  RowBatch rows;
  size_t position = 0;                // rows before it have been fetched
  std::vector<ResultColumn> columns;  // empty: those of `prepared`
  const std::vector<ResultColumn>& result_columns() const {
    return columns.empty() ? prepared->columns : columns;
  }
  bool cursor = false, scroll = false, hold = false;
  MemoryCharge charge;  // of a named one: its execution
};

struct SavepointState {
  std::string name;
  kv::SavepointId kv = 0;
  size_t editor = 0;
  bool had_editor = false;
  size_t settings = 0;
  RoleSetPtr roles;
  sql::DeferredChecks::Mark deferred;
};

struct TransactionState {
  std::unique_ptr<kv::Transaction> kv;
  std::unique_ptr<table::Access> access;
  std::unique_ptr<catalog::CatalogEditor> editor;
  // What the snapshot holds, once a relation was met that is otherwise by now.
  catalog::SnapshotPtr catalog;
  int64_t start_micros = 0;
  bool read_only = false;
  // Descriptors that are conditions of the commit: table id and commit version.
  std::set<std::pair<uint64_t, uint64_t>> required;
  std::vector<SavepointState> savepoints;
  sql::DeferredChecks deferred;
  std::vector<NotificationHub::Message> notifies;
  std::vector<catalog::TableId> dropped_sequences;  // storage ids that are gone
  bool purged = false;                              // there is something to collect
  bool makes_room = false;                          // by DROP, TRUNCATE or PURGE
  RoleSetPtr roles;  // as this transaction has changed them; null: it has not
};

// A run of a DirectStatement whose rows come straight from the session's transaction.
class DirectRun {
 public:
  virtual ~DirectRun() = default;
  // The transaction is about to end.
  virtual void Interrupt() = 0;
};

struct Session::Impl : public sql::SessionFunctions,
                       public sql::VirtualRows,
                       public sql::CascadePlans {
  Impl(Database::Impl* database, SessionOptions options);
  ~Impl() override;

  // memory.cc
  // ---------------------------------------------------------------------------------------------
  // Runs a client's call in the account of the running statement, listening to the session's token.
  // 53200 when that, or the system, has no more memory, 57014 and its kin when work that has no
  // context was interrupted: what was thrown ends here, and the transaction has failed as after any
  // error. Calls nest, as a program's callback may run another statement.
  template <typename F>
  auto Guarded(F&& body) -> decltype(body()) {
    bool ended = false;
    auto outcome = CatchOutOfMemory([&]() -> decltype(body()) {
      return CatchInterrupted([&]() -> decltype(body()) {
        const MemoryScope scope(AccountOf(statement));
        const InterruptScope interrupt(&cancel);
        auto result = body();
        ended = true;
        return result;
      });
    });
    if (!ended) FailThrown();
    return outcome;
  }
  // The account of a statement of this session, made when it has none. Throws OutOfMemory.
  MemoryAccount* AccountOf(Statement* of);
  // The statement stops working, or ends. An account that nothing is charged to any more is kept
  // for the next one.
  void KeepAccount(Statement* of);
  // Charges a prepared statement that is to be kept to the session. Errors: 53200.
  Status ChargeNamed(Statement* of, Prepared* prepared);
  void FailThrown();
  MemoryAccountPtr memory;        // all that the session's statements hold
  MemoryAccountPtr idle_account;  // a statement's, that is free

  // session.cc: statements
  // -------------------------------------------------------------------------------
  Status ExecuteSimple(std::string_view text, ResultSink* sink);
  // Its statements, one after the other; the first one runs in `running`.
  Status RunMessage(std::string_view text, StatementScope* running, ResultSink* sink);
  // Runs one statement inside the current transaction (opened if need be); no commit.
  Status RunStatement(const std::shared_ptr<Prepared>& prepared, ResultSink* sink,
                      bool send_columns, std::string* tag);
  Status RunUtility(const Prepared& prepared, Portal* portal, ResultSink* sink, std::string* tag);
  // Parses nothing: makes a Prepared of a parsed statement, planning it when it is a query.
  Result<std::shared_ptr<Prepared>> Prepare(std::string name,
                                            std::shared_ptr<const std::string> text,
                                            std::shared_ptr<const sql::Statement> statement,
                                            std::vector<Type> client_types);
  Status PlanPrepared(Prepared* prepared);
  Status EnsurePlan(Prepared* prepared);
  sql::PlannerContext MakePlannerContext(std::span<const Type> parameter_types);
  // Rows of a table, for the planner. Cost: a trip or two.
  double EstimateRows(const catalog::TableDescriptor& table);
  Status StartPortal(Portal* portal);
  // Gives the execution of a finished portal back for the statement's next run.
  void Recycle(Portal* portal);
  // What an execution for the statement works with, in the transaction that is open. The
  // statement's view is opened, unless nothing will be written that it could see. The context and
  // the catalog are borrowed.
  Result<sql::ExecEnvironment> MakeEnvironment(Statement* of, sql::EvalContext* context,
                                               const catalog::CatalogSnapshot* seen_catalog,
                                               bool with_view = true);
  // Whether a statement that failed with `status` for the attempt-th time (from 0), and is its own
  // transaction, may run again; waits a little first.
  bool RetryAfter(const Status& status, int attempt);
  Result<ExecuteOutcome> PumpPortal(Portal* portal, uint64_t max_rows, ResultSink* sink,
                                    bool send_columns, bool* sent);
  std::string CompletionTag(const Portal& portal) const;
  void SetUpContext(sql::EvalContext* context);
  Status AddPosition(Status status, std::string_view text) const;
  Status Notify(ResultSink* sink, Severity severity, std::string_view sqlstate,
                std::string message);

  // transaction.cc
  // ---------------------------------------------------------------------------------------
  Status EnsureTransaction(bool read_only_autocommit);
  // READ COMMITTED: what the next statement sees.
  Status RefreshStatementSnapshot();
  Status Commit(ResultSink* sink);
  // Foreign keys that wait to be checked: all of them, or those that are immediate by now.
  Status CheckDeferred(bool all);
  Status RunSetConstraints(const ast::SetConstraintsStmt& statement, ResultSink* sink);
  Result<std::shared_ptr<const sql::Plan>> PlanCascade(const catalog::TablePtr& table,
                                                       std::span<const catalog::ColumnId> columns,
                                                       bool to_defaults) override;
  void Rollback();
  // Tells the registry what the session is between statements.
  void ShowRest();
  // After an error: the block is failed, or the implicit transaction rolled back.
  void Fail();
  void InterruptDirectRuns();
  Status RunTransactionStatement(const ast::TransactionStmt& statement, ResultSink* sink,
                                 std::string* tag);
  Status ApplyModes(const ast::TransactionModes& modes);
  bool in_transaction() const { return transaction != nullptr; }
  catalog::SnapshotPtr CurrentCatalog();
  catalog::CatalogEditor& Editor();
  Status RequireTables(const sql::Plan& plan);
  // The descriptor must be that of what is read, and for `writes` stay so until the commit. Error:
  // 40001.
  Status RequireTable(const catalog::TableDescriptor& table, bool writes);
  // Whether this transaction may go on reading what was there when it began, whatever has changed.
  bool ReadsOnlyItsSnapshot();
  // From here on it is planned by the catalog that the snapshot holds. False: nothing has changed.
  // Cost: a scan of all descriptors.
  Result<bool> TakeCatalogOfSnapshot();
  // After the first rows of an execution were read: tables are still as the plan knows them, so the
  // snapshot that was read does not lie behind a change. Else 40001. Only commits that write check
  // that by themselves.
  Status CheckStillCurrent(Portal* portal);
  // The next batch of the portal's execution, checked so. What fails behind a change of a table is
  // 40001 whatever it met there, so that a statement that has handed out nothing can run again.
  Result<const RowBatch*> NextRows(Portal* portal);
  Status CheckWritable(std::string_view tag);
  // The statement lets room be made on the disk: its commit is taken although that is full.
  void NoteMakesRoom() {
    if (transaction != nullptr) transaction->makes_room = true;
  }
  // Work that uses the store outside of the client's transaction flow (sequences).
  sql::NameScope& Scope();
  // The namespace of temporary tables, made on first use; dropped with the session.
  Result<catalog::NamespaceId> TemporaryNamespace();
  void DropTemporarySchema();

  // permissions.cc
  // ---------------------------------------------------------------------------------------------
  // The roles as the running statement sees them. Valid until the next call of FollowRoles or a
  // change of roles.
  const RoleSet& Roles() const;
  // Takes notice of roles that others changed, and of SET ROLE. Cheap when nothing has.
  void FollowRoles();
  // Before SET ROLE or SET SESSION AUTHORIZATION takes `value`. Error: 42501, 22023.
  Status CheckRoleSetting(std::string_view name, std::string_view value);
  bool IsSuperuser() const { return Roles().IsSuperuser(user_oid); }
  uint32_t DatabaseOwner();
  AclView View() { return {&Roles(), DatabaseOwner()}; }
  bool HasPrivilegesOf(uint32_t role) {
    return Roles().HasPrivilegesOf(user_oid, role, DatabaseOwner());
  }
  uint32_t OwnerOf(const catalog::TableDescriptor& table) const {
    return Roles().OidOf(table.owner);
  }
  // The schema public belongs to pg_database_owner; as a database it has an owner of its own.
  uint32_t OwnerOf(const catalog::NamespaceDescriptor& space, bool as_database) const;
  bool Owns(const catalog::TableDescriptor& table) { return HasPrivilegesOf(OwnerOf(table)); }
  // The list in force, defaults filled in.
  std::vector<catalog::AclItem> AclOf(const catalog::TableDescriptor& table) const;
  std::vector<catalog::AclItem> AclOf(const catalog::NamespaceDescriptor& space,
                                      bool as_database) const;
  // Everything for superusers, and what pg_read_all_data and pg_write_all_data give.
  Held TableRights(const catalog::TableDescriptor& table, uint32_t role);
  Held ColumnRights(const catalog::TableDescriptor& table, const catalog::ColumnDescriptor& column,
                    uint32_t role);  // those of the column alone
  Held SchemaRights(catalog::NamespaceId id, uint32_t role);
  Held DatabaseRights(const catalog::NamespaceDescriptor& database, uint32_t role);
  bool MayUseSchema(catalog::NamespaceId id) {
    return (SchemaRights(id, user_oid).privileges & kUsage) != 0;
  }
  // 42501 when the current role may not. `privileges`: any of them will do.
  Status CheckTable(const catalog::TableDescriptor& table, uint32_t privileges);
  Status CheckSchema(catalog::NamespaceId id, uint32_t privileges);
  Status CheckOwner(const catalog::TableDescriptor& table);
  Status CheckOwner(const catalog::NamespaceDescriptor& space);
  Status CheckSequence(const catalog::TableDescriptor& sequence, uint32_t privileges);
  // What executing the plan asks of the current role and of the owners of views.
  Status CheckPlan(const sql::Plan& plan);
  Status CheckUse(const sql::RelationUse& use);
  // As CheckPlan, once for as long as nothing changes that it depends on.
  Status CheckPrepared(Prepared* prepared);
  Status CheckServerFile(bool reading);
  // What a role must be let do to open a session here. Errors: 28000, 42501, 53300.
  // May its role log in to the database? `is_in`: this session counts among those that are open.
  Status CheckLogin(const catalog::NamespaceDescriptor& database, bool is_in);
  // Settings of the role and the database, least special first.
  Status ApplyRoleSettings();
  // To a descriptor about to be created: one of the two.
  void ApplyDefaultPrivileges(catalog::TableDescriptor* table, catalog::NamespaceDescriptor* space);
  // Before the transaction's own changes of roles go, or become everybody's.
  void ForgetRoleChanges();
  // Changes of roles, as part of the transaction.
  Status BeginRoleChange(std::shared_ptr<RoleSet>* roles);
  Status WriteRole(Role role);
  Status EraseRole(const Role& role);
  Status WriteSharedSettings(std::vector<RoleSettings> settings);

  // ddl.cc
  // -----------------------------------------------------------------------------------------------
  // Every statement that changes the schema; *tag is its command tag.
  Status RunDdl(const Prepared& prepared, ResultSink* sink, std::string* tag);

  // own_statements.cc: what PostgreSQL does not have
  // ----------------------------------------------------------------------------------------------
  Status RunOwnStatement(const ast::OwnStmt& statement, Portal* portal, ResultSink* sink,
                         std::string* tag);

  // zone_options.cc
  // ALTER SCHEMA and DATABASE .. SET (..).
  Status RunSetOptions(const ast::OwnStmt& statement);

  // checking.cc
  Status RunCheck(const ast::OwnStmt& statement, Portal* portal, ResultSink* sink);
  Status RunRepair(const ast::OwnStmt& statement, Portal* portal, ResultSink* sink);

  // backup.cc
  Status RunBackup(const ast::OwnStmt& statement, Portal* portal);

  // ddl_bin.cc: UNDROP, PURGE, ALTER DROPPED
  Status RunBinStatement(const ast::OwnStmt& statement, ResultSink* sink, std::string* tag);

  // copy.cc
  // ----------------------------------------------------------------------------------------------
  Status RunCopy(const Prepared& prepared, ResultSink* sink, std::string* tag);

  // utility.cc: SET, SHOW, EXPLAIN, PREPARE, cursors, LISTEN, VACUUM, ...
  // -----------------------------------
  Status RunSet(const ast::VariableSetStmt& statement, ResultSink* sink, std::string* tag);
  // The system table that SHOW `name` lists, such as the recycle bin; null: none.
  const sql::VirtualTable* ListShownBy(std::string_view name) const;
  Status RunShow(const ast::VariableShowStmt& statement, Portal* portal);
  Status RunExplain(const ast::ExplainStmt& statement, const Prepared& prepared, Portal* portal);
  Status RunFetch(const ast::FetchStmt& statement, Portal* portal, std::string* tag);
  Status EvaluateExecuteArguments(const ast::ExecuteStmt& statement, const Prepared& target,
                                  Arena* arena, std::vector<Datum>* parameters);
  // sealing.cc
  Status RunSeal(const ast::AlterTableStmt& statement, ResultSink* sink);
  // Seals tables of layout pages among these. No transaction may be open.
  Status SealTables(const std::vector<catalog::TablePtr>& tables, bool repack);
  // Under cellar.seal = always: tables that the commit `used`, and others with unsealed rows.
  void SealAfterCommit(const std::set<std::pair<uint64_t, uint64_t>>& used);
  // Tells the store's thread what this session has set.
  void FollowSealSettings();
  Status RunVacuum(const ast::VacuumStmt& statement, ResultSink* sink, std::string* tag);
  // statistics.cc: new statistics for these of the tables that the statement names.
  Status Analyze(const ast::VacuumStmt& statement, const std::vector<catalog::TablePtr>& tables,
                 ResultSink* sink);

  // As the settings have it, for waits of this session.
  kv::LockOptions LockOptionsOfSettings();
  Status LockWholeTable(const catalog::TableDescriptor& table, int mode, bool nowait);
  Status DeclareCursor(const ast::DeclareCursorStmt& statement, const Prepared& prepared);
  Status SendParameterChanges(ResultSink* sink);

  // system_rows.cc: rows of pg_catalog (sql::VirtualRows)
  // -------------------------------------------------
  Status Generate(std::string_view schema, std::string_view table, int key_column, Datum key,
                  RowBatch* rows) override;

  // functions.cc, catalog_functions.cc: sql::SessionFunctions
  // ---------------------------------------------
  std::string CurrentUser() override { return user; }
  std::string SessionUser() override { return session_user; }
  std::string CurrentDatabase() override { return database_name; }
  std::vector<std::string> CurrentSchemas(bool implicit) override;
  Result<std::string> GetSetting(std::string_view name, bool missing_ok, bool* missing) override;
  Result<std::string> SetSetting(std::string_view name, std::string_view value,
                                 bool local) override;
  int32_t BackendPid() override { return pid; }
  Result<int64_t> NextValue(uint32_t sequence) override;
  Result<int64_t> CurrentValue(uint32_t sequence) override;
  Result<int64_t> LastValue() override;
  Result<int64_t> SetValue(uint32_t sequence, int64_t value, bool called) override;
  // The type with the definition that an enum has now; as it was when there is none any more.
  Type Refreshed(Type type) {
    if (type.enumeration == nullptr) return type;
    const catalog::TablePtr made = CurrentCatalog()->GetTypeByOid(type.enumeration->oid);
    if (made != nullptr) type.enumeration = made->enumeration;
    return type;
  }
  // sql::ResolveTypeName under the current search path.
  Result<Type> TypeNamed(const ast::TypeName& name, int* serial) {
    return sql::ResolveTypeName(name, serial, CurrentCatalog().get(), &Scope());
  }
  Result<uint32_t> LookupReg(TypeId kind, std::string_view name) override;
  std::string PrintReg(TypeId kind, uint32_t oid) override;
  Result<Datum> CatalogFunction(std::string_view name, std::span<const Datum> args,
                                Arena* arena) override;

  // pg_namespace oid: 2200 for public.
  uint32_t NamespaceOid(catalog::NamespaceId id) const;
  // Schema names by namespace ("public" for the database's own), for printing and pg_namespace.
  std::string SchemaName(catalog::NamespaceId id);
  // The name as it must be written under the current search path, quoted.
  std::string QualifiedName(const catalog::TableDescriptor& table);

  Database::Impl* db;
  SessionOptions options;
  Settings settings;
  std::string user, session_user, database_name;
  uint32_t user_oid = 0, session_oid = 0, login_oid = 0;
  RoleSetPtr roles;  // the committed ones, as of roles_generation
  uint64_t roles_generation = 0, roles_settings_generation = 0;
  // Grows when other privileges may count than before: roles have changed, or who is the current
  // one.
  uint64_t access_epoch = 1;
  std::map<std::string, uint32_t, std::less<>> roles_set;  // names given to SET ROLE
  uint64_t allowed_sequence = 0, allowed_sequence_generation = 0, allowed_sequence_epoch = 0;
  catalog::NamespaceId database_id;
  catalog::NamespaceId temporary_namespace;
  const std::shared_ptr<SessionEntry> entry;  // in db->sessions while the session is open
  const int32_t pid;
  CancelToken& cancel;  // the entry's
  AdvisoryLocks advisory_locks;
  Statement no_statement;  // stands for the running one when there is none
  Statement* statement = &no_statement;
  uint64_t shown_settings = 0;  // generation of those that the entry shows
  sql::NameScope scope;
  uint64_t scope_generation = 0, scope_catalog_generation = 0, scope_epoch = 0;

  std::unique_ptr<TransactionState> transaction;
  bool in_block = false;
  std::string commit_marker;  // SetCommitMarker; empty: none
  uint32_t commit_marker_call = 0;
  bool relaxed_commit = false;  // the next commit need not wait for the disk
  uint64_t last_commit_version = 0;
  bool failed = false;
  ast::TransactionModes pending_modes;

  std::map<std::string, std::shared_ptr<Prepared>> statements;
  std::map<std::string, std::unique_ptr<Portal>> portals;
  std::vector<DirectRun*> direct_runs;          // open ones
  std::map<uint64_t, int64_t> sequence_values;  // currval by relation oid
  std::optional<uint32_t> last_sequence;
  uint64_t random_state[2] = {0, 0};
  bool pauses_sealing = false;
  int64_t seal_rate_kb = 0;  // as last told
};

// What the planner asks of a session, with an arena to fold constants in. Expressions that were
// bound may hold bytes of the arena.
struct FoldingPlanner {
  explicit FoldingPlanner(Session::Impl& session, std::span<const Type> parameter_types = {})
      : context(session.MakePlannerContext(parameter_types)) {
    session.SetUpContext(&eval);
    eval.set_arena(&arena);
    context.fold = &eval;
  }
  FoldingPlanner(const FoldingPlanner&) = delete;
  FoldingPlanner& operator=(const FoldingPlanner&) = delete;

  sql::PlannerContext context;
  sql::EvalContext eval;
  Arena arena;
};

// What a statement of ours returns; empty: no rows. own_statements.cc.
std::vector<ResultColumn> ColumnsOf(const ast::OwnStmt& statement);

// Rows [start, end) of a batch, borrowing its bytes.
void SliceBatch(const RowBatch& from, size_t start, size_t end, RowBatch* to);

// Turns the plan of INSERT ... VALUES ($1, ...) into one that inserts rows from outside, of these
// columns: its leaf is replaced. copy.cc.
Status ReadFromOutside(std::vector<sql::OutputColumn> columns, sql::Plan* plan);

// What SET assigns, as text.
std::string SettingText(const ast::VariableSetStmt& statement);

// Microseconds since 2000-01-01 UTC.
int64_t NowMicros();
// The same, some milliseconds late at most, for a fifth of its cost.
int64_t RoughNowMicros();

// "row", "pages".
const char* LayoutName(catalog::Layout layout);
Result<catalog::Layout> ParseLayout(std::string_view name);  // 22023
// As option `groups` takes them: hot (a, b), cold (c)
std::string GroupsText(const catalog::TableDescriptor& table);

// pg_type.typinput.
uint32_t TypeInputFunction(Type type);
// pg_proc oid.
uint32_t FunctionOid(const sql::FunctionSpec& function);

// Temporary tables live in a namespace of the database named pg_temp_N; those of sessions that a
// crash ended are dropped when the database opens.
Status DropLeftoverTemporarySchemas(Database::Impl* db);

// Writes what is sorted by rules of a collation that this process does not have anew. Errors:
// kUnsupported when there is such a thing and the database is open for reading only.
Status RefreshStaleCollations(Database* database);

}  // namespace cellar::session
