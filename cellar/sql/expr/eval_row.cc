// One row at a time: every kind of expression, without vectors.
#include <chrono>

#include "cellar/base/interrupt.h"
#include "cellar/sql/expr/record_field.h"
#include "cellar/sql/expr/registry.h"
#include "cellar/types/array.h"
#include "cellar/types/json.h"
#include "cellar/types/record.h"

namespace cellar::sql {
namespace {

constexpr size_t kInlineArgs = 6;

// Evaluates all arguments of a call into a small buffer on the stack.
class ArgBuffer {
 public:
  explicit ArgBuffer(size_t count) : count_(count) {
    if (count > kInlineArgs) large_.resize(count);
  }
  Datum* data() { return large_.empty() ? inline_ : large_.data(); }
  Datum& operator[](size_t i) { return data()[i]; }
  Args args() { return {data(), count_}; }

 private:
  size_t count_;
  Datum inline_[kInlineArgs];
  std::vector<Datum> large_;
};

Result<Datum> EvalArray(const Expr& e, EvalContext& context, const RowBatch* input, size_t row) {
  const Type element = ElementOf(e.type);
  // Arrays among the arguments are parts of the new one; vectors are elements like others.
  if (e.args.empty() || !e.args[0]->type.array) {
    ArrayBuilder builder(element);
    for (const ExprPtr& arg : e.args) {
      CELLAR_TRY_ASSIGN(Datum value, EvalRow(*arg, context, input, row));
      CELLAR_TRY(builder.TryAdd(value));
    }
    return Datum::Bytes(builder.Finish(context.arena()));
  }
  ArrayStacker stacker(element);
  bool fits = true, some = false, none = false;
  for (const ExprPtr& arg : e.args) {
    CELLAR_TRY_ASSIGN(Datum value, EvalRow(*arg, context, input, row));
    if (value.is_null() || ArrayView(value.bytes(), element).dimensions() == 0) {
      none = true;
      continue;
    }
    some = true;
    CELLAR_TRY_ASSIGN(const bool same, stacker.Add(value.bytes()));
    fits = fits && same;
  }
  if (!fits || (some && none)) {
    return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                    "multidimensional arrays must have array expressions with matching "
                    "dimensions");
  }
  CELLAR_TRY_ASSIGN(std::string_view array, stacker.Finish(context.arena()));
  return Datum::Bytes(array);
}

Result<Datum> EvalSubscript(const Expr& e, EvalContext& context, const RowBatch* input,
                            size_t row) {
  CELLAR_TRY_ASSIGN(Datum array, EvalRow(*e.args[0], context, input, row));
  std::vector<int64_t> subscripts;
  if (e.args[0]->type == MakeType(TypeId::kJsonb)) {
    if (array.is_null()) return array;
    std::string_view text = array.bytes();
    for (size_t i = 1; i < e.args.size(); ++i) {
      CELLAR_TRY_ASSIGN(Datum key, EvalRow(*e.args[i], context, input, row));
      if (key.is_null()) return Datum();
      std::optional<std::string_view> next = IsInteger(e.args[i]->type)
                                                 ? JsonElement(text, key.int_value())
                                                 : JsonField(text, key.bytes());
      if (!next.has_value()) return Datum();
      text = *next;
    }
    return Datum::Bytes(text);
  }
  for (size_t i = 1; i < e.args.size(); ++i) {
    CELLAR_TRY_ASSIGN(Datum value, EvalRow(*e.args[i], context, input, row));
    if (value.is_null()) return Datum();
    subscripts.push_back(value.int_value());
  }
  if (e.args[0]->type == MakeType(TypeId::kName)) {
    if (array.is_null() || subscripts.size() != 1 || subscripts[0] < 0 ||
        subscripts[0] >= static_cast<int64_t>(array.bytes().size())) {
      return Datum();
    }
    return Datum::Int(
        static_cast<unsigned char>(array.bytes()[static_cast<size_t>(subscripts[0])]));
  }
  if (array.is_null()) return Datum();
  ArrayView view(array.bytes(), ElementOf(e.args[0]->type));
  if (subscripts.size() == 1) return view.At(subscripts[0]);
  return view.At(subscripts);
}

Result<Datum> EvalSubplan(const Expr& e, EvalContext& context, const RowBatch* input, size_t row) {
  if (context.subplans == nullptr) return InternalError("subplan without a runner");
  ArgBuffer left(e.args.size());
  for (size_t i = 0; i < e.args.size(); ++i) {
    CELLAR_TRY_ASSIGN(left[i], EvalRow(*e.args[i], context, input, row));
  }
  for (size_t i = 0; i < e.slots.size(); ++i) {
    CELLAR_TRY_ASSIGN(Datum value, EvalRow(*e.slot_values[i], context, input, row));
    size_t slot = static_cast<size_t>(e.slots[i]);
    if (slot >= context.exec_parameters.size()) context.exec_parameters.resize(slot + 1);
    context.exec_parameters[slot] = value;
    if (slot >= context.exec_parameter_types.size()) context.exec_parameter_types.resize(slot + 1);
    context.exec_parameter_types[slot] = e.slot_values[i]->type;
  }
  return context.subplans->Run(e, left.args(), context);
}

Result<Datum> EvalIn(const Expr& e, EvalContext& context, const RowBatch* input, size_t row) {
  CELLAR_TRY_ASSIGN(Datum value, EvalRow(*e.args[0], context, input, row));
  if (value.is_null()) return Datum();
  const bool negated = e.kind == ExprKind::kNotInList;
  bool null = false;
  for (size_t i = 1; i < e.args.size(); ++i) {
    CELLAR_TRY_ASSIGN(Datum item, EvalRow(*e.args[i], context, input, row));
    if (item.is_null())
      null = true;
    else if (CompareDatums(value, item, e.args[0]->type) == 0)
      return Datum::Bool(!negated);
  }
  return null ? Datum() : Datum::Bool(negated);
}

Result<Datum> EvalAnyArray(const Expr& e, EvalContext& context, const RowBatch* input, size_t row) {
  CELLAR_TRY_ASSIGN(Datum value, EvalRow(*e.args[0], context, input, row));
  CELLAR_TRY_ASSIGN(Datum array, EvalRow(*e.args[1], context, input, row));
  return CompareWithArray(e, value, array, context);
}

}  // namespace

