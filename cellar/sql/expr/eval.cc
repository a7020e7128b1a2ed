// Expressions over batches: a tree of nodes, each with a vector that it fills again and again.
//
// Invariants:
//   1. A node computes only the rows it is asked for; other rows of its vector are undefined.
//   2. Arms of CASE, COALESCE, AND and OR are asked only for the rows that reach them, so that
//      1/x behind x <> 0 never fails.
//   3. A subtree without columns has one value per call: it is computed once and spread.
#include "cellar/sql/expr/eval.h"

#include <algorithm>
#include <cmath>

#include "cellar/sql/expr/collate.h"
#include "cellar/sql/expr/in_set.h"
#include "cellar/sql/expr/registry.h"
#include "cellar/types/array.h"

namespace cellar::sql {
namespace {

constexpr size_t kHashedListItems = 9;
constexpr size_t kHashedArrayRows = 16;
constexpr size_t kFewRows = 64;

void Spread(Datum value, Selection rows, ColumnVector* out) {
  if (value.is_null()) {
    for (size_t i = 0; i < rows.count; ++i) out->SetNull(rows[i]);
    return;
  }
  switch (out->physical()) {
    case Physical::kInt64: {
      int64_t* data = out->ints();
      for (size_t i = 0; i < rows.count; ++i) data[rows[i]] = value.int_value();
      break;
    }
    case Physical::kDouble: {
      double* data = out->doubles();
      for (size_t i = 0; i < rows.count; ++i) data[rows[i]] = value.double_value();
      break;
    }
    case Physical::kBytes: {
      std::string_view* data = out->bytes();
      for (size_t i = 0; i < rows.count; ++i) data[rows[i]] = value.bytes();
      break;
    }
  }
}

void CopyRows(const ColumnVector& from, Selection rows, ColumnVector* to) {
  for (size_t i = 0; i < rows.count; ++i) {
    uint32_t row = rows[i];
    if (from.nulls()[row] != 0) {
      to->SetNull(row);
      continue;
    }
    to->nulls()[row] = 0;
    if (to->physical() != from.physical())
      to->Set(row, from.Get(row));
    else if (to->physical() == Physical::kBytes)
      to->bytes()[row] = from.bytes()[row];
    else
      to->ints()[row] = from.ints()[row];  // doubles too: eight bytes are copied
  }
}

// A vector whose values lie in memory as those of its expression's type do, unless all are NULL:
// functions over vectors read them without looking.
Status CheckForms(const ColumnVector& values, Selection rows, const Expr& e) {
  if (values.physical() == PhysicalOf(e.type)) return Status();
  for (size_t i = 0; i < rows.count; ++i) {
    if (!values.IsNull(rows[i])) return WrongForm(e);
  }
  return Status();
}

Comparison Swapped(Comparison c) {
  switch (c) {
    case Comparison::kLess: return Comparison::kGreater;
    case Comparison::kLessEqual: return Comparison::kGreaterEqual;
    case Comparison::kGreater: return Comparison::kLess;
    case Comparison::kGreaterEqual: return Comparison::kLessEqual;
    default: return c;
  }
}

// Appends the rows where op(values[row], constant) holds and the value is not NULL. Branch-free:
// every row is written, the count moves only for passing ones.
template <typename T, typename Op>
void SelectRows(const T* values, const uint8_t* nulls, T constant, Selection rows, Op op,
                std::vector<uint32_t>* passing) {
  const size_t start = passing->size();
  passing->resize(start + rows.count);
  uint32_t* out = passing->data() + start;
  size_t count = 0;
  if (rows.rows == nullptr) {
    for (uint32_t row = 0; row < rows.count; ++row) {
      out[count] = row;
      count += static_cast<size_t>(op(values[row], constant) && nulls[row] == 0);
    }
  } else {
    for (size_t i = 0; i < rows.count; ++i) {
      uint32_t row = rows.rows[i];
      out[count] = row;
      count += static_cast<size_t>(op(values[row], constant) && nulls[row] == 0);
    }
  }
  passing->resize(start + count);
}

// As SelectRows for values whose comparison must not touch NULL rows.
template <typename Op>
void SelectBytes(const ColumnVector& values, std::string_view constant, Selection rows, Op op,
                 std::vector<uint32_t>* passing) {
  const std::string_view* data = values.bytes();
  for (size_t i = 0; i < rows.count; ++i) {
    uint32_t row = rows[i];
    if (values.nulls()[row] == 0 && op(data[row], constant)) passing->push_back(row);
  }
}

struct NanOrder {  // NaN is greatest and equal to itself
  static bool Less(double a, double b) {
    if (std::isnan(a)) return false;
    return std::isnan(b) || a < b;
  }
  static bool Equal(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
};

void SelectCompared(const ColumnVector& values, Comparison c, Kernel kernel, Datum constant,
                    Selection rows, std::vector<uint32_t>* passing) {
  if (kernel == Kernel::kInts) {
    const int64_t k = constant.int_value();
    auto run = [&](auto op) { SelectRows(values.ints(), values.nulls(), k, rows, op, passing); };
    switch (c) {
      case Comparison::kEqual: return run([](int64_t a, int64_t b) { return a == b; });
      case Comparison::kNotEqual: return run([](int64_t a, int64_t b) { return a != b; });
      case Comparison::kLess: return run([](int64_t a, int64_t b) { return a < b; });
      case Comparison::kLessEqual: return run([](int64_t a, int64_t b) { return a <= b; });
      case Comparison::kGreater: return run([](int64_t a, int64_t b) { return a > b; });
      case Comparison::kGreaterEqual: return run([](int64_t a, int64_t b) { return a >= b; });
      case Comparison::kNone: return;
    }
  }
  if (kernel == Kernel::kDoubles) {
    const double k = constant.double_value();
    auto run = [&](auto op) { SelectRows(values.doubles(), values.nulls(), k, rows, op, passing); };
    switch (c) {
      case Comparison::kEqual: return run(NanOrder::Equal);
      case Comparison::kNotEqual:
        return run([](double a, double b) { return !NanOrder::Equal(a, b); });
      case Comparison::kLess: return run(NanOrder::Less);
      case Comparison::kLessEqual:
        return run([](double a, double b) { return !NanOrder::Less(b, a); });
      case Comparison::kGreater:
        return run([](double a, double b) { return NanOrder::Less(b, a); });
      case Comparison::kGreaterEqual:
        return run([](double a, double b) { return !NanOrder::Less(a, b); });
      case Comparison::kNone: return;
    }
  }
  const std::string_view k = constant.bytes();
  using V = std::string_view;
  auto run = [&](auto op) { SelectBytes(values, k, rows, op, passing); };
  switch (c) {
    case Comparison::kEqual: return run([](V a, V b) { return a == b; });
    case Comparison::kNotEqual: return run([](V a, V b) { return a != b; });
    case Comparison::kLess: return run([](V a, V b) { return a < b; });
    case Comparison::kLessEqual: return run([](V a, V b) { return a <= b; });
    case Comparison::kGreater: return run([](V a, V b) { return a > b; });
    case Comparison::kGreaterEqual: return run([](V a, V b) { return a >= b; });
    case Comparison::kNone: return;
  }
}

}  // namespace

struct Evaluator::Node {
  enum class Mode : uint8_t {
    kColumn,    // the input's own vector
    kConstant,  // filled once for as many rows as batches have
    kSpread,    // no columns below: one EvalRow a call
    kPass,      // a relabel: the child's vector
    kCall,
    kLogic,  // AND, OR
    kNot,
    kCase,
    kCoalesce,
    kNullTest,
    kTruthTest,
    kIn,
    kAnyArray,
    kRows,  // everything else: EvalRow for each row
  };

