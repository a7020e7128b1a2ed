// For callers of statements who want to know whether they worked and nothing else; also what sinks
// that want a few of a statement's results begin from.
#pragma once

#include "cellar/session/session.h"

namespace cellar::session {

// Takes what comes and keeps nothing. COPY FROM STDIN and TO STDOUT are refused with 0A000.
class DiscardingSink : public ResultSink {
 public:
  Status OnColumns(std::span<const ResultColumn>) override { return Status(); }
  Status OnRows(const RowBatch&) override { return Status(); }
  Status OnComplete(std::string_view) override { return Status(); }
  Status OnEmptyQuery() override { return Status(); }
  Status OnNotice(const Notice&) override { return Status(); }
  Status OnParameter(std::string_view, std::string_view) override { return Status(); }
  Status OnNotification(int32_t, std::string_view, std::string_view) override { return Status(); }
  Status OnCopyIn(int, bool) override { return NoCopy(); }
  Result<bool> ReadCopyData(std::string*) override { return NoCopy(); }
  Status OnCopyOut(int, bool) override { return NoCopy(); }
  Status OnCopyData(std::string_view) override { return NoCopy(); }
  Status OnCopyOutEnd() override { return NoCopy(); }

 private:
  static Status NoCopy() { return UnsupportedError("COPY has no client here"); }
};

}  // namespace cellar::session
