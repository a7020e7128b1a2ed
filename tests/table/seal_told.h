// What seal_writer and the test that kills it agree on.
#pragma once

#include <string>

#include "cellar/catalog/catalog.h"

namespace cellar::table {

struct SealTold {
  int id = 0;
  int version = 0;  // 0: the row is deleted
  bool acknowledged = false;
};

inline constexpr int kSealIds = 300;

// A kill takes no commit away that the log holds, synced or not; without syncs there are more.
inline bool SealWritesDurably(int seed) { return seed % 2 == 1; }

// Of the long column: some rows are long enough for patches.
inline std::string SealTextOf(int id) { return std::string(id % 3 == 0 ? 400 : 20, 'x'); }

inline Result<catalog::TablePtr> FindSealTable(const catalog::CatalogSnapshot& catalog) {
  for (const catalog::TablePtr& table : catalog.ListAllTables()) {
    if (table->name == "sealed") return table;
  }
  return MakeError(Code::kNotFound, "there is no such table");
}

}  // namespace cellar::table
