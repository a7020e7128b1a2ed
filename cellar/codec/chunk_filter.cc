// Conditions on columns of pages, decided on codes where their order is that of the values.
#include <algorithm>
#include <cmath>

#include "cellar/codec/page.h"
#include "cellar/codec/page_bytes.h"
#include "cellar/types/numeric.h"

namespace cellar::codec {

using namespace internal;  // NOLINT: the private half of this very layer

namespace {

// An inclusive range of codes, or its complement; or nothing.
struct CodeRange {
  bool empty = false;
  bool negate = false;
  uint64_t least = 0, greatest = UINT64_MAX;
};

// The place of a constant among codes: codes below `equal` are less, those from `equal` up to
// `greater` are equal. `kBeyond` codes do not exist.
struct Place {
  bool equal_beyond = false, greater_beyond = false;  // above all codes
  uint64_t equal = 0, greater = 0;
};

// `first` is the least integer not less than the constant, `next` the least greater one; the flags
// say that there is none.
Place PlaceOf(int64_t base, int64_t first, bool first_beyond, int64_t next, bool next_beyond) {
  Place place;
  place.equal_beyond = first_beyond;
  place.greater_beyond = next_beyond;
  const auto code = [base](int64_t v) {
    return v <= base ? 0 : static_cast<uint64_t>(v) - static_cast<uint64_t>(base);
  };
  place.equal = code(first);
  place.greater = code(next);
  return place;
}

CodeRange RangeOf(const Place& place, FilterOp op) {
  CodeRange range;
  const auto from = [&range](bool beyond, uint64_t code) {
    range.empty = range.empty || beyond;
    range.least = code;
  };
  const auto before = [&range](bool beyond, uint64_t code) {
    if (beyond) return;
    range.empty = range.empty || code == 0;
    range.greatest = code - 1;
  };
  switch (op) {
    case FilterOp::kEqual:
    case FilterOp::kNotEqual:
      from(place.equal_beyond, place.equal);
      before(place.greater_beyond, place.greater);
      range.negate = op == FilterOp::kNotEqual;
      break;
    case FilterOp::kLess: before(place.equal_beyond, place.equal); break;
    case FilterOp::kLessOrEqual: before(place.greater_beyond, place.greater); break;
    case FilterOp::kGreater: from(place.greater_beyond, place.greater); break;
    case FilterOp::kGreaterOrEqual: from(place.equal_beyond, place.equal); break;
    case FilterOp::kIsNull:
    case FilterOp::kIsNotNull: break;
  }
  range.empty = range.empty || range.least > range.greatest;
  return range;
}

// The least integer n in [-limit, limit] with n / power >= value (or > value); limit + 1 if none.
int64_t LeastDecimal(double value, double power, bool above) {
  constexpr int64_t kLimit = kDecimalLimit;
  const auto enough = [=](int64_t n) {
    const double decimal = static_cast<double>(n) / power;
    return above ? decimal > value : decimal >= value;
  };
  if (!enough(kLimit)) return kLimit + 1;
  if (enough(-kLimit)) return -kLimit;
  // Between the two, so the product is in range.
  auto n = static_cast<int64_t>(value * power);
  n = std::clamp(n, -kLimit, kLimit);
  while (n > -kLimit && enough(n - 1)) --n;
  while (!enough(n)) ++n;
  return n;
}

Place PlaceOfScaled(int64_t base, std::string_view constant, int scale) {
  bool equal;
  const numeric::int128_t floor = numeric::FloorAtScale(constant, scale, &equal);
  const numeric::int128_t first = equal ? floor : floor + 1;
  const auto clamped = [](numeric::int128_t v) {
    return static_cast<int64_t>(std::clamp<numeric::int128_t>(v, INT64_MIN, INT64_MAX));
  };
  return PlaceOf(base, clamped(first), first > INT64_MAX, clamped(floor + 1), floor >= INT64_MAX);
}

// Are values of this type in the order of their bytes?
bool IsOrderedByBytes(Type type) {
  return !type.array &&
         (type.id == TypeId::kText || type.id == TypeId::kVarchar || type.id == TypeId::kBytea);
}

bool DecideBounds(int order, FilterOp op) {
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

}  // namespace

Verdict Chunk::Judge(const ValueFilter& filter) const {
  if (rows_ == 0) return Verdict::kNone;
  const bool all_null = null_count_ == rows_;
  const Verdict all = null_count_ == 0 ? Verdict::kAll : Verdict::kSome;
  if (filter.op == FilterOp::kIsNull) {
    if (all_null) return Verdict::kAll;
    return null_count_ == 0 ? Verdict::kNone : Verdict::kSome;
  }
  if (all_null) return Verdict::kNone;
  if (filter.op == FilterOp::kIsNotNull) return all;
  if (encoding_ == ChunkEncoding::kScaled) {
    const Place place = PlaceOfScaled(least_, filter.value.bytes(), exponent_);
    const CodeRange range = RangeOf(place, filter.op);
    const uint64_t last = static_cast<uint64_t>(greatest_) - static_cast<uint64_t>(least_);
    const bool none_inside = range.empty || range.least > last;
    const bool all_inside = !none_inside && range.least == 0 && range.greatest >= last;
    if (none_inside || all_inside) return none_inside == range.negate ? all : Verdict::kNone;
    return Verdict::kSome;
  }
  Arena arena;
  Datum least;
  Datum greatest;
  if (Bounds(&arena, &least, &greatest)) {
    const int low = CompareDatums(least, filter.value, type_);
    const int high = CompareDatums(greatest, filter.value, type_);
    const bool low_passes = DecideBounds(low, filter.op);
    const bool high_passes = DecideBounds(high, filter.op);
    switch (filter.op) {
      case FilterOp::kEqual:
        if (low > 0 || high < 0) return Verdict::kNone;
        return low_passes && high_passes ? all : Verdict::kSome;
      case FilterOp::kNotEqual:
        if (low > 0 || high < 0) return all;
        return low_passes || high_passes ? Verdict::kSome : Verdict::kNone;
      default:
        if (low_passes && high_passes) return all;
        return low_passes || high_passes ? Verdict::kSome : Verdict::kNone;
    }
  }
  if (encoding_ != ChunkEncoding::kDictionary) return Verdict::kSome;
  uint32_t passing = 0;
  for (uint32_t i = 0; i < entries_; ++i) {
    if (checked_ && !IsValidStored(Entry(i), type_)) return Verdict::kSome;
    passing += PassesFilter(Datum::Bytes(Entry(i)), type_, filter) ? 1 : 0;
  }
  if (passing == 0) return Verdict::kNone;
  return passing == entries_ ? all : Verdict::kSome;
}

void Chunk::FilterDoubles(const ValueFilter& filter, uint32_t first, uint32_t count,
                          uint8_t* mask) const {
  const double constant = filter.value.double_value();
  if (std::isnan(constant)) {
    for (uint32_t i = 0; i < count; ++i) {
      if (mask[i] == 0) continue;
      mask[i] = PassesFilter(Datum::Double(DoubleAt(first + i)), type_, filter) ? 1 : 0;
    }
    return;
  }
  const auto apply = [&](auto passes) {
    if (code_bits_ == 32) {
      const char* values = codes_ + size_t{4} * first;
      for (uint32_t i = 0; i < count; ++i) {
        const double value = Load<float>(values + size_t{4} * i);
        mask[i] = static_cast<uint8_t>(mask[i] & (passes(value) ? 1 : 0));
      }
    } else {
      const char* values = codes_ + size_t{8} * first;
      for (uint32_t i = 0; i < count; ++i) {
        const auto value = Load<double>(values + size_t{8} * i);
        mask[i] = static_cast<uint8_t>(mask[i] & (passes(value) ? 1 : 0));
      }
    }
  };
  // A NaN is greater than the constant: it fails the first three and passes their opposites.
  switch (filter.op) {
    case FilterOp::kEqual: return apply([=](double v) { return v == constant; });
    case FilterOp::kLess: return apply([=](double v) { return v < constant; });
    case FilterOp::kLessOrEqual: return apply([=](double v) { return v <= constant; });
    case FilterOp::kNotEqual: return apply([=](double v) { return !(v == constant); });
    case FilterOp::kGreaterOrEqual: return apply([=](double v) { return !(v < constant); });
    case FilterOp::kGreater: return apply([=](double v) { return !(v <= constant); });
    case FilterOp::kIsNull:
    case FilterOp::kIsNotNull: return;
  }
}

const char* Chunk::FilterDictionary(const ValueFilter& filter, uint32_t first, uint32_t count,
                                    uint8_t* mask) const {
  uint8_t passes[256] = {};
  for (uint32_t i = 0; i < entries_; ++i) {
    if (checked_ && !IsValidStored(Entry(i), type_)) return kBadValue;
    passes[i] = PassesFilter(Datum::Bytes(Entry(i)), type_, filter) ? 1 : 0;
  }
  uint8_t codes[kMaxPageRows];
  if (Loops().bytes(codes_, code_bits_, first, count, codes) >= entries_) return kBadCode;
  for (uint32_t i = 0; i < count; ++i) mask[i] = static_cast<uint8_t>(mask[i] & passes[codes[i]]);
  return nullptr;
}

const char* Chunk::FilterBytes(const ValueFilter& filter, uint32_t first, uint32_t count,
                               uint8_t* mask) const {
  std::string_view values[kMaxPageRows];
  Arena arena;
  if (const char* wrong = DecodeBytes(first, count, values, &arena); wrong != nullptr) return wrong;
  if (IsOrderedByBytes(type_)) {
    const std::string_view constant = filter.value.bytes();
    const bool equality = filter.op == FilterOp::kEqual || filter.op == FilterOp::kNotEqual;
    const uint8_t flip = filter.op == FilterOp::kNotEqual ? 1 : 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (mask[i] == 0) continue;
      const bool passes = equality ? (values[i] == constant ? 1 : 0) != flip
                                   : DecideBounds(values[i].compare(constant), filter.op);
      mask[i] = passes ? 1 : 0;
    }
    return nullptr;
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (mask[i] == 0) continue;
    if (checked_ && !IsValidStored(values[i], type_)) return kBadValue;
    mask[i] = PassesFilter(Datum::Bytes(values[i]), type_, filter) ? 1 : 0;
  }
  return nullptr;
}

Status Chunk::Filter(const ValueFilter& filter, uint32_t first, uint32_t count,
                     uint8_t* mask) const {
  if (first > rows_ || count > rows_ - first) return BadChunk("it has too few rows");
  if (count == 0) return Status();
  if (nulls_ != nullptr) {
    uint8_t nulls[kMaxPageRows];
    DecodeNulls(first, count, nulls);
    const uint8_t flip = filter.op == FilterOp::kIsNull ? 0 : 1;
    for (uint32_t i = 0; i < count; ++i) {
      mask[i] = static_cast<uint8_t>(mask[i] & (nulls[i] ^ flip));
    }
  } else if (filter.op == FilterOp::kIsNull) {
    std::memset(mask, 0, count);
  }
  if (filter.op == FilterOp::kIsNull || filter.op == FilterOp::kIsNotNull) return Status();

  const char* wrong = nullptr;
  switch (encoding_) {
    case ChunkEncoding::kSequence:
    case ChunkEncoding::kFrame:
    case ChunkEncoding::kDecimal:
    case ChunkEncoding::kScaled: {
      Place place;
      if (encoding_ == ChunkEncoding::kScaled) {
        place = PlaceOfScaled(least_, filter.value.bytes(), exponent_);
      } else if (encoding_ != ChunkEncoding::kDecimal) {
        const int64_t value = filter.value.int_value();
        const bool last = value == INT64_MAX;
        place = PlaceOf(least_, value, false, last ? value : value + 1, last);
      } else {
        const double value = filter.value.double_value();
        const double power = kPowersOfTen[exponent_];
        // NaN is above all.
        const int64_t at =
            std::isnan(value) ? kDecimalLimit + 1 : LeastDecimal(value, power, false);
        const int64_t above =
            std::isnan(value) ? kDecimalLimit + 1 : LeastDecimal(value, power, true);
        place = PlaceOf(least_, at, at > kDecimalLimit, above, above > kDecimalLimit);
      }
      const CodeRange range = RangeOf(place, filter.op);
      if (range.empty) {
        if (!range.negate) std::memset(mask, 0, count);
        break;
      }
      if (encoding_ == ChunkEncoding::kSequence) {
        uint64_t codes[kMaxPageRows];
        const uint64_t base = static_cast<uint64_t>(IntAt(first)) - static_cast<uint64_t>(least_);
        for (uint32_t i = 0; i < count; ++i) codes[i] = base + i * static_cast<uint64_t>(step_);
        Loops().range(reinterpret_cast<const char*>(codes), 64, 0, count, range.least,
                      range.greatest, range.negate, mask);
        break;
      }
      Loops().range(codes_, code_bits_, first, count, range.least, range.greatest, range.negate,
                    mask);
      break;
    }
    case ChunkEncoding::kDouble: FilterDoubles(filter, first, count, mask); break;
    case ChunkEncoding::kDictionary: wrong = FilterDictionary(filter, first, count, mask); break;
    case ChunkEncoding::kBytes:
    case ChunkEncoding::kLetters: wrong = FilterBytes(filter, first, count, mask); break;
  }
  return wrong == nullptr ? Status() : BadChunk(wrong);
}

}  // namespace cellar::codec
