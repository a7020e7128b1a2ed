// What CHECK and REPAIR share. Private to the layer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cellar/table/check.h"
#include "cellar/table/compiled.h"
#include "cellar/table/pages.h"

namespace cellar::table {

// The ranges under the table's prefix that belong to no index of it, and to no job.
std::vector<codec::KeyRange> UnownedRanges(const CompiledTable& compiled,
                                           const std::vector<codec::KeyRange>& of_jobs);
// Layout `datum`: the ranges of the primary index that belong to no column, living or dropped.
std::vector<codec::KeyRange> RangesOfNoColumn(const CompiledTable& compiled);
// The first key of the range in the transaction's snapshot. Untracked.
Result<std::optional<std::string>> FirstKey(kv::Transaction* transaction,
                                            const codec::KeyRange& range);
// What is wrong with the record of the next row id; empty: nothing. *greatest: of the rows.
Result<std::string> ProblemOfRowIds(AccessContext* context, const TablePtr& table,
                                    const CompiledTable& compiled, int64_t* greatest);
// As CheckTable of check.h. *unread_pages: of how many pages nothing is known.
Status CheckTable(const TablePtr& table, kv::Transaction* transaction, const CheckOptions& options,
                  uint64_t* rows, uint64_t* unread_pages, std::vector<CheckFinding>* findings);

}  // namespace cellar::table
