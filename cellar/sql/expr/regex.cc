// Regular expressions: PostgreSQL's advanced form translated to RE2, and the functions over it.
//
// RE2 is linear in the text and has no back references and no lookaround: those are refused
// (0A000). It finds the leftmost longest match unless the pattern has a non-greedy quantifier.
#include <re2/re2.h>

#include <optional>

#include "cellar/sql/expr/registry.h"
#include "cellar/sql/expr/text_util.h"
#include "cellar/types/array.h"

namespace cellar::sql {
namespace {

constexpr int kMaxGroups = 100;
constexpr int64_t kMaxRepeat = 255;

struct RegexFlags {
  bool ignore_case = false;
  bool global = false;
  bool literal = false;
  bool expanded = false;
  bool dot_newline = true;  // . and [^x] match a newline
  bool multi_line = false;  // ^ and $ match at lines
};

Status RegexError(std::string_view why) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidRegularExpression,
                  "invalid regular expression: {}", why);
}

bool ApplyFlag(char c, RegexFlags* flags) {
  switch (c) {
    case 'i': flags->ignore_case = true; return true;
    case 'c': flags->ignore_case = false; return true;
    case 'q': flags->literal = true; return true;
    case 'x': flags->expanded = true; return true;
    case 't': flags->expanded = false; return true;
    case 'n':
    case 'm': flags->dot_newline = false, flags->multi_line = true; return true;
    case 's': flags->dot_newline = true, flags->multi_line = false; return true;
    case 'p': flags->dot_newline = false, flags->multi_line = false; return true;
    case 'w': flags->dot_newline = true, flags->multi_line = true; return true;
    case 'e':
    case 'b': return true;
    default: return false;
  }
}

Result<RegexFlags> ReadFlags(std::string_view text, bool global_allowed = true) {
  RegexFlags flags;
  for (size_t pos = 0; pos < text.size();) {
    char c = text[pos];
    size_t size = CharSize(c);
    if (c == 'g' && global_allowed) {
      flags.global = true;
    } else if (!ApplyFlag(c, &flags)) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "invalid regular expression option: \"{}\"", text.substr(pos, size));
    }
    pos += size;
  }
  return flags;
}

// Translates one pattern. Not kept.
class Translator {
 public:
  Translator(std::string_view pattern, RegexFlags flags) : in_(pattern), flags_(flags) {}

  Status Run() {
    if (in_.starts_with("***=")) {
      in_.remove_prefix(4);
      flags_.literal = true;
    } else if (in_.starts_with("***:")) {
      in_.remove_prefix(4);
    }
    if (in_.starts_with("(?") && in_.size() > 2 && in_[2] >= 'a' && in_[2] <= 'z') {
      size_t close = in_.find(')');
      if (close == std::string_view::npos) return RegexError("invalid embedded option");
      for (char c : in_.substr(2, close - 2)) {
        if (!ApplyFlag(c, &flags_)) return RegexError("invalid embedded option");
      }
      in_.remove_prefix(close + 1);
    }
    if (flags_.literal) {
      out_ = RE2::QuoteMeta(re2::StringPiece(in_.data(), in_.size()));
      return Status();
    }
    while (pos_ < in_.size()) CELLAR_TRY(Next());
    return Status();
  }

  RegexFlags flags() const { return flags_; }
  bool non_greedy() const { return non_greedy_; }
  const std::string& out() const { return out_; }

 private:
  Status Next() {
    char c = in_[pos_];
    switch (c) {
      case '\\': return Escape(false);
      case '[': return Bracket();
      case '(': return Open();
      case '*':
      case '+':
      case '?':
        out_ += c;
        ++pos_;
        Lazy();
        return Status();
      case '{': return Repeat();
      case '#':
        if (flags_.expanded) {
          while (pos_ < in_.size() && in_[pos_] != '\n') ++pos_;
          return Status();
        }
        break;
      case ' ':
      case '\t':
      case '\n':
      case '\r':
      case '\f':
      case '\v':
        if (flags_.expanded) {
          ++pos_;
          return Status();
        }
        break;
      default: break;
    }
    size_t size = CharSize(c);
    out_ += in_.substr(pos_, size);
    pos_ += size;
    return Status();
  }

  void Lazy() {
    if (pos_ < in_.size() && in_[pos_] == '?') {
      non_greedy_ = true;
      out_ += '?';
      ++pos_;
    }
  }

  Status Open() {
    if (in_.substr(pos_).starts_with("(?")) {
      char kind = pos_ + 2 < in_.size() ? in_[pos_ + 2] : '\0';
      if (kind == '#') {
        size_t close = in_.find(')', pos_);
        if (close == std::string_view::npos) return RegexError("parentheses () not balanced");
        pos_ = close + 1;
        return Status();
      }
      if (kind == '=' || kind == '!' || kind == '<') {
        return UnsupportedError("lookaround constraints in regular expressions are not supported");
      }
      if (kind != ':') return RegexError("quantifier operand invalid");
      out_ += "(?:";
      pos_ += 3;
      return Status();
    }
    out_ += '(';
    ++pos_;
    return Status();
  }