Result<Datum> CompareWithArray(const Expr& e, Datum value, Datum array, EvalContext& context) {
  if (array.is_null()) return Datum();
  const bool any = e.kind == ExprKind::kAnyArray;
  ArrayView view(array.bytes(), ElementOf(e.args[1]->type));
  if (view.size() == 0) return Datum::Bool(!any);
  if (value.is_null() && e.function->strict) return Datum();
  bool null = false;
  Datum pair[2] = {value, Datum()};
  for (size_t i = 0; i < view.size(); ++i) {
    CELLAR_TRY(context.Step());
    pair[1] = view.Get(i);
    if (pair[1].is_null() && e.function->strict) {
      null = true;
      continue;
    }
    CELLAR_TRY_ASSIGN(Datum result, e.function->scalar(context, e, Args(pair, 2)));
    if (result.is_null())
      null = true;
    else if (result.bool_value() == any)
      return Datum::Bool(any);
  }
  return null ? Datum() : Datum::Bool(!any);
}

Result<Datum> CallLong(const Expr& call, EvalContext& context, Args args) {
  MemoryCharge charge(MemoryAccount::Current());
  size_t bytes = 0;
  for (const Datum& arg : args) bytes += arg.byte_count();
  CELLAR_TRY(charge.Resize(bytes));
  Result<Datum> value = call.function->scalar(context, call, args);
  if (value.ok() && !HasForm(*value, call.type)) return WrongForm(call);
  return value;
}

