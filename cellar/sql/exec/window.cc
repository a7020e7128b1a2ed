// Window functions: the input is sorted by partition and order, then each call computed over all
// rows.
#include <algorithm>
#include <optional>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/exec/operator.h"
#include "cellar/sql/exec/sort.h"
#include "cellar/sql/exec/window_aggregate.h"
#include "cellar/sql/exec/window_frame.h"

namespace cellar::sql::exec {
namespace {

class WindowOperator : public Operator {
 public:
  WindowOperator(const PlanNode& node, OperatorPtr child, ExecState* state)
      : Operator(node, state), child_(std::move(child)), window_(node.As<FramedWindowNode>()) {}

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
  Status Compute() {
    arena_.Reset();
    context().set_arena(&arena_);
    shared_ = WindowRows();
    shared_.rows = &rows_;
    {
      RowBatch input;
      input.Reset(TypesOf(child_->node().output));
      CELLAR_TRY(ReadAll(child_.get(), &state_, &input));
      if (input.size() >= UINT32_MAX) return state_.CheckMemory(SIZE_MAX);
      CELLAR_TRY(Arrange(input));
    }
    const auto count = static_cast<uint32_t>(rows_.size());
    std::optional<Evaluator> order;
    if (!window_.order_by.empty()) {
      const SortKey& key = window_.order_by[0];
      order.emplace(key.expr.get());
      CELLAR_TRY_ASSIGN(shared_.order, order->Eval(rows_, Selection{nullptr, count}, context()));
      shared_.descending = key.descending;
      shared_.nulls_first = key.nulls_first;
    }
    std::vector<ColumnVector> results;
    for (size_t c = 0; c < window_.calls.size(); ++c) {
      const WindowCall& call = window_.calls[c];
      ColumnVector result(call.result);
      result.Resize(count);
      Frames frames(window_.frames[c], shared_);
      CELLAR_TRY(frames.Compute(context()));
      if (call.aggregate.spec != nullptr) {
        WindowAggregate aggregate(call.aggregate, shared_, frames, &state_);
        CELLAR_TRY(aggregate.Run(context(), &result));
      } else {
        CELLAR_TRY(RunFunction(call, frames, &result));
      }
      results.push_back(std::move(result));
      CELLAR_TRY(state_.CheckMemory(rows_.footprint_bytes() + arena_.footprint_bytes()));
    }
    // Only now: the evaluators above read the columns that were there.
    for (ColumnVector& result : results) rows_.columns().push_back(std::move(result));
    return state_.CheckMemory(rows_.footprint_bytes() + arena_.footprint_bytes());
  }

  // The rows in window order, where partitions end, and where each row's peers begin and end.
  Status Arrange(const RowBatch& input) {
    std::vector<Evaluator> evaluators;
    std::vector<SortColumn> partition, all;
    const Selection every{nullptr, input.size()};
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
    CountedVector<uint32_t> order(input.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    if (!all.empty()) CELLAR_TRY(SortRows(all, context().cancel, &order));
    Poller poller(context().cancel);
    const auto count = static_cast<uint32_t>(order.size());
    shared_.peers.resize(count);
    for (uint32_t i = 0; i < count;) {
      uint32_t end = i + 1;
      while (end < count && CompareRows(partition, order[i], order[end]) == 0) {
        CELLAR_TRY(poller.Step());
        ++end;
      }
      shared_.partitions.push_back({i, end});
      for (uint32_t p = i; p < end;) {
        uint32_t peer_end = p + 1;
        while (peer_end < end && CompareRows(all, order[p], order[peer_end]) == 0) {
          CELLAR_TRY(poller.Step());
          ++peer_end;
        }
        for (uint32_t r = p; r < peer_end; ++r) shared_.peers[r] = {p, peer_end};
        p = peer_end;
      }
      i = end;
    }
    rows_.AppendRows(input, order);
    return state_.CheckMemory(rows_.footprint_bytes() + input.footprint_bytes());
  }

  Status RunFunction(const WindowCall& call, const Frames& frames, ColumnVector* result) {
    std::vector<Evaluator> evaluators;
    std::vector<const ColumnVector*> args;
    for (const ExprPtr& arg : call.args) evaluators.emplace_back(arg.get());
    for (Evaluator& evaluator : evaluators) {
      CELLAR_TRY_ASSIGN(const ColumnVector* values,
                        evaluator.Eval(rows_, Selection{nullptr, rows_.size()}, context()));
      args.push_back(values);
    }
    Poller poller(context().cancel);
    for (const RowRange& part : shared_.partitions) {
      const size_t count = part.end - part.start;
      int64_t dense = 0;
      for (uint32_t i = part.start; i < part.end; ++i) {
        CELLAR_TRY(poller.Step());
        const uint32_t row = i;
        const size_t position = i - part.start;
        const RowRange peers = shared_.peers[i];
        if (peers.start == i) ++dense;
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
            result->Set(i, args[0]->Get(part.start + static_cast<size_t>(target)));
          } else {
            result->Set(i, args.size() > 2 ? args[2]->Get(row) : Datum());
          }
        } else if (name == "first_value") {
          Nth(frames.Of(i), i, 0, *args[0], result);
        } else if (name == "last_value") {
          const FrameRows frame = frames.Of(i);
          Nth(frame, i, frame.size() - 1, *args[0], result);
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
          Nth(frames.Of(i), i, static_cast<uint64_t>(n.int_value()) - 1, *args[0], result);
        } else {
          return UnsupportedError("window function {} is not supported", name);
        }
      }
    }
    return Status();
  }

  // The value at a place of the row's frame, NULL beyond it.
  static void Nth(const FrameRows& frame, uint32_t row, uint64_t at, const ColumnVector& values,
                  ColumnVector* result) {
    if (at >= frame.size()) return result->SetNull(row);
    if (at < frame.before.size()) {
      return result->Set(row, values.Get(frame.before.start + at));
    }
    at -= frame.before.size();
    if (frame.itself && at == 0) return result->Set(row, values.Get(row));
    if (frame.itself) --at;
    result->Set(row, values.Get(frame.after.start + at));
  }

  OperatorPtr child_;
  const FramedWindowNode& window_;
  Arena arena_;  // bytes that calls made, with rows_
  RowBatch rows_, out_;
  WindowRows shared_;
  size_t next_ = 0;
  bool done_ = false;
};

}  // namespace

Result<OperatorPtr> BuildWindow(const PlanNode& node, OperatorPtr child, ExecState* state) {
  return OperatorPtr(std::make_unique<WindowOperator>(node, std::move(child), state));
}

}  // namespace cellar::sql::exec
