// Where the text of an expression or a query names types and collations, found by its tokens alone:
// such texts are kept as they were written, and follow when what they name is renamed or moved.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cellar::sql {

// A name with its qualifiers, as the catalog spells them: folded, without quotes.
struct NameMention {
  size_t begin = 0, end = 0;
  std::vector<std::string> parts;
};

// Names after :: and, in CAST (x AS type), after AS and before ) or [.
std::vector<NameMention> TypeMentions(std::string_view text);
// Names after COLLATE.
std::vector<NameMention> CollationMentions(std::string_view text);

// The text with `replacement` for each of these mentions, in the order of the text, whose parts
// `matches`.
std::string ReplaceMentions(
    std::string_view text, std::span<const NameMention> mentions, std::string_view replacement,
    const std::function<bool(const std::vector<std::string>& parts)>& matches);

}  // namespace cellar::sql
