// Constraint violations in PostgreSQL's words. Private to the layer.
#pragma once

#include <string_view>

#include "cellar/base/status.h"
#include "cellar/table/compiled.h"
#include "cellar/types/text_io.h"

namespace cellar::table {

enum class DuplicateCause : uint8_t { kWrite, kIndexBuild };

// 23505 for the key that `row` has in the index.
Status DuplicateKey(const CompiledTable& table, const IndexCodec& index, const RowBatch& rows,
                    size_t row, const FormatSettings& format,
                    DuplicateCause cause = DuplicateCause::kWrite);
// The same when only the bytes of the whole key are known. kInternal when they are not a key of the
// index.
Status DuplicateKey(const CompiledTable& table, const IndexCodec& index, std::string_view key,
                    const FormatSettings& format, DuplicateCause cause = DuplicateCause::kWrite);
// 23502 for the first NULL, by row and then by column, in a NOT NULL column; OK if there is none.
Status CheckNotNull(const CompiledTable& table, const RowBatch& rows, const FormatSettings& format);

// "(1, x, null)": a row for people, long values cut short, hidden columns left out.
std::string DescribeRow(const CompiledTable& table, const RowBatch& rows, size_t row,
                        const FormatSettings& format);

// 40001: another transaction has changed what this one has read.
Status ConcurrentUpdate();

}  // namespace cellar::table
