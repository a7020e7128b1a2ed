// What CHECK looks at of the records that are this layer's own.
#pragma once

#include <string>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/kv/engine.h"

namespace cellar::session {

// Roles and jobs: a finding, in words, for each record that does not read. Cost: reads them all.
Status CheckSessionRecords(kv::Engine* engine, std::vector<std::string>* findings);

}  // namespace cellar::session
