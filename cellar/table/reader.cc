#include "cellar/table/reader.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/table/bulk_pages.h"
#include "cellar/table/errors.h"
#include "cellar/table/page_scan.h"
#include "cellar/table/pages.h"
#include "cellar/table/shard_cursor.h"
#include "cellar/table/split_scan.h"
#include "cellar/table/string_list.h"

namespace cellar::table {
namespace {

// First blocks of scans, in bytes: what the caller hinted at, within these.
constexpr size_t kSmallestFirstBlock = 256;
constexpr size_t kFirstBlock = 32 << 10;
constexpr size_t kLargestBlock = 64 << 10;
// Rows fetched together: this many until it is known how long they are.
constexpr size_t kFirstFetch = 128;
constexpr size_t kFetchBytes = 1 << 20;
constexpr size_t kGuessedRowBytes = 128;
constexpr size_t kGuessedKeyBytes = 32;

std::vector<uint32_t> PlacesOf(const std::vector<bool>& flags) {
  std::vector<uint32_t> places;
  for (size_t i = 0; i < flags.size(); ++i) {
    if (flags[i]) places.push_back(static_cast<uint32_t>(i));
  }
  return places;
}

template <typename T>
void KeepPlaces(std::span<const uint32_t> places, std::vector<T>* items) {
  if (items->empty()) return;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] != i) (*items)[i] = std::move((*items)[places[i]]);
  }
  items->resize(places.size());
}

}  // namespace

// ---- AccessContext ----

AccessContext::AccessContext() = default;
AccessContext::~AccessContext() {
  for (const KnownDirectory& known : directories_) {
    known.directory->changes.fetch_add(known.changes, std::memory_order_relaxed);
  }
}

void AccessContext::CountChanges(const CompiledTable& table, size_t rows) {
  const PageDirectory& directory = DirectoryOf(table);
  for (KnownDirectory& known : directories_) {
    if (known.directory.get() == &directory) known.changes += rows;
  }
}

PageDirectory& AccessContext::DirectoryOf(const CompiledTable& table) {
  const codec::TableId id = table.table().storage_id();
  const IndexId primary = table.table().primary().id;
  for (const KnownDirectory& known : directories_) {
    if (known.table == id && known.primary == primary) return *known.directory;
  }
  KnownDirectory& known = directories_.emplace_back();
  known.table = id;
  known.primary = primary;
  known.directory =
      store != nullptr ? store->DirectoryOf(id, primary) : std::make_shared<PageDirectory>();
  return *known.directory;
}

bool AccessContext::LeasePages(const CompiledTable& table) {
  if (store == nullptr) return false;
  PageDirectory& directory = DirectoryOf(table);
  for (const HeldLease& held : leases_) {
    if (held.directory == &directory) return true;
  }
  if (!directory.TryLease()) return false;
  PageLease lease(store->DirectoryOf(table.table().storage_id(), table.table().primary().id),
                  store->engine());
  if (transaction->snapshot_version() < directory.written_version()) return false;
  leases_.push_back({&directory, std::move(lease)});
  ++page_writes;
  return true;
}

void AccessContext::GuardPages(const TableDescriptor& table) {
  if (store == nullptr || table.layout != catalog::Layout::kPages || table.indexes.empty()) return;
  ++page_writes;
  std::shared_ptr<PageDirectory> directory =
      store->DirectoryOf(table.storage_id(), table.primary().id);
  for (const PageBarrier& barrier : barriers_) {
    if (barrier.directory() == directory.get()) return;
  }
  barriers_.emplace_back(std::move(directory), store->engine());
}

Status AccessContext::FlushBulk() { return bulk_pages == nullptr ? Status() : bulk_pages->Flush(); }

Result<bool> AccessContext::Get(std::string_view key, const kv::ReadOptions& options,
                                kv::PinnedValue* value) {
  ++stats.trips;
  Result<bool> found = transaction->Get(key, value, options);
  if (found.ok() && found.value()) {
    ++stats.rows_read;
    stats.bytes_read += key.size() + value->size();
  }
  return found;
}

