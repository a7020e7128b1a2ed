// Fills an index while its table is in use (docs/decisions/0014-jobs.md).
#pragma once

#include <cstdint>
#include <string>

#include "cellar/table/access.h"

namespace cellar::table {

struct BackfillStep {
  uint64_t rows = 0;
  bool done = false;  // the end of the table was reached
};

// All outlive the call; `cancel` may be null.
struct BackfillContext {
  kv::Transaction* transaction = nullptr;
  const CancelToken* cancel = nullptr;
  TableStore* store = nullptr;
};

// Puts entries of an index that writers keep already (IndexState::kWriteOnly) for the next rows
// from *position on ("": the first), about `max_rows` of them, and advances it. The commit must
// depend on the descriptor. Other transactions may write meanwhile: whoever commits first is right.
// Errors: 23505 when a unique index meets a duplicate.
Status BackfillIndex(const BackfillContext& in, const TablePtr& table, IndexId index,
                     uint64_t max_rows, std::string* position, BackfillStep* step);

// Cost: a scan of the index's keys, untracked.
Result<uint64_t> CountEntries(const BackfillContext& in, const TableDescriptor& table,
                              IndexId index);

}  // namespace cellar::table
