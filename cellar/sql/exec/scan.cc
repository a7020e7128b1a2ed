// Where rows come from: tables, virtual tables, functions, VALUES, common table expressions.
#include <algorithm>

#include "cellar/sql/exec/operator.h"
#include "cellar/sql/exec/scan_conditions.h"
#include "cellar/sql/exec/spans.h"
#include "cellar/table/usage.h"

namespace cellar::sql::exec {
namespace {

class ResultOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  Status DoOpen() override {
    done_ = false;
    return Status();
  }
  Result<RowBatch*> DoNext() override {
    if (done_) return nullptr;
    done_ = true;
    if (const ExprPtr& filter = node_.As<ResultNode>().filter) {
      arena_.Reset();
      context().set_arena(&arena_);
      CELLAR_TRY_ASSIGN(Datum passes, EvalScalar(*filter, context()));
      if (passes.is_null() || !passes.bool_value()) return nullptr;
    }
    out_.SetSize(1);
    return &out_;
  }

 private:
  bool done_ = false;
  Arena arena_;
  RowBatch out_;
};

class ValuesOperator : public Operator {
 public:
  ValuesOperator(const PlanNode& node, ExecState* state)
      : Operator(node, state), types_(TypesOf(node.output)) {}

 protected:
  Status DoOpen() override {
    next_ = 0;
    return Status();
  }
  Result<RowBatch*> DoNext() override {
    const auto& rows = node_.As<ValuesNode>().rows_exprs;
    if (next_ >= rows.size()) return nullptr;
    CELLAR_TRY(state_.CheckCancel());
    arena_.Reset();
    context().set_arena(&arena_);
    out_.Reset(types_);
    const size_t most = state_.RowByRow(node_) ? 1 : kBatchRows;
    const size_t count = std::min(most, rows.size() - next_);
    out_.Resize(count);
    for (size_t i = 0; i < count; ++i, ++next_) {
      for (size_t c = 0; c < types_.size(); ++c) {
        CELLAR_TRY_ASSIGN(Datum value, EvalScalar(*rows[next_][c], context()));
        out_.column(c).Set(i, value);
      }
    }
    return &out_;
  }

 private:
  std::vector<Type> types_;
  size_t next_ = 0;
  Arena arena_;
  RowBatch out_;
};

class ScanOperator : public Operator {
 public:
  ScanOperator(const PlanNode& node, ExecState* state)
      : Operator(node, state), scan_(node.As<ScanNode>()), conditions_(scan_) {
    state->scans.push_back(this);
  }
  void Release() override { reader_.reset(); }
  Result<std::optional<uint64_t>> CountRows() override {
    if (!IsWholeTable()) return std::optional<uint64_t>();
    kv::Transaction* transaction = state_.access().transaction();
    const uint64_t trips = transaction->stats().trips;
    Result<std::optional<uint64_t>> rows =
        table::CountRows(*scan_.table, transaction, state_.env.view.get(), state_.env.serializable);
    if (state_.env.analyze) counters().trips += transaction->stats().trips - trips;
    return rows;
  }

 protected:
  Status DoOpen() override {
    reader_.reset();
    read_.Clear();
    next_ = 0;
    span_arena_.Reset();
    table::ScanSpec spec;
    CELLAR_TRY(MakeSpans(scan_, context(), &span_arena_, &spec.spans));
    if (spec.spans.empty()) return Status();
    spec.table = scan_.table;
    spec.index = scan_.index;
    spec.view = state_.env.view;
    if (!conditions_.Prepare(context(), &spec)) return Status();
    spec.reverse = scan_.reverse;
    spec.limit_hint = scan_.limit_hint;
    spec.with_row_ref = scan_.with_row_ref;
    if (const std::vector<std::string>* rows = RowsToRecheck()) {
      spec.view = state_.recheck->view;
      CELLAR_TRY_ASSIGN(reader_, state_.access().ScanRows(std::move(spec), *rows));
      return Status();
    }
    if (scan_.locks_first.has_value()) spec.lock = LockSpecOf(*scan_.locks_first);
    CELLAR_TRY_ASSIGN(reader_, state_.access().Scan(std::move(spec)));
    return Status();
  }
  Result<RowBatch*> DoNext() override {
    const size_t width = node_.output.size();
    while (reader_ != nullptr) {
      CELLAR_TRY(state_.CheckCancel());
      std::vector<ColumnVector>& columns = batch_.columns();
      while (!spare_.empty()) {  // the memory of columns that were taken out
        columns.push_back(std::move(spare_.back()));
        spare_.pop_back();
      }
      CELLAR_TRY_ASSIGN(const bool more, Read());
      if (!more) {
        reader_.reset();
        break;
      }
      if (batch_.size() == 0) continue;
      state_.access().NoteReads(*scan_.table, batch_.size());
      Evaluator* filter = conditions_.filter();
      if (filter == nullptr) return &batch_;
      arena_.Reset();
      context().set_arena(&arena_);
      passing_.clear();
      CELLAR_TRY(filter->Filter(batch_, Selection{nullptr, batch_.size()}, context(), &passing_));
      if (passing_.empty()) continue;
      while (columns.size() > width) {
        spare_.push_back(std::move(columns.back()));
        columns.pop_back();
      }
      batch_.Keep(passing_);
      return &batch_;
    }
    return nullptr;
  }

