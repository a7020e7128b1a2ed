// Tables without SQL: rows by key, by index and by range, records, transactions.
//
//   CELLAR_TRY_ASSIGN(auto store, database->Tables({.user = "ada"}));
//   CELLAR_TRY_ASSIGN(auto employees, store->OpenTable("/microsoft/employees"));
//   cellar::Record ada = employees->NewRecord().Set("id", 7).Set("last_name", "lovelace");
//   CELLAR_TRY(employees->Put(ada).status());
//   CELLAR_TRY_ASSIGN(auto rows, employees->Lookup("last_name", {"lovelace"}, {"id"}));
//   for (cellar::Row row : rows) Use(row.GetInt(0));
//
// A TableStore is inside the program (cellar/db.h) or at the other end of a connection: the same
// interface, the same answers. Rows written here and by SQL are the same rows, under the same
// grants, quotas, constraints and defaults. proto/cellar/v1/data.proto is the reference of what the
// calls mean.
//
// TableStore and Table are for all threads; transactions, scans, records and row sets for one at a
// time. Nothing here throws: failures are Status values (cellar/base/status.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/cancel.h"
#include "cellar/base/status.h"
#include "cellar/tableapi/cell.h"
#include "cellar/tableapi/filter.h"
#include "cellar/tableapi/record.h"
#include "cellar/tableapi/schema.h"

namespace cellar {

enum class Isolation : uint8_t {
  kSerializable,
  kRepeatableRead,  // one snapshot; of two writers of a row the second fails
  kReadCommitted,   // a snapshot for each call
};

// Several calls that happen together or not at all. Rolls back when destroyed without Commit. After
// an error of one of its calls it can only be rolled back (25P02). Must not outlive its store.
class TableTransaction {
 public:
  virtual ~TableTransaction() = default;
  // The commit's version, which grows with each of the store's. Errors: kConflict 40001: nothing
  // has happened, run all of it again (TableStore::Run does); kCommitUnknown 40003: ask
  // TableStore::Outcome; 0B000: its idempotency id has committed or was declared aborted.
  virtual Result<uint64_t> Commit() = 0;
  virtual Status Rollback() = 0;
  // For implementations: whose it is. A call of another store refuses it with 22023.
  virtual const void* owner() const = 0;
};

// What calls have in common.
struct CallOptions {
  // Null: the call is a transaction of its own, serializable, and runs again after conflicts.
  TableTransaction* transaction = nullptr;
  // Of a write that is a transaction of its own, 1 to 64 bytes: the first one with it that commits
  // is the only one, later ones change nothing and answer what it did. Each role has ids of its
  // own; another kind of call, or one for another table, is refused (0B000).
  std::string idempotency_id = {};
  std::chrono::milliseconds timeout{0};  // 57014 beyond; 0: none
  const CancelToken* cancel = nullptr;   // borrowed; polled while the call or scan runs
  // Not 0: 55000 when the table has changed since.
  uint64_t schema_version = 0;
  bool relaxed_durability = false;  // a crash of the machine may lose it
};

struct GetOptions {
  Projection columns = {};
  std::string index = {};   // a unique index; empty: the primary key
  bool for_update = false;  // lock the rows until the transaction ends
  CallOptions call = {};
};

struct LookupOptions {
  uint64_t max_rows = 10000;
  CallOptions call = {};
};

struct ScanOptions {
  std::string index = {};  // whose order the rows come in; empty: the primary key
  std::vector<KeySpan> spans =
      {};  // none: all. Overlaps count once; rows come in the index's order
  bool reverse = false;
  std::optional<Filter> filter = {};  // conditions on the index's columns become spans
  Projection columns = {};
  // The scan ends at the first limit that it reaches; 0: none.
  uint64_t max_rows = 0;
  uint64_t max_bytes = 0;  // of values
  std::chrono::milliseconds max_time{0};
  // Of an earlier scan of the same (index, spans, filter, reverse): goes on behind the last row
  // that it had handed out. Valid over restarts and changes of the schema, but 55000 when the index
  // has got other key columns, or columns of another type or direction.
  std::string resume_token = {};
  CallOptions call = {};
};

enum class EndReason : uint8_t { kNone = 0, kComplete, kRows, kBytes, kTime };

// The rows of a scan, batch by batch or one by one:
//
//   for (Row row : *scan) ...
//   CELLAR_TRY(scan->status());
//
// Must not outlive its table or transaction. Memory: one batch.
class Scanner {
 public:
  virtual ~Scanner() = default;

