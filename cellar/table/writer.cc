// Inserts, updates and deletes: every index follows its table, every unique key is asked for once.
//
// One batch costs at most one trip: a MultiGet of all unique keys that the batch would add. It also
// tracks them, so that two transactions cannot add the same key. All deletes of a batch come before
// its puts, since a row may move to the key that another one leaves.
#include "cellar/table/writer.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "cellar/base/sqlstate.h"
#include "cellar/codec/patch.h"
#include "cellar/table/backfill.h"
#include "cellar/table/bulk_pages.h"
#include "cellar/table/errors.h"
#include "cellar/table/long_values.h"
#include "cellar/table/pages.h"
#include "cellar/table/rewrite.h"
#include "cellar/table/split_rows.h"

namespace cellar::table {
namespace {

Status CheckColumns(const CompiledTable& compiled, const RowBatch& rows) {
  if (rows.num_columns() == compiled.living().size()) return Status();
  return InternalError("batch of {} columns for table \"{}\" of {}", rows.num_columns(),
                       compiled.table().name, compiled.living().size());
}

// Rows are never overwritten, whatever the record of the next id says: it is compared with the rows
// once. Cost: a transaction that reads one row.
Result<int64_t> TakeRowIds(AccessContext* context, const TablePtr& table,
                           const CompiledTable& compiled, uint64_t count) {
  TableStore* store = context->store;
  CELLAR_TRY_ASSIGN(int64_t first, store->TakeRowIds(table->storage_id(), count));
  if (compiled.row_ids_checked().load(std::memory_order_acquire)) return first;
  kv::TransactionOptions read_only;
  read_only.read_only = true;
  const std::unique_ptr<kv::Transaction> transaction = store->engine()->Begin(read_only);
  AccessContext reading;
  reading.transaction = transaction.get();
  reading.store = store;
  reading.mode = kv::ReadMode::kSnapshot;
  CELLAR_TRY_ASSIGN(const int64_t greatest, GreatestRowId(&reading, table));
  if (first <= greatest) {
    CELLAR_TRY(store->TakeRowIds(table->storage_id(), static_cast<uint64_t>(greatest - first) + 1)
                   .status());
    CELLAR_TRY_ASSIGN(first, store->TakeRowIds(table->storage_id(), count));
  }
  compiled.row_ids_checked().store(true, std::memory_order_release);
  return first;
}

// Gives each row without one a row id. True when all of them were given one.
Result<bool> FillRowIds(AccessContext* context, const TablePtr& table,
                        const CompiledTable& compiled, RowBatch* rows) {
  if (compiled.row_id_position() < 0) return false;
  ColumnVector& column = rows->column(static_cast<size_t>(compiled.row_id_position()));
  uint64_t missing = 0;
  for (size_t i = 0; i < rows->size(); ++i) missing += column.IsNull(i) ? 1 : 0;
  if (missing == 0) return false;
  Result<int64_t> first =
      context->store != nullptr
          ? TakeRowIds(context, table, compiled, missing)
          : TakeRowIdsInTransaction(compiled.table(), missing, context->transaction);
  CELLAR_TRY_ASSIGN(int64_t next, std::move(first));
  for (size_t i = 0; i < rows->size(); ++i) {
    if (column.IsNull(i)) column.Set(i, Datum::Int(next++));
  }
  column.set_has_nulls(false);
  return missing == rows->size();
}

// Locks unique keys. changed[i]: another transaction has written it since this one's snapshot,
// which under READ COMMITTED has moved on to show that. So many are locked, and no more: whoever
// loads more than that waits for nobody, and the commit decides.
constexpr uint64_t kMostKeyLocks = 1 << 16;

Status LockKeys(AccessContext* context, std::span<const std::string_view> keys, kv::LockMode mode,
                bool keep, std::vector<bool>* changed) {
  changed->assign(keys.size(), false);
  if (keys.empty() || context->key_locks > kMostKeyLocks) return Status();
  if (keep) context->key_locks += keys.size();
  kv::LockOptions options;
  options.kind = kv::LockKind::kKey;
  options.mode = mode;
  options.keep = keep;
  context->SetWaits(&options);
  options.only_tell = !options.move_over_reads;
  CELLAR_TRY_ASSIGN(kv::LockResult result, context->transaction->Lock(keys, options));
  *changed = std::move(result.changed);
  return Status();
}

// The keys go, or come: whoever wants one of them waits until it is known whether they do.
Status LockChangedKeys(AccessContext* context, std::span<const std::string_view> keys) {
  std::vector<bool> changed;
  return LockKeys(context, keys, kv::kForUpdate, true, &changed);
}

// The unique keys that a batch adds, and what is known of them.
class UniqueProbe {
 public:
  explicit UniqueProbe(const CompiledTable& compiled) : compiled_(compiled) {}

