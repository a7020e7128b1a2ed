// Joins. All three work alike: candidate pairs of row numbers for a run of left rows, the condition
// over the pairs, then what the join kind makes of the matches, then emission in chunks.
#include <algorithm>

#include "cellar/sql/exec/key_table.h"
#include "cellar/sql/exec/operator.h"

namespace cellar::sql::exec {
namespace {

// Pairs of row numbers; a right row of kNoRow is NULLs, as is a left one. Sorted by left row.
struct Pairs {
  CountedVector<uint32_t> left, right;
  void Add(uint32_t l, uint32_t r) {
    left.push_back(l);
    right.push_back(r);
  }
  void Clear() {
    left.clear();
    right.clear();
  }
  size_t size() const { return left.size(); }
};

class JoinOperator : public Operator {
 public:
  JoinOperator(const PlanNode& node, JoinKind kind, const ExprPtr& condition, ExecState* state)
      : Operator(node, state), kind_(kind) {
    if (condition) condition_.emplace(condition.get());
  }

 protected:
  void ResetPairs() {
    candidates_.Clear();
    matches_.Clear();
    next_ = 0;
    matched_before_ = false;
  }

  void Combine(const RowBatch& left, const RowBatch& right, const Pairs& pairs, size_t start,
               size_t count, bool with_right, RowBatch* out) {
    const size_t left_width = left.num_columns();
    out->columns().resize(left_width + (with_right ? right.num_columns() : 0));
    for (size_t c = 0; c < left_width; ++c) {
      GatherColumn(left.column(c), pairs.left.data() + start, count, &out->column(c));
    }
    for (size_t c = 0; with_right && c < right.num_columns(); ++c) {
      GatherColumn(right.column(c), pairs.right.data() + start, count,
                   &out->column(left_width + c));
    }
    out->SetSize(count);
  }

  // Moves the candidates that pass the condition into matches_, and finishes them by join kind for
  // the left rows [first, end). `goes_on`: there are more candidates of the last of these rows,
  // which the next call begins with; what becomes of a row without a match waits until then.
  // `matched_right` (FULL, RIGHT) is marked.
  Status Match(const RowBatch& left, const RowBatch& right, uint32_t first, uint32_t end,
               bool goes_on, CountedVector<uint8_t>* matched_right) {
    Pairs passing;
    if (!condition_) {
      passing = std::move(candidates_);
    } else {
      for (size_t start = 0; start < candidates_.size(); start += kBatchRows) {
        CELLAR_TRY(state_.CheckCancel());
        const size_t count = std::min(kBatchRows, candidates_.size() - start);
        Combine(left, right, candidates_, start, count, true, &scratch_);
        arena_.Reset();
        context().set_arena(&arena_);
        rows_.clear();
        if (!state_.RowByRow(node_)) {
          CELLAR_TRY(condition_->Filter(scratch_, Selection{nullptr, count}, context(), &rows_));
        } else {
          for (uint32_t row = 0; row < count; ++row) {
            CELLAR_TRY(condition_->Filter(scratch_, Selection{&row, 1}, context(), &rows_));
          }
        }
        for (uint32_t row : rows_)
          passing.Add(candidates_.left[start + row], candidates_.right[start + row]);
      }
    }
    candidates_.Clear();
    if (matched_right != nullptr) {
      for (uint32_t row : passing.right) (*matched_right)[row] = 1;
    }
    matches_.Clear();
    next_ = 0;
    if (kind_ == JoinKind::kInner || kind_ == JoinKind::kRight) {
      matches_ = std::move(passing);
      return Status();
    }
    size_t at = 0;
    for (uint32_t row = first; row < end; ++row) {
      const bool before = row == first && matched_before_;
      const bool matched = at < passing.size() && passing.left[at] == row;
      const bool ends = row + 1 < end || !goes_on;
      const bool lonely = ends && !matched && !before;
      if (kind_ == JoinKind::kSemi && matched && !before) matches_.Add(row, kNoRow);
      if (kind_ == JoinKind::kAnti && lonely) matches_.Add(row, kNoRow);
      const bool pads = kind_ == JoinKind::kLeft || kind_ == JoinKind::kFull;
      if (pads && lonely) matches_.Add(row, kNoRow);
      for (; at < passing.size() && passing.left[at] == row; ++at) {
        if (pads) matches_.Add(row, passing.right[at]);
      }
      if (!ends) {
        matched_before_ = before || matched;
        return Status();
      }
    }
    matched_before_ = false;
    return Status();
  }
  // Whether more candidates of the left row that Match left unfinished change nothing.
  bool Settled() const {
    return matched_before_ && (kind_ == JoinKind::kSemi || kind_ == JoinKind::kAnti);
  }

