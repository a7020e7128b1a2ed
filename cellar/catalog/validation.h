// What a descriptor must satisfy before it is written, and what the catalog fills in by itself.
// Private to the layer.
#pragma once

#include <string_view>

#include "cellar/catalog/descriptor.h"

namespace cellar::catalog {

// Errors: 42602 for an empty name, 42622 for one that is too long for a key, 42939 for schemas
// whose names begin with "pg_".
Status CheckNamespaceName(const NamespaceDescriptor& parent, std::string_view name);

// Gives a table without a primary key a hidden, ordered row id column and a nameless primary index.
void AddHiddenPrimaryKey(TableDescriptor* table);
// Is it that key? It has no name, or one of an older store, which is nobody's to use.
bool OrdersByRowId(const TableDescriptor& table, const IndexDescriptor& index);

// Adds a row format when the living columns, their types or the primary key (`old`'s; null for a
// new table) are not those of the last one.
void AddRowFormat(const TableDescriptor* old, TableDescriptor* table);

// Errors carry PostgreSQL's SQLSTATEs: 42701 a column name occurs twice, 42P07 an index name does,
// 54011 too many columns, 42704 a key column's type has no order, 42703 an unknown column.
Status CheckTableDescriptor(const TableDescriptor& table);

}  // namespace cellar::catalog
