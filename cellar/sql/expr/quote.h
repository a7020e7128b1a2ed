// SQL quoting.
#pragma once

#include <string>
#include <string_view>

namespace cellar::sql {

// As quote_ident: unchanged when it is a lower-case word that is not reserved, else in double
// quotes.
std::string QuoteIdent(std::string_view name);
// As quote_literal: in single quotes, E'' when there are backslashes.
std::string QuoteText(std::string_view text);

}  // namespace cellar::sql
