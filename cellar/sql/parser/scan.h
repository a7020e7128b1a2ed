// The lexical skeleton of SQL: where tokens, literals and comments begin and end, without meaning.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace cellar::sql {

enum class ScanKind : unsigned char {
  kEnd,
  kWord,        // identifier or keyword, unquoted
  kQuotedName,  // "..."
  kString,      // '...', E'...', $tag$...$tag$, and their kin
  kNumber,
  kSymbol,  // one byte of anything else
};

struct ScanToken {
  ScanKind kind = ScanKind::kEnd;
  size_t begin = 0;
  size_t end = 0;
  bool unterminated = false;  // the text ended inside it
};

// Offset of the next byte that is neither blank nor comment, at or after `pos`.
size_t SkipBlanks(std::string_view text, size_t pos);

// Behind the block comment that opens at `pos`; comments nest. nullopt: it has no end.
std::optional<size_t> CommentEnd(std::string_view text, size_t pos);

// The token at or after `pos`; continue at its `end`.
ScanToken NextToken(std::string_view text, size_t pos);

// Length of the dollar quote's delimiter ("$tag$") that opens at `pos`, or 0.
size_t DollarTagLength(std::string_view text, size_t pos);

// Case-insensitive comparison with a lower-case ASCII word.
bool EqualsWord(std::string_view text, std::string_view lower);

}  // namespace cellar::sql
