// The syntax tree of SQL: what the text says, before any name is looked up.
//
// Every node is a struct with a `kind`; Node::As<T>() is a checked-in-debug static cast, so a
// walker is one switch over kind. Children are std::unique_ptr, strings are owned, nothing points
// into the statement text. `location` is a byte offset (0-based) in the parsed text, -1 where the
// grammar keeps none; hand it to Status::WithLocation.
//
// Depth: the parser refuses trees nested deeper than kMaxDepth (SQLSTATE 54001), so recursive
// walkers and destructors are safe. What grows long in practice stays flat: AND/OR and set
// operations are n-ary, and a long left-deep run of binary operators is one OperatorChain.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/check.h"

namespace cellar::sql::ast {

// Deepest nesting of nodes that Parse returns. A walk that recurses through it needs a thread's
// usual stack of some MiB: Parse itself takes 1.3 MiB at this depth.
inline constexpr int kMaxDepth = 1000;

enum class NodeKind : uint8_t {
  // Expressions.
  kConst,
  kColumnRef,
  kParamRef,
  kOperator,
  kOperatorChain,
  kAnyAll,
  kDistinctFrom,
  kNullIf,
  kIn,
  kLike,
  kBetween,
  kBool,
  kNullTest,
  kBooleanTest,
  kCase,
  kCoalesce,
  kMinMax,
  kFuncCall,
  kNamedArg,
  kTypeCast,
  kSubLink,
  kArray,
  kIndirection,
  kRow,
  kSqlValueFunction,
  kCollate,
  kDefault,
  kGroupingFunc,
  kGroupingSet,
  kCurrentOf,
  kUnsupportedExpr,
  // FROM items.
  kTableRef,
  kSubqueryRef,
  kFunctionRef,
  kJoin,
  kUnsupportedFrom,
  // Statements.
  kSelect,
  kInsert,
  kUpdate,
  kDelete,
  kCreateTable,
  kCreateTableAs,
  kAlterTable,
  kRename,
  kAlterObjectSchema,
  kAlterOwner,
  kDrop,
  kCreateIndex,
  kCreateSchema,
  kCreateDatabase,
  kAlterDatabase,
  kDropDatabase,
  kCreateView,
  kRefreshMatView,
  kCreateSequence,
  kAlterSequence,
  kCreateEnum,
  kAlterEnum,
  kCreateCollation,
  kAlterCollation,
  kCreateDomain,
  kCreateExtension,
  kCreateRole,
  kAlterRole,
  kDropRole,
  kGrant,
  kOwned,
  kComment,
  kTruncate,
  kCopy,
  kExplain,
  kTransaction,
  kVariableSet,
  kVariableShow,
  kSetConstraints,
  kPrepare,
  kExecute,
  kDeallocate,
  kDeclareCursor,
  kFetch,
  kClosePortal,
  kListen,
  kNotify,
  kUnlisten,
  kLock,
  kVacuum,
  kCluster,
  kReindex,
  kCheckpoint,
  kDiscard,
  kDo,
  kCall,
  kOwn,
  kOther,
};

struct Node {
  NodeKind kind;
  int location = -1;

  explicit Node(NodeKind node_kind) : kind(node_kind) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node() = default;

  template <typename T>
  bool Is() const {
    return kind == T::kKind;
  }
  template <typename T>
  T& As() {
    CELLAR_DCHECK(kind == T::kKind);
    return static_cast<T&>(*this);
  }
  template <typename T>
  const T& As() const {
    CELLAR_DCHECK(kind == T::kKind);
    return static_cast<const T&>(*this);
  }
};

struct Expr : Node {
  using Node::Node;
};
struct FromItem : Node {
  using Node::Node;
};
struct Stmt : Node {
  using Node::Node;
};
struct SelectStmt;

using ExprPtr = std::unique_ptr<Expr>;
using FromItemPtr = std::unique_ptr<FromItem>;
using StmtPtr = std::unique_ptr<Stmt>;
using SelectPtr = std::unique_ptr<SelectStmt>;
using ExprList = std::vector<ExprPtr>;
using NameList = std::vector<std::string>;

// A name of up to three parts; absent parts are empty.
struct QualifiedName {
  std::string catalog;
  std::string schema;
  std::string name;
  int location = -1;

