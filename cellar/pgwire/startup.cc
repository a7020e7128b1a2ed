// Parsing of start-up packets.
#include "cellar/pgwire/startup.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/pgwire/errors.h"
#include "cellar/pgwire/frames.h"

namespace cellar::pgwire {
namespace {

constexpr uint32_t kCancelCode = 80877102, kSslCode = 80877103, kGssCode = 80877104;
constexpr uint32_t kMajorVersion = 3;

std::vector<std::string> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
      continue;
    }
    inside = true;
    if (c == '\\' && i + 1 < text.size()) {
      word += text[++i];
    } else {
      word += c;
    }
  }
  if (inside) words.push_back(std::move(word));
  return words;
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> ParseCommandLineOptions(
    std::string_view options) {
  std::vector<std::pair<std::string, std::string>> settings;
  const std::vector<std::string> words = SplitWords(options);
  for (size_t i = 0; i < words.size(); ++i) {
    std::string assignment;
    if (words[i] == "-c" && i + 1 < words.size()) {
      assignment = words[++i];
    } else if (words[i].substr(0, 2) == "-c" || words[i].substr(0, 2) == "--") {
      assignment = words[i].substr(2);
    }
    const size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                      "invalid command-line argument for server process: {}", words[i]);
    }
    std::string name = assignment.substr(0, equals);
    std::replace(name.begin(), name.end(), '-', '_');
    settings.emplace_back(std::move(name), assignment.substr(equals + 1));
  }
  return settings;
}

Result<StartupRequest> ParseStartup(std::string_view body) {
  BodyReader reader(body);
  StartupRequest request;
  const auto version = static_cast<uint32_t>(reader.Int32());
  if (version == kSslCode) {
    request.kind = StartupRequest::Kind::kSsl;
    return request;
  }
  if (version == kGssCode) {
    request.kind = StartupRequest::Kind::kGssEncryption;
    return request;
  }
  if (version == kCancelCode) {
    request.kind = StartupRequest::Kind::kCancel;
    request.pid = reader.Int32();
    request.secret = reader.Int32();
    if (!reader.ok() || !reader.at_end()) return ProtocolError("invalid cancel request");
    return request;
  }
  if (version >> 16 != kMajorVersion) {
    return UnsupportedError("unsupported frontend protocol {}.{}: server supports 3.0 to 3.0",
                            version >> 16, version & 0xFFFF);
  }
  request.minor_version = static_cast<int>(version & 0xFFFF);
  std::string options;
  while (true) {
    const std::string_view name = reader.Text();
    if (!reader.ok()) break;
    if (name.empty()) break;
    const std::string_view value = reader.Text();
    if (!reader.ok()) break;
    CELLAR_TRY(CheckText(name));
    CELLAR_TRY(CheckText(value));
    if (name == "user") {
      request.user = value;
    } else if (name == "database") {
      request.database = value;
    } else if (name == "options") {
      options = value;
    } else if (name == "replication") {
      if (value != "false" && value != "off" && value != "no" && value != "0") {
        return UnsupportedError("replication connections are not supported");
      }
    } else if (name.substr(0, 5) == "_pq_.") {
      request.unknown_protocol_options.emplace_back(name);
    } else {
      request.settings.emplace_back(name, value);
    }
  }
  if (!reader.ok() || !reader.at_end()) {
    return ProtocolError("invalid startup packet layout: expected terminator as last byte");
  }
  if (request.user.empty()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidAuthorization,
                    "no PostgreSQL user name specified in startup packet");
  }
  if (request.database.empty()) request.database = request.user;
  // As in PostgreSQL, options come before the packet's own settings.
  CELLAR_TRY_ASSIGN(auto parsed, ParseCommandLineOptions(options));
  parsed.insert(parsed.end(), std::make_move_iterator(request.settings.begin()),
                std::make_move_iterator(request.settings.end()));
  request.settings = std::move(parsed);
  return request;
}

}  // namespace cellar::pgwire
