// From syntax trees to bound queries: names, types, aggregates, subqueries. Private to this layer.
//
// One Binder serves one statement; nested queries share it and its Statement. Errors carry
// PostgreSQL's SQLSTATEs and messages, and the byte offset of what they complain about.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/expr/blanks.h"
#include "cellar/sql/expr/collate.h"
#include "cellar/sql/parser/ast.h"
#include "cellar/sql/parser/parser.h"
#include "cellar/sql/plan/logical.h"

namespace cellar::sql::planning {

struct ScopeItem;

// A column of a view whose rows are changed: what it is computed from, bound anew wherever it is
// named.
struct ComputedColumn {
  const ast::Expr* expr = nullptr;
  ScopeItem* below = nullptr;  // what the view reads
  catalog::TablePtr view;
};

struct ScopeColumn {
  std::string name;
  int id = -1;
  bool hidden = false;  // not in *
  // Position in Statement::uses and the column there; -1: no relation's column.
  int use = -1;
  catalog::ColumnId column = {};
  // Of a view whose rows are changed: the column of what it reads, or how it is computed.
  const ScopeColumn* below = nullptr;
  std::shared_ptr<const ComputedColumn> computed;
};

// A relation in FROM as names see it.
struct ScopeItem {
  std::string name;    // alias; empty for a join without one
  std::string schema;  // of a table without an alias: schema.table.column
  std::vector<ScopeColumn> columns;
  bool relation_visible = true;  // by qualified name
  bool work_table = false;       // of a recursive query
  bool columns_visible = true;   // by plain name, and in *
  bool lateral_only = false;     // a sibling that a lateral item may not use: for the error's hint
  bool scalar_function = false;  // the whole row is its one column
  uint32_t system_oid = 0;       // of a table of pg_catalog itself, not one that is a view
  catalog::TablePtr table;
  LogicalGet* get = nullptr;
  Logical* tree = nullptr;  // of a subquery or a view
  int use = -1;             // of `table` or the view, in Statement::uses
  bool of_join = false;     // of columns that others hold
  // The nearest outer join that may make its rows NULL, and on which side of it the relation is.
  LogicalJoin* nulled_by = nullptr;
  size_t nulled_side = 0;
};

// The column of the table itself.
inline const ScopeColumn& BaseOf(const ScopeColumn& column) {
  return column.below == nullptr ? column : BaseOf(*column.below);
}

struct Block;

struct Scope {
  const Scope* parent = nullptr;
  Block* block = nullptr;  // the SELECT it belongs to
  std::vector<ScopeItem*> items;
};

enum class Place : uint8_t {
  kSelect,
  kWhere,
  kJoinOn,
  kGroupBy,
  kHaving,
  kOrderBy,
  kDistinctOn,
  kLimit,
  kOffset,
  kFunctionInFrom,
  kValues,
  kReturning,
  kUpdate,
  kCheck,
  kDefault,
  kGenerated,
  kWindow,
  kFilter,
  kConflictWhere,
  kOwnFrom,  // FROM of the query whose columns are meant
  kIndexExpression,
  kIndexPredicate,
};
// "WHERE", "JOIN conditions": as PostgreSQL's messages name it.
std::string_view PlaceName(Place place);

// Where an expression stands. Passed by reference; copies are made to change a flag.
struct Env {
  Scope* scope = nullptr;
  Place place = Place::kSelect;
  bool in_aggregate = false;
  bool in_window = false;
};

struct BoundAggregate {
  AggregateCall call;
  int id = -1;
};
struct WindowSpec {
  std::vector<ExprPtr> partition_by;
  std::vector<SortKey> order_by;
  WindowFrame frame;
};
struct BoundWindow {
  WindowCall call;
  WindowSpec spec;
  int id = -1;
};
struct BoundGrouping {
  std::vector<ExprPtr> args;
  std::vector<int> locations;
  int id = -1;
};
struct BoundSetFunction {
  ExprPtr call;
  int id = -1;
  int level = 0;
  std::shared_ptr<const RecordInfo> record;  // composite: becomes a lateral function
};

// One SELECT while it is bound.
struct Block {
  const ast::SelectStmt* select = nullptr;
  Scope scope;
  std::vector<BoundAggregate> aggregates;
  std::vector<BoundWindow> windows;
  std::vector<BoundGrouping> groupings;
  std::vector<BoundSetFunction> set_functions;
  bool grouped = false;
  // Where the subquery stands that is bound now: its aggregates may be this query's.
  Place subquery_place = Place::kSelect;
  bool subquery_in_aggregate = false;
};

// A CTE in scope.
struct CteName {
  std::string name;
  int cte = -1;
  // While the recursive term is bound:
  bool is_work_table = false;
  int work_table = 0;
  std::vector<QueryColumn> columns;
  bool* referenced = nullptr;
  // Where it may not be named at all: in the terms before, and where there is no UNION.
  bool too_early = false, no_union = false;
  size_t recursion = 0;  // its place among recursion_places_
  // To bind it again where a correlated one is named twice.
  const ast::CommonTableExpr* definition = nullptr;
  const Scope* outer = nullptr;
  bool recursive = false;  // of WITH RECURSIVE
};

enum class Change : uint8_t { kInsert, kUpdate, kDelete };

// A view's text, and whether rows can be changed through it.
struct ViewShape {
  ast::StmtPtr text;                    // a SelectStmt
  std::string_view why;                 // PostgreSQL's reason why not; empty: they can
  const ast::TableRef* from = nullptr;  // of `text`
  catalog::TablePtr below;              // what it names
  std::vector<int> columns;             // the view's: position in `below`'s item; -1: computed
  std::vector<const ast::Expr*> exprs;  // of the computed ones
};
struct ViewLevel {
  catalog::TablePtr view;
  ViewShape shape;
  int use = -1;  // in Statement::uses
};
// What INSERT, UPDATE or DELETE names.
struct DmlTarget {
  catalog::TablePtr table;       // whose rows are changed
  std::vector<ViewLevel> views;  // over it, the one that is named first; empty: the table is named
};

class Binder {
 public:
  explicit Binder(Statement& statement);

