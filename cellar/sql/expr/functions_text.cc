// Functions of strings and of bytea.
#include <fmt/format.h>
#include <openssl/evp.h>
#include <unicode/normalizer2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "cellar/base/interrupt.h"
#include "cellar/sql/expr/registry.h"
#include "cellar/sql/expr/text_util.h"
#include "cellar/types/array.h"

namespace cellar::sql {
namespace {

Status InvalidParameter(std::string message) {
  return Status(Code::kInvalid, std::move(message)).WithSqlState(sqlstate::kInvalidParameterValue);
}

// substring(s from start for length) in units (characters or bytes) that `cut` knows.
struct Range {
  int64_t start;  // from 0
  int64_t end;
};
Result<Range> SubstringRange(Args a) {
  int64_t start = a[1].int_value() - 1;
  if (a.size() == 2) return Range{std::max<int64_t>(start, 0), INT64_MAX};
  int64_t length = a[2].int_value();
  if (length < 0) {
    return SqlError(Code::kInvalid, sqlstate::kSubstringError,
                    "negative substring length not allowed");
  }
  int64_t end = start + length;  // both fit 32 bits
  return Range{std::max<int64_t>(start, 0), std::max<int64_t>(end, 0)};
}

Result<Datum> Substring(EvalContext&, const Expr&, Args a) {
  CELLAR_TRY_ASSIGN(Range range, SubstringRange(a));
  std::string_view text = a[0].bytes();
  if (range.end <= range.start) return Datum::Bytes("");
  size_t from = BytesOfChars(text, static_cast<size_t>(range.start));
  text.remove_prefix(from);
  if (range.end != INT64_MAX) {
    text = text.substr(0, BytesOfChars(text, static_cast<size_t>(range.end - range.start)));
  }
  return Datum::Bytes(text);
}
Result<Datum> SubstringBytea(EvalContext&, const Expr&, Args a) {
  CELLAR_TRY_ASSIGN(Range range, SubstringRange(a));
  std::string_view bytes = a[0].bytes();
  if (range.end <= range.start || static_cast<size_t>(range.start) >= bytes.size()) {
    return Datum::Bytes("");
  }
  return Datum::Bytes(
      bytes.substr(static_cast<size_t>(range.start), static_cast<size_t>(range.end - range.start)));
}

Result<Datum> Left(EvalContext&, const Expr&, Args a) {
  std::string_view text = a[0].bytes();
  int64_t count = a[1].int_value();
  if (count < 0) count = std::max<int64_t>(0, static_cast<int64_t>(CountChars(text)) + count);
  return Datum::Bytes(text.substr(0, BytesOfChars(text, static_cast<size_t>(count))));
}
Result<Datum> Right(EvalContext&, const Expr&, Args a) {
  std::string_view text = a[0].bytes();
  int64_t count = a[1].int_value(), size = static_cast<int64_t>(CountChars(text));
  int64_t skip = count < 0 ? std::min(size, -count) : std::max<int64_t>(0, size - count);
  return Datum::Bytes(text.substr(BytesOfChars(text, static_cast<size_t>(skip))));
}

template <bool left>
Result<Datum> Pad(EvalContext& context, const Expr&, Args a) {
  const std::string_view text = a[0].bytes();
  const std::string_view fill = a.size() == 3 ? a[2].bytes() : std::string_view(" ");
  const auto length = static_cast<size_t>(std::max<int64_t>(0, a[1].int_value()));
  const size_t chars = CountChars(text);
  if (chars >= length || fill.empty()) {
    return Datum::Bytes(text.substr(0, BytesOfChars(text, length)));
  }
  // Whole fillings, then the first characters of one.
  const size_t fill_chars = CountChars(fill), missing = length - chars;
  const size_t pad_bytes =
      missing / fill_chars * fill.size() + BytesOfChars(fill, missing % fill_chars);
  CELLAR_TRY(CheckValueSize(text.size() + pad_bytes));
  char* out = context.arena()->Allocate(text.size() + pad_bytes);
  char* const pad = left ? out : out + text.size();
  for (size_t at = 0; at < pad_bytes; at += fill.size()) {
    const size_t bytes = std::min(fill.size(), pad_bytes - at);
    CELLAR_TRY(context.StepOver(bytes));
    std::memcpy(pad + at, fill.data(), bytes);
  }
  if (!text.empty()) std::memcpy(left ? out + pad_bytes : out, text.data(), text.size());
  return Datum::Bytes({out, text.size() + pad_bytes});
}

bool HasChar(std::string_view set, std::string_view c) {
  for (size_t pos = 0; pos < set.size(); pos += CharSize(set[pos])) {
    PollSteps();
    if (set.substr(pos, CharSize(set[pos])) == c) return true;
  }
  return false;
}

template <bool at_start, bool at_end>
Result<Datum> Trim(EvalContext&, const Expr&, Args a) {
  std::string_view text = a[0].bytes();
  std::string_view set = a.size() == 2 ? a[1].bytes() : std::string_view(" ");
  if (at_start) {
    while (!text.empty() && HasChar(set, text.substr(0, CharSize(text[0])))) {
      text.remove_prefix(CharSize(text[0]));
    }
  }
  if (at_end) {
    while (!text.empty()) {
      size_t start = text.size() - 1;
      while (start > 0 && IsContinuation(text[start])) --start;
      if (!HasChar(set, text.substr(start))) break;
      text = text.substr(0, start);
    }
  }
  return Datum::Bytes(text);
}
template <bool at_start, bool at_end>
Result<Datum> TrimBytea(EvalContext&, const Expr&, Args a) {
  std::string_view text = a[0].bytes();
  std::array<bool, 256> set{};
  for (char c : a[1].bytes()) set[static_cast<uint8_t>(c)] = true;
  const auto in_set = [&set](char c) { return set[static_cast<uint8_t>(c)]; };
  if (at_start) {
    while (!text.empty() && in_set(text.front())) text.remove_prefix(1);
  }
  if (at_end) {
    while (!text.empty() && in_set(text.back())) text.remove_suffix(1);
  }
  return Datum::Bytes(text);
}

Result<Datum> Position(EvalContext&, const Expr&, Args a) {  // (text, what)
  const size_t at = FindText(a[0].bytes(), a[1].bytes());
  if (at == std::string_view::npos) return Datum::Int(0);
  return Datum::Int(static_cast<int64_t>(CountChars(a[0].bytes().substr(0, at))) + 1);
}
Result<Datum> PositionBytea(EvalContext&, const Expr&, Args a) {
  const size_t at = FindText(a[0].bytes(), a[1].bytes());
  return Datum::Int(at == std::string_view::npos ? 0 : static_cast<int64_t>(at) + 1);
}

Result<Datum> Replace(EvalContext& context, const Expr&, Args a) {
  std::string_view text = a[0].bytes(), from = a[1].bytes(), to = a[2].bytes();
  constexpr size_t npos = std::string_view::npos;
  if (from.empty()) return a[0];
  const size_t first = FindText(text, from);
  if (first == npos) return a[0];
  // How large it becomes is known before any of it is made.
  size_t found = 0;
  for (size_t at = first; at != npos; at = FindText(text, from, at + from.size())) {
    ++found;
    CELLAR_TRY(context.Step());
  }
  const size_t size = text.size() - found * from.size() + found * to.size();  // at most 2^57
  CELLAR_TRY(CheckValueSize(size));
  char* const out = context.arena()->Allocate(size);
  char* end = out;
  const auto put = [&end](std::string_view piece) {
    if (!piece.empty()) std::memcpy(end, piece.data(), piece.size());
    end += piece.size();
  };
  size_t copied = 0;
  for (size_t at = first; at != npos; at = FindText(text, from, copied)) {
    CELLAR_TRY(context.StepOver(at - copied + to.size()));
    put(text.substr(copied, at - copied));
    put(to);
    copied = at + from.size();
  }
  put(text.substr(copied));
  return Datum::Bytes({out, size});
}

Result<Datum> Repeat(EvalContext& context, const Expr&, Args a) {
  const std::string_view text = a[0].bytes();
  const auto count = static_cast<size_t>(std::max<int64_t>(0, a[1].int_value()));
  const size_t size = text.size() * count;  // a text has 32 bits of size, and count 31
  CELLAR_TRY(CheckValueSize(size));
  if (size == 0) return Datum::Bytes("");
  char* out = context.arena()->Allocate(size);
  for (size_t at = 0; at < size; at += text.size()) {
    CELLAR_TRY(context.StepOver(text.size()));
    std::memcpy(out + at, text.data(), text.size());
  }
  return Datum::Bytes({out, size});
}

Result<Datum> Reverse(EvalContext& context, const Expr&, Args a) {
  const std::string_view text = a[0].bytes();
  CELLAR_TRY(CheckValueSize(text.size()));
  char* const out = context.arena()->Allocate(text.size());
  size_t end = text.size();
  for (size_t pos = 0; pos < text.size();) {
    CELLAR_TRY(context.Step());
    const size_t size = std::min(CharSize(text[pos]), text.size() - pos);
    end -= size;
    std::memcpy(out + end, text.data() + pos, size);
    pos += size;
  }
  return Datum::Bytes({out, text.size()});
}

// The parts of a text between separators, one after the other. An empty separator separates
// nothing; a null one separates all characters.
class Splitter {
 public:
  Splitter(std::string_view text, Datum separator)
      : text_(text), by_characters_(separator.is_null()) {
    if (!by_characters_) separator_ = separator.bytes();
  }
  bool Next(std::string_view* part) {
    if (done_) return false;
    size_t end = std::string_view::npos, width = 0;
    if (by_characters_) {
      end = std::min(from_ + CharSize(text_[from_]), text_.size());
      if (end == text_.size()) end = std::string_view::npos;
    } else if (!separator_.empty()) {
      end = FindText(text_, separator_, from_);
      width = separator_.size();
    }
    done_ = end == std::string_view::npos;
    *part = text_.substr(from_, done_ ? end : end - from_);
    from_ = end + width;
    return true;
  }