Status AccessContext::MultiGet(std::span<const std::string_view> keys,
                               const kv::ReadOptions& options, std::vector<kv::PinnedValue>* values,
                               std::vector<uint8_t>* found) {
  found->assign(keys.size(), 0);
  if (values->size() < keys.size()) values->resize(keys.size());
  if (keys.empty()) return Status();
  if (keys.size() == 1) {
    CELLAR_TRY_ASSIGN(bool one, Get(keys[0], options, &(*values)[0]));
    (*found)[0] = one;
    return Status();
  }
  ++stats.trips;
  const std::unique_ptr<bool[]> flags = std::make_unique<bool[]>(keys.size());
  CELLAR_TRY(transaction->MultiGet(keys, std::span(values->data(), keys.size()),
                                   std::span<bool>(flags.get(), keys.size()), options));
  for (size_t i = 0; i < keys.size(); ++i) {
    (*found)[i] = flags[i];
    if (!flags[i]) continue;
    ++stats.rows_read;
    stats.bytes_read += keys[i].size() + (*values)[i].size();
  }
  return Status();
}

Result<kv::LockResult> LockRowKeys(AccessContext* context, const TableDescriptor& table,
                                   std::span<const std::string_view> keys, const RowLockSpec& how,
                                   kv::LockOptions options) {
  options.mode = how.mode;
  options.wait = how.wait;
  context->SetWaits(&options);
  Result<kv::LockResult> result = context->transaction->Lock(keys, options);
  if (!result.ok() && how.wait == kv::LockWait::kNoWait &&
      result.status().sqlstate() == sqlstate::kLockNotAvailable) {
    return SqlError(Code::kUnavailable, sqlstate::kLockNotAvailable,
                    "could not obtain lock on row in relation \"{}\"", table.name);
  }
  return result;
}

Result<std::vector<bool>> LockPointKeys(AccessContext* context, const ScanSpec& spec,
                                        std::span<const std::string_view> keys,
                                        kv::ReadViewPtr* view) {
  kv::LockOptions options;
  options.view = spec.view.get();
  // Then a row that came meanwhile is no reason to refuse anything.
  options.only_tell = context->level == Access::Level::kRepeatableRead;
  CELLAR_TRY_ASSIGN(kv::LockResult result,
                    LockRowKeys(context, *spec.table, keys, *spec.lock, options));
  *view = spec.view;
  std::vector<bool> wanted = std::move(result.acquired);
  if (result.snapshot_moved) *view = context->transaction->OpenView(spec.view.get());
  std::vector<std::string_view> changed;
  std::vector<size_t> places;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!result.changed[i]) continue;
    changed.push_back(keys[i]);
    places.push_back(i);
  }
  if (changed.empty() || context->level == Access::Level::kSerializable) return wanted;
  // Who waits for a row that was not there when he looked does not see it.
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*spec.table));
  RowFetcher fetcher;
  std::vector<StoredRow> rows;
  std::vector<uint8_t> found;
  CELLAR_TRY(fetcher.Fetch(context, *compiled, changed, spec.view.get(), &rows, &found,
                           WantedValues::Of({})));
  std::vector<std::string_view> lost;
  for (size_t i = 0; i < places.size(); ++i) {
    if (!found[i]) wanted[places[i]] = false;
    if (found[i]) lost.push_back(changed[i]);
  }
  if (lost.empty() || !options.only_tell) return wanted;
  options.only_tell = false;
  CELLAR_TRY(LockRowKeys(context, *spec.table, lost, *spec.lock, options).status());
  // The engine does not know of what was read of pages that were at hand.
  return ConcurrentUpdate();
}

// ---- EntrySet ----

EntrySet::EntrySet(AccessContext* context, const TableDescriptor* table, kv::ReadViewPtr view,
                   std::shared_ptr<const ScanCodec> entries, std::shared_ptr<const ScanCodec> rows)
    : context_(context),
      table_(table),
      view_(std::move(view)),
      read_at_(view_),
      entry_codec_(std::move(entries)),
      row_codec_(std::move(rows)),
      fetcher_(std::make_unique<RowFetcher>()) {}

EntrySet::~EntrySet() = default;

void EntrySet::Clear() {
  keys.clear();
  values.clear();
  kept_.clear();
  read_at_ = view_;
  fetched_ = false;
  have_row_keys_ = false;
  row_keys_.clear();
  rows_.clear();
}

Status EntrySet::Damaged(const Status& cause) const {
  return DamagedEntry(*table_, *entry_codec_->index().index, cause);
}

