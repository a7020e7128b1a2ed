#include "cellar/sql/exec/executor.h"

#include "cellar/sql/exec/operator.h"
#include "cellar/sql/exec/subplans.h"

namespace cellar::sql {

struct Execution::Impl {
  std::shared_ptr<const Plan> plan;
  exec::ExecState state;
  std::unique_ptr<exec::Subplans> subplans;
  exec::OperatorPtr root;
  bool counts_output = false;
  bool done = false;
};

Execution::Execution(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Execution::~Execution() = default;

Result<std::unique_ptr<Execution>> Execution::Open(std::shared_ptr<const Plan> plan,
                                                   const ExecEnvironment& environment) {
  auto impl = std::make_unique<Impl>();
  impl->plan = std::move(plan);
  exec::ExecState& state = impl->state;
  state.plan = impl->plan.get();
  state.env = environment;
  state.context = environment.context;
  if (environment.analyze) state.counters.resize(impl->plan->num_nodes);
  state.ctes.resize(impl->plan->ctes.size());
  state.work_tables.resize(impl->plan->num_work_tables, nullptr);
  state.context->exec_parameters.assign(impl->plan->num_slots, Datum());
  state.context->exec_parameter_types.assign(impl->plan->num_slots, MakeType(TypeId::kInt8));
  impl->subplans = std::make_unique<exec::Subplans>(&state);
  state.context->subplans = impl->subplans.get();
  impl->counts_output = impl->plan->kind == StatementKind::kSelect;
  CELLAR_TRY_ASSIGN(impl->root, exec::Build(*impl->plan->root, &state));
  CELLAR_TRY(impl->root->Open());
  return std::make_unique<Execution>(std::move(impl));
}

Result<const RowBatch*> Execution::Next() {
  if (impl_->done) return nullptr;
  impl_->state.context->subplans = impl_->subplans.get();
  CELLAR_TRY(impl_->state.CheckCancel());
  CELLAR_TRY_ASSIGN(RowBatch * batch, impl_->root->Next());
  if (batch == nullptr) {
    impl_->done = true;
    CELLAR_TRY(exec::FinishModifyingCtes(&impl_->state));
    return nullptr;
  }
  if (impl_->counts_output) impl_->state.rows_affected += batch->size();
  return batch;
}

uint64_t Execution::rows_affected() const { return impl_->state.rows_affected; }

std::span<const NodeCounters> Execution::counters() const { return impl_->state.counters; }

}  // namespace cellar::sql
