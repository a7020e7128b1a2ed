// CREATE INDEX: built from the rows in the transaction that makes it.
#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"

namespace cellar::session {

Status Ddl::CreateIndex(const ast::CreateIndexStmt& statement) {
  CELLAR_TRY_ASSIGN(catalog::TablePtr table, FindTable(statement.table));
  if (statement.method != "btree") {
    return UnsupportedError("access method \"{}\" is not supported", statement.method);
  }
  if (statement.where != nullptr) return UnsupportedError("partial indexes are not supported");
  if (!statement.name.empty() && statement.if_not_exists) {
    const catalog::IndexDescriptor* existing = nullptr;
    if (Catalog()->FindTableOfIndex(table->parent, statement.name, &existing) != nullptr ||
        Catalog()->FindTable(table->parent, statement.name) != nullptr) {
      return Notice(Severity::kNotice, sqlstate::kDuplicateTable,
                    fmt::format("relation \"{}\" already exists, skipping", statement.name));
    }
  }
  catalog::TableDescriptor next = *table;
  catalog::IndexDescriptor index;
  index.unique = statement.unique;
  index.nulls_not_distinct = statement.nulls_not_distinct;
  std::vector<std::string> names;
  for (const ast::IndexElement& element : statement.elements) {
    if (element.column.empty()) return UnsupportedError("indexes on expressions are not supported");
    if (!element.opclass.empty()) return UnsupportedError("operator classes are not supported");
    if (!element.collation.empty() && element.collation.name != "C" &&
        element.collation.name != "default" && element.collation.name != "POSIX") {
      return UnsupportedError("collation \"{}\" is not supported", element.collation.name);
    }
    const catalog::ColumnDescriptor* column = table->FindColumn(element.column);
    if (column == nullptr || column->hidden) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn, "column \"{}\" does not exist",
                      element.column);
    }
    if (!codec::IsKeyType(column->type)) {
      return SqlError(Code::kInvalid, sqlstate::kUndefinedObject,
                      "data type {} has no default operator class for access method \"btree\"",
                      FormatType(column->type));
    }
    catalog::IndexColumn part;
    part.column = column->id;
    const bool descending = element.direction == ast::SortDirection::kDesc;
    part.direction = descending ? codec::Direction::kDescending : codec::Direction::kAscending;
    const bool nulls_first = element.nulls == ast::SortNulls::kFirst ||
                             (element.nulls == ast::SortNulls::kDefault && descending);
    part.nulls = nulls_first ? codec::NullPlacement::kFirst : codec::NullPlacement::kLast;
    index.key.push_back(std::move(part));
    names.push_back(element.column);
  }
  constexpr size_t kMaxIndexColumns = 32;
  if (index.key.size() > kMaxIndexColumns) {
    return SqlError(Code::kLimit, sqlstate::kTooManyColumns,
                    "cannot use more than {} columns in an index", kMaxIndexColumns);
  }
  for (const ast::IndexElement& element : statement.including) {
    const catalog::ColumnDescriptor* column = table->FindColumn(element.column);
    if (column == nullptr || column->hidden) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn, "column \"{}\" does not exist",
                      element.column);
    }
    index.stored.push_back(column->id);
    names.push_back(element.column);
  }
  index.name = statement.name.empty() ? ChooseName(next, JoinNames(names, "_"), "idx", next.parent)
                                      : statement.name;
  next.indexes.push_back(std::move(index));
  catalog::TablePtr made;
  return AddIndex(std::move(next), statement.concurrently, &made);
}

}  // namespace cellar::session
