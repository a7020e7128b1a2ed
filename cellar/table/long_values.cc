#include "cellar/table/long_values.h"

#include <algorithm>

#include "cellar/codec/patch.h"
#include "cellar/table/errors.h"

namespace cellar::table {
namespace {

// Bytes of a long value under one key.
constexpr size_t kPieceBytes = 64 << 10;

std::string PieceKey(const CompiledTable& table, std::string_view ref, ColumnId column,
                     uint64_t piece) {
  std::string key = LongValuesPrefix(table);
  key.append(ref);
  codec::AppendKeyUint(column.value, &key);
  codec::AppendKeyUint(piece, &key);
  codec::FinishKey(&key);
  return key;
}

bool IsKeyColumn(const CompiledTable& table, size_t position) {
  const std::vector<uint32_t>& keys = table.primary().key_positions;
  return std::find(keys.begin(), keys.end(), static_cast<uint32_t>(position)) != keys.end();
}

// The long value at this position of a row; empty when there is none.
std::string_view LongValueAt(const CompiledTable& table, const RowBatch& rows, size_t position,
                             size_t row) {
  const ColumnVector& column = rows.column(position);
  if (column.physical() != Physical::kBytes || column.IsNull(row)) return {};
  const std::string_view value = column.bytes()[row];
  return value.size() > kLongestInRow && !IsKeyColumn(table, position) ? value : std::string_view();
}

size_t PiecesOf(size_t bytes) { return (bytes + kPieceBytes - 1) / kPieceBytes; }

Status DeletePieces(AccessContext* context, const CompiledTable& table, std::string_view ref,
                    ColumnId column, size_t first, size_t end) {
  for (size_t piece = first; piece < end; ++piece) {
    CELLAR_TRY(context->transaction->Delete(PieceKey(table, ref, column, piece)));
  }
  return Status();
}

}  // namespace

bool WantedValues::Has(ColumnId column) const {
  return all || std::find(columns.begin(), columns.end(), column) != columns.end();
}

std::string LongValuesPrefix(const CompiledTable& table) {
  const IndexDescriptor& primary = table.table().primary();
  return codec::TablePrefix(table.table().storage_id(),
                            IndexId{primary.id.value + codec::kOverflowOfPrimary});
}

uint64_t CountPieces(std::string_view long_row) {
  const Result<codec::LongRow> stored = codec::ParseLongRow(long_row);
  uint64_t pieces = 0;
  if (!stored.ok()) return pieces;
  for (const codec::LongValue& value : stored->values) pieces += PiecesOf(value.bytes);
  return pieces;
}

Result<std::string_view> ReadLongRow(AccessContext* context, const CompiledTable& table,
                                     std::string_view ref, std::string_view value,
                                     const kv::ReadView* view, const WantedValues& wanted,
                                     std::string* storage) {
  CELLAR_TRY_ASSIGN(const codec::LongRow stored, codec::ParseLongRow(value));
  const bool any = std::any_of(stored.values.begin(), stored.values.end(),
                               [&](const codec::LongValue& v) { return wanted.Has(v.column); });
  if (!any) return stored.row;
  // The whole row is put together again, as if it had been stored so.
  CELLAR_TRY_ASSIGN(
      std::shared_ptr<const ScanCodec> codec,
      table.Scan(table.primary().index->id, table.living_ids(), false, ScanBytes::kBorrow));
  std::string row_key;
  AppendRowKey(table.primary(), ref, &row_key);
  RowBatch row;
  row.Reset(codec->types());
  row.Resize(1);
  const std::string_view key = row_key;
  CELLAR_TRY(codec->Decode({&key, 1}, {&stored.row, 1}, 0, &row));
  std::vector<std::string> values;
  values.reserve(stored.values.size());
  kv::PinnedValue piece;
  for (const codec::LongValue& part : stored.values) {
    const int position = table.PositionOf(part.column);
    if (position < 0 || !wanted.Has(part.column)) continue;  // dropped since, or not asked for
    std::string& whole = values.emplace_back();
    whole.reserve(part.bytes);
    for (size_t i = 0; whole.size() < part.bytes; ++i) {
      CELLAR_TRY_ASSIGN(const bool found,
                        context->GetUntracked(PieceKey(table, ref, part.column, i), view, &piece));
      if (!found || piece.empty()) return CorruptionError("a piece of a long value is missing");
      whole.append(piece.view());
    }
    if (whole.size() != part.bytes) return CorruptionError("a long value has another length");
    const auto at = static_cast<size_t>(position);
    if (!codec::IsValidStored(whole, table.living_types()[at])) {
      return CorruptionError("a long value is broken");
    }
    row.column(at).Set(0, Datum::Bytes(whole));
  }
  storage->clear();
  CELLAR_TRY(table.AppendRow(row, 0, storage));
  return std::string_view(*storage);
}

Status PutRow(AccessContext* context, const CompiledTable& table, std::string_view row_key,
              std::string_view row_value, const RowBatch& rows, const RowBatch* old_rows,
              size_t row) {
  kv::Transaction* transaction = context->transaction;
  if (!table.paged()) return transaction->Put(row_key, row_value);
  const size_t columns = table.living_types().size();
  const size_t prefix = table.primary().prefix.size();
  const std::string_view ref = row_key.substr(prefix, row_key.size() - prefix - 1);
  std::vector<codec::LongValue> parts;
  std::vector<size_t> positions;
  if (row_value.size() > kLongestInRow || old_rows != nullptr) {
    for (size_t i = 0; i < columns; ++i) {
      const std::string_view value = LongValueAt(table, rows, i, row);
      const std::string_view old =
          old_rows == nullptr ? std::string_view() : LongValueAt(table, *old_rows, i, row);
      const ColumnId id = table.living_ids()[i];
      const size_t pieces = PiecesOf(value.size());
      CELLAR_TRY(DeletePieces(context, table, ref, id, pieces, PiecesOf(old.size())));
      if (value.empty()) continue;
      parts.push_back({id, value.size()});
      positions.push_back(i);
      if (value == old) {
        // A long default of a column that was added later has never been written.
        kv::PinnedValue first;
        CELLAR_TRY_ASSIGN(const bool there,
                          context->GetUntracked(PieceKey(table, ref, id, 0), nullptr, &first));
        if (there) continue;
      }
      for (size_t piece = 0; piece < pieces; ++piece) {
        CELLAR_TRY(transaction->Put(PieceKey(table, ref, id, piece),
                                    value.substr(piece * kPieceBytes, kPieceBytes)));
      }
    }
  }
  if (parts.empty()) return transaction->Put(row_key, row_value);
  RowBatch rest;
  rest.Reset(table.living_types());
  rest.Resize(1);
  for (size_t i = 0; i < columns; ++i) rest.column(i).Set(0, rows.column(i).Get(row));
  for (size_t position : positions) rest.column(position).SetNull(0);
  std::string value;
  codec::AppendLongRowHead(parts, &value);
  CELLAR_TRY(table.AppendRow(rest, 0, &value));
  return transaction->Put(row_key, value);
}

Status DeleteLongValues(AccessContext* context, const CompiledTable& table, std::string_view ref,
                        const RowBatch& old_rows, size_t row) {
  for (size_t i = 0; i < table.living_types().size(); ++i) {
    const std::string_view old = LongValueAt(table, old_rows, i, row);
    CELLAR_TRY(DeletePieces(context, table, ref, table.living_ids()[i], 0, PiecesOf(old.size())));
  }
  return Status();
}

bool HasLongValue(const CompiledTable& table, const RowBatch& rows, size_t row) {
  for (size_t i = 0; i < table.living_types().size(); ++i) {
    if (!LongValueAt(table, rows, i, row).empty()) return true;
  }
  return false;
}

bool AnyLongValue(const CompiledTable& table, const RowBatch& rows) {
  for (size_t i = 0; i < table.living_types().size(); ++i) {
    const ColumnVector& column = rows.column(i);
    if (column.physical() != Physical::kBytes || IsKeyColumn(table, i)) continue;
    const std::string_view* values = column.bytes();
    for (size_t row = 0; row < rows.size(); ++row) {
      if (values[row].size() > kLongestInRow && !column.IsNull(row)) return true;
    }
  }
  return false;
}

}  // namespace cellar::table