void EntrySet::Keep(std::span<const uint32_t> places) {
  if (places.size() == keys.size()) return;
  if (kept_.empty()) {
    kept_.assign(places.begin(), places.end());
  } else {
    KeepPlaces(places, &kept_);
  }
  KeepPlaces(places, &keys);
  KeepPlaces(places, &values);
  KeepPlaces(places, &row_keys_);
  // The fetcher owns what rows_ views: it stays where it is.
  if (fetched_) KeepPlaces(places, &rows_);
}

Status EntrySet::FindRowKeys() {
  if (have_row_keys_) return Status();
  have_row_keys_ = true;
  const IndexCodec& index = entry_codec_->index();
  if (index.primary) {
    row_keys_ = keys;
    return Status();
  }
  row_key_bytes_.clear();
  std::vector<size_t> ends;
  ends.reserve(keys.size());
  std::string scratch;
  RowBatch scratch_row;
  const IndexCodec& primary = row_codec_->index();
  for (size_t i = 0; i < keys.size(); ++i) {
    Result<std::string_view> ref = index.FindRef(keys[i], values[i], &scratch, &scratch_row);
    if (!ref.ok()) return Damaged(ref.status());
    AppendRowKey(primary, ref.value(), &row_key_bytes_);
    ends.push_back(row_key_bytes_.size());
  }
  row_keys_.clear();
  size_t start = 0;
  for (size_t end : ends) {
    row_keys_.push_back(std::string_view(row_key_bytes_).substr(start, end - start));
    start = end;
  }
  return Status();
}

// An entry without its row is damage, unless the row went between the entry was read and the row:
// the scan has no view, or has locked. Reading the entry again tells.
Status EntrySet::CheckDangling(size_t place) const {
  kv::PinnedValue value;
  CELLAR_TRY_ASSIGN(bool found, context_->Get(keys[place], read_at_.get(), &value));
  if (!found) return Status();
  const IndexCodec& index = entry_codec_->index();
  std::string scratch, row_key;
  RowBatch scratch_row;
  CELLAR_TRY_ASSIGN(std::string_view ref,
                    index.FindRef(keys[place], value.view(), &scratch, &scratch_row));
  AppendRowKey(row_codec_->index(), ref, &row_key);
  if (row_key != row_keys_[place]) return Status();
  return CorruptionError("it has no row");
}

Status EntrySet::ReadRows() {
  CELLAR_TRY(FindRowKeys());
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table_));
  std::vector<uint8_t> found;
  CELLAR_TRY(fetcher_->Fetch(context_, *compiled, row_keys_, read_at_.get(), &rows_, &found,
                             WantedValues::Of(row_codec_->columns())));
  std::vector<uint32_t> places;
  places.reserve(keys.size());
  bool checked = entry_codec_->index().primary;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (found[i]) {
      places.push_back(static_cast<uint32_t>(i));
    } else if (!checked) {
      checked = true;
      if (Status status = CheckDangling(i); !status.ok()) return Damaged(status);
    }
  }
  fetched_ = true;
  Keep(places);
  return Status();
}

void EntrySet::AddStored(std::string_view key, const StoredRow& row) {
  keys.push_back(key);
  values.push_back(row.value);
  row_keys_.push_back(key);
  rows_.push_back(row);
  have_row_keys_ = fetched_ = true;
}

Status EntrySet::FetchPrimary() {
  values.resize(keys.size());
  return ReadRows();
}

Status EntrySet::FetchRows() {
  if (fetched_ || entry_codec_->covering()) return Status();
  return ReadRows();
}

size_t EntrySet::RowBytes() const {
  size_t bytes = 0;
  for (const StoredRow& row : rows_) {
    bytes += row.value.size();
    for (std::string_view part : row.parts) bytes += part.size();
  }
  return bytes;
}

Status EntrySet::KeepIn(std::span<const KeyItem> items) {
  const IndexCodec& index = entry_codec_->index();
  if (index.primary || keys.empty()) return Status();
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table_));
  CELLAR_TRY_ASSIGN(std::shared_ptr<const ScanCodec> whole,
                    compiled->Scan(row_codec_->index().index->id, compiled->living_ids(), true,
                                   ScanBytes::kBorrow));
  RowBatch rows;
  rows.Reset(whole->types());
  rows.Resize(keys.size());
  if (Status status = whole->DecodeStored(row_keys_, rows_, 0, &rows); !status.ok()) {
    return DamagedEntry(*table_, *row_codec_->index().index, status);
  }
  IndexedRows indexed;
  CELLAR_TRY(indexed.Compute(*compiled, rows));
  std::vector<uint32_t> places;
  std::string key;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!index.Holds(indexed.rows(), i)) continue;
    key.clear();
    index.AppendKey(indexed.rows(), i, rows.column(compiled->living_ids().size()).bytes()[i], &key);
    if (Contains(items, key)) places.push_back(static_cast<uint32_t>(i));
  }
  Keep(places);
  return Status();
}

