// Layout, order and construction of arrays; array_text.cc reads and prints them.
#include "cellar/types/array.h"

#include <algorithm>

#include "cellar/base/check.h"
#include "cellar/base/interrupt.h"
#include "cellar/base/sqlstate.h"
#include "cellar/types/value_size.h"

namespace cellar {
namespace {

constexpr size_t kHeader = 8;

size_t HeaderSize(int dimensions) { return kHeader + 8 * static_cast<size_t>(dimensions); }
size_t NullsSize(size_t elements, bool has_nulls) {
  return has_nulls ? (elements + 3) & ~size_t{3} : 0;
}

void WriteInt(int32_t value, char* out) { std::memcpy(out, &value, 4); }

// The bytes of an array of `elements` with these dimensions.
std::string_view Build(std::span<const Datum> elements, Physical physical,
                       std::span<const int32_t> lengths, std::span<const int32_t> lower_bounds,
                       Arena* arena) {
  const size_t count = elements.size();
  const int dimensions = count == 0 ? 0 : static_cast<int>(lengths.size());
  bool has_nulls = false;
  size_t data_size = 8 * count;
  if (physical == Physical::kBytes) {
    data_size = 4 * count;
    for (const Datum& element : elements) {
      if (!element.is_null()) data_size += element.bytes().size();
    }
  }
  for (const Datum& element : elements) has_nulls |= element.is_null();
  const size_t nulls_size = NullsSize(count, has_nulls);
  const size_t size = HeaderSize(dimensions) + nulls_size + data_size;
  char* out = arena->Allocate(size);
  out[0] = static_cast<char>(dimensions);
  out[1] = has_nulls ? 1 : 0;
  out[2] = out[3] = 0;
  WriteInt(static_cast<int32_t>(count), out + 4);
  for (int d = 0; d < dimensions; ++d) {
    const auto i = static_cast<size_t>(d);
    WriteInt(lengths[i], out + kHeader + 8 * i);
    WriteInt(i < lower_bounds.size() ? lower_bounds[i] : 1, out + kHeader + 8 * i + 4);
  }
  char* nulls = out + HeaderSize(dimensions);
  if (has_nulls) {
    std::memset(nulls, 0, nulls_size);
    for (size_t i = 0; i < count; ++i) nulls[i] = elements[i].is_null() ? 1 : 0;
  }
  char* data = nulls + nulls_size;
  if (physical == Physical::kBytes) {
    char* bytes = data + 4 * count;
    uint32_t end = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!elements[i].is_null() && !elements[i].bytes().empty()) {
        PollBytes(elements[i].bytes().size());
        std::memcpy(bytes + end, elements[i].bytes().data(), elements[i].bytes().size());
        end += static_cast<uint32_t>(elements[i].bytes().size());
      }
      std::memcpy(data + 4 * i, &end, 4);
    }
  } else {
    for (size_t i = 0; i < count; ++i) {
      int64_t word = 0;
      if (!elements[i].is_null()) {
        if (physical == Physical::kInt64) {
          word = elements[i].int_value();
        } else {
          double value = elements[i].double_value();
          std::memcpy(&word, &value, 8);
        }
      }
      std::memcpy(data + 8 * i, &word, 8);
    }
  }
  return {out, size};
}

std::vector<Datum> ElementsOf(const ArrayView& view) {
  std::vector<Datum> out;
  out.reserve(view.size());
  for (size_t i = 0; i < view.size(); ++i) out.push_back(view.Get(i));
  return out;
}

Status Incompatible(std::string detail) {
  return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                  "cannot concatenate incompatible arrays")
      .WithDetail(std::move(detail));
}

}  // namespace

Type ElementTypeOf(Type array) {
  if (array.array) {
    array.array = false;
    return array;
  }
  if (array.id == TypeId::kInt2vector) return MakeType(TypeId::kInt2);
  if (array.id == TypeId::kOidvector) return MakeType(TypeId::kOid);
  return Type();
}

Status CheckArrayBounds(std::span<const int32_t> lengths, std::span<const int32_t> lower_bounds) {
  for (size_t d = 0; d < lengths.size() && d < lower_bounds.size(); ++d) {
    if (int64_t{lower_bounds[d]} + lengths[d] > INT32_MAX) {
      return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                      "array lower bound is too large: {}", lower_bounds[d]);
    }
  }
  return Status();
}

