// What CHECK looks at of the records that are this layer's own.
#pragma once

#include <string>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/catalog/catalog.h"
#include "cellar/codec/key.h"
#include "cellar/kv/engine.h"

namespace cellar::session {

// Roles, jobs and sequences whose records do not read; owners and grantees that are no roles; types
// that relations have and that are not there: a finding in words for each. `catalog` is that of the
// reader's snapshot. Cost: reads all these records.
Status CheckSessionRecords(const catalog::CatalogSnapshot& catalog, kv::Transaction* reader,
                           std::vector<std::string>* findings);
// The same at a snapshot of its own.
Status CheckSessionRecords(kv::Engine* engine, std::vector<std::string>* findings);

// Where keys lie that jobs own, which have not ended in the transaction's view: what they have
// written so far, and will take into use, or delete.
Result<std::vector<codec::KeyRange>> RangesOfJobs(const catalog::CatalogSnapshot& catalog,
                                                  kv::Transaction* reader);

}  // namespace cellar::session