Status EntrySet::Decode(size_t start, size_t count, size_t first_row, RowBatch* batch) const {
  if (fetched_) {
    Status status =
        row_codec_->DecodeStored(std::span(row_keys_).subspan(start, count),
                                 std::span(rows_).subspan(start, count), first_row, batch);
    return status.ok() ? status : DamagedEntry(*table_, *row_codec_->index().index, status);
  }
  Status status = entry_codec_->Decode(std::span(keys).subspan(start, count),
                                       std::span(values).subspan(start, count), first_row, batch);
  return status.ok() ? status : Damaged(status);
}

// ---- ScanReader ----

namespace {

// Decides on decoded batches which rows meet a scan's filters. The codec's columns are the wanted
// ones, then those that only filters read, then the row ref: the second kind is taken out again.
class BatchFilter {
 public:
  BatchFilter(const ScanSpec& spec, const ScanCodec& codec)
      : filters_(spec.filters), wanted_(spec.columns.size()) {
    extra_ = codec.columns().size() - wanted_;
    for (const ColumnFilter& filter : filters_) {
      const std::span<const ColumnId> columns = codec.columns();
      places_.push_back(std::find(columns.begin(), columns.end(), filter.column) - columns.begin());
    }
  }
  // The columns to decode.
  static std::vector<ColumnId> ColumnsOf(const ScanSpec& spec) {
    std::vector<ColumnId> columns = spec.columns;
    for (const ColumnFilter& filter : spec.filters) {
      if (std::find(columns.begin(), columns.end(), filter.column) == columns.end()) {
        columns.push_back(filter.column);
      }
    }
    return columns;
  }

  // Before the batch is filled: the taken out columns come back, with their memory.
  void Prepare(RowBatch* batch) {
    if (spare_.empty()) return;
    std::vector<ColumnVector>& columns = batch->columns();
    columns.insert(columns.begin() + static_cast<ptrdiff_t>(std::min(wanted_, columns.size())),
                   std::make_move_iterator(spare_.begin()), std::make_move_iterator(spare_.end()));
    spare_.clear();
  }
  void Apply(RowBatch* batch) {
    if (filters_.empty()) return;
    mask_.assign(batch->size(), 1);
    for (size_t i = 0; i < filters_.size(); ++i) {
      ApplyFilter(batch->column(places_[i]), filters_[i].filter, mask_.data());
    }
    kept_.clear();
    AppendMaskPlaces(mask_.data(), mask_.size(), 0, &kept_);
    if (extra_ != 0) {
      std::vector<ColumnVector>& columns = batch->columns();
      const auto first = columns.begin() + static_cast<ptrdiff_t>(wanted_);
      const auto last = first + static_cast<ptrdiff_t>(extra_);
      spare_.assign(std::make_move_iterator(first), std::make_move_iterator(last));
      columns.erase(first, last);
    }
    batch->Keep(kept_);
  }

 private:
  std::vector<ColumnFilter> filters_;
  std::vector<size_t> places_;
  size_t wanted_, extra_ = 0;
  std::vector<ColumnVector> spare_;
  std::vector<uint8_t> mask_;
  std::vector<uint32_t> kept_;
};

// The next rows of a set, from *at on, that meet the filter; `load` fills the set anew, and says
// false at the end.
template <typename Load>
Result<bool> NextOf(EntrySet* entries, size_t* at, BatchFilter* filter, const ScanCodec& codec,
                    RowBatch* batch, Load&& load) {
  while (true) {
    filter->Prepare(batch);
    batch->Reset(codec.types());
    while (*at == entries->size()) {
      CELLAR_TRY_ASSIGN(const bool more, load());
      if (!more) return false;
    }
    const size_t count = std::min(entries->size() - *at, kBatchRows);
    batch->Resize(count);
    CELLAR_TRY(entries->Decode(*at, count, 0, batch));
    *at += count;
    filter->Apply(batch);
    if (batch->size() != 0) return true;
  }
}

class ScanReader final : public Reader {
 public:
  ScanReader(AccessContext* context, const CompiledTable* table, ScanSpec spec,
             std::shared_ptr<const ScanCodec> entries, std::shared_ptr<const ScanCodec> rows,
             std::vector<KeyItem> items)
      : context_(context),
        table_(table),
        spec_(std::move(spec)),
        codec_(entries),
        filter_(spec_, *codec_),
        items_(std::move(items)),
        entries_(context, spec_.table.get(), spec_.view, std::move(entries), std::move(rows)) {
    keys_only_ = codec_->keys_only(spec_.with_row_ref || !codec_->covering());
  }

