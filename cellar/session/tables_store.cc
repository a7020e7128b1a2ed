// The store of the table API: sessions for calls, transactions, names of tables.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/catalog/unreadable.h"
#include "cellar/session/tables_internal.h"

namespace cellar::session {

namespace {

// What a program holds of a store.
class StoreHandle : public TableStore {
 public:
  explicit StoreHandle(std::shared_ptr<tables::Store> store) : store_(std::move(store)) {}
  Result<std::shared_ptr<cellar::Table>> OpenTable(std::string_view path) override {
    return store_->OpenTable(path);
  }
  Result<std::unique_ptr<TableTransaction>> Begin(const TableTransactionOptions& options) override {
    return store_->Begin(options);
  }
  Result<Outcome> FindOutcome(std::string_view idempotency_id) override {
    return store_->FindOutcome(idempotency_id);
  }

 private:
  std::shared_ptr<tables::Store> store_;
};

}  // namespace

Result<std::unique_ptr<TableStore>> OpenTables(Database* database, const SessionOptions& options,
                                               std::shared_ptr<const void> keeps) {
  auto store = std::make_shared<tables::Store>(database, options, std::move(keeps));
  CELLAR_TRY_ASSIGN(std::unique_ptr<tables::Worker> worker, store->TakeWorker());
  store->GiveBack(std::move(worker));
  return std::unique_ptr<TableStore>(std::make_unique<StoreHandle>(std::move(store)));
}

namespace tables {
namespace {

Status NoTable(std::string_view name) {
  return SqlError(Code::kNotFound, sqlstate::kUndefinedTable, "table \"{}\" does not exist", name);
}

Status EndedError() {
  return SqlError(Code::kInvalid, sqlstate::kNoActiveSqlTransaction, "the transaction has ended");
}

}  // namespace

// ---- Worker ----

void Worker::Enter(const CallOptions& options) {
  if (++leases == 1) {
    running.emplace(s, &statement, nullptr, options.timeout.count());
  } else {
    running->Arm(options.timeout.count());
  }
  s->cancel.SetParent(options.cancel);
}

void Worker::Leave() {
  s->cancel.SetParent(nullptr);
  if (--leases == 0) running.reset();
}

Result<bool> Worker::StillIn() {
  if (s->cancel.ends_session()) return false;
  s->FollowRoles();
  const catalog::SnapshotPtr catalog = s->CurrentCatalog();
  if (s->roles_generation == checked_roles && catalog->generation() == checked_catalog) return true;
  if (s->Roles().OidOf(s->options.user) != s->login_oid) return false;
  const catalog::NamespacePtr space =
      catalog->FindNamespace(catalog::kRootNamespace, s->options.database);
  if (space == nullptr || space->id != login_database) return false;
  CELLAR_TRY(s->CheckLogin(*space, true));
  checked_roles = s->roles_generation;
  checked_catalog = catalog->generation();
  return true;
}

Result<KnownTable*> Worker::Find(catalog::TableId id) {
  s->FollowRoles();
  KnownTable& known = tables[id.value];
  const catalog::SnapshotPtr catalog = s->CurrentCatalog();
  if (known.table != nullptr && known.generation == catalog->generation() &&
      known.epoch == s->access_epoch) {
    return &known;
  }
  catalog::ForgetUnreadableMet();
  const catalog::TablePtr table = catalog->GetTable(id);
  if (table == nullptr || table->kind != catalog::RelationKind::kTable) {
    const std::string path =
        known.schema == nullptr ? std::to_string(id.value) : known.schema->path;
    tables.erase(id.value);
    return catalog::ExplainUnreadable(NoTable(path));
  }
  catalog::NamespaceId database = table->parent;
  catalog::NamespacePtr space = catalog->GetNamespace(database);
  while (space != nullptr && space->parent != catalog::kRootNamespace) {
    database = space->parent;
    space = catalog->GetNamespace(database);
  }
  if (space == nullptr) return NoTable(table->name);
  if (database != s->database_id) {
    // What its owner may, and where its names are found, goes by the database.
    s->database_id = database;
    s->database_name = space->name;
    s->entry->SetDatabase(database.value, space->name);
    ++s->access_epoch;
    if ((s->DatabaseRights(*space, s->user_oid).privileges & kConnect) == 0) {
      return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege,
                      "permission denied for database \"{}\"", space->name);
    }
  }
  CELLAR_TRY(s->CheckSchema(table->parent, kUsage));
  const bool same = known.table == table;
  known.generation = catalog->generation();
  known.epoch = s->access_epoch;
  known.database = database;
  // Plans name other tables too: they live as long as nothing changes at all.
  known.writes.clear();
  known.keys.clear();
  known.may_select.assign(table->columns.size(), 0);
  if (same) return &known;
  CELLAR_TRY_ASSIGN(known.schema, MakeSchema(*catalog, *table));
  known.table = table;
  known.ids.clear();
  known.all.clear();
  for (const TableColumn& column : known.schema->columns) {
    known.all.push_back(static_cast<uint32_t>(known.ids.size()));
    known.ids.push_back(codec::ColumnId{column.id});
  }
  return &known;
}

Status Worker::CheckSelect(KnownTable* known, std::span<const uint32_t> positions) {
  for (uint32_t position : positions) {
    if (known->may_select[position]) continue;
    sql::RelationUse use;
    use.relation = known->table;
    use.selects = true;
    use.selected = {known->ids[position]};
    CELLAR_TRY(s->CheckUse(use));
    known->may_select[position] = 1;
  }
  return Status();
}

Status Worker::Use(const KnownTable& known, bool writes) {
  if (writes) CELLAR_TRY(s->CheckWritable("writes"));
  if (!writes && !s->in_block) return Status();
  if (known.table->commit_version == catalog::kUncommitted) return Status();
  return s->RequireTable(*known.table, writes);
}

// ---- Lease ----

Lease& Lease::operator=(Lease&& other) noexcept {
  Release();
  store_ = other.store_;
  owned_ = std::move(other.owned_);
  worker_ = std::exchange(other.worker_, nullptr);
  return *this;
}

Result<Lease> Lease::Take(Store* store, const CallOptions& options) {
  Lease lease;
  lease.store_ = store;
  if (options.cancel != nullptr) CELLAR_TRY(options.cancel->Check());
  if (options.transaction != nullptr) {
    if (options.transaction->owner() != store) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "the transaction is another store's");
    }
    lease.worker_ = static_cast<TransactionImpl*>(options.transaction)->worker();
    if (lease.worker_ == nullptr) return EndedError();
    if (lease.worker_->s->failed) {
      return SqlError(Code::kInvalid, sqlstate::kInFailedSqlTransaction,
                      "the transaction has failed and can only be rolled back");
    }
  } else {
    CELLAR_TRY_ASSIGN(lease.owned_, store->TakeWorker());
    lease.worker_ = lease.owned_.get();
  }
  Session::Impl& s = *lease.worker_->s;
  lease.worker_->Enter(options);
  CELLAR_TRY(s.cancel.Check());
  return lease;
}

