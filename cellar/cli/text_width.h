// How wide text is on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace cellar::cli {

// Columns that `text` takes: 2 for wide East Asian characters and emoji, 0 for combining ones.
// Bytes that are not UTF-8 count 1 each.
int DisplayWidth(std::string_view text);

// The longest beginning of `text` that takes at most `columns`.
std::string_view TakeColumns(std::string_view text, int columns);

// `text` for a cell: control characters as \x1B, tabs as blanks. Newlines stay.
std::string Printable(std::string_view text);

}  // namespace cellar::cli