  Result<bool> Next(RowBatch* batch) override {
    return NextOf(&entries_, &at_, &filter_, *codec_, batch, [this] { return Load(); });
  }

 private:
  // Fills entries_ with the next ones, perhaps none. False at the end.
  Result<bool> Load() {
    CELLAR_TRY(context_->CheckCancel());
    entries_.Clear();
    at_ = 0;
    if (block_at_ == block_.size()) {
      if (cursor_ == nullptr) {
        if (item_ == items_.size()) return false;
        if (items_[item_].point) {
          CELLAR_TRY(LoadPoints());
          return true;
        }
        if (codec_->index().primary && table_->paged()) return LoadMerged();
        if (codec_->index().primary && table_->split()) return LoadSplit();
        CELLAR_TRY(OpenCursor());
      }
      CELLAR_TRY(NextBlock());
      if (block_.empty()) return true;
    }
    const bool fetches = !codec_->covering();
    size_t count = block_.size() - block_at_;
    if (fetches) count = std::min(count, fetch_rows_);
    for (size_t i = block_at_; i < block_at_ + count; ++i) {
      entries_.keys.push_back(block_.key(i));
      entries_.values.push_back(block_.value(i));
    }
    block_at_ += count;
    CELLAR_TRY(entries_.FetchRows());
    if (fetches && entries_.size() > 0) {
      const size_t row_bytes = std::max<size_t>(1, entries_.RowBytes() / entries_.size());
      fetch_rows_ = std::max<size_t>(1, kFetchBytes / row_bytes);
    }
    return true;
  }

  // Rows of pages and of the delta over them, as many as one load gives.
  Result<bool> LoadMerged() {
    if (merge_ == nullptr) {
      kv::ScanOptions options;
      options.reverse = spec_.reverse;
      options.view = spec_.view.get();
      merge_ = std::make_unique<PageMerge>(context_, table_, items_[item_].start, items_[item_].end,
                                           options, WantedValues::Of(codec_->columns()));
      run_.kind = MergeRun::Kind::kLoad;
    }
    merged_keys_.Clear();
    std::vector<StoredRow> rows;
    while (rows.size() < kBatchRows) {
      if (run_.kind == MergeRun::Kind::kLoad) CELLAR_TRY(merge_->Next(rows.empty(), &run_));
      if (run_.kind == MergeRun::Kind::kLoad) break;
      if (run_.kind == MergeRun::Kind::kEnd) {
        if (!rows.empty()) break;
        merge_.reset();
        ++item_;
        return true;
      }
      Status status = TakeRun(&rows);
      if (!status.ok()) return DamagedEntry(*spec_.table, spec_.table->primary(), status);
    }
    for (size_t i = 0; i < rows.size(); ++i) entries_.AddStored(merged_keys_[i], rows[i]);
    return true;
  }

  // Rows put together from their parts.
  Result<bool> LoadSplit() {
    if (split_ == nullptr) {
      SplitScan::Options options;
      options.reverse = spec_.reverse;
      options.limit_hint = spec_.limit_hint;
      options.view = spec_.view.get();
      split_ = std::make_unique<SplitScan>(context_, table_, codec_.get(), items_[item_].start,
                                           items_[item_].end, std::move(options));
    }
    if (split_at_ == split_rows_.size()) {
      split_at_ = 0;
      Result<bool> more = split_->Next(&split_keys_, &split_rows_);
      if (!more.ok()) return DamagedEntry(*spec_.table, spec_.table->primary(), more.status());
      if (!*more) {
        split_.reset();
        ++item_;
        return true;
      }
    }
    for (size_t i = split_at_; i < split_rows_.size(); ++i) {
      entries_.AddStored(split_keys_[i], split_rows_[i]);
    }
    split_at_ = split_rows_.size();
    return true;
  }

