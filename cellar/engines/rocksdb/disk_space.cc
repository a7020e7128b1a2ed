#include "cellar/engines/rocksdb/disk_space.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <limits>

namespace cellar::engines {
namespace {

constexpr auto kLookInterval = std::chrono::milliseconds(50);
constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

}  // namespace

DiskSpace::DiskSpace(const std::string& directory, uint64_t reserve)
    : directory_(directory),
      path_(directory + "/reserve"),
      reserve_(reserve),
      kept_(::access(path_.c_str(), F_OK) == 0) {}

DiskSpace::~DiskSpace() { GiveReserve(); }

uint64_t DiskSpace::TotalBytes(const std::string& directory) {
  struct statvfs stats;
  if (::statvfs(directory.c_str(), &stats) != 0) return kUnknown;
  return static_cast<uint64_t>(stats.f_blocks) * stats.f_frsize;
}

uint64_t DiskSpace::FreeBytes(bool now) {
  std::lock_guard lock(mutex_);
  const auto time = std::chrono::steady_clock::now();
  if (!now && time - looked_ < kLookInterval) return free_;
  looked_ = time;
  struct statvfs stats;
  free_ = ::statvfs(directory_.c_str(), &stats) != 0
              ? kUnknown
              : static_cast<uint64_t>(stats.f_bavail) * stats.f_frsize;
  return free_;
}

void DiskSpace::KeepReserve() {
  std::lock_guard lock(mutex_);
  if (kept_) return;
  const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  kept_ = ::posix_fallocate(fd, 0, static_cast<off_t>(reserve_)) == 0;
  ::close(fd);
  if (!kept_) ::unlink(path_.c_str());
  looked_ = {};
}

void DiskSpace::GiveReserve() {
  std::lock_guard lock(mutex_);
  if (!kept_) return;
  ::unlink(path_.c_str());
  kept_ = false;
  looked_ = {};
}

}  // namespace cellar::engines