  // `key` must stay where it is until the probe is done. `row`: it is that of a row, which may lie
  // in a page.
  void Add(std::string_view key, bool row) {
    if (row && compiled_.paged()) row_places_.push_back(keys_.size());
    keys_.push_back(key);
  }
  // Asks for all of them, and waits for open transactions that add or delete one: those that are
  // absent are locked, so that they stay so until this transaction ends.
  Status Run(AccessContext* context) {
    locked_.assign(keys_.size(), 0);
    newer_.assign(keys_.size(), 0);
    while (true) {
      CELLAR_TRY(Ask(context, nullptr));
      std::vector<std::string_view> absent, present;
      std::vector<size_t> absent_places, present_places;
      for (size_t i = 0; i < keys_.size(); ++i) {
        if (locked_[i]) continue;
        (found_[i] ? present : absent).push_back(keys_[i]);
        (found_[i] ? present_places : absent_places).push_back(i);
        locked_[i] = 1;
      }
      if (absent.empty() && present.empty()) return Status();
      std::vector<bool> absent_changed, present_changed;
      CELLAR_TRY(LockKeys(context, absent, kv::kForUpdate, true, &absent_changed));
      // Who deletes one of those holds it alone; nobody else keeps us waiting.
      CELLAR_TRY(LockKeys(context, present, kv::kForKeyShare, false, &present_changed));
      std::vector<size_t> changed;
      for (size_t i = 0; i < absent.size(); ++i) {
        if (absent_changed[i]) changed.push_back(absent_places[i]);
      }
      for (size_t i = 0; i < present.size(); ++i) {
        if (!present_changed[i]) continue;
        changed.push_back(present_places[i]);
        locked_[present_places[i]] = 0;  // perhaps it is absent now
      }
      if (changed.empty()) return Status();
      if (context->level != Access::Level::kReadCommitted) return AskAnew(context, changed);
    }
  }
  // In the order of Add.
  std::string_view key(size_t i) const { return keys_[i]; }
  bool found(size_t i) const { return found_[i] != 0; }
  // Above READ COMMITTED: a key that another transaction has added since the snapshot.
  bool found_since(size_t i) const { return newer_[i] != 0; }
  // Of entries that are not rows.
  std::string_view value(size_t i) const { return values_[i].view(); }

 private:
  // The transaction's snapshot stays as it is; what is there now is looked up beside it.
  Status AskAnew(AccessContext* context, std::span<const size_t> places) {
    const std::vector<uint8_t> before = found_;
    const kv::ReadViewPtr newest = context->transaction->OpenNewestView();
    const kv::ReadMode mode = std::exchange(context->mode, kv::ReadMode::kSnapshot);
    Status status = Ask(context, newest.get());
    context->mode = mode;
    if (!status.ok()) {
      // Rows that are newer than what this transaction knows of the table are no damage.
      CELLAR_TRY(catalog::RequireCurrent(compiled_.table(), context->transaction));
      return status;
    }
    const std::vector<uint8_t> now = std::exchange(found_, before);
    for (const size_t place : places) {
      if (now[place] && !before[place]) newer_[place] = 1;
      if (!now[place] && before[place]) return ConcurrentUpdate();
    }
    return Status();
  }

