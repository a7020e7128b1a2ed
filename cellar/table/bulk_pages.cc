#include "cellar/table/bulk_pages.h"

#include "cellar/table/long_values.h"
#include "cellar/table/sealer.h"

namespace cellar::table {
namespace {

// Loads that begin with fewer rows are left to the sealer.
constexpr size_t kLeastRows = 256;

bool Ascend(std::string_view last, const StringList& refs) {
  for (size_t i = 0; i < refs.size(); ++i) {
    if (refs[i] <= last) return false;
    last = refs[i];
  }
  return true;
}

}  // namespace

Result<bool> BulkPages::Add(const RowBatch& rows, const StringList& refs, bool fresh) {
  if (over_ || rows.size() == 0) return false;
  if (AnyLongValue(*compiled_, rows)) {
    CELLAR_TRY(Flush());
    return false;
  }
  if (!packer_.has_value()) {
    over_ = rows.size() < kLeastRows;
    if (!over_) CELLAR_TRY(Start(refs[0]));
    if (over_) return false;
  }
  if (!Ascend(last_ref_, refs)) {
    CELLAR_TRY(Flush());
    over_ = true;
    return false;
  }
  if (first_ref_.empty()) first_ref_ = refs[0];
  last_ref_ = refs[refs.size() - 1];
  if (!fresh) {
    std::string key;
    for (size_t i = 0; i < refs.size(); ++i) {
      key.clear();
      AppendRowKey(compiled_->primary(), refs[i], &key);
      CELLAR_TRY(context_->transaction->AddReadConflict(key));
    }
  }
  CELLAR_TRY(AddRows(rows, refs));
  return true;
}

// Opens the packer behind the table's last row, if `first` lies there; else the load is over.
Status BulkPages::Start(std::string_view first) {
  over_ = true;
  if (!context_->LeasePages(*compiled_)) return Status();
  const std::string& prefix = compiled_->primary().prefix;
  std::string start = prefix;
  start.append(first);
  kv::ScanOptions options;
  options.keys_only = true;
  options.limit = 1;
  options.mode = kv::ReadMode::kSnapshot;
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    context_->transaction->Scan(start, codec::PrefixEnd(prefix), options));
  kv::Block block;
  CELLAR_TRY_ASSIGN(const bool behind, cursor->NextBlock(&block));
  if (behind) return Status();

  OpenPage page;
  CELLAR_TRY_ASSIGN(const bool pages, MayHavePages(context_, *compiled_, nullptr));
  bool any = false;
  if (pages) {
    CELLAR_TRY_ASSIGN(any, OpenPageOf(context_, *compiled_, first, nullptr, &page));
  }
  context_->DirectoryOf(*compiled_).ExpectPages();
  context_->DirectoryOf(*compiled_).Announce(any ? page.boundary : std::string(), {});
  if (!any) {
    packer_.emplace(compiled_, context_->transaction, "", "", kPageBytes);
  } else {
    if (!page.view.fence().empty()) return Status();
    Result<PagePlace> place = FindInPage(*compiled_, page.view, first);
    if (!place.ok()) return DamagedPage(*compiled_, page.boundary, place.status());
    if (place->row < page.view.rows() || place->found) return Status();
    // The last page is filled up: its key stays, so the delta over it does too.
    CELLAR_TRY_ASSIGN(
        std::shared_ptr<const ScanCodec> codec,
        compiled_->Scan(compiled_->primary().index->id, compiled_->living_ids(),
                        compiled_->page_keys() == codec::PageKeys::kRefs, ScanBytes::kCopy));
    packer_.emplace(compiled_, context_->transaction, page.boundary, "", kPageBytes);
    packer_->buffer()->Resize(page.view.rows());
    const Status status =
        codec->DecodePage(page.view, 0, page.view.rows(), 0, true, packer_->buffer());
    if (!status.ok()) return DamagedPage(*compiled_, page.boundary, status);
  }
  over_ = false;
  return Status();
}

Status BulkPages::AddRows(const RowBatch& rows, const StringList& refs) {
  if (compiled_->page_keys() == codec::PageKeys::kInt) return packer_->Add(rows);
  // The batch lacks the last column.
  with_refs_.Reset(PagePacker::TypesOf(*compiled_));
  with_refs_.Resize(rows.size());
  const size_t columns = rows.num_columns();
  for (size_t c = 0; c < columns; ++c) {
    for (size_t i = 0; i < rows.size(); ++i) with_refs_.column(c).Set(i, rows.column(c).Get(i));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    with_refs_.column(columns).Set(i, Datum::Bytes(refs[i]));
  }
  return packer_->Add(with_refs_);
}

Status BulkPages::Flush() {
  if (!packer_.has_value()) return Status();
  CELLAR_TRY(packer_->Finish());
  for (const std::string& boundary : packer_->boundaries()) {
    context_->DirectoryOf(*compiled_).Learn(boundary);
  }
  packer_.reset();
  if (first_ref_.empty()) return Status();
  std::string first, last;
  AppendRowKey(compiled_->primary(), first_ref_, &first);
  AppendRowKey(compiled_->primary(), last_ref_, &last);
  last.push_back('\0');
  first_ref_.clear();
  return context_->transaction->AddWriteConflict(first, last);
}

}  // namespace cellar::table
