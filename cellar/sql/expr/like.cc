// Pieces: the first is tied to the start, the last to the end, those between are found leftmost,
// which is enough because a percent sign takes any text.
#include "cellar/sql/expr/like.h"

#include "cellar/base/interrupt.h"
#include "cellar/base/sqlstate.h"
#include "cellar/sql/expr/registry.h"
#include "cellar/sql/expr/text_util.h"

namespace cellar::sql {

LikePattern::LikePattern(std::string_view pattern, bool ignore_case) : ignore_case_(ignore_case) {
  std::string folded;
  if (ignore_case) {
    AppendLower(pattern, &folded);
    pattern = folded;
  }
  pieces_.emplace_back();
  for (size_t pos = 0; pos < pattern.size();) {
    char c = pattern[pos];
    Piece& piece = pieces_.back();
    if (c == '%') {
      pieces_.emplace_back();
      ++pos;
      continue;
    }
    ++piece.chars;
    if (c == '_') {
      piece.items.push_back({true, {}});
      ++pos;
      continue;
    }
    if (c == '\\') {
      if (++pos == pattern.size()) {
        bad_ = true;
        break;
      }
    }
    size_t size = CharSize(pattern[pos]);
    if (piece.items.empty() || piece.items.back().any) piece.items.emplace_back();
    piece.items.back().literal += pattern.substr(pos, size);
    pos += size;
  }
  for (Piece& piece : pieces_) {
    piece.plain = piece.items.empty() || (piece.items.size() == 1 && !piece.items[0].any);
  }
}

size_t LikePattern::MatchAt(const Piece& piece, std::string_view text, size_t pos) {
  for (const Item& item : piece.items) {
    PollBytes(item.literal.size());
    if (item.any) {
      if (pos >= text.size()) return std::string_view::npos;
      pos += CharSize(text[pos]);
    } else {
      if (text.compare(pos, item.literal.size(), item.literal) != 0) return std::string_view::npos;
      pos += item.literal.size();
    }
  }
  return pos <= text.size() ? pos : std::string_view::npos;
}

bool LikePattern::MatchFolded(std::string_view text) const {
  constexpr size_t npos = std::string_view::npos;
  size_t pos = MatchAt(pieces_.front(), text, 0);
  if (pos == npos) return false;
  if (pieces_.size() == 1) return pos == text.size();
  for (size_t i = 1; i + 1 < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    if (piece.items.empty()) continue;
    if (piece.plain) {
      const size_t found = FindText(text, piece.items[0].literal, pos);
      if (found == npos) return false;
      pos = found + piece.items[0].literal.size();
      continue;
    }
    size_t end = npos;
    while (pos <= text.size() && (end = MatchAt(piece, text, pos)) == npos) {
      if (pos >= text.size()) return false;
      pos += CharSize(text[pos]);
    }
    if (end == npos) return false;
    pos = end;
  }
  const Piece& last = pieces_.back();
  if (last.items.empty()) return true;
  if (last.plain) {
    const std::string& tail = last.items[0].literal;
    return text.size() >= pos + tail.size() && text.ends_with(tail);
  }
  size_t start = text.size();
  for (size_t i = 0; i < last.chars; ++i) {
    if (start <= pos) return false;
    do --start;
    while (start > pos && IsContinuation(text[start]));
  }
  return MatchAt(last, text, start) == text.size();
}

Result<bool> LikePattern::Matches(std::string_view text) const {
  if (bad_) {
    // It is an error only where the match arrives at the escape with text left.
    if (pieces_.size() == 1) {
      size_t end = MatchAt(pieces_[0], text, 0);
      if (end == std::string_view::npos || end == text.size()) return false;
    }
    return SqlError(Code::kInvalid, sqlstate::kInvalidEscapeSequence,
                    "LIKE pattern must not end with escape character");
  }
  if (!ignore_case_) return MatchFolded(text);
  std::string folded;
  AppendLower(text, &folded);
  return MatchFolded(folded);
}

LikePrefixResult LikePrefix(std::string_view pattern) {
  LikePrefixResult out;
  for (size_t pos = 0; pos < pattern.size(); ++pos) {
    char c = pattern[pos];
    if (c == '%' || c == '_') {
      out.any_suffix = c == '%' && pos + 1 == pattern.size();
      return out;
    }
    if (c == '\\') {
      if (++pos == pattern.size()) return out;
      c = pattern[pos];
    }
    out.prefix += c;
  }
  out.exact = true;
  return out;
}

namespace {

const LikePattern& Compiled(EvalContext& context, const Expr& call, std::string_view pattern,
                            bool ignore_case) {
  // The first character says whose object it is: addresses of calls are reused.
  const char tag = ignore_case ? 'l' : 'L';
  EvalContext::CallCache& cache = context.cache(&call);
  if (cache.key.empty() || cache.key[0] != tag ||
      std::string_view(cache.key).substr(1) != pattern) {
    cache.object = std::make_shared<LikePattern>(pattern, ignore_case);
    cache.key = tag;
    cache.key += pattern;
  }
  return *static_cast<const LikePattern*>(cache.object.get());
}

template <bool ignore_case, bool negated>
Result<Datum> Like(EvalContext& context, const Expr& call, Args a) {
  const LikePattern& pattern = Compiled(context, call, a[1].bytes(), ignore_case);
  CELLAR_TRY_ASSIGN(bool matches, pattern.Matches(a[0].bytes()));
  return Datum::Bool(matches != negated);
}

template <bool ignore_case, bool negated>
Result<Datum> LikeBpchar(EvalContext& context, const Expr& call, Args a) {
  std::string text = Padded(a[0].bytes(), call.args[0]->type);
  Datum padded[2] = {Datum::Bytes(text), a[1]};
  return Like<ignore_case, negated>(context, call, Args(padded, 2));
}

template <bool ignore_case, bool negated>
Status LikeVector(EvalContext& context, const Expr& call, std::span<const ColumnVector* const> args,
                  Selection rows, ColumnVector* result) {
  const std::string_view* texts = args[0]->bytes();
  const std::string_view* patterns = args[1]->bytes();
  const LikePattern* pattern = nullptr;
  std::string_view last;
  for (size_t i = 0; i < rows.count; ++i) {
    uint32_t row = rows[i];
    if (result->nulls()[row] != 0) continue;
    if (pattern == nullptr || patterns[row] != last) {
      last = patterns[row];
      pattern = &Compiled(context, call, last, ignore_case);
    }
    CELLAR_TRY_ASSIGN(bool matches, pattern->Matches(texts[row]));
    result->ints()[row] = matches != negated;
  }
  return Status();
}

// bytea LIKE: by bytes, so '_' is one byte; the text matcher sees bytes as characters when they are
// escaped into Latin-1 letters of UTF-8.
std::string Widen(std::string_view bytes) {
  std::string out;
  for (char c : bytes) AppendChar(static_cast<uint8_t>(c), &out);
  return out;
}
template <bool negated>
Result<Datum> LikeBytea(EvalContext&, const Expr&, Args a) {
  CELLAR_TRY_ASSIGN(bool matches,
                    LikePattern(Widen(a[1].bytes()), false).Matches(Widen(a[0].bytes())));
  return Datum::Bool(matches != negated);
}

Result<Datum> LikeEscapeBytea(EvalContext& context, const Expr&, Args a) {
  std::string_view pattern = a[0].bytes(), escape = a[1].bytes();
  if (escape.size() > 1) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidEscapeSequence, "invalid escape string")
        .WithHint("Escape string must be empty or one character.");
  }
  if (escape == "\\") return a[0];
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (!escape.empty() && pattern[i] == escape[0]) {
      out += '\\';
      if (++i < pattern.size()) out += pattern[i];
    } else {
      if (pattern[i] == '\\') out += '\\';
      out += pattern[i];
    }
  }
  return TextOf(context, out);
}

