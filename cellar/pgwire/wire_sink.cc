// Results out, COPY data in.
#include "cellar/pgwire/wire_sink.h"

#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/pgwire/errors.h"
#include "cellar/pgwire/login.h"

namespace cellar::pgwire {
namespace {

// psql sends a line a message: what has come already is handed on together, up to about this much.
constexpr size_t kCopyChunkBytes = 64 << 10;

}  // namespace

WireSink::WireSink(Channel* channel, Conversation* conversation)
    : channel_(channel),
      out_(channel->writer),
      conversation_(conversation),
      formatter_([conversation](Datum value, Type type, std::string* out) {
        conversation->AppendText(value, type, out);
      }) {}

Status WireSink::Written() { return out_.FlushIfLarge() ? Status() : ClientLost(); }

Status WireSink::OnColumns(std::span<const session::ResultColumn> columns) {
  PutRowDescription(columns, formats_, &out_);
  return Written();
}

Status WireSink::OnRows(const RowBatch& batch) {
  rows_sent_ += batch.size();
  return formatter_.PutRows(batch, formats_, conversation_->format(), &out_);
}

Status WireSink::OnComplete(std::string_view tag) {
  if (tag == "LISTEN") may_listen_ = true;
  // SET, RESET, ROLLBACK, DISCARD: what may change the settings that the connection keeps in mind.
  const std::string_view word = tag.substr(0, 3);
  if (word == "SET" || word == "RES" || word == "ROL" || word == "DIS") settings_changed_ = true;
  const bool writes = word == "INS" || word == "UPD" || word == "DEL" || copies_in_;
  copies_in_ = false;
  if (const size_t at = tag.rfind(' '); writes && at != std::string_view::npos) {
    uint64_t rows = 0;
    std::from_chars(tag.data() + at + 1, tag.data() + tag.size(), rows);
    rows_written_ += rows;
  }
  out_.Begin('C');
  out_.PutText(tag);
  out_.End();
  return Written();
}

Status WireSink::OnEmptyQuery() {
  out_.Put('I');
  return Written();
}

Status WireSink::OnNotice(const session::Notice& notice) {
  PutNotice(notice, &out_);
  return Written();
}

Status WireSink::OnParameter(std::string_view name, std::string_view value) {
  PutParameter(name, value, &out_);
  return Written();
}

Status WireSink::OnNotification(int32_t pid, std::string_view channel, std::string_view payload) {
  out_.Begin('A');
  out_.PutInt32(static_cast<uint32_t>(pid));
  out_.PutText(channel);
  out_.PutText(payload);
  out_.End();
  return Written();
}

void WireSink::PutCopyResponse(char type, int columns, bool binary) {
  const int format = binary ? 1 : 0;
  out_.Begin(type);
  out_.PutByte(static_cast<char>(format));
  out_.PutInt16(columns);
  for (int i = 0; i < columns; ++i) out_.PutInt16(format);
  out_.End();
}

Status WireSink::OnCopyIn(int columns, bool binary) {
  // The session goes on using the text of the query while new messages come.
  channel_->reader.Pin();
  copies_in_ = true;
  PutCopyResponse('G', columns, binary);
  return out_.Flush() ? Status() : ClientLost();
}

Result<bool> WireSink::ReadCopyData(std::string* chunk) {
  chunk->clear();
  MessageReader& reader = channel_->reader;
  while (true) {
    char type = 0;
    std::string_view body;
    const ReadResult read = reader.Read(&type, &body);
    switch (read) {
      case ReadResult::kMessage: break;
      case ReadResult::kTooLong:
      case ReadResult::kNoMemory: return PassedBy(read);
      case ReadResult::kBadLength:
      case ReadResult::kEnd:
        if (conversation_->ending()) {
          return SqlError(Code::kCancelled, sqlstate::kAdminShutdown,
                          "terminating connection due to administrator command");
        }
        client_gone_ = true;
        return SqlError(Code::kCancelled, sqlstate::kConnectionFailure,
                        "unexpected EOF on client connection with an open transaction");
    }
    switch (type) {
      case 'd':
        chunk->assign(body);
        while (chunk->size() < kCopyChunkBytes && reader.TakeBuffered('d', &body)) {
          chunk->append(body);
        }
        if (chunk->empty()) continue;
        return true;
      case 'c': return false;
      case 'f': {
        BodyReader fields(body);
        const std::string_view reason = fields.Text();
        return SqlError(Code::kCancelled, sqlstate::kQueryCanceled, "COPY from stdin failed: {}",
                        reason);
      }
      case 'H':
      case 'S': continue;  // a client of the extended protocol sends its Sync before the data
      default:
        return ProtocolError("unexpected message type 0x{:02X} during COPY from stdin",
                             static_cast<unsigned char>(type));
    }
  }
}

Status WireSink::OnCopyOut(int columns, bool binary) {
  PutCopyResponse('H', columns, binary);
  return Written();
}

Status WireSink::OnCopyData(std::string_view data) {
  out_.Begin('d');
  out_.PutBytes(data);
  out_.End();
  return Written();
}

Status WireSink::OnCopyOutEnd() {
  out_.Put('c');
  return Written();
}

}  // namespace cellar::pgwire
