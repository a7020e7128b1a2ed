#include "cellar/sql/exec/foreign_keys.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/sql/exec/deferred_checks.h"
#include "cellar/sql/exec/row_checks.h"
#include "cellar/types/convert.h"
#include "cellar/types/reference_key.h"

namespace cellar::sql::exec {
namespace {

constexpr int kMaxCascadeDepth = 64;

// Rows of `rows` without a NULL among `columns`, as a dense batch of those columns.
RowBatch WithoutNulls(const RowBatch& rows, const std::vector<int>& columns,
                      std::vector<uint32_t>* picks) {
  picks->clear();
  for (uint32_t row = 0; row < rows.size(); ++row) {
    bool null = false;
    for (int column : columns) null |= rows.column(column).IsNull(row);
    if (!null) picks->push_back(row);
  }
  RowBatch dense;
  dense.columns().resize(columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    GatherColumn(rows.column(columns[c]), picks->data(), picks->size(), &dense.column(c));
  }
  dense.SetSize(picks->size());
  return dense;
}

std::vector<const ColumnVector*> All(const RowBatch& rows) {
  std::vector<const ColumnVector*> columns;
  for (const ColumnVector& column : rows.columns()) columns.push_back(&column);
  return columns;
}

int LivingPosition(const catalog::TableDescriptor& table, catalog::ColumnId id) {
  int position = 0;
  for (const catalog::ColumnDescriptor& column : table.columns) {
    if (column.dropped) continue;
    if (column.id == id) return position;
    ++position;
  }
  return -1;
}

// "(a, b)=(1, x)".
std::string DescribeKey(const catalog::TableDescriptor& table,
                        const std::vector<catalog::ColumnId>& columns, const RowBatch& keys,
                        size_t row, const FormatSettings& format) {
  std::string names, values;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (c > 0) {
      names += ", ";
      values += ", ";
    }
    names += table.FindColumn(columns[c])->name;
    AppendDatumText(keys.column(c).Get(row), keys.column(c).type(), format, &values);
  }
  return fmt::format("({})=({})", names, values);
}

// The index whose first key columns are `columns` in some order, and that order (positions in
// `columns`). `unique`: one that has no others.
const catalog::IndexDescriptor* IndexOn(const catalog::TableDescriptor& table,
                                        const std::vector<catalog::ColumnId>& columns, bool unique,
                                        std::vector<int>* order) {
  for (const catalog::IndexDescriptor& index : table.indexes) {
    if (index.state != catalog::IndexState::kPublic || index.key.size() < columns.size() ||
        !index.predicate.empty() ||
        (unique && (!index.unique || index.key.size() != columns.size()))) {
      continue;
    }
    order->clear();
    for (size_t k = 0; k < columns.size(); ++k) {
      auto at = std::find(columns.begin(), columns.end(), index.key[k].column);
      if (at == columns.end()) break;
      order->push_back(static_cast<int>(at - columns.begin()));
    }
    if (order->size() == columns.size()) return &index;
  }
  return nullptr;
}

// The unique index by which a foreign key finds rows, and the order of its columns.
Result<const catalog::IndexDescriptor*> ReferencedIndex(const catalog::TableDescriptor& table,
                                                        const catalog::ForeignKey& key,
                                                        std::vector<int>* order) {
  const catalog::IndexDescriptor* index = IndexOn(table, key.referenced_columns, true, order);
  if (index != nullptr) return index;
  return InternalError("foreign key \"{}\" has no index to look in", key.name);
}

// there[i]: the referenced table has row i of `keys`. With Hold::kLocks, those that are there stay
// until this transaction ends.
Status LookUp(const catalog::TablePtr& table, const catalog::ForeignKey& key, const RowBatch& keys,
              Reference::Hold hold, ExecState* state, std::vector<uint8_t>* there) {
  there->assign(keys.size(), 0);
  std::vector<int> order;
  CELLAR_TRY_ASSIGN(const catalog::IndexDescriptor* index, ReferencedIndex(*table, key, &order));
  table::Access& access = state->access();
  table::ScanSpec spec;
  spec.table = table;
  spec.index = index->id;
  for (int column : order) spec.columns.push_back(key.referenced_columns[column]);
  spec.with_row_ref = true;
  std::optional<HeldReads> held;
  if (hold == Reference::Hold::kReads) held.emplace(state);
  CELLAR_TRY(access.SeeNewest());
  RowBatch some, found;
  std::vector<uint32_t> key_row;
  size_t next = 0;
  for (size_t start = 0; EmitChunk(keys, &order, &next, &some) != nullptr; start = next) {
    // Who waits for somebody to end looks once more, and is then sure of what he has locked.
    for (bool sure = false; !sure;) {
      key_row.clear();
      CELLAR_TRY(access.Lookup(spec, some, &found, &key_row));
      sure = true;
      if (hold == Reference::Hold::kReads || found.size() == 0) break;
      const std::span<const std::string_view> refs(found.column(order.size()).bytes(),
                                                   found.size());
      table::RowLockSpec how{kv::kForKeyShare};
      how.only_tell = true;
      std::vector<table::RowLockOutcome> outcomes;
      kv::ReadViewPtr newest;
      CELLAR_TRY(access.LockRows(*table, refs, how, nullptr, &outcomes, &newest));
      sure = newest == nullptr;
    }
    for (uint32_t row : key_row) (*there)[start + row] = 1;
    if (hold == Reference::Hold::kReads || key_row.empty()) continue;
    std::vector<uint32_t> present(key_row.begin(), key_row.end());
    std::sort(present.begin(), present.end());
    present.erase(std::unique(present.begin(), present.end()), present.end());
    some.Keep(present);
    CELLAR_TRY(access.HoldKeys(*table, index->id, some));
  }
  return Status();
}

RowBatch Pick(const RowBatch& rows, const std::vector<uint32_t>& picks) {
  RowBatch some;
  some.columns().resize(rows.num_columns());
  for (size_t c = 0; c < rows.num_columns(); ++c) {
    GatherColumn(rows.column(c), picks.data(), picks.size(), &some.column(c));
  }
  some.SetSize(picks.size());
  return some;
}

// Rows of `keys` as values of the other side's types; those that no value there equals are left
// out. kept[i]: the row of `keys` that row i was. The batch owns its bytes.
RowBatch Convert(const RowBatch& keys, const std::vector<Type>& from, const std::vector<Type>& to,
                 const FormatSettings& format, std::vector<uint32_t>* kept) {
  RowBatch converted;
  converted.Reset(to);
  kept->clear();
  Arena arena;
  std::vector<Datum> values(to.size());
  for (uint32_t row = 0; row < keys.size(); ++row) {
    bool all = true;
    for (size_t c = 0; all && c < to.size(); ++c) {
      all =
          ConvertReferenceKey(keys.column(c).Get(row), from[c], to[c], format, &arena, &values[c]);
    }
    if (!all) continue;
    converted.AppendRow(values);
    kept->push_back(row);
  }
  return converted;
}

}  // namespace