  bool empty() const { return name.empty(); }
};

// A type as written. The grammar's own spellings arrive as pg_catalog names: `int` is
// pg_catalog.int4, `varchar(3)` is pg_catalog.varchar with typmods {3}, `char` is pg_catalog.bpchar
// {1}; `text`, `serial` and `jsonb` arrive unqualified, as does anything a user may have defined.
struct TypeName {
  QualifiedName name;
  // Integer modifiers as written. For interval: a field mask (IntervalMask), then the precision.
  std::vector<int32_t> typmods;
  // A modifier that is not an integer constant was given (geometry(Point)).
  bool has_other_typmods = false;
  // One entry per [] or ARRAY; -1 where no bound was written.
  std::vector<int32_t> array_bounds;
  bool setof = false;
  // table.column%TYPE: the name holds the column.
  bool pct_type = false;
  int location = -1;
};

// Bits of the interval field mask in TypeName::typmods; kIntervalFullRange means "no fields named".
inline constexpr int32_t kIntervalMonth = 1 << 1, kIntervalYear = 1 << 2, kIntervalDay = 1 << 3,
                         kIntervalHour = 1 << 10, kIntervalMinute = 1 << 11,
                         kIntervalSecond = 1 << 12, kIntervalFullRange = 0x7FFF;

struct Alias {
  std::string name;  // empty: no alias
  NameList columns;
};

enum class SortDirection : uint8_t { kDefault, kAsc, kDesc, kUsing };
enum class SortNulls : uint8_t { kDefault, kFirst, kLast };

struct SortBy {
  ExprPtr expr;
  SortDirection direction = SortDirection::kDefault;
  SortNulls nulls = SortNulls::kDefault;
  QualifiedName using_op;  // with kUsing
  int location = -1;
};

enum class FrameMode : uint8_t { kRange, kRows, kGroups };
enum class FrameBound : uint8_t {
  kUnboundedPreceding,
  kOffsetPreceding,
  kCurrentRow,
  kOffsetFollowing,
  kUnboundedFollowing,
};
enum class FrameExclusion : uint8_t { kNone, kCurrentRow, kGroup, kTies };

// WINDOW name AS (...) or OVER (...).
struct WindowDef {
  std::string name;      // WINDOW w AS; for OVER w, the window referred to
  std::string ref_name;  // the window that (w ...) builds on
  ExprList partition_by;
  std::vector<SortBy> order_by;
  bool has_frame = false;  // a frame was written; else RANGE UNBOUNDED PRECEDING .. CURRENT ROW
  bool frame_between = false;
  FrameMode frame_mode = FrameMode::kRange;
  FrameBound frame_start = FrameBound::kUnboundedPreceding;
  FrameBound frame_end = FrameBound::kCurrentRow;
  FrameExclusion exclusion = FrameExclusion::kNone;
  ExprPtr start_offset;
  ExprPtr end_offset;
  int location = -1;
};

// ---------------------------------------------------------------------------------------------
// Expressions
// ---------------------------------------------------------------------------------------------

enum class ConstKind : uint8_t { kNull, kInteger, kNumeric, kString, kBool, kBitString };

// A literal. Integers that do not fit int32 arrive as kNumeric text.
struct Const : Expr {
  static constexpr NodeKind kKind = NodeKind::kConst;
  Const() : Expr(kKind) {}
  ConstKind const_kind = ConstKind::kNull;
  bool boolean = false;
  int32_t integer = 0;
  std::string text;  // kNumeric: digits; kString: the value; kBitString: 'b' or 'x', then digits
};

// a, t.a, s.t.a, t.*, *
struct ColumnRef : Expr {
  static constexpr NodeKind kKind = NodeKind::kColumnRef;
  ColumnRef() : Expr(kKind) {}
  NameList parts;     // without the star
  bool star = false;  // ends in *
};

// $n
struct ParamRef : Expr {
  static constexpr NodeKind kKind = NodeKind::kParamRef;
  ParamRef() : Expr(kKind) {}
  int number = 0;
};

// left op right, or op right (left is null). `location` is that of the operator.
struct OperatorExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kOperator;
  OperatorExpr() : Expr(kKind) {}
  QualifiedName op;
  ExprPtr left;
  ExprPtr right;
};

