// Values of rows in errors, which only those see who may read them. Private to this layer.
#pragma once

#include "cellar/session/session_internal.h"

namespace cellar::session {

// A violated constraint's error without the values in its detail, where the role may not read the
// columns that they are of. As PostgreSQL 15, but that of a failing row nothing is left.
Status HideValues(Session::Impl* session, Status status);

}  // namespace cellar::session