  Result<BoundQuery> BindSelect(const ast::SelectStmt& select, const Scope* outer,
                                bool resolve_unknowns = true);
  // INSERT, UPDATE, DELETE; the query's columns are those of RETURNING.
  Result<BoundQuery> BindStatement(const ast::Node& statement, const Scope* outer);
  Result<ExprPtr> BindTableExpression(const ast::Expr& expression,
                                      const catalog::TableDescriptor* table, Type target,
                                      Place place);

  // Of an index, over the living columns' positions. Errors: 42P17 for what is not immutable.
  Result<ExprPtr> BindIndexPart(const ast::Expr& expression, const catalog::TableDescriptor& table,
                                Place place);

  // bind_views.cc
  Result<ViewShape> ShapeOf(const catalog::TablePtr& view);

 private:
  struct FromResult {
    LogicalPtr root;
    std::vector<ScopeItem*> items;
  };

  // bind_from.cc
  Result<FromResult> BindFromList(const std::vector<ast::FromItemPtr>& from, const Scope* outer,
                                  Block* block);
  Result<FromResult> BindFromItem(const ast::FromItem& item, const Scope* outer,
                                  const std::vector<ScopeItem*>& siblings, Block* block);
  Result<FromResult> BindTableRef(const ast::TableRef& ref, const Scope* outer);
  Result<FromResult> BindSubqueryRef(const ast::SubqueryRef& ref, const Scope* outer);
  Result<FromResult> BindFunctionRef(const ast::FunctionRef& ref, const Scope* outer, Block* block);
  Result<FromResult> BindJoin(const ast::JoinExpr& join, const Scope* outer,
                              const std::vector<ScopeItem*>& siblings, Block* block);
  Result<FromResult> BindView(const std::string& sql, std::string_view name, std::string_view alias,
                              const ast::Alias& alias_spec, int location,
                              const catalog::TablePtr& view);
  Result<FromResult> BindCteRef(CteName& cte, const ast::TableRef& ref);
  // Binds what is a place where the recursive query around it may not be named.
  template <typename F>
  auto InPlace(std::string_view place, F&& bind) {
    std::string_view& now = recursion_places_.back();
    const std::string_view before = now;
    if (now.empty()) now = place;
    auto bound = bind();
    recursion_places_.back() = before;
    return bound;
  }
  // May a recursive query be named here? Errors: 42P19.
  Status CheckRecursion(const CteName& name, int location) const;
  Result<ScopeItem*> MakeItem(std::string name, const std::vector<QueryColumn>& columns,
                              const ast::Alias& alias, int location);
  Status ApplyAlias(ScopeItem* item, const ast::Alias& alias, int location);
  Status CheckDuplicateNames(const std::vector<ScopeItem*>& items);
  ScopeItem* NewItem() {
    items_.push_back(std::make_unique<ScopeItem>());
    return items_.back().get();
  }
  // A Get with fresh ids and its item.
  std::unique_ptr<LogicalGet> MakeGet(const catalog::TablePtr& table, const std::string& alias,
                                      ScopeItem* item);
  Result<catalog::TablePtr> FindTargetRelation(const ast::QualifiedName& name);
  Status CheckCatalogName(const ast::QualifiedName& name);
  void UseTable(const catalog::TablePtr& table);
  // A new entry of Statement::uses.
  int AddUse(const catalog::TablePtr& relation);
  void MarkSelected(const ScopeColumn& column);
  Status CheckSchema(const ast::QualifiedName& name);
  // For PlannerContext::name_uses.
  void NoteUse(NameUse use);
  void NoteColumn(const ScopeItem& item, const ScopeColumn& column, int location);

