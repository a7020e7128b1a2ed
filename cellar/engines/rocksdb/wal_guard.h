// Finds out how far RocksDB's write-ahead logs reach, whatever lies damaged in between.
//
// RocksDB recovers up to the first record that does not check, and takes what follows for a torn
// tail, in silence: after a flipped bit, synced commits would vanish without an error. Valid
// records behind such a place are the evidence that it is no tail. Log format: RocksDB's log_format
// (blocks of 32 KiB; records of crc32c, length, type; fragments; a batch starts with its sequence
// number and count).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/base/status.h"

namespace cellar::engines {

struct LogExtent {
  uint64_t last_sequence = 0;  // the highest of any complete valid record; 0: no records
  uint64_t bytes = 0;          // of all log files
};

// Adds what one log file's content holds.
void ScanLog(std::string_view content, LogExtent* extent);
// Reads all *.log files of a directory. Errors: kUnavailable 58030.
Result<LogExtent> ScanLogs(const std::string& directory);

}  // namespace cellar::engines