std::vector<catalog::ColumnId> LivingColumns(const catalog::TableDescriptor& table) {
  std::vector<catalog::ColumnId> columns;
  for (const catalog::ColumnDescriptor& column : table.columns) {
    if (!column.dropped) columns.push_back(column.id);
  }
  return columns;
}

std::vector<Type> LivingTypes(const catalog::TableDescriptor& table) {
  std::vector<Type> types;
  for (const catalog::ColumnDescriptor& column : table.columns) {
    if (!column.dropped) types.push_back(column.type);
  }
  return types;
}

std::string DescribeRow(const catalog::TableDescriptor& table, const RowBatch& rows, size_t row,
                        const FormatSettings& format) {
  std::string text = "(";
  size_t position = 0;
  for (const catalog::ColumnDescriptor& column : table.columns) {
    if (column.dropped) continue;
    const ColumnVector& values = rows.column(position++);
    if (column.hidden) continue;
    if (text.size() > 1) text += ", ";
    if (values.IsNull(row)) {
      text += "null";
      continue;
    }
    std::string value;
    AppendDatumText(values.Get(row), column.type, format, &value);
    constexpr size_t kMaxShown = 64;
    if (value.size() > kMaxShown) {
      size_t cut = kMaxShown;
      while (cut > 0 && (static_cast<unsigned char>(value[cut]) & 0xC0) == 0x80) --cut;
      value.resize(cut);
      value += "...";
    }
    text += value;
  }
  return text + ")";
}

