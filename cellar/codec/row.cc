// Encoding and decoding of packed rows (docs/formats/row.md). Decoding checks every length before
// it reads.
#include "cellar/codec/row.h"

#include <algorithm>
#include <bit>

#include "cellar/base/check.h"
#include "cellar/base/sqlstate.h"
#include "cellar/codec/key.h"
#include "cellar/codec/key_bytes.h"
#include "cellar/types/array.h"
#include "cellar/types/numeric.h"

namespace cellar::codec {

namespace {

// Of the format byte: the low six bits say what the value is. Persisted; docs/formats/row.md lists
// them.
constexpr uint8_t kKindMask = 0x3F;
constexpr uint8_t kKindRow = 0x01;
constexpr uint8_t kKindCell = 0x03;
constexpr uint8_t kFlagTrailer = 0x40;
constexpr uint8_t kFlagWide = 0x80;

// In a cell's type byte.
constexpr uint8_t kCellArray = 0x80;

template <typename T>
T Load(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <typename T>
void Store(T value, char* p) {
  std::memcpy(p, &value, sizeof value);
}

void AppendVarint(uint64_t v, std::string* out) {
  for (; v >= 0x80; v >>= 7) out->push_back(static_cast<char>(v | 0x80));
  out->push_back(static_cast<char>(v));
}

// A canonical varint of at most 32 bits.
bool TakeVarint(std::string_view* in, uint32_t* value) {
  uint64_t v = 0;
  for (size_t i = 0; i < 5 && i < in->size(); ++i) {
    auto b = static_cast<uint8_t>((*in)[i]);
    v |= uint64_t{b & 0x7FU} << (7 * i);
    if (b >= 0x80) continue;
    if (v > UINT32_MAX || (b == 0 && i > 0)) return false;
    *value = static_cast<uint32_t>(v);
    in->remove_prefix(i + 1);
    return true;
  }
  return false;
}

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

bool IsArrayType(Type type) {
  return type.array || type.id == TypeId::kInt2vector || type.id == TypeId::kOidvector;
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

// May values stored as `stored` be read as `wanted` as they are?
bool Fits(Type stored, Type wanted) {
  if (stored.SameKind(wanted)) return true;
  if (stored.array != wanted.array) return false;
  if (IntegerRank(stored.id) > 0) return IntegerRank(stored.id) <= IntegerRank(wanted.id);
  if (stored.id == TypeId::kFloat4) return wanted.id == TypeId::kFloat8;
  return IsTextLike(stored.id) && IsTextLike(wanted.id);
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
      bool may_lose = column.collated || storage == Storage::kVarChecked ||
                      storage == Storage::kFloat4 || storage == Storage::kFloat8 ||
                      column.type.id == TypeId::kInterval;
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

namespace {

// A value's bytes outside the fixed section: trailers and cells.
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

// The other way; views into `bytes`.
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

}  // namespace

template <typename GetValue>
Status RowEncoder::AppendRow(const RowFormat& format, GetValue get, bool unless_empty,
                             std::string* out) {
  using Storage = RowFormat::Storage;
  std::string trailer;
  for (uint32_t ordinal : format.lossy_keys_) {
    const RowColumn& column = format.columns_[ordinal];
    Datum value = get(ordinal);
    if (value.is_null() || !(column.collated || KeyLosesInformation(value, column.type))) continue;
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

// ---- Decoding ----

// Where one step writes.
struct RowDecoder::Target {
  ColumnVector* column;
  char* values;
  uint8_t* nulls;
};

Result<RowDecoder> RowDecoder::Make(const RowFormat& format, std::vector<WantedColumn> wanted,
                                    RowBytes bytes) {
  RowDecoder decoder;
  decoder.format_ = format;
  decoder.bytes_ = bytes;
  for (WantedColumn& column : wanted) {
    size_t i = 0;
    while (i < format.columns_.size() && format.columns_[i].id != column.id) ++i;
    if (i == format.columns_.size()) {
      decoder.defaults_.push_back(std::move(column));
      continue;
    }
    const RowColumn& stored = format.columns_[i];
    if (!Fits(stored.type, column.type)) {
      return InvalidError("column {} is stored as {} in row format {}, which does not fit {}",
                          column.id.value, FormatType(stored.type), format.id_,
                          FormatType(column.type));
    }
    const RowFormat::Slot& slot = format.slots_[i];
    Step step{slot.storage, slot.null_bit, slot.at, column.position, stored.type, column.id};
    (slot.storage == Storage::kKey ? decoder.key_steps_ : decoder.steps_).push_back(step);
  }
  // In the order of the bytes.
  std::sort(decoder.steps_.begin(), decoder.steps_.end(),
            [](const Step& a, const Step& b) { return a.null_bit < b.null_bit; });
  return decoder;
}

const char* RowDecoder::DecodeTrailer(std::string_view trailer, size_t row, RowBatch* batch) const {
  if (trailer.empty()) return "its trailer is missing";
  while (!trailer.empty()) {
    uint32_t id;
    uint32_t size;
    if (!TakeVarint(&trailer, &id) || !TakeVarint(&trailer, &size) || size > trailer.size()) {
      return "its trailer is broken";
    }
    std::string_view bytes = trailer.substr(0, size);
    trailer.remove_prefix(size);
    for (const Step& step : key_steps_) {
      if (step.id.value != id) continue;
      Datum value;
      if (!ParseStored(bytes, step.type, &value)) return "a value in its trailer is broken";
      if (bytes_ == RowBytes::kCopy) value = CopyDatum(value, step.type, batch->arena());
      batch->column(step.position).Set(row, value);
    }
  }
  return nullptr;
}

// What is wrong with the value, or null.
const char* RowDecoder::DecodeRow(std::string_view value, size_t row, Target* targets,
                                  RowBatch* batch) const {
  if (value.empty()) return format_.stored_ == 0 ? nullptr : "it is empty";
  const size_t header = format_.header_.size();
  const auto first = static_cast<uint8_t>(value[0]);
  const bool wide = (first & kFlagWide) != 0;
  const uint32_t width = wide ? 4 : 2;
  const size_t var_at =
      header + format_.bitmap_bytes_ + format_.fixed_bytes_ + size_t{width} * format_.var_columns_;
  if (value.size() < var_at) return "it is too short";
  if ((first & kKindMask) != kKindRow) return "it is not a row";
  if (std::memcmp(value.data() + 1, format_.header_.data() + 1, header - 1) != 0) {
    return "it is of another row format";
  }
  const char* bitmap = value.data() + header;
  const char* fixed = bitmap + format_.bitmap_bytes_;
  const char* ends = fixed + format_.fixed_bytes_;
  const char* var = value.data() + var_at;
  const size_t var_left = value.size() - var_at;
  auto end_of = [ends, wide](uint32_t i) -> uint32_t {
    return wide ? Load<uint32_t>(ends + size_t{4} * i) : Load<uint16_t>(ends + size_t{2} * i);
  };
  const size_t var_bytes = format_.var_columns_ == 0 ? 0 : end_of(format_.var_columns_ - 1);
  if (var_bytes > var_left) return "its offsets point past its end";
  const bool has_trailer = (first & kFlagTrailer) != 0;
  if (!has_trailer && var_bytes != var_left) return "it is too long";

  for (const Step& step : steps_) {
    const Target& target = *targets++;
    const bool is_null =
        (static_cast<uint8_t>(bitmap[step.null_bit >> 3]) >> (step.null_bit & 7) & 1) != 0;
    target.nulls[row] = is_null ? 1 : 0;
    if (is_null) target.column->set_has_nulls();
    auto* ints = reinterpret_cast<int64_t*>(target.values);
    auto* doubles = reinterpret_cast<double*>(target.values);
    auto* views = reinterpret_cast<std::string_view*>(target.values);
    const char* at = fixed + step.at;
    switch (step.storage) {
      case Storage::kKey: break;
      case Storage::kBool: ints[row] = *at != 0 ? 1 : 0; break;
      case Storage::kInt4: ints[row] = Load<int32_t>(at); break;
      case Storage::kUint4: ints[row] = Load<uint32_t>(at); break;
      case Storage::kInt8: ints[row] = Load<int64_t>(at); break;
      case Storage::kFloat4: doubles[row] = Load<float>(at); break;
      case Storage::kFloat8: doubles[row] = Load<double>(at); break;
      case Storage::kBytes12:
      case Storage::kBytes16: {
        std::string_view bytes(at, step.storage == Storage::kBytes12 ? 12 : 16);
        views[row] = is_null                     ? std::string_view()
                     : bytes_ == RowBytes::kCopy ? batch->arena()->Copy(bytes)
                                                 : bytes;
        break;
      }
      case Storage::kVar:
      case Storage::kVarChecked: {
        const uint32_t start = step.at == 0 ? 0 : end_of(step.at - 1);
        const uint32_t end = end_of(step.at);
        if (start > end || end > var_bytes) return "its offsets are out of order";
        std::string_view bytes(var + start, end - start);
        if (is_null) {
          if (!bytes.empty()) return "a NULL has bytes";
          views[row] = {};
          break;
        }
        if (step.storage == Storage::kVarChecked && !IsValidStored(bytes, step.type)) {
          return "a value in it is broken";
        }
        views[row] = bytes_ == RowBytes::kCopy ? batch->arena()->Copy(bytes) : bytes;
        break;
      }
    }
  }
  if (!has_trailer) return nullptr;
  return DecodeTrailer({var + var_bytes, var_left - var_bytes}, row, batch);
}

Status RowDecoder::Decode(std::span<const std::string_view> values, size_t first_row,
                          RowBatch* batch) const {
  constexpr size_t kOnStack = 32;
  Target on_stack[kOnStack];
  std::vector<Target> on_heap;
  Target* targets = on_stack;
  if (steps_.size() > kOnStack) {
    on_heap.resize(steps_.size());
    targets = on_heap.data();
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    ColumnVector& column = batch->column(steps_[i].position);
    targets[i] = {&column, reinterpret_cast<char*>(column.ints()), column.nulls()};
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (const char* wrong = DecodeRow(values[i], first_row + i, targets, batch); wrong != nullptr) {
      return CorruptionError("row value makes no sense: {}", wrong);
    }
  }
  for (const WantedColumn& column : defaults_) {
    Datum value = column.default_value.datum();
    if (bytes_ == RowBytes::kCopy) value = CopyDatum(value, column.type, batch->arena());
    for (size_t i = 0; i < values.size(); ++i) {
      batch->column(column.position).Set(first_row + i, value);
    }
  }
  return Status();
}

void RowDecoders::Add(RowDecoder decoder) { decoders_.push_back(std::move(decoder)); }

const RowDecoder* RowDecoders::Find(uint32_t format_id) const {
  for (const RowDecoder& decoder : decoders_) {
    if (decoder.format_id() == format_id) return &decoder;
  }
  return nullptr;
}

Status RowDecoders::Decode(std::span<const std::string_view> values, size_t first_row,
                           RowBatch* batch) const {
  // Runs of one format: nearly always all values.
  for (size_t start = 0; start < values.size();) {
    CELLAR_TRY_ASSIGN(uint32_t id, RowFormatIdOf(values[start]));
    const RowDecoder* decoder = Find(id);
    if (decoder == nullptr) return CorruptionError("row value has unknown row format {}", id);
    size_t end = start + 1;
    for (; end < values.size(); ++end) {
      std::string_view next = values[end];
      if (next.size() < 2 || static_cast<uint8_t>(next[1]) != (id & 0x7F) || id >= 0x80) break;
    }
    CELLAR_TRY(decoder->Decode(values.subspan(start, end - start), first_row + start, batch));
    start = end;
  }
  return Status();
}

Result<uint32_t> RowFormatIdOf(std::string_view value) {
  if (value.empty() || (static_cast<uint8_t>(value[0]) & kKindMask) != kKindRow) {
    return CorruptionError("row value makes no sense: it is not a row");
  }
  value.remove_prefix(1);
  uint32_t id;
  if (!TakeVarint(&value, &id)) return CorruptionError("row value makes no sense: no row format");
  return id;
}

// ---- Cells ----

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
