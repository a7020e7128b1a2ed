// Rows of pages, patches and packed rows on their way into batches.
#include <algorithm>
#include <array>
#include <optional>

#include "cellar/codec/patch.h"
#include "cellar/table/pages.h"

namespace cellar::table {

Result<const ScanCodec::PagePlan*> ScanCodec::PlanOf(const codec::PageView& page) const {
  for (auto plan = page_plans_.rbegin(); plan != page_plans_.rend(); ++plan) {
    if (plan->format_id == page.format_id()) return &*plan;
  }
  return CorruptionError("a page has unknown row format {}", page.format_id());
}

namespace {

constexpr size_t kColumnsAtOnce = 16;

// Appends the RowRefs of rows of a page. Cost: 5-20 ns each.
class PageRefs {
 public:
  static Result<PageRefs> Make(const CompiledTable& table, const codec::PageView& page) {
    PageRefs refs;
    refs.page_ = &page;
    if (table.page_keys() != page.keys()) return CorruptionError("a page is keyed otherwise");
    if (page.keys() == codec::PageKeys::kRefs) return refs;
    const codec::RowFormat* format = table.FindFormat(page.format_id());
    if (format == nullptr) return CorruptionError("a page has unknown row format");
    CELLAR_TRY_ASSIGN(const uint32_t chunk, table.KeyChunkOf(*format));
    refs.column_ = &table.primary().key_columns.front();
    CELLAR_TRY(page.GetChunk(chunk, format->columns()[chunk].type, &refs.keys_));
    return refs;
  }

  Status Append(uint32_t row, std::string* out) const {
    if (column_ == nullptr) {
      out->append(page_->key_prefix());
      out->append(page_->key_suffix(row));
      return Status();
    }
    CELLAR_TRY_ASSIGN(const Datum key, keys_.Get(row, nullptr));
    codec::AppendKeyField(key, *column_, out);
    return Status();
  }

 private:
  const codec::PageView* page_ = nullptr;
  const codec::KeyColumn* column_ = nullptr;  // kInt
  codec::Chunk keys_;
};

void CopyBytes(size_t first_row, size_t count, ColumnVector* column, Arena* arena) {
  std::string_view* values = column->bytes() + first_row;
  for (size_t i = 0; i < count; ++i) values[i] = arena->Copy(values[i]);
}

}  // namespace

Status AppendPageRef(const CompiledTable& table, const codec::PageView& page, uint32_t row,
                     std::string* ref) {
  CELLAR_TRY_ASSIGN(const PageRefs refs, PageRefs::Make(table, page));
  return refs.Append(row, ref);
}

template <typename DecodeChunk, typename RowAt>
Status ScanCodec::DecodePageColumns(const codec::PageView& page, size_t count, size_t first_row,
                                    bool copy, RowBatch* batch, DecodeChunk&& decode,
                                    RowAt&& row_at) const {
  CELLAR_TRY_ASSIGN(const PagePlan* plan, PlanOf(page));
  // A few columns at a time: first all headers, then all values are under way before one is used.
  std::optional<std::array<codec::Chunk, kColumnsAtOnce>> scratch;
  std::array<const codec::Chunk*, kColumnsAtOnce> chunks;
  for (size_t first = 0; first < plan->steps.size(); first += kColumnsAtOnce) {
    const size_t end = std::min(first + kColumnsAtOnce, plan->steps.size());
    for (size_t i = first; i < end; ++i) page.PrefetchChunk(plan->steps[i].chunk);
    for (size_t i = first; i < end; ++i) {
      const PagePlan::Step& step = plan->steps[i];
      const codec::Chunk*& chunk = chunks[i - first];
      chunk = page.Parsed(step.chunk, step.type);
      if (chunk == nullptr) {
        if (!scratch.has_value()) scratch.emplace();
        CELLAR_TRY(page.GetChunk(step.chunk, step.type, &(*scratch)[i - first]));
        chunk = &(*scratch)[i - first];
      }
      if (count != 0) chunk->PrefetchRow(row_at(0));
    }
    if (count == 1) {
      for (size_t i = first; i < end; ++i) chunks[i - first]->PrefetchBytes(row_at(0));
    }
    for (size_t i = first; i < end; ++i) {
      ColumnVector* column = &batch->column(plan->steps[i].position);
      const codec::Chunk& chunk = *chunks[i - first];
      CELLAR_TRY(decode(chunk, column));
      if ((copy || copy_) && column->physical() == Physical::kBytes && chunk.borrows_page()) {
        CopyBytes(first_row, count, column, batch->arena());
      }
    }
  }
  for (const PagePlan::Default& missing : plan->defaults) {
    ColumnVector& column = batch->column(missing.position);
    const Datum value = copy_
                            ? CopyDatum(missing.value.datum(), missing.value.type(), batch->arena())
                            : missing.value.datum();
    for (size_t i = 0; i < count; ++i) column.Set(first_row + i, value);
  }
  if (!with_row_ref_) return Status();
  CELLAR_TRY_ASSIGN(const PageRefs refs, PageRefs::Make(*table_, page));
  std::string ref;
  std::string_view* out = batch->column(columns_.size()).bytes() + first_row;
  for (size_t i = 0; i < count; ++i) {
    ref.clear();
    CELLAR_TRY(refs.Append(row_at(i), &ref));
    out[i] = batch->arena()->Copy(ref);
  }
  return Status();
}

Status ScanCodec::DecodePage(const codec::PageView& page, uint32_t first, uint32_t count,
                             size_t first_row, bool copy, RowBatch* batch) const {
  return DecodePageColumns(
      page, count, first_row, copy, batch,
      [&](const codec::Chunk& chunk, ColumnVector* column) {
        return chunk.Decode(first, count, first_row, column, batch->arena());
      },
      [&](size_t i) { return first + static_cast<uint32_t>(i); });
}

Status ScanCodec::DecodePageRows(const codec::PageView& page, std::span<const uint32_t> rows,
                                 size_t first_row, bool copy, RowBatch* batch) const {
  return DecodePageColumns(
      page, rows.size(), first_row, copy, batch,
      [&](const codec::Chunk& chunk, ColumnVector* column) {
        return chunk.Gather(rows, first_row, column, batch->arena());
      },
      [&](size_t i) { return rows[i]; });
}

Status ScanCodec::ApplyPatch(std::string_view patch, size_t row, bool copy, RowBatch* batch) const {
  CELLAR_TRY_ASSIGN(codec::PatchReader reader, codec::PatchReader::Make(patch));
  codec::ColumnId id;
  std::string_view bytes;
  bool null;
  while (true) {
    CELLAR_TRY_ASSIGN(const bool more, reader.Next(&id, &bytes, &null));
    if (!more) return Status();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i] != id) continue;
      if (null) {
        batch->column(i).SetNull(row);
        continue;
      }
      CELLAR_TRY_ASSIGN(Datum value, codec::PatchReader::Value(bytes, types_[i]));
      if (copy || copy_) value = CopyDatum(value, types_[i], batch->arena());
      batch->column(i).Set(row, value);
    }
  }
}