Reference::Reference(catalog::TablePtr child, const catalog::ForeignKey* key,
                     catalog::TablePtr parent)
    : child_(std::move(child)), parent_(std::move(parent)), key_(key) {
  for (catalog::ColumnId column : key->columns) {
    child_columns_.push_back(LivingPosition(*child_, column));
    child_types_.push_back(child_->FindColumn(column)->type);
  }
  for (catalog::ColumnId column : key->referenced_columns) {
    parent_columns_.push_back(LivingPosition(*parent_, column));
    parent_types_.push_back(parent_->FindColumn(column)->type);
  }
  for (size_t c = 0; c < child_types_.size(); ++c) {
    same_keys_ &= HaveSameKeys(child_types_[c], parent_types_[c]);
    injective_ &= IsInjectiveReference(child_types_[c], parent_types_[c]);
  }
}

Status Reference::FindParents(const RowBatch& keys, Hold hold, ExecState* state,
                              std::vector<uint8_t>* there) const {
  if (same_keys_) return LookUp(parent_, *key_, keys, hold, state, there);
  std::vector<uint32_t> kept;
  std::vector<uint8_t> found;
  const RowBatch theirs = Convert(keys, child_types_, parent_types_, state->context->format, &kept);
  CELLAR_TRY(LookUp(parent_, *key_, theirs, hold, state, &found));
  there->assign(keys.size(), 0);
  for (size_t i = 0; i < kept.size(); ++i) (*there)[kept[i]] = found[i];
  return Status();
}

Status Reference::StillThere(const RowBatch& keys, ExecState* state,
                             std::vector<uint8_t>* there) const {
  return LookUp(parent_, *key_, keys, Hold::kLocks, state, there);
}

Status Reference::NoteGone(const RowBatch& keys, ExecState* state) const {
  std::vector<int> order;
  CELLAR_TRY_ASSIGN(const catalog::IndexDescriptor* index,
                    ReferencedIndex(*parent_, *key_, &order));
  CELLAR_TRY(state->access().SeeNewest());
  RowBatch some;
  for (size_t next = 0; EmitChunk(keys, &order, &next, &some) != nullptr;) {
    CELLAR_TRY(state->access().NoteKeysGone(*parent_, index->id, some));
  }
  return Status();
}

Status Reference::FindChildren(const RowBatch& keys, Keys side, bool one, ExecState* state,
                               RowBatch* rows, std::vector<uint32_t>* key_of) const {
  key_of->clear();
  table::ScanSpec spec;
  spec.table = child_;
  spec.columns = LivingColumns(*child_);
  spec.with_row_ref = true;
  std::vector<Type> types = LivingTypes(*child_);
  types.push_back(MakeType(TypeId::kBytea));
  rows->Reset(types);
  std::vector<int> order;
  const catalog::IndexDescriptor* index = IndexOn(*child_, key_->columns, false, &order);
  const bool converts = side == Keys::kOfParent && !same_keys_;
  if (converts && !injective_) index = nullptr;
  KeyTable wanted;
  wanted.Reset(side == Keys::kOfChild ? child_types_ : parent_types_);
  std::vector<uint32_t> ids(keys.size());
  wanted.FindOrInsert(All(keys), keys.size(), ids.data());
  auto collect = [&](table::ScanSpec scan) -> Status {
    CELLAR_TRY_ASSIGN(std::unique_ptr<table::Reader> reader, state->access().Scan(std::move(scan)));
    RowBatch batch;
    std::vector<uint32_t> found, picks, dense, kept;
    while (!one || rows->size() == 0) {
      CELLAR_TRY(state->CheckCancel());
      CELLAR_TRY_ASSIGN(bool more, reader->Next(&batch));
      if (!more) return Status();
      RowBatch child_keys = WithoutNulls(batch, child_columns_, &dense);
      if (converts) {
        child_keys =
            Convert(child_keys, child_types_, parent_types_, state->context->format, &kept);
        for (size_t i = 0; i < kept.size(); ++i) dense[i] = dense[kept[i]];
      }
      found.resize(child_keys.size());
      wanted.Find(All(child_keys), child_keys.size(), found.data());
      picks.clear();
      for (size_t i = 0; i < found.size() && !(one && !picks.empty()); ++i) {
        if (found[i] == KeyTable::kAbsent) continue;
        picks.push_back(dense[i]);
        key_of->push_back(found[i]);
      }
      rows->AppendRows(batch, picks);
    }
    return Status();
  };
  if (index == nullptr) {
    spec.index = child_->primary().id;
    spec.spans = {table::Span{}};
    return collect(std::move(spec));
  }
  spec.index = index->id;
  std::vector<uint32_t> kept;
  const RowBatch ours =
      converts ? Convert(keys, parent_types_, child_types_, state->context->format, &kept)
               : FirstRows(keys, keys.size());
  for (size_t row = 0; row < ours.size() && !(one && rows->size() > 0); ++row) {
    table::ScanSpec point = spec;
    table::Span span;
    for (int column : order) span.equal.push_back(ours.column(column).Get(row));
    point.spans.push_back(std::move(span));
    CELLAR_TRY(collect(std::move(point)));
  }
  return Status();
}

