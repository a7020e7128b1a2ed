// Values as the session's clients read and write them. Private to this layer.
#pragma once

#include <string>
#include <string_view>

#include "cellar/session/session_internal.h"

namespace cellar::session {

// As AppendDatumText, and regclass and its kin by name.
void AppendValueText(Session::Impl& session, Datum value, Type type, std::string* out);
// As ParseDatum, and regclass and its kin by name or number.
Result<Datum> ParseValueText(Session::Impl& session, std::string_view text, Type type,
                             Arena* arena);

}  // namespace cellar::session
