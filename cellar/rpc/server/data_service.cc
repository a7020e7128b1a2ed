#include "cellar/rpc/server/data_service.h"

#include <grpcpp/grpcpp.h>

#include "cellar/base/memory_account.h"
#include "cellar/base/sqlstate.h"
#include "cellar/rpc/wire/convert.h"
#include "cellar/v1/data.grpc.pb.h"

namespace cellar::rpc {
namespace {

constexpr int kMaxKeys = 10000;
constexpr uint64_t kMaxLookupRows = 10000;

Status TooManyKeys(int count) {
  return SqlError(Code::kLimit, "54000", "{} keys in one call; {} are allowed", count, kMaxKeys);
}

Status TransactionEnded() {
  return SqlError(Code::kNotFound, sqlstate::kNoActiveSqlTransaction, "the transaction has ended");
}

// Counts a request when it ends.
class Measured {
 public:
  explicit Measured(monitor::DoorMeters* meters) : meters_(meters) {
    if (meters_ != nullptr) start_ = std::chrono::steady_clock::now();
  }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

  grpc::Status End(const Status& status, grpc::ServerContext* context) {
    if (meters_ != nullptr) {
      meters_->Request(std::chrono::steady_clock::now() - start_);
      if (!status.ok()) meters_->Error(status.sqlstate());
    }
    return ToGrpc(status, context);
  }
  void Received(size_t bytes) {
    if (meters_ != nullptr) meters_->bytes_received.fetch_add(bytes, std::memory_order_relaxed);
  }
  void Sent(size_t bytes, size_t rows) {
    if (meters_ == nullptr) return;
    meters_->bytes_sent.fetch_add(bytes, std::memory_order_relaxed);
    meters_->rows_sent.fetch_add(rows, std::memory_order_relaxed);
  }
  void Wrote(const WriteResult& result) {
    if (meters_ == nullptr) return;
    meters_->rows_written.fetch_add(result.inserted + result.updated + result.deleted,
                                    std::memory_order_relaxed);
  }

 private:
  monitor::DoorMeters* meters_;
  std::chrono::steady_clock::time_point start_;
};

// One call's surroundings: the caller, its transaction held for the time of the call, the options
// that table.h wants.
struct Scope {
  Calls::Caller caller;
  std::shared_ptr<OpenTransaction> transaction;
  std::unique_lock<std::mutex> held;
  CancelToken cancel;
  CallOptions options;

  Status Enter(Calls* calls, const grpc::ServerContext& context, const v1::CallOptions& sent) {
    CELLAR_TRY_ASSIGN(caller, calls->Admit(context));
    options.timeout = TimeLeft(context);
    options.idempotency_id = sent.idempotency_id();
    options.schema_version = sent.schema_version();
    options.relaxed_durability = sent.relaxed_durability();
    if (sent.transaction().empty()) return Status();
    CELLAR_TRY_ASSIGN(transaction,
                      calls->transactions().Find(sent.transaction(), caller.identity.user));
    held = std::unique_lock(transaction->mutex);
    if (transaction->transaction == nullptr || transaction->ending) return TransactionEnded();
    options.transaction = transaction->transaction.get();
    caller.store = transaction->store;
    return Status();
  }
  // Enters, and opens the table that the request names.
  template <typename Request>
  Result<std::shared_ptr<Table>> Open(Calls* calls, const grpc::ServerContext& context,
                                      const Request& request) {
    CELLAR_TRY(Enter(calls, context, request.options()));
    return caller.store->OpenTable(request.table());
  }
  ~Scope() {
    if (held.owns_lock()) transaction->last_used = std::chrono::steady_clock::now();
  }
};

// A stream in a transaction, known to it from here until the end of its life.
class ScanInTransaction {
 public:
  ScanInTransaction(Scope* scope, grpc::ServerContext* context) : scope_(scope), context_(context) {
    if (scope_->transaction != nullptr) scope_->transaction->scans.insert(context_);
  }
  ~ScanInTransaction() {
    if (scope_->transaction == nullptr) return;
    if (!scope_->held.owns_lock()) scope_->held.lock();
    scope_->transaction->scans.erase(context_);
    scope_->transaction->scan_ended.notify_all();
  }
  ScanInTransaction(const ScanInTransaction&) = delete;
  ScanInTransaction& operator=(const ScanInTransaction&) = delete;