void Lease::Release() {
  if (worker_ == nullptr) return;
  Session::Impl& s = *worker_->s;
  worker_->Leave();
  worker_ = nullptr;
  if (owned_ == nullptr) return;
  if (s.transaction != nullptr) s.Rollback();
  store_->GiveBack(std::move(owned_));
}

// ---- Store ----

Result<std::unique_ptr<Worker>> Store::TakeWorker() {
  while (true) {
    std::unique_ptr<Worker> worker;
    {
      std::lock_guard lock(mutex_);
      if (idle_.empty()) break;
      worker = std::move(idle_.back());
      idle_.pop_back();
    }
    // One that is refused, or somebody else's by now, is closed.
    CELLAR_TRY_ASSIGN(const bool still_in, worker->StillIn());
    if (!still_in) continue;
    worker->s->entry->SetPooled(false);
    return worker;
  }
  auto worker = std::make_unique<Worker>();
  CELLAR_TRY_ASSIGN(worker->session, Session::Open(database_, options_));
  worker->s = worker->session->impl();
  worker->login_database = worker->s->database_id;
  worker->direct = direct_;
  return worker;
}

void Store::GiveBack(std::unique_ptr<Worker> worker) {
  worker->running.reset();  // scans that are left open have lost it
  worker->leases = 0;
  worker->s->cancel.SetParent(nullptr);
  worker->s->entry->SetPooled(true);
  std::lock_guard lock(mutex_);
  if (idle_.size() < kMaxIdleWorkers) idle_.push_back(std::move(worker));
}

