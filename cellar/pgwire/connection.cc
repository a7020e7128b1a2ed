// The message loop.
#include "cellar/pgwire/connection.h"

#include <poll.h>

#include <cerrno>

#include "cellar/base/sqlstate.h"
#include "cellar/pgwire/errors.h"
#include "cellar/pgwire/login.h"
#include "cellar/pgwire/rows.h"

namespace cellar::pgwire {
namespace {

// How often a client that listens is told what came while it was idle.
constexpr int kNotifyMillis = 50;
constexpr size_t kMaxNamedPortals = 100000;

// Counts one statement and the time it takes.
class RequestTimer {
 public:
  explicit RequestTimer(monitor::DoorMeters* meters) : meters_(meters) {
    if (meters_ != nullptr) start_ = std::chrono::steady_clock::now();
  }
  ~RequestTimer() {
    if (meters_ != nullptr) meters_->Request(std::chrono::steady_clock::now() - start_);
  }
  RequestTimer(const RequestTimer&) = delete;
  RequestTimer& operator=(const RequestTimer&) = delete;

 private:
  monitor::DoorMeters* meters_;
  std::chrono::steady_clock::time_point start_;
};

Status BadMessage() { return ProtocolError("invalid message format"); }

// Format codes, their count first.
Status TakeFormats(BodyReader* reader, std::vector<int16_t>* formats) {
  const uint16_t count = reader->Count();
  formats->clear();
  for (uint16_t i = 0; i < count && reader->ok(); ++i) {
    const int16_t format = reader->Int16();
    if (format != 0 && format != 1) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "unsupported format code: {}", format);
    }
    formats->push_back(format);
  }
  return Status();
}

}  // namespace

Connection::Connection(Channel* channel, Conversation* conversation, Gate* gate)
    : channel_(channel),
      out_(channel->writer),
      conversation_(conversation),
      gate_(gate),
      sink_(channel, conversation),
      meters_(gate->meters()) {}

void Connection::Run() {
  if (!out_.Flush()) return;
  MessageReader& reader = channel_->reader;
  while (true) {
    if (Ending()) return LeaveAsTold();
    if (reader.empty()) {
      reader.Unpin();
      reader.Shrink();
      out_.Shrink();
      if (!WaitForClient()) return;
    }
    char type = 0;
    std::string_view body;
    const ReadResult read = reader.Read(&type, &body);
    switch (read) {
      case ReadResult::kMessage: break;
      case ReadResult::kEnd:
        if (Ending()) LeaveAsTold();
        return;
      case ReadResult::kBadLength:
        return Leave(sqlstate::kProtocolViolation, "invalid message length");
      case ReadResult::kTooLong:
      case ReadResult::kNoMemory: {
        if (skip_to_sync_) continue;
        const Status status = PassedBy(read);
        if (type == 'Q' || type == 'F') {
          if (Report(status) == Next::kClose || Ready() == Next::kClose) return;
        } else if (Extended(status) == Next::kClose) {
          return;
        }
        continue;
      }
    }
    gate_->Working(true);
    const Next next = Dispatch(type, body);
    gate_->Working(false);
    Count();
    if (next == Next::kClose) return;
  }
}

Connection::Next Connection::Dispatch(char type, std::string_view body) {
  if (skip_to_sync_ && type != 'S' && type != 'X') {
    switch (type) {
      case 'Q':
      case 'P':
      case 'B':
      case 'D':
      case 'E':
      case 'C':
      case 'H':
      case 'F':
      case 'd':
      case 'c':
      case 'f': return Next::kGoOn;
      default: break;
    }
  }
  switch (type) {
    case 'Q': return SimpleQuery(body);
    case 'P': return Extended(Parse(body));
    case 'B': return Extended(Bind(body));
    case 'D': return Extended(Describe(body));
    case 'E': return Extended(Execute(body));
    case 'C': return Extended(Close(body));
    case 'S': return Sync(body);
    case 'H': return out_.Flush() ? Next::kGoOn : Next::kClose;
    case 'F': return FunctionCall();
    case 'X': return Next::kClose;
    case 'd':
    case 'c':
    case 'f': return Next::kGoOn;  // left over from a COPY that failed
    default:
      Leave(sqlstate::kProtocolViolation,
            fmt::format("invalid frontend message type {}", static_cast<unsigned char>(type)));
      return Next::kClose;
  }
}

