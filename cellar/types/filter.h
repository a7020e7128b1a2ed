// Comparisons of a column with a constant: the conditions that scans may decide on stored bytes.
#pragma once

#include <cstdint>
#include <cstring>

#include "cellar/types/batch.h"
#include "cellar/types/datum.h"

namespace cellar {

enum class FilterOp : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kIsNull,
  kIsNotNull,
};

// Passes values v with `v op value` under CompareDatums; NULL passes kIsNull alone, as in WHERE.
struct ValueFilter {
  FilterOp op = FilterOp::kIsNotNull;
  Datum value;  // of the column's type, not NULL; unused by kIsNull and kIsNotNull
};

// Does one value pass?
bool PassesFilter(Datum value, Type type, const ValueFilter& filter);
// Clears mask[i] (1: still in) for each row that does not pass. Cost: about 0.5 ns a row, more for
// bytes.
void ApplyFilter(const ColumnVector& column, const ValueFilter& filter, uint8_t* mask);
// The places of the ones in mask[0..size), appended to *places, each plus `base`.
void AppendMaskPlaces(const uint8_t* mask, size_t size, uint32_t base,
                      std::vector<uint32_t>* places);

}  // namespace cellar
