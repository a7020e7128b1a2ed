#include "cellar/sql/exec/modify.h"

#include <algorithm>

#include "cellar/sql/exec/foreign_keys.h"

namespace cellar::sql::exec {
namespace {

const std::vector<CheckExpr> kNoChecks;

bool Modifies(const PlanNode& node) {
  return node.kind == PlanKind::kInsert || node.kind == PlanKind::kUpdate ||
         node.kind == PlanKind::kDelete;
}

// May a row be met twice, or have been changed by another part of the statement?
bool MayRepeatRows(const PlanNode& node, const Plan& plan) {
  for (const PlanPtr& cte : plan.ctes) {
    if (Modifies(*cte)) return true;
  }
  if (node.children.empty()) return false;
  const PlanNode* child = node.children[0].get();
  while (child->kind == PlanKind::kFilter || child->kind == PlanKind::kProject ||
         child->kind == PlanKind::kLockRows) {
    child = child->children[0].get();
  }
  return child->kind != PlanKind::kScan;
}

}  // namespace

ModifyOperator::ModifyOperator(const PlanNode& node, OperatorPtr child,
                               const catalog::TablePtr& table, const std::vector<CheckExpr>& checks,
                               bool returning, const std::vector<ExprPtr>& returning_exprs,
                               ExecState* state)
    : Operator(node, state),
      child_(std::move(child)),
      table_(table),
      returning_(returning),
      returning_exprs_(returning_exprs),
      returning_types_(TypesOf(returning_exprs)),
      width_(LivingColumns(*table).size()),
      checks_(table, checks),
      may_repeat_(MayRepeatRows(node, *state->plan)) {}

Status ModifyOperator::DoOpen() {
  done_ = false;
  next_ = 0;
  input_ = nullptr;
  results_.Reset(returning_types_);
  return child_->Open();
}

Result<RowBatch*> ModifyOperator::DoNext() {
  if (!done_) {
    CELLAR_TRY(CountReads([this] { return Run(); }));
    done_ = true;
  }
  if (!returning_) return nullptr;
  return EmitChunk(results_, nullptr, &next_, &out_);
}

Result<RowBatch*> ModifyOperator::NextInput(size_t most) {
  most = state_.RowByRow(node_) ? 1 : std::min(most, state_.env.batch_rows);
  if (input_ != nullptr && input_next_ < input_->size()) {
    return EmitChunk(*input_, nullptr, &input_next_, &part_, most);
  }
  CELLAR_TRY(state_.CheckCancel());
  input_next_ = 0;
  CELLAR_TRY_ASSIGN(input_, child_->Next());
  if (input_ == nullptr) return nullptr;
  if (input_->size() > most) return EmitChunk(*input_, nullptr, &input_next_, &part_, most);
  input_next_ = input_->size();
  return input_;
}

Status ModifyOperator::Return(const RowBatch& rows) {
  if (&node_ == state_.plan->root.get()) state_.rows_affected += rows.size();
  if (!returning_) return Status();
  arena_.Reset();
  context().set_arena(&arena_);
  CELLAR_TRY(returning_exprs_.Eval(rows, context()));
  RowBatch values;
  values.columns().resize(returning_exprs_.size());
  for (size_t c = 0; c < returning_exprs_.size(); ++c) {
    CopyColumn(*returning_exprs_.columns()[c], rows.size(), &values.column(c));
  }
  values.SetSize(rows.size());
  results_.AppendAll(values);
  return state_.CheckMemory(results_.footprint_bytes());
}

RowBatch ModifyOperator::FirstColumns(const RowBatch& batch) const {
  RowBatch rows;
  rows.columns().resize(width_);
  for (size_t c = 0; c < width_; ++c) CopyColumn(batch.column(c), batch.size(), &rows.column(c));
  rows.SetSize(batch.size());
  return rows;
}

Status ModifyOperator::KeepFirst(int row_ref, RowBatch* batch) {
  if (!may_repeat_) return Status();
  const std::span refs(batch->column(row_ref).bytes(), batch->size());
  CELLAR_TRY(WroteAlready(refs, &wrote_));
  // What this batch changes is not written yet.
  seen_.clear();
  kept_.clear();
  for (uint32_t i = 0; i < refs.size(); ++i) {
    if (!wrote_[i] && seen_.insert(refs[i]).second) kept_.push_back(i);
  }
  batch->Keep(kept_);
  return Status();
}

namespace {

class UpdateOperator : public ModifyOperator {
 public:
  UpdateOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : ModifyOperator(node, std::move(child), node.As<UpdateNode>().table,
                       node.As<UpdateNode>().checks, node.As<UpdateNode>().returning,
                       node.As<UpdateNode>().returning_exprs, state),
        update_(node.As<UpdateNode>()) {
    for (const auto& [column, expr] : update_.assignments) assignments_.emplace_back(expr.get());
    FindAssignedKeys();
  }