  // The next rows, never none; null at the end, and after an error. Valid until the next call.
  const RowSet* NextBatch() {
    if (!status_.ok()) return nullptr;
    Result<const RowSet*> next = DoNext();
    if (next.ok()) return *next;
    status_ = next.status();
    return nullptr;
  }
  const Status& status() const { return status_; }
  // kNone until NextBatch has returned null.
  virtual EndReason end_reason() const = 0;
  // Goes on behind the last row of the batch that NextBatch returned last; empty once complete.
  // Cost: encoding one key.
  virtual std::string resume_token() const = 0;
  virtual uint64_t rows_examined() const = 0;

  struct End {};
  class Iterator {
   public:
    using value_type = Row;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(Scanner* scan) : scan_(scan), rows_(scan->NextBatch()) {}
    Row operator*() const { return Row(rows_, row_); }
    Iterator& operator++() {
      if (rows_ != nullptr && ++row_ == rows_->size()) {
        rows_ = scan_->NextBatch();
        row_ = 0;
      }
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(End) const { return rows_ == nullptr; }

   private:
    Scanner* scan_;
    const RowSet* rows_;
    size_t row_ = 0;
  };
  // Once: rows that were handed out do not come back.
  Iterator begin() { return Iterator(this); }
  End end() const { return {}; }

 protected:
  virtual Result<const RowSet*> DoNext() = 0;

 private:
  Status status_;
};

enum class PutMode : uint8_t {
  kUpsert,  // new rows are inserted, of present ones the cells that are set change
  kInsert,  // 23505 when a row is there
  kUpdate,  // P0002 when a row is not
};

// What must be so for a write to do anything.
struct Expectation {
  uint32_t row = 0;     // position among the rows or keys of the call
  bool absent = false;  // there must be no such row
  std::vector<std::pair<std::string, Cell>> cells = {};  // NULL equals NULL; the row must exist
};

struct PutOptions {
  PutMode mode = PutMode::kUpsert;
  std::vector<Expectation> expect = {};
  CallOptions call = {};
};

struct DeleteOptions {
  std::optional<Filter> filter = {};  // of the rows named, only those that pass
  std::vector<Expectation> expect = {};
  CallOptions call = {};
};

struct WriteResult {
  bool applied = true;               // false: an expectation was not met, nothing has changed
  std::vector<uint32_t> unmet = {};  // rows whose expectation was not met
  uint64_t inserted = 0, updated = 0, deleted = 0;
  bool repeated = false;        // what a call with this idempotency id did before
  uint64_t commit_version = 0;  // 0 within a transaction
};

struct CellChange {
  std::string column;
  Cell amount;  // a number is added; text, bytes and arrays are appended. NULL counts as zero
};
struct IncrementOptions {
  bool must_exist = false;  // P0002 for an absent row, which is inserted otherwise
  CallOptions call = {};
};
struct IncrementResult {
  WriteResult write;
  RowSet rows;  // the changed cells as they are now; none when write.repeated
};

// A table as it was opened: goes on being the same one when it is renamed or moved. 42P01 once it
// is dropped. Must not outlive its store.
class Table {
 public:
  virtual ~Table() = default;

  // As known now; calls renew it when the table has changed. Cost: none.
  virtual SchemaPtr schema() const = 0;
  // As it is now.
  virtual Result<SchemaPtr> Refresh() = 0;
  Record NewRecord() const { return Record(schema()); }
  Result<Projection> Project(std::vector<std::string> names) const {
    return Projection::Of(schema(), std::move(names));
  }