  // bind_select.cc
  Result<BoundQuery> BindQueryBody(const ast::SelectStmt& select, const Scope* outer,
                                   bool resolve_unknowns);
  Result<BoundQuery> BindPlainSelect(const ast::SelectStmt& select, const Scope* outer,
                                     bool resolve_unknowns);
  Result<BoundQuery> BindValues(const ast::SelectStmt& select, const Scope* outer,
                                bool resolve_unknowns);
  Result<BoundQuery> BindSetOperation(const ast::SelectStmt& select, const Scope* outer);
  Status BindWith(const ast::WithClause& with, const Scope* outer);
  Result<int> BindCte(const ast::CommonTableExpr& cte, bool recursive, const Scope* outer);
  Result<BoundQuery> BindRecursive(const ast::CommonTableExpr& cte, const ast::SelectStmt& select,
                                   const Scope* outer);
  // What FOR UPDATE and its kin say: which tables are locked, and how. Null: none.
  Result<std::unique_ptr<LogicalLock>> Lock(const ast::SelectStmt& select, Block& block);
  // The lock of a table's rows, whose references are to be read for it.
  LogicalLock::Target LockOf(LogicalGet* get, RowLock how);
  int AddRowRef(LogicalGet* get);
  // Makes column `i` of a query have this type, in its own projection where that is possible.
  Status CoerceColumn(BoundQuery* query, size_t i, Type to, CastContext context, int location);
  Result<LogicalPtr> AddSetFunctions(Block& block, LogicalPtr root, const IdSet* only);
  Status AddLimit(const ast::SelectStmt& select, const Scope* outer, BoundQuery* query);
  Status SortByOutput(const ast::SelectStmt& select, BoundQuery* query);
  Result<LogicalPtr> AddWindows(Block& block, LogicalPtr root);
  // Expands * and binds targets.
  struct Target {
    std::string name;
    ExprPtr expr;
    const ast::Expr* ast = nullptr;
    int location = -1;
  };
  Status BindTargets(const ast::TargetList& targets, Env& env, std::vector<Target>* out);
  Status AddTargets(const ast::TargetList& targets, Env& env, std::vector<Target>* out);
  // 54011 when a list of this many is longer than PostgreSQL lets rows be.
  static Status CheckEntries(size_t entries, const char* what);
  Status ExpandStar(const ast::ColumnRef& ref, Env& env, std::vector<Target>* out);
  Status CheckGrouped(const Block& block, const std::vector<ExprPtr*>& exprs,
                      const std::vector<ExprPtr>& keys, const std::vector<int>& key_ids);
  // `order`: of the keys, where several are alike.
  Status ReplaceKeys(ExprPtr* expr, const std::vector<ExprPtr>& keys,
                     const std::vector<int>& key_ids, const std::vector<size_t>& order);
  Status CheckUngrouped(const Expr& expr, const IdSet& local, const IdSet& allowed);
  Result<SortKey> MakeSortKey(const ast::SortBy& sort, ExprPtr expr);
  bool NullsFirst(const ast::SortBy& sort, bool descending);