// first op1 e1 op2 e2 ..., to be read from the left: ((first op1 e1) op2 e2). Made only of runs
// longer than kMinChain, so it never stands for what an OperatorExpr of ordinary SQL means.
struct OperatorChain : Expr {
  static constexpr NodeKind kKind = NodeKind::kOperatorChain;
  static constexpr int kMinChain = 200;
  OperatorChain() : Expr(kKind) {}
  struct Link {
    QualifiedName op;
    ExprPtr right;
    int location = -1;
  };
  ExprPtr first;
  std::vector<Link> links;
};

// left op ANY (array) or left op ALL (array); subqueries are SubLink.
struct AnyAllExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kAnyAll;
  AnyAllExpr() : Expr(kKind) {}
  QualifiedName op;
  bool all = false;
  ExprPtr left;
  ExprPtr right;
};

// left IS [NOT] DISTINCT FROM right; `negated` is IS NOT DISTINCT FROM.
struct DistinctExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kDistinctFrom;
  DistinctExpr() : Expr(kKind) {}
  bool negated = false;
  ExprPtr left;
  ExprPtr right;
};

struct NullIfExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kNullIf;
  NullIfExpr() : Expr(kKind) {}
  ExprPtr left;
  ExprPtr right;
};

// arg [NOT] IN (list); IN (subquery) is SubLink (kAny with op "="), NOT IN (subquery) is NOT over
// that.
struct InExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kIn;
  InExpr() : Expr(kKind) {}
  bool negated = false;
  ExprPtr arg;
  ExprList list;
};

enum class LikeKind : uint8_t { kLike, kILike, kSimilar };

// arg [NOT] LIKE | ILIKE | SIMILAR TO pattern [ESCAPE escape]
struct LikeExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kLike;
  LikeExpr() : Expr(kKind) {}
  LikeKind like_kind = LikeKind::kLike;
  bool negated = false;
  ExprPtr arg;
  ExprPtr pattern;
  ExprPtr escape;  // may be null
};

struct BetweenExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kBetween;
  BetweenExpr() : Expr(kKind) {}
  bool negated = false;
  bool symmetric = false;
  ExprPtr arg;
  ExprPtr low;
  ExprPtr high;
};

enum class BoolOp : uint8_t { kAnd, kOr, kNot };

struct BoolExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kBool;
  BoolExpr() : Expr(kKind) {}
  BoolOp op = BoolOp::kAnd;
  ExprList args;  // kNot: one; else two or more
};

struct NullTest : Expr {
  static constexpr NodeKind kKind = NodeKind::kNullTest;
  NullTest() : Expr(kKind) {}
  bool negated = false;  // IS NOT NULL
  ExprPtr arg;
};

enum class BooleanTestKind : uint8_t { kTrue, kFalse, kUnknown };

// arg IS [NOT] TRUE | FALSE | UNKNOWN
struct BooleanTest : Expr {
  static constexpr NodeKind kKind = NodeKind::kBooleanTest;
  BooleanTest() : Expr(kKind) {}
  BooleanTestKind test = BooleanTestKind::kTrue;
  bool negated = false;
  ExprPtr arg;
};

struct CaseExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kCase;
  CaseExpr() : Expr(kKind) {}
  struct When {
    ExprPtr condition;
    ExprPtr result;
    int location = -1;
  };
  ExprPtr arg;  // CASE arg WHEN; may be null
  std::vector<When> whens;
  ExprPtr default_result;  // may be null
};