 private:
  std::string_view text_, separator_;
  size_t from_ = 0;
  bool by_characters_, done_ = false;
};

// Calls take(part) for each part between separators.
template <typename F>
Status Split(EvalContext& context, std::string_view text, std::string_view separator, F take) {
  std::string_view part;
  for (Splitter splitter(text, Datum::Bytes(separator)); splitter.Next(&part);) {
    CELLAR_TRY(context.StepOver(part.size()));
    CELLAR_TRY(take(part));
  }
  return Status();
}

Result<Datum> SplitPart(EvalContext& context, const Expr&, Args a) {
  int64_t n = a[2].int_value();
  if (n == 0) return InvalidParameter("field position must not be zero");
  if (n < 0) {
    int64_t parts = 0;
    CELLAR_TRY(Split(context, a[0].bytes(), a[1].bytes(), [&](std::string_view) {
      ++parts;
      return Status();
    }));
    n += parts + 1;
  }
  std::string_view found;
  int64_t at = 0;
  CELLAR_TRY(Split(context, a[0].bytes(), a[1].bytes(), [&](std::string_view part) {
    if (++at == n) found = part;
    return Status();
  }));
  return Datum::Bytes(found);
}

// The fields of string_to_array and string_to_table, which is not NULL; none of an empty text. A
// NULL separator splits characters. Borrows the arguments' bytes.
class FieldSplitter {
 public:
  explicit FieldSplitter(Args a) : splitter_(a[0].bytes(), a[1]), empty_(a[0].bytes().empty()) {
    has_null_ = a.size() == 3 && !a[2].is_null();
    if (has_null_) null_ = a[2].bytes();
  }
  bool Next(Datum* field) {
    std::string_view part;
    if (empty_ || !splitter_.Next(&part)) return false;
    *field = has_null_ && part == null_ ? Datum() : Datum::Bytes(part);
    return true;
  }

