// Scans and point look-ups by primary key in tables with layout `pages`. Private to the layer.
#pragma once

#include <memory>
#include <vector>

#include "cellar/table/page_merge.h"
#include "cellar/table/reader.h"

namespace cellar::table {

// Ranges of the primary index, no locks. The columns come side by side out of the pages; filters
// are decided there, on encoded values where that is possible.
Result<std::unique_ptr<Reader>> OpenPageScan(AccessContext* context, const CompiledTable* table,
                                             ScanSpec spec, std::shared_ptr<const ScanCodec> codec,
                                             std::vector<KeyItem> items);

// One row by its primary key, without filters.
std::unique_ptr<Reader> OpenPagePoint(AccessContext* context, const CompiledTable* table,
                                      TablePtr owner, kv::ReadViewPtr view,
                                      std::shared_ptr<const ScanCodec> codec, std::string row_key);

}  // namespace cellar::table
