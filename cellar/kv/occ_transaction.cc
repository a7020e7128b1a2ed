#include "cellar/kv/occ_transaction.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cellar/base/check.h"
#include "cellar/base/sqlstate.h"
#include "cellar/kv/counters.h"
#include "cellar/kv/hash.h"
#include "cellar/kv/merging_cursor.h"

namespace cellar::kv {
namespace {

// Reads past these are validated before queueing, so that the queue's leader need not.
constexpr size_t kManyPoints = 1024;
constexpr uint64_t kManyCommits = 64;
// Beyond this many runs at once they become one with the versions that views need.
constexpr size_t kMostPlainRuns = 8;
// Bulk writes that nobody waits for (unmarked_writes) go to files from this part of spill_bytes on:
// through the log they would hold up the commits behind them.
constexpr size_t kQuietBulkPart = 16;
// So do values of this size on average, as pages are, from this part on: log and write buffer would
// copy them three times.
constexpr size_t kLargeValueBytes = 4096, kLargeValuesPart = 8;
// So many writes in a row must ascend before they go straight to a file.
constexpr uint32_t kAscending = 32;

Status ConcurrentChange(const char* what) {
  return SqlError(Code::kConflict, sqlstate::kSerializationFailure,
                  "could not serialize access due to concurrent {}", what);
}

Status ReadOnly() {
  return SqlError(Code::kInvalid, sqlstate::kReadOnlySqlTransaction,
                  "cannot write in a read-only transaction");
}

uint64_t LockGroup(const TransactionOptions& options, uint64_t number) {
  return options.lock_group != 0 ? options.lock_group : kFirstLockGroup + number;
}

}  // namespace

OccTransaction::OccTransaction(OccEngine* engine, const TransactionOptions& options)
    : engine_(engine),
      options_(options),
      tracking_(!options.read_only && options.isolation == Isolation::kSerializable),
      locks_(&engine->locks_,
             LockGroup(options, engine->begins_.fetch_add(1, std::memory_order_relaxed))) {}

OccTransaction::~OccTransaction() { Abort(); }

Status OccTransaction::CheckLive() const {
  if (!live_) return MakeError(Code::kInvalid, "the transaction has ended");
  CELLAR_TRY(broken_);
  return engine_->CheckOpen();
}

void OccTransaction::SetVersion(uint64_t version) {
  if (!epoch_versions_.empty() && version == version_) return;
  version_ = version;
  if (epoch_versions_.empty() || buffer_ != nullptr) {
    epoch_versions_.push_back(version);
  } else {
    epoch_versions_.back() = version;
  }
  epoch_ = static_cast<uint32_t>(epoch_versions_.size() - 1);
}

void OccTransaction::EnsureVersion() {
  if (epoch_versions_.empty()) SetVersion(engine_->visibility_.published());
}

Status OccTransaction::EnsureSnapshot() {
  if (snapshot_ != nullptr) return {};
  uint64_t version;
  snapshot_ = engine_->visibility_.Acquire(std::max(version_, least_version_), &version);
  if (read_without_snapshot_) {
    if (!engine_->conflicts_.PointUnchanged(first_read_hash_, version_) ||
        engine_->conflicts_.newest_unmarked() > version_) {
      snapshot_.reset();
      return Refuse();
    }
    read_without_snapshot_ = false;
    // Only the first read was looked at, not what the caller has added.
    if (!added_conflicts_) reads_.AdvanceTo(version);
  }
  SetVersion(version);
  return {};
}

// ---- Views ----

ReadViewPtr OccTransaction::OpenView(const ReadView* writes_of) {
  (void)EndStream();  // the next call tells of an error
  uint64_t seq = buffer_ == nullptr ? 0 : buffer_->seq();
  size_t counters = counters_.size();
  if (writes_of != nullptr) {
    const auto& other = static_cast<const View&>(*writes_of);
    CELLAR_CHECK(other.transaction == this || !live_);
    seq = other.seq;
    counters = other.counters;
  }
  auto view = std::make_shared<View>(live_ ? this : nullptr, seq, counters);
  if (live_) views_.push_back(view.get());
  return view;
}

ReadViewPtr OccTransaction::OpenNewestView(const ReadView* writes_of) {
  ReadViewPtr opened = OpenView(writes_of);
  if (!live_) return opened;
  auto* view = const_cast<View*>(static_cast<const View*>(opened.get()));
  view->snapshot = engine_->visibility_.Acquire(std::max(version_, least_version_), &view->version);
  return opened;
}

Result<OccTransaction::View*> OccTransaction::Own(const ReadView* view) const {
  if (view == nullptr) return nullptr;
  // Only its own transaction sees its views as more than names.
  auto* own = const_cast<View*>(static_cast<const View*>(view));
  if (own->transaction != this) return InternalError("a read at another transaction's view");
  return own;
}

void OccTransaction::CloseView(View* view) {
  std::erase(views_, view);
  // What was kept apart for the view alone may be summed up, or a transaction of many statements
  // would keep a change for each.
  const size_t since = CountersSince();
  size_t kept = std::max(since, view->counters);
  for (size_t i = kept; i < counters_.size(); ++i) {
    if (SumUp(counters_[i], since, kept)) continue;
    if (kept != i) counters_[kept] = std::move(counters_[i]);
    ++kept;
  }
  if (kept < counters_.size()) counters_.resize(kept);
}

Result<OccTransaction::Seen> OccTransaction::See(View* view) {
  if (view != nullptr && view->pinned()) return Seen{view->snapshot, view->version};
  CELLAR_TRY(EnsureSnapshot());
  if (view == nullptr) return Seen{snapshot_, version_};
  view->snapshot = snapshot_;
  view->version = version_;
  return Seen{view->snapshot, view->version};
}

Result<bool> OccTransaction::WroteSince(std::string_view key, const ReadView& view) {
  CELLAR_TRY(CheckLive());
  CELLAR_TRY_ASSIGN(const View* own, Own(&view));
  if (buffer_ == nullptr || buffer_->seq() == own->seq) return false;
  CELLAR_TRY(EndStream());
  const WriteBuffer::Node* node = buffer_->FindNode(key, WriteBuffer::kNewest);
  if (node != nullptr && node->seq > own->seq) return true;
  if (buffer_->RangeDeleted(key, own->seq, WriteBuffer::kNewest)) return true;
  // What lies in runs is older than what the buffer has of the key.
  if (node != nullptr || runs_ == nullptr) return false;
  return runs_->WroteSince(key, own->seq);
}

// ---- Reads ----

Result<bool> OccTransaction::GetStored(std::string_view key, View* view, PinnedValue* value,
                                       uint64_t* version) {
  ++stats_.trips;
  const bool pinned = view != nullptr && view->pinned();
  if (!pinned && snapshot_ == nullptr && options_.autocommit && !read_without_snapshot_ &&
      !engine_->visibility_.hiding()) {
    SetVersion(engine_->visibility_.published());
    Result<bool> found = engine_->storage_->GetLatest(key, value);
    // Otherwise it may have seen a commit that still is to be hidden.
    if (!engine_->visibility_.hiding()) {
      read_without_snapshot_ = true;
      first_read_hash_ = HashKey(key);
      *version = version_;
      return found;
    }
  }
  CELLAR_TRY_ASSIGN(const Seen seen, See(view));
  *version = seen.version;
  return seen.snapshot->Get(key, value);
}

Result<WriteBuffer::Found> OccTransaction::FindOwn(std::string_view key, uint64_t seq,
                                                   PinnedValue* value) {
  if (buffer_ == nullptr || seq == 0) return WriteBuffer::Found::kNothing;
  CELLAR_TRY(EndStream());
  const WriteBuffer::Node* node = nullptr;
  WriteBuffer::Found found;
  if (runs_ == nullptr || runs_->empty()) {
    found = buffer_->Find(key, seq, &node);
  } else {
    node = buffer_->FindNode(key, seq);
    if (node == nullptr) return runs_->Find(key, seq, *buffer_, value);
    const bool deleted =
        node->kind == WriteKind::kDelete || buffer_->RangeDeleted(key, node->seq, seq);
    found = deleted ? WriteBuffer::Found::kDeleted : WriteBuffer::Found::kPut;
  }
  if (found == WriteBuffer::Found::kPut) value->Assign(node->value());
  return found;
}

Result<bool> OccTransaction::Get(std::string_view key, PinnedValue* value,
                                 const ReadOptions& options) {
  CELLAR_TRY(CheckLive());
  CELLAR_TRY_ASSIGN(View* const view, Own(options.view));
  ++stats_.reads;
  if (buffer_ != nullptr) {
    const uint64_t seq = view == nullptr ? WriteBuffer::kNewest : view->seq;
    CELLAR_TRY_ASSIGN(const WriteBuffer::Found own, FindOwn(key, seq, value));
    if (own == WriteBuffer::Found::kPut) return true;
    if (own == WriteBuffer::Found::kDeleted) {
      value->Reset();
      return false;
    }
  }
  uint64_t version = 0;
  Result<bool> found = GetStored(key, view, value, &version);
  if (found.ok() && tracks(options.mode)) reads_.AddPoint(key, HashKey(key), version);
  return found;
}

Status OccTransaction::MultiGet(std::span<const std::string_view> keys,
                                std::span<PinnedValue> values, std::span<bool> found,
                                const ReadOptions& options) {
  CELLAR_TRY(CheckLive());
  CELLAR_TRY_ASSIGN(View* const view, Own(options.view));
  if (values.size() != keys.size() || found.size() != keys.size()) {
    return InternalError("MultiGet called with outputs of another size");
  }
  if (keys.empty()) return {};
  stats_.reads += keys.size();
  const uint64_t seq = view == nullptr ? WriteBuffer::kNewest : view->seq;
  if (buffer_ == nullptr || seq == 0) {
    CELLAR_TRY_ASSIGN(const Seen seen, See(view));
    ++stats_.trips;
    CELLAR_TRY(seen.snapshot->MultiGet(keys, values, found));
    if (tracks(options.mode)) {
      for (std::string_view key : keys) reads_.AddPoint(key, HashKey(key), seen.version);
    }
    return {};
  }
  std::vector<std::string_view> stored;
  std::vector<size_t> places;
  for (size_t i = 0; i < keys.size(); ++i) {
    CELLAR_TRY_ASSIGN(const WriteBuffer::Found own, FindOwn(keys[i], seq, &values[i]));
    found[i] = own == WriteBuffer::Found::kPut;
    if (own == WriteBuffer::Found::kDeleted) values[i].Reset();
    if (own == WriteBuffer::Found::kNothing) {
      stored.push_back(keys[i]);
      places.push_back(i);
    }
  }
  if (stored.empty()) return {};
  CELLAR_TRY_ASSIGN(const Seen seen, See(view));
  ++stats_.trips;
  std::vector<PinnedValue> got(stored.size());
  const std::unique_ptr<bool[]> there = std::make_unique<bool[]>(stored.size());
  CELLAR_TRY(seen.snapshot->MultiGet(stored, got, {there.get(), stored.size()}));
  for (size_t i = 0; i < stored.size(); ++i) {
    values[places[i]] = std::move(got[i]);
    found[places[i]] = there[i];
    if (tracks(options.mode)) reads_.AddPoint(stored[i], HashKey(stored[i]), seen.version);
  }
  return {};
}

Result<std::unique_ptr<Cursor>> OccTransaction::Scan(std::string_view start, std::string_view end,
                                                     const ScanOptions& options) {
  CELLAR_TRY(CheckLive());
  CELLAR_TRY_ASSIGN(View* const view, Own(options.view));
  CELLAR_TRY(EndStream());
  CELLAR_TRY_ASSIGN(const Seen seen, See(view));
  const uint64_t seq = view != nullptr ? view->seq : (buffer_ == nullptr ? 0 : buffer_->seq());
  return std::unique_ptr<Cursor>(std::make_unique<MergingCursor>(
      this, start, end, options,
      MergingCursor::At{seen.snapshot, seen.version, seq, tracks(options.mode)}));
}

WriteBuffer& OccTransaction::buffer() {
  if (buffer_ == nullptr) {
    EnsureVersion();
    buffer_ = std::make_unique<WriteBuffer>();
    buffer_->KeepUndo(!savepoints_.empty());
  }
  return *buffer_;
}

Status OccTransaction::CheckWrite(std::string_view key, size_t value_bytes) {
  CELLAR_TRY(CheckLive());
  if (options_.read_only) return ReadOnly();
  const Limits& limits = engine_->limits_;
  if (key.empty()) return InternalError("a key must not be empty");
  if (key.size() > limits.max_key_bytes) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "key of {} bytes exceeds the limit of {}", key.size(), limits.max_key_bytes);
  }
  if (value_bytes > limits.max_value_bytes) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "value of {} bytes exceeds the limit of {}", value_bytes,
                    limits.max_value_bytes);
  }
  if (stats_.ops + 1 > limits.max_txn_ops ||
      stats_.bytes + key.size() + value_bytes > limits.max_txn_bytes) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "transaction is too large for this storage engine");
  }
  return {};
}

