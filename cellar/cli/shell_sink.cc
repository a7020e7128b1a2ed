// Printing and collecting sinks.
#include "cellar/cli/shell_sink.h"

#include "cellar/cli/error_text.h"

namespace cellar::cli {
void ShellSink::Finish() {
  if (open_) printer_.End();
  open_ = false;
}

Status ShellSink::OnColumns(std::span<const session::ResultColumn> columns) {
  Finish();
  printer_ = ResultPrinter(*hooks_.style, hooks_.terminal_columns, hooks_.write);
  printer_.Begin(columns);
  open_ = true;
  texts_.resize(columns.size());
  cells_.resize(columns.size());
  return Status();
}

Status ShellSink::OnRows(const RowBatch& batch) {
  for (size_t row = 0; row < batch.size(); ++row) {
    for (size_t c = 0; c < batch.num_columns(); ++c) {
      const ColumnVector& column = batch.column(c);
      cells_[c] = nullptr;
      if (column.IsNull(row)) continue;
      texts_[c].clear();
      hooks_.session->AppendText(column.Get(row), column.type(), &texts_[c]);
      cells_[c] = &texts_[c];
    }
    printer_.AddRow(cells_);
  }
  return Status();
}

Status ShellSink::OnComplete(std::string_view tag) {
  tag_ = tag;
  const bool had_rows = open_;
  Finish();
  if (!had_rows && !hooks_.quiet && hooks_.style->mode == OutputMode::kAligned) {
    hooks_.write(std::string(tag) + "\n");
  }
  return Status();
}

Status ShellSink::OnNotice(const session::Notice& notice) {
  hooks_.say(NoticeText(notice));
  return Status();
}

Status ShellSink::OnNotification(int32_t pid, std::string_view channel, std::string_view payload) {
  std::string text = fmt::format("Asynchronous notification \"{}\"", channel);
  if (!payload.empty()) text += fmt::format(" with payload \"{}\"", payload);
  hooks_.write(text + fmt::format(" received from server process with PID {}.\n", pid));
  return Status();
}

Status ShellSink::OnCopyIn(int, bool) { return Status(); }

Result<bool> ShellSink::ReadCopyData(std::string* chunk) { return hooks_.copy_in(chunk); }

Status ShellSink::OnCopyOut(int, bool) { return Status(); }

Status ShellSink::OnCopyData(std::string_view data) {
  if (hooks_.copy_out) return hooks_.copy_out(data);
  hooks_.write(data);
  return Status();
}

}  // namespace cellar::cli