// The pattern with its escape character replaced by the backslash.
Result<Datum> LikeEscape(EvalContext& context, const Expr&, Args a) {
  std::string_view pattern = a[0].bytes(), escape = a[1].bytes();
  if (!escape.empty() && CountChars(escape) != 1) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidEscapeSequence, "invalid escape string")
        .WithHint("Escape string must be empty or one character.");
  }
  if (escape == "\\") return a[0];
  std::string out;
  for (size_t pos = 0; pos < pattern.size();) {
    size_t size = CharSize(pattern[pos]);
    std::string_view c = pattern.substr(pos, size);
    pos += size;
    if (!escape.empty() && c == escape) {
      out += '\\';
      if (pos < pattern.size()) {
        size = CharSize(pattern[pos]);
        out += pattern.substr(pos, size);
        pos += size;
      }
    } else if (c == "\\") {
      out += "\\\\";
    } else {
      out += c;
    }
  }
  return TextOf(context, out);
}

}  // namespace

void RegisterRegex(Registry& r);

void RegisterPatterns(Registry& r) {
  for (const char* signature : {"~~(text, text) bool", "~~(name, text) bool"}) {
    r.Add(signature, Like<false, false>).vector = LikeVector<false, false>;
  }
  r.Add("~~(bpchar, text) bool", LikeBpchar<false, false>);
  for (const char* signature : {"!~~(text, text) bool", "!~~(name, text) bool"}) {
    r.Add(signature, Like<false, true>).vector = LikeVector<false, true>;
  }
  r.Add("!~~(bpchar, text) bool", LikeBpchar<false, true>);
  for (const char* signature : {"~~*(text, text) bool", "~~*(name, text) bool"}) {
    r.Add(signature, Like<true, false>).vector = LikeVector<true, false>;
  }
  r.Add("~~*(bpchar, text) bool", LikeBpchar<true, false>);
  for (const char* signature : {"!~~*(text, text) bool", "!~~*(name, text) bool"}) {
    r.Add(signature, Like<true, true>).vector = LikeVector<true, true>;
  }
  r.Add("!~~*(bpchar, text) bool", LikeBpchar<true, true>);
  r.Add("~~(bytea, bytea) bool", LikeBytea<false>);
  r.Add("!~~(bytea, bytea) bool", LikeBytea<true>);
  r.Add("like(text, text) bool", Like<false, false>);
  r.Add("notlike(text, text) bool", Like<false, true>);
  r.Add("like(bytea, bytea) bool", LikeBytea<false>);
  r.Add("notlike(bytea, bytea) bool", LikeBytea<true>);
  r.Add("like_escape(text, text) text", LikeEscape);
  r.Add("like_escape(bytea, bytea) bytea", LikeEscapeBytea);
  RegisterRegex(r);
}

}  // namespace cellar::sql
