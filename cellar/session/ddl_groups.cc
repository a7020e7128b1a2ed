// Column groups: what CREATE TABLE and ALTER TABLE say of them, and what follows for the layout.
// Layout `row` alone has groups (docs/decisions/0023-column-groups.md).
#include <algorithm>
#include <set>
#include <utility>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"
#include "cellar/sql/parser/column_groups.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::session {
namespace {

using ast::GroupChange;
using catalog::ColumnGroup;

ColumnGroup* FindGroup(catalog::TableDescriptor* table, std::string_view name) {
  for (ColumnGroup& group : table->groups) {
    if (group.name == name) return &group;
  }
  return nullptr;
}

ColumnGroup* GroupOf(catalog::TableDescriptor* table, catalog::ColumnId column) {
  for (ColumnGroup& group : table->groups) {
    if (std::find(group.columns.begin(), group.columns.end(), column) != group.columns.end())
      return &group;
  }
  return nullptr;
}

bool InKey(const catalog::TableDescriptor& table, catalog::ColumnId column) {
  const std::vector<catalog::IndexColumn>& key = table.primary().key;
  return std::any_of(key.begin(), key.end(),
                     [column](const auto& part) { return part.column == column; });
}

Result<catalog::ColumnId> FindColumn(const catalog::TableDescriptor& table, std::string_view name,
                                     const GroupChange& change) {
  const catalog::ColumnDescriptor* column = table.FindColumn(name);
  if (column == nullptr || column->hidden) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn,
                    "column \"{}\" of relation \"{}\" does not exist", name, table.name)
        .WithLocation(change.location);
  }
  return column->id;
}

Status CheckGroupName(const catalog::TableDescriptor& table, std::string_view name) {
  for (const ColumnGroup& group : table.groups) {
    if (group.name != name) continue;
    return SqlError(Code::kExists, sqlstate::kDuplicateObject,
                    "column group \"{}\" of relation \"{}\" already exists", name, table.name);
  }
  if (!name.empty()) return Status();
  return SqlError(Code::kInvalid, sqlstate::kInvalidName, "zero-length delimited identifier");
}

Status NoGroups(const catalog::TableDescriptor& table) {
  return UnsupportedError("column groups are not supported with layout \"{}\"",
                          LayoutName(table.layout))
      .WithHint("Layout \"row\" has column groups.");
}

Status Put(catalog::ColumnId column, const GroupChange& change, ColumnGroup* group,
           catalog::TableDescriptor* table) {
  if (InKey(*table, column)) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                    "column \"{}\" is in a primary key", table->FindColumn(column)->name)
        .WithDetail("Columns of the primary key cannot be in a column group.")
        .WithLocation(change.location);
  }
  group->columns.push_back(column);
  return Status();
}

Status AddGroup(const GroupChange& change, catalog::TableDescriptor* table) {
  CELLAR_TRY(CheckGroupName(*table, change.name));
  ColumnGroup group;
  group.id = table->next_group_id++;
  group.name = change.name;
  for (const std::string& name : change.columns) {
    CELLAR_TRY_ASSIGN(const catalog::ColumnId column, FindColumn(*table, name, change));
    const ColumnGroup* other = GroupOf(table, column);
    const bool twice =
        std::find(group.columns.begin(), group.columns.end(), column) != group.columns.end();
    if (twice || other != nullptr) {
      return SqlError(Code::kInvalid, sqlstate::kDuplicateColumn, "{}",
                      twice ? fmt::format("column \"{}\" appears twice in column group \"{}\"",
                                          name, change.name)
                            : fmt::format("column \"{}\" is already in column group \"{}\"", name,
                                          other->name))
          .WithLocation(change.location);
    }
    CELLAR_TRY(Put(column, change, &group, table));
  }
  table->groups.push_back(std::move(group));
  return Status();
}

// Where the columns are, whatever the groups' names.
std::set<std::pair<uint32_t, std::set<uint32_t>>> PlacesOf(const catalog::TableDescriptor& table) {
  std::set<std::pair<uint32_t, std::set<uint32_t>>> places;
  for (const ColumnGroup& group : table.groups) {
    std::set<uint32_t> columns;
    for (const catalog::ColumnId column : group.columns) columns.insert(column.value);
    places.emplace(group.id, std::move(columns));
  }
  return places;
}

}  // namespace

std::string GroupsText(const catalog::TableDescriptor& table) {
  std::string text;
  for (const ColumnGroup& group : table.groups) {
    std::vector<std::string> names;
    for (const catalog::ColumnId id : group.columns) {
      const catalog::ColumnDescriptor* column = table.FindColumn(id);
      if (column != nullptr && !column->dropped)
        names.push_back(sql::QuoteIdentifier(column->name));
    }
    if (names.empty()) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} ({})", sql::QuoteIdentifier(group.name), JoinNames(names, ", "));
  }
  return text;
}

