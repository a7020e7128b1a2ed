#include "cellar/table/check_pages.h"

#include <algorithm>

#include "cellar/codec/patch.h"
#include "cellar/table/long_values.h"

namespace cellar::table {
namespace {

Status AtRow(std::string_view what, size_t row) {
  return CorruptionError("{}, at row {}", what, row);
}

// Do least and greatest hold what they say? Scans leave out chunks by them.
Status CheckBounds(const codec::Chunk& chunk, const ColumnVector& values) {
  Arena arena;
  Datum least, greatest;
  if (!chunk.Bounds(&arena, &least, &greatest)) return Status();
  for (size_t row = 0; row < values.size(); ++row) {
    if (values.IsNull(row)) continue;
    const Datum value = values.Get(row);
    if (CompareDatums(value, least, values.type()) < 0 ||
        CompareDatums(value, greatest, values.type()) > 0) {
      return AtRow("a value lies outside of least and greatest", row);
    }
  }
  return Status();
}

}  // namespace

std::string DescribeRef(std::string_view ref) {
  Result<codec::DecodedKey> fields = codec::DecodeKeyFields(ref);
  if (!fields.ok()) return "?";
  std::string out;
  for (const codec::DecodedField& field : fields.value().fields) {
    if (!out.empty()) out += ", ";
    out += field.value;
  }
  return out;
}

std::string PageCheck::KeysText(std::string_view start, std::string_view end) const {
  if (start.empty() && end.empty()) return "all keys";
  if (start.empty()) return fmt::format("keys before ({})", DescribeRef(end));
  if (end.empty()) return fmt::format("keys from ({}) on", DescribeRef(start));
  return fmt::format("keys from ({}) to ({})", DescribeRef(start), DescribeRef(end));
}

void PageCheck::FindInPage(const RawPage& page, std::string_view end, std::string_view text) {
  sink_.find(fmt::format("page {}, {}: {}", codec::PrintKey(page.key), KeysText(page.boundary, end),
                         text));
}

void PageCheck::MarkDamaged(std::string_view start, std::string_view end) {
  if (!damaged_.empty() && damaged_.back().second == start) {
    damaged_.back().second = end;
  } else {
    damaged_.emplace_back(start, end);
  }
}

bool PageCheck::IsDamaged(std::string_view ref) const {
  const auto after = std::upper_bound(
      damaged_.begin(), damaged_.end(), ref,
      [](std::string_view bytes, const auto& range) { return bytes < range.first; });
  if (after == damaged_.begin()) return false;
  const std::string& end = (after - 1)->second;
  return end.empty() || ref < end;
}

// Exactly the fields of the primary key.
Status PageCheck::CheckKey(std::string_view ref) const {
  Arena arena;
  for (const codec::KeyColumn& column : table_->primary().key_columns) {
    CELLAR_TRY(codec::TakeKeyField(&ref, column, &arena).status());
  }
  return ref.empty() ? Status() : CorruptionError("more follows the primary key");
}

std::string_view PageCheck::RefAt(size_t row) const {
  return rows_.column(table_->living_ids().size()).bytes()[row];
}

size_t PageCheck::PlaceOf(std::string_view ref) const {
  const std::string_view* refs = rows_.column(table_->living_ids().size()).bytes();
  const std::string_view* end = refs + rows_.size();
  const std::string_view* at = std::lower_bound(refs, end, ref);
  return at != end && *at == ref ? static_cast<size_t>(at - refs) : kNone;
}

Status PageCheck::OpenCursors() {
  kv::ScanOptions options;
  options.mode = kv::ReadMode::kSnapshot;
  options.fill_cache = false;
  const codec::KeyRange delta = codec::PrefixRange(table_->primary().prefix);
  CELLAR_TRY_ASSIGN(delta_cursor_, context_->transaction->Scan(delta.start, delta.end, options));
  options.block_bytes = options.first_block_bytes = 1;
  const codec::KeyRange pages = codec::PrefixRange(table_->page_prefix());
  CELLAR_TRY_ASSIGN(page_cursor_, context_->transaction->Scan(pages.start, pages.end, options));
  return Status();
}

Result<bool> PageCheck::NextPage(RawPage* page) {
  std::string_view key, value;
  while (true) {
    CELLAR_TRY(context_->CheckCancel());
    CELLAR_TRY_ASSIGN(const bool more, page_cursor_->NextView(&key, &value));
    if (!more) return false;
    Result<std::string_view> boundary = BoundaryOf(*table_, key);
    Status status = boundary.status();
    if (status.ok() && !boundary->empty()) status = CheckKey(*boundary);
    if (!status.ok()) {
      sink_.find(fmt::format("a page has key {}, which is none: {}", codec::PrintKey(key),
                             status.message()));
      continue;
    }
    page->key = key;
    page->boundary = *boundary;
    page->bytes = value;
    return true;
  }
}

Status PageCheck::Run() {
  CELLAR_TRY(CheckRows());
  const codec::KeyRange pieces = codec::PrefixRange(LongValuesPrefix(*table_));
  kv::ScanOptions options;
  options.mode = kv::ReadMode::kSnapshot;
  options.keys_only = true;
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    context_->transaction->Scan(pieces.start, pieces.end, options));
  kv::Block block;
  uint64_t stored = 0;
  while (true) {
    CELLAR_TRY_ASSIGN(const bool more, cursor->NextBlock(&block));
    if (!more) break;
    stored += block.size();
  }
  if (stored != long_pieces_) {
    sink_.find(
        fmt::format("{} pieces of long values are stored, rows have {}", stored, long_pieces_));
  }
  return Status();
}

