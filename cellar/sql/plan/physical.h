// From bound queries to plans: access paths, join order, and the nodes themselves. Private to this
// layer.
//
// Build consumes a logical tree. A condition travels down with the call until a node can use it:
// scans turn it into spans, joins into keys, the rest becomes filters. Costs are nanoseconds.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cellar/sql/plan/logical.h"

namespace cellar::sql::planning {

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Costs in nanoseconds. A row that lies in a page costs next to nothing to pass over, and a value
// of it little more; the other scan costs are those of one key of the engine (docs/speed.md).
inline constexpr double kRowScanCost = 100, kIndexEntryCost = 90, kRowFetchCost = 1750,
                        kSeekCost = 3000, kPagedRowCost = 3, kPagedValueCost = 1.5;
inline constexpr double kFilterCost = 10, kHashBuildCost = 60, kHashProbeCost = 45,
                        kSortFactor = 40, kVirtualRowCost = 1000, kPairCost = 15,
                        kSubplanCost = 5000;

struct OrderKey {
  int id = -1;
  bool descending = false;
  bool nulls_first = false;
  bool operator==(const OrderKey&) const = default;
};

// What a caller wants of a subtree.
struct Request {
  IdSet needed;
  std::vector<OrderKey> order;              // it would like this order
  double limit = kUnlimited;                // and only so many rows
  const std::vector<int>* exact = nullptr;  // these columns, in this order, if that is easy
};

// A plan in the making.
struct Phys {
  PlanPtr node;
  std::vector<int> cols;        // id of each output column
  std::vector<OrderKey> order;  // how the rows come
  bool at_most_one = false;

  double rows() const { return node->rows; }
  double cost() const { return node->cost; }
};

// Do these conditions, all true, make `wanted` true?
bool Implies(const std::vector<const Expr*>& conditions, const Expr& wanted);
// A call of an = operator.
bool IsEquality(const Expr& expr);
// Equal values of both types have one hash and compare without a cast.
bool SameHashForm(Type a, Type b);

// ---- Access paths (access_path.cc) ----

// The column below casts that change neither value nor order.
const Expr* SeeThrough(const Expr* expr);
// May a value of this type bound an index on a column of that type as it is?
bool SameKeyForm(Type value, Type column);

struct AccessPath {
  const catalog::IndexDescriptor* index = nullptr;
  std::vector<SpanExpr> spans;  // over ids outside the table
  std::vector<bool> consumed;   // conditions that the spans express in full
  bool reverse = false;
  bool unique_point = false;
  bool covering = false;
  bool ordered = false;  // gives the wanted order
  double scanned = 0;    // rows the spans hold
  double rows = 0;       // after the other conditions
  double cost = 0;       // of all rows that are wanted
  double full_cost = 0;  // without the limit
};

// A volatile condition on rows without columns (SELECT .. WHERE random() < 0.5): it is asked there,
// since nothing would tell above of which rows.
bool StandsAlone(const Statement& statement, const LogicalFilter& filter);

struct Conjunct {
  ExprPtr expr;
  IdSet ids;
  // Of the query whose WHERE or ON it is: what is volatile and names no column of it is asked for
  // each of its rows.
  IdSet scope;
};

// What an index of `get` offers for equalities with expressions of another relation.
struct LookupPath {
  const catalog::IndexDescriptor* index = nullptr;
  std::vector<ExprPtr> keys;  // over outer ids
  std::vector<size_t> used;   // positions in the candidates
  bool unique = false;
  bool covering = false;
  double matches = 1;  // rows per lookup
  double cost = 0;     // per lookup
};

class Physical {
 public:
  Physical(Statement& statement, Plan* plan) : s_(statement), plan_(plan) {}

  Result<Phys> Build(LogicalPtr node, std::vector<ExprPtr> conditions, const Request& request);
  // The plan's root from a bound query: exactly its columns, in order.
  Status BuildRoot(BoundQuery query);
  // The ids together with what those among them that are flattened projections use.
  // By which the index orders this part of its key; null: by bytes.
  const Collation* CollationOf(const LogicalGet& get, const catalog::IndexColumn& key) const;
  IdSet Expand(const IdSet& ids) const;