Status OccTransaction::Write(WriteKind kind, std::string_view key, std::string_view value) {
  WriteBuffer& own = buffer();
  if (streams()) {
    if (kind != WriteKind::kDelete && runs_->Appends(key)) {
      ++changes_;
      ++stats_.ops;
      stats_.bytes += key.size() + value.size();
      stats_.spilled_bytes = stats_.bytes;
      Status status = runs_->Append(kind, key, value);
      return status.ok() ? status : KeepError(std::move(status));
    }
    CELLAR_TRY(EndStream());
  }
  const WriteBuffer::Node* replaced = own.Add(kind, key, value, epoch_);
  ++changes_;
  ++stats_.ops;
  stats_.bytes += key.size() + value.size();
  if (replaced != nullptr && replaced->kind == WriteKind::kPutIfAbsent) {
    // What is replaced takes its unanswered question with it, so it is answered now.
    CELLAR_TRY_ASSIGN(const bool exists, ExistsBelowBuffer(key));
    if (exists) return DuplicateKey(key, &duplicate_);
  }
  if (own.footprint_bytes() > engine_->spill_bytes_) {
    return Spill();
  }
  return MayStream(key) ? OpenStream() : Status();
}

bool OccTransaction::MayStream(std::string_view key) {
  if (!options_.bulk || !options_.unmarked_writes) return false;
  if (buffer_->footprint_bytes() <= engine_->spill_bytes_ / kQuietBulkPart) return false;
  ascending_ = buffer_->At(buffer_->Previous(buffer_->End()))->key() == key ? ascending_ + 1 : 0;
  // No view may part what the run holds.
  return ascending_ > kAscending && savepoints_.empty() && SpillBounds().size() == 1;
}

