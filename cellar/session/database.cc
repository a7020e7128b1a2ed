// Database: an open store shared by sessions.
#include "cellar/session/index_expressions.h"
#include "cellar/session/jobs.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {

Database::Database() = default;

Database::~Database() {
  if (impl_ == nullptr) return;
  JobService::Close(impl_.get());
  if (impl_->sealing != nullptr) impl_->sealing->Stop();
  if (impl_->read_counts != nullptr) impl_->read_counts->Stop();
  if (impl_->collecting != nullptr) impl_->collecting->Stop();
  if (impl_->statistics != nullptr) impl_->statistics->Stop();
}

Result<std::unique_ptr<Database>> Database::Open(std::unique_ptr<kv::Engine> engine,
                                                 const DatabaseOptions& options) {
  // tidy: allow(new) the constructor is private
  std::unique_ptr<Database> database(new Database);  // NOLINT: private constructor
  database->impl_ = std::make_unique<Impl>();
  InstallIndexExpressions();
  Impl& impl = *database->impl_;
  impl.options = options;
  if (!options.table_layout.empty()) CELLAR_TRY(ParseLayout(options.table_layout).status());
  SealMode seal = SealMode::kAuto;
  if (!options.seal.empty()) {
    CELLAR_TRY_ASSIGN(seal, ParseSealMode(options.seal));
  }
  impl.engine = std::move(engine);
  CELLAR_TRY_ASSIGN(impl.catalog, catalog::Catalog::Open(impl.engine.get()));
  impl.tables = std::make_unique<table::TableStore>(impl.engine.get());
  impl.sealer = std::make_unique<table::Sealer>(impl.engine.get(), impl.tables.get());
  impl.sealing = std::make_unique<SealService>(impl.catalog.get(), impl.sealer.get());
  impl.statistics =
      std::make_unique<StatisticsService>(impl.engine.get(), impl.catalog.get(), impl.tables.get());
  impl.sequences = std::make_unique<SequenceCache>(impl.engine.get());
  impl.quotas = std::make_unique<Quotas>(impl.catalog.get());
  impl.roles = std::make_unique<RoleStore>(impl.engine.get());
  CELLAR_TRY(impl.roles->Load());
  impl.start_micros = NowMicros();
  impl.clock = std::make_unique<StoreClock>(impl.engine.get());
  int64_t seen = 0;
  const catalog::SnapshotPtr catalog = impl.catalog->Current();
  for (const auto& table : catalog->ListDroppedTables())
    seen = std::max(seen, table->dropped_at_ticks);
  for (const auto& space : catalog->ListDroppedNamespaces())
    seen = std::max(seen, space->dropped_at_ticks);
  CELLAR_TRY(impl.clock->Load(seen));
  impl.collector = std::make_unique<Collector>(impl.catalog.get(), impl.clock.get(),
                                               [&impl](catalog::TableId storage) {
                                                 impl.tables->Forget(storage);
                                                 impl.sequences->Forget(storage);
                                               });
  impl.collecting = std::make_unique<CollectService>(impl.collector.get(), impl.clock.get());
  if (options.read_only) {
    CELLAR_TRY(RefreshStaleCollations(database.get()));
    return database;
  }
  CELLAR_TRY(DropLeftoverTemporarySchemas(&impl));
  CELLAR_TRY(RefreshStaleCollations(database.get()));
  if (seal != SealMode::kAuto) impl.sealing->Pause();
  impl.sealing->Start();
  impl.read_counts = std::make_unique<ReadCounts>(impl.tables.get());
  impl.read_counts->Start();
  impl.collecting->Start();
  impl.statistics->Start();
  JobService::Open(database.get());
  return database;
}

bool Database::Cancel(int32_t pid, int32_t secret) {
  if (!impl_->sessions.Cancel(pid, secret)) return false;
  return true;
}

void Database::BeginShutdown() {
  impl_->shutting_down.store(true);
  // First those whose clients wait; the store's own threads end at their next step.
  impl_->sessions.EndAll();
  if (JobService* jobs = JobService::Of(impl_.get())) jobs->Stop();
  impl_->sealing->Stop();
  if (impl_->read_counts != nullptr) impl_->read_counts->Stop();
  impl_->collecting->Stop();
  impl_->statistics->Stop();
}

std::vector<std::string> Database::RunningSessions() const {
  std::vector<std::string> running;
  for (const SessionView& view : impl_->sessions.Views()) {
    if (view.state == SessionState::kActive)
      running.push_back(fmt::format("{} ({})", view.pid, view.user));
  }
  return running;
}

std::optional<std::string> Database::PasswordVerifier(std::string_view role) {
  std::optional<Role> found = impl_->roles->Find(role);
  if (!found || found->verifier.empty()) return std::nullopt;
  // No password proves anything against this.
  if (found->valid_until_micros && *found->valid_until_micros < NowMicros()) return "expired";
  return found->verifier;
}

bool Database::RoleExists(std::string_view role) {
  std::optional<Role> found = impl_->roles->Find(role);
  return found.has_value();
}

bool Database::IsSuperuser(std::string_view role) {
  const RoleSetPtr roles = impl_->roles->Current();
  return roles->IsSuperuser(roles->OidOf(role));
}

bool Database::IsMember(std::string_view user, std::string_view role) {
  const RoleSetPtr roles = impl_->roles->Current();
  const uint32_t member = roles->OidOf(user), group = roles->OidOf(role);
  return member != 0 && group != 0 && roles->IsGrantedMember(member, group, 0);
}

kv::Engine* Database::engine() { return impl_->engine.get(); }

uint64_t Database::retries() const { return impl_->retries.load(std::memory_order_relaxed); }

}  // namespace cellar::session