 private:
  Splitter splitter_;
  std::string_view null_;  // a field that stands for NULL
  bool empty_, has_null_ = false;
};
Result<Datum> StringToArray(EvalContext& context, const Expr&, Args a) {
  if (a[0].is_null()) return Datum();
  ArrayBuilder builder(MakeType(TypeId::kText));
  Datum field;
  for (FieldSplitter fields(a); fields.Next(&field);) {
    CELLAR_TRY(context.StepOver(field.is_null() ? 0 : field.bytes().size()));
    CELLAR_TRY(builder.TryAdd(field));
  }
  return Datum::Bytes(builder.Finish(context.arena()));
}
Result<SetRowsPtr> StringToTable(EvalContext&, const Expr&, Args a) {
  if (a[0].is_null()) return SetRowsPtr();
  return MakeRowByRow(
      [fields = FieldSplitter(a)](EvalContext&, std::span<Datum> row) mutable -> Result<bool> {
        return fields.Next(&row[0]);
      });
}
Result<Datum> ArrayToString(EvalContext& context, const Expr& call, Args a) {
  if (a[0].is_null() || a[1].is_null()) return Datum();
  const Type element = ElementOf(call.args[0]->type);
  ArrayView view(a[0].bytes(), element);
  std::string out;
  bool first = true;
  for (size_t i = 0; i < view.size(); ++i) {
    Datum value = view.Get(i);
    if (value.is_null() && (a.size() < 3 || a[2].is_null())) continue;
    const std::string text =
        value.is_null() ? std::string(a[2].bytes()) : OutputText(value, element, context);
    CELLAR_TRY(MayGrow(context, out, a[1].bytes().size() + text.size()));
    if (!first) out += a[1].bytes();
    first = false;
    out += text;
  }
  return TextOf(context, out);
}

Result<Datum> Concat(EvalContext& context, const Expr& call, Args a) {
  std::string out;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].is_null()) continue;
    const std::string text = OutputText(a[i], call.args[i]->type, context);
    CELLAR_TRY(MayGrow(context, out, text.size()));
    out += text;
  }
  return TextOf(context, out);
}
Result<Datum> ConcatWithSeparator(EvalContext& context, const Expr& call, Args a) {
  if (a[0].is_null()) return Datum();
  std::string out;
  bool first = true;
  for (size_t i = 1; i < a.size(); ++i) {
    if (a[i].is_null()) continue;
    const std::string text = OutputText(a[i], call.args[i]->type, context);
    CELLAR_TRY(MayGrow(context, out, a[0].bytes().size() + text.size()));
    if (!first) out += a[0].bytes();
    first = false;
    out += text;
  }
  return TextOf(context, out);
}

Result<Datum> Translate(EvalContext& context, const Expr&, Args a) {
  std::string_view text = a[0].bytes(), from = a[1].bytes(), to = a[2].bytes();
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    std::string_view c = text.substr(pos, CharSize(text[pos]));
    pos += c.size();
    size_t i = 0, j = 0;
    while (i < from.size() && from.substr(i, CharSize(from[i])) != c) {
      CELLAR_TRY(context.Step());
      i += CharSize(from[i]);
      if (j < to.size()) j += CharSize(to[j]);
    }
    CELLAR_TRY(MayGrow(context, out, 4));
    if (i >= from.size())
      out += c;
    else if (j < to.size())
      out += to.substr(j, CharSize(to[j]));
  }
  return TextOf(context, out);
}

// Where the text after the replaced part begins. Errors: 22003 as the server's 32-bit sum
// overflows.
Result<size_t> OverlayEnd(int64_t start, int64_t length) {
  if (start + length > INT32_MAX || start + length < INT32_MIN) {
    return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange, "integer out of range");
  }
  return static_cast<size_t>(std::max<int64_t>(0, start - 1 + length));
}

// What stays of the text, once or, where the replaced part ends before it starts, twice.
Status OverlayFits(std::string_view text, std::string_view with, int64_t start, size_t rest) {
  const size_t twice = rest < static_cast<size_t>(start - 1) ? text.size() : 0;
  return CheckValueSize(with.size() + text.size() + twice);
}

Result<Datum> Overlay(EvalContext& context, const Expr&, Args a) {
  std::string_view text = a[0].bytes(), with = a[1].bytes();
  int64_t start = a[2].int_value();
  int64_t length = a.size() == 4 ? a[3].int_value() : static_cast<int64_t>(CountChars(with));
  if (start <= 0) {
    return SqlError(Code::kInvalid, sqlstate::kSubstringError,
                    "negative substring length not allowed");
  }
  CELLAR_TRY_ASSIGN(size_t rest, OverlayEnd(start, length));
  CELLAR_TRY(OverlayFits(text, with, start, rest));
  std::string out(text.substr(0, BytesOfChars(text, static_cast<size_t>(start - 1))));
  out += with;
  out += text.substr(BytesOfChars(text, rest));
  return TextOf(context, out);
}
Result<Datum> OverlayBytea(EvalContext& context, const Expr&, Args a) {
  std::string_view bytes = a[0].bytes(), with = a[1].bytes();
  int64_t start = a[2].int_value();
  int64_t length = a.size() == 4 ? a[3].int_value() : static_cast<int64_t>(with.size());
  if (start <= 0) {
    return SqlError(Code::kInvalid, sqlstate::kSubstringError,
                    "negative substring length not allowed");
  }
  CELLAR_TRY_ASSIGN(size_t rest, OverlayEnd(start, length));
  CELLAR_TRY(OverlayFits(bytes, with, start, rest));
  std::string out(bytes.substr(0, static_cast<size_t>(start - 1)));
  out += with;
  if (rest < bytes.size()) out += bytes.substr(rest);
  return TextOf(context, out);
}

