// Statements of our own, and what they answer as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/session/session.h"

namespace cellar::dump {

// Rows as texts, NULL as nullopt.
using TextRow = std::vector<std::optional<std::string>>;
// Runs a statement and returns what its last result set holds.
Result<std::vector<TextRow>> QueryTexts(session::Session* session, std::string_view sql);

// A string as SQL writes it, whatever standard_conforming_strings is: 'it''s', or E'a\\b' with a
// space before it, in case a word stands there.
std::string SqlLiteral(std::string_view text);

}  // namespace cellar::dump
