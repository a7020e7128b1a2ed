// The grammar's keywords.
#pragma once

#include <string_view>
#include <vector>

namespace cellar::sql {

enum class KeywordCategory : char {
  kNone = 0,              // not a keyword
  kUnreserved = 'U',      // usable as any name
  kColumnName = 'C',      // not as a function or type
  kTypeOrFunction = 'T',  // not as a table or column
  kReserved = 'R',
};

// `word` in lower case.
KeywordCategory FindKeyword(std::string_view word);

struct Keyword {
  std::string_view word;
  KeywordCategory category;
};

// All of them, sorted; static storage.
const std::vector<Keyword>& Keywords();

}  // namespace cellar::sql
