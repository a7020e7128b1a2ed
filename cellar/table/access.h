// Rows of tables in one transaction: readers by index and span, writers that keep every index
// right.
//
// Nothing above this layer knows keys, values or layouts; nothing in it knows SQL. Calls are per
// batch.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cellar/base/cancel.h"
#include "cellar/base/status.h"
#include "cellar/catalog/catalog.h"
#include "cellar/kv/engine.h"
#include "cellar/types/batch.h"
#include "cellar/types/filter.h"
#include "cellar/types/text_io.h"

namespace cellar::table {

using catalog::IndexDescriptor;
using catalog::TableDescriptor;
using catalog::TablePtr;
using codec::ColumnId;
using codec::IndexId;
using kv::ReadView;
using kv::ReadViewPtr;

// One end of a range on the key column that follows a span's equal columns.
struct Bound {
  enum class Kind : uint8_t { kUnbounded, kInclusive, kExclusive };
  Kind kind = Kind::kUnbounded;
  Datum value;  // not NULL
};

// A contiguous part of an index: rows whose first key columns equal `equal`, and whose next key
// column lies between the bounds. In terms of values, whatever the columns' directions. A NULL in
// `equal` selects NULL.
struct Span {
  std::vector<Datum> equal;
  Bound lower, upper;
  // With no bound set: include NULLs of the next column (default), only NULLs, or none.
  enum class Nulls : uint8_t { kInclude, kExclude, kOnly };
  Nulls nulls = Nulls::kInclude;  // set bounds exclude NULLs in any case
};

// How rows are locked.
struct RowLockSpec {
  kv::LockMode mode = kv::kForUpdate;
  kv::LockWait wait = kv::LockWait::kBlock;
  bool only_tell = false;  // above READ COMMITTED a row that has changed is told of, and no error
};
// What became of a row that was to be locked.
enum class RowLockOutcome : uint8_t {
  kLocked,
  kChanged,  // locked, but since the view it was read at somebody has changed or deleted it
  kSkipped,  // held by somebody else, and not waited for
};

// A condition that rows must meet. `value` is of the column's type (Type of the descriptor), not
// NULL, and its bytes outlive the scan.
struct ColumnFilter {
  ColumnId column;
  ValueFilter filter;
};

struct ScanSpec {
  TablePtr table;
  IndexId index;  // a public index of the table
  // What is read, and all that is read for it: the rows of entries, pages, long values. Null: the
  // transaction as it is when the scan is opened.
  kv::ReadViewPtr view;
  std::vector<Span> spans;        // disjoint, in index order (reverse order when `reverse`); empty:
                                  // nothing. Use {Span{}} for the whole index.
  std::vector<ColumnId> columns;  // wanted, in the order of the result batch's columns
  // Only rows that meet all of these are returned. Where columns lie side by side, those of the
  // filters are read first, the others only for rows that are left, and parts of the table whose
  // greatest and least values exclude a match are passed over.
  std::vector<ColumnFilter> filters;
  bool reverse = false;
  uint64_t limit_hint = 0;  // rows the caller is likely to want; 0: all
  // The rows are locked before they are read; those that were changed since the view are read as
  // they are now. Of whole keys of the primary index alone; other rows are locked by LockRows, once
  // it is known which ones are wanted.
  std::optional<RowLockSpec> lock;
  // Adds, after `columns`, one hidden kBytes column holding the row's primary key bytes (RowRef):
  // pass it to Writer::Update and Delete.
  bool with_row_ref = false;
};

struct AccessStats {
  uint64_t trips = 0;      // engine reads
  uint64_t rows_read = 0;  // index entries and rows decoded
  uint64_t bytes_read = 0;
};

// A running scan. One thread at a time. Batches come in index order, at most kBatchRows rows;
// values live until the next call.
class Reader {
 public:
  virtual ~Reader() = default;
  // False at the end, and then *batch is empty.
  virtual Result<bool> Next(RowBatch* batch) = 0;
};

// What a writer does with a row whose unique key is there already.
struct ConflictPolicy {
  enum class Kind : uint8_t { kError, kSkip, kReport };
  Kind kind = Kind::kError;
  // Which indexes' conflicts are skipped or reported; others are errors. Empty: any unique index.
  std::vector<IndexId> indexes;
};

// Outcome of an insert under kSkip or kReport, one entry per input row.
struct InsertOutcome {
  std::vector<uint8_t> inserted;             // 1: inserted, 0: conflicted
  std::vector<std::string> conflicting_ref;  // kReport: RowRef of the row in the way ("" when it is
                                             // an earlier row of this very batch)
};

class PageDirectory;

// What all Access objects of one open store share: blocks of row ids, estimates, where pages begin.
// Thread-safe; the engine outlives it.
class TableStore {
 public:
  explicit TableStore(kv::Engine* engine);
  ~TableStore();

