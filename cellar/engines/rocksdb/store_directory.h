// Directories of ours, of stores and of backups: their markers, who may change them, and errors of
// the system's calls on them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cellar/base/small_file.h"
#include "cellar/base/status.h"

namespace cellar::engines {

// Tells a store from any other directory before RocksDB touches it. Written first, and by rename,
// so that a store whose making was interrupted can be told too.
inline constexpr std::string_view kMarkerFile = "CELLAR";
inline constexpr std::string_view kMarkerText = "Cellar store, format ";
inline constexpr std::string_view kBeingMade = ", being made";
inline constexpr std::string_view kLockFile = "cellar.lock";
// Where a store lies, within its directory, until a restore of it has ended.
inline constexpr std::string_view kRestoringDirectory = "restoring";

// Keeps other processes, and other engines of this one, from a directory. The lock goes with the
// file descriptor, so a dead process leaves none.
class DirectoryLock {
 public:
  // Errors: 55006 when another has it, with the process.
  static Result<std::unique_ptr<DirectoryLock>> Take(const std::string& directory);
  explicit DirectoryLock(File file) : file_(std::move(file)) {}

 private:
  File file_;
};

// The marker of a store of our format. `made`: it has its header and the record of its log's end,
// and never loses them again.
Status WriteMarker(const std::string& directory, bool made);
// The number behind `text` in the marker file `name`, and what follows it; 0: it holds something
// else; nullopt: there is none.
Result<std::optional<uint32_t>> ReadMarkerNumber(const std::string& directory,
                                                 std::string_view name, std::string_view text,
                                                 std::string* rest = nullptr);

}  // namespace cellar::engines
