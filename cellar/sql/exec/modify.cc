// INSERT, UPDATE, DELETE. All the work happens in the first call of Next; RETURNING rows are kept
// until asked for.
#include <algorithm>
#include <unordered_set>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/exec/foreign_keys.h"
#include "cellar/sql/exec/operator.h"
#include "cellar/sql/exec/row_checks.h"

namespace cellar::sql::exec {
namespace {

const std::vector<CheckExpr> kNoChecks;

class ModifyOperator : public Operator {
 public:
  ModifyOperator(const PlanNode& node, OperatorPtr child, const catalog::TablePtr& table,
                 const std::vector<CheckExpr>& checks, bool returning,
                 const std::vector<ExprPtr>& returning_exprs, ExecState* state)
      : Operator(node, state),
        child_(std::move(child)),
        table_(table),
        returning_(returning),
        returning_exprs_(returning_exprs),
        returning_types_(TypesOf(returning_exprs)),
        width_(LivingColumns(*table).size()),
        checks_(table, checks) {}

 protected:
  Status DoOpen() override {
    done_ = false;
    next_ = 0;
    results_.Reset(returning_types_);
    return child_->Open();
  }
  Result<RowBatch*> DoNext() override {
    if (!done_) {
      CELLAR_TRY(CountReads([this] { return Run(); }));
      done_ = true;
    }
    if (!returning_) return nullptr;
    return EmitChunk(results_, nullptr, &next_, &out_);
  }
  virtual Status Run() = 0;

  // Looks at NOT NULL and CHECK of rows that `write` will write. A row that breaks them is only met
  // once those before it are written: one of them may break a unique constraint.
  template <typename Write>
  Status Check(const RowBatch& rows, Write&& write) {
    Status broken;
    CELLAR_TRY_ASSIGN(const size_t good, checks_.FirstBroken(rows, &state_, &broken));
    if (good == rows.size()) return Status();
    if (good > 0) CELLAR_TRY(write(good));
    if (!broken.ok()) return broken;
    CELLAR_TRY(write(good + 1));
    return InternalError("a NULL in a column that is NOT NULL was written");
  }

  // Appends the RETURNING expressions over `rows`.
  Status Return(const RowBatch& rows) {
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

  // The first `width_` columns, borrowed.
  RowBatch FirstColumns(const RowBatch& batch) {
    RowBatch rows;
    rows.columns().resize(width_);
    for (size_t c = 0; c < width_; ++c) CopyColumn(batch.column(c), batch.size(), &rows.column(c));
    rows.SetSize(batch.size());
    return rows;
  }

  OperatorPtr child_;
  catalog::TablePtr table_;
  bool returning_;
  ExprList returning_exprs_;
  std::vector<Type> returning_types_;
  size_t width_;  // living columns
  Arena arena_;

 private:
  RowChecks checks_;
  bool done_ = false;
  size_t next_ = 0;
  RowBatch results_, out_;
};

class InsertOperator : public ModifyOperator {
 public:
  InsertOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : ModifyOperator(node, std::move(child), node.As<InsertNode>().table,
                       node.As<InsertNode>().checks, node.As<InsertNode>().returning,
                       node.As<InsertNode>().returning_exprs, state),
        insert_(node.As<InsertNode>()) {
    for (const auto& [column, expr] : insert_.on_conflict.assignments)
      assignments_.emplace_back(expr.get());
    if (insert_.on_conflict.where) where_.emplace(insert_.on_conflict.where.get());
  }

 protected:
  Status Run() override {
    ReferenceChecks references(table_, insert_.foreign_keys, &state_);
    ReferencedChecks referenced(table_, &state_);
    touched_.clear();
    table::ConflictPolicy policy;
    policy.indexes = insert_.on_conflict.arbiters;
    if (insert_.on_conflict.kind == OnConflict::Kind::kNothing)
      policy.kind = table::ConflictPolicy::Kind::kSkip;
    if (insert_.on_conflict.kind == OnConflict::Kind::kUpdate)
      policy.kind = table::ConflictPolicy::Kind::kReport;
    while (true) {
      CELLAR_TRY(state_.CheckCancel());
      CELLAR_TRY_ASSIGN(RowBatch * batch, child_->Next());
      if (batch == nullptr) break;
      table::InsertOutcome outcome;
      CELLAR_TRY(Check(*batch, [&](size_t rows) {
        RowBatch before = FirstRows(*batch, rows);
        return state_.access().Insert(table_, &before, policy, &outcome);
      }));
      CELLAR_TRY(state_.access().Insert(table_, batch, policy, &outcome));
      RowBatch excluded;
      if (policy.kind == table::ConflictPolicy::Kind::kReport)
        excluded = Conflicting(*batch, outcome);
      if (policy.kind != table::ConflictPolicy::Kind::kError) {
        std::vector<uint32_t> kept;
        for (uint32_t i = 0; i < batch->size(); ++i) {
          if (outcome.inserted[i]) kept.push_back(i);
        }
        batch->Keep(kept);
      }
      if (batch->size() > 0) {
        CELLAR_TRY(references.Add(*batch));
        CELLAR_TRY(Return(*batch));
      }
      if (excluded.size() > 0)
        CELLAR_TRY(UpdateConflicting(excluded, outcome, &references, &referenced));
    }
    CELLAR_TRY(references.Finish());
    return referenced.Finish();
  }

