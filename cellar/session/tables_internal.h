// What the files of the table API share. Private to this layer.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cellar/session/session_internal.h"
#include "cellar/session/tables.h"
#include "cellar/session/tables_span.h"

namespace cellar::session::tables {

struct KnownTable;

// How a planned write gets by without its plan's execution. Made for the columns that are given.
struct DirectShape {
  // Null when the plan has more to do than to write: constraints, references, defaults, generated
  // columns, keys under a collation.
  static std::unique_ptr<DirectShape> Of(const KnownTable& known, const sql::Plan& plan,
                                         std::span<const uint32_t> positions);
  // References of rows of a batch whose places of the given columns are `columns`, in refs.
  void AddRefs(const CellBatch& cells, std::span<const uint32_t> columns,
               std::span<const uint32_t> rows);

  // By place among the living columns.
  std::vector<codec::ColumnId> living;
  std::vector<Type> types;
  std::vector<int> source;  // place among the given columns, or -1
  std::vector<uint8_t> is_key;
  // By place in the primary key.
  std::vector<uint32_t> key_places, key_sources;
  std::vector<codec::KeyColumn> key_columns;
  bool expect_present = false;  // the last upsert met a row
  // Kept from call to call for what they have allocated.
  RowBatch keys, old_rows, new_rows;
  std::vector<std::string_view> refs;
  std::string ref_bytes;
};

// One way of changing rows of a table, planned: a set of columns and what is done with them.
struct CompiledWrite {
  std::unique_ptr<DirectShape> direct;  // null: by the plan
  std::shared_ptr<const sql::Plan> plan;
  std::unique_ptr<sql::Execution> spare;
  sql::EvalContext context;
  bool external = false;  // rows come in batches; else one at a time, as parameters
};

// A unique index that rows are asked for by.
struct KnownKey {
  const catalog::IndexDescriptor* index = nullptr;
  std::vector<Type> types;  // of its key columns
  std::vector<uint32_t> positions;
};

// What a worker knows of a table at one generation of the catalog and one set of privileges.
struct KnownTable {
  catalog::TablePtr table;
  SchemaPtr schema;
  catalog::NamespaceId database;
  uint64_t generation = 0, epoch = 0;
  std::vector<codec::ColumnId> ids;  // by position in the schema
  std::vector<uint32_t> all;         // every position
  std::vector<uint8_t> may_select;   // by position: has been checked
  std::map<std::string, CompiledWrite, std::less<>> writes;
  std::map<std::string, KnownKey, std::less<>> keys;  // by name of the index
};

// A session and what was prepared in it. One call at a time has it.
struct Worker {
  std::unique_ptr<Session> session;
  Session::Impl* s = nullptr;
  bool direct = true;  // writes may go past their plans
  catalog::NamespaceId login_database;
  uint64_t checked_roles = 0, checked_catalog = 0;  // generations of the last StillIn
  std::unordered_map<uint64_t, KnownTable> tables;
  // Kept from call to call for what they have allocated.
  RowBatch keys;
  std::vector<uint32_t> positions;
  table::ScanSpec spec;
  // The call that has the worker; of the scans that are open in a transaction, all.
  Statement statement;
  std::optional<StatementScope> running;
  int leases = 0;

  // Around the calls; those of one transaction may overlap.
  void Enter(const CallOptions& options);
  void Leave();

  // Would its role be let in anew? False: it, or the database, has become another one, and somebody
  // else must be asked. Errors: those of logging in. Cost: two loads while nothing changes.
  Result<bool> StillIn();
  // 42P01 when it is gone; 42501 when the role may not look into its namespace.
  Result<KnownTable*> Find(catalog::TableId id);
  // 42501 unless the role may read all of these columns.
  Status CheckSelect(KnownTable* known, std::span<const uint32_t> positions);
  // The transaction of the session reads or writes this table.
  Status Use(const KnownTable& known, bool writes);
};

// What an idempotency id was given to. Persisted.
enum class CallKind : uint8_t {
  kTransaction = 1,
  kPut = 2,
  kDelete = 3,
  kDeleteSpans = 4,
  kIncrement = 5,
  kAdmin = 6,
};
struct CallId {
  uint32_t role = 0;  // whose id it is
  std::string_view id;
  CallKind kind = CallKind::kTransaction;
  uint64_t target = 0;  // the table; of kAdmin: which call
};

class Store;
class TransactionImpl;

// A worker for the time of a call.
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept { *this = std::move(other); }
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { Release(); }
  // Of the call's transaction, or one of the store's. Errors: 25P02, 25000 for a transaction that
  // has ended; 57014.
  static Result<Lease> Take(Store* store, const CallOptions& options);
  void Release();
  // The worker's transaction ends, and it is another call's then.
  void Abandon() {
    if (worker_ != nullptr) worker_->Leave();
    worker_ = nullptr;
  }
  Worker* operator->() const { return worker_; }
  Worker* get() const { return worker_; }
  // The call is a transaction of its own.
  bool alone() const { return owned_ != nullptr; }

