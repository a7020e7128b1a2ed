// Definitions of system tables. Private to this layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace cellar::session {

struct SystemTable {
  const char* schema;
  const char* name;
  uint32_t oid;
  bool view;
  const char* columns;  // "name:type", separated by blanks; "_type" is an array
};
extern const SystemTable kSystemTables[];
extern const size_t kSystemTableCount;

}  // namespace cellar::session