  // The next chunk of matches, or null.
  RowBatch* EmitMatches(const RowBatch& left, const RowBatch& right) {
    if (next_ >= matches_.size()) return nullptr;
    const size_t count = std::min(kBatchRows, matches_.size() - next_);
    const bool with_right = kind_ != JoinKind::kSemi && kind_ != JoinKind::kAnti;
    Combine(left, right, matches_, next_, count, with_right, &out_);
    next_ += count;
    return &out_;
  }

  JoinKind kind_;
  Pairs candidates_, matches_;
  size_t next_ = 0;
  bool matched_before_ = false;  // the left row that goes on, by what was seen of it

 private:
  std::optional<Evaluator> condition_;
  Arena arena_;
  RowBatch scratch_, out_;
  std::vector<uint32_t> rows_;
};

// The right side is run for each left row (LATERAL), or once and kept. Few kept rows are paired
// with several left rows at a time; many, and those of a LATERAL side, piece by piece.
class NestedLoopOperator : public JoinOperator {
 public:
  NestedLoopOperator(const PlanNode& node, std::vector<OperatorPtr> children, ExecState* state)
      : JoinOperator(node, node.As<NestedLoopNode>().join, node.As<NestedLoopNode>().condition,
                     state),
        left_(std::move(children[0])),
        right_(std::move(children[1])),
        slot_values_(node.As<NestedLoopNode>().slot_values),
        lateral_(!node.As<NestedLoopNode>().slots.empty()),
        keep_right_(!lateral_ && IsStable(*node.children[1], *state->plan)) {}

 protected:
  Status DoOpen() override {
    ResetPairs();
    batch_ = nullptr;
    row_ = 0;
    in_row_ = false;
    piece_ = &rows_;
    if (!lateral_ && !(keep_right_ && right_ready_)) {
      rows_.Reset(TypesOf(right_->node().output));
      CELLAR_TRY(ReadAll(right_.get(), &state_, &rows_));
      right_ready_ = true;
    }
    return left_->Open();
  }

  Result<RowBatch*> DoNext() override {
    while (true) {
      if (batch_ != nullptr) {
        if (RowBatch* out = EmitMatches(*batch_, *piece_); out != nullptr) return out;
      }
      if (batch_ == nullptr || row_ >= batch_->size()) {
        CELLAR_TRY_ASSIGN(batch_, left_->Next());
        if (batch_ == nullptr) return nullptr;
        row_ = 0;
        if (lateral_) {
          arena_.Reset();
          context().set_arena(&arena_);
          CELLAR_TRY(slot_values_.Eval(*batch_, context()));
        }
      }
      CELLAR_TRY(state_.CheckCancel());
      if (lateral_) {
        CELLAR_TRY(MatchLateral());
      } else if (rows_.size() > kBatchRows) {
        CELLAR_TRY(MatchPiece());
      } else {
        CELLAR_TRY(MatchRows());
      }
    }
  }

 private:
  // Several left rows with all right ones.
  Status MatchRows() {
    const uint32_t first = row_;
    while (row_ < batch_->size() &&
           (row_ == first || candidates_.size() + rows_.size() <= kBatchRows)) {
      for (uint32_t r = 0; r < rows_.size(); ++r) candidates_.Add(row_, r);
      ++row_;
    }
    return Match(*batch_, rows_, first, row_, false, nullptr);
  }

  // One left row with the next of the right ones.
  Status MatchPiece() {
    if (!in_row_) next_right_ = 0;
    const size_t end = std::min(next_right_ + kBatchRows, rows_.size());
    for (size_t r = next_right_; r < end; ++r) candidates_.Add(row_, static_cast<uint32_t>(r));
    next_right_ = end;
    const uint32_t row = row_;
    in_row_ = end < rows_.size();
    CELLAR_TRY(Match(*batch_, rows_, row, row + 1, in_row_, nullptr));
    if (in_row_ && Settled()) return EndRow();
    if (!in_row_) ++row_;
    return Status();
  }