Status PageCheck::CheckRows() {
  CELLAR_TRY(OpenCursors());
  RawPage page, next;
  CELLAR_TRY_ASSIGN(bool more, NextPage(&page));
  if (!more) {
    rows_.Reset(whole_->types());
    return TakeDelta({}, true, true);
  }
  if (!page.boundary.empty()) {
    sink_.find(fmt::format("{} lie in no page", KeysText({}, page.boundary)));
    MarkDamaged({}, page.boundary);
    CELLAR_TRY(TakeDelta(page.boundary, false, false));
  }
  while (more) {
    CELLAR_TRY_ASSIGN(more, NextPage(&next));
    CELLAR_TRY(CheckPage(page, more ? std::string_view(next.boundary) : std::string_view()));
    std::swap(page, next);
  }
  return Status();
}

Status PageCheck::CheckPage(const RawPage& page, std::string_view end) {
  if (const Status status = Examine(page); !status.ok()) {
    if (status.code() != Code::kCorruption) return status;
    FindInPage(page, end, status.message());
    ++unread_pages_;
    MarkDamaged(page.boundary, end);
    return TakeDelta(end, false, false);
  }
  const std::string fence(view_.fence());
  // A fence before the next page leaves keys to nobody; one beyond it claims keys of that page.
  const bool gap = !fence.empty() && (end.empty() || fence < end);
  const std::string_view own_end = gap ? std::string_view(fence) : end;
  if (!gap && fence != end) {
    FindInPage(page, end,
               fence.empty()
                   ? "it has no fence, but a page follows"
                   : fmt::format("its fence ({}) lies behind the next page", DescribeRef(fence)));
  }
  CELLAR_TRY(TakeDelta(own_end, true, true));
  CELLAR_TRY(HandOutRows(page, own_end));
  if (!gap) return Status();
  sink_.find(fmt::format("{} lie in no page, behind page {}", KeysText(fence, end),
                         codec::PrintKey(page.key)));
  MarkDamaged(fence, end);
  return TakeDelta(end, false, false);
}

Status PageCheck::ExamineChunk(uint32_t place, const codec::RowColumn& column) {
  codec::Chunk chunk;
  CELLAR_TRY(view_.GetChunk(place, column.type, &chunk));
  scratch_.Reset(column.type);
  scratch_arena_.Reset();
  scratch_.Resize(view_.rows());
  CELLAR_TRY(chunk.Decode(0, view_.rows(), 0, &scratch_, &scratch_arena_));
  uint32_t nulls = 0;
  for (size_t row = 0; row < scratch_.size(); ++row) nulls += scratch_.IsNull(row) ? 1 : 0;
  if (nulls != chunk.null_count()) {
    return CorruptionError("{} rows are NULL, and {} should be", nulls, chunk.null_count());
  }
  return CheckBounds(chunk, scratch_);
}

