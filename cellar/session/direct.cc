#include "cellar/session/direct.h"

#include <algorithm>
#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {

struct DirectStatement::Impl : public DirectRun {
  Impl(Session* owner_session, Session::Impl* internals) : owner(owner_session), s(internals) {}

  Status StartQuery(ResultSink* sink);
  Status StartUtility(ResultSink* sink);
  // One attempt: the whole of a statement that changes rows, the first batch of a query.
  Status Begin(bool alone);
  Status Finish();
  void Drop();
  Status Buffer();
  void Register(bool alone);
  void Unregister();
  void Interrupt() override;
  Result<const RowBatch*> NextBatch();
  void KeepCurrent();

  Session* owner;
  Session::Impl* s;
  std::shared_ptr<Prepared> prepared;
  std::unique_ptr<Portal> portal = std::make_unique<Portal>();
  RowBatch slice;
  const RowBatch* current = nullptr;  // what Next returned last
  RowBatch kept;                      // a copy of it, when its transaction ended first
  ResultSink* sink = nullptr;
  uint64_t affected = 0;
  bool running = false;      // Next has something to say
  bool open = false;         // the execution lives in the session's transaction
  bool implicit = false;     // that transaction is this statement's own
  bool interrupted = false;  // the transaction ended before the run
  Status lost;               // why the rest of its rows could not be kept for later
};

namespace {

// Keeps what a utility statement returns.
class CollectingSink : public ResultSink {
 public:
  CollectingSink(ResultSink* next, Portal* portal) : next_(next), portal_(portal) {}
  Status OnColumns(std::span<const ResultColumn> columns) override {
    portal_->columns.assign(columns.begin(), columns.end());
    std::vector<Type> types;
    for (const ResultColumn& column : columns) types.push_back(column.type);
    portal_->rows.Reset(types);
    return Status();
  }
  Status OnRows(const RowBatch& batch) override {
    portal_->rows.AppendAll(batch);
    return Status();
  }
  Status OnComplete(std::string_view tag) override {
    portal_->tag = tag;
    return Status();
  }
  Status OnEmptyQuery() override { return Status(); }
  Status OnNotice(const Notice& notice) override {
    return next_ == nullptr ? Status() : next_->OnNotice(notice);
  }
  Status OnParameter(std::string_view name, std::string_view value) override {
    return next_ == nullptr ? Status() : next_->OnParameter(name, value);
  }
  Status OnNotification(int32_t pid, std::string_view channel, std::string_view payload) override {
    return next_ == nullptr ? Status() : next_->OnNotification(pid, channel, payload);
  }
  Status OnCopyIn(int columns, bool binary) override {
    return next_ == nullptr ? NoCopy() : next_->OnCopyIn(columns, binary);
  }
  Status OnCopyInColumns(std::span<const ResultColumn> columns) override {
    return next_ == nullptr ? NoCopy() : next_->OnCopyInColumns(columns);
  }
  Result<bool> ReadCopyData(std::string* chunk) override {
    if (next_ == nullptr) return NoCopy();
    return next_->ReadCopyData(chunk);
  }
  Status OnCopyOut(int columns, bool binary) override {
    return next_ == nullptr ? NoCopy() : next_->OnCopyOut(columns, binary);
  }
  Status OnCopyData(std::string_view data) override {
    return next_ == nullptr ? NoCopy() : next_->OnCopyData(data);
  }
  Status OnCopyOutEnd() override { return next_ == nullptr ? NoCopy() : next_->OnCopyOutEnd(); }

 private:
  static Status NoCopy() {
    return UnsupportedError("COPY with STDIN or STDOUT has no client here");
  }
  ResultSink* next_;
  Portal* portal_;
};

// The number at the end of a command tag; 0 when there is none.
uint64_t CountOf(std::string_view tag) {
  const size_t space = tag.rfind(' ');
  uint64_t count = 0;
  if (space != std::string_view::npos)
    std::from_chars(tag.data() + space + 1, tag.data() + tag.size(), count);
  return count;
}

}  // namespace