Result<Datum> Ascii(EvalContext&, const Expr&, Args a) {
  if (a[0].bytes().empty()) return Datum::Int(0);
  size_t pos = 0;
  return Datum::Int(TakeChar(a[0].bytes(), &pos));
}
Result<Datum> Chr(EvalContext& context, const Expr&, Args a) {
  int64_t c = a[0].int_value();
  if (c == 0) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded, "null character not permitted");
  }
  if (c < 0) {
    return InvalidParameter("character number must be positive");
  }
  if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "requested character {} for encoding: {}",
                    c > 0x10FFFF ? "too large" : "not valid", c);
  }
  std::string out;
  AppendChar(static_cast<char32_t>(c), &out);
  return TextOf(context, out);
}

std::string Hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  InPieces(bytes, [&out](std::string_view piece) {
    for (char c : piece) {
      out += kDigits[static_cast<uint8_t>(c) >> 4];
      out += kDigits[static_cast<uint8_t>(c) & 15];
    }
  });
  return out;
}

std::string Digest(std::string_view bytes, const EVP_MD* algorithm) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest(EVP_MD_CTX_new(),
                                                                       EVP_MD_CTX_free);
  EVP_DigestInit_ex(digest.get(), algorithm, nullptr);
  InPieces(bytes, [&digest](std::string_view piece) {
    EVP_DigestUpdate(digest.get(), piece.data(), piece.size());
  });
  EVP_DigestFinal_ex(digest.get(), out, &size);
  return std::string(reinterpret_cast<char*>(out), size);
}
Result<Datum> Md5(EvalContext& context, const Expr&, Args a) {
  return TextOf(context, Hex(Digest(a[0].bytes(), EVP_md5())));
}
template <const EVP_MD* (*Algorithm)()>
Result<Datum> Sha(EvalContext& context, const Expr&, Args a) {
  return TextOf(context, Digest(a[0].bytes(), Algorithm()));
}

// ---- encode and decode ----

constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string EncodeBase64(std::string_view bytes) {
  std::string out;
  size_t column = 0;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    PollSteps();
    uint32_t word = 0;
    size_t have = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) {
      word = word << 8 | (k < have ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    }
    if (column == 76) {
      out += '\n';
      column = 0;
    }
    for (size_t k = 0; k < 4; ++k) {
      out += k <= have ? kBase64[word >> (18 - 6 * k) & 63] : '=';
    }
    column += 4;
  }
  return out;
}

Result<std::string> DecodeBase64(std::string_view text) {
  std::string out;
  uint32_t word = 0;
  int have = 0, padding = 0;
  for (char c : text) {
    PollSteps();
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    if (c == '=') {
      if (have < 2 || padding >= 2)
        return InvalidParameter("unexpected \"=\" while decoding base64 sequence");
      ++padding;
      word <<= 6;
    } else {
      const char* at = static_cast<const char*>(std::memchr(kBase64, c, 64));
      if (at == nullptr || padding > 0) {
        return InvalidParameter(
            fmt::format("invalid symbol \"{}\" found while decoding base64 sequence", c));
      }
      word = word << 6 | static_cast<uint32_t>(at - kBase64);
    }
    if (++have == 4) {
      out += static_cast<char>(word >> 16);
      if (padding < 2) out += static_cast<char>(word >> 8);
      if (padding < 1) out += static_cast<char>(word);
      word = 0;
      have = 0;
    }
  }
  if (have != 0) {
    return Status(InvalidParameter("invalid base64 end sequence"))
        .WithHint("Input data is missing padding, is truncated, or is otherwise corrupted.");
  }
  return out;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> DecodeHex(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    PollSteps();
    char c = text[i];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++i;
      continue;
    }
    int high = HexDigit(c);
    if (high < 0) return InvalidParameter(fmt::format("invalid hexadecimal digit: \"{}\"", c));
    if (i + 1 >= text.size()) {
      return InvalidParameter("invalid hexadecimal data: odd number of digits");
    }
    int low = HexDigit(text[i + 1]);
    if (low < 0) {
      return InvalidParameter(fmt::format("invalid hexadecimal digit: \"{}\"", text[i + 1]));
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

Result<std::string> EncodeEscape(EvalContext& context, std::string_view bytes) {
  std::string out;
  for (char c : bytes) {
    CELLAR_TRY(MayGrow(context, out, 4));
    uint8_t byte = static_cast<uint8_t>(c);
    if (byte == 0 || byte >= 0x80)
      out += fmt::format("\\{:03o}", byte);
    else if (c == '\\')
      out += "\\\\";
    else
      out += c;
  }
  return out;
}

Result<std::string> DecodeEscape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    PollSteps();
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '\\') {
      out += '\\';
      ++i;
      continue;
    }
    const auto octal = [&](size_t k) {
      return i + k < text.size() && text[i + k] >= '0' && text[i + k] <= '7';
    };
    if (octal(1) && octal(2) && octal(3) && text[i + 1] <= '3') {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
      continue;
    }
    return SqlError(Code::kInvalid, sqlstate::kInvalidTextRepresentation,
                    "invalid input syntax for type bytea");
  }
  return out;
}

std::string LowerAscii(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return out;
}

