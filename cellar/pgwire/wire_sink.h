// What a session hands out, as frames; and COPY data, as it comes in.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cellar/pgwire/backend.h"
#include "cellar/pgwire/channel.h"
#include "cellar/pgwire/rows.h"

namespace cellar::pgwire {

// One thread at a time.
class WireSink : public session::ResultSink {
 public:
  // Both outlive the sink.
  WireSink(Channel* channel, Conversation* conversation);

  // Formats of the rows that come; borrowed until the next call.
  void set_formats(std::span<const int16_t> formats) { formats_ = formats; }
  // Statements that may have changed what the connection keeps in mind.
  bool TakeSettingsChanged() { return std::exchange(settings_changed_, false); }
  bool may_listen() const { return may_listen_; }
  // The client broke off in the middle of what it had to send.
  bool client_gone() const { return client_gone_; }
  uint64_t rows_sent() const { return rows_sent_; }
  // Inserted, updated or deleted.
  uint64_t rows_written() const { return rows_written_; }

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
  void PutCopyResponse(char type, int columns, bool binary);
  // OK, or ClientLost().
  Status Written();

  Channel* channel_;
  MessageWriter& out_;
  Conversation* conversation_;
  RowFormatter formatter_;
  std::span<const int16_t> formats_;
  bool settings_changed_ = true;
  bool may_listen_ = false;
  bool client_gone_ = false;
  bool copies_in_ = false;
  uint64_t rows_sent_ = 0, rows_written_ = 0;
};

}  // namespace cellar::pgwire
