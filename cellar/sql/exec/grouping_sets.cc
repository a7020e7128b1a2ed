// GROUPING SETS, by hashing: a table of groups for each set, all filled in one pass over the input.
#include <algorithm>
#include <memory>

#include "cellar/sql/exec/aggregate_call.h"
#include "cellar/sql/exec/key_table.h"
#include "cellar/sql/exec/operator.h"

namespace cellar::sql::exec {
namespace {

class GroupingSetsOperator : public Operator {
 public:
  GroupingSetsOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : Operator(node, state),
        child_(std::move(child)),
        plan_(node.As<GroupingNode>()),
        keys_(plan_.keys),
        key_types_(TypesOf(plan_.keys)) {
    for (const std::vector<int>& keys : plan_.sets) {
      Set& set = sets_.emplace_back();
      set.keys = keys;
      for (int key : keys) set.types.push_back(key_types_[static_cast<size_t>(key)]);
      for (const AggregateCall& call : plan_.calls) {
        set.calls.push_back(std::make_unique<GroupedAggregate>(call));
      }
      for (const std::vector<int>& grouping : plan_.groupings) {
        int64_t bits = 0;
        for (int key : grouping) {
          const bool grouped = std::find(keys.begin(), keys.end(), key) != keys.end();
          bits = bits << 1 | (grouped ? 0 : 1);
        }
        set.groupings.push_back(bits);
      }
    }
  }

 protected:
  Status DoOpen() override {
    consumed_ = false;
    current_ = 0;
    next_ = 0;
    for (Set& set : sets_) {
      set.groups.Reset(set.types);
      for (auto& call : set.calls) call->Reset();
    }
    return child_->Open();
  }

  Result<RowBatch*> DoNext() override {
    if (!consumed_) {
      CELLAR_TRY(Consume());
      consumed_ = true;
    }
    while (current_ < sets_.size() && next_ >= sets_[current_].size()) {
      ++current_;
      next_ = 0;
    }
    if (current_ == sets_.size()) return nullptr;
    CELLAR_TRY(Emit(sets_[current_]));
    return &out_;
  }

 private:
  struct Set {
    std::vector<int> keys;
    std::vector<Type> types;  // of these
    KeyTable groups;
    std::vector<std::unique_ptr<GroupedAggregate>> calls;
    std::vector<int64_t> groupings;
    // Without keys all rows, and none too, are one group.
    size_t size() const { return keys.empty() ? 1 : groups.size(); }
  };

  Status Consume() {
    while (true) {
      CELLAR_TRY_ASSIGN(RowBatch * batch, child_->Next());
      if (batch == nullptr) return Status();
      arena_.Reset();
      context().set_arena(&arena_);
      CELLAR_TRY(keys_.Eval(*batch, context()));
      size_t bytes = 0;
      for (Set& set : sets_) {
        RowGroups groups;
        if (!set.keys.empty()) {
          columns_.clear();
          for (int key : set.keys) columns_.push_back(keys_.columns()[static_cast<size_t>(key)]);
          ids_.resize(batch->size());
          const bool one = set.groups.FindOrInsert(columns_, batch->size(), ids_.data());
          groups = one ? RowGroups{nullptr, ids_[0]} : RowGroups{ids_.data(), 0};
        }
        for (auto& call : set.calls) {
          CELLAR_TRY(call->Add(*batch, groups, set.size(), context()));
          bytes += call->footprint_bytes();
        }
        bytes += set.groups.footprint_bytes();
      }
      CELLAR_TRY(state_.CheckMemory(bytes));
    }
  }

  // The next groups of a set.
  Status Emit(Set& set) {
    const size_t end = std::min(set.size(), next_ + kBatchRows), count = end - next_;
    const size_t keys = plan_.keys.size(), calls = plan_.calls.size();
    out_.columns().resize(keys + calls + set.groupings.size());
    picks_.resize(count);
    for (size_t i = 0; i < count; ++i) picks_[i] = static_cast<uint32_t>(next_ + i);
    for (size_t k = 0; k < keys; ++k) {
      const auto found = std::find(set.keys.begin(), set.keys.end(), static_cast<int>(k));
      if (found != set.keys.end()) {
        const auto at = static_cast<size_t>(found - set.keys.begin());
        GatherColumn(set.groups.keys().column(at), picks_.data(), count, &out_.column(k));
        continue;
      }
      out_.column(k).Reset(key_types_[k]);
      out_.column(k).Resize(count);
      for (size_t i = 0; i < count; ++i) out_.column(k).SetNull(i);
    }
    arena_.Reset();
    context().set_arena(&arena_);
    for (size_t c = 0; c < calls; ++c) {
      ColumnVector& column = out_.column(keys + c);
      column.Reset(plan_.calls[c].result);
      CELLAR_TRY(set.calls[c]->Finish(next_, end, context(), &column));
    }
    for (size_t g = 0; g < set.groupings.size(); ++g) {
      ColumnVector& column = out_.column(keys + calls + g);
      column.Reset(MakeType(TypeId::kInt4));
      column.Resize(count);
      std::fill_n(column.ints(), count, set.groupings[g]);
    }
    out_.SetSize(count);
    next_ = end;
    return Status();
  }

  OperatorPtr child_;
  const GroupingNode& plan_;
  ExprList keys_;
  std::vector<Type> key_types_;
  std::vector<Set> sets_;
  bool consumed_ = false;
  size_t current_ = 0, next_ = 0;  // set, and group of it
  Arena arena_;
  RowBatch out_;
  std::vector<const ColumnVector*> columns_;
  std::vector<uint32_t> ids_, picks_;
};

}  // namespace

Result<OperatorPtr> BuildGroupingSets(const PlanNode& node, OperatorPtr child, ExecState* state) {
  return OperatorPtr(std::make_unique<GroupingSetsOperator>(node, std::move(child), state));
}

}  // namespace cellar::sql::exec
