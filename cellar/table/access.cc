#include "cellar/table/access.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "cellar/base/sqlstate.h"
#include "cellar/table/bulk_pages.h"
#include "cellar/table/enum_check.h"
#include "cellar/table/errors.h"
#include "cellar/table/maintenance.h"
#include "cellar/table/pages.h"
#include "cellar/table/reader.h"
#include "cellar/table/usage.h"
#include "cellar/table/writer.h"

namespace cellar::table {

struct Access::Impl {
  AccessContext context;
  UsageLimits* limits = nullptr;
  std::set<std::pair<uint64_t, bool>> admitted;  // tables, and whether for writing
  // What was read of tables as only this transaction has them: their counters may be its own, too.
  std::map<uint64_t, std::pair<TableDescriptor, uint64_t>> own_reads;  // by storage

  Status Admit(const TableDescriptor& table, bool write) {
    if (!admitted.emplace(table.id.value, write).second) return Status();
    return write ? limits->AdmitWrite(table) : limits->AdmitRead(table);
  }
  // After a write of `rows` rows that added `bytes`.
  Status NoteWrite(const TableDescriptor& table, int64_t rows, bool grew) {
    if (limits == nullptr) return Status();
    limits->ChargeWrite(table, static_cast<uint64_t>(rows));
    return grew ? limits->CheckSize(table, context.transaction) : Status();
  }
};

Access::Access(kv::Transaction* transaction, const CancelToken* cancel, TableStore* store)
    : impl_(std::make_unique<Impl>()) {
  impl_->context.transaction = transaction;
  impl_->context.cancel = cancel;
  impl_->context.store = store;
}

Access::~Access() {
  for (const auto& [storage, reads] : impl_->own_reads) {
    impl_->context.store->NoteReads(reads.first, reads.second);
  }
}

void Access::set_level(Level level) { impl_->context.level = level; }
void Access::set_lock_timeouts(std::chrono::milliseconds most,
                               std::chrono::milliseconds deadlock_after) {
  impl_->context.lock_timeout = most;
  impl_->context.deadlock_after = deadlock_after;
}
void Access::set_limits(UsageLimits* limits) { impl_->limits = limits; }
void Access::set_format(const FormatSettings& settings) { impl_->context.format = settings; }
const AccessStats& Access::stats() const { return impl_->context.stats; }
kv::Transaction* Access::transaction() const { return impl_->context.transaction; }

Result<kv::ReadViewPtr> Access::OpenView() {
  CELLAR_TRY(impl_->context.FlushBulk());
  return impl_->context.transaction->OpenView();
}

Status Access::WroteSince(const TableDescriptor& table, std::span<const std::string_view> refs,
                          const kv::ReadView& view, std::vector<uint8_t>* wrote) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(table));
  wrote->assign(refs.size(), 0);
  std::string key;
  for (size_t i = 0; i < refs.size(); ++i) {
    key.clear();
    AppendRowKey(compiled->primary(), refs[i], &key);
    CELLAR_TRY_ASSIGN((*wrote)[i], impl_->context.transaction->WroteSince(key, view));
  }
  return Status();
}

Status Access::LockRows(const TableDescriptor& table, std::span<const std::string_view> refs,
                        const RowLockSpec& how, const kv::ReadView* view,
                        std::vector<RowLockOutcome>* outcomes, kv::ReadViewPtr* newest) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(table));
  StringList keys;
  for (const std::string_view ref : refs) {
    AppendRowKey(compiled->primary(), ref, keys.buffer());
    keys.End();
  }
  std::vector<std::string_view> views;
  for (size_t i = 0; i < refs.size(); ++i) views.push_back(keys[i]);
  kv::LockOptions options;
  options.in_order = true;
  options.only_tell = impl_->context.level != Level::kReadCommitted;
  options.view = view;
  CELLAR_TRY_ASSIGN(const kv::LockResult result,
                    LockRowKeys(&impl_->context, table, views, how, options));
  if (options.only_tell && !how.only_tell) {
    // These rows were read, so that no newer snapshot has what was read, whatever is known of it so
    // far: what is read of pages is told when the scan ends.
    std::vector<std::string_view> lost;
    for (size_t i = 0; i < refs.size(); ++i) {
      if (!result.changed[i]) continue;
      lost.push_back(views[i]);
      CELLAR_TRY(impl_->context.transaction->AddReadConflict(views[i]));
    }
    if (!lost.empty()) {
      options.only_tell = false;
      CELLAR_TRY(LockRowKeys(&impl_->context, table, lost, how, options).status());
      // The engine does not know of what was read of pages that were at hand.
      return ConcurrentUpdate();
    }
  }
  outcomes->assign(refs.size(), RowLockOutcome::kLocked);
  for (size_t i = 0; i < refs.size(); ++i) {
    if (result.changed[i]) (*outcomes)[i] = RowLockOutcome::kChanged;
    if (!result.acquired[i]) (*outcomes)[i] = RowLockOutcome::kSkipped;
  }
  if (result.snapshot_moved) *newest = impl_->context.transaction->OpenView(view);
  return Status();
}

