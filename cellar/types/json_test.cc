// json and jsonb as text.
//
// Expected values come from PostgreSQL 15 (locale C, UTF-8).
#include "cellar/types/json.h"

#include <gtest/gtest.h>

#include "cellar/base/sqlstate.h"
#include "cellar/types/pg_cases.h"

namespace cellar {
namespace {

constexpr TextCase kJsonCases[] = {
    {"json", "{\"a\":1}", "{\"a\":1}"},
    {"jsonb", "{\"a\":1}", "{\"a\": 1}"},
    {"json", "{\"b\":1,\"a\":2,\"a\":3,\"aa\":0}", "{\"b\":1,\"a\":2,\"a\":3,\"aa\":0}"},
    {"jsonb", "{\"b\":1,\"a\":2,\"a\":3,\"aa\":0}", "{\"a\": 3, \"b\": 1, \"aa\": 0}"},
    {"json", "[1,2.50,1e3,-0,1E-5,-1.5e+2]", "[1,2.50,1e3,-0,1E-5,-1.5e+2]"},
    {"jsonb", "[1,2.50,1e3,-0,1E-5,-1.5e+2]", "[1, 2.50, 1000, 0, 0.00001, -150]"},
    {"json", "\"a\\u00e9\\ud83d\\ude00\\n\\\"\\\\\\/\\b\"",
     "\"a\\u00e9\\ud83d\\ude00\\n\\\"\\\\\\/\\b\""},
    {"jsonb", "\"a\\u00e9\\ud83d\\ude00\\n\\\"\\\\\\/\\b\"", "\"aé😀\\n\\\"\\\\/\\b\""},
    {"json", "null", "null"},
    {"jsonb", "null", "null"},
    {"json", "true", "true"},
    {"jsonb", "true", "true"},
    {"json", "false", "false"},
    {"jsonb", "false", "false"},
    {"json", "  [ ]  ", "  [ ]  "},
    {"jsonb", "  [ ]  ", "[]"},
    {"json", "{}", "{}"},
    {"jsonb", "{}", "{}"},
    {"json", "{\"\":[]}", "{\"\":[]}"},
    {"jsonb", "{\"\":[]}", "{\"\": []}"},
    {"json", "[1,]",
     "ERROR 22P02 invalid input syntax for type json | Expected JSON value, but found \"]\"."},
    {"jsonb", "[1,]",
     "ERROR 22P02 invalid input syntax for type json | Expected JSON value, but found \"]\"."},
    {"json", "{,}",
     "ERROR 22P02 invalid input syntax for type json | Expected string or \"}\", but found \",\"."},
    {"jsonb", "{,}",
     "ERROR 22P02 invalid input syntax for type json | Expected string or \"}\", but found \",\"."},
    {"json", "{\"a\"}",
     "ERROR 22P02 invalid input syntax for type json | Expected \":\", but found \"}\"."},
    {"jsonb", "{\"a\"}",
     "ERROR 22P02 invalid input syntax for type json | Expected \":\", but found \"}\"."},
    {"json", "{\"a\":}",
     "ERROR 22P02 invalid input syntax for type json | Expected JSON value, but found \"}\"."},
    {"jsonb", "{\"a\":}",
     "ERROR 22P02 invalid input syntax for type json | Expected JSON value, but found \"}\"."},
    {"json", "[1 2]",
     "ERROR 22P02 invalid input syntax for type json | Expected \",\" or \"]\", but found \"2\"."},
    {"jsonb", "[1 2]",
     "ERROR 22P02 invalid input syntax for type json | Expected \",\" or \"]\", but found \"2\"."},
    {"json", "tru", "ERROR 22P02 invalid input syntax for type json | Token \"tru\" is invalid."},
    {"jsonb", "tru", "ERROR 22P02 invalid input syntax for type json | Token \"tru\" is invalid."},
    {"json", "nul", "ERROR 22P02 invalid input syntax for type json | Token \"nul\" is invalid."},
    {"jsonb", "nul", "ERROR 22P02 invalid input syntax for type json | Token \"nul\" is invalid."},
    {"json", "01", "ERROR 22P02 invalid input syntax for type json | Token \"01\" is invalid."},
    {"jsonb", "01", "ERROR 22P02 invalid input syntax for type json | Token \"01\" is invalid."},
    {"json", "1.", "ERROR 22P02 invalid input syntax for type json | Token \"1.\" is invalid."},
    {"jsonb", "1.", "ERROR 22P02 invalid input syntax for type json | Token \"1.\" is invalid."},
    {"json", ".5", "ERROR 22P02 invalid input syntax for type json | Token \".\" is invalid."},
    {"jsonb", ".5", "ERROR 22P02 invalid input syntax for type json | Token \".\" is invalid."},
    {"json", "-", "ERROR 22P02 invalid input syntax for type json | Token \"-\" is invalid."},
    {"jsonb", "-", "ERROR 22P02 invalid input syntax for type json | Token \"-\" is invalid."},
    {"json", "1e", "ERROR 22P02 invalid input syntax for type json | Token \"1e\" is invalid."},
    {"jsonb", "1e", "ERROR 22P02 invalid input syntax for type json | Token \"1e\" is invalid."},
    {"json", "\"abc",
     "ERROR 22P02 invalid input syntax for type json | Token \"\"abc\" is invalid."},
    {"jsonb", "\"abc",
     "ERROR 22P02 invalid input syntax for type json | Token \"\"abc\" is invalid."},
    {"json", "\"\\u12\"",
     "ERROR 22P02 invalid input syntax for type json | \"\\u\" must be followed by four "
     "hexadecimal digits."},
    {"jsonb", "\"\\u12\"",
     "ERROR 22P02 invalid input syntax for type json | \"\\u\" must be followed by four "
     "hexadecimal digits."},
    {"json", "\"\\x\"",
     "ERROR 22P02 invalid input syntax for type json | Escape sequence \"\\x\" is invalid."},
    {"jsonb", "\"\\x\"",
     "ERROR 22P02 invalid input syntax for type json | Escape sequence \"\\x\" is invalid."},
    {"json", "{\"a\":1",
     "ERROR 22P02 invalid input syntax for type json | The input string ended unexpectedly."},
    {"jsonb", "{\"a\":1",
     "ERROR 22P02 invalid input syntax for type json | The input string ended unexpectedly."},
    {"json", "[1",
     "ERROR 22P02 invalid input syntax for type json | The input string ended unexpectedly."},
    {"jsonb", "[1",
     "ERROR 22P02 invalid input syntax for type json | The input string ended unexpectedly."},
    {"json", "",
     "ERROR 22P02 invalid input syntax for type json | The input string ended unexpectedly."},
    {"jsonb", "",
     "ERROR 22P02 invalid input syntax for type json | The input string ended unexpectedly."},
    {"json", "  ",
     "ERROR 22P02 invalid input syntax for type json | The input string ended unexpectedly."},
    {"jsonb", "  ",
     "ERROR 22P02 invalid input syntax for type json | The input string ended unexpectedly."},
    {"json", "1 2",
     "ERROR 22P02 invalid input syntax for type json | Expected end of input, but found \"2\"."},
    {"jsonb", "1 2",
     "ERROR 22P02 invalid input syntax for type json | Expected end of input, but found \"2\"."},
    {"json", "{\"a\":1}x",
     "ERROR 22P02 invalid input syntax for type json | Token \"x\" is invalid."},
    {"jsonb", "{\"a\":1}x",
     "ERROR 22P02 invalid input syntax for type json | Token \"x\" is invalid."},
    {"json", "[[[[1]]]]", "[[[[1]]]]"},
    {"jsonb", "[[[[1]]]]", "[[[[1]]]]"},
    {"json", "{\"a\":{\"c\":1,\"bb\":[1,{\"z\":null}]}}",
     "{\"a\":{\"c\":1,\"bb\":[1,{\"z\":null}]}}"},
    {"jsonb", "{\"a\":{\"c\":1,\"bb\":[1,{\"z\":null}]}}",
     "{\"a\": {\"c\": 1, \"bb\": [1, {\"z\": null}]}}"},
    {"json", "\"\\u0000\"", "\"\\u0000\""},
    {"jsonb", "\"\\u0000\"",
     "ERROR 22P05 unsupported Unicode escape sequence | \\u0000 cannot be converted to text."},
    {"json", "\"\\ud83d\"", "\"\\ud83d\""},
    {"jsonb", "\"\\ud83d\"",
     "ERROR 22P02 invalid input syntax for type json | Unicode low surrogate must follow a high "
     "surrogate."},
    {"json", "\"\\ude00\"", "\"\\ude00\""},
    {"jsonb", "\"\\ude00\"",
     "ERROR 22P02 invalid input syntax for type json | Unicode low surrogate must follow a high "
     "surrogate."},
    {"json", "'a'", "ERROR 22P02 invalid input syntax for type json | Token \"'\" is invalid."},
    {"jsonb", "'a'", "ERROR 22P02 invalid input syntax for type json | Token \"'\" is invalid."},
    {"json", "{1:2}",
     "ERROR 22P02 invalid input syntax for type json | Expected string or \"}\", but found \"1\"."},
    {"jsonb", "{1:2}",
     "ERROR 22P02 invalid input syntax for type json | Expected string or \"}\", but found \"1\"."},
    {"json", "[1,2",
     "ERROR 22P02 invalid input syntax for type json | The input string ended unexpectedly."},
    {"jsonb", "[1,2",
     "ERROR 22P02 invalid input syntax for type json | The input string ended unexpectedly."},
    {"json", "{\"a\" 1}",
     "ERROR 22P02 invalid input syntax for type json | Expected \":\", but found \"1\"."},
    {"jsonb", "{\"a\" 1}",
     "ERROR 22P02 invalid input syntax for type json | Expected \":\", but found \"1\"."},
    {"json", "1e400", "1e400"},
    {"jsonb", "1e400",
     "100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
     "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
     "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
     "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
     "00000000000000000000000000000"},
    {"json", "123456789012345678901234567890.5", "123456789012345678901234567890.5"},
    {"jsonb", "123456789012345678901234567890.5", "123456789012345678901234567890.5"},
    {"json", "+1", "ERROR 22P02 invalid input syntax for type json | Token \"+\" is invalid."},
    {"jsonb", "+1", "ERROR 22P02 invalid input syntax for type json | Token \"+\" is invalid."},
    {"json", "NaN", "ERROR 22P02 invalid input syntax for type json | Token \"NaN\" is invalid."},
    {"jsonb", "NaN", "ERROR 22P02 invalid input syntax for type json | Token \"NaN\" is invalid."},
    {"json", "\"\\u0041\"", "\"\\u0041\""},
    {"jsonb", "\"\\u0041\"", "\"A\""},
    {"json", "{\"a\":\"\\u00e9\"}", "{\"a\":\"\\u00e9\"}"},
    {"jsonb", "{\"a\":\"\\u00e9\"}", "{\"a\": \"é\"}"},
    {"json", "-1.0", "-1.0"},
    {"jsonb", "-1.0", "-1.0"},
    {"json", "1.10", "1.10"},
    {"jsonb", "1.10", "1.10"},
    {"json", "[true,false,null]", "[true,false,null]"},
    {"jsonb", "[true,false,null]", "[true, false, null]"},
    {"json", "{\"a\":1,}",
     "ERROR 22P02 invalid input syntax for type json | Expected string, but found \"}\"."},
    {"jsonb", "{\"a\":1,}",
     "ERROR 22P02 invalid input syntax for type json | Expected string, but found \"}\"."},
    {"json", "[,1]",
     "ERROR 22P02 invalid input syntax for type json | Expected JSON value, but found \",\"."},
    {"jsonb", "[,1]",
     "ERROR 22P02 invalid input syntax for type json | Expected JSON value, but found \",\"."},
    {"json", "{\"a\":1 \"b\":2}",
     "ERROR 22P02 invalid input syntax for type json | Expected \",\" or \"}\", but found "
     "\"\"b\"\"."},
    {"jsonb", "{\"a\":1 \"b\":2}",
     "ERROR 22P02 invalid input syntax for type json | Expected \",\" or \"}\", but found "
     "\"\"b\"\"."},
    {"json", "@", "ERROR 22P02 invalid input syntax for type json | Token \"@\" is invalid."},
    {"jsonb", "@", "ERROR 22P02 invalid input syntax for type json | Token \"@\" is invalid."},
    {"json", "a", "ERROR 22P02 invalid input syntax for type json | Token \"a\" is invalid."},
    {"jsonb", "a", "ERROR 22P02 invalid input syntax for type json | Token \"a\" is invalid."},
    {"json", "\"a\" \"b\"",
     "ERROR 22P02 invalid input syntax for type json | Expected end of input, but found "
     "\"\"b\"\"."},
    {"jsonb", "\"a\" \"b\"",
     "ERROR 22P02 invalid input syntax for type json | Expected end of input, but found "
     "\"\"b\"\"."},
    {"json", "[1}",
     "ERROR 22P02 invalid input syntax for type json | Expected \",\" or \"]\", but found \"}\"."},
    {"jsonb", "[1}",
     "ERROR 22P02 invalid input syntax for type json | Expected \",\" or \"]\", but found \"}\"."},
    {"json", "{\"a\":1]",
     "ERROR 22P02 invalid input syntax for type json | Expected \",\" or \"}\", but found \"]\"."},
    {"jsonb", "{\"a\":1]",
     "ERROR 22P02 invalid input syntax for type json | Expected \",\" or \"}\", but found \"]\"."},
    {"json", "0.0", "0.0"},
    {"jsonb", "0.0", "0.0"},
    {"json", "-0.0", "-0.0"},
    {"jsonb", "-0.0", "0.0"},
    {"json", "100", "100"},
    {"jsonb", "100", "100"},
    {"json", "1e2", "1e2"},
    {"jsonb", "1e2", "100"},
};

// Ascending; 1 and 1.0 are equal.
constexpr const char* kAscending[] = {
    "[]",         "null",       "\"\"",         "\"a\"",      "\"aa\"",
    "\"b\"",      "-1",         "1.0",          "1",          "2",
    "false",      "true",       "[null]",       "[\"a\"]",    "[1]",
    "[2]",        "[[]]",       "[{\"a\": 1}]", "[1, 2]",     "{}",
    "{\"a\": 1}", "{\"a\": 2}", "{\"a\": {}}",  "{\"b\": 1}", "{\"a\": 1, \"b\": 2}",
};

TEST(Json, ReadsAndPrintsAsPostgreSql) {
  for (const TextCase& c : kJsonCases)
    EXPECT_EQ(ReadAndPrint(c.type, c.text), c.expected) << c.type << " " << c.text;
}

TEST(Json, OrdersJsonbAsPostgreSql) {
  for (size_t i = 1; i < std::size(kAscending); ++i) {
    const std::string a = kAscending[i - 1], b = kAscending[i];
    const bool equal = (a == "1" && b == "1.0") || (a == "1.0" && b == "1");
    EXPECT_EQ(CompareJsonb(a, b) < 0, !equal) << a << " " << b;
    EXPECT_EQ(CompareJsonb(b, a) > 0, !equal) << a << " " << b;
    if (equal) {
      EXPECT_EQ(HashJsonb(a), HashJsonb(b));
    }
  }
}

TEST(Json, FindsMembersAndElements) {
  constexpr std::string_view kText =
      R"( {"a": [1, {"b": "x\ny"}, null], "c\u0064": true, "a2": -1.5e3} )";
  EXPECT_EQ(JsonField(kText, "a"), R"([1, {"b": "x\ny"}, null])");
  EXPECT_EQ(JsonField(kText, "cd"), "true");
  EXPECT_EQ(JsonField(kText, "a2"), "-1.5e3");
  EXPECT_EQ(JsonField(kText, "x"), std::nullopt);
  const std::string_view array = *JsonField(kText, "a");
  EXPECT_EQ(JsonCount(array), 3u);
  EXPECT_EQ(JsonElement(array, 0), "1");
  EXPECT_EQ(JsonElement(array, -2), R"({"b": "x\ny"})");
  EXPECT_EQ(JsonElement(array, 3), std::nullopt);
  EXPECT_EQ(JsonElement(array, -4), std::nullopt);
  std::string text;
  EXPECT_TRUE(*JsonAsText(*JsonField(*JsonElement(array, 1), "b"), &text));
  EXPECT_EQ(text, "x\ny");
  EXPECT_FALSE(*JsonAsText(*JsonElement(array, 2), &text));
  EXPECT_EQ(JsonAsText(R"("a\u0000")", &text).status().sqlstate(),
            sqlstate::kUntranslatableCharacter);
}

TEST(Json, RefusesTextNestedTooDeep) {
  const std::string deep(100000, '[');
  EXPECT_EQ(ValidateJson(deep).sqlstate(), "54001");
}

}  // namespace
}  // namespace cellar
