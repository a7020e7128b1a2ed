// Reading and matching of connection rules.
#include "cellar/auth/hba.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace cellar::auth {
namespace {

constexpr size_t kMaxLineBytes = size_t{64} << 10;
constexpr int kMaxLines = 100000;
constexpr std::streamoff kMaxFileBytes = std::streamoff{16} << 20;

struct Token {
  std::vector<HbaName> items;  // separated by commas
  int column = 1;
};

template <typename... Args>
Status Mistake(int line, int column, fmt::format_string<Args...> format, Args&&... args) {
  return InvalidError("line {}, column {}: {}", line, column,
                      fmt::format(format, std::forward<Args>(args)...));
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

Result<std::vector<Token>> SplitLine(std::string_view text, int line) {
  std::vector<Token> tokens;
  size_t i = 0;
  while (true) {
    while (i < text.size() && IsBlank(text[i])) ++i;
    if (i >= text.size() || text[i] == '#') return tokens;
    Token token;
    token.column = static_cast<int>(i) + 1;
    // A list goes on after a comma, even over blanks.
    while (true) {
      HbaName name;
      const size_t start = i;
      while (i < text.size() && !IsBlank(text[i]) && text[i] != ',' && text[i] != '#') {
        if (text[i] != '"') {
          name.text += text[i++];
          continue;
        }
        name.quoted = true;
        const size_t quote = i++;
        while (i < text.size() && text[i] != '"') name.text += text[i++];
        if (i >= text.size()) {
          return Mistake(line, static_cast<int>(quote) + 1, "a quoted name does not end");
        }
        ++i;
      }
      if (i == start) {
        return Mistake(line, static_cast<int>(i) + 1, "a name is missing");
      }
      if (!name.quoted && name.text[0] == '@') {
        return Mistake(line, static_cast<int>(start) + 1,
                       "names from other files are not supported");
      }
      token.items.push_back(std::move(name));
      if (i >= text.size() || text[i] != ',') break;
      ++i;
      while (i < text.size() && IsBlank(text[i])) ++i;
    }
    tokens.push_back(std::move(token));
  }
}

// "127.0.0.1" or "::1" into bytes; 32, 128 or 0.
int ParseAddress(const std::string& text, std::array<uint8_t, 16>* out) {
  out->fill(0);
  if (::inet_pton(AF_INET, text.c_str(), out->data()) == 1) return 32;
  if (::inet_pton(AF_INET6, text.c_str(), out->data()) == 1) return 128;
  return 0;
}

void FillMask(int bits, std::array<uint8_t, 16>* mask) {
  mask->fill(0);
  for (int i = 0; i < bits; ++i)
    (*mask)[static_cast<size_t>(i) / 8] |= static_cast<uint8_t>(0x80 >> (i % 8));
}

Result<HbaMethod> ParseMethod(const Token& token, int line) {
  const std::string& name = token.items[0].text;
  if (name == "trust") return HbaMethod::kTrust;
  if (name == "reject") return HbaMethod::kReject;
  if (name == "scram-sha-256") return HbaMethod::kScram;
  for (std::string_view known : {"md5", "password", "gss", "sspi", "ident", "peer", "ldap",
                                 "radius", "cert", "pam", "bsd"}) {
    if (name == known) {
      return Mistake(line, token.column, "authentication method \"{}\" is not supported", name);
    }
  }
  return Mistake(line, token.column, "invalid authentication method \"{}\"", name);
}

Result<HbaRule> ParseRule(const std::vector<Token>& tokens, int line, int end_column) {
  HbaRule rule;
  rule.line = line;
  const Token& type = tokens[0];
  const std::string& word = type.items[0].text;
  using Connection = HbaRule::Connection;
  if (word == "local") {
    rule.connection = Connection::kLocal;
  } else if (word == "host") {
    rule.connection = Connection::kHost;
  } else if (word == "hostssl") {
    rule.connection = Connection::kHostSsl;
  } else if (word == "hostnossl") {
    rule.connection = Connection::kHostNoSsl;
  } else {
    return Mistake(line, type.column, "invalid connection type \"{}\"", word);
  }
  size_t next = 1;
  auto take = [&](std::string_view what) -> Result<const Token*> {
    if (next >= tokens.size()) {
      return Mistake(line, end_column, "end-of-line before {} specification", what);
    }
    return &tokens[next++];
  };
  CELLAR_TRY_ASSIGN(const Token* databases, take("database"));
  rule.databases = databases->items;
  CELLAR_TRY_ASSIGN(const Token* users, take("role"));
  rule.users = users->items;
  if (rule.connection != Connection::kLocal) {
    CELLAR_TRY_ASSIGN(const Token* address, take("IP address"));
    if (address->items.size() > 1) {
      return Mistake(line, address->column, "multiple values specified for host address");
    }
    const HbaName& name = address->items[0];
    if (!name.quoted && name.text == "all") {
      rule.any_address = true;
    } else {
      const size_t slash = name.text.find('/');
      rule.family_bits = ParseAddress(name.text.substr(0, slash), &rule.address);
      if (rule.family_bits == 0) {
        return Mistake(line, address->column,
                       "\"{}\" is not an IP address; host names are not supported", name.text);
      }
      if (slash != std::string::npos) {
        int bits = -1;
        const char* begin = name.text.data() + slash + 1;
        const char* end = name.text.data() + name.text.size();
        const auto parsed = std::from_chars(begin, end, bits);
        if (parsed.ec != std::errc() || parsed.ptr != end || bits < 0 || bits > rule.family_bits) {
          return Mistake(line, address->column, "invalid CIDR mask in address \"{}\"", name.text);
        }
        FillMask(bits, &rule.mask);
      } else {
        CELLAR_TRY_ASSIGN(const Token* mask, take("netmask"));
        if (ParseAddress(mask->items[0].text, &rule.mask) != rule.family_bits) {
          return Mistake(line, mask->column, "invalid IP mask \"{}\"", mask->items[0].text);
        }
      }
    }
  }
  CELLAR_TRY_ASSIGN(const Token* method, take("authentication method"));
  CELLAR_TRY_ASSIGN(rule.method, ParseMethod(*method, line));
  if (next < tokens.size()) {
    return Mistake(line, tokens[next].column, "unrecognized authentication option name: \"{}\"",
                   tokens[next].items[0].text);
  }
  return rule;
}

}  // namespace

Result<std::shared_ptr<const HbaRules>> HbaRules::Parse(std::string_view text) {
  auto rules = std::make_shared<HbaRules>();
  int line = 0;
  while (!text.empty()) {
    const int first = ++line;
    if (line > kMaxLines) return Mistake(line, 1, "the file has too many lines");
    size_t end = std::min(text.find('\n'), text.size());
    std::string joined(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    // A backslash at its end joins a line with the next.
    while (!joined.empty() && joined.back() == '\\' && !text.empty()) {
      joined.pop_back();
      ++line;
      end = std::min(text.find('\n'), text.size());
      joined += text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (joined.size() > kMaxLineBytes) break;
    }
    if (joined.size() > kMaxLineBytes) return Mistake(first, 1, "the line is too long");
    CELLAR_TRY_ASSIGN(std::vector<Token> tokens, SplitLine(joined, first));
    if (tokens.empty()) continue;
    CELLAR_TRY_ASSIGN(HbaRule rule, ParseRule(tokens, first, static_cast<int>(joined.size()) + 1));
    rules->rules_.push_back(std::move(rule));
  }
  return std::shared_ptr<const HbaRules>(std::move(rules));
}

Result<std::shared_ptr<const HbaRules>> HbaRules::Load(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return InvalidError("could not open \"{}\"", path);
  if (file.tellg() > kMaxFileBytes) return InvalidError("\"{}\" is too large", path);
  file.seekg(0);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file && !file.eof()) return InvalidError("could not read \"{}\"", path);
  auto rules = Parse(text.str());
  if (!rules.ok()) return InvalidError("\"{}\", {}", path, rules.status().message());
  return rules;
}

const HbaRule* HbaRules::Find(
    const HbaClient& client,
    const std::function<bool(std::string_view, std::string_view)>& is_member) const {
  std::array<uint8_t, 16> address{};
  const int bits = ParseAddress(client.address, &address);
  auto fits_address = [&](const HbaRule& rule) {
    if (rule.any_address) return true;
    if (rule.family_bits != bits) return false;
    for (size_t i = 0; i < static_cast<size_t>(bits) / 8; ++i) {
      if ((address[i] & rule.mask[i]) != (rule.address[i] & rule.mask[i])) return false;
    }
    return true;
  };
  auto fits_database = [&](const HbaName& name) {
    if (name.quoted) return name.text == client.database;
    if (name.text == "all") return true;
    if (name.text == "sameuser") return client.database == client.user;
    if (name.text == "samerole" || name.text == "samegroup")
      return is_member(client.user, client.database);
    if (name.text == "replication") return false;
    return name.text == client.database;
  };
  auto fits_user = [&](const HbaName& name) {
    if (name.quoted) return name.text == client.user;
    if (name.text == "all") return true;
    if (name.text[0] == '+') return is_member(client.user, std::string_view(name.text).substr(1));
    return name.text == client.user;
  };
  for (const HbaRule& rule : rules_) {
    switch (rule.connection) {
      case HbaRule::Connection::kLocal: continue;  // there are no sockets of the file system
      case HbaRule::Connection::kHostSsl:
        if (!client.encrypted) continue;
        break;
      case HbaRule::Connection::kHostNoSsl:
        if (client.encrypted) continue;
        break;
      case HbaRule::Connection::kHost: break;
    }
    if (!fits_address(rule)) continue;
    if (std::none_of(rule.databases.begin(), rule.databases.end(), fits_database)) continue;
    if (std::any_of(rule.users.begin(), rule.users.end(), fits_user)) return &rule;
  }
  return nullptr;
}

}  // namespace cellar::auth
