// Reading JSON text: validation, jsonb's normal form, its order and hash, and access to members.
#include "cellar/types/json.h"

#include <algorithm>
#include <vector>

#include "cellar/base/interrupt.h"
#include "cellar/base/sqlstate.h"
#include "cellar/types/numeric.h"

namespace cellar {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsDigit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xC0 | (code >> 6)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | (code >> 12)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xF0 | (code >> 18)));
    out->push_back(static_cast<char>(0x80 | ((code >> 12) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  }
}

Status JsonError(std::string detail) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidTextRepresentation,
                  "invalid input syntax for type json")
      .WithDetail(std::move(detail));
}

// The code of \uXXXX whose digits start at `at`, or -1.
int32_t ReadHex4(std::string_view text, size_t at) {
  if (at + 4 > text.size()) return -1;
  int32_t code = 0;
  for (size_t i = 0; i < 4; ++i) {
    const int digit = HexValue(text[at + i]);
    if (digit < 0) return -1;
    code = code * 16 + digit;
  }
  return code;
}

// Appends the characters of a valid literal (with quotes). Errors: \u0000, broken surrogate pairs.
Status Unescape(std::string_view literal, std::string* out) {
  std::string_view body = literal.substr(1, literal.size() - 2);
  PollBytes(body.size());
  size_t i = 0;
  while (i < body.size()) {
    PollSteps();
    const size_t slash = body.find('\\', i);
    if (slash == std::string_view::npos) {
      out->append(body.substr(i));
      break;
    }
    out->append(body.substr(i, slash - i));
    const char c = body[slash + 1];
    i = slash + 2;
    switch (c) {
      case 'b': out->push_back('\b'); break;
      case 'f': out->push_back('\f'); break;
      case 'n': out->push_back('\n'); break;
      case 'r': out->push_back('\r'); break;
      case 't': out->push_back('\t'); break;
      case 'u': {
        auto code = static_cast<uint32_t>(ReadHex4(body, i));
        i += 4;
        if (code == 0) {
          return SqlError(Code::kInvalid, sqlstate::kUntranslatableCharacter,
                          "unsupported Unicode escape sequence")
              .WithDetail("\\u0000 cannot be converted to text.");
        }
        if (code >= 0xDC00 && code < 0xE000) {
          return JsonError("Unicode low surrogate must follow a high surrogate.");
        }
        if (code >= 0xD800 && code < 0xDC00) {
          int32_t low = -1;
          if (body.substr(i, 2) == "\\u") low = ReadHex4(body, i + 2);
          if (low >= 0xD800 && low < 0xDC00) {
            return JsonError("Unicode high surrogate must not follow a high surrogate.");
          }
          if (low < 0xDC00 || low >= 0xE000) {
            return JsonError("Unicode low surrogate must follow a high surrogate.");
          }
          i += 6;
          code = 0x10000 + ((code & 0x3FF) << 10) + (static_cast<uint32_t>(low) & 0x3FF);
        }
        AppendUtf8(code, out);
        break;
      }
      default: out->push_back(c); break;
    }
  }
  return Status();
}

