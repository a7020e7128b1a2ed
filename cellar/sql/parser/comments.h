// Comments that PostgreSQL's scanner would read in quadratic time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cellar::sql {

// The text with the insides of its block comments made blank, byte by byte, so that all that
// follows stays at its place; nullopt when it may go to the scanner as it is. The scanner takes
// the whole run of operator characters behind each "/*" for a part of it and then puts it back:
// "/*/*/*..." costs the square of its length. `*unterminated`: where a comment begins that has no
// end, or npos; the text is not to be parsed then. Cost: linear.
std::optional<std::string> BlankComments(std::string_view text, size_t* unterminated);

}  // namespace cellar::sql
