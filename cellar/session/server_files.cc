#include "cellar/session/server_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "cellar/base/small_file.h"
#include "cellar/base/sqlstate.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {
namespace {

constexpr mode_t kNewFileMode = 0644;  // less the process's umask

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }
  int Take() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Status CouldNotOpen(const std::string& name, bool reading, int error) {
  const std::string_view state = error == ENOENT ? sqlstate::kUndefinedFile
                                 : error == ENOTDIR || error == EISDIR
                                     ? sqlstate::kWrongObjectType
                                     : sqlstate::kInsufficientPrivilege;
  return SqlError(Code::kInvalid, state, "could not open file \"{}\" for {}: {}", name,
                  reading ? "reading" : "writing", std::strerror(error))
      .WithHint(
          "COPY FROM instructs the server process to read a file. You may want a client-side "
          "facility such as psql's \\copy.");
}

Status RelativePath(std::string_view what) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidName, "relative path not allowed for {}", what);
}

Status NotAllowed(std::string_view kind, const std::string& name, std::string_view use) {
  return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege,
                  "{} \"{}\" is in no directory that the server may use for {}", kind, name, use);
}

Status FileNotAllowed(const std::string& name) {
  return NotAllowed("file", name, "COPY")
      .WithHint(
          "Start the server with --copy-directory DIR, or use psql's \\copy, which takes files of "
          "the client.");
}

std::optional<std::string> RealPath(const std::string& path) {
  std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), std::free);
  if (real == nullptr) return std::nullopt;
  return std::string(real.get());
}

// Both absolute, `directory` without a slash at its end unless it is "/".
bool IsBelow(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path == directory ||
         (path.starts_with(directory) && path.substr(directory.size()).starts_with('/'));
}

bool HasDotDot(std::string_view path) {
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (path.substr(0, slash) == "..") return true;
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return false;
}

// The directory `path` below `root`, entered name by name: what has become a link since `path` was
// resolved is not followed. -1 and errno.
Descriptor Enter(const std::string& root, std::string_view path) {
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Descriptor at(::open(root.c_str(), kFlags));
  while (at.fd() >= 0 && !path.empty()) {
    const std::string part(path.substr(0, path.find('/')));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (!part.empty()) at = Descriptor(::openat(at.fd(), part.c_str(), kFlags));
  }
  return at;
}

}  // namespace

Result<ServerFiles> ServerFiles::Below(const std::vector<std::string>& directories) {
  ServerFiles files;
  files.directories_.emplace();
  for (const std::string& given : directories) {
    const std::optional<std::string> real = RealPath(given);
    struct stat found {};
    if (!real || ::stat(real->c_str(), &found) != 0) {
      return InvalidError("could not enter directory \"{}\": {}", given, std::strerror(errno));
    }
    if (!S_ISDIR(found.st_mode)) return InvalidError("\"{}\" is not a directory", given);
    std::string name = given;
    while (name.size() > 1 && name.back() == '/') name.pop_back();
    files.directories_->push_back({std::move(name), *real});
  }
  return files;
}

// Whether the name says by its words alone that the file is to be below a directory of ours.
bool ServerFiles::NamesOne(std::string_view name) const {
  if (HasDotDot(name)) return false;
  for (const Root& directory : *directories_) {
    if (IsBelow(name, directory.given) || IsBelow(name, directory.real)) return true;
  }
  return false;
}

const ServerFiles::Root* ServerFiles::RootOf(std::string_view real) const {
  for (const Root& directory : *directories_) {
    if (IsBelow(real, directory.real)) return &directory;
  }
  return nullptr;
}

Result<FilePtr> ServerFiles::Open(const std::string& name, bool reading) const {
  if (name.empty() || name[0] != '/') return RelativePath("COPY to file");
  if (!directories_) {
    FilePtr file(std::fopen(name.c_str(), reading ? "rb" : "wb"));
    if (file == nullptr) return CouldNotOpen(name, reading, errno);
    return file;
  }
  const size_t slash = name.rfind('/');
  const std::string last = name.substr(slash + 1);
  const std::optional<std::string> folder = RealPath(slash == 0 ? "/" : name.substr(0, slash));
  const int no_folder = errno;
  if (!folder) {
    // What there is elsewhere is nobody's business.
    return NamesOne(name) ? CouldNotOpen(name, reading, no_folder) : FileNotAllowed(name);
  }
  const Root* const root = RootOf(*folder);
  if (root == nullptr || last.empty() || last == "." || last == "..") return FileNotAllowed(name);
  const Descriptor in = Enter(root->real, std::string_view(*folder).substr(root->real.size()));
  if (in.fd() < 0) return CouldNotOpen(name, reading, errno);
  // A pipe that nobody writes to must not keep the session.
  const int how = (reading ? O_RDONLY : O_WRONLY | O_CREAT) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Descriptor opened(::openat(in.fd(), last.c_str(), how | O_CLOEXEC, kNewFileMode));
  if (opened.fd() < 0 && errno == ELOOP) {
    return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege,
                    "file \"{}\" is a symbolic link", name)
        .WithHint("Name the file that it leads to.");
  }
  if (opened.fd() < 0) return CouldNotOpen(name, reading, errno);
  struct stat found {};
  if (::fstat(opened.fd(), &found) != 0) return CouldNotOpen(name, reading, errno);
  if (!S_ISREG(found.st_mode)) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a regular file",
                    name);
  }
  if (!reading && ::ftruncate(opened.fd(), 0) != 0) return CouldNotOpen(name, reading, errno);
  FilePtr file(::fdopen(opened.fd(), reading ? "rb" : "wb"));
  if (file == nullptr) return CouldNotOpen(name, reading, errno);
  opened.Take();
  return file;
}

Result<std::string> ServerFiles::Directory(const std::string& name) const {
  if (name.empty() || name[0] != '/') return RelativePath("BACKUP");
  if (!directories_) return name;
  const Status not_allowed = NotAllowed("directory", name, "BACKUP")
                                 .WithHint("Start the server with --copy-directory DIR.");
  std::string path = name;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (const std::optional<std::string> real = RealPath(path)) {
    return RootOf(*real) != nullptr ? Result<std::string>(*real) : not_allowed;
  }
  int error = errno;
  const size_t slash = path.rfind('/');
  const std::string last = path.substr(slash + 1);
  std::optional<std::string> folder;
  if (error == ENOENT && last != "." && last != "..") {
    folder = RealPath(slash == 0 ? "/" : path.substr(0, slash));
    error = errno;
  }
  if (folder && RootOf(*folder) != nullptr) return *folder + "/" + last;
  if (folder || !NamesOne(name)) return not_allowed;
  return IoError(fmt::format("could not open directory \"{}\" for a backup", name), error);
}

void LimitServerFiles(Database* database, ServerFiles files) {
  database->impl()->files = std::move(files);
}

}  // namespace cellar::session
