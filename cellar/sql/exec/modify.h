// What INSERT, UPDATE and DELETE share. Private to this layer.
//
// All the work happens in the first call of Next; RETURNING rows are kept until asked for. A
// statement reads everything at the view of its start and writes batch by batch, so it never meets
// its own writes; what must not be there twice, keys and rows that are changed, it asks for as they
// are now.
#pragma once

#include <string_view>
#include <unordered_set>
#include <vector>

#include "cellar/sql/exec/operator.h"
#include "cellar/sql/exec/row_checks.h"

namespace cellar::sql::exec {

class ModifyOperator : public Operator {
 public:
  ModifyOperator(const PlanNode& node, OperatorPtr child, const catalog::TablePtr& table,
                 const std::vector<CheckExpr>& checks, bool returning,
                 const std::vector<ExprPtr>& returning_exprs, ExecState* state);

 protected:
  Status DoOpen() override;
  Result<RowBatch*> DoNext() override;
  virtual Status Run() = 0;

  // The child's next rows, no more than the environment wants at once; null at the end.
  Result<RowBatch*> NextInput(size_t most = kBatchRows);

  // Looks at NOT NULL and CHECK of rows that `write` will write. A row that breaks them is only met
  // once those before it are written, of earlier batches too: one of them may break a unique
  // constraint. So write(n), which writes the first n rows, is called for 0 rows as well.
  template <typename Write>
  Status Check(const RowBatch& rows, Write&& write) {
    Status broken;
    CELLAR_TRY_ASSIGN(const size_t good, checks_.FirstBroken(rows, &state_, &broken));
    if (good == rows.size()) return Status();
    CELLAR_TRY(write(good));
    if (!broken.ok()) return broken;
    CELLAR_TRY(write(good + 1));
    return InternalError("a NULL in a column that is NOT NULL was written");
  }

  // Counts `rows` as changed, and keeps what RETURNING makes of them.
  Status Return(const RowBatch& rows);

  // The first `width_` columns, borrowed.
  RowBatch FirstColumns(const RowBatch& batch) const;

  // wrote[i]: the statement has changed the row behind refs[i].
  Status WroteAlready(std::span<const std::string_view> refs, std::vector<uint8_t>* wrote) {
    return state_.access().WroteSince(*table_, refs, *state_.env.view, wrote);
  }
  // Drops rows whose target was met before: a join may reach one row twice, and only the first
  // counts; and one that another part of the statement has changed stays as that has left it.
  Status KeepFirst(int row_ref, RowBatch* batch);

  OperatorPtr child_;
  catalog::TablePtr table_;
  const bool returning_;
  ExprList returning_exprs_;
  std::vector<Type> returning_types_;
  size_t width_;  // living columns
  Arena arena_;

 private:
  RowChecks checks_;
  bool may_repeat_ = false;  // rows of the child, or what other parts of the statement change
  bool done_ = false;
  size_t next_ = 0;
  RowBatch results_, out_;
  RowBatch* input_ = nullptr;  // of the child
  size_t input_next_ = 0;
  RowBatch part_;
  std::unordered_set<std::string_view> seen_;
  std::vector<uint8_t> wrote_;
  std::vector<uint32_t> kept_;
};

Result<OperatorPtr> BuildInsert(const PlanNode& node, OperatorPtr child, ExecState* state);

}  // namespace cellar::sql::exec