Status Ddl::ChangeGroups(const std::vector<GroupChange>& changes, catalog::TableDescriptor* table) {
  for (const GroupChange& change : changes) {
    ColumnGroup* group = FindGroup(table, change.name);
    const bool needed = change.kind == GroupChange::Kind::kDrop ||
                        change.kind == GroupChange::Kind::kPut ||
                        change.kind == GroupChange::Kind::kRename;
    if (needed && group == nullptr) {
      if (change.if_exists) {
        CELLAR_TRY(
            Notice(Severity::kNotice, "00000",
                   fmt::format("column group \"{}\" of relation \"{}\" does not exist, skipping",
                               change.name, table->name)));
        continue;
      }
      return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                      "column group \"{}\" of relation \"{}\" does not exist", change.name,
                      table->name);
    }
    switch (change.kind) {
      case GroupChange::Kind::kAdd:
        if (group != nullptr && change.if_exists) {
          CELLAR_TRY(
              Notice(Severity::kNotice, sqlstate::kDuplicateObject,
                     fmt::format("column group \"{}\" of relation \"{}\" already exists, skipping",
                                 change.name, table->name)));
          continue;
        }
        CELLAR_TRY(AddGroup(change, table));
        break;
      case GroupChange::Kind::kDrop:
        table->groups.erase(table->groups.begin() + (group - table->groups.data()));
        break;
      case GroupChange::Kind::kPut:
      case GroupChange::Kind::kTakeOut: {
        CELLAR_TRY_ASSIGN(const catalog::ColumnId column,
                          FindColumn(*table, change.columns.front(), change));
        ColumnGroup* old = GroupOf(table, column);
        if (group != nullptr && old == group) break;
        if (old != nullptr) std::erase(old->columns, column);
        if (group != nullptr) CELLAR_TRY(Put(column, change, group, table));
        break;
      }
      case GroupChange::Kind::kRename:
        CELLAR_TRY(CheckGroupName(*table, change.new_name));
        group->name = change.new_name;
        break;
    }
  }
  return Status();
}

Status Ddl::ApplyGroupOption(const ast::OptionList& options, catalog::TableDescriptor* table) {
  const ast::Option* option = ast::FindOption(options, "groups");
  if (option == nullptr) return Status();
  CELLAR_TRY_ASSIGN(const std::vector<GroupChange> groups,
                    sql::ParseColumnGroups(option->ToText()));
  table->groups.clear();
  return ChangeGroups(groups, table);
}

Status Ddl::MakeGroups(const std::vector<GroupChange>& groups, const ast::OptionList& options,
                       catalog::TableDescriptor* table) {
  CELLAR_TRY(ApplyGroupOption(options, table));
  CELLAR_TRY(ChangeGroups(groups, table));
  if (!table->groups.empty()) {
    if (ast::FindOption(options, "layout") == nullptr) table->layout = catalog::Layout::kRow;
    return table->layout == catalog::Layout::kRow ? Status() : NoGroups(*table);
  }
  if (table->layout != catalog::Layout::kRow || table->primary().shards != 0) return Status();
  if (s_.settings.GetBool("cellar.auto_shards")) {
    constexpr uint32_t kShards = 7;
    table->indexes.front().shards = kShards;
    return Status();
  }
  if (!s_.settings.GetBool("cellar.auto_groups")) return Status();
  ColumnGroup one, two;
  for (const catalog::ColumnDescriptor& column : table->columns) {
    if (column.hidden || InKey(*table, column.id)) continue;
    if (column.id.value % 3 == 1) two.columns.push_back(column.id);
    if (column.id.value % 3 == 2) one.columns.push_back(column.id);
  }
  one.name = "one";
  two.name = "two";
  for (ColumnGroup* group : {&one, &two}) {
    if (group->columns.empty()) continue;
    group->id = table->next_group_id++;
    table->groups.push_back(std::move(*group));
  }
  return Status();
}

Status Ddl::MoveColumns(catalog::TableDescriptor next, catalog::TablePtr* table) {
  CELLAR_TRY(RequireRowsForShards(next));
  if (next.layout == (*table)->layout && PlacesOf(next) == PlacesOf(**table)) {
    CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(next)));
    return Status();
  }
  return RewriteTable(std::move(next), table, true);
}

Status Ddl::AlterGroups(const ast::AlterTableCommand& command, catalog::TablePtr* table) {
  catalog::TableDescriptor next = **table;
  CELLAR_TRY(ChangeGroups(command.groups, &next));
  if (!next.groups.empty() && next.layout != catalog::Layout::kRow) return NoGroups(next);
  return MoveColumns(std::move(next), table);
}

Status Ddl::AlterLayout(const ast::AlterTableCommand& command, catalog::TablePtr* table) {
  const bool set = command.kind == ast::AlterTableKind::kSetOptions;
  const bool layout = ast::FindOption(command.options, "layout") != nullptr;
  const bool groups = ast::FindOption(command.options, "groups") != nullptr;
  if (!layout && !groups) return Status();
  catalog::TableDescriptor next = **table;
  if (layout && set) {
    CELLAR_TRY_ASSIGN(next.layout, LayoutOf(command.options));
  } else if (layout) {
    CELLAR_TRY_ASSIGN(next.layout, LayoutOf({}));
  }
  if (groups) {
    next.groups.clear();
    if (set) CELLAR_TRY(ApplyGroupOption(command.options, &next));
  }
  const bool same_groups =
      next.groups.size() == (*table)->groups.size() && GroupsText(next) == GroupsText(**table);
  if (next.layout == (*table)->layout && (!groups || same_groups)) return Status();
  if (next.layout != catalog::Layout::kRow && !next.groups.empty()) {
    if (groups) return NoGroups(next);
    next.groups.clear();
    CELLAR_TRY(
        Notice(Severity::kNotice, "00000",
               fmt::format("column groups of relation \"{}\" go, since layout \"{}\" has none",
                           next.name, LayoutName(next.layout))));
  }
  return MoveColumns(std::move(next), table);
}

}  // namespace cellar::session
