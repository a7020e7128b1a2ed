// The bound query between the binder and the physical planner. Private to this layer.
//
// Every column that any relation or expression of the statement produces has an id, unique in the
// statement; until the physical plan is made, a kColumn expression's `index` is such an id and a
// kSubplan's `index` a position in Statement::subqueries. So a correlated reference is simply an id
// that the tree does not produce, and joins may be reordered without touching expressions.
//
// Invariant: an id is produced by exactly one node; nodes pass their children's ids through unless
// they say otherwise (aggregates, set operations and data changes do not).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cellar/sql/plan/plan.h"
#include "cellar/sql/plan/planner.h"
#include "cellar/sql/plan/query_nodes.h"

namespace cellar::sql::planning {

// A set of column ids; the first 128 need no allocation.
class IdSet {
 public:
  void Add(int id) {
    uint64_t* word = Word(id);
    *word |= uint64_t{1} << (id & 63);
  }
  void Remove(int id) {
    if (Has(id)) *Word(id) &= ~(uint64_t{1} << (id & 63));
  }
  bool Has(int id) const {
    size_t word = static_cast<size_t>(id) >> 6;
    uint64_t bits = word < 2 ? near_[word] : word - 2 < far_.size() ? far_[word - 2] : 0;
    return (bits >> (id & 63)) & 1;
  }
  void AddAll(const IdSet& other) {
    near_[0] |= other.near_[0];
    near_[1] |= other.near_[1];
    if (far_.size() < other.far_.size()) far_.resize(other.far_.size());
    for (size_t i = 0; i < other.far_.size(); ++i) far_[i] |= other.far_[i];
  }
  void RemoveAll(const IdSet& other) {
    near_[0] &= ~other.near_[0];
    near_[1] &= ~other.near_[1];
    for (size_t i = 0; i < far_.size() && i < other.far_.size(); ++i) far_[i] &= ~other.far_[i];
  }
  bool empty() const {
    if (near_[0] | near_[1]) return false;
    for (uint64_t word : far_) {
      if (word) return false;
    }
    return true;
  }
  bool Intersects(const IdSet& other) const {
    if ((near_[0] & other.near_[0]) | (near_[1] & other.near_[1])) return true;
    for (size_t i = 0; i < far_.size() && i < other.far_.size(); ++i) {
      if (far_[i] & other.far_[i]) return true;
    }
    return false;
  }
  bool ContainsAll(const IdSet& other) const {
    if ((other.near_[0] & ~near_[0]) | (other.near_[1] & ~near_[1])) return false;
    for (size_t i = 0; i < other.far_.size(); ++i) {
      if (other.far_[i] & ~(i < far_.size() ? far_[i] : 0)) return false;
    }
    return true;
  }
  // Calls visit(id) in ascending order.
  template <typename F>
  void ForEach(F&& visit) const {
    for (size_t w = 0; w < 2 + far_.size(); ++w) {
      uint64_t bits = w < 2 ? near_[w] : far_[w - 2];
      while (bits) {
        visit(static_cast<int>(w * 64) + __builtin_ctzll(bits));
        bits &= bits - 1;
      }
    }
  }

 private:
  uint64_t* Word(int id) {
    size_t word = static_cast<size_t>(id) >> 6;
    if (word < 2) return &near_[word];
    if (far_.size() <= word - 2) far_.resize(word - 1);
    return &far_[word - 2];
  }
  uint64_t near_[2] = {0, 0};
  std::vector<uint64_t> far_;
};

// What is known of the fields of a value of type record, before there is one.
struct RecordShape {
  std::vector<std::string> names;
  std::vector<Type> types;
  std::vector<std::shared_ptr<const RecordShape>> shapes;  // of fields; null: no record, or unknown
};

// What is known of a column id.
struct ColumnInfo {
  std::string name;
  std::string qualifier;  // the alias of its relation, for messages and EXPLAIN; may be empty
  Type type;
  uint32_t table_oid = 0;
  int16_t attnum = 0;
  bool not_null = false;  // of the base column; outer joins may still null it
  std::shared_ptr<const RecordShape> record = nullptr;  // of a record, as far as it is known
};

// The columns that hold what a function with several of them returns.
struct RecordInfo {
  std::vector<std::string> names;
  std::vector<int> ids;
};

enum class LogicalKind : uint8_t {
  kResult,
  kValues,
  kGet,
  kVirtualGet,
  kFunctionGet,
  kFilter,
  kProject,
  kProjectSet,
  kJoin,
  kAggregate,
  kWindow,
  kSort,
  kLimit,
  kLock,
  kDistinct,
  kAppend,
  kSetOperation,
  kCteRef,
  kRecursiveUnion,
  kWorkTable,
  kInsert,
  kUpdate,
  kDelete,
};

struct Logical {
  explicit Logical(LogicalKind node_kind) : kind(node_kind) {}
  virtual ~Logical() = default;
  template <typename T>
  T& As() {
    return static_cast<T&>(*this);
  }
  template <typename T>
  const T& As() const {
    return static_cast<const T&>(*this);
  }

