// Errors and notices as frames (PostgreSQL manual 55.8), and the one table from codes to SQLSTATEs.
#pragma once

#include <string_view>

#include "cellar/base/status.h"
#include "cellar/pgwire/frames.h"
#include "cellar/session/session.h"

namespace cellar::pgwire {

// The status's own SQLSTATE, or the one that stands for its code.
std::string_view SqlStateOf(const Status& status);

// Errors after which the session is over: an administrator's, and a lost client.
bool IsFatal(const Status& status);

// ErrorResponse; severity FATAL when `fatal`, else ERROR.
void PutError(const Status& status, bool fatal, MessageWriter* out);
void PutNotice(const session::Notice& notice, MessageWriter* out);

// 08P01.
template <typename... Args>
Status ProtocolError(fmt::format_string<Args...> format, Args&&... args) {
  return SqlError(Code::kInvalid, "08P01", format, std::forward<Args>(args)...);
}

// What sinks answer once the client is gone; 08006.
Status ClientLost();
// Of a message that was read past: kTooLong (54000) or kNoMemory (53200).
Status PassedBy(ReadResult why);

// OK, or 22021 with the first bytes that are not UTF-8, as PostgreSQL words it.
Status CheckText(std::string_view text);

}  // namespace cellar::pgwire
