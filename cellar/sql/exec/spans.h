// Span expressions of a plan become spans of values. Private to this layer.
#pragma once

#include <vector>

#include "cellar/sql/exec/operator.h"

namespace cellar::sql::exec {

// Evaluates a scan's spans, drops empty ones, sorts the rest by index order (backwards when the
// scan is reverse) and merges those that overlap. Values live in `arena` or the plan.
Status MakeSpans(const ScanNode& scan, EvalContext& context, Arena* arena,
                 std::vector<table::Span>* spans);

}  // namespace cellar::sql::exec