  Status Ask(AccessContext* context, const kv::ReadView* view) {
    if (row_places_.empty()) return context->MultiGet(keys_, view, &values_, &found_);
    std::vector<std::string_view> row_keys, other_keys;
    std::vector<size_t> other_places;
    size_t next = 0;
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (next < row_places_.size() && row_places_[next] == i) {
        row_keys.push_back(keys_[i]);
        ++next;
      } else {
        other_keys.push_back(keys_[i]);
        other_places.push_back(i);
      }
    }
    std::vector<StoredRow> rows;
    std::vector<uint8_t> rows_found, others_found;
    CELLAR_TRY(fetcher_.Fetch(context, compiled_, row_keys, view, &rows, &rows_found));
    std::vector<kv::PinnedValue> other_values;
    CELLAR_TRY(context->MultiGet(other_keys, view, &other_values, &others_found));
    found_.assign(keys_.size(), 0);
    values_.resize(keys_.size());
    for (size_t i = 0; i < row_keys.size(); ++i) found_[row_places_[i]] = rows_found[i];
    for (size_t i = 0; i < other_keys.size(); ++i) {
      found_[other_places[i]] = others_found[i];
      values_[other_places[i]] = std::move(other_values[i]);
    }
    return Status();
  }

  const CompiledTable& compiled_;
  std::vector<std::string_view> keys_;
  std::vector<size_t> row_places_;  // among keys_, ascending
  std::vector<kv::PinnedValue> values_;
  std::vector<uint8_t> found_, locked_, newer_;
  RowFetcher fetcher_;
};

constexpr uint32_t kNoProbe = UINT32_MAX;
// Rows up to this long are written whole: a patch asks whether the row is in the delta already.
constexpr size_t kPatchAbove = 256;

// Where rows may lie in pages, the deleted ones leave a tombstone over them.
Status DeleteEntry(AccessContext* context, const CompiledTable& compiled, const IndexCodec& index,
                   std::string_view key, std::string_view ref, const RowBatch& old_rows,
                   size_t row) {
  if (index.primary && compiled.split()) {
    CELLAR_TRY(DeleteParts(context, compiled, key, old_rows, row));
  }
  if (!index.primary || !compiled.paged()) return context->transaction->Delete(key);
  CELLAR_TRY(DeleteLongValues(context, compiled, ref, old_rows, row));
  return context->transaction->Put(key, {});
}

// For a rewrite that is going on; of rows whose RowRefs are still to be computed.
Status LogRows(AccessContext* context, const CompiledTable& compiled, const RowBatch& rows) {
  if (compiled.table().job == 0) return Status();
  StringList list;
  AppendRefs(compiled, rows, &list);
  std::vector<std::string_view> refs;
  for (size_t row = 0; row < rows.size(); ++row) refs.push_back(list[row]);
  return LogChanges(context, compiled.table(), refs);
}

void CountChanges(AccessContext* context, const CompiledTable& compiled, size_t rows) {
  if (!compiled.paged()) return;
  context->CountChanges(compiled, rows);
}

// One index's part of an insert.
struct InsertIndex {
  const IndexCodec* codec;
  StringList keys;               // one a row; empty for those that the index leaves out
  std::vector<uint32_t> probes;  // place in the probe, or kNoProbe
  bool arbiter = false;          // its conflicts are skipped or reported
  bool absent = false;           // its keys are new by construction
  bool deferred = false;         // whether its keys are new is asked by the transaction itself
};

class Inserter {
 public:
  // `rows` are IndexedRows of `living`.
  Inserter(AccessContext* context, const CompiledTable& compiled, const RowBatch& living,
           const RowBatch& rows)
      : context_(context), compiled_(compiled), living_(living), rows_(rows), probe_(compiled) {}

  Status Run(const ConflictPolicy& policy, bool fresh_row_ids, InsertOutcome* outcome) {
    bulk_ = context_->bulk == compiled_.table().storage_id() &&
            policy.kind == ConflictPolicy::Kind::kError;
    AppendRefs(compiled_, rows_, &refs_);
    if (bulk_ && context_->bulk_pages != nullptr) {
      CELLAR_TRY_ASSIGN(rows_taken_, context_->bulk_pages->Add(living_, refs_, fresh_row_ids));
    }
    Prepare(policy, fresh_row_ids);
    CELLAR_TRY(LockDeferred());
    CELLAR_TRY(probe_.Run(context_));
    CELLAR_TRY(Resolve(policy, outcome));
    return Write();
  }

