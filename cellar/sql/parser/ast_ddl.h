// Statements other than queries. Include ast.h, which holds the nodes these are made of.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cellar/sql/parser/ast.h"

namespace cellar::sql::ast {

enum class ObjectType : uint8_t {
  kTable,
  kView,
  kMatView,
  kIndex,
  kSequence,
  kSchema,
  kDatabase,
  kType,
  kDomain,
  kFunction,
  kProcedure,
  kRoutine,
  kAggregate,
  kExtension,
  kTrigger,
  kRule,
  kPolicy,
  kColumn,
  kAttribute,
  kTableConstraint,
  kDomainConstraint,
  kRole,
  kCollation,
  kConversion,
  kCast,
  kOperator,
  kOperatorClass,
  kOperatorFamily,
  kLanguage,
  kLargeObject,
  kEventTrigger,
  kForeignTable,
  kForeignServer,
  kForeignDataWrapper,
  kAccessMethod,
  kPublication,
  kSubscription,
  kStatistics,
  kTablespace,
  kTextSearch,
  kOther,
};

// "TABLE", "MATERIALIZED VIEW", ...: as written in DROP.
std::string_view ObjectTypeName(ObjectType type);

// The name of any object. For triggers, rules, policies and constraints the last part is the object
// and the ones before it the table.
struct ObjectName {
  NameList parts;
  bool has_args = false;  // functions, aggregates and operators named with argument types
  std::vector<TypeName> args;
};

enum class RoleKind : uint8_t { kNamed, kCurrentRole, kCurrentUser, kSessionUser, kPublic };

struct RoleSpec {
  RoleKind kind = RoleKind::kNamed;
  std::string name;
  int location = -1;
};

struct TableLike {
  QualifiedName table;
  // Bits as in CREATE TABLE (LIKE t INCLUDING ...).
  static constexpr uint32_t kComments = 1, kCompression = 2, kConstraints = 4, kDefaults = 8,
                            kGenerated = 16, kIdentity = 32, kIndexes = 64, kStatistics = 128,
                            kStorage = 256;
  uint32_t options = 0;
  size_t position = 0;  // its columns come before columns[position]
};

// What becomes of a table's column groups, which are Cellar's own.
struct GroupChange {
  enum class Kind : uint8_t { kAdd, kDrop, kPut, kTakeOut, kRename };
  Kind kind = Kind::kAdd;
  std::string name;        // of the group; kTakeOut: empty
  NameList columns;        // kAdd: of the group; kPut, kTakeOut: the one
  std::string new_name;    // kRename
  bool if_exists = false;  // kAdd: IF NOT EXISTS
  int location = -1;
};

struct CreateTableStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCreateTable;
  CreateTableStmt() : Stmt(kKind) {}
  QualifiedName table;
  Persistence persistence = Persistence::kPermanent;
  bool if_not_exists = false;
  std::vector<ColumnDef> columns;
  std::vector<Constraint> constraints;
  std::vector<TableLike> likes;
  std::vector<GroupChange> groups;  // kAdd
  std::vector<QualifiedName> inherits;
  bool partitioned = false;   // PARTITION BY
  bool partition_of = false;  // PARTITION OF: inherits holds the parent
  bool foreign_table = false;
  std::unique_ptr<TypeName> of_type;
  OptionList options;
  OnCommit on_commit = OnCommit::kNone;
  std::string tablespace;
  std::string access_method;
};

// CREATE TABLE AS, SELECT INTO, CREATE MATERIALIZED VIEW.
struct CreateTableAsStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCreateTableAs;
  CreateTableAsStmt() : Stmt(kKind) {}
  IntoClause into;
  bool materialized_view = false;
  bool if_not_exists = false;
  bool select_into = false;
  std::vector<GroupChange> groups;  // kAdd
  StmtPtr query;                    // SelectStmt or ExecuteStmt
};

