// Evaluation of index expressions and predicates, for whoever opens tables without a Database.
#pragma once

namespace cellar::session {

// Lets tables with partial indexes and indexes on expressions be read, written and checked in this
// process. Database::Open does it.
void InstallIndexExpressions();

}  // namespace cellar::session
