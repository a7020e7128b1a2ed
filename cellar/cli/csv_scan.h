// Reads CSV to guess what it holds: the header and the types of its columns. The import itself goes
// through COPY.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/types/type.h"

namespace cellar::cli {

struct CsvValue {
  std::string text;
  bool quoted = false;
};

// Takes the next record off `*text`. nullopt when none is complete (a quoted field is open, or the
// text ends without a line end and `!at_end`); `*text` then stays.
std::optional<std::vector<CsvValue>> TakeCsvRecord(char delimiter, bool at_end,
                                                   std::string_view* text);

// The narrowest type that reads every value: boolean, integer, bigint, numeric, date, timestamp,
// timestamptz, uuid; text when none does. One thread at a time.
class TypeGuess {
 public:
  void Add(std::string_view value);
  Type type() const;

 private:
  uint32_t possible_ = ~uint32_t{0};
  bool seen_ = false;
};

// A column name of SQL from a header's field: lower case, words joined by underscores.
std::string ColumnNameFrom(std::string_view field, size_t number);

}  // namespace cellar::cli