  // One left row with the next batch of its right side.
  Status MatchLateral() {
    if (!in_row_) {
      const auto& slots = node_.As<NestedLoopNode>().slots;
      for (size_t i = 0; i < slots.size(); ++i) {
        context().exec_parameters[slots[i]] = slot_values_.columns()[i]->Get(row_);
        context().exec_parameter_types[slots[i]] = slot_values_.columns()[i]->type();
      }
      CELLAR_TRY(right_->Open());
      in_row_ = true;
    }
    CELLAR_TRY_ASSIGN(RowBatch * batch, right_->Next());
    const uint32_t row = row_;
    if (batch == nullptr) {
      in_row_ = false;
      ++row_;
      piece_ = &rows_;
      if (rows_.num_columns() == 0) rows_.Reset(TypesOf(right_->node().output));
      return Match(*batch_, rows_, row, row + 1, false, nullptr);
    }
    piece_ = batch;
    for (uint32_t r = 0; r < batch->size(); ++r) candidates_.Add(row, r);
    CELLAR_TRY(Match(*batch_, *batch, row, row + 1, true, nullptr));
    return Settled() ? EndRow() : Status();
  }

  // Leaves a row whose outcome is known, with the matches that were just found.
  Status EndRow() {
    in_row_ = false;
    matched_before_ = false;
    ++row_;
    return Status();
  }

  OperatorPtr left_, right_;
  ExprList slot_values_;
  const bool lateral_, keep_right_;
  bool right_ready_ = false;
  bool in_row_ = false;  // some right rows were paired with row_, and there are more
  Arena arena_;
  RowBatch rows_;                    // of the right side; none when LATERAL
  const RowBatch* piece_ = nullptr;  // that matches_ point into
  size_t next_right_ = 0;            // of rows_, for row_
  RowBatch* batch_ = nullptr;
  uint32_t row_ = 0;
};

class HashJoinOperator : public JoinOperator {
 public:
  HashJoinOperator(const PlanNode& node, std::vector<OperatorPtr> children, ExecState* state)
      : JoinOperator(node, node.As<HashJoinNode>().join, node.As<HashJoinNode>().condition, state),
        left_(std::move(children[0])),
        right_(std::move(children[1])),
        left_keys_(node.As<HashJoinNode>().left_keys),
        right_keys_(node.As<HashJoinNode>().right_keys),
        keep_right_(IsStable(*node.children[1], *state->plan) &&
                    !ReadsSlots(node.As<HashJoinNode>().right_keys, *state->plan)),
        null_aware_(node.As<HashJoinNode>().null_aware) {}

 protected:
  Status DoOpen() override {
    ResetPairs();
    batch_ = nullptr;
    row_ = 0;
    emitting_right_ = false;
    in_chain_ = false;
    if (!(keep_right_ && built_)) CELLAR_TRY(BuildTable());
    if (kind_ == JoinKind::kRight || kind_ == JoinKind::kFull)
      matched_right_.assign(rows_.size(), 0);
    return left_->Open();
  }