DirectStatement::DirectStatement() = default;

DirectStatement::~DirectStatement() {
  if (impl_ != nullptr) (void)End();
}

Result<std::unique_ptr<DirectStatement>> DirectStatement::Prepare(Session* session,
                                                                  std::string_view text,
                                                                  std::span<const Type> types) {
  CELLAR_TRY(Settle(session));
  Session::Impl& s = *session->impl();
  // tidy: allow(new) the constructor is private
  std::unique_ptr<DirectStatement> direct(new DirectStatement);
  direct->impl_ = std::make_unique<Impl>(session, &s);
  Statement statement(text);
  StatementScope scope(&s, &statement, nullptr);
  auto run = [&]() -> Status {
    CELLAR_TRY(s.cancel.Check());
    Result<sql::Statement> parsed = sql::ParseOne(text);
    if (!parsed.ok()) return s.AddPosition(parsed.status(), text);
    CELLAR_TRY_ASSIGN(direct->impl_->prepared,
                      s.Prepare("", std::make_shared<const std::string>(text),
                                std::make_shared<const sql::Statement>(std::move(*parsed)),
                                {types.begin(), types.end()}));
    return Status();
  };
  Status status = s.Guarded(run);
  if (!status.ok()) {
    s.Fail();
    return status;
  }
  direct->impl_->portal->prepared = direct->impl_->prepared;
  direct->impl_->portal->statement->text = direct->impl_->prepared->text;
  return direct;
}

std::span<const Type> DirectStatement::parameter_types() const {
  return impl_->prepared->parameter_types;
}
const std::vector<ResultColumn>& DirectStatement::columns() const {
  impl_->prepared->announced = true;
  return impl_->portal->result_columns();
}
bool DirectStatement::returns_rows() const { return impl_->prepared->returns_rows; }
bool DirectStatement::stale() const {
  const Prepared& prepared = *impl_->prepared;
  // No plan: it was made anew and gave other columns.
  return prepared.plannable &&
         (prepared.plan == nullptr ||
          prepared.plan_generation != impl_->s->CurrentCatalog()->generation());
}
uint64_t DirectStatement::CommittedGeneration(Session* session) {
  return session->impl()->db->catalog->Current()->generation();
}
uint64_t DirectStatement::rows_affected() const { return impl_->affected; }

void DirectStatement::Impl::Register(bool alone) {
  open = true;
  implicit = alone;
  s->direct_runs.push_back(this);
}

void DirectStatement::Impl::Unregister() {
  if (!open) return;
  open = false;
  auto at = std::find(s->direct_runs.begin(), s->direct_runs.end(), this);
  if (at != s->direct_runs.end()) s->direct_runs.erase(at);
}

void DirectStatement::Impl::Interrupt() {
  KeepCurrent();
  open = false;
  interrupted = running;
  portal->execution.reset();
  portal->pending = nullptr;
}

// The end of an open run: its transaction ends when it is its own.
Status DirectStatement::Impl::Finish() {
  Unregister();
  if (portal->execution != nullptr) affected = portal->execution->rows_affected();
  s->Recycle(portal.get());
  running = false;
  if (!implicit || s->in_block || s->transaction == nullptr) return Status();
  implicit = false;
  return s->Commit(sink);
}

// Without an end: what the run did is rolled back by whoever calls this.
void DirectStatement::Impl::Drop() {
  Unregister();
  running = false;
  implicit = false;
  portal->execution.reset();
  portal->pending = nullptr;
  portal->rows.Clear();
}

