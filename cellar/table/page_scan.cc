#include "cellar/table/page_scan.h"

#include <algorithm>
#include <cstring>

#include "cellar/table/long_values.h"

namespace cellar::table {
namespace {

// Runs of fewer rows have their bytes copied, so that a batch may take more runs than one page or
// block of the delta holds.
constexpr size_t kLeastBorrowed = 16;
// A batch ends once it has copied as much: rows may be long.
constexpr size_t kMostCopied = 1 << 20;
// The first block of the delta under a limit, in bytes.
constexpr size_t kSmallestFirstBlock = 256, kLargestFirstBlock = 32 << 10, kGuessedRowBytes = 128;

kv::ScanOptions DeltaOptions(const ScanSpec& spec) {
  kv::ScanOptions options;
  options.reverse = spec.reverse;
  options.view = spec.view.get();
  if (spec.limit_hint != 0) {
    const uint64_t rows = std::min<uint64_t>(spec.limit_hint, kLargestFirstBlock);
    options.first_block_bytes =
        std::clamp<size_t>(rows * kGuessedRowBytes, kSmallestFirstBlock, kLargestFirstBlock);
  }
  return options;
}

void ReverseRows(RowBatch* batch, size_t first, size_t count) {
  for (ColumnVector& column : batch->columns()) {
    if (column.physical() == Physical::kBytes) {
      std::reverse(column.bytes() + first, column.bytes() + first + count);
    } else {
      std::reverse(column.ints() + first, column.ints() + first + count);
    }
    if (column.has_nulls()) std::reverse(column.nulls() + first, column.nulls() + first + count);
    column.Resize(column.size());  // forgets the dictionary, whose codes are in the old order
  }
}

// The filters of a scan, as they apply to pages and to packed rows.
class PageFilters {
 public:
  Status Compile(const CompiledTable& table, std::span<const ColumnFilter> filters) {
    if (filters.empty()) return Status();
    table_ = &table;
    for (const ColumnFilter& filter : filters) {
      Item item;
      item.filter = filter.filter;
      const auto known = std::find(columns_.begin(), columns_.end(), filter.column);
      item.column = static_cast<size_t>(known - columns_.begin());
      if (known == columns_.end()) columns_.push_back(filter.column);
      items_.push_back(item);
    }
    CELLAR_TRY_ASSIGN(codec_,
                      table.Scan(table.primary().index->id, columns_, false, ScanBytes::kBorrow));
    return Status();
  }
  bool empty() const { return items_.empty(); }

  // Appends to *rows those of [first, first + count) that pass, or sets *all.
  Status SelectPage(const codec::PageView& page, uint32_t first, uint32_t count, bool* all,
                    std::vector<uint32_t>* rows) {
    const codec::RowFormat* format = table_->FindFormat(page.format_id());
    if (format == nullptr) return CorruptionError("a page has unknown row format");
    bool masked = false;
    for (const Item& item : items_) {
      const auto columns = format->columns();
      const auto stored =
          std::find_if(columns.begin(), columns.end(),
                       [&](const codec::RowColumn& c) { return c.id == columns_[item.column]; });
      codec::Verdict verdict;
      codec::Chunk chunk;
      if (stored == columns.end()) {
        verdict = PassesDefault(item) ? codec::Verdict::kAll : codec::Verdict::kNone;
      } else {
        CELLAR_TRY(
            page.GetChunk(static_cast<uint32_t>(stored - columns.begin()), stored->type, &chunk));
        verdict = chunk.Judge(item.filter);
      }
      if (verdict == codec::Verdict::kNone) return Status();
      if (verdict == codec::Verdict::kAll) continue;
      if (!masked) {
        mask_.assign(count, 1);
        masked = true;
      }
      CELLAR_TRY(chunk.Filter(item.filter, first, count, mask_.data()));
    }
    if (!masked) {
      *all = true;
      return Status();
    }
    AppendMaskPlaces(mask_.data(), count, first, rows);
    return Status();
  }

  // The same for packed rows; *places are those of keys and values.
  Status SelectRows(std::span<const std::string_view> keys,
                    std::span<const std::string_view> values, std::vector<uint32_t>* places) {
    scratch_.Reset(codec_->types());
    scratch_.Resize(keys.size());
    CELLAR_TRY(codec_->Decode(keys, values, 0, &scratch_));
    return SelectScratch(places);
  }