 private:
  // The next rows into batch_, no more than the environment wants at once.
  Result<bool> Read() {
    const size_t most = state_.RowByRow(scan_) ? 1 : state_.env.batch_rows;
    if (most >= kBatchRows) {
      return CountReads([this] { return reader_->Next(&batch_); });
    }
    while (next_ >= read_.size()) {
      next_ = 0;
      Result<bool> more = CountReads([this] { return reader_->Next(&read_); });
      if (!more.ok() || !*more) return more;
    }
    EmitChunk(read_, nullptr, &next_, &batch_, most);
    return true;
  }
  const std::vector<std::string>* RowsToRecheck() const {
    if (state_.recheck == nullptr || scan_.lock < 0) return nullptr;
    return state_.recheck->rows[static_cast<size_t>(scan_.lock)];
  }
  // Does the scan return each row of the table?
  bool IsWholeTable() const {
    if (reader_ == nullptr || scan_.spans.size() != 1 || scan_.filter != nullptr ||
        scan_.locks_first.has_value() || scan_.limit_hint != 0 || RowsToRecheck() != nullptr) {
      return false;
    }
    const SpanExpr& span = scan_.spans.front();
    if (!span.equal.empty() || span.lower.value != nullptr || span.upper.value != nullptr ||
        span.only_null || span.exclude_null) {
      return false;
    }
    const catalog::IndexDescriptor* index = scan_.table->FindIndex(scan_.index);
    return index != nullptr && index->predicate.empty();
  }

  const ScanNode& scan_;
  ScanConditions conditions_;
  std::unique_ptr<table::Reader> reader_;
  Arena span_arena_, arena_;
  RowBatch batch_;
  RowBatch read_;    // what batch_ is a part of, if the environment wants few rows
  size_t next_ = 0;  // of read_
  std::vector<ColumnVector> spare_;
  std::vector<uint32_t> passing_;
};

class VirtualScanOperator : public Operator {
 public:
  VirtualScanOperator(const PlanNode& node, ExecState* state) : Operator(node, state) {}

 protected:
  Status DoOpen() override {
    const auto& scan = node_.As<VirtualScanNode>();
    next_ = 0;
    arena_.Reset();
    context().set_arena(&arena_);
    Datum key;
    int key_column = -1;
    if (scan.key && scan.key_column >= 0) {
      CELLAR_TRY_ASSIGN(key, EvalScalar(*scan.key, context()));
      key_column = key.is_null() ? -1 : scan.key_column;
    }
    // The whole table stays the same for the whole statement; only keyed reads are made anew.
    if (key_column < 0 && complete_) return Status();
    complete_ = key_column < 0;
    return state_.env.virtual_rows->Generate(scan.schema, scan.table, key_column, key, &rows_);
  }
  Result<RowBatch*> DoNext() override {
    const auto& scan = node_.As<VirtualScanNode>();
    return EmitChunk(rows_, &scan.columns, &next_, &out_);
  }