Result<Datum> Encode(EvalContext& context, const Expr&, Args a) {
  // The largest form has four characters a byte.
  CELLAR_TRY(context.StepOver(a[0].bytes().size()));
  const std::string format = LowerAscii(a[1].bytes());
  if (format == "hex") CELLAR_TRY(CheckValueSize(2 * a[0].bytes().size()));
  if (format == "base64") CELLAR_TRY(CheckValueSize(a[0].bytes().size() / 57 * 77));
  if (format == "hex") return TextOf(context, Hex(a[0].bytes()));
  if (format == "base64") return TextOf(context, EncodeBase64(a[0].bytes()));
  if (format == "escape") {
    CELLAR_TRY_ASSIGN(const std::string out, EncodeEscape(context, a[0].bytes()));
    return TextOf(context, out);
  }
  return InvalidParameter(fmt::format("unrecognized encoding: \"{}\"", a[1].bytes()));
}
Result<Datum> Decode(EvalContext& context, const Expr&, Args a) {
  std::string format = LowerAscii(a[1].bytes());
  std::string out;
  CELLAR_TRY(context.StepOver(a[0].bytes().size()));
  if (format == "hex") {
    CELLAR_TRY_ASSIGN(out, DecodeHex(a[0].bytes()));
  } else if (format == "base64") {
    CELLAR_TRY_ASSIGN(out, DecodeBase64(a[0].bytes()));
  } else if (format == "escape") {
    CELLAR_TRY_ASSIGN(out, DecodeEscape(a[0].bytes()));
  } else {
    return InvalidParameter(fmt::format("unrecognized encoding: \"{}\"", a[1].bytes()));
  }
  return TextOf(context, out);
}

// ---- Character sets ----

enum class Charset : uint8_t { kUtf8, kLatin1, kAscii, kUnknown };
Charset FindCharset(std::string_view name) {
  std::string plain;
  for (char c : LowerAscii(name)) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) plain += c;
  }
  if (plain == "utf8" || plain == "unicode") return Charset::kUtf8;
  if (plain == "latin1" || plain == "iso88591") return Charset::kLatin1;
  if (plain == "sqlascii" || plain == "ascii") return Charset::kAscii;
  return Charset::kUnknown;
}
// Names the bytes of the first character that is not UTF-8.
Status InvalidSequence(std::string_view bytes) {
  size_t pos = 0;
  while (pos < bytes.size()) {
    PollSteps();
    const size_t size = CharSize(bytes[pos]);
    if (pos + size > bytes.size() || !IsValidText(bytes.substr(pos, size))) break;
    pos += size;
  }
  std::string shown;
  for (char c : bytes.substr(pos, CharSize(bytes[pos]))) {
    shown += fmt::format("{}0x{:02x}", shown.empty() ? "" : " ", static_cast<uint8_t>(c));
  }
  return SqlError(Code::kInvalid, sqlstate::kCharacterNotInRepertoire,
                  "invalid byte sequence for encoding \"UTF8\": {}", shown);
}
Result<Datum> ConvertFrom(EvalContext& context, const Expr&, Args a) {
  switch (FindCharset(a[1].bytes())) {
    case Charset::kUtf8:
    case Charset::kAscii:
      if (!IsValidText(a[0].bytes())) {
        return InvalidSequence(a[0].bytes());
      }
      return a[0];
    case Charset::kLatin1: {
      std::string out;
      for (char c : a[0].bytes()) {
        CELLAR_TRY(MayGrow(context, out, 2));
        AppendChar(static_cast<uint8_t>(c), &out);
      }
      return TextOf(context, out);
    }
    case Charset::kUnknown: break;
  }
  return InvalidParameter(fmt::format("invalid source encoding name \"{}\"", a[1].bytes()));
}
Result<Datum> ConvertTo(EvalContext& context, const Expr&, Args a) {
  switch (FindCharset(a[1].bytes())) {
    case Charset::kUtf8:
    case Charset::kAscii: return a[0];
    case Charset::kLatin1: {
      std::string out;
      for (size_t pos = 0; pos < a[0].bytes().size();) {
        CELLAR_TRY(MayGrow(context, out, 1));
        char32_t c = TakeChar(a[0].bytes(), &pos);
        if (c > 0xFF) {
          return SqlError(
              Code::kInvalid, sqlstate::kUntranslatableCharacter,
              "character in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\"");
        }
        out += static_cast<char>(c);
      }
      return TextOf(context, out);
    }
    case Charset::kUnknown: break;
  }
  return InvalidParameter(fmt::format("invalid destination encoding name \"{}\"", a[1].bytes()));
}