Status OccTransaction::OpenStream() {
  ascending_ = 0;
  if (runs_ == nullptr) runs_ = std::make_unique<SpillSet>(engine_->storage_.get());
  CELLAR_TRY(runs_->Open(*buffer_, spilled_seq_, buffer_->seq()));
  spilled_seq_ = buffer_->seq();
  engine_->spilled_runs_.fetch_add(1, std::memory_order_relaxed);
  buffer_->ClearKeys();
  stats_.spilled_bytes = stats_.bytes;
  return {};
}

Status OccTransaction::Put(std::string_view key, std::string_view value) {
  CELLAR_TRY(CheckWrite(key, value.size()));
  return Write(WriteKind::kPut, key, value);
}

Status OccTransaction::Delete(std::string_view key) {
  CELLAR_TRY(CheckWrite(key, 0));
  return Write(WriteKind::kDelete, key, {});
}

Status OccTransaction::DeleteRange(std::string_view start, std::string_view end) {
  CELLAR_TRY(CheckWrite(start.empty() ? std::string_view("\0", 1) : start, end.size()));
  if (!end.empty() && start >= end) return {};
  CELLAR_TRY(EndStream());
  if (may_hold_unproven_) CELLAR_TRY(ProveRange(start, end));
  buffer().AddRangeDeletion(start, end, epoch_);
  ++changes_;
  ++stats_.ops;
  stats_.bytes += start.size() + end.size();
  return {};
}