Status Reference::LockChildren(const RowBatch& keys, kv::LockMode mode, bool one, ExecState* state,
                               RowBatch* rows, std::vector<uint32_t>* key_of) const {
  // Who waits for somebody to end looks once more, and is then sure of what he has locked.
  while (true) {
    CELLAR_TRY(FindChildren(keys, Keys::kOfParent, one, state, rows, key_of));
    if (rows->size() == 0) return Status();
    const ColumnVector& refs = rows->column(rows->num_columns() - 1);
    std::vector<table::RowLockOutcome> outcomes;
    kv::ReadViewPtr newest;
    CELLAR_TRY(state->access().LockRows(*child_, {refs.bytes(), rows->size()}, {mode}, nullptr,
                                        &outcomes, &newest));
    if (newest == nullptr) return Status();
  }
}

Result<Datum> Reference::ForChild(Datum value, size_t column, const FormatSettings& format,
                                  Arena* arena) const {
  if (value.is_null()) return value;
  const Type type = child_types_[column];
  Datum ours;
  if (!ConvertReferenceKey(value, parent_types_[column], type, format, arena, &ours)) {
    const double bound = type.id == TypeId::kInt2   ? 32768.0
                         : type.id == TypeId::kInt4 ? 2147483648.0
                                                    : 9223372036854775808.0;
    const double number =
        IsNumber(parent_types_[column]) ? DatumAsDouble(value, parent_types_[column]) : 0;
    if (IsInteger(type) && !(number >= -bound && number < bound)) {
      return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange, "{} out of range",
                      FormatType(type));
    }
    // It would be rounded, and what it is rounded to is no key.
    return SqlError(Code::kConstraint, sqlstate::kForeignKeyViolation,
                    "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
                    child_->name, key_->name)
        .WithTable("", child_->name)
        .WithConstraint(key_->name);
  }
  return type.modifier < 0 ? ours : ApplyModifier(ours, type, false, arena);
}

Status Reference::NotPresent(const RowBatch& keys, size_t row, const FormatSettings& format) const {
  return SqlError(Code::kConstraint, sqlstate::kForeignKeyViolation,
                  "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
                  child_->name, key_->name)
      .WithDetail(fmt::format("Key {} is not present in table \"{}\".",
                              DescribeKey(*child_, key_->columns, keys, row, format),
                              parent_->name))
      .WithTable("", child_->name)
      .WithConstraint(key_->name);
}

Status Reference::StillReferenced(const RowBatch& keys, size_t row,
                                  const FormatSettings& format) const {
  return SqlError(Code::kConstraint, sqlstate::kForeignKeyViolation,
                  "update or delete on table \"{}\" violates foreign key constraint \"{}\" on "
                  "table \"{}\"",
                  parent_->name, key_->name, child_->name)
      .WithDetail(fmt::format("Key {} is still referenced from table \"{}\".",
                              DescribeKey(*parent_, key_->referenced_columns, keys, row, format),
                              child_->name))
      .WithTable("", child_->name)
      .WithConstraint(key_->name);
}

Status KeepMissing(const Reference& reference, ExecState* state, KeyTable* keys) {
  std::vector<uint8_t> there;
  CELLAR_TRY(reference.FindParents(keys->keys(), Reference::Hold::kLocks, state, &there));
  std::vector<uint32_t> missing;
  for (uint32_t i = 0; i < there.size(); ++i) {
    if (!there[i]) missing.push_back(i);
  }
  KeyTable left;
  left.Reset(reference.child_types());
  const RowBatch rest = Pick(keys->keys(), missing);
  std::vector<uint32_t> ids(rest.size());
  if (rest.size() > 0) left.FindOrInsert(All(rest), rest.size(), ids.data());
  *keys = std::move(left);
  return Status();
}

