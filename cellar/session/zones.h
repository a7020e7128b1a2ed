// Settings of tables and namespaces that are handed down. Private to this layer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/catalog/catalog.h"
#include "cellar/sql/parser/ast.h"

namespace cellar::session {

// Whether `name` is one of retention, row_quota, byte_quota, read_rate, write_rate, priority,
// placement.
bool IsZoneOption(std::string_view name);

// Sets it, or takes it away with `reset`. Errors: 22023, 22007 for a value that does not read.
Status ApplyZoneOption(const sql::ast::Option& option, bool reset, catalog::ZoneSettings* zone);
// Of a schema or database, where others are unknown (22023).
Status ApplySpaceOptions(std::span<const sql::ast::Option> options, bool reset,
                         catalog::ZoneSettings* zone);

// The settings in words: "row_quota=100"; the first of each kind on the way from `space` up that is
// set, where `zone` leaves it open.
std::vector<std::string> ZoneTexts(const catalog::ZoneSettings& zone);
catalog::ZoneSettings EffectiveZone(const catalog::CatalogSnapshot& catalog,
                                    catalog::ZoneSettings zone, catalog::NamespaceId space);

}  // namespace cellar::session
