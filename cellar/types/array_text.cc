// Arrays as text ('{1,2,NULL,"a b"}') and in PostgreSQL's binary form.
#include <algorithm>

#include "cellar/base/interrupt.h"
#include "cellar/base/sqlstate.h"
#include "cellar/types/array.h"

namespace cellar {
namespace {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool IsNullWord(std::string_view text) {
  return text.size() == 4 && (text[0] | 0x20) == 'n' && (text[1] | 0x20) == 'u' &&
         (text[2] | 0x20) == 'l' && (text[3] | 0x20) == 'l';
}

// Reads an array literal by recursive descent over its braces.
class ArrayReader {
 public:
  ArrayReader(std::string_view text, Type element, const FormatSettings& settings, Arena* arena)
      : text_(text), element_(element), settings_(settings), arena_(arena), builder_(element) {}

  Result<std::string_view> Read() {
    std::vector<int32_t> declared_lengths, declared_bounds;
    SkipSpaces();
    if (!AtEnd() && text_[at_] == '[') {
      CELLAR_TRY(ReadDimensions(&declared_lengths, &declared_bounds));
    }
    if (AtEnd() || text_[at_] != '{') {
      return Malformed(declared_lengths.empty()
                           ? "Array value must start with \"{\" or dimension information."
                           : "Array contents must start with \"{\".");
    }
    CELLAR_TRY(ReadBraces(0));
    SkipSpaces();
    if (!AtEnd()) return Malformed("Junk after closing right brace.");
    if (builder_.size() == 0) {
      if (!declared_lengths.empty()) {
        return Malformed("Specified array dimensions do not match array contents.");
      }
      return builder_.Finish(arena_);
    }
    if (!declared_lengths.empty() && declared_lengths != lengths_) {
      return Malformed("Specified array dimensions do not match array contents.");
    }
    return builder_.Finish(lengths_, declared_bounds, arena_);
  }

 private:
  bool AtEnd() const { return at_ == text_.size(); }
  void SkipSpaces() {
    while (!AtEnd() && IsSpace(text_[at_])) ++at_;
  }
  Status Malformed(std::string_view detail) const {
    return SqlError(Code::kInvalid, sqlstate::kInvalidTextRepresentation,
                    "malformed array literal: \"{}\"", text_)
        .WithDetail(std::string(detail));
  }

  bool ReadInt(int64_t* out) {
    bool negative = false;
    if (!AtEnd() && (text_[at_] == '-' || text_[at_] == '+')) negative = text_[at_++] == '-';
    const size_t first = at_;
    int64_t value = 0;
    while (!AtEnd() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - first < 11) {
      value = value * 10 + (text_[at_++] - '0');
    }
    *out = negative ? -value : value;
    return at_ != first;
  }

  // "[1:2][3:5]=".
  Status ReadDimensions(std::vector<int32_t>* lengths, std::vector<int32_t>* bounds) {
    while (!AtEnd() && text_[at_] == '[') {
      ++at_;
      if (lengths->size() == kMaxArrayDimensions) return TooManyDimensions(kMaxArrayDimensions + 1);
      int64_t lower = 1, upper;
      if (!ReadInt(&upper))
        return Malformed("\"[\" must introduce explicitly-specified array dimensions.");
      if (!AtEnd() && text_[at_] == ':') {
        ++at_;
        lower = upper;
        if (!ReadInt(&upper)) return Malformed("Missing array dimension value.");
      }
      if (AtEnd() || text_[at_] != ']') return Malformed("Missing \"]\" after array dimensions.");
      ++at_;
      if (upper < lower) {
        return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                        "upper bound cannot be less than lower bound");
      }
      if (upper > INT32_MAX - 1 || lower < INT32_MIN ||
          upper - lower >= static_cast<int64_t>(kMaxArrayElements)) {
        return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                        "array size exceeds the maximum allowed ({})", kMaxArrayElements);
      }
      lengths->push_back(static_cast<int32_t>(upper - lower + 1));
      bounds->push_back(static_cast<int32_t>(lower));
      SkipSpaces();
    }
    if (AtEnd() || text_[at_] != '=') return Malformed("Missing \"=\" after array dimensions.");
    ++at_;
    SkipSpaces();
    return Status();
  }