const icu::Normalizer2* FindNormalizer(std::string_view form) {
  UErrorCode error = U_ZERO_ERROR;
  std::string name = LowerAscii(form);
  if (name == "nfc") return icu::Normalizer2::getNFCInstance(error);
  if (name == "nfd") return icu::Normalizer2::getNFDInstance(error);
  if (name == "nfkc") return icu::Normalizer2::getNFKCInstance(error);
  if (name == "nfkd") return icu::Normalizer2::getNFKDInstance(error);
  return nullptr;
}
icu::UnicodeString ToUnicode(std::string_view text) {
  return icu::UnicodeString::fromUTF8(
      icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
}
// Takes a piece off the front that is normalised for itself: what follows begins a new segment.
std::string_view TakeSegment(const icu::Normalizer2& normalizer, std::string_view* rest) {
  constexpr size_t kPieceBytes = 64 << 10;
  size_t end = std::min(kPieceBytes, rest->size());
  while (end < rest->size() && IsContinuation((*rest)[end])) ++end;
  while (end < rest->size()) {
    PollSteps();
    size_t next = end;
    if (normalizer.hasBoundaryBefore(static_cast<UChar32>(TakeChar(*rest, &next)))) break;
    end = next;
  }
  const std::string_view piece = rest->substr(0, end);
  rest->remove_prefix(end);
  return piece;
}
Result<Datum> Normalize(EvalContext& context, const Expr&, Args a) {
  std::string_view form = a.size() == 2 ? a[1].bytes() : std::string_view("NFC");
  const icu::Normalizer2* normalizer = FindNormalizer(form);
  if (normalizer == nullptr) {
    return InvalidParameter(fmt::format("invalid normalization form: {}", form));
  }
  CELLAR_TRY(CheckValueSize(a[0].bytes().size()));
  UErrorCode error = U_ZERO_ERROR;
  std::string out;
  for (std::string_view rest = a[0].bytes(); !rest.empty();) {
    const std::string_view piece = TakeSegment(*normalizer, &rest);
    CELLAR_TRY(MayGrow(context, out, piece.size()));
    normalizer->normalize(ToUnicode(piece), error).toUTF8String(out);
    if (U_FAILURE(error)) return InternalError("normalization failed");
  }
  return TextOf(context, out);
}
Result<Datum> IsNormalized(EvalContext& context, const Expr&, Args a) {
  std::string_view form = a.size() == 2 ? a[1].bytes() : std::string_view("NFC");
  const icu::Normalizer2* normalizer = FindNormalizer(form);
  if (normalizer == nullptr) {
    return InvalidParameter(fmt::format("invalid normalization form: {}", form));
  }
  UErrorCode error = U_ZERO_ERROR;
  for (std::string_view rest = a[0].bytes(); !rest.empty();) {
    const std::string_view piece = TakeSegment(*normalizer, &rest);
    CELLAR_TRY(context.StepOver(piece.size()));
    if (normalizer->isNormalized(ToUnicode(piece), error) == 0) return Datum::Bool(false);
  }
  return Datum::Bool(true);
}

// unistr: \XXXX, \+XXXXXX, \uXXXX, \UXXXXXXXX, surrogate pairs.
Result<Datum> Unistr(EvalContext& context, const Expr&, Args a) {
  std::string_view text = a[0].bytes();
  std::string out;
  char32_t high = 0;
  for (size_t pos = 0; pos < text.size();) {
    CELLAR_TRY(MayGrow(context, out, 4));
    if (text[pos] != '\\') {
      if (high != 0) break;
      out += text[pos++];
      continue;
    }
    if (pos + 1 < text.size() && text[pos + 1] == '\\') {
      out += '\\';
      pos += 2;
      continue;
    }
    size_t start = pos + 1, digits = 4;
    if (start < text.size()) {
      if (text[start] == 'u')
        ++start;
      else if (text[start] == 'U')
        ++start, digits = 8;
      else if (text[start] == '+')
        ++start, digits = 6;
    }
    char32_t value = 0;
    if (start + digits > text.size()) digits = 0;
    for (size_t i = 0; i < digits; ++i) {
      int digit = HexDigit(text[start + i]);
      if (digit < 0) {
        digits = 0;
        break;
      }
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (digits == 0) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "invalid Unicode escape")
          .WithHint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.");
    }
    pos = start + digits;
    if (value >= 0xD800 && value < 0xDC00 && high == 0) {
      high = value;
      continue;
    }
    if (value >= 0xDC00 && value < 0xE000 && high != 0) {
      value = 0x10000 + ((high - 0xD800) << 10) + (value - 0xDC00);
      high = 0;
    } else if (high != 0 || (value >= 0xD800 && value < 0xE000)) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "invalid Unicode surrogate pair");
    }
    if (value == 0 || value > 0x10FFFF) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "invalid Unicode escape value");
    }
    AppendChar(value, &out);
  }
  if (high != 0) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "invalid Unicode surrogate pair");
  }
  return TextOf(context, out);
}

Result<Datum> ToHex(EvalContext& context, const Expr& call, Args a) {
  uint64_t value = static_cast<uint64_t>(a[0].int_value());
  if (call.function->args[0].id == TypeId::kInt4) value = static_cast<uint32_t>(value);
  return TextOf(context, fmt::format("{:x}", value));
}

// parse_ident: a qualified name split at its dots.
Result<Datum> ParseIdent(EvalContext& context, const Expr&, Args a) {
  const std::string_view text = a[0].bytes();
  const bool strict = a.size() < 2 || a[1].bool_value();
  const auto invalid = [&](std::string detail) {
    Status error = InvalidParameter(fmt::format("string is not a valid identifier: \"{}\"", text));
    return detail.empty() ? std::move(error) : std::move(error).WithDetail(std::move(detail));
  };
  const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
  };
  std::vector<std::string> parts;
  size_t pos = 0;
  const auto skip = [&] {
    while (pos < text.size() && blank(text[pos])) ++pos;
  };
  skip();
  while (true) {
    std::string part;
    if (pos < text.size() && text[pos] == '"') {
      bool closed = false;
      for (++pos; pos < text.size() && !closed; ++pos) {
        if (text[pos] != '"')
          part += text[pos];
        else if (pos + 1 < text.size() && text[pos + 1] == '"')
          part += text[pos++];
        else
          closed = true;
      }
      if (!closed) return invalid("String has unclosed double quotes.");
      if (part.empty()) return invalid("Quoted identifier must not be empty.");
    } else if (pos < text.size() && letter(text[pos])) {
      const size_t start = pos;
      while (pos < text.size() &&
             (letter(text[pos]) || (text[pos] >= '0' && text[pos] <= '9') || text[pos] == '$')) {
        ++pos;
      }
      AppendLower(text.substr(start, pos - start), &part);
    } else if (pos < text.size() && text[pos] == '.') {
      return invalid("No valid identifier before \".\".");
    } else {
      return invalid(parts.empty() ? "" : "No valid identifier after \".\".");
    }
    parts.push_back(std::move(part));
    skip();
    if (pos < text.size() && text[pos] == '.') {
      ++pos;
      skip();
      continue;
    }
    if (pos < text.size() && strict) return invalid("");
    break;
  }
  ArrayBuilder builder(MakeType(TypeId::kText));
  for (const std::string& part : parts) builder.Add(Datum::Bytes(part));
  return Datum::Bytes(builder.Finish(context.arena()));
}

// ---- bytea bits ----

