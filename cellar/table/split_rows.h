// Rows whose columns lie under several keys: column groups, layouts `cell` and `datum` (compiled.h
// has the keys). The row's own key is written with every change of the row, so readers and writers
// of any of its columns meet there. Private to the layer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/table/compiled.h"
#include "cellar/table/reader.h"

namespace cellar::table {

// Appends the whole key of a part of the row whose own key is `row_key`.
void AppendPartKey(const CompiledTable& table, const RowPart& part, std::string_view row_key,
                   std::string* key);

// Puts what a row of a batch of all living columns has in parts. With `old_rows`, which holds the
// row as it was under the same key, only parts that differ are touched.
Status PutParts(AccessContext* context, const CompiledTable& table, std::string_view row_key,
                const RowBatch& rows, const RowBatch* old_rows, size_t row);
// Deletes the parts of a row that goes.
Status DeleteParts(AccessContext* context, const CompiledTable& table, std::string_view row_key,
                   const RowBatch& old_rows, size_t row);

// Equal in every bit, so that nothing stored changes.
bool Identical(const ColumnVector& a, size_t row_a, const ColumnVector& b, size_t row_b);

}  // namespace cellar::table