Status ScanCodec::ApplyParts(std::span<const StoredRow> rows, size_t first_row,
                             RowBatch* batch) const {
  const size_t columns = part_columns_.size();
  std::vector<size_t> seen(columns, SIZE_MAX);  // the last row that had the column
  size_t next = 0;                              // parts come in the order of part_columns_, mostly
  for (size_t row = 0; row < rows.size(); ++row) {
    size_t found = 0;
    for (std::string_view patch : rows[row].parts) {
      CELLAR_TRY_ASSIGN(codec::PatchReader reader, codec::PatchReader::Make(patch));
      codec::ColumnId id;
      std::string_view bytes;
      bool null;
      while (true) {
        CELLAR_TRY_ASSIGN(const bool more, reader.Next(&id, &bytes, &null));
        if (!more) break;
        size_t tried = 0;
        for (; tried < columns && part_columns_[next].id != id; ++tried) {
          if (++next == columns) next = 0;
        }
        if (tried == columns) continue;  // not wanted, or dropped
        if (seen[next] == row) return CorruptionError("a column is there twice");
        seen[next] = row;
        ++found;
        const PartColumn& column = part_columns_[next];
        ColumnVector& out = batch->column(column.position);
        if (null) {
          out.SetNull(first_row + row);
        } else {
          CELLAR_TRY_ASSIGN(Datum value, codec::PatchReader::Value(bytes, column.type));
          if (copy_) value = CopyDatum(value, column.type, batch->arena());
          out.Set(first_row + row, value);
        }
        if (++next == columns) next = 0;
      }
    }
    if (found == columns) continue;
    for (size_t i = 0; i < columns; ++i) {
      if (seen[i] == row) continue;
      const PartColumn& column = part_columns_[i];
      const Datum value = copy_ && !column.missing.datum().is_null()
                              ? CopyDatum(column.missing.datum(), column.type, batch->arena())
                              : column.missing.datum();
      batch->column(column.position).Set(first_row + row, value);
    }
  }
  return Status();
}

Status ScanCodec::DecodeStored(std::span<const std::string_view> keys,
                               std::span<const StoredRow> rows, size_t first_row,
                               RowBatch* batch) const {
  std::vector<std::string_view> values;
  std::vector<uint32_t> positions;
  for (size_t i = 0; i < rows.size();) {
    const codec::PageView* page = rows[i].page;
    size_t end = i + 1;
    if (page == nullptr) {
      while (end < rows.size() && rows[end].page == nullptr) ++end;
      values.clear();
      for (size_t k = i; k < end; ++k) values.push_back(rows[k].value);
      CELLAR_TRY(DecodeRows(keys.subspan(i, end - i), values, first_row + i, batch));
      if (!part_columns_.empty()) {
        CELLAR_TRY(ApplyParts(rows.subspan(i, end - i), first_row + i, batch));
      }
      i = end;
      continue;
    }
    while (end < rows.size() && rows[end].page == page &&
           rows[end].position > rows[end - 1].position) {
      ++end;
    }
    positions.clear();
    for (size_t k = i; k < end; ++k) positions.push_back(rows[k].position);
    CELLAR_TRY(DecodePageRows(*page, positions, first_row + i, false, batch));
    for (size_t k = i; k < end; ++k) {
      if (!rows[k].patch.empty())
        CELLAR_TRY(ApplyPatch(rows[k].patch, first_row + k, false, batch));
    }
    i = end;
  }
  return Status();
}

}  // namespace cellar::table