  // The same for one row of a page with a patch over it.
  Result<bool> PassesPatched(const codec::PageView& page, uint32_t row, std::string_view patch) {
    scratch_.Reset(codec_->types());
    scratch_.Resize(1);
    CELLAR_TRY(codec_->DecodePageRows(page, {&row, 1}, 0, false, &scratch_));
    CELLAR_TRY(codec_->ApplyPatch(patch, 0, false, &scratch_));
    std::vector<uint32_t> places;
    CELLAR_TRY(SelectScratch(&places));
    return !places.empty();
  }

 private:
  struct Item {
    ValueFilter filter;
    size_t column;  // in columns_
  };

  bool PassesDefault(const Item& item) const {
    const int position = table_->PositionOf(columns_[item.column]);
    const catalog::ColumnDescriptor& column = table_->living_column(static_cast<size_t>(position));
    const Datum value =
        column.initial_value.has_value() ? column.initial_value->datum() : Datum::Null();
    return PassesFilter(value, column.type, item.filter);
  }

  Status SelectScratch(std::vector<uint32_t>* places) {
    mask_.assign(scratch_.size(), 1);
    for (const Item& item : items_) {
      ApplyFilter(scratch_.column(item.column), item.filter, mask_.data());
    }
    AppendMaskPlaces(mask_.data(), mask_.size(), 0, places);
    return Status();
  }

  const CompiledTable* table_ = nullptr;
  std::vector<ColumnId> columns_;
  std::vector<Item> items_;
  std::shared_ptr<const ScanCodec> codec_;  // of the filters' columns
  RowBatch scratch_;
  std::vector<uint8_t> mask_;
};

class PageScanReader final : public Reader {
 public:
  PageScanReader(AccessContext* context, const CompiledTable* table, ScanSpec spec,
                 std::shared_ptr<const ScanCodec> codec, std::vector<KeyItem> items)
      : context_(context),
        table_(table),
        spec_(std::move(spec)),
        codec_(std::move(codec)),
        items_(std::move(items)) {}

  Status Open() { return filters_.Compile(*table_, spec_.filters); }

  Result<bool> Next(RowBatch* batch) override {
    batch->Reset(codec_->types());
    rows_ = copied_bytes_ = 0;
    borrowed_ = false;
    while (rows_ < kBatchRows && copied_bytes_ < kMostCopied && !IsEnough()) {
      if (run_.kind == MergeRun::Kind::kEnd) {
        if (item_ == items_.size() || borrowed_) break;
        merge_ = std::make_unique<PageMerge>(context_, table_, items_[item_].start,
                                             items_[item_].end, DeltaOptions(spec_), Wanted());
        ++item_;
        run_.kind = MergeRun::Kind::kLoad;
      }
      if (run_.kind == MergeRun::Kind::kLoad) CELLAR_TRY(merge_->Next(!borrowed_, &run_));
      if (run_.kind == MergeRun::Kind::kLoad) break;
      if (run_.kind == MergeRun::Kind::kEnd) continue;
      CELLAR_TRY(Take(batch));
    }
    batch->SetSize(rows_);
    returned_ += rows_;
    return rows_ > 0 || run_.kind != MergeRun::Kind::kEnd || item_ < items_.size();
  }

 private:
  WantedValues Wanted() const {
    WantedValues wanted = WantedValues::Of(spec_.columns);
    for (const ColumnFilter& filter : spec_.filters) wanted.columns.push_back(filter.column);
    return wanted;
  }

  // Has the caller all that it is likely to want? What comes next may lie behind many deleted rows.
  bool IsEnough() const {
    return rows_ > 0 && spec_.limit_hint > returned_ && rows_ >= spec_.limit_hint - returned_;
  }

  // Adds the run, or as much of it as the caller is likely to want.
  Status Take(RowBatch* batch) {
    switch (run_.kind) {
      case MergeRun::Kind::kPage: return TakePage(batch);
      case MergeRun::Kind::kPatched: {
        const Status status = TakePatched(batch);
        run_.kind = MergeRun::Kind::kLoad;
        return status.ok() ? status : DamagedPage(*table_, run_.page->boundary, status);
      }
      case MergeRun::Kind::kRows: {
        const Status status = TakeRows(batch);
        run_.kind = MergeRun::Kind::kLoad;
        return status.ok() ? status : DamagedEntry(*spec_.table, spec_.table->primary(), status);
      }
      case MergeRun::Kind::kLoad:
      case MergeRun::Kind::kEnd: break;
    }
    return Status();
  }

