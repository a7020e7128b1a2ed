// TableStore over the stubs of cellar.v1.
#include <grpcpp/grpcpp.h>

#include <atomic>

#include "cellar/base/sqlstate.h"
#include "cellar/client.h"
#include "cellar/rpc/client/channel.h"
#include "cellar/rpc/wire/convert.h"
#include "cellar/tableapi/restarting_scanner.h"
#include "cellar/v1/data.grpc.pb.h"

namespace cellar {
namespace {

using rpc::ChannelPool;

// The pool's channels, each with a stub: making one costs as much as a small call.
class Connections {
 public:
  Connections(const std::string& target, const ClientOptions& options) : pool_(target, options) {
    for (const auto& channel : pool_.channels()) stubs_.push_back(v1::Data::NewStub(channel));
  }

  Status Login() { return pool_.Login(); }
  // As ChannelPool::Run; `send` takes a stub and a context.
  template <typename Send>
  Status Run(const ChannelPool::Call& call, const Send& send) {
    return pool_.Run(call, [&](size_t channel, grpc::ClientContext* context) {
      return send(stubs_[channel].get(), context);
    });
  }
  v1::Data::Stub* Next() { return stubs_[pool_.Next()].get(); }
  void Prepare(const ChannelPool::Call& call, grpc::ClientContext* context) {
    pool_.Prepare(call, context);
  }

 private:
  ChannelPool pool_;
  std::vector<std::unique_ptr<v1::Data::Stub>> stubs_;
};

class RemoteTransaction : public TableTransaction {
 public:
  RemoteTransaction(std::shared_ptr<Connections> pool, std::string name)
      : pool_(std::move(pool)), name_(std::move(name)) {}
  ~RemoteTransaction() override {
    if (!ended_) (void)Rollback();
  }

  Result<uint64_t> Commit() override {
    ended_ = true;
    v1::CommitRequest request;
    v1::CommitResponse response;
    request.set_transaction(name_);
    CELLAR_TRY(pool_->Run({.safe_to_repeat = false, .changes = true},
                          [&](v1::Data::Stub* stub, grpc::ClientContext* context) {
                            return stub->Commit(context, request, &response);
                          }));
    return response.commit_version();
  }
  Status Rollback() override {
    ended_ = true;
    v1::RollbackRequest request;
    v1::RollbackResponse response;
    request.set_transaction(name_);
    return pool_->Run({.safe_to_repeat = false},
                      [&](v1::Data::Stub* stub, grpc::ClientContext* context) {
                        return stub->Rollback(context, request, &response);
                      });
  }
  const void* owner() const override { return pool_.get(); }
  const std::string& name() const { return name_; }

 private:
  std::shared_ptr<Connections> pool_;
  const std::string name_;
  bool ended_ = false;
};

// Error: 22023 for a transaction of another store.
Status PutCall(const Connections& pool, const CallOptions& options, uint64_t schema_version,
               v1::CallOptions* sent) {
  if (options.transaction != nullptr) {
    if (options.transaction->owner() != &pool) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "the transaction is another store's");
    }
    sent->set_transaction(static_cast<const RemoteTransaction*>(options.transaction)->name());
  }
  sent->set_idempotency_id(options.idempotency_id);
  sent->set_schema_version(schema_version);
  sent->set_relaxed_durability(options.relaxed_durability);
  return Status();
}

ChannelPool::Call ReadCall(const CallOptions& options) {
  return {.safe_to_repeat = options.transaction == nullptr,
          .timeout = options.timeout,
          .cancel = options.cancel};
}

ChannelPool::Call WriteCall(const CallOptions& options) {
  return {.safe_to_repeat = options.transaction == nullptr && !options.idempotency_id.empty(),
          .timeout = options.timeout,
          .cancel = options.cancel,
          .changes = options.transaction == nullptr};
}

// The columns of an answer, by the names asked for.
Result<std::vector<uint32_t>> PositionsOf(const TableSchema& schema, const Projection& columns) {
  std::vector<uint32_t> positions;
  if (columns.all()) {
    for (uint32_t i = 0; i < schema.columns.size(); ++i) positions.push_back(i);
    return positions;
  }
  for (const std::string& name : columns.names()) {
    const int position = schema.FindColumn(name);
    if (position < 0) {
      return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn, "column \"{}\" does not exist",
                      name);
    }
    positions.push_back(static_cast<uint32_t>(position));
  }
  return positions;
}

std::vector<Type> TypesAt(const TableSchema& schema, std::span<const uint32_t> positions) {
  std::vector<Type> types;
  for (uint32_t position : positions) types.push_back(schema.columns[position].type);
  return types;
}

