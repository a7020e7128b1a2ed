// Operators and functions of arrays.
#include <fmt/format.h>

#include <algorithm>

#include "cellar/sql/expr/registry.h"
#include "cellar/types/array.h"
#include "cellar/types/record.h"

namespace cellar::sql {
namespace {

// The array argument's element type; resolved calls have concrete types.
Type ElementAt(const Expr& call, size_t i) { return Plain(ElementOf(call.args[i]->type)); }
ArrayView View(const Expr& call, Args a, size_t i) {
  return ArrayView(a[i].bytes(), ElementAt(call, i));
}
Result<Datum> Bytes(Result<std::string_view> value) {
  if (!value.ok()) return std::move(value).status();
  return Datum::Bytes(*value);
}
// Errors: 42804 for records of other types.
Result<bool> SameElement(Datum a, Datum b, Type element) {
  if (a.is_null() || b.is_null()) return a.is_null() && b.is_null();
  CELLAR_TRY_ASSIGN(const int order, CompareWithRecords(a, b, element));
  return order == 0;
}

// The array again with other elements; one dimension keeps its lower bound.
std::string_view Rebuild(const ArrayView& view, ArrayBuilder* builder, Arena* arena) {
  return builder->Finish(arena, view.dimensions() == 1 ? view.lower_bound(0) : 1);
}

Result<Datum> Contains(EvalContext& context, const ArrayView& outer, const ArrayView& inner,
                       Type element) {
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner.IsNull(i)) return Datum::Bool(false);
    bool found = false;
    for (size_t k = 0; k < outer.size() && !found; ++k) {
      CELLAR_TRY(context.Step());
      if (outer.IsNull(k)) continue;
      CELLAR_TRY_ASSIGN(found, SameElement(outer.Get(k), inner.Get(i), element));
    }
    if (!found) return Datum::Bool(false);
  }
  return Datum::Bool(true);
}
Result<Datum> Overlap(EvalContext& context, const ArrayView& a, const ArrayView& b, Type element) {
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) {
      CELLAR_TRY(context.Step());
      if (a.IsNull(i) || b.IsNull(k)) continue;
      CELLAR_TRY_ASSIGN(const bool same, SameElement(a.Get(i), b.Get(k), element));
      if (same) return Datum::Bool(true);
    }
  }
  return Datum::Bool(false);
}

Result<Datum> Append(EvalContext& context, const Expr& call, Args a) {
  const Type element = ElementAt(call, 0);
  if (a[0].is_null()) {
    ArrayBuilder builder(element);
    CELLAR_TRY(builder.TryAdd(a[1]));
    return Datum::Bytes(builder.Finish(context.arena()));
  }
  return Bytes(AppendElement(a[0].bytes(), a[1], element, context.arena()));
}
Result<Datum> Prepend(EvalContext& context, const Expr& call, Args a) {
  const Type element = ElementAt(call, 1);
  if (a[1].is_null()) {
    ArrayBuilder builder(element);
    CELLAR_TRY(builder.TryAdd(a[0]));
    return Datum::Bytes(builder.Finish(context.arena()));
  }
  return Bytes(PrependElement(a[0], a[1].bytes(), element, context.arena()));
}
Result<Datum> Concatenate(EvalContext& context, const Expr& call, Args a) {
  if (a[0].is_null()) return a[1];
  if (a[1].is_null()) return a[0];
  return Bytes(ConcatenateArrays(a[0].bytes(), a[1].bytes(), ElementAt(call, 0), context.arena()));
}

Result<Datum> Length(EvalContext&, const Expr& call, Args a) {
  ArrayView view = View(call, a, 0);
  int64_t dimension = a[1].int_value();
  if (dimension < 1 || dimension > view.dimensions()) return Datum();
  return Datum::Int(view.length(static_cast<int>(dimension - 1)));
}
Result<Datum> Lower(EvalContext&, const Expr& call, Args a) {
  ArrayView view = View(call, a, 0);
  int64_t dimension = a[1].int_value();
  if (dimension < 1 || dimension > view.dimensions()) return Datum();
  return Datum::Int(view.lower_bound(static_cast<int>(dimension - 1)));
}
Result<Datum> Upper(EvalContext&, const Expr& call, Args a) {
  ArrayView view = View(call, a, 0);
  int64_t dimension = a[1].int_value();
  if (dimension < 1 || dimension > view.dimensions()) return Datum();
  int d = static_cast<int>(dimension - 1);
  return Datum::Int(int64_t{view.lower_bound(d)} + view.length(d) - 1);
}
Result<Datum> Dimensions(EvalContext& context, const Expr& call, Args a) {
  ArrayView view = View(call, a, 0);
  if (view.dimensions() == 0) return Datum();
  std::string out;
  for (int d = 0; d < view.dimensions(); ++d) {
    out += fmt::format("[{}:{}]", view.lower_bound(d),
                       int64_t{view.lower_bound(d)} + view.length(d) - 1);
  }
  return TextOf(context, out);
}

