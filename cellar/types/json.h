// json and jsonb as text. A json value keeps its text as given; a jsonb value is normalised text:
// object keys unique (the last wins) and sorted by length, then bytes; ": " and ", " between;
// numbers as NUMERIC prints them; strings with the least escapes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cellar/base/arena.h"
#include "cellar/base/status.h"

namespace cellar {

inline constexpr int kMaxJsonDepth = 1000;

// Errors: 22P02 "invalid input syntax for type json" with a detail.
Status ValidateJson(std::string_view text);
// The normalised text. Errors: as ValidateJson; 22P05 for \u0000; 54001 beyond kMaxJsonDepth.
Result<std::string_view> ParseJsonb(std::string_view text, Arena* arena);

// PostgreSQL's order: Object > Array > Boolean > Number > String > Null; shorter before longer.
int CompareJsonb(std::string_view a, std::string_view b);
uint64_t HashJsonb(std::string_view text);

// ---- Reading valid json or jsonb text; results borrow from `text` ----

enum class JsonType : uint8_t { kNull, kString, kNumber, kBoolean, kArray, kObject };
JsonType JsonTypeOf(std::string_view text);
// The text of an object's member or an array's element (negative counts from the end); nullopt when
// absent or when `text` is of another type. Cost: a scan of the text.
std::optional<std::string_view> JsonField(std::string_view text, std::string_view key);
std::optional<std::string_view> JsonElement(std::string_view text, int64_t index);
// Elements of an array, members of an object; 0 for a scalar.
size_t JsonCount(std::string_view text);
// What ->> gives: a string without quotes and escapes, other values as they are; NULL (false) for
// null. Errors: 22P05 and 22P02 for what text cannot hold, \u0000 and half a surrogate pair, which
// json lets in.
Result<bool> JsonAsText(std::string_view text, std::string* out);
// Appends a JSON string literal with quotes.
void AppendJsonString(std::string_view value, std::string* out);
// Appends an unescaped key or string literal (with its quotes) to `out`. Errors: as JsonAsText,
// with what precedes the place appended.
Status AppendJsonUnescaped(std::string_view literal, std::string* out);

// Walks the members of an object or the elements of an array, in text order.
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view container);
  // False at the end. `key` is the literal with quotes; empty for arrays.
  bool Next(std::string_view* key, std::string_view* value);

 private:
  std::string_view rest_;
  bool object_ = false;
};

}  // namespace cellar