class RemoteScanner : public Scanner {
 public:
  RemoteScanner(std::shared_ptr<Connections> pool, SchemaPtr schema,
                std::vector<uint32_t> positions, const CallOptions& options)
      : pool_(std::move(pool)), schema_(std::move(schema)), cancel_(options.cancel) {
    types_ = TypesAt(*schema_, positions);
    rows_.SetColumns(schema_, positions);
    pool_->Prepare({.timeout = options.timeout}, &context_);
    stub_ = pool_->Next();
  }
  ~RemoteScanner() override {
    if (reader_ != nullptr && !finished_) {
      context_.TryCancel();
      reader_->Finish();
    }
  }
  void Start(const v1::ScanRequest& request) { reader_ = stub_->Scan(&context_, request); }

  EndReason end_reason() const override { return end_reason_; }
  std::string resume_token() const override { return token_; }
  uint64_t rows_examined() const override { return examined_; }

 protected:
  Result<const RowSet*> DoNext() override {
    if (finished_) return nullptr;
    if (cancel_ != nullptr) CELLAR_TRY(cancel_->Check());
    while (reader_->Read(&message_)) {
      token_ = message_.resume_token();
      if (message_.end_reason() != v1::END_REASON_UNSPECIFIED) {
        end_reason_ = static_cast<EndReason>(message_.end_reason());
        examined_ = message_.rows_examined();
      }
      if (message_.rows().rows() == 0) continue;
      // The first block says what the types are now.
      if (message_.rows().columns_size() > 0 && message_.rows().columns(0).has_type()) {
        CELLAR_TRY_ASSIGN(types_, rpc::TypesOf(message_.rows()));
      }
      CELLAR_TRY(rpc::BorrowRows(message_.rows(), types_, rows_.mutable_batch()));
      return &rows_;
    }
    finished_ = true;
    const Status status = rpc::FromGrpc(reader_->Finish(), context_);
    CELLAR_TRY(status);
    if (end_reason_ == EndReason::kNone) {
      return Status(Code::kUnavailable, "the scan broke off")
          .WithSqlState(sqlstate::kConnectionFailure);
    }
    return nullptr;
  }

 private:
  std::shared_ptr<Connections> pool_;
  SchemaPtr schema_;
  const CancelToken* cancel_;
  std::vector<Type> types_;
  grpc::ClientContext context_;
  v1::Data::Stub* stub_;
  std::unique_ptr<grpc::ClientReader<v1::ResultSet>> reader_;
  v1::ResultSet message_;  // holds the bytes of rows_
  RowSet rows_;
  std::string token_;
  EndReason end_reason_ = EndReason::kNone;
  uint64_t examined_ = 0;
  bool finished_ = false;
};

// Times that a call is made again beside changes of the schema.
constexpr int kMaxRenewals = 50;

class RemoteTable : public Table, public std::enable_shared_from_this<RemoteTable> {
 public:
  RemoteTable(std::shared_ptr<Connections> pool, SchemaPtr schema)
      : pool_(std::move(pool)), schema_(std::move(schema)) {}

  SchemaPtr schema() const override { return std::atomic_load(&schema_); }

  Result<SchemaPtr> Refresh() override {
    v1::DescribeRequest request;
    v1::DescribeResponse response;
    const SchemaPtr known = schema();
    request.set_table(known->path);
    request.set_known_version(known->version);
    CELLAR_TRY(pool_->Run({.safe_to_repeat = true},
                          [&](v1::Data::Stub* stub, grpc::ClientContext* context) {
                            return stub->Describe(context, request, &response);
                          }));
    if (!response.unchanged()) std::atomic_store(&schema_, rpc::TakeSchema(response.schema()));
    return schema();
  }

  Status Get(std::span<const Key> keys, const GetOptions& options, RowSet* rows) override {
    return WithSchema(options.call, [&](const SchemaPtr& now) -> Status {
      v1::GetRequest request;
      v1::GetResponse response;
      request.set_table(now->path);
      request.set_index(options.index);
      request.set_for_update(options.for_update);
      for (const Key& key : keys) rpc::PutKey(key, request.add_keys());
      CELLAR_TRY_ASSIGN(std::vector<uint32_t> positions, PositionsOf(*now, options.columns));
      // None named: all, at the version that is sent with them.
      if (!options.columns.all()) {
        for (uint32_t position : positions) request.add_columns(now->columns[position].name);
      }
      CELLAR_TRY(PutCall(*pool_, options.call, now->version, request.mutable_options()));
      CELLAR_TRY(pool_->Run(ReadCall(options.call),
                            [&](v1::Data::Stub* stub, grpc::ClientContext* context) {
                              response.Clear();
                              return stub->Get(context, request, &response);
                            }));
      CELLAR_TRY(Take(response, now, positions, rows));
      if (response.key_positions_size() == 0) {
        for (uint32_t i = 0; i < rows->size(); ++i) rows->mutable_key_positions()->push_back(i);
      }
      return Status();
    });
  }