  Status Repeat() {
    if (pos_ + 1 >= in_.size() || in_[pos_ + 1] < '0' || in_[pos_ + 1] > '9') {
      out_ += "\\{";
      ++pos_;
      return Status();
    }
    size_t close = in_.find('}', pos_);
    if (close == std::string_view::npos) return RegexError("braces {} not balanced");
    std::string_view body = in_.substr(pos_ + 1, close - pos_ - 1);
    int64_t number = 0, low = -1;
    for (char c : body) {
      if (c == ',') {
        if (low >= 0) return RegexError("invalid repetition count(s)");
        low = number;
        number = 0;
        continue;
      }
      if (c < '0' || c > '9') return RegexError("invalid repetition count(s)");
      number = number * 10 + (c - '0');
      if (number > kMaxRepeat) return RegexError("invalid repetition count(s)");
    }
    if (low > number && !body.ends_with(',')) return RegexError("invalid repetition count(s)");
    out_ += '{';
    out_ += body;
    out_ += '}';
    pos_ = close + 1;
    Lazy();
    return Status();
  }

  // Hexadecimal digits up to `most` after pos_.
  char32_t Hex(size_t most) {
    char32_t value = 0;
    for (size_t i = 0; i < most && pos_ < in_.size(); ++i, ++pos_) {
      char c = in_[pos_];
      if (c >= '0' && c <= '9')
        value = value * 16 + static_cast<char32_t>(c - '0');
      else if (c >= 'a' && c <= 'f')
        value = value * 16 + static_cast<char32_t>(c - 'a' + 10);
      else if (c >= 'A' && c <= 'F')
        value = value * 16 + static_cast<char32_t>(c - 'A' + 10);
      else
        break;
    }
    return value;
  }

  void Literal(char32_t c) {
    char text[16];
    std::snprintf(text, sizeof text, "\\x{%X}", static_cast<unsigned>(c));
    out_ += text;
  }

  Status Escape(bool bracket) {
    if (++pos_ >= in_.size()) return RegexError("invalid escape \\ sequence");
    char c = in_[pos_++];
    switch (c) {
      case 'd': out_ += bracket ? "0-9" : "[0-9]"; return Status();
      case 'w': out_ += bracket ? "\\pL\\pN_" : "[\\pL\\pN_]"; return Status();
      case 's': out_ += bracket ? "[:space:]" : "[[:space:]]"; return Status();
      case 'a': Literal(7); return Status();
      case 'b': Literal(8); return Status();
      case 'B': out_ += "\\\\"; return Status();
      case 'e': Literal(27); return Status();
      case 'f': Literal(12); return Status();
      case 'n': Literal(10); return Status();
      case 'r': Literal(13); return Status();
      case 't': Literal(9); return Status();
      case 'v': Literal(11); return Status();
      case 'c':
        if (pos_ >= in_.size()) return RegexError("invalid escape \\ sequence");
        Literal(static_cast<char32_t>(in_[pos_++]) & 0x1F);
        return Status();
      case 'u': Literal(Hex(4)); return Status();
      case 'U': Literal(Hex(8)); return Status();
      case 'x': Literal(Hex(8)); return Status();
      default: break;
    }
    if (c == '0') {
      char32_t value = 0;
      for (int i = 0; i < 2 && pos_ < in_.size() && in_[pos_] >= '0' && in_[pos_] <= '7'; ++i) {
        value = value * 8 + static_cast<char32_t>(in_[pos_++] - '0');
      }
      Literal(value);
      return Status();
    }
    if (!bracket) {
      switch (c) {
        case 'D': out_ += "[^0-9]"; return Status();
        case 'W': out_ += "[^\\pL\\pN_]"; return Status();
        case 'S': out_ += "[^[:space:]]"; return Status();
        case 'A': out_ += "\\A"; return Status();
        case 'Z': out_ += "\\z"; return Status();
        case 'm':
        case 'M':
        case 'y': out_ += "\\b"; return Status();
        case 'Y': out_ += "\\B"; return Status();
        default: break;
      }
      if (c >= '1' && c <= '9') {
        return UnsupportedError("back references in regular expressions are not supported");
      }
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) {
      return RegexError("invalid escape \\ sequence");
    }
    --pos_;
    size_t start = pos_;
    char32_t literal = TakeChar(in_, &pos_);
    if (literal < 0x80)
      Literal(literal);
    else
      out_ += in_.substr(start, pos_ - start);
    return Status();
  }

  Status Bracket() {
    std::string_view rest = in_.substr(pos_);
    if (rest.starts_with("[[:<:]]") || rest.starts_with("[[:>:]]")) {
      out_ += "\\b";
      pos_ += 7;
      return Status();
    }
    out_ += '[';
    ++pos_;
    if (pos_ < in_.size() && in_[pos_] == '^') {
      out_ += '^';
      ++pos_;
      if (!flags_.dot_newline) out_ += "\\n";
    }
    bool first = true;
    while (true) {
      if (pos_ >= in_.size()) return RegexError("brackets [] not balanced");
      char c = in_[pos_];
      if (c == ']' && !first) {
        out_ += ']';
        ++pos_;
        return Status();
      }
      first = false;
      std::string_view left = in_.substr(pos_);
      if (left.starts_with("[:")) {
        size_t close = left.find(":]");
        if (close == std::string_view::npos) return RegexError("brackets [] not balanced");
        CELLAR_TRY(Class(left.substr(2, close - 2)));
        pos_ += close + 2;
      } else if (left.starts_with("[.") || left.starts_with("[=")) {
        size_t close = left.find(left[1] == '.' ? ".]" : "=]", 2);
        if (close == std::string_view::npos) return RegexError("brackets [] not balanced");
        for (size_t at = 2; at < close;) {
          char32_t literal = TakeChar(left, &at);
          Literal(literal);
        }
        pos_ += close + 2;
      } else if (c == '\\') {
        CELLAR_TRY(Escape(true));
      } else if (c == '[') {
        out_ += "\\[";
        ++pos_;
      } else if (c == ']') {
        out_ += "\\]";
        ++pos_;
      } else {
        size_t size = CharSize(c);
        out_ += in_.substr(pos_, size);
        pos_ += size;
      }
    }
  }