Status Access::SeeNewest() {
  if (impl_->context.level != Level::kReadCommitted) return Status();
  return impl_->context.transaction->RefreshSnapshot();
}

Status Access::HoldKeys(const TableDescriptor& table, IndexId index, const RowBatch& keys) {
  return HoldReferencedKeys(&impl_->context, table, index, keys);
}

Status Access::NoteKeysGone(const TableDescriptor& table, IndexId index, const RowBatch& keys) {
  return NoteReferencedKeysGone(&impl_->context, table, index, keys);
}

Result<std::unique_ptr<Reader>> Access::ScanRows(ScanSpec spec, std::span<const std::string> refs) {
  TablePtr table = spec.table;
  std::vector<ColumnId> columns = spec.columns;
  CELLAR_TRY_ASSIGN(std::unique_ptr<Reader> reader,
                    OpenRowsScan(&impl_->context, std::move(spec), refs));
  return WithCheckedEnums(std::move(table), std::move(columns), std::move(reader));
}

Result<std::unique_ptr<Reader>> Access::Scan(ScanSpec spec) {
  if (impl_->limits != nullptr) CELLAR_TRY(impl_->Admit(*spec.table, false));
  TablePtr table = spec.table;
  std::vector<ColumnId> columns = spec.columns;
  CELLAR_TRY_ASSIGN(std::unique_ptr<Reader> reader, OpenScan(&impl_->context, std::move(spec)));
  return WithCheckedEnums(std::move(table), std::move(columns), std::move(reader));
}

// ---- Look-ups ----

namespace {

// Which rows of the caller's batch want which entries: pairs (entry, row of `keys`).
struct Match {
  uint32_t entry;
  uint32_t row;
};

class Looker {
 public:
  Looker(AccessContext* context, const ScanSpec& spec, const RowBatch& keys)
      : context_(context), spec_(spec), keys_(keys) {}

