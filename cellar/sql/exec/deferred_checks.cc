#include "cellar/sql/exec/deferred_checks.h"

#include <algorithm>
#include <utility>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/exec/foreign_keys.h"

namespace cellar::sql {

using exec::ExecState;
using exec::KeyTable;
using exec::Reference;

struct DeferredChecks::Pending {
  catalog::TableId child, parent;
  uint64_t order = 0;  // in which constraints were first met
  KeyTable written;    // of the child's types
  KeyTable gone;       // of the parent's
  bool whole = false;  // instead of both: every row of the child
  size_t compact_at = 0;

  size_t footprint_bytes() const { return written.footprint_bytes() + gone.footprint_bytes(); }
};

struct DeferredChecks::Layer {
  std::map<uint32_t, Pending> keys;  // by the oid of the foreign key
};

namespace {

void AddKeys(const RowBatch& keys, KeyTable* table) {
  if (keys.size() == 0) return;
  std::vector<const ColumnVector*> columns;
  for (const ColumnVector& column : keys.columns()) columns.push_back(&column);
  std::vector<uint32_t> ids(keys.size());
  table->FindOrInsert(columns, keys.size(), ids.data());
}

RowBatch Some(const RowBatch& keys, const std::vector<uint8_t>& there) {
  std::vector<uint32_t> picks;
  for (uint32_t i = 0; i < there.size(); ++i) {
    if (!there[i]) picks.push_back(i);
  }
  RowBatch some;
  some.columns().resize(keys.num_columns());
  for (size_t c = 0; c < keys.num_columns(); ++c)
    exec::GatherColumn(keys.column(c), picks.data(), picks.size(), &some.column(c));
  some.SetSize(picks.size());
  return some;
}

}  // namespace

DeferredChecks::DeferredChecks() = default;
DeferredChecks::~DeferredChecks() = default;

void DeferredChecks::Set(std::span<const uint32_t> oids, bool deferred) {
  if (oids.empty()) {
    all_ = deferred;
    named_.clear();
  }
  for (uint32_t oid : oids) named_[oid] = deferred;
}

bool DeferredChecks::Defers(const catalog::ForeignKey& key) const {
  if (!key.deferrable) return false;
  const auto at = named_.find(key.oid);
  return at != named_.end() ? at->second : all_.value_or(key.initially_deferred);
}

bool DeferredChecks::Waits(catalog::TableId table) const {
  for (size_t i = 0; i < layers_.size(); ++i) {
    for (const auto& [oid, pending] : layers_[i]->keys) {
      if (checked_.count({i, oid}) != 0) continue;
      if ((pending.child == table && (pending.whole || pending.written.size() > 0)) ||
          (pending.parent == table && (pending.whole || pending.gone.size() > 0))) {
        return true;
      }
    }
  }
  return false;
}

DeferredChecks::Pending& DeferredChecks::Find(const Reference& reference, const ExecState& state) {
  if (layers_.size() == closed_) layers_.push_back(std::make_unique<Layer>());
  auto [at, fresh] = layers_.back()->keys.try_emplace(reference.key().oid);
  Pending& pending = at->second;
  if (fresh) {
    pending.child = reference.child()->id;
    pending.parent = reference.parent()->id;
    pending.order = order_++;
    pending.compact_at = exec::MaxGatheredBytes(state);
    pending.written.Reset(reference.child_types());
    pending.gone.Reset(reference.parent_types());
  }
  return pending;
}

Status DeferredChecks::AddWritten(const Reference& reference, const RowBatch& keys,
                                  ExecState* state) {
  Pending& pending = Find(reference, *state);
  if (pending.whole) return Status();
  AddKeys(keys, &pending.written);
  if (pending.footprint_bytes() <= pending.compact_at) return Status();
  CELLAR_TRY(exec::KeepMissing(reference, state, &pending.written));
  return Bound(reference, *state, &pending);
}

Status DeferredChecks::AddGone(const Reference& reference, const RowBatch& keys, ExecState* state) {
  Pending& pending = Find(reference, *state);
  if (pending.whole) return Status();
  AddKeys(keys, &pending.gone);
  if (pending.footprint_bytes() <= pending.compact_at) return Status();
  std::vector<uint8_t> there;
  CELLAR_TRY(reference.StillThere(pending.gone.keys(), state, &there));
  KeyTable left;
  left.Reset(reference.parent_types());
  AddKeys(Some(pending.gone.keys(), there), &left);
  pending.gone = std::move(left);
  return Bound(reference, *state, &pending);
}

Status DeferredChecks::Bound(const Reference& reference, const ExecState& state, Pending* pending) {
  const size_t limit = exec::MaxGatheredBytes(state);
  pending->compact_at = std::max(limit, 2 * pending->footprint_bytes());
  if (pending->footprint_bytes() <= limit) return Status();
  if (!reference.key().validated) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "too many keys wait for the check of constraint \"{}\", which is not validated",
                    reference.key().name);
  }
  pending->whole = true;
  pending->written.Reset(reference.child_types());
  pending->gone.Reset(reference.parent_types());
  return Status();
}