 private:
  RowBatch Conflicting(const RowBatch& batch, const table::InsertOutcome& outcome) {
    std::vector<uint32_t> rows;
    for (uint32_t i = 0; i < batch.size(); ++i) {
      if (!outcome.inserted[i]) rows.push_back(i);
    }
    RowBatch excluded;
    excluded.columns().resize(width_);
    for (size_t c = 0; c < width_; ++c)
      GatherColumn(batch.column(c), rows.data(), rows.size(), &excluded.column(c));
    excluded.SetSize(rows.size());
    return excluded;
  }

  Status UpdateConflicting(const RowBatch& excluded, const table::InsertOutcome& outcome,
                           ReferenceChecks* references, ReferencedChecks* referenced) {
    std::vector<std::string_view> refs;
    for (size_t i = 0; i < outcome.inserted.size(); ++i) {
      if (outcome.inserted[i]) continue;
      if (outcome.conflicting_ref[i].empty()) return SecondTime();
      refs.push_back(outcome.conflicting_ref[i]);
    }
    RowBatch existing;
    std::vector<uint8_t> found;
    CELLAR_TRY(state_.access().Fetch(table_, refs, LivingColumns(*table_), &existing, &found));
    if (existing.size() != excluded.size()) {
      return SqlError(Code::kConflict, sqlstate::kSerializationFailure,
                      "could not serialize access due to concurrent update");
    }
    RowBatch both;
    both.columns().resize(2 * width_);
    for (size_t c = 0; c < width_; ++c) {
      CopyColumn(existing.column(c), existing.size(), &both.column(c));
      CopyColumn(excluded.column(c), excluded.size(), &both.column(width_ + c));
    }
    both.SetSize(existing.size());
    arena_.Reset();
    context().set_arena(&arena_);
    std::vector<uint32_t> passing;
    if (where_) {
      CELLAR_TRY(where_->Filter(both, Selection{nullptr, both.size()}, context(), &passing));
    }
    // A row that this command has changed is in the way whatever WHERE says of it now.
    for (uint32_t i = 0, next = 0; i < refs.size(); ++i) {
      const std::string ref(refs[i]);
      if (touched_.count(ref) != 0) return SecondTime();
      const bool passes = !where_ || (next < passing.size() && passing[next] == i);
      if (passes) touched_.insert(ref);
      if (where_ && passes) ++next;
    }
    if (where_) {
      both.Keep(passing);
      std::vector<std::string_view> kept;
      for (uint32_t row : passing) kept.push_back(refs[row]);
      refs = std::move(kept);
    }
    if (both.size() == 0) return Status();
    RowBatch old_rows = FirstColumns(both);
    RowBatch new_rows = FirstColumns(both);
    for (size_t i = 0; i < assignments_.size(); ++i) {
      CELLAR_TRY_ASSIGN(const ColumnVector* values,
                        assignments_[i].Eval(both, Selection{nullptr, both.size()}, context()));
      CopyColumn(*values, both.size(), &new_rows.column(insert_.on_conflict.assignments[i].first));
    }
    // The assigned values live in arena_; the checks and RETURNING reuse it.
    RowBatch stored;
    stored.Reset(LivingTypes(*table_));
    stored.AppendAll(new_rows);
    CELLAR_TRY(Check(stored, [&](size_t rows) {
      return state_.access().Update(table_, {refs.data(), rows}, FirstRows(old_rows, rows),
                                    FirstRows(stored, rows));
    }));
    CELLAR_TRY(state_.access().Update(table_, refs, old_rows, stored));
    CELLAR_TRY(references->Add(stored));
    if (!referenced->empty()) referenced->AddUpdated(old_rows, stored);
    if (&node_ == state_.plan->root.get()) state_.rows_replaced += stored.size();
    return Return(stored);
  }

  static Status SecondTime() {
    return SqlError(Code::kInvalid, sqlstate::kCardinalityViolation,
                    "ON CONFLICT DO UPDATE command cannot affect row a second time")
        .WithHint(
            "Ensure that no rows proposed for insertion within the same command have duplicate "
            "constrained values.");
  }

  const InsertNode& insert_;
  std::vector<Evaluator> assignments_;
  std::optional<Evaluator> where_;
  std::unordered_set<std::string> touched_;
};

// Drops rows whose target was met before: a join may reach one row twice, and only the first
// counts.
class FirstOfEach {
 public:
  explicit FirstOfEach(bool needed) : needed_(needed) {}
  void Keep(int row_ref, RowBatch* batch) {
    if (!needed_) return;
    rows_.clear();
    for (uint32_t i = 0; i < batch->size(); ++i) {
      if (seen_.insert(std::string(batch->column(row_ref).bytes()[i])).second) rows_.push_back(i);
    }
    batch->Keep(rows_);
  }