  Status Run(RowBatch* batch, std::vector<uint32_t>* key_row) {
    CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*spec_.table));
    CELLAR_TRY_ASSIGN(
        codec_, compiled->Scan(spec_.index, spec_.columns, spec_.with_row_ref, ScanBytes::kCopy));
    std::shared_ptr<const ScanCodec> rows = codec_;
    if (!codec_->index().primary) {
      CELLAR_TRY_ASSIGN(rows, compiled->Scan(compiled->primary().index->id, spec_.columns,
                                             spec_.with_row_ref, ScanBytes::kCopy));
    }
    EntrySet entries(context_, spec_.table.get(), spec_.view, codec_, rows);
    CELLAR_TRY(SortKeys());
    const bool whole =
        codec_->index().unique && keys_.num_columns() == codec_->index().key_columns.size();
    if (spec_.lock.has_value() && !(whole && codec_->index().primary)) {
      return InternalError("a look-up that locks more than points");
    }
    if (whole) {
      CELLAR_TRY(ReadPoints(&entries));
    } else {
      CELLAR_TRY(ReadRanges(&entries));
    }
    CELLAR_TRY(entries.FetchRows());
    CELLAR_TRY(Emit(entries, batch, key_row));
    return CheckEnumCodes(*spec_.table, spec_.columns, *batch);
  }

 private:
  // Groups equal keys: order_ holds the rows of `keys` without NULLs, by key.
  Status SortKeys() {
    const IndexCodec& index = codec_->index();
    if (keys_.num_columns() > index.key_columns.size()) {
      return InternalError("look-up by {} columns in an index of {}", keys_.num_columns(),
                           index.key_columns.size());
    }
    std::vector<uint32_t> positions(keys_.num_columns());
    std::iota(positions.begin(), positions.end(), 0);
    const std::span<const codec::KeyColumn> columns(index.key_columns.data(), positions.size());
    for (size_t row = 0; row < keys_.size(); ++row) {
      const bool null = std::any_of(positions.begin(), positions.end(),
                                    [&](uint32_t i) { return keys_.column(i).IsNull(row); });
      if (!null) {
        order_.push_back(static_cast<uint32_t>(row));
        // Of an index with shards, the fields alone: which shards, the prefixes tell.
        if (index.shards == 0) encoded_.buffer()->append(index.prefix);
        codec::AppendKeyFields(keys_, row, positions, columns, encoded_.buffer());
      }
      encoded_.End();
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [&](uint32_t a, uint32_t b) { return encoded_[a] < encoded_[b]; });
    return Status();
  }

  // Calls visit(first, end) for each group of equal keys in order_.
  template <typename Visit>
  Status ForEachKey(Visit&& visit) {
    for (size_t first = 0; first < order_.size();) {
      size_t end = first + 1;
      while (end < order_.size() && encoded_[order_[end]] == encoded_[order_[first]]) ++end;
      CELLAR_TRY(visit(first, end));
      first = end;
    }
    return Status();
  }

  // What entries of this row of `keys` begin with.
  std::vector<std::string> PrefixOf(uint32_t row) const {
    const IndexCodec& index = codec_->index();
    if (index.shards == 0) return {std::string(encoded_[row])};
    return PrefixesOf(index, encoded_[row], keys_.num_columns() == index.key_columns.size());
  }

  Status ReadPoints(EntrySet* entries) {
    const bool primary = codec_->index().primary;
    std::vector<std::pair<size_t, size_t>> groups;
    CELLAR_TRY(ForEachKey([&](size_t first, size_t end) {
      groups.emplace_back(first, end);
      KeyItem item;
      item.point = true;
      item.start = PrefixOf(order_[first])[0];
      if (primary) item.start.push_back(kGroupZero);
      codec::FinishKey(&item.start);
      items_.push_back(std::move(item));
      return Status();
    }));
    std::vector<std::string_view> points;
    for (const KeyItem& item : items_) points.push_back(item.start);
    if (spec_.lock.has_value()) CELLAR_TRY(LockPoints(&points, &groups, entries));
    if (primary) {
      for (size_t i = 0; i < points.size(); ++i) AddEntry(points[i], {}, groups[i], entries);
      return entries->FetchPrimary();
    }
    std::vector<uint8_t> found;
    CELLAR_TRY(context_->MultiGet(points, spec_.view.get(), &pins_, &found));
    for (size_t i = 0; i < points.size(); ++i) {
      if (found[i]) AddEntry(points[i], pins_[i].view(), groups[i], entries);
    }
    return Status();
  }

  Status LockPoints(std::vector<std::string_view>* points,
                    std::vector<std::pair<size_t, size_t>>* groups, EntrySet* entries) {
    kv::ReadViewPtr view;
    CELLAR_TRY_ASSIGN(const std::vector<bool> wanted,
                      LockPointKeys(context_, spec_, *points, &view));
    entries->ReadAt(std::move(view));
    size_t kept = 0;
    for (size_t i = 0; i < points->size(); ++i) {
      if (!wanted[i]) continue;
      (*points)[kept] = (*points)[i];
      (*groups)[kept++] = (*groups)[i];
    }
    points->resize(kept);
    groups->resize(kept);
    return Status();
  }

  // Rows by the first columns of their primary key, where they lie in pages or in parts: their keys
  // are found first, then they are fetched together.
  Status ReadScatteredRanges(EntrySet* entries) {
    std::vector<std::pair<size_t, size_t>> groups;
    CELLAR_TRY(ForEachKey([&](size_t first, size_t end) -> Status {
      const codec::KeyRange range = codec::PrefixRange(encoded_[order_[first]]);
      KeyItem item;
      item.start = range.start;
      item.end = range.end;
      items_.push_back(item);
      ScanSpec keys_of;
      keys_of.table = spec_.table;
      keys_of.index = spec_.index;
      keys_of.view = spec_.view;
      keys_of.with_row_ref = true;
      CELLAR_TRY_ASSIGN(std::unique_ptr<Reader> reader,
                        OpenRangeScan(context_, std::move(keys_of), {std::move(item)}));
      RowBatch refs;
      while (true) {
        CELLAR_TRY_ASSIGN(const bool more, reader->Next(&refs));
        if (!more) return Status();
        for (size_t i = 0; i < refs.size(); ++i) {
          AppendRowKey(codec_->index(), refs.column(0).bytes()[i], row_keys_.buffer());
          row_keys_.End();
          groups.emplace_back(first, end);
        }
      }
    }));
    for (size_t i = 0; i < row_keys_.size(); ++i) AddEntry(row_keys_[i], {}, groups[i], entries);
    return entries->FetchPrimary();
  }

  Status ReadRanges(EntrySet* entries) {
    CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*spec_.table));
    if (codec_->index().primary && (compiled->paged() || compiled->split())) {
      return ReadScatteredRanges(entries);
    }
    const bool needs_ref = spec_.with_row_ref || !codec_->covering();
    std::vector<std::pair<size_t, size_t>> groups;
    CELLAR_TRY(ForEachKey([&](size_t first, size_t end) -> Status {
      CELLAR_TRY(context_->CheckCancel());
      for (const std::string& prefix : PrefixOf(order_[first])) {
        codec::KeyRange range = codec::PrefixRange(prefix);
        KeyItem item;
        item.start = range.start;
        item.end = range.end;
        items_.push_back(std::move(item));
        kv::ScanOptions options;
        options.keys_only = codec_->keys_only(needs_ref);
        options.view = spec_.view.get();
        CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                          context_->transaction->Scan(range.start, range.end, options));
        kv::Block block;
        while (true) {
          ++context_->stats.trips;
          CELLAR_TRY_ASSIGN(bool more, cursor->NextBlock(&block));
          if (!more) break;
          context_->stats.rows_read += block.size();
          context_->stats.bytes_read += block.bytes();
          for (size_t i = 0; i < block.size(); ++i) {
            all_.Append(block.key(i), block.value(i));
            groups.emplace_back(first, end);
          }
        }
      }
      return Status();
    }));
    for (size_t i = 0; i < all_.size(); ++i) {
      AddEntry(all_.key(i), all_.value(i), groups[i], entries);
    }
    return Status();
  }

  void AddEntry(std::string_view key, std::string_view value, std::pair<size_t, size_t> group,
                EntrySet* entries) {
    entries->keys.push_back(key);
    entries->values.push_back(value);
    groups_.push_back(group);
  }

  Status Emit(const EntrySet& entries, RowBatch* batch, std::vector<uint32_t>* key_row) {
    key_row->clear();
    batch->Reset(codec_->types());
    std::vector<uint32_t> entry_of;
    for (size_t i = 0; i < entries.size(); ++i) {
      const size_t place = entries.kept().empty() ? i : entries.kept()[i];
      for (size_t k = groups_[place].first; k < groups_[place].second; ++k) {
        entry_of.push_back(static_cast<uint32_t>(i));
        key_row->push_back(order_[k]);
      }
    }
    batch->Resize(entry_of.size());
    // Runs of entries that one key each wants are decoded together.
    for (size_t i = 0; i < entry_of.size();) {
      size_t end = i + 1;
      while (end < entry_of.size() && entry_of[end] == entry_of[end - 1] + 1) ++end;
      CELLAR_TRY(entries.Decode(entry_of[i], end - i, i, batch));
      i = end;
    }
    return Status();
  }

  AccessContext* context_;
  const ScanSpec& spec_;
  const RowBatch& keys_;
  std::shared_ptr<const ScanCodec> codec_;
  StringList encoded_, row_keys_;
  std::vector<uint32_t> order_;
  std::vector<KeyItem> items_;
  std::vector<kv::PinnedValue> pins_;
  kv::Block all_;
  std::vector<std::pair<size_t, size_t>> groups_;  // in order_, of each entry
};

}  // namespace