void Connection::Count() {
  if (meters_ == nullptr) return;
  const auto add = [](uint64_t now, uint64_t* before, std::atomic<uint64_t>* total) {
    if (now != *before) total->fetch_add(now - *before, std::memory_order_relaxed);
    *before = now;
  };
  add(channel_->reader.received(), &counted_received_, &meters_->bytes_received);
  add(out_.sent(), &counted_sent_, &meters_->bytes_sent);
  add(sink_.rows_sent(), &counted_rows_, &meters_->rows_sent);
  add(sink_.rows_written(), &counted_written_, &meters_->rows_written);
}

bool Connection::Ending() const { return gate_->stopping() || conversation_->ending(); }

void Connection::LeaveAsTold() {
  Leave(sqlstate::kAdminShutdown, "terminating connection due to administrator command");
}

void Connection::Leave(std::string_view sqlstate, std::string_view message) {
  PutError(Status(Code::kCancelled, std::string(message)).WithSqlState(sqlstate), true, &out_);
  out_.Flush();
}

Connection::Next Connection::Report(const Status& status) {
  if (meters_ != nullptr) meters_->Error(SqlStateOf(status));
  conversation_->Fail();  // what the session does not know yet; nothing happens twice
  if (out_.broken() || sink_.client_gone()) return Next::kClose;
  out_.AbandonUnfinished();
  const bool fatal = IsFatal(status);
  PutError(status, fatal, &out_);
  if (!fatal) return Next::kGoOn;
  out_.Flush();
  return Next::kClose;
}

Connection::Next Connection::Ready() {
  PutReady(*conversation_, &out_);
  return out_.Flush() ? Next::kGoOn : Next::kClose;
}

Connection::Next Connection::SimpleQuery(std::string_view body) {
  BodyReader reader(body);
  const std::string_view text = reader.Text();
  Status status;
  if (!reader.ok()) {
    status = ProtocolError("invalid string in message");
  } else if (!reader.at_end()) {
    status = BadMessage();
  } else if (status = CheckText(text); status.ok()) {
    sink_.set_formats({});
    const RequestTimer timer(meters_);
    status = conversation_->ExecuteSimple(text, &sink_);
  }
  if (!status.ok() && Report(status) == Next::kClose) return Next::kClose;
  // Portals live no longer than the transaction; see Sync.
  if (conversation_->transaction_status() == 'I') named_formats_.clear();
  return Ready();
}

Connection::Next Connection::FunctionCall() {
  const Status status = UnsupportedError("fastpath function calls are not supported")
                            .WithHint("Call the function in a SELECT statement.");
  if (Report(status) == Next::kClose) return Next::kClose;
  return Ready();
}

Connection::Next Connection::Extended(Status status) {
  // A client that asks on and reads nothing waits.
  if (status.ok()) return out_.FlushIfLarge() ? Next::kGoOn : Next::kClose;
  skip_to_sync_ = true;
  if (Report(status) == Next::kClose) return Next::kClose;
  // A Flush that follows is skipped too, and its sender waits for this error before it sends Sync.
  return out_.Flush() ? Next::kGoOn : Next::kClose;
}

Connection::Next Connection::Sync(std::string_view body) {
  skip_to_sync_ = false;
  Status status = conversation_->Sync(&sink_);
  if (!status.ok() && Report(status) == Next::kClose) return Next::kClose;
  // The session has dropped the portals of an implicit transaction.
  if (!named_formats_.empty() && conversation_->transaction_status() == 'I') named_formats_.clear();
  return Ready();
}

