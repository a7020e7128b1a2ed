// What Tab offers in the shell: backslash commands, relations, columns, keywords.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/cli/line_editor.h"

namespace cellar::cli {

// Names that the database knows.
struct NameSource {
  std::function<std::vector<std::string>()> relations;
  // Columns of the relations in the text, or of all when it names none.
  std::function<std::vector<std::string>(std::string_view text)> columns;
};

// `pending`: the lines of the statement before this one. Names that need quotes come quoted.
Completion CompleteLine(std::string_view pending, std::string_view before_cursor,
                        const NameSource& names);

// The backslash commands, without the backslash; sorted.
const std::vector<std::string>& BackslashCommands();

}  // namespace cellar::cli
