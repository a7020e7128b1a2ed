// Values of enum columns are codes: those that come out of the store must be labels' codes.
#pragma once

#include <memory>

#include "cellar/table/access.h"

namespace cellar::table {

// XX001 with the table and the column when a batch of these columns has a code that no label of the
// column's type has. Cost: a look at each value of an enum column, none otherwise.
Status CheckEnumCodes(const TableDescriptor& table, std::span<const ColumnId> columns,
                      const RowBatch& batch);

// `reader`, checked; the reader itself when no column is an enum.
std::unique_ptr<Reader> WithCheckedEnums(TablePtr table, std::vector<ColumnId> columns,
                                         std::unique_ptr<Reader> reader);

}  // namespace cellar::table
