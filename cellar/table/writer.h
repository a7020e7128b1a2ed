// How rows are written with all their index entries. Private to the layer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/table/access.h"
#include "cellar/table/compiled.h"
#include "cellar/table/reader.h"
#include "cellar/table/string_list.h"

namespace cellar::table {

// May writers add entries to an index in this state; must they remove them? Of an index that is
// being built they do neither, but note what they change (backfill.h).
inline bool TakesEntries(const IndexDescriptor& index) {
  return index.state == catalog::IndexState::kPublic;
}
inline bool LosesEntries(const IndexDescriptor& index) {
  return TakesEntries(index) || index.state == catalog::IndexState::kDeleteOnly;
}

Status InsertRows(AccessContext* context, const TablePtr& table, RowBatch* rows,
                  const ConflictPolicy& policy, InsertOutcome* outcome);
Status UpdateRows(AccessContext* context, const TablePtr& table,
                  std::span<const std::string_view> refs, const RowBatch& old_rows,
                  const RowBatch& new_rows, std::vector<uint8_t>* set_aside);
Status DeleteRows(AccessContext* context, const TablePtr& table,
                  std::span<const std::string_view> refs, const RowBatch& old_rows);

// Appends the RowRef of each row.
void AppendRefs(const CompiledTable& table, const RowBatch& rows, StringList* refs);

// `count` row ids out of the transaction's own view of the counter.
// The hidden row ids of a table: what its record says comes next (nothing: no record), which is
// greater than all ids of rows, and the greatest id of a row (0: no rows). Errors: kCorruption.
Result<std::optional<int64_t>> NextRowId(const TableDescriptor& table,
                                         kv::Transaction* transaction);
Status PutNextRowId(const TableDescriptor& table, int64_t next, kv::Transaction* transaction);
Result<int64_t> GreatestRowId(AccessContext* context, const TablePtr& table);
Result<int64_t> TakeRowIdsInTransaction(const TableDescriptor& table, uint64_t count,
                                        kv::Transaction* transaction);

}  // namespace cellar::table
