// Rows of cellar_usage. Private to this layer.
#pragma once

#include "cellar/session/session_internal.h"
#include "cellar/session/system_rows.h"

namespace cellar::session {

// A row for each table, living or in the bin, and one for each namespace of this session's
// database with the sums of its tables. Cost: a trip and an estimate of bytes per table.
Status UsageRows(Session::Impl* session, const catalog::CatalogSnapshot& catalog, SystemRow* row);

std::vector<Value> TextValues(const std::vector<std::string>& texts);

}  // namespace cellar::session
