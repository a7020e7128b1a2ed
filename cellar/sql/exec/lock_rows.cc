// Row locks: taken once everything below has chosen a row, in the order in which rows come.
//
// Under READ COMMITTED a row may have changed between the statement's view and its lock. Then its
// newest version is what counts, if the query still chooses it: the plan below runs once more, with
// the locked tables' scans giving the newest versions of just these rows (ExecState::recheck), and
// everything else read at the statement's view. What comes out is matched with the rows as they
// were by the references of the locked rows and by the columns of the other relations, so that each
// row goes on with the partners that it was first joined with. (PostgreSQL's EvalPlanQual does the
// same a row at a time; see its README in src/backend/executor.)
#include <unordered_map>

#include "cellar/sql/exec/operator.h"

namespace cellar::sql::exec {

table::RowLockSpec LockSpecOf(RowLock lock) {
  static constexpr kv::LockMode kModes[] = {kv::kForKeyShare, kv::kForShare, kv::kForNoKeyUpdate,
                                            kv::kForUpdate};
  static constexpr kv::LockWait kWaits[] = {kv::LockWait::kBlock, kv::LockWait::kNoWait,
                                            kv::LockWait::kSkip};
  return {kModes[static_cast<size_t>(lock.mode)], kWaits[static_cast<size_t>(lock.wait)]};
}

namespace {

class LockRowsOperator : public Operator {
 public:
  LockRowsOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : Operator(node, state),
        lock_(node.As<LockRowsNode>()),
        child_(std::move(child)),
        types_(TypesOf(node.output)) {}

 protected:
  Status DoOpen() override {
    input_ = nullptr;
    next_ = 0;
    return child_->Open();
  }

  Result<RowBatch*> DoNext() override {
    const size_t most = lock_.one_by_one || state_.env.one_by_one ? 1 : state_.env.batch_rows;
    while (true) {
      if (input_ == nullptr || next_ >= input_->size()) {
        next_ = 0;
        CELLAR_TRY_ASSIGN(input_, child_->Next());
        if (input_ == nullptr) return nullptr;
      }
      RowBatch* rows = input_;
      if (next_ == 0 && input_->size() <= most) {
        next_ = input_->size();
      } else {
        rows = EmitChunk(*input_, nullptr, &next_, &part_, most);
      }
      CELLAR_TRY_ASSIGN(rows, Lock(rows));
      if (rows->size() != 0) return rows;
    }
  }

 private:
  // Locks the rows of a batch; those that are returned, as they are now.
  Result<RowBatch*> Lock(RowBatch* rows) {
    fate_.assign(rows->size(), table::RowLockOutcome::kLocked);
    kv::ReadViewPtr newest;
    bool all = true;
    for (const LockRowsNode::Target& target : lock_.targets) {
      // A row that was skipped for one table's sake is locked in none of the others.
      refs_.clear();
      places_.clear();
      const ColumnVector& column = rows->column(target.row_ref);
      for (uint32_t i = 0; i < rows->size(); ++i) {
        if (fate_[i] == table::RowLockOutcome::kSkipped || column.IsNull(i)) continue;
        refs_.push_back(column.bytes()[i]);
        places_.push_back(i);
      }
      kv::ReadViewPtr moved;
      CELLAR_TRY(state_.access().LockRows(*target.table, refs_, LockSpecOf(target.how),
                                          state_.env.view.get(), &outcomes_, &moved));
      if (moved != nullptr) newest = std::move(moved);
      for (size_t i = 0; i < places_.size(); ++i) {
        if (outcomes_[i] == table::RowLockOutcome::kLocked) continue;
        fate_[places_[i]] = outcomes_[i];
        all = false;
      }
    }
    if (all) return rows;
    fresh_.Reset(types_);
    places_.clear();
    std::vector<uint32_t> changed;
    for (uint32_t i = 0; i < rows->size(); ++i) {
      if (fate_[i] == table::RowLockOutcome::kLocked) places_.push_back(i);
      if (fate_[i] == table::RowLockOutcome::kChanged) changed.push_back(i);
    }
    if (changed.empty()) {
      rows->Keep(places_);
      return rows;
    }
    CELLAR_TRY(ReadAgain(*rows, changed, std::move(newest)));
    return Merge(*rows);
  }

