#include "cellar/table/computed.h"

#include <atomic>
#include <cstring>

#include "cellar/table/compiled.h"

namespace cellar::table {
namespace {

std::atomic<MakeRowEvaluator> g_make{nullptr};

// Borrows bytes.
void CopyColumn(const ColumnVector& from, size_t rows, ColumnVector* to) {
  std::memcpy(to->nulls(), from.nulls(), rows);
  to->set_has_nulls(from.has_nulls());
  if (from.physical() == Physical::kBytes) {
    std::memcpy(static_cast<void*>(to->bytes()), from.bytes(), rows * sizeof(std::string_view));
  } else {
    std::memcpy(to->ints(), from.ints(), rows * sizeof(int64_t));
  }
}

}  // namespace

void SetMakeRowEvaluator(MakeRowEvaluator make) { g_make.store(make, std::memory_order_release); }

Result<std::unique_ptr<RowEvaluator>> MakeEvaluator(const catalog::TableDescriptor& table,
                                                    std::span<const ComputedColumn> columns) {
  const MakeRowEvaluator make = g_make.load(std::memory_order_acquire);
  if (make != nullptr) return make(table, columns);
  return InternalError("indexes of table \"{}\" hold expressions, and nothing evaluates them",
                       table.name);
}

Status IndexedRows::Compute(const CompiledTable& table, const RowBatch& rows) {
  rows_ = &rows;
  if (table.computed().empty() || rows.size() == 0) return Status();
  const size_t living = table.living().size();
  extended_.Reset(table.types());
  extended_.Resize(rows.size());
  for (size_t i = 0; i < living; ++i) {
    CopyColumn(rows.column(i), rows.size(), &extended_.column(i));
  }
  std::unique_ptr<RowEvaluator> evaluator = table.evaluators().Take();
  if (evaluator == nullptr) {
    CELLAR_TRY_ASSIGN(evaluator, MakeEvaluator(table.table(), table.computed()));
  }
  CELLAR_TRY(evaluator->Evaluate(rows, living, &extended_));
  table.evaluators().Return(std::move(evaluator));
  rows_ = &extended_;
  return Status();
}

}  // namespace cellar::table
