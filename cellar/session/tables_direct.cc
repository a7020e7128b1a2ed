// Writes of the table API past the executor: where a plan would only hand rows from one place to
// the next, they go straight to the table layer. The plan is made all the same: it says what the
// role may do and what has to be checked, and it runs where there is anything to check.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/session/tables_internal.h"
#include "cellar/sql/plan/plan.h"

namespace cellar::session::tables {
namespace {

// The plan does nothing but to write the rows.
bool OnlyWrites(const sql::Plan& plan) {
  switch (plan.root->kind) {
    case sql::PlanKind::kInsert: {
      const auto& insert = plan.root->As<sql::InsertNode>();
      return insert.checks.empty() && insert.foreign_keys.empty() && insert.referenced_by.empty() &&
             !insert.returning;
    }
    case sql::PlanKind::kUpdate: {
      const auto& update = plan.root->As<sql::UpdateNode>();
      return update.checks.empty() && update.foreign_keys.empty() && update.referenced_by.empty() &&
             !update.returning;
    }
    case sql::PlanKind::kDelete: {
      const auto& erase = plan.root->As<sql::DeleteNode>();
      return erase.referenced_by.empty() && !erase.returning;
    }
    default: return false;
  }
}

void CopyRows(const ColumnVector& from, std::span<const uint32_t> rows, ColumnVector* to) {
  to->Reset(from.type());
  to->Resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) to->Set(i, from.Get(rows[i]));
}

// old_rows with the given cells, in new_rows.
Status Change(table::Access* access, const KnownTable& known, DirectShape* shape,
              const CellBatch& cells, std::span<const uint32_t> columns,
              std::span<const uint32_t> rows, std::span<const std::string_view> refs) {
  const size_t count = rows.size();
  shape->new_rows.columns().resize(shape->living.size());
  for (size_t c = 0; c < shape->living.size(); ++c) {
    const int source = shape->source[c];
    ColumnVector& to = shape->new_rows.column(c);
    if (source >= 0 && !shape->is_key[c]) {
      CopyRows(cells.rows.column(columns[static_cast<size_t>(source)]), rows, &to);
      continue;
    }
    const ColumnVector& from = shape->old_rows.column(c);
    to.Reset(from.type());
    to.Resize(count);
    for (size_t i = 0; i < count; ++i) to.Set(i, from.Get(i));
  }
  shape->new_rows.SetSize(count);
  return access->Update(known.table, refs, shape->old_rows, shape->new_rows);
}

}  // namespace

std::unique_ptr<DirectShape> DirectShape::Of(const KnownTable& known, const sql::Plan& plan,
                                             std::span<const uint32_t> positions) {
  if (!OnlyWrites(plan)) return nullptr;
  const catalog::TableDescriptor& table = *known.table;
  const bool inserts = plan.root->kind == sql::PlanKind::kInsert;
  auto shape = std::make_unique<DirectShape>();
  const std::vector<codec::KeyColumn> key = table.KeyColumnsOf(table.primary());
  for (const catalog::ColumnDescriptor& column : table.columns) {
    if (column.dropped) continue;
    if (!column.generated_sql.empty()) return nullptr;
    int source = -1;
    for (size_t i = 0; i < positions.size(); ++i) {
      if (known.ids[positions[i]] == column.id) source = static_cast<int>(i);
    }
    const bool has_default =
        !column.default_sql.empty() || column.identity != catalog::Identity::kNone;
    if (inserts && source < 0 && has_default) return nullptr;
    shape->living.push_back(column.id);
    shape->types.push_back(column.type);
    shape->source.push_back(source);
    shape->is_key.push_back(0);
  }
  for (size_t i = 0; i < table.primary().key.size(); ++i) {
    if (key[i].type.collation != nullptr) return nullptr;
    const auto at =
        std::find(shape->living.begin(), shape->living.end(), table.primary().key[i].column);
    if (at == shape->living.end()) return nullptr;
    const auto place = static_cast<uint32_t>(at - shape->living.begin());
    shape->key_sources.push_back(static_cast<uint32_t>(shape->source[place]));
    shape->key_places.push_back(place);
    shape->is_key[place] = 1;
    shape->key_columns.push_back(key[i]);
  }
  return shape;
}

void DirectShape::AddRefs(const CellBatch& cells, std::span<const uint32_t> columns,
                          std::span<const uint32_t> rows) {
  refs.clear();
  ref_bytes.clear();
  std::vector<size_t> ends;
  for (uint32_t row : rows) {
    for (size_t i = 0; i < key_columns.size(); ++i) {
      codec::AppendKeyField(cells.rows.column(columns[key_sources[i]]).Get(row), key_columns[i],
                            &ref_bytes);
    }
    ends.push_back(ref_bytes.size());
  }
  size_t start = 0;
  for (size_t end : ends) {
    refs.push_back(std::string_view(ref_bytes).substr(start, end - start));
    start = end;
  }
}