  explicit Node(const Expr* e) : expr(e) {
    switch (e->kind) {
      case ExprKind::kColumn: mode = Mode::kColumn; return;
      case ExprKind::kConstant: mode = Mode::kConstant; return;
      default: break;
    }
    const bool plain_subplan = e->kind == ExprKind::kSubplan && e->slots.empty() && e->args.empty();
    if (plain_subplan || IsRowIndependent(*e)) {
      mode = Mode::kSpread;
      return;
    }
    mode = ModeOf(*e);
    if (mode == Mode::kRows) return;
    for (const ExprPtr& arg : e->args) children.push_back(std::make_unique<Node>(arg.get()));
    arg_vectors.resize(children.size());
    arg_values.resize(children.size());
    if (mode == Mode::kIn) PrepareIn();
  }

  static Mode ModeOf(const Expr& e) {
    switch (e.kind) {
      case ExprKind::kCall: return e.function->relabel ? Mode::kPass : Mode::kCall;
      case ExprKind::kAnd:
      case ExprKind::kOr: return Mode::kLogic;
      case ExprKind::kNot: return Mode::kNot;
      case ExprKind::kCase: return Mode::kCase;
      case ExprKind::kCoalesce: return Mode::kCoalesce;
      case ExprKind::kIsNull:
      case ExprKind::kIsNotNull:
        return e.args[0]->type == MakeType(TypeId::kRecord) ? Mode::kRows : Mode::kNullTest;
      case ExprKind::kIsTrue:
      case ExprKind::kIsNotTrue:
      case ExprKind::kIsFalse:
      case ExprKind::kIsNotFalse:
      case ExprKind::kIsUnknown:
      case ExprKind::kIsNotUnknown: return Mode::kTruthTest;
      case ExprKind::kInList:
      case ExprKind::kNotInList: return Mode::kIn;
      case ExprKind::kAnyArray:
      case ExprKind::kAllArray: return Mode::kAnyArray;
      default: return Mode::kRows;
    }
  }

