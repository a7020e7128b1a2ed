// CHECK of what readers pass over: bytes that decode, but that no writer makes. Private to the
// layer.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/codec/patch.h"
#include "cellar/table/compiled.h"

namespace cellar::table {

// One thread at a time.
class FormCheck {
 public:
  explicit FormCheck(const CompiledTable* table) : table_(table) {}

  // The value under a row's own key; row `row` of the batch, all living columns, is what it and the
  // row's parts say. Is it what a writer of its row format makes of these values? Errors:
  // kCorruption.
  Status CheckRow(std::string_view value, const RowBatch& rows, size_t row);
  // The value under the key of a part: columns of that part, or dropped ones, each once, one at
  // least. Errors: kCorruption.
  Status CheckPart(const RowPart& part, std::string_view value);

 private:
  // Rows of a format that is not written any more. Columns that it has may be gone since.
  struct OldFormat {
    const codec::RowFormat* format;
    codec::RowDecoder decoder;
    std::vector<Type> types;
    std::vector<uint32_t> places;  // 0, 1, ..
  };
  Result<OldFormat*> FindOldFormat(uint32_t id);
  Status WriteAgain(std::string_view value, const RowBatch& rows, size_t row);

  const CompiledTable* table_;
  std::string expected_;
  std::deque<OldFormat> old_formats_;
  RowBatch old_row_;
  std::vector<ColumnId> seen_;
};

}  // namespace cellar::table