  // `count` consecutive row ids, the first returned; greater than all handed out before, never
  // handed out twice, across restarts too. Cost: one engine transaction per block of kRowIdBlock
  // ids.
  Result<int64_t> TakeRowIds(codec::TableId table, uint64_t count);
  // Deletes the system records of a table whose rows are gone.
  static Status DeleteRecords(const TableDescriptor& table, kv::Transaction* transaction);
  // Nobody asks for this storage any more.
  void Forget(codec::TableId storage);
  // See Access::EstimateRows.
  Result<uint64_t> EstimateRows(const TableDescriptor& table);

  // `rows` rows of the table have been read (TableUsage::read). Changes of the table, even to
  // another name or into the bin, lose none.
  void NoteReads(const TableDescriptor& table, uint64_t rows);
  // Writes down what was read since the last call, in one transaction. On errors it is kept for the
  // next call.
  Status FlushReads();

  kv::Engine* engine() const;
  // Of EstimateRows, those that lie in pages.
  Result<uint64_t> EstimatePagedRows(const TableDescriptor& table);
  // For this layer: where the pages of a table are.
  std::shared_ptr<PageDirectory> DirectoryOf(codec::TableId table, IndexId primary);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Says what may be read and written, and is told what was. Thread-safe.
class UsageLimits {
 public:
  virtual ~UsageLimits() = default;
  // Once a transaction and table, before the first row.
  virtual Status AdmitRead(const TableDescriptor& table) = 0;
  virtual Status AdmitWrite(const TableDescriptor& table) = 0;
  virtual void ChargeRead(const TableDescriptor& table, uint64_t rows) = 0;
  virtual void ChargeWrite(const TableDescriptor& table, uint64_t rows) = 0;
  // After rows were added or became larger; they are counted already (usage.h).
  virtual Status CheckSize(const TableDescriptor& table, kv::Transaction* transaction) = 0;
};

// All access to tables inside one transaction; one thread at a time. Owned by the session, handed
// to exec.
class Access {
 public:
  // All outlive the Access. Without a `store`, row ids come from the transaction itself, so that
  // concurrent inserts into a table without a primary key conflict, estimates cost a short scan,
  // and nobody counts what is read.
  Access(kv::Transaction* transaction, const CancelToken* cancel, TableStore* store = nullptr);
  ~Access();

  // What is done about a row that has changed since it was read and is to be locked. Under READ
  // COMMITTED it is read again; else that is an error, 40001. kSerializable, the default, is for
  // transactions that track what they read.
  enum class Level : uint8_t { kReadCommitted, kRepeatableRead, kSerializable };
  void set_level(Level level);
  // Of waits for locks: how long they last at most (0: for ever), and after which time it is looked
  // whether they would never end.
  void set_lock_timeouts(std::chrono::milliseconds most, std::chrono::milliseconds deadlock_after);
  // How values print in the details of errors.
  void set_format(const FormatSettings& settings);
  // Null: no limits. Outlives the Access.
  void set_limits(UsageLimits* limits);

  // A view of the transaction as it is now; what a bulk load has taken shows in it.
  Result<kv::ReadViewPtr> OpenView();
  // wrote[i]: has the transaction inserted, updated or deleted row i since the view was opened?
  // Cost: no trip to the engine.
  Status WroteSince(const TableDescriptor& table, std::span<const std::string_view> refs,
                    const kv::ReadView& view, std::vector<uint8_t>* wrote);

  // Locks rows, by RowRef, one after the other as they are given. `view`: at which they were read.
  // If one has changed since, *newest is a view that has its newest version; else it stays as it
  // is. Errors: kConflict 40001, unless READ COMMITTED, when one has changed; 40P01; 55P03 with
  // kNoWait or after the timeout. Cost: no trip.
  Status LockRows(const TableDescriptor& table, std::span<const std::string_view> refs,
                  const RowLockSpec& how, const kv::ReadView* view,
                  std::vector<RowLockOutcome>* outcomes, kv::ReadViewPtr* newest);
  // Those of the rows behind `refs` that Scan would return, in no order; the spec's limit and
  // direction mean nothing. Cost: one MultiGet.
  Result<std::unique_ptr<Reader>> ScanRows(ScanSpec spec, std::span<const std::string> refs);

  // From here on reads without a view see everything that is committed, under READ COMMITTED.
  Status SeeNewest();
  // A reference to rows holds as long as their keys do, whatever else of the rows changes: what
  // keeps it true is not the row, but two marks of its key that no row has. `keys` holds values of
  // all columns of a unique index, in its order, without NULLs.
  //
  // The keys are there, and this transaction refers to them: its commit fails if one of them goes
  // (NoteKeysGone) after the snapshot; and that of whoever has looked for references meanwhile.
  Status HoldKeys(const TableDescriptor& table, IndexId index, const RowBatch& keys);
  // The keys have gone, deleted or changed, and this transaction has looked, or is about to look,
  // who refers to them. The commit fails if somebody comes to do so (HoldKeys).
  Status NoteKeysGone(const TableDescriptor& table, IndexId index, const RowBatch& keys);