namespace {

// The rows with `keys`, locked as UPDATE and DELETE lock theirs, in old_rows; `place` says which
// key each of them has.
Status LockOld(table::Access* access, const KnownTable& known, DirectShape* shape,
               std::vector<uint32_t>* place) {
  table::ScanSpec spec;
  spec.table = known.table;
  spec.index = known.table->primary().id;
  spec.columns = shape->living;
  spec.lock.emplace();
  CELLAR_TRY(access->Lookup(spec, shape->keys, &shape->old_rows, place));
  access->NoteReads(*known.table, shape->old_rows.size());
  return Status();
}

// Locks these rows and gives them their new values, if all are there; how many are.
Result<size_t> ChangePresent(table::Access* access, const KnownTable& known, DirectShape* shape,
                             const CellBatch& cells, std::span<const uint32_t> columns,
                             std::span<const uint32_t> rows) {
  shape->AddRefs(cells, columns, rows);
  shape->keys.columns().resize(shape->key_columns.size());
  for (size_t i = 0; i < shape->key_columns.size(); ++i)
    CopyRows(cells.rows.column(columns[shape->key_sources[i]]), rows, &shape->keys.column(i));
  shape->keys.SetSize(rows.size());
  std::vector<uint32_t> place;
  CELLAR_TRY(LockOld(access, known, shape, &place));
  if (place.size() != rows.size()) return place.size();
  std::vector<uint32_t> changed;
  std::vector<std::string_view> refs;
  for (uint32_t i : place) {
    changed.push_back(rows[i]);
    refs.push_back(shape->refs[i]);
  }
  CELLAR_TRY(Change(access, known, shape, cells, columns, changed, refs));
  return place.size();
}

}  // namespace

Status DirectInsert(table::Access* access, const KnownTable& known, DirectShape* shape,
                    DirectConflict conflict, const CellBatch& cells,
                    std::span<const uint32_t> columns, std::span<const uint32_t> rows,
                    WriteResult* result) {
  const bool upsert = conflict == DirectConflict::kUpdate;
  // Most calls meet what the one before met: then the row is read once.
  if (upsert && rows.size() == 1 && shape->expect_present) {
    CELLAR_TRY_ASSIGN(const size_t changed,
                      ChangePresent(access, known, shape, cells, columns, rows));
    result->updated += changed;
    if (changed == 1) return Status();
  }
  RowBatch& batch = shape->new_rows;
  batch.columns().resize(shape->living.size());
  for (size_t c = 0; c < shape->living.size(); ++c) {
    ColumnVector& to = batch.column(c);
    if (shape->source[c] >= 0) {
      CopyRows(cells.rows.column(columns[static_cast<size_t>(shape->source[c])]), rows, &to);
      continue;
    }
    to.Reset(shape->types[c]);
    to.Resize(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) to.SetNull(i);
  }
  batch.SetSize(rows.size());
  table::ConflictPolicy policy;
  if (conflict != DirectConflict::kError) {
    policy.kind =
        upsert ? table::ConflictPolicy::Kind::kReport : table::ConflictPolicy::Kind::kSkip;
    policy.indexes = {known.table->primary().id};
  }
  table::InsertOutcome outcome;
  CELLAR_TRY(access->Insert(known.table, &batch, policy, &outcome));
  std::vector<uint32_t> present;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!outcome.inserted[i]) present.push_back(static_cast<uint32_t>(i));
  }
  result->inserted += rows.size() - present.size();
  shape->expect_present = !present.empty();
  if (present.empty() || !upsert) return Status();
  std::vector<std::string_view> refs;
  std::vector<uint32_t> changed;
  for (uint32_t i : present) {
    refs.push_back(outcome.conflicting_ref[i]);
    changed.push_back(rows[i]);
  }
  std::vector<std::string_view> sorted = refs;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front().empty() || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return SqlError(Code::kInvalid, sqlstate::kCardinalityViolation,
                    "a row is given twice in one call");
  }
  CELLAR_TRY_ASSIGN(const size_t count,
                    ChangePresent(access, known, shape, cells, columns, changed));
  if (count != changed.size()) {
    return SqlError(Code::kConflict, sqlstate::kSerializationFailure,
                    "could not serialize access due to concurrent update");
  }
  result->updated += count;
  return Status();
}

Result<bool> DirectUpdate(table::Access* access, const KnownTable& known, DirectShape* shape,
                          const CellBatch& cells, std::span<const uint32_t> columns,
                          std::span<const uint32_t> rows, WriteResult* result) {
  CELLAR_TRY_ASSIGN(const size_t count, ChangePresent(access, known, shape, cells, columns, rows));
  if (count != rows.size()) return false;
  result->updated += count;
  return true;
}

Status DirectDelete(table::Access* access, const KnownTable& known, DirectShape* shape,
                    std::span<const std::vector<Datum>> keys, WriteResult* result) {
  std::vector<std::string> refs(keys.size());
  std::vector<uint32_t> order(keys.size());
  for (uint32_t i = 0; i < keys.size(); ++i) {
    codec::AppendKeyFields(keys[i], shape->key_columns, &refs[i]);
    order[i] = i;
  }
  // A key that is given twice finds nothing the second time.
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return refs[a] < refs[b]; });
  order.erase(std::unique(order.begin(), order.end(),
                          [&](uint32_t a, uint32_t b) { return refs[a] == refs[b]; }),
              order.end());
  shape->keys.columns().resize(shape->key_columns.size());
  for (size_t c = 0; c < shape->key_columns.size(); ++c) {
    ColumnVector& column = shape->keys.column(c);
    column.Reset(shape->key_columns[c].type);
    column.Resize(order.size());
    for (size_t i = 0; i < order.size(); ++i) column.Set(i, keys[order[i]][c]);
  }
  shape->keys.SetSize(order.size());
  std::vector<uint32_t> place;
  CELLAR_TRY(LockOld(access, known, shape, &place));
  if (place.empty()) return Status();
  std::vector<std::string_view> found;
  for (uint32_t i : place) found.push_back(refs[order[i]]);
  CELLAR_TRY(access->Delete(known.table, found, shape->old_rows));
  result->deleted += found.size();
  return Status();
}

}  // namespace cellar::session::tables