  Status TooManyDimensions(int count) const {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "number of array dimensions ({}) exceeds the maximum allowed ({})", count,
                    kMaxArrayDimensions);
  }

  // At "{". Fills lengths_[depth] from the first group at this depth and checks the others.
  Status ReadBraces(size_t depth) {
    if (depth >= kMaxArrayDimensions) return TooManyDimensions(static_cast<int>(depth) + 1);
    ++at_;
    if (lengths_.size() == depth) {
      if (leaf_known_) return Mismatch();
      lengths_.push_back(-1);
    }
    int32_t count = 0;
    SkipSpaces();
    if (!AtEnd() && text_[at_] == '}') {
      ++at_;
      if (depth > 0) return Malformed("Unexpected \"}\" character.");
      lengths_.clear();
      return Status();
    }
    while (true) {
      SkipSpaces();
      if (AtEnd()) return Malformed("Unexpected end of input.");
      if (text_[at_] == '{') {
        if (leaf_known_ && lengths_.size() == depth + 1) {
          return Malformed("Unexpected \"{\" character.");
        }
        CELLAR_TRY(ReadBraces(depth + 1));
      } else {
        if (lengths_.size() != depth + 1) return Malformed("Unexpected array element.");
        leaf_known_ = true;
        CELLAR_TRY(ReadElement());
      }
      ++count;
      SkipSpaces();
      if (AtEnd()) return Malformed("Unexpected end of input.");
      if (text_[at_] == ',') {
        ++at_;
      } else if (text_[at_] == '}') {
        ++at_;
        break;
      } else {
        return Malformed("Unexpected array element.");
      }
    }
    if (lengths_[depth] == -1) lengths_[depth] = count;
    if (lengths_[depth] != count) return Mismatch();
    return Status();
  }
  Status Mismatch() const {
    return Malformed("Multidimensional arrays must have sub-arrays with matching dimensions.");
  }
  Status ReadElement() {
    if (text_[at_] == '"') return ReadQuoted();
    std::string copy;  // only used when there is an escape
    bool escaped = false;
    const size_t first = at_;
    size_t solid_end = at_;  // blanks after it are not part of the element
    while (!AtEnd()) {
      const char c = text_[at_];
      if (c == ',' || c == '}') break;
      if (c == '{' || c == '"') {
        return Malformed(c == '{' ? "Unexpected \"{\" character." : "Unexpected array element.");
      }
      if (c == '\\') {
        if (!escaped) copy = text_.substr(first, at_ - first);
        escaped = true;
        if (++at_ == text_.size()) return Malformed("Unexpected end of input.");
        copy.push_back(text_[at_++]);
        solid_end = at_;
        escaped_end_ = copy.size();
        continue;
      }
      if (escaped) copy.push_back(c);
      ++at_;
      if (!IsSpace(c)) {
        solid_end = at_;
        escaped_end_ = copy.size();
      }
    }
    if (AtEnd()) return Malformed("Unexpected end of input.");
    if (solid_end == first) {
      return Malformed(text_[at_] == ',' ? "Unexpected \",\" character."
                                         : "Unexpected \"}\" character.");
    }
    if (escaped) {
      copy.resize(escaped_end_);
      return AddElement(copy);
    }
    std::string_view body = text_.substr(first, solid_end - first);
    if (IsNullWord(body)) {
      return builder_.TryAdd(Datum());
    }
    return AddElement(body);
  }

  Status ReadQuoted() {
    std::string value;
    for (++at_; !AtEnd() && text_[at_] != '"'; ++at_) {
      PollSteps();
      if (text_[at_] == '\\' && ++at_ == text_.size()) break;
      value.push_back(text_[at_]);
    }
    if (AtEnd()) return Malformed("Unexpected end of input.");
    ++at_;
    SkipSpaces();
    if (!AtEnd() && text_[at_] != ',' && text_[at_] != '}') {
      return Malformed("Unexpected array element.");
    }
    return AddElement(value);
  }

  Status AddElement(std::string_view value) {
    PollBytes(value.size());
    if (builder_.size() >= kMaxArrayElements) {
      return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                      "array size exceeds the maximum allowed ({})", kMaxArrayElements);
    }
    CELLAR_TRY_ASSIGN(Datum datum, ParseDatum(value, element_, settings_, arena_));
    return builder_.TryAdd(datum);
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t escaped_end_ = 0;
  Type element_;
  const FormatSettings& settings_;
  Arena* arena_;
  ArrayBuilder builder_;
  std::vector<int32_t> lengths_;  // -1 while the first group of that depth is being read
  bool leaf_known_ = false;       // an element was seen, so the number of dimensions is fixed
};

bool NeedsQuotes(std::string_view text) {
  if (text.empty() || IsNullWord(text)) return true;
  for (char c : text) {
    if (c == '"' || c == '\\' || c == '{' || c == '}' || c == ',' || IsSpace(c)) return true;
  }
  return false;
}

class ArrayWriter {
 public:
  ArrayWriter(const ArrayView& view, Type element, const FormatSettings& settings, std::string* out)
      : view_(view), element_(element), settings_(settings), out_(out) {}

  void Write() {
    if (view_.dimensions() == 0) {
      out_->append("{}");
      return;
    }
    bool bounds = false;
    for (int d = 0; d < view_.dimensions(); ++d) bounds |= view_.lower_bound(d) != 1;
    if (bounds) {
      for (int d = 0; d < view_.dimensions(); ++d) {
        out_->append(fmt::format("[{}:{}]", view_.lower_bound(d),
                                 int64_t{view_.lower_bound(d)} + view_.length(d) - 1));
      }
      out_->push_back('=');
    }
    WriteGroup(0);
  }

 private:
  void WriteGroup(int dimension) {
    out_->push_back('{');
    for (int32_t i = 0; i < view_.length(dimension); ++i) {
      if (out_->size() > settings_.max_text_bytes) return;
      if (i > 0) out_->push_back(',');
      if (dimension + 1 < view_.dimensions())
        WriteGroup(dimension + 1);
      else
        WriteElement(next_++);
    }
    out_->push_back('}');
  }