  Status TakePage(RowBatch* batch) {
    uint32_t first = run_.first, count = run_.count;
    if (spec_.limit_hint > returned_ + rows_ && filters_.empty()) {
      const uint64_t wanted = spec_.limit_hint - returned_ - rows_;
      count = static_cast<uint32_t>(std::min<uint64_t>(count, wanted));
      if (spec_.reverse) first = run_.first + run_.count - count;
    }
    const Status status = AddPageRows(first, count, batch);
    if (!status.ok()) return DamagedPage(*table_, run_.page->boundary, status);
    run_.count -= count;
    if (!spec_.reverse) run_.first += count;
    if (run_.count == 0) run_.kind = MergeRun::Kind::kLoad;
    return status;
  }

  Status AddPageRows(uint32_t first, uint32_t count, RowBatch* batch) {
    const codec::PageView& page = run_.page->view;
    bool all = filters_.empty();
    places_.clear();
    if (!all) CELLAR_TRY(filters_.SelectPage(page, first, count, &all, &places_));
    const size_t added = all ? count : places_.size();
    if (added == 0) return Status();
    const bool copy = BorrowsLess(added);
    Grow(added, batch);
    if (all || added == count) {
      CELLAR_TRY(codec_->DecodePage(page, first, count, rows_, copy, batch));
    } else {
      CELLAR_TRY(codec_->DecodePageRows(page, places_, rows_, copy, batch));
    }
    if (spec_.reverse) ReverseRows(batch, rows_, added);
    rows_ += added;
    return Status();
  }

  Status TakePatched(RowBatch* batch) {
    const codec::PageView& page = run_.page->view;
    if (!filters_.empty()) {
      CELLAR_TRY_ASSIGN(const bool passes, filters_.PassesPatched(page, run_.first, run_.patch));
      if (!passes) return Status();
    }
    Grow(1, batch);
    CELLAR_TRY(codec_->DecodePageRows(page, {&run_.first, 1}, rows_, true, batch));
    CELLAR_TRY(codec_->ApplyPatch(run_.patch, rows_, true, batch));
    ++rows_;
    return Status();
  }

  Status TakeRows(RowBatch* batch) {
    std::span<const std::string_view> keys = run_.keys, values = run_.values;
    if (!filters_.empty()) {
      places_.clear();
      CELLAR_TRY(filters_.SelectRows(keys, values, &places_));
      if (places_.empty()) return Status();
      if (places_.size() < keys.size()) {
        keys_.clear();
        values_.clear();
        for (uint32_t place : places_) {
          keys_.push_back(keys[place]);
          values_.push_back(values[place]);
        }
        keys = keys_;
        values = values_;
      }
    }
    const bool copy = BorrowsLess(keys.size());
    Grow(keys.size(), batch);
    CELLAR_TRY(codec_->Decode(keys, values, rows_, batch));
    if (copy) {
      for (ColumnVector& column : batch->columns()) {
        if (column.physical() != Physical::kBytes) continue;
        std::string_view* bytes = column.bytes() + rows_;
        for (size_t i = 0; i < keys.size(); ++i) {
          bytes[i] = batch->arena()->Copy(bytes[i]);
          copied_bytes_ += bytes[i].size();
        }
      }
    }
    rows_ += keys.size();
    return Status();
  }

  // Is a run of so many rows copied? If not, and it has bytes, nothing may be loaded any more.
  bool BorrowsLess(size_t rows) {
    if (!codec_->borrows() && !codec_->with_row_ref()) return false;
    if (rows < kLeastBorrowed && !borrowed_) return true;
    borrowed_ = true;
    return false;
  }

  void Grow(size_t rows, RowBatch* batch) { batch->Resize(rows_ + rows); }

  AccessContext* context_;
  const CompiledTable* table_;
  ScanSpec spec_;
  std::shared_ptr<const ScanCodec> codec_;
  std::vector<KeyItem> items_;
  size_t item_ = 0;
  PageFilters filters_;
  std::unique_ptr<PageMerge> merge_;
  MergeRun run_;
  size_t rows_ = 0;        // of the batch
  uint64_t returned_ = 0;  // before it
  bool borrowed_ = false;
  size_t copied_bytes_ = 0;  // in the batch
  std::vector<uint32_t> places_;
  std::vector<std::string_view> keys_, values_;
};

// The commonest scan of all, so it allocates next to nothing.
class PagePointReader final : public Reader {
 public:
  PagePointReader(AccessContext* context, const CompiledTable* table, TablePtr owner,
                  kv::ReadViewPtr view, std::shared_ptr<const ScanCodec> codec, std::string key)
      : context_(context),
        table_(table),
        owner_(std::move(owner)),
        view_(std::move(view)),
        codec_(std::move(codec)),
        key_(std::move(key)) {}