  Status Lookup(std::string_view index, std::span<const Key> keys, const Projection& columns,
                const LookupOptions& options, RowSet* rows) override {
    return WithSchema(options.call, [&](const SchemaPtr& now) -> Status {
      v1::LookupRequest request;
      v1::LookupResponse response;
      request.set_table(now->path);
      request.set_index(std::string(index));
      request.set_max_rows(options.max_rows);
      for (const Key& key : keys) rpc::PutKey(key, request.add_keys());
      CELLAR_TRY_ASSIGN(std::vector<uint32_t> positions, PositionsOf(*now, columns));
      for (uint32_t position : positions) request.add_columns(now->columns[position].name);
      CELLAR_TRY(PutCall(*pool_, options.call, now->version, request.mutable_options()));
      CELLAR_TRY(pool_->Run(ReadCall(options.call),
                            [&](v1::Data::Stub* stub, grpc::ClientContext* context) {
                              response.Clear();
                              return stub->Lookup(context, request, &response);
                            }));
      return Take(response, now, positions, rows);
    });
  }

  Result<std::unique_ptr<Scanner>> Scan(const ScanOptions& options) override {
    const auto version = std::make_shared<uint64_t>();
    CELLAR_TRY_ASSIGN(std::unique_ptr<Scanner> scan, SendScan(options, version.get()));
    if (options.call.schema_version != 0) return scan;
    return std::unique_ptr<Scanner>(std::make_unique<RestartingScanner>(
        std::move(scan),
        [table = shared_from_this(), options, version](
            const Status& failed, int attempt) -> Result<std::unique_ptr<Scanner>> {
          CELLAR_TRY(table->FollowSchema(options.call, *version, failed, attempt));
          return table->SendScan(options, version.get());
        }));
  }

  Result<WriteResult> PutCells(const SchemaPtr& schema, const CellBatch& cells,
                               const PutOptions& options) override {
    CELLAR_TRY(CheckCells(schema.get(), cells));
    if (schema == nullptr) return WriteResult();
    v1::PutRequest request;
    v1::PutResponse response;
    rpc::PutRows(cells.rows, 0, cells.rows.size(), false, request.mutable_rows());
    for (size_t c = 0; c < cells.unset.size(); ++c) {
      const std::vector<uint8_t>& unset = cells.unset[c];
      if (unset.empty()) continue;
      std::string* bits =
          request.mutable_rows()->mutable_columns(static_cast<int>(c))->mutable_unset();
      bits->assign((unset.size() + 7) / 8, '\0');
      for (size_t row = 0; row < unset.size(); ++row) {
        if (unset[row] != 0) {
          (*bits)[row / 8] = static_cast<char>((*bits)[row / 8] | (1 << (row % 8)));
        }
      }
    }
    request.set_mode(static_cast<v1::PutMode>(options.mode));
    for (const Expectation& expectation : options.expect) {
      rpc::PutExpectation(expectation, request.add_expectations());
    }
    // The cells are of this schema; the server goes by names, of one that it tells us of.
    SchemaPtr now = schema;
    for (int attempt = 0;; ++attempt) {
      CELLAR_TRY_ASSIGN(const std::vector<uint32_t> positions,
                        PositionsIn(*now, *schema, cells.positions));
      request.set_table(now->path);
      request.clear_columns();
      for (uint32_t position : positions) request.add_columns(now->columns[position].name);
      CELLAR_TRY(PutCall(*pool_, options.call, now->version, request.mutable_options()));
      Status status = pool_->Run(WriteCall(options.call),
                                 [&](v1::Data::Stub* stub, grpc::ClientContext* context) {
                                   response.Clear();
                                   return stub->Put(context, request, &response);
                                 });
      if (status.ok()) return rpc::TakeResult(response.result());
      CELLAR_TRY(FollowSchema(options.call, now->version, status, attempt));
      now = this->schema();
    }
  }

