// Growth, copying and filtering of batches.
#include "cellar/types/batch.h"

#include <algorithm>

#include "cellar/base/check.h"

namespace cellar {

void ColumnVector::Grow(size_t rows) {
  size_t capacity = std::max<size_t>({rows, capacity_ * 2, 16});
  // Not cleared: Resize clears what NULL flags come into use.
  auto values = MakeCountedArray<char>(capacity * 16);
  auto nulls = MakeCountedArray<uint8_t>(capacity);
  if (size_ > 0) {
    std::memcpy(values.get(), values_.get(), size_ * (physical_ == Physical::kBytes ? 16 : 8));
    std::memcpy(nulls.get(), nulls_.get(), size_);
  }
  values_ = std::move(values);
  nulls_ = std::move(nulls);
  capacity_ = capacity;
}

void RowBatch::Reset(std::span<const Type> types) {
  columns_.resize(types.size());
  for (size_t i = 0; i < types.size(); ++i) columns_[i].Reset(types[i]);
  size_ = 0;
  arena_.Reset();
}

void RowBatch::Clear() {
  for (ColumnVector& column : columns_) {
    Type type = column.type();
    column.Reset(type);
  }
  size_ = 0;
  arena_.Reset();
}

void RowBatch::Resize(size_t rows) {
  for (ColumnVector& column : columns_) column.Resize(rows);
  size_ = rows;
}

void RowBatch::AppendRow(std::span<const Datum> row) {
  CELLAR_DCHECK(row.size() == columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i) {
    columns_[i].Append(CopyDatum(row[i], columns_[i].type(), &arena_));
  }
  ++size_;
}

namespace {

// Appends from[rows[k]] for all k to `to`; bytes are copied into `arena` with one allocation.
template <typename RowAt>
void AppendColumn(const ColumnVector& from, size_t count, RowAt row_at, Arena* arena,
                  ColumnVector* to) {
  const size_t base = to->size();
  to->Resize(base + count);
  if (from.physical() != to->physical()) {
    // Nobody should; but values of another form must not be read as this one.
    for (size_t k = 0; k < count; ++k) to->Set(base + k, from.Get(row_at(k)));
    return;
  }
  if (from.has_nulls()) {
    const uint8_t* source = from.nulls();
    uint8_t* target = to->nulls() + base;
    for (size_t k = 0; k < count; ++k) target[k] = source[row_at(k)];
    to->set_has_nulls();
  }
  if (from.physical() != Physical::kBytes) {
    const int64_t* source = from.ints();
    int64_t* target = to->ints() + base;
    for (size_t k = 0; k < count; ++k) target[k] = source[row_at(k)];
    return;
  }
  const std::string_view* source = from.bytes();
  const uint8_t* nulls = from.nulls();
  std::string_view* target = to->bytes() + base;
  size_t total = 0;
  for (size_t k = 0; k < count; ++k) {
    size_t row = row_at(k);
    if (!nulls[row]) total += source[row].size();
  }
  char* next = total == 0 ? nullptr : arena->Allocate(total);
  for (size_t k = 0; k < count; ++k) {
    size_t row = row_at(k);
    if (nulls[row] || source[row].empty()) {
      target[k] = {};
      continue;
    }
    std::memcpy(next, source[row].data(), source[row].size());
    target[k] = {next, source[row].size()};
    next += source[row].size();
  }
}

}  // namespace

void RowBatch::AppendRows(const RowBatch& from, std::span<const uint32_t> rows) {
  CELLAR_DCHECK(from.num_columns() == columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i) {
    AppendColumn(
        from.columns_[i], rows.size(), [rows](size_t k) { return size_t{rows[k]}; }, &arena_,
        &columns_[i]);
  }
  size_ += rows.size();
}

void RowBatch::AppendAll(const RowBatch& from) {
  CELLAR_DCHECK(from.num_columns() == columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i) {
    AppendColumn(
        from.columns_[i], from.size(), [](size_t k) { return k; }, &arena_, &columns_[i]);
  }
  size_ += from.size();
}

void ColumnVector::Keep(std::span<const uint32_t> rows) {
  if (physical_ == Physical::kBytes) {
    std::string_view* values = bytes();
    for (size_t k = 0; k < rows.size(); ++k) values[k] = values[rows[k]];
  } else {
    int64_t* values = ints();
    for (size_t k = 0; k < rows.size(); ++k) values[k] = values[rows[k]];
  }
  if (has_nulls_) {
    for (size_t k = 0; k < rows.size(); ++k) nulls_[k] = nulls_[rows[k]];
  }
  if (has_codes_) {
    for (size_t k = 0; k < rows.size(); ++k) codes_[k] = codes_[rows[k]];
  }
  size_ = rows.size();
}

void RowBatch::Keep(std::span<const uint32_t> rows) {
  if (rows.size() == size_) return;
  for (ColumnVector& column : columns_) column.Keep(rows);
  size_ = rows.size();
}

size_t RowBatch::footprint_bytes() const {
  size_t total = sizeof(*this) + arena_.footprint_bytes();
  for (const ColumnVector& column : columns_) total += sizeof(column) + column.size() * 17;
  return total;
}

}  // namespace cellar
