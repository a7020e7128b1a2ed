// INSERT with ON CONFLICT. Rows go into the table in the order in which they come, whatever becomes
// of each: RETURNING shows them so.
#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/exec/foreign_keys.h"
#include "cellar/sql/exec/modify.h"

namespace cellar::sql::exec {
namespace {

Status SecondTime() {
  return SqlError(Code::kInvalid, sqlstate::kCardinalityViolation,
                  "ON CONFLICT DO UPDATE command cannot affect row a second time")
      .WithHint(
          "Ensure that no rows proposed for insertion within the same command have duplicate "
          "constrained values.");
}

// May DO UPDATE change what decides whether later rows are in the way of something? Then it goes
// row by row. `c = excluded.c` changes nothing of an arbiter's key: it was found equal.
bool ChangesUniqueKeys(const InsertNode& insert, size_t width) {
  if (insert.on_conflict.kind != OnConflict::Kind::kUpdate) return false;
  const std::vector<catalog::ColumnId> columns = LivingColumns(*insert.table);
  const std::vector<catalog::IndexId>& arbiters = insert.on_conflict.arbiters;
  for (const catalog::IndexDescriptor& index : insert.table->indexes) {
    if (!index.unique) continue;
    const bool arbiter = arbiters.size() == 1 && arbiters.front() == index.id;
    if (!index.predicate.empty()) return true;
    for (const catalog::IndexColumn& key : index.key) {
      if (!key.expression.empty()) return true;
      for (const auto& [position, value] : insert.on_conflict.assignments) {
        if (columns[static_cast<size_t>(position)] != key.column) continue;
        const bool same =
            value->kind == ExprKind::kColumn && value->index == static_cast<int>(width) + position;
        if (!arbiter || !same) return true;
      }
    }
  }
  return false;
}

class InsertOperator : public ModifyOperator {
 public:
  InsertOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : ModifyOperator(node, std::move(child), node.As<InsertNode>().table,
                       node.As<InsertNode>().checks, node.As<InsertNode>().returning,
                       node.As<InsertNode>().returning_exprs, state),
        insert_(node.As<InsertNode>()),
        most_(ChangesUniqueKeys(insert_, width_) ? 1 : kBatchRows) {
    for (const auto& [column, expr] : insert_.on_conflict.assignments)
      assignments_.emplace_back(expr.get());
    if (insert_.on_conflict.where) where_.emplace(insert_.on_conflict.where.get());
  }

 protected:
  Status Run() override {
    ReferenceChecks references(table_, insert_.foreign_keys, &state_);
    ReferencedChecks referenced(table_, &state_);
    table::ConflictPolicy policy;
    policy.indexes = insert_.on_conflict.arbiters;
    if (insert_.on_conflict.kind == OnConflict::Kind::kNothing)
      policy.kind = table::ConflictPolicy::Kind::kSkip;
    if (insert_.on_conflict.kind == OnConflict::Kind::kUpdate)
      policy.kind = table::ConflictPolicy::Kind::kReport;
    while (true) {
      CELLAR_TRY_ASSIGN(RowBatch * batch, NextInput(most_));
      if (batch == nullptr) break;
      table::InsertOutcome outcome;
      CELLAR_TRY(Check(*batch, [&](size_t rows) {
        RowBatch before = FirstRows(*batch, rows);
        return state_.access().Insert(table_, &before, policy, &outcome);
      }));
      CELLAR_TRY(state_.access().Insert(table_, batch, policy, &outcome));
      Changed updated;
      if (policy.kind != table::ConflictPolicy::Kind::kError) {
        inserted_.clear();
        in_the_way_.clear();
        for (uint32_t i = 0; i < batch->size(); ++i) {
          (outcome.inserted[i] ? inserted_ : in_the_way_).push_back(i);
        }
        if (policy.kind == table::ConflictPolicy::Kind::kReport && !in_the_way_.empty()) {
          CELLAR_TRY(LockConflicting(*batch, policy, &outcome));
          CELLAR_TRY(UpdateConflicting(*batch, outcome, &references, &referenced, &updated));
        }
        batch->Keep(inserted_);
      }
      if (batch->size() > 0) CELLAR_TRY(references.Add(*batch));
      CELLAR_TRY(ReturnAll(*batch, updated));
    }
    CELLAR_TRY(references.Finish());
    return referenced.Finish();
  }