 private:
  Scope* scope_;
  grpc::ServerContext* context_;
};

template <typename Keys>
Result<std::vector<Key>> TakeKeys(const Keys& sent) {
  if (sent.size() > kMaxKeys) return TooManyKeys(sent.size());
  std::vector<Key> keys;
  keys.reserve(static_cast<size_t>(sent.size()));
  for (const v1::Key& key : sent) keys.push_back(TakeKey(key));
  return keys;
}

template <typename Names>
Projection TakeProjection(const Names& names) {
  return Projection(std::vector<std::string>(names.begin(), names.end()));
}

template <typename Sent>
Result<std::vector<Expectation>> TakeExpectations(const Sent& sent) {
  std::vector<Expectation> expectations;
  for (const v1::Expectation& one : sent) {
    CELLAR_TRY_ASSIGN(Expectation taken, TakeExpectation(one));
    expectations.push_back(std::move(taken));
  }
  return expectations;
}

template <typename Sent>
std::vector<KeySpan> TakeSpans(const Sent& sent) {
  std::vector<KeySpan> spans;
  for (const v1::KeySpan& span : sent) spans.push_back(TakeSpan(span));
  return spans;
}

class DataService : public v1::Data::Service {
 public:
  explicit DataService(Calls* calls) : calls_(calls) {}

  grpc::Status Describe(grpc::ServerContext* context, const v1::DescribeRequest* request,
                        v1::DescribeResponse* response) override {
    Measured measured(calls_->meters());
    const auto run = [&]() -> Status {
      CELLAR_TRY_ASSIGN(Calls::Caller caller, calls_->Admit(*context));
      CELLAR_TRY_ASSIGN(std::shared_ptr<Table> table, caller.store->OpenTable(request->table()));
      const SchemaPtr schema = table->schema();
      if (request->known_version() != 0 && request->known_version() == schema->version) {
        response->set_unchanged(true);
      } else {
        PutSchema(*schema, response->mutable_schema());
      }
      return Status();
    };
    return measured.End(CatchOutOfMemory(run), context);
  }

  grpc::Status Get(grpc::ServerContext* context, const v1::GetRequest* request,
                   v1::GetResponse* response) override {
    Measured measured(calls_->meters());
    const auto run = [&]() -> Status {
      Scope scope;
      CELLAR_TRY_ASSIGN(std::shared_ptr<Table> table, scope.Open(calls_, *context, *request));
      GetOptions options;
      options.columns = TakeProjection(request->columns());
      options.index = request->index();
      options.for_update = request->for_update();
      options.call = scope.options;
      CELLAR_TRY_ASSIGN(std::vector<Key> keys, TakeKeys(request->keys()));
      RowSet rows;
      CELLAR_TRY(table->Get(keys, options, &rows));
      PutRows(rows.batch(), 0, rows.size(), true, response->mutable_rows());
      if (rows.size() != keys.size()) {
        response->mutable_key_positions()->Add(rows.key_positions().begin(),
                                               rows.key_positions().end());
      }
      response->set_schema_version(rows.schema()->version);
      measured.Received(request->ByteSizeLong());
      measured.Sent(response->ByteSizeLong(), rows.size());
      return Status();
    };
    return measured.End(CatchOutOfMemory(run), context);
  }

  grpc::Status Lookup(grpc::ServerContext* context, const v1::LookupRequest* request,
                      v1::LookupResponse* response) override {
    Measured measured(calls_->meters());
    const auto run = [&]() -> Status {
      Scope scope;
      CELLAR_TRY_ASSIGN(std::shared_ptr<Table> table, scope.Open(calls_, *context, *request));
      const CallWatcher::Watch watch(&calls_->watcher(), context, &scope.cancel);
      scope.options.cancel = &scope.cancel;
      LookupOptions options;
      if (request->max_rows() != 0) {
        options.max_rows = std::min(request->max_rows(), kMaxLookupRows);
      }
      options.call = scope.options;
      CELLAR_TRY_ASSIGN(std::vector<Key> keys, TakeKeys(request->keys()));
      RowSet rows;
      CELLAR_TRY(table->Lookup(request->index(), keys, TakeProjection(request->columns()), options,
                               &rows));
      PutRows(rows.batch(), 0, rows.size(), true, response->mutable_rows());
      response->mutable_key_positions()->Add(rows.key_positions().begin(),
                                             rows.key_positions().end());
      response->set_schema_version(rows.schema()->version);
      measured.Received(request->ByteSizeLong());
      measured.Sent(response->ByteSizeLong(), rows.size());
      return Status();
    };
    return measured.End(CatchOutOfMemory(run), context);
  }

