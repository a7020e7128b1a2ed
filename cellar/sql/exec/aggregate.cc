// Grouping and DISTINCT, by hashing: groups come out in order of first appearance, so input that is
// grouped or sorted stays so.
#include <algorithm>

#include "cellar/sql/exec/aggregate_call.h"
#include "cellar/sql/exec/key_table.h"
#include "cellar/sql/exec/operator.h"

namespace cellar::sql::exec {
namespace {

class AggregateOperator : public Operator {
 public:
  AggregateOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : Operator(node, state), child_(std::move(child)), keys_(node.As<AggregateNode>().keys) {
    for (const AggregateCall& call : node.As<AggregateNode>().calls) {
      calls_.push_back(std::make_unique<GroupedAggregate>(call));
    }
    key_types_ = TypesOf(node.As<AggregateNode>().keys);
    VisitNodeExprs(node, [this](const Expr& expr) { input_.Watch(expr); });
    counts_only_ = keys_.size() == 0 && !node.As<AggregateNode>().calls.empty();
    for (const AggregateCall& call : node.As<AggregateNode>().calls) {
      counts_only_ = counts_only_ && call.spec->name == "count" && call.args.empty() &&
                     !call.distinct && call.filter == nullptr && call.order_by.empty();
    }
  }

 protected:
  Status DoOpen() override {
    consumed_ = false;
    next_ = 0;
    groups_.Reset(key_types_);
    for (auto& call : calls_) call->Reset();
    input_.Open();
    return child_->Open();
  }

  Result<RowBatch*> DoNext() override {
    if (!consumed_) {
      CELLAR_TRY(Consume());
      consumed_ = true;
    }
    const size_t total = keys_.size() == 0 ? 1 : groups_.size();
    if (next_ >= total) return nullptr;
    const size_t end = std::min(total, next_ + kBatchRows);
    out_.columns().resize(keys_.size() + calls_.size());
    picks_.resize(end - next_);
    for (size_t i = 0; i < picks_.size(); ++i) picks_[i] = static_cast<uint32_t>(next_ + i);
    for (size_t k = 0; k < keys_.size(); ++k) {
      GatherColumn(groups_.keys().column(k), picks_.data(), picks_.size(), &out_.column(k));
    }
    arena_.Reset();
    context().set_arena(&arena_);
    for (size_t c = 0; c < calls_.size(); ++c) {
      ColumnVector& column = out_.column(keys_.size() + c);
      column.Reset(node_.As<AggregateNode>().calls[c].result);
      CELLAR_TRY(calls_[c]->Finish(next_, end, context(), &column));
    }
    out_.SetSize(end - next_);
    next_ = end;
    return &out_;
  }

 private:
  Status Consume() {
    if (counts_only_) {
      CELLAR_TRY_ASSIGN(const std::optional<uint64_t> rows, child_->CountRows());
      if (rows.has_value()) {
        RowBatch counted;
        counted.SetSize(*rows);
        for (auto& call : calls_) CELLAR_TRY(call->Add(counted, RowGroups(), 1, context()));
        return Status();
      }
    }
    size_t unchecked = 0;  // rows since memory was counted, which costs as much as some rows
    while (true) {
      CELLAR_TRY_ASSIGN(RowBatch * batch, input_.Next(child_.get()));
      if (batch == nullptr) return Status();
      arena_.Reset();
      context().set_arena(&arena_);
      RowGroups groups;
      size_t count = 1;
      if (keys_.size() > 0) {
        CELLAR_TRY(keys_.Eval(*batch, context()));
        ids_.resize(batch->size());
        const bool one = groups_.FindOrInsert(keys_.columns(), batch->size(), ids_.data());
        groups = one ? RowGroups{nullptr, ids_[0]} : RowGroups{ids_.data(), 0};
        count = groups_.size();
      }
      if (groups.ids != nullptr && calls_.size() > 1 && count <= kMostParts &&
          batch->size() >= count * kLeastPart) {
        Divide(batch->size(), count);
        groups.parts = parts_;
        groups.order = order_.data();
      }
      for (auto& call : calls_) CELLAR_TRY(call->Add(*batch, groups, count, context()));
      input_.Note(*batch, arena_.footprint_bytes());
      unchecked += batch->size();
      if (unchecked < kBatchRows) continue;
      unchecked = 0;
      size_t bytes = groups_.footprint_bytes();
      for (auto& call : calls_) bytes += call->footprint_bytes();
      CELLAR_TRY(state_.CheckMemory(bytes));
    }
  }

