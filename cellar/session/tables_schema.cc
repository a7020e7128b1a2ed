// Descriptors as programs see them, and the columns, indexes and keys that they name.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/session/tables_internal.h"

namespace cellar::session::tables {
namespace {

std::string PathOf(const catalog::CatalogSnapshot& catalog, const catalog::TableDescriptor& table) {
  std::string path = "/" + table.name;
  for (catalog::NamespaceId at = table.parent; at != catalog::kRootNamespace;) {
    const catalog::NamespacePtr space = catalog.GetNamespace(at);
    if (space == nullptr) break;
    path = "/" + space->name + path;
    at = space->parent;
  }
  return path;
}

}  // namespace

Result<SchemaPtr> MakeSchema(const catalog::CatalogSnapshot& catalog,
                             const catalog::TableDescriptor& table) {
  auto schema = std::make_shared<TableSchema>();
  schema->path = PathOf(catalog, table);
  schema->id = table.id.value;
  schema->version = table.version;
  schema->storage_id = table.storage_id().value;
  schema->layout = LayoutName(table.layout);
  schema->comment = table.comment;
  auto position = [&](codec::ColumnId id) { return schema->FindColumn(id.value); };
  for (const catalog::ColumnDescriptor& column : table.columns) {
    if (column.dropped || column.hidden) continue;
    schema->columns.push_back(
        {column.id.value, column.name, column.type, column.not_null,
         !column.default_sql.empty() || column.identity != catalog::Identity::kNone,
         !column.generated_sql.empty(), column.comment});
  }
  for (const catalog::IndexDescriptor& index : table.indexes) {
    if (index.state != catalog::IndexState::kPublic) continue;
    TableIndex shown;
    shown.id = index.id.value;
    shown.name = index.name;
    shown.primary = index.primary;
    shown.unique = index.unique;
    shown.nulls_not_distinct = index.nulls_not_distinct;
    shown.predicate = index.predicate;
    shown.shards = index.shards;
    bool hidden = false;
    const std::vector<codec::KeyColumn> types = table.KeyColumnsOf(index);
    for (size_t i = 0; i < index.key.size(); ++i) {
      const catalog::IndexColumn& column = index.key[i];
      TableIndexColumn key;
      key.expression = column.expression;
      key.type = types[i].type;
      key.descending = column.direction == codec::Direction::kDescending;
      key.nulls_first = column.nulls == codec::NullPlacement::kFirst;
      if (types[i].type.collation != nullptr) key.collation = types[i].type.collation->name;
      if (column.expression.empty()) {
        key.column = position(column.column);
        hidden |= key.column < 0;
      }
      shown.key.push_back(std::move(key));
    }
    if (hidden) continue;
    for (codec::ColumnId id : index.stored) shown.stored.push_back(position(id));
    schema->indexes.push_back(std::move(shown));
  }
  return SchemaPtr(std::move(schema));
}

Result<uint32_t> PositionOf(const TableSchema& schema, std::string_view name) {
  const int position = schema.FindColumn(name);
  if (position >= 0) return static_cast<uint32_t>(position);
  return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn, "column \"{}\" does not exist", name)
      .WithColumn(std::string(name));
}

Result<std::vector<uint32_t>> PositionsOf(const KnownTable& known, const Projection& projection) {
  if (projection.all()) return known.all;
  std::vector<uint32_t> positions;
  if (projection.schema() == known.schema) {
    positions.assign(projection.positions().begin(), projection.positions().end());
    return positions;
  }
  for (size_t i = 0; i < projection.names().size(); ++i) {
    // A column that was looked up stays the same one when it is renamed.
    if (projection.schema() != nullptr) {
      const uint32_t id = projection.schema()->columns[projection.positions()[i]].id;
      const int position = known.schema->FindColumn(id);
      if (position >= 0) {
        positions.push_back(static_cast<uint32_t>(position));
        continue;
      }
    }
    CELLAR_TRY_ASSIGN(uint32_t position, PositionOf(*known.schema, projection.names()[i]));
    positions.push_back(position);
  }
  std::vector<uint32_t> sorted = positions;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    const std::string& name = known.schema->columns[*twice].name;
    return SqlError(Code::kInvalid, sqlstate::kDuplicateColumn, "column \"{}\" is wanted twice",
                    name)
        .WithColumn(name);
  }
  return positions;
}