 private:
  // Rows that were changed instead of inserted, and which rows of the batch they stand for.
  struct Changed {
    RowBatch rows;
    std::vector<uint32_t> places;
  };

  // Locks what is in the way, as UPDATE does. A row that was changed or deleted while it was waited
  // for may be in the way no more, or another one: then it is asked once more.
  Status LockConflicting(const RowBatch& batch, const table::ConflictPolicy& policy,
                         table::InsertOutcome* outcome) {
    while (!in_the_way_.empty()) {
      std::vector<std::string_view> refs;
      for (uint32_t place : in_the_way_) {
        if (outcome->conflicting_ref[place].empty()) return SecondTime();
        refs.push_back(outcome->conflicting_ref[place]);
      }
      std::vector<table::RowLockOutcome> locked;
      kv::ReadViewPtr newest;
      CELLAR_TRY(state_.access().LockRows(*table_, refs, {kv::kForNoKeyUpdate}, nullptr, &locked,
                                          &newest));
      if (newest == nullptr) return Status();
      RowBatch again;
      again.columns().resize(width_);
      for (size_t c = 0; c < width_; ++c) {
        GatherColumn(batch.column(c), in_the_way_.data(), in_the_way_.size(), &again.column(c));
      }
      again.SetSize(in_the_way_.size());
      table::InsertOutcome now;
      CELLAR_TRY(state_.access().Insert(table_, &again, policy, &now));
      std::vector<uint32_t> still;
      for (size_t i = 0; i < in_the_way_.size(); ++i) {
        const uint32_t place = in_the_way_[i];
        if (now.inserted[i]) {
          inserted_.insert(std::lower_bound(inserted_.begin(), inserted_.end(), place), place);
          continue;
        }
        outcome->conflicting_ref[place] = now.conflicting_ref[i];
        still.push_back(place);
      }
      in_the_way_ = std::move(still);
    }
    return Status();
  }

