// The memory for pages kept at hand, for whoever opens a database.
#pragma once

#include <cstddef>

namespace cellar::session {

class Database;

// See table/cache_limit.h. Without a call it is an eighth of memory, at most 128 MiB.
void LimitPageCache(Database* database, size_t bytes);

}  // namespace cellar::session
