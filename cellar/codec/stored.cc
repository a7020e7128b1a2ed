// Stored forms of single values: what may be read as a value of a type, and cells
// (docs/formats/row.md).
#include "cellar/codec/row.h"
#include "cellar/codec/row_bytes.h"
#include "cellar/types/array.h"
#include "cellar/types/numeric.h"

namespace cellar::codec {

using namespace internal;  // NOLINT: the private half of this very layer

namespace {

bool IsStoredNumeric(std::string_view n) {
  if (n.empty()) return false;
  switch (n[0]) {
    case 1: return n.size() == 10;
    case 2: return n.size() == 18;
    case 3: {
      constexpr size_t kMaxMagnitude = 65536;
      if (n.size() < 4 || n.size() > 4 + kMaxMagnitude || static_cast<uint8_t>(n[1]) > 1)
        return false;
      if (n.size() > 4 && n.back() == 0) return false;
      auto scale = Load<uint16_t>(n.data() + 2);
      return scale <= numeric::kMaxDisplayScale && (n.size() >= 4 + 16 || scale > UINT8_MAX);
    }
    case 4:
    case 5:
    case 6: return n.size() == 1;
    default: return false;
  }
}

bool IsStoredArray(std::string_view a, Type element) {
  constexpr size_t kHeader = 8;
  if (a.size() < kHeader) return false;
  auto dimensions = static_cast<uint8_t>(a[0]);
  auto has_nulls = static_cast<uint8_t>(a[1]);
  uint64_t elements = Load<uint32_t>(a.data() + 4);
  if (dimensions > kMaxArrayDimensions || has_nulls > 1) return false;
  if (elements > kMaxArrayElements || (elements == 0) != (dimensions == 0)) return false;
  size_t at = kHeader + size_t{8} * dimensions;
  if (a.size() < at) return false;
  uint64_t product = 1;
  for (size_t i = 0; i < dimensions; ++i) {
    auto length = Load<int32_t>(a.data() + kHeader + 8 * i);
    auto bound = Load<int32_t>(a.data() + kHeader + 8 * i + 4);
    if (length < 1 || int64_t{bound} + length > INT32_MAX) return false;
    product *= static_cast<uint64_t>(length);
    if (product > elements) return false;
  }
  if (dimensions > 0 && product != elements) return false;
  const char* nulls = a.data() + at;
  if (has_nulls != 0) {
    at += (elements + 3) & ~uint64_t{3};
    if (a.size() < at) return false;
    for (size_t i = 0; i < elements; ++i) {
      if (static_cast<uint8_t>(nulls[i]) > 1) return false;
    }
  }
  if (PhysicalOf(element) != Physical::kBytes) return a.size() == at + 8 * elements;
  const char* ends = a.data() + at;
  at += 4 * elements;
  if (a.size() < at) return false;
  uint32_t start = 0;
  for (size_t i = 0; i < elements; ++i) {
    auto end = Load<uint32_t>(ends + 4 * i);
    if (end < start || end > a.size() - at) return false;
    bool is_null = has_nulls != 0 && nulls[i] != 0;
    if (!is_null && !IsValidStored(a.substr(at + start, end - start), element)) return false;
    start = end;
  }
  return start == a.size() - at;
}

int IntegerRank(TypeId id) {
  switch (id) {
    case TypeId::kInt2: return 1;
    case TypeId::kInt4: return 2;
    case TypeId::kInt8: return 3;
    default: return 0;
  }
}
bool IsTextLike(TypeId id) {
  return id == TypeId::kText || id == TypeId::kVarchar || id == TypeId::kBpchar ||
         id == TypeId::kName;
}

}  // namespace

bool IsValidStored(std::string_view bytes, Type type) {
  if (IsArrayType(type)) return IsStoredArray(bytes, ElementTypeOf(type));
  switch (type.id) {
    case TypeId::kNumeric: return IsStoredNumeric(bytes);
    case TypeId::kUuid:
    case TypeId::kInterval: return bytes.size() == 16;
    case TypeId::kTimetz: return bytes.size() == 12;
    default: return true;
  }
}

namespace internal {

bool Fits(Type stored, Type wanted) {
  if (stored.SameKind(wanted)) return true;
  if (stored.array != wanted.array) return false;
  if (IntegerRank(stored.id) > 0) return IntegerRank(stored.id) <= IntegerRank(wanted.id);
  if (stored.id == TypeId::kFloat4) return wanted.id == TypeId::kFloat8;
  return IsTextLike(stored.id) && IsTextLike(wanted.id);
}

void AppendStored(Datum value, Type type, std::string* out) {
  switch (PhysicalOf(type)) {
    case Physical::kBytes: out->append(value.bytes()); return;
    case Physical::kDouble: {
      char bytes[8];
      Store(value.double_value(), bytes);
      out->append(bytes, 8);
      return;
    }
    case Physical::kInt64: {
      char bytes[8];
      Store(value.int_value(), bytes);
      out->append(bytes, 8);
      return;
    }
  }
}

bool ParseStored(std::string_view bytes, Type type, Datum* value) {
  switch (PhysicalOf(type)) {
    case Physical::kBytes:
      if (!IsValidStored(bytes, type)) return false;
      *value = Datum::Bytes(bytes);
      return true;
    case Physical::kDouble:
      if (bytes.size() != 8) return false;
      *value = Datum::Double(Load<double>(bytes.data()));
      return true;
    case Physical::kInt64:
      if (bytes.size() != 8) return false;
      *value = Datum::Int(Load<int64_t>(bytes.data()));
      return true;
  }
  return false;
}

}  // namespace internal

void AppendCell(Datum value, Type type, std::string* out) {
  out->push_back(static_cast<char>(kKindCell));
  if (value.is_null()) {
    out->push_back('\0');
    return;
  }
  out->push_back(static_cast<char>(static_cast<uint8_t>(type.id) | (type.array ? kCellArray : 0)));
  AppendStored(value, type, out);
}

Result<Datum> ParseCell(std::string_view cell, Type type) {
  if (cell.size() < 2 || static_cast<uint8_t>(cell[0]) != kKindCell) {
    return CorruptionError("cell makes no sense: it is not a cell");
  }
  auto code = static_cast<uint8_t>(cell[1]);
  if (code == 0) {
    if (cell.size() > 2) return CorruptionError("cell makes no sense: a NULL has bytes");
    return Datum();
  }
  Type stored{static_cast<TypeId>(code & ~kCellArray), (code & kCellArray) != 0, -1};
  if (!Fits(stored, type)) return CorruptionError("cell is of another type than its column");
  Datum value;
  if (!ParseStored(cell.substr(2), stored, &value)) {
    return CorruptionError("cell makes no sense: its value is broken");
  }
  return value;
}

}  // namespace cellar::codec