enum class AlterTableKind : uint8_t {
  kAddColumn,         // column; if_exists: IF NOT EXISTS; groups: the one it goes to, kPut
  kDropColumn,        // name, if_exists, cascade
  kSetDefault,        // name, expr
  kDropDefault,       // name
  kSetNotNull,        // name
  kDropNotNull,       // name
  kDropExpression,    // name
  kSetType,           // name, column (type, collation), expr (USING)
  kSetStatistics,     // name, number
  kSetColumnOptions,  // name, options
  kResetColumnOptions,
  kSetStorage,       // name, text
  kSetCompression,   // name, text
  kAddIdentity,      // name, constraint
  kSetIdentity,      // name, options
  kDropIdentity,     // name
  kAddConstraint,    // constraint
  kAlterPrimaryKey,  // constraint; Cellar's own
  kAlterConstraint,
  kValidateConstraint,  // name
  kDropConstraint,      // name, if_exists, cascade
  kChangeOwner,         // role
  kClusterOn,           // name
  kDropCluster,
  kSetLogged,
  kSetUnlogged,
  kDropOids,
  kSetAccessMethod,  // name
  kSetTablespace,    // name
  kSetOptions,       // options
  kResetOptions,     // options
  kTrigger,          // ENABLE/DISABLE TRIGGER; name
  kRule,             // ENABLE/DISABLE RULE; name
  kAddInherit,       // table
  kDropInherit,      // table
  kReplicaIdentity,
  kRowSecurity,      // ENABLE, DISABLE, FORCE, NO FORCE
  kAttachPartition,  // table
  kDetachPartition,  // table
  kSeal,             // Cellar's own; action: "SEAL" or "SEAL FULL"
  kChangeGroups,     // Cellar's own; groups
  kOther,
};

struct AlterTableCommand {
  AlterTableKind kind = AlterTableKind::kOther;
  std::string name;
  std::unique_ptr<ColumnDef> column;
  std::unique_ptr<Constraint> constraint;
  ExprPtr expr;
  OptionList options;
  QualifiedName table;
  RoleSpec role;
  std::vector<GroupChange> groups;
  std::string text;
  int32_t number = 0;
  bool cascade = false;
  bool if_exists = false;
  // kTrigger, kRule, kRowSecurity, kSeal: what was written ("DISABLE TRIGGER"); others: empty.
  std::string action;
};

// ALTER TABLE, INDEX, VIEW, SEQUENCE, MATERIALIZED VIEW, TYPE (attributes) .. with subcommands.
struct AlterTableStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kAlterTable;
  AlterTableStmt() : Stmt(kKind) {}
  ObjectType object_type = ObjectType::kTable;
  QualifiedName table;
  bool only = false;
  bool if_exists = false;
  std::vector<AlterTableCommand> commands;
};

// ALTER .. RENAME
struct RenameStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kRename;
  RenameStmt() : Stmt(kKind) {}
  ObjectType object_type =
      ObjectType::kTable;  // what gets a new name: kTable, kColumn, kTableConstraint..
  ObjectType relation_type = ObjectType::kTable;  // kColumn: of what
  QualifiedName relation;                         // set for tables, indexes, columns, constraints..
  ObjectName object;                              // set for anything else
  std::string sub_name;  // the column or constraint; old name of schema/database/role
  std::string new_name;
  bool if_exists = false;
  bool cascade = false;
};

// ALTER .. SET SCHEMA
struct AlterObjectSchemaStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kAlterObjectSchema;
  AlterObjectSchemaStmt() : Stmt(kKind) {}
  ObjectType object_type = ObjectType::kTable;
  QualifiedName relation;
  ObjectName object;
  std::string new_schema;
  bool if_exists = false;
};

// ALTER .. OWNER TO for what is no table (tables: AlterTableKind::kChangeOwner).
struct AlterOwnerStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kAlterOwner;
  AlterOwnerStmt() : Stmt(kKind) {}
  ObjectType object_type = ObjectType::kSchema;
  QualifiedName relation;
  ObjectName object;
  RoleSpec new_owner;
};