  LogicalKind kind;
  std::vector<std::unique_ptr<Logical>> children;
  std::vector<int> ids;  // the columns that this node itself produces, in order
};
using LogicalPtr = std::unique_ptr<Logical>;

struct LogicalResult : Logical {  // one row, no columns
  LogicalResult() : Logical(LogicalKind::kResult) {}
};
struct LogicalValues : Logical {
  LogicalValues() : Logical(LogicalKind::kValues) {}
  std::vector<std::vector<ExprPtr>> rows;
};
// A table; ids are its living columns in ordinal order.
struct LogicalGet : Logical {
  LogicalGet() : Logical(LogicalKind::kGet) {}
  catalog::TablePtr table;
  std::string alias;
  std::vector<catalog::ColumnId> columns;  // as ids
  int row_ref = -1;                        // id of the row reference, when one is wanted
  // What its indexes hold beside columns, bound over ids. Each expression has an id that stands for
  // it while access paths are chosen, and that nothing produces.
  struct IndexExpression {
    std::string sql;  // as in the descriptor
    int id = -1;
    ExprPtr expr;  // null: another text of the same expression came before
  };
  std::vector<IndexExpression> index_expressions;
  std::vector<std::pair<catalog::IndexId, ExprPtr>> index_predicates;

  // The id of an index expression, or -1.
  int ExpressionOf(const Expr& expr) const;
  // Of a column or expression of an index; -1 when it is not known.
  int IdOfKey(const catalog::IndexColumn& key) const;
  const Expr* PredicateOf(const catalog::IndexDescriptor& index) const;
  int use = -1;   // in Statement::uses
  int lock = -1;  // see ScanNode
};
struct LogicalVirtualGet : Logical {
  LogicalVirtualGet() : Logical(LogicalKind::kVirtualGet) {}
  const VirtualTable* table = nullptr;
  std::string alias;
};
struct LogicalFunctionGet : Logical {
  LogicalFunctionGet() : Logical(LogicalKind::kFunctionGet) {}
  std::vector<ExprPtr> calls;
  bool ordinality = false;
  std::string alias;
};
struct LogicalFilter : Logical {
  LogicalFilter() : Logical(LogicalKind::kFilter) {}
  std::vector<ExprPtr> conditions;
};
struct LogicalProject : Logical {
  LogicalProject() : Logical(LogicalKind::kProject) {}
  std::vector<ExprPtr> exprs;  // as ids
};
struct LogicalProjectSet : Logical {
  LogicalProjectSet() : Logical(LogicalKind::kProjectSet) {}
  std::vector<ExprPtr> exprs;  // as ids; set-returning calls at their top
};
struct LogicalJoin : Logical {
  LogicalJoin() : Logical(LogicalKind::kJoin) {}
  JoinKind join = JoinKind::kInner;  // never kRight
  std::vector<ExprPtr> conditions;
  bool null_aware = false;  // kAnti for NOT IN: its conditions are `left = right` pairs
};
struct LogicalAggregate : Logical {
  LogicalAggregate() : Logical(LogicalKind::kAggregate) {}
  std::vector<ExprPtr> keys;
  std::vector<AggregateCall> calls;  // ids: keys, then calls. A plain column key keeps its id.
  // As GroupingNode's. With sets no key keeps its id, and the groupings have ids behind the calls.
  std::vector<std::vector<int>> sets, groupings;
};
struct LogicalWindow : Logical {
  LogicalWindow() : Logical(LogicalKind::kWindow) {}
  std::vector<ExprPtr> partition_by;
  std::vector<SortKey> order_by;
  std::vector<WindowCall> calls;
  std::vector<WindowFrame> frames;  // of each
};
struct LogicalSort : Logical {
  LogicalSort() : Logical(LogicalKind::kSort) {}
  std::vector<SortKey> keys;
};
struct LogicalLimit : Logical {
  LogicalLimit() : Logical(LogicalKind::kLimit) {}
  ExprPtr limit, offset;
  std::vector<int> ties;  // ids, see TiesNode
};
// Locks rows of tables below.
struct LogicalLock : Logical {
  LogicalLock() : Logical(LogicalKind::kLock) {}
  struct Target {
    catalog::TablePtr table;
    int row_ref = -1;  // id
    int lock = -1;
    RowLock how;
  };
  std::vector<Target> targets;
};
// Outputs only `on` (DISTINCT) or passes its child's columns through (DISTINCT ON).
struct LogicalDistinct : Logical {
  LogicalDistinct() : Logical(LogicalKind::kDistinct) {}
  std::vector<int> on;
  bool distinct_on = false;
  std::vector<int> carried;    // DISTINCT ON: other columns to keep
  std::vector<SortKey> order;  // DISTINCT ON: what decides which row is first
};
// UNION ALL: ids[i] takes inputs[c][i] of child c.
struct LogicalAppend : Logical {
  LogicalAppend() : Logical(LogicalKind::kAppend) {}
  std::vector<std::vector<int>> inputs;
};
struct LogicalSetOperation : Logical {
  LogicalSetOperation() : Logical(LogicalKind::kSetOperation) {}
  SetOperationNode::Kind operation = SetOperationNode::Kind::kUnion;
  bool all = false;
  std::vector<std::vector<int>> inputs;
};
struct LogicalCteRef : Logical {
  LogicalCteRef() : Logical(LogicalKind::kCteRef) {}
  int cte = 0;
};
struct LogicalRecursiveUnion : Logical {
  LogicalRecursiveUnion() : Logical(LogicalKind::kRecursiveUnion) {}
  int work_table = 0;
  bool all = false;
  std::vector<std::vector<int>> inputs;
};
struct LogicalWorkTable : Logical {
  LogicalWorkTable() : Logical(LogicalKind::kWorkTable) {}
  int work_table = 0;
  std::string name;
};

// The child yields `inputs`, one per living column. ids: RETURNING's columns.
struct LogicalInsert : Logical {
  LogicalInsert() : Logical(LogicalKind::kInsert) {}
  catalog::TablePtr table;
  std::string alias;
  std::vector<int> inputs;
  std::vector<int>
      stored;  // ids that stand for the stored row in `returning` and the DO UPDATE part
  std::vector<int> excluded;      // ids that stand for the row that was to be inserted
  std::vector<CheckExpr> checks;  // over positions already
  std::vector<ForeignKeyCheck> foreign_keys, referenced_by;
  OnConflict::Kind conflict = OnConflict::Kind::kNone;
  std::vector<catalog::IndexId> arbiters;
  std::vector<std::pair<int, ExprPtr>> assignments;
  ExprPtr conflict_where;
  bool has_returning = false;
  std::vector<ExprPtr> returning;
};
struct LogicalUpdate : Logical {
  LogicalUpdate() : Logical(LogicalKind::kUpdate) {}
  catalog::TablePtr table;
  std::string alias;
  std::vector<int> target;  // ids of the old row's living columns
  int row_ref = -1;
  std::vector<std::pair<int, ExprPtr>> assignments;
  // Values of generated columns over ids of the old row (`target`): columns assigned to are
  // substituted at planning.
  std::vector<CheckExpr> checks;
  std::vector<ForeignKeyCheck> foreign_keys, referenced_by;
  bool has_returning = false;
  std::vector<ExprPtr> returning;  // target ids stand for the new row
};
struct LogicalDelete : Logical {
  LogicalDelete() : Logical(LogicalKind::kDelete) {}
  catalog::TablePtr table;
  std::string alias;
  std::vector<int> target;
  int row_ref = -1;
  std::vector<ForeignKeyCheck> referenced_by;
  bool has_returning = false;
  std::vector<ExprPtr> returning;
};

// A column of a bound query.
struct QueryColumn {
  std::string name;
  int id = -1;
};
struct BoundQuery {
  LogicalPtr root;
  std::vector<QueryColumn> columns;
};

struct Subquery {
  LogicalPtr root;
  std::vector<int> ids;  // its output
  // More than one expression may name it: it has to stay a subquery.
  bool shared = false;
  bool is_volatile = false;  // as ContainsVolatile
  // Set when planned:
  int plan = -1;
  std::vector<int> outer_ids;  // what it needs of the outside, and the slots that bring it
  std::vector<int> slots;
};

struct Cte {
  std::string name;
  LogicalPtr root;
  std::vector<QueryColumn> columns;
  int references = 0;
  bool inlinable = false;  // may become a part of the query that names it once
  bool modifying = false;
  int plan = -1;  // position in Plan::ctes once planned
};

struct Statement;
bool ContainsVolatile(const Statement& statement, const Logical& tree);

// What one statement accumulates while it is bound and planned.
struct Statement {
  explicit Statement(PlannerContext& planner_context) : context(planner_context) {}

