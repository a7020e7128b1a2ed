// Room on the disk of a store: how much there is, and a reserve for what makes room.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace cellar::engines {

// Thread-safe.
class DiskSpace {
 public:
  // `reserve` bytes are kept in a file of the directory; one may be there from before a crash.
  DiskSpace(const std::string& directory, uint64_t reserve);
  ~DiskSpace();  // gives the reserve back
  DiskSpace(const DiskSpace&) = delete;
  DiskSpace& operator=(const DiskSpace&) = delete;

  // Bytes that the file system gives to this user, from the last 50 ms or, with `now`, of this
  // moment. SIZE_MAX when it does not tell. Cost: a look at the clock, and seldom a system call.
  uint64_t FreeBytes(bool now = false);
  uint64_t reserve_bytes() const { return reserve_; }
  // Makes the file, or removes it. Both do nothing when it is so already.
  void KeepReserve();
  void GiveReserve();

  // Of the whole file system; SIZE_MAX when it does not tell.
  static uint64_t TotalBytes(const std::string& directory);

 private:
  const std::string directory_, path_;
  const uint64_t reserve_;
  std::mutex mutex_;  // guards all below
  std::chrono::steady_clock::time_point looked_;
  uint64_t free_ = 0;
  bool kept_;
};

}  // namespace cellar::engines
