// Private to this layer.
#pragma once

#include "cellar/sql/plan/plan.h"

namespace cellar::sql::planning {

// Sets PlanNode::has_effects, Plan::has_effects, Plan::row_by_row and Plan::expressions of a
// finished plan.
void MarkRowByRow(Plan* plan);

}  // namespace cellar::sql::planning
