// Look-ups within one descriptor.
#include "cellar/catalog/descriptor.h"

#include <algorithm>

namespace cellar::catalog {

const ColumnDescriptor* TableDescriptor::FindColumn(std::string_view column_name) const {
  for (const ColumnDescriptor& column : columns) {
    if (!column.dropped && column.name == column_name) return &column;
  }
  return nullptr;
}

const ColumnDescriptor* TableDescriptor::FindColumn(ColumnId column) const {
  int ordinal = OrdinalOf(column);
  return ordinal < 0 ? nullptr : &columns[static_cast<size_t>(ordinal)];
}

int TableDescriptor::OrdinalOf(ColumnId column) const {
  // Ids grow with ordinals, and are ordinal + 1 until a column has been dropped for good.
  size_t guess = column.value - 1;
  if (guess < columns.size() && columns[guess].id == column) return static_cast<int>(guess);
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].id == column) return static_cast<int>(i);
  }
  return -1;
}

const IndexDescriptor* TableDescriptor::FindIndex(std::string_view index_name) const {
  for (const IndexDescriptor& index : indexes) {
    if (index.name == index_name) return &index;
  }
  return nullptr;
}

const IndexDescriptor* TableDescriptor::FindIndex(IndexId index_id) const {
  for (const IndexDescriptor& index : indexes) {
    if (index.id == index_id) return &index;
  }
  return nullptr;
}

namespace {

codec::KeyColumn KeyColumnFor(const TableDescriptor& table, const IndexColumn& column) {
  codec::KeyColumn out;
  const ColumnDescriptor* descriptor = table.FindColumn(column.column);
  if (descriptor != nullptr) out.type = descriptor->type;
  out.direction = column.direction;
  out.nulls = column.nulls;
  return out;
}

}  // namespace

std::vector<codec::KeyColumn> TableDescriptor::KeyColumnsOf(const IndexDescriptor& index) const {
  std::vector<codec::KeyColumn> out;
  for (const IndexColumn& column : index.key) out.push_back(KeyColumnFor(*this, column));
  if (index.unique || index.primary || indexes.empty()) return out;
  for (const IndexColumn& column : primary().key) {
    bool held = std::any_of(index.key.begin(), index.key.end(), [&](const IndexColumn& own) {
      return own.expression.empty() && own.column == column.column;
    });
    if (!held) out.push_back(KeyColumnFor(*this, column));
  }
  return out;
}

}  // namespace cellar::catalog
