// Joins: the tree of FROM and WHERE becomes a list of leaves and conditions, a greedy search puts
// them in order and chooses how each one joins, and the steps are built.
//
// Left, semi and anti joins are leaves too: they may join as soon as what their ON needs is there,
// and what WHERE says of their columns holds after them. So inner joins move freely around them.
#include <algorithm>
#include <cmath>

#include "cellar/sql/plan/physical.h"

namespace cellar::sql::planning {

namespace {

// Joins of at most so many relations try every one as the first.
constexpr size_t kTryAllFirst = 10;

}  // namespace

double Physical::OuterDistinct(const JoinTree& tree, int id, double rows) const {
  for (const Leaf& leaf : tree.leaves) {
    if (!leaf.produced.Has(id) || leaf.tree == nullptr || leaf.tree->kind != LogicalKind::kGet) {
      continue;
    }
    const auto& get = leaf.tree->As<LogicalGet>();
    if (const catalog::ColumnStatistics* known = StatisticsOf(get, id)) {
      return known->DistinctAmong(leaf.table_rows);
    }
  }
  return std::min(rows, 200.0);
}

// Cost: a look at each leaf's own conditions for each pair of leaves.
Result<Physical::JoinOrder> Physical::Search(const JoinTree& tree, const IdSet& needed, int first,
                                             bool keep_order, const Request* order) const {
  size_t n = tree.leaves.size();
  JoinOrder out;
  std::vector<bool> joined(n, false);
  IdSet have;
  // Conditions by leaf and leaves by condition, and of how many leaves a condition still waits for.
  std::vector<std::vector<size_t>> conditions_of(n);
  std::vector<size_t> missing(tree.pool.size(), 0);
  for (size_t c = 0; c < tree.pool.size(); ++c) {
    for (size_t k = 0; k < n; ++k) {
      if (!tree.pool[c].ids.Intersects(tree.leaves[k].produced)) continue;
      conditions_of[k].push_back(c);
      ++missing[c];
    }
  }
  double rows = 0, cost = 0;

  struct Candidate {
    Method method = Method::kLoop;
    double rows = 0, cost = 0;
    bool connected = false;
  };
  auto evaluate = [&](size_t i) {
    const Leaf& leaf = tree.leaves[i];
    Candidate candidate;
    std::vector<const Expr*> conditions;
    for (const size_t c : conditions_of[i]) {
      // All other leaves that it names must be there.
      if (missing[c] == 1 && leaf.join == JoinKind::kInner)
        conditions.push_back(tree.pool[c].expr.get());
    }
    for (const ExprPtr& condition : leaf.on) conditions.push_back(condition.get());
    candidate.connected = !conditions.empty() || leaf.lateral;
    double selectivity = 1;
    bool hashable = false;
    const LogicalGet* get = leaf.tree != nullptr && leaf.tree->kind == LogicalKind::kGet
                                ? &leaf.tree->As<LogicalGet>()
                                : nullptr;
    for (const Expr* condition : conditions) {
      if (IsEquality(*condition)) {
        IdSet a = Expand(IdsOf(s_, *condition->args[0])),
              b = Expand(IdsOf(s_, *condition->args[1]));
        bool across = (a.Intersects(leaf.produced) && b.Intersects(have) && !a.Intersects(have)) ||
                      (b.Intersects(leaf.produced) && a.Intersects(have) && !b.Intersects(have));
        hashable = hashable || across;
        double distinct = std::max(1.0, std::min(leaf.table_rows, 200.0));
        if (get != nullptr) {
          distinct = 1;
          for (size_t side = 0; side < 2; ++side) {
            const Expr& arg = *condition->args[side];
            if (arg.kind == ExprKind::kColumn && leaf.produced.Has(arg.index)) {
              distinct = std::max(distinct, DistinctValues(*get, arg.index, leaf.table_rows));
            } else if (across && arg.kind == ExprKind::kColumn) {
              distinct = std::max(distinct, OuterDistinct(tree, arg.index, rows));
            }
          }
        }
        selectivity /= distinct;
      } else {
        selectivity *= Selectivity(*condition, get, leaf.table_rows);
      }
    }
    double out_rows = std::max(1.0, rows * leaf.rows * selectivity);
    if (leaf.join == JoinKind::kLeft) out_rows = std::max(out_rows, rows);
    if (leaf.join == JoinKind::kSemi || leaf.join == JoinKind::kAnti) {
      out_rows = std::max(1.0, rows * 0.5);
    }
    candidate.rows = out_rows;
    if (leaf.lateral) {
      candidate.method = Method::kLateral;
      candidate.cost = cost + rows * std::max(leaf.cost, 1000.0);
      return candidate;
    }
    double loop = leaf.cost + leaf.rows * 20 + rows * leaf.rows * kPairCost;
    if (rows <= 1) loop = leaf.cost + leaf.rows * 20;
    candidate.method = Method::kLoop;
    candidate.cost = cost + loop;
    bool null_aware = leaf.null_aware;
    // Rows to be locked or changed are read by scans, so those loop over spans with slots instead.
    bool scan_only = get != nullptr && (get->row_ref >= 0);
    if (get != nullptr && s_.context.enable_lookup_join && !null_aware &&
        (!scan_only || leaf.join == JoinKind::kInner)) {
      std::vector<const Expr*> candidates = conditions;
      for (const ExprPtr& condition : leaf.conditions) candidates.push_back(condition.get());
      IdSet used = needed;
      for (const Expr* condition : candidates) AddIds(s_, *condition, &used);
      if (std::optional<LookupPath> path = ChooseLookup(*get, have, candidates, used)) {
        double lookup = cost + rows * (path->cost * (scan_only ? 1.5 : 0.8)) +
                        rows * path->matches * kFilterCost;
        if (lookup < candidate.cost) {
          candidate.method = scan_only ? Method::kLateral : Method::kLookup;
          candidate.cost = lookup;
          if (leaf.join == JoinKind::kInner && path->unique) {
            candidate.rows = std::min(candidate.rows, rows);
          }
        }
      }
    }
    if (hashable && !keep_order && (s_.context.enable_hash_join || null_aware)) {
      double build = std::min(leaf.rows, leaf.join == JoinKind::kInner ? rows : leaf.rows);
      double probe = leaf.join == JoinKind::kInner ? std::max(leaf.rows, rows) : rows;
      double hash =
          cost + leaf.cost + build * kHashBuildCost + probe * kHashProbeCost + out_rows * 10;
      if (hash < candidate.cost || null_aware) {
        candidate.method = Method::kHash;
        candidate.cost = hash;
      }
    }
    return candidate;
  };
  auto add = [&](size_t i, const Candidate& candidate) {
    const Leaf& leaf = tree.leaves[i];
    joined[i] = true;
    if (leaf.join == JoinKind::kInner || leaf.join == JoinKind::kLeft) have.AddAll(leaf.produced);
    rows = candidate.rows;
    cost = candidate.cost;
    if (candidate.method == Method::kHash) out.keeps_order = false;
    out.steps.push_back({i, candidate.method, rows, cost});
    for (const size_t c : conditions_of[i]) --missing[c];
  };
  Candidate start;
  const Leaf& leaf = tree.leaves[static_cast<size_t>(first)];
  start.method = Method::kFirst;
  start.rows = leaf.rows;
  start.cost = leaf.cost;
  if (order != nullptr && leaf.tree != nullptr && leaf.tree->kind == LogicalKind::kGet) {
    Request request = *order;
    request.limit = kUnlimited;
    AccessPath path = ChoosePath(leaf.tree->As<LogicalGet>(), leaf.conditions, request);
    if (!path.ordered) out.keeps_order = false;
    start.cost = path.full_cost;
  }
  add(static_cast<size_t>(first), start);
  for (size_t step = 1; step < n; ++step) {
    int best = -1;
    Candidate best_candidate;
    for (size_t i = 0; i < n; ++i) {
      if (joined[i] || !have.ContainsAll(tree.leaves[i].depends)) continue;
      CELLAR_TRY(s_.CheckCancel());
      Candidate candidate = evaluate(i);
      bool better = best < 0;
      if (!better) {
        const Candidate& other = best_candidate;
        if (candidate.connected != other.connected) {
          better = candidate.connected;
        } else {
          // Few rows first, then little work.
          double a = candidate.cost + candidate.rows * 100, b = other.cost + other.rows * 100;
          better = a < b;
        }
      }
      if (better) {
        best = static_cast<int>(i);
        best_candidate = candidate;
      }
    }
    if (best < 0) break;  // a dependency that cannot be met: the caller notices the missing steps
    add(static_cast<size_t>(best), best_candidate);
  }
  out.rows = rows;
  out.cost = cost;
  return out;
}

Result<Phys> Physical::BuildJoins(LogicalPtr node, std::vector<ExprPtr> conditions,
                                  const Request& request) {
  if (node->kind == LogicalKind::kJoin && node->As<LogicalJoin>().join == JoinKind::kFull) {
    Request inner;
    inner.needed = Expand(request.needed);
    for (const ExprPtr& condition : conditions) AddIds(s_, *condition, &inner.needed);
    inner.needed = Expand(inner.needed);
    CELLAR_TRY_ASSIGN(Phys joined, BuildFullJoin(node->As<LogicalJoin>(), inner));
    return AddFilter(std::move(joined), std::move(conditions));
  }
  JoinTree tree;
  IdSet produced;
  AddProduced(*node, &produced);
  Flatten(std::move(node), &tree);
  for (ExprPtr& condition : conditions) {
    Conjunct conjunct;
    conjunct.expr = std::move(condition);
    conjunct.scope = produced;
    tree.pool.push_back(std::move(conjunct));
  }
  // Projected names in conditions stand for their expressions.
  for (Conjunct& conjunct : tree.pool) SubstituteVirtual(&conjunct.expr);
  // Constants first: one that is false leaves nothing.
  for (const Conjunct& conjunct : tree.pool) {
    if (IsFalseOrNullConstant(*conjunct.expr)) {
      Request inner = request;
      inner.needed = Expand(request.needed);
      CELLAR_TRY_ASSIGN(Phys empty, BuildEmpty(inner.needed, produced));
      return empty;
    }
  }
  std::vector<Conjunct> pool;
  for (Conjunct& conjunct : tree.pool) {
    if (HasSubplan(*conjunct.expr)) {
      std::vector<ExprPtr> parts;
      SplitConjuncts(std::move(conjunct.expr), &parts);
      for (ExprPtr& part : parts) {
        if (TrySemiJoin(&part, &tree, produced)) continue;
        Conjunct kept;
        kept.expr = std::move(part);
        kept.scope = conjunct.scope;
        pool.push_back(std::move(kept));
      }
      continue;
    }
    pool.push_back(std::move(conjunct));
  }
  tree.pool = std::move(pool);
  Strengthen(&tree);
  for (Leaf& leaf : tree.leaves) {
    for (ExprPtr& condition : leaf.on) SubstituteVirtual(&condition);
  }
  // A leaf without columns (SELECT without FROM) joins to nothing, but where the others need one
  // before them.
  if (tree.leaves.size() > 1) {
    std::vector<Leaf> leaves;
    IdSet columns;
    for (const Leaf& leaf : tree.leaves) columns.AddAll(leaf.produced);
    for (Leaf& leaf : tree.leaves) {
      bool inner_left = false;
      for (const Leaf& other : tree.leaves) {
        if (&other == &leaf || other.join != JoinKind::kInner || other.tree == nullptr) continue;
        inner_left = inner_left || !Expand(FreeIds(s_, *other.tree)).Intersects(columns);
      }
      if (leaf.tree->kind == LogicalKind::kResult && leaf.join == JoinKind::kInner && inner_left) {
        leaf.tree = nullptr;
        continue;
      }
    }
    for (Leaf& leaf : tree.leaves) {
      if (leaf.tree != nullptr) leaves.push_back(std::move(leaf));
    }
    tree.leaves = std::move(leaves);
  }
  Distribute(&tree);

  Request inner;
  inner.needed = Expand(request.needed);
  for (const OrderKey& key : request.order) inner.needed.Add(key.id);
  for (const Conjunct& conjunct : tree.pool) inner.needed.AddAll(conjunct.ids);
  for (const Leaf& leaf : tree.leaves) {
    for (const ExprPtr& condition : leaf.on) AddIds(s_, *condition, &inner.needed);
    if (tree.leaves.size() > 1) inner.needed.AddAll(FreeIds(s_, *leaf.tree));
    for (const ExprPtr& condition : leaf.conditions) {
      if (tree.leaves.size() > 1) AddIds(s_, *condition, &inner.needed);
    }
  }
  inner.needed = Expand(inner.needed);

  // A wanted order in terms of what the leaves produce.
  std::vector<OrderKey> base_order;
  for (const OrderKey& key : request.order) {
    OrderKey base = key;
    for (int hops = 0; hops < 64; ++hops) {
      auto found = virtual_.find(base.id);
      if (found == virtual_.end() || found->second->kind != ExprKind::kColumn) break;
      base.id = found->second->index;
    }
    base_order.push_back(base);
  }

  Phys out;
  if (tree.leaves.size() == 1 && tree.leaves[0].join == JoinKind::kInner) {
    Leaf& leaf = tree.leaves[0];
    Request single;
    single.needed = inner.needed;
    single.order = base_order;
    single.limit = request.limit;
    single.exact = request.exact;
    for (const Conjunct& conjunct : tree.pool) AddIds(s_, *conjunct.expr, &single.needed);
    CELLAR_TRY_ASSIGN(out, Build(std::move(leaf.tree), std::move(leaf.conditions), single));
    std::vector<ExprPtr> rest;
    for (Conjunct& conjunct : tree.pool) rest.push_back(std::move(conjunct.expr));
    CELLAR_TRY_ASSIGN(out, AddFilter(std::move(out), std::move(rest)));
  } else {
    CELLAR_TRY(EstimateLeaves(&tree, inner));
    JoinOrder best;
    bool have_best = false;
    auto score = [&](const JoinOrder& order) {
      double fraction = 1;
      bool ordered = order.keeps_order && !base_order.empty();
      if (request.limit < order.rows && (base_order.empty() || ordered)) {
        // Hash joins read their build sides whole.
        fraction = order.keeps_order ? request.limit / order.rows : 1;
      }
      double sort = base_order.empty() || ordered
                        ? 0
                        : kSortFactor * order.rows * std::log2(std::max(2.0, order.rows));
      return order.cost * fraction + sort;
    };
    auto try_order = [&](JoinOrder order, bool ordered) {
      if (order.steps.size() != tree.leaves.size()) return;
      if (!ordered && !base_order.empty()) order.keeps_order = false;
      if (!have_best || score(order) < score(best)) {
        best = std::move(order);
        have_best = true;
      }
    };
    size_t inner_leaves = 0;
    for (const Leaf& leaf : tree.leaves) inner_leaves += leaf.join == JoinKind::kInner;
    std::vector<size_t> starts;
    for (size_t i = 0; i < tree.leaves.size(); ++i) {
      if (tree.leaves[i].join == JoinKind::kInner && tree.leaves[i].depends.empty())
        starts.push_back(i);
    }
    if (inner_leaves > kTryAllFirst) {
      std::sort(starts.begin(), starts.end(),
                [&](size_t a, size_t b) { return tree.leaves[a].rows < tree.leaves[b].rows; });
      starts.resize(std::min<size_t>(starts.size(), 2));
    }
    for (size_t start : starts) {
      CELLAR_TRY_ASSIGN(JoinOrder order,
                        Search(tree, inner.needed, static_cast<int>(start), false, nullptr));
      try_order(std::move(order), false);
    }
    if (!base_order.empty()) {
      // The relation that could give the order, first.
      for (size_t i = 0; i < tree.leaves.size(); ++i) {
        const Leaf& leaf = tree.leaves[i];
        if (leaf.join != JoinKind::kInner || !leaf.depends.empty() || leaf.tree == nullptr)
          continue;
        bool all = true;
        for (const OrderKey& key : base_order) all = all && leaf.produced.Has(key.id);
        if (!all) continue;
        Request ordered;
        ordered.needed = inner.needed;
        ordered.order = base_order;
        CELLAR_TRY_ASSIGN(JoinOrder order,
                          Search(tree, inner.needed, static_cast<int>(i), true, &ordered));
        try_order(std::move(order), true);
      }
    }
    if (!have_best) return InternalError("planner found no join order");
    Request joined;
    joined.needed = inner.needed;
    joined.order = best.keeps_order ? base_order : std::vector<OrderKey>();
    joined.limit = best.keeps_order ? request.limit : kUnlimited;
    CELLAR_TRY_ASSIGN(out, Construct(&tree, best, joined));
  }
  // Back to the order's own names.
  if (!request.order.empty() && Satisfies(out.order, base_order)) {
    std::vector<OrderKey> order = request.order;
    out.order = std::move(order);
  }
  // Flattened projections are computed now, if anybody wants them.
  IdSet have;
  for (int id : out.cols) have.Add(id);
  std::vector<int> computed;
  request.needed.ForEach([&](int id) {
    if (!have.Has(id) && produced.Has(id) && virtual_.count(id) != 0) computed.push_back(id);
  });
  if (computed.empty()) return out;
  std::vector<int> ids;
  bool exact = request.exact != nullptr;
  if (exact) {
    auto available = [&](int id) {
      return have.Has(id) || (produced.Has(id) && virtual_.count(id) != 0);
    };
    for (int id : *request.exact) exact = exact && available(id);
    // Everything wanted must be among them.
    IdSet listed;
    for (int id : *request.exact) listed.Add(id);
    request.needed.ForEach([&](int id) {
      if (available(id) && !listed.Has(id)) exact = false;
    });
  }
  if (exact) {
    ids = *request.exact;
  } else {
    for (int id : out.cols) {
      if (request.needed.Has(id)) ids.push_back(id);
    }
    ids.insert(ids.end(), computed.begin(), computed.end());
  }
  std::vector<OrderKey> order = out.order;
  CELLAR_TRY_ASSIGN(out, Project(std::move(out), ids));
  // Project drops keys it does not see; renamed ones are there under their own names.
  if (out.order.size() < order.size()) {
    bool all = true;
    for (const OrderKey& key : order)
      all = all && std::find(ids.begin(), ids.end(), key.id) != ids.end();
    if (all) out.order = std::move(order);
  }
  return out;
}

}  // namespace cellar::sql::planning