 private:
  // build.cc
  Result<Phys> BuildResult(std::vector<ExprPtr> conditions);
  Result<Phys> BuildEmpty(const IdSet& needed, const IdSet& produced);
  Result<Phys> BuildValues(LogicalValues& node, std::vector<ExprPtr> conditions);
  Result<Phys> BuildVirtual(LogicalVirtualGet& node, std::vector<ExprPtr> conditions,
                            const Request& request);
  Result<Phys> BuildFunction(LogicalFunctionGet& node, std::vector<ExprPtr> conditions);
  // A projection with volatile values, which are computed once for each row below.
  Result<Phys> BuildProject(LogicalProject& node, std::vector<ExprPtr> conditions,
                            const Request& request);
  Result<Phys> BuildProjectSet(LogicalProjectSet& node, std::vector<ExprPtr> conditions,
                               const Request& request);
  Result<Phys> BuildAggregate(LogicalAggregate& node, std::vector<ExprPtr> conditions);
  Result<Phys> BuildWindow(LogicalWindow& node, std::vector<ExprPtr> conditions,
                           const Request& request);
  Result<Phys> BuildSort(LogicalSort& node, std::vector<ExprPtr> conditions, const Request& request,
                         ExprPtr top);
  Result<Phys> BuildLimit(LogicalLimit& node, std::vector<ExprPtr> conditions,
                          const Request& request);
  Result<Phys> BuildLock(LogicalLock& node, std::vector<ExprPtr> conditions,
                         const Request& request);
  // How many rows a limit reads at most. Needs a limit that is no constant NULL.
  Result<ExprPtr> RowsBelow(const LogicalLimit& limit) const;
  // Those that have to be asked where they are, since they differ from row to row.
  std::vector<ExprPtr> TakeVolatile(std::vector<ExprPtr>* conditions) const;
  Result<Phys> BuildDistinct(LogicalDistinct& node, std::vector<ExprPtr> conditions,
                             const Request& request);
  Result<Phys> BuildAppend(LogicalAppend& node, std::vector<ExprPtr> conditions,
                           const Request& request);
  Result<Phys> BuildSetOperation(LogicalSetOperation& node, std::vector<ExprPtr> conditions);
  Result<Phys> BuildCteRef(LogicalCteRef& node, std::vector<ExprPtr> conditions);
  Result<Phys> BuildRecursiveUnion(LogicalRecursiveUnion& node, std::vector<ExprPtr> conditions);
  Result<Phys> BuildWorkTable(LogicalWorkTable& node, std::vector<ExprPtr> conditions);
  Result<int> PlanCte(int cte);
  // A tree with exactly these columns.
  Result<Phys> BuildExact(LogicalPtr node, std::vector<ExprPtr> conditions,
                          const std::vector<int>& ids, Request request);
  Result<Phys> Exactly(Phys child, const std::vector<int>& ids);
  Result<Phys> AddFilter(Phys child, std::vector<ExprPtr> conditions);
  Result<Phys> SortBy(Phys child, const std::vector<OrderKey>& keys, ExprPtr top);
  Result<Phys> BuildFirstOf(LogicalAggregate& node);
  void SetOutput(Phys* phys);
  OutputColumn OutputOf(int id) const;
  bool Satisfies(const std::vector<OrderKey>& have, const std::vector<OrderKey>& wanted) const;

  // build_dml.cc
  Result<Phys> BuildInsert(LogicalInsert& node);
  Result<Phys> BuildUpdate(LogicalUpdate& node);
  Result<Phys> BuildDelete(LogicalDelete& node);

  // finalize.cc
  // From ids to positions in `cols`, slots and planned subqueries.
  Status Finalize(ExprPtr* expr, const std::vector<int>& cols);
  Status FinalizeAll(std::vector<ExprPtr>* exprs, const std::vector<int>& cols);
  Status FinalizeKeys(std::vector<SortKey>* keys, const std::vector<int>& cols);
  Status FinalizeCall(AggregateCall* call, const std::vector<int>& cols);
  Status PlanSubquery(int index);
  std::optional<int> SlotOf(int id) const;

  // access_path.cc
  Result<Phys> BuildGet(LogicalGet& get, std::vector<ExprPtr> conditions, const Request& request);
  AccessPath ChoosePath(const LogicalGet& get, const std::vector<ExprPtr>& conditions,
                        const Request& request) const;
  Result<Phys> MakeScan(LogicalGet& get, AccessPath path, std::vector<ExprPtr> conditions,
                        const Request& request);
  std::optional<LookupPath> ChooseLookup(const LogicalGet& get, const IdSet& outer,
                                         const std::vector<const Expr*>& candidates,
                                         const IdSet& needed) const;
  // Does something better than a guess tell how many rows each of these conditions leaves?
  bool AllKnown(const LogicalGet& get, const std::vector<ExprPtr>& conditions,
                const std::vector<size_t>& which) const;
  bool Covers(const LogicalGet& get, const catalog::IndexDescriptor& index,
              const IdSet& needed) const;
  bool HasIndexOrder(const LogicalGet& get, int id) const;