Status OneDimension(const ArrayView& view, std::string_view what) {
  if (view.dimensions() <= 1) return Status();
  return UnsupportedError("{} multidimensional arrays is not supported", what);
}

Result<Datum> Position(EvalContext& context, const Expr& call, Args a) {
  if (a[0].is_null()) return Datum();
  const Type element = ElementAt(call, 0);
  ArrayView view = View(call, a, 0);
  CELLAR_TRY(OneDimension(view, "searching for elements in"));
  if (view.dimensions() == 0) return Datum();
  int64_t start = view.lower_bound(0);
  if (a.size() == 3) {
    if (a[2].is_null()) {
      return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed,
                      "initial position must not be null");
    }
    start = a[2].int_value();
  }
  for (size_t i = 0; i < view.size(); ++i) {
    CELLAR_TRY(context.Step());
    int64_t subscript = view.lower_bound(0) + static_cast<int64_t>(i);
    if (subscript < start) continue;
    CELLAR_TRY_ASSIGN(const bool same, SameElement(view.Get(i), a[1], element));
    if (same) return Datum::Int(subscript);
  }
  return Datum();
}
Result<Datum> Positions(EvalContext& context, const Expr& call, Args a) {
  if (a[0].is_null()) return Datum();
  const Type element = ElementAt(call, 0);
  ArrayView view = View(call, a, 0);
  CELLAR_TRY(OneDimension(view, "searching for elements in"));
  ArrayBuilder builder(MakeType(TypeId::kInt4));
  for (size_t i = 0; i < view.size(); ++i) {
    CELLAR_TRY(context.Step());
    CELLAR_TRY_ASSIGN(const bool same, SameElement(view.Get(i), a[1], element));
    if (same) {
      CELLAR_TRY(builder.TryAdd(Datum::Int(view.lower_bound(0) + static_cast<int64_t>(i))));
    }
  }
  return Datum::Bytes(builder.Finish(context.arena()));
}
Result<Datum> Remove(EvalContext& context, const Expr& call, Args a) {
  if (a[0].is_null()) return Datum();
  const Type element = ElementAt(call, 0);
  ArrayView view = View(call, a, 0);
  CELLAR_TRY(OneDimension(view, "removing elements from"));
  ArrayBuilder builder(element);
  for (size_t i = 0; i < view.size(); ++i) {
    CELLAR_TRY(context.Step());
    CELLAR_TRY_ASSIGN(const bool same, SameElement(view.Get(i), a[1], element));
    if (!same) CELLAR_TRY(builder.TryAdd(view.Get(i)));
  }
  return Datum::Bytes(Rebuild(view, &builder, context.arena()));
}
Result<Datum> ReplaceElements(EvalContext& context, const Expr& call, Args a) {
  if (a[0].is_null()) return Datum();
  const Type element = ElementAt(call, 0);
  ArrayView view = View(call, a, 0);
  ArrayBuilder builder(element);
  std::vector<int32_t> lengths, bounds;
  for (int d = 0; d < view.dimensions(); ++d) {
    lengths.push_back(view.length(d));
    bounds.push_back(view.lower_bound(d));
  }
  if (lengths.empty()) return a[0];
  for (size_t i = 0; i < view.size(); ++i) {
    CELLAR_TRY(context.Step());
    const Datum value = view.Get(i);
    CELLAR_TRY_ASSIGN(const bool same, SameElement(value, a[1], element));
    CELLAR_TRY(builder.TryAdd(same ? a[2] : value));
  }
  return Datum::Bytes(builder.Finish(lengths, bounds, context.arena()));
}
Result<Datum> TrimArray(EvalContext& context, const Expr& call, Args a) {
  ArrayView view = View(call, a, 0);
  const int64_t rows = view.dimensions() == 0 ? 0 : view.length(0);
  if (a[1].int_value() < 0 || a[1].int_value() > rows) {
    return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                    "number of elements to trim must be between 0 and {}", rows);
  }
  if (view.dimensions() == 0) return a[0];
  std::vector<int32_t> lengths;
  for (int d = 0; d < view.dimensions(); ++d) lengths.push_back(view.length(d));
  lengths[0] = static_cast<int32_t>(rows - a[1].int_value());
  ArrayBuilder builder(ElementAt(call, 0));
  size_t count =
      rows == 0 ? 0 : view.size() / static_cast<size_t>(rows) * static_cast<size_t>(lengths[0]);
  for (size_t i = 0; i < count; ++i) CELLAR_TRY(builder.TryAdd(view.Get(i)));
  if (count == 0) return Datum::Bytes(builder.Finish(context.arena()));
  return Datum::Bytes(builder.Finish(lengths, {}, context.arena()));
}
Result<Datum> Fill(EvalContext& context, const Expr& call, Args a) {
  if (a[1].is_null() || (a.size() == 3 && a[2].is_null())) {
    return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed,
                    "dimension array or low bound array cannot be null");
  }
  ArrayView sizes(a[1].bytes(), MakeType(TypeId::kInt4));
  const auto bad_subscripts = [] {
    return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                    "wrong number of array subscripts");
  };
  if (sizes.dimensions() > 1) {
    return bad_subscripts().WithDetail("Dimension array must be one dimensional.");
  }
  if (sizes.has_nulls()) {
    return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed,
                    "dimension values cannot be null");
  }
  std::vector<int32_t> lengths, bounds;
  size_t count = sizes.size() == 0 ? 0 : 1;
  bool too_large = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t length = sizes.Get(i).int_value();
    lengths.push_back(static_cast<int32_t>(length));
    too_large |= length < 0;
    count *= static_cast<size_t>(std::max<int64_t>(length, 0));
    too_large |= count > INT32_MAX;
    if (too_large) count = 0;  // so that the products stay small
  }
  if (a.size() == 3) {
    ArrayView view(a[2].bytes(), MakeType(TypeId::kInt4));
    if (view.has_nulls()) {
      return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed,
                      "dimension values cannot be null");
    }
    if (view.dimensions() > 1 || view.size() != sizes.size()) {
      return bad_subscripts().WithDetail(
          "Low bound array has different size than dimensions array.");
    }
    for (size_t i = 0; i < view.size(); ++i) {
      bounds.push_back(static_cast<int32_t>(view.Get(i).int_value()));
    }
  }
  if (too_large || count > kMaxArrayElements) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "array size exceeds the maximum allowed ({})", kMaxArrayElements);
  }
  if (bounds.empty()) bounds.assign(lengths.size(), 1);
  CELLAR_TRY(CheckArrayBounds(lengths, bounds));
  ArrayBuilder builder(ElementOf(call.type));
  CELLAR_TRY(CheckValueSize(count * (a[0].bytes().size() + sizeof(Datum))));
  for (size_t i = 0; i < count; ++i) CELLAR_TRY(builder.TryAdd(a[0]));
  if (count == 0) return Datum::Bytes(builder.Finish(context.arena()));
  return Datum::Bytes(builder.Finish(lengths, bounds, context.arena()));
}

}  // namespace

