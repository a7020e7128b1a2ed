#include "cellar/sql/exec/foreign_keys.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"

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
// `columns`).
const catalog::IndexDescriptor* IndexOn(const catalog::TableDescriptor& table,
                                        const std::vector<catalog::ColumnId>& columns,
                                        std::vector<int>* order) {
  for (const catalog::IndexDescriptor& index : table.indexes) {
    if (index.state != catalog::IndexState::kPublic || index.key.size() < columns.size() ||
        !index.predicate.empty()) {
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

ReferenceChecks::ReferenceChecks(const catalog::TablePtr& table,
                                 const std::vector<ForeignKeyCheck>& checks, ExecState* state)
    : table_(table), checks_(checks), state_(*state), keys_(checks.size()) {
  const std::vector<Type> types = LivingTypes(*table);
  for (size_t i = 0; i < checks.size(); ++i) {
    std::vector<Type> key_types;
    for (int column : checks[i].columns) key_types.push_back(types[column]);
    keys_[i].Reset(key_types);
  }
}

void ReferenceChecks::Add(const RowBatch& rows) {
  std::vector<uint32_t> picks, ids;
  for (size_t i = 0; i < checks_.size(); ++i) {
    RowBatch keys = WithoutNulls(rows, checks_[i].columns, &picks);
    ids.resize(keys.size());
    keys_[i].FindOrInsert(All(keys), keys.size(), ids.data());
  }
}

Status ReferenceChecks::Finish() {
  for (size_t i = 0; i < checks_.size(); ++i) {
    const ForeignKeyCheck& check = checks_[i];
    if (keys_[i].size() == 0) continue;
    if (!check.index) {
      return InternalError("foreign key \"{}\" has no index to look in", check.constraint);
    }
    table::ScanSpec spec;
    spec.table = check.table;
    spec.index = *check.index;
    spec.columns = check.other_columns;
    RowBatch keys, found;
    size_t next = 0;
    while (EmitChunk(keys_[i].keys(), nullptr, &next, &keys) != nullptr) {
      std::vector<uint32_t> key_row;
      CELLAR_TRY(state_.access().Lookup(spec, keys, &found, &key_row));
      std::vector<uint8_t> present(keys.size(), 0);
      for (uint32_t row : key_row) present[row] = 1;
      auto missing = std::find(present.begin(), present.end(), 0);
      if (missing == present.end()) continue;
      std::vector<catalog::ColumnId> ours;
      const std::vector<catalog::ColumnId> living = LivingColumns(*table_);
      for (int column : check.columns) ours.push_back(living[column]);
      return SqlError(Code::kConstraint, sqlstate::kForeignKeyViolation,
                      "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
                      table_->name, check.constraint)
          .WithDetail(fmt::format(
              "Key {} is not present in table \"{}\".",
              DescribeKey(*table_, ours, keys, static_cast<size_t>(missing - present.begin()),
                          state_.context->format),
              check.table->name))
          .WithTable("", table_->name)
          .WithConstraint(check.constraint);
    }
  }
  return Status();
}

ReferencedChecks::ReferencedChecks(const catalog::TablePtr& table, ExecState* state)
    : table_(table), state_(*state) {
  const std::vector<Type> types = LivingTypes(*table);
  for (const catalog::TablePtr& child : state->env.catalog->ListReferencing(table->id)) {
    for (const catalog::ForeignKey& key : child->foreign_keys) {
      if (key.referenced_table != table->id) continue;
      Link link;
      link.child = child;
      link.key = &key;
      std::vector<Type> key_types;
      for (catalog::ColumnId column : key.referenced_columns) {
        link.columns.push_back(LivingPosition(*table, column));
        key_types.push_back(types[link.columns.back()]);
      }
      for (catalog::ColumnId column : key.columns)
        link.child_columns.push_back(LivingPosition(*child, column));
      link.gone.Reset(key_types);
      link.replacement.Reset(key_types);
      links_.push_back(std::move(link));
    }
  }
}

void ReferencedChecks::AddDeleted(const RowBatch& old_rows) {
  std::vector<uint32_t> picks, ids;
  for (Link& link : links_) {
    RowBatch keys = WithoutNulls(old_rows, link.columns, &picks);
    ids.resize(keys.size());
    link.gone.FindOrInsert(All(keys), keys.size(), ids.data());
  }
}

void ReferencedChecks::AddUpdated(const RowBatch& old_rows, const RowBatch& new_rows) {
  std::vector<uint32_t> picks, changed;
  for (Link& link : links_) {
    RowBatch keys = WithoutNulls(old_rows, link.columns, &picks);
    for (uint32_t i = 0; i < keys.size(); ++i) {
      bool same = true;
      for (size_t c = 0; c < link.columns.size(); ++c) {
        const ColumnVector& now = new_rows.column(link.columns[c]);
        same &= !now.IsNull(picks[i]) &&
                CompareDatums(now.Get(picks[i]), keys.column(c).Get(i), now.type()) == 0;
      }
      if (same) continue;
      link.updates = true;
      RowBatch one;
      one.columns().resize(link.columns.size());
      for (size_t c = 0; c < link.columns.size(); ++c)
        GatherColumn(keys.column(c), &i, 1, &one.column(c));
      one.SetSize(1);
      uint32_t id;
      uint8_t fresh;
      link.gone.FindOrInsert(All(one), 1, &id, &fresh);
      if (!fresh) continue;
      std::vector<Datum> replacement;
      for (int column : link.columns) replacement.push_back(new_rows.column(column).Get(picks[i]));
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

Status ReferencedChecks::StillThere(const Link& link, std::vector<uint8_t>* there) {
  there->assign(link.gone.size(), 0);
  std::vector<int> order;
  const catalog::IndexDescriptor* index = IndexOn(*table_, link.key->referenced_columns, &order);
  if (index == nullptr) return Status();
  table::ScanSpec spec;
  spec.table = table_;
  spec.index = index->id;
  RowBatch ordered, keys, found;
  for (int column : order) spec.columns.push_back(link.key->referenced_columns[column]);
  size_t next = 0;
  std::vector<uint32_t> key_row;
  for (size_t start = 0; EmitChunk(link.gone.keys(), &order, &next, &keys) != nullptr;
       start = next) {
    key_row.clear();
    CELLAR_TRY(state_.access().Lookup(spec, keys, &found, &key_row));
    for (uint32_t row : key_row) (*there)[start + row] = 1;
  }
  return Status();
}

// All referencing rows: the child's living columns and the row reference, and the position of each
// row's key.
Status ReferencedChecks::FindChildren(const Link& link, const RowBatch& keys, RowBatch* rows,
                                      std::vector<uint32_t>* key_of) {
  table::ScanSpec spec;
  spec.table = link.child;
  spec.columns = LivingColumns(*link.child);
  spec.with_row_ref = true;
  std::vector<Type> types = LivingTypes(*link.child);
  types.push_back(MakeType(TypeId::kBytea));
  rows->Reset(types);
  std::vector<int> order;
  const catalog::IndexDescriptor* index = IndexOn(*link.child, link.key->columns, &order);
  KeyTable wanted;
  std::vector<Type> key_types;
  for (size_t c = 0; c < keys.num_columns(); ++c) key_types.push_back(keys.column(c).type());
  wanted.Reset(key_types);
  std::vector<uint32_t> ids(keys.size());
  wanted.FindOrInsert(All(keys), keys.size(), ids.data());
  auto collect = [&](table::ScanSpec scan) -> Status {
    CELLAR_TRY_ASSIGN(std::unique_ptr<table::Reader> reader, state_.access().Scan(std::move(scan)));
    RowBatch batch;
    std::vector<uint32_t> found, picks, dense;
    while (true) {
      CELLAR_TRY(state_.CheckCancel());
      CELLAR_TRY_ASSIGN(bool more, reader->Next(&batch));
      if (!more) return Status();
      RowBatch child_keys = WithoutNulls(batch, link.child_columns, &dense);
      found.resize(child_keys.size());
      wanted.Find(All(child_keys), child_keys.size(), found.data());
      picks.clear();
      for (size_t i = 0; i < found.size(); ++i) {
        if (found[i] == KeyTable::kAbsent) continue;
        picks.push_back(dense[i]);
        key_of->push_back(found[i]);
      }
      rows->AppendRows(batch, picks);
    }
  };
  if (index == nullptr) {
    spec.index = link.child->primary().id;
    spec.spans = {table::Span{}};
    return collect(std::move(spec));
  }
  spec.index = index->id;
  for (size_t row = 0; row < keys.size(); ++row) {
    table::ScanSpec point = spec;
    table::Span span;
    for (int column : order) span.equal.push_back(keys.column(column).Get(row));
    point.spans.push_back(std::move(span));
    CELLAR_TRY(collect(std::move(point)));
  }
  return Status();
}

Status ReferencedChecks::FinishLink(Link* link, int depth) {
  using Action = catalog::ForeignKeyAction;
  const Action action = link->updates ? link->key->on_update : link->key->on_delete;
  std::vector<uint8_t> there;
  CELLAR_TRY(StillThere(*link, &there));
  std::vector<uint32_t> gone;
  for (uint32_t i = 0; i < there.size(); ++i) {
    if (!there[i]) gone.push_back(i);
  }
  if (gone.empty()) return Status();
  RowBatch keys;
  keys.columns().resize(link->gone.keys().num_columns());
  for (size_t c = 0; c < keys.num_columns(); ++c) {
    GatherColumn(link->gone.keys().column(c), gone.data(), gone.size(), &keys.column(c));
  }
  keys.SetSize(gone.size());
  RowBatch rows;
  std::vector<uint32_t> key_of;
  CELLAR_TRY(FindChildren(*link, keys, &rows, &key_of));
  if (rows.size() == 0) return Status();
  const size_t width = link->child_columns.empty() ? 0 : LivingColumns(*link->child).size();
  if (action == Action::kNoAction || action == Action::kRestrict) {
    return SqlError(Code::kConstraint, sqlstate::kForeignKeyViolation,
                    "update or delete on table \"{}\" violates foreign key constraint \"{}\" on "
                    "table \"{}\"",
                    table_->name, link->key->name, link->child->name)
        .WithDetail(fmt::format("Key {} is still referenced from table \"{}\".",
                                DescribeKey(*table_, link->key->referenced_columns, keys, key_of[0],
                                            state_.context->format),
                                link->child->name))
        .WithTable("", link->child->name)
        .WithConstraint(link->key->name);
  }
  if (action == Action::kSetDefault) {
    return UnsupportedError("foreign key action SET DEFAULT is not supported");
  }
  std::vector<std::string_view> refs(rows.column(width).bytes(),
                                     rows.column(width).bytes() + rows.size());
  RowBatch old_rows;
  old_rows.columns().resize(width);
  for (size_t c = 0; c < width; ++c) CopyColumn(rows.column(c), rows.size(), &old_rows.column(c));
  old_rows.SetSize(rows.size());
  ReferencedChecks below(link->child, &state_);
  if (action == Action::kCascade && !link->updates) {
    CELLAR_TRY(state_.access().Delete(link->child, refs, old_rows));
    below.AddDeleted(old_rows);
    return below.Finish(depth + 1);
  }
  RowBatch new_rows;
  new_rows.columns().resize(width);
  for (size_t c = 0; c < width; ++c) CopyColumn(rows.column(c), rows.size(), &new_rows.column(c));
  new_rows.SetSize(rows.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t c = 0; c < link->child_columns.size(); ++c) {
      const Datum value =
          action == Action::kSetNull ? Datum() : link->replacement.column(c).Get(gone[key_of[row]]);
      new_rows.column(link->child_columns[c]).Set(row, value);
    }
  }
  CELLAR_TRY(state_.access().Update(link->child, refs, old_rows, new_rows));
  below.AddUpdated(old_rows, new_rows);
  return below.Finish(depth + 1);
}

}  // namespace cellar::sql::exec
