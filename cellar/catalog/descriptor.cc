// Look-ups within one descriptor.
#include "cellar/catalog/descriptor.h"

#include <algorithm>
#include <map>

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
  if (column.collation != nullptr) {
    out.type.collation = column.collation == ByBytes() ? nullptr : column.collation;
  }
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

const Collation* ByBytes() {
  static const Collation* const made = [] {
    Collation bytes;
    bytes.oid = 950;  // PostgreSQL's "C"
    bytes.name = "C";
    bytes.built_in = true;
    return Intern(std::move(bytes));
  }();
  return made;
}

namespace {

// Calls visit(type's or index column's collation) for each place that has one; visit may change it.
template <typename Table, typename Visit>
void VisitCollations(Table* table, Visit&& visit) {
  for (auto& format : table->row_formats) {
    for (auto& type : format.types) {
      if (type.collation != nullptr) visit(type.collation, true);
    }
  }
  for (auto& column : table->columns) {
    if (column.type.collation != nullptr) visit(column.type.collation, column.dropped);
  }
  for (auto& index : table->indexes) {
    for (auto& column : index.key) {
      if (column.collation != nullptr && column.collation != ByBytes()) {
        visit(column.collation, false);
      }
    }
  }
}

}  // namespace

std::vector<const Collation*> CollationsOf(const TableDescriptor& table) {
  std::map<uint32_t, const Collation*> found;
  VisitCollations(&table, [&](const Collation* const& one, bool) { found[one->oid] = one; });
  std::vector<const Collation*> out;
  for (const auto& [oid, collation] : found) out.push_back(collation);
  return out;
}

bool HasCollation(const TableDescriptor& table, uint32_t collation_oid) {
  bool found = false;
  VisitCollations(&table, [&](const Collation* const& one, bool old) {
    found |= !old && one->oid == collation_oid;
  });
  return found;
}

void ReplaceCollation(const Collation* version, TableDescriptor* table) {
  VisitCollations(table, [&](const Collation*& one, bool) {
    if (one->oid == version->oid) one = version;
  });
  for (ColumnDescriptor& column : table->columns) {
    if (!column.initial_value) continue;
    Type type = column.initial_value->type();
    if (type.collation == nullptr || type.collation->oid != version->oid) continue;
    type.collation = version;
    column.initial_value = Value(type, column.initial_value->datum());
  }
}

std::vector<const EnumType*> EnumsOf(const TableDescriptor& table) {
  std::map<uint32_t, const EnumType*> found;
  auto add = [&found](const Type& type) {
    if (type.enumeration != nullptr) found[type.enumeration->oid] = type.enumeration;
  };
  for (const RowFormatDescriptor& format : table.row_formats) {
    for (const Type& type : format.types) add(type);
  }
  for (const ColumnDescriptor& column : table.columns) {
    if (column.initial_value) add(column.initial_value->type());
    add(column.type);
  }
  std::vector<const EnumType*> out;
  for (const auto& [oid, type] : found) out.push_back(type);
  return out;
}

bool HasEnumColumn(const TableDescriptor& table, uint32_t type_oid) {
  return std::any_of(table.columns.begin(), table.columns.end(), [&](const auto& column) {
    return !column.dropped && column.type.enumeration != nullptr &&
           column.type.enumeration->oid == type_oid;
  });
}

void ReplaceEnum(const EnumType* version, TableDescriptor* table) {
  auto replaces = [version](const Type& type) {
    return type.enumeration != nullptr && type.enumeration->oid == version->oid;
  };
  for (ColumnDescriptor& column : table->columns) {
    if (column.initial_value && replaces(column.initial_value->type())) {
      Type type = column.initial_value->type();
      type.enumeration = version;
      column.initial_value = Value(type, column.initial_value->datum());
    }
    if (replaces(column.type)) column.type.enumeration = version;
  }
  for (RowFormatDescriptor& format : table->row_formats) {
    for (Type& type : format.types) {
      if (replaces(type)) type.enumeration = version;
    }
  }
}

}  // namespace cellar::catalog