  // bind_views.cc
  // Errors: 55000 for a view that is not a simple one, with PostgreSQL's reason.
  Result<DmlTarget> FindTarget(const ast::QualifiedName& name, Change change);
  void NoteChange(int use, Change change);
  // Of the column and those below it.
  void NoteChanged(const ScopeColumn& column, Change change);
  // A use of the table below views is their owner's.
  void AskAs(const DmlTarget& target, int use);
  // The item of the view that was named over `base`, which is the table's own; `base` itself where
  // no view was. Adds what the views' WHEREs ask of the rows, when it is wanted.
  Result<ScopeItem*> ThroughViews(const DmlTarget& target, ScopeItem* base,
                                  const std::string& alias, std::vector<ExprPtr>* conditions);
  Result<ExprPtr> BindInView(const ComputedColumn& computed, Place place);
  // The column of this name, for a value. Errors: 42703, 0A000 for a computed one.
  Result<const ScopeColumn*> ChangedColumn(const DmlTarget& target, const ScopeItem& item,
                                           const std::string& name, int location, Change change);

  // bind_dml.cc
  Result<BoundQuery> BindInsert(const ast::InsertStmt& insert, const Scope* outer);
  // The rows of the target of UPDATE or DELETE, with those of FROM or USING beside them.
  struct TargetRows {
    LogicalPtr root;
    std::vector<int> ids;  // of the table's living columns
    int row_ref = -1;
    LogicalLock::Target lock;
    ScopeItem* named = nullptr;  // the table, or the view that stands for it
  };
  Result<TargetRows> BindTargetRows(const DmlTarget& to, const ast::QualifiedName& name,
                                    const std::string& alias, Change change,
                                    const std::vector<ast::FromItemPtr>& others, const Scope* outer,
                                    Block* block);
  Result<BoundQuery> BindUpdate(const ast::UpdateStmt& update, const Scope* outer);
  Result<BoundQuery> BindDelete(const ast::DeleteStmt& del, const Scope* outer);
  Status BindReturning(const ast::TargetList& targets, Scope* scope, std::vector<ExprPtr>* exprs,
                       BoundQuery* query, Logical* node);
  Result<ExprPtr> ColumnDefault(const catalog::TableDescriptor& table,
                                const catalog::ColumnDescriptor& column);
  Result<ExprPtr> AssignTo(ExprPtr value, const catalog::ColumnDescriptor& column, int location);
  Status BindChecks(const catalog::TableDescriptor& table, std::vector<CheckExpr>* out);
  Status AddForeignKeys(const catalog::TableDescriptor& table, std::vector<ForeignKeyCheck>* out);
  Status AddReferencing(const catalog::TableDescriptor& table, std::vector<ForeignKeyCheck>* out);
  Status BindConflict(const ast::OnConflict& conflict, const DmlTarget& to, ScopeItem* target,
                      Scope* outer_scope, LogicalInsert* node);
  // SET's column = value pairs: position among living columns, with DEFAULTs and generated columns
  // filled in.
  Status BindAssignments(const std::vector<ast::SetClause>& sets, const DmlTarget& target,
                         const ScopeItem& item, Env& env, const std::vector<int>& target_ids,
                         std::vector<std::pair<int, ExprPtr>>* out);
  // The columns of `item` are updated, and those below them.
  void MarkUpdated(const std::vector<ast::SetClause>& sets, const ScopeItem& item);
  Status AddGenerated(const catalog::TableDescriptor& table, const std::vector<int>& target_ids,
                      std::vector<std::pair<int, ExprPtr>>* assignments);

  // index_match.cc
  Status BindIndexes(LogicalGet* get);
  // What ON CONFLICT (...) asks for in a key.
  struct ArbiterPart {
    catalog::ColumnId column;  // zero when `expression` is set
    ExprPtr expression;        // over positions
    std::optional<const Collation*> collation;
    std::string opclass;  // empty: any
  };
  // The unique indexes that ON CONFLICT (parts) WHERE means: all that fit, as PostgreSQL's.
  std::vector<catalog::IndexId> ArbitersOf(const catalog::TableDescriptor& table,
                                           const std::vector<ArbiterPart>& parts,
                                           const Expr* where);

