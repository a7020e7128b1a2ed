#include "cellar/sql/exec/subplans.h"

#include <array>

#include "cellar/base/sqlstate.h"
#include "cellar/types/array.h"

namespace cellar::sql::exec {
namespace {

// Restores the arena that the interrupted evaluation was using.
class ArenaGuard {
 public:
  explicit ArenaGuard(EvalContext& context) : context_(context), arena_(context.arena()) {}
  ~ArenaGuard() { context_.set_arena(arena_); }
  ArenaGuard(const ArenaGuard&) = delete;
  ArenaGuard& operator=(const ArenaGuard&) = delete;

 private:
  EvalContext& context_;
  Arena* arena_;
};

// `left op right` by the operator of a quantified comparison; neither is NULL.
Result<Datum> Compare(const Expr& expr, std::span<const Datum> operands, Type left, Type right,
                      EvalContext& context) {
  if (expr.function->scalar != nullptr) return expr.function->scalar(context, expr, operands);
  ColumnVector a(left), b(right), result(MakeType(TypeId::kBool));
  a.Append(operands[0]);
  b.Append(operands[1]);
  result.Resize(1);
  const std::array<const ColumnVector*, 2> args = {&a, &b};
  CELLAR_TRY(expr.function->vector(context, expr, args, Selection{nullptr, 1}, &result));
  return result.Get(0);
}

}  // namespace

Subplans::Subplans(ExecState* state) : state_(*state), subplans_(state->plan->subplans.size()) {}

Status Subplans::Refresh(const Expr& expr, State* state, EvalContext& context) {
  const PlanNode& plan = *state_.plan->subplans[expr.index];
  if (!state->root) {
    CELLAR_TRY_ASSIGN(state->root, Build(plan, &state_));
    state->slots = OuterSlots(plan, *state_.plan);
    state->keeps = !ReadsWorkTable(plan, *state_.plan);
  }
  const bool needs_all =
      expr.subplan_kind != SubplanKind::kExists && expr.subplan_kind != SubplanKind::kScalar;
  if (state->ready && state->keeps && (state->complete || !needs_all)) {
    bool same = true;
    for (size_t i = 0; i < state->slots.size() && same; ++i) {
      const Datum now = context.exec_parameters[state->slots[i]];
      const Value& then = state->slot_values[i];
      same =
          now.is_null() == then.is_null() &&
          (now.is_null() || CompareDatums(now, then.datum(), WithoutCollation(then.type())) == 0);
    }
    if (same) return Status();
  }
  state->slot_values.clear();
  for (int slot : state->slots) {
    state->slot_values.emplace_back(context.exec_parameter_types[slot],
                                    context.exec_parameters[slot]);
  }
  state->ready = false;
  state->complete = false;
  state->keys.reset();
  state->rows.Reset(TypesOf(plan.output));
  CELLAR_TRY(state->root->Open());
  const size_t enough = expr.subplan_kind == SubplanKind::kExists   ? 1
                        : expr.subplan_kind == SubplanKind::kScalar ? 2
                                                                    : SIZE_MAX;
  while (state->rows.size() < enough) {
    CELLAR_TRY_ASSIGN(RowBatch * batch, state->root->Next());
    if (batch == nullptr) {
      state->complete = true;
      break;
    }
    state->rows.AppendAll(*batch);
    CELLAR_TRY(state_.CheckMemory(state->rows.footprint_bytes()));
  }
  state->ready = true;
  return Status();
}

Result<Datum> Subplans::Run(const Expr& expr, std::span<const Datum> left, EvalContext& context) {
  State& state = subplans_[expr.index];
  {
    ArenaGuard guard(context);
    CELLAR_TRY(Refresh(expr, &state, context));
  }
  const RowBatch& rows = state.rows;
  switch (expr.subplan_kind) {
    case SubplanKind::kExists: return Datum::Bool(rows.size() > 0);
    case SubplanKind::kScalar:
      if (rows.size() > 1) {
        return SqlError(Code::kInvalid, sqlstate::kCardinalityViolation,
                        "more than one row returned by a subquery used as an expression");
      }
      if (rows.size() == 0) return Datum();
      return CopyDatum(rows.column(0).Get(0), rows.column(0).type(), context.arena());
    case SubplanKind::kArray: {
      const ColumnVector& column = rows.column(0);
      std::vector<Datum> values(rows.size());
      for (size_t row = 0; row < rows.size(); ++row) values[row] = column.Get(row);
      CELLAR_TRY_ASSIGN(std::string_view array,
                        AccumulateArray(values, column.type(), context.arena()));
      return Datum::Bytes(array);
    }
    case SubplanKind::kAny:
    case SubplanKind::kAll: return Quantified(expr, left, &state, context);
  }
  return InternalError("unknown kind of subquery");
}

Result<Datum> Subplans::Quantified(const Expr& expr, std::span<const Datum> left, State* state,
                                   EvalContext& context) {
  const bool any = expr.subplan_kind == SubplanKind::kAny;
  const RowBatch& rows = state->rows;
  if (rows.size() == 0) return Datum::Bool(!any);
  const bool equality =
      expr.function == nullptr || expr.function->comparison == FunctionSpec::Comparison::kEqual;
  if (any && equality && left.size() == 1) {
    if (left[0].is_null()) return Datum();
    if (!state->keys) {
      state->keys = std::make_unique<KeyTable>();
      state->keys->Reset(std::vector<Type>{rows.column(0).type()});
      std::vector<uint32_t> ids(rows.size());
      const ColumnVector* column = &rows.column(0);
      state->keys->FindOrInsert({&column, 1}, rows.size(), ids.data());
      state->has_null = false;
      for (size_t row = 0; row < rows.size(); ++row) state->has_null |= column->IsNull(row);
    }
    ColumnVector probe(rows.column(0).type());
    probe.Append(left[0]);
    const ColumnVector* column = &probe;
    uint32_t id;
    state->keys->Find({&column, 1}, 1, &id);
    if (id != KeyTable::kAbsent) return Datum::Bool(true);
    return state->has_null ? Datum() : Datum::Bool(false);
  }
  bool unknown = false;
  Poller poller(context.cancel);
  for (size_t row = 0; row < rows.size(); ++row) {
    CELLAR_TRY(poller.Step());
    // Rows of several columns compare for equality column by column, three-valued.
    bool null = false, result = true;
    for (size_t c = 0; c < left.size(); ++c) {
      const Datum right = rows.column(c).Get(row);
      if (left[c].is_null() || right.is_null()) {
        null = true;
        continue;
      }
      bool holds;
      if (expr.function == nullptr) {
        holds = CompareDatums(left[c], right, rows.column(c).type()) == 0;
      } else {
        const Datum pair[2] = {left[c], right};
        CELLAR_TRY_ASSIGN(Datum value,
                          Compare(expr, pair, expr.args[c]->type, rows.column(c).type(), context));
        if (value.is_null()) {
          null = true;
          continue;
        }
        holds = value.bool_value();
      }
      if (!holds) {
        result = false;
        null = false;
        break;
      }
    }
    if (null)
      unknown = true;
    else if (result == any)
      return Datum::Bool(any);
  }
  return unknown ? Datum() : Datum::Bool(!any);
}

}  // namespace cellar::sql::exec