ReferenceChecks::ReferenceChecks(const catalog::TablePtr& table,
                                 const std::vector<ForeignKeyCheck>& checks, ExecState* state)
    : state_(*state) {
  for (const ForeignKeyCheck& check : checks) {
    for (const catalog::ForeignKey& key : table->foreign_keys) {
      if (key.name != check.constraint) continue;
      links_.push_back({Reference(table, &key, check.table), {}, MaxGatheredBytes(*state)});
      links_.back().keys.Reset(links_.back().reference.child_types());
    }
  }
}

Status ReferenceChecks::Add(const RowBatch& rows) {
  std::vector<uint32_t> picks, ids;
  for (Link& link : links_) {
    const RowBatch keys = WithoutNulls(rows, link.reference.child_columns(), &picks);
    ids.resize(keys.size());
    link.keys.FindOrInsert(All(keys), keys.size(), ids.data());
    if (link.keys.footprint_bytes() > link.compact_at) {
      // A key that is there stays, or whoever takes it away looks for rows that have it.
      CELLAR_TRY(KeepMissing(link.reference, &state_, &link.keys));
      link.compact_at = std::max(MaxGatheredBytes(state_), 2 * link.keys.footprint_bytes());
    }
  }
  return Status();
}

Status ReferenceChecks::Finish() {
  for (Link& link : links_) {
    if (link.keys.size() == 0) continue;
    if (DeferredChecks* deferred = state_.env.deferred;
        deferred != nullptr && deferred->Defers(link.reference.key())) {
      CELLAR_TRY(deferred->AddWritten(link.reference, link.keys.keys(), &state_));
      continue;
    }
    std::vector<uint8_t> there;
    CELLAR_TRY(
        link.reference.FindParents(link.keys.keys(), Reference::Hold::kLocks, &state_, &there));
    const auto missing = std::find(there.begin(), there.end(), 0);
    if (missing == there.end()) continue;
    return link.reference.NotPresent(link.keys.keys(), static_cast<size_t>(missing - there.begin()),
                                     state_.context->format);
  }
  return Status();
}

ReferencedChecks::ReferencedChecks(const catalog::TablePtr& table, ExecState* state)
    : state_(*state) {
  for (const catalog::TablePtr& child : state->env.catalog->ListReferencing(table->id)) {
    for (const catalog::ForeignKey& key : child->foreign_keys) {
      if (key.referenced_table != table->id) continue;
      Link& link = links_.emplace_back(Link{Reference(child, &key, table), {}, {}});
      link.gone.Reset(link.reference.parent_types());
      link.replacement.Reset(link.reference.parent_types());
    }
  }
}

void ReferencedChecks::AddDeleted(const RowBatch& old_rows) {
  std::vector<uint32_t> picks, ids;
  for (Link& link : links_) {
    RowBatch keys = WithoutNulls(old_rows, link.reference.parent_columns(), &picks);
    ids.resize(keys.size());
    link.gone.FindOrInsert(All(keys), keys.size(), ids.data());
  }
}

void ReferencedChecks::AddUpdated(const RowBatch& old_rows, const RowBatch& new_rows) {
  std::vector<uint32_t> picks;
  for (Link& link : links_) {
    const std::vector<int>& columns = link.reference.parent_columns();
    RowBatch keys = WithoutNulls(old_rows, columns, &picks);
    for (uint32_t i = 0; i < keys.size(); ++i) {
      bool same = true;
      for (size_t c = 0; c < columns.size(); ++c) {
        const ColumnVector& now = new_rows.column(columns[c]);
        same &= !now.IsNull(picks[i]) &&
                CompareDatums(now.Get(picks[i]), keys.column(c).Get(i), now.type()) == 0;
      }
      if (same) continue;
      link.updates = true;
      RowBatch one;
      one.columns().resize(columns.size());
      for (size_t c = 0; c < columns.size(); ++c)
        GatherColumn(keys.column(c), &i, 1, &one.column(c));
      one.SetSize(1);
      uint32_t id;
      uint8_t fresh;
      link.gone.FindOrInsert(All(one), 1, &id, &fresh);
      if (!fresh) continue;
      std::vector<Datum> replacement;
      for (int column : columns) replacement.push_back(new_rows.column(column).Get(picks[i]));
      link.replacement.AppendRow(replacement);
    }
  }
}