 private:
  Store* store_ = nullptr;
  std::unique_ptr<Worker> owned_;
  Worker* worker_ = nullptr;
};

// Shared by its tables and transactions, which may outlive whoever opened it.
class Store : public TableStore, public std::enable_shared_from_this<Store> {
 public:
  // `keeps` is what the database lives by, if anything.
  Store(Database* database, SessionOptions options, std::shared_ptr<const void> keeps = nullptr)
      : keeps_(std::move(keeps)), database_(database), options_(std::move(options)) {}

  Result<std::shared_ptr<cellar::Table>> OpenTable(std::string_view path) override;
  Result<std::unique_ptr<TableTransaction>> Begin(const TableTransactionOptions& options) override;
  Result<Outcome> FindOutcome(std::string_view idempotency_id) override;

  Result<std::unique_ptr<Worker>> TakeWorker();
  void GiveBack(std::unique_ptr<Worker> worker);
  Database::Impl* db() { return database_->impl(); }
  // Of workers made from now on; for tests that compare.
  void set_direct(bool value) { direct_ = value; }

 private:
  static constexpr size_t kMaxIdleWorkers = 64;

  std::shared_ptr<const void> keeps_;  // first: goes last
  Database* database_;
  SessionOptions options_;
  bool direct_ = true;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

class TransactionImpl : public TableTransaction {
 public:
  TransactionImpl(std::shared_ptr<Store> store, std::unique_ptr<Worker> worker,
                  TableTransactionOptions options)
      : store_(std::move(store)), worker_(std::move(worker)), options_(std::move(options)) {}
  ~TransactionImpl() override { (void)Rollback(); }
  Result<uint64_t> Commit() override;
  Status Rollback() override;
  const void* owner() const override { return store_.get(); }
  Worker* worker() { return worker_.get(); }  // null: it has ended

 private:
  std::shared_ptr<Store> store_;
  std::unique_ptr<Worker> worker_;
  TableTransactionOptions options_;
};

class TableImpl : public cellar::Table, public std::enable_shared_from_this<TableImpl> {
 public:
  TableImpl(std::shared_ptr<Store> store, catalog::TableId id, SchemaPtr schema)
      : store_(std::move(store)), id_(id), schema_(std::move(schema)) {}
  using cellar::Table::Delete;
  using cellar::Table::Get;
  using cellar::Table::Increment;
  using cellar::Table::Lookup;

  SchemaPtr schema() const override;
  Result<SchemaPtr> Refresh() override;
  Status Get(std::span<const Key> keys, const GetOptions& options, RowSet* rows) override;
  Status Lookup(std::string_view index, std::span<const Key> keys, const Projection& columns,
                const LookupOptions& options, RowSet* rows) override;
  Result<std::unique_ptr<Scanner>> Scan(const ScanOptions& options) override;
  Result<WriteResult> PutCells(const SchemaPtr& schema, const CellBatch& cells,
                               const PutOptions& options) override;
  Result<WriteResult> Delete(std::span<const Key> keys, const DeleteOptions& options) override;
  Result<WriteResult> DeleteSpans(std::span<const KeySpan> spans,
                                  const DeleteOptions& options) override;
  Result<IncrementResult> Increment(std::span<const RowChange> rows,
                                    const IncrementOptions& options) override;

 private:
  Result<KnownTable*> Find(Worker* worker, const CallOptions& call);
  // Runs `body` in the call's transaction, or in one of its own that is run again after conflicts
  // and carries the call's idempotency id. `result` is what a repeated call answers.
  Status Write(const CallOptions& call, CallKind kind, WriteResult* result,
               const std::function<Status(Worker*, KnownTable*)>& body);

  // One attempt of Lookup.
  Status LookupOnce(std::string_view index, std::span<const Key> keys, const Projection& columns,
                    const LookupOptions& options, RowSet* rows);
  // A scan in the call's transaction, or one of its own. `failed`, unless it is OK: why the one
  // before ended, and `attempt` how many did; it comes back when the scan should not be run again.
  Result<std::unique_ptr<Scanner>> OpenScan(
      const std::shared_ptr<const ScanOptions>& options,
      std::optional<std::chrono::steady_clock::time_point> deadline, Status failed, int attempt);