struct DropStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kDrop;
  DropStmt() : Stmt(kKind) {}
  ObjectType object_type = ObjectType::kTable;
  std::vector<ObjectName> objects;
  bool if_exists = false;
  bool cascade = false;
  bool concurrently = false;
};

struct CreateIndexStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCreateIndex;
  CreateIndexStmt() : Stmt(kKind) {}
  std::string name;  // empty: choose one
  QualifiedName table;
  bool only = false;
  std::string method;  // "btree" unless written
  std::vector<IndexElement> elements;
  std::vector<IndexElement> including;
  OptionList options;
  std::string tablespace;
  ExprPtr where;
  bool unique = false;
  bool nulls_not_distinct = false;
  bool concurrently = false;
  bool if_not_exists = false;
};

struct CreateSchemaStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCreateSchema;
  CreateSchemaStmt() : Stmt(kKind) {}
  std::string name;  // empty: that of the owner
  bool has_owner = false;
  RoleSpec owner;
  bool if_not_exists = false;
  std::vector<StmtPtr> elements;
};

struct CreateDatabaseStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCreateDatabase;
  CreateDatabaseStmt() : Stmt(kKind) {}
  std::string name;
  OptionList options;
};

struct VariableSetStmt;

// ALTER DATABASE name WITH options | SET .. | RESET ..
struct AlterDatabaseStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kAlterDatabase;
  AlterDatabaseStmt();
  ~AlterDatabaseStmt() override;
  std::string name;
  OptionList options;
  std::unique_ptr<VariableSetStmt> set;
};

struct DropDatabaseStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kDropDatabase;
  DropDatabaseStmt() : Stmt(kKind) {}
  std::string name;
  bool if_exists = false;
  OptionList options;
};

enum class CheckOption : uint8_t { kNone, kLocal, kCascaded };

struct CreateViewStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCreateView;
  CreateViewStmt() : Stmt(kKind) {}
  QualifiedName view;
  Persistence persistence = Persistence::kPermanent;
  NameList columns;
  SelectPtr query;
  // The query's bytes in the parsed text, for storing what was written; -1 for RECURSIVE views and
  // for those inside CREATE SCHEMA, of which DeparseStatement(query) gives a text.
  int query_location = -1;
  int query_length = 0;
  bool or_replace = false;
  OptionList options;
  CheckOption check_option = CheckOption::kNone;
};

struct RefreshMatViewStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kRefreshMatView;
  RefreshMatViewStmt() : Stmt(kKind) {}
  QualifiedName view;
  bool concurrently = false;
  bool no_data = false;
};

// Options by PostgreSQL's names: as (type), increment, start, minvalue, maxvalue (no value: NO
// MINVALUE), cache, cycle, owned_by (list; {"none"}: NONE), restart, sequence_name.
struct CreateSequenceStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCreateSequence;
  CreateSequenceStmt() : Stmt(kKind) {}
  QualifiedName sequence;
  Persistence persistence = Persistence::kPermanent;
  OptionList options;
  bool if_not_exists = false;
};

struct AlterSequenceStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kAlterSequence;
  AlterSequenceStmt() : Stmt(kKind) {}
  QualifiedName sequence;
  OptionList options;
  bool if_exists = false;
};

struct CreateEnumStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCreateEnum;
  CreateEnumStmt() : Stmt(kKind) {}
  QualifiedName name;
  NameList labels;
};

// ALTER TYPE .. ADD VALUE | RENAME VALUE
struct AlterEnumStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kAlterEnum;
  AlterEnumStmt() : Stmt(kKind) {}
  QualifiedName name;
  bool rename = false;
  std::string old_label;
  std::string new_label;
  std::string neighbour;
  bool after = false;
  bool if_not_exists = false;
};

struct CreateCollationStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCreateCollation;
  CreateCollationStmt() : Stmt(kKind) {}
  QualifiedName name;
  QualifiedName from;  // empty: made of options
  OptionList options;
  bool if_not_exists = false;
};