Status Connection::Parse(std::string_view body) {
  BodyReader reader(body);
  const std::string_view name = reader.Text();
  const std::string_view text = reader.Text();
  const uint16_t count = reader.Count();
  oids_.clear();
  for (uint16_t i = 0; i < count && reader.ok(); ++i) {
    oids_.push_back(static_cast<uint32_t>(reader.Int32()));
  }
  if (!reader.ok()) return ProtocolError("insufficient data left in message");
  if (!reader.at_end()) return BadMessage();
  CELLAR_TRY(CheckText(name));
  CELLAR_TRY(CheckText(text));
  name_.assign(name);
  CELLAR_TRY(conversation_->Parse(name_, text, oids_, &sink_));
  out_.Put('1');
  return Status();
}

Status Connection::Bind(std::string_view body) {
  BodyReader reader(body);
  const std::string_view portal = reader.Text();
  const std::string_view statement = reader.Text();
  CELLAR_TRY(TakeFormats(&reader, &parameter_formats_));
  const uint16_t count = reader.Count();
  if (!reader.ok()) return ProtocolError("insufficient data left in message");
  if (parameter_formats_.size() > 1 && parameter_formats_.size() != count) {
    return ProtocolError("bind message has {} parameter formats but {} parameters",
                         parameter_formats_.size(), count);
  }
  parameters_.clear();
  for (uint16_t i = 0; i < count; ++i) {
    session::BoundParameter parameter;
    const int32_t length = reader.Int32();
    if (length == -1) {
      parameter.is_null = true;
    } else if (length < 0) {
      return ProtocolError("insufficient data left in message");
    } else {
      parameter.bytes = reader.Bytes(static_cast<size_t>(length));
    }
    if (!reader.ok()) return ProtocolError("insufficient data left in message");
    if (!parameter_formats_.empty()) {
      parameter.binary = parameter_formats_[parameter_formats_.size() == 1 ? 0 : i] == 1;
    }
    parameters_.push_back(parameter);
  }
  CELLAR_TRY(CheckText(portal));
  CELLAR_TRY(CheckText(statement));
  name_.assign(portal);
  if (!name_.empty() && named_formats_.size() >= kMaxNamedPortals) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded, "too many portals");
  }
  std::vector<int16_t>& formats = name_.empty() ? unnamed_formats_ : named_formats_[name_];
  CELLAR_TRY(TakeFormats(&reader, &formats));
  if (!reader.ok()) return ProtocolError("insufficient data left in message");
  if (!reader.at_end()) return BadMessage();
  other_name_.assign(statement);
  CELLAR_TRY(conversation_->Bind(name_, other_name_, parameters_));
  if (formats.size() > 1) {
    bool returns_rows = false;
    CELLAR_TRY_ASSIGN(std::vector<session::ResultColumn> columns,
                      conversation_->DescribePortal(name_, &returns_rows));
    if (returns_rows && columns.size() != formats.size()) {
      return ProtocolError("bind message has {} result formats but query has {} columns",
                           formats.size(), columns.size());
    }
  }
  out_.Put('2');
  return Status();
}

std::span<const int16_t> Connection::FormatsOf(const std::string& portal) const {
  if (portal.empty()) return unnamed_formats_;
  auto at = named_formats_.find(portal);
  return at == named_formats_.end() ? std::span<const int16_t>() : std::span(at->second);
}