  Status Class(std::string_view name) {
    if (name == "alpha")
      out_ += "\\pL";
    else if (name == "alnum")
      out_ += "\\pL\\pN";
    else if (name == "lower")
      out_ += "\\p{Ll}";
    else if (name == "upper")
      out_ += "\\p{Lu}";
    else if (name == "word")
      out_ += "\\pL\\pN_";
    else if (name == "digit" || name == "space" || name == "punct" || name == "blank" ||
             name == "cntrl" || name == "graph" || name == "print" || name == "xdigit" ||
             name == "ascii") {
      out_ += "[:";
      out_ += name;
      out_ += ":]";
    } else {
      return RegexError("invalid character class");
    }
    return Status();
  }

  std::string_view in_;
  RegexFlags flags_;
  size_t pos_ = 0;
  bool non_greedy_ = false;
  std::string out_;
};

std::string_view ErrorText(RE2::ErrorCode code) {
  switch (code) {
    case RE2::ErrorBadEscape:
    case RE2::ErrorTrailingBackslash: return "invalid escape \\ sequence";
    case RE2::ErrorBadCharClass: return "invalid character class";
    case RE2::ErrorBadCharRange: return "invalid character range";
    case RE2::ErrorMissingBracket: return "brackets [] not balanced";
    case RE2::ErrorMissingParen: return "parentheses () not balanced";
    case RE2::ErrorRepeatArgument:
    case RE2::ErrorRepeatOp: return "quantifier operand invalid";
    case RE2::ErrorRepeatSize: return "invalid repetition count(s)";
    case RE2::ErrorPatternTooLarge: return "regular expression is too complex";
    default: return "invalid regexp (reg version 0.8)";
  }
}

// A compiled pattern. Immutable, thread-safe.
class Regex {
 public:
  static Result<std::shared_ptr<const Regex>> Compile(std::string_view pattern, RegexFlags flags) {
    // RE2 has no room for the program of a longer one, and finds out late.
    constexpr size_t kMaxPatternBytes = 1 << 20;
    if (pattern.size() > kMaxPatternBytes) return RegexError(ErrorText(RE2::ErrorPatternTooLarge));
    Translator translator(pattern, flags);
    CELLAR_TRY(translator.Run());
    RE2::Options options;
    options.set_log_errors(false);
    options.set_longest_match(!translator.non_greedy());
    options.set_dot_nl(translator.flags().dot_newline);
    options.set_case_sensitive(!translator.flags().ignore_case);
    std::string text = translator.flags().multi_line ? "(?m)" + translator.out() : translator.out();
    auto out = std::make_shared<Regex>();
    out->re_ = std::make_unique<RE2>(text, options);
    if (!out->re_->ok()) {
      // RE2 calls an unmatched ')' a missing parenthesis or an unexpected one, by version.
      std::string_view why = ErrorText(out->re_->error_code());
      if (out->re_->error().find("parenthesis") != std::string::npos ||
          out->re_->error().find(')') != std::string::npos) {
        why = "parentheses () not balanced";
      }
      return RegexError(why);
    }
    out->groups_ = out->re_->NumberOfCapturingGroups();
    if (out->groups_ >= kMaxGroups) return RegexError("too many groups");
    return std::shared_ptr<const Regex>(std::move(out));
  }

  int groups() const { return groups_; }
  bool Matches(std::string_view text) const {
    return re_->Match(Piece(text), 0, text.size(), RE2::UNANCHORED, nullptr, 0);
  }
  // groups[0] is the whole match; absent groups have a null data pointer.
  bool Find(std::string_view text, size_t start, std::vector<std::string_view>* groups) const {
    re2::StringPiece pieces[kMaxGroups];
    const int count = groups_ + 1;
    if (!re_->Match(Piece(text), start, text.size(), RE2::UNANCHORED, pieces, count)) return false;
    groups->resize(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      (*groups)[static_cast<size_t>(i)] = std::string_view(pieces[i].data(), pieces[i].size());
    }
    return true;
  }

 private:
  static re2::StringPiece Piece(std::string_view text) {
    // A null pointer would make an empty match look like an absent group.
    return text.data() == nullptr ? re2::StringPiece("", 0)
                                  : re2::StringPiece(text.data(), text.size());
  }
  std::unique_ptr<RE2> re_;
  int groups_ = 0;
};

Result<const Regex*> GetRegex(EvalContext& context, const Expr& call, std::string_view pattern,
                              RegexFlags flags) {
  EvalContext::CallCache& cache = context.cache(&call);
  std::string key = "R";
  key += pattern;
  key += static_cast<char>(flags.ignore_case + flags.literal * 2 + flags.expanded * 4 +
                           flags.dot_newline * 8 + flags.multi_line * 16);
  if (cache.object == nullptr || cache.key != key) {
    CELLAR_TRY_ASSIGN(std::shared_ptr<const Regex> regex, Regex::Compile(pattern, flags));
    cache.object = std::const_pointer_cast<Regex>(regex);
    cache.key = std::move(key);
  }
  return static_cast<const Regex*>(cache.object.get());
}

template <bool ignore_case, bool negated>
Result<Datum> MatchOperator(EvalContext& context, const Expr& call, Args a) {
  RegexFlags flags;
  flags.ignore_case = ignore_case;
  CELLAR_TRY_ASSIGN(const Regex* regex, GetRegex(context, call, a[1].bytes(), flags));
  return Datum::Bool(regex->Matches(a[0].bytes()) != negated);
}

