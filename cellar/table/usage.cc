#include "cellar/table/usage.h"

#include "cellar/table/access.h"
#include "cellar/table/reader.h"
#include "cellar/types/batch.h"

namespace cellar::table {
namespace {

enum Sum : size_t { kRows, kBytes, kInserted, kUpdated, kDeleted, kRead };

int64_t BytesOfColumn(const ColumnVector& column, const uint8_t* picked) {
  int64_t bytes = 0;
  const auto counts = [&](size_t row) {
    return !column.IsNull(row) && (picked == nullptr || picked[row] != 0);
  };
  if (column.physical() == Physical::kBytes) {
    for (size_t row = 0; row < column.size(); ++row) {
      if (counts(row)) bytes += static_cast<int64_t>(column.bytes()[row].size());
    }
    return bytes;
  }
  const int64_t width = TypeLength(column.type());
  if (!column.has_nulls() && picked == nullptr) return width * static_cast<int64_t>(column.size());
  for (size_t row = 0; row < column.size(); ++row) bytes += counts(row) ? width : 0;
  return bytes;
}

}  // namespace

Result<std::optional<TableUsage>> UsageOf(const catalog::TableDescriptor& table,
                                          kv::Transaction* transaction, const kv::ReadView* view) {
  CELLAR_TRY_ASSIGN(const std::optional<kv::CounterValues> sums,
                    transaction->GetCounter(catalog::CounterNameOf(table), view));
  if (!sums) return std::optional<TableUsage>();
  TableUsage usage;
  usage.rows = (*sums)[kRows];
  usage.bytes = (*sums)[kBytes];
  usage.inserted = (*sums)[kInserted];
  usage.updated = (*sums)[kUpdated];
  usage.deleted = (*sums)[kDeleted];
  usage.read = (*sums)[kRead];
  return std::optional<TableUsage>(usage);
}

Result<std::optional<uint64_t>> CountRows(const catalog::TableDescriptor& table,
                                          kv::Transaction* transaction, const kv::ReadView* view,
                                          bool track) {
  CELLAR_TRY_ASSIGN(const std::optional<TableUsage> usage, UsageOf(table, transaction, view));
  if (!usage.has_value() || usage->rows < 0) return std::optional<uint64_t>();
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(table));
  if (track) {
    const codec::KeyRange rows = codec::PrefixRange(compiled->primary().prefix);
    CELLAR_TRY(transaction->AddReadConflict(rows.start, rows.end));
  } else {
    // Reading a counter is no read to the transaction, whose snapshot may still move then. A key
    // that nothing has makes it one.
    kv::PinnedValue nothing;
    CELLAR_TRY(
        transaction->Get(compiled->primary().prefix, &nothing, {kv::ReadMode::kSnapshot, view})
            .status());
  }
  return std::optional<uint64_t>(static_cast<uint64_t>(usage->rows));
}

int64_t ValueBytes(const RowBatch& rows, const uint8_t* picked) {
  int64_t bytes = 0;
  for (size_t column = 0; column < rows.num_columns(); ++column) {
    bytes += BytesOfColumn(rows.column(column), picked);
  }
  return bytes;
}

Status Recount(const catalog::TablePtr& table, kv::Transaction* transaction) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  AccessContext context;
  context.transaction = transaction;
  ScanSpec spec;
  spec.table = table;
  spec.index = compiled->primary().index->id;
  spec.spans = {Span{}};
  spec.columns.assign(compiled->living_ids().begin(), compiled->living_ids().end());
  CELLAR_TRY_ASSIGN(std::unique_ptr<Reader> reader, OpenScan(&context, std::move(spec)));
  RowBatch batch;
  kv::CounterValues sums{};
  const Result<std::optional<kv::CounterValues>> before =
      transaction->GetCounter(compiled->counter_name());
  if (before.status().code() != Code::kCorruption) CELLAR_TRY(before.status());
  if (before.ok() && *before) sums = **before;
  sums[kRows] = sums[kBytes] = 0;
  while (true) {
    CELLAR_TRY_ASSIGN(const bool more, reader->Next(&batch));
    if (!more) break;
    sums[kRows] += static_cast<int64_t>(batch.size());
    sums[kBytes] += ValueBytes(batch, nullptr);
  }
  CELLAR_TRY(transaction->DropCounter(compiled->counter_name()));
  CELLAR_TRY(transaction->CreateCounter(compiled->counter_name()));
  return transaction->AddToCounter(compiled->counter_name(), sums);
}

Status CountInserted(kv::Transaction* transaction, const CompiledTable& table, int64_t rows,
                     int64_t bytes) {
  kv::CounterValues sums{};
  sums[kRows] = sums[kInserted] = rows;
  sums[kBytes] = bytes;
  return transaction->AddToCounter(table.counter_name(), sums);
}

Status CountUpdated(kv::Transaction* transaction, const CompiledTable& table, int64_t rows,
                    int64_t bytes) {
  kv::CounterValues sums{};
  sums[kUpdated] = rows;
  sums[kBytes] = bytes;
  return transaction->AddToCounter(table.counter_name(), sums);
}

Status CountDeleted(kv::Transaction* transaction, const CompiledTable& table, int64_t rows,
                    int64_t bytes) {
  kv::CounterValues sums{};
  sums[kDeleted] = rows;
  sums[kRows] = -rows;
  sums[kBytes] = -bytes;
  return transaction->AddToCounter(table.counter_name(), sums);
}

Status CountRead(kv::Transaction* transaction, const std::string& counter_name, int64_t rows) {
  kv::CounterValues sums{};
  sums[kRead] = rows;
  return transaction->AddToCounter(counter_name, sums);
}

}  // namespace cellar::table