  // bind_expr.cc
  Result<ExprPtr> BindExpr(const ast::Expr& expr, Env& env);
  Result<ExprPtr> BindConst(const ast::Const& constant);
  Result<ExprPtr> BindColumnRef(const ast::ColumnRef& ref, Env& env);
  Result<ExprPtr> ColumnFromScope(const ScopeColumn& column, int location);
  Result<ExprPtr> BindParam(const ast::ParamRef& ref);
  Result<ExprPtr> BindOperator(const ast::OperatorExpr& op, Env& env);
  Result<ExprPtr> MakeOperator(std::string_view op, ExprPtr left, ExprPtr right, int location);
  // (a, b) op (SELECT x, y ...)
  Result<ExprPtr> BindRowSubLink(const ast::OperatorExpr& op, Env& env);
  Result<ExprPtr> MakeRowComparison(std::string_view op, ExprPtr left, ExprPtr right, int location);
  Result<ExprPtr> BindAnyAll(const ast::AnyAllExpr& expr, Env& env);
  Result<ExprPtr> BindDistinct(const ast::DistinctExpr& expr, Env& env);
  Result<ExprPtr> MakeDistinct(ExprPtr left, ExprPtr right, bool negated, int location);
  Result<ExprPtr> BindIn(const ast::InExpr& expr, Env& env);
  Result<ExprPtr> BindLike(const ast::LikeExpr& expr, Env& env);
  Result<ExprPtr> BindBetween(const ast::BetweenExpr& expr, Env& env);
  Result<ExprPtr> BindBool(const ast::BoolExpr& expr, Env& env);
  // 0A000 when the parts of a CASE or COALESCE brought a set-returning function: which rows it
  // makes would depend on how far they are evaluated.
  static Status RefuseSets(const Env& env, size_t before, std::string_view what, int location);
  static size_t SetsOf(const Env& env);
  Result<ExprPtr> BindCase(const ast::CaseExpr& expr, Env& env);
  Result<ExprPtr> BindMinMax(ExprKind kind, const ast::ExprList& args, std::string_view name,
                             Env& env, int location);
  Result<ExprPtr> BindArray(const ast::ArrayExpr& array, Env& env, Type wanted);
  // `steps`: so many of them.
  Result<ExprPtr> BindIndirection(const ast::IndirectionExpr& expr, size_t steps, Env& env);
  Result<ExprPtr> BindTypeCast(const ast::TypeCast& cast, Env& env);
  Result<ExprPtr> BindValueFunction(const ast::SqlValueFunction& function, Env& env);
  Result<ExprPtr> BindSubLink(const ast::SubLink& link, Env& env, bool negated);
  Result<BoundQuery> BindSubquery(const ast::SelectStmt& select, Env& env);
  Result<ExprPtr> BindCondition(const ast::Expr& expr, Env& env, std::string_view what);
  Result<ExprPtr> ToBoolean(ExprPtr expr, std::string_view what, int location);
  Result<ExprPtr> Coerce(ExprPtr expr, Type to, CastContext context, int location);
  // For a comparison, which modifiers do not matter to.
  Result<ExprPtr> CoerceCompared(ExprPtr expr, Type to);
  Result<ExprPtr> ResolveUnknown(ExprPtr expr);  // unknown becomes text
  Status CoerceCommon(std::vector<ExprPtr*> exprs, std::string_view what, int location,
                      Type* common);
  ExprPtr Fold(ExprPtr expr);

  // bind_record.cc
  // The row of a relation; NULL where an outer join has none.
  Result<ExprPtr> WholeRow(const ScopeItem& item, int location);
  // The id of a column that is NULL where an outer join has no row of the relation.
  int PresenceOf(const ScopeItem& item);
  ExprPtr RowOf(const RecordInfo& record, int location) const;
  // What is known of the fields of a record; null: nothing.
  std::shared_ptr<const RecordShape> ShapeOf(const Expr& record) const;
  // What is known of a column that holds this value.
  ColumnInfo InfoOf(std::string name, const Expr& value) const;
  Result<ExprPtr> FieldOf(ExprPtr row, const std::string& field, int location);
  // (row).*: all fields, with their names. Errors: 42809 when they are not known.
  Status ExpandRecord(const ast::IndirectionExpr& expr, Env& env, std::vector<Target>* out);
  // Expressions of ROW(...) and VALUES: of t.* and (row).* all columns.
  Status BindList(const ast::ExprList& list, Env& env, std::vector<ExprPtr>* out);

  // bind_call.cc
  Result<ExprPtr> BindCall(const ast::FuncCall& call, Env& env);
  Result<ExprPtr> BindAggregate(const ast::FuncCall& call, const std::string& name, Env& env);
  // `windowed`: with OVER, so that its arguments may be aggregates.
  Result<AggregateCall> MakeAggregateCall(const ast::FuncCall& call, const std::string& name,
                                          Env& env, bool windowed);
  Result<ExprPtr> CallFunction(std::string_view name, std::vector<ExprPtr> args, int location);
  Result<ExprPtr> BindSetFunction(ExprPtr call, const std::string& name, Env& env);
  Block* OwnerOf(const std::vector<const Expr*>& exprs, Env& env);

