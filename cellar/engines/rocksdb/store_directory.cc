#include "cellar/engines/rocksdb/store_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/kv/store_header.h"

namespace cellar::engines {
namespace {

Status InUse(const std::string& directory, int fd) {
  char text[32] = {};
  const ssize_t size = ::pread(fd, text, sizeof(text) - 1, 0);
  long pid = 0;
  if (size > 0) std::from_chars(text, text + size, pid);
  Status status =
      SqlError(Code::kUnavailable, sqlstate::kObjectInUse,
               "store \"{}\" is in use by another process", directory)
          .WithHint("Connect to the server that has it open, or stop that process first.");
  if (pid > 0) return std::move(status).WithDetail(fmt::format("Process {} has it open.", pid));
  return status;
}

}  // namespace

Result<std::unique_ptr<DirectoryLock>> DirectoryLock::Take(const std::string& directory) {
  File file(fmt::format("{}/{}", directory, kLockFile), O_RDWR | O_CREAT);
  if (file.fd() < 0) return IoError("could not open the lock file of the store", errno);
  if (::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return IoError("could not lock the store", errno);
    return InUse(directory, file.fd());
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  constexpr std::string_view kWhat = "could not write the lock file of the store";
  if (::ftruncate(file.fd(), 0) != 0) return IoError(kWhat, errno);
  CELLAR_TRY(WriteAll(file, pid, kWhat));
  return std::make_unique<DirectoryLock>(std::move(file));
}

Status WriteMarker(const std::string& directory, bool made) {
  return ReplaceFile(
      fmt::format("{}/{}", directory, kMarkerFile),
      fmt::format("{}{}{}\n", kMarkerText, kv::kStoreFormatVersion, made ? "" : kBeingMade));
}

Result<std::optional<uint32_t>> ReadMarkerNumber(const std::string& directory,
                                                 std::string_view name, std::string_view text,
                                                 std::string* rest) {
  const std::string path = fmt::format("{}/{}", directory, name);
  const File file(path, O_RDONLY);
  if (file.fd() < 0) {
    if (errno == ENOENT) return std::optional<uint32_t>();
    return IoError(fmt::format("could not read \"{}\"", path), errno);
  }
  char bytes[64];
  const ssize_t size = ::read(file.fd(), bytes, sizeof(bytes));
  std::string_view content(bytes, size > 0 ? static_cast<size_t>(size) : 0);
  uint32_t number = 0;
  if (content.starts_with(text)) {
    content.remove_prefix(text.size());
    const char* end = content.data() + content.size();
    const char* after = std::from_chars(content.data(), end, number).ptr;
    if (rest != nullptr) rest->assign(after, end);
  }
  return std::optional<uint32_t>(number);
}

}  // namespace cellar::engines
