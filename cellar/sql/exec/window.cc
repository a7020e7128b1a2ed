// Window functions: the input is sorted by partition and order, each partition computed in one
// pass.
#include <algorithm>
#include <cmath>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/exec/aggregate_call.h"
#include "cellar/sql/exec/operator.h"
#include "cellar/sql/exec/sort.h"

namespace cellar::sql::exec {
namespace {

class WindowOperator : public Operator {
 public:
  WindowOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : Operator(node, state), child_(std::move(child)), window_(node.As<WindowNode>()) {}

 protected:
  Status DoOpen() override {
    done_ = false;
    next_ = 0;
    rows_.Reset(TypesOf(child_->node().output));
    return Status();
  }
  Result<RowBatch*> DoNext() override {
    if (!done_) {
      CELLAR_TRY(Compute());
      done_ = true;
    }
    return EmitChunk(rows_, nullptr, &next_, &out_);
  }

 private:
  struct Range {
    size_t start, end;
  };

  Status Compute() {
    RowBatch input;
    input.Reset(TypesOf(child_->node().output));
    CELLAR_TRY(ReadAll(child_.get(), &state_, &input));
    arena_.Reset();
    context().set_arena(&arena_);
    std::vector<Evaluator> evaluators;
    std::vector<SortColumn> partition, all;
    Selection every{nullptr, input.size()};
    evaluators.reserve(window_.partition_by.size() + window_.order_by.size());
    for (const ExprPtr& expr : window_.partition_by) {
      evaluators.emplace_back(expr.get());
      CELLAR_TRY_ASSIGN(const ColumnVector* values,
                        evaluators.back().Eval(input, every, context()));
      partition.push_back({values, expr->type, false, false});
    }
    all = partition;
    for (const SortKey& key : window_.order_by) {
      evaluators.emplace_back(key.expr.get());
      CELLAR_TRY_ASSIGN(const ColumnVector* values,
                        evaluators.back().Eval(input, every, context()));
      all.push_back({values, key.expr->type, key.descending, key.nulls_first});
    }
    std::vector<uint32_t> order(input.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    SortRows(all, &order);

    // Where partitions end, and for each row where its peers begin and end.
    std::vector<Range> partitions;
    peers_.resize(order.size());
    for (size_t i = 0; i < order.size();) {
      size_t end = i + 1;
      while (end < order.size() && CompareRows(partition, order[i], order[end]) == 0) ++end;
      partitions.push_back({i, end});
      for (size_t p = i; p < end;) {
        size_t peer_end = p + 1;
        while (peer_end < end && CompareRows(all, order[p], order[peer_end]) == 0) ++peer_end;
        for (size_t r = p; r < peer_end; ++r) peers_[r] = {p, peer_end};
        p = peer_end;
      }
      i = end;
    }

    rows_.AppendRows(input, order);
    const size_t width = input.num_columns();
    rows_.columns().resize(width + window_.calls.size());
    for (size_t c = 0; c < window_.calls.size(); ++c) {
      const WindowCall& call = window_.calls[c];
      ColumnVector result(call.result);
      result.Resize(order.size());
      if (call.aggregate.spec != nullptr) {
        CELLAR_TRY(RunAggregate(call, input, order, partitions, &result));
      } else {
        CELLAR_TRY(RunFunction(call, input, order, partitions, &result));
      }
      rows_.columns()[width + c] = std::move(result);
    }
    return state_.CheckMemory(rows_.footprint_bytes());
  }

  void Store(ColumnVector* result, size_t row, Datum value) {
    result->Set(row, CopyDatum(value, result->type(), rows_.arena()));
  }

  Status RunAggregate(const WindowCall& call, const RowBatch& input,
                      const std::vector<uint32_t>& order, const std::vector<Range>& partitions,
                      ColumnVector* result) {
    GroupedAggregate aggregate(call.aggregate);
    for (const Range& part : partitions) {
      CELLAR_TRY(state_.CheckCancel());
      aggregate.Reset();
      for (size_t i = part.start; i < part.end;) {
        size_t end = part.end;
        if (call.frame == WindowCall::Frame::kRangeToCurrent && !window_.order_by.empty())
          end = peers_[i].end;
        if (call.frame == WindowCall::Frame::kRowsToCurrent) end = i + 1;
        RowBatch step;
        step.Reset(TypesOf(child_->node().output));
        step.AppendRows(input, std::span(order).subspan(i, end - i));
        CELLAR_TRY(aggregate.Add(step, RowGroups(), 1, context()));
        ColumnVector value(call.result);
        CELLAR_TRY(aggregate.Finish(0, 1, context(), &value));
        Store(result, i, value.Get(0));
        for (size_t r = i + 1; r < end; ++r) result->Set(r, result->Get(i));
        i = end;
      }
    }
    return Status();
  }

  Status RunFunction(const WindowCall& call, const RowBatch& input,
                     const std::vector<uint32_t>& order, const std::vector<Range>& partitions,
                     ColumnVector* result) {
    std::vector<Evaluator> evaluators;
    std::vector<const ColumnVector*> args;
    for (const ExprPtr& arg : call.args) evaluators.emplace_back(arg.get());
    for (Evaluator& evaluator : evaluators) {
      CELLAR_TRY_ASSIGN(const ColumnVector* values,
                        evaluator.Eval(input, Selection{nullptr, input.size()}, context()));
      args.push_back(values);
    }
    for (const Range& part : partitions) {
      CELLAR_TRY(state_.CheckCancel());
      const size_t count = part.end - part.start;
      int64_t dense = 0;
      for (size_t i = part.start; i < part.end; ++i) {
        const uint32_t row = order[i];
        const size_t position = i - part.start;
        const Range peers = peers_[i];
        if (peers.start == i) ++dense;
        // The frame's last row, for first_value and friends.
        size_t frame_end = part.end;
        if (call.frame == WindowCall::Frame::kRowsToCurrent) frame_end = i + 1;
        if (call.frame == WindowCall::Frame::kRangeToCurrent && !window_.order_by.empty())
          frame_end = peers.end;
        const std::string& name = call.function;
        if (name == "row_number") {
          result->Set(i, Datum::Int(static_cast<int64_t>(position) + 1));
        } else if (name == "rank") {
          result->Set(i, Datum::Int(static_cast<int64_t>(peers.start - part.start) + 1));
        } else if (name == "dense_rank") {
          result->Set(i, Datum::Int(dense));
        } else if (name == "percent_rank") {
          const double rank = static_cast<double>(peers.start - part.start);
          result->Set(i, Datum::Double(count <= 1 ? 0 : rank / static_cast<double>(count - 1)));
        } else if (name == "cume_dist") {
          result->Set(i, Datum::Double(static_cast<double>(peers.end - part.start) /
                                       static_cast<double>(count)));
        } else if (name == "ntile") {
          const Datum buckets = args[0]->Get(row);
          if (buckets.is_null()) {
            result->SetNull(i);
            continue;
          }
          if (buckets.int_value() <= 0) {
            return SqlError(Code::kInvalid, "22014", "argument of ntile must be greater than zero");
          }
          const size_t n = static_cast<size_t>(buckets.int_value());
          const size_t size = count / n, larger = count % n;
          const size_t cut = larger * (size + 1);
          const size_t bucket = position < cut
                                    ? position / (size + 1)
                                    : larger + (position - cut) / std::max<size_t>(size, 1);
          result->Set(i, Datum::Int(static_cast<int64_t>(bucket) + 1));
        } else if (name == "lag" || name == "lead") {
          int64_t offset = 1;
          if (args.size() > 1) {
            const Datum given = args[1]->Get(row);
            if (given.is_null()) {
              result->SetNull(i);
              continue;
            }
            offset = given.int_value();
          }
          if (name == "lag") offset = -offset;
          const int64_t target = static_cast<int64_t>(position) + offset;
          if (target >= 0 && target < static_cast<int64_t>(count)) {
            Store(result, i, args[0]->Get(order[part.start + static_cast<size_t>(target)]));
          } else {
            Store(result, i, args.size() > 2 ? args[2]->Get(row) : Datum());
          }
        } else if (name == "first_value") {
          Store(result, i, args[0]->Get(order[part.start]));
        } else if (name == "last_value") {
          Store(result, i, args[0]->Get(order[frame_end - 1]));
        } else if (name == "nth_value") {
          const Datum n = args[1]->Get(row);
          if (n.is_null()) {
            result->SetNull(i);
            continue;
          }
          if (n.int_value() <= 0) {
            return SqlError(Code::kInvalid, "22016",
                            "argument of nth_value must be greater than zero");
          }
          const uint64_t at = static_cast<uint64_t>(n.int_value()) - 1;
          Store(result, i,
                part.start + at < frame_end ? args[0]->Get(order[part.start + at]) : Datum());
        } else {
          return UnsupportedError("window function {} is not supported", name);
        }
      }
    }
    return Status();
  }

  OperatorPtr child_;
  const WindowNode& window_;
  Arena arena_;
  RowBatch rows_, out_;
  std::vector<Range> peers_;  // by position in window order
  size_t next_ = 0;
  bool done_ = false;
};

}  // namespace

Result<OperatorPtr> BuildWindow(const PlanNode& node, OperatorPtr child, ExecState* state) {
  return OperatorPtr(std::make_unique<WindowOperator>(node, std::move(child), state));
}

}  // namespace cellar::sql::exec