  // bind_grouping.cc
  using AddKeys = std::function<Result<std::vector<int>>(const ast::Expr&)>;
  // `sets` stays empty for a GROUP BY of expressions only.
  Status BindGroupBy(const ast::SelectStmt& select, const AddKeys& add_keys,
                     std::vector<std::vector<int>>* sets);
  Result<std::vector<std::vector<int>>> ExpandGrouping(const ast::Expr& element,
                                                       const AddKeys& add_keys);
  Result<ExprPtr> BindGrouping(const ast::GroupingFunc& call, Env& env);
  // Positions of the arguments of each GROUPING() among the keys.
  Result<std::vector<std::vector<int>>> PlaceGroupings(const Block& block,
                                                       const std::vector<ExprPtr>& keys);
  // Substitutes ids in the queries below an expression.
  void ReplaceInSubqueries(const Expr& expr,
                           const std::vector<std::pair<int, const Expr*>>& values);
  void ReplaceInTree(Logical* tree, const std::vector<std::pair<int, const Expr*>>& values);

  // bind_window.cc
  Result<ExprPtr> BindWindowCall(const ast::FuncCall& call, const std::string& name, Env& env);
  Status BindWindow(const ast::WindowDef& def, Env& env, WindowSpec* spec);
  Status BindFrame(const ast::WindowDef& def, Env& env, WindowSpec* spec);
  // The WINDOW clause, used or not.
  Status CheckWindows(const ast::SelectStmt& select, Env& env);

  Result<Type> TypeNamed(const ast::TypeName& name) const;
  Result<const Collation*> CollationNamed(const ast::QualifiedName& name) const;
  // Errors: 54001 when the statement nests too deep for the thread's stack.
  Status CheckStack() const;

  Statement& s_;
  const char* stack_start_;
  // PresenceOf, by join and side.
  std::map<std::pair<const Logical*, size_t>, int> presence_;
  std::vector<std::unique_ptr<ScopeItem>> items_;
  std::vector<CteName> cte_names_;
  // Of each recursive query around what is bound, the outermost first: where in it that is, when it
  // may not be named there. The first is of none.
  std::vector<std::string_view> recursion_places_{""};
  int query_depth_ = 0;  // SELECTs and WITH queries around what is bound
  int view_depth_ = 0;
  catalog::TablePtr view_;  // whose text is bound
  // Subqueries whose answer only lets rows through: NULL and false are the same to it.
  std::vector<const ast::SubLink*> filters_;
  // Enum types and collations of the table whose expression is bound.
  std::vector<Type> own_types_;
  std::vector<const Collation*> own_collations_;
};

// The name that PostgreSQL gives an output column without AS; "?column?" when nothing better is
// known.
std::string OutputName(const ast::Expr& expr);

// What ORDER BY and GROUP BY take for more than expressions: an integer constant is a position, a
// plain name may be an output column's (null when it is neither).
std::optional<int> PositionOf(const ast::Expr& expr);
const std::string* PlainName(const ast::Expr& expr);
// `node` with `child` below it.
LogicalPtr Wrap(std::unique_ptr<Logical> node, LogicalPtr child);

bool IsWindowFunction(std::string_view name);
// Written alike: they give the same, but for volatile functions among their arguments.
bool SameExprs(const std::vector<ExprPtr>& a, const std::vector<ExprPtr>& b);
bool SameKeys(const std::vector<SortKey>& a, const std::vector<SortKey>& b);
bool SameAggregate(const AggregateCall& a, const AggregateCall& b);
bool AggregatesAllowed(Place place);
// f(integer, text), for messages.
std::string Signature(std::string_view name, const std::vector<ExprPtr>& args);

// The type of a column of a set-returning call, polymorphic ones resolved by its arguments.
Type SetColumnType(const Expr& call, Type declared);

// t.* or (row).*: stands for several expressions in ROW(...) and VALUES.
bool ExpandsRecord(const ast::Expr& expr);
// Is one of the list such an expression?
bool ExpandsRecords(const ast::ExprList& list);
// ROW(...), not the row of a relation.
inline bool IsRowExpression(const Expr& expr) {
  return expr.kind == ExprKind::kRow && expr.names.empty();
}

// Living columns' positions in `columns`, in ordinal order.
std::vector<int> LivingColumns(const catalog::TableDescriptor& table);

}  // namespace cellar::sql::planning