Result<std::shared_ptr<cellar::Table>> Store::OpenTable(std::string_view path) {
  std::vector<std::string_view> names;
  for (size_t at = 0; at < path.size();) {
    if (path[at] != '/') return NoTable(path);
    const size_t end = std::min(path.find('/', at + 1), path.size());
    names.push_back(path.substr(at + 1, end - at - 1));
    at = end;
  }
  if (names.size() < 2) return NoTable(path);
  if (names.size() > 3) {
    return UnsupportedError("tables lie at most three names deep")
        .WithDetail(fmt::format("The path is \"{}\".", path));
  }
  CELLAR_TRY_ASSIGN(Lease lease, Lease::Take(this, {}));
  const catalog::SnapshotPtr catalog = lease->s->CurrentCatalog();
  catalog::ForgetUnreadableMet();
  catalog::NamespaceId parent = catalog::kRootNamespace;
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    const catalog::NamespacePtr space = catalog->FindNamespace(parent, names[i]);
    if (space == nullptr) return catalog::ExplainUnreadable(NoTable(path));
    parent = space->id;
  }
  const catalog::TablePtr table = catalog->FindTable(parent, names.back());
  if (table == nullptr) return catalog::ExplainUnreadable(NoTable(path));
  if (table->kind != catalog::RelationKind::kTable) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a table", path);
  }
  CELLAR_TRY_ASSIGN(KnownTable * known, lease->Find(table->id));
  return std::shared_ptr<cellar::Table>(
      std::make_shared<TableImpl>(shared_from_this(), table->id, known->schema));
}

Result<std::unique_ptr<TableTransaction>> Store::Begin(const TableTransactionOptions& options) {
  if (!options.idempotency_id.empty()) CELLAR_TRY(CheckId(options.idempotency_id));
  CELLAR_TRY_ASSIGN(Lease lease, Lease::Take(this, {}));
  lease.Release();
  CELLAR_TRY_ASSIGN(std::unique_ptr<Worker> worker, TakeWorker());
  Session::Impl& s = *worker->s;
  auto transaction =
      std::make_unique<TransactionImpl>(shared_from_this(), std::move(worker), options);
  CELLAR_TRY(s.EnsureTransaction(false));
  s.in_block = true;
  ast::TransactionModes modes;
  switch (options.isolation) {
    case Isolation::kSerializable: modes.isolation = ast::Isolation::kSerializable; break;
    case Isolation::kRepeatableRead: modes.isolation = ast::Isolation::kRepeatableRead; break;
    case Isolation::kReadCommitted: modes.isolation = ast::Isolation::kReadCommitted; break;
  }
  if (options.read_only) modes.read_only = ast::Tristate::kTrue;
  CELLAR_TRY(s.ApplyModes(modes));
  if (options.idempotency_id.empty())
    return std::unique_ptr<TableTransaction>(std::move(transaction));
  CELLAR_TRY_ASSIGN(std::optional<WriteResult> before,
                    ReadMarker(s.transaction->kv.get(), {s.login_oid, options.idempotency_id}));
  if (before.has_value()) {
    return SqlError(Code::kExists, "0B000", "a transaction with this id has committed");
  }
  return std::unique_ptr<TableTransaction>(std::move(transaction));
}

Result<Outcome> Store::FindOutcome(std::string_view idempotency_id) {
  CELLAR_TRY_ASSIGN(Lease lease, Lease::Take(this, {}));
  return ResolveMarker(db()->engine.get(), {lease->s->login_oid, idempotency_id});
}

// ---- TransactionImpl ----

Result<uint64_t> TransactionImpl::Commit() {
  if (worker_ == nullptr) return EndedError();
  Session::Impl& s = *worker_->s;
  if (s.failed) {
    return SqlError(Code::kInvalid, sqlstate::kInFailedSqlTransaction,
                    "the transaction has failed and can only be rolled back");
  }
  Status status;
  const std::string& id = options_.idempotency_id;
  const CallId own{s.login_oid, id};
  if (!id.empty() && !s.transaction->read_only) {
    Result<std::optional<WriteResult>> before = ReadMarker(s.transaction->kv.get(), own);
    status = !before.ok() ? before.status()
             : before->has_value()
                 ? SqlError(Code::kExists, "0B000", "a transaction with this id has committed")
                 : WriteMarker(s.transaction->kv.get(), own, true, {});
  }
  if (status.ok()) {
    s.relaxed_commit = options_.relaxed_durability;
    status = s.Commit(nullptr);
    s.relaxed_commit = false;
  }
  const uint64_t version = s.last_commit_version;
  (void)Rollback();
  if (!id.empty()) ForgetOldMarkers(store_->db()->engine.get());
  if (status.code() == Code::kConflict && !id.empty()) {
    // Perhaps with whoever declared it aborted: it is no use to run it again under this id.
    const std::unique_ptr<kv::Transaction> later = store_->db()->engine->Begin();
    CELLAR_TRY(ReadMarker(later.get(), own).status());
  }
  if (!status.ok()) return status;
  return version;
}

Status TransactionImpl::Rollback() {
  if (worker_ == nullptr) return Status();
  worker_->s->Rollback();
  store_->GiveBack(std::move(worker_));
  return Status();
}

}  // namespace tables
}  // namespace cellar::session
