// What is known of the values of a table, for the planner: gathered by ANALYZE and now and then in
// the background. Never exact, and nothing but the choice of plans may depend on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/catalog/descriptor.h"

namespace cellar::catalog {

struct ColumnStatistics {
  ColumnId column;
  Type type;                 // of the values below
  double null_fraction = 0;  // of all rows
  double average_width = 0;  // bytes of a value that is not NULL
  // Different values; negative: the fraction of all rows that they are.
  double distinct = 0;
  // The most common values and their shares of all rows, greatest first.
  std::vector<Value> common;
  std::vector<double> frequencies;
  // The values that are neither NULL nor among `common`, ascending: between two of these lie equal
  // numbers of rows. Empty, or two at least.
  std::vector<Value> bounds;

  // Different values among `rows` rows; 1 at least.
  double DistinctAmong(double rows) const;
  // Share of rows that are neither NULL nor among `common`.
  double RestFraction() const;
  // Share of all `rows` rows that equal `value`, which is of `type` and not NULL.
  double FractionEqual(Datum value, double rows) const;
  // Share of all rows below `value`, or not above it.
  double FractionBelow(Datum value, bool inclusive) const;
  // Text: share of all rows that begin with `prefix`, which is not empty.
  double FractionWithPrefix(std::string_view prefix) const;
};

struct TableStatistics {
  double rows = 0;              // when they were gathered
  int64_t changes = 0;          // rows that had been inserted, updated, deleted by then
  int64_t gathered_micros = 0;  // since 2000-01-01 UTC
  bool automatic = false;       // in the background, not by ANALYZE
  std::vector<ColumnStatistics> columns;

  const ColumnStatistics* Find(ColumnId column) const;  // null: nothing is known
};

// `00 "stats-" int(storage id)`; docs/formats/catalog.md.
std::string StatisticsKey(const TableDescriptor& table);
std::string EncodeStatistics(const TableStatistics& statistics);
// Columns that the table no longer has, or with another type, are left out. Errors: kCorruption.
Result<TableStatistics> DecodeStatistics(const TableDescriptor& table, std::string_view bytes);

}  // namespace cellar::catalog
