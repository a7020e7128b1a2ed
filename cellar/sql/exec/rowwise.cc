// Filter, Project, ProjectSet, Limit: operators that look at one row at a time, and what hands rows
// on one by one.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/exec/operator.h"

namespace cellar::sql::exec {
namespace {

// The child's rows, each as a batch of its own.
class OneByOneOperator : public Operator {
 public:
  OneByOneOperator(OperatorPtr child, ExecState* state)
      : Operator(child->node(), state, false), child_(std::move(child)) {}

 protected:
  Status DoOpen() override {
    input_ = nullptr;
    next_ = 0;
    return child_->Open();
  }
  Result<RowBatch*> DoNext() override {
    if (input_ == nullptr || next_ >= input_->size()) {
      CELLAR_TRY_ASSIGN(input_, child_->Next());
      next_ = 0;
      if (input_ == nullptr || input_->size() == 1) {
        RowBatch* whole = input_;
        input_ = nullptr;
        return whole;
      }
    }
    return EmitChunk(*input_, nullptr, &next_, &out_, 1);
  }

 private:
  OperatorPtr child_;
  RowBatch* input_ = nullptr;
  size_t next_ = 0;
  RowBatch out_;
};

// The rows of a child that makes them one by one, in full batches: writing them costs by the batch.
class GatherOperator : public Operator {
 public:
  GatherOperator(OperatorPtr child, ExecState* state)
      : Operator(child->node(), state, false),
        child_(std::move(child)),
        types_(TypesOf(node_.output)) {}

 protected:
  Status DoOpen() override { return child_->Open(); }
  Result<RowBatch*> DoNext() override {
    out_.Reset(types_);
    while (out_.size() < kBatchRows && out_.footprint_bytes() <= kEnoughBytes) {
      CELLAR_TRY_ASSIGN(RowBatch * batch, child_->Next());
      if (batch == nullptr) break;
      out_.AppendAll(*batch);
    }
    return out_.size() > 0 ? &out_ : nullptr;
  }

 private:
  static constexpr size_t kEnoughBytes = 1 << 20;

  OperatorPtr child_;
  std::vector<Type> types_;
  RowBatch out_;
};

class FilterOperator : public Operator {
 public:
  FilterOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : Operator(node, state),
        child_(std::move(child)),
        condition_(node.As<FilterNode>().condition.get()) {
    input_.Watch(*node.As<FilterNode>().condition);
  }

 protected:
  Status DoOpen() override {
    input_.Open();
    return child_->Open();
  }
  Result<RowBatch*> DoNext() override {
    while (true) {
      CELLAR_TRY_ASSIGN(RowBatch * batch, input_.Next(child_.get()));
      if (batch == nullptr) return nullptr;
      arena_.Reset();
      context().set_arena(&arena_);
      passing_.clear();
      CELLAR_TRY(
          condition_.Filter(*batch, Selection{nullptr, batch->size()}, context(), &passing_));
      input_.Note(*batch, arena_.footprint_bytes());
      if (passing_.empty()) continue;
      batch->Keep(passing_);
      return batch;
    }
  }

 private:
  OperatorPtr child_;
  Evaluator condition_;
  Arena arena_;
  std::vector<uint32_t> passing_;
  PartInput input_;
};

class ProjectOperator : public Operator {
 public:
  ProjectOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : Operator(node, state),
        child_(std::move(child)),
        exprs_(node.As<ProjectNode>().exprs),
        types_(TypesOf(node.As<ProjectNode>().exprs)) {
    for (const ExprPtr& expr : node.As<ProjectNode>().exprs) input_.Watch(*expr);
  }

 protected:
  Status DoOpen() override {
    input_.Open();
    return child_->Open();
  }
  Result<RowBatch*> DoNext() override {
    CELLAR_TRY_ASSIGN(RowBatch * batch, input_.Next(child_.get()));
    if (batch == nullptr) return nullptr;
    arena_.Reset();
    context().set_arena(&arena_);
    CELLAR_TRY(exprs_.Eval(*batch, context()));
    input_.Note(*batch, arena_.footprint_bytes());
    out_.columns().resize(exprs_.size());
    const std::vector<const ColumnVector*>& values = exprs_.columns();
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i]->type().id != types_[i].id) {
        CopyAs(types_[i], *values[i], batch->size(), &out_.column(i));
        continue;
      }
      // The child's own columns may be had for nothing, at their last use.
      ColumnVector* own = FindColumn(batch, values[i]);
      if (own != nullptr && std::count(values.begin() + i + 1, values.end(), own) == 0) {
        std::swap(*own, out_.column(i));
      } else {
        CopyColumn(*values[i], batch->size(), &out_.column(i));
      }
    }
    out_.SetSize(batch->size());
    return &out_;
  }

 private:
  static ColumnVector* FindColumn(RowBatch* batch, const ColumnVector* column) {
    for (ColumnVector& own : batch->columns()) {
      if (&own == column) return &own;
    }
    return nullptr;
  }

  // A cast that changes no bytes, but what they print as (oid to regclass).
  static void CopyAs(Type type, const ColumnVector& from, size_t rows, ColumnVector* to) {
    to->Reset(type);
    to->Resize(rows);
    for (size_t row = 0; row < rows; ++row) to->Set(row, from.Get(row));
  }

  OperatorPtr child_;
  ExprList exprs_;
  std::vector<Type> types_;
  Arena arena_;
  RowBatch out_;
  PartInput input_;
};

