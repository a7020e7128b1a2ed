// Errors and notices as psql prints them.
#pragma once

#include <string>
#include <string_view>

#include "cellar/base/status.h"
#include "cellar/session/session.h"

namespace cellar::cli {

// "ERROR:  message", then LINE with a caret, DETAIL, HINT and CONTEXT as they are there.
// `statement` is the text that the error's position counts in. Ends with a newline.
std::string ErrorText(const Status& status, std::string_view statement);
std::string NoticeText(const session::Notice& notice);
// "cellar: message (detail)" for errors outside of SQL, with the hint on a line of its own.
std::string PlainErrorText(const Status& status);

}  // namespace cellar::cli