Status ReferencedChecks::Finish(int depth) {
  if (depth > kMaxCascadeDepth) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "foreign keys cascade too deeply");
  }
  for (Link& link : links_) {
    if (link.gone.size() > 0) CELLAR_TRY(FinishLink(&link, depth));
  }
  return Status();
}

Status ReferencedChecks::FinishLink(Link* link, int depth) {
  using Action = catalog::ForeignKeyAction;
  const Reference& reference = link->reference;
  const Action action = link->updates ? reference.key().on_update : reference.key().on_delete;
  CELLAR_TRY(reference.NoteGone(link->gone.keys(), &state_));
  if (DeferredChecks* deferred = state_.env.deferred;
      action == Action::kNoAction && deferred != nullptr && deferred->Defers(reference.key())) {
    return deferred->AddGone(reference, link->gone.keys(), &state_);
  }
  // A key that another row has taken over is one to refer to, but its children follow, or lose, the
  // row that they had.
  std::vector<uint8_t> there(link->gone.size(), 0);
  if (action == Action::kNoAction)
    CELLAR_TRY(reference.StillThere(link->gone.keys(), &state_, &there));
  std::vector<uint32_t> gone;
  for (uint32_t i = 0; i < there.size(); ++i) {
    if (!there[i]) gone.push_back(i);
  }
  if (gone.empty()) return Status();
  const RowBatch keys = Pick(link->gone.keys(), gone);
  RowBatch rows;
  std::vector<uint32_t> key_of;
  const bool only_checks = action == Action::kNoAction || action == Action::kRestrict;
  const catalog::TablePtr& child = reference.child();
  const size_t width = LivingColumns(*child).size();
  const bool deletes = action == Action::kCascade && !link->updates;
  const kv::LockMode mode = only_checks ? kv::kForKeyShare
                            : deletes   ? kv::kForUpdate
                                        : kv::kForNoKeyUpdate;
  CELLAR_TRY(reference.LockChildren(keys, mode, only_checks, &state_, &rows, &key_of));
  if (rows.size() == 0) return Status();
  if (only_checks) return reference.StillReferenced(keys, key_of[0], state_.context->format);
  const std::vector<std::string_view> refs(rows.column(width).bytes(),
                                           rows.column(width).bytes() + rows.size());
  rows.columns().resize(width);
  const RowBatch& old_rows = rows;
  if (deletes) {
    ReferencedChecks below(child, &state_);
    CELLAR_TRY(state_.access().Delete(child, refs, old_rows));
    below.AddDeleted(old_rows);
    return below.Finish(depth + 1);
  }
  const std::vector<catalog::ColumnId>& columns = reference.key().columns;
  const std::vector<catalog::ColumnId>& set =
      link->updates || reference.key().on_delete_columns.empty()
          ? columns
          : reference.key().on_delete_columns;
  RowBatch new_rows = FirstRows(old_rows, old_rows.size());
  Arena arena;
  for (size_t c = 0; c < columns.size() && action != Action::kSetDefault; ++c) {
    if (std::find(set.begin(), set.end(), columns[c]) == set.end()) continue;
    ColumnVector& values = new_rows.column(reference.child_columns()[c]);
    for (size_t row = 0; row < rows.size(); ++row) {
      if (action == Action::kSetNull) {
        values.SetNull(row);
        continue;
      }
      CELLAR_TRY_ASSIGN(const Datum value,
                        reference.ForChild(link->replacement.column(c).Get(gone[key_of[row]]), c,
                                           state_.context->format, &arena));
      values.Set(row, value);
    }
  }
  return UpdateChildren(reference, set, action == Action::kSetDefault ? &keys : nullptr, refs,
                        old_rows, &new_rows, depth);
}

namespace {

// Is there more to a change of these columns than to write them?
bool NeedsPlan(const Reference& reference, const std::vector<catalog::ColumnId>& set) {
  const catalog::TableDescriptor& child = *reference.child();
  if (!child.checks.empty()) return true;
  for (const catalog::ColumnDescriptor& column : child.columns) {
    if (!column.dropped && !column.generated_sql.empty()) return true;
  }
  return std::any_of(
      child.foreign_keys.begin(), child.foreign_keys.end(), [&](const catalog::ForeignKey& other) {
        return other.oid != reference.key().oid &&
               std::any_of(set.begin(), set.end(), [&](catalog::ColumnId column) {
                 return std::find(other.columns.begin(), other.columns.end(), column) !=
                        other.columns.end();
               });
      });
}

// Evaluates into an arena as long as it lives.
class ArenaFor {
 public:
  ArenaFor(EvalContext* context, Arena* arena) : context_(context), before_(context->arena()) {
    context->set_arena(arena);
  }
  ~ArenaFor() { context_->set_arena(before_); }