// Answers what is open of buffered keys that a range deletion is about to hide.
Status OccTransaction::ProveRange(std::string_view start, std::string_view end) {
  const WriteBuffer& own = buffer();
  for (auto at = own.LowerBound(start); at != own.End(); at = own.Next(at)) {
    const WriteBuffer::Node& node = *own.At(at);
    if (!end.empty() && node.key() >= end) break;
    if (node.kind != WriteKind::kPutIfAbsent) continue;
    CELLAR_TRY_ASSIGN(const bool exists, ExistsBelowBuffer(node.key()));
    if (exists) return DuplicateKey(node.key(), &duplicate_);
  }
  return {};
}

Result<bool> OccTransaction::ExistsBelowBuffer(std::string_view key) {
  CELLAR_TRY(EndStream());
  PinnedValue value;
  if (runs_ != nullptr && !runs_->empty()) {
    CELLAR_TRY_ASSIGN(const WriteBuffer::Found own,
                      runs_->Find(key, WriteBuffer::kNewest, *buffer_, &value));
    if (own != WriteBuffer::Found::kNothing) return own == WriteBuffer::Found::kPut;
  }
  uint64_t version = 0;
  return GetStored(key, nullptr, &value, &version);
}

Status OccTransaction::PutIfAbsent(std::string_view key, std::string_view value) {
  CELLAR_TRY(CheckWrite(key, value.size()));
  if (!options_.bulk) {
    PinnedValue old;
    CELLAR_TRY_ASSIGN(const bool exists, Get(key, &old, ReadMode::kTracked));
    if (exists) return DuplicateKey(key, &duplicate_);
    return Write(WriteKind::kPut, key, value);
  }
  // With runs, what the buffer does not say itself is left to their merge at commit.
  const WriteBuffer::Node* node = buffer().FindNode(key, WriteBuffer::kNewest);
  if (node != nullptr || runs_ == nullptr || runs_->empty()) {
    const auto found = buffer_->Find(key, WriteBuffer::kNewest, &node);
    if (found == WriteBuffer::Found::kPut) return DuplicateKey(key, &duplicate_);
    if (found == WriteBuffer::Found::kDeleted) return Write(WriteKind::kPut, key, value);
  }
  CELLAR_TRY(EnsureSnapshot());
  if (tracking_) reads_.AddPoint(key, HashKey(key), version_);
  may_hold_unproven_ = true;
  return Write(WriteKind::kPutIfAbsent, key, value);
}