Status DirectStatement::Impl::Begin(bool alone) {
  CELLAR_TRY(s->StartPortal(portal.get()));
  const sql::Plan& plan = *prepared->plan;
  if (plan.read_only && !plan.locks_rows) {
    Register(alone);
    CELLAR_TRY_ASSIGN(portal->pending, s->NextRows(portal.get()));
    running = portal->pending != nullptr;
    return running ? Status() : Finish();
  }
  if (prepared->returns_rows) {
    std::vector<Type> types;
    for (const ResultColumn& column : prepared->columns) types.push_back(column.type);
    portal->rows.Reset(types);
    portal->materialized = true;
  }
  while (true) {
    CELLAR_TRY_ASSIGN(const RowBatch* batch, s->NextRows(portal.get()));
    if (batch == nullptr) break;
    portal->rows.AppendAll(*batch);
  }
  affected = portal->execution->rows_affected();
  s->Recycle(portal.get());
  if (alone) CELLAR_TRY(s->Commit(sink));
  running = portal->materialized && portal->rows.size() > 0;
  return Status();
}

Status DirectStatement::Impl::StartQuery(ResultSink* result_sink) {
  StatementScope scope(s, portal->statement.get(), result_sink);
  const bool alone = !s->in_block && s->transaction == nullptr;
  for (int attempt = 0;; ++attempt) {
    Status status = s->cancel.Check();
    if (status.ok() && s->failed) {
      status = SqlError(Code::kInvalid, sqlstate::kInFailedSqlTransaction,
                        "current transaction is aborted, commands ignored until end of "
                        "transaction block");
    }
    if (status.ok()) status = Begin(alone);
    if (status.ok()) return status;
    Drop();
    s->Fail();
    if (!alone || !s->RetryAfter(status, attempt)) return s->AddPosition(status, prepared->text);
  }
}

Status DirectStatement::Impl::StartUtility(ResultSink* result_sink) {
  CollectingSink collecting(result_sink, portal.get());
  portal->rows.Clear();
  CELLAR_TRY(owner->ExecuteSimple(prepared->text, &collecting));
  portal->materialized = true;
  affected = CountOf(portal->tag);
  running = portal->rows.size() > 0;
  return Status();
}

Status DirectStatement::Start(std::span<const Datum> parameters, ResultSink* sink) {
  Impl& impl = *impl_;
  impl.current = nullptr;
  CELLAR_TRY(End());
  CELLAR_TRY(Settle(impl.owner));
  impl.sink = sink;
  impl.interrupted = false;
  impl.lost = Status();
  impl.affected = 0;
  Portal& portal = *impl.portal;
  portal.materialized = false;
  portal.position = 0;
  if (!impl.prepared->plannable) {
    if (!parameters.empty()) {
      return SqlError(Code::kInvalid, sqlstate::kProtocolViolation,
                      "this statement takes no parameters");
    }
    return impl.s->Guarded([&] { return impl.StartUtility(sink); });
  }
  if (parameters.size() != impl.prepared->parameter_types.size()) {
    return SqlError(Code::kInvalid, sqlstate::kProtocolViolation,
                    "{} parameters given, but the statement has {}", parameters.size(),
                    impl.prepared->parameter_types.size());
  }
  portal.parameters.assign(parameters.begin(), parameters.end());
  return impl.s->Guarded([&] { return impl.StartQuery(sink); });
}

const RowBatch* const* DirectStatement::current() const { return &impl_->current; }

Result<const RowBatch*> DirectStatement::Next() {
  impl_->current = nullptr;
  Result<const RowBatch*> batch = impl_->s->Guarded([this] { return impl_->NextBatch(); });
  if (batch.ok()) impl_->current = *batch;
  return batch;
}

void DirectStatement::Impl::KeepCurrent() {
  if (current == nullptr) return;
  std::vector<Type> types;
  for (const ColumnVector& column : current->columns()) types.push_back(column.type());
  kept.Reset(types);
  kept.AppendAll(*current);
  current = &kept;
}

