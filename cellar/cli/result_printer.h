// Result sets as text: aligned as psql does it, CSV, JSON.
#pragma once

#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/cli/commands.h"
#include "cellar/session/session.h"

namespace cellar::cli {

struct PrintStyle {
  OutputMode mode = OutputMode::kAligned;
  bool expanded = false;       // a line per value
  bool expanded_auto = false;  // when the table is wider than the terminal
  bool tuples_only = false;
  std::string null_text = "NULL";
  int border = 1;  // 0, 1 or 2
  std::string title;
};

// Prints one result set. Aligned output is held back until the widths are known: all of it, or the
// first kHeldRows rows. One thread at a time.
class ResultPrinter {
 public:
  using Write = std::function<void(std::string_view text)>;
  // `terminal_columns`: for expanded_auto; 0 when there is no terminal.
  ResultPrinter(const PrintStyle& style, int terminal_columns, Write write)
      : style_(style), terminal_columns_(terminal_columns), write_(std::move(write)) {}

  static constexpr size_t kHeldRows = 20000;

  void Begin(std::span<const session::ResultColumn> columns);
  // `cells`: a text per column; null ones are given as nullptr.
  void AddRow(std::span<const std::string* const> cells);
  // The footer too.
  void End();
  uint64_t rows() const { return rows_; }

 private:
  struct Cell {
    std::string text;
    bool null = false;
  };
  void AddCsv(std::span<const std::string* const> cells);
  void AddJson(std::span<const std::string* const> cells);
  void FlushAligned(bool last);
  void PrintHeader();
  void PrintAlignedRow(const Cell* cells);
  void PrintExpandedRow(const Cell* cells, uint64_t number);
  void PrintRule(char left, char cross, char right);
  void Send() {
    write_(out_);
    out_.clear();
  }

  PrintStyle style_;
  int terminal_columns_;
  Write write_;
  std::vector<session::ResultColumn> columns_;
  std::vector<Cell> held_;  // columns_.size() cells per row
  std::vector<int> widths_;
  bool header_done_ = false, use_expanded_ = false;
  uint64_t rows_ = 0, printed_ = 0;
  std::string out_;
};

// A CSV field, quoted when it must be.
std::string CsvField(std::string_view text);
// A JSON string with its quotes.
std::string JsonString(std::string_view text);

}  // namespace cellar::cli
