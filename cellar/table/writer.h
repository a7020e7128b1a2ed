// How rows are written with all their index entries. Private to the layer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/table/access.h"
#include "cellar/table/compiled.h"
#include "cellar/table/reader.h"

namespace cellar::table {

// Byte strings one after the other in one buffer; cleared between batches, capacity kept.
class StringList {
 public:
  void Clear() {
    bytes_.clear();
    ends_.clear();
  }
  // Append to buffer(), then call End to make what was appended the next string.
  std::string* buffer() { return &bytes_; }
  void End() { ends_.push_back(bytes_.size()); }
  size_t size() const { return ends_.size(); }
  // Valid until the list is changed.
  std::string_view operator[](size_t i) const {
    const size_t start = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(start, ends_[i] - start);
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

// May writers add entries to an index in this state; must they remove them?
inline bool TakesEntries(const IndexDescriptor& index) {
  return index.state == catalog::IndexState::kPublic ||
         index.state == catalog::IndexState::kWriteOnly;
}
inline bool LosesEntries(const IndexDescriptor& index) {
  return index.state != catalog::IndexState::kDropping;
}

Status InsertRows(AccessContext* context, const TablePtr& table, RowBatch* rows,
                  const ConflictPolicy& policy, InsertOutcome* outcome);
Status UpdateRows(AccessContext* context, const TablePtr& table,
                  std::span<const std::string_view> refs, const RowBatch& old_rows,
                  const RowBatch& new_rows);
Status DeleteRows(AccessContext* context, const TablePtr& table,
                  std::span<const std::string_view> refs, const RowBatch& old_rows);

// Appends the RowRef of each row.
void AppendRefs(const CompiledTable& table, const RowBatch& rows, StringList* refs);

// `count` row ids out of the transaction's own view of the counter.
Result<int64_t> TakeRowIdsInTransaction(const TableDescriptor& table, uint64_t count,
                                        kv::Transaction* transaction);

}  // namespace cellar::table