Status OccTransaction::AddReadConflict(std::string_view start, std::string_view end) {
  CELLAR_TRY(CheckLive());
  EnsureVersion();
  added_conflicts_ = true;
  if (end.empty() || start < end) reads_.AddRange(start, end, version_);
  return {};
}

Status OccTransaction::AddReadConflict(std::string_view key) {
  CELLAR_TRY(CheckLive());
  EnsureVersion();
  added_conflicts_ = true;
  if (tracks(ReadMode::kTracked)) reads_.AddPoint(key, HashKey(key), version_);
  return {};
}

bool OccTransaction::HoldReads(bool on) {
  if (on) added_conflicts_ = true;
  return std::exchange(holds_, on && !options_.read_only);
}

Status OccTransaction::AddWriteConflict(std::string_view start, std::string_view end) {
  CELLAR_TRY(CheckLive());
  if (options_.read_only) return ReadOnly();
  if (!end.empty() && start >= end) return {};
  EnsureVersion();
  write_conflicts_.push_back({std::string(start), std::string(end), version_});
  return {};
}

Status OccTransaction::AddWriteConflict(std::string_view key) {
  CELLAR_TRY(CheckLive());
  if (options_.read_only) return ReadOnly();
  EnsureVersion();
  conflict_keys_.emplace_back(key);
  return {};
}

Status OccTransaction::Require(std::string_view key, uint64_t version) {
  CELLAR_TRY(CheckLive());
  if (!engine_->conflicts_.Require(key, version)) return Refuse();
  if (!options_.read_only) reads_.AddRequirement(key, version);
  return {};
}

Result<LockResult> OccTransaction::Lock(std::span<const std::string_view> keys,
                                        const LockOptions& options) {
  CELLAR_TRY(CheckLive());
  CELLAR_TRY_ASSIGN(const View* view, Own(options.view));
  const uint64_t seen = view != nullptr && view->pinned() ? view->version : version_;
  LockResult result;
  result.acquired.resize(keys.size());
  result.changed.resize(keys.size());
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (!options.in_order) {
    // One order for everybody spares most deadlocks between locks of several keys.
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  }
  const bool has_state = snapshot_ != nullptr || read_without_snapshot_;
  std::string_view changed;   // a key that was written since the view
  uint64_t newest_write = 0;  // if one is behind the snapshot
  for (const size_t i : order) {
    CELLAR_TRY_ASSIGN(const bool got, locks_.Acquire(options.kind, keys[i], options));
    result.acquired[i] = got;
    if (!got) continue;
    const uint64_t hash = HashKey(keys[i]);
    if (!has_state) {
      // Nothing was read, so nothing has changed since: the snapshot is to hold the last write.
      newest_write = std::max(newest_write, engine_->conflicts_.LastWriteOrRange(hash));
      continue;
    }
    if (engine_->conflicts_.KeyUnchanged(keys[i], hash, seen)) continue;
    result.changed[i] = true;
    changed = keys[i];
    if (seen == version_ || !engine_->conflicts_.KeyUnchanged(keys[i], hash, version_)) {
      newest_write = std::max(newest_write, engine_->conflicts_.newest());
    }
  }
  if (newest_write != 0) {
    // The holder may have let go before its commit was published, which ours will wait for.
    engine_->queue_.AwaitApplied(newest_write);
    least_version_ = std::max(least_version_, newest_write);
  }
  if (options.only_tell || !has_state) return result;
  result.snapshot_moved = !changed.empty();
  if (newest_write == 0) return result;
  Status moved = MoveSnapshot(options.move_over_reads);
  if (moved.code() == Code::kConflict) return RefuseFor(changed);
  CELLAR_TRY(std::move(moved));
  return result;
}

Result<bool> OccTransaction::LockName(LockKind kind, std::string_view name,
                                      const LockOptions& options) {
  CELLAR_TRY(CheckLive());
  return locks_.Acquire(kind, name, options);
}

Status OccTransaction::Refuse() {
  engine_->queue_.AwaitPublished(engine_->conflicts_.newest());
  return ConcurrentChange("update");
}

Status OccTransaction::RefuseFor(std::string_view key) {
  engine_->queue_.AwaitPublished(engine_->conflicts_.newest());
  PinnedValue value;
  CELLAR_TRY_ASSIGN(const bool found, engine_->storage_->GetLatest(key, &value));
  // An empty value is what tables leave of a row that lies in a page.
  return ConcurrentChange(found && value.size() > 0 ? "update" : "delete");
}