template <bool ignore_case, bool negated>
Result<Datum> MatchBpchar(EvalContext& context, const Expr& call, Args a) {
  std::string text = Padded(a[0].bytes(), call.args[0]->type);
  Datum padded[2] = {Datum::Bytes(text), a[1]};
  return MatchOperator<ignore_case, negated>(context, call, Args(padded, 2));
}

template <bool ignore_case, bool negated>
Status MatchVector(EvalContext& context, const Expr& call,
                   std::span<const ColumnVector* const> args, Selection rows,
                   ColumnVector* result) {
  RegexFlags flags;
  flags.ignore_case = ignore_case;
  const Regex* regex = nullptr;
  std::string_view last;
  for (size_t i = 0; i < rows.count; ++i) {
    uint32_t row = rows[i];
    if (result->nulls()[row] != 0) continue;
    std::string_view pattern = args[1]->bytes()[row];
    if (regex == nullptr || pattern != last) {
      CELLAR_TRY_ASSIGN(regex, GetRegex(context, call, pattern, flags));
      last = pattern;
    }
    result->ints()[row] = regex->Matches(args[0]->bytes()[row]) != negated;
  }
  return Status();
}

// One match of a repeated search: the whole and its groups.
using Match = std::vector<std::string_view>;

size_t OffsetIn(std::string_view text, std::string_view part) {
  return part.data() == nullptr || text.data() == nullptr
             ? 0
             : static_cast<size_t>(part.data() - text.data());
}

// One match after the other. Borrows what it was given.
class MatchFinder {
 public:
  // From byte `start`; not `global`: the first alone. `for_split` leaves out empty matches at the
  // end and right behind another.
  MatchFinder(const Regex& regex, std::string_view text, size_t start, bool global, bool for_split)
      : regex_(regex),
        text_(text.data() == nullptr ? "" : text),
        start_(start),
        global_(global),
        for_split_(for_split) {}
  // A single match is not to be interrupted: it is linear in the text.
  bool Next(Match* match) {
    while (!done_ && start_ <= text_.size() && regex_.Find(text_, start_, match)) {
      const size_t from = OffsetIn(text_, (*match)[0]), to = from + (*match)[0].size();
      const bool counts = !for_split_ || (from < text_.size() && to > previous_end_);
      done_ = !global_;
      previous_end_ = start_ = to;
      if (from == to) start_ += start_ < text_.size() ? CharSize(text_[start_]) : 1;
      if (counts) return true;
    }
    done_ = true;
    return false;
  }

  // The next match is looked for from here on.
  size_t position() const { return start_; }

 private:
  const Regex& regex_;
  std::string_view text_;
  size_t start_, previous_end_ = 0;
  bool global_, for_split_, done_ = false;
};

// Calls take(match), which says whether to go on, for all matches as MatchFinder finds them.
template <typename F>
Status ForMatches(EvalContext& context, const Regex& regex, std::string_view text, size_t start,
                  bool global, bool for_split, F take) {
  Match match;
  MatchFinder finder(regex, text, start, global, for_split);
  for (size_t before = start; finder.Next(&match); before = finder.position()) {
    CELLAR_TRY(context.StepOver(finder.position() - before));
    CELLAR_TRY_ASSIGN(const bool more, take(match));
    if (!more) break;
  }
  return Status();
}

// The n-th match from byte `start` on, from 1; empty when there are fewer.
Result<Match> NthMatch(EvalContext& context, const Regex& regex, std::string_view text,
                       size_t start, int64_t n) {
  Match out;
  int64_t count = 0;
  CELLAR_TRY(
      ForMatches(context, regex, text, start, true, false, [&](const Match& match) -> Result<bool> {
        if (++count == n) out = match;
        return count < n;
      }));
  return out;
}

Status AppendReplacement(EvalContext& context, std::string_view replacement, const Match& match,
                         std::string* out) {
  for (size_t i = 0; i < replacement.size(); ++i) {
    char c = replacement[i];
    CELLAR_TRY(MayGrow(context, *out, 2));
    if (c != '\\' || i + 1 == replacement.size()) {
      *out += c;
      continue;
    }
    c = replacement[++i];
    if (c == '&') {
      CELLAR_TRY(MayGrow(context, *out, match[0].size()));
      *out += match[0];
    } else if (c >= '1' && c <= '9') {
      size_t group = static_cast<size_t>(c - '0');
      if (group < match.size()) {
        CELLAR_TRY(MayGrow(context, *out, match[group].size()));
        *out += match[group];
      }
    } else if (c == '\\') {
      *out += '\\';
    } else {
      *out += '\\';
      *out += c;
    }
  }
  return Status();
}

// Replaces the n-th match from byte `start`; 0 is all.
Result<Datum> Replace(EvalContext& context, const Regex& regex, std::string_view text,
                      std::string_view replacement, size_t start, int64_t n) {
  if (text.data() == nullptr) text = "";
  std::string out;
  size_t copied = 0;
  int64_t count = 0;
  Match match;
  while (start <= text.size() && regex.Find(text, start, &match)) {
    const size_t from = OffsetIn(text, match[0]), to = from + match[0].size();
    ++count;
    CELLAR_TRY(context.StepOver(to - start));
    if (n <= 0 || count == n) {
      CELLAR_TRY(MayGrow(context, out, from - copied));
      out += text.substr(copied, from - copied);
      CELLAR_TRY(AppendReplacement(context, replacement, match, &out));
      copied = to;
      if (n > 0) break;
    }
    start = to;
    if (from == to) start += start < text.size() ? CharSize(text[start]) : 1;
  }
  CELLAR_TRY(MayGrow(context, out, text.size() - copied));
  out += text.substr(copied);
  return TextOf(context, out);
}

