// The table API over a database of this process: an implementation of cellar/table.h.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cellar/session/session.h"
#include "cellar/table.h"

namespace cellar::session {

// The store as the role options.user sees it, through sessions of its own, which are opened as
// calls need them and kept for later ones. The database outlives it, its tables, transactions and
// scans, or lives by `keeps`, which they hold. Paths reach every database of the store;
// options.database is where CONNECT is asked for first, and whose settings hold. Errors: those of
// Session::Open.
Result<std::unique_ptr<TableStore>> OpenTables(Database* database, const SessionOptions& options,
                                               std::shared_ptr<const void> keeps = nullptr);

}  // namespace cellar::session