// Advances the snapshot; unless `over_reads`, only if that changes nothing that was read.
Status OccTransaction::MoveSnapshot(bool over_reads) {
  uint64_t version;
  std::shared_ptr<const SnapshotReader> snapshot =
      engine_->visibility_.Acquire(std::max(version_, least_version_), &version);
  if (!over_reads) {
    if (!tracking_) {
      if (stats_.reads > 0) return Refuse();
    } else {
      ReadSet reads = reads_;
      for (const MergingCursor* cursor : cursors_) {
        ReadRange range;
        if (cursor->TrackedRange(&range)) reads.AddRange(range.start, range.end, range.version);
      }
      reads.Prepare();
      if (!engine_->conflicts_.Unchanged(reads)) return Refuse();
      reads_.AdvanceTo(version);
    }
    // What was read is the same in the new snapshot, so its readers may go on in that.
    for (View* view : views_) {
      if (!view->pinned()) continue;
      view->snapshot = snapshot;
      view->version = version;
    }
  }
  read_without_snapshot_ = false;
  snapshot_ = std::move(snapshot);
  SetVersion(version);
  return {};
}

size_t OccTransaction::CountersSince() const {
  size_t since = savepoints_.empty() ? 0 : savepoints_.back().counters;
  for (const View* view : views_) since = std::max(since, view->counters);
  return std::min(since, counters_.size());
}

bool OccTransaction::SumUp(const CounterChange& change, size_t since, size_t end) {
  if (change.op != CounterOp::kAdd) return false;
  for (size_t i = end; i > since; --i) {
    CounterChange& before = counters_[i - 1];
    if (before.name != change.name) continue;
    if (before.op == CounterOp::kDrop) return false;
    AddCounters(change.values, &before.values);
    return true;
  }
  return false;
}

Status OccTransaction::ChangeCounter(CounterChange change) {
  CELLAR_TRY(CheckLive());
  if (options_.read_only) return ReadOnly();
  if (!SumUp(change, CountersSince(), counters_.size())) counters_.push_back(std::move(change));
  return {};
}

Status OccTransaction::AddToCounter(std::string_view name, const CounterValues& values) {
  return ChangeCounter({std::string(name), CounterOp::kAdd, values});
}

Status OccTransaction::CreateCounter(std::string_view name) {
  return ChangeCounter({std::string(name), CounterOp::kCreate, {}});
}

Status OccTransaction::DropCounter(std::string_view name) {
  return ChangeCounter({std::string(name), CounterOp::kDrop, {}});
}

Result<std::optional<CounterValues>> OccTransaction::GetCounter(std::string_view name,
                                                                const ReadView* view) {
  CELLAR_TRY(CheckLive());
  CELLAR_TRY_ASSIGN(View* const own, Own(view));
  CELLAR_TRY_ASSIGN(const Seen seen, See(own));
  ++stats_.trips;
  const std::unique_ptr<RawCursor> cursor =
      seen.snapshot->Scan(name, CounterEnd(name), RawScanOptions());
  std::vector<uint64_t> versions;
  CELLAR_TRY_ASSIGN(std::optional<CounterValues> sums, SumCounters(name, cursor.get(), &versions));
  const size_t end = own == nullptr ? counters_.size() : std::min(own->counters, counters_.size());
  for (size_t i = 0; i < end; ++i) {
    if (counters_[i].name == name) ApplyChange(counters_[i], &sums);
  }
  return sums;
}

SavepointId OccTransaction::Savepoint() {
  (void)EndStream();  // the next call tells of an error
  const SavepointId id = next_savepoint_++;
  savepoints_.push_back({id, buffer_ == nullptr ? 0 : buffer_->seq(), stats_.bytes, stats_.ops,
                         counters_.size(), conflict_keys_.size(), locks_.mark()});
  if (buffer_ != nullptr) buffer_->KeepUndo(true);
  return id;
}

std::vector<OccTransaction::Mark>::iterator OccTransaction::FindSavepoint(SavepointId id) {
  return std::find_if(savepoints_.begin(), savepoints_.end(),
                      [&](const Mark& mark) { return mark.id == id; });
}

Status OccTransaction::RollbackTo(SavepointId savepoint) {
  CELLAR_TRY(CheckLive());
  const auto mark = FindSavepoint(savepoint);
  if (mark == savepoints_.end()) {
    return SqlError(Code::kNotFound, sqlstate::kInvalidSavepoint, "savepoint does not exist");
  }
  savepoints_.erase(mark + 1, savepoints_.end());
  stats_.bytes = mark->bytes;
  stats_.ops = mark->ops;
  counters_.resize(mark->counters);
  conflict_keys_.resize(mark->conflicts);
  locks_.RollbackTo(mark->locks);
  if (buffer_ != nullptr) {
    buffer_->RollbackTo(mark->seq);
    if (runs_ != nullptr) runs_->RollbackTo(mark->seq);
    spilled_seq_ = std::min(spilled_seq_, mark->seq);
    ++changes_;
  }
  return {};
}

