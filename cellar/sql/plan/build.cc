// Plan nodes of everything but tables, joins and data changes.
#include <algorithm>
#include <cmath>

#include "cellar/sql/plan/physical.h"

namespace cellar::sql::planning {

namespace {

double SortCost(double rows) {
  return rows < 2 ? kSortFactor : kSortFactor * rows * std::log2(rows);
}

void AddChild(PlanNode* node, Phys* child) {
  node->rows = child->rows();
  node->cost = child->cost();
  node->children.push_back(std::move(child->node));
}

// The value of a constant LIMIT or OFFSET; nullopt when it is not known.
std::optional<double> ConstantCount(const Expr* expr) {
  if (expr == nullptr || !IsConstant(*expr) || expr->constant.is_null()) return std::nullopt;
  return static_cast<double>(expr->constant.datum().int_value());
}

}  // namespace

void Physical::SetOutput(Phys* phys) {
  std::vector<OutputColumn>& output = phys->node->output;
  output.clear();
  output.reserve(phys->cols.size());
  for (int id : phys->cols) output.push_back(OutputOf(id));
}

OutputColumn Physical::OutputOf(int id) const {
  const ColumnInfo& info = s_.column(id);
  OutputColumn column;
  if (s_.relations > 1 && !info.qualifier.empty()) {
    column.name.reserve(info.qualifier.size() + 1 + info.name.size());
    column.name += info.qualifier;
    column.name += '.';
    column.name += info.name;
  } else {
    column.name = info.name;
  }
  column.type = info.type;
  column.table_oid = info.table_oid;
  column.attnum = info.attnum;
  return column;
}

bool Physical::Satisfies(const std::vector<OrderKey>& have,
                         const std::vector<OrderKey>& wanted) const {
  if (wanted.size() > have.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (have[i].id != wanted[i].id || have[i].descending != wanted[i].descending) return false;
    if (have[i].nulls_first != wanted[i].nulls_first && !s_.column(wanted[i].id).not_null)
      return false;
  }
  return true;
}

Result<Phys> Physical::Build(LogicalPtr node, std::vector<ExprPtr> conditions,
                             const Request& request) {
  CELLAR_TRY(s_.CheckCancel());
  for (const ExprPtr& condition : conditions) {
    if (IsFalseOrNullConstant(*condition)) {
      IdSet produced;
      AddProduced(*node, &produced);
      return BuildEmpty(Expand(request.needed), produced);
    }
  }
  switch (node->kind) {
    case LogicalKind::kResult: return BuildResult(std::move(conditions));
    case LogicalKind::kValues: return BuildValues(node->As<LogicalValues>(), std::move(conditions));
    case LogicalKind::kGet: return BuildGet(node->As<LogicalGet>(), std::move(conditions), request);
    case LogicalKind::kVirtualGet:
      return BuildVirtual(node->As<LogicalVirtualGet>(), std::move(conditions), request);
    case LogicalKind::kFunctionGet:
      return BuildFunction(node->As<LogicalFunctionGet>(), std::move(conditions));
    case LogicalKind::kProject: {
      bool is_volatile = false;
      for (const ExprPtr& expr : node->As<LogicalProject>().exprs) {
        is_volatile = is_volatile || IsVolatile(s_, *expr);
      }
      if (is_volatile) {
        return BuildProject(node->As<LogicalProject>(), std::move(conditions), request);
      }
      return BuildJoins(std::move(node), std::move(conditions), request);
    }
    case LogicalKind::kFilter:
      if (StandsAlone(s_, node->As<LogicalFilter>())) {
        auto& filter = node->As<LogicalFilter>();
        for (ExprPtr& condition : filter.conditions) conditions.push_back(std::move(condition));
        return Build(std::move(filter.children[0]), std::move(conditions), request);
      }
      return BuildJoins(std::move(node), std::move(conditions), request);
    case LogicalKind::kJoin: return BuildJoins(std::move(node), std::move(conditions), request);
    case LogicalKind::kProjectSet:
      return BuildProjectSet(node->As<LogicalProjectSet>(), std::move(conditions), request);
    case LogicalKind::kAggregate:
      return BuildAggregate(node->As<LogicalAggregate>(), std::move(conditions));
    case LogicalKind::kWindow:
      return BuildWindow(node->As<LogicalWindow>(), std::move(conditions), request);
    case LogicalKind::kSort:
      return BuildSort(node->As<LogicalSort>(), std::move(conditions), request, nullptr);
    case LogicalKind::kLimit:
      return BuildLimit(node->As<LogicalLimit>(), std::move(conditions), request);
    case LogicalKind::kLock:
      return BuildLock(node->As<LogicalLock>(), std::move(conditions), request);
    case LogicalKind::kDistinct:
      return BuildDistinct(node->As<LogicalDistinct>(), std::move(conditions), request);
    case LogicalKind::kAppend:
      return BuildAppend(node->As<LogicalAppend>(), std::move(conditions), request);
    case LogicalKind::kSetOperation:
      return BuildSetOperation(node->As<LogicalSetOperation>(), std::move(conditions));
    case LogicalKind::kCteRef: {
      auto& ref = node->As<LogicalCteRef>();
      Cte& cte = s_.ctes[static_cast<size_t>(ref.cte)];
      if (cte.inlinable && cte.references == 1 && cte.root != nullptr) {
        return BuildJoins(std::move(node), std::move(conditions), request);
      }
      return BuildCteRef(ref, std::move(conditions));
    }
    case LogicalKind::kRecursiveUnion:
      return BuildRecursiveUnion(node->As<LogicalRecursiveUnion>(), std::move(conditions));
    case LogicalKind::kWorkTable:
      return BuildWorkTable(node->As<LogicalWorkTable>(), std::move(conditions));
    case LogicalKind::kInsert: return BuildInsert(node->As<LogicalInsert>());
    case LogicalKind::kUpdate: return BuildUpdate(node->As<LogicalUpdate>());
    case LogicalKind::kDelete: return BuildDelete(node->As<LogicalDelete>());
  }
  return InternalError("planner met an unknown node");
}

Status Physical::BuildRoot(BoundQuery query) {
  std::vector<int> ids;
  ids.reserve(query.columns.size());
  Request request;
  for (const QueryColumn& column : query.columns) {
    ids.push_back(column.id);
    request.needed.Add(column.id);
  }
  LogicalKind kind = query.root->kind;
  bool changes =
      kind == LogicalKind::kInsert || kind == LogicalKind::kUpdate || kind == LogicalKind::kDelete;
  if (changes) {
    CELLAR_TRY_ASSIGN(Phys root, Build(std::move(query.root), {}, request));
    plan_->root = std::move(root.node);
  } else {
    CELLAR_TRY_ASSIGN(Phys root, BuildExact(std::move(query.root), {}, ids, std::move(request)));
    plan_->root = std::move(root.node);
  }
  // Data-modifying WITH queries run even when nobody reads them.
  for (size_t i = 0; i < s_.ctes.size(); ++i) {
    if (s_.ctes[i].modifying && s_.ctes[i].plan < 0) {
      CELLAR_TRY_ASSIGN(int ignored, PlanCte(static_cast<int>(i)));
      static_cast<void>(ignored);
    }
  }
  plan_->output.reserve(query.columns.size());
  for (const QueryColumn& column : query.columns) {
    const ColumnInfo& info = s_.column(column.id);
    plan_->output.push_back({column.name, info.type, info.table_oid, info.attnum});
  }
  return Status();
}

Result<Phys> Physical::BuildExact(LogicalPtr node, std::vector<ExprPtr> conditions,
                                  const std::vector<int>& ids, Request request) {
  for (int id : ids) request.needed.Add(id);
  request.exact = &ids;
  CELLAR_TRY_ASSIGN(Phys phys, Build(std::move(node), std::move(conditions), request));
  return Exactly(std::move(phys), ids);
}

Result<Phys> Physical::Exactly(Phys child, const std::vector<int>& ids) {
  if (child.cols == ids) return child;
  return Project(std::move(child), ids);
}

Result<Phys> Physical::Project(Phys child, const std::vector<int>& ids) {
  auto node = std::make_unique<ProjectNode>();
  node->exprs.reserve(ids.size());
  for (int id : ids) {
    ExprPtr expr = s_.ColumnExpr(id);
    CELLAR_TRY(Finalize(&expr, child.cols));
    node->exprs.push_back(std::move(expr));
  }
  Phys out;
  out.at_most_one = child.at_most_one;
  out.cols = ids;
  // The order survives as far as its columns do.
  for (const OrderKey& key : child.order) {
    if (std::find(ids.begin(), ids.end(), key.id) == ids.end()) break;
    out.order.push_back(key);
  }
  AddChild(node.get(), &child);
  node->cost += node->rows * kFilterCost * 0.5;
  out.node = std::move(node);
  SetOutput(&out);
  return out;
}

Result<Phys> Physical::AddFilter(Phys child, std::vector<ExprPtr> conditions) {
  if (conditions.empty()) return child;
  OrderByCost(&conditions);
  double selectivity = Selectivity(conditions, nullptr, child.rows());
  bool subplans = HasSubplan(*conditions.back());
  CELLAR_TRY(FinalizeAll(&conditions, child.cols));
  auto node = std::make_unique<FilterNode>();
  node->condition = JoinConjuncts(std::move(conditions));
  Phys out;
  out.cols = child.cols;
  out.order = child.order;
  out.at_most_one = child.at_most_one;
  AddChild(node.get(), &child);
  node->cost += node->rows * (subplans ? kSubplanCost : kFilterCost);
  node->rows = std::max(1.0, node->rows * selectivity);
  out.node = std::move(node);
  SetOutput(&out);
  return out;
}

Result<Phys> Physical::BuildResult(std::vector<ExprPtr> conditions) {
  auto node = std::make_unique<ResultNode>();
  CELLAR_TRY(FinalizeAll(&conditions, {}));
  node->filter = JoinConjuncts(std::move(conditions));
  node->rows = 1;
  node->cost = 10;
  Phys out;
  out.node = std::move(node);
  out.at_most_one = true;
  return out;
}

Result<Phys> Physical::BuildEmpty(const IdSet& needed, const IdSet& produced) {
  auto node = std::make_unique<ValuesNode>();
  Phys out;
  produced.ForEach([&](int id) {
    if (needed.Has(id)) out.cols.push_back(id);
  });
  out.node = std::move(node);
  out.at_most_one = true;
  SetOutput(&out);
  return out;
}

Result<Phys> Physical::BuildValues(LogicalValues& values, std::vector<ExprPtr> conditions) {
  auto node = std::make_unique<ValuesNode>();
  for (auto& row : values.rows) CELLAR_TRY(FinalizeAll(&row, {}));
  node->rows_exprs = std::move(values.rows);
  node->rows = static_cast<double>(node->rows_exprs.size());
  node->cost = node->rows * 50;
  Phys out;
  out.at_most_one = node->rows_exprs.size() <= 1;
  out.node = std::move(node);
  out.cols = values.ids;
  SetOutput(&out);
  return AddFilter(std::move(out), std::move(conditions));
}

Result<Phys> Physical::BuildVirtual(LogicalVirtualGet& get, std::vector<ExprPtr> conditions,
                                    const Request& request) {
  auto node = std::make_unique<VirtualScanNode>();
  node->schema = get.table->schema;
  node->table = get.table->name;
  IdSet wanted = Expand(request.needed);
  for (const ExprPtr& condition : conditions) wanted.AddAll(Expand(IdsOf(s_, *condition)));
  Phys out;
  for (size_t i = 0; i < get.ids.size(); ++i) {
    if (!wanted.Has(get.ids[i])) continue;
    node->columns.push_back(static_cast<int>(i));
    out.cols.push_back(get.ids[i]);
  }
  IdSet own;
  for (int id : get.ids) own.Add(id);
  node->rows = get.table->rows;
  for (const ExprPtr& condition : conditions) {
    if (node->key_column >= 0 || condition->kind != ExprKind::kCall ||
        condition->args.size() != 2 ||
        condition->function->comparison != FunctionSpec::Comparison::kEqual) {
      continue;
    }
    for (int side = 0; side < 2; ++side) {
      const Expr& column = *condition->args[static_cast<size_t>(side)];
      const Expr& value = *condition->args[static_cast<size_t>(1 - side)];
      if (column.kind != ExprKind::kColumn || !own.Has(column.index)) continue;
      if (!value.type.SameKind(column.type) || HasSubplan(value) || IsVolatile(value) ||
          IdsOf(s_, value).Intersects(own)) {
        continue;
      }
      ExprPtr key = CloneExpr(value);
      CELLAR_TRY(Finalize(&key, {}));
      node->key = std::move(key);
      auto at = std::find(get.ids.begin(), get.ids.end(), column.index);
      node->key_column = static_cast<int>(at - get.ids.begin());
      break;
    }
  }
  node->cost = node->rows * kVirtualRowCost;
  out.node = std::move(node);
  SetOutput(&out);
  return AddFilter(std::move(out), std::move(conditions));
}

Result<Phys> Physical::BuildFunction(LogicalFunctionGet& get, std::vector<ExprPtr> conditions) {
  auto node = std::make_unique<FunctionScanNode>();
  CELLAR_TRY(FinalizeAll(&get.calls, {}));
  bool scalar = true;
  for (const ExprPtr& call : get.calls) {
    scalar = scalar && (call->kind != ExprKind::kCall || call->function->set == nullptr);
  }
  node->calls = std::move(get.calls);
  node->ordinality = get.ordinality;
  node->rows = scalar ? 1 : 10;
  node->cost = node->rows * 100;
  Phys out;
  out.node = std::move(node);
  out.cols = get.ids;
  out.at_most_one = scalar;
  SetOutput(&out);
  return AddFilter(std::move(out), std::move(conditions));
}

Result<Phys> Physical::BuildProject(LogicalProject& project, std::vector<ExprPtr> conditions,
                                    const Request& request) {
  IdSet own;
  for (int id : project.ids) own.Add(id);
  std::vector<ExprPtr> below, above;
  for (ExprPtr& condition : conditions) {
    bool computed = Expand(IdsOf(s_, *condition)).Intersects(own) || IsVolatile(s_, *condition);
    (computed ? above : below).push_back(std::move(condition));
  }
  Request inner;
  inner.needed = Expand(request.needed);
  for (const ExprPtr& condition : above) inner.needed.AddAll(Expand(IdsOf(s_, *condition)));
  IdSet pass = inner.needed;
  for (const ExprPtr& expr : project.exprs) AddIds(s_, *expr, &inner.needed);
  inner.needed = Expand(inner.needed);
  inner.limit = request.order.empty() && above.empty() ? request.limit : kUnlimited;
  CELLAR_TRY_ASSIGN(Phys child, Build(std::move(project.children[0]), std::move(below), inner));
  auto node = std::make_unique<ProjectNode>();
  Phys out;
  for (size_t i = 0; i < child.cols.size(); ++i) {
    if (!pass.Has(child.cols[i])) continue;
    node->exprs.push_back(MakeColumn(static_cast<int>(i), s_.column(child.cols[i]).type));
    out.cols.push_back(child.cols[i]);
  }
  for (size_t i = 0; i < project.ids.size(); ++i) {
    CELLAR_TRY(Finalize(&project.exprs[i], child.cols));
    node->exprs.push_back(std::move(project.exprs[i]));
    out.cols.push_back(project.ids[i]);
  }
  out.at_most_one = child.at_most_one;
  AddChild(node.get(), &child);
  node->cost += node->rows * kFilterCost;
  out.node = std::move(node);
  SetOutput(&out);
  return AddFilter(std::move(out), std::move(above));
}

Result<Phys> Physical::BuildProjectSet(LogicalProjectSet& set, std::vector<ExprPtr> conditions,
                                       const Request& request) {
  IdSet own;
  for (int id : set.ids) own.Add(id);
  std::vector<ExprPtr> below, above;
  for (ExprPtr& condition : conditions) {
    const bool own_rows =
        Expand(IdsOf(s_, *condition)).Intersects(own) || IsVolatile(s_, *condition);
    (own_rows ? above : below).push_back(std::move(condition));
  }
  Request inner;
  inner.needed = Expand(request.needed);
  for (const ExprPtr& condition : above) inner.needed.AddAll(Expand(IdsOf(s_, *condition)));
  IdSet pass = inner.needed;
  for (const ExprPtr& expr : set.exprs) AddIds(s_, *expr, &inner.needed);
  CELLAR_TRY_ASSIGN(Phys child, Build(std::move(set.children[0]), std::move(below), inner));
  auto node = std::make_unique<ProjectSetNode>();
  Phys out;
  for (size_t i = 0; i < child.cols.size(); ++i) {
    if (!pass.Has(child.cols[i])) continue;
    node->exprs.push_back(MakeColumn(static_cast<int>(i), s_.column(child.cols[i]).type));
    out.cols.push_back(child.cols[i]);
  }
  for (size_t i = 0; i < set.ids.size(); ++i) {
    CELLAR_TRY(Finalize(&set.exprs[i], child.cols));
    node->exprs.push_back(std::move(set.exprs[i]));
    out.cols.push_back(set.ids[i]);
  }
  AddChild(node.get(), &child);
  node->rows *= 10;
  node->cost += node->rows * 50;
  out.node = std::move(node);
  SetOutput(&out);
  return AddFilter(std::move(out), std::move(above));
}

Result<Phys> Physical::BuildFirstOf(LogicalAggregate& aggregate) {
  // min(x) is the first non-NULL x of an index over it.
  const AggregateCall& call = aggregate.calls[0];
  ExprPtr column = CloneExpr(*call.args[0]);
  bool descending = call.spec->name == "max";
  auto filter = std::make_unique<LogicalFilter>();
  std::vector<ExprPtr> test;
  test.push_back(CloneExpr(*column));
  filter->conditions.push_back(MakeLogic(ExprKind::kIsNotNull, std::move(test)));
  filter->children.push_back(std::move(aggregate.children[0]));
  auto sort = std::make_unique<LogicalSort>();
  SortKey key;
  key.expr = CloneExpr(*column);
  key.descending = descending;
  key.nulls_first = descending;
  sort->keys.push_back(std::move(key));
  sort->children.push_back(std::move(filter));
  LogicalLimit limit;
  limit.limit = MakeConstant(Value(MakeType(TypeId::kInt8), Datum::Int(1)));
  limit.children.push_back(std::move(sort));
  Request request;
  request.needed.Add(column->index);
  return BuildLimit(limit, {}, request);
}

Result<Phys> Physical::BuildAggregate(LogicalAggregate& aggregate,
                                      std::vector<ExprPtr> conditions) {
  // Conditions on grouped columns hold for all rows of a group, so they may be asked before.
  IdSet keys;
  for (const ExprPtr& key : aggregate.keys) {
    if (key->kind == ExprKind::kColumn) keys.Add(key->index);
  }
  std::vector<ExprPtr> below, above;
  for (ExprPtr& condition : conditions) {
    IdSet used = Expand(IdsOf(s_, *condition));
    IdSet own;
    for (int id : aggregate.ids) {
      if (!keys.Has(id)) own.Add(id);
    }
    bool push = !aggregate.keys.empty() && !used.Intersects(own) && used.Intersects(keys) &&
                !IsVolatile(s_, *condition);
    (push ? below : above).push_back(std::move(condition));
  }
  Request inner;
  for (const ExprPtr& key : aggregate.keys) AddIds(s_, *key, &inner.needed);
  for (const AggregateCall& call : aggregate.calls) {
    for (const ExprPtr& arg : call.args) AddIds(s_, *arg, &inner.needed);
    if (call.filter != nullptr) AddIds(s_, *call.filter, &inner.needed);
    for (const SortKey& key : call.order_by) AddIds(s_, *key.expr, &inner.needed);
  }
  inner.needed = Expand(inner.needed);
  bool first_of = false;
  if (aggregate.keys.empty() && aggregate.sets.empty() && aggregate.calls.size() == 1) {
    const AggregateCall& call = aggregate.calls[0];
    const Logical* source = aggregate.children[0].get();
    while (source->kind == LogicalKind::kFilter) source = source->children[0].get();
    if ((call.spec->name == "min" || call.spec->name == "max") && call.args.size() == 1 &&
        call.args[0]->kind == ExprKind::kColumn && call.filter == nullptr && !call.distinct &&
        source->kind == LogicalKind::kGet && s_.context.enable_index_scan) {
      first_of = HasIndexOrder(source->As<LogicalGet>(), call.args[0]->index);
    }
  }
  Result<Phys> built = first_of ? BuildFirstOf(aggregate)
                                : Build(std::move(aggregate.children[0]), std::move(below), inner);
  if (!built.ok()) return built;
  Phys child = std::move(*built);
  auto node = std::make_unique<GroupingNode>();
  double groups = 1;
  for (ExprPtr& key : aggregate.keys) {
    groups *= GroupsOf(*key, child.rows());
    CELLAR_TRY(Finalize(&key, child.cols));
  }
  for (AggregateCall& call : aggregate.calls) CELLAR_TRY(FinalizeCall(&call, child.cols));
  node->keys = std::move(aggregate.keys);
  node->calls = std::move(aggregate.calls);
  node->sets = std::move(aggregate.sets);
  node->groupings = std::move(aggregate.groupings);
  bool grouped = !node->keys.empty() || !node->sets.empty();
  size_t calls = node->calls.size();
  AddChild(node.get(), &child);
  node->cost +=
      node->rows * (grouped ? kHashBuildCost : 5) + node->rows * 5 * static_cast<double>(calls);
  node->rows = grouped ? std::max(1.0, std::min(node->rows, groups)) : 1;
  Phys out;
  out.at_most_one = !grouped;
  out.node = std::move(node);
  out.cols = aggregate.ids;
  SetOutput(&out);
  return AddFilter(std::move(out), std::move(above));
}

Result<Phys> Physical::BuildWindow(LogicalWindow& window, std::vector<ExprPtr> conditions,
                                   const Request& request) {
  Request inner;
  inner.needed = Expand(request.needed);
  for (const ExprPtr& condition : conditions) inner.needed.AddAll(Expand(IdsOf(s_, *condition)));
  ForEachExpr(&window, [&](ExprPtr* expr) { AddIds(s_, **expr, &inner.needed); });
  inner.needed = Expand(inner.needed);
  CELLAR_TRY_ASSIGN(Phys child, Build(std::move(window.children[0]), {}, inner));
  auto node = std::make_unique<FramedWindowNode>();
  CELLAR_TRY(FinalizeAll(&window.partition_by, child.cols));
  CELLAR_TRY(FinalizeKeys(&window.order_by, child.cols));
  for (WindowCall& call : window.calls) {
    CELLAR_TRY(FinalizeAll(&call.args, child.cols));
    CELLAR_TRY(FinalizeCall(&call.aggregate, child.cols));
  }
  for (WindowFrame& frame : window.frames) {
    for (ExprPtr* offset : {&frame.start_offset, &frame.end_offset}) {
      if (*offset != nullptr) CELLAR_TRY(Finalize(offset, child.cols));
    }
  }
  node->partition_by = std::move(window.partition_by);
  node->order_by = std::move(window.order_by);
  node->calls = std::move(window.calls);
  node->frames = std::move(window.frames);
  Phys out;
  out.cols = child.cols;
  out.cols.insert(out.cols.end(), window.ids.begin(), window.ids.end());
  AddChild(node.get(), &child);
  node->cost += SortCost(node->rows) + node->rows * 50;
  out.node = std::move(node);
  SetOutput(&out);
  return AddFilter(std::move(out), std::move(conditions));
}

Result<Phys> Physical::SortBy(Phys child, const std::vector<OrderKey>& keys, ExprPtr top) {
  auto node = std::make_unique<SortNode>();
  for (const OrderKey& key : keys) {
    SortKey sort;
    sort.expr = s_.ColumnExpr(key.id);
    sort.descending = key.descending;
    sort.nulls_first = key.nulls_first;
    CELLAR_TRY(Finalize(&sort.expr, child.cols));
    node->keys.push_back(std::move(sort));
  }
  Phys out;
  out.cols = child.cols;
  out.order = keys;
  AddChild(node.get(), &child);
  double kept = ConstantCount(top.get()).value_or(node->rows);
  node->cost += kSortFactor * node->rows * std::log2(std::max(2.0, std::min(kept, node->rows)));
  node->top = std::move(top);
  if (node->top != nullptr) node->rows = std::max(1.0, std::min(node->rows, kept));
  out.node = std::move(node);
  SetOutput(&out);
  return out;
}

std::vector<ExprPtr> Physical::TakeVolatile(std::vector<ExprPtr>* conditions) const {
  std::vector<ExprPtr> out, kept;
  for (ExprPtr& condition : *conditions) {
    (IsVolatile(s_, *condition) ? out : kept).push_back(std::move(condition));
  }
  *conditions = std::move(kept);
  return out;
}

Result<Phys> Physical::BuildSort(LogicalSort& sort, std::vector<ExprPtr> conditions,
                                 const Request& request, ExprPtr top) {
  Request inner;
  inner.needed = Expand(request.needed);
  std::vector<ExprPtr> above = TakeVolatile(&conditions);
  for (const ExprPtr& condition : above) inner.needed.AddAll(Expand(IdsOf(s_, *condition)));
  std::vector<OrderKey> keys;
  for (const SortKey& key : sort.keys) {
    if (key.expr->kind != ExprKind::kColumn) return InternalError("sort key is not a column");
    bool repeated = false;
    for (const OrderKey& known : keys) repeated = repeated || known.id == key.expr->index;
    if (repeated) continue;
    keys.push_back({key.expr->index, key.descending, key.nulls_first});
    inner.needed.Add(key.expr->index);
  }
  inner.limit = request.limit;
  if (s_.context.enable_sort_elision) inner.order = keys;
  CELLAR_TRY_ASSIGN(Phys child, Build(std::move(sort.children[0]), std::move(conditions), inner));
  if (child.at_most_one || (s_.context.enable_sort_elision && Satisfies(child.order, keys))) {
    return AddFilter(std::move(child), std::move(above));
  }
  // Computed sort columns must exist in the child.
  std::vector<int> cols = child.cols;
  for (const OrderKey& key : keys) {
    if (std::find(cols.begin(), cols.end(), key.id) == cols.end()) cols.push_back(key.id);
  }
  CELLAR_TRY_ASSIGN(child, Exactly(std::move(child), cols));
  CELLAR_TRY_ASSIGN(child, SortBy(std::move(child), keys, std::move(top)));
  return AddFilter(std::move(child), std::move(above));
}

Result<ExprPtr> Physical::RowsBelow(const LogicalLimit& limit) const {
  if (limit.offset == nullptr) return CloneExpr(*limit.limit);
  const Type type = MakeType(TypeId::kInt8);
  if (IsConstant(*limit.limit) && IsConstant(*limit.offset)) {
    if (limit.offset->constant.is_null()) return CloneExpr(*limit.limit);
    int64_t sum;
    if (__builtin_add_overflow(limit.limit->constant.datum().int_value(),
                               limit.offset->constant.datum().int_value(), &sum)) {
      sum = INT64_MAX;
    }
    return MakeConstant(Value(type, Datum::Int(sum)));
  }
  const Type types[2] = {type, type};
  CELLAR_TRY_ASSIGN(const ResolvedFunction plus, ResolveOperator("+", types));
  std::vector<ExprPtr> args;
  args.push_back(CloneExpr(*limit.limit));
  args.push_back(CloneExpr(*limit.offset));
  return MakeCall(plus.spec, type, std::move(args));
}

Result<Phys> Physical::BuildLimit(LogicalLimit& limit, std::vector<ExprPtr> conditions,
                                  const Request& request) {
  std::optional<double> count = ConstantCount(limit.limit.get());
  std::optional<double> offset = ConstantCount(limit.offset.get());
  bool has_limit =
      limit.limit != nullptr && !(IsConstant(*limit.limit) && limit.limit->constant.is_null());
  if (has_limit && limit.ties.empty()) {
    // Volatile values are computed for no more rows than go on to the limit.
    bool is_volatile = false;
    LogicalPtr* below = &limit.children[0];
    while ((*below)->kind == LogicalKind::kProject) {
      for (const ExprPtr& expr : (*below)->As<LogicalProject>().exprs) {
        is_volatile = is_volatile || IsVolatile(s_, *expr);
      }
      below = &(*below)->children[0];
    }
    if (is_volatile && (*below)->kind != LogicalKind::kLimit) {
      auto inner = std::make_unique<LogicalLimit>();
      CELLAR_TRY_ASSIGN(inner->limit, RowsBelow(limit));
      inner->children.push_back(std::move(*below));
      *below = std::move(inner);
    }
  }
  Request inner;
  inner.needed = Expand(request.needed);
  for (const ExprPtr& condition : conditions) inner.needed.AddAll(Expand(IdsOf(s_, *condition)));
  inner.order = request.order;
  double guess = count.value_or(10) + (limit.offset != nullptr ? offset.value_or(0) : 0);
  if (has_limit) inner.limit = std::max(1.0, guess);
  for (int id : limit.ties) inner.needed.Add(id);
  inner.needed = Expand(inner.needed);
  if (conditions.empty() && limit.ties.empty()) inner.exact = request.exact;
  Result<Phys> built = [&]() -> Result<Phys> {
    if (limit.children[0]->kind != LogicalKind::kSort) {
      return Build(std::move(limit.children[0]), {}, inner);
    }
    ExprPtr top;
    if (has_limit && limit.ties.empty()) {
      CELLAR_TRY_ASSIGN(top, RowsBelow(limit));
      CELLAR_TRY(Finalize(&top, {}));
    }
    return BuildSort(limit.children[0]->As<LogicalSort>(), {}, inner, std::move(top));
  }();
  if (!built.ok()) return built;
  Phys child = std::move(*built);
  auto node = std::make_unique<TiesNode>();
  if (limit.limit != nullptr) CELLAR_TRY(Finalize(&limit.limit, {}));
  if (limit.offset != nullptr) CELLAR_TRY(Finalize(&limit.offset, {}));
  node->limit = std::move(limit.limit);
  node->offset = std::move(limit.offset);
  for (int id : limit.ties) {
    const auto found = std::find(child.cols.begin(), child.cols.end(), id);
    if (found == child.cols.end()) return InternalError("the limit lost a column of its order");
    node->ties.push_back(static_cast<int>(found - child.cols.begin()));
  }
  Phys out;
  out.cols = child.cols;
  out.order = child.order;
  out.at_most_one = child.at_most_one || (count.has_value() && *count <= 1 && node->ties.empty());
  AddChild(node.get(), &child);
  if (has_limit) node->rows = std::max(1.0, std::min(node->rows, count.value_or(10)));
  out.node = std::move(node);
  SetOutput(&out);
  return AddFilter(std::move(out), std::move(conditions));
}

Result<Phys> Physical::BuildDistinct(LogicalDistinct& distinct, std::vector<ExprPtr> conditions,
                                     const Request& request) {
  auto node = std::make_unique<DistinctNode>();
  Phys out;
  if (!distinct.distinct_on) {
    // Every column decides, so conditions commute with it.
    Request inner;
    inner.order = request.order;
    std::vector<ExprPtr> above = TakeVolatile(&conditions);
    CELLAR_TRY_ASSIGN(Phys child, BuildExact(std::move(distinct.children[0]), std::move(conditions),
                                             distinct.on, std::move(inner)));
    if (child.at_most_one) return AddFilter(std::move(child), std::move(above));
    out.cols = child.cols;
    AddChild(node.get(), &child);
    node->cost += node->rows * kHashBuildCost;
    node->rows = std::max(1.0, node->rows / 2);
    out.node = std::move(node);
    SetOutput(&out);
    return AddFilter(std::move(out), std::move(above));
  }
  IdSet on;
  for (int id : distinct.on) on.Add(id);
  std::vector<ExprPtr> below, above;
  for (ExprPtr& condition : conditions) {
    bool push = on.ContainsAll(Expand(IdsOf(s_, *condition))) && !IsVolatile(s_, *condition);
    (push ? below : above).push_back(std::move(condition));
  }
  Request inner;
  inner.needed = Expand(request.needed);
  for (int id : distinct.on) inner.needed.Add(id);
  for (const ExprPtr& condition : above) inner.needed.AddAll(Expand(IdsOf(s_, *condition)));
  auto sort = std::make_unique<LogicalSort>();
  for (SortKey& key : distinct.order) {
    inner.needed.Add(key.expr->index);
    sort->keys.push_back(std::move(key));
  }
  for (int id : distinct.on) {
    bool known = false;
    for (const SortKey& key : sort->keys) known = known || key.expr->index == id;
    if (known) continue;
    SortKey key;
    key.expr = s_.ColumnExpr(id);
    sort->keys.push_back(std::move(key));
  }
  sort->children.push_back(std::move(distinct.children[0]));
  inner.needed = Expand(inner.needed);
  for (int id : distinct.on) inner.needed.Add(id);
  CELLAR_TRY_ASSIGN(Phys child, BuildSort(*sort, std::move(below), inner, nullptr));
  for (int id : distinct.on) {
    auto at = std::find(child.cols.begin(), child.cols.end(), id);
    if (at == child.cols.end()) {
      std::vector<int> cols = child.cols;
      for (int missing : distinct.on) {
        if (std::find(cols.begin(), cols.end(), missing) == cols.end()) cols.push_back(missing);
      }
      CELLAR_TRY_ASSIGN(child, Exactly(std::move(child), cols));
      at = std::find(child.cols.begin(), child.cols.end(), id);
    }
    node->on.push_back(static_cast<int>(at - child.cols.begin()));
  }
  node->sorted = true;
  out.cols = child.cols;
  out.order = child.order;
  AddChild(node.get(), &child);
  node->cost += node->rows * kFilterCost;
  node->rows = std::max(1.0, node->rows / 2);
  out.node = std::move(node);
  SetOutput(&out);
  return AddFilter(std::move(out), std::move(above));
}

Result<Phys> Physical::BuildAppend(LogicalAppend& append, std::vector<ExprPtr> conditions,
                                   const Request& request) {
  IdSet wanted = Expand(request.needed);
  std::vector<size_t> positions;
  for (size_t i = 0; i < append.ids.size(); ++i) {
    if (wanted.Has(append.ids[i])) positions.push_back(i);
  }
  bool push = true;
  IdSet own;
  for (int id : append.ids) own.Add(id);
  for (const ExprPtr& condition : conditions) {
    push = push && !IsVolatile(*condition) && !HasSubplan(*condition);
  }
  if (!push) {
    for (size_t i = 0; i < append.ids.size(); ++i) {
      bool used = false;
      for (const ExprPtr& condition : conditions) {
        used = used || Expand(IdsOf(s_, *condition)).Has(append.ids[i]);
      }
      if (used && std::find(positions.begin(), positions.end(), i) == positions.end())
        positions.push_back(i);
    }
    std::sort(positions.begin(), positions.end());
  }
  auto node = std::make_unique<AppendNode>();
  Phys out;
  for (size_t position : positions) out.cols.push_back(append.ids[position]);
  for (size_t c = 0; c < append.children.size(); ++c) {
    std::vector<int> exact;
    for (size_t position : positions) exact.push_back(append.inputs[c][position]);
    std::vector<ExprPtr> below;
    if (push) {
      std::vector<ExprPtr> names;
      std::vector<std::pair<int, const Expr*>> values;
      for (size_t i = 0; i < append.ids.size(); ++i)
        names.push_back(s_.ColumnExpr(append.inputs[c][i]));
      for (size_t i = 0; i < append.ids.size(); ++i)
        values.emplace_back(append.ids[i], names[i].get());
      for (const ExprPtr& condition : conditions) {
        ExprPtr copy = CloneExpr(*condition);
        Substitute(&copy, values);
        below.push_back(std::move(copy));
      }
    }
    Request inner;
    inner.limit = request.limit;
    CELLAR_TRY_ASSIGN(Phys child, BuildExact(std::move(append.children[c]), std::move(below), exact,
                                             std::move(inner)));
    node->rows += child.rows();
    node->cost += child.cost();
    node->children.push_back(std::move(child.node));
  }
  out.node = std::move(node);
  SetOutput(&out);
  if (push) return out;
  return AddFilter(std::move(out), std::move(conditions));
}

Result<Phys> Physical::BuildSetOperation(LogicalSetOperation& set,
                                         std::vector<ExprPtr> conditions) {
  auto node = std::make_unique<SetOperationNode>();
  node->operation = set.operation;
  node->all = set.all;
  for (size_t c = 0; c < set.children.size(); ++c) {
    CELLAR_TRY_ASSIGN(Phys child,
                      BuildExact(std::move(set.children[c]), {}, set.inputs[c], Request()));
    node->rows = c == 0 ? child.rows() : std::min(node->rows, child.rows());
    node->cost += child.cost() + child.rows() * kHashBuildCost;
    node->children.push_back(std::move(child.node));
  }
  Phys out;
  out.node = std::move(node);
  out.cols = set.ids;
  SetOutput(&out);
  return AddFilter(std::move(out), std::move(conditions));
}

Result<int> Physical::PlanCte(int index) {
  if (s_.ctes[static_cast<size_t>(index)].plan >= 0)
    return s_.ctes[static_cast<size_t>(index)].plan;
  Cte& cte = s_.ctes[static_cast<size_t>(index)];
  int position = static_cast<int>(plan_->ctes.size());
  cte.plan = position;
  plan_->ctes.emplace_back();
  std::vector<int> ids;
  for (const QueryColumn& column : cte.columns) ids.push_back(column.id);
  LogicalPtr root = std::move(cte.root);
  bool modifying = cte.modifying;
  Request request;
  for (int id : ids) request.needed.Add(id);
  Result<Phys> built = modifying ? Build(std::move(root), {}, request)
                                 : BuildExact(std::move(root), {}, ids, request);
  if (!built.ok()) return std::move(built).status();
  plan_->ctes[static_cast<size_t>(position)] = std::move(built->node);
  return position;
}

Result<Phys> Physical::BuildCteRef(LogicalCteRef& ref, std::vector<ExprPtr> conditions) {
  auto node = std::make_unique<CteScanNode>();
  CELLAR_TRY_ASSIGN(node->cte, PlanCte(ref.cte));
  node->name = s_.ctes[static_cast<size_t>(ref.cte)].name;
  const PlanPtr& source = plan_->ctes[static_cast<size_t>(node->cte)];
  node->rows = source != nullptr ? source->rows : 100;
  node->cost = node->rows * 20;
  Phys out;
  out.node = std::move(node);
  out.cols = ref.ids;
  SetOutput(&out);
  return AddFilter(std::move(out), std::move(conditions));
}

Result<Phys> Physical::BuildRecursiveUnion(LogicalRecursiveUnion& recursion,
                                           std::vector<ExprPtr> conditions) {
  auto node = std::make_unique<RecursiveUnionNode>();
  node->work_table = recursion.work_table;
  node->all = recursion.all;
  for (size_t c = 0; c < 2; ++c) {
    CELLAR_TRY_ASSIGN(Phys child, BuildExact(std::move(recursion.children[c]), {},
                                             recursion.inputs[c], Request()));
    node->rows += child.rows() * (c == 0 ? 1 : 10);
    node->cost += child.cost() * (c == 0 ? 1 : 10);
    node->children.push_back(std::move(child.node));
  }
  Phys out;
  out.node = std::move(node);
  out.cols = recursion.ids;
  SetOutput(&out);
  return AddFilter(std::move(out), std::move(conditions));
}

Result<Phys> Physical::BuildWorkTable(LogicalWorkTable& table, std::vector<ExprPtr> conditions) {
  auto node = std::make_unique<WorkTableScanNode>();
  node->work_table = table.work_table;
  node->rows = 100;
  node->cost = 1000;
  Phys out;
  out.node = std::move(node);
  out.cols = table.ids;
  SetOutput(&out);
  return AddFilter(std::move(out), std::move(conditions));
}

}  // namespace cellar::sql::planning
