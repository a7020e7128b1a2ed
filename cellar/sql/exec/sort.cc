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

void SortRows(std::span<const SortColumn> columns, std::vector<uint32_t>* rows) {
  std::stable_sort(rows->begin(), rows->end(),
                   [columns](uint32_t a, uint32_t b) { return CompareRows(columns, a, b) < 0; });
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
      CELLAR_TRY(state_.CheckCancel());
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
      if (top_ < kPruneRows && store_.rows().size() > 4 * kPruneRows) Prune();
      CELLAR_TRY(state_.CheckMemory(store_.rows().footprint_bytes()));
    }
    store_.SetOrder(Order());
    return Status();
  }

  std::vector<uint32_t> Order() {
    const RowBatch& rows = store_.rows();
    std::vector<SortColumn> columns;
    const auto& keys = node_.As<SortNode>().keys;
    for (size_t k = 0; k < keys.size(); ++k) {
      columns.push_back(
          {&rows.column(width_ + k), keys[k].expr->type, keys[k].descending, keys[k].nulls_first});
    }
    std::vector<uint32_t> order(rows.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    if (top_ < order.size()) {
      auto less = [&columns](uint32_t a, uint32_t b) {
        const int by_key = CompareRows(columns, a, b);
        return by_key != 0 ? by_key < 0 : a < b;
      };
      std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(top_), order.end(),
                        less);
      order.resize(top_);
    } else {
      SortRows(columns, &order);
    }
    return order;
  }

  void Prune() {
    std::vector<uint32_t> order = Order();
    std::sort(order.begin(), order.end());  // input order, so that ties stay stable
    RowBatch kept;
    kept.Reset(types_);
    kept.AppendRows(store_.rows(), order);
    store_.rows() = std::move(kept);
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