// A reader that checks the grammar. With `normal` it writes jsonb's form; without, nothing.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Status ReadDocument(std::string* normal) {
    CELLAR_TRY(ReadValue(0, normal));
    SkipSpaces();
    if (!AtEnd()) {
      return Expected("end of input");
    }
    return Status();
  }

 private:
  struct Member {
    std::string key;
    std::string value;
    size_t order;
  };

  bool AtEnd() const { return at_ == text_.size(); }
  void SkipSpaces() {
    while (!AtEnd() && IsSpace(text_[at_])) ++at_;
  }
  // The token at the place of an error, for its message.
  std::string_view Token() const {
    size_t end = at_;
    auto is_word = [](char c) {
      return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
             c == '-' || c == '+' || c == '.' || (c & 0x80) != 0;
    };
    if (!AtEnd() && text_[at_] == '"') {
      for (++end; end < text_.size() && text_[end] != '"'; ++end) {
        if (text_[end] == '\\') ++end;
      }
      return text_.substr(at_, std::min(end + 1, text_.size()) - at_);
    }
    if (!AtEnd() && (text_[at_] == '.' || text_[at_] == '+')) return text_.substr(at_, 1);
    while (end < text_.size() && is_word(text_[end])) ++end;
    return text_.substr(at_, std::max<size_t>(end - at_, 1));
  }
  Status Expected(std::string_view what) const {
    if (AtEnd()) return JsonError("The input string ended unexpectedly.");
    const char c = text_[at_];
    const std::string_view token = Token();
    const bool is_token = c == '{' || c == '}' || c == '[' || c == ']' || c == ',' || c == ':' ||
                          c == '"' || IsDigit(c) || token == "true" || token == "false" ||
                          token == "null";
    if (!is_token) return JsonError(fmt::format("Token \"{}\" is invalid.", token));
    return JsonError(fmt::format("Expected {}, but found \"{}\".", what, token));
  }

  Status ReadValue(int depth, std::string* normal) {
    PollSteps();
    SkipSpaces();
    if (depth > kMaxJsonDepth) {
      return SqlError(Code::kLimit, sqlstate::kStatementTooComplex, "stack depth limit exceeded");
    }
    if (AtEnd()) return Expected("JSON value");
    switch (text_[at_]) {
      case '{': return ReadObject(depth, normal);
      case '[': return ReadArray(depth, normal);
      case '"': {
        std::string_view literal;
        CELLAR_TRY(ReadString(&literal));
        if (normal != nullptr) {
          std::string value;
          CELLAR_TRY(Unescape(literal, &value));
          AppendJsonString(value, normal);
        }
        return Status();
      }
      default: break;
    }
    if (text_[at_] == '-' || IsDigit(text_[at_])) return ReadNumber(normal);
    const std::string_view word = Token();
    if (word != "true" && word != "false" && word != "null") return Expected("JSON value");
    at_ += word.size();
    if (normal != nullptr) normal->append(word);
    return Status();
  }

  Status ReadNumber(std::string* normal) {
    const std::string_view token = Token();
    size_t i = 0;
    auto digits = [&] {
      const size_t first = i;
      while (i < token.size() && IsDigit(token[i])) ++i;
      return i - first;
    };
    if (token[i] == '-') ++i;
    const bool zero = i < token.size() && token[i] == '0';
    const size_t whole = digits();
    bool valid = whole > 0 && !(zero && whole > 1);
    if (valid && i < token.size() && token[i] == '.') {
      ++i;
      valid = digits() > 0;
    }
    if (valid && i < token.size() && (token[i] | 0x20) == 'e') {
      ++i;
      if (i < token.size() && (token[i] == '+' || token[i] == '-')) ++i;
      valid = digits() > 0;
    }
    if (!valid || i != token.size()) {
      return JsonError(fmt::format("Token \"{}\" is invalid.", token));
    }
    at_ += token.size();
    if (normal != nullptr) {
      Arena scratch;
      CELLAR_TRY_ASSIGN(std::string_view number, numeric::Parse(token, &scratch));
      numeric::AppendText(number, normal);
    }
    return Status();
  }

  Status ReadString(std::string_view* literal) {
    const size_t first = at_++;
    for (; !AtEnd() && text_[at_] != '"'; ++at_) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c < 0x20) {
        return JsonError(fmt::format("Character with value 0x{:02x} must be escaped.", c));
      }
      if (c != '\\') continue;
      if (++at_ == text_.size()) break;
      const char escape = text_[at_];
      if (escape == 'u') {
        if (ReadHex4(text_, at_ + 1) < 0) {
          return JsonError("\"\\u\" must be followed by four hexadecimal digits.");
        }
        at_ += 4;
      } else if (std::string_view("\"\\/bfnrt").find(escape) == std::string_view::npos) {
        return JsonError(fmt::format("Escape sequence \"\\{}\" is invalid.", escape));
      }
    }
    if (AtEnd()) return JsonError(fmt::format("Token \"{}\" is invalid.", text_.substr(first)));
    ++at_;
    *literal = text_.substr(first, at_ - first);
    PollBytes(literal->size());
    return Status();
  }

  Status ReadArray(int depth, std::string* normal) {
    ++at_;
    if (normal != nullptr) normal->push_back('[');
    SkipSpaces();
    if (!AtEnd() && text_[at_] == ']') {
      ++at_;
      if (normal != nullptr) normal->push_back(']');
      return Status();
    }
    while (true) {
      CELLAR_TRY(ReadValue(depth + 1, normal));
      SkipSpaces();
      if (!AtEnd() && text_[at_] == ']') break;
      if (AtEnd() || text_[at_] != ',') return Expected("\",\" or \"]\"");
      ++at_;
      if (normal != nullptr) normal->append(", ");
    }
    ++at_;
    if (normal != nullptr) normal->push_back(']');
    return Status();
  }

  Status ReadObject(int depth, std::string* normal) {
    ++at_;
    std::vector<Member> members;
    SkipSpaces();
    if (!AtEnd() && text_[at_] == '}') {
      ++at_;
      if (normal != nullptr) normal->append("{}");
      return Status();
    }
    while (true) {
      SkipSpaces();
      if (AtEnd() || text_[at_] != '"') {
        return Expected(members.empty() ? "string or \"}\"" : "string");
      }
      std::string_view literal;
      CELLAR_TRY(ReadString(&literal));
      Member member;
      member.order = members.size();
      SkipSpaces();
      if (AtEnd() || text_[at_] != ':') return Expected("\":\"");
      ++at_;
      if (normal != nullptr) CELLAR_TRY(Unescape(literal, &member.key));
      CELLAR_TRY(ReadValue(depth + 1, normal == nullptr ? nullptr : &member.value));
      PollBytes(member.value.size());  // each level of nesting copies it once more
      members.push_back(std::move(member));
      SkipSpaces();
      if (!AtEnd() && text_[at_] == '}') break;
      if (AtEnd() || text_[at_] != ',') return Expected("\",\" or \"}\"");
      ++at_;
    }
    ++at_;
    if (normal != nullptr) WriteMembers(&members, normal);
    return Status();
  }

  // Sorted by key length, then bytes; of equal keys the last.
  static void WriteMembers(std::vector<Member>* members, std::string* normal) {
    std::sort(members->begin(), members->end(), [](const Member& a, const Member& b) {
      PollSteps();
      if (a.key.size() != b.key.size()) return a.key.size() < b.key.size();
      const int order = a.key.compare(b.key);
      return order != 0 ? order < 0 : a.order < b.order;
    });
    normal->push_back('{');
    bool first = true;
    for (size_t i = 0; i < members->size(); ++i) {
      const Member& member = (*members)[i];
      PollBytes(member.value.size());
      if (i + 1 < members->size() && (*members)[i + 1].key == member.key) continue;
      if (!first) normal->append(", ");
      first = false;
      AppendJsonString(member.key, normal);
      normal->append(": ");
      normal->append(member.value);
    }
    normal->push_back('}');
  }

  std::string_view text_;
  size_t at_ = 0;
};

