#include "cellar/sql/parser/splitter.h"

#include <algorithm>

#include "cellar/sql/parser/scan.h"

namespace cellar::sql {

namespace {

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

void StatementSplitter::Clear() {
  buffer_.clear();
  tag_.clear();
  heads_.clear();
  at_ = first_ = last_ = 0;
  begun_ = stopped_ = false;
  mode_ = Mode::kNormal;
  comment_depth_ = parens_ = begins_ = 0;
}

std::string StatementSplitter::Statement(size_t end) const {
  return buffer_.substr(first_, end - first_);
}

std::string StatementSplitter::TakeRest() {
  // An open literal or comment reaches to the end.
  std::string out;
  if (begun_) out = Statement(mode_ == Mode::kNormal ? last_ : buffer_.size());
  Clear();
  return out;
}

SplitState StatementSplitter::state() const {
  switch (mode_) {
    case Mode::kQuote:
    case Mode::kEscapeQuote: return SplitState::kSingleQuote;
    case Mode::kName: return SplitState::kDoubleQuote;
    case Mode::kDollar: return SplitState::kDollarQuote;
    case Mode::kBlockComment: return SplitState::kComment;
    case Mode::kNormal: break;
  }
  if (parens_ > 0) return SplitState::kParenthesis;
  return begun_ ? SplitState::kStatement : SplitState::kEmpty;
}

void StatementSplitter::Word(std::string_view word) {
  const bool function_head =
      heads_ == "cf" || heads_ == "cp" || heads_ == "corf" || heads_ == "corp";
  if (function_head && parens_ == 0) {
    if (EqualsWord(word, "begin") || (begins_ > 0 && EqualsWord(word, "case"))) ++begins_;
    if (begins_ > 0 && EqualsWord(word, "end")) --begins_;
    return;
  }
  if (heads_.size() >= 4) return;
  // Only an unbroken run of these words from the start of the statement counts.
  for (std::string_view head : {"create", "or", "replace", "function", "procedure"}) {
    if (EqualsWord(word, head)) {
      heads_ += head[0];
      return;
    }
  }
  heads_ = "----";
}

// Inside a literal or a comment: goes on to its end.
void StatementSplitter::StepInside() {
  const std::string_view text = buffer_;
  if (mode_ == Mode::kBlockComment) {
    const size_t next = text.find_first_of("*/", at_);
    if (next == std::string_view::npos) {
      at_ = text.size();
    } else if (text.substr(next, 2) == "*/") {
      at_ = next + 2;
      if (--comment_depth_ == 0) mode_ = Mode::kNormal;
    } else if (text.substr(next, 2) == "/*") {
      at_ = next + 2;
      ++comment_depth_;
    } else {
      at_ = next + 1;
    }
    return;
  }
  if (mode_ == Mode::kDollar) {
    // The closing tag may have begun in the text fed before; it holds no newline, so not across
    // lines.
    const size_t close = text.find(tag_, at_);
    at_ = close == std::string_view::npos ? text.size() : close + tag_.size();
    if (close != std::string_view::npos) mode_ = Mode::kNormal;
  } else {
    const char quote = mode_ == Mode::kName ? '"' : '\'';
    const char escape = mode_ == Mode::kEscapeQuote ? '\\' : quote;
    while (at_ < text.size() && text[at_] != quote && text[at_] != escape) ++at_;
    if (at_ < text.size() && text[at_] != quote) {
      at_ = std::min(at_ + 2, text.size());
    } else if (at_ < text.size()) {
      ++at_;
      if (at_ < text.size() && text[at_] == quote) {
        ++at_;  // doubled: still inside
      } else {
        mode_ = Mode::kNormal;
      }
    }
  }
  last_ = at_;
}

bool StatementSplitter::Step() {
  const std::string_view text = buffer_;
  const char c = text[at_];
  if (IsBlank(c)) {
    ++at_;
    return false;
  }
  if (text.substr(at_, 2) == "--") {
    at_ = std::min(text.find_first_of("\r\n", at_), text.size());
    return false;
  }
  if (text.substr(at_, 2) == "/*") {
    at_ += 2;
    mode_ = Mode::kBlockComment;
    comment_depth_ = 1;
    return false;
  }
  if (c == ';' && parens_ == 0 && begins_ == 0) return true;
  if (c == '\\' && commands_) {
    stopped_ = true;
    return false;
  }
  if (!begun_) {
    begun_ = true;
    first_ = at_;
  }
  if (c == '\'' || c == '"') {
    mode_ = c == '"' ? Mode::kName : Mode::kQuote;
    ++at_;
  } else if (const size_t tag = DollarTagLength(text, at_); tag != 0) {
    tag_ = std::string(text.substr(at_, tag));
    mode_ = Mode::kDollar;
    at_ += tag;
  } else if (IsWordByte(c)) {
    const size_t begin = at_;
    while (at_ < text.size() && IsWordByte(text[at_])) ++at_;
    const std::string_view word = text.substr(begin, at_ - begin);
    if (at_ < text.size() && text[at_] == '\'' && EqualsWord(word, "e")) {
      mode_ = Mode::kEscapeQuote;
      ++at_;
    } else {
      Word(word);
    }
  } else {
    if (c == '(') ++parens_;
    if (c == ')' && parens_ > 0) --parens_;
    ++at_;
  }
  last_ = at_;
  return false;
}

std::vector<std::string> StatementSplitter::Feed(std::string_view text) {
  std::vector<std::string> out;
  backslash_.clear();
  stopped_ = false;
  buffer_ += text;
  size_t consumed = 0;  // bytes of complete statements at the front of the buffer
  while (at_ < buffer_.size() && !stopped_) {
    if (mode_ != Mode::kNormal) {
      StepInside();
    } else if (Step()) {
      if (begun_) out.push_back(Statement(last_));
      consumed = ++at_;
      begun_ = false;
      parens_ = begins_ = 0;
      heads_.clear();
    }
  }
  if (stopped_) {
    size_t end = std::min(buffer_.find('\n', at_), buffer_.size());
    backslash_ = buffer_.substr(at_ + 1, end - at_ - 1);
    buffer_.resize(at_);
  }
  buffer_.erase(0, consumed);
  at_ -= consumed;
  if (begun_) {
    first_ -= consumed;
    last_ -= consumed;
  }
  return out;
}

SplitText SplitStatements(std::string_view text) {
  StatementSplitter splitter;
  SplitText out;
  out.statements = splitter.Feed(text);
  out.rest = std::string(splitter.pending());
  out.state = splitter.state();
  return out;
}

}  // namespace cellar::sql