// ALTER COLLATION .. REFRESH VERSION
struct AlterCollationStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kAlterCollation;
  AlterCollationStmt() : Stmt(kKind) {}
  QualifiedName name;
};

struct CreateDomainStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCreateDomain;
  CreateDomainStmt() : Stmt(kKind) {}
  QualifiedName name;
  TypeName type;
  QualifiedName collation;
  std::vector<Constraint> constraints;
};

struct CreateExtensionStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCreateExtension;
  CreateExtensionStmt() : Stmt(kKind) {}
  std::string name;
  bool if_not_exists = false;
  OptionList options;
};

// Options by PostgreSQL's names: password, superuser, inherit, createrole, createdb, canlogin,
// isreplication, bypassrls, connectionlimit, validUntil, addroleto, rolemembers, adminmembers.
struct CreateRoleStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCreateRole;
  CreateRoleStmt() : Stmt(kKind) {}
  enum class Spelling : uint8_t { kRole, kUser, kGroup };
  Spelling spelling = Spelling::kRole;
  std::string name;
  OptionList options;
};

// ALTER ROLE .. options, ALTER GROUP .. ADD/DROP USER, ALTER ROLE .. SET
struct AlterRoleStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kAlterRole;
  AlterRoleStmt();
  ~AlterRoleStmt() override;
  bool all_roles = false;  // ALTER ROLE ALL SET
  RoleSpec role;
  OptionList options;
  bool drop_members = false;
  std::string database;
  std::unique_ptr<VariableSetStmt> set;
};

struct DropRoleStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kDropRole;
  DropRoleStmt() : Stmt(kKind) {}
  std::vector<RoleSpec> roles;
  bool if_exists = false;
};

// GRANT and REVOKE, of privileges or of roles.
struct GrantStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kGrant;
  GrantStmt() : Stmt(kKind) {}
  struct Privilege {
    std::string name;  // lower case; empty: ALL (columns)
    NameList columns;
  };
  bool grant = true;  // else REVOKE
  bool of_roles = false;
  bool default_privileges = false;    // ALTER DEFAULT PRIVILEGES
  bool all_in_schema = false;         // objects names schemas
  std::vector<Privilege> privileges;  // empty: ALL; of_roles: the roles granted
  ObjectType object_type = ObjectType::kTable;
  std::vector<ObjectName> objects;
  std::vector<RoleSpec> grantees;
  std::optional<RoleSpec> grantor;  // GRANTED BY
  std::vector<RoleSpec> for_roles;  // of default_privileges: FOR ROLE; none: the current one
  NameList in_schemas;
  bool grant_option = false;  // WITH GRANT OPTION, WITH ADMIN OPTION
  bool cascade = false;
};

// DROP OWNED BY, REASSIGN OWNED BY.
struct OwnedStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kOwned;
  OwnedStmt() : Stmt(kKind) {}
  bool reassign = false;
  std::vector<RoleSpec> roles;
  RoleSpec new_owner;
  bool cascade = false;
};

struct CommentStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kComment;
  CommentStmt() : Stmt(kKind) {}
  ObjectType object_type = ObjectType::kTable;
  ObjectName object;  // kColumn: table parts, then the column
  bool is_null = false;
  std::string comment;
};

struct TruncateStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kTruncate;
  TruncateStmt() : Stmt(kKind) {}
  struct Target {
    QualifiedName table;
    bool only = false;
  };
  std::vector<Target> tables;
  bool restart_identity = false;
  bool cascade = false;
};

struct CopyStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCopy;
  CopyStmt() : Stmt(kKind) {}
  QualifiedName table;  // empty: query
  StmtPtr query;
  NameList columns;
  bool from = false;
  bool program = false;
  bool has_file = false;  // else STDIN or STDOUT
  std::string file;
  // format, delimiter, null, header, quote, escape, force_quote, force_not_null, force_null,
  // encoding, freeze
  OptionList options;
  ExprPtr where;
};