// ---- Walking valid text ----

size_t SkipBlanks(std::string_view text, size_t at) {
  while (at < text.size() && IsSpace(text[at])) ++at;
  return at;
}

// The end of the string literal that starts at `at`.
size_t StringEnd(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

// The end of the value that starts at `at`.
size_t ValueEnd(std::string_view text, size_t at) {
  constexpr size_t kPollBytes = 64 << 10;
  int depth = 0;
  size_t polled = at;
  PollSteps();
  while (at < text.size()) {
    if (at - polled >= kPollBytes) {
      PollBytes(at - polled);
      polled = at;
    }
    const char c = text[at];
    if (c == '"') {
      at = StringEnd(text, at);
    } else if (c == '{' || c == '[') {
      ++depth;
      ++at;
      continue;
    } else if (c == '}' || c == ']') {
      --depth;
      ++at;
    } else if (depth > 0) {
      ++at;
      continue;
    } else {
      while (at < text.size() && text[at] != ',' && text[at] != '}' && text[at] != ']' &&
             !IsSpace(text[at])) {
        ++at;
      }
      return at;
    }
    if (depth <= 0) return at;
  }
  return at;
}

std::string_view Trim(std::string_view text) {
  const size_t first = SkipBlanks(text, 0);
  size_t end = text.size();
  while (end > first && IsSpace(text[end - 1])) --end;
  return text.substr(first, end - first);
}

int RankOf(JsonType type) {
  switch (type) {
    case JsonType::kNull: return 0;
    case JsonType::kString: return 1;
    case JsonType::kNumber: return 2;
    case JsonType::kBoolean: return 3;
    case JsonType::kArray: return 4;
    case JsonType::kObject: return 5;
  }
  return 0;
}

int CompareStrings(std::string_view a, std::string_view b) {
  PollBytes(a.size() + b.size());
  std::string left, right;
  AppendJsonUnescaped(a, &left).ok();  // jsonb holds no other text
  AppendJsonUnescaped(b, &right).ok();
  return left.compare(right);
}

int CompareValues(std::string_view a, std::string_view b) {
  const JsonType a_type = JsonTypeOf(a), b_type = JsonTypeOf(b);
  if (a_type != b_type) return RankOf(a_type) < RankOf(b_type) ? -1 : 1;
  switch (a_type) {
    case JsonType::kNull: return 0;
    case JsonType::kBoolean: return static_cast<int>(a[0] == 't') - static_cast<int>(b[0] == 't');
    case JsonType::kString: return CompareStrings(a, b);
    case JsonType::kNumber: {
      Arena scratch;
      auto x = numeric::Parse(a, &scratch), y = numeric::Parse(b, &scratch);
      return x.ok() && y.ok() ? numeric::Compare(*x, *y) : a.compare(b);
    }
    case JsonType::kArray:
    case JsonType::kObject: break;
  }
  const size_t a_count = JsonCount(a), b_count = JsonCount(b);
  if (a_count != b_count) return a_count < b_count ? -1 : 1;
  JsonCursor a_cursor(a), b_cursor(b);
  std::string_view a_key, a_value, b_key, b_value;
  while (a_cursor.Next(&a_key, &a_value) && b_cursor.Next(&b_key, &b_value)) {
    if (a_type == JsonType::kObject && a_key != b_key) {
      const int order = CompareStrings(a_key, b_key);
      if (order != 0) return order;
    }
    const int order = CompareValues(a_value, b_value);
    if (order != 0) return order;
  }
  return 0;
}

void HashValue(std::string_view text, uint64_t* hash) {
  auto mix = [hash](uint64_t word) {
    *hash = (*hash ^ word) * 0xD6E8FEB86659FD93;
    *hash ^= *hash >> 32;
  };
  auto mix_bytes = [&mix](std::string_view bytes) {
    mix(bytes.size());
    InPieces(bytes, [&mix](std::string_view piece) {
      for (char c : piece) mix(static_cast<uint8_t>(c));
    });
  };
  const JsonType type = JsonTypeOf(text);
  mix(static_cast<uint64_t>(RankOf(type)));
  switch (type) {
    case JsonType::kNull: return;
    case JsonType::kNumber: {
      Arena scratch;
      auto number = numeric::Parse(text, &scratch);
      if (number.ok()) mix(numeric::Hash(*number));
      return;
    }
    case JsonType::kString:
    case JsonType::kBoolean: mix_bytes(text); return;
    case JsonType::kArray:
    case JsonType::kObject: break;
  }
  JsonCursor cursor(text);
  std::string_view key, value;
  while (cursor.Next(&key, &value)) {
    mix_bytes(key);
    HashValue(value, hash);
  }
}

}  // namespace

