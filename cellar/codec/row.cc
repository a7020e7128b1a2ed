// Row formats and the encoding of packed rows (docs/formats/row.md). Decoding is in row_decode.cc.
#include "cellar/codec/row.h"

#include <algorithm>

#include "cellar/base/check.h"
#include "cellar/base/sqlstate.h"
#include "cellar/codec/key.h"
#include "cellar/codec/row_bytes.h"

namespace cellar::codec {

using namespace internal;  // NOLINT: the private half of this very layer

// ---- RowFormat ----

RowFormat::Storage RowFormat::StorageOf(Type type) {
  if (IsArrayType(type) || type.id == TypeId::kNumeric) return Storage::kVarChecked;
  switch (type.id) {
    case TypeId::kBool: return Storage::kBool;
    case TypeId::kInt2:
    case TypeId::kInt4:
    case TypeId::kDate:
    case TypeId::kChar: return Storage::kInt4;
    case TypeId::kOid:
    case TypeId::kXid:
    case TypeId::kRegclass:
    case TypeId::kRegtype:
    case TypeId::kRegproc:
    case TypeId::kRegnamespace:
    case TypeId::kRegrole: return Storage::kUint4;
    case TypeId::kInt8:
    case TypeId::kEnum:
    case TypeId::kTime:
    case TypeId::kTimestamp:
    case TypeId::kTimestamptz: return Storage::kInt8;
    case TypeId::kFloat4: return Storage::kFloat4;
    case TypeId::kFloat8: return Storage::kFloat8;
    case TypeId::kUuid:
    case TypeId::kInterval: return Storage::kBytes16;
    case TypeId::kTimetz: return Storage::kBytes12;
    case TypeId::kText:
    case TypeId::kVarchar:
    case TypeId::kBpchar:
    case TypeId::kBytea:
    case TypeId::kJson:
    case TypeId::kJsonb:
    case TypeId::kName:
    case TypeId::kAclitem:
    case TypeId::kPgNodeTree: return Storage::kVar;
    default: return Storage::kKey;  // not storable
  }
}

size_t RowFormat::FixedBytes(Storage storage) {
  switch (storage) {
    case Storage::kBool: return 1;
    case Storage::kInt4:
    case Storage::kUint4:
    case Storage::kFloat4: return 4;
    case Storage::kInt8:
    case Storage::kFloat8: return 8;
    case Storage::kBytes12: return 12;
    case Storage::kBytes16: return 16;
    default: return 0;
  }
}

Result<RowFormat> RowFormat::Make(uint32_t format_id, std::vector<RowColumn> columns) {
  if (columns.size() > kMaxRowColumns) {
    return SqlError(Code::kInvalid, "54011", "a row can have at most {} columns", kMaxRowColumns);
  }
  std::vector<ColumnId> ids;
  for (const RowColumn& column : columns) ids.push_back(column.id);
  std::sort(ids.begin(), ids.end());
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end()) {
    return InvalidError("row format {} repeats a column", format_id);
  }
  RowFormat format;
  format.id_ = format_id;
  format.header_.push_back(static_cast<char>(kKindRow));
  AppendVarint(format_id, &format.header_);
  for (uint32_t i = 0; i < columns.size(); ++i) {
    const RowColumn& column = columns[i];
    Storage storage = StorageOf(column.type);
    if (storage == Storage::kKey) {
      return InvalidError("a value of type {} cannot be stored", FormatType(column.type));
    }
    if (column.in_key) {
      bool may_lose = column.type.collation != nullptr || storage == Storage::kVarChecked ||
                      storage == Storage::kFloat4 || storage == Storage::kFloat8 ||
                      column.type.id == TypeId::kInterval || column.type.id == TypeId::kBpchar;
      if (may_lose) format.lossy_keys_.push_back(i);
      format.slots_.push_back({Storage::kKey, 0, 0});
      continue;
    }
    Slot slot{storage, static_cast<uint16_t>(format.stored_++), 0};
    if (storage >= Storage::kVar) {
      slot.at = format.var_columns_++;
    } else {
      slot.at = format.fixed_bytes_;
      format.fixed_bytes_ += static_cast<uint32_t>(FixedBytes(storage));
    }
    format.slots_.push_back(slot);
  }
  format.bitmap_bytes_ = static_cast<uint32_t>((format.stored_ + 7) / 8);
  format.columns_ = std::move(columns);
  return format;
}

// ---- Encoding ----

