// Ids that make a change of the catalog safe to send again. They share their space, and their
// life of a day at least, with those of the table API (cellar/table.h, docs/formats/markers.md).
#pragma once

#include <string>
#include <string_view>

#include "cellar/base/status.h"
#include "cellar/session/session.h"

namespace cellar::session {

// The session's next commit that changes the catalog or the roles is this id's, given to calls of
// this number. That commit fails with 0B000 when another one has been it meanwhile. Errors: 22023
// for an id that is none.
Status SetCommitMarker(Session* session, std::string id, uint32_t call);
// Has a transaction with this id committed? Error: 0B000 when it has been declared aborted, or the
// id is that of another call. Each role has ids of its own.
Result<bool> HasCommitted(Session* session, std::string_view id, uint32_t call);
// For a change that no commit of the session carries, once it has been made: what SetCommitMarker
// was told is remembered now, unless a commit has done so.
Status KeepCommitMarker(Session* session);

}  // namespace cellar::session
