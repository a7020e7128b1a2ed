// Decoding of packed rows (docs/formats/row.md): every length is checked before it is read.
#include <algorithm>

#include "cellar/codec/row.h"
#include "cellar/codec/row_bytes.h"

namespace cellar::codec {

using namespace internal;  // NOLINT: the private half of this very layer

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

}  // namespace cellar::codec
