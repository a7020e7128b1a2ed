#include "cellar/sql/exec/aggregate_call.h"

#include <algorithm>

#include "cellar/sql/exec/sort.h"

namespace cellar::sql::exec {

GroupedAggregate::GroupedAggregate(const AggregateCall& call)
    : call_(call), arg_types_(TypesOf(call.args)) {
  for (const ExprPtr& arg : call.args) args_.emplace_back(arg.get());
  if (call.filter) filter_.emplace(call.filter.get());
  for (const SortKey& key : call.order_by) order_.emplace_back(key.expr.get());
  Reset();
}

void GroupedAggregate::Reset() {
  state_ = call_.spec->make(arg_types_);
  group_count_ = 0;
  if (call_.distinct) {
    std::vector<Type> types{MakeType(TypeId::kInt8)};
    types.insert(types.end(), arg_types_.begin(), arg_types_.end());
    seen_.Reset(types);
  }
  if (!order_.empty()) {
    std::vector<Type> types{MakeType(TypeId::kInt8)};
    types.insert(types.end(), arg_types_.begin(), arg_types_.end());
    for (const SortKey& key : call_.order_by) types.push_back(key.expr->type);
    buffered_.Reset(types);
  }
}

Status GroupedAggregate::AddRows(Selection rows, RowGroups groups, EvalContext& context) {
  if (rows.count == 0) return Status();
  if (groups.ids == nullptr) return state_->AddToGroup(context, vectors_, rows, groups.one);
  if (rows.rows == nullptr && !groups.parts.empty()) {
    for (const RowGroups::Part& part : groups.parts) {
      const Selection of_group{groups.order + part.start, part.count};
      CELLAR_TRY(state_->AddToGroup(context, vectors_, of_group, part.group));
    }
    return Status();
  }
  if (rows.rows == nullptr) return state_->Add(context, vectors_, rows, groups.ids);
  groups_.resize(rows.count);
  for (size_t i = 0; i < rows.count; ++i) groups_[i] = groups.ids[rows.rows[i]];
  return state_->Add(context, vectors_, rows, groups_.data());
}

Status GroupedAggregate::Add(const RowBatch& input, RowGroups groups, size_t group_count,
                             EvalContext& context) {
  if (group_count > group_count_ || group_count_ == 0) {
    state_->Resize(group_count);
    group_count_ = group_count;
  }
  const size_t total = input.size();
  Selection rows{nullptr, total};
  if (filter_) {
    rows_.clear();
    CELLAR_TRY(filter_->Filter(input, rows, context, &rows_));
    rows = Selection{rows_.data(), rows_.size()};
  }
  vectors_.clear();
  for (Evaluator& arg : args_) {
    CELLAR_TRY_ASSIGN(const ColumnVector* values, arg.Eval(input, rows, context));
    vectors_.push_back(values);
  }
  for (const ColumnVector* values : vectors_) {
    if (!call_.spec->strict || !values->has_nulls()) continue;
    kept_.resize(rows.count);
    const uint8_t* nulls = values->nulls();
    size_t count = 0;
    for (size_t i = 0; i < rows.count; ++i) {
      kept_[count] = rows[i];
      count += nulls[rows[i]] == 0 ? 1 : 0;
    }
    kept_.resize(count);
    rows_.swap(kept_);
    rows = Selection{rows_.data(), rows_.size()};
  }
  if (!call_.distinct && order_.empty()) return AddRows(rows, groups, context);

  // Dense copies of the selected rows: group, arguments, sort keys.
  RowBatch dense;
  dense.columns().resize(1 + args_.size() + order_.size());
  ColumnVector& group_column = dense.column(0);
  group_column.Reset(MakeType(TypeId::kInt8));
  group_column.Resize(rows.count);
  for (size_t i = 0; i < rows.count; ++i) {
    group_column.ints()[i] = groups.ids == nullptr ? groups.one : groups.ids[rows[i]];
  }
  std::vector<uint32_t> picks(rows.count);
  for (size_t i = 0; i < rows.count; ++i) picks[i] = rows[i];
  for (size_t a = 0; a < args_.size(); ++a) {
    GatherColumn(*vectors_[a], picks.data(), picks.size(), &dense.column(1 + a));
  }
  for (size_t k = 0; k < order_.size(); ++k) {
    CELLAR_TRY_ASSIGN(const ColumnVector* values, order_[k].Eval(input, rows, context));
    GatherColumn(*values, picks.data(), picks.size(), &dense.column(1 + args_.size() + k));
  }
  dense.SetSize(rows.count);
  if (call_.distinct) {
    std::vector<const ColumnVector*> keys;
    for (size_t c = 0; c <= args_.size(); ++c) keys.push_back(&dense.column(c));
    ids_.resize(rows.count);
    fresh_.resize(rows.count);
    seen_.FindOrInsert(keys, rows.count, ids_.data(), fresh_.data());
    std::vector<uint32_t> kept;
    for (uint32_t i = 0; i < rows.count; ++i) {
      if (fresh_[i]) kept.push_back(i);
    }
    dense.Keep(kept);
  }
  if (!order_.empty()) {
    buffered_.AppendAll(dense);
    return Status();
  }
  vectors_.clear();
  for (size_t a = 0; a < args_.size(); ++a) vectors_.push_back(&dense.column(1 + a));
  groups_.resize(dense.size());
  for (size_t i = 0; i < dense.size(); ++i)
    groups_[i] = static_cast<uint32_t>(dense.column(0).ints()[i]);
  return state_->Add(context, vectors_, Selection{nullptr, dense.size()}, groups_.data());
}

Status GroupedAggregate::AddOrdered(size_t group_count, EvalContext& context) {
  std::vector<SortColumn> columns{{&buffered_.column(0), buffered_.column(0).type(), false, false}};
  for (size_t k = 0; k < order_.size(); ++k) {
    columns.push_back({&buffered_.column(1 + args_.size() + k), call_.order_by[k].expr->type,
                       call_.order_by[k].descending, call_.order_by[k].nulls_first});
  }
  CountedVector<uint32_t> order(buffered_.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  CELLAR_TRY(SortRows(columns, context.cancel, &order));
  state_->Resize(group_count);
  std::vector<ColumnVector> sorted(args_.size());
  for (size_t start = 0; start < order.size(); start += kBatchRows) {
    if (context.cancel != nullptr) CELLAR_TRY(context.cancel->Check());
    const size_t count = std::min(kBatchRows, order.size() - start);
    vectors_.clear();
    for (size_t a = 0; a < args_.size(); ++a) {
      GatherColumn(buffered_.column(1 + a), order.data() + start, count, &sorted[a]);
      vectors_.push_back(&sorted[a]);
    }
    groups_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      groups_[i] = static_cast<uint32_t>(buffered_.column(0).ints()[order[start + i]]);
    }
    CELLAR_TRY(state_->Add(context, vectors_, Selection{nullptr, count}, groups_.data()));
  }
  return Status();
}

Status GroupedAggregate::Finish(size_t start, size_t end, EvalContext& context,
                                ColumnVector* result) {
  if (end > group_count_) {
    state_->Resize(end);
    group_count_ = end;
  }
  if (!order_.empty() && buffered_.size() > 0) {
    CELLAR_TRY(AddOrdered(group_count_, context));
    buffered_.Clear();
  }
  return state_->Finish(context, start, end, result);
}

size_t GroupedAggregate::footprint_bytes() const {
  return state_->footprint_bytes() + (call_.distinct ? seen_.footprint_bytes() : 0) +
         (order_.empty() ? 0 : buffered_.footprint_bytes());
}

}  // namespace cellar::sql::exec
