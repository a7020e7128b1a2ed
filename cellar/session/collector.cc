#include "cellar/session/collector.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "cellar/base/memory_account.h"
#include "cellar/catalog/unreadable.h"
#include "cellar/codec/key.h"
#include "cellar/table/access.h"

namespace cellar::session {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kLookEvery{1};
constexpr std::chrono::seconds kSaveClockEvery{60};
constexpr milliseconds kLeastRest{1};
// After so many keys the engine is asked to give their space back at once.
constexpr uint64_t kKeysWorthCompacting = 10000;
constexpr uint64_t kBytesWorthCompacting = 4 << 20;

}  // namespace

std::string SequenceRecordKey(catalog::TableId storage) {
  return codec::SystemKey("seq", {storage.value});
}

Result<CollectStep> Collector::Step() {
  const catalog::SnapshotPtr catalog = catalog_->Current();
  const int64_t now = clock_->Ticks();
  std::set<uint64_t> parents;  // of what is still in the bin
  for (const catalog::TablePtr& table : catalog->ListDroppedTables()) {
    if (table->state == catalog::ObjectState::kCollecting) return Continue(*table);
    if (MicrosLeft(*table, now) == 0) return Begin(*table);
    parents.insert(table->parent.value);
  }
  // One that does not read may be of a table in the bin, in any namespace.
  if (catalog::HasUnreadable(*catalog)) return CollectStep();
  const std::vector<catalog::NamespacePtr> spaces = catalog->ListDroppedNamespaces();
  for (const catalog::NamespacePtr& space : spaces) parents.insert(space->parent.value);
  for (const catalog::NamespacePtr& space : spaces) {
    // What is in it is found by its name.
    if (parents.contains(space->id.value)) continue;
    if (space->state == catalog::ObjectState::kCollecting || MicrosLeft(*space, now) == 0) {
      return Remove(*space);
    }
  }
  return CollectStep();
}

Result<CollectStep> Collector::Begin(catalog::TableDescriptor table) {
  std::unique_ptr<kv::Transaction> transaction = catalog_->engine()->Begin();
  catalog::CatalogEditor editor(catalog_, transaction.get());
  table.state = catalog::ObjectState::kCollecting;
  CELLAR_TRY(editor.UpdateDroppedTable(std::move(table)));
  CELLAR_TRY(catalog_->Commit(editor, {.makes_room = true}).status());
  return CollectStep{CollectAction::kBegun};
}

Result<CollectStep> Collector::Continue(const catalog::TableDescriptor& table) {
  if (table.kind != catalog::RelationKind::kTable) return Remove(table);
  const codec::KeyRange range = codec::PrefixRange(codec::TablePrefix(table.storage_id()));
  Progress& progress = progress_[table.storage_id().value];
  if (progress.position.empty()) progress.position = range.start;
  kv::TransactionOptions options;
  // Nobody can have read these keys who may still commit: the descriptor has changed.
  options.isolation = kv::Isolation::kSnapshot;
  options.unmarked_writes = true;
  std::unique_ptr<kv::Transaction> transaction = catalog_->engine()->Begin(options);
  kv::ScanOptions scan;
  scan.keys_only = true;
  scan.fill_cache = false;
  scan.limit = kKeysAStep;
  scan.mode = kv::ReadMode::kSnapshot;
  uint64_t keys = 0;
  std::string last;
  {
    CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                      transaction->Scan(progress.position, range.end, scan));
    kv::Block block;
    while (true) {
      CELLAR_TRY_ASSIGN(const bool more, cursor->NextBlock(&block));
      if (!more) break;
      keys += block.size();
      last = block.key(block.size() - 1);
    }
  }
  if (keys == 0) return Remove(table);
  last.push_back('\0');
  CELLAR_TRY(transaction->DeleteRange(progress.position, last));
  kv::CommitOptions commit;
  commit.durable = false;  // what a crash brings back is found again
  commit.makes_room = true;
  CELLAR_TRY(transaction->Commit(commit).status());
  progress.position = std::move(last);
  progress.keys += keys;
  return CollectStep{CollectAction::kDeleted, keys};
}

Result<CollectStep> Collector::Remove(const catalog::TableDescriptor& table) {
  const catalog::TableId storage = table.storage_id();
  const codec::KeyRange range = codec::PrefixRange(codec::TablePrefix(storage));
  std::unique_ptr<kv::Transaction> transaction = catalog_->engine()->Begin();
  catalog::CatalogEditor editor(catalog_, transaction.get());
  CELLAR_TRY(editor.RemoveTable(table.id));
  if (table.kind == catalog::RelationKind::kSequence) {
    CELLAR_TRY(transaction->Delete(SequenceRecordKey(storage)));
  } else if (table.kind == catalog::RelationKind::kTable) {
    CELLAR_TRY(table::TableStore::DeleteRecords(table, transaction.get()));
  }
  CELLAR_TRY(catalog_->Commit(editor, {.makes_room = true}).status());
  forget_(storage);
  const auto progress = progress_.extract(storage.value);
  kv::Engine* engine = catalog_->engine();
  if (!progress.empty() &&
      (progress.mapped().keys >= kKeysWorthCompacting ||
       engine->ApproximateBytes(range.start, range.end) >= kBytesWorthCompacting)) {
    // The keys are gone whatever becomes of this.
    (void)engine->Compact(range.start, range.end).ok();
  }
  return CollectStep{CollectAction::kRemoved};
}

Result<CollectStep> Collector::Remove(const catalog::NamespaceDescriptor& space) {
  std::unique_ptr<kv::Transaction> transaction = catalog_->engine()->Begin();
  catalog::CatalogEditor editor(catalog_, transaction.get());
  CELLAR_TRY(editor.RemoveNamespace(space.id));
  CELLAR_TRY(catalog_->Commit(editor, {.makes_room = true}).status());
  return CollectStep{CollectAction::kRemoved};
}

// ---- The thread
// -----------------------------------------------------------------------------------------------

void CollectService::Start() {
  // Signals are for the threads of whoever opened the store.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void CollectService::Stop() {
  std::thread ending;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    ending = std::move(thread_);
  }
  changed_.notify_all();
  if (!ending.joinable()) return;
  ending.join();
  // Nothing is lost but a minute of what the bin's time counts.
  (void)clock_->Save().ok();
}

void CollectService::Wake() {
  {
    std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

// False when the service stops.
bool CollectService::Wait(Clock::duration duration, bool wakes) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, duration, [&] { return stopping_ || (wakes && woken_); });
  if (wakes) woken_ = false;
  return !stopping_;
}

void CollectService::Run() {
  Clock::time_point save = Clock::now() + kSaveClockEvery;
  while (Wait(kLookEvery, true)) {
    CollectAll();
    if (Clock::now() < save) continue;
    (void)clock_->Save().ok();
    save = Clock::now() + kSaveClockEvery;
  }
}

void CollectService::CollectAll() {
  while (true) {
    const Clock::time_point start = Clock::now();
    Result<CollectStep> step = CatchOutOfMemory([this] { return collector_->Step(); });
    if (!step.ok()) {
      if (step.status().code() != Code::kConflict && !std::exchange(reported_, true)) {
        std::fprintf(stderr, "cellar: emptying the recycle bin failed: %s\n",
                     step.status().ToString().c_str());
      }
      return;
    }
    if (step->action == CollectAction::kNothing) return;
    if (!Wait(std::max<Clock::duration>(kLeastRest, Clock::now() - start), false)) return;
  }
}

}  // namespace cellar::session
