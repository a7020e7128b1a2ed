// Lines from a terminal, with history, editing and completion (libedit).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cellar::cli {

// What Tab offers for the word that ends at the cursor.
struct Completion {
  size_t word_start = 0;           // in the text before the cursor
  std::vector<std::string> words;  // sorted, unique; each begins with the word, but for case
};

// One thread at a time; at most one exists.
class LineEditor {
 public:
  using Complete = std::function<Completion(std::string_view before_cursor)>;
  enum class Outcome : unsigned char { kLine, kEnd, kInterrupted };

  // The history is read from, and kept in, `history_file` (mode 0600); empty: nowhere.
  static std::unique_ptr<LineEditor> Open(const std::string& history_file, Complete complete);
  virtual ~LineEditor() = default;

  // `*line` has no newline. kEnd at Ctrl-D, kInterrupted at Ctrl-C.
  virtual Outcome Read(const std::string& prompt, std::string* line) = 0;
  // Adds a statement to the history, unless it speaks of a password.
  virtual void Remember(const std::string& statement) = 0;
};

// Ctrl-C: calls `action` (which must be async-signal-safe), or ends the Read that waits.
void SetInterruptAction(void (*action)());

}  // namespace cellar::cli
