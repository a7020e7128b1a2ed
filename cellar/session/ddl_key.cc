// Another primary key in one rewrite: the old one goes and the new one comes in the same swap.
#include <algorithm>
#include <set>
#include <utility>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"

namespace cellar::session {
namespace {

std::set<uint32_t> ColumnsOf(const catalog::IndexDescriptor& index) {
  std::set<uint32_t> columns;
  for (const catalog::IndexColumn& part : index.key) columns.insert(part.column.value);
  return columns;
}

}  // namespace

Status Ddl::RequireRowsForShards(const catalog::TableDescriptor& table) {
  if (table.indexes.empty() || table.primary().shards == 0) return Status();
  if (table.layout == catalog::Layout::kRow && table.groups.empty()) return Status();
  const std::string what = table.groups.empty()
                               ? fmt::format("layout \"{}\"", LayoutName(table.layout))
                               : "column groups";
  return UnsupportedError("primary keys with shards are not supported with {}", what)
      .WithHint("Layout \"row\" without column groups has them.");
}

// As CockroachDB's statement of this name, the old key stays as a UNIQUE constraint, unless the new
// one has the same columns: foreign keys may lean on it.
Status Ddl::AlterPrimaryKey(const ast::Constraint& constraint, catalog::TablePtr* table) {
  catalog::TableDescriptor next = **table;
  if (!next.primary().constraint) {
    CELLAR_TRY(AddKey(constraint, constraint.columns, &next));
    return ReplacePrimary(std::move(next), table, true);
  }
  catalog::IndexDescriptor old = std::move(next.indexes.front());
  next.indexes.erase(next.indexes.begin());
  CELLAR_TRY(AddKey(constraint, constraint.columns, &next));
  if (constraint.name.empty()) next.indexes.front().name = old.name;
  if (ColumnsOf(old) == ColumnsOf(next.indexes.front()))
    return RewriteTable(std::move(next), table, true);
  ast::Constraint unique;
  unique.kind = ast::ConstraintKind::kUnique;
  std::vector<std::string> names;
  for (const catalog::IndexColumn& part : old.key)
    names.push_back(next.FindColumn(part.column)->name);
  for (const catalog::ColumnId stored : old.stored)
    unique.including.push_back(next.FindColumn(stored)->name);
  CELLAR_TRY(AddKey(unique, names, &next));
  for (size_t i = 0; i < old.key.size(); ++i) next.indexes.back().key[i] = std::move(old.key[i]);
  next.indexes.back().shards = old.shards;
  return RewriteTable(std::move(next), table, true);
}

const ast::Constraint* Ddl::KeyThatFollows(const ast::AlterTableStmt& statement,
                                           const catalog::TableDescriptor& table) {
  if (statement.commands.size() != 2 || table.kind != catalog::RelationKind::kTable) return nullptr;
  const ast::AlterTableCommand& drop = statement.commands[0];
  const ast::AlterTableCommand& add = statement.commands[1];
  const bool matches = drop.kind == ast::AlterTableKind::kDropConstraint &&
                       table.primary().constraint && drop.name == table.primary().name &&
                       add.kind == ast::AlterTableKind::kAddConstraint &&
                       add.constraint->kind == ast::ConstraintKind::kPrimaryKey;
  return matches ? add.constraint.get() : nullptr;
}

Status Ddl::TakeNextKey(catalog::TableDescriptor next, catalog::TablePtr* table, bool may_job,
                        bool cascade) {
  CELLAR_TRY(next_key_->using_index.empty() ? AddKey(*next_key_, next_key_->columns, &next)
                                            : UseIndexAsKey(*next_key_, &next));
  return RewriteTable(std::move(next), table, may_job, cascade);
}

}  // namespace cellar::session