Status PageCheck::Examine(const RawPage& page) {
  CELLAR_TRY(view_.Parse(page.bytes));
  CELLAR_TRY(view_.VerifyChecksum());
  if (view_.keys() != table_->page_keys()) return CorruptionError("it is keyed otherwise");
  const codec::RowFormat* format = table_->FindFormat(view_.format_id());
  if (format == nullptr) {
    return CorruptionError("it is of unknown row format {}", view_.format_id());
  }
  if (view_.columns() != format->columns().size()) {
    return CorruptionError("it has {} columns, its row format {} has {}", view_.columns(),
                           format->id(), format->columns().size());
  }
  if (!view_.fence().empty()) {
    if (Status status = CheckKey(view_.fence()); !status.ok()) {
      return CorruptionError("its fence is no key: {}", status.message());
    }
    if (view_.fence() <= page.boundary) return CorruptionError("it ends before it begins");
  }
  for (uint32_t i = 0; i < view_.columns(); ++i) {
    const codec::RowColumn& column = format->columns()[i];
    const Status status = ExamineChunk(i, column);
    if (status.ok()) continue;
    const catalog::ColumnDescriptor* known = table_->table().FindColumn(column.id);
    return CorruptionError("column {}: {}", known == nullptr ? "?" : known->name, status.message());
  }
  rows_.Reset(whole_->types());
  rows_.Resize(view_.rows());
  CELLAR_TRY(whole_->DecodePage(view_, 0, view_.rows(), 0, false, &rows_));
  rows_.SetSize(view_.rows());
  const IndexCodec& primary = table_->primary();
  std::string key;
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (row > 0 && RefAt(row) <= RefAt(row - 1)) return AtRow("its keys do not ascend", row);
    key.clear();
    codec::AppendKeyFields(rows_, row, primary.key_positions, primary.key_columns, &key);
    if (key != RefAt(row)) return AtRow("a key is not that of its columns", row);
  }
  covered_.assign(rows_.size(), 0);
  return Status();
}

Status PageCheck::TakeDelta(std::string_view end, bool merge, bool readable) {
  const size_t prefix = table_->primary().prefix.size();
  while (true) {
    if (block_at_ == block_.size()) {
      CELLAR_TRY(HandOutDelta(readable));  // borrowed from the block
      if (delta_ended_) return Status();
      CELLAR_TRY(context_->CheckCancel());
      CELLAR_TRY_ASSIGN(const bool more, delta_cursor_->NextBlock(&block_));
      block_at_ = 0;
      delta_ended_ = !more;
      continue;
    }
    const std::string_view key = block_.key(block_at_);
    if (!end.empty() && key.substr(prefix) >= end) return HandOutDelta(readable);
    CheckEntry(key, block_.value(block_at_++), merge, readable);
  }
}

Status PageCheck::HandOutDelta(bool readable) {
  if (delta_keys_.empty()) return Status();
  CELLAR_TRY(sink_.delta_rows(delta_keys_, delta_values_, readable));
  delta_keys_.clear();
  delta_values_.clear();
  long_rows_.clear();
  return Status();
}

void PageCheck::CheckEntry(std::string_view key, std::string_view value, bool merge,
                           bool readable) {
  const std::string_view ref = key.substr(table_->primary().prefix.size());
  Status status = ref.empty() || ref.back() != kGroupZero
                      ? CorruptionError("key does not end in column group 0")
                      : CheckKey(ref.substr(0, ref.size() - 1));
  Result<codec::DeltaKind> kind = codec::DeltaKindOf(value);
  if (status.ok()) status = kind.status();
  if (!status.ok()) {
    sink_.find(fmt::format("row {} is damaged: {}", codec::PrintKey(key), status.message()));
    return;
  }
  const std::string_view row_ref = ref.substr(0, ref.size() - 1);
  if (*kind == codec::DeltaKind::kPatch) return CheckPatch(key, row_ref, value, merge, readable);
  const size_t place = merge ? PlaceOf(row_ref) : kNone;
  if (place != kNone) covered_[place] = 1;
  if (*kind == codec::DeltaKind::kTombstone) return;
  if (*kind == codec::DeltaKind::kLongRow) {
    Result<std::string_view> row = ReadLongRow(context_, *table_, row_ref, value, nullptr,
                                               WantedValues(), &long_rows_.emplace_back());
    if (status = CheckLongColumns(value); !status.ok()) row = status;
    if (!row.ok()) {
      sink_.find(
          fmt::format("row {} is damaged: {}", codec::PrintKey(key), row.status().message()));
      return;
    }
    long_pieces_ += CountPieces(value);
    value = *row;
  }
  delta_keys_.push_back(key);
  delta_values_.push_back(value);
}