struct CoalesceExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kCoalesce;
  CoalesceExpr() : Expr(kKind) {}
  ExprList args;
};

struct MinMaxExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kMinMax;
  MinMaxExpr() : Expr(kKind) {}
  bool greatest = false;
  ExprList args;
};

// name(args). SQL's own call spellings arrive so too, as pg_catalog functions: EXTRACT is
// pg_catalog.extract('field', x), SUBSTRING .. FROM is pg_catalog.substring, POSITION, OVERLAY,
// TRIM (btrim/ltrim/rtrim), AT TIME ZONE is pg_catalog.timezone(zone, x), OVERLAPS, IS NORMALIZED.
struct FuncCall : Expr {
  static constexpr NodeKind kKind = NodeKind::kFuncCall;
  FuncCall() : Expr(kKind) {}
  QualifiedName name;
  ExprList args;
  std::vector<SortBy> order_by;  // inside the parentheses, or WITHIN GROUP
  ExprPtr filter;
  std::unique_ptr<WindowDef> over;
  bool within_group = false;
  bool star = false;  // f(*)
  bool distinct = false;
  bool variadic = false;    // the last argument was VARIADIC
  bool sql_syntax = false;  // written in SQL's own spelling (EXTRACT(.. FROM ..))
};

// name => value in a call
struct NamedArgExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kNamedArg;
  NamedArgExpr() : Expr(kKind) {}
  std::string name;
  ExprPtr arg;
};

struct TypeCast : Expr {
  static constexpr NodeKind kKind = NodeKind::kTypeCast;
  TypeCast() : Expr(kKind) {}
  ExprPtr arg;
  TypeName type;
};

enum class SubLinkKind : uint8_t { kExists, kAll, kAny, kExpr, kArray };

// A subquery in an expression.
struct SubLink : Expr {
  static constexpr NodeKind kKind = NodeKind::kSubLink;
  SubLink();
  ~SubLink() override;
  SubLinkKind sub_kind = SubLinkKind::kExpr;
  ExprPtr test;      // kAll, kAny: the left side (a RowExpr for (a, b) IN ...)
  QualifiedName op;  // kAll, kAny; "=" when written as IN
  bool is_in = false;
  SelectPtr select;
};

// ARRAY[...]; nested brackets are ArrayExpr elements.
struct ArrayExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kArray;
  ArrayExpr() : Expr(kKind) {}
  ExprList elements;
};

// One step of (x)[i], (x)[lo:hi], (x).field, (x).*
struct IndirectionStep {
  enum class Kind : uint8_t { kSubscript, kSlice, kField, kStar };
  Kind step_kind = Kind::kField;
  std::string field;
  ExprPtr lower;  // kSlice; may be null
  ExprPtr upper;  // kSubscript: the subscript; kSlice: may be null
};

struct IndirectionExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kIndirection;
  IndirectionExpr() : Expr(kKind) {}
  ExprPtr arg;
  std::vector<IndirectionStep> steps;
};

struct RowExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kRow;
  RowExpr() : Expr(kKind) {}
  bool explicit_row = false;  // ROW(...) rather than (a, b)
  ExprList args;
};

enum class SqlValueKind : uint8_t {
  kCurrentDate,
  kCurrentTime,
  kCurrentTimestamp,
  kLocalTime,
  kLocalTimestamp,
  kCurrentRole,
  kCurrentUser,
  kUser,
  kSessionUser,
  kCurrentCatalog,
  kCurrentSchema,
};

// CURRENT_DATE and its kin: function-like words without parentheses.
struct SqlValueFunction : Expr {
  static constexpr NodeKind kKind = NodeKind::kSqlValueFunction;
  SqlValueFunction() : Expr(kKind) {}
  SqlValueKind function = SqlValueKind::kCurrentDate;
  int32_t precision = -1;  // CURRENT_TIMESTAMP(p); -1: none given
};

struct CollateExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kCollate;
  CollateExpr() : Expr(kKind) {}
  ExprPtr arg;
  QualifiedName collation;
};

