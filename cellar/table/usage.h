// How much a table holds and how much was done with it, counted in every commit.
//
// The sums are a counter of the store (kv/counters.h) behind `00 "count-" int(storage id)`, in this
// order: rows; bytes of their values; rows inserted, updated and deleted since the table was made;
// rows read. A table that was made before there were counters has none until REPAIR counts it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cellar/catalog/catalog.h"
#include "cellar/kv/engine.h"
#include "cellar/table/compiled.h"

namespace cellar::table {

struct AccessContext;

struct TableUsage {
  int64_t rows = 0;
  // Of all columns' values that are not NULL: numbers, dates and the like by the size of their
  // type, the others by their bytes. What they take on disk is another matter.
  int64_t bytes = 0;
  int64_t inserted = 0, updated = 0, deleted = 0;
  int64_t read = 0;  // written down by TableStore::FlushReads, the others with each commit
};

// Exact at the view (null: in the transaction's snapshot, with all its own changes). nullopt: the
// table is not counted. Cost: one trip.
Result<std::optional<TableUsage>> UsageOf(const catalog::TableDescriptor& table,
                                          kv::Transaction* transaction,
                                          const kv::ReadView* view = nullptr);

// The number of rows, as UsageOf says; nullopt: the table is not counted. `track`: at commit this
// counts as having read all rows, which serializable isolation needs. Cost: one trip; two without
// `track`.
Result<std::optional<uint64_t>> CountRows(const catalog::TableDescriptor& table,
                                          kv::Transaction* transaction, const kv::ReadView* view,
                                          bool track);

// What a batch of rows of all living columns adds to TableUsage::bytes. `picked`: one byte a row,
// null: all.
int64_t ValueBytes(const RowBatch& rows, const uint8_t* picked);

// Counts the table anew, by reading all of it. The caller sees to it that no row changes meanwhile.
Status Recount(const catalog::TablePtr& table, kv::Transaction* transaction);

// For the writers of a table: count what they did, in the transaction.
Status CountInserted(kv::Transaction* transaction, const CompiledTable& table, int64_t rows,
                     int64_t bytes);
Status CountUpdated(kv::Transaction* transaction, const CompiledTable& table, int64_t rows,
                    int64_t bytes);
Status CountDeleted(kv::Transaction* transaction, const CompiledTable& table, int64_t rows,
                    int64_t bytes);
// Nothing, if there is no counter of this name (any more).
Status CountRead(kv::Transaction* transaction, const std::string& counter_name, int64_t rows);

}  // namespace cellar::table