 protected:
  Status Run() override {
    moved_ = RowBatch();
    ReferenceChecks references(table_, update_.foreign_keys, &state_);
    std::optional<ReferencedChecks> referenced;
    if (!update_.referenced_by.empty()) referenced.emplace(table_, &state_);
    while (true) {
      CELLAR_TRY_ASSIGN(RowBatch * batch, NextInput());
      if (batch == nullptr) break;
      CELLAR_TRY(KeepFirst(update_.row_ref, batch));
      if (batch->size() == 0) continue;
      values_arena_.Reset();
      context().set_arena(&values_arena_);
      RowBatch old_rows = FirstColumns(*batch);
      RowBatch new_rows = FirstColumns(*batch);
      for (size_t i = 0; i < assignments_.size(); ++i) {
        CELLAR_TRY_ASSIGN(
            const ColumnVector* values,
            assignments_[i].Eval(*batch, Selection{nullptr, batch->size()}, context()));
        CopyColumn(*values, batch->size(), &new_rows.column(update_.assignments[i].first));
      }
      const std::string_view* refs = batch->column(update_.row_ref).bytes();
      if (!assigned_keys_.empty())
        CELLAR_TRY(RaiseLocks({refs, batch->size()}, old_rows, new_rows));
      CELLAR_TRY(Check(new_rows, [&](size_t rows) {
        CELLAR_TRY(Write({refs, rows}, FirstRows(old_rows, rows), FirstRows(new_rows, rows)));
        return WriteMoved();
      }));
      CELLAR_TRY(Write({refs, batch->size()}, old_rows, new_rows));
      CELLAR_TRY(references.Add(new_rows));
      if (referenced) referenced->AddUpdated(old_rows, new_rows);
      for (size_t c = width_; returning_ && c < batch->num_columns(); ++c) {
        new_rows.columns().emplace_back();
        CopyColumn(batch->column(c), batch->size(), &new_rows.columns().back());
      }
      CELLAR_TRY(Return(new_rows));
    }
    CELLAR_TRY(WriteMoved());
    CELLAR_TRY(references.Finish());
    return referenced ? referenced->Finish() : Status();
  }

 private:
  // Assigned columns by which other tables may refer to rows, as positions of living columns.
  void FindAssignedKeys() {
    const std::vector<catalog::ColumnId> columns = LivingColumns(*table_);
    for (const catalog::IndexDescriptor& index : table_->indexes) {
      if (!index.unique || !index.predicate.empty()) continue;
      for (const catalog::IndexColumn& key : index.key) {
        for (const auto& [position, value] : update_.assignments) {
          if (columns[static_cast<size_t>(position)] == key.column && key.expression.empty()) {
            assigned_keys_.push_back(position);
          }
        }
      }
    }
  }

  // Rows are locked as for a change that leaves their keys: whoever refers to one need not wait.
  // Where a key changes after all, he must.
  Status RaiseLocks(std::span<const std::string_view> refs, const RowBatch& old_rows,
                    const RowBatch& new_rows) {
    std::vector<std::string_view> raised;
    for (size_t row = 0; row < refs.size(); ++row) {
      const bool same = std::all_of(assigned_keys_.begin(), assigned_keys_.end(), [&](int column) {
        const ColumnVector &before = old_rows.column(column), &after = new_rows.column(column);
        if (before.IsNull(row) || after.IsNull(row)) return before.IsNull(row) && after.IsNull(row);
        return CompareDatums(before.Get(row), after.Get(row), before.type()) == 0;
      });
      if (!same) raised.push_back(refs[row]);
    }
    if (raised.empty()) return Status();
    // Nobody can have changed what is locked.
    std::vector<table::RowLockOutcome> outcomes;
    kv::ReadViewPtr newest;
    return state_.access().LockRows(*table_, raised, LockSpecOf({}), state_.env.view.get(),
                                    &outcomes, &newest);
  }

