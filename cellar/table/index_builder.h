// Fills an index with the entries of many rows. Private to the layer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/table/compiled.h"
#include "cellar/table/reader.h"
#include "cellar/table/sorted_entries.h"

namespace cellar::table {

// A scan of all living columns of all rows, in key order.
ScanSpec WholeTable(const TablePtr& table, const CompiledTable& compiled);

// Makes entries of one index for batches of rows, and puts them into a pool. One thread; what it
// is made with outlives it.
class EntryMaker {
 public:
  EntryMaker(const CompiledTable& compiled, const IndexCodec& index, PiecePool* pool);

  // The rows that Add wants: of all columns only if the index has expressions or a predicate.
  ScanSpec Scan(const TablePtr& table) const;
  // Finish after the last batch.
  Status Add(const RowBatch& scanned);
  void Finish();
  // Of a row of such a batch.
  void AppendRef(const RowBatch& scanned, size_t row, std::string* ref) const;

 private:
  const CompiledTable& compiled_;
  PiecePool* const pool_;
  bool whole_rows_ = false;
  std::vector<ColumnId> columns_;  // of what is scanned
  IndexCodec index_;               // its positions are those of columns_
  std::vector<uint32_t> ref_positions_;
  IndexedRows indexed_;
  PieceSorter sorter_;
  std::string ref_, key_, value_;
  std::vector<Datum> scratch_;
};

// Adds entries of one index for batches of rows that have none yet. Entries are sorted in runs of
// 64 MiB before they are written. One thread, but other makers may fill its pool.
class IndexBuilder {
 public:
  // kPut: a unique key is looked up. kPutIfAbsent: the transaction asks, perhaps as late as its
  // commit (kv::TransactionOptions::bulk); for an index that had no entry before.
  enum class Write : uint8_t { kPut, kPutIfAbsent };

  IndexBuilder(AccessContext* context, const CompiledTable& compiled, const IndexCodec& index,
               Write write);

  ScanSpec Scan(const TablePtr& table) const { return maker_.Scan(table); }
  // Flush after the last batch. Errors: 23505.
  Status Add(const RowBatch& scanned);
  Status Flush();
  void AppendRef(const RowBatch& scanned, size_t row, std::string* ref) const {
    maker_.AppendRef(scanned, row, ref);
  }
  PiecePool* pool() { return &pool_; }
  // What is in the pool.
  Status FlushPool();
  // So far.
  uint64_t entries() const { return entries_; }

 private:
  Status WriteAll(std::span<const SortedPiece> pieces);
  Status CheckAbsent(std::span<const SortedPiece> pieces);
  Status Duplicate(std::string_view key) const;

  AccessContext* context_;
  const CompiledTable& compiled_;
  const IndexCodec& index_;
  const Write write_;
  uint64_t entries_ = 0;
  PiecePool pool_;
  EntryMaker maker_;
};

}  // namespace cellar::table