  // The items of an IN list that never change are read once; long lists become a hash set.
  void PrepareIn() {
    for (size_t i = 1; i < expr->args.size(); ++i) {
      if (expr->args[i]->kind != ExprKind::kConstant) return;
    }
    constant_items = true;
    for (size_t i = 1; i < expr->args.size(); ++i) {
      Datum item = expr->args[i]->constant.datum();
      if (item.is_null())
        null_item = true;
      else
        items.push_back(item);
    }
    const FunctionSpec* equal = EqualityOperator(expr->args[0]->type);
    kernel = equal != nullptr && EqualByBytes(expr->args[0]->type.collation) ? equal->kernel
                                                                             : Kernel::kNone;
    hashed = items.size() >= kHashedListItems;
    if (hashed) set.Build(expr->args[0]->type, kernel, items);
  }

  void Prepare(size_t size) {
    result.Reset(expr->type);
    result.Resize(size);
  }

  Result<const ColumnVector*> Eval(const RowBatch& input, Selection rows, EvalContext& context);
  Result<const ColumnVector*> Call(const RowBatch& input, Selection rows, EvalContext& context);
  Result<const ColumnVector*> Logic(const RowBatch& input, Selection rows, EvalContext& context);
  Result<const ColumnVector*> Case(const RowBatch& input, Selection rows, EvalContext& context);
  Result<const ColumnVector*> Coalesce(const RowBatch& input, Selection rows, EvalContext& context);
  Result<const ColumnVector*> Truth(const RowBatch& input, Selection rows, EvalContext& context);
  Result<const ColumnVector*> In(const RowBatch& input, Selection rows, EvalContext& context);
  Result<const ColumnVector*> AnyArray(const RowBatch& input, Selection rows, EvalContext& context);
  Status Filter(const RowBatch& input, Selection rows, EvalContext& context,
                std::vector<uint32_t>* passing);
  // The one value of a node without columns.
  Result<Datum> OneValue(EvalContext& context) { return EvalRow(*expr, context, nullptr, 0); }
  bool has_one_value() const { return mode == Mode::kConstant || mode == Mode::kSpread; }

