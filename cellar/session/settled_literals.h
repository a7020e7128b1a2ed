// Literals in stored expressions, whose types follow from what stands around them. Private to this
// layer.
#pragma once

#include <functional>
#include <string>

#include "cellar/catalog/descriptor.h"
#include "cellar/sql/plan/planner.h"

namespace cellar::session {

// The text of an expression over a table's columns with '..'::type in place of each quoted literal,
// of the type that it has now: a constant keeps its type when columns change theirs. Texts that do
// not bind stay as they are. `target`: boolean for conditions, else kInvalid.
std::string SettleLiterals(const std::string& text, const catalog::TableDescriptor& table,
                           Type target, sql::PlannerContext& context,
                           const std::function<std::string(Type)>& name_of);

}  // namespace cellar::session