// Readers pass over columns that they do not know, as over dropped ones.
Status PageCheck::CheckLongColumns(std::string_view value) const {
  CELLAR_TRY_ASSIGN(const codec::LongRow row, codec::ParseLongRow(value));
  std::vector<ColumnId> seen;
  for (const codec::LongValue& part : row.values) {
    const catalog::ColumnDescriptor* column = table_->table().FindColumn(part.column);
    if (column == nullptr) return CorruptionError("it holds unknown column {}", part.column.value);
    if (std::find(seen.begin(), seen.end(), part.column) != seen.end()) {
      return CorruptionError("it holds column {} twice", column->name);
    }
    if (!column->dropped && PhysicalOf(column->type) != Physical::kBytes) {
      return CorruptionError("column {} has no long values", column->name);
    }
    seen.push_back(part.column);
  }
  return Status();
}

Status PageCheck::ReadPatch(std::string_view patch) const {
  CELLAR_TRY_ASSIGN(codec::PatchReader reader, codec::PatchReader::Make(patch));
  std::vector<ColumnId> seen;
  while (true) {
    ColumnId id;
    std::string_view bytes;
    bool null = false;
    CELLAR_TRY_ASSIGN(const bool more, reader.Next(&id, &bytes, &null));
    if (!more) return Status();
    const catalog::ColumnDescriptor* column = table_->table().FindColumn(id);
    if (column == nullptr) return CorruptionError("it holds unknown column {}", id.value);
    if (std::find(seen.begin(), seen.end(), id) != seen.end()) {
      return CorruptionError("it holds column {} twice", column->name);
    }
    seen.push_back(id);
    if (null) continue;
    const Status status = codec::PatchReader::Value(bytes, column->type).status();
    if (!status.ok()) return CorruptionError("column {}: {}", column->name, status.message());
  }
}

void PageCheck::CheckPatch(std::string_view key, std::string_view ref, std::string_view patch,
                           bool merge, bool readable) {
  const size_t place = merge ? PlaceOf(ref) : kNone;
  Status status = ReadPatch(patch);
  if (status.ok() && place == kNone && readable) {
    status = CorruptionError("it is over no row of a page");
  }
  if (status.ok() && place != kNone) {
    status = whole_->ApplyPatch(patch, place, true, &rows_);
    std::string patched;
    codec::AppendKeyFields(rows_, place, table_->primary().key_positions,
                           table_->primary().key_columns, &patched);
    if (status.ok() && patched != ref) status = CorruptionError("it changes the primary key");
  }
  if (status.ok()) return;
  if (place != kNone) covered_[place] = 1;
  sink_.find(
      fmt::format("the patch of row {} is damaged: {}", codec::PrintKey(key), status.message()));
}

Status PageCheck::HandOutRows(const RawPage& page, std::string_view end) {
  std::vector<uint32_t> kept;
  size_t outside = 0, first_outside = 0;
  for (size_t row = 0; row < rows_.size(); ++row) {
    const std::string_view ref = RefAt(row);
    if (ref < page.boundary || (!end.empty() && ref >= end)) {
      if (outside++ == 0) first_outside = row;
    } else if (!covered_[row]) {
      kept.push_back(static_cast<uint32_t>(row));
    }
  }
  if (outside > 0) {
    FindInPage(page, end,
               fmt::format("{} of its rows do not belong there, the first is ({})", outside,
                           DescribeRef(RefAt(first_outside))));
  }
  if (kept.empty()) return Status();
  if (kept.size() < rows_.size()) rows_.Keep(kept);
  return sink_.page_rows(&rows_);
}

}  // namespace cellar::table