// DEFAULT in VALUES or SET
struct DefaultExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kDefault;
  DefaultExpr() : Expr(kKind) {}
};

// GROUPING(a, b)
struct GroupingFunc : Expr {
  static constexpr NodeKind kKind = NodeKind::kGroupingFunc;
  GroupingFunc() : Expr(kKind) {}
  ExprList args;
};

enum class GroupingSetKind : uint8_t { kEmpty, kSimple, kRollup, kCube, kSets };

// An element of GROUP BY that is not a plain expression.
struct GroupingSet : Expr {
  static constexpr NodeKind kKind = NodeKind::kGroupingSet;
  GroupingSet() : Expr(kKind) {}
  GroupingSetKind set_kind = GroupingSetKind::kEmpty;
  ExprList content;  // expressions, RowExpr for (a, b), GroupingSet
};

// WHERE CURRENT OF cursor
struct CurrentOfExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kCurrentOf;
  CurrentOfExpr() : Expr(kKind) {}
  std::string cursor;
};

// Parsed, but we have no meaning for it (XML): answer 0A000 with this name.
struct UnsupportedExpr : Expr {
  static constexpr NodeKind kKind = NodeKind::kUnsupportedExpr;
  UnsupportedExpr() : Expr(kKind) {}
  std::string what;
};

// ---------------------------------------------------------------------------------------------
// Queries
// ---------------------------------------------------------------------------------------------

// A table (or view, or CTE) by name.
struct TableRef : FromItem {
  static constexpr NodeKind kKind = NodeKind::kTableRef;
  TableRef() : FromItem(kKind) {}
  QualifiedName name;
  bool only = false;
  Alias alias;
  bool has_sample = false;  // TABLESAMPLE was written
};

struct SubqueryRef : FromItem {
  static constexpr NodeKind kKind = NodeKind::kSubqueryRef;
  SubqueryRef();
  ~SubqueryRef() override;
  bool lateral = false;
  SelectPtr select;
  Alias alias;
};

enum class ConstraintKind : uint8_t {
  kNull,
  kNotNull,
  kDefault,
  kIdentity,
  kGenerated,
  kCheck,
  kPrimaryKey,
  kUnique,
  kExclusion,
  kForeignKey,
};

enum class FkAction : uint8_t { kNoAction, kRestrict, kCascade, kSetNull, kSetDefault };
enum class FkMatch : uint8_t { kSimple, kFull, kPartial };

enum class OptionKind : uint8_t { kNone, kInteger, kFloat, kString, kBool, kList, kStar, kType };

// `name [=] value` of WITH (...), COPY, EXPLAIN, sequences, roles and the like. Names arrive in
// lower case as the grammar calls them: "increment", "minvalue", "owned_by", "connectionlimit".
struct Option {
  std::string space;  // toast.x: "toast"; almost always empty
  std::string name;
  OptionKind value_kind = OptionKind::kNone;
  bool boolean = false;
  int64_t integer = 0;
  std::string text;  // kFloat, kString
  NameList list;     // kList
  std::unique_ptr<TypeName> type;
  enum class Action : uint8_t { kNone, kSet, kAdd, kDrop };
  Action action = Action::kNone;
  int location = -1;

  // The value as the text a user would write ("5", "on"); empty for kNone.
  std::string ToText() const;
  // As PostgreSQL reads a Boolean option: no value means true; true/false, on/off, yes/no, 1/0.
  // False in the first member when the value is none of these ("x requires a Boolean value").
  struct BoolValue {
    bool valid;
    bool value;
  };
  BoolValue ToBool() const;
};
using OptionList = std::vector<Option>;

// The first option of that name, or null.
const Option* FindOption(const OptionList& options, std::string_view name);

