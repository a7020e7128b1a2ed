#include "cellar/kv/faulty_engine.h"

#include "cellar/base/sqlstate.h"

namespace cellar::kv {
namespace {

Status Injected(Fault fault) {
  switch (fault) {
    case Fault::kNone: return {};
    case Fault::kConflict:
      return SqlError(Code::kConflict, sqlstate::kSerializationFailure, "injected conflict");
    case Fault::kUnavailable:
      return SqlError(Code::kUnavailable, sqlstate::kIoError, "injected failure");
    case Fault::kUnknownApplied:
    case Fault::kUnknownLost:
      return SqlError(Code::kCommitUnknown, sqlstate::kStatementCompletionUnknown,
                      "injected loss of the commit's outcome");
  }
  return InternalError("no such fault");
}

class FaultyCursor : public Cursor {
 public:
  FaultyCursor(std::unique_ptr<Cursor> cursor, const FaultHook* hook)
      : cursor_(std::move(cursor)), hook_(hook) {}
  Result<bool> NextBlock(Block* block) override {
    CELLAR_TRY(Injected((*hook_)(FaultPoint::kRead)));
    return cursor_->NextBlock(block);
  }
  Result<bool> NextView(std::string_view* key, std::string_view* value) override {
    CELLAR_TRY(Injected((*hook_)(FaultPoint::kRead)));
    return cursor_->NextView(key, value);
  }

 private:
  const std::unique_ptr<Cursor> cursor_;
  const FaultHook* const hook_;
};

class FaultyTransaction : public Transaction {
 public:
  FaultyTransaction(std::unique_ptr<Transaction> inner, const FaultHook* hook, bool durable)
      : inner_(std::move(inner)), hook_(hook), durable_(durable) {}

  ReadViewPtr OpenView(const ReadView* writes_of) override { return inner_->OpenView(writes_of); }
  ReadViewPtr OpenNewestView(const ReadView* writes_of) override {
    return inner_->OpenNewestView(writes_of);
  }
  Result<bool> WroteSince(std::string_view key, const ReadView& view) override {
    return inner_->WroteSince(key, view);
  }
  Result<bool> Get(std::string_view key, PinnedValue* value, const ReadOptions& options) override {
    CELLAR_TRY(Ask(FaultPoint::kRead));
    return inner_->Get(key, value, options);
  }
  Status MultiGet(std::span<const std::string_view> keys, std::span<PinnedValue> values,
                  std::span<bool> found, const ReadOptions& options) override {
    CELLAR_TRY(Ask(FaultPoint::kRead));
    return inner_->MultiGet(keys, values, found, options);
  }
  Result<std::unique_ptr<Cursor>> Scan(std::string_view start, std::string_view end,
                                       const ScanOptions& options) override {
    CELLAR_TRY_ASSIGN(std::unique_ptr<Cursor> cursor, inner_->Scan(start, end, options));
    return std::unique_ptr<Cursor>(std::make_unique<FaultyCursor>(std::move(cursor), hook_));
  }
  Status Put(std::string_view key, std::string_view value) override {
    CELLAR_TRY(Ask(FaultPoint::kWrite));
    return inner_->Put(key, value);
  }
  Status Delete(std::string_view key) override {
    CELLAR_TRY(Ask(FaultPoint::kWrite));
    return inner_->Delete(key);
  }
  Status DeleteRange(std::string_view start, std::string_view end) override {
    CELLAR_TRY(Ask(FaultPoint::kWrite));
    return inner_->DeleteRange(start, end);
  }
  Status PutIfAbsent(std::string_view key, std::string_view value) override {
    CELLAR_TRY(Ask(FaultPoint::kWrite));
    return inner_->PutIfAbsent(key, value);
  }
  std::string_view duplicate_key() const override { return inner_->duplicate_key(); }
  Status AddReadConflict(std::string_view start, std::string_view end) override {
    return inner_->AddReadConflict(start, end);
  }
  Status AddReadConflict(std::string_view key) override { return inner_->AddReadConflict(key); }
  bool HoldReads(bool on) override { return inner_->HoldReads(on); }
  Status AddWriteConflict(std::string_view start, std::string_view end) override {
    return inner_->AddWriteConflict(start, end);
  }
  Status AddWriteConflict(std::string_view key) override { return inner_->AddWriteConflict(key); }
  Status Require(std::string_view key, uint64_t version) override {
    return inner_->Require(key, version);
  }
  Status AddToCounter(std::string_view name, const CounterValues& values) override {
    CELLAR_TRY(Ask(FaultPoint::kWrite));
    return inner_->AddToCounter(name, values);
  }
  Status CreateCounter(std::string_view name) override { return inner_->CreateCounter(name); }
  Status DropCounter(std::string_view name) override { return inner_->DropCounter(name); }
  Result<std::optional<CounterValues>> GetCounter(std::string_view name,
                                                  const ReadView* view) override {
    CELLAR_TRY(Ask(FaultPoint::kRead));
    return inner_->GetCounter(name, view);
  }
  Result<LockResult> Lock(std::span<const std::string_view> keys,
                          const LockOptions& options) override {
    CELLAR_TRY(Ask(FaultPoint::kLock));
    return inner_->Lock(keys, options);
  }
  Result<bool> LockName(LockKind kind, std::string_view name, const LockOptions& options) override {
    CELLAR_TRY(Ask(FaultPoint::kLock));
    return inner_->LockName(kind, name, options);
  }
  SavepointId Savepoint() override { return inner_->Savepoint(); }
  Status RollbackTo(SavepointId savepoint) override { return inner_->RollbackTo(savepoint); }
  Status ReleaseSavepoint(SavepointId savepoint) override {
    return inner_->ReleaseSavepoint(savepoint);
  }
  Status RefreshSnapshot() override { return inner_->RefreshSnapshot(); }
  uint64_t snapshot_version(const ReadView* view) override {
    return inner_->snapshot_version(view);
  }
  TransactionStats stats() const override { return inner_->stats(); }
  Result<uint64_t> Commit(const CommitOptions& options) override {
    const Fault fault = (*hook_)(FaultPoint::kCommit);
    if (fault == Fault::kNone) return inner_->Commit(options);
    if (fault == Fault::kUnknownApplied) {
      Result<uint64_t> version = inner_->Commit(options);
      return version.ok() ? Injected(fault) : version.status();
    }
    inner_->Abort();
    return Injected(fault);
  }
  Result<uint64_t> Commit() override { return Commit(CommitOptions{durable_}); }
  void Abort() override { inner_->Abort(); }

 private:
  Status Ask(FaultPoint point) { return Injected((*hook_)(point)); }

  const std::unique_ptr<Transaction> inner_;
  const FaultHook* const hook_;
  const bool durable_;
};

}  // namespace

std::unique_ptr<Transaction> FaultyEngine::Begin(const TransactionOptions& options) {
  return std::make_unique<FaultyTransaction>(engine_->Begin(options), &hook_, options.durable);
}

Limits FaultyEngine::limits() const {
  Limits limits = engine_->limits();
  limits.unknown_commit = true;
  return limits;
}

}  // namespace cellar::kv
