// Text forms of the types without arithmetic of their own: bool, integers, floats, bytea, uuid. For
// text_io.cc and its kin.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/base/arena.h"
#include "cellar/base/status.h"
#include "cellar/types/text_io.h"

namespace cellar {

// 22P02 'invalid input syntax for type integer: "x"'.
Status InvalidInput(std::string_view type, std::string_view text);

Result<bool> ParseBool(std::string_view text);
// Blanks around are allowed. Errors: 22P02, 22003 'value "99999" is out of range for type
// smallint'.
Result<int64_t> ParseInteger(std::string_view text, TypeId type);
Result<int64_t> ParseOid(std::string_view text, std::string_view type);
Result<double> ParseFloat8(std::string_view text);
Result<double> ParseFloat4(std::string_view text);
Result<std::string_view> ParseBytea(std::string_view text, Arena* arena);
Result<std::string_view> ParseUuid(std::string_view text, Arena* arena);

// "char": one byte, those beyond ASCII as \ooo; 0 is the empty text.
uint8_t ParseChar(std::string_view text);
void AppendChar(uint8_t value, std::string* out);

void AppendInteger(int64_t value, std::string* out);
void AppendFloat8(double value, int extra_float_digits, std::string* out);
void AppendFloat4(double value, int extra_float_digits, std::string* out);
void AppendBytea(std::string_view bytes, ByteaOutput form, std::string* out);
void AppendUuid(std::string_view bytes, std::string* out);

// Characters of valid UTF-8, and the bytes of its first `characters`.
size_t CountCharacters(std::string_view text);
size_t BytesOfCharacters(std::string_view text, size_t characters);

}  // namespace cellar