 private:
  bool needed_;
  std::unordered_set<std::string> seen_;
  std::vector<uint32_t> rows_;
};

bool MayRepeatRows(const PlanNode& child) {
  const PlanNode* node = &child;
  while (node->kind == PlanKind::kFilter || node->kind == PlanKind::kProject)
    node = node->children[0].get();
  return node->kind != PlanKind::kScan;
}

class UpdateOperator : public ModifyOperator {
 public:
  UpdateOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : ModifyOperator(node, std::move(child), node.As<UpdateNode>().table,
                       node.As<UpdateNode>().checks, node.As<UpdateNode>().returning,
                       node.As<UpdateNode>().returning_exprs, state),
        update_(node.As<UpdateNode>()) {
    for (const auto& [column, expr] : update_.assignments) assignments_.emplace_back(expr.get());
    for (const catalog::IndexDescriptor& index : table_->indexes) at_end_ |= index.deferrable;
  }

 protected:
  Status Run() override {
    refs_kept_.clear();
    old_kept_ = RowBatch();
    new_kept_ = RowBatch();
    ReferenceChecks references(table_, update_.foreign_keys, &state_);
    const bool is_referenced = !update_.referenced_by.empty();
    std::optional<ReferencedChecks> referenced;
    if (is_referenced) referenced.emplace(table_, &state_);
    FirstOfEach first(MayRepeatRows(*node_.children[0]));
    while (true) {
      CELLAR_TRY(state_.CheckCancel());
      CELLAR_TRY_ASSIGN(RowBatch * batch, child_->Next());
      if (batch == nullptr) break;
      first.Keep(update_.row_ref, batch);
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
      CELLAR_TRY(Check(new_rows, [&](size_t rows) {
        return state_.access().Update(table_, {refs, rows}, FirstRows(old_rows, rows),
                                      FirstRows(new_rows, rows));
      }));
      if (at_end_) {
        CELLAR_TRY(Keep({refs, batch->size()}, old_rows, new_rows));
      } else {
        CELLAR_TRY(state_.access().Update(table_, {refs, batch->size()}, old_rows, new_rows));
      }
      CELLAR_TRY(references.Add(new_rows));
      if (referenced) referenced->AddUpdated(old_rows, new_rows);
      for (size_t c = width_; returning_ && c < batch->num_columns(); ++c) {
        new_rows.columns().emplace_back();
        CopyColumn(batch->column(c), batch->size(), &new_rows.columns().back());
      }
      CELLAR_TRY(Return(new_rows));
    }
    CELLAR_TRY(WriteKept());
    CELLAR_TRY(references.Finish());
    return referenced ? referenced->Finish() : Status();
  }

 private:
  Status Keep(std::span<const std::string_view> refs, const RowBatch& old_rows,
              const RowBatch& new_rows) {
    if (old_kept_.num_columns() == 0) {
      old_kept_.Reset(LivingTypes(*table_));
      new_kept_.Reset(LivingTypes(*table_));
    }
    for (std::string_view ref : refs) refs_kept_.emplace_back(ref);
    old_kept_.AppendAll(old_rows);
    new_kept_.AppendAll(new_rows);
    return state_.CheckMemory(old_kept_.footprint_bytes() + new_kept_.footprint_bytes());
  }

  Status WriteKept() {
    if (refs_kept_.empty()) return Status();
    const std::vector<std::string_view> refs(refs_kept_.begin(), refs_kept_.end());
    Status status = state_.access().Update(table_, refs, old_kept_, new_kept_);
    refs_kept_.clear();
    old_kept_ = RowBatch();
    new_kept_ = RowBatch();
    return status;
  }

  const UpdateNode& update_;
  // A deferrable unique constraint is looked at when all rows have moved: they are written
  // together.
  bool at_end_ = false;
  std::vector<std::string> refs_kept_;
  RowBatch old_kept_, new_kept_;
  std::vector<Evaluator> assignments_;
  Arena values_arena_;
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
    FirstOfEach first(MayRepeatRows(*node_.children[0]));
    while (true) {
      CELLAR_TRY(state_.CheckCancel());
      CELLAR_TRY_ASSIGN(RowBatch * batch, child_->Next());
      if (batch == nullptr) break;
      first.Keep(delete_.row_ref, batch);
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
    case PlanKind::kInsert:
      return OperatorPtr(std::make_unique<InsertOperator>(node, std::move(child), state));
    case PlanKind::kUpdate:
      return OperatorPtr(std::make_unique<UpdateOperator>(node, std::move(child), state));
    default: return OperatorPtr(std::make_unique<DeleteOperator>(node, std::move(child), state));
  }
}

}  // namespace cellar::sql::exec