  // Rows by whole keys, in the order of the keys; `rows->key_positions()` says whose they are.
  // Reusing `rows` saves allocations. Cost: one engine trip for all.
  virtual Status Get(std::span<const Key> keys, const GetOptions& options, RowSet* rows) = 0;
  // No row or one.
  Status Get(const Key& key, const GetOptions& options, RowSet* rows) {
    return Get(std::span(&key, 1), options, rows);
  }
  Result<RowSet> Get(const Key& key, const Projection& columns = {}) {
    RowSet rows;
    CELLAR_TRY(Get(std::span(&key, 1), GetOptions{columns}, &rows));
    return rows;
  }

  // Rows by keys of any index, or by their first columns: by key, then in the index's order. 54000
  // when there are more than options.max_rows: use Scan.
  virtual Status Lookup(std::string_view index, std::span<const Key> keys,
                        const Projection& columns, const LookupOptions& options, RowSet* rows) = 0;
  Result<RowSet> Lookup(std::string_view index, const Key& key, const Projection& columns = {}) {
    RowSet rows;
    CELLAR_TRY(Lookup(index, std::span(&key, 1), columns, {}, &rows));
    return rows;
  }

  virtual Result<std::unique_ptr<Scanner>> Scan(const ScanOptions& options) = 0;

  // Rows of this table's schema, or older ones of it: columns are the same ones whatever they are
  // called by now. Errors: 42703 for a cell of a column that has been dropped, 55000 for one of a
  // column that has another type by now.
  Result<WriteResult> Put(std::span<const Record> records, const PutOptions& options = {});
  Result<WriteResult> Put(const Record& record, const PutOptions& options = {}) {
    return Put(std::span(&record, 1), options);
  }
  // `schema` is what cells.positions count in.
  virtual Result<WriteResult> PutCells(const SchemaPtr& schema, const CellBatch& cells,
                                       const PutOptions& options) = 0;

  // By whole primary keys; absent rows are fine.
  virtual Result<WriteResult> Delete(std::span<const Key> keys, const DeleteOptions& options) = 0;
  Result<WriteResult> Delete(const Key& key, const DeleteOptions& options = {}) {
    return Delete(std::span(&key, 1), options);
  }
  // By spans of the primary key, none: all rows. options.expect is empty.
  virtual Result<WriteResult> DeleteSpans(std::span<const KeySpan> spans,
                                          const DeleteOptions& options) = 0;

  struct RowChange {
    Key key;  // a whole primary key
    std::vector<CellChange> changes;
  };
  virtual Result<IncrementResult> Increment(std::span<const RowChange> rows,
                                            const IncrementOptions& options) = 0;
  // Adds to one cell; its new value.
  Result<Cell> Increment(const Key& key, std::string_view column, const Cell& amount,
                         const IncrementOptions& options = {});
};

struct TableTransactionOptions {
  Isolation isolation = Isolation::kSerializable;
  bool read_only = false;
  std::string idempotency_id = {};  // 1 to 64 bytes: committed with it, for Outcome
  bool relaxed_durability = false;
};

enum class Outcome : uint8_t { kCommitted = 1, kAborted = 2 };

// An open store as one role sees it.
class TableStore {
 public:
  virtual ~TableStore() = default;

  // Errors: 42P01 no such table, 42501 the role may not look into its namespace, 42809 it is a view
  // or a sequence.
  virtual Result<std::shared_ptr<Table>> OpenTable(std::string_view path) = 0;
  virtual Result<std::unique_ptr<TableTransaction>> Begin(
      const TableTransactionOptions& options = {}) = 0;
  // What became of the call or transaction with this id. If it has not committed by now it cannot
  // commit any more.
  virtual Result<Outcome> FindOutcome(std::string_view idempotency_id) = 0;

  // Runs `body` in a transaction and commits it; rolls back when it fails. After a conflict with
  // another transaction everything runs again, up to 50 times: the body's effects outside of the
  // store should bear that.
  Status Run(const std::function<Status(TableTransaction*)>& body,
             const TableTransactionOptions& options = {});
};

}  // namespace cellar