Status ValidateJson(std::string_view text) { return Reader(text).ReadDocument(nullptr); }

Result<std::string_view> ParseJsonb(std::string_view text, Arena* arena) {
  std::string normal;
  normal.reserve(text.size() + 16);
  CELLAR_TRY(Reader(text).ReadDocument(&normal));
  return arena->Copy(normal);
}

int CompareJsonb(std::string_view a, std::string_view b) {
  a = Trim(a);
  b = Trim(b);
  // An empty array at the top is less than everything; so PostgreSQL's indexes have it.
  const bool a_empty = a == "[]", b_empty = b == "[]";
  if (a_empty || b_empty) return static_cast<int>(b_empty) - static_cast<int>(a_empty);
  return CompareValues(a, b);
}

uint64_t HashJsonb(std::string_view text) {
  uint64_t hash = 0xA0761D6478BD642F;
  HashValue(Trim(text), &hash);
  return hash;
}

JsonType JsonTypeOf(std::string_view text) {
  const size_t at = SkipBlanks(text, 0);
  if (at == text.size()) return JsonType::kNull;
  switch (text[at]) {
    case '{': return JsonType::kObject;
    case '[': return JsonType::kArray;
    case '"': return JsonType::kString;
    case 't':
    case 'f': return JsonType::kBoolean;
    case 'n': return JsonType::kNull;
    default: return JsonType::kNumber;
  }
}

