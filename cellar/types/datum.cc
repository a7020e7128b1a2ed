// Order and hashes of values by type.
#include "cellar/types/datum.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "cellar/types/array.h"
#include "cellar/types/collation.h"
#include "cellar/types/datetime.h"
#include "cellar/types/json.h"
#include "cellar/types/numeric.h"
#include "cellar/types/record.h"

namespace cellar {
namespace {

constexpr uint64_t kNullHash = 0x9E3779B97F4A7C15;

uint64_t Mix(uint64_t value) {
  value ^= value >> 32;
  value *= 0xD6E8FEB86659FD93;
  value ^= value >> 32;
  value *= 0xD6E8FEB86659FD93;
  value ^= value >> 32;
  return value;
}

uint64_t HashBytes(std::string_view bytes) {
  uint64_t hash = bytes.size() * 0x9E3779B97F4A7C15;
  const char* data = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; data += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    hash = (hash ^ word) * 0xD6E8FEB86659FD93;
    hash ^= hash >> 29;
  }
  if (left > 0) {
    uint64_t word = 0;
    std::memcpy(&word, data, left);
    hash = (hash ^ word) * 0xD6E8FEB86659FD93;
  }
  return Mix(hash);
}

std::string_view WithoutTrailingBlanks(std::string_view text) {
  size_t size = text.size();
  while (size > 0 && text[size - 1] == ' ') --size;
  return text.substr(0, size);
}

int CompareDoubles(double a, double b) {
  if (std::isnan(a)) return std::isnan(b) ? 0 : 1;
  if (std::isnan(b)) return -1;
  return a < b ? -1 : a > b;
}

int CompareInts(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

}  // namespace

Value::Value(Type type, Datum datum) : type_(type), datum_(datum) {
  if (datum.is_null() || PhysicalOf(type) != Physical::kBytes) return;
  const std::string_view bytes = datum.bytes();
  if (bytes.size() < kLeastCounted) {
    short_ = bytes;
    return;
  }
  CountedArray<char> copy = MakeCountedArray<char>(bytes.size());
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  datum_ = Datum::Bytes({copy.get(), bytes.size()});
  long_ = std::move(copy);
}

bool HasForm(Datum value, Type type) {
  const Physical form = PhysicalOf(type);
  if (type.id == TypeId::kVoid) return true;  // nobody looks at it
  if (!value.Is(form)) return false;
  if (form != Physical::kBytes || value.is_null()) return true;
  if (type.array) return ArrayView(value.bytes(), ScalarOf(type)).valid();
  switch (type.id) {
    case TypeId::kInt2vector:
    case TypeId::kOidvector: return ArrayView(value.bytes(), ElementTypeOf(type)).valid();
    case TypeId::kRecord: return IsRecord(value.bytes());
    case TypeId::kInterval:
    case TypeId::kUuid: return value.bytes().size() == 16;
    case TypeId::kTimetz: return value.bytes().size() == 12;
    default: return true;
  }
}

int CompareDatums(Datum a, Datum b, Type type) {
  if (type.array) return CompareArrays(a.bytes(), b.bytes(), ScalarOf(type));
  switch (PhysicalOf(type)) {
    case Physical::kInt64: return CompareInts(a.int_value(), b.int_value());
    case Physical::kDouble: return CompareDoubles(a.double_value(), b.double_value());
    case Physical::kBytes: break;
  }
  switch (type.id) {
    case TypeId::kNumeric: return numeric::Compare(a.bytes(), b.bytes());
    case TypeId::kInterval: return CompareIntervals(IntervalOf(a), IntervalOf(b));
    case TypeId::kTimetz: return CompareTimeTz(TimeTzOf(a), TimeTzOf(b));
    case TypeId::kOidvector: {
      // The shorter one first, whatever it holds.
      const size_t left = ArrayView(a.bytes(), ElementTypeOf(type)).size();
      const size_t right = ArrayView(b.bytes(), ElementTypeOf(type)).size();
      if (left != right) return left < right ? -1 : 1;
      return CompareArrays(a.bytes(), b.bytes(), ElementTypeOf(type));
    }
    case TypeId::kInt2vector: return CompareArrays(a.bytes(), b.bytes(), ElementTypeOf(type));
    case TypeId::kJsonb: return CompareJsonb(a.bytes(), b.bytes());
    case TypeId::kRecord: {
      Result<int> order = CompareRecords(a.bytes(), b.bytes());
      return order.ok() ? *order : a.bytes().compare(b.bytes());
    }
    case TypeId::kBpchar:
      if (type.collation != nullptr) {
        return CompareTexts(WithoutTrailingBlanks(a.bytes()), WithoutTrailingBlanks(b.bytes()),
                            *type.collation);
      }
      return WithoutTrailingBlanks(a.bytes()).compare(WithoutTrailingBlanks(b.bytes()));
    default:
      if (type.collation != nullptr) return CompareTexts(a.bytes(), b.bytes(), *type.collation);
      return a.bytes().compare(b.bytes());
  }
}

uint64_t HashDatum(Datum datum, Type type) {
  if (datum.is_null()) return kNullHash;
  if (type.array) return HashArray(datum.bytes(), ScalarOf(type));
  switch (PhysicalOf(type)) {
    case Physical::kInt64: return Mix(static_cast<uint64_t>(datum.int_value()));
    case Physical::kDouble: {
      double value = datum.double_value();
      if (value == 0) value = 0;  // -0.0 equals 0.0
      if (std::isnan(value)) return kNullHash + 1;
      uint64_t bits;
      std::memcpy(&bits, &value, 8);
      return Mix(bits);
    }
    case Physical::kBytes: break;
  }
  switch (type.id) {
    case TypeId::kNumeric: return numeric::Hash(datum.bytes());
    case TypeId::kInterval: return HashInterval(IntervalOf(datum));
    case TypeId::kTimetz: return HashTimeTz(TimeTzOf(datum));
    case TypeId::kInt2vector:
    case TypeId::kOidvector: return HashArray(datum.bytes(), ElementTypeOf(type));
    case TypeId::kJsonb: return HashJsonb(datum.bytes());
    case TypeId::kRecord: return HashRecord(datum.bytes());
    case TypeId::kBpchar:
      if (type.collation != nullptr) {
        return HashText(WithoutTrailingBlanks(datum.bytes()), *type.collation);
      }
      return HashBytes(WithoutTrailingBlanks(datum.bytes()));
    default:
      if (type.collation != nullptr) return HashText(datum.bytes(), *type.collation);
      return HashBytes(datum.bytes());
  }
}

}  // namespace cellar