Result<Datum> RegexpReplace(EvalContext& context, const Expr& call, Args a) {
  RegexFlags flags;
  size_t start = 0;
  int64_t n = 1;
  if (call.args.size() == 4 && !IsInteger(call.args[3]->type)) {
    std::string_view text = a[3].bytes();
    if (!text.empty() && text[0] >= '0' && text[0] <= '9') {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "invalid regular expression option: \"{}\"", text.substr(0, 1))
          .WithHint(
              "If you meant to use regexp_replace() with a start parameter, cast the fourth "
              "argument to integer explicitly.");
    }
    CELLAR_TRY_ASSIGN(flags, ReadFlags(text));
    if (flags.global) n = 0;
  } else if (a.size() >= 4) {
    if (a[3].int_value() <= 0) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "invalid value for parameter \"start\": {}", a[3].int_value());
    }
    const auto before = static_cast<size_t>(a[3].int_value() - 1);
    start = BytesOfChars(a[0].bytes(), before);
    // Behind the end of the text nothing is found, at its end what is empty.
    if (before > 0 && BytesOfChars(a[0].bytes(), before - 1) == a[0].bytes().size()) ++start;
    if (a.size() >= 5) {
      n = a[4].int_value();
      if (n < 0) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                        "invalid value for parameter \"n\": {}", n);
      }
    }
    if (a.size() == 6) {
      CELLAR_TRY_ASSIGN(flags, ReadFlags(a[5].bytes()));
    }
  }
  CELLAR_TRY_ASSIGN(const Regex* regex, GetRegex(context, call, a[1].bytes(), flags));
  if (start > a[0].bytes().size()) return a[0];
  return Replace(context, *regex, a[0].bytes(), a[2].bytes(), start, n);
}

Status NoGlobal(RegexFlags flags, std::string_view function, std::string_view hint) {
  if (!flags.global) return Status();
  Status error = SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                          "{} does not support the \"global\" option", function);
  if (hint.empty()) return error;
  return std::move(error).WithHint(std::string(hint));
}

Result<Datum> RegexpLike(EvalContext& context, const Expr& call, Args a) {
  RegexFlags flags;
  if (a.size() == 3) {
    CELLAR_TRY_ASSIGN(flags, ReadFlags(a[2].bytes()));
  }
  CELLAR_TRY(NoGlobal(flags, "regexp_like()", ""));
  CELLAR_TRY_ASSIGN(const Regex* regex, GetRegex(context, call, a[1].bytes(), flags));
  return Datum::Bool(regex->Matches(a[0].bytes()));
}

Result<Datum> GroupsArray(const Match& match, Arena* arena) {
  ArrayBuilder builder(MakeType(TypeId::kText));
  for (size_t i = match.size() > 1 ? 1 : 0; i < match.size(); ++i) {
    CELLAR_TRY(builder.TryAdd(match[i].data() == nullptr ? Datum() : Datum::Bytes(match[i])));
  }
  return Datum::Bytes(builder.Finish(arena));
}

Result<Datum> RegexpMatch(EvalContext& context, const Expr& call, Args a) {
  RegexFlags flags;
  if (a.size() == 3) {
    CELLAR_TRY_ASSIGN(flags, ReadFlags(a[2].bytes()));
  }
  CELLAR_TRY(NoGlobal(flags, "regexp_match()", "Use the regexp_matches function instead."));
  CELLAR_TRY_ASSIGN(const Regex* regex, GetRegex(context, call, a[1].bytes(), flags));
  Match match;
  if (!regex->Find(a[0].bytes(), 0, &match)) return Datum();
  return GroupsArray(match, context.arena());
}

// The expression that a call has just found, kept by whoever goes on with it later.
std::shared_ptr<const Regex> SharedRegex(EvalContext& context, const Expr& call) {
  return std::static_pointer_cast<const Regex>(context.cache(&call).object);
}

Result<SetRowsPtr> RegexpMatches(EvalContext& context, const Expr& call, Args a) {
  RegexFlags flags;
  if (a.size() == 3) {
    CELLAR_TRY_ASSIGN(flags, ReadFlags(a[2].bytes()));
  }
  CELLAR_TRY_ASSIGN(const Regex* regex, GetRegex(context, call, a[1].bytes(), flags));
  return MakeRowByRow([keeper = SharedRegex(context, call),
                       finder = MatchFinder(*regex, a[0].bytes(), 0, flags.global, false)](
                          EvalContext& context, std::span<Datum> row) mutable -> Result<bool> {
    Match match;
    if (!finder.Next(&match)) return false;
    CELLAR_TRY_ASSIGN(row[0], GroupsArray(match, context.arena()));
    return true;
  });
}

// The parts of a text between matches.
class RegexSplitter {
 public:
  // Borrows the text and the expression.
  RegexSplitter(const Regex& regex, std::string_view text)
      : text_(text.data() == nullptr ? "" : text), finder_(regex, text_, 0, true, true) {}
  bool Next(std::string_view* part) {
    if (done_) return false;
    Match match;
    if (!finder_.Next(&match)) {
      done_ = true;
      *part = text_.substr(end_);
      return true;
    }
    const size_t from = OffsetIn(text_, match[0]);
    *part = text_.substr(end_, from - end_);
    end_ = from + match[0].size();
    return true;
  }

