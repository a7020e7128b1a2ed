// Rows in columns: what readers produce and every operator consumes.
//
// Invariants:
//   1. All columns of a batch have batch.size() rows; a batch is dense (no selection vector).
//   2. A kBytes column's views point into the batch's arena, into memory that outlives the query
//      (plan constants), or into another batch that the producer keeps alive: they are valid until
//      the producer's next call. Who keeps rows longer copies them (AppendRowsTo).
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cellar/base/arena.h"
#include "cellar/types/datum.h"
#include "cellar/types/type.h"

namespace cellar {

// Rows per batch that operators aim at; a batch may hold fewer, and never more than kMaxBatchRows.
inline constexpr size_t kBatchRows = 1024;
inline constexpr size_t kMaxBatchRows = 4096;

// One column of a batch. One thread at a time. Growing throws OutOfMemory (memory_account.h).
class ColumnVector {
 public:
  ColumnVector() = default;
  explicit ColumnVector(Type type) { Reset(type); }

  // Empty, of this type; keeps capacity.
  void Reset(Type type) {
    type_ = type;
    physical_ = PhysicalOf(type);
    size_ = 0;
    has_nulls_ = false;
    has_codes_ = false;
  }
  const Type& type() const { return type_; }
  Physical physical() const { return physical_; }
  size_t size() const { return size_; }

  // Sets the size; new values are undefined and not NULL until written.
  void Resize(size_t rows) {
    if (rows > capacity_) Grow(rows);
    if (rows > size_) std::memset(nulls_.get() + size_, 0, rows - size_);
    size_ = rows;
    has_codes_ = false;
  }

  // Arrays of size() values, by physical form. Invalid after Resize.
  int64_t* ints() { return reinterpret_cast<int64_t*>(values_.get()); }
  const int64_t* ints() const { return reinterpret_cast<const int64_t*>(values_.get()); }
  double* doubles() { return reinterpret_cast<double*>(values_.get()); }
  const double* doubles() const { return reinterpret_cast<const double*>(values_.get()); }
  std::string_view* bytes() { return reinterpret_cast<std::string_view*>(values_.get()); }
  const std::string_view* bytes() const {
    return reinterpret_cast<const std::string_view*>(values_.get());
  }
  // One byte a row, 1 is NULL; always valid, all 0 when !has_nulls(). After writing a 1 here
  // directly, call set_has_nulls().
  uint8_t* nulls() { return nulls_.get(); }
  const uint8_t* nulls() const { return nulls_.get(); }
  bool has_nulls() const { return has_nulls_; }
  void set_has_nulls(bool value = true) { has_nulls_ = value; }

  // A kBytes column may know that its values are few: then bytes()[i] is dictionary()[codes()[i]]
  // for each row that is not NULL, and operators may work on codes. Forgotten by Resize; whoever
  // writes values after SetDictionary keeps both forms the same.
  bool has_codes() const { return has_codes_; }
  const uint8_t* codes() const { return codes_.data(); }
  std::span<const std::string_view> dictionary() const { return dictionary_; }
  // At most 256 entries, whose bytes live as long as the column. Returns the codes, one a row, for
  // the caller to fill in.
  uint8_t* SetDictionary(std::span<const std::string_view> entries) {
    dictionary_.assign(entries.begin(), entries.end());
    if (codes_.size() < size_) codes_.resize(size_);
    has_codes_ = true;
    return codes_.data();
  }

  bool IsNull(size_t row) const { return nulls_[row] != 0; }
  void SetNull(size_t row) {
    nulls_[row] = 1;
    has_nulls_ = true;
    if (physical_ == Physical::kBytes)
      bytes()[row] = {};
    else
      ints()[row] = 0;
  }
  // Borrows the row's bytes.
  Datum Get(size_t row) const {
    if (nulls_[row]) return Datum();
    switch (physical_) {
      case Physical::kInt64: return Datum::Int(ints()[row]);
      case Physical::kDouble: return Datum::Double(doubles()[row]);
      case Physical::kBytes: return Datum::Bytes(bytes()[row]);
    }
    return Datum();
  }
  // Stores a borrowed value; the caller keeps its bytes alive.
  void Set(size_t row, Datum value) {
    if (value.is_null()) return SetNull(row);
    nulls_[row] = 0;
    switch (physical_) {
      case Physical::kInt64: ints()[row] = value.int_value(); break;
      case Physical::kDouble: doubles()[row] = value.double_value(); break;
      case Physical::kBytes: bytes()[row] = value.bytes(); break;
    }
  }
  void Append(Datum value) {
    Resize(size_ + 1);
    Set(size_ - 1, value);
  }

 private:
  friend class RowBatch;
  void Grow(size_t rows);
  // Keeps only these rows (ascending, unique).
  void Keep(std::span<const uint32_t> rows);

  Type type_;
  Physical physical_ = Physical::kInt64;
  bool has_nulls_ = false;
  bool has_codes_ = false;
  size_t size_ = 0;
  size_t capacity_ = 0;
  CountedArray<char> values_;  // 8 bytes a row, 16 for kBytes; capacity counts 16
  CountedArray<uint8_t> nulls_;
  std::vector<uint8_t> codes_;
  std::vector<std::string_view> dictionary_;
};

// One thread at a time. Movable.
class RowBatch {
 public:
  RowBatch() = default;
  RowBatch(RowBatch&&) noexcept = default;
  RowBatch& operator=(RowBatch&&) noexcept = default;

  // Makes it an empty batch of these columns; keeps capacity, forgets the arena's content.
  void Reset(std::span<const Type> types);
  // Keeps the columns' types, drops the rows and the arena's content.
  void Clear();

  size_t size() const { return size_; }
  size_t num_columns() const { return columns_.size(); }
  ColumnVector& column(size_t i) { return columns_[i]; }
  const ColumnVector& column(size_t i) const { return columns_[i]; }
  std::vector<ColumnVector>& columns() { return columns_; }
  const std::vector<ColumnVector>& columns() const { return columns_; }
  // Sets size() after columns were filled to that size; batches of no columns have a size too.
  void SetSize(size_t rows) { size_ = rows; }
  // Resizes all columns.
  void Resize(size_t rows);
  // Appends one row of num_columns() values, copying bytes into arena().
  void AppendRow(std::span<const Datum> row);
  // Appends copies (bytes too) of the given rows of `from`, which has the same column types.
  void AppendRows(const RowBatch& from, std::span<const uint32_t> rows);
  void AppendAll(const RowBatch& from);
  // Keeps only these rows (ascending, unique), in place.
  void Keep(std::span<const uint32_t> rows);

  Arena* arena() { return &arena_; }
  // Approximate bytes held.
  size_t footprint_bytes() const;

 private:
  std::vector<ColumnVector> columns_;
  size_t size_ = 0;
  Arena arena_;
};

}  // namespace cellar
