// UTF-8 by characters, and case by Unicode's simple mappings. Not for other layers. Texts are valid
// UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cellar::sql {

inline bool IsContinuation(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

inline size_t CharSize(char first) {
  const uint8_t byte = static_cast<uint8_t>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

inline size_t CountChars(std::string_view text) {
  size_t count = 0;
  for (char c : text) count += !IsContinuation(c);
  return count;
}

// Bytes of the first `chars` characters; text.size() when there are fewer.
inline size_t BytesOfChars(std::string_view text, size_t chars) {
  size_t pos = 0;
  while (chars > 0 && pos < text.size()) {
    pos += CharSize(text[pos]);
    --chars;
  }
  return pos < text.size() ? pos : text.size();
}

// The character at `pos`, which moves past it.
inline char32_t TakeChar(std::string_view text, size_t* pos) {
  const size_t size = CharSize(text[*pos]);
  if (*pos + size > text.size()) {
    *pos = text.size();
    return 0xFFFD;
  }
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[*pos + i]); };
  char32_t out = 0;
  switch (size) {
    case 1: out = byte(0); break;
    case 2: out = (byte(0) & 0x1Fu) << 6 | (byte(1) & 0x3Fu); break;
    case 3: out = (byte(0) & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu); break;
    default:
      out = (byte(0) & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 |
            (byte(3) & 0x3Fu);
  }
  *pos += size;
  return out;
}

// Where `what` is first found in the text at `from` or later; npos. Cost: linear in the text,
// whatever both hold. Throws Interrupted (base/interrupt.h).
size_t FindText(std::string_view text, std::string_view what, size_t from = 0);

void AppendChar(char32_t c, std::string* out);
bool IsAscii(std::string_view text);
bool IsAlnumChar(char32_t c);
void AppendLower(std::string_view text, std::string* out);
void AppendUpper(std::string_view text, std::string* out);
void AppendInitCap(std::string_view text, std::string* out);

}  // namespace cellar::sql