 private:
  std::string_view text_;
  MatchFinder finder_;
  size_t end_ = 0;
  bool done_ = false;
};

Result<RegexSplitter> SplitText(EvalContext& context, const Expr& call, Args a,
                                std::string_view function) {
  RegexFlags flags;
  if (a.size() == 3) {
    CELLAR_TRY_ASSIGN(flags, ReadFlags(a[2].bytes()));
  }
  CELLAR_TRY(NoGlobal(flags, function, ""));
  CELLAR_TRY_ASSIGN(const Regex* regex, GetRegex(context, call, a[1].bytes(), flags));
  return RegexSplitter(*regex, a[0].bytes());
}

Result<Datum> SplitToArray(EvalContext& context, const Expr& call, Args a) {
  CELLAR_TRY_ASSIGN(RegexSplitter splitter, SplitText(context, call, a, "regexp_split_to_array()"));
  ArrayBuilder builder(MakeType(TypeId::kText));
  std::string_view part;
  while (splitter.Next(&part)) {
    CELLAR_TRY(context.StepOver(part.size()));
    CELLAR_TRY(builder.TryAdd(Datum::Bytes(part)));
  }
  return Datum::Bytes(builder.Finish(context.arena()));
}

Result<SetRowsPtr> SplitToTable(EvalContext& context, const Expr& call, Args a) {
  CELLAR_TRY_ASSIGN(RegexSplitter splitter, SplitText(context, call, a, "regexp_split_to_table()"));
  return MakeRowByRow([keeper = SharedRegex(context, call), splitter](
                          EvalContext&, std::span<Datum> row) mutable -> Result<bool> {
    std::string_view part;
    if (!splitter.Next(&part)) return false;
    row[0] = Datum::Bytes(part);
    return true;
  });
}

// Start (1-based, characters) and flags of regexp_count, regexp_instr and regexp_substr.
Result<size_t> StartByte(Args a, size_t index) {
  if (a.size() <= index) return size_t{0};
  if (a[index].int_value() <= 0) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "invalid value for parameter \"start\": {}", a[index].int_value());
  }
  std::string_view text = a[0].bytes();
  size_t chars = static_cast<size_t>(a[index].int_value() - 1);
  if (chars > CountChars(text)) return text.size() + 1;
  return BytesOfChars(text, chars);
}

Result<Datum> RegexpCount(EvalContext& context, const Expr& call, Args a) {
  CELLAR_TRY_ASSIGN(size_t start, StartByte(a, 2));
  RegexFlags flags;
  if (a.size() == 4) {
    CELLAR_TRY_ASSIGN(flags, ReadFlags(a[3].bytes()));
  }
  CELLAR_TRY(NoGlobal(flags, "regexp_count()", ""));
  CELLAR_TRY_ASSIGN(const Regex* regex, GetRegex(context, call, a[1].bytes(), flags));
  int64_t count = 0;
  CELLAR_TRY(ForMatches(context, *regex, a[0].bytes(), start, true, false,
                        [&](const Match&) -> Result<bool> {
                          ++count;
                          return true;
                        }));
  return Datum::Int(count);
}

Result<int64_t> Positive(Args a, size_t index, std::string_view name, int64_t fallback,
                         int64_t least) {
  if (a.size() <= index) return fallback;
  if (a[index].int_value() < least) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "invalid value for parameter \"{}\": {}", name, a[index].int_value());
  }
  return a[index].int_value();
}

Result<Datum> RegexpInstr(EvalContext& context, const Expr& call, Args a) {
  CELLAR_TRY_ASSIGN(size_t start, StartByte(a, 2));
  CELLAR_TRY_ASSIGN(int64_t n, Positive(a, 3, "n", 1, 1));
  const int64_t end_option = a.size() > 4 ? a[4].int_value() : 0;
  if (end_option != 0 && end_option != 1) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "invalid value for parameter \"endoption\": {}", end_option);
  }
  RegexFlags flags;
  if (a.size() > 5) {
    CELLAR_TRY_ASSIGN(flags, ReadFlags(a[5].bytes()));
  }
  CELLAR_TRY(NoGlobal(flags, "regexp_instr()", ""));
  CELLAR_TRY_ASSIGN(int64_t group, Positive(a, 6, "subexpr", 0, 0));
  CELLAR_TRY_ASSIGN(const Regex* regex, GetRegex(context, call, a[1].bytes(), flags));
  std::string_view text = a[0].bytes();
  CELLAR_TRY_ASSIGN(const Match match, NthMatch(context, *regex, text, start, n));
  if (static_cast<size_t>(group) >= match.size()) return Datum::Int(0);
  std::string_view part = match[static_cast<size_t>(group)];
  if (part.data() == nullptr) return Datum::Int(0);
  size_t at = OffsetIn(text, part) + (end_option == 1 ? part.size() : 0);
  return Datum::Int(static_cast<int64_t>(CountChars(text.substr(0, at))) + 1);
}

Result<Datum> RegexpSubstr(EvalContext& context, const Expr& call, Args a) {
  CELLAR_TRY_ASSIGN(size_t start, StartByte(a, 2));
  CELLAR_TRY_ASSIGN(int64_t n, Positive(a, 3, "n", 1, 1));
  RegexFlags flags;
  if (a.size() > 4) {
    CELLAR_TRY_ASSIGN(flags, ReadFlags(a[4].bytes()));
  }
  CELLAR_TRY(NoGlobal(flags, "regexp_substr()", ""));
  CELLAR_TRY_ASSIGN(int64_t group, Positive(a, 5, "subexpr", 0, 0));
  CELLAR_TRY_ASSIGN(const Regex* regex, GetRegex(context, call, a[1].bytes(), flags));
  CELLAR_TRY_ASSIGN(const Match match, NthMatch(context, *regex, a[0].bytes(), start, n));
  if (static_cast<size_t>(group) >= match.size()) return Datum();
  std::string_view part = match[static_cast<size_t>(group)];
  if (part.data() == nullptr) return Datum();
  return TextOf(context, part);
}