  std::shared_ptr<Store> store_;
  catalog::TableId id_;
  mutable std::mutex mutex_;
  SchemaPtr schema_;
};

// tables_schema.cc
Result<SchemaPtr> MakeSchema(const catalog::CatalogSnapshot& catalog,
                             const catalog::TableDescriptor& table);
// A column that can be named; 42703.
Result<uint32_t> PositionOf(const TableSchema& schema, std::string_view name);
Result<std::vector<uint32_t>> PositionsOf(const KnownTable& known, const Projection& projection);
Result<const KnownKey*> KeyOf(KnownTable* known, const std::string& index);
// The index that a call names: public, with key columns that programs can give. Errors: 42704; with
// `keys` 0A000 for one on expressions or under a collation.
Result<const catalog::IndexDescriptor*> IndexOf(const catalog::TableDescriptor& table,
                                                std::string_view name, bool keys);
// All columns that order the index's entries, the primary key's behind its own.
std::vector<codec::KeyColumn> OrderOf(const catalog::TableDescriptor& table,
                                      const catalog::IndexDescriptor& index,
                                      std::vector<codec::ColumnId>* columns);
// Values of the first columns of a key; at least `least` and at most `most` of them (22023).
Result<std::vector<Datum>> KeyValues(const Key& key, std::span<const codec::KeyColumn> columns,
                                     size_t least, size_t most, Arena* arena);

// tables_direct.cc: at most kBatchRows rows a call, in a transaction whose privileges and
// descriptors have been seen to. `columns` are the places in `cells` of those that the shape was
// made for.
enum class DirectConflict : uint8_t { kError, kSkip, kUpdate };
Status DirectInsert(table::Access* access, const KnownTable& known, DirectShape* shape,
                    DirectConflict conflict, const CellBatch& cells,
                    std::span<const uint32_t> columns, std::span<const uint32_t> rows,
                    WriteResult* result);
// False: some rows are not there, and nothing has been written. No key is given twice.
Result<bool> DirectUpdate(table::Access* access, const KnownTable& known, DirectShape* shape,
                          const CellBatch& cells, std::span<const uint32_t> columns,
                          std::span<const uint32_t> rows, WriteResult* result);
Status DirectDelete(table::Access* access, const KnownTable& known, DirectShape* shape,
                    std::span<const std::vector<Datum>> keys, WriteResult* result);

// tables_filter.cc
struct BoundFilter {
  sql::ExprPtr expr;                     // over `columns`, in this order
  std::vector<codec::ColumnId> columns;  // that it names
};
Result<std::string> FilterText(const Filter& filter, std::string_view table);
Result<BoundFilter> BindFilter(Session::Impl* s, const KnownTable& known, const Filter& filter);
// Of the filter what a scan can decide by itself: comparisons of a column with a literal that have
// to hold. Values lie in `arena`, or with the filter.
std::vector<table::ColumnFilter> ScanFiltersOf(const Filter& filter,
                                               const catalog::TableDescriptor& table, Arena* arena);
// Ranges of the index's keys outside of which the filter is not true. Values lie in `arena`.
std::vector<KeyRange> RangesOf(const Filter& filter, const catalog::TableDescriptor& table,
                               std::span<const codec::KeyColumn> columns,
                               std::span<const codec::ColumnId> ids, Arena* arena);

// tables_marker.cc
Status CheckId(std::string_view idempotency_id);
// Whether a transaction with this id has committed, and what it did; 0B000 when the id has been
// declared aborted, or is another call's.
Result<std::optional<WriteResult>> ReadMarker(kv::Transaction* transaction, const CallId& call);
Status WriteMarker(kv::Transaction* transaction, const CallId& call, bool committed,
                   const WriteResult& result);
// Puts what SetCommitMarker set into a transaction that is about to commit changes of the catalog.
Status MarkCommit(Session::Impl* s, kv::Transaction* transaction);
Result<Outcome> ResolveMarker(kv::Engine* engine, const CallId& call);
// Drops markers that are older than a day at that time, some of them.
void SweepMarkers(kv::Engine* engine, int64_t now_micros);
// The same every so many calls.
void ForgetOldMarkers(kv::Engine* engine);

}  // namespace cellar::session::tables
