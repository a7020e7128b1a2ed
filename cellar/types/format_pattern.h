// Cuts the patterns of to_char and its kin into nodes; for to_char*.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cellar::internal {

// A word of a pattern language. `id` is the language's own; longer words come before their
// prefixes.
struct PatternWord {
  std::string_view text;
  uint8_t id;
  bool digits = false;  // when read: consists of digits
};

struct PatternNode {
  enum class Kind : uint8_t { kWord, kCharacter, kSpace, kSeparator };
  Kind kind = Kind::kCharacter;
  uint8_t id = 0;
  bool digits = false;
  bool fill_mode = false;   // FM before it
  bool translated = false;  // TM before it
  char ordinal = 0;         // 'T' or 't' for TH or th after it
  std::string_view text;    // the word or the character (bytes of one UTF-8 character)
};

// `words` sorted so that the first match wins. With `affixes` FM, TM before and TH, SP after words
// are taken off, and separators are told from other characters. Nodes borrow from `pattern`.
std::vector<PatternNode> SplitPattern(std::string_view pattern, std::span<const PatternWord> words,
                                      bool affixes);

// "ST", "nd", ... for the number whose digits are `number`.
std::string_view OrdinalSuffix(std::string_view number, bool upper);

}  // namespace cellar::internal
