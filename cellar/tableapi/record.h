// Records: cells to write, by column. Rows: cells that were read.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/tableapi/cell.h"
#include "cellar/tableapi/schema.h"
#include "cellar/types/batch.h"
#include "cellar/types/narrow.h"

namespace cellar {

// Some cells of one row. One thread at a time; reused after Clear it allocates little.
class Record {
 public:
  explicit Record(SchemaPtr schema);

  // An unknown name makes status() an error, which the write that gets the record returns.
  Record& Set(std::string_view column, Cell value);
  // By position in schema().columns.
  Record& Set(size_t position, Cell value);
  void Unset(size_t position);
  void Clear();  // no cell is set

  bool Has(size_t position) const { return position < set_.size() && set_[position] != 0; }
  // NULL where no cell is set.
  const Cell& at(size_t position) const {
    return position < cells_.size() ? cells_[position] : Cell::Null();
  }
  // Null of a record that was moved from: a write that gets it is refused.
  const SchemaPtr& schema() const { return schema_; }
  const Status& status() const { return status_; }
  // The record's primary key. Error: 23502 naming a column that is not set.
  Result<Key> PrimaryKey() const;

 private:
  SchemaPtr schema_;
  std::vector<Cell> cells_;
  std::vector<uint8_t> set_;
  Status status_;
};

class RowSet;

namespace internal {
template <typename T>
inline constexpr bool kIsOptionalCell = false;
template <typename T>
inline constexpr bool kIsOptionalCell<std::optional<T>> = true;
}  // namespace internal

// One row of a RowSet, borrowed from it. Columns count from 0 in the order asked for, or go by
// name. A NULL reads as 0, false or empty, and so does what there is not: a column or row beyond
// the last one. A value of another type is converted as far as it goes, never an error: to the
// nearest number where it is out of range.
class Row {
 public:
  Row(const RowSet* rows, size_t row) : rows_(rows), row_(row) {}
  bool IsNull(size_t column) const;
  // bool: 0 or 1. date: days since 2000-01-01. timestamp, timestamptz: microseconds since
  // 2000-01-01 00:00, of timestamptz in UTC. time, timetz: microseconds since midnight, of timetz
  // in its own zone. interval: microseconds, days of 24 hours and months of 30 days.
  int64_t GetInt(size_t column) const;
  double GetDouble(size_t column) const;
  bool GetBool(size_t column) const { return GetInt(column) != 0; }
  // Any value, as ToString shows it. Valid as long as the RowSet is not changed. Cost: none for
  // text; for others the RowSet keeps what it has shown.
  std::string_view GetText(size_t column) const;
  // Of text types, bytea and uuid (16 bytes); empty for others.
  std::string_view GetBytes(size_t column) const;
  // Any value as psql shows it, in ISO style and UTC; empty for NULL.
  std::string ToString(size_t column) const;
  Cell GetCell(size_t column) const;
  // bool, an integer, double, std::string (ToString), std::string_view (GetText), Cell, or an
  // optional of these, empty for NULL.
  template <typename T>
  T Get(size_t column) const;
  // An unknown column reads as NULL.
  template <typename T>
  T Get(std::string_view column) const;
  size_t index() const { return row_; }

 private:
  // Null: there is no such value.
  const ColumnVector* At(size_t column) const;

  const RowSet* rows_;
  size_t row_;
};

// Rows that were read, column by column. One thread at a time; movable.
class RowSet {
 public:
  size_t size() const { return batch_.size(); }
  bool empty() const { return batch_.size() == 0; }
  Row operator[](size_t row) const { return Row(this, row); }
  // Name, type and id of the columns, as asked for.
  const std::vector<TableColumn>& columns() const { return columns_; }
  // -1: none of that name.
  int FindColumn(std::string_view name) const;
  const RowBatch& batch() const { return batch_; }
  // Of Get and Lookup: for each row, which of the keys asked for found it.
  const std::vector<uint32_t>& key_positions() const { return key_positions_; }

  class Iterator {
   public:
    using value_type = Row;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const RowSet* rows, size_t row) : rows_(rows), row_(row) {}
    Row operator*() const { return Row(rows_, row_); }
    Iterator& operator++() {
      ++row_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++row_;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const RowSet* rows_ = nullptr;
    size_t row_ = 0;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, batch_.size()}; }

  // For implementations: the content, to be filled in. `schema` may be the one that the columns
  // came from already.
  RowBatch* mutable_batch() {
    if (shown_.footprint_bytes() > 0) shown_.Reset();
    return &batch_;
  }
  std::vector<uint32_t>* mutable_key_positions() { return &key_positions_; }
  void SetColumns(const SchemaPtr& schema, std::span<const uint32_t> positions);
  // Of the schema that SetColumns was called with.
  const SchemaPtr& schema() const { return schema_; }

 private:
  friend class Row;
  SchemaPtr schema_;
  std::vector<uint32_t> positions_;
  std::vector<TableColumn> columns_;
  RowBatch batch_;
  mutable Arena shown_;  // texts that rows have handed out
  std::vector<uint32_t> key_positions_;
};

// Rows to write, column by column: what servers and loaders give to Table::PutCells.
struct CellBatch {
  std::vector<uint32_t> positions;  // of the columns, in the schema
  RowBatch rows;                    // of the columns' types
  // For each column empty, or one byte a row: 1 says nothing about the cell.
  std::vector<std::vector<uint8_t>> unset;
};
// The records' cells, whose bytes may be the records' own, with positions in the newest of their
// schemas, which is returned; null without records. Errors: records' own, those of Cell::To with
// the column's name, those of PositionsIn; 22023 for records of different tables, or of none.
Result<SchemaPtr> ToCells(std::span<const Record> records, CellBatch* cells);
// Where the columns at these positions of a schema are in another version of it, whatever their
// names are there. Errors: 42703 for one that has been dropped, 55000 for one of another type.
Result<std::vector<uint32_t>> PositionsIn(const TableSchema& to, const TableSchema& from,
                                          std::span<const uint32_t> positions);
// Whether these cells are rows of the schema: 22023 otherwise. For implementations, whose callers
// may have filled them in.
Status CheckCells(const TableSchema* schema, const CellBatch& cells);

inline const ColumnVector* Row::At(size_t column) const {
  if (rows_ == nullptr || row_ >= rows_->size()) return nullptr;
  if (column >= rows_->batch().num_columns()) return nullptr;
  return &rows_->batch().column(column);
}
inline bool Row::IsNull(size_t column) const {
  const ColumnVector* values = At(column);
  return values == nullptr || values->IsNull(row_);
}

template <typename T>
T Row::Get(size_t column) const {
  if constexpr (internal::kIsOptionalCell<T>) {
    return IsNull(column) ? T() : T(Get<typename T::value_type>(column));
  } else if constexpr (std::is_same_v<T, bool>) {
    return GetBool(column);
  } else if constexpr (std::is_integral_v<T>) {
    bool fits = true;
    return NarrowTo<T>(GetInt(column), &fits);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(GetDouble(column));
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return GetText(column);
  } else if constexpr (std::is_same_v<T, Cell>) {
    return GetCell(column);
  } else {
    static_assert(std::is_same_v<T, std::string>, "no such conversion");
    return ToString(column);
  }
}

template <typename T>
T Row::Get(std::string_view column) const {
  const int position = rows_ == nullptr ? -1 : rows_->FindColumn(column);
  return position < 0 ? T() : Get<T>(static_cast<size_t>(position));
}

}  // namespace cellar