 private:
  Arena arena_;
  RowBatch rows_, out_;
  bool complete_ = false;
  size_t next_ = 0;
};

// Sets run side by side, a batch at a time.
class FunctionScanOperator : public Operator {
 public:
  FunctionScanOperator(const PlanNode& node, ExecState* state)
      : Operator(node, state), types_(TypesOf(node.output)) {
    size_t at = 0;
    for (const ExprPtr& call : node.As<FunctionScanNode>().calls) {
      Source& source = sources_.emplace_back();
      source.call = call.get();
      source.is_set = call->kind == ExprKind::kCall && call->function->set != nullptr;
      source.first_column = at;
      if (source.is_set) source.width = std::max<size_t>(1, call->function->set_columns.size());
      at += source.width;
    }
    fits_ = at + (node.As<FunctionScanNode>().ordinality ? 1 : 0) == types_.size();
  }

 protected:
  Status DoOpen() override {
    if (!fits_) return InternalError("the columns of a function scan are not those of its calls");
    arena_.Reset();
    given_ = 0;
    for (Source& source : sources_) {
      context().set_arena(&arena_);
      source.rows.reset();
      source.ended = false;
      if (!source.is_set) {
        CELLAR_TRY_ASSIGN(source.value, EvalScalar(*source.call, context()));
        continue;
      }
      std::vector<Datum> args;
      bool null_arg = false;
      for (const ExprPtr& arg : source.call->args) {
        CELLAR_TRY_ASSIGN(Datum value, EvalScalar(*arg, context()));
        null_arg |= value.is_null();
        args.push_back(value);
      }
      const FunctionSpec& function = *source.call->function;
      if (!null_arg || !function.strict) {
        CELLAR_TRY_ASSIGN(source.rows, function.set(context(), *source.call, args));
      }
      source.ended = source.rows == nullptr;
    }
    return Status();
  }
  Result<RowBatch*> DoNext() override {
    row_arena_.Reset();
    context().set_arena(&row_arena_);
    out_.Reset(types_);
    size_t longest = 0;
    for (Source& source : sources_) {
      CELLAR_TRY(Fill(&source));
      longest = std::max(longest, out_.column(source.first_column).size());
    }
    if (longest == 0) return nullptr;
    for (size_t c = 0; c < types_.size(); ++c) PadWithNulls(longest, &out_.column(c));
    if (node_.As<FunctionScanNode>().ordinality) {
      int64_t* numbers = out_.column(types_.size() - 1).ints();
      std::fill_n(out_.column(types_.size() - 1).nulls(), longest, uint8_t{0});
      out_.column(types_.size() - 1).set_has_nulls(false);
      for (size_t i = 0; i < longest; ++i) numbers[i] = static_cast<int64_t>(given_ + i) + 1;
    }
    given_ += longest;
    out_.SetSize(longest);
    return &out_;
  }

 private:
  struct Source {
    const Expr* call = nullptr;
    bool is_set = false;
    size_t first_column = 0, width = 1;
    // Of this run.
    SetRowsPtr rows;
    Datum value;  // of a call that returns no set: its one row
    bool ended = false;
  };

  // The next rows of one call. A call by itself may stop early, when its values are large.
  Status Fill(Source* source) {
    if (source->ended) return Status();
    ColumnVector& first = out_.column(source->first_column);
    if (!source->is_set) {
      first.Append(source->value);
      source->ended = true;
      return Status();
    }
    targets_.clear();
    for (size_t c = 0; c < source->width; ++c) {
      targets_.push_back(&out_.column(source->first_column + c));
    }
    while (first.size() < kBatchRows) {
      const size_t most = sources_.size() == 1 ? kRowsBetweenLooks : kBatchRows;
      CELLAR_TRY_ASSIGN(
          const size_t made,
          source->rows->Next(context(), std::min(most, kBatchRows - first.size()), targets_));
      if (made == 0) {
        source->rows.reset();
        source->ended = true;
        return Status();
      }
      if (sources_.size() == 1 && row_arena_.footprint_bytes() > kEnoughBytes) return Status();
    }
    return Status();
  }

  static constexpr size_t kRowsBetweenLooks = 256, kEnoughBytes = 1 << 20;

  std::vector<Type> types_;
  std::vector<Source> sources_;
  bool fits_ = false;
  Arena arena_;      // of the arguments
  Arena row_arena_;  // of a batch
  RowBatch out_;
  std::vector<ColumnVector*> targets_;
  uint64_t given_ = 0;
};

class ExternalOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  Status DoOpen() override { return Status(); }
  Result<RowBatch*> DoNext() override {
    CELLAR_TRY_ASSIGN(bool more, state_.env.external_rows(&out_));
    return more ? &out_ : nullptr;
  }