  Result<RowBatch*> DoNext() override {
    while (true) {
      const RowBatch& left = batch_ != nullptr ? *batch_ : no_left_;
      if (RowBatch* out = EmitMatches(left, rows_); out != nullptr) return out;
      if (emitting_right_) {
        if (unmatched_ >= matched_right_.size()) return nullptr;
        CELLAR_TRY(state_.CheckCancel());
        EmitUnmatchedRight();
        continue;
      }
      if (batch_ == nullptr || row_ >= batch_->size()) {
        CELLAR_TRY_ASSIGN(batch_, left_->Next());
        row_ = 0;
        if (batch_ == nullptr) {
          emitting_right_ = true;
          unmatched_ = 0;
          no_left_.Reset(TypesOf(left_->node().output));
          continue;
        }
        arena_.Reset();
        context().set_arena(&arena_);
        CELLAR_TRY(left_keys_.Eval(*batch_, context()));
        ids_.resize(batch_->size());
        table_.Find(left_keys_.columns(), batch_->size(), ids_.data());
      }
      CELLAR_TRY(state_.CheckCancel());
      if (null_aware_ && rows_.size() > 0 && saw_null_) {  // x NOT IN (..., NULL): never true
        row_ = static_cast<uint32_t>(batch_->size());
        continue;
      }
      const uint32_t first = row_;
      while (row_ < batch_->size() && candidates_.size() < kBatchRows) {
        const bool null = HasNull(left_keys_, row_);
        if (!null && ids_[row_] != KeyTable::kAbsent) {
          uint32_t r = in_chain_ ? next_in_chain_ : heads_[ids_[row_]];
          for (; r != kNoRow && candidates_.size() < kBatchRows; r = chain_[r]) {
            candidates_.Add(row_, r);
          }
          in_chain_ = r != kNoRow;
          next_in_chain_ = r;
          if (in_chain_) break;
        }
        if (null && null_aware_ && rows_.size() > 0) nulls_.push_back(row_);
        ++row_;
      }
      CELLAR_TRY(Match(*batch_, rows_, first, in_chain_ ? row_ + 1 : row_, in_chain_,
                       matched_right_.empty() ? nullptr : &matched_right_));
      if (in_chain_ && Settled()) {
        in_chain_ = matched_before_ = false;
        ++row_;
      }
      if (!nulls_.empty()) DropNulls();
    }
  }

 private:
  static bool HasNull(const ExprList& keys, size_t row) {
    for (const ColumnVector* column : keys.columns()) {
      if (column->IsNull(row)) return true;
    }
    return false;
  }

  // NULL NOT IN (non-empty) is unknown: such left rows leave an anti join.
  void DropNulls() {
    Pairs kept;
    for (size_t i = 0; i < matches_.size(); ++i) {
      if (!std::binary_search(nulls_.begin(), nulls_.end(), matches_.left[i])) {
        kept.Add(matches_.left[i], matches_.right[i]);
      }
    }
    matches_ = std::move(kept);
    nulls_.clear();
  }

  Status BuildTable() {
    const auto& join = node_.As<HashJoinNode>();
    rows_.Reset(TypesOf(right_->node().output));
    table_.Reset(TypesOf(join.right_keys));
    heads_.clear();
    chain_.clear();
    CountedVector<uint32_t> tails;
    saw_null_ = false;
    CELLAR_TRY(right_->Open());
    std::vector<uint32_t> ids;
    while (true) {
      CELLAR_TRY_ASSIGN(RowBatch * batch, right_->Next());
      if (batch == nullptr) break;
      arena_.Reset();
      context().set_arena(&arena_);
      CELLAR_TRY(right_keys_.Eval(*batch, context()));
      ids.resize(batch->size());
      table_.FindOrInsert(right_keys_.columns(), batch->size(), ids.data());
      const uint32_t base = static_cast<uint32_t>(rows_.size());
      rows_.AppendAll(*batch);
      chain_.resize(rows_.size(), kNoRow);
      heads_.resize(table_.size(), kNoRow);
      tails.resize(table_.size(), kNoRow);
      for (uint32_t i = 0; i < ids.size(); ++i) {
        if (HasNull(right_keys_, i)) {
          saw_null_ = true;
          continue;
        }
        const uint32_t row = base + i;
        if (heads_[ids[i]] == kNoRow)
          heads_[ids[i]] = row;
        else
          chain_[tails[ids[i]]] = row;
        tails[ids[i]] = row;
      }
      CELLAR_TRY(state_.CheckMemory(rows_.footprint_bytes() + table_.footprint_bytes()));
    }
    built_ = true;
    return Status();
  }

  // Some of the right rows without a match (FULL, RIGHT), from unmatched_ on.
  void EmitUnmatchedRight() {
    matches_.Clear();
    next_ = 0;
    const size_t end = std::min(matched_right_.size(), unmatched_ + kStepsBetweenPolls);
    for (; unmatched_ < end; ++unmatched_) {
      if (!matched_right_[unmatched_]) matches_.Add(kNoRow, static_cast<uint32_t>(unmatched_));
    }
  }