Status Connection::Describe(std::string_view body) {
  BodyReader reader(body);
  const char kind = static_cast<char>(reader.Byte());
  const std::string_view name = reader.Text();
  if (!reader.ok()) return ProtocolError("insufficient data left in message");
  if (!reader.at_end()) return BadMessage();
  name_.assign(name);
  if (kind == 'S') {
    CELLAR_TRY_ASSIGN(session::StatementDescription description,
                      conversation_->DescribeStatement(name_));
    out_.Begin('t');
    out_.PutInt16(static_cast<int>(description.parameter_oids.size()));
    for (uint32_t oid : description.parameter_oids) out_.PutInt32(oid);
    out_.End();
    if (description.returns_rows) {
      PutRowDescription(description.columns, {}, &out_);
    } else {
      out_.Put('n');
    }
    return Status();
  }
  if (kind != 'P') {
    return ProtocolError("invalid DESCRIBE message subtype {}", static_cast<int>(kind));
  }
  bool returns_rows = false;
  CELLAR_TRY_ASSIGN(std::vector<session::ResultColumn> columns,
                    conversation_->DescribePortal(name_, &returns_rows));
  if (returns_rows) {
    const std::span<const int16_t> formats = FormatsOf(name_);
    if (formats.size() > 1 && formats.size() != columns.size()) {
      return ProtocolError("bind message has {} result formats but query has {} columns",
                           formats.size(), columns.size());
    }
    PutRowDescription(columns, formats, &out_);
  } else {
    out_.Put('n');
  }
  return Status();
}

Status Connection::Execute(std::string_view body) {
  BodyReader reader(body);
  const std::string_view portal = reader.Text();
  const int32_t max_rows = reader.Int32();
  if (!reader.ok()) return ProtocolError("insufficient data left in message");
  if (!reader.at_end()) return BadMessage();
  name_.assign(portal);
  sink_.set_formats(FormatsOf(name_));
  const RequestTimer timer(meters_);
  CELLAR_TRY_ASSIGN(
      session::ExecuteOutcome outcome,
      conversation_->ExecutePortal(name_, max_rows > 0 ? static_cast<uint64_t>(max_rows) : 0,
                                   channel_->reader.NextIs('S'), &sink_));
  if (outcome == session::ExecuteOutcome::kSuspended) out_.Put('s');
  return Status();
}

Status Connection::Close(std::string_view body) {
  BodyReader reader(body);
  const char kind = static_cast<char>(reader.Byte());
  const std::string_view name = reader.Text();
  if (!reader.ok()) return ProtocolError("insufficient data left in message");
  if (!reader.at_end()) return BadMessage();
  name_.assign(name);
  if (kind == 'S') {
    CELLAR_TRY(conversation_->CloseStatement(name_));
  } else if (kind == 'P') {
    named_formats_.erase(name_);
    CELLAR_TRY(conversation_->ClosePortal(name_));
  } else {
    return ProtocolError("invalid CLOSE message subtype {}", static_cast<int>(kind));
  }
  out_.Put('3');
  return Status();
}

bool Connection::WaitForClient() {
  if (sink_.TakeSettingsChanged()) {
    idle_limit_ms_ = conversation_->SettingNumber("idle_session_timeout");
    idle_in_transaction_limit_ms_ =
        conversation_->SettingNumber("idle_in_transaction_session_timeout");
  }
  const bool in_block = conversation_->transaction_status() != 'I';
  int64_t left = in_block ? idle_in_transaction_limit_ms_ : idle_limit_ms_;
  const bool limited = left > 0;
  const bool listens = sink_.may_listen() && !in_block;
  if (!limited && !listens) return true;
  if (channel_->transport().HasBuffered()) return true;
  while (true) {
    int wait = listens ? kNotifyMillis : -1;
    if (limited && (wait < 0 || left < wait))
      wait = static_cast<int>(std::min<int64_t>(left, 1000));
    pollfd ready{channel_->fd, POLLIN, 0};
    const int count = ::poll(&ready, 1, wait);
    if (count > 0 || (count < 0 && errno != EINTR)) return true;
    if (Ending()) return true;
    if (limited && count == 0) {
      left -= wait;
      if (left <= 0) {
        if (in_block) {
          Leave("25P03", "terminating connection due to idle-in-transaction timeout");
        } else {
          Leave("57P05", "terminating connection due to idle-session timeout");
        }
        return false;
      }
    }
    if (listens) {
      if (!conversation_->TakeNotifications(&sink_).ok() || !out_.Flush()) return false;
    }
  }
}

}  // namespace cellar::pgwire