 private:
  EvalContext* context_;
  Arena* before_;
};

}  // namespace

Status ReferencedChecks::UpdateChildren(const Reference& reference,
                                        const std::vector<catalog::ColumnId>& set,
                                        const RowBatch* gone,
                                        std::span<const std::string_view> refs,
                                        const RowBatch& old_rows, RowBatch* new_rows, int depth) {
  const catalog::TablePtr& child = reference.child();
  ReferencedChecks below(child, &state_);
  const bool to_defaults = gone != nullptr;
  if (state_.env.cascades == nullptr || (!to_defaults && !NeedsPlan(reference, set))) {
    if (to_defaults) return UnsupportedError("ON DELETE SET DEFAULT is not supported here");
    CELLAR_TRY(state_.access().Update(child, refs, old_rows, *new_rows));
    below.AddUpdated(old_rows, *new_rows);
    return below.Finish(depth + 1);
  }
  CELLAR_TRY_ASSIGN(const std::shared_ptr<const Plan> plan,
                    state_.env.cascades->PlanCascade(child, set, to_defaults));
  const auto& update = plan->root->As<UpdateNode>();
  Arena arena;
  const ArenaFor values_live(state_.context, &arena);
  std::vector<std::pair<int, ColumnVector>> assigned;
  for (const auto& [column, expr] : update.assignments) {
    Evaluator evaluator(expr.get());
    CELLAR_TRY_ASSIGN(
        const ColumnVector* values,
        evaluator.Eval(*new_rows, Selection{nullptr, new_rows->size()}, *state_.context));
    CopyColumn(*values, new_rows->size(), &assigned.emplace_back(column, ColumnVector()).second);
  }
  for (auto& [column, values] : assigned) new_rows->column(column) = std::move(values);
  RowChecks checks(child, update.checks);
  Status broken;
  CELLAR_TRY_ASSIGN(const size_t good, checks.FirstBroken(*new_rows, &state_, &broken));
  if (good < new_rows->size() && !broken.ok()) return broken;
  ReferenceChecks references(child, update.foreign_keys, &state_);
  CELLAR_TRY(state_.access().Update(child, refs, old_rows, *new_rows));
  if (to_defaults) {
    // The default may be the very key that has gone; that does not wait.
    std::vector<uint8_t> there;
    CELLAR_TRY(reference.StillThere(*gone, &state_, &there));
    std::vector<uint32_t> missing;
    for (uint32_t i = 0; i < there.size(); ++i) {
      if (!there[i]) missing.push_back(i);
    }
    const RowBatch keys = Pick(*gone, missing);
    RowBatch rows;
    std::vector<uint32_t> key_of;
    if (!missing.empty()) {
      CELLAR_TRY(
          reference.FindChildren(keys, Reference::Keys::kOfParent, true, &state_, &rows, &key_of));
    }
    if (rows.size() > 0) return reference.StillReferenced(keys, key_of[0], state_.context->format);
  }
  CELLAR_TRY(references.Add(*new_rows));
  below.AddUpdated(old_rows, *new_rows);
  CELLAR_TRY(below.Finish(depth + 1));
  return references.Finish();
}

}  // namespace cellar::sql::exec

namespace cellar::sql {

Status CheckReferences(const catalog::TablePtr& child, const catalog::ForeignKey& key,
                       const catalog::TablePtr& parent, const RowBatch& keys,
                       const ExecEnvironment& environment) {
  exec::ExecState state;
  state.env = environment;
  state.context = environment.context;
  const exec::Reference reference(child, &key, parent);
  std::vector<uint8_t> there;
  CELLAR_TRY(reference.FindParents(keys, exec::Reference::Hold::kReads, &state, &there));
  const auto missing = std::find(there.begin(), there.end(), 0);
  if (missing == there.end()) return Status();
  return reference.NotPresent(keys, static_cast<size_t>(missing - there.begin()),
                              state.context->format);
}

}  // namespace cellar::sql