// Rows that are older than the constraint cannot break it: it is validated.
Status DeferredChecks::LookAtAll(const Reference& reference, ExecState* state) const {
  const exec::HeldReads held(state);
  table::ScanSpec spec;
  spec.table = reference.child();
  spec.index = reference.child()->primary().id;
  spec.spans = {table::Span{}};
  spec.columns = reference.key().columns;
  CELLAR_TRY_ASSIGN(std::unique_ptr<table::Reader> reader, state->access().Scan(std::move(spec)));
  RowBatch batch;
  std::vector<uint8_t> there;
  while (true) {
    CELLAR_TRY(state->CheckCancel());
    CELLAR_TRY_ASSIGN(const bool more, reader->Next(&batch));
    if (!more) return Status();
    std::vector<uint8_t> null(batch.size(), 0);
    for (size_t row = 0; row < batch.size(); ++row) {
      for (const ColumnVector& column : batch.columns()) null[row] |= column.IsNull(row) ? 1 : 0;
    }
    const RowBatch keys = Some(batch, null);
    CELLAR_TRY(reference.FindParents(keys, Reference::Hold::kLocks, state, &there));
    const auto missing = std::find(there.begin(), there.end(), 0);
    if (missing == there.end()) continue;
    return reference.NotPresent(keys, static_cast<size_t>(missing - there.begin()),
                                state->context->format);
  }
}

Status DeferredChecks::Look(const Reference& reference, const Pending& pending,
                            ExecState* state) const {
  if (pending.whole) CELLAR_TRY(LookAtAll(reference, state));
  std::vector<uint8_t> there;
  RowBatch rows;
  std::vector<uint32_t> key_of;
  if (pending.written.size() > 0) {
    CELLAR_TRY(
        reference.FindParents(pending.written.keys(), Reference::Hold::kLocks, state, &there));
    const RowBatch missing = Some(pending.written.keys(), there);
    if (missing.size() > 0) {
      CELLAR_TRY(
          reference.FindChildren(missing, Reference::Keys::kOfChild, true, state, &rows, &key_of));
      if (rows.size() > 0) return reference.NotPresent(missing, key_of[0], state->context->format);
    }
  }
  if (pending.gone.size() == 0) return Status();
  CELLAR_TRY(reference.NoteGone(pending.gone.keys(), state));
  CELLAR_TRY(reference.StillThere(pending.gone.keys(), state, &there));
  const RowBatch missing = Some(pending.gone.keys(), there);
  if (missing.size() == 0) return Status();
  CELLAR_TRY(reference.LockChildren(missing, kv::kForKeyShare, true, state, &rows, &key_of));
  if (rows.size() == 0) return Status();
  return reference.StillReferenced(missing, key_of[0], state->context->format);
}

Status DeferredChecks::Check(const ExecEnvironment& environment, bool all) {
  struct Todo {
    size_t layer;
    uint32_t oid;
    const Pending* pending;
  };
  std::vector<Todo> todo;
  for (size_t i = 0; i < layers_.size(); ++i) {
    for (const auto& [oid, pending] : layers_[i]->keys) {
      if (checked_.count({i, oid}) == 0) todo.push_back({i, oid, &pending});
    }
  }
  std::sort(todo.begin(), todo.end(), [](const Todo& a, const Todo& b) {
    return std::pair(a.layer, a.pending->order) < std::pair(b.layer, b.pending->order);
  });
  ExecState state;
  state.env = environment;
  state.context = environment.context;
  bool checked = false;
  for (const Todo& one : todo) {
    const catalog::TablePtr child = environment.catalog->GetTable(one.pending->child);
    const catalog::TablePtr parent = environment.catalog->GetTable(one.pending->parent);
    const catalog::ForeignKey* key = nullptr;
    if (child != nullptr && parent != nullptr) {
      for (const catalog::ForeignKey& candidate : child->foreign_keys) {
        if (candidate.oid == one.oid) key = &candidate;
      }
    }
    if (key != nullptr) {
      if (!all && Defers(*key)) continue;
      CELLAR_TRY(Look(Reference(child, key, parent), *one.pending, &state));
    }
    checked = true;
    if (savepoints_ > 0) {
      checked_.insert({one.layer, one.oid});
    } else {
      layers_[one.layer]->keys.erase(one.oid);
    }
  }
  if (!checked) return Status();
  if (savepoints_ > 0) {
    closed_ = layers_.size();  // a key that comes again is to be looked at again
    return Status();
  }
  layers_.erase(std::remove_if(layers_.begin(), layers_.end(),
                               [](const auto& layer) { return layer->keys.empty(); }),
                layers_.end());
  closed_ = 0;
  return Status();
}

DeferredChecks::Mark DeferredChecks::Savepoint() {
  ++savepoints_;
  closed_ = layers_.size();
  return {layers_.size(), all_, named_, checked_};
}

void DeferredChecks::RollbackTo(const Mark& mark) {
  layers_.resize(std::min(layers_.size(), mark.layers));
  closed_ = layers_.size();
  all_ = mark.all;
  named_ = mark.named;
  checked_ = mark.checked;
}

void DeferredChecks::Release(const Mark* outer) {
  const size_t base = outer == nullptr ? 0 : outer->layers;
  if (outer == nullptr) {
    savepoints_ = 0;
    for (const auto& [layer, oid] : checked_) layers_[layer]->keys.erase(oid);
    checked_.clear();
  }
  if (!checked_.empty()) {
    closed_ = layers_.size();
    return;
  }
  // Layers that belong together again become one, lest there be one for each savepoint of a loop.
  closed_ = base;
  for (size_t i = base + 1; i < layers_.size(); ++i) {
    for (auto& [oid, from] : layers_[i]->keys) {
      const auto [at, fresh] = layers_[base]->keys.try_emplace(oid);
      Pending& to = at->second;
      if (fresh) {
        to = std::move(from);
        continue;
      }
      AddKeys(from.written.keys(), &to.written);
      AddKeys(from.gone.keys(), &to.gone);
      to.whole |= from.whole;
    }
  }
  if (layers_.size() > base + 1) layers_.resize(base + 1);
}

}  // namespace cellar::sql