  void WriteElement(size_t i) {
    if (view_.IsNull(i)) {
      out_->append("NULL");
      return;
    }
    const size_t start = out_->size();
    AppendDatumText(view_.Get(i), element_, settings_, out_);
    PollBytes(out_->size() - start);
    if (!NeedsQuotes(std::string_view(*out_).substr(start))) return;
    const std::string plain = out_->substr(start);
    out_->resize(start);
    out_->push_back('"');
    InPieces(plain, [&](std::string_view piece) {
      for (char c : piece) {
        if (c == '"' || c == '\\') out_->push_back('\\');
        out_->push_back(c);
      }
    });
    out_->push_back('"');
  }

  const ArrayView& view_;
  Type element_;
  const FormatSettings& settings_;
  std::string* out_;
  size_t next_ = 0;
};

void AppendBigEndian(uint32_t value, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift));
}
bool TakeBigEndian(std::string_view* input, uint32_t* out) {
  if (input->size() < 4) return false;
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = (value << 8) | static_cast<uint8_t>((*input)[i]);
  input->remove_prefix(4);
  *out = value;
  return true;
}

Status ShortMessage() {
  return SqlError(Code::kInvalid, sqlstate::kProtocolViolation,
                  "insufficient data left in message");
}

}  // namespace

Result<std::string_view> ParseArray(std::string_view text, Type element,
                                    const FormatSettings& settings, Arena* arena) {
  return ArrayReader(text, element, settings, arena).Read();
}

void AppendArrayText(std::string_view bytes, Type element, const FormatSettings& settings,
                     std::string* out) {
  ArrayView view(bytes, element);
  ArrayWriter(view, element, settings, out).Write();
}

void AppendArrayBinary(std::string_view bytes, Type element, std::string* out) {
  ArrayView view(bytes, element);
  AppendBigEndian(static_cast<uint32_t>(view.dimensions()), out);
  AppendBigEndian(view.has_nulls() ? 1 : 0, out);
  AppendBigEndian(OidOf(element), out);
  for (int d = 0; d < view.dimensions(); ++d) {
    AppendBigEndian(static_cast<uint32_t>(view.length(d)), out);
    AppendBigEndian(static_cast<uint32_t>(view.lower_bound(d)), out);
  }
  for (size_t i = 0; i < view.size(); ++i) {
    const size_t length_at = out->size();
    AppendBigEndian(UINT32_MAX, out);
    PollSteps();
    if (view.IsNull(i)) continue;
    AppendDatumBinary(view.Get(i), element, out);
    const auto length = static_cast<uint32_t>(out->size() - length_at - 4);
    for (size_t k = 0; k < 4; ++k) {
      (*out)[length_at + k] = static_cast<char>(length >> (24 - 8 * k));
    }
  }
}

Result<std::string_view> ParseArrayBinary(std::string_view bytes, Type element, Arena* arena) {
  uint32_t dimensions, flags, oid;
  if (!TakeBigEndian(&bytes, &dimensions) || !TakeBigEndian(&bytes, &flags) ||
      !TakeBigEndian(&bytes, &oid)) {
    return ShortMessage();
  }
  if (dimensions > kMaxArrayDimensions) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "number of array dimensions ({}) exceeds the maximum allowed ({})", dimensions,
                    kMaxArrayDimensions);
  }
  if (flags > 1) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidBinaryRepresentation, "invalid array flags");
  }
  if (oid != OidOf(element)) {
    return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                    "binary data has array element type {} instead of expected {}", oid,
                    OidOf(element));
  }
  std::vector<int32_t> lengths, bounds;
  uint64_t count = dimensions == 0 ? 0 : 1;
  for (uint32_t d = 0; d < dimensions; ++d) {
    uint32_t length, bound;
    if (!TakeBigEndian(&bytes, &length) || !TakeBigEndian(&bytes, &bound)) return ShortMessage();
    if (length > kMaxArrayElements || (count *= length) > kMaxArrayElements) {
      return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                      "array size exceeds the maximum allowed ({})", kMaxArrayElements);
    }
    lengths.push_back(static_cast<int32_t>(length));
    bounds.push_back(static_cast<int32_t>(bound));
  }
  ArrayBuilder builder(element);
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t length;
    if (!TakeBigEndian(&bytes, &length)) return ShortMessage();
    if (length == UINT32_MAX) {
      CELLAR_TRY(builder.TryAdd(Datum()));
      continue;
    }
    if (length > bytes.size()) return ShortMessage();
    CELLAR_TRY_ASSIGN(Datum datum, ParseDatumBinary(bytes.substr(0, length), element, arena));
    CELLAR_TRY(builder.TryAdd(datum));
    bytes.remove_prefix(length);
  }
  if (!bytes.empty()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidBinaryRepresentation,
                    "improper binary format in array");
  }
  CELLAR_TRY(CheckArrayBounds(lengths, bounds));
  return builder.Finish(lengths, bounds, arena);
}

}  // namespace cellar