Result<Datum> GetByte(EvalContext&, const Expr&, Args a) {
  int64_t at = a[1].int_value(), size = static_cast<int64_t>(a[0].bytes().size());
  if (at < 0 || at >= size) {
    return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                    "index {} out of valid range, 0..{}", at, size - 1);
  }
  return Datum::Int(static_cast<uint8_t>(a[0].bytes()[static_cast<size_t>(at)]));
}
Result<Datum> SetByte(EvalContext& context, const Expr&, Args a) {
  int64_t at = a[1].int_value(), size = static_cast<int64_t>(a[0].bytes().size());
  if (at < 0 || at >= size) {
    return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                    "index {} out of valid range, 0..{}", at, size - 1);
  }
  CELLAR_TRY(CheckValueSize(a[0].bytes().size()));
  std::string out(a[0].bytes());
  out[static_cast<size_t>(at)] = static_cast<char>(a[2].int_value());
  return TextOf(context, out);
}
Result<Datum> GetBit(EvalContext&, const Expr&, Args a) {
  int64_t at = a[1].int_value(), size = static_cast<int64_t>(a[0].bytes().size()) * 8;
  if (at < 0 || at >= size) {
    return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                    "index {} out of valid range, 0..{}", at, size - 1);
  }
  uint8_t byte = static_cast<uint8_t>(a[0].bytes()[static_cast<size_t>(at / 8)]);
  return Datum::Int(byte >> (at % 8) & 1);
}

Result<Datum> SetBit(EvalContext& context, const Expr&, Args a) {
  int64_t at = a[1].int_value(), size = static_cast<int64_t>(a[0].bytes().size()) * 8;
  if (at < 0 || at >= size) {
    return SqlError(Code::kInvalid, sqlstate::kArraySubscriptError,
                    "index {} out of valid range, 0..{}", at, size - 1);
  }
  if (a[2].int_value() != 0 && a[2].int_value() != 1) {
    return InvalidParameter("new bit must be 0 or 1");
  }
  CELLAR_TRY(CheckValueSize(a[0].bytes().size()));
  std::string out(a[0].bytes());
  const int mask = 1 << (at % 8);
  char& byte = out[static_cast<size_t>(at / 8)];
  byte = static_cast<char>(a[2].int_value() == 1 ? byte | mask : byte & ~mask);
  return TextOf(context, out);
}
Result<Datum> BitCount(EvalContext&, const Expr&, Args a) {
  int64_t count = 0;
  for (char c : a[0].bytes()) count += __builtin_popcount(static_cast<uint8_t>(c));
  return Datum::Int(count);
}

Result<Datum> Length(EvalContext&, const Expr&, Args a) {
  return Datum::Int(static_cast<int64_t>(CountChars(a[0].bytes())));
}
Result<Datum> LengthBpchar(EvalContext&, const Expr&, Args a) {
  std::string_view text = a[0].bytes();
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return Datum::Int(static_cast<int64_t>(CountChars(text)));
}
Status LengthVector(EvalContext&, const Expr&, std::span<const ColumnVector* const> args,
                    Selection rows, ColumnVector* result) {
  for (size_t i = 0; i < rows.count; ++i) {
    uint32_t row = rows[i];
    if (result->nulls()[row] == 0) {
      result->ints()[row] = static_cast<int64_t>(CountChars(args[0]->bytes()[row]));
    }
  }
  return Status();
}
Result<Datum> OctetLength(EvalContext&, const Expr&, Args a) {
  return Datum::Int(static_cast<int64_t>(a[0].bytes().size()));
}
Result<Datum> PaddedOctetLength(EvalContext&, const Expr& call, Args a) {
  // char(n) is stored without its padding, and counts with it.
  int32_t modifier = call.args[0]->type.modifier;
  int64_t bytes = static_cast<int64_t>(a[0].bytes().size());
  if (modifier >= 4) {
    bytes += std::max<int64_t>(0, modifier - 4 - static_cast<int64_t>(CountChars(a[0].bytes())));
  }
  return Datum::Int(bytes);
}
Result<Datum> BitLength(EvalContext&, const Expr&, Args a) {
  return Datum::Int(static_cast<int64_t>(a[0].bytes().size()) * 8);
}

constexpr size_t kMapBytes = 64 << 10;  // mapped between looks at the statement

template <void (*F)(std::string_view, std::string*)>
Result<Datum> MapText(EvalContext& context, const Expr&, Args a) {
  std::string out;
  const std::string_view text = a[0].bytes();
  for (size_t pos = 0; pos < text.size();) {
    size_t end = std::min(text.size(), pos + kMapBytes);
    while (end < text.size() && IsContinuation(text[end])) ++end;
    CELLAR_TRY(MayGrow(context, out, end - pos));
    F(text.substr(pos, end - pos), &out);
    pos = end;
  }
  return TextOf(context, out);
}
// Where a word begins, the text before tells: all of it at once.
Result<Datum> InitCap(EvalContext& context, const Expr&, Args a) {
  std::string out;
  CELLAR_TRY(CheckValueSize(a[0].bytes().size()));
  AppendInitCap(a[0].bytes(), &out);
  return TextOf(context, out);
}

void AddTrims(Registry& r) {
  r.Add("btrim(text) text", Trim<true, true>);
  r.Add("btrim(text, text) text", Trim<true, true>);
  r.Add("ltrim(text) text", Trim<true, false>);
  r.Add("ltrim(text, text) text", Trim<true, false>);
  r.Add("rtrim(text) text", Trim<false, true>);
  r.Add("rtrim(text, text) text", Trim<false, true>);
  r.Add("btrim(bytea, bytea) bytea", TrimBytea<true, true>);
  r.Add("ltrim(bytea, bytea) bytea", TrimBytea<true, false>);
  r.Add("rtrim(bytea, bytea) bytea", TrimBytea<false, true>);
}

