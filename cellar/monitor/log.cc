#include "cellar/monitor/log.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "fmt/format.h"

namespace cellar::monitor {
namespace {

std::atomic<LogFormat> log_format{LogFormat::kText};

const char* LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kError: return "error";
  }
  return "info";
}

std::string Timestamp(int64_t unix_millis) {
  const auto seconds = static_cast<time_t>(unix_millis / 1000);
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     unix_millis % 1000);
}

}  // namespace

void SetLogFormat(LogFormat format) { log_format.store(format, std::memory_order_relaxed); }

std::string FormatLogLine(LogFormat format, LogLevel level, int64_t unix_millis,
                          std::string_view message, const LogFields& fields) {
  if (format == LogFormat::kJson) {
    nlohmann::ordered_json line;
    line["time"] = Timestamp(unix_millis);
    line["level"] = LevelName(level);
    line["message"] = message;
    for (const auto& [name, value] : fields) line[std::string(name)] = value;
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }
  std::string line = "cellar: ";
  if (level != LogLevel::kInfo) line += fmt::format("{}: ", LevelName(level));
  line += message;
  const char* separator = " (";
  for (const auto& [name, value] : fields) {
    line += fmt::format("{}{}={}", separator, name, value);
    separator = ", ";
  }
  if (!fields.empty()) line += ")";
  // A client's name must not forge a line.
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  }
  return line;
}

void Log(LogLevel level, std::string_view message, const LogFields& fields) {
  const int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  const std::string line =
      FormatLogLine(log_format.load(std::memory_order_relaxed), level, now, message, fields) + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace cellar::monitor
