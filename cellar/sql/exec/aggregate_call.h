// One aggregate of a plan over groups: FILTER, DISTINCT, ORDER BY and NULL arguments are dealt with
// here, so that the aggregate's state sees plain rows. Private to this layer.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cellar/sql/exec/key_table.h"
#include "cellar/sql/exec/operator.h"

namespace cellar::sql::exec {

// The groups that the rows of a batch belong to.
struct RowGroups {
  const uint32_t* ids = nullptr;  // one a row; null: all rows are of group `one`
  uint32_t one = 0;
  // Perhaps the same once more, for few groups: the rows of each, ascending.
  struct Part {
    uint32_t group, start, count;  // order[start, start + count)
  };
  std::span<const Part> parts;
  const uint32_t* order = nullptr;
};

class GroupedAggregate {
 public:
  explicit GroupedAggregate(const AggregateCall& call);

  void Reset();
  // All groups are below `group_count`.
  Status Add(const RowBatch& input, RowGroups groups, size_t group_count, EvalContext& context);
  // Appends the results of groups [start, end) to *result. May be called between Adds.
  Status Finish(size_t start, size_t end, EvalContext& context, ColumnVector* result);
  size_t footprint_bytes() const;

 private:
  Status AddRows(Selection rows, RowGroups groups, EvalContext& context);
  Status AddOrdered(size_t group_count, EvalContext& context);

  const AggregateCall& call_;
  std::vector<Type> arg_types_;
  std::vector<Evaluator> args_;
  std::optional<Evaluator> filter_;
  std::vector<Evaluator> order_;
  std::unique_ptr<AggregateState> state_;
  KeyTable seen_;      // DISTINCT: (group, arguments)
  RowBatch buffered_;  // ORDER BY: group, arguments, sort keys
  size_t group_count_ = 0;
  // Scratch.
  std::vector<uint32_t> rows_, kept_, groups_, ids_;
  std::vector<uint8_t> fresh_;
  std::vector<const ColumnVector*> vectors_;
};

}  // namespace cellar::sql::exec
