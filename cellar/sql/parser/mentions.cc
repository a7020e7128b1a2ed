#include "cellar/sql/parser/mentions.h"

#include "cellar/sql/parser/scan.h"

namespace cellar::sql {
namespace {

bool IsName(const ScanToken& token) {
  return token.kind == ScanKind::kWord || token.kind == ScanKind::kQuotedName;
}

bool IsSymbol(std::string_view text, const ScanToken& token, char c) {
  return token.kind == ScanKind::kSymbol && text[token.begin] == c;
}

bool IsWord(std::string_view text, const ScanToken& token, std::string_view lower) {
  return token.kind == ScanKind::kWord &&
         EqualsWord(text.substr(token.begin, token.end - token.begin), lower);
}

std::string NameIn(std::string_view text, const ScanToken& token) {
  std::string name(text.substr(token.begin, token.end - token.begin));
  if (token.kind == ScanKind::kWord) {
    for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return name;
  }
  std::string out;
  for (size_t i = 1; i + 1 < name.size(); ++i) {
    out += name[i];
    if (name[i] == '"') ++i;
  }
  return out;
}

// The name that begins with `first`, and what is qualified by it.
NameMention NameFrom(std::string_view text, const ScanToken& first) {
  NameMention mention{first.begin, first.end, {NameIn(text, first)}};
  while (true) {
    const ScanToken dot = NextToken(text, mention.end);
    if (!IsSymbol(text, dot, '.')) return mention;
    const ScanToken next = NextToken(text, dot.end);
    if (!IsName(next)) return mention;
    mention.parts.push_back(NameIn(text, next));
    mention.end = next.end;
  }
}

// Calls visit(before, last, token) for each token that may begin a name, with the two before it;
// where it answers with a mention, the text goes on behind that.
template <typename Visit>
void ForNames(std::string_view text, Visit&& visit) {
  ScanToken before, last;
  for (ScanToken token = NextToken(text, 0); token.kind != ScanKind::kEnd;) {
    size_t next = token.end;
    if (IsName(token) && visit(before, last, token, &next)) {
      before = last = ScanToken();
    } else {
      before = last;
      last = token;
    }
    token = NextToken(text, next);
  }
}

}  // namespace

std::vector<NameMention> TypeMentions(std::string_view text) {
  std::vector<NameMention> out;
  ForNames(text, [&](const ScanToken& before, const ScanToken& last, const ScanToken& token,
                     size_t* next) {
    const bool after_colons = IsSymbol(text, last, ':') && IsSymbol(text, before, ':');
    if (!after_colons && !IsWord(text, last, "as")) return false;
    NameMention mention = NameFrom(text, token);
    *next = mention.end;
    const ScanToken follows = NextToken(text, mention.end);
    if (after_colons || IsSymbol(text, follows, ')') || IsSymbol(text, follows, '[')) {
      out.push_back(std::move(mention));
    }
    return true;
  });
  return out;
}

std::vector<NameMention> CollationMentions(std::string_view text) {
  std::vector<NameMention> out;
  ForNames(text,
           [&](const ScanToken&, const ScanToken& last, const ScanToken& token, size_t* next) {
             if (!IsWord(text, last, "collate")) return false;
             out.push_back(NameFrom(text, token));
             *next = out.back().end;
             return true;
           });
  return out;
}

std::string ReplaceMentions(
    std::string_view text, std::span<const NameMention> mentions, std::string_view replacement,
    const std::function<bool(const std::vector<std::string>& parts)>& matches) {
  std::string out;
  size_t at = 0;
  for (const NameMention& mention : mentions) {
    if (!matches(mention.parts)) continue;
    out.append(text.substr(at, mention.begin - at)).append(replacement);
    at = mention.end;
  }
  return out.append(text.substr(at));
}

}  // namespace cellar::sql