 private:
  RowBatch out_;
};

// Reads a WITH query's rows, which are made as the first reader asks for them and kept for others.
// Those that only one reader sees, and once, are not kept.
class CteScanOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  Status DoOpen() override {
    next_ = 0;
    const int index = node_.As<CteScanNode>().cte;
    ExecState::Cte& cte = state_.ctes[index];
    if (cte.ready && SameSlots(cte)) return Status();
    const PlanNode& source = *state_.plan->ctes[index];
    if (!cte.source) {
      CELLAR_TRY_ASSIGN(cte.source, Build(source, &state_));
      cte.slots = OuterSlots(source, *state_.plan);
      cte.keeps = !ReadsWorkTable(source, *state_.plan);
    }
    cte.rows.Reset(TypesOf(source.output));
    cte.complete = false;
    // A query that changes rows has done all of it before anybody reads on; what depends on outer
    // rows is read while they are current.
    const bool lazy = cte.keeps && cte.slots.empty() && state_.plan->kind == StatementKind::kSelect;
    if (lazy) {
      CELLAR_TRY(cte.source->Open());
    } else {
      CELLAR_TRY(ReadAll(cte.source.get(), &state_, &cte.rows));
      cte.complete = true;
    }
    cte.slot_values.clear();
    for (int slot : cte.slots) {
      cte.slot_values.emplace_back(context().exec_parameter_types[slot],
                                   context().exec_parameters[slot]);
    }
    cte.ready = cte.keeps;
    return Status();
  }
  Result<RowBatch*> DoNext() override {
    ExecState::Cte& cte = state_.ctes[node_.As<CteScanNode>().cte];
    while (true) {
      if (RowBatch* out = EmitChunk(cte.rows, nullptr, &next_, &out_); out != nullptr) return out;
      if (cte.complete) return nullptr;
      CELLAR_TRY_ASSIGN(RowBatch * batch, cte.source->Next());
      if (batch == nullptr) {
        cte.complete = true;
      } else if (cte.read_once) {
        return batch;
      } else {
        cte.rows.AppendAll(*batch);
        CELLAR_TRY(state_.CheckMemory(cte.rows.footprint_bytes()));
      }
    }
  }

 private:
  bool SameSlots(const ExecState::Cte& cte) {
    for (size_t i = 0; i < cte.slots.size(); ++i) {
      const Datum now = context().exec_parameters[cte.slots[i]];
      const Value& then = cte.slot_values[i];
      if (now.is_null() != then.is_null()) return false;
      if (!now.is_null() && CompareDatums(now, then.datum(), WithoutCollation(then.type())) != 0)
        return false;
    }
    return true;
  }
  size_t next_ = 0;
  RowBatch out_;
};

class WorkTableScanOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  Status DoOpen() override {
    next_ = 0;
    return Status();
  }
  Result<RowBatch*> DoNext() override {
    const RowBatch* rows = state_.work_tables[node_.As<WorkTableScanNode>().work_table];
    if (rows == nullptr) return nullptr;
    return EmitChunk(*rows, nullptr, &next_, &out_);
  }

 private:
  size_t next_ = 0;
  RowBatch out_;
};

}  // namespace

Result<OperatorPtr> BuildSource(const PlanNode& node, ExecState* state) {
  switch (node.kind) {
    case PlanKind::kResult: return OperatorPtr(std::make_unique<ResultOperator>(node, state));
    case PlanKind::kValues: return OperatorPtr(std::make_unique<ValuesOperator>(node, state));
    case PlanKind::kScan: return OperatorPtr(std::make_unique<ScanOperator>(node, state));
    case PlanKind::kVirtualScan:
      return OperatorPtr(std::make_unique<VirtualScanOperator>(node, state));
    case PlanKind::kFunctionScan:
      return OperatorPtr(std::make_unique<FunctionScanOperator>(node, state));
    case PlanKind::kExternal: return OperatorPtr(std::make_unique<ExternalOperator>(node, state));
    case PlanKind::kCteScan: return OperatorPtr(std::make_unique<CteScanOperator>(node, state));
    default: return OperatorPtr(std::make_unique<WorkTableScanOperator>(node, state));
  }
}

}  // namespace cellar::sql::exec