 private:
  void Prepare(const ConflictPolicy& policy, bool fresh_row_ids) {
    indexes_.reserve(compiled_.indexes().size());
    for (const IndexCodec& codec : compiled_.indexes()) {
      if (!TakesEntries(*codec.index) || (codec.primary && rows_taken_)) continue;
      InsertIndex& index = indexes_.emplace_back();
      index.codec = &codec;
      index.absent = codec.primary && fresh_row_ids;
      // A tombstone would look like a row there.
      index.deferred =
          bulk_ && codec.unique && !index.absent && !(codec.primary && compiled_.paged());
      index.arbiter =
          policy.kind != ConflictPolicy::Kind::kError && codec.unique &&
          (policy.indexes.empty() || std::find(policy.indexes.begin(), policy.indexes.end(),
                                               codec.index->id) != policy.indexes.end());
      for (size_t i = 0; i < rows_.size(); ++i) {
        if (codec.Holds(rows_, i)) codec.AppendKey(rows_, i, refs_[i], index.keys.buffer());
        index.keys.End();
      }
    }
    // Views of the keys are taken once no buffer grows any more.
    uint32_t probes = 0;
    for (InsertIndex& index : indexes_) {
      index.probes.assign(rows_.size(), kNoProbe);
      if (!index.codec->unique || index.absent || index.deferred) continue;
      for (size_t i = 0; i < rows_.size(); ++i) {
        if (index.keys[i].empty() || index.codec->EscapesUniqueness(rows_, i)) continue;
        probe_.Add(index.keys[i], index.codec->primary);
        index.probes[i] = probes++;
      }
    }
  }

  // Whether these are there the transaction itself asks, later.
  Status LockDeferred() {
    std::vector<std::string_view> keys;
    for (const InsertIndex& index : indexes_) {
      for (size_t row = 0; index.deferred && row < rows_.size(); ++row) {
        if (index.keys[row].empty() || index.codec->EscapesUniqueness(rows_, row)) continue;
        keys.push_back(index.keys[row]);
      }
    }
    return LockChangedKeys(context_, keys);
  }

  bool Conflicts(const InsertIndex& index, size_t row) const {
    const uint32_t probe = index.probes[row];
    return probe != kNoProbe &&
           (probe_.found(probe) || probe_.found_since(probe) || added_.contains(probe_.key(probe)));
  }

  // Decides row by row, so that a row may conflict with an earlier one of the batch.
  Status Resolve(const ConflictPolicy& policy, InsertOutcome* outcome) {
    skipped_.assign(rows_.size(), 0);
    added_.reserve(rows_.size());
    for (size_t row = 0; row < rows_.size(); ++row) {
      const InsertIndex* arbiter = nullptr;
      for (const InsertIndex& index : indexes_) {
        if (!index.arbiter || !Conflicts(index, row)) continue;
        arbiter = &index;
        break;
      }
      if (arbiter != nullptr) {
        // It can be neither seen nor passed over.
        if (probe_.found_since(arbiter->probes[row])) return ConcurrentUpdate();
        skipped_[row] = 1;
        if (policy.kind == ConflictPolicy::Kind::kReport) {
          CELLAR_TRY(Report(*arbiter, row, outcome));
        }
        continue;
      }
      for (const InsertIndex& index : indexes_) {
        if (Conflicts(index, row)) {
          return DuplicateKey(compiled_, *index.codec, rows_, row, context_->format);
        }
      }
      for (const InsertIndex& index : indexes_) {
        const uint32_t probe = index.probes[row];
        if (probe != kNoProbe) added_.insert(probe_.key(probe));
      }
    }
    if (outcome != nullptr) {
      outcome->inserted.assign(rows_.size(), 1);
      for (size_t row = 0; row < rows_.size(); ++row) outcome->inserted[row] = !skipped_[row];
      outcome->conflicting_ref.resize(policy.kind == ConflictPolicy::Kind::kReport ? rows_.size()
                                                                                   : 0);
    }
    return Status();
  }

  Status Report(const InsertIndex& index, size_t row, InsertOutcome* outcome) {
    if (outcome == nullptr) return Status();
    outcome->conflicting_ref.resize(rows_.size());
    const uint32_t probe = index.probes[row];
    if (!probe_.found(probe)) return Status();
    std::string scratch;
    RowBatch scratch_row;
    Result<std::string_view> ref =
        index.codec->FindRef(probe_.key(probe), probe_.value(probe), &scratch, &scratch_row);
    if (!ref.ok()) return DamagedEntry(compiled_.table(), *index.codec->index, ref.status());
    outcome->conflicting_ref[row] = ref.value();
    return Status();
  }

