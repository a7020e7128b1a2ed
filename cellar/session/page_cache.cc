#include "cellar/session/page_cache.h"

#include "cellar/session/session_internal.h"
#include "cellar/table/cache_limit.h"

namespace cellar::session {

void LimitPageCache(Database* database, size_t bytes) {
  table::LimitPageCache(database->impl()->tables.get(), bytes);
}

}  // namespace cellar::session