Status OccTransaction::ReleaseSavepoint(SavepointId savepoint) {
  CELLAR_TRY(CheckLive());
  const auto mark = FindSavepoint(savepoint);
  if (mark == savepoints_.end()) {
    return SqlError(Code::kNotFound, sqlstate::kInvalidSavepoint, "savepoint does not exist");
  }
  savepoints_.erase(mark, savepoints_.end());
  if (savepoints_.empty() && buffer_ != nullptr) buffer_->KeepUndo(false);
  return {};
}

Status OccTransaction::RefreshSnapshot() {
  CELLAR_TRY(CheckLive());
  if (snapshot_ == nullptr && !read_without_snapshot_) return {};
  if (locks_.mark() != 0) {
    // Who let go of a lock before may not be published yet, and this one acts on what he has done.
    const uint64_t newest = engine_->conflicts_.newest();
    engine_->queue_.AwaitApplied(newest);
    least_version_ = std::max(least_version_, newest);
  }
  // Whose statement began before this one keeps what it would have seen.
  for (View* view : views_) {
    if (snapshot_ != nullptr) CELLAR_TRY(See(view).status());
  }
  return MoveSnapshot(true);
}

uint64_t OccTransaction::snapshot_version(const ReadView* view) {
  // An error shows again, and is reported, at the next read.
  if (!live_ || !engine_->CheckOpen().ok()) return version_;
  Result<View*> own = Own(view);
  if (own.ok()) {
    const Result<Seen> seen = See(*own);
    if (seen.ok()) return seen->version;
  }
  return version_;
}

std::vector<uint64_t> OccTransaction::SpillBounds() const {
  std::vector<uint64_t> bounds{buffer_->seq()};
  const auto add = [&](uint64_t seq) {
    if (seq > spilled_seq_ && seq < buffer_->seq()) bounds.push_back(seq);
  };
  for (const Mark& mark : savepoints_) add(mark.seq);
  for (const MergingCursor* cursor : cursors_) {
    if (cursor->merges()) add(cursor->seq());
  }
  for (const View* view : views_) add(view->seq);
  for (const WriteBuffer::RangeDeletion& range : buffer_->range_deletions()) add(range.seq);
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  return bounds;
}