  // Sorts the rows of a batch by group: few groups with many rows each are added up group by group
  // faster than row by row, for each row waits for the one before it in its group.
  void Divide(size_t rows, size_t count) {
    uint32_t ends[kMostParts] = {};
    for (size_t i = 0; i < rows; ++i) ++ends[ids_[i]];
    parts_.clear();
    uint32_t start = 0;
    for (uint32_t g = 0; g < count; ++g) {
      const uint32_t size = ends[g];
      if (size != 0) parts_.push_back({g, start, size});
      ends[g] = start;
      start += size;
    }
    order_.resize(rows);
    uint32_t* order = order_.data();
    for (uint32_t i = 0; i < rows; ++i) order[ends[ids_[i]]++] = i;
  }

  static constexpr size_t kMostParts = 64, kLeastPart = 16;

  OperatorPtr child_;
  ExprList keys_;
  std::vector<Type> key_types_;
  KeyTable groups_;
  std::vector<std::unique_ptr<GroupedAggregate>> calls_;
  bool consumed_ = false;
  bool counts_only_ = false;  // nothing but count(*)
  size_t next_ = 0;
  Arena arena_;
  PartInput input_;
  RowBatch out_;
  std::vector<uint32_t> ids_, order_, picks_;
  std::vector<RowGroups::Part> parts_;
};

class DistinctOperator : public Operator {
 public:
  DistinctOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : Operator(node, state), child_(std::move(child)), on_(node.As<DistinctNode>().on) {
    const std::vector<Type> types = TypesOf(node.output);
    if (on_.empty()) {
      for (size_t i = 0; i < types.size(); ++i) on_.push_back(static_cast<int>(i));
    }
    for (int column : on_) key_types_.push_back(types[column]);
  }

 protected:
  Status DoOpen() override {
    seen_.Reset(key_types_);
    return child_->Open();
  }
  Result<RowBatch*> DoNext() override {
    while (true) {
      CELLAR_TRY_ASSIGN(RowBatch * batch, child_->Next());
      if (batch == nullptr) return nullptr;
      std::vector<const ColumnVector*> keys;
      for (int column : on_) keys.push_back(&batch->column(column));
      ids_.resize(batch->size());
      fresh_.resize(batch->size());
      seen_.FindOrInsert(keys, batch->size(), ids_.data(), fresh_.data());
      CELLAR_TRY(state_.CheckMemory(seen_.footprint_bytes()));
      rows_.clear();
      for (uint32_t i = 0; i < batch->size(); ++i) {
        if (fresh_[i]) rows_.push_back(i);
      }
      if (rows_.empty()) continue;
      batch->Keep(rows_);
      return batch;
    }
  }

 private:
  OperatorPtr child_;
  std::vector<int> on_;
  std::vector<Type> key_types_;
  KeyTable seen_;
  std::vector<uint32_t> ids_, rows_;
  std::vector<uint8_t> fresh_;
};

}  // namespace

Result<OperatorPtr> BuildAggregate(const PlanNode& node, OperatorPtr child, ExecState* state) {
  if (!node.As<GroupingNode>().sets.empty()) {
    return BuildGroupingSets(node, std::move(child), state);
  }
  return OperatorPtr(std::make_unique<AggregateOperator>(node, std::move(child), state));
}

Result<OperatorPtr> BuildDistinct(const PlanNode& node, OperatorPtr child, ExecState* state) {
  return OperatorPtr(std::make_unique<DistinctOperator>(node, std::move(child), state));
}

}  // namespace cellar::sql::exec
