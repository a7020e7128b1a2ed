// Rows in key order become pages. Private to the layer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/kv/engine.h"
#include "cellar/table/compiled.h"

namespace cellar::table {

// A page of up to so many times what it is aimed at is left whole.
inline constexpr double kPageSlack = 1.5;

// Packs the rows of one key range [begin, end) into pages that cover it without a gap, and writes
// them to a transaction. One thread at a time.
class PagePacker {
 public:
  // `begin` and `end` are boundaries (RowRefs); empty: unbounded.
  PagePacker(const CompiledTable* table, kv::Transaction* transaction, std::string begin,
             std::string end, size_t page_bytes);

  // Columns that rows must have: all living ones, then for PageKeys::kRefs their RowRefs.
  static std::vector<Type> TypesOf(const CompiledTable& table);

  // Takes rows in ascending order; they are copied.
  Status Add(const RowBatch& rows);
  // For decoding right into it: append rows, with their bytes in its arena, then call Added.
  RowBatch* buffer() { return &buffer_; }
  Status Added();
  // The range ends at `end` instead; before Finish.
  void MoveEnd(std::string end) { end_ = std::move(end); }
  // Writes the rest. With no row at all, an empty page covers the range.
  Status Finish();

  // Boundaries of the pages written.
  const std::vector<std::string>& boundaries() const { return boundaries_; }
  // As the last page tells; a guess before.
  size_t rows_per_page() const { return rows_per_page_; }
  uint64_t rows() const { return rows_; }
  uint64_t bytes() const { return bytes_; }

 private:
  // The boundary that row `row` of the buffer would begin.
  std::string BoundaryAt(size_t row) const;
  // Encodes rows [first, first + count) with the fence behind them.
  Status Encode(size_t first, size_t count, std::string* out) const;
  // Writes one page from row `first` on, of about `count` rows; how many it took.
  Result<size_t> WritePage(size_t first, size_t count);
  void DropFirst(size_t rows);

  const CompiledTable* table_;
  kv::Transaction* transaction_;
  std::string begin_, end_;
  const size_t page_bytes_;
  const std::vector<Type> types_;
  RowBatch buffer_, spare_;
  std::string next_boundary_;  // of the next page
  size_t rows_per_page_ = 64;  // as the last page tells
  bool measured_ = false;
  std::vector<std::string> boundaries_;
  uint64_t rows_ = 0, bytes_ = 0;
  std::string page_;
};

}  // namespace cellar::table
