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
    rows_.clear();
    next_ = 0;
    for (size_t side = 0; side < children_.size(); ++side) CELLAR_TRY(Count(side));
    const auto& set = node_.As<SetOperationNode>();
    for (uint32_t id = 0; id < counts_.size(); ++id) {
      const uint64_t left = counts_[id].left, right = counts_[id].right;
      uint64_t copies = 0;
      switch (set.operation) {
        case SetOperationNode::Kind::kUnion: copies = set.all ? left + right : 1; break;
        case SetOperationNode::Kind::kIntersect:
          copies = set.all ? std::min(left, right) : (left > 0 && right > 0);
          break;
        case SetOperationNode::Kind::kExcept:
          copies = set.all ? left - std::min(left, right) : (left > 0 && right == 0);
          break;
      }
      rows_.insert(rows_.end(), copies, id);
    }
    return Status();
  }
  Result<RowBatch*> DoNext() override {
    if (next_ >= rows_.size()) return nullptr;
    const size_t count = std::min(kBatchRows, rows_.size() - next_);
    out_.columns().resize(table_.keys().num_columns());
    for (size_t c = 0; c < table_.keys().num_columns(); ++c) {
      GatherColumn(table_.keys().column(c), rows_.data() + next_, count, &out_.column(c));
    }
    out_.SetSize(count);
    next_ += count;
    return &out_;
  }

 private:
  struct Counts {
    uint64_t left = 0, right = 0;
  };
  Status Count(size_t side) {
    CELLAR_TRY(children_[side]->Open());
    while (true) {
      CELLAR_TRY_ASSIGN(RowBatch * batch, children_[side]->Next());
      if (batch == nullptr) return Status();
      CELLAR_TRY(state_.CheckCancel());
      ids_.resize(batch->size());
      table_.FindOrInsert(AllColumns(*batch), batch->size(), ids_.data());
      counts_.resize(table_.size());
      for (uint32_t id : ids_) ++(side == 0 ? counts_[id].left : counts_[id].right);
      CELLAR_TRY(state_.CheckMemory(table_.footprint_bytes()));
    }
  }

  std::vector<OperatorPtr> children_;
  KeyTable table_;
  std::vector<Counts> counts_;
  std::vector<uint32_t> rows_, ids_;
  size_t next_ = 0;
  RowBatch out_;
};

class RecursiveUnionOperator : public Operator {
 public:
  RecursiveUnionOperator(const PlanNode& node, std::vector<OperatorPtr> children, ExecState* state)
      : Operator(node, state), children_(std::move(children)) {}

 protected:
  Status DoOpen() override {
    const auto& recursive = node_.As<RecursiveUnionNode>();
    const std::vector<Type> types = TypesOf(node_.output);
    seen_.Reset(types);
    result_.Reset(types);
    RowBatch work, found;
    work.Reset(types);
    CELLAR_TRY(Collect(children_[0].get(), recursive.all, &work));
    while (work.size() > 0) {
      CELLAR_TRY(state_.CheckCancel());
      result_.rows().AppendAll(work);
      CELLAR_TRY(state_.CheckMemory(result_.rows().footprint_bytes()));
      state_.work_tables[recursive.work_table] = &work;
      found.Reset(types);
      Status status = Collect(children_[1].get(), recursive.all, &found);
      state_.work_tables[recursive.work_table] = nullptr;
      CELLAR_TRY(std::move(status));
      std::swap(work, found);
    }
    return Status();
  }
  Result<RowBatch*> DoNext() override { return result_.NextChunk(&out_); }

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
    }
  }

  std::vector<OperatorPtr> children_;
  KeyTable seen_;
  StoredRows result_;
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
