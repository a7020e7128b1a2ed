// Finds where statements end in text that arrives line by line, by the rules of psql: a semicolon
// ends a statement unless it stands in a literal, a comment, parentheses or the body of CREATE
// FUNCTION .. BEGIN ATOMIC .. END.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cellar::sql {

// What the text fed so far ends in. The characters are psql's prompts.
enum class SplitState : char {
  kEmpty = '=',         // nothing but blanks and comments since the last statement
  kStatement = '-',     // inside a statement
  kParenthesis = '(',   // inside parentheses
  kSingleQuote = '\'',  // inside '...'
  kDoubleQuote = '"',   // inside "..."
  kDollarQuote = '$',   // inside $tag$...$tag$
  kComment = '*',       // inside /* ... */
};

// One thread at a time. Feed whole lines, newline included: a token must not straddle two calls
// unless it is a literal or a comment. Cost: linear in the text, whatever the number of calls.
class StatementSplitter {
 public:
  // With `commands`, an unquoted backslash stops the scan: see backslash().
  explicit StatementSplitter(bool commands = false) : commands_(commands) {}

  // Takes more text and returns the statements that it completes, without their semicolons and the
  // blanks and comments around them. Empty statements vanish.
  std::vector<std::string> Feed(std::string_view text);

  SplitState state() const;
  // What has been fed since the last complete statement, comments and all.
  std::string_view pending() const { return buffer_; }
  // True when pending() holds more than blanks and comments.
  bool has_statement() const { return begun_; }

  // With `commands`: when Feed met a backslash, what follows it in that line ("g", "d t"); the scan
  // has stopped and pending() ends before it. Emptied by the next Feed.
  const std::string& backslash() const { return backslash_; }

  // Forgets everything pending.
  void Clear();
  // The pending statement, as if a semicolon had come, and forgets it. Empty when there is none.
  std::string TakeRest();

 private:
  enum class Mode : uint8_t { kNormal, kQuote, kEscapeQuote, kName, kDollar, kBlockComment };
  void Word(std::string_view word);
  std::string Statement(size_t end) const;
  // Steps over what begins at at_ in normal mode; true when a statement ended before it.
  bool Step();
  void StepInside();

  std::string buffer_;
  size_t at_ = 0;     // scanned up to here
  size_t first_ = 0;  // where the statement begins, once begun_
  size_t last_ = 0;   // past its last byte that is neither blank nor comment
  bool begun_ = false;
  bool commands_;
  bool stopped_ = false;
  Mode mode_ = Mode::kNormal;
  std::string tag_;
  int comment_depth_ = 0;
  int parens_ = 0;
  // CREATE [OR REPLACE] FUNCTION | PROCEDURE as the first words, and how many BEGINs are open.
  std::string heads_;
  int begins_ = 0;
  std::string backslash_;
};

struct SplitText {
  std::vector<std::string> statements;
  std::string rest;  // what follows the last semicolon, comments and all
  SplitState state = SplitState::kEmpty;
};

// All of a text at once.
SplitText SplitStatements(std::string_view text);

}  // namespace cellar::sql
