#include "cellar/tableapi/schema.h"

#include "cellar/base/crc32c.h"
#include "cellar/base/sqlstate.h"
#include "cellar/codec/key.h"
#include "cellar/tableapi/cell.h"

namespace cellar {
namespace {

struct EncodedKey {
  std::vector<codec::KeyColumn> columns;
  std::vector<Datum> values;
};

Status Encode(const TableIndex& index, const Key& key, Arena* arena, EncodedKey* encoded) {
  if (key.size() != index.key.size()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "{} values given for the key of index \"{}\", which has {}", key.size(),
                    index.name, index.key.size());
  }
  for (size_t i = 0; i < key.size(); ++i) {
    const TableIndexColumn& column = index.key[i];
    if (column.column < 0 || !column.collation.empty()) {
      return UnsupportedError("keys of index \"{}\" can be made by the store alone", index.name)
          .WithDetail("It has an expression or a collation.");
    }
    encoded->columns.push_back(
        {column.type,
         column.descending ? codec::Direction::kDescending : codec::Direction::kAscending,
         column.nulls_first ? codec::NullPlacement::kFirst : codec::NullPlacement::kLast});
    CELLAR_TRY_ASSIGN(Datum value, key[i].To(column.type, arena));
    encoded->values.push_back(value);
  }
  return Status();
}

}  // namespace

int TableSchema::FindColumn(std::string_view name) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int TableSchema::FindColumn(uint32_t column_id) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].id == column_id) return static_cast<int>(i);
  }
  return -1;
}

const TableIndex* TableSchema::FindIndex(std::string_view name) const {
  for (const TableIndex& index : indexes) {
    if (name.empty() ? index.primary : index.name == name) return &index;
  }
  return nullptr;
}

Result<Projection> Projection::Of(SchemaPtr schema, std::vector<std::string> names) {
  Projection projection(std::move(names));
  for (const std::string& name : projection.names_) {
    const int position = schema->FindColumn(name);
    if (position < 0) {
      return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn, "column \"{}\" does not exist",
                      name);
    }
    projection.positions_.push_back(static_cast<uint32_t>(position));
  }
  projection.schema_ = std::move(schema);
  return projection;
}

Result<std::string> EncodeKeyFields(const TableSchema&, const TableIndex& index, const Key& key) {
  Arena arena;
  EncodedKey encoded;
  CELLAR_TRY(Encode(index, key, &arena, &encoded));
  std::string bytes;
  codec::AppendKeyFields(encoded.values, encoded.columns, &bytes);
  return bytes;
}

Result<std::string> EncodePartitionKey(const TableSchema&, const TableIndex& index, const Key& key,
                                       size_t partition_columns) {
  Arena arena;
  EncodedKey encoded;
  CELLAR_TRY(Encode(index, key, &arena, &encoded));
  return codec::EncodePartitionKey(encoded.values, encoded.columns,
                                   std::min(partition_columns, key.size()));
}

Result<std::string> EncodeRangeKey(const TableSchema&, const TableIndex& index, const Key& key,
                                   size_t partition_columns) {
  Arena arena;
  EncodedKey encoded;
  CELLAR_TRY(Encode(index, key, &arena, &encoded));
  return codec::EncodeRangeKey(encoded.values, encoded.columns,
                               std::min(partition_columns, key.size()));
}

Result<std::string> EncodeStoreKey(const TableSchema& schema, const TableIndex& index,
                                   const Key& key) {
  Arena arena;
  EncodedKey encoded;
  CELLAR_TRY(Encode(index, key, &arena, &encoded));
  if (!index.unique) {
    return UnsupportedError("entries of index \"{}\" have more in their keys", index.name);
  }
  std::string bytes =
      codec::TablePrefix(codec::TableId{schema.storage_id}, codec::IndexId{index.id});
  std::string fields;
  codec::AppendKeyFields(encoded.values, encoded.columns, &fields);
  if (index.shards != 0) codec::AppendKeyUint(Crc32c(fields) % index.shards, &bytes);
  bytes += fields;
  if (index.primary) codec::AppendKeyInt(0, &bytes);  // the row's own column group
  codec::FinishKey(&bytes);
  return bytes;
}

}  // namespace cellar
