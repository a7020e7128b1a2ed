// Case mappings come from ICU's character data; ASCII does not ask it.
#include "cellar/sql/expr/text_util.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <cstring>

#include "cellar/base/interrupt.h"

namespace cellar::sql {
namespace {

char32_t Lower(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  return static_cast<char32_t>(u_tolower(static_cast<UChar32>(c)));
}
char32_t Upper(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  return static_cast<char32_t>(u_toupper(static_cast<UChar32>(c)));
}

template <typename F>
void Map(std::string_view text, std::string* out, F f) {
  out->reserve(out->size() + text.size());
  for (size_t pos = 0; pos < text.size();) {
    PollSteps();
    AppendChar(f(TakeChar(text, &pos)), out);
  }
}

}  // namespace

size_t FindText(std::string_view text, std::string_view what, size_t from) {
  constexpr size_t kShortBytes = 4 << 10, kWindowBytes = 1 << 20;
  if (text.size() <= kShortBytes) {
    PollBytes(text.size());
    return text.find(what, from);
  }
  if (from > text.size()) return std::string_view::npos;
  if (what.empty()) return from;
  // Windows that overlap by what may lie across their ends, and are not small beside it.
  const size_t step = std::max(kWindowBytes, what.size());
  while (text.size() - from >= what.size()) {
    const std::string_view window = text.substr(from, step + what.size() - 1);
    const void* found = ::memmem(window.data(), window.size(), what.data(), what.size());
    if (found != nullptr) {
      const auto at = static_cast<size_t>(static_cast<const char*>(found) - window.data());
      PollBytes(at);
      return from + at;
    }
    PollBytes(window.size());
    if (text.size() - from <= window.size()) break;
    from += step;
  }
  return std::string_view::npos;
}

void AppendChar(char32_t c, std::string* out) {
  const auto put = [out](char32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xE0 | c >> 12);
    } else {
      put(0xF0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3F));
    }
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

bool IsAscii(std::string_view text) {
  uint8_t all = 0;
  for (char c : text) all |= static_cast<uint8_t>(c);
  return all < 0x80;
}

bool IsAlnumChar(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return u_isalnum(static_cast<UChar32>(c)) != 0;
}

namespace {

// ASCII in one pass that the compiler can vectorise: flips bit 5 of the letters from `first` on.
void AppendFlipped(std::string_view text, char first, std::string* out) {
  PollBytes(text.size());
  const size_t start = out->size();
  out->append(text);
  char* data = out->data() + start;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool letter = static_cast<uint8_t>(data[i] - first) < 26;
    data[i] = static_cast<char>(data[i] ^ (letter ? 0x20 : 0));
  }
}

}  // namespace

void AppendLower(std::string_view text, std::string* out) {
  if (IsAscii(text))
    AppendFlipped(text, 'A', out);
  else
    Map(text, out, Lower);
}
void AppendUpper(std::string_view text, std::string* out) {
  if (IsAscii(text))
    AppendFlipped(text, 'a', out);
  else
    Map(text, out, Upper);
}
void AppendInitCap(std::string_view text, std::string* out) {
  bool start = true;
  Map(text, out, [&start](char32_t c) {
    char32_t mapped = start ? Upper(c) : Lower(c);
    start = !IsAlnumChar(c);
    return mapped;
  });
}

}  // namespace cellar::sql
