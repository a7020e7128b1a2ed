#include "cellar/engines/rocksdb/rocks_status.h"

#include <rocksdb/status.h>

#include "cellar/base/sqlstate.h"

namespace cellar::engines {

bool IsDiskFull(const rocksdb::Status& status) {
  return status.IsNoSpace() || status.subcode() == rocksdb::Status::kSpaceLimit ||
         status.ToString().find("No space left on device") != std::string::npos;
}

Status FromRocks(const rocksdb::Status& status, std::string_view what) {
  if (status.ok()) return {};
  const std::string text = status.ToString();
  if (status.IsCorruption()) {
    return SqlError(Code::kCorruption, sqlstate::kDataCorrupted, "{}: {}", what, text)
        .WithHint("Restore the store from a backup; the disk or memory may be failing.");
  }
  if (IsDiskFull(status)) {
    return SqlError(Code::kUnavailable, sqlstate::kDiskFull, "{}: no space left on device", what)
        .WithHint("Writes go on once space has been freed.");
  }
  if (status.IsMemoryLimit()) {
    return SqlError(Code::kUnavailable, sqlstate::kOutOfMemory, "{}: {}", what, text);
  }
  if (status.IsIOError() || status.IsPathNotFound()) {
    return SqlError(Code::kUnavailable, sqlstate::kIoError, "{}: {}", what, text);
  }
  if (status.IsBusy() || status.IsTryAgain() || status.IsTimedOut() || status.IsIncomplete() ||
      status.IsShutdownInProgress() || status.IsAborted()) {
    return MakeError(Code::kUnavailable, "{}: {}", what, text);
  }
  return InternalError("{}: {}", what, text);
}

}  // namespace cellar::engines
