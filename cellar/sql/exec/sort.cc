// Sort, with a bounded form for LIMIT, and the comparison of rows that other operators share.
#include "cellar/sql/exec/sort.h"

#include <algorithm>

namespace cellar::sql::exec {

int CompareRows(std::span<const SortColumn> columns, uint32_t a, uint32_t b) {
  for (const SortColumn& column : columns) {
    const ColumnVector& values = *column.values;
    const bool null_a = values.IsNull(a), null_b = values.IsNull(b);
    int order;
    if (null_a || null_b) {
      if (null_a && null_b) continue;
      order = null_a == column.nulls_first ? -1 : 1;
      return order;
    }
    if (values.physical() == Physical::kInt64) {
      const int64_t x = values.ints()[a], y = values.ints()[b];
      order = x < y ? -1 : x > y;
    } else {
      order = CompareDatums(values.Get(a), values.Get(b), column.type);
    }
    if (order != 0) return column.descending ? -order : order;
  }
  return 0;
}

namespace {

// Rows that are sorted without a look at the token: about kStepsBetweenPolls comparisons.
constexpr size_t kRunRows = 512;

}  // namespace

Status SortRows(std::span<const SortColumn> columns, const CancelToken* cancel,
                CountedVector<uint32_t>* rows) {
  const auto less = [columns](uint32_t a, uint32_t b) { return CompareRows(columns, a, b) < 0; };
  const size_t size = rows->size();
  Poller poller(cancel);
  for (size_t start = 0; start < size; start += kRunRows) {
    CELLAR_TRY(poller.Step(std::min(size - start, kRunRows) * 8));
    const size_t end = std::min(size, start + kRunRows);
    std::stable_sort(rows->begin() + static_cast<ptrdiff_t>(start),
                     rows->begin() + static_cast<ptrdiff_t>(end), less);
  }
  if (size <= kRunRows) return Status();
  // Runs of twice the length, until there is one.
  CountedVector<uint32_t> merged(size);
  for (size_t run = kRunRows; run < size; run *= 2) {
    const uint32_t* in = rows->data();
    uint32_t* out = merged.data();
    for (size_t start = 0; start < size; start += 2 * run) {
      size_t left = start, right = std::min(size, start + run);
      const size_t middle = right, end = std::min(size, start + 2 * run);
      if (right == end || !less(in[right], in[right - 1])) {  // in order as they are
        std::copy(in + start, in + end, out + start);
        CELLAR_TRY(poller.Step((end - start) / 8));
        left = middle;
        right = end;
      }
      for (size_t at = start; left < middle || right < end; ++at) {
        CELLAR_TRY(poller.Step());
        const bool from_right = left == middle || (right < end && less(in[right], in[left]));
        out[at] = in[from_right ? right++ : left++];
      }
    }
    rows->swap(merged);
  }
  return Status();
}

Status SortFirstRows(std::span<const SortColumn> columns, size_t count, const CancelToken* cancel,
                     CountedVector<uint32_t>* rows) {
  if (count >= rows->size()) return SortRows(columns, cancel, rows);
  // The best so far, in order, and those behind them that may be better than the last.
  const size_t block = std::max<size_t>(count, kStepsBetweenPolls);
  CountedVector<uint32_t> best, fresh;
  if (count > 0) best.assign(rows->begin(), rows->begin() + static_cast<ptrdiff_t>(count));
  CELLAR_TRY(SortRows(columns, cancel, &best));
  const auto take = [&]() -> Status {
    CELLAR_TRY(SortRows(columns, cancel, &fresh));
    // Of equal rows the earlier one stands first: those of `best` are all earlier.
    best.insert(best.end(), fresh.begin(), fresh.end());
    CELLAR_TRY(SortRows(columns, cancel, &best));
    best.resize(count);
    fresh.clear();
    return Status();
  };
  Poller poller(cancel);
  for (size_t i = count; count > 0 && i < rows->size(); ++i) {
    CELLAR_TRY(poller.Step());
    if (CompareRows(columns, (*rows)[i], best.back()) >= 0) continue;
    fresh.push_back((*rows)[i]);
    if (fresh.size() >= block) CELLAR_TRY(take());
  }
  if (!fresh.empty()) CELLAR_TRY(take());
  *rows = std::move(best);
  return Status();
}

namespace {

// Keeps, beside each stored row, its key values as extra columns.
class SortOperator : public Operator {
 public:
  SortOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : Operator(node, state), child_(std::move(child)) {
    types_ = TypesOf(child_->node().output);
    width_ = types_.size();
    for (const SortKey& key : node.As<SortNode>().keys) {
      evaluators_.emplace_back(key.expr.get());
      types_.push_back(key.expr->type);
    }
  }

