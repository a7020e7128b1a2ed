// How scans and look-ups fetch, lock and decode rows. Private to the layer.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/table/access.h"
#include "cellar/table/compiled.h"
#include "cellar/table/key_ranges.h"
#include "cellar/table/page_directory.h"

namespace cellar::table {

class BulkPages;

// What the parts of an Access share. One thread at a time.
struct AccessContext {
  kv::Transaction* transaction = nullptr;
  const CancelToken* cancel = nullptr;
  TableStore* store = nullptr;
  Access::Level level = Access::Level::kSerializable;
  std::chrono::milliseconds lock_timeout{0}, deadlock_after{0};
  // How this transaction waits for locks, and what it does about what has changed meanwhile.
  void SetWaits(kv::LockOptions* options) const {
    options->timeout = lock_timeout;
    options->deadlock_after = deadlock_after;
    options->cancel = cancel;
    options->move_over_reads = level == Access::Level::kReadCommitted;
  }
  kv::ReadMode mode = kv::ReadMode::kTracked;  // of Get and MultiGet
  uint64_t key_locks = 0;                      // of unique keys that came or went
  FormatSettings format;
  std::optional<codec::TableId> bulk;  // between BeginBulk and EndBulk
  AccessStats stats;

  Status CheckCancel() const { return cancel == nullptr ? Status() : cancel->Check(); }
  // Every read names its view; null is the transaction as it is now.
  Result<bool> Get(std::string_view key, const kv::ReadView* view, kv::PinnedValue* value) {
    return Get(key, kv::ReadOptions(mode, view), value);
  }
  // Of what changes no meaning, such as pages.
  Result<bool> GetUntracked(std::string_view key, const kv::ReadView* view,
                            kv::PinnedValue* value) {
    return Get(key, kv::ReadOptions(kv::ReadMode::kSnapshot, view), value);
  }
  // `found` gets one entry a key. No keys: no trip.
  Status MultiGet(std::span<const std::string_view> keys, const kv::ReadView* view,
                  std::vector<kv::PinnedValue>* values, std::vector<uint8_t>* found) {
    return MultiGet(keys, kv::ReadOptions(mode, view), values, found);
  }
  Status MultiGetUntracked(std::span<const std::string_view> keys, const kv::ReadView* view,
                           std::vector<kv::PinnedValue>* values, std::vector<uint8_t>* found) {
    return MultiGet(keys, kv::ReadOptions(kv::ReadMode::kSnapshot, view), values, found);
  }
  // Where the table's pages are; without a store, as far as this context has seen.
  PageDirectory& DirectoryOf(const CompiledTable& table);
  // Rows of the table that this transaction has written to the delta: the directory's count has
  // them when the context ends.
  void CountChanges(const CompiledTable& table, size_t rows);
  // Takes the right to write the table's pages, until the context ends. False: somebody else has
  // it, or has had it since the snapshot of this transaction.
  bool LeasePages(const CompiledTable& table);
  // Call before this transaction deletes pages of the table without a lease; until the context
  // ends.
  void GuardPages(const TableDescriptor& table);
  // Goes up whenever this transaction is about to write pages: what is kept at hand is no longer
  // what it sees.
  uint32_t page_writes = 0;
  // Pages that are read are kept at hand for others.
  bool keep_pages = true;
  // Of the bulk load that is going on: what it has taken must show in reads.
  std::unique_ptr<BulkPages> bulk_pages;
  Status FlushBulk();

  AccessContext();
  ~AccessContext();

 private:
  Result<bool> Get(std::string_view key, const kv::ReadOptions& options, kv::PinnedValue* value);
  Status MultiGet(std::span<const std::string_view> keys, const kv::ReadOptions& options,
                  std::vector<kv::PinnedValue>* values, std::vector<uint8_t>* found);

