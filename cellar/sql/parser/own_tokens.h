// The tokens of a text, one statement at a time, for the grammar that is Cellar's own. Private to
// the layer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/sql/parser/scan.h"

namespace cellar::sql {

// The tokens of one statement.
class Tokens {
 public:
  explicit Tokens(std::string* text) : text_(text) {}

  // Takes the next statement; false at the end of the text.
  bool Read() {
    tokens_.clear();
    if (ended_) return false;
    while (true) {
      const ScanToken token = NextToken(*text_, pos_);
      pos_ = token.end;
      if (token.kind == ScanKind::kEnd) ended_ = true;
      if (ended_ || (token.kind == ScanKind::kSymbol && (*text_)[token.begin] == ';')) return true;
      tokens_.push_back(token);
    }
  }

  size_t size() const { return tokens_.size(); }
  size_t begin(size_t at) const { return tokens_[at].begin; }
  bool IsWord(size_t at, std::string_view word) const {
    return at < size() && tokens_[at].kind == ScanKind::kWord && EqualsWord(TextOf(at), word);
  }
  bool IsName(size_t at) const {
    return at < size() && !tokens_[at].unterminated &&
           (tokens_[at].kind == ScanKind::kWord || tokens_[at].kind == ScanKind::kQuotedName);
  }
  bool IsSymbol(size_t at, std::string_view any_of) const {
    return at < size() && tokens_[at].kind == ScanKind::kSymbol &&
           any_of.find((*text_)[begin(at)]) != std::string_view::npos;
  }
  // A name as PostgreSQL folds and cuts it.
  std::string NameOf(size_t at) const {
    std::string name = WholeNameOf(at);
    if (name.size() <= kMaxNameBytes) return name;
    size_t end = kMaxNameBytes;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
    name.resize(end);
    return name;
  }
  bool IsNumber(size_t at) const { return at < size() && tokens_[at].kind == ScanKind::kNumber; }
  bool IsString(size_t at) const {
    return at < size() && tokens_[at].kind == ScanKind::kString && TextOf(at)[0] == '\'';
  }
  std::string StringOf(size_t at) const {
    std::string value;
    const std::string_view text = TextOf(at);
    for (size_t i = 1; i + 1 < text.size(); ++i) {
      if (text[i] == '\'') ++i;
      value += text[i];
    }
    return value;
  }
  std::string_view TextOf(size_t at) const {
    return std::string_view(*text_).substr(begin(at), tokens_[at].end - begin(at));
  }
  void OverwriteAll(std::string_view with) {
    for (size_t at = 0; at < size(); ++at) Overwrite(at, at == 0 ? with : "");
  }
  void Blank(size_t from, size_t to) {
    for (size_t at = from; at < to; ++at) Overwrite(at, "");
  }
  void Overwrite(size_t at, std::string_view with) {
    const auto start = text_->begin() + static_cast<ptrdiff_t>(begin(at));
    std::fill(start, start + static_cast<ptrdiff_t>(tokens_[at].end - begin(at)), ' ');
    std::copy(with.begin(), with.end(), start);
  }

 private:
  static constexpr size_t kMaxNameBytes = 63;

  std::string WholeNameOf(size_t at) const {
    std::string name;
    const std::string_view text = TextOf(at);
    if (tokens_[at].kind == ScanKind::kQuotedName) {
      for (size_t i = 1; i + 1 < text.size(); ++i) {
        if (text[i] == '"') ++i;
        name += text[i];
      }
      return name;
    }
    for (char c : text) name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return name;
  }

  std::string* text_;
  std::vector<ScanToken> tokens_;
  size_t pos_ = 0;
  bool ended_ = false;
};

}  // namespace cellar::sql