template <typename GetValue>
Status RowEncoder::AppendRow(const RowFormat& format, GetValue get, bool unless_empty,
                             std::string* out) {
  using Storage = RowFormat::Storage;
  std::string trailer;
  for (uint32_t ordinal : format.lossy_keys_) {
    const RowColumn& column = format.columns_[ordinal];
    Datum value = get(ordinal);
    if (value.is_null() || !KeyLosesInformation(value, column.type)) continue;
    std::string bytes;
    AppendStored(value, column.type, &bytes);
    AppendVarint(column.id.value, &trailer);
    AppendVarint(bytes.size(), &trailer);
    trailer.append(bytes);
  }
  if (unless_empty && format.stored_ == 0 && trailer.empty()) return Status();

  size_t slots = format.slots_.size();
  size_t var_bytes = 0;
  if (format.var_columns_ > 0) {
    for (size_t i = 0; i < slots; ++i) {
      if (format.slots_[i].storage < Storage::kVar) continue;
      Datum value = get(i);
      if (!value.is_null()) var_bytes += value.bytes().size();
    }
  }
  bool wide = var_bytes > UINT16_MAX;
  size_t body = format.header_.size() + format.bitmap_bytes_ + format.fixed_bytes_;
  size_t total = body + format.var_columns_ * size_t{wide ? 4U : 2U} + var_bytes + trailer.size();
  if (total > kMaxRowBytes) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "row is too big: size {}, maximum size {}", total, kMaxRowBytes);
  }

  size_t start = out->size();
  out->resize(start + total);  // zeroed: absent values and NULL bits
  char* row = out->data() + start;
  std::memcpy(row, format.header_.data(), format.header_.size());
  row[0] =
      static_cast<char>(kKindRow | (trailer.empty() ? 0 : kFlagTrailer) | (wide ? kFlagWide : 0));
  char* bitmap = row + format.header_.size();
  char* fixed = bitmap + format.bitmap_bytes_;
  char* ends = fixed + format.fixed_bytes_;
  char* var = row + total - trailer.size() - var_bytes;
  uint32_t end = 0;
  for (size_t i = 0; i < slots; ++i) {
    const RowFormat::Slot& slot = format.slots_[i];
    if (slot.storage == Storage::kKey) continue;
    Datum value = get(i);
    if (value.is_null()) {
      bitmap[slot.null_bit >> 3] =
          static_cast<char>(bitmap[slot.null_bit >> 3] | 1 << (slot.null_bit & 7));
    }
    char* at = fixed + slot.at;
    switch (slot.storage) {
      case Storage::kKey: break;
      case Storage::kBool:
        if (!value.is_null()) *at = value.bool_value() ? 1 : 0;
        break;
      case Storage::kInt4:
      case Storage::kUint4:
        if (!value.is_null()) Store(static_cast<uint32_t>(value.int_value()), at);
        break;
      case Storage::kInt8:
        if (!value.is_null()) Store(value.int_value(), at);
        break;
      case Storage::kFloat4:
        if (!value.is_null()) Store(static_cast<float>(value.double_value()), at);
        break;
      case Storage::kFloat8:
        if (!value.is_null()) Store(value.double_value(), at);
        break;
      case Storage::kBytes12:
        if (!value.is_null()) std::memcpy(at, value.bytes().data(), 12);
        break;
      case Storage::kBytes16:
        if (!value.is_null()) std::memcpy(at, value.bytes().data(), 16);
        break;
      case Storage::kVar:
      case Storage::kVarChecked:
        if (!value.is_null() && !value.bytes().empty()) {
          std::memcpy(var + end, value.bytes().data(), value.bytes().size());
          end += static_cast<uint32_t>(value.bytes().size());
        }
        if (wide) {
          Store(end, ends + size_t{4} * slot.at);
        } else {
          Store(static_cast<uint16_t>(end), ends + size_t{2} * slot.at);
        }
        break;
    }
  }
  if (!trailer.empty()) std::memcpy(var + var_bytes, trailer.data(), trailer.size());
  return Status();
}

Status RowEncoder::Append(const RowFormat& format, std::span<const Datum> values,
                          std::string* out) {
  CELLAR_DCHECK(values.size() == format.columns_.size());
  return AppendRow(
      format, [values](size_t i) { return values[i]; }, false, out);
}

Status RowEncoder::Append(const RowFormat& format, const RowBatch& batch, size_t row,
                          std::span<const uint32_t> positions, std::string* out) {
  CELLAR_DCHECK(positions.size() == format.columns_.size());
  auto get = [&batch, row, positions](size_t i) { return batch.column(positions[i]).Get(row); };
  return AppendRow(format, get, false, out);
}

Status RowEncoder::AppendUnlessEmpty(const RowFormat& format, std::span<const Datum> values,
                                     std::string* out) {
  CELLAR_DCHECK(values.size() == format.columns_.size());
  return AppendRow(
      format, [values](size_t i) { return values[i]; }, true, out);
}

Status RowEncoder::AppendUnlessEmpty(const RowFormat& format, const RowBatch& batch, size_t row,
                                     std::span<const uint32_t> positions, std::string* out) {
  CELLAR_DCHECK(positions.size() == format.columns_.size());
  auto get = [&batch, row, positions](size_t i) { return batch.column(positions[i]).Get(row); };
  return AppendRow(format, get, true, out);
}

}  // namespace cellar::codec