  Status Write() {
    std::string value;
    std::vector<Datum> scratch;
    for (const InsertIndex& index : indexes_) {
      for (size_t row = 0; row < rows_.size(); ++row) {
        if (!skipped_.empty() && skipped_[row]) continue;
        if (index.keys[row].empty()) continue;
        value.clear();
        if (index.codec->primary) {
          CELLAR_TRY(compiled_.AppendRow(rows_, row, &value));
          if (compiled_.paged()) {
            CELLAR_TRY(PutRow(context_, compiled_, index.keys[row], value, rows_, nullptr, row));
            continue;
          }
          if (compiled_.split()) {
            CELLAR_TRY(PutParts(context_, compiled_, index.keys[row], rows_, nullptr, row));
          }
        } else {
          CELLAR_TRY(index.codec->AppendValue(rows_, row, refs_[row], &scratch, &value));
        }
        if (index.deferred && !index.codec->EscapesUniqueness(rows_, row)) {
          CELLAR_TRY(PutIfAbsent(index, index.keys[row], value));
        } else {
          CELLAR_TRY(context_->transaction->Put(index.keys[row], value));
        }
      }
    }
    for (const IndexCodec& codec : compiled_.indexes()) {
      if (!IsBeingBuilt(*codec.index)) continue;
      BuildNotes notes;
      for (size_t row = 0; row < rows_.size(); ++row) {
        if (skipped_[row] == 0 && codec.Holds(rows_, row)) notes.Add(codec, refs_[row], {});
      }
      CELLAR_TRY(notes.Write(context_, compiled_.table(), codec));
    }
    return Status();
  }

  Status PutIfAbsent(const InsertIndex& index, std::string_view key, std::string_view value) {
    Status status = context_->transaction->PutIfAbsent(key, value);
    if (status.code() != Code::kConstraint) return status;
    // Perhaps a key that was put long ago.
    const std::string_view duplicate = context_->transaction->duplicate_key();
    for (const InsertIndex& other : indexes_) {
      if (duplicate.starts_with(other.codec->prefix)) {
        return DuplicateKey(compiled_, *other.codec, duplicate, context_->format);
      }
    }
    return DuplicateKey(compiled_, *index.codec, key, context_->format);
  }

  AccessContext* context_;
  const CompiledTable& compiled_;
  const RowBatch& living_;
  const RowBatch& rows_;
  bool bulk_ = false;
  bool rows_taken_ = false;  // they are in pages already
  StringList refs_;
  std::vector<InsertIndex> indexes_;
  UniqueProbe probe_;
  std::unordered_set<std::string_view> added_;
  std::vector<uint8_t> skipped_;
};

// Locks the unique keys that rows which are about to be deleted have.
Status LockKeysOf(AccessContext* context, const CompiledTable& compiled,
                  std::span<const std::string_view> refs, const RowBatch& rows) {
  StringList list;
  for (const IndexCodec& index : compiled.indexes()) {
    if (!index.unique || !LosesEntries(*index.index)) continue;
    // Nobody asks for the numbers that rows without a key of their own have.
    if (index.primary && compiled.row_id_position() >= 0) continue;
    for (size_t row = 0; row < refs.size(); ++row) {
      if (!index.Holds(rows, row) || index.EscapesUniqueness(rows, row)) continue;
      index.AppendKey(rows, row, refs[row], list.buffer());
      list.End();
    }
  }
  std::vector<std::string_view> keys;
  for (size_t i = 0; i < list.size(); ++i) keys.push_back(list[i]);
  return LockChangedKeys(context, keys);
}

// Deletes rows of IndexedRows with all their entries; `picked`: one byte a row, null: all.
Status DeleteEntries(AccessContext* context, const CompiledTable& compiled,
                     std::span<const std::string_view> refs, const RowBatch& rows,
                     const uint8_t* picked) {
  std::string key;
  for (const IndexCodec& index : compiled.indexes()) {
    BuildNotes notes;
    const bool noted = IsBeingBuilt(*index.index);
    if (!noted && !LosesEntries(*index.index)) continue;
    for (size_t row = 0; row < refs.size(); ++row) {
      if ((picked != nullptr && picked[row] == 0) || !index.Holds(rows, row)) continue;
      key.clear();
      index.AppendKey(rows, row, refs[row], &key);
      if (noted) {
        notes.Add(index, refs[row], key);
      } else {
        CELLAR_TRY(DeleteEntry(context, compiled, index, key, refs[row], rows, row));
      }
    }
    CELLAR_TRY(notes.Write(context, compiled.table(), index));
  }
  return Status();
}

// One index's part of an update.
struct UpdateIndex {
  const IndexCodec* codec;
  // Empty strings for rows whose entry does not change, and for those without one.
  StringList old_keys, new_keys;
};

class Updater {
 public:
  // `set_aside`: see Access::Update; null: a key that is there is an error.
  Updater(AccessContext* context, const CompiledTable& compiled,
          std::span<const std::string_view> refs, const RowBatch& old_rows,
          const RowBatch& new_rows, std::vector<uint8_t>* set_aside)
      : context_(context),
        compiled_(compiled),
        old_refs_(refs),
        old_rows_(old_rows),
        new_rows_(new_rows),
        set_aside_(set_aside) {}