Status Access::Lookup(const ScanSpec& spec, const RowBatch& keys, RowBatch* batch,
                      std::vector<uint32_t>* key_row) {
  CELLAR_TRY(impl_->context.CheckCancel());
  CELLAR_TRY(impl_->context.FlushBulk());
  return Looker(&impl_->context, spec, keys).Run(batch, key_row);
}

Status Access::Fetch(const TablePtr& table, std::span<const std::string_view> refs,
                     std::span<const ColumnId> columns, RowBatch* batch,
                     std::vector<uint8_t>* found) {
  AccessContext* context = &impl_->context;
  CELLAR_TRY(context->CheckCancel());
  CELLAR_TRY(context->FlushBulk());
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  CELLAR_TRY_ASSIGN(
      std::shared_ptr<const ScanCodec> codec,
      compiled->Scan(compiled->primary().index->id, columns, false, ScanBytes::kCopy));
  StringList row_keys;
  for (std::string_view ref : refs) {
    AppendRowKey(compiled->primary(), ref, row_keys.buffer());
    row_keys.End();
  }
  std::vector<std::string_view> keys;
  for (size_t i = 0; i < refs.size(); ++i) keys.push_back(row_keys[i]);
  std::vector<StoredRow> rows;
  RowFetcher fetcher;
  CELLAR_TRY(
      fetcher.Fetch(context, *compiled, keys, nullptr, &rows, found, WantedValues::Of(columns)));
  size_t present = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!(*found)[i]) continue;
    keys[present] = keys[i];
    rows[present++] = rows[i];
  }
  keys.resize(present);
  rows.resize(present);
  batch->Reset(codec->types());
  batch->Resize(present);
  Status status = codec->DecodeStored(keys, rows, 0, batch);
  return status.ok() ? status : DamagedEntry(*table, table->primary(), status);
}