  struct KnownDirectory {
    codec::TableId table;
    IndexId primary;
    std::shared_ptr<PageDirectory> directory;
    uint64_t changes = 0;  // of the transaction
  };
  std::vector<KnownDirectory> directories_;
  struct HeldLease {
    const PageDirectory* directory;
    PageLease lease;
  };
  std::vector<HeldLease> leases_;
  std::vector<PageBarrier> barriers_;
};

// Which values of rows somebody wants to read: long ones are fetched only if they are wanted.
struct WantedValues {
  std::vector<ColumnId> columns;
  bool all = true;
  static WantedValues Of(std::span<const ColumnId> columns) {
    return {{columns.begin(), columns.end()}, false};
  }
  bool Has(ColumnId column) const;
};

// Locks rows by their keys. Errors: as Access::LockRows.
Result<kv::LockResult> LockRowKeys(AccessContext* context, const TableDescriptor& table,
                                   std::span<const std::string_view> keys, const RowLockSpec& how,
                                   kv::LockOptions options);
// Locks keys as the scan asks; which ones are to be read. *view is what they are to be read at: the
// scan's view, unless one of them was written since. It then has the newest snapshot, with the own
// writes of the scan's view. A row that was not there yet at the scan's view is left out.
Result<std::vector<bool>> LockPointKeys(AccessContext* context, const ScanSpec& spec,
                                        std::span<const std::string_view> keys,
                                        kv::ReadViewPtr* view);

// See Access::HoldKeys and NoteKeysGone (reference_marks.cc).
Status HoldReferencedKeys(AccessContext* context, const TableDescriptor& table, IndexId index,
                          const RowBatch& keys);
Status NoteReferencedKeysGone(AccessContext* context, const TableDescriptor& table, IndexId index,
                              const RowBatch& keys);

class RowFetcher;

// Entries of an index that were read together, on their way to becoming rows: locked, fetched and
// decoded. The keys and values are borrowed from whoever fills them in.
class EntrySet {
 public:
  // `rows` decodes rows of the primary index into the wanted columns; `view` is what they are read
  // at.
  EntrySet(AccessContext* context, const TableDescriptor* table, kv::ReadViewPtr view,
           std::shared_ptr<const ScanCodec> entries, std::shared_ptr<const ScanCodec> rows);
  ~EntrySet();

  std::vector<std::string_view> keys, values;

  // Forgets all entries. Rows are read at the view again.
  void Clear();
  // Until then: rows are read at this view, see LockPointKeys.
  void ReadAt(kv::ReadViewPtr view) { read_at_ = std::move(view); }
  // The set was filled by AddStored: leaves out rows whose entry of the index lies in none of
  // `items`, or that it does not hold.
  Status KeepIn(std::span<const KeyItem> items);
  // Makes sure that Decode finds all columns: fetches rows unless entries hold them. Entries whose
  // rows are gone are left out. kCorruption (XX001) for an entry that never had one.
  Status FetchRows();
  // The keys are those of rows (of the primary index): fetches them wherever they lie. Keys without
  // a row are left out.
  Status FetchPrimary();
  // Adds a row of the primary index that has been read already; `key` is its row key.
  void AddStored(std::string_view key, const StoredRow& row);
  size_t size() const { return keys.size(); }
  // What the rows that FetchRows read take, those in pages aside.
  size_t RowBytes() const;
  // For each entry that is left, its place in the set as it was filled in; empty: all are left.
  std::span<const uint32_t> kept() const { return kept_; }
  // Decodes entries [start, start + count) into the rows first_row.. of `batch`.
  Status Decode(size_t start, size_t count, size_t first_row, RowBatch* batch) const;

 private:
  Status FindRowKeys();
  Status ReadRows();
  void Keep(std::span<const uint32_t> places);
  Status CheckDangling(size_t place) const;
  Status Damaged(const Status& cause) const;

  AccessContext* context_;
  const TableDescriptor* table_;
  const kv::ReadViewPtr view_;
  kv::ReadViewPtr read_at_;
  std::shared_ptr<const ScanCodec> entry_codec_;
  std::shared_ptr<const ScanCodec> row_codec_;
  std::vector<uint32_t> kept_;
  // Once rows have been read: parallel to keys.
  bool fetched_ = false;
  bool have_row_keys_ = false;
  std::string row_key_bytes_;
  std::vector<std::string_view> row_keys_;
  std::unique_ptr<RowFetcher> fetcher_;
  std::vector<StoredRow> rows_;
};

Result<std::unique_ptr<Reader>> OpenScan(AccessContext* context, ScanSpec spec);
// See Access::ScanRows.
Result<std::unique_ptr<Reader>> OpenRowsScan(AccessContext* context, ScanSpec spec,
                                             std::span<const std::string> refs);
// The same of ranges of keys; `spec.spans` is ignored.
Result<std::unique_ptr<Reader>> OpenRangeScan(AccessContext* context, ScanSpec spec,
                                              std::vector<KeyItem> items);

}  // namespace cellar::table