  // All that comes out of the plan below for the newest versions of these rows, into fresh_.
  Status ReadAgain(const RowBatch& rows, std::span<const uint32_t> changed,
                   kv::ReadViewPtr newest) {
    if (again_ == nullptr) {
      CELLAR_TRY_ASSIGN(again_, Build(*lock_.children[0], &state_));
    }
    ExecState::Recheck recheck;
    recheck.view = std::move(newest);
    recheck.rows.resize(static_cast<size_t>(state_.plan->num_locks));
    std::vector<std::vector<std::string>> refs(lock_.targets.size());
    for (size_t t = 0; t < lock_.targets.size(); ++t) {
      const ColumnVector& column = rows.column(lock_.targets[t].row_ref);
      for (const uint32_t row : changed) {
        if (!column.IsNull(row)) refs[t].emplace_back(column.bytes()[row]);
      }
      std::sort(refs[t].begin(), refs[t].end());
      refs[t].erase(std::unique(refs[t].begin(), refs[t].end()), refs[t].end());
      recheck.rows[static_cast<size_t>(lock_.targets[t].lock)] = &refs[t];
    }
    // What loops around this one have put into their slots is for their own inner sides.
    const std::vector<Datum> slots = context().exec_parameters;
    const ExecState::Recheck* const outer = std::exchange(state_.recheck, &recheck);
    Status status = ReadAll(again_.get(), &state_, &fresh_);
    state_.recheck = outer;
    context().exec_parameters = slots;
    return status;
  }

  std::string KeyOf(const RowBatch& rows, uint32_t row) const {
    std::string key;
    for (const LockRowsNode::Target& target : lock_.targets) {
      const ColumnVector& column = rows.column(target.row_ref);
      const std::string_view ref = column.IsNull(row) ? std::string_view() : column.bytes()[row];
      key += std::to_string(ref.size());
      key += ':';
      key += ref;
    }
    return key;
  }

  bool SamePartners(const RowBatch& a, uint32_t row_a, const RowBatch& b, uint32_t row_b) const {
    return std::all_of(lock_.others.begin(), lock_.others.end(), [&](int place) {
      const ColumnVector &x = a.column(place), &y = b.column(place);
      if (x.IsNull(row_a) || y.IsNull(row_b)) return x.IsNull(row_a) && y.IsNull(row_b);
      return CompareDatums(x.Get(row_a), y.Get(row_b), WithoutCollation(x.type())) == 0;
    });
  }

  // The rows in their order: as they were, or as they are read again, if they are.
  RowBatch* Merge(const RowBatch& rows) {
    std::unordered_multimap<std::string, uint32_t> found;
    for (uint32_t i = 0; i < fresh_.size(); ++i) found.emplace(KeyOf(fresh_, i), i);
    out_.Reset(types_);
    for (uint32_t i = 0; i < rows.size(); ++i) {
      if (fate_[i] == table::RowLockOutcome::kLocked) out_.AppendRows(rows, {{i}});
      if (fate_[i] != table::RowLockOutcome::kChanged) continue;
      const auto [first, last] = found.equal_range(KeyOf(rows, i));
      for (auto at = first; at != last; ++at) {
        if (!SamePartners(rows, i, fresh_, at->second)) continue;
        out_.AppendRows(fresh_, {{at->second}});
        break;
      }
    }
    return &out_;
  }

  const LockRowsNode& lock_;
  OperatorPtr child_, again_;
  std::vector<Type> types_;
  RowBatch* input_ = nullptr;
  size_t next_ = 0;
  RowBatch part_, fresh_, out_;
  std::vector<std::string_view> refs_;
  std::vector<uint32_t> places_;
  std::vector<table::RowLockOutcome> outcomes_, fate_;
};

}  // namespace

OperatorPtr BuildLockRows(const PlanNode& node, OperatorPtr child, ExecState* state) {
  return std::make_unique<LockRowsOperator>(node, std::move(child), state);
}

}  // namespace cellar::sql::exec
