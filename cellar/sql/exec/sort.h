// Order of rows by several columns. Private to this layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cellar/sql/exec/operator.h"

namespace cellar::sql::exec {

struct SortColumn {
  const ColumnVector* values = nullptr;
  Type type;  // by which they compare
  bool descending = false;
  bool nulls_first = false;
};

// Negative, zero, positive.
int CompareRows(std::span<const SortColumn> columns, uint32_t a, uint32_t b);
// Stable.
void SortRows(std::span<const SortColumn> columns, std::vector<uint32_t>* rows);

}  // namespace cellar::sql::exec
