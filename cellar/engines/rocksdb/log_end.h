// How far the log of a store is known to reach: a file beside it, so that a log that was cut off or
// deleted is noticed, which RocksDB takes for the end of what was written. The bytes are specified
// in docs/formats/store.md.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "cellar/base/status.h"

namespace cellar::engines {

// Changes are RocksDB's sequence numbers.
struct LogEnd {
  uint64_t change = 0;      // this one and all before it are durable
  bool stopped = false;     // the store was stopped after it
  uint64_t generation = 0;  // of the record
};

inline constexpr std::string_view kLogEndFile = "log_end";

// One slot of the file.
std::string EncodeLogEnd(const LogEnd& end);
// The newest intact slot of a file's content; nullopt: none is. Errors: kUnsupported for a newer
// version.
Result<std::optional<LogEnd>> ParseLogEnd(std::string_view content);
// Of a store's directory; nullopt: there is no file, or it was never written to. Errors:
// kCorruption when no slot is intact; kUnsupported; 58030.
Result<std::optional<LogEnd>> ReadLogEnd(const std::string& directory);

// Writes the record while the store is open: about once a second when something new is durable, not
// synced, so that no commit waits for it. Thread-safe.
class LogEndKeeper {
 public:
  // Writes a first record, durably. Errors: 58030, 53100.
  static Result<std::unique_ptr<LogEndKeeper>> Start(const std::string& directory, LogEnd first);
  ~LogEndKeeper();

  // Changes up to this are durable. Cost: a lock.
  void Note(uint64_t change);
  // The last record, durable. Nothing is noted any more.
  Status Stop(uint64_t change);

 private:
  explicit LogEndKeeper(int fd) : fd_(fd) {}
  void Run();
  Status Write(const LogEnd& end, bool sync);

  const int fd_;
  std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  LogEnd end_;
  uint64_t written_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace cellar::engines