  OperatorPtr left_, right_;
  ExprList left_keys_, right_keys_;
  const bool keep_right_, null_aware_;
  bool built_ = false, saw_null_ = false, emitting_right_ = false;
  bool in_chain_ = false;  // row_ has more right rows of its key, from next_in_chain_ on
  uint32_t next_in_chain_ = kNoRow;
  Arena arena_;
  RowBatch rows_, no_left_;
  KeyTable table_;
  CountedVector<uint32_t> heads_, chain_;  // rows of one key, in input order
  CountedVector<uint8_t> matched_right_;
  size_t unmatched_ = 0;  // right rows looked at for want of a match
  std::vector<uint32_t> ids_, nulls_;
  RowBatch* batch_ = nullptr;
  uint32_t row_ = 0;
};

class LookupJoinOperator : public JoinOperator {
 public:
  LookupJoinOperator(const PlanNode& node, std::vector<OperatorPtr> children, ExecState* state)
      : JoinOperator(node, node.As<LookupJoinNode>().join, node.As<LookupJoinNode>().condition,
                     state),
        left_(std::move(children[0])),
        keys_(node.As<LookupJoinNode>().keys) {
    const auto& join = node.As<LookupJoinNode>();
    spec_.table = join.table;
    spec_.index = join.index;
    spec_.columns = join.columns;
    key_types_ = TypesOf(join.keys);
  }

 protected:
  Status DoOpen() override {
    ResetPairs();
    batch_ = nullptr;
    spec_.view = state_.env.view;
    return left_->Open();
  }

  Result<RowBatch*> DoNext() override {
    while (true) {
      if (batch_ != nullptr) {
        if (RowBatch* out = EmitMatches(*batch_, found_); out != nullptr) return out;
      }
      CELLAR_TRY_ASSIGN(batch_, left_->Next());
      if (batch_ == nullptr) return nullptr;
      CELLAR_TRY(LookUp());
      CELLAR_TRY(Match(*batch_, found_, 0, static_cast<uint32_t>(batch_->size()), false, nullptr));
    }
  }

 private:
  Status LookUp() {
    arena_.Reset();
    context().set_arena(&arena_);
    CELLAR_TRY(keys_.Eval(*batch_, context()));
    // Keys without NULLs, and the left row of each.
    picks_.clear();
    for (uint32_t row = 0; row < batch_->size(); ++row) {
      bool null = false;
      for (const ColumnVector* column : keys_.columns()) null |= column->IsNull(row);
      if (!null) picks_.push_back(row);
    }
    key_rows_.Reset(key_types_);
    for (size_t k = 0; k < keys_.size(); ++k) {
      GatherColumn(*keys_.columns()[k], picks_.data(), picks_.size(), &key_rows_.column(k));
    }
    key_rows_.SetSize(picks_.size());
    matched_.clear();
    Status status =
        CountReads([this] { return state_.access().Lookup(spec_, key_rows_, &found_, &matched_); });
    if (!status.ok()) return status;
    order_.resize(matched_.size());
    for (uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::stable_sort(order_.begin(), order_.end(),
                     [this](uint32_t a, uint32_t b) { return matched_[a] < matched_[b]; });
    for (uint32_t i : order_) candidates_.Add(picks_[matched_[i]], i);
    return Status();
  }

  OperatorPtr left_;
  ExprList keys_;
  table::ScanSpec spec_;
  std::vector<Type> key_types_;
  Arena arena_;
  RowBatch key_rows_, found_;
  std::vector<uint32_t> picks_, matched_, order_;
  RowBatch* batch_ = nullptr;
};

}  // namespace

Result<OperatorPtr> BuildJoin(const PlanNode& node, std::vector<OperatorPtr> children,
                              ExecState* state) {
  switch (node.kind) {
    case PlanKind::kNestedLoop:
      return OperatorPtr(std::make_unique<NestedLoopOperator>(node, std::move(children), state));
    case PlanKind::kHashJoin:
      return OperatorPtr(std::make_unique<HashJoinOperator>(node, std::move(children), state));
    default:
      return OperatorPtr(std::make_unique<LookupJoinOperator>(node, std::move(children), state));
  }
}

}  // namespace cellar::sql::exec