  // Takes the first row of the run, or all of them if they are packed.
  Status TakeRun(std::vector<StoredRow>* rows) {
    const std::string& prefix = codec_->index().prefix;
    if (run_.kind == MergeRun::Kind::kRows) {
      for (size_t i = 0; i < run_.keys.size(); ++i) {
        merged_keys_.buffer()->append(run_.keys[i]);
        merged_keys_.End();
        rows->push_back({.value = run_.values[i]});
      }
      run_.kind = MergeRun::Kind::kLoad;
      return Status();
    }
    StoredRow row;
    row.page = &run_.page->view;
    row.patch = run_.patch;
    row.position = spec_.reverse ? run_.first + run_.count - 1 : run_.first;
    if (run_.kind == MergeRun::Kind::kPage) row.patch = {};
    merged_keys_.buffer()->append(prefix);
    CELLAR_TRY(AppendPageRef(*table_, *row.page, row.position, merged_keys_.buffer()));
    merged_keys_.buffer()->push_back(kGroupZero);
    merged_keys_.End();
    rows->push_back(row);
    if (!spec_.reverse) ++run_.first;
    if (--run_.count == 0) run_.kind = MergeRun::Kind::kLoad;
    return Status();
  }

  Status OpenCursor() {
    kv::ScanOptions options;
    options.reverse = spec_.reverse;
    options.keys_only = keys_only_;
    options.view = spec_.view.get();
    options.block_bytes = kLargestBlock;
    options.first_block_bytes = kFirstBlock;
    if (spec_.limit_hint != 0 && spec_.limit_hint < kLargestBlock) {
      const size_t guess = keys_only_ ? kGuessedKeyBytes : kGuessedRowBytes;
      options.first_block_bytes =
          std::clamp<size_t>(spec_.limit_hint * guess, kSmallestFirstBlock, kLargestBlock);
    }
    const KeyItem& item = items_[item_];
    if (!item.other_shards.empty()) {
      std::vector<codec::KeyRange> ranges = item.other_shards;
      ranges.push_back({item.start, item.end});
      context_->stats.trips += item.other_shards.size();
      CELLAR_TRY_ASSIGN(cursor_, ShardCursor::Open(context_->transaction, ranges,
                                                   codec_->index().fields_start(), options));
      return Status();
    }
    CELLAR_TRY_ASSIGN(cursor_, context_->transaction->Scan(item.start, item.end, options));
    return Status();
  }

  Status NextBlock() {
    block_at_ = 0;
    ++context_->stats.trips;
    CELLAR_TRY_ASSIGN(bool more, cursor_->NextBlock(&block_));
    if (!more) {
      block_.Clear();
      cursor_.reset();
      ++item_;
      return Status();
    }
    context_->stats.rows_read += block_.size();
    context_->stats.bytes_read += block_.bytes();
    return Status();
  }

  // Looks up the points from item_ on, kBatchRows at most.
  Status LoadPoints() {
    size_t end = item_ + 1;
    while (end < items_.size() && items_[end].point && end - item_ < kBatchRows) ++end;
    point_keys_.clear();
    for (size_t i = item_; i < end; ++i) point_keys_.push_back(items_[i].start);
    item_ = end;
    const bool primary = codec_->index().primary;
    // The key of a row is known before it is read: locked first, it is read once.
    if (spec_.lock.has_value()) CELLAR_TRY(LockPoints());
    if (primary) {
      entries_.keys.assign(point_keys_.begin(), point_keys_.end());
      return entries_.FetchPrimary();
    }
    CELLAR_TRY(context_->MultiGet(point_keys_, spec_.view.get(), &pins_, &found_));
    for (size_t i = 0; i < point_keys_.size(); ++i) {
      if (!found_[i]) continue;
      entries_.keys.push_back(point_keys_[i]);
      entries_.values.push_back(pins_[i].view());
    }
    return entries_.FetchRows();
  }

  Status LockPoints() {
    kv::ReadViewPtr view;
    CELLAR_TRY_ASSIGN(const std::vector<bool> wanted,
                      LockPointKeys(context_, spec_, point_keys_, &view));
    entries_.ReadAt(std::move(view));
    KeepPlaces(PlacesOf(wanted), &point_keys_);
    return Status();
  }

