// ErrorResponse and NoticeResponse.
#include "cellar/pgwire/errors.h"

#include "cellar/base/sqlstate.h"
#include "cellar/types/text_io.h"

namespace cellar::pgwire {
namespace {

std::string_view SeverityName(session::Severity severity) {
  switch (severity) {
    case session::Severity::kDebug: return "DEBUG";
    case session::Severity::kLog: return "LOG";
    case session::Severity::kInfo: return "INFO";
    case session::Severity::kNotice: return "NOTICE";
    case session::Severity::kWarning: return "WARNING";
  }
  return "NOTICE";
}

void PutField(char field, std::string_view text, MessageWriter* out) {
  if (text.empty()) return;
  out->PutByte(field);
  out->PutText(text);
}

// Bytes of the UTF-8 character that begins `text`, or 0 when there is none.
size_t CharacterLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
  if (lead == 0xED && byte(1) > 0x9F) return 0;  // surrogates
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;  // past U+10FFFF
  return length;
}

}  // namespace

std::string_view SqlStateOf(const Status& status) {
  if (!status.sqlstate().empty()) return status.sqlstate();
  switch (status.code()) {
    case Code::kOk: return "00000";
    case Code::kInvalid: return sqlstate::kInvalidParameterValue;
    case Code::kNotFound: return sqlstate::kUndefinedObject;
    case Code::kExists: return sqlstate::kDuplicateObject;
    case Code::kConstraint: return "23000";  // integrity_constraint_violation
    case Code::kConflict: return sqlstate::kSerializationFailure;
    case Code::kCommitUnknown: return sqlstate::kStatementCompletionUnknown;
    case Code::kUnavailable: return sqlstate::kCannotConnectNow;
    case Code::kLimit: return sqlstate::kProgramLimitExceeded;
    case Code::kCancelled: return sqlstate::kQueryCanceled;
    case Code::kUnsupported: return sqlstate::kFeatureNotSupported;
    case Code::kCorruption: return sqlstate::kDataCorrupted;
    case Code::kInternal: return sqlstate::kInternalError;
  }
  return sqlstate::kInternalError;
}

bool IsFatal(const Status& status) {
  const std::string_view state = SqlStateOf(status);
  return state == sqlstate::kAdminShutdown || state == sqlstate::kConnectionFailure;
}

void PutError(const Status& status, bool fatal, MessageWriter* out) {
  const std::string_view severity = fatal ? "FATAL" : "ERROR";
  out->Begin('E');
  PutField('S', severity, out);
  PutField('V', severity, out);
  PutField('C', SqlStateOf(status), out);
  PutField('M', status.message().empty() ? "unknown error" : status.message(), out);
  PutField('D', status.detail(), out);
  PutField('H', status.hint(), out);
  if (status.position() > 0) PutField('P', std::to_string(status.position()), out);
  PutField('W', status.context(), out);
  PutField('s', status.schema_name(), out);
  PutField('t', status.table_name(), out);
  PutField('c', status.column_name(), out);
  PutField('n', status.constraint_name(), out);
  out->PutByte('\0');
  out->End();
}

void PutNotice(const session::Notice& notice, MessageWriter* out) {
  out->Begin('N');
  PutField('S', SeverityName(notice.severity), out);
  PutField('V', SeverityName(notice.severity), out);
  PutField('C', notice.sqlstate, out);
  PutField('M', notice.message, out);
  PutField('D', notice.detail, out);
  PutField('H', notice.hint, out);
  out->PutByte('\0');
  out->End();
}

Status PassedBy(ReadResult why) {
  if (why == ReadResult::kNoMemory) {
    return SqlError(Code::kLimit, sqlstate::kOutOfMemory, "out of memory for a message");
  }
  return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded, "a message is longer than {} MB",
                  kMaxMessageBytes >> 20);
}

Status ClientLost() {
  return SqlError(Code::kCancelled, sqlstate::kConnectionFailure, "connection to client lost");
}

Status CheckText(std::string_view text) {
  if (IsValidText(text)) return Status();
  size_t at = 0;
  while (at < text.size() && text[at] != '\0') {
    const size_t length = CharacterLength(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  // PostgreSQL shows as many bytes as the first one announces.
  const unsigned char lead = at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
  const size_t announced = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  std::string bytes;
  for (char c : text.substr(std::min(at, text.size()), announced)) {
    bytes += fmt::format("{}0x{:02x}", bytes.empty() ? "" : " ", static_cast<unsigned char>(c));
  }
  return SqlError(Code::kInvalid, sqlstate::kCharacterNotInRepertoire,
                  "invalid byte sequence for encoding \"UTF8\": {}", bytes);
}

}  // namespace cellar::pgwire