// Options: analyze, verbose, costs, buffers, format, timing, summary, settings, wal.
struct ExplainStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kExplain;
  ExplainStmt() : Stmt(kKind) {}
  StmtPtr query;
  OptionList options;
};

enum class TransactionKind : uint8_t {
  kBegin,
  kStart,
  kCommit,
  kRollback,
  kSavepoint,
  kRelease,
  kRollbackTo,
  kPrepare,
  kCommitPrepared,
  kRollbackPrepared,
};
enum class Isolation : uint8_t {
  kUnset,
  kReadUncommitted,
  kReadCommitted,
  kRepeatableRead,
  kSerializable,
};
enum class Tristate : uint8_t { kUnset, kFalse, kTrue };

struct TransactionModes {
  Isolation isolation = Isolation::kUnset;
  Tristate read_only = Tristate::kUnset;
  Tristate deferrable = Tristate::kUnset;
};

struct TransactionStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kTransaction;
  TransactionStmt() : Stmt(kKind) {}
  TransactionKind transaction_kind = TransactionKind::kBegin;
  TransactionModes modes;  // kBegin, kStart
  std::string name;        // savepoint, or the id of a prepared transaction
  bool chain = false;
};

enum class SetKind : uint8_t {
  kValue,               // SET name = values
  kDefault,             // SET name TO DEFAULT
  kFromCurrent,         // in CREATE FUNCTION only
  kTransaction,         // SET TRANSACTION modes
  kSessionTransaction,  // SET SESSION CHARACTERISTICS AS TRANSACTION modes
  kTransactionSnapshot,
  kReset,
  kResetAll,
};

// SET, RESET. SET TIME ZONE is name "timezone"; SET NAMES "client_encoding"; SET SCHEMA
// "search_path".
struct VariableSetStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kVariableSet;
  VariableSetStmt() : Stmt(kKind) {}
  SetKind set_kind = SetKind::kValue;
  bool local = false;
  std::string name;  // lower case unless quoted
  // Const, or a TypeCast to interval of one (SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE).
  ExprList values;
  TransactionModes modes;

  // The values as the text of the setting: strings and numbers joined by ", ".
  std::string ValueText() const;
};

struct VariableShowStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kVariableShow;
  VariableShowStmt() : Stmt(kKind) {}
  std::string
      name;  // "all" for SHOW ALL; "timezone", "transaction_isolation" for the long spellings
};

struct SetConstraintsStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kSetConstraints;
  SetConstraintsStmt() : Stmt(kKind) {}
  std::vector<QualifiedName> constraints;  // empty: ALL
  bool deferred = false;
};

struct PrepareStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kPrepare;
  PrepareStmt() : Stmt(kKind) {}
  std::string name;
  std::vector<TypeName> types;
  StmtPtr query;
};

struct ExecuteStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kExecute;
  ExecuteStmt() : Stmt(kKind) {}
  std::string name;
  ExprList args;
};

struct DeallocateStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kDeallocate;
  DeallocateStmt() : Stmt(kKind) {}
  std::string name;  // empty: ALL
};

struct DeclareCursorStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kDeclareCursor;
  DeclareCursorStmt() : Stmt(kKind) {}
  std::string name;
  bool binary = false;
  bool scroll = false;
  bool no_scroll = false;
  bool insensitive = false;
  bool hold = false;
  SelectPtr query;
};

struct FetchStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kFetch;
  static constexpr int64_t kAll = INT64_MAX;
  FetchStmt() : Stmt(kKind) {}
  enum class Direction : uint8_t { kForward, kBackward, kAbsolute, kRelative };
  Direction direction = Direction::kForward;
  int64_t count = 1;
  std::string cursor;
  bool move = false;  // MOVE
};

struct ClosePortalStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kClosePortal;
  ClosePortalStmt() : Stmt(kKind) {}
  std::string name;  // empty: ALL
};

