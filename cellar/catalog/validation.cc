#include "cellar/catalog/validation.h"

#include <set>

#include "cellar/base/sqlstate.h"

namespace cellar::catalog {
namespace {

constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxColumns = 1600;
constexpr size_t kMaxKeyColumns = 32;
constexpr std::string_view kRowIdName = "_rowid";

Status CheckName(std::string_view name) {
  if (name.empty()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidName, "zero-length delimited identifier");
  }
  if (name.size() > kMaxNameBytes) {
    return SqlError(Code::kInvalid, sqlstate::kNameTooLong, "identifier is longer than {} bytes",
                    kMaxNameBytes);
  }
  return Status();
}

Status CheckColumns(const TableDescriptor& table) {
  if (table.columns.size() > kMaxColumns) {
    return SqlError(Code::kInvalid, sqlstate::kTooManyColumns, "tables can have at most {} columns",
                    kMaxColumns);
  }
  std::set<std::string_view> names;
  std::set<uint32_t> ids;
  for (const ColumnDescriptor& column : table.columns) {
    if (!ids.insert(column.id.value).second) {
      return InternalError("column id {} occurs twice in relation \"{}\"", column.id.value,
                           table.name);
    }
    if (column.dropped) continue;
    CELLAR_TRY(CheckName(column.name));
    if (!names.insert(column.name).second) {
      return SqlError(Code::kInvalid, sqlstate::kDuplicateColumn,
                      "column \"{}\" specified more than once", column.name);
    }
    if (table.kind == RelationKind::kTable && !IsStorable(column.type)) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                      "column \"{}\" has pseudo-type {}", column.name, FormatType(column.type));
    }
  }
  return Status();
}

const ColumnDescriptor* LivingColumn(const TableDescriptor& table, ColumnId id) {
  const ColumnDescriptor* column = table.FindColumn(id);
  return column == nullptr || column->dropped ? nullptr : column;
}

Status CheckIndex(const TableDescriptor& table, const IndexDescriptor& index) {
  if (index.key.empty()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidObjectDefinition,
                    "index \"{}\" must have at least one column", index.name);
  }
  if (index.key.size() + index.stored.size() > kMaxKeyColumns) {
    return SqlError(Code::kInvalid, sqlstate::kTooManyColumns,
                    "cannot use more than {} columns in an index", kMaxKeyColumns);
  }
  for (const IndexColumn& key : index.key) {
    if (!key.expression.empty()) {
      if (index.primary) return InternalError("a primary key holds an expression");
      continue;
    }
    const ColumnDescriptor* column = LivingColumn(table, key.column);
    if (column == nullptr) {
      return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn,
                      "index \"{}\" names a column that does not exist", index.name);
    }
    if (!codec::IsKeyType(column->type)) {
      return SqlError(Code::kInvalid, sqlstate::kUndefinedObject,
                      "data type {} has no default operator class for access method \"btree\"",
                      FormatType(column->type))
          .WithHint(
              "You must specify an operator class for the index or define a default operator class "
              "for the data type.");
    }
    if (index.primary && !column->not_null) {
      return InternalError("primary key column \"{}\" is nullable", column->name);
    }
  }
  for (ColumnId stored : index.stored) {
    if (LivingColumn(table, stored) == nullptr) {
      return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn,
                      "index \"{}\" stores a column that does not exist", index.name);
    }
  }
  return Status();
}

}  // namespace

Status CheckNamespaceName(const NamespaceDescriptor& parent, std::string_view name) {
  CELLAR_TRY(CheckName(name));
  // Sessions keep their temporary tables in schemas of that prefix.
  if (parent.id != kRootNamespace && name.starts_with("pg_") && !name.starts_with("pg_temp_")) {
    return SqlError(Code::kInvalid, sqlstate::kReservedName, "unacceptable schema name \"{}\"",
                    name)
        .WithDetail("The prefix \"pg_\" is reserved for system schemas.");
  }
  return Status();
}

void AddHiddenPrimaryKey(TableDescriptor* table) {
  for (const IndexDescriptor& index : table->indexes) {
    if (index.primary) return;
  }
  ColumnDescriptor column;
  column.id.value = table->next_column_id++;
  column.name = kRowIdName;
  while (table->FindColumn(column.name) != nullptr) column.name += '_';
  column.type = MakeType(TypeId::kInt8);
  column.not_null = true;
  column.hidden = true;
  IndexDescriptor index;
  index.primary = true;
  index.unique = true;
  IndexColumn key;
  key.column = column.id;
  index.key.push_back(key);
  table->columns.push_back(std::move(column));
  table->indexes.insert(table->indexes.begin(), std::move(index));
}

bool OrdersByRowId(const TableDescriptor& table, const IndexDescriptor& index) {
  if (!index.primary || index.key.size() != 1) return false;
  const ColumnDescriptor* column = table.FindColumn(index.key[0].column);
  return column != nullptr && column->hidden;
}

namespace {

// What a row value holds depends on which columns its key holds.
bool SamePrimaryKey(const TableDescriptor& a, const TableDescriptor& b) {
  if (a.indexes.empty() || b.indexes.empty()) return false;
  std::set<uint32_t> columns_a, columns_b;
  for (const IndexColumn& column : a.primary().key) columns_a.insert(column.column.value);
  for (const IndexColumn& column : b.primary().key) columns_b.insert(column.column.value);
  return columns_a == columns_b;
}

}  // namespace

void AddRowFormat(const TableDescriptor* old, TableDescriptor* table) {
  RowFormatDescriptor format;
  for (const ColumnDescriptor& column : table->columns) {
    if (column.dropped) continue;
    format.columns.push_back(column.id);
    format.types.push_back(column.type);
    format.types.back().modifier = -1;  // limits what may be stored, not how
  }
  if (!table->row_formats.empty()) {
    const RowFormatDescriptor& last = table->row_formats.back();
    // By its collation a key may lose what the row keeps then.
    const bool same_collations =
        std::equal(last.types.begin(), last.types.end(), format.types.begin(), format.types.end(),
                   [](const Type& a, const Type& b) { return a.collation == b.collation; });
    if (last.columns == format.columns && last.types == format.types && same_collations &&
        old != nullptr && SamePrimaryKey(*old, *table)) {
      return;
    }
  }
  format.id = table->next_row_format_id++;
  table->row_formats.push_back(std::move(format));
}

Status CheckTableDescriptor(const TableDescriptor& table) {
  CELLAR_TRY(CheckName(table.name));
  CELLAR_TRY(CheckColumns(table));
  std::set<std::string_view> names = {table.name};
  std::set<uint32_t> ids;
  bool first = true;
  for (const IndexDescriptor& index : table.indexes) {
    if (index.primary != first) return InternalError("a table has one primary index");
    first = false;
    CELLAR_TRY(CheckIndex(table, index));
    if (!index.name.empty() && !names.insert(index.name).second) {
      return SqlError(Code::kExists, sqlstate::kDuplicateTable, "relation \"{}\" already exists",
                      index.name);
    }
    const uint32_t width = index.primary ? codec::kIndexIdsOfPrimary : 1;
    for (uint32_t i = 0; i < width; ++i) {
      if (!ids.insert(index.id.value + i).second) {
        return InternalError("index id {} occurs twice in relation \"{}\"", index.id.value + i,
                             table.name);
      }
    }
  }
  return Status();
}

}  // namespace cellar::catalog
