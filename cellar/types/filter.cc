#include "cellar/types/filter.h"

#include <cmath>

namespace cellar {
namespace {

bool Decide(int order, FilterOp op) {
  switch (op) {
    case FilterOp::kEqual: return order == 0;
    case FilterOp::kNotEqual: return order != 0;
    case FilterOp::kLess: return order < 0;
    case FilterOp::kLessOrEqual: return order <= 0;
    case FilterOp::kGreater: return order > 0;
    case FilterOp::kGreaterOrEqual: return order >= 0;
    case FilterOp::kIsNull: return false;
    case FilterOp::kIsNotNull: return true;
  }
  return false;
}

// Calls visit(compare) with the comparison as a function of (value, constant).
template <typename T, typename Visit>
void WithComparison(FilterOp op, Visit&& visit) {
  switch (op) {
    case FilterOp::kEqual: return visit([](T a, T b) { return a == b; });
    case FilterOp::kNotEqual: return visit([](T a, T b) { return a != b; });
    case FilterOp::kLess: return visit([](T a, T b) { return a < b; });
    case FilterOp::kLessOrEqual: return visit([](T a, T b) { return a <= b; });
    case FilterOp::kGreater: return visit([](T a, T b) { return a > b; });
    case FilterOp::kGreaterOrEqual: return visit([](T a, T b) { return a >= b; });
    case FilterOp::kIsNull:
    case FilterOp::kIsNotNull: return;
  }
}

template <typename T>
void ApplyTo(const T* values, size_t size, T constant, FilterOp op, uint8_t* mask) {
  WithComparison<T>(op, [&](auto compare) {
    for (size_t i = 0; i < size; ++i) {
      mask[i] = static_cast<uint8_t>(mask[i] & (compare(values[i], constant) ? 1 : 0));
    }
  });
}

void ApplyToBytes(const ColumnVector& column, const ValueFilter& filter, uint8_t* mask) {
  const Type& type = column.type();
  const std::string_view* values = column.bytes();
  const auto passes = [&](std::string_view value) {
    return Decide(CompareDatums(Datum::Bytes(value), filter.value, type), filter.op);
  };
  if (column.has_codes()) {
    uint8_t table[256] = {};
    const std::span<const std::string_view> entries = column.dictionary();
    for (size_t i = 0; i < entries.size(); ++i) table[i] = passes(entries[i]) ? 1 : 0;
    const uint8_t* codes = column.codes();
    for (size_t i = 0; i < column.size(); ++i) {
      mask[i] = static_cast<uint8_t>(mask[i] & table[codes[i]]);
    }
    return;
  }
  const uint8_t* nulls = column.nulls();
  for (size_t i = 0; i < column.size(); ++i) {
    if (mask[i] == 0 || nulls[i] != 0) continue;
    mask[i] = passes(values[i]) ? 1 : 0;
  }
}

}  // namespace

bool PassesFilter(Datum value, Type type, const ValueFilter& filter) {
  if (value.is_null()) return filter.op == FilterOp::kIsNull;
  if (filter.op == FilterOp::kIsNull) return false;
  if (filter.op == FilterOp::kIsNotNull) return true;
  return Decide(CompareDatums(value, filter.value, type), filter.op);
}

void ApplyFilter(const ColumnVector& column, const ValueFilter& filter, uint8_t* mask) {
  const size_t size = column.size();
  const uint8_t* nulls = column.nulls();
  if (filter.op == FilterOp::kIsNull) {
    if (!column.has_nulls()) {
      std::memset(mask, 0, size);
      return;
    }
    for (size_t i = 0; i < size; ++i) mask[i] = static_cast<uint8_t>(mask[i] & nulls[i]);
    return;
  }
  if (column.has_nulls()) {
    for (size_t i = 0; i < size; ++i) mask[i] = static_cast<uint8_t>(mask[i] & (nulls[i] ^ 1));
  }
  if (filter.op == FilterOp::kIsNotNull) return;
  switch (column.physical()) {
    case Physical::kInt64:
      return ApplyTo(column.ints(), size, filter.value.int_value(), filter.op, mask);
    case Physical::kDouble: {
      const double constant = filter.value.double_value();
      const double* values = column.doubles();
      const bool plain =
          !std::isnan(constant) && (filter.op == FilterOp::kEqual || filter.op == FilterOp::kLess ||
                                    filter.op == FilterOp::kLessOrEqual);
      // Of these a NaN passes none, which is right: it is greater than the constant.
      if (plain) return ApplyTo(values, size, constant, filter.op, mask);
      for (size_t i = 0; i < size; ++i) {
        if (mask[i] == 0) continue;
        const int order = CompareDatums(Datum::Double(values[i]), filter.value, column.type());
        mask[i] = Decide(order, filter.op) ? 1 : 0;
      }
      return;
    }
    case Physical::kBytes: return ApplyToBytes(column, filter, mask);
  }
}

void AppendMaskPlaces(const uint8_t* mask, size_t size, uint32_t base,
                      std::vector<uint32_t>* places) {
  // Without a branch on the mask, which is not to be predicted.
  const size_t before = places->size();
  places->resize(before + size);
  uint32_t* out = places->data() + before;
  for (size_t i = 0; i < size; ++i) {
    *out = base + static_cast<uint32_t>(i);
    out += mask[i];
  }
  places->resize(static_cast<size_t>(out - places->data()));
}

}  // namespace cellar