  Status Run() {
    AppendRefs(compiled_, new_rows_, &new_refs_);
    indexes_.reserve(compiled_.indexes().size());
    for (const IndexCodec& codec : compiled_.indexes()) {
      if (!LosesEntries(*codec.index)) continue;
      indexes_.emplace_back().codec = &codec;
      Prepare(&indexes_.back());
    }
    if (set_aside_ != nullptr) set_aside_->assign(new_rows_.size(), 0);
    CELLAR_TRY(CheckUnique());
    if (any_set_aside_) {
      CELLAR_TRY(DeleteEntries(context_, compiled_, old_refs_, old_rows_, set_aside_->data()));
    }
    CELLAR_TRY(Write());
    return NoteForBuilds();
  }

 private:
  void Prepare(UpdateIndex* index) {
    const IndexCodec& codec = *index->codec;
    for (size_t row = 0; row < new_rows_.size(); ++row) {
      const bool same =
          !codec.primary &&
          std::all_of(
              codec.all_positions.begin(), codec.all_positions.end(), [&](uint32_t position) {
                return Identical(old_rows_.column(position), row, new_rows_.column(position), row);
              });
      if (!same) {
        if (codec.Holds(old_rows_, row)) {
          codec.AppendKey(old_rows_, row, old_refs_[row], index->old_keys.buffer());
        }
        if (codec.Holds(new_rows_, row)) {
          codec.AppendKey(new_rows_, row, new_refs_[row], index->new_keys.buffer());
        }
      }
      index->old_keys.End();
      index->new_keys.End();
    }
  }

  bool SetAside(size_t row) const { return any_set_aside_ && (*set_aside_)[row] != 0; }
  Status SetAsideOrFail(const UpdateIndex& index, size_t row) {
    if (set_aside_ == nullptr) {
      return DuplicateKey(compiled_, *index.codec, new_rows_, row, context_->format);
    }
    any_set_aside_ = true;
    (*set_aside_)[row] = 1;
    return Status();
  }

  // The state after the whole batch: a key may be taken that another row of the batch leaves.
  Status CheckUnique() {
    std::unordered_set<std::string_view> left;
    std::vector<std::string_view> going;
    UniqueProbe probe(compiled_);
    struct Added {
      const UpdateIndex* index;
      size_t row;
    };
    std::vector<Added> added;
    for (const UpdateIndex& index : indexes_) {
      if (!index.codec->unique || !TakesEntries(*index.codec->index)) continue;
      for (size_t row = 0; row < new_rows_.size(); ++row) {
        if (index.old_keys[row] == index.new_keys[row]) continue;
        left.insert(index.old_keys[row]);
        if (!index.old_keys[row].empty()) going.push_back(index.old_keys[row]);
        if (index.new_keys[row].empty()) continue;
        if (index.codec->EscapesUniqueness(new_rows_, row)) continue;
        probe.Add(index.new_keys[row], index.codec->primary);
        added.push_back({&index, row});
      }
    }
    CELLAR_TRY(LockChangedKeys(context_, going));
    if (added.empty()) return Status();
    CELLAR_TRY(probe.Run(context_));
    std::unordered_set<std::string_view> taken;
    for (size_t i = 0; i < added.size(); ++i) {
      if (probe.found_since(i)) {
        return DuplicateKey(compiled_, *added[i].index->codec, new_rows_, added[i].row,
                            context_->format);
      }
      const bool there = probe.found(i) && !left.contains(probe.key(i));
      if (there || !taken.insert(probe.key(i)).second) {
        CELLAR_TRY(SetAsideOrFail(*added[i].index, added[i].row));
      }
    }
    return Status();
  }

