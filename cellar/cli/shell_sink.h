// Where the shell's statements send their results: printed, or collected for the shell itself.
#pragma once

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/cli/result_printer.h"
#include "cellar/dump/texts.h"
#include "cellar/session/session.h"

namespace cellar::cli {

// One thread at a time.
class ShellSink : public session::ResultSink {
 public:
  struct Hooks {
    session::Session* session = nullptr;
    const PrintStyle* style = nullptr;
    bool quiet = false;
    int terminal_columns = 0;
    std::function<void(std::string_view text)> write;         // results
    std::function<void(std::string_view text)> say;           // notices
    std::function<Result<bool>(std::string* chunk)> copy_in;  // false at the end of the data
    std::function<Status(std::string_view data)> copy_out;    // null: as results
  };
  explicit ShellSink(Hooks hooks)
      : hooks_(std::move(hooks)), printer_(*hooks_.style, hooks_.terminal_columns, hooks_.write) {}

  // After the last statement, or after an error: nothing of a half-printed result is lost.
  void Finish();
  const std::string& tag() const { return tag_; }

  Status OnColumns(std::span<const session::ResultColumn> columns) override;
  Status OnRows(const RowBatch& batch) override;
  Status OnComplete(std::string_view tag) override;
  Status OnEmptyQuery() override { return Status(); }
  Status OnNotice(const session::Notice& notice) override;
  Status OnParameter(std::string_view, std::string_view) override { return Status(); }
  Status OnNotification(int32_t pid, std::string_view channel, std::string_view payload) override;
  Status OnCopyIn(int columns, bool binary) override;
  Result<bool> ReadCopyData(std::string* chunk) override;
  Status OnCopyOut(int columns, bool binary) override;
  Status OnCopyData(std::string_view data) override;
  Status OnCopyOutEnd() override { return Status(); }

 private:
  Hooks hooks_;
  ResultPrinter printer_;
  bool open_ = false;
  std::string tag_;
  std::vector<std::string> texts_;
  std::vector<const std::string*> cells_;
};

using dump::QueryTexts;
using dump::SqlLiteral;
using dump::TextRow;

}  // namespace cellar::cli
