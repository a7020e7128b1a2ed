#include "cellar/base/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cellar/base/sqlstate.h"

namespace cellar {
namespace {

constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;

std::string_view StateOf(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return sqlstate::kDiskFull;
    case EACCES:
    case EPERM:
    case EROFS: return sqlstate::kInsufficientPrivilege;
    case ENOENT: return sqlstate::kUndefinedFile;
    default: return sqlstate::kIoError;
  }
}

}  // namespace

Status IoError(std::string_view what, int error) {
  return SqlError(Code::kUnavailable, StateOf(error), "{}: {}", what,
                  std::generic_category().message(error));
}

File::File(const std::string& path, int flags)
    : fd_(::open(path.c_str(), flags | O_CLOEXEC, kOwnerOnly)) {}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

Status WriteAll(const File& file, std::string_view content, std::string_view what) {
  while (!content.empty()) {
    const ssize_t put = ::write(file.fd(), content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return IoError(what, errno);
    content.remove_prefix(static_cast<size_t>(put));
  }
  return {};
}

Status SyncDirectory(const std::string& directory) {
  const File file(directory, O_RDONLY | O_DIRECTORY);
  if (file.fd() < 0 || ::fsync(file.fd()) != 0) {
    return IoError(fmt::format("could not sync directory \"{}\"", directory), errno);
  }
  return {};
}

Status ReplaceFile(const std::string& path, std::string_view content) {
  const std::string fresh = path + ".new";
  const std::string what = fmt::format("could not write \"{}\"", path);
  // What an interrupted attempt has left may have another mode, or be a link.
  if (::unlink(fresh.c_str()) != 0 && errno != ENOENT) return IoError(what, errno);
  {
    const File file(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
    if (file.fd() < 0) return IoError(what, errno);
    CELLAR_TRY(WriteAll(file, content, what));
    if (::fsync(file.fd()) != 0) return IoError(what, errno);
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return IoError(what, errno);
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return SyncDirectory(".");
  return SyncDirectory(slash == 0 ? "/" : path.substr(0, slash));
}

}  // namespace cellar
