// What the files of this layer share. Not for programs: those include cellar/db.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cellar/base/arena.h"
#include "cellar/db.h"
#include "cellar/session/direct.h"
#include "cellar/session/session.h"

namespace cellar {
namespace internal {

// Hands notices on; nothing else comes here.
class LibrarySink : public session::ResultSink {
 public:
  explicit LibrarySink(std::function<void(std::string_view)> on_notice)
      : on_notice_(std::move(on_notice)) {}
  Status OnColumns(std::span<const session::ResultColumn> columns) override;
  Status OnRows(const RowBatch& batch) override;
  Status OnComplete(std::string_view tag) override;
  Status OnEmptyQuery() override;
  Status OnNotice(const session::Notice& notice) override;
  Status OnParameter(std::string_view name, std::string_view value) override;
  Status OnNotification(int32_t pid, std::string_view channel, std::string_view payload) override;
  Status OnCopyIn(int columns, bool binary) override;
  Result<bool> ReadCopyData(std::string* chunk) override;
  Status OnCopyOut(int columns, bool binary) override;
  Status OnCopyData(std::string_view data) override;
  Status OnCopyOutEnd() override;

 private:
  std::function<void(std::string_view)> on_notice_;
};

struct ConnectionState {
  explicit ConnectionState(std::function<void(std::string_view)> on_notice)
      : sink(std::move(on_notice)) {}
  std::unique_ptr<session::Session> session;
  LibrarySink sink;
  // Plans of Query and Execute, by text.
  std::unordered_map<std::string, std::shared_ptr<StatementState>> statements;
};

struct StatementState {
  ConnectionState* connection = nullptr;
  std::unique_ptr<session::DirectStatement> direct;
  std::vector<Column> columns;
  uint64_t run = 0;  // counts runs, so that Rows of an earlier one notice
  Arena arena;       // bytes of parameters
  std::vector<Datum> parameters;
  std::vector<Value> bound;  // text for parameters of no type
};

// `value` as a value of `type`, its bytes in `arena` or borrowed. Errors: 22P02, 22003, 22021, ...
Result<Datum> ToDatum(const Param& value, Type type, const FormatSettings& format, Arena* arena);

}  // namespace internal
}  // namespace cellar
