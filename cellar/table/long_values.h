// Values that are too long for their row lie under keys of their own (docs/formats/row.md, "LONG
// ROW"), so that reading, updating and sealing the rest of the table does not move them. Rows with
// such values are never sealed. Private to the layer.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cellar/table/compiled.h"
#include "cellar/table/reader.h"

namespace cellar::table {

// Values of more bytes are taken out of rows of layout `pages`.
inline constexpr size_t kLongestInRow = 32 << 10;

// The ROW in a LONG ROW, with those of its long values that are wanted; the others are NULL in it.
// The result points into `value` or `*storage`. Errors: kCorruption. Cost: a Get per 64 KiB.
Result<std::string_view> ReadLongRow(AccessContext* context, const CompiledTable& table,
                                     std::string_view ref, std::string_view value,
                                     const kv::ReadView* view, const WantedValues& wanted,
                                     std::string* storage);

// Puts the row of a batch of all living columns under its row key, its long values apart.
// `row_value` is its ROW. With `old_rows`, which holds the row as it was under the same key, long
// values that stay the same are left where they are, and those that are gone are deleted.
Status PutRow(AccessContext* context, const CompiledTable& table, std::string_view row_key,
              std::string_view row_value, const RowBatch& rows, const RowBatch* old_rows,
              size_t row);
// Where all of them lie, and how many keys those of one LONG ROW take (0 if it makes no sense).
std::string LongValuesPrefix(const CompiledTable& table);
uint64_t CountPieces(std::string_view long_row);
// Deletes the long values of a row that goes.
Status DeleteLongValues(AccessContext* context, const CompiledTable& table, std::string_view ref,
                        const RowBatch& old_rows, size_t row);
// Has a row, or any row of the batch, a long value?
bool HasLongValue(const CompiledTable& table, const RowBatch& rows, size_t row);
bool AnyLongValue(const CompiledTable& table, const RowBatch& rows);

}  // namespace cellar::table