// A constraint of a column or of a table. DEFERRABLE and the like, which the grammar keeps as
// separate column constraints, are folded into the one they follow.
struct Constraint {
  ConstraintKind kind = ConstraintKind::kNull;
  std::string name;  // empty: unnamed
  bool deferrable = false;
  bool initially_deferred = false;
  bool no_inherit = false;
  bool not_valid = false;
  ExprPtr expr;                  // kDefault, kCheck, kGenerated
  bool generated_always = true;  // kIdentity: ALWAYS rather than BY DEFAULT
  NameList columns;              // kPrimaryKey, kUnique, kForeignKey of a table
  NameList including;
  bool nulls_not_distinct = false;
  std::string using_index;
  OptionList options;  // kIdentity: of the sequence; indexes: WITH (...)
  QualifiedName ref_table;
  NameList ref_columns;
  FkMatch match = FkMatch::kSimple;
  FkAction on_update = FkAction::kNoAction;
  FkAction on_delete = FkAction::kNoAction;
  NameList on_delete_columns;  // ON DELETE SET NULL (columns)
  int location = -1;
};

struct ColumnDef {
  std::string name;
  TypeName type;  // empty name in a typed table (OF type)
  QualifiedName collation;
  std::vector<Constraint> constraints;
  std::string compression;
  int location = -1;
};

// A function in FROM.
struct FunctionRef : FromItem {
  static constexpr NodeKind kKind = NodeKind::kFunctionRef;
  FunctionRef() : FromItem(kKind) {}
  struct Function {
    ExprPtr call;  // a FuncCall, or an SqlValueFunction or other expression spelt like a call
    std::vector<ColumnDef> columns;  // of ROWS FROM (f() AS (a int))
  };
  bool lateral = false;
  bool ordinality = false;
  bool rows_from = false;
  std::vector<Function> functions;  // one, unless rows_from
  Alias alias;
  std::vector<ColumnDef> columns;  // AS t(a int, b text)
};

enum class JoinType : uint8_t { kInner, kLeft, kFull, kRight };

// CROSS JOIN is kInner with nothing said.
struct JoinExpr : FromItem {
  static constexpr NodeKind kKind = NodeKind::kJoin;
  JoinExpr() : FromItem(kKind) {}
  JoinType type = JoinType::kInner;
  bool natural = false;
  FromItemPtr left;
  FromItemPtr right;
  NameList using_columns;
  std::string using_alias;  // USING (...) AS alias
  ExprPtr condition;        // ON; may be null
  Alias alias;
};

struct UnsupportedFrom : FromItem {
  static constexpr NodeKind kKind = NodeKind::kUnsupportedFrom;
  UnsupportedFrom() : FromItem(kKind) {}
  std::string what;
};

// An entry of a target list: expr [AS name].
struct SelectTarget {
  ExprPtr expr;
  std::string name;  // empty: none written
  int location = -1;
};
using TargetList = std::vector<SelectTarget>;

enum class CteMaterialize : uint8_t { kDefault, kAlways, kNever };

struct CommonTableExpr {
  std::string name;
  NameList columns;
  CteMaterialize materialize = CteMaterialize::kDefault;
  StmtPtr query;  // SelectStmt, InsertStmt, UpdateStmt or DeleteStmt
  bool has_search = false;
  bool has_cycle = false;
  int location = -1;
};

struct WithClause {
  bool recursive = false;
  std::vector<CommonTableExpr> ctes;
  int location = -1;
};

enum class SetOp : uint8_t { kNone, kUnion, kIntersect, kExcept };
enum class LockStrength : uint8_t { kForKeyShare, kForShare, kForNoKeyUpdate, kForUpdate };
enum class LockWait : uint8_t { kBlock, kSkip, kError };

struct LockingClause {
  std::vector<QualifiedName> tables;  // OF a, b; empty: all
  LockStrength strength = LockStrength::kForUpdate;
  LockWait wait = LockWait::kBlock;
};

enum class OnCommit : uint8_t { kNone, kPreserveRows, kDeleteRows, kDrop };
enum class Persistence : uint8_t { kPermanent, kUnlogged, kTemporary };

