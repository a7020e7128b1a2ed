// How much memory the pages of all tables that are kept at hand may take.
#pragma once

#include <cstddef>

namespace cellar::table {

class TableStore;

// Bounds the memory for pages at hand; 0 keeps none. Pages that RocksDB has cached are pinned there
// and count for both caches: give half of its cache at most.
void LimitPageCache(TableStore* store, size_t bytes);

}  // namespace cellar::table