  Result<WriteResult> Delete(std::span<const Key> keys, const DeleteOptions& options) override {
    v1::DeleteRequest request;
    for (const Key& key : keys) rpc::PutKey(key, request.add_keys());
    for (const Expectation& expectation : options.expect) {
      rpc::PutExpectation(expectation, request.add_expectations());
    }
    return SendDelete(&request, options);
  }

  Result<WriteResult> DeleteSpans(std::span<const KeySpan> spans,
                                  const DeleteOptions& options) override {
    v1::DeleteRequest request;
    for (const KeySpan& span : spans) rpc::PutSpan(span, request.add_spans());
    if (spans.empty()) request.add_spans();
    return SendDelete(&request, options);
  }

  Result<IncrementResult> Increment(std::span<const RowChange> rows,
                                    const IncrementOptions& options) override {
    const SchemaPtr now = schema();
    v1::IncrementRequest request;
    v1::IncrementResponse response;
    request.set_table(now->path);
    request.set_must_exist(options.must_exist);
    for (const RowChange& row : rows) {
      v1::RowChange* sent = request.add_rows();
      rpc::PutKey(row.key, sent->mutable_key());
      for (const CellChange& change : row.changes) {
        v1::Change* one = sent->add_changes();
        one->set_column(change.column);
        rpc::PutCell(change.amount, one->mutable_amount());
      }
    }
    CELLAR_TRY(
        PutCall(*pool_, options.call, options.call.schema_version, request.mutable_options()));
    CELLAR_TRY(Renewing(pool_->Run(WriteCall(options.call),
                                   [&](v1::Data::Stub* stub, grpc::ClientContext* context) {
                                     response.Clear();
                                     return stub->Increment(context, request, &response);
                                   })));
    IncrementResult result;
    result.write = rpc::TakeResult(response.result());
    const SchemaPtr after = schema();
    std::vector<uint32_t> positions;
    for (const std::string& name : response.columns()) {
      const int position = after->FindColumn(name);
      if (position < 0) return result;  // renamed meanwhile: the change stands
      positions.push_back(static_cast<uint32_t>(position));
    }
    CELLAR_TRY_ASSIGN(std::vector<Type> types, rpc::TypesOf(response.rows()));
    result.rows.SetColumns(after, positions);
    CELLAR_TRY(rpc::TakeRows(response.rows(), types, result.rows.mutable_batch(), nullptr));
    return result;
  }

 private:
  template <typename Response>
  static Status Take(const Response& response, const SchemaPtr& now,
                     const std::vector<uint32_t>& positions, RowSet* rows) {
    rows->SetColumns(now, positions);
    const std::vector<Type> types = TypesAt(*now, positions);
    CELLAR_TRY(rpc::TakeRows(response.rows(), types, rows->mutable_batch(), nullptr));
    rows->mutable_key_positions()->assign(response.key_positions().begin(),
                                          response.key_positions().end());
    return Status();
  }

  // After a call has failed, perhaps because it went by a version of the schema that is not valid
  // any more: learns the new one, so that the call can be made again, for it has done nothing. The
  // failure itself comes back when that is no use; 40001 when it has spoiled the call's
  // transaction.
  Status FollowSchema(const CallOptions& options, uint64_t version, const Status& failed,
                      int attempt) {
    if (failed.sqlstate() != sqlstate::kObjectNotInPrerequisiteState &&
        failed.sqlstate() != sqlstate::kUndefinedColumn) {
      return failed;
    }
    if (options.schema_version != 0 || attempt >= kMaxRenewals) return failed;
    CELLAR_TRY(Refresh().status());
    if (schema()->version == version) return failed;
    if (options.transaction == nullptr) return Status();
    return SqlError(Code::kConflict, sqlstate::kSerializationFailure,
                    "could not serialize access due to a concurrent change of relation \"{}\"",
                    schema()->path);
  }

  // Runs a read until the schema that it went by was valid.
  template <typename Body>
  Status WithSchema(const CallOptions& options, const Body& body) {
    for (int attempt = 0;; ++attempt) {
      const SchemaPtr now = schema();
      Status status = body(now);
      if (status.ok()) return status;
      CELLAR_TRY(FollowSchema(options, now->version, status, attempt));
    }
  }