  Status Write() {
    kv::Transaction* transaction = context_->transaction;
    for (const UpdateIndex& index : indexes_) {
      const bool takes = TakesEntries(*index.codec->index);
      for (size_t row = 0; row < new_rows_.size(); ++row) {
        if (SetAside(row)) continue;
        const bool stays = takes && index.old_keys[row] == index.new_keys[row];
        if (!stays && !index.old_keys[row].empty()) {
          CELLAR_TRY(DeleteEntry(context_, compiled_, *index.codec, index.old_keys[row],
                                 old_refs_[row], old_rows_, row));
        }
      }
    }
    std::string value;
    std::vector<Datum> scratch;
    for (const UpdateIndex& index : indexes_) {
      if (!TakesEntries(*index.codec->index)) continue;
      if (index.codec->primary) {
        CELLAR_TRY(WriteRows(index));
        continue;
      }
      for (size_t row = 0; row < new_rows_.size(); ++row) {
        if (SetAside(row) || index.new_keys[row].empty()) continue;
        value.clear();
        CELLAR_TRY(index.codec->AppendValue(new_rows_, row, new_refs_[row], &scratch, &value));
        CELLAR_TRY(transaction->Put(index.new_keys[row], value));
      }
    }
    return Status();
  }

  Status NoteForBuilds() {
    for (const IndexCodec& codec : compiled_.indexes()) {
      if (!IsBeingBuilt(*codec.index)) continue;
      UpdateIndex index;
      index.codec = &codec;
      Prepare(&index);
      BuildNotes notes;
      for (size_t row = 0; row < new_rows_.size(); ++row) {
        if (SetAside(row)) continue;
        const bool moves = new_refs_[row] != old_refs_[row];
        const bool comes = !index.new_keys[row].empty();
        if (!index.old_keys[row].empty() || (comes && !moves)) {
          notes.Add(codec, old_refs_[row], index.old_keys[row]);
        }
        if (comes && moves) notes.Add(codec, new_refs_[row], {});
      }
      CELLAR_TRY(notes.Write(context_, compiled_.table(), codec));
    }
    return Status();
  }

  // Whole rows, or where those are long and lie in pages, patches over them.
  Status WriteRows(const UpdateIndex& index) {
    kv::Transaction* transaction = context_->transaction;
    std::string value;
    StringList patches;
    std::vector<std::pair<size_t, std::string>> long_rows;
    std::vector<std::string_view> keys;
    for (size_t row = 0; row < new_rows_.size(); ++row) {
      if (SetAside(row)) continue;
      value.clear();
      CELLAR_TRY(compiled_.AppendRow(new_rows_, row, &value));
      const std::string_view key = index.new_keys[row];
      const bool same_key = key == index.old_keys[row];
      if (compiled_.paged() && value.size() > kPatchAbove && value.size() <= kLongestInRow &&
          same_key && !HasLongValue(compiled_, old_rows_, row)) {
        AppendPatch(row, patches.buffer());
        patches.End();
        if (patches[patches.size() - 1].size() < value.size() / 2) {
          keys.push_back(key);
          long_rows.emplace_back(row, std::move(value));
          continue;
        }
        patches.DropLast();
      }
      const RowBatch* before = same_key ? &old_rows_ : nullptr;
      CELLAR_TRY(PutRow(context_, compiled_, key, value, new_rows_, before, row));
      if (compiled_.split()) {
        CELLAR_TRY(PutParts(context_, compiled_, key, new_rows_, before, row));
      }
    }
    if (keys.empty()) return Status();
    // What is in the delta already must stay whole.
    std::vector<kv::PinnedValue> delta;
    std::vector<uint8_t> found;
    CELLAR_TRY(context_->MultiGet(keys, nullptr, &delta, &found));
    for (size_t i = 0; i < keys.size(); ++i) {
      CELLAR_TRY(transaction->Put(keys[i], found[i] ? long_rows[i].second : patches[i]));
    }
    return Status();
  }

