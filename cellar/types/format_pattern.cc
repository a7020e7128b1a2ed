// Patterns of to_char and its kin.
#include "cellar/types/format_pattern.h"

namespace cellar::internal {
namespace {

size_t CharacterLength(std::string_view text) {
  const auto c = static_cast<uint8_t>(text[0]);
  const size_t length = c < 0xC0 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
  return std::min(length, text.size());
}

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsSeparator(char c) {
  const bool alphanumeric =
      (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return c > ' ' && c < 127 && !alphanumeric;
}

}  // namespace

std::vector<PatternNode> SplitPattern(std::string_view pattern, std::span<const PatternWord> words,
                                      bool affixes) {
  using Kind = PatternNode::Kind;
  std::vector<PatternNode> nodes;
  size_t i = 0;
  auto character = [&](Kind kind) {
    PatternNode node;
    node.kind = kind;
    node.text = pattern.substr(i, CharacterLength(pattern.substr(i)));
    i += node.text.size();
    nodes.push_back(node);
  };
  while (i < pattern.size()) {
    PatternNode node;
    if (affixes) {
      const std::string_view prefix = pattern.substr(i, 2);
      node.fill_mode = prefix == "FM" || prefix == "fm";
      node.translated = prefix == "TM" || prefix == "tm";
      if (node.fill_mode || node.translated) i += 2;
    }
    const std::string_view rest = pattern.substr(i);
    if (rest.empty()) break;
    const PatternWord* found = nullptr;
    for (const PatternWord& word : words) {
      if (word.text[0] == rest[0] && rest.starts_with(word.text)) {
        found = &word;
        break;
      }
    }
    if (found != nullptr) {
      node.kind = Kind::kWord;
      node.id = found->id;
      node.digits = found->digits;
      node.text = rest.substr(0, found->text.size());
      i += found->text.size();
      if (affixes) {
        const std::string_view suffix = pattern.substr(i, 2);
        if (suffix == "TH") node.ordinal = 'T';
        if (suffix == "th") node.ordinal = 't';
        if (node.ordinal != 0 || suffix == "SP" || suffix == "sp") i += 2;
      }
      nodes.push_back(node);
    } else if (rest[0] == '"') {
      ++i;
      while (i < pattern.size() && pattern[i] != '"') {
        if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
        character(Kind::kCharacter);
      }
      if (i < pattern.size()) ++i;
    } else {
      if (rest[0] == '\\' && rest.size() > 1 && rest[1] == '"') ++i;
      const char c = pattern[i];
      character(affixes && IsSeparator(c) ? Kind::kSeparator
                : IsSpace(c)              ? Kind::kSpace
                                          : Kind::kCharacter);
    }
  }
  return nodes;
}

std::string_view OrdinalSuffix(std::string_view number, bool upper) {
  const char last = number.empty() ? '0' : number.back();
  const bool teen = number.size() > 1 && number[number.size() - 2] == '1';
  if (!teen && last == '1') return upper ? "ST" : "st";
  if (!teen && last == '2') return upper ? "ND" : "nd";
  if (!teen && last == '3') return upper ? "RD" : "rd";
  return upper ? "TH" : "th";
}

}  // namespace cellar::internal
