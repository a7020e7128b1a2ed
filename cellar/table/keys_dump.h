// Raw keys for people: each key of the store in hex beside what it means.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/catalog/catalog.h"
#include "cellar/kv/engine.h"

namespace cellar::table {

struct DumpedField {
  std::string name;  // of the column; "group" for the last field of a row's key; may be empty
  std::string type;  // "INT", "TEXT", ..., "NULL"
  bool descending = false;
  std::string value;  // as PostgreSQL prints it
};

// A page, without the values of its rows.
struct DumpedPage {
  struct Column {
    std::string name;  // may be empty
    std::string encoding;
    uint64_t bytes = 0;
    uint32_t nulls = 0;
    std::string least, greatest;  // with DumpOptions::bounds, where the page knows them
  };
  std::string fence;  // the key fields where the next page begins, "5, 'x'"; empty: nowhere
  uint32_t rows = 0;
  uint32_t format_id = 0;
  std::vector<Column> columns;
};

struct DumpedKey {
  std::string_view key;  // raw, borrowed for the call
  uint64_t value_bytes = 0;
  std::string hex;
  bool readable = false;  // false: `problem` says what makes no sense
  std::string problem;
  std::string system_word;  // of a system record ("name"); then `fields` are its fields
  std::string path;         // "/microsoft/employees"; "(dropped) ..." or "table 17" when not living
  std::string index;        // the index's name, "" for the hidden row id's
  // "row", "patch", "tombstone", "index", "unique", "pages", "directory", "overflow"
  std::string part;
  std::vector<DumpedField> fields;
  std::vector<std::string> patched;  // of a patch: the columns that it changes
  std::optional<DumpedPage> page;
  std::string damage;  // of a page or patch: why its value does not read

  // A line: path, index and fields, then hex. Of a page, a line for each column follows.
  std::string ToString() const;
};

struct DumpOptions {
  std::optional<codec::TableId> table;  // only this table's keys
  bool system_records = true;           // without `table`
  bool bounds = false;                  // least and greatest values of the columns of pages
  uint64_t limit = 0;                   // 0: all
};

struct DumpTotals {
  uint64_t keys = 0, unreadable = 0, key_bytes = 0, value_bytes = 0;
};

// Calls `sink` for each key in key order; an error that it returns ends the dump. Reads in snapshot
// mode, block by block.
Result<DumpTotals> DumpKeys(kv::Transaction* transaction, const catalog::CatalogSnapshot& catalog,
                            const DumpOptions& options,
                            const std::function<Status(const DumpedKey&)>& sink);

// What one key means, of values that do not matter for it.
DumpedKey DescribeKey(std::string_view key, const catalog::CatalogSnapshot& catalog);

}  // namespace cellar::table