  grpc::Status Scan(grpc::ServerContext* context, const v1::ScanRequest* request,
                    grpc::ServerWriter<v1::ResultSet>* writer) override {
    Measured measured(calls_->meters());
    measured.Received(request->ByteSizeLong());
    const auto run = [&] { return RunScan(context, *request, writer, &measured); };
    return measured.End(CatchOutOfMemory(run), context);
  }

  grpc::Status Put(grpc::ServerContext* context, const v1::PutRequest* request,
                   v1::PutResponse* response) override {
    Measured measured(calls_->meters());
    const auto run = [&]() -> Status {
      Scope scope;
      CELLAR_TRY_ASSIGN(std::shared_ptr<Table> table, scope.Open(calls_, *context, *request));
      const SchemaPtr schema = table->schema();
      CELLAR_TRY_ASSIGN(Projection columns, Projection::Of(schema, {request->columns().begin(),
                                                                    request->columns().end()}));
      CellBatch cells;
      cells.positions.assign(columns.positions().begin(), columns.positions().end());
      std::vector<Type> types;
      for (uint32_t position : cells.positions) types.push_back(schema->columns[position].type);
      CELLAR_TRY(TakeRows(request->rows(), types, &cells.rows, &cells.unset));
      PutOptions options;
      switch (request->mode()) {
        case v1::PUT_MODE_UPSERT: options.mode = PutMode::kUpsert; break;
        case v1::PUT_MODE_INSERT: options.mode = PutMode::kInsert; break;
        case v1::PUT_MODE_UPDATE: options.mode = PutMode::kUpdate; break;
        default:
          return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "unknown put mode {}",
                          static_cast<int>(request->mode()));
      }
      CELLAR_TRY_ASSIGN(options.expect, TakeExpectations(request->expectations()));
      options.call = scope.options;
      CELLAR_TRY_ASSIGN(WriteResult result, table->PutCells(schema, cells, options));
      PutResult(result, response->mutable_result());
      measured.Received(request->ByteSizeLong());
      measured.Wrote(result);
      return Status();
    };
    return measured.End(CatchOutOfMemory(run), context);
  }

  grpc::Status Delete(grpc::ServerContext* context, const v1::DeleteRequest* request,
                      v1::DeleteResponse* response) override {
    Measured measured(calls_->meters());
    const auto run = [&]() -> Status {
      Scope scope;
      CELLAR_TRY(scope.Enter(calls_, *context, request->options()));
      const CallWatcher::Watch watch(&calls_->watcher(), context, &scope.cancel);
      scope.options.cancel = &scope.cancel;
      if (request->keys_size() > 0 && request->spans_size() > 0) {
        return UnsupportedError("a delete names keys or spans, not both")
            .WithHint("Make two calls in one transaction.");
      }
      if (request->keys_size() == 0 && request->spans_size() == 0) {
        PutResult(WriteResult(), response->mutable_result());
        return Status();
      }
      CELLAR_TRY_ASSIGN(std::shared_ptr<Table> table,
                        scope.caller.store->OpenTable(request->table()));
      DeleteOptions options;
      options.call = scope.options;
      if (request->has_filter()) {
        CELLAR_TRY_ASSIGN(options.filter, TakeFilter(request->filter()));
      }
      CELLAR_TRY_ASSIGN(options.expect, TakeExpectations(request->expectations()));
      WriteResult result;
      if (request->keys_size() > 0) {
        CELLAR_TRY_ASSIGN(std::vector<Key> keys, TakeKeys(request->keys()));
        CELLAR_TRY_ASSIGN(result, table->Delete(keys, options));
      } else {
        const std::vector<KeySpan> spans = TakeSpans(request->spans());
        CELLAR_TRY_ASSIGN(result, table->DeleteSpans(spans, options));
      }
      PutResult(result, response->mutable_result());
      measured.Received(request->ByteSizeLong());
      measured.Wrote(result);
      return Status();
    };
    return measured.End(CatchOutOfMemory(run), context);
  }

