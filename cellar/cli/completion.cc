// Completion by the word before.
#include "cellar/cli/completion.h"

#include <algorithm>
#include <cctype>

#include "cellar/sql/parser/keywords.h"

namespace cellar::cli {
namespace {

bool IsWordCharacter(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) != 0 || c == '_' || c == '$';
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// The last word before `end`, in lower case.
std::string WordBefore(std::string_view text, size_t end) {
  while (end > 0 && !IsWordCharacter(text[end - 1])) {
    if (text[end - 1] == ';') return "";
    --end;
  }
  size_t start = end;
  while (start > 0 && IsWordCharacter(text[start - 1])) --start;
  return Lower(text.substr(start, end - start));
}

std::string QuoteIfNeeded(const std::string& name) {
  bool plain = !name.empty() && (std::islower(static_cast<unsigned char>(name[0])) != 0 ||
                                 name[0] == '_' || static_cast<unsigned char>(name[0]) >= 0x80);
  for (char c : name)
    plain = plain && IsWordCharacter(c) && std::isupper(static_cast<unsigned char>(c)) == 0;
  if (plain && sql::FindKeyword(name) != sql::KeywordCategory::kReserved) return name;
  std::string out = "\"";
  for (char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

void Keep(const std::vector<std::string>& from, std::string_view typed, bool quote,
          std::vector<std::string>* to) {
  const std::string wanted = Lower(typed);
  for (const std::string& name : from) {
    std::string word = quote ? QuoteIfNeeded(name) : name;
    if (Lower(word).compare(0, wanted.size(), wanted) == 0) to->push_back(std::move(word));
  }
}

bool TakesRelation(const std::string& word) {
  for (const char* one : {"from", "join", "into", "update", "table", "copy", "truncate", "analyze",
                          "vacuum", "references", "only", "view", "on"}) {
    if (word == one) return true;
  }
  return false;
}

}  // namespace

const std::vector<std::string>& BackslashCommands() {
  static const std::vector<std::string> commands = {
      "!",   "?",  "a",      "c",     "cd", "conninfo", "copy", "d",        "df",    "di",
      "dn",  "ds", "dt",     "du",    "dv", "e",        "echo", "encoding", "g",     "gx",
      "h",   "i",  "ir",     "l",     "o",  "p",        "pset", "q",        "qecho", "r",
      "set", "t",  "timing", "unset", "w",  "warn",     "x"};
  return commands;
}

Completion CompleteLine(std::string_view pending, std::string_view before_cursor,
                        const NameSource& names) {
  Completion found;
  size_t start = before_cursor.size();
  while (start > 0 &&
         (IsWordCharacter(before_cursor[start - 1]) || before_cursor[start - 1] == '"'))
    --start;
  found.word_start = start;
  const std::string_view typed = before_cursor.substr(start);

  const size_t first = before_cursor.find_first_not_of(' ');
  if (first != std::string_view::npos && before_cursor[first] == '\\') {
    if (before_cursor.find(' ', first) == std::string_view::npos) {
      found.word_start = first + 1;
      Keep(BackslashCommands(), before_cursor.substr(first + 1), false, &found.words);
    } else {
      Keep(names.relations(), typed, true, &found.words);
    }
  } else {
    const std::string text =
        std::string(pending) + "\n" + std::string(before_cursor.substr(0, start));
    const std::string word = WordBefore(text, text.size());
    if (TakesRelation(word)) {
      Keep(names.relations(), typed, true, &found.words);
    } else {
      if (!pending.empty() || !word.empty()) {
        Keep(names.columns(text), typed, true, &found.words);
        if (!typed.empty()) Keep(names.relations(), typed, true, &found.words);
      }
      // Keywords in the case of what has been typed.
      const bool upper = typed.empty() || std::isupper(static_cast<unsigned char>(typed[0])) != 0;
      std::vector<std::string> keywords;
      for (const sql::Keyword& keyword : sql::Keywords()) {
        std::string one(keyword.word);
        if (upper) {
          for (char& c : one) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        }
        keywords.push_back(std::move(one));
      }
      if (!typed.empty()) Keep(keywords, typed, false, &found.words);
    }
  }
  std::sort(found.words.begin(), found.words.end());
  found.words.erase(std::unique(found.words.begin(), found.words.end()), found.words.end());
  return found;
}

}  // namespace cellar::cli