  // in_the_way_ are the rows of the batch whose keys are there, locked.
  Status UpdateConflicting(const RowBatch& batch, const table::InsertOutcome& outcome,
                           ReferenceChecks* references, ReferencedChecks* referenced,
                           Changed* changed) {
    if (in_the_way_.empty()) return Status();
    std::vector<std::string_view> refs;
    for (uint32_t place : in_the_way_) {
      if (outcome.conflicting_ref[place].empty()) return SecondTime();
      refs.push_back(outcome.conflicting_ref[place]);
    }
    RowBatch existing;
    std::vector<uint8_t> found;
    CELLAR_TRY(state_.access().Fetch(table_, refs, LivingColumns(*table_), &existing, &found));
    if (existing.size() != refs.size()) {
      return SqlError(Code::kConflict, sqlstate::kSerializationFailure,
                      "could not serialize access due to concurrent update");
    }
    RowBatch both;
    both.columns().resize(2 * width_);
    for (size_t c = 0; c < width_; ++c) {
      CopyColumn(existing.column(c), existing.size(), &both.column(c));
      GatherColumn(batch.column(c), in_the_way_.data(), in_the_way_.size(),
                   &both.column(width_ + c));
    }
    both.SetSize(existing.size());
    arena_.Reset();
    context().set_arena(&arena_);
    std::vector<uint32_t> passing(refs.size());
    std::iota(passing.begin(), passing.end(), 0);
    if (where_) {
      passing.clear();
      CELLAR_TRY(where_->Filter(both, Selection{nullptr, both.size()}, context(), &passing));
    }
    CELLAR_TRY(CheckFirstTime(refs, passing));
    both.Keep(passing);
    if (both.size() == 0) return Status();
    std::vector<std::string_view> kept;
    for (uint32_t row : passing) {
      kept.push_back(refs[row]);
      changed->places.push_back(in_the_way_[row]);
    }
    const RowBatch old_rows = FirstColumns(both);
    RowBatch new_rows = FirstColumns(both);
    for (size_t i = 0; i < assignments_.size(); ++i) {
      CELLAR_TRY_ASSIGN(const ColumnVector* values,
                        assignments_[i].Eval(both, Selection{nullptr, both.size()}, context()));
      CopyColumn(*values, both.size(), &new_rows.column(insert_.on_conflict.assignments[i].first));
    }
    // The assigned values live in arena_; the checks and RETURNING reuse it.
    RowBatch& stored = changed->rows;
    stored.Reset(LivingTypes(*table_));
    stored.AppendAll(new_rows);
    CELLAR_TRY(Check(stored, [&](size_t rows) {
      return state_.access().Update(table_, {kept.data(), rows}, FirstRows(old_rows, rows),
                                    FirstRows(stored, rows));
    }));
    CELLAR_TRY(state_.access().Update(table_, kept, old_rows, stored));
    CELLAR_TRY(references->Add(stored));
    if (!referenced->empty()) referenced->AddUpdated(old_rows, stored);
    if (&node_ == state_.plan->root.get()) state_.rows_replaced += stored.size();
    return Status();
  }

  // No row in the way may be one that the statement has inserted or changed, whatever WHERE says of
  // it now; one that WHERE has left alone may be met again.
  Status CheckFirstTime(std::span<const std::string_view> refs, std::span<const uint32_t> passing) {
    CELLAR_TRY(WroteAlready(refs, &wrote_));
    std::unordered_set<std::string_view> changed;
    for (uint32_t i = 0, next = 0; i < refs.size(); ++i) {
      if (wrote_[i] || changed.contains(refs[i])) return SecondTime();
      if (next == passing.size() || passing[next] != i) continue;
      ++next;
      changed.insert(refs[i]);
    }
    return Status();
  }

  // `batch` holds the rows that were inserted, inserted_ says which ones they are.
  Status ReturnAll(const RowBatch& batch, const Changed& updated) {
    if (updated.places.empty()) return batch.size() > 0 ? Return(batch) : Status();
    if (batch.size() == 0) return Return(updated.rows);
    std::vector<uint32_t> order;
    for (uint32_t i = 0, k = 0; i < inserted_.size() || k < updated.places.size();) {
      const bool fresh =
          k == updated.places.size() || (i < inserted_.size() && inserted_[i] < updated.places[k]);
      order.push_back(fresh ? i++ : static_cast<uint32_t>(batch.size()) + k++);
    }
    RowBatch all, ordered;
    all.Reset(LivingTypes(*table_));
    all.AppendAll(batch);
    all.AppendAll(updated.rows);
    ordered.columns().resize(width_);
    for (size_t c = 0; c < width_; ++c)
      GatherColumn(all.column(c), order.data(), order.size(), &ordered.column(c));
    ordered.SetSize(order.size());
    return Return(ordered);
  }

  const InsertNode& insert_;
  const size_t most_;  // rows at once
  std::vector<Evaluator> assignments_;
  std::optional<Evaluator> where_;
  std::vector<uint32_t> inserted_, in_the_way_;  // of the batch
  std::vector<uint8_t> wrote_;
};

}  // namespace

Result<OperatorPtr> BuildInsert(const PlanNode& node, OperatorPtr child, ExecState* state) {
  return OperatorPtr(std::make_unique<InsertOperator>(node, std::move(child), state));
}

}  // namespace cellar::sql::exec