  // index_match.cc
  // Does the index hold all rows that meet these conditions?
  bool Usable(const LogicalGet& get, const catalog::IndexDescriptor& index,
              const std::vector<const Expr*>& conditions) const;
  int IndexedId(const LogicalGet& get, int id) const;

  // selectivity.cc
  double TableRows(const catalog::TableDescriptor& table) const;
  double DistinctValues(const LogicalGet& get, int id, double rows) const;
  double Selectivity(const Expr& condition, const LogicalGet* get, double rows) const;
  double Selectivity(const std::vector<ExprPtr>& conditions, const LogicalGet* get,
                     double rows) const;
  double Selectivity(const std::vector<const Expr*>& conditions, const LogicalGet* get,
                     double rows) const;
  // What is known of a column's values; null: nothing.
  const catalog::ColumnStatistics* StatisticsOf(const LogicalGet& get, int id) const;
  // From these, for kinds of conditions that they tell of.
  std::optional<double> KnownSelectivity(const Expr& condition, const LogicalGet* get,
                                         double rows) const;
  struct KnownComparison {
    int id = -1;
    const catalog::ColumnStatistics* column = nullptr;
    FunctionSpec::Comparison comparison = FunctionSpec::Comparison::kNone;
    const Expr* value = nullptr;
  };
  // A comparison of a column of `get` about which something is known.
  std::optional<KnownComparison> ComparisonOf(const Expr& condition, const LogicalGet* get) const;
  // Keeps how many values columns of `get` have for what is built above it.
  void NoteDistinct(const LogicalGet& get, double rows);
  // Groups that a key makes of so many rows.
  double GroupsOf(const Expr& key, double rows) const;

  // join_tree.cc, join_order.cc, join_build.cc
  struct Leaf {
    LogicalPtr tree;
    JoinKind join = JoinKind::kInner;
    bool null_aware = false;
    std::vector<ExprPtr> conditions;  // only about this leaf
    std::vector<ExprPtr> on;  // not kInner: the join's own conditions, others than `conditions`
    IdSet produced;
    IdSet scope;    // kLeft: what both sides of the join produce
    IdSet depends;  // ids of other leaves that must be there before
    bool lateral = false;
    std::optional<Phys> built;  // what is no table
    double rows = 0, cost = 0;
    double table_rows = 0;
  };
  struct JoinTree {
    std::vector<Leaf> leaves;
    std::vector<Conjunct> pool;  // conditions over several leaves
  };
  enum class Method : uint8_t { kFirst, kLookup, kHash, kLoop, kLateral };
  struct Step {
    size_t leaf = 0;
    Method method = Method::kFirst;
    double rows = 0, cost = 0;
  };
  struct JoinOrder {
    std::vector<Step> steps;
    double rows = 0, cost = 0;
    bool keeps_order = true;
  };
  Result<Phys> BuildJoins(LogicalPtr node, std::vector<ExprPtr> conditions, const Request& request);
  Result<Phys> BuildFullJoin(LogicalJoin& node, const Request& request);
  // `id` stands for the expression from now on.
  void NameExpression(int id, ExprPtr expr);
  // `scope`: what the condition restricts.
  Conjunct ConjunctOf(ExprPtr condition, const Logical& scope) const;
  void Flatten(LogicalPtr node, JoinTree* tree);
  bool TrySemiJoin(ExprPtr* condition, JoinTree* tree, const IdSet& produced);
  void Strengthen(JoinTree* tree);
  void Distribute(JoinTree* tree);
  Status EstimateLeaves(JoinTree* tree, const Request& needed);
  Result<JoinOrder> Search(const JoinTree& tree, const IdSet& needed, int first, bool keep_order,
                           const Request* order) const;
  // Values of a column of what has been joined, `rows` rows.
  double OuterDistinct(const JoinTree& tree, int id, double rows) const;
  Result<Phys> Construct(JoinTree* tree, const JoinOrder& order, const Request& request);
  Result<Phys> JoinStep(Phys left, Leaf& leaf, Method method, std::vector<ExprPtr> conditions,
                        const Request& request);
  Result<Phys> Project(Phys child, const std::vector<int>& ids);
  // Replaces names of flattened projections by their expressions.
  void SubstituteVirtual(ExprPtr* expr) const;

  Statement& s_;
  Plan* plan_;
  std::vector<std::pair<int, int>> slots_;  // outer ids that slots bring, innermost last
  mutable std::unordered_map<uint64_t, std::shared_ptr<const catalog::TableStatistics>> statistics_;
  std::unordered_map<int, double> distinct_;  // column id -> values it has
  std::unordered_map<int, ExprPtr> virtual_;  // flattened projections: id -> expression over ids
};

}  // namespace cellar::sql::planning
