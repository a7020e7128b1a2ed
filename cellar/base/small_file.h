// Small files that are put in place whole, and the errors of files.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "cellar/base/status.h"

namespace cellar {

// By errno: 53100, 42501, 58P01 or 58030.
Status IoError(std::string_view what, int error);

// An open file descriptor, closed with it; -1: errno tells why not. What it makes is its owner's
// alone (mode 0600).
class File {
 public:
  File(const std::string& path, int flags);
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&&) = delete;
  ~File();
  int fd() const { return fd_; }

 private:
  int fd_;
};

// All of it, from this offset on. `what`: begins the error.
Status WriteAll(const File& file, std::string_view content, std::string_view what);
// Makes the names in a directory durable.
Status SyncDirectory(const std::string& directory);
// Puts a file of that content in place by rename, for its owner alone; durable on return. What was
// there stays if it fails. A link in its place is replaced, not followed.
Status ReplaceFile(const std::string& path, std::string_view content);

}  // namespace cellar