JsonCursor::JsonCursor(std::string_view container) {
  const JsonType type = JsonTypeOf(container);
  if (type != JsonType::kArray && type != JsonType::kObject) return;
  object_ = type == JsonType::kObject;
  rest_ = container.substr(SkipBlanks(container, 0) + 1);
}

bool JsonCursor::Next(std::string_view* key, std::string_view* value) {
  size_t at = SkipBlanks(rest_, 0);
  if (at < rest_.size() && rest_[at] == ',') at = SkipBlanks(rest_, at + 1);
  if (at >= rest_.size() || rest_[at] == ']' || rest_[at] == '}') return false;
  *key = {};
  if (object_) {
    const size_t end = StringEnd(rest_, at);
    *key = rest_.substr(at, end - at);
    at = SkipBlanks(rest_, end);
    at = SkipBlanks(rest_, std::min(at + 1, rest_.size()));  // past the colon
  }
  const size_t end = ValueEnd(rest_, at);
  *value = rest_.substr(at, end - at);
  rest_.remove_prefix(end);
  return true;
}

std::optional<std::string_view> JsonField(std::string_view text, std::string_view key) {
  if (JsonTypeOf(text) != JsonType::kObject) return std::nullopt;
  JsonCursor cursor(text);
  std::optional<std::string_view> found;  // json keeps repeated keys: the last counts
  std::string_view name, value;
  std::string unescaped;
  while (cursor.Next(&name, &value)) {
    std::string_view body = name.substr(1, name.size() - 2);
    if (body.find('\\') != std::string_view::npos) {
      unescaped.clear();
      if (!AppendJsonUnescaped(name, &unescaped).ok()) continue;  // no text is this one
      body = unescaped;
    }
    if (body == key) found = value;
  }
  return found;
}

std::optional<std::string_view> JsonElement(std::string_view text, int64_t index) {
  if (JsonTypeOf(text) != JsonType::kArray) return std::nullopt;
  if (index < 0) index += static_cast<int64_t>(JsonCount(text));
  if (index < 0) return std::nullopt;
  JsonCursor cursor(text);
  std::string_view key, value;
  while (cursor.Next(&key, &value)) {
    if (index-- == 0) return value;
  }
  return std::nullopt;
}

size_t JsonCount(std::string_view text) {
  JsonCursor cursor(text);
  std::string_view key, value;
  size_t count = 0;
  while (cursor.Next(&key, &value)) ++count;
  return count;
}

Result<bool> JsonAsText(std::string_view text, std::string* out) {
  text = Trim(text);
  switch (JsonTypeOf(text)) {
    case JsonType::kNull: return false;
    case JsonType::kString: CELLAR_TRY(AppendJsonUnescaped(text, out)); return true;
    default: out->append(text); return true;
  }
}

Status AppendJsonUnescaped(std::string_view literal, std::string* out) {
  return Unescape(literal, out);
}

void AppendJsonString(std::string_view value, std::string* out) {
  PollBytes(value.size());
  out->push_back('"');
  size_t plain = 0;
  for (size_t i = 0; i < value.size(); ++i) {
    const auto c = static_cast<unsigned char>(value[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out->append(value.substr(plain, i - plain));
    plain = i + 1;
    switch (c) {
      case '\b': out->append("\\b"); break;
      case '\f': out->append("\\f"); break;
      case '\n': out->append("\\n"); break;
      case '\r': out->append("\\r"); break;
      case '\t': out->append("\\t"); break;
      case '"': out->append("\\\""); break;
      case '\\': out->append("\\\\"); break;
      default: out->append(fmt::format("\\u{:04x}", c)); break;
    }
  }
  out->append(value.substr(plain));
  out->push_back('"');
}

}  // namespace cellar