Result<Datum> SubstringRegex(EvalContext& context, const Expr& call, std::string_view text,
                             std::string_view pattern) {
  CELLAR_TRY_ASSIGN(const Regex* regex, GetRegex(context, call, pattern, RegexFlags()));
  Match match;
  if (!regex->Find(text, 0, &match)) return Datum();
  std::string_view part = match[match.size() > 1 ? 1 : 0];
  if (part.data() == nullptr) return Datum();
  return TextOf(context, part);
}

// What stands before, between and behind the separators of a pattern of SIMILAR TO (#"), as regular
// expressions. Without separators all of it is `before`.
struct SimilarParts {
  std::string before, between, behind;
  int separators = 0;
};

// SIMILAR TO's pattern as a regular expression. A null escape is the backslash, an empty one none.
// `parts` may be null.
Result<std::string> SimilarPattern(std::string_view pattern, std::optional<std::string_view> escape,
                                   SimilarParts* parts = nullptr) {
  std::string_view mark = escape.value_or("\\");
  if (!mark.empty() && CountChars(mark) != 1) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidEscapeSequence, "invalid escape string")
        .WithHint("Escape string must be empty or one character.");
  }
  std::string out = "^(?:";
  bool after_escape = false, in_class = false;
  int quotes = 0;
  size_t part_at = out.size();
  const auto end_part = [&](std::string* part) {
    if (parts != nullptr) *part = out.substr(part_at);
  };
  for (size_t pos = 0; pos < pattern.size();) {
    size_t size = CharSize(pattern[pos]);
    std::string_view c = pattern.substr(pos, size);
    pos += size;
    if (after_escape) {
      if (c == "\"" && !in_class) {
        if (++quotes > 2) {
          return SqlError(
              Code::kInvalid, "2200C",
              "SQL regular expression may not contain more than two escape-double-quote "
              "separators");
        }
        if (parts != nullptr) end_part(quotes == 1 ? &parts->before : &parts->between);
        out += quotes == 1 ? "){1,1}?(" : "){1,1}(?:";
        part_at = out.size();
      } else {
        out += '\\';
        out += c;
      }
      after_escape = false;
    } else if (!mark.empty() && c == mark) {
      after_escape = true;
    } else if (in_class) {
      if (c == "\\") out += '\\';
      out += c;
      if (c == "]") in_class = false;
    } else if (c == "[") {
      out += c;
      in_class = true;
    } else if (c == "%") {
      out += ".*";
    } else if (c == "_") {
      out += '.';
    } else if (c == "(") {
      out += "(?:";
    } else if (c == "\\" || c == "." || c == "^" || c == "$") {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
  if (parts != nullptr) {
    parts->separators = quotes;
    end_part(quotes == 0 ? &parts->before : quotes == 1 ? &parts->between : &parts->behind);
  }
  return out + ")$";
}

// The compiled parts of a pattern with separators.
struct SimilarRegexes {
  std::shared_ptr<const Regex> whole, before, rest, between, behind;

  // Null where the parts are no expressions for themselves.
  static Result<std::shared_ptr<SimilarRegexes>> Compile(std::string_view pattern,
                                                         const SimilarParts& parts) {
    auto out = std::make_shared<SimilarRegexes>();
    CELLAR_TRY_ASSIGN(out->whole, Regex::Compile(pattern, RegexFlags()));
    const std::pair<std::shared_ptr<const Regex>*, std::string> each[] = {
        {&out->before, "^(?:" + parts.before + ")$"},
        {&out->rest, "(?:" + parts.between + ")(?:" + parts.behind + ")$"},
        {&out->between, "^(?:" + parts.between + ")$"},
        {&out->behind, "^(?:" + parts.behind + ")$"}};
    for (const auto& [regex, text] : each) {
      auto compiled = Regex::Compile(text, RegexFlags());
      if (!compiled.ok()) return std::shared_ptr<SimilarRegexes>();
      *regex = *compiled;
    }
    return out;
  }
};

// substring(text similar pattern escape e). Of all ways to match the standard takes those with the
// shortest text before the separators, and of these the one with the longest between them, which
// RE2 does not choose among its groups. Cost: a match of the rest for each place that could be one
// of the separators; few, as a rule.
Result<Datum> SubstringSimilar(EvalContext& context, const Expr& call, std::string_view text,
                               std::string_view pattern, std::string_view escape) {
  EvalContext::CallCache& cache = context.cache(&call);
  SimilarParts parts;
  CELLAR_TRY_ASSIGN(const std::string whole, SimilarPattern(pattern, escape, &parts));
  if (parts.separators == 0) return SubstringRegex(context, call, text, whole);
  const std::string key = "S" + whole;
  if (cache.object == nullptr || cache.key != key) {
    CELLAR_TRY_ASSIGN(std::shared_ptr<SimilarRegexes> made, SimilarRegexes::Compile(whole, parts));
    if (made == nullptr) return SubstringRegex(context, call, text, whole);
    cache.object = std::move(made);
    cache.key = key;
  }
  const auto& regexes = *static_cast<const SimilarRegexes*>(cache.object.get());
  if (!regexes.whole->Matches(text)) return Datum();
  const auto next_char = [text](size_t at) {
    return at < text.size() ? at + CharSize(text[at]) : at + 1;
  };
  Match match;
  size_t start = 0;
  while (true) {
    CELLAR_TRY(context.StepOver(text.size()));
    if (start > text.size() || !regexes.rest->Find(text, start, &match)) return Datum();
    start = match[0].data() == nullptr ? text.size()
                                       : static_cast<size_t>(match[0].data() - text.data());
    if (regexes.before->Matches(text.substr(0, start))) break;
    start = next_char(start);
  }
  for (size_t end = text.size();;) {
    CELLAR_TRY(context.StepOver(text.size() - start));
    if (regexes.behind->Matches(text.substr(end)) &&
        regexes.between->Matches(text.substr(start, end - start))) {
      return TextOf(context, text.substr(start, end - start));
    }
    if (end == start) return Datum();
    do --end;
    while (end > start && IsContinuation(text[end]));
  }
}

Result<Datum> SimilarEscape(EvalContext& context, const Expr&, Args a) {
  if (a[0].is_null()) return Datum();
  std::optional<std::string_view> escape;
  if (a.size() == 2 && !a[1].is_null()) escape = a[1].bytes();
  CELLAR_TRY_ASSIGN(std::string out, SimilarPattern(a[0].bytes(), escape));
  return TextOf(context, out);
}

template <bool ignore_case, bool negated>
void AddMatch(Registry& r, const char* by_text, const char* by_name, const char* by_bpchar) {
  for (const char* signature : {by_text, by_name}) {
    r.Add(signature, MatchOperator<ignore_case, negated>).vector =
        MatchVector<ignore_case, negated>;
  }
  r.Add(by_bpchar, MatchBpchar<ignore_case, negated>);
}

}  // namespace

