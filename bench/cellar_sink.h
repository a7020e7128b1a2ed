// What benchmarks do with Cellar's answers.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "bench/store.h"
#include "cellar/session/discarding_sink.h"

namespace cellar::bench {

inline void Check(const Status& status) {
  if (!status.ok()) Die("cellar: " + status.ToString());
}
template <typename T>
T Check(Result<T> result) {
  Check(result.status());
  return std::move(result).value();
}

// Touches every value of a batch, as a program that reads rows does.
struct Reading {
  uint64_t seen = 0;
  double sum = 0;
  // Column by column, as they come and as DuckDB's are read.
  void Add(const RowBatch& batch) {
    for (const ColumnVector& column : batch.columns()) {
      switch (column.physical()) {
        case Physical::kInt64:
          for (size_t row = 0; row < batch.size(); ++row) {
            seen += static_cast<uint64_t>(column.ints()[row]);
          }
          break;
        case Physical::kDouble:
          for (size_t row = 0; row < batch.size(); ++row) sum += column.doubles()[row];
          break;
        case Physical::kBytes:
          for (size_t row = 0; row < batch.size(); ++row) {
            if (!column.IsNull(row)) seen += static_cast<unsigned char>(column.bytes()[row][0]);
          }
          break;
      }
    }
  }
};

class Sink : public session::DiscardingSink {
 public:
  Status OnRows(const RowBatch& batch) override {
    rows += static_cast<int64_t>(batch.size());
    if (batch.size() > 0 && batch.num_columns() > 0) {
      if (batch.column(0).physical() == Physical::kInt64) last_int = batch.column(0).ints()[0];
      if (batch.column(0).physical() == Physical::kDouble)
        last_double = batch.column(0).doubles()[0];
    }
    reading.Add(batch);
    return Status();
  }
  Status OnCopyIn(int, bool) override { return Status(); }
  Result<bool> ReadCopyData(std::string* chunk) override {
    constexpr size_t kPieceBytes = 1 << 20;
    if (copy == nullptr) return false;
    chunk->resize(kPieceBytes);
    chunk->resize(std::fread(chunk->data(), 1, kPieceBytes, copy));
    return !chunk->empty();
  }

  int64_t rows = 0, last_int = 0;
  double last_double = 0;
  Reading reading;
  std::FILE* copy = nullptr;
};

}  // namespace cellar::bench