Result<const RowBatch*> DirectStatement::Impl::NextBatch() {
  if (!running) return nullptr;
  if (!lost.ok()) {
    running = false;
    return lost;
  }
  if (interrupted) {
    running = false;
    return SqlError(Code::kInvalid, sqlstate::kInvalidCursorState,
                    "the transaction has ended before all rows were read");
  }
  if (portal->materialized) {
    const size_t count = std::min(portal->rows.size() - portal->position, kBatchRows);
    if (count == 0) {
      running = false;
      return nullptr;
    }
    if (count == portal->rows.size()) {
      portal->position = count;
      return &portal->rows;
    }
    SliceBatch(portal->rows, portal->position, portal->position + count, &slice);
    portal->position += count;
    return &slice;
  }
  if (portal->pending != nullptr) return std::exchange(portal->pending, nullptr);
  StatementScope scope(s, portal->statement.get(), sink, 0, true);
  Result<const RowBatch*> batch = s->NextRows(portal.get());
  if (batch.ok() && *batch != nullptr) return batch;
  Status status = batch.ok() ? Finish() : batch.status();
  if (!status.ok()) {
    Unregister();
    running = false;
    portal->execution.reset();
    s->Fail();
    return s->AddPosition(status, prepared->text);
  }
  return nullptr;
}

Status DirectStatement::End() {
  if (!impl_->running) return Status();
  if (impl_->open) return impl_->Finish();
  impl_->running = false;
  return Status();
}

Status DirectStatement::Stop() {
  Impl& impl = *impl_;
  const bool reads = impl.prepared->plan != nullptr && impl.prepared->plan->read_only &&
                     !impl.prepared->plan->locks_rows;
  if (!impl.running || impl.interrupted || !impl.lost.ok() || !(impl.open || reads))
    return Status();
  const bool within_transaction = impl.open;
  impl.current = nullptr;
  impl.Drop();
  if (within_transaction) impl.s->Fail();
  CancelToken cancelled;
  cancelled.Cancel(CancelToken::Reason::kUser);
  return cancelled.Check();
}

void DirectStatement::Abandon() {
  impl_->current = nullptr;
  impl_->Drop();
}

bool DirectStatement::buffered() const {
  const Impl& impl = *impl_;
  return !impl.running || impl.interrupted || !impl.lost.ok() || impl.portal->materialized;
}

Status DirectStatement::Impl::Buffer() {
  KeepCurrent();
  std::vector<Type> types;
  for (const ResultColumn& column : prepared->columns) types.push_back(column.type);
  portal->rows.Reset(types);
  portal->position = 0;
  const RowBatch* batch = std::exchange(portal->pending, nullptr);
  while (true) {
    if (batch == nullptr) {
      CELLAR_TRY_ASSIGN(batch, s->NextRows(portal.get()));
    }
    if (batch == nullptr) break;
    portal->rows.AppendAll(*batch);
    batch = nullptr;
    if (portal->rows.footprint_bytes() > s->settings.hot().work_mem_bytes) {
      return SqlError(Code::kLimit, sqlstate::kOutOfMemory, "out of memory for this query")
          .WithDetail(
              "The rows of a query that is still being read had to be kept for another statement.")
          .WithHint("Read a query to its end first, or run both in one transaction block.");
    }
  }
  portal->materialized = true;
  return Status();
}

Status DirectStatement::Settle(Session* session, bool within_blocks) {
  Session::Impl& s = *session->impl();
  if (s.direct_runs.empty() || (s.in_block && !within_blocks)) return Status();
  Status status;
  std::vector<DirectRun*> runs = s.direct_runs;
  for (DirectRun* run : runs) {
    auto& impl = static_cast<Impl&>(*run);
    impl.lost = s.Guarded([&impl] { return impl.Buffer(); });
    Status finished = impl.Finish();
    if (impl.lost.ok()) impl.lost = std::move(finished);
    impl.running = true;
    if (status.ok()) status = impl.lost;
  }
  if (!status.ok()) s.Fail();
  return status;
}

}  // namespace cellar::session