// Each row gives as many rows as its longest set-returning call. A batch holds rows of one batch of
// the child alone, and borrows its bytes.
class ProjectSetOperator : public Operator {
 public:
  ProjectSetOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : Operator(node, state), child_(std::move(child)) {
    for (const ExprPtr& expr : node.As<ProjectSetNode>().exprs) {
      Column column;
      column.is_set = expr->kind == ExprKind::kCall && expr->function->set != nullptr;
      column.expr = expr.get();
      if (column.is_set) {
        for (const ExprPtr& arg : expr->args) column.evaluators.emplace_back(arg.get());
      } else {
        column.evaluators.emplace_back(expr.get());
      }
      columns_.push_back(std::move(column));
    }
    types_ = TypesOf(node.As<ProjectSetNode>().exprs);
  }

 protected:
  Status DoOpen() override {
    input_ = nullptr;
    row_ = 0;
    expanding_ = false;
    return child_->Open();
  }
  Result<RowBatch*> DoNext() override {
    out_.Reset(types_);
    row_arena_.Reset();
    while (out_.size() == 0 ||
           (out_.size() < kBatchRows && row_arena_.footprint_bytes() <= kEnoughBytes)) {
      if (!expanding_) {
        if (input_ == nullptr || row_ >= input_->size()) {
          if (out_.size() > 0) break;
          CELLAR_TRY_ASSIGN(input_, child_->Next());
          if (input_ == nullptr) return nullptr;
          CELLAR_TRY(EvalArguments());
          row_ = 0;
        }
        CELLAR_TRY(BeginRow());
      }
      CELLAR_TRY(ExpandRow());
    }
    return &out_;
  }

 private:
  struct Column {
    bool is_set = false;
    const Expr* expr = nullptr;
    std::vector<Evaluator> evaluators;
    std::vector<const ColumnVector*> values;
    SetRowsPtr rows;  // of the current row; null: ended
  };

  Status EvalArguments() {
    for (Column& column : columns_) column.rows.reset();
    arena_.Reset();
    context().set_arena(&arena_);
    const Selection all{nullptr, input_->size()};
    for (Column& column : columns_) {
      column.values.clear();
      for (Evaluator& evaluator : column.evaluators) {
        CELLAR_TRY_ASSIGN(const ColumnVector* values, evaluator.Eval(*input_, all, context()));
        column.values.push_back(values);
      }
    }
    return Status();
  }

  Status BeginRow() {
    context().set_arena(&arena_);
    for (Column& column : columns_) {
      if (!column.is_set) continue;
      column.rows.reset();
      args_.clear();
      bool null_arg = false;
      for (const ColumnVector* values : column.values) {
        args_.push_back(values->Get(row_));
        null_arg |= args_.back().is_null();
      }
      if (null_arg && column.expr->function->strict) continue;
      CELLAR_TRY_ASSIGN(column.rows, column.expr->function->set(context(), *column.expr, args_));
    }
    expanding_ = true;
    return Status();
  }

  // Adds rows of the current row, few at a time for the sake of large values; ends it when all its
  // sets have.
  Status ExpandRow() {
    context().set_arena(&row_arena_);
    const size_t base = out_.size(), most = std::min(kRowsBetweenLooks, kBatchRows - base);
    size_t longest = 0;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].rows == nullptr) continue;
      ColumnVector* target = &out_.column(c);
      while (target->size() - base < most) {
        CELLAR_TRY_ASSIGN(const size_t made,
                          columns_[c].rows->Next(context(), most - (target->size() - base),
                                                 std::span<ColumnVector* const>(&target, 1)));
        if (made == 0) {
          columns_[c].rows.reset();
          break;
        }
      }
      longest = std::max(longest, target->size() - base);
    }
    for (size_t c = 0; c < columns_.size(); ++c) {
      ColumnVector& target = out_.column(c);
      if (columns_[c].is_set) {
        PadWithNulls(base + longest, &target);
      } else {
        const Datum value = columns_[c].values[0]->Get(row_);
        target.Resize(base + longest);
        for (size_t i = base; i < base + longest; ++i) target.Set(i, value);
      }
    }
    out_.SetSize(base + longest);
    if (longest < most) {
      expanding_ = false;
      ++row_;
    }
    return Status();
  }

  static constexpr size_t kRowsBetweenLooks = 256, kEnoughBytes = 1 << 20;

  OperatorPtr child_;
  std::vector<Column> columns_;
  std::vector<Type> types_;
  Arena arena_;      // of the arguments of a batch of the child
  Arena row_arena_;  // of a batch
  RowBatch out_;
  RowBatch* input_ = nullptr;
  size_t row_ = 0;
  bool expanding_ = false;  // row_ has begun
  std::vector<Datum> args_;
};