  const Expr* expr;
  Mode mode = Mode::kRows;
  std::vector<std::unique_ptr<Node>> children;
  ColumnVector result;
  size_t filled = 0;  // kConstant: rows of the vector that hold the value
  std::vector<const ColumnVector*> arg_vectors;
  std::vector<Datum> arg_values;
  std::vector<uint32_t> open_rows, taken_rows, next_rows;
  // kIn
  bool constant_items = false, null_item = false, hashed = false;
  Kernel kernel = Kernel::kNone;
  std::vector<Datum> items;
  InSet set;
};

Result<const ColumnVector*> Evaluator::Node::Eval(const RowBatch& input, Selection rows,
                                                  EvalContext& context) {
  switch (mode) {
    case Mode::kColumn: {
      return &input.column(static_cast<size_t>(expr->index));
    }
    case Mode::kConstant:
      // Values stay where they are while the size changes below what was filled; NULLs do not.
      if (input.size() > filled || expr->constant.is_null()) {
        filled = input.size() < kFewRows ? input.size() : std::max(input.size(), kBatchRows);
        Prepare(filled);
        Spread(expr->constant.datum(), {nullptr, filled}, &result);
      }
      result.Resize(input.size());
      return &result;
    case Mode::kSpread: {
      Prepare(input.size());
      if (rows.count == 0) return &result;
      CELLAR_TRY_ASSIGN(Datum value, OneValue(context));
      Spread(value, rows, &result);
      return &result;
    }
    case Mode::kPass: return children[0]->Eval(input, rows, context);
    case Mode::kCall: return Call(input, rows, context);
    case Mode::kLogic: return Logic(input, rows, context);
    case Mode::kNot: {
      CELLAR_TRY_ASSIGN(const ColumnVector* arg, children[0]->Eval(input, rows, context));
      Prepare(input.size());
      for (size_t i = 0; i < rows.count; ++i) {
        uint32_t row = rows[i];
        result.ints()[row] = arg->ints()[row] ^ 1;
        result.nulls()[row] = arg->nulls()[row];
      }
      result.set_has_nulls(arg->has_nulls());
      return &result;
    }
    case Mode::kCase: return Case(input, rows, context);
    case Mode::kCoalesce: return Coalesce(input, rows, context);
    case Mode::kNullTest: {
      CELLAR_TRY_ASSIGN(const ColumnVector* arg, children[0]->Eval(input, rows, context));
      Prepare(input.size());
      const int64_t flip = expr->kind == ExprKind::kIsNull ? 0 : 1;
      for (size_t i = 0; i < rows.count; ++i) {
        result.ints()[rows[i]] = arg->nulls()[rows[i]] ^ flip;
      }
      return &result;
    }
    case Mode::kTruthTest: return Truth(input, rows, context);
    case Mode::kIn: return In(input, rows, context);
    case Mode::kAnyArray: return AnyArray(input, rows, context);
    case Mode::kRows: break;
  }
  Prepare(input.size());
  for (size_t i = 0; i < rows.count; ++i) {
    CELLAR_TRY_ASSIGN(Datum value, EvalRow(*expr, context, &input, rows[i]));
    result.Set(rows[i], value);
  }
  return &result;
}

Result<const ColumnVector*> Evaluator::Node::Call(const RowBatch& input, Selection rows,
                                                  EvalContext& context) {
  const FunctionSpec& spec = *expr->function;
  const size_t count = children.size();
  bool nulls = false;
  for (size_t i = 0; i < count; ++i) {
    CELLAR_TRY_ASSIGN(arg_vectors[i], children[i]->Eval(input, rows, context));
    nulls |= arg_vectors[i]->has_nulls();
    CELLAR_TRY(CheckForms(*arg_vectors[i], rows, *expr->args[i]));
  }
  Prepare(input.size());
  if (spec.strict && nulls) {
    uint8_t* out = result.nulls();
    for (size_t i = 0; i < count; ++i) {
      if (!arg_vectors[i]->has_nulls()) continue;
      const uint8_t* in = arg_vectors[i]->nulls();
      for (size_t k = 0; k < rows.count; ++k) out[rows[k]] |= in[rows[k]];
    }
    result.set_has_nulls();
  }
  if (spec.vector != nullptr) {
    CELLAR_TRY(spec.vector(context, *expr, arg_vectors, rows, &result));
    return &result;
  }
  if (spec.scalar == nullptr) {
    return UnsupportedError("set-valued function called in context that cannot accept a set");
  }
  // A call may read or make megabytes.
  constexpr size_t kCallsBetweenPolls = 16;
  for (size_t k = 0; k < rows.count; ++k) {
    if (k % kCallsBetweenPolls == kCallsBetweenPolls - 1 && context.cancel != nullptr) {
      CELLAR_TRY(context.cancel->Check());
    }
    const uint32_t row = rows[k];
    if (spec.strict && result.nulls()[row] != 0) {
      result.SetNull(row);
      continue;
    }
    for (size_t i = 0; i < count; ++i) arg_values[i] = arg_vectors[i]->Get(row);
    CELLAR_TRY_ASSIGN(Datum value, CallScalar(*expr, context, arg_values));
    result.Set(row, value);
  }
  return &result;
}

Result<const ColumnVector*> Evaluator::Node::Logic(const RowBatch& input, Selection rows,
                                                   EvalContext& context) {
  const int64_t ends = expr->kind == ExprKind::kOr ? 1 : 0;
  Prepare(input.size());
  Selection open = rows;
  for (size_t i = 0; i < rows.count; ++i) result.ints()[rows[i]] = ends ^ 1;
  for (size_t c = 0; c < children.size() && open.count > 0; ++c) {
    CELLAR_TRY_ASSIGN(const ColumnVector* arg, children[c]->Eval(input, open, context));
    next_rows.clear();
    for (size_t i = 0; i < open.count; ++i) {
      const uint32_t row = open[i];
      if (arg->nulls()[row] != 0) {
        result.nulls()[row] = 1;
        result.set_has_nulls();
      } else if (arg->ints()[row] == ends) {
        result.ints()[row] = ends;
        result.nulls()[row] = 0;
        continue;
      }
      next_rows.push_back(row);
    }
    open_rows.swap(next_rows);
    open = {open_rows.data(), open_rows.size()};
  }
  return &result;
}

Result<const ColumnVector*> Evaluator::Node::Case(const RowBatch& input, Selection rows,
                                                  EvalContext& context) {
  Prepare(input.size());
  Selection open = rows;
  for (size_t c = 0; c + 1 < children.size() && open.count > 0; c += 2) {
    CELLAR_TRY_ASSIGN(const ColumnVector* when, children[c]->Eval(input, open, context));
    taken_rows.clear();
    next_rows.clear();
    for (size_t i = 0; i < open.count; ++i) {
      const uint32_t row = open[i];
      const bool take = when->nulls()[row] == 0 && when->ints()[row] != 0;
      (take ? taken_rows : next_rows).push_back(row);
    }
    if (!taken_rows.empty()) {
      Selection taken{taken_rows.data(), taken_rows.size()};
      CELLAR_TRY_ASSIGN(const ColumnVector* then, children[c + 1]->Eval(input, taken, context));
      CopyRows(*then, taken, &result);
    }
    open_rows.swap(next_rows);
    open = {open_rows.data(), open_rows.size()};
  }
  if (open.count > 0) {
    CELLAR_TRY_ASSIGN(const ColumnVector* otherwise, children.back()->Eval(input, open, context));
    CopyRows(*otherwise, open, &result);
  }
  return &result;
}

Result<const ColumnVector*> Evaluator::Node::Coalesce(const RowBatch& input, Selection rows,
                                                      EvalContext& context) {
  Prepare(input.size());
  Selection open = rows;
  for (size_t c = 0; c < children.size() && open.count > 0; ++c) {
    CELLAR_TRY_ASSIGN(const ColumnVector* arg, children[c]->Eval(input, open, context));
    CopyRows(*arg, open, &result);
    if (!arg->has_nulls()) break;
    next_rows.clear();
    for (size_t i = 0; i < open.count; ++i) {
      if (arg->nulls()[open[i]] != 0) next_rows.push_back(open[i]);
    }
    open_rows.swap(next_rows);
    open = {open_rows.data(), open_rows.size()};
  }
  return &result;
}

Result<const ColumnVector*> Evaluator::Node::Truth(const RowBatch& input, Selection rows,
                                                   EvalContext& context) {
  CELLAR_TRY_ASSIGN(const ColumnVector* arg, children[0]->Eval(input, rows, context));
  Prepare(input.size());
  for (size_t i = 0; i < rows.count; ++i) {
    const uint32_t row = rows[i];
    const bool null = arg->nulls()[row] != 0;
    const bool is_true = !null && arg->ints()[row] != 0;
    bool value = null;
    switch (expr->kind) {
      case ExprKind::kIsTrue: value = is_true; break;
      case ExprKind::kIsNotTrue: value = !is_true; break;
      case ExprKind::kIsFalse: value = !null && !is_true; break;
      case ExprKind::kIsNotFalse: value = null || is_true; break;
      case ExprKind::kIsNotUnknown: value = !null; break;
      default: break;
    }
    result.ints()[row] = value;
  }
  return &result;
}

Result<const ColumnVector*> Evaluator::Node::In(const RowBatch& input, Selection rows,
                                                EvalContext& context) {
  if (!constant_items) {
    Prepare(input.size());
    for (size_t i = 0; i < rows.count; ++i) {
      CELLAR_TRY_ASSIGN(Datum value, EvalRow(*expr, context, &input, rows[i]));
      result.Set(rows[i], value);
    }
    return &result;
  }
  CELLAR_TRY_ASSIGN(const ColumnVector* arg, children[0]->Eval(input, rows, context));
  Prepare(input.size());
  const int64_t found_value = expr->kind == ExprKind::kInList ? 1 : 0;
  for (size_t i = 0; i < rows.count; ++i) {
    const uint32_t row = rows[i];
    if (arg->nulls()[row] != 0) {
      result.SetNull(row);
      continue;
    }
    const Datum value = arg->Get(row);
    bool found = false;
    if (hashed) {
      found = set.Contains(value);
    } else if (kernel == Kernel::kInts) {
      for (Datum item : items) found |= item.int_value() == value.int_value();
    } else if (kernel == Kernel::kBytes) {
      for (size_t k = 0; k < items.size() && !found; ++k) found = items[k].bytes() == value.bytes();
    } else {
      for (size_t k = 0; k < items.size() && !found; ++k) {
        found = CompareDatums(value, items[k], expr->args[0]->type) == 0;
      }
    }
    if (found)
      result.ints()[row] = found_value;
    else if (null_item)
      result.SetNull(row);
    else
      result.ints()[row] = found_value ^ 1;
  }
  return &result;
}

Result<const ColumnVector*> Evaluator::Node::AnyArray(const RowBatch& input, Selection rows,
                                                      EvalContext& context) {
  CELLAR_TRY_ASSIGN(const ColumnVector* left, children[0]->Eval(input, rows, context));
  const FunctionSpec& spec = *expr->function;
  const bool hashable = expr->kind == ExprKind::kAnyArray && children[1]->has_one_value() &&
                        spec.comparison == Comparison::kEqual && spec.kernel != Kernel::kNone &&
                        rows.count >= kHashedArrayRows;
  if (hashable) {
    CELLAR_TRY_ASSIGN(Datum array, children[1]->OneValue(context));
    if (!array.is_null()) {
      ArrayView view(array.bytes(), ElementOf(expr->args[1]->type));
      if (view.size() >= kHashedListItems) {
        bool null = false;
        items.clear();
        for (size_t i = 0; i < view.size(); ++i) {
          Datum item = view.Get(i);
          if (item.is_null())
            null = true;
          else
            items.push_back(item);
        }
        set.Build(ElementOf(expr->args[1]->type), spec.kernel, items);
        Prepare(input.size());
        for (size_t i = 0; i < rows.count; ++i) {
          const uint32_t row = rows[i];
          if (left->nulls()[row] != 0)
            result.SetNull(row);
          else if (set.Contains(left->Get(row)))
            result.ints()[row] = 1;
          else if (null)
            result.SetNull(row);
          else
            result.ints()[row] = 0;
        }
        return &result;
      }
    }
  }
  CELLAR_TRY_ASSIGN(const ColumnVector* arrays, children[1]->Eval(input, rows, context));
  Prepare(input.size());
  for (size_t i = 0; i < rows.count; ++i) {
    const uint32_t row = rows[i];
    CELLAR_TRY_ASSIGN(Datum value,
                      CompareWithArray(*expr, left->Get(row), arrays->Get(row), context));
    result.Set(row, value);
  }
  return &result;
}

Status Evaluator::Node::Filter(const RowBatch& input, Selection rows, EvalContext& context,
                               std::vector<uint32_t>* passing) {
  if (rows.count == 0) return Status();
  if (has_one_value()) {
    CELLAR_TRY_ASSIGN(Datum value, OneValue(context));
    if (!value.is_null() && value.bool_value()) {
      for (size_t i = 0; i < rows.count; ++i) passing->push_back(rows[i]);
    }
    return Status();
  }
  if (mode == Mode::kLogic && expr->kind == ExprKind::kAnd) {
    Selection open = rows;
    for (size_t c = 0; c + 1 < children.size(); ++c) {
      next_rows.clear();
      CELLAR_TRY(children[c]->Filter(input, open, context, &next_rows));
      open_rows.swap(next_rows);
      open = {open_rows.data(), open_rows.size()};
      if (open.count == 0) return Status();
    }
    return children.back()->Filter(input, open, context, passing);
  }
  if (mode == Mode::kCall && expr->function->kernel != Kernel::kNone && children.size() == 2) {
    const FunctionSpec& spec = *expr->function;
    const size_t side = children[1]->has_one_value() ? 1 : children[0]->has_one_value() ? 0 : 2;
    if (side < 2) {
      CELLAR_TRY_ASSIGN(const ColumnVector* values, children[1 - side]->Eval(input, rows, context));
      CELLAR_TRY_ASSIGN(Datum constant, children[side]->OneValue(context));
      if (constant.is_null()) return Status();
      SelectCompared(*values, side == 1 ? spec.comparison : Swapped(spec.comparison), spec.kernel,
                     constant, rows, passing);
      return Status();
    }
  }
  CELLAR_TRY_ASSIGN(const ColumnVector* values, Eval(input, rows, context));
  for (size_t i = 0; i < rows.count; ++i) {
    const uint32_t row = rows[i];
    if (values->nulls()[row] == 0 && values->ints()[row] != 0) passing->push_back(row);
  }
  return Status();
}

Evaluator::Evaluator(const Expr* expr) : root_(std::make_unique<Node>(expr)) {}
Evaluator::~Evaluator() = default;
Evaluator::Evaluator(Evaluator&&) noexcept = default;
Evaluator& Evaluator::operator=(Evaluator&&) noexcept = default;

Result<const ColumnVector*> Evaluator::Eval(const RowBatch& input, Selection rows,
                                            EvalContext& context) {
  return root_->Eval(input, rows, context);
}

Status Evaluator::Filter(const RowBatch& input, Selection rows, EvalContext& context,
                         std::vector<uint32_t>* passing) {
  return root_->Filter(input, rows, context, passing);
}

}  // namespace cellar::sql
