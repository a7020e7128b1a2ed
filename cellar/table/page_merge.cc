#include "cellar/table/page_merge.h"

#include <algorithm>

#include "cellar/table/long_values.h"

namespace cellar::table {
namespace {

// Long rows are held in memory until all before them have been handed out.
constexpr size_t kLongBytesAtOnce = 1 << 20;
// So many pages come from the cursor before the directory is asked again.
constexpr size_t kCursorPages = 16;

std::string WithoutPrefix(std::string_view key, std::string_view prefix) {
  return key.starts_with(prefix) ? std::string(key.substr(prefix.size())) : std::string();
}

}  // namespace

PageMerge::PageMerge(AccessContext* context, const CompiledTable* table, std::string start,
                     std::string end, const kv::ScanOptions& options, WantedValues wanted)
    : context_(context),
      table_(table),
      reverse_(options.reverse),
      start_(std::move(start)),
      delta_end_(std::move(end)),
      low_bound_(WithoutPrefix(start_, table->primary().prefix)),
      high_bound_(WithoutPrefix(delta_end_, table->primary().prefix)),
      options_(options),
      wanted_(std::move(wanted)) {}

Status PageMerge::Open() {
  opened_ = true;
  CELLAR_TRY_ASSIGN(delta_cursor_, context_->transaction->Scan(start_, delta_end_, options_));
  // The snapshot is taken; only now may the directory be believed.
  CELLAR_TRY_ASSIGN(const bool pages, MayHavePages(context_, *table_, options_.view));
  pages_ended_ = !pages;
  snapshot_ = context_->transaction->snapshot_version(options_.view);
  page_writes_ = context_->page_writes;
  return pages ? OpenPages() : Status();
}

Status PageMerge::OpenPages() {
  if (!reverse_ && !low_bound_.empty()) {
    // The page that is responsible for the start of the range begins before it.
    if (!context_->DirectoryOf(*table_).Find(low_bound_, &first_boundary_)) {
      OpenPage page;
      CELLAR_TRY_ASSIGN(const bool any,
                        OpenPageOf(context_, *table_, low_bound_, options_.view, &page));
      if (!any) {
        pages_ended_ = true;
        return Status();
      }
      first_boundary_ = page.boundary;
    } else {
      check_first_ = true;
    }
  }
  behind_ = false;
  return OpenPageCursor(first_boundary_);
}

Status PageMerge::OpenPageCursor(std::string_view boundary) {
  kv::ScanOptions options;
  options.reverse = reverse_;
  options.fill_cache = options_.fill_cache;
  options.mode = kv::ReadMode::kSnapshot;
  options.view = options_.view;
  // Where own writes are merged, a page comes at a time.
  options.block_bytes = options.first_block_bytes = 1;
  std::string start = table_->page_prefix();
  std::string end = table_->page_prefix();
  if (high_bound_.empty()) {
    end = codec::PrefixEnd(table_->page_prefix());
  } else {
    end += high_bound_;
  }
  if (!boundary.empty()) {
    start.clear();
    AppendPageKey(*table_, boundary, &start);
  }
  CELLAR_TRY_ASSIGN(page_cursor_, context_->transaction->Scan(start, end, options));
  return Status();
}

Status PageMerge::LoadPage() {
  std::string_view key, value;
  page_ = nullptr;
  placed_ = false;
  if (last_page_) {
    pages_ended_ = true;
    page_cursor_.reset();
    return Status();
  }
  CELLAR_TRY(context_->CheckCancel());
  if (behind_ && !EndsBefore(joint_)) {
    pages_ended_ = true;
    page_cursor_.reset();
    return Status();
  }
  if (TakeCached()) return EnterPage();
  CELLAR_TRY(CatchUp());
  ++context_->stats.trips;
  CELLAR_TRY_ASSIGN(const bool more, page_cursor_->NextView(&key, &value));
  if (check_first_) {
    check_first_ = false;
    std::string expected;
    AppendPageKey(*table_, first_boundary_, &expected);
    if (!more || key != expected) {
      // The directory is stale. Without the hint the right page is found in any case.
      context_->DirectoryOf(*table_).Forget(first_boundary_);
      page_cursor_.reset();
      return OpenPages();
    }
  }
  if (!more) {
    pages_ended_ = true;
    page_cursor_.reset();
    return CheckEnd();
  }
  Result<std::string_view> boundary = BoundaryOf(*table_, key);
  if (!boundary.ok()) return DamagedPage(*table_, {}, boundary.status());
  open_.boundary.assign(*boundary);
  open_.cached.reset();
  ++from_cursor_;
  context_->stats.bytes_read += key.size() + value.size();
  if (Status status = ParsePage(context_, *table_, value, &open_.view); !status.ok()) {
    return DamagedPage(*table_, open_.boundary, status);
  }
  if (options_.fill_cache) OfferPage(context_, *table_, key, options_.view, open_.boundary);
  return EnterPage();
}

bool PageMerge::TakeCached() {
  if (reverse_) return false;
  // After a miss others are likely, and every change of way costs a seek.
  if (!behind_ && from_cursor_ % kCursorPages != 0) return false;
  if (joined_ && !EndsBefore(joint_)) return false;
  const std::string& next = joined_ ? joint_ : first_boundary_;
  open_.cached = context_->DirectoryOf(*table_).PageAt(next, snapshot_);
  if (open_.cached == nullptr) return false;
  open_.boundary = next;
  open_.view = open_.cached->view();
  check_first_ = false;
  behind_ = true;
  return true;
}

Status PageMerge::CatchUp() {
  if (!behind_) return Status();
  behind_ = false;
  from_cursor_ = 0;
  if (context_->page_writes == page_writes_ &&
      context_->transaction->snapshot_version(options_.view) == snapshot_) {
    return OpenPageCursor(joint_);
  }
  // What a new cursor would show has changed; the old one shows what this merge began with.
  std::string last;
  AppendPageKey(*table_, open_.boundary, &last);
  std::string_view key, value;
  bool more = true;
  while (more && key != last) {
    CELLAR_TRY_ASSIGN(more, page_cursor_->NextView(&key, &value));
  }
  return Status();
}

Status PageMerge::EnterPage() {
  page_ = &open_;
  Status status = CheckJoint();
  if (status.ok()) status = BoundPage();
  if (!status.ok()) return DamagedPage(*table_, open_.boundary, status);
  context_->stats.rows_read += high_ - low_;
  return Status();
}

Status PageMerge::CheckJoint() {
  const std::string_view boundary = open_.boundary, fence = open_.view.fence();
  bool right;
  if (joined_) {
    right = joint_ == (reverse_ ? fence : boundary);
  } else if (reverse_) {
    right = fence.empty() || !EndsBefore(fence);
  } else {
    right = boundary.empty() || !low_bound_.empty();
  }
  joined_ = true;
  joint_ = reverse_ ? boundary : fence;
  // Else a page with another's content would lead back to where the scan has been.
  if (!fence.empty() && fence <= boundary) return CorruptionError("it ends before it begins");
  if (!reverse_ && fence.empty()) CELLAR_TRY(CheckLast());
  return right ? Status() : CorruptionError("a page beside it is missing or overlaps it");
}

// The page just loaded says that it is the last one.
Status PageMerge::CheckLast() {
  // Pages kept at hand were looked at when they were read.
  if (behind_ && !context_->DirectoryOf(*table_).KnowsBehind(open_.boundary)) return Status();
  // A new cursor would show what was written since.
  if (context_->page_writes != page_writes_ ||
      context_->transaction->snapshot_version(options_.view) != snapshot_) {
    return Status();
  }
  kv::ScanOptions options;
  options.keys_only = true;
  options.limit = 1;
  options.mode = kv::ReadMode::kSnapshot;
  options.view = options_.view;
  std::string start;
  AppendPageKey(*table_, open_.boundary, &start);
  start.push_back('\0');
  CELLAR_TRY_ASSIGN(
      std::unique_ptr<kv::Cursor> cursor,
      context_->transaction->Scan(start, codec::PrefixEnd(table_->page_prefix()), options));
  kv::Block block;
  CELLAR_TRY_ASSIGN(const bool more, cursor->NextBlock(&block));
  return more ? CorruptionError("it has no fence, but a page follows") : Status();
}

Status PageMerge::CheckEnd() {
  if (!joined_) {
    // Nothing below the end of the range, not even the first page.
    if (high_bound_.empty()) return Status();
    return DamagedPage(*table_, {}, RequireNoPages(context_, *table_, options_.view));
  }
  if (reverse_ ? joint_.empty() : !EndsBefore(joint_)) return Status();
  return DamagedPage(*table_, open_.boundary, CorruptionError("the page beside it is missing"));
}

// Would a page that begins at the fence be in the range?
bool PageMerge::EndsBefore(std::string_view fence) const {
  if (fence.empty()) return false;
  if (high_bound_.empty()) return true;
  std::string key(fence);
  key.push_back(kGroupZero);
  return key < high_bound_;
}

Status PageMerge::BoundPage() {
  const codec::PageView& view = page_->view;
  low_ = 0;
  high_ = view.rows();
  const std::string_view fence = view.fence();
  // Rows lie in [boundary, fence), so only the outermost pages are cut.
  if (!low_bound_.empty() && page_->boundary < low_bound_) {
    CELLAR_TRY_ASSIGN(low_, PageLowerBound(*table_, view, low_bound_));
    if (reverse_) last_page_ = true;
  }
  if (!high_bound_.empty() && (fence.empty() || fence > high_bound_)) {
    CELLAR_TRY_ASSIGN(high_, PageLowerBound(*table_, view, high_bound_));
    if (!reverse_) last_page_ = true;
  }
  if (!reverse_ && fence.empty()) last_page_ = true;
  if (reverse_ && page_->boundary.empty()) last_page_ = true;
  high_ = std::max(low_, high_);
  return Status();
}

Status PageMerge::LoadBlock() {
  delta_.clear();
  long_rows_.clear();
  delta_at_ = 0;
  placed_ = false;
  CELLAR_TRY(context_->CheckCancel());
  if (block_at_ == block_.size()) {
    block_at_ = 0;
    ++context_->stats.trips;
    CELLAR_TRY_ASSIGN(const bool more, delta_cursor_->NextBlock(&block_));
    if (!more) {
      block_.Clear();
      delta_ended_ = true;
      delta_cursor_.reset();
      return Status();
    }
    context_->stats.rows_read += block_.size();
    context_->stats.bytes_read += block_.bytes();
  }
  const size_t prefix = table_->primary().prefix.size();
  delta_.reserve(block_.size() - block_at_);
  size_t long_bytes = 0;
  while (block_at_ < block_.size() && long_bytes < kLongBytesAtOnce) {
    DeltaEntry entry;
    entry.key = block_.key(block_at_);
    entry.value = block_.value(block_at_++);
    Result<codec::DeltaKind> kind = codec::DeltaKindOf(entry.value);
    if (!kind.ok() || entry.key.size() < prefix + 1) {
      const Status cause = kind.ok() ? CorruptionError("its key is too short") : kind.status();
      return DamagedEntry(table_->table(), table_->table().primary(), cause);
    }
    entry.kind = *kind;
    entry.ref = entry.key.substr(prefix, entry.key.size() - prefix - 1);
    if (entry.kind == codec::DeltaKind::kLongRow) {
      if (skip_long_) continue;
      Result<std::string_view> row =
          ReadLongRow(context_, *table_, entry.ref, entry.value, options_.view, wanted_,
                      &long_rows_.emplace_back());
      if (!row.ok()) {
        return DamagedEntry(table_->table(), table_->table().primary(), row.status());
      }
      entry.value = *row;
      entry.kind = codec::DeltaKind::kRow;
      long_bytes += row->size();
    }
    delta_.push_back(entry);
  }
  return Status();
}

bool PageMerge::InPage(const DeltaEntry& entry) const {
  if (reverse_) return entry.ref >= page_->boundary;
  return page_->view.Covers(entry.ref);
}

void PageMerge::EmitPage(uint32_t first, uint32_t count, MergeRun* run) const {
  run->kind = MergeRun::Kind::kPage;
  run->page = page_;
  run->first = first;
  run->count = count;
  run->whole = count == page_->view.rows();
}

void PageMerge::EmitRows(MergeRun* run) {
  run_keys_.clear();
  run_values_.clear();
  for (; delta_at_ < delta_.size(); ++delta_at_) {
    const DeltaEntry& entry = delta_[delta_at_];
    if (page_ != nullptr && !InPage(entry)) break;
    if (entry.kind == codec::DeltaKind::kTombstone) continue;
    if (entry.kind == codec::DeltaKind::kPatch) break;  // an error, reported when it comes first
    run_keys_.push_back(entry.key);
    run_values_.push_back(entry.value);
  }
  placed_ = false;
  run->kind = MergeRun::Kind::kRows;
  run->keys = run_keys_;
  run->values = run_values_;
}

// The delta entry in front lies within the rows of the page that are left, or between them.
Status PageMerge::MergeEntry(MergeRun* run, bool* emitted) {
  const DeltaEntry& entry = delta_[delta_at_];
  if (!placed_) {
    Result<PagePlace> place = FindInPage(*table_, page_->view, entry.ref);
    if (!place.ok()) return DamagedPage(*table_, page_->boundary, place.status());
    place_ = *place;
    placed_ = true;
  }
  *emitted = true;
  if (!reverse_) {
    const uint32_t row = std::clamp(place_.row, low_, high_);
    if (row > low_) {
      EmitPage(low_, row - low_, run);
      low_ = row;
      return Status();
    }
  } else {
    // Rows after the entry's come first.
    const uint32_t after = std::clamp(place_.row + (place_.found ? 1 : 0), low_, high_);
    if (after < high_) {
      EmitPage(after, high_ - after, run);
      high_ = after;
      return Status();
    }
  }
  const bool match =
      place_.found && (reverse_ ? high_ > low_ && place_.row == high_ - 1 : place_.row == low_);
  if (match) {
    if (reverse_) {
      --high_;
    } else {
      ++low_;
    }
  }
  ++delta_at_;
  placed_ = false;
  switch (entry.kind) {
    case codec::DeltaKind::kTombstone: *emitted = false; return Status();
    case codec::DeltaKind::kRow:
      run_keys_.assign(1, entry.key);
      run_values_.assign(1, entry.value);
      run->kind = MergeRun::Kind::kRows;
      run->keys = run_keys_;
      run->values = run_values_;
      return Status();
    case codec::DeltaKind::kLongRow:  // a row by now, or left out
    case codec::DeltaKind::kPatch: break;
  }
  if (!match) {
    return DamagedPage(*table_, page_->boundary, CorruptionError("a patched row is missing"));
  }
  run->kind = MergeRun::Kind::kPatched;
  run->page = page_;
  run->first = place_.row;
  run->count = 1;
  run->patch = entry.value;
  return Status();
}

Status PageMerge::Next(bool may_load, MergeRun* run) {
  if (!opened_) CELLAR_TRY(Open());
  while (true) {
    if (NeedsPage() || NeedsBlock()) {
      if (!may_load) {
        run->kind = MergeRun::Kind::kLoad;
        return Status();
      }
      if (NeedsBlock()) CELLAR_TRY(LoadBlock());
      if (NeedsPage()) CELLAR_TRY(LoadPage());
      continue;
    }
    const bool has_delta = delta_at_ < delta_.size();
    if (page_ == nullptr) {
      if (!has_delta) {
        run->kind = MergeRun::Kind::kEnd;
        return Status();
      }
      if (delta_[delta_at_].kind == codec::DeltaKind::kPatch) {
        return DamagedEntry(table_->table(), table_->table().primary(),
                            CorruptionError("a patch is over no page"));
      }
      EmitRows(run);
      if (!run->keys.empty()) return Status();
      continue;
    }
    if (has_delta && InPage(delta_[delta_at_])) {
      if (low_ == high_ && delta_[delta_at_].kind != codec::DeltaKind::kPatch) {
        // Behind all rows of the page that are left: what it hides went before.
        EmitRows(run);
        if (!run->keys.empty()) return Status();
        continue;
      }
      bool emitted = false;
      CELLAR_TRY(MergeEntry(run, &emitted));
      if (emitted) return Status();
      continue;
    }
    if (low_ < high_) {
      EmitPage(low_, high_ - low_, run);
      low_ = high_ = 0;
      return Status();
    }
    page_ = nullptr;  // the next Next loads another one
  }
}

}  // namespace cellar::table