// Where SELECT INTO, CREATE TABLE AS and CREATE MATERIALIZED VIEW put rows.
struct IntoClause {
  QualifiedName table;
  Persistence persistence = Persistence::kPermanent;
  NameList columns;
  OptionList options;
  OnCommit on_commit = OnCommit::kNone;
  std::string access_method;
  std::string tablespace;
  bool no_data = false;
};

// Three shapes: set_op != kNone: `operands`; values non-empty: VALUES; else a plain SELECT. with,
// order_by, limit, offset and locking belong to every shape.
struct SelectStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kSelect;
  SelectStmt() : Stmt(kKind) {}
  std::unique_ptr<WithClause> with;

  // op over two or more operands, read from the left; all operands share op and set_all.
  SetOp set_op = SetOp::kNone;
  bool set_all = false;
  std::vector<SelectPtr> operands;

  std::vector<ExprList> values;  // rows; entries may be DefaultExpr

  bool distinct = false;
  ExprList distinct_on;  // DISTINCT ON (...); distinct is true as well
  TargetList targets;
  std::vector<FromItemPtr> from;
  ExprPtr where;
  ExprList group_by;  // may hold GroupingSet; see has_grouping_sets
  bool has_grouping_sets = false;
  bool group_distinct = false;
  ExprPtr having;
  std::vector<WindowDef> windows;

  std::vector<SortBy> order_by;
  ExprPtr limit;  // null: none; LIMIT ALL is a NULL constant
  ExprPtr offset;
  bool with_ties = false;
  std::vector<LockingClause> locking;
  std::unique_ptr<IntoClause>
      into;  // SELECT INTO below the top level only; at the top it is CreateTableAs
};

// A column to store into, with the subscripts or fields written after it.
struct AssignTarget {
  std::string column;
  std::vector<IndirectionStep> steps;
  int location = -1;
};

// column = value, or (c1, c2) = row-value, which may be a RowExpr or a SubLink.
struct SetClause {
  std::vector<AssignTarget> targets;
  bool multi = false;  // written with parentheses
  ExprPtr value;       // may be DefaultExpr, or hold some in a RowExpr
};

// A key of an index, or of ON CONFLICT (...).
struct IndexElement {
  std::string column;  // empty: expr
  ExprPtr expr;
  QualifiedName collation;
  QualifiedName opclass;
  SortDirection direction = SortDirection::kDefault;
  SortNulls nulls = SortNulls::kDefault;
};

struct OnConflict {
  bool do_update = false;
  std::vector<IndexElement> elements;  // may be empty with DO NOTHING
  ExprPtr index_where;
  std::string constraint;  // ON CONSTRAINT
  std::vector<SetClause> sets;
  ExprPtr where;
  int location = -1;
};

enum class Overriding : uint8_t { kNone, kUserValue, kSystemValue };

struct InsertStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kInsert;
  InsertStmt() : Stmt(kKind) {}
  std::unique_ptr<WithClause> with;
  QualifiedName table;
  std::string alias;
  std::vector<AssignTarget> columns;  // empty: all
  SelectPtr source;                   // null: DEFAULT VALUES
  Overriding overriding = Overriding::kNone;
  std::unique_ptr<OnConflict> on_conflict;
  TargetList returning;
};

struct UpdateStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kUpdate;
  UpdateStmt() : Stmt(kKind) {}
  std::unique_ptr<WithClause> with;
  QualifiedName table;
  bool only = false;
  Alias alias;
  std::vector<SetClause> sets;
  std::vector<FromItemPtr> from;
  ExprPtr where;  // may be CurrentOfExpr
  TargetList returning;
};

struct DeleteStmt : Stmt {
  static constexpr NodeKind kKind = NodeKind::kDelete;
  DeleteStmt() : Stmt(kKind) {}
  std::unique_ptr<WithClause> with;
  QualifiedName table;
  bool only = false;
  Alias alias;
  std::vector<FromItemPtr> using_items;
  ExprPtr where;
  TargetList returning;
};

}  // namespace cellar::sql::ast

#include "cellar/sql/parser/ast_ddl.h"  // IWYU pragma: export
