#include "cellar/codec/patch.h"

#include "cellar/codec/row.h"
#include "cellar/codec/row_bytes.h"

namespace cellar::codec {

using namespace internal;  // NOLINT: the private half of this very layer

Result<DeltaKind> DeltaKindOf(std::string_view value) {
  if (value.empty()) return DeltaKind::kTombstone;
  const auto first = static_cast<uint8_t>(value[0]);
  if ((first & kKindMask) == kKindRow) return DeltaKind::kRow;
  if (first == kKindPatch) return DeltaKind::kPatch;
  if (first == kKindLongRow) return DeltaKind::kLongRow;
  return CorruptionError("it is neither a row nor a patch");
}

void BeginPatch(std::string* out) { out->push_back(static_cast<char>(kKindPatch)); }

void AppendPatchColumn(ColumnId column, Datum value, Type type, std::string* out) {
  AppendVarint(column.value, out);
  if (value.is_null()) {
    AppendVarint(0, out);
    return;
  }
  if (PhysicalOf(type) == Physical::kBytes) {
    AppendVarint(value.bytes().size() + 1, out);
    out->append(value.bytes());
    return;
  }
  AppendVarint(sizeof(int64_t) + 1, out);
  char bytes[sizeof(int64_t)];
  if (PhysicalOf(type) == Physical::kDouble) {
    Store(value.double_value(), bytes);
  } else {
    Store(value.int_value(), bytes);
  }
  out->append(bytes, sizeof bytes);
}

Result<PatchReader> PatchReader::Make(std::string_view patch) {
  if (patch.empty() || static_cast<uint8_t>(patch[0]) != kKindPatch) {
    return CorruptionError("it is not a patch");
  }
  PatchReader reader;
  reader.rest_ = patch.substr(1);
  return reader;
}

Result<bool> PatchReader::Next(ColumnId* column, std::string_view* bytes, bool* null) {
  if (rest_.empty()) return false;
  uint32_t id;
  uint32_t size;
  if (!TakeVarint(&rest_, &id) || !TakeVarint(&rest_, &size) ||
      (size > 0 && size - 1 > rest_.size())) {
    return CorruptionError("a patch is broken");
  }
  *column = ColumnId{id};
  *null = size == 0;
  *bytes = size == 0 ? std::string_view() : rest_.substr(0, size - 1);
  rest_.remove_prefix(bytes->size());
  return true;
}

Result<Datum> PatchReader::Value(std::string_view bytes, Type type) {
  if (PhysicalOf(type) == Physical::kBytes) {
    if (!IsValidStored(bytes, type)) return CorruptionError("a value in a patch is broken");
    return Datum::Bytes(bytes);
  }
  if (bytes.size() != sizeof(int64_t)) return CorruptionError("a value in a patch is broken");
  if (PhysicalOf(type) == Physical::kDouble) return Datum::Double(Load<double>(bytes.data()));
  return Datum::Int(Load<int64_t>(bytes.data()));
}

void AppendLongRowHead(std::span<const LongValue> values, std::string* out) {
  out->push_back(static_cast<char>(kKindLongRow));
  AppendVarint(values.size(), out);
  for (const LongValue& value : values) {
    AppendVarint(value.column.value, out);
    AppendVarint(value.bytes, out);
  }
}

Result<LongRow> ParseLongRow(std::string_view value) {
  const auto broken = [] { return CorruptionError("a long row is broken"); };
  if (value.empty() || static_cast<uint8_t>(value[0]) != kKindLongRow) return broken();
  value.remove_prefix(1);
  uint32_t count;
  if (!TakeVarint(&value, &count) || count == 0 || count > kMaxRowColumns) return broken();
  LongRow out;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t column, bytes;
    if (!TakeVarint(&value, &column) || !TakeVarint(&value, &bytes) || bytes == 0 ||
        bytes > kMaxRowBytes) {
      return broken();
    }
    out.values.push_back({ColumnId{column}, bytes});
  }
  if (value.empty() || (static_cast<uint8_t>(value[0]) & kKindMask) != kKindRow) return broken();
  out.row = value;
  return out;
}

}  // namespace cellar::codec