Result<Datum> EvalRow(const Expr& e, EvalContext& context, const RowBatch* input, size_t row) {
  switch (e.kind) {
    case ExprKind::kConstant: return e.constant.datum();
    case ExprKind::kColumn:
      if (input == nullptr) return InternalError("column reference without a row");
      return input->column(static_cast<size_t>(e.index)).Get(row);
    case ExprKind::kParameter:
      if (static_cast<size_t>(e.index) >= context.parameters.size()) {
        return SqlError(Code::kInvalid, sqlstate::kUndefinedParameter, "there is no parameter ${}",
                        e.index + 1);
      }
      return context.parameters[static_cast<size_t>(e.index)];
    case ExprKind::kExecParameter:
      if (static_cast<size_t>(e.index) >= context.exec_parameters.size()) {
        return InternalError("slot {} was not set", e.index);
      }
      return context.exec_parameters[static_cast<size_t>(e.index)];
    case ExprKind::kCall: {
      const FunctionSpec& spec = *e.function;
      if (spec.relabel) return EvalRow(*e.args[0], context, input, row);
      ArgBuffer args(e.args.size());
      for (size_t i = 0; i < e.args.size(); ++i) {
        CELLAR_TRY_ASSIGN(args[i], EvalRow(*e.args[i], context, input, row));
        if (spec.strict && args[i].is_null()) return Datum();
      }
      if (spec.scalar == nullptr) {
        return UnsupportedError("set-valued function called in context that cannot accept a set");
      }
      return CallScalar(e, context, args.args());
    }
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      const bool ends = e.kind == ExprKind::kOr;
      bool null = false;
      for (const ExprPtr& arg : e.args) {
        CELLAR_TRY_ASSIGN(Datum value, EvalRow(*arg, context, input, row));
        if (value.is_null())
          null = true;
        else if (value.bool_value() == ends)
          return Datum::Bool(ends);
      }
      return null ? Datum() : Datum::Bool(!ends);
    }
    case ExprKind::kNot: {
      CELLAR_TRY_ASSIGN(Datum value, EvalRow(*e.args[0], context, input, row));
      return value.is_null() ? value : Datum::Bool(!value.bool_value());
    }
    case ExprKind::kCase:
      for (size_t i = 0; i + 1 < e.args.size(); i += 2) {
        CELLAR_TRY_ASSIGN(Datum when, EvalRow(*e.args[i], context, input, row));
        if (!when.is_null() && when.bool_value()) {
          return EvalRow(*e.args[i + 1], context, input, row);
        }
      }
      return EvalRow(*e.args.back(), context, input, row);
    case ExprKind::kCoalesce:
      for (const ExprPtr& arg : e.args) {
        CELLAR_TRY_ASSIGN(Datum value, EvalRow(*arg, context, input, row));
        if (!value.is_null()) return value;
      }
      return Datum();
    case ExprKind::kNullIf: {
      Datum pair[2];
      CELLAR_TRY_ASSIGN(pair[0], EvalRow(*e.args[0], context, input, row));
      CELLAR_TRY_ASSIGN(pair[1], EvalRow(*e.args[1], context, input, row));
      if (pair[0].is_null() || pair[1].is_null()) return pair[0];
      CELLAR_TRY_ASSIGN(Datum equal, e.function->scalar(context, e, Args(pair, 2)));
      return !equal.is_null() && equal.bool_value() ? Datum() : pair[0];
    }
    case ExprKind::kGreatest:
    case ExprKind::kLeast: {
      Datum best;
      for (const ExprPtr& arg : e.args) {
        CELLAR_TRY_ASSIGN(Datum value, EvalRow(*arg, context, input, row));
        if (value.is_null()) continue;
        if (best.is_null()) {
          best = value;
          continue;
        }
        int order = CompareDatums(value, best, e.type);
        if (e.kind == ExprKind::kGreatest ? order > 0 : order < 0) best = value;
      }
      return best;
    }
    case ExprKind::kIsNull:
    case ExprKind::kIsNotNull: {
      CELLAR_TRY_ASSIGN(Datum value, EvalRow(*e.args[0], context, input, row));
      if (!value.is_null() && e.args[0]->type == MakeType(TypeId::kRecord)) {
        // A row IS NULL when all its fields are, IS NOT NULL when none is.
        for (const RecordField& field : RecordFields(value.bytes())) {
          if (field.value.is_null() != (e.kind == ExprKind::kIsNull)) return Datum::Bool(false);
        }
        return Datum::Bool(true);
      }
      return Datum::Bool(value.is_null() == (e.kind == ExprKind::kIsNull));
    }
    case ExprKind::kIsTrue:
    case ExprKind::kIsNotTrue:
    case ExprKind::kIsFalse:
    case ExprKind::kIsNotFalse:
    case ExprKind::kIsUnknown:
    case ExprKind::kIsNotUnknown: {
      CELLAR_TRY_ASSIGN(Datum value, EvalRow(*e.args[0], context, input, row));
      const bool is_true = !value.is_null() && value.bool_value();
      const bool is_false = !value.is_null() && !value.bool_value();
      switch (e.kind) {
        case ExprKind::kIsTrue: return Datum::Bool(is_true);
        case ExprKind::kIsNotTrue: return Datum::Bool(!is_true);
        case ExprKind::kIsFalse: return Datum::Bool(is_false);
        case ExprKind::kIsNotFalse: return Datum::Bool(!is_false);
        case ExprKind::kIsUnknown: return Datum::Bool(value.is_null());
        default: return Datum::Bool(!value.is_null());
      }
    }
    case ExprKind::kIsDistinct:
    case ExprKind::kIsNotDistinct: {
      CELLAR_TRY_ASSIGN(Datum a, EvalRow(*e.args[0], context, input, row));
      CELLAR_TRY_ASSIGN(Datum b, EvalRow(*e.args[1], context, input, row));
      bool distinct = a.is_null() != b.is_null();
      if (!a.is_null() && !b.is_null()) {
        if (e.function != nullptr) {
          Datum pair[2] = {a, b};
          CELLAR_TRY_ASSIGN(Datum equal, e.function->scalar(context, e, Args(pair, 2)));
          distinct = equal.is_null() || !equal.bool_value();
        } else {
          distinct = CompareDatums(a, b, e.args[0]->type) != 0;
        }
      }
      return Datum::Bool(distinct == (e.kind == ExprKind::kIsDistinct));
    }
    case ExprKind::kInList:
    case ExprKind::kNotInList: return EvalIn(e, context, input, row);
    case ExprKind::kArray: return EvalArray(e, context, input, row);
    case ExprKind::kSubscript: return EvalSubscript(e, context, input, row);
    case ExprKind::kAnyArray:
    case ExprKind::kAllArray: return EvalAnyArray(e, context, input, row);
    case ExprKind::kRow: {
      const size_t count = FieldCount(e);
      if (count < e.args.size()) {
        CELLAR_TRY_ASSIGN(const Datum there, EvalRow(*e.args[count], context, input, row));
        if (there.is_null()) return Datum();
      }
      std::vector<RecordField> fields;
      fields.reserve(count);
      for (size_t i = 0; i < count; ++i) {
        CELLAR_TRY_ASSIGN(Datum value, EvalRow(*e.args[i], context, input, row));
        std::string_view name;
        if (i < e.names.size()) name = e.names[i];
        fields.push_back({e.args[i]->type, value, name});
      }
      CELLAR_TRY_ASSIGN(std::string_view record, MakeRecord(fields, context.arena()));
      return Datum::Bytes(record);
    }
    case ExprKind::kSubplan: return EvalSubplan(e, context, input, row);
  }
  return InternalError("unknown expression kind");
}

Result<Datum> EvalScalar(const Expr& expr, EvalContext& context) {
  return EvalRow(expr, context, nullptr, 0);
}

Status EvalContext::Poll() {
  steps_left_ = kPollSteps;
  return cancel == nullptr ? InterruptScope::Check() : cancel->Check();
}

uint64_t EvalContext::NextRandom() {
  if (!seeded_) {
    if (random != nullptr) return random(random_state);
    SeedRandom(static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
  }
  seed_ += 0x9E3779B97F4A7C15;
  uint64_t z = seed_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace cellar::sql