class LimitOperator : public Operator {
 public:
  LimitOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : Operator(node, state), child_(std::move(child)) {}

 protected:
  Status DoOpen() override {
    const auto& limit = node_.As<LimitNode>();
    left_ = UINT64_MAX;
    skip_ = 0;
    tied_ = false;
    CELLAR_TRY(Read(limit.limit, sqlstate::kInvalidRowCountInLimit, "LIMIT", &left_));
    CELLAR_TRY(Read(limit.offset, sqlstate::kInvalidRowCountInOffset, "OFFSET", &skip_));
    return child_->Open();
  }
  Result<RowBatch*> DoNext() override {
    while (left_ > 0 || tied_) {
      CELLAR_TRY_ASSIGN(RowBatch * batch, child_->Next());
      if (batch == nullptr) return nullptr;
      if (skip_ >= batch->size()) {
        skip_ -= batch->size();
        continue;
      }
      uint64_t count = std::min<uint64_t>(left_, batch->size() - skip_);
      left_ -= count;
      if (left_ == 0 && !node_.As<TiesNode>().ties.empty()) {
        count += CountTies(*batch, skip_ + count);
        if (count == 0) return nullptr;
      }
      if (count < batch->size()) {
        rows_.resize(count);
        for (uint64_t i = 0; i < count; ++i) rows_[i] = static_cast<uint32_t>(skip_ + i);
        batch->Keep(rows_);
      }
      skip_ = 0;
      return batch;
    }
    return nullptr;
  }

 private:
  Status Read(const ExprPtr& expr, std::string_view state, const char* word, uint64_t* out) {
    if (!expr) return Status();
    arena_.Reset();
    context().set_arena(&arena_);
    CELLAR_TRY_ASSIGN(Datum value, EvalScalar(*expr, context()));
    if (value.is_null()) return Status();
    if (value.int_value() < 0) {
      return SqlError(Code::kInvalid, state, "{} must not be negative", word);
    }
    *out = static_cast<uint64_t>(value.int_value());
    return Status();
  }

  // Rows from `start` on that are equal to the last one that was wanted, which is the one before
  // unless it came in an earlier batch.
  uint64_t CountTies(const RowBatch& batch, uint64_t start) {
    const std::vector<int>& ties = node_.As<TiesNode>().ties;
    if (!tied_) {
      last_.Reset(TypesOf(node_.output));
      const auto before = static_cast<uint32_t>(start - 1);
      last_.AppendRows(batch, {&before, 1});
    }
    auto equal = [&](uint64_t row) {
      for (int tie : ties) {
        const ColumnVector& column = batch.column(static_cast<size_t>(tie));
        const ColumnVector& other = last_.column(static_cast<size_t>(tie));
        if (column.IsNull(row) != other.IsNull(0)) return false;
        if (!column.IsNull(row) && CompareDatums(column.Get(row), other.Get(0), column.type()) != 0)
          return false;
      }
      return true;
    };
    uint64_t count = 0;
    while (start + count < batch.size() && equal(start + count)) ++count;
    tied_ = start + count == batch.size();  // there may be more
    return count;
  }

  OperatorPtr child_;
  Arena arena_;
  uint64_t left_ = 0, skip_ = 0;
  bool tied_ = false;  // all that was wanted is given, and so far all behind it were equal
  RowBatch last_;      // the last row that was wanted
  std::vector<uint32_t> rows_;
};

}  // namespace

OperatorPtr SuitRows(const PlanNode& node, OperatorPtr child, ExecState* state) {
  const bool one_by_one = state->RowByRow(node);
  switch (node.kind) {
    case PlanKind::kFilter:
    case PlanKind::kProject:
    case PlanKind::kProjectSet:
    case PlanKind::kAggregate:
      if (!one_by_one) break;
      return std::make_unique<OneByOneOperator>(std::move(child), state);
    case PlanKind::kInsert:
    case PlanKind::kUpdate:
    case PlanKind::kDelete:
      if (one_by_one || !state->RowByRow(child->node())) break;
      return std::make_unique<GatherOperator>(std::move(child), state);
    default: break;
  }
  return child;
}

Result<OperatorPtr> BuildRowwise(const PlanNode& node, OperatorPtr child, ExecState* state) {
  switch (node.kind) {
    case PlanKind::kFilter:
      return OperatorPtr(std::make_unique<FilterOperator>(node, std::move(child), state));
    case PlanKind::kProject:
      return OperatorPtr(std::make_unique<ProjectOperator>(node, std::move(child), state));
    case PlanKind::kProjectSet:
      return OperatorPtr(std::make_unique<ProjectSetOperator>(node, std::move(child), state));
    default: return OperatorPtr(std::make_unique<LimitOperator>(node, std::move(child), state));
  }
}

}  // namespace cellar::sql::exec
