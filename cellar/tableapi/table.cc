// What every implementation of cellar/table.h shares.
#include "cellar/table.h"

#include <random>
#include <thread>

namespace cellar {
namespace {

constexpr int kMaxRetries = 50;
constexpr int64_t kFirstBackOffMicros = 50, kMaxBackOffMicros = 20000;

}  // namespace

Result<WriteResult> Table::Put(std::span<const Record> records, const PutOptions& options) {
  CellBatch cells;
  CELLAR_TRY_ASSIGN(SchemaPtr newest, ToCells(records, &cells));
  return PutCells(newest == nullptr ? schema() : newest, cells, options);
}

Result<Cell> Table::Increment(const Key& key, std::string_view column, const Cell& amount,
                              const IncrementOptions& options) {
  const RowChange change{key, {{std::string(column), amount}}};
  CELLAR_TRY_ASSIGN(IncrementResult result, Increment(std::span(&change, 1), options));
  if (result.rows.empty()) return Cell();
  return result.rows[0].GetCell(0);
}

Status TableStore::Run(const std::function<Status(TableTransaction*)>& body,
                       const TableTransactionOptions& options) {
  static thread_local std::minstd_rand random(std::random_device{}());
  for (int attempt = 0;; ++attempt) {
    CELLAR_TRY_ASSIGN(std::unique_ptr<TableTransaction> transaction, Begin(options));
    Status status = body(transaction.get());
    if (status.ok()) {
      status = transaction->Commit().status();
    } else {
      (void)transaction->Rollback();
    }
    if (status.code() != Code::kConflict || attempt >= kMaxRetries) return status;
    const int64_t most = std::min(kFirstBackOffMicros << std::min(attempt, 10), kMaxBackOffMicros);
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution<int64_t>(0, most)(random)));
  }
}

}  // namespace cellar