void RegisterArrays(Registry& r) {
  r.Add("||(anycompatiblearray, anycompatible) anycompatiblearray", Append).strict = false;
  r.Add("||(anycompatible, anycompatiblearray) anycompatiblearray", Prepend).strict = false;
  r.Add("||(anycompatiblearray, anycompatiblearray) anycompatiblearray", Concatenate).strict =
      false;
  r.Add("array_append(anycompatiblearray, anycompatible) anycompatiblearray", Append).strict =
      false;
  r.Add("array_prepend(anycompatible, anycompatiblearray) anycompatiblearray", Prepend).strict =
      false;
  r.Add("array_cat(anycompatiblearray, anycompatiblearray) anycompatiblearray", Concatenate)
      .strict = false;
  r.Add(
      "@>(anyarray, anyarray) bool", CELLAR_SCALAR {
        return Contains(context, View(call, a, 0), View(call, a, 1), ElementAt(call, 0));
      });
  r.Add(
      "<@(anyarray, anyarray) bool", CELLAR_SCALAR {
        return Contains(context, View(call, a, 1), View(call, a, 0), ElementAt(call, 0));
      });
  r.Add(
      "&&(anyarray, anyarray) bool", CELLAR_SCALAR {
        return Overlap(context, View(call, a, 0), View(call, a, 1), ElementAt(call, 0));
      });
  r.Add("array_length(anyarray, int4) int4", Length);
  r.Add("array_lower(anyarray, int4) int4", Lower);
  r.Add("array_upper(anyarray, int4) int4", Upper);
  r.Add(
      "array_ndims(anyarray) int4", CELLAR_SCALAR {
        int dimensions = View(call, a, 0).dimensions();
        return dimensions == 0 ? Datum() : Datum::Int(dimensions);
      });
  r.Add("array_dims(anyarray) text", Dimensions);
  r.Add(
      "cardinality(anyarray) int4",
      CELLAR_SCALAR { return Datum::Int(static_cast<int64_t>(View(call, a, 0).size())); });
  r.Add("array_position(anycompatiblearray, anycompatible) int4", Position).strict = false;
  r.Add("array_position(anycompatiblearray, anycompatible, int4) int4", Position).strict = false;
  r.Add("array_positions(anycompatiblearray, anycompatible) int4[]", Positions).strict = false;
  r.Add("array_remove(anycompatiblearray, anycompatible) anycompatiblearray", Remove).strict =
      false;
  r.Add("array_replace(anycompatiblearray, anycompatible, anycompatible) anycompatiblearray",
        ReplaceElements)
      .strict = false;
  r.Add("trim_array(anyarray, int4) anyarray", TrimArray);
  r.Add("array_fill(anyelement, int4[]) anyarray", Fill).strict = false;
  r.Add("array_fill(anyelement, int4[], int4[]) anyarray", Fill).strict = false;
}

}  // namespace cellar::sql
