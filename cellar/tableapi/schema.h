// What a program knows of a table, and which of its columns it wants.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/types/type.h"

namespace cellar {

struct TableColumn {
  uint32_t id = 0;  // never used again in this table; stays when the column is renamed
  std::string name;
  Type type;
  bool not_null = false;
  bool has_default = false;  // or is an identity column
  bool generated = false;    // always computed: cannot be written
  std::string comment;
};

struct TableIndexColumn {
  int column = -1;         // position in TableSchema::columns; -1: an expression
  std::string expression;  // SQL text
  Type type;
  bool descending = false;
  bool nulls_first = false;
  std::string collation;  // empty: by bytes
};

struct TableIndex {
  uint32_t id = 0;
  std::string name;
  bool primary = false;
  bool unique = false;
  bool nulls_not_distinct = false;
  std::vector<TableIndexColumn> key;
  std::vector<int> stored;  // further columns that its entries hold
  std::string predicate;    // SQL text; empty: every row has an entry
  uint32_t shards = 0;      // over which its keys are spread by a hash; 0: not
};

// A table at one version. Immutable.
struct TableSchema {
  std::string path;
  uint64_t id = 0;                   // stays when the table is renamed or moved
  uint64_t version = 0;              // grows with every change of the table
  std::vector<TableColumn> columns;  // hidden ones left out
  // The primary one first, but for one on a hidden row id, which cannot be named. Those that are
  // being built are left out.
  std::vector<TableIndex> indexes;
  std::string layout;
  uint64_t storage_id = 0;  // what key bytes begin with
  std::string comment;

  // Position in `columns`; -1: none of that name.
  int FindColumn(std::string_view name) const;
  int FindColumn(uint32_t id) const;
  // "": the primary one. Null: none.
  const TableIndex* FindIndex(std::string_view name) const;
};
using SchemaPtr = std::shared_ptr<const TableSchema>;

// Which columns a read returns, in which order; all unless it says otherwise. Names are looked up
// at each call; one made by Table::Project has been looked up already. Immutable.
class Projection {
 public:
  Projection() = default;
  Projection(std::initializer_list<std::string_view> names) : names_(names.begin(), names.end()) {}
  explicit Projection(std::vector<std::string> names) : names_(std::move(names)) {}
  // Errors: 42703.
  static Result<Projection> Of(SchemaPtr schema, std::vector<std::string> names);

  bool all() const { return names_.empty(); }
  const std::vector<std::string>& names() const { return names_; }
  // Null unless looked up; then the columns' positions in it.
  const SchemaPtr& schema() const { return schema_; }
  std::span<const uint32_t> positions() const { return positions_; }

 private:
  std::vector<std::string> names_;
  SchemaPtr schema_;
  std::vector<uint32_t> positions_;
};

// ---- Key bytes: identical to the store's (docs/formats/key.md) ----

class Key;

// The bytes of a whole key of `index` without what depends on the store: fields one after the
// other. A partition key is the first `partition_columns` fields, the range key the rest; the two
// together are the row's key. Cost: well under a microsecond. Errors: 22023 for a key of another
// number of columns, 0A000 for an index on expressions or under a collation; those of Cell::To.
Result<std::string> EncodeKeyFields(const TableSchema& schema, const TableIndex& index,
                                    const Key& key);
Result<std::string> EncodePartitionKey(const TableSchema& schema, const TableIndex& index,
                                       const Key& key, size_t partition_columns);
Result<std::string> EncodeRangeKey(const TableSchema& schema, const TableIndex& index,
                                   const Key& key, size_t partition_columns);
// The key under which the store keeps the row with this primary key, or the entry of a unique index
// (`key` without NULLs then), in a table of layout row or pages.
Result<std::string> EncodeStoreKey(const TableSchema& schema, const TableIndex& index,
                                   const Key& key);

}  // namespace cellar
