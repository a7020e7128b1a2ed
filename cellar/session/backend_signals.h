// pg_cancel_backend and pg_terminate_backend. Private to this layer.
#pragma once

#include <cstdint>

#include "cellar/session/session_internal.h"

namespace cellar::session {

// Stops what the session `pid` runs. False, with a warning: there is no such session. Errors: 42501
// unless the caller has the privileges of the role that logged in there, or of pg_signal_backend;
// sessions of superusers are for superusers only.
Result<bool> CancelBackend(Session::Impl* session, int32_t pid);
// Ends the session `pid`. timeout_ms > 0: waits so long for it to be gone; false, with a warning,
// when it still is not. Errors: as above, 22003 for a negative time.
Result<bool> TerminateBackend(Session::Impl* session, int32_t pid, int64_t timeout_ms);

}  // namespace cellar::session
