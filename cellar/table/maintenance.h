// Work on whole indexes and tables. Private to the layer.
#pragma once

#include <functional>

#include "cellar/table/reader.h"

namespace cellar::table {

Status BuildIndexOf(AccessContext* context, const TablePtr& table, IndexId index);
Status ClearIndexOf(AccessContext* context, const TableDescriptor& table, IndexId index);
Status RewriteTable(AccessContext* context, const TablePtr& from, const TablePtr& to,
                    const std::function<Status(const RowBatch& from, RowBatch* to)>& convert);
// The number of rows if there are few, else a guess of "many". Cost: one short scan.
Result<uint64_t> CountFewRows(AccessContext* context, const TableDescriptor& table);

}  // namespace cellar::table
