#include "cellar/table/split_rows.h"

#include <algorithm>
#include <bit>

#include "cellar/codec/patch.h"

namespace cellar::table {
namespace {

// The value under the part's key; empty: there is none.
void AppendPart(const CompiledTable& table, const RowPart& part, const RowBatch& rows, size_t row,
                std::string* out) {
  for (uint32_t position : part.positions) {
    const Datum value = rows.column(position).Get(row);
    if (value.is_null() && !table.WritesNull(position)) continue;
    if (out->empty()) codec::BeginPatch(out);
    codec::AppendPatchColumn(table.living_ids()[position], value, table.living_types()[position],
                             out);
  }
}

}  // namespace

bool Identical(const ColumnVector& a, size_t row_a, const ColumnVector& b, size_t row_b) {
  if (a.IsNull(row_a) || b.IsNull(row_b)) return a.IsNull(row_a) && b.IsNull(row_b);
  switch (a.physical()) {
    case Physical::kInt64: return a.ints()[row_a] == b.ints()[row_b];
    case Physical::kDouble:
      return std::bit_cast<uint64_t>(a.doubles()[row_a]) ==
             std::bit_cast<uint64_t>(b.doubles()[row_b]);
    case Physical::kBytes: return a.bytes()[row_a] == b.bytes()[row_b];
  }
  return false;
}

void AppendPartKey(const CompiledTable& table, const RowPart& part, std::string_view row_key,
                   std::string* key) {
  if (part.prefix.empty()) {
    key->append(row_key.substr(0, row_key.size() - 1));
  } else {
    const size_t prefix = table.primary().prefix.size();
    key->append(part.prefix);
    key->append(row_key.substr(prefix, row_key.size() - prefix - 1));
  }
  key->append(part.suffix);
}

Status PutParts(AccessContext* context, const CompiledTable& table, std::string_view row_key,
                const RowBatch& rows, const RowBatch* old_rows, size_t row) {
  std::string key, value;
  for (const RowPart& part : table.parts()) {
    if (old_rows != nullptr &&
        std::all_of(part.positions.begin(), part.positions.end(), [&](uint32_t position) {
          return Identical(rows.column(position), row, old_rows->column(position), row);
        })) {
      continue;
    }
    value.clear();
    AppendPart(table, part, rows, row, &value);
    if (value.empty() && old_rows == nullptr) continue;
    key.clear();
    AppendPartKey(table, part, row_key, &key);
    CELLAR_TRY(value.empty() ? context->transaction->Delete(key)
                             : context->transaction->Put(key, value));
  }
  return Status();
}

Status DeleteParts(AccessContext* context, const CompiledTable& table, std::string_view row_key,
                   const RowBatch& old_rows, size_t row) {
  std::string key;
  for (const RowPart& part : table.parts()) {
    // Of a dropped column it is not known whether it had a value.
    const bool none = part.positions.size() == 1 && table.table().groups.empty() &&
                      old_rows.column(part.positions[0]).IsNull(row) &&
                      !table.WritesNull(part.positions[0]);
    if (none) continue;
    key.clear();
    AppendPartKey(table, part, row_key, &key);
    CELLAR_TRY(context->transaction->Delete(key));
  }
  return Status();
}

}  // namespace cellar::table
