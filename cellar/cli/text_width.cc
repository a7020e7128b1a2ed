// Widths by Unicode's East Asian Width property.
#include "cellar/cli/text_width.h"

#include <fmt/core.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

namespace cellar::cli {
namespace {

int CharacterWidth(UChar32 c) {
  if (c < 0) return 1;
  if (c < 0x300) return c == 0 ? 0 : 1;
  switch (u_charType(c)) {
    case U_NON_SPACING_MARK:
    case U_ENCLOSING_MARK:
    case U_FORMAT_CHAR: return 0;
    default: break;
  }
  switch (u_getIntPropertyValue(c, UCHAR_EAST_ASIAN_WIDTH)) {
    case U_EA_WIDE:
    case U_EA_FULLWIDTH: return 2;
    default: return 1;
  }
}

// The character at *at, and steps past it.
UChar32 NextCharacter(std::string_view text, size_t* at) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  auto i = static_cast<int32_t>(*at);
  UChar32 c = 0;
  U8_NEXT(bytes, i, static_cast<int32_t>(text.size()), c);
  *at = static_cast<size_t>(i);
  return c;
}

}  // namespace

int DisplayWidth(std::string_view text) {
  int width = 0;
  for (size_t at = 0; at < text.size();) width += CharacterWidth(NextCharacter(text, &at));
  return width;
}

std::string_view TakeColumns(std::string_view text, int columns) {
  size_t at = 0;
  while (at < text.size()) {
    size_t next = at;
    columns -= CharacterWidth(NextCharacter(text, &next));
    if (columns < 0) break;
    at = next;
  }
  return text.substr(0, at);
}

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  int column = 0;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\t') {
      const int blanks = 8 - column % 8;
      out.append(static_cast<size_t>(blanks), ' ');
      column += blanks;
      continue;
    }
    if (c != '\n' && (byte < 0x20 || byte == 0x7F)) {
      out += fmt::format("\\x{:02X}", byte);
      column += 4;
      continue;
    }
    column = c == '\n' ? 0 : column + ((byte & 0xC0) != 0x80 ? 1 : 0);
    out += c;
  }
  return out;
}

}  // namespace cellar::cli