 protected:
  Status DoOpen() override {
    sorted_ = false;
    store_.Reset(types_);
    top_ = UINT64_MAX;
    if (const ExprPtr& top = node_.As<SortNode>().top) {
      arena_.Reset();
      context().set_arena(&arena_);
      CELLAR_TRY_ASSIGN(Datum value, EvalScalar(*top, context()));
      if (!value.is_null() && value.int_value() >= 0)
        top_ = static_cast<uint64_t>(value.int_value());
    }
    return child_->Open();
  }

  Result<RowBatch*> DoNext() override {
    if (!sorted_) {
      CELLAR_TRY(Consume());
      sorted_ = true;
    }
    RowBatch* out = store_.NextChunk(&out_);
    if (out != nullptr) out->columns().resize(width_);
    return out;
  }

 private:
  static constexpr size_t kPruneRows = 16384;

  Status Consume() {
    while (true) {
      CELLAR_TRY_ASSIGN(RowBatch * batch, child_->Next());
      if (batch == nullptr) break;
      arena_.Reset();
      context().set_arena(&arena_);
      const size_t rows = batch->size();
      for (Evaluator& evaluator : evaluators_) {
        CELLAR_TRY_ASSIGN(const ColumnVector* values,
                          evaluator.Eval(*batch, Selection{nullptr, rows}, context()));
        keys_.push_back(values);
      }
      wide_.columns().resize(types_.size());
      for (size_t c = 0; c < width_; ++c) CopyColumn(batch->column(c), rows, &wide_.column(c));
      for (size_t k = 0; k < keys_.size(); ++k)
        CopyColumn(*keys_[k], rows, &wide_.column(width_ + k));
      keys_.clear();
      wide_.SetSize(rows);
      store_.rows().AppendAll(wide_);
      if (top_ < kPruneRows && store_.rows().size() > 4 * kPruneRows) CELLAR_TRY(Prune());
      CELLAR_TRY(state_.CheckMemory(store_.rows().footprint_bytes()));
    }
    CELLAR_TRY_ASSIGN(CountedVector<uint32_t> order, Order());
    store_.SetOrder(std::move(order));
    return Status();
  }

  Result<CountedVector<uint32_t>> Order() {
    const RowBatch& rows = store_.rows();
    std::vector<SortColumn> columns;
    const auto& keys = node_.As<SortNode>().keys;
    for (size_t k = 0; k < keys.size(); ++k) {
      columns.push_back(
          {&rows.column(width_ + k), keys[k].expr->type, keys[k].descending, keys[k].nulls_first});
    }
    CountedVector<uint32_t> order(rows.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    CELLAR_TRY(SortFirstRows(columns, top_, context().cancel, &order));
    return order;
  }

  Status Prune() {
    CELLAR_TRY_ASSIGN(CountedVector<uint32_t> order, Order());
    std::sort(order.begin(), order.end());  // input order, so that ties stay stable
    RowBatch kept;
    kept.Reset(types_);
    kept.AppendRows(store_.rows(), order);
    store_.rows() = std::move(kept);
    return Status();
  }

  OperatorPtr child_;
  std::vector<Type> types_;  // the child's columns, then the keys
  size_t width_ = 0;
  std::vector<Evaluator> evaluators_;
  std::vector<const ColumnVector*> keys_;
  Arena arena_;
  RowBatch wide_, out_;
  StoredRows store_;
  uint64_t top_ = UINT64_MAX;
  bool sorted_ = false;
};

}  // namespace

Result<OperatorPtr> BuildSort(const PlanNode& node, OperatorPtr child, ExecState* state) {
  return OperatorPtr(std::make_unique<SortOperator>(node, std::move(child), state));
}

}  // namespace cellar::sql::exec
