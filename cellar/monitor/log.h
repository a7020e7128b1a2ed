// The server's log: lines on standard error, as text or as JSON objects. Never row values, never
// passwords.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellar::monitor {

enum class LogFormat : unsigned char { kText, kJson };
enum class LogLevel : unsigned char { kInfo, kWarning, kError };
using LogFields = std::vector<std::pair<std::string_view, std::string>>;

// For the process; text unless told otherwise.
void SetLogFormat(LogFormat format);

// Thread-safe; one write a line.
//   cellar: <message> (<field>=<value>, ...)
//   {"time":"2026-01-31T12:00:00.123Z","level":"info","message":"..","<field>":".."}
void Log(LogLevel level, std::string_view message, const LogFields& fields = {});
inline void Log(std::string_view message, const LogFields& fields = {}) {
  Log(LogLevel::kInfo, message, fields);
}

// One line without its end, as Log writes it; `unix_millis` says when.
std::string FormatLogLine(LogFormat format, LogLevel level, int64_t unix_millis,
                          std::string_view message, const LogFields& fields);

}  // namespace cellar::monitor