  Result<bool> Next(RowBatch* batch) override {
    batch->Reset(codec_->types());
    if (done_) return false;
    done_ = true;
    CELLAR_TRY(context_->CheckCancel());
    CELLAR_TRY_ASSIGN(const bool changed, context_->Get(key_, view_.get(), &delta_));
    codec::DeltaKind kind = codec::DeltaKind::kPatch;
    if (changed) {
      Result<codec::DeltaKind> known = codec::DeltaKindOf(delta_.view());
      if (!known.ok()) return Damaged(known.status());
      kind = *known;
    }
    if (kind == codec::DeltaKind::kTombstone) return false;
    if (kind != codec::DeltaKind::kPatch) {
      batch->Resize(1);
      const std::string_view key = key_;
      std::string_view value = delta_.view();
      if (kind == codec::DeltaKind::kLongRow) {
        Result<std::string_view> row = ReadLongRow(context_, *table_, Ref(), value, view_.get(),
                                                   WantedValues::Of(codec_->columns()), &long_row_);
        if (!row.ok()) return Damaged(row.status());
        value = *row;
      }
      const Status status = codec_->Decode({&key, 1}, {&value, 1}, 0, batch);
      if (!status.ok()) return Damaged(status);
      return true;
    }
    return NextOfPage(changed, batch);
  }

 private:
  Result<bool> NextOfPage(bool patched, RowBatch* batch) {
    CELLAR_TRY_ASSIGN(const bool pages, MayHavePages(context_, *table_, view_.get()));
    if (!pages) return false;
    const std::string_view ref = Ref();
    CELLAR_TRY_ASSIGN(const bool any, OpenPageOf(context_, *table_, ref, view_.get(), &page_));
    if (!any) return false;
    Result<PagePlace> place = FindInPage(*table_, page_.view, ref);
    if (!place.ok()) return DamagedPage(*table_, page_.boundary, place.status());
    if (!place->found) {
      if (!patched) return false;
      return DamagedPage(*table_, page_.boundary, CorruptionError("a patched row is missing"));
    }
    batch->Resize(1);
    Status status = codec_->DecodePageRows(page_.view, {&place->row, 1}, 0, false, batch);
    if (status.ok() && patched) status = codec_->ApplyPatch(delta_.view(), 0, false, batch);
    if (!status.ok()) return DamagedPage(*table_, page_.boundary, status);
    return true;
  }

  std::string_view Ref() const {
    const size_t prefix = table_->primary().prefix.size();
    return std::string_view(key_).substr(prefix, key_.size() - prefix - 1);
  }

  Status Damaged(const Status& cause) const {
    return DamagedEntry(*owner_, owner_->primary(), cause);
  }

  AccessContext* context_;
  const CompiledTable* table_;
  TablePtr owner_;
  kv::ReadViewPtr view_;
  std::shared_ptr<const ScanCodec> codec_;
  std::string key_;
  kv::PinnedValue delta_;
  std::string long_row_;
  OpenPage page_;
  bool done_ = false;
};

}  // namespace

Result<std::unique_ptr<Reader>> OpenPageScan(AccessContext* context, const CompiledTable* table,
                                             ScanSpec spec, std::shared_ptr<const ScanCodec> codec,
                                             std::vector<KeyItem> items) {
  auto reader = std::make_unique<PageScanReader>(context, table, std::move(spec), std::move(codec),
                                                 std::move(items));
  CELLAR_TRY(reader->Open());
  return std::unique_ptr<Reader>(std::move(reader));
}

std::unique_ptr<Reader> OpenPagePoint(AccessContext* context, const CompiledTable* table,
                                      TablePtr owner, kv::ReadViewPtr view,
                                      std::shared_ptr<const ScanCodec> codec, std::string row_key) {
  return std::make_unique<PagePointReader>(context, table, std::move(owner), std::move(view),
                                           std::move(codec), std::move(row_key));
}

}  // namespace cellar::table
