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
// Stable. Looks at `cancel`, which may be null, as it goes.
Status SortRows(std::span<const SortColumn> columns, const CancelToken* cancel,
                CountedVector<uint32_t>* rows);
// The first `count` of them in order; fewer if there are fewer.
Status SortFirstRows(std::span<const SortColumn> columns, size_t count, const CancelToken* cancel,
                     CountedVector<uint32_t>* rows);

}  // namespace cellar::sql::exec
