// The expressions that a table keeps as SQL. Private to this layer.
#pragma once

#include <string>

#include "cellar/catalog/descriptor.h"

namespace cellar::session {

// Calls visit(std::string*) for defaults, generated columns, checks, and the expressions and
// predicates of indexes; some are empty.
template <typename Visit>
void ForEachText(catalog::TableDescriptor* table, Visit&& visit) {
  for (catalog::ColumnDescriptor& column : table->columns) {
    visit(&column.default_sql);
    visit(&column.generated_sql);
  }
  for (catalog::CheckConstraint& check : table->checks) visit(&check.expression);
  for (catalog::IndexDescriptor& index : table->indexes) {
    visit(&index.predicate);
    for (catalog::IndexColumn& part : index.key) visit(&part.expression);
  }
}

}  // namespace cellar::session