ArrayView::ArrayView(std::string_view bytes, Type element)
    : bytes_(bytes.data()), physical_(PhysicalOf(element)) {
  if (bytes.size() < kHeader) return;
  const int dimensions = static_cast<uint8_t>(bytes[0]);
  const bool has_nulls = bytes[1] != 0;
  const size_t count = static_cast<uint32_t>(ReadInt(4));
  const size_t data_at = HeaderSize(dimensions) + NullsSize(count, has_nulls);
  const size_t words = count * (physical_ == Physical::kBytes ? 4 : 8);
  if (dimensions > kMaxArrayDimensions || (dimensions == 0) != (count == 0) ||
      static_cast<uint8_t>(bytes[1]) > 1 || bytes[2] != 0 || bytes[3] != 0 ||
      bytes.size() < data_at + words) {
    return;
  }
  uint64_t product = dimensions == 0 ? 0 : 1;
  for (int d = 0; d < dimensions; ++d) {
    const int32_t one = length(d);
    if (one < 1) return;
    product = std::min<uint64_t>(product * static_cast<uint64_t>(one), UINT32_MAX);
  }
  if (product != count) return;
  size_t data_bytes = 0;
  if (physical_ == Physical::kBytes && count > 0) {
    uint32_t end;
    std::memcpy(&end, bytes.data() + data_at + words - 4, 4);
    data_bytes = end;
  }
  if (bytes.size() != data_at + words + data_bytes) return;
  dimensions_ = dimensions;
  size_ = count;
  data_bytes_ = data_bytes;
  data_ = bytes_ + data_at;
  if (has_nulls) nulls_ = bytes_ + HeaderSize(dimensions);
  valid_ = true;
}

Datum ArrayView::At(int64_t subscript) const {
  if (dimensions_ != 1) return Datum();
  const int64_t i = subscript - lower_bound(0);
  if (i < 0 || i >= static_cast<int64_t>(size_)) return Datum();
  return Get(static_cast<size_t>(i));
}

Datum ArrayView::At(std::span<const int64_t> subscripts) const {
  if (dimensions_ == 0 || subscripts.size() != static_cast<size_t>(dimensions_)) return Datum();
  size_t position = 0;
  for (int d = 0; d < dimensions_; ++d) {
    const int64_t i = subscripts[static_cast<size_t>(d)] - lower_bound(d);
    if (i < 0 || i >= length(d)) return Datum();
    position = position * static_cast<size_t>(length(d)) + static_cast<size_t>(i);
  }
  return Get(position);
}

Status ArrayBuilder::TryAdd(Datum element) {
  PollSteps();
  const bool bytes = PhysicalOf(element_) == Physical::kBytes;
  const size_t more = bytes && !element.is_null() ? element.bytes().size() : 0;
  // An element counts as what it takes here, which is more than it takes in the array.
  CELLAR_TRY(CheckValueSize(bytes_ + more + (elements_.size() + 1) * sizeof(Datum)));
  bytes_ += more;
  elements_.push_back(element);
  return Status();
}

std::string_view ArrayBuilder::Finish(Arena* arena, int32_t lower_bound) {
  const auto length = static_cast<int32_t>(elements_.size());
  std::string_view out =
      Build(elements_, PhysicalOf(element_), {&length, 1}, {&lower_bound, 1}, arena);
  elements_.clear();
  bytes_ = 0;
  return out;
}

std::string_view ArrayBuilder::Finish(std::span<const int32_t> lengths,
                                      std::span<const int32_t> lower_bounds, Arena* arena) {
  std::string_view out = Build(elements_, PhysicalOf(element_), lengths, lower_bounds, arena);
  elements_.clear();
  bytes_ = 0;
  return out;
}

Result<bool> ArrayStacker::Add(std::string_view array) {
  const ArrayView view(array, element_);
  ++arrays_;
  if (arrays_ == 1) {
    for (int d = 0; d < view.dimensions(); ++d) {
      lengths_.push_back(view.length(d));
      bounds_.push_back(view.lower_bound(d));
    }
  } else {
    if (static_cast<size_t>(view.dimensions()) != lengths_.size()) return false;
    for (int d = 0; d < view.dimensions(); ++d) {
      const auto i = static_cast<size_t>(d);
      if (view.length(d) != lengths_[i] || view.lower_bound(d) != bounds_[i]) return false;
    }
  }
  for (size_t i = 0; i < view.size(); ++i) CELLAR_TRY(builder_.TryAdd(view.Get(i)));
  return true;
}

Result<std::string_view> ArrayStacker::Finish(Arena* arena) {
  if (lengths_.empty()) return ArrayBuilder(element_).Finish(arena);
  lengths_.insert(lengths_.begin(), static_cast<int32_t>(arrays_));
  bounds_.insert(bounds_.begin(), 1);
  if (lengths_.size() > static_cast<size_t>(kMaxArrayDimensions)) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "number of array dimensions ({}) exceeds the maximum allowed ({})",
                    lengths_.size(), kMaxArrayDimensions);
  }
  return builder_.Finish(lengths_, bounds_, arena);
}

Result<std::string_view> AccumulateArray(std::span<const Datum> values, Type type, Arena* arena) {
  if (!type.array) {
    ArrayBuilder builder(type);
    for (Datum value : values) CELLAR_TRY(builder.TryAdd(value));
    return builder.Finish(arena);
  }
  ArrayStacker stacker(ElementTypeOf(type));
  for (Datum value : values) {
    if (value.is_null()) {
      return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed,
                      "cannot accumulate null arrays");
    }
    if (ArrayView(value.bytes(), ElementTypeOf(type)).dimensions() == 0) {
      return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                      "cannot accumulate empty arrays");
    }
    CELLAR_TRY_ASSIGN(const bool same, stacker.Add(value.bytes()));
    if (!same) {
      return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                      "cannot accumulate arrays of different dimensionality");
    }
  }
  return stacker.Finish(arena);
}