  grpc::Status Increment(grpc::ServerContext* context, const v1::IncrementRequest* request,
                         v1::IncrementResponse* response) override {
    Measured measured(calls_->meters());
    const auto run = [&]() -> Status {
      Scope scope;
      CELLAR_TRY_ASSIGN(std::shared_ptr<Table> table, scope.Open(calls_, *context, *request));
      if (request->rows_size() > kMaxKeys) return TooManyKeys(request->rows_size());
      std::vector<Table::RowChange> rows;
      for (const v1::RowChange& sent : request->rows()) {
        Table::RowChange& row = rows.emplace_back();
        row.key = TakeKey(sent.key());
        for (const v1::Change& change : sent.changes()) {
          row.changes.push_back({change.column(), TakeCell(change.amount())});
        }
      }
      IncrementOptions options;
      options.must_exist = request->must_exist();
      options.call = scope.options;
      CELLAR_TRY_ASSIGN(IncrementResult result, table->Increment(rows, options));
      PutResult(result.write, response->mutable_result());
      PutRows(result.rows.batch(), 0, result.rows.size(), true, response->mutable_rows());
      for (const TableColumn& column : result.rows.columns()) response->add_columns(column.name);
      measured.Received(request->ByteSizeLong());
      measured.Wrote(result.write);
      return Status();
    };
    return measured.End(CatchOutOfMemory(run), context);
  }

  grpc::Status Begin(grpc::ServerContext* context, const v1::BeginRequest* request,
                     v1::BeginResponse* response) override {
    Measured measured(calls_->meters());
    const auto run = [&]() -> Status {
      CELLAR_TRY_ASSIGN(Calls::Caller caller, calls_->Admit(*context));
      TableTransactionOptions options;
      switch (request->isolation()) {
        case v1::ISOLATION_SERIALIZABLE: options.isolation = Isolation::kSerializable; break;
        case v1::ISOLATION_REPEATABLE_READ: options.isolation = Isolation::kRepeatableRead; break;
        case v1::ISOLATION_READ_COMMITTED: options.isolation = Isolation::kReadCommitted; break;
        default:
          return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "unknown isolation {}",
                          static_cast<int>(request->isolation()));
      }
      options.read_only = request->read_only();
      options.idempotency_id = request->idempotency_id();
      options.relaxed_durability = request->relaxed_durability();
      std::chrono::milliseconds idle = calls_->options().idle_transaction;
      if (request->idle_millis() != 0) {
        idle = std::min(idle, std::chrono::milliseconds(request->idle_millis()));
      }
      CELLAR_TRY_ASSIGN(std::unique_ptr<TableTransaction> transaction,
                        caller.store->Begin(options));
      CELLAR_TRY_ASSIGN(std::string name,
                        calls_->transactions().Add(caller.identity.user, caller.store,
                                                   std::move(transaction), idle));
      response->set_transaction(std::move(name));
      return Status();
    };
    return measured.End(CatchOutOfMemory(run), context);
  }

  grpc::Status Commit(grpc::ServerContext* context, const v1::CommitRequest* request,
                      v1::CommitResponse* response) override {
    Measured measured(calls_->meters());
    const auto run = [&]() -> Status {
      CELLAR_TRY_ASSIGN(std::unique_ptr<TableTransaction> transaction,
                        End(*context, request->transaction()));
      CELLAR_TRY_ASSIGN(const uint64_t version, transaction->Commit());
      response->set_commit_version(version);
      return Status();
    };
    return measured.End(CatchOutOfMemory(run), context);
  }

  grpc::Status Rollback(grpc::ServerContext* context, const v1::RollbackRequest* request,
                        v1::RollbackResponse*) override {
    Measured measured(calls_->meters());
    const auto run = [&]() -> Status {
      Result<std::unique_ptr<TableTransaction>> transaction = End(*context, request->transaction());
      if (transaction.status().code() == Code::kNotFound) return Status();
      CELLAR_TRY(transaction.status());
      return (*transaction)->Rollback();
    };
    return measured.End(CatchOutOfMemory(run), context);
  }