Status OccTransaction::Spill() {
  CELLAR_TRY(EndStream());
  const std::vector<uint64_t> bounds = SpillBounds();
  if (runs_ == nullptr) runs_ = std::make_unique<SpillSet>(engine_->storage_.get());
  if (bounds.size() > kMostPlainRuns) {
    CELLAR_TRY(runs_->AddVersioned(*buffer_, spilled_seq_, bounds.back(), bounds));
    spilled_seq_ = bounds.back();
    engine_->spilled_runs_.fetch_add(1, std::memory_order_relaxed);
  } else {
    for (const uint64_t bound : bounds) {
      CELLAR_TRY(runs_->Add(*buffer_, spilled_seq_, bound));
      spilled_seq_ = bound;
      engine_->spilled_runs_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  buffer_->ClearKeys();
  stats_.spilled_bytes = stats_.bytes;
  ++changes_;
  return {};
}

// Looks up what bulk writes have left open.
Status OccTransaction::ProveBuffered() {
  if (buffer_->keys() == 0) return {};
  CELLAR_TRY(EnsureSnapshot());
  PresenceProbe probe(*snapshot_, buffer_->At(buffer_->Previous(buffer_->End()))->key(),
                      &stats_.trips);
  Status status;
  buffer_->ForEachFinal([&](const WriteBuffer::Node& node) {
    if (!status.ok() || node.kind != WriteKind::kPutIfAbsent) return;
    if (buffer_->HasRangeDeletions() && buffer_->RangeDeleted(node.key(), 0, node.seq)) return;
    Result<bool> exists = probe.Contains(node.key());
    if (!exists.ok()) {
      status = exists.status();
    } else if (*exists) {
      status = DuplicateKey(node.key(), &duplicate_);
    }
  });
  return status;
}

void OccTransaction::CollectOpenRanges() {
  for (const MergingCursor* cursor : cursors_) {
    ReadRange range;
    if (cursor->TrackedRange(&range)) reads_.AddRange(range.start, range.end, range.version);
  }
}

// Fills in the writes, and for snapshot isolation makes "first committer wins" of them.
void OccTransaction::PrepareWrites(CommitRequest* request) {
  WriteSet& writes = request->writes;
  writes.unmarked = options_.unmarked_writes;
  writes.buffer = buffer_.get();
  const bool first_wins = options_.isolation == Isolation::kSnapshot && !options_.unmarked_writes;
  if (writes.unmarked) {
    writes.more_keys.clear();
    writes.ranges.clear();
  } else {
    writes.hashes.reserve(buffer_->keys());
    buffer_->ForEachFinal([&](const WriteBuffer::Node& node) {
      const uint64_t hash = HashKey(node.key());
      writes.hashes.push_back(hash);
      if (!first_wins) return;
      const WriteBuffer::Node* first = &node;
      while (first->older != nullptr) first = first->older;
      reads_.AddPoint(node.key(), hash, epoch_versions_[first->epoch]);
    });
    if (first_wins) {
      for (const std::string& key : writes.more_keys) {
        reads_.AddPoint(key, HashKey(key), epoch_versions_.front());
      }
      for (const auto& [start, end] : writes.ranges) {
        reads_.AddRange(start, end, epoch_versions_.front());
      }
    }
    for (const WriteBuffer::RangeDeletion& range : buffer_->range_deletions()) {
      writes.ranges.emplace_back(range.start, range.end);
      if (first_wins) reads_.AddRange(range.start, range.end, epoch_versions_[range.epoch]);
    }
  }
  for (std::string& key : conflict_keys_) writes.more_keys.push_back(std::move(key));
  for (const ReadRange& range : write_conflicts_) {
    writes.ranges.emplace_back(range.start, range.end);
    if (first_wins) reads_.AddRange(range.start, range.end, range.version);
  }
}

bool OccTransaction::BelongsInFiles() const {
  if (buffer_ == nullptr || buffer_->empty()) return false;
  const size_t bytes = buffer_->footprint_bytes();
  if (options_.bulk && options_.unmarked_writes) {
    return bytes > engine_->spill_bytes_ / kQuietBulkPart;
  }
  return bytes > engine_->spill_bytes_ / kLargeValuesPart &&
         stats_.bytes / stats_.ops >= kLargeValueBytes;
}

Result<uint64_t> OccTransaction::Commit(const CommitOptions& options) {
  CELLAR_TRY(CheckLive());
  const bool spilled = (runs_ != nullptr && !runs_->empty()) || BelongsInFiles();
  if (!counters_.empty()) buffer();
  if (buffer_ == nullptr || (buffer_->empty() && !spilled && counters_.empty())) {
    EnsureVersion();
    End();
    // Only who took over a lock can have read what is not published yet.
    if (engine_->visibility_.published() < version_) {
      engine_->queue_.AwaitPublished(version_);
      if (engine_->visibility_.published() < version_) {
        CELLAR_TRY(engine_->queue_.health());
        return SqlError(Code::kUnavailable, sqlstate::kDiskFull,
                        "could not make durable what the transaction has read");
      }
    }
    return version_;
  }
  CommitRequest request;
  std::vector<std::unique_ptr<SpillFile>> files;
  savepoints_.clear();
  Status status;
  if (spilled) {
    CollectOpenRanges();
    cursors_.clear();
    status = Spill();
    if (status.ok()) status = EnsureSnapshot();
    if (status.ok()) {
      status = runs_->Finish(*snapshot_, *buffer_, &duplicate_, &files, &request.writes);
      stats_.trips += runs_->trips();
    }
    request.files = files;
    request.ingest = true;
    // Such a transaction makes what a later commit tells of.
    request.unread = options_.bulk && options_.unmarked_writes;
  } else {
    CollectOpenRanges();
    if (may_hold_unproven_) status = ProveBuffered();
  }
  if (!status.ok()) {
    End();
    return status;
  }
  PrepareWrites(&request);
  if (!reads_.empty()) {
    reads_.Prepare();
    request.reads = &reads_;
    const uint64_t newest = engine_->conflicts_.newest();
    if (reads_.points().size() > kManyPoints || newest - version_ > kManyCommits) {
      // Only as far as everything is fine: the refusal is the leader's.
      if (engine_->conflicts_.Unchanged(reads_)) request.checked = newest;
    }
  }
  snapshot_.reset();
  request.counters = counters_;
  request.durable = options.durable;
  request.makes_room = options.makes_room;
  request.locks = &locks_;
  ++stats_.trips;
  engine_->queue_.Submit(&request);
  End();
  engine_->visibility_.DropStale();
  if (!request.status.ok()) {
    // A rerun before the rival is published would fail again.
    if (request.status.code() == Code::kConflict) engine_->queue_.AwaitPublished(request.version);
    return request.status;
  }
  version_ = request.version;
  return request.version;
}

void OccTransaction::Abort() {
  if (live_) End();
}

void OccTransaction::End() {
  live_ = false;
  locks_.ReleaseAll();
  cursors_.clear();
  for (View* view : views_) {
    view->transaction = nullptr;
    view->snapshot.reset();
  }
  views_.clear();
  snapshot_.reset();
  runs_.reset();
  buffer_.reset();
  engine_->NoteEnd(stats_);
}

}  // namespace cellar::kv