  // Rows that take unique keys which others still have wait until all have been met.
  Status Write(std::span<const std::string_view> refs, const RowBatch& old_rows,
               const RowBatch& new_rows) {
    CELLAR_TRY(state_.access().Update(table_, refs, old_rows, new_rows, &set_aside_));
    places_.clear();
    for (uint32_t i = 0; i < set_aside_.size(); ++i) {
      if (set_aside_[i]) places_.push_back(i);
    }
    if (places_.empty()) return Status();
    if (moved_.size() == 0) moved_.Reset(LivingTypes(*table_));
    moved_.AppendRows(new_rows, places_);
    if (moved_.size() >= next_try_) CELLAR_TRY(WriteFree());
    return state_.CheckMemory(moved_.footprint_bytes());
  }

  // Of the rows that wait, those whose keys were left meanwhile: where all move the same way few
  // wait long. Not before they are twice as many as were left the last time, so that each is asked
  // for a few times.
  Status WriteFree() {
    std::vector<uint8_t> put;
    RowBatch part, left;
    left.Reset(LivingTypes(*table_));
    for (size_t next = 0; EmitChunk(moved_, nullptr, &next, &part) != nullptr;) {
      CELLAR_TRY(state_.CheckCancel());
      CELLAR_TRY(state_.access().PutMoved(table_, &part, &put));
      places_.clear();
      for (uint32_t i = 0; i < put.size(); ++i) {
        if (!put[i]) places_.push_back(i);
      }
      left.AppendRows(part, places_);
    }
    moved_ = std::move(left);
    next_try_ = std::max(kLeastTried, 2 * moved_.size());
    return Status();
  }

  // Unique keys hold at the end of the statement, however many batches it took.
  Status WriteMoved() {
    if (moved_.size() == 0) return Status();
    RowBatch part;
    for (size_t next = 0; EmitChunk(moved_, nullptr, &next, &part) != nullptr;) {
      CELLAR_TRY(state_.CheckCancel());
      CELLAR_TRY(state_.access().PutMoved(table_, &part));
    }
    moved_ = RowBatch();
    return Status();
  }

  const UpdateNode& update_;
  std::vector<Evaluator> assignments_;
  std::vector<int> assigned_keys_;
  Arena values_arena_;
  static constexpr size_t kLeastTried = kBatchRows;
  RowBatch moved_;
  size_t next_try_ = kLeastTried;
  std::vector<uint8_t> set_aside_;
  std::vector<uint32_t> places_;
};

class DeleteOperator : public ModifyOperator {
 public:
  DeleteOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : ModifyOperator(node, std::move(child), node.As<DeleteNode>().table, kNoChecks,
                       node.As<DeleteNode>().returning, node.As<DeleteNode>().returning_exprs,
                       state),
        delete_(node.As<DeleteNode>()) {}

 protected:
  Status Run() override {
    std::optional<ReferencedChecks> referenced;
    if (!delete_.referenced_by.empty()) referenced.emplace(table_, &state_);
    while (true) {
      CELLAR_TRY_ASSIGN(RowBatch * batch, NextInput());
      if (batch == nullptr) break;
      CELLAR_TRY(KeepFirst(delete_.row_ref, batch));
      if (batch->size() == 0) continue;
      RowBatch old_rows = FirstColumns(*batch);
      const std::string_view* refs = batch->column(delete_.row_ref).bytes();
      CELLAR_TRY(state_.access().Delete(table_, {refs, batch->size()}, old_rows));
      if (referenced) referenced->AddDeleted(old_rows);
      CELLAR_TRY(Return(*batch));
    }
    return referenced ? referenced->Finish() : Status();
  }

 private:
  const DeleteNode& delete_;
};

}  // namespace

Result<OperatorPtr> BuildModify(const PlanNode& node, OperatorPtr child, ExecState* state) {
  switch (node.kind) {
    case PlanKind::kInsert: return BuildInsert(node, std::move(child), state);
    case PlanKind::kUpdate:
      return OperatorPtr(std::make_unique<UpdateOperator>(node, std::move(child), state));
    default: return OperatorPtr(std::make_unique<DeleteOperator>(node, std::move(child), state));
  }
}

}  // namespace cellar::sql::exec
