#include "cellar/sql/parser/scan.h"

#include <algorithm>

namespace cellar::sql {

namespace {

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool IsWordPart(char c) { return IsWordStart(c) || IsDigit(c) || c == '$'; }

// Ends the literal whose quote is at `pos`.
ScanToken Quoted(std::string_view text, size_t begin, size_t pos, ScanKind kind, bool escapes) {
  const char quote = text[pos];
  for (++pos; pos < text.size(); ++pos) {
    if (escapes && text[pos] == '\\') {
      ++pos;
    } else if (text[pos] == quote) {
      if (pos + 1 < text.size() && text[pos + 1] == quote) {
        ++pos;
      } else {
        return {kind, begin, pos + 1, false};
      }
    }
  }
  return {kind, begin, text.size(), true};
}

}  // namespace

std::optional<size_t> CommentEnd(std::string_view text, size_t pos) {
  size_t depth = 0;
  while (pos + 1 < text.size()) {
    if (text[pos] == '/' && text[pos + 1] == '*') {
      ++depth;
      pos += 2;
    } else if (text[pos] == '*' && text[pos + 1] == '/') {
      pos += 2;
      if (--depth == 0) return pos;
    } else {
      ++pos;
    }
  }
  return std::nullopt;
}

bool EqualsWord(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b;
  });
}

size_t SkipBlanks(std::string_view text, size_t pos) {
  while (pos < text.size()) {
    if (IsBlank(text[pos])) {
      ++pos;
    } else if (text.substr(pos, 2) == "--") {
      pos = text.find_first_of("\r\n", pos);
      if (pos == std::string_view::npos) return text.size();
    } else if (text.substr(pos, 2) == "/*") {
      pos = CommentEnd(text, pos).value_or(text.size());
    } else {
      break;
    }
  }
  return std::min(pos, text.size());
}

size_t DollarTagLength(std::string_view text, size_t pos) {
  if (pos >= text.size() || text[pos] != '$') return 0;
  size_t at = pos + 1;
  if (at < text.size() && IsWordStart(text[at])) {
    while (at < text.size() && (IsWordStart(text[at]) || IsDigit(text[at]))) ++at;
  }
  return at < text.size() && text[at] == '$' ? at + 1 - pos : 0;
}

ScanToken NextToken(std::string_view text, size_t pos) {
  pos = SkipBlanks(text, pos);
  if (pos >= text.size()) return {ScanKind::kEnd, text.size(), text.size(), false};
  const size_t begin = pos;
  const char c = text[pos];
  if (c == '\'') return Quoted(text, begin, pos, ScanKind::kString, false);
  if (c == '"') return Quoted(text, begin, pos, ScanKind::kQuotedName, false);
  if (c == '$') {
    if (const size_t tag = DollarTagLength(text, pos); tag != 0) {
      const size_t close = text.find(text.substr(pos, tag), pos + tag);
      if (close == std::string_view::npos) return {ScanKind::kString, begin, text.size(), true};
      return {ScanKind::kString, begin, close + tag, false};
    }
    ++pos;
    while (pos < text.size() && IsDigit(text[pos])) ++pos;  // $1
    return {ScanKind::kSymbol, begin, pos, false};
  }
  if (IsWordStart(c)) {
    while (pos < text.size() && IsWordPart(text[pos])) ++pos;
    const std::string_view word = text.substr(begin, pos - begin);
    if (pos < text.size() && text[pos] == '\'' && word.size() == 1) {
      if (c == 'e' || c == 'E') return Quoted(text, begin, pos, ScanKind::kString, true);
      if (std::string_view("bBxXnN").find(c) != std::string_view::npos) {
        return Quoted(text, begin, pos, ScanKind::kString, false);
      }
    }
    if (pos + 1 < text.size() && text[pos] == '&' && word.size() == 1 && (c == 'u' || c == 'U')) {
      if (text[pos + 1] == '\'') return Quoted(text, begin, pos + 1, ScanKind::kString, false);
      if (text[pos + 1] == '"') return Quoted(text, begin, pos + 1, ScanKind::kQuotedName, false);
    }
    return {ScanKind::kWord, begin, pos, false};
  }
  if (IsDigit(c)) {
    while (pos < text.size() && (IsDigit(text[pos]) || text[pos] == '.')) ++pos;
    return {ScanKind::kNumber, begin, pos, false};
  }
  return {ScanKind::kSymbol, begin, pos + 1, false};
}

}  // namespace cellar::sql