  int AddColumn(ColumnInfo info) {
    columns.push_back(std::move(info));
    return static_cast<int>(columns.size()) - 1;
  }
  void AddSubquery(Subquery subquery) {
    subquery.is_volatile = ContainsVolatile(*this, *subquery.root);
    subqueries.push_back(std::move(subquery));
  }
  const ColumnInfo& column(int id) const { return columns[static_cast<size_t>(id)]; }
  ExprPtr ColumnExpr(int id, int location = -1) const {
    ExprPtr expr = MakeColumn(id, column(id).type);
    expr->location = location;
    return expr;
  }

  // Asked wherever work goes on with the size of the statement: at each expression and FROM item,
  // at each step of the search for a join order. Errors: those of the session's token.
  Status CheckCancel() {
    const bool polls =
        ++steps % kStepsPerPoll == 0 && context.fold != nullptr && context.fold->cancel != nullptr;
    return polls ? context.fold->cancel->Check() : Status();
  }

  static constexpr uint32_t kStepsPerPoll = 64;
  uint32_t steps = 0;
  PlannerContext& context;
  std::vector<ColumnInfo> columns;
  std::vector<Subquery> subqueries;
  std::vector<Cte> ctes;
  std::vector<Type> parameter_types;
  std::vector<int> parameter_locations;
  std::vector<catalog::TablePtr> tables;
  std::vector<RelationUse> uses;
  std::vector<const VirtualTable*> virtual_tables;
  int work_tables = 0;
  size_t from_items = 0;  // of all levels and views, bound so far
  int relations = 0;      // FROM items: EXPLAIN qualifies columns when there are several
  bool uses_virtual = false;
  bool locks_rows = false;
  std::string_view lock_tag;  // as the plan's
  int locks = 0;              // LogicalGet::lock
  bool calls_writer = false;  // nextval, setval: the statement writes
};

// ---- Walks over expressions and trees ----

// Ids that an expression uses, subqueries' outer references included.
void AddIds(const Statement& statement, const Expr& expr, IdSet* out);
inline IdSet IdsOf(const Statement& statement, const Expr& expr) {
  IdSet out;
  AddIds(statement, expr, &out);
  return out;
}
// Ids that the nodes of a tree produce.
void AddProduced(const Logical& tree, IdSet* out);
// Ids that a tree uses and does not produce: its correlation.
IdSet FreeIds(const Statement& statement, const Logical& tree);
// Calls f(Expr*) for every expression that the node itself holds.
void ForEachExpr(Logical* node, const std::function<void(ExprPtr*)>& f);
bool HasSubplan(const Expr& expr);
bool IsVolatile(const Expr& expr);
// The same, with the subqueries that it names.
bool IsVolatile(const Statement& statement, const Expr& expr);
// Does anything in the tree give another value each time, or lock rows?
bool ContainsVolatile(const Statement& statement, const Logical& tree);
// Conditions of which all must hold: plain ones come before volatile ones, which are asked of no
// more rows than need be, and those before subqueries.
void OrderByCost(std::vector<ExprPtr>* conditions);
// True when the expression is certainly not true if any of the columns it uses is NULL.
bool RejectsNulls(const Expr& condition, const IdSet& ids);
// Splits AND into conjuncts; true constants vanish.
void SplitConjuncts(ExprPtr condition, std::vector<ExprPtr>* out);
ExprPtr JoinConjuncts(std::vector<ExprPtr> conditions);  // null when there are none
// Replaces kColumn ids by (clones of) expressions.
void Substitute(ExprPtr* expr, const std::vector<std::pair<int, const Expr*>>& values);
ExprPtr MakeCall(const FunctionSpec* function, Type type, std::vector<ExprPtr> args);
ExprPtr MakeLogic(ExprKind kind, std::vector<ExprPtr> args);
inline bool IsConstant(const Expr& expr) { return expr.kind == ExprKind::kConstant; }
inline bool IsTrueConstant(const Expr& expr) {
  return IsConstant(expr) && !expr.constant.is_null() && expr.constant.datum().bool_value();
}
inline bool IsFalseOrNullConstant(const Expr& expr) {
  return IsConstant(expr) && (expr.constant.is_null() || !expr.constant.datum().bool_value());
}
// Adds a source position to an error that has none.
Status At(Status status, int location);

#define PLAN_TRY_AT(expr, location)                                         \
  do {                                                                      \
    if (::cellar::Status plan_try_ = (expr); !plan_try_.ok()) {             \
      return ::cellar::sql::planning::At(std::move(plan_try_), (location)); \
    }                                                                       \
  } while (false)
#define PLAN_TRY_ASSIGN_AT(decl, expr, location) \
  PLAN_TRY_ASSIGN_AT_INNER(CELLAR_CONCAT(plan_result_, __LINE__), decl, expr, location)
#define PLAN_TRY_ASSIGN_AT_INNER(tmp, decl, expr, location)                               \
  auto tmp = (expr);                                                                      \
  if (!tmp.ok()) return ::cellar::sql::planning::At(std::move(tmp).status(), (location)); \
  decl = std::move(tmp).value()

}  // namespace cellar::sql::planning
