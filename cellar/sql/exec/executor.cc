#include "cellar/sql/exec/executor.h"

#include "cellar/sql/exec/operator.h"
#include "cellar/sql/exec/subplans.h"

namespace cellar::sql {

struct Execution::Impl {
  std::shared_ptr<const Plan> plan;
  exec::ExecState state;
  std::unique_ptr<exec::Subplans> subplans;
  exec::OperatorPtr root;
  bool restartable = false;
  bool counts_output = false;
  bool done = false;
};

Execution::Execution(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Execution::~Execution() = default;

namespace {

Status OpenView(ExecEnvironment* environment) {
  if (!environment->with_view || environment->view != nullptr || environment->access == nullptr) {
    return Status();
  }
  CELLAR_TRY_ASSIGN(environment->view, environment->access->OpenView());
  return Status();
}

bool IsRestartable(const Plan& plan) {
  if (!plan.subplans.empty() || !plan.ctes.empty() || plan.num_work_tables != 0) return false;
  for (const PlanNode* node = plan.root.get();; node = node->children[0].get()) {
    switch (node->kind) {
      case PlanKind::kResult:
      case PlanKind::kValues:
      case PlanKind::kScan:
      case PlanKind::kFilter:
      case PlanKind::kProject:
      case PlanKind::kLimit:
      case PlanKind::kLockRows:
      case PlanKind::kInsert:
      case PlanKind::kUpdate:
      case PlanKind::kDelete: break;
      default: return false;
    }
    if (node->children.empty()) return true;
    if (node->children.size() > 1) return false;
  }
}

}  // namespace

Result<std::unique_ptr<Execution>> Execution::Open(std::shared_ptr<const Plan> plan,
                                                   ExecEnvironment environment) {
  auto impl = std::make_unique<Impl>();
  impl->plan = std::move(plan);
  exec::ExecState& state = impl->state;
  state.plan = impl->plan.get();
  state.env = std::move(environment);
  CELLAR_TRY(OpenView(&state.env));
  state.context = state.env.context;
  if (state.env.analyze) state.counters.resize(impl->plan->num_nodes);
  state.ctes.resize(impl->plan->ctes.size());
  exec::FindCtesReadOnce(&state);
  state.work_tables.resize(impl->plan->num_work_tables, nullptr);
  state.context->exec_parameters.assign(impl->plan->num_slots, Datum());
  state.context->exec_parameter_types.assign(impl->plan->num_slots, MakeType(TypeId::kInt8));
  impl->subplans = std::make_unique<exec::Subplans>(&state);
  state.context->subplans = impl->subplans.get();
  impl->counts_output = impl->plan->kind == StatementKind::kSelect;
  impl->restartable = !state.env.analyze && IsRestartable(*impl->plan);
  CELLAR_TRY_ASSIGN(impl->root, exec::Build(*impl->plan->root, &state));
  CELLAR_TRY(impl->root->Open());
  return std::make_unique<Execution>(std::move(impl));
}

bool Execution::restartable() const { return impl_->restartable; }

const Plan* Execution::plan() const { return impl_->plan.get(); }

Status Execution::Restart(ExecEnvironment environment) {
  exec::ExecState& state = impl_->state;
  state.env = std::move(environment);
  CELLAR_TRY(OpenView(&state.env));
  state.context = state.env.context;
  state.rows_affected = state.rows_replaced = 0;
  state.context->exec_parameters.assign(impl_->plan->num_slots, Datum());
  state.context->exec_parameter_types.assign(impl_->plan->num_slots, MakeType(TypeId::kInt8));
  state.context->subplans = impl_->subplans.get();
  impl_->done = false;
  return impl_->root->Open();
}

void Execution::Release() {
  for (exec::Operator* scan : impl_->state.scans) scan->Release();
  impl_->state.env = ExecEnvironment();
  impl_->state.context = nullptr;
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

uint64_t Execution::rows_replaced() const { return impl_->state.rows_replaced; }

std::span<const NodeCounters> Execution::counters() const { return impl_->state.counters; }

}  // namespace cellar::sql
