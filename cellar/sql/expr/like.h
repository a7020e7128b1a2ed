// LIKE and ILIKE: an own matcher over pieces between the percent signs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"

namespace cellar::sql {

// A pattern read once. Immutable.
class LikePattern {
 public:
  // The escape character is the backslash; `ignore_case` folds both sides to lower case.
  LikePattern(std::string_view pattern, bool ignore_case);
  // Errors: 22025 "LIKE pattern must not end with escape character". Cost: linear in nearly all
  // cases.
  Result<bool> Matches(std::string_view text) const;

 private:
  struct Item {
    bool any = false;     // one character of any kind
    std::string literal;  // otherwise
  };
  struct Piece {
    std::vector<Item> items;
    size_t chars = 0;
    bool plain = true;  // at most one literal
  };
  // The end of the piece matched at `pos`, or npos.
  static size_t MatchAt(const Piece& piece, std::string_view text, size_t pos);
  bool MatchFolded(std::string_view text) const;

  std::vector<Piece> pieces_;  // separated by percent signs
  bool ignore_case_ = false;
  bool bad_ = false;
};

struct LikePrefixResult {
  std::string prefix;       // every matching text starts with it
  bool exact = false;       // there are no wildcards: the text is the prefix
  bool any_suffix = false;  // the rest is one percent sign: all texts with this prefix match
};
// What an index range can use of a LIKE pattern.
LikePrefixResult LikePrefix(std::string_view pattern);

}  // namespace cellar::sql