// ---- Writes ----

Status Access::Insert(const TablePtr& table, RowBatch* rows, const ConflictPolicy& policy,
                      InsertOutcome* outcome) {
  if (impl_->limits != nullptr) CELLAR_TRY(impl_->Admit(*table, true));
  kv::Transaction* transaction = impl_->context.transaction;
  InsertOutcome own;
  const bool all = policy.kind == ConflictPolicy::Kind::kError;
  if (outcome == nullptr && !all) outcome = &own;
  CELLAR_TRY(InsertRows(&impl_->context, table, rows, policy, outcome));
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  const uint8_t* picked = all ? nullptr : outcome->inserted.data();
  const auto count = all ? static_cast<int64_t>(rows->size())
                         : std::count(picked, picked + rows->size(), uint8_t{1});
  if (count == 0) return Status();
  CELLAR_TRY(CountInserted(transaction, *compiled, count, ValueBytes(*rows, picked)));
  return impl_->NoteWrite(*table, count, true);
}

Status Access::Update(const TablePtr& table, std::span<const std::string_view> refs,
                      const RowBatch& old_rows, const RowBatch& new_rows,
                      std::vector<uint8_t>* set_aside) {
  if (impl_->limits != nullptr) CELLAR_TRY(impl_->Admit(*table, true));
  CELLAR_TRY(UpdateRows(&impl_->context, table, refs, old_rows, new_rows, set_aside));
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  const auto count = static_cast<int64_t>(refs.size());
  const int64_t grown = ValueBytes(new_rows, nullptr) - ValueBytes(old_rows, nullptr);
  CELLAR_TRY(CountUpdated(impl_->context.transaction, *compiled, count, grown));
  return impl_->NoteWrite(*table, count, grown > 0);
}

Status Access::PutMoved(const TablePtr& table, RowBatch* rows, std::vector<uint8_t>* put) {
  ConflictPolicy policy;
  if (put == nullptr) return InsertRows(&impl_->context, table, rows, policy, nullptr);
  policy.kind = ConflictPolicy::Kind::kSkip;
  InsertOutcome outcome;
  CELLAR_TRY(InsertRows(&impl_->context, table, rows, policy, &outcome));
  *put = std::move(outcome.inserted);
  return Status();
}

Status Access::Delete(const TablePtr& table, std::span<const std::string_view> refs,
                      const RowBatch& old_rows) {
  if (impl_->limits != nullptr) CELLAR_TRY(impl_->Admit(*table, true));
  CELLAR_TRY(DeleteRows(&impl_->context, table, refs, old_rows));
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  const auto count = static_cast<int64_t>(refs.size());
  CELLAR_TRY(
      CountDeleted(impl_->context.transaction, *compiled, count, ValueBytes(old_rows, nullptr)));
  return impl_->NoteWrite(*table, count, false);
}