  AccessContext* context_;
  const CompiledTable* table_;
  ScanSpec spec_;
  std::shared_ptr<const ScanCodec> codec_;
  BatchFilter filter_;
  std::vector<KeyItem> items_;
  std::unique_ptr<PageMerge> merge_;
  MergeRun run_;
  StringList merged_keys_;
  std::unique_ptr<SplitScan> split_;
  std::vector<std::string_view> split_keys_;
  std::vector<StoredRow> split_rows_;
  size_t split_at_ = 0;
  EntrySet entries_;
  size_t at_ = 0;  // of entries_
  bool keys_only_ = false;
  size_t fetch_rows_ = kFirstFetch;  // by entries of an index at once: rows may be long

  size_t item_ = 0;
  std::unique_ptr<kv::Cursor> cursor_;
  kv::Block block_;
  size_t block_at_ = 0;
  std::vector<std::string_view> point_keys_;
  std::vector<kv::PinnedValue> pins_;
  std::vector<uint8_t> found_;
};

// One row by its primary key: the commonest scan of all, so it allocates next to nothing.
class PointReader final : public Reader {
 public:
  PointReader(AccessContext* context, TablePtr table, kv::ReadViewPtr view,
              std::shared_ptr<const ScanCodec> codec, std::string key)
      : context_(context),
        table_(std::move(table)),
        view_(std::move(view)),
        codec_(std::move(codec)),
        key_(std::move(key)) {}

  Result<bool> Next(RowBatch* batch) override {
    batch->Reset(codec_->types());
    if (done_) return false;
    done_ = true;
    CELLAR_TRY(context_->CheckCancel());
    CELLAR_TRY_ASSIGN(bool found, context_->Get(key_, view_.get(), &value_));
    if (!found) return false;
    batch->Resize(1);
    const std::string_view key = key_, value = value_.view();
    Status status = codec_->Decode({&key, 1}, {&value, 1}, 0, batch);
    if (!status.ok()) return DamagedEntry(*table_, *codec_->index().index, status);
    return true;
  }

 private:
  AccessContext* context_;
  TablePtr table_;
  kv::ReadViewPtr view_;
  std::shared_ptr<const ScanCodec> codec_;
  std::string key_;
  kv::PinnedValue value_;
  bool done_ = false;
};

// Rows by their references, as far as they lie in the spans and meet the filters.
class RowsReader final : public Reader {
 public:
  RowsReader(AccessContext* context, ScanSpec spec, std::shared_ptr<const ScanCodec> entries,
             std::shared_ptr<const ScanCodec> rows)
      : context_(context),
        spec_(std::move(spec)),
        codec_(rows),
        filter_(spec_, *codec_),
        entries_(context, spec_.table.get(), spec_.view, std::move(entries), std::move(rows)) {}

  Status Load(std::span<const std::string> refs, std::span<const KeyItem> items) {
    CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*spec_.table));
    for (const std::string& ref : refs) {
      AppendRowKey(compiled->primary(), ref, keys_.buffer());
      keys_.End();
    }
    std::vector<std::string_view> keys;
    for (size_t i = 0; i < refs.size(); ++i) keys.push_back(keys_[i]);
    std::vector<StoredRow> rows;
    std::vector<uint8_t> found;
    CELLAR_TRY(fetcher_.Fetch(context_, *compiled, keys, spec_.view.get(), &rows, &found));
    for (size_t i = 0; i < keys.size(); ++i) {
      if (found[i]) entries_.AddStored(keys[i], rows[i]);
    }
    if (spec_.index != compiled->primary().index->id) return entries_.KeepIn(items);
    return Status();
  }
  Result<bool> Next(RowBatch* batch) override {
    return NextOf(&entries_, &at_, &filter_, *codec_, batch, [] { return Result<bool>(false); });
  }

 private:
  AccessContext* context_;
  ScanSpec spec_;
  std::shared_ptr<const ScanCodec> codec_;
  BatchFilter filter_;
  StringList keys_;
  RowFetcher fetcher_;
  EntrySet entries_;
  size_t at_ = 0;
};

