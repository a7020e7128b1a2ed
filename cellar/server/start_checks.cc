#include "cellar/server/start_checks.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "cellar/base/sqlstate.h"

namespace cellar::server {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kPermissions = 07777;

template <typename... Args>
Status Unsafe(fmt::format_string<Args...> format, Args&&... args) {
  return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState, format,
                  std::forward<Args>(args)...);
}

Status Unreadable(const std::string& path) {
  return InvalidError("could not look at \"{}\": {}", path, std::strerror(errno));
}

// As the engine sees it (docs/formats/store.md): what is none yet is made private by opening it.
bool IsStore(const std::string& directory) {
  std::error_code error;
  return fs::exists(directory + "/CELLAR", error) || fs::exists(directory + "/CURRENT", error);
}

}  // namespace

Status CheckStoreDirectory(const std::string& directory, uid_t self) {
  struct stat found {};
  if (::stat(directory.c_str(), &found) != 0) {
    if (errno == ENOENT) return Status();
    return Unreadable(directory);
  }
  if (!S_ISDIR(found.st_mode)) return Status();  // opening it says what is wrong
  if (found.st_uid != self && self != 0) {
    return Unsafe("directory \"{}\" belongs to another user", directory)
        .WithDetail(fmt::format("It is user {}'s; this is user {}.", found.st_uid, self))
        .WithHint("Start the server as the user who owns the store.");
  }
  if ((found.st_mode & (S_IWGRP | S_IRWXO)) != 0 && IsStore(directory)) {
    return Unsafe("directory \"{}\" is open to other users", directory)
        .WithDetail(fmt::format("Its mode is {:04o}; it should be 0700, or 0750 to let its group "
                                "read.",
                                found.st_mode & kPermissions))
        .WithHint(fmt::format("Run: chmod 700 '{}'", directory));
  }
  return Status();
}

Status CheckKeyFile(const std::string& path, uid_t self) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return Unreadable(path);
  if (found.st_uid != self && found.st_uid != 0) {
    return Unsafe("private key \"{}\" belongs to another user", path)
        .WithDetail(fmt::format("It is user {}'s; this is user {}.", found.st_uid, self))
        .WithHint("It must belong to the server's user, or to root.");
  }
  // A key of root is given to a server's user through its group.
  const mode_t others = found.st_uid != 0 ? S_IRWXG | S_IRWXO : S_IWGRP | S_IXGRP | S_IRWXO;
  if ((found.st_mode & others) != 0) {
    return Unsafe("private key \"{}\" is open to other users", path)
        .WithDetail(fmt::format("Its mode is {:04o}; it should be 0600, or 0640 if it is root's.",
                                found.st_mode & kPermissions))
        .WithHint(fmt::format("Run: chmod 600 '{}'", path));
  }
  return Status();
}

Status CheckRulesFile(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return Unreadable(path);
  if ((found.st_mode & S_IWOTH) == 0) return Status();
  return Unsafe("connection rules \"{}\" can be written by anybody", path)
      .WithDetail(fmt::format("The file's mode is {:04o}.", found.st_mode & kPermissions))
      .WithHint(fmt::format("Run: chmod o-w '{}'", path));
}

std::vector<std::string> StartWarnings(const std::string& directory, uid_t self) {
  std::vector<std::string> warnings;
  if (self == 0) warnings.emplace_back("the server runs as root; give it a user of its own");
  struct stat found {};
  if (::stat(directory.c_str(), &found) == 0 && found.st_uid != self) {
    warnings.push_back(fmt::format("the store belongs to another user, {}", found.st_uid));
  }
  std::error_code error;
  const fs::path parent = fs::absolute(directory, error).lexically_normal().parent_path();
  if (!error && ::stat(parent.c_str(), &found) == 0 && (found.st_mode & S_IWOTH) != 0 &&
      (found.st_mode & S_ISVTX) == 0) {
    warnings.push_back(fmt::format(
        "anybody may put another directory in the store's place: \"{}\" is writable by all",
        parent.string()));
  }
  return warnings;
}

Status CheckCopyDirectories(const std::vector<std::string>& directories, const std::string& store) {
  std::error_code error;
  const fs::path of_store = fs::canonical(store, error);
  if (error) return InvalidError("could not look at \"{}\": {}", store, error.message());
  for (const std::string& given : directories) {
    const fs::path directory = fs::canonical(given, error);
    if (error) return InvalidError("could not look at \"{}\": {}", given, error.message());
    const auto [left, right] =
        std::mismatch(directory.begin(), directory.end(), of_store.begin(), of_store.end());
    if (left == directory.end() || right == of_store.end()) {
      return InvalidError("directory \"{}\" is no place for COPY and BACKUP: it {} the store",
                          given, left == directory.end() ? "holds" : "lies in")
          .WithHint("Give --copy-directory a directory apart from the store's.");
    }
  }
  return Status();
}

}  // namespace cellar::server