Status Access::BeginBulk(const TablePtr& table) {
  impl_->context.bulk = table->storage_id();
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  if (compiled->paged()) {
    impl_->context.bulk_pages = std::make_unique<BulkPages>(&impl_->context, table, compiled);
  }
  return Status();
}

Status Access::EndBulk(bool keep) {
  impl_->context.bulk.reset();
  const std::unique_ptr<BulkPages> pages = std::move(impl_->context.bulk_pages);
  return keep && pages != nullptr ? pages->Flush() : Status();
}

// ---- Maintenance ----

Status Access::BuildIndex(const TablePtr& table, IndexId index) {
  return BuildIndexOf(&impl_->context, table, index);
}

Status Access::ClearIndex(const TableDescriptor& table, IndexId index) {
  return ClearIndexOf(&impl_->context, table, index);
}

void Access::NoteReads(const TableDescriptor& table, uint64_t rows) {
  if (rows != 0 && impl_->context.store != nullptr) {
    if (table.commit_version == catalog::kUncommitted) {
      impl_->own_reads.try_emplace(table.storage_id().value, table, 0).first->second.second += rows;
    } else {
      impl_->context.store->NoteReads(table, rows);
    }
  }
  if (impl_->limits != nullptr) impl_->limits->ChargeRead(table, rows);
}

Status Access::ClearTable(const TableDescriptor& table) {
  // The rows that go are counted, so none may come meanwhile.
  kv::Transaction* transaction = impl_->context.transaction;
  CELLAR_TRY_ASSIGN(const std::optional<TableUsage> usage, UsageOf(table, transaction));
  if (usage.has_value()) {
    CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(table));
    CELLAR_TRY(CountDeleted(transaction, *compiled, usage->rows, usage->bytes));
    const codec::KeyRange rows = codec::PrefixRange(compiled->primary().prefix);
    CELLAR_TRY(transaction->AddReadConflict(rows.start, rows.end));
  }
  impl_->context.GuardPages(table);
  const codec::KeyRange range = codec::PrefixRange(codec::TablePrefix(table.storage_id()));
  return impl_->context.transaction->DeleteRange(range.start, range.end);
}

Status Access::Rewrite(const TablePtr& from, const TablePtr& to,
                       const std::function<Status(const RowBatch& from, RowBatch* to)>& convert) {
  return RewriteTable(&impl_->context, from, to, convert);
}

Result<uint64_t> Access::EstimateRows(const TableDescriptor& table) {
  if (impl_->context.store != nullptr) return impl_->context.store->EstimateRows(table);
  return CountFewRows(&impl_->context, table);
}

Result<std::vector<std::string>> DescribeSpans(const ScanSpec& spec) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*spec.table));
  const IndexCodec* index = compiled->FindIndex(spec.index);
  if (index == nullptr) {
    return InternalError("table \"{}\" has no index {}", spec.table->name, spec.index.value);
  }
  CELLAR_TRY_ASSIGN(std::vector<KeyItem> items, KeyItemsOf(*index, spec.spans));
  std::vector<std::string> out;
  for (const KeyItem& item : items) out.push_back(PrintItem(item));
  return out;
}

Status DuplicateKeyError(const catalog::CatalogSnapshot& catalog, std::string_view key) {
  const Status unknown = SqlError(Code::kConstraint, sqlstate::kUniqueViolation,
                                  "duplicate key value violates unique constraint");
  std::string_view in = key;
  Result<uint64_t> table_id = codec::TakeKeyUint(&in);
  if (!table_id.ok()) return unknown;
  Result<uint64_t> index_id = codec::TakeKeyUint(&in);
  if (!index_id.ok()) return unknown;
  TablePtr table = catalog.GetTableByStorage(codec::TableId{table_id.value()});
  if (table == nullptr) return unknown;
  Result<const CompiledTable*> compiled = CompiledTable::Of(*table);
  if (!compiled.ok()) return unknown;
  const IndexCodec* index =
      compiled.value()->FindIndex(IndexId{static_cast<uint32_t>(index_id.value())});
  if (index == nullptr) return unknown;
  return DuplicateKey(*compiled.value(), *index, key, FormatSettings());
}

}  // namespace cellar::table