std::string RowKeyOf(const IndexCodec& primary, std::span<const Datum> values) {
  std::string key;
  key.reserve(primary.prefix.size() + 12 * values.size() + 2);
  key.append(primary.prefix);
  if (primary.shards != 0) key.push_back('\0');
  codec::AppendKeyFields(values, primary.key_columns, &key);
  if (primary.shards != 0) primary.FillShard(primary.prefix.size(), &key);
  key.push_back(kGroupZero);
  return key;
}

}  // namespace

Result<std::unique_ptr<Reader>> OpenScan(AccessContext* context, ScanSpec spec) {
  CELLAR_TRY(context->FlushBulk());
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*spec.table));
  CELLAR_TRY_ASSIGN(
      std::shared_ptr<const ScanCodec> entries,
      compiled->Scan(spec.index, spec.columns, spec.with_row_ref, ScanBytes::kBorrow));
  const IndexCodec& index = entries->index();
  if (index.primary && !compiled->split() && spec.spans.size() == 1 && !spec.lock.has_value() &&
      spec.filters.empty() && IsPoint(index, spec.spans[0].equal)) {
    std::string key = RowKeyOf(index, spec.spans[0].equal);
    if (compiled->paged()) {
      return OpenPagePoint(context, compiled, std::move(spec.table), std::move(spec.view),
                           std::move(entries), std::move(key));
    }
    return std::unique_ptr<Reader>(std::make_unique<PointReader>(
        context, std::move(spec.table), std::move(spec.view), std::move(entries), std::move(key)));
  }
  if (spec.view == nullptr) spec.view = context->transaction->OpenView();
  CELLAR_TRY_ASSIGN(std::vector<KeyItem> items, KeyItemsOf(index, spec.spans));
  const bool points = index.primary && std::all_of(items.begin(), items.end(),
                                                   [](const KeyItem& item) { return item.point; });
  if (spec.lock.has_value() && !points) return InternalError("a scan that locks more than points");
  return OpenRangeScan(context, std::move(spec), std::move(items));
}

Result<std::unique_ptr<Reader>> OpenRangeScan(AccessContext* context, ScanSpec spec,
                                              std::vector<KeyItem> items) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*spec.table));
  const bool pages =
      compiled->paged() && spec.index == compiled->primary().index->id &&
      std::none_of(items.begin(), items.end(), [](const KeyItem& item) { return item.point; });
  std::vector<ColumnId> with_filters;
  std::span<const ColumnId> columns = spec.columns;
  if (!pages && !spec.filters.empty()) columns = with_filters = BatchFilter::ColumnsOf(spec);
  CELLAR_TRY_ASSIGN(std::shared_ptr<const ScanCodec> entries,
                    compiled->Scan(spec.index, columns, spec.with_row_ref, ScanBytes::kBorrow));
  if (pages) {
    return OpenPageScan(context, compiled, std::move(spec), std::move(entries), std::move(items));
  }
  const IndexCodec& index = entries->index();
  std::shared_ptr<const ScanCodec> rows = entries;
  if (!index.primary && !entries->covering()) {
    CELLAR_TRY_ASSIGN(rows, compiled->Scan(compiled->primary().index->id, columns,
                                           spec.with_row_ref, ScanBytes::kBorrow));
  }
  return std::unique_ptr<Reader>(std::make_unique<ScanReader>(
      context, compiled, std::move(spec), std::move(entries), std::move(rows), std::move(items)));
}

Result<std::unique_ptr<Reader>> OpenRowsScan(AccessContext* context, ScanSpec spec,
                                             std::span<const std::string> refs) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*spec.table));
  const std::vector<ColumnId> columns = BatchFilter::ColumnsOf(spec);
  CELLAR_TRY_ASSIGN(std::shared_ptr<const ScanCodec> rows,
                    compiled->Scan(compiled->primary().index->id, columns, spec.with_row_ref,
                                   ScanBytes::kBorrow));
  CELLAR_TRY_ASSIGN(std::shared_ptr<const ScanCodec> entries,
                    compiled->Scan(spec.index, columns, spec.with_row_ref, ScanBytes::kBorrow));
  CELLAR_TRY_ASSIGN(const std::vector<KeyItem> items, KeyItemsOf(entries->index(), spec.spans));
  auto reader =
      std::make_unique<RowsReader>(context, std::move(spec), std::move(entries), std::move(rows));
  CELLAR_TRY(reader->Load(refs, items));
  return std::unique_ptr<Reader>(std::move(reader));
}

}  // namespace cellar::table
