#include "cellar/table/check_forms.h"

#include <algorithm>

namespace cellar::table {

Result<FormCheck::OldFormat*> FormCheck::FindOldFormat(uint32_t id) {
  for (OldFormat& old : old_formats_) {
    if (old.format->id() == id) return &old;
  }
  const codec::RowFormat* format = table_->FindFormat(id);
  if (format == nullptr) return CorruptionError("row value has unknown row format {}", id);
  std::vector<codec::WantedColumn> wanted;
  std::vector<Type> types;
  std::vector<uint32_t> places;
  for (const codec::RowColumn& column : format->columns()) {
    const auto place = static_cast<uint32_t>(places.size());
    // The key gives these, and the row only what the key loses.
    if (!column.in_key) wanted.push_back({column.id, column.type, place, Value()});
    types.push_back(column.type);
    places.push_back(place);
  }
  CELLAR_TRY_ASSIGN(codec::RowDecoder decoder,
                    codec::RowDecoder::Make(*format, std::move(wanted), codec::RowBytes::kBorrow));
  old_formats_.push_back({format, std::move(decoder), std::move(types), std::move(places)});
  return &old_formats_.back();
}

// What a writer would have made of the row, into expected_.
Status FormCheck::WriteAgain(std::string_view value, const RowBatch& rows, size_t row) {
  CELLAR_TRY_ASSIGN(const uint32_t id, codec::RowFormatIdOf(value));
  expected_.clear();
  if (id == table_->write_format().id()) return table_->AppendRow(rows, row, &expected_);
  CELLAR_TRY_ASSIGN(const OldFormat* old, FindOldFormat(id));
  old_row_.Reset(old->types);
  old_row_.Resize(1);
  for (uint32_t place : old->places) {
    const codec::RowColumn& column = old->format->columns()[place];
    if (!column.in_key) continue;
    const auto position = static_cast<size_t>(table_->PositionOf(column.id));
    old_row_.column(place).Set(0, rows.column(position).Get(row));
  }
  CELLAR_TRY(old->decoder.Decode(value, 0, &old_row_));
  return codec::RowEncoder::Append(*old->format, old_row_, 0, old->places, &expected_);
}

Status FormCheck::CheckRow(std::string_view value, const RowBatch& rows, size_t row) {
  CELLAR_TRY(WriteAgain(value, rows, row));
  if (value == expected_) return Status();
  return CorruptionError("its bytes are not those that a writer makes of its values");
}

Status FormCheck::CheckPart(const RowPart& part, std::string_view value) {
  CELLAR_TRY_ASSIGN(codec::PatchReader reader, codec::PatchReader::Make(value));
  seen_.clear();
  while (true) {
    ColumnId id;
    std::string_view bytes;
    bool null = false;
    CELLAR_TRY_ASSIGN(const bool more, reader.Next(&id, &bytes, &null));
    if (!more) break;
    if (std::find(seen_.begin(), seen_.end(), id) != seen_.end()) {
      return CorruptionError("it holds column {} twice", id.value);
    }
    seen_.push_back(id);
    const auto own =
        std::find_if(part.positions.begin(), part.positions.end(),
                     [&](uint32_t position) { return table_->living_column(position).id == id; });
    if (own == part.positions.end()) {
      const catalog::ColumnDescriptor* column = table_->table().FindColumn(id);
      if (column == nullptr) return CorruptionError("it holds unknown column {}", id.value);
      if (!column->dropped) {
        return CorruptionError("it holds column {}, which lies elsewhere", column->name);
      }
    } else if (!null) {
      const catalog::ColumnDescriptor& column = table_->living_column(*own);
      const Status status = codec::PatchReader::Value(bytes, column.type).status();
      if (!status.ok()) return CorruptionError("column {}: {}", column.name, status.message());
    }
  }
  return seen_.empty() ? CorruptionError("it holds no column") : Status();
}

}  // namespace cellar::table
