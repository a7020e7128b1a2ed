// Fills an index with the entries of many rows. Private to the layer.
#pragma once

#include <cstdint>
#include <vector>

#include "cellar/table/compiled.h"
#include "cellar/table/reader.h"
#include "cellar/table/string_list.h"

namespace cellar::table {

// A scan of all living columns of all rows, in key order.
ScanSpec WholeTable(const TablePtr& table, const CompiledTable& compiled);

// Adds entries of one index for batches of rows that have none yet. Entries are sorted in runs of
// 16 MiB before they are written. One thread.
class IndexBuilder {
 public:
  // kPut: a unique key is looked up. kPutIfAbsent: the transaction asks, perhaps as late as its
  // commit (kv::TransactionOptions::bulk); for an index that had no entry before.
  enum class Write : uint8_t { kPut, kPutIfAbsent };

  IndexBuilder(AccessContext* context, const CompiledTable& compiled, const IndexCodec& index,
               Write write)
      : context_(context), compiled_(compiled), index_(index), write_(write) {}

  // Flush after the last batch. Errors: 23505.
  Status Add(const RowBatch& whole_rows);
  Status Flush();
  // So far.
  uint64_t entries() const { return entries_; }

 private:
  struct Entry {
    uint64_t order;  // the first bytes behind the index's prefix
    uint32_t place;  // of the key in run_bytes_; the value follows
    bool asks;       // its key must be new
  };

  Status CheckUnique();
  Status Duplicate(std::string_view key) const;

  AccessContext* context_;
  const CompiledTable& compiled_;
  const IndexCodec& index_;
  const Write write_;
  uint64_t entries_ = 0;
  IndexedRows indexed_;
  StringList refs_;
  StringList run_bytes_;
  std::vector<Entry> run_;
  std::vector<Datum> scratch_;
};

}  // namespace cellar::table
