#include "cellar/sql/parser/comments.h"

#include <algorithm>

#include "cellar/sql/parser/scan.h"

namespace cellar::sql {
namespace {

// The scanner's op_chars.
bool IsOperatorCharacter(char c) {
  return std::string_view("~!@#^&|`?+-*/%<>=").find(c) != std::string_view::npos;
}

// Fewer beginnings than this cost little, however long the runs behind them are.
constexpr size_t kFewComments = 16;

// Whether operator characters follow so many "/*" that reading them again and again counts.
bool HasManyRuns(std::string_view text) {
  size_t runs = 0;
  for (size_t at = text.find("/*"); at != std::string_view::npos; at = text.find("/*", at + 1)) {
    if (at + 2 < text.size() && IsOperatorCharacter(text[at + 2]) && ++runs > kFewComments)
      return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> BlankComments(std::string_view text, size_t* unterminated) {
  *unterminated = std::string_view::npos;
  if (!HasManyRuns(text)) return std::nullopt;
  std::string blanked(text);
  size_t at = 0;
  while (true) {
    // Between tokens there are blanks and comments only.
    const size_t end = SkipBlanks(text, at);
    for (size_t i = at; i < end;) {
      const std::string_view two = text.substr(i, 2);
      if (two == "--") {
        i = std::min(text.find_first_of("\r\n", i), end);
        continue;
      }
      if (two != "/*") {
        ++i;
        continue;
      }
      const std::optional<size_t> close = CommentEnd(text, i);
      if (!close.has_value()) {
        *unterminated = i;
        return blanked;
      }
      // The marks of a comment stay when there is something between them.
      const bool empty = *close - i == 4;
      const size_t first = empty ? i : i + 2, last = empty ? *close : *close - 2;
      for (size_t k = first; k < last; ++k) {
        if (IsOperatorCharacter(blanked[k])) blanked[k] = ' ';
      }
      i = *close;
    }
    const ScanToken token = NextToken(text, end);
    if (token.kind == ScanKind::kEnd) return blanked;
    at = token.end;
  }
}

}  // namespace cellar::sql
