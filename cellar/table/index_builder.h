// Fills an index with the entries of many rows. Private to the layer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/arena.h"
#include "cellar/table/compiled.h"
#include "cellar/table/reader.h"

namespace cellar::table {

// A scan of all living columns of all rows, in key order.
ScanSpec WholeTable(const TablePtr& table, const CompiledTable& compiled);

// Adds entries of one index for batches of rows that have none yet. Entries are sorted in runs
// before they are written; a run takes 64 MiB, and at most 64 MiB more while it is sorted. One
// thread.
class IndexBuilder {
 public:
  // kPut: a unique key is looked up. kPutIfAbsent: the transaction asks, perhaps as late as its
  // commit (kv::TransactionOptions::bulk); for an index that had no entry before.
  enum class Write : uint8_t { kPut, kPutIfAbsent };

  IndexBuilder(AccessContext* context, const CompiledTable& compiled, const IndexCodec& index,
               Write write);

  // The rows that Add wants: of all columns only if the index has expressions or a predicate.
  ScanSpec Scan(const TablePtr& table) const;
  // Flush after the last batch. Errors: 23505.
  Status Add(const RowBatch& scanned);
  // Of a row of such a batch.
  void AppendRef(const RowBatch& scanned, size_t row, std::string* ref) const;
  Status Flush();
  // So far.
  uint64_t entries() const { return entries_; }

 private:
  struct Entry {
    uint64_t order;     // the first bytes behind the index's prefix
    const char* bytes;  // a Header, the key, the value; in arena_
  };
  struct Header {
    uint32_t key_bytes, value_bytes;
    bool asks;  // the key must be new
  };

  static Header HeaderOf(const Entry& entry);
  static std::string_view KeyOf(const Entry& entry);
  static bool Before(const Entry& a, const Entry& b) {
    return a.order != b.order ? a.order < b.order : KeyOf(a) < KeyOf(b);
  }
  void Sort();
  Status CheckUnique();
  Status Duplicate(std::string_view key) const;

  AccessContext* context_;
  const CompiledTable& compiled_;
  const Write write_;
  bool whole_rows_ = false;
  std::vector<ColumnId> columns_;  // of what is scanned
  const IndexCodec& whole_index_;
  IndexCodec index_;  // its positions are those of columns_
  std::vector<uint32_t> ref_positions_;
  uint64_t entries_ = 0;
  IndexedRows indexed_;
  std::string ref_, entry_;
  Arena arena_;
  std::vector<Entry> run_;
  std::vector<Datum> scratch_;
};

}  // namespace cellar::table