Result<const catalog::IndexDescriptor*> IndexOf(const catalog::TableDescriptor& table,
                                                std::string_view name, bool keys) {
  const catalog::IndexDescriptor* index = name.empty() ? &table.primary() : table.FindIndex(name);
  if (index == nullptr || index->state != catalog::IndexState::kPublic) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                    "index \"{}\" of table \"{}\" does not exist", name, table.name);
  }
  if (!keys) return index;
  const std::vector<codec::KeyColumn> types = table.KeyColumnsOf(*index);
  for (size_t i = 0; i < index->key.size(); ++i) {
    const catalog::IndexColumn& column = index->key[i];
    const catalog::ColumnDescriptor* described = table.FindColumn(column.column);
    if (!column.expression.empty() || types[i].type.collation != nullptr) {
      return UnsupportedError("keys of index \"{}\" cannot be given", index->name)
          .WithDetail("It has an expression or a collation.");
    }
    if (described == nullptr || described->hidden) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                      "table \"{}\" has no primary key", table.name);
    }
  }
  return index;
}

Result<const KnownKey*> KeyOf(KnownTable* known, const std::string& name) {
  auto at = known->keys.find(name);
  if (at != known->keys.end()) return &at->second;
  KnownKey key;
  CELLAR_TRY_ASSIGN(key.index, IndexOf(*known->table, name, true));
  if (!key.index->unique) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "index \"{}\" is not unique",
                    key.index->name)
        .WithHint("Use Lookup.");
  }
  const std::vector<codec::KeyColumn> columns = known->table->KeyColumnsOf(*key.index);
  for (size_t i = 0; i < key.index->key.size(); ++i) {
    key.types.push_back(columns[i].type);
    const catalog::ColumnDescriptor* column = known->table->FindColumn(key.index->key[i].column);
    CELLAR_TRY_ASSIGN(uint32_t position, PositionOf(*known->schema, column->name));
    key.positions.push_back(position);
  }
  return &known->keys.emplace(name, std::move(key)).first->second;
}

std::vector<codec::KeyColumn> OrderOf(const catalog::TableDescriptor& table,
                                      const catalog::IndexDescriptor& index,
                                      std::vector<codec::ColumnId>* columns) {
  std::vector<codec::KeyColumn> order = table.KeyColumnsOf(index);
  order.resize(index.key.size());
  const std::vector<codec::KeyColumn> primary = table.KeyColumnsOf(table.primary());
  columns->clear();
  for (const catalog::IndexColumn& column : index.key) columns->push_back(column.column);
  if (index.primary) return order;
  for (size_t i = 0; i < table.primary().key.size(); ++i) {
    const codec::ColumnId id = table.primary().key[i].column;
    if (std::find(columns->begin(), columns->end(), id) != columns->end()) continue;
    columns->push_back(id);
    order.push_back(primary[i]);
  }
  return order;
}

Result<std::vector<Datum>> KeyValues(const Key& key, std::span<const codec::KeyColumn> columns,
                                     size_t least, size_t most, Arena* arena) {
  if (key.size() < least || key.size() > most) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "{} values given for a key of {}", key.size(), most);
  }
  std::vector<Datum> values;
  values.reserve(key.size());
  for (size_t i = 0; i < key.size(); ++i) {
    CELLAR_TRY_ASSIGN(Datum value, key[i].To(columns[i].type, arena));
    values.push_back(value);
  }
  return values;
}

}  // namespace cellar::session::tables