  void AppendPatch(size_t row, std::string* out) const {
    codec::BeginPatch(out);
    for (size_t i = 0; i < compiled_.living().size(); ++i) {
      if (Identical(old_rows_.column(i), row, new_rows_.column(i), row)) continue;
      codec::AppendPatchColumn(compiled_.living_ids()[i], new_rows_.column(i).Get(row),
                               compiled_.living_types()[i], out);
    }
  }

  AccessContext* context_;
  const CompiledTable& compiled_;
  std::span<const std::string_view> old_refs_;
  const RowBatch& old_rows_;
  const RowBatch& new_rows_;
  std::vector<uint8_t>* const set_aside_;
  bool any_set_aside_ = false;
  StringList new_refs_;
  std::vector<UpdateIndex> indexes_;
};

}  // namespace

void AppendRefs(const CompiledTable& table, const RowBatch& rows, StringList* refs) {
  const IndexCodec& primary = table.primary();
  for (size_t row = 0; row < rows.size(); ++row) {
    codec::AppendKeyFields(rows, row, primary.key_positions, primary.key_columns, refs->buffer());
    refs->End();
  }
}

Status InsertRows(AccessContext* context, const TablePtr& table, RowBatch* rows,
                  const ConflictPolicy& policy, InsertOutcome* outcome) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  CELLAR_TRY(CheckColumns(*compiled, *rows));
  CELLAR_TRY(context->CheckCancel());
  if (rows->size() == 0) {
    if (outcome != nullptr) *outcome = InsertOutcome();
    return Status();
  }
  CELLAR_TRY_ASSIGN(bool fresh, FillRowIds(context, table, *compiled, rows));
  CELLAR_TRY(CheckNotNull(*compiled, *rows, context->format));
  CountChanges(context, *compiled, rows->size());
  CELLAR_TRY(LogRows(context, *compiled, *rows));
  IndexedRows indexed;
  CELLAR_TRY(indexed.Compute(*compiled, *rows));
  return Inserter(context, *compiled, *rows, indexed.rows()).Run(policy, fresh, outcome);
}

Status UpdateRows(AccessContext* context, const TablePtr& table,
                  std::span<const std::string_view> refs, const RowBatch& old_rows,
                  const RowBatch& new_rows, std::vector<uint8_t>* set_aside) {
  CELLAR_TRY(context->FlushBulk());
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  CELLAR_TRY(CheckColumns(*compiled, old_rows));
  CELLAR_TRY(CheckColumns(*compiled, new_rows));
  CELLAR_TRY(context->CheckCancel());
  if (refs.size() != old_rows.size() || refs.size() != new_rows.size()) {
    return InternalError("update of {} rows with {} old and {} new ones", refs.size(),
                         old_rows.size(), new_rows.size());
  }
  CELLAR_TRY(CheckNotNull(*compiled, new_rows, context->format));
  CountChanges(context, *compiled, new_rows.size());
  CELLAR_TRY(LogChanges(context, *table, refs));
  CELLAR_TRY(LogRows(context, *compiled, new_rows));
  IndexedRows old_indexed, new_indexed;
  CELLAR_TRY(old_indexed.Compute(*compiled, old_rows));
  CELLAR_TRY(new_indexed.Compute(*compiled, new_rows));
  return Updater(context, *compiled, refs, old_indexed.rows(), new_indexed.rows(), set_aside).Run();
}

Status DeleteRows(AccessContext* context, const TablePtr& table,
                  std::span<const std::string_view> refs, const RowBatch& old_rows) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  CELLAR_TRY(CheckColumns(*compiled, old_rows));
  CELLAR_TRY(context->CheckCancel());
  if (refs.size() != old_rows.size()) {
    return InternalError("delete of {} rows with {} old ones", refs.size(), old_rows.size());
  }
  IndexedRows indexed;
  CELLAR_TRY(indexed.Compute(*compiled, old_rows));
  CountChanges(context, *compiled, refs.size());
  CELLAR_TRY(LogChanges(context, *table, refs));
  CELLAR_TRY(LockKeysOf(context, *compiled, refs, indexed.rows()));
  return DeleteEntries(context, *compiled, refs, indexed.rows(), nullptr);
}

}  // namespace cellar::table