int CompareArrays(std::string_view a, std::string_view b, Type element) {
  ArrayView left(a, element), right(b, element);
  const size_t common = std::min(left.size(), right.size());
  for (size_t i = 0; i < common; ++i) {
    PollSteps();
    const bool left_null = left.IsNull(i), right_null = right.IsNull(i);
    if (left_null || right_null) {
      if (left_null && right_null) continue;
      return left_null ? 1 : -1;
    }
    const int order = CompareDatums(left.Get(i), right.Get(i), element);
    if (order != 0) return order;
  }
  return CompareArrayShapes(left, right);
}

int CompareArrayShapes(const ArrayView& left, const ArrayView& right) {
  if (left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
  if (left.dimensions() != right.dimensions()) {
    return left.dimensions() < right.dimensions() ? -1 : 1;
  }
  for (int d = 0; d < left.dimensions(); ++d) {
    if (left.length(d) != right.length(d)) return left.length(d) < right.length(d) ? -1 : 1;
    if (left.lower_bound(d) != right.lower_bound(d)) {
      return left.lower_bound(d) < right.lower_bound(d) ? -1 : 1;
    }
  }
  return 0;
}

uint64_t HashArray(std::string_view bytes, Type element) {
  ArrayView view(bytes, element);
  uint64_t hash = 1;
  for (size_t i = 0; i < view.size(); ++i) {
    PollSteps();
    hash = hash * 31 + HashDatum(view.Get(i), element);
  }
  return hash;
}

Result<std::string_view> ConcatenateArrays(std::string_view a, std::string_view b, Type element,
                                           Arena* arena) {
  ArrayView left(a, element), right(b, element);
  if (left.dimensions() == 0) return b;
  if (right.dimensions() == 0) return a;
  const int left_dimensions = left.dimensions(), right_dimensions = right.dimensions();
  if (std::abs(left_dimensions - right_dimensions) > 1) {
    return Incompatible(
        fmt::format("Arrays of {} and {} dimensions are not compatible for concatenation.",
                    left_dimensions, right_dimensions));
  }
  // The longer side (or the left) decides the bounds; the outer lengths add up.
  std::vector<int32_t> lengths, bounds;
  const ArrayView& outer = left_dimensions >= right_dimensions ? left : right;
  const ArrayView& inner = left_dimensions >= right_dimensions ? right : left;
  const bool same = left_dimensions == right_dimensions;
  for (int d = 0; d < outer.dimensions(); ++d) {
    lengths.push_back(outer.length(d));
    bounds.push_back(outer.lower_bound(d));
    if (d == 0) continue;
    const int other = same ? d : d - 1;
    if (outer.length(d) != inner.length(other)) {
      return Incompatible(
          same ? "Arrays with differing element dimensions are not compatible for concatenation."
               : "Arrays with differing dimensions are not compatible for concatenation.");
    }
  }
  lengths[0] += same ? inner.length(0) : 1;
  CELLAR_TRY(CheckValueSize(a.size() + b.size()));
  std::vector<Datum> elements = ElementsOf(left);
  for (size_t i = 0; i < right.size(); ++i) elements.push_back(right.Get(i));
  if (elements.size() > kMaxArrayElements) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "array size exceeds the maximum allowed ({})", kMaxArrayElements);
  }
  CELLAR_TRY(CheckArrayBounds(lengths, bounds));
  return Build(elements, PhysicalOf(element), lengths, bounds, arena);
}

namespace {

Result<std::string_view> AddAtEnd(std::string_view array, Datum value, Type element, bool front,
                                  Arena* arena) {
  ArrayView view(array, element);
  if (view.dimensions() > 1) {
    return SqlError(Code::kInvalid, "22000", "argument must be empty or one-dimensional array");
  }
  CELLAR_TRY(CheckValueSize(array.size() + 9 + value.bytes().size()));
  std::vector<Datum> elements = ElementsOf(view);
  elements.insert(front ? elements.begin() : elements.end(), value);
  const auto length = static_cast<int32_t>(elements.size());
  const int32_t bound = view.dimensions() == 0 ? 1 : view.lower_bound(0);
  CELLAR_TRY(CheckArrayBounds({&length, 1}, {&bound, 1}));
  return Build(elements, PhysicalOf(element), {&length, 1}, {&bound, 1}, arena);
}

}  // namespace

Result<std::string_view> AppendElement(std::string_view array, Datum value, Type element,
                                       Arena* arena) {
  return AddAtEnd(array, value, element, false, arena);
}

Result<std::string_view> PrependElement(Datum value, std::string_view array, Type element,
                                        Arena* arena) {
  return AddAtEnd(array, value, element, true, arena);
}

}  // namespace cellar