  // Opens a scan. Point spans on a unique index whose columns are all given cost one Get or
  // MultiGet; spans cost a trip per block; an index that does not hold all wanted columns costs one
  // MultiGet per block.
  Result<std::unique_ptr<Reader>> Scan(ScanSpec spec);

  // Many points at once: row i of `keys` holds values of the first keys.num_columns() key columns
  // of the index; the result holds matching rows in any order, and `*key_row` says for each which
  // row of `keys` it matched. A NULL matches nothing. `spec.spans` is ignored. The batch holds all
  // matches, however many, and owns its bytes. For joins by index. Cost: one MultiGet when the keys
  // are whole and the index unique, else a range read per distinct key, then at most one MultiGet
  // for the rows.
  Status Lookup(const ScanSpec& spec, const RowBatch& keys, RowBatch* batch,
                std::vector<uint32_t>* key_row);

  // Fetches rows by RowRef as they are now, in that order; absent ones are left out and flagged in
  // *found. The batch owns its bytes. Cost: one MultiGet.
  Status Fetch(const TablePtr& table, std::span<const std::string_view> refs,
               std::span<const ColumnId> columns, RowBatch* batch, std::vector<uint8_t>* found);

  // `rows` holds all living columns of the table in ordinal order (hidden row id included; a NULL
  // there is filled in). Errors: 23505 naming constraint and key ("Key (a)=(1) already exists."),
  // 23502 for NULL in a NOT NULL column ("Failing row contains (...)"). Cost: one MultiGet probe
  // for all unique keys.
  Status Insert(const TablePtr& table, RowBatch* rows, const ConflictPolicy& policy,
                InsertOutcome* outcome);
  // Row i: `refs` its RowRef, `old_rows` and `new_rows` all living columns. Unique checks see the
  // state after the whole batch. With `set_aside`, a row whose new unique key another row still has
  // is no error: (*set_aside)[i] is 1, the row is gone, and the caller hands its new version to
  // PutMoved once all rows have left their old keys. So unique keys hold at the end of a statement
  // of many batches.
  Status Update(const TablePtr& table, std::span<const std::string_view> refs,
                const RowBatch& old_rows, const RowBatch& new_rows,
                std::vector<uint8_t>* set_aside = nullptr);
  // Writes rows that Update has set aside, which have been counted. With `put`, those whose keys
  // are free by now: (*put)[i] is 1; the others are to be handed over again. Errors: 23505 without
  // it. Cost: one MultiGet.
  Status PutMoved(const TablePtr& table, RowBatch* rows, std::vector<uint8_t>* put = nullptr);
  Status Delete(const TablePtr& table, std::span<const std::string_view> refs,
                const RowBatch& old_rows);

  // Bulk load: rows of COPY or import into a table; duplicates may be reported as late as the
  // commit. The writes spill to sorted files and are ingested at commit. With layout `pages`, rows
  // that ascend behind the table's last one become pages right away. Call Insert between BeginBulk
  // and EndBulk; `keep` says that all went well, else the caller rolls back.
  Status BeginBulk(const TablePtr& table);
  Status EndBulk(bool keep);

  // Entries for a new index from all rows of the table. 23505 when a unique index meets a
  // duplicate.
  Status BuildIndex(const TablePtr& table, IndexId index);
  // Deletes all entries of an index, or all data of a table.
  Status ClearIndex(const TableDescriptor& table, IndexId index);
  Status ClearTable(const TableDescriptor& table);
  // Rewrites all rows of `from` (as it is stored) into `to`: a new primary key, a changed column
  // type. Column values are matched by ColumnId; `convert` maps a batch of from's living columns to
  // to's living columns.
  Status Rewrite(const TablePtr& from, const TablePtr& to,
                 const std::function<Status(const RowBatch& from, RowBatch* to)>& convert);

  // For TableUsage::read and limits: `rows` of the table have been read.
  void NoteReads(const TableDescriptor& table, uint64_t rows);

  // Approximate rows of a table, for the planner; no scan. Cost: one property read.
  Result<uint64_t> EstimateRows(const TableDescriptor& table);

  const AccessStats& stats() const;
  kv::Transaction* transaction() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The key ranges that a scan reads, one a span, as codec::PrintKey shows them: "/100/0/5/0" for a
// point, "/100/0/5 - /100/0/9" for a range. For EXPLAIN; reads nothing.
Result<std::vector<std::string>> DescribeSpans(const ScanSpec& spec);

// Names the index behind the duplicate that a bulk commit reported
// (kv::Transaction::duplicate_key).
Status DuplicateKeyError(const catalog::CatalogSnapshot& catalog, std::string_view key);

}  // namespace cellar::table
