// UNION ALL, UNION, INTERSECT, EXCEPT and recursive unions.
#include <algorithm>

#include "cellar/sql/exec/key_table.h"
#include "cellar/sql/exec/operator.h"

namespace cellar::sql::exec {
namespace {

class AppendOperator : public Operator {
 public:
  AppendOperator(const PlanNode& node, std::vector<OperatorPtr> children, ExecState* state)
      : Operator(node, state), children_(std::move(children)) {}

 protected:
  Status DoOpen() override {
    current_ = 0;
    return children_.empty() ? Status() : children_[0]->Open();
  }
  Result<RowBatch*> DoNext() override {
    while (current_ < children_.size()) {
      CELLAR_TRY_ASSIGN(RowBatch * batch, children_[current_]->Next());
      if (batch != nullptr) return batch;
      if (++current_ < children_.size()) CELLAR_TRY(children_[current_]->Open());
    }
    return nullptr;
  }

 private:
  std::vector<OperatorPtr> children_;
  size_t current_ = 0;
};

std::vector<const ColumnVector*> AllColumns(const RowBatch& batch) {
  std::vector<const ColumnVector*> columns;
  for (const ColumnVector& column : batch.columns()) columns.push_back(&column);
  return columns;
}

// Counts how often each distinct row comes on either side, then emits by the operation's rule.
class SetOperationOperator : public Operator {
 public:
  SetOperationOperator(const PlanNode& node, std::vector<OperatorPtr> children, ExecState* state)
      : Operator(node, state), children_(std::move(children)) {}

 protected:
  Status DoOpen() override {
    table_.Reset(TypesOf(node_.output));
    counts_.clear();
    next_ = 0;
    given_ = 0;
    for (size_t side = 0; side < children_.size(); ++side) CELLAR_TRY(Count(side));
    return Status();
  }
  Result<RowBatch*> DoNext() override {
    rows_.clear();
    for (size_t steps = 0; next_ < counts_.size() && rows_.size() < kBatchRows; ++steps) {
      if (steps % kStepsBetweenPolls == 0) CELLAR_TRY(state_.CheckCancel());
      const uint64_t copies = CopiesOf(counts_[next_]);
      const uint64_t more = std::min<uint64_t>(copies - given_, kBatchRows - rows_.size());
      rows_.insert(rows_.end(), more, next_);
      given_ += more;
      if (given_ < copies) break;
      ++next_;
      given_ = 0;
    }
    if (rows_.empty()) return nullptr;
    out_.columns().resize(table_.keys().num_columns());
    for (size_t c = 0; c < table_.keys().num_columns(); ++c) {
      GatherColumn(table_.keys().column(c), rows_.data(), rows_.size(), &out_.column(c));
    }
    out_.SetSize(rows_.size());
    return &out_;
  }

 private:
  struct Counts {
    uint64_t left = 0, right = 0;
  };
  uint64_t CopiesOf(const Counts& counts) const {
    const auto& set = node_.As<SetOperationNode>();
    const uint64_t left = counts.left, right = counts.right;
    switch (set.operation) {
      case SetOperationNode::Kind::kUnion: return set.all ? left + right : 1;
      case SetOperationNode::Kind::kIntersect:
        return set.all ? std::min(left, right) : (left > 0 && right > 0);
      case SetOperationNode::Kind::kExcept:
        return set.all ? left - std::min(left, right) : (left > 0 && right == 0);
    }
    return 0;
  }
  Status Count(size_t side) {
    CELLAR_TRY(children_[side]->Open());
    while (true) {
      CELLAR_TRY_ASSIGN(RowBatch * batch, children_[side]->Next());
      if (batch == nullptr) return Status();
      ids_.resize(batch->size());
      table_.FindOrInsert(AllColumns(*batch), batch->size(), ids_.data());
      counts_.resize(table_.size());
      for (uint32_t id : ids_) ++(side == 0 ? counts_[id].left : counts_[id].right);
      CELLAR_TRY(
          state_.CheckMemory(table_.footprint_bytes() + counts_.capacity() * sizeof(Counts)));
    }
  }

  std::vector<OperatorPtr> children_;
  KeyTable table_;
  CountedVector<Counts> counts_;      // by id
  std::vector<uint32_t> rows_, ids_;  // of a batch
  uint32_t next_ = 0;                 // id
  uint64_t given_ = 0;                // copies of it
  RowBatch out_;
};

// Rows of the first term, then, again and again, those that the second makes of the last ones. Each
// round is computed when the rows before it have been taken: who needs few stops the recursion.
class RecursiveUnionOperator : public Operator {
 public:
  RecursiveUnionOperator(const PlanNode& node, std::vector<OperatorPtr> children, ExecState* state)
      : Operator(node, state), children_(std::move(children)), types_(TypesOf(node.output)) {}

 protected:
  Status DoOpen() override {
    seen_.Reset(types_);
    work_.Reset(types_);
    next_ = 0;
    begun_ = false;
    return Status();
  }
  Result<RowBatch*> DoNext() override {
    const auto& recursive = node_.As<RecursiveUnionNode>();
    while (true) {
      if (RowBatch* out = EmitChunk(work_, nullptr, &next_, &out_); out != nullptr) return out;
      if (begun_ && work_.size() == 0) return nullptr;
      found_.Reset(types_);
      if (begun_) state_.work_tables[recursive.work_table] = &work_;
      Status status = Collect(children_[begun_ ? 1 : 0].get(), recursive.all, &found_);
      state_.work_tables[recursive.work_table] = nullptr;
      CELLAR_TRY(std::move(status));
      begun_ = true;
      std::swap(work_, found_);
      next_ = 0;
    }
  }

 private:
  Status Collect(Operator* child, bool all, RowBatch* rows) {
    CELLAR_TRY(child->Open());
    while (true) {
      CELLAR_TRY_ASSIGN(RowBatch * batch, child->Next());
      if (batch == nullptr) return Status();
      if (!all) {
        ids_.resize(batch->size());
        fresh_.resize(batch->size());
        seen_.FindOrInsert(AllColumns(*batch), batch->size(), ids_.data(), fresh_.data());
        kept_.clear();
        for (uint32_t i = 0; i < batch->size(); ++i) {
          if (fresh_[i]) kept_.push_back(i);
        }
        batch->Keep(kept_);
      }
      rows->AppendAll(*batch);
      CELLAR_TRY(state_.CheckMemory(work_.footprint_bytes() + rows->footprint_bytes() +
                                    (all ? 0 : seen_.footprint_bytes())));
    }
  }

  std::vector<OperatorPtr> children_;
  std::vector<Type> types_;
  KeyTable seen_;          // of a UNION that is not ALL
  RowBatch work_, found_;  // rows of the last round, and of the one being computed
  size_t next_ = 0;        // of work_, to give
  bool begun_ = false;     // the first term has run
  RowBatch out_;
  std::vector<uint32_t> ids_, kept_;
  std::vector<uint8_t> fresh_;
};

}  // namespace

Result<OperatorPtr> BuildSetOperation(const PlanNode& node, std::vector<OperatorPtr> children,
                                      ExecState* state) {
  switch (node.kind) {
    case PlanKind::kAppend:
      return OperatorPtr(std::make_unique<AppendOperator>(node, std::move(children), state));
    case PlanKind::kSetOperation:
      return OperatorPtr(std::make_unique<SetOperationOperator>(node, std::move(children), state));
    default:
      return OperatorPtr(
          std::make_unique<RecursiveUnionOperator>(node, std::move(children), state));
  }
}

}  // namespace cellar::sql::exec