struct ListenStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kListen;
  ListenStmt() : Stmt(kKind) {}
  std::string channel;
};

struct NotifyStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kNotify;
  NotifyStmt() : Stmt(kKind) {}
  std::string channel;
  std::string payload;
};

struct UnlistenStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kUnlisten;
  UnlistenStmt() : Stmt(kKind) {}
  std::string channel;  // empty: *
};

struct LockStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kLock;
  LockStmt() : Stmt(kKind) {}
  std::vector<QualifiedName> tables;
  int mode = 8;  // 1 ACCESS SHARE .. 8 ACCESS EXCLUSIVE
  bool nowait = false;
};

struct VacuumStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kVacuum;
  VacuumStmt() : Stmt(kKind) {}
  struct Target {
    QualifiedName table;
    NameList columns;
  };
  bool vacuum = true;  // else ANALYZE
  OptionList options;
  std::vector<Target> tables;  // empty: all
};

struct ClusterStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCluster;
  ClusterStmt() : Stmt(kKind) {}
  QualifiedName table;  // empty: all
  std::string index;
  OptionList options;
};

struct ReindexStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kReindex;
  ReindexStmt() : Stmt(kKind) {}
  enum class Target : uint8_t { kIndex, kTable, kSchema, kSystem, kDatabase };
  Target target = Target::kTable;
  QualifiedName relation;
  std::string name;  // schema or database
  OptionList options;
};

struct CheckpointStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCheckpoint;
  CheckpointStmt() : Stmt(kKind) {}
};

struct DiscardStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kDiscard;
  DiscardStmt() : Stmt(kKind) {}
  enum class Target : uint8_t { kAll, kPlans, kSequences, kTemp };
  Target target = Target::kAll;
};

struct DoStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kDo;
  DoStmt() : Stmt(kKind) {}
  std::string language;  // empty: plpgsql
  std::string body;
};

struct CallStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kCall;
  CallStmt() : Stmt(kKind) {}
  std::unique_ptr<FuncCall> call;
};

// Statements that PostgreSQL does not have.
enum class OwnKind : uint8_t {
  kUndrop,     // UNDROP TABLE | VIEW | SEQUENCE | SCHEMA | DATABASE name [ID n] [AS new_name]
  kPurge,      // PURGE TABLE | ... name [ID n]; PURGE ALL
  kCancelJob,  // CANCEL JOB n
  kResumeJob,  // RESUME JOB n
  kCheck,      // CHECK TABLE name [FAST | FULL]; CHECK DATABASE [name] [FAST | FULL]
  kRepair,     // REPAIR TABLE name; REPAIR DATABASE [name]
  kBackup,     // BACKUP STORE | DATABASE name TO 'path' [WITH (..)]
  // ALTER SCHEMA | DATABASE name SET (..) | RESET (..), and the same of ALTER DROPPED TABLE | ...
  kSetOptions,
};

struct OwnStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kOwn;
  OwnStmt() : Stmt(kKind) {}
  OwnKind own = OwnKind::kCheck;
  ObjectType object_type = ObjectType::kTable;
  ObjectName object;  // no parts: all, or the current database
  std::string new_name;
  std::string path;    // kBackup; its object has no parts for STORE
  int64_t number = 0;  // of an object or a job; 0: none
  bool full = false, fast = false;
  bool if_exists = false;  // kUndrop, kPurge
  bool dropped = false;    // kSetOptions: of an object in the bin
  bool reset = false;      // kSetOptions: `options` have no values
  OptionList options;
};

// A statement we have no structure for: CREATE FUNCTION, TRIGGER, POLICY .. Its command tag
// (Statement::tag) names it; answer 0A000, or accept it quietly.
struct OtherStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kOther;
  OtherStmt() : Stmt(kKind) {}
  ObjectName object;  // what it makes or changes, where that is plain
  bool if_not_exists = false;
};

}  // namespace cellar::sql::ast