  grpc::Status Outcome(grpc::ServerContext* context, const v1::OutcomeRequest* request,
                       v1::OutcomeResponse* response) override {
    Measured measured(calls_->meters());
    const auto run = [&]() -> Status {
      CELLAR_TRY_ASSIGN(Calls::Caller caller, calls_->Admit(*context));
      CELLAR_TRY_ASSIGN(const cellar::Outcome outcome,
                        caller.store->FindOutcome(request->idempotency_id()));
      response->set_outcome(outcome == cellar::Outcome::kCommitted
                                ? v1::TRANSACTION_OUTCOME_COMMITTED
                                : v1::TRANSACTION_OUTCOME_ABORTED);
      return Status();
    };
    return measured.End(CatchOutOfMemory(run), context);
  }

 private:
  // Takes the transaction out of the table: nobody else can use it any more.
  Result<std::unique_ptr<TableTransaction>> End(const grpc::ServerContext& context,
                                                const std::string& name) {
    CELLAR_TRY_ASSIGN(Calls::Caller caller, calls_->Admit(context));
    CELLAR_TRY_ASSIGN(std::shared_ptr<OpenTransaction> open,
                      calls_->transactions().Find(name, caller.identity.user));
    calls_->transactions().Remove(name);
    std::unique_lock lock(open->mutex);
    open->ending = true;
    for (grpc::ServerContext* scan : open->scans) scan->TryCancel();
    open->scan_ended.wait(lock, [&] { return open->scans.empty(); });
    if (open->transaction == nullptr) return TransactionEnded();
    return std::move(open->transaction);
  }

  Status RunScan(grpc::ServerContext* context, const v1::ScanRequest& request,
                 grpc::ServerWriter<v1::ResultSet>* writer, Measured* measured) {
    Scope scope;
    CELLAR_TRY(scope.Enter(calls_, *context, request.options()));
    const CallWatcher::Watch watch(&calls_->watcher(), context, &scope.cancel);
    scope.options.cancel = &scope.cancel;
    const ScanInTransaction shared(&scope, context);
    CELLAR_TRY_ASSIGN(std::shared_ptr<Table> table, scope.caller.store->OpenTable(request.table()));
    ScanOptions options;
    options.index = request.index();
    options.spans = TakeSpans(request.spans());
    options.reverse = request.reverse();
    if (request.has_filter()) {
      CELLAR_TRY_ASSIGN(options.filter, TakeFilter(request.filter()));
    }
    options.columns = TakeProjection(request.columns());
    options.max_rows = request.max_rows();
    options.max_bytes = request.max_bytes();
    options.max_time = std::chrono::milliseconds(request.max_millis());
    options.resume_token = request.resume_token();
    options.call = scope.options;
    CELLAR_TRY_ASSIGN(std::unique_ptr<Scanner> scanner, table->Scan(options));
    v1::ResultSet message;
    bool first = true;
    while (const RowSet* rows = scanner->NextBatch()) {
      message.Clear();
      PutRows(rows->batch(), 0, rows->size(), first, message.mutable_rows());
      if (first) message.set_schema_version(rows->schema()->version);
      first = false;
      message.set_resume_token(scanner->resume_token());
      measured->Sent(message.ByteSizeLong(), rows->size());
      // The client may make other calls in the transaction before it reads on.
      if (scope.held.owns_lock()) scope.held.unlock();
      const bool written = writer->Write(message);
      if (scope.transaction != nullptr) {
        scope.held.lock();
        if (scope.transaction->ending) return TransactionEnded();
      }
      if (!written) {
        return Status(Code::kCancelled, "the caller is gone")
            .WithSqlState(sqlstate::kQueryCanceled);
      }
    }
    CELLAR_TRY(scanner->status());
    message.Clear();
    if (first) message.set_schema_version(table->schema()->version);
    message.set_end_reason(static_cast<v1::EndReason>(scanner->end_reason()));
    message.set_resume_token(scanner->resume_token());
    message.set_rows_examined(scanner->rows_examined());
    writer->Write(message);
    return Status();
  }

  Calls* calls_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeDataService(Calls* calls) {
  return std::make_unique<DataService>(calls);
}

}  // namespace cellar::rpc
