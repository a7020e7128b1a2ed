// Copies a table into another shape, such as another layout or key, while it is in use
// (docs/decisions/0014-jobs.md).
//
// The copy has the table's storage and index ids of its own. A table with TableDescriptor::job set
// keeps two more below next_index_id: its writers note in the change log which rows they touched,
// and the ref map leads from a row's RowRef to that of its copy, where these differ.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cellar/table/backfill.h"

namespace cellar::table {

struct AccessContext;

// Ids that a rewrite needs besides those of the copy's indexes.
inline constexpr uint32_t kIndexIdsOfRewrite = 2;
inline IndexId ChangeLogOf(const TableDescriptor& table) {
  return IndexId{table.next_index_id - 1};
}
inline IndexId RefMapOf(const TableDescriptor& table) { return IndexId{table.next_index_id - 2}; }

// Maps a batch of all living columns of the table to those of the copy.
using ConvertRows = std::function<Status(const RowBatch& from, RowBatch* to)>;

// What the copy holds, and how far it is.
struct RewriteProgress {
  std::string position;         // as of BuildProgress
  bool done = false;            // the end of the table was reached
  int64_t rows = 0, bytes = 0;  // of the copy, as in TableUsage
  uint64_t changes = 0;         // rows that the last step found in the log
};

// One step: what the log says is brought into the copy, and the next rows behind the position,
// about `max_rows`, are copied. Then, if it commits, the copy is the table as it is in the
// transaction's snapshot, up to the position. Nobody else writes what it writes, so of writers it
// needs no tracking: give it a transaction of isolation kSnapshot, which depends on the descriptor.
// Errors: those of `convert`; 23505 for a duplicate that is there in the snapshot.
Status RewriteSome(const BackfillContext& in, const TablePtr& from, const TablePtr& to,
                   const ConvertRows& convert, uint64_t max_rows, RewriteProgress* progress);

// After a step in the same transaction that has reached the end: deletes the old shape, and makes
// the commit fail if a writer has come meanwhile. Errors: kCorruption if the copy has another
// number of rows than the table.
Status FinishRewrite(const BackfillContext& in, const TablePtr& from, const TablePtr& to,
                     const RewriteProgress& progress);

// Where a rewrite writes.
codec::KeyRange RangeOfRewrite(const TableDescriptor& to);
// Deletes all that a rewrite has written. `to` is the copy as it was begun.
Status ClearRewrite(const TableDescriptor& to, kv::Transaction* transaction);

// For writers: notes the rows in the log, if the table is being rewritten. Waits for a pause to
// end.
Status LogChanges(AccessContext* context, const TableDescriptor& table,
                  std::span<const std::string_view> refs);

}  // namespace cellar::table