void RegisterRegex(Registry& r);

void RegisterRegex(Registry& r) {
  AddMatch<false, false>(r, "~(text, text) bool", "~(name, text) bool", "~(bpchar, text) bool");
  AddMatch<true, false>(r, "~*(text, text) bool", "~*(name, text) bool", "~*(bpchar, text) bool");
  AddMatch<false, true>(r, "!~(text, text) bool", "!~(name, text) bool", "!~(bpchar, text) bool");
  AddMatch<true, true>(r, "!~*(text, text) bool", "!~*(name, text) bool", "!~*(bpchar, text) bool");
  r.Add("regexp_like(text, text) bool", RegexpLike);
  r.Add("regexp_like(text, text, text) bool", RegexpLike);
  r.Add("regexp_replace(text, text, text) text", RegexpReplace);
  r.Add("regexp_replace(text, text, text, text) text", RegexpReplace);
  r.Add("regexp_replace(text, text, text, int4) text", RegexpReplace);
  r.Add("regexp_replace(text, text, text, int4, int4) text", RegexpReplace);
  r.Add("regexp_replace(text, text, text, int4, int4, text) text", RegexpReplace);
  r.Add("regexp_match(text, text) text[]", RegexpMatch);
  r.Add("regexp_match(text, text, text) text[]", RegexpMatch);
  r.AddSet("regexp_matches(text, text) setof text[]", RegexpMatches);
  r.AddSet("regexp_matches(text, text, text) setof text[]", RegexpMatches);
  r.Add("regexp_split_to_array(text, text) text[]", SplitToArray);
  r.Add("regexp_split_to_array(text, text, text) text[]", SplitToArray);
  r.AddSet("regexp_split_to_table(text, text) setof text", SplitToTable);
  r.AddSet("regexp_split_to_table(text, text, text) setof text", SplitToTable);
  r.Add("regexp_count(text, text) int4", RegexpCount);
  r.Add("regexp_count(text, text, int4) int4", RegexpCount);
  r.Add("regexp_count(text, text, int4, text) int4", RegexpCount);
  r.Add("regexp_instr(text, text) int4", RegexpInstr);
  r.Add("regexp_instr(text, text, int4) int4", RegexpInstr);
  r.Add("regexp_instr(text, text, int4, int4) int4", RegexpInstr);
  r.Add("regexp_instr(text, text, int4, int4, int4) int4", RegexpInstr);
  r.Add("regexp_instr(text, text, int4, int4, int4, text) int4", RegexpInstr);
  r.Add("regexp_instr(text, text, int4, int4, int4, text, int4) int4", RegexpInstr);
  r.Add("regexp_substr(text, text) text", RegexpSubstr);
  r.Add("regexp_substr(text, text, int4) text", RegexpSubstr);
  r.Add("regexp_substr(text, text, int4, int4) text", RegexpSubstr);
  r.Add("regexp_substr(text, text, int4, int4, text) text", RegexpSubstr);
  r.Add("regexp_substr(text, text, int4, int4, text, int4) text", RegexpSubstr);
  r.Add(
      "substring(text, text) text",
      CELLAR_SCALAR { return SubstringRegex(context, call, a[0].bytes(), a[1].bytes()); });
  r.Add(
      "substring(text, text, text) text", CELLAR_SCALAR {
        return SubstringSimilar(context, call, a[0].bytes(), a[1].bytes(), a[2].bytes());
      });
  r.Add("similar_to_escape(text) text", SimilarEscape);
  r.Add("similar_to_escape(text, text) text", SimilarEscape);
  r.Add("similar_escape(text, text) text", SimilarEscape).strict = false;
}

}  // namespace cellar::sql