  // *version: of the schema that the scan goes by.
  Result<std::unique_ptr<Scanner>> SendScan(const ScanOptions& options, uint64_t* version) {
    std::unique_ptr<Scanner> scan;
    CELLAR_TRY(WithSchema(options.call, [&](const SchemaPtr& now) -> Status {
      *version = now->version;
      CELLAR_TRY_ASSIGN(std::vector<uint32_t> positions, PositionsOf(*now, options.columns));
      v1::ScanRequest request;
      request.set_table(now->path);
      request.set_index(options.index);
      for (const KeySpan& span : options.spans) rpc::PutSpan(span, request.add_spans());
      request.set_reverse(options.reverse);
      if (options.filter) rpc::PutFilter(*options.filter, request.mutable_filter());
      for (uint32_t position : positions) request.add_columns(now->columns[position].name);
      request.set_max_rows(options.max_rows);
      request.set_max_bytes(options.max_bytes);
      request.set_max_millis(static_cast<uint32_t>(options.max_time.count()));
      request.set_resume_token(options.resume_token);
      CELLAR_TRY(PutCall(*pool_, options.call, now->version, request.mutable_options()));
      auto sent = std::make_unique<RemoteScanner>(pool_, now, std::move(positions), options.call);
      sent->Start(request);
      scan = std::move(sent);
      return Status();
    }));
    return scan;
  }

  // Learns of a changed schema for the next call.
  Status Renewing(Status status) {
    if (status.sqlstate() == "55000" || status.sqlstate() == sqlstate::kUndefinedColumn) {
      (void)Refresh();
    }
    return status;
  }

  Result<WriteResult> SendDelete(v1::DeleteRequest* request, const DeleteOptions& options) {
    const SchemaPtr now = schema();
    v1::DeleteResponse response;
    request->set_table(now->path);
    if (options.filter) rpc::PutFilter(*options.filter, request->mutable_filter());
    CELLAR_TRY(
        PutCall(*pool_, options.call, options.call.schema_version, request->mutable_options()));
    CELLAR_TRY(Renewing(pool_->Run(WriteCall(options.call),
                                   [&](v1::Data::Stub* stub, grpc::ClientContext* context) {
                                     response.Clear();
                                     return stub->Delete(context, *request, &response);
                                   })));
    return rpc::TakeResult(response.result());
  }

  std::shared_ptr<Connections> pool_;
  SchemaPtr schema_;  // atomic
};

class RemoteStore : public TableStore {
 public:
  explicit RemoteStore(std::shared_ptr<Connections> pool) : pool_(std::move(pool)) {}

  Result<std::shared_ptr<Table>> OpenTable(std::string_view path) override {
    v1::DescribeRequest request;
    v1::DescribeResponse response;
    request.set_table(std::string(path));
    CELLAR_TRY(pool_->Run({.safe_to_repeat = true},
                          [&](v1::Data::Stub* stub, grpc::ClientContext* context) {
                            return stub->Describe(context, request, &response);
                          }));
    return std::shared_ptr<Table>(
        std::make_shared<RemoteTable>(pool_, rpc::TakeSchema(response.schema())));
  }

  Result<std::unique_ptr<TableTransaction>> Begin(const TableTransactionOptions& options) override {
    v1::BeginRequest request;
    v1::BeginResponse response;
    request.set_isolation(static_cast<v1::Isolation>(options.isolation));
    request.set_read_only(options.read_only);
    request.set_idempotency_id(options.idempotency_id);
    request.set_relaxed_durability(options.relaxed_durability);
    // One whose answer is lost is rolled back by the server after a while.
    CELLAR_TRY(pool_->Run({.safe_to_repeat = true},
                          [&](v1::Data::Stub* stub, grpc::ClientContext* context) {
                            return stub->Begin(context, request, &response);
                          }));
    return std::unique_ptr<TableTransaction>(
        std::make_unique<RemoteTransaction>(pool_, response.transaction()));
  }

  Result<Outcome> FindOutcome(std::string_view idempotency_id) override {
    v1::OutcomeRequest request;
    v1::OutcomeResponse response;
    request.set_idempotency_id(std::string(idempotency_id));
    CELLAR_TRY(pool_->Run({.safe_to_repeat = true},
                          [&](v1::Data::Stub* stub, grpc::ClientContext* context) {
                            return stub->Outcome(context, request, &response);
                          }));
    return response.outcome() == v1::TRANSACTION_OUTCOME_COMMITTED ? Outcome::kCommitted
                                                                   : Outcome::kAborted;
  }

 private:
  std::shared_ptr<Connections> pool_;
};

}  // namespace

Result<std::unique_ptr<TableStore>> Connect(const std::string& target,
                                            const ClientOptions& options) {
  auto pool = std::make_shared<Connections>(target, options);
  CELLAR_TRY(pool->Login());
  return std::unique_ptr<TableStore>(std::make_unique<RemoteStore>(std::move(pool)));
}

}  // namespace cellar