void AddBytea(Registry& r) {
  r.Add("length(bytea) int4", OctetLength);
  r.Add(
      "length(bytea, name) int4", CELLAR_SCALAR {
        if (FindCharset(a[1].bytes()) == Charset::kUnknown) {
          return InvalidParameter(fmt::format("invalid encoding name \"{}\"", a[1].bytes()));
        }
        CELLAR_TRY_ASSIGN(Datum text, ConvertFrom(context, call, a));
        return Length(context, call, {&text, 1});
      });
  r.Add("octet_length(bytea) int4", OctetLength);
  r.Add("bit_length(bytea) int4", BitLength);
  r.Add("substring(bytea, int4) bytea", SubstringBytea);
  r.Add("substring(bytea, int4, int4) bytea", SubstringBytea);
  r.Add("substr(bytea, int4) bytea", SubstringBytea);
  r.Add("substr(bytea, int4, int4) bytea", SubstringBytea);
  r.Add("position(bytea, bytea) int4", PositionBytea);
  r.Add("overlay(bytea, bytea, int4) bytea", OverlayBytea);
  r.Add("overlay(bytea, bytea, int4, int4) bytea", OverlayBytea);
  r.Add("get_byte(bytea, int4) int4", GetByte);
  r.Add("set_byte(bytea, int4, int4) bytea", SetByte);
  r.Add("get_bit(bytea, int8) int4", GetBit);
  r.Add("set_bit(bytea, int8, int4) bytea", SetBit);
  r.Add("bit_count(bytea) int8", BitCount);
  r.Add("md5(bytea) text", Md5);
  r.Add("sha224(bytea) bytea", Sha<EVP_sha224>);
  r.Add("sha256(bytea) bytea", Sha<EVP_sha256>);
  r.Add("sha384(bytea) bytea", Sha<EVP_sha384>);
  r.Add("sha512(bytea) bytea", Sha<EVP_sha512>);
  r.Add("encode(bytea, text) text", Encode);
  r.Add("decode(text, text) bytea", Decode);
  r.Add("convert_from(bytea, name) text", ConvertFrom);
  r.Add("convert_to(text, name) bytea", ConvertTo);
}

}  // namespace

void RegisterText(Registry& r) {
  for (const char* signature :
       {"length(text) int4", "char_length(text) int4", "character_length(text) int4"}) {
    r.Add(signature, Length).vector = LengthVector;
  }
  for (const char* signature :
       {"length(bpchar) int4", "char_length(bpchar) int4", "character_length(bpchar) int4"}) {
    r.Add(signature, LengthBpchar);
  }
  r.Add("octet_length(text) int4", OctetLength);
  r.Add("octet_length(bpchar) int4", PaddedOctetLength);
  r.Add("bit_length(text) int4", BitLength);
  r.Add("lower(text) text", MapText<AppendLower>);
  r.Add("upper(text) text", MapText<AppendUpper>);
  r.Add("initcap(text) text", InitCap);
  r.Add("substring(text, int4) text", Substring);
  r.Add("substring(text, int4, int4) text", Substring);
  r.Add("substr(text, int4) text", Substring);
  r.Add("substr(text, int4, int4) text", Substring);
  r.Add("left(text, int4) text", Left);
  r.Add("right(text, int4) text", Right);
  r.Add("lpad(text, int4) text", Pad<true>);
  r.Add("lpad(text, int4, text) text", Pad<true>);
  r.Add("rpad(text, int4) text", Pad<false>);
  r.Add("rpad(text, int4, text) text", Pad<false>);
  r.Add("position(text, text) int4", Position);
  r.Add("strpos(text, text) int4", Position);
  r.Add("replace(text, text, text) text", Replace);
  r.Add("repeat(text, int4) text", Repeat);
  r.Add("reverse(text) text", Reverse);
  r.Add("split_part(text, text, int4) text", SplitPart);
  r.Add("string_to_array(text, text) text[]", StringToArray).strict = false;
  r.Add("string_to_array(text, text, text) text[]", StringToArray).strict = false;
  r.AddSet("string_to_table(text, text) setof text", StringToTable).strict = false;
  r.AddSet("string_to_table(text, text, text) setof text", StringToTable).strict = false;
  r.Add("array_to_string(anyarray, text) text", ArrayToString, Volatility::kStable);
  r.Add("array_to_string(anyarray, text, text) text", ArrayToString, Volatility::kStable).strict =
      false;
  r.Add("concat(any...) text", Concat, Volatility::kStable).strict = false;
  r.Add("concat_ws(text, any...) text", ConcatWithSeparator, Volatility::kStable).strict = false;
  r.Add("translate(text, text, text) text", Translate);
  r.Add("overlay(text, text, int4) text", Overlay);
  r.Add("overlay(text, text, int4, int4) text", Overlay);
  r.Add("ascii(text) int4", Ascii);
  r.Add("chr(int4) text", Chr);
  r.Add("md5(text) text", Md5);
  r.Add("to_hex(int4) text", ToHex);
  r.Add("to_hex(int8) text", ToHex);
  r.Add(
      "starts_with(text, text) bool",
      CELLAR_SCALAR { return Datum::Bool(a[0].bytes().starts_with(a[1].bytes())); });
  r.Add(
      "^@(text, text) bool",
      CELLAR_SCALAR { return Datum::Bool(a[0].bytes().starts_with(a[1].bytes())); });
  r.Add("normalize(text) text", Normalize);
  r.Add("normalize(text, text) text", Normalize);
  r.Add("is_normalized(text) bool", IsNormalized);
  r.Add("is_normalized(text, text) bool", IsNormalized);
  r.Add("unistr(text) text", Unistr);
  r.Add("parse_ident(text) text[]", ParseIdent);
  r.Add("parse_ident(text, bool) text[]", ParseIdent);
  AddTrims(r);
  AddBytea(r);
}

}  // namespace cellar::sql
