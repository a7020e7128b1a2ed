// Subqueries inside expressions. Private to this layer.
#pragma once

#include <memory>
#include <vector>

#include "cellar/sql/exec/key_table.h"
#include "cellar/sql/exec/operator.h"

namespace cellar::sql::exec {

// Each subplan keeps its rows with the outer slots they were made for; it runs again only when
// those differ.
class Subplans : public SubplanRunner {
 public:
  explicit Subplans(ExecState* state);
  Result<Datum> Run(const Expr& subplan, std::span<const Datum> left,
                    EvalContext& context) override;

 private:
  struct State {
    OperatorPtr root;
    std::vector<int> slots;
    std::vector<Value> slot_values;
    bool ready = false;
    bool keeps = true;      // false: reads a recursive query's work table
    bool complete = false;  // all rows were read, not only as many as EXISTS or a scalar needs
    RowBatch rows;
    // kAny by equality over one run's rows.
    std::unique_ptr<KeyTable> keys;
    bool has_null = false;
  };
  Status Refresh(const Expr& expr, State* state, EvalContext& context);
  Result<Datum> Quantified(const Expr& expr, std::span<const Datum> left, State* state,
                           EvalContext& context);

  ExecState& state_;
  std::vector<State> subplans_;
};

}  // namespace cellar::sql::exec
